// SPDX-License-Identifier: Apache-2.0
/* models/mwp_cwp.c - the MWP-CWP equations.
 *
 * An SM holds N warps. Of these, MWP can have an access to memory in flight at the same time
 * (limited by how fast accesses depart, by the bandwidth of the whole GPU, and by N), and CWP could
 * compute during one warp's wait. Where CWP reaches MWP, memory is the bottleneck: the waits of N
 * warps pass MWP at a time, and of the computation only what precedes the first access of each
 * shows. Where MWP is larger, computation hides all waits but one.
 *
 * The equations are kept apart from what a kernel is (struct ws_mwp_load), so that a mix of kernels
 * on an SM goes through the same lines (consolidate.c). */
#include "models/mwp_cwp.h"

#include <math.h>
#include <string.h>
#include "base/error.h"

#define BYTES_PER_LANE 4.0

const struct ws_mwp_gpu ws_mwp_gpus[] = {
    {"GeForce8800GTX", 16, 32, 1.35, 86.4, 420, 10, 4, 4},
    {"QuadroFX5600", 16, 32, 1.35, 76.8, 420, 10, 4, 4},
    {"GTX280", 30, 32, 1.296, 141.7, 450, 40, 4, 4}, /* the paper rounds its clock to 1.3 GHz */
    {"TeslaC1060", 30, 32, 1.296, 102.4, 450, 40, 4, 4},
    {"ISCA09_example", 16, 32, 1.0, 80.0, 420, 10, 4, 4},
    {0},
};

const struct ws_mwp_gpu *ws_mwp_gpu_find(const char *name)
{
    for (const struct ws_mwp_gpu *g = ws_mwp_gpus; g->name; g++)
        if (!strcmp(g->name, name))
            return g;
    return NULL;
}

int ws_mwp_gpu_derive(struct ws_mwp_gpu *ret, const char *name, uint32_t n_sms, uint32_t core_mhz,
                      uint64_t memory_bytes_per_s, uint32_t memory_latency_ns,
                      uint32_t fp32_lanes_per_sm, uint32_t ldst_lanes_per_sm)
{
    if (!n_sms || !core_mhz || !memory_bytes_per_s || !fp32_lanes_per_sm || !ldst_lanes_per_sm)
        return ws_raise(-EINVAL);
    struct ws_mwp_gpu g = {.name = name, .n_sms = n_sms, .threads_per_warp = 32};
    g.freq_ghz = core_mhz / 1000.0;
    g.bandwidth_gb_per_s = (double)memory_bytes_per_s / 1e9;
    g.mem_latency_cycles = WS_MAX(memory_latency_ns * g.freq_ghz, 1.0);
    g.issue_cycles = 32.0 / fp32_lanes_per_sm;
    double sm_bytes_per_cycle = g.bandwidth_gb_per_s / g.freq_ghz / n_sms;
    g.depart_coal_cycles = WS_MAX(32.0 / ldst_lanes_per_sm, 128.0 / sm_bytes_per_cycle);
    g.depart_uncoal_cycles = WS_MAX(1.0, 32.0 / sm_bytes_per_cycle);
    *ret = g;
    return 0;
}

const char *ws_mwp_case_name(enum ws_mwp_case c)
{
    static const char *const names[] = {"no_memory", "case1_N", "case2_memory",
                                        "case2_memory+issue_floor", "case3_compute"};
    return (size_t)c < WS_ARRAY_SIZE(names) ? names[c] : "?";
}

