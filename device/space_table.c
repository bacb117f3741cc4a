// SPDX-License-Identifier: Apache-2.0
/* Lists of pages double in size, so all old ones together are no larger than the newest. Pages that
 * become empty are used again. Entries below a count that readers have seen have been set before,
 * so that a reader never follows a pointer that was not. */
#include "device/space_table.h"

#include "base/alloc.h"
#include "base/error.h"

#define LOAD(p)     atomic_load_explicit(&(p), memory_order_acquire)
#define STORE(p, x) atomic_store_explicit(&(p), (x), memory_order_release)

enum { FIRST_PAGES = 4 };

static struct ws_space_pages *pages_new(uint32_t cap)
{
    struct ws_space_pages *v = ws_alloc(sizeof(*v) + (size_t)cap * sizeof(v->v[0]));
    if (v)
        v->cap = cap;
    return v;
}

int ws_space_table_init(struct ws_space_table *t)
{
    struct ws_space_pages *v = pages_new(FIRST_PAGES);
    if (!v)
        return ws_raise(-ENOMEM);
    *t = (struct ws_space_table){0};
    atomic_init(&t->pages, v);
    return 0;
}

void ws_space_table_deinit(struct ws_space_table *t)
{
    struct ws_space_pages *v = LOAD(t->pages);
    for (uint32_t i = 0; i < v->n; i++)
        free(LOAD(v->v[i].to));
    while (v) {
        struct ws_space_pages *older = v->older;
        free(v);
        v = older;
    }
    while (t->free_pages) {
        struct ws_space_page *next = t->free_pages->next;
        free(t->free_pages);
        t->free_pages = next;
    }
}

void *ws_space_table_above(const struct ws_space_table *t, uint64_t va)
{
    const struct ws_space_pages *v = LOAD(t->pages);
    uint32_t n = LOAD(v->n), i = ws_space_upper_bound(v->v, n, va);
    const struct ws_space_page *p = i ? LOAD(v->v[i - 1].to) : NULL;
    uint32_t n_entries = p ? LOAD(p->n) : 0,
             k = ws_space_upper_bound(p ? p->v : NULL, n_entries, va);
    if (k < n_entries)
        return LOAD(p->v[k].to);
    p = i < n ? LOAD(v->v[i].to) : NULL;
    return p && LOAD(p->n) ? LOAD(p->v[0].to) : NULL;
}

void *ws_space_table_next(const struct ws_space_table *t, struct ws_space_place *at)
{
    const struct ws_space_pages *v = LOAD(t->pages);
    if (at->page >= LOAD(v->n))
        return NULL;
    const struct ws_space_page *p = LOAD(v->v[at->page].to);
    void *to = LOAD(p->v[at->entry].to);
    if (++at->entry == LOAD(p->n))
        *at = (struct ws_space_place){at->page + 1, 0};
    return to;
}

/* ---- changes ---- */

static void entry_set(struct ws_space_entry *e, uint64_t va, void *to)
{
    STORE(e->va, va);
    STORE(e->to, to);
}

static void entry_move(struct ws_space_entry *to, const struct ws_space_entry *from)
{
    entry_set(to, LOAD(from->va), LOAD(from->to));
}

/* Puts an entry before the @i'th of @n, for which there is room. */
static void entry_insert(struct ws_space_entry *v, _Atomic uint32_t *n, uint32_t i, uint64_t va,
                         void *to)
{
    for (uint32_t k = *n; k > i; k--)
        entry_move(&v[k], &v[k - 1]);
    entry_set(&v[i], va, to);
    STORE(*n, *n + 1);
}

static void entry_remove(struct ws_space_entry *v, _Atomic uint32_t *n, uint32_t i)
{
    for (uint32_t k = i; k + 1 < *n; k++)
        entry_move(&v[k], &v[k + 1]);
    STORE(*n, *n - 1);
}

