// SPDX-License-Identifier: Apache-2.0
/* `wattshare gen`: task sets as the papers make them, from a seed. Takes --paper and --seed out and hands over. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/verbs/gen.h"

static const struct generator {
    const char *paper, *summary;
    int (*run)(int argc, char **argv, uint64_t seed);
} generators[] = {
#define WS_GENERATOR(paper, function, summary) {paper, summary, function},
#include "papers/verbs/generators.def"
#undef WS_GENERATOR
};

static void usage(FILE *f)
{
    fprintf(f, "usage: wattshare gen --paper P [--seed N] [OPTIONS…]\n"
               "Task sets of a paper, from a seed (1). `wattshare gen --paper P --help` says which "
               "options it has.\n");
    for (size_t i = 0; i < WS_ARRAY_SIZE(generators); i++)
        fprintf(f, "  %-8s %s\n", generators[i].paper, generators[i].summary);
}

/* The value of @name at argv[*i], as "--name value" or "--name=value"; NULL: another argument. Moves *i to the last one used. */
static const char *value_of(int argc, char **argv, int *i, const char *name)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n))
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    if (argv[*i][n])
        return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}

static int dispatch(const char *paper, uint64_t seed, int argc, char **argv, bool help)
{
    for (size_t i = 0; paper && i < WS_ARRAY_SIZE(generators); i++)
        if (!strcmp(paper, generators[i].paper))
            return generators[i].run(argc, argv, seed);
    if (paper)
        ws_cli_error("--paper %s: there is no such generator", paper);
    else if (!help)
        ws_cli_error("--paper is missing");
    usage(help && !paper ? stdout : stderr);
    return help && !paper ? 0 : WS_EXIT_USAGE;
}

int ws_cli_gen(int argc, char **argv)
{
    const char *paper = NULL, *value;
    uint64_t seed = 1;
    bool help = false;
    int n = 0;
    char **rest = ws_alloc_array((size_t)argc + 1, sizeof(*rest));
    if (!rest)
        return 1;
    for (int i = 0; i < argc; i++) {
        if (i && (value = value_of(argc, argv, &i, "--paper"))) {
            paper = value;
        } else if (i && (value = value_of(argc, argv, &i, "--seed"))) {
            char *end;
            errno = 0;
            seed = strtoull(value, &end, 10);
            if (errno || end == value || *end || *value == '-') {
                ws_cli_error("--seed %s: a whole number from 0 is wanted", value);
                free(rest);
                return WS_EXIT_USAGE;
            }
        } else {
            help = help || !strcmp(argv[i], "--help");
            rest[n++] = argv[i];
        }
    }
    int r = dispatch(paper, seed, n, rest, help);
    free(rest);
    return r;
}
