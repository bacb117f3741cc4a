// SPDX-License-Identifier: Apache-2.0
/* Launches of several clients as one, on a software GPU: each gets what it would have got alone,
 * whatever the others do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/client/module.h"
#include "backend/scheduling/fused_cache.h"
#include "tests/cuda/aes.h"
#include "tests/lib/softserver.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

/* line: out[i] = 2 i * factor + add, through a function and a constant; each thread counts. */
static const char line[] =
    HEAD ".const .align 4 .u32 factor = 3;\n.global .align 4 .u32 counter = 5;\n"
         ".func (.reg .b32 r) twice(.reg .b32 x)\n{\nadd.u32 r, x, x;\nret;\n}\n"
         ".visible .entry work(.param .u64 out, .param .u32 n, .param .u32 add)\n{\n"
         ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %rd<6>;\n"
         "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
         "mad.lo.u32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [n]; setp.ge.u32 %p, %r4, %r5; @%p bra "
         "END;\n"
         "call (%r6), twice, (%r4); ld.const.u32 %r7, [factor]; ld.param.u32 %r8, [add];\n"
         "mad.lo.u32 %r9, %r6, %r7, %r8; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r4, 4; "
         "add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r9;\n"
         "red.global.add.u32 [counter], 1;\nEND: ret;\n}\n";
/* sum: out[block] = sum over a two-dimensional block of weight * (x + 100 y), by a barrier;
 * names as above, and other sizes. */
static const char sum[] =
    HEAD ".global .align 8 .u64 counter;\n.global .align 4 .u32 factor[4] = {7, 8, 9, 10};\n"
         ".visible .entry work(.param .u64 out, .param .u32 weight)\n{\n"
         ".reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %rd<6>; .shared .align 4 .b8 all[4];\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, "
         "%r3, "
         "%r1;\n"
         "setp.ne.u32 %p1, %r4, 0; @%p1 bra ADD; st.shared.u32 [all], 0;\nADD: bar.sync 0;\n"
         "mad.lo.u32 %r5, %r2, 100, %r1; ld.param.u32 %r6, [weight]; mul.lo.u32 %r5, %r5, %r6; "
         "atom.shared.add.u32 %r7, [all], %r5;\nbar.sync 0;\n@%p1 bra END;\n"
         "ld.shared.u32 %r8, [all]; mov.u32 %r9, %ctaid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 "
         "%rd2, %r9, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r8;\n"
         "red.global.add.u64 [counter], 1;\nEND: ret;\n}\n";
/* wild: *(where + 4 thread) = what, in block @at only; the others count. */
static const char wild[] =
    HEAD ".global .align 4 .u32 counter;\n"
         ".visible .entry wild(.param .u64 where, .param .u32 what, .param .u32 at)\n{\n"
         ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
         "mov.u32 %r1, %ctaid.x; ld.param.u32 %r2, [at]; setp.ne.u32 %p, %r1, %r2; @%p bra END;\n"
         "ld.param.u64 %rd1, [where]; ld.param.u32 %r3, [what]; mov.u32 %r4, %tid.x; mul.wide.u32 "
         "%rd2, "
         "%r4, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3;\n"
         "END: red.global.add.u32 [counter], 1; ret;\n}\n"
         ".visible .entry traps(.param .u32 at)\n{\n.reg .pred %p; .reg .b32 %r<3>;\n"
         "mov.u32 %r1, %ctaid.x; ld.param.u32 %r2, [at]; setp.ne.u32 %p, %r1, %r2; @%p bra END; "
         "trap;\nEND: ret;\n}\n"
         ".visible .entry endless(.param .u64 p)\n{\n.reg .b64 %rd; .reg .b32 %r;\n"
         "ld.param.u64 %rd, [p]; st.volatile.global.u32 [%rd], 1;\n"
         "L: add.u32 %r, %r, 1; bra L;\n}\n"
         ".visible .entry odd(.param .u64 p)\n{\n.reg .b64 %rd; .reg .b32 %r;\nld.param.u64 %rd, "
         "[p]; ld.global.u32 %r, [%rd+1]; st.global.u32 [%rd], %r; ret;\n}\n"
         ".visible .entry through(.param .u64 f)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, [f];\n"
         "P: .callprototype _ ();\ncall %rd, P;\nret;\n}\n";
enum { WILD, TRAPS, ENDLESS, ODD, THROUGH };
/* sly: ways around the fence. peek: *out = a constant at an address of the program's; params:
 * *out = what lies behind the parameters; leak: out |= shared memory that nobody has written;
 * says: prints a string at an address of the program's. */
