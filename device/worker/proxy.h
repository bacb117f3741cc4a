// SPDX-License-Identifier: Apache-2.0
/* device/worker/proxy.h - the daemon's side of a GPU in another process: what the files of this
 * folder share.
 *
 * Threads: the loop's and loaders' (everything of device.h), and four of its own: the reader,
 * which takes messages, calls op->done, and starts workers; the sender, which sends operations
 * where the loop would have to wait; the poster, which makes the calls that the loop posts
 * (post.c); and one for copies between GPUs (peer.c).
 *
 * Locks, in this order: hosts_lock (host.c), loaders_lock, calls_lock (held for a whole call,
 * until its result is in the tables that a new worker is told from), question_lock, tables_lock,
 * ops_lock, posts_lock. None is held while op->done runs. The loop takes neither calls_lock nor
 * tables_lock, which may be held while the driver waits for the GPU. */
#ifndef WS_DEVICE_WORKER_PROXY_H
#define WS_DEVICE_WORKER_PROXY_H

#include <pthread.h>

#include "base/list.h"
#include "base/table.h"
#include "device/alarms.h"
#include "device/check.h"
#include "device/progress.h"
#include "device/space.h"
#include "device/worker/post.h"
#include "device/worker/state.h"
#include "device/worker/wire.h"
#include "device/worker/worker.h"

enum {
    WS_PROXY_RESTARTS_MAX = 5,    /* within WS_PROXY_WINDOW_NS; with one more the GPU is given up */
    WS_PROXY_RESTARTS_LIMIT = 64, /* the most that can be configured */
    WS_PROXY_LOADERS = 4,
    WS_PROXY_HIGH_FD = 10, /* above the descriptors that a worker is started with */
};
#define WS_PROXY_WINDOW_NS (UINT64_C(60) * WS_NS_PER_S)

enum ws_proxy_state {
    WS_PROXY_STARTING, /* there is no worker, or it is being told all state */
    WS_PROXY_RUNNING,
    WS_PROXY_LOSING, /* the worker said that its context is lost; it will end */
    WS_PROXY_LOST,   /* the GPU is given up */
    WS_PROXY_CLOSED,
};

/* An operation that the device knows. */
struct ws_proxy_op {
    struct ws_list node; /* proxy.ops, by id */
    UT_hash_handle hh;
    uint64_t id;
    struct ws_op *op;
    unsigned epoch;
    bool entered;
    bool sent, replayed, cancelled;
    uint64_t after;        /* not to be sent before this post is done; 0: there is none such */
    uint64_t cancelled_ns; /* host clock */
    uint64_t urged_ns;     /* how long others have waited for it */
    uint64_t urged_at_ns;  /* host clock, when that was counted last; 0: nobody waits */
    bool timed_out;        /* the worker was ended for it */
    struct ws_wire_submit wire;
    /* Bytes of a copy that lie outside of regions: first those that go out, behind them those that
     * come back. */
    uint8_t *blob;
    int blob_fd; /* of the blob if it is in shared memory; -1 */
};

/* A space whose operations end with an error. */
struct ws_proxy_broken {
    uint64_t space;
    bool in_restart; /* it lost memory; else the driver had none for it */
};

struct ws_proxy {
    struct ws_device base;
    struct ws_wire_config config;
    struct ws_wire_hello hello; /* of the first worker */
    struct ws_cuda_capabilities capabilities;
    int program; /* open descriptor of the program: another version may be installed meanwhile */

    pthread_t reader, sender, poster;
    bool reader_on, sender_on, poster_on;

    /* The worker. Written by the reader, with calls_lock and ops_lock held. */
    int pid, ops_fd, calls_fd;
    struct ws_wire_page *page;
    _Atomic uint32_t generation; /* read without a lock, too */
    int page_fd;
    int open_result;
    bool opened;                 /* open_result is there */
    struct ws_diags *open_diags; /* while it is opened */

    /* ops_lock */
    pthread_mutex_t ops_lock;
    pthread_cond_t changed; /* state */
    pthread_cond_t sender_wake;
    enum ws_proxy_state state;
    bool closing;
    struct ws_list ops; /* all, by id */
    struct ws_proxy_op *by_id;
    uint64_t last_id;
    uint32_t n_unsent, n_held; /* held: unsent ones that wait for a post */
    struct ws_list asks;       /* notices about operations, to be sent before them */
    struct ws_proxy_broken *broken;
    size_t n_broken, cap_broken;
    struct ws_worker_status status;
    char lost_text[192];
    uint64_t patience_ns; /* given to cancelled operations (hang.c); 0: for ever */
    uint32_t max_restarts;
    bool urged; /* the worker was ended because others waited: not a fault of the GPU */
    uint64_t restarts_ns[WS_PROXY_RESTARTS_LIMIT]; /* a ring of max_restarts */

    /* calls_lock */
    pthread_mutex_t calls_lock;
    struct ws_wire_message *answer;

    /* posts_lock */
    pthread_mutex_t posts_lock;
    pthread_cond_t post_wake, post_done;
    struct ws_list posts; /* the poster works at the first one */
    uint64_t n_posted;
    bool posts_end;
    uint64_t promised_bytes; /* of memory that was posted since there was no post left */

