/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/loader.h - threads that do long work which other clients need not wait for: making
 * templates, and the code of images (backend/code/load.h).
 *
 * Work has a budget of processor time and memory (base/budget.h). Users take turns: of those who
 * have work, the one goes on whose work has taken the least time. Work that runs while another user
 * waits is paused after a while, and goes on later; so whatever a user gives, others wait for a
 * few slices of time only. A user has as much work in hand as there are threads at most, and its
 * memory is reserved in the user's account before it is begun.
 *
 * Threads: the loop calls everything here; ws_loader_work.work runs on a loader thread. */
#ifndef WS_BACKEND_CODE_LOADER_H
#define WS_BACKEND_CODE_LOADER_H

#include "backend/accounts/account.h"
#include "base/budget.h"
#include "base/list.h"

struct ws_loader;

/* Borrowed; what they point to is read when work comes. */
struct ws_loader_limits {
    const uint32_t *n_threads; /* that work at a time; 0: ws_loader_run() does the work itself */
    const uint32_t *max_ms;    /* processor time of one piece of work */
};
/* @wake_fd: an eventfd, written when work is done. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_loader_new(struct ws_loader **ret, const struct ws_loader_limits *limits,
                                int wake_fd);
/* Stops what is under way, and calls done() of all that is left. Before the cache. NULL ok; returns
 * NULL. */
struct ws_loader *ws_loader_free(struct ws_loader *l);
/* Calls done() of all work that has ended since. */
void ws_loader_take_done(struct ws_loader *l);

/* Any work. It is the caller's until done(), which comes even where work() has never been called
 * (the daemon ends). */
struct ws_loader_work {
    /* On a loader thread, under the budget; without threads, inside ws_loader_run(). */
    void (*work)(struct ws_loader_work *w);
    void (*done)(struct ws_loader_work *w); /* on the loop's; the same */
    struct ws_account *account;             /* of the user whose work it is; NULL: nobody's */
    struct ws_budget budget;                /* out: how it ended, what it took */
    /* private to the loader */
    struct ws_loader *loader;
    struct ws_loader_user *user;
    struct ws_list node;
    bool paused;
    uint64_t reserved_bytes, counted_ns, slice_ns;
};
void ws_loader_run(struct ws_loader *l, struct ws_loader_work *w);
/* Which limit the work met, as a sentence's end; "": none, or it was stopped. @buf: for it. */
const char *ws_loader_limit_text(const struct ws_loader_work *w, char *buf, size_t size);

#endif
