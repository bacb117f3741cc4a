// SPDX-License-Identifier: Apache-2.0
/* Posts: what the daemon's loop wants of the worker without waiting for it.
 *
 * To make, to map or to release memory, or to register host memory, the driver may wait until the
 * GPU has nothing to do, which may take as long as any client's kernel. So the loop posts such
 * calls and goes on; the poster's thread makes them one after the other, in the order in which they
 * were posted. An operation waits for the posts of its space that came before it (ops.c), so the
 * device has the same order of things as if the loop had waited.
 *
 * A post has no result, so it must be sure to succeed. Addresses are checked before; memory is
 * promised only while the worker says that the GPU has clearly more of it free. Should the driver
 * refuse a post all the same, operations of that space end with an error. Where memory is scarce,
 * the loop does wait: programs react to an allocation that fails. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/worker/proxy.h"

#define GRANULE_BYTES (UINT64_C(2) << 20)
/* Left free by promises: the driver and device/cuda need memory, too. */
#define SPARE_BYTES (UINT64_C(128) << 20)

/* ---- how long the loop is kept ---- */

struct ws_proxy_wait ws_proxy_wait_begin(struct ws_proxy *p)
{
    bool loop = pthread_equal(p->opener, pthread_self());
    return (struct ws_proxy_wait){loop ? p : NULL, loop ? ws_proxy_host_ns() : 0};
}

void ws_proxy_wait_end(const struct ws_proxy_wait *w)
{
    if (!w->proxy)
        return;
    uint64_t ns = ws_proxy_host_ns() - w->since_ns; /* only the loop writes it */
    if (ns > w->proxy->longest_wait_ns)
        w->proxy->longest_wait_ns = ns;
}

/* ---- posting ---- */

struct ws_proxy_post *ws_proxy_post_new(struct ws_proxy *p,
                                        void (*run)(struct ws_proxy *p, struct ws_proxy_post *post),
                                        uint64_t space, void *what)
{
    struct ws_proxy_post *post = ws_alloc(sizeof(*post));
    if (!post) {
        ws_log(WS_ERROR, "worker: gpu=%u something was not posted: out of memory", p->base.index);
        return NULL;
    }
    post->run = run;
    post->space = space;
    post->what = what;
    return post;
}

void ws_proxy_post(struct ws_proxy *p, struct ws_proxy_post *post)
{
    pthread_mutex_lock(&p->posts_lock);
    post->number = ++p->n_posted;
    ws_list_append(&p->posts, &post->node);
    pthread_cond_signal(&p->post_wake);
    pthread_mutex_unlock(&p->posts_lock);
}

void ws_proxy_tell_now(struct ws_proxy *p, struct ws_wire_head head, const struct ws_wire_map *map)
{
    static const struct ws_wire_map none;
    if (ws_proxy_calls_begin(p))
        return;
    /* A worker that has ended keeps nothing, and the next one has nothing to be told of. */
    if (p->calls_fd >= 0)
        (void)!ws_wire_send(p->calls_fd, head,
                            (struct ws_wire_part){map ? map : &none, sizeof(*map)}, WS_PART_NONE,
                            -1, 0);
    ws_proxy_calls_end(p);
}

static void tell(struct ws_proxy *p, struct ws_proxy_post *post)
{
    ws_proxy_tell_now(p, post->head, &post->map);
}

void ws_proxy_tell(struct ws_proxy *p, struct ws_wire_head head, const struct ws_wire_map *map)
{
    struct ws_proxy_post *post = ws_proxy_post_new(p, tell, 0, NULL);
    if (!post)
        return;
    post->head = head;
    if (map)
        post->map = *map;
    ws_proxy_post(p, post);
}

bool ws_proxy_promise(struct ws_proxy *p, uint64_t bytes)
{
    uint64_t free_bytes = atomic_load(&p->page->free_bytes);
    uint64_t most = free_bytes > SPARE_BYTES ? free_bytes - SPARE_BYTES : 0;
    /* Small memory shares granules with others, and may need one that begins in the next. */
    uint64_t need = WS_ALIGN_UP(bytes, GRANULE_BYTES) + GRANULE_BYTES;
    pthread_mutex_lock(&p->ops_lock);
    bool lost = p->state == WS_PROXY_LOST;
    pthread_mutex_unlock(&p->ops_lock);
    if (lost)
        return false;
    pthread_mutex_lock(&p->posts_lock);
    bool may = need >= bytes && need <= most && p->promised_bytes <= most - need;
    p->promised_bytes += may ? need : 0;
    pthread_mutex_unlock(&p->posts_lock);
    return may;
}

/* ---- what is not done yet ---- */

uint64_t ws_proxy_pending(struct ws_proxy *p, uint64_t space)
{
    uint64_t last = 0;
    pthread_mutex_lock(&p->posts_lock);
    ws_list_for_each (it, &p->posts) {
        const struct ws_proxy_post *post = ws_list_entry(it, struct ws_proxy_post, node);
        if (post->space && (!space || post->space == space))
            last = post->number;
    }
    pthread_mutex_unlock(&p->posts_lock);
    return last;
}

/* posts_lock held. */
static struct ws_proxy_post *first(struct ws_proxy *p)
{
    return ws_list_empty(&p->posts) ? NULL
                                    : ws_list_entry(p->posts.next, struct ws_proxy_post, node);
}

void ws_proxy_settle(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->posts_lock);
    uint64_t until = p->n_posted;
    for (const struct ws_proxy_post *post; (post = first(p)) && post->number <= until;)
        pthread_cond_wait(&p->post_done, &p->posts_lock);
    pthread_mutex_unlock(&p->posts_lock);
}

void *ws_proxy_poster_main(void *arg)
{
    struct ws_proxy *p = arg;
    struct ws_proxy_post *post;
    pthread_mutex_lock(&p->posts_lock);
    for (;;) {
        while (!(post = first(p)) && !p->posts_end)
            pthread_cond_wait(&p->post_wake, &p->posts_lock);
        if (!post)
            break;
        pthread_mutex_unlock(&p->posts_lock);
        post->run(p, post); /* it stays in the list until it is done */
        pthread_mutex_lock(&p->posts_lock);
        ws_list_remove(&post->node);
        if (!first(p))
            p->promised_bytes = 0; /* the worker counts it as used from now on */
        pthread_cond_broadcast(&p->post_done);
        pthread_mutex_unlock(&p->posts_lock);
        ws_proxy_ops_posted(p, post->number);
        free(post);
        pthread_mutex_lock(&p->posts_lock);
    }
    pthread_mutex_unlock(&p->posts_lock);
    return NULL;
}
