// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

void fix_init(struct fix *f)
{
    *f = (struct fix){
        .next_va = UINT64_C(0x7f0000000000), .rewrite = WS_REWRITE_NONE, .control_random = 1};
    assert_int_equal(ws_space_new(&f->space), 0);
    const char *kind = getenv("WS_FIX_REWRITE");
    f->texture = getenv("WS_FIX_TEXTURE") != NULL;
    f->fence = kind && !strncmp(kind, "fence", 5);
    if (f->fence)
        kind = kind[5] == '-' ? kind + 6 : NULL;
    f->fuse = kind && !strcmp(kind, "fuse");
    if (f->fuse)
        kind = NULL;
    for (int k = 1; kind && k < _WS_REWRITE_N; k++)
        if (!strcmp(kind, ws_ptx_rewrite_name((enum ws_ptx_rewrite)k)))
            f->rewrite = (enum ws_ptx_rewrite)k;
    if (kind && f->rewrite == WS_REWRITE_NONE)
        fail_msg("WS_FIX_REWRITE=%s: slice, ticket or persistent is wanted", kind);
}

static uint32_t random_to(struct fix *f, uint32_t n) /* 1…n */
{
    f->control_random =
        f->control_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(f->control_random >> 33) % n + 1;
}

/* The rewritten kernels beside the others; reparsed from their own text, so that printing them is
 * tried too. */
static int rewrite_all(struct fix *f)
{
    uint32_t n = f->m->n_funcs, unused;
    for (uint32_t k = 0; k < n; k++) {
        char why[160];
        if (!f->m->funcs[k].is_entry || f->m->funcs[k].is_decl)
            continue;
        uint32_t from = k;
        if (f->fence) {
            int r = ws_ptx_fence_refused(f->m, k, why, sizeof(why));
            if (r == WS_PTX_E_UNSUPPORTED && getenv("WS_FIX_REWRITE_LOG"))
                print_message("fence of %s: refused: %s\n", f->m->funcs[k].name, why);
            if (r == WS_PTX_E_UNSUPPORTED)
                continue;
            assert_int_equal(ws_ptx_fence(f->m, k, &from), 0);
            if (f->rewrite == WS_REWRITE_NONE)
                continue;
        }
        if (f->fuse) {
            char name[300];
            int r = ws_ptx_fuse_refused(f->m, k, why, sizeof(why));
            if (r == WS_PTX_E_UNSUPPORTED && getenv("WS_FIX_REWRITE_LOG"))
                print_message("fuse of %s: refused: %s\n", f->m->funcs[k].name, why);
            snprintf(name, sizeof(name), "%s$fuse", f->m->funcs[k].name);
            f->fused = realloc(f->fused, (f->n_fused + 1) * sizeof(*f->fused));
            assert_non_null(f->fused);
            if (!r)
                r = ws_ptx_fuse_make(f->m, (uint32_t[]){k, k, k}, 3, random_to(f, 2) == 1, name,
                                     &f->fused[f->n_fused].made);
            if (!r)
                strcpy(f->fused[f->n_fused++].name, name);
            assert_true(r == 0 || r == WS_PTX_E_UNSUPPORTED);
            continue;
        }
        if (f->rewrite == WS_REWRITE_NONE)
            continue;
        bool flat = false;
        int r = ws_ptx_rewrite_refused(f->m, from, f->rewrite, &flat, why, sizeof(why));
        if (r == WS_PTX_E_UNSUPPORTED && getenv("WS_FIX_REWRITE_LOG"))
            print_message("%s of %s: refused: %s\n", ws_ptx_rewrite_name(f->rewrite),
                          f->m->funcs[k].name, why);
        if (r == WS_PTX_E_UNSUPPORTED)
            continue;
        assert_int_equal(r, 0);
        assert_int_equal(ws_ptx_rewrite(f->m, from, f->rewrite, &unused), 0);
        f->flat_only |= flat;
    }
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_int_equal(ws_ptx_print(f->m, out), 0);
    fclose(out);
    struct ws_ptx_module *again = NULL;
    int r = ws_ptx_parse(&again, text, len, "rewritten.ptx", &f->diags);
    if (r) {
        print_error("%s", text);
    } else {
        struct ws_diags d = WS_DIAGS_NULL;
        assert_int_equal(ws_ptx_validate(f->m, "rewritten.ptx", &d), 0);
        ws_diags_deinit(&d);
        ws_ptx_module_free(f->m);
        f->m = again;
    }
    free(text);
    return r;
}

