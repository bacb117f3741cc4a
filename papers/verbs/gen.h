// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/gen.h - generators of task sets, by paper. A generator is a function here and a row in papers/verbs/generators.def. Threads: none. */
#ifndef WS_PAPERS_VERBS_GEN_H
#define WS_PAPERS_VERBS_GEN_H

#include <stdint.h>

/* @argv: argv[0] is "gen", --paper and --seed are taken out; prints task sets, one a line. Return: the exit status. */
#define WS_GENERATOR(paper, function, summary) int function(int argc, char **argv, uint64_t seed);
#include "papers/verbs/generators.def"
#undef WS_GENERATOR

#endif
