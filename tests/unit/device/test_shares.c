// SPDX-License-Identifier: Apache-2.0
/* What clients are charged in mixes of two to six, against the Shapley value of the energy: what
 * each adds to what the others take, averaged over all orders in which they may have come. Here it
 * is computed from its definition, over all sets of clients, with the SMs that issue as
 * models/event_power.h has them. And what launches count that the meter hears of late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "device/soft/timeline/meter.h"
#include "device/soft/timeline/power.h"
#include "device/soft/timeline/timing.h"

enum { CLIENTS = 6, LOADS = 60, ROUNDS = 400 };

static const struct ws_gpu_spec gpu = {.name = "toy",
                                       .n_sms = 46,
                                       .schedulers_per_sm = 4,
                                       .max_threads_per_sm = 2048,
                                       .max_blocks_per_sm = 32,
                                       .regs_per_sm = 65536,
                                       .shared_bytes_per_sm = 65536,
                                       .memory_bytes_per_s = UINT64_C(448000000000),
                                       .copy_bytes_per_s = UINT64_C(1000000000),
                                       .static_mw = 46000,
                                       .idle_mw_per_sm = 445,
                                       .dynamic_mw_per_sm = 1795};
#define ISSUE_MW 828.0 /* of an SM that issues in each clock: the GTX 1080 Ti's */

struct mix {
    uint32_t n_clients, n;
    struct ws_meter_load loads[LOADS];
};

static uint32_t below(unsigned *seed, uint32_t n)
{
    return (uint32_t)rand_r(seed) % n;
}

/* Each client runs one operation after another, with pauses: kernels on a range of SMs, and
 * copies. */
static void make(struct mix *x, unsigned *seed)
{
    *x = (struct mix){.n_clients = 2 + below(seed, CLIENTS - 1)};
    for (uint32_t c = 0; c < x->n_clients; c++) {
        uint64_t at = below(seed, 1000000);
        uint32_t n_sms = 1 + below(seed, gpu.n_sms), own = below(seed, 2) * below(seed, 40000);
        double per_clock = below(seed, 3) * (double)below(seed, 1000) / 1000;
        for (int i = 0; i < LOADS / CLIENTS; i++) {
            struct ws_meter_load *l = &x->loads[x->n++];
            uint64_t ns = 1000 + below(seed, 1000000);
            *l = (struct ws_meter_load){.owner = c + 1, .start_ns = at, .end_ns = at + ns};
            at += ns + below(seed, 2) * below(seed, 500000);
            if (!below(seed, 5))
                continue;
            l->dynamic_mw_per_sm = gpu.dynamic_mw_per_sm;
            l->own_mw = own;
            if (per_clock > 0)
                l->issue = (struct ws_issue){ISSUE_MW, exp(-2 * per_clock)};
            uint32_t first = below(seed, gpu.n_sms - n_sms + 1);
            for (uint32_t sm = first; sm < first + n_sms; sm++)
                ws_sm_set_add(&l->sms, sm);
        }
    }
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Warp instructions in a clock of an SM. */
static double per_clock(const struct ws_meter_load *l)
{
    return l->issue.mw_per_sm > 0 ? -log(l->issue.quiet) / 2 : 0;
}

/* Power at @at with the clients in @set alone; 0: nothing of them runs. */
static double power_mw(const struct mix *x, uint64_t at, uint32_t set)
{
    struct ws_sm_set sms = {0};
    double own = 0, issued[WS_SM_MAX] = {0}; /* on each SM, of all */
    bool any = false;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct ws_meter_load *l = &x->loads[i];
        if (l->start_ns > at || l->end_ns <= at || !(set >> (l->owner - 1) & 1))
            continue;
        any = true;
        own += l->own_mw;
        ws_sm_set_join(&sms, &l->sms);
        for (uint32_t sm = 0; sm < gpu.n_sms; sm++)
            issued[sm] += ws_sm_set_has(&l->sms, sm) ? per_clock(l) : 0;
    }
    for (uint32_t sm = 0; sm < gpu.n_sms; sm++)
        own += ISSUE_MW * (1 - exp(-2 * issued[sm]));
    return any ? (double)ws_power_mw(&gpu, sms.n) + own : 0;
}

/* The energy of each client: Shapley's; by the SMs of what runs; alone. */
struct shares {
    double shapley[CLIENTS], by_sms[CLIENTS], alone[CLIENTS];
};

static double weight(int n, int before) /* of all orders: before! (n - before - 1)! / n! */
{
    return tgamma(before + 1) * tgamma(n - before) / tgamma(n + 1);
}

