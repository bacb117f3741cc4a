// SPDX-License-Identifier: Apache-2.0
/* The modelled timeline: what must hold whatever the constants are, and a few exact values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "device/catalog.h"
#include "device/soft/timeline/power.h"
#include "device/soft/timeline/timing.h"
#include "tests/lib/cpu_time.h"

struct fixture {
    struct ws_catalog catalog;
    struct ws_gpu_spec spec; /* rtx3070 */
    struct ws_timing *t;
    struct ws_cost blocks[4096];
};

static int setup(void **state)
{
    struct fixture *f = ws_alloc(sizeof(*f));
    *state = f;
    const char *dir = getenv("srcdir");
    char path[512];
    snprintf(path, sizeof(path), "%s/conf/gpu.d", dir ? dir : ".");
    if (ws_catalog_load(&f->catalog, path, NULL))
        return -1;
    f->spec = *ws_catalog_find(&f->catalog, "rtx3070");
    return ws_timing_new(&f->t, &f->spec);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_timing_free(f->t);
    ws_catalog_deinit(&f->catalog);
    free(f);
    return 0;
}

static void fresh(struct fixture *f)
{
    ws_timing_free(f->t);
    f->t = NULL;
    assert_int_equal(ws_timing_new(&f->t, &f->spec), 0);
}

static struct ws_sm_set first_sms(uint32_t n)
{
    struct ws_sm_set s = {.n = n};
    for (uint32_t i = 0; i < n; i++)
        s.bits[i / 64] |= UINT64_C(1) << (i % 64);
    return s;
}

/* @n equal blocks of 256 threads, at most 6 on an SM. */
static struct ws_timed run(struct fixture *f, uint64_t ready_ns, uint32_t n, struct ws_cost c,
                           struct ws_sm_set sms)
{
    for (uint32_t i = 0; i < n; i++)
        f->blocks[i] = c;
    struct ws_timing_kernel k = {.ready_ns = ready_ns,
                                 .need = {8, 8192, 1024},
                                 .blocks_per_sm = 6,
                                 .sms = sms,
                                 .n_blocks = n,
                                 .blocks = f->blocks,
                                 .dram_share = 1};
    struct ws_timed r;
    ws_timing_kernel(f->t, &k, &r);
    assert_true(r.start_ns >= ready_ns);
    assert_true(r.end_ns > r.start_ns);
    return r;
}

static uint64_t alone(struct fixture *f, uint32_t n, struct ws_cost c, uint32_t n_sms)
{
    fresh(f);
    struct ws_timed r = run(f, 0, n, c, first_sms(n_sms));
    return r.end_ns - r.start_ns;
}

static const struct ws_cost compute = {.issue_ns = 10000, .latency_ns = 12000, .bytes = 1000};
static const struct ws_cost waiting = {.issue_ns = 100, .latency_ns = 20000, .bytes = 1000};
static const struct ws_cost memory = {.issue_ns = 1000, .latency_ns = 2000, .bytes = 1 << 20};

static bool about(uint64_t x, double want)
{
    return (double)x > want * 0.98 && (double)x < want * 1.02;
}

static void test_known_times(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alone(f, 1, compute, 46), 12000);        /* latency alone */
    assert_true(about(alone(f, 46 * 6, compute, 46), 60000)); /* six share an SM's issue capacity */
    assert_true(about(alone(f, 46 * 60, compute, 46), 600000));
    assert_int_equal(alone(f, 46 * 6, waiting, 46), 20000); /* six hide one another's latency */
    assert_true(about(alone(f, 460, memory, 46), 460.0 * (1 << 20) / 448)); /* 448 bytes a ns */
}

