// SPDX-License-Identifier: Apache-2.0
// Uses error log management and small questions about devices. Fails if what goes wrong is not in
// the log from an iterator on, or does not reach a callback.
#include <cuda.h>
#include "work.cuh"
#define WORK "logs"
static int called;
static size_t last_length;
static void on_message(void *data, cudaLogLevel level, char *message, size_t length)
{
    called += data == (void *)&called && strlen(message) == length && level <= cudaLogLevelWarning;
    last_length = length;
}
int main(void)
{
    cudaLogsCallbackHandle h;
    cudaLogIterator it;
    static char text[25600];
    size_t n = sizeof text;
    CHECK(cudaLogsRegisterCallback(on_message, &called, &h));
    CHECK(cudaLogsCurrent(&it, 0));
    CHECK(cudaLogsDumpToMemory(&it, text, &n, 0));
    if (n != 0)
        return work_fail(WORK, "%zu bytes before anything went wrong: %s", n, text);
    CUmodule m;
    cuInit(0);
    CHECK(cudaFree(0));
    /* one kernel calls what is nowhere defined: the module loads, with a warning */
    char ptx[256];
    snprintf(ptx, sizeof ptx,
             ".version %d.0\n.target sm_75\n.address_size 64\n.extern .func gone();\n"
             ".visible .entry k() { call gone; ret; }\n",
             8);
    if (cuModuleLoadData(&m, ptx))
        return work_fail(WORK, "the module does not load");
    n = sizeof text;
    cudaLogIterator from = it;
    CHECK(cudaLogsDumpToMemory(&from, text, &n, 0));
    if (!n || strlen(text) != n || !strstr(text, "unresolved external function gone") || text[n - 1] != '\n')
        return work_fail(WORK, "the log has %zu bytes: %s", n, text);
    if (from == it || !called || !last_length)
        return work_fail(WORK, "iterator %u, %d calls", from, called);
    n = 4;
    if (cudaLogsDumpToMemory(&it, text, &n, 0) != cudaErrorInvalidValue || n)
        return work_fail(WORK, "a buffer of 4 bytes");
    if (cudaLogsCurrent(&it, 1) != cudaErrorInvalidValue ||
        cudaLogsDumpToFile(NULL, "/nonexistent/file", 0) != cudaErrorInvalidValue)
        return work_fail(WORK, "wrong calls");
    CHECK(cudaLogsUnregisterCallback(h));
    if (cudaLogsUnregisterCallback(h) != cudaErrorInvalidValue)
        return work_fail(WORK, "a callback is removed twice");
    (void)cudaGetLastError();

    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&n, &f, 0));
    unsigned capabilities[2] = {99, 99};
    cudaAtomicOperation operations[2] = {cudaAtomicOperationIntegerAdd,
                                         cudaAtomicOperationIntegerMin};
    CHECK(cudaDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
    int native;
    CHECK(cudaDeviceGetAttribute(&native, cudaDevAttrHostNativeAtomicSupported, 0));
    if (n < 1 << 20 || (!native && (capabilities[0] || capabilities[1])))
        return work_fail(WORK, "width %zu, capabilities %u", n, capabilities[0]);
    return work_pass(WORK);
}
