// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/common/text.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

const char *ws_cli_bytes_text(uint64_t bytes, char buf[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t u = 0;
    for (; v >= 1024 && u + 1 < WS_ARRAY_SIZE(units); u++)
        v /= 1024;
    snprintf(buf, 24, u ? "%.1f %s" : "%.0f %s", v, units[u]);
    return buf;
}

const char *ws_cli_clean(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        buf[n++] = (unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f ? '?' : *text;
    buf[n] = 0;
    return buf;
}

const char *ws_cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
