// SPDX-License-Identifier: Apache-2.0
// Makes tensor maps of two matrices and gives them to a kernel as parameters. Each of its blocks
// loads a tile of the first and stores it into the second, at another place. Fails if the second
// matrix is not what that gives; tiles reach over the edges of both.
#include <dlfcn.h>
#include <stdint.h>
#include "drv.h"
#define WORK "drv_tensor"

enum { ROWS = 37, COLS = 44, TILE_ROWS = 8, TILE_COLS = 16, DOWN = 3, RIGHT = 5 };
static const char kernel[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry run(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])\n{\n"
    ".reg .pred %p<3>; .reg .b32 %r<10>; .reg .b64 %rd<4>;\n"
    ".shared .align 1024 .b8 tile[512]; .shared .align 8 .b64 bar;\n"
    "mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, tile; mov.u32 %r2, bar;\n"
    "mov.b64 %rd0, from; cvta.param.u64 %rd0, %rd0; mov.b64 %rd1, to; cvta.param.u64 %rd1, %rd1;\n"
    "mov.u32 %r3, %ctaid.x; shl.b32 %r3, %r3, 4; mov.u32 %r4, %ctaid.y; shl.b32 %r4, %r4, 3;\n"
    "@%p0 bra READY; mbarrier.init.shared::cta.b64 [%r2], 1;\n"
    "READY: bar.sync 0; @%p0 bra WAIT;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0, "
    "{%r3, %r4}], [%r2];\n"
    "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;\n"
    "mad.lo.u32 %r5, %r0, 4, %r1; ld.shared.u32 %r6, [%r5]; add.u32 %r6, %r6, 1; st.shared.u32 "
    "[%r5], %r6;\n"
    "fence.proxy.async.shared::cta; bar.sync 0; @%p0 bra END;\n"
    "add.u32 %r3, %r3, 5; add.u32 %r4, %r4, 3;\n"
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r3, %r4}], [%r1];\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
    "END: ret;\n}\n";

static CUresult (*encode)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *,
                          const unsigned *, const unsigned *, int, int, int, int);

static void make_map(void *map, CUdeviceptr matrix)
{
    enum { UINT32 = 2, SWIZZLE_64B = 2 };
    const uint64_t dims[] = {COLS, ROWS}, strides[] = {COLS * 4};
    const unsigned box[] = {TILE_COLS, TILE_ROWS}, steps[] = {1, 1};
    drv_check(encode(map, UINT32, 2, (void *)(uintptr_t)matrix, dims, strides, box, steps, 0,
                     SWIZZLE_64B, 0, 0),
              "cuTensorMapEncodeTiled", __FILE__, __LINE__);
}

int main(void)
{
    static uint32_t in[ROWS][COLS], out[ROWS][COLS];
    _Alignas(64) char from[128], to[128];
    CUdeviceptr a, b;
    CUmodule m;
    drv_begin();
    *(void **)&encode = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuTensorMapEncodeTiled");
    for (unsigned i = 0; i < ROWS * COLS; i++)
        in[i / COLS][i % COLS] = 1000 + i;
    DRV(mem_alloc(&a, sizeof(in)));
    DRV(mem_alloc(&b, sizeof(out)));
    DRV(memcpy_htod(a, in, sizeof(in)));
    DRV(memset_d8(b, 0xff, sizeof(out)));
    make_map(from, a);
    make_map(to, b);
    DRV(module_load_data_ex(&m, kernel, 0, NULL, NULL));
    DRV(launch_kernel(drv_function(m, "run"), (COLS + TILE_COLS - 1) / TILE_COLS,
                      (ROWS + TILE_ROWS - 1) / TILE_ROWS, 1, TILE_ROWS * TILE_COLS, 1, 1, 0, NULL,
                      (void *[]){from, to}, NULL));
    DRV(memcpy_dtoh(out, b, sizeof(out)));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            uint32_t want = r < DOWN || c < RIGHT ? UINT32_MAX : in[r - DOWN][c - RIGHT] + 1;
            if (out[r][c] != want)
                return work_fail(WORK, "row %d, column %d: %u, not %u", r, c, out[r][c], want);
        }
    DRV(module_unload(m));
    DRV(mem_free(a));
    DRV(mem_free(b));
    drv_end();
    return work_pass(WORK);
}
