// SPDX-License-Identifier: Apache-2.0
/* Measures power and energy, partitions by green contexts, and fused launches against the same
 * kernels by themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "models/lsq.h"
#include "ptx/passes/pass.h"
#include "tests/gpu/probe.h"

#define SUITE probe_suite

static struct ws_nvml *counter(void)
{
    static char why[160] = "no energy counter";
    struct ws_nvml *n = probe_nvml(why, sizeof(why));
    uint64_t mj, ns;
    if (!n)
        probe_skip(why);
    if (!ws_nvml_read(n, WS_NVML_ENERGY, &mj)) {
        const char *text = ws_nvml_why_not(n, WS_NVML_ENERGY);
        probe_skip(text ? text : "the energy counter does not answer");
    }
    if (!probe_edge(n, &ns))
        probe_skip("the energy counter does not move");
    return n;
}

static uint32_t rounds(void)
{
    return suite_target.mock ? 10 : 20000;
}

/* ---- power against active SMs ---- */

/* P = powered + each · n, by least squares; what is left of "powered" over the idle context is SMs
 * that wait while others work. */
static void fit_power(const double *watts, const uint32_t *sms, size_t n, double idle_w)
{
    static const char *const names[] = {"powered", "active SMs"};
    double rows[2 * 16], y[16], x[2], rss = 0, mean = 0, total = 0;
    struct ws_diags d = WS_DIAGS_NULL;
    for (size_t k = 0; k < n; k++) {
        rows[2 * k] = 1;
        rows[2 * k + 1] = sms[k];
        y[k] = watts[k];
        mean += watts[k] / (double)n;
    }
    for (size_t k = 0; k < n; k++)
        total += (watts[k] - mean) * (watts[k] - mean);
    int r = ws_lsq_solve(rows, y, n, 2, names, "power fit", x, &rss, &d);
    probe_must(!r, d.n ? d.v[0].text : "the fit of power fails");
    ws_diags_deinit(&d);
    double idle_each = WS_MAX((x[0] - idle_w) / SUITE.device->spec.n_sms, 0.0);
    probe_line("W", x[0], "fit: powered, nothing active");
    probe_line("W", x[1], "fit: each active SM");
    probe_line("W", idle_each, "fit: each idle SM while others are active");
    probe_line("W", x[1] + idle_each, "fit: each active SM over none at all");
    probe_line("1", total > 0 ? 1 - rss / total : 0, "fit: R2");
}

void probe_section_power(void)
{
    probe_begin(false);
    struct ws_nvml *nvml = counter();
    uint32_t n = SUITE.device->spec.n_sms,
             sizes[] = {WS_MAX(n / 8, 1u), n / 4, n / 2, n * 3 / 4, n};
    double watts[WS_ARRAY_SIZE(sizes)], idle_w;
    uint64_t p = suite_alloc(&SUITE, 0, 1 << 18), t0, t1, e0, e1, mhz = 0;
    e0 = probe_edge(nvml, &t0);
    usleep((useconds_t)(probe_seconds * 2e5));
    e1 = probe_edge(nvml, &t1);
    idle_w = (double)(e1 - e0) * 1e6 / (double)(t1 - t0);
    probe_line("W", idle_w, "context idle");
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct ws_sm_set set = {0};
        uint64_t given = 0;
        for (uint32_t i = 0; i < sizes[k] && sizes[k] < n; i++)
            ws_sm_set_add(&set, i);
        e0 = probe_edge(nvml, &t0);
        do {
            struct suite_op o = probe_launch(P_MULTIPLY, n * 8, 256, p, rounds());
            o.op.launch.sms = set;
            probe_run(&o);
            given += o.op.energy_uj;
        } while (probe_now_ns() - t0 < (uint64_t)(probe_seconds * 1e9));
        ws_nvml_read(nvml, WS_NVML_SM_CLOCK, &mhz);
        e1 = probe_edge(nvml, &t1);
        probe_must(e0 && e1, "the energy counter stopped moving");
        watts[k] = (double)(e1 - e0) * 1e6 / (double)(t1 - t0);
        probe_line("W", watts[k], "multiply-add on %u SMs", sizes[k]);
        probe_line("MHz", (double)mhz, "multiply-add on %u SMs: SM clock", sizes[k]);
        probe_line("ratio", (double)given / 1e3 / WS_MAX((double)(e1 - e0), 1e-9),
                   "multiply-add on %u SMs: given to the operations / board counter", sizes[k]);
    }
    fit_power(watts, sizes, WS_ARRAY_SIZE(sizes), idle_w);
    ws_nvml_close(nvml);
    probe_end();
}

/* ---- clients' energy against the board's counter ---- */

enum { LOOK_US = 1100000 };