static void shapley(const struct mix *x, struct shares *ret)
{
    uint64_t edges[2 * LOADS];
    *ret = (struct shares){0};
    for (uint32_t i = 0; i < x->n; i++) {
        edges[2 * i] = x->loads[i].start_ns;
        edges[2 * i + 1] = x->loads[i].end_ns;
    }
    qsort(edges, 2 * (size_t)x->n, sizeof(*edges), by_time);
    for (uint32_t e = 0; e + 1 < 2 * x->n; e++) {
        double mw[1 << CLIENTS], s = (double)(edges[e + 1] - edges[e]) * 1e-9, sms[CLIENTS] = {0};
        double sum = 0, n_runs = 0, runs[CLIENTS] = {0};
        if (!(s > 0))
            continue;
        for (uint32_t set = 0; set < 1u << x->n_clients; set++)
            mw[set] = power_mw(x, edges[e], set);
        for (uint32_t i = 0; i < x->n; i++)
            if (x->loads[i].start_ns <= edges[e] && x->loads[i].end_ns > edges[e]) {
                sms[x->loads[i].owner - 1] += x->loads[i].sms.n;
                sum += x->loads[i].sms.n;
                runs[x->loads[i].owner - 1]++;
                n_runs++;
            }
        for (uint32_t c = 0; c < x->n_clients; c++) {
            for (uint32_t set = 0; set < 1u << x->n_clients; set++)
                if (!(set >> c & 1))
                    ret->shapley[c] += weight((int)x->n_clients, __builtin_popcount(set)) *
                                       (mw[set | 1u << c] - mw[set]) * s;
            ret->alone[c] += mw[1u << c] * s;
            double all = mw[(1u << x->n_clients) - 1];
            ret->by_sms[c] += sum > 0      ? all * sms[c] / sum * s
                              : n_runs > 0 ? all * runs[c] / n_runs * s
                                           : 0;
        }
    }
}

static int by_end(const void *a, const void *b)
{
    const struct ws_meter_load *const *x = a, *const *y = b;
    return ((*x)->end_ns > (*y)->end_ns) - ((*x)->end_ns < (*y)->end_ns);
}

/* What the meter charges each, in mJ. */
static void charged(struct mix *x, double ret[CLIENTS])
{
    struct ws_meter *m;
    struct ws_meter_load *order[LOADS];
    struct ws_meter_totals t;
    uint64_t sum = 0, alone;
    assert_int_equal(ws_meter_new(&m, &gpu, &(struct ws_device_options){0}, 0), 0);
    for (uint32_t i = 0; i < x->n; i++) {
        order[i] = &x->loads[i];
        ws_meter_begin(m, 0, &x->loads[i]);
    }
    for (int c = 0; c < CLIENTS; c++)
        ret[c] = 0;
    qsort(order, x->n, sizeof(*order), by_end);
    for (uint32_t i = 0; i < x->n; i++) {
        uint64_t uj = ws_meter_end(m, order[i], &alone);
        ret[order[i]->owner - 1] += (double)uj / 1e3;
        sum += uj;
    }
    ws_meter_totals(m, order[x->n - 1]->end_ns, &t);
    assert_in_range(t.energy_uj - t.idle_energy_uj - sum, 0, 1); /* all of it, and no more */
    ws_meter_free(m);
}

/* What the timeline charges each where the clock does not run, in mJ; its launches do nothing of
 * their own. Gives all loads the times that it has for them. Who was charged too much when others
 * had not come yet has that back from an operation behind all. */
