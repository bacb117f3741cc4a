// SPDX-License-Identifier: Apache-2.0
/* Requests of people: which policy is in force, to change it, and why a job ran as it did. Like
 * status requests they need no Hello. Everybody whom the socket lets in may ask for the policy, and
 * why a job of his own ran as it did; only administrators may see more or change something
 * (client/viewer.h). */
#include "backend/backend.h"
#include "backend/client/viewer.h"
#include "backend/process/control.h"
#include "backend/scheduling/dispatch.h"
#include "backend/wire/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/wire/decode.h"

static void set(struct ws_server *s, const struct ws_message *msg, const Ws__PolicyRequest *q,
                Ws__PolicyReply *a, char *text, size_t size)
{
    const char *options[WS_CONFIG_MAX_LIST + 1] = {NULL};
    struct ws_viewer viewer;
    ws_viewer_of(s, msg, &viewer);
    if (!viewer.admin) {
        a->error = WS__ERROR__DENIED;
        snprintf(text, size,
                 "only root, the daemon's user and the members of admin_group may set the policy");
        return;
    }
    if (q->n_options > WS_CONFIG_MAX_LIST) {
        a->error = WS__ERROR__INVALID_VALUE;
        snprintf(text, size, "more than %d options", WS_CONFIG_MAX_LIST);
        return;
    }
    for (size_t i = 0; i < q->n_options; i++)
        options[i] = q->options[i];
    int r = ws_dispatch_set_policy(s, q->name, options, text, size);
    a->error = r < 0 ? WS__ERROR__INTERNAL : r ? WS__ERROR__INVALID_VALUE : WS__ERROR__OK;
    if (r < 0)
        snprintf(text, size, "%s", strerror(-r));
}

void ws_control_policy(struct ws_server *s, const struct ws_message *msg, struct ws_bytes bytes)
{
    char text[512] = "";
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__PolicyReply a = WS__POLICY_REPLY__INIT;
    Ws__PolicyRequest *q = ws_decode_policy(bytes, &s->arena);
    const char *options;
    if (!q) {
        a.error = WS__ERROR__MALFORMED;
        snprintf(text, sizeof(text), "a request that can't be read");
    } else if (q->set) {
        set(s, msg, q, &a, text, sizeof(text));
    }
    a.version = WS_PROTOCOL_VERSION;
    a.text = text;
    a.name = (char *)ws_dispatch_policy(s, &options);
    a.options = (char **)&options;
    a.n_options = options[0] != 0;
    m.policy = &a;
    (void)ws_server_send(s, msg->peer, &m); /* a peer that does not fetch its answer has none */
}

/* Why there is nothing to explain. @q: what was asked, or NULL where that was malformed. */
static const char *why_unexplained(const struct ws_server *s, const Ws__ExplainRequest *q)
{
    if (!s->dispatch)
        return "there is no policy, so nothing was decided";
    return q && q->job ? "no such job, or it was too long ago, or it is another user's"
                       : "nothing has been decided yet for your programs";
}

void ws_control_explain(struct ws_server *s, const struct ws_message *msg, struct ws_bytes bytes)
{
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__ExplainReply a = WS__EXPLAIN_REPLY__INIT;
    Ws__ExplainRequest *q = ws_decode_explain(bytes, &s->arena);
    struct ws_viewer viewer;
    ws_viewer_of(s, msg, &viewer);
    char *text = q ? ws_dispatch_explain(s, q->job, &viewer) : NULL;
    a.version = WS_PROTOCOL_VERSION;
    a.error = !q ? WS__ERROR__MALFORMED : text ? WS__ERROR__OK : WS__ERROR__NOT_FOUND;
    a.text = text ? text : (char *)why_unexplained(s, q);
    m.explain = &a;
    (void)ws_server_send(s, msg->peer, &m);
    free(text);
}
