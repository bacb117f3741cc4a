// SPDX-License-Identifier: Apache-2.0
/* The GPU catalog. Its keys stand in catalog_keys.def: the grammar for libconfuse, the checks of
 * ranges and the messages are made from the table.
 *
 * libconfuse calls back for each value while it still knows the line, and the callback checks the
 * value. What needs the whole section (missing keys, keys that contradict each other) is checked
 * at its closing brace and reported with that line. */
#include "device/catalog.h"

#include <confuse.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/conf.h"
#include "base/error.h"
#include "base/file.h"

struct catalog_key {
    const char *name;
    size_t offset;
    uint8_t bytes; /* 4 or 8: width of the field */
    bool optional; /* then @def holds */
    int64_t min, max, def;
    uint64_t unit; /* field = value * unit */
};
enum { NEEDED = -1 }; /* in place of a default */
#define GPU_TEXT(...)
#define GPU_KEY(called, field, min, max, def, unit, text)                                          \
    {#called,                                                                                      \
     offsetof(struct ws_gpu_spec, field),                                                          \
     sizeof((struct ws_gpu_spec *)0)->field,                                                       \
     (def) != NEEDED,                                                                              \
     min,                                                                                          \
     max,                                                                                          \
     def,                                                                                          \
     unit},
static const struct catalog_key keys[] = {
#include "device/catalog_keys.def"
};

static int64_t key_value(const struct ws_gpu_spec *s, const struct catalog_key *k)
{
    const char *field = (const char *)s + k->offset;
    uint64_t v = k->bytes == 4 ? *(const uint32_t *)field : *(const uint64_t *)field;
    return (int64_t)(v / k->unit);
}

static void key_set(struct ws_gpu_spec *s, const struct catalog_key *k, int64_t value)
{
    char *field = (char *)s + k->offset;
    if (k->bytes == 4)
        *(uint32_t *)field = (uint32_t)value;
    else
        *(uint64_t *)field = (uint64_t)value * k->unit;
}

static bool name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return n && !name[n] && n < sizeof((struct ws_gpu_spec *)0)->name;
}

int ws_gpu_spec_check(const struct ws_gpu_spec *s, const char *file, uint32_t line,
                      struct ws_diags *diags)
{
    bool ok = true;
    if (!memchr(s->name, 0, sizeof(s->name)) || !name_ok(s->name)) {
        ws_diags_add(diags, file, line, 0,
                     "gpu: the name must be 1 to 31 letters, digits, '-', '_' or '.'");
        return WS_CATALOG_E_INVALID;
    }
    if (!s->product[0] || !memchr(s->product, 0, sizeof(s->product))) {
        ws_diags_add(diags, file, line, 0, "gpu %s: product must be 1 to 63 bytes of text",
                     s->name);
        ok = false;
    }
    if (s->cc_major < 1 || s->cc_major > 99 || s->cc_minor > 9) {
        ws_diags_add(diags, file, line, 0, "gpu %s: cc must be MAJOR.MINOR, like \"7.5\"", s->name);
        ok = false;
    }
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++) {
        int64_t v = key_value(s, &keys[i]);
        if (v < keys[i].min || v > keys[i].max) {
            ws_diags_add(diags, file, line, 0,
                         "gpu %s: %s is %" PRId64 ", must be %" PRId64 " to %" PRId64, s->name,
                         keys[i].name, v, keys[i].min, keys[i].max);
            ok = false;
        }
    }
    if (!ok)
        return WS_CATALOG_E_INVALID;
    if (s->max_threads_per_block > s->max_threads_per_sm) {
        ws_diags_add(diags, file, line, 0,
                     "gpu %s: threads_per_block (%u) must not exceed threads_per_sm (%u)", s->name,
                     s->max_threads_per_block, s->max_threads_per_sm);
        ok = false;
    }
    if (s->shared_bytes_per_block > s->shared_bytes_per_block_optin ||
        s->shared_bytes_per_block_optin > s->shared_bytes_per_sm) {
        ws_diags_add(diags, file, line, 0,
                     "gpu %s: shared_bytes_per_block <= shared_bytes_per_block_optin <= "
                     "shared_bytes_per_sm must hold, "
                     "but they are %u, %u, %u",
                     s->name, s->shared_bytes_per_block, s->shared_bytes_per_block_optin,
                     s->shared_bytes_per_sm);
        ok = false;
    }
    if (s->max_threads_per_block % 32 || s->max_threads_per_sm % 32) {
        ws_diags_add(diags, file, line, 0,
                     "gpu %s: threads_per_block and threads_per_sm must be multiples of 32",
                     s->name);
        ok = false;
    }
    if (s->dynamic_mw_per_sm < s->idle_mw_per_sm) {
        ws_diags_add(diags, file, line, 0,
                     "gpu %s: dynamic_mw_per_sm (%u) must not be less than idle_mw_per_sm (%u)",
                     s->name, s->dynamic_mw_per_sm, s->idle_mw_per_sm);
        ok = false;
    }
    return ok ? 0 : WS_CATALOG_E_INVALID;
}

