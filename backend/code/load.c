// SPDX-License-Identifier: Apache-2.0
/* Extracting, parsing, linking and decoding an image takes milliseconds, which other clients need
 * not wait for.
 *
 * A task is one image for one kind of device. The loop owns tasks and loads; a thread of the loader
 * sees a task while it works, and touches nothing else but the cache's codes, which have a lock. A
 * client that ends meanwhile takes its loads away. A task without loads is told to stop; whoever
 * asks for the same image before it has ended gets a task of his own. */
#include "backend/code/load.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

struct ws_load_task {
    struct ws_loader_work work; /* make and finish below */
    struct ws_list node;        /* ws_loads.tasks */
    struct ws_image *image;     /* reference */
    struct ws_device *device;
    char *name;
    struct ws_list loads;
    /* out */
    int r;
    struct ws_code_entry *code; /* reference */
    struct ws_diags diags;
};

void ws_loads_init(struct ws_loads *l)
{
    ws_list_init(&l->tasks);
}

static void make(struct ws_loader_work *w)
{
    struct ws_load_task *t = WS_CONTAINER_OF(w, struct ws_load_task, work);
    t->r =
        ws_image_code_make(t->image, t->device, t->name[0] ? t->name : NULL, &t->code, &t->diags);
}

/* Says which limit it was that made it fail. */
static void explain(struct ws_load_task *t)
{
    char text[160];
    const char *why = ws_loader_limit_text(&t->work, text, sizeof(text));
    if (!t->r || !*why)
        return;
    t->r = WS_PTX_E_LIMIT;
    ws_diags_deinit(&t->diags); /* what was found in a part of the module */
    t->diags = WS_DIAGS_NULL;
    ws_diags_add(&t->diags, t->name[0] ? t->name : NULL, 0, 0, "the module %s", why);
}

static void adopt(struct ws_load_task *t)
{
    struct ws_code_entry *known = ws_image_code_known(t->image, t->device);
    if (known) {
        ws_code_unref(t->image->cache, t->code);
        t->code = known;
    } else {
        t->r = ws_image_code_adopt(t->image, t->device, t->code);
    }
}

static void finish(struct ws_loader_work *w)
{
    struct ws_load_task *t = WS_CONTAINER_OF(w, struct ws_load_task, work);
    struct ws_list *n;
    ws_list_remove(&t->node);
    explain(t);
    if (!t->r)
        adopt(t);
    while ((n = ws_list_pop(&t->loads))) {
        struct ws_module_load *load = ws_list_entry(n, struct ws_module_load, node);
        load->task = NULL;
        load->done(load, t->image, t->code, t->r, &t->diags);
    }
    ws_image_unref(t->image);
    ws_diags_deinit(&t->diags);
    free(t->name);
    free(t);
}

static struct ws_load_task *find(const struct ws_loads *all, const struct ws_image *image,
                                 const struct ws_device *d)
{
    ws_list_for_each (n, &all->tasks) {
        struct ws_load_task *t = ws_list_entry(n, struct ws_load_task, node);
        if (t->image == image && !ws_list_empty(&t->loads) &&
            t->device->spec.cc_major == d->spec.cc_major &&
            t->device->spec.cc_minor == d->spec.cc_minor)
            return t;
    }
    return NULL;
}

static struct ws_load_task *task_new(struct ws_loads *all, struct ws_image *image,
                                     struct ws_device *d, const char *name)
{
    struct ws_load_task *t = ws_alloc(sizeof(*t));
    char *copy = t ? ws_strdup(name) : NULL;
    if (!copy) {
        free(t);
        return NULL;
    }
    t->r = -ECANCELED; /* unless it is taken up */
    t->image = ws_image_ref(image);
    t->device = d;
    t->name = copy;
    t->work = (struct ws_loader_work){.work = make, .done = finish};
    ws_list_init(&t->loads);
    ws_list_append(&all->tasks, &t->node);
    return t;
}

int ws_load_start(struct ws_loads *all, struct ws_loader *l, struct ws_module_load *load,
                  struct ws_image *image, struct ws_device *device, const char *name,
                  struct ws_account *account)
{
    struct ws_load_task *t = find(all, image, device);
    bool fresh = !t;
    if (fresh)
        t = task_new(all, image, device, name);
    if (!t)
        return ws_raise(-ENOMEM);
    load->task = t;
    ws_list_append(&t->loads, &load->node);
    if (fresh) {
        t->work.account = account;
        ws_loader_run(l, &t->work);
    }
    return 0;
}

void ws_load_forget(struct ws_module_load *load)
{
    struct ws_load_task *t = load->task;
    if (!t)
        return;
    load->task = NULL;
    ws_list_remove(&load->node);
    if (ws_list_empty(&t->loads))
        ws_budget_stop(&t->work.budget);
}
