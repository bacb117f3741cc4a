// SPDX-License-Identifier: Apache-2.0
/* The soft device where device time passes: when operations are done, in which order, at what
 * energy, idle time included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "device/payer.h"
#include "device/soft/timeline/standing.h"
#include "device/soft/timeline/vclock.h"
#include "tests/unit/device/softdev_rig.h"

static int setup(void **state)
{
    return rig_open(
        state, &(struct ws_device_options){.clock = WS_CLOCK_SCALED, .scale = 20, .n_workers = 2});
}
static int setup_wake(void **state)
{
    return rig_open(state,
                    &(struct ws_device_options){
                        .clock = WS_CLOCK_SCALED, .scale = 20, .n_workers = 2, .wake_ns = 250000});
}
static int setup_functional(void **state)
{
    return rig_open(state,
                    &(struct ws_device_options){.clock = WS_CLOCK_FUNCTIONAL, .n_workers = 2});
}

static uint64_t now(struct rig *f)
{
    return ws_device_now_ns(f->device[0]);
}

/* All done, in order of their ends, none before it; energy of all adds up. @n_rounded: each may be
 * off by what rounds off. */
static void check_books(struct rig *f, int device, uint64_t *known_uj)
{
    struct ws_device_telemetry t;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->n_done; i++) {
        const struct ws_op *op = f->order[i];
        assert_true(f->done_at_ns[i] >= op->end_ns);
        assert_true(op->start_ns >= op->ready_ns || op->error || op->preempted);
        assert_true(op->end_ns >= op->start_ns);
        if (op->launch.instance == f->instance[0][device] ||
            op->launch.instance == f->instance[1][device])
            sum += op->energy_uj;
    }
    ws_device_telemetry(f->device[device], &t);
    *known_uj += sum;
    assert_int_equal(t.n_running, 0);
    assert_in_range(t.energy_uj - t.idle_energy_uj, *known_uj, *known_uj + 2);
}

static void test_time_passes_slower(void **state)
{
    struct rig *f = *state;
    uint64_t earlier = ws_clock_ns(), d0 = now(f), h0 = ws_clock_ns(), before = d0;
    while (ws_clock_ns() - h0 < 20000000) {
        uint64_t at = now(f);
        assert_true(at >= before);
        before = at;
        assert_int_equal(ws_device_now_ns(f->device[1]) >= at, 1);
    }
    uint64_t h1 = ws_clock_ns(), d1 = now(f);
    assert_in_range(d1 - d0, (h1 - h0) / 20 * 99 / 100, (ws_clock_ns() - earlier) / 20 * 101 / 100);
}

static void test_done_when_its_end_comes(void **state)
{
    struct rig *f = *state;
    uint64_t t0 = rig_stand(f), known = 0;
    struct ws_op *op = rig_launch(f, 0, 0, 160, rig_work(f));
    rig_run_until(f, t0 + 9 * RIG_BLOCK_NS);
    assert_non_null(op->owner);
    rig_run(f);
    rig_wait_op(f, op);
    assert_int_equal(op->ready_ns, t0);
    assert_int_equal(op->start_ns, op->ready_ns + rig_spec.launch_overhead_ns);
    assert_in_range(op->end_ns - op->start_ns, 10 * RIG_BLOCK_NS, 10 * RIG_BLOCK_NS + 1000);
    /* the clock does not pass an end before it was told */
    assert_int_equal(f->done_at_ns[0], op->end_ns);
    rig_ran_once(f, 160);
    check_books(f, 0, &known);
}

static void test_ready_later(void **state)
{
    struct rig *f = *state;
    uint64_t ready = rig_stand(f) + 700000;
    struct ws_op *op = rig_prepare(f, 0, 0, 16, rig_work(f));
    op->ready_ns = ready;
    ws_device_submit(f->device[0], op);
    rig_run(f);
    rig_wait_op(f, op);
    assert_int_equal(op->start_ns, ready + rig_spec.launch_overhead_ns);
}

