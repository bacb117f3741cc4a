// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/session_commands.h"

#include <sha256.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

enum { N_KERNELS = 6 };
#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define KERNEL(name, body)                                                                         \
    ".visible .entry " name "(.param .u64 p, .param .u64 n)\n{\n.reg .pred %p<3>;\n"               \
    ".reg .b32 %r<8>;\n.reg .b64 %d<6>;\nld.param.u64 %d1, [p];\nld.param.u64 %d2, [n];\n"         \
    "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d3, %d1, %d3;\n" body "ret;\n}\n"
const char *const session_images[] = {
    HEAD ".global .u32 g[256];\n" KERNEL("store", "st.global.u32 [%d3], %r1;\n") /* -- */
    KERNEL("empty", "")                                                          /* -- */
    KERNEL("spin", "loop:\nsub.u64 %d2, %d2, 1;\nsetp.gt.s64 %p1, %d2, 0;\n"
                   "@%p1 bra loop;\nst.global.u32 [%d1], %r1;\n") /* -- */
    KERNEL("trapping", "trap;\n")                                 /* -- */
    KERNEL("sum", ".shared .u32 s[32];\nmov.u32 %r2, %tid.x;\nand.b32 %r2, %r2, 31;\n"
                  "mov.u32 %r3, s;\nmad.lo.u32 %r3, %r2, 4, %r3;\nst.shared.u32 [%r3], %r1;\n"
                  "bar.sync 0;\nld.shared.u32 %r4, [%r3];\nmov.u64 %d4, g;\n"
                  "atom.global.add.u32 %r5, [%d4+8], %r4;\n") /* -- */
    KERNEL("read", "ld.global.u32 %r2, [%d1];\nst.global.u32 [%d1+4], %r2;\n"),
    HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
         ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
         ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2\n"
         "(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"
         ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 t);\n"
         ".global .align 1 .b8 f[4] = {104, 105, 10, 0};\n" /* -- */
    KERNEL("say", "{.param .b64 a;\n.param .b64 b;\n.param .b32 c;\nmov.u64 %d4, f;\n"
                  "cvta.global.u64 %d4, %d4;\nst.param.b64 [a], %d4;\nst.param.b64 [b], 0;\n"
                  "call.uni (c), vprintf, (a, b);\n}\n") /* -- */
    KERNEL("take", "{.param .b64 a;\n.param .b64 b;\nand.b64 %d4, %d2, 1023;\n"
                   "st.param.b64 [a], %d4;\ncall.uni (b), malloc, (a);\n}\n") /* -- */
    /* starts itself n times, one after the other */
    KERNEL("again", "setp.eq.u64 %p1, %d2, 0;\n@%p1 ret;\nsub.u64 %d2, %d2, 1;\n"
                    "{.param .b64 f;\nmov.u64 %d4, again;\nst.param.b64 [f], %d4;\n"
                    ".param .align 4 .b8 g[12];\nst.param.b32 [g+0], 1;\nst.param.b32 [g+4], 1;\n"
                    "st.param.b32 [g+8], 1;\n.param .b32 s;\nst.param.b32 [s], 0;\n"
                    ".param .b64 r;\n"
                    "call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, g, s);\n"
                    "ld.param.b64 %d4, [r];\nst.b64 [%d4], %d1;\nst.b64 [%d4+8], %d2;\n"
                    ".param .b64 p;\nst.param.b64 [p], %d4;\n.param .b64 t;\n"
                    "st.param.b64 [t], 3;\n.param .b32 e;\n"
                    "call.uni (e), __cudaCDP2LaunchDeviceV2, (p, t);\n}\n"),
    HEAD ".visible .entry broken(\n",
};
_Static_assert(WS_ARRAY_SIZE(session_images) == SESSION_IMAGES, "one number");
static uint8_t hashes[SESSION_IMAGES][WS_SHA256_BYTES];

void session_commands_init(void)
{
    for (unsigned i = 0; i < SESSION_IMAGES; i++) {
        SHA2_CTX sha;
        SHA256Init(&sha);
        SHA256Update(&sha, (const uint8_t *)session_images[i], strlen(session_images[i]));
        SHA256Final(hashes[i], &sha);
    }
}

static Ws__Command *add(struct session_batch *b, Ws__Command__CCase which)
{
    Ws__Command *c = &b->commands[b->n];
    ws__command__init(c);
    c->c_case = which;
    b->list[b->n++] = c;
    return c;
}

