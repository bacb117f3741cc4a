// SPDX-License-Identifier: Apache-2.0
/* frontend/graph/types.h - layouts in memory of what CUDA's graph functions take (CUDA 13.0,
 * x86-64). Names keep CUDA's. */
#ifndef WS_FRONTEND_GRAPH_TYPES_H
#define WS_FRONTEND_GRAPH_TYPES_H

#include "frontend/cuda_types.h"

enum ws_node_type { /* cudaGraphNodeType = CUgraphNodeType */
                    WS_NODE_KERNEL,
                    WS_NODE_MEMCPY,
                    WS_NODE_MEMSET,
                    WS_NODE_HOST,
                    WS_NODE_GRAPH,
                    WS_NODE_EMPTY,
                    WS_NODE_WAIT_EVENT,
                    WS_NODE_EVENT_RECORD,
                    WS_NODE_SEMAPHORE_SIGNAL,
                    WS_NODE_SEMAPHORE_WAIT,
                    WS_NODE_MEM_ALLOC,
                    WS_NODE_MEM_FREE,
                    WS_NODE_BATCH_MEM_OP, /* driver only */
                    WS_NODE_CONDITIONAL
};

struct cuda_edge_data {
    uint8_t from_port, to_port, type, reserved[5];
};
struct cuda_kernel_node { /* cudaKernelNodeParams */
    void *func;
    struct cuda_dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
_Static_assert(sizeof(struct cuda_kernel_node) == 56, "ABI");
struct cu_kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v3; v2 is the same, v1 ends before kern */
    void *func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern, *ctx;
};
_Static_assert(sizeof(struct cu_kernel_node) == 72, "ABI");
struct cuda_memset_node { /* cudaMemsetParams = CUDA_MEMSET_NODE_PARAMS_v1 */
    uint64_t dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};
_Static_assert(sizeof(struct cuda_memset_node) == 40, "ABI");
struct cuda_host_node { /* cudaHostNodeParams = CUDA_HOST_NODE_PARAMS_v1 */
    void (*fn)(void *);
    void *userData;
};
struct cuda_alloc_node {
    struct cuda_mem_pool_props poolProps;
    const void *accessDescs;
    size_t accessDescCount, bytesize;
    uint64_t dptr;
};
_Static_assert(sizeof(struct cuda_alloc_node) == 120, "ABI");
struct cuda_child_node {
    void *graph;
    int ownership; /* 0 clone, 1 move */
};
struct cuda_conditional_node {
    uint64_t handle;
    int type;
    unsigned size;
    void **phGraph_out;
    void *ctx; /* driver only */
};
struct cuda_memcpy_node {
    int flags, reserved[3];
    struct cuda_memcpy_3d_parms copyParams;
};
struct cu_memcpy_node {
    int flags, reserved;
    void *copyCtx;
    struct cu_memcpy_3d copyParams;
};
enum { /* CUstreamBatchMemOpType */
       WS_CU_OP_WAIT_32 = 1,
       WS_CU_OP_WRITE_32 = 2,
       WS_CU_OP_FLUSH = 3,
       WS_CU_OP_WAIT_64 = 4,
       WS_CU_OP_WRITE_64 = 5,
       WS_CU_OP_BARRIER = 6
};
union cu_batch_op { /* CUstreamBatchMemOpParams */
    int operation;
    struct {
        int operation;
        uint64_t address, value;
        unsigned flags;
        uint64_t alias;
    } value;
    uint64_t pad[6];
};
_Static_assert(sizeof(union cu_batch_op) == 48, "ABI");
struct cu_batch_node {
    void *ctx;
    unsigned count;
    union cu_batch_op *paramArray;
    unsigned flags;
};
struct cuda_node_params { /* cudaGraphNodeParams, CUgraphNodeParams */
    int type, reserved0[3];
    union {
        int64_t reserved1[29];
        struct cuda_kernel_node rt_kernel;
        struct cu_kernel_node drv_kernel;
        struct cuda_memcpy_node rt_memcpy;
        struct cu_memcpy_node drv_memcpy;
        struct cuda_memset_node memset;
        struct cuda_host_node host;
        struct cuda_child_node graph;
        void *event;
        struct cuda_alloc_node alloc;
        uint64_t free_dptr;
        struct cu_batch_node memop;
        struct cuda_conditional_node conditional;
    };
    int64_t reserved2;
};
_Static_assert(sizeof(struct cuda_node_params) == 256, "ABI");
struct cuda_instantiate_params {
    uint64_t flags;
    void *uploadStream, *errNode_out;
    int result_out;
};
_Static_assert(sizeof(struct cuda_instantiate_params) == 32, "ABI");
struct cuda_update_result {
    int result;
    void *errorNode, *errorFromNode;
};
_Static_assert(sizeof(struct cuda_update_result) == 24, "ABI");

enum { /* flags of instantiation */
       WS_GRAPH_AUTO_FREE = 1,
       WS_GRAPH_UPLOAD = 2,
       WS_GRAPH_DEVICE_LAUNCH = 4,
       WS_GRAPH_NODE_PRIORITY = 8,
};
enum ws_instantiate_result {
    WS_INSTANTIATE_SUCCESS,
    WS_INSTANTIATE_ERROR,
    WS_INSTANTIATE_INVALID_STRUCTURE,
    WS_INSTANTIATE_NOT_SUPPORTED,
    WS_INSTANTIATE_MULTIPLE_DEVICES,
    WS_INSTANTIATE_HANDLE_UNUSED
};
enum ws_update_result {
    WS_UPDATE_SUCCESS,
    WS_UPDATE_ERROR,
    WS_UPDATE_TOPOLOGY_CHANGED,
    WS_UPDATE_NODE_TYPE_CHANGED,
    WS_UPDATE_FUNCTION_CHANGED,
    WS_UPDATE_PARAMETERS_CHANGED,
    WS_UPDATE_NOT_SUPPORTED,
    WS_UPDATE_UNSUPPORTED_FUNCTION_CHANGE,
    WS_UPDATE_ATTRIBUTES_CHANGED
};

#endif
