// SPDX-License-Identifier: Apache-2.0
/* Configuration. The table `numbers` is the one list of numeric keys: grammar and ranges come from it; to add one, add a row, a
 * field with its default, and a paragraph in man/wattshared.conf.5.scd. libconfuse calls back for each value while it still
 * knows its line; the callbacks check, and what is found right is copied once the whole file is. */
#include "backend/process/config.h"

#include <confuse.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/process/config_task.h"
#include "backend/process/paths.h"
#include "base/alloc.h"
#include "base/conf.h"
#include "base/error.h"
#include "policy/policy.h"
#include "protocol/protocol.h"
#include "protocol/handoff.h"

struct number {
    const char *name;
    size_t offset;
    uint8_t bytes;
    int64_t min, max;
    bool in_limits;
};
#define TOP(name, field, min, max)                                                                 \
    {                                                                                              \
        name, offsetof(struct ws_config, field), sizeof((struct ws_config *)0)->field, min, max,   \
            false                                                                                  \
    }
#define LIMIT(name, field, min, max)                                                               \
    {                                                                                              \
        name, offsetof(struct ws_config, limits.field),                                            \
            sizeof((struct ws_config *)0)->limits.field, min, max, true                            \
    }

static const struct number numbers[] = {
    TOP("time_scale", time_scale, 1, 10000),
    TOP("workers", n_workers, 0, 1024),
    TOP("loaders", n_loaders, 0, 8),
    TOP("energy_log_ms", energy_log_ms, 10, 3600000),
    TOP("drain_timeout_s", drain_timeout_s, 0, 3600),
    TOP("slots", n_slots, 1, 64),
    TOP("gate_lease_ms", gate_lease_ms, 1, 3600000),
    TOP("heartbeat_s", heartbeat_s, 1, 3600),
    TOP("cancel_timeout_s", cancel_timeout_s, 0, 86400),
    TOP("max_kernel_insns", max_kernel_insns, 0, INT64_MAX),
    LIMIT("max_clients", max_clients, 1, 100000),
    LIMIT("max_message_bytes", max_message_bytes, 65536, 1 << 30),
    LIMIT("max_commands", max_commands, 1, 1 << 20),
    LIMIT("max_outstanding", max_outstanding, 16, 1 << 20),
    LIMIT("max_inline_bytes", max_inline_bytes, 0, 1 << 20),
    LIMIT("max_param_bytes", max_param_bytes, 256, 32764),
    LIMIT("max_streams", max_streams, 1, 1 << 20),
    LIMIT("max_events", max_events, 1, 1 << 24),
    LIMIT("max_image_bytes", max_image_bytes, 1024, INT64_C(1) << 32),
    LIMIT("max_segment_bytes", max_segment_bytes, 4096, INT64_C(1) << 44),
    LIMIT("memory_quota_bytes", memory_quota_bytes, 0, INT64_C(1) << 44),
    LIMIT("max_unread_bytes", max_unread_bytes, 4096, INT64_C(1) << 32),
    LIMIT("cache_bytes", cache_bytes, 0, INT64_C(1) << 40),
};

const struct ws_limits ws_limits_default = {
    .max_clients = 1024,
    .max_message_bytes = 4 << 20,
    .max_commands = 4096,
    .max_outstanding = 8192,
    .max_inline_bytes = 16 << 10,
    .max_param_bytes = 32764, /* what CUDA allows */
    .max_streams = 4096,
    .max_events = 65536,
    .max_image_bytes = 1 << 30,
    .max_segment_bytes = UINT64_C(64) << 30,
    .memory_quota_bytes = 0,
    .max_unread_bytes = 16 << 20,
    .cache_bytes = 256 << 20,
};

struct word {
    const char *word;
    int value;
};
static const struct word clocks[] = {
    {"functional", WS_CLOCK_FUNCTIONAL}, {"scaled", WS_CLOCK_SCALED}, {"skip", WS_CLOCK_SKIP}, {0}};
static const struct word placements[] = {
    {"spread", WS_PLACE_SPREAD}, {"fixed", WS_PLACE_FIXED}, {0}};
