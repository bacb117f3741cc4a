// SPDX-License-Identifier: Apache-2.0
/* The functions of NVML that answer "not supported". Programs look all of them up by name and can
 * say "N/A" for each, but some end where a name is missing. */
#include "frontend/nvml/nvml.h"

/* The arguments are not looked at, so the function may be called with any. */
#define WS_NVML_STUB(name)                                                                         \
    WS_NVML_API int name(void);                                                                    \
    WS_NVML_API int name(void)                                                                     \
    {                                                                                              \
        return WS_NVML_NOT_SUPPORTED;                                                              \
    }
#include "frontend/nvml/not_supported.def"
