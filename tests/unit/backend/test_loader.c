// SPDX-License-Identifier: Apache-2.0
/* backend: images parsed by loader threads: others go on meanwhile, one parse serves all who
 * ask, a client may die or reset the device while its image is being parsed. A gate in the fake
 * device keeps a thread inside until the test opens it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/lib/wsserver.h"

#define PTX(kernel)                                                                                \
    ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry " kernel "() { ret; }\n"
static const char one[] = PTX("one"), two[] = PTX("two"), bad[] = PTX("bad") "nonsense\n";

struct fix {
    struct wss *w;
    pthread_mutex_t gate;
};

static int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    pthread_mutex_init(&f->gate, NULL);
    f->w = wss_new(2);
    f->w->config.n_loaders = 2;
    f->w->config.placement = WS_PLACE_FIXED; /* all see the GPUs in one order */
    for (int i = 0; i < 3; i++)
        f->w->dev[i].gate = &f->gate;
    for (unsigned p = 0; p < 3; p++)
        wss_hello(f->w, p, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    pthread_mutex_trylock(&f->gate); /* a test that failed may have left it shut */
    pthread_mutex_unlock(&f->gate);
    wss_free(f->w);
    free(f);
    return 0;
}

/* Uploads the image of @peer, so that the next ModuleLoad of it is taken up. */
static uint64_t load(struct fix *f, unsigned peer, uint64_t module, uint32_t device,
                     const char *image)
{
    uint64_t seq = wss_load_try(f->w, peer, module, device, image, strlen(image));
    if (!wss_replied(f->w, peer, seq) || wss_error(f->w, peer, seq) != WS__ERROR__NEED_IMAGE)
        return seq;
    return wss_load(f->w, peer, module, device, image, strlen(image));
}

static void until(struct fix *f, unsigned peer, uint64_t seq)
{
    for (int i = 0; i < 60000 && !wss_replied(f->w, peer, seq); i++) {
        usleep(1000);
        wss_turn(f->w);
    }
    assert_true(wss_replied(f->w, peer, seq));
}

static void until_inside(struct fix *f, unsigned device, unsigned n)
{
    for (int i = 0; i < 60000 && f->w->dev[device].n_module_loads < n; i++)
        usleep(1000);
    assert_int_equal(f->w->dev[device].n_module_loads, n);
}

static void test_others_go_on(void **state)
{
    struct fix *f = *state;
    pthread_mutex_lock(&f->gate);
    uint64_t seq = load(f, 0, 1, 0, one);
    until_inside(f, 0, 1);
    assert_false(wss_replied(f->w, 0, seq));
    assert_true(wss_alloc(f->w, 1, 0, 4096) != 0); /* another client, */
    assert_true(wss_alloc(f->w, 0, 0, 4096) != 0); /* and the same */
    assert_false(wss_replied(f->w, 0, seq));
    assert_false(ws_server_idle(f->w->server));
    pthread_mutex_unlock(&f->gate);
    until(f, 0, seq);
    assert_int_equal(wss_error(f->w, 0, seq), WS__ERROR__OK);
    seq = wss_launch(f->w, 0, 1, 1 << WS_FUNCTION_INDEX_BITS, NULL, 0);
    assert_int_equal(f->w->dev[0].n_ops, 1);
    fakedev_complete_all(&f->w->dev[0]);
    wss_turn(f->w);
    assert_int_equal(f->w->peers[0].retired, f->w->peers[0].next_seq - 1);
}

static void test_one_parse_for_all(void **state)
{
    struct fix *f = *state;
    pthread_mutex_lock(&f->gate);
    uint64_t a = load(f, 0, 1, 0, one), b = load(f, 1, 1, 0, one), c = load(f, 0, 2, 0, one);
    until_inside(f, 0, 1);
    uint64_t again = load(f, 0, 1, 0, one); /* the id is taken */
    assert_int_equal(wss_error(f->w, 0, again), WS__ERROR__INVALID_HANDLE);
    pthread_mutex_unlock(&f->gate);
    until(f, 0, a);
    until(f, 1, b);
    until(f, 0, c);
    assert_int_equal(wss_error(f->w, 0, a) | wss_error(f->w, 1, b) | wss_error(f->w, 0, c), 0);
    assert_int_equal(f->w->dev[0].n_module_loads, 1);
    assert_int_equal(f->w->dev[0].n_modules, 1);
    assert_int_equal(f->w->dev[0].n_instances, 3);
    uint64_t d = load(f, 1, 9, 0, one); /* known: at once */
    assert_int_equal(wss_error(f->w, 1, d), 0);
}