/* libconfuse hands its callbacks the parser only; they need the diagnostics too. */
static _Thread_local struct ws_diags *cb_diags;
static _Thread_local bool cb_failed;

static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    char text[256];
    vsnprintf(text, sizeof(text), fmt, ap);
    const char *hint = strstr(text, "no such option")
                           ? "; wattshared.conf(5), THE CATALOG, lists the keys"
                       : strstr(text, "invalid integer") ? "; it must be a whole number"
                                                         : "";
    ws_diags_add(cb_diags, cfg ? cfg->filename : NULL,
                 cfg && cfg->line > 0 ? (uint32_t)cfg->line : 0, 0, "%s%s", text, hint);
    cb_failed = true;
}

static int parse_cc(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
    unsigned major, minor;
    char rest;
    if (sscanf(text, "%2u.%1u%c", &major, &minor, &rest) != 2 || !major)
        return -EINVAL;
    *ret_major = major;
    *ret_minor = minor;
    return 0;
}

static int on_int(cfg_t *cfg, cfg_opt_t *opt)
{
    long v = cfg_opt_getnint(opt, 0);
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++) {
        if (strcmp(opt->name, keys[i].name) != 0 || (v >= keys[i].min && v <= keys[i].max))
            continue;
        cfg_error(cfg, "gpu %s: %s = %ld is out of range: use %" PRId64 " to %" PRId64,
                  cfg_title(cfg), opt->name, v, keys[i].min, keys[i].max);
        return -1;
    }
    return 0;
}

static int on_cc(cfg_t *cfg, cfg_opt_t *opt)
{
    uint32_t major, minor;
    const char *v = cfg_opt_getnstr(opt, 0);
    if (v && !parse_cc(v, &major, &minor))
        return 0;
    cfg_error(cfg,
              "gpu %s: %s = \"%s\" is not a compute capability: use \"MAJOR.MINOR\", like \"7.5\"",
              cfg_title(cfg), opt->name, v ? v : "");
    return -1;
}

static int on_product(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);
    if (v && v[0] && strlen(v) < sizeof((struct ws_gpu_spec *)0)->product)
        return 0;
    cfg_error(cfg, "gpu %s: product must be 1 to 63 bytes of text", cfg_title(cfg));
    return -1;
}

/* What people read before the text of an entry whose numbers were not fitted. */
#define UNCALIBRATED "uncalibrated: "

/* Of `calibrated` and `uncalibrated`, which are put into one member. */
static int on_calibrated(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);
    size_t before = strcmp(opt->name, "calibrated") == 0 ? 0 : strlen(UNCALIBRATED);
    size_t most = sizeof((struct ws_gpu_spec *)0)->calibrated - 1 - before;
    if (v && strlen(v) <= most)
        return 0;
    cfg_error(cfg, "gpu %s: %s must be at most %zu bytes of text", cfg_title(cfg), opt->name, most);
    return -1;
}

