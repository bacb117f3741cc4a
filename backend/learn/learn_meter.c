// SPDX-License-Identifier: Apache-2.0
/* Windows between two movements of a GPU's counter of energy, and what ran in each.
 *
 * What ran in a window is known when the last operation has ended that had been submitted when the
 * counter moved. So each operation is told the number of the window that was open when it was
 * submitted, and each closed window waits for as many operations as were under way. Closed windows
 * that wait stand in a ring; if it is full, the oldest is given up.
 *
 * The counter moves at a moment between two looks at it. Windows go on until they are long against
 * that. */
#include <string.h>

#include "backend/learn/learn_private.h"
#include "base/alloc.h"

enum { LONG_AGAINST_SLACK = 10 };
#define SPOILT_PART 0.02 /* of a window may be taken by launches that nothing is known of */
#define S_PER_NS    1e-9
#define J_PER_UJ    1e-6

static struct ws_learn_window *window(struct ws_learn_meter *m, uint32_t number)
{
    return &m->windows[number % WS_LEARN_WINDOWS];
}

static struct ws_learn_meter *meter_of(struct ws_learn *l, uint32_t gpu)
{
    return gpu < WS_LEARN_GPUS ? &l->meters[gpu] : NULL;
}

uint32_t ws_learn_submitted(struct ws_learn *l, uint32_t gpu)
{
    struct ws_learn_meter *m = meter_of(l, gpu);
    if (!m)
        return 0;
    m->n_under_way++;
    return m->open;
}

/* The part of [@start_ns, @end_ns) that lies in a window, in s. */
static double overlap_s(const struct ws_learn_meter *m, uint32_t number,
                        const struct ws_learn_window *w, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t from = WS_MAX(start_ns, w->from_ns),
             to = number == m->open ? end_ns : WS_MIN(end_ns, w->to_ns);
    return to > from ? (double)(to - from) * S_PER_NS : 0;
}

static void add_part(struct ws_learn_window *w, struct ws_learn_shape *s, uint32_t n_sms, double t)
{
    uint32_t i = 0;
    while (i < w->n_parts && (w->parts[i].shape != s || w->parts[i].n_sms != n_sms))
        i++;
    if (i == WS_LEARN_PARTS) {
        w->spoilt_s += t;
        return;
    }
    if (i == w->n_parts)
        w->parts[w->n_parts++] = (struct ws_learn_part){.shape = s, .n_sms = n_sms};
    w->parts[i].s += t;
}

void ws_learn_meter_ran(struct ws_learn *l, const struct ws_learn_run *run,
                        struct ws_learn_shape *s, uint32_t n_sms)
{
    struct ws_learn_meter *m = meter_of(l, run->gpu);
    if (!m || !m->open)
        return;
    double all = (double)(run->end_ns - run->start_ns) * S_PER_NS;
    for (uint32_t k = m->first; k <= m->open; k++) {
        struct ws_learn_window *w = window(m, k);
        double t = overlap_s(m, k, w, run->start_ns, run->end_ns);
        if (!(t > 0))
            continue;
        if (run->alone_uj) {
            w->known_s += t;
            w->known_j += (double)run->alone_uj * J_PER_UJ * t / all;
        } else if (s) {
            add_part(w, s, n_sms, t);
        } else {
            w->spoilt_s += t;
        }
    }
}

/* What launches measured by themselves took is known already. */
static void take(struct ws_learn_gpu *g, struct ws_learn_window *w)
{
    double all = (double)(w->to_ns - w->from_ns) * S_PER_NS;
    w->s = all - w->known_s;
    w->j -= w->known_j;
    if (w->spoilt_s <= SPOILT_PART * all && w->s > 0.05 * all && w->j > 0)
        ws_learn_window_take(g, w);
}

static void take_ready(struct ws_learn *l, struct ws_learn_meter *m, const char *gpu)
{
    struct ws_learn_gpu *g;
    HASH_FIND_STR(l->gpus, gpu, g);
    for (; g && m->first < m->open && !window(m, m->first)->n_waits; m->first++)
        take(g, window(m, m->first));
}

void ws_learn_ended(struct ws_learn *l, uint32_t gpu, uint32_t mark)
{
    struct ws_learn_meter *m = meter_of(l, gpu);
    if (!m || !m->n_under_way)
        return;
    m->n_under_way--;
    if (!m->open || mark >= m->open)
        return;
    pthread_mutex_lock(&l->lock);
    for (uint32_t k = WS_MAX(m->first, mark); k < m->open; k++)
        window(m, k)->n_waits--;
    take_ready(l, m, m->name);
    pthread_mutex_unlock(&l->lock);
}

static void open_window(struct ws_learn_meter *m, const struct ws_learn_reading *r, uint64_t at_ns,
                        uint64_t slack_ns)
{
    if (m->open - m->first == WS_LEARN_WINDOWS - 1)
        m->first++;
    m->open++;
    m->moved_uj = r->energy_uj;
    *window(m, m->open) =
        (struct ws_learn_window){.from_ns = at_ns, .slack_s = (double)slack_ns * S_PER_NS};
}

static void start(struct ws_learn_meter *m, const struct ws_learn_reading *r, uint64_t at_ns,
                  uint64_t slack_ns)
{
    m->first = m->open + 1;
    open_window(m, r, at_ns, slack_ns);
    /* What is under way began before: the window after this one is the first that is complete. */
    window(m, m->open)->spoilt_s = m->n_under_way ? 1e9 : 0;
}

bool ws_learn_read(struct ws_learn *l, uint32_t gpu, const struct ws_gpu_spec *spec,
                   const struct ws_learn_reading *r)
{
    struct ws_learn_meter *m = meter_of(l, gpu);
    if (!m)
        return false;
    uint64_t before = m->looked_ns ? m->looked_ns : r->at_ns;
    bool moved = r->energy_uj != m->seen_uj;
    m->looked_ns = r->at_ns;
    m->seen_uj = r->energy_uj;
    memcpy(m->name, spec->name, sizeof(m->name));
    if (m->open && !moved && !r->other)
        return false;
    uint64_t gap = r->update_ns ? WS_MIN(r->at_ns - before, r->update_ns) : 0,
             at = r->at_ns - gap / 2, slack = gap / 2;
    struct ws_learn_window *w = window(m, m->open);
    if (!m->open || r->other || r->energy_uj < m->moved_uj) {
        start(m, r, at, slack);
        return false;
    }
    double slack_s = w->slack_s + (double)slack * S_PER_NS,
           s = at > w->from_ns ? (double)(at - w->from_ns) * S_PER_NS : 0;
    if (!(s > 0) || s < LONG_AGAINST_SLACK * slack_s)
        return false;
    pthread_mutex_lock(&l->lock);
    if (ws_learn_gpu_of(l, spec)) {
        w->to_ns = at;
        w->slack_s = slack_s / 2;
        w->j = (double)(r->energy_uj - m->moved_uj) * J_PER_UJ;
        w->n_waits = m->n_under_way;
        open_window(m, r, at, slack);
        take_ready(l, m, spec->name);
    }
    pthread_mutex_unlock(&l->lock);
    return true;
}
