// SPDX-License-Identifier: Apache-2.0
/* Whether a kernel may be rewritten, and why not.
 *
 * Slice and ticket leave each block as it was. So only what knows of other blocks forbids them:
 * grid synchronisation (%envreg, which cooperative groups use), loops that wait for another block,
 * clusters, block numbers that functions read, and what would notice the slot in shared memory.
 *
 * The loop of persistent must not begin the next block in one thread while another thread of the
 * block is still on its way to a barrier of this one. It is safe if no divergent branch has one
 * way that can end the thread and another that can come to a synchronisation, each without passing
 * a synchronisation before. Warp-level synchronisation counts too: its mask leaves out lanes that
 * have ended, but not lanes that wait at the head of the loop. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/pass.h"

enum { PARAM_BYTES_MAX = 4352, STATIC_SHARED_MAX = 48 * 1024, SLOT_BYTES = 64 };

struct check {
    const struct ws_ptx_module *m;
    const struct ws_ptx_func *f;
    enum ws_ptx_rewrite kind;
    bool *reached;   /* functions that the kernel may call */
    int *func_sync;  /* enum sync_scope: the strongest in each function and what it calls */
    bool flat_block; /* what was found holds for one-dimensional blocks */
    char *text;
    size_t text_bytes;
};

const char *ws_ptx_rewrite_name(enum ws_ptx_rewrite r)
{
    static const char *const names[_WS_REWRITE_N] = {"none", "slice", "ticket", "persistent"};
    return (unsigned)r < _WS_REWRITE_N ? names[r] : "?";
}

static bool has_sreg(const struct ws_ptx_operand *o, enum ws_ptx_sreg s)
{
    if (o->kind == WS_OPD_SREG && o->sreg == s)
        return true;
    for (uint16_t k = 0; k < o->n; k++)
        if (has_sreg(&o->v[k], s))
            return true;
    return false;
}

static bool reads_sreg(const struct ws_ptx_insn *i, enum ws_ptx_sreg s)
{
    for (uint8_t k = 0; k < i->n_operands; k++)
        if (has_sreg(&i->operands[k], s))
            return true;
    return false;
}

/* Special registers that forbid a rewriting, whether or not a slot is put into shared memory. */
static const struct {
    enum ws_ptx_sreg sreg;
    bool slot_only;
    const char *why;
} sregs[] = {
    {WS_SR_ENVREG, false, "%envreg: synchronisation of the grid needs all blocks at once"},
    {WS_SR_CLUSTERID, false, "clusters of blocks"},
    {WS_SR_NCLUSTERID, false, "clusters of blocks"},
    {WS_SR_CLUSTER_CTAID, false, "clusters of blocks"},
    {WS_SR_CLUSTER_NCTAID, false, "clusters of blocks"},
    {WS_SR_CLUSTER_CTARANK, false, "clusters of blocks"},
    {WS_SR_CLUSTER_NCTARANK, false, "clusters of blocks"},
    {WS_SR_CURRENT_GRAPH_EXEC, false, "launches from the device"},
    {WS_SR_DYNAMIC_SMEM_SIZE, true, "%dynamic_smem_size would count the slot"},
    {WS_SR_TOTAL_SMEM_SIZE, true, "%total_smem_size would count the slot"},
    {WS_SR_AGGR_SMEM_SIZE, true, "%aggr_smem_size would count the slot"},
    {WS_SR_RESERVED_SMEM_OFFSET, true, "%reserved_smem_offset would move"},
};

static bool is_cluster_op(const struct ws_ptx_insn *i)
{
    bool other_block = i->flags & (WS_F_SP_CLUSTER | WS_F_SP2_CLUSTER);
    return ws_ptx_does(i, WS_DOES_CLUSTER) ||
           (other_block && (i->space == WS_SP_SHARED || i->space2 == WS_SP_SHARED));
}