static void test_two_images_at_once(void **state)
{
    struct fix *f = *state;
    pthread_mutex_lock(&f->gate);
    uint64_t a = load(f, 0, 1, 0, one), b = load(f, 1, 1, 0, two);
    until_inside(f, 0, 2);
    pthread_mutex_unlock(&f->gate);
    until(f, 0, a);
    until(f, 1, b);
    assert_int_equal(ws_cache_n_codes(&f->w->server->cache), 2);
}

static void test_bad_ptx_is_told_to_all(void **state)
{
    struct fix *f = *state;
    uint64_t a = load(f, 0, 1, 0, bad), b = load(f, 1, 1, 0, bad);
    until(f, 0, a);
    until(f, 1, b);
    assert_int_equal(wss_error(f->w, 0, a), WS__ERROR__INVALID_PTX);
    assert_int_equal(wss_error(f->w, 1, b), WS__ERROR__INVALID_PTX);
    for (unsigned i = 0, p = 0; p < 2; p++, i = f->w->peers[p].n_replies - 1)
        assert_true(p == 0 || strstr(f->w->peers[1].replies[i].text, "5:1") != NULL);
}

static void test_a_client_dies_meanwhile(void **state)
{
    struct fix *f = *state;
    Ws__ClientMessage bye = WS__CLIENT_MESSAGE__INIT;
    pthread_mutex_lock(&f->gate);
    uint64_t b;
    load(f, 0, 1, 0, one);
    b = load(f, 1, 1, 0, one);
    load(f, 0, 2, 0, two); /* nobody else wants this one */
    until_inside(f, 0, 2);
    bye.goodbye = true;
    wss_message(f->w, 0, &bye);
    assert_int_equal(ws_server_n_clients(f->w->server), 2);
    pthread_mutex_unlock(&f->gate);
    until(f, 1, b);
    assert_int_equal(wss_error(f->w, 1, b), 0);
    for (int i = 0; i < 60000 && ws_cache_n_codes(&f->w->server->cache) < 2; i++) {
        usleep(1000);
        wss_turn(f->w);
    }
    assert_int_equal(ws_cache_n_codes(&f->w->server->cache), 2); /* kept for the next */
    uint64_t c = load(f, 2, 1, 0, two);
    until(f, 2, c); /* the loop may not have been told yet that it is there */
    assert_int_equal(wss_error(f->w, 2, c), 0);
    assert_int_equal(f->w->dev[0].n_module_loads, 2);
}

static void test_the_device_is_reset_meanwhile(void **state)
{
    struct fix *f = *state;
    Ws__Reset m = WS__RESET__INIT;
    pthread_mutex_lock(&f->gate);
    uint64_t a = load(f, 0, 1, 0, one), b = load(f, 0, 2, 1, one), c = load(f, 1, 1, 0, one);
    until_inside(f, 0, 1);
    uint64_t r = wss_do(f->w, 0, WS__COMMAND__C_RESET, &m);
    assert_int_equal(wss_error(f->w, 0, r), 0);
    assert_int_equal(wss_error(f->w, 0, a), WS__ERROR__INVALID_HANDLE);
    pthread_mutex_unlock(&f->gate);
    until(f, 0, b);
    until(f, 1, c);
    assert_int_equal(wss_error(f->w, 0, b), 0); /* of the other device */
    assert_int_equal(wss_error(f->w, 1, c), 0);
    a = load(f, 0, 1, 0, one);
    assert_int_equal(wss_error(f->w, 0, a), 0);
}

/* The daemon ends with an image in the hands of a thread, and one nobody has begun. */
static void test_the_server_ends_meanwhile(void **state)
{
    struct fix *f = *state;
    load(f, 0, 1, 0, one);
    load(f, 0, 2, 0, two);
    load(f, 0, 3, 0, bad);
}

/* ---- kernels' output, and what is not supported ---- */

static void test_output(void **state)
{
    struct fix *f = *state;
    struct ws_client *c = ws_client_find(f->w->server, &f->w->peers[0].peer);
    ws_output_add(&c->output, WS_OUTPUT_PRINTF, "hello\n", 6);
    ws_output_add(&c->output, WS_OUTPUT_ASSERT, "oh", 2);
    uint64_t seq = wss_do(f->w, 0, WS__COMMAND__C_OUTPUT, NULL);
    static const uint8_t want[] = "\1\6\0\0hello\n\2\2\0\0oh";
    __typeof__(&f->w->peers[0].replies[0]) r =
        &f->w->peers[0].replies[f->w->peers[0].n_replies - 1];
    assert_int_equal(r->seq, seq);
    assert_int_equal(r->n_data, sizeof(want) - 1);
    assert_memory_equal(r->data, want, sizeof(want) - 1);
    assert_int_equal(r->value, 0);
    seq = wss_do(f->w, 0, WS__COMMAND__C_OUTPUT, NULL);
    assert_int_equal(wss_error(f->w, 0, seq), 0);
    assert_int_equal(f->w->peers[0].replies[f->w->peers[0].n_replies - 1].n_data, 0);
}

