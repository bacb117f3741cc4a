// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/jit.c - which code there is of a module's kernels, and how it is entered.
 *
 * LLVM's memory manager writes a function to pages that are not executable, and makes them
 * executable and read-only before they are run. */
#include "device/soft/jit/jit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/jit/emit.h"
#include "device/soft/jit/plan.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { LANES = 32, MX_DEFAULT = 0x1f80 };

/* A row of known shape that is live at an entry. */
struct claim {
    uint32_t off;
    uint8_t width;
    const int64_t *apart;
};

struct ws_jit_code {
    uint32_t (*run)(struct ws_core_ctx *c, uint32_t entry); /* NULL: not taken */
    const struct ws_exec_image *img;
    uint32_t block[3];
    struct claim **claims; /* by micro-op: ends with width 255; NULL: no entry */
    llvm_context cx;
    llvm_engine engine;
    struct ws_arena arena;
    struct ws_jit_code *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_jit_totals totals;

struct ws_jit_totals ws_jit_totals(void)
{
    pthread_mutex_lock(&lock);
    struct ws_jit_totals t = totals;
    pthread_mutex_unlock(&lock);
    return t;
}

bool ws_jit_wanted(void)
{
    const char *how = getenv("WS_SOFT_JIT");
    return how && strcmp(how, "always") == 0;
}

/* ---- called by compiled code ---- */
const struct ws_uop *ws_jit_handler(struct ws_core_ctx *c, const struct ws_uop *u)
{
    const struct ws_uop *next = u->fn(c, u);
    if (c->mx != MX_DEFAULT) {
        c->mx = MX_DEFAULT;
        __builtin_ia32_ldmxcsr(MX_DEFAULT);
    }
    return next;
}

void ws_jit_note(struct ws_core_ctx *c, uint64_t first, uint64_t last, uint64_t store)
{
    for (uint64_t line = first >> 7; line <= last >> 7; line++)
        if (ws_reuse_hash(line) < c->record_below) {
            uint32_t low = line == first >> 7 ? first >> 5 & 3 : 0;
            uint32_t high = line == last >> 7 ? last >> 5 & 3 : 3;
            ws_reuse_touch(c, line, (2u << high) - (1u << low), store);
        }
}

/* ---- running ---- */
/* Loops that the compiler makes vectors of: this is asked at every entry of a whole warp. */
#define HOLDS(T)                                                                                   \
    {                                                                                              \
        const T *v = (const T *)(const void *)row;                                                 \
        T differ = 0;                                                                              \
        for (int i = 0; i < LANES; i++)                                                            \
            differ |= v[i] ^ (T)(v[0] + (T)k->apart[i]);                                           \
        return differ == 0;                                                                        \
    }
static bool holds(const struct ws_core_ctx *c, const struct claim *k)
{
    const uint8_t *row = c->regs + k->off;
    switch (k->width) {
    case 1:
        HOLDS(uint8_t)
    case 2:
        HOLDS(uint16_t)
    case 4:
        HOLDS(uint32_t)
    case 8:
        HOLDS(uint64_t)
    default: {
        uint32_t word = *(const uint32_t *)(const void *)row;
        return word == 0 || word == ~0u;
    }
    }
}

static bool all_hold(const struct ws_core_ctx *c, const struct claim *k)
{
    for (; k->width != 255; k++)
        if (!holds(c, k))
            return false;
    return true;
}

/* As go() of the vector core. */
static bool enter_segment(struct ws_core_ctx *c, const struct ws_seg *seg)
{
    uint32_t lanes = (uint32_t)__builtin_popcount(c->active);
    if (seg->first >= c->limit || c->budget <= 0) {
        c->stop = WS_STOP_RESCHED;
        c->u = seg->first;
        c->enter = seg;
        return false;
    }
    c->budget -= seg->n_insns;
    for (int k = 0; k < 8; k++)
        c->cls[k] += seg->cls[k];
    for (int k = 0; k < 4; k++)
        c->unit[k] += seg->unit[k] * lanes;
    c->n_thread_insns += (uint64_t)seg->n_insns * lanes;
    return true;
}

void ws_jit_run(const struct ws_jit_code *j, struct ws_core_ctx *c, const struct ws_uop *u,
                const struct ws_seg *enter)
{
    const struct claim *claims = j->claims[u - j->img->uops];
    bool trusted = c->w->shaped;
    c->w->shaped = false;
    if (!claims) {
        c->b->g->code->isa->run(c, u, enter);
        return;
    }
    if (enter && !enter_segment(c, enter))
        return;
    bool whole = c->active == ~0u && (trusted || all_hold(c, claims));
    uint32_t k = (uint32_t)(u - j->img->uops);
    c->w->shaped = j->run(c, ws_jit_entry(k, whole ? WS_JIT_WHOLE : WS_JIT_MASKED)) != 0;
}

/* ---- compiling ---- */
static int keep_claims(struct ws_jit_code *j, const struct ws_jit_plan *p)
{
    uint64_t *live = ws_arena_array(&j->arena, p->n_words + (size_t)1, sizeof(*live));
    int64_t(*apart)[LANES] = ws_arena_array(&j->arena, p->n_rows + (size_t)1, sizeof(*apart));
    j->claims = ws_arena_array(&j->arena, p->img->n_uops + (size_t)1, sizeof(*j->claims));
    if (!live || !apart || !j->claims)
        return ws_raise(-ENOMEM);
    for (uint32_t r = 0; r < p->n_rows; r++)
        memcpy(apart[r], p->rows[r].apart, sizeof(apart[r]));
    for (uint32_t k = 0; k < p->img->n_uops; k++) {
        uint32_t n = 0;
        if (!ws_jit_enters(p, k))
            continue;
        struct claim *all = ws_arena_array(&j->arena, p->n_rows + (size_t)1, sizeof(*all));
        if (!all)
            return ws_raise(-ENOMEM);
        ws_jit_live_at(p, k, live);
        for (uint32_t r = 0; r < p->n_rows; r++)
            if (ws_jit_has(live, r) && !p->rows[r].fill && p->rows[r].shape == WS_SHAPE_KNOWN)
                all[n++] = (struct claim){p->rows[r].off, p->rows[r].width, apart[r]};
        all[n].width = 255;
        j->claims[k] = all;
    }
    return 0;
}

/* What the vector build that runs the handlers may use. */
static void set_target(struct ws_jit_emit *e, const char *isa)
{
    char *cpu = L.GetHostCPUName(), *features = L.GetHostCPUFeatures();
    const char *wide = strcmp(isa, "avx512") == 0 ? "512" : "256";
    const struct {
        const char *key, *value;
    } all[] = {
        {"target-cpu", strcmp(isa, "avx512") == 0 ? cpu : "x86-64"},
        {"target-features", strcmp(isa, "avx512") == 0 ? features
                            : strcmp(isa, "avx2") == 0 ? "+avx2,+fma,+popcnt,+lzcnt,+bmi"
                                                       : "+sse2"},
        {"prefer-vector-width", wide},
        {"min-legal-vector-width", wide},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++)
        L.AddAttributeAtIndex(e->fn, ~0u,
                              L.CreateStringAttribute(e->cx, all[k].key,
                                                      (unsigned)strlen(all[k].key), all[k].value,
                                                      (unsigned)strlen(all[k].value)));
    L.DisposeMessage(cpu);
    L.DisposeMessage(features);
}

static void show(struct ws_jit_emit *e)
{
    const char *path = getenv("WS_SOFT_JIT_DUMP");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    char *text = L.PrintModuleToString(e->mod);
    fputs(text, f);
    L.DisposeMessage(text);
    fclose(f);
}

/* Makes machine code of the module, which is the engine's from here on. */
static int finish(struct ws_jit_code *j, struct ws_jit_emit *e)
{
    struct llvm_mcjit_options o;
    char *text = NULL;
    L.InitializeMCJITCompilerOptions(&o, sizeof(o));
    o.opt_level = 2;
    o.code_model = LLVM_CODE_MODEL_JIT;
    if (L.CreateMCJITCompilerForModule(&j->engine, e->mod, &o, sizeof(o), &text)) {
        L.DisposeMessage(text);
        return ws_raise(-ENOMEM);
    }
    llvm_options how = L.CreatePassBuilderOptions();
    llvm_error err = L.RunPasses(e->mod, "function(mem2reg,early-cse,instcombine,simplifycfg)",
                                 L.GetExecutionEngineTargetMachine(j->engine), how);
    L.DisposePassBuilderOptions(how);
    if (err)
        L.ConsumeError(err);
    show(e);
    uint64_t at = L.GetFunctionAddress(j->engine, "run");
    memcpy(&j->run, &at, sizeof(j->run));
    return j->run ? 0 : ws_raise(-ENOMEM);
}

static int generate(struct ws_jit_code *j, const struct ws_jit_plan *p, const char *isa)
{
    struct ws_jit_emit e = {.has_fma = strcmp(isa, "sse2") != 0};
    j->cx = e.cx = L.ContextCreate();
    e.mod = L.ModuleCreateWithNameInContext("kernel", e.cx);
    e.b = L.CreateBuilderInContext(e.cx);
    e.i1 = L.IntTypeInContext(e.cx, 1);
    e.i8 = L.IntTypeInContext(e.cx, 8);
    e.i16 = L.IntTypeInContext(e.cx, 16);
    e.i32 = L.IntTypeInContext(e.cx, 32);
    e.i64 = L.IntTypeInContext(e.cx, 64);
    e.f32 = L.FloatTypeInContext(e.cx);
    e.f64 = L.DoubleTypeInContext(e.cx);
    int r = ws_jit_emit(&e, p);
    L.DisposeBuilder(e.b);
    if (r == 0) {
        set_target(&e, isa);
        r = finish(j, &e);
    } else {
        L.DisposeModule(e.mod);
    }
    return r;
}

static void report(const struct ws_jit_plan *p, int r, uint64_t ns)
{
    if (getenv("WS_SOFT_JIT_SAY"))
        fprintf(stderr, "jit: %s: %s%s, %llu us\n", p->m->funcs[p->img->func].name,
                r ? "not taken: " : "compiled", r ? p->why : "", (unsigned long long)ns / 1000);
    totals.n_compiled += r == 0;
    totals.n_refused += r != 0;
    totals.compile_ns += ns;
}

/* CPU time of this thread: what else the machine does, does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void compile(struct ws_jit_code *j, const struct ws_code *code)
{
    struct ws_jit_plan p;
    uint64_t start = cpu_ns();
    int r = ws_jit_plan_init(&p, code, j->img, j->block);
    if (r == 0)
        r = keep_claims(j, &p);
    if (r == 0)
        r = generate(j, &p, code->isa->name);
    if (r != 0)
        j->run = NULL;
    report(&p, r, cpu_ns() - start);
    ws_jit_plan_deinit(&p);
}

/* ---- what there is of a module ---- */
struct ws_jit_images {
    struct ws_jit_code *first;
};

static struct ws_jit_code *find(const struct ws_code *code, const struct ws_exec_image *img,
                                const uint32_t block[3])
{
    struct ws_jit_code *j = code->jit->first;
    while (j && (j->img != img || memcmp(j->block, block, sizeof(j->block)) != 0))
        j = j->next;
    if (j)
        return j;
    j = ws_alloc(sizeof(*j));
    if (!j)
        return NULL;
    j->img = img;
    memcpy(j->block, block, sizeof(j->block));
    j->next = code->jit->first;
    code->jit->first = j;
    compile(j, code);
    return j;
}

const struct ws_jit_code *ws_jit_get(const struct ws_code *code, uint32_t kernel,
                                     const uint32_t block[3])
{
    if (!code->jit || !ws_llvm_open())
        return NULL;
    pthread_mutex_lock(&lock);
    struct ws_jit_code *j = find(code, code->images[kernel], block);
    pthread_mutex_unlock(&lock);
    return j && j->run ? j : NULL;
}

struct ws_jit_images *ws_jit_images_new(void)
{
    return ws_alloc(sizeof(struct ws_jit_images));
}

struct ws_jit_images *ws_jit_images_free(struct ws_jit_images *i)
{
    while (i && i->first) {
        struct ws_jit_code *j = i->first;
        i->first = j->next;
        if (j->engine)
            L.DisposeExecutionEngine(j->engine);
        if (j->cx)
            L.ContextDispose(j->cx);
        ws_arena_deinit(&j->arena);
        free(j);
    }
    free(i);
    return NULL;
}