static void test_order_of_ends(void **state)
{
    struct rig *f = *state;
    uint64_t known = 0;
    (void)rig_stand(f);
    /* the long one first; the short one beside it, in the other half of the SMs, and another one on
     * the other device */
    struct ws_op *a = rig_prepare(f, 0, 0, 200, rig_work(f)), *b, *c;
    a->launch.sms = (struct ws_sm_set){.n = 2, .bits = {3}};
    ws_device_submit(f->device[0], a);
    b = rig_prepare(f, 1, 0, 16, rig_work(f));
    b->launch.sms = (struct ws_sm_set){.n = 2, .bits = {12}};
    ws_device_submit(f->device[0], b);
    c = rig_launch(f, 1, 1, 40, rig_work(f));
    rig_run(f);
    rig_wait(f, 3);
    assert_ptr_equal(f->order[0], b);
    assert_ptr_equal(f->order[1], c);
    assert_ptr_equal(f->order[2], a);
    check_books(f, 0, &known);
    known = 0;
    check_books(f, 1, &known);
}

static void test_ties_in_order_of_submission(void **state)
{
    struct rig *f = *state;
    uint64_t at = rig_stand(f) + 1000000;
    for (int i = 0; i < 20; i++) {
        struct ws_op *op = rig_prepare(f, i & 1, i & 1, 1, rig_work(f));
        op->kind = WS_OPK_FILL; /* nothing to fill: ends where it begins */
        memset(&op->fill, 0, sizeof(op->fill));
        op->fill.value_bytes = 4;
        op->ready_ns = at;
        ws_device_submit(f->device[i & 1], op);
    }
    rig_run(f);
    rig_wait(f, 20);
    for (int i = 0; i < 20; i++) {
        assert_ptr_equal(f->order[i], &f->op[i]);
        assert_int_equal(f->op[i].end_ns, at);
    }
}

/* The host takes its time over a kernel; the device does not see that. */
static void test_slow_host_does_not_show(void **state)
{
    struct rig *f = *state;
    struct double_params p = rig_work(f);
    p.n_insns = 2000;
    struct ws_op *waits = rig_launch(
        f, 0, 0, 8, (struct double_params){.kind = DOUBLE_GATE, .n_insns = 100, .flag = &f->flag});
    uint64_t t0 = now(f);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(now(f), t0);
    struct ws_op *op = rig_launch(f, 1, 0, 4, p);
    assert_int_equal(op->ready_ns, t0);
    f->flag = 8;
    rig_wait(f, 2);
    assert_int_equal(waits->ready_ns, t0);
    struct ws_device_telemetry t;
    ws_device_telemetry(f->device[0], &t);
    assert_true(t.stalled_host_ns >= 50000000);
    assert_int_equal(t.n_overruns, 0);
}

static void test_endless_stops_no_time(void **state)
{
    struct rig *f = *state;
    struct ws_device_telemetry t;
    uint64_t t0 = now(f), h0 = ws_clock_ns(), known = 0;
    rig_launch(f, 0, 0, 4, (struct double_params){.kind = DOUBLE_ENDLESS});
    rig_sleep_until(f, t0 + 1000000);
    assert_true(ws_clock_ns() - h0 >= 2000000000);
    struct ws_op *op = rig_launch(f, 1, 1, 16, rig_work(f)); /* the others' time goes on */
    rig_wait_op(f, op);
    ws_device_cancel(f->device[0], f->space[0]);
    rig_wait(f, 2);
    assert_int_equal(f->op[0].error, WS_DEV_E_CANCELLED);
    assert_true(f->op[0].end_ns >= t0 + 1000000);
    assert_true(f->op[0].energy_uj > 0);
    ws_device_telemetry(f->device[0], &t);
    check_books(f, 0, &known);
}

/* A user who begins the next endless kernel before the clock has forgotten the last one does not
 * stop the time of others for ever. */
