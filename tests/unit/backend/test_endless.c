// SPDX-License-Identifier: Apache-2.0
/* Kernels that others wait for, on a software GPU: what has no end is ended, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/softserver.h"

/* compute: each thread has no end. wait: until *p is not 0. work: each block adds 1 to p[0], after
 * @turns turns. */
static const char ptx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry compute(.param .u64 p)\n{\n"
    ".reg .f32 %f; .reg .b64 %rd; ld.param.u64 %rd, [p]; mov.f32 %f, 0f3F800000;\n"
    "L: fma.rn.f32 %f, %f, %f, %f; st.global.f32 [%rd+8], %f; bra L;\n}\n"
    ".visible .entry wait(.param .u64 p)\n{\n"
    ".reg .pred %p; .reg .b32 %r; .reg .b64 %rd; ld.param.u64 %rd, [p];\n"
    "L: ld.volatile.global.u32 %r, [%rd]; setp.eq.u32 %p, %r, 0; @%p bra L; ret;\n}\n"
    ".visible .entry work(.param .u64 p, .param .u32 turns)\n{\n"
    ".reg .pred %p; .reg .b32 %r; .reg .f32 %f; .reg .b64 %rd;\n"
    "ld.param.u64 %rd, [p]; ld.param.u32 %r, [turns]; mov.f32 %f, 0f3F800000;\n"
    "L: fma.rn.f32 %f, %f, %f, %f; st.global.f32 [%rd+8], %f; sub.u32 %r, %r, 1;\n"
    "setp.ne.u32 %p, %r, 0; @%p bra L;\nred.global.add.u32 [%rd], 1; ret;\n}\n";
enum { COMPUTE, WAIT, WORK };
enum { LIMIT_MS = 30, CLIENTS = 3 };
#define LIMIT_NS (LIMIT_MS * UINT64_C(1000000))

struct fix {
    struct softs *s;
    uint64_t out[CLIENTS];
};
struct args {
    uint64_t p;
    uint32_t turns;
};

static int setup_with(void **state, const char *policy)
{
    struct fix *f = calloc(1, sizeof(*f));
    *state = f;
    softs_policy = policy;
    f->s = softs_new("t400", 0, 0);
    softs_policy = NULL;
    f->s->config.max_kernel_ms = LIMIT_MS;
    for (unsigned c = 0; c < CLIENTS; c++) {
        softs_hello(f->s, c);
        f->out[c] = softs_alloc(f->s, c, 4096);
        if (softs_load(f->s, c, 1, ptx))
            return -1;
    }
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_fifo(void **state)
{
    return setup_with(state, "fifo");
}

static int teardown(void **state)
{
    struct fix *f = *state;
    softs_free(f->s);
    free(f);
    return 0;
}

static void give(struct fix *f, unsigned c, uint32_t kernel, uint32_t blocks, uint32_t turns)
{
    struct args a = {f->out[c], turns};
    softs_launch(f->s, c,
                 &(struct softs_launch){.module = 1,
                                        .kernel = kernel,
                                        .grid = {blocks},
                                        .block = {32},
                                        .params = &a,
                                        .param_bytes = kernel == WORK ? 12 : 8});
}

static struct ws_command *running(struct fix *f, unsigned c)
{
    return ws_stream_find(f->s->clients[c].client, WS_STREAM_DEFAULT_0)->running;
}

/* The launch ends by itself soon, as others wait. */
static void urged(struct fix *f, uint32_t kernel, uint32_t blocks)
{
    give(f, 0, kernel, blocks, 0);
    for (int i = 0; i < 100; i++)
        softs_turn(f->s);
    assert_non_null(running(f, 0)); /* nobody has waited yet */
    assert_int_equal(ws_device_urge(f->s->device, &running(f, 0)->op, LIMIT_NS), 0);
    assert_int_equal(softs_sync(f->s, 0), WS__ERROR__LAUNCH_TIMEOUT);
    assert_non_null(strstr(f->s->clients[0].text, "while other clients waited"));
}

static void test_one_block(void **state)
{
    urged(*state, COMPUTE, 1);
}

static void test_blocks_that_wait(void **state)
{
    urged(*state, WAIT, 40);
}

static void test_waited_no_more(void **state)
{
    struct fix *f = *state;
    give(f, 0, WAIT, 4, 0);
    assert_int_equal(ws_device_urge(f->s->device, &running(f, 0)->op, LIMIT_NS), 0);
    assert_int_equal(ws_device_urge(f->s->device, &running(f, 0)->op, 0), 0);
    for (int i = 0; i < 3 * LIMIT_MS; i++)
        softs_turn(f->s);
    *(volatile uint32_t *)softs_host(f->s, 0, f->out[0], 4) = 1;
    assert_int_equal(softs_sync(f->s, 0), 0);
}

/* All its blocks together take many times the limit, each of them far less, also on a slow host. */
static void test_blocks_that_end(void **state)
{
    struct fix *f = *state;
    enum { BLOCKS = 2000, TURNS = 2000 };
    give(f, 0, WORK, BLOCKS, TURNS);
    assert_int_equal(ws_device_urge(f->s->device, &running(f, 0)->op, LIMIT_NS), 0);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 0, f->out[0], 4), 32 * BLOCKS);
}

