/* SPDX-License-Identifier: Apache-2.0 */
/* device/worker/post.h - what the daemon's loop wants of a worker without waiting for it, and how
 * long the loop was kept nevertheless. post.c says why. Locks: see proxy.h. */
#ifndef WS_DEVICE_WORKER_POST_H
#define WS_DEVICE_WORKER_POST_H

#include "base/list.h"
#include "device/worker/wire.h"

struct ws_proxy;

/* What the worker is to be told or asked, when all that was posted before it is done (post.c). */
struct ws_proxy_post {
    struct ws_list node;
    uint64_t number; /* later posts have larger ones */
    uint64_t space;  /* whose operations wait for it; 0: none do */
    void (*run)(struct ws_proxy *p, struct ws_proxy_post *post); /* on the poster's thread */
    struct ws_wire_head head;                                    /* a notice's */
    struct ws_wire_map map;
    void *what; /* the memory, mapping, region or instance */
};

/* A post that calls @run; NULL: no memory, which is in the log. */
struct ws_proxy_post *ws_proxy_post_new(struct ws_proxy *p,
                                        void (*run)(struct ws_proxy *p, struct ws_proxy_post *post),
                                        uint64_t space, void *what);
/* Puts it behind the others (taken). Any thread; never waits for the worker. */
void ws_proxy_post(struct ws_proxy *p, struct ws_proxy_post *post);
/* Posts a notice; @map may be NULL. */
void ws_proxy_tell(struct ws_proxy *p, struct ws_wire_head head, const struct ws_wire_map *map);
/* Tells the worker at once. The poster's thread, no lock held. */
void ws_proxy_tell_now(struct ws_proxy *p, struct ws_wire_head head, const struct ws_wire_map *map);
/* Counts @bytes as promised if memory of that size is sure to be had. */
bool ws_proxy_promise(struct ws_proxy *p, uint64_t bytes);
/* Return: the number of the last post that is not done, of those for @space if @space is not 0; 0:
 * there is none. */
uint64_t ws_proxy_pending(struct ws_proxy *p, uint64_t space);
/* Waits until all that has been posted is done. Not the poster; no lock held. */
void ws_proxy_settle(struct ws_proxy *p);
void *ws_proxy_poster_main(void *arg);
/* Measures how long the loop is kept: the longest time between the two is in the status. */
struct ws_proxy_wait {
    struct ws_proxy *proxy;
    uint64_t since_ns;
};
struct ws_proxy_wait ws_proxy_wait_begin(struct ws_proxy *p);
void ws_proxy_wait_end(const struct ws_proxy_wait *w);
/* From here to the end of the function. */
#define WS_PROXY_MEASURE(p)                                                                        \
    __attribute__((cleanup(ws_proxy_wait_end), unused)) const struct ws_proxy_wait measured_ =     \
        ws_proxy_wait_begin(p)

#endif