static void test_monotone_in_sms_and_work(void **state)
{
    struct fixture *f = *state;
    const struct ws_cost *kinds[] = {&compute, &waiting, &memory};
    for (int k = 0; k < 3; k++) {
        uint64_t before = UINT64_MAX;
        for (uint32_t m = 1; m <= 46; m += 3) {
            uint64_t ns = alone(f, 960, *kinds[k], m);
            assert_true(ns <= before);
            before = ns;
        }
        uint64_t shorter = 0;
        for (uint32_t n = 1; n < 4096; n += 397) {
            uint64_t ns = alone(f, n, *kinds[k], 46);
            assert_true(ns >= shorter);
            shorter = ns;
        }
    }
    assert_true(about(alone(f, 960, compute, 1), 960 * 10000.0));
    assert_true(about(alone(f, 960, compute, 2), 480 * 10000.0));
}

static void test_uneven_blocks_fill_gaps(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++)
        f->blocks[i] = (struct ws_cost){.issue_ns = i ? 1000 : 50000, .latency_ns = 1000};
    struct ws_timing_kernel k = {.need = {48, 0, 0},
                                 .blocks_per_sm = 1,
                                 .sms = first_sms(2),
                                 .n_blocks = 100,
                                 .blocks = f->blocks,
                                 .dram_share = 1};
    struct ws_timed r;
    ws_timing_kernel(f->t, &k, &r);
    /* SM 0 works at the long block while SM 1 takes 50 of the short; then both take the rest */
    assert_in_range(r.end_ns - r.start_ns, 74000, 76000);
}

static void test_kernels_that_fit_together_overlap(void **state)
{
    struct fixture *f = *state;
    struct ws_timed a = run(f, 0, 46, waiting, (struct ws_sm_set){0});
    struct ws_timed b = run(f, 0, 46, waiting, (struct ws_sm_set){0});
    assert_int_equal(a.start_ns, b.start_ns);
    assert_true(b.end_ns < a.end_ns + 2000);

    fresh(f); /* disjoint SM sets */
    struct ws_sm_set rest = {.n = 23,
                             .bits = {((UINT64_C(1) << 46) - 1) & ~((UINT64_C(1) << 23) - 1)}};
    a = run(f, 0, 500, compute, first_sms(23));
    b = run(f, 0, 500, compute, rest);
    assert_int_equal(a.start_ns, b.start_ns);
    assert_int_equal(a.end_ns, b.end_ns);
}

static void test_full_kernels_do_not_overlap(void **state)
{
    struct fixture *f = *state;
    uint64_t one = alone(f, 46 * 60, compute, 46);
    fresh(f);
    run(f, 0, 46 * 60, compute, (struct ws_sm_set){0});
    struct ws_timed b = run(f, 0, 46 * 60, compute, (struct ws_sm_set){0});
    assert_true(b.end_ns >= 2 * one);
    assert_true(b.end_ns <= 2 * one + one / 20);

    fresh(f); /* memory is shared too */
    one = alone(f, 460, memory, 46);
    fresh(f);
    run(f, 0, 460, memory, first_sms(23));
    struct ws_sm_set rest = {.n = 23,
                             .bits = {((UINT64_C(1) << 46) - 1) & ~((UINT64_C(1) << 23) - 1)}};
    b = run(f, 0, 460, memory, rest);
    assert_true(b.end_ns >= 2 * one - one / 10);
}

static void test_together_takes_less_than_one_after_another(void **state)
{
    struct fixture *f = *state;
    uint64_t serial = 0, ready = 0;
    for (int i = 0; i < 8; i++) {
        struct ws_timed r = run(f, ready, 20, compute, (struct ws_sm_set){0});
        ready = serial = r.end_ns;
    }
    fresh(f);
    uint64_t together = 0;
    for (int i = 0; i < 8; i++) {
        struct ws_timed r = run(f, 0, 20, compute, (struct ws_sm_set){0});
        together = WS_MAX(together, r.end_ns);
    }
    assert_true(together * 2 < serial);
}

