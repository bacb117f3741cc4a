// SPDX-License-Identifier: Apache-2.0
#include "backend/process/access.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"

struct ws_user {
    uint32_t uid, n_refs, n_clients;
    uint64_t memory_bytes;
    struct ws_server *server;
    UT_hash_handle hh;
};

/* ---- configuration ---- */

bool ws_access_uid(const char *name, uint32_t *ret)
{
    char *end;
    unsigned long v = strtoul(name, &end, 10);
    if (name[0] >= '0' && name[0] <= '9' && !*end && v < UINT32_MAX) {
        *ret = (uint32_t)v;
        return true;
    }
    struct passwd *p = getpwnam(name);
    if (p)
        *ret = p->pw_uid;
    return p != NULL;
}

int ws_access_add(struct ws_access *a, const struct ws_user_limits *l)
{
    struct ws_user_limits *v = ws_alloc_array(a->n_limits + 1, sizeof *v);
    if (!v)
        return ws_raise(-ENOMEM);
    if (a->n_limits)
        memcpy(v, a->limits, a->n_limits * sizeof *v);
    v[a->n_limits++] = *l;
    free(a->limits);
    a->limits = v;
    return 0;
}

static int add_allowed(struct ws_access *a, const struct ws_allowed *w)
{
    if (!(a->n_allowed & (a->n_allowed - 1))) { /* full: twice as many */
        struct ws_allowed *v = ws_alloc_array(a->n_allowed ? 2 * a->n_allowed : 1, sizeof *v);
        if (!v)
            return ws_raise(-ENOMEM);
        if (a->n_allowed)
            memcpy(v, a->allowed, a->n_allowed * sizeof *v);
        free(a->allowed);
        a->allowed = v;
    }
    a->allowed[a->n_allowed++] = *w;
    return 0;
}

/* Return: 0, 1 (wrong, in @diags), -ENOMEM. */
static int allowed_line(struct ws_access *a, char *line, const char *path, uint32_t number,
                        struct ws_diags *diags)
{
    char name[WS_USER_NAME_BYTES], key[128], more[2];
    struct ws_allowed w;
    int n = sscanf(line, "%32s %127s %1s", name, key, more);
    if (n <= 0 || name[0] == '#')
        return 0;
    if (n < 2 || !ws_curve_is_key(key) || !zmq_z85_decode(w.key, key) || (n == 3 && *more != '#')) {
        ws_diags_add(diags, path, number, 0,
                     "is no line of a list of allowed keys: use USER KEY, a public key of 40 "
                     "characters");
        return 1;
    }
    if (!ws_access_uid(name, &w.uid)) {
        ws_diags_add(diags, path, number, 0,
                     "there is no user \"%s\": use a name or a number of this machine", name);
        return 1;
    }
    return add_allowed(a, &w);
}

int ws_access_load(struct ws_access *a, const char *path, struct ws_diags *diags)
{
    char line[512];
    FILE *f = fopen(path, "re");
    int r = 0, wrong = 0;
    if (!f)
        return -errno;
    for (uint32_t number = 1; r >= 0 && fgets(line, sizeof line, f); number++) {
        r = allowed_line(a, line, path, number, diags);
        wrong |= r > 0;
    }
    if (r >= 0 && ferror(f))
        r = -EIO;
    fclose(f);
    return r < 0 ? r : wrong;
}

void ws_access_deinit(struct ws_access *a)
{
    free(a->limits);
    free(a->allowed);
    *a = WS_ACCESS_NULL;
}

const struct ws_user_limits *ws_access_find(const struct ws_access *a, uint32_t uid)
{
    const struct ws_user_limits *all = NULL;
    for (size_t i = 0; i < a->n_limits; i++) {
        if (a->limits[i].everybody)
            all = &a->limits[i];
        else if (a->limits[i].uid == uid)
            return &a->limits[i];
    }
    return all;
}

const struct ws_allowed *ws_access_allows(const struct ws_access *a,
                                          const uint8_t key[WS_CURVE_KEY_BYTES])
{
    for (size_t i = 0; i < a->n_allowed; i++)
        if (!memcmp(a->allowed[i].key, key, WS_CURVE_KEY_BYTES)) /* public: no secret in its time */
            return &a->allowed[i];
    return NULL;
}

/* ---- users ---- */

static const struct ws_user_limits *limits_of(const struct ws_user *u)
{
    return ws_access_find(&u->server->config->access, u->uid);
}

struct ws_user *ws_user_enter(struct ws_server *s, uint32_t uid, char *buf, size_t size)
{
    struct ws_user *u;
    HASH_FIND(hh, s->users, &uid, sizeof uid, u);
    if (!u) {
        if (!(u = ws_alloc(sizeof *u))) {
            snprintf(buf, size, "the daemon is out of memory");
            return NULL;
        }
        u->uid = uid;
        u->server = s;
        HASH_ADD(hh, s->users, uid, sizeof u->uid, u);
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
    HASH_DEL(s->users, u);
    free(u);
}

uint64_t ws_user_memory_left(const struct ws_client *c)
{
    const struct ws_user_limits *l = c->user ? limits_of(c->user) : NULL;
    if (!l || !l->memory_bytes)
        return UINT64_MAX;
    return l->memory_bytes > c->user->memory_bytes ? l->memory_bytes - c->user->memory_bytes : 0;
}

bool ws_user_memory_ok(struct ws_client *c, uint64_t bytes)
{
    uint64_t left = ws_user_memory_left(c);
    if (bytes <= left)
        return true;
    if (!c->told_memory)
        ws_log(WS_WARN,
               "access: memory refused client=%u pid=%u user=%u bytes=%" PRIu64 " left=%" PRIu64
               ": more than the memory_bytes of his section in the configuration",
               c->id, c->pid, c->user->uid, bytes, left);
    c->told_memory = true;
    return false;
}

void ws_user_charge(struct ws_user *u, int64_t bytes)
{
    if (u)
        u->memory_bytes += (uint64_t)bytes;
}

uint32_t ws_user_share(const struct ws_client *c)
{
    const struct ws_user_limits *l = c->user ? limits_of(c->user) : NULL;
    return l ? l->share : WS_SHARE_DEFAULT;
}
