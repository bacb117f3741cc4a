// SPDX-License-Identifier: Apache-2.0
/* backend: energy accounts. Random clients on two GPUs whose counters move as a real device's
 * do: before, with and after the reports of operations, by more or less than these say, with
 * idle energy in between; clients come, work and are cut off at any moment. After each step all
 * accounts together are the counter, to the uJ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "tests/lib/wsserver.h"

static struct ws_task_rule rules[] = {
    {.task = {.name = "light", .weight = 0.3}},
    {.task = {.name = "heavy", .weight = 0.7}},
    {.task = {.name = "tiny", .weight = 0.001}},
    {.task = {.name = "small-only", .weight = 2, .gpu = "small"}},
};

static int setup(void **state)
{
    struct wss *w = wss_new(2);
    w->config.tasks = (struct ws_task_rules){rules, WS_ARRAY_SIZE(rules)};
    for (unsigned i = 0; i < WSS_PEERS; i++)
        w->peers[i].uid = geteuid(); /* whose programs may name their tasks */
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    wss_free(*state);
    return 0;
}

static void hello(struct wss *w, unsigned peer, const char *task)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    w->peers[peer].next_seq = 1;
    w->peers[peer].n_replies = 0;
    w->peers[peer].dropped = false;
    h.version = WS_PROTOCOL_VERSION;
    h.task = (char *)task;
    m.hello = &h;
    wss_message(w, peer, &m);
}

static void goodbye(struct wss *w, unsigned peer)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true;
    wss_message(w, peer, &m);
}

static struct ws_client *client(struct wss *w, unsigned peer)
{
    return ws_client_find(w->server, &w->peers[peer].peer);
}

static uint64_t account(struct wss *w, unsigned peer, uint32_t gpu)
{
    const struct ws_energy_of *e = &client(w, peer)->energy.gpu[gpu];
    return e->busy_uj + e->idle_uj;
}

/* By itself, not by the code under test: what everybody has. */
static uint64_t sum_of_all(struct wss *w, uint32_t g)
{
    const struct ws_gpu_energy *t = &w->server->gpus[g].energy;
    uint64_t sum = t->former_uj + t->system_uj + t->unmatched_uj + t->carry_uj;
    ws_list_for_each (n, &w->server->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        sum += c->energy.gpu[g].busy_uj + c->energy.gpu[g].idle_uj;
    }
    ws_list_for_each (n, &w->server->clients.dying) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        sum += c->energy.gpu[g].busy_uj + c->energy.gpu[g].idle_uj;
    }
    return sum;
}

static void check(struct wss *w)
{
    for (uint32_t g = 0; g < 2; g++)
        assert_int_equal(sum_of_all(w, g), w->dev[g].energy_uj);
}

static void settle(struct wss *w)
{
    ws_energy_settle(w->server);
    check(w);
}

/* Idle energy goes by weight to those who are there, to the uJ in the long run. */
static void test_idle_is_shared_by_weight(void **state)
{
    struct wss *w = *state;
    w->dev[0].energy_uj = w->dev[0].idle_uj = 777; /* nobody there */
    settle(w);
    assert_int_equal(w->server->gpus[0].energy.system_uj, 777);
    hello(w, 0, "light");
    hello(w, 1, "heavy");
    hello(w, 2, "small-only");
    for (int i = 0; i < 1000; i++) { /* a uJ at a time */
        w->dev[0].energy_uj++;
        w->dev[0].idle_uj++;
        w->dev[1].energy_uj += 3;
        w->dev[1].idle_uj += 3;
        settle(w);
    }
    assert_in_range(account(w, 0, 0), 298, 300);
    assert_in_range(account(w, 1, 0), 698, 700);
    assert_int_equal(account(w, 2, 0), 0); /* it may not use that one */
    assert_in_range(account(w, 0, 1), 298, 300);
    assert_in_range(account(w, 2, 1), 1998, 2000);
    assert_true(w->server->gpus[0].energy.carry_uj < 3);
    goodbye(w, 0);
    wss_turn(w);
    assert_in_range(w->server->gpus[0].energy.former_uj, 298,
                    300); /* kept, though nobody's any more */
    w->dev[0].energy_uj += 100;
    w->dev[0].idle_uj += 100;
    settle(w);
    assert_in_range(account(w, 1, 0), 798, 800);
}

static void fill(struct wss *w, unsigned peer, uint64_t va)
{
    wss_fill(w, peer, WS_STREAM_DEFAULT_0, va, 64, 1);
}

/* Device 0 of peers 0 and 1 are different GPUs (placement "spread"); so is everybody's who comes
 * after. */
