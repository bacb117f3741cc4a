// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/vmm.h - physical memory and reserved addresses of the program (CUDA Driver API,
 * "Virtual Memory Management"). Threads: any. Functions return a CUDA code unless they say
 * otherwise. */
#ifndef WS_FRONTEND_MEMORY_VMM_H
#define WS_FRONTEND_MEMORY_VMM_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

int ws_vmm_create(uint64_t *ret_handle, uint64_t bytes, const struct cu_mem_allocation_prop *prop);
int ws_vmm_release(uint64_t handle);
/* The handle of what is mapped at @address, with one more reference. */
int ws_vmm_retain(uint64_t *ret_handle, uint64_t address);
int ws_vmm_properties(struct cu_mem_allocation_prop *ret, uint64_t handle);
int ws_vmm_export(int *ret_fd, uint64_t handle);
int ws_vmm_import(uint64_t *ret_handle, int fd);
/* @wanted: as ws_session_va_reserve(). */
int ws_vmm_reserve(uint64_t *ret_address, uint64_t bytes, uint64_t alignment, uint64_t wanted);
int ws_vmm_unreserve(uint64_t address, uint64_t bytes);
int ws_vmm_map(uint64_t address, uint64_t bytes, uint64_t handle);
int ws_vmm_unmap(uint64_t address, uint64_t bytes);
int ws_vmm_set_access(uint64_t address, uint64_t bytes, int device, int flags);
int ws_vmm_get_access(uint64_t address, int device, int *ret_flags);
/* The device was reset: the handles and mappings of its memory are gone. */
void ws_vmm_reset_device(int device);

#endif
