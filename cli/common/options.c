// SPDX-License-Identifier: Apache-2.0
/* Reads a verb's command line by its table of options. What is printed from the same table is in
 * options_text.c. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"

enum { HELP = 'h', FIRST_ROW = 256 }; /* what getopt_long() returns; rows count from FIRST_ROW on */

static size_t count(const struct ws_option *options)
{
    size_t n = 0;
    while (options && options[n].name)
        n++;
    return n;
}

static bool takes_argument(const struct ws_option *o)
{
    return o->kind != WS_OPTION_FLAG && o->kind != WS_OPTION_CLEAR;
}

int ws_verb_wrong(const struct ws_verb *v, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ws_cli_error("%s; see wattshare %s --help", text, v->name);
    return WS_EXIT_USAGE;
}

/* ---- values ---- */

/* The position of @text among the words "a|b|c", from 0; negative: it is not one of them. */
static int word_index(const char *words, const char *text)
{
    size_t n = strlen(text);
    for (int i = 0; *words; i++) {
        size_t length = strcspn(words, "|");
        if (length == n && !memcmp(words, text, n))
            return i;
        words += length + (words[length] == '|');
    }
    return -1;
}

static int take_word(const struct ws_option *o, const char *text, int *ret)
{
    char words[256] = "";
    *ret = word_index(o->words, text);
    if (*ret >= 0)
        return 0;
    ws_option_list_words(words, sizeof(words), o->words);
    ws_cli_error("--%s %s: expected %s", o->name, text, words);
    return -EINVAL;
}

static int take_int(const struct ws_option *o, const char *text, int *ret)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || (double)v < o->min || (double)v > o->max) {
        ws_cli_error("--%s %s: expected a whole number from %.10g to %.10g", o->name, text, o->min,
                     o->max);
        return -EINVAL;
    }
    *ret = (int)v;
    return 0;
}

static int take_uint64(const struct ws_option *o, const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') {
        ws_cli_error("--%s %s: expected a whole number, 0 or more", o->name, text);
        return -EINVAL;
    }
    return 0;
}

static int take_number(const struct ws_option *o, const char *text, double *ret)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= o->min && v <= o->max)) {
        ws_cli_error("--%s %s: expected a number from %.10g to %.10g", o->name, text, o->min,
                     o->max);
        return -EINVAL;
    }
    *ret = v;
    return 0;
}

/* Return: 0, or negative with the error printed. */
static int take(const struct ws_option *o, char *text, void *values)
{
    void *field = (char *)values + o->at;
    int i;
    switch (o->kind) {
    case WS_OPTION_FLAG:
    case WS_OPTION_CLEAR:
        *(bool *)field = o->kind == WS_OPTION_FLAG;
        return 0;
    case WS_OPTION_TEXT:
        if (o->words && take_word(o, text, &i))
            return -EINVAL;
        *(const char **)field = text;
        return 0;
    case WS_OPTION_CHOICE:
        return take_word(o, text, field);
    case WS_OPTION_INT:
        return take_int(o, text, field);
    case WS_OPTION_UINT64:
        return take_uint64(o, text, field);
    case WS_OPTION_NUMBER:
        return take_number(o, text, field);
    case WS_OPTION_PARSE:
        return o->parse(values, text);
    }
    return -EINVAL;
}

/* ---- the command line ---- */

static void say_unknown(const struct ws_verb *v, const char *text)
{
    char all[512] = "", meant[80];
    struct ws_nearest near;
    size_t at = 0;
    ws_nearest_init(&near, text + strspn(text, "-"));
    for (const struct ws_option *o = v->options; o && o->name && at < sizeof(all); o++) {
        at += (size_t)snprintf(all + at, sizeof(all) - at, "--%s, ", o->name);
        ws_nearest_try(&near, o->name);
    }
    ws_nearest_text(&near, meant, sizeof(meant));
    ws_cli_error("%s has no option '%s'; it has %s--help%s", v->name, text, all, meant);
}

/* @c: what getopt_long() returned: '?' or ':'. */
static void say_wrong(const struct ws_verb *v, int c, char **argv)
{
    char letter[3] = {'-', (char)optopt, 0};
    if (optopt < FIRST_ROW) {
        say_unknown(v, optopt ? letter : argv[optind - 1]);
        return;
    }
    const struct ws_option *o = &v->options[optopt - FIRST_ROW];
    if (c == ':')
        ws_verb_wrong(v, "--%s needs a value: --%s %s", o->name, o->name,
                      o->argument ? o->argument : o->words);
    else
        ws_verb_wrong(v, "--%s takes no value", o->name);
}

static int check_arguments(const struct ws_verb *v, int n, char **arguments)
{
    if (n < v->min_arguments)
        return ws_verb_wrong(v, "%s", v->missing);
    if (n > v->max_arguments && !v->command_follows)
        return ws_verb_wrong(v, "%s takes no '%s'", v->name, arguments[v->max_arguments]);
    return -1;
}

/* The letters of options, as getopt() wants them. */
static void list_letters(const struct ws_verb *v, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, v->command_follows ? "+:h" : ":h");
    for (const struct ws_option *o = v->options; o && o->name && n + 1 < size; o++)
        if (o->letter)
            ret[n++] = o->letter;
    ret[n] = 0;
}

/* The number that getopt_long() gives the option with this letter; else @c. */
static int of_letter(const struct ws_verb *v, int c)
{
    for (size_t i = 0; c < FIRST_ROW && v->options && v->options[i].name; i++)
        if (v->options[i].letter == c && c)
            return FIRST_ROW + (int)i;
    return c;
}

int ws_verb_parse(const struct ws_verb *v, int argc, char **argv, void *values, char ***ret)
{
    size_t n = count(v->options);
    struct option *longs = ws_alloc_array(n + 2, sizeof(*longs));
    int status = -1;
    char letters[64];
    if (!longs) {
        ws_cli_error("out of memory");
        return WS_EXIT_CANNOT_RUN;
    }
    for (size_t i = 0; i < n; i++)
        longs[i] = (struct option){v->options[i].name, takes_argument(&v->options[i]), NULL,
                                   FIRST_ROW + (int)i};
    longs[n] = (struct option){"help", no_argument, NULL, HELP};
    opterr = 0;
    list_letters(v, letters, sizeof(letters));
    while (status < 0) {
        int c = of_letter(v, getopt_long(argc, argv, letters, longs, NULL));
        if (c == -1)
            break;
        if (c == HELP) {
            ws_verb_print_help(v, stdout);
            status = 0;
        } else if (c < FIRST_ROW) {
            say_wrong(v, c, argv);
            status = WS_EXIT_USAGE;
        } else if (take(&v->options[c - FIRST_ROW], optarg, values)) {
            status = WS_EXIT_USAGE;
        }
    }
    free(longs);
    if (status < 0)
        status = check_arguments(v, argc - optind, argv + optind);
    *ret = argv + optind;
    return status;
}
