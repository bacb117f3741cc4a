// SPDX-License-Identifier: Apache-2.0
/* models/events.h - what a launch of a kernel did, as numbers of events, and the machine that did
 * it: what the models of power (event_power.h) and of time (event_time.h) are given. */
#ifndef WS_MODELS_EVENTS_H
#define WS_MODELS_EVENTS_H

#include <stdbool.h>

/* Of one launch. What a source does not count is 0. */
struct ws_events {
    double warp_instructions;
    double flow_instructions; /* of these: branches, barriers and what else is control flow */
    double int_ops, fp32_ops, fp64_ops, sfu_ops; /* counted by threads */
    double shared_transactions;                  /* 128 bytes or less in one clock */
    double l1_sectors, l2_sectors, dram_sectors; /* of 32 bytes, loads and stores */
    double load_requests, shared_requests;       /* warp instructions that load */
    double texture_quads;  /* groups of four threads that fetched from a texture */
    double atomic_sectors; /* of 32 bytes, of memory, that warp instructions changed atomically */
    double atomic_places; /* of 512 bytes, that these are in; those beyond 64 may count as others */
    double l2_share;      /* the share of the loaded sectors that L1 did not have: 0 to 1 */
    double dram_share;    /* the share of those that L2 did not have: 0 to 1 */
    double blocks;        /* of the launch */
    double active;        /* mean share of the SMs that have a warp: 0 to 1 */
    double warps_per_sm;  /* mean number on an SM that has one */
    bool counted;         /* false: only rates are known, so that a time cannot be predicted */
};

/* Clocks of a run. */
struct ws_event_clocks {
    double core_mhz, memory_mhz;
};

struct ws_event_gpu {
    double n_sms, schedulers;                            /* schedulers of an SM */
    double fp32_lanes, int_lanes, fp64_lanes, sfu_lanes; /* of an SM */
    /* Of an SM: units that take a control-flow instruction each in some clocks; 0: these are no
     * slower than others. */
    double flow_units;
    double texture_units;             /* of an SM: a texel each in a clock */
    double l2_slices;                 /* of all; each does its atomics itself */
    double warps_per_sm;              /* that fit on an SM */
    struct ws_event_clocks reference; /* the catalog's clocks */
    double memory_bytes_per_s;        /* at the reference clock */
    double limit_w;                   /* of the board as it is sold; 0: not known */
    double raised_w;                  /* the limit that was set, if that is higher */
    bool wide_memory;                 /* HBM */
};

#endif
