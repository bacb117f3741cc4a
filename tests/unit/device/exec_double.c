// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/exec_double.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "device/soft/exec/turns.h"

struct ws_code {
    struct ws_kernel_info kernel;
};
struct ws_blockrun {
    struct ws_grid *g;
    uint64_t linear, left;
    uint32_t n_joined;
    bool arrived, stuck;
};

_Atomic int double_n_states, double_n_states_max;
uint64_t double_block_bytes;

const struct ws_ptx_module *double_module(void)
{
    static const uint8_t init[16] = {1, 2, 3};
    static struct ws_ptx_init_sym syms[] = {
        {.offset = 8, .sym = WS_PTX_SYM_VAR | 1, .addend = 4, .bytes = 8}};
    static struct ws_ptx_var vars[] = {
        {.name = "a",
         .space = WS_SP_GLOBAL,
         .size_bytes = 16,
         .init = init,
         .init_bytes = sizeof(init),
         .n_init_syms = 1,
         .init_syms = syms},
        {.name = "b", .space = WS_SP_CONST, .size_bytes = 1024},
    };
    static struct ws_ptx_module m = {.n_vars = 2, .vars = vars};
    return &m;
}

int ws_code_new(struct ws_code **ret, const struct ws_ptx_module *m, uint32_t hardware_cc,
                struct ws_diags *diags)
{
    struct ws_code *c = ws_alloc(sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->kernel = (struct ws_kernel_info){.name = "k",
                                        .n_regs = 32,
                                        .param_bytes = sizeof(struct double_params),
                                        .static_shared_bytes = 1024};
    *ret = c;
    return 0;
}

/* Nothing of it is compiled. */
void ws_code_ref(struct ws_code *c)
{
    (void)c;
}

void ws_code_put(struct ws_code *c)
{
    (void)c;
}

struct ws_code *ws_code_free(struct ws_code *c)
{
    free(c);
    return NULL;
}

const struct ws_kernel_info *ws_code_kernels(const struct ws_code *c, uint32_t *ret_n)
{
    *ret_n = 1;
    return &c->kernel;
}

uint64_t ws_code_later_bytes(const struct ws_code *c)
{
    return 0;
}

uint64_t ws_code_block_bytes(const struct ws_code *c, uint32_t kernel, uint32_t n_threads,
                             uint32_t dyn_shared_bytes, uint32_t sm, uint32_t local_bytes_max)
{
    return double_block_bytes;
}

int ws_blockrun_new(struct ws_blockrun **ret, struct ws_grid *g)
{
    struct ws_blockrun *b = ws_alloc(sizeof(*b));
    if (!b)
        return -ENOMEM;
    b->g = g;
    int n = ++double_n_states;
    int max = double_n_states_max;
    while (n > max && !atomic_compare_exchange_weak(&double_n_states_max, &max, n))
        ;
    *ret = b;
    return 0;
}

struct ws_blockrun *ws_blockrun_free(struct ws_blockrun *b)
{
    if (b)
        double_n_states--;
    free(b);
    return NULL;
}

void ws_blockrun_start(struct ws_blockrun *b, uint64_t linear, uint32_t smid, uint32_t slot)
{
    const struct double_params *p = (const void *)b->g->params;
    b->linear = linear;
    b->left = p->n_insns;
    b->arrived = b->stuck = false;
    b->n_joined = 1;
    if (p->sm)
        p->sm[linear] = smid;
}

void ws_blockrun_join(struct ws_blockrun *const *blocks, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        blocks[k]->n_joined = n;
}

/* How many of the block's cluster have come; behind it, how many are being executed. */
static _Atomic int *met(const struct ws_blockrun *b)
{
    const struct double_params *p = (const void *)b->g->params;
    return p->flag + 2 * (b->linear / ws_grid_cluster_blocks(b->g));
}

bool ws_blockrun_is_stuck(const struct ws_blockrun *b)
{
    const struct double_params *p = (const void *)b->g->params;
    return b->stuck && !(p->kind == DOUBLE_MEET && (uint32_t)*met(b) == b->n_joined);
}

uint64_t ws_blockrun_n_opened(const struct ws_blockrun *b)
{
    (void)b;
    return 0;
}

static void fault(struct ws_grid *g, enum ws_dev_error e, const char *text, uint64_t block)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&g->fault_claimed, &none, 1))
        return;
    snprintf(g->text, sizeof(g->text), "%s in block %d", text, (int)block);
    atomic_store(&g->stop, (int)e);
}

void ws_blockrun_deadlock(struct ws_blockrun *b)
{
    fault(b->g, WS_DEV_E_LAUNCH_FAILURE, "deadlock", b->linear);
}

/* Clusters here are along x. */
uint64_t ws_grid_in_clusters(const struct ws_grid *g, uint64_t k)
{
    (void)g;
    return k;
}

uint64_t ws_blockrun_n_looked(const struct ws_blockrun *b)
{
    const struct double_params *p = (const void *)b->g->params;
    return p->kind == DOUBLE_POLL;
}

/* A turn of waiting: loads and compares. Seen by the interpreter if it is shorter than the
 * budget. */