/* What of the load's memory behaviour doesn't depend on how much of it runs. */
static void evaluate_memory(struct ws_mwp_result *r, const struct ws_mwp_gpu *g,
                            const struct ws_mwp_load *l)
{
    r->mem_insts = l->coal_insts + l->uncoal_insts;
    r->total_insts = l->comp_insts + r->mem_insts;
    r->mem_l_uncoal = g->mem_latency_cycles + (l->uncoal_per_mw - 1) * g->depart_uncoal_cycles;
    r->mem_l_coal = g->mem_latency_cycles;
    if (r->mem_insts > 0) {
        r->weight_uncoal = l->uncoal_insts / r->mem_insts;
        r->weight_coal = l->coal_insts / r->mem_insts;
    }
    r->mem_l = r->mem_l_uncoal * r->weight_uncoal + r->mem_l_coal * r->weight_coal;
    r->departure_delay = g->depart_uncoal_cycles * l->uncoal_per_mw * r->weight_uncoal +
                         g->depart_coal_cycles * r->weight_coal;
    r->mem_cycles = r->mem_l_uncoal * l->uncoal_insts + r->mem_l_coal * l->coal_insts;
    r->comp_cycles = g->issue_cycles * r->total_insts;
    r->load_bytes_per_warp = BYTES_PER_LANE * g->threads_per_warp;
    if (r->mem_insts > 0)
        r->bw_per_warp = g->freq_ghz * r->load_bytes_per_warp / r->mem_l;
}

double ws_mwp_bw_per_warp(const struct ws_mwp_gpu *gpu, const struct ws_mwp_load *load)
{
    struct ws_mwp_result r = {0};
    evaluate_memory(&r, gpu, load);
    return r.bw_per_warp;
}

static void evaluate_parallelism(struct ws_mwp_result *r, const struct ws_mwp_gpu *g,
                                 const struct ws_mwp_load *l, enum ws_mwp_rule rule)
{
    r->bw_demand = l->bw_demand > 0 ? l->bw_demand : r->bw_per_warp * l->active_sms;
    r->mwp_without_bw_full = r->mem_l / r->departure_delay;
    r->mwp_without_bw = fmin(r->mwp_without_bw_full, r->n);
    r->mwp_peak_bw = g->bandwidth_gb_per_s / r->bw_demand;
    r->mwp = fmin(r->mwp_without_bw, r->mwp_peak_bw);
    if (rule == WS_MWP_RECOMMENDED)
        r->mwp = fmax(r->mwp, 1);
    r->cwp_full = (r->mem_cycles + r->comp_cycles) / r->comp_cycles;
    r->cwp = fmin(r->cwp_full, r->n);
}

static void evaluate_cycles(struct ws_mwp_result *r, enum ws_mwp_rule rule)
{
    double comp_per_access = r->comp_cycles / r->mem_insts;
    double issue = r->comp_cycles * r->n;
    if (r->mwp == r->n && r->cwp == r->n) {
        r->c = WS_MWP_CASE1_N;
        r->one_rep_cycles = r->mem_cycles + r->comp_cycles + comp_per_access * (r->mwp - 1);
    } else if (r->cwp >= r->mwp || (rule == WS_MWP_RECALLED && r->comp_cycles > r->mem_cycles)) {
        r->c = WS_MWP_CASE2_MEMORY;
        r->one_rep_cycles = r->mem_cycles * r->n / r->mwp + comp_per_access * (r->mwp - 1);
    } else {
        r->c = WS_MWP_CASE3_COMPUTE;
        r->one_rep_cycles = r->mem_l + issue;
    }
    if (rule == WS_MWP_RECOMMENDED && r->one_rep_cycles < issue) {
        r->c = WS_MWP_CASE2_FLOOR; /* the other cases are never below it */
        r->one_rep_cycles = issue;
    }
}

void ws_mwp_evaluate(struct ws_mwp_result *ret, const struct ws_mwp_gpu *gpu,
                     const struct ws_mwp_load *load, enum ws_mwp_rule rule)
{
    struct ws_mwp_result r = {.n = load->n_warps, .active_sms = load->active_sms, .rep = load->rep};
    evaluate_memory(&r, gpu, load);
    if (r.mem_insts > 0) {
        evaluate_parallelism(&r, gpu, load, rule);
        evaluate_cycles(&r, rule);
        r.synch_cycles = r.departure_delay * (r.mwp - 1) * load->synch_insts;
    } else {
        r.c = WS_MWP_NO_MEMORY;
        r.one_rep_cycles = r.comp_cycles * r.n;
    }
    r.exec_cycles = r.one_rep_cycles * r.rep;
    r.total_cycles = r.exec_cycles + r.synch_cycles;
    r.time_us = r.total_cycles / (gpu->freq_ghz * 1e3);
    *ret = r;
}

