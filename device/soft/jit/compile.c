// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/compile.c - from an image to machine code. */
#include "config.h"

#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/budget.h"
#include "base/error.h"
#include "device/soft/jit/code.h"
#include "device/soft/jit/emit.h"
#include "device/soft/jit/plan.h"
#include "device/soft/jit/shape.h"
#include "device/soft/jit/store.h"

#define L ws_llvm
enum { LANES = 32, MAX_INSTRUCTIONS = 20000 };

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
    for (uint32_t k = 0; k < p->img->n_uops && ws_budget_spend(1); k++) {
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
    if (j->module)
        L.DisposeModule(j->module);
    if (j->cx)
        L.ContextDispose(j->cx);
    j->module = NULL;
    j->cx = NULL;
}

/* Return: 0; 1: it is too long; -ENOMEM. */
static int emit_versions(struct ws_jit_code *j, const struct ws_jit_plan *p)
{
    const char *isa = j->of->isa->name;
    struct ws_jit_emit e = {.isa = j->of->isa,
                            .has_narrow = j->has_narrow,
                            .has_lone = j->has_lone,
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

/* Only kernels whose lanes part have versions for few of them, and long ones do without. */
static int emit(struct ws_jit_code *j, struct ws_jit_plan *p)
{
    j->has_narrow = j->has_lone = ws_jit_may_part(p);
    int r = emit_versions(j, p);
    while (r == 1 && j->has_narrow) {
        end_llvm(j);
        j->has_narrow = j->has_lone;
        j->has_lone = false;
        r = emit_versions(j, p);
    }
    if (r == 1) {
        p->too_large = true;
        snprintf(p->why, sizeof(p->why), "too long for LLVM");
    }
    return r;
}

/* CPU time of this thread: what else the machine does, does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

enum code_came { COMPILED, LOADED };

/* A step has ended. @why: the kernel is not taken; NULL: it is as @how says. */
static void say(struct ws_jit_code *j, enum code_came how, const char *why)
{
    static const char *const words[] = {[COMPILED] = "compiled", [LOADED] = "loaded"};
    uint64_t bytes = ws_jit_code_bytes(j);
    if (getenv("WS_SOFT_JIT_SAY"))
        fprintf(stderr, "jit: %s: %s%s, %llu us, %llu bytes\n", j->name,
                why ? "not taken: " : words[how], why ? why : "",
                (unsigned long long)j->compile_ns / 1000, (unsigned long long)bytes);
    ws_jit_add_totals(&(struct ws_jit_totals){.n_compiled = !why && how == COMPILED,
                                              .n_loaded = !why && how == LOADED,
                                              .n_refused = why != NULL,
                                              .compile_ns = j->compile_ns});
}

int ws_jit_compile_begin(struct ws_jit_code *j)
{
    struct ws_jit_plan p;
    uint64_t start = cpu_ns();
    j->names = (struct ws_jit_names){j->of->isa, j->img->uops, j->img->segs, j->img->n_uops,
                                     j->img->n_segs};
    int r = ws_jit_plan_init(&p, j->of, j->img, j->block);
    if (r == 0)
        r = keep_claims(j, &p);
    if (r == 0)
        r = emit(j, &p);
    if (!ws_budget_spend(0)) { /* nothing of it may be whole */
        r = 1;
        p.too_large = true;
        snprintf(p.why, sizeof(p.why), "takes too long");
    }
    j->compile_ns = cpu_ns() - start;
    j->why_not = r < 0 ? WS_NOT_ROOM : p.too_large ? WS_NOT_SIZE : WS_NOT_OPERATION;
    if (r)
        say(j, COMPILED, r < 0 ? "no memory" : p.why);
    ws_jit_plan_deinit(&p);
    return r;
}

/* ---- machine code ---- */
#define PASSES "function(mem2reg,early-cse,instcombine,simplifycfg)"
static const char triple[] = "x86_64-pc-linux-gnu";

/* What a kernel's machine code depends on: LLVM's form of the kernel, which says for which
 * processor it is, which LLVM makes code of it, and how. Return: whether all of that is known. */
static bool key_of(llvm_module module, uint8_t *ret)
{
    static const char ours[] = PACKAGE_VERSION " -O2 " PASSES;
    const uint8_t *id;
    size_t id_bytes = ws_llvm_build_id(&id);
    if (!ws_jit_store_is_open() || !id_bytes)
        return false;
    SHA2_CTX sha;
    llvm_buffer form = L.WriteBitcodeToMemoryBuffer(module);
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)ours, sizeof(ours));
    SHA256Update(&sha, id, id_bytes);
    SHA256Update(&sha, (const uint8_t *)L.GetBufferStart(form), L.GetBufferSize(form));
    SHA256Final(ret, &sha);
    L.DisposeMemoryBuffer(form);
    return true;
}

