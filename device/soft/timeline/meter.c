// SPDX-License-Identifier: Apache-2.0
/* The meter: energy as device time passes.
 *
 * What an operation uses is known before it starts. So when a moment comes, its power is known; it
 * is integrated and shared out, and does not change afterwards. While kernels run it is Eq. 2
 * (power.h), what each adds of its own, which it pays alone, and the SMs that issue (crowd.h);
 * while copies run alone it is static power. Static power is shared equally by all owners of what
 * runs, what idle SMs take by all that run kernels, and what an SM at work takes more than an idle
 * one by the operations on it. That is the Shapley value. While nothing runs it is static power
 * that no operation is charged for (idle).
 *
 * What an operation adds of its own is negative if its kernel was measured to draw less than Eq. 2
 * says (follow.h). Where several such operations run, the GPU draws no less than any of them draws
 * alone; if that is more than the sum, all that runs pays the difference in equal parts. An
 * operation whose share is negative at its end is charged nothing, and the next ones are charged
 * less by as much.
 *
 * The board draws no more than its limit. If all that runs would draw more, those that began last
 * have lower clocks (timing.c): they pay what the others leave.
 *
 * One case is late: an operation that the clock did not wait for (the limit of stalls, vclock.h)
 * may turn out to have run in the past. For that part it is charged the energy of its SMs and its
 * own, which is added to the GPU's energy.
 *
 * Invariants: energy_pj = idle_pj + rounded_pj + all that was charged, exactly; swept_ns never
 * falls, and nothing before it changes. */
#include "device/soft/timeline/meter.h"

#include <math.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/soft/timeline/power.h"
#include "device/soft/timeline/readings.h"

#define PJ_PER_UJ 1000000

struct ws_meter {
    struct ws_gpu_spec spec;
    uint64_t most_mw;     /* the board's limit */
    pthread_mutex_t lock; /* all below */
    struct ws_list loads;
    bool on;
    uint64_t swept_ns, busy_ns, sm_busy_ns;
    uint64_t busy_to_ns; /* the last moment that busy_ns has */
    unsigned __int128 energy_pj, idle_pj;
    __int128 rounded_pj; /* what the next operations are to pay; negative: are to be spared */
    bool reads;          /* only what `readings` shows may be known outside */
    struct ws_readings readings;
    struct ws_crowd crowd; /* scratch: of the moment looked at last */
};

/* What runs at a moment. */
struct moment {
    struct ws_sm_set sms;
    uint32_t n_loads;
    uint64_t next_ns;    /* when it changes */
    uint64_t mw, eq2_mw; /* eq2_mw: of it, what Eq. 2 says */
    uint64_t lift_mw;    /* of it, what it is above the sum of all its parts */
    bool limited;        /* it would be more, but for the board's limit */
};

int ws_meter_new(struct ws_meter **ret, const struct ws_gpu_spec *spec,
                 const struct ws_device_options *options, uint32_t index)
{
    struct ws_meter *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    m->spec = *spec;
    m->most_mw = ws_power_most_mw(spec);
    m->on = true;
    m->reads = options->meter == WS_METER_NVML;
    if (m->reads)
        ws_readings_init(&m->readings, options->meter_update_ns, options->meter_noise, index);
    pthread_mutex_init(&m->lock, NULL);
    ws_list_init(&m->loads);
    *ret = m;
    return 0;
}

struct ws_meter *ws_meter_free(struct ws_meter *m)
{
    if (m)
        pthread_mutex_destroy(&m->lock);
    free(m);
    return NULL;
}

static bool runs(const struct ws_meter_load *l, uint64_t at_ns)
{
    return l->start_ns <= at_ns && l->end_ns > at_ns;
}

