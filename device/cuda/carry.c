// SPDX-License-Identifier: Apache-2.0
/* Small copies between pinned memory and the GPU's, by a kernel. A copy of the driver's would wait
 * in a copy engine's queue, behind those of all clients, which may take many milliseconds. What a
 * launch needs before it begins, and what is asked of it when it was stopped, must not wait for
 * them. A kernel waits for a free SM instead, as the launch itself does. The caller notes the
 * results (ws_cuda_result()). */
#include "device/cuda/cuda_private.h"

enum { THREADS = 128 };

/* Thread t copies the words t, t + THREADS and so on. */
static const char carry_ptx[] =
    ".version 6.3\n.target sm_50\n.address_size 64\n"
    ".visible .entry carry(.param .u64 to, .param .u64 from, .param .u32 n)\n{\n"
    ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u64 %rd2, [from];\nld.param.u32 %r1, [n];\n"
    "cvta.to.global.u64 %rd1, %rd1;\ncvta.to.global.u64 %rd2, %rd2;\nmov.u32 %r2, %tid.x;\n"
    "L:\nsetp.ge.u32 %p, %r2, %r1;\n@%p bra END;\nmul.wide.u32 %rd3, %r2, 4;\n"
    "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\nld.volatile.global.u32 %r3, [%rd5];\n"
    "st.volatile.global.u32 [%rd4], %r3;\nadd.u32 %r2, %r2, 128;\nbra L;\nEND:\nret;\n}\n";
_Static_assert(THREADS == 128, "as in the code");

ws_cu_result ws_cuda_carry_open(struct ws_cuda *d, int priority)
{
    struct ws_cuda_carrier *c = &d->carrier;
    ws_cu_result r = d->cu.cuModuleLoadDataEx(&c->module, carry_ptx, 0, NULL, NULL);
    if (r == WS_CU_SUCCESS)
        r = d->cu.cuModuleGetFunction(&c->function, c->module, "carry");
    if (r == WS_CU_SUCCESS)
        r = d->cu.cuStreamCreateWithPriority(&c->stream, WS_CU_STREAM_NON_BLOCKING, priority);
    if (r == WS_CU_SUCCESS)
        r = d->cu.cuEventCreate(&c->event, WS_CU_EVENT_DEFAULT);
    return r;
}

void ws_cuda_carry_close(struct ws_cuda *d)
{
    struct ws_cuda_carrier *c = &d->carrier;
    if (c->stream) {
        (void)d->cu.cuStreamSynchronize(c->stream);
        (void)d->cu.cuStreamDestroy(c->stream);
    }
    if (c->event)
        (void)d->cu.cuEventDestroy(c->event);
    if (c->module)
        (void)d->cu.cuModuleUnload(c->module);
}

ws_cu_result ws_cuda_carry(struct ws_cuda *d, ws_cu_stream s, uint64_t to, uint64_t from,
                           uint64_t bytes)
{
    struct {
        uint64_t to, from;
        uint32_t n;
    } params = {to, from, (uint32_t)(bytes / 4)};
    size_t size = offsetof(typeof(params), n) + sizeof(params.n);
    void *extra[] = {WS_CU_LAUNCH_PARAM_BUFFER_POINTER, &params, WS_CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &size, WS_CU_LAUNCH_PARAM_END};
    struct ws_cu_launch_config config = {.grid = {1, 1, 1}, .block = {THREADS, 1, 1}, .stream = s};
    return d->cu.cuLaunchKernelEx(&config, d->carrier.function, NULL, extra);
}

ws_cu_result ws_cuda_carry_first(struct ws_cuda *d, ws_cu_stream s, uint64_t to, uint64_t from,
                                 uint64_t bytes)
{
    struct ws_cuda_carrier *c = &d->carrier;
    ws_cu_result r = ws_cuda_carry(d, c->stream, to, from, bytes);
    if (r == WS_CU_SUCCESS)
        r = d->cu.cuEventRecord(c->event, c->stream);
    return r == WS_CU_SUCCESS ? d->cu.cuStreamWaitEvent(s, c->event, 0) : r;
}