static void test_busy_goes_to_who_worked(void **state)
{
    struct wss *w = *state;
    w->config.placement = WS_PLACE_FIXED;
    hello(w, 0, "light");
    hello(w, 1, "heavy");
    uint64_t a = wss_alloc(w, 0, 0, 64), b = wss_alloc(w, 1, 0, 64);
    struct fakedev *d = &w->dev[0];
    fill(w, 0, a);
    fill(w, 1, b);
    assert_int_equal(d->n_ops, 2);
    d->energy_uj += 50 + 10; /* the counter runs ahead of the reports */
    d->idle_uj += 10;
    settle(w);
    assert_int_equal(account(w, 0, 0), 3);
    assert_int_equal(account(w, 1, 0), 7);
    client(w, 0)->energy.gpu[0].idle_uj = client(w, 1)->energy.gpu[0].idle_uj = 0;
    w->server->gpus[0].energy.former_uj += 10;
    assert_int_equal(w->server->gpus[0].energy.unmatched_uj, 50);
    d->ops[0]->energy_uj = 100;
    d->ops[1]->energy_uj = 40;
    d->energy_uj += 90;
    fakedev_complete(d, 0, 1000, 2000, WS_DEV_OK);
    wss_turn(w);
    settle(w);
    assert_int_equal(account(w, 0, 0), 100);
    assert_int_equal(w->server->gpus[0].energy.unmatched_uj, 40);
    fakedev_complete(d, 0, 1000, 2000, WS_DEV_OK);
    wss_turn(w);
    settle(w);
    assert_int_equal(account(w, 0, 0), 100);
    assert_int_equal(account(w, 1, 0), 40);
    /* charged more than was counted: in proportion */
    fill(w, 0, a);
    fill(w, 1, b);
    d->ops[0]->energy_uj = 30;
    d->ops[1]->energy_uj = 60;
    d->energy_uj += 30;
    fakedev_complete_all(d);
    wss_turn(w);
    settle(w);
    assert_int_equal(account(w, 0, 0), 110);
    assert_int_equal(account(w, 1, 0), 60);
    /* the claims stand: counters lag behind */
    d->energy_uj += 50;
    settle(w);
    assert_int_equal(account(w, 0, 0) + account(w, 1, 0), 170 + 49); /* rounded down */
    d->energy_uj += 1000;
    settle(w);
    settle(w);
    /* and what nobody claims is nobody's, once nothing runs */
    assert_in_range(account(w, 0, 0), 130 + 296, 130 + 297);
    assert_in_range(account(w, 1, 0), 100 + 693, 100 + 694);
}

/* A client that goes while its work runs keeps what that work takes, which a counter that lags
 * counts later; the counter of a device that was reset begins anew. */
static void test_gone_and_reset(void **state)
{
    struct wss *w = *state;
    struct fakedev *d = &w->dev[0];
    w->config.placement = WS_PLACE_FIXED;
    w->server->gpus[0].device->meter_update_ns = 1000000;
    hello(w, 0, "light");
    hello(w, 1, "heavy");
    fill(w, 0, wss_alloc(w, 0, 0, 64));
    d->ops[0]->energy_uj = 500;
    goodbye(w, 0);
    d->energy_uj += 500;
    settle(w);
    fakedev_complete_all(d);
    wss_turn(w);
    settle(w);
    assert_int_equal(w->server->gpus[0].energy.former_uj, 500);
    assert_int_equal(account(w, 1, 0), 0);
    d->energy_uj = 20;
    ws_energy_settle(w->server);
    assert_int_equal(w->server->gpus[0].energy.counter_uj, 520);
    assert_int_equal(sum_of_all(w, 0), 520);
}

/* A client was charged more than was counted, and goes. Its claim stands where the counter lags;
 * where it does not, the next client gets all that its own work takes. */
static void claim_of_one_gone(struct wss *w, uint64_t meter_update_ns, uint64_t want)
{
    struct fakedev *d = &w->dev[0];
    w->config.placement = WS_PLACE_FIXED;
    w->server->gpus[0].device->meter_update_ns = meter_update_ns;
    hello(w, 0, "light");
    hello(w, 1, "heavy");
    uint64_t b = wss_alloc(w, 1, 0, 64);
    fill(w, 0, wss_alloc(w, 0, 0, 64));
    d->ops[0]->energy_uj = 100;
    d->energy_uj += 50;
    fakedev_complete_all(d);
    wss_turn(w);
    goodbye(w, 0);
    wss_turn(w);
    fill(w, 1, b);
    d->ops[0]->energy_uj = 50;
    d->energy_uj += 50;
    fakedev_complete_all(d);
    wss_turn(w);
    settle(w);
    assert_int_equal(account(w, 1, 0), want);
    assert_int_equal(sum_of_all(w, 0), 100);
}

static void test_claim_where_counter_lags(void **state)
{
    claim_of_one_gone(*state, 1000000, 25);
}

static void test_claim_where_it_does_not(void **state)
{
    claim_of_one_gone(*state, 0, 50);
}

static uint64_t state_of_random = 88172645463325252u;
static uint64_t rnd(uint64_t n)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random % n;
}

