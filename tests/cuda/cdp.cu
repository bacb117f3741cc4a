// SPDX-License-Identifier: Apache-2.0
/* Kernels that start kernels. Fails if one of them, or a copy or fill that a kernel starts, is not
 * carried out, is carried out in another order than device streams say, or has not ended when the
 * host is told that the first kernel has; or if errors of such launches are not told to the kernel.
 *
 * With an argument it launches a kernel that calls what is not supported, and does not ask for the
 * error. */
#include <algorithm>
#include <vector>
#include "work.cuh"
#define WORK "cdp"

// ---- recursion: quicksort, each part of an array by a kernel of its own ----
__global__ void sort_part(int *v, int left, int right)
{
    if (right - left < 24) {
        for (int i = left + 1; i <= right; i++)
            for (int k = i; k > left && v[k - 1] > v[k]; k--) {
                int t = v[k];
                v[k] = v[k - 1];
                v[k - 1] = t;
            }
        return;
    }
    int l = left, r = right, pivot = v[(left + right) / 2];
    while (l <= r) {
        while (v[l] < pivot)
            l++;
        while (v[r] > pivot)
            r--;
        if (l <= r) {
            int t = v[l];
            v[l++] = v[r];
            v[r--] = t;
        }
    }
    cudaStream_t s[2];
    for (int i = 0; i < 2; i++)
        cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);
    if (left < r)
        sort_part<<<1, 1, 0, s[0]>>>(v, left, r);
    if (l < right)
        sort_part<<<1, 1, 0, s[1]>>>(v, l, right);
    for (int i = 0; i < 2; i++)
        cudaStreamDestroy(s[i]);
}

static int sorts()
{
    std::vector<int> host(5000), want;
    unsigned x = 7;
    for (int &v : host)
        v = (x = x * 1664525 + 1013904223) >> 8;
    want = host;
    std::sort(want.begin(), want.end());
    int *v;
    size_t bytes = host.size() * sizeof(int);
    CHECK(cudaMalloc(&v, bytes));
    CHECK(cudaMemcpy(v, host.data(), bytes, cudaMemcpyHostToDevice));
    sort_part<<<1, 1>>>(v, 0, (int)host.size() - 1);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host.data(), v, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(v));
    return host == want ? 0 : work_fail(WORK, "the array is not sorted");
}

// ---- order ----
struct pair {
    char tag;
    double factor;
};
__global__ void times_plus(int *x, pair p, int add)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *x = (int)(*x * p.factor) + add + (p.tag == 't' ? 0 : 1000);
}
__global__ void bytes_are(const unsigned char *y, int n, unsigned char want, int *n_other)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && y[i] != want)
        atomicAdd(n_other, 1);
}
__global__ void in_order(int *x, unsigned char *y, int n, int *n_other)
{
    pair two = {'t', 2}, ten = {'t', 10};
    times_plus<<<1, 1, 0, cudaStreamTailLaunch>>>(x, ten, 0); // last, though it comes first
    times_plus<<<3, 32>>>(x, two, 1);                         // 1 -> 3
    times_plus<<<1, 1>>>(x, two, 1);                          // 3 -> 7
    cudaMemsetAsync(y, 0x5a, n, 0);
    cudaMemcpyAsync(y + n, y, n, cudaMemcpyDeviceToDevice, 0);
    bytes_are<<<(2 * n + 127) / 128, 128>>>(y, 2 * n, 0x5a, n_other);
}

