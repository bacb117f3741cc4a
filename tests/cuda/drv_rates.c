// SPDX-License-Identifier: Apache-2.0
/* Usage: drv_rates [SIZE [ROUNDS]]. Measures what a program sees of launches and copies, with a
 * matrix product of SIZE, ROUNDS times each. Prints NAME,UNIT,FIGURE. Figures are medians of times,
 * so less is better. */
#include <time.h>
#include "drv.h"
#include "matmul.h"
#undef WORK
#define WORK "drv_rates"

enum { MAX_ROUNDS = 10000, BIG = 64 << 20, SMALL = 4 << 10 };
static double took[MAX_ROUNDS], from;
static int n_took;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void begin(void)
{
    from = now_us();
}

static void end(void)
{
    took[n_took++] = now_us() - from;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void say(const char *name, double per)
{
    qsort(took, (size_t)n_took, sizeof(took[0]), compare);
    printf("%s,us,%.3f\n", name, took[n_took / 2] / per);
    n_took = 0;
}

static void launches(CUfunction f, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, int n, int rounds,
                     const char *alone, const char *in_a_row)
{
    unsigned grid = ((unsigned)n + MATMUL_TILE - 1) / MATMUL_TILE;
    for (int kind = 0; kind < 2; kind++) {
        int each = kind ? 20 : 1, times = kind ? rounds / 20 + 1 : rounds;
        for (int r = 0; r < times; r++) {
            begin();
            for (int k = 0; k < each; k++)
                DRV(launch_kernel(f, grid, grid, 1, MATMUL_TILE, MATMUL_TILE, 1, 0, NULL,
                                  (void *[]){&a, &b, &c, &n}, NULL));
            DRV(ctx_synchronize());
            end();
        }
        say(kind ? in_a_row : alone, each);
    }
}

static int copies(CUdeviceptr d, int rounds)
{
    static const char *const names[2][2][2] = {
        {{"copy of 4 KiB to the GPU", "copy of 4 KiB from the GPU"},
         {"copy of 64 MiB to the GPU", "copy of 64 MiB from the GPU"}},
        {{"pinned copy of 4 KiB to the GPU", "pinned copy of 4 KiB from the GPU"},
         {"pinned copy of 64 MiB to the GPU", "pinned copy of 64 MiB from the GPU"}}};
    void *host[2] = {malloc(BIG), NULL};
    if (!host[0])
        return work_fail(WORK, "no memory");
    DRV(mem_alloc_host(&host[1], BIG));
    for (int pinned = 0; pinned < 2; pinned++)
        for (int big = 0; big < 2; big++) {
            size_t bytes = big ? BIG : SMALL;
            memset(host[pinned], pinned + 1, bytes);
            for (int from_gpu = 0; from_gpu < 2; from_gpu++) {
                for (int r = 0; r < (big ? rounds / 20 + 1 : rounds); r++) {
                    begin();
                    if (from_gpu)
                        DRV(memcpy_dtoh(host[pinned], d, bytes));
                    else
                        DRV(memcpy_htod(d, host[pinned], bytes));
                    end();
                }
                say(names[pinned][big][from_gpu], 1);
            }
            if (((char *)host[pinned])[bytes - 1] != pinned + 1)
                return work_fail(WORK, "what was copied is not what came back");
        }
    free(host[0]);
    DRV(mem_free_host(host[1]));
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 256, 4096),
        rounds = (int)work_arg(argc, argv, 2, 100, MAX_ROUNDS);
    enum { TINY = 16 };
    float a[TINY * TINY], b[TINY * TINY], c[TINY * TINY], want[TINY * TINY];
    CUdeviceptr d, da, db, dc;
    matmul_fill(a, b, TINY);
    matmul_cpu(a, b, want, TINY);
    drv_begin();
    CUmodule m = drv_module("matmul");
    CUfunction f = drv_function(m, "matmul");
    size_t bytes = (size_t)n * (size_t)n * sizeof(float), room = bytes > BIG ? bytes : BIG;
    DRV(mem_alloc(&d, room));
    DRV(mem_alloc(&da, room));
    DRV(mem_alloc(&db, room));
    DRV(mem_alloc(&dc, sizeof(c)));
    DRV(memset_d8(da, 0, room));
    DRV(memset_d8(db, 0, room));
    launches(f, da, db, d, n, rounds, "one large kernel and its wait", "large kernels in a row");
    DRV(memcpy_htod(da, a, sizeof(a)));
    DRV(memcpy_htod(db, b, sizeof(b)));
    launches(f, da, db, dc, TINY, rounds, "one tiny kernel and its wait", "tiny kernels in a row");
    DRV(memcpy_dtoh(c, dc, sizeof(c)));
    if (matmul_check(c, want, TINY))
        return 1;
    if (copies(d, rounds))
        return 1;
    DRV(mem_free(d));
    DRV(mem_free(da));
    DRV(mem_free(db));
    DRV(mem_free(dc));
    DRV(module_unload(m));
    drv_end();
    return work_pass(WORK);
}
