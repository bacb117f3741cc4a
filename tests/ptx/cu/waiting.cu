// SPDX-License-Identifier: Apache-2.0
// Loops around memory that other blocks write, as programs have them (waiting.ptx is what nvcc -arch=sm_75 -ptx makes of it). Kernels
// whose names begin with waits_ may wait for other blocks, or can't be told from such that do; those that begin with ends_ don't.
#include <cstdint>
extern "C" __global__ void ends_spin_lock(int *l, int *n)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(l, 0, 1) != 0)
            ;
        __threadfence();
        *n = *n + 1;
        __threadfence();
        atomicExch(l, 0);
    }
}
extern "C" __global__ void ends_spin_lock2(int *l, int *n)
{
    bool done = false;
    do {
        if (atomicCAS(l, 0, 1) == 0) {
            *n += 1;
            __threadfence();
            atomicExch(l, 0);
            done = true;
        }
    } while (!done);
}
extern "C" __global__ void ends_exch_lock(int *l, int *n)
{
    if (threadIdx.x == 0) {
        while (atomicExch(l, 1) != 0)
            ;
        __threadfence();
        *n = *n + 1;
        __threadfence();
        atomicExch(l, 0);
    }
}
extern "C" __global__ void waits_ticket_lock(unsigned *next, volatile unsigned *serving, int *n)
{
    if (threadIdx.x == 0) {
        unsigned my = atomicAdd(next, 1);
        while (*serving != my)
            ;
        __threadfence();
        *n = *n + 1;
        __threadfence();
        *serving = my + 1;
    }
}
extern "C" __global__ void waits_barrier_volatile(unsigned *c, int *x)
{
    x[blockIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (*(volatile unsigned *)c < gridDim.x)
            ;
    }
    __syncthreads();
    x[blockIdx.x] += x[(blockIdx.x + 1) % gridDim.x];
}
extern "C" __global__ void waits_barrier_plain(unsigned *c, int *x)
{
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (*c < gridDim.x)
            __threadfence();
    }
    __syncthreads();
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_plain_asm(unsigned *c, int *x)
{
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (*c < gridDim.x)
            asm volatile("" ::: "memory");
    }
    __syncthreads();
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_cg(unsigned *c, int *x)
{
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (__ldcg(c) < gridDim.x)
            ;
    }
    __syncthreads();
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_add0(unsigned *c, int *x)
{
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (atomicAdd(c, 0) < gridDim.x)
            ;
    }
    __syncthreads();
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_cas(unsigned *c, int *x)
{
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (atomicCAS(c, 0, 0) < gridDim.x)
            ;
    }
    __syncthreads();
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_cas2(unsigned *c, int *x)
{
    if (threadIdx.x == 0) {
        atomicAdd(c, 1);
        while (atomicCAS(c, gridDim.x, gridDim.x) != gridDim.x)
            ;
    }
    __syncthreads();
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_shared(unsigned *c, int *x)
{
    __shared__ int go;
    if (threadIdx.x == 0)
        atomicAdd(c, 1);
    do {
        __syncthreads();
        if (threadIdx.x == 0)
            go = *(volatile unsigned *)c >= gridDim.x;
        __syncthreads();
    } while (!go);
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_barrier_syncor(unsigned *c, int *x)
{
    if (threadIdx.x == 0)
        atomicAdd(c, 1);
    int go;
    do {
        go = 0;
        if (threadIdx.x == 0)
            go = *(volatile unsigned *)c >= gridDim.x;
    } while (!__syncthreads_or(go));
    x[blockIdx.x] += 1;
}
extern "C" __global__ void waits_flags_scan(unsigned *f, int *x)
{
    for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x)
        while (((volatile unsigned *)f)[b] != 1)
            ;
    x[blockIdx.x] = 1;
}
extern "C" __global__ void waits_flags_while(unsigned *f, int *x)
{
    unsigned b = threadIdx.x;
    while (b < gridDim.x)
        if (((volatile unsigned *)f)[b] == 1)
            b += blockDim.x;
    x[blockIdx.x] = 1;
}
extern "C" __global__ void waits_flags_roundrobin(unsigned *f, int *x)
{
    unsigned b = threadIdx.x;
    while (((volatile unsigned *)f)[b] == 0)
        b = (b + 1) % gridDim.x;
    x[blockIdx.x] = 1;
}
extern "C" __global__ void waits_consume(int *slot, int *x)
{
    while (atomicCAS(slot, 1, 0) != 1)
        ;
    x[0]++;
}
extern "C" __global__ void waits_consume_exch(int *slot, int *x)
{
    int v;
    while ((v = atomicExch(slot, 0)) == 0)
        ;
    x[0] = v;
}
__device__ unsigned g_count;
extern "C" __global__ void ends_last_block(const float *in, float *part, float *out, int n)
{
    __shared__ float s[256];
    __shared__ bool last;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += in[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int k = 128; k > 0; k >>= 1) {
        if (threadIdx.x < k)
            s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        ((volatile float *)part)[blockIdx.x] = s[0];
        __threadfence();
        unsigned t = atomicInc(&g_count, gridDim.x);
        last = t == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        float a = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x)
            a += ((volatile float *)part)[i];
        s[threadIdx.x] = a;
        __syncthreads();
        if (threadIdx.x == 0) {
            float b = 0;
            for (int i = 0; i < 256; i++)
                b += s[i];
            out[0] = b;
            g_count = 0;
        }
    }
}
extern "C" __global__ void ends_search_atomic(const char *t, int n, unsigned *cnt, int *pos)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (t[i] == 'x') {
            unsigned k = atomicAdd(cnt, 1);
            if (k < 1000)
                pos[k] = i;
        }
}
__device__ double add_double(double *a, double v)
{
    unsigned long long *p = (unsigned long long *)a, old = *p, as;
    do {
        as = old;
        old = atomicCAS(p, as, __double_as_longlong(v + __longlong_as_double(as)));
    } while (as != old);
    return __longlong_as_double(old);
}
extern "C" __global__ void ends_cas_double(double *a, const double *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        add_double(a, x[i]);
}
extern "C" __global__ void ends_cas_reload(int *a, int v)
{
    int old;
    do {
        old = *(volatile int *)a;
    } while (atomicCAS(a, old, old * 3 + v) != old);
}
extern "C" __global__ void ends_cas_maxf(float *a, const float *x)
{
    int *p = (int *)a;
    int old = *p, as;
    float v = x[threadIdx.x];
    while (__int_as_float(old) < v) {
        as = old;
        old = atomicCAS(p, as, __float_as_int(v));
        if (old == as)
            break;
    }
}
extern "C" __global__ void ends_cas_bounded(double *a, double v, int *fail)
{
    unsigned long long *p = (unsigned long long *)a, old = *p, as;
    int k = 0;
    do {
        as = old;
        old = atomicCAS(p, as, __double_as_longlong(v + __longlong_as_double(as)));
    } while (as != old && ++k < 100);
    if (k >= 100)
        atomicAdd(fail, 1);
}
extern "C" __global__ void ends_bounded_poll(volatile int *f, int *out)
{
    int k = 0;
    while (*f != 7 && k < 1000)
        k++;
    *out = k;
}
extern "C" __global__ void ends_bounded_poll2(volatile int *f, int *out)
{
    int k = 0;
    while (k < 1000) {
        if (*f == 7)
            break;
        k++;
    }
    *out = k;
}
struct kv {
    uint32_t key, value;
};
extern "C" __global__ void ends_hash_insert(kv *t, const kv *in, unsigned n, unsigned cap)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uint32_t key = in[i].key, v = in[i].value;
        unsigned s = (key * 2654435761u) & (cap - 1);
        while (true) {
            uint32_t p = atomicCAS(&t[s].key, 0xffffffffu, key);
            if (p == 0xffffffffu || p == key) {
                t[s].value = v;
                return;
            }
            s = (s + 1) & (cap - 1);
        }
    }
}
extern "C" __global__ void ends_hash_count(unsigned *keys, unsigned *cnt, const unsigned *in, int n,
                                           int cap)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned k = in[i];
        int s = k % cap;
        for (;;) {
            unsigned p = atomicCAS(&keys[s], ~0u, k);
            if (p == ~0u || p == k)
                break;
            if (++s == cap)
                s = 0;
        }
        atomicAdd(&cnt[s], 1);
    }
}
extern "C" __global__ void ends_hash_quad(unsigned *keys, const unsigned *in, int n, unsigned mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned k = in[i], s = k, st = 1;
    while (atomicCAS(&keys[s & mask], ~0u, k) != ~0u) {
        s += st;
        st++;
    }
}
extern "C" __global__ void ends_work_fetch(int *next, int n, float *x)
{
    __shared__ int s;
    for (;;) {
        if (threadIdx.x == 0)
            s = atomicAdd(next, 1);
        __syncthreads();
        int i = s;
        __syncthreads();
        if (i >= n)
            break;
        x[i * blockDim.x + threadIdx.x] *= 2;
    }
}
extern "C" __global__ void ends_work_fetch1(int *next, int n, float *x)
{
    int i;
    while ((i = atomicAdd(next, 1)) < n)
        x[i] *= 2;
}
extern "C" __global__ void ends_list_push(int *head, int *nxt)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int h = *head, o;
    do {
        o = h;
        nxt[i] = o;
        __threadfence();
        h = atomicCAS(head, o, i);
    } while (h != o);
}
extern "C" __global__ void ends_chase_count(const int *nxt, int *cnt, int start)
{
    int p = start + threadIdx.x;
    while (p >= 0) {
        atomicAdd(&cnt[p & 7], 1);
        p = nxt[p];
    }
}
extern "C" __global__ void waits_semaphore(int *s, int *x)
{
    if (threadIdx.x == 0) {
        while (atomicAdd(s, -1) <= 0)
            atomicAdd(s, 1);
        x[0]++;
        atomicAdd(s, 1);
    }
}
extern "C" __global__ void waits_lookback(volatile int *st, int *out)
{
    if (threadIdx.x == 0) {
        int p = blockIdx.x - 1, sum = 0;
        while (p >= 0) {
            int v;
            while ((v = st[p]) == 0)
                ;
            sum += v & 0xffff;
            if (v >> 16)
                break;
            p--;
        }
        out[blockIdx.x] = sum;
    }
}
extern "C" __global__ void waits_timeout(volatile int *f, int *o)
{
    long long t = clock64();
    while (*f == 0 && clock64() - t < 100000)
        ;
    *o = 1;
}
extern "C" __global__ void waits_spin_ns(unsigned *f, int *o)
{
    unsigned v;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0,[%1];" : "=r"(v) : "l"(f) : "memory");
        if (v)
            break;
        __nanosleep(100);
    } while (true);
    *o = 1;
}
extern "C" __global__ void waits_bfs_local(const int *rp, const int *ci, int *lv, int n,
                                           int *changed)
{
    __shared__ int ch;
    int d = 0;
    do {
        __syncthreads();
        if (threadIdx.x == 0)
            ch = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            if (lv[i] == d)
                for (int e = rp[i]; e < rp[i + 1]; e++)
                    if (atomicCAS(&lv[ci[e]], -1, d + 1) == -1)
                        ch = 1;
        __syncthreads();
        d++;
    } while (ch);
    *changed = d;
}
