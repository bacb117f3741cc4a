// SPDX-License-Identifier: Apache-2.0
/* models: MWP-CWP, block dealing and mixes. Numbers are the ISCA 2009 paper's worked example, the
 * consolidation paper's two scenarios, and values worked out by hand beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "models/consolidate.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) <= 1e-9 * fabs((double)(b)))

static const struct ws_mwp_kernel isca = {.threads_per_block = 128,
                                          .n_blocks = 80,
                                          .active_blocks_per_sm = 5,
                                          .comp_insts = 27,
                                          .uncoal_insts = 6,
                                          .uncoal_per_mw = 32,
                                          .synch_insts = 6};

static void isca09_example(void **state)
{
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("ISCA09_example");
    for (int rule = WS_MWP_RECOMMENDED; rule <= WS_MWP_RECALLED; rule++) {
        struct ws_mwp_result r;
        assert_int_equal(ws_mwp_predict(&r, g, &isca, rule, NULL), 0);
        NEAR(r.mem_l, 730);
        NEAR(r.departure_delay, 320);
        NEAR(r.mwp_without_bw_full, 2.28125);
        NEAR(r.bw_per_warp, 128.0 / 730);
        NEAR(r.mwp_peak_bw, 28.515625);
        NEAR(r.n, 20);
        NEAR(r.mwp, 2.28125);
        NEAR(r.mem_cycles, 4380);
        NEAR(r.comp_cycles, 132);
        NEAR(r.cwp_full, 4512.0 / 132);
        NEAR(r.cwp, 20);
        NEAR(r.rep, 1);
        assert_int_equal(r.c, WS_MWP_CASE2_MEMORY);
        NEAR(r.exec_cycles, 38428.1875);
        NEAR(r.synch_cycles, 12300);
        NEAR(r.total_cycles, 50728.1875);
        NEAR(r.time_us, 50.7281875);
        NEAR(r.cpi, 50728.1875 / (33 * 4 * 5));
    }
}

static void mixed_c1060(void **state)
{
    const struct ws_mwp_kernel k = {256, 60, 2, 120, 8, 2, 16, 2};
    struct ws_mwp_result r;
    assert_int_equal(ws_mwp_predict(&r, ws_mwp_gpu_find("TeslaC1060"), &k, 0, NULL), 0);
    NEAR(r.mem_l, 570);
    NEAR(r.departure_delay, 131.2);
    NEAR(r.mwp, 570 / 131.2);
    NEAR(r.cwp, 6220.0 / 520);
    double mwp = 570 / 131.2;
    NEAR(r.exec_cycles, 5700 * 16 / mwp + 52 * (mwp - 1));
    NEAR(r.synch_cycles, 131.2 * (mwp - 1) * 2 * 2);
    NEAR(r.time_us, r.total_cycles / 1296);
}

/* The disjunct of case 2 as recalled loses the factor N: fewer cycles than it takes to issue the
 * instructions. */
static void recalled_rule_is_below_issue_time(void **state)
{
    const struct ws_mwp_kernel k = {128, 60, 2, 900, 4, 0, 1, 0};
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("TeslaC1060");
    struct ws_mwp_result a, b;
    assert_int_equal(ws_mwp_predict(&a, g, &k, WS_MWP_RECALLED, NULL), 0);
    assert_int_equal(ws_mwp_predict(&b, g, &k, WS_MWP_RECOMMENDED, NULL), 0);
    assert_int_equal(a.c, WS_MWP_CASE2_MEMORY);
    NEAR(a.total_cycles, 8128);
    assert_true(a.total_cycles < 8 * 3616);
    assert_int_equal(b.c, WS_MWP_CASE3_COMPUTE);
    NEAR(b.total_cycles, 450 + 8 * 3616);
}

