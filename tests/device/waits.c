// SPDX-License-Identifier: Apache-2.0
/* While a kernel runs, the device makes no call of the driver that may wait for that kernel: the
 * kernel may wait for an operation that is just being started. A kernel is held on the mock
 * driver's GPU, clients do what they do meanwhile, and every call of the driver is looked at.
 *
 * Usage: waits DRIVER NVML */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/device/mocked.h"
#include "tests/device/suite.h"

/* Calls that, as NVIDIA's documentation has it, may wait until the GPU has nothing to do. Code may
 * be loaded and unloaded on threads that do nothing else, so the last two are not looked for where
 * a module is new or goes. */
static const char *const may_wait[] = {"cuMemAlloc",          "cuMemFree",
                                       "cuMemHostAlloc",      "cuMemFreeHost",
                                       "cuMemcpyHtoD",        "cuMemcpyDtoH",
                                       "cuMemsetD8Async",     "cuMemHostRegister",
                                       "cuMemHostUnregister", "cuStreamCreateWithPriority",
                                       "cuStreamDestroy",     "cuModuleLoadDataEx",
                                       "cuModuleUnload"};
enum { OF_CODE = 2 };
static const char *const *wrong;
static size_t n_names;
static _Atomic unsigned n_wrong;
static char first_wrong[64];

static void on_call(const char *name, bool behind)
{
    for (size_t k = 0; !behind && k < n_names; k++)
        if (!strcmp(name, wrong[k]) && !n_wrong++)
            snprintf(first_wrong, sizeof(first_wrong), "%s", name);
}

static void begin(const char *const *names, size_t n)
{
    wrong = names;
    n_names = n;
    n_wrong = 0;
    mock.watch(on_call);
}

static void end(const char *what)
{
    char text[160];
    mock.watch(NULL);
    snprintf(text, sizeof(text), "%s: %s was called while a kernel ran", what, first_wrong);
    mocked_check(!n_wrong, text);
}

enum { RANGES = 2000, LAUNCHES = 20 };

/* Launches in many queues, by a client that has many allocations and by one that has not; kernels
 * that may stop; copies of each size, all while a kernel runs. */
static void submitting(struct suite *s)
{
    for (int c = 0; c < SUITE_CLIENTS; c++) { /* what it needs is compiled */
        struct suite_op first = suite_launch(s, c, K_COUNT, 1, 32, 0, 0, 0, 0);
        suite_run(s, &first, WS_DEV_OK);
    }
    static uint8_t host[1 << 20];
    struct suite_op runs = suite_launch(s, 1, K_COUNT, 1, 32, 0, 0, 0, 0),
                    stops = suite_launch(s, 1, K_TRAP, 1, 32, 0, 0, 0, 0), o[LAUNCHES];
    uint64_t va = suite_alloc(s, 1, sizeof(host));
    for (int k = 0; k < RANGES; k++)
        (void)suite_alloc(s, 0, 512);
    mock.hold(true);
    suite_submit(s, &runs);
    begin(may_wait, WS_ARRAY_SIZE(may_wait));
    for (int k = 0; k < LAUNCHES; k++) {
        o[k] = suite_launch(s, k % 2, K_COUNT, 4, 32, 0, 0, 0, 0);
        suite_submit(s, &o[k]);
    }
    suite_submit(s, &stops);
    /* the first of its kind: to fill, the driver may need code of its own */
    struct suite_op fill = {
        .op = {.kind = WS_OPK_FILL,
               .space = s->space[1],
               .fill = {.va = va, .width_bytes = 4096, .height = 1, .value_bytes = 2}}};
    mock.waits("first");
    suite_submit(s, &fill);
    mock.waits(NULL);
    suite_wait(&fill);
    suite_put(s, 1, va, host, 4096);
    suite_put(s, 1, va, host, sizeof(host));
    suite_get(s, 1, host, va, 4096);
    mocked_check(!runs.done, "the first kernel was not held");
    end("submitting");
    mock.hold(false);
    for (int k = 0; k < LAUNCHES; k++) {
        suite_wait(&o[k]);
        mocked_check(!o[k].op.error, o[k].op.text);
    }
    suite_wait(&stops);
    mocked_check(stops.op.error == WS_DEV_E_TRAP, "a trap is not reported");
    suite_wait(&runs);
}

/* Waits until the driver's function @name was called @n times. */
static void called(const char *name, uint64_t n, const char *wrong_text)
{
    for (int ms = 0; ms < 20000 && mock.calls(name) < n; ms++)
        usleep(1000);
    mocked_check(mock.calls(name) == n, wrong_text);
}

