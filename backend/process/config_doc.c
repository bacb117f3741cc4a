// SPDX-License-Identifier: Apache-2.0
/* Writes what people read of the tables of keys (config_keys.def, device/catalog_keys.def); runs
 * while wattshare is built.
 *
 *   config_doc man < wattshared.conf.5.scd   the page; each line "@keys SECTION" becomes the keys
 *                                            of the section, "@reload WHEN" a list of names
 *   config_doc example                       the example file conf/wattshared.conf */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "protocol/protocol.h"

enum value_kind { OTHER, WHOLE_NUMBER, FRACTION, ONE_WORD };
enum row { IS_SECTION, IS_GROUP, IS_KEY };

static const struct row_of {
    enum row row;
    const char *section; /* of a key: the one it is in */
    const char *name;    /* of a key; else the title */
    struct {
        enum value_kind kind;
        double min, max;
        const char *unit; /* ONE_WORD: the array of words */
    } of;
    const char *def, *example, *reload, *text;
} rows[] = {
#define NUMBER(lo, hi, unit)          WHOLE_NUMBER, lo, hi, unit
#define REAL(lo, hi, unit)            FRACTION, lo, hi, unit
#define WORD(list)                    ONE_WORD, 0, 0, #list
#define BOOLEAN                       OTHER
#define MODE                          OTHER
#define POLICY                        OTHER
#define TEXT(check)                   OTHER
#define NAME(of)                      OTHER
#define SM_SET                        OTHER
#define LIST(max, check)              OTHER
#define PATTERNS(max, check)          OTHER
#define USERS(max, check)             OTHER
#define SAME                          NULL
#define SECTION(section, title, text) {IS_SECTION, #section, title, {0}, NULL, NULL, NULL, text},
#define GROUP(title, text)            {IS_GROUP, "", title, {0}, NULL, NULL, NULL, text},
#define KEY(section, name, field, kind, def, example, reload, text)                                \
    {IS_KEY, #section, #name, {kind}, def, example, #reload, text},
#include "backend/process/config_keys.def"
    {IS_SECTION, "gpu", "", {0}, NULL, NULL, NULL, ""},
#define GPU_TEXT(name, example, text)                                                              \
    {IS_KEY, "gpu", #name, {0}, "\"\"", "\"" example "\"", "", text},
#define GPU_KEY(name, field, min, max, def, unit, text)                                            \
    {IS_KEY, "gpu", #name, {WHOLE_NUMBER, min, max, ""}, #def, NULL, "", text},
#include "device/catalog_keys.def"
};

static const struct {
    const char *list, *word; /* one of them is NULL */
} words[] = {
#define WORDS(name)             {#name, NULL},
#define CHOICE(type, word, ...) {NULL, word},
#define END_WORDS
#include "backend/process/config_words.def"
};

/* ---- one key ---- */

static bool is_number(const struct row_of *k)
{
    return k->of.kind == WHOLE_NUMBER || k->of.kind == FRACTION;
}

/* Whether the key has a value when the file does not give it one. */
static bool has_default(const struct row_of *k)
{
    double v = strtod(k->def, NULL);
    if (!strcmp(k->def, "NEEDED"))
        return false;
    if (!is_number(k))
        return strcmp(k->def, "\"\"") && strcmp(k->def, "{}");
    return v >= k->of.min && v <= k->of.max && (v > 0 || k->of.kind == WHOLE_NUMBER);
}

/* "A number of seconds from 0 to 3600." */
static void put_range(const struct row_of *k)
{
    bool of = k->of.unit[0] && k->of.unit[0] != '(';
    printf("A number%s%s", of ? " of " : "", of ? k->of.unit : "");
    if (k->of.kind == FRACTION && k->of.min <= 0)
        printf(", more than 0 and at most %.0f", k->of.max);
    else
        printf(" from %.10g to %.0f", k->of.min, k->of.max);
    if (!of && k->of.unit[0])
        printf(" %s", k->of.unit);
    putchar('.');
}

/* "One of functional, scaled, skip." */
static void put_words(const struct row_of *k)
{
    bool inside = false;
    size_t n = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(words); i++) {
        if (words[i].list)
            inside = !strcmp(words[i].list, k->of.unit);
        else if (inside)
            printf("%s%s", n++ ? ", " : "One of ", words[i].word);
    }
    putchar('.');
}

/* ---- the manual page ---- */

/* A value as it is written in the file, which scdoc must not take for markup. */
static void put_escaped(const char *text)
{
    for (; *text; text++) {
        if (strchr("*_\\", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void put_entry(const struct row_of *k)
{
    printf("*%s*", k->name);
    if (has_default(k)) {
        printf(" = ");
        put_escaped(k->def);
    }
    printf("\n\t%s", k->text);
    if (is_number(k)) {
        putchar(' ');
        put_range(k);
    }
    if (!has_default(k) && k->example) {
        printf(" Example: ");
        put_escaped(k->example);
        putchar('.');
    }
    printf("\n\n");
}

/* The text of the section, its groups and its keys. Return: false: there is no such section. */
static bool put_section(const char *section)
{
    bool inside = false, found = false;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        const struct row_of *r = &rows[i];
        if (r->row == IS_SECTION)
            inside = !strcmp(r->section, section);
        if (!inside)
            continue;
        found = true;
        if (r->row == IS_KEY)
            put_entry(r);
        else if (r->row == IS_GROUP)
            printf("## %s\n\n", r->name);
        if (r->row != IS_KEY && r->text[0])
            printf("%s\n\n", r->text);
    }
    return found;
}

/* The keys that a reload treats like that, without those of sections that change as a whole. */
static bool put_reload(const char *when)
{
    size_t n = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        const struct row_of *r = &rows[i];
        if (r->row == IS_KEY && !strcmp(r->reload, when) && strcmp(r->section, "task") &&
            strcmp(r->section, "user"))
            printf("%s*%s*", n++ ? ", " : "", r->name);
    }
    puts(n ? "." : "");
    return n > 0;
}

static int put_page(void)
{
    char line[4096], word[64];
    while (fgets(line, sizeof(line), stdin)) {
        bool ok = true;
        if (sscanf(line, "@keys %63s", word) == 1)
            ok = put_section(word);
        else if (sscanf(line, "@reload %63s", word) == 1)
            ok = put_reload(word);
        else
            fputs(line, stdout);
        if (!ok) {
            fprintf(stderr, "config_doc: there is nothing for %s", line);
            return 1;
        }
    }
    return 0;
}

/* ---- the example file ---- */

enum { COLUMNS = 100 };

/* @n bytes of @text without scdoc's markup, as comment lines. */
static void put_comment(const char *text, size_t n, const char *indent)
{
    size_t column = (size_t)printf("%s#", indent);
    for (const char *end = text + n; text < end;) {
        size_t word = strcspn(text, " ");
        if (word > (size_t)(end - text))
            word = (size_t)(end - text);
        if (column + word + 1 > COLUMNS)
            column = (size_t)printf("\n%s#", indent) - 1;
        column += (size_t)printf(" ");
        for (; word; word--, text++) {
            bool markup = *text == '*' || *text == '\\';
            if (markup && !(*text == '*' && text[-1] == '\\'))
                continue;
            putchar(*text);
            column++;
        }
        text += text < end;
    }
    putchar('\n');
}

/* The text's first sentence, which says what the key is for. The next one begins with a capital
 * letter or a digit: "{ ... }" is no end. */
static size_t first_sentence(const char *text)
{
    const char *end = text;
    while ((end = strstr(end, ". ")) && !isupper((unsigned char)end[2]) &&
           !isdigit((unsigned char)end[2]))
        end++;
    return end ? (size_t)(end - text) + 1 : strlen(text);
}

static void put_example_key(const struct row_of *k, const char *indent)
{
    put_comment(k->text, first_sentence(k->text), indent);
    if (is_number(k) || k->of.kind == ONE_WORD) {
        printf("%s# ", indent);
        if (is_number(k))
            put_range(k);
        else
            put_words(k);
        putchar('\n');
    }
    if (!has_default(k))
        printf("%s# Not set by default; for example:\n", indent);
    printf("%s%s = %s\n", indent[0] ? indent : "#", k->name,
           has_default(k) || !k->example ? k->def : k->example);
}

static int put_example(void)
{
    const char *open = NULL; /* the section whose brace is open */
    puts("# Configuration of wattshared. Each key has its default here, behind a #: take the # "
         "away and change the\n"
         "# value. wattshared.conf(5) says more about each key; `wattshared --check` checks this "
         "file.");
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows) && strcmp(rows[i].section, "gpu"); i++) {
        const struct row_of *r = &rows[i];
        switch (r->row) {
        case IS_SECTION:
            if (open)
                puts("#}");
            open = strcmp(r->section, "top") ? r->section : NULL;
            putchar('\n');
            if (open) {
                put_comment(r->text, first_sentence(r->text), "");
                printf("#%s {\n", !strcmp(open, "task")   ? "task \"camera\""
                                  : !strcmp(open, "user") ? "user \"*\""
                                                          : open);
            }
            break;
        case IS_GROUP:
            printf("%s# ---- %s ----\n", open ? "#    " : i > 1 ? "\n" : "", r->name);
            break;
        case IS_KEY:
            put_example_key(r, open ? "#    " : "");
        }
    }
    puts("#}");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "man"))
        return put_page();
    if (argc == 2 && !strcmp(argv[1], "example"))
        return put_example();
    fputs("usage: config_doc man|example\n", stderr);
    return 2;
}
