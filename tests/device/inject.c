// SPDX-License-Identifier: Apache-2.0
/* Lets every call of the driver fail, one at a time, once with each kind of error, while a client
 * does everything there is to do. It fails if anything hangs, if an operation is not done exactly
 * once, if whoever asked is not told with a text, or if something is left in the driver (and, under
 * AddressSanitizer, in the process) when the device is closed.
 *
 * First the scenario runs without failures, which also counts the calls of each function.
 *
 * Usage: inject DRIVER NVML [some]. With "some", each call fails with one of the kinds of error, in
 * turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/cuda/driver.h"
#include "device/cuda/keep.h"
#include "device/space.h"
#include "ptx/images/cubin.h"
#include "tests/device/cubin_make.h"
#include "tests/device/mocked.h"
#include "tests/device/suite.h"

static const char *what = "nothing fails"; /* for messages */
static int n_errors_said;

static void check(bool ok, const char *text)
{
    if (!ok) {
        fprintf(stderr, "inject: %s: %s\n", what, text);
        exit(1);
    }
}

enum { MAX_OPS = 40 };
struct scene {
    struct suite s;
    struct suite_op ops[MAX_OPS];
    int n_ops;
    uint8_t *host, *pinned;
    uint64_t small, big;
};

static struct suite_op *add(struct scene *x, struct ws_op op)
{
    struct suite_op *o = &x->ops[x->n_ops++];
    o->op = op;
    o->op.space = x->s.space[0];
    return o;
}

static void wait_all(struct scene *x)
{
    for (int k = 0; k < x->n_ops; k++) {
        suite_wait(&x->ops[k]);
        const struct ws_op *op = &x->ops[k].op;
        check(op->error < _WS_DEV_E_N, "an error that is none");
        check(!op->error == !op->text[0], "an error without a text, or a text without an error");
        n_errors_said += op->error != WS_DEV_OK;
    }
    x->n_ops = 0;
}

static void submit(struct scene *x, struct ws_op op)
{
    suite_submit(&x->s, add(x, op));
}

static struct ws_op copy_in(uint64_t va, const void *from, uint64_t bytes)
{
    return (struct ws_op){.kind = WS_OPK_COPY,
                          .copy = {.dst_va = va, .src_host = from, .bytes = bytes}};
}
static struct ws_op copy_out(void *to, uint64_t va, uint64_t bytes)
{
    return (struct ws_op){.kind = WS_OPK_COPY,
                          .copy = {.src_va = va, .dst_host = to, .bytes = bytes}};
}
static struct ws_op fill(uint64_t va, uint32_t unit, uint64_t bytes, uint64_t rows)
{
    return (struct ws_op){.kind = WS_OPK_FILL,
                          .fill = {.va = va,
                                   .width_bytes = bytes,
                                   .height = rows,
                                   .pitch_bytes = bytes + 64,
                                   .value = 5,
                                   .value_bytes = unit}};
}

enum { HOST_BYTES = 1 << 20 };

static void copies(struct scene *x)
{
    ws_device_host_register(x->s.device, x->pinned, HOST_BYTES, -1);
    submit(x, copy_in(x->small, x->host, 4096));
    submit(x, copy_in(x->big, x->host, 200000));
    submit(x, copy_in(x->big + 200000, x->pinned, 200000));
    wait_all(x);
    submit(x, copy_out(x->host, x->small, 4096));
    submit(x, copy_out(x->host + 8192, x->big, 200000));
    submit(x, copy_out(x->pinned, x->big, 200000));
    submit(x, (struct ws_op){.kind = WS_OPK_COPY,
                             .copy = {.dst_va = x->big, .src_va = x->big + 500000, .bytes = 999}});
    submit(x, (struct ws_op){.kind = WS_OPK_COPY,
                             .copy = {.dst_va = x->big + 600000,
                                      .src_host = x->pinned,
                                      .bytes = 30,
                                      .height = 5,
                                      .depth = 3,
                                      .dst = {64, 640},
                                      .src = {32, 320}}});
    submit(x, fill(x->big + 700000, 1, 77, 1));
    submit(x, fill(x->big + 710000, 2, 78, 4));
    submit(x, fill(x->big + 720000, 4, 80, 3));
    wait_all(x);
    ws_device_host_unregister(x->s.device, x->pinned, HOST_BYTES);
}

