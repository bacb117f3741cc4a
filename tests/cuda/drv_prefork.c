// SPDX-License-Identifier: Apache-2.0
// A program that forks before it uses CUDA, as servers do. Its children have the same address
// space, and all of them have pinned memory at the same time.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drv.h"

enum { CHILDREN = 4, BYTES = 1 << 20, WAIT_MS = 60000 };

static int child(unsigned number, _Atomic unsigned *n_ready)
{
    unsigned char *pinned, *more;
    CUdeviceptr memory;
    drv_begin();
    DRV(mem_alloc_host((void **)&pinned, BYTES));
    DRV(mem_alloc_host((void **)&more, BYTES));
    DRV(mem_alloc(&memory, BYTES));
    ++*n_ready;
    for (int ms = 0; *n_ready < CHILDREN && ms < WAIT_MS; ms++)
        usleep(1000);
    memset(pinned, (int)number, BYTES);
    DRV(memcpy_htod_async(memory, pinned, BYTES, NULL));
    DRV(memcpy_dtoh_async(more, memory, BYTES, NULL));
    DRV(ctx_synchronize());
    if (memcmp(pinned, more, BYTES) != 0 || more[0] != number)
        return work_fail("prefork", "child %u has other bytes than its own", number);
    DRV(mem_free_host(pinned));
    DRV(mem_free_host(more));
    drv_end();
    return 0;
}

int main(void)
{
    int failed = 0, status;
    _Atomic unsigned *n_ready =
        mmap(NULL, sizeof(*n_ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_ready == MAP_FAILED)
        return 2;
    for (unsigned k = 0; k < CHILDREN; k++)
        if (!fork())
            exit(child(k, n_ready));
    while (wait(&status) > 0)
        failed |= !WIFEXITED(status) || WEXITSTATUS(status);
    return failed ? 1 : work_pass("drv_prefork");
}
