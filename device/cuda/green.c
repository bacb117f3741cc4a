// SPDX-License-Identifier: Apache-2.0
/* Sets of SMs that the GPU itself keeps a launch to: green contexts, in the driver's granularity.
 *
 * The GPU's SMs are split once into groups of the smallest size; the SMs that are left over are a
 * group, too. Every green context is made of groups of that one split, since the results of
 * different splits overlap. The interface does not tell which SMs a group has. So a small kernel
 * reads %smid in each group when the device is opened. A group in which that fails is not used. If
 * what was read disagrees with the groups' sizes, or two groups share an SM, no green context is
 * used. The same is tried there that launches will do: the driver's documentation does not say
 * whether events of the primary context may be recorded in a green context's streams. A launch with
 * a set of SMs gets the groups that lie entirely in the set; if there is none, it gets the whole
 * GPU.
 *
 * A launch that goes by tickets needs no green context. But where whole groups make up exactly its
 * set, it gets one: then all its blocks begin on SMs of the set, and it is launched once, not in
 * waves.
 *
 * Contexts are kept, each with the streams that queues have made in it, until the device is closed:
 * destroying one that has a stream is an error. No green context is ever made current. Making
 * contexts and streams may block, so the starter thread does it; what is there already is used on
 * any thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

enum { MAX_GROUPS = WS_SM_MAX, MAX_GREEN = 64, MAX_ANSWERS = 32 };

struct ws_cuda_green {
    struct ws_cuda_green *next;
    struct ws_sm_set sms;
    ws_cu_green context;
    ws_cu_stream *idle; /* streams in it that no queue has */
    size_t n_idle, cap_idle;
};
/* Which context a set of SMs gets. */
struct green_answer {
    struct ws_sm_set set;
    bool exactly;                /* it was asked for all SMs of the set, no fewer */
    struct ws_cuda_green *green; /* NULL: none */
};
struct ws_cuda_greens {
    pthread_mutex_t lock;
    uint32_t n_groups;
    struct ws_cu_resource *groups; /* [n_groups], of one split */
    struct ws_sm_set *sms;         /* [n_groups]: the SMs of each */
    bool useless;                  /* set when the device is opened */
    struct ws_cuda_green *list;
    uint32_t n;
    struct green_answer answers[MAX_ANSWERS]; /* the last ones that were found, in a ring */
    uint32_t n_answers;
};

/* Each block notes on which SM it runs, and runs for a while, so that other blocks go to other
 * SMs. */
static const char where_ptx[] =
    ".version 6.3\n.target sm_50\n.address_size 64\n"
    ".visible .entry where(.param .u64 seen)\n{\n"
    ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [seen];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %smid;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nmov.u32 %r2, 0;\n"
    "L:\nst.volatile.global.u32 [%rd3], 1;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p, %r2, 300;\n"
    "@%p bra L;\nret;\n}\n";

/* ---- groups ---- */

static bool has_calls(const struct ws_cu *c)
{
    return c->cuDeviceGetDevResource && c->cuDevSmResourceSplitByCount &&
           c->cuDevResourceGenerateDesc && c->cuGreenCtxCreate && c->cuGreenCtxDestroy &&
           c->cuGreenCtxStreamCreate;
}

/* The smallest group, in SMs. Drivers that do not tell it: the guideline of NVIDIA's
 * documentation. */
static uint32_t least(const struct ws_cuda *d, const struct ws_cu_resource *all)
{
    uint32_t cc = d->base.spec.cc_major;
    if (all->sm.min_partition)
        return all->sm.min_partition;
    if (cc >= 9)
        return 8;
    return cc == 8 ? 4 : 2;
}

static ws_cu_result split(struct ws_cuda *d, struct ws_cuda_greens *g, uint32_t *ret_each)
{
    struct ws_cu_resource all = {0}, rest = {0};
    ws_cu_result r = WS_CU(d, cuDeviceGetDevResource, d->device, &all, WS_CU_DEV_RESOURCE_TYPE_SM);
    unsigned n = 0;
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuDevSmResourceSplitByCount, NULL, &n, &all, NULL, 0, least(d, &all));
    if (r == WS_CU_SUCCESS && (!n || n > MAX_GROUPS - 1))
        r = WS_CU_NOT_SUPPORTED;
    if (r == WS_CU_SUCCESS) {
        g->groups = ws_alloc_array(n + (size_t)1, sizeof(*g->groups));
        g->sms = ws_alloc_array(n + (size_t)1, sizeof(*g->sms));
        r = g->groups && g->sms ? WS_CU_SUCCESS : WS_CU_OUT_OF_MEMORY;
    }
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuDevSmResourceSplitByCount, g->groups, &n, &all, &rest, 0, least(d, &all));
    if (r != WS_CU_SUCCESS)
        return r;
    *ret_each = g->groups[0].sm.count;
    g->n_groups = n;
    if (rest.type == WS_CU_DEV_RESOURCE_TYPE_SM && rest.sm.count)
        g->groups[g->n_groups++] = rest;
    return WS_CU_SUCCESS;
}