void probe_section_energy(void)
{
    static const uint32_t weight[SUITE_CLIENTS] = {3, 1};
    struct ws_device_telemetry before, after;
    struct ws_dinstance *second = NULL;
    uint64_t t0, t1, e0, e1, uj[SUITE_CLIENTS] = {0}, n_launches = 0, p[SUITE_CLIENTS];
    probe_begin(false);
    struct ws_nvml *nvml = counter();
    second = probe_instance_of(1);
    for (int c = 0; c < SUITE_CLIENTS; c++)
        p[c] = suite_alloc(&SUITE, c, 1 << 18);
    /* An idle device looks at the counter each second: both windows begin and end behind such a
     * look. */
    usleep(LOOK_US);
    ws_device_telemetry(SUITE.device, &before);
    probe_must(ws_nvml_read(nvml, WS_NVML_ENERGY, &e0), "the energy counter fails");
    t0 = probe_now_ns();
    do {
        struct suite_op o[SUITE_CLIENTS];
        for (int c = 0; c < SUITE_CLIENTS; c++) {
            o[c] = probe_launch(P_MULTIPLY, SUITE.device->spec.n_sms * 4 * weight[c], 256, p[c],
                                rounds());
            o[c].op.space = SUITE.space[c];
            o[c].op.launch.instance = c ? second : probe_instance;
            suite_submit(&SUITE, &o[c]);
        }
        for (int c = 0; c < SUITE_CLIENTS; c++) {
            suite_wait(&o[c]);
            probe_must(!o[c].op.error, o[c].op.text);
            uj[c] += o[c].op.energy_uj;
            n_launches++;
        }
    } while (probe_now_ns() - t0 < (uint64_t)(probe_seconds * 1e9));
    usleep(LOOK_US);
    ws_device_telemetry(SUITE.device, &after);
    probe_must(ws_nvml_read(nvml, WS_NVML_ENERGY, &e1), "the energy counter fails");
    t1 = probe_now_ns();
    double board = (double)(e1 - e0) / 1e3,
           device = (double)(after.energy_uj - before.energy_uj) / 1e6, all = 0;
    probe_must(e1 > e0, "the energy counter stopped moving");
    for (int c = 0; c < SUITE_CLIENTS; c++) {
        probe_line("J", (double)uj[c] / 1e6, "client %d, of weight %u", c, weight[c]);
        all += (double)uj[c] / 1e6;
    }
    probe_line("launches", (double)n_launches, "launches");
    probe_line("J", all, "given to clients");
    probe_line("J", device, "what the device says it took");
    probe_line("J", board, "what the board's counter says");
    probe_line("ratio", all / board, "given / counter");
    probe_line("ratio", device / board, "device / counter");
    /* What the device has not looked at yet, or had not at the beginning: at most that long, at the
     * mean power. */
    double slack = board * 2 * LOOK_US * 1e3 / (double)(t1 - t0);
    if (!suite_target.mock) { /* whose energy is of the host's time, stalls and all */
        probe_must(all <= device + slack, "clients were given more than the device took");
        probe_must(device <= board + slack, "the device says more than the board's counter");
    }
    ws_device_instance_free(SUITE.device, second);
    ws_nvml_close(nvml);
    probe_end();
}

/* ---- green contexts ---- */

/* A cooperative launch isn't rewritten, so only a green context keeps it to a set. */
static uint32_t outside(const char *name, const struct ws_sm_set *set)
{
    uint32_t n = WS_MIN(SUITE.device->spec.n_sms * 2, 2u * WS_SM_MAX), out = 0,
             *v = ws_alloc_array(n, sizeof(*v));
    uint64_t where = suite_alloc(&SUITE, 0, n * 4), times = suite_alloc(&SUITE, 0, n * 4);
    struct ws_sm_set used = {0};
    probe_must(v != NULL, "no memory");
    struct suite_op o = suite_launch(&SUITE, 0, K_SMID, n, 64, where, times, 0, 0);
    o.op.launch.flags = WS_LAUNCH_COOPERATIVE;
    o.op.launch.sms = *set;
    probe_run(&o);
    suite_get(&SUITE, 0, v, where, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        out += v[i] >= WS_SM_MAX || !ws_sm_set_has(set, v[i]);
        if (v[i] < WS_SM_MAX)
            ws_sm_set_add(&used, v[i]);
    }
    probe_line("SMs", used.n, "%s: SMs used of %u", name, set->n);
    probe_line("blocks", out, "%s: blocks outside the set of %u", name, n);
    free(v);
    return out;
}