static void no_memory_and_case1(void **state)
{
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("QuadroFX5600");
    struct ws_mwp_kernel k = {64, 11, 3, 87, 0, 0, 32, 4};
    struct ws_mwp_result r;
    assert_int_equal(ws_mwp_predict(&r, g, &k, 0, NULL), 0);
    assert_int_equal(r.c, WS_MWP_NO_MEMORY);
    NEAR(r.total_cycles, 4 * 87 * 2); /* 11 blocks: one on each of 11 SMs */
    NEAR(r.cpi, 4);
    k = (struct ws_mwp_kernel){32, 1, 1, 10, 2, 0, 1, 0};
    assert_int_equal(ws_mwp_predict(&r, g, &k, 0, NULL), 0);
    assert_int_equal(r.c, WS_MWP_CASE1_N); /* one warp: nothing hides anything */
    NEAR(r.total_cycles, 2 * 420 + 4 * 12);
}

static void refuses_what_cannot_be(void **state)
{
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("GTX280");
    static const struct {
        const char *description;
        struct ws_mwp_kernel k;
    } bad[] = {
        {"no threads", {0, 1, 1, 1, 1, 0, 1, 0}},
        {"too many threads", {2048, 1, 1, 1, 1, 0, 1, 0}},
        {"no blocks", {32, 0, 1, 1, 1, 0, 1, 0}},
        {"no occupancy", {32, 1, 0, 1, 1, 0, 1, 0}},
        {"negative count", {32, 1, 1, -1, 1, 0, 1, 0}},
        {"not a number", {32, 1, 1, NAN, 1, 0, 1, 0}},
        {"infinite", {32, 1, 1, INFINITY, 1, 0, 1, 0}},
        {"fewer than one transaction", {32, 1, 1, 1, 1, 1, 0.5, 0}},
        {"no instructions", {32, 1, 1, 0, 0, 0, 1, 5}},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        struct ws_diags d = WS_DIAGS_NULL;
        struct ws_mwp_result r;
        if (ws_mwp_predict(&r, g, &bad[i].k, 0, &d) != -EINVAL || !d.n)
            fail_msg("%s", bad[i].description);
        ws_diags_deinit(&d);
    }
    struct ws_mwp_gpu none = *g;
    none.n_sms = 0;
    struct ws_mwp_result r;
    assert_int_equal(ws_mwp_predict(&r, &none, &isca, 0, NULL), -EINVAL);
    assert_null(ws_mwp_gpu_find("GTX9999"));
}

static void derived_gpu(void **state)
{
    struct ws_mwp_gpu g;
    /* the C1060 of the catalog: 8 lanes issue a warp in 4 cycles, 102.4 GB/s */
    assert_int_equal(ws_mwp_gpu_derive(&g, "c1060", 30, 1296, 102400000000, 390, 8, 8), 0);
    NEAR(g.issue_cycles, 4);
    NEAR(g.mem_latency_cycles, 390 * 1.296);
    NEAR(g.bandwidth_gb_per_s, 102.4);
    NEAR(g.depart_coal_cycles,
         128 / (102.4 / 1.296 / 30)); /* its share of bandwidth is the limit */
    assert_int_equal(ws_mwp_gpu_derive(&g, "x", 0, 1296, 1, 1, 8, 8), -EINVAL);
    assert_int_equal(ws_mwp_check_gpu(&g, NULL), 0);
}

/* ---- dealing ---- */

static void list_is(const struct ws_block_schedule *d, uint32_t sm, const char *letters,
                    const char *want)
{
    char got[64];
    size_t n = 0;
    for (uint32_t b = d->sms[sm].first; b != WS_DISPATCH_NONE; b = d->blocks[b].next)
        got[n++] = letters[d->blocks[b].kernel];
    got[n] = 0;
    assert_string_equal(got, want);
    assert_int_equal(d->sms[sm].n_blocks, n);
}

