// SPDX-License-Identifier: Apache-2.0
/* Measures how long it takes to load PTX that is hard to compile: each kind of tests/lib/hard_text
 * with N things, then with twice and four times as many. Where the time per thing grows, work grows
 * faster than the text. Stages: parse (with validation), decode (for the software GPU), learn (what
 * the daemon reads off each kernel). All times are CPU time of the thread.
 *
 *   bench_load               all kinds
 *   bench_load KIND N        one kind, N things */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/learn/learn.h"
#include "base/error.h"
#include "device/device.h"
#include "device/soft/exec/exec.h"
#include "tests/lib/hard_text.h"

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct times {
    double parse, decode, learn;
    size_t bytes;
    int r;
};

static void measure(const struct hard_text *kind, uint32_t n, struct times *ret)
{
    struct ws_ptx_module *m = NULL;
    struct ws_code *c = NULL;
    struct ws_learn_code *l = NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    char *text = hard_text_make(kind, n, &ret->bytes);
    if (!text)
        exit(1);
    double t0 = cpu_ms(), t1, t2 = 0, t3 = 0;
    ret->r = ws_ptx_parse(&m, text, ret->bytes, NULL, &diags);
    t1 = t2 = t3 = cpu_ms();
    if (!ret->r) {
        ret->r = ws_code_new(&c, m, 0, &diags);
        t2 = t3 = cpu_ms();
    }
    if (!ret->r) {
        struct ws_dmodule_info info = {0};
        info.kernels = ws_code_kernels(c, &info.n_kernels);
        ret->r = ws_learn_code_new(&l, m, &info, info.n_kernels);
        t3 = cpu_ms();
    }
    ret->parse = t1 - t0;
    ret->decode = t2 - t1;
    ret->learn = t3 - t2;
    if (ret->r && diags.n)
        printf("%s %u: %s\n", kind->name, n, diags.v[diags.n - 1].text);
    ws_learn_code_free(l);
    ws_code_free(c);
    ws_ptx_module_free(m);
    ws_diags_deinit(&diags);
    free(text);
}

static void print(const struct hard_text *kind, uint32_t n, const struct times *t)
{
    printf("%-16s %8u %9.1f %9.1f %9.1f %9.1f %9.2f  %d\n", kind->name, n, (double)t->bytes / 1e3,
           t->parse, t->decode, t->learn, (t->parse + t->decode + t->learn) * 1e3 / n, t->r);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct hard_text *one = argc > 1 ? hard_text_find(argv[1]) : NULL;
    if (argc > 1 && !one) {
        fprintf(stderr, "there is no kind '%s'\n", argv[1]);
        return 2;
    }
    printf("%-16s %8s %9s %9s %9s %9s %9s  %s\n", "kind", "N", "kB", "parse ms", "decode ms",
           "learn ms", "us each", "result");
    for (const struct hard_text *k = hard_texts; k->name; k++) {
        uint32_t first = argc > 2 ? (uint32_t)atoi(argv[2]) : k->growth ? 250 : 2500;
        for (uint32_t n = first; (!one || k == one) && n <= (argc > 2 ? first : first * 4);
             n *= 2) {
            struct times t = {0};
            measure(k, n, &t);
            print(k, n, &t);
            if (argc == 1 && t.parse + t.decode + t.learn > 3000)
                break;
        }
    }
    return 0;
}
