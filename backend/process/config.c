// SPDX-License-Identifier: Apache-2.0
/* Reading wattshared.conf, and what the command line sets. The keys stand in config_keys.def;
 * config_key.c checks and stores one value.
 *
 * libconfuse calls back for each value while it still knows the line, and the callback checks the
 * value. What is right is stored after the whole file has been read without an error: a wrong
 * file changes nothing. */
#include "backend/process/config.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/process/config_key.h"
#include "backend/process/config_task.h"
#include "backend/process/paths.h"
#include "base/alloc.h"
#include "base/conf.h"
#include "base/error.h"
#include "base/file.h"
#include "policy/policy.h"

/* ---- while a file is read ---- */

/* The file that is being read: libconfuse hands its callbacks the parser only. */
static _Thread_local struct {
    struct ws_diags *diags;
    const char *path; /* libconfuse does not know it in sections that exist from the start */
    bool failed;
    uint32_t lines[WS_CONFIG_N_KEYS]; /* of the key's last value; 0: it has none */
} reading;

static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    char text[768];
    const char *hint = "";
    vsnprintf(text, sizeof(text), fmt, ap);
    if (strstr(text, "no such option"))
        hint = " (wattshared.conf(5) lists the keys)";
    else if (strstr(text, "duplicate title"))
        hint = ": each section needs a name of its own";
    ws_diags_add(reading.diags, reading.path, cfg && cfg->line > 0 ? (uint32_t)cfg->line : 0, 0,
                 "%s%s", text, hint);
    reading.failed = true;
}

static const struct ws_config_key *key_of(const cfg_t *cfg, const char *name)
{
    static const enum ws_config_section sections[] = {WS_CONFIG_LIMITS, WS_CONFIG_USER,
                                                      WS_CONFIG_TASK};
    for (size_t i = 0; i < WS_ARRAY_SIZE(sections); i++)
        if (!strcmp(cfg->name, ws_config_section_name(sections[i])))
            return ws_config_key_find(sections[i], name);
    return ws_config_key_find(WS_CONFIG_TOP, name);
}

static int on_value(cfg_t *cfg, cfg_opt_t *opt)
{
    size_t n;
    const struct ws_config_key *k = key_of(cfg, opt->name);
    reading.lines[k - ws_config_keys(&n)] = (uint32_t)cfg->line;
    return ws_config_key_check(k, cfg, opt) ? 0 : -1;
}

uint32_t ws_config_line(enum ws_config_section section, const char *name)
{
    size_t n;
    return reading.lines[ws_config_key_find(section, name) - ws_config_keys(&n)];
}

uint32_t ws_config_first_line(enum ws_config_section section)
{
    size_t n;
    uint32_t first = 0;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; i < n; i++)
        if (keys[i].section == section && reading.lines[i] && (!first || reading.lines[i] < first))
            first = reading.lines[i];
    return first;
}

static void forget_lines(enum ws_config_section section)
{
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; i < n; i++)
        if (keys[i].section == section)
            reading.lines[i] = 0;
}

static int on_task(cfg_t *cfg, cfg_opt_t *opt)
{
    int r = ws_config_task_add(cfg, cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1), reading.path);
    forget_lines(WS_CONFIG_TASK);
    return r;
}

static int on_user(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *name = cfg_title(cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1));
    uint32_t uid;
    if (name && (!strcmp(name, "*") || ws_access_uid(name, &uid)))
        return 0;
    cfg_error(cfg, "there is no user \"%s\": use a name or a number of this machine, or \"*\"",
              name ? name : "");
    return -1;
}

/* ---- the policy ---- */