static void kernels(struct scene *x)
{
    struct suite *s = &x->s;
    struct suite_op o[] = {suite_launch(s, 0, K_COUNT, 20, 32, 0, 0, 0, 0),
                           suite_launch(s, 0, K_SHARED, 1, 64, x->small, 0, 0, 0),
                           suite_launch(s, 0, K_SMID, 40, 32, x->big, x->big + 65536, 0, 0),
                           suite_launch(s, 0, K_BARRIER, 4, 1, x->big + 1000000, x->big, 0, 0)};
    o[1].op.launch.shared_bytes = 60000;
    ws_sm_set_add(&o[2].op.launch.sms, 1);
    o[3].op.launch.flags = WS_LAUNCH_COOPERATIVE;
    for (unsigned sm = 0; sm < 7; sm++) /* a green context */
        ws_sm_set_add(&o[3].op.launch.sms, sm);
    submit(x, fill(x->big + 1000000, 4, 4, 1));
    wait_all(x);
    for (size_t k = 0; k < WS_ARRAY_SIZE(o); k++) {
        struct suite_op *a = add(x, o[k].op);
        memcpy(a->params, o[k].params, sizeof(a->params));
        suite_submit(s, a);
    }
    wait_all(x);
    struct suite_op stops = suite_launch(s, 0, K_TRAP, 1, 32, 0, 0, 0, 0);
    submit(x, stops.op);
    (void)!ws_space_open_heap(s->space[0], s->device);
    wait_all(x);
    ws_space_drop_heap(s->space[0], s->device);
    mock.hold(true); /* so that these are under way when they are asked to stop */
    for (int k = 0; k < 6; k++) {
        struct suite_op *a = add(x, o[2].op),
                        n = suite_launch(s, 0, K_SMID, 40, 32, x->big, x->big + 65536, 0, 0);
        memcpy(a->params, n.params, sizeof(a->params));
        suite_submit(s, a);
    }
    struct suite_op *last = &x->ops[x->n_ops - 1];
    (void)suite_preempt(s, last);
    ws_device_cancel(s->device, s->space[0]);
    mock.hold(false);
    wait_all(x);
    for (int k = 0; k < MAX_OPS; k++)
        if (x->ops[k].op.preempted) {
            ws_progress_free(x->ops[k].op.launch.progress);
            x->ops[k].op.preempted = false;
        }
}

static void mapped(struct scene *x, int fd)
{
    uint64_t at = SUITE_HOST_VA;
    void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!ws_space_map_host(x->s.space[0], at, 8192, p)) {
        submit(x, copy_out(x->host, at, 8192));
        wait_all(x);
        check(!ws_space_unmap(x->s.space[0], at), "mapped host memory can't be unmapped");
    }
    munmap(p, 8192);
}

static bool alloc(struct scene *x, uint64_t *ret, uint64_t bytes)
{
    struct suite *s = &x->s;
    uint64_t va = WS_ALIGN_UP(s->next_va[0], UINT64_C(2) << 20);
    if (ws_device_mem_alloc(s->device, s->space[0], va, bytes))
        return false;
    s->next_va[0] = va + bytes + 65536;
    *ret = va;
    return true;
}

static struct kept { /* the last whole piece and the last granule, with their descriptors */
    struct ws_cuda_kept k;
    int fd;
} kept[2];

static void kept_drop(struct kept *k)
{
    if (k->fd > 0)
        close(k->fd);
    *k = (struct kept){.fd = -1};
}

static void on_made(void *arg, const struct ws_cuda_kept *k, int fd)
{
    struct kept *to = &kept[k->va != 0];
    n_errors_said += fd < 0; /* it was logged */
    kept_drop(to);
    *to = (struct kept){*k, fd};
}

static void on_gone(void *arg, const struct ws_cuda_kept *k)
{
}

/* Memory as another process would adopt it, and at a second place. */
static void adopted(struct scene *x)
{
    struct suite *s = &x->s;
    struct ws_memory *m;
    uint64_t at = SUITE_VA(1) + (UINT64_C(1) << 33), granule, offset;
    if (kept[1].fd > 0) {
        kept[1].k.va = at;
        kept[1].k.id += 1000; /* not the one that it was made as */
        if (!ws_cuda_adopt_granule(s->device, &kept[1].k, kept[1].fd) &&
            !ws_cuda_adopt_memory(s->device, 4096, NULL, -1, &m)) {
            if (!ws_space_map_memory(s->space[1], at, 4096, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL))
                check(!ws_space_unmap(s->space[1], at), "adopted memory can't be unmapped");
            ws_memory_unref(m);
        }
        ws_cuda_adopt_end(s->device);
    }
    if (kept[0].fd > 0 &&
        !ws_cuda_adopt_memory(s->device, kept[0].k.bytes, &kept[0].k, kept[0].fd, &m))
        ws_memory_unref(m);
    if (!ws_device_memory_new(s->device, 4096, &m)) {
        for (int k = 0; k < 2; k++) {
            ws_memory_place(m, &granule, &offset);
            if (!ws_space_map_memory(s->space[1], at + granule * (uint64_t)k + offset, 4096, m, 0,
                                     WS_ACCESS_ALL, WS_ACCESS_ALL) &&
                k == 1)
                check(!ws_space_unmap(s->space[1], at + granule + offset), "can't be unmapped");
        }
        ws_memory_unref(m);
    }
    kept_drop(&kept[0]);
    kept_drop(&kept[1]);
}