/* What can't stand in the kernel or in a function it calls. */
static int check_insn(struct check *c, const struct ws_ptx_insn *i, bool in_entry)
{
    for (size_t k = 0; k < WS_ARRAY_SIZE(sregs); k++)
        if ((c->kind != WS_REWRITE_SLICE || !sregs[k].slot_only) && reads_sreg(i, sregs[k].sreg))
            return ws_ptx_refuse(c->text, c->text_bytes, i->line, "%s", sregs[k].why);
    if (is_cluster_op(i))
        return ws_ptx_refuse(c->text, c->text_bytes, i->line, "%s: clusters of blocks",
                             ws_ptx_op_name(i->op));
    bool reads = reads_sreg(i, WS_SR_CTAID) || reads_sreg(i, WS_SR_NCTAID);
    if (reads && !in_entry)
        return ws_ptx_refuse(c->text, c->text_bytes, i->line,
                             "a function reads the block's number");
    if (reads && (i->op != WS_OP_MOV && i->op != WS_OP_CVT))
        return ws_ptx_refuse(c->text, c->text_bytes, i->line, "the block's number is read by %s",
                             ws_ptx_op_name(i->op));
    if (reads && (i->vec > 1 || i->operands[1].sreg_dim > 2))
        return ws_ptx_refuse(c->text, c->text_bytes, i->line,
                             "the block's number is read as a vector");
    return 0;
}

/* ---- the loop ---- */
enum sync_scope { SYNC_NONE, SYNC_WARP, SYNC_BLOCK };

static enum sync_scope sync_of_op(const struct ws_ptx_insn *i)
{
    if (ws_ptx_does(i, WS_DOES_SYNC_BLOCK))
        return SYNC_BLOCK;
    return ws_ptx_does(i, WS_DOES_SYNC_WARP) ? SYNC_WARP : SYNC_NONE;
}

static enum sync_scope sync_of(const struct check *c, const struct ws_ptx_insn *i)
{
    int s = (int)sync_of_op(i);
    if (i->op == WS_OP_CALL && i->call->callee.kind == WS_OPD_SYM)
        s = c->func_sync[WS_PTX_SYM_INDEX(i->call->callee.sym)];
    for (uint32_t k = 0; i->op == WS_OP_CALL && i->call->callee.kind != WS_OPD_SYM; k++) {
        if (k == c->m->n_funcs)
            break;
        s = c->reached[k] ? WS_MAX(s, c->func_sync[k]) : s;
    }
    return (enum sync_scope)s;
}

/* The strongest synchronisation in each function that the kernel may come to. Least fixed point. */
static void find_func_sync(struct check *c)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < c->m->n_funcs; k++)
            for (uint32_t n = 0; c->reached[k] && n < c->m->funcs[k].n_insns; n++) {
                int s = (int)sync_of(c, &c->m->funcs[k].insns[n]);
                changed |= s > c->func_sync[k];
                c->func_sync[k] = WS_MAX(s, c->func_sync[k]);
            }
    }
}

/* From the start of each block, without passing a synchronisation (of that strength) before. */
struct reach {
    bool end[3], sync[3]; /* by the weakest kind that counts: SYNC_WARP, SYNC_BLOCK */
};

/* What block @b reaches, given what its successors do, where kinds from @least on count. */
static void block_reach(const struct check *c, const struct ws_ptx_cfg *cfg, uint32_t b,
                        enum sync_scope least, struct reach *r)
{
    const struct ws_ptx_block *block = &cfg->blocks[b];
    struct reach *now = &r[b];
    for (uint32_t k = block->first; k < block->first + block->n; k++) {
        const struct ws_ptx_insn *i = &c->f->insns[k];
        if (sync_of(c, i) >= least) {
            now->sync[least] = true;
            return;
        }
        if (ws_ptx_does(i, WS_DOES_LEAVE)) {
            now->end[least] = true;
            if (i->guard < 0)
                return;
        }
        if (i->op == WS_OP_TRAP && i->guard < 0)
            return;
    }
    now->end[least] |=
        block->first + block->n == c->f->n_insns && block->succ[0] < 0 && block->succ[1] < 0;
    for (int s = 0; s < 2; s++)
        if (block->succ[s] >= 0) {
            now->end[least] |= r[block->succ[s]].end[least];
            now->sync[least] |= r[block->succ[s]].sync[least];
        }
}

