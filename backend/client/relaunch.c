// SPDX-License-Identifier: Apache-2.0
/* A launch that is carried out in parts has a page of control words, mapped into its client's
 * space above all that clients are given. A client can find and spoil it; it only loses count of
 * its own blocks. */
#include "backend/client/relaunch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/stream.h"
#include "base/alloc.h"

struct control {
    uint32_t ticket, flag;
    uint64_t fault[2];
    struct {
        uint32_t n, reserved;
        uint64_t range[2][2];
    } ranges;
};

struct ws_relaunch {
    struct ws_list node; /* server->relaunch.list */
    struct ws_client *client;
    struct ws_rewrite_choice choice;
    struct control *control;
    uint64_t va;
    uint32_t index, ctl_at, original;
    uint8_t *params;
    struct ws_ptx_ctl ctl;
    uint32_t done, given, grid[3], block[3];
    uint64_t start_ns, energy_uj, n_insns;
    struct ws_op_counts counts;
};

static uint32_t random_to(struct ws_server *s, uint32_t n) /* 1…n */
{
    s->relaunch.random =
        s->relaunch.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(s->relaunch.random >> 33) % n + 1;
}

static uint64_t address(const struct ws_relaunch *r, size_t field)
{
    return r->va + field;
}

/* The next part: which blocks, by how many. */
static void set_part(struct ws_command *j)
{
    struct ws_relaunch *r = j->relaunch;
    struct ws_server *s = j->client->server;
    uint32_t left = r->ctl.grid.total - r->done;
    r->control->flag = 0;
    bool cut = !r->choice.whole && random_to(s, 3) == 1;
    uint32_t sms = j->stream->context->gpu->device->spec.n_sms;
    r->given = cut ? random_to(s, left) : left;
    if (r->choice.kind == WS_REWRITE_SLICE)
        r->ctl.offset = r->done;
    if (r->choice.kind == WS_REWRITE_PERSISTENT) {
        uint32_t most = r->choice.whole ? sms : random_to(s, 2 * sms);
        r->given = WS_MIN(left, most);
    }
    memcpy(r->params + r->ctl_at, &r->ctl, sizeof(r->ctl));
    j->op.launch.grid[0] = r->given;
    j->op.launch.grid[1] = j->op.launch.grid[2] = 1;
}

static void set_fence(struct ws_relaunch *r, uint32_t at)
{
    /* On the software GPU the space itself is exact: here all that a client can have, its device
     * memory being the fast range. */
    struct ws_ptx_fence f = {.low = WS_VA_FIRST,
                             .limit = WS_VA_LAST - WS_VA_FIRST - WS_FENCE_SLACK,
                             .ranges = address(r, offsetof(struct control, ranges)),
                             .fault = address(r, offsetof(struct control, fault))};
    r->control->ranges.n = 2;
    r->control->ranges.range[0][1] = WS_VA_FIRST;
    r->control->ranges.range[1][0] = WS_VA_FIRST;
    r->control->ranges.range[1][1] = (UINT64_C(1) << 62) - WS_VA_FIRST;
    memcpy(r->params + at, &f, sizeof(f));
}

struct ws_relaunch *ws_relaunch_free(struct ws_relaunch *r)
{
    if (!r)
        return NULL;
    if (r->va && ws_space_unmap(r->client->memory.space, r->va) == 0)
        r->client->server->relaunch.pages[r->index / 64] &= ~(UINT64_C(1) << r->index % 64);
    ws_list_remove(&r->node);
    free(r->control);
    free(r->params);
    free(r);
    return NULL;
}

/* A page that no other running launch uses. Return: false: none is free, or no memory. */
static bool map_control(struct ws_relaunch *r)
{
    struct ws_server *s = r->client->server;
    uint32_t k = 0;
    while (k < WS_RELAUNCH_PAGES && s->relaunch.pages[k / 64] >> k % 64 & 1)
        k++;
    if (k == WS_RELAUNCH_PAGES ||
        ws_space_map_host_soon(r->client->memory.space, WS_OWN_VA + k * UINT64_C(4096),
                               sizeof(*r->control), r->control))
        return false;
    s->relaunch.pages[k / 64] |= UINT64_C(1) << k % 64;
    r->index = k;
    r->va = WS_OWN_VA + k * UINT64_C(4096);
    return true;
}

/* The launch is one of three members, which one is random; the others have no work. Return:
 * false: it can't be fused. */
static bool set_fused(struct ws_command *j, const struct ws_ptx_fused *fused, uint8_t *params)
{
    struct ws_ptx_fuse_work work[WS_FUSE_MAX] = {0};
    struct ws_ptx_fuse_work *w = &work[random_to(j->client->server, fused->n) - 1];
    struct ws_ptx_fuse_launch l;
    memcpy(w->grid, j->op.launch.grid, sizeof(w->grid));
    memcpy(w->block, j->op.launch.block, sizeof(w->block));
    w->params = j->op.launch.params ? (const void *)j->op.launch.params : "";
    if (ws_ptx_fuse_launch(fused, work, params, &l))
        return false;
    memcpy(j->op.launch.grid, l.grid, sizeof(l.grid));
    memcpy(j->op.launch.block, l.block, sizeof(l.block));
    return true;
}