static const char sly[] = HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 format[8] = {37, 115, 33, 10, 0};\n" /* "%s!\n" */
    ".const .align 4 .u32 some = 77;\n"
    ".visible .entry peek(.param .u64 out, .param .u64 at)\n{\n.reg .b64 %rd<3>; .reg .b32 "
    "%r;\n"
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [at]; ld.const.u32 %r, [%rd2]; "
    "st.global.u32 [%rd1], %r; ret;\n}\n"
    ".visible .entry params(.param .u64 out, .param .u64 at)\n{\n.reg .b64 %rd<3>; .reg .b32 "
    "%r;\n"
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [at]; ld.u32 %r, [%rd2]; st.global.u32 "
    "[%rd1], "
    "%r; ret;\n}\n"
    ".visible .entry leak(.param .u64 out)\n{\n.reg .b64 %rd; .reg .b32 %r<3>; .shared .align "
    "4 "
    ".b8 all[1024];\n"
    "ld.param.u64 %rd, [out]; mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, all; "
    "add.u32 %r1, %r1, %r2; ld.shared.u32 %r2, [%r1]; red.global.or.b32 [%rd], %r2; ret;\n}\n"
    ".visible .entry stain(.param .u64 out)\n{\n.reg .b32 %r<3>; .shared .align 4 .b8 "
    "all[1024];\n"
    "mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, all; add.u32 %r1, %r1, %r2; "
    "st.shared.u32 [%r1], 12345; ret;\n}\n"
    ".visible .entry says(.param .u64 out, .param .u64 at)\n{\n.reg .b64 %rd<4>; .reg .b32 %r; "
    ".local .align 8 .b8 args[8];\n"
    "ld.param.u64 %rd1, [at]; mov.u64 %rd2, args; st.local.u64 [%rd2], %rd1; cvta.local.u64 "
    "%rd2, "
    "%rd2; mov.u64 %rd3, format; cvta.global.u64 %rd3, %rd3;\n"
    "{\n.param .b64 f; .param .b64 a; .param .b32 res;\nst.param.b64 [f], %rd3; st.param.b64 "
    "[a], %rd2; call (res), vprintf, (f, a); ld.param.b32 %r, [res];\n}\nret;\n}\n";
enum { PEEK, PARAMS, LEAK, STAIN, SAYS };

struct line_args {
    uint64_t out;
    uint32_t n, add;
};
struct sum_args {
    uint64_t out;
    uint32_t weight;
};
struct wild_args {
    uint64_t where;
    uint32_t what, at;
};

struct fix {
    struct softs *s;
    uint64_t out[SOFTS_CLIENTS];
    char why[256];
};

static bool load_all(struct fix *f, unsigned c)
{
    f->out[c] = softs_alloc(f->s, c, 1 << 16);
    return f->out[c] && !softs_load(f->s, c, 1, line) && !softs_load(f->s, c, 2, sum) &&
           !softs_load(f->s, c, 3, wild) && !softs_load(f->s, c, 4, sly);
}

static int setup_with(void **state, uint32_t n_loaders, uint64_t max_insns)
{
    struct fix *f = calloc(1, sizeof(*f));
    *state = f;
    f->s = softs_new("rtx3070", n_loaders, max_insns);
    for (unsigned c = 0; c < 4; c++) {
        softs_hello(f->s, c);
        if (!load_all(f, c))
            return -1;
    }
    return 0;
}
static int setup(void **state)
{
    return setup_with(state, 0, 0);
}
static int setup_threads(void **state)
{
    return setup_with(state, 2, 0);
}
static int setup_scaled(void **state)
{
    softs_clock = WS_CLOCK_SCALED;
    int r = setup_with(state, 0, 0);
    softs_clock = WS_CLOCK_FUNCTIONAL;
    return r;
}
static int setup_limit(void **state)
{
    return setup_with(state, 0, 2000000);
}

static int teardown(void **state)
{
    struct fix *f = *state;
    softs_free(f->s);
    free(f);
    return 0;
}

/* ---- work of one client ---- */

static void give_line(struct fix *f, unsigned c, uint64_t stream, uint32_t n, uint32_t add)
{
    struct line_args a = {f->out[c], n, add};
    softs_launch(f->s, c,
                 &(struct softs_launch){.stream = stream,
                                        .module = 1,
                                        .grid = {(n + 63) / 64},
                                        .block = {64},
                                        .params = &a,
                                        .param_bytes = sizeof(a)});
}

static void check_line(struct fix *f, unsigned c, uint32_t n, uint32_t add)
{
    const uint32_t *out = softs_host(f->s, c, f->out[c], 1 << 16);
    for (uint32_t i = 0; i < 16384; i++)
        if (out[i] != (i < n ? 6 * i + add : 0))
            fail_msg("client %u: out[%u] = %u", c, i, out[i]);
}

static void give_sum(struct fix *f, unsigned c, uint32_t blocks, uint32_t x, uint32_t y,
                     uint32_t weight)
{
    struct sum_args a = {f->out[c], weight};
    softs_launch(
        f->s, c,
        &(struct softs_launch){
            .module = 2, .grid = {blocks}, .block = {x, y}, .params = &a, .param_bytes = 12});
}

static void check_sum(struct fix *f, unsigned c, uint32_t blocks, uint32_t x, uint32_t y,
                      uint32_t weight)
{
    const uint32_t *out = softs_host(f->s, c, f->out[c], 1 << 16);
    uint32_t want = 0;
    for (uint32_t j = 0; j < y; j++)
        for (uint32_t i = 0; i < x; i++)
            want += weight * (i + 100 * j);
    for (uint32_t i = 0; i < 16384; i++)
        if (out[i] != (i < blocks ? want : 0))
            fail_msg("client %u: out[%u] = %u, not %u", c, i, out[i], i < blocks ? want : 0);
}

static void give_of(struct fix *f, unsigned c, uint64_t module, uint32_t kernel, uint32_t blocks,
                    uint32_t threads, const void *params, size_t bytes)
{
    softs_launch(f->s, c,
                 &(struct softs_launch){.module = module,
                                        .kernel = kernel,
                                        .grid = {blocks},
                                        .block = {threads},
                                        .params = params,
                                        .param_bytes = bytes});
}

static void give(struct fix *f, unsigned c, uint32_t kernel, uint32_t blocks, uint32_t threads,
                 const void *params, size_t bytes)
{
    give_of(f, c, 3, kernel, blocks, threads, params, bytes);
}

