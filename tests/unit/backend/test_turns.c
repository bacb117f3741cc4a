// SPDX-License-Identifier: Apache-2.0
/* backend: loader threads serve users in turn. The work is fake: it spends steps until it has had
 * enough or its budget says no. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/code/loader.h"
#include "base/clock.h"

enum { MAX_WORK = 8 };
#define MIB (UINT64_C(1) << 20)

struct fix {
    struct ws_loader *l;
    struct ws_accounts *accounts;
    struct ws_account *user[3];
    uint64_t pool_bytes;
    uint32_t n_threads, max_ms;
    int fd;
    struct fake {
        struct ws_loader_work w;
        struct fix *f;
        _Atomic bool begun, enough;
        _Atomic uint64_t taken_ns;
        uint64_t ns; /* of processor time that it wants; UINT64_MAX: without end */
        bool ended;  /* by itself */
        unsigned done, order;
    } work[MAX_WORK];
    unsigned n_done;
};

static void spin(struct ws_loader_work *w)
{
    struct fake *x = WS_CONTAINER_OF(w, struct fake, w);
    x->begun = true;
    while (ws_budget_spend(100)) {
        for (volatile int k = 0; k < 2000; k++)
            ;
        x->taken_ns = w->budget.ns;
        if (x->taken_ns > x->ns || x->enough) {
            x->ended = true;
            return;
        }
    }
}

static void done(struct ws_loader_work *w)
{
    struct fake *x = WS_CONTAINER_OF(w, struct fake, w);
    x->done++;
    x->order = ++x->f->n_done;
}

static uint64_t pool(void *arg, enum ws_resource r)
{
    const struct fix *f = arg;
    return r == WS_RESOURCE_COMPILE_BYTES ? f->pool_bytes : WS_ACCOUNT_UNLIMITED;
}

static int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    f->pool_bytes = 1024 * MIB;
    if (ws_accounts_new(&f->accounts, &(struct ws_accounts_ops){.arg = f, .pool = pool}))
        return -1;
    for (uint32_t k = 0; k < 3; k++)
        f->user[k] = ws_account_of_user(f->accounts, 1000 + k);
    f->n_threads = 1;
    f->max_ms = 600000;
    f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct ws_loader_limits limits = {&f->n_threads, &f->max_ms};
    *state = f;
    return ws_loader_new(&f->l, &limits, f->fd);
}

static int teardown(void **state)
{
    struct fix *f = *state;
    ws_loader_free(f->l);
    uint64_t left = ws_accounts_used(f->accounts, WS_RESOURCE_COMPILE_BYTES);
    for (int k = 0; k < 3; k++)
        ws_account_unref(f->user[k]);
    ws_accounts_free(f->accounts);
    close(f->fd);
    free(f);
    return left ? -1 : 0;
}

static void give(struct fix *f, unsigned k, unsigned user, uint64_t ns)
{
    f->work[k].f = f;
    f->work[k].ns = ns;
    f->work[k].w = (struct ws_loader_work){.work = spin, .done = done, .account = f->user[user]};
    ws_loader_run(f->l, &f->work[k].w);
}

static void until_done(struct fix *f, unsigned k)
{
    for (int i = 0; i < 20000 && !f->work[k].done; i++) {
        usleep(1000);
        ws_loader_take_done(f->l);
    }
    assert_int_equal(f->work[k].done, 1);
}

static void until_begun(struct fix *f, unsigned k)
{
    for (int i = 0; i < 20000 && !f->work[k].begun; i++)
        usleep(1000);
    assert_true(f->work[k].begun);
}

/* One user fills the only thread, and would fill as many more; the others' work is done meanwhile,
 * and what was paused goes on afterwards. */
static void test_bombs_leave_turns_for_others(void **state)
{
    struct fix *f = *state;
    for (unsigned k = 0; k < 4; k++)
        give(f, k, 0, UINT64_MAX);
    until_begun(f, 0);
    give(f, 4, 1, 5 * WS_NS_PER_MS);
    give(f, 5, 2, 25 * WS_NS_PER_MS);
    until_done(f, 4);
    until_done(f, 5);
    assert_false(f->work[0].done || f->work[1].begun);
    f->work[0].enough = true;
    until_done(f, 0);
    assert_true(f->work[0].ended);
    until_begun(f, 1); /* the next of the same user */
}