static void test_one_user_stops_no_time(void **state)
{
    enum { MOST = 20, EACH_US = 500000 };
    struct rig *f = *state;
    struct ws_payer *payer[2] = {ws_payer_new(), ws_payer_new()};
    for (int i = 0; i < 2; i++)
        ws_space_set_payer(f->space[i], payer[i]);
    struct ws_op *op = NULL;
    for (int i = 0; i < MOST && (!op || !rig_is_done(f, op)); i++) {
        rig_launch(f, 0, 0, 4, (struct double_params){.kind = DOUBLE_ENDLESS});
        if (!op)
            op = rig_launch(f, 1, 1, 16, rig_work(f));
        usleep(EACH_US);
    }
    bool done = rig_is_done(f, op);
    ws_device_cancel(f->device[0], f->space[0]);
    rig_wait(f, f->n_ops);
    for (int i = 0; i < 2; i++)
        ws_payer_unref(payer[i]);
    assert_true(done);
    assert_int_equal(op->error, 0);
}

static void test_standing(void **state)
{
    struct ws_standing s = {0};
    int a = 0, b = 0, many[WS_STANDING_USERS] = {0};
    uint32_t user = 0, i = ws_standing_enter(&s, &a), k;
    const uint64_t most = WS_STANDING_MOST_NS;
    (void)state;
    ws_standing_count(&s, 1000, true);
    s.user[i].n_stalls++;
    ws_standing_count(&s, 1000 + most, true); /* alone */
    assert_int_equal(ws_standing_over(&s, &user), UINT64_MAX);
    assert_int_equal(s.user[i].used_ns, 0);
    k = ws_standing_enter(&s, &b);
    assert_int_not_equal(i, k);
    assert_int_equal(ws_standing_enter(&s, &a), i);
    assert_int_equal(ws_standing_over(&s, &user), 1000 + 2 * most);
    assert_int_equal(user, i);
    ws_standing_count(&s, 1000 + 3 * most, true);
    assert_int_equal(s.user[i].used_ns, most);
    assert_int_equal(ws_standing_over(&s, &user), s.counted_ns);
    ws_standing_count(&s, s.counted_ns + 10, false);
    assert_int_equal(s.user[i].used_ns, most - 10 * WS_STANDING_GIVEN_BACK);
    ws_standing_count(&s, s.counted_ns + most, false);
    assert_int_equal(s.user[i].used_ns + s.user[k].used_ns, 0);
    s.user[i].n_stalls--;
    ws_standing_leave(&s, i);
    ws_standing_leave(&s, i);
    for (uint32_t n = 0; n < WS_STANDING_USERS; n++) /* nobody, b, and all but two */
        many[n] = (int)ws_standing_enter(&s, &many[n]);
    assert_int_equal(many[0], i);
    assert_int_equal(many[WS_STANDING_USERS - 3], WS_STANDING_USERS - 1);
    assert_int_equal(many[WS_STANDING_USERS - 2] + many[WS_STANDING_USERS - 1], 0);
    assert_int_equal(ws_standing_enter(&s, NULL), 0);
}

/* Who only waits for a value stops the time for 50 ms, unless somebody else is at work. */
static void test_polling_stops_little_time(void **state)
{
    struct rig *f = *state;
    struct double_params poll = {
        .kind = DOUBLE_POLL, .n_insns = 100, .flag = &f->flag, .ran = f->ran};
    struct ws_device_telemetry t;
    uint64_t t0 = rig_stand(f), h0 = ws_clock_ns();
    struct ws_op *busy =
        rig_launch(f, 1, 1, 8, (struct double_params){.kind = DOUBLE_SLEEP, .n_insns = 200000});
    struct ws_op *op = rig_launch(f, 0, 0, 4, poll);
    rig_run(f);
    rig_wait_op(f, busy); /* priced as if nothing had waited beside it */
    assert_int_equal(busy->ready_ns, op->ready_ns);
    assert_true(ws_clock_ns() - h0 >= 200000000);
    ws_device_telemetry(f->device[1], &t);
    assert_int_equal(t.n_overruns, 0);
    rig_sleep_until(f, t0 + 1000000);
    ws_device_telemetry(f->device[0], &t);
    assert_true(t.stalled_host_ns >= 250000000);
    f->flag = 1;
    rig_wait_op(f, op);
    assert_int_equal(op->error, 0);
    assert_int_equal(op->start_ns, op->ready_ns + rig_spec.launch_overhead_ns);
    assert_true(op->end_ns >= t0 + 1000000); /* when what it waited for was there */
}

