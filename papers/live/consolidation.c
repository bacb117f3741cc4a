// SPDX-License-Identifier: Apache-2.0
/* The consolidation paper's experiments with real processes: 1 to 12 instances of one program,
 * the mixes of Tables 5 to 8, and pairs of kernels for the error of the predictions.
 *
 * Instances are separate programs on a Tesla C1060 with the scaled clock. "serial" is policy
 * fifo, one job at a time. "manual" is one program that launches all instances' blocks itself.
 * "dynamic" is policy consolidate. "CPU" is the same work on the host's processor, all instances
 * at once, in the host's time. Kernels last in the paper's proportions (one second there is 25
 * us here), so times are compared as ratios. "simulated" is models/dispatch over the kernel's
 * time alone on the same GPU. Its power is what the meter showed of the same kernels one by one
 * (one instance, and two in one launch); nothing is taken from the software GPU's own numbers. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/experiments/experiment.h"
#include "papers/live/live.h"
#include "models/consolidate.h"

#define GPU "tesla-c1060"
#define MS_PER_S                                                                                   \
    0.025 /* of the paper's seconds: so short that no launch keeps the host busy for seconds */
#define TIME_SCALE  100.0
#define QUICK_SCALE 50.0
#define TIMEOUT_S   240.0
/* Jobs before those that count, where the daemon merges: it learns what the kernels need from
 * the first; of the second it would make one launch, and begins to make the template for it; it
 * has that by the time that all have gone on to wait (SETTLE_S, host time). The window holds
 * whoever comes first until all are there. */
enum { WARM = 3, WINDOW_MS = 1000 };
#define SETTLE_S    1.0
#define TIME_ERROR  0.12  /* what the paper states of its time model, */
#define POWER_ERROR 0.064 /* and of its power model */

enum program_kind { ENCRYPTION, SORTING, SEARCH, BLACKSCHOLES, MONTECARLO, N_KINDS };
static const struct {
    const char *name;
    int blocks;
    double paper_s; /* alone */
} kinds[N_KINDS] = {[ENCRYPTION] = {"encryption", 3, 45.7},
                    [SORTING] = {"sorting", 6, 40}, /* not printed */
                    [SEARCH] = {"search", 10, 35.2},
                    [BLACKSCHOLES] = {"blackscholes", 1, 34.2},
                    [MONTECARLO] = {"montecarlo", 1, 43.2}};

enum mode { ALONE, SERIAL, MANUAL, DYNAMIC, CPU };

struct mix_outcome {
    double ms, mj; /* from the first job's release to the last one's end */
    /* In which at least one kernel ran. A busy host makes @ms longer, but not this. */
    double kernels_ms, kernels_mj;
    uint64_t n_merged; /* launches made of several programs' */
};
struct live_part {
    enum program_kind kind;
    int n; /* instances */
};
struct live_study {
    struct ws_experiment_run *x;
    struct ws_gpu_spec spec;
    int length[N_KINDS]; /* 0: not found out yet */
    struct mix_outcome alone[N_KINDS];
    /* As the meter shows them: nothing runs; and above that, for a kernel alone, whatever the
     * number of its SMs, and for each of them. */
    double idle_w, rest_w[N_KINDS], sm_w[N_KINDS];
    struct ws_mix mix;
};

/* ---- one run ---- */

static int tasks_text(const struct live_study *s, const struct live_part *parts, int n_parts,
                      char *ret, size_t size)
{
    size_t n = 0;
    ret[0] = 0;
    for (int i = 0; i < n_parts && n < size; i++) {
        enum program_kind k = parts[i].kind;
        n += (size_t)snprintf(ret + n, size - n, "task %s { wcet_ms = %g }\n", kinds[k].name,
                              s->alone[k].ms > 0 ? s->alone[k].ms : kinds[k].paper_s * MS_PER_S);
    }
    return n < size ? 0 : -ENAMETOOLONG;
}

/* One program that launches all instances' blocks itself. */
static int add_by_hand(struct ws_live *l, const struct live_study *s, const struct live_part *parts,
                       int n_parts)
{
    const struct live_part *a = &parts[0], *b = &parts[1];
    if (n_parts == 1)
        return ws_live_addf(l, kinds[a->kind].name, "%s --length %d --instances %d --warm 1",
                            kinds[a->kind].name, s->length[a->kind], a->n);
    return ws_live_addf(l, kinds[a->kind].name,
                        "%s+%s --length %d --instances %d --length2 %d --instances2 %d --warm 1",
                        kinds[a->kind].name, kinds[b->kind].name, s->length[a->kind], a->n,
                        s->length[b->kind], b->n);
}