/* Makes the policy as the options ask, to see whether it can be made. */
static int policy_try(const char *name, const char *const *options, struct ws_diags *diags)
{
    char error[256] = "";
    uint32_t options_line = ws_config_line(WS_CONFIG_TOP, "policy_options");
    const struct ws_policy_ops *ops = name ? ws_policy_find(name) : NULL;
    if (!ops) {
        if (!options[0])
            return 0;
        ws_diags_add(diags, reading.path, options_line, 0,
                     "policy_options without a policy: give policy = \"NAME\" too, or leave them "
                     "out");
        return WS_CONFIG_E_INVALID;
    }
    struct ws_policy *p = NULL;
    int r = ops->make(&p, options, error, sizeof(error));
    if (r < 0)
        return ws_raise(r);
    if (r) {
        ws_diags_add(diags, reading.path,
                     options[0] ? options_line : ws_config_line(WS_CONFIG_TOP, "policy"), 0,
                     "policy %s: %s", name, error);
        return WS_CONFIG_E_INVALID;
    }
    ops->free(p);
    return 0;
}

static int policy_check(const struct ws_config *c, cfg_t *cfg, struct ws_diags *diags)
{
    const char *options[WS_CONFIG_MAX_LIST + 1] = {NULL};
    unsigned n = cfg_size(cfg, "policy_options");
    bool named = cfg_size(cfg, "policy");
    if (!named && !n)
        return 0;
    for (unsigned i = 0; i < n; i++)
        options[i] = cfg_getnstr(cfg, "policy_options", i);
    return policy_try(named ? cfg_getstr(cfg, "policy") : c->policy, options, diags);
}

/* ---- a file ---- */

static int take_section(enum ws_config_section section, void *to, cfg_t *cfg)
{
    size_t n;
    int r = 0;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; !r && i < n; i++)
        if (keys[i].section == section)
            r = ws_config_key_take(&keys[i], to, cfg);
    return r;
}

int ws_config_take_task(struct ws_task_rule *to, cfg_t *section)
{
    return take_section(WS_CONFIG_TASK, to, section);
}

static int take_users(struct ws_config *c, cfg_t *cfg)
{
    int r = 0;
    for (unsigned i = 0; !r && i < cfg_size(cfg, "user"); i++) {
        cfg_t *u = cfg_getnsec(cfg, "user", i);
        struct ws_user_limits l = {.everybody = !strcmp(cfg_title(u), "*")};
        if (!l.everybody && !ws_access_uid(cfg_title(u), &l.uid))
            continue; /* was there when the section was checked */
        r = take_section(WS_CONFIG_USER, &l, u);
        if (!r)
            r = ws_access_add(&c->access, &l);
    }
    return r;
}

static int take(struct ws_config *c, cfg_t *cfg)
{
    int r = 0;
    /* A file that names another policy starts with that policy's default options. */
    if (cfg_size(cfg, "policy") && !cfg_size(cfg, "policy_options"))
        r = ws_config_list_set(c->policy_options, WS_CONFIG_MAX_LIST, NULL, 0);
    if (!r)
        r = take_section(WS_CONFIG_TOP, c, cfg);
    if (!r && cfg_size(cfg, "limits"))
        r = take_section(WS_CONFIG_LIMITS, &c->limits, cfg_getsec(cfg, "limits"));
    if (!r)
        r = take_users(c, cfg);
    if (!r)
        ws_config_task_take(c);
    return r;
}

enum { N_SECTIONS = 3 }; /* inside the file */

/* The grammar, in memory that must live as long as the parser. */
struct grammar {
    cfg_opt_t limits[WS_CONFIG_N_KEYS + 1], user[WS_CONFIG_N_KEYS + 1], task[WS_CONFIG_N_KEYS + 1];
    cfg_opt_t top[WS_CONFIG_N_KEYS + N_SECTIONS + 1];
};

