// SPDX-License-Identifier: Apache-2.0
/* Is compiled, but never run, where the headers of a CUDA toolkit are. It does not compile if what
 * we say of CUDA's layouts and codes differs from the headers. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "frontend/texture/cuda_texture.h"
#include "frontend/context/attributes.h"
#include "frontend/cuda_types.h"
#include "frontend/errors.h"

// clang-format off
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs);
#define FIELD(ours, theirs, f)                                                                     \
    _Static_assert(offsetof(ours, f) == offsetof(theirs, f) && sizeof(((ours *)0)->f) == sizeof(((theirs *)0)->f), #theirs "." #f);

SIZE(struct cuda_dim3, dim3)
SIZE(struct cuda_func_attributes, struct cudaFuncAttributes)
SIZE(struct cuda_pointer_attributes, struct cudaPointerAttributes)
SIZE(struct cuda_memcpy_3d_parms, struct cudaMemcpy3DParms)
SIZE(struct cuda_memcpy_3d_peer_parms, struct cudaMemcpy3DPeerParms)
SIZE(struct cuda_launch_attribute, struct cudaLaunchAttribute_st)
SIZE(struct cuda_launch_config, struct cudaLaunchConfig_st)
SIZE(struct cu_launch_config, CUlaunchConfig)
SIZE(struct cuda_launch_attribute, CUlaunchAttribute)
SIZE(struct cu_memcpy_2d, CUDA_MEMCPY2D)
SIZE(struct cu_memcpy_3d, CUDA_MEMCPY3D)
SIZE(struct cu_memcpy_3d, CUDA_MEMCPY3D_PEER)
SIZE(struct cu_dev_prop, CUdevprop)
SIZE(struct cu_ctx_create_params, CUctxCreateParams)
SIZE(struct cuda_pitched_ptr, struct cudaPitchedPtr)
SIZE(struct cuda_extent, struct cudaExtent)
SIZE(struct cuda_channel_desc, struct cudaChannelFormatDesc)

SIZE(struct cuda_resource_desc, struct cudaResourceDesc)
SIZE(struct cu_resource_desc, CUDA_RESOURCE_DESC)
SIZE(struct cuda_texture_desc, struct cudaTextureDesc)
SIZE(struct cu_texture_desc, CUDA_TEXTURE_DESC)
SIZE(struct cuda_view_desc, struct cudaResourceViewDesc)
SIZE(struct cuda_view_desc, CUDA_RESOURCE_VIEW_DESC)
SIZE(struct cu_array_desc, CUDA_ARRAY_DESCRIPTOR)
SIZE(struct cu_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR)
SIZE(struct cuda_array_memory, struct cudaArrayMemoryRequirements)
SIZE(struct cuda_array_memory, CUDA_ARRAY_MEMORY_REQUIREMENTS)
#define RES(f) FIELD(struct cuda_resource_desc, struct cudaResourceDesc, f)
RES(resType) RES(res.linear.devPtr) RES(res.linear.desc) RES(res.linear.sizeInBytes) RES(res.pitch2D.desc) RES(res.pitch2D.width)
RES(res.pitch2D.height) RES(res.pitch2D.pitchInBytes) RES(flags)
#define CURES(f) FIELD(struct cu_resource_desc, CUDA_RESOURCE_DESC, f)
CURES(resType) CURES(res.linear.devPtr) CURES(res.linear.format) CURES(res.linear.numChannels) CURES(res.linear.sizeInBytes)
CURES(res.pitch2D.width) CURES(res.pitch2D.height) CURES(res.pitch2D.pitchInBytes) CURES(flags)
#define TEX(f) FIELD(struct cuda_texture_desc, struct cudaTextureDesc, f)
TEX(addressMode) TEX(filterMode) TEX(readMode) TEX(sRGB) TEX(borderColor) TEX(normalizedCoords) TEX(maxAnisotropy) TEX(mipmapFilterMode)
TEX(mipmapLevelBias) TEX(minMipmapLevelClamp) TEX(maxMipmapLevelClamp) TEX(disableTrilinearOptimization) TEX(seamlessCubemap)
#define CUTEX(f) FIELD(struct cu_texture_desc, CUDA_TEXTURE_DESC, f)
CUTEX(addressMode) CUTEX(filterMode) CUTEX(flags) CUTEX(maxAnisotropy) CUTEX(mipmapFilterMode) CUTEX(mipmapLevelBias)
CUTEX(minMipmapLevelClamp) CUTEX(maxMipmapLevelClamp) CUTEX(borderColor)
#define VIEW(f) FIELD(struct cuda_view_desc, struct cudaResourceViewDesc, f)
VIEW(format) VIEW(width) VIEW(depth) VIEW(firstMipmapLevel) VIEW(lastMipmapLevel) VIEW(firstLayer) VIEW(lastLayer)
#define ARR(f) FIELD(struct cu_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR, f)
ARR(Width) ARR(Height) ARR(Depth) ARR(Format) ARR(NumChannels) ARR(Flags)
_Static_assert(WS_TRSF_SEAMLESS_CUBEMAP == CU_TRSF_SEAMLESS_CUBEMAP && WS_TRSF_SRGB == CU_TRSF_SRGB, "flags");
_Static_assert(WS_ARRAY_GATHER == cudaArrayTextureGather && WS_ARRAY_CUBEMAP == CUDA_ARRAY3D_CUBEMAP, "flags");

#define FUNC(f) FIELD(struct cuda_func_attributes, struct cudaFuncAttributes, f)
FUNC(sharedSizeBytes) FUNC(constSizeBytes) FUNC(localSizeBytes) FUNC(maxThreadsPerBlock) FUNC(numRegs) FUNC(ptxVersion)
FUNC(binaryVersion) FUNC(cacheModeCA) FUNC(maxDynamicSharedSizeBytes) FUNC(preferredShmemCarveout)
#define PTR(f) FIELD(struct cuda_pointer_attributes, struct cudaPointerAttributes, f)
PTR(type) PTR(device) PTR(devicePointer) PTR(hostPointer)
#define BOX(f) FIELD(struct cuda_memcpy_3d_parms, struct cudaMemcpy3DParms, f)
BOX(srcArray) BOX(srcPos) BOX(srcPtr) BOX(dstArray) BOX(dstPos) BOX(dstPtr) BOX(extent) BOX(kind)
#define BOXP(f) FIELD(struct cuda_memcpy_3d_peer_parms, struct cudaMemcpy3DPeerParms, f)
BOXP(srcArray) BOXP(srcPtr) BOXP(srcDevice) BOXP(dstArray) BOXP(dstPtr) BOXP(dstDevice) BOXP(extent)
#define CONFIG(f) FIELD(struct cuda_launch_config, struct cudaLaunchConfig_st, f)
CONFIG(gridDim) CONFIG(blockDim) CONFIG(dynamicSmemBytes) CONFIG(stream) CONFIG(attrs) CONFIG(numAttrs)
#define CUCONFIG(f) FIELD(struct cu_launch_config, CUlaunchConfig, f)
CUCONFIG(gridDimX) CUCONFIG(blockDimZ) CUCONFIG(sharedMemBytes) CUCONFIG(hStream) CUCONFIG(attrs) CUCONFIG(numAttrs)
#define CU2(f) FIELD(struct cu_memcpy_2d, CUDA_MEMCPY2D, f)
CU2(srcXInBytes) CU2(srcY) CU2(srcMemoryType) CU2(srcHost) CU2(srcDevice) CU2(srcArray) CU2(srcPitch) CU2(dstXInBytes) CU2(dstY)
CU2(dstMemoryType) CU2(dstHost) CU2(dstDevice) CU2(dstArray) CU2(dstPitch) CU2(WidthInBytes) CU2(Height)
#define CU3(f) FIELD(struct cu_memcpy_3d, CUDA_MEMCPY3D_PEER, f)
CU3(srcXInBytes) CU3(srcZ) CU3(srcLOD) CU3(srcMemoryType) CU3(srcHost) CU3(srcDevice) CU3(srcArray) CU3(srcContext) CU3(srcPitch)
CU3(srcHeight) CU3(dstXInBytes) CU3(dstLOD) CU3(dstMemoryType) CU3(dstHost) CU3(dstDevice) CU3(dstContext) CU3(dstPitch) CU3(dstHeight)
CU3(WidthInBytes) CU3(Height) CU3(Depth)
#define DEV(f) FIELD(struct cu_dev_prop, CUdevprop, f)
DEV(maxThreadsPerBlock) DEV(maxGridSize) DEV(sharedMemPerBlock) DEV(totalConstantMemory) DEV(SIMDWidth) DEV(regsPerBlock) DEV(textureAlign)
_Static_assert(offsetof(struct cuda_launch_attribute, val) == offsetof(struct cudaLaunchAttribute_st, val), "launch attribute");
_Static_assert(offsetof(union cuda_launch_attribute_value, priority) == offsetof(cudaLaunchAttributeValue, priority), "priority");
_Static_assert(offsetof(union cuda_launch_attribute_value, cluster) == offsetof(cudaLaunchAttributeValue, clusterDim), "cluster");

#if CUDART_VERSION >= 13000 && CUDART_VERSION < 14000
SIZE(struct cuda_device_prop, struct cudaDeviceProp)
#define PROP(f) FIELD(struct cuda_device_prop, struct cudaDeviceProp, f)
#elif CUDART_VERSION >= 12000
SIZE(struct cuda_device_prop_12, struct cudaDeviceProp)
#define PROP(f) FIELD(struct cuda_device_prop_12, struct cudaDeviceProp, f)
PROP(clockRate) PROP(memoryClockRate) PROP(deviceOverlap) PROP(singleToDoublePrecisionPerfRatio)
#endif
PROP(name) PROP(uuid) PROP(luid) PROP(luidDeviceNodeMask) PROP(totalGlobalMem) PROP(sharedMemPerBlock) PROP(regsPerBlock) PROP(warpSize)
PROP(memPitch) PROP(maxThreadsPerBlock) PROP(maxThreadsDim) PROP(maxGridSize) PROP(totalConstMem) PROP(major) PROP(minor)
PROP(textureAlignment) PROP(texturePitchAlignment) PROP(multiProcessorCount) PROP(integrated) PROP(canMapHostMemory) PROP(maxTexture1D)
PROP(maxTexture2DGather) PROP(maxTexture3DAlt) PROP(maxTextureCubemapLayered) PROP(maxSurface1D) PROP(maxSurfaceCubemapLayered)
PROP(surfaceAlignment) PROP(concurrentKernels) PROP(ECCEnabled) PROP(pciBusID) PROP(pciDeviceID) PROP(pciDomainID) PROP(tccDriver)
PROP(asyncEngineCount) PROP(unifiedAddressing) PROP(memoryBusWidth) PROP(l2CacheSize) PROP(persistingL2CacheMaxSize)
PROP(maxThreadsPerMultiProcessor) PROP(streamPrioritiesSupported) PROP(globalL1CacheSupported) PROP(localL1CacheSupported)
PROP(sharedMemPerMultiprocessor) PROP(regsPerMultiprocessor) PROP(managedMemory) PROP(isMultiGpuBoard) PROP(multiGpuBoardGroupID)
PROP(hostNativeAtomicSupported) PROP(pageableMemoryAccess) PROP(concurrentManagedAccess) PROP(computePreemptionSupported)
PROP(canUseHostPointerForRegisteredMem) PROP(cooperativeLaunch) PROP(sharedMemPerBlockOptin) PROP(maxBlocksPerMultiProcessor)
PROP(accessPolicyMaxWindowSize) PROP(reservedSharedMemPerBlock) PROP(hostRegisterSupported) PROP(memoryPoolsSupported)
PROP(memoryPoolSupportedHandleTypes) PROP(ipcEventSupported) PROP(clusterLaunch) PROP(unifiedFunctionPointers)

/* Codes: every row, and every name of ours. A row's NONE is no name of theirs. */
enum { NONE = -1 };
#define WS_CUDA_ERROR(value, rt, drv, text)                                                        \
    _Static_assert((int)(rt) == (value) || (int)(rt) == NONE, #rt);                                \
    _Static_assert((int)(drv) == (value) || (int)(drv) == NONE, #drv);
#include "frontend/errors.def"
#define CODE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs);
CODE(CUDA_INVALID_SYMBOL, cudaErrorInvalidSymbol) CODE(CUDA_INVALID_DIRECTION, cudaErrorInvalidMemcpyDirection)
CODE(CUDA_INVALID_PITCH, cudaErrorInvalidPitchValue) CODE(CUDA_INVALID_CONFIGURATION, cudaErrorInvalidConfiguration)
CODE(CUDA_MISSING_CONFIGURATION, cudaErrorMissingConfiguration) CODE(CUDA_INVALID_DEVICE_FUNCTION, cudaErrorInvalidDeviceFunction)
CODE(CUDA_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE) CODE(CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU)
CODE(CUDA_UNSUPPORTED_LIMIT, CUDA_ERROR_UNSUPPORTED_LIMIT) CODE(CUDA_UNSUPPORTED_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
CODE(CUDA_PEER_UNSUPPORTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) CODE(CUDA_FILE_NOT_FOUND, CUDA_ERROR_FILE_NOT_FOUND)
CODE(CUDA_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED) CODE(CUDA_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR)
CODE(CUDA_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) CODE(CUDA_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY)
CODE(CUDA_COOPERATIVE_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) CODE(CUDA_MISALIGNED, CUDA_ERROR_MISALIGNED_ADDRESS)
CODE(WS_CUDA_ATTR_COOPERATIVE, cudaLaunchAttributeCooperative) CODE(WS_CUDA_ATTR_CLUSTER_DIMENSION, cudaLaunchAttributeClusterDimension)
CODE(WS_CUDA_ATTR_PRIORITY, cudaLaunchAttributePriority) CODE(WS_CUDA_ATTR_PROGRAMMATIC_EVENT, cudaLaunchAttributeProgrammaticEvent)
CODE(WS_CUDA_ATTR_LAUNCH_COMPLETION_EVENT, cudaLaunchAttributeLaunchCompletionEvent)
CODE(WS_CUDA_ATTR_DEVICE_UPDATABLE_NODE, cudaLaunchAttributeDeviceUpdatableKernelNode)
CODE(WS_CUDA_ATTR_MEM_SYNC_DOMAIN, cudaLaunchAttributeMemSyncDomain)
CODE(WS_CUDA_MEMORY_MANAGED, cudaMemoryTypeManaged) CODE(WS_CU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED)
#define FUNCTION(name) CODE(WS_FUNC_##name, CU_FUNC_ATTRIBUTE_##name)
FUNCTION(MAX_THREADS_PER_BLOCK) FUNCTION(SHARED_SIZE_BYTES) FUNCTION(NUM_REGS) FUNCTION(CACHE_MODE_CA)
FUNCTION(PREFERRED_SHARED_MEMORY_CARVEOUT) FUNCTION(CLUSTER_SCHEDULING_POLICY_PREFERENCE)
#if CUDA_VERSION >= 13000
#define WS_DEVICE_ATTRIBUTE(number, name, value) CODE(WS_ATTR_##name, CU_DEVICE_ATTRIBUTE_##name)
#include "frontend/context/device_attributes.def"
#endif