static void look(struct ws_meter *m, uint64_t at_ns, struct moment *ret)
{
    struct ws_gpu_spec spec = {.n_sms = m->spec.n_sms,
                               .static_mw = m->spec.static_mw,
                               .idle_mw_per_sm = m->spec.idle_mw_per_sm};
    int64_t own_mw = 0, least_mw = 0; /* least_mw: what one load draws alone */
    *ret = (struct moment){.next_ns = UINT64_MAX};
    ws_crowd_init(&m->crowd, m->spec.n_sms);
    ws_list_for_each (it, &m->loads) {
        const struct ws_meter_load *l = ws_list_entry(it, struct ws_meter_load, link);
        if (l->start_ns > at_ns)
            ret->next_ns = WS_MIN(ret->next_ns, l->start_ns);
        if (!runs(l, at_ns))
            continue;
        ret->next_ns = WS_MIN(ret->next_ns, l->end_ns);
        ret->n_loads++;
        own_mw += l->own_mw;
        ws_sm_set_join(&ret->sms, &l->sms);
        ws_crowd_join(&m->crowd, l->sms.bits, &l->issue);
        if (l->sms.n) /* clocks were changed while something ran: the higher power counts */
            spec.dynamic_mw_per_sm = WS_MAX(spec.dynamic_mw_per_sm, l->dynamic_mw_per_sm);
        if (l->own_mw < 0)
            least_mw = WS_MAX(least_mw, (int64_t)ws_power_mw(&spec, l->sms.n) + l->own_mw);
    }
    if (!ret->n_loads && !m->on)
        return;
    ret->eq2_mw = ws_power_mw(&spec, ret->sms.n);
    own_mw += llround(ws_crowd_mw(&m->crowd));
    ret->mw = (uint64_t)WS_MAX((int64_t)ret->eq2_mw + own_mw, least_mw);
    ret->lift_mw = (uint64_t)((int64_t)ret->mw - (int64_t)ret->eq2_mw - own_mw);
    uint64_t most_mw = WS_MAX(m->most_mw, ret->eq2_mw + ret->lift_mw);
    ret->limited = ret->mw > most_mw;
    ret->mw = WS_MIN(ret->mw, most_mw);
}

/* Operations of one owner count as one in what does not depend on SMs. */
struct company {
    uint32_t n_owners, n_with_kernels; /* who run anything, or kernels */
    uint16_t users[WS_SM_MAX];         /* operations on each SM */
};

/* Whether @l is the first of its owner's that run, of those with kernels if @kernels. */
static bool is_first(const struct ws_meter *m, const struct ws_meter_load *l, uint64_t at_ns,
                     bool kernels)
{
    ws_list_for_each (it, &m->loads) {
        const struct ws_meter_load *o = ws_list_entry(it, struct ws_meter_load, link);
        if (o->owner == l->owner && runs(o, at_ns) && (!kernels || o->sms.n))
            return o == l;
    }
    return false;
}

static void meet(const struct ws_meter *m, uint64_t at_ns, struct company *ret)
{
    *ret = (struct company){0};
    ws_list_for_each (it, &m->loads) {
        const struct ws_meter_load *l = ws_list_entry(it, struct ws_meter_load, link);
        if (!runs(l, at_ns))
            continue;
        ret->n_owners += is_first(m, l, at_ns, false);
        ret->n_with_kernels += l->sms.n && is_first(m, l, at_ns, true);
        for (uint32_t sm = 0; sm < m->spec.n_sms && l->sms.n; sm++)
            ret->users[sm] += ws_sm_set_has(&l->sms, sm);
    }
}

/* How much of the SMs' power is @l's, in parts of SM_UNIT for each SM. */
#define SM_UNIT UINT64_C(720720) /* that 1 to 16 users share without a rest */
static uint64_t sm_parts(const struct ws_meter *m, const struct company *c,
                         const struct ws_meter_load *l)
{
    uint64_t sum = 0;
    for (uint32_t sm = 0; sm < m->spec.n_sms && l->sms.n; sm++)
        if (ws_sm_set_has(&l->sms, sm))
            sum += SM_UNIT / WS_MAX(c->users[sm], 1);
    return sum;
}

/* Shares out what @ns of the moment took: the Shapley value of its power. An owner's share is what
 * it adds to what others take, on average over all orders in which they may have come. */
