// SPDX-License-Identifier: Apache-2.0
/* frontend/cuda_types.h - the layouts in memory that CUDA programs were compiled with (CUDA 13.0,
 * x86-64), as far as this library reads or writes them. Sizes and offsets are facts of CUDA's ABI;
 * tests/process/facade_types.c compares them with a toolkit's headers where there is one. Handles
 * are void pointers. Fields have CUDA's names, so that they can be looked up in its manual. */
#ifndef WS_FRONTEND_CUDA_TYPES_H
#define WS_FRONTEND_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* What the runtime says, and what the driver says. Compilers in programs make machine code instead
 * of PTX if the driver is older than they are. Software GPUs read the PTX of CUDA 13.5. */
enum { WS_CUDA_VERSION = 13000, WS_CUDA_DRIVER_VERSION = 13050 };

struct cuda_dim3 {
    uint32_t x, y, z;
};
/* Attributes of a kernel: CU_FUNC_ATTRIBUTE_… of the driver, and the same numbers in the
 * runtime. */
enum ws_function_attribute {
    WS_FUNC_MAX_THREADS_PER_BLOCK,
    WS_FUNC_SHARED_SIZE_BYTES,
    WS_FUNC_CONST_SIZE_BYTES,
    WS_FUNC_LOCAL_SIZE_BYTES,
    WS_FUNC_NUM_REGS,
    WS_FUNC_PTX_VERSION,
    WS_FUNC_BINARY_VERSION,
    WS_FUNC_CACHE_MODE_CA,
    WS_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    WS_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT,
    WS_FUNC_CLUSTER_SIZE_MUST_BE_SET,
    WS_FUNC_REQUIRED_CLUSTER_WIDTH,
    WS_FUNC_REQUIRED_CLUSTER_HEIGHT,
    WS_FUNC_REQUIRED_CLUSTER_DEPTH,
    WS_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    WS_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
};
struct cuda_func_attributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
        maxDynamicSharedSizeBytes, preferredShmemCarveout;
    int clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth,
        clusterSchedulingPolicyPreference;
    int nonPortableClusterSizeAllowed, reserved[16];
};
_Static_assert(sizeof(struct cuda_func_attributes) == 144, "ABI");

struct cuda_pointer_attributes {
    int type; /* WS_CUDA_MEMORY_… */
    int device;
    void *devicePointer, *hostPointer;
    long reserved[8];
};
_Static_assert(sizeof(struct cuda_pointer_attributes) == 88, "ABI");
enum {
    WS_CUDA_MEMORY_UNREGISTERED,
    WS_CUDA_MEMORY_HOST,
    WS_CUDA_MEMORY_DEVICE,
    WS_CUDA_MEMORY_MANAGED
};

/* The largest values of cudaFuncCache, cudaSharedMemConfig, cudaClusterSchedulingPolicy. */
enum {
    WS_CUDA_CACHE_CONFIG_LAST = 3,
    WS_CUDA_SHARED_CONFIG_LAST = 2,
    WS_CUDA_CLUSTER_SCHEDULING_LAST = 2
};

enum { /* cudaMemcpyKind */
       WS_CUDA_COPY_H2H,
       WS_CUDA_COPY_H2D,
       WS_CUDA_COPY_D2H,
       WS_CUDA_COPY_D2D,
       WS_CUDA_COPY_DEFAULT
};

struct cuda_pitched_ptr {
    void *ptr;
    size_t pitch, xsize, ysize;
};
struct cuda_extent {
    size_t width, height, depth;
};
struct cuda_pos {
    size_t x, y, z;
};
struct cuda_memcpy_3d_parms {
    void *srcArray;
    struct cuda_pos srcPos;
    struct cuda_pitched_ptr srcPtr;
    void *dstArray;
    struct cuda_pos dstPos;
    struct cuda_pitched_ptr dstPtr;
    struct cuda_extent extent;
    int kind;
};
_Static_assert(sizeof(struct cuda_memcpy_3d_parms) == 160, "ABI");
struct cuda_memcpy_3d_peer_parms {
    void *srcArray;
    struct cuda_pos srcPos;
    struct cuda_pitched_ptr srcPtr;
    int srcDevice;
    void *dstArray;
    struct cuda_pos dstPos;
    struct cuda_pitched_ptr dstPtr;
    int dstDevice;
    struct cuda_extent extent;
};
_Static_assert(sizeof(struct cuda_memcpy_3d_peer_parms) == 168, "ABI");