static enum ws_step spin(uint64_t budget, struct ws_exec_work *w)
{
    w->n_warp_insns[WS_WORK_INT] += budget - budget / 4;
    w->n_warp_insns[WS_WORK_LDST] += budget / 4;
    w->n_global_loads += budget / 4;
    w->n_load_sectors += budget / 4;
    w->n_thread_insns += budget * 32;
    return WS_STEP_MORE;
}

static enum ws_step work(struct ws_blockrun *b, const struct double_params *p, uint64_t budget,
                         struct ws_exec_work *w)
{
    uint64_t n = WS_MIN(b->left, budget);
    w->n_warp_insns[WS_WORK_FP32] += n;
    w->n_thread_insns += n * 32;
    b->left -= n;
    if (b->left)
        return WS_STEP_MORE;
    w->n_global_loads += p->n_loads;
    w->n_load_sectors += p->n_sectors;
    if (p->ran)
        p->ran[b->linear]++;
    return WS_STEP_DONE;
}

static enum ws_step meet(struct ws_blockrun *b, const struct double_params *p, uint64_t budget,
                         struct ws_exec_work *w)
{
    enum { TURN_INSNS = 100 };
    uint32_t n = ws_grid_cluster_blocks(b->g);
    _Atomic int *at = met(b), *inside = at + 1;
    if (b->n_joined != n || atomic_fetch_add(inside, 1))
        fault(b->g, WS_DEV_E_LAUNCH_FAILURE, "not one of a cluster at a time", b->linear);
    if (!b->arrived)
        ++*at;
    b->arrived = true;
    b->stuck = (uint32_t)*at < n;
    enum ws_step step = b->stuck ? WS_STEP_MORE : work(b, p, WS_MIN(budget, TURN_INSNS), w);
    atomic_fetch_sub(inside, 1);
    return step;
}

enum ws_step ws_blockrun_step(struct ws_blockrun *b, uint64_t budget, struct ws_exec_work *w)
{
    const struct double_params *p = (const void *)b->g->params;
    uint64_t n_blocks = (uint64_t)b->g->grid[0] * b->g->grid[1] * b->g->grid[2];
    if (atomic_load(&b->g->stop))
        return WS_STEP_STOPPED;
    switch (p->kind) {
    case DOUBLE_WORK:
        return work(b, p, budget, w);
    case DOUBLE_WAIT:
    case DOUBLE_POLL:
        return *p->flag ? work(b, p, budget, w) : spin(budget / 8, w);
    case DOUBLE_GATE:
        while ((uint64_t)*p->flag <= b->linear)
            sched_yield();
        return work(b, p, budget, w);
    case DOUBLE_CHAIN:
        return b->linear + 1 == n_blocks || p->ran[b->linear + 1] ? work(b, p, budget, w)
                                                                  : spin(budget, w);
    case DOUBLE_BARRIER:
        if (!b->arrived)
            ++*p->flag;
        b->arrived = true;
        return (uint64_t)*p->flag >= n_blocks ? work(b, p, budget, w) : spin(budget, w);
    case DOUBLE_SET:
        *p->flag = 1;
        return work(b, p, budget, w);
    case DOUBLE_ENDLESS:
        w->n_warp_insns[WS_WORK_FP32] += budget;
        w->n_thread_insns += 32 * budget;
        return WS_STEP_MORE;
    case DOUBLE_SLEEP:
        nanosleep(&(struct timespec){.tv_sec = (time_t)(p->n_insns / 1000000),
                                     .tv_nsec = (long)(p->n_insns % 1000000 * 1000)},
                  NULL);
        b->left = 1;
        return work(b, p, budget, w);
    case DOUBLE_MEET:
        return meet(b, p, budget, w);
    case DOUBLE_STUCK:
        b->stuck = true;
        return WS_STEP_MORE;
    case DOUBLE_FAULT:
        if (b->linear == p->n_insns) {
            fault(b->g, WS_DEV_E_ILLEGAL_ADDRESS, "illegal address", b->linear);
            return WS_STEP_STOPPED;
        }
        w->n_warp_insns[WS_WORK_FP32] += budget;
        w->n_thread_insns += 32 * budget;
        return WS_STEP_MORE;
    }
    return WS_STEP_STOPPED;
}

int ws_code_inspect(struct ws_code *c)
{
    return 0;
}

const char *ws_exec_isa(void)
{
    return "double";
}

uint32_t ws_blockrun_run(struct ws_blockrun *b, struct ws_block_ask *asks, uint32_t n,
                         uint64_t max_warp_insns, uint64_t max_all)
{
    uint32_t k = 0;
    do {
        ws_blockrun_start(b, asks[k].linear, asks[k].smid, asks[k].slot);
        asks[k].step = ws_blockrun_step(b, max_warp_insns, asks[k].work);
    } while (asks[k++].step == WS_STEP_DONE && k < n);
    return k;
}

/* Compiled code asks for it, of which there is none here. */
bool ws_exec_begin_alike(struct ws_blockrun *b, int64_t budget)
{
    (void)b;
    (void)budget;
    return false;
}

/* Nor has it rows. */
void ws_exec_fill_rows(struct ws_blockrun *b)
{
    (void)b;
}

void ws_exec_forget_rows(struct ws_blockrun *b)
{
    (void)b;
}
