// SPDX-License-Identifier: Apache-2.0
/* The table of keys, and what the kinds of keys have in common. A kind is a row of `kinds`: which
 * type libconfuse reads, how a value is checked and how it is stored. What is right for one key
 * only is a function `…_wrong`, which the key's row names. */
#include "backend/process/config_key.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/process/config.h"
#include "base/alloc.h"
#include "base/error.h"
#include "policy/policy.h"
#include "protocol/handoff.h"
#include "protocol/protocol.h"

/* ---- words ---- */

#define WORDS(name)             static const struct ws_config_word name[] = {
#define CHOICE(type, word, ...) {word, &(const type){__VA_ARGS__}},
#define END_WORDS                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }                                                                                              \
    }                                                                                              \
    ;
#include "backend/process/config_words.def"

const struct ws_config_word *ws_config_word_find(const struct ws_config_word *w, const char *text)
{
    for (; text && w->word; w++)
        if (!strcmp(w->word, text))
            return w;
    return NULL;
}

const char *ws_config_words_text(const struct ws_config_word *w, char *buf, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; w[i].word && n < size; i++) {
        const char *between = w[i + 1].word ? ", " : " or ";
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? between : "", w[i].word);
    }
    return buf;
}

/* ---- what is right for single keys ---- */

static const char *anything(const char *text)
{
    (void)text;
    return NULL;
}

static const char *endpoint_wrong(const char *e)
{
    char path[256];
    if (!strncmp(e, "tcp://", 6))
        return strrchr(e + 6, ':') ? NULL : "use tcp://ADDRESS:PORT";
    int r = ws_handoff_path(e, path, sizeof(path));
    if (r == -ENAMETOOLONG)
        return "the path is too long: use at most 102 bytes";
    return r ? "use ipc:///PATH or tcp://ADDRESS:PORT" : NULL;
}

static const char *gpu_wrong(const char *name)
{
    return name[0] ? NULL : "use names of the catalog, like \"rtx3070\"";
}

static const char *path_wrong(const char *p)
{
    return p[0] ? NULL : "use the path of a file or a directory";
}

static const char *metrics_wrong(const char *v)
{
    const char *colon = strrchr(v, ':');
    char *end;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    bool ok = colon && colon > v && isdigit((unsigned char)colon[1]) && !*end && port <= 65535;
    return ok ? NULL : "use ADDRESS:PORT, like \"127.0.0.1:9464\"";
}