/* A module's variable of the client. */
static void *variable(struct fix *f, unsigned c, uint64_t module, const char *name)
{
    struct ws_module *m = ws_module_find(f->s->clients[c].client, module);
    for (uint32_t i = 0; i < m->code->info->n_vars; i++)
        if (!strcmp(m->code->info->vars[i].name, name))
            return softs_host(f->s, c, m->var_va[i], m->code->info->vars[i].size_bytes);
    fail_msg("no variable %s", name);
    return NULL;
}

/* ---- together ---- */

static void hold(struct fix *f, unsigned n)
{
    for (unsigned c = 0; c < n; c++)
        softs_hold(f->s, c);
}

static int together(struct fix *f, unsigned n)
{
    struct ws_command *jobs[SOFTS_CLIENTS] = {NULL};
    for (unsigned c = 0; c < n; c++)
        jobs[c] = softs_head(f->s, c, 0);
    int r =
        ws_fused_start(f->s->server, &f->s->server->gpus[0], NULL, jobs, n, f->why, sizeof(f->why));
    for (unsigned c = 0; !r && c < n; c++)
        softs_let_go(f->s, c);
    return r;
}

static struct ws_device_telemetry telemetry(struct fix *f)
{
    struct ws_device_telemetry t;
    ws_device_telemetry(f->s->device, &t);
    return t;
}

static void test_each_gets_its_own(void **state)
{
    struct fix *f = *state;
    hold(f, 4);
    give_line(f, 0, 0, 1000, 7);
    give_sum(f, 1, 9, 5, 7, 3);
    give_line(f, 2, 0, 4000, 100);
    give_sum(f, 3, 30, 16, 16, 1);
    if (together(f, 4))
        fail_msg("%s", f->why);
    for (unsigned c = 0; c < 4; c++)
        assert_int_equal(softs_sync(f->s, c), 0);
    assert_int_equal(telemetry(f).n_kernels, 1);
    check_line(f, 0, 1000, 7);
    check_sum(f, 1, 9, 5, 7, 3);
    check_line(f, 2, 4000, 100);
    check_sum(f, 3, 30, 16, 16, 1);
    /* the variables of each are its own, with the values they had */
    assert_int_equal(*(uint32_t *)variable(f, 0, 1, "counter"), 5 + 1000);
    assert_int_equal(*(uint32_t *)variable(f, 2, 1, "counter"), 5 + 4000);
    assert_int_equal(*(uint32_t *)variable(f, 1, 1, "counter"), 5);
    assert_int_equal(*(uint64_t *)variable(f, 1, 2, "counter"), 9);
    assert_int_equal(*(uint64_t *)variable(f, 3, 2, "counter"), 30);
    uint64_t uj = 0, insns = 0;
    for (unsigned c = 0; c < 4; c++) {
        const struct ws_client_stats *t = &f->s->clients[c].client->stats;
        uj += t->energy_uj;
        assert_int_equal(t->n_kernels, 1);
        assert_true(t->energy_uj > 0 && t->device_ns > 0);
        insns += t->n_retired == t->n_commands;
    }
    assert_int_equal(insns, 4);
    assert_int_equal(uj, telemetry(f).energy_uj); /* the shares are all there was */
}

/* The same template serves again; other numbers of blocks are no other template. */
static void test_templates_are_kept(void **state)
{
    struct fix *f = *state;
    struct ws_fused_counts n;
    for (uint32_t round = 1; round <= 3; round++) {
        hold(f, 3);
        for (unsigned c = 0; c < 3; c++) {
            memset(softs_host(f->s, c, f->out[c], 1 << 16), 0, 1 << 16);
            give_line(f, c, 0, 100 * round + 1000 * c, round);
        }
        assert_int_equal(together(f, 3), 0);
        for (unsigned c = 0; c < 3; c++) {
            assert_int_equal(softs_sync(f->s, c), 0);
            check_line(f, c, 100 * round + 1000 * c, round);
        }
        ws_fused_counts(f->s->server, &n);
        assert_int_equal(n.n_templates, 1);
        assert_int_equal(n.n_launches, round); /* three of four members */
        assert_int_equal(n.n_members, 3 * round);
    }
    /* in another order, it is the same */
    hold(f, 2);
    give_line(f, 0, 0, 10, 1);
    give_sum(f, 1, 2, 3, 3, 1);
    assert_int_equal(together(f, 2), 0);
    assert_int_equal(softs_sync(f->s, 0) | softs_sync(f->s, 1), 0);
    hold(f, 2);
    give_sum(f, 0, 2, 3, 3, 1);
    give_line(f, 1, 0, 10, 1);
    assert_int_equal(together(f, 2), 0);
    assert_int_equal(softs_sync(f->s, 0) | softs_sync(f->s, 1), 0);
    ws_fused_counts(f->s->server, &n);
    assert_int_equal(n.n_templates, 2);
}

static void test_loader_threads_make_them(void **state)
{
    struct fix *f = *state;
    hold(f, 2);
    give_line(f, 0, 0, 100, 1);
    give_line(f, 1, 0, 200, 2);
    int r = together(f, 2), tries = 0;
    assert_int_equal(r, -EAGAIN);
    assert_ptr_not_equal(softs_head(f->s, 0, 0), NULL); /* nothing has happened to it */
    while (r == -EAGAIN && tries++ < 10000) {
        softs_turn(f->s);
        r = together(f, 2);
    }
    assert_int_equal(r, 0);
    assert_int_equal(softs_sync(f->s, 0) | softs_sync(f->s, 1), 0);
    check_line(f, 0, 100, 1);
    check_line(f, 1, 200, 2);
}

