// SPDX-License-Identifier: Apache-2.0
/* backend: the dispatcher, with devices whose work ends when the test says so. Launches are told
 * apart by their parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/client/viewer.h"
#include "backend/client/memory.h"
#include "backend/client/sms.h"
#include "backend/scheduling/dispatch_private.h"
#include "models/dvfs.h"
#include "tests/lib/wsserver.h"

#define PTX                                                                                        \
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n ret;\n}"
static const struct ws_viewer admin = {.admin = true};

enum { LEGACY = 1, MODULE = 1 };

static struct wss *start(uint32_t n_devices, const char *policy, const char *const *options)
{
    return wss_new_with_policy(n_devices, policy, options);
}

static void join(struct wss *w, unsigned peer, int priority)
{
    wss_hello(w, peer, NULL);
    for (uint32_t d = 0; d < w->peers[peer].n_devices; d++)
        assert_int_equal(wss_error(w, peer, wss_load(w, peer, MODULE + d, d, PTX, sizeof(PTX) - 1)),
                         0);
    ws_client_find(w->server, &w->peers[peer].peer)->work.priority = priority;
    snprintf(ws_client_find(w->server, &w->peers[peer].peer)->work.name, WS_TASK_NAME_BYTES,
             "task%u", peer);
}

static void launch(struct wss *w, unsigned peer, uint64_t mark)
{
    wss_launch(w, peer, LEGACY, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS, &mark, sizeof(mark));
}

static struct ws_op *find(struct wss *w, uint64_t mark, unsigned *ret_dev, unsigned *ret_i)
{
    for (unsigned d = 0; d < 3; d++)
        for (unsigned i = 0; i < w->dev[d].n_ops; i++) {
            struct ws_op *op = w->dev[d].ops[i];
            uint64_t m;
            if (op->kind != WS_OPK_LAUNCH)
                continue;
            memcpy(&m, op->launch.params, sizeof(m));
            if (m == mark) {
                if (ret_dev)
                    *ret_dev = d;
                if (ret_i)
                    *ret_i = i;
                return op;
            }
        }
    return NULL;
}

static bool runs(struct wss *w, uint64_t mark)
{
    return find(w, mark, NULL, NULL) != NULL;
}

static void end(struct wss *w, uint64_t mark, uint64_t ns)
{
    unsigned d = 0, i = 0;
    struct ws_op *op = find(w, mark, &d, &i);
    assert_non_null(op);
    uint64_t from = WS_MAX(op->ready_ns, w->dev[d].now_ns);
    fakedev_complete(&w->dev[d], i, from, from + ns, WS_DEV_OK);
    wss_turn(w);
}

static void test_without_a_policy_nothing_waits(void **state)
{
    (void)state;
    struct wss *w = start(1, "none", NULL);
    assert_null(w->server->dispatch);
    join(w, 0, 0);
    join(w, 1, 0);
    launch(w, 0, 1);
    launch(w, 1, 2);
    assert_true(runs(w, 1) && runs(w, 2));
    end(w, 1, 10);
    end(w, 2, 10);
    wss_free(w);
}

static void test_fifo_lets_one_at_a_time(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo", NULL);
    for (unsigned p = 0; p < 3; p++)
        join(w, p, 0);
    launch(w, 0, 1);
    uint64_t s0 = wss_sync_stream(w, 0, LEGACY);
    launch(w, 1, 2);
    uint64_t s1 = wss_sync_stream(w, 1, LEGACY);
    launch(w, 2, 3);
    assert_true(runs(w, 1));
    assert_false(runs(w, 2) || runs(w, 3));
    end(w, 1, 1000);
    assert_true(wss_replied(w, 0, s0));
    assert_true(runs(w, 2));
    assert_false(runs(w, 3));
    end(w, 2, 1000);
    assert_true(wss_replied(w, 1, s1));
    assert_true(runs(w, 3));
    end(w, 3, 1000);
    wss_free(w);
}

/* A client that never waits keeps its turn until it has nothing more to do, and no longer. */
static void test_a_turn_ends_without_a_wait(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo", NULL);
    join(w, 0, 0);
    join(w, 1, 0);
    launch(w, 0, 1);
    launch(w, 0, 2);
    launch(w, 1, 3);
    end(w, 1, 1000);
    assert_true(runs(w, 2));
    assert_false(runs(w, 3));
    end(w, 2, 1000);
    assert_true(runs(w, 3));
    end(w, 3, 1000);
    wss_free(w);
}

