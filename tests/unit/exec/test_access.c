// SPDX-License-Identifier: Apache-2.0
/* Where the lanes of a warp access memory: every pattern of addresses (the same, neighbouring,
 * ascending, descending, scattered near and far), width and set of active lanes, guarded or
 * branched around, against C: what is read and written, how many sectors of 32 bytes that was, and
 * that one byte too far is a fault of the lane that did it, and of no idle one. In every vector
 * build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

#define KERNEL(name, access)                                                                       \
    ".visible .entry " name "(.param .u64 data, .param .u64 offsets, .param .u64 out, .param "     \
    ".u32 mask, .param .u32 branch)\n"                                                             \
    "{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %x<9>;\n"                                     \
    "ld.param.u64 %x0, [data]; ld.param.u64 %x1, [offsets]; ld.param.u64 %x2, [out]; "             \
    "ld.param.u32 %r0, [mask];\n"                                                                  \
    "ld.param.u32 %r3, [branch]; mov.u32 %r1, %tid.x; mul.wide.u32 %x3, %r1, 8; add.u64 %x4, "     \
    "%x1, %x3; add.u64 %x5, %x2, %x3;\n"                                                           \
    "ld.global.u64 %x6, [%x4]; add.u64 %x6, %x0, %x6; shr.u32 %r2, %r0, %r1; and.b32 %r2, %r2, "   \
    "1; setp.ne.u32 %p0, %r2, 0;\n"                                                                \
    "mov.u64 %x7, 0xee; setp.ne.u32 %p1, %r3, 0; @%p1 bra BRANCH; @%p0 " access                    \
    ";\n bra END;\nBRANCH: @!%p0 bra END; " access ";\n"                                           \
    "END: st.global.u64 [%x5], %x7; ret;\n}\n"
static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n" KERNEL(
    "ld1", "ld.global.u8 %x7, [%x6]") KERNEL("ld2", "ld.global.u16 %x7, [%x6]")
    KERNEL("ld4", "ld.global.u32 %x7, [%x6]") KERNEL("ld8", "ld.global.u64 %x7, [%x6]")
        KERNEL("gen4", "ld.u32 %x7, [%x6]") KERNEL("vol4", "ld.volatile.global.u32 %x7, [%x6]")
            KERNEL("st1", "st.global.u8 [%x6], %r1") KERNEL("st2", "st.global.u16 [%x6], %r1")
                KERNEL("st4", "st.global.u32 [%x6], %r1") KERNEL("st8", "st.u64 [%x6], %x6")
                    KERNEL("add4", "atom.global.add.u32 %r1, [%x6], 5")
                        KERNEL("max4", "red.global.max.s32 [%x6], %r1");
static const struct {
    const char *name;
    unsigned bytes;
    char kind; /* load, store, atomic */
} kernels[] = {{"ld1", 1, 'l'},  {"ld2", 2, 'l'},  {"ld4", 4, 'l'},  {"ld8", 8, 'l'},
               {"gen4", 4, 'l'}, {"vol4", 4, 'l'}, {"st1", 1, 's'},  {"st2", 2, 's'},
               {"st4", 4, 's'},  {"st8", 8, 's'},  {"add4", 4, 'a'}, {"max4", 4, 'a'}};
enum { BYTES = 1 << 16 };
static const uint32_t masks[] = {0xffffffff, 1,          0x80000000, 0xffff,
                                 0xaaaaaaaa, 0x00ffff00, 0x80000001, 0};

static uint32_t seed;
static uint32_t next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed ^ seed >> 15;
}

/* Lane's element of the pattern. */
static uint64_t place(unsigned pattern, unsigned lane, unsigned bytes)
{
    uint64_t n = BYTES / bytes;
    switch (pattern) {
    case 0:
        return 5; /* all the same */
    case 1:
        return lane;
    case 2:
        return 31 - lane;
    case 3:
        return lane * 3;
    case 4:
        return lane / 4;
    case 5:
        return lane ^ 1;
    case 6:
        return lane & 15;
    case 7:
        return next() % 64;
    case 8:
        return next() % n;
    case 9:
        return lane * (n / 32);
    case 10:
        return (31 - lane) * (n / 32);
    case 11:
        return lane & 1 ? n - 1 - lane : lane;
    default:
        return lane < 16 ? lane : 1000 + lane;
    }
}
enum { PATTERNS = 13 };

