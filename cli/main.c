// SPDX-License-Identifier: Apache-2.0
/* wattshare: the command of people and scripts. Finds the verb and calls it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/words.h"

#define WS_VERB(verb) extern const struct ws_verb ws_verb_##verb;
#include "cli/verbs.def"
#include "papers/verbs/verbs.def"
#undef WS_VERB

#define WS_VERB(verb) &ws_verb_##verb,
static const struct ws_verb *const common_verbs[] = {
#include "cli/verbs.def"
    NULL};
static const struct ws_verb *const papers_verbs[] = {
#include "papers/verbs/verbs.def"
    NULL};
#undef WS_VERB

static const struct verb_group {
    const char *heading;
    const struct ws_verb *const *verbs;
} groups[] = {
    {"Programs, the daemon, and what is known of kernels:", common_verbs},
    {"Simulation and analysis, without a daemon or a GPU:", papers_verbs},
};

static void print_help(FILE *f)
{
    fputs("usage:\n  wattshare VERB [OPTION...]\n  wattshare VERB --help\n"
          "  wattshare --help | --version\n",
          f);
    for (size_t i = 0; i < WS_ARRAY_SIZE(groups); i++) {
        fprintf(f, "\n%s\n", groups[i].heading);
        for (const struct ws_verb *const *v = groups[i].verbs; *v; v++)
            fprintf(f, "  %-11s %s\n", (*v)->name, (*v)->purpose);
    }
    fputs("\nSee wattshare(1).\n", f);
}

static const struct ws_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(groups); i++)
        for (const struct ws_verb *const *v = groups[i].verbs; *v; v++)
            if (!strcmp((*v)->name, name))
                return *v;
    return NULL;
}

static int no_such_verb(const char *name)
{
    struct ws_nearest near;
    char text[80];
    ws_nearest_init(&near, name);
    for (size_t i = 0; i < WS_ARRAY_SIZE(groups); i++)
        for (const struct ws_verb *const *v = groups[i].verbs; *v; v++)
            ws_nearest_try(&near, (*v)->name);
    fprintf(stderr, "wattshare: unknown command '%s'%s", name,
            ws_nearest_text(&near, text, sizeof(text)));
    fputs(near.best ? " The commands are" : "; the commands are", stderr);
    for (size_t i = 0; i < WS_ARRAY_SIZE(groups); i++)
        for (const struct ws_verb *const *v = groups[i].verbs; *v; v++)
            fprintf(stderr, " %s", (*v)->name);
    fputs("; see wattshare --help\n", stderr);
    return WS_EXIT_USAGE;
}

/* For the build and for shells: "--print-completion", "--print-man PART VERB", and "--print-words
 * KIND". Return: the exit status. */
static int print_description(int argc, char **argv)
{
    if (!strcmp(argv[1], "--print-completion")) {
        for (size_t i = 0; i < WS_ARRAY_SIZE(groups); i++)
            for (const struct ws_verb *const *v = groups[i].verbs; *v; v++)
                ws_verb_print_completion(*v, stdout);
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "--print-words"))
        return ws_words_print(argv[2]) ? 0 : WS_EXIT_USAGE;
    const struct ws_verb *v = argc == 4 ? find_verb(argv[3]) : NULL;
    return v && ws_verb_print_man(v, argv[2], stdout) ? 0 : WS_EXIT_USAGE;
}

/* Programs that look for NVIDIA's command find this one under its name (cli/common/program.c). */
static bool is_smi(const char *program)
{
    const char *slash = strrchr(program, '/');
    return !strcmp(slash ? slash + 1 : program, "nvidia-smi");
}

int main(int argc, char **argv)
{
    if (argc && is_smi(argv[0]))
        return ws_verb_smi.run(argc, argv);
    if (argc < 2) {
        print_help(stderr);
        return WS_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("wattshare %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_help(stdout);
        return 0;
    }
    if (!strncmp(argv[1], "--print-", strlen("--print-")))
        return print_description(argc, argv);
    const struct ws_verb *v = find_verb(argv[1]);
    return v ? v->run(argc - 1, argv + 1) : no_such_verb(argv[1]);
}