/* Whether fewer blocks are resident than the program may count on. */
static bool crowds_out(const struct ws_command *j, const struct ws_rewritten *kernel)
{
    struct ws_device *d = j->stream->context->gpu->device;
    const uint32_t *b = j->op.launch.block;
    struct ws_occupancy own, made;
    uint32_t threads = b[0] * b[1] * b[2], shared = j->op.launch.shared_bytes;
    return ws_device_occupancy(d, kernel->module, j->op.launch.kernel, threads, shared, &own) ||
           ws_device_occupancy(d, kernel->module, (uint32_t)kernel->kernel, threads, shared,
                               &made) ||
           made.blocks_per_sm < own.blocks_per_sm;
}

void ws_relaunch_begin(struct ws_command *j, const struct ws_rewritten *kernel,
                       const struct ws_kernel_info *info)
{
    struct ws_server *s = j->client->server;
    const uint32_t *g = j->op.launch.grid, *b = j->op.launch.block;
    struct ws_ptx_shape grid;
    bool fits = (uint64_t)info->static_shared_bytes + j->op.launch.shared_bytes <=
                j->stream->context->gpu->device->spec.shared_bytes_per_block_optin;
    if (!ws_ptx_shape_set(&grid, g) || ws_op_is_together(&j->op) || !fits ||
        (kernel->flat && (b[1] > 1 || b[2] > 1)) || (kernel->waits && crowds_out(j, kernel)))
        return;
    struct ws_relaunch *r = ws_alloc(sizeof(*r));
    if (!r)
        return;
    ws_list_init(&r->node);
    r->client = j->client;
    r->choice = s->config->rewrite;
    memcpy(r->grid, g, sizeof(r->grid));
    memcpy(r->block, b, sizeof(r->block));
    r->control = ws_alloc(sizeof(*r->control));
    r->params = ws_alloc(info->param_bytes);
    if (!r->control || !r->params || !map_control(r)) {
        ws_relaunch_free(r);
        return;
    }
    if (r->choice.fuse && !set_fused(j, &kernel->fused, r->params)) {
        ws_relaunch_free(r);
        return;
    }
    if (!r->choice.fuse)
        memcpy(r->params, j->op.launch.params, kernel->own_bytes);
    if (r->choice.fence)
        set_fence(r, kernel->fence_at);
    r->start_ns = UINT64_MAX;
    r->original = j->op.launch.kernel;
    j->op.launch.kernel = (uint32_t)kernel->kernel;
    j->op.launch.params = r->params;
    j->op.launch.param_bytes = info->param_bytes;
    j->relaunch = r;
    ws_list_append(&s->relaunch.list, &r->node);
    s->relaunch.n++;
    s->relaunch.n_parts++;
    if (r->choice.kind == WS_REWRITE_NONE)
        return;
    r->ctl_at = kernel->ctl_at;
    r->ctl = (struct ws_ptx_ctl){.grid = grid,
                                 .ticket = address(r, offsetof(struct control, ticket)),
                                 .flag = address(r, offsetof(struct control, flag))};
    set_part(j);
}

static void add_counts(struct ws_op_counts *sum, const struct ws_op_counts *c)
{
    sum->n_warp_insns += c->n_warp_insns;
    sum->n_global_accesses += c->n_global_accesses;
    sum->n_sectors += c->n_sectors;
    sum->n_barriers += c->n_barriers;
}

bool ws_relaunch_next(struct ws_command *j)
{
    struct ws_relaunch *r = j->relaunch;
    struct ws_op *op = &j->op;
    r->start_ns = WS_MIN(r->start_ns, op->start_ns);
    r->energy_uj += op->energy_uj;
    r->n_insns += op->n_thread_insns;
    add_counts(&r->counts, &op->counts);
    if (r->choice.kind == WS_REWRITE_SLICE)
        r->done += r->given;
    else
        r->done = WS_MIN(__atomic_load_n(&r->control->ticket, __ATOMIC_ACQUIRE), r->ctl.grid.total);
    if (!op->error && r->control->fault[0]) {
        op->error = WS_DEV_E_ILLEGAL_ADDRESS;
        snprintf(op->text, sizeof(op->text),
                 "illegal address: kernel outside of its client's memory at %#llx",
                 (unsigned long long)r->control->fault[1]);
    }
    if (!op->error && !j->client->errors.sticky && r->choice.kind != WS_REWRITE_NONE &&
        r->done < r->ctl.grid.total) {
        j->client->server->relaunch.n_parts++;
        set_part(j);
        op->ready_ns = op->end_ns;
        return true;
    }
    op->start_ns = r->start_ns;
    op->energy_uj = r->energy_uj;
    op->n_thread_insns = r->n_insns;
    op->counts = r->counts;
    op->launch.kernel = r->original;
    memcpy(op->launch.grid, r->grid, sizeof(r->grid));
    memcpy(op->launch.block, r->block, sizeof(r->block));
    j->relaunch = ws_relaunch_free(r);
    return false;
}

void ws_relaunch_shake(struct ws_server *s)
{
    ws_list_for_each (n, &s->relaunch.list)
        if (!s->config->rewrite.whole && random_to(s, 4) == 1)
            __atomic_store_n(&ws_list_entry(n, struct ws_relaunch, node)->control->flag, 1,
                             __ATOMIC_RELEASE);
}