static void timed_charges(struct mix *x, double ret[CLIENTS])
{
    struct ws_timing *t;
    struct ws_timed r;
    struct ws_timing_totals sum;
    struct ws_cost cost[WS_SM_MAX];
    uint64_t uj = 0;
    assert_int_equal(ws_timing_new(&t, &gpu), 0);
    for (uint32_t i = 0; i < x->n + x->n_clients; i++) {
        bool last = i >= x->n;
        uint64_t last_ns = UINT64_C(100000000) * (i + 1);
        struct ws_meter_load end = {
            .owner = i - x->n + 1, .start_ns = last_ns, .end_ns = last_ns + 50000000};
        struct ws_meter_load *l = last ? &end : &x->loads[i];
        uint64_t ns = l->end_ns - l->start_ns;
        if (last)
            ws_sm_set_add(&end.sms, 0);
        struct ws_timing_kernel k = {.owner = l->owner,
                                     .ready_ns = l->start_ns,
                                     .need = {.warps = 1},
                                     .blocks_per_sm = 1,
                                     .sms = l->sms,
                                     .n_blocks = l->sms.n,
                                     .blocks = cost,
                                     .dram_share = 1};
        for (uint32_t b = 0; b < l->sms.n; b++)
            cost[b] = (struct ws_cost){.latency_ns = (double)ns};
        if (l->sms.n)
            ws_timing_kernel(t, &k, &r);
        else
            ws_timing_copy(t, (enum ws_engine)((l->owner - 1) % _WS_ENGINE_N), l->owner,
                           l->start_ns, ns, &r);
        l->start_ns = r.start_ns;
        l->end_ns = r.end_ns;
        l->own_mw = 0;
        l->issue = (struct ws_issue){0};
        ret[l->owner - 1] += (double)r.energy_uj / 1e3;
        uj += r.energy_uj;
        if (last)
            ret[l->owner - 1] -= (double)(ws_power_mw(&gpu, 1) * ns) / 1e9;
    }
    ws_timing_totals(t, &sum);
    assert_in_range(sum.energy_uj + 1 - uj, 0, 2 + x->n); /* all of it, but for what is rounded */
    ws_timing_free(t);
}

static void timeline_within_five_percent(void **state)
{
    (void)state;
    double worst = 0;
    unsigned seed = 1;
    for (int r = 0; r < ROUNDS; r++) {
        struct mix x;
        struct shares s;
        double paid[CLIENTS] = {0}, sum = 0;
        make(&x, &seed);
        timed_charges(&x, paid);
        shapley(&x, &s);
        for (uint32_t c = 0; c < x.n_clients; c++)
            sum += s.shapley[c];
        for (uint32_t c = 0; c < x.n_clients; c++)
            worst = fmax(worst, fabs(paid[c] - s.shapley[c]) / sum);
    }
    print_message("where the clock does not run: at most %.2f %%\n", 100 * worst);
    assert_true(worst <= 0.05);
}

static void within_five_percent(void **state)
{
    (void)state;
    double worst = 0, by_sms = 0, alone = 0;
    unsigned seed = 1;
    for (int r = 0; r < ROUNDS; r++) {
        struct mix x;
        struct shares s;
        double paid[CLIENTS], sum = 0;
        make(&x, &seed);
        shapley(&x, &s);
        charged(&x, paid);
        for (uint32_t c = 0; c < x.n_clients; c++)
            sum += s.shapley[c];
        for (uint32_t c = 0; c < x.n_clients; c++) {
            worst = fmax(worst, fabs(paid[c] - s.shapley[c]) / sum);
            by_sms = fmax(by_sms, fabs(s.by_sms[c] - s.shapley[c]) / sum);
            alone = fmax(alone, paid[c] / s.alone[c]);
        }
    }
    print_message(
        "%d mixes of 2 to %d clients: charges are at most %.2f %% of the sum off Shapley's; "
        "by the number of SMs it would be %.1f %%; at most %.2f of what a client takes "
        "alone\n",
        ROUNDS, CLIENTS, 100 * worst, 100 * by_sms, alone);
    assert_true(worst <= 0.05);
    assert_true(alone <= 1.001); /* nobody pays more than alone */
}

/* A launch that the host took too long for is known when its time has passed. */
static void late_launches_are_busy_time(void **state)
{
    (void)state;
    struct ws_meter *m;
    struct ws_meter_totals t;
    uint64_t alone;
    struct ws_meter_load a = {.owner = 1, .start_ns = 1000, .end_ns = 5000},
                         late = {.owner = 2, .start_ns = 3000, .end_ns = 8000},
                         copy = {.owner = 3, .start_ns = 8000, .end_ns = 9000};
    ws_sm_set_add(&a.sms, 0);
    ws_sm_set_add(&late.sms, 1);
    assert_int_equal(ws_meter_new(&m, &gpu, &(struct ws_device_options){0}, 0), 0);
    ws_meter_begin(m, 0, &a);
    ws_meter_totals(m, 10000, &t);
    assert_int_equal(t.busy_ns, 4000);
    ws_meter_begin(m, 10000, &late);
    ws_meter_begin(m, 10000, &copy);
    ws_meter_totals(m, 10000, &t);
    assert_int_equal(t.busy_ns, 7000);
    assert_int_equal(t.sm_busy_ns, 9000);
    (void)ws_meter_end(m, &a, &alone);
    (void)ws_meter_end(m, &late, &alone);
    (void)ws_meter_end(m, &copy, &alone);
    ws_meter_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(within_five_percent),
                                       cmocka_unit_test(timeline_within_five_percent),
                                       cmocka_unit_test(late_launches_are_busy_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
