// SPDX-License-Identifier: Apache-2.0
/* base: also the skeleton for unit tests. A failing cmocka assert longjmps, so what a test owns
 * lives in *state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/hurry.h"
#include "base/list.h"
#include "base/log.h"

static void test_grow_doubles_and_zeroes(void **state)
{
    int *v = NULL;
    size_t cap = 0;
    assert_int_equal(ws_grow((void **)&v, &cap, 3, sizeof(*v)), 0);
    assert_true(cap >= 3);
    for (size_t i = 0; i < cap; i++)
        assert_int_equal(v[i], 0);
    size_t old = cap;
    assert_int_equal(ws_grow((void **)&v, &cap, SIZE_MAX / 2, sizeof(*v)), -ENOMEM);
    assert_int_equal(cap, old);
    free(v);
}

struct urgency {
    int policy, niceness;
};

static struct urgency urgency(void)
{
    return (struct urgency){sched_getscheduler(0) & ~SCHED_RESET_ON_FORK,
                            getpriority(PRIO_PROCESS, (id_t)gettid())};
}

static void *note_urgency(void *arg)
{
    *(struct urgency *)arg = urgency();
    return NULL;
}

/* In a process of its own, as root or as nobody who may not: what a thread
 * that is in a hurry has, and the thread that it makes. */