static void charge(struct ws_meter *m, uint64_t at_ns, const struct moment *w, uint64_t ns)
{
    unsigned __int128 pj = (unsigned __int128)w->eq2_mw * ns;
    __int128 rest = (__int128)w->mw * ns;
    unsigned __int128 awake = WS_MIN((unsigned __int128)m->spec.static_mw * ns, pj), idle = 0;
    __int128 room = (__int128)(w->mw - w->eq2_mw - w->lift_mw) * ns; /* if it is limited */
    struct company c = {0};
    if (w->sms.n)
        idle = WS_MIN((unsigned __int128)m->spec.n_sms * m->spec.idle_mw_per_sm * ns, pj - awake);
    if (w->n_loads > 1)
        meet(m, at_ns, &c);
    ws_list_for_each (it, &m->loads) {
        struct ws_meter_load *l = ws_list_entry(it, struct ws_meter_load, link);
        if (!runs(l, at_ns))
            continue;
        unsigned __int128 share = pj;
        if (w->n_loads > 1) {
            l->shared = true;
            share = is_first(m, l, at_ns, false) ? awake / WS_MAX(c.n_owners, 1u) : 0;
            if (l->sms.n && is_first(m, l, at_ns, true))
                share += idle / WS_MAX(c.n_with_kernels, 1u);
            if (l->sms.n)
                share +=
                    (pj - awake - idle) * sm_parts(m, &c, l) / (SM_UNIT * WS_MAX(w->sms.n, 1u));
        }
        __int128 issue =
            (__int128)llround(ws_crowd_share_mw(&m->crowd, l->sms.bits, &l->issue) * (double)ns);
        __int128 own = (__int128)l->own_mw * ns + issue;
        if (w->limited) /* those that began first are first in the list */
            own = WS_MIN(own, room);
        room -= own;
        __int128 paid = (__int128)share + own + (__int128)w->lift_mw * ns / w->n_loads;
        l->pj += paid;
        rest -= paid;
    }
    m->rounded_pj += rest;
}

/* Some SM is at work then. What was counted already does not count again. */
static void busy(struct ws_meter *m, uint64_t from_ns, uint64_t to_ns)
{
    from_ns = WS_MAX(from_ns, m->busy_to_ns);
    m->busy_ns += to_ns > from_ns ? to_ns - from_ns : 0;
    m->busy_to_ns = WS_MAX(m->busy_to_ns, to_ns);
}

/* Integrates up to @to_ns. */
static void sweep(struct ws_meter *m, uint64_t to_ns)
{
    while (m->swept_ns < to_ns) {
        struct moment w;
        look(m, m->swept_ns, &w);
        uint64_t next = WS_MIN(w.next_ns, to_ns), ns = next - m->swept_ns;
        if (m->reads)
            ws_readings_pass(&m->readings, ns, w.mw);
        unsigned __int128 pj = (unsigned __int128)w.mw * ns;
        m->energy_pj += pj;
        if (w.n_loads)
            charge(m, m->swept_ns, &w, ns);
        else
            m->idle_pj += pj;
        m->sm_busy_ns += w.sms.n * ns;
        m->swept_ns = next;
        if (w.sms.n)
            busy(m, next - ns, next);
    }
}