    /* question_lock */
    pthread_mutex_t question_lock;
    int question_fd; /* a loader's connection for questions alone; -EIO: there is no worker */
    uint32_t question_generation; /* of its worker */

    pthread_t opener; /* the loop's thread */
    _Atomic uint64_t longest_wait_ns;

    /* tables_lock */
    pthread_mutex_t tables_lock;
    struct ws_list memories, instances;
    struct ws_proxy_map *maps;
    struct ws_proxy_kept *kept; /* granules */
    /* Innermost. Who changes regions holds calls_lock, too. */
    pthread_mutex_t regions_lock;
    struct ws_list regions;        /* the worker has them */
    struct ws_list posted_regions; /* it does not, or not yet */

    /* loaders_lock */
    pthread_mutex_t loaders_lock;
    pthread_cond_t loader_free;
    int loaders[WS_PROXY_LOADERS]; /* -1: none yet */
    bool loader_busy[WS_PROXY_LOADERS];
    uint32_t loader_generation[WS_PROXY_LOADERS];

    /* ops_lock. The device's clock is the host's less epoch_ns; the worker's is the host's less
     * worker_ns. */
    uint64_t epoch_ns, worker_ns;
    _Atomic uint64_t last_ns;
    struct ws_alarms alarms;

    struct ws_device_telemetry before; /* ops_lock; sums over the workers that have ended */
    _Atomic uint32_t n_running;
    _Atomic uint64_t memory_used;

    struct ws_proxy *next_open; /* host.c */
};

static inline struct ws_proxy *ws_proxy_of(struct ws_device *d)
{
    return WS_CONTAINER_OF(d, struct ws_proxy, base);
}
extern const struct ws_device_ops ws_proxy_ops;
uint64_t ws_proxy_number(void); /* never given twice in this process, never 0 */
uint64_t ws_proxy_host_ns(void);
/* From now on the device's clock shows no less than @ns. */
void ws_proxy_not_before(struct ws_proxy *p, uint64_t ns);

/* ---- call.c ---- */
/* Takes calls_lock, for a call and its changes of the tables; waits while a worker is being
 * started. Return: 0, or -EIO: the GPU is lost, and calls_lock is not taken. */
WS_MUST_CHECK int ws_proxy_calls_begin(struct ws_proxy *p);
void ws_proxy_calls_end(struct ws_proxy *p);
/* The result of a call if the worker has ended. */
#define WS_PROXY_ENDED INT64_MIN
/* A call, with calls_lock held; the answer is in p->answer until the next one. If the worker ends,
 * the next one is asked: calls.def says for which calls. Return: the worker's result, or -EIO: the
 * GPU is lost. */
WS_MUST_CHECK int64_t ws_proxy_call(struct ws_proxy *p, struct ws_wire_head head,
                                    struct ws_wire_part body, struct ws_wire_part more, int fd);
/* The same, but only this worker is asked. Return: also WS_PROXY_ENDED. */
WS_MUST_CHECK int64_t ws_proxy_call_now(struct ws_proxy *p, struct ws_wire_head head,
                                        struct ws_wire_part body, struct ws_wire_part more, int fd);
/* Waits until another worker than that of @generation runs. No lock held. Return: false: no other
 * will run. */
bool ws_proxy_await(struct ws_proxy *p, uint32_t generation);

/* ---- ops.c ---- */
void ws_proxy_submit(struct ws_device *d, struct ws_op *op);
/* Called when an operation that the worker has was cancelled: watches whether it ends (hang.c). */
void ws_proxy_watch(struct ws_proxy *p);
void ws_proxy_cancel(struct ws_device *d, struct ws_space *s);
int ws_proxy_preempt(struct ws_device *d, struct ws_op *op);
int ws_proxy_urge(struct ws_device *d, struct ws_op *op, uint64_t limit_ns); /* hang.c */
/* Messages; on the reader's thread. */
void ws_proxy_on_done(struct ws_proxy *p, struct ws_wire_message *m);
void ws_proxy_on_print(struct ws_proxy *p, struct ws_wire_message *m);
/* The worker has ended, for the reason @why: operations that it had begun and that cannot be
 * repeated end with an error. */
void ws_proxy_ops_worker_ended(struct ws_proxy *p, const char *why);
/* The GPU is lost: all operations end. */
void ws_proxy_ops_lost(struct ws_proxy *p);
void *ws_proxy_sender_main(void *arg);
/* The post @number is done: what waited for it may be sent. */
void ws_proxy_ops_posted(struct ws_proxy *p, uint64_t number);

/* ---- tables.c ---- */
int ws_proxy_mem_alloc(struct ws_device *d, uint64_t bytes, struct ws_backing *ret);
int ws_proxy_map_memory(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va,
                        uint64_t bytes, uint64_t offset, uint32_t readers, uint32_t writers);
void ws_proxy_unmap_memory(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va,
                           uint64_t bytes);
