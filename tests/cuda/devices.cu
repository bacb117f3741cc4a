// SPDX-License-Identifier: Apache-2.0
// Reads device properties. Fails if cudaDeviceProp and the attributes contradict each other or what
// CUDA's documents say that holds between them.
#include "work.cuh"
#define WORK "devices"

static int attribute(cudaDeviceAttr a, int device)
{
    int v = -12345;
    CHECK(cudaDeviceGetAttribute(&v, a, device));
    return v;
}

#define SAME(field, attr)                                                                          \
    do {                                                                                           \
        if ((long long)(field) != attribute(attr, d))                                              \
            return work_fail(WORK, "device %d: %s is %lld, %s says %d", d, #field,                 \
                             (long long)(field), #attr, attribute(attr, d));                       \
    } while (0)
#define WANT(x)                                                                                    \
    do {                                                                                           \
        if (!(x))                                                                                  \
            return work_fail(WORK, "device %d: not true: %s", d, #x);                              \
    } while (0)

static int check(int d)
{
    cudaDeviceProp p;
    memset(&p, 0x5a, sizeof p);
    CHECK(cudaGetDeviceProperties(&p, d));
    SAME(p.sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock);
    SAME(p.regsPerBlock, cudaDevAttrMaxRegistersPerBlock);
    SAME(p.warpSize, cudaDevAttrWarpSize);
    SAME(p.memPitch, cudaDevAttrMaxPitch);
    SAME(p.maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock);
    SAME(p.maxThreadsDim[0], cudaDevAttrMaxBlockDimX);
    SAME(p.maxThreadsDim[2], cudaDevAttrMaxBlockDimZ);
    SAME(p.maxGridSize[0], cudaDevAttrMaxGridDimX);
    SAME(p.maxGridSize[1], cudaDevAttrMaxGridDimY);
    SAME(p.totalConstMem, cudaDevAttrTotalConstantMemory);
    SAME(p.major, cudaDevAttrComputeCapabilityMajor);
    SAME(p.minor, cudaDevAttrComputeCapabilityMinor);
    SAME(p.textureAlignment, cudaDevAttrTextureAlignment);
    SAME(p.texturePitchAlignment, cudaDevAttrTexturePitchAlignment);
    SAME(p.multiProcessorCount, cudaDevAttrMultiProcessorCount);
    SAME(p.integrated, cudaDevAttrIntegrated);
    SAME(p.canMapHostMemory, cudaDevAttrCanMapHostMemory);
    SAME(p.maxTexture1D, cudaDevAttrMaxTexture1DWidth);
    SAME(p.maxTexture2D[0], cudaDevAttrMaxTexture2DWidth);
    SAME(p.maxTexture2D[1], cudaDevAttrMaxTexture2DHeight);
    SAME(p.maxTexture3D[0], cudaDevAttrMaxTexture3DWidth);
    SAME(p.maxTexture3D[2], cudaDevAttrMaxTexture3DDepth);
    SAME(p.maxTexture1DLayered[1], cudaDevAttrMaxTexture1DLayeredLayers);
    SAME(p.maxTexture2DLayered[2], cudaDevAttrMaxTexture2DLayeredLayers);
    SAME(p.maxTexture2DLinear[2], cudaDevAttrMaxTexture2DLinearPitch);
    SAME(p.maxTextureCubemap, cudaDevAttrMaxTextureCubemapWidth);
    SAME(p.maxSurface2D[1], cudaDevAttrMaxSurface2DHeight);
    SAME(p.maxSurface3D[2], cudaDevAttrMaxSurface3DDepth);
    SAME(p.surfaceAlignment, cudaDevAttrSurfaceAlignment);
    SAME(p.concurrentKernels, cudaDevAttrConcurrentKernels);
    SAME(p.ECCEnabled, cudaDevAttrEccEnabled);
    SAME(p.pciBusID, cudaDevAttrPciBusId);
    SAME(p.pciDeviceID, cudaDevAttrPciDeviceId);
    SAME(p.pciDomainID, cudaDevAttrPciDomainId);
    SAME(p.asyncEngineCount, cudaDevAttrAsyncEngineCount);
    SAME(p.unifiedAddressing, cudaDevAttrUnifiedAddressing);
    SAME(p.memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth);
    SAME(p.l2CacheSize, cudaDevAttrL2CacheSize);
    SAME(p.persistingL2CacheMaxSize, cudaDevAttrMaxPersistingL2CacheSize);
    SAME(p.maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor);
    SAME(p.streamPrioritiesSupported, cudaDevAttrStreamPrioritiesSupported);
    SAME(p.globalL1CacheSupported, cudaDevAttrGlobalL1CacheSupported);
    SAME(p.sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    SAME(p.regsPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor);
    SAME(p.managedMemory, cudaDevAttrManagedMemory);
    SAME(p.hostNativeAtomicSupported, cudaDevAttrHostNativeAtomicSupported);
    SAME(p.pageableMemoryAccess, cudaDevAttrPageableMemoryAccess);
    SAME(p.concurrentManagedAccess, cudaDevAttrConcurrentManagedAccess);
    SAME(p.computePreemptionSupported, cudaDevAttrComputePreemptionSupported);
    SAME(p.canUseHostPointerForRegisteredMem, cudaDevAttrCanUseHostPointerForRegisteredMem);
    SAME(p.cooperativeLaunch, cudaDevAttrCooperativeLaunch);
    SAME(p.sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    SAME(p.maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor);
    SAME(p.accessPolicyMaxWindowSize, cudaDevAttrMaxAccessPolicyWindowSize);
    SAME(p.reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock);
    SAME(p.hostRegisterSupported, cudaDevAttrHostRegisterSupported);
    SAME(p.sparseCudaArraySupported, cudaDevAttrSparseCudaArraySupported);
    SAME(p.memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported);
    SAME(p.gpuDirectRDMASupported, cudaDevAttrGPUDirectRDMASupported);
    SAME(p.deferredMappingCudaArraySupported, cudaDevAttrDeferredMappingCudaArraySupported);
    SAME(p.ipcEventSupported, cudaDevAttrIpcEventSupport);
    SAME(p.clusterLaunch, cudaDevAttrClusterLaunch);
    WANT(p.name[0] && strlen(p.name) < sizeof p.name);
    WANT(p.totalGlobalMem > (64u << 20));
    WANT(p.major >= 5 && p.minor >= 0 && p.warpSize == 32);
    WANT(p.maxThreadsPerBlock == 1024 && p.maxThreadsPerMultiProcessor >= 1024);
    WANT(p.maxThreadsPerMultiProcessor % p.warpSize == 0);
    WANT(p.sharedMemPerBlock == 48 * 1024 && p.sharedMemPerBlockOptin >= p.sharedMemPerBlock);
    WANT(p.sharedMemPerMultiprocessor >= p.sharedMemPerBlockOptin);
    WANT(p.totalConstMem == 65536 && p.regsPerBlock == 65536);
    WANT(attribute(cudaDevAttrClockRate, d) > 100000);
    WANT(attribute(cudaDevAttrMemoryClockRate, d) > 100000);
    WANT(attribute(cudaDevAttrComputeMode, d) == cudaComputeModeDefault);
    WANT(attribute(cudaDevAttrKernelExecTimeout, d) == 0);
    WANT(attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio, d) >= 1);

    char id[32];
    int back = -1;
    CHECK(cudaDeviceGetPCIBusId(id, sizeof id, d));
    CHECK(cudaDeviceGetByPCIBusId(&back, id));
    WANT(back == d);
    WANT(cudaDeviceGetByPCIBusId(&back, "0000:fe:00.0") == cudaErrorInvalidDevice);
    WANT(cudaDeviceGetPCIBusId(id, 4, d) == cudaErrorInvalidValue);
    cudaDeviceProp like;
    memset(&like, 0, sizeof like);
    like.major = p.major;
    like.minor = p.minor;
    like.multiProcessorCount = p.multiProcessorCount;
    like.totalGlobalMem = p.totalGlobalMem;
    CHECK(cudaChooseDevice(&back, &like));
    WANT(back >= 0);
    for (int a = 1; a < cudaDevAttrMax; a++) {
        int v;
        cudaError_t e = cudaDeviceGetAttribute(&v, (cudaDeviceAttr)a, d);
        if (e != cudaSuccess && e != cudaErrorInvalidValue)
            return work_fail(WORK, "attribute %d gave %d", a, e);
        (void)cudaGetLastError();
    }
    return 0;
}

int main(int argc, char **argv)
{
    int n, v, d = -1;
    CHECK(cudaGetDeviceCount(&n));
    for (int i = 0; i < n; i++)
        if (check(i))
            return 1;
    if (cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, n) != cudaErrorInvalidDevice ||
        cudaDeviceGetAttribute(&v, (cudaDeviceAttr)5000, 0) != cudaErrorInvalidValue ||
        cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0) != cudaErrorInvalidValue)
        return work_fail(WORK, "wrong questions");
    if (n > 1) {
        int can;
        CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
        CHECK(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, 1));
        if (v != can)
            return work_fail(WORK, "peer access: %d and %d", can, v);
        CHECK(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrPerformanceRank, 0, 1));
        if (cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, 0) !=
            cudaErrorInvalidDevice)
            return work_fail(WORK, "a device is its own peer");
    }
    CHECK(cudaInitDevice(0, 0, 0));
    int list[2] = {n - 1, 0};
    CHECK(cudaSetValidDevices(list, n > 1 ? 2 : 1));
    CHECK(cudaSetDevice(n - 1));
    CHECK(cudaGetDevice(&d));
    if (d != n - 1)
        return work_fail(WORK, "the current device is %d", d);
    size_t size;
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    CHECK(cudaDeviceGetLimit(&size, cudaLimitStackSize));
    if (size < 4096)
        return work_fail(WORK, "the stack has %zu bytes", size);
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    CHECK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
    if (size < 16 << 20)
        return work_fail(WORK, "the heap has %zu bytes", size);
    if (cudaDeviceSetLimit((cudaLimit)77, 1) != cudaErrorUnsupportedLimit ||
        cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40) != cudaErrorInvalidValue)
        return work_fail(WORK, "wrong limits");
    (void)cudaGetLastError();
    int driver, runtime;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    if (runtime != CUDART_VERSION || driver < runtime)
        return work_fail(WORK, "versions %d and %d", runtime, driver);
    for (int e = 0; e < 1000; e++)
        if (!cudaGetErrorName((cudaError_t)e)[0] || !cudaGetErrorString((cudaError_t)e)[0])
            return work_fail(WORK, "error %d has no name", e);
    if (strcmp(cudaGetErrorName(cudaErrorInvalidPtx), "cudaErrorInvalidPtx") ||
        strcmp(cudaGetErrorString((cudaError_t)99999), "unrecognized error code"))
        return work_fail(WORK, "error texts");
    return work_pass(WORK);
}