static int add_parts(struct ws_live *l, const struct live_study *s, const struct live_part *parts,
                     int n_parts, enum mode mode)
{
    if (mode == MANUAL)
        return add_by_hand(l, s, parts, n_parts) < 0 ? -1 : 0;
    for (int i = 0; i < n_parts; i++)
        for (int k = 0; k < parts[i].n; k++)
            if (ws_live_addf(l, kinds[parts[i].kind].name, "%s --length %d --seed %d --warm %d%s",
                             kinds[parts[i].kind].name, s->length[parts[i].kind], 100 * i + k + 1,
                             mode == DYNAMIC ? WARM : 1, mode == CPU ? " --cpu" : "") < 0)
                return -1;
    return 0;
}

/* Return: 0 or negative with a message printed. */
static int run_mix(struct live_study *s, const struct live_part *parts, int n_parts, enum mode mode,
                   struct mix_outcome *ret)
{
    struct ws_live l;
    char tasks[512], options[64], log[4096];
    int total = 0;
    for (int i = 0; i < n_parts; i++)
        total += parts[i].n;
    snprintf(options, sizeof(options), "\"threshold=%d\", \"window=%d\"", total, WINDOW_MS);
    snprintf(log, sizeof(log), "%s/%s.log", s->x->folder, s->x->name);
    bool dynamic = mode == DYNAMIC && total > 1;
    const char *policy = mode == SERIAL ? "fifo" : NULL;
    if (dynamic)
        policy = "consolidate";
    struct ws_live_wish wish = {.gpus = GPU,
                                .policy = policy,
                                .options = dynamic ? options : NULL,
                                .tasks = tasks,
                                .time_scale = s->x->quick ? QUICK_SCALE : TIME_SCALE,
                                .log = log,
                                .settle_s = dynamic ? SETTLE_S : 0};
    int r = tasks_text(s, parts, n_parts, tasks, sizeof(tasks));
    if (!r)
        r = ws_live_start(&l, &wish);
    else
        return r;
    if (!r)
        r = add_parts(&l, s, parts, n_parts, mode);
    if (!r)
        r = ws_live_run(&l, TIMEOUT_S);
    if (!r) {
        ret->ms = l.last_ms - l.first_ms;
        ret->kernels_ms = l.after[0].busy_ms - l.before[0].busy_ms;
        ret->n_merged = l.after[0].n_merged - l.before[0].n_merged;
        ret->mj = mode == CPU ? NAN : ws_live_energy_mj(&l, ret->ms);
        s->idle_w = l.before[0].power_w;
        ret->kernels_mj = ret->mj - s->idle_w * (ret->ms - ret->kernels_ms);
    }
    ws_live_stop(&l);
    return r ? -EIO : 0;
}

/* ---- how long kernels are ---- */

/* Power above idle while a kernel runs, from one instance of a program and from two in one launch,
 * which is on twice as many SMs. */
static int find_power(struct live_study *s, enum program_kind k)
{
    struct live_part two = {k, 2};
    struct mix_outcome b, *a = &s->alone[k];
    int r = run_mix(s, &two, 1, MANUAL, &b);
    if (r)
        return r;
    double one_w = a->kernels_mj / a->kernels_ms - s->idle_w,
           two_w = b.kernels_mj / b.kernels_ms - s->idle_w;
    s->sm_w[k] = (two_w - one_w) / kinds[k].blocks;
    s->rest_w[k] = one_w - kinds[k].blocks * s->sm_w[k];
    return 0;
}

/* The length with which one instance lasts as long as wanted, from two short runs; then its time
 * and energy alone. */
static int find_length(struct live_study *s, enum program_kind k)
{
    enum { SHORT = 8, LONG = 24 };
    struct live_part part = {k, 1};
    struct mix_outcome a, b;
    if (s->length[k])
        return 0;
    s->length[k] = SHORT;
    int r = run_mix(s, &part, 1, ALONE, &a);
    s->length[k] = LONG;
    if (!r)
        r = run_mix(s, &part, 1, ALONE, &b);
    s->length[k] = 0;
    if (r)
        return r;
    double each = WS_MAX((b.kernels_ms - a.kernels_ms) / (LONG - SHORT), 1e-5),
           wanted = kinds[k].paper_s * MS_PER_S;
    s->length[k] = WS_MAX((int)lround((wanted - a.kernels_ms) / each) + SHORT, 1);
    r = run_mix(s, &part, 1, ALONE, &s->alone[k]);
    return r ? r : find_power(s, k);
}

