/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/spans.h - what ran when, for `wattshare trace`: a ring of spans, which is
 * there while somebody asks. Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_SPANS_H
#define WS_BACKEND_SCHEDULING_SPANS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/sm_set.h"
#include "protocol/protocol.h"

struct ws_command;
struct ws_context;

enum { WS_SPANS = 16384, WS_SPAN_NAME_BYTES = 128 };
struct ws_span {
    uint64_t serial, stream, ready_ns, start_ns, end_ns, energy_uj, bytes, n_blocks,
        job; /* serial: from 1 */
    uint32_t gpu, client, pid, uid, n_sms;
    Ws__TraceSpan__Kind kind;
    Ws__Error error;
    bool stopped, some_sms;
    uint64_t sms[WS_SM_MAX / 64];
    char name[WS_SPAN_NAME_BYTES], task[64];
};
struct ws_tracing {
    uint64_t last, asked_ns; /* serial of the newest span; host clock, when somebody asked last */
    struct ws_span ring[WS_SPANS];
};

/* An operation has ended; its server's tracing is not NULL. */
void ws_spans_add(const struct ws_command *j);
/* The same, of a gated client's job. */
void ws_spans_add_gated(const struct ws_context *x, uint64_t start_ns, uint64_t end_ns,
                        uint64_t energy_uj, uint64_t n_launches);

#endif
