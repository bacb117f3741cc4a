// SPDX-License-Identifier: Apache-2.0
/* Tests modules that are machine code. They must be refused with a message that says what would be
 * accepted, or loaded for each client with variables of its own. The code is made up
 * (cubin_make.h), so it runs only where the driver is the mock, which has PTX for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "ptx/images/cubin.h"
#include "tests/device/cubin_make.h"
#include "tests/device/suite.h"

enum { V_CALLS, V_TABLE, V_ADD, N = 1000, BLOCK = 128, BLOCKS = (N + BLOCK - 1) / BLOCK };

static struct ws_ptx_module *module_of(const struct cubin_make *c)
{
    struct ws_ptx_module *m;
    size_t len;
    uint8_t *cubin = cubin_make(c, &len);
    assert_int_equal(ws_cubin_module(&m, cubin, len, NULL, NULL), 0);
    free(cubin);
    return m;
}

/* How loading ends; the texts of the diagnostics hold @want. */
static void refused(struct suite *s, const struct cubin_make *c, int r, const char *want)
{
    struct ws_ptx_module *m = module_of(c);
    struct ws_dmodule *code;
    struct ws_diags diags = WS_DIAGS_NULL;
    assert_int_equal(ws_device_module_load(s->device, m, &code, &diags), r);
    char *text = ws_diags_text(&diags);
    assert_non_null(text);
    if (!strstr(text, want))
        fail_msg("\"%s\" does not say \"%s\"", text, want);
    free(text);
    ws_diags_deinit(&diags);
    ws_ptx_module_free(m);
}

struct client {
    struct ws_dinstance *instance;
    uint64_t vars[3], data;
};

static void step(struct suite *s, int c, const struct client *x, enum ws_dev_error e,
                 const struct ws_sm_set *sms)
{
    struct suite_op o = {.op = {.kind = WS_OPK_LAUNCH,
                                .space = s->space[c],
                                .launch = {.instance = x->instance,
                                           .grid = {BLOCKS, 1, 1},
                                           .block = {BLOCK, 1, 1},
                                           .param_bytes = 12}},
                         .params = {x->data, N}};
    if (sms)
        o.op.launch.sms = *sms;
    suite_run(s, &o, e);
    assert_false(o.op.preempted);
}

static void check_data(struct suite *s, int c, const struct client *x, const uint32_t table[4],
                       uint32_t rounds, uint32_t calls)
{
    uint32_t got[N], n;
    suite_get(s, c, got, x->data, sizeof(got));
    for (uint32_t i = 0; i < N; i++)
        if (got[i] != i + rounds * 3 * table[i % 4])
            fail_msg("client %d: element %u is %u, not %u", c, i, got[i],
                     i + rounds * 3 * table[i % 4]);
    suite_get(s, c, &n, x->vars[V_CALLS], sizeof(n));
    assert_int_equal(n, calls);
}

static void begin(struct suite *s, int c, struct ws_dmodule *code, struct client *x)
{
    static const uint32_t sizes[] = {4, 16, 4};
    uint32_t v[N];
    struct ws_mapping at;
    assert_int_equal(ws_device_instance_new(s->device, code, s->space[c], NULL, &x->instance), 0);
    ws_device_instance_vars(s->device, x->instance, x->vars);
    for (int k = 0; k < 3; k++) {
        assert_true(ws_space_find(s->space[c], x->vars[k], sizes[k], &at));
        assert_ptr_equal(at.device, s->device);
        assert_false(ws_space_find(s->space[!c], x->vars[k], sizes[k], &at));
    }
    x->data = suite_alloc(s, c, sizeof(v));
    for (uint32_t i = 0; i < N; i++)
        v[i] = i;
    suite_put(s, c, x->data, v, sizeof(v));
}

static void two_clients(struct suite *s, struct ws_dmodule *code)
{
    static const uint32_t old[4] = {10, 20, 30, 40}, fresh[4] = {1, 2, 3, 5};
    struct client x[2];
    struct ws_sm_set some = {0};
    struct ws_mapping at;
    struct ws_dinstance *borrowed;
    for (int c = 0; c < 2; c++)
        begin(s, c, code, &x[c]);
    assert_int_equal(ws_device_instance_borrow(s->device, code, s->space[0], x[0].vars, &borrowed),
                     -EINVAL);
    suite_put(s, 1, x[1].vars[V_TABLE], fresh, sizeof(fresh));
    for (unsigned sm = 0; sm < s->device->spec.n_sms / 2; sm++)
        ws_sm_set_add(&some, sm);
    step(s, 0, &x[0], WS_DEV_OK, NULL);
    step(s, 1, &x[1], WS_DEV_OK, &some);
    step(s, 1, &x[1], WS_DEV_OK, NULL);
    check_data(s, 0, &x[0], old, 1, BLOCKS);
    check_data(s, 1, &x[1], fresh, 2, 2 * BLOCKS);
    ws_device_instance_free(s->device, x[0].instance);
    assert_false(ws_space_find(s->space[0], x[0].vars[V_TABLE], 4, &at));
    step(s, 1, &x[1], WS_DEV_OK, NULL);
    check_data(s, 1, &x[1], fresh, 3, 3 * BLOCKS);
    ws_device_instance_free(s->device, x[1].instance);
}

static void on_the_mock(struct suite *s)
{
    struct ws_ptx_module *m = module_of(&cubin_make_step);
    struct ws_dmodule *code;
    struct cubin_make other = cubin_make_step;
    assert_int_equal(ws_device_module_load(s->device, m, &code, NULL), 0);
    const struct ws_dmodule_info *info = ws_dmodule_info(code);
    assert_true(info->own_vars);
    assert_int_equal(info->n_kernels, 1);
    assert_int_equal(info->n_vars, 3);
    assert_string_equal(info->kernels[0].name, "step");
    assert_int_equal(info->kernels[0].sm, 86);
    assert_int_equal(info->kernels[0].n_params, 2);
    assert_int_equal(info->kernels[0].params[1].param_offset, 8);
    assert_int_equal(info->kernels[0].params[1].size_bytes, 4);
    assert_int_equal(info->kernels[0].max_threads_per_block, 256);
    two_clients(s, code);
    ws_device_module_unload(s->device, code);
    ws_ptx_module_free(m);

    other.sm = 90;
    refused(s, &other, WS_PTX_E_NOTFOUND, "NO_BINARY_FOR_GPU");
    other = cubin_make_step;
    other.vars[V_CALLS].managed = true;
    refused(s, &other, WS_PTX_E_UNSUPPORTED, "calls: managed variables of machine code");
}

static char folder[] = "/tmp/wattshare-suite.XXXXXX", path[64];

bool suite_machine_code_begin(void)
{
    FILE *f = mkdtemp(folder) ? NULL : stderr;
    snprintf(path, sizeof(path), "%s/step.ptx", folder);
    f = f ? NULL : fopen(path, "we");
    return f && fputs(cubin_make_step_ptx, f) >= 0 && !fclose(f) &&
           !setenv("WS_MOCK_MACHINE_CODE", folder, 1);
}

void suite_machine_code_end(void)
{
    unlink(path);
    rmdir(folder);
}

void suite_machine_code(struct suite *s)
{
    if (s->device->no_machine_code) {
        refused(s, &cubin_make_step, WS_PTX_E_UNSUPPORTED, "build with PTX");
        return;
    }
    if (!suite_target.mock)
        skip();
    on_the_mock(s);
}
