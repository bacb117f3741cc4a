// SPDX-License-Identifier: Apache-2.0
/* Chapter "Coredump Attributes Control". A fault on a software device makes no dump: the error's
 * text describes it. So the settings read as CUDA's defaults for "no dump", and can be set to just
 * those. */
#include <string.h>

#include "frontend/facade.h"

enum { /* CUcoredumpSettings */
       ENABLE_ON_EXCEPTION = 1,
       TRIGGER_HOST,
       LIGHTWEIGHT,
       ENABLE_USER_TRIGGER,
       FILE_NAME,
       PIPE_NAME,
       GENERATION_FLAGS
};

/* Bytes of a setting's value, or 0: no such setting. */
static size_t bytes_of(int setting)
{
    switch (setting) {
    case ENABLE_ON_EXCEPTION:
    case TRIGGER_HOST:
    case LIGHTWEIGHT:
    case ENABLE_USER_TRIGGER:
        return sizeof(bool);
    case FILE_NAME:
    case PIPE_NAME:
        return 1; /* an empty text */
    case GENERATION_FLAGS:
        return sizeof(int);
    default:
        return 0;
    }
}

static int get(int setting, void *value, size_t *bytes)
{
    size_t n = bytes_of(setting);
    if (!n || !bytes)
        return CUDA_INVALID_VALUE;
    if (value) { /* else the size is asked for */
        if (*bytes < n)
            return CUDA_INVALID_VALUE;
        memset(value, 0, n);
    }
    *bytes = n;
    return CUDA_OK;
}

static int set(int setting, const void *value, const size_t *bytes)
{
    size_t n = bytes_of(setting);
    if (!n || !value || !bytes)
        return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < *bytes; i++)
        if (((const char *)value)[i]) {
            ws_session_unsupported("core dumps");
            return CUDA_NOT_SUPPORTED;
        }
    return CUDA_OK;
}

WS_DRV_API(cuCoredumpGetAttribute, (int setting, void *value, size_t *bytes))
{
    WS_DRV_ENTER(c);
    return get(setting, value, bytes);
}

WS_DRV_API(cuCoredumpGetAttributeGlobal, (int setting, void *value, size_t *bytes))
{
    int code = ws_drv_check_init();
    return code ? code : get(setting, value, bytes);
}

WS_DRV_API(cuCoredumpSetAttribute, (int setting, void *value, size_t *bytes))
{
    WS_DRV_ENTER(c);
    return set(setting, value, bytes);
}

WS_DRV_API(cuCoredumpSetAttributeGlobal, (int setting, void *value, size_t *bytes))
{
    int code = ws_drv_check_init();
    return code ? code : set(setting, value, bytes);
}