/* ---- which SMs the groups have ---- */

static ws_cu_result context_new(struct ws_cuda *d, struct ws_cu_resource *groups, uint32_t n,
                                ws_cu_green *ret)
{
    ws_cu_desc desc = NULL;
    ws_cu_result r = WS_CU(d, cuDevResourceGenerateDesc, &desc, groups, n);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuGreenCtxCreate, ret, desc, d->device, WS_CU_GREEN_CTX_DEFAULT_STREAM);
    return r;
}

static ws_cu_result run_where(struct ws_cuda *d, ws_cu_function f, ws_cu_stream s, ws_cu_ptr va,
                              uint32_t *seen)
{
    const struct ws_gpu_spec *spec = &d->base.spec;
    size_t bytes = sizeof(va);
    void *extra[] = {WS_CU_LAUNCH_PARAM_BUFFER_POINTER, &va, WS_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     WS_CU_LAUNCH_PARAM_END};
    struct ws_cu_launch_config c = {
        .grid = {spec->n_sms * spec->max_blocks_per_sm, 1, 1}, .block = {32, 1, 1}, .stream = s};
    const struct ws_cuda_queue *q = d->queues[0]; /* nothing runs yet */
    float ms;
    ws_cu_result r = WS_CU(d, cuMemsetD8Async, va, 0, WS_SM_MAX * sizeof(*seen), s);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventRecord, q->begin, s);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuLaunchKernelEx, &c, f, NULL, extra);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventRecord, q->end, s);
    if (r == WS_CU_SUCCESS && d->flag_stream)
        r = WS_CU(d, cuStreamWriteValue32, s, q->control_va, 0, 0);
    ws_cu_result e = ws_cuda_drain(d, s);
    r = r != WS_CU_SUCCESS ? r : e;
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventElapsedTime, &ms, q->begin, q->end);
    return r != WS_CU_SUCCESS ? r : WS_CU(d, cuMemcpyDtoH, seen, va, WS_SM_MAX * sizeof(*seen));
}

static ws_cu_result learn_group(struct ws_cuda *d, ws_cu_function f, ws_cu_ptr va,
                                struct ws_cu_resource *group, struct ws_sm_set *ret)
{
    uint32_t seen[WS_SM_MAX] = {0};
    ws_cu_green context = NULL;
    ws_cu_stream s = NULL;
    ws_cu_result r = context_new(d, group, 1, &context);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuGreenCtxStreamCreate, &s, context, WS_CU_STREAM_NON_BLOCKING, 0);
    if (r == WS_CU_SUCCESS)
        r = run_where(d, f, s, va, seen);
    if (s)
        (void)WS_CU(d, cuStreamDestroy, s);
    if (context)
        (void)WS_CU(d, cuGreenCtxDestroy, context);
    for (unsigned sm = 0; r == WS_CU_SUCCESS && sm < WS_SM_MAX; sm++)
        if (seen[sm])
            ws_sm_set_add(ret, sm);
    return r;
}

/* Whether the groups have the sizes that the driver says, and share no SM. */
static bool plausible(const struct ws_cuda *d, const struct ws_cuda_greens *g)
{
    struct ws_sm_set all = {0};
    for (uint32_t k = 0; k < g->n_groups; k++) {
        if (g->sms[k].n && g->sms[k].n != g->groups[k].sm.count)
            return false;
        for (unsigned sm = 0; sm < WS_SM_MAX; sm++) {
            if (!ws_sm_set_has(&g->sms[k], sm))
                continue;
            if (sm >= d->base.spec.n_sms || ws_sm_set_has(&all, sm))
                return false;
            ws_sm_set_add(&all, sm);
        }
    }
    return true;
}

