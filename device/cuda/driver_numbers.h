// SPDX-License-Identifier: Apache-2.0
/* device/cuda/driver_numbers.h - the numbers of NVIDIA's driver interface that driver.h's functions
 * take and return: results, attributes of a GPU, and other constants. Each table is X(name without
 * its prefix, number). Source: CUDA Driver API reference. */
#ifndef WS_DEVICE_CUDA_DRIVER_NUMBERS_H
#define WS_DEVICE_CUDA_DRIVER_NUMBERS_H

/* Results that are told apart. */
#define WS_CU_RESULTS(X)                                                                           \
    X(SUCCESS, 0)                                                                                  \
    X(INVALID_VALUE, 1)                                                                            \
    X(OUT_OF_MEMORY, 2)                                                                            \
    X(NOT_INITIALIZED, 3)                                                                          \
    X(DEINITIALIZED, 4)                                                                            \
    X(NO_DEVICE, 100)                                                                              \
    X(INVALID_DEVICE, 101)                                                                         \
    X(INVALID_IMAGE, 200)                                                                          \
    X(INVALID_CONTEXT, 201)                                                                        \
    X(NO_BINARY_FOR_GPU, 209)                                                                      \
    X(ECC_UNCORRECTABLE, 214)                                                                      \
    X(INVALID_PTX, 218)                                                                            \
    X(NVLINK_UNCORRECTABLE, 220)                                                                   \
    X(JIT_COMPILER_NOT_FOUND, 221)                                                                 \
    X(UNSUPPORTED_PTX_VERSION, 222)                                                                \
    X(CONTAINED, 226)                                                                              \
    X(OPERATING_SYSTEM, 304)                                                                       \
    X(INVALID_HANDLE, 400)                                                                         \
    X(NOT_FOUND, 500)                                                                              \
    X(NOT_READY, 600)                                                                              \
    X(ILLEGAL_ADDRESS, 700)                                                                        \
    X(LAUNCH_OUT_OF_RESOURCES, 701)                                                                \
    X(LAUNCH_TIMEOUT, 702)                                                                         \
    X(CONTEXT_IS_DESTROYED, 709)                                                                   \
    X(ASSERT, 710)                                                                                 \
    X(HOST_MEMORY_ALREADY_REGISTERED, 712)                                                         \
    X(HOST_MEMORY_NOT_REGISTERED, 713)                                                             \
    X(HARDWARE_STACK_ERROR, 714)                                                                   \
    X(ILLEGAL_INSTRUCTION, 715)                                                                    \
    X(MISALIGNED_ADDRESS, 716)                                                                     \
    X(INVALID_ADDRESS_SPACE, 717)                                                                  \
    X(INVALID_PC, 718)                                                                             \
    X(LAUNCH_FAILED, 719)                                                                          \
    X(COOPERATIVE_LAUNCH_TOO_LARGE, 720)                                                           \
    X(TENSOR_MEMORY_LEAK, 721)                                                                     \
    X(NOT_PERMITTED, 800)                                                                          \
    X(NOT_SUPPORTED, 801)                                                                          \
    X(SYSTEM_NOT_READY, 802)                                                                       \
    X(SYSTEM_DRIVER_MISMATCH, 803)                                                                 \
    X(MPS_CLIENT_TERMINATED, 810)                                                                  \
    X(INVALID_CLUSTER_SIZE, 912)                                                                   \
    X(INVALID_RESOURCE_TYPE, 914)                                                                  \
    X(INVALID_RESOURCE_CONFIGURATION, 915)                                                         \
    X(UNKNOWN, 999)
enum {
#define X(name, n) WS_CU_##name = (n),
    WS_CU_RESULTS(X)
#undef X
};

/* Attributes of a GPU. */
#define WS_CU_ATTRIBUTES(X)                                                                        \
    X(MAX_THREADS_PER_BLOCK, 1)                                                                    \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8)                                                              \
    X(MAX_PITCH, 11)                                                                               \
    X(CLOCK_RATE, 13)                                                                              \
    X(MULTIPROCESSOR_COUNT, 16)                                                                    \
    X(MEMORY_CLOCK_RATE, 36)                                                                       \
    X(GLOBAL_MEMORY_BUS_WIDTH, 37)                                                                 \
    X(L2_CACHE_SIZE, 38)                                                                           \
    X(MAX_THREADS_PER_MULTIPROCESSOR, 39)                                                          \
    X(UNIFIED_ADDRESSING, 41)                                                                      \
    X(COMPUTE_CAPABILITY_MAJOR, 75)                                                                \
    X(COMPUTE_CAPABILITY_MINOR, 76)                                                                \
    X(STREAM_PRIORITIES_SUPPORTED, 78)                                                             \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                                    \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                                        \
    X(COOPERATIVE_LAUNCH, 95)                                                                      \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                                       \
    X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)                                                 \
    X(HOST_REGISTER_SUPPORTED, 99)                                                                 \
    X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                                    \
    X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                                            \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106)
enum {
#define X(name, n) WS_CU_ATTR_##name = (n),
    WS_CU_ATTRIBUTES(X)
#undef X
};

/* Attributes of functions, flags, and kinds of things. */
#define WS_CU_CONSTANTS(X)                                                                         \
    X(FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                     \
    X(FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                         \
    X(FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                                                          \
    X(FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                                          \
    X(FUNC_ATTRIBUTE_NUM_REGS, 4)                                                                  \
    X(FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                             \
    X(FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)                                        \
    X(STREAM_NON_BLOCKING, 1)                                                                      \
    X(EVENT_DEFAULT, 0)                                                                            \
    X(MEMHOSTREGISTER_PORTABLE, 1)                                                                 \
    X(MEMHOSTREGISTER_DEVICEMAP, 2)                                                                \
    X(MEMHOSTALLOC_DEVICEMAP, 2)                                                                   \
    X(MEM_ALLOCATION_TYPE_PINNED, 1)                                                               \
    X(LIMIT_STACK_SIZE, 0)                                                                         \
    X(MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                                                    \
    X(MEM_LOCATION_TYPE_DEVICE, 1)                                                                 \
    X(MEM_ACCESS_FLAGS_PROT_READ, 1)                                                               \
    X(MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                                          \
    X(MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                                            \
    X(DEV_RESOURCE_TYPE_SM, 1)                                                                     \
    X(GREEN_CTX_DEFAULT_STREAM, 1)                                                                 \
    X(MEMORYTYPE_HOST, 1)                                                                          \
    X(MEMORYTYPE_DEVICE, 2)                                                                        \
    X(JIT_INFO_LOG_BUFFER, 3)                                                                      \
    X(JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)                                                           \
    X(JIT_ERROR_LOG_BUFFER, 5)                                                                     \
    X(JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                                          \
    X(LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                                                             \
    X(LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)
enum {
#define X(name, n) WS_CU_##name = (n),
    WS_CU_CONSTANTS(X)
#undef X
};

#endif
