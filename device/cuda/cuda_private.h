// SPDX-License-Identifier: Apache-2.0
/* device/cuda/cuda_private.h - the device, as this folder's files share it: its structure, errors,
 * properties and time. The other declarations are in memory.h, code.h and run.h.
 *
 * Threads: the loop's (everything of device.h), loaders' (module_load), and five of its own: the
 * waiter waits for what runs and calls op->done; the starter starts what may block (pageable
 * copies); the compiler has code compiled; the unloader has it unloaded; the meter reads NVML.
 * Locks, in this order: a module's lock, memory_lock, run_lock. None is held while op->done runs,
 * and run_lock is not held while the driver could wait for the GPU. */
#ifndef WS_DEVICE_CUDA_PRIVATE_H
#define WS_DEVICE_CUDA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "device/alarms.h"
#include "device/check.h"
#include "device/cuda/code.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/cuda/keep.h"
#include "device/cuda/memory.h"
#include "device/cuda/nvml.h"
#include "device/cuda/run.h"
#include "device/progress.h"
#include "device/space.h"

struct ws_cuda_greens;
struct ws_cuda_place;
struct ws_cuda_region;
struct ws_cuda_slab;
/* Threads that start what may block. */
enum { WS_CUDA_STARTER, WS_CUDA_COMPILER, _WS_CUDA_STARTERS };

struct ws_cuda {
    struct ws_device base;
    struct ws_cuda_options options;
    struct ws_cuda_capabilities capabilities;
    uint64_t id; /* never given twice */
    struct ws_cu cu;
    int ordinal;
    ws_cu_device device;
    struct ws_cu_uuid uuid;
    ws_cu_ctx context;
    bool retained, can_register;
    uint64_t memory_limit;

    /* memory.c */
    pthread_mutex_t memory_lock;
    _Atomic uint64_t memory_used;
    struct ws_cuda_place *places; /* uthash by address */
    uint32_t peers, peers_known;  /* bits by device; reserve_lock */
    pthread_mutex_t spare_lock;   /* the innermost */
    ws_cu_handle spare[64];       /* granules */
    uint32_t n_spare;
    _Atomic uint64_t n_pieces;
    _Atomic bool can_export;
    bool maps_host;
    struct ws_cuda_keep keep;
    ws_cu_stream memory_stream;
    _Atomic uint32_t n_clearing;   /* memory is being filled: ws_cuda_clear() */
    pthread_mutex_t clearing_lock; /* n_clearing becomes less under it; innermost */
    pthread_cond_t cleared;
    const void *zeros;                 /* pinned, WS_CUDA_ZEROS_BYTES */
    pthread_mutex_t registered_lock;   /* innermost */
    struct ws_cuda_region *registered; /* list */

    /* stock.c */
    pthread_mutex_t stock_lock; /* innermost */
    struct ws_cuda_slab *stock[_WS_CUDA_STOCKS];

    /* clock.c */
    uint64_t zero_ns; /* the host's time at device time 0 */
    ws_cu_stream clock_stream;
    /* The waiter's: */
    ws_cu_event reference, next_reference;
    uint64_t reference_ns;
    uint64_t asked_ns; /* host's time when the last reference was asked for */
    bool asked;        /* it was not seen yet */

    /* run.c */
    pthread_mutex_t run_lock;
    pthread_cond_t waiter_wake;
    pthread_t waiter;
    bool waiter_on, stop;
    struct ws_cuda_starter {
        struct ws_cuda *device;
        enum ws_cuda_state state; /* of the runs that it starts */
        pthread_cond_t wake;
        pthread_t thread;
        bool on;
    } starters[_WS_CUDA_STARTERS];
    /* run_lock: all runs; and by their state those that no thread has */
    struct ws_list runs, in[_WS_CUDA_STATES];
    struct ws_cuda_queue *free_queues, **queues;
    uint32_t n_queues;
    ws_cu_stream flag_stream; /* asks kernels to stop; NULL: the driver cannot */
    ws_cu_event flag_event;   /* all flags that were raised so far have reached the GPU */
    /* The ws_cu_result that destroyed the context: set once, by any thread, without a lock */
    _Atomic int lost;
    char lost_text[192]; /* run_lock; read by ws_cuda_lost_text() */
    /* Of a thread, where the driver cannot tell the need; 0: the driver's default. Written under
     * memory_lock */
    _Atomic uint64_t stack_bytes;
    _Atomic uint32_t n_running;
    _Atomic uint64_t n_kernels, n_copies, copied_bytes;
    uint64_t busy_ns, sm_busy_ns, busy_until_ns; /* run_lock */

