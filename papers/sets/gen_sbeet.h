// SPDX-License-Identifier: Apache-2.0
/* papers/sets/gen_sbeet.h - makes task sets as in sBEET-mg's Table V. Threads: any.
 *
 * A set has n kernels, each one of eight. Their utilisations are drawn by UUniFast, all again
 * until each is in [0.01, 0.5]. The period is the kernel's time (the mean of its longest times
 * on 1…ref_sm SMs of an RTX 3070, and its copies) divided by its utilisation, rounded to whole
 * ms, which the authors' simulator needs. The deadline is half of the period. The paper says
 * neither which ref_sm it uses (24 fits its numbers best) nor which offsets: "stagger" releases
 * the highest priority last, 2 ms apart; "random" anywhere in the first period. The draws are
 * those of Python's random.Random(seed), so that sets with known results can be made again. */
#ifndef WS_PAPERS_SETS_GEN_SBEET_H
#define WS_PAPERS_SETS_GEN_SBEET_H

#include <stdbool.h>
#include <stdint.h>
#include "papers/sets/sbeet_set.h"

enum { WS_GEN_SBEET_MAX = 64 };
struct ws_gen_sbeet {
    uint64_t seed;
    int n_tasks; /* 6 in the paper; up to WS_GEN_SBEET_MAX */
    double util; /* of the whole set; must be in [n·0.01, n·0.5] */
    int ref_sm;  /* 24; 1…46 */
    bool random_offsets;
};
/* @ret: [n_tasks], in rate-monotonic order; kernel names are static. Return: 0, or -EINVAL (a
 * parameter out of its range). */
WS_MUST_CHECK int ws_gen_sbeet(const struct ws_gen_sbeet *g, struct ws_sbeet_task *ret);
/* The reference's rule for set @i of a utilisation: seed and offsets. */
struct ws_gen_sbeet ws_gen_sbeet_reference(double util, int i);

#endif