/* Whether the daemon could write there; nothing is made. */
static const char *log_path_wrong(const char *p)
{
    char dir[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(p, '/');
    if (p[0] != '/' || strlen(p) >= sizeof(dir))
        return "use the whole path of a file";
    if (!stat(p, &st)) {
        if (!S_ISREG(st.st_mode))
            return "this is not a regular file: use another path";
        return access(p, W_OK) ? "the file cannot be written: use another path, or let the "
                                 "daemon's user write to it"
                               : NULL;
    }
    snprintf(dir, sizeof(dir), "%.*s", slash > p ? (int)(slash - p) : 1, p);
    if (!stat(dir, &st) && S_ISDIR(st.st_mode) && !access(dir, W_OK | X_OK))
        return NULL;
    return "the file cannot be made: use a directory that exists and that the daemon may write to";
}

static const char *option_wrong(const char *text)
{
    const char *eq = strchr(text, '=');
    return eq && eq != text ? NULL : "use \"name=value\", like \"theta=0.9\"";
}

static const char *program_wrong(const char *p)
{
    return p[0] == '/' || p[0] == '*' ? NULL : "use a whole path, like \"/opt/cam/*\"";
}

static const char *variable_wrong(const char *p)
{
    size_t n = strcspn(p, "=");
    bool ok = n && n < WS_TASK_NAME_BYTES && !isdigit((unsigned char)p[0]);
    for (size_t i = 0; ok && i < n; i++)
        ok = isalnum((unsigned char)p[i]) || p[i] == '_';
    return ok ? NULL : "use \"NAME=PATTERN\", or \"NAME\" for any value";
}

static const char *user_wrong(const char *name)
{
    uint32_t uid;
    return ws_access_uid(name, &uid)
               ? NULL
               : "there is no such user: use a name of this machine, or a number";
}

/* ---- the table ---- */

#define STRUCT_top    struct ws_config
#define STRUCT_limits struct ws_limits
#define STRUCT_user   struct ws_user_limits
#define STRUCT_task   struct ws_task_rule
#define IS_top        WS_CONFIG_TOP
#define IS_limits     WS_CONFIG_LIMITS
#define IS_user       WS_CONFIG_USER
#define IS_task       WS_CONFIG_TASK

#define NUMBER(lo, hi, of)    .kind = WS_CONFIG_NUMBER, .min = lo, .max = hi, .unit = of
#define REAL(lo, hi, of)      .kind = WS_CONFIG_REAL, .real_min = lo, .real_max = hi, .unit = of
#define BOOLEAN               .kind = WS_CONFIG_BOOLEAN
#define MODE                  .kind = WS_CONFIG_MODE
#define WORD(list)            .kind = WS_CONFIG_WORD, .words = list
#define POLICY                .kind = WS_CONFIG_POLICY
#define TEXT(check)           .kind = WS_CONFIG_TEXT, .wrong = check
#define NAME(of)              .kind = WS_CONFIG_NAME, .what = of
#define SM_SET                .kind = WS_CONFIG_SM_SET
#define LIST(most, check)     .kind = WS_CONFIG_LIST, .n_max = most, .wrong = check
#define PATTERNS(most, check) .kind = WS_CONFIG_PATTERNS, .n_max = most, .wrong = check
#define USERS(most, check)    .kind = WS_CONFIG_USERS, .n_max = most, .wrong = check
#define SAME                  NULL
#define AT_ONCE               WS_CONFIG_AT_ONCE
#define NEW_CLIENTS           WS_CONFIG_NEW_CLIENTS
#define NEXT_START            WS_CONFIG_NEXT_START

#define SECTION(...)
#define GROUP(...)
#define KEY(of, called, field, spec, default_, example_, reload_, text)                            \
    {.section = IS_##of,                                                                           \
     .name = #called,                                                                              \
     .offset = offsetof(STRUCT_##of, field),                                                       \
     .size = sizeof((STRUCT_##of *)0)->field,                                                      \
     spec,                                                                                         \
     .def = default_,                                                                              \
     .example = example_,                                                                          \
     .reload = reload_},
static const struct ws_config_key keys[] = {
#include "backend/process/config_keys.def"
};

const struct ws_config_key *ws_config_keys(size_t *ret_n)
{
    *ret_n = WS_ARRAY_SIZE(keys);
    return keys;
}

const struct ws_config_key *ws_config_key_find(enum ws_config_section section, const char *name)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++)
        if (keys[i].section == section && !strcmp(keys[i].name, name))
            return &keys[i];
    return NULL;
}

const char *ws_config_section_name(enum ws_config_section section)
{
    static const char *const names[] = {
        [WS_CONFIG_TOP] = "",
        [WS_CONFIG_LIMITS] = "limits",
        [WS_CONFIG_USER] = "user",
        [WS_CONFIG_TASK] = "task",
    };
    return names[section];
}

/* ---- checks: each returns true, or false after cfg_error() ---- */

static bool number_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    long v = cfg_opt_getnint(opt, 0);
    if (v >= k->min && v <= k->max)
        return true;
    cfg_error(cfg, "%s = %ld is out of range: use %" PRId64 " to %" PRId64 "%s%s", k->name, v,
              k->min, k->max, k->unit[0] ? " " : "", k->unit);
    return false;
}

static bool real_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    double v = cfg_opt_getnfloat(opt, 0);
    if (v > 0 && v >= k->real_min && v <= k->real_max)
        return true;
    const char *blank = k->unit[0] ? " " : "";
    if (k->real_min > 0)
        cfg_error(cfg, "%s = %g is out of range: use %g to %.0f%s%s", k->name, v, k->real_min,
                  k->real_max, blank, k->unit);
    else
        cfg_error(cfg, "%s = %g is out of range: use more than 0 and at most %.0f%s%s", k->name, v,
                  k->real_max, blank, k->unit);
    return false;
}

