// SPDX-License-Identifier: Apache-2.0
/* Accounts, and the rule by which users share a pool.
 *
 * Proof of what the header says of m users who hold something. Put them in the order of their last
 * charges, u1 … um. When uj made its last charge, u1 … u(j-1) held at least what they hold now,
 * for they have only released since, and they were others who held something. So uj holds at
 * most 1/(j + 1) of what u1 … u(j-1) leave of the pool P. What u1 … uj leave, F(j), is then at
 * least F(j-1) * j/(j + 1), and with F(0) = P this gives F(m) >= P/(m + 1). A next user may take
 * 1/(m + 2) of that. Rounding up adds less than 1 to each holding, which takes less than m/2 from
 * F(m). What was charged while the pool was larger, or was taken over without asking,
 * is not bounded by this.
 *
 * An address is a member of a second set of pools, that of strangers, and what it is charged is
 * charged to the account `strangers` as well, which is a user among the others. */
#include "backend/accounts/account.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/accounts/recent.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/table.h"
#include "device/payer.h"

enum { STRANGERS_PART = 4, NAME_BYTES = 64 };

const struct ws_resource_info ws_resource_info[_WS_RESOURCE_N] = {
    [WS_RESOURCE_CLIENTS] = {"clients", "clients", "max_clients"},
    [WS_RESOURCE_CONNECTIONS] = {"connections", "connections", "max_connections"},
    [WS_RESOURCE_DESCRIPTORS] = {"descriptors", "file descriptors of the daemon",
                                 "max_descriptors"},
    [WS_RESOURCE_MAPPINGS] = {"mappings", "memory mappings of the daemon", "max_mappings"},
    [WS_RESOURCE_HOST_BYTES] = {"host_bytes", "bytes of memory shared with the daemon",
                                "max_host_bytes"},
    [WS_RESOURCE_QUEUED_BYTES] = {"queued_bytes", "bytes of messages that wait in the daemon",
                                  "max_queued_bytes"},
    [WS_RESOURCE_MODULE_BYTES] = {"module_bytes", "bytes of modules", "max_module_bytes"},
    [WS_RESOURCE_COMPILE_BYTES] = {"compile_bytes", "bytes of memory for compiling",
                                   "max_compile_bytes"},
    [WS_RESOURCE_BLOCK_BYTES] = {"block_bytes", "bytes of memory for blocks that run",
                                 "max_block_bytes"},
    [WS_RESOURCE_OBJECTS] = {"objects", "objects (streams, events, allocations and others)",
                             "max_objects"},
    [WS_RESOURCE_ADDRESS_BYTES] = {"address_bytes", "bytes of device addresses",
                                   "max_address_bytes"},
    [WS_RESOURCE_HOST_ADDRESS_BYTES] = {"host_address_bytes",
                                        "bytes of addresses for pinned memory",
                                        "max_host_address_bytes"},
    [WS_RESOURCE_DEVICE_BYTES] = {"device_bytes", "bytes of device memory", NULL},
};

const char *const ws_account_time_name[_WS_ACCOUNT_TIME_N] = {
    [WS_ACCOUNT_LOOP] = "loop_ns",
    [WS_ACCOUNT_COMPILE] = "compile_ns",
};

struct pool {
    uint64_t used;
    uint32_t n_holders; /* accounts that hold something */
};
struct pools {
    struct pool of[_WS_RESOURCE_N];
};

struct key {         /* of a hash: no padding */
    uint32_t family; /* AF_UNSPEC: a user */
    uint32_t uid;
    uint8_t address[16];
};

struct ws_account {
    struct key key;
    struct ws_accounts *accounts;
    struct pools *pools;       /* that it shares with others */
    struct ws_account *parent; /* also charged; NULL: none */
    uint32_t n_refs;
    uint64_t used[_WS_RESOURCE_N], n_refused[_WS_RESOURCE_N], time_ns[_WS_ACCOUNT_TIME_N];
    struct ws_recent recent[_WS_ACCOUNT_TIME_N];
    struct ws_payer *payer;      /* NULL: not asked for yet */
    struct ws_list turn, things; /* in a queue; what of it waits there */
    char name[NAME_BYTES];
    UT_hash_handle hh;
};

