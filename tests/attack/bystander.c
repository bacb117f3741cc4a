/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/bystander UID CALLS PERIOD_US - an ordinary program that wants its work done while
 * others attack. As user UID (-1: as whoever it is) it launches a kernel and fetches the result,
 * each time with other numbers, and compares it with what the CPU computes: one call each
 * PERIOD_US. It prints "ready" after the first calls. It ends after CALLS calls (0: no limit), or
 * when its standard input ends; then it prints
 *   calls=N p50=US p99=US max=US
 * Its status is 0 if all calls succeeded and all results were right. It is no part of wattshare: it
 * knows the functions of CUDA's driver only. */
#include "tests/cuda/drv.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/attack/pace.h"

enum { N = 64, READY_AFTER = 20 };

/* The first line makes each program's image another one, so that the daemon has to compile it. */
static const char ptx[] =
    "// program %d\n"
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry work(.param .u64 p, .param .u32 a, .param .u32 b)\n{\n"
    ".reg .u64 %%rd<4>;\n.reg .u32 %%r<6>;\n"
    "ld.param.u64 %%rd1, [p];\nld.param.u32 %%r1, [a];\nld.param.u32 %%r2, [b];\n"
    "mov.u32 %%r3, %%tid.x;\nmul.wide.u32 %%rd2, %%r3, 4;\nadd.u64 %%rd3, %%rd1, %%rd2;\n"
    "mad.lo.u32 %%r4, %%r3, %%r1, %%r2;\nst.global.u32 [%%rd3], %%r4;\nret;\n}\n";

static struct pace pace;

static int call(CUfunction f, CUdeviceptr at, uint32_t i)
{
    uint32_t out[N], a = i * 2654435761u, b = ~i;
    drv_launch(f, 1, N, 0, NULL, &at, &a, &b);
    DRV(memcpy_dtoh(out, at, sizeof(out)));
    for (uint32_t k = 0; k < N; k++)
        if (out[k] != k * a + b)
            return work_fail("bystander", "call %u: element %u is %u, not %u", i, k, out[k],
                             k * a + b);
    return 0;
}

static int told_to_stop(void)
{
    struct pollfd p = {.fd = 0, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

int main(int argc, char **argv)
{
    char text[sizeof(ptx) + 16];
    int uid = argc > 1 ? atoi(argv[1]) : -1;
    unsigned most = argc > 2 ? (unsigned)atoi(argv[2]) : 0, i = 0;
    CUmodule m;
    CUdeviceptr at;
    pace.period_ns = (argc > 3 ? (uint64_t)atoi(argv[3]) : 2000) * 1000;
    if (uid >= 0 && (setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) ||
                     setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid)))
        return 2;
    prctl(PR_SET_DUMPABLE, 1); /* as a program that the user has started */
    snprintf(text, sizeof(text), ptx, (int)getpid());
    drv_begin();
    DRV(module_load_data_ex(&m, text, 0, NULL, NULL));
    DRV(mem_alloc(&at, N * sizeof(uint32_t)));
    CUfunction f = drv_function(m, "work");
    for (; (!most || i < most) && !told_to_stop(); i++) {
        pace_wait(&pace);
        if (call(f, at, i))
            return 1;
        pace_done(&pace);
        if (i == READY_AFTER) {
            puts("ready");
            fflush(stdout);
            pace.n = 0; /* the first calls are not those of a program that runs already */
        }
    }
    pace_end(&pace);
    DRV(mem_free(at));
    drv_end();
    printf("calls=%u p50=%u p99=%u max=%u\n", i, pace_permille(&pace, 500),
           pace_permille(&pace, 990), pace_permille(&pace, 1000));
    return 0;
}
