/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/loader.h - threads that do long work which other clients need not wait for:
 * making the code of images, and templates. Threads: the loop calls everything here;
 * ws_loader_work.work runs on a loader thread. */
#ifndef WS_BACKEND_CODE_LOADER_H
#define WS_BACKEND_CODE_LOADER_H

#include "backend/code/cache.h"

struct ws_loader;

/* @n_threads: borrowed; read when the first work comes: how many threads there are to be. 0: the
 *   work is done inside ws_loader_run(). @wake_fd: an eventfd, written when work is done.
 *   Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_loader_new(struct ws_loader **ret, const uint32_t *n_threads, int wake_fd);
struct ws_loader *ws_loader_free(
    struct ws_loader *l); /* before the cache; calls what is left. NULL ok; returns NULL */
/* Calls done() of all work that has ended since. */
void ws_loader_take_done(struct ws_loader *l);

/* Any work. It is the caller's until done(), which comes even where work() has never been called
 * (the daemon ends). */
struct ws_loader_work {
    struct ws_loader_work *next;
    void (*work)(
        struct ws_loader_work *w); /* on a loader thread; without threads, inside ws_loader_run() */
    void (*done)(struct ws_loader_work *w); /* on the loop's; the same */
};
void ws_loader_run(struct ws_loader *l, struct ws_loader_work *w);

/* The code of an image. Everybody who asks for the same while it is being made waits for the
 * same work. */
struct ws_module_load {
    struct ws_list node; /* the loader's; unlink it to hear no more */
    /* Called once, after the node was unlinked. @code: if @r is 0, valid as long as the image.
     * @r: 0, WS_PTX_E_… (see @diags), -ENOMEM, -ECANCELED. */
    void (*done)(struct ws_module_load *load, struct ws_image *image, struct ws_code_entry *code,
                 int r, const struct ws_diags *diags);
};
/* Has the image's code made for the kind of @device. Return: 0; -ENOMEM, and @load is not
 * called. */
WS_MUST_CHECK int ws_loader_start(struct ws_loader *l, struct ws_module_load *load,
                                  struct ws_image *image, struct ws_device *device,
                                  const char *name);

#endif
