// SPDX-License-Identifier: Apache-2.0
/* backend/steps: whose step a program is of, when a step ends, and what a batch job has used. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/accounts/account.h"
#include "backend/steps/steps.h"

static uint64_t pool_size;

static uint64_t pool(void *arg, enum ws_resource r)
{
    (void)arg, (void)r;
    return pool_size;
}

struct state {
    struct ws_steps steps;
    struct ws_accounts *accounts;
    struct ws_account *user;
    pid_t child; /* a process that does nothing; 0: none */
};

static int setup(void **state)
{
    static struct state s;
    ws_steps_init(&s.steps);
    pool_size = WS_ACCOUNT_UNLIMITED;
    if (ws_accounts_new(&s.accounts, &(struct ws_accounts_ops){.pool = pool}))
        return -1;
    s.user = ws_account_of_user(s.accounts, 1000);
    s.child = fork();
    if (!s.child) {
        pause();
        _exit(0);
    }
    *state = &s;
    return s.child < 0;
}

static void kill_child(struct state *s)
{
    if (s->child)
        kill(s->child, SIGKILL);
    s->child = 0;
}

static int teardown(void **state)
{
    struct state *s = *state;
    kill_child(s);
    while (wait(NULL) > 0)
        ;
    ws_steps_deinit(&s->steps);
    assert_int_equal(ws_account_used(s->user, WS_RESOURCE_DESCRIPTORS), 0);
    ws_account_unref(s->user);
    ws_accounts_free(s->accounts);
    return 0;
}

static struct ws_step_info info_of(const struct state *s, uint64_t job, uint32_t number,
                                   uint32_t pid)
{
    return (struct ws_step_info){
        .job = job, .number = number, .uid = 1000, .pid = pid, .account = s->user};
}

static void test_is_found_by_ancestry(void **state)
{
    struct state *s = *state;
    struct ws_step_info info = info_of(s, 7, 0, (uint32_t)s->child);
    struct ws_batch_step *t;
    uint32_t line[] = {4000000001u, (uint32_t)s->child, 1};
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), 0);
    assert_ptr_equal(ws_steps_of(&s->steps, line, 3, 1000), t);
    assert_null(ws_steps_of(&s->steps, line, 1, 1000)); /* not below the process */
    assert_null(ws_steps_of(&s->steps, line, 3, 1001)); /* another user's program */
}

static void test_is_refused(void **state)
{
    struct state *s = *state;
    struct ws_step_info info = info_of(s, 7, 0, (uint32_t)s->child);
    struct ws_batch_step *t;
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), 0);
    info.uid = 1001;
    info.number = 1;
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), WS_STEPS_E_USER);
    info = info_of(s, 8, 0, 4000000001u);
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), WS_STEPS_E_GONE);
    assert_null(ws_steps_find(&s->steps, 8));
}

static void test_ends_with_its_process(void **state)
{
    struct state *s = *state;
    struct ws_step_info info = info_of(s, 7, 3, (uint32_t)s->child);
    uint32_t line[] = {(uint32_t)s->child};
    struct ws_batch_step *t;
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), 0);
    ws_step_enter(t);
    assert_null(ws_steps_ended(&s->steps));
    kill_child(s);
    struct pollfd p = {.fd = s->steps.epoll_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_ptr_equal(ws_steps_ended(&s->steps), t);
    assert_null(ws_steps_ended(&s->steps)); /* told once */
    assert_null(ws_steps_of(&s->steps, line, 1, 1000));
    ws_step_close(t); /* stays for the program that is in it */
    const struct ws_step_use use = {.n_kernels = 2, .device_ns = 30, .busy_uj = 5, .idle_uj = 7};
    struct ws_batch_job *b = ws_steps_find(&s->steps, 7);
    assert_int_equal(b->n_programs, 1);
    ws_step_leave(t, &use);
    assert_int_equal(b->n_programs, 0);
    assert_true(ws_list_empty(&b->steps));
    assert_int_equal(b->use.n_programs, 1);
    assert_int_equal(b->use.busy_uj + b->use.idle_uj, 12);
    ws_steps_forget(&s->steps, b);
    assert_null(ws_steps_find(&s->steps, 7));
}

static void test_oldest_that_is_over_goes(void **state)
{
    struct state *s = *state;
    struct ws_batch_step *t;
    for (uint64_t job = 1; job <= WS_STEPS_BATCHES; job++) {
        struct ws_step_info info = info_of(s, job, 0, (uint32_t)s->child);
        if (job > 2)
            ws_step_close(t); /* all but the first and the last are over */
        assert_int_equal(ws_steps_begin(&s->steps, &info, &t), 0);
    }
    struct ws_step_info info = info_of(s, 99999, 0, (uint32_t)s->child);
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), 0);
    assert_non_null(ws_steps_find(&s->steps, 1)); /* its step is there */
    assert_null(ws_steps_find(&s->steps, 2));
    assert_non_null(ws_steps_find(&s->steps, 99999));
}

/* Each step costs the daemon a descriptor, which is its user's. */
static void test_steps_are_charged(void **state)
{
    struct state *s = *state;
    struct ws_batch_step *t;
    struct ws_step_info info = info_of(s, 7, 0, (uint32_t)s->child);
    pool_size = 8;
    for (uint32_t n = 0; n < 4; n++) /* half of the pool */
        assert_int_equal(ws_steps_begin(&s->steps, &info, &t), 0);
    assert_int_equal(ws_steps_begin(&s->steps, &info, &t), WS_STEPS_E_SHARE);
    struct ws_account *other = ws_account_of_user(s->accounts, 1001);
    struct ws_step_info others = {
        .job = 8, .uid = 1001, .pid = (uint32_t)s->child, .account = other};
    assert_int_equal(ws_steps_begin(&s->steps, &others, &t), 0);
    ws_steps_forget(&s->steps, ws_steps_find(&s->steps, 8));
    ws_account_unref(other);
    kill_child(s);
    while (s->steps.epoll_fd >= 0) {
        poll(&(struct pollfd){.fd = s->steps.epoll_fd, .events = POLLIN}, 1, -1);
        if ((t = ws_steps_ended(&s->steps)))
            ws_step_close(t);
    }
    assert_int_equal(ws_account_used(s->user, WS_RESOURCE_DESCRIPTORS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_is_found_by_ancestry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends_with_its_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_oldest_that_is_over_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_steps_are_charged, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
