// SPDX-License-Identifier: Apache-2.0
/* backend: gated clients, beside others whose work ends when the test says so. What is believed
 * of them, when they may go, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/scheduling/gated.h"
#include "backend/scheduling/dispatch_private.h"
#include "tests/lib/wsserver.h"

#define PTX                                                                                        \
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n ret;\n}"
enum { LEGACY = 1, MODULE = 1 };

static struct wss *start(uint32_t n_devices, const char *policy)
{
    struct wss *w = wss_new_with_policy(n_devices, policy, NULL);
    w->config.gate_lease_ms = 3600000;
    return w;
}

static struct ws_client *client(struct wss *w, unsigned peer)
{
    return ws_client_find(w->server, &w->peers[peer].peer);
}

static void join(struct wss *w, unsigned peer, int priority, bool gated)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"/bin/x";
    h.gate = gated;
    m.hello = &h;
    wss_message(w, peer, &m);
    client(w, peer)->work.priority = priority;
    snprintf(client(w, peer)->work.name, WS_TASK_NAME_BYTES, "task%u", peer);
    if (!gated)
        assert_int_equal(wss_error(w, peer, wss_load(w, peer, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
}

static void begin(struct wss *w, unsigned peer, uint32_t device, uint64_t serial)
{
    Ws__GateBegin b = WS__GATE_BEGIN__INIT;
    b.device = device;
    b.serial = serial;
    wss_do(w, peer, WS__COMMAND__C_GATE_BEGIN, &b);
}

static void finish(struct wss *w, unsigned peer, uint32_t device, uint64_t serial, uint64_t ns)
{
    Ws__GateEnd e = WS__GATE_END__INIT;
    e.device = device;
    e.serial = serial;
    e.n_launches = 3;
    e.device_ns = ns;
    e.measured = ns > 0;
    wss_do(w, peer, WS__COMMAND__C_GATE_END, &e);
}

static bool told(struct wss *w, unsigned peer, uint64_t id)
{
    for (unsigned i = 0; i < w->peers[peer].n_gates; i++)
        if (w->peers[peer].gates[i] == id)
            return true;
    return false;
}

static bool may_go(struct wss *w, unsigned peer, uint64_t serial)
{
    return told(w, peer, serial * 2);
}

static void launch(struct wss *w, unsigned peer)
{
    uint64_t mark = peer;
    wss_launch(w, peer, LEGACY, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS, &mark, sizeof(mark));
}

/* How many launches the device has; ends the first. */
static unsigned n_launched(struct wss *w, unsigned d)
{
    return w->dev[d].n_ops;
}

static void end_launch(struct wss *w)
{
    assert_true(w->dev[0].n_ops > 0);
    uint64_t from = WS_MAX(w->dev[0].ops[0]->ready_ns, w->dev[0].now_ns);
    fakedev_complete(&w->dev[0], 0, from, from + 1000, WS_DEV_OK);
    wss_turn(w);
}

static void test_one_at_a_time(void **state)
{
    static const char *const policies[] = {"fifo", "rr", "gcaps", "consolidate"};
    (void)state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(policies); k++) {
        struct wss *w = start(1, policies[k]);
        for (unsigned p = 0; p < 3; p++)
            join(w, p, 0, true);
        for (unsigned p = 0; p < 3; p++)
            begin(w, p, 0, 10 + p);
        for (unsigned n = 0; n < 3; n++) { /* each in turn, whatever the order */
            unsigned holder = 3, n_may = 0;
            for (unsigned p = 0; p < 3; p++)
                if (may_go(w, p, 10 + p) && client(w, p)->jobs.n_gated) {
                    holder = p;
                    n_may++;
                }
            assert_int_equal(n_may, 1);
            finish(w, holder, 0, 10 + holder, 1000);
            assert_int_equal(client(w, holder)->stats.n_kernels, 3);
            assert_int_equal(client(w, holder)->stats.n_jobs, 1);
        }
        wss_free(w);
    }
}