enum { FENCE = 16, FUSE = 32, SAME_BLOCK = 64, WHOLE = 128 };
static const struct word rewrites[] = {{"none", WS_REWRITE_NONE},
                                       {"slice", WS_REWRITE_SLICE},
                                       {"ticket", WS_REWRITE_TICKET},
                                       {"persistent", WS_REWRITE_PERSISTENT},
                                       {"fence", FENCE | WS_REWRITE_NONE},
                                       {"fence-slice", FENCE | WS_REWRITE_SLICE},
                                       {"fence-ticket", FENCE | WS_REWRITE_TICKET},
                                       {"fence-persistent", FENCE | WS_REWRITE_PERSISTENT},
                                       {"fuse", FUSE},
                                       {"fuse-same-block", FUSE | SAME_BLOCK},
                                       {"slice-whole", WHOLE | WS_REWRITE_SLICE},
                                       {"ticket-whole", WHOLE | WS_REWRITE_TICKET},
                                       {"persistent-whole", WHOLE | WS_REWRITE_PERSISTENT},
                                       {"fence-ticket-whole", WHOLE | FENCE | WS_REWRITE_TICKET},
                                       {0}};
static const struct word isolations[] = {{"fence", 0}, {"none", 1}, {0}};
static const struct word answers[] = {{"no", 0}, {"yes", 1}, {0}};
static const struct word switches[] = {{"off", 0}, {"on", 1}, {0}};
static const struct word log_levels[] = {
    {"error", WS_ERROR}, {"warning", WS_WARN}, {"info", WS_INFO}, {"debug", WS_DEBUG}, {0}};

static const struct word *word_find(const struct word *w, const char *text)
{
    for (; text && w->word; w++)
        if (!strcmp(w->word, text))
            return w;
    return NULL;
}

static const char *word_list(const struct word *w, char *buf, size_t size)
{
    size_t n = 0;
    for (const struct word *first = w; w->word && n < size; w++)
        n += snprintf(buf + n, size - n, "%s%s",
                      w == first  ? ""
                      : w[1].word ? ", "
                                  : " or ",
                      w->word);
    return buf;
}

/* ---- lists ---- */

static void list_clear(char **list)
{
    for (; *list; list++) {
        free(*list);
        *list = NULL;
    }
}

static int list_set(char **list, size_t max, const char *const *v, size_t n)
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
    memcpy(list, copy, (n + 1) * sizeof *list);
    return 0;
}

/* ---- checks, shared by file and command line; NULL: right; else what would be ---- */

static const char *endpoint_wrong(const char *e)
{
    char path[256];
    if (!strncmp(e, "tcp://", 6))
        return strrchr(e + 6, ':') ? NULL : "use tcp://ADDRESS:PORT";
    int r = ws_handoff_path(e, path, sizeof path);
    return r == -ENAMETOOLONG ? "the path is too long: at most 102 bytes"
           : r                ? "use ipc:///PATH or tcp://ADDRESS:PORT"
                              : NULL;
}

static const char *gpu_wrong(const char *name)
{
    return name[0] ? NULL : "use names of the catalog, like \"rtx3070\"";
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

/* ---- the file ---- */

/* libconfuse hands its callbacks the parser only, and they need the diagnostics. */
static _Thread_local struct ws_diags *cb_diags;
static _Thread_local bool cb_failed;
static _Thread_local const char *cb_path; /* a section that is there from the start knows no file */

static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    char text[768];
    vsnprintf(text, sizeof text, fmt, ap);
    const char *hint = strstr(text, "no such option")    ? " (the keys stand in wattshared.conf(5))"
                       : strstr(text, "duplicate title") ? ": each task has a name of its own"
                                                         : "";
    ws_diags_add(cb_diags, cb_path, cfg && cfg->line > 0 ? (uint32_t)cfg->line : 0, 0, "%s%s", text,
                 hint);
    cb_failed = true;
}