static bool mode_parse(const char *text, uint32_t *ret)
{
    char *end;
    unsigned long v = strtoul(text, &end, 8);
    if (!text[0] || *end || v > 0777)
        return false;
    *ret = (uint32_t)v;
    return true;
}

/* The text that was read last, of a list its last one. */
static const char *text_of(cfg_opt_t *opt)
{
    unsigned n = cfg_opt_size(opt);
    const char *v = n ? cfg_opt_getnstr(opt, n - 1) : NULL;
    return v ? v : "";
}

static bool mode_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    uint32_t mode;
    if (mode_parse(text_of(opt), &mode))
        return true;
    cfg_error(cfg, "%s = \"%s\" is not a file mode: use octal digits, like \"0660\"", k->name,
              text_of(opt));
    return false;
}

static bool word_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    char list[512];
    if (ws_config_word_find(k->words, text_of(opt)))
        return true;
    cfg_error(cfg, "%s = \"%s\" is not known: use %s", k->name, text_of(opt),
              ws_config_words_text(k->words, list, sizeof(list)));
    return false;
}

static bool policy_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    char names[512] = "none";
    size_t n_all, n = strlen(names);
    const char *v = text_of(opt);
    const struct ws_policy_ops *const *all = ws_policy_all(&n_all);
    if (!strcmp(v, "none") || ws_policy_find(v))
        return true;
    for (size_t i = 0; i < n_all && n < sizeof(names); i++)
        n += (size_t)snprintf(names + n, sizeof(names) - n, ", %s", all[i]->name);
    cfg_error(cfg, "%s = \"%s\" is not known; there are: %s", k->name, v, names);
    return false;
}

static bool text_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = text_of(opt), *right = v[0] ? k->wrong(v) : NULL;
    if (right)
        cfg_error(cfg, "%s = \"%s\" is wrong: %s", k->name, v, right);
    return !right;
}

static bool name_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = text_of(opt);
    if (v[0] && strlen(v) < k->size)
        return true;
    cfg_error(cfg, "%s = \"%s\" is wrong: use a name of 1 to %zu characters%s", k->name, v,
              k->size - 1, k->what);
    return false;
}

static bool sm_set_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    struct ws_sm_set s;
    if (ws_sm_set_parse(text_of(opt), &s))
        return true;
    cfg_error(cfg,
              "%s = \"%s\" is no list of SMs: use numbers from 0 to %d and ranges, like \"0-3,7\"",
              k->name, text_of(opt), WS_SM_MAX - 1);
    return false;
}

static bool list_ok(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    if (cfg_opt_size(opt) > k->n_max) {
        cfg_error(cfg, "%s has more than %zu entries: use at most that many", k->name, k->n_max);
        return false;
    }
    const char *right = cfg_opt_size(opt) ? k->wrong(text_of(opt)) : NULL;
    if (right)
        cfg_error(cfg, "%s: \"%s\" is wrong: %s", k->name, text_of(opt), right);
    return !right;
}

/* ---- storing: each is called for a key that has a value; returns 0 or -ENOMEM ---- */

static int number_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    long v = cfg_getint(cfg, k->name);
    if (k->size == sizeof(uint32_t))
        *(uint32_t *)field = (uint32_t)v;
    else
        *(uint64_t *)field = (uint64_t)v;
    return 0;
}

static int real_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    *(double *)field = cfg_getfloat(cfg, k->name);
    return 0;
}