/* A second GPU: copies between the two, and of its memory by the first. */
static bool with_second;

static bool needs_second(const char *name)
{
    return strstr(name, "Peer") || !strcmp(name, "cuCtxSetCurrent");
}

static void second(struct scene *x)
{
    struct ws_device *b = NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    uint64_t at = SUITE_VA(0) + (UINT64_C(1) << 33);
    if (suite_open_second(&b, &diags)) {
        n_errors_said++;
    } else if (!ws_device_mem_alloc(b, x->s.space[0], at, 400000 / 512 * 512)) {
        submit(x, (struct ws_op){.kind = WS_OPK_COPY,
                                 .copy = {.dst_va = at, .src_va = x->big, .bytes = 300000}});
        wait_all(x);
        submit(x, copy_out(x->host, at, 300000));
        submit(x, copy_in(at, x->host, 4096));
        wait_all(x);
        submit(x, fill(at, 4, 400, 3));
        submit(x, (struct ws_op){.kind = WS_OPK_COPY,
                                 .copy = {.dst_va = x->big, .src_va = at, .bytes = 300000}});
        wait_all(x);
        check(!ws_space_unmap(x->s.space[0], at), "the second GPU's memory can't be unmapped");
    }
    ws_device_close(b);
    ws_diags_deinit(&diags);
}

static void scenario(int fd)
{
    struct scene *x = calloc(1, sizeof(*x));
    struct ws_device_telemetry t;
    x->host = calloc(1, HOST_BYTES);
    x->pinned = aligned_alloc(4096, HOST_BYTES);
    memset(x->pinned, 1, HOST_BYTES);
    alarm(100); /* nothing may hang */
    if (!suite_begin(&x->s)) {
        (void)ws_device_cuda_keep(x->s.device, &(struct ws_cuda_keep){on_made, on_gone, NULL});
        if (alloc(x, &x->small, 512 * 9) && alloc(x, &x->big, (2 << 20) + 4096)) {
            copies(x);
            kernels(x);
            mapped(x, fd);
            adopted(x);
            if (with_second)
                second(x);
            check(!ws_space_unmap(x->s.space[0], x->small), "memory can't be unmapped");
        }
        ws_device_telemetry(x->s.device, &t);
        check(t.n_running == 0, "operations are left");
        suite_end(&x->s);
        kept_drop(&kept[0]);
        kept_drop(&kept[1]);
    } else {
        n_errors_said++;
    }
    alarm(0);
    free(x->host);
    free(x->pinned);
    free(x);
}

/* Machine code, which is taken without isolation alone: loaded for two clients, launched, its
 * variables written. */
static void machine_code(int fd)
{
    struct suite *s = calloc(1, sizeof(*s));
    struct ws_ptx_module *m = NULL;
    struct ws_dmodule *code = NULL;
    struct ws_dinstance *inst[2] = {NULL, NULL};
    uint64_t va[4] = {0};
    uint32_t v = 7;
    size_t len = 0;
    uint8_t *cubin = cubin_make(&cubin_make_step, &len);
    (void)fd;
    alarm(100);
    suite_target.options.unfenced = true;
    if (suite_begin(s)) {
        n_errors_said++;
    } else {
        check(!ws_cubin_module(&m, cubin, len, NULL, NULL), "the cubin can't be read");
        struct ws_diags diags = WS_DIAGS_NULL;
        int r = ws_device_module_load(s->device, m, &code, &diags);
        check(!r || diags.n, "refused machine code without a text");
        ws_diags_deinit(&diags);
        n_errors_said += r != 0;
        for (int c = 0; !r && c < 2; c++)
            n_errors_said +=
                ws_device_instance_new(s->device, code, s->space[c], NULL, &inst[c]) != 0;
        if (!r && inst[0])
            ws_device_instance_vars(s->device, inst[0], va);
        struct suite_op o[2] = {{.op = {.kind = WS_OPK_LAUNCH,
                                        .launch = {.instance = inst[0],
                                                   .grid = {2, 1, 1},
                                                   .block = {32, 1, 1},
                                                   .param_bytes = 12}}},
                                {.op = copy_in(va[1], &v, sizeof(v))}};
        for (int k = 0; inst[0] && k < 2; k++) {
            o[k].op.space = s->space[0];
            suite_submit(s, &o[k]);
            suite_wait(&o[k]);
            check(!o[k].op.error == !o[k].op.text[0], "an error without a text");
            n_errors_said += o[k].op.error != WS_DEV_OK;
        }
        for (int c = 0; c < 2; c++)
            ws_device_instance_free(s->device, inst[c]);
        ws_device_module_unload(s->device, code);
        suite_end(s);
    }
    suite_target.options.unfenced = false;
    alarm(0);
    ws_ptx_module_free(m);
    free(cubin);
    free(s);
}