static void test_priority_goes_first(void **state)
{
    (void)state;
    struct wss *w = start(1, "gcaps");
    for (unsigned p = 0; p < 3; p++)
        join(w, p, (int)p, true);
    begin(w, 0, 0, 10);
    begin(w, 1, 0, 11);
    begin(w, 2, 0, 12);
    assert_true(may_go(w, 0, 10) && !may_go(w, 1, 11) && !may_go(w, 2, 12));
    finish(w, 0, 0, 10, 1000);
    assert_true(may_go(w, 2, 12) && !may_go(w, 1, 11));
    finish(w, 2, 0, 12, 1000);
    assert_true(may_go(w, 1, 11));
    finish(w, 1, 0, 11, 1000);
    wss_free(w);
}

/* A launch that is under way ends first, none begins while the gated one has the GPU; neither
 * starves. */
static void test_with_others(void **state)
{
    static const char *const policies[] = {"fifo", "rr", "gcaps", "consolidate"};
    (void)state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(policies); k++) {
        struct wss *w = start(1, policies[k]);
        join(w, 0, 0, false);
        join(w, 1, 0, true);
        join(w, 2, 0, false);
        launch(w, 0);
        assert_int_equal(n_launched(w, 0), 1);
        begin(w, 1, 0, 10);
        assert_false(may_go(w, 1, 10));
        launch(w, 2);
        end_launch(w);
        wss_sync_stream(w, 0, LEGACY);
        for (int i = 0; i < 4 && !may_go(w, 1, 10); i++) { /* peer 2 may have come first */
            end_launch(w);
            wss_sync_stream(w, 2, LEGACY);
        }
        assert_true(may_go(w, 1, 10));
        unsigned before = n_launched(w, 0);
        assert_int_equal(before, 0);
        launch(w, 0);
        assert_int_equal(n_launched(w, 0), 0);
        finish(w, 1, 0, 10, 1000);
        for (int i = 0; i < 4 && n_launched(w, 0); i++) {
            end_launch(w);
            wss_sync_stream(w, 0, LEGACY);
            wss_sync_stream(w, 2, LEGACY);
        }
        assert_true(client(w, 0)->stats.n_kernels == 2 && client(w, 2)->stats.n_kernels == 1);
        wss_free(w);
    }
}

static void test_a_killed_holder_lets_go(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo");
    join(w, 0, 0, true);
    join(w, 1, 0, true);
    join(w, 2, 0, true);
    begin(w, 0, 0, 10);
    begin(w, 1, 0, 11);
    begin(w, 2, 0, 12);
    ws_client_drop(client(w, 1), WS__ERROR__OK, "test"); /* one that waits */
    ws_client_drop(client(w, 0), WS__ERROR__OK, "test");
    wss_turn(w);
    assert_true(may_go(w, 2, 12));
    assert_int_equal(w->server->gated.n_leases, 1);
    finish(w, 2, 0, 12, 0);
    assert_int_equal(client(w, 2)->stats.n_unmeasured, 1);
    assert_int_equal(w->server->gated.n_leases, 0);
    wss_free(w);
}

static void test_leases_end(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo");
    join(w, 0, 0, true);
    join(w, 1, 0, true);
    begin(w, 0, 0, 10);
    begin(w, 1, 0, 11);
    assert_false(may_go(w, 1, 11));
    client(w, 0)->contexts[0].gated_job.lease_end_ns = 1;
    wss_turn(w);
    assert_true(told(w, 0, 10 * 2 + 1) && may_go(w, 1, 11));
    assert_int_equal(client(w, 0)->stats.n_over_lease, 1);
    assert_int_equal(ws_gated_state(client(w, 0)), WS__CLIENT_STATUS__GATE__GATE_OVER_LEASE);
    assert_int_equal(ws_gated_state(client(w, 1)), WS__CLIENT_STATUS__GATE__GATE_HOLDS);
    finish(w, 0, 0, 10, 1000); /* counted, and disturbs nobody */
    assert_int_equal(client(w, 0)->stats.n_kernels, 3);
    assert_int_equal(ws_gated_state(client(w, 1)), WS__CLIENT_STATUS__GATE__GATE_HOLDS);
    begin(w, 0, 0, 12);
    assert_false(may_go(w, 0, 12));
    finish(w, 1, 0, 11, 1000);
    assert_true(may_go(w, 0, 12));
    finish(w, 0, 0, 12, 1000);
    wss_free(w);
}

