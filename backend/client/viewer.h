/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/viewer.h - what somebody who asks may see and change: users see what is their
 * own; administrators see and change everything. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_VIEWER_H
#define WS_BACKEND_CLIENT_VIEWER_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/client/transport.h"

struct ws_server;

struct ws_viewer {
    bool admin; /* root, the daemon's user, or a member of admin_group */
    bool known; /* uid is the kernel's word or, over tcp, that of the key */
    uint32_t uid;
};

/* Who sent the message. */
void ws_viewer_of(struct ws_server *s, const struct ws_message *m, struct ws_viewer *ret);

/* Whether what belongs to user @uid is shown. */
static inline bool ws_viewer_sees(const struct ws_viewer *v, uint32_t uid)
{
    return v->admin || (v->known && v->uid == uid);
}

#endif