static void scenarios(void **state)
{
    static const struct {
        const char *description;
        int scenario;
        enum ws_dispatch_policy policy;
        uint32_t occupancy;
        const char *sm0, *sm29;
        double makespan;
        bool first_half_is_critical;
    } rows[] = {
        {"scenario 1 as the paper reads it", 1, WS_DISPATCH_REDEAL, 1, "EMM", "M", 81.9, true},
        {"scenario 1 restarting", 1, WS_DISPATCH_RR_RESTART, 1, "EMM", "M", 81.9, true},
        {"scenario 1 static: wrong critical SMs", 1, WS_DISPATCH_RR, 1, "EM", "MM", 62.4, false},
        {"scenario 1 greedy: wrong critical SMs", 1, WS_DISPATCH_GREEDY, 1, "EM", "MM", 62.4,
         false},
        {"scenario 2 as the paper reads it", 2, WS_DISPATCH_REDEAL, 2, "EM", "MM", 62.4, true},
        {"scenario 2 restarting: one block too many", 2, WS_DISPATCH_RR_RESTART, 2, "EMM", "M",
         75.6, true},
    };
    struct ws_block_schedule d = WS_DISPATCH_NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        print_message("%s\n", rows[i].description);
        struct ws_dispatch_kernel k[2] = {{15, 19.5, 0, 0}, {45, 31.2, 0, 0}};
        if (rows[i].scenario == 2) {
            k[0].block_time = 49.2;
            k[1].block_time = 13.2;
        }
        struct ws_dispatch_in in = {30, rows[i].occupancy, rows[i].policy, WS_DISPATCH_ADDITIVE, 2,
                                    k};
        assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
        NEAR(d.makespan, rows[i].makespan);
        list_is(&d, 0, "EM", rows[i].sm0);
        list_is(&d, 29, "EM", rows[i].sm29);
        assert_int_equal(d.n_critical, 15);
        assert_int_equal(d.sms[0].critical, rows[i].first_half_is_critical);
        assert_int_equal(d.sms[29].critical, !rows[i].first_half_is_critical);
    }
    ws_dispatch_deinit(&d);
}

/* Two kernels of 2 and 3 units, one SM of two slots. */
static void additive_and_overlap(void **state)
{
    const struct ws_dispatch_kernel k[] = {{1, 2, 0, 0}, {1, 3, 0, 0}};
    struct ws_dispatch_in in = {1, 2, WS_DISPATCH_RR, WS_DISPATCH_ADDITIVE, 2, k};
    struct ws_block_schedule d = WS_DISPATCH_NULL;
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
    NEAR(d.blocks[0].end, 4); /* at half speed */
    NEAR(d.blocks[1].end, 5); /* 2 of 3 done by then, the last one alone */
    in.model = WS_DISPATCH_OVERLAP;
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
    NEAR(d.blocks[0].end, 2);
    NEAR(d.makespan, 3);
    /* 2 of which 1.5 issue, 3 of which 1: together 3 (2 · 1.5) and 3, as the second isn't held
     * up */
    const struct ws_dispatch_kernel bounded[] = {{1, 2, 1.5, 0}, {1, 3, 1, 0}};
    in.model = WS_DISPATCH_BOUNDED;
    in.kernels = bounded;
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
    NEAR(d.blocks[0].end, 3);
    NEAR(d.blocks[1].end, 3);
    /* each alone would take the memory for all of its time: together everything takes twice as
     * long */
    const struct ws_dispatch_kernel hungry[] = {{1, 2, 0.1, 2}, {1, 2, 0.1, 2}};
    in.kernels = hungry;
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
    NEAR(d.makespan, 4);
    in.model = WS_DISPATCH_OVERLAP; /* knows nothing of memory */
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
    NEAR(d.makespan, 2);
    ws_dispatch_deinit(&d);
}

static void dispatch_edges(void **state)
{
    struct ws_block_schedule d = WS_DISPATCH_NULL;
    struct ws_dispatch_kernel k[] = {{0, 1, 0, 0}, {5, 1, 0, 0}};
    for (int policy = WS_DISPATCH_REDEAL; policy <= WS_DISPATCH_GREEDY; policy++) {
        struct ws_dispatch_in in = {3, 1, policy, WS_DISPATCH_ADDITIVE, 2, k};
        assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
        NEAR(d.makespan, 2);
        in.n_kernels = 0;
        assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
        assert_true(d.makespan == 0);
        assert_int_equal(d.n_critical, 0);
    }
    k[1].block_time = 0;
    struct ws_dispatch_in in = {3, 1, 0, 0, 2, k};
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), -EINVAL);
    k[1].block_time = NAN;
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), -EINVAL);
    k[1] = (struct ws_dispatch_kernel){UINT32_MAX, 1, 0, 0};
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), -EINVAL);
    in.n_sms = 0;
    assert_int_equal(ws_dispatch_run(&d, &in, NULL), -EINVAL);
    enum ws_dispatch_policy p;
    assert_true(ws_dispatch_policy_find("rr_restart", &p) && p == WS_DISPATCH_RR_RESTART);
    assert_false(ws_dispatch_policy_find("round", &p));
    ws_dispatch_deinit(&d);
}