struct params {
    uint64_t data, offsets, out;
    uint32_t mask, branch;
};

static unsigned sectors(const uint64_t *va, uint32_t mask)
{
    unsigned n = 0;
    for (unsigned i = 0; i < 32; i++) {
        bool again = !(mask >> i & 1);
        for (unsigned j = 0; j < i; j++)
            again |= (mask >> j & 1) && va[i] / 32 == va[j] / 32;
        n += !again;
    }
    return n;
}

/* One launch against C. @data: host memory at @va. */
static void check(struct fix *f, unsigned k, struct params *p, uint8_t *data, const uint64_t *off)
{
    uint64_t *out = fix_host(f, p->out), va[32], want;
    uint8_t *copy = NULL;
    unsigned b = kernels[k].bytes;
    uint32_t words[32];
    memcpy(fix_host(f, p->offsets), off, 256);
    if (kernels[k].kind != 'l') { /* what is at the places now */
        copy = malloc(BYTES);
        memcpy(copy, data, BYTES);
    }
    for (unsigned i = 0; i < 32; i++) {
        va[i] = p->data + off[i];
        words[i] = 0;
    }
    fix_run(f,
            &(struct launch){.kernel = kernels[k].name, .grid = {1}, .block = {32}, .params = p});
    for (unsigned i = 0; i < 32; i++) {
        bool on = p->mask >> i & 1;
        want = 0xee;
        if (on && kernels[k].kind == 'l') {
            want = 0;
            memcpy(&want, data + off[i], b);
        } else if (on && kernels[k].kind == 's') {
            uint64_t v = b == 8 ? va[i] : i;
            memcpy(copy + off[i], &v, b); /* of several lanes the last one */
        } else if (on && k == 10) {
            memcpy(&words[i], copy + off[i], 4);
            words[i] += 5;
            memcpy(copy + off[i], &words[i], 4);
        } else if (on && kernels[k].kind == 'a') {
            int32_t v;
            memcpy(&v, copy + off[i], 4);
            v = v > (int32_t)i ? v : (int32_t)i;
            memcpy(copy + off[i], &v, 4);
        }
        if (out[i] != want)
            fail_msg("%s, mask %x, branch %u: lane %u: %llx, should be %llx", kernels[k].name,
                     p->mask, p->branch, i, (unsigned long long)out[i], (unsigned long long)want);
    }
    if (copy) {
        if (memcmp(copy, data, BYTES) != 0)
            fail_msg("%s, mask %x, branch %u: memory differs", kernels[k].name, p->mask, p->branch);
        free(copy);
    }
    unsigned n = sectors(va, p->mask);
    uint64_t loads = 8 + (kernels[k].kind == 'l' ? n : 0),
             stores = 8 + (kernels[k].kind == 's' ? n : 0);
    if (f->work.n_load_sectors != loads || f->work.n_store_sectors != stores)
        fail_msg("%s, mask %x, branch %u: %llu and %llu sectors, should be %llu and %llu",
                 kernels[k].name, p->mask, p->branch, (unsigned long long)f->work.n_load_sectors,
                 (unsigned long long)f->work.n_store_sectors, (unsigned long long)loads,
                 (unsigned long long)stores);
}

static void test_patterns(void **state)
{
    struct fix *f = *state;
    struct params p = {fix_alloc(f, BYTES), fix_alloc(f, 256), fix_alloc(f, 256), 0, 0};
    uint8_t *data = fix_host(f, p.data);
    seed = 1;
    for (unsigned k = 0; k < WS_ARRAY_SIZE(kernels); k++)
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++)
            for (unsigned m = 0; m < WS_ARRAY_SIZE(masks); m++) {
                uint64_t off[32];
                for (unsigned i = 0; i < BYTES; i += 4) {
                    uint32_t v = next();
                    memcpy(data + i, &v, 4);
                }
                for (unsigned i = 0; i < 32; i++)
                    off[i] = place(pattern, i, kernels[k].bytes) * kernels[k].bytes;
                p.mask = masks[m];
                p.branch = (pattern + m) & 1;
                check(f, k, &p, data, off);
            }
}