/* A launch of 100 ms has begun. Another program has 50 ms for one of 1 ms. */
static void test_wattshare_takes_off_what_has_more_time(void **state)
{
    (void)state;
    struct wss *w = start(1, "wattshare", NULL);
    unsigned d = 0, i = 0;
    w->server->dispatch->gpus[0].n_slots = 1;
    join(w, 0, 0);
    join(w, 1, 0);
    for (unsigned p = 0; p < 2; p++) { /* so that it knows what they take */
        launch(w, p, 1 + p);
        uint64_t s = wss_sync_stream(w, p, LEGACY);
        end(w, 1 + p, p ? 1000000 : 100000000);
        assert_true(wss_replied(w, p, s));
    }
    ws_client_find(w->server, &w->peers[1].peer)->work.deadline_ms = 50;
    launch(w, 0, 3);
    assert_true(runs(w, 3));
    launch(w, 1, 4);
    uint64_t s1 = wss_sync_stream(w, 1, LEGACY);
    assert_int_equal(w->dev[0].n_preempts, 1);
    assert_true(runs(w, 4));
    assert_non_null(find(w, 3, &d, &i));
    fakedev_stop(&w->dev[d], i, w->dev[d].now_ns, w->dev[d].now_ns + 500, 0.75);
    wss_turn(w);
    assert_false(runs(w, 3));
    end(w, 4, 1000000);
    assert_true(wss_replied(w, 1, s1));
    assert_true(runs(w, 3)); /* goes on */
    assert_int_equal(w->dev[0].n_preempts, 1);
    end(w, 3, 75000000);
    wss_free(w);
}

/* With a profile of its launch, a job that was seen on all SMs takes as much on fewer as the
 * profile says, and one that was not seen what the configuration says, for the first GPU. */
static void test_costs_follow_profiles(void **state)
{
    (void)state;
    struct wss *w = start(1, "wattshare", NULL);
    struct ws_dispatch *d = w->server->dispatch;
    const int n = d->types[0].n_sm;
    join(w, 0, 0);
    launch(w, 0, 1);
    struct ws_task_history *h = ws_client_find(w->server, &w->peers[0].peer)->jobs.task->history;
    h->cold_ms[0] = calloc((size_t)n + 1, sizeof(double));
    assert_non_null(h->cold_ms[0]);
    for (int m = 1; m <= n; m++)
        h->cold_ms[0][m] = 10 + n - m;
    h->is_profiled[0] = true;
    for (int seen = 0; seen < 2; seen++) {
        ws_client_find(w->server, &w->peers[0].peer)->work.wcet_ms = 5;
        h->costs_made = false;
        d->stale = true;
        assert_int_equal(ws_dispatch_refresh(d), 0);
        assert_float_equal(h->cost[0].wcet[n - 1], seen ? 20 : 5, 1e-9);
        assert_float_equal(h->cost[0].wcet[n - 4], (seen ? 2 : 0.5) * 13, 1e-9);
        if (!seen) {
            wss_sync_stream(w, 0, LEGACY);
            end(w, 1, 20000000);
        }
    }
    wss_free(w);
}

static void test_gcaps_preempts_and_resumes(void **state)
{
    (void)state;
    struct wss *w = start(1, "gcaps", NULL);
    join(w, 0, 1);
    join(w, 1, 2);
    unsigned d = 0, i = 0;
    launch(w, 0, 1);
    assert_true(runs(w, 1));
    launch(w, 1, 2);
    uint64_t s1 = wss_sync_stream(w, 1, LEGACY);
    assert_int_equal(w->dev[0].n_preempts, 1);
    assert_true(runs(w, 2)); /* at once: the GPU finishes blocks of the other meanwhile */
    assert_non_null(find(w, 1, &d, &i));
    fakedev_stop(&w->dev[d], i, 1000000, 1000500, 0.25);
    wss_turn(w);
    assert_false(runs(w, 1));
    launch(w, 1, 3); /* the higher one has more: in the same segment, for nobody has told it yet */
    end(w, 2, 1000);
    assert_true(wss_replied(w, 1, s1));
    end(w, 3, 1000);
    const struct ws_op *again = find(w, 1, &d, &i);
    assert_non_null(again); /* goes on where it was */
    assert_non_null(again->launch.progress);
    assert_true(ws_progress_part(again->launch.progress) == 0.25);
    end(w, 1, 750);
    const struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    assert_int_equal(c->stats.n_kernels, 1);
    assert_int_equal(c->stats.device_ns, 500 + 750);
    wss_free(w);
}

static void test_best_effort_shares_when_nothing_urgent_is_there(void **state)
{
    (void)state;
    struct wss *w = start(1, "gcaps", NULL);
    join(w, 0, 0);
    join(w, 1, 0);
    launch(w, 0, 1);
    launch(w, 1, 2);
    assert_true(runs(w, 1) && runs(w, 2));
    end(w, 1, 10);
    end(w, 2, 10);
    wss_free(w);
}

static void test_sm_sets(void **state)
{
    (void)state;
    struct wss *w = start(1, "stgm", NULL);
    for (unsigned p = 0; p < 3; p++) {
        join(w, p, 1);
        struct ws_task *t = &ws_client_find(w->server, &w->peers[p].peer)->work;
        ws_sm_set_add(&t->sms, p == 2 ? 0 : p);
    }
    launch(w, 0, 1);
    launch(w, 1, 2);
    launch(w, 2, 3); /* shares SM 0 with the first */
    assert_true(runs(w, 1) && runs(w, 2));
    assert_false(runs(w, 3));
    assert_int_equal(find(w, 1, NULL, NULL)->launch.sms.bits[0], 1);
    assert_int_equal(find(w, 2, NULL, NULL)->launch.sms.bits[0], 2);
    end(w, 2, 1000);
    assert_false(runs(w, 3));
    end(w, 1, 1000);
    assert_true(runs(w, 3));
    end(w, 3, 10);
    wss_free(w);
}

