/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/relaunch.h - launches that rewritten kernels carry out (code/rewrite.h): one
 * launch of a client becomes one or several of the device, each of a range of its blocks.
 * Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_RELAUNCH_H
#define WS_BACKEND_CLIENT_RELAUNCH_H

#include "backend/code/rewrite.h"
#include "base/list.h"

struct ws_client;
struct ws_command;
struct ws_server;
struct ws_relaunch; /* a launch of a client's, under way */

enum { WS_RELAUNCH_PAGES = 4096 };
struct ws_server_relaunch {
    struct ws_list list;
    uint64_t pages[WS_RELAUNCH_PAGES / 64]; /* of control words: a bit for each that is in use */
    uint64_t random, n, n_parts;
};

/* Turns the launch in @j into the first of its parts, where its kernel has a rewritten one that
 * will do for it. @info: of the rewritten kernel. */
void ws_relaunch_begin(struct ws_command *j, const struct ws_rewritten *kernel,
                       const struct ws_kernel_info *info);
/* A part has ended, or the launch could not even begin. Return: true: j->op is the next part, to
 * be submitted; false: all is done, and j->op says how, how long it took and how much energy. */
bool ws_relaunch_next(struct ws_command *j);
struct ws_relaunch *ws_relaunch_free(struct ws_relaunch *r);
/* Stops some of those that are running. */
void ws_relaunch_shake(struct ws_server *s);

#endif
