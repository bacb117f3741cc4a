// SPDX-License-Identifier: Apache-2.0
// Uses CUB (device-wide scan, reduction, radix sort, histogram, selection, run lengths, and
// collectives of blocks and warps) and cuda::atomic and cuda::barrier of libcu++. Fails if a result
// differs from the host's.
#include <algorithm>
#include <numeric>
#include <vector>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include "work.cuh"
#define WORK "cubs"

// Calls a device-wide algorithm twice, as CUB wants: for the size of its scratch memory, then to run it.
#define CUB(...)                                                                                   \
    do {                                                                                           \
        void *scratch = NULL;                                                                      \
        size_t bytes = 0;                                                                          \
        CHECK(cub::__VA_ARGS__);                                                                   \
        CHECK(cudaMalloc(&scratch, bytes));                                                        \
        CHECK(cub::__VA_ARGS__);                                                                   \
        CHECK(cudaFree(scratch));                                                                  \
    } while (0)

template <typename T> static T *upload(const std::vector<T> &v)
{
    T *d;
    CHECK(cudaMalloc(&d, v.size() * sizeof(T)));
    CHECK(cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return d;
}
template <typename T> static std::vector<T> download(const T *d, size_t n)
{
    std::vector<T> v(n);
    CHECK(cudaMemcpy(v.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}
template <typename T> static int expect(const char *what, const std::vector<T> &got, const std::vector<T> &want)
{
    for (size_t k = 0; k < want.size(); k++)
        if (got[k] != want[k])
            return work_fail(WORK, "%s: element %zu is %g, not %g", what, k, (double)got[k], (double)want[k]);
    return 0;
}

template <int THREADS, int ITEMS> __global__ void block_sort(uint32_t *v, uint32_t *sums)
{
    typedef cub::BlockLoad<uint32_t, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE> load;
    typedef cub::BlockStore<uint32_t, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE> store;
    typedef cub::BlockRadixSort<uint32_t, THREADS, ITEMS> sort;
    typedef cub::BlockScan<uint32_t, THREADS> scan;
    typedef cub::WarpReduce<uint32_t> warp;
    __shared__ union {
        typename load::TempStorage l;
        typename store::TempStorage s;
        typename sort::TempStorage r;
        typename scan::TempStorage c;
        typename warp::TempStorage w[THREADS / 32];
    } t;
    uint32_t items[ITEMS], total, first;
    load(t.l).Load(v + (size_t)blockIdx.x * THREADS * ITEMS, items);
    __syncthreads();
    sort(t.r).Sort(items);
    __syncthreads();
    first = items[0];
    scan(t.c).ExclusiveSum(first, first, total);
    __syncthreads();
    uint32_t largest = warp(t.w[threadIdx.x / 32]).Reduce(items[ITEMS - 1], [](uint32_t a, uint32_t b) { return a > b ? a : b; });
    if (threadIdx.x == THREADS - 32)
        sums[2 * blockIdx.x] = largest;
    if (threadIdx.x == THREADS - 1)
        sums[2 * blockIdx.x + 1] = total;
    __syncthreads();
    store(t.s).Store(v + (size_t)blockIdx.x * THREADS * ITEMS, items);
}

__global__ void count(const uint32_t *v, uint32_t n, cuda::atomic<unsigned long long, cuda::thread_scope_device> *sum,
                      cuda::atomic<int, cuda::thread_scope_device> *least)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum->fetch_add(v[i], cuda::std::memory_order_relaxed);
        int x = (int)(v[i] >> 1), old = least->load(cuda::std::memory_order_acquire);
        while (x < old && !least->compare_exchange_weak(old, x, cuda::std::memory_order_acq_rel))
            ;
    }
}

int main(int argc, char **argv)
{
    uint32_t n = (uint32_t)work_arg(argc, argv, 1, 30000, 1 << 24);
    int bad = 0, in = (int)n;
    std::vector<uint32_t> v(n), s;
    std::vector<float> f(n);
    for (uint32_t k = 0; k < n; k++) {
        v[k] = (uint32_t)work_random(k) >> (k % 28);
        f[k] = (float)(int32_t)work_random(n + k) / 65536.0f;
    }
    uint32_t *d = upload(v), *e = upload(v), *g = upload(v);
    float *df = upload(f), *ef = upload(f);
    std::vector<uint32_t> want(n);

    CUB(DeviceScan::InclusiveSum(scratch, bytes, d, e, in));
    std::partial_sum(v.begin(), v.end(), want.begin());
    bad += expect("DeviceScan", download(e, n), want);

    CUB(DeviceRadixSort::SortKeys(scratch, bytes, d, e, in));
    s = v;
    std::sort(s.begin(), s.end());
    bad += expect("DeviceRadixSort", download(e, n), s);
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    CHECK(cudaMemcpy(g, order.data(), n * 4, cudaMemcpyHostToDevice));
    uint32_t *g2 = upload(order);
    CUB(DeviceRadixSort::SortPairsDescending(scratch, bytes, df, ef, g, g2, in));
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return f[a] > f[b]; });
    bad += expect("SortPairsDescending", download(g2, n), order);
    CUB(DeviceRadixSort::SortKeys(scratch, bytes, d, e, in, 4, 12));
    want = v;
    std::stable_sort(want.begin(), want.end(), [](uint32_t a, uint32_t b) { return (a >> 4 & 255) < (b >> 4 & 255); });
    bad += expect("SortKeys of some bits", download(e, n), want);
    CUB(DeviceMergeSort::SortKeys(scratch, bytes, g2, in, [] __device__(uint32_t a, uint32_t b) { return a < b; }));
    std::sort(order.begin(), order.end());
    bad += expect("DeviceMergeSort", download(g2, n), order);

    CUB(DeviceReduce::Max(scratch, bytes, df, ef, in));
    bad += expect("DeviceReduce::Max", download(ef, 1), {*std::max_element(f.begin(), f.end())});
    cub::KeyValuePair<int, float> *kv;
    CHECK(cudaMalloc(&kv, sizeof *kv));
    CUB(DeviceReduce::ArgMin(scratch, bytes, df, kv, in));
    bad += expect("DeviceReduce::ArgMin", std::vector<int>{download(kv, 1)[0].key}, {(int)(std::min_element(f.begin(), f.end()) - f.begin())});

    int *bins;
    CHECK(cudaMalloc(&bins, 64 * sizeof *bins));
    CUB(DeviceHistogram::HistogramEven(scratch, bytes, df, bins, 65, -32768.0f, 32768.0f, in));
    std::vector<int> hist(64);
    for (float x : f)
        if (x < 32768.0f)
            hist[(int)((x + 32768.0f) / 1024.0f)]++;
    bad += expect("DeviceHistogram", download(bins, 64), hist);

    CHECK(cudaMemcpy(e, s.data(), n * 4, cudaMemcpyHostToDevice));
    uint32_t *uk;
    int *lengths, *runs;
    CHECK(cudaMalloc(&uk, n * 4));
    CHECK(cudaMalloc(&lengths, n * 4));
    CHECK(cudaMalloc(&runs, 4));
    CUB(DeviceRunLengthEncode::Encode(scratch, bytes, e, uk, lengths, runs, in));
    std::vector<uint32_t> hu;
    std::vector<int> hl;
    for (uint32_t x : s) {
        if (hu.empty() || hu.back() != x) {
            hu.push_back(x);
            hl.push_back(0);
        }
        hl.back()++;
    }
    bad += expect("runs", download(runs, 1), {(int)hu.size()});
    bad += expect("DeviceRunLengthEncode", download(uk, hu.size()), hu) + expect("lengths", download(lengths, hl.size()), hl);
    CUB(DeviceSelect::If(scratch, bytes, d, uk, runs, in, [] __device__(uint32_t x) { return x % 3 == 0; }));
    want.clear();
    std::copy_if(v.begin(), v.end(), std::back_inserter(want), [](uint32_t x) { return x % 3 == 0; });
    bad += expect("DeviceSelect", download(uk, want.size()), want) + expect("selected", download(runs, 1), {(int)want.size()});

    const uint32_t blocks = n / (128 * 7);
    uint32_t *sums;
    CHECK(cudaMalloc(&sums, (2 * blocks + 1) * sizeof *sums));
    if (blocks)
        block_sort<128, 7><<<blocks, 128>>>(d, sums);
    CHECK_LAUNCH();
    std::vector<uint32_t> hs(2 * blocks), sorted = v;
    for (uint32_t b = 0; b < blocks; b++) {
        std::sort(sorted.begin() + b * 896, sorted.begin() + (b + 1) * 896);
        hs[2 * b] = sorted[b * 896 + 895];
        for (int k = 0; k < 127; k++) // exclusive: the last thread's own is left out
            hs[2 * b + 1] += sorted[b * 896 + k * 7];
        hs[2 * b + 1] += sorted[b * 896 + 127 * 7];
    }
    bad += expect("BlockRadixSort", download(d, n), sorted) + expect("BlockScan", download(sums, 2 * blocks), hs);

    cuda::atomic<unsigned long long, cuda::thread_scope_device> *sum;
    cuda::atomic<int, cuda::thread_scope_device> *least;
    CHECK(cudaMalloc(&sum, sizeof *sum));
    CHECK(cudaMalloc(&least, sizeof *least));
    CHECK(cudaMemset(sum, 0, sizeof *sum));
    CHECK(cudaMemset(least, 0x7f, sizeof *least));
    count<<<8, 256>>>(d, n, sum, least);
    CHECK_LAUNCH();
    unsigned long long total = 0;
    int lowest = 0x7f7f7f7f, got_least;
    for (uint32_t x : v) {
        total += x;
        lowest = std::min(lowest, (int)(x >> 1));
    }
    unsigned long long got_total;
    CHECK(cudaMemcpy(&got_total, sum, 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&got_least, least, 4, cudaMemcpyDeviceToHost));
    if (got_total != total || got_least != lowest)
        bad += work_fail(WORK, "cuda::atomic: %llu %d, not %llu %d", got_total, got_least, total, lowest);
    return bad ? 1 : work_pass(WORK);
}