static int on_number(cfg_t *cfg, cfg_opt_t *opt)
{
    long v = cfg_opt_getnint(opt, 0);
    for (size_t i = 0; i < WS_ARRAY_SIZE(numbers); i++)
        if (!strcmp(opt->name, numbers[i].name) && (v < numbers[i].min || v > numbers[i].max)) {
            cfg_error(cfg, "%s = %ld is out of range: use %" PRId64 " to %" PRId64, opt->name, v,
                      numbers[i].min, numbers[i].max);
            return -1;
        }
    return 0;
}

static int word_check(cfg_t *cfg, cfg_opt_t *opt, const struct word *words)
{
    char list[128];
    const char *v = cfg_opt_getnstr(opt, 0);
    if (word_find(words, v))
        return 0;
    cfg_error(cfg, "%s = \"%s\" is not known: use %s", opt->name, v ? v : "",
              word_list(words, list, sizeof list));
    return -1;
}

static int on_clock(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, clocks);
}

static int on_rewrite(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, rewrites);
}

static int on_isolation(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, isolations);
}

static int on_gpu_worker(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, answers);
}

static int on_learn(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, switches);
}

static int on_placement(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, placements);
}

static int on_log_level(cfg_t *cfg, cfg_opt_t *opt)
{
    return word_check(cfg, opt, log_levels);
}

static int on_mode(cfg_t *cfg, cfg_opt_t *opt)
{
    uint32_t mode;
    const char *v = cfg_opt_getnstr(opt, 0);
    if (v && mode_parse(v, &mode))
        return 0;
    cfg_error(cfg, "%s = \"%s\" is no file mode: use octal digits, like \"0660\"", opt->name,
              v ? v : "");
    return -1;
}

static int list_check(cfg_t *cfg, cfg_opt_t *opt, size_t max, const char *(*wrong)(const char *))
{
    unsigned n = cfg_opt_size(opt);
    if (n > max) {
        cfg_error(cfg, "%s has more than %zu entries", opt->name, max);
        return -1;
    }
    const char *v = n ? cfg_opt_getnstr(opt, n - 1) : NULL, *right = v ? wrong(v) : NULL;
    if (!right)
        return 0;
    cfg_error(cfg, "%s: \"%s\" is wrong: %s", opt->name, v, right);
    return -1;
}

static int on_endpoint(cfg_t *cfg, cfg_opt_t *opt)
{
    return list_check(cfg, opt, WS_CONFIG_MAX_LIST, endpoint_wrong);
}

static const char *metrics_wrong(const char *v)
{
    const char *colon = strrchr(v, ':');
    char *end;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    return colon && colon > v && colon[1] >= '0' && colon[1] <= '9' && !*end && port <= 65535
               ? NULL
               : "use ADDRESS:PORT, like \"127.0.0.1:9464\"";
}

static int text_check(cfg_t *cfg, cfg_opt_t *opt, const char *(*wrong)(const char *))
{
    const char *v = cfg_opt_getnstr(opt, 0), *right = v && v[0] ? wrong(v) : NULL;
    if (!right)
        return 0;
    cfg_error(cfg, "%s: \"%s\" is wrong: %s", opt->name, v, right);
    return -1;
}

static int on_metrics(cfg_t *cfg, cfg_opt_t *opt)
{
    return text_check(cfg, opt, metrics_wrong);
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

static int on_user_number(cfg_t *cfg, cfg_opt_t *opt)
{
    static const struct {
        const char *name;
        long min, max;
    } keys[] = {{"max_clients", 0, 100000}, {"memory_bytes", 0, 1L << 44}, {"share", 1, 10000}};
    long v = cfg_opt_getnint(opt, 0);
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++)
        if (!strcmp(opt->name, keys[i].name) && (v < keys[i].min || v > keys[i].max)) {
            cfg_error(cfg, "%s = %ld is out of range: use %ld to %ld", opt->name, v, keys[i].min,
                      keys[i].max);
            return -1;
        }
    return 0;
}

static int on_gpus(cfg_t *cfg, cfg_opt_t *opt)
{
    return list_check(cfg, opt, WS_MAX_GPUS_CONFIGURED, gpu_wrong);
}

static const char *path_wrong(const char *p)
{
    return p[0] ? NULL : "use the path of a file or a directory";
}

