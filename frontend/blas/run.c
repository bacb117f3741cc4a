// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/run.c - starts this folder's kernels by the driver's calls, as any library does. */
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "frontend/blas/blas.h"

/* Of libwattshare.so. */
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, void *stream, void **params, void **extra);
int cuMemAllocAsync(uint64_t *ret, size_t bytes, void *stream);
int cuMemFreeAsync(uint64_t at, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuModuleGetFunction(void **ret, void *module, const char *name);
int cuModuleLoadData(void **ret, const void *image);
int cuModuleUnload(void *module);
int cuStreamSynchronize(void *stream);

enum { CUDA_OK = 0, CUDA_NO_MEMORY = 2 };

static const char *const texts[_WS_BLAS_N_TYPES] = {
#define BLAS_MODULE(type, text) [WS_BLAS_##type] = text,
#include "frontend/blas/kernels.inc"
};
static const char *const names[] = {
#define K(constant, name) [constant] = name,
    BLAS_KERNELS(K)
#undef K
};

int ws_blas_status(int code)
{
    return code == CUDA_OK ? BLAS_OK : code == CUDA_NO_MEMORY ? BLAS_NO_MEMORY : BLAS_FAILED;
}

int ws_blas_not_supported(const char *what)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *said[32];
    size_t k = 0;
    pthread_mutex_lock(&lock);
    while (k < WS_ARRAY_SIZE(said) && said[k] && strcmp(said[k], what) != 0)
        k++;
    if (k < WS_ARRAY_SIZE(said) && !said[k]) {
        said[k] = what;
        ws_log(WS_WARN, "blas: not supported: %s (doc/blas.md)", what);
    }
    pthread_mutex_unlock(&lock);
    return BLAS_NOT_SUPPORTED;
}

/* Two threads may multiply by the same handle of cuBLASLt for the first time. */
static int load(struct ws_blas_code *code, enum ws_blas_type type, enum ws_blas_kernel kernel,
                void **ret)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int r = 0;
    if (!texts[type])
        return ws_blas_not_supported("this type of elements");
    pthread_mutex_lock(&lock);
    if (!code->modules[type])
        r = cuModuleLoadData(&code->modules[type], texts[type]);
    if (!r && !code->kernels[type][kernel])
        r = cuModuleGetFunction(&code->kernels[type][kernel], code->modules[type], names[kernel]);
    *ret = code->kernels[type][kernel];
    pthread_mutex_unlock(&lock);
    return ws_blas_status(r);
}

void ws_blas_unload(struct ws_blas *h)
{
    for (unsigned i = 0; i < _WS_BLAS_N_TYPES; i++)
        if (h->code->modules[i])
            (void)cuModuleUnload(h->code->modules[i]);
}

int ws_blas_run(struct ws_blas *h, enum ws_blas_type type, enum ws_blas_kernel kernel,
                const void *params, int64_t n, int64_t batches)
{
    enum { MOST = 1024 /* blocks of a vector's kernel, whose threads go on where all end */ };
    bool vectors = kernel >= BLAS_AXPY, reduces = kernel >= BLAS_DOT;
    int64_t blocks = kernel == BLAS_PRODUCT ? n : reduces ? 1 : (n + 255) / 256;
    void *list[] = {(void *)(uintptr_t)params}, *f = NULL;
    int r = load(h->code, type, kernel, &f);
    if (r)
        return r;
    if (blocks > INT32_MAX || batches > BLAS_BATCHES_MAX)
        return ws_blas_not_supported("a matrix of more than 2^39 elements, or more batches");
    if (vectors)
        blocks = WS_MIN(blocks, MOST);
    return ws_blas_status(cuLaunchKernel(f, (unsigned)blocks, 1, (unsigned)batches,
                                         vectors ? 256 : 32, vectors ? 1 : 8, 1, 0, h->stream, list,
                                         NULL));
}

int ws_blas_memory(struct ws_blas *h, int64_t bytes, uint64_t *ret)
{
    return ws_blas_status(cuMemAllocAsync(ret, (size_t)bytes, h->stream));
}

void ws_blas_free_later(struct ws_blas *h, uint64_t memory)
{
    if (memory)
        (void)cuMemFreeAsync(memory, h->stream);
}

int ws_blas_fetch(struct ws_blas *h, void *to, uint64_t from, size_t bytes)
{
    int code = cuMemcpyDtoHAsync_v2(to, from, bytes, h->stream);
    return ws_blas_status(code ? code : cuStreamSynchronize(h->stream));
}
