// SPDX-License-Identifier: Apache-2.0
/* Policies gcaps (and its printed forms), stgm, fifo and rr, decision by decision. A fixture
 * carries decisions out as a daemon would; what is expected follows from each policy's rule by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "policy/policy.h"
#include "policy/runlist.h"

enum { TASKS = 8, GPUS = 2 };
struct fixture {
    const struct ws_policy_ops *ops;
    struct ws_policy *policy;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpus[GPUS];
    struct ws_policy_task tasks[TASKS];
    struct ws_policy_system system;
    struct ws_policy_job jobs[TASKS];
    struct ws_policy_gpu_state states[GPUS];
    struct ws_policy_decisions decisions;
    int n_jobs;
    uint64_t seq;
    double now, timer;
};

static void make(struct fixture *f, const char *name, const char *const *options, int n_gpus,
                 int n_tasks, const int *priorities)
{
    char error[160] = "";
    *f = (struct fixture){.ops = ws_policy_find(name), .timer = -1};
    assert_non_null(f->ops);
    f->type.n_sm = 8;
    for (int g = 0; g < GPUS; g++)
        f->gpus[g] =
            (struct ws_policy_gpu){.sm_limit = 8, .n_slots = 4, .n_copy_engines = 1, .server = -1};
    for (int i = 0; i < n_tasks; i++)
        f->tasks[i] = (struct ws_policy_task){
            .id = 10 + i, .priority = priorities[i], .best_effort = priorities[i] == 0};
    f->system = (struct ws_policy_system){.types = &f->type,
                                          .gpus = f->gpus,
                                          .tasks = f->tasks,
                                          .n_types = 1,
                                          .n_gpus = n_gpus,
                                          .n_tasks = n_tasks};
    assert_int_equal(f->ops->make(&f->policy, options, error, sizeof(error)), 0);
    if (f->ops->prepare)
        assert_int_equal(f->ops->prepare(f->policy, &f->system, error, sizeof(error)), 0);
}

static void unmake(struct fixture *f)
{
    f->ops->free(f->policy);
    ws_policy_decisions_deinit(&f->decisions);
}

static void decide(struct fixture *f, struct ws_policy_event e)
{
    struct ws_policy_snapshot s = {.system = &f->system,
                                   .now = f->now,
                                   .gpus = f->states,
                                   .jobs = f->jobs,
                                   .n_jobs = f->n_jobs,
                                   .explain = true};
    f->decisions.n = 0;
    assert_int_equal(f->ops->decide(f->policy, &s, &e, &f->decisions), 0);
    for (size_t i = 0; i < f->decisions.n; i++) {
        const struct ws_policy_decision *d = &f->decisions.v[i];
        if (d->kind == WS_DECIDE_TIMER) {
            f->timer = d->at;
            continue;
        }
        assert_in_range(d->job, 0, f->n_jobs - 1);
        assert_true(d->why[0]);
        struct ws_policy_job *j = &f->jobs[d->job];
        if (d->kind == WS_DECIDE_START || d->kind == WS_DECIDE_RESUME) {
            assert_int_not_equal(j->state, WS_JOB_RUNNING);
            assert_int_equal(d->kind == WS_DECIDE_RESUME, j->state == WS_JOB_PREEMPTED);
            j->state = WS_JOB_RUNNING;
            j->gpu = d->gpu;
        } else if (d->kind == WS_DECIDE_PREEMPT) {
            assert_int_equal(j->state, WS_JOB_RUNNING);
            j->state = WS_JOB_PREEMPTED;
        }
    }
}

static void arrive_part(struct fixture *f, int task, enum ws_job_part part)
{
    f->seq++;
    f->jobs[f->n_jobs++] =
        (struct ws_policy_job){.id = f->seq, .seq = f->seq, .part = part, .task = task, .gpu = -1};
    decide(f, (struct ws_policy_event){
                  .kind = WS_EVENT_ARRIVAL, .job = f->n_jobs - 1, .task = task, .gpu = -1});
}

static void arrive(struct fixture *f, int task)
{
    arrive_part(f, task, WS_PART_KERNEL);
}

static void leave(struct fixture *f, int task)
{
    int j = 0;
    while (j < f->n_jobs && f->jobs[j].task != task)
        j++;
    assert_int_not_equal(j, f->n_jobs);
    struct ws_policy_event e = {.kind = WS_EVENT_COMPLETION,
                                .job = -1,
                                .task = task,
                                .gpu = f->jobs[j].gpu,
                                .job_id = f->jobs[j].id};
    memmove(&f->jobs[j], &f->jobs[j + 1], sizeof(f->jobs[0]) * (size_t)(f->n_jobs - j - 1));
    f->n_jobs--;
    decide(f, e);
}

/* The running tasks on @gpu as digits in order of arrival: "02". */
static const char *running(const struct fixture *f, int gpu)
{
    static char text[TASKS + 1];
    int n = 0;
    for (int j = 0; j < f->n_jobs; j++)
        if (f->jobs[j].state == WS_JOB_RUNNING && f->jobs[j].gpu == gpu)
            text[n++] = (char)('0' + f->jobs[j].task);
    text[n] = 0;
    return text;
}

