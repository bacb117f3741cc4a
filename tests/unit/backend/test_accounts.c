// SPDX-License-Identifier: Apache-2.0
/* backend/accounts: what each user may have, and what is left for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/accounts/account.h"
#include "base/alloc.h"
#include "base/macros.h"

enum { USERS = 24 };
static const enum ws_resource R = WS_RESOURCE_CONNECTIONS;

struct fixture {
    struct ws_accounts *s;
    struct ws_account *users[USERS];
    uint64_t pool, own_limit; /* own_limit: of user 3 */
};

static uint64_t pool_of(void *arg, enum ws_resource r)
{
    struct fixture *f = arg;
    return r == R ? f->pool : WS_ACCOUNT_UNLIMITED;
}

static uint64_t user_limit(void *arg, uint32_t uid, enum ws_resource r)
{
    struct fixture *f = arg;
    return uid == 3 && r == R ? f->own_limit : 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    *state = f;
    f->pool = WS_ACCOUNT_UNLIMITED;
    int r = ws_accounts_new(&f->s, &(struct ws_accounts_ops){f, pool_of, user_limit, NULL});
    for (uint32_t i = 0; !r && i < USERS; i++)
        r = (f->users[i] = ws_account_of_user(f->s, i)) ? 0 : -ENOMEM;
    return r;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_alloc_fail_after(0);
    for (unsigned i = 0; i < USERS; i++)
        ws_account_unref(f->users[i]);
    ws_accounts_free(f->s);
    free(f);
    return 0;
}

/* Takes one after the other until it is refused. Return: how many it got. */
static uint64_t take_all(struct ws_account *a)
{
    uint64_t n = 0;
    while (!ws_account_charge(a, R, 1))
        n++;
    return n;
}

static void test_one_user_may_have_half(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ws_account_charge(f->users[0], R, 1000000), 0); /* no pool: no limit */
    ws_account_release(f->users[0], R, 1000000);
    f->pool = 1024;
    assert_int_equal(ws_account_may_hold(f->users[0], R), 512);
    assert_int_equal(take_all(f->users[0]), 512);
    assert_int_equal(ws_account_n_refused(f->users[0], R), 1);
    assert_int_equal(ws_account_charge(f->users[0], R, 0), 0); /* it takes nothing */
    assert_int_equal(take_all(f->users[1]), 171);              /* a third of 512, rounded up */
    assert_int_equal(ws_accounts_used(f->s, R), 683);
    ws_account_release(f->users[0], R, 512);
    assert_int_equal(ws_account_may_hold(f->users[1], R), 512);
}

static void test_refusal_changes_nothing(void **state)
{
    struct fixture *f = *state;
    f->pool = 100;
    assert_int_equal(ws_account_charge(f->users[0], R, 30), 0);
    assert_int_equal(ws_account_charge(f->users[0], R, 21), -EDQUOT);
    assert_int_equal(ws_account_charge(f->users[0], R, UINT64_MAX), -EDQUOT);
    assert_int_equal(ws_account_used(f->users[0], R), 30);
    assert_int_equal(ws_accounts_used(f->s, R), 30);
    assert_int_equal(ws_account_charge(f->users[0], R, 20), 0);
}

static void test_no_overflow_without_a_pool(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ws_account_charge(f->users[0], R, UINT64_MAX - 1), 0);
    assert_int_equal(ws_account_charge(f->users[1], R, 2), -EDQUOT);
    assert_int_equal(ws_account_charge(f->users[1], R, 1), 0);
}

static void test_what_changes_hands_is_charged_anyway(void **state)
{
    struct fixture *f = *state;
    f->pool = 100;
    ws_account_take_over(f->users[0], R, 80);
    assert_int_equal(ws_account_used(f->users[0], R), 80);
    assert_int_equal(ws_account_charge(f->users[0], R, 1), -EDQUOT);
    assert_int_equal(take_all(f->users[1]), 7); /* a third of 20 */
    ws_account_release(f->users[0], R, 60);
    assert_int_equal(take_all(f->users[0]), 11); /* a third of 93, less 20 */
}