static int on_catalog(cfg_t *cfg, cfg_opt_t *opt)
{
    return list_check(cfg, opt, WS_CONFIG_MAX_LIST, path_wrong);
}

/* ---- the log of energy ---- */

/* Whether we could write there, without making anything. */
static const char *log_path_wrong(const char *p)
{
    char dir[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(p, '/');
    if (p[0] != '/' || strlen(p) >= sizeof dir)
        return "use the whole path of a file";
    if (!stat(p, &st))
        return !S_ISREG(st.st_mode) ? "it is no file: use another path"
               : access(p, W_OK) ? "it may not be written: use another path, or let the daemon's "
                                   "user write there"
                                 : NULL;
    snprintf(dir, sizeof dir, "%.*s", slash > p ? (int)(slash - p) : 1, p);
    if (!stat(dir, &st) && S_ISDIR(st.st_mode) && !access(dir, W_OK | X_OK))
        return NULL;
    return "it can't be made: use one in a directory that is there and that the daemon may write";
}

static int on_energy_log(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0), *right = v ? log_path_wrong(v) : "use a path";
    if (!right)
        return 0;
    cfg_error(cfg, "energy_log = \"%s\" is wrong: %s", v ? v : "", right);
    return -1;
}

/* ---- the policy ---- */

static _Thread_local uint32_t cb_policy_line, cb_options_line;

static int on_policy(cfg_t *cfg, cfg_opt_t *opt)
{
    char names[512] = "none";
    size_t n_all, n = strlen(names);
    const char *v = cfg_opt_getnstr(opt, 0);
    const struct ws_policy_ops *const *all = ws_policy_all(&n_all);
    cb_policy_line = (uint32_t)cfg->line;
    if (v && (!strcmp(v, "none") || ws_policy_find(v)))
        return 0;
    for (size_t i = 0; i < n_all && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, ", %s", all[i]->name);
    cfg_error(cfg, "policy = \"%s\" is not known; there are: %s", v ? v : "", names);
    return -1;
}

static const char *option_wrong(const char *text)
{
    const char *eq = strchr(text, '=');
    return eq && eq != text ? NULL : "use \"name=value\", like \"theta=0.9\"";
}

static int on_policy_options(cfg_t *cfg, cfg_opt_t *opt)
{
    cb_options_line = (uint32_t)cfg->line;
    return list_check(cfg, opt, WS_CONFIG_MAX_LIST, option_wrong);
}

/* Makes the policy as the options ask, to see whether it can be. */
static int policy_check(const char *name, const char *const *options, const char *path,
                        struct ws_diags *diags)
{
    char error[256] = "";
    const struct ws_policy_ops *ops = name ? ws_policy_find(name) : NULL;
    if (!ops) {
        if (!options[0])
            return 0;
        ws_diags_add(diags, path, cb_options_line, 0,
                     "policy_options without a policy: give policy = \"NAME\" too, or leave them "
                     "out");
        return WS_CONFIG_E_INVALID;
    }
    struct ws_policy *p = NULL;
    int r = ops->make(&p, options, error, sizeof error);
    if (r < 0)
        return ws_raise(r);
    if (r) {
        ws_diags_add(diags, path, options[0] ? cb_options_line : cb_policy_line, 0, "policy %s: %s",
                     name, error);
        return WS_CONFIG_E_INVALID;
    }
    ops->free(p);
    return 0;
}

/* Both keys together are what the policy is: a file that names another one starts with that one's default options. */
static int policy_take(struct ws_config *c, cfg_t *cfg, const char *path, struct ws_diags *diags)
{
    const char *v[WS_CONFIG_MAX_LIST + 1] = {NULL};
    const char *name = cfg_size(cfg, "policy") ? cfg_getstr(cfg, "policy") : c->policy;
    unsigned n = cfg_size(cfg, "policy_options");
    if (!cfg_size(cfg, "policy") && !n)
        return 0;
    if (name && !strcmp(name, "none"))
        name = NULL;
    for (unsigned i = 0; i < n; i++)
        v[i] = cfg_getnstr(cfg, "policy_options", i);
    int r = policy_check(name, v, path, diags);
    if (r)
        return r;
    char *copy = name ? ws_strdup(name) : NULL;
    if (name && !copy)
        return ws_raise(-ENOMEM);
    free(c->policy);
    c->policy = copy;
    return list_set(c->policy_options, WS_CONFIG_MAX_LIST, v, n);
}