static void test_streams_of_one_client(void **state)
{
    struct fix *f = *state;
    Ws__StreamCreate m = WS__STREAM_CREATE__INIT;
    m.non_blocking = true;
    for (m.stream = WS_STREAM_FIRST; m.stream < WS_STREAM_FIRST + 2; m.stream++)
        assert_int_equal(ws_stream_create(f->s->clients[0].client, &m), 0);
    hold(f, 1);
    give_line(f, 0, WS_STREAM_FIRST, 100, 1);
    give_line(f, 0, WS_STREAM_FIRST + 1, 50, 1);
    struct ws_command *jobs[] = {softs_head(f->s, 0, WS_STREAM_FIRST),
                                 softs_head(f->s, 0, WS_STREAM_FIRST + 1)};
    assert_int_equal(
        ws_fused_start(f->s->server, &f->s->server->gpus[0], NULL, jobs, 2, f->why, sizeof(f->why)),
        0);
    softs_let_go(f->s, 0);
    assert_int_equal(softs_sync(f->s, 0), 0);
    check_line(f, 0, 100, 1);
    assert_int_equal(*(uint32_t *)variable(f, 0, 1, "counter"), 5 + 150);
}

/* ---- who goes wrong, goes alone ---- */

/* Client 1 misbehaves, among two others whose results must be right. */
static void among_others(struct fix *f, uint32_t kernel, const void *params, size_t bytes,
                         Ws__Error want, const char *text)
{
    hold(f, 3);
    give_line(f, 0, 0, 3000, 7);
    give(f, 1, kernel, 20, 32, params, bytes);
    give_sum(f, 2, 40, 8, 8, 3);
    if (together(f, 3))
        fail_msg("%s", f->why);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_int_equal(softs_sync(f->s, 2), 0);
    assert_int_equal(softs_sync(f->s, 1), want);
    check_line(f, 0, 3000, 7);
    check_sum(f, 2, 40, 8, 8, 3);
    if (text && !strstr(f->s->clients[1].client->errors.text, text))
        fail_msg("said: %s", f->s->clients[1].client->errors.text);
    assert_int_equal(
        f->s->clients[0].client->errors.sticky | f->s->clients[2].client->errors.sticky, 0);
}

static void test_fence(void **state)
{
    struct fix *f = *state;
    struct wild_args a = {f->out[0] + 40000, 0xdead, 7}; /* the neighbour's memory */
    among_others(f, WILD, &a, sizeof(a), WS__ERROR__ILLEGAL_ADDRESS,
                 "outside of its client's memory");
}

static void test_fence_of_variables(void **state)
{
    struct fix *f = *state;
    struct ws_module *m = ws_module_find(f->s->clients[2].client, 3);
    struct wild_args a = {m->var_va[0], 0xdead, 0};
    among_others(f, WILD, &a, sizeof(a), WS__ERROR__ILLEGAL_ADDRESS, "outside");
    assert_int_equal(*(uint32_t *)variable(f, 2, 3, "counter"), 0);
}

/* The words by which a fused launch is fenced are nobody's. */
static void test_fence_of_the_fences(void **state)
{
    struct fix *f = *state;
    struct wild_args a = {WS_OWN_VA + WS_RELAUNCH_PAGES * UINT64_C(4096), 0, 0};
    among_others(f, WILD, &a, sizeof(a), WS__ERROR__ILLEGAL_ADDRESS, "outside");
}

static void test_own_memory_passes(void **state)
{
    struct fix *f = *state;
    struct wild_args a = {f->out[1] + 64, 0xbeef, 19};
    among_others(f, WILD, &a, sizeof(a), 0, NULL);
    const uint32_t *out = softs_host(f->s, 1, f->out[1], 4096);
    for (int k = 0; k < 64; k++)
        assert_int_equal(out[k], k >= 16 && k < 48 ? 0xbeef : 0);
    assert_int_equal(*(uint32_t *)variable(f, 1, 3, "counter"), 20 * 32);
}

/* In its own range of addresses, but no memory. */
static void test_hole(void **state)
{
    struct fix *f = *state;
    struct wild_args a = {f->out[1] + (UINT64_C(1) << 30), 1, 3};
    among_others(f, WILD, &a, sizeof(a), WS__ERROR__ILLEGAL_ADDRESS,
                 "kernel wild block (3,0,0) thread (0,0,0)");
}

static void test_trap(void **state)
{
    struct fix *f = *state;
    uint32_t at = 11;
    among_others(f, TRAPS, &at, sizeof(at), WS__ERROR__TRAP, "kernel traps block (11,0,0)");
}

static void test_misaligned(void **state)
{
    struct fix *f = *state;
    among_others(f, ODD, &f->out[1], 8, WS__ERROR__MISALIGNED_ADDRESS, "kernel odd block");
}

static void test_limit(void **state)
{
    struct fix *f = *state;
    among_others(f, ENDLESS, &f->out[1], 8, WS__ERROR__LAUNCH_TIMEOUT, "endless: not finished");
}

