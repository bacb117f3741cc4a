// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/table.h"
#include "models/stat.h"
#include "papers/fit/entry.h"
#include "papers/fit/measured.h"
#include "papers/fit/score.h"
#include "papers/live/live.h"
#include "papers/sets/csv.h"
#include "papers/verbs/fit_events.h"
#include "papers/verbs/input.h"

struct events_verb {
    const struct ws_fit_events *options;
    struct ws_gpu_spec spec;
    struct ws_event_gpu gpu;
    struct ws_measured_set set;
    struct ws_event_power power;
    struct ws_event_time time;
    struct ws_predicted *predicted, *left_out; /* [set.n] */
    size_t n_judged; /* the launches whose errors count: those after them are fitted to only */
    bool failed;
};

/* ---- in ---- */

static void put_errors(const struct ws_diags *d)
{
    enum { SHOWN = 20 };
    size_t n = ws_diags_count(d);
    for (size_t i = 0; i < d->n && i < SHOWN; i++)
        ws_cli_error("%s:%u: %s", d->v[i].file, d->v[i].line, d->v[i].text);
    if (n > SHOWN)
        ws_cli_error("%s: %zu more errors", d->v[0].file, n - SHOWN);
}

static int report(struct events_verb *x, struct ws_diags *d, int r)
{
    put_errors(d);
    ws_diags_deinit(d);
    x->failed = x->failed || r == -EINVAL;
    return r == -EINVAL ? 0 : r;
}

static int read_families(void *arg, FILE *f, const char *name)
{
    struct events_verb *x = arg;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_measured_families(&x->set, f, name, &d);
    return report(x, &d, r);
}

static int read_launches(void *arg, FILE *f, const char *name)
{
    struct events_verb *x = arg;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_measured_read(&x->set, f, name, &x->gpu, &d);
    return report(x, &d, r);
}

/* Takes away @end, if the name ends with it and has more. */
static bool cut(char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    if (n <= m || strcmp(name + n - m, end) != 0)
        return false;
    name[n - m] = 0;
    return true;
}

/* As the catalog would call it: "Quadro GV100", "QuadroGV100", "gv100" and "Tesla V100-PCIE-16GB"
 * are gv100 and v100. */
static void catalog_name(const char *said, char *ret, size_t bytes)
{
    static const char *const brands[] = {"nvidia", "geforce", "quadro", "tesla"};
    static const char *const ends[] = {"11gb", "12gb", "16gb", "24gb", "32gb",
                                       "48gb", "8gb",  "pcie", "sxm2"};
    size_t n = 0;
    for (const char *c = said; *c && n + 1 < bytes; c++)
        if (isalnum((unsigned char)*c))
            ret[n++] = (char)tolower((unsigned char)*c);
    ret[n] = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(brands); i++)
        if (!strncmp(ret, brands[i], strlen(brands[i])))
            memmove(ret, ret + strlen(brands[i]), strlen(ret + strlen(brands[i])) + 1);
    for (size_t i = 0; i < WS_ARRAY_SIZE(ends);)
        i = cut(ret, ends[i]) ? 0 : i + 1;
}

/* The entry of the GPU; --entry's file first. A name of the catalog is taken as it is. */
static bool find_spec(const struct events_verb *x, const char *said, struct ws_gpu_spec *ret)
{
    const char *places[] = {x->options->entry, NULL};
    char name[64];
    catalog_name(said, name, sizeof(name));
    for (size_t i = x->options->entry ? 0 : 1; i < WS_ARRAY_SIZE(places); i++)
        if (ws_live_gpu_in(places[i], said, ret) || ws_live_gpu_in(places[i], name, ret))
            return true;
    return false;
}

/* Which of the GPUs that the files name is to be read: the first that the catalog's entry @want
 * describes, or else, and without @want, the first of all. malloc'ed; NULL: the files name none. */