/* ---- gcaps ---- */
static void test_gcaps_preempts(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "gcaps", NULL, 1, 4, (const int[]){30, 20, 10, 0});
    arrive(&f, 2);
    assert_string_equal(running(&f, 0), "2");
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "0");
    assert_int_equal(f.decisions.v[0].kind, WS_DECIDE_PREEMPT); /* off before on */
    assert_non_null(strstr(f.decisions.v[0].why, "task 10 (30)"));
    assert_int_equal(f.decisions.v[1].n_sm, 8);
    arrive(&f, 1);
    assert_string_equal(running(&f, 0), "0");
    arrive(&f, 3);
    leave(&f, 0);
    assert_string_equal(running(&f, 0), "1");
    leave(&f, 1);
    assert_string_equal(running(&f, 0), "2");
    leave(&f, 2);
    assert_string_equal(running(&f, 0), "3");
    unmake(&f);
}

/* Best effort shares; a real-time task takes all of it away and gives all of it back; an end of one
 * leaves the others. */
static void test_gcaps_best_effort(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "gcaps", NULL, 1, 5, (const int[]){9, 5, 0, 0, 0});
    arrive(&f, 2);
    arrive(&f, 3);
    arrive(&f, 4);
    assert_string_equal(running(&f, 0), "234");
    arrive(&f, 1);
    assert_string_equal(running(&f, 0), "1"); /* A1: not "134" */
    leave(&f, 3);                             /* A3: a late end promotes nobody */
    assert_string_equal(running(&f, 0), "1");
    leave(&f, 1);
    assert_string_equal(running(&f, 0), "24");
    leave(&f, 2); /* A2: 4 stays */
    assert_string_equal(running(&f, 0), "4");
    unmake(&f);
}

static void test_gcaps_equal_is_first_come(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "gcaps", NULL, 1, 4, (const int[]){5, 5, 5, 5});
    arrive(&f, 3);
    arrive(&f, 1);
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "3");
    leave(&f, 3);
    assert_string_equal(running(&f, 0), "1");
    leave(&f, 1);
    assert_string_equal(running(&f, 0), "0");
    unmake(&f);
}

static void test_gcaps_gpu_priority(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "gcaps", NULL, 1, 3, (const int[]){30, 20, 10});
    f.tasks[0].gpu_priority = 1;
    f.tasks[1].gpu_priority = 2;
    f.tasks[2].gpu_priority = 3;
    arrive(&f, 0);
    arrive(&f, 2);
    arrive(&f, 1);
    assert_string_equal(running(&f, 0), "2");
    leave(&f, 2);
    assert_string_equal(running(&f, 0), "1");
    unmake(&f);
}