static void test_dependencies_and_gaps(void **state)
{
    struct fixture *f = *state;
    struct ws_timed a = run(f, 1000000, 46 * 6, compute, (struct ws_sm_set){0});
    struct ws_timed b = run(f, a.end_ns, 46 * 6, compute, (struct ws_sm_set){0});
    assert_true(b.start_ns >= a.end_ns);
    struct ws_timed early =
        run(f, 0, 46 * 6, compute, (struct ws_sm_set){0}); /* into the gap before a */
    assert_true(early.end_ns <= a.start_ns);
    struct ws_timed t;
    ws_timing_copy(f->t, WS_ENGINE_TO_DEVICE, 1, 0, 24000, &t);
    assert_int_equal(t.end_ns, 8000 + 1000);
    ws_timing_copy(f->t, WS_ENGINE_TO_DEVICE, 1, 0, 24000, &t); /* the same engine: after it */
    assert_int_equal(t.start_ns, 9000);
    ws_timing_copy(f->t, WS_ENGINE_FROM_DEVICE, 1, 0, 24000, &t); /* the other direction */
    assert_int_equal(t.start_ns, 0);
    ws_timing_copy(f->t, WS_ENGINE_TO_DEVICE, 1, 100000, 24000, &t);
    ws_timing_copy(f->t, WS_ENGINE_TO_DEVICE, 1, 0, 24000, &t); /* fits between */
    assert_int_equal(t.start_ns, 18000);
    assert_int_equal(ws_timing_now_ns(f->t), b.end_ns);
}

static void test_power_is_eq_2(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ws_power_mw(&f->spec, 0), 46000);
    assert_int_equal(ws_power_mw(&f->spec, 46), 46000 + 46 * 1795);
    assert_int_equal(ws_power_mw(&f->spec, 6), 46000 + 6 * 1795 + 40 * 445);
    struct ws_timed r =
        run(f, 0, 60, (struct ws_cost){.issue_ns = 1e6, .latency_ns = 1e6}, first_sms(6));
    struct ws_timing_totals t;
    ws_timing_totals(f->t, &t);
    uint64_t ns = r.end_ns - r.start_ns;
    assert_int_equal(r.energy_uj, (46000 + 6 * 1795 + 40 * 445) * ns / 1000000);
    assert_int_equal(t.energy_uj, r.energy_uj);
    assert_int_equal(t.busy_ns, ns);
    assert_int_equal(t.sm_busy_ns, 6 * ns);
    assert_int_equal(t.power_mw, 46000 + 6 * 1795 + 40 * 445);
}

/* What a launch is charged is no measure of the GPU's power: one that runs beside a copy of the
 * same owner, which is charged static power, costs less than that. What the whole GPU takes while a
 * launch has it alone is the same each time. */
static void test_power_of_a_launch_alone(void **state)
{
    struct fixture *f = *state;
    const struct ws_cost c = {.issue_ns = 1000, .latency_ns = 1000};
    struct ws_timed a = run(f, 0, 60, c, first_sms(6)), copy;
    uint64_t mw = 46000 + 6 * 1795 + 40 * 445, ns = a.end_ns - a.start_ns;
    assert_in_range(a.alone_uj, mw * ns / 1000000, mw * ns / 1000000);
    uint64_t bytes = 100 * f->spec.copy_bytes_per_s / 1000000; /* 100 us */
    ws_timing_copy(f->t, WS_ENGINE_TO_DEVICE, 0, a.end_ns, bytes, &copy);
    assert_int_equal(copy.alone_uj, copy.energy_uj);
    struct ws_timed beside = run(f, copy.start_ns, 60, c, first_sms(6));
    assert_true(beside.end_ns < copy.end_ns);
    assert_true(beside.energy_uj < 46000 * ns / 1000000);
    assert_int_equal(beside.alone_uj, 0);
    struct ws_timed again = run(f, copy.end_ns, 60, c, first_sms(6));
    assert_int_equal(again.alone_uj, a.alone_uj);
    ws_timing_copy(f->t, WS_ENGINE_FROM_DEVICE, 0, again.start_ns, bytes, &copy);
    assert_true(copy.start_ns < again.end_ns);
    assert_int_equal(copy.alone_uj, 0);
}

