// SPDX-License-Identifier: Apache-2.0
/* ptx: fat binaries, made here to the layout in ptx/images/fatbin.c and as nvcc made them
 * (tests/corpus/fatbin). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <glob.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/ptx.h"

struct fixture {
    uint8_t *image;
    size_t len, cap;
    char *out;
    size_t out_len;
    struct ws_diags diags;
    glob_t glob;
};

enum { LZ4_FLAG = 0x2000, ZSTD_FLAG = 0x8000, LIMIT = 1 << 20 };

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_alloc_fail_after(0);
    free(x->image);
    free(x->out);
    ws_diags_deinit(&x->diags);
    globfree(&x->glob);
    free(x);
    return 0;
}

static void put(struct fixture *x, size_t at, uint64_t v, unsigned bytes)
{
    memcpy(x->image + at, &v, bytes);
}

static void start(struct fixture *x)
{
    free(x->image);
    x->cap = 1 << 16;
    x->image = calloc(1, x->cap);
    assert_non_null(x->image);
    put(x, 0, 0xba55ed50, 4);
    put(x, 4, 1, 2);
    put(x, 6, 16, 2);
    x->len = 16;
}

/* Returns the entry's offset. */
static size_t add(struct fixture *x, unsigned kind, unsigned sm, uint64_t flags, const char *text)
{
    size_t at = x->len, n = strlen(text) + 1, bytes = n;
    char *payload = (char *)x->image + at + 80;
    size_t room = x->cap - at - 80;
    assert_true(room > n + 100);
    if (flags & ZSTD_FLAG)
        bytes = ZSTD_compress(payload, room, text, n, 3);
    else if (flags & LZ4_FLAG)
        bytes = (size_t)LZ4_compress_default(text, payload, (int)n, (int)room);
    else
        memcpy(payload, text, n);
    size_t padded = (bytes + 7) / 8 * 8;
    bool packed = flags & (ZSTD_FLAG | LZ4_FLAG);
    put(x, at, kind, 2);
    put(x, at + 2, 0x101, 2);
    put(x, at + 4, 80, 4);
    put(x, at + 8, padded, 8);
    put(x, at + 16, packed ? bytes : 0, 4);
    put(x, at + 28, sm, 4);
    put(x, at + 40, flags, 8);
    put(x, at + 56, packed ? n : 0, 8);
    x->len = at + 80 + padded;
    put(x, 8, x->len - 16, 8);
    return at;
}

static int ptx(struct fixture *x, uint32_t sm)
{
    free(x->out);
    x->out = NULL;
    ws_diags_deinit(&x->diags);
    return ws_fatbin_ptx(x->image, x->len, sm, LIMIT, &x->out, &x->out_len, &x->diags);
}

static const char text[] =
    "\n.version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

static void test_plain_lz4_zstd(void **state)
{
    static const uint64_t flags[] = {0x11, 0x11 | LZ4_FLAG, 0x11 | ZSTD_FLAG};
    struct fixture *x = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(flags); k++) {
        start(x);
        add(x, WS_FATBIN_PTX, 75, flags[k], text);
        assert_int_equal(ptx(x, 75), 0);
        assert_int_equal(x->out_len, strlen(text));
        assert_string_equal(x->out, text);
        assert_int_equal(ws_image_kind(x->out, x->out_len), WS_IMAGE_PTX);
        assert_int_equal(ws_image_kind(x->image, x->len), WS_IMAGE_FATBIN);
    }
}

static void test_which_ptx_is_chosen(void **state)
{
    struct fixture *x = *state;
    static const struct {
        uint32_t device;
        const char *want;
    } rows[] = {{75, "70"}, {80, "80"}, {89, "80"}, {90, "90"}, {120, "90"}, {60, "70"}};
    start(x);
    add(x, WS_FATBIN_ELF, 75, 1, "machine code");
    add(x, WS_FATBIN_PTX, 90, 1 | 0x100000, "90a");
    add(x, WS_FATBIN_PTX, 80, 1, "80");
    add(x, WS_FATBIN_PTX, 90, 1, "90");
    add(x, WS_FATBIN_PTX, 70, 1 | ZSTD_FLAG, "70");
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        assert_int_equal(ptx(x, rows[k].device), 0);
        assert_string_equal(x->out, rows[k].want);
    }
}