void probe_section_green(void)
{
    probe_begin(false);
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(SUITE.device);
    for (uint32_t k = 0; k < c->n; k++)
        if (!strcmp(c->v[k].name, "green contexts")) {
            printf("%s,support,%d,\"%s\"\n", probe_section, c->v[k].yes, c->v[k].how);
            if (!c->v[k].yes)
                probe_skip(c->v[k].how);
        }
    uint32_t n = SUITE.device->spec.n_sms;
    struct ws_sm_set half = {0}, most = {0}, last = {0};
    for (uint32_t sm = 0; sm + 1 < n; sm++)
        ws_sm_set_add(&most, sm);
    for (uint32_t sm = 0; sm < n / 2; sm++)
        ws_sm_set_add(&half, sm);
    for (uint32_t sm = 1; sm < n; sm++)
        ws_sm_set_add(&last, sm);
    (void)outside("lower half", &half); /* kept only if a group's SMs lie in it */
    /* All but one SM: all groups but one at least lie in it. */
    uint32_t out = outside("all but the last", &most) + outside("all but the first", &last);
    probe_must(!out, "a green context's kernel ran outside it, or there was none after all");
    probe_end();
}

/* ---- fused launches ---- */

enum { MEMBERS_MAX = 16, REGION = 1 << 18, THREADS = 128 };

struct fusion {
    struct probe_native n;
    ws_cu_module plain, fused;
    ws_cu_function one, all;
    ws_cu_stream streams[MEMBERS_MAX];
    ws_cu_ptr p;
    uint32_t members, blocks, rounds;
    struct ws_ptx_fused what;
    struct ws_ptx_fuse_launch launch;
    uint8_t *params;
};

static ws_cu_module load(struct probe_native *n, const struct ws_ptx_module *m)
{
    char *text = NULL;
    size_t len = 0;
    ws_cu_module ret = NULL;
    FILE *f = open_memstream(&text, &len);
    probe_must(f && !ws_ptx_print(m, f) && !fclose(f), "no memory");
    probe_must(!n->cu.cuModuleLoadDataEx(&ret, text, 0, NULL, NULL),
               "the driver does not take the fused kernel");
    free(text);
    return ret;
}

struct work_params {
    uint64_t p;
    uint32_t rounds;
};

static void make_fused(struct fusion *x)
{
    struct ws_ptx_module *m = NULL;
    uint32_t funcs[MEMBERS_MAX];
    struct ws_ptx_fuse_work work[MEMBERS_MAX] = {0};
    struct work_params own[MEMBERS_MAX];
    char why[160];
    probe_must(!ws_ptx_parse(&m, probe_ptx, strlen(probe_ptx), "probe.ptx", NULL), "no memory");
    const struct ws_ptx_func *f = ws_ptx_find_func(m, "multiply");
    for (uint32_t k = 0; k < x->members; k++) {
        funcs[k] = (uint32_t)(f - m->funcs);
        own[k] = (struct work_params){x->p + (uint64_t)k * REGION, x->rounds};
        work[k] = (struct ws_ptx_fuse_work){
            .grid = {x->blocks, 1, 1}, .block = {THREADS, 1, 1}, .params = &own[k]};
    }
    probe_must(!ws_ptx_fuse_refused(m, funcs[0], why, sizeof(why)), why);
    probe_must(!ws_ptx_fuse_make(m, funcs, x->members, true, "fused", &x->what),
               "the kernels can't be fused");
    x->params = ws_alloc(x->what.param_bytes);
    probe_must(x->params && !ws_ptx_fuse_launch(&x->what, work, x->params, &x->launch),
               "the launches can't be fused");
    x->fused = load(&x->n, m);
    probe_must(!x->n.cu.cuModuleGetFunction(&x->all, x->fused, "fused"), "no fused kernel");
    ws_ptx_module_free(m);
}

enum how { SERIAL, STREAMS, FUSED, _HOW_N };
static const char *const how_names[] = {"one after another", "on streams", "fused"};

static void do_all(struct fusion *x, enum how how)
{
    const uint32_t grid[3] = {x->blocks, 1, 1}, block[3] = {THREADS, 1, 1};
    struct ws_cu *cu = &x->n.cu;
    if (how == FUSED) {
        probe_native_launch(&x->n, x->n.stream, x->all, x->launch.grid, x->launch.block, x->params,
                            x->what.param_bytes);
        probe_must(!cu->cuStreamSynchronize(x->n.stream), "wait");
        return;
    }
    for (uint32_t k = 0; k < x->members; k++) {
        struct work_params own = {x->p + (uint64_t)k * REGION, x->rounds};
        ws_cu_stream s = how == STREAMS ? x->streams[k] : x->n.stream;
        probe_native_launch(&x->n, s, x->one, grid, block, &own, sizeof(own));
        if (how == SERIAL)
            probe_must(!cu->cuStreamSynchronize(s), "wait");
    }
    for (uint32_t k = 0; how == STREAMS && k < x->members; k++)
        probe_must(!cu->cuStreamSynchronize(x->streams[k]), "wait");
}

