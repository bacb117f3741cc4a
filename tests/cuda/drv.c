// SPDX-License-Identifier: Apache-2.0
// What the C clients share: errors, the device, modules and launches of the driver API.
#include "drv.h"

struct drv drv;
static CUdevice device;

void drv_check(CUresult r, const char *call, const char *file, int line)
{
    const char *name = NULL;
    if (!r)
        return;
    if (drv.get_error_name)
        drv.get_error_name(r, &name);
    printf("FAIL %s:%d: %s gave %d %s\n", file, line, call, r, name ? name : "");
    exit(1);
}

void drv_begin(void)
{
    int n = 0, warp = 0, sms = 0;
    char name[64] = "";
    CUcontext ctx;
    drv_load();
    DRV(init(0));
    DRV(device_get_count(&n));
    DRV(device_get(&device, 0));
    DRV(device_get_name(name, sizeof(name), device));
    DRV(device_get_attribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    DRV(device_get_attribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    if (n < 1 || !name[0] || warp != 32 || sms < 1)
        exit(work_fail("driver", "%d devices, the first '%s' with warps of %d and %d SMs", n, name,
                       warp, sms));
    DRV(ctx_retain(&ctx, device));
    DRV(ctx_set_current(ctx));
}

void drv_end(void)
{
    DRV(ctx_release(device));
}

char *drv_ptx_text(const char *name)
{
    const char *dir = getenv("WATTSHARE_TEST_PTX");
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.ptx", dir ? dir : PTX_DIR, name);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = work_alloc((size_t)n + 1);
    if (fread(text, 1, (size_t)n, f) != (size_t)n) {
        perror(path);
        exit(2);
    }
    text[n] = 0;
    fclose(f);
    return text;
}

CUmodule drv_module(const char *name)
{
    CUmodule m;
    char log[4096] = "", *text = drv_ptx_text(name);
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof(log)};
    CUresult r = drv.module_load_data_ex(&m, text, 2, options, values);
    if (r)
        printf("%s.ptx: %s\n", name, log);
    drv_check(r, "cuModuleLoadDataEx", __FILE__, __LINE__);
    free(text);
    return m;
}

CUfunction drv_function(CUmodule m, const char *name)
{
    CUfunction f;
    DRV(module_get_function(&f, m, name));
    return f;
}