/* Sum over operations == device; device == Eq. 2 integrated over the spans, by an independent sum
 * on a raster of edges. */
static void test_energy_adds_up(void **state)
{
    enum { N = 200 };
    struct fixture *f = *state;
    struct {
        struct ws_timed t;
        uint32_t first, n;
        bool copy;
    } op[N];
    uint64_t seed = 7, sum = 0, edges[2 * N];
    for (int i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(seed >> 33);
        uint64_t ready = (r % 100) * 30000;
        op[i].copy = r % 5 == 0;
        op[i].first = r % 40;
        op[i].n = 1 + r % 6;
        if (op[i].copy) {
            ws_timing_copy(f->t, r % 3, r % 7, ready, r % 1000000, &op[i].t);
        } else { /* exactly n blocks, too large to share an SM: each of the n SMs is used */
            struct ws_sm_set s = {.n = op[i].n};
            s.bits[0] = ((UINT64_C(1) << op[i].n) - 1) << op[i].first;
            for (uint32_t b = 0; b < op[i].n; b++)
                f->blocks[b] =
                    (struct ws_cost){.issue_ns = 1000 + r % 50000, .latency_ns = 1000 + r % 50000};
            struct ws_timing_kernel k = {.owner = r % 7,
                                         .ready_ns = ready,
                                         .need = {40, 0, 0},
                                         .blocks_per_sm = 1,
                                         .sms = s,
                                         .n_blocks = op[i].n,
                                         .blocks = f->blocks,
                                         .dram_share = 1};
            ws_timing_kernel(f->t, &k, &op[i].t);
        }
        sum += op[i].t.energy_uj;
        edges[2 * i] = op[i].t.start_ns;
        edges[2 * i + 1] = op[i].t.end_ns;
    }
    struct ws_timing_totals t;
    ws_timing_totals(f->t, &t);
    assert_true(t.stored_uj >= 0); /* charged too early, to be given back: the rest is exact */
    assert_in_range((int64_t)sum - t.stored_uj, t.energy_uj - 1, t.energy_uj + 1);
    for (int i = 1; i < 2 * N; i++)
        for (int j = i; j && edges[j - 1] > edges[j]; j--) {
            uint64_t x = edges[j];
            edges[j] = edges[j - 1];
            edges[j - 1] = x;
        }
    double pj = 0;
    uint64_t busy = 0;
    for (int e = 0; e + 1 < 2 * N; e++) {
        uint64_t mask = 0;
        bool any = false;
        for (int i = 0; i < N; i++)
            if (op[i].t.start_ns <= edges[e] && op[i].t.end_ns > edges[e]) {
                any = true;
                mask |= op[i].copy ? 0 : ((UINT64_C(1) << op[i].n) - 1) << op[i].first;
            }
        uint64_t ns = edges[e + 1] - edges[e];
        pj += any ? (double)ws_power_mw(&f->spec, (uint32_t)__builtin_popcountll(mask)) * (double)ns
                  : 0;
        busy += mask ? ns : 0;
    }
    assert_true(about(t.energy_uj, pj / 1e6));
    assert_int_equal(t.busy_ns, busy);
}

/* Two clients with equal work beside each other pay the same, whoever is entered first; one alone
 * pays for all. */
static void test_energy_is_shared_fairly(void **state)
{
    struct fixture *f = *state;
    uint64_t paid[3] = {0}, ready[3] = {0};
    const struct ws_cost c = {.issue_ns = 1e6, .latency_ns = 4e6};
    for (int i = 0; i < 40; i++)
        for (uint64_t who = 1; who <= 2; who++) {
            f->blocks[0] = c;
            struct ws_timing_kernel k = {.owner = who,
                                         .ready_ns = ready[who],
                                         .need = {8, 0, 0},
                                         .blocks_per_sm = 6,
                                         .sms = first_sms(1),
                                         .n_blocks = 1,
                                         .blocks = f->blocks,
                                         .dram_share = 1};
            struct ws_timed r;
            ws_timing_kernel(f->t, &k, &r);
            ready[who] = r.end_ns;
            paid[who] += r.energy_uj;
        }
    assert_int_equal(ready[1], ready[2]);
    assert_true(about(paid[1], (double)paid[2] * 1.0127) ||
                about(paid[1], (double)paid[2])); /* but for one operation in 80 */
    struct ws_timing_totals t;
    ws_timing_totals(f->t, &t);
    assert_in_range((int64_t)(paid[1] + paid[2]) - t.stored_uj, t.energy_uj - 1, t.energy_uj + 1);
    assert_true(about(t.energy_uj, 40 * 4e6 * (double)ws_power_mw(&f->spec, 1) / 1e6));
}

