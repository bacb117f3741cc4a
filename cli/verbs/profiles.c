// SPDX-License-Identifier: Apache-2.0
/* wattshare profiles: lists, shows and removes what is known of kernels, and carries it to other
 * machines as CSV. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/verbs/profiles.h"
#include "cli/common/table.h"
#include "models/store.h"

struct asked {
    bool json;
    const char *hash, *gpu; /* prefix of the hash; NULL: all */
    struct ws_store *store;
    struct ws_table table;
    struct json_object *array;
    uint64_t n;
};

static void report(const struct ws_diags *diags)
{
    char *text = ws_diags_text(diags);
    for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
        ws_cli_error("%s", line);
    free(text);
    if (diags->n_dropped)
        ws_cli_error("… and %zu more", diags->n_dropped);
}

struct ws_store *ws_cli_store_open(const char *path, int mode)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_store *s = NULL;
    int r = ws_store_open(&s, path, mode, &diags);
    if (r && !diags.n)
        ws_cli_error("%s: %s", path, r < 0 ? strerror(-r) : "cannot be opened");
    report(&diags);
    ws_diags_deinit(&diags);
    return r ? NULL : s;
}

int ws_cli_store_failed(const char *path, const struct ws_store *s, int r)
{
    const char *text = ws_store_error(s);
    ws_cli_error("%s: %s", path, *text ? text : strerror(r < 0 ? -r : EIO));
    return 1;
}

static bool is_asked(const struct asked *a, const struct ws_profile *p)
{
    return (!a->hash || !strncmp(p->key.hash, a->hash, strlen(a->hash))) &&
           (!a->gpu || !strcmp(p->key.gpu, a->gpu));
}

static struct json_object *stat_json(const struct ws_stat *s)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "n", json_object_new_int64((int64_t)s->n));
    json_object_object_add(o, "mean", json_object_new_double(s->mean));
    json_object_object_add(o, "variance", json_object_new_double(ws_stat_variance(s)));
    return o;
}

static void add_number(struct json_object *o, const char *key, double v)
{
    json_object_object_add(o, key, json_object_new_double(v));
}

static struct json_object *model_json(const struct ws_mwp_kernel *k)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "threads_per_block", json_object_new_int64(k->threads_per_block));
    json_object_object_add(o, "n_blocks", json_object_new_int64((int64_t)k->n_blocks));
    json_object_object_add(o, "blocks_per_sm", json_object_new_int64(k->active_blocks_per_sm));
    add_number(o, "comp_insts", k->comp_insts);
    add_number(o, "coal_insts", k->coal_insts);
    add_number(o, "uncoal_insts", k->uncoal_insts);
    add_number(o, "uncoal_per_mw", k->uncoal_per_mw);
    add_number(o, "synch_insts", k->synch_insts);
    return o;
}

static struct json_object *points_json(const struct ws_profile *p)
{
    struct json_object *array = json_object_new_array();
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct ws_profile_point *q = &p->points[i];
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "n_sms", json_object_new_int64(q->n_sms));
        json_object_object_add(o, "n_runs", json_object_new_int64((int64_t)q->n_runs));
        add_number(o, "time_max_ms", q->time_max_ms);
        add_number(o, "time_mean_ms", q->time_mean_ms);
        add_number(o, "time_min_ms", q->time_min_ms);
        json_object_object_add(o, "power_w",
                               q->n_powers ? json_object_new_double(q->power_w) : NULL);
        json_object_array_add(array, o);
    }
    return array;
}

struct json_object *ws_cli_profile_json(const struct ws_profile *p)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "hash", json_object_new_string(p->key.hash));
    json_object_object_add(o, "gpu", json_object_new_string(p->key.gpu));
    json_object_object_add(o, "shape", json_object_new_string(p->key.shape));
    json_object_object_add(o, "name", json_object_new_string(p->name));
    if (p->has & WS_PROFILE_MODEL)
        json_object_object_add(o, "model", model_json(&p->kernel));
    if (p->has & WS_PROFILE_COPIES) {
        struct json_object *c = json_object_new_object();
        add_number(c, "h2d_ms", p->h2d_ms);
        add_number(c, "d2h_ms", p->d2h_ms);
        json_object_object_add(c, "in_bytes", json_object_new_int64((int64_t)p->in_bytes));
        json_object_object_add(c, "out_bytes", json_object_new_int64((int64_t)p->out_bytes));
        json_object_object_add(o, "copies", c);
    }
    if (p->has & WS_PROFILE_DVFS) {
        struct json_object *d = json_object_new_object();
        add_number(d, "p0_w", p->dvfs.p0);
        add_number(d, "gamma_w", p->dvfs.gamma);
        add_number(d, "c_w", p->dvfs.c);
        add_number(d, "t0_ms", p->dvfs.t0);
        add_number(d, "d_ms", p->dvfs.d);
        add_number(d, "delta", p->dvfs.delta);
        json_object_object_add(o, "dvfs", d);
    }
    if (p->has & WS_PROFILE_CPU) {
        struct json_object *c = json_object_new_object();
        add_number(c, "cpu_ms", p->cpu_ms);
        add_number(c, "cpu_mj", p->cpu_mj);
        json_object_object_add(o, "cpu", c);
    }
    json_object_object_add(o, "time_error", stat_json(&p->time_error));
    json_object_object_add(o, "power_error", stat_json(&p->power_error));
    json_object_object_add(o, "sms", points_json(p));
    return o;
}

