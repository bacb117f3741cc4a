// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/compile.c - from an image to machine code. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "device/soft/jit/code.h"
#include "device/soft/jit/emit.h"
#include "device/soft/jit/plan.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { LANES = 32, MAX_INSTRUCTIONS = 20000 };

static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_jit_totals totals;

struct ws_jit_totals ws_jit_totals(void)
{
    pthread_mutex_lock(&totals_lock);
    struct ws_jit_totals t = totals;
    pthread_mutex_unlock(&totals_lock);
    return t;
}

static int keep_claims(struct ws_jit_code *j, struct ws_jit_plan *p)
{
    uint64_t *live = ws_arena_array(&p->arena, p->n_words + (size_t)1, sizeof(*live));
    struct ws_jit_claim *all = ws_arena_array(&p->arena, p->n_rows + (size_t)1, sizeof(*all));
    int64_t(*apart)[LANES] = ws_arena_array(&j->arena, p->n_rows + (size_t)1, sizeof(*apart));
    j->claims = ws_arena_array(&j->arena, p->img->n_uops + (size_t)1, sizeof(*j->claims));
    if (!live || !all || !apart || !j->claims)
        return ws_raise(-ENOMEM);
    for (uint32_t r = 0; r < p->n_rows; r++)
        memcpy(apart[r], p->rows[r].apart, sizeof(apart[r]));
    static const struct ws_jit_claim never = {.width = WS_JIT_NEVER};
    for (uint32_t k = 0; k < p->img->n_uops; k++) {
        uint32_t n = 0;
        if (!ws_jit_enters(p, k, WS_JIT_WHOLE)) {
            j->claims[k] = ws_jit_enters(p, k, WS_JIT_MASKED) ? &never : NULL;
            continue;
        }
        ws_jit_live_at(p, k, live);
        for (uint32_t r = 0; r < p->n_rows; r++)
            if (ws_jit_has(live, r) && !p->rows[r].fill && p->rows[r].shape == WS_SHAPE_KNOWN)
                all[n++] = (struct ws_jit_claim){p->rows[r].off, p->rows[r].width, apart[r]};
        all[n++].width = WS_JIT_END;
        struct ws_jit_claim *kept = ws_arena_array(&j->arena, n, sizeof(*kept));
        if (!kept)
            return ws_raise(-ENOMEM);
        memcpy(kept, all, n * sizeof(*kept));
        j->claims[k] = kept;
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

static void show(llvm_module module)
{
    const char *path = getenv("WS_SOFT_JIT_DUMP");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    char *text = L.PrintModuleToString(module);
    fputs(text, f);
    L.DisposeMessage(text);
    fclose(f);
}

/* Some of LLVM's passes take time and memory as the square of a function's length. */
static bool is_long(llvm_value fn)
{
    uint32_t n = 0;
    for (llvm_block b = L.GetFirstBasicBlock(fn); b; b = L.GetNextBasicBlock(b))
        for (llvm_value v = L.GetFirstInstruction(b); v; v = L.GetNextInstruction(v))
            n++;
    return n > MAX_INSTRUCTIONS;
}

/* What LLVM knows of a kernel takes ten times the memory of the kernel's code. */
static void end_llvm(struct ws_jit_code *j)
{
    if (j->engine)
        L.DisposeExecutionEngine(j->engine);
    if (j->module)
        L.DisposeModule(j->module);
    if (j->cx)
        L.ContextDispose(j->cx);
    j->engine = NULL;
    j->module = NULL;
    j->cx = NULL;
}

/* Return: 0; 1: it is too long; -ENOMEM. */
static int emit_versions(struct ws_jit_code *j, const struct ws_jit_plan *p)
{
    const char *isa = j->of->isa->name;
    struct ws_jit_emit e = {.isa = j->of->isa,
                            .has_narrow = j->has_narrow,
                            .has_fma = strcmp(isa, "sse2") != 0,
                            .has_mask_registers = strcmp(isa, "avx512") == 0};
    j->cx = e.cx = L.ContextCreate();
    j->module = e.mod = L.ModuleCreateWithNameInContext("kernel", e.cx);
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
    if (r == 0 && is_long(e.fn))
        return 1;
    if (r == 0)
        set_target(&e, isa);
    return r;
}

/* Only kernels whose lanes part have a narrow version, and long ones do without. */
static int emit(struct ws_jit_code *j, struct ws_jit_plan *p)
{
    j->has_narrow = ws_jit_may_part(p);
    int r = emit_versions(j, p);
    if (r == 1 && j->has_narrow) {
        end_llvm(j);
        j->has_narrow = false;
        r = emit_versions(j, p);
    }
    if (r == 1)
        snprintf(p->why, sizeof(p->why), "too long for LLVM");
    return r;
}

/* CPU time of this thread: what else the machine does, does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A step has ended. @why: the kernel is not taken; NULL: it is compiled. */
static void say(struct ws_jit_code *j, const char *why)
{
    if (getenv("WS_SOFT_JIT_SAY"))
        fprintf(stderr, "jit: %s: %s%s, %llu us\n", j->name, why ? "not taken: " : "compiled",
                why ? why : "", (unsigned long long)j->compile_ns / 1000);
    pthread_mutex_lock(&totals_lock);
    totals.n_compiled += !why;
    totals.n_refused += !!why;
    totals.compile_ns += j->compile_ns;
    pthread_mutex_unlock(&totals_lock);
}

int ws_jit_compile_begin(struct ws_jit_code *j)
{
    struct ws_jit_plan p;
    uint64_t start = cpu_ns();
    snprintf(j->name, sizeof(j->name), "%s", j->of->m->funcs[j->img->func].name);
    int r = ws_jit_plan_init(&p, j->of, j->img, j->block);
    if (r == 0)
        r = keep_claims(j, &p);
    if (r == 0)
        r = emit(j, &p);
    j->compile_ns = cpu_ns() - start;
    if (r)
        say(j, r < 0 ? "no memory" : p.why);
    ws_jit_plan_deinit(&p);
    return r;
}

int ws_jit_compile_finish(struct ws_jit_code *j)
{
    struct llvm_mcjit_options o;
    char *text = NULL;
    uint64_t start = cpu_ns(), at;
    llvm_module module = j->module;
    L.InitializeMCJITCompilerOptions(&o, sizeof(o));
    o.opt_level = 2;
    o.code_model = LLVM_CODE_MODEL_JIT;
    j->pages = ws_jit_pages_new(&o.memory_manager);
    if (!j->pages) {
        say(j, "no memory");
        return ws_raise(-ENOMEM);
    }
    j->module = NULL; /* it is the engine's, or gone with it */
    if (L.CreateMCJITCompilerForModule(&j->engine, module, &o, sizeof(o), &text)) {
        L.DisposeMessage(text);
        j->engine = NULL;
        say(j, "no engine");
        return ws_raise(-ENOMEM);
    }
    llvm_options how = L.CreatePassBuilderOptions();
    llvm_error err = L.RunPasses(module, "function(mem2reg,early-cse,instcombine,simplifycfg)",
                                 L.GetExecutionEngineTargetMachine(j->engine), how);
    L.DisposePassBuilderOptions(how);
    if (err)
        L.ConsumeError(err);
    show(module);
    at = L.GetFunctionAddress(j->engine, "run");
    if (!ws_jit_pages_are_ready(j->pages))
        at = 0;
    end_llvm(j);
    memcpy(&j->run, &at, sizeof(j->run));
    j->compile_ns += cpu_ns() - start;
    say(j, j->run ? NULL : "no memory");
    return j->run ? 0 : ws_raise(-ENOMEM);
}

uint64_t ws_jit_code_bytes(const struct ws_jit_code *j)
{
    return j->run ? ws_jit_pages_bytes(j->pages) + j->arena.total_bytes : 0;
}

void ws_jit_code_drop(struct ws_jit_code *j)
{
    end_llvm(j);
    j->run = NULL;
    j->claims = NULL;
    j->pages = ws_jit_pages_free(j->pages);
    ws_arena_deinit(&j->arena);
}

void ws_jit_code_free(struct ws_jit_code *j)
{
    ws_jit_code_drop(j);
    free(j);
}
