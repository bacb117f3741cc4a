// SPDX-License-Identifier: Apache-2.0
/* Measures what predictions cost: one kernel, mixes of kernels, dealing of blocks, one decision of
 * the policy consolidate, counting PTX, and the store of profiles. Each row is the median of
 * several rounds; the last column compares with a row of the same run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "models/consolidate.h"
#include "models/power.h"
#include "models/store.h"
#include "policy/policy.h"
#include "ptx/analysis/count.h"

enum { ROUNDS = 7 };
static volatile double sink; /* keeps results alive */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median time of one call in ns: rounds of about 20 ms each. */
static double time_of(void (*work)(void *arg), void *arg)
{
    double round[ROUNDS];
    uint64_t n = 1, took = 0;
    while (took < 5 * WS_NS_PER_MS) {
        n *= 2;
        uint64_t before = ws_clock_ns();
        for (uint64_t i = 0; i < n; i++)
            work(arg);
        took = ws_clock_ns() - before;
    }
    n = n * 20 * WS_NS_PER_MS / took + 1;
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t before = ws_clock_ns();
        for (uint64_t i = 0; i < n; i++)
            work(arg);
        round[r] = (double)(ws_clock_ns() - before) / (double)n;
    }
    qsort(round, ROUNDS, sizeof(*round), by_value);
    return round[ROUNDS / 2];
}

static void row(const char *what, double ns, const char *than, double base_ns)
{
    printf("%-52s %12.3g us %14.4g /s", what, ns / 1e3, 1e9 / ns);
    if (than)
        printf("   %.3g x %s", ns / base_ns, than);
    putchar('\n');
}

static const struct ws_mwp_kernel kernels[] = {{256, 15, 2, 400, 10, 6, 16, 4},
                                               {128, 45, 2, 900, 12, 0, 1, 2},
                                               {64, 30, 2, 120, 2, 1, 8, 0},
                                               {384, 60, 2, 46, 10, 0, 2, 6}};

struct mixing {
    struct ws_mix m;
    struct ws_mix_part parts[4];
    uint32_t n;
    struct ws_mix_options o;
};

static void one_kernel(void *arg)
{
    struct ws_mwp_result r;
    if (ws_mwp_predict(&r, ws_mwp_gpu_find("TeslaC1060"), &kernels[0], 0, NULL))
        abort();
    sink = r.total_cycles;
}

static void one_mix(void *arg)
{
    struct mixing *x = arg;
    if (ws_mix_predict(&x->m, ws_mwp_gpu_find("TeslaC1060"), x->parts, x->n, &x->o, NULL))
        abort();
    sink = x->m.total_cycles;
}

/* ---- decisions ---- */

enum { N_SM = 30, MAX_JOBS = 2000 };
struct world {
    struct ws_policy *p;
    const struct ws_policy_ops *ops;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpu;
    struct ws_policy_cost costs[2];
    struct ws_policy_task tasks[2];
    int template_tasks[2], template_max[2];
    struct ws_policy_template template;
    struct ws_policy_run slot;
    struct ws_policy_gpu_state state;
    struct ws_policy_job jobs[MAX_JOBS];
    struct ws_policy_system system;
    struct ws_policy_snapshot snap;
    struct ws_policy_decisions d;
};

static void one_decision(void *arg)
{
    struct world *w = arg;
    const struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    w->d.n = 0;
    if (w->ops->decide(w->p, &w->snap, &e, &w->d) || !w->d.n)
        abort();
}

static double decide_with(int n_jobs)
{
    static const struct ws_power_model power = {.a_comp_w = 40, .a_gmem_w = 500, .lambda_w = 14};
    static const char *const options[] = {"threshold=1", NULL};
    struct world *w = calloc(1, sizeof(*w));
    char error[128];
    if (!w)
        abort();
    w->ops = ws_policy_find("consolidate");
    w->type = (struct ws_policy_gpu_type){.name = "tesla-c1060",
                                          .n_sm = N_SM,
                                          .static_w = 45,
                                          .mwp = ws_mwp_gpu_find("TeslaC1060"),
                                          .power = &power};
    w->gpu = (struct ws_policy_gpu){.sm_limit = N_SM, .n_slots = 1, .server = -1};
    for (int i = 0; i < 2; i++) {
        w->costs[i] = (struct ws_policy_cost){.model = &kernels[i]};
        w->tasks[i] = (struct ws_policy_task){.id = i, .cost = &w->costs[i]};
        w->template_tasks[i] = i;
        w->template_max[i] = 16;
    }
    w->template = (struct ws_policy_template){w->template_tasks, w->template_max, 2};
    w->slot.job = -1;
    w->state = (struct ws_policy_gpu_state){.slots = &w->slot, .n_slots = 1, .power = WS_GPU_ON};
    w->system = (struct ws_policy_system){&w->type, &w->gpu, w->tasks, &w->template, 1, 1, 2, 1};
    for (int i = 0; i < n_jobs; i++)
        w->jobs[i] = (struct ws_policy_job){
            .id = (uint64_t)i, .seq = (uint64_t)i, .task = i % 2, .deadline = INFINITY, .gpu = -1};
    w->snap = (struct ws_policy_snapshot){
        .system = &w->system, .gpus = &w->state, .jobs = w->jobs, .n_jobs = n_jobs};
    if (w->ops->make(&w->p, options, error, sizeof(error)))
        abort();
    double ns = time_of(one_decision, w);
    w->ops->free(w->p);
    ws_policy_decisions_deinit(&w->d);
    free(w);
    return ns;
}

/* ---- PTX and the store ---- */

