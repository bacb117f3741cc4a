/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/flight.h - operations where device time passes (WS_CLOCK_SCALED): from
 * submission until their end has come.
 *
 * A flight begins with the submission and stalls the clock while the operation is being executed.
 * Then it is priced: its place in the timeline is reserved and it waits for its end in the clock.
 * Until then it may be cut short (preempted) or cancelled.
 * Threads: any. Locks: the device's flights_lock, then the clock's; none held by the caller. */
#ifndef WS_DEVICE_SOFT_TIMELINE_FLIGHT_H
#define WS_DEVICE_SOFT_TIMELINE_FLIGHT_H

#include "device/soft/timeline/meter.h"
#include "device/soft/timeline/progress.h"
#include "device/soft/timeline/vclock.h"

struct ws_soft;

/* op->priv is its flight from now on; ready_ns is not before now. Return: false: no memory. */
WS_MUST_CHECK bool ws_flight_begin(struct ws_soft *d, struct ws_op *op);
/* It came to nothing: op->priv is NULL again. */
void ws_flight_drop(struct ws_op *op);

/* What a flight keeps of a unit beside it and its cost. */
enum { WS_FLIGHT_UNIT_BYTES = sizeof(double) + sizeof(uint32_t) };
/* What a kernel that was executed is to be priced by. */
struct ws_executed_kernel {
    struct ws_need need;
    uint32_t blocks_per_sm;
    struct ws_unit *units; /* the flight takes it, and costs, bill and progress: allocated */
    struct ws_cost *costs;
    struct ws_bill bill; /* for units and costs, and WS_FLIGHT_UNIT_BYTES of each unit */
    uint32_t n_units;
    uint64_t n_executed, n_blocks; /* of the whole grid, so far */
    /* NULL, or one that fits; not NULL if n_executed < n_blocks. */
    struct ws_soft_progress *progress;
};
/* Price and let fly; done is called by the clock, or at once. Its error is set if it faulted, then
 * it is priced all the same. */
void ws_flight_kernel(struct ws_op *op, const struct ws_executed_kernel *x);
void ws_flight_copy(struct ws_op *op, enum ws_engine e, uint64_t bytes);

/* @op, which is being executed, does nothing but wait for others, or does something again. */
void ws_flight_idle(const struct ws_op *op, bool idle);
/* Whether it did so until the clock no longer minded. */
bool ws_flight_has_idled(const struct ws_op *op);

/* Cuts @op short, if it is in flight, or as soon as it is priced. */
void ws_flight_preempt(struct ws_soft *d, const struct ws_op *op);
/* Has the clock's thread end all of @space that there are now. Those that are being executed end as
 * soon as that ends. */
void ws_flight_cancel(struct ws_soft *d, const struct ws_space *space);
/* Nothing is in flight: waits until no thread is at work here any more. */
void ws_flight_quiesce(struct ws_soft *d);

#endif
