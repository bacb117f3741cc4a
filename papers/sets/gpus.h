// SPDX-License-Identifier: Apache-2.0
/* papers/sets/gpus.h - the GPUs of a simulation and what kernels cost on them.
 *
 * As text they are types of models/measured.def in the order of their ids, with a limit on the
 * SMs given out: "rtx3070@24,t400". As a file they are one JSON object:
 *   "gpus": [{"type": NAME, "sm_limit": N, "slots": 2, "copy_engines": 0}, …]
 *   "types": [{"name", "n_sm", "static_w", "idle_w_per_sm", "switch_ms", "update_ms",
 *              "preempts"}, …]
 *     (more types, or others of the same names)
 *   "kernels": [{"gpu", "name", "wcet_ms": [by SM count], "power_w": […], "h2d_ms", "d2h_ms",
 *     "dyn_w_per_sm"}, …]
 * A kernel of the file takes precedence over a measured one of the same name. Threads: one while
 * it is read; then any. */
#ifndef WS_PAPERS_SETS_GPUS_H
#define WS_PAPERS_SETS_GPUS_H

#include "policy/policy.h"
#include "papers/sets/jsonl.h"

enum { WS_GPUS_MAX = 64, WS_GPU_SLOTS = 2 /* worker threads of each GPU in sBEET-mg */ };

struct ws_gpu_kernel {
    char *gpu, *name;
    struct ws_policy_cost cost;
};
struct ws_gpus {
    struct ws_policy_gpu_type types[WS_GPUS_MAX];
    struct ws_policy_gpu gpus[WS_GPUS_MAX];
    int n_types, n_gpus;
    struct ws_gpu_kernel *kernels; /* of the file */
    size_t n_kernels, cap_kernels;
};

/* Return: 0 or -EINVAL with the reason in @ret_error. @ret: deinit with ws_gpus_deinit(), also
 * after an error. */
WS_MUST_CHECK int ws_gpus_parse(struct ws_gpus *ret, const char *text, char *ret_error,
                                size_t error_bytes);
/* From a file's object; problems are in @l, and @l->bad is set. Return: 0, -EINVAL, -ENOMEM. */
WS_MUST_CHECK int ws_gpus_read(struct ws_gpus *ret, struct ws_json_line *l);
void ws_gpus_deinit(struct ws_gpus *g);
/* What @kernel costs on the type @type; @kernel NULL: the measured kernel that the authors
 * number @app. Arrays are borrowed from @g or from the measured ones. Return: false if it is not
 * known there. */
bool ws_gpus_cost(const struct ws_gpus *g, int type, const char *kernel, int app,
                  struct ws_policy_cost *ret);

#endif