static int boolean_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    *(bool *)field = cfg_getbool(cfg, k->name);
    return 0;
}

static int mode_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    (void)mode_parse(cfg_getstr(cfg, k->name), field);
    return 0;
}

static int word_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    memcpy(field, ws_config_word_find(k->words, cfg_getstr(cfg, k->name))->value, k->size);
    return 0;
}

static int policy_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    const char *v = cfg_getstr(cfg, k->name);
    return ws_config_text_set(field, strcmp(v, "none") ? v : "");
}

static int text_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    return ws_config_text_set(field, cfg_getstr(cfg, k->name));
}

static int name_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    snprintf(field, k->size, "%s", cfg_getstr(cfg, k->name));
    return 0;
}

static int sm_set_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    const char *v = cfg_getstr(cfg, k->name);
    if (v[0])
        (void)ws_sm_set_parse(v, field);
    return 0;
}

static int list_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    const char *v[WS_MAX_GPUS_CONFIGURED + 1];
    unsigned n = cfg_size(cfg, k->name);
    for (unsigned i = 0; i < n; i++)
        v[i] = cfg_getnstr(cfg, k->name, i);
    return ws_config_list_set(field, k->n_max, v, n);
}

static int patterns_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    unsigned n = cfg_size(cfg, k->name);
    char **v = ws_alloc_array(n + 1, sizeof(*v));
    *(char ***)field = v;
    for (unsigned i = 0; v && i < n; i++)
        if (!(v[i] = ws_strdup(cfg_getnstr(cfg, k->name, i))))
            return ws_raise(-ENOMEM);
    return v ? 0 : ws_raise(-ENOMEM);
}

static int users_take(const struct ws_config_key *k, void *field, cfg_t *cfg)
{
    struct ws_task_rule *r = WS_CONTAINER_OF(field, struct ws_task_rule, uids);
    unsigned n = cfg_size(cfg, k->name);
    if (!(r->uids = ws_alloc_array(n, sizeof(*r->uids))))
        return ws_raise(-ENOMEM);
    for (; r->n_uids < n; r->n_uids++)
        (void)ws_access_uid(cfg_getnstr(cfg, k->name, (unsigned)r->n_uids), &r->uids[r->n_uids]);
    return 0;
}

static const struct key_kind {
    cfg_type_t type;
    bool (*ok)(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt); /* NULL: all are */
    int (*take)(const struct ws_config_key *k, void *field, cfg_t *cfg);
} kinds[] = {
    [WS_CONFIG_NUMBER] = {CFGT_INT, number_ok, number_take},
    [WS_CONFIG_REAL] = {CFGT_FLOAT, real_ok, real_take},
    [WS_CONFIG_BOOLEAN] = {CFGT_BOOL, NULL, boolean_take},
    [WS_CONFIG_MODE] = {CFGT_STR, mode_ok, mode_take},
    [WS_CONFIG_WORD] = {CFGT_STR, word_ok, word_take},
    [WS_CONFIG_POLICY] = {CFGT_STR, policy_ok, policy_take},
    [WS_CONFIG_TEXT] = {CFGT_STR, text_ok, text_take},
    [WS_CONFIG_NAME] = {CFGT_STR, name_ok, name_take},
    [WS_CONFIG_SM_SET] = {CFGT_STR, sm_set_ok, sm_set_take},
    [WS_CONFIG_LIST] = {CFGT_STR, list_ok, list_take},
    [WS_CONFIG_PATTERNS] = {CFGT_STR, list_ok, patterns_take},
    [WS_CONFIG_USERS] = {CFGT_STR, list_ok, users_take},
};

bool ws_config_key_check(const struct ws_config_key *k, cfg_t *cfg, cfg_opt_t *opt)
{
    return !kinds[k->kind].ok || kinds[k->kind].ok(k, cfg, opt);
}