static void one_count(void *arg)
{
    const struct ws_ptx_module *m = arg;
    struct ws_ptx_counts c;
    if (ws_ptx_count(m, &m->funcs[0], NULL, &c))
        abort();
    sink = c.total;
}

/* A thousand instructions: loads, arithmetic, a loop. */
static struct ws_ptx_module *make_module(void)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    fprintf(f, ".version 8.0\n.target sm_75\n.address_size 64\n.entry k(.param .u64 a) {\n"
               ".reg .b32 %%r<400>; .reg .b64 %%d<400>; .reg .f32 %%f<400>; .reg .pred %%p;\n"
               "ld.param.u64 %%d0, [a]; mov.u32 %%r0, %%tid.x; mov.u32 %%r399, 0;\n$L:\n");
    for (int i = 1; i < 250; i++)
        fprintf(
            f,
            "add.s32 %%r%d, %%r0, %d; mul.wide.s32 %%d%d, %%r%d, 4; add.s64 %%d%d, %%d0, %%d%d;\n"
            "ld.global.f32 %%f%d, [%%d%d];\n",
            i, i, i, i, i % 100 + 280, i, i, i % 100 + 280);
    fprintf(f, "add.s32 %%r399, %%r399, 1; setp.lt.s32 %%p, %%r399, 8; @%%p bra $L; ret; }\n");
    fclose(f);
    struct ws_ptx_module *m;
    if (ws_ptx_parse(&m, text, len, "bench", NULL))
        abort();
    free(text);
    return m;
}

struct storing {
    struct ws_store *s;
    struct ws_profile p;
};

static void one_get(void *arg)
{
    struct storing *x = arg;
    struct ws_profile p;
    if (ws_store_get(x->s, &x->p.key, &p))
        abort();
    sink = p.h2d_ms;
    ws_profile_deinit(&p);
}

static void bench_store(void)
{
    char folder[] = "/tmp/bench-store-XXXXXX", path[64];
    struct storing x = {0};
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof(path), "%s/p.db", folder);
    if (ws_store_open(&x.s, path, WS_STORE_WRITE, NULL) ||
        ws_profile_key_set(&x.p.key, "0123456789abcdef", "rtx3070", ""))
        abort();
    for (uint32_t sm = 1; sm <= 46; sm++)
        if (ws_profile_add_run(&x.p, sm, 1.0 / sm, 100))
            abort();
    uint64_t before = ws_clock_ns();
    enum { N = 1000 };
    if (ws_store_begin(x.s))
        abort();
    for (int i = 0; i < N; i++) {
        char hash[32];
        snprintf(hash, sizeof(hash), "%016x", i);
        strcpy(x.p.key.hash, hash);
        if (ws_store_put(x.s, &x.p))
            abort();
    }
    if (ws_store_commit(x.s, true))
        abort();
    double put_ns = (double)(ws_clock_ns() - before) / N;
    row("profile of 46 points: put (1000 in one transaction)", put_ns, NULL, 0);
    row("profile of 46 points: get", time_of(one_get, &x), "put", put_ns);
    FILE *f = tmpfile();
    before = ws_clock_ns();
    struct ws_store_import done;
    if (!f || ws_store_export(x.s, f))
        abort();
    row("profile of 46 points: to CSV", (double)(ws_clock_ns() - before) / N, "put", put_ns);
    rewind(f);
    before = ws_clock_ns();
    if (ws_store_import(x.s, f, "csv", &done, NULL) || done.n_profiles != N)
        abort();
    row("profile of 46 points: from CSV", (double)(ws_clock_ns() - before) / N, "put", put_ns);
    fclose(f);
    ws_profile_deinit(&x.p);
    ws_store_close(x.s);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    struct mixing x = {.n = 4, .o = {.policy = WS_DISPATCH_RR}};
    for (int i = 0; i < 4; i++)
        x.parts[i].kernel = kernels[i];
    double one = time_of(one_kernel, NULL);
    row("MWP-CWP, one kernel", one, NULL, 0);
    struct mixing small = x;
    small.parts[0].kernel.n_blocks = small.parts[1].kernel.n_blocks = 10;
    small.parts[2].kernel.n_blocks = small.parts[3].kernel.n_blocks = 5;
    row("mix of 4 kernels, type 1", time_of(one_mix, &small), "one kernel", one);
    double counted = time_of(one_mix, &x);
    row("mix of 4 kernels, 150 blocks, all resident", counted, "one kernel", one);
    struct mixing dealt = x;
    dealt.m = WS_MIX_NULL;
    dealt.o = (struct ws_mix_options){.policy = WS_DISPATCH_REDEAL, .occupancy = 2};
    row("the same, redealt at occupancy 2", time_of(one_mix, &dealt), "all resident", counted);
    for (int i = 0; i < 4; i++)
        dealt.parts[i].kernel.n_blocks *= 100;
    row("the same with 15,000 blocks", time_of(one_mix, &dealt), "all resident", counted);
    ws_mix_deinit(&x.m);
    ws_mix_deinit(&small.m);
    ws_mix_deinit(&dealt.m);
    double twelve = decide_with(12);
    row("consolidate: a decision over 12 waiting jobs", twelve, "one kernel", one);
    row("consolidate: 100 jobs", decide_with(100), "12 jobs", twelve);
    row("consolidate: 2,000 jobs", decide_with(2000), "12 jobs", twelve);
    struct ws_ptx_module *m = make_module();
    row("PTX: counting a kernel of 1,000 instructions", time_of(one_count, m), NULL, 0);
    ws_ptx_module_free(m);
    bench_store();
    return 0;
}