/* The last element is there, one element more is not, nor is one byte off; lanes that are idle may
 * hold any address. */
static void test_bounds(void **state)
{
    struct fix *f = *state;
    struct params p = {fix_alloc(f, BYTES), fix_alloc(f, 256), fix_alloc(f, 256), 0, 0};
    uint64_t *off = fix_host(f, p.offsets);
    for (unsigned k = 0; k < WS_ARRAY_SIZE(kernels); k++) {
        unsigned b = kernels[k].bytes;
        const struct {
            uint64_t at;
            enum ws_dev_error want;
        } cases[] = {{BYTES - b, WS_DEV_OK},
                     {BYTES, WS_DEV_E_ILLEGAL_ADDRESS},
                     {0 - (uint64_t)b, WS_DEV_E_ILLEGAL_ADDRESS},
                     {BYTES - b + 1, b > 1 ? WS_DEV_E_MISALIGNED : WS_DEV_E_ILLEGAL_ADDRESS},
                     {UINT64_C(1) << 46, WS_DEV_E_ILLEGAL_ADDRESS},
                     {UINT64_C(1) << 63, WS_DEV_E_ILLEGAL_ADDRESS}};
        for (unsigned n = 0; n < 6; n++)
            for (unsigned lane = 0; lane<32; lane += 31 - lane> 8 ? 7 : 1)
                for (unsigned idle = 0; idle < 2; idle++) {
                    for (unsigned i = 0; i < 32; i++)
                        off[i] = i == lane ? cases[n].at : (uint64_t)i * b;
                    p.mask = idle ? ~(1u << lane) : ~0u;
                    p.branch = n & 1;
                    enum ws_dev_error e = fix_launch(f, &(struct launch){.kernel = kernels[k].name,
                                                                         .grid = {1},
                                                                         .block = {32},
                                                                         .params = &p});
                    if (e != (idle ? WS_DEV_OK : cases[n].want))
                        fail_msg("%s, case %u, lane %u, idle %u: %d: %s", kernels[k].name, n, lane,
                                 idle, e, f->text);
                    char who[32];
                    snprintf(who, sizeof(who), "thread (%u,0,0)", lane);
                    if (e != WS_DEV_OK && !strstr(f->text, who))
                        fail_msg("%s: not said of lane %u: %s", kernels[k].name, lane, f->text);
                }
    }
}

/* Lanes further apart than 64 GiB. */
static void test_very_far(void **state)
{
    struct fix *f = *state;
    size_t bytes = (size_t)5 << 34;
    uint8_t *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (host == MAP_FAILED)
        skip(); /* address space is limited here */
    struct params p = {UINT64_C(1) << 40, fix_alloc(f, 256), fix_alloc(f, 256), ~0u, 0};
    assert_int_equal(ws_space_map_host(f->space, p.data, bytes, host), 0);
    uint64_t off[32];
    for (unsigned i = 0; i < 32; i++) {
        off[i] = (uint64_t)(i * 5 % 32 / 2) * 0x140000000u + (i & 1) * 8; /* pairs in one sector */
        host[off[i]] = (uint8_t)i;
    }
    check(f, 2, &p, host, off);
    munmap(host, bytes);
}

static int setup(void **state)
{
    int r = fix_setup(state);
    fix_must_load(*state, ptx);
    return r;
}

int main(void)
{
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_patterns, setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_bounds, setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_very_far, setup, fix_teardown),
    };
    int bad = 0;
    for (unsigned v = 0; v < 3; v++) {
        setenv("WS_SOFT_ISA", isas[v], 1);
        if (strcmp(ws_exec_isa(), isas[v]) == 0) /* else: the processor lacks it */
            bad += cmocka_run_group_tests_name(isas[v], tests, NULL, NULL);
    }
    return bad;
}