/* One is killed in the midst: the others end, and its memory is there until they have. */
static void test_killed(void **state)
{
    struct fix *f = *state;
    uint64_t before = telemetry(f).memory_used_bytes;
    hold(f, 3);
    give_line(f, 0, 0, 3000, 7);
    give(f, 1, ENDLESS, 20, 32, &f->out[1], 8);
    give_sum(f, 2, 40, 8, 8, 3);
    assert_int_equal(together(f, 3), 0);
    volatile uint32_t *begun = softs_host(f->s, 1, f->out[1], 8);
    for (int k = 0; k < 10000 && !*begun; k++)
        softs_turn(f->s);
    assert_int_equal(*begun, 1);
    softs_drop(f->s, 1);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_int_equal(softs_sync(f->s, 2), 0);
    check_line(f, 0, 3000, 7);
    check_sum(f, 2, 40, 8, 8, 3);
    for (int k = 0; k < 1000 && !ws_list_empty(&f->s->server->clients.dying); k++)
        softs_turn(f->s);
    assert_true(ws_list_empty(&f->s->server->clients.dying));
    assert_true(telemetry(f).memory_used_bytes < before);
}

static void test_all_killed(void **state)
{
    struct fix *f = *state;
    hold(f, 2);
    give(f, 0, ENDLESS, 200, 32, &f->out[0], 8);
    give(f, 1, ENDLESS, 200, 32, &f->out[1], 8);
    assert_int_equal(together(f, 2), 0);
    softs_drop(f->s, 1);
    softs_drop(f->s, 0);
    for (int k = 0; k < 10000 && !ws_list_empty(&f->s->server->clients.dying); k++)
        softs_turn(f->s);
    assert_true(ws_list_empty(&f->s->server->clients.dying));
}

static uint64_t seed = 11;
static uint32_t rnd(uint32_t n) /* 0…n-1 */
{
    seed = seed * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(seed >> 33) % n;
}

/* Somebody is killed at any moment of a launch, others fault meanwhile: who is left has the
 * right results, always. */
static void test_random_kills(void **state)
{
    struct fix *f = *state;
    for (int round = 0; round < 200; round++) {
        unsigned n = 2 + rnd(3), killed = rnd(4), what[4];
        hold(f, n);
        f->s->config.fused_leader = round & 1;
        for (unsigned c = 0; c < n; c++) {
            memset(softs_host(f->s, c, f->out[c], 1 << 16), 0, 1 << 16);
            what[c] = round % 5 == 4 ? 0 : rnd(4);
            uint32_t at = rnd(30);
            struct wild_args a = {f->out[(c + 1) % n], 1, at};
            if (what[c] == 0)
                give_line(f, c, 0, 2000 + c, c);
            else if (what[c] == 1)
                give_sum(f, c, 40, 8, 1 + c, 3 + c);
            else if (what[c] == 2)
                give(f, c, at & 1 ? WILD : TRAPS, 40, 32, at & 1 ? (void *)&a : &at,
                     at & 1 ? sizeof(a) : sizeof(at));
            else if (c == killed)
                give(f, c, ENDLESS, 30, 32, &f->out[c], 8);
            else
                give_line(f, c, 0, 2000 + c, c);
            what[c] = what[c] == 3 ? 0 : what[c];
        }
        assert_int_equal(together(f, n), 0);
        for (uint32_t k = rnd(3); k; k--)
            softs_turn(f->s);
        if (killed < n)
            softs_drop(f->s, killed);
        for (unsigned c = 0; c < n; c++) {
            if (c == killed)
                continue;
            Ws__Error e = softs_sync(f->s, c);
            if (what[c] == 0 || what[c] == 1)
                assert_int_equal(e, 0);
            if (what[c] == 0)
                check_line(f, c, 2000 + c, c);
            else if (what[c] == 1)
                check_sum(f, c, 40, 8, 1 + c, 3 + c);
            else if (e)
                softs_drop(f->s, c);
        }
        for (int k = 0; k < 10000 && !ws_list_empty(&f->s->server->clients.dying); k++)
            softs_turn(f->s);
        assert_true(ws_list_empty(&f->s->server->clients.dying));
        for (unsigned c = 0; c < n; c++)
            if (!f->s->clients[c].client) {
                softs_hello(f->s, c);
                assert_true(load_all(f, c));
            }
    }
}

/* ---- ways around the fence ---- */

static void spy(struct fix *f, uint32_t kernel, uint64_t at, Ws__Error want)
{
    uint64_t a[] = {f->out[1], at};
    hold(f, 2);
    give_line(f, 0, 0, 300, 1234567);
    give_of(f, 1, 4, kernel, 1, 1, a, sizeof(a));
    if (together(f, 2))
        fail_msg("%s", f->why);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_int_equal(softs_sync(f->s, 1), want);
    check_line(f, 0, 300, 1234567);
}

static void test_own_constant(void **state)
{
    struct fix *f = *state;
    struct ws_module *m = ws_module_find(f->s->clients[1].client, 4);
    spy(f, PEEK, m->var_va[1], 0);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 1, f->out[1], 4), 77);
}

static void test_constant_of_another(void **state)
{
    struct fix *f = *state;
    struct ws_module *m = ws_module_find(f->s->clients[0].client, 1);
    spy(f, PEEK, m->var_va[0], WS__ERROR__ILLEGAL_ADDRESS);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 1, f->out[1], 4), 0);
}

static void test_parameters_of_another(void **state)
{
    struct fix *f = *state;
    spy(f, PARAMS, (UINT64_C(3) << 56) + 12, WS__ERROR__ILLEGAL_ADDRESS);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 1, f->out[1], 4), 0);
}

