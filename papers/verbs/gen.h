// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/gen.h - generators of task sets, by paper. A generator is a `struct ws_verb`
 * ws_verb_gen_PAPER, named "gen --paper PAPER", and a row in papers/verbs/generators.def; it
 * prints task sets, one a line. Threads: none. */
#ifndef WS_PAPERS_VERBS_GEN_H
#define WS_PAPERS_VERBS_GEN_H

#include <stdint.h>

/* What every generator is asked; begins the structure that its options are read into. */
struct ws_gen_request {
    const char *paper;
    uint64_t seed;
};
#define WS_GEN_REQUEST_DEFAULT ((struct ws_gen_request){.seed = 1})

/* The rows for it. */
#define WS_GEN_OPTIONS                                                                             \
    {"paper",                                                                                      \
     NULL,                                                                                         \
     "The paper whose task sets are made.",                                                        \
     .words = "edl|gcaps|sbeet|stgm",                                                              \
     .kind = WS_OPTION_TEXT,                                                                       \
     .at = offsetof(struct ws_gen_request, paper),                                                 \
     .required = true},                                                                            \
    {                                                                                              \
        "seed", "N", "The seed of all that is drawn, a whole number (1).",                         \
            .kind = WS_OPTION_UINT64, .at = offsetof(struct ws_gen_request, seed)                  \
    }

#endif
