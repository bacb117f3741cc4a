// SPDX-License-Identifier: Apache-2.0
// The program of aes.cu with the driver API: the same kernel from ptx/aes.ptx.
#include "aes.h"
#include "drv.h"

static int fips(CUfunction ecb, CUdeviceptr tables, CUdeviceptr d)
{
    struct aes_tables t;
    uint8_t key[16], plain[16], out[16];
    int one = 1;
    aes_fips_input(key, plain);
    aes_make_tables(&t, key);
    DRV(memcpy_htod(tables, &t, sizeof(t)));
    DRV(memcpy_htod(d, plain, 16));
    drv_launch(ecb, 1, 32, 0, NULL, &d, &d, &one);
    DRV(memcpy_dtoh(out, d, 16));
    return memcmp(out, aes_fips_cipher, 16) ? work_fail(WORK, "the kernel fails FIPS 197 C.1") : 0;
}

int main(int argc, char **argv)
{
    long bytes = work_arg(argc, argv, 1, AES_SIZE_KIB, AES_MAX_KIB) * 1024;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    int blocks = (int)(bytes / 16);
    uint8_t *plain = work_alloc((size_t)bytes), *want = work_alloc((size_t)bytes),
            *out = work_alloc((size_t)bytes), key[16];
    uint64_t nonce = 0x0123456789abcdef;
    struct aes_tables t;
    CUdeviceptr d, tables;
    size_t table_bytes;
    if (aes_cpu_self_test())
        return 1;
    aes_fill(plain, bytes, key);
    aes_make_tables(&t, key);
    aes_cpu_ctr(&t, nonce, plain, want, blocks);
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction ecb = drv_function(m, "aes_ecb"), ctr = drv_function(m, "aes_ctr");
    DRV(module_get_global(&tables, &table_bytes, m, "aes_t"));
    if (table_bytes != sizeof(t))
        return work_fail(WORK, "aes_t has %zu bytes, not %zu", table_bytes, sizeof(t));
    DRV(mem_alloc(&d, (size_t)bytes));
    for (long it = 0; it < iterations; it++) {
        if (fips(ecb, tables, d))
            return 1;
        DRV(memcpy_htod(tables, &t, sizeof(t)));
        DRV(memcpy_htod(d, plain, (size_t)bytes));
        drv_launch(ctr, (unsigned)(blocks + AES_BLOCK - 1) / AES_BLOCK, AES_BLOCK, 0, NULL, &d, &d,
                   &nonce, &blocks);
        DRV(memcpy_dtoh(out, d, (size_t)bytes));
        if (aes_check(out, want, bytes))
            return 1;
    }
    DRV(mem_free(d));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