int ws_config_key_take(const struct ws_config_key *k, void *to, cfg_t *cfg)
{
    return cfg_size(cfg, k->name) ? kinds[k->kind].take(k, (char *)to + k->offset, cfg) : 0;
}

/* ---- for libconfuse ---- */

static void set_default(cfg_opt_t *opt, const struct ws_config_key *k)
{
    switch (kinds[k->kind].type) {
    case CFGT_INT:
        opt->def.number = strtol(k->def, NULL, 10);
        break;
    case CFGT_FLOAT:
        opt->def.fpnumber = strtod(k->def, NULL);
        break;
    case CFGT_BOOL:
        opt->def.boolean = !strcmp(k->def, "true") ? cfg_true : cfg_false;
        break;
    default:
        opt->def.parsed = (char *)k->def;
    }
}

size_t ws_config_key_opts(enum ws_config_section section, bool with_defaults,
                          cfg_opt_t ret[WS_CONFIG_N_KEYS + 1])
{
    size_t n = 0;
    memset(ret, 0, (WS_CONFIG_N_KEYS + 1) * sizeof(*ret));
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++) {
        const struct ws_config_key *k = &keys[i];
        if (k->section != section)
            continue;
        ret[n].name = k->name;
        ret[n].type = kinds[k->kind].type;
        ret[n].flags = k->n_max ? CFGF_LIST : CFGF_NONE;
        /* An empty text or list is what the struct has anyhow. */
        if (with_defaults && strcmp(k->def, "\"\"") && strcmp(k->def, "{}"))
            set_default(&ret[n], k);
        else
            ret[n].flags |= CFGF_NODEFAULT;
        n++;
    }
    return n;
}

/* ---- values ---- */

static void list_clear(char **list)
{
    for (; *list; list++) {
        free(*list);
        *list = NULL;
    }
}

int ws_config_text_set(char **field, const char *text)
{
    char *copy = text[0] ? ws_strdup(text) : NULL;
    if (text[0] && !copy)
        return ws_raise(-ENOMEM);
    free(*field);
    *field = copy;
    return 0;
}

int ws_config_list_set(char **list, size_t max, const char *const *v, size_t n)
{
    char *copy[WS_MAX_GPUS_CONFIGURED + 1] = {NULL};
    if (n > max || n > WS_MAX_GPUS_CONFIGURED)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!(copy[i] = ws_strdup(v[i]))) {
            list_clear(copy);
            return ws_raise(-ENOMEM);
        }
    list_clear(list);
    memcpy(list, copy, (n + 1) * sizeof(*list));
    return 0;
}

static bool is_text(const struct ws_config_key *k)
{
    return k->kind == WS_CONFIG_TEXT || k->kind == WS_CONFIG_POLICY;
}

static bool texts_same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool lists_same(char *const *a, char *const *b)
{
    for (; *a && *b; a++, b++)
        if (strcmp(*a, *b))
            return false;
    return !*a && !*b;
}

bool ws_config_key_same(const struct ws_config_key *k, const void *a, const void *b)
{
    const char *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;
    if (is_text(k))
        return texts_same(*(char *const *)x, *(char *const *)y);
    if (k->kind == WS_CONFIG_LIST)
        return lists_same((char *const *)x, (char *const *)y);
    return !memcmp(x, y, k->size);
}

void ws_config_key_swap(const struct ws_config_key *k, void *a, void *b)
{
    char *x = (char *)a + k->offset, *y = (char *)b + k->offset;
    for (size_t i = 0; i < k->size; i++) {
        char t = x[i];
        x[i] = y[i];
        y[i] = t;
    }
}

void ws_config_key_free(const struct ws_config_key *k, void *of)
{
    void *field = (char *)of + k->offset;
    if (is_text(k)) {
        free(*(char **)field);
        *(char **)field = NULL;
    } else if (k->kind == WS_CONFIG_LIST) {
        list_clear(field);
    }
}