static void find_reach(const struct check *c, const struct ws_ptx_cfg *cfg, enum sync_scope least,
                       struct reach *r)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = cfg->n_blocks; b-- > 0;) {
            struct reach old = r[b];
            block_reach(c, cfg, b, least, r);
            changed |= old.end[least] != r[b].end[least] || old.sync[least] != r[b].sync[least];
        }
    }
}

/* The only instruction that writes register @reg, or NULL. */
static const struct ws_ptx_insn *only_definition(const struct ws_ptx_func *f, int32_t reg)
{
    const struct ws_ptx_insn *found = NULL;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (!ws_ptx_writes_first(i) || i->operands[0].kind != WS_OPD_REG ||
            i->operands[0].reg != reg)
            continue;
        if (found || i->guard >= 0)
            return NULL;
        found = i;
    }
    return found;
}

/* %tid.x compared with a multiple of the warp's size: in a one-dimensional block, whole warps go
 * one way. */
static bool parts_whole_warps(const struct ws_ptx_func *f, int32_t pred)
{
    const struct ws_ptx_insn *i = only_definition(f, pred);
    if (!i || i->op != WS_OP_SETP || i->n_operands != 3 || i->operands[1].kind != WS_OPD_REG ||
        i->operands[2].kind != WS_OPD_IMM)
        return false;
    const struct ws_ptx_insn *from = only_definition(f, i->operands[1].reg);
    if (!from || from->op != WS_OP_MOV || from->operands[1].kind != WS_OPD_SREG ||
        from->operands[1].sreg != WS_SR_TID || from->operands[1].sreg_dim != 0)
        return false;
    int64_t first = i->operands[2].imm; /* of the second group of threads */
    switch (i->cmp) {
    case WS_CMP_LT:
    case WS_CMP_GE:
    case WS_CMP_LO:
    case WS_CMP_HS:
        break;
    case WS_CMP_GT:
    case WS_CMP_LE:
    case WS_CMP_HI:
    case WS_CMP_LS:
        first++;
        break;
    default:
        return false;
    }
    return first % 32 == 0;
}

/* From the start of block @from to block @until, which is not looked at: the same. @seen:
 * [n_blocks], false; false again after. */
static void region_reach(const struct check *c, const struct ws_ptx_cfg *cfg, int32_t from,
                         int32_t until, enum sync_scope least, bool *seen, bool *end, bool *sync)
{
    if (from < 0 || from == until || seen[from])
        return;
    const struct ws_ptx_block *block = &cfg->blocks[from];
    seen[from] = true;
    for (uint32_t k = block->first; k < block->first + block->n; k++) {
        const struct ws_ptx_insn *i = &c->f->insns[k];
        *sync |= sync_of(c, i) >= least;
        *end |= ws_ptx_does(i, WS_DOES_LEAVE);
        if (sync_of(c, i) >= least ||
            (i->guard < 0 && (ws_ptx_does(i, WS_DOES_LEAVE) || i->op == WS_OP_TRAP)))
            return;
    }
    *end |= block->first + block->n == c->f->n_insns && block->succ[0] < 0 && block->succ[1] < 0;
    for (int s = 0; s < 2; s++)
        region_reach(c, cfg, block->succ[s], until, least, seen, end, sync);
}

/* Threads that go different ways at @last may come to be some at an end and some at a
 * synchronisation: one way has the one, before the ways meet, and the other has the other, there or
 * later. What both come to only after they have met parts nobody. */