/* What is open in the configuration is bounded by the machine. */
static void test_pools_of_this_machine(void **state)
{
    (void)state;
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++)
        assert_true(ws_accounts_system_pool(r) >= 128);
    assert_in_range(ws_accounts_system_pool(WS_RESOURCE_MAPPINGS), 1000, 1 << 30);
    assert_in_range(ws_accounts_system_pool(WS_RESOURCE_HOST_BYTES), 64 << 20, UINT64_C(1) << 50);
    /* Users who fill all pools leave the daemon something. An object takes some 500 bytes. */
    uint64_t all = ws_accounts_system_pool(WS_RESOURCE_HOST_BYTES) +
                   ws_accounts_system_pool(WS_RESOURCE_QUEUED_BYTES) +
                   ws_accounts_system_pool(WS_RESOURCE_MODULE_BYTES) +
                   ws_accounts_system_pool(WS_RESOURCE_COMPILE_BYTES) +
                   ws_accounts_system_pool(WS_RESOURCE_BLOCK_BYTES) +
                   ws_accounts_system_pool(WS_RESOURCE_OBJECTS) * 500;
    assert_in_range(all, 1, ws_accounts_system_memory() / 10 * 9);
    assert_true(ws_accounts_system_pool(WS_RESOURCE_DEVICE_BYTES) == WS_ACCOUNT_UNLIMITED);
}

static void test_pool_of_one_can_be_used(void **state)
{
    struct fixture *f = *state;
    f->pool = 1;
    assert_int_equal(take_all(f->users[0]), 1);
    assert_int_equal(take_all(f->users[1]), 0);
}

/* The promise of account.h, with all users greedy, after each step: @n is how many hold any. */
static void check_promise(struct fixture *f, uint64_t pool)
{
    uint64_t m = 0;
    struct ws_account *next = NULL;
    for (unsigned i = 0; i < USERS; i++) {
        m += ws_account_used(f->users[i], R) != 0;
        if (!ws_account_used(f->users[i], R))
            next = f->users[i];
    }
    uint64_t left = pool - ws_accounts_used(f->s, R);
    assert_true(left + (m + 1) / 2 >= pool / (m + 1));
    if (next)
        assert_true(ws_account_may_hold(next, R) + 1 >= pool / ((m + 1) * (m + 2)));
}

static void test_next_one_gets_the_stated_part(void **state)
{
    struct fixture *f = *state;
    const uint64_t pool = 100000;
    f->pool = pool;
    for (unsigned i = 0; i < USERS; i++) {
        assert_true(take_all(f->users[i]) >= pool / ((i + 1) * (i + 2)));
        check_promise(f, pool);
    }
    assert_int_equal(take_all(f->users[0]), 0); /* the first gets no more for having been there */
}

/* Users come, take what they may or less, give back, and go, in any order. */
static void test_promise_holds_in_any_order(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 12345;
    for (unsigned round = 0; round < 20; round++) {
        uint64_t pool = 500 + round * 977;
        f->pool = pool;
        for (unsigned step = 0; step < 5000; step++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            struct ws_account *a = f->users[(seed >> 33) % USERS];
            uint64_t used = ws_account_used(a, R), may = ws_account_may_hold(a, R);
            uint64_t more = may > used ? may - used : 0, part = (seed >> 50) % 4;
            if (part == 0)
                ws_account_release(a, R, used);
            else if (part == 1)
                ws_account_release(a, R, used / 2);
            else if (more)
                assert_int_equal(ws_account_charge(a, R, part == 2 ? more : (more + 1) / 2), 0);
            check_promise(f, pool);
        }
        for (unsigned i = 0; i < USERS; i++)
            ws_account_release(f->users[i], R, ws_account_used(f->users[i], R));
        assert_int_equal(ws_accounts_used(f->s, R), 0);
    }
}

static void test_limit_of_ones_own(void **state)
{
    struct fixture *f = *state;
    char text[256];
    f->pool = 100;
    f->own_limit = 7;
    assert_int_equal(take_all(f->users[3]), 7);
    ws_account_refusal(f->users[3], R, 1, text, sizeof(text));
    assert_string_equal(text, "user 3 has 7 connections and asks for 1 more, but may have 7 by the "
                              "section for this user in the configuration");
    f->own_limit = 5; /* read anew: what he has he keeps */
    assert_int_equal(take_all(f->users[3]), 0);
    f->own_limit = 1000; /* no more than his share */
    assert_int_equal(take_all(f->users[3]), 43);
    ws_account_refusal(f->users[3], R, 1, text, sizeof(text));
    assert_string_equal(text, "user 3 has 50 connections and asks for 1 more, but may have 50 of "
                              "the 100 that all users share (max_connections in the section "
                              "limits)");
}

