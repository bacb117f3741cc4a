// SPDX-License-Identifier: Apache-2.0
/* wattshare check: runs a program on a private daemon whose software GPU watches what kernels do.
 *
 * The daemon finds, and the program's library prints, since it knows the program's allocations. The
 * library also writes a line for each finding into a file, which is counted here at the end. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/common/private_daemon.h"
#include "cli/common/program.h"

struct check_options {
    const char *tool, *gpu, *error_exitcode;
    bool leak_check;
    char **argv; /* the program's */
};

static const struct ws_option options[] = {
    {"tool", "TOOL",
     "What to look for: memcheck (invalid accesses, and all else that stops a kernel), racecheck, "
     "initcheck (reads of global memory that nobody has written), all of these (all), or "
     "initcheck-shared (the same of shared memory; libraries make such reads, too).",
     WS_TEXT(struct check_options, tool)},
    {"leak-check", NULL,
     "Also tell of memory of the GPU that the program has not freed at its end.",
     WS_FLAG(struct check_options, leak_check)},
    {"error-exitcode", "N",
     "The exit status if something was found, 1 to 125 (1). 0: the program's own.",
     WS_TEXT(struct check_options, error_exitcode)},
    {"gpu", "NAME", "The software GPU: a name of the catalog (rtx3070).",
     WS_TEXT(struct check_options, gpu)},
    {0}};

static const char *const arguments[] = {"-- PROG [ARG...]", NULL};
static const char *const examples[] = {"wattshare check -- ./matmul 512",
                                       "wattshare check --tool racecheck -- ./reduce",
                                       "wattshare check --leak-check -- ./solver", NULL};

static int run(int argc, char **argv);

const struct ws_verb ws_verb_check = {
    .name = "check",
    .purpose = "find invalid accesses, races and leaks in a CUDA program",
    .about =
        "The program runs unchanged, without a GPU, on a daemon of its own, which looks at each "
        "access that its kernels make. What is found is printed on standard error.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .missing = "check needs a program",
    .command_follows = true,
    .run = run,
};

enum { EXITCODE_MAX = 125, EXITCODE_DEFAULT = 1 };

static bool is_tool(const char *word)
{
    static const char *const tools[] = {"memcheck", "racecheck", "initcheck", "initcheck-shared",
                                        "all"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(tools); i++)
        if (!strcmp(word, tools[i]))
            return true;
    return false;
}

static int parse(int argc, char **argv, struct check_options *o, int *ret_exitcode)
{
    *o = (struct check_options){.tool = "all", .gpu = "rtx3070"};
    int status = ws_verb_parse(&ws_verb_check, argc, argv, o, &o->argv);
    if (status >= 0)
        return status;
    if (!is_tool(o->tool))
        return ws_verb_wrong(&ws_verb_check,
                             "--tool is memcheck, racecheck, initcheck, initcheck-shared or all");
    *ret_exitcode = EXITCODE_DEFAULT;
    if (o->error_exitcode) {
        char *end;
        long n = strtol(o->error_exitcode, &end, 10);
        if (end == o->error_exitcode || *end || n < 0 || n > EXITCODE_MAX)
            return ws_verb_wrong(&ws_verb_check, "--error-exitcode is a number from 0 to 125");
        *ret_exitcode = (int)n;
    }
    return -1;
}

struct check_counts {
    unsigned errors, leaks;
};

/* Makes the file that findings are counted in, and tells the program's library of it. */
static int prepare(const struct ws_private *p, const struct check_options *o, char path[96])
{
    snprintf(path, 96, "%s/findings", p->dir);
    FILE *f = fopen(path, "w");
    if (!f || fclose(f) || setenv(WS_ENV_CHECK, path, 1) ||
        setenv(WS_ENV_CHECK_LEAKS, o->leak_check ? "1" : "0", 1)) {
        ws_cli_error("%s: %s", path, strerror(errno));
        return WS_EXIT_CANNOT_RUN;
    }
    return ws_program_environment(p->endpoint, NULL);
}

static int tally(const char *path, struct check_counts *ret)
{
    char line[64];
    FILE *f = fopen(path, "r");
    *ret = (struct check_counts){0, 0};
    if (!f) {
        ws_cli_error("%s: %s", path, strerror(errno));
        return -1;
    }
    while (fgets(line, sizeof(line), f))
        if (!strcmp(line, "leak\n"))
            ret->leaks++;
        else
            ret->errors++;
    fclose(f);
    return 0;
}

static void summarise(const struct check_counts *t, bool leaks)
{
    fprintf(stderr, "wattshare check: %u error%s", t->errors, t->errors == 1 ? "" : "s");
    if (leaks)
        fprintf(stderr, ", %u leak%s", t->leaks, t->leaks == 1 ? "" : "s");
    fputc('\n', stderr);
}

static int check(const struct check_options *o, int exitcode)
{
    struct ws_private p;
    struct check_counts t;
    char conf[64], path[96];
    snprintf(conf, sizeof(conf), "check = \"%s\"\n", o->tool);
    if (ws_private_start_conf(&p, o->gpu, conf, NULL))
        return WS_EXIT_UNAVAILABLE;
    int r = prepare(&p, o, path);
    if (!r) {
        r = ws_program_run(o->argv, -1);
        if (tally(path, &t)) {
            r = WS_EXIT_UNAVAILABLE;
        } else {
            summarise(&t, o->leak_check);
            r = t.errors + t.leaks && exitcode ? exitcode : r;
        }
    }
    ws_private_stop(&p);
    return r;
}

static int run(int argc, char **argv)
{
    struct check_options o;
    int exitcode, r = parse(argc, argv, &o, &exitcode);
    if (r >= 0)
        return r;
    r = ws_program_check(o.argv[0]);
    return r ? r : check(&o, exitcode);
}
