// SPDX-License-Identifier: Apache-2.0
// Uses Thrust: sorts, reductions, scans, searches, sets, and transformations with functors and
// lambdas, on device vectors. Fails if a result differs from the C++ standard library's.
#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>
#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/inner_product.h>
#include <thrust/merge.h>
#include <thrust/iterator/zip_iterator.h>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>
#include "work.cuh"
#define WORK "thrusting"

#define EXPECT(what, cond)                                                                         \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            work_fail(WORK, "%s: %s", what, #cond);                                                \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)

struct saxpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};
struct is_odd {
    __host__ __device__ bool operator()(int v) const { return v & 1; }
};
struct square {
    __host__ __device__ double operator()(double v) const { return v * v; }
};
struct by_low_byte {
    __host__ __device__ bool operator()(int a, int b) const { return (a & 255) < (b & 255); }
};
struct inside {
    __host__ __device__ int operator()(uint32_t i) const
    {
        uint32_t h = i * 2654435761u;
        float x = (float)(h >> 16) / 65536.0f, y = (float)(h & 0xffff) / 65536.0f;
        return x * x + y * y < 1.0f;
    }
};

template <typename T> static bool same(const thrust::device_vector<T> &d, const std::vector<T> &want)
{
    std::vector<T> h(d.size());
    thrust::copy(d.begin(), d.end(), h.begin());
    return h == want;
}

