// SPDX-License-Identifier: Apache-2.0
// Matrices, textures, asynchronous copies, barriers, scoped atomics, clusters: for what the compiler emits.
#include <mma.h>
#include <cuda/pipeline>
#include <cuda/barrier>
#include <cuda/atomic>
#include <cuda/ptx>
#include <cuda_pipeline.h>
using namespace nvcuda;
__global__ void mm(half *a, half *b, float *c, signed char *i8, int *i32)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> ga;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> gb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> gc;
    wmma::fill_fragment(gc, 0);
    wmma::load_matrix_sync(ga, i8, 16);
    wmma::load_matrix_sync(gb, i8, 16);
    wmma::mma_sync(gc, ga, gb, gc);
    wmma::store_matrix_sync(i32, gc, 16, wmma::mem_row_major);
    unsigned x, y;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(x), "=r"(y)
                 : "r"(threadIdx.x));
    i32[0] = x + y;
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=r"(x), "=r"(y)
                 : "r"(x), "r"(y), "r"(x), "r"(y));
    i32[1] = x + y;
}
__global__ void tex(cudaTextureObject_t t, cudaSurfaceObject_t s, float *o)
{
    o[0] = tex2D<float>(t, .5f, .6f);
    o[1] = tex1Dfetch<float>(t, 3);
    float4 f = tex3D<float4>(t, 1, 2, 3);
    o[2] = f.x;
    o[3] = tex2DLayered<float>(t, 1, 2, 3);
    o[4] = texCubemap<float>(t, 1, 2, 3);
    o[5] = tex2DLod<float>(t, 1, 2, 3);
    o[6] = tex2Dgather<float4>(t, 1, 2, 1).y;
    surf2Dwrite(3.f, s, 4, 5);
    o[7] = surf2Dread<float>(s, 4, 6);
    o[8] = tex2DGrad<float>(t, 1, 2, make_float2(1, 2), make_float2(3, 4));
}
__global__ void as(int *g, int *o)
{
    extern __shared__ int sm[];
    __pipeline_memcpy_async(sm + threadIdx.x * 4, g + threadIdx.x * 4, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    if (threadIdx.x == 0)
        init(&b, blockDim.x);
    __syncthreads();
    b.arrive_and_wait();
    o[0] = sm[0];
    cuda::atomic_ref<int, cuda::thread_scope_device> r(o[1]);
    r.fetch_add(3, cuda::memory_order_acq_rel);
    r.store(4, cuda::memory_order_release);
    o[3] = r.load(cuda::memory_order_acquire);
    r.wait(5);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    int ex = 3;
    r.compare_exchange_strong(ex, 5);
    r.fetch_max(8);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> q(
        *(unsigned long long *)(o + 4));
    q.fetch_sub(1);
#if __CUDA_ARCH__ >= 900
    uint64_t *bar = (uint64_t *)&b;
    cuda::ptx::cp_async_bulk(cuda::ptx::space_shared, cuda::ptx::space_global, sm, g, 64u, bar);
    cuda::device::barrier_arrive_tx(b, 1, 64);
    cuda::ptx::fence_proxy_async();
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
    cuda::ptx::barrier_cluster_arrive();
    cuda::ptx::barrier_cluster_wait();
#endif
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) clu(int *o)
{
    auto c = cooperative_groups::this_cluster();
    __shared__ int s;
    s = 1;
    c.sync();
    o[c.block_rank()] = *c.map_shared_rank(&s, 1);
    o[5] = c.num_blocks();
#if __CUDA_ARCH__
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
#endif