static struct ws_account *of_address(struct ws_accounts *s, const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        return ws_account_of_address(s, (struct sockaddr *)&in, sizeof(in));
    assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    return ws_account_of_address(s, (struct sockaddr *)&in6, sizeof(in6));
}

static void test_addresses_are_one_user_together(void **state)
{
    struct fixture *f = *state;
    struct ws_account *a[50];
    char text[256];
    uint64_t sum = 0;
    f->pool = 4000;
    for (unsigned i = 0; i < WS_ARRAY_SIZE(a); i++) {
        snprintf(text, sizeof(text), "192.0.2.%u", i);
        assert_non_null(a[i] = of_address(f->s, text));
        sum += take_all(a[i]);
    }
    assert_in_range(sum, 900, 1000); /* a quarter, whatever they do */
    assert_int_equal(ws_accounts_used(f->s, R), sum);
    assert_in_range(ws_account_may_hold(f->users[0], R), (4000 - sum) / 3, (4000 - sum) / 3 + 1);
    ws_account_refusal(a[0], R, 1, text, sizeof(text));
    assert_non_null(strstr(text, "address 192.0.2.0 has 500 connections"));
    for (unsigned i = 0; i < WS_ARRAY_SIZE(a); i++)
        ws_account_unref(a[i]); /* what it held is released with it */
    assert_int_equal(ws_accounts_used(f->s, R), 0);
}

static void test_addresses_that_are_alike(void **state)
{
    struct fixture *f = *state;
    static const char *const same[] = {"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1",
                                       "2001:db8::ffff:2"};
    struct ws_account *a[WS_ARRAY_SIZE(same)],
        *unknown = ws_account_of_address(f->s, &(struct sockaddr){.sa_family = AF_UNIX},
                                         sizeof(struct sockaddr));
    for (unsigned i = 0; i < WS_ARRAY_SIZE(same); i++)
        a[i] = of_address(f->s, same[i]);
    assert_ptr_equal(a[0], a[1]);
    assert_ptr_equal(a[2], a[3]);
    assert_ptr_not_equal(a[0], a[2]);
    assert_string_equal(ws_account_name(a[2]), "address 2001:db8::/64");
    assert_string_equal(ws_account_name(unknown), "address of an unknown kind");
    for (unsigned i = 0; i < WS_ARRAY_SIZE(same); i++)
        ws_account_unref(a[i]);
    ws_account_unref(unknown);
}

static void test_going_through_them(void **state)
{
    struct fixture *f = *state;
    struct ws_account *x = of_address(f->s, "192.0.2.1"), *a = NULL;
    struct ws_account *again = ws_account_of_user(f->s, 0);
    uint32_t uid;
    unsigned n = 0;
    assert_ptr_equal(again, f->users[0]);
    ws_account_unref(again);
    while ((a = ws_accounts_next(f->s, a)))
        assert_int_equal(ws_account_uid(a, &uid), n++ < USERS);
    assert_int_equal(n, USERS + 1);
    ws_account_unref(x);
}

static void test_out_of_memory(void **state)
{
    struct fixture *f = *state;
    struct ws_accounts *s = NULL;
    ws_alloc_fail_after(1);
    assert_null(ws_account_of_user(f->s, 77));
    ws_alloc_fail_after(1);
    assert_int_equal(ws_accounts_new(&s, &(struct ws_accounts_ops){0}), -ENOMEM);
    ws_alloc_fail_after(0);
    assert_null(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_one_user_may_have_half),
        T(test_refusal_changes_nothing),
        T(test_no_overflow_without_a_pool),
        T(test_what_changes_hands_is_charged_anyway),
        T(test_pools_of_this_machine),
        T(test_pool_of_one_can_be_used),
        T(test_next_one_gets_the_stated_part),
        T(test_promise_holds_in_any_order),
        T(test_limit_of_ones_own),
        T(test_addresses_are_one_user_together),
        T(test_addresses_that_are_alike),
        T(test_going_through_them),
        T(test_out_of_memory),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