/* One that polls and comes to its end by itself, before the clock has minded, might as well have
 * read: all of it counts. */
static void test_polling_counts_unless_it_waited(void **state)
{
    struct rig *f = *state;
    struct double_params poll = {
        .kind = DOUBLE_POLL, .n_insns = 100, .flag = &f->flag, .ran = f->ran};
    f->flag = 1;
    struct ws_op *op = rig_launch(f, 0, 0, 1, poll);
    rig_wait_op(f, op);
    uint64_t alone = op->counts.n_warp_insns;
    bool counted = false;
    for (int tries = 0; !counted && tries < 100;
         tries++) { /* on a host that is slow to set the flag it has waited */
        f->flag = 0;
        op = rig_launch(f, 0, 0, 1, poll);
        usleep(3000);
        f->flag = 1;
        rig_wait_op(f, op);
        counted = op->counts.n_warp_insns > 100 * alone;
    }
    assert_true(counted);
    f->flag = 0;
    op = rig_launch(f, 0, 0, 1, poll);
    rig_sleep_until(f, now(f) + 1000000); /* comes when the clock goes on */
    f->flag = 1;
    rig_wait_op(f, op);
    assert_in_range(op->counts.n_warp_insns, alone, 10 * alone); /* the first look counts */
}

static void test_overrun_is_counted(void **state)
{
    struct rig *f = *state;
    uint64_t known = 0;
    struct ws_op *op = rig_launch(
        f, 0, 0, 8, (struct double_params){.kind = DOUBLE_SLEEP, .n_insns = 700000}); /* 2.8 s */
    rig_wait_op(f, op);
    assert_int_equal(op->start_ns, op->ready_ns + rig_spec.launch_overhead_ns);
    assert_true(op->end_ns < op->start_ns + 10000);
    assert_true(f->done_at_ns[0] >=
                op->end_ns + 10000000); /* 0.8 s / 20; later where all is late */
    struct ws_device_telemetry t;
    ws_device_telemetry(f->device[0], &t);
    assert_int_equal(t.n_overruns, 1);
    assert_true(t.stalled_host_ns >= 2000000000);
    check_books(f, 0, &known);
}

static void test_cancelled_at_once(void **state)
{
    struct rig *f = *state;
    uint64_t known = 0, at = rig_stand(f);
    struct ws_op *a = rig_launch(f, 0, 0, 1600, rig_work(f)),
                 *b = rig_launch(f, 0, 0, 160, rig_work(f)),
                 *other = rig_launch(f, 1, 1, 32, rig_work(f));
    rig_run_until(f, at += 300000);
    ws_device_cancel(f->device[0], f->space[0]);
    rig_run(f);
    rig_wait_op(f, a);
    rig_wait_op(f, b);
    assert_int_equal(a->error, WS_DEV_E_CANCELLED);
    assert_int_equal(b->error, WS_DEV_E_CANCELLED);
    assert_int_equal(a->end_ns, at);
    assert_int_equal(b->end_ns, at);
    assert_true(a->energy_uj > 0);
    assert_int_equal(b->energy_uj, 0); /* it stood behind the other */
    rig_wait_op(f, other);
    assert_int_equal(other->error, WS_DEV_OK);
    struct ws_op *next = rig_launch(f, 1, 0, 16, rig_work(f)); /* finds an empty device */
    rig_wait_op(f, next);
    assert_int_equal(next->start_ns, next->ready_ns + rig_spec.launch_overhead_ns);
    check_books(f, 0, &known);
}

