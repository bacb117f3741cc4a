// SPDX-License-Identifier: Apache-2.0
/* The table of entry points: order, look-up by name and by version, and that what is not done can
 * be called with anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "frontend/interpose/entrypoints.h"
#include "frontend/errors.h"
#include "tests/unit/frontend/fake_session.h"

struct row {
    const char *name, *state, *asked;
    int version, per_thread;
    bool driver;
};
static const struct row rows[] = {
#define WS_RT(name, chapter, state) {#name, #state, "", 0, 0, false},
#define WS_DRV(name, chapter, state, asked, version, stream)                                       \
    {#name, #state, #asked, version, stream, true},
#define WS_NVRTC(name, chapter, state) {#name, #state, "", 0, 0, false},
#include "frontend/interpose/entrypoints.def"
};

static void test_sorted_and_found(void **state)
{
    size_t n;
    const struct ws_entrypoint *t = ws_entrypoints(&n);
    assert_int_equal(n, WS_ARRAY_SIZE(rows));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(t[i].name, rows[i].name);
        assert_non_null(t[i].fn);
        assert_ptr_equal(ws_entrypoint_find(t[i].name), t[i].fn);
        if (i && strcmp(t[i - 1].name, t[i].name) >= 0)
            fail_msg("%s stands before %s", t[i - 1].name, t[i].name);
    }
    assert_null(ws_entrypoint_find(""));
    assert_null(ws_entrypoint_find("cudaNoSuchThing"));
    assert_null(ws_entrypoint_find("zzz"));
    assert_null(ws_entrypoint_find("cudaMallo"));
}

/* An older variant that is the same function: where only ignored parameters differ. */
static bool has_twin(const struct row *r)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        if (&rows[i] != r && !strcmp(rows[i].asked, r->asked) && rows[i].version < r->version &&
            ws_entrypoint_find(rows[i].name) == ws_entrypoint_find(r->name))
            return true;
    return false;
}

static void test_versions(void **state)
{
    bool known;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        const struct row *r = &rows[i];
        if (!r->driver)
            continue;
        if (r->version) {
            if (ws_entrypoint_driver(r->asked, r->version, r->per_thread, &known) !=
                ws_entrypoint_find(r->name))
                fail_msg("%s is not what %s of version %d gives", r->name, r->asked, r->version);
            void *before = ws_entrypoint_driver(r->asked, r->version - 1, r->per_thread, &known);
            if (before == ws_entrypoint_find(r->name) && !has_twin(r))
                fail_msg("%s is given to versions before %d", r->name, r->version);
        }
        ws_entrypoint_driver(r->asked, 1, false, &known);
        assert_true(known);
    }
    assert_null(ws_entrypoint_driver("cuMemAlloc_v2", 13000, false,
                                     &known)); /* names are asked for without a suffix */
    assert_false(known);
    assert_ptr_equal(ws_entrypoint_driver("cuMemAlloc", 2000, true, &known),
                     ws_entrypoint_find("cuMemAlloc"));
    assert_ptr_equal(ws_entrypoint_driver("cuMemAlloc", 13000, true, &known),
                     ws_entrypoint_find("cuMemAlloc_v2"));
    assert_ptr_equal(ws_entrypoint_driver("cuMemcpyHtoD", 13000, true, &known),
                     ws_entrypoint_find("cuMemcpyHtoD_v2_ptds"));
    assert_ptr_equal(ws_entrypoint_driver("cuMemcpyHtoD", 13000, false, &known),
                     ws_entrypoint_find("cuMemcpyHtoD_v2"));
    assert_ptr_equal(ws_entrypoint_driver("cuCtxCreate", 11000, false, &known),
                     ws_entrypoint_find("cuCtxCreate_v2"));
    assert_ptr_equal(ws_entrypoint_driver("cuCtxCreate", 11040, false, &known),
                     ws_entrypoint_find("cuCtxCreate_v3"));
    assert_ptr_equal(ws_entrypoint_driver("cuGetProcAddress", 12000, false, &known),
                     ws_entrypoint_find("cuGetProcAddress_v2"));
}

static void test_unsupported_take_any_arguments(void **state)
{
    size_t n = 0;
    fake_reset();
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].state, "NONE"))
            continue;
        int (*fn)(uint64_t, double, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                  double, uint64_t);
        *(void **)&fn = ws_entrypoint_find(rows[i].name);
        assert_int_equal(fn(1, 2.0, 3, 4, 5, 6, 7, 8, 9.0, 10), CUDA_NOT_SUPPORTED);
        assert_string_equal(fake.unsupported, rows[i].name);
        n++;
    }
    assert_int_equal(fake.n_unsupported, n);
    assert_true(n > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorted_and_found),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_unsupported_take_any_arguments),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
