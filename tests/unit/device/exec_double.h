// SPDX-License-Identifier: Apache-2.0
/* tests/unit/device/exec_double.h - a test double of device/soft/exec/exec.h: kernels whose work is
 * exactly what the test says, so that scheduling and timing can be tested without PTX and with
 * known counts. A launch's parameters are a struct double_params. */
#ifndef TESTS_EXEC_DOUBLE_H
#define TESTS_EXEC_DOUBLE_H

#include "device/soft/exec/exec.h"

enum double_kind {
    DOUBLE_WORK, /* executes n_insns warp instructions and adds 1 to ran[block] */
    DOUBLE_WAIT, /* as WORK, after *flag is not 0 */
    /* as WORK, block i after *flag is more than i; until then it holds the thread that executes
     * it */
    DOUBLE_GATE,
    DOUBLE_POLL, /* the same as WAIT, and says that it looks at one place only */
    /* block i waits until block i + 1 ran: needs all blocks to be resident and to get turns */
    DOUBLE_CHAIN,
    DOUBLE_BARRIER, /* waits until all blocks arrived at *flag */
    DOUBLE_SET,     /* sets *flag */
    DOUBLE_ENDLESS,
    DOUBLE_SLEEP, /* takes n_insns us of the host, and hardly any work */
    /* as WORK, after all blocks of its cluster (along x) have been at flag[2 * cluster]. The launch
     * fails if two of these are ever executed at a time */
    DOUBLE_MEET,
    DOUBLE_STUCK, /* waits for ever for others of its cluster */
    DOUBLE_FAULT, /* the block n_insns faults, the others are endless */
};
struct double_params {
    enum double_kind kind;
    uint64_t n_insns, n_loads, n_sectors;
    _Atomic int *flag;
    _Atomic int *ran;     /* [blocks] */
    _Atomic uint32_t *sm; /* [blocks]; may be NULL */
};

extern _Atomic int double_n_states, double_n_states_max; /* alive blockruns */
extern uint64_t double_block_bytes;                      /* what a block is said to take */

/* A module with one kernel "k" that takes a struct double_params, and @n_vars variables. Static. */
const struct ws_ptx_module *double_module(void);

#endif
