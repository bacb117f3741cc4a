// SPDX-License-Identifier: Apache-2.0
/* frontend/module/registry.h - what nvcc's start-up code registers: addresses in the program that
 * stand for kernels and device variables. It is filled before main(), and by libraries that are
 * loaded later. Threads: any. */
#ifndef WS_FRONTEND_MODULE_REGISTRY_H
#define WS_FRONTEND_MODULE_REGISTRY_H

#include "frontend/module/module.h"

struct ws_registration; /* an image and its symbols; the handle that nvcc's code keeps */
enum ws_registered { WS_REGISTERED_KERNEL, WS_REGISTERED_VARIABLE, WS_REGISTERED_MANAGED };
/* @wrapper: the image as nvcc wraps it, borrowed until it is closed. Return: NULL without memory,
 * which is logged. */
struct ws_registration *ws_registry_open(const void *wrapper);
void ws_registry_close(struct ws_registration *r);
/* @host: the address in the program. @name: on the device, borrowed as the image is. Lack of memory
 * is logged. */
void ws_registry_add(struct ws_registration *r, const void *host, const char *name,
                     enum ws_registered kind);
/* Loads the image on @device, and writes the addresses of its managed variables to where the
 * program reads them. */
bool ws_registry_init_managed(struct ws_registration *r, int device);

/* The kernel that @function stands for: a host function, or a kernel handle itself. NULL if it is
 * neither. */
struct ws_kernel *ws_registry_kernel(const void *function);
/* A kernel, host function or CUfunction on a device. Return: a CUDA code as the runtime documents
 * it for launches. */
int ws_registry_fn(const void *function, int device, struct ws_fn **ret);
/* The host function that stands for @k; NULL if none does. */
const void *ws_registry_host(const struct ws_kernel *k);
/* Address and size of the device variable that @symbol (a host variable's address) stands for.
 * Return: a CUDA code. */
int ws_registry_variable(const void *symbol, int device, uint64_t *ret_address,
                         uint64_t *ret_bytes);

/* CUDA_MODULE_LOADING=EAGER: registered images are loaded when a device's primary context comes
 * into use. */
bool ws_registry_eager(void);
void ws_registry_load_all(int device);

#endif