static void test_member_of_a_merged_launch(void **state)
{
    struct fix *f = *state;
    struct ws_command *jobs[CLIENTS];
    char why[160];
    for (unsigned c = 0; c < CLIENTS; c++) {
        softs_hold(f->s, c);
        give(f, c, c ? WORK : COMPUTE, 5, 10);
        jobs[c] = softs_head(f->s, c, 0);
    }
    if (ws_fused_start(f->s->server, &f->s->server->gpus[0], NULL, jobs, CLIENTS, why, sizeof(why)))
        fail_msg("%s", why);
    for (unsigned c = 0; c < CLIENTS; c++)
        softs_let_go(f->s, c);
    struct ws_op *op = ws_fused_op(running(f, 1)->fused);
    assert_int_equal(ws_device_urge(f->s->device, op, LIMIT_NS), 0);
    assert_int_equal(softs_sync(f->s, 0), WS__ERROR__LAUNCH_TIMEOUT);
    for (unsigned c = 1; c < CLIENTS; c++) {
        assert_int_equal(softs_sync(f->s, c), 0);
        assert_int_equal(*(uint32_t *)softs_host(f->s, c, f->out[c], 4), 32 * 5);
    }
}

static void test_others_get_on(void **state)
{
    struct fix *f = *state;
    give(f, 0, COMPUTE, 2, 0);
    give(f, 1, COMPUTE, 400, 0);
    give(f, 2, WORK, 3, 10);
    assert_int_equal(softs_sync(f->s, 2), 0);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 2, f->out[2], 4), 32 * 3);
    assert_int_equal(softs_sync(f->s, 0), WS__ERROR__LAUNCH_TIMEOUT);
}

/* A grid without end gives way again and again, and is not ended. */
static void test_grid_gives_way(void **state)
{
    struct fix *f = *state;
    give(f, 0, WORK, 0x7fffffff, 100);
    for (uint32_t n = 1; n <= 8; n++) {
        give(f, 1, WORK, 3, 10);
        assert_int_equal(softs_sync(f->s, 1), 0);
        assert_int_equal(*(uint32_t *)softs_host(f->s, 1, f->out[1], 4), 32 * 3 * n);
    }
    assert_false(f->s->clients[0].client->errors.sticky);
    assert_false(ws_stream_query_busy(&f->s->clients[1].client->contexts[0].legacy));
    assert_true(ws_stream_query_busy(&f->s->clients[0].client->contexts[0].legacy));
}

/* What stopped for others goes on where it was. */
static void test_long_work_is_right(void **state)
{
    struct fix *f = *state;
    enum { BLOCKS = 2000, TURNS = 2000 };
    unsigned n_between = 0;
    give(f, 0, WORK, BLOCKS, TURNS);
    while (ws_stream_query_busy(&f->s->clients[0].client->contexts[0].legacy)) {
        give(f, 1, WORK, 3, 10);
        assert_int_equal(softs_sync(f->s, 1), 0);
        n_between++;
    }
    assert_true(n_between > 1);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_int_equal(*(uint32_t *)softs_host(f->s, 0, f->out[0], 4), 32 * BLOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_block, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_that_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waited_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_that_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_member_of_a_merged_launch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_get_on, setup_fifo, teardown),
        cmocka_unit_test_setup_teardown(test_grid_gives_way, setup_fifo, teardown),
        cmocka_unit_test_setup_teardown(test_long_work_is_right, setup_fifo, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
