// SPDX-License-Identifier: Apache-2.0
/* ELF files, fatbins, cubins and PTX of any kind, as `wattshare coverage` reads them: no crash, no
 * overrun. */
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ws_cover c = {.program = "fuzz"};
    struct ws_cover_code *code = ws_cover_code_new();
    struct ws_cover_libs libs = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    struct ws_elf e;
    char *missing = NULL;
    void *copy = NULL;
    if (!code || posix_memalign(&copy, 4096, size ? size : 1))
        abort();
    memcpy(copy, data, size);
    int r = ws_elf_init(&e, copy, size) ? ws_cover_image(&c, code, "fuzz", copy, size, 75, &d)
                                        : ws_cover_elf(&c, "fuzz", &e, code, 75, &d);
    if (!ws_elf_init(&e, copy, size))
        (void)!ws_cover_needed(&libs, "/proc/self/exe", &e, &missing);
    if (!r)
        ws_cover_code_end(&c, code);
    if (r < 0 || (r && !d.n))
        abort();
    ws_cover_sort(&c);
    ws_cover_code_free(code);
    ws_cover_libs_deinit(&libs);
    ws_cover_deinit(&c);
    ws_diags_deinit(&d);
    free(missing);
    free(copy);
    return 0;
}
