// SPDX-License-Identifier: Apache-2.0
/* The GPU catalog: what ships loads; what is wrong is named with file and line, and changes
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/catalog.h"

struct fixture {
    struct ws_catalog c;
    struct ws_diags d;
    char dir[64], shipped[512];
};

static int setup(void **state)
{
    struct fixture *f = ws_alloc(sizeof(*f));
    *state = f;
    const char *src = getenv("srcdir");
    snprintf(f->shipped, sizeof(f->shipped), "%s/conf/gpu.d", src ? src : ".");
    strcpy(f->dir, "/tmp/ws_catalog_XXXXXX");
    return mkdtemp(f->dir) ? 0 : -1;
}

static void path_of(struct fixture *f, const char *name, char *path)
{
    snprintf(path, 128, "%s/%s", f->dir, name);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"a.conf", "b.conf", "c.txt"};
    char path[128];
    for (unsigned i = 0; i < WS_ARRAY_SIZE(names); i++) {
        path_of(f, names[i], path);
        (void)remove(path);
    }
    (void)rmdir(f->dir);
    ws_catalog_deinit(&f->c);
    ws_diags_deinit(&f->d);
    free(f);
    return 0;
}

static void put(struct fixture *f, const char *name, const char *text)
{
    char path[128];
    path_of(f, name, path);
    FILE *o = fopen(path, "w");
    assert_non_null(o);
    fputs(text, o);
    fclose(o);
}

/* A right section, one key a line from line 2 on; @swap replaces the line of that key (up to its
 * '='), or drops it if empty. */
static void put_gpu(struct fixture *f, const char *file, const char *name, const char *key,
                    const char *swap)
{
    static const char *const lines[] = {
        "product = \"P\"",
        "cc = \"7.5\"",
        "sms = 6",
        "threads_per_sm = 1024",
        "blocks_per_sm = 16",
        "regs_per_sm = 65536",
        "threads_per_block = 1024",
        "shared_bytes_per_sm = 65536",
        "shared_bytes_per_block = 49152",
        "shared_bytes_per_block_optin = 65536",
        "core_mhz = 1425",
        "memory_mhz = 5001",
        "memory_bus_bits = 64",
        "l2_bytes = 524288",
        "memory_mib = 2048",
        "memory_mb_per_s = 80000",
        "copy_mb_per_s = 12000",
        "memory_latency_ns = 400",
        "schedulers_per_sm = 4",
        "fp32_lanes_per_sm = 64",
        "int_lanes_per_sm = 64",
        "fp64_lanes_per_sm = 2",
        "sfu_lanes_per_sm = 16",
        "ldst_lanes_per_sm = 16",
        "static_mw = 8000",
        "idle_mw_per_sm = 652",
        "dynamic_mw_per_sm = 1326",
    };
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof(text), "gpu %s {\n", name);
    for (unsigned i = 0; i < WS_ARRAY_SIZE(lines); i++) {
        bool hit = key && !strncmp(lines[i], key, strlen(key)) && lines[i][strlen(key)] == ' ';
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", hit ? swap : lines[i]);
    }
    snprintf(text + n, sizeof(text) - n, "}\n");
    put(f, file, text);
}

