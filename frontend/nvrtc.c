// SPDX-License-Identifier: Apache-2.0
/* NVRTC: the program compiles with NVIDIA's own libnvrtc, which needs no GPU, and most ask it for machine code. The devices here
 * execute PTX, and the compiler has that as well: so the question for the machine code is answered with the PTX. */
#include <dlfcn.h>

#include "frontend/facade.h"

enum { NVRTC_ERROR_INTERNAL_ERROR = 11 };

/* The compiler's function of that name. It is called only by programs that have the compiler loaded. */
static void *real(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);
    if (!fn)
        ws_session_unsupported(name);
    return fn;
}

WS_NVRTC_API(nvrtcGetCUBINSize, (void *program, size_t *bytes))
{
    int (*get)(void *, size_t *);
    *(void **)&get = real("nvrtcGetPTXSize");
    return get ? get(program, bytes) : NVRTC_ERROR_INTERNAL_ERROR;
}

WS_NVRTC_API(nvrtcGetCUBIN, (void *program, char *image))
{
    int (*get)(void *, char *);
    *(void **)&get = real("nvrtcGetPTX");
    return get ? get(program, image) : NVRTC_ERROR_INTERNAL_ERROR;
}
