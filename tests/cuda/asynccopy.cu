// SPDX-License-Identifier: Apache-2.0
/* Uses what sm_80 brought: asynchronous copies to shared memory in a pipeline of stages,
 * cuda::barrier with phases, reductions over a warp in one instruction, tensor products of bfloat16
 * and double. It is built for compute_80 and needs such a device. Fails if a result differs from
 * the CPU's. */
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <mma.h>

namespace cg = cooperative_groups;
using namespace nvcuda;
enum { N = 1 << 14, THREADS = 128, STAGES = 3, BATCH = THREADS };

__global__ void pipelined(const int *in, int *out, int n)
{
    __shared__ int stage[STAGES][BATCH];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    cg::thread_block block = cg::this_thread_block();
    cuda::pipeline<cuda::thread_scope_block> pipe = cuda::make_pipeline(block, &state);
    int batches = n / BATCH, fetched = 0;
    for (int b = 0; b < batches; b++) {
        for (; fetched < batches && fetched < b + STAGES; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[fetched % STAGES], in + fetched * BATCH,
                               sizeof(int) * BATCH, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[b * BATCH + threadIdx.x] = 3 * stage[b % STAGES][BATCH - 1 - threadIdx.x] + b;
        pipe.consumer_release();
    }
}

__global__ void phases(int *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int v[THREADS];
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0)
        init(&bar, block.size());
    block.sync();
    int sum = 0;
    for (int round = 0; round < 4; round++) {
        v[threadIdx.x] = (int)threadIdx.x * (round + 1);
        bar.arrive_and_wait();
        sum += v[(threadIdx.x + 1) % THREADS];
        auto token = bar.arrive();
        sum += round; /* something between arriving and waiting */
        bar.wait(std::move(token));
    }
    out[threadIdx.x] = sum * 10000 + (int)__reduce_add_sync(0xffffffffu, threadIdx.x % 32) +
                       (int)__reduce_max_sync(0xffffffffu, threadIdx.x % 32);
}

__global__ void tensors(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, const double *p,
                        const double *q, double *r)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 1.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> da;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> db;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> dc;
    wmma::fill_fragment(dc, 0.5);
    wmma::load_matrix_sync(da, p, 4);
    wmma::load_matrix_sync(db, q, 4);
    wmma::mma_sync(dc, da, db, dc);
    wmma::store_matrix_sync(r, dc, 8, wmma::mem_row_major);
}

#define MUST(x)                                                                                    \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL asynccopy: %s: %s\n", #x, cudaGetErrorString(e_));                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int pick_device(void)
{
    int n, major;
    MUST(cudaGetDeviceCount(&n));
    for (int d = 0; d < n; d++) {
        MUST(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d));
        if (major >= 8)
            return cudaSetDevice(d) != cudaSuccess;
    }
    printf("FAIL asynccopy: no device of compute capability 8.0\n");
    return 1;
}

int main()
{
    int *in, *out;
    __nv_bfloat16 *a, *b;
    float *c;
    double *p, *q, *r;
    if (pick_device())
        return 1;
    MUST(cudaMallocManaged(&in, N * sizeof *in));
    MUST(cudaMallocManaged(&out, N * sizeof *out));
    MUST(cudaMallocManaged(&a, 256 * sizeof *a));
    MUST(cudaMallocManaged(&b, 256 * sizeof *b));
    MUST(cudaMallocManaged(&c, 256 * sizeof *c));
    MUST(cudaMallocManaged(&p, 32 * sizeof *p));
    MUST(cudaMallocManaged(&q, 32 * sizeof *q));
    MUST(cudaMallocManaged(&r, 64 * sizeof *r));
    for (int i = 0; i < N; i++)
        in[i] = i * 7;
    for (int i = 0; i < 256; i++) {
        a[i] = __float2bfloat16((float)(i * 5 % 17 - 8));
        b[i] = __float2bfloat16((float)(i * 3 % 11 - 5));
    }
    for (int i = 0; i < 32; i++) {
        p[i] = i * 0.25 - 3;
        q[i] = i * i * 0.5;
    }
    pipelined<<<1, THREADS>>>(in, out, N);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) {
        int batch = i / BATCH;
        if (out[i] != 3 * 7 * (batch * BATCH + BATCH - 1 - i % BATCH) + batch) {
            printf("FAIL asynccopy: element %d is %d\n", i, out[i]);
            return 1;
        }
    }
    phases<<<1, THREADS>>>(out);
    tensors<<<1, 32>>>(a, b, c, p, q, r);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < THREADS; i++)
        if (out[i] != ((i + 1) % THREADS * 10 + 6) * 10000 + 496 + 31) {
            printf("FAIL asynccopy: thread %d has %d\n", i, out[i]);
            return 1;
        }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            float s = 1;
            for (int k = 0; k < 16; k++)
                s += __bfloat162float(a[i * 16 + k]) * __bfloat162float(b[j * 16 + k]);
            if (c[i * 16 + j] != s) {
                printf("FAIL asynccopy: bfloat16 product %d,%d is %g, not %g\n", i, j,
                       c[i * 16 + j], s);
                return 1;
            }
        }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double s = 0.5;
            for (int k = 0; k < 4; k++)
                s += p[i * 4 + k] * q[j * 4 + k];
            if (r[i * 8 + j] != s) {
                printf("FAIL asynccopy: double product %d,%d is %g, not %g\n", i, j, r[i * 8 + j],
                       s);
                return 1;
            }
        }
    printf("PASS asynccopy\n");
    return 0;
}