static void test_shared_memory_of_another(void **state)
{
    struct fix *f = *state;
    hold(f, 2);
    give_of(f, 0, 4, STAIN, 400, 256, &f->out[0], 8);
    give_of(f, 1, 4, LEAK, 400, 256, &f->out[1], 8);
    assert_int_equal(together(f, 2), 0);
    assert_int_equal(softs_sync(f->s, 0) | softs_sync(f->s, 1), 0);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 1, f->out[1], 4), 0);
}

/* Each record's text, without its head. */
static void printed(struct fix *f, unsigned c, char *to, size_t size)
{
    uint8_t data[1024];
    uint64_t left, lost;
    size_t n = ws_output_take(&f->s->clients[c].client->output, data, sizeof(data), &left, &lost);
    *to = 0;
    for (size_t at = 0; at < n;) {
        size_t bytes = data[at + 1] | (size_t)data[at + 2] << 8 | (size_t)data[at + 3] << 16;
        at += WS_OUTPUT_HEAD_BYTES;
        snprintf(to + strlen(to), size - strlen(to), "%.*s", (int)bytes, (char *)data + at);
        at += bytes;
    }
}

static void test_output_goes_to_its_client(void **state)
{
    struct fix *f = *state;
    char text[256];
    strcpy(softs_host(f->s, 0, f->out[0] + 64, 8), "zero");
    strcpy(softs_host(f->s, 1, f->out[1] + 64, 8), "one");
    for (int own = 1; own >= 0; own--) {
        uint64_t a[] = {0, f->out[0] + 64}, b[] = {0, f->out[own] + 64};
        hold(f, 2);
        give_of(f, 0, 4, SAYS, 2, 1, a, sizeof(a));
        give_of(f, 1, 4, SAYS, 1, 1, b, sizeof(b));
        assert_int_equal(together(f, 2), 0);
        assert_int_equal(softs_sync(f->s, 0), 0);
        (void)softs_sync(f->s, 1);
        printed(f, 0, text, sizeof(text));
        assert_string_equal(text, "zero!\nzero!\n");
        printed(f, 1, text, sizeof(text));
        assert_null(strstr(text, "zero"));
        if (own)
            assert_string_equal(text, "one!\n");
    }
}

/* ---- one kernel for all (leader) ---- */

static int setup_leader(void **state)
{
    int r = setup(state);
    ((struct fix *)*state)->s->config.fused_leader = true;
    return r;
}

static void test_leader(void **state)
{
    struct fix *f = *state;
    struct ws_fused_counts n;
    for (unsigned clients = 2; clients <= 4; clients++) {
        hold(f, clients);
        for (unsigned c = 0; c < clients; c++) {
            memset(softs_host(f->s, c, f->out[c], 1 << 16), 0, 1 << 16);
            give_line(f, c, 0, 961 + c, 7 * c);
        }
        assert_int_equal(together(f, clients), 0);
        for (unsigned c = 0; c < clients; c++)
            assert_int_equal(softs_sync(f->s, c), 0);
        for (unsigned c = 0; c < clients; c++)
            check_line(f, c, 961 + c, 7 * c);
    }
    ws_fused_counts(f->s->server, &n);
    assert_int_equal(n.n_templates, 1);
    assert_int_equal(*(uint32_t *)variable(f, 1, 1, "counter"), 5 + 3 * 962);
    assert_int_equal(*(uint32_t *)variable(f, 3, 1, "counter"), 5 + 964);
    hold(f, 3); /* a grid of three dimensions, a barrier, and shared memory */
    for (unsigned c = 0; c < 3; c++) {
        memset(softs_host(f->s, c, f->out[c], 1 << 16), 0, 1 << 16);
        give_sum(f, c, 9, 5, 7, 3 + c);
    }
    assert_int_equal(together(f, 3), 0);
    for (unsigned c = 0; c < 3; c++) {
        assert_int_equal(softs_sync(f->s, c), 0);
        check_sum(f, c, 9, 5, 7, 3 + c);
        assert_int_equal(*(uint64_t *)variable(f, c, 2, "counter"), 9);
    }
    uint64_t uj = 0;
    for (unsigned c = 0; c < 4; c++)
        uj += f->s->clients[c].client->stats.energy_uj;
    assert_int_equal(uj, telemetry(f).energy_uj);
}

static void test_leader_fence(void **state)
{
    struct fix *f = *state;
    hold(f, 3);
    for (unsigned c = 0; c < 3; c++) {
        struct wild_args a = {c == 1 ? f->out[2] + 4096 : f->out[c], 0xbeef, 4};
        give(f, c, WILD, 20, 32, &a, sizeof(a));
    }
    assert_int_equal(together(f, 3), 0);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_int_equal(softs_sync(f->s, 2), 0);
    assert_int_equal(softs_sync(f->s, 1), WS__ERROR__ILLEGAL_ADDRESS);
    for (unsigned c = 0; c < 3; c += 2) {
        const uint32_t *out = softs_host(f->s, c, f->out[c], 1 << 16);
        for (int k = 0; k < 16384; k++)
            assert_int_equal(out[k], k < 32 ? 0xbeef : 0);
        assert_int_equal(*(uint32_t *)variable(f, c, 3, "counter"), 640);
    }
}