/* A fill of nothing, which has been executed at once, and waits for a second of device time. */
static struct ws_op *prepare_waiting(struct rig *f)
{
    struct ws_op *op = rig_prepare(f, 0, 0, 1, rig_work(f));
    op->kind = WS_OPK_FILL;
    memset(&op->fill, 0, sizeof(op->fill));
    op->fill.value_bytes = 4;
    op->ready_ns = now(f) + WS_NS_PER_S;
    return op;
}

/* What waits for its time is cancelled at once, although somebody's kernel stops the clock. */
static void test_cancelled_while_the_clock_stands(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = prepare_waiting(f);
    ws_device_submit(f->device[0], op);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the clock's thread sleeps by now */
    (void)rig_launch(f, 1, 1, 1, (struct double_params){.kind = DOUBLE_ENDLESS});
    uint64_t before = ws_clock_ns();
    ws_device_cancel(f->device[0], f->space[0]);
    rig_wait_op(f, op);
    assert_in_range(ws_clock_ns() - before, 0, WS_VCLOCK_STALL_NS / 2);
    assert_int_equal(op->error, WS_DEV_E_CANCELLED);
    ws_device_cancel(f->device[1], f->space[1]);
    rig_wait(f, 2);
}

/* What waited for its time is told that it is cancelled, and its device is closed at once: by the
 * second cancellation there is nothing left to cancel. */
static void test_closed_while_cancelling(void **state)
{
    struct rig *f = *state;
    struct ws_device_options o = {.clock = WS_CLOCK_SCALED, .scale = 20, .n_workers = 2};
    for (int i = 0; i < 200; i++) {
        struct ws_device *d;
        assert_int_equal(ws_device_open_soft(&d, &rig_spec, 2, &o, NULL), 0);
        f->n_ops = f->n_done = 0;
        struct ws_op *op = prepare_waiting(f);
        ws_device_submit(d, op);
        ws_device_cancel(d, f->space[0]);
        ws_device_cancel(d, f->space[0]);
        rig_wait_op(f, op);
        ws_device_close(d);
        assert_int_equal(op->error, WS_DEV_E_CANCELLED);
    }
}

static void test_fault_is_done_at_its_priced_end(void **state)
{
    struct rig *f = *state;
    struct ws_op *op =
        rig_launch(f, 0, 0, 40, (struct double_params){.kind = DOUBLE_FAULT, .n_insns = 3});
    rig_wait_op(f, op);
    assert_int_equal(op->error, WS_DEV_E_ILLEGAL_ADDRESS);
    assert_true(op->end_ns > op->start_ns);
    assert_true(f->done_at_ns[0] >= op->end_ns);
    struct ws_op *bad = rig_prepare(f, 0, 0, 40, rig_work(f));
    bad->launch.grid[1] = 0;
    ws_device_submit(f->device[0], bad); /* never began: at once */
    assert_null(bad->owner);
    assert_int_equal(bad->error, WS_DEV_E_INVALID_CONFIGURATION);
}

static void test_idle_energy_and_power(void **state)
{
    struct rig *f = *state;
    struct ws_device_telemetry a, b;
    ws_device_telemetry(f->device[0], &a);
    rig_sleep_until(f, a.now_ns + 500000);
    ws_device_telemetry(f->device[0], &b);
    uint64_t want = (b.now_ns - a.now_ns) * rig_spec.static_mw / 1000000;
    assert_in_range(b.energy_uj - a.energy_uj, want - 1, want + 1);
    assert_int_equal(b.energy_uj, b.idle_energy_uj);
    assert_int_equal(b.power_mw, rig_spec.static_mw);
    assert_int_equal(ws_device_set_power(f->device[0], false), 0);
    assert_int_equal(ws_device_set_power(f->device[0], false), 0);
    ws_device_telemetry(f->device[0], &a);
    assert_int_equal(a.power_mw, 0);
    rig_sleep_until(f, a.now_ns + 500000);
    ws_device_telemetry(f->device[0], &b);
    assert_int_equal(b.energy_uj, a.energy_uj);
    /* work turns it on again; busy: everything by Eq. 2 */
    uint64_t busy_mw = rig_spec.static_mw + 4 * rig_spec.dynamic_mw_per_sm, at = rig_stand(f);
    struct ws_op *op = rig_launch(f, 0, 0, 160, rig_work(f));
    assert_int_equal(ws_device_set_power(f->device[0], false), -EBUSY);
    rig_run_until(f, at + 100000);
    ws_device_telemetry(f->device[0], &a);
    rig_run(f);
    rig_wait_op(f, op);
    assert_int_equal(a.power_mw, busy_mw);
    uint64_t busy_ns = op->end_ns - op->start_ns;
    want = busy_ns * busy_mw / 1000000;
    assert_in_range(op->energy_uj, want - 1, want + 1);
    assert_int_equal(op->alone_uj, op->energy_uj);
    ws_device_telemetry(f->device[0], &b);
    assert_int_equal(b.power_mw, rig_spec.static_mw);
    assert_true(b.busy_ns == busy_ns);
    assert_true(b.sm_busy_ns == 4 * b.busy_ns);
}

