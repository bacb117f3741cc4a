// SPDX-License-Identifier: Apache-2.0
/* Runs small kernels of several clients on the software GPU: one after another, side by side,
 * fused, and fused in leader mode, where one of them stands for all. Prints modelled makespan and
 * energy, host time from the first launch given to the last client told, and the host time of
 * making the template. The kernels are those of tests/cuda/ptx, with few blocks each, on the
 * paper's GPU.
 *
 * Usage: bench_fused [GPU [REPEATS [TEMPLATES]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/lib/softserver.h"

struct work {
    const char *file, *kernel;
    uint32_t blocks, threads, shared;
    void (*params)(struct softs *s, unsigned c, uint8_t *p, size_t *ret_bytes);
};

static uint64_t memory_of[SOFTS_CLIENTS];

static void put64(uint8_t *p, size_t at, uint64_t v)
{
    memcpy(p + at, &v, 8);
}
static void put32(uint8_t *p, size_t at, uint32_t v)
{
    memcpy(p + at, &v, 4);
}

static void aes(struct softs *s, unsigned c, uint8_t *p, size_t *ret_bytes)
{
    put64(p, 0, memory_of[c]);
    put64(p, 8, memory_of[c]);
    put64(p, 16, 1);
    put32(p, 24, 768); /* blocks of 16 bytes: 12 KiB, as the paper's instances */
    *ret_bytes = 28;
}
static void sort(struct softs *s, unsigned c, uint8_t *p, size_t *ret_bytes)
{
    put64(p, 0, memory_of[c]);
    *ret_bytes = 8;
}
static void montecarlo(struct softs *s, unsigned c, uint8_t *p, size_t *ret_bytes)
{
    put32(p, 0, 64);
    put64(p, 8, memory_of[c]);
    *ret_bytes = 16;
}
static void blackscholes(struct softs *s, unsigned c, uint8_t *p, size_t *ret_bytes)
{
    float rate[] = {0.02f, 0.3f};
    for (unsigned k = 0; k < 5; k++)
        put64(p, 8 * k, memory_of[c] + 16384 * k);
    memcpy(p + 40, rate, 8);
    put32(p, 48, 1024);
    *ret_bytes = 52;
}

static const struct work works[] = {{"aes", "aes_ctr", 3, 256, 0, aes},
                                    {"sort", "sort_tiles", 6, 256, 0, sort},
                                    {"montecarlo", "montecarlo", 2, 256, 2048, montecarlo},
                                    {"blackscholes", "blackscholes", 4, 256, 0, blackscholes}};

static char *read_text(const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), WS_SRCDIR "/tests/cuda/ptx/%s.ptx", name);
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || !fread(text, 1, (1 << 20) - 1, f)) {
        fprintf(stderr, "bench_fused: %s can't be read\n", path);
        exit(1);
    }
    fclose(f);
    return text;
}

enum mode { SERIAL, BESIDE, FUSED, LEADER, _N_MODES };
static const char *const mode_names[] = {"serial", "side by side", "fused", "leader"};

struct measured {
    uint64_t span_ns, uj, host_ns, make_ns, insns;
};

static uint64_t kernel_index(struct softs *s, unsigned c, unsigned w)
{
    const struct ws_module *m = ws_module_find(s->clients[c].client, w + 1);
    for (uint32_t k = 0; k < m->code->n_kernels; k++)
        if (!strcmp(m->code->info->kernels[k].name, works[w].kernel))
            return k;
    abort();
}

static void give(struct softs *s, unsigned c, unsigned w, uint64_t ready_ns)
{
    uint8_t params[64] = {0};
    size_t bytes;
    works[w].params(s, c, params, &bytes);
    s->clients[c].client->contexts[0].seen_ns = ready_ns;
    softs_launch(s, c,
                 &(struct softs_launch){.module = w + 1,
                                        .kernel = (uint32_t)kernel_index(s, c, w),
                                        .grid = {works[w].blocks},
                                        .block = {works[w].threads},
                                        .shared_bytes = works[w].shared,
                                        .params = params,
                                        .param_bytes = bytes});
}

static void must_sync(struct softs *s, unsigned c)
{
    if (softs_sync(s, c)) {
        fprintf(stderr, "bench_fused: client %u: %s\n", c, s->clients[c].client->errors.text);
        exit(1);
    }
}