/* Room for one more page: the same list, or one twice as large. NULL: no memory. */
static struct ws_space_pages *pages_with_room(struct ws_space_pages *v)
{
    if (v->n < v->cap)
        return v;
    if (v->cap > UINT32_MAX / 4)
        return NULL;
    struct ws_space_pages *bigger = pages_new(v->cap * 2);
    if (!bigger)
        return NULL;
    for (uint32_t i = 0; i < v->n; i++)
        entry_move(&bigger->v[i], &v->v[i]);
    bigger->n = v->n;
    bigger->older = v;
    return bigger;
}

static struct ws_space_page *page_get(struct ws_space_table *t)
{
    struct ws_space_page *p = t->free_pages;
    if (p)
        t->free_pages = p->next;
    return p ? p : ws_alloc(sizeof(*p));
}

int ws_space_table_room(struct ws_space_table *t, uint64_t va, struct ws_space_room *ret)
{
    struct ws_space_pages *v = LOAD(t->pages);
    uint32_t i = ws_space_upper_bound(v->v, v->n, va);
    i -= i > 0;
    const struct ws_space_page *p = v->n ? LOAD(v->v[i].to) : NULL;
    *ret =
        (struct ws_space_room){.pages = v, .at = {i, p ? ws_space_upper_bound(p->v, p->n, va) : 0}};
    if (p && p->n < WS_SPACE_PAGE_ENTRIES)
        return 0;
    ret->pages = pages_with_room(v);
    ret->page = ret->pages ? page_get(t) : NULL;
    if (ret->page)
        return 0;
    if (ret->pages != v)
        free(ret->pages);
    return ws_raise(-ENOMEM);
}

/* Moves the upper half of a page into the next one, which is empty and not in the table yet. */
static void split(struct ws_space_pages *v, uint32_t i, struct ws_space_page *next)
{
    struct ws_space_page *p = LOAD(v->v[i].to);
    uint32_t half = p->n / 2;
    for (uint32_t k = half; k < p->n; k++)
        entry_move(&next->v[k - half], &p->v[k]);
    STORE(next->n, p->n - half);
    STORE(p->n, half);
    entry_insert(v->v, &v->n, i + 1, LOAD(next->v[0].va), next);
}

void ws_space_table_insert(struct ws_space_table *t, const struct ws_space_room *room, uint64_t va,
                           void *to)
{
    struct ws_space_pages *v = room->pages;
    uint32_t i = room->at.page, k = room->at.entry;
    STORE(t->pages, v);
    if (room->page && k == WS_SPACE_PAGE_ENTRIES) { /* they come in order: full pages stay full */
        entry_insert(room->page->v, &room->page->n, 0, va, to);
        entry_insert(v->v, &v->n, i + 1, va, room->page);
        return;
    }
    if (room->page && !v->n) {
        entry_insert(v->v, &v->n, 0, va, room->page);
    } else if (room->page) {
        split(v, i, room->page);
        const struct ws_space_page *p = LOAD(v->v[i].to);
        if (k > p->n) {
            k -= p->n;
            i++;
        }
    }
    struct ws_space_page *p = LOAD(v->v[i].to);
    entry_insert(p->v, &p->n, k, va, to);
    STORE(v->v[i].va, LOAD(p->v[0].va));
}

void ws_space_table_remove(struct ws_space_table *t, uint64_t va)
{
    struct ws_space_pages *v = LOAD(t->pages);
    uint32_t i = ws_space_upper_bound(v->v, v->n, va) - 1;
    struct ws_space_page *p = LOAD(v->v[i].to);
    entry_remove(p->v, &p->n, ws_space_upper_bound(p->v, p->n, va) - 1);
    if (p->n) {
        STORE(v->v[i].va, LOAD(p->v[0].va));
        return;
    }
    entry_remove(v->v, &v->n, i);
    p->next = t->free_pages;
    t->free_pages = p;
}
