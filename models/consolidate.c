// SPDX-License-Identifier: Apache-2.0
/* models/consolidate.c - the time of a mix of kernels.
 *
 * Where blocks go is dispatch.c's; what an SM takes for the blocks it got is mwp_cwp.c's. Here the
 * two meet: blocks per SM are counted, SMs with equal counts form a group, and each group is priced
 * once. Static dealing (rr, rr_restart) is counted without dealing a single block, so its cost
 * doesn't grow with the grid. */
#include "models/consolidate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

void ws_mix_deinit(struct ws_mix *m)
{
    ws_dispatch_deinit(&m->dispatch);
    free(m->cycles);
    free(m->alone_cycles);
    free(m->groups);
    free(m->group_of);
    free(m->counts);
    free(m->kernels);
    *m = WS_MIX_NULL;
}

static int reserve(struct ws_mix *m, uint32_t n_sms, uint32_t n_parts)
{
    if (m->cap_parts < n_parts) {
        free(m->cycles);
        free(m->alone_cycles);
        free(m->kernels);
        m->cap_parts = 0;
        m->cycles = ws_alloc_array(n_parts, sizeof(*m->cycles));
        m->alone_cycles = ws_alloc_array(n_parts, sizeof(*m->alone_cycles));
        m->kernels = ws_alloc_array(n_parts, sizeof(*m->kernels));
        if (!m->cycles || !m->alone_cycles || !m->kernels)
            return ws_raise(-ENOMEM);
        m->cap_parts = n_parts;
    }
    if (m->cap_sms < n_sms) {
        free(m->groups);
        free(m->group_of);
        m->cap_sms = 0;
        m->groups = ws_alloc_array(n_sms, sizeof(*m->groups));
        m->group_of = ws_alloc_array(n_sms, sizeof(*m->group_of));
        if (!m->groups || !m->group_of)
            return ws_raise(-ENOMEM);
        m->cap_sms = n_sms;
    }
    int r =
        ws_grow((void **)&m->counts, &m->cap_counts, (size_t)n_sms * n_parts, sizeof(*m->counts));
    return r ? ws_forward(r) : 0;
}

static double correction(const struct ws_mix_part *p)
{
    return p->correction > 0 ? p->correction : 1;
}

static int check(const struct ws_mwp_gpu *gpu, const struct ws_mix_part *parts, uint32_t n_parts,
                 const struct ws_mix_options *o, struct ws_diags *diags, uint64_t *ret_blocks)
{
    int r = ws_mwp_check_gpu(gpu, diags);
    if (r)
        return ws_raise(r);
    if (!n_parts || n_parts > WS_MIX_MAX_PARTS || gpu->n_sms > WS_DISPATCH_MAX_SMS) {
        ws_diags_add(diags, NULL, 0, 0, "mix: %u kernels on %u SMs; there may be 1 to %d on %d",
                     n_parts, gpu->n_sms, WS_MIX_MAX_PARTS, WS_DISPATCH_MAX_SMS);
        return ws_raise(-EINVAL);
    }
    uint64_t n = 0;
    for (uint32_t k = 0; k < n_parts; k++) {
        r = ws_mwp_check_kernel(&parts[k].kernel, diags);
        if (!r && !(parts[k].correction >= 0 && parts[k].correction < 1e6)) {
            ws_diags_add(diags, NULL, 0, 0,
                         "mix: correction of kernel %u is %g; it must be above 0", k,
                         parts[k].correction);
            r = -EINVAL;
        }
        if (r) {
            ws_diags_add(diags, NULL, 0, 0, "mix: kernel %u of %u is wrong (see above)", k,
                         n_parts);
            return ws_raise(r);
        }
        n += parts[k].kernel.n_blocks;
    }
    if (n > UINT32_MAX || o->occupancy > 1024) {
        ws_diags_add(diags, NULL, 0, 0, "mix: too many blocks, or occupancy %u above 1024",
                     o->occupancy);
        return ws_raise(-EINVAL);
    }
    *ret_blocks = n;
    return 0;
}

/* One block alone on each of @active_sms SMs. */
static struct ws_mwp_load one_block(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k,
                                    double active_sms)
{
    return (struct ws_mwp_load){
        .n_warps = ws_mwp_warps(gpu, k),
        .comp_insts = k->comp_insts,
        .coal_insts = k->coal_insts,
        .uncoal_insts = k->uncoal_insts,
        .uncoal_per_mw = k->uncoal_per_mw,
        .synch_insts = k->synch_insts,
        .rep = 1,
        .active_sms = active_sms,
    };
}

