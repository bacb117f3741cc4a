/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/meter.h - the energy of a device whose time passes (WS_CLOCK_SCALED): an
 * integral of its power, shared out as it grows.
 * Threads: any; a meter has a lock of its own. Times are the virtual clock's. */
#ifndef WS_DEVICE_SOFT_TIMELINE_METER_H
#define WS_DEVICE_SOFT_TIMELINE_METER_H

#include "base/list.h"
#include "device/device.h"
#include "device/soft/timeline/crowd.h"

/* An operation's use of the device in [start_ns, end_ns). */
struct ws_meter_load {
    struct ws_list link;
    uint64_t start_ns, end_ns;
    uint64_t owner;             /* whose it is: ws_space_id() */
    struct ws_sm_set sms;       /* empty for a copy */
    uint32_t dynamic_mw_per_sm; /* as the clocks were */
    int32_t own_mw;             /* that it adds whatever its SMs add, and pays alone */
    struct ws_issue issue;      /* that it shares with others on its SMs */
    __int128 pj;                /* its share so far; may be negative, as own_mw */
    bool shared;                /* something else has run beside it */
};

struct ws_meter;
/* @index: of the device; the noise of its readings is drawn from it. */
WS_MUST_CHECK int ws_meter_new(struct ws_meter **ret, const struct ws_gpu_spec *spec,
                               const struct ws_device_options *options, uint32_t index);
struct ws_meter *ws_meter_free(struct ws_meter *m);
/* @now_ns below: the clock; what is before it stands and is not changed any more. */
void ws_meter_begin(struct ws_meter *m, uint64_t now_ns, struct ws_meter_load *l);
/* Gives a load another end and other SMs from now on. */
void ws_meter_change(struct ws_meter *m, uint64_t now_ns, struct ws_meter_load *l, uint64_t end_ns,
                     const struct ws_sm_set *sms);
/* Its end has come. @ret_alone_uj: as ws_op.alone_uj. Return: its energy in uJ; what is rounded off
 * is charged with the next. With readings both are what can be told from them: an estimate, and
 * nothing. */
uint64_t ws_meter_end(struct ws_meter *m, struct ws_meter_load *l, uint64_t *ret_alone_uj);
/* Gives the device another power while nothing runs, from now on. */
void ws_meter_set_static(struct ws_meter *m, uint64_t now_ns, uint32_t static_mw);
/* An idle device takes static power while it is on (as it is in the beginning). */
void ws_meter_set_on(struct ws_meter *m, uint64_t now_ns, bool on);

struct ws_meter_totals {
    /* All; what no operation was charged for, of it (0 with readings, which don't tell). */
    uint64_t energy_uj, idle_energy_uj;
    uint64_t busy_ns, sm_busy_ns;
    uint32_t power_mw; /* now; with readings, over the last WS_READINGS_WINDOW updates */
};
void ws_meter_totals(struct ws_meter *m, uint64_t now_ns, struct ws_meter_totals *ret);

#endif
