/* SPDX-License-Identifier: Apache-2.0 */
/* backend/accounts/account.h - who has how much of what. Each user of the machine who has
 * something of the daemon's has an account, and so has each address from which a connection over
 * tcp came whose key is not known yet. What a client can take is charged to an account before it
 * is taken, and released when it is given back.
 *
 * The share of a user. Every resource has a pool, the limit of the whole daemon. With n other
 * users who hold something of it, a user may hold 1/(n + 2) of what the others leave, rounded up:
 * one of the n + 2 parts is for a user who has not come yet. A user who is alone may hold half of
 * the pool. It follows, whatever m users do and in whichever order, that
 *   - at least 1/(m + 1) of the pool is free (less m/2, by rounding), and
 *   - the next user may have at least 1/((m + 1)(m + 2)) of the pool (less 1/2, by rounding).
 * account.c has the proof. Beside its share, a user may have a limit of its own.
 *
 * Blocks and launches take their memory on threads of the device, which share its pool by the same
 * rule (device/payer.h).
 *
 * The addresses have pools of their own, a quarter of each pool, which they share by the same
 * rule. All of them together are one more user beside the others, so that many addresses do not
 * make the users' shares small.
 *
 * Threads: the loop. */
#ifndef WS_BACKEND_ACCOUNTS_ACCOUNT_H
#define WS_BACKEND_ACCOUNTS_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "base/list.h"
#include "base/macros.h"

struct ws_account;
struct ws_payer;
struct ws_accounts;

enum ws_resource {
    WS_RESOURCE_CLIENTS,            /* that have said hello */
    WS_RESOURCE_CONNECTIONS,        /* of every kind, before and after the hello */
    WS_RESOURCE_DESCRIPTORS,        /* of the daemon's process, without those of connections */
    WS_RESOURCE_MAPPINGS,           /* of the daemon's process */
    WS_RESOURCE_HOST_BYTES,         /* memory that clients and the daemon share */
    WS_RESOURCE_QUEUED_BYTES,       /* messages, answers and data that wait in the daemon */
    WS_RESOURCE_MODULE_BYTES,       /* images: unfinished uploads, and those of loaded modules */
    WS_RESOURCE_COMPILE_BYTES,      /* memory of compiling, while it lasts */
    WS_RESOURCE_BLOCK_BYTES,        /* of blocks and launches: charged by threads to the payer */
    WS_RESOURCE_OBJECTS,            /* streams, events, allocations and other small things */
    WS_RESOURCE_ADDRESS_BYTES,      /* device addresses, with memory there or without */
    WS_RESOURCE_HOST_ADDRESS_BYTES, /* the same for pinned memory, where the daemon chooses */
    WS_RESOURCE_DEVICE_BYTES,       /* memory of the GPUs */
    _WS_RESOURCE_N
};
/* Time is not held and not refused: it is counted, so that queues can be fair by it. */
enum ws_account_time {
    WS_ACCOUNT_LOOP,    /* the daemon's loop handled messages of the user */
    WS_ACCOUNT_COMPILE, /* loaders and compilers worked for the user, on one core */
    _WS_ACCOUNT_TIME_N
};
enum { WS_ACCOUNT_NO_UID = UINT32_MAX }; /* of a client whose user nobody told */
extern const char *const ws_account_time_name[_WS_ACCOUNT_TIME_N]; /* "loop_ns" */
#define WS_ACCOUNT_UNLIMITED UINT64_MAX

/* What people read of a resource. */
struct ws_resource_info {
    const char *name; /* "host_bytes" */
    const char *what; /* "bytes of memory shared with the daemon" */
    const char *key;  /* in the section `limits` of the configuration; NULL: it has no pool */
};
extern const struct ws_resource_info ws_resource_info[_WS_RESOURCE_N];

/* The limits, asked at each charge, so that a change counts at once. All may be NULL. */
struct ws_accounts_ops {
    void *arg;
    /* The pool of @r: the limit of the whole daemon, or WS_ACCOUNT_UNLIMITED. Whoever has more
     * than its new share keeps it and gets no more. NULL: all pools are unlimited. */
    uint64_t (*pool)(void *arg, enum ws_resource r);
    /* The limit that user @uid has of its own; 0: none. NULL: nobody has one. */
    uint64_t (*user_limit)(void *arg, uint32_t uid, enum ws_resource r);
    /* On whose account is what user @uid takes; NULL: on everybody's own. */
    uint32_t (*payer)(void *arg, uint32_t uid);
};