struct ws_accounts {
    struct ws_accounts_ops ops;
    struct pools users, addresses;
    struct ws_account strangers; /* not in by_key */
    struct ws_account *by_key;
    bool freed; /* goes with its last account */
};

/* ---- all accounts ---- */

int ws_accounts_new(struct ws_accounts **ret, const struct ws_accounts_ops *ops)
{
    struct ws_accounts *s = ws_alloc(sizeof(*s));
    if (!s)
        return ws_raise(-ENOMEM);
    s->ops = *ops;
    s->strangers = (struct ws_account){.key = {.uid = WS_ACCOUNT_NO_UID},
                                       .accounts = s,
                                       .pools = &s->users,
                                       .name = "connections over tcp whose key is not known yet"};
    *ret = s;
    return 0;
}

struct ws_accounts *ws_accounts_free(struct ws_accounts *s)
{
    if (!s)
        return NULL;
    s->freed = true;
    s->ops = (struct ws_accounts_ops){0};
    if (!s->by_key)
        free(s);
    return NULL;
}

uint64_t ws_accounts_pool(const struct ws_accounts *s, enum ws_resource r)
{
    return s->ops.pool ? s->ops.pool(s->ops.arg, r) : WS_ACCOUNT_UNLIMITED;
}

uint64_t ws_accounts_used(const struct ws_accounts *s, enum ws_resource r)
{
    return r == WS_RESOURCE_BLOCK_BYTES ? ws_payers_held() : s->users.of[r].used;
}

static struct ws_account *next_of_kind(struct ws_account *a, bool user)
{
    while (a && (a->key.family == AF_UNSPEC) != user)
        a = a->hh.next;
    return a;
}

struct ws_account *ws_accounts_next(struct ws_accounts *s, struct ws_account *previous)
{
    bool user = !previous || previous->key.family == AF_UNSPEC;
    struct ws_account *a = next_of_kind(previous ? previous->hh.next : s->by_key, user);
    return a || !user ? a : next_of_kind(s->by_key, false);
}

/* ---- one account ---- */

static struct ws_account *account_new(struct ws_accounts *s, const struct key *key)
{
    struct ws_account *a = ws_alloc(sizeof(*a));
    if (!a)
        return NULL;
    char text[INET6_ADDRSTRLEN] = "of an unknown kind";
    bool user = key->family == AF_UNSPEC;
    a->key = *key;
    a->accounts = s;
    a->pools = user ? &s->users : &s->addresses;
    a->parent = user ? NULL : &s->strangers;
    ws_list_init(&a->turn);
    ws_list_init(&a->things);
    if (user && key->uid == WS_ACCOUNT_NO_UID)
        snprintf(a->name, sizeof(a->name), "the user whom nobody told");
    else if (user)
        snprintf(a->name, sizeof(a->name), "user %" PRIu32, key->uid);
    else {
        if (key->family == AF_INET || key->family == AF_INET6)
            inet_ntop((int)key->family, key->address, text, sizeof(text));
        snprintf(a->name, sizeof(a->name), "address %s%s", text,
                 key->family == AF_INET6 ? "/64" : "");
    }
    HASH_ADD(hh, s->by_key, key, sizeof(a->key), a);
    return a;
}

static struct ws_account *account_get(struct ws_accounts *s, const struct key *key)
{
    struct ws_account *a;
    HASH_FIND(hh, s->by_key, key, sizeof(*key), a);
    if (!a)
        a = account_new(s, key);
    return a ? ws_account_ref(a) : NULL;
}

struct ws_account *ws_account_of_user(struct ws_accounts *s, uint32_t uid)
{
    uint32_t payer = s->ops.payer ? s->ops.payer(s->ops.arg, uid) : uid;
    return account_get(s, &(struct key){.family = AF_UNSPEC, .uid = payer});
}

