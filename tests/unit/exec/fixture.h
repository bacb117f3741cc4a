// SPDX-License-Identifier: Apache-2.0
/* What the interpreter's tests share: a module, memory at addresses of its own, launches. Errors
 * end the test. */
#ifndef WS_TESTS_UNIT_EXEC_FIXTURE_H
#define WS_TESTS_UNIT_EXEC_FIXTURE_H

#include "base/launch_check.h"
#include "device/soft/exec/exec.h"
#include "ptx/passes/pass.h"

enum { FIX_MAX_BUFS = 512 };
struct fix {
    struct ws_ptx_module *m;
    struct ws_code *code;
    struct ws_diags diags;
    struct ws_space *space;
    struct {
        uint64_t va;
        uint8_t *host;
        size_t bytes;
    } bufs[FIX_MAX_BUFS];
    unsigned n_bufs;
    uint64_t *var_va;
    uint64_t next_va;
    struct ws_exec_work work;   /* of the last launch */
    struct ws_exec_work *works; /* the test's: by block, what each does; NULL: work is added to */
    bool one_by_one;            /* blocks are started by themselves, not several at a time */
    struct ws_reuse *reuse;     /* the test's: records what launches touch; NULL: nothing does */
    enum ws_dev_error error;
    char text[192];
    uint64_t max_warp_insns; /* a launch is cut off after so many; 0: 50 million */
    uint32_t local_bytes_max, step;
    /* Kernels run rewritten (ptx/passes/pass.h) where WS_FIX_REWRITE=slice|ticket|persistent asks
     * for it and they can be; they are stopped and resumed at random. fence-slice…: fenced before;
     * fence: only fenced. */
    enum ws_ptx_rewrite rewrite; /* WS_REWRITE_NONE: as they are */
    struct fix_control {
        uint32_t ticket, flag, mask[8];
    } * control;
    uint64_t control_va, control_random;
    uint64_t rewritten_n, resumed_n;
    /* accesses are checked before they are made: WS_FIX_REWRITE=fence, fence-ticket, … */
    bool fence;
    struct fix_ranges {
        uint64_t fault[2];
        uint32_t n, reserved;
        struct {
            uint64_t low, bytes;
        } range[FIX_MAX_BUFS];
    } * ranges;
    uint64_t ranges_va;
    bool fuse; /* WS_FIX_REWRITE=fuse: fused with two more of itself, which have no work */
    struct fix_fused {
        char name[300];
        struct ws_ptx_fused made;
    } * fused;
    unsigned n_fused;
    /* WS_FIX_TEXTURE=1: texture instructions are replaced (ws_ptx_texture()), before anything else.
     * Each launch is made of the original as well: what succeeds there must succeed here, and leave
     * the same memory, bit for bit. */
    bool texture, unordered; /* unordered: threads store to one place; memory is not compared */
    struct ws_ptx_module *plain_m;
    uint32_t hardware_cc; /* for ws_code_new(); 0 unless a test sets it */
    struct ws_code *plain;
    uint64_t compared_n;
    bool flat_only; /* some rewritten kernel wants one-dimensional blocks */
};
struct launch {
    const char *kernel;
    uint32_t grid[3], block[3], shared;
    const void *params;
    unsigned co_resident; /* blocks at once; 0: 1 */
    uint32_t cluster[3];  /* blocks of a cluster; 0: each block runs alone */
};

void fix_init(struct fix *f);
void fix_deinit(struct fix *f);
/* A fixture for cmocka's tests, and its end. */
int fix_setup(void **state);
int fix_teardown(void **state);
/* Parses and decodes. Return: what ws_code_new() returned, or ws_ptx_parse() if that failed; diags
 * say why. */
int fix_load(struct fix *f, const char *ptx);
/* Runs this program again, in a process of its own, which must end with @want. */
void fix_run_again(char *const args[], int want);
/* fix_load() that must succeed. */
void fix_must_load(struct fix *f, const char *ptx);
/* Zeroed memory; its address. Redzones: addresses around it are not mapped. */
uint64_t fix_alloc(struct fix *f, size_t bytes);
void *fix_host(struct fix *f, uint64_t va);
/* Runs all blocks; f->error, f->text, f->work tell how it went. */
enum ws_dev_error fix_launch(struct fix *f, const struct launch *l);
/* fix_launch() that must succeed. */
void fix_run(struct fix *f, const struct launch *l);
/* Runs one block of @n_threads of the kernel "k", which must end with @want. */
void fix_block(struct fix *f, unsigned n_threads, const void *params, enum ws_dev_error want);
const struct ws_kernel_info *fix_kernel(struct fix *f, const char *name, uint32_t *ret_index);

#endif
