// SPDX-License-Identifier: Apache-2.0
/* wattshare gen: makes task sets as the papers do, from a seed. Finds --paper and calls its
 * generator. */
#include "config.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/gen.h"

#define WS_GENERATOR(paper) extern const struct ws_verb ws_verb_gen_##paper;
#include "papers/verbs/generators.def"
#undef WS_GENERATOR

#define WS_GENERATOR(paper) &ws_verb_gen_##paper,
static const struct ws_verb *const generators[] = {
#include "papers/verbs/generators.def"
    NULL};
#undef WS_GENERATOR

static const struct ws_option options[] = {WS_GEN_OPTIONS, {0}};
static const char *const examples[] = {
    "wattshare gen --paper gcaps --seed 7 --count 100 >sets.jsonl",
    "wattshare gen --paper edl --online --seed 3 >day.jsonl", NULL};

static int gen(int argc, char **argv);

const struct ws_verb ws_verb_gen = {
    .name = "gen",
    .purpose = "make task sets as the papers make them, from a seed",
    .about = "The same seed and options give the same bytes.",
    .options = options,
    .examples = examples,
    .variants = generators,
    .run = gen,
};

/* The value of --paper, as "--paper P" or "--paper=P"; NULL: there is none. */
static const char *find_paper(char **argv)
{
    static const char option[] = "--paper";
    const size_t n = sizeof(option) - 1;
    const char *paper = NULL;
    for (argv++; *argv; argv++) {
        if (strncmp(*argv, option, n))
            continue;
        if ((*argv)[n] == '=')
            paper = *argv + n + 1;
        else if (!(*argv)[n] && argv[1])
            paper = *++argv;
    }
    return paper;
}

static int gen(int argc, char **argv)
{
    static const char prefix[] = "gen --paper ";
    const char *paper = find_paper(argv);
    struct ws_gen_request q;
    char **rest;
    for (size_t i = 0; paper && generators[i]; i++)
        if (!strcmp(generators[i]->name + sizeof(prefix) - 1, paper))
            return generators[i]->run(argc, argv);
    if (paper)
        return ws_verb_wrong(&ws_verb_gen, "--paper %s: there is no such generator", paper);
    int status = ws_verb_parse(&ws_verb_gen, argc, argv, &q, &rest);
    return status >= 0 ? status : ws_verb_wrong(&ws_verb_gen, "--paper is missing");
}