/* Two GPUs: the two highest run; one goes where fewest stand before it, and stays there. */
static void test_gcaps_two_gpus(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "gcaps", NULL, 2, 4, (const int[]){40, 30, 20, 10});
    arrive(&f, 2);
    arrive(&f, 3);
    assert_string_equal(running(&f, 0), "2");
    assert_string_equal(running(&f, 1), "3");
    arrive(&f, 0); /* none before it anywhere: GPU 0 */
    assert_string_equal(running(&f, 0), "0");
    arrive(&f, 1); /* one before it on GPU 0, none on GPU 1 */
    assert_string_equal(running(&f, 1), "1");
    leave(&f, 1);
    assert_string_equal(running(&f, 1), "3"); /* 2 waits for GPU 0, where its buffers are */
    unmake(&f);
}

/* The slips that policy/runlist.h tells of, seen. */
static void test_gcaps_printed_forms(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "gcaps-alg1", NULL, 1, 3, (const int[]){9, 0, 0});
    arrive(&f, 1);
    arrive(&f, 2);
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "20"); /* A1: 2 still beside it */
    unmake(&f);
    make(&f, "gcaps-driver", NULL, 1, 3, (const int[]){9, 0, 0});
    arrive(&f, 1);
    arrive(&f, 2);
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "0");
    leave(&f, 0);
    leave(&f, 2);
    assert_string_equal(running(&f, 0), ""); /* A2: 1 is thrown off */
    unmake(&f);
}

/* ---- stgm ---- */
static void sms(struct fixture *f, int task, unsigned mask)
{
    for (unsigned i = 0; i < 8; i++)
        if (mask >> i & 1)
            ws_sm_set_add(&f->tasks[task].sms, i);
}

/* A chain: 2 shares nothing with 0, but waits for 1, which waits for 0. 3 shares with nobody. */
static void test_stgm_chain(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "stgm", NULL, 1, 4, (const int[]){4, 3, 2, 1});
    sms(&f, 0, 0x06);
    sms(&f, 1, 0x03);
    sms(&f, 2, 0x01);
    sms(&f, 3, 0x18);
    arrive(&f, 0);
    arrive(&f, 1);
    arrive(&f, 2);
    assert_string_equal(running(&f, 0), "0");
    assert_non_null(
        strstr(f.decisions.v[f.decisions.n - 1].why, "task 11, which was first and waits too"));
    arrive(&f, 3);
    assert_string_equal(running(&f, 0), "03");
    leave(&f, 0);
    assert_string_equal(running(&f, 0), "13");
    leave(&f, 1);
    assert_string_equal(running(&f, 0), "23");
    unmake(&f);
}

static void test_stgm_copies(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "stgm", NULL, 1, 4, (const int[]){4, 3, 2, 1});
    sms(&f, 3, 0x01);
    arrive_part(&f, 0, WS_PART_COPY_IN);
    arrive_part(&f, 1, WS_PART_COPY_OUT);
    arrive_part(&f, 2, WS_PART_COPY_IN);
    arrive(&f, 3); /* a kernel is not behind copies */
    assert_string_equal(running(&f, 0), "03");
    leave(&f, 0);
    assert_string_equal(running(&f, 0), "13");
    f.gpus[0].n_copy_engines = 2;
    decide(&f,
           (struct ws_policy_event){.kind = WS_EVENT_CHANGED, .job = -1, .task = -1, .gpu = -1});
    assert_string_equal(running(&f, 0), "123");
    unmake(&f);
}

/* A task without a set uses the whole GPU. */
static void test_stgm_whole(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "stgm", NULL, 1, 3, (const int[]){3, 2, 1});
    sms(&f, 1, 0x01);
    arrive(&f, 0);
    assert_int_equal(f.decisions.v[0].n_sm, 8);
    arrive(&f, 1);
    assert_string_equal(running(&f, 0), "0");
    unmake(&f);
}