static void spec_from(const cfg_t *cfg, struct ws_gpu_spec *spec)
{
    cfg_t *c = (cfg_t *)cfg; /* libconfuse's getters lack const */
    memset(spec, 0, sizeof(*spec));
    snprintf(spec->name, sizeof(spec->name), "%s", cfg_title(c));
    if (cfg_size(c, "product"))
        snprintf(spec->product, sizeof(spec->product), "%s", cfg_getstr(c, "product"));
    if (cfg_size(c, "calibrated"))
        snprintf(spec->calibrated, sizeof(spec->calibrated), "%s", cfg_getstr(c, "calibrated"));
    else if (cfg_size(c, "uncalibrated"))
        snprintf(spec->calibrated, sizeof(spec->calibrated), UNCALIBRATED "%s",
                 cfg_getstr(c, "uncalibrated"));
    if (cfg_size(c, "cc"))
        (void)parse_cc(cfg_getstr(c, "cc"), &spec->cc_major, &spec->cc_minor);
    uint32_t major = spec->cc_major, minor = spec->cc_minor;
    if (cfg_size(c, "hardware_cc"))
        (void)parse_cc(cfg_getstr(c, "hardware_cc"), &major, &minor);
    spec->hardware_cc = 10 * major + minor;
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++)
        key_set(spec, &keys[i],
                cfg_size(c, keys[i].name) ? cfg_getint(c, keys[i].name) : keys[i].def);
}

static int on_gpu(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *gpu = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    if (!name_ok(cfg_title(gpu))) {
        cfg_error(cfg, "gpu '%s': a name is 1 to 31 letters, digits, '-', '_' or '.'",
                  cfg_title(gpu));
        return -1;
    }
    char missing[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys) + 2; i++) {
        const char *name = i == 0 ? "product" : i == 1 ? "cc" : keys[i - 2].name;
        if (cfg_size(gpu, name) || (i > 1 && keys[i - 2].optional) || n >= sizeof(missing) - 1)
            continue;
        n += snprintf(missing + n, sizeof(missing) - n, "%s%s", n ? ", " : "", name);
    }
    if (n) {
        cfg_error(cfg, "gpu %s: missing: %s", cfg_title(gpu), missing);
        return -1;
    }
    struct ws_gpu_spec spec;
    spec_from(gpu, &spec);
    if (ws_gpu_spec_check(&spec, cfg->filename, cfg->line > 0 ? (uint32_t)cfg->line : 0,
                          cb_diags)) {
        cb_failed = true;
        return -1;
    }
    return 0;
}

static int catalog_put(struct ws_catalog *c, const struct ws_gpu_spec *spec)
{
    struct ws_gpu_spec *old = (struct ws_gpu_spec *)ws_catalog_find(c, spec->name);
    if (old) {
        *old = *spec;
        return 0;
    }
    int r = ws_grow((void **)&c->v, &c->cap, c->n + 1, sizeof(c->v[0]));
    if (r < 0)
        return ws_forward(r);
    c->v[c->n++] = *spec;
    return 0;
}

