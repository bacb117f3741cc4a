// SPDX-License-Identifier: Apache-2.0
/* Multiplies matrices with the C++ interface of the tensor cores: halves with float sums, through
 * shared memory, alpha * A * B + beta * C; bytes with integer sums. Both are exact here because the
 * elements are small integers. Fails if an element differs from the CPU's. */
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
enum { N = 96, TILE = 16 };

__global__ void gemm_half(const half *a, const half *b, const float *c, float *d, float alpha, float beta)
{
    __shared__ half sa[TILE][TILE + 8], sb[TILE][TILE + 8];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, old;
    int row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < N; k += TILE) {
        for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
            sa[i / TILE][i % TILE] = a[(row + i / TILE) * N + k + i % TILE];
            sb[i / TILE][i % TILE] = b[(k + i / TILE) * N + col + i % TILE];
        }
        __syncwarp();
        wmma::load_matrix_sync(fa, &sa[0][0], TILE + 8);
        wmma::load_matrix_sync(fb, &sb[0][0], TILE + 8);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncwarp();
    }
    wmma::load_matrix_sync(old, c + row * N + col, N, wmma::mem_row_major);
    for (int i = 0; i < sum.num_elements; i++)
        sum.x[i] = alpha * sum.x[i] + beta * old.x[i];
    wmma::store_matrix_sync(d + row * N + col, sum, N, wmma::mem_row_major);
}

__global__ void gemm_byte(const signed char *a, const signed char *b, int *d)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    int row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    wmma::fill_fragment(sum, 0);
    for (int k = 0; k < N; k += TILE) {
        wmma::load_matrix_sync(fa, a + row * N + k, N);
        wmma::load_matrix_sync(fb, b + col * N + k, N);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(d + row * N + col, sum, N, wmma::mem_row_major);
}

#define MUST(x)                                                                                    \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL wmmagemm: %s: %s\n", #x, cudaGetErrorString(e_));                         \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main()
{
    half *a, *b;
    float *c, *d;
    signed char *p, *q;
    int *r;
    MUST(cudaMallocManaged(&a, N * N * sizeof *a));
    MUST(cudaMallocManaged(&b, N * N * sizeof *b));
    MUST(cudaMallocManaged(&c, N * N * sizeof *c));
    MUST(cudaMallocManaged(&d, N * N * sizeof *d));
    MUST(cudaMallocManaged(&p, N * N));
    MUST(cudaMallocManaged(&q, N * N));
    MUST(cudaMallocManaged(&r, N * N * sizeof *r));
    srand(5);
    for (int i = 0; i < N * N; i++) {
        a[i] = __int2half_rn(rand() % 17 - 8);
        b[i] = __int2half_rn(rand() % 13 - 6);
        c[i] = (float)(rand() % 100);
        p[i] = (signed char)(rand() % 256 - 128);
        q[i] = (signed char)(rand() % 256 - 128);
    }
    gemm_half<<<dim3(N / TILE, N / TILE), 32>>>(a, b, c, d, 2.0f, -0.5f);
    gemm_byte<<<dim3(N / TILE, N / TILE), 32>>>(p, q, r);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            int isum = 0;
            for (int k = 0; k < N; k++) {
                sum += __half2float(a[i * N + k]) * __half2float(b[k * N + j]);
                isum += p[i * N + k] * q[j * N + k];
            }
            if (d[i * N + j] != 2 * sum - 0.5f * c[i * N + j] || r[i * N + j] != isum) {
                printf("FAIL wmmagemm: element %d,%d is %g and %d\n", i, j, d[i * N + j], r[i * N + j]);
                return 1;
            }
        }
    printf("PASS wmmagemm\n");
    return 0;
}
