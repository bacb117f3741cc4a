// SPDX-License-Identifier: Apache-2.0
/* What every device asks of an operation before it starts.
 *
 * Copies and fills: the sizes fit an address space, rows don't overlap, all of the memory is
 * mapped, and what is written is writable. A range may cross mappings that adjoin. Of very many
 * mappings, or of rows with gaps between them, the first WS_SPACE_COVERS_MOST are looked at and the
 * last one, for the caller has other clients: the device finds what is wrong between them when it
 * gets there. Launches: the rules of base/launch_check.h, and that module, parameters and SM set
 * fit. */
#include "device/check.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/launch_check.h"
#include "device/space.h"

void ws_check_fail(struct ws_op *op, enum ws_dev_error e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(op->text, sizeof(op->text), fmt, ap);
    va_end(ap);
    op->error = e;
}

/* A range of addresses that an operation names. */
struct range {
    const char *what;
    uint64_t va, bytes;
    bool write;
};

/* Whether @at, in the range, is mapped, and writable if asked. *ret_bytes: how many bytes of
 * the mapping there are from there on. */
static bool address_ok(struct ws_op *op, const struct range *r, uint64_t at, uint64_t *ret_bytes,
                       struct ws_device **ret_device)
{
    uint8_t *host;
    uint32_t flags;
    if (!ws_space_resolve(op->space, at, &host, ret_bytes, &flags, ret_device)) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "%s: address 0x%llx is not mapped (range 0x%llx, %llu bytes)", r->what,
                      (unsigned long long)at, (unsigned long long)r->va,
                      (unsigned long long)r->bytes);
        return false;
    }
    if (!r->write || !(flags & WS_MAP_READONLY))
        return true;
    ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s: address 0x%llx is read-only", r->what,
                  (unsigned long long)at);
    return false;
}

static bool range_ok(struct ws_op *op, const struct range *r, struct ws_device **ret_device)
{
    uint64_t at = r->va, left = r->bytes, n;
    struct ws_device *device;
    for (unsigned k = 0; left && k < WS_SPACE_COVERS_MOST; k++) {
        if (!address_ok(op, r, at, &n, k ? &device : ret_device))
            return false;
        n = WS_MIN(n, left);
        at += n;
        left -= n;
    }
    return !left || address_ok(op, r, at + left - 1, &n, &device);
}

/* One side of an operation: rows in slices. */
struct box {
    uint64_t va, width, height, depth;
    struct ws_pitches pitch;
};

/* Bytes from the first to behind the last. Return: false if rows or slices overlap, or if it does
 * not fit the address space. */
static bool box_reach(const struct box *b, uint64_t *ret)
{
    uint64_t rows = 0, slices = 0, end;
    if (b->height > 1 &&
        (b->pitch.row < b->width || __builtin_mul_overflow(b->pitch.row, b->height - 1, &rows)))
        return false;
    if (__builtin_add_overflow(rows, b->width, &rows))
        return false;
    if (b->depth > 1 &&
        (b->pitch.slice < rows || __builtin_mul_overflow(b->pitch.slice, b->depth - 1, &slices)))
        return false;
    return !__builtin_add_overflow(rows, slices, ret) && !__builtin_add_overflow(b->va, *ret, &end);
}

static bool box_bytes(struct ws_op *op, const char *what, const struct box *b, uint64_t *ret)
{
    if (!__builtin_mul_overflow(b->width, b->height, ret) &&
        !__builtin_mul_overflow(*ret, b->depth, ret))
        return true;
    ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s: more bytes than an address space has", what);
    return false;
}

/* Gaps between rows may be unmapped, but rarely are: the whole is tried first. */
static bool box_mapped(struct ws_op *op, const char *what, const struct box *b, bool write,
                       struct ws_device **ret_device)
{
    uint64_t reach;
    if (!box_reach(b, &reach)) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "%s: %llu x %llu rows of %llu bytes do not fit a pitch of %llu and slices of "
                      "%llu, or the address space",
                      what, (unsigned long long)b->depth, (unsigned long long)b->height,
                      (unsigned long long)b->width, (unsigned long long)b->pitch.row,
                      (unsigned long long)b->pitch.slice);
        return false;
    }
    struct range r = {what, b->va, reach, write};
    if (range_ok(op, &r, ret_device))
        return true;
    if (b->height == 1 && b->depth == 1)
        return false;
    op->error = WS_DEV_OK;
    op->text[0] = 0;
    unsigned n_rows = 0;
    r.bytes = b->width;
    for (uint64_t z = 0; z < b->depth && n_rows < WS_SPACE_COVERS_MOST; z++)
        for (uint64_t y = 0; y < b->height && n_rows < WS_SPACE_COVERS_MOST; y++, n_rows++) {
            r.va = b->va + z * b->pitch.slice + y * b->pitch.row;
            if (!range_ok(op, &r, ret_device))
                return false;
        }
    struct ws_device *device;
    r.va = b->va + reach - b->width;
    return range_ok(op, &r, &device);
}