/* Calls whose failure leaves something in the driver that nobody can take away any more. */
static bool ends_something(const char *name)
{
    static const char *const names[] = {"cuMemRelease",        "cuMemUnmap",
                                        "cuMemFree",           "cuMemFreeHost",
                                        "cuMemHostUnregister", "cuMemAddressFree",
                                        "cuGreenCtxDestroy",   "cuDevicePrimaryCtxRelease"};
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        if (!strcmp(name, names[k]))
            return true;
    return false;
}

/* Return: whether the call was made this time: how often some are depends on time. */
static bool inject(const char *name, uint64_t nth, int code, int fd, void (*scene)(int fd))
{
    static char text[128];
    const char *first;
    snprintf(text, sizeof(text), "call %llu of %s fails with %d", (unsigned long long)nth, name,
             code);
    what = text;
    with_second = needs_second(name);
    mock.reset();
    mock.fail_call(name, nth, code);
    scene(fd);
    if (mock.violations(&first) && !ends_something(name))
        check(false, first);
    check(nth > 1 || mock.calls(name) >= nth, "the call was not made");
    return mock.calls(name) >= nth;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
#define X(name, needed, args) #name,
        WS_CU_FUNCTIONS(X)
#undef X
    };
    static const int codes[] = {WS_CU_OUT_OF_MEMORY, WS_CU_INVALID_VALUE, WS_CU_ILLEGAL_ADDRESS,
                                WS_CU_UNKNOWN};
    size_t step = argc == 4 ? WS_ARRAY_SIZE(codes) : 1;
    uint64_t counts[WS_ARRAY_SIZE(names)];
    int n = 0, fd = memfd_create("inject", MFD_CLOEXEC);
    if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "some") != 0)) {
        fprintf(stderr, "usage: inject DRIVER NVML [some]\n");
        return 2;
    }
    if (!mocked_open(argv) || fd < 0 || ftruncate(fd, 8192))
        return 2;
    ws_log_set_level(WS_ERROR - 1);
    setenv("WS_MOCK_GPUS", "2", 1);
    mock.reset();
    scenario(fd);
    const char *first;
    if (mock.violations(&first))
        check(false, first);
    check(n_errors_said <= 9, "errors though nothing failed");
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        counts[k] = mock.calls(names[k]);
    with_second = true;
    mock.reset();
    scenario(fd);
    if (mock.violations(&first))
        check(false, first);
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        if (needs_second(names[k]))
            counts[k] = mock.calls(names[k]);
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++) {
        /* each of the first calls; of the many later ones a few, unless it depends on time which
         * call is whose */
        bool each = !strcmp(names[k], "cuCtxSetCurrent");
        for (uint64_t nth = 1; nth <= counts[k];
             nth += each || nth < 4 ? 1 : (counts[k] - 3) / 2 + 1)
            for (size_t c = (k + nth) % step; c < WS_ARRAY_SIZE(codes); c += step)
                n += inject(names[k], nth, codes[c], fd, scenario);
        if (!counts[k])
            printf("not called: %s\n", names[k]);
    }
    static const char *const loading[] = {"cuModuleLoadDataEx", "cuModuleGetFunction",
                                          "cuModuleGetGlobal",  "cuModuleUnload",
                                          "cuFuncGetParamInfo", "cuLaunchKernelEx"};
    check(suite_machine_code_begin(), "no folder for PTX");
    mock.reset();
    int said = n_errors_said;
    machine_code(fd);
    check(!mock.violations(&first), first);
    check(n_errors_said == said, "machine code: errors though nothing failed");
    for (size_t k = 0; k < WS_ARRAY_SIZE(loading); k++) {
        mock.reset();
        machine_code(fd);
        uint64_t calls_made = mock.calls(loading[k]);
        check(calls_made, "machine code: a call that is never made");
        for (uint64_t nth = 1; nth <= calls_made; nth++)
            for (size_t c = (k + nth) % step; c < WS_ARRAY_SIZE(codes); c += step)
                n += inject(loading[k], nth, codes[c], fd, machine_code);
    }
    suite_machine_code_end();
    printf("%d failures injected, %d errors said, nothing left, nothing hung\n", n, n_errors_said);
    close(fd);
    return 0;
}