/* @with_defaults: a key that the file leaves out has its default; else it keeps its value. */
static cfg_t *parser_new(struct grammar *g, bool with_defaults)
{
    const cfg_flag_t named = CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES;
    ws_config_key_opts(WS_CONFIG_LIMITS, with_defaults, g->limits);
    ws_config_key_opts(WS_CONFIG_USER, true, g->user);
    ws_config_key_opts(WS_CONFIG_TASK, true, g->task);
    size_t n = ws_config_key_opts(WS_CONFIG_TOP, with_defaults, g->top);
    g->top[n++] = (cfg_opt_t)CFG_SEC("limits", g->limits, CFGF_NONE);
    g->top[n++] = (cfg_opt_t)CFG_SEC("user", g->user, named);
    g->top[n++] = (cfg_opt_t)CFG_SEC("task", g->task, named);
    g->top[n] = (cfg_opt_t)CFG_END();
    return cfg_init(g->top, CFGF_NONE);
}

static void set_callbacks(cfg_t *cfg)
{
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    cfg_set_error_function(cfg, on_error);
    for (size_t i = 0; i < n; i++) {
        char name[64];
        const char *section = ws_config_section_name(keys[i].section);
        snprintf(name, sizeof(name), "%s%s%s", section, section[0] ? "|" : "", keys[i].name);
        cfg_set_validate_func(cfg, name, on_value);
    }
    cfg_set_validate_func(cfg, "user", on_user);
    cfg_set_validate_func(cfg, "task", on_task);
}

static int parse(cfg_t *cfg, FILE *f, struct ws_diags *diags)
{
    if (!ws_conf_closed(f, reading.path, diags))
        return WS_CONFIG_E_INVALID;
    if (cfg_parse_fp(cfg, f) == CFG_SUCCESS && !reading.failed)
        return 0;
    if (!reading.failed)
        ws_diags_add(diags, reading.path, 0, 0,
                     "cannot be read as a configuration file; see wattshared.conf(5)");
    return WS_CONFIG_E_INVALID;
}

int ws_config_load(struct ws_config *c, const char *path, struct ws_diags *diags)
{
    struct grammar grammar;
    FILE *f;
    int r = ws_file_open(&f, path, WS_FILE_TEXT_BYTES, NULL);
    if (r)
        return r;
    cfg_t *cfg = parser_new(&grammar, false);
    if (!cfg) {
        fclose(f);
        return ws_raise(-ENOMEM);
    }
    set_callbacks(cfg);
    memset(&reading, 0, sizeof(reading));
    reading.diags = diags;
    reading.path = path;
    r = parse(cfg, f, diags);
    if (!r)
        r = policy_check(c, cfg, diags);
    if (!r)
        r = take(c, cfg);
    ws_config_task_end();
    memset(&reading, 0, sizeof(reading));
    cfg_free(cfg);
    fclose(f);
    return r;
}

/* ---- defaults ---- */

/* A daemon that is not installed has its catalog elsewhere than the default says. */
static int find_catalog(struct ws_config *c)
{
    char *path = ws_path_catalog();
    int r = path ? ws_config_list_set(c->catalog, WS_CONFIG_MAX_LIST, (const char *const *)&path, 1)
                 : ws_raise(-ENOMEM);
    free(path);
    return r;
}

int ws_config_init(struct ws_config *c)
{
    struct grammar grammar;
    *c = (struct ws_config){0};
    cfg_t *cfg = parser_new(&grammar, true);
    if (!cfg)
        return ws_raise(-ENOMEM);
    int r = take(c, cfg);
    if (!r)
        r = find_catalog(c);
    cfg_free(cfg);
    if (r)
        ws_config_deinit(c);
    return r;
}

int ws_config_limits(struct ws_limits *ret)
{
    struct ws_config c;
    int r = ws_config_init(&c);
    if (r)
        return r;
    *ret = c.limits;
    ws_config_deinit(&c);
    return 0;
}

void ws_config_deinit(struct ws_config *c)
{
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; i < n; i++)
        if (keys[i].section == WS_CONFIG_TOP)
            ws_config_key_free(&keys[i], c);
    ws_task_rules_deinit(&c->tasks);
    ws_access_deinit(&c->access);
}

/* ---- the keys of tcp ---- */