static void test_bombs_on_two_threads(void **state)
{
    struct fix *f = *state;
    f->n_threads = 2;
    for (unsigned k = 0; k < 3; k++)
        give(f, k, 0, UINT64_MAX);
    until_begun(f, 0);
    until_begun(f, 1);
    give(f, 4, 1, 5 * WS_NS_PER_MS);
    until_done(f, 4);
    assert_false(f->work[2].begun); /* no more in hand than there are threads */
}

/* Two users with work without end get about the same time. */
static void test_time_is_shared(void **state)
{
    struct fix *f = *state;
    give(f, 0, 0, UINT64_MAX);
    give(f, 1, 0, UINT64_MAX);
    give(f, 2, 1, UINT64_MAX);
    until_begun(f, 2);
    for (int i = 0; i < 20000 && f->work[0].taken_ns < 300 * WS_NS_PER_MS; i++)
        usleep(1000);
    uint64_t a = f->work[0].taken_ns, b = f->work[2].taken_ns;
    assert_in_range(b, a / 2, a * 2);
}

static void test_each_user_in_turn(void **state)
{
    struct fix *f = *state;
    give(f, 0, 0, 30 * WS_NS_PER_MS);
    give(f, 1, 0, 30 * WS_NS_PER_MS);
    give(f, 2, 0, 30 * WS_NS_PER_MS);
    give(f, 3, 1, 5 * WS_NS_PER_MS);
    for (unsigned k = 0; k < 4; k++)
        until_done(f, k);
    assert_true(f->work[3].order < f->work[1].order); /* not first come first served */
    assert_true(ws_account_time_ns(f->user[0], WS_ACCOUNT_COMPILE) >= 90 * WS_NS_PER_MS);
    assert_in_range(ws_account_time_ns(f->user[1], WS_ACCOUNT_COMPILE), 5 * WS_NS_PER_MS,
                    60 * WS_NS_PER_MS);
}

static void test_limit_of_time(void **state)
{
    struct fix *f = *state;
    char text[160];
    f->max_ms = 30;
    give(f, 0, 0, UINT64_MAX);
    until_done(f, 0);
    assert_false(f->work[0].ended);
    assert_non_null(
        strstr(ws_loader_limit_text(&f->work[0].w, text, sizeof(text)), "more than 30 ms"));
    f->n_threads = 0; /* without threads, too */
    give(f, 1, 0, UINT64_MAX);
    assert_int_equal(f->work[1].done, 1);
    assert_non_null(strstr(ws_loader_limit_text(&f->work[1].w, text, sizeof(text)), "30 ms"));
}

/* The account has room for one at a time. */
static void test_memory_is_reserved_first(void **state)
{
    struct fix *f = *state;
    f->n_threads = 2;
    f->pool_bytes = 48 * MIB;
    give(f, 0, 0, UINT64_MAX);
    give(f, 1, 0, 0);
    until_begun(f, 0);
    assert_int_equal(ws_account_used(f->user[0], WS_RESOURCE_COMPILE_BYTES), 16 * MIB);
    usleep(20000);
    assert_false(f->work[1].begun);
    assert_int_equal(f->work[0].w.budget.max_bytes, 16 * MIB);
    f->work[0].enough = true;
    until_done(f, 1);
    assert_int_equal(ws_account_used(f->user[0], WS_RESOURCE_COMPILE_BYTES), 0);
}

/* The daemon ends: nobody waits for what would never end. */
static void test_the_end_stops_all(void **state)
{
    struct fix *f = *state;
    for (unsigned k = 0; k < 3; k++)
        give(f, k, 0, UINT64_MAX);
    give(f, 3, 1, UINT64_MAX);
    until_begun(f, 0);
    until_begun(f, 3); /* one of them is paused */
    uint64_t before = ws_clock_ns();
    f->l = ws_loader_free(f->l);
    assert_true(ws_clock_ns() - before < 5 * WS_NS_PER_S);
    for (unsigned k = 0; k < 4; k++)
        assert_int_equal(f->work[k].done, 1);
    assert_false(f->work[0].ended || f->work[3].ended || f->work[1].begun);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_bombs_leave_turns_for_others),
        T(test_bombs_on_two_threads),
        T(test_time_is_shared),
        T(test_each_user_in_turn),
        T(test_limit_of_time),
        T(test_memory_is_reserved_first),
        T(test_the_end_stops_all),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
