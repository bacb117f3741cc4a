// SPDX-License-Identifier: Apache-2.0
// Takes all the memory that it is told it has, in pieces. Fails if it is not refused beyond that as
// CUDA documents, if what it has does not stay right, or if what it gives back cannot be had again.
// `memoryquota 0 BYTES` assumes that it has no more than that.
#include <vector>
#include "work.cuh"
#define WORK "memoryquota"

__global__ void fill(unsigned *p, unsigned n, unsigned v)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] = v + i;
}

int main(int argc, char **argv)
{
    size_t free_bytes, total, now, quota = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const size_t piece = 1 << 20;
    void *p;
    std::vector<unsigned *> pieces;
    std::vector<unsigned> host(piece / 4);
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    if (free_bytes > total || (quota > 4096 && total != quota))
        return work_fail(WORK, "%zu bytes free of %zu", free_bytes, total);
    if (cudaMalloc(&p, total + 1) != cudaErrorMemoryAllocation ||
        cudaGetLastError() != cudaErrorMemoryAllocation)
        return work_fail(WORK, "more than the whole memory is not refused");
    for (int i = 0; i < 8 && pieces.size() * piece + piece <= free_bytes; i++) {
        if (cudaMalloc(&p, piece) != cudaSuccess)
            break;
        pieces.push_back((unsigned *)p);
        fill<<<4, 64>>>(pieces.back(), piece / 4, (unsigned)i * 77);
        CHECK_LAUNCH();
    }
    if (pieces.empty())
        return work_fail(WORK, "not even %zu of %zu bytes", piece, free_bytes);
    CHECK(cudaMemGetInfo(&now, &total));
    if (now > free_bytes - pieces.size() * piece)
        return work_fail(WORK, "%zu free after %zu pieces, %zu before", now, pieces.size(), free_bytes);
    if (cudaMalloc(&p, now + piece) != cudaErrorMemoryAllocation)
        return work_fail(WORK, "more than is free is not refused");
    (void)cudaGetLastError();
    for (size_t k = 0; k < pieces.size(); k++) {
        CHECK(cudaMemcpy(host.data(), pieces[k], piece, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < host.size(); i++)
            if (host[i] != k * 77 + i)
                return work_fail(WORK, "piece %zu, word %zu: %u", k, i, host[i]);
    }
    for (unsigned *q : pieces)
        CHECK(cudaFree(q));
    CHECK(cudaMalloc(&p, pieces.size() * piece));
    CHECK(cudaFree(p));
    return work_pass(WORK);
}