/* "+3.2 ± 0.5 %" */
static void error_text(char *to, size_t size, const struct ws_stat *s)
{
    if (!s->n)
        snprintf(to, size, "-");
    else if (s->n < 2)
        snprintf(to, size, "%+.1f %%", 100 * s->mean);
    else
        snprintf(to, size, "%+.1f ± %.1f %%", 100 * s->mean, 100 * sqrt(ws_stat_variance(s)));
}

static int list_one(void *arg, const struct ws_profile *p)
{
    struct asked *a = arg;
    if (!is_asked(a, p))
        return 0;
    a->n++;
    if (a->json) {
        json_object_array_add(a->array, ws_cli_profile_json(p));
        return 0;
    }
    uint64_t runs = 0;
    for (uint32_t i = 0; i < p->n_points; i++)
        runs += p->points[i].n_runs;
    const struct ws_profile_point *all = p->n_points ? &p->points[p->n_points - 1] : NULL;
    char error[64];
    error_text(error, sizeof(error), &p->time_error);
    ws_table_add(&a->table, "%.12s", p->key.hash);
    ws_table_add(&a->table, "%s", p->key.gpu);
    ws_table_add(&a->table, "%s", *p->key.shape ? p->key.shape : "any");
    ws_table_add(&a->table, "%s", p->name);
    ws_table_add(&a->table, "%u", p->n_points);
    ws_table_add(&a->table, "%" PRIu64, runs);
    if (all)
        ws_table_add(&a->table, "%.4g", all->time_max_ms);
    else
        ws_table_add(&a->table, "-");
    ws_table_add(&a->table, "%s%s%s%s", p->has & WS_PROFILE_MODEL ? "m" : "-",
                 p->has & WS_PROFILE_COPIES ? "c" : "-", p->has & WS_PROFILE_DVFS ? "d" : "-",
                 p->has & WS_PROFILE_CPU ? "h" : "-");
    ws_table_add(&a->table, "%s", error);
    ws_table_end_row(&a->table);
    return 0;
}

static void show_fields(const struct ws_profile *p)
{
    char error[64];
    printf("%s on %s, shape %s: %s\n", p->key.hash, p->key.gpu,
           *p->key.shape ? p->key.shape : "any", *p->name ? p->name : "(no name)");
    if (p->has & WS_PROFILE_MODEL)
        printf(
            "  per thread %.6g compute, %.6g coalesced, %.6g uncoalesced (%.4g transactions), %.4g "
            "barriers; %" PRIu64 " blocks of %u threads, %u on an SM\n",
            p->kernel.comp_insts, p->kernel.coal_insts, p->kernel.uncoal_insts,
            p->kernel.uncoal_per_mw, p->kernel.synch_insts, p->kernel.n_blocks,
            p->kernel.threads_per_block, p->kernel.active_blocks_per_sm);
    if (p->has & WS_PROFILE_COPIES)
        printf("  copies: in %" PRIu64 " bytes, %.6g ms; out %" PRIu64 " bytes, %.6g ms\n",
               p->in_bytes, p->h2d_ms, p->out_bytes, p->d2h_ms);
    if (p->has & WS_PROFILE_DVFS)
        printf("  clocks: P0 %.4g W, gamma %.4g W, c %.4g W, t0 %.4g ms, D %.4g ms, delta %.4g\n",
               p->dvfs.p0, p->dvfs.gamma, p->dvfs.c, p->dvfs.t0, p->dvfs.d, p->dvfs.delta);
    if (p->has & WS_PROFILE_CPU)
        printf("  on the CPU: %.6g ms, %.6g mJ\n", p->cpu_ms, p->cpu_mj);
    error_text(error, sizeof(error), &p->time_error);
    printf("  predicted time off by %s (%" PRIu64 " runs)", error, p->time_error.n);
    error_text(error, sizeof(error), &p->power_error);
    printf(", power by %s (%" PRIu64 ")\n", error, p->power_error.n);
}