static int curve_wrong(const struct ws_config *c, struct ws_diags *diags)
{
    unsigned line;
    struct ws_curve_keys keys;
    int r = ws_curve_read(c->curve_key, &keys, &line);
    if (r == -EINVAL)
        ws_diags_add(diags, c->curve_key, line, 0,
                     "this is not a line of a key file; `wattshare keygen` makes such a file");
    else if (r == -EPERM)
        ws_diags_add(
            diags, c->curve_key, 0, 0,
            "other users may read this secret key; make a new one with `wattshare keygen`, and "
            "let only its owner read it");
    else if (r)
        ws_diags_add(diags, c->curve_key, 0, 0, "cannot be read: %s", ws_file_why(r));
    else
        ws_diags_add(
            diags, c->curve_key, 0, 0,
            "there is no secret key in this file; `wattshare keygen` makes a file with one");
    return WS_CONFIG_E_INVALID;
}

static int read_keys(struct ws_config *c, struct ws_diags *diags)
{
    unsigned line;
    if (!c->curve_key || !c->curve_clients) {
        ws_diags_add(diags, "endpoints", 0, 0,
                     "tcp:// is open to the network: set curve_key to the daemon's key file "
                     "(`wattshare keygen` makes one) and curve_clients to the list of allowed "
                     "keys, lines of USER KEY");
        return WS_CONFIG_E_INVALID;
    }
    if (ws_curve_read(c->curve_key, &c->curve, &line) || !c->curve.secret_key[0])
        return curve_wrong(c, diags);
    int r = ws_access_load(&c->access, c->curve_clients, diags);
    if (r < 0)
        ws_diags_add(diags, c->curve_clients, 0, 0, "cannot be read: %s", ws_file_why(r));
    return r ? WS_CONFIG_E_INVALID : 0;
}

static int find_admin_group(struct ws_config *c, struct ws_diags *diags)
{
    const struct group *g = c->admin_group ? getgrnam(c->admin_group) : NULL;
    c->has_admin_group = g;
    c->admin_gid = g ? g->gr_gid : 0;
    if (g || !c->admin_group)
        return 0;
    ws_diags_add(diags, "admin_group", 0, 0,
                 "the group \"%s\" does not exist; make it (groupadd --system %s) or name another",
                 c->admin_group, c->admin_group);
    return WS_CONFIG_E_INVALID;
}

static int read_subordinates(struct ws_config *c, struct ws_diags *diags)
{
    const char *path = c->subordinate_uids;
    int r = path ? ws_access_load_subordinates(&c->access, path) : 0;
    if (!r || r == -ENOENT) /* not every machine has such a list */
        return 0;
    ws_diags_add(diags, path, 0, 0, "cannot be read: %s", ws_file_why(r));
    return WS_CONFIG_E_INVALID;
}

int ws_config_finish(struct ws_config *c, struct ws_diags *diags)
{
    int r = find_admin_group(c, diags);
    if (!r)
        r = read_subordinates(c, diags);
    if (r)
        return r;
    for (char *const *e = c->endpoints; *e; e++)
        if (!strncmp(*e, "tcp://", 6))
            return read_keys(c, diags);
    return 0;
}

/* ---- the command line ---- */

/* What would be right instead of @text, or NULL. */
static const char *wrong(const char *name, const char *text)
{
    return ws_config_key_find(WS_CONFIG_TOP, name)->wrong(text);
}

/* Cuts @text at commas and blanks. Return: false: more than @max words. */
static bool split(char *text, const char **v, size_t max, size_t *ret_n)
{
    char *save = NULL;
    *ret_n = 0;
    for (char *w = strtok_r(text, ", ", &save); w; w = strtok_r(NULL, ", ", &save)) {
        if (*ret_n == max)
            return false;
        v[(*ret_n)++] = w;
    }
    return true;
}