static int list_take(char **list, size_t max, cfg_t *cfg, const char *name)
{
    const char *v[WS_MAX_GPUS_CONFIGURED + 1];
    unsigned n = cfg_size(cfg, name);
    if (!n)
        return 0;
    for (unsigned i = 0; i < n; i++)
        v[i] = cfg_getnstr(cfg, name, i);
    return list_set(list, max, v, n);
}

static void number_set(struct ws_config *c, const struct number *k, int64_t v)
{
    char *field = (char *)c + k->offset;
    if (k->bytes == 4)
        *(uint32_t *)field = (uint32_t)v;
    else
        *(uint64_t *)field = (uint64_t)v;
}

/* "": none */
static int text_set(char **field, const char *v)
{
    char *copy = v[0] ? ws_strdup(v) : NULL;
    if (v[0] && !copy)
        return ws_raise(-ENOMEM);
    free(*field);
    *field = copy;
    return 0;
}

static int text_take(char **field, cfg_t *cfg, const char *name)
{
    const char *v = cfg_size(cfg, name) ? cfg_getstr(cfg, name) : NULL;
    return v ? text_set(field, v) : 0;
}

static int users_take(struct ws_config *c, cfg_t *cfg)
{
    int r = 0;
    for (unsigned i = 0; !r && i < cfg_size(cfg, "user"); i++) {
        cfg_t *u = cfg_getnsec(cfg, "user", i);
        struct ws_user_limits l = {.max_clients = (uint32_t)cfg_getint(u, "max_clients"),
                                   .memory_bytes = (uint64_t)cfg_getint(u, "memory_bytes"),
                                   .share = (uint32_t)cfg_getint(u, "share"),
                                   .everybody = !strcmp(cfg_title(u), "*")};
        if (!l.everybody && !ws_access_uid(cfg_title(u), &l.uid))
            continue; /* was there when the section was checked */
        r = ws_access_add(&c->access, &l);
    }
    return r;
}

static int take(struct ws_config *c, cfg_t *cfg)
{
    cfg_t *limits = cfg_size(cfg, "limits") ? cfg_getsec(cfg, "limits") : NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(numbers); i++) {
        cfg_t *from = numbers[i].in_limits ? limits : cfg;
        if (from && cfg_size(from, numbers[i].name))
            number_set(c, &numbers[i], cfg_getint(from, numbers[i].name));
    }
    if (cfg_size(cfg, "energy_log")) {
        char *path = ws_strdup(cfg_getstr(cfg, "energy_log"));
        if (!path)
            return ws_raise(-ENOMEM);
        free(c->energy_log);
        c->energy_log = path;
    }
    if (cfg_size(cfg, "clock"))
        c->clock = (enum ws_device_clock)word_find(clocks, cfg_getstr(cfg, "clock"))->value;
    if (cfg_size(cfg, "placement"))
        c->placement =
            (enum ws_placement)word_find(placements, cfg_getstr(cfg, "placement"))->value;
    if (cfg_size(cfg, "rewrite")) {
        int v = word_find(rewrites, cfg_getstr(cfg, "rewrite"))->value;
        c->rewrite = (struct ws_rewrite_choice){.kind = (enum ws_ptx_rewrite)(v % FENCE),
                                                .fence = (v & FENCE) != 0,
                                                .fuse = (v & FUSE) != 0,
                                                .same_block = (v & SAME_BLOCK) != 0,
                                                .whole = (v & WHOLE) != 0};
    }
    if (cfg_size(cfg, "log_level"))
        c->log_level =
            (enum ws_log_level)word_find(log_levels, cfg_getstr(cfg, "log_level"))->value;
    if (cfg_size(cfg, "isolation"))
        c->unfenced = word_find(isolations, cfg_getstr(cfg, "isolation"))->value;
    if (cfg_size(cfg, "gpu_worker"))
        c->gpu_worker = word_find(answers, cfg_getstr(cfg, "gpu_worker"))->value;
    if (cfg_size(cfg, "learn"))
        c->learn = word_find(switches, cfg_getstr(cfg, "learn"))->value;
    if (cfg_size(cfg, "fused_leader"))
        c->fused_leader = word_find(switches, cfg_getstr(cfg, "fused_leader"))->value;
    if (cfg_size(cfg, "socket_mode"))
        mode_parse(cfg_getstr(cfg, "socket_mode"), &c->socket_mode);
    int r = text_take(&c->socket_group, cfg, "socket_group");
    if (!r)
        r = text_take(&c->curve_key, cfg, "curve_key");
    if (!r)
        r = text_take(&c->curve_clients, cfg, "curve_clients");
    if (!r)
        r = text_take(&c->metrics, cfg, "metrics");
    if (!r)
        r = text_take(&c->profiles, cfg, "profiles");
    if (!r)
        r = text_take(&c->clock_helper, cfg, "clock_helper");
    if (!r)
        r = text_take(&c->templates, cfg, "templates");
    if (!r)
        r = users_take(c, cfg);
    if (!r)
        r = list_take(c->endpoints, WS_CONFIG_MAX_LIST, cfg, "endpoints");
    if (!r)
        r = list_take(c->gpus, WS_MAX_GPUS_CONFIGURED, cfg, "gpus");
    if (!r)
        r = list_take(c->catalog, WS_CONFIG_MAX_LIST, cfg, "catalog");
    return r;
}