int ws_cli_profile_show(const struct ws_profile *p)
{
    static const char *const heads[] = {"SMs", "runs", "max ms", "mean ms", "min ms", "W", NULL};
    show_fields(p);
    struct ws_table t;
    ws_table_init(&t, heads);
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct ws_profile_point *q = &p->points[i];
        ws_table_add(&t, "%u", q->n_sms);
        ws_table_add(&t, "%" PRIu64, q->n_runs);
        ws_table_add(&t, "%.6g", q->time_max_ms);
        ws_table_add(&t, "%.6g", q->time_mean_ms);
        ws_table_add(&t, "%.6g", q->time_min_ms);
        if (q->n_powers)
            ws_table_add(&t, "%.4g", q->power_w);
        else
            ws_table_add(&t, "-");
        ws_table_end_row(&t);
    }
    int r = p->n_points ? ws_table_print(&t, stdout) : 0;
    ws_table_deinit(&t);
    return r;
}

static int show_one(void *arg, const struct ws_profile *p)
{
    struct asked *a = arg;
    if (!is_asked(a, p))
        return 0;
    a->n++;
    if (!a->json)
        return ws_cli_profile_show(p);
    json_object_array_add(a->array, ws_cli_profile_json(p));
    return 0;
}

static int look(const char *path, struct asked *a,
                int (*each)(void *arg, const struct ws_profile *p))
{
    static const char *const heads[] = {"kernel", "GPU", "shape", "name",  "points",
                                        "runs",   "ms",  "known", "error", NULL};
    struct ws_store *s = ws_cli_store_open(path, WS_STORE_READ);
    if (!s)
        return 1;
    ws_table_init(&a->table, heads);
    a->array = a->json ? json_object_new_array() : NULL;
    int r = ws_store_each(s, each, a), status = 0;
    if (r)
        status = ws_cli_store_failed(path, s, r);
    else if (a->json)
        printf("%s\n", json_object_to_json_string_ext(a->array, JSON_C_TO_STRING_PRETTY));
    else if (each == list_one && a->n && ws_table_print(&a->table, stdout))
        status = 1;
    if (!status && !a->n && a->hash) {
        ws_cli_error("%s: no profile of %s%s%s; `wattshare profiles list` names them", path,
                     a->hash, a->gpu ? " on " : "", a->gpu ? a->gpu : "");
        status = 1;
    } else if (!status && !a->n && !a->json) {
        printf("%s holds no profiles\n", path);
    }
    json_object_put(a->array);
    ws_table_deinit(&a->table);
    ws_store_close(s);
    return status;
}

static int import(const char *path, const char *from)
{
    FILE *f = from ? fopen(from, "r") : stdin;
    if (!f) {
        ws_cli_error("%s: %s", from, strerror(errno));
        return 1;
    }
    struct ws_store *s = ws_cli_store_open(path, WS_STORE_WRITE);
    int status = 1;
    if (s) {
        struct ws_diags diags = WS_DIAGS_NULL;
        struct ws_store_import done;
        int r = ws_store_import(s, f, from ? from : "standard input", &done, &diags);
        report(&diags);
        if (r && !diags.n)
            ws_cli_store_failed(path, s, r);
        else if (!r) {
            printf("%" PRIu64 " profiles with %" PRIu64 " points taken, %" PRIu64 " bad lines\n",
                   done.n_profiles, done.n_points, done.n_bad_lines);
            status = done.n_bad_lines > 0;
        }
        ws_diags_deinit(&diags);
    }
    ws_store_close(s);
    if (from)
        fclose(f);
    return status;
}

/* Writes a new file in the folder of @to and renames it when it is complete, so that a failure
 * leaves the old file as it was. */
