// SPDX-License-Identifier: Apache-2.0
/* backend: a real wattshared process and raw clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/lib/wsclient.h"

struct fixture {
    struct wst_daemon d;
    struct wst_client a, b;
};

static int setup(void **state)
{
    static const char *const quiet[] = {"--workers", "1", NULL};
    struct fixture *f = calloc(1, sizeof *f);
    wst_daemon_start(&f->d, NULL, quiet);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int r = wst_daemon_stop(&f->d);
    free(f);
    return r;
}

struct fill_params { uint64_t p; uint32_t v; };

static void test_memory_module_launch(void **state)
{
    struct fixture *f = *state;
    uint64_t va;
    uint32_t out[256];
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(f->a.hello->n_devices, 2);
    assert_int_equal(wst_alloc(&f->a, 0, sizeof out, &va), 0);
    assert_int_equal(wst_load_ptx(&f->a, 1, 0, wst_ptx), 0);
    int fill = wst_kernel_index(&f->a, "fill"), add = wst_kernel_index(&f->a, "add");
    assert_int_not_equal(wst_variable(&f->a, "counter"), 0);
    wst_launch(&f->a, 1, 1, (uint32_t)fill, 4, 64, &(struct fill_params){va, 100}, 12);
    wst_launch(&f->a, 1, 1, (uint32_t)add, 4, 64, &(struct fill_params){va, 1000}, 12);
    assert_int_equal(wst_read(&f->a, 1, va, out, sizeof out), 0);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], 1100 + i);
    assert_int_equal(wst_sync_device(&f->a, 0), 0);
    assert_int_equal(wst_free(&f->a, va), 0);
    assert_int_equal(wst_free(&f->a, va), WS__ERROR__INVALID_HANDLE);
    wst_close(&f->a, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_module_launch, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