int ws_config_set_gpus(struct ws_config *c, const char *text, struct ws_diags *diags)
{
    const char *v[WS_MAX_GPUS_CONFIGURED];
    char *copy = ws_strdup(text);
    size_t n;
    if (!copy)
        return ws_raise(-ENOMEM);
    int r = split(copy, v, WS_MAX_GPUS_CONFIGURED, &n) && n ? 0 : WS_CONFIG_E_INVALID;
    if (r)
        ws_diags_add(diags, "--gpus", 0, 0,
                     "\"%s\" is wrong: use 1 to %d catalog names, like rtx3070,t400", text,
                     WS_MAX_GPUS_CONFIGURED);
    else
        r = ws_config_list_set(c->gpus, WS_MAX_GPUS_CONFIGURED, v, n);
    free(copy);
    return r;
}

int ws_config_set_endpoints(struct ws_config *c, const char *text, struct ws_diags *diags)
{
    const char *v[WS_CONFIG_MAX_LIST];
    char *copy = ws_strdup(text);
    size_t n;
    if (!copy)
        return ws_raise(-ENOMEM);
    int r = split(copy, v, WS_CONFIG_MAX_LIST, &n) && n ? 0 : WS_CONFIG_E_INVALID;
    if (r)
        ws_diags_add(diags, "--socket", 0, 0, "\"%s\" is wrong: use 1 to %d endpoints", text,
                     WS_CONFIG_MAX_LIST);
    for (size_t i = 0; !r && i < n; i++) {
        const char *right = wrong("endpoints", v[i]);
        if (right) {
            ws_diags_add(diags, "--socket", 0, 0, "\"%s\" is wrong: %s", v[i], right);
            r = WS_CONFIG_E_INVALID;
        }
    }
    if (!r)
        r = ws_config_list_set(c->endpoints, WS_CONFIG_MAX_LIST, v, n);
    free(copy);
    return r;
}

int ws_config_set_metrics(struct ws_config *c, const char *text, struct ws_diags *diags)
{
    const char *right = text[0] ? wrong("metrics", text) : NULL;
    if (right) {
        ws_diags_add(diags, "--metrics", 0, 0, "\"%s\" is wrong: %s", text, right);
        return WS_CONFIG_E_INVALID;
    }
    return ws_config_text_set(&c->metrics, text);
}

int ws_config_set_catalog(struct ws_config *c, const char *path, struct ws_diags *diags)
{
    if (path[0])
        return ws_config_list_set(c->catalog, WS_CONFIG_MAX_LIST, &path, 1);
    ws_diags_add(diags, "--catalog", 0, 0, "is empty: %s", wrong("catalog", path));
    return WS_CONFIG_E_INVALID;
}

static int set_word(struct ws_config *c, const char *name, const char *option, const char *word,
                    struct ws_diags *diags)
{
    char list[128];
    const struct ws_config_key *k = ws_config_key_find(WS_CONFIG_TOP, name);
    const struct ws_config_word *w = ws_config_word_find(k->words, word);
    if (!w) {
        ws_diags_add(diags, option, 0, 0, "\"%s\" is not known: use %s", word,
                     ws_config_words_text(k->words, list, sizeof(list)));
        return WS_CONFIG_E_INVALID;
    }
    memcpy((char *)c + k->offset, w->value, k->size);
    return 0;
}

int ws_config_set_clock(struct ws_config *c, const char *word, struct ws_diags *diags)
{
    return set_word(c, "clock", "--clock", word, diags);
}

int ws_config_set_profiles(struct ws_config *c, const char *path, struct ws_diags *diags)
{
    if (path[0]) {
        c->learn = true; /* else there is nothing to keep */
        return ws_config_text_set(&c->profiles, path);
    }
    ws_diags_add(diags, "--profiles", 0, 0, "is empty: %s", wrong("catalog", path));
    return WS_CONFIG_E_INVALID;
}

int ws_config_set_log_level(struct ws_config *c, const char *word, struct ws_diags *diags)
{
    return set_word(c, "log_level", "--log-level", word, diags);
}
