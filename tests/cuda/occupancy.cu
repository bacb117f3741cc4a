// SPDX-License-Identifier: Apache-2.0
// Compares each occupancy function with the arithmetic of the CUDA C++ Best Practices Guide, done
// here from the device's properties and the kernel's attributes. Fails if one differs.
#include "work.cuh"
#define WORK "occupancy"

__global__ void plain(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
__global__ void shared10k(int *x)
{
    __shared__ int s[2560];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[(threadIdx.x + 1) % blockDim.x];
}
__global__ void __launch_bounds__(128) bounded(int *x) { x[threadIdx.x] = 1; }
__global__ void dynamic(float *x)
{
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

static cudaDeviceProp p;

static int limit_by(const void *f, int threads, size_t dynamic_bytes)
{
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, f));
    int warps = (threads + 31) / 32;
    int by_threads = p.maxThreadsPerMultiProcessor / 32 / warps;
    int by_regs = 65536 / (((a.numRegs * 32 + 255) / 256 * 256) * ((warps + 3) / 4 * 4));
    size_t bytes = a.sharedSizeBytes + dynamic_bytes;
    if (bytes)
        bytes = (bytes + p.reservedSharedMemPerBlock + 127) / 128 * 128;
    int by_shared = bytes ? (int)(p.sharedMemPerMultiprocessor / bytes) : 1000;
    int n = p.maxBlocksPerMultiProcessor;
    n = by_threads < n ? by_threads : n;
    n = by_regs < n ? by_regs : n;
    return by_shared < n ? by_shared : n;
}

static size_t four_bytes_a_thread(int threads) { return 4 * (size_t)threads; }

int main(int argc, char **argv)
{
    int n, grid, block;
    size_t bytes;
    CHECK(cudaGetDeviceProperties(&p, 0));
    static const int sizes[] = {32, 64, 96, 128, 192, 256, 512, 768, 1024};
    for (int i = 0; i < 9; i++) {
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, plain, sizes[i], 0));
        if (n != limit_by((void *)plain, sizes[i], 0))
            return work_fail(WORK, "plain, %d threads: %d blocks, not %d", sizes[i], n,
                             limit_by((void *)plain, sizes[i], 0));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, shared10k, sizes[i], 0));
        if (n != limit_by((void *)shared10k, sizes[i], 0))
            return work_fail(WORK, "shared10k, %d threads: %d blocks, not %d", sizes[i], n,
                             limit_by((void *)shared10k, sizes[i], 0));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &n, dynamic, sizes[i], 20000, cudaOccupancyDisableCachingOverride));
        if (n != limit_by((void *)dynamic, sizes[i], 20000))
            return work_fail(WORK, "dynamic, %d threads: %d blocks", sizes[i], n);
    }
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, bounded, 256, 0));
    if (n != 0)
        return work_fail(WORK, "a block larger than its launch bounds fits %d times", n);
    bounded<<<1, 256>>>(NULL);
    if (cudaGetLastError() != cudaErrorInvalidValue)
        return work_fail(WORK, "a block larger than its launch bounds is not an invalid value");
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, plain, block, 0));
    if (grid != n * p.multiProcessorCount || block % 32 || block > 1024 ||
        n * block < p.maxThreadsPerMultiProcessor * 3 / 4)
        return work_fail(WORK, "best block %d of %d, %d per SM", block, grid, n);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 100));
    if (block > 100 || block % 32)
        return work_fail(WORK, "the limit of 100 threads gave %d", block);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
    if (block != 128)
        return work_fail(WORK, "launch bounds of 128 gave %d", block);
    CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, dynamic,
                                                         four_bytes_a_thread, 0));
    if (block < 32 || block % 32)
        return work_fail(WORK, "variable shared memory gave %d", block);
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, dynamic, 2, 128));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, dynamic, 128, bytes));
    if (bytes < 1024 || n < 2)
        return work_fail(WORK, "with %zu bytes each only %d blocks fit", bytes, n);
    cudaLaunchConfig_t c;
    memset(&c, 0, sizeof c);
    c.gridDim = 8;
    c.blockDim = 128;
    if (p.clusterLaunch) {
        CHECK(cudaOccupancyMaxPotentialClusterSize(&n, plain, &c));
        if (n < 1)
            return work_fail(WORK, "clusters of %d blocks", n);
        CHECK(cudaOccupancyMaxActiveClusters(&n, plain, &c));
        if (n < 1)
            return work_fail(WORK, "%d clusters", n);
    }
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, plain, 0, 0) != cudaErrorInvalidValue ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (void (*)(int *))main, 32, 0) !=
            cudaErrorInvalidDeviceFunction)
        return work_fail(WORK, "wrong questions");
    (void)cudaGetLastError();
    return work_pass(WORK);
}