static int predict_alone(struct ws_mix *m, const struct ws_mwp_gpu *gpu,
                         const struct ws_mix_part *parts, const struct ws_mix_options *o)
{
    for (uint32_t k = 0; k < m->n_parts; k++) {
        struct ws_mwp_kernel kernel = parts[k].kernel;
        uint64_t per_sm = (kernel.n_blocks + gpu->n_sms - 1) / gpu->n_sms;
        kernel.active_blocks_per_sm =
            (uint32_t)WS_MIN(o->occupancy ? o->occupancy : 1024, WS_MIN(per_sm, 1024));
        struct ws_mwp_result r;
        int e = ws_mwp_predict(&r, gpu, &kernel, o->rule, NULL);
        if (e)
            return ws_forward(e);
        m->alone_cycles[k] = r.total_cycles * correction(&parts[k]);
    }
    return 0;
}

static void predict_type1(struct ws_mix *m, const struct ws_mwp_gpu *gpu,
                          const struct ws_mix_part *parts, const struct ws_mix_options *o,
                          double active_sms)
{
    for (uint32_t k = 0; k < m->n_parts; k++) {
        struct ws_mwp_load l = one_block(gpu, &parts[k].kernel, active_sms);
        m->bw_demand += (double)parts[k].kernel.n_blocks * ws_mwp_bw_per_warp(gpu, &l);
    }
    for (uint32_t k = 0; k < m->n_parts; k++) {
        struct ws_mwp_load l = one_block(gpu, &parts[k].kernel, active_sms);
        l.bw_demand = m->bw_demand;
        struct ws_mwp_result r;
        ws_mwp_evaluate(&r, gpu, &l, o->rule);
        m->cycles[k] = r.total_cycles * correction(&parts[k]);
        m->total_cycles = fmax(m->total_cycles, m->cycles[k]);
    }
}

/* How many of blocks [first, first + n) of the grid are SM @sm's, when block b is dealt to b mod
 * n_sms. */
static uint32_t dealt_to(uint64_t first, uint64_t n, uint32_t n_sms, uint32_t sm)
{
    uint64_t skip = (sm + n_sms - first % n_sms) % n_sms; /* before the first that is */
    return n > skip ? (uint32_t)((n - skip - 1) / n_sms + 1) : 0;
}

/* What one block of each kernel takes alone on its SM. */
static void price_blocks(struct ws_mix *m, const struct ws_mwp_gpu *gpu,
                         const struct ws_mix_part *parts, const struct ws_mix_options *o,
                         double active_sms)
{
    for (uint32_t k = 0; k < m->n_parts; k++) {
        struct ws_mwp_load l = one_block(gpu, &parts[k].kernel, active_sms);
        struct ws_mwp_result r;
        ws_mwp_evaluate(&r, gpu, &l, o->rule);
        m->kernels[k] =
            (struct ws_dispatch_kernel){.n_blocks = (uint32_t)parts[k].kernel.n_blocks,
                                        .block_time = r.total_cycles * correction(&parts[k]),
                                        .issue_time = ws_mix_issue_cycles(gpu, &parts[k].kernel),
                                        .memory_time = ws_mix_memory_cycles(gpu, &parts[k].kernel)};
    }
}

/* Fills m->counts. */
static int place(struct ws_mix *m, const struct ws_mix_part *parts, const struct ws_mix_options *o,
                 uint64_t n_blocks, struct ws_diags *diags)
{
    bool is_static = o->policy == WS_DISPATCH_RR || o->policy == WS_DISPATCH_RR_RESTART;
    /* With room for all at once, redistribution has nothing to move. */
    is_static |= !o->occupancy || n_blocks <= (uint64_t)o->occupancy * m->n_sms;
    if (is_static) {
        uint64_t first = 0;
        for (uint32_t k = 0; k < m->n_parts; k++) {
            for (uint32_t sm = 0; sm < m->n_sms; sm++)
                m->counts[(size_t)sm * m->n_parts + k] =
                    dealt_to(first, parts[k].kernel.n_blocks, m->n_sms, sm);
            if (o->policy != WS_DISPATCH_RR_RESTART)
                first += parts[k].kernel.n_blocks;
        }
        return 0;
    }
    struct ws_dispatch_in in = {.n_sms = m->n_sms,
                                .occupancy = o->occupancy,
                                .policy = o->policy,
                                .model = o->model,
                                .n_kernels = m->n_parts,
                                .kernels = m->kernels};
    int r = ws_dispatch_run(&m->dispatch, &in, diags);
    if (r)
        return ws_forward(r);
    memset(m->counts, 0, (size_t)m->n_sms * m->n_parts * sizeof(*m->counts));
    for (uint32_t b = 0; b < m->dispatch.n_blocks; b++) {
        const struct ws_dispatch_block *block = &m->dispatch.blocks[b];
        m->counts[(size_t)block->sm * m->n_parts + block->kernel]++;
    }
    return 0;
}