/* ---- what the model says of the same mix ---- */

static int simulate(struct live_study *s, const struct live_part *parts, int n_parts,
                    struct mix_outcome *ret)
{
    struct ws_mix_measured v[N_KINDS];
    for (int i = 0; i < n_parts; i++)
        v[i] = (struct ws_mix_measured){.alone_time = s->alone[parts[i].kind].kernels_ms,
                                        .alone_blocks = (uint32_t)kinds[parts[i].kind].blocks,
                                        .n_blocks =
                                            (uint32_t)(kinds[parts[i].kind].blocks * parts[i].n)};
    struct ws_mix_options o = {.policy = WS_DISPATCH_REDEAL, .occupancy = 4};
    int r = ws_mix_measured(&s->mix, s->spec.n_sms, v, (uint32_t)n_parts, &o, NULL);
    if (r)
        return r;
    const struct ws_block_schedule *d = &s->mix.dispatch;
    double rest_w = 0;
    for (int i = 0; i < n_parts; i++)
        rest_w += s->rest_w[parts[i].kind] / n_parts;
    *ret = (struct mix_outcome){.kernels_ms = d->makespan,
                                .kernels_mj = d->makespan * (s->idle_w + rest_w)};
    /* Blocks on an SM take turns at its power. The GPU counts the SMs of a launch to its end. */
    for (uint32_t i = 0; i < d->n_sms; i++) {
        double work = 0, w = 0;
        for (uint32_t b = d->sms[i].first; b != WS_DISPATCH_NONE; b = d->blocks[b].next) {
            double ms = d->blocks[b].end - d->blocks[b].start;
            work += ms;
            w += ms * s->sm_w[parts[d->blocks[b].kernel].kind];
        }
        ret->kernels_mj += work > 0 ? d->makespan * w / work : 0;
    }
    ret->ms = ret->kernels_ms;
    ret->mj = ret->kernels_mj;
    return 0;
}

static int study_init(struct live_study *s, struct ws_experiment_run *x)
{
    *s = (struct live_study){.x = x, .mix = WS_MIX_NULL};
    ws_experiment_gpus(GPU);
    return ws_live_gpu(GPU, &s->spec);
}

static int find_lengths(struct live_study *s, const struct live_part *parts, int n_parts)
{
    int r = 0;
    for (int i = 0; i < n_parts && !r; i++)
        r = find_length(s, parts[i].kind);
    return r;
}

/* Energy of the host's processors by RAPL in mJ; NAN where the kernel doesn't give it. */
static double host_mj(void)
{
    double uj = 0;
    for (int i = 0; i < 8; i++) {
        char path[64];
        double v;
        snprintf(path, sizeof(path), "/sys/class/powercap/intel-rapl:%d/energy_uj", i);
        FILE *f = fopen(path, "r");
        bool there = f && fscanf(f, "%lf", &v) == 1;
        if (f)
            fclose(f);
        if (!there)
            return i ? uj / 1e3 : NAN;
        uj += v;
    }
    return uj / 1e3;
}

static int run_cpu(struct live_study *s, const struct live_part *parts, int n_parts,
                   struct mix_outcome *ret)
{
    double before = host_mj();
    int r = run_mix(s, parts, n_parts, CPU, ret);
    ret->mj = host_mj() - before;
    return r;
}

static void print_cell(FILE *f, double v)
{
    if (isnan(v))
        fprintf(f, ",");
    else
        fprintf(f, ",%.4f", v);
}

/* ---- 1 to 12 instances ---- */

struct measured_point {
    int n;
    struct mix_outcome serial, manual, dynamic, cpu, simulated;
};

static int measure(struct live_study *s, const struct live_part *parts, int n_parts,
                   struct measured_point *p)
{
    int r = run_mix(s, parts, n_parts, SERIAL, &p->serial);
    if (!r)
        r = run_mix(s, parts, n_parts, MANUAL, &p->manual);
    if (!r)
        r = run_mix(s, parts, n_parts, DYNAMIC, &p->dynamic);
    if (!r)
        r = run_cpu(s, parts, n_parts, &p->cpu);
    if (!r)
        r = simulate(s, parts, n_parts, &p->simulated);
    return r;
}