static void unload(struct fix *f)
{
    free(f->fused);
    f->fused = NULL;
    f->n_fused = 0;
    f->code = ws_code_free(f->code);
    f->plain = ws_code_free(f->plain);
    f->m = ws_ptx_module_free(f->m);
    f->plain_m = ws_ptx_module_free(f->plain_m);
    ws_diags_deinit(&f->diags);
    f->diags = WS_DIAGS_NULL;
    free(f->var_va);
    f->var_va = NULL;
}

void fix_deinit(struct fix *f)
{
    if (f->rewritten_n)
        print_message("rewritten: %u launches, resumed %u times\n", (unsigned)f->rewritten_n,
                      (unsigned)f->resumed_n);
    if (f->compared_n)
        print_message("compared: %u launches\n", (unsigned)f->compared_n);
    unload(f);
    ws_space_free(f->space);
    for (unsigned k = 0; k < f->n_bufs; k++)
        free(f->bufs[k].host);
}

int fix_setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    fix_init(f);
    *state = f;
    return 0;
}

int fix_teardown(void **state)
{
    fix_deinit(*state);
    free(*state);
    return 0;
}

int fix_load(struct fix *f, const char *ptx)
{
    unload(f);
    int r = ws_ptx_parse(&f->m, ptx, strlen(ptx), "test.ptx", &f->diags);
    if (r)
        return r;
    if (f->texture) {
        r = ws_ptx_parse(&f->plain_m, ptx, strlen(ptx), "test.ptx", &f->diags);
        if (!r)
            r = ws_code_new(&f->plain, f->plain_m, 0, &f->diags);
        if (r)
            return r;
        assert_int_equal(ws_ptx_texture(f->m), 0);
    }
    if (f->rewrite != WS_REWRITE_NONE || f->fence || f->fuse || f->texture) {
        r = rewrite_all(f);
        if (r)
            return r;
    }
    r = ws_code_new(&f->code, f->m, f->hardware_cc, &f->diags);
    if (r)
        return r;
    uint32_t n_kernels;
    const struct ws_kernel_info *info = ws_code_kernels(f->code, &n_kernels);
    for (uint32_t k = 0; k < n_kernels; k++)
        if (info[k].unsupported)
            return info[k].unsupported_code;
    f->var_va = calloc(f->m->n_vars + 1, sizeof(*f->var_va));
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

void fix_run_again(char *const args[], int want)
{
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), want);
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

/* The whole grid in one state, several blocks at a time (ws_blockrun_run()). */
static void run_in_runs(struct fix *f, struct ws_grid *g, uint64_t left)
{
    enum { AT_ONCE = 33 };
    struct ws_block_ask asks[AT_ONCE];
    struct ws_blockrun *b;
    uint64_t n_blocks = (uint64_t)g->grid[0] * g->grid[1] * g->grid[2], step = f->step, begun;
    step = step ? step : 10000;
    assert_int_equal(ws_blockrun_new(&b, g), 0);
    for (uint64_t i = 0; i < n_blocks && !g->stop; i += begun) {
        uint32_t n = (uint32_t)WS_MIN(n_blocks - i, (uint64_t)AT_ONCE);
        for (uint32_t k = 0; k < n; k++)
            asks[k] = (struct ws_block_ask){.linear = i + k,
                                            .work = f->works ? &f->works[i + k] : &f->work};
        begun = ws_blockrun_run(b, asks, n, step, 3 * step);
        assert_in_range(begun, 1, n);
        for (uint32_t k = 0; k + 1 < begun; k++)
            assert_int_equal(asks[k].step, WS_STEP_DONE);
        while (asks[begun - 1].step == WS_STEP_MORE) {
            left -= WS_MIN(left, step);
            if (left == 0 && !g->stop)
                g->stop = WS_DEV_E_TIMEOUT;
            asks[begun - 1].step = ws_blockrun_step(b, step, asks[begun - 1].work);
        }
    }
    ws_blockrun_free(b);
}