static void test_without_ptx_it_says_what_is_there(void **state)
{
    struct fixture *x = *state;
    start(x);
    add(x, WS_FATBIN_ELF, 86, 1, "x");
    add(x, WS_FATBIN_LTO, 90, 1, "x");
    assert_int_equal(ptx(x, 75), WS_PTX_E_NOTFOUND);
    assert_non_null(strstr(x->diags.v[0].text, "machine code sm_86, LTO code sm_90"));
    start(x);
    assert_int_equal(ptx(x, 75), WS_PTX_E_NOTFOUND); /* nvcc makes such empty ones */
}

/* What a GPU gets that takes machine code, and one that does not. */
static void test_machine_code_where_no_ptx_compiles(void **state)
{
    struct fixture *x = *state;
    static const struct {
        uint32_t device;
        bool takes;
        const char *want; /* NULL: nothing */
    } rows[] = {
        {75, true, "m75"},                                      /* no PTX that compiles for it */
        {80, true, "80"},                                       /* PTX before machine code */
        {86, true, "80"},  {86, false, "80"}, {70, true, "80"}, /* as before: nothing else */
        {75, false, "80"},
    };
    start(x);
    add(x, WS_FATBIN_ELF, 75, 1, "m75");
    add(x, WS_FATBIN_ELF, 80, 1, "m80");
    add(x, WS_FATBIN_PTX, 80, 1, "80");
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        bool machine = false;
        free(x->out);
        x->out = NULL;
        assert_int_equal(ws_fatbin_code(x->image, x->len, rows[k].device,
                                        rows[k].takes ? NULL : "it does not", LIMIT, &x->out,
                                        &x->out_len, &machine, &x->diags),
                         0);
        assert_int_equal(machine, rows[k].want[0] == 'm');
        assert_memory_equal(x->out, rows[k].want, strlen(rows[k].want));
    }
}

static void test_which_machine_code_is_chosen(void **state)
{
    struct fixture *x = *state;
    static const struct {
        uint32_t device;
        const char *want; /* NULL: nothing */
    } rows[] = {{80, "m80"},  {86, "m86"}, {89, "m86"}, {87, "m86"},
                {90, "m90a"}, {75, NULL},  {100, NULL}, {93, NULL}};
    start(x);
    add(x, WS_FATBIN_ELF, 86, 1 | ZSTD_FLAG, "m86");
    add(x, WS_FATBIN_ELF, 80, 1, "m80");
    add(x, WS_FATBIN_ELF, 90, 1 | 0x100000, "m90a"); /* for sm_90 alone */
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        bool machine = false;
        free(x->out);
        x->out = NULL;
        ws_diags_deinit(&x->diags);
        int r = ws_fatbin_code(x->image, x->len, rows[k].device, NULL, LIMIT, &x->out, &x->out_len,
                               &machine, &x->diags);
        assert_int_equal(r, rows[k].want ? 0 : WS_PTX_E_NOTFOUND);
        if (!r)
            assert_memory_equal(x->out, rows[k].want, strlen(rows[k].want));
        assert_int_equal(machine, !r);
        if (r)
            assert_non_null(strstr(x->diags.v[0].text, "build with -gencode"));
        ws_diags_deinit(&x->diags);
        assert_int_equal(ws_fatbin_code(x->image, x->len, rows[k].device, "it does not", LIMIT,
                                        &x->out, &x->out_len, &machine, &x->diags),
                         WS_PTX_E_NOTFOUND);
        assert_non_null(strstr(x->diags.v[0].text, rows[k].want ? "it does not" : "build with"));
    }
}

static int stop_at_second(const struct ws_fatbin_entry *e, void *arg)
{
    return ++*(int *)arg == 2 ? 77 : 0;
}

