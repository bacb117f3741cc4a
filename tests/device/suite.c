// SPDX-License-Identifier: Apache-2.0
#include "tests/device/suite.h"
#include "tests/mock/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/catalog.h"
#include "device/worker/worker.h"

struct suite_target suite_target;
static pthread_mutex_t lock =
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* done may be called inside preempt */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

const char suite_ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x]; "
    "add.s32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n"
    ".visible .global .align 4 .u32 counter;\n"
    ".global .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    ".global .align 8 .u64 pointer = table;\n"
    ".global .align 8 .u64 function = twice;\n"
    ".const .align 4 .u32 factor = 3;\n"
    ".global .align 4 .u32 sparse[100] = {7};\n"
    ".extern .shared .align 4 .b8 dynamic[];\n"
    /* c[i] = a[i] + b[i] */
    ".visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
    "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r5, "
    "[n];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, "
    "%r3;\n"
    "setp.ge.u32 %p, %r4, %r5;\n@%p bra END;\n"
    "mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, "
    "%rd3, %rd4;\n"
    "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; st.global.f32 "
    "[%rd7], %f3;\n"
    "END:\nret;\n}\n"
    /* adds 1 to the module's counter, for every thread */
    ".visible .entry count()\n{\n.reg .b32 %r<2>;\natom.global.add.u32 %r1, [counter], "
    "1;\nret;\n}\n"
    /* *p = table[1] through pointer, times factor, twice through function */
    ".visible .entry vars(.param .u64 p)\n{\n.reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [pointer]; ld.global.u32 %r1, [%rd2+4]; "
    "mov.u64 %rd4, factor; ld.const.u32 %r2, [%rd4];\n"
    "mul.lo.s32 %r3, %r1, %r2; ld.global.u64 %rd3, [function];\n"
    "{\n.param .b32 arg; .param .b32 res;\nst.param.b32 [arg], %r3;\n"
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (res), %rd3, (arg), "
    "P;\nld.param.b32 %r4, [res];\n}\n"
    "st.global.u32 [%rd1], %r4;\nret;\n}\n"
    /* p[linear thread of the grid] = ctaid.x | ctaid.y << 8 | ctaid.z << 16 | tid.z << 24 */
    ".visible .entry ids(.param .u64 p)\n{\n.reg .b32 %r<20>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.x; "
    "mov.u32 %r5, %nctaid.y;\n"
    "mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\n"
    "mov.u32 %r7, %ntid.x; mov.u32 %r8, %ntid.y; mov.u32 %r9, %ntid.z; mov.u32 %r10, %tid.x; "
    "mov.u32 %r11, %tid.y; mov.u32 %r12, %tid.z;\n"
    "mul.lo.u32 %r13, %r7, %r8; mul.lo.u32 %r13, %r13, %r9; mad.lo.u32 %r14, %r12, %r8, %r11; "
    "mad.lo.u32 %r14, %r14, %r7, %r10;\n"
    "mad.lo.u32 %r15, %r6, %r13, %r14; mul.wide.u32 %rd2, %r15, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "shl.b32 %r16, %r2, 8; or.b32 %r17, %r1, %r16; shl.b32 %r16, %r3, 16; or.b32 %r17, %r17, %r16; "
    "shl.b32 %r16, %r12, 24; or.b32 %r17, %r17, %r16;\n"
    "st.global.u32 [%rd3], %r17;\nret;\n}\n"
    /* where[block] = its SM, times[block] += 1 (by one thread) */
    ".visible .entry smid(.param .u64 where, .param .u64 times)\n{\n.reg .pred %p; .reg .b32 "
    "%r<6>; .reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [where]; ld.param.u64 %rd2, [times]; mov.u32 %r1, %tid.x;\n"
    "setp.ne.u32 %p, %r1, 0;\n@%p bra END;\n"
    "mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, "
    "%rd2, %rd3;\n"
    "mov.u32 %r3, %smid; st.global.u32 [%rd4], %r3; atom.global.add.u32 %r4, [%rd5], 1;\n"
    "END:\nret;\n}\n"
    /* reverses p[0..ntid) through dynamic shared memory */
    ".visible .entry shared(.param .u64 p)\n{\n.reg .b32 %r<10>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mul.wide.u32 %rd2, %r1, 4; "
    "add.s64 %rd3, %rd1, %rd2;\n"
    "mov.u32 %r3, dynamic; shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4; ld.global.u32 %r6, [%rd3]; "
    "st.shared.u32 [%r5], %r6;\nbar.sync 0;\n"
    "sub.u32 %r7, %r2, %r1; sub.u32 %r7, %r7, 1; shl.b32 %r7, %r7, 2; add.u32 %r8, %r3, %r7; "
    "ld.shared.u32 %r9, [%r8]; st.global.u32 [%rd3], %r9;\nret;\n}\n"
    /* one thread a block: waits until all blocks have come; q[block] = how many had */
    ".visible .entry barrier(.param .u64 p, .param .u64 q)\n{\n.reg .pred %p; .reg .b32 %r<6>; "
    ".reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, "
    "%ctaid.x; atom.global.add.u32 %r3, [%rd1], 1;\n"
    "L: ld.volatile.global.u32 %r4, [%rd1];\nsetp.lt.u32 %p, %r4, %r1;\n@%p bra L;\n"
    "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r4;\nret;\n}\n"
    ".visible .entry read(.param .u64 p)\n{\n.reg .b64 %rd; .reg .b32 %r;\nld.param.u64 %rd, "
    "[p];\nld.global.u32 %r, [%rd];\nst.global.u32 [%rd], %r;\nret;\n}\n"
    ".visible .entry trap()\n{\ntrap;\nret;\n}\n"
    /* until *p is not 0 */
    ".visible .entry wait(.param .u64 p)\n{\n.reg .pred %p; .reg .b32 %r; .reg .b64 "
    "%rd;\nld.param.u64 %rd, [p];\n"
    "L: ld.volatile.global.u32 %r, [%rd];\nsetp.eq.u32 %p, %r, 0;\n@%p bra L;\nret;\n}\n";