static void put_point(FILE *f, const char *name, const struct measured_point *p)
{
    const struct mix_outcome *all[] = {&p->serial, &p->manual, &p->dynamic, &p->cpu, &p->simulated};
    fprintf(f, "%s", name);
    for (size_t i = 0; i < WS_ARRAY_SIZE(all); i++)
        print_cell(f, all[i]->ms);
    for (size_t i = 0; i < WS_ARRAY_SIZE(all); i++)
        print_cell(f, all[i]->mj);
    fputc('\n', f);
    fflush(f);
}

#define HEADS                                                                                      \
    "serial (ms),manual (ms),dynamic (ms),CPU (host's ms),simulated (ms),serial (mJ),manual "      \
    "(mJ),dynamic (mJ),CPU (mJ),simulated (mJ)\n"

static void compare_last(struct ws_experiment_run *x, enum program_kind k,
                         const struct measured_point *p)
{
    char text[96], note[96];
    snprintf(text, sizeof(text), "%d x %s: dynamic by serial, time", p->n, kinds[k].name);
    if (k == ENCRYPTION)
        ws_experiment_claim(x, "12 encryption clients: makespan at most 1/5 of serial",
                            p->dynamic.ms <= p->serial.ms / 5, "an aim of ours");
    snprintf(text, sizeof(text), "%d x %s: one launch for all", p->n, kinds[k].name);
    ws_experiment_claim(x, text, p->dynamic.n_merged == 1, "merged by the daemon");
    snprintf(text, sizeof(text), "%d x %s: dynamic by serial, time", p->n, kinds[k].name);
    ws_experiment_compare(x, text, NAN, p->dynamic.ms / p->serial.ms, 0, 0, "");
    snprintf(text, sizeof(text), "%d x %s: dynamic by serial, energy", p->n, kinds[k].name);
    if (k == ENCRYPTION)
        ws_experiment_claim(x, "12 encryption clients: energy at most 1/3 of serial",
                            p->dynamic.mj <= p->serial.mj / 3, "an aim of ours");
    ws_experiment_compare(x, text, NAN, p->dynamic.mj / p->serial.mj, 0, 0, "");
    snprintf(text, sizeof(text), "%d x %s: kernels, simulated and live (ms)", p->n, kinds[k].name);
    snprintf(note, sizeof(note), "\"paper\" is the simulator; by hand %.3f", p->manual.kernels_ms);
    ws_experiment_compare(x, text, p->simulated.kernels_ms, p->dynamic.kernels_ms, TIME_ERROR,
                          WS_SPREAD_RELATIVE, note);
    snprintf(text, sizeof(text), "%d x %s: kernels, simulated and live (mJ)", p->n, kinds[k].name);
    snprintf(note, sizeof(note), "\"paper\" is the simulator; by hand %.2f", p->manual.kernels_mj);
    ws_experiment_compare(x, text, p->simulated.kernels_mj, p->dynamic.kernels_mj, 0.05,
                          WS_SPREAD_RELATIVE, note);
}

