// SPDX-License-Identifier: Apache-2.0
/* Text of any kind as wattshared.conf: no crash, and a refusal says why. Files that the text names
 * are not read. What holds a byte 0 is no text, and is refused before it is parsed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/process/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ws_config c;
    struct ws_diags d = WS_DIAGS_NULL;
    char path[64];
    if (memchr(data, 0, size))
        return 0;
    int fd = memfd_create("conf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || ws_config_init(&c))
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int r = ws_config_load(&c, path, &d);
    if (r < 0 || (r && !d.n))
        abort();
    if (!r && !c.curve_key && !c.curve_clients)
        r = ws_config_finish(&c, &d);
    if (r < 0 || (r && !d.n))
        abort();
    ws_config_deinit(&c);
    ws_diags_deinit(&d);
    close(fd);
    return 0;
}
