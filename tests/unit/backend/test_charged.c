// SPDX-License-Identifier: Apache-2.0
/* What kernels hold beside memory that their program asked for, the heap of device code and what it
 * prints, is on the user's account before the first launch that needs it: a launch that would take
 * more than the user may have fails and does not run. A software GPU runs the launches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/softserver.h"

/* Both write 1 to *out. */
static const char ptx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".global .align 1 .b8 text[3] = {104, 105, 0};\n"
    ".visible .entry print(.param .u64 out)\n{\n.reg .b64 %a<3>;\n"
    "ld.param.u64 %a0, [out]; st.global.u32 [%a0], 1; mov.u64 %a1, text; cvta.global.u64 %a1, %a1; "
    "mov.u64 %a2, 0;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %a1; st.param.b64 [b], %a2;\n"
    "call.uni (r), vprintf, (a, b); }\nret;\n}\n"
    ".visible .entry allocate(.param .u64 out)\n{\n.reg .b64 %a<3>;\n"
    "ld.param.u64 %a0, [out]; st.global.u32 [%a0], 1; mov.u64 %a1, 16;\n"
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], %a1; call.uni (r), malloc, (n); "
    "}\nret;\n}\n";
enum { PRINT, ALLOCATE };
enum { MODULE = 1, ENOUGH = 1 << 28, TOO_LITTLE = 1 << 18 };

static int setup(void **state)
{
    *state = softs_new("t400", 0, 0);
    softs_hello(*state, 0);
    return softs_load(*state, 0, MODULE, ptx) ? -1 : 0;
}

static int teardown(void **state)
{
    softs_free(*state);
    return 0;
}

/* @want: what the client is told. Return: what the kernel wrote, 0 if it did not run. */
static uint32_t launch(struct softs *s, uint32_t kernel, uint64_t out, Ws__Error want)
{
    struct softs_launch l = {
        .module = MODULE, .kernel = kernel, .params = &out, .param_bytes = sizeof(out)};
    uint32_t *word = softs_host(s, 0, out, sizeof(*word));
    *word = 0;
    softs_launch(s, 0, &l);
    assert_int_equal(softs_sync(s, 0), want);
    return *word;
}

static void check_charged(struct softs *s, uint32_t kernel, enum ws_resource r)
{
    struct ws_accounts *a = s->server->accounts;
    uint64_t out = softs_alloc(s, 0, 4096), before = ws_accounts_used(a, r);
    s->config.limits.pool[r] = before + TOO_LITTLE;
    assert_int_equal(launch(s, kernel, out, WS__ERROR__OUT_OF_MEMORY), 0);
    s->config.limits.pool[r] = before + ENOUGH;
    assert_int_equal(launch(s, kernel, out, WS__ERROR__OK), 1);
    uint64_t with = ws_accounts_used(a, r);
    assert_true(with > before + TOO_LITTLE);
    assert_int_equal(launch(s, kernel, out, WS__ERROR__OK), 1);
    assert_int_equal(ws_accounts_used(a, r), with); /* once */
}

static void test_printed_text(void **state)
{
    check_charged(*state, PRINT, WS_RESOURCE_HOST_BYTES);
}

static void test_heap(void **state)
{
    check_charged(*state, ALLOCATE, WS_RESOURCE_DEVICE_BYTES);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_printed_text),
        T(test_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