static int export(const char *path, const char *to)
{
    struct ws_store *s = ws_cli_store_open(path, WS_STORE_READ);
    if (!s)
        return 1;
    char *part = NULL;
    FILE *f = stdout;
    if (to) {
        int fd = asprintf(&part, "%s.XXXXXX", to) < 0 ? -1 : mkostemp(part, O_CLOEXEC);
        f = fd < 0 ? NULL : fdopen(fd, "w");
        if (!f) {
            ws_cli_error("%s: %s", to, strerror(errno));
            if (fd >= 0) {
                close(fd);
                unlink(part);
            }
            free(part);
            ws_store_close(s);
            return 1;
        }
        mode_t mask = umask(0);
        umask(mask);
        (void)fchmod(fd, 0666 & ~mask); /* mkostemp() made it for the owner alone */
    }
    int r = ws_store_export(s, f), status = 0;
    if (r)
        status = ws_cli_store_failed(path, s, r);
    if (to && (fclose(f) || (!status && rename(part, to)))) {
        if (!status)
            ws_cli_error("%s: %s", to, strerror(errno));
        status = 1;
    }
    if (to && status)
        unlink(part);
    free(part);
    ws_store_close(s);
    return status;
}

static int remove_asked(void *arg, const struct ws_profile *p)
{
    struct asked *a = arg;
    if (!is_asked(a, p))
        return 0;
    /* The statement that lists reads on: remove what was found afterwards. */
    struct json_object *o = json_object_new_array();
    json_object_array_add(o, json_object_new_string(p->key.hash));
    json_object_array_add(o, json_object_new_string(p->key.gpu));
    json_object_array_add(o, json_object_new_string(p->key.shape));
    json_object_array_add(a->array, o);
    return 0;
}

static const char *text_at(struct json_object *array, size_t i)
{
    return json_object_get_string(json_object_array_get_idx(array, i));
}

static int remove_profiles(const char *path, struct asked *a)
{
    struct ws_store *s = ws_cli_store_open(path, WS_STORE_WRITE);
    if (!s)
        return 1;
    a->array = json_object_new_array();
    int r = ws_store_each(s, remove_asked, a);
    if (!r)
        r = ws_store_begin(s);
    if (!r) {
        for (size_t i = 0; i < json_object_array_length(a->array) && !r; i++) {
            struct json_object *o = json_object_array_get_idx(a->array, i);
            struct ws_profile_key key;
            r = ws_profile_key_set(&key, text_at(o, 0), text_at(o, 1), text_at(o, 2));
            if (!r)
                r = ws_store_remove(s, &key);
            a->n++;
        }
        int e = ws_store_commit(s, !r);
        r = r ? r : e;
    }
    int status = r ? ws_cli_store_failed(path, s, r) : 0;
    if (!status && !a->n) {
        ws_cli_error("%s: no profile of %s", path, a->hash);
        status = 1;
    } else if (!status) {
        printf("%" PRIu64 " profiles removed\n", a->n);
    }
    json_object_put(a->array);
    ws_store_close(s);
    return status;
}

static const struct ws_option options[] = {
    {"json", NULL, "With list and show: print JSON.", WS_FLAG(struct asked, json)}, {0}};
static const char *const arguments[] = {"list STORE [KERNEL [GPU]]", "show STORE [KERNEL [GPU]]",
                                        "export STORE [FILE]",       "import STORE [FILE]",
                                        "remove STORE KERNEL [GPU]", NULL};
static const char *const examples[] = {
    "wattshare profiles export /var/lib/wattshare/profiles.db here.csv",
    "wattshare profiles import there.db here.csv", "wattshare profiles show there.db 3fa9 rtx3070",
    NULL};

static int profiles(int argc, char **argv);

const struct ws_verb ws_verb_profiles = {
    .name = "profiles",
    .purpose = "show, export, import or remove what is known of kernels",
    .about = "STORE is a file of profiles, as wattshare profile and the daemon write it. KERNEL is "
             "the beginning of a kernel's hash.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 2,
    .max_arguments = 4,
    .missing = "expected list, show, export, import or remove, and a store",
    .run = profiles,
};

static int profiles(int argc, char **argv)
{
    struct asked a = {0};
    char **rest;
    int status = ws_verb_parse(&ws_verb_profiles, argc, argv, &a, &rest);
    if (status >= 0)
        return status;
    const char *what = rest[0], *path = rest[1], *third = rest[2];
    bool four = third && rest[3];
    a.hash = third;
    a.gpu = four ? rest[3] : NULL;
    if (!strcmp(what, "list"))
        return look(path, &a, list_one);
    if (!strcmp(what, "show"))
        return look(path, &a, show_one);
    if (!strcmp(what, "import") && !four)
        return import(path, third);
    if (!strcmp(what, "export") && !four)
        return export(path, third);
    if (!strcmp(what, "remove") && third)
        return remove_profiles(path, &a);
    return ws_verb_wrong(&ws_verb_profiles,
                         "expected list, show, export, import or remove, a store, "
                         "and what belongs to it");
}