bool ws_check_copy(struct ws_op *op, struct ws_device **ret_dst, struct ws_device **ret_src,
                   uint64_t *ret_bytes)
{
    struct box dst = {.va = op->copy.dst_va,
                      .width = op->copy.bytes,
                      .height = WS_MAX(op->copy.height, UINT64_C(1)),
                      .depth = WS_MAX(op->copy.depth, UINT64_C(1)),
                      .pitch = op->copy.dst},
               src = dst;
    *ret_dst = *ret_src = NULL;
    src.va = op->copy.src_va;
    src.pitch = op->copy.src;
    *ret_bytes = 0;
    if (!op->space && !(op->copy.dst_host && op->copy.src_host)) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "copy: no address space to find the memory in");
        return false;
    }
    if (!box_bytes(op, "copy", &dst, ret_bytes))
        return false;
    if (!*ret_bytes)
        return true;
    return (op->copy.dst_host || box_mapped(op, "copy to", &dst, true, ret_dst)) &&
           (op->copy.src_host || box_mapped(op, "copy from", &src, false, ret_src));
}

bool ws_check_fill(struct ws_op *op, uint64_t *ret_bytes)
{
    uint64_t unit = op->fill.value_bytes;
    struct box b = {.va = op->fill.va,
                    .width = op->fill.width_bytes,
                    .height = op->fill.height,
                    .depth = 1,
                    .pitch = {.row = op->fill.pitch_bytes}};
    struct ws_device *device;
    *ret_bytes = 0;
    if (!op->space) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "fill: no address space to find the memory in");
        return false;
    }
    if (unit != 1 && unit != 2 && unit != 4) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "fill: values of %llu bytes; 1, 2 or 4 is possible",
                      (unsigned long long)unit);
        return false;
    }
    if (!b.width || !b.height)
        return true;
    if (b.width % unit || b.va % unit || (b.height > 1 && b.pitch.row % unit)) {
        ws_check_fail(
            op, WS_DEV_E_INVALID_VALUE,
            "fill: address 0x%llx, width %llu and pitch %llu must suit values of %llu bytes",
            (unsigned long long)b.va, (unsigned long long)b.width, (unsigned long long)b.pitch.row,
            (unsigned long long)unit);
        return false;
    }
    return box_bytes(op, "fill", &b, ret_bytes) && box_mapped(op, "fill", &b, true, &device);
}

/* The SMs among numbers 64 * @word to 64 * @word + 63 that a GPU of @n_sms has. */
static uint64_t sms_of_word(uint32_t n_sms, uint32_t word)
{
    if (n_sms <= 64 * word)
        return 0;
    return n_sms >= 64 * (word + 1) ? UINT64_MAX : (UINT64_C(1) << (n_sms % 64)) - 1;
}

static bool sms_ok(const struct ws_gpu_spec *spec, const struct ws_sm_set *sms)
{
    uint32_t n = 0;
    for (uint32_t w = 0; sms->n && w < WS_ARRAY_SIZE(sms->bits); w++) {
        if (sms->bits[w] & ~sms_of_word(spec->n_sms, w))
            return false;
        n += (uint32_t)__builtin_popcountll(sms->bits[w]);
    }
    return n == sms->n;
}

