/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/user.h - what the user of a client has, and may have: the charges of clients to
 * the accounts (accounts/account.h), and what the configuration says of users. Threads: the
 * loop. */
#ifndef WS_BACKEND_CLIENT_USER_H
#define WS_BACKEND_CLIENT_USER_H

#include <stddef.h>
#include <stdint.h>
#include "backend/accounts/account.h"
#include "base/macros.h"
#include "protocol/protocol.h"

struct ws_client;
struct ws_server;

/* Makes server->accounts. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_users_open(struct ws_server *s);

/* The account of the user of a new client, charged with one client. NULL: he may have no more,
 * or there is no memory: with the text for him in @buf. */
struct ws_account *ws_user_enter(struct ws_server *s, uint32_t uid, char *buf, size_t size);
/* The client is dropped. It keeps its reference, and what else it has, until it is freed. */
void ws_user_leave(struct ws_client *c);

/* Charges the client's user before something is taken. Return: OK, or OUT_OF_MEMORY: nothing is
 * charged, and the log says so once for each client and resource. */
Ws__Error ws_client_charge(struct ws_client *c, enum ws_resource r, uint64_t n);
/* Whether it may be logged that the client may have no more of @r (enum ws_resource, or
 * _WS_RESOURCE_N for its own quota of memory): the first time only. */
bool ws_client_may_tell(struct ws_client *c, unsigned r);
/* A charge of @n was refused: logs that, once for each client and resource. */
void ws_client_tell_refused(struct ws_client *c, enum ws_resource r, uint64_t n);
void ws_client_release(struct ws_client *c, enum ws_resource r, uint64_t n);

/* One small thing more, of which the daemon keeps a record. Return: as ws_client_charge(). */
Ws__Error ws_client_object(struct ws_client *c);
void ws_client_object_gone(struct ws_client *c);

/* Bytes of device memory that he may still have; UINT64_MAX: he has no limit. */
uint64_t ws_user_memory_left(const struct ws_client *c);
/* The weight of the client's tasks among those of other users, 100 is 1. */
uint32_t ws_user_share(const struct ws_client *c);

#endif