    struct ws_cuda_greens *greens; /* green.c; NULL: the driver has none */

    /* run_lock: instances whose code is to be compiled before it is needed (module.c) */
    struct ws_list preloads;
    struct ws_dinstance *preloading; /* the compiler thread has it; NULL: none */
    pthread_cond_t preloaded;

    struct ws_cuda_carrier { /* carry.c */
        ws_cu_module module;
        ws_cu_function function;
        ws_cu_stream stream; /* goes before others; the waiter's */
        ws_cu_event event;
    } carrier;

    struct ws_cuda_unloads {  /* unload.c */
        pthread_mutex_t lock; /* innermost; of the following */
        pthread_cond_t wake;
        ws_cu_module *v;
        size_t n, cap;
        bool stop, on;
        pthread_t thread;
    } unloads;

    struct ws_alarms alarms;

    /* meter, clock.c */
    pthread_t meter;
    bool meter_on;
    pthread_cond_t meter_wake; /* run_lock */
    pthread_mutex_t energy_lock;
    struct ws_nvml *nvml;
    uint64_t counter_mj, window_mj, window_ns, sampled_ns;
    uint64_t energy_uj; /* since the device was opened */
    uint64_t given_uj;  /* the part of it that operations were given */
    uint64_t power_mw;
    bool has_counter, has_power;
};

static inline struct ws_cuda *ws_cuda_of(struct ws_device *d)
{
    return WS_CONTAINER_OF(d, struct ws_cuda, base);
}

/* Makes the context current on this thread. */
ws_cu_result ws_cuda_enter(struct ws_cuda *d);
/* Notes a result: one that destroys the context marks the device lost. @what: for the log. Return:
 * @r. */
ws_cu_result ws_cuda_result(struct ws_cuda *d, ws_cu_result r, const char *what);
#define WS_CU(d, call, ...)      ws_cuda_result((d), (d)->cu.call(__VA_ARGS__), #call)
#define WS_CUDA_NOTED(d, result) ws_cuda_result((d), (result), #result)
/* Whether the work before @e has ended: SUCCESS or NOT_READY. Beside the errors that destroy the
 * context, the driver may not know what became of the work (UNKNOWN), as when the GPU does not
 * answer any more. No later work would end then, so the device is marked lost, too. */
ws_cu_result ws_cuda_end_of(struct ws_cuda *d, ws_cu_event e);
/* Waits until the stream is empty, as far as the driver says; to be called before what its work
 * uses is released. Makes the context current. */
ws_cu_result ws_cuda_drain(struct ws_cuda *d, ws_cu_stream s);
bool ws_cuda_is_sticky(ws_cu_result r);
enum ws_dev_error ws_cuda_error(ws_cu_result r);
/* Ends an operation with the error of a driver call. */
void ws_cuda_fail(struct ws_cuda *d, struct ws_op *op, ws_cu_result r, const char *what);
/* Adds a capability; the text says how, or why not. */
void ws_cuda_say(struct ws_cuda *d, const char *name, bool yes, const char *fmt, ...)
    WS_PRINTF(4, 5);

/* ---- spec.c ---- */
int ws_cuda_read_spec(struct ws_cuda *d, struct ws_diags *diags);

/* ---- clock.c ---- */
int ws_cuda_clock_open(struct ws_cuda *d);
void ws_cuda_clock_close(struct ws_cuda *d);
/* To be called often; never waits. The waiter thread only, as the next two. */
void ws_cuda_clock_renew(struct ws_cuda *d);
/* The device time of an event, if it is not long ago. Return: false: the driver does not tell. */
bool ws_cuda_event_ns(struct ws_cuda *d, ws_cu_event e, uint64_t *ret);
/* The time between two events of one stream. Return: as above. */
bool ws_cuda_span_ns(struct ws_cuda *d, ws_cu_event from, ws_cu_event to, uint64_t *ret);
uint64_t ws_cuda_now_ns(struct ws_cuda *d);
uint64_t ws_cuda_host_ns(void);
int ws_cuda_meter_open(struct ws_cuda *d);
void ws_cuda_meter_close(struct ws_cuda *d);
/* The energy of an operation that took @ns beside @n_running - 1 others: no more than was measured
 * and not yet given. */
uint64_t ws_cuda_energy_share(struct ws_cuda *d, uint64_t ns, uint32_t n_running);
void ws_cuda_energy(struct ws_cuda *d, uint64_t *ret_uj, uint32_t *ret_mw);

#endif