static void test_shipped_catalog(void **state)
{
    static const struct {
        const char *name;
        uint32_t sms;
    } rows[] = {
        {"rtx3070", 46}, {"t400", 6},       {"tesla-c1060", 30}, {"h200", 132},   {"gtx970", 13},
        {"xavier", 8},   {"gtx1080ti", 28}, {"host", 8},         {"gtx980", 16},  {"gv100", 80},
        {"p100", 56},    {"rtx2070s", 40},  {"rtx3080ti", 80},   {"rtx8000", 72}, {"v100", 80},
    };
    struct fixture *f = *state;
    int r = ws_catalog_load(&f->c, f->shipped, &f->d);
    char *text = ws_diags_text(&f->d);
    print_message("%s", text);
    free(text);
    assert_int_equal(r, 0);
    assert_int_equal(f->c.n, WS_ARRAY_SIZE(rows));
    for (unsigned i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        const struct ws_gpu_spec *s = ws_catalog_find(&f->c, rows[i].name);
        assert_non_null(s);
        assert_int_equal(s->n_sms, rows[i].sms);
        assert_true(s->cc_major * 10 + s->cc_minor >= 75);
        /* Each says where its figures come from. */
        bool is_fitted = s->energy_dram_fj > 0;
        assert_int_equal(
            strncmp(s->calibrated, is_fitted ? "power " : "uncalibrated: ", is_fitted ? 6 : 14), 0);
        /* From Volta on all loads go through L1: a model that was fitted knows its size. */
        assert_true(!is_fitted || s->hardware_cc < 70 || s->l1_bytes > 0);
    }
    const struct ws_gpu_spec *s = ws_catalog_find(&f->c, "rtx3070");
    assert_int_equal(s->memory_bytes, UINT64_C(8) << 30);
    assert_int_equal(s->memory_bytes_per_s, UINT64_C(448000000000));
    assert_int_equal(s->static_mw, 46000);
    assert_int_equal(s->idle_mw_per_sm, 445);
    assert_string_equal(s->product, "NVIDIA GeForce RTX 3070");
    assert_null(ws_catalog_find(&f->c, "rtx"));
    /* What was held against measurements says so, and what was not does not. */
    assert_non_null(strstr(ws_catalog_find(&f->c, "v100")->calibrated, "20 applications"));
    assert_true(ws_catalog_find(&f->c, "v100")->energy_dram_fj > 0);
    assert_true(ws_catalog_find(&f->c, "rtx3080ti")->energy_dram_fj > 0);
    assert_true(ws_catalog_find(&f->c, "rtx3070")->energy_dram_fj > 0);
    assert_int_equal(ws_catalog_find(&f->c, "rtx2070s")->energy_dram_fj, 0);
}

static void test_calibrated(void **state)
{
    struct fixture *f = *state;
    char path[128], swap[400];
    path_of(f, "a.conf", path);
    for (int bytes = 255; bytes <= 256; bytes++) {
        snprintf(swap, sizeof(swap), "sms = 3\ncalibrated = \"%0*d\"", bytes, 0);
        put_gpu(f, "a.conf", "g", "sms", swap);
        int r = ws_catalog_load(&f->c, path, &f->d);
        assert_int_equal(r, bytes == 255 ? 0 : WS_CATALOG_E_INVALID);
    }
    assert_non_null(strstr(f->d.v[0].text, "calibrated must be at most 255 bytes"));
    assert_int_equal(f->d.v[0].line, 5);
    assert_int_equal(strlen(f->c.v[0].calibrated), 255);
    ws_diags_deinit(&f->d);
    f->d = WS_DIAGS_NULL;
    for (int bytes = 241; bytes <= 242; bytes++) {
        snprintf(swap, sizeof(swap), "sms = 3\nuncalibrated = \"%0*d\"", bytes, 0);
        put_gpu(f, "a.conf", "g", "sms", swap);
        int r = ws_catalog_load(&f->c, path, &f->d);
        assert_int_equal(r, bytes == 241 ? 0 : WS_CATALOG_E_INVALID);
    }
    assert_non_null(strstr(f->d.v[0].text, "uncalibrated must be at most 241 bytes"));
    assert_int_equal(strlen(f->c.v[0].calibrated), 255);
    assert_int_equal(strncmp(f->c.v[0].calibrated, "uncalibrated: 0", 15), 0);
    ws_diags_deinit(&f->d);
    f->d = WS_DIAGS_NULL;
}

