// SPDX-License-Identifier: Apache-2.0
/* Containers of images to link: the input as it is, and its pieces between lines "----" as texts of
 * one. No crash; a refusal says why; what links prints to a module that parses to the same, unless
 * variables point at each other across parts. */
#include <stdlib.h>
#include <string.h>

#include "base/link_image.h"
#include "ptx/ptx.h"

enum { PARTS = 4 };
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool points_ahead(const struct ws_ptx_module *m)
{
    for (uint32_t k = 0; k < m->n_vars; k++)
        for (uint32_t j = 0; j < m->vars[k].n_init_syms; j++) {
            int32_t s = m->vars[k].init_syms[j].sym;
            if (WS_PTX_SYM_KIND(s) == WS_PTX_SYM_VAR && WS_PTX_SYM_INDEX(s) > (int32_t)k)
                return true;
        }
    return false;
}

static void check_printed(const struct ws_ptx_module *m)
{
    struct ws_ptx_module *again = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);
    if (!f || ws_ptx_print(m, f))
        abort();
    fclose(f);
    if (!points_ahead(m) &&
        (ws_ptx_parse(&again, out, len, "printed", &d) || !ws_ptx_module_equal(m, again))) {
        char *t = ws_diags_text(&d);
        fprintf(stderr, "%s%s", t, out);
        abort();
    }
    free(out);
    ws_ptx_module_free(again);
    ws_diags_deinit(&d);
}

static void try_image(const void *image, size_t size)
{
    struct ws_ptx_texts t;
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_ptx_image_texts(&t, image, size, 75, NULL, 1 << 20, "fuzz", &d);
    if (!r) {
        r = ws_ptx_image_parse(&m, &t, &d);
        ws_ptx_texts_deinit(&t);
    }
    if (r < 0 || (r > 0 && !d.n))
        abort();
    if (!r)
        check_printed(m);
    ws_ptx_module_free(m);
    ws_diags_deinit(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_image(data, size);
    if (!size || size > 1 << 20)
        return 0;
    struct ws_link_image h = {.magic = WS_LINK_IMAGE_MAGIC,
                              .version = WS_LINK_IMAGE_VERSION,
                              .flags = data[0] & 1 ? WS_LINK_IMAGE_STRICT : 0};
    struct ws_link_part p[PARTS];
    size_t at = 0;
    while (h.n_parts < PARTS && at < size) {
        const uint8_t *cut = memmem(data + at, size - at, "----", 4);
        size_t n = cut && h.n_parts + 1 < PARTS ? (size_t)(cut - data) - at : size - at;
        p[h.n_parts++] = (struct ws_link_part){at, n, 0};
        at += n + 4;
    }
    size_t head = sizeof(h) + h.n_parts * sizeof(*p), total = head + 1 + size;
    uint8_t *image = calloc(1, total);
    if (!image)
        return 0;
    h.bytes = total;
    for (uint32_t k = 0; k < h.n_parts; k++) {
        p[k].offset += head + 1;
        p[k].name = head;
    }
    memcpy(image, &h, sizeof(h));
    memcpy(image + sizeof(h), p, h.n_parts * sizeof(*p));
    memcpy(image + head + 1, data, size);
    try_image(image, total);
    free(image);
    return 0;
}
