// SPDX-License-Identifier: Apache-2.0
/* Users who have clients. One is kept as long as any client of his is, and his limits are looked
 * up each time, so that reloading the configuration changes them. */
#include "backend/client/user.h"

#include <inttypes.h>
#include <stdio.h>

#include "backend/backend.h"
#include "backend/config/access.h"
#include "base/alloc.h"

struct ws_user {
    uint32_t uid, n_refs, n_clients;
    uint64_t memory_bytes;
    struct ws_server *server;
    UT_hash_handle hh;
};

static const struct ws_user_limits *limits_of(const struct ws_user *u)
{
    return ws_access_find(&u->server->config->access, u->uid);
}

struct ws_user *ws_user_enter(struct ws_server *s, uint32_t uid, char *buf, size_t size)
{
    struct ws_user *u;
    HASH_FIND(hh, s->clients.users, &uid, sizeof(uid), u);
    if (!u) {
        if (!(u = ws_alloc(sizeof(*u)))) {
            snprintf(buf, size, "the daemon is out of memory");
            return NULL;
        }
        u->uid = uid;
        u->server = s;
        HASH_ADD(hh, s->clients.users, uid, sizeof(u->uid), u);
    }
    u->n_refs++;
    u->n_clients++;
    const struct ws_user_limits *l = limits_of(u);
    if (!l || !l->max_clients || u->n_clients <= l->max_clients)
        return u;
    snprintf(buf, size, "user %u has %u clients, the limit that the configuration sets for %s", uid,
             u->n_clients - 1, l->everybody ? "each user" : "this user");
    ws_user_leave(u);
    ws_user_unref(s, u);
    return NULL;
}

void ws_user_leave(struct ws_user *u)
{
    u->n_clients--;
}

void ws_user_unref(struct ws_server *s, struct ws_user *u)
{
    if (!u || --u->n_refs)
        return;
    HASH_DEL(s->clients.users, u);
    free(u);
}

uint64_t ws_user_memory_left(const struct ws_client *c)
{
    const struct ws_user_limits *l = c->who.user ? limits_of(c->who.user) : NULL;
    if (!l || !l->memory_bytes)
        return UINT64_MAX;
    return l->memory_bytes > c->who.user->memory_bytes ? l->memory_bytes - c->who.user->memory_bytes
                                                       : 0;
}

bool ws_user_memory_ok(struct ws_client *c, uint64_t bytes)
{
    uint64_t left = ws_user_memory_left(c);
    if (bytes <= left)
        return true;
    if (!c->who.told_memory)
        ws_log(WS_WARN,
               "access: memory refused client=%u pid=%u user=%u bytes=%" PRIu64 " left=%" PRIu64
               ": more than the memory_bytes of his section in the configuration",
               c->id, c->who.pid, c->who.user->uid, bytes, left);
    c->who.told_memory = true;
    return false;
}

void ws_user_charge(struct ws_user *u, int64_t bytes)
{
    if (u)
        u->memory_bytes += (uint64_t)bytes;
}

uint32_t ws_user_share(const struct ws_client *c)
{
    const struct ws_user_limits *l = c->who.user ? limits_of(c->who.user) : NULL;
    return l ? l->share : WS_SHARE_DEFAULT;
}