static bool start_fused(struct softs *s, unsigned n, enum mode mode)
{
    struct ws_command *jobs[SOFTS_CLIENTS];
    char why[200] = "";
    s->config.fused_leader = mode == LEADER;
    for (unsigned c = 0; c < n; c++)
        jobs[c] = softs_head(s, c, 0);
    int r = ws_fused_start(s->server, &s->server->gpus[0], NULL, jobs, n, why, sizeof(why));
    for (unsigned c = 0; c < n; c++)
        softs_let_go(s, c);
    if (r)
        printf("  %s: %s\n", mode_names[mode], why);
    return !r;
}

/* @which: of works, for each client. */
static bool run(struct softs *s, unsigned n, const unsigned *which, enum mode mode,
                struct measured *ret)
{
    struct ws_device_telemetry before, after;
    struct ws_fused_counts counts;
    ws_fused_counts(s->server, &counts);
    uint64_t make_ns = counts.make_ns, from_ns = ws_device_now_ns(s->device);
    ws_device_telemetry(s->device, &before);
    uint64_t host_ns = ws_clock_ns();
    bool ok = true;
    for (unsigned c = 0; mode >= FUSED && c < n; c++)
        softs_hold(s, c);
    for (unsigned c = 0; c < n; c++) {
        give(s, c, which[c], mode == SERIAL ? ws_device_now_ns(s->device) : from_ns);
        if (mode == SERIAL)
            must_sync(s, c);
    }
    if (mode >= FUSED)
        ok = start_fused(s, n, mode);
    for (unsigned c = 0; c < n && mode != SERIAL; c++)
        must_sync(s, c);
    ret->host_ns = ws_clock_ns() - host_ns;
    ws_device_telemetry(s->device, &after);
    ws_fused_counts(s->server, &counts);
    ret->make_ns = counts.make_ns - make_ns;
    ret->span_ns = ws_device_now_ns(s->device) - from_ns;
    ret->uj = after.energy_uj - before.energy_uj;
    ret->insns = after.n_thread_insns - before.n_thread_insns;
    return ok;
}

static void compare(struct softs *s, const char *what, unsigned n, const unsigned *which,
                    unsigned repeats)
{
    struct measured serial = {0};
    printf("%s, %u clients\n", what, n);
    bool same = true;
    for (unsigned c = 1; c < n; c++)
        same &= which[c] == which[0];
    for (enum mode mode = SERIAL; mode < _N_MODES; mode++) {
        struct measured m, first;
        uint64_t host_ns = UINT64_MAX;
        if (mode == LEADER && !same)
            continue;
        if (!run(s, n, which, mode, &first))
            continue;
        for (unsigned k = 0; k < repeats && run(s, n, which, mode, &m); k++)
            host_ns = WS_MIN(host_ns, m.host_ns);
        if (mode == SERIAL)
            serial = m;
        printf("  %-13s %9.1f us (1/%.2f)  %9.1f uJ (1/%.2f)  insns x %.3f  host %7.0f us  "
               "template %6.0f us\n",
               mode_names[mode], (double)m.span_ns / 1e3,
               (double)serial.span_ns / (double)m.span_ns, (double)m.uj,
               (double)serial.uj / (double)m.uj, (double)m.insns / (double)serial.insns,
               (double)host_ns / 1e3, (double)first.make_ns / 1e3);
    }
}

int main(int argc, char **argv)
{
    softs_templates = argc > 3 ? argv[3] : NULL;
    unsigned repeats = argc > 2 ? (unsigned)atoi(argv[2]) : 10;
    struct softs *s = softs_new(argc > 1 ? argv[1] : "tesla-c1060", 0, 0);
    for (unsigned c = 0; c < 12; c++) {
        softs_hello(s, c);
        memory_of[c] = softs_alloc(s, c, 1 << 20);
        for (unsigned w = 0; w < WS_ARRAY_SIZE(works); w++) {
            char *text = read_text(works[w].file);
            if (!memory_of[c] || softs_load(s, c, w + 1, text))
                return 1;
            free(text);
        }
    }
    static const unsigned sizes[] = {2, 4, 8, 12};
    for (unsigned w = 0; w < WS_ARRAY_SIZE(works); w++)
        for (unsigned k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
            unsigned which[12];
            for (unsigned c = 0; c < 12; c++)
                which[c] = w;
            compare(s, works[w].kernel, sizes[k], which, repeats);
        }
    unsigned mix[12];
    for (unsigned c = 0; c < 12; c++)
        mix[c] = c % 2 ? 2 : 0;
    compare(s, "aes_ctr + montecarlo", 8, mix, repeats);
    for (unsigned c = 0; c < 12; c++)
        mix[c] = c % 4;
    compare(s, "all four", 12, mix, repeats);
    softs_free(s);
    return 0;
}