/* Return: the object file, or NULL with *ret_text, which is LLVM's. */
static llvm_buffer object_of(llvm_module module, char **ret_text)
{
    llvm_target target;
    llvm_buffer object = NULL;
    if (L.GetTargetFromTriple(triple, &target, ret_text))
        return NULL;
    llvm_machine m = L.CreateTargetMachine(target, triple, "", "", LLVM_OPTIMIZE_DEFAULT,
                                           LLVM_RELOC_STATIC, LLVM_CODE_MODEL_JIT);
    llvm_layout layout = L.CreateTargetDataLayout(m);
    L.SetTarget(module, triple);
    L.SetModuleDataLayout(module, layout);
    L.DisposeTargetData(layout);
    llvm_options how = L.CreatePassBuilderOptions();
    llvm_error err = L.RunPasses(module, PASSES, m, how);
    L.DisposePassBuilderOptions(how);
    if (err)
        L.ConsumeError(err);
    show(module);
    if (L.TargetMachineEmitToMemoryBuffer(m, module, LLVM_OBJECT_FILE, ret_text, &object))
        object = NULL;
    L.DisposeTargetMachine(m);
    return object;
}

static int link_object(struct ws_jit_code *j, const void *object, size_t bytes, char *why,
                       size_t room)
{
    uint8_t *run;
    int r = ws_jit_link(&j->pages, &run, object, bytes, &j->names, why, room);
    if (!r)
        memcpy(&j->run, &run, sizeof(j->run));
    return r;
}

static bool load(struct ws_jit_code *j, const uint8_t *key)
{
    void *object;
    size_t bytes;
    char why[64];
    if (!ws_jit_store_get(key, &object, &bytes))
        return false;
    int r = link_object(j, object, bytes, why, sizeof(why));
    free(object);
    if (r == WS_JIT_LINK_E_OBJECT)
        ws_jit_store_remove(key);
    return r == 0;
}

/* @key: under which it is kept; NULL: it is not. */
static int compile(struct ws_jit_code *j, const uint8_t *key, char *why, size_t room)
{
    char *text = NULL;
    llvm_buffer object = object_of(j->module, &text);
    if (!object) {
        snprintf(why, room, "%s", text);
        L.DisposeMessage(text);
        return 1;
    }
    const char *at = L.GetBufferStart(object);
    size_t bytes = L.GetBufferSize(object);
    int r = link_object(j, at, bytes, why, room);
    if (!r && key)
        ws_jit_store_put(key, at, bytes);
    L.DisposeMemoryBuffer(object);
    return r;
}

int ws_jit_compile_finish(struct ws_jit_code *j)
{
    uint8_t key[WS_JIT_KEY_BYTES];
    char why[96];
    uint64_t start = cpu_ns();
    bool has_key = key_of(j->module, key);
    enum code_came how = has_key && load(j, key) ? LOADED : COMPILED;
    int r = how == LOADED ? 0 : compile(j, has_key ? key : NULL, why, sizeof(why));
    end_llvm(j);
    j->why_not = r < 0 ? WS_NOT_ROOM : WS_NOT_OPERATION;
    j->compile_ns += cpu_ns() - start;
    say(j, how, r < 0 ? "no memory" : r ? why : NULL);
    return r;
}

uint64_t ws_jit_code_bytes(const struct ws_jit_code *j)
{
    return j->run ? j->pages->code_bytes + j->pages->data_bytes + j->arena.total_bytes : 0;
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