static void test_many_clients_come_and_go(void **state)
{
    struct fixture *f = *state;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        f->blocks[0] = compute;
        struct ws_timing_kernel k = {.owner = i,
                                     .ready_ns = i / 3 * 10000,
                                     .need = {8, 0, 0},
                                     .blocks_per_sm = 6,
                                     .n_blocks = 1,
                                     .blocks = f->blocks,
                                     .dram_share = 1};
        struct ws_timed r;
        ws_timing_kernel(f->t, &k, &r);
        sum += r.energy_uj;
    }
    struct ws_timing_totals t;
    ws_timing_totals(f->t, &t);
    assert_in_range((int64_t)sum - t.stored_uj, t.energy_uj - 1, t.energy_uj + 1);
}

/* Very many run beside each other, and none begins or ends when another does. The time of pricing
 * one grows with their number at most, not with its square, and all energy is charged to somebody.
 * Between the two, since other work on the machine takes caches, and thereby time, from either. */
static void test_many_beside_each_other(void **state)
{
    struct fixture *f = *state;
    enum { FEW = 32, MANY = 256, CALLS = 40, N = MANY + CALLS };
    uint64_t sum = 0, took_ns[2] = {0};
    for (uint64_t i = 0; i < N; i++) {
        f->blocks[0] = (struct ws_cost){.issue_ns = 1e3, .latency_ns = 5e6 + (double)i * 101};
        struct ws_timing_kernel k = {.owner = i % 4,
                                     .ready_ns = i * 1000,
                                     .need = {1, 1024, 0},
                                     .blocks_per_sm = 16,
                                     .sms = first_sms(1 + (uint32_t)i % 46),
                                     .n_blocks = 1,
                                     .blocks = f->blocks,
                                     .dram_share = 1};
        struct ws_timed r;
        uint64_t before = cpu_ns();
        ws_timing_kernel(f->t, &k, &r);
        if (i >= MANY || i - FEW < CALLS)
            took_ns[i >= MANY] += cpu_ns() - before;
        sum += r.energy_uj;
    }
    struct ws_timing_totals t;
    ws_timing_totals(f->t, &t);
    assert_in_range((int64_t)sum - t.stored_uj, t.energy_uj - 1, t.energy_uj + 1);
    print_message("%.3f and %.3f ms\n", (double)took_ns[0] / CALLS / 1e6,
                  (double)took_ns[1] / CALLS / 1e6);
    double growth = (MANY + CALLS / 2) / (double)(FEW + CALLS / 2);
    assert_true((double)took_ns[1] / (double)took_ns[0] < pow(growth, 1.5));
}

static void test_many_operations_stay_bounded(void **state)
{
    struct fixture *f = *state;
    uint64_t ready = 0;
    for (int i = 0; i < 2000; i++)
        ready = run(f, ready, 1, compute, (struct ws_sm_set){0}).end_ns;
    /* what is too far back is forgotten: not before it, and after it no harm */
    struct ws_timed late = run(f, 0, 1, compute, (struct ws_sm_set){0});
    assert_true(late.start_ns > ready / 2);
    assert_true(late.end_ns <= ready);
}