static void test_leader_killed(void **state)
{
    struct fix *f = *state;
    hold(f, 2);
    give(f, 0, ENDLESS, 10, 32, &f->out[0], 8);
    give(f, 1, ENDLESS, 10, 32, &f->out[1], 8);
    assert_int_equal(together(f, 2), 0);
    volatile uint32_t *begun = softs_host(f->s, 1, f->out[1], 8);
    for (int k = 0; k < 10000 && !*begun; k++)
        softs_turn(f->s);
    assert_int_equal(*begun, 1);
    softs_drop(f->s, 0);
    softs_drop(f->s, 1);
    for (int k = 0; k < 10000 && !ws_list_empty(&f->s->server->clients.dying); k++)
        softs_turn(f->s);
    assert_true(ws_list_empty(&f->s->server->clients.dying));
}

/* ---- made by hand ---- */

static const char *source(const char *name, char *path, size_t size)
{
    const char *dir = getenv("srcdir");
    snprintf(path, size, "%s/%s", dir ? dir : ".", name);
    return path;
}

static char *read_source(const char *name)
{
    char path[600], *text = calloc(1, 1 << 20);
    FILE *f = fopen(source(name, path, sizeof(path)), "r");
    if (!f || !fread(text, 1, (1 << 20) - 1, f))
        fail_msg("%s can't be read", path);
    fclose(f);
    return text;
}

enum { AES_BLOCKS = 700 };

/* Clients with keys of their own; what the kernels give is compared with the CPU's byte-wise
 * cipher. */
static void encrypts(struct fix *f, uint32_t want_shared_bytes)
{
    char *ptx = read_source("tests/cuda/ptx/aes.ptx");
    struct aes_tables t[3];
    uint8_t plain[16 * AES_BLOCKS], want[16 * AES_BLOCKS];
    for (unsigned c = 0; c < 3; c++) {
        uint8_t key[16];
        assert_int_equal(softs_load(f->s, c, 9, ptx), 0);
        for (int k = 0; k < 16; k++)
            key[k] = (uint8_t)(17 * k + 31 * c);
        aes_make_tables(&t[c], key);
        memcpy(variable(f, c, 9, "aes_t"), &t[c], sizeof(t[c]));
        uint8_t *at = softs_host(f->s, c, f->out[c], 1 << 16);
        for (size_t k = 0; k < sizeof(plain); k++)
            plain[k] = at[k] = (uint8_t)(k * 7 + k / 256);
    }
    free(ptx);
    hold(f, 3);
    for (unsigned c = 0; c < 3; c++) {
        struct {
            uint64_t in, out, nonce;
            int blocks;
        } a = {f->out[c], f->out[c], 1000 + c, AES_BLOCKS};
        softs_launch(f->s, c,
                     &(struct softs_launch){.module = 9,
                                            .kernel = 1, /* aes_ctr */
                                            .grid = {(AES_BLOCKS + 255) / 256},
                                            .block = {256},
                                            .params = &a,
                                            .param_bytes = 28});
    }
    if (together(f, 3))
        fail_msg("%s", f->why);
    for (unsigned c = 0; c < 3; c++) {
        assert_int_equal(softs_sync(f->s, c), 0);
        aes_cpu_ctr(&t[c], 1000 + c, plain, want, AES_BLOCKS);
        assert_memory_equal(softs_host(f->s, c, f->out[c], 1 << 16), want, sizeof(want));
    }
    const struct ws_fused_code *code;
    const char *why;
    struct ws_fused_kernel k[4]; /* made for four, of which one has had no work */
    for (unsigned c = 0; c < 4; c++)
        k[c] = (struct ws_fused_kernel){ws_module_find(f->s->clients[c % 3].client, 9), 1};
    assert_int_equal(
        ws_fused_cache_get(f->s->server, f->s->device, k, 4, WS_FUSED_SAME_BLOCK, &code, &why), 0);
    assert_int_equal(ws_dmodule_info(code->dmodule)->kernels[code->kernel].static_shared_bytes,
                     want_shared_bytes);
    ws_fused_cache_put(code);
    struct ws_fused_counts counts;
    ws_fused_counts(f->s->server, &counts);
    assert_int_equal(counts.n_templates, 1);
}

static void test_generated_encryption(void **state)
{
    encrypts(*state, 0);
}

static int setup_enterprise(void **state)
{
    static char path[600];
    softs_templates = source("templates/enterprise", path, sizeof(path));
    int r = setup(state);
    softs_templates = NULL;
    return r;
}

static void test_encryption_by_hand(void **state)
{
    encrypts(*state, 1024);
}

/* A replacement with a constant of its own, once for all. */
static int setup_own_constant(void **state)
{
    static char dir[64] = "/tmp/test_backend_fused.XXXXXX";
    static const char ptx[] =
        HEAD ".const .align 4 .u32 mine[3] = {0, 0, 1000};\n.global .align 4 .u32 counter;\n"
             ".visible .entry other(.param .u64 out, .param .u32 n, .param .u32 add)\n{\n"
             ".reg .b32 %r<3>; .reg .b64 %rd;\n"
             "ld.param.u64 %rd, [out]; ld.const.u32 %r1, [mine+8]; ld.param.u32 %r2, [add]; "
             "add.u32 %r1, %r1, %r2; st.global.u32 [%rd], %r1; red.global.add.u32 [counter], 3; "
             "ret;\n}\n";
    char path[128];
    if (!mkdtemp(dir))
        return -1;
    FILE *f = fopen(strcat(strcpy(path, dir), "/a.ptx"), "w");
    fputs(ptx, f);
    fclose(f);
    f = fopen(strcat(strcpy(path, dir), "/manifest"), "w");
    fputs("work(u64,u32,u32) a.ptx other\n", f);
    fclose(f);
    softs_templates = dir;
    int r = setup(state);
    softs_templates = NULL;
    unlink(path);
    unlink(strcat(strcpy(path, dir), "/a.ptx"));
    rmdir(dir);
    return r;
}

