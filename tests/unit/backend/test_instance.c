// SPDX-License-Identifier: Apache-2.0
/* Instances of modules that have so much to write that a thread makes them: the loop goes on
 * meanwhile, and whatever the client does then is safe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <semaphore.h>

#include "protocol/handoff.h"
#include "tests/lib/softserver.h"

enum { WORDS = 1000000, BYTES = WORDS * 8, MODULE = 1 };
#define PLACE (UINT64_C(1) << 32)

struct fix {
    struct softs *s;
    char *ptx;
    struct ws_loader_work busy; /* the loader's only thread */
    sem_t go_on;
};

static void be_busy(struct ws_loader_work *w)
{
    sem_wait(&WS_CONTAINER_OF(w, struct fix, busy)->go_on);
}

static void busy_no_more(struct ws_loader_work *w)
{
}

/* What is given to the loader from now on is not begun before it is let go. */
static void hold(struct fix *f)
{
    f->busy = (struct ws_loader_work){.work = be_busy, .done = busy_no_more};
    ws_loader_run(f->s->server->loader, &f->busy);
}

static void let_go(struct fix *f)
{
    sem_post(&f->go_on);
}

/* A managed variable of which all words are 9, another variable that has its address, and the
 * kernel that fetches it. */
static char *make_ptx(void)
{
    char *p = malloc(WORDS * 2 + 1024), *at = p;
    at += sprintf(at,
                  ".version 8.0\n.target sm_75\n.address_size 64\n"
                  ".visible .global .attribute(.managed) .u64 big[%d] = {",
                  WORDS);
    for (int i = 0; i < WORDS; i++)
        at += sprintf(at, "9%s", i + 1 < WORDS ? "," : "};\n");
    sprintf(at, ".visible .global .u64 address = big;\n"
                ".visible .entry fetch(.param .u64 out)\n{\n.reg .b64 %%rd<4>;\n"
                "ld.param.u64 %%rd1, [out]; ld.global.u64 %%rd2, [address];\n"
                "st.global.u64 [%%rd1], %%rd2; ld.global.u64 %%rd3, [%%rd2];\n"
                "st.global.u64 [%%rd1+8], %%rd3; ret;\n}\n");
    return p;
}

static int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    *state = f;
    f->s = softs_new("t400", 1, 0);
    f->ptx = make_ptx();
    sem_init(&f->go_on, 0, 0);
    softs_hello(f->s, 0);
    softs_hello(f->s, 1);
    return softs_load(f->s, 0, MODULE, f->ptx) ? -1 : 0; /* from now on its code is there */
}

static int teardown(void **state)
{
    struct fix *f = *state;
    let_go(f); /* where a test has failed */
    softs_free(f->s);
    free(f->ptx);
    free(f);
    return 0;
}

static uint64_t *words(struct fix *f, unsigned c, uint64_t va)
{
    return softs_host(f->s, c, va, BYTES);
}

/* Where the kernel finds the variable, and its first word. */
static void fetch(struct fix *f, unsigned c, uint64_t *ret_address, uint64_t *ret_word)
{
    uint64_t out = softs_alloc(f->s, c, 256);
    softs_launch(f->s, c,
                 &(struct softs_launch){.module = MODULE, .params = &out, .param_bytes = 8});
    assert_int_equal(softs_sync(f->s, c), 0);
    const uint64_t *found = softs_host(f->s, c, out, 16);
    *ret_address = found[0];
    *ret_word = found[1];
}

static void test_load(void **state)
{
    struct fix *f = *state;
    uint64_t address, word;
    hold(f);
    uint64_t load = softs_load_begin(f->s, 1, MODULE, f->ptx);
    assert_int_equal(f->s->clients[1].n_replies, 0); /* the loop goes on */
    let_go(f);
    assert_int_equal(softs_answer(f->s, 1, load), WS__ERROR__OK);
    fetch(f, 1, &address, &word);
    assert_int_equal(word, 9);
    assert_int_equal(words(f, 1, address)[WORDS - 1], 9);
}

static void test_id_is_taken_meanwhile(void **state)
{
    struct fix *f = *state;
    hold(f);
    uint64_t first = softs_load_begin(f->s, 1, MODULE, f->ptx),
             second = softs_load_begin(f->s, 1, MODULE, f->ptx);
    assert_int_equal(softs_answer(f->s, 1, second), WS__ERROR__INVALID_HANDLE);
    let_go(f);
    assert_int_equal(softs_answer(f->s, 1, first), WS__ERROR__OK);
}

static void test_reset_meanwhile(void **state)
{
    struct fix *f = *state;
    Ws__Command cmd = WS__COMMAND__INIT, *list = &cmd;
    Ws__Reset reset = WS__RESET__INIT;
    cmd.c_case = WS__COMMAND__C_RESET;
    cmd.reset = &reset;
    hold(f);
    uint64_t load = softs_load_begin(f->s, 1, MODULE, f->ptx);
    uint64_t seq = softs_send(f->s, 1, &list, 1);
    let_go(f);
    assert_int_equal(softs_answer(f->s, 1, load), WS__ERROR__INVALID_HANDLE);
    assert_int_equal(softs_answer(f->s, 1, seq), WS__ERROR__OK);
    assert_null(f->s->clients[1].client->modules.by_id);
    assert_int_equal(softs_load(f->s, 1, MODULE, f->ptx), WS__ERROR__OK);
}

