// SPDX-License-Identifier: Apache-2.0
/* frontend/module/module.h - images and what is in them, as programs name them.
 *
 *   library (CUlibrary, cudaLibrary_t, or what __cudaRegisterFatBinary registers): an image, on no
 *   device yet
 *   └ kernel (CUkernel, cudaKernel_t, or a host function that stands for one)
 *   module (CUmodule): an image loaded on one device; a library has one for each device, loaded at
 *   its first use
 *   └ fn (CUfunction): a kernel there
 * Threads: any. */
#ifndef WS_FRONTEND_MODULE_MODULE_H
#define WS_FRONTEND_MODULE_MODULE_H

#include <stdbool.h>
#include "base/table.h"
#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

struct ws_library;
struct ws_mod {
    struct ws_slot slot;
    struct ws_session_module *module;
    int device;
    struct ws_library *library; /* NULL: loaded by cuModuleLoad… */
    struct ws_managed *managed; /* of a module that is of no library */
    struct ws_fn *fns;          /* those that somebody asked for */
};
struct ws_fn {
    struct ws_slot slot;
    struct ws_mod *mod;
    struct ws_session_function *function;
    struct ws_kernel *kernel; /* NULL if the module is of no library */
    struct ws_fn *next;       /* of the module */
    int max_dynamic_bytes;    /* dynamic shared memory that a launch may ask for */
    int carveout, cache_config;
    int cluster[3], cluster_scheduling; /* as the program has set them for this function */
    bool non_portable_clusters;
    _Atomic uint64_t resident; /* the last answer of fits_at_once() in launch.c */
    struct ws_old_launch *old; /* malloc'ed state of cuFuncSetBlockShape & co. */
};
struct ws_kernel {
    struct ws_slot slot;
    struct ws_library *library;
    char *name;
    UT_hash_handle hh; /* of the library, by name */
    struct ws_fn *_Atomic fn[WS_MAX_DEVICES];
};

/* ---- libraries ---- */
/* @image: borrowed for the library's life (registered fatbins), or copied. @bytes: 0 if the image
 * tells. A wrapper is opened. */
int ws_library_new(const void *image, uint64_t bytes, bool copy, struct ws_library **ret);
/* As above, and loads it on @device, so that what is wrong with it is found now. @ret_log:
 * malloc'ed text or NULL. */
int ws_library_open(const void *image, uint64_t bytes, bool copy, int device,
                    struct ws_library **ret, char **ret_log);
void ws_library_free(struct ws_library *l);
bool ws_library_valid(const struct ws_library *l);
/* Loads it on @device if not yet done. @ret_log: NULL, or malloc'ed text. Return: a CUDA code. */
int ws_library_load(struct ws_library *l, int device, struct ws_mod **ret, char **ret_log);
/* The kernel by that name; made if new, whether the image has it or not. NULL: out of memory. */
struct ws_kernel *ws_library_kernel(struct ws_library *l, const char *name);
bool ws_kernel_valid(const struct ws_kernel *k);
/* Whether the library, as loaded on the device, has the kernel; it may be one that can't run. */
bool ws_kernel_exists(const struct ws_kernel *k, int device);
/* The kernel on a device; loads the library. Return: a CUDA code, NOT_FOUND if the image hasn't got
 * it. */
int ws_kernel_fn_slow(struct ws_kernel *k, int device, struct ws_fn **ret);
static inline int ws_kernel_fn(struct ws_kernel *k, int device, struct ws_fn **ret)
{
    struct ws_fn *f = atomic_load_explicit(&k->fn[device], memory_order_acquire);
    if (WS_UNLIKELY(!f))
        return ws_kernel_fn_slow(k, device, ret);
    *ret = f;
    return 0;
}

/* ---- modules ---- */
/* ws_jit_report(), and says what was wrong on stderr if loading gave the CUDA error @code and the
 * program has no error log; the same only once. */