/* The blocks of one cluster take turns. */
static void run_cluster(struct fix *f, struct ws_grid *g, struct ws_blockrun **b, uint32_t n)
{
    uint64_t left = f->max_warp_insns ? f->max_warp_insns : 50000000, step = f->step ? f->step : 97;
    uint32_t live = n, stuck;
    bool ended[WS_CLUSTER_MAX] = {false};
    while (!g->stop && live) {
        stuck = 0;
        for (uint32_t k = 0; k < n && !g->stop; k++) {
            if (ended[k])
                continue;
            ended[k] = ws_blockrun_step(b[k], step, &f->work) == WS_STEP_DONE;
            live -= ended[k];
            left -= WS_MIN(left, step);
        }
        for (uint32_t k = 0; k < n; k++)
            stuck += !ended[k] && ws_blockrun_is_stuck(b[k]);
        for (uint32_t k = 0; live && stuck == live && k < n && !g->stop; k++)
            if (!ended[k])
                ws_blockrun_deadlock(b[k]);
        if (!left && !g->stop)
            g->stop = WS_DEV_E_TIMEOUT;
    }
}

static enum ws_dev_error run_clusters(struct fix *f, struct ws_grid *g)
{
    uint32_t n = ws_grid_cluster_blocks(g);
    uint64_t n_blocks = (uint64_t)g->grid[0] * g->grid[1] * g->grid[2];
    struct ws_blockrun *b[WS_CLUSTER_MAX];
    assert_true(n <= WS_CLUSTER_MAX);
    for (uint32_t k = 0; k < n; k++)
        assert_int_equal(ws_blockrun_new(&b[k], g), 0);
    for (uint64_t at = 0; !g->stop && at < n_blocks; at += n) {
        for (uint32_t k = 0; k < n; k++)
            ws_blockrun_start(b[k], ws_grid_in_clusters(g, at + k), k, 0);
        ws_blockrun_join(b, n);
        run_cluster(f, g, b, n);
    }
    for (uint32_t k = 0; k < n; k++)
        ws_blockrun_free(b[k]);
    f->error = (enum ws_dev_error)g->stop;
    memcpy(f->text, g->text, sizeof(f->text));
    return f->error;
}