static int is_in_order()
{
    int *x, one = 1, got[2], n = 1000;
    unsigned char *y;
    CHECK(cudaMalloc(&x, 2 * sizeof(int)));
    CHECK(cudaMalloc(&y, 2 * n));
    CHECK(cudaMemset(x, 0, 2 * sizeof(int)));
    CHECK(cudaMemset(y, 0, 2 * n));
    CHECK(cudaMemcpy(x, &one, sizeof(one), cudaMemcpyHostToDevice));
    in_order<<<1, 1>>>(x, y, n, x + 1);
    times_plus<<<1, 1>>>(x, pair{'t', 1}, 5); // of the host: behind all of it
    CHECK(cudaMemcpy(got, x, sizeof(got), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    if (got[1])
        return work_fail(WORK, "%d bytes were not filled or copied in order", got[1]);
    return got[0] == 75 ? 0 : work_fail(WORK, "order: %d, not 75", got[0]);
}

// ---- copies and fills of two and three dimensions ----
enum { PITCH = 40, ROWS = 12, SLICES = 5, BOX = PITCH * ROWS * SLICES };
/* errors: of a copy and of a fill whose rows are wider than their pitch */
__global__ void boxes(unsigned char *to, unsigned char *from, int *errors)
{
    cudaMemcpy2DAsync(to + 3, PITCH, from + 7, 2 * PITCH, 11, 9, cudaMemcpyDeviceToDevice, 0);
    cudaMemset2DAsync(to + 20, PITCH, 0x61, 5, 7, 0);
    cudaPitchedPtr in = {to + PITCH * ROWS, PITCH, PITCH, ROWS}, whole = {to + 33, PITCH, 2, 4};
    cudaMemset3DAsync(in, 0x72, cudaExtent{13, 6, 2}, 0);   // not all rows of a slice
    cudaMemset3DAsync(whole, 0x83, cudaExtent{2, 4, 3}, 0); // all of them
    cudaMemcpy3DParms p = {};
    p.srcPtr = cudaPitchedPtr{from, PITCH, PITCH, ROWS};
    p.srcPos = cudaPos{2, 1, 1};
    p.dstPtr = cudaPitchedPtr{to, PITCH, PITCH, ROWS};
    p.dstPos = cudaPos{4, 3, 2};
    p.extent = cudaExtent{17, 8, 3};
    p.kind = cudaMemcpyDeviceToDevice;
    cudaMemcpy3DAsync(&p, 0);
    cudaMemcpy2DAsync(to, 8, from, 40, 9, 2, cudaMemcpyDeviceToDevice, 0);
    errors[0] = cudaGetLastError();
    cudaMemset2DAsync(to, 8, 0, 9, 2, 0);
    errors[1] = cudaGetLastError();
    cudaRuntimeGetVersion(errors + 2);
}

static int fills_boxes()
{
    std::vector<unsigned char> from(2 * BOX), want(BOX), got(BOX);
    unsigned char *a, *b;
    int *errors, e[3];
    for (size_t i = 0; i < from.size(); i++)
        from[i] = (unsigned char)(i * 7 + i / 251);
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 11; x++)
            want[3 + y * PITCH + x] = from[7 + y * 2 * PITCH + x];
    for (int y = 0; y < 7; y++)
        std::fill_n(&want[20 + y * PITCH], 5, 0x61);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 6; y++)
            std::fill_n(&want[PITCH * ROWS * (1 + z) + y * PITCH], 13, 0x72);
    for (int y = 0; y < 12; y++)
        std::fill_n(&want[33 + y * PITCH], 2, 0x83);
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 17; x++)
                want[4 + x + PITCH * (3 + y + ROWS * (2 + z))] =
                    from[2 + x + PITCH * (1 + y + ROWS * (1 + z))];
    CHECK(cudaMalloc(&a, BOX));
    CHECK(cudaMalloc(&b, 2 * BOX));
    CHECK(cudaMalloc(&errors, sizeof(e)));
    CHECK(cudaMemset(a, 0, BOX));
    CHECK(cudaMemcpy(b, from.data(), 2 * BOX, cudaMemcpyHostToDevice));
    boxes<<<1, 1>>>(a, b, errors);
    CHECK(cudaMemcpy(got.data(), a, BOX, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(e, errors, sizeof(e), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(errors));
    for (int i = 0; i < BOX; i++)
        if (got[i] != want[i])
            return work_fail(WORK, "boxes: byte %d is %d, not %d", i, got[i], want[i]);
    if (e[0] != cudaErrorInvalidValue || e[1] != cudaErrorInvalidValue || e[2] < 12000)
        return work_fail(WORK, "boxes: errors %d and %d, version %d", e[0], e[1], e[2]);
    return 0;
}

// ---- many, and too many ----
__global__ void count(int *n)
{
    atomicAdd(n, 1);
}
__global__ void each_starts(int *n)
{
    count<<<1, 1>>>(n);
}
/* [0]: how many could be started, [1]: the error of the one that could not, [2]: asked again */
__global__ void start_many(int *n, int *ret)
{
    int k = 0;
    while (k < 1000000) {
        count<<<1, 1, 0, cudaStreamFireAndForget>>>(n);
        if (cudaPeekAtLastError())
            break;
        k++;
    }
    ret[0] = k;
    ret[1] = cudaGetLastError();
    ret[2] = cudaGetLastError();
}
__global__ void start_wrong(int *n, int *ret)
{
    count<<<1, 2048>>>(n);
    ret[1] = cudaGetLastError();
    count<<<1, 0>>>(n);
    ret[2] = cudaGetLastError();
}

/* n: how deep it came; n[1]: the error that ended it */
__global__ void dig(int *n)
{
    ++*n;
    dig<<<1, 1>>>(n);
    if (cudaError_t e = cudaGetLastError())
        n[1] = e;
}

static int counts()
{
    int *n, got[4];
    CHECK(cudaMalloc(&n, sizeof(got)));
    CHECK(cudaMemset(n, 0, sizeof(got)));
    each_starts<<<20, 50>>>(n);
    CHECK(cudaMemcpy(got, n, sizeof(got), cudaMemcpyDeviceToHost));
    if (got[0] != 1000)
        return work_fail(WORK, "1000 threads started %d kernels", got[0]);
    CHECK(cudaMemset(n, 0, sizeof(got)));
    start_many<<<1, 1>>>(n, n + 1);
    CHECK(cudaMemcpy(got, n, sizeof(got), cudaMemcpyDeviceToHost));
    if (got[1] < 2048 || got[1] == 1000000 || got[0] != got[1] ||
        got[2] != cudaErrorLaunchPendingCountExceeded || got[3] != cudaSuccess)
        return work_fail(WORK, "many: %d started, %d ran, error %d, then %d", got[1], got[0],
                         got[2], got[3]);
    CHECK(cudaMemset(n, 0, sizeof(got)));
    start_wrong<<<1, 1>>>(n, n + 1);
    CHECK(cudaMemcpy(got, n, sizeof(got), cudaMemcpyDeviceToHost));
    if (got[0] || got[2] != cudaErrorInvalidConfiguration ||
        got[3] != cudaErrorInvalidConfiguration)
        return work_fail(WORK, "wrong shapes: %d ran, errors %d and %d", got[0], got[2], got[3]);
    CHECK(cudaMemset(n, 0, sizeof(got)));
    dig<<<1, 1>>>(n);
    CHECK(cudaMemcpy(got, n, sizeof(got), cudaMemcpyDeviceToHost));
    if (got[0] != 25 || got[1] != cudaErrorLaunchMaxDepthExceeded)
        return work_fail(WORK, "nested: %d kernels, error %d", got[0], got[1]);
    CHECK(cudaFree(n));
    return 0;
}

__global__ void not_supported(int *x)
{
    cudaDeviceGetAttribute(x, cudaDevAttrWarpSize, 0);
}

int main(int argc, char **)
{
    if (argc > 1) {
        int *x;
        CHECK(cudaMalloc(&x, sizeof(*x)));
        not_supported<<<1, 1>>>(x);
        return work_pass(WORK);
    }
    int r = sorts();
    r = r ? r : is_in_order();
    r = r ? r : fills_boxes();
    r = r ? r : counts();
    CHECK(cudaDeviceSynchronize());
    return r ? r : work_pass(WORK);
}