/* Work is neither lost nor done twice, whatever the policy: against the sums. */
static void dispatch_keeps_all_work(void **state)
{
    const struct ws_dispatch_kernel k[] = {{37, 1.7, 0, 0}, {12, 0.4, 0, 0}, {101, 2.9, 0, 0}};
    struct ws_block_schedule d = WS_DISPATCH_NULL;
    for (int policy = WS_DISPATCH_REDEAL; policy <= WS_DISPATCH_GREEDY; policy++)
        for (uint32_t occ = 1; occ <= 4; occ++) {
            struct ws_dispatch_in in = {7, occ, policy, WS_DISPATCH_ADDITIVE, 3, k};
            assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
            assert_int_equal(d.n_blocks, 150);
            uint32_t listed = 0;
            for (uint32_t sm = 0; sm < 7; sm++) {
                double work = 0;
                for (uint32_t b = d.sms[sm].first; b != WS_DISPATCH_NONE; b = d.blocks[b].next) {
                    work += k[d.blocks[b].kernel].block_time;
                    assert_int_equal(d.blocks[b].sm, sm);
                    assert_true(d.blocks[b].end > d.blocks[b].start);
                    listed++;
                }
                /* an SM never idles before its list is empty, so it finishes when its work is
                 * done */
                assert_true(fabs(d.sms[sm].finish - work) < 1e-6);
            }
            assert_int_equal(listed, 150);
        }
    ws_dispatch_deinit(&d);
}

/* ---- mixes ---- */

static const struct ws_mix_part two_parts[] = {
    {.kernel = {256, 15, 1, 400, 10, 6, 16, 4}},
    {.kernel = {128, 15, 1, 900, 12, 0, 1, 2}},
};

static void type1(void **state)
{
    struct ws_mix m = WS_MIX_NULL;
    struct ws_mix_options o = {.policy = WS_DISPATCH_RR};
    assert_int_equal(ws_mix_predict(&m, ws_mwp_gpu_find("TeslaC1060"), two_parts, 2, &o, NULL), 0);
    assert_int_equal(m.type, 1);
    NEAR(m.bw_demand, 9.216);
    assert_true(fabs(m.total_cycles - 32955.48454) < 1e-5);
    NEAR(m.cycles[1], 15066);
    NEAR(m.rate_comp, (15 * 8 * 400 + 15 * 4 * 900.0) / (30 * m.total_cycles));
    /* what was measured before scales what is predicted now */
    struct ws_mix_part corrected[2] = {two_parts[0], two_parts[1]};
    corrected[1].correction = 3;
    double before = m.cycles[0];
    assert_int_equal(ws_mix_predict(&m, ws_mwp_gpu_find("TeslaC1060"), corrected, 2, &o, NULL), 0);
    NEAR(m.cycles[0], before);
    NEAR(m.total_cycles, 3 * 15066);
    ws_mix_deinit(&m);
}

static void type2(void **state)
{
    struct ws_mix m = WS_MIX_NULL;
    struct ws_mix_options o = {.policy = WS_DISPATCH_RR};
    struct ws_mix_part parts[2] = {two_parts[0], two_parts[1]};
    parts[1].kernel.n_blocks = 45;
    assert_int_equal(ws_mix_predict(&m, ws_mwp_gpu_find("TeslaC1060"), parts, 2, &o, NULL), 0);
    assert_int_equal(m.type, 2);
    assert_int_equal(m.n_groups, 2);
    NEAR(m.groups[0].load.n, 12);
    assert_true(fabs(m.groups[0].total_cycles - 34238.79434) < 1e-5);
    NEAR(m.groups[1].total_cycles, 29746);
    assert_int_equal(m.groups[0].last_sm, 14);
    assert_true(m.groups[0].critical && !m.groups[1].critical);
    assert_int_equal(m.group_of[14], 0);
    assert_int_equal(m.group_of[15], 1);
    ws_mix_deinit(&m);
}