/* @ops is copied. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_accounts_new(struct ws_accounts **ret, const struct ws_accounts_ops *ops);
/* Accounts that are still referred to stay until they are not. NULL ok; returns NULL. */
struct ws_accounts *ws_accounts_free(struct ws_accounts *s);
uint64_t ws_accounts_pool(const struct ws_accounts *s, enum ws_resource r);
/* What all users and addresses hold together. */
uint64_t ws_accounts_used(const struct ws_accounts *s, enum ws_resource r);
/* One account after the other, from NULL on; NULL: that was the last. Users come before
 * addresses. The reference is borrowed. */
struct ws_account *ws_accounts_next(struct ws_accounts *s, struct ws_account *previous);

/* The account of a user (or of who pays for it), or of the addresses that are alike: the same IPv4
 * address, the same first 64 bits of an IPv6 address. A new reference is returned, which the
 * caller owns. NULL: no memory. */
struct ws_account *ws_account_of_user(struct ws_accounts *s, uint32_t uid);
struct ws_account *ws_account_of_address(struct ws_accounts *s, const struct sockaddr *a,
                                         socklen_t n);
struct ws_account *ws_account_ref(struct ws_account *a);
/* Everything that was charged by this reference has been released. NULL ok; returns NULL. */
struct ws_account *ws_account_unref(struct ws_account *a);

/* Return: 0, or -EDQUOT: nothing was charged. */
WS_MUST_CHECK int ws_account_charge(struct ws_account *a, enum ws_resource r, uint64_t n);
/* Charges without asking: for what changes hands, because somebody else gave it up, and for what
 * is given back at once. */
void ws_account_take_over(struct ws_account *a, enum ws_resource r, uint64_t n);
/* @n was charged before. */
void ws_account_release(struct ws_account *a, enum ws_resource r, uint64_t n);
/* What a refused charge of @n met: what is used up, by whom, and which key of the configuration
 * raises it. Return: @buf. */
const char *ws_account_refusal(const struct ws_account *a, enum ws_resource r, uint64_t n,
                               char *buf, size_t size);

uint64_t ws_account_used(const struct ws_account *a, enum ws_resource r);
/* How much the account may hold at this moment, what it holds included. */
uint64_t ws_account_may_hold(const struct ws_account *a, enum ws_resource r);
uint64_t ws_account_n_refused(const struct ws_account *a, enum ws_resource r);
/* @now_ns: the host's clock. */
void ws_account_add_time(struct ws_account *a, enum ws_account_time t, uint64_t ns,
                         uint64_t now_ns);
uint64_t ws_account_time_ns(const struct ws_account *a, enum ws_account_time t);
/* For threads that work for the user without an account at hand: what they add to it is time of
 * WS_ACCOUNT_COMPILE, and what they take of it is held of WS_RESOURCE_BLOCK_BYTES, within the
 * limits as they are now. The reference is borrowed. NULL: no memory. */
struct ws_payer *ws_account_payer(struct ws_account *a);
/* The same of late (accounts/recent.h). */
uint64_t ws_account_recent_ns(const struct ws_account *a, enum ws_account_time t, uint64_t now_ns);
/* A queue in which accounts take turns, however many things of each wait: an account that has some
 * is in the queue by its node. Who queues them gives them their meaning. */
/* Adds @thing behind the others of the account. */
void ws_account_queue(struct ws_list *queue, struct ws_account *a, struct ws_list *thing);
/* Takes the next thing of the account whose turn it is. NULL: there is none. */
struct ws_list *ws_account_queue_pop(struct ws_list *queue);
/* "user 1000", "address 192.0.2.7": for messages. */
const char *ws_account_name(const struct ws_account *a);
/* Return: whether it is a user's, whose number is then in *ret. */
bool ws_account_uid(const struct ws_account *a, uint32_t *ret);

/* The pool that suits this machine, for pools that the configuration leaves open: it depends on
 * the limit of open files, vm.max_map_count and the machine's memory or that of the control
 * group. WS_ACCOUNT_UNLIMITED where the machine sets none. */
uint64_t ws_accounts_system_pool(enum ws_resource r);
/* The memory of which those pools are parts: the machine's, or that of the daemon's control group
 * if it has less. */
uint64_t ws_accounts_system_memory(void);

#endif