static void fail_cluster(struct ws_op *op, const struct ws_gpu_spec *spec,
                         const struct ws_kernel_info *k)
{
    const uint32_t *g = op->launch.grid, *c = op->launch.cluster, *own = k->cluster;
    char compiled[64] = "";
    if (own[0])
        snprintf(compiled, sizeof(compiled), "; the kernel was compiled for %ux%ux%u", own[0],
                 own[1], own[2]);
    ws_check_fail(
        op, WS_DEV_E_INVALID_CLUSTER,
        "%s: clusters of %ux%ux%u blocks, of which a grid of %ux%ux%u must be made; up to "
        "%u blocks are possible on %s%s",
        k->name, c[0], c[1], c[2], g[0], g[1], g[2], ws_launch_max_cluster(spec->cc_major, true),
        spec->name, compiled);
}

static void check_shape(struct ws_op *op, const struct ws_gpu_spec *spec,
                        const struct ws_kernel_info *k)
{
    const uint32_t *g = op->launch.grid, *b = op->launch.block, *c = op->launch.cluster;
    struct ws_launch_shape l = {
        .grid = {g[0], g[1], g[2]},
        .block = {b[0], b[1], b[2]},
        .static_shared_bytes = k->static_shared_bytes,
        .dynamic_shared_bytes = op->launch.shared_bytes,
        .max_threads_per_block = spec->max_threads_per_block,
        .max_shared_bytes = spec->shared_bytes_per_block_optin,
        .kernel_max_threads = k->max_threads_per_block,
        .cluster = {c[0], c[1], c[2]},
        .kernel_cluster = {k->cluster[0], k->cluster[1], k->cluster[2]},
        .kernel_must_cluster = k->must_cluster,
        .kernel_max_cluster = k->max_cluster,
        .max_cluster = ws_launch_max_cluster(spec->cc_major, true),
    };
    switch (ws_launch_check(&l)) {
    case WS_LAUNCH_VALID:
        break;
    case WS_LAUNCH_BAD_GRID:
        ws_check_fail(op, WS_DEV_E_INVALID_CONFIGURATION,
                      "%s: grid %ux%ux%u; 1 to %d x %d x %d is possible", k->name, g[0], g[1], g[2],
                      WS_GRID_X_MAX, WS_GRID_YZ_MAX, WS_GRID_YZ_MAX);
        break;
    case WS_LAUNCH_BAD_BLOCK:
        ws_check_fail(op, WS_DEV_E_INVALID_CONFIGURATION,
                      "%s: block %ux%ux%u; up to %dx%dx%d and %u threads is possible", k->name,
                      b[0], b[1], b[2], WS_BLOCK_XY_MAX, WS_BLOCK_XY_MAX, WS_BLOCK_Z_MAX,
                      spec->max_threads_per_block);
        break;
    case WS_LAUNCH_TOO_MANY_THREADS:
        ws_check_fail(op, WS_DEV_E_RESOURCES,
                      "%s: %u threads per block, the kernel was compiled for at most %u", k->name,
                      (unsigned)ws_launch_threads(&l), k->max_threads_per_block);
        break;
    case WS_LAUNCH_TOO_MUCH_SHARED:
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "%s: %llu bytes of shared memory per block (%u static), %u is possible",
                      k->name, (unsigned long long)ws_launch_shared_bytes(&l),
                      k->static_shared_bytes, spec->shared_bytes_per_block_optin);
        break;
    case WS_LAUNCH_BAD_CLUSTER:
        fail_cluster(op, spec, k);
        break;
    }
}

bool ws_check_launch(struct ws_op *op, const struct ws_gpu_spec *spec,
                     const struct ws_dmodule_info *info, const struct ws_space *space)
{
    if (!info || op->launch.kernel >= info->n_kernels) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "launch: no such kernel");
        return false;
    }
    const struct ws_kernel_info *k = &info->kernels[op->launch.kernel];
    if (k->unsupported) {
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s can't run: %s", k->name, k->unsupported);
        return false;
    }
    ws_op_take_cluster(op, k);
    check_shape(op, spec, k);
    if (op->error)
        return false;
    if (op->launch.param_bytes < k->param_bytes || (k->param_bytes && !op->launch.params))
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s: %u bytes of parameters, the kernel takes %u",
                      k->name, op->launch.param_bytes, k->param_bytes);
    else if (!op->space || ws_op_code_space(op) != space)
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s: the module belongs to another address space",
                      k->name);
    else if (!sms_ok(spec, &op->launch.sms))
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s: the set of SMs does not fit a GPU of %u SMs",
                      k->name, spec->n_sms);
    return !op->error;
}