struct ws_jit;
void ws_mod_report(const struct ws_jit *j, int code, const char *text);
/* Return: a CUDA code. @ret_log: NULL, or malloc'ed text when something is wrong with the image. */
int ws_mod_load(int device, const void *image, uint64_t bytes, const char *name,
                struct ws_mod **ret, char **ret_log);
int ws_mod_unload(struct ws_mod *m);
bool ws_mod_valid(const struct ws_mod *m);
int ws_mod_fn(struct ws_mod *m, const char *name, struct ws_fn **ret); /* NOT_FOUND */
int ws_mod_n_fns(struct ws_mod *m);
int ws_mod_fn_at(struct ws_mod *m, size_t index, struct ws_fn **ret); /* NOT_FOUND: no more */
bool ws_fn_valid(const struct ws_fn *f);

/* A file's content, with a zero after it. @ret_bytes: without that zero, unless it is text. Return:
 * a CUDA code. */
int ws_image_read_file(const char *path, char **ret, uint64_t *ret_bytes);

/* The session has reset the device: forget what was loaded there. */
void ws_module_reset_device(int device);

/* ---- launch: what both façades check and do ---- */
struct ws_launch_means { /* launch attributes that change what a launch means */
    bool cooperative;
    uint32_t cluster[3]; /* blocks of a cluster; 0: it does not say */
};
struct ws_launch_request {
    uint32_t grid[3], block[3];
    size_t shared_bytes;
    const void *stream;
    bool per_thread;
    struct ws_launch_means means;
    void **args;
    const void *packed;
    size_t packed_bytes;
};
/* The arguments as cuLaunchKernel() has them: @args, or the buffer that @extra names; both
 * borrowed. Return: OK, INVALID_VALUE (both, or an @extra that is not as documented). */
ws_err ws_launch_set_args(struct ws_launch_request *r, void **args, void **extra);
/* What is checked without a stream, and the launch that comes of it; @ret->stream is left to the
 * caller. */
ws_err ws_fn_prepare(struct ws_fn *f, const struct ws_launch_request *r, struct ws_launch *ret);
/* Return: WS__ERROR; the stream's handle is checked. */
ws_err ws_fn_launch(struct ws_fn *f, const struct ws_launch_request *r);

/* Launch attributes: hints are passed over. @ret: what none of them says stays. Return: a CUDA
 * code; NOT_SUPPORTED, having said which, for others that change what a launch means. */
int ws_launch_attributes(const struct cuda_launch_attribute *v, unsigned n,
                         struct ws_launch_means *ret);

struct ws_launch_config { /* what cudaLaunchConfig_t and CUlaunchConfig ask for */
    uint32_t grid[3], block[3];
    size_t shared_bytes;
    const struct cuda_launch_attribute *attributes;
    unsigned n_attributes;
};

/* CU_FUNC_ATTRIBUTE_… Return: a CUDA code. */
int ws_fn_attribute(const struct ws_fn *f, int attribute, int *ret);
int ws_fn_set_attribute(struct ws_fn *f, int attribute, int value);
/* Where a parameter lies; @bytes may be NULL. Return: a CUDA code, INVALID_VALUE past the last. */
int ws_fn_param(const struct ws_fn *f, size_t i, size_t *offset, size_t *bytes);
/* How many parameters there are. Return: a CUDA code. */
int ws_fn_n_params(const struct ws_fn *f, size_t *n);
/* Blocks that fit an SM. Return: a CUDA code. */
int ws_fn_max_blocks(const struct ws_fn *f, int block_threads, size_t shared_bytes,
                     int *ret_blocks);
/* The largest cluster, in blocks, and how many of the size that the launch or the kernel says are
 * resident at once; one of the two may be NULL. Return: a CUDA code. */
int ws_fn_max_clusters(const struct ws_fn *f, const struct ws_launch_config *s, int *ret_size,
                       int *ret_clusters);
/* Dynamic shared memory for each of @n_blocks blocks on an SM. Return: a CUDA code. */
int ws_fn_available_shared(const struct ws_fn *f, int n_blocks, int block_threads,
                           size_t *ret_bytes);

#endif
