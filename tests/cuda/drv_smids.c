// SPDX-License-Identifier: Apache-2.0
/* Usage: drv_smids N. Asks on which SMs the blocks of a kernel run. Fails unless all of them are
 * below N and each of those N is used. */
#include "drv.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 1024, SMS_MAX = 256 };

int main(int argc, char **argv)
{
    long want = work_arg(argc, argv, 1, 1, SMS_MAX);
    unsigned *sm = malloc(BLOCKS * sizeof(*sm)), n_on[SMS_MAX] = {0}, rounds = 200;
    CUdeviceptr out;
    if (!sm)
        return 1;
    drv_begin();
    CUmodule m = drv_module("smids");
    CUfunction f = drv_function(m, "smids");
    DRV(mem_alloc(&out, BLOCKS * sizeof(*sm)));
    DRV(memset_d8(out, 255, BLOCKS * sizeof(*sm)));
    drv_launch(f, BLOCKS, 64, 0, NULL, &out, &rounds);
    DRV(memcpy_dtoh(sm, out, BLOCKS * sizeof(*sm)));
    for (int i = 0; i < BLOCKS; i++) {
        if (sm[i] >= (unsigned)want) {
            printf("FAIL drv_smids: block %d ran on SM %u of %ld\n", i, sm[i], want);
            return 1;
        }
        n_on[sm[i]]++;
    }
    for (long i = 0; i < want; i++)
        if (!n_on[i]) {
            printf("FAIL drv_smids: no block ran on SM %ld\n", i);
            return 1;
        }
    free(sm);
    DRV(mem_free(out));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_smids");
}