static void test_output_is_bounded(void **state)
{
    struct ws_output_fifo f;
    char line[32];
    uint8_t data[8192];
    uint64_t left, lost;
    ws_output_init(&f);
    ws_output_limit(&f, 4096);
    for (int i = 0; i < 100000; i++)
        ws_output_add(&f, WS_OUTPUT_PRINTF, line, (size_t)sprintf(line, "%06d\n", i));
    assert_true(f.n <= 4096 * WS_OUTPUT_ROOM);
    unsigned n = 0, next = 0;
    uint64_t all_lost = 0;
    do {
        size_t got = ws_output_take(&f, data, sizeof(data), &left, &lost);
        all_lost += lost;
        for (size_t at = 0; at < got; at += 4 + data[at + 1], n++) {
            unsigned v = (unsigned)strtoul((char *)data + at + 4, NULL, 10);
            assert_true(n == 0 || v == next);
            next = v + 1;
        }
    } while (left);
    assert_int_equal(next, 100000);
    assert_int_equal(n + all_lost, 100000);
    assert_true(n >= 4096 / 7);
    static char large[1 << 16];
    memset(large, 'x', sizeof(large));
    ws_output_add(&f, WS_OUTPUT_PRINTF, large, sizeof(large)); /* more than fits: lost */
    assert_int_equal(ws_output_take(&f, data, sizeof(data), &left, &lost), 0);
    assert_int_equal(lost, 1);
    ws_output_add(&f, WS_OUTPUT_PRINTF, large, 10000); /* fits, but not the reply: cut */
    assert_int_equal(ws_output_take(&f, data, sizeof(data), &left, &lost), sizeof(data));
    assert_int_equal(data[1] | data[2] << 8, sizeof(data) - 4);
    ws_output_deinit(&f);
}

static void test_not_supported_is_counted(void **state)
{
    struct fix *f = *state;
    Ws__NotSupported m = WS__NOT_SUPPORTED__INIT;
    char name[16];
    m.name = (char *)"cuSomething\n";
    m.count = 3;
    wss_do(f->w, 0, WS__COMMAND__C_NOT_SUPPORTED, &m);
    wss_do(f->w, 0, WS__COMMAND__C_NOT_SUPPORTED, &m);
    wss_do(f->w, 1, WS__COMMAND__C_NOT_SUPPORTED, &m);
    struct ws_client *c = ws_client_find(f->w->server, &f->w->peers[0].peer);
    struct ws_arena a = WS_ARENA_NULL;
    Ws__NotSupported **v;
    size_t n;
    ws_ledger_message(&c->not_supported, &a, &v, &n);
    assert_int_equal(n, 1);
    assert_string_equal(v[0]->name, "cuSomething?");
    assert_int_equal(v[0]->count, 6);
    ws_ledger_message(&f->w->server->stats.not_supported, &a, &v, &n);
    assert_int_equal(v[0]->count, 9);
    m.name = name;
    for (int i = 0; i < 200; i++) { /* no client makes it grow without end */
        snprintf(name, sizeof(name), "n%d", i);
        wss_do(f->w, 0, WS__COMMAND__C_NOT_SUPPORTED, &m);
    }
    ws_ledger_message(&c->not_supported, &a, &v, &n);
    assert_int_equal(n, WS_LEDGER_CLIENT_MAX + 1);
    assert_string_equal(v[n - 1]->name, "others");
    assert_int_equal(v[n - 1]->count, (200 - (WS_LEDGER_CLIENT_MAX - 1)) * 3);
    ws_arena_deinit(&a);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_others_go_on),
        T(test_one_parse_for_all),
        T(test_two_images_at_once),
        T(test_bad_ptx_is_told_to_all),
        T(test_a_client_dies_meanwhile),
        T(test_the_device_is_reset_meanwhile),
        T(test_the_server_ends_meanwhile),
        T(test_output),
        T(test_output_is_bounded),
        T(test_not_supported_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