/* All blocks of an SM as one big workload. */
static void price_group(struct ws_mix *m, struct ws_mix_group *g, const struct ws_mwp_gpu *gpu,
                        const struct ws_mix_part *parts, const struct ws_mix_options *o)
{
    double blocks = 0, warps = 0, uncoal = 0, alone = 0, corrected = 0;
    struct ws_mwp_load l = {.active_sms = m->active_sms, .uncoal_per_mw = 1};
    for (uint32_t k = 0; k < m->n_parts; k++) {
        const struct ws_mwp_kernel *kernel = &parts[k].kernel;
        double n = g->n_blocks[k], w = n * ws_mwp_warps(gpu, kernel);
        blocks += n;
        warps += w;
        l.comp_insts += w * kernel->comp_insts;
        l.coal_insts += w * kernel->coal_insts;
        l.uncoal_insts += w * kernel->uncoal_insts;
        uncoal += w * kernel->uncoal_insts * kernel->uncoal_per_mw;
        l.synch_insts += n * kernel->synch_insts;
        double share = n * m->kernels[k].block_time;
        alone += share / correction(&parts[k]);
        corrected += share;
    }
    if (l.uncoal_insts > 0)
        l.uncoal_per_mw = uncoal / l.uncoal_insts;
    l.comp_insts /= warps;
    l.coal_insts /= warps;
    l.uncoal_insts /= warps;
    double resident = o->occupancy ? fmin(o->occupancy, blocks) : blocks;
    l.rep = blocks / resident;
    l.n_warps = warps / l.rep;
    ws_mwp_evaluate(&g->load, gpu, &l, o->rule);
    g->total_cycles = g->load.total_cycles * (corrected / alone);
}

static uint32_t find_group(const struct ws_mix *m, const uint32_t *counts)
{
    /* Neighbours are alike more often than not, so the newest group is asked first. */
    for (uint32_t i = m->n_groups; i-- > 0;)
        if (!memcmp(m->groups[i].n_blocks, counts, m->n_parts * sizeof(*counts)))
            return i;
    return UINT32_MAX;
}

static bool is_idle(const struct ws_mix *m, const uint32_t *counts)
{
    for (uint32_t k = 0; k < m->n_parts; k++)
        if (counts[k])
            return false;
    return true;
}

static void predict_type2(struct ws_mix *m, const struct ws_mwp_gpu *gpu,
                          const struct ws_mix_part *parts, const struct ws_mix_options *o)
{
    m->active_sms = 0;
    for (uint32_t sm = 0; sm < m->n_sms; sm++) {
        const uint32_t *counts = &m->counts[(size_t)sm * m->n_parts];
        m->group_of[sm] = UINT32_MAX;
        if (is_idle(m, counts))
            continue;
        m->active_sms++;
        uint32_t i = find_group(m, counts);
        if (i == UINT32_MAX) {
            i = m->n_groups++;
            m->groups[i] = (struct ws_mix_group){.first_sm = sm, .n_blocks = counts};
        }
        m->groups[i].n_sms++;
        m->groups[i].last_sm = sm;
        m->group_of[sm] = i;
    }
    for (uint32_t i = 0; i < m->n_groups; i++) {
        price_group(m, &m->groups[i], gpu, parts, o);
        m->total_cycles = fmax(m->total_cycles, m->groups[i].total_cycles);
    }
    for (uint32_t i = 0; i < m->n_groups; i++)
        m->groups[i].critical = m->groups[i].total_cycles >= m->total_cycles * (1 - 1e-9);
}

/* The event rates of @parts on the mean SM (idle SMs count as 0) if the whole takes @cycles. */
static void mean_rates(const struct ws_mwp_gpu *gpu, const struct ws_mix_part *parts,
                       uint32_t n_parts, double cycles, double *ret_comp, double *ret_gmem)
{
    double comp = 0, gmem = 0;
    for (uint32_t k = 0; k < n_parts; k++) {
        const struct ws_mwp_kernel *kernel = &parts[k].kernel;
        double warps = (double)kernel->n_blocks * ws_mwp_warps(gpu, kernel);
        comp += warps * kernel->comp_insts;
        gmem += warps * (kernel->coal_insts + kernel->uncoal_insts);
    }
    *ret_comp = comp / (gpu->n_sms * cycles);
    *ret_gmem = gmem / (gpu->n_sms * cycles);
}

