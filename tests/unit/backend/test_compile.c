// SPDX-License-Identifier: Apache-2.0
/* backend: a real wattshared process, and modules that take very long to compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/lib/hard_text.h"
#include "tests/lib/wsclient.h"

#define NO_LIMIT "limits { max_compile_ms = 3600000 }\n"

/* Minutes of work, in 700 KB of text that takes little memory. */
static char *bomb(uint32_t more)
{
    size_t len;
    char *text = hard_text_make(hard_text_find("refused-of-all"), 10000 + more, &len);
    assert_non_null(text);
    return text;
}

static void test_ends_while_compiling(void **state)
{
    (void)state;
    struct wst_daemon d;
    struct wst_client *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
    wst_daemon_start(&d, "endpoints = {\"%IPC%\"}\nloaders = 2\ndrain_timeout_s = 1\n" NO_LIMIT,
                     NULL);
    wst_open(a, NULL, d.ipc, true);
    wst_open(b, NULL, d.ipc, true);
    char *one = bomb(0), *two = bomb(1);
    wst_load_begin(a, 1, 0, one);
    wst_load_begin(b, 1, 0, two);
    uint64_t va;
    assert_int_equal(wst_alloc(a, 0, 4096, &va), 0); /* the others go on */
    usleep(300000);                                  /* the threads have begun */
    uint64_t before = ws_clock_ns();
    assert_int_equal(wst_daemon_stop(&d), 0);
    assert_true(ws_clock_ns() - before < 8 * WS_NS_PER_S);
    wst_close(a, false);
    wst_close(b, false);
    free(a);
    free(b);
    free(one);
    free(two);
}

static void test_limit_is_told(void **state)
{
    (void)state;
    struct wst_daemon d;
    struct wst_client *a = calloc(1, sizeof(*a));
    wst_daemon_start(&d, "endpoints = {\"%IPC%\"}\nlimits { max_compile_ms = 200 }\n", NULL);
    wst_open(a, NULL, d.ipc, true);
    char *text = bomb(0);
    uint64_t seq = wst_load_begin(a, 1, 0, text);
    const Ws__Reply *r = wst_wait(a, seq, 60000);
    assert_non_null(r);
    assert_int_equal(r->error, WS__ERROR__INVALID_IMAGE);
    assert_non_null(strstr(r->text, "max_compile_ms"));
    assert_int_equal(wst_load_ptx(a, 2, 0, wst_ptx), 0); /* what is small is loaded */
    wst_close(a, true);
    assert_int_equal(wst_daemon_stop(&d), 0);
    free(a);
    free(text);
}

/* Whose client has gone is stopped: one thread is enough for the next. */
static void test_stops_with_its_client(void **state)
{
    (void)state;
    struct wst_daemon d;
    struct wst_client *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
    wst_daemon_start(&d, "endpoints = {\"%IPC%\"}\nloaders = 1\n" NO_LIMIT, NULL);
    wst_open(a, NULL, d.ipc, true);
    wst_open(b, NULL, d.ipc, true);
    char *text = bomb(0);
    wst_load_begin(a, 1, 0, text);
    usleep(100000);
    wst_close(a, true);
    assert_int_equal(wst_load_ptx(b, 1, 0, wst_ptx), 0);
    wst_close(b, true);
    assert_int_equal(wst_daemon_stop(&d), 0);
    free(a);
    free(b);
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_while_compiling),
        cmocka_unit_test(test_limit_is_told),
        cmocka_unit_test(test_stops_with_its_client),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
