// SPDX-License-Identifier: Apache-2.0
/* roundtrip: parses each PTX file (or fat binary) given, prints it beside the outputs' prefix,
 * parses that again and compares. For tests/ptx/nvcc.sh; also handy by hand:
 * `tests/ptx/roundtrip out- a.ptx` leaves out-a.ptx. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ptx/ptx.h"

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    char *t = NULL;
    if (f && !fstat(fileno(f), &st) && (t = malloc(st.st_size + 1)))
        *ret_len = fread(t, 1, st.st_size, f);
    if (f)
        fclose(f);
    return t;
}

static int report(const char *what, const char *path, struct ws_diags *d)
{
    char *t = ws_diags_text(d);
    printf("%s: %s\n%s", path, what, t ? t : "");
    free(t);
    return 1;
}

static int one(const char *prefix, const char *path)
{
    struct ws_ptx_module *a = NULL, *b = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    char *out = NULL, name[4096];
    const char *base = strrchr(path, '/');
    size_t len = 0, out_len = 0;
    char *text = read_file(path, &len), *inner;
    int r = 0;
    if (!text)
        return report("cannot be read", path, &d);
    if (ws_image_kind(text, len) == WS_IMAGE_FATBIN) {
        size_t inner_len;
        if (ws_fatbin_ptx(text, len, 999, (size_t)1 << 30, &inner, &inner_len, &d)) {
            free(text);
            r = report("no PTX found", path, &d);
            ws_diags_deinit(&d);
            return r;
        }
        free(text);
        text = inner;
        len = inner_len;
    }
    uint64_t start = ws_clock_ns();
    if (ws_ptx_parse(&a, text, len, path, &d)) {
        r = report("does not parse", path, &d);
        goto out;
    }
    double ms = (double)(ws_clock_ns() - start) / WS_NS_PER_MS;
    FILE *f = open_memstream(&out, &out_len);
    if (!f || ws_ptx_print(a, f))
        r = report("cannot be printed", path, &d);
    if (f)
        fclose(f);
    snprintf(name, sizeof(name), "%s%s", prefix, base ? base + 1 : path);
    if (!r && (f = fopen(name, "wb"))) {
        fwrite(out, 1, out_len, f);
        fclose(f);
    }
    if (!r && ws_ptx_parse(&b, out, out_len, name, &d))
        r = report("what is printed of it does not parse", path, &d);
    if (!r && !ws_ptx_module_equal(a, b))
        r = report("what is printed of it is not the same", path, &d);
    if (!r)
        printf("%s: ok, %zu bytes in %.2f ms\n", path, len, ms);
out:
    ws_ptx_module_free(a);
    ws_ptx_module_free(b);
    ws_diags_deinit(&d);
    free(out);
    free(text);
    return r;
}

int main(int argc, char **argv)
{
    int r = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: %s PREFIX FILE…\n", argv[0]);
        return 2;
    }
    for (int k = 2; k < argc; k++)
        r |= one(argv[1], argv[k]);
    return r;
}
