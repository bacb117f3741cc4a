// SPDX-License-Identifier: Apache-2.0
/* How large textures and surfaces may be, by compute capability. Source: CUDA C++ Programming Guide, "Technical Specifications
 * per Compute Capability"; the order of attributes is that of cudaDeviceAttr. */
#include "frontend/array.h"

static const struct limit {
    int attribute, since_6, before;
} limits[] = {
    {21, 131072, 65536},      /* 1-D */
    {22, 131072, 65536},      /* 2-D width, height */
    {23, 65536, 65536},       /* */
    {24, 16384, 4096},        /* 3-D */
    {25, 16384, 4096},        /* */
    {26, 16384, 4096},        /* */
    {27, 32768, 16384},       /* 2-D layered: width, height, layers */
    {28, 32768, 16384},       /* */
    {29, 2048, 2048},         /* */
    {42, 32768, 16384},       /* 1-D layered: width, layers */
    {43, 2048, 2048},         /* */
    {44, 1, 1},               /* deprecated: 2-D gather is possible */
    {45, 32768, 16384},       /* 2-D gather: width, height */
    {46, 32768, 16384},       /* */
    {47, 8192, 2048},         /* 3-D, the other way: width, height, depth */
    {48, 8192, 2048},         /* */
    {49, 32768, 16384},       /* */
    {52, 32768, 16384},       /* cubemap */
    {53, 32768, 16384},       /* cubemap layered: width, layers */
    {54, 2046, 2046},         /* */
    {55, 32768, 16384},       /* surfaces: 1-D */
    {56, 131072, 65536},      /* 2-D */
    {57, 65536, 32768},       /* */
    {58, 16384, 4096},        /* 3-D */
    {59, 16384, 4096},        /* */
    {60, 16384, 4096},        /* */
    {61, 32768, 16384},       /* 1-D layered */
    {62, 2048, 2048},         /* */
    {63, 32768, 16384},       /* 2-D layered */
    {64, 32768, 16384},       /* */
    {65, 2048, 2048},         /* */
    {66, 32768, 16384},       /* cubemap */
    {67, 32768, 16384},       /* cubemap layered */
    {68, 2046, 2046},         /* */
    {69, 1 << 28, 1 << 27},   /* 1-D linear memory */
    {70, 131072, 65000},      /* 2-D pitched linear memory: width, height, pitch */
    {71, 65000, 65000},       /* */
    {72, 2097120, 1048544},   /* */
    {73, 32768, 16384},       /* 2-D mipmapped */
    {74, 32768, 16384},       /* */
    {77, 32768, 16384},       /* 1-D mipmapped */
};

bool ws_texture_limit(const Ws__Device *d, int attribute, int *ret)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(limits); i++) {
        if (limits[i].attribute != attribute)
            continue;
        *ret = d->cc_major >= 6 ? limits[i].since_6 : limits[i].before;
        return true;
    }
    return false;
}