static bool parts_badly(const struct check *c, const struct ws_ptx_cfg *cfg,
                        const struct ws_ptx_insn *last, const struct ws_ptx_block *block,
                        enum sync_scope least, const struct reach *r, bool *seen)
{
    bool end[2] = {false, false}, sync[2] = {false, false}, end_in[2] = {false, false},
         sync_in[2] = {false, false};
    for (int s = 0; s < 2; s++)
        if (block->succ[s] >= 0) {
            end[s] = r[block->succ[s]].end[least];
            sync[s] = r[block->succ[s]].sync[least];
        }
    if (ws_ptx_does(last, WS_DOES_LEAVE)) /* the way not followed by an edge */
        end[block->succ[0] >= 0] = end_in[block->succ[0] >= 0] = true;
    if (!(end[0] && sync[1]) && !(end[1] && sync[0]))
        return false;
    for (int s = 0; s < 2; s++) {
        region_reach(c, cfg, block->succ[s], block->ipdom, least, seen, &end_in[s], &sync_in[s]);
        memset(seen, 0, cfg->n_blocks * sizeof(*seen));
    }
    return (end_in[0] && sync[1]) || (end[0] && sync_in[1]) || (end_in[1] && sync[0]) ||
           (end[1] && sync_in[0]);
}

static int check_loop(struct check *c)
{
    struct ws_arena a = WS_ARENA_NULL;
    struct ws_ptx_cfg cfg;
    bool *divergent = NULL;
    struct reach *r = NULL;
    int e = ws_ptx_cfg_build(&cfg, c->f, &a);
    if (!e)
        e = ws_ptx_divergent_regs(c->f, &cfg, &a, &divergent);
    bool *seen = NULL;
    if (!e && (!(r = ws_arena_array(&a, (size_t)cfg.n_blocks + 1, sizeof(*r))) ||
               !(seen = ws_arena_array(&a, (size_t)cfg.n_blocks + 1, sizeof(*seen)))))
        e = ws_raise(-ENOMEM);
    find_func_sync(c);
    for (uint32_t k = 0; !e && k < c->f->n_insns; k++) {
        const struct ws_ptx_insn *i = &c->f->insns[k];
        if (ws_ptx_does(i, WS_DOES_ARRIVE))
            e = ws_ptx_refuse(c->text, c->text_bytes, i->line,
                              "a barrier that some threads only arrive at");
        else if (ws_ptx_does(i, WS_DOES_OUTLIVE))
            e = ws_ptx_refuse(c->text, c->text_bytes, i->line, "%s outlives the block",
                              ws_ptx_op_name((enum ws_ptx_op)i->op));
        else if (i->op == WS_OP_BRX_IDX)
            e = ws_ptx_refuse(c->text, c->text_bytes, i->line,
                              "brx.idx"); /* more ways than the blocks' two successors show */
        else if (sync_of(c, i) && i->guard >= 0 && divergent[i->guard])
            e = ws_ptx_refuse(c->text, c->text_bytes, i->line,
                              "%s under a condition that differs between threads",
                              ws_ptx_op_name((enum ws_ptx_op)i->op));
    }
    if (!e) {
        find_reach(c, &cfg, SYNC_WARP, r);
        find_reach(c, &cfg, SYNC_BLOCK, r);
    }
    for (uint32_t b = 0; !e && b < cfg.n_blocks; b++) {
        const struct ws_ptx_block *block = &cfg.blocks[b];
        const struct ws_ptx_insn *last = &c->f->insns[block->first + block->n - 1];
        if (last->guard < 0 || !divergent[last->guard] ||
            (last->op != WS_OP_BRA && !ws_ptx_does(last, WS_DOES_LEAVE)) ||
            !parts_badly(c, &cfg, last, block, SYNC_WARP, r, seen))
            continue;
        if (!parts_badly(c, &cfg, last, block, SYNC_BLOCK, r, seen) &&
            parts_whole_warps(c->f, last->guard))
            c->flat_block = true;
        else
            e = ws_ptx_refuse(c->text, c->text_bytes, last->line,
                              "some threads may end here while others go on to synchronise");
    }
    ws_arena_deinit(&a);
    return e;
}