int main(int argc, char **argv)
{
    uint32_t n = (uint32_t)work_arg(argc, argv, 1, 20000, 1 << 24);
    int bad = 0;
    std::vector<int> v(n), w(n);
    for (uint32_t k = 0; k < n; k++) {
        v[k] = (int)work_random(k) >> (k % 20);
        w[k] = (int)(work_random(n + k) % 1000);
    }
    thrust::device_vector<int> d(v.begin(), v.end()), e(w.begin(), w.end());

    EXPECT("reduce", thrust::reduce(d.begin(), d.end(), 0ll, thrust::plus<long long>()) == std::accumulate(v.begin(), v.end(), 0ll));
    EXPECT("max_element", *thrust::max_element(d.begin(), d.end()) == *std::max_element(v.begin(), v.end()));
    EXPECT("count_if", thrust::count_if(d.begin(), d.end(), is_odd()) == std::count_if(v.begin(), v.end(), is_odd()));
    EXPECT("counting", thrust::transform_reduce(thrust::counting_iterator<uint32_t>(0), thrust::counting_iterator<uint32_t>(n), inside(), 0,
                                    thrust::plus<int>()) == [&] {
        int s = 0;
        for (uint32_t k = 0; k < n; k++)
            s += inside()(k);
        return s;
    }());

    thrust::device_vector<int> s = d;
    std::vector<int> hs = v;
    thrust::sort(s.begin(), s.end());
    std::sort(hs.begin(), hs.end());
    EXPECT("sort", same(s, hs));
    EXPECT("is_sorted", thrust::is_sorted(s.begin(), s.end()));
    thrust::sort(s.begin(), s.end(), thrust::greater<int>());
    std::sort(hs.begin(), hs.end(), std::greater<int>());
    EXPECT("sort greater", same(s, hs));

    s = d;
    hs = v;
    thrust::stable_sort(s.begin(), s.end(), by_low_byte()); // a comparison of ours: merge sort
    std::stable_sort(hs.begin(), hs.end(), by_low_byte());
    EXPECT("stable_sort", same(s, hs));

    thrust::device_vector<int> keys = e, values = d;
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return w[a] < w[b]; });
    thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin());
    std::vector<int> hk(n), hv(n);
    for (uint32_t k = 0; k < n; k++) {
        hk[k] = w[order[k]];
        hv[k] = v[order[k]];
    }
    EXPECT("sort_by_key", same(keys, hk) && same(values, hv));

    thrust::device_vector<int> sums(n);
    std::vector<int> hsums(n);
    thrust::inclusive_scan(e.begin(), e.end(), sums.begin());
    std::partial_sum(w.begin(), w.end(), hsums.begin());
    EXPECT("inclusive_scan", same(sums, hsums));
    thrust::exclusive_scan(e.begin(), e.end(), sums.begin(), 7);
    for (uint32_t k = n - 1; k > 0; k--)
        hsums[k] = hsums[k - 1] + 7;
    hsums[0] = 7;
    EXPECT("exclusive_scan", same(sums, hsums));

    thrust::device_vector<int> uk(n), uv(n);
    auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), uk.begin(), uv.begin());
    std::vector<int> hu, hsum;
    for (uint32_t k = 0; k < n; k++) {
        if (hu.empty() || hu.back() != hk[k]) {
            hu.push_back(hk[k]);
            hsum.push_back(0);
        }
        hsum.back() = (int)((unsigned)hsum.back() + (unsigned)hv[k]);
    }
    uk.resize(ends.first - uk.begin());
    uv.resize(ends.second - uv.begin());
    EXPECT("reduce_by_key", same(uk, hu) && same(uv, hsum));

    s = keys;
    s.erase(thrust::unique(s.begin(), s.end()), s.end());
    EXPECT("unique", same(s, hu));
    thrust::device_vector<int> where(1000);
    thrust::lower_bound(keys.begin(), keys.end(), thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(1000), where.begin());
    std::vector<int> hw(1000);
    for (int k = 0; k < 1000; k++)
        hw[k] = (int)(std::lower_bound(hk.begin(), hk.end(), k) - hk.begin());
    EXPECT("lower_bound", same(where, hw));

    s = d;
    s.erase(thrust::remove_if(s.begin(), s.end(), is_odd()), s.end());
    hs = v;
    hs.erase(std::remove_if(hs.begin(), hs.end(), is_odd()), hs.end());
    EXPECT("remove_if", same(s, hs));
    s = d;
    hs = v;
    thrust::stable_partition(s.begin(), s.end(), is_odd());
    std::stable_partition(hs.begin(), hs.end(), is_odd());
    EXPECT("stable_partition", same(s, hs));

    thrust::device_vector<int> a = d, b = e, both(2 * n);
    thrust::sort(a.begin(), a.end());
    thrust::sort(b.begin(), b.end());
    std::vector<int> ha = v, hb = w, hboth(2 * n);
    std::sort(ha.begin(), ha.end());
    std::sort(hb.begin(), hb.end());
    both.resize(thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), both.begin()) - both.begin());
    hboth.resize(std::set_intersection(ha.begin(), ha.end(), hb.begin(), hb.end(), hboth.begin()) - hboth.begin());
    EXPECT("set_intersection", same(both, hboth));
    both.resize(2 * n);
    hboth.resize(2 * n);
    thrust::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin());
    std::merge(ha.begin(), ha.end(), hb.begin(), hb.end(), hboth.begin());
    EXPECT("merge", same(both, hboth));

    std::vector<float> hx(n), hy(n);
    for (uint32_t k = 0; k < n; k++) {
        hx[k] = (float)(v[k] % 1000) / 8;
        hy[k] = (float)w[k] / 4;
    }
    thrust::device_vector<float> x(hx.begin(), hx.end()), y(hy.begin(), hy.end());
    thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), saxpy{0.5f});
    for (uint32_t k = 0; k < n; k++)
        hy[k] = 0.5f * hx[k] + hy[k]; // exact
    EXPECT("transform", same(y, hy));
    std::vector<double> hd(hx.begin(), hx.end());
    thrust::device_vector<double> dd(hd.begin(), hd.end());
    double norm = thrust::transform_reduce(dd.begin(), dd.end(), square(), 0.0, thrust::plus<double>()), hnorm = 0;
    for (double q : hd)
        hnorm += q * q; // exact: multiples of 1/64
    EXPECT("transform_reduce", norm == hnorm);
    EXPECT("inner_product", thrust::inner_product(dd.begin(), dd.end(), dd.begin(), 0.0) == hnorm);
    thrust::sort(dd.begin(), dd.end());
    std::sort(hd.begin(), hd.end());
    EXPECT("sort of doubles", same(dd, hd));

    thrust::device_vector<thrust::complex<float>> z(n);
    thrust::transform(x.begin(), x.end(), y.begin(), z.begin(), [] __host__ __device__(float r, float i) {
        return thrust::complex<float>(r, i) * thrust::complex<float>(0, 2);
    });
    thrust::complex<float> zs = thrust::reduce(z.begin(), z.begin() + 100, thrust::complex<float>(0, 0));
    std::complex<float> hz(0, 0);
    for (int k = 0; k < 100; k++)
        hz += std::complex<float>(hx[k], hy[k]) * std::complex<float>(0, 2);
    EXPECT("complex", zs.real() == hz.real() && zs.imag() == hz.imag());
    thrust::complex<double> root = thrust::sqrt(thrust::complex<double>(-4, 0));
    EXPECT("complex sqrt", root == thrust::complex<double>(0, 2));

    auto zip = thrust::make_zip_iterator(thrust::make_tuple(d.begin(), e.begin()));
    thrust::sort(zip, zip + n);
    std::vector<std::pair<int, int>> hp(n);
    for (uint32_t k = 0; k < n; k++)
        hp[k] = {v[k], w[k]};
    std::sort(hp.begin(), hp.end());
    std::vector<int> first(n), second(n);
    for (uint32_t k = 0; k < n; k++) {
        first[k] = hp[k].first;
        second[k] = hp[k].second;
    }
    EXPECT("sort of pairs", same(d, first) && same(e, second));
    return bad ? 1 : work_pass(WORK);
}
