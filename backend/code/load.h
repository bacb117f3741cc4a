/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/load.h - the code of an image, made by the loader's threads. Everybody who asks for
 * the same while it is being made waits for the same work; when nobody waits for it any more, it is
 * stopped. Threads: the loop. */
#ifndef WS_BACKEND_CODE_LOAD_H
#define WS_BACKEND_CODE_LOAD_H

#include "backend/code/cache.h"
#include "backend/code/loader.h"

struct ws_loads { /* under way */
    struct ws_list tasks;
};
void ws_loads_init(struct ws_loads *l);

struct ws_module_load {
    /* Called once. @code: if @r is 0, valid as long as the image. @r: 0, WS_PTX_E_… (see @diags),
     * -ENOMEM, -ECANCELED. */
    void (*done)(struct ws_module_load *load, struct ws_image *image, struct ws_code_entry *code,
                 int r, const struct ws_diags *diags);
    struct ws_load_task *task; /* private; NULL: it waits for nothing */
    struct ws_list node;
};
/* Has the image's code made for the kind of @device, for the user of @account (NULL: nobody).
 * Return: 0; -ENOMEM, and @load is not called. */
WS_MUST_CHECK int ws_load_start(struct ws_loads *all, struct ws_loader *l,
                                struct ws_module_load *load, struct ws_image *image,
                                struct ws_device *device, const char *name,
                                struct ws_account *account);
/* It hears no more. Nothing happens where it was called already. */
void ws_load_forget(struct ws_module_load *load);

#endif
