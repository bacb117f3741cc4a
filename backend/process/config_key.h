// SPDX-License-Identifier: Apache-2.0
/* backend/process/config_key.h - the keys of wattshared.conf as a table: config_keys.def,
 * compiled. The parser (config.c, config_task.c) asks it for the grammar, checks and stores
 * values through it; reload.c compares and exchanges values through it. Threads: none. */
#ifndef WS_BACKEND_PROCESS_CONFIG_KEY_H
#define WS_BACKEND_PROCESS_CONFIG_KEY_H

#include <confuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum ws_config_section {                   /* and the struct that holds its values */
                         WS_CONFIG_TOP,    /* struct ws_config */
                         WS_CONFIG_LIMITS, /* struct ws_limits */
                         WS_CONFIG_USER,   /* struct ws_user_limits */
                         WS_CONFIG_TASK,   /* struct ws_task_rule */
};
enum ws_config_reload { WS_CONFIG_AT_ONCE, WS_CONFIG_NEW_CLIENTS, WS_CONFIG_NEXT_START };
enum ws_config_kind { /* described in config_keys.def */
                      WS_CONFIG_NUMBER,
                      WS_CONFIG_REAL,
                      WS_CONFIG_BOOLEAN,
                      WS_CONFIG_MODE,
                      WS_CONFIG_WORD,
                      WS_CONFIG_POLICY,
                      WS_CONFIG_TEXT,
                      WS_CONFIG_NAME,
                      WS_CONFIG_SM_SET,
                      WS_CONFIG_LIST,
                      WS_CONFIG_PATTERNS,
                      WS_CONFIG_USERS,
};

struct ws_config_word {
    const char *word; /* NULL: the end of the array */
    const void *value;
};
struct ws_config_key {
    enum ws_config_section section;
    const char *name;
    size_t offset, size; /* of the field in the section's struct */
    enum ws_config_kind kind;
    int64_t min, max;                   /* NUMBER */
    double real_min, real_max;          /* REAL */
    const char *unit;                   /* NUMBER, REAL: "seconds", or "" */
    const struct ws_config_word *words; /* WORD */
    size_t n_max;                       /* LIST, PATTERNS, USERS: entries */
    /* What would be right instead of @text, or NULL: @text is. Valid until the next call. */
    const char *(*wrong)(const char *text);
    const char *what;    /* NAME: what is named, added to the message */
    const char *def;     /* as it would be written in the file */
    const char *example; /* NULL: @def */
    enum ws_config_reload reload;
};

/* One key after the other, in the order of config_keys.def. */
const struct ws_config_key *ws_config_keys(size_t *ret_n);
enum {
    WS_CONFIG_N_KEYS = 0
#define SECTION(...)
#define GROUP(...)
#define KEY(...) +1
#include "backend/process/config_keys.def"
};
/* NULL: there is no such key. */
const struct ws_config_key *ws_config_key_find(enum ws_config_section section, const char *name);
/* "", "limits", "user", "task": as libconfuse names the section. */
const char *ws_config_section_name(enum ws_config_section section);

/* The keys of a section for libconfuse, and the end. @with_defaults: a key that is not in the
 * file has its default; else it has no value, which cfg_size() tells. The values point into the
 * table. Return: how many, without the end. */
size_t ws_config_key_opts(enum ws_config_section section, bool with_defaults,
                          cfg_opt_t ret[WS_CONFIG_N_KEYS + 1]);
/* Checks the value just read, the last one of a list. Return: true, or false after cfg_error(). */
bool ws_config_key_check(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt);
/* Stores the value of @k, which was checked, into the section's struct @to, if @cfg has one.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_config_key_take(const struct ws_config_key *k, void *to, cfg_t *cfg);

/* Whether both structs have the same value; for keys of WS_CONFIG_TOP and WS_CONFIG_LIMITS, as
 * the two below. */
bool ws_config_key_same(const struct ws_config_key *k, const void *a, const void *b);
void ws_config_key_swap(const struct ws_config_key *k, void *a, void *b);
void ws_config_key_free(const struct ws_config_key *k, void *of);

/* Puts a copy of @text, or NULL for "", in place of *field. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_config_text_set(char **field, const char *text);
/* Puts copies of @v in place of the NULL-terminated list, which has room for @max and the end.
 * Return: 0, -EINVAL, -ENOMEM. */
WS_MUST_CHECK int ws_config_list_set(char **list, size_t max, const char *const *v, size_t n);
/* "spread or fixed". Return: @buf. */
const char *ws_config_words_text(const struct ws_config_word *w, char *buf, size_t size);
const struct ws_config_word *ws_config_word_find(const struct ws_config_word *w, const char *text);

#endif