enum { /* ids of launch and stream attributes; runtime and driver share them */
       WS_CUDA_ATTR_IGNORE = 0,
       WS_CUDA_ATTR_ACCESS_POLICY_WINDOW = 1,
       WS_CUDA_ATTR_COOPERATIVE = 2,
       WS_CUDA_ATTR_SYNCHRONIZATION_POLICY = 3,
       WS_CUDA_ATTR_CLUSTER_DIMENSION = 4,
       WS_CUDA_ATTR_CLUSTER_SCHEDULING = 5,
       WS_CUDA_ATTR_PROGRAMMATIC_SERIALIZATION = 6,
       WS_CUDA_ATTR_PROGRAMMATIC_EVENT = 7,
       WS_CUDA_ATTR_PRIORITY = 8,
       WS_CUDA_ATTR_MEM_SYNC_DOMAIN_MAP = 9,
       WS_CUDA_ATTR_MEM_SYNC_DOMAIN = 10,
       WS_CUDA_ATTR_PREFERRED_CLUSTER_DIMENSION = 11,
       WS_CUDA_ATTR_LAUNCH_COMPLETION_EVENT = 12,
       WS_CUDA_ATTR_DEVICE_UPDATABLE_NODE = 13,
       WS_CUDA_ATTR_SHARED_CARVEOUT = 14,
       WS_CUDA_ATTR_NVLINK_SCHEDULING = 16,
};
union cuda_launch_attribute_value {
    char pad[64];
    int cooperative, priority, policy;
    struct cuda_dim3 cluster;
    struct {
        void *event;
        int flags;
        int trigger;
    } event;
};
struct cuda_launch_attribute {
    int id;
    char pad[4];
    union cuda_launch_attribute_value val;
};
_Static_assert(sizeof(struct cuda_launch_attribute) == 72, "ABI");
struct cuda_launch_config { /* cudaLaunchConfig_t */
    struct cuda_dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    void *stream;
    struct cuda_launch_attribute *attrs;
    unsigned numAttrs;
};
_Static_assert(sizeof(struct cuda_launch_config) == 56, "ABI");
struct cu_launch_config { /* CUlaunchConfig */
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void *hStream;
    struct cuda_launch_attribute *attrs;
    unsigned numAttrs;
};
_Static_assert(sizeof(struct cu_launch_config) == 56, "ABI");

struct cuda_channel_desc {
    int x, y, z, w, f;
};
struct cuda_mem_location {
    int type, id;
};
enum { /* of both APIs */
       WS_CUDA_LOCATION_NONE,
       WS_CUDA_LOCATION_DEVICE,
       WS_CUDA_LOCATION_HOST,
       WS_CUDA_LOCATION_HOST_NUMA,
       WS_CUDA_LOCATION_HOST_NUMA_CURRENT
};
enum { WS_CUDA_ALLOCATION_PINNED = 1, WS_CUDA_ALLOCATION_MANAGED = 2 };
enum {
    WS_CUDA_HANDLE_NONE = 0,
    WS_CUDA_HANDLE_FD = 1,
    WS_CUDA_HANDLE_WIN32 = 2,
    WS_CUDA_HANDLE_WIN32_KMT = 4,
    WS_CUDA_HANDLE_FABRIC = 8,
    WS_CUDA_HANDLES = 15
};
enum { WS_CUDA_PROT_NONE = 0, WS_CUDA_PROT_READ = 1, WS_CUDA_PROT_READWRITE = 3 };
struct cuda_mem_access_desc {
    struct cuda_mem_location location;
    int flags; /* WS_CUDA_PROT_… */
};
struct cuda_mem_pool_props {
    int allocType, handleTypes;
    struct cuda_mem_location location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
_Static_assert(sizeof(struct cuda_mem_pool_props) == 88, "ABI");
struct cu_mem_allocation_prop { /* CUmemAllocationProp */
    int type, requestedHandleTypes;
    struct cuda_mem_location location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};
_Static_assert(sizeof(struct cu_mem_allocation_prop) == 32, "ABI");
struct cuda_ipc_handle { /* of memory, of an event, of a pointer from a pool */
    char bytes[64];
};
struct cuda_memcpy_attributes {
    int srcAccessOrder;
    struct cuda_mem_location srcLocHint, dstLocHint;
    unsigned flags;
};
_Static_assert(sizeof(struct cuda_memcpy_attributes) == 24, "ABI");
struct cuda_memcpy_3d_operand {
    int type; /* 1: pointer, 2: array */
    union {
        struct {
            void *ptr;
            size_t rowLength, layerHeight; /* in elements */
            struct cuda_mem_location locHint;
        } ptr;
        struct {
            void *array;
            struct cuda_pos offset;
        } array;
    } op;
};
_Static_assert(sizeof(struct cuda_memcpy_3d_operand) == 40, "ABI");
struct cuda_memcpy_3d_batch_op {
    struct cuda_memcpy_3d_operand src, dst;
    struct cuda_extent extent;
    int srcAccessOrder;
    unsigned flags;
};
_Static_assert(sizeof(struct cuda_memcpy_3d_batch_op) == 112, "ABI");

struct cu_memcpy_2d { /* CUDA_MEMCPY2D_v2 */
    size_t srcXInBytes, srcY;
    int srcMemoryType;
    const void *srcHost;
    uint64_t srcDevice;
    void *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    int dstMemoryType;
    void *dstHost;
    uint64_t dstDevice;
    void *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
};
_Static_assert(sizeof(struct cu_memcpy_2d) == 128, "ABI");
/* CUDA_MEMCPY3D_v2; CUDA_MEMCPY3D_PEER has contexts where this one is reserved. */
struct cu_memcpy_3d {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    int srcMemoryType;
    const void *srcHost;
    uint64_t srcDevice;
    void *srcArray;
    void *srcContext;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    int dstMemoryType;
    void *dstHost;
    uint64_t dstDevice;
    void *dstArray;
    void *dstContext;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
};
_Static_assert(sizeof(struct cu_memcpy_3d) == 200, "ABI");
enum {
    WS_CU_MEMORY_HOST = 1,
    WS_CU_MEMORY_DEVICE = 2,
    WS_CU_MEMORY_ARRAY = 3,
    WS_CU_MEMORY_UNIFIED = 4
};

struct cu_dev_prop { /* CUdevprop */
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], sharedMemPerBlock,
        totalConstantMemory, SIMDWidth, memPitch, regsPerBlock;
    int clockRate, textureAlign;
};
struct cu_ctx_create_params {
    void *execAffinityParams;
    int numExecAffinityParams;
    void *cigParams;
};

#endif