/* How a launch says that its blocks must be there together. */
enum together { COOPERATIVE, CLUSTERS };

static void launch_together(struct wss *w, unsigned peer, uint64_t mark, enum together how)
{
    Ws__Launch l = WS__LAUNCH__INIT;
    l.stream = LEGACY;
    l.function = (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS;
    l.grid_x = l.grid_y = l.grid_z = l.block_x = l.block_y = l.block_z = 1;
    l.flags = how == COOPERATIVE;
    if (how == CLUSTERS) { /* no device here asks how many the grid has */
        l.cluster_x = 2;
        l.cluster_y = l.cluster_z = 1;
    }
    l.params = (ProtobufCBinaryData){sizeof(mark), (uint8_t *)&mark};
    wss_do(w, peer, WS__COMMAND__C_LAUNCH, &l);
}

static void assert_explained(struct wss *w, uint64_t job, const char *want)
{
    char *text = ws_dispatch_explain(w->server, job, &admin);
    assert_non_null(text);
    if (!strstr(text, want))
        fail_msg("no \"%s\" in: %s", want, text);
    free(text);
}

/* A program sizes a cooperative grid, or a cluster, by all SMs that it was told of. Policies that
 * give a job some of the SMs see that it has all of them, from the start or from such a launch
 * on. */
static void test_blocks_together_have_all_sms(void **state)
{
    (void)state;
    const char *policies[] = {"sbeet-mg", "lcf", "bcf", "load-dist"};
    for (size_t i = 0; i < 2 * WS_ARRAY_SIZE(policies); i++) {
        enum together how = i % 2 ? CLUSTERS : COOPERATIVE;
        struct wss *w = start(1, policies[i / 2], NULL);
        w->dev[0].base.spec.static_mw = 1; /* so that few SMs are best for energy */
        join(w, 0, 2);
        join(w, 1, 1);
        struct ws_task *t = &ws_client_find(w->server, &w->peers[1].peer)->work;
        launch_together(w, 0, 1, how);
        launch(w, 1, 2);
        assert_int_equal(find(w, 1, NULL, NULL)->launch.sms.n, 0);
        assert_explained(w, 1, "on GPU 0 (big), 4 SMs");
        assert_false(runs(w, 2)); /* nothing is left for it */
        end(w, 1, 1000);
        assert_true(runs(w, 2));
        end(w, 2, 1000);
        launch(w, 0, 3);
        assert_int_equal(find(w, 3, NULL, NULL)->launch.sms.n, 1);
        launch_together(w, 0, 4, how); /* in the same job */
        launch(w, 1, 5);
        end(w, 3, 1000);
        assert_int_equal(find(w, 4, NULL, NULL)->launch.sms.n, 0);
        assert_explained(w, 3, "on GPU 0 (big), 1 SMs");
        assert_explained(w, 3, "4 SMs, end predicted");
        end(w, 4, 1000);
        end(w, 5, 1000);
        /* and no more than its task may have */
        t->n_sm_max = 3;
        ws_context_limit_sms(&ws_client_find(w->server, &w->peers[1].peer)->contexts[0]);
        launch_together(w, 1, 6, how);
        assert_int_equal(find(w, 6, NULL, NULL)->launch.sms.n, 3);
        end(w, 6, 1000);
        wss_free(w);
    }
}

/* The same where there is no policy, of a program that asks to use few SMs itself. */
static void test_blocks_together_without_a_policy(void **state)
{
    (void)state;
    struct wss *w = start(1, NULL, NULL);
    join(w, 0, 1);
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    c->who.sm_limit = 1;
    ws_context_limit_sms(&c->contexts[0]);
    launch(w, 0, 1);
    assert_int_equal(find(w, 1, NULL, NULL)->launch.sms.n, 1);
    end(w, 1, 10);
    for (int how = COOPERATIVE; how <= CLUSTERS; how++) {
        launch_together(w, 0, 2 + (uint64_t)how, how);
        assert_int_equal(find(w, 2 + (uint64_t)how, NULL, NULL)->launch.sms.n, 0);
        end(w, 2 + (uint64_t)how, 10);
    }
    wss_free(w);
}

/* Nor does the job go to a GPU that the program has not sized its blocks for. */
static void test_blocks_together_do_not_move(void **state)
{
    (void)state;
    for (int how = -1; how <= CLUSTERS; how++) {
        struct wss *w = start(2, "fifo", NULL);
        unsigned d = 9;
        wss_hello(w, 0, "1,0"); /* its GPU is the second; the first is free, too */
        assert_int_equal(wss_error(w, 0, wss_load(w, 0, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
        if (how < 0)
            launch(w, 0, 7);
        else
            launch_together(w, 0, 7, how);
        assert_non_null(find(w, 7, &d, NULL));
        assert_int_equal(d, how < 0 ? 0 : 1);
        end(w, 7, 10);
        wss_free(w);
    }
}

static void copy_in(struct wss *w, unsigned peer, uint64_t va)
{
    uint64_t v = 7;
    Ws__Copy m = WS__COPY__INIT;
    m.stream = LEGACY;
    m.dst = va;
    m.bytes = sizeof(v);
    m.bulk = WS__COPY__BULK__INLINE;
    m.data = (ProtobufCBinaryData){sizeof(v), (uint8_t *)&v};
    wss_do(w, peer, WS__COMMAND__C_COPY, &m);
}

static unsigned n_copies(const struct wss *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->dev[0].n_ops; i++)
        n += w->dev[0].ops[i]->kind == WS_OPK_COPY;
    return n;
}

/* The copy that the device has, which must be one. */
static void end_copy(struct wss *w, uint64_t ns)
{
    unsigned i = 0;
    assert_int_equal(n_copies(w), 1);
    while (w->dev[0].ops[i]->kind != WS_OPK_COPY)
        i++;
    fakedev_complete(&w->dev[0], i, w->dev[0].now_ns, w->dev[0].now_ns + ns, WS_DEV_OK);
    wss_turn(w);
}

/* STGM: copies one at a time for the engine, in order, beside kernels; kernels by their SMs. */
static void test_copies_are_requests_of_their_own(void **state)
{
    (void)state;
    struct wss *w = start(1, "stgm", NULL);
    uint64_t va[3];
    for (unsigned p = 0; p < 3; p++) {
        join(w, p, 1);
        struct ws_task *t = &ws_client_find(w->server, &w->peers[p].peer)->work;
        t->copies = true;
        ws_sm_set_add(&t->sms, p == 2 ? 0 : p);
        assert_true(va[p] = wss_alloc(w, p, 0, 64));
    }
    launch(w, 2, 3); /* has SM 0 */
    for (unsigned p = 0; p < 2; p++) {
        copy_in(w, p, va[p]);
        launch(w, p, p + 1);
    }
    assert_true(runs(w, 3));
    assert_int_equal(n_copies(w), 1); /* beside a kernel; the other one waits for the engine */
    end_copy(w, 100);
    assert_int_equal(n_copies(w), 1); /* the second one */
    assert_false(runs(w, 1));         /* the third client's has its SM */
    end_copy(w, 100);
    assert_int_equal(n_copies(w), 0);
    assert_true(runs(w, 2)); /* on SM 1 */
    assert_false(runs(w, 1));
    end(w, 3, 1000);
    assert_true(runs(w, 1));
    end(w, 1, 10);
    end(w, 2, 10);
    for (unsigned p = 0; p < 2; p++)
        wss_sync_stream(w, p, LEGACY);
    const struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    assert_int_equal(c->stats.n_jobs, 1); /* a copy is no job */
    /* A client that dies with a copy on the engine, one while it waits for it. */
    copy_in(w, 0, va[0]);
    copy_in(w, 1, va[1]);
    copy_in(w, 2, va[2]);
    assert_int_equal(n_copies(w), 1);
    ws_client_drop(ws_client_find(w->server, &w->peers[1].peer), 0, "test: waiting");
    ws_client_drop(ws_client_find(w->server, &w->peers[0].peer), 0, "test: running");
    wss_turn(w);
    end_copy(w, 100); /* the third one's; the device has given up the other */
    wss_free(w);
}

/* One that dies while it waits, while it runs, while it is stopped: the others go on. */
static void test_clients_may_die_at_any_point(void **state)
{
    (void)state;
    struct wss *w = start(1, "gcaps", NULL);
    unsigned d = 0, i = 0;
    for (unsigned p = 0; p < 4; p++)
        join(w, p, (int)p + 1);
    launch(w, 0, 1);
    launch(w, 1, 2);
    assert_non_null(find(w, 1, &d, &i));
    fakedev_stop(&w->dev[d], i, 1000000, 1000500, 0.5);
    wss_turn(w);
    launch(w, 3, 4);
    launch(w, 2, 3); /* waits */
    assert_false(runs(w, 3));
    ws_client_drop(ws_client_find(w->server, &w->peers[2].peer), 0, "test: waiting");
    ws_client_drop(ws_client_find(w->server, &w->peers[0].peer), 0, "test: preempted");
    ws_client_drop(ws_client_find(w->server, &w->peers[3].peer), 0, "test: running");
    wss_turn(w);
    assert_non_null(find(w, 2, &d, &i)); /* was asked to stop, and hasn't yet */
    fakedev_stop(&w->dev[d], i, 1000500, 1000600, 0.5);
    wss_turn(w);
    assert_non_null(find(w, 2, &d, &i));
    end(w, 2, 1000);
    wss_turn(w);
    wss_free(w);
}

static void test_a_program_says_itself_what_its_job_is(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo", NULL);
    join(w, 0, 0);
    join(w, 1, 0);
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    Ws__JobBegin begin = WS__JOB_BEGIN__INIT;
    begin.deadline_ns = 2000;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_JOB_BEGIN, &begin)), 0);
    assert_int_not_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_JOB_BEGIN, &begin)), 0);
    launch(w, 0, 1);
    uint64_t s0 = wss_sync_stream(w, 0, LEGACY);
    launch(w, 1, 2);
    end(w, 1, 1500);
    assert_true(wss_replied(w, 0, s0));
    assert_false(runs(w, 2)); /* it waits, but its job is not over */
    launch(w, 0, 3);
    end(w, 3, 1500);
    assert_int_equal(c->stats.n_jobs, 0);
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_JOB_END, (void *)1)), 0);
    assert_int_equal(c->stats.n_jobs, 1);
    assert_int_equal(c->stats.n_missed, 1); /* 3 us, 2 us were allowed */
    assert_true(runs(w, 2));
    assert_int_not_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_JOB_END, (void *)1)), 0);
    end(w, 2, 10);
    wss_free(w);
}

