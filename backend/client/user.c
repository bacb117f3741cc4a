// SPDX-License-Identifier: Apache-2.0
/* Between clients and accounts. The limits are looked up in the configuration at each charge, so
 * that reloading it changes them. */
#include "backend/client/user.h"

#include <stdio.h>

#include "backend/backend.h"
#include "backend/config/access.h"

static const struct ws_user_limits *limits_of(const struct ws_server *s, uint32_t uid)
{
    return ws_access_find(&s->config->access, uid);
}

static uint64_t pool(void *arg, enum ws_resource r)
{
    const struct ws_server *s = arg;
    uint64_t set = s->config->limits.pool[r];
    return set ? set : s->system_pool[r];
}

static uint64_t user_limit(void *arg, uint32_t uid, enum ws_resource r)
{
    const struct ws_user_limits *l = limits_of(arg, uid);
    return l ? l->limit[r] : 0;
}

static uint32_t payer(void *arg, uint32_t uid)
{
    const struct ws_server *s = arg;
    return ws_access_owner(&s->config->access, uid);
}

int ws_users_open(struct ws_server *s)
{
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++)
        s->system_pool[r] = ws_accounts_system_pool(r);
    s->system_pool[WS_RESOURCE_ADDRESS_BYTES] = s->memory.va_pool.n * WS_VA_GRANULE_BYTES;
    s->system_pool[WS_RESOURCE_HOST_ADDRESS_BYTES] =
        s->memory.host_va_pool.n * WS_HOST_VA_GRANULE_BYTES;
    return ws_accounts_new(&s->accounts, &(struct ws_accounts_ops){s, pool, user_limit, payer});
}

struct ws_account *ws_user_enter(struct ws_server *s, uint32_t uid, char *buf, size_t size)
{
    struct ws_account *a = ws_account_of_user(s->accounts, uid);
    if (!a) {
        snprintf(buf, size, "the daemon is out of memory");
        return NULL;
    }
    if (!ws_account_charge(a, WS_RESOURCE_CLIENTS, 1))
        return a;
    ws_account_refusal(a, WS_RESOURCE_CLIENTS, 1, buf, size);
    return ws_account_unref(a);
}

void ws_user_leave(struct ws_client *c)
{
    ws_client_release(c, WS_RESOURCE_CLIENTS, 1);
}

Ws__Error ws_client_charge(struct ws_client *c, enum ws_resource r, uint64_t n)
{
    if (WS_LIKELY(!ws_account_charge(c->who.account, r, n)))
        return WS__ERROR__OK;
    ws_client_tell_refused(c, r, n);
    return WS__ERROR__OUT_OF_MEMORY;
}

bool ws_client_may_tell(struct ws_client *c, unsigned r)
{
    bool first = !(c->who.told_refused & 1u << r);
    c->who.told_refused |= 1u << r;
    return first;
}

void ws_client_tell_refused(struct ws_client *c, enum ws_resource r, uint64_t n)
{
    char text[256];
    if (ws_client_may_tell(c, r))
        ws_log(WS_WARN, "account: refused client=%u pid=%u user=%d: %s", c->id, c->who.pid,
               (int)c->who.uid, ws_account_refusal(c->who.account, r, n, text, sizeof(text)));
}

void ws_client_release(struct ws_client *c, enum ws_resource r, uint64_t n)
{
    ws_account_release(c->who.account, r, n);
}

Ws__Error ws_client_object(struct ws_client *c)
{
    Ws__Error e = ws_client_charge(c, WS_RESOURCE_OBJECTS, 1);
    c->n_objects += !e;
    return e;
}

void ws_client_object_gone(struct ws_client *c)
{
    c->n_objects--;
    ws_client_release(c, WS_RESOURCE_OBJECTS, 1);
}

uint64_t ws_user_memory_left(const struct ws_client *c)
{
    uint64_t may = ws_account_may_hold(c->who.account, WS_RESOURCE_DEVICE_BYTES),
             has = ws_account_used(c->who.account, WS_RESOURCE_DEVICE_BYTES);
    return may == UINT64_MAX ? may : may > has ? may - has : 0;
}

uint32_t ws_user_share(const struct ws_client *c)
{
    const struct ws_user_limits *l = limits_of(c->server, c->who.uid);
    return l ? l->share : WS_SHARE_DEFAULT;
}