static void test_waking_takes_time(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = rig_launch(f, 0, 0, 16, rig_work(f));
    rig_wait_op(f, op);
    assert_int_equal(op->start_ns, op->ready_ns + rig_spec.launch_overhead_ns);
    uint64_t submitted = now(f);
    assert_int_equal(ws_device_set_power(f->device[0], false), 0);
    op = rig_launch(f, 0, 0, 16, rig_work(f));
    rig_wait_op(f, op);
    assert_true(op->start_ns >= submitted + 250000 + rig_spec.launch_overhead_ns);
}

static void test_clocks(void **state)
{
    struct rig *f = *state;
    struct ws_device_clocks got, wrong[] = {{1, 0.29, 1}, {1, 1, 1.51}, {0.2, 1, 1}, {0, 1, 1}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(wrong); i++)
        assert_int_equal(ws_device_set_clocks(f->device[0], &wrong[i], &got), -EINVAL);
    struct ws_op *op = rig_launch(f, 0, 0, 160, rig_work(f));
    rig_wait_op(f, op);
    uint64_t ns = op->end_ns - op->start_ns, uj = op->energy_uj;
    struct ws_device_clocks half = {.volt = 0.8, .core = 0.5, .memory = 1};
    assert_int_equal(ws_device_set_clocks(f->device[0], &half, &got), 0);
    assert_true(got.volt == 0.8 && got.core == 0.5 && got.memory == 1);
    op = rig_launch(f, 0, 0, 160, rig_work(f));
    rig_wait_op(f, op);
    assert_in_range(op->end_ns - op->start_ns, 2 * ns - 2, 2 * ns + 2);
    double want = 2.0 * (double)ns / 1e6 * (8000 + 4 * 1300 * 0.8 * 0.8 * 0.5);
    assert_in_range(op->energy_uj, (uint64_t)(want * 0.999), (uint64_t)(want * 1.001));
    assert_true(op->energy_uj > uj);
    /* memory: a kernel of sectors alone */
    struct double_params p = {.kind = DOUBLE_WORK, .n_insns = 4, .n_sectors = 1 << 18};
    struct ws_device_clocks all = {1, 1, 1}, slow = {1, 1, 0.5};
    assert_int_equal(ws_device_set_clocks(f->device[0], &all, &got), 0);
    op = rig_launch(f, 0, 0, 64, p);
    rig_wait_op(f, op);
    ns = op->end_ns - op->start_ns;
    assert_int_equal(ws_device_set_clocks(f->device[0], &slow, &got), 0);
    op = rig_launch(f, 0, 0, 64, p);
    rig_wait_op(f, op);
    assert_true(op->end_ns - op->start_ns >= ns);
}

/* ---- alarms ---- */

struct bell {
    struct ws_alarm alarm;
    struct rig *rig;
    uint64_t rang_ns;
    uint32_t number;
};
static struct bell bells[100];
static _Atomic uint32_t n_rang;

static void on_ring(struct ws_alarm *a)
{
    struct bell *b = WS_CONTAINER_OF(a, struct bell, alarm);
    b->rang_ns = ws_device_now_ns(b->rig->device[0]);
    b->number = n_rang;
    n_rang++; /* seen by the test: last */
}