struct ws_account *ws_account_of_address(struct ws_accounts *s, const struct sockaddr *a,
                                         socklen_t n)
{
    struct key key = {.family = UINT32_MAX}; /* all that can't be told apart are one */
    if (n >= sizeof(struct sockaddr_in) && a->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, a, sizeof(in));
        key.family = AF_INET;
        memcpy(key.address, &in.sin_addr, sizeof(in.sin_addr));
    } else if (n >= sizeof(struct sockaddr_in6) && a->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, a, sizeof(in));
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in.sin6_addr);
        key.family = mapped ? AF_INET : AF_INET6;
        memcpy(key.address, (uint8_t *)&in.sin6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
    }
    return account_get(s, &key);
}

struct ws_account *ws_account_ref(struct ws_account *a)
{
    a->n_refs++;
    return a;
}

struct ws_account *ws_account_unref(struct ws_account *a)
{
    if (!a || --a->n_refs)
        return NULL;
    struct ws_accounts *s = a->accounts;
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++)
        ws_account_release(a, r, a->used[r]); /* a mistake of ours must not last */
    HASH_DEL(s->by_key, a);
    ws_payer_unref(a->payer);
    ws_list_remove(&a->turn);
    free(a);
    if (s->freed && !s->by_key)
        free(s);
    return NULL;
}

/* ---- charges ---- */

static uint64_t own_limit(const struct ws_account *a, enum ws_resource r)
{
    const struct ws_accounts_ops *o = &a->accounts->ops;
    uint64_t limit =
        o->user_limit && a->key.family == AF_UNSPEC ? o->user_limit(o->arg, a->key.uid, r) : 0;
    return limit ? limit : WS_ACCOUNT_UNLIMITED;
}

static uint64_t share(const struct ws_account *a, enum ws_resource r)
{
    const struct pool *p = &a->pools->of[r];
    uint64_t limit = ws_accounts_pool(a->accounts, r);
    if (limit == WS_ACCOUNT_UNLIMITED)
        return WS_ACCOUNT_UNLIMITED;
    if (a->parent)
        limit /= STRANGERS_PART;
    return ws_payer_share(limit, p->used - a->used[r], (uint64_t)p->n_holders - (a->used[r] != 0));
}

/* Who has what threads took for the account; NULL: nobody, or no thread takes of that. */
static const struct ws_payer *payer_of(const struct ws_account *a, enum ws_resource r)
{
    return r == WS_RESOURCE_BLOCK_BYTES ? a->payer : NULL;
}

uint64_t ws_account_may_hold(const struct ws_account *a, enum ws_resource r)
{
    if (payer_of(a, r))
        return ws_payer_may_hold(a->payer);
    uint64_t own = own_limit(a, r), of_all = share(a, r);
    return own < of_all ? own : of_all;
}

static bool fits(const struct ws_account *a, enum ws_resource r, uint64_t n)
{
    uint64_t may = ws_account_may_hold(a, r);
    return a->used[r] <= may && n <= may - a->used[r] && n <= UINT64_MAX - a->pools->of[r].used;
}

static void add(struct ws_account *a, enum ws_resource r, uint64_t n)
{
    struct pool *p = &a->pools->of[r];
    p->n_holders += n && !a->used[r];
    p->used += n;
    a->used[r] += n;
}

int ws_account_charge(struct ws_account *a, enum ws_resource r, uint64_t n)
{
    if (!n)
        return 0;
    if (!fits(a, r, n) || (a->parent && !fits(a->parent, r, n))) {
        a->n_refused[r]++;
        return -EDQUOT;
    }
    ws_account_take_over(a, r, n);
    return 0;
}

void ws_account_take_over(struct ws_account *a, enum ws_resource r, uint64_t n)
{
    add(a, r, n);
    if (a->parent)
        add(a->parent, r, n);
}