/* A soft GPU like the one the mock driver plays. */
static const struct ws_gpu_spec soft_spec = {
    .name = "suite",
    .product = "Suite",
    MOCK_GPU_NUMBERS,
};

bool suite_target_parse(int argc, char **argv)
{
    if (argc < 2 || argc > 4)
        return false;
    suite_target.cuda = !strcmp(argv[1], "cuda") || !strcmp(argv[1], "cuda-tickets") ||
                        !strcmp(argv[1], "cuda-unfenced");
    suite_target.worker =
        !strncmp(argv[1], "worker", 6) &&
        (!argv[1][6] || !strcmp(argv[1] + 6, "-tickets") || !strcmp(argv[1] + 6, "-unfenced"));
    suite_target.cuda |= suite_target.worker;
    suite_target.options.unfenced =
        !strcmp(argv[1], "cuda-unfenced") || !strcmp(argv[1], "worker-unfenced");
    suite_target.options.preemptible = strstr(argv[1], "-tickets") != NULL;
    if (argc > 2)
        suite_target.options.driver_library = argv[2];
    if (argc > 3)
        suite_target.options.nvml_library = argv[3];
    suite_target.mock = argc > 2 && strstr(argv[2], "tests/mock/");
    if (suite_target.worker) {
        suite_target.options.host_va = SUITE_HOST_VA;
        suite_target.options.host_bytes = SUITE_HOST_BYTES;
    }
    return suite_target.cuda || (!strcmp(argv[1], "soft") && argc == 2);
}

static int open_nth(int nth, struct ws_device **ret, struct ws_diags *diags)
{
    struct ws_device_options o = {.n_workers = 2, .local_bytes_per_thread_max = 512 << 10};
    if (suite_target.worker)
        return ws_device_open_worker(ret, suite_target.ordinal + nth, (uint32_t)nth,
                                     &suite_target.options, diags);
    return suite_target.cuda ? ws_device_open_cuda(ret, suite_target.ordinal + nth, (uint32_t)nth,
                                                   &suite_target.options, diags)
                             : ws_device_open_soft(ret, &soft_spec, (uint32_t)nth, &o, diags);
}

int suite_open(struct ws_device **ret, struct ws_diags *diags)
{
    return open_nth(0, ret, diags);
}

int suite_open_second(struct ws_device **ret, struct ws_diags *diags)
{
    return open_nth(1, ret, diags);
}

void *suite_mock(const char *name)
{
    void *lib = suite_target.mock ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *p = lib ? dlsym(lib, name) : NULL;
    if (lib)
        dlclose(lib);
    return p;
}

static int client_new(struct suite *s, int c)
{
    const struct ws_dmodule_info *info = ws_dmodule_info(s->module);
    uint64_t block = SUITE_VA(c) + 65536, heap_bytes;
    s->next_va[c] = SUITE_VA(c) + (UINT64_C(4) << 20);
    for (uint32_t v = 0; v < info->n_vars && v < 16; v++)
        s->vars[c][v] = info->vars[v].space == WS_SP_SHARED ? 0 : block + v * 512;
    int r = ws_space_new(&s->space[c]);
    if (!r && s->device->ops->map)
        r = ws_space_place_heap(s->space[c], SUITE_VA(c) + (UINT64_C(1) << 32), &heap_bytes);
    if (!r)
        r = ws_device_mem_alloc(s->device, s->space[c], block, 8192);
    if (!r)
        r = ws_device_instance_new(s->device, s->module, s->space[c], s->vars[c], &s->instance[c]);
    return r;
}