static char *gpu_of_files(const struct events_verb *x, char **files, const char *want)
{
    static const char *const names[] = {"gpu", NULL};
    char *first = NULL, *found = NULL;
    for (; *files && !found; files++) {
        struct ws_csv t = {0};
        FILE *f = fopen(*files, "re");
        if (!f && !want && strcmp(*files, "-") != 0)
            ws_cli_error("%s: %s", *files, strerror(errno));
        struct ws_diags d = WS_DIAGS_NULL;
        int column = f && !ws_csv_open(&t, f, *files, &d) ? ws_csv_column(&t, names) : -1, r = 0;
        if (!want) /* with a name, the file is read once more */
            put_errors(&d);
        ws_diags_deinit(&d);
        const char *last = NULL;
        while (column >= 0 && !found && (r = ws_csv_next(&t, NULL)) >= 0 && r != WS_CSV_END) {
            const char *said = r ? "" : t.cells[column];
            if (!*said || (last && !strcmp(said, last)))
                continue;
            struct ws_gpu_spec spec;
            if (!first)
                first = strdup(said);
            if (!want || (find_spec(x, said, &spec) && !strcmp(spec.name, want)))
                found = strdup(said);
            last = first && !strcmp(first, said) ? first : NULL;
        }
        ws_csv_deinit(&t);
        if (f)
            fclose(f);
    }
    if (!found)
        return first;
    free(first);
    return found;
}

static bool find_gpu(struct events_verb *x, char **files)
{
    const char *gpu = x->options->gpu;
    if (!gpu && !(gpu = x->set.gpu = gpu_of_files(x, files, NULL))) {
        ws_cli_error("--gpu is missing, and no file says in a column gpu what was measured");
        return false;
    }
    if (!find_spec(x, gpu, &x->spec) && ws_live_gpu(gpu, &x->spec)) { /* says that there is none */
        ws_cli_error("%s", x->options->gpu
                               ? "a GPU that the catalog lacks can be described in a file that "
                                 "--entry names"
                               : "say with --gpu which entry of the catalog it is");
        return false;
    }
    if (!x->set.gpu)
        x->set.gpu = gpu_of_files(x, files, x->spec.name);
    x->gpu = ws_fit_entry_gpu(&x->spec);
    return true;
}

static void doubt_gpu(const struct events_verb *x)
{
    struct ws_gpu_spec spec;
    if (x->set.gpu && (!find_spec(x, x->set.gpu, &spec) || strcmp(spec.name, x->spec.name) != 0))
        ws_cli_error("warning: %s was measured, but --gpu says %s", x->set.gpu, x->spec.name);
}

/* Each time may be a possible one, and all of them in another unit. */
static int doubt_times(const struct events_verb *x)
{
    enum { TIMES = 10 };
    struct ws_event_time expected;
    double *off = ws_alloc_array(x->set.n, sizeof(*off));
    size_t n = 0;
    if (!off)
        return -ENOMEM;
    ws_event_time_init(&expected);
    for (size_t i = 0; i < x->set.n; i++) {
        const struct ws_measured_launch *l = &x->set.v[i];
        if (l->e.counted && !isnan(l->time_s))
            off[n++] = l->time_s / ws_event_time_s(&expected, &x->gpu, &l->e, &l->clocks);
    }
    qsort(off, n, sizeof(*off), ws_stat_by_size);
    if (n && (off[n / 2] > TIMES || off[n / 2] < 1.0 / TIMES))
        ws_cli_error("warning: the median launch takes %.3g times as long as this GPU should take: "
                     "is the time in the unit that its column says, and of one launch?",
                     off[n / 2]);
    free(off);
    return 0;
}

/* ---- out ---- */

static const char *const quantity[WS_SCORE_N] = {"power", "time", "energy"};

static void put_score(struct ws_table *t, const char *what, const struct events_verb *x,
                      const struct ws_score *s)
{
    if (!s->n)
        return;
    ws_table_add(t, "%s", what);
    ws_table_add(t, "%zu", s->n);
    ws_table_add(t, "%.1f", s->mean);
    ws_table_add(t, "%.1f", s->median);
    ws_table_add(t, "%.1f", s->worst);
    ws_table_add(t, "%.1f", s->worst_app_mean);
    ws_table_add(t, "%s", s->worst_app < 0 ? "" : x->set.apps[s->worst_app].name);
}

