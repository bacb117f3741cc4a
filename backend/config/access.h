// SPDX-License-Identifier: Apache-2.0
/* backend/config/access.h - who may use the daemon, and how much of it. Who somebody is: on one
 * machine the kernel says (the socket's peer credentials), over tcp the key of his that the list
 * of allowed ones ties to a user of this machine. Users' limits are over all clients of a user
 * together. Threads: the loop. */
#ifndef WS_BACKEND_CONFIG_ACCESS_H
#define WS_BACKEND_CONFIG_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/accounts/account.h"
#include "base/diag.h"
#include "base/macros.h"
#include "protocol/curve.h"

enum { WS_SHARE_DEFAULT = 100, WS_USER_NAME_BYTES = 33 };
struct ws_user_limits { /* of a section `user NAME { }` */
    uint32_t uid;
    bool everybody;                 /* "*": each user without a section */
    uint64_t limit[_WS_RESOURCE_N]; /* 0: no limit of its own */
    uint32_t share;                 /* weight of the user's tasks, 100 is 1 */
};
struct ws_allowed { /* a line of the list of allowed keys */
    uint8_t key[WS_CURVE_KEY_BYTES];
    uint32_t uid;
};
struct ws_subordinates { /* a line of subuid(5): users that another one can be */
    uint32_t first, n, owner;
};
struct ws_access {
    struct ws_user_limits *limits;
    size_t n_limits;
    struct ws_allowed *allowed;
    size_t n_allowed;
    struct ws_subordinates *subordinates;
    size_t n_subordinates;
};
#define WS_ACCESS_NULL ((struct ws_access){0})

/* The user of that name or number. */
bool ws_access_uid(const char *name, uint32_t *ret);
WS_MUST_CHECK int ws_access_add(struct ws_access *a, const struct ws_user_limits *l);
/* Reads a list of allowed keys, lines "USER KEY". Return: 0, 1 (wrong lines, in @diags),
 * negative errno of the file. */
WS_MUST_CHECK int ws_access_load(struct ws_access *a, const char *path, struct ws_diags *diags);
/* Reads a list of subordinate user IDs, lines "USER:FIRST:NUMBER". Other lines, and users whom
 * nobody knows, are not looked at. Return: 0, negative errno of the file. */
WS_MUST_CHECK int ws_access_load_subordinates(struct ws_access *a, const char *path);
/* Whose subordinate @uid is; @uid: nobody's. */
uint32_t ws_access_owner(const struct ws_access *a, uint32_t uid);
void ws_access_deinit(struct ws_access *a);
const struct ws_user_limits *ws_access_find(const struct ws_access *a, uint32_t uid);
const struct ws_allowed *ws_access_allows(const struct ws_access *a,
                                          const uint8_t key[WS_CURVE_KEY_BYTES]);

#endif