/* One launch of kernel @kernel. @raise_after: the flag goes up after so many rounds; 0: never. */
static enum ws_dev_error run_grid(struct fix *f, const struct launch *l, uint32_t kernel,
                                  const uint32_t grid[3], const void *params, uint32_t raise_after)
{
    struct ws_grid g = {
        .code = f->code,
        .kernel = kernel,
        .grid = {grid[0], grid[1], grid[2]},
        .block = {l->block[0], WS_MAX(l->block[1], 1u), WS_MAX(l->block[2], 1u)},
        .dyn_shared_bytes = l->shared,
        .params = params,
        .space = f->space,
        .var_va = f->var_va,
        .n_sms = 4,
        .sm = 75,
        .grid_id = 7,
        .local_bytes_max = f->local_bytes_max,
        .cluster = {l->cluster[0], l->cluster[1], l->cluster[2]},
        .explicit_cluster = l->cluster[0] != 0,
        .reuse = f->reuse,
    };
    if (l->cluster[0])
        return run_clusters(f, &g);
    uint64_t n = (uint64_t)g.grid[0] * g.grid[1] * g.grid[2], next = 0,
             left = f->max_warp_insns ? f->max_warp_insns : 50000000;
    unsigned width = l->co_resident ? l->co_resident : 1, busy = 0;
    struct ws_blockrun *b[64] = {NULL};
    bool active[64] = {false};
    uint64_t number[64] = {0};
    assert_true(width <= 64);
    if (!f->one_by_one && width == 1 && !raise_after) {
        run_in_runs(f, &g, left);
        next = n;
        width = 0;
    }
    for (unsigned k = 0; k < width; k++)
        assert_int_equal(ws_blockrun_new(&b[k], &g), 0);
    do {
        busy = 0;
        if (raise_after && !--raise_after)
            f->control->flag = 1;
        for (unsigned k = 0; k < width; k++) {
            if (!active[k] && next < n) {
                number[k] = next;
                ws_blockrun_start(b[k], next++, k, 0);
                active[k] = true;
            }
            if (!active[k])
                continue;
            busy++;
            uint64_t step = f->step ? f->step : 10000;
            enum ws_step s =
                ws_blockrun_step(b[k], step, f->works ? &f->works[number[k]] : &f->work);
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
    memcpy(f->text, g.text, sizeof(f->text));
    return f->error;
}

/* Index of the rewritten kernel, or -1. */
static int64_t rewritten_index(struct fix *f, const char *kernel)
{
    char name[300];
    uint32_t n;
    const struct ws_kernel_info *k = ws_code_kernels(f->code, &n);
    bool kind = f->rewrite != WS_REWRITE_NONE;
    if (!kind && !f->fence && !f->fuse)
        return -1;
    snprintf(name, sizeof(name), "%s%s%s%s", kernel ? kernel : k[0].name,
             f->fence  ? "$fence"
             : f->fuse ? "$fuse"
                       : "",
             kind ? "$" : "", kind ? ws_ptx_rewrite_name(f->rewrite) : "");
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(k[i].name, name))
            return i;
    return -1;
}

/* What must not begin a block does not: the flag is up; no SM that there is may be used. One that
 * may, does. */
static void probe(struct fix *f, const struct launch *l, uint32_t kernel, uint8_t *params,
                  struct ws_ptx_ctl ctl)
{
    uint32_t width = l->co_resident ? l->co_resident : 1, n;
    uint64_t at = ws_code_kernels(f->code, &n)[kernel].param_bytes - sizeof(ctl);
    ctl.ticket = f->control_va + offsetof(struct fix_control, ticket);
    ctl.flag = f->control_va + offsetof(struct fix_control, flag);
    memcpy(params + at, &ctl, sizeof(ctl));
    f->control->flag = 1;
    run_grid(f, l, kernel, (uint32_t[3]){width, 1, 1}, params, 0);
    assert_int_equal(f->control->ticket, 0);
    f->control->flag = 0;
    ctl.mask = f->control_va + offsetof(struct fix_control, mask);
    memcpy(params + at, &ctl, sizeof(ctl));
    memset(f->control->mask, 0xff, sizeof(f->control->mask));
    f->control->mask[0] = ~((1u << width) - 1);
    run_grid(f, l, kernel, (uint32_t[3]){width, 1, 1}, params, 0);
    assert_int_equal(f->control->ticket, 0);
    memset(f->control->mask, 0, sizeof(f->control->mask));
    f->control->mask[0] = 1u << (width - 1);
    run_grid(f, l, kernel, (uint32_t[3]){width, 1, 1}, params, 0);
    if (f->rewrite == WS_REWRITE_TICKET)
        assert_int_equal(f->control->ticket, 1);
    else
        assert_true(f->control->ticket >= 1);
}

/* All that is mapped is the client's, but for the ranges themselves; the fast range is any of
 * them. */
static void fence_params(struct fix *f, uint8_t *ret)
{
    if (!f->ranges) {
        f->ranges_va = fix_alloc(f, sizeof(*f->ranges));
        f->ranges = fix_host(f, f->ranges_va);
    }
    f->ranges->n = 0;
    memset(f->ranges->fault, 0, sizeof(f->ranges->fault));
    for (unsigned k = 0; k < f->n_bufs; k++)
        if (f->bufs[k].va != f->ranges_va) {
            f->ranges->range[f->ranges->n].low = f->bufs[k].va;
            f->ranges->range[f->ranges->n++].bytes = f->bufs[k].bytes;
        }
    unsigned main = random_to(f, f->ranges->n) - 1;
    uint64_t bytes = f->ranges->range[main].bytes;
    struct ws_ptx_fence p = {.low = f->ranges->range[main].low,
                             .limit = bytes > WS_FENCE_SLACK ? bytes - WS_FENCE_SLACK : 0,
                             .ranges = f->ranges_va + offsetof(struct fix_ranges, n),
                             .fault = f->ranges_va + offsetof(struct fix_ranges, fault)};
    memcpy(ret, &p, sizeof(p));
}

/* The same work by several launches of a rewritten kernel. */
static enum ws_dev_error launch_rewritten(struct fix *f, const struct launch *l, uint32_t kernel,
                                          const uint32_t grid[3])
{
    if (!f->control) {
        f->control_va = fix_alloc(f, sizeof(*f->control));
        f->control = fix_host(f, f->control_va);
    }
    uint32_t n;
    const struct ws_kernel_info *info = &ws_code_kernels(f->code, &n)[kernel];
    uint8_t *params = calloc(1, info->param_bytes);
    assert_non_null(params);
    bool whole = f->rewrite == WS_REWRITE_NONE;
    uint32_t own = info->n_params - f->fence - !whole; /* parameters of the program's */
    uint64_t at = info->params[info->n_params - 1].param_offset;
    if (l->params && own)
        memcpy(params, l->params,
               info->params[own - 1].param_offset + info->params[own - 1].size_bytes);
    if (f->fence)
        fence_params(f, params + info->params[own].param_offset);
    struct ws_ptx_ctl ctl = {0};
    assert_true(ws_ptx_shape_set(&ctl.grid, grid));
    uint32_t width = l->co_resident ? l->co_resident : 1;
    *f->control = (struct fix_control){0};
    f->rewritten_n++;
    if (whole)
        run_grid(f, l, kernel, grid, params, 0);
    else if (f->rewrite != WS_REWRITE_SLICE && width < 32)
        probe(f, l, kernel, params, ctl);
    for (uint32_t done = WS_MIN(f->control->ticket, ctl.grid.total);
         !whole && done < ctl.grid.total && !f->error;) {
        uint32_t left = ctl.grid.total - done, blocks = left, raise = 0;
        if (f->rewrite == WS_REWRITE_SLICE) {
            blocks = random_to(f, left);
            ctl.offset = done;
        } else {
            ctl.ticket = f->control_va + offsetof(struct fix_control, ticket);
            ctl.flag = f->control_va + offsetof(struct fix_control, flag);
            ctl.mask =
                random_to(f, 2) == 1 ? f->control_va + offsetof(struct fix_control, mask) : 0;
            f->control->mask[0] = random_to(f, (1u << width) - 1);
            raise = random_to(f, 3) == 1 ? 0 : random_to(f, 2 * left);
            if (f->rewrite == WS_REWRITE_PERSISTENT)
                blocks = WS_MAX(random_to(f, left), WS_MIN(width, left));
            blocks = ctl.mask ? blocks + width : blocks; /* some will leave at once */
            f->control->flag = 0;
        }
        memcpy(params + at, &ctl, sizeof(ctl));
        run_grid(f, l, kernel, (uint32_t[3]){blocks, 1, 1}, params, raise);
        done = f->rewrite == WS_REWRITE_SLICE ? done + blocks
                                              : WS_MIN(f->control->ticket, ctl.grid.total);
        f->resumed_n += done < ctl.grid.total;
    }
    free(params);
    if (f->fence && f->ranges->fault[0] && !f->error) { /* as the daemon would tell it */
        f->error = WS_DEV_E_ILLEGAL_ADDRESS;
        snprintf(f->text, sizeof(f->text), "fenced off: 0x%llx",
                 (unsigned long long)f->ranges->fault[1]);
    }
    return f->error;
}

/* The work is one member's of three, which one is random; blocks of the others are dealt, and have
 * nothing to do. */
static enum ws_dev_error launch_fused(struct fix *f, const struct launch *l, uint32_t kernel,
                                      const struct ws_ptx_fused *made, const uint32_t grid[3])
{
    uint32_t n, real = random_to(f, 3) - 1, original, most = 1;
    const struct ws_kernel_info *info = &ws_code_kernels(f->code, &n)[kernel];
    const struct ws_kernel_info *own = fix_kernel(f, l->kernel, &original);
    const struct ws_ptx_var *last = &info->params[info->n_params - 1];
    uint8_t *params = calloc(1, info->param_bytes);
    assert_non_null(params);
    assert_int_equal(info->param_bytes, made->param_bytes);
    assert_int_equal(last->param_offset, made->header);
    if (own->n_params)
        memcpy(params + made->member[real].param, l->params, own->param_bytes);
    struct ws_ptx_fuse *h = (struct ws_ptx_fuse *)(params + made->header);
    assert_int_equal(last->size_bytes, sizeof(*h) + 3 * sizeof(h->member[0]));
    for (uint32_t k = 0; k < 3; k++) {
        struct ws_ptx_fuse_member *w = &h->member[k];
        uint32_t block[3] = {l->block[0], WS_MAX(l->block[1], 1u), WS_MAX(l->block[2], 1u)};
        if (k != real && !made->same_block)
            block[0] = random_to(f, 40), block[1] = random_to(f, 2), block[2] = random_to(f, 2);
        w->share = random_to(f, 4) - (k != real);
        w->first = h->round;
        h->round += w->share;
        assert_true(ws_ptx_shape_set(&w->block, block));
        assert_true(ws_ptx_shape_set(&w->grid, grid));
        w->threads = w->block.total;
        w->total =
            k == real ? w->grid.total : 0; /* the others' blocks are dealt, and end at once */
        most = WS_MAX(most, w->threads);
    }
    uint32_t total = h->member[real].total, share = h->member[real].share;
    struct launch fused = *l;
    if (!made->same_block) {
        fused.block[0] = most;
        fused.block[1] = fused.block[2] = 1;
    }
    f->rewritten_n++;
    run_grid(f, &fused, kernel, (uint32_t[3]){h->round, (total + share - 1) / share, 1}, params, 0);
    free(params);
    return f->error;
}

static const struct ws_ptx_fused *fused_of(struct fix *f, uint32_t kernel)
{
    char name[300];
    uint32_t n;
    snprintf(name, sizeof(name), "%s$fuse", ws_code_kernels(f->code, &n)[kernel].name);
    for (unsigned k = 0; k < f->n_fused; k++)
        if (!strcmp(f->fused[k].name, name))
            return &f->fused[k].made;
    fail_msg("%s was not made", name);
    return NULL;
}

static enum ws_dev_error launch_one(struct fix *f, const struct launch *l)
{
    uint32_t grid[3] = {l->grid[0], WS_MAX(l->grid[1], 1u), WS_MAX(l->grid[2], 1u)}, kernel;
    fix_kernel(f, l->kernel, &kernel);
    f->work = (struct ws_exec_work){0};
    f->error = WS_DEV_OK;
    int64_t rewritten = rewritten_index(f, l->kernel);
    bool flat = l->block[1] <= 1 && l->block[2] <= 1;
    if (rewritten >= 0 && f->fuse) {
        const struct ws_ptx_fused *made = fused_of(f, kernel);
        if ((grid[1] * grid[2] > 1 && made->member[0].flat_grid) ||
            (!flat && made->member[0].flat_block))
            return run_grid(f, l, kernel, grid, l->params, 0);
        return launch_fused(f, l, (uint32_t)rewritten, made, grid);
    }
    if (rewritten >= 0 && (flat || !f->flat_only))
        return launch_rewritten(f, l, (uint32_t)rewritten, grid);
    return run_grid(f, l, kernel, grid, l->params, 0);
}

/* The launch of the original, from memory as it was; then memory as it is. */
static void launch_plain(struct fix *f, const struct launch *l, uint8_t *const *before, unsigned n)
{
    struct fix was = *f;
    f->code = f->plain;
    f->m = f->plain_m;
    f->rewrite = WS_REWRITE_NONE;
    f->fence = f->fuse = false;
    for (unsigned k = 0; k < n; k++) {
        uint8_t *after = malloc(f->bufs[k].bytes);
        assert_non_null(after);
        memcpy(after, f->bufs[k].host, f->bufs[k].bytes);
        memcpy(f->bufs[k].host, before[k], f->bufs[k].bytes);
        memcpy(before[k], after, f->bufs[k].bytes);
        free(after);
    }
    enum ws_dev_error plain = launch_one(f, l);
    /* The original reads texels at any address; the GPU's loads don't. */
    bool misaligned = was.error && strstr(was.text, "xfffffffffffff038");
    if (!plain && was.error && !misaligned)
        fail_msg("replaced: error %d %s, and none of the original", was.error, was.text);
    for (unsigned k = 0; k < n; k++) {
        bool control = f->bufs[k].va == f->control_va || f->bufs[k].va == f->ranges_va;
        if (!plain && !control && !misaligned && !f->unordered)
            assert_memory_equal(f->bufs[k].host, before[k], f->bufs[k].bytes);
        memcpy(f->bufs[k].host, before[k], f->bufs[k].bytes);
    }
    uint64_t compared_n = f->compared_n + (!plain && !misaligned);
    *f = was;
    f->compared_n = compared_n;
}

enum ws_dev_error fix_launch(struct fix *f, const struct launch *l)
{
    uint8_t *before[FIX_MAX_BUFS];
    unsigned n = f->n_bufs;
    if (!f->texture)
        return launch_one(f, l);
    for (unsigned k = 0; k < n; k++) {
        before[k] = malloc(f->bufs[k].bytes);
        assert_non_null(before[k]);
        memcpy(before[k], f->bufs[k].host, f->bufs[k].bytes);
    }
    (void)launch_one(f, l);
    launch_plain(f, l, before, n);
    for (unsigned k = 0; k < n; k++)
        free(before[k]);
    return f->error;
}

void fix_run(struct fix *f, const struct launch *l)
{
    if (fix_launch(f, l) != WS_DEV_OK) {
        print_error("%s: error %d: %s\n", l->kernel, f->error, f->text);
        fail();
    }
}

void fix_block(struct fix *f, unsigned n_threads, const void *params, enum ws_dev_error want)
{
    const struct launch l = {.kernel = "k", .grid = {1}, .block = {n_threads}, .params = params};
    enum ws_dev_error e = fix_launch(f, &l);
    if (e != want)
        print_error("%s\n", f->text);
    assert_int_equal(e, want);
}