static int put_scores(const struct events_verb *x, struct ws_score ret_left_out[WS_SCORE_N])
{
    static const char *const heads[] = {"errors in %", "launches",   "MAPE",        "median",
                                        "worst",       "worst MAPE", "application", NULL};
    struct ws_score_app *apps = ws_alloc_array((size_t)x->set.n_apps + 1, sizeof(*apps));
    struct ws_table t;
    struct ws_score s;
    ws_table_init(&t, heads);
    int r = apps ? 0 : -ENOMEM;
    for (int of = 0; !r && of < WS_SCORE_N; of++) {
        char what[64];
        if (x->left_out) {
            snprintf(what, sizeof(what), "%s, family left out", quantity[of]);
            r = ws_score(x->set.v, x->left_out, x->n_judged, of, x->set.n_apps, &ret_left_out[of],
                         apps);
            if (!r)
                put_score(&t, what, x, &ret_left_out[of]);
        }
        snprintf(what, sizeof(what), "%s%s", quantity[of], x->left_out ? ", fitted to" : "");
        if (!r)
            r = ws_score(x->set.v, x->predicted, x->n_judged, of, x->set.n_apps, &s, apps);
        if (!r)
            put_score(&t, what, x, &s);
    }
    if (!r)
        r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    free(apps);
    return r;
}

/* Each application, with errors of predictions that did not see it where there are any. */
static int put_apps(const struct events_verb *x)
{
    static const char *const heads[] = {"application", "family",   "launches", "power %", "time %",
                                        "energy %",    "(bias: p", "t",        "e)",      NULL};
    const struct ws_predicted *p = x->left_out ? x->left_out : x->predicted;
    size_t n_apps = (size_t)x->set.n_apps;
    struct ws_score_app *apps = ws_alloc_array(WS_SCORE_N * n_apps + 1, sizeof(*apps));
    struct ws_table t;
    struct ws_score s;
    ws_table_init(&t, heads);
    int r = apps ? 0 : -ENOMEM;
    for (int of = 0; !r && of < WS_SCORE_N; of++)
        r = ws_score(x->set.v, p, x->n_judged, of, x->set.n_apps, &s, apps + (size_t)of * n_apps);
    for (size_t i = 0; !r && i < n_apps; i++) {
        const struct ws_score_app *a[WS_SCORE_N] = {&apps[i], &apps[n_apps + i],
                                                    &apps[2 * n_apps + i]};
        if (!a[WS_SCORE_POWER]->n && !a[WS_SCORE_TIME]->n)
            continue;
        ws_table_add(&t, "%s", x->set.apps[i].name);
        ws_table_add(&t, "%s", x->set.families[x->set.apps[i].family].name);
        ws_table_add(&t, "%zu", a[0]->n > a[1]->n ? a[0]->n : a[1]->n);
        for (int of = 0; of < WS_SCORE_N; of++)
            a[of]->n ? ws_table_add(&t, "%.1f", a[of]->mean) : ws_table_add(&t, "-");
        for (int of = 0; of < WS_SCORE_N; of++)
            a[of]->n ? ws_table_add(&t, "%+.1f", a[of]->bias) : ws_table_add(&t, "-");
    }
    if (!r)
        r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    free(apps);
    return r;
}

/* A term counts as told by the data if 80 % of the fits that expect nothing, to redrawn families,
 * give it between half and twice the share that it has here. */
static int put_terms(const struct events_verb *x, const struct ws_calibrate *c)
{
    static const char *const heads[] = {
        "power goes to",    "value", "unit", "share %", "80 % of draws", "expected",
        "the data tell it", NULL};
    struct ws_power_share shares[WS_EVENT_POWER_N];
    int r = ws_calibrate_shares(c, &x->power, shares);
    struct ws_table t;
    ws_table_init(&t, heads);
    for (int i = 0; !r && i < WS_EVENT_POWER_N; i++) {
        struct ws_event_power_prior prior = ws_event_power_prior(&x->gpu, i);
        ws_table_add(&t, "%s", prior.title);
        ws_table_add(&t, "%.4g", x->power.w[i]);
        ws_table_add(&t, "%s", prior.is_energy ? "nJ" : "W");
        ws_table_add(&t, "%.1f", 100 * shares[i].share);
        ws_table_add(&t, "%.1f .. %.1f", 100 * shares[i].low, 100 * shares[i].high);
        prior.expected > 0 ? ws_table_add(&t, "%.4g", prior.expected) : ws_table_add(&t, "-");
        double share = shares[i].share;
        bool told = share > 0 && shares[i].low >= share / 2 && shares[i].high <= share * 2;
        ws_table_add(&t, "%s", told ? "yes" : "no");
    }
    if (!r)
        r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r;
}

