// SPDX-License-Identifier: Apache-2.0
/* A program that uses cuBLAS as it is found on the machine. It multiplies matrices of small whole
 * numbers, which is exact, and fails if a product differs from the CPU's. `cublas find` only says
 * whether the libraries are there (status 77: they are not). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200, ROUNDS = 50 };
typedef unsigned long long device_ptr;

static void *find(const char *const *names)
{
    for (; *names; names++) {
        void *l = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
        if (l)
            return l;
    }
    return NULL;
}

static void call(int r, const char *what)
{
    if (r) {
        printf("FAIL cublas: %s gave %d\n", what, r);
        exit(1);
    }
}

#define F(lib, type, name) type name = (type)(dlsym)(lib, #name)
#define NEED(x)                                                                                    \
    if (!(x)) {                                                                                    \
        printf("FAIL cublas: no %s\n", #x);                                                        \
        return 1;                                                                                  \
    }

static float a[N * N], b[N * N], c[N * N];

static int compute(void *driver, void *blas)
{
    typedef int (*init_f)(unsigned);
    typedef int (*get_f)(int *, int);
    typedef int (*retain_f)(void **, int);
    typedef int (*current_f)(void *);
    typedef int (*alloc_f)(device_ptr *, size_t);
    typedef int (*to_f)(device_ptr, const void *, size_t);
    typedef int (*from_f)(void *, device_ptr, size_t);
    typedef int (*create_f)(void **);
    typedef int (*destroy_f)(void *);
    typedef int (*sgemm_f)(void *, int, int, int, int, int, const float *, const float *, int,
                           const float *, int, const float *, float *, int);
    F(driver, init_f, cuInit);
    F(driver, get_f, cuDeviceGet);
    F(driver, retain_f, cuDevicePrimaryCtxRetain);
    F(driver, current_f, cuCtxSetCurrent);
    F(driver, alloc_f, cuMemAlloc_v2);
    F(driver, to_f, cuMemcpyHtoD_v2);
    F(driver, from_f, cuMemcpyDtoH_v2);
    F(blas, create_f, cublasCreate_v2);
    F(blas, destroy_f, cublasDestroy_v2);
    F(blas, sgemm_f, cublasSgemm_v2);
    NEED(cuInit && cuDeviceGet && cuDevicePrimaryCtxRetain && cuCtxSetCurrent);
    NEED(cuMemAlloc_v2 && cuMemcpyHtoD_v2 && cuMemcpyDtoH_v2);
    NEED(cublasCreate_v2 && cublasDestroy_v2 && cublasSgemm_v2);
    device_ptr d[3];
    void *ctx, *handle;
    int device;
    float one = 1, zero = 0;
    call(cuInit(0), "cuInit");
    call(cuDeviceGet(&device, 0), "cuDeviceGet");
    call(cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
    call(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
    for (int k = 0; k < 3; k++)
        call(cuMemAlloc_v2(&d[k], sizeof(a)), "cuMemAlloc");
    call(cuMemcpyHtoD_v2(d[0], a, sizeof(a)), "cuMemcpyHtoD");
    call(cuMemcpyHtoD_v2(d[1], b, sizeof(b)), "cuMemcpyHtoD");
    call(cublasCreate_v2(&handle), "cublasCreate");
    for (int r = 0; r < ROUNDS; r++)
        call(cublasSgemm_v2(handle, 0, 0, N, N, N, &one, (const float *)d[0], N,
                            (const float *)d[1], N, &zero, (float *)d[2], N),
             "cublasSgemm");
    call(cuMemcpyDtoH_v2(c, d[2], sizeof(c)), "cuMemcpyDtoH");
    call(cublasDestroy_v2(handle), "cublasDestroy");
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    static const char *const blases[] = {"libcublas.so.13", "libcublas.so.12",
                                         "/usr/local/cuda/lib64/libcublas.so.13",
                                         "/usr/local/cuda/lib64/libcublas.so.12", NULL};
    void *driver = argc > 1 ? NULL : find(drivers), *blas = find(blases);
    if (!blas) {
        printf("no libcublas.so.13 or .12 here\n");
        return 77;
    }
    if (argc > 1 && !strcmp(argv[1], "find"))
        return 0;
    if (!driver) {
        printf("FAIL cublas: %s\n", dlerror());
        return 1;
    }
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i * 7 % 11 - 5);
        b[i] = (float)(i * 5 % 13 - 6);
    }
    if (compute(driver, blas))
        return 1;
    for (int col = 0; col < N; col++) /* columns lie one after another */
        for (int row = 0; row < N; row++) {
            float want = 0;
            for (int k = 0; k < N; k++)
                want += a[row + k * N] * b[k + col * N];
            if (c[row + col * N] != want) {
                printf("FAIL cublas: element %d,%d is %g, not %g\n", row, col, c[row + col * N],
                       want);
                return 1;
            }
        }
    printf("PASS cublas\n");
    return 0;
}