static void test_policies_come_and_go(void **state)
{
    char error[256];
    (void)state;
    struct wss *w = start(1, "none");
    join(w, 0, 0, true);
    join(w, 1, 0, true);
    begin(w, 0, 0, 10);
    assert_true(may_go(w, 0, 10)); /* nothing to decide */
    finish(w, 0, 0, 10, 1000);
    assert_int_equal(ws_dispatch_set_policy(w->server, "fifo", NULL, error, sizeof(error)), 0);
    wss_turn(w);
    assert_true(told(w, 0, WS_GATE_POLICY_ON) && told(w, 1, WS_GATE_POLICY_ON));
    begin(w, 0, 0, 11);
    begin(w, 1, 0, 12);
    assert_true(may_go(w, 0, 11) && !may_go(w, 1, 12));
    assert_int_equal(ws_dispatch_set_policy(w->server, "none", NULL, error, sizeof(error)), 0);
    wss_turn(w);
    assert_true(may_go(w, 1, 12) && told(w, 0, WS_GATE_POLICY_OFF));
    finish(w, 0, 0, 11, 1000);
    finish(w, 1, 0, 12, 1000);
    wss_free(w);
}

static void test_each_gpu_by_itself(void **state)
{
    (void)state;
    struct wss *w = start(2, "fifo");
    join(w, 0, 0, true);
    join(w, 1, 0, true);
    struct ws_client *a = client(w, 0), *b = client(w, 1);
    uint32_t a0 = a->contexts[0].gpu->device->index, b0 = b->contexts[0].gpu->device->index;
    begin(w, 0, 0, 10);
    begin(w, 0, 1, 11);
    assert_true(may_go(w, 0, 10) && may_go(w, 0, 11));
    begin(w, 1, 0, 12);
    assert_false(may_go(w, 1, 12));
    finish(w, 0, a0 == b0 ? 0 : 1, a0 == b0 ? 10 : 11, 1000);
    assert_true(may_go(w, 1, 12)); /* on its own GPU, whatever the policy said */
    finish(w, 0, a0 == b0 ? 1 : 0, a0 == b0 ? 11 : 10, 1000);
    finish(w, 1, 0, 12, 1000);
    wss_free(w);
}

/* What makes no sense is an error of the client's; it is let go all the same, and others are not
 * disturbed. */
static void test_nonsense(void **state)
{
    (void)state;
    struct wss *w = start(1, "fifo");
    join(w, 0, 0, true);
    join(w, 1, 0, false);
    join(w, 2, 0, false);
    join(w, 3, 0, true);
    begin(w, 2, 0, 10); /* not gated */
    assert_true(w->peers[2].dropped && !w->peers[2].n_gates);
    begin(w, 3, 0, 10);
    launch(w, 3); /* gated */
    assert_true(w->peers[3].dropped && !n_launched(w, 0));
    begin(w, 0, 7, 20);
    assert_true(may_go(w, 0, 20));
    begin(w, 0, 0, 0);
    begin(w, 0, 0, WS_GATE_POLICY_OFF);
    begin(w, 0, 0, UINT64_MAX);
    assert_int_equal(w->peers[0].n_gates, 1);
    finish(w, 0, 0, 99, 1000);
    finish(w, 0, 9, 99, 1000);
    assert_int_equal(client(w, 0)->stats.n_kernels, 0);
    begin(w, 0, 0, 21);
    begin(w, 0, 0, 22); /* while one is open */
    assert_true(may_go(w, 0, 21) && may_go(w, 0, 22));
    finish(w, 0, 0, 22, 1000);
    finish(w, 0, 0, 21, UINT64_MAX); /* no more than there was time */
    assert_true(client(w, 0)->stats.device_ns < UINT64_C(3600000000000));
    assert_true(client(w, 0)->stats.energy_unknown); /* the fake device has no meter */
    assert_int_equal(client(w, 0)->jobs.n_open, 0);
    finish(w, 0, 0, 21, 1000);
    launch(w, 1);
    end_launch(w);
    wss_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time),      cmocka_unit_test(test_priority_goes_first),
        cmocka_unit_test(test_with_others),        cmocka_unit_test(test_a_killed_holder_lets_go),
        cmocka_unit_test(test_leases_end),         cmocka_unit_test(test_policies_come_and_go),
        cmocka_unit_test(test_each_gpu_by_itself), cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