static void random_step(struct wss *w, uint64_t *va)
{
    unsigned p = (unsigned)rnd(WSS_PEERS - 1);
    struct fakedev *d = &w->dev[rnd(2)];
    switch (rnd(8)) {
    case 0:
        if (!client(w, p)) {
            hello(w, p, rnd(5) ? rules[rnd(WS_ARRAY_SIZE(rules))].task.name : "");
            va[p] = wss_alloc(w, p, 0, 64);
        }
        break;
    case 1:
        if (client(w, p) && !rnd(3))
            goodbye(w, p);
        break;
    case 2:
    case 3:
        if (client(w, p) && d->n_ops < 200) {
            fill(w, p, va[p]);
            if (w->peers[p].n_replies > WSS_REPLIES / 2)
                w->peers[p].n_replies = 0;
        }
        break;
    case 4:
    case 5:
        if (d->n_ops) {
            unsigned i = (unsigned)rnd(d->n_ops);
            d->ops[i]->energy_uj = rnd(4) ? rnd(100000) : 0;
            d->energy_uj += rnd(2) ? d->ops[i]->energy_uj : rnd(120000);
            fakedev_complete(d, i, 1, 2, rnd(20) ? WS_DEV_OK : WS_DEV_E_ILLEGAL_ADDRESS);
        }
        break;
    case 6: {
        uint64_t idle = rnd(50);
        d->energy_uj += idle;
        d->idle_uj += idle;
        break;
    }
    default:
        wss_turn(w);
    }
}

static void test_random(void **state)
{
    struct wss *w = *state;
    uint64_t va[WSS_PEERS] = {0}, kills = 0;
    for (int i = 0; i < 60000; i++) {
        uint32_t before = w->server->clients.n;
        random_step(w, va);
        kills += w->server->clients.n < before;
        settle(w);
    }
    assert_true(kills > 200);
    for (unsigned p = 0; p < WSS_PEERS; p++)
        if (client(w, p))
            goodbye(w, p);
    for (int i = 0; i < 2; i++)
        fakedev_complete_all(&w->dev[i]);
    wss_turn(w);
    settle(w);
    usleep(1100000); /* claims that no energy came for lapse */
    settle(w);
    settle(w);
    for (uint32_t g = 0; g < 2; g++) { /* nothing is under way: all of it is somebody's */
        const struct ws_gpu_energy *t = &w->server->gpus[g].energy;
        assert_int_equal(t->unmatched_uj, 0);
        assert_true(t->former_uj > 0 && t->former_uj + t->system_uj + t->carry_uj == t->counter_uj);
    }
}

/* The lines of one time add up. */
static void test_log(void **state)
{
    struct wss *w = *state;
    char path[] = "/tmp/ws-energy-XXXXXX", text[256], who[32];
    unsigned long long ms, total, sum = 0, counter = 0;
    int n_counters = 0, n_clients = 0;
    struct ws_energy_log *l;
    close(mkstemp(path));
    w->config.energy_log = path;
    w->config.energy_log_ms = 10;
    assert_int_equal(ws_energy_log_open(&l, &w->config), 0);
    hello(w, 0, "light");
    hello(w, 1, "a,b\"c");
    for (int i = 0; i < 5; i++) {
        w->dev[0].energy_uj += 1001;
        w->dev[0].idle_uj += 1001;
        usleep(12000);
        assert_in_range(ws_energy_log_turn(l, w->server), 0, 11);
    }
    ws_energy_log_close(l, w->server);
    FILE *f = fopen(path, "r");
    assert_non_null(fgets(text, sizeof(text), f));
    assert_int_equal(strncmp(text, "unix_ms,who,client,", 19), 0);
    while (fgets(text, sizeof(text), f)) {
        int commas = 0;
        for (char *p = text; *p; p++)
            commas += *p == ',';
        assert_int_equal(commas, 8);
        assert_int_equal(sscanf(text, "%llu,%31[^,]", &ms, who), 2);
        total = strtoull(strrchr(text, ',') + 1, NULL, 10);
        n_clients += !strcmp(who, "client");
        if (!strcmp(who, "counter")) {
            n_counters++;
            counter = total;
            assert_int_equal(sum, counter);
            sum = 0;
        } else {
            sum += total;
        }
    }
    fclose(f);
    unlink(path);
    assert_int_equal(counter, 5005);
    assert_in_range(n_counters, 6, 6);
    assert_int_equal(n_clients, 12);
    w->config.energy_log = (char *)"/nonexistent/x";
    assert_int_equal(ws_energy_log_open(&l, &w->config), -ENOENT);
    w->config.energy_log = (char *)"/dev/null";
    assert_int_equal(ws_energy_log_open(&l, &w->config), -EINVAL);
    w->config.energy_log = NULL;
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_idle_is_shared_by_weight),
        T(test_busy_goes_to_who_worked),
        T(test_gone_and_reset),
        T(test_claim_where_counter_lags),
        T(test_claim_where_it_does_not),
        T(test_random),
        T(test_log),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
