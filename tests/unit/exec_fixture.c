// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "exec_fixture.h"

void fix_init(struct fix *f)
{
    *f = (struct fix){.next_va = UINT64_C(0x7f0000000000)};
    assert_int_equal(ws_space_new(&f->space), 0);
}

static void unload(struct fix *f)
{
    f->code = ws_code_free(f->code);
    f->m = ws_ptx_module_free(f->m);
    ws_diags_deinit(&f->diags);
    f->diags = WS_DIAGS_NULL;
    free(f->var_va);
    f->var_va = NULL;
}

void fix_deinit(struct fix *f)
{
    unload(f);
    ws_space_free(f->space);
    for (unsigned k = 0; k < f->n_bufs; k++)
        free(f->bufs[k].host);
}

int fix_load(struct fix *f, const char *ptx)
{
    unload(f);
    int r = ws_ptx_parse(&f->m, ptx, strlen(ptx), "test.ptx", &f->diags);
    if (r)
        return r;
    r = ws_code_new(&f->code, f->m, &f->diags);
    if (r)
        return r;
    uint32_t n_kernels;
    const struct ws_kernel_info *info = ws_code_kernels(f->code, &n_kernels);
    for (uint32_t k = 0; k < n_kernels; k++)
        if (info[k].unsupported)
            return info[k].unsupported_code;
    f->var_va = calloc(f->m->n_vars + 1, sizeof *f->var_va);
    for (uint32_t k = 0; k < f->m->n_vars; k++) {
        const struct ws_ptx_var *v = &f->m->vars[k];
        if ((v->space != WS_SP_GLOBAL && v->space != WS_SP_CONST) || !v->size_bytes)
            continue;
        f->var_va[k] = fix_alloc(f, v->size_bytes);
        if (v->init)
            memcpy(fix_host(f, f->var_va[k]), v->init, v->init_bytes);
        for (uint32_t n = 0; n < v->n_init_syms; n++) {
            const struct ws_ptx_init_sym *s = &v->init_syms[n];
            uint64_t a = WS_PTX_SYM_KIND(s->sym) == WS_PTX_SYM_FUNC
                             ? ws_exec_func_va(WS_PTX_SYM_INDEX(s->sym))
                             : f->var_va[WS_PTX_SYM_INDEX(s->sym)];
            a += (uint64_t)s->addend;
            memcpy((uint8_t *)fix_host(f, f->var_va[k]) + s->offset, &a, s->bytes);
        }
    }
    return 0;
}

void fix_must_load(struct fix *f, const char *ptx)
{
    int r = fix_load(f, ptx);
    if (r) {
        char *text = ws_diags_text(&f->diags);
        print_error("load failed (%d): %s\n", r, text);
        free(text);
        fail();
    }
}

uint64_t fix_alloc(struct fix *f, size_t bytes)
{
    assert_true(f->n_bufs < FIX_MAX_BUFS);
    uint8_t *host = calloc(1, bytes);
    uint64_t va = f->next_va;
    assert_non_null(host);
    f->bufs[f->n_bufs].va = va;
    f->bufs[f->n_bufs].host = host;
    f->bufs[f->n_bufs++].bytes = bytes;
    f->next_va += (bytes + 0x1fff) & ~(uint64_t)0xfff;
    assert_int_equal(ws_space_map_host(f->space, va, bytes, host), 0);
    return va;
}

void *fix_host(struct fix *f, uint64_t va)
{
    for (unsigned k = 0; k < f->n_bufs; k++)
        if (va - f->bufs[k].va < f->bufs[k].bytes)
            return f->bufs[k].host + (va - f->bufs[k].va);
    fail();
    return NULL;
}

const struct ws_kernel_info *fix_kernel(struct fix *f, const char *name, uint32_t *ret_index)
{
    uint32_t n;
    const struct ws_kernel_info *k = ws_code_kernels(f->code, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!name || strcmp(k[i].name, name) == 0) {
            *ret_index = i;
            return &k[i];
        }
    fail_msg("no kernel %s", name);
    return NULL;
}

enum ws_dev_error fix_launch(struct fix *f, const struct launch *l)
{
    struct ws_grid g = {
        .code = f->code,
        .grid = {l->grid[0], WS_MAX(l->grid[1], 1u), WS_MAX(l->grid[2], 1u)},
        .block = {l->block[0], WS_MAX(l->block[1], 1u), WS_MAX(l->block[2], 1u)},
        .dyn_shared_bytes = l->shared,
        .params = l->params,
        .space = f->space,
        .var_va = f->var_va,
        .n_sms = 4,
        .sm = 75,
        .grid_id = 7,
        .local_bytes_max = f->local_bytes_max,
    };
    fix_kernel(f, l->kernel, &g.kernel);
    uint64_t n = (uint64_t)g.grid[0] * g.grid[1] * g.grid[2], next = 0,
             left = f->max_warp_insns ? f->max_warp_insns : 50000000;
    unsigned width = l->co_resident ? l->co_resident : 1, busy = 0;
    struct ws_blockrun *b[64] = {NULL};
    bool active[64] = {false};
    f->work = (struct ws_work){0};
    f->error = WS_DEV_OK;
    assert_true(width <= 64);
    for (unsigned k = 0; k < width; k++)
        assert_int_equal(ws_blockrun_new(&b[k], &g), 0);
    do {
        busy = 0;
        for (unsigned k = 0; k < width; k++) {
            if (!active[k] && next < n) {
                ws_blockrun_start(b[k], next++, k, 0);
                active[k] = true;
            }
            if (!active[k])
                continue;
            busy++;
            uint64_t step = f->step ? f->step : 10000;
            enum ws_step s = ws_blockrun_step(b[k], step, &f->work);
            if (s != WS_STEP_MORE)
                active[k] = false;
            left -= WS_MIN(left, step);
            if (left == 0 && !g.stop)
                g.stop = WS_DEV_E_TIMEOUT;
        }
    } while (busy);
    for (unsigned k = 0; k < width; k++)
        ws_blockrun_free(b[k]);
    f->error = (enum ws_dev_error)g.stop;
    memcpy(f->text, g.text, sizeof f->text);
    return f->error;
}

void fix_run(struct fix *f, const struct launch *l)
{
    if (fix_launch(f, l) != WS_DEV_OK) {
        print_error("%s: error %d: %s\n", l->kernel, f->error, f->text);
        fail();
    }
}
