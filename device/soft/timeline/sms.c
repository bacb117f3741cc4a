// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/sms.h"

#include <math.h>

static void heap_set(struct ws_sms *m, uint32_t i, uint16_t sm)
{
    m->heap[i] = sm;
    m->pos[sm] = (uint16_t)i;
}

void ws_sms_init(struct ws_sms *m, const struct ws_timing_kernel *k)
{
    m->k = k;
    m->n_sms = 0;
    m->tau = m->bytes_rate = 0;
    m->dealt = m->done = 0;
    m->n_blocks = k->n_blocks;
    m->cursor = 0;
}

void ws_sms_add(struct ws_sms *m, uint32_t id)
{
    struct ws_sms_sm *s = &m->sm[m->n_sms];
    s->k = 0;
    s->used = false;
    s->tau = s->bytes_rate = 0;
    s->next = INFINITY;
    m->id[m->n_sms] = (uint16_t)id;
    heap_set(m, m->n_sms, (uint16_t)m->n_sms);
    m->n_sms++;
}

static void heap_fix(struct ws_sms *m, uint16_t sm)
{
    uint32_t i = m->pos[sm];
    double key = m->sm[sm].next;
    while (i > 0) {
        uint32_t up = (i - 1) / 2;
        if (m->sm[m->heap[up]].next <= key)
            break;
        heap_set(m, i, m->heap[up]);
        i = up;
    }
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c + 1 < m->n_sms && m->sm[m->heap[c + 1]].next < m->sm[m->heap[c]].next)
            c++;
        if (c >= m->n_sms || m->sm[m->heap[c]].next >= key)
            break;
        heap_set(m, i, m->heap[c]);
        i = c;
    }
    heap_set(m, i, sm);
}

static void sm_advance(struct ws_sms *m, struct ws_sms_sm *s)
{
    double dt = m->tau - s->tau;
    for (uint32_t i = 0; i < s->k; i++)
        s->left[i] -= dt * s->rate[i];
    s->tau = m->tau;
}

static void sm_rate(struct ws_sms *m, uint16_t index)
{
    struct ws_sms_sm *s = &m->sm[index];
    double bytes_rate = 0, next = INFINITY;
    for (uint32_t i = 0; i < s->k; i++) {
        const struct ws_cost *c = &m->k->blocks[s->block[i]];
        double ns = s->part > 0 ? WS_MAX(c->latency_ns, s->k * c->issue_ns / s->part) : INFINITY;
        s->rate[i] = 1 / WS_MAX(ns, 1e-3);
        bytes_rate += s->rate[i] * c->bytes * m->k->dram_share;
        double end = s->rate[i] > 0 ? s->tau + WS_MAX(s->left[i], 0) / s->rate[i] : INFINITY;
        next = WS_MIN(next, end);
    }
    m->bytes_rate += bytes_rate - s->bytes_rate;
    s->bytes_rate = bytes_rate;
    s->next = next;
    heap_fix(m, index);
}

void ws_sms_rates(struct ws_sms *m)
{
    for (uint32_t i = 0; i < m->n_sms; i++)
        sm_rate(m, (uint16_t)i);
}

void ws_sms_advance(struct ws_sms *m)
{
    for (uint32_t i = 0; i < m->n_sms; i++)
        sm_advance(m, &m->sm[i]);
}

static bool sm_room(const struct ws_sms *m, const struct ws_sms_sm *s)
{
    return m->dealt < m->n_blocks && s->k < s->cap && s->part > WS_PART_MIN;
}

static void sm_deal(struct ws_sms *m, struct ws_sms_sm *s)
{
    s->block[s->k] = (uint32_t)m->dealt++;
    s->left[s->k] = 1;
    s->rate[s->k] = 0;
    s->used = true;
    s->k++;
}

static void deal_where(struct ws_sms *m, double part_min)
{
    for (uint32_t idle = 0; idle < m->n_sms && m->dealt < m->n_blocks;
         m->cursor = (m->cursor + 1) % m->n_sms) {
        struct ws_sms_sm *s = &m->sm[m->cursor];
        idle = sm_room(m, s) && s->part >= part_min ? 0 : idle + 1;
        if (!idle)
            sm_deal(m, s);
    }
}

void ws_sms_deal(struct ws_sms *m)
{
    deal_where(m, 1);
    deal_where(m, 0);
}

void ws_sms_complete(struct ws_sms *m, uint16_t index)
{
    struct ws_sms_sm *s = &m->sm[index];
    uint32_t due = 0;
    sm_advance(m, s);
    for (uint32_t i = 1; i < s->k; i++)
        if (s->left[i] / s->rate[i] < s->left[due] / s->rate[due])
            due = i;
    s->left[due] = 0; /* whatever rounding says */
    for (uint32_t i = 0; i < s->k;) {
        if (s->left[i] > 1e-9) {
            i++;
            continue;
        }
        m->done++;
        s->k--;
        s->block[i] = s->block[s->k];
        s->left[i] = s->left[s->k];
        s->rate[i] = s->rate[s->k];
    }
    while (sm_room(m, s))
        sm_deal(m, s);
    sm_rate(m, index);
}

void ws_sms_stop(struct ws_sms *m)
{
    m->n_blocks = m->dealt;
    for (uint64_t b = m->dealt; b < m->k->n_blocks; b++)
        m->left[b] = 1;
    for (uint32_t i = 0; i < m->n_sms; i++) {
        struct ws_sms_sm *s = &m->sm[i];
        for (uint32_t j = 0; j < s->k; j++) {
            uint32_t n = m->k->merged ? m->k->merged[s->block[j]] : 1;
            double left = WS_MAX(s->left[j], 0), keep = floor(left * n + 1e-6) / n;
            keep = WS_MIN(keep, (double)(n - 1) / n); /* dealt: one of them at least is at work */
            m->left[s->block[j]] = keep;
            s->left[j] = left - keep;
        }
    }
}
