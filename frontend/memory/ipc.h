// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/ipc.h - memory and events of other processes (cudaIpc…, cuIpc…), and peer access
 * between devices. Threads: any. Functions return a CUDA code unless they say otherwise. */
#ifndef WS_FRONTEND_MEMORY_IPC_H
#define WS_FRONTEND_MEMORY_IPC_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

int ws_ipc_memory_handle(struct cuda_ipc_handle *ret, uint64_t address);
/* @device: the current one; where its kernels can't use the memory, CUDA_PEER_UNSUPPORTED. */
int ws_ipc_memory_open(int device, uint64_t *ret_address, const struct cuda_ipc_handle *h,
                       unsigned flags);
int ws_ipc_memory_close(uint64_t address);
int ws_ipc_event_handle(struct cuda_ipc_handle *ret, uint64_t event);
int ws_ipc_event_open(uint64_t *ret_event, const struct cuda_ipc_handle *h, int device);
/* For events that are made with the flag "interprocess": only they have handles. */
int ws_ipc_event_check(bool timing);
void ws_ipc_event_note(uint64_t event);
void ws_ipc_event_forget(uint64_t event);
void ws_ipc_reset_device(int device);

int ws_peer_can(int device, int peer, int *ret);
/* Whether kernels of @device can use memory of @peer. */
bool ws_peer_reaches(int device, int peer);
int ws_peer_enable(int device, int peer);
int ws_peer_disable(int device, int peer);
/* Return: INVALID_VALUE, INVALID_DEVICE. */
int ws_peer_attribute(int attribute, int device, int peer, int *ret);
void ws_peer_reset_device(int device);

#endif
