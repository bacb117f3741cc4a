// SPDX-License-Identifier: Apache-2.0
/* NVRTC. The program compiles with NVIDIA's own libnvrtc, which needs no GPU, and usually asks it
 * for machine code. The devices here execute PTX, which the compiler has too: so the question for
 * the machine code is answered with the PTX. */
#include "frontend/compilers/compilers.h"
#include "frontend/facade.h"

enum { NVRTC_ERROR_INTERNAL_ERROR = 11 };

WS_NVRTC_API(nvrtcGetCUBINSize, (void *program, size_t *bytes))
{
    int (*get)(void *, size_t *);
    *(void **)&get = ws_compiler_function("nvrtcGetPTXSize");
    return get ? get(program, bytes) : NVRTC_ERROR_INTERNAL_ERROR;
}

WS_NVRTC_API(nvrtcGetCUBIN, (void *program, char *image))
{
    int (*get)(void *, char *);
    *(void **)&get = ws_compiler_function("nvrtcGetPTX");
    return get ? get(program, image) : NVRTC_ERROR_INTERNAL_ERROR;
}