int ws_config_load(struct ws_config *c, const char *path, struct ws_diags *diags)
{
    cfg_opt_t limits[WS_ARRAY_SIZE(numbers) + 1], top[WS_ARRAY_SIZE(numbers) + 25],
        task[WS_CONFIG_TASK_KEYS];
    size_t nl = 0, nt = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(numbers); i++)
        *(numbers[i].in_limits ? &limits[nl++] : &top[nt++]) =
            (cfg_opt_t)CFG_INT(numbers[i].name, 0, CFGF_NODEFAULT);
    limits[nl] = (cfg_opt_t)CFG_END();
    top[nt++] = (cfg_opt_t)CFG_STR_LIST("endpoints", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR_LIST("gpus", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR_LIST("catalog", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("socket_mode", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("socket_group", NULL, CFGF_NODEFAULT);
    cfg_opt_t user[] = {CFG_INT("max_clients", 0, CFGF_NONE), CFG_INT("memory_bytes", 0, CFGF_NONE),
                        CFG_INT("share", WS_SHARE_DEFAULT, CFGF_NONE), CFG_END()};
    top[nt++] = (cfg_opt_t)CFG_SEC("user", user, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
    top[nt++] = (cfg_opt_t)CFG_STR("curve_key", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("curve_clients", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("metrics", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("clock", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("placement", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("rewrite", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("log_level", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("isolation", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("gpu_worker", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("learn", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("profiles", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("clock_helper", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("templates", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("fused_leader", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("policy", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR("energy_log", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_STR_LIST("policy_options", NULL, CFGF_NODEFAULT);
    top[nt++] = (cfg_opt_t)CFG_SEC("limits", limits, CFGF_NONE);
    ws_config_task_keys(task);
    top[nt++] = (cfg_opt_t)CFG_SEC("task", task, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
    top[nt] = (cfg_opt_t)CFG_END();

    FILE *f = fopen(path, "re");
    if (!f)
        return -errno;
    cfg_t *cfg = cfg_init(top, CFGF_NONE);
    if (!cfg) {
        fclose(f);
        return ws_raise(-ENOMEM);
    }
    cfg_set_error_function(cfg, on_error);
    for (size_t i = 0; i < WS_ARRAY_SIZE(numbers); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", numbers[i].in_limits ? "limits|" : "", numbers[i].name);
        cfg_set_validate_func(cfg, name, on_number);
    }
    cfg_set_validate_func(cfg, "user", on_user);
    cfg_set_validate_func(cfg, "user|max_clients", on_user_number);
    cfg_set_validate_func(cfg, "user|memory_bytes", on_user_number);
    cfg_set_validate_func(cfg, "user|share", on_user_number);
    cfg_set_validate_func(cfg, "metrics", on_metrics);
    cfg_set_validate_func(cfg, "endpoints", on_endpoint);
    cfg_set_validate_func(cfg, "gpus", on_gpus);
    cfg_set_validate_func(cfg, "catalog", on_catalog);
    cfg_set_validate_func(cfg, "socket_mode", on_mode);
    cfg_set_validate_func(cfg, "clock", on_clock);
    cfg_set_validate_func(cfg, "placement", on_placement);
    cfg_set_validate_func(cfg, "rewrite", on_rewrite);
    cfg_set_validate_func(cfg, "log_level", on_log_level);
    cfg_set_validate_func(cfg, "isolation", on_isolation);
    cfg_set_validate_func(cfg, "gpu_worker", on_gpu_worker);
    cfg_set_validate_func(cfg, "learn", on_learn);
    cfg_set_validate_func(cfg, "fused_leader", on_learn);
    cfg_set_validate_func(cfg, "policy", on_policy);
    cfg_set_validate_func(cfg, "energy_log", on_energy_log);
    cfg_set_validate_func(cfg, "policy_options", on_policy_options);
    ws_config_task_begin(cfg, path);
    cb_path = path;
    cb_diags = diags;
    cb_failed = false;
    bool closed = ws_conf_closed(f, path, diags);
    int r = closed && cfg_parse_fp(cfg, f) == CFG_SUCCESS && !cb_failed ? 0 : WS_CONFIG_E_INVALID;
    if (r && closed && !cb_failed)
        ws_diags_add(diags, path, 0, 0,
                     "cannot be read as a configuration file; see wattshared.conf(5)");
    if (!r)
        r = policy_take(c, cfg, path, diags);
    if (!r)
        r = take(c, cfg);
    if (!r)
        ws_config_task_take(c);
    ws_config_task_end();
    cb_diags = NULL;
    cb_path = NULL;
    cfg_free(cfg);
    fclose(f);
    return r;
}

/* ---- defaults and the command line ---- */

int ws_config_init(struct ws_config *c)
{
    static const char *const endpoints[] = {WS_DEFAULT_SOCKET}, *const gpus[] = {"rtx3070", "t400"};
    char *catalog = ws_path_catalog();
    *c = (struct ws_config){
        .socket_mode = 0660,
        .log_level = WS_INFO,
        .drain_timeout_s = 10,
        .n_slots = 4,
        .gate_lease_ms = 1000,
        .heartbeat_s = 5,
        .time_scale = 20,
        .n_loaders = 2,
        .gpu_worker = true,
        .cancel_timeout_s = 60,
        .energy_log_ms = 10000,
        .learn = true,
        .max_kernel_insns = UINT64_C(1000000) * 1000000,
        .limits = ws_limits_default,
    };
    int r = catalog ? list_set(c->catalog, 1, (const char *const *)&catalog, 1) : ws_raise(-ENOMEM);
    if (!r)
        r = list_set(c->endpoints, WS_CONFIG_MAX_LIST, endpoints, 1);
    if (!r)
        r = list_set(c->gpus, WS_MAX_GPUS_CONFIGURED, gpus, 2);
    free(catalog);
    if (r)
        ws_config_deinit(c);
    return r;
}

void ws_config_deinit(struct ws_config *c)
{
    list_clear(c->endpoints);
    list_clear(c->gpus);
    list_clear(c->catalog);
    list_clear(c->policy_options);
    ws_task_rules_deinit(&c->tasks);
    free(c->policy);
    c->policy = NULL;
    free(c->energy_log);
    c->energy_log = NULL;
    free(c->socket_group);
    free(c->curve_key);
    free(c->curve_clients);
    free(c->metrics);
    free(c->profiles);
    free(c->clock_helper);
    free(c->templates);
    c->socket_group = c->curve_key = c->curve_clients = c->metrics = c->clock_helper = c->profiles =
        c->templates = NULL;
    ws_access_deinit(&c->access);
}

static int curve_wrong(const struct ws_config *c, struct ws_diags *diags)
{
    unsigned line;
    struct ws_curve_keys keys;
    int r = ws_curve_read(c->curve_key, &keys, &line);
    if (r == -EINVAL)
        ws_diags_add(diags, c->curve_key, line, 0,
                     "is no line of a key file; `wattshare keygen` makes one");
    else if (r == -EPERM)
        ws_diags_add(diags, c->curve_key, 0, 0,
                     "others may read this secret key; chmod o= it, and make a new one");
    else if (r)
        ws_diags_add(diags, c->curve_key, 0, 0, "cannot be read: %s", strerror(-r));
    else
        ws_diags_add(diags, c->curve_key, 0, 0,
                     "has no secret key; `wattshare keygen` makes a file with both");
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
        ws_diags_add(diags, c->curve_clients, 0, 0, "cannot be read: %s", strerror(-r));
    return r ? WS_CONFIG_E_INVALID : 0;
}

int ws_config_finish(struct ws_config *c, struct ws_diags *diags)
{
    for (char *const *e = c->endpoints; *e; e++)
        if (!strncmp(*e, "tcp://", 6))
            return read_keys(c, diags);
    return 0;
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
        r = list_set(c->gpus, WS_MAX_GPUS_CONFIGURED, v, n);
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
        const char *right = endpoint_wrong(v[i]);
        if (right) {
            ws_diags_add(diags, "--socket", 0, 0, "\"%s\" is wrong: %s", v[i], right);
            r = WS_CONFIG_E_INVALID;
        }
    }
    if (!r)
        r = list_set(c->endpoints, WS_CONFIG_MAX_LIST, v, n);
    free(copy);
    return r;
}

int ws_config_set_metrics(struct ws_config *c, const char *text, struct ws_diags *diags)
{
    const char *right = text[0] ? metrics_wrong(text) : NULL;
    if (right) {
        ws_diags_add(diags, "--metrics", 0, 0, "\"%s\" is wrong: %s", text, right);
        return WS_CONFIG_E_INVALID;
    }
    return text_set(&c->metrics, text);
}

int ws_config_set_catalog(struct ws_config *c, const char *path, struct ws_diags *diags)
{
    if (path[0])
        return list_set(c->catalog, WS_CONFIG_MAX_LIST, &path, 1);
    ws_diags_add(diags, "--catalog", 0, 0, "is empty: %s", path_wrong(path));
    return WS_CONFIG_E_INVALID;
}

/* Return: the value, or -1 with a diagnostic. */
static int word_value(const char *option, const struct word *words, const char *word,
                      struct ws_diags *diags)
{
    char list[128];
    const struct word *w = word_find(words, word);
    if (w)
        return w->value;
    ws_diags_add(diags, option, 0, 0, "\"%s\" is not known: use %s", word,
                 word_list(words, list, sizeof list));
    return -1;
}

int ws_config_set_clock(struct ws_config *c, const char *word, struct ws_diags *diags)
{
    int v = word_value("--clock", clocks, word, diags);
    if (v < 0)
        return WS_CONFIG_E_INVALID;
    c->clock = (enum ws_device_clock)v;
    return 0;
}

int ws_config_set_profiles(struct ws_config *c, const char *path, struct ws_diags *diags)
{
    if (path[0]) {
        c->learn = true; /* else there is nothing to keep */
        return text_set(&c->profiles, path);
    }
    ws_diags_add(diags, "--profiles", 0, 0, "is empty: %s", path_wrong(path));
    return WS_CONFIG_E_INVALID;
}

int ws_config_set_log_level(struct ws_config *c, const char *word, struct ws_diags *diags)
{
    int v = word_value("--log-level", log_levels, word, diags);
    if (v < 0)
        return WS_CONFIG_E_INVALID;
    c->log_level = (enum ws_log_level)v;
    return 0;
}