static int load_file(struct ws_catalog *c, const char *path, struct ws_diags *diags)
{
    static const char *const texts[] = {
#define GPU_TEXT(called, example, text) #called,
#define GPU_KEY(...)
#include "device/catalog_keys.def"
    };
    cfg_opt_t opts[WS_ARRAY_SIZE(keys) + WS_ARRAY_SIZE(texts) + 1];
    size_t n = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(texts); i++)
        opts[n++] = (cfg_opt_t)CFG_STR(texts[i], NULL, CFGF_NODEFAULT);
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++)
        opts[n++] = (cfg_opt_t)CFG_INT(keys[i].name, 0, CFGF_NODEFAULT);
    opts[n] = (cfg_opt_t)CFG_END();
    cfg_opt_t top[] = {CFG_SEC("gpu", opts, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
                       CFG_END()};

    FILE *f;
    int r = ws_file_open(&f, path, WS_FILE_TEXT_BYTES, NULL);
    if (r) {
        ws_diags_add(diags, path, 0, 0, "cannot be read: %s", ws_file_why(r));
        return WS_CATALOG_E_INVALID;
    }
    cfg_t *cfg = cfg_init(top, CFGF_NONE);
    if (!cfg) {
        fclose(f);
        return ws_raise(-ENOMEM);
    }
    cfg_set_error_function(cfg, on_error);
    cfg_set_validate_func(cfg, "gpu", on_gpu);
    cfg_set_validate_func(cfg, "gpu|product", on_product);
    cfg_set_validate_func(cfg, "gpu|calibrated", on_calibrated);
    cfg_set_validate_func(cfg, "gpu|uncalibrated", on_calibrated);
    cfg_set_validate_func(cfg, "gpu|cc", on_cc);
    cfg_set_validate_func(cfg, "gpu|hardware_cc", on_cc);
    char option[64];
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++) {
        snprintf(option, sizeof(option), "gpu|%s", keys[i].name);
        cfg_set_validate_func(cfg, option, on_int);
    }
    free(cfg->filename); /* cfg_parse_fp() knows no name */
    cfg->filename = strdup(path);
    cb_diags = diags;
    cb_failed = false;
    bool closed = ws_conf_closed(f, path, diags);
    r = closed && cfg_parse_fp(cfg, f) == CFG_SUCCESS && !cb_failed ? 0 : WS_CATALOG_E_INVALID;
    if (r && closed && !cb_failed)
        ws_diags_add(diags, path, 0, 0, "cannot be read as a GPU catalog file");
    if (!r &&
        !cfg_size(cfg, "gpu")) { /* libconfuse takes a lone quotation mark for an empty file */
        ws_diags_add(diags, path, 0, 0,
                     "no gpu section in it; it must hold at least one: gpu NAME { key = value … }");
        r = WS_CATALOG_E_INVALID;
    }
    for (unsigned i = 0; !r && i < cfg_size(cfg, "gpu"); i++) {
        struct ws_gpu_spec spec;
        spec_from(cfg_getnsec(cfg, "gpu", i), &spec);
        r = catalog_put(c, &spec);
    }
    cb_diags = NULL;
    cfg_free(cfg);
    fclose(f);
    return r;
}

static int is_conf(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 5, ".conf");
}

static int load_dir(struct ws_catalog *c, const char *path, struct ws_diags *diags)
{
    struct dirent **list;
    int n = scandir(path, &list, is_conf, alphasort);
    if (n < 0)
        return ws_raise(-errno);
    int r = 0;
    for (int i = 0; i < n; i++) {
        char *file = NULL;
        if (r >= 0) {
            int one = asprintf(&file, "%s/%s", path, list[i]->d_name) < 0
                          ? -ENOMEM
                          : load_file(c, file, diags);
            r = one < 0 || !r ? one : r; /* all files are read, so that all errors are seen */
            free(one == -ENOMEM && !file ? NULL : file);
        }
        free(list[i]);
    }
    free(list);
    return r;
}

int ws_catalog_load(struct ws_catalog *c, const char *path, struct ws_diags *diags)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return ws_raise(-errno);
    struct ws_catalog next = WS_CATALOG_NULL;
    int r = ws_grow((void **)&next.v, &next.cap, c->n + 1, sizeof(next.v[0]));
    if (r < 0)
        return ws_forward(r);
    for (size_t i = 0; i < c->n; i++)
        next.v[next.n++] = c->v[i];
    r = S_ISDIR(st.st_mode) ? load_dir(&next, path, diags) : load_file(&next, path, diags);
    struct ws_catalog old = r ? next : *c;
    if (!r)
        *c = next;
    ws_catalog_deinit(&old);
    return r;
}

const struct ws_gpu_spec *ws_catalog_find(const struct ws_catalog *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->v[i].name, name))
            return &c->v[i];
    return NULL;
}

void ws_catalog_deinit(struct ws_catalog *c)
{
    free(c->v);
    *c = WS_CATALOG_NULL;
}
