/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/user.h - users of the machine who have clients: how much all clients of one
 * have together. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_USER_H
#define WS_BACKEND_CLIENT_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws_client;
struct ws_server;
struct ws_user;

/* The user of a new client, or NULL: with the text for him in @buf. */
struct ws_user *ws_user_enter(struct ws_server *s, uint32_t uid, char *buf, size_t size);
void ws_user_leave(struct ws_user *u);                      /* the client is dropped */
void ws_user_unref(struct ws_server *s, struct ws_user *u); /* …and freed. NULL ok */
/* Whether the client's user may have @bytes more of device memory; if not, that is logged once
 * for each client. */
bool ws_user_memory_ok(struct ws_client *c, uint64_t bytes);
void ws_user_charge(struct ws_user *u, int64_t bytes);
/* Bytes that he may still have; UINT64_MAX: he has no limit. */
uint64_t ws_user_memory_left(const struct ws_client *c);
/* The weight of the client's tasks among those of other users, 100 is 1. */
uint32_t ws_user_share(const struct ws_client *c);

#endif
