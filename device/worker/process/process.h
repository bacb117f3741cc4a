// SPDX-License-Identifier: Apache-2.0
/* device/worker/process/process.h - what the files of wattshare-gpu-worker share.
 *
 * Threads: main() takes submissions (ops.c), one takes calls (calls.c), one for each loader takes
 * modules (modules.c), one releases code (later.c), and one writes the shared page (report.c);
 * the device's own threads call op->done. */
#ifndef WS_DEVICE_WORKER_PROCESS_H
#define WS_DEVICE_WORKER_PROCESS_H

#include <pthread.h>

#include "base/table.h"
#include "device/space.h"
#include "device/worker/wire.h"

struct worker_op;

/* An object of the device, under the number that the daemon gave it. */
struct worker_object {
    uint64_t id;
    union {
        struct ws_space *space;
        struct ws_memory *memory;
        struct ws_dinstance *instance;
        struct {
            struct ws_dmodule *code;
            struct ws_ptx_module *ptx;
        } module;
        struct {
            uint8_t *map;
            uint64_t bytes;
        } region;
        struct worker_op *op;
    };
    UT_hash_handle hh;
};

/* The process. There is one. */
struct worker {
    struct ws_device *device;
    struct ws_wire_page *page;
    pthread_mutex_t lock; /* of the tables; whoever holds it waits for nothing */
    struct worker_object *spaces, *memories, *modules, *instances, *regions, *ops;
    _Atomic uint32_t n_running;
};
extern struct worker worker;

/* ---- objects.c ---- */
/* Lock held. Return: borrowed, or NULL. */
struct worker_object *worker_find(struct worker_object *table, uint64_t id);
/* Copies the object. Return: whether it is there. */
bool worker_known(struct worker_object *const *table, uint64_t id, struct worker_object *ret);
/* The same, and removes it from the table. */
bool worker_remove(struct worker_object **table, uint64_t id, struct worker_object *ret);
/* Adds a copy of @what. Return: 0 or -ENOMEM (also where the number is taken). */
WS_MUST_CHECK int worker_add(struct worker_object **table, const struct worker_object *what);
/* The space @id, made when it is first named. Return: borrowed; NULL: @id is 0, or there is no
 * memory. */
struct ws_space *worker_space(uint64_t id);
/* How an object of each kind is released. */
void worker_release_instance(struct worker_object *o);
void worker_release_space(struct worker_object *o);
void worker_release_memory(struct worker_object *o);
void worker_release_module(struct worker_object *o);
void worker_release_region(struct worker_object *o);
/* ---- later.c ---- */
/* Has a copy of @o released by a thread for it, after all that was given before. */
void worker_release_later(const struct worker_object *o, void (*release)(struct worker_object *o));
/* The thread ends when nothing is left. */
void worker_later_end(void);
void *worker_later_main(void *arg);

/* Releases all, at the end. */
void worker_release_all(void);

/* ---- report.c: to the daemon, without an answer ---- */
void worker_send(struct ws_wire_head head, struct ws_wire_part body, struct ws_wire_part more,
                 int fd);
/* As ws_space_set_print() wants it; @arg: the space's number. */
void worker_print(void *arg, enum ws_output to, const char *text, size_t n);
void worker_write_page(void);
void worker_write_free(void); /* how much memory the GPU has free */
void *worker_page_main(void *arg);
/* Ends the process if the context is lost and nothing is running any more. */
void worker_end_if_lost(void);
/* A call was to be answered with @value. If that is an error and the context is lost, it is no
 * answer for whoever asked, which may be another client than the one that has lost it: this does
 * not return, and the next worker is asked. */
void worker_no_answer_if_lost(uint32_t type, int64_t value);

/* ---- ops.c: for main()'s thread; none waits for the GPU ---- */
void worker_on_submit(struct ws_wire_message *m);
void worker_on_preempt(struct ws_wire_message *m);
void worker_on_cancel(struct ws_wire_message *m);

/* ---- calls.c ---- */
void *worker_calls_main(void *arg);
/* What the device is told to keep memory by (device/cuda/keep.h). */
extern const struct ws_cuda_keep worker_keep;

/* ---- modules.c ---- */
/* The thread of a loader. @arg: its connection, as intptr_t; taken. */
void *worker_loader_main(void *arg);

#endif
