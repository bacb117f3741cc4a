// SPDX-License-Identifier: Apache-2.0
/* cli/common/options.h - the table that describes a verb of `wattshare`. Reading the command
 * line, `wattshare VERB --help`, the completion of bash, and SYNOPSIS, OPTIONS and EXAMPLES of
 * the manual page are all made from it.
 *
 * A verb is a constant `struct ws_verb` in the file that implements it, and a row in a
 * verbs.def. Its options are an array of `struct ws_option`; each row says in which field of the
 * verb's own structure the value is stored. Threads: none. */
#ifndef WS_CLI_COMMON_OPTIONS_H
#define WS_CLI_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/macros.h"

enum ws_option_kind {
    WS_OPTION_FLAG,   /* takes no argument; stores true in a bool */
    WS_OPTION_CLEAR,  /* takes no argument; stores false in a bool */
    WS_OPTION_TEXT,   /* const char *, the argument itself; one of `words` where these are given */
    WS_OPTION_CHOICE, /* int, the number of the argument within `words` */
    WS_OPTION_INT,    /* int, from `min` to `max` */
    WS_OPTION_UINT64, /* uint64_t, from 0 to `max`; `max` 0: all of them */
    WS_OPTION_NUMBER, /* double, from `min` to `max` */
    WS_OPTION_PARSE,  /* what `parse` makes of it */
};

struct ws_option {
    const char *name; /* "gpus": without the dashes; NULL ends a table */
    /* "LIST", as it is shown; "FILE", "FOLDER", "OUT" and "STORE" are completed with file names */
    const char *argument;
    const char *help;  /* one sentence, for --help and for the manual page */
    const char *more;  /* further sentences, for the manual page alone; NULL: none */
    const char *group; /* heading of this option and those after it; NULL: that of the one before */
    enum ws_option_kind kind;
    size_t at; /* where in the verb's structure the value goes */
    double min, max;
    const char *words; /* "suspend|busy": what may be given; shown where `argument` is NULL */
    /* @values: the verb's structure. @text may be changed and lives as long as the process.
     * Return: 0, or negative with the error printed. */
    int (*parse)(void *values, char *text);
    /* the synopsis shows it without brackets; the verb itself says that it is missing */
    bool required;
    bool alone;   /* `wattshare VERB --NAME` is a form of its own, as --list is */
    bool repeats; /* may be given several times */
    char letter;  /* 'L': "-L" is the same; only of options without an argument; 0: none */
};

/* The field where an option's value is stored, checked to be of C type @ctype: `.kind = …, .at =
 * WS_AT(…)` in short. */
#define WS_AT(type, field, ctype)                                                                  \
    (offsetof(type, field) + 0 * sizeof(&((type *)NULL)->field == (ctype *)NULL))
#define WS_FLAG(type, field)   .kind = WS_OPTION_FLAG, .at = WS_AT(type, field, bool)
#define WS_CLEAR(type, field)  .kind = WS_OPTION_CLEAR, .at = WS_AT(type, field, bool)
#define WS_TEXT(type, field)   .kind = WS_OPTION_TEXT, .at = WS_AT(type, field, const char *)
#define WS_CHOICE(type, field) .kind = WS_OPTION_CHOICE, .at = WS_AT(type, field, int)
#define WS_UINT64(type, field) .kind = WS_OPTION_UINT64, .at = WS_AT(type, field, uint64_t)
#define WS_INT(type, field, low, high)                                                             \
    .kind = WS_OPTION_INT, .at = WS_AT(type, field, int), .min = (low), .max = (high)
#define WS_NUMBER(type, field, low, high)                                                          \
    .kind = WS_OPTION_NUMBER, .at = WS_AT(type, field, double), .min = (low), .max = (high)
#define WS_PARSE(function) .kind = WS_OPTION_PARSE, .parse = (function)

/* Rows that several verbs have. */
#define WS_OPTION_SOCKET(type, field)                                                              \
    {                                                                                              \
        "socket", "ENDPOINT",                                                                      \
            "The daemon to use; without it that of WATTSHARE_SOCKET, or "                          \
            "the system's.",                                                                       \
            WS_TEXT(type, field)                                                                   \
    }
#define WS_OPTION_JOBS(type, field)                                                                \
    {                                                                                              \
        "jobs", "N",                                                                               \
            "The number of threads, 1 to 256; without it as many as this process may use cores.",  \
            .more = "The results do not depend on it.", WS_INT(type, field, 1, 256)                \
    }

enum { WS_ARGUMENTS_ANY = 1 << 20 };

struct ws_verb {
    const char *name; /* "run"; of a variant "gen --paper edl" */
    /* what the verb does, in at most 60 characters: "run a program on shared GPUs" */
    const char *purpose;
    const char *about;               /* further text for --help; NULL: none */
    const struct ws_option *options; /* ends with an empty row; NULL: none */
    /* what may follow the options, one text for each form; NULL at the end; NULL: nothing */
    const char *const *arguments;
    const char *const *examples;      /* command lines; NULL at the end; NULL: none */
    int min_arguments, max_arguments; /* how many may follow */
    const char *missing;              /* the error where there are fewer */
    const char *asked;    /* what follows: KIND of cli/common/words.h; NULL: none such */
    bool asked_later;     /* …behind a first word, as in "policy show NAME" */
    bool command_follows; /* the first argument that is no option begins another command */
    /* verbs that take further options, NULL at the end; NULL: none */
    const struct ws_verb *const *variants;
    /* @argv: argv[0] is the verb. Return: the exit status. */
    int (*run)(int argc, char **argv);
};

/**
 * ws_verb_parse() - read a verb's options into its structure, and answer --help
 * @values: the structure that the table's fields are of; holds the defaults
 * @ret: gets the arguments that follow the options, NULL at the end
 * Return: negative: go on; else the exit status: 0 where help was printed, WS_EXIT_USAGE where
 * something was wrong (printed)
 */
WS_MUST_CHECK int ws_verb_parse(const struct ws_verb *v, int argc, char **argv, void *values,
                                char ***ret);

/* "wattshare: MESSAGE; see wattshare VERB --help". Return: WS_EXIT_USAGE. */
int ws_verb_wrong(const struct ws_verb *v, const char *fmt, ...) WS_PRINTF(2, 3);

/* Writes "a, b or c" for the words "a|b|c". */
void ws_option_list_words(char *ret, size_t bytes, const char *words);

void ws_verb_print_help(const struct ws_verb *v, FILE *f);
/* The parts of the manual page as scdoc(5) reads them. @part: "synopsis", "options", "examples".
 * Return: false: no such part. */
bool ws_verb_print_man(const struct ws_verb *v, const char *part, FILE *f);
/* For the completion of shells: a line for each option, "VERB<tab>--OPTION<tab>what its argument
 * is", where that is "none", "file", "value", "words W…" or "ask KIND" (cli/common/words.h), and a
 * line "VERB<tab>arguments<tab>…" where what follows is "file", "command", "words W…", or,
 * from the first or the second argument on, "ask KIND FROM". */
void ws_verb_print_completion(const struct ws_verb *v, FILE *f);

#endif