/* Adds a command whose content is a message. Evaluates to that message. */
#define ADD(b, WHICH, INIT, field, member)                                                         \
    ({                                                                                             \
        __typeof__((b)->of[0].member) *of_ = &(b)->of[(b)->n].member;                              \
        ws__##INIT##__init(of_);                                                                   \
        add((b), WS__COMMAND__C_##WHICH)->field = of_;                                             \
        of_;                                                                                       \
    })

static uint64_t stream_id(struct bytes *in)
{
    uint8_t n = take8(in);
    return n & 0x80 ? n : n & 4 ? WS_STREAM_FIRST + (n & 3) : WS_STREAM_DEFAULT_0 + (n & 1);
}

static uint64_t small_id(struct bytes *in) /* of an event, an object, a module, a function */
{
    return take8(in) & 3;
}

static uint32_t gpu_id(struct bytes *in)
{
    uint8_t n = take8(in);
    return n & 0x80 ? n : n & 1;
}

static uint64_t address(struct session_told *w, struct bytes *in)
{
    uint8_t n = take8(in);
    uint64_t base = n & 0x40 ? 0x10000 : w->addresses[n % SESSION_ADDRESSES];
    return n & 0x80 ? base + take_size(in) : base;
}

static uint64_t function_id(struct bytes *in)
{
    uint8_t n = take8(in);
    return (uint64_t)(n >> 6 & 3) << WS_FUNCTION_INDEX_BITS | n % N_KERNELS;
}

void session_load(struct session_batch *b, uint64_t id, uint32_t gpu, unsigned image)
{
    Ws__ModuleLoad *m = ADD(b, MODULE_LOAD, module_load, module_load, load);
    m->module = id;
    m->device = gpu;
    m->sha256 = (ProtobufCBinaryData){WS_SHA256_BYTES, hashes[image]};
    m->image_bytes = strlen(session_images[image]);
    m->name = (char *)"m.ptx";
}

void session_alloc(struct session_batch *b, uint32_t gpu, uint64_t bytes)
{
    Ws__MemAlloc *m = ADD(b, MEM_ALLOC, mem_alloc, mem_alloc, alloc);
    m->device = gpu;
    m->bytes = bytes;
}

void session_upload(struct session_batch *b, unsigned image, uint64_t offset, size_t n)
{
    Ws__ModuleImage *m = ADD(b, MODULE_IMAGE, module_image, module_image, image);
    m->sha256 = (ProtobufCBinaryData){WS_SHA256_BYTES, hashes[image]};
    m->image_bytes = strlen(session_images[image]);
    m->offset = offset;
    m->data = (ProtobufCBinaryData){WS_MIN(n, strlen(session_images[image])),
                                    (uint8_t *)session_images[image]};
}

static void launch(struct session_told *w, struct session_batch *b, struct bytes *in)
{
    static const uint64_t numbers[] = {0, 1, 100, 20000, 1000000};
    uint64_t params[2];
    Ws__Launch *m = ADD(b, LAUNCH, launch, launch, launch);
    m->stream = stream_id(in);
    m->function = function_id(in);
    uint8_t shape = take8(in);
    m->grid_x = 128u >> (shape & 7);
    m->grid_y = shape & 0x80 ? (uint32_t)take_size(in) : 1;
    m->grid_z = m->block_y = m->block_z = 1;
    m->block_x = shape & 0x40 ? (uint32_t)take_size(in) : 1u << (shape >> 3 & 7);
    uint8_t how = take8(in);
    m->flags = how & 1;
    m->shared_bytes = how & 2 ? (uint32_t)take_size(in) : 0;
    params[0] = address(w, in);
    params[1] = numbers[(how >> 2) % WS_ARRAY_SIZE(numbers)];
    memcpy(b->params[b->n - 1], params, sizeof(params));
    m->params = (ProtobufCBinaryData){how & 0x80 ? 7 : sizeof(params), b->params[b->n - 1]};
}

static void copy(struct session_told *w, struct session_batch *b, struct bytes *in, bool sync)
{
    Ws__Copy *m = ADD(b, COPY, copy, copy, copy);
    if (sync)
        b->commands[b->n - 1].c_case = WS__COMMAND__C_COPY_SYNC;
    m->stream = stream_id(in);
    m->dst = address(w, in);
    m->src = address(w, in);
    m->bytes = take_size(in) & 0xfffff;
    uint8_t how = take8(in);
    m->bulk = how % 6;
    m->segment = how >> 4 & 3;
    m->segment_offset = how & 0x80 ? take_size(in) : 0;
    m->frame = 1;
    if (how & 0x40) {
        m->height = take_size(in) & 0xfff;
        m->depth = take8(in);
        m->dst_pitch = m->src_pitch = take_size(in) & 0xffff;
        m->dst_slice = m->src_slice = take_size(in) & 0xfffff;
    }
    if (m->bulk == WS__COPY__BULK__INLINE) {
        const uint8_t *data;
        size_t n = take_bytes(in, m->bytes & 63, &data);
        m->data = (ProtobufCBinaryData){n, (uint8_t *)data};
    }
}

static void sync_or_query(struct session_batch *b, struct bytes *in, bool sync)
{
    uint8_t what = take8(in) % 3;
    if (!sync) {
        Ws__Query *m = ADD(b, QUERY, query, query, query);
        m->what_case = what & 1 ? WS__QUERY__WHAT_EVENT : WS__QUERY__WHAT_STREAM;
        m->stream = what & 1 ? small_id(in) : stream_id(in);
        return;
    }
    Ws__Sync *m = ADD(b, SYNC, sync, sync, sync);
    m->what_case = (Ws__Sync__WhatCase[]){WS__SYNC__WHAT_DEVICE, WS__SYNC__WHAT_STREAM,
                                          WS__SYNC__WHAT_EVENT}[what];
    if (what == 0)
        m->device = gpu_id(in);
    else
        m->stream = what == 1 ? stream_id(in) : small_id(in);
}

static void memory(struct session_told *w, struct session_batch *b, struct bytes *in)
{
    switch (take8(in) % 12) {
    case 0: {
        uint32_t gpu = gpu_id(in);
        session_alloc(b, gpu, take_size(in));
        break;
    }
    case 1:
        ADD(b, MEM_FREE, mem_free, mem_free, free)->address = address(w, in);
        break;
    case 2:
        add(b, WS__COMMAND__C_MEM_FREE_ASYNC)->mem_free_async = address(w, in);
        break;
    case 3: {
        Ws__MemCreate *m = ADD(b, MEM_CREATE, mem_create, mem_create, create);
        m->object = small_id(in);
        m->device = gpu_id(in);
        m->bytes = WS_MEM_GRANULE_BYTES * (take8(in) & 7);
        break;
    }
    case 4:
        add(b, WS__COMMAND__C_MEM_RELEASE)->mem_release = small_id(in);
        break;
    case 5: {
        Ws__VaReserve *m = ADD(b, VA_RESERVE, va_reserve, va_reserve, reserve);
        m->bytes = WS_MEM_GRANULE_BYTES * (take8(in) & 15);
        m->alignment = take8(in) & 1 ? take_size(in) : 0;
        break;
    }
    case 6:
        add(b, WS__COMMAND__C_VA_FREE)->va_free = address(w, in);
        break;
    case 7: {
        Ws__MemMap *m = ADD(b, MEM_MAP, mem_map, mem_map, mem_map);
        m->address = address(w, in);
        m->bytes = WS_MEM_GRANULE_BYTES * (take8(in) & 7);
        m->object = small_id(in);
        m->offset = WS_MEM_GRANULE_BYTES * (take8(in) & 3);
        break;
    }
    case 8: {
        Ws__MemUnmap *m = ADD(b, MEM_UNMAP, mem_unmap, mem_unmap, unmap);
        m->address = address(w, in);
        m->bytes = WS_MEM_GRANULE_BYTES * (take8(in) & 7);
        break;
    }
    case 9: {
        Ws__MemAccess *m = ADD(b, MEM_ACCESS, mem_access, mem_access, access);
        m->address = address(w, in);
        m->bytes = WS_MEM_GRANULE_BYTES * (take8(in) & 7);
        m->device = gpu_id(in);
        m->read = m->write = take8(in) & 1;
        break;
    }
    case 10: {
        Ws__Share *m = ADD(b, SHARE, share, share, share);
        m->what = take8(in) & 3;
        m->address = address(w, in);
        m->event = small_id(in);
        m->handle = (ProtobufCBinaryData){WS_SHARE_BYTES, w->handle};
        break;
    }
    default: {
        Ws__PeerAccess *m = ADD(b, PEER_ACCESS, peer_access, peer_access, peer);
        m->device = gpu_id(in);
        m->peer = gpu_id(in);
        m->on = take8(in) & 1;
    }
    }
}

static void fill(struct session_told *w, struct session_batch *b, struct bytes *in)
{
    Ws__Fill *m = ADD(b, FILL, fill, fill, fill);
    m->stream = stream_id(in);
    m->dst = address(w, in);
    m->value = take8(in);
    m->value_bytes = 1u << (take8(in) & 3);
    m->width_bytes = take_size(in) & 0xfffff;
    m->height = take8(in);
    m->pitch_bytes = take_size(in) & 0xfffff;
}

static void module(struct session_batch *b, struct bytes *in)
{
    uint8_t what = take8(in);
    unsigned image = what / 8 % SESSION_IMAGES;
    switch (what & 7) {
    case 0:
    case 1:
    case 2:
        session_load(b, small_id(in), gpu_id(in), image);
        break;
    case 3:
        session_upload(b, image, 0, strlen(session_images[image]));
        break;
    case 4:
        session_upload(b, image, take_size(in), take8(in));
        break;
    case 5: {
        Ws__ModulePlace *m = ADD(b, MODULE_PLACE, module_place, module_place, place);
        m->module = small_id(in);
        m->keep = image & 1;
        break;
    }
    default:
        add(b, WS__COMMAND__C_MODULE_UNLOAD)->module_unload = small_id(in);
    }
}

static void other(struct session_told *w, struct session_batch *b, struct bytes *in)
{
    switch (take8(in) % 12) {
    case 0: {
        Ws__HostMap *m = ADD(b, HOST_MAP, host_map, host_map, map);
        m->segment = take8(in) & 3;
        m->address = 0x10000 + (take_size(in) & 0xffffff000);
        break;
    }
    case 1:
        add(b, WS__COMMAND__C_HOST_UNMAP)->host_unmap = small_id(in);
        break;
    case 2: {
        Ws__HostFunction *m = ADD(b, HOST_FUNCTION, host_function, host_function, host_function);
        m->stream = stream_id(in);
        m->function = small_id(in);
        break;
    }
    case 3:
        add(b, WS__COMMAND__C_HOST_FUNCTION_DONE)->host_function_done = small_id(in);
        break;
    case 4: {
        Ws__StreamValue *m = ADD(b, STREAM_VALUE, stream_value, stream_value, value);
        m->stream = stream_id(in);
        m->address = address(w, in);
        m->value = take8(in);
        m->bytes = take8(in) & 1 ? 4 : 8;
        m->compare = take8(in) & 3;
        m->write = take8(in) & 1;
        break;
    }
    case 5: {
        Ws__Limit *m = ADD(b, LIMIT, limit, limit, limit);
        m->device = gpu_id(in);
        m->what = take8(in) % 3;
        m->value = take_size(in);
        break;
    }
    case 6:
        add(b, WS__COMMAND__C_OUTPUT)->output = take8(in);
        break;
    case 7:
        ADD(b, JOB_BEGIN, job_begin, job_begin, job)->deadline_ns = take_size(in);
        break;
    case 8:
        add(b, WS__COMMAND__C_JOB_END)->job_end = true;
        break;
    case 9: {
        Ws__Occupancy *m = ADD(b, OCCUPANCY, occupancy, occupancy, occupancy);
        m->function = function_id(in);
        m->block_threads = (uint32_t)take_size(in);
        m->shared_bytes = (uint32_t)take_size(in);
        break;
    }
    case 10: {
        Ws__GateBegin *m = ADD(b, GATE_BEGIN, gate_begin, gate_begin, gate);
        m->device = gpu_id(in);
        m->serial = WS_GATE_SERIAL_FIRST + take8(in);
        break;
    }
    default:
        add(b, WS__COMMAND__C_MEM_INFO)->mem_info = gpu_id(in);
    }
}

void session_command(struct session_told *w, struct session_batch *b, uint8_t step,
                     struct bytes *in)
{
    switch (step % 16) {
    default:
        launch(w, b, in);
        break;
    case 4:
        copy(w, b, in, in->n & 1);
        break;
    case 5:
        fill(w, b, in);
        break;
    case 6:
        sync_or_query(b, in, take8(in) & 1);
        break;
    case 7:
        memory(w, b, in);
        break;
    case 8:
        module(b, in);
        break;
    case 9:
        other(w, b, in);
        break;
    case 10:
        ADD(b, RESET, reset, reset, reset)->device = gpu_id(in);
        break;
    case 11: {
        Ws__EventRecord *m = ADD(b, EVENT_RECORD, event_record, event_record, record);
        m->event = small_id(in);
        m->stream = stream_id(in);
        m->timing = m->event & 1;
        break;
    }
    case 12: {
        Ws__StreamWait *m = ADD(b, STREAM_WAIT, stream_wait, stream_wait, wait);
        m->stream = stream_id(in);
        m->event = small_id(in);
        break;
    }
    case 13: {
        Ws__StreamCreate *m = ADD(b, STREAM_CREATE, stream_create, stream_create, stream);
        m->stream = stream_id(in);
        m->device = gpu_id(in);
        m->non_blocking = m->stream & 1;
        break;
    }
    case 14:
        add(b, WS__COMMAND__C_STREAM_DESTROY)->stream_destroy = stream_id(in);
        break;
    case 15:
        add(b, WS__COMMAND__C_EVENT_DESTROY)->event_destroy = small_id(in);
    }
}

void session_repeat(struct session_batch *b, unsigned times)
{
    Ws__Command *last = b->list[b->n - 1];
    for (unsigned i = 0; i < times && b->n < SESSION_BATCH; i++)
        b->list[b->n++] = last;
}