static int run_instances(struct ws_experiment_run *x)
{
    static const int all[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, few[] = {12};
    const int *ns = x->quick ? few : all, n = x->quick ? 1 : 12;
    struct live_study s;
    struct measured_point p = {0};
    int r = study_init(&s, x);
    for (int k = ENCRYPTION; k <= (x->quick ? ENCRYPTION : SORTING) && !r; k++) {
        char name[64], commands[512];
        snprintf(name, sizeof(name), "live-consolidation-%s", kinds[k].name);
        FILE *f = ws_experiment_csv(x, name);
        if (!f) {
            r = -EIO;
            break;
        }
        fprintf(f, "instances," HEADS);
        struct live_part part = {(enum program_kind)k, 1};
        r = find_length(&s, part.kind);
        for (int i = 0; i < n && !r; i++) {
            char row[16];
            p.n = part.n = ns[i];
            snprintf(row, sizeof(row), "%d", ns[i]);
            r = measure(&s, &part, 1, &p);
            if (!r)
                put_point(f, row, &p);
        }
        if (fclose(f) && !r)
            r = -EIO;
        if (r)
            break;
        compare_last(x, part.kind, &p);
        snprintf(commands, sizeof(commands),
                 "set title '%s instances on a Tesla C1060'\nset xlabel 'instances'\nset ylabel "
                 "'ms'\nset y2label 'mJ'\nset y2tics\nplot for [i in '2 3 4 6'] '%s.csv' using "
                 "1:int(i) with linespoints, for [i in '7 8 9 11'] '' using 1:int(i) axes x1y2 "
                 "with lines dashtype 2",
                 kinds[k].name, name);
        ws_experiment_plot(x, name, commands);
    }
    ws_mix_deinit(&s.mix);
    return r;
}

const struct ws_experiment ws_experiment_live_consolidation = {
    "live-consolidation", "Consolidation 2011, Figs. 1 and 7",
    "1 to 12 instances of encryption and of sorting: CPU, serial, by hand, merged by the daemon",
    run_instances};

/* ---- the mixes of Tables 5 to 8 ---- */

struct mix_row {
    struct live_part parts[2];
    const char *name;
    double serial_s, dynamic_s, serial_j, dynamic_j; /* printed */
};
static const struct mix_row mixes[] = {
    {{{SEARCH, 1}, {BLACKSCHOLES, 1}}, "1S+1B", 69.4, 38.1, 25730.32, 14139.86},
    {{{SEARCH, 1}, {BLACKSCHOLES, 10}}, "1S+10B", 377.2, 40.2, 151902.1, 16197.95},
    {{{SEARCH, 2}, {BLACKSCHOLES, 10}}, "2S+10B", 412.5, 41.1, 168271.2, 16788.66},
    {{{SEARCH, 1}, {BLACKSCHOLES, 20}}, "1S+20B", 719.2, 43.4, 294683.6, 17786.41},
    {{{ENCRYPTION, 1}, {MONTECARLO, 1}}, "1E+1M", 88.9, 57.2, 32058.44, 20648.01},
    {{{ENCRYPTION, 3}, {MONTECARLO, 3}}, "3E+3M", 266.8, 57.5, 100838.4, 21746.46},
    {{{ENCRYPTION, 4}, {MONTECARLO, 12}}, "4E+12M", 701.5, 57.8, 271439.5, 22380.19},
    {{{ENCRYPTION, 5}, {MONTECARLO, 15}}, "5E+15M", 876.9, 59.9, 340546.2, 23263.51},
};

static int run_mixes(struct ws_experiment_run *x)
{
    struct live_study s;
    int r = study_init(&s, x);
    FILE *f = r ? NULL : ws_experiment_csv(x, "live-consolidation-mixes");
    if (!f)
        return r ? r : -EIO;
    fprintf(f, "mix," HEADS);
    bool faster = true, merged = true;
    for (size_t i = 0; i < WS_ARRAY_SIZE(mixes) && !r; i += x->quick ? 5 : 1) {
        const struct mix_row *m = &mixes[i];
        struct measured_point p;
        char text[96], note[128];
        r = find_lengths(&s, m->parts, 2);
        if (!r)
            r = measure(&s, m->parts, 2, &p);
        if (r)
            break;
        put_point(f, m->name, &p);
        faster &= p.dynamic.ms < p.serial.ms;
        merged &= p.dynamic.n_merged > 0;
        snprintf(text, sizeof(text), "%s: serial by dynamic, time", m->name);
        snprintf(note, sizeof(note), "serial %.2f ms, dynamic %.2f ms, simulated %.2f ms",
                 p.serial.ms, p.dynamic.ms, p.simulated.ms);
        ws_experiment_compare(x, text, m->serial_s / m->dynamic_s, p.serial.ms / p.dynamic.ms,
                              2 * TIME_ERROR, WS_SPREAD_RELATIVE, note);
        snprintf(text, sizeof(text), "%s: serial by dynamic, energy", m->name);
        snprintf(note, sizeof(note),
                 "%.1f and %.1f mJ, simulated %.1f; printed: the node, serial by merged power",
                 p.serial.mj, p.dynamic.mj, p.simulated.mj);
        ws_experiment_compare(x, text, m->serial_j / m->dynamic_j, p.serial.mj / p.dynamic.mj, 0.5,
                              WS_SPREAD_RELATIVE, note);
    }
    ws_mix_deinit(&s.mix);
    if (fclose(f) && !r)
        r = -EIO;
    if (r)
        return r;
    ws_experiment_claim(x, "merged is faster than serial in every mix", faster, "");
    ws_experiment_claim(x, "every mix has launches of several programs", merged, "");
    ws_experiment_plot(x, "live-consolidation-mixes",
                       "set style data histograms\nset style fill solid 0.7\nset ylabel 'ms'\nplot "
                       "'live-consolidation-mixes.csv' using 2:xtic(1), '' using 4, '' using 6\n");
    return 0;
}

const struct ws_experiment ws_experiment_live_consolidation_mixes = {
    "live-consolidation-mixes", "Consolidation 2011, Tables 5 to 8",
    "mixes of Search and BlackScholes, Encryption and Monte Carlo", run_mixes};

/* ---- prediction errors on pairs ---- */

/* Predictions are of merged launches, but on a busy host a program may come too late for the
 * window, which is of the host's time. */
static int run_merged(struct live_study *s, const struct live_part parts[2],
                      struct mix_outcome *ret)
{
    enum { TRIES = 4 };
    int r = 0;
    ret->n_merged = 0;
    for (int i = 0; i < TRIES && !r && !ret->n_merged; i++)
        r = run_mix(s, parts, 2, DYNAMIC, ret);
    if (!r && !ret->n_merged) {
        ws_cli_error("%s and %s were not merged in %d tries", kinds[parts[0].kind].name,
                     kinds[parts[1].kind].name, TRIES);
        r = -EIO;
    }
    return r;
}

static int run_pairs(struct ws_experiment_run *x)
{
    static const int counts[][2] = {{1, 1}, {2, 4}, {3, 2}};
    struct live_study s;
    int r = study_init(&s, x), n = 0;
    double time_error = 0, power_error = 0;
    FILE *f = r ? NULL : ws_experiment_csv(x, "live-consolidation-pairs");
    if (!f)
        return r ? r : -EIO;
    fprintf(f, "pair,live (ms),simulated (ms),live (W),simulated (W)\n");
    for (int a = 0; a < N_KINDS && !r; a++)
        for (int b = a + 1; b < N_KINDS && !r; b++)
            for (size_t c = 0; c < (x->quick ? 1 : WS_ARRAY_SIZE(counts)) && !r; c++) {
                struct live_part parts[] = {{(enum program_kind)a, counts[c][0]},
                                            {(enum program_kind)b, counts[c][1]}};
                struct mix_outcome live, sim;
                r = find_lengths(&s, parts, 2);
                if (!r)
                    r = run_merged(&s, parts, &live);
                if (!r)
                    r = simulate(&s, parts, 2, &sim);
                if (r)
                    break;
                double live_w = live.kernels_mj / live.kernels_ms,
                       sim_w = sim.kernels_mj / sim.kernels_ms;
                fprintf(f, "%d %s + %d %s,%.4f,%.4f,%.3f,%.3f\n", parts[0].n, kinds[a].name,
                        parts[1].n, kinds[b].name, live.kernels_ms, sim.kernels_ms, live_w, sim_w);
                fflush(f);
                time_error += fabs(sim.kernels_ms / live.kernels_ms - 1);
                power_error += fabs(sim_w / live_w - 1);
                n++;
            }
    ws_mix_deinit(&s.mix);
    if (fclose(f) && !r)
        r = -EIO;
    if (r)
        return r;
    char note[96];
    snprintf(note, sizeof(note), "mean of %d pairs: %.1f %%", n, 100 * time_error / n);
    ws_experiment_claim(x, "time predicted within 12 % in the mean", time_error / n <= TIME_ERROR,
                        note);
    snprintf(note, sizeof(note), "mean of %d pairs: %.1f %%", n, 100 * power_error / n);
    ws_experiment_claim(x, "power predicted within 6.4 % in the mean",
                        power_error / n <= POWER_ERROR, note);
    ws_experiment_plot(x, "live-consolidation-pairs",
                       "set xlabel 'live (ms)'\nset ylabel 'simulated (ms)'\nplot "
                       "'live-consolidation-pairs.csv' using 2:3 with points, x notitle");
    return 0;
}

const struct ws_experiment ws_experiment_live_consolidation_pairs = {
    "live-consolidation-pairs", "Consolidation 2011, VIII",
    "error of predicted time and power on pairs of kernels", run_pairs};