/* A policy that wants it elsewhere: memory goes along, at the same address; what the launch
 * doesn't name stays, and can be reached. */
static void test_memory_moves_with_the_job(void **state)
{
    (void)state;
    struct wss *w =
        start(2, "fifo", NULL); /* the first GPU that is free, as they are of two kinds */
    wss_hello(w, 0, "1,0");
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    assert_int_equal(c->contexts[0].gpu->device->index, 1);
    uint64_t va = wss_alloc(w, 0, 0, 4096), other = wss_alloc(w, 0, 0, 4096);
    struct ws_mapping m;
    assert_true(va && other && ws_space_find(c->memory.space, va, 4096, &m));
    memset(m.host, 0x5a, 4096);
    uint64_t used = w->dev[1].used_bytes;
    launch(w, 0, va + 16); /* names the allocation */
    wss_launch(w, 0, LEGACY, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS, (uint64_t[]){7}, 8);
    assert_false(runs(w, va + 16));
    assert_int_equal(w->dev[0].n_ops, 1);
    assert_int_equal(w->dev[0].ops[0]->kind, WS_OPK_COPY);
    fakedev_complete(&w->dev[0], 0, 0, 10, WS_DEV_OK);
    wss_turn(w);
    unsigned d = 9;
    assert_non_null(find(w, va + 16, &d, NULL));
    assert_int_equal(d, 0);
    assert_true(ws_space_find(c->memory.space, va, 4096, &m));
    assert_ptr_equal(m.device, &w->dev[0].base);
    assert_true(m.readers & 1);
    for (int k = 0; k < 4096; k++)
        assert_int_equal(m.host[k], 0x5a);
    assert_int_equal(w->dev[1].used_bytes, used - 4096);
    assert_true(ws_space_find(c->memory.space, other, 4096, &m));
    assert_ptr_equal(m.device, &w->dev[1].base);
    assert_true(m.readers & 1);
    end(w, va + 16, 10);
    end(w, 7, 10);
    wss_free(w);
}