static void test_constant_of_a_replacement(void **state)
{
    struct fix *f = *state;
    hold(f, 3);
    give_line(f, 0, 0, 10, 7);
    give_line(f, 1, 0, 10, 8);
    give_sum(f, 2, 9, 5, 7, 3); /* has the name, and other parameters */
    if (together(f, 3))
        fail_msg("%s", f->why);
    for (unsigned c = 0; c < 3; c++)
        assert_int_equal(softs_sync(f->s, c), 0);
    for (unsigned c = 0; c < 2; c++) {
        assert_int_equal(*(uint32_t *)softs_host(f->s, c, f->out[c], 4), 1007 + c);
        assert_int_equal(*(uint32_t *)variable(f, c, 1, "counter"), 5 + 64 * 3); /* the program's */
    }
    check_sum(f, 2, 9, 5, 7, 3);
}

/* ---- what can't be ---- */

static void refused(struct fix *f, unsigned n, const char *why)
{
    f->why[0] = 0;
    assert_int_equal(together(f, n), WS_FUSED_E_REFUSED);
    if (!strstr(f->why, why))
        fail_msg("why: %s", f->why);
    for (unsigned c = 0; c < n; c++) { /* one by one, then */
        assert_ptr_not_equal(softs_head(f->s, c, 0), NULL);
        softs_let_go(f->s, c);
        softs_sync(f->s, c);
    }
}

static void test_refusals(void **state)
{
    struct fix *f = *state;
    struct ws_fused_counts n;
    for (int round = 0; round < 2; round++) {
        hold(f, 2);
        give_line(f, 0, 0, 10, 1);
        give(f, 1, THROUGH, 1, 1, &f->out[1], 8);
        refused(f, 2, "a call through a register");
        check_line(f, 0, 10, 1);
        assert_int_not_equal(f->s->clients[1].client->errors.sticky, 0);
        ws_fused_counts(f->s->server, &n);
        assert_int_equal(n.n_refusals, 1);
        softs_drop(f->s, 1);
        softs_hello(f->s, 1);
        f->out[1] = softs_alloc(f->s, 1, 1 << 16);
        assert_int_equal(softs_load(f->s, 1, 3, wild), 0);
    }
    hold(f, 2);
    give_line(f, 0, 0, 10, 1);
    give(f, 1, TRAPS, 1, 2000, &(uint32_t){9}, 4); /* too many threads */
    refused(f, 2, "its launch is not a valid one");
    assert_int_equal(f->s->clients[1].notice_error, WS__ERROR__INVALID_CONFIGURATION);
    hold(f, 2);
    give_line(f, 0, 0, 10, 3);
    give(f, 1, TRAPS, 2, 1, &(uint32_t){9}, 4);
    for (int i = 0; i < 3; i++)
        softs_head(f->s, 1, 0)->op.launch.cluster[i] = i ? 1 : 2;
    refused(f, 2, "one of clusters");
    check_line(f, 0, 10, 3);
}

static void test_memory_at_one_address(void **state)
{
    struct fix *f = *state;
    uint8_t a[4096], b[4096];
    assert_int_equal(ws_space_map_host(f->s->clients[0].client->memory.space, 0x10000, 4096, a), 0);
    assert_int_equal(ws_space_map_host(f->s->clients[1].client->memory.space, 0x10800, 4096, b), 0);
    hold(f, 2);
    give_line(f, 0, 0, 10, 1);
    give_line(f, 1, 0, 10, 1);
    refused(f, 2, "memory at one address");
    assert_int_equal(ws_space_unmap(f->s->clients[1].client->memory.space, 0x10800), 0);
    hold(f, 2);
    give_line(f, 0, 0, 20, 1);
    give_line(f, 1, 0, 20, 1);
    assert_int_equal(together(f, 2), 0);
    assert_int_equal(softs_sync(f->s, 0) | softs_sync(f->s, 1), 0);
    assert_int_equal(ws_space_unmap(f->s->clients[0].client->memory.space, 0x10000), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_gets_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_templates_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loader_threads_make_them, setup_threads, teardown),
        cmocka_unit_test_setup_teardown(test_streams_of_one_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fence_of_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fence_of_the_fences, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_memory_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_misaligned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup_limit, teardown),
        cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_kills, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed, setup_scaled, teardown),
        cmocka_unit_test_setup_teardown(test_all_killed, setup_scaled, teardown),
        cmocka_unit_test_setup_teardown(test_random_kills, setup_scaled, teardown),
        cmocka_unit_test_setup_teardown(test_own_constant, setup, teardown),
        cmocka_unit_test_setup_teardown(test_constant_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parameters_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared_memory_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_goes_to_its_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leader, setup_leader, teardown),
        cmocka_unit_test_setup_teardown(test_leader_fence, setup_leader, teardown),
        cmocka_unit_test_setup_teardown(test_leader_killed, setup_leader, teardown),
        cmocka_unit_test_setup_teardown(test_generated_encryption, setup, teardown),
        cmocka_unit_test_setup_teardown(test_encryption_by_hand, setup_enterprise, teardown),
        cmocka_unit_test_setup_teardown(test_constant_of_a_replacement, setup_own_constant,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_at_one_address, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