static void test_same_work_same_times(void **state)
{
    struct fixture *f = *state;
    uint64_t first = 0;
    for (int round = 0; round < 2; round++) {
        fresh(f);
        uint64_t hash = 0;
        for (uint32_t i = 0; i < 50; i++) {
            struct ws_timed r =
                run(f, i * 5000, 1 + i * 37 % 300, i & 1 ? compute : memory, first_sms(1 + i % 46));
            hash = hash * 31 + r.start_ns * 7 + r.end_ns + r.energy_uj;
        }
        if (round)
            assert_int_equal(hash, first);
        first = hash;
    }
}

static void test_cost_of_work(void **state)
{
    struct fixture *f = *state;
    struct ws_exec_work w = {.n_warp_insns = {[WS_WORK_FP32] = 1000, [WS_WORK_FP64] = 100}};
    struct ws_cost c = ws_cost_of(&f->spec, 4, 1, &w);
    assert_true(about((uint64_t)(c.issue_ns * 1000),
                      100 * 32 / 2 / 1.725 * 1000)); /* 2 double lanes are the bound */
    struct ws_exec_work more = w;
    more.n_warp_insns[WS_WORK_FP32] *= 20;
    more.n_global_loads = 50;
    more.n_load_sectors = 200;
    struct ws_cost d = ws_cost_of(&f->spec, 4, 1, &more);
    assert_true(d.issue_ns > c.issue_ns && d.latency_ns > c.latency_ns && d.bytes > c.bytes);
    assert_true(ws_cost_dram_share(&f->spec, 1e9, 1e6) <
                0.01);                                        /* a footprint that fits the cache */
    assert_true(ws_cost_dram_share(&f->spec, 1e6, 1e9) == 1); /* all first touches */
    assert_true(ws_cost_dram_share(&f->spec, 1e9, 1e8) > 0.9);
}

/* ---- reservations ---- */

static struct ws_timing_kernel kernel(struct fixture *f, uint64_t ready_ns, uint32_t n,
                                      struct ws_cost c, struct ws_sm_set sms)
{
    for (uint32_t i = 0; i < n; i++)
        f->blocks[i] = c;
    return (struct ws_timing_kernel){.ready_ns = ready_ns,
                                     .need = {8, 8192, 1024},
                                     .blocks_per_sm = 6,
                                     .sms = sms,
                                     .n_blocks = n,
                                     .blocks = f->blocks,
                                     .dram_share = 1};
}

static void test_reserved_as_entered(void **state)
{
    struct fixture *f = *state;
    const struct ws_cost *kinds[] = {&compute, &waiting, &memory};
    for (int i = 0; i < 9; i++) {
        uint32_t n = 1 + 300u * (uint32_t)(i / 3);
        fresh(f);
        struct ws_timed a = run(f, 5000, n, *kinds[i % 3], (struct ws_sm_set){0});
        fresh(f);
        struct ws_reserved r;
        struct ws_timing_kernel k = kernel(f, 5000, n, *kinds[i % 3], (struct ws_sm_set){0});
        assert_int_equal(ws_timing_reserve_kernel(f->t, &k, &r), 0);
        assert_int_equal(r.start_ns, a.start_ns);
        assert_int_equal(r.end_ns, a.end_ns);
        assert_int_equal(r.sms.n, WS_MIN(n, 46));
        struct ws_reserved before = r; /* a cut after the last block was dealt changes nothing */
        double left[4096];
        ws_timing_cut(f->t, &k, r.end_ns - 1, &r, left);
        assert_int_equal(r.end_ns, before.end_ns);
        for (uint32_t b = 0; b < n; b++)
            assert_true(left[b] == 0);
        ws_timing_release(f->t, &r);
    }
}