static bool in_range(double v, double least, double most)
{
    return v >= least && v <= most; /* false for NaN */
}

int ws_mwp_check_gpu(const struct ws_mwp_gpu *gpu, struct ws_diags *diags)
{
    const struct {
        const char *field;
        double v;
    } must[] = {
        {"n_sm", gpu->n_sms},
        {"threads_per_warp", gpu->threads_per_warp},
        {"freq_ghz", gpu->freq_ghz},
        {"bw_gbs", gpu->bandwidth_gb_per_s},
        {"mem_ld", gpu->mem_latency_cycles},
        {"dep_uncoal", gpu->depart_uncoal_cycles},
        {"dep_coal", gpu->depart_coal_cycles},
        {"issue_cycles", gpu->issue_cycles},
    };
    int r = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(must); i++)
        if (!(must[i].v > 0) || !in_range(must[i].v, 0, 1e12)) {
            ws_diags_add(diags, NULL, 0, 0, "GPU %s: %s is %g; it must be above 0",
                         gpu->name ? gpu->name : "?", must[i].field, must[i].v);
            r = -EINVAL;
        }
    return r;
}

int ws_mwp_check_kernel(const struct ws_mwp_kernel *k, struct ws_diags *diags)
{
    const struct {
        const char *field;
        double v, least, most;
    } must[] = {
        {"threads_per_block", k->threads_per_block, 1, 1024},
        {"blocks", (double)k->n_blocks, 1, 1e15},
        {"active_blocks_per_sm", k->active_blocks_per_sm, 1, 1024},
        {"comp_insts", k->comp_insts, 0, 1e15},
        {"coal_mem_insts", k->coal_insts, 0, 1e15},
        {"uncoal_mem_insts", k->uncoal_insts, 0, 1e15},
        {"uncoal_per_mw", k->uncoal_per_mw, 1, 1024},
        {"synch_insts", k->synch_insts, 0, 1e15},
    };
    int r = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(must); i++)
        if (!in_range(must[i].v, must[i].least, must[i].most)) {
            ws_diags_add(diags, NULL, 0, 0, "kernel: %s is %g; it must be %g to %g", must[i].field,
                         must[i].v, must[i].least, must[i].most);
            r = -EINVAL;
        }
    if (!r && k->comp_insts + k->coal_insts + k->uncoal_insts <= 0) {
        ws_diags_add(diags, NULL, 0, 0, "kernel: has no instructions at all");
        r = -EINVAL;
    }
    return r;
}

double ws_mwp_warps(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k)
{
    uint32_t warps = (k->threads_per_block + gpu->threads_per_warp - 1) / gpu->threads_per_warp;
    return warps;
}

int ws_mwp_predict(struct ws_mwp_result *ret, const struct ws_mwp_gpu *gpu,
                   const struct ws_mwp_kernel *k, enum ws_mwp_rule rule, struct ws_diags *diags)
{
    int r = ws_mwp_check_gpu(gpu, diags);
    if (!r)
        r = ws_mwp_check_kernel(k, diags);
    if (r)
        return ws_raise(r);
    double warps = ws_mwp_warps(gpu, k), blocks = (double)k->n_blocks;
    double active_sms = fmin(gpu->n_sms, blocks);
    double resident = fmin(k->active_blocks_per_sm, ceil(blocks / active_sms));
    struct ws_mwp_load l = {
        .n_warps = resident * warps,
        .comp_insts = k->comp_insts,
        .coal_insts = k->coal_insts,
        .uncoal_insts = k->uncoal_insts,
        .uncoal_per_mw = k->uncoal_per_mw,
        .rep = blocks / (resident * active_sms),
        .active_sms = active_sms,
    };
    l.synch_insts = k->synch_insts * resident * l.rep;
    ws_mwp_evaluate(ret, gpu, &l, rule);
    ret->active_blocks_per_sm = resident;
    ret->cpi = ret->total_cycles / (ret->total_insts * warps * blocks / active_sms);
    return 0;
}
