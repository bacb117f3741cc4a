// SPDX-License-Identifier: Apache-2.0
// Lets host threads share a device, each with a stream, pinned buffers and events of its own, while
// the host counts; timers; a pool of work taken in any order; writes through mapped and registered
// memory. Fails if a result is wrong.
#include <atomic>
#include <thread>
#include <vector>
#include "work.cuh"
#define WORK "hostthreads"

__global__ void increment(int *data, int n, int by)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] += by;
}

static std::atomic<int> failures;

static void worker(int id)
{
    const int n = 20000;
    int *host, *device;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    float ms = -1;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMallocHost(&host, n * sizeof(int)));
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < n; i++)
        host[i] = i;
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyHostToDevice, stream));
    for (int k = 0; k < 5; k++)
        increment<<<8, 128, 0, stream>>>(device, n, id);
    CHECK(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(stop, stream));
    unsigned long counter = 0;
    while (cudaEventQuery(stop) == cudaErrorNotReady)
        counter++;
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    for (int i = 0; i < n; i++)
        if (host[i] != i + 5 * id) {
            failures++;
            break;
        }
    failures += ms <= 0;
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
}

static int test_mapped()
{
    const int n = 5000;
    int *mapped, *seen;
    CHECK(cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&seen, mapped, 0));
    for (int i = 0; i < n; i++)
        mapped[i] = -i;
    increment<<<4, 64>>>(seen, n, 7);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        if (mapped[i] != 7 - i)
            return work_fail(WORK, "mapped [%d] is %d", i, mapped[i]);
    CHECK(cudaFreeHost(mapped));
    void *block = NULL;
    if (posix_memalign(&block, 4096, 5 * 4096))
        return work_fail(WORK, "no memory");
    int *own = (int *)block;
    for (int i = 0; i < n; i++)
        own[i] = i;
    CHECK(cudaHostRegister(own, 5 * 4096, cudaHostRegisterDefault));
    CHECK(cudaMalloc(&seen, n * sizeof(int)));
    CHECK(cudaMemcpyAsync(seen, own, n * sizeof(int), cudaMemcpyHostToDevice));
    increment<<<4, 64>>>(seen, n, 1);
    CHECK(cudaMemcpyAsync(own, seen, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaHostUnregister(own));
    CHECK(cudaFree(seen));
    for (int i = 0; i < n; i++)
        if (own[i] != i + 1)
            return work_fail(WORK, "registered [%d] is %d", i, own[i]);
    free(own);
    return 0;
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; i++)
        threads.emplace_back(worker, i);
    for (std::thread &t : threads)
        t.join();
    if (failures)
        return work_fail(WORK, "%d threads saw wrong results", (int)failures);
    return test_mapped() ? 1 : work_pass(WORK);
}
