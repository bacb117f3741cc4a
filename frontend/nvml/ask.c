// SPDX-License-Identifier: Apache-2.0
/* A status request without libzmq, which costs a monitor milliseconds at each start and may be
 * missing in a container. A connection serves one question, so nothing has to survive a fork(). */
#include <errno.h>

#include "base/clock.h"
#include "frontend/nvml/nvml.h"
#include "protocol/ask.h"

enum { TIMEOUT_MS = 2000 };

static bool is_status(const Ws__ServerMessage *m)
{
    return m->status != NULL;
}

int ws_nvml_ask(const char *endpoint, Ws__ServerMessage **ret)
{
    struct ws_asker a;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest status = WS__STATUS_REQUEST__INIT;
    status.version = WS_PROTOCOL_VERSION;
    m.status = &status;
    int r = ws_asker_open(&a, endpoint);
    if (!r)
        r = ws_asker_ask(&a, &m, is_status, ws_clock_ns() + TIMEOUT_MS * WS_NS_PER_MS, ret);
    ws_asker_close(&a);
    if (!r && (*ret)->status->version != WS_PROTOCOL_VERSION) {
        ws__server_message__free_unpacked(*ret, NULL);
        *ret = NULL;
        r = -EPROTONOSUPPORT;
    }
    return r;
}
