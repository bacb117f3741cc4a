// SPDX-License-Identifier: Apache-2.0
/* Whose a client is was found out when it said hello; of other peers the transport tells.
 *
 * The groups of a peer are those that its process had when it connected, by the kernel's word
 * (SO_PEERGROUPS): no database of users is asked, which could take long. Over tcp nobody tells of
 * groups. */
#include "backend/client/viewer.h"

#include <sys/socket.h>
#include <unistd.h>

#include "backend/backend.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

enum { GROUPS_MAX = 1024 };

static bool is_member(int fd, uint32_t pid, uint32_t uid, gid_t group)
{
    struct ucred cred;
    gid_t groups[GROUPS_MAX];
    socklen_t n = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) || (uint32_t)cred.pid != pid ||
        cred.uid != uid) /* the descriptor is another connection's by now */
        return false;
    if (cred.gid == group)
        return true;
    n = sizeof(groups);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n))
        return false;
    for (size_t i = 0; i < n / sizeof(*groups); i++)
        if (groups[i] == group)
            return true;
    return false;
}

void ws_viewer_of(struct ws_server *s, const struct ws_message *m, struct ws_viewer *ret)
{
    const struct ws_client *c = ws_client_find(s, m->peer);
    struct ws_peer_info info = {.fd = -1};
    s->transport.info(s->transport.arg, m, &info);
    if (c) {
        info.has_uid = c->who.uid != UINT32_MAX;
        info.uid = c->who.uid;
    }
    *ret = (struct ws_viewer){.known = info.has_uid, .uid = info.uid};
    ret->admin = info.has_uid && (info.uid == 0 || info.uid == geteuid() ||
                                  (s->config->has_admin_group && info.ipc &&
                                   is_member(info.fd, info.pid, info.uid, s->config->admin_gid)));
}