void ws_account_release(struct ws_account *a, enum ws_resource r, uint64_t n)
{
    struct pool *p = &a->pools->of[r];
    n = n < a->used[r] ? n : a->used[r];
    if (!n)
        return;
    a->used[r] -= n;
    p->used -= n;
    p->n_holders -= !a->used[r];
    if (a->parent)
        ws_account_release(a->parent, r, n);
}

const char *ws_account_refusal(const struct ws_account *a, enum ws_resource r, uint64_t n,
                               char *buf, size_t size)
{
    const struct ws_resource_info *i = &ws_resource_info[r];
    const struct ws_account *who = fits(a, r, n) && a->parent ? a->parent : a;
    uint64_t own = own_limit(who, r), of_all = share(who, r);
    int k = snprintf(buf, size, "%s has %" PRIu64 " %s and asks for %" PRIu64 " more", who->name,
                     who->used[r], i->what, n);
    if (k < 0 || (size_t)k >= size)
        return buf;
    if (own <= of_all)
        snprintf(buf + k, size - (size_t)k,
                 ", but may have %" PRIu64 " by the section for this user in the configuration",
                 own);
    else
        snprintf(buf + k, size - (size_t)k,
                 ", but may have %" PRIu64 " of the %" PRIu64
                 " that all users share (%s in the section limits)",
                 of_all, ws_accounts_pool(who->accounts, r), i->key ? i->key : "no key");
    return buf;
}

/* ---- what an account says ---- */

uint64_t ws_account_used(const struct ws_account *a, enum ws_resource r)
{
    return payer_of(a, r) ? ws_payer_held(a->payer) : a->used[r];
}

uint64_t ws_account_n_refused(const struct ws_account *a, enum ws_resource r)
{
    return payer_of(a, r) ? ws_payer_n_refused(a->payer) : a->n_refused[r];
}

void ws_account_add_time(struct ws_account *a, enum ws_account_time t, uint64_t ns, uint64_t now_ns)
{
    a->time_ns[t] += ns;
    ws_recent_add(&a->recent[t], now_ns, ns);
}

uint64_t ws_account_recent_ns(const struct ws_account *a, enum ws_account_time t, uint64_t now_ns)
{
    return ws_recent_ns(&a->recent[t], now_ns);
}

uint64_t ws_account_time_ns(const struct ws_account *a, enum ws_account_time t)
{
    bool paid = t == WS_ACCOUNT_COMPILE && a->payer;
    return a->time_ns[t] + (paid ? atomic_load(&a->payer->work_ns) : 0);
}

struct ws_payer *ws_account_payer(struct ws_account *a)
{
    if (!a->payer)
        a->payer = ws_payer_new();
    uint64_t own = own_limit(a, WS_RESOURCE_BLOCK_BYTES);
    if (a->payer)
        ws_payer_set_limit(a->payer, own == WS_ACCOUNT_UNLIMITED ? 0 : own);
    ws_payers_set_pool(ws_accounts_pool(a->accounts, WS_RESOURCE_BLOCK_BYTES));
    return a->payer;
}

void ws_account_queue(struct ws_list *queue, struct ws_account *a, struct ws_list *thing)
{
    ws_list_append(&a->things, thing);
    if (ws_list_empty(&a->turn))
        ws_list_append(queue, &a->turn);
}

struct ws_list *ws_account_queue_pop(struct ws_list *queue)
{
    struct ws_list *n, *thing = NULL;
    while (!thing && (n = ws_list_pop(queue))) {
        struct ws_account *a = ws_list_entry(n, struct ws_account, turn);
        thing = ws_list_pop(&a->things); /* NULL: they were taken away meanwhile */
        if (!ws_list_empty(&a->things))
            ws_list_append(queue, &a->turn);
    }
    return thing;
}

const char *ws_account_name(const struct ws_account *a)
{
    return a->name;
}

bool ws_account_uid(const struct ws_account *a, uint32_t *ret)
{
    *ret = a->key.uid;
    return a->key.family == AF_UNSPEC;
}
