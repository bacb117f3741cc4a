// SPDX-License-Identifier: Apache-2.0
/* wattshare: the command of people and scripts. Reads the verb and hands over. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const struct verb {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} verbs[] = {
#define WS_VERB(name, function, help) {name, help, function},
#include "cli/verbs.def"
#undef WS_VERB
};

static void usage(FILE *f)
{
    fprintf(f, "usage:\n");
    for (size_t i = 0; i < WS_ARRAY_SIZE(verbs); i++)
        fprintf(f, "  wattshare %s\n", verbs[i].help);
    fprintf(f, "  wattshare --version | --help\nSee wattshare(1).\n");
}

int ws_cli_jobs(const char *text, int *ret)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > 256) {
        ws_cli_error("--jobs %s: a number of threads from 1 to 256 is wanted", text);
        return -EINVAL;
    }
    *ret = (int)n;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return WS_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("wattshare %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < WS_ARRAY_SIZE(verbs); i++)
        if (!strcmp(argv[1], verbs[i].name))
            return verbs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "wattshare: unknown command '%s'; there are:", argv[1]);
    for (size_t i = 0; i < WS_ARRAY_SIZE(verbs); i++)
        fprintf(stderr, " %s", verbs[i].name);
    fputc('\n', stderr);
    return WS_EXIT_USAGE;
}