static int put_times(const struct events_verb *x)
{
    static const char *const heads[] = {"time goes by", "value", "expected", NULL};
    struct ws_table t;
    ws_table_init(&t, heads);
    for (int i = 0; i < WS_EVENT_TIME_N; i++) {
        struct ws_event_time_prior prior = ws_event_time_prior(i);
        ws_table_add(&t, "%s", prior.title);
        ws_table_add(&t, "%.3f", x->time.v[i]);
        ws_table_add(&t, "%.3f", prior.expected);
    }
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r;
}

/* ---- fit ---- */

static bool has_times(const struct ws_score left_out[WS_SCORE_N])
{
    return left_out[WS_SCORE_TIME].n > 0;
}

static int count_apps(const struct events_verb *x)
{
    int n = 0;
    for (int i = 0; i < x->set.n_apps; i++) {
        bool seen = false;
        for (size_t k = 0; k < x->n_judged && !seen; k++)
            seen = x->set.v[k].app == i;
        n += seen;
    }
    return n;
}

/* Where the measurements come from, as the entry is to say. @file: NULL: standard input. */
static const char *source_name(const struct events_verb *x, const char *file)
{
    if (x->options->source)
        return x->options->source;
    if (!file)
        return "standard input";
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static int write_entry(const struct events_verb *x, char **files,
                       const struct ws_score left_out[WS_SCORE_N])
{
    char text[sizeof(x->spec.calibrated)], time[40] = "";
    if (has_times(left_out))
        snprintf(time, sizeof(time), "time %.1f %%, ", left_out[WS_SCORE_TIME].mean);
    snprintf(text, sizeof(text), "power %.1f %%, %s%d applications, family left out; %s",
             left_out[WS_SCORE_POWER].mean, time, count_apps(x), source_name(x, *files));
    for (char *c = text; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = ' ';
    printf("calibrated = \"%s\"\n", text);
    if (!x->options->entry)
        return 0;
    struct ws_fit_plain plain = ws_fit_entry_plain(&x->gpu, &x->power, x->set.v, x->n_judged);
    int r = ws_fit_entry_write(x->options->entry, x->spec.name, &plain, &x->power,
                               has_times(left_out) ? &x->time : NULL, text);
    if (r == -ENOENT)
        ws_cli_error("%s: it is not there, or has no section gpu %s { }", x->options->entry,
                     x->spec.name);
    else if (r < 0)
        ws_cli_error("%s: %s", x->options->entry, strerror(-r));
    return r ? -EINVAL : 0;
}

/* A fit that nothing is left out of says nothing about other applications. */
static bool has_families(const struct events_verb *x)
{
    enum { FAMILIES_MIN = 4 };
    int n = 0;
    for (int f = 0; f < x->set.n_families; f++) {
        bool seen = false;
        for (size_t i = 0; i < x->n_judged && !seen; i++)
            seen = x->set.v[i].family == f;
        n += seen;
    }
    if (n < FAMILIES_MIN)
        ws_cli_error("measurements of %d families of applications are too few: at least %d are "
                     "needed, since each is predicted from the others",
                     n, FAMILIES_MIN);
    return n >= FAMILIES_MIN;
}

static int fit_and_put(struct events_verb *x, char **files)
{
    if (!has_families(x))
        return -EINVAL;
    struct ws_calibrate c = {.gpu = &x->gpu,
                             .v = x->set.v,
                             .n = x->set.n,
                             .n_families = x->set.n_families,
                             .prior = WS_CALIBRATE_PRIOR,
                             .idle_w = x->options->idle_w > 0 ? x->options->idle_w
                                                              : ws_event_power_idle_w(&x->gpu)};
    struct ws_score left_out[WS_SCORE_N] = {0};
    x->left_out = ws_alloc_array(x->set.n, sizeof(*x->left_out));
    int r = x->left_out ? ws_calibrate_leave_out(&c, x->left_out) : -ENOMEM;
    if (!r)
        r = ws_calibrate_power(&c, NULL, &x->power);
    if (!r)
        r = ws_calibrate_time(&c, NULL, &x->time);
    for (size_t i = 0; !r && i < x->set.n; i++)
        x->predicted[i] = ws_calibrate_predict(&x->gpu, &x->power, &x->time, &x->set.v[i]);
    if (!r)
        r = put_scores(x, left_out);
    if (!r) {
        putchar('\n');
        r = put_apps(x);
    }
    if (!r) {
        printf("\nvoltage: 1 + %.1f * (max(f, %.2f) - %.2f) at the share f of the core's clock\n",
               x->power.slope, x->power.knee, fmax(1, x->power.knee));
        r = put_terms(x, &c);
    }
    if (!r && has_times(left_out)) {
        putchar('\n');
        r = put_times(x);
    }
    return r ? r : write_entry(x, files, left_out);
}

static int check_and_put(struct events_verb *x)
{
    struct ws_score none[WS_SCORE_N];
    if (!ws_fit_entry_models(&x->spec, &x->power, &x->time)) {
        ws_cli_error("%s is uncalibrated: its entry of the catalog has no fitted numbers",
                     x->spec.name);
        return -EINVAL;
    }
    for (size_t i = 0; i < x->set.n; i++)
        x->predicted[i] = ws_calibrate_predict(&x->gpu, &x->power, &x->time, &x->set.v[i]);
    int r = put_scores(x, none);
    if (r)
        return r;
    putchar('\n');
    return put_apps(x);
}

static void put_clock(bool is_said, const char *column, double mhz)
{
    if (!is_said)
        printf("no launch has a %s: %g MHz is assumed\n", column, mhz);
}

/* What of the files was not taken as it stands. */
static void put_left_out(const struct events_verb *x)
{
    const struct ws_measured_set *s = &x->set;
    size_t n_untimed = 0;
    for (size_t i = 0; i < s->n; i++)
        n_untimed += isnan(s->v[i].rate_time_s);
    if (s->n_left_out)
        printf("%zu launches are left out: some of their events, or both time and power, were not "
               "measured\n",
               s->n_left_out);
    if (s->n_others)
        printf("%zu launches of other GPUs than %s are left out\n", s->n_others, s->gpu);
    for (size_t i = 0; i < s->n_assumed; i++)
        printf("%zu launches have no %s: %s is assumed\n", s->assumed[i].n, s->assumed[i].column,
               s->assumed[i].value);
    if (s->n_assumed)
        puts("the errors that the catalog states are of launches with all counters; doc/models.md "
             "says what each that is missing adds");
    put_clock(s->has_core_clock, "core_mhz", x->gpu.reference.core_mhz);
    put_clock(s->has_memory_clock, "mem_mhz", x->gpu.reference.memory_mhz);
    if (n_untimed)
        printf("%zu launches have no time: their power is predicted for the predicted time\n",
               n_untimed);
}

/* The files hold nothing that could be used; what they hold instead is said. */
static void say_none(const struct events_verb *x, char **files)
{
    ws_cli_error(
        "%s%s: no launches of %s with events to %s (%zu are of other GPUs; %zu lack some of "
        "their events, or both time and power)",
        files[0], files[1] ? " and the other files" : "", x->spec.name,
        x->options->check ? "predict" : "fit to", x->set.n_others, x->set.n_left_out);
}

int ws_fit_events(const struct ws_fit_events *options, char **files)
{
    struct events_verb x = {.options = options, .set.keeps_untimed = options->check};
    char *families[] = {(char *)options->families, NULL};
    char *more[] = {(char *)options->more, NULL};
    if (!find_gpu(&x, files)) {
        ws_measured_deinit(&x.set);
        return 1;
    }
    int r = options->families ? ws_cli_each_input(families, read_families, &x) : 0;
    if (!r)
        r = ws_cli_each_input(files, read_launches, &x);
    x.n_judged = x.set.n;
    if (!r && options->more)
        r = ws_cli_each_input(more, read_launches, &x);
    if (r > 0)
        x.failed = true;
    doubt_gpu(&x);
    if (r >= 0 && !x.n_judged) {
        say_none(&x, files);
        r = -EINVAL;
    }
    if (r >= 0) {
        printf("%s, %s: %s\n", x.spec.name, x.spec.product, ws_gpu_spec_calibrated(&x.spec));
        r = doubt_times(&x);
        put_left_out(&x);
        x.predicted = ws_alloc_array(x.set.n, sizeof(*x.predicted));
        if (!x.predicted)
            r = -ENOMEM;
        if (!r)
            r = options->check ? check_and_put(&x) : fit_and_put(&x, files);
    }
    if (r == -ENOMEM)
        ws_cli_error("out of memory");
    free(x.predicted);
    free(x.left_out);
    ws_measured_deinit(&x.set);
    return r || x.failed || fflush(stdout) ? 1 : 0;
}