static void test_dropped_meanwhile(void **state)
{
    struct fix *f = *state;
    hold(f);
    softs_load_begin(f->s, 1, MODULE, f->ptx);
    softs_drop(f->s, 1);
    let_go(f);
}

/* ---- moving managed variables ---- */

/* Pinned memory of client 0, mapped at PLACE. */
static struct ws_segment *pin(struct fix *f)
{
    struct ws_client *c = f->s->clients[0].client;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = BYTES};
    struct ws_segment *g;
    assert_int_equal(ws_segment_new(c, &q, &g), WS__ERROR__OK);
    assert_int_equal(ws_segment_host_map(c, 0, g->id, PLACE), WS__ERROR__OK);
    return g;
}

static uint64_t place(struct fix *f, bool keep)
{
    static uint64_t address = PLACE;
    Ws__Command cmd = WS__COMMAND__INIT, *list = &cmd;
    Ws__ModulePlace p = WS__MODULE_PLACE__INIT;
    p.module = MODULE;
    p.addresses = &address;
    p.n_addresses = 1;
    p.keep = keep;
    cmd.c_case = WS__COMMAND__C_MODULE_PLACE;
    cmd.module_place = &p;
    return softs_send(f->s, 0, &list, 1);
}

static void test_place(void **state)
{
    struct fix *f = *state;
    uint64_t address, word;
    pin(f);
    assert_int_equal(softs_answer(f->s, 0, place(f, false)), WS__ERROR__OK);
    assert_int_equal(words(f, 0, PLACE)[WORDS - 1], 9);
    words(f, 0, PLACE)[0] = 5;
    assert_int_equal(softs_answer(f->s, 0, place(f, true)), WS__ERROR__OK);
    fetch(f, 0, &address, &word);
    assert_int_equal(address, PLACE);
    assert_int_equal(word, 5);
    assert_int_equal(softs_answer(f->s, 0, place(f, true)), WS__ERROR__INVALID_HANDLE); /* it ran */
}

/* The memory stays until nothing is written to it any more. */
static void test_unmap_meanwhile(void **state)
{
    struct fix *f = *state;
    Ws__Command cmd = WS__COMMAND__INIT, *list = &cmd;
    cmd.c_case = WS__COMMAND__C_HOST_UNMAP;
    cmd.host_unmap = pin(f)->id;
    hold(f);
    uint64_t seq = place(f, false);
    softs_send(f->s, 0, &list, 1);
    softs_turn(f->s);
    assert_non_null(f->s->clients[0].client->segments.by_id);
    let_go(f);
    assert_int_equal(softs_answer(f->s, 0, seq), WS__ERROR__OK);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_null(f->s->clients[0].client->segments.by_id);
}

/* Its kernels would use what is about to be replaced. */
static void test_launch_meanwhile(void **state)
{
    struct fix *f = *state;
    pin(f);
    hold(f);
    uint64_t address, word, seq = place(f, false);
    fetch(f, 0, &address, &word);
    let_go(f);
    assert_int_not_equal(address, PLACE);
    assert_int_equal(word, 9);
    assert_int_equal(softs_answer(f->s, 0, seq), WS__ERROR__INVALID_HANDLE);
}

static void test_unload_meanwhile(void **state)
{
    struct fix *f = *state;
    Ws__Command cmd = WS__COMMAND__INIT, *list = &cmd;
    cmd.c_case = WS__COMMAND__C_MODULE_UNLOAD;
    cmd.module_unload = MODULE;
    pin(f);
    hold(f);
    uint64_t seq = place(f, false);
    softs_send(f->s, 0, &list, 1);
    let_go(f);
    assert_int_equal(softs_answer(f->s, 0, seq), WS__ERROR__OK);
    assert_int_equal(softs_sync(f->s, 0), 0);
    assert_null(f->s->clients[0].client->modules.by_id);
}

/* A thread finds that nothing is mapped there; the module stays as it is. */
static void test_place_nowhere(void **state)
{
    struct fix *f = *state;
    uint64_t address, word;
    assert_int_equal(softs_answer(f->s, 0, place(f, false)), WS__ERROR__INVALID_VALUE);
    fetch(f, 0, &address, &word);
    assert_int_not_equal(address, PLACE);
    assert_int_equal(word, 9);
}

/* Of which the client is told in one message. */
static void test_names(void **state)
{
    enum { NAME = 1000, MANY = 9000, FEW = 8000 };
    struct fix *f = *state;
    char *ptx = malloc(MANY * (NAME + 64)), *at = ptx;
    at += sprintf(at, ".version 8.0\n.target sm_75\n.address_size 64\n");
    for (int i = 0; i < FEW; i++)
        at += sprintf(at, ".visible .global .u32 v%0*d;\n", NAME, i);
    assert_int_equal(softs_load(f->s, 0, 2, ptx), WS__ERROR__OK);
    for (int i = FEW; i < MANY; i++)
        at += sprintf(at, ".visible .global .u32 v%0*d;\n", NAME, i);
    assert_int_equal(softs_load(f->s, 0, 3, ptx), WS__ERROR__INVALID_IMAGE);
    free(ptx);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_load),
        T(test_id_is_taken_meanwhile),
        T(test_reset_meanwhile),
        T(test_dropped_meanwhile),
        T(test_place),
        T(test_unmap_meanwhile),
        T(test_launch_meanwhile),
        T(test_unload_meanwhile),
        T(test_place_nowhere),
        T(test_names),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