static void test_walk_gives_entries_and_options(void **state)
{
    struct fixture *x = *state;
    int n = 0;
    start(x);
    size_t at = add(x, WS_FATBIN_PTX, 75, 1, text);
    put(x, at + 20, 64, 4);
    put(x, at + 64, 72, 4);
    put(x, at + 68, 5, 4);
    memcpy(x->image + at + 72, "-O3 x", 5);
    add(x, WS_FATBIN_ELF, 75, 1, "a");
    add(x, WS_FATBIN_ELF, 75, 1, "b");
    assert_int_equal(ws_fatbin_walk(x->image, x->len, stop_at_second, &n, NULL), 77);
    assert_int_equal(n, 2);
    put(x, at + 68, 9, 4); /* one more than the header holds */
    assert_int_equal(ptx(x, 75), WS_PTX_E_FORMAT);
}

static void test_fields_that_lie(void **state)
{
    static const struct {
        size_t at;
        unsigned bytes;
        uint64_t v;
        int want;
    } rows[] = {
        {0, 4, 0xba55ed51, WS_PTX_E_FORMAT},
        {4, 2, 2, WS_PTX_E_FORMAT},
        {6, 2, 15, WS_PTX_E_FORMAT},
        {6, 2, 0xffff, WS_PTX_E_FORMAT},
        {8, 8, UINT64_MAX, WS_PTX_E_FORMAT},
        {8, 8, UINT64_MAX - 8, WS_PTX_E_FORMAT},
        {8, 8, 63, WS_PTX_E_FORMAT},
        {16 + 4, 4, 63, WS_PTX_E_FORMAT},
        {16 + 4, 4, UINT32_MAX, WS_PTX_E_FORMAT},
        {16 + 8, 8, UINT64_MAX, WS_PTX_E_FORMAT},
        {16 + 8, 8, UINT64_MAX - 80, WS_PTX_E_FORMAT},
        {16 + 16, 4, UINT32_MAX, WS_PTX_E_FORMAT},
        {16 + 16, 4, 1, WS_PTX_E_FORMAT},
        {16 + 20, 4, 73, WS_PTX_E_FORMAT},
        {16 + 20, 4, UINT32_MAX, WS_PTX_E_FORMAT},
        {16 + 40, 8, 0x1001, WS_PTX_E_UNSUPPORTED},
        {16 + 40, 8, 0x12011, WS_PTX_E_UNSUPPORTED},
        {16 + 56, 8, UINT64_MAX, WS_PTX_E_FORMAT},
        {16 + 56, 8, LIMIT + 1, WS_PTX_E_FORMAT},
        {16 + 56, 8, 5, WS_PTX_E_FORMAT},
        {16 + 56, 8, 0, WS_PTX_E_FORMAT},
        {16 + 56, 8, sizeof(text) + 1, WS_PTX_E_FORMAT},
        {16 + 0, 2, 9, WS_PTX_E_NOTFOUND},
    };
    struct fixture *x = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++)
        for (int z = 0; z < 2; z++) {
            start(x);
            add(x, WS_FATBIN_PTX, 75, 0x11 | (z ? ZSTD_FLAG : LZ4_FLAG), text);
            put(x, rows[k].at, rows[k].v, rows[k].bytes);
            int r = ptx(x, 75);
            if (r != rows[k].want)
                print_error("byte %zu = %llx: %d\n", rows[k].at, (unsigned long long)rows[k].v, r);
            assert_int_equal(r, rows[k].want);
            assert_true(x->diags.n > 0);
            assert_null(x->out);
        }
}

static void test_a_stored_payload_ends_where_the_entries_do(void **state)
{
    struct fixture *x = *state;
    start(x);
    size_t at = add(x, WS_FATBIN_PTX, 75, 0x11, text);
    uint8_t *exact = malloc(x->len); /* so that the sanitizer sees a byte too many */
    assert_non_null(exact);
    memcpy(exact, x->image, x->len);
    free(x->image);
    x->image = exact;
    assert_int_equal(ptx(x, 75), 0);
    put(x, at + 8, x->len - at - 80 + 1, 8);
    assert_int_equal(ptx(x, 75), WS_PTX_E_FORMAT);
}