void ws_proxy_place(struct ws_device *d, void *arg, uint64_t *ret_granule, uint64_t *ret_offset);
void ws_proxy_set_access(struct ws_device *d, struct ws_space *s, uint64_t va, uint64_t bytes,
                         uint32_t readers, uint32_t writers);
int ws_proxy_instance_new(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                          const uint64_t *var_va, enum ws_instance_write write,
                          struct ws_dinstance **ret);
void ws_proxy_instance_free(struct ws_dinstance *i);
/* Of host memory; as ws_space_map_host(). @is_sure: it is posted; else it waits for the worker,
 * which may refuse it. */
WS_MUST_CHECK int ws_proxy_map_region(struct ws_proxy *p, uint64_t space, uint64_t va,
                                      uint64_t bytes, uint64_t region, uint64_t offset,
                                      bool is_sure);
void ws_proxy_unmap_region(struct ws_proxy *p, uint64_t space, uint64_t va);
void ws_proxy_on_made(struct ws_proxy *p, struct ws_wire_message *m);
void ws_proxy_on_gone(struct ws_proxy *p, struct ws_wire_message *m);
/* Replays all state to a worker that has just been started. calls_lock held. Return: 0 or -EPIPE:
 * it has ended, too. */
WS_MUST_CHECK int ws_proxy_restore(struct ws_proxy *p);
void ws_proxy_tables_free(struct ws_proxy *p);

/* ---- machine.c ---- */
/* Maps the variables at i->var_va into the instance's space. ws_proxy_vars_unmap() is to be called
 * whatever is returned. Return: 0, -EEXIST, -ENOMEM. */
WS_MUST_CHECK int ws_proxy_vars_map(struct ws_dinstance *i);
void ws_proxy_vars_unmap(struct ws_dinstance *i);
void ws_proxy_instance_vars(const struct ws_dinstance *i, uint64_t *ret_va);

/* ---- host.c ---- */
void ws_proxy_hosts_open(struct ws_proxy *p);
void ws_proxy_hosts_close(struct ws_proxy *p);
/* As ws_proxy_tell(), if @which is still open: modules may outlive a GPU that they were used on. */
void ws_proxy_tell_open(const struct ws_proxy *which, struct ws_wire_head head);
void ws_proxy_host_register(struct ws_device *d, void *host, uint64_t bytes, int fd);
void ws_proxy_host_unregister(struct ws_device *d, void *host, uint64_t bytes);
/* Whether [host, host + bytes) is in a region, and where. */
bool ws_proxy_region_find(struct ws_proxy *p, const void *host, uint64_t bytes, uint64_t *ret_id,
                          uint64_t *ret_offset);

/* ---- module.c ---- */
int ws_proxy_module_load(struct ws_device *d, const struct ws_ptx_module *m,
                         struct ws_dmodule **ret, struct ws_diags *diags);
void ws_proxy_module_unload(struct ws_dmodule *m);
/* Makes sure that the worker has @m. calls_lock not held. Return: 0, -ENOMEM, -EIO. */
WS_MUST_CHECK int ws_proxy_module_here(struct ws_proxy *p, struct ws_dmodule *m);
/* Whether the worker that runs now has @m; with calls_lock held it goes on to be so. */
WS_MUST_CHECK bool ws_proxy_module_is_here(const struct ws_proxy *p, const struct ws_dmodule *m);
/* Makes sure that a worker that is being started has @m; for the reader. */
WS_MUST_CHECK int ws_proxy_module_restore(struct ws_proxy *p, struct ws_dmodule *m);
int ws_proxy_occupancy(struct ws_device *d, const struct ws_dmodule *m, uint32_t kernel,
                       uint32_t threads, uint32_t shared_bytes, struct ws_occupancy *ret);
void ws_proxy_loaders_end(struct ws_proxy *p);
bool ws_proxy_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj);
/* Opens the connection for questions to the worker that has just been started, and closes the one
 * before. calls_lock held. */
void ws_proxy_question_open(struct ws_proxy *p);
void ws_proxy_question_close(struct ws_proxy *p);
void ws_proxy_module_unref(struct ws_dmodule *m);

/* ---- life.c ---- */
void *ws_proxy_reader_main(void *arg);
/* Ends the worker and waits for it. Not the reader. */
void ws_proxy_stop(struct ws_proxy *p);
/* The program, open. Return: descriptor, or WS_CUDA_E_MISSING's negative. */
WS_MUST_CHECK int ws_proxy_find_program(struct ws_diags *diags);
/* Starts @program and exchanges the first message. @page_fd: borrowed, -1: none. @again: the
 * daemon's loop may be waiting. @ret: the connections, {ops, calls}. @hello: the answer. Return:
 * its process, or negative errno. */
WS_MUST_CHECK int ws_proxy_spawn(int program, const struct ws_wire_config *c, int page_fd,
                                 bool again, int ret[2], struct ws_wire_message *hello);

/* ---- peer.c ---- */
/* Carries out a copy between the memories of two GPUs, and ends it. */
void ws_proxy_peer_copy(struct ws_op *op, struct ws_device *to, struct ws_device *from);
void ws_proxy_peers_end(void);

#endif
