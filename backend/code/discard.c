// SPDX-License-Identifier: Apache-2.0
/* Giving a page back takes the kernel about 0.1 us, so 256 MiB take tens of ms. The work is
 * nobody's for the loader: it takes turns with the users. */
#include "backend/code/discard.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

enum { QUICK_BYTES = 256 << 10, STEP_BYTES = 1 << 20 };
/* Beyond that, what waits stays charged. */
#define MUCH_BYTES (UINT64_C(1) << 30)

struct discard {
    struct ws_loader_work work;
    struct ws_discards *of;
    void (*give_back)(void *p, uint64_t bytes);
    void *p;
    uint64_t bytes;
    struct ws_discard_charge charge; /* to be released at the end */
};

static void release(const struct ws_discard_charge *c)
{
    if (c->account)
        ws_account_release(c->account, c->resource, c->n);
}

static void work(struct ws_loader_work *w)
{
    struct discard *d = WS_CONTAINER_OF(w, struct discard, work);
    d->give_back(d->p, d->bytes);
    d->give_back = NULL;
}

static void done(struct ws_loader_work *w)
{
    struct discard *d = WS_CONTAINER_OF(w, struct discard, work);
    if (d->give_back) /* no thread took it up */
        d->give_back(d->p, d->bytes);
    d->of->waiting_bytes -= d->bytes;
    release(&d->charge);
    ws_account_unref(d->charge.account);
    free(d);
}

void ws_discard(struct ws_discards *all, void (*give_back)(void *p, uint64_t bytes), void *p,
                uint64_t bytes, const struct ws_discard_charge *charge)
{
    struct discard *d = all->loader && bytes > QUICK_BYTES ? ws_alloc(sizeof(*d)) : NULL;
    if (!d) {
        give_back(p, bytes);
        release(charge);
        return;
    }
    *d = (struct discard){.work = {.work = work, .done = done},
                          .of = all,
                          .give_back = give_back,
                          .p = p,
                          .bytes = bytes};
    all->waiting_bytes += bytes;
    if (all->waiting_bytes > MUCH_BYTES && charge->account) {
        d->charge = *charge;
        ws_account_ref(charge->account);
    } else {
        release(charge);
    }
    ws_loader_run(all->loader, &d->work);
}

/* free() gives all pages of a large block back in one call to the kernel, which holds the lock of
 * the process's memory map until its end: meanwhile no other thread can map memory. Given back in
 * steps, the pages cost the others only a step's wait. */
static void give_pages_back(void *p, uint64_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = ((uintptr_t)p + page - 1) & ~(page - 1),
              end = ((uintptr_t)p + bytes) & ~(page - 1);
    for (; at < end; at += STEP_BYTES) {
        uintptr_t n = end - at < STEP_BYTES ? end - at : STEP_BYTES;
        (void)madvise((void *)at, n, MADV_DONTNEED); /* without it, free() takes longer, no more */
    }
}

void ws_discard_free(void *p, uint64_t bytes)
{
    if (bytes > QUICK_BYTES)
        give_pages_back(p, bytes);
    free(p);
}
