// SPDX-License-Identifier: Apache-2.0
/* device/cuda/code.h - modules, their instances, and the forms in which the driver has compiled
 * them.
 *
 * module.c makes them, bake.c and machine.c are its parts for PTX and for machine code. */
#ifndef WS_DEVICE_CUDA_CODE_H
#define WS_DEVICE_CUDA_CODE_H

#include <pthread.h>

#include "base/list.h"
#include "device/cuda/driver.h"
#include "device/device.h"

struct ws_cuda;
struct ws_cuda_machine;

/* The forms of a module, as bits: */
enum {
    /* Kernels take their blocks from a counter: they can be kept to SMs, and stopped. */
    WS_CUDA_TICKETS = 1,
    /* Kernels that do not say how large their blocks are take the largest: what was added to them
     * keeps no block from being launched. It has fewer registers, and is slower. */
    WS_CUDA_WIDE = 2,
    _WS_CUDA_FORMS = 4,
};

/* One compiled form of a module on one device. The arrays have a row for each kernel. */
struct ws_cuda_image {
    struct ws_cuda_image *next;
    struct ws_cuda *device;
    ws_cu_module module;
    ws_cu_function *functions; /* NULL: the kernel is not in this form */
    uint8_t *kinds;            /* enum ws_ptx_rewrite */
    bool *flat;
    uint32_t *max_threads; /* of a block */
    /* Blocks that an SM holds, as the driver said for the latest configuration, threads of a block
     * << 16, dynamic shared bytes << 32; 0: it was not asked (launch.c). */
    _Atomic uint64_t *fits;
    uint32_t *fence_at; /* offset of struct ws_ptx_fence among the parameters */
    uint32_t *ctl_at;   /* offset of struct ws_ptx_ctl */
    uint32_t *lib_at;   /* offset of the address of struct ws_ptx_lib */
    uint32_t *lib_uses; /* ptx/passes/devlib.h; 0: the kernel has no such parameter */
};

/* This device's modules and instances; the other devices complete these types of device.h in their
 * own way. */
struct ws_dmodule { /* begins with its info */
    struct ws_dmodule_info info;
    const struct ws_ptx_module *ptx;
    char *text; /* as printed; parsed again where a form of it is made */
    size_t text_len;
    struct ws_kernel_info *kernels;
    char **why;     /* [n_kernels]: backing of info.unsupported, or NULL */
    uint32_t *func; /* [n_kernels]: index among ptx->funcs */
    uint32_t *uses; /* [n_kernels]: ptx/passes/devlib.h, provided by our functions */
    /* [n_kernels]: as ws_ptx_function_addresses() says. A function has another address in each
     * form, so a kernel that has to do with addresses has the first form only, for the largest
     * blocks. */
    uint8_t *addresses;
    /* The code names variables in memory, so each instance is compiled for the addresses of its
     * own. */
    bool uses_vars;
    uint32_t n_function_refs;
    pthread_mutex_t lock;
    /* Lists by device, of instances without variables of their own */
    struct ws_cuda_image *images[_WS_CUDA_FORMS];
};
struct ws_dinstance {
    struct ws_dmodule *module;
    struct ws_cuda *device;
    struct ws_space *space;
    uint64_t *var_va;
    /* The module's forms, or the instance's own; made when first needed; module->lock */
    struct ws_cuda_image *image[_WS_CUDA_FORMS];
    bool failed[_WS_CUDA_FORMS];
    bool own;                        /* image[] is the instance's own */
    struct ws_list preload;          /* run lock: in device->preloads */
    struct ws_cuda_machine *machine; /* machine.c: of machine code with variables; else NULL */
};

/* ---- module.c ---- */
struct ws_cuda_image *ws_cuda_image_free(struct ws_cuda_image *i); /* NULL ok; returns NULL */
int ws_cuda_module_load(struct ws_device *dev, const struct ws_ptx_module *m,
                        struct ws_dmodule **ret, struct ws_diags *diags);
void ws_cuda_module_unload(struct ws_dmodule *m);
int ws_cuda_instance_new(struct ws_device *dev, struct ws_dmodule *m, struct ws_space *s,
                         const uint64_t *var_va, enum ws_instance_write write,
                         struct ws_dinstance **ret);
void ws_cuda_instance_free(struct ws_dinstance *i);
/* A form (bits as above). It is compiled if it is not there yet, which takes a while. NULL: it
 * cannot be made. */
struct ws_cuda_image *ws_cuda_image_of(struct ws_dinstance *i, unsigned form);
/* Whether ws_cuda_image_of() returns at once: the form is there, or is known to be impossible. */
bool ws_cuda_image_ready(struct ws_dinstance *i, unsigned form);
/* The next instance whose code is to be compiled before a launch needs it: the caller compiles it
 * and calls ws_cuda_preload_done(). Run lock held. NULL: none. */
struct ws_dinstance *ws_cuda_preload_next(struct ws_cuda *d);
void ws_cuda_preload_compile(struct ws_dinstance *i); /* no lock held */
void ws_cuda_preload_done(struct ws_cuda *d);
int ws_cuda_occupancy(struct ws_device *dev, const struct ws_dmodule *m, uint32_t kernel,
                      uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret);

/* ---- unload.c ---- */
int ws_cuda_unload_open(struct ws_cuda *d);
void ws_cuda_unload_close(struct ws_cuda *d); /* when all is unloaded */
/* Has @m unloaded, without waiting for it. Any thread. */
void ws_cuda_unload(struct ws_cuda *d, ws_cu_module m);

/* ---- bake.c ---- */
#define WS_CUDA_FUNCTION_TABLE "ws$functions" /* no compiler's name */
/* Whether code of @m names a variable in global or constant memory. */
bool ws_cuda_names_vars(const struct ws_ptx_module *m);
/* Puts addresses where the code of @m names variables of its own in memory, and removes those
 * variables. @m is changed. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_cuda_bake(struct ws_ptx_module *m, const uint64_t *var_va);
/* Removes the bodies of functions that cannot be linked, and says for each (index: function) why:
 * borrowed text, or NULL. */
WS_MUST_CHECK int ws_cuda_prune(struct ws_ptx_module *m, const char **why);
/* Adds a variable WS_CUDA_FUNCTION_TABLE with the addresses of all functions that initial values
 * name. *ret_n: how many. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_cuda_add_function_table(struct ws_ptx_module *m, uint32_t *ret_n);

/* ---- machine.c ---- */
/* Return: 0, or WS_PTX_E_UNSUPPORTED, said in @diags. */
WS_MUST_CHECK int ws_cuda_machine_check(const struct ws_ptx_module *m, struct ws_diags *diags);
/* Maps the variables of i->image[0], where the driver has put them, into the instance's space. The
 * image belongs to the variables from then on, whatever is returned. Return: 0, -ENOMEM, -EIO,
 * -EEXIST. */
WS_MUST_CHECK int ws_cuda_machine_place(struct ws_dinstance *i);
void ws_cuda_machine_free(struct ws_dinstance *i);
void ws_cuda_instance_vars(const struct ws_dinstance *i, uint64_t *ret_va);

#endif
