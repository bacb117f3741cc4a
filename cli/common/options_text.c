// SPDX-License-Identifier: Apache-2.0
/* What is printed from a verb's table: help, the parts of its manual page, and the words that
 * bash completes. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/options.h"

enum {
    COLUMNS = 80,    /* --help fits an ordinary terminal */
    HELP_INDENT = 6, /* of an option's sentence, below its name */
    JOINED = '\x1f', /* a space at which a line is not broken */
};

/* ---- lines of text ---- */

static size_t width_of(const char *s, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += (s[i] & 0xc0) != 0x80; /* UTF-8's continuation bytes take no column */
    return n;
}

/* Words of @text in lines of COLUMNS; the first one begins at @column, the others are indented
 * by @indent. */
static void print_wrapped(FILE *f, const char *text, size_t column, size_t indent)
{
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " \n"), width = width_of(text, n);
        if (!first && column + 1 + width >= COLUMNS) {
            fprintf(f, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        column += width + !first;
        if (!first)
            fputc(' ', f);
        for (size_t i = 0; i < n; i++)
            fputc(text[i] == JOINED ? ' ' : text[i], f);
        first = false;
        text += n;
        if (*text == '\n') {
            fprintf(f, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        text += *text != 0;
    }
    fputc('\n', f);
}

void ws_option_list_words(char *ret, size_t bytes, const char *words)
{
    size_t at = 0;
    while (*words && at + 1 < bytes) {
        size_t n = strcspn(words, "|");
        const char *rest = words + n + (words[n] == '|');
        const char *between = "";
        if (*rest)
            between = strchr(rest, '|') ? ", " : " or ";
        at += (size_t)snprintf(ret + at, bytes - at, "%.*s%s", (int)n, words, between);
        words = rest;
    }
}

/* ---- an option's parts ---- */

/* NULL: it takes none. */
static const char *argument_of(const struct ws_option *o)
{
    return o->argument ? o->argument : o->words;
}

/* The sentences about an option: its help; what may be given, where the name of the argument
 * doesn't say it; @more too if it is asked for. malloc'ed, or NULL. */
static char *sentences_of(const struct ws_option *o, bool more)
{
    char *text = NULL, words[256] = "";
    bool choice = o->argument && o->words;
    if (choice)
        ws_option_list_words(words, sizeof(words), o->words);
    if (asprintf(&text, "%s%s%s%s%s%s", o->help, choice ? " It is " : "", choice ? words : "",
                 choice ? "." : "", more && o->more ? " " : "", more && o->more ? o->more : "") < 0)
        return NULL;
    return text;
}

static bool has_option(const struct ws_option *options, const char *name)
{
    for (; options && options->name; options++)
        if (!strcmp(options->name, name))
            return true;
    return false;
}

static bool names_file(const char *argument)
{
    static const char *const files[] = {"FILE", "FOLDER", "OUT", "STORE", "PROGRAM"};
    for (size_t i = 0; argument && i < WS_ARRAY_SIZE(files); i++)
        if (strstr(argument, files[i]))
            return true;
    return false;
}

/* ---- synopsis ---- */

/* How a synopsis is written: plainly, or for scdoc(5). */
typedef void (*put_text)(FILE *f, const char *text);

static void put_plain(FILE *f, const char *text)
{
    for (; *text; text++)
        fputc(*text == ' ' ? JOINED : *text, f);
}

/* Capitals, which mean what the user gives, are underlined; other words are bold. */
static void put_scdoc(FILE *f, const char *text)
{
    while (*text) {
        size_t n = 0;
        if (isupper((unsigned char)*text)) {
            n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        } else if (islower((unsigned char)*text) || !strncmp(text, "--", 2)) {
            n = strspn(text, "abcdefghijklmnopqrstuvwxyz-_");
        }
        if (!n) {
            fputc(*text++, f);
            continue;
        }
        char mark = isupper((unsigned char)*text) ? '_' : '*';
        fputc(mark, f);
        for (size_t i = 0; i < n; i++)
            fprintf(f, text[i] == '_' ? "\\%c" : "%c", text[i]);
        fputc(mark, f);
        text += n;
    }
}

static void put_option(FILE *f, const struct ws_option *o, put_text put)
{
    char text[160];
    const char *argument = argument_of(o);
    snprintf(text, sizeof(text), "%s--%s%s%s%s%s", o->required ? "" : "[", o->name,
             argument ? " " : "", argument ? argument : "", o->required ? "" : "]",
             o->repeats ? "..." : "");
    fputc(' ', f);
    put(f, text);
}

/* Whether the verb's name gives the option already, as in "gen --paper edl". */
static bool is_in_name(const struct ws_verb *v, const struct ws_option *o)
{
    const char *dashes = strstr(v->name, " --");
    size_t n = strlen(o->name);
    return dashes && !strncmp(dashes + 3, o->name, n) && dashes[3 + n] == ' ';
}

/* One form: required options first, then the others, then @arguments (NULL: none). */
static void put_form(FILE *f, const struct ws_verb *v, const char *arguments, put_text put)
{
    for (int optional = 0; optional < 2; optional++)
        for (const struct ws_option *o = v->options; o && o->name; o++)
            if (!o->alone && !o->required == optional && !is_in_name(v, o))
                put_option(f, o, put);
    if (v->variants) {
        fputc(' ', f);
        put(f, "[OPTION...]");
    }
    if (arguments) {
        fputc(' ', f);
        put(f, arguments);
    }
}

/* Calls @line with each form of the synopsis, without "wattshare VERB". */
static void each_form(const struct ws_verb *v, put_text put,
                      void (*line)(FILE *f, const struct ws_verb *v, const char *text), FILE *f)
{
    static const char *const none[] = {NULL};
    const char *const *arguments = v->arguments ? v->arguments : none;
    const struct ws_option *alone = v->options;
    bool more = true;
    while (more) {
        char *text = NULL;
        size_t n;
        FILE *form = open_memstream(&text, &n);
        if (!form)
            return;
        put_form(form, v, *arguments, put);
        fclose(form);
        line(f, v, text);
        free(text);
        more = *arguments && *++arguments;
    }
    for (; alone && alone->name; alone++)
        if (alone->alone) {
            char text[80];
            snprintf(text, sizeof(text), put == put_plain ? " --%s" : " *--%s*", alone->name);
            line(f, v, text);
        }
}

/* ---- help ---- */

static void usage_line(FILE *f, const struct ws_verb *v, const char *text)
{
    int n = fprintf(f, "  wattshare %s", v->name);
    print_wrapped(f, text, (size_t)n, 8);
}

static void help_option(FILE *f, const struct ws_option *o)
{
    const char *argument = argument_of(o);
    if (o->group)
        fprintf(f, "\n%s:\n", o->group);
    fprintf(f, "  --%s%s%s\n%*s", o->name, argument ? " " : "", argument ? argument : "",
            HELP_INDENT, "");
    char *text = sentences_of(o, false);
    print_wrapped(f, text ? text : o->help, HELP_INDENT, HELP_INDENT);
    free(text);
}

void ws_verb_print_help(const struct ws_verb *v, FILE *f)
{
    fputs("usage:\n", f);
    each_form(v, put_plain, usage_line, f);
    fprintf(f, "\n%c%s.\n", toupper((unsigned char)*v->purpose), v->purpose + 1);
    if (v->about) {
        fputc('\n', f);
        print_wrapped(f, v->about, 0, 0);
    }
    if (!v->options || !v->options->group)
        fputs("\nOptions:\n", f);
    for (const struct ws_option *o = v->options; o && o->name; o++)
        help_option(f, o);
    fputs("  --help\n      Print this help.\n", f);
    for (size_t i = 0; v->variants && v->variants[i]; i++)
        fprintf(f, "%s  %-20s %s\n",
                i ? "" : "\nEach of these has options of its own, shown by its --help:\n",
                v->variants[i]->name, v->variants[i]->purpose);
    for (size_t i = 0; v->examples && v->examples[i]; i++)
        fprintf(f, "%s  %s\n", i ? "" : "\nExamples:\n", v->examples[i]);
    fprintf(f, "\nSee wattshare-%.*s(1).\n", (int)strcspn(v->name, " "), v->name);
}

/* ---- manual page ---- */

static void synopsis_line(FILE *f, const struct ws_verb *v, const char *text)
{
    fprintf(f, "*wattshare %s*%s\n\n", v->name, text);
}

/* Running text: options are bold, and what scdoc(5) would read as a mark is escaped. */
static void put_sentences(FILE *f, const char *text)
{
    for (bool bold = false; *text || bold;) {
        bool in_word = islower((unsigned char)*text) || *text == '-';
        if (bold && !in_word) {
            fputc('*', f);
            bold = false;
            continue;
        }
        if (!bold && !strncmp(text, "--", 2) && islower((unsigned char)text[2])) {
            fputc('*', f);
            bold = true;
        }
        fprintf(f, strchr("_*\\", *text) ? "\\%c" : "%c", *text);
        text++;
    }
}

static void man_options(FILE *f, const struct ws_option *o, const struct ws_option *known)
{
    for (; o && o->name; o++) {
        if (has_option(known, o->name))
            continue;
        if (o->group)
            fprintf(f, "## %s\n\n", o->group);
        fprintf(f, "*--%s*", o->name);
        if (argument_of(o)) {
            fputc(' ', f);
            put_scdoc(f, argument_of(o));
        }
        fputs("\n\t", f);
        char *text = sentences_of(o, true);
        put_sentences(f, text ? text : o->help);
        free(text);
        fputs("\n\n", f);
    }
}

bool ws_verb_print_man(const struct ws_verb *v, const char *part, FILE *f)
{
    if (!strcmp(part, "synopsis")) {
        each_form(v, put_scdoc, synopsis_line, f);
    } else if (!strcmp(part, "options")) {
        man_options(f, v->options, NULL);
        fputs("*--help*\n\tPrint a summary of the options.\n\n", f);
        for (size_t i = 0; v->variants && v->variants[i]; i++) {
            fprintf(f, "## Options of %s\n\n", v->variants[i]->name);
            man_options(f, v->variants[i]->options, v->options);
        }
    } else if (!strcmp(part, "examples")) {
        fputs("```\n", f);
        for (size_t i = 0; v->examples && v->examples[i]; i++)
            fprintf(f, "%s\n", v->examples[i]);
        fputs("```\n", f);
    } else {
        return false;
    }
    return true;
}

/* ---- completion ---- */

/* The alternatives of "list|show", parted by spaces. */
static void put_words(FILE *f, const char *words)
{
    fputs("words", f);
    for (; *words; words += words[0] == '|') {
        size_t n = strcspn(words, "|");
        fprintf(f, " %.*s", (int)n, words);
        words += n;
    }
}

/* The kind of words (cli/common/words.h) that an option of this name takes; NULL: none. */
static const char *asked_of(const char *name)
{
    static const char *const table[][2] = {
        {"gpus", "gpus"}, {"gpu", "gpus"}, {"policy", "policies"}, {"task", "tasks"}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(table); i++)
        if (!strcmp(table[i][0], name))
            return table[i][1];
    return NULL;
}

static void complete_options(FILE *f, const struct ws_option *o, const char *verb,
                             const struct ws_option *known)
{
    for (; o && o->name; o++) {
        if (has_option(known, o->name))
            continue;
        fprintf(f, "%s\t--%s\t", verb, o->name);
        if (o->words)
            put_words(f, o->words);
        else if (!o->argument)
            fputs("none", f);
        else if (asked_of(o->name))
            fprintf(f, "ask %s", asked_of(o->name));
        else
            fputs(names_file(o->argument) ? "file" : "value", f);
        fputc('\n', f);
    }
}

/* The words that may come first: those in small letters that begin a form. */
static void complete_arguments(FILE *f, const struct ws_verb *v)
{
    const char *const *a = v->arguments;
    bool file = false;
    fprintf(f, "%s\targuments\twords", v->name);
    for (; a && *a; a++) {
        size_t n = strspn(*a, "abcdefghijklmnopqrstuvwxyz");
        if (n)
            fprintf(f, " %.*s", (int)n, *a);
        file = file || names_file(*a);
    }
    if (file)
        fprintf(f, "\n%s\targuments\tfile", v->name);
    if (v->asked)
        fprintf(f, "\n%s\targuments\task %s %d", v->name, v->asked, v->asked_later ? 2 : 1);
    fputc('\n', f);
}

void ws_verb_print_completion(const struct ws_verb *v, FILE *f)
{
    complete_options(f, v->options, v->name, NULL);
    for (size_t i = 0; v->variants && v->variants[i]; i++)
        complete_options(f, v->variants[i]->options, v->name, v->options);
    fprintf(f, "%s\t--help\tnone\n", v->name);
    complete_arguments(f, v);
}