static void same_results(struct fusion *x)
{
    size_t bytes = (size_t)x->members * REGION;
    uint8_t *first = ws_alloc(bytes), *v = ws_alloc(bytes);
    probe_must(first && v, "no memory");
    for (enum how h = SERIAL; h < _HOW_N; h++) {
        probe_must(!x->n.cu.cuMemsetD8Async(x->p, 0xff, bytes, x->n.stream) &&
                       !x->n.cu.cuStreamSynchronize(x->n.stream),
                   "fill");
        do_all(x, h);
        probe_must(!x->n.cu.cuMemcpyDtoH(h ? v : first, x->p, bytes), "copy");
        probe_must(!h || !memcmp(first, v, bytes), "a fused or concurrent run has other results");
    }
    for (uint32_t k = 0; k < x->members; k++) /* and each member has some */
        probe_must(first[(size_t)k * REGION + 3] != 0xff, "a member did nothing");
    free(first);
    free(v);
}

static void time_all(struct fusion *x)
{
    enum { N = 21 };
    double us[_HOW_N], v[N];
    for (enum how h = SERIAL; h < _HOW_N; h++) {
        for (int k = 0; k < N; k++) {
            uint64_t t = probe_now_ns();
            do_all(x, h);
            v[k] = (double)(probe_now_ns() - t) / 1e3;
        }
        us[h] = probe_quantile(v, N, 0.5);
        probe_line("us", us[h], "%u kernels of %u blocks and %u rounds %s", x->members, x->blocks,
                   x->rounds, how_names[h]);
    }
    for (enum how h = SERIAL; h < FUSED; h++)
        probe_line("ratio", us[FUSED] / us[h], "%u kernels of %u blocks and %u rounds: fused / %s",
                   x->members, x->blocks, x->rounds, how_names[h]);
}

/* Energy of one round, where the counter moves. */
static void energy_all(struct fusion *x)
{
    char why[160] = "no energy counter";
    struct ws_nvml *nvml = probe_nvml(why, sizeof(why));
    uint64_t t0, t1, e0 = nvml ? probe_edge(nvml, &t0) : 0, e1;
    for (enum how h = SERIAL; e0 && h < _HOW_N; h++) {
        uint64_t n = 0;
        e0 = probe_edge(nvml, &t0);
        do {
            do_all(x, h);
            n++;
        } while (probe_now_ns() - t0 < (uint64_t)(probe_seconds * 1e9));
        e1 = probe_edge(nvml, &t1);
        if (e0 && e1)
            probe_line("mJ", (double)(e1 - e0) / (double)n, "%u kernels %s: energy of all",
                       x->members, how_names[h]);
    }
    if (!e0)
        printf("%s,energy,not measured,\"%s\"\n", probe_section,
               nvml ? "the counter does not move" : why);
    ws_nvml_close(nvml);
}

void probe_section_fused(void)
{
    static const uint32_t members[] = {2, 4, 8, 16};
    struct fusion x = {0};
    probe_native_begin(&x.n);
    struct ws_cu *cu = &x.n.cu;
    probe_must(!cu->cuModuleLoadDataEx(&x.plain, probe_ptx, 0, NULL, NULL) &&
                   !cu->cuModuleGetFunction(&x.one, x.plain, "multiply") &&
                   !cu->cuMemAlloc(&x.p, (size_t)MEMBERS_MAX * REGION),
               "no memory");
    for (int k = 0; k < MEMBERS_MAX; k++)
        probe_must(!cu->cuStreamCreateWithPriority(&x.streams[k], WS_CU_STREAM_NON_BLOCKING, 0),
                   "no stream");
    for (size_t k = 0; k < WS_ARRAY_SIZE(members); k++) {
        x.members = members[k];
        x.blocks = WS_MAX((uint32_t)x.n.n_sms / 8, 1u); /* small ones: 16 fill the GPU twice */
        for (int big = 0; big < 2; big++) {
            x.rounds = suite_target.mock ? 4 : big ? 2000 : 200;
            make_fused(&x);
            same_results(&x);
            time_all(&x);
            if (members[k] == 8 && big)
                energy_all(&x);
            probe_must(!cu->cuModuleUnload(x.fused), "unload");
            free(x.params);
        }
    }
    for (int k = 0; k < MEMBERS_MAX; k++)
        (void)cu->cuStreamDestroy(x.streams[k]);
    (void)cu->cuMemFree(x.p);
    (void)cu->cuModuleUnload(x.plain);
    probe_native_end(&x.n);
}
