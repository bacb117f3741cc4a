// SPDX-License-Identifier: Apache-2.0
// Launches one kernel with many shapes: 1-D grids of every size up to a hundred, 2-D and 3-D grids
// and blocks, blocks of odd sizes; the kernel computes each element's place. Fails if a sum differs
// from the host's.
#include <vector>
#include "work.cuh"
#define WORK "shapes"

__global__ void place(unsigned *out, unsigned n, unsigned salt)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    if (i < n)
        out[i] = (i ^ salt) * 2654435761u + gridDim.x * 31 + blockDim.y * 7 + block % 13;
}

static unsigned want(unsigned i, unsigned salt, dim3 grid, dim3 block)
{
    unsigned b = i / (block.x * block.y * block.z);
    return (i ^ salt) * 2654435761u + grid.x * 31 + block.y * 7 + b % 13;
}

enum { MAX = 1 << 17 };

static void try_shape(unsigned *d, std::vector<unsigned> &h, dim3 grid, dim3 block, unsigned cut,
                      unsigned salt)
{
    unsigned n = grid.x * grid.y * grid.z * block.x * block.y * block.z - cut;
    CHECK(cudaMemset(d, 0, MAX * sizeof(unsigned)));
    place<<<grid, block>>>(d, n, salt);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(h.data(), d, MAX * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < MAX; i++)
        if (h[i] != (i < n ? want(i, salt, grid, block) : 0)) {
            work_fail(WORK, "grid %ux%ux%u block %ux%ux%u: element %u is %u", grid.x, grid.y,
                      grid.z, block.x, block.y, block.z, i, h[i]);
            exit(1);
        }
}

int main(int argc, char **argv)
{
    long rounds = work_arg(argc, argv, 1, 1, 100);
    unsigned *d;
    std::vector<unsigned> h(MAX);
    CHECK(cudaMalloc(&d, MAX * sizeof(unsigned)));
    for (long r = 0; r < rounds; r++) {
        for (unsigned g = 1; g <= 100; g++)
            try_shape(d, h, dim3(g), dim3(64 + 32 * (g % 3)), g % 5, (unsigned)r + g);
        static const unsigned odd[] = {1, 2, 31, 33, 63, 65, 100, 511, 1000, 1023, 1024};
        for (unsigned b : odd)
            try_shape(d, h, dim3(7), dim3(b), 0, b);
        try_shape(d, h, dim3(3, 5), dim3(8, 8), 3, 1);
        try_shape(d, h, dim3(3, 5, 7), dim3(4, 3, 5), 1, 2);
        try_shape(d, h, dim3(1, 1, 64), dim3(1, 1, 64), 0, 3);
        try_shape(d, h, dim3(2, 60, 2), dim3(2, 256, 1), 0, 4);
        try_shape(d, h, dim3(1), dim3(1), 0, 5);
    }
    CHECK(cudaFree(d));
    return work_pass(WORK);
}
