// SPDX-License-Identifier: Apache-2.0
// Usage: drv_check WHAT. For tests/process/check.sh: kernels with one mistake each, by name, and
// the same ones without it. The program fails if a kernel that is to be stopped is not, and if the
// results of a kernel without a mistake are wrong.
#include "drv.h"
#define WORK "drv_check"

/* Two warps. MEET is a barrier, or nothing. */
#define EXCHANGE(name, MEET)                                                                       \
    ".visible .entry " name "(.param .u64 to)\n{\n"                                                \
    ".shared .align 4 .b8 cells[256];\n"                                                           \
    ".reg .b64 %rd<4>; .reg .b32 %r<8>;\n"                                                         \
    "ld.param.u64 %rd1, [to];\n"                                                                   \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, cells;\n"                                                   \
    "mad.lo.u32 %r3, %r1, 4, %r2; xor.b32 %r4, %r1, 63; mad.lo.u32 %r5, %r4, 4, %r2;\n"            \
    ".loc 1 12 5\nst.shared.u32 [%r3], %r1;\n.loc 1 14 5\n" MEET "\n"                              \
    "ld.shared.u32 %r6, [%r5];\n"                                                                  \
    "mad.wide.u32 %rd2, %r1, 4, %rd1;\n"                                                           \
    "st.global.u32 [%rd2], %r6; ret;\n}\n"
/* The second warp waits for a flag of the first one. LEAVE and FIND: fences, or nothing. */
#define FLAG(name, LEAVE, FIND)                                                                    \
    ".visible .entry " name "(.param .u64 to)\n{\n"                                                \
    ".shared .align 4 .b8 cells[8];\n"                                                             \
    ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p<4>;\n"                                       \
    "ld.param.u64 %rd1, [to];\n"                                                                   \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, cells;\n"                                                   \
    "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 0; bar.sync 0;\n"                          \
    "@%p1 st.shared.u32 [%r2+4], 7;\n" LEAVE "\n"                                                  \
    "@%p1 st.volatile.shared.u32 [%r2], 1;\n"                                                      \
    "setp.ne.u32 %p2, %r1, 32; @%p2 ret;\n"                                                        \
    "again: ld.volatile.shared.u32 %r3, [%r2]; setp.eq.u32 %p3, %r3, 0; @%p3 bra again;\n" FIND    \
    "\nld.shared.u32 %r4, [%r2+4]; st.global.u32 [%rd1], %r4; ret;\n}\n"
/* The same exchange in global memory. */
#define EXCHANGE_GLOBAL(name, MEET)                                                                \
    ".visible .entry " name "(.param .u64 to)\n{\n"                                                \
    ".reg .b64 %rd<4>; .reg .b32 %r<4>;\n"                                                         \
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; xor.b32 %r2, %r1, 63;\n"                        \
    "mad.wide.u32 %rd2, %r1, 4, %rd1; mad.wide.u32 %rd3, %r2, 4, %rd1;\n"                          \
    "add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;\n" MEET "\n"                                  \
    "ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd3+1024], %r3; ret;\n}\n"
/* The last of the blocks adds up what each has written. LEAVE: a fence, or nothing. */
#define LAST_BLOCK(name, LEAVE)                                                                    \
    ".visible .entry " name "(.param .u64 to)\n{\n"                                                \
    ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p<4>;\n"                                       \
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;\n"                    \
    "mad.wide.u32 %rd2, %r1, 4, %rd1; add.u32 %r3, %r1, 1; st.global.u32 [%rd2+8], %r3;\n" LEAVE   \
    "\natom.global.add.u32 %r4, [%rd1+4], 1; add.u32 %r4, %r4, 1;\n"                               \
    "setp.ne.u32 %p1, %r4, %r2; @%p1 ret;\n" LEAVE "\n"                                            \
    "mov.u32 %r5, 0; mov.u32 %r6, 0;\n"                                                            \
    "more: mad.wide.u32 %rd2, %r5, 4, %rd1; ld.global.u32 %r7, [%rd2+8];\n"                        \
    "add.u32 %r6, %r6, %r7; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r2; @%p2 bra more;\n"      \
    "st.global.u32 [%rd1], %r6; ret;\n}\n"
