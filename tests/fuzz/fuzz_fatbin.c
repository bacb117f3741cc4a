// SPDX-License-Identifier: Apache-2.0
/* Fat binaries of any kind: no crash, no overrun, no more memory than the limit. */
#include <stdlib.h>

#include "ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 4 << 20 };

static int extract(const struct ws_fatbin_entry *e, void *arg)
{
    char *out = NULL;
    size_t len = 0;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_fatbin_extract(e, MAX_BYTES, &out, &len, &d);
    if (r < 0 || (r == 0) != (out != NULL) || len > MAX_BYTES || (r && !d.n) || (!r && out[len]))
        abort();
    for (size_t k = 0; k < e->options_len; k++)
        *(volatile unsigned *)arg += (unsigned char)e->options[k];
    free(out);
    ws_diags_deinit(&d);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    char *out = NULL;
    size_t len = 0;
    struct ws_diags d = WS_DIAGS_NULL;
    ws_image_kind(data, size);
    (void)!ws_fatbin_walk(data, size, extract, &sum, NULL);
    int r = ws_fatbin_ptx(data, size, 75, MAX_BYTES, &out, &len, &d);
    if (r < 0 || (r == 0) != (out != NULL) || (r && !d.n))
        abort();
    free(out);
    ws_diags_deinit(&d);
    return 0;
}