static void test_alarms(void **state)
{
    struct rig *f = *state;
    uint64_t seed = 3, t0 = rig_stand(f) + 100000;
    n_rang = 0;
    for (int i = 0; i < 100; i++) {
        bells[i] = (struct bell){
            .alarm = {.at_ns = t0 + rig_random(&seed) % 50 * 20000, .ring = on_ring}, .rig = f};
        assert_int_equal(ws_device_alarm(f->device[i & 1], &bells[i].alarm), 0);
    }
    rig_run(f);
    while (n_rang < 100)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(bells[i].rang_ns, bells[i].alarm.at_ns);
        for (int j = 0; j < i; j++)
            assert_true((bells[j].alarm.at_ns <= bells[i].alarm.at_ns) ==
                        (bells[j].number < bells[i].number));
    }
    bells[0] = (struct bell){.alarm = {.at_ns = t0, .ring = on_ring}, .rig = f};
    assert_int_equal(ws_device_alarm(f->device[0], &bells[0].alarm), 0);
    assert_int_equal(n_rang, 101); /* its time was past: at once */
}

static void test_closing_rings(void **state)
{
    struct ws_device_options o = {.clock = WS_CLOCK_SCALED, .n_workers = 1};
    struct rig *f = *state;
    struct ws_device *d;
    assert_int_equal(ws_device_open_soft(&d, &rig_spec, 2, &o, NULL), 0);
    n_rang = 0;
    for (int i = 0; i < 10; i++) {
        bells[i] = (struct bell){.alarm = {.at_ns = UINT64_MAX - i, .ring = on_ring}, .rig = f};
        assert_int_equal(ws_device_alarm(d, &bells[i].alarm), 0);
    }
    assert_int_equal(n_rang, 0);
    ws_device_close(d);
    assert_int_equal(n_rang, 10);
}

static void test_alarm_moves_the_functional_clock(void **state)
{
    struct rig *f = *state;
    n_rang = 0;
    bells[0] = (struct bell){.alarm = {.at_ns = 12345678, .ring = on_ring}, .rig = f};
    assert_int_equal(ws_device_alarm(f->device[0], &bells[0].alarm), 0);
    assert_int_equal(n_rang, 1);
    assert_int_equal(bells[0].rang_ns, 12345678);
    assert_int_equal(ws_device_set_power(f->device[0], false), 0);
    struct ws_device_clocks half = {1, 0.5, 1}, got;
    struct ws_op *op = rig_launch(f, 0, 0, 160, rig_work(f));
    rig_wait_op(f, op);
    uint64_t ns = op->end_ns - op->start_ns;
    assert_int_equal(ws_device_set_clocks(f->device[0], &half, &got), 0);
    op = rig_launch(f, 0, 0, 160, rig_work(f));
    rig_wait_op(f, op);
    assert_in_range(op->end_ns - op->start_ns, 2 * ns - 2, 2 * ns + 2);
}

static void test_wrong_scale(void **state)
{
    double wrong[] = {0.5, -1, 100001, __builtin_nan("")};
    for (size_t i = 0; i < WS_ARRAY_SIZE(wrong); i++) {
        struct ws_device_options o = {.clock = WS_CLOCK_SCALED, .scale = wrong[i]};
        struct ws_device *d;
        struct ws_diags diags = {0};
        assert_int_equal(ws_device_open_soft(&d, &rig_spec, 0, &o, &diags), -EINVAL);
        assert_int_equal(diags.n, 1);
        ws_diags_deinit(&diags);
    }
}

/* ---- at random ---- */

/* Kernels of two clients on two devices, preempted, resumed on either, cancelled; alarms in
 * between. */