/* ---- fifo ---- */
static void test_fifo(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "fifo", NULL, 1, 3, (const int[]){3, 2, 1});
    arrive(&f, 2);
    arrive(&f, 1);
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "2");
    leave(&f, 2);
    assert_string_equal(running(&f, 0), "1");
    unmake(&f);
    make(&f, "fifo", (const char *const[]){"order=priority", NULL}, 2, 4,
         (const int[]){4, 3, 2, 1});
    arrive(&f, 3);
    arrive(&f, 2);
    arrive(&f, 1);
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "3"); /* not preempted */
    assert_string_equal(running(&f, 1), "2");
    leave(&f, 2);
    assert_string_equal(running(&f, 1), "0");
    leave(&f, 3);
    assert_string_equal(running(&f, 0), "1");
    unmake(&f);
}

/* ---- rr ---- */
static void test_rr_slices(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "rr", (const char *const[]){"slice=2", NULL}, 1, 3, (const int[]){0, 0, 0});
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "0");
    assert_true(f.timer == 2);
    f.now = 2;
    decide(&f, (struct ws_policy_event){.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1});
    assert_string_equal(running(&f, 0), "0"); /* alone */
    f.now = 7;
    arrive(&f, 1); /* has had more than its turn */
    assert_string_equal(running(&f, 0), "1");
    assert_true(f.timer == 9);
    f.now = 8;
    arrive(&f, 2);
    assert_string_equal(running(&f, 0), "1"); /* its turn is not over */
    static const char *const turns[] = {"2", "0", "1", "2"};
    for (int k = 0; k < 4; k++) {
        f.now = 9 + 2 * k;
        decide(&f,
               (struct ws_policy_event){.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1});
        assert_string_equal(running(&f, 0), turns[k]);
        assert_true(f.timer == f.now + 2);
    }
    leave(&f, 2);
    assert_string_equal(running(&f, 0), "0");
    unmake(&f);
}

static void test_rr_hardware(void **state)
{
    (void)state;
    struct fixture f;
    make(&f, "rr", (const char *const[]){"slice=0", NULL}, 1, 3, (const int[]){0, 0, 0});
    arrive(&f, 1);
    arrive(&f, 0);
    assert_string_equal(running(&f, 0), "10");
    assert_true(f.timer < 0);
    unmake(&f);
}

/* ---- what is refused ---- */
static void test_bad_options(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *option, *says;
    } rows[] = {
        {"gcaps", "slice=1", "there are none"},
        {"stgm", "x=y", "there are none"},
        {"fifo", "order=random", "arrival or priority is wanted"},
        {"fifo", "sort=up", "no option 'sort=up'; there are: order=arrival"},
        {"rr", "slice=-1", "a number from 0"},
        {"rr", "slice=fast", "a number from 0"},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct ws_policy *p = NULL;
        char error[200] = "";
        const char *options[] = {rows[i].option, NULL};
        assert_int_equal(ws_policy_find(rows[i].policy)->make(&p, options, error, sizeof(error)),
                         WS_POLICY_E_OPTION);
        assert_null(p);
        if (!strstr(error, rows[i].says))
            fail_msg("%s %s: '%s'", rows[i].policy, rows[i].option, error);
    }
}

/* Without memory: an error, and nothing lost. */
static void test_no_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"gcaps", "gcaps-driver", "stgm", "fifo", "rr"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(names); i++) {
        struct ws_policy *p = NULL;
        char error[100];
        ws_alloc_fail_after(1);
        assert_int_equal(ws_policy_find(names[i])->make(&p, NULL, error, sizeof(error)), -ENOMEM);
        ws_alloc_fail_after(0);
        assert_null(p);
        ws_policy_find(names[i])->free(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gcaps_preempts),
        cmocka_unit_test(test_gcaps_best_effort),
        cmocka_unit_test(test_gcaps_equal_is_first_come),
        cmocka_unit_test(test_gcaps_gpu_priority),
        cmocka_unit_test(test_gcaps_two_gpus),
        cmocka_unit_test(test_gcaps_printed_forms),
        cmocka_unit_test(test_stgm_chain),
        cmocka_unit_test(test_stgm_copies),
        cmocka_unit_test(test_stgm_whole),
        cmocka_unit_test(test_fifo),
        cmocka_unit_test(test_rr_slices),
        cmocka_unit_test(test_rr_hardware),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