/* Images that came from nvcc; each must give a kernel, in every compression. */
static void test_nvcc_images(void **state)
{
    struct fixture *x = *state;
    const char *srcdir = getenv("srcdir");
    char pattern[4096];
    snprintf(pattern, sizeof(pattern), "%s/tests/corpus/fatbin/nvcc-*.fatbin",
             srcdir ? srcdir : ".");
    assert_int_equal(glob(pattern, 0, NULL, &x->glob), 0);
    assert_true(x->glob.gl_pathc >= 4);
    for (size_t k = 0; k < x->glob.gl_pathc; k++) {
        struct ws_ptx_module *m = NULL;
        start(x);
        FILE *f = fopen(x->glob.gl_pathv[k], "rb");
        assert_non_null(f);
        x->len = fread(x->image, 1, x->cap, f);
        fclose(f);
        assert_int_equal(ptx(x, 90), 0);
        assert_int_equal(ws_ptx_parse(&m, x->out, x->out_len, NULL, NULL), 0);
        bool has = ws_ptx_find_func(m, "scale") != NULL;
        ws_ptx_module_free(m);
        assert_true(has);

        /* Cut at every byte: an outcome, never a crash; the heap copy lets the sanitizer see the
         * slightest overrun. */
        uint8_t *whole = x->image;
        size_t len = x->len;
        for (size_t cut = 0; cut < len; cut++) {
            x->image = malloc(cut ? cut : 1);
            if (x->image)
                memcpy(x->image, whole, cut);
            x->len = cut;
            int r = x->image ? ptx(x, 90) : -1;
            free(x->image);
            x->image = whole;
            assert_int_equal(r, WS_PTX_E_FORMAT);
        }
        x->len = len;
        /* Flip each byte of the headers, and some of the payload. */
        for (size_t at = 0; at < len; at += at < 512 ? 1 : 37)
            for (int bit = 0; bit < 8; bit++) {
                x->image[at] ^= 1 << bit;
                int r = ptx(x, 90);
                assert_true(r >= 0 && r <= WS_PTX_E_NOTFOUND);
                x->image[at] ^= 1 << bit;
            }
    }
}

static void test_image_kinds(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum ws_image_kind want;
    } rows[] = {
        {".version 8.0", 12, WS_IMAGE_PTX},
        {"\n\n  // c\n/* .version */ .version", 32, WS_IMAGE_PTX},
        {"//", 2, WS_IMAGE_UNKNOWN},
        {"/*", 2, WS_IMAGE_UNKNOWN},
        {"/* .version", 11, WS_IMAGE_UNKNOWN},
        {".versio", 7, WS_IMAGE_UNKNOWN},
        {"", 0, WS_IMAGE_UNKNOWN},
        {"\x7f"
         "ELF\2\1\1\x41\0\0\0\0\0\0\0\0\2\0\xbe\0",
         20, WS_IMAGE_CUBIN},
        {"\x7f"
         "ELF\2\1\1\x41\0\0\0\0\0\0\0\0\2\0\x3e\0",
         20, WS_IMAGE_UNKNOWN},
        {"\x7f"
         "ELF",
         4, WS_IMAGE_UNKNOWN},
        {"\x50\xed\x55\xba", 4, WS_IMAGE_FATBIN},
        {"\x50\xed\x55", 3, WS_IMAGE_UNKNOWN},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++)
        assert_int_equal(ws_image_kind(rows[k].bytes, rows[k].len), rows[k].want);
}

static void test_out_of_memory(void **state)
{
    struct fixture *x = *state;
    start(x);
    add(x, WS_FATBIN_PTX, 75, 0x11 | LZ4_FLAG, text);
    ws_alloc_fail_after(1);
    assert_int_equal(ws_fatbin_ptx(x->image, x->len, 75, LIMIT, &x->out, &x->out_len, NULL),
                     -ENOMEM);
    assert_null(x->out);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_plain_lz4_zstd),
        T(test_which_ptx_is_chosen),
        T(test_machine_code_where_no_ptx_compiles),
        T(test_which_machine_code_is_chosen),
        T(test_without_ptx_it_says_what_is_there),
        T(test_walk_gives_entries_and_options),
        T(test_fields_that_lie),
        T(test_a_stored_payload_ends_where_the_entries_do),
        T(test_nvcc_images),
        T(test_image_kinds),
        T(test_out_of_memory),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