/* A module's variables have their initial values when an instance of it is there. */
static void variables(struct suite *s)
{
    static const char text[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
                               ".visible .global .align 4 .u32 v[20000] = {7, 8};\n"
                               ".visible .entry k()\n{\n.reg .b32 %r<2>;\n"
                               "ld.global.u32 %r1, [v];\nst.global.u32 [v+4], %r1;\nret;\n}\n";
    struct suite_op runs = suite_launch(s, 1, K_COUNT, 1, 32, 0, 0, 0, 0);
    struct ws_ptx_module *ptx = NULL;
    struct ws_dmodule *m = NULL;
    struct ws_dinstance *i = NULL;
    uint64_t va = suite_alloc(s, 0, 80000), loads = mock.calls("cuModuleLoadDataEx"),
             unloads = mock.calls("cuModuleUnload");
    uint32_t got[3] = {0};
    mocked_check(!ws_ptx_parse(&ptx, text, strlen(text), "v.ptx", NULL) &&
                     !ws_device_module_load(s->device, ptx, &m, NULL),
                 "the module is not loaded");
    mock.hold(true);
    suite_submit(s, &runs);
    begin(may_wait, WS_ARRAY_SIZE(may_wait) - OF_CODE);
    mocked_check(!ws_device_instance_new(s->device, m, s->space[0], &va, &i), "no instance");
    suite_get(s, 0, got, va, sizeof(got));
    end("variables");
    mocked_check(got[0] == 7 && got[1] == 8 && !got[2], "wrong initial values");
    mock.hold(false);
    suite_wait(&runs);
    ws_device_instance_free(s->device, i);
    ws_device_module_unload(s->device, m);
    ws_ptx_module_free(ptx);
    called("cuModuleUnload", unloads + mock.calls("cuModuleLoadDataEx") - loads,
           "what was loaded is not unloaded");
}

/* A module that is loaded before a kernel begins is compiled for its client at once, so the first
 * launch of it needs nothing that may wait for that kernel. And what has ended is unloaded without
 * anybody waiting. */
static void loading(struct suite *s)
{
    static const char text[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
                               ".visible .global .align 4 .u32 v;\n"
                               ".visible .entry k()\n{\n.reg .b32 %r;\n"
                               "atom.global.add.u32 %r, [v], 1;\nret;\n}\n";
    struct suite_op runs = suite_launch(s, 1, K_COUNT, 1, 32, 0, 0, 0, 0), o;
    struct ws_ptx_module *ptx = NULL;
    struct ws_dmodule *m = NULL;
    struct ws_dinstance *i = NULL;
    uint64_t va = suite_alloc(s, 0, 512), before = mock.calls("cuModuleLoadDataEx");
    mocked_check(!ws_ptx_parse(&ptx, text, strlen(text), "k.ptx", NULL) &&
                     !ws_device_module_load(s->device, ptx, &m, NULL) &&
                     !ws_device_instance_new(s->device, m, s->space[0], &va, &i),
                 "the module is not loaded");
    /* Once to learn what its kernels need, and once for this client's addresses. */
    called("cuModuleLoadDataEx", before + 2, "a module is not compiled before its first launch");
    mock.hold(true);
    suite_submit(s, &runs);
    begin(may_wait, WS_ARRAY_SIZE(may_wait));
    o = (struct suite_op){.op = {.kind = WS_OPK_LAUNCH,
                                 .space = s->space[0],
                                 .launch = {.instance = i, .grid = {1, 1, 1}, .block = {1, 1, 1}}}};
    suite_submit(s, &o);
    end("a first launch");
    mock.hold(false);
    suite_wait(&o);
    mocked_check(!o.op.error, o.op.text);
    suite_wait(&runs);
    mock.hold(true);
    suite_submit(s, &runs);
    mock.waits("module");
    ws_device_instance_free(s->device, i);
    ws_device_module_unload(s->device, m);
    mocked_check(!runs.done, "to unload a module has waited for a kernel");
    mock.hold(false);
    suite_wait(&runs);
    mock.waits(NULL);
    ws_ptx_module_free(ptx);
}

/* Allocations large and small, cleared although kernels could not clear them. */
static void allocating(struct suite *s)
{
    enum { BYTES = 5 << 20 };
    static uint8_t host[BYTES], want[BYTES];
    struct suite_op runs = suite_launch(s, 1, K_COUNT, 1, 32, 0, 0, 0, 0);
    mock.hold(true);
    suite_submit(s, &runs);
    begin(may_wait, WS_ARRAY_SIZE(may_wait));
    uint64_t large = suite_alloc(s, 0, BYTES), small = suite_alloc(s, 0, 4096);
    memset(host, 1, sizeof(host));
    suite_get(s, 0, host, large, BYTES);
    mocked_check(!memcmp(host, want, BYTES), "memory was not cleared");
    suite_get(s, 0, host, small, 4096);
    mocked_check(!memcmp(host, want, 4096), "memory was not cleared");
    mocked_check(!runs.done, "the kernel was not held");
    end("allocating");
    mock.hold(false);
    suite_wait(&runs);
}

/* A launch that may be stopped neither begins with a copy, which would wait for those of others,
 * nor is it stopped behind what other streams do. */
static void stopping(struct suite *s)
{
    static const char *const copies[] = {"cuMemcpyHtoDAsync", "cuStreamWaitEvent"};
    struct suite_op first = suite_launch(s, 0, K_COUNT, 40, 32, 0, 0, 0, 0),
                    runs = suite_launch(s, 0, K_COUNT, 40, 32, 0, 0, 0, 0);
    suite_run(s, &first, WS_DEV_OK); /* compiles it, and has the table of ranges copied */
    mock.hold(true);
    begin(copies, WS_ARRAY_SIZE(copies));
    suite_submit(s, &runs);
    mocked_check(suite_preempt(s, &runs) == 0, "a launch cannot be stopped");
    end("stopping");
    mock.hold(false);
    suite_wait(&runs);
    mocked_check(!runs.op.error, runs.op.text);
    if (runs.op.preempted) {
        runs.op.preempted = false;
        suite_run(s, &runs, WS_DEV_OK);
    }
    uint32_t n = 0;
    suite_get(s, 0, &n, s->vars[0][0], sizeof(n));
    mocked_check(n == 2 * 40 * 32, "blocks were not run once each");
}

/* With the queues of both copy engines full, a kernel begins, is stopped between blocks, and it is
 * known how far it came. */
static void stopping_beside_copies(struct suite *s)
{
    enum { COPIES = 20, BYTES = 1 << 16, BLOCKS = 4000 };
    static uint8_t host[COPIES][BYTES];
    struct suite_op copies[COPIES], runs = suite_launch(s, 0, K_COUNT, BLOCKS, 32, 0, 0, 0, 0);
    struct timespec from, to;
    uint64_t va = suite_alloc(s, 1, COPIES * BYTES), other = suite_alloc(s, 0, 4096);
    suite_run(s, &runs, WS_DEV_OK);
    mock.hold_copies(true);
    for (int k = 0; k < COPIES; k++) {
        copies[k] = (struct suite_op){
            .op = {.kind = WS_OPK_COPY, .space = s->space[1], .copy = {.bytes = BYTES}}};
        if (k % 2) {
            copies[k].op.copy.dst_va = va + (uint64_t)k * BYTES;
            copies[k].op.copy.src_host = host[k];
        } else {
            copies[k].op.copy.src_va = va + (uint64_t)k * BYTES;
            copies[k].op.copy.dst_host = host[k];
        }
        suite_submit(s, &copies[k]);
    }
    /* its table of ranges has to be sent anew */
    mocked_check(!ws_space_unmap(s->space[0], other), "no mapping");
    mock.hold(true); /* so that it has not ended when it is asked to stop */
    suite_submit(s, &runs);
    mocked_check(suite_preempt(s, &runs) == 0, "a launch cannot be stopped");
    usleep(200000); /* this has reached the GPU */
    clock_gettime(CLOCK_MONOTONIC, &from);
    mock.hold(false);
    suite_wait(&runs);
    clock_gettime(CLOCK_MONOTONIC, &to);
    mocked_check(runs.op.preempted, "it was not stopped");
    for (int k = 0; k < COPIES; k++)
        mocked_check(!copies[k].done, "the copies were not held");
    printf("stopped beside %d copies in %.0f us\n", COPIES,
           (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3);
    mock.hold_copies(false);
    for (int k = 0; k < COPIES; k++)
        suite_wait(&copies[k]);
    runs.op.preempted = false;
    suite_run(s, &runs, WS_DEV_OK);
}

int main(int argc, char **argv)
{
    struct suite s;
    const char *first = "";
    if (argc != 3 || !mocked_open(argv))
        return 2;
    alarm(100); /* nothing may hang */
    mocked_check(!suite_begin(&s), "the device can't be opened");
    submitting(&s);
    allocating(&s);
    variables(&s);
    loading(&s);
    suite_end(&s);
    suite_target.options.preemptible = true;
    mocked_check(!suite_begin(&s), "the device can't be opened");
    stopping(&s);
    stopping_beside_copies(&s);
    suite_end(&s);
    mocked_check(!mock.violations(&first), first);
    printf("no call that may wait for the GPU while a kernel runs\n");
    return 0;
}
