// SPDX-License-Identifier: Apache-2.0
// Usage: waiting [-] ROUNDS. Four threads that do little but wait, for streams, events, the device
// and copies, while kernels take their time. tests/process/kills.sh kills it in the middle of that.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define RT(x)                                                                                      \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            std::printf("FAIL waiting: line %d: %s: %s\n", __LINE__, #x, cudaGetErrorString(e_));  \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

/* Takes some milliseconds: each step depends on the one before. */
__global__ void turn(uint32_t *p, uint32_t steps)
{
    uint32_t v = *p;
    for (uint32_t i = 0; i < steps; i++)
        v = v * 1664525u + 1013904223u;
    *p = v;
}

static uint32_t turned(uint32_t v, uint32_t steps)
{
    while (steps--)
        v = v * 1664525u + 1013904223u;
    return v;
}

static void wait_in_all_ways(int self, int rounds)
{
    cudaStream_t s;
    cudaEvent_t e;
    uint32_t *p, want = uint32_t(self), got, steps = 20000u << self;
    RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    RT(cudaEventCreate(&e));
    RT(cudaMalloc(&p, sizeof *p));
    RT(cudaMemcpy(p, &want, sizeof want, cudaMemcpyHostToDevice));
    for (int r = 0; r < rounds; r++) {
        turn<<<1, 1, 0, s>>>(p, steps);
        want = turned(want, steps);
        switch ((r + self) % 4) {
        case 0: RT(cudaStreamSynchronize(s)); break;
        case 1: RT(cudaDeviceSynchronize()); break;
        case 2:
            RT(cudaEventRecord(e, s));
            RT(cudaEventSynchronize(e));
            break;
        default:
            RT(cudaMemcpyAsync(&got, p, sizeof got, cudaMemcpyDeviceToHost, s));
            RT(cudaStreamSynchronize(s));
            if (got != want) {
                std::printf("FAIL waiting: thread %d round %d: %u, not %u\n", self, r, got, want);
                std::exit(1);
            }
        }
    }
    RT(cudaMemcpyAsync(&got, p, sizeof got, cudaMemcpyDeviceToHost, s));
    RT(cudaStreamSynchronize(s));
    if (got != want) {
        std::printf("FAIL waiting: thread %d: %u, not %u\n", self, got, want);
        std::exit(1);
    }
    RT(cudaFree(p));
    RT(cudaEventDestroy(e));
    RT(cudaStreamDestroy(s));
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? std::atoi(argv[2]) : 4;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(wait_in_all_ways, i, rounds);
    for (auto &t : threads)
        t.join();
    std::printf("PASS waiting\n");
}