int suite_begin(struct suite *s)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    *s = (struct suite){0};
    int r = suite_open(&s->device, &diags);
    if (!r)
        r = ws_ptx_parse(&s->ptx, suite_ptx, strlen(suite_ptx), "suite.ptx", &diags);
    if (!r)
        r = ws_device_module_load(s->device, s->ptx, &s->module, &diags);
    for (int c = 0; !r && c < SUITE_CLIENTS; c++)
        r = client_new(s, c);
    char *text = ws_diags_text(&diags);
    if (text && *text)
        print_message("%s", text);
    if (r)
        print_message("the device's tests can't begin: %d\n", r);
    free(text);
    ws_diags_deinit(&diags);
    if (r)
        suite_end(s);
    return r;
}

void suite_end(struct suite *s)
{
    for (int c = 0; c < SUITE_CLIENTS; c++) {
        if (s->instance[c])
            ws_device_instance_free(s->device, s->instance[c]);
        ws_space_free(s->space[c]);
    }
    if (s->module)
        ws_device_module_unload(s->device, s->module);
    ws_device_close(s->device);
    ws_ptx_module_free(s->ptx);
    *s = (struct suite){0};
}

uint64_t suite_alloc(struct suite *s, int c, uint64_t bytes)
{
    uint64_t va = s->next_va[c];
    if (bytes >= 1 << 20)
        va = WS_ALIGN_UP(va, UINT64_C(2) << 20);
    assert_int_equal(ws_device_mem_alloc(s->device, s->space[c], va, WS_ALIGN_UP(bytes, 512u)), 0);
    s->next_va[c] = WS_ALIGN_UP(va + bytes, UINT64_C(512)) + 65536;
    return va;
}

static void on_done(struct ws_op *op)
{
    struct suite_op *o = op->owner;
    pthread_mutex_lock(&lock);
    o->done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void suite_submit(struct suite *s, struct suite_op *o)
{
    o->done = false;
    o->op.owner = o;
    if (!o->op.done)
        o->op.done = on_done;
    if (o->op.kind == WS_OPK_LAUNCH)
        o->op.launch.params = o->params;
    ws_device_submit(s->device, &o->op);
}

int suite_preempt(struct suite *s, struct suite_op *o)
{
    pthread_mutex_lock(&lock); /* done can't be called meanwhile */
    int r = o->done ? 1 : ws_device_preempt(s->device, &o->op);
    pthread_mutex_unlock(&lock);
    return r;
}

void suite_wait(struct suite_op *o)
{
    struct timespec until;
    int r = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&lock);
    while (!o->done && !r)
        r = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
    if (r) {
        fprintf(stderr, "an operation did not end within 60 s\n");
        _exit(1);
    }
}

void suite_run(struct suite *s, struct suite_op *o, enum ws_dev_error e)
{
    suite_submit(s, o);
    suite_wait(o);
    if (o->op.error != e)
        fail_msg("ended with %s (%s), not %s", ws_dev_error_name(o->op.error), o->op.text,
                 ws_dev_error_name(e));
    if (e == WS_DEV_OK)
        assert_int_equal(o->op.text[0], 0);
    else
        assert_int_not_equal(o->op.text[0], 0);
    assert_true(o->op.end_ns >= o->op.start_ns);
}

struct suite_op suite_launch(struct suite *s, int c, enum suite_kernel k, uint32_t blocks,
                             uint32_t threads, uint64_t p0, uint64_t p1, uint64_t p2, uint64_t p3)
{
    return (struct suite_op){.op = {.kind = WS_OPK_LAUNCH,
                                    .space = s->space[c],
                                    .launch = {.instance = s->instance[c],
                                               .kernel = k,
                                               .grid = {blocks, 1, 1},
                                               .block = {threads, 1, 1},
                                               .param_bytes = 64}},
                             .params = {p0, p1, p2, p3}};
}

void suite_put(struct suite *s, int c, uint64_t va, const void *from, uint64_t bytes)
{
    struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                .space = s->space[c],
                                .copy = {.dst_va = va, .src_host = from, .bytes = bytes}}};
    suite_run(s, &o, WS_DEV_OK);
}

void suite_get(struct suite *s, int c, void *to, uint64_t va, uint64_t bytes)
{
    struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                .space = s->space[c],
                                .copy = {.src_va = va, .dst_host = to, .bytes = bytes}}};
    suite_run(s, &o, WS_DEV_OK);
}