/* With one block resident at a time, an SM's blocks are repetitions: as long as one after the other
 * (without memory, exactly). */
static void type2_repetitions(void **state)
{
    struct ws_mix m = WS_MIX_NULL;
    struct ws_mix_options o = {.policy = WS_DISPATCH_RR_RESTART, .occupancy = 1};
    struct ws_mix_part parts[2] = {{.kernel = {32, 15, 1, 195, 0, 0, 1, 0}},
                                   {.kernel = {32, 45, 1, 312, 0, 0, 1, 0}}};
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("TeslaC1060");
    assert_int_equal(ws_mix_predict(&m, g, parts, 2, &o, NULL), 0);
    NEAR(m.total_cycles, 4 * (195 + 2 * 312));
    o.policy = WS_DISPATCH_REDEAL; /* the paper's scenario 1 by model: {E, M, M} again */
    assert_int_equal(ws_mix_predict(&m, g, parts, 2, &o, NULL), 0);
    NEAR(m.total_cycles, 4 * (195 + 2 * 312));
    assert_int_equal(m.groups[0].n_blocks[1], 2);
    assert_int_equal(m.groups[m.group_of[29]].n_blocks[1], 1);
    ws_mix_deinit(&m);
}

/* Counting static dealing and doing it are the same. */
static void counted_is_dealt(void **state)
{
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("GTX280");
    struct ws_mix m = WS_MIX_NULL;
    struct ws_block_schedule d = WS_DISPATCH_NULL;
    for (uint32_t a = 1; a < 100; a += 7)
        for (uint32_t b = 1; b < 140; b += 11)
            for (int policy = WS_DISPATCH_RR; policy <= WS_DISPATCH_RR_RESTART; policy++) {
                struct ws_mix_part parts[2] = {{.kernel = {32, a, 1, 195, 1, 0, 1, 0}},
                                               {.kernel = {64, b, 1, 312, 0, 0, 1, 0}}};
                struct ws_mix_options o = {.policy = policy, .occupancy = 2};
                assert_int_equal(ws_mix_predict(&m, g, parts, 2, &o, NULL), 0);
                if (m.type == 1)
                    continue;
                const struct ws_dispatch_kernel k[] = {{a, 1, 0, 0}, {b, 1, 0, 0}};
                struct ws_dispatch_in in = {30, 2, policy, 0, 2, k};
                assert_int_equal(ws_dispatch_run(&d, &in, NULL), 0);
                uint32_t n[30][2] = {{0}};
                for (uint32_t i = 0; i < d.n_blocks; i++)
                    n[d.blocks[i].sm][d.blocks[i].kernel]++;
                for (uint32_t sm = 0; sm < 30; sm++)
                    for (uint32_t k2 = 0; k2 < 2; k2++)
                        assert_int_equal(m.group_of[sm] == UINT32_MAX
                                             ? 0
                                             : m.groups[m.group_of[sm]].n_blocks[k2],
                                         n[sm][k2]);
            }
    ws_dispatch_deinit(&d);
    ws_mix_deinit(&m);
}

