// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/vmm.h - what the program has of physical memory and reserved addresses (CUDA Driver API, "Virtual Memory Management").
 * Threads: any. All return a CUDA code unless said. */
#ifndef WS_FRONTEND_MEMORY_VMM_H
#define WS_FRONTEND_MEMORY_VMM_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

int ws_vmm_create(uint64_t *ret_handle, uint64_t bytes, const struct cu_mem_allocation_prop *prop);
int ws_vmm_release(uint64_t handle);
/* Of what is mapped at @address: one more reference. */
int ws_vmm_retain(uint64_t *ret_handle, uint64_t address);
int ws_vmm_properties(struct cu_mem_allocation_prop *ret, uint64_t handle);
int ws_vmm_export(int *ret_fd, uint64_t handle);
int ws_vmm_import(uint64_t *ret_handle, int fd);
int ws_vmm_reserve(uint64_t *ret_address, uint64_t bytes, uint64_t alignment);
int ws_vmm_unreserve(uint64_t address, uint64_t bytes);
int ws_vmm_map(uint64_t address, uint64_t bytes, uint64_t handle);
int ws_vmm_unmap(uint64_t address, uint64_t bytes);
int ws_vmm_set_access(uint64_t address, uint64_t bytes, int device, int flags);
int ws_vmm_get_access(uint64_t address, int device, int *ret_flags);
/* The mapping that holds @address. Return: false: none. */
bool ws_vmm_find(uint64_t address, uint64_t *ret_base, uint64_t *ret_bytes, int *ret_device);
/* Handles and mappings of the device's memory are gone. */
void ws_vmm_reset_device(int device);

#endif
