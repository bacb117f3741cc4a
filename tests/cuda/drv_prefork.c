// SPDX-License-Identifier: Apache-2.0
// A program that forks before it uses CUDA, as servers do. Its children have the same address
// space, and all of them have pinned memory at the same time. An argument says how many there are.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drv.h"

enum { CHILDREN = 4, BYTES = 1 << 20, WAIT_MS = 600000 };

static int child(unsigned number, unsigned n_children, _Atomic unsigned *n_ready)
{
    unsigned char *pinned, *more;
    CUdeviceptr memory;
    drv_begin();
    DRV(mem_alloc_host((void **)&pinned, BYTES));
    DRV(mem_alloc_host((void **)&more, BYTES));
    DRV(mem_alloc(&memory, BYTES));
    ++*n_ready;
    for (int ms = 0; *n_ready < n_children && ms < WAIT_MS; ms += 10)
        usleep(10000);
    memset(pinned, (int)number, BYTES);
    DRV(memcpy_htod_async(memory, pinned, BYTES, NULL));
    DRV(memcpy_dtoh_async(more, memory, BYTES, NULL));
    DRV(ctx_synchronize());
    if (memcmp(pinned, more, BYTES) != 0 || more[0] != (unsigned char)number)
        return work_fail("prefork", "child %u has other bytes than its own", number);
    DRV(mem_free_host(pinned));
    DRV(mem_free_host(more));
    drv_end();
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0, status;
    unsigned n_children = argc > 1 ? (unsigned)atoi(argv[1]) : CHILDREN;
    _Atomic unsigned *n_ready =
        mmap(NULL, sizeof(*n_ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_ready == MAP_FAILED)
        return 2;
    for (unsigned k = 0; k < n_children; k++)
        if (!fork())
            exit(child(k, n_children, n_ready));
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            failed++;
            *n_ready += n_children; /* the others do not wait for it */
        }
    if (failed)
        return work_fail("prefork", "%d of %u children failed", failed, n_children);
    return work_pass("drv_prefork");
}