static int check_func(struct check *c, const struct ws_ptx_func *f, bool in_entry)
{
    if (f->is_decl)
        return 0;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        int e = check_insn(c, &f->insns[k], in_entry);
        if (e)
            return e;
        /* Who goes outside ends there, and takes its block with it (ptx/passes/rewrite.c). */
        if (c->kind == WS_REWRITE_PERSISTENT && !in_entry && f->insns[k].op == WS_OP_EXIT &&
            f->fence != WS_PTX_FENCE_HELPER && !f->lib)
            return ws_ptx_refuse(c->text, c->text_bytes, f->insns[k].line,
                                 "a function ends the thread");
    }
    struct ws_arena a = WS_ARENA_NULL;
    struct ws_ptx_cfg cfg;
    const struct ws_ptx_insn *where = NULL;
    int e = ws_ptx_cfg_build(&cfg, f, &a);
    if (!e && !f->lib) /* whose loops end */
        e = ws_ptx_waits(c->m, f, &cfg, c->reached, &a, &where);
    if (!e && where)
        e = ws_ptx_refuse(c->text, c->text_bytes, where->line,
                          "a loop may wait for another block, which must then be resident");
    ws_arena_deinit(&a);
    return e;
}

/* Static shared memory, the module's and the kernel's. */
static uint64_t shared_bytes(const struct check *c)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < c->m->n_vars; k++)
        if (c->m->vars[k].space == WS_SP_SHARED)
            n += c->m->vars[k].size_bytes;
    for (uint32_t k = 0; k < c->f->n_vars; k++)
        if (c->f->vars[k].space == WS_SP_SHARED)
            n += c->f->vars[k].size_bytes;
    return n;
}

int ws_ptx_rewrite_refused(const struct ws_ptx_module *m, uint32_t func, enum ws_ptx_rewrite kind,
                           bool *ret_flat_block, char *ret_text, size_t text_bytes)
{
    struct check c = {
        .m = m, .f = &m->funcs[func], .kind = kind, .text = ret_text, .text_bytes = text_bytes};
    const struct ws_ptx_func *f = c.f;
    *ret_text = 0;
    if (!f->is_entry || f->is_decl)
        return ws_ptx_refuse(c.text, c.text_bytes, f->line, "no kernel");
    if (m->code)
        return ws_ptx_refuse(c.text, c.text_bytes, 0, "machine code");
    if (f->reqnctapercluster[0] || f->maxclusterrank || f->explicitcluster || f->blocksareclusters)
        return ws_ptx_refuse(c.text, c.text_bytes, f->line, "clusters of blocks");
    if (WS_ALIGN_UP(f->param_bytes, 8) + sizeof(struct ws_ptx_ctl) > PARAM_BYTES_MAX)
        return ws_ptx_refuse(c.text, c.text_bytes, f->line,
                             "%llu bytes of parameters leave no room for more",
                             (unsigned long long)f->param_bytes);
    if (kind != WS_REWRITE_SLICE && shared_bytes(&c) + SLOT_BYTES > STATIC_SHARED_MAX)
        return ws_ptx_refuse(c.text, c.text_bytes, f->line, "no room for a slot in shared memory");
    c.reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*c.reached));
    c.func_sync = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*c.func_sync));
    if (!c.reached || !c.func_sync) {
        free(c.reached);
        free(c.func_sync);
        return ws_raise(-ENOMEM);
    }
    int e = ws_ptx_mark_reached(m, f, c.reached);
    if (!e)
        e = check_func(&c, f, true);
    for (uint32_t k = 0; !e && k < m->n_funcs; k++)
        if (c.reached[k])
            e = check_func(&c, &m->funcs[k], false);
    if (!e && kind == WS_REWRITE_PERSISTENT)
        e = check_loop(&c);
    free(c.reached);
    free(c.func_sync);
    bool shaped = true;
    if (!e && kind != WS_REWRITE_SLICE)
        e = ws_ptx_reads_tid_yz(m, func, &shaped);
    *ret_flat_block = c.flat_block || !shaped;
    return e;
}
