// SPDX-License-Identifier: Apache-2.0
/* backend: on a real GPU without a policy, the launch that keeps others' operations from ending is
 * urged, and no other is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "tests/lib/wsserver.h"

static const char PTX[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n ret;\n}";
enum { LEGACY = 1, MODULE = 1, LIMIT_MS = 40 };

static int setup(void **state)
{
    struct wss *w = *state = wss_new(1);
    fakedev_set_real(&w->dev[0]);
    w->config.max_kernel_ms = LIMIT_MS;
    for (unsigned p = 0; p < 3; p++) {
        wss_hello(w, p, NULL);
        assert_int_equal(wss_error(w, p, wss_load(w, p, MODULE, 0, PTX, sizeof(PTX) - 1)), 0);
    }
    return 0;
}

static int teardown(void **state)
{
    struct wss *w = *state;
    fakedev_complete_all(&w->dev[0]);
    wss_turn(w);
    wss_free(w);
    return 0;
}

static const struct ws_op *launch(struct wss *w, unsigned peer)
{
    uint64_t param = 0;
    wss_launch(w, peer, LEGACY, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS, &param, sizeof(param));
    return w->dev[0].ops[w->dev[0].n_ops - 1];
}

/* Looks at the GPU at once. Return: since when operations are waited for, 0: none is. */
static uint64_t look(struct wss *w)
{
    w->server->stuck_next_ns = 0;
    wss_turn(w);
    return w->server->gpus[0].stuck.suspect ? w->server->gpus[0].stuck.since_ns : 0;
}

static void pass(struct wss *w, unsigned ms)
{
    for (uint64_t end = ws_clock_ns() + ms * WS_NS_PER_MS; ws_clock_ns() < end; usleep(1000))
        wss_turn(w);
}

static void pass_until_urged(struct wss *w, bool urged)
{
    for (int i = 0; i < 10000 && !w->dev[0].urged == urged; i++)
        pass(w, 1);
}

static void end_newest(struct wss *w)
{
    struct fakedev *f = &w->dev[0];
    fakedev_complete(f, f->n_ops - 1, f->now_ns, f->now_ns + 1000, WS_DEV_OK);
    wss_turn(w);
}

static void test_others_wait(void **state)
{
    struct wss *w = *state;
    uint64_t begin = ws_clock_ns();
    const struct ws_op *first = launch(w, 0);
    launch(w, 1);
    pass_until_urged(w, true);
    assert_ptr_equal(w->dev[0].urged, first);
    assert_true(ws_clock_ns() - begin >= LIMIT_MS * WS_NS_PER_MS);
    assert_int_equal(w->dev[0].urged_ns, LIMIT_MS * WS_NS_PER_MS / 2);
    end_newest(w); /* nobody waits any more */
    pass_until_urged(w, false);
    assert_null(w->dev[0].urged);
}

static void test_nobody_waits(void **state)
{
    struct wss *w = *state;
    wss_stream(w, 0, 100, 0, true);
    launch(w, 0);
    wss_launch(w, 0, 100, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS, &(uint64_t){0}, 8);
    assert_int_equal(w->dev[0].n_ops, 2);
    pass(w, 2 * LIMIT_MS);
    assert_int_equal(look(w), 0);
    assert_null(w->dev[0].urged);
    /* What has passed by now does not count when another comes. */
    uint64_t now = ws_clock_ns();
    launch(w, 1);
    assert_true(look(w) >= now);
}

/* Those of the suspect itself do not help it; those of others show that they get on. */
static void test_operations_end(void **state)
{
    struct wss *w = *state;
    const struct ws_op *first = launch(w, 0);
    w->config.max_kernel_ms = 100000;
    for (int i = 0; i < 3; i++) {
        uint64_t now = ws_clock_ns();
        launch(w, 1);
        wss_stream(w, 1, 100 + (uint64_t)i, 0, true);
        wss_launch(w, 1, 100 + (uint64_t)i, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS,
                   &(uint64_t){0}, 8);
        assert_true(look(w) >= now);
        now = ws_clock_ns();
        assert_true(look(w) < now);
        end_newest(w);
        assert_true(look(w) >= now);
        end_newest(w);
    }
    w->config.max_kernel_ms = LIMIT_MS;
    (void)look(w);
    launch(w, 1);
    wss_stream(w, 0, 100, 0, true);
    for (int i = 0; i < 10000 && !w->dev[0].urged; i++) {
        wss_launch(w, 0, 100, (uint64_t)MODULE << WS_FUNCTION_INDEX_BITS, &(uint64_t){0}, 8);
        pass(w, 1);
        end_newest(w);
    }
    assert_ptr_equal(w->dev[0].urged, first);
}

static void test_software_gpus_are_let_alone(void **state)
{
    struct wss *w = *state;
    fakedev_set_far(&w->dev[0]);
    launch(w, 0);
    launch(w, 1);
    assert_int_equal(look(w), 0);
}

static void test_limit_0(void **state)
{
    struct wss *w = *state;
    w->config.max_kernel_ms = 0;
    launch(w, 0);
    launch(w, 1);
    assert_int_equal(look(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_others_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_operations_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_software_gpus_are_let_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_0, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