static void measured_mixes(void **state)
{
    /* Table 5 and 7: one block per SM, so the longest alone is the time. */
    struct ws_mix m = WS_MIX_NULL;
    struct ws_mix_options o = {.policy = WS_DISPATCH_REDEAL, .occupancy = 1};
    const struct ws_mix_measured enc_mc[] = {{45.7, 3, 15, 0, 0}, {43.2, 1, 15, 0, 0}};
    assert_int_equal(ws_mix_measured(&m, 30, enc_mc, 2, &o, NULL), 0);
    NEAR(m.dispatch.makespan, 45.7);
    const struct ws_mix_measured s1[] = {{19.5, 15, 15, 0, 0}, {62.4, 45, 45, 0, 0}};
    assert_int_equal(ws_mix_measured(&m, 30, s1, 2, &o, NULL), 0);
    NEAR(m.dispatch.makespan, 81.9);
    NEAR(ws_mix_block_time(&s1[1], 30, &o), 31.2);
    o = (struct ws_mix_options){.occupancy = 2, .model = WS_DISPATCH_OVERLAP};
    NEAR(ws_mix_block_time(&s1[1], 30, &o), 62.4);
    o.model = WS_DISPATCH_BOUNDED;
    struct ws_mix_measured known = s1[1];
    NEAR(ws_mix_block_time(&known, 30, &o), 31.2); /* no counts: as additive */
    known.issue_time = 20; /* two blocks issue for 40 of 62.4: they overlapped */
    NEAR(ws_mix_block_time(&known, 30, &o), 62.4);
    known.issue_time = 31.2; /* issue slots were the limit: between 31.2 and 62.4 */
    NEAR(ws_mix_block_time(&known, 30, &o), 31.2 * sqrt(2));
    o.occupancy = 0;
    assert_int_equal(ws_mix_measured(&m, 30, s1, 2, &o, NULL), -EINVAL);
    ws_mix_deinit(&m);
}

static void mix_refuses(void **state)
{
    const struct ws_mwp_gpu *g = ws_mwp_gpu_find("TeslaC1060");
    struct ws_mix m = WS_MIX_NULL;
    struct ws_mix_options o = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    struct ws_mix_part parts[2] = {two_parts[0], two_parts[1]};
    assert_int_equal(ws_mix_predict(&m, g, parts, 0, &o, NULL), -EINVAL);
    assert_int_equal(ws_mix_predict(&m, g, parts, WS_MIX_MAX_PARTS + 1, &o, NULL), -EINVAL);
    parts[1].kernel.comp_insts = NAN;
    assert_int_equal(ws_mix_predict(&m, g, parts, 2, &o, &d), -EINVAL);
    assert_int_equal(d.n, 2);
    assert_non_null(strstr(d.v[0].text, "comp_insts"));
    assert_non_null(strstr(d.v[1].text, "kernel 1 of 2"));
    ws_diags_deinit(&d);
    parts[1] = two_parts[1];
    parts[1].correction = -1;
    assert_int_equal(ws_mix_predict(&m, g, parts, 2, &o, NULL), -EINVAL);
    for (uint64_t i = 1; i < 10; i++) { /* no memory: said, nothing lost */
        struct ws_mix fresh = WS_MIX_NULL;
        ws_alloc_fail_after(i);
        int r = ws_mix_predict(&fresh, g, two_parts, 2, &o, NULL);
        ws_alloc_fail_after(0);
        assert_true(r == 0 || r == -ENOMEM);
        ws_mix_deinit(&fresh);
    }
    ws_mix_deinit(&m);
}

static void energy_verdicts(void **state)
{
    assert_false(ws_mix_saves(33.5, 25.6 + 7.03, INFINITY)); /* Table 2 */
    assert_true(ws_mix_saves(26.7, 12.2 + 19.2, INFINITY));  /* Table 3 */
    assert_false(ws_mix_saves(10, 10, INFINITY));            /* ties reject */
    assert_false(ws_mix_saves(10, 12, 10));
    assert_false(ws_mix_saves(NAN, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(isca09_example),
        cmocka_unit_test(mixed_c1060),
        cmocka_unit_test(recalled_rule_is_below_issue_time),
        cmocka_unit_test(no_memory_and_case1),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(derived_gpu),
        cmocka_unit_test(scenarios),
        cmocka_unit_test(additive_and_overlap),
        cmocka_unit_test(dispatch_edges),
        cmocka_unit_test(dispatch_keeps_all_work),
        cmocka_unit_test(type1),
        cmocka_unit_test(type2),
        cmocka_unit_test(type2_repetitions),
        cmocka_unit_test(counted_is_dealt),
        cmocka_unit_test(measured_mixes),
        cmocka_unit_test(mix_refuses),
        cmocka_unit_test(energy_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
