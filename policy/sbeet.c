// SPDX-License-Identifier: Apache-2.0
/* sBEET on each GPU for itself, without migration: tasks belong to GPUs by Alg. 1 of sBEET-mg
 * (`sbeet`, which on one GPU is the scheduler of RTSS 2021; `mg-sbeet` is the name that the
 * authors' program gives it on several) or by a bin packer. A full GPU is waited for; on an idle
 * one the best configuration runs even if it will be late. */
#include "config.h"

#include "policy/sbeet_core.h"

static bool choose(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret)
{
    int k = ws_sbeet_own_gpu(p, task, deadline);
    bool found, own;
    if (k < 0 || ws_sbeet_full(&p->gpus[k])) {
        ret->reason = "its GPU is full";
        return false;
    }
    bool ok = ws_sbeet_on_gpu(p, task, deadline, k, ret, &found, &own);
    ret->reason = !found ? "beside what runs it would be late, or leave the GPU partly idle"
                  : ok   ? "its GPU, in time"
                         : "its GPU, though it will be late";
    return found;
}

static const struct ws_sbeet_rule alg1 = {WS_SBEET_ASSIGN_ALG1, choose};
static const struct ws_sbeet_rule wfd = {WS_SBEET_ASSIGN_WFD, choose};
static const struct ws_sbeet_rule bfd = {WS_SBEET_ASSIGN_BFD, choose};
static const struct ws_sbeet_rule ffd = {WS_SBEET_ASSIGN_FFD, choose};

WS_SBEET_OPS(sbeet, "sbeet", "energy-efficient SM shares, each GPU for itself (RTSS 2021)",
             ws_sbeet_options, alg1);
WS_SBEET_OPS(mg_sbeet, "mg-sbeet", "sbeet after Alg. 1 of sBEET-mg, without migration (RTSS 2022)",
             ws_sbeet_options, alg1);
WS_SBEET_OPS(wfd_sbeet, "wfd-sbeet", "sbeet after worst-fit decreasing (RTSS 2022, baseline)",
             ws_sbeet_options, wfd);
WS_SBEET_OPS(bfd_sbeet, "bfd-sbeet", "sbeet after best-fit decreasing (RTSS 2022, baseline)",
             ws_sbeet_options, bfd);
WS_SBEET_OPS(ffd_sbeet, "ffd-sbeet", "sbeet after first-fit decreasing (RTSS 2022, baseline)",
             ws_sbeet_options, ffd);