/* All streams are looked at in one turn: who has very many stays. */
static void test_who_has_very_many_streams_stays(void **state)
{
    static const unsigned n_streams[] = {2000, 2100};
    (void)state;
    for (unsigned k = 0; k < WS_ARRAY_SIZE(n_streams); k++) {
        struct wss *w = start(2, "fifo", NULL);
        Ws__StreamCreate s = WS__STREAM_CREATE__INIT;
        unsigned d = 9;
        wss_hello(w, 0, "1,0");
        assert_int_equal(wss_error(w, 0, wss_load(w, 0, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
        for (unsigned i = 0; i < n_streams[k]; i++) {
            s.stream = WS_STREAM_FIRST + i;
            wss_do(w, 0, WS__COMMAND__C_STREAM_CREATE, &s);
        }
        launch(w, 0, 7);
        assert_non_null(find(w, 7, &d, NULL));
        assert_int_equal(d, k);
        end(w, 7, 10);
        wss_free(w);
    }
}

/* Real GPUs: all that a context has moves, or it stays: with memory that another client may have
 * it does. */
static void test_real_gpus_move_all(void **state)
{
    (void)state;
    struct wss *w = start(2, "fifo", NULL);
    for (unsigned d = 0; d < 2; d++)
        fakedev_set_far(&w->dev[d]);
    wss_hello(w, 0, "1,0");
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    uint64_t va[3], empty = w->dev[1].used_bytes;
    struct ws_mapping m;
    for (int k = 0; k < 3; k++) {
        va[k] = wss_alloc(w, 0, 0, 4096);
        assert_true(va[k] && ws_space_find(c->memory.space, va[k], 4096, &m));
        memset(m.host, 0x50 + k, 4096);
    }
    launch(w, 0, va[1] + 16);
    assert_false(runs(w, va[1] + 16));
    for (int k = 0; k < 10 && !runs(w, va[1] + 16); k++) {
        assert_int_equal(w->dev[0].n_ops, 1);
        assert_int_equal(w->dev[0].ops[0]->kind, WS_OPK_COPY);
        fakedev_complete(&w->dev[0], 0, 0, 10, WS_DEV_OK);
        wss_turn(w);
    }
    unsigned d = 9;
    assert_non_null(find(w, va[1] + 16, &d, NULL));
    assert_int_equal(d, 0);
    for (int k = 0; k < 3; k++) {
        assert_true(ws_space_find(c->memory.space, va[k], 4096, &m));
        assert_ptr_equal(m.device, &w->dev[0].base);
        assert_int_equal(m.readers & 1, 1);
        for (int i = 0; i < 4096; i++)
            assert_int_equal(m.host[i], 0x50 + k);
    }
    assert_int_equal(w->dev[1].used_bytes, 0); /* nothing is left where it was */
    assert_true(w->dev[0].used_bytes >= 3 * 4096);
    end(w, va[1] + 16, 10);

    wss_hello(w, 1, "small,big");
    assert_int_equal(wss_error(w, 1, wss_load(w, 1, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
    struct ws_client *other = ws_client_find(w->server, &w->peers[1].peer);
    uint64_t named = wss_alloc(w, 1, 0, 4096), shared = wss_alloc(w, 1, 0, 4096);
    struct ws_allocation *a = ws_memory_find(other, shared);
    assert_true(named && a && ws_object_share(w->server, a->ref.object));
    launch(w, 1, named + 16);
    assert_non_null(find(w, named + 16, &d, NULL));
    assert_int_equal(d, 1);
    end(w, named + 16, 10);
    assert_true(empty <= w->dev[1].used_bytes);
    wss_free(w);
}

/* Two programs that live on GPU 2, which is like GPU 0: the second waits for the first where
 * moving its data takes longer than that, and goes to GPU 0 where it does not. */
static void test_a_move_is_priced(void **state)
{
    (void)state;
    for (int quick = 0; quick < 2; quick++) {
        struct wss *w = start(3, "gcaps", NULL);
        for (unsigned g = 0; g < 3; g++) /* 4096 bytes: 4 us, or 4 ms; a job is guessed to take 1 */
            w->dev[g].base.spec.copy_bytes_per_s = quick ? 1000000000 : 1000000;
        for (unsigned p = 0; p < 2; p++) {
            wss_hello(w, p, "2");
            assert_int_equal(wss_error(w, p, wss_load(w, p, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
            struct ws_task *t = &ws_client_find(w->server, &w->peers[p].peer)->work;
            t->priority = 2 - (int)p;
            snprintf(t->name, sizeof(t->name), "task%u", p);
        }
        uint64_t va = wss_alloc(w, 1, 0, 4096);
        launch(w, 0, 1);
        unsigned d = 9;
        assert_non_null(find(w, 1, &d, NULL));
        assert_int_equal(d, 2);
        launch(w, 1, va + 8);
        char *text = ws_dispatch_explain(w->server, 2, &admin);
        assert_non_null(text);
        assert_non_null(
            strstr(text, quick ? "GPU 0: 0.004096 ms and 0.04" : "GPU 0: 4.096 ms and"));
        assert_non_null(strstr(text, "to move 4096 bytes"));
        assert_non_null(strstr(text, "GPU 2: it is there"));
        free(text);
        if (quick) {
            assert_int_equal(w->dev[0].n_ops, 1);
            assert_int_equal(w->dev[0].ops[0]->kind, WS_OPK_COPY);
            fakedev_complete(&w->dev[0], 0, 0, 10, WS_DEV_OK);
            wss_turn(w);
            assert_non_null(find(w, va + 8, &d, NULL));
            assert_int_equal(d, 0);
            end(w, 1, 1000);
        } else {
            assert_false(runs(w, va + 8));
            assert_int_equal(w->dev[0].n_ops + w->dev[1].n_ops, 0);
            end(w, 1, 1000);
            assert_non_null(find(w, va + 8, &d, NULL));
            assert_int_equal(d, 2);
        }
        end(w, va + 8, 10);
        wss_free(w);
    }
}

/* EDL gives a job its place in time once: the second one waits for the first, though the policy
 * is not asked again about it. */
static void test_bookings_are_kept(void **state)
{
    (void)state;
    struct wss *w = start(1, "edl", NULL);
    for (unsigned p = 0; p < 2; p++) {
        join(w, p, 1);
        ws_client_find(w->server, &w->peers[p].peer)->work.deadline_ms = 1000;
    }
    launch(w, 0, 1);
    launch(w, 1, 2);
    assert_true(runs(w, 1));
    assert_false(runs(w, 2));
    end(w, 1, 1000);
    assert_false(runs(w, 2)); /* its time has not come */
    for (int ms = 0; ms < 20 && !runs(w, 2); ms++) {
        fakedev_pass(&w->dev[0], w->dev[0].now_ns + 1000000);
        wss_turn(w);
        wss_turn(w); /* this device has one alarm only, and rings the one before early */
    }
    assert_true(runs(w, 2));
    end(w, 2, 10);
    wss_free(w);
}

static int take_clocks(struct ws_device *d, const struct ws_device_clocks *want,
                       struct ws_device_clocks *ret)
{
    (void)d;
    *ret = *want;
    return 0;
}

/* EDL lowers the clocks of a job with slack. What was seen there is learned as it would be at the
 * default. */
static void test_times_at_other_clocks(void **state)
{
    (void)state;
    struct wss *w = start(1, "edl", NULL);
    struct ws_device_ops ops = *w->dev[0].base.ops;
    ops.set_clocks = take_clocks;
    w->dev[0].base.ops = &ops;
    join(w, 0, 1);
    ws_client_find(w->server, &w->peers[0].peer)->work.deadline_ms = 1000;
    launch(w, 0, 1);
    (void)wss_sync_stream(w, 0, LEGACY);
    assert_true(runs(w, 1));
    const struct ws_device_clocks *at = &w->dev[0].base.clocks_now;
    const struct ws_task_history *h = w->server->dispatch->histories;
    assert_true(w->dev[0].base.clocked && at->core < 0.95);
    double slower =
        ws_dvfs_time(&h->dvfs[0], at->core, at->memory) / ws_dvfs_time(&h->dvfs[0], 1, 1);
    end(w, 1, 8000000);
    int n_sm = w->server->dispatch->types[0].n_sm;
    assert_float_equal(h->seen_ms[0][n_sm], 8 / slower, 1e-6);
    wss_free(w);
}

/* A policy that can't do with these GPUs (EDL wants them all alike) holds nobody up. */
static void test_nobody_waits_for_ever(void **state)
{
    (void)state;
    struct wss *w = start(2, "edl", NULL);
    for (unsigned p = 0; p < 3; p++) {
        join(w, p, 1);
        launch(w, p, p + 1);
    }
    for (int turns = 0; turns < 20; turns++) {
        for (uint64_t mark = 1; mark <= 3; mark++)
            if (runs(w, mark))
                end(w, mark, 1000);
        for (unsigned d = 0; d < 2; d++)
            fakedev_complete_all(&w->dev[d]);
        fakedev_pass(&w->dev[0], w->dev[0].now_ns + 5000000);
        wss_turn(w);
    }
    for (unsigned p = 0; p < 3; p++)
        assert_int_equal(ws_client_find(w->server, &w->peers[p].peer)->stats.n_kernels, 1);
    wss_free(w);
}

static void test_policies_are_exchanged_while_work_waits(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo", NULL);
    char error[256] = "";
    join(w, 0, 0);
    join(w, 1, 0);
    launch(w, 0, 1);
    launch(w, 1, 2);
    assert_false(runs(w, 2));
    assert_int_equal(ws_dispatch_set_policy(w->server, "fifi", NULL, error, sizeof(error)),
                     WS_CONFIG_E_INVALID);
    assert_non_null(strstr(error, "fifi"));
    assert_int_equal(ws_dispatch_set_policy(w->server, "fifo", (const char *const[]){"x=1", NULL},
                                            error, sizeof(error)),
                     WS_CONFIG_E_INVALID);
    assert_false(runs(w, 2));
    assert_int_equal(ws_dispatch_set_policy(w->server, "gcaps", NULL, error, sizeof(error)), 0);
    wss_turn(w);
    assert_true(runs(w, 2));
    end(w, 1, 10);
    end(w, 2, 10);
    wss_free(w);
}

static void test_explains(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo", NULL);
    join(w, 0, 0);
    launch(w, 0, 1);
    char *text = ws_dispatch_explain(w->server, 1, &admin);
    assert_non_null(text);
    assert_non_null(strstr(text, "job 1 (task0): start on GPU 0 (big)"));
    free(text);
    assert_null(ws_dispatch_explain(w->server, 77, &admin));
    end(w, 1, 10);
    wss_free(w);
}

/* Jobs of other users are not there for who asks. Why a job waits may lie in one of them, of which
 * its own user is told no number and no priority. */
static void test_explains_nothing_of_others(void **state)
{
    (void)state;
    const struct ws_viewer self = {.known = true, .uid = 1000},
                           other = {.known = true, .uid = 1001};
    struct wss *w = start(1, "gcaps", NULL);
    join(w, 0, 3);
    join(w, 1, 2);
    launch(w, 0, 1);
    launch(w, 1, 2);
    assert_explained(w, 2, "waits: task 1 (3) is higher");
    char *text = ws_dispatch_explain(w->server, 2, &self);
    assert_non_null(text);
    if (!strstr(text, "(priority 2) waits: another job is higher"))
        fail_msg("%s", text);
    free(text);
    assert_null(ws_dispatch_explain(w->server, 2, &other));
    assert_null(ws_dispatch_explain(w->server, 0, &other)); /* the newest */
    end(w, 1, 10);
    end(w, 2, 10);
    wss_free(w);
}

/* ---- the checker ---- */
static void test_nonsense_is_seen(void **state)
{
    (void)state;
    struct ws_policy_gpu_type type = {.name = "x", .n_sm = 4};
    struct ws_policy_gpu gpu = {.sm_limit = 4, .n_slots = 4};
    struct ws_policy_task task = {0};
    struct ws_policy_system sys = {
        .types = &type, .gpus = &gpu, .tasks = &task, .n_types = 1, .n_gpus = 1, .n_tasks = 1};
    struct ws_policy_job jobs[2] = {{.state = WS_JOB_WAITING}, {.state = WS_JOB_RUNNING}};
    struct ws_policy_snapshot snap = {.system = &sys, .jobs = jobs, .n_jobs = 2};
    struct ws_sm_set none[1] = {0}, some[1] = {0};
    ws_sm_set_add(&some[0], 1);
    struct ws_policy_decision good = {.kind = WS_DECIDE_START, .n_sm = 2};
    ws_sm_set_add(&good.sms, 2);
    ws_sm_set_add(&good.sms, 3);
    struct ws_sm_set taken[1];
#define OK(p)  (memcpy(taken, none, sizeof(taken)), ws_dispatch_nonsense(&snap, &(p), taken) == NULL)
#define BAD(p) (!OK(p))
    assert_true(OK(good));
    struct ws_policy_decision p = good;
    p.gpu = 1;
    assert_true(BAD(p));
    p.gpu = -1;
    assert_true(BAD(p));
    p = good;
    p.job = 2;
    assert_true(BAD(p));
    p.job = -1;
    assert_true(BAD(p));
    p.job = 1; /* runs already */
    assert_true(BAD(p));
    p = good;
    p.n_sm = 5;
    assert_true(BAD(p));
    p.n_sm = 0;
    assert_true(BAD(p));
    p = good;
    ws_sm_set_add(&p.sms, 4); /* there is no SM 4 */
    p.n_sm = 3;
    assert_true(BAD(p));
    p = good;
    p.sms.n = 1; /* counted wrong */
    assert_true(BAD(p));
    p = good;
    p.at = NAN;
    assert_true(BAD(p));
    p = good;
    memcpy(taken, some, sizeof(taken));
    assert_null(ws_dispatch_nonsense(&snap, &p, taken));
    assert_non_null(ws_dispatch_nonsense(&snap, &p, taken)); /* its own are taken now */
    p = (struct ws_policy_decision){.kind = WS_DECIDE_RESUME, .n_sm = 1};
    assert_true(BAD(p));
    p = (struct ws_policy_decision){.kind = WS_DECIDE_PREEMPT};
    assert_true(BAD(p));
    p.job = 1;
    assert_true(OK(p));
    p = (struct ws_policy_decision){.kind = WS_DECIDE_CLOCKS, .volt = 1, .f_core = -1, .f_mem = 1};
    assert_true(BAD(p));
    p = (struct ws_policy_decision){.kind = WS_DECIDE_RUN_CPU};
    assert_true(BAD(p)); /* no time on the host's processor is known */
    p = (struct ws_policy_decision){.kind = (enum ws_decision_kind)99};
    assert_true(BAD(p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_policy_nothing_waits),
        cmocka_unit_test(test_fifo_lets_one_at_a_time),
        cmocka_unit_test(test_a_turn_ends_without_a_wait),
        cmocka_unit_test(test_wattshare_takes_off_what_has_more_time),
        cmocka_unit_test(test_costs_follow_profiles),
        cmocka_unit_test(test_gcaps_preempts_and_resumes),
        cmocka_unit_test(test_best_effort_shares_when_nothing_urgent_is_there),
        cmocka_unit_test(test_sm_sets),
        cmocka_unit_test(test_copies_are_requests_of_their_own),
        cmocka_unit_test(test_clients_may_die_at_any_point),
        cmocka_unit_test(test_a_program_says_itself_what_its_job_is),
        cmocka_unit_test(test_memory_moves_with_the_job),
        cmocka_unit_test(test_who_has_very_many_streams_stays),
        cmocka_unit_test(test_real_gpus_move_all),
        cmocka_unit_test(test_a_move_is_priced),
        cmocka_unit_test(test_bookings_are_kept),
        cmocka_unit_test(test_times_at_other_clocks),
        cmocka_unit_test(test_nobody_waits_for_ever),
        cmocka_unit_test(test_policies_are_exchanged_while_work_waits),
        cmocka_unit_test(test_blocks_together_have_all_sms),
        cmocka_unit_test(test_blocks_together_without_a_policy),
        cmocka_unit_test(test_blocks_together_do_not_move),
        cmocka_unit_test(test_explains),
        cmocka_unit_test(test_explains_nothing_of_others),
        cmocka_unit_test(test_nonsense_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