void ws_meter_begin(struct ws_meter *m, uint64_t now_ns, struct ws_meter_load *l)
{
    pthread_mutex_lock(&m->lock);
    sweep(m, now_ns);
    l->pj = 0;
    l->shared = false;
    uint64_t until = WS_MIN(l->end_ns, m->swept_ns);
    if (l->start_ns < until) {
        uint64_t sm_ns = l->sms.n * (until - l->start_ns);
        int64_t own_mw = l->own_mw + llround(ws_issue_mw(&l->issue, l->sms.n));
        if (m->most_mw < INT64_MAX) /* as it would draw alone */
            own_mw = WS_MIN(own_mw, (int64_t)m->most_mw - (int64_t)ws_power_mw(&m->spec, l->sms.n));
        __int128 own_pj = (__int128)own_mw * (until - l->start_ns);
        l->pj = WS_MAX((__int128)l->dynamic_mw_per_sm * sm_ns + own_pj, (__int128)0);
        l->shared = true; /* the static power of that time is others', or idle */
        m->energy_pj += (unsigned __int128)l->pj;
        if (m->reads)
            ws_readings_late(&m->readings, (unsigned __int128)l->pj);
        m->sm_busy_ns += sm_ns;
        if (l->sms.n)
            busy(m, l->start_ns, until);
    }
    ws_list_append(&m->loads, &l->link);
    pthread_mutex_unlock(&m->lock);
}

void ws_meter_change(struct ws_meter *m, uint64_t now_ns, struct ws_meter_load *l, uint64_t end_ns,
                     const struct ws_sm_set *sms)
{
    pthread_mutex_lock(&m->lock);
    sweep(m, now_ns);
    l->end_ns = end_ns;
    l->sms = *sms;
    pthread_mutex_unlock(&m->lock);
}

/* Who sees only readings can but share out the power that they show, among what runs. */
static uint64_t estimate_uj(const struct ws_meter *m, const struct ws_meter_load *l)
{
    uint64_t n = 1;
    ws_list_for_each (it, &m->loads) {
        const struct ws_meter_load *o = ws_list_entry(it, struct ws_meter_load, link);
        n += o->start_ns < l->end_ns;
    }
    unsigned __int128 pj =
        (unsigned __int128)ws_readings_power_mw(&m->readings) * (l->end_ns - l->start_ns);
    return (uint64_t)(pj / n / PJ_PER_UJ);
}

uint64_t ws_meter_end(struct ws_meter *m, struct ws_meter_load *l, uint64_t *ret_alone_uj)
{
    pthread_mutex_lock(&m->lock);
    sweep(m, l->end_ns);
    ws_list_remove(&l->link);
    __int128 pj = l->pj + m->rounded_pj, charged_pj = WS_MAX(pj - pj % PJ_PER_UJ, (__int128)0);
    m->rounded_pj = pj - charged_pj;
    uint64_t uj = m->reads ? estimate_uj(m, l) : (uint64_t)(charged_pj / PJ_PER_UJ);
    *ret_alone_uj = m->reads || l->shared ? 0 : (uint64_t)(l->pj / PJ_PER_UJ);
    pthread_mutex_unlock(&m->lock);
    return uj;
}

void ws_meter_set_static(struct ws_meter *m, uint64_t now_ns, uint32_t static_mw)
{
    pthread_mutex_lock(&m->lock);
    sweep(m, now_ns);
    m->spec.static_mw = static_mw;
    pthread_mutex_unlock(&m->lock);
}

void ws_meter_set_on(struct ws_meter *m, uint64_t now_ns, bool on)
{
    pthread_mutex_lock(&m->lock);
    sweep(m, now_ns);
    m->on = on;
    pthread_mutex_unlock(&m->lock);
}

void ws_meter_totals(struct ws_meter *m, uint64_t now_ns, struct ws_meter_totals *ret)
{
    struct moment w;
    pthread_mutex_lock(&m->lock);
    sweep(m, now_ns);
    look(m, m->swept_ns, &w);
    *ret = (struct ws_meter_totals){
        .energy_uj = (uint64_t)(m->energy_pj / PJ_PER_UJ),
        .idle_energy_uj = (uint64_t)(m->idle_pj / PJ_PER_UJ),
        .busy_ns = m->busy_ns,
        .sm_busy_ns = m->sm_busy_ns,
        .power_mw = (uint32_t)w.mw,
    };
    if (m->reads) {
        ret->energy_uj = ws_readings_energy_uj(&m->readings);
        ret->idle_energy_uj = 0;
        ret->power_mw = ws_readings_power_mw(&m->readings);
    }
    pthread_mutex_unlock(&m->lock);
}
