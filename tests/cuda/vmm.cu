// SPDX-License-Identifier: Apache-2.0
/* Uses virtual memory management by the driver's functions in a program of the runtime: two objects
 * one behind the other in one reservation, as one vector; the same object in two places. Fails if a
 * value is wrong, or if an access is possible before it was allowed or a write where only reading
 * was. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define RT(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL vmm: %s: %s\n", #call, cudaGetErrorName(e_));                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define EXPECT(call, want)                                                                         \
    do {                                                                                           \
        int e_ = (int)(call);                                                                      \
        if (e_ != (int)(want)) {                                                                   \
            printf("FAIL vmm: line %d: %s: %d, not %d\n", __LINE__, #call, e_, (int)(want));       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define FN(name) static decltype(&name) p_##name
FN(cuMemGetAllocationGranularity);
FN(cuMemAddressReserve);
FN(cuMemAddressFree);
FN(cuMemCreate);
FN(cuMemRelease);
FN(cuMemMap);
FN(cuMemUnmap);
FN(cuMemSetAccess);
FN(cuMemGetAccess);
FN(cuMemRetainAllocationHandle);
FN(cuMemGetAllocationPropertiesFromHandle);
template <class T> static void get(const char *name, T &f)
{
    cudaDriverEntryPointQueryResult q;
    RT(cudaGetDriverEntryPointByVersion(name, (void **)&f, 13000, cudaEnableDefault, &q));
    EXPECT(q, cudaDriverEntryPointSuccess);
}

__global__ void add(const float *a, const float *b, float *c, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        c[i] = a[i] + b[i];
}
__global__ void touch(float *p)
{
    *p = 1;
}

static size_t granule;
static CUmemAllocationProp prop;
static CUdeviceptr vector(size_t parts)
{
    CUdeviceptr va;
    EXPECT(p_cuMemAddressReserve(&va, parts * granule, 0, 0, 0), 0);
    for (size_t i = 0; i < parts; i++) {
        CUmemGenericAllocationHandle h;
        EXPECT(p_cuMemCreate(&h, granule, &prop, 0), 0);
        EXPECT(p_cuMemMap(va + i * granule, granule, 0, h, 0), 0);
        EXPECT(p_cuMemRelease(h), 0);
    }
    CUmemAccessDesc d = {};
    d.location = prop.location;
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT(p_cuMemSetAccess(va, parts * granule, &d, 1), 0);
    return va;
}

int main(int argc, char **argv)
{
    RT(cudaFree(0));
    get("cuMemGetAllocationGranularity", p_cuMemGetAllocationGranularity);
    get("cuMemAddressReserve", p_cuMemAddressReserve);
    get("cuMemAddressFree", p_cuMemAddressFree);
    get("cuMemCreate", p_cuMemCreate);
    get("cuMemRelease", p_cuMemRelease);
    get("cuMemMap", p_cuMemMap);
    get("cuMemUnmap", p_cuMemUnmap);
    get("cuMemSetAccess", p_cuMemSetAccess);
    get("cuMemGetAccess", p_cuMemGetAccess);
    get("cuMemRetainAllocationHandle", p_cuMemRetainAllocationHandle);
    get("cuMemGetAllocationPropertiesFromHandle", p_cuMemGetAllocationPropertiesFromHandle);
    size_t free0, free1, total;
    RT(cudaMemGetInfo(&free0, &total));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    EXPECT(p_cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), 0);

    const size_t parts = 2, bytes = parts * granule, n = bytes / sizeof(float);
    CUdeviceptr a = vector(parts), b = vector(parts), c = vector(parts);
    RT(cudaMemGetInfo(&free1, &total));
    EXPECT(free0 - free1 == 3 * bytes, true);
    std::vector<float> x(n), y(n), z(n);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(i % 1000);
        y[i] = (float)(i % 77) * 0.5f;
    }
    RT(cudaMemcpy((void *)a, x.data(), bytes, cudaMemcpyHostToDevice));
    RT(cudaMemcpy((void *)b, y.data(), bytes, cudaMemcpyHostToDevice));
    add<<<64, 128>>>((float *)a, (float *)b, (float *)c, n);
    RT(cudaGetLastError());
    RT(cudaMemcpy(z.data(), (void *)c, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++)
        if (z[i] != x[i] + y[i]) {
            printf("FAIL vmm: element %zu is %g\n", i, z[i]);
            return 1;
        }

    /* the first part of c once more, elsewhere */
    CUmemGenericAllocationHandle h, again;
    CUmemAllocationProp got;
    EXPECT(p_cuMemRetainAllocationHandle(&h, (void *)(c + 16)), 0);
    EXPECT(p_cuMemGetAllocationPropertiesFromHandle(&got, h), 0);
    EXPECT(got.location.id, prop.location.id);
    CUdeviceptr alias;
    EXPECT(p_cuMemAddressReserve(&alias, granule, 0, 0, 0), 0);
    EXPECT(p_cuMemMap(alias, granule, 0, h, 0), 0);
    EXPECT(p_cuMemMap(alias, granule, 0, h, 0), CUDA_ERROR_INVALID_VALUE); /* something is there */
    unsigned long long flags = 99;
    CUmemLocation here = prop.location;
    EXPECT(p_cuMemGetAccess(&flags, &here, alias), 0);
    EXPECT(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    EXPECT(cudaMemcpy((void *)alias, x.data(), 4096, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    (void)cudaGetLastError();
    CUmemAccessDesc d = {};
    d.location = prop.location;
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    EXPECT(p_cuMemSetAccess(alias, granule, &d, 1), 0);
    EXPECT(p_cuMemGetAccess(&flags, &here, alias), 0);
    EXPECT(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    EXPECT(cudaMemcpy((void *)alias, x.data(), 4096, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    (void)cudaGetLastError();
    RT(cudaMemset((void *)c, 0, 4096));
    RT(cudaMemcpy(z.data(), (void *)alias, 8192, cudaMemcpyDeviceToHost));
    EXPECT(z[0] == 0 && z[1023] == 0 && z[1024] == x[1024] + y[1024], true);

    /* what is wrong */
    EXPECT(p_cuMemCreate(&again, granule / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(p_cuMemAddressReserve(&alias, granule + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(p_cuMemUnmap(a + granule / 2, granule), CUDA_ERROR_INVALID_VALUE);
    EXPECT(p_cuMemAddressFree(a, bytes), CUDA_ERROR_INVALID_VALUE); /* still mapped */
    EXPECT(p_cuMemSetAccess(a, granule / 2, &d, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(p_cuMemRelease(0x1234), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cudaFree((void *)a), cudaErrorInvalidValue);
    (void)cudaGetLastError();

    EXPECT(p_cuMemUnmap(alias, granule), 0);
    EXPECT(p_cuMemAddressFree(alias, granule), 0);
    EXPECT(p_cuMemRelease(h), 0);
    EXPECT(p_cuMemUnmap(a, bytes), 0);
    EXPECT(p_cuMemUnmap(b, bytes), 0);
    EXPECT(p_cuMemAddressFree(a, bytes), 0);
    EXPECT(p_cuMemAddressFree(b, bytes), 0);
    RT(cudaMemGetInfo(&free1, &total));
    EXPECT(free0 - free1 == bytes, true);

    if (argc > 1 && !strcmp(argv[1], "fault")) { /* a kernel writes where it may only read: the context is lost */
        d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
        EXPECT(p_cuMemSetAccess(c, bytes, &d, 1), 0);
        touch<<<1, 1>>>((float *)c);
        EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    }
    printf("PASS vmm\n");
    return 0;
}
