/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/sms.h - the blocks of one kernel on its SMs, in slowed time (the head of
 * timing.c): which are where, how fast they go and which ends next. Units: ns of slowed time, whose
 * present is tau. Threads: one at a time. */
#ifndef WS_DEVICE_SOFT_TIMELINE_SMS_H
#define WS_DEVICE_SOFT_TIMELINE_SMS_H

#include "device/soft/timeline/timing.h"

enum { WS_SMS_BLOCKS = 32 }; /* on an SM at most */
#define WS_PART_MIN 0.02     /* an SM whose blocks leave less than this is full */

struct ws_sms_sm {
    uint32_t k, cap;
    bool used;
    double part; /* of its issue capacity that is left for this kernel */
    double tau, next, bytes_rate;
    uint32_t block[WS_SMS_BLOCKS];
    double left[WS_SMS_BLOCKS], rate[WS_SMS_BLOCKS];
};

struct ws_sms {
    const struct ws_timing_kernel *k;
    uint32_t n_sms;
    struct ws_sms_sm sm[WS_SM_MAX];
    uint16_t id[WS_SM_MAX];                   /* device's number of sm[i] */
    uint16_t heap[WS_SM_MAX], pos[WS_SM_MAX]; /* SMs by next */
    double tau, bytes_rate;
    uint64_t dealt, done;
    uint64_t n_blocks; /* to be dealt */
    uint32_t cursor;
    double *left; /* of each block, where it is cut; else NULL */
};

/* Nothing is dealt, and there are no SMs yet. */
void ws_sms_init(struct ws_sms *m, const struct ws_timing_kernel *k);
void ws_sms_add(struct ws_sms *m, uint32_t id);
/* Moves all blocks on to the present. */
void ws_sms_advance(struct ws_sms *m);
/* Deals round-robin until nothing fits, first over SMs that no other kernel uses. All SMs must
 * stand at the present. */
void ws_sms_deal(struct ws_sms *m);
/* New rates and next completions after the blocks of SMs, or their parts, changed. */
void ws_sms_rates(struct ws_sms *m);
/* The SM whose next completion is due: ends what is done, deals into the room. */
void ws_sms_complete(struct ws_sms *m, uint16_t index);
/* Nothing more is dealt; what runs is finished, of several in one only the one at work. The SMs
 * stand at the present. */
void ws_sms_stop(struct ws_sms *m);

#endif
