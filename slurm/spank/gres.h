/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/spank/gres.h - what Slurm allotted to a job on one node. Threads: none. */
#ifndef WS_SLURM_SPANK_GRES_H
#define WS_SLURM_SPANK_GRES_H

#include <stdbool.h>
#include <stddef.h>

struct ws_gres {
    unsigned shards;
    bool whole;    /* GPUs as a whole, no shards */
    char gpus[96]; /* "0,2": as gres.conf numbers them; "": none */
};

/* Reads "gpu:h200:1(IDX:0),shard:2(IDX:0)". Return: false: it cannot be read. */
bool ws_gres_read(const char *text, struct ws_gres *ret);

#endif
