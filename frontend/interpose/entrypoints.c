// SPDX-License-Identifier: Apache-2.0
/* The table of entry points as data, and the functions of those that are not done. Both come from
 * entrypoints.def: a row that says DONE without a function, or NONE beside one, does not link. The
 * table needs no initialisation, because the redirect reads it from a constructor that runs before
 * all others. */
#include "frontend/interpose/entrypoints.h"

#include <string.h>

#include "base/macros.h"
#include "frontend/errors.h"
#include "frontend/facade.h"

/* A function that looks at no argument can be called with any: the caller owns all of the stack
 * (System V ABI). */
#define UNSUPPORTED(name, answer)                                                                  \
    WS_EXPORT int name(void);                                                                      \
    int name(void)                                                                                 \
    {                                                                                              \
        return answer(#name);                                                                      \
    }

static int drv_unsupported(const char *name)
{
    ws_session_unsupported(name);
    return CUDA_NOT_SUPPORTED;
}
static int rt_unsupported(const char *name)
{
    return ws_rt_record(drv_unsupported(name));
}

#define RT_DONE(name)                                        WS_EXPORT void name(void);
#define RT_NONE(name)                                        UNSUPPORTED(name, rt_unsupported)
#define DRV_DONE(name)                                       WS_EXPORT void name(void);
#define DRV_NONE(name)                                       UNSUPPORTED(name, drv_unsupported)
#define NVRTC_DONE(name)                                     WS_EXPORT void name(void);
#define WS_RT(name, chapter, state)                          RT_##state(name)
#define WS_DRV(name, chapter, state, asked, version, stream) DRV_##state(name)
#define WS_NVRTC(name, chapter, state)                       NVRTC_##state(name)
#include "frontend/interpose/entrypoints.def"
#undef WS_RT
#undef WS_DRV
#undef WS_NVRTC

static const struct ws_entrypoint table[] = {
#define WS_RT(name, chapter, state)                          {#name, (void *)name},
#define WS_DRV(name, chapter, state, asked, version, stream) {#name, (void *)name},
#define WS_NVRTC(name, chapter, state)                       {#name, (void *)name},
#include "frontend/interpose/entrypoints.def"
#undef WS_RT
#undef WS_DRV
#undef WS_NVRTC
};

static const struct ws_driver_version versions[] = {
#define WS_RT(name, chapter, state)
#define WS_DRV(name, chapter, state, asked, version, stream)                                       \
    {#asked, (void *)name, version, stream},
#define WS_NVRTC(name, chapter, state)
#include "frontend/interpose/entrypoints.def"
#undef WS_RT
#undef WS_DRV
#undef WS_NVRTC
};

const struct ws_entrypoint *ws_entrypoints(size_t *ret_n)
{
    *ret_n = WS_ARRAY_SIZE(table);
    return table;
}

void *ws_entrypoint_find(const char *name)
{
    for (size_t lo = 0, hi = WS_ARRAY_SIZE(table); lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(table[mid].name, name);
        if (!c)
            return table[mid].fn;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Rows of one name stand together, but for those of names that it is a prefix of: the scan is over
 * all, a program asks a few hundred times at most. */
void *ws_entrypoint_driver(const char *name, int version, bool per_thread, bool *ret_known)
{
    const struct ws_driver_version *best = NULL;
    *ret_known = false;
    for (size_t i = 0; i < WS_ARRAY_SIZE(versions); i++) {
        const struct ws_driver_version *v = &versions[i];
        if (strcmp(v->name, name))
            continue;
        *ret_known = true;
        if (!v->version || v->version > version || (v->per_thread && !per_thread))
            continue;
        if (!best || v->per_thread > best->per_thread ||
            (v->per_thread == best->per_thread && v->version > best->version))
            best = v;
    }
    return best ? best->fn : NULL;
}