int ws_mix_predict(struct ws_mix *m, const struct ws_mwp_gpu *gpu, const struct ws_mix_part *parts,
                   uint32_t n_parts, const struct ws_mix_options *o, struct ws_diags *diags)
{
    uint64_t n_blocks = 0;
    int r = check(gpu, parts, n_parts, o, diags, &n_blocks);
    if (!r)
        r = reserve(m, gpu->n_sms, n_parts);
    if (r)
        return ws_forward(r);
    m->type = n_blocks <= gpu->n_sms ? 1 : 2;
    m->n_sms = gpu->n_sms;
    m->n_parts = n_parts;
    m->n_groups = 0;
    m->total_cycles = m->bw_demand = 0;
    double active = fmin(gpu->n_sms, (double)n_blocks);
    m->active_sms = (uint32_t)active;
    r = predict_alone(m, gpu, parts, o);
    if (r)
        return ws_forward(r);
    if (m->type == 1) {
        predict_type1(m, gpu, parts, o, active);
    } else {
        price_blocks(m, gpu, parts, o, active);
        r = place(m, parts, o, n_blocks, diags);
        if (r)
            return ws_forward(r);
        predict_type2(m, gpu, parts, o);
    }
    m->time_us = m->total_cycles / (gpu->freq_ghz * 1e3);
    mean_rates(gpu, parts, n_parts, m->total_cycles, &m->rate_comp, &m->rate_gmem);
    return 0;
}

double ws_mix_issue_cycles(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k)
{
    return gpu->issue_cycles * ws_mwp_warps(gpu, k) *
           (k->comp_insts + k->coal_insts + k->uncoal_insts);
}

double ws_mix_memory_cycles(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k)
{
    double bytes = ws_mwp_warps(gpu, k) * (k->coal_insts * 4 * gpu->threads_per_warp +
                                           k->uncoal_insts * k->uncoal_per_mw * 32);
    return bytes * gpu->freq_ghz / gpu->bandwidth_gb_per_s;
}

double ws_mix_block_time(const struct ws_mix_measured *k, uint32_t n_sms,
                         const struct ws_mix_options *o)
{
    uint64_t most = ((uint64_t)k->alone_blocks + n_sms - 1) / n_sms;
    bool bounded = o->model == WS_DISPATCH_BOUNDED && k->issue_time > 0;
    if (o->model != WS_DISPATCH_OVERLAP && !bounded)
        return k->alone_time / (double)most;
    uint64_t rounds = (most + o->occupancy - 1) / o->occupancy;
    double filled = k->alone_time / (double)rounds;
    if (!bounded)
        return filled;
    double on_sm = (double)WS_MIN(most, (uint64_t)o->occupancy);
    double on_gpu = fmin(k->alone_blocks, on_sm * n_sms);
    bool limited = fmax(on_sm * k->issue_time, on_gpu * k->memory_time) >= 0.98 * filled;
    return limited && (on_sm > 1 || on_gpu * k->memory_time >= 0.98 * filled)
               ? fmin(filled, sqrt(filled * k->issue_time))
               : filled;
}

int ws_mix_measured(struct ws_mix *m, uint32_t n_sms, const struct ws_mix_measured *parts,
                    uint32_t n_parts, const struct ws_mix_options *o, struct ws_diags *diags)
{
    if (!n_sms || !o->occupancy || !n_parts || n_parts > WS_MIX_MAX_PARTS) {
        ws_diags_add(diags, NULL, 0, 0, "mix: %u kernels, %u SMs, occupancy %u: none may be 0",
                     n_parts, n_sms, o->occupancy);
        return ws_raise(-EINVAL);
    }
    int r = reserve(m, n_sms, n_parts);
    if (r)
        return ws_forward(r);
    for (uint32_t k = 0; k < n_parts; k++) {
        if (!parts[k].alone_blocks) {
            ws_diags_add(diags, NULL, 0, 0, "mix: kernel %u was measured with no blocks", k);
            return ws_raise(-EINVAL);
        }
        m->kernels[k] = (struct ws_dispatch_kernel){
            .n_blocks = parts[k].n_blocks,
            .block_time = ws_mix_block_time(&parts[k], n_sms, o),
            .issue_time = parts[k].issue_time,
            /* All blocks' bytes were moved in the time measured; if counts say more, caches
             * helped. */
            .memory_time = fmin(parts[k].memory_time, parts[k].alone_time / parts[k].alone_blocks)};
    }
    struct ws_dispatch_in in = {.n_sms = n_sms,
                                .occupancy = o->occupancy,
                                .policy = o->policy,
                                .model = o->model,
                                .n_kernels = n_parts,
                                .kernels = m->kernels};
    r = ws_dispatch_run(&m->dispatch, &in, diags);
    return r ? ws_forward(r) : 0;
}

bool ws_mix_saves(double mix_j, double gpu_j, double cpu_j)
{
    /* Sums that differ only by rounding are ties. */
    return mix_j < gpu_j * (1 - 1e-9) && mix_j < cpu_j * (1 - 1e-9);
}