static void learn(struct ws_cuda *d, struct ws_cuda_greens *g)
{
    ws_cu_module m = NULL;
    ws_cu_function f = NULL;
    ws_cu_ptr va = 0;
    char text[64];
    ws_cu_result r = WS_CU(d, cuModuleLoadDataEx, &m, where_ptx, 0, NULL, NULL);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuModuleGetFunction, &f, m, "where");
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuMemAlloc, &va, WS_SM_MAX * sizeof(uint32_t));
    /* A group that the driver makes no context of is not used; another may do. */
    uint32_t n = 0;
    ws_cu_result last = r;
    for (uint32_t k = 0; r == WS_CU_SUCCESS && k < g->n_groups; k++) {
        last = learn_group(d, f, va, &g->groups[k], &g->sms[k]);
        n += last == WS_CU_SUCCESS;
        r = ws_cuda_is_sticky(last) ? last : r;
    }
    r = n ? r : last;
    if (va)
        (void)WS_CU(d, cuMemFree, va);
    if (m)
        (void)WS_CU(d, cuModuleUnload, m);
    g->useless = r != WS_CU_SUCCESS || !plausible(d, g);
    if (g->useless)
        ws_log(WS_WARN, "cuda: gpu=%u green contexts are not used: %s", d->base.index,
               r != WS_CU_SUCCESS ? ws_cu_result_name(r, text, sizeof(text))
                                  : "%smid disagrees with their SMs");
}

/* ---- using them. g->lock held ---- */

/* The groups that lie entirely in @set. @ret: [n_groups]. Return: how many. */
static uint32_t choose(const struct ws_cuda_greens *g, const struct ws_sm_set *set,
                       struct ws_cu_resource *ret, struct ws_sm_set *ret_sms)
{
    uint32_t n = 0;
    *ret_sms = (struct ws_sm_set){0};
    for (uint32_t k = 0; k < g->n_groups; k++) {
        bool in = g->sms[k].n;
        for (unsigned sm = 0; in && sm < WS_SM_MAX; sm++)
            in = !ws_sm_set_has(&g->sms[k], sm) || ws_sm_set_has(set, sm);
        for (unsigned sm = 0; in && sm < WS_SM_MAX; sm++)
            if (ws_sm_set_has(&g->sms[k], sm))
                ws_sm_set_add(ret_sms, sm);
        if (in)
            ret[n++] = g->groups[k];
    }
    return n;
}

static struct ws_cuda_green *find(const struct ws_cuda_greens *g, const struct ws_sm_set *sms)
{
    struct ws_cuda_green *x = g->list;
    while (x && memcmp(x->sms.bits, sms->bits, sizeof(sms->bits)) != 0)
        x = x->next;
    return x;
}

/* The context of the groups that lie in @set, made if it is not there. @exactly: they must make up
 * all of it. Return: NULL: there is none. */
static struct ws_cuda_green *context_for(struct ws_cuda *d, const struct ws_sm_set *set,
                                         bool exactly)
{
    struct ws_cuda_greens *g = d->greens;
    struct ws_sm_set sms;
    struct ws_cu_resource *groups = ws_alloc_array(g->n_groups, sizeof(*groups));
    uint32_t n = groups ? choose(g, set, groups, &sms) : 0;
    if (n && exactly && sms.n != set->n)
        n = 0;
    struct ws_cuda_green *x = n ? find(g, &sms) : NULL;
    if (n && !x && g->n < MAX_GREEN && (x = ws_alloc(sizeof(*x)))) {
        x->sms = sms;
        if (context_new(d, groups, n, &x->context) == WS_CU_SUCCESS) {
            x->next = g->list;
            g->list = x;
            g->n++;
        } else {
            free(x);
            x = NULL;
        }
    }
    free(groups);
    return x;
}

/* What was answered to the same question; NULL: it was not asked lately. */
static const struct green_answer *known(const struct ws_cuda_greens *g, const struct ws_sm_set *set,
                                        bool exactly)
{
    for (uint32_t k = 0; k < WS_MIN(g->n_answers, (uint32_t)MAX_ANSWERS); k++) {
        const struct green_answer *a = &g->answers[k];
        if (a->exactly == exactly && !memcmp(a->set.bits, set->bits, sizeof(set->bits)))
            return a;
    }
    return NULL;
}

static const struct green_answer *ask(struct ws_cuda *d, const struct ws_sm_set *set, bool exactly)
{
    struct ws_cuda_greens *g = d->greens;
    struct green_answer *a = &g->answers[g->n_answers++ % MAX_ANSWERS];
    *a = (struct green_answer){*set, exactly, context_for(d, set, exactly)};
    return a;
}

