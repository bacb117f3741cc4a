/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/image.h - a module made executable: an image of each kernel, made by
 * device/soft/decode, and the vector build that runs it. Private to the interpreter. */
#ifndef WS_DEVICE_SOFT_EXEC_IMAGE_H
#define WS_DEVICE_SOFT_EXEC_IMAGE_H

#include "device/soft/exec/exec.h"

struct ws_core_ctx;
struct ws_jit_images;
struct ws_seg;
struct ws_srcref;
struct ws_uop;

struct ws_isa {
    const char *name;
    bool (*supported)(void);
    /* Runs from u (or into seg enter) until the core must be left; c->stop, c->u, c->enter tell why
     * and where. */
    void (*run)(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_seg *enter);
    const struct ws_uop *(*const *handlers)(struct ws_core_ctx *c, const struct ws_uop *u);
    /* Counts an access of all lanes to global memory, at @va[32] (aligned to 64 bytes). */
    void (*count_lanes)(struct ws_core_ctx *c, const struct ws_uop *u, const uint64_t *va,
                        bool store);
    /* Counts what its banks cost an access to shared memory, at @off[32] (aligned to 64 bytes), of
     * @bytes a lane. */
    void (*count_banks)(struct ws_core_ctx *c, const uint32_t *off, uint32_t bytes);
};
extern const struct ws_isa ws_isa_sse2, ws_isa_avx2, ws_isa_avx512;

/* A row (or predicate word) that is filled before blocks run. */
enum ws_fill_kind { WS_FILL_CONST, WS_FILL_VAR, WS_FILL_SREG };
struct ws_fill {
    uint8_t kind, width; /* bytes of a lane */
    uint8_t sreg, dim;
    uint32_t off;
    uint32_t var; /* VAR: module variable; value is the addend */
    uint64_t value;
};

struct ws_exec_image {
    uint32_t func;
    struct ws_uop *uops;
    struct ws_seg *segs;
    uint32_t n_uops, n_segs;
    struct ws_srcref *srcs;
    uint32_t n_srcs;
    const struct ws_seg *entry;
    struct ws_fill *fills;
    uint32_t n_fills;
    uint32_t regs_bytes;
    uint32_t ones_off, fp_off; /* rows: word of ones; u32 frame pointers */
    uint32_t sp_off;           /* row: u32 stack pointers of alloca; 0: no such instruction */
    uint32_t shared_bytes, frame_bytes; /* static shared; the kernel's own frame */
    uint32_t local_bytes;               /* of a thread, if not recursive */
    uint32_t depth_max; /* calls that can be active; recursive: bounded by local memory */
    bool recursive, uses_heap, prints, starts, uses_reserved_shared;
    uint32_t save_bytes; /* widest set of rows a recursive function saves */
    /* Entries for indirect calls: that of function f is func_entry[target_no[f]], or NULL. */
    const struct ws_seg **func_entry;
    const uint32_t *target_no;
    uint32_t n_funcs; /* of target_no; 0: the kernel has no indirect calls */
    /* Runs {offset, bytes} of recursive functions; uop.a is the index, uop.b the count. */
    uint32_t *save_rows;
    const struct ws_seg **brx_seg;
    struct ws_inspect_op *inspected; /* [n_uops]; NULL: nothing is (device/soft/inspect) */
};

struct ws_audit {
    ws_code_lack *each;
    void *arg;
};

/* Who calls whom in a module: see device/soft/decode/calls.c. By function, [n_funcs]; group and
 * recursive also have the node for calls through registers, [n_funcs + 1]. */
struct ws_callgraph {
    uint32_t n_funcs;
    uint8_t *taken;                 /* its address is */
    uint8_t *indirect;              /* it calls through a register */
    uint32_t *alias_of;             /* the function that it stands for; else itself */
    uint32_t **callees, *n_callees; /* by name, each once */
    uint32_t *targets, n_targets;   /* what a call through a register may come to */
    uint32_t *target_no;            /* its number among these; n_targets: none */
    uint32_t *group;                /* functions that may come back to each other have the same */
    uint8_t *recursive;             /* it may come back to itself */
};

struct ws_code {
    const struct ws_audit *audit; /* of ws_code_audit(), or NULL */
    const struct ws_ptx_module *m;
    const struct ws_isa *isa;
    uint32_t n_kernels, const_bytes; /* const_bytes: of the module's variables */
    uint32_t hardware_cc;            /* as for ws_code_new() */
    struct ws_kernel_info *infos;
    struct ws_exec_image **images;
    struct ws_jit_images *jit; /* NULL: kernels are not compiled */
    _Atomic uint32_t n_refs;   /* ws_code_free() gives up the first */
    struct ws_arena arena;
};

#endif