static void test_cut(void **state)
{
    struct fixture *f = *state;
    struct ws_timing_kernel k = kernel(f, 0, 460, compute, first_sms(10));
    uint64_t whole = 460 / 10 * 10000;
    for (uint64_t at = 0; at < whole + 20000; at += 7001) {
        fresh(f);
        struct ws_reserved r;
        double left[460], paid = 0;
        assert_int_equal(ws_timing_reserve_kernel(f->t, &k, &r), 0);
        uint64_t end = r.end_ns, start = r.start_ns;
        ws_timing_cut(f->t, &k, at, &r, left);
        for (int b = 0; b < 460; b++) {
            assert_true(left[b] == 0 || left[b] == 1);
            assert_true(!b || left[b] >= left[b - 1]); /* the first ones ran */
            paid += 1 - left[b];
        }
        assert_true(r.end_ns >= WS_MIN(at, end) && r.end_ns <= end);
        assert_true(r.end_ns <= WS_MAX(at, start) + 60000); /* six at a time of 10 us each */
        if (at <= start)
            assert_true(paid == 0 && r.end_ns == at && !r.sms.n);
        else
            assert_true(paid * 1000 <= (double)(r.end_ns - start) + 60000 &&
                        (paid + 60) * 1000 >= (double)(r.end_ns - start));
        /* what is free now is free: the next one begins there */
        struct ws_reserved next;
        struct ws_timing_kernel n = kernel(f, r.end_ns, 60, compute, first_sms(10));
        assert_int_equal(ws_timing_reserve_kernel(f->t, &n, &next), 0);
        assert_int_equal(next.start_ns, r.end_ns + f->spec.launch_overhead_ns);
        k = kernel(f, 0, 460, compute, first_sms(10));
    }
}

/* One that stands for several blocks is cut between two of them. */
static void test_cut_inside_a_unit(void **state)
{
    struct fixture *f = *state;
    struct ws_cost c = {.issue_ns = 1000, .latency_ns = 80000, .bytes = 0};
    uint32_t merged[4] = {8, 8, 8, 8};
    double left[4];
    struct ws_reserved r;
    struct ws_timing_kernel k = kernel(f, 0, 4, c, first_sms(4));
    k.merged = merged;
    assert_int_equal(ws_timing_reserve_kernel(f->t, &k, &r), 0);
    uint64_t start = r.start_ns;
    assert_int_equal(r.end_ns, start + 80000);
    ws_timing_cut(f->t, &k, start + 25000, &r, left); /* in the third of eight */
    assert_in_range(r.end_ns, start + 29999, start + 30001);
    for (int i = 0; i < 4; i++)
        assert_true(left[i] > 0.6249 && left[i] < 0.6251);
}

static void test_broken_off(void **state)
{
    struct fixture *f = *state;
    struct ws_reserved r, c;
    struct ws_timing_kernel k = kernel(f, 0, 460, compute, first_sms(10));
    assert_int_equal(ws_timing_reserve_kernel(f->t, &k, &r), 0);
    assert_int_equal(ws_timing_reserve_copy(f->t, WS_ENGINE_TO_DEVICE, 0, 1 << 20, &c), 0);
    ws_timing_break(f->t, 50000, &r);
    ws_timing_break(f->t, 50000, &c);
    assert_int_equal(r.end_ns, 50000);
    assert_int_equal(c.end_ns, 50000);
    ws_timing_break(f->t, 90000, &c); /* it is over */
    assert_int_equal(c.end_ns, 50000);
    ws_timing_release(f->t, &r);
    ws_timing_release(f->t, &c);
    assert_int_equal(ws_timing_reserve_copy(f->t, WS_ENGINE_TO_DEVICE, 0, 0, &c), 0);
    assert_int_equal(c.id, 0);
    ws_timing_release(f->t, &c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_known_times, setup, teardown),
        cmocka_unit_test_setup_teardown(test_monotone_in_sms_and_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_uneven_blocks_fill_gaps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernels_that_fit_together_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_kernels_do_not_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_together_takes_less_than_one_after_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_dependencies_and_gaps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_power_is_eq_2, setup, teardown),
        cmocka_unit_test_setup_teardown(test_power_of_a_launch_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_energy_adds_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_energy_is_shared_fairly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_clients_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_beside_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_operations_stay_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_work_same_times, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reserved_as_entered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_inside_a_unit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cost_of_work, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