static void test_random(void **state)
{
    struct rig *f = *state;
    uint64_t seed = 11, known[2] = {0};
    for (int round = 0; round < 15; round++) {
        f->n_ops = f->n_done = 0;
        n_rang = 0;
        uint32_t n_bells = 0, n_cancels = 0;
        uint8_t on[RIG_OPS];
        for (int i = 0; i < 60; i++) {
            uint32_t r = rig_random(&seed), client = r & 1, device = r >> 1 & 1;
            switch (r >> 2 & 15) {
            case 0:
                if (r >> 8 & 3)
                    break;
                ws_device_cancel(f->device[device], f->space[client]);
                n_cancels++;
                break;
            case 1:
            case 2:
                bells[n_bells] = (struct bell){
                    .alarm = {.at_ns = now(f) + r % 300000, .ring = on_ring}, .rig = f};
                assert_int_equal(ws_device_alarm(f->device[device], &bells[n_bells++].alarm), 0);
                break;
            case 3:
            case 4:
            case 5:
            case 6:
                if (f->n_ops) {
                    uint32_t k = r % f->n_ops;
                    assert_int_equal(ws_device_preempt(f->device[on[k]], &f->op[k]), 0);
                }
                break;
            case 7:
            case 8:
                nanosleep(&(struct timespec){.tv_nsec = r % 3000000}, NULL);
                break;
            case 9:
            case 10:
            case 11: /* resume one that was preempted */
                for (uint32_t k = 0; k < f->n_ops; k++) {
                    pthread_mutex_lock(&f->lock);
                    bool done = !f->op[k].owner;
                    pthread_mutex_unlock(&f->lock);
                    if (!done || !f->op[k].preempted || !f->op[k].launch.progress)
                        continue;
                    int c = f->op[k].space == f->space[1];
                    on[f->n_ops] = (uint8_t)device;
                    rig_resume(f, &f->op[k], c, (int)device);
                    break;
                }
                break;
            default:
                on[f->n_ops] = (uint8_t)device;
                rig_launch(f, (int)client, (int)device, 1 + r % 200,
                           (struct double_params){.kind = DOUBLE_WORK, .n_insns = r % 30000});
            }
        }
        rig_wait(f, f->n_ops);
        for (int d = 0; d < 2; d++)
            check_books(f, d, &known[d]);
        for (uint32_t k = 0; k < f->n_ops; k++) {
            assert_true(f->op[k].error == WS_DEV_OK ||
                        (n_cancels && f->op[k].error == WS_DEV_E_CANCELLED));
            if (f->op[k].launch.progress)
                ws_progress_free(f->op[k].launch.progress);
        }
        while (n_rang < n_bells)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* More reservations than the timeline usually keeps: none may be forgotten before it is over. */
static void test_many_in_flight(void **state)
{
    struct rig *f = *state;
    uint64_t known = 0;
    struct double_params p = rig_work(f);
    p.n_insns = 2000;
    for (uint32_t i = 0; i < 500; i++)
        rig_launch(f, (int)(i & 1), 0, 16, p);
    rig_wait(f, 500);
    for (uint32_t i = 1; i < 500; i++)
        assert_true(f->order[i]->end_ns >= f->order[i - 1]->end_ns);
    check_books(f, 0, &known);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_time_passes_slower, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_done_when_its_end_comes, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_ready_later, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_order_of_ends, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_ties_in_order_of_submission, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_slow_host_does_not_show, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_endless_stops_no_time, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_one_user_stops_no_time, setup, rig_close),
        cmocka_unit_test(test_standing),
        cmocka_unit_test_setup_teardown(test_polling_stops_little_time, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_polling_counts_unless_it_waited, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_overrun_is_counted, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_cancelled_at_once, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_cancelled_while_the_clock_stands, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_closed_while_cancelling, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_fault_is_done_at_its_priced_end, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_idle_energy_and_power, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_waking_takes_time, setup_wake, rig_close),
        cmocka_unit_test_setup_teardown(test_clocks, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_alarms, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_closing_rings, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_alarm_moves_the_functional_clock, setup_functional,
                                        rig_close),
        cmocka_unit_test(test_wrong_scale),
        cmocka_unit_test_setup_teardown(test_random, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_many_in_flight, setup, rig_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
