// SPDX-License-Identifier: Apache-2.0
/* dlopen() and dlsym().
 *
 * dlopen(): a program that opens the CUDA driver or runtime by name gets this library. It is loaded
 * already and has the SONAME libcuda.so.1, so asking the real dlopen() for that name finds it
 * without any search.
 *
 * The real function looks at its return address to find the caller's RUNPATH and namespace, so it
 * must be entered by a jump from the caller's own call: the exported symbol is a few instructions
 * that let C code choose the name and the target, and then jump there. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "frontend/compilers/compilers.h"
#include "frontend/interpose/redirect.h"
#include "frontend/interpose/toolkit.h"

struct dlopen_choice {
    const char *name;
    void *target;
};
struct dlopen_choice ws_dlopen_choose(const char *name, int mode, const void *caller);

__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        ".p2align 4\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "movq 24(%rsp), %rdx\n" /* the caller */
        "call ws_dlopen_choose\n"
        "addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "movq %rax, %rdi\n"
        "jmpq *%rdx\n"
        ".cfi_endproc\n"
        ".size dlopen, . - dlopen\n");

struct found {
    void *value;  /* what dlsym() gives, or NULL: */
    void *target; /* jump there */
};
struct found ws_dlsym_choose(void *handle, const char *name);

#ifndef __SANITIZE_THREAD__ /* which calls dlsym() before it can run anything of ours */
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        ".p2align 4\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call ws_dlsym_choose\n"
        "addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "testq %rax, %rax\n"
        "jz 1f\n"
        "ret\n"
        "1: jmpq *%rdx\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#endif

static void *(*real)(const char *, int);
static void *(*real_dlsym)(void *, const char *);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_real(void)
{
    *(void **)&real_dlsym = ws_dlsym();
    if (real_dlsym)
        *(void **)&real = real_dlsym(RTLD_NEXT, "dlopen");
}

/* Whether @path is that of library @stem or @other: "libcuda.so", "libcudart.so.13",
 * "/usr/lib/libcuda.so.535.104.05", … */
static bool is_library(const char *path, const char *stem, const char *other)
{
    const char *const stems[] = {stem, other};
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    for (size_t i = 0; i < WS_ARRAY_SIZE(stems); i++) {
        size_t n = strlen(stems[i]);
        if (!strncmp(name, stems[i], n) &&
            (!name[n] || (name[n] == '.' && strspn(name + n, ".0123456789") == strlen(name + n))))
            return true;
    }
    return false;
}
static bool is_cuda(const char *path)
{
    return is_library(path, "libcuda.so", "libcudart.so");
}

/* cuBLAS, where ours is preloaded (frontend/blas). */
static const char blas[] = "libwattshare-blas.so";
static bool is_blas(const char *path)
{
    return is_library(path, "libcublas.so", "libcublasLt.so") &&
           real(blas, RTLD_LAZY | RTLD_NOLOAD);
}

static void *no_symbol(void *handle, const char *name)
{
    return NULL;
}

struct found ws_dlsym_choose(void *handle, const char *name)
{
    struct found f = {NULL, NULL};
    pthread_once(&once, find_real);
    f.target = real_dlsym ? (void *)real_dlsym : (void *)no_symbol;
    if (name && real_dlsym && handle != RTLD_NEXT &&
        (!strncmp(name, "nv", 2) || !strncmp(name, "__nvJitLink", strlen("__nvJitLink"))))
        f.value = ws_compiler_stand_in(handle, name, real_dlsym(handle, name));
    return f;
}

static void *refuse(const char *name, int mode)
{
    return NULL;
}

/* Where the dynamic linker doesn't tell of new objects. The caller's RUNPATH is not searched
 * then. */
static void *open_then_scan(const char *name, int mode)
{
    void *h = real(name, mode);
    if (h)
        ws_redirect_scan();
    return h;
}

/* Is @name that of a compiler as a library, without a folder? Where it lies is then told by
 * LD_LIBRARY_PATH or ldconfig's list; programs that need only the driver and a compiler are often
 * run where neither knows of the toolkit. */
static bool is_compiler(const char *name)
{
    return !strncmp(name, "libnvrtc.so", 11) || !strncmp(name, "libnvJitLink.so", 15) ||
           !strncmp(name, "libnvvm.so", 10);
}

/* As the real one; then in the toolkit's folders. The caller's RUNPATH is not searched here
 * either. */
static void *open_compiler(const char *name, int mode)
{
    static const char *const folders[] = {"lib64", "nvvm/lib64"};
    const char *const homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    const size_t n = WS_ARRAY_SIZE(folders);
    void *h = real(name, mode);
    for (size_t i = 0; i < WS_ARRAY_SIZE(homes) * n && !h; i++) {
        char path[PATH_MAX];
        const char *home = homes[i / n];
        if (home && *home &&
            snprintf(path, sizeof(path), "%s/%s/%s", home, folders[i % n], name) < PATH_MAX)
            h = real(path, mode);
    }
    if (h && !ws_redirect_early())
        ws_redirect_scan();
    return h;
}

struct dlopen_choice ws_dlopen_choose(const char *name, int mode, const void *caller)
{
    pthread_once(&once, find_real);
    struct dlopen_choice c = {name, (void *)real};
    if (!real) {
        c.target = (void *)refuse;
    } else if (name && is_cuda(name)) {
        const char *stranger = ws_redirect_stranger(caller);
        if (stranger) {
            ws_log(WS_ERROR,
                   "redirect: the CUDA runtime in %s could not be redirected, so its calls fail; "
                   "link it with -cudart shared, or do not strip it",
                   stranger);
            c.target = (void *)refuse;
        }
        ws_toolkit_opened(name);
        c.name = "libcuda.so.1";
    } else if (name && is_blas(name)) {
        c.name = blas;
    } else if (name && is_compiler(name)) {
        c.target = (void *)open_compiler;
    } else if (!ws_redirect_early()) {
        c.target = (void *)open_then_scan;
    }
    return c;
}
