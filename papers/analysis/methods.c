// SPDX-License-Identifier: Apache-2.0
/* The table of methods. A new method is a row here, a function in its own file, and a paragraph
 * in doc/analysis.md. */
#include "config.h"

#include <string.h>

#include "papers/analysis/rta_private.h"
#include "papers/analysis/stgm.h"

static const struct ws_rta_method methods[] = {
    {"fmlp_busy_ref", "ref", "FMLP+ as released with GCAPS: GCAPS Fig. 8", false, false,
     ws_rta_fmlp_busy_ref, 0},
    {"fmlp_busy_safe", "safe", "bound under an FMLP+ lock, spinning while the GPU works", true,
     false, ws_rta_fmlp_busy_safe, 0},
    {"fmlp_suspend_ref", "ref", "FMLP+ as released with GCAPS: GCAPS Fig. 8", false, false,
     ws_rta_fmlp_suspend_ref, 0},
    {"fmlp_suspend_safe", "safe", "bound under an FMLP+ lock, asleep while the GPU works", true,
     false, ws_rta_fmlp_suspend_safe, 0},
    {"gcaps_busy_fix", "fix", "GCAPS Eqs. with Lemmas 10-12 as the authors' code has them", false,
     false, ws_rta_gcaps_busy_fix, 0},
    {"gcaps_busy_gprio_fix", "fix", "with GPU priorities; core order kept by construction", false,
     false, ws_rta_gprio_busy_fix, 0},
    {"gcaps_busy_gprio_ref", "ref", "with GPU priorities as released: GCAPS Figs. 8, 9", false,
     false, ws_rta_gprio_busy_ref, 0},
    {"gcaps_busy_gprio_safe", "safe", "with GPU priorities and waits for updates", true, false,
     ws_rta_gprio_busy_safe, 0},
    {"gcaps_busy_lit", "lit", "Lemmas 10-12 to the letter; no bound for tasks without GPU work",
     false, false, ws_rta_gcaps_busy_lit, 0},
    {"gcaps_busy_ref", "ref", "as released: GCAPS Table 5 and Fig. 9's base", false, false,
     ws_rta_gcaps_busy_ref, 0},
    {"gcaps_busy_safe", "safe", "bound with a wait for one other update at each update", true,
     false, ws_rta_gcaps_busy_safe, 0},
    {"gcaps_suspend_fix", "fix", "GCAPS Eqs., asking for GPU use by segments", true, false,
     ws_rta_gcaps_suspend_fix, 0},
    {"gcaps_suspend_gprio_fix", "fix", "with GPU priorities; core order kept by construction", true,
     false, ws_rta_gprio_suspend_fix, 0},
    {"gcaps_suspend_gprio_ref", "ref", "with GPU priorities as released: GCAPS Figs. 8, 9", false,
     false, ws_rta_gprio_suspend_ref, 0},
    {"gcaps_suspend_gprio_safe", "safe", "with GPU priorities and waits for updates", true, false,
     ws_rta_gprio_suspend_safe, 0},
    {"gcaps_suspend_ref", "ref", "as released: GCAPS Table 5 and Fig. 9's base", false, false,
     ws_rta_gcaps_suspend_ref, 0},
    {"gcaps_suspend_safe", "safe", "bound with a wait for one other update at each update", true,
     false, ws_rta_gcaps_suspend_safe, 0},
    {"mpcp_busy_ref", "ref", "MPCP as released with GCAPS: GCAPS Fig. 8", false, false,
     ws_rta_mpcp_busy_ref, 0},
    {"mpcp_busy_safe", "safe", "bound under an MPCP lock, spinning while the GPU works", true,
     false, ws_rta_mpcp_busy_safe, 0},
    {"mpcp_suspend_ref", "ref", "MPCP as released with GCAPS: GCAPS Fig. 8", false, false,
     ws_rta_mpcp_suspend_ref, 0},
    {"mpcp_suspend_safe", "safe", "bound under an MPCP lock, asleep while the GPU works", true,
     false, ws_rta_mpcp_suspend_safe, 0},
    {"stgm_busy_paper", "paper", "STGM Eqs. 9-12, slips repaired: STGM Figs. 4, 5", false, true,
     NULL, WS_STGM_BUSY},
    {"stgm_busy_safe", "safe", "bound with chains and boosted waiting", true, true, NULL,
     WS_STGM_BUSY | WS_STGM_SAFE},
    {"stgm_suspend_paper", "paper", "STGM Eqs. 1-8, slips repaired: STGM Figs. 4, 5", false, true,
     NULL, 0},
    {"stgm_suspend_safe", "safe", "bound with chains and both copies", true, true, NULL,
     WS_STGM_SAFE},
    {"tsg_rr_busy_fix", "fix", "GCAPS paper's Eqs. 6, 7 for the default driver", false, false,
     ws_rta_rr_busy_fix, 0},
    {"tsg_rr_busy_ref", "ref", "as released: GCAPS Table 5 and Fig. 8; not a bound (RR1)", false,
     false, ws_rta_rr_busy_ref, 0},
    {"tsg_rr_busy_safe", "safe", "bound with the switch into the own context", true, false,
     ws_rta_rr_busy_safe, 0},
    {"tsg_rr_suspend_fix", "fix", "GCAPS paper's Eqs. 5, 8 for the default driver", false, false,
     ws_rta_rr_suspend_fix, 0},
    {"tsg_rr_suspend_ref", "ref", "as released: GCAPS Table 5 and Fig. 8", false, false,
     ws_rta_rr_suspend_ref, 0},
    {"tsg_rr_suspend_safe", "safe", "bound with the switch into the own context", true, false,
     ws_rta_rr_suspend_safe, 0},
};

static const char *const aliases[][2] = {
    {"fmlp_busy", "fmlp_busy_safe"},        {"fmlp_suspend", "fmlp_suspend_safe"},
    {"gcaps_busy", "gcaps_busy_fix"},       {"gcaps_busy_gprio", "gcaps_busy_gprio_fix"},
    {"gcaps_suspend", "gcaps_suspend_fix"}, {"gcaps_suspend_gprio", "gcaps_suspend_gprio_fix"},
    {"mpcp_busy", "mpcp_busy_safe"},        {"mpcp_suspend", "mpcp_suspend_safe"},
    {"stgm_busy", "stgm_busy_safe"},        {"stgm_suspend", "stgm_suspend_safe"},
    {"tsg_rr_busy", "tsg_rr_busy_safe"},    {"tsg_rr_suspend", "tsg_rr_suspend_safe"},
};

const struct ws_rta_method *ws_rta_methods(size_t *ret_n)
{
    *ret_n = WS_ARRAY_SIZE(methods);
    return methods;
}

const char *ws_rta_alias(size_t i, const char **ret_target)
{
    if (i >= WS_ARRAY_SIZE(aliases))
        return NULL;
    *ret_target = aliases[i][1];
    return aliases[i][0];
}

const struct ws_rta_method *ws_rta_method_find(const char *name)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(aliases); i++)
        if (!strcmp(name, aliases[i][0]))
            name = aliases[i][1];
    for (size_t i = 0; i < WS_ARRAY_SIZE(methods); i++)
        if (!strcmp(name, methods[i].name))
            return &methods[i];
    return NULL;
}