static void hurry(bool root, struct urgency *ret_own, struct urgency *ret_next)
{
    int fds[2], status;
    struct urgency u[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        struct rlimit none = {0, 0};
        pthread_t t;
        bool ok = root || (!setrlimit(RLIMIT_RTPRIO, &none) && !setrlimit(RLIMIT_NICE, &none) &&
                           !setresuid(65534, 65534, 65534));
        ws_hurry();
        u[0] = urgency();
        ok = ok && !pthread_create(&t, NULL, note_urgency, &u[1]) && !pthread_join(t, NULL);
        _exit(ok && write(fds[1], u, sizeof(u)) == sizeof(u) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(fds[0], u, sizeof(u)), sizeof(u));
    close(fds[0]);
    close(fds[1]);
    *ret_own = u[0];
    *ret_next = u[1];
}

/* Root is refused a real-time policy in some containers. */
static void test_hurry_is_not_inherited(void **state)
{
    struct urgency own, next;
    if (geteuid())
        skip();
    hurry(true, &own, &next);
    assert_true(own.policy == SCHED_RR || own.niceness == -10);
    assert_int_equal(next.policy, SCHED_OTHER);
    assert_int_equal(next.niceness, 0);
    hurry(false, &own, &next);
    int before = urgency().niceness; /* the tests may have been started with nice */
    assert_int_equal(own.policy, SCHED_OTHER);
    assert_int_equal(own.niceness, before);
    assert_int_equal(next.policy, SCHED_OTHER);
    assert_int_equal(next.niceness, before);
}

static void test_alloc_fails_on_demand(void **state)
{
    ws_alloc_fail_after(2);
    void *a = ws_alloc(1), *b = ws_alloc(1), *c = ws_alloc(1);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    free(a);
    free(c);
}

static void test_arena_aligns_zeroes_and_limits(void **state)
{
    struct ws_arena a = WS_ARENA_NULL;
    for (int i = 1; i < 5000; i += 7) {
        char *p = ws_arena_alloc(&a, i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (int j = 0; j < i; j++)
            assert_int_equal(p[j], 0);
        memset(p, 0xff, i);
    }
    ws_arena_reset(&a);
    char *p = ws_arena_alloc(&a, 100);
    assert_int_equal(p[99], 0);
    a.limit_bytes = 200;
    assert_null(ws_arena_alloc(&a, 200));
    assert_null(ws_arena_array(&a, SIZE_MAX / 2, 4));
    ws_arena_deinit(&a);
}

static void test_diags_text_and_cap(void **state)
{
    struct ws_diags d = WS_DIAGS_NULL;
    ws_diags_add(&d, "a.ptx", 3, 7, "unknown opcode '%s'", "foo");
    char *t = ws_diags_text(&d);
    assert_string_equal(t, "a.ptx:3:7: unknown opcode 'foo'\n");
    free(t);
    ws_diags_add(&d, "a.conf", 2, 0, "workers is -1");
    t = ws_diags_text(&d);
    assert_string_equal(t, "a.ptx:3:7: unknown opcode 'foo'\na.conf:2: workers is -1\n");
    free(t);
    for (int i = 0; i < 100; i++)
        ws_diags_add(&d, NULL, 0, 0, "x");
    assert_int_equal(d.n, WS_DIAGS_MAX);
    assert_int_equal(d.n_dropped, 102 - WS_DIAGS_MAX);
    ws_diags_deinit(&d);
}

static void test_fold_keeps_errors_and_turns_outcomes(void **state)
{
    assert_int_equal(ws_fold(0), 0);
    assert_int_equal(ws_fold(-EIO), -EIO);
    assert_int_equal(ws_fold(3), -ENOTRECOVERABLE);
}

static void test_list(void **state)
{
    struct ws_list head, n[3];
    ws_list_init(&head);
    for (int i = 0; i < 3; i++)
        ws_list_append(&head, &n[i]);
    ws_list_remove(&n[1]);
    ws_list_remove(&n[1]);
    assert_ptr_equal(ws_list_pop(&head), &n[0]);
    assert_ptr_equal(ws_list_pop(&head), &n[2]);
    assert_null(ws_list_pop(&head));
    assert_true(ws_list_empty(&head));
}

static bool larger(const int *n_compared, const int *a, const int *b)
{
    assert_int_equal(*n_compared, 7);
    return *a > *b;
}
WS_HEAP(largest, int, const int *, larger)

/* Taken out one after another, the largest first: the order of an insertion sort. */
static void test_heap(void **state)
{
    const int arg = 7;
    uint32_t seed = 1;
    for (int n = 0; n <= 40; n++) {
        int v[40], want[40];
        for (int i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            v[i] = (int)(seed >> 27); /* equal ones, too */
            int k = i;
            for (; k > 0 && want[k - 1] < v[i]; k--)
                want[k] = want[k - 1];
            want[k] = v[i];
        }
        largest_make(&arg, v, n);
        for (int i = 0, left = n; i < n; i++) {
            assert_int_equal(v[0], want[i]);
            v[0] = v[--left];
            largest_sift(&arg, v, left, 0);
        }
    }
}

static void test_budget_of_bytes(void **state)
{
    struct ws_budget b = {.max_bytes = 100000};
    struct ws_arena a = WS_ARENA_NULL;
    void *v = NULL, *lost;
    size_t cap = 0;
    struct ws_budget *before = ws_budget_enter(&b);
    assert_null(before);
    assert_int_equal(ws_grow(&v, &cap, 1000, 32), 0);
    assert_in_range(b.bytes, 32000, 64000);
    assert_non_null(ws_arena_alloc(&a, 20000));
    ws_arena_deinit(&a); /* what is given back may be taken again */
    assert_non_null(ws_arena_alloc(&a, 20000));
    assert_null(ws_arena_alloc(&a, 90000));
    assert_int_equal(b.end, WS_BUDGET_BYTES);
    lost = ws_alloc(8);
    assert_null(lost); /* nothing succeeds any more */
    assert_false(ws_budget_spend(1));
    ws_budget_leave(before);
    lost = ws_alloc(8);
    assert_non_null(lost);
    free(lost);
    free(v);
    ws_arena_deinit(&a);
}

static unsigned n_pauses;
static void count_pause(struct ws_budget *b)
{
    n_pauses++;
}

static void test_budget_of_time(void **state)
{
    struct ws_budget b = {.max_ns = 5 * WS_NS_PER_MS, .pause = count_pause};
    struct ws_budget *before = ws_budget_enter(&b);
    while (ws_budget_spend(100))
        for (volatile int k = 0; k < 1000; k++)
            ;
    ws_budget_leave(before);
    assert_int_equal(b.end, WS_BUDGET_TIME);
    assert_true(b.ns > 5 * WS_NS_PER_MS);
    assert_true(n_pauses > 1);
    struct ws_budget steps = {.max_steps = 10};
    before = ws_budget_enter(&steps);
    for (int k = 0; k < 10; k++)
        assert_true(ws_budget_spend(1));
    assert_false(ws_budget_spend(1));
    ws_budget_leave(before);
}

static void test_hash_tells_texts_apart(void **state)
{
    const char text[] = "a text that is longer than three words of eight";
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        assert_int_equal(ws_hash(text, n), ws_hash(text, n));
        assert_int_not_equal(ws_hash(text, n), ws_hash(text, n + 1));
        assert_int_not_equal(ws_hash(text, n + 1), ws_hash(text + 1, n + 1));
    }
}

/* Whichever bits tell the words apart, the low bits of their values do too. */
static void test_hash_spreads_words(void **state)
{
    enum { N = 1024, MOST = 32 };
    for (unsigned shift = 0; shift <= 48; shift++) {
        unsigned n[N] = {0};
        for (uint64_t k = 0; k < N; k++)
            n[ws_hash_word(k << shift) % N]++;
        for (unsigned k = 0; k < N; k++)
            assert_in_range(n[k], 0, MOST);
    }
}

static unsigned n_lines, n_others;
static unsigned long long n_left_out;

static bool count_line(enum ws_log_level level, const char *text, size_t n)
{
    unsigned long long left_out = 0;
    if (!strncmp(text, "flood", 5))
        n_lines++;
    else if (sscanf(text, "log: left out %llu", &left_out) != 1)
        n_others++;
    n_left_out += left_out;
    return true;
}

/* Whoever causes very many lines of one kind cannot fill the log, and hides no others. */
static void test_log_is_bounded(void **state)
{
    enum { LINES = 100000, PER_S = 1000 };
    ws_log_set_writer(count_line);
    ws_log_set_limit(PER_S);
    for (int n = 0; n <= LINES; n++) {
        if (n == LINES)
            usleep(100 * 1000);
        ws_log(WS_INFO, "flood %d", n);
    }
    ws_log(WS_INFO, "another kind");
    ws_log_set_limit(0);
    ws_log_set_writer(NULL);
    assert_in_range(n_lines, WS_LOG_BURST, LINES / 2);
    assert_int_equal(n_others, 1);
    assert_true(n_left_out > 0);
    assert_in_range(n_lines + n_left_out, LINES / 2, LINES + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow_doubles_and_zeroes),
        cmocka_unit_test(test_alloc_fails_on_demand),
        cmocka_unit_test(test_arena_aligns_zeroes_and_limits),
        cmocka_unit_test(test_diags_text_and_cap),
        cmocka_unit_test(test_fold_keeps_errors_and_turns_outcomes),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_budget_of_bytes),
        cmocka_unit_test(test_hurry_is_not_inherited),
        cmocka_unit_test(test_budget_of_time),
        cmocka_unit_test(test_hash_tells_texts_apart),
        cmocka_unit_test(test_hash_spreads_words),
        cmocka_unit_test(test_log_is_bounded),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