/* Gives the queue's stream back to its context: to destroy it, the driver might wait for the GPU.
 * Nothing runs in the queue. */
static void give_stream(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    struct ws_cuda_green *x = q->green_of;
    ws_cuda_green_leave(q);
    if (x && !ws_grow((void **)&x->idle, &x->cap_idle, x->n_idle + 1, sizeof(*x->idle)))
        x->idle[x->n_idle++] = q->green;
    else if (q->green)
        (void)WS_CU(d, cuStreamDestroy, q->green);
    q->green = NULL;
    q->green_of = NULL;
}

/* The queue gets a stream in @x, if there is one or can be made. */
static void take_stream(struct ws_cuda *d, struct ws_cuda_queue *q, struct ws_cuda_green *x)
{
    give_stream(d, q);
    if (x->n_idle)
        q->green = x->idle[--x->n_idle];
    else if (WS_CU(d, cuGreenCtxStreamCreate, &q->green, x->context, WS_CU_STREAM_NON_BLOCKING,
                   0) != WS_CU_SUCCESS)
        return;
    q->green_of = x;
}

bool ws_cuda_green_enter(struct ws_cuda *d, struct ws_cuda_queue *q, const struct ws_sm_set *set,
                         bool exactly, bool may_block, uint32_t *ret_n)
{
    struct ws_cuda_greens *g = d->greens;
    *ret_n = 0;
    if (!g || g->useless)
        return true;
    /* Whoever has the lock may be making a context. */
    if (may_block)
        pthread_mutex_lock(&g->lock);
    else if (pthread_mutex_trylock(&g->lock))
        return false;
    const struct green_answer *a = known(g, set, exactly);
    if (!a && may_block)
        a = ask(d, set, exactly);
    struct ws_cuda_green *x = a ? a->green : NULL;
    if (x && q->green_of != x && (may_block || x->n_idle))
        take_stream(d, q, x);
    if (x && q->green_of == x) {
        q->stream = q->green;
        *ret_n = x->sms.n;
    }
    pthread_mutex_unlock(&g->lock);
    return may_block || (a && (!x || *ret_n));
}

void ws_cuda_green_leave(struct ws_cuda_queue *q)
{
    q->stream = q->plain;
}

/* ---- opening and closing ---- */

int ws_cuda_green_open(struct ws_cuda *d)
{
    struct ws_cuda_greens *g = NULL;
    uint32_t each = 0;
    char text[64];
    if (!has_calls(&d->cu)) {
        ws_cuda_say(d, "green contexts", false, "the driver is older than CUDA 12.5 and has none");
        return 0;
    }
    g = ws_alloc(sizeof(*g));
    if (!g)
        return ws_raise(-ENOMEM);
    pthread_mutex_init(&g->lock, NULL);
    d->greens = g;
    ws_cu_result r = split(d, g, &each);
    g->useless = r != WS_CU_SUCCESS;
    if (ws_cuda_is_sticky(r))
        return WS_CUDA_E_MISSING;
    if (g->useless)
        ws_cuda_say(d, "green contexts", false, "the driver cannot split the SMs: %s",
                    ws_cu_result_name(r, text, sizeof(text)));
    else
        learn(d, g);
    if (d->lost)
        return WS_CUDA_E_MISSING;
    if (r == WS_CU_SUCCESS && g->useless)
        ws_cuda_say(d, "green contexts", false, "it cannot be seen which SMs they have");
    else if (r == WS_CU_SUCCESS)
        ws_cuda_say(d, "green contexts", true, "for sets of whole groups: %u groups of %u SMs%s",
                    g->n_groups, each,
                    g->groups[g->n_groups - 1].sm.count != each ? ", except the last" : "");
    return 0;
}

void ws_cuda_green_close(struct ws_cuda *d)
{
    struct ws_cuda_greens *g = d->greens;
    if (!g)
        return;
    for (struct ws_cuda_green *x = g->list, *next; x; x = next) {
        next = x->next;
        for (size_t k = 0; k < x->n_idle; k++)
            (void)d->cu.cuStreamDestroy(x->idle[k]);
        free(x->idle);
        (void)d->cu.cuGreenCtxDestroy(x->context);
        free(x);
    }
    pthread_mutex_destroy(&g->lock);
    free(g->groups);
    free(g->sms);
    free(g);
    d->greens = NULL;
}
