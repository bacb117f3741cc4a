// SPDX-License-Identifier: Apache-2.0
// Uses blocks of 1024 threads of a kernel with many live values, large allocations on large pages,
// and new[] in kernels. Fails if one of them is refused or gives wrong results.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL bigblocks: line %d: %s\n", __LINE__, cudaGetErrorString(e_));             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("FAIL bigblocks: line %d: %s\n", __LINE__, #what);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { TAPS = 96 };

__host__ __device__ float mix(float x, int k) { return x * 0.5f + (float)(k % 7); }

// All of TAPS values are alive between the two loops.
__global__ void wide(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[TAPS], sum = 0;
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        v[k] = mix(in[(i + k) % n], k);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        sum += v[k] * v[TAPS - 1 - k];
    out[i] = sum;
}

struct counted {
    int *at;
    __device__ counted() : at(nullptr) {}
    __device__ ~counted()
    {
        if (at)
            atomicAdd(at, 1);
    }
};

__global__ void arrays(int *n_ended, int each)
{
    counted *c = new counted[each]; // its count stands before the block
    for (int k = 0; k < each; k++)
        c[k].at = n_ended;
    delete[] c;
}

int main(int argc, char **argv)
{
    int n = 4096;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++)
        in[i] = (float)(i * 37 % 64);
    float *d, *o;
    CHECK(cudaMalloc(&d, n * sizeof *d));
    CHECK(cudaMalloc(&o, n * sizeof *o));
    CHECK(cudaMemcpy(d, in.data(), n * sizeof *d, cudaMemcpyHostToDevice));
    wide<<<n / 1024, 1024>>>(d, o, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), o, n * sizeof *o, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < TAPS; k++)
            sum += (double)mix(in[(i + k) % n], k) *
                   mix(in[(i + TAPS - 1 - k) % n], TAPS - 1 - k);
        double e = sum - out[i];
        MUST((e < 0 ? -e : e) <= 1e-4 * sum);
    }
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, wide));
    MUST(a.maxThreadsPerBlock == 1024 && a.numRegs * 1024 <= 65536);

    // As NVIDIA's driver places them; between, small ones that don't.
    for (int k = 0; k < 8; k++) {
        void *small, *big;
        CHECK(cudaMalloc(&small, 1000));
        CHECK(cudaMalloc(&big, (1 << 20) + k * 4096));
        MUST((uintptr_t)small % 256 == 0 && (uintptr_t)big % (2 << 20) == 0);
    }

    int *ended;
    CHECK(cudaMallocManaged(&ended, sizeof *ended));
    *ended = 0;
    arrays<<<4, 32>>>(ended, 5);
    CHECK(cudaDeviceSynchronize());
    MUST(*ended == 4 * 32 * 5);
    printf("PASS bigblocks\n");
    return 0;
}