/* Each block stores VALUE to the same word. */
#define SAME_WORD(name, VALUE)                                                                     \
    ".visible .entry " name "(.param .u64 to)\n{\n"                                                \
    ".reg .b64 %rd<2>; .reg .b32 %r<2>;\n"                                                         \
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, " VALUE "; add.u32 %r1, %r1, 7;\n"                      \
    "st.global.u32 [%rd1], %r1; ret;\n}\n"

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry copy(.param .u64 from, .param .u64 to)\n{\n"
    ".reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    "ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];\n"
    "ld.global.u32 %r1, [%rd1];\n"
    "st.global.u32 [%rd2], %r1; ret;\n}\n"
    ".visible .entry empty(.param .u64 to)\n{\n"
    ".shared .align 4 .b8 cells[256];\n"
    ".reg .b64 %rd<3>; .reg .b32 %r<4>;\n"
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, cells;\n"
    "ld.shared.u32 %r2, [%r1+8];\n"
    "st.global.u32 [%rd1], %r2; ret;\n}\n"
    ".visible .entry count(.param .u64 to)\n{\n"
    ".shared .align 4 .b8 cells[4];\n"
    ".reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p1;\n"
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, cells; mov.u32 %r2, %tid.x;\n"
    "setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r1], 0; bar.sync 0;\n"
    "red.shared.add.u32 [%r1], 1; bar.sync 0;\n"
    "ld.shared.u32 %r3, [%r1]; @%p1 st.global.u32 [%rd1], %r3; ret;\n}\n" EXCHANGE(
        "exchange", "bar.sync 0;") EXCHANGE_GLOBAL("global", "bar.sync 0;")
        EXCHANGE_GLOBAL("globalrace", "") LAST_BLOCK("last", "membar.gl;")
            LAST_BLOCK("lastrace", "") SAME_WORD("flagged", "0") SAME_WORD("wordrace", "%ctaid.x")
                EXCHANGE("race", "") FLAG("flag", "membar.cta;", "membar.cta;")
                    FLAG("flagrace", "", "") ".file 1 \"/src/exchange.cu\"\n";

enum {
    THREADS = 64,
    BLOCKS = 8,
    ROOM = 4096,
    BYTES = 100,
    ILLEGAL_ADDRESS = 700,
    MISALIGNED_ADDRESS = 716
};

static CUmodule module;
static CUdeviceptr to;

static uint32_t *launch_blocks(const char *kernel, uint32_t blocks, uint32_t threads)
{
    static uint32_t v[THREADS];
    DRV(memset_d8(to, 0, ROOM));
    drv_launch(drv_function(module, kernel), blocks, threads, 0, NULL, &to);
    DRV(memcpy_dtoh(v, to, sizeof(v)));
    return v;
}

static uint32_t *launch(const char *kernel)
{
    return launch_blocks(kernel, 1, THREADS);
}

/* One thread copies a word. */
static int copy(CUdeviceptr from, CUdeviceptr at, CUresult want)
{
    drv_launch(drv_function(module, "copy"), 1, 1, 0, NULL, &from, &at);
    CUresult r = drv.ctx_synchronize();
    return r == want ? 0 : work_fail(WORK, "%d, not %d", r, want);
}

static int run_right(void)
{
    const uint32_t *v = launch("exchange");
    for (uint32_t i = 0; i < THREADS; i++)
        if (v[i] != (i ^ 63))
            return work_fail(WORK, "exchange gave %u for %u", v[i], i);
    if (launch("count")[0] != THREADS)
        return work_fail(WORK, "count gave %u", launch("count")[0]);
    if (launch("flag")[0] != 7)
        return work_fail(WORK, "flag gave %u", launch("flag")[0]);
    launch("global");
    if (launch_blocks("last", BLOCKS, 1)[0] != BLOCKS * (BLOCKS + 1) / 2)
        return work_fail(WORK, "last gave %u", launch_blocks("last", BLOCKS, 1)[0]);
    if (launch_blocks("flagged", BLOCKS, 1)[0] != 7)
        return work_fail(WORK, "flagged gave another word");
    return copy(to, to + 4, 0);
}

static int run(const char *what)
{
    CUdeviceptr p;
    if (!strcmp(what, "right"))
        return run_right();
    if (!strcmp(what, "race") || !strcmp(what, "flagrace") || !strcmp(what, "empty") ||
        !strcmp(what, "globalrace"))
        return launch(what) ? 0 : 1;
    if (!strcmp(what, "lastrace") || !strcmp(what, "wordrace"))
        return launch_blocks(what, BLOCKS, 1) ? 0 : 1;
    DRV(mem_alloc(&p, BYTES));
    if (!strcmp(what, "leak"))
        return 0;
    if (!strcmp(what, "unwritten"))
        copy(p + 8, to, 0);
    else if (!strcmp(what, "behind"))
        return copy(to, p + BYTES, ILLEGAL_ADDRESS);
    else if (!strcmp(what, "misaligned"))
        return copy(to, p + 2, MISALIGNED_ADDRESS);
    DRV(mem_free(p));
    return strcmp(what, "freed") ? 0 : copy(p + 4, to, ILLEGAL_ADDRESS);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "right";
    drv_begin();
    DRV(module_load_data_ex(&module, ptx, 0, NULL, NULL));
    DRV(mem_alloc(&to, ROOM));
    DRV(memset_d8(to, 0, ROOM));
    if (run(what))
        return 1;
    drv.mem_free(to);
    return work_pass(WORK);
}
