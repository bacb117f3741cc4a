// SPDX-License-Identifier: Apache-2.0
// Registers and unregisters memory of malloc() repeatedly, while other threads count in it and
// right beside it, on its first and last page. Fails if a count or what kernels write to the block
// is lost. Where the system forbids userfaultfd (some containers), other threads cannot be held up:
// then nobody counts, and only memory registered as mapped is for kernels.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#define RT(x)                                                                                      \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            std::printf("FAIL line %d: %s: %s\n", __LINE__, #x, cudaGetErrorString(e_));           \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (0)

__global__ void add(uint32_t *p, size_t n, uint32_t v)
{
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n)
        p[i] += v;
}

static std::atomic<bool> stop;

static bool may_hold_up()
{
    int fd = int(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

struct counter {
    volatile uint64_t *plain; /* this thread's alone */
    std::atomic<uint64_t> *shared;
    uint64_t n;
};

static void count(counter *c)
{
    while (!stop) {
        *c->plain = *c->plain + 1;
        c->shared->fetch_add(1);
        c->n++;
        void *p = std::malloc(48); /* its books may lie beside the block */
        std::memset(p, 1, 48);
        std::free(p);
        if (c->n % 64 == 0)
            std::this_thread::yield();
    }
}

/* @words: of the block, which begins 1000 bytes behind a page's start; @inside: the counters lie in the block's last part. */
static void hammer(size_t words, int rounds, unsigned flags, bool inside)
{
    enum { THREADS = 2, COUNTERS = 64 };
    size_t bytes = words * 4;
    auto *pool =
        static_cast<unsigned char *>(std::aligned_alloc(4096, (1000 + bytes + 3 * 4096) & ~4095ul));
    std::memset(pool, 0, 1000 + bytes + 2 * 4096);
    auto *block = reinterpret_cast<uint32_t *>(pool + 1000);
    size_t used = inside ? words - 2 * COUNTERS : words;
    unsigned char *near[THREADS] = {inside ? pool + 1000 + used * 4 : pool + 800,
                                    pool + 1000 + bytes + (-bytes & 7)};
    auto *both = reinterpret_cast<std::atomic<uint64_t> *>(pool + 904);
    counter c[THREADS];
    std::thread t[THREADS];
    stop = !may_hold_up();
    for (int i = 0; i < THREADS; i++) {
        c[i] = {reinterpret_cast<volatile uint64_t *>(near[i]), both, 0};
        t[i] = std::thread(count, &c[i]);
    }
    uint32_t sum = 0;
    for (int r = 0; r < rounds; r++) {
        uint32_t *d;
        RT(cudaHostRegister(block, bytes, flags));
        RT(cudaHostGetDevicePointer(&d, block, 0));
        add<<<unsigned((used + 127) / 128), 128>>>(d, used, uint32_t(r));
        sum += uint32_t(r);
        RT(cudaDeviceSynchronize());
        RT(cudaHostUnregister(block));
        if (block[0] != sum || block[used - 1] != sum) {
            std::printf("FAIL round %d: %u and %u, not %u\n", r, block[0], block[used - 1], sum);
            std::_Exit(1);
        }
    }
    stop = true;
    uint64_t all = 0;
    for (int i = 0; i < THREADS; i++) {
        t[i].join();
        all += c[i].n;
        if (*c[i].plain != c[i].n) {
            std::printf("FAIL thread %d of %zu words: counted to %llu, found %llu\n", i, words,
                        (unsigned long long)c[i].n, (unsigned long long)*c[i].plain);
            std::_Exit(1);
        }
    }
    if (both->load() != all) {
        std::printf("FAIL: counted together to %llu, found %llu\n", (unsigned long long)all,
                    (unsigned long long)both->load());
        std::_Exit(1);
    }
    for (size_t i = 0; i < used; i++)
        if (block[i] != sum) {
            std::printf("FAIL word %zu: %u, not %u\n", i, block[i], sum);
            std::_Exit(1);
        }
    std::free(pool);
}

static uint32_t in_file[3001] = {
    1}; /* pages of the program's file: others' writes to them can't be held up */

static void variables()
{
    uint32_t *block = in_file + 1, *d, *back;
    const size_t words = 3000, bytes = words * 4;
    for (unsigned flags : {unsigned(cudaHostRegisterDefault), unsigned(cudaHostRegisterMapped)}) {
        for (size_t i = 0; i < words; i++)
            block[i] = uint32_t(i) * 3 + flags;
        RT(cudaMalloc(&d, bytes));
        RT(cudaHostRegister(block, bytes, flags));
        RT(cudaMemcpyAsync(d, block, bytes, cudaMemcpyHostToDevice));
        add<<<unsigned((words + 127) / 128), 128>>>(d, words, 7);
        RT(cudaMemcpyAsync(block, d, bytes, cudaMemcpyDeviceToHost));
        RT(cudaDeviceSynchronize());
        if (flags == cudaHostRegisterMapped) {
            RT(cudaHostGetDevicePointer(&back, block, 0));
            add<<<unsigned((words + 127) / 128), 128>>>(back, words, 7);
            RT(cudaDeviceSynchronize());
        }
        RT(cudaHostUnregister(block));
        RT(cudaFree(d));
        for (size_t i = 0; i < words; i++)
            if (block[i] != uint32_t(i) * 3 + flags + (flags == cudaHostRegisterMapped ? 14 : 7)) {
                std::printf("FAIL variable %zu: %u\n", i, block[i]);
                std::_Exit(1);
            }
    }
    if (in_file[0] != 1) {
        std::printf("FAIL: beside it\n");
        std::_Exit(1);
    }
}

int main(int argc, char **argv)
{
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    hammer(16, rounds, cudaHostRegisterMapped, false);   /* less than a page */
    hammer(3000, rounds, cudaHostRegisterMapped, false); /* three pages and both ends */
    if (may_hold_up())
        hammer(3000, rounds, cudaHostRegisterDefault, false);
    hammer(5000, rounds, cudaHostRegisterMapped, true); /* in the block itself */
    variables();
    std::printf("PASS hostregister\n");
}