static void test_wrong_values(void **state)
{
    static const struct {
        const char *description, *name, *key, *swap;
        uint32_t line;
        const char *want;
    } rows[] = {
        {"out of range", "g", "sms", "sms = 257", 4, "sms = 257 is out of range: use 1 to 256"},
        {"zero", "g", "core_mhz", "core_mhz = 0", 12, "use 1 to 10000"},
        {"negative", "g", "static_mw", "static_mw = -1", 26, "out of range"},
        {"no number", "g", "sms", "sms = many", 4, "'sms'; it must be a whole number"},
        {"beyond 64 bits", "g", "memory_mib", "memory_mib = 99999999999999999999", 16, ""},
        {"missing", "g", "sms", "", 29, "missing: sms"},
        {"missing text", "g", "product", "", 29, "missing: product"},
        {"unknown key", "g", "sms", "smms = 6", 4, "no such option 'smms'"},
        {"compute capability", "g", "cc", "cc = \"7\"", 3, "use \"MAJOR.MINOR\""},
        {"compute capability text", "g", "cc", "cc = \"7.5x\"", 3, "use \"MAJOR.MINOR\""},
        {"empty product", "g", "product", "product = \"\"", 2, "product must be"},
        {"contradiction", "g", "threads_per_block",
         "threads_per_block = 1024\nblocks_per_sm = 16\nthreads_per_sm = 512", 31,
         "threads_per_block (1024) must not exceed threads_per_sm (512)"},
        {"shared", "g", "shared_bytes_per_sm", "shared_bytes_per_sm = 32768", 29,
         "shared_bytes_per_block <= "},
        {"powers", "g", "dynamic_mw_per_sm", "dynamic_mw_per_sm = 1", 29,
         "must not be less than idle_mw_per_sm (652)"},
        {"bad name", "\"a b\"", NULL, NULL, 29, "a name is 1 to 31"},
        {"brace", "g", "static_mw", "static_mw = 8000 }", 0, ""},
    };
    struct fixture *f = *state;
    char path[128];
    path_of(f, "a.conf", path);
    for (unsigned i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        print_message("  %s\n", rows[i].description);
        put_gpu(f, "a.conf", rows[i].name, rows[i].key, rows[i].swap);
        assert_int_equal(ws_catalog_load(&f->c, path, &f->d), WS_CATALOG_E_INVALID);
        assert_int_equal(f->c.n, 0);
        assert_true(f->d.n >= 1);
        print_message("    %s:%u: %s\n", f->d.v[0].file, f->d.v[0].line, f->d.v[0].text);
        assert_string_equal(f->d.v[0].file, path);
        assert_non_null(strstr(f->d.v[0].text, rows[i].want));
        if (rows[i].line)
            assert_int_equal(f->d.v[0].line, rows[i].line);
        ws_diags_deinit(&f->d);
        f->d = WS_DIAGS_NULL;
    }
}

static void test_other_wrong_files(void **state)
{
    struct fixture *f = *state;
    char path[128];
    assert_int_equal(ws_catalog_load(&f->c, "/nonexistent/gpu.d", &f->d), -ENOENT);
    static const char *const texts[] = {"gpu g {",     "gpu { sms = 1 }",
                                        "/* gpu g {}", "}",
                                        "cpu x { }",   "gpu g { } }",
                                        "\"",          "gpu g { product = \"",
                                        "\1\2\3",      "include(\"/etc/passwd\")"};
    path_of(f, "a.conf", path);
    for (unsigned i = 0; i < WS_ARRAY_SIZE(texts); i++) {
        print_message("  %s\n", texts[i]);
        put(f, "a.conf", texts[i]);
        assert_int_equal(ws_catalog_load(&f->c, path, &f->d), WS_CATALOG_E_INVALID);
        assert_true(f->d.n >= 1);
        put_gpu(f, "b.conf", "g", NULL, NULL); /* the next file is read as if nothing had been */
        struct ws_catalog next = WS_CATALOG_NULL;
        char good[128];
        path_of(f, "b.conf", good);
        assert_int_equal(ws_catalog_load(&next, good, NULL), 0);
        ws_catalog_deinit(&next);
    }
}

static void test_directories_and_replacement(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ws_catalog_load(&f->c, f->shipped, NULL), 0);
    size_t n = f->c.n;
    put_gpu(f, "a.conf", "t400", "sms", "sms = 7");
    put_gpu(f, "b.conf", "mine", NULL, NULL);
    put(f, "c.txt", "not read");
    assert_int_equal(ws_catalog_load(&f->c, f->dir, &f->d), 0);
    assert_int_equal(f->c.n, n + 1);
    assert_int_equal(ws_catalog_find(&f->c, "t400")->n_sms, 7);
    assert_int_equal(ws_catalog_find(&f->c, "mine")->copy_latency_ns, 8000); /* the default */
    put_gpu(f, "a.conf", "t400", "sms",
            "sms = 8"); /* right, but the other file is not: nothing changes */
    put(f, "b.conf", "gpu x {");
    assert_int_equal(ws_catalog_load(&f->c, f->dir, &f->d), WS_CATALOG_E_INVALID);
    assert_int_equal(ws_catalog_find(&f->c, "t400")->n_sms, 7);
}

static void test_out_of_memory(void **state)
{
    struct fixture *f = *state;
    for (uint64_t n = 1; n < 20; n++) {
        ws_alloc_fail_after(n);
        int r = ws_catalog_load(&f->c, f->shipped, NULL);
        ws_alloc_fail_after(0);
        assert_true(r == 0 || r == -ENOMEM);
        if (!r)
            return;
        assert_int_equal(f->c.n, 0);
    }
    fail();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shipped_catalog, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calibrated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_wrong_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_directories_and_replacement, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
