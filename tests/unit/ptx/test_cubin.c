// SPDX-License-Identifier: Apache-2.0
/* ptx: machine code, made here to the layout (tests/device/cubin_make.c) and as nvcc 13 and ptxas
 * 12.9 made it of tests/ptx/cu/machine.cu (tests/corpus/cubin), and makes it now, where there is an
 * nvcc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/images/cubin.h"
#include "ptx/passes/pass.h"
#include "tests/device/cubin_make.h"

struct fixture {
    uint8_t *image;
    size_t len;
    struct ws_cubin c;
    struct ws_diags diags;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_alloc_fail_after(0);
    ws_cubin_deinit(&x->c);
    ws_diags_deinit(&x->diags);
    free(x->image);
    free(x);
    return 0;
}

static void make(struct fixture *x, const struct cubin_make *c)
{
    free(x->image);
    x->image = cubin_make(c, &x->len);
}

static int read_it(struct fixture *x)
{
    ws_cubin_deinit(&x->c);
    ws_diags_deinit(&x->diags);
    return ws_cubin_read(&x->c, x->image, x->len, "it", &x->diags);
}

/* How reading ends, and what is said. */
static void expect(struct fixture *x, int r, const char *want)
{
    assert_int_equal(read_it(x), r);
    assert_true(x->diags.n > 0);
    if (!strstr(x->diags.v[0].text, want))
        fail_msg("\"%s\" does not say \"%s\"", x->diags.v[0].text, want);
}

static const struct ws_cubin_kernel *kernel(const struct fixture *x, const char *name)
{
    for (uint32_t k = 0; k < x->c.n_kernels; k++)
        if (!strcmp(x->c.kernels[k].name, name))
            return &x->c.kernels[k];
    fail_msg("no kernel %s", name);
    return NULL;
}

static const struct ws_cubin_var *var(const struct fixture *x, const char *name)
{
    for (uint32_t k = 0; k < x->c.n_vars; k++)
        if (!strcmp(x->c.vars[k].name, name))
            return &x->c.vars[k];
    fail_msg("no variable %s", name);
    return NULL;
}

static const uint32_t ten = 10;
static const struct cubin_make all = {
    .sm = 90,
    .n_kernels = 2,
    .kernels = {{.name = "first",
                 .n_params = 3,
                 .sizes = {8, 1, 40},
                 .offsets = {0, 8, 16},
                 .param_bytes = 56,
                 .n_regs = 40,
                 .shared_bytes = 2048,
                 .frame_bytes = 16,
                 .max_threads = 128},
                {.name = "second",
                 .n_params = 1,
                 .sizes = {5000},
                 .param_bytes = 5000,
                 .n_regs = 8,
                 .v2 = true}},
    .n_vars = 4,
    .vars = {{.name = "zeros", .bytes = 64},
             {.name = "$literal", .bytes = 4},
             {.name = "ten", .bytes = 4, .init = &ten},
             {.name = "fixed", .bytes = 4, .init = &ten, .constant = true}},
    .call = "vprintf",
};

static void test_all_is_read(void **state)
{
    struct fixture *x = *state;
    struct cubin_make c = all;
    for (int abi = 0; abi < 2; abi++) {
        c.abi7 = abi;
        make(x, &c);
        assert_int_equal(read_it(x), 0);
        assert_int_equal(x->c.sm, 90);
        assert_int_equal(x->c.abi_version, abi ? 7 : 8);
        assert_int_equal(x->c.n_kernels, 2);
        const struct ws_cubin_kernel *k = kernel(x, "first");
        assert_int_equal(k->n_params, 3);
        assert_int_equal(k->params[1].offset, 8);
        assert_int_equal(k->params[1].bytes, 1);
        assert_int_equal(k->params[2].offset, 16);
        assert_int_equal(k->params[2].bytes, 40);
        assert_int_equal(k->param_bytes, 56);
        assert_int_equal(k->n_regs, 40);
        assert_int_equal(k->shared_bytes, 2048);
        assert_int_equal(k->local_bytes, 16);
        assert_int_equal(k->max_threads[0], 128);
        k = kernel(x, "second");
        assert_int_equal(k->n_params, 1);
        assert_int_equal(k->params[0].bytes, 5000);
        assert_int_equal(k->max_threads[0], 0);
        assert_int_equal(x->c.n_vars, 3);
        assert_int_equal(var(x, "zeros")->bytes, 64);
        assert_null(var(x, "zeros")->init);
        assert_false(var(x, "zeros")->constant);
        assert_memory_equal(var(x, "ten")->init, &ten, 4);
        assert_true(var(x, "fixed")->constant);
        assert_memory_equal(var(x, "fixed")->init, &ten, 4);
        assert_int_equal(x->c.n_calls, 1);
        assert_string_equal(x->c.calls[0], "vprintf");
    }
}

static void test_as_a_module(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_module *m;
    char why[128];
    bool flat;
    make(x, &all);
    assert_int_equal(ws_cubin_module(&m, x->image, x->len, NULL, NULL), 0);
    assert_int_equal(m->code_bytes, x->len);
    assert_memory_equal(m->code, x->image, x->len);
    assert_int_equal(m->sm, 90);
    const struct ws_ptx_func *f = ws_ptx_find_func(m, "first");
    assert_true(f && f->is_entry && !f->is_decl && !f->n_insns);
    assert_int_equal(f->params[2].param_offset, 16);
    assert_int_equal(f->params[2].size_bytes, 40);
    assert_int_equal(f->maxntid[0], 128);
    f = ws_ptx_find_func(m, "vprintf");
    assert_true(f && f->is_decl && !f->is_entry);
    assert_int_equal(m->n_vars, 3);
    /* It is nothing that passes may change. */
    assert_int_not_equal(ws_ptx_rewrite_refused(m, 0, WS_REWRITE_TICKET, &flat, why, sizeof(why)),
                         0);
    assert_string_equal(why, "machine code");
    assert_int_not_equal(ws_ptx_fence_refused(m, 0, why, sizeof(why)), 0);
    assert_int_not_equal(ws_ptx_fuse_refused(m, 0, why, sizeof(why)), 0);
    ws_ptx_module_free(m);
}

/* ---- what is refused ---- */

static void test_other_kinds(void **state)
{
    struct fixture *x = *state;
    struct cubin_make c = all;
    Elf64_Ehdr h;
    c.type = ET_REL;
    make(x, &c);
    expect(x, WS_PTX_E_UNSUPPORTED, "not linked");
    make(x, &all);
    memcpy(&h, x->image, sizeof(h));
    x->image[EI_CLASS] = ELFCLASS32;
    expect(x, WS_PTX_E_UNSUPPORTED, "32 bits");
    x->image[EI_CLASS] = ELFCLASS64;
    x->image[EI_ABIVERSION] = 9;
    expect(x, WS_PTX_E_UNSUPPORTED, "ABI");
    x->image[EI_ABIVERSION] = 8;
    x->image[18] = 62; /* x86-64 */
    expect(x, WS_PTX_E_FORMAT, "NVIDIA's machine");
    h.e_shstrndx = h.e_shnum;
    memcpy(x->image, &h, sizeof(h));
    expect(x, WS_PTX_E_FORMAT, "table of sections");
}

static void test_parameters_that_do_not_fit(void **state)
{
    struct fixture *x = *state;
    struct cubin_make c = all;
    c.kernels[0].param_bytes = 55;
    make(x, &c);
    expect(x, WS_PTX_E_FORMAT, "behind their end");
    c = all;
    c.kernels[0].offsets[2] = 4;
    make(x, &c);
    expect(x, WS_PTX_E_FORMAT, "in one place");
    c = all;
    c.kernels[0].sizes[1] = 0;
    make(x, &c);
    expect(x, WS_PTX_E_FORMAT, "no size");
}

/* A byte of any field changed, or the end cut off: read or refused, never more. Sanitizers say the
 * rest. */
static void test_damage(void **state)
{
    struct fixture *x = *state;
    uint32_t n_refused = 0;
    make(x, &all);
    uint8_t *whole = malloc(x->len);
    size_t len = x->len;
    assert_non_null(whole);
    memcpy(whole, x->image, len);
    for (size_t k = 0; k < len; k += 3) {
        static const uint8_t with[] = {0, 1, 0x7f, 0xff};
        for (size_t v = 0; v < sizeof(with); v++) {
            memcpy(x->image, whole, len);
            x->image[k] = with[v];
            int r = read_it(x);
            assert_true(r >= 0 && (!r || x->diags.n));
            n_refused += r != 0;
        }
    }
    assert_true(n_refused > 100);
    free(x->image);
    for (size_t k = 0; k < len; k += 7) {
        x->image = malloc(k + 1); /* exactly so long that a sanitizer sees what lies behind */
        assert_non_null(x->image);
        memcpy(x->image, whole, k);
        x->len = k;
        assert_int_equal(read_it(x), WS_PTX_E_FORMAT);
        free(x->image);
    }
    x->image = NULL;
    free(whole);
}

static void test_no_memory(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_module *m;
    make(x, &all);
    int r = -ENOMEM;
    for (int n = 1; r == -ENOMEM && n < 200; n++) {
        ws_alloc_fail_after(n);
        r = ws_cubin_module(&m, x->image, x->len, NULL, NULL);
        ws_alloc_fail_after(0);
        assert_true(r == 0 || (r == -ENOMEM && n < 199));
    }
    assert_int_equal(r, 0);
    ws_ptx_module_free(m);
}

/* ---- nvcc's ---- */

static bool load(struct fixture *x, const char *path)
{
    FILE *f = fopen(path, "re");
    free(x->image);
    x->image = malloc(1 << 20);
    x->len = f && x->image ? fread(x->image, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    return x->len > 0;
}

static void check_nvcc(struct fixture *x, uint32_t sm)
{
    static const float table[4] = {1, 2, 3, 4};
    static const int seven = 7;
    assert_int_equal(read_it(x), 0);
    assert_int_equal(x->c.sm, sm);
    assert_int_equal(x->c.n_kernels, 4);
    const struct ws_cubin_kernel *k = kernel(x, "mixed");
    static const uint32_t offsets[] = {0, 8, 16, 56}, sizes[] = {8, 4, 40, 1};
    assert_int_equal(k->n_params, 4);
    for (int p = 0; p < 4; p++) {
        assert_int_equal(k->params[p].offset, offsets[p]);
        assert_int_equal(k->params[p].bytes, sizes[p]);
    }
    assert_int_equal(k->param_bytes, 57);
    assert_int_equal(k->max_threads[0], 128);
    assert_int_equal(k->shared_bytes, 128 + (sm >= 90 ? 1024 : 0)); /* the system's share */
    assert_true(k->n_regs >= 8 && k->n_regs <= 64);
    k = kernel(x, "nothing");
    assert_int_equal(k->n_params, 0);
    assert_int_equal(k->param_bytes, 0);
    k = kernel(x, "big");
    assert_int_equal(k->n_params, 2);
    assert_int_equal(k->params[0].bytes, 5000);
    assert_int_equal(k->params[1].offset, 5000);
    assert_int_equal(k->param_bytes, 5008);
    assert_int_equal(x->c.n_vars, 4);
    assert_int_equal(var(x, "counter")->bytes, 4);
    assert_null(var(x, "counter")->init);
    assert_int_equal(var(x, "table")->bytes, 16);
    assert_memory_equal(var(x, "table")->init, table, sizeof(table));
    assert_int_equal(var(x, "factors")->bytes, 32);
    assert_true(var(x, "factors")->constant);
    assert_memory_equal(var(x, "seven")->init, &seven, sizeof(seven));
    assert_int_equal(x->c.n_calls, 1);
    assert_string_equal(x->c.calls[0], "malloc");
}

static void test_nvcc_13(void **state)
{
    static const uint32_t sms[] = {75, 90, 100};
    for (size_t k = 0; k < WS_ARRAY_SIZE(sms); k++) {
        char path[512];
        snprintf(path, sizeof(path), WS_SRCDIR "/tests/corpus/cubin/nvcc13-%u", sms[k]);
        assert_true(load(*state, path));
        check_nvcc(*state, sms[k]);
    }
    assert_true(load(*state, WS_SRCDIR "/tests/corpus/cubin/cuda12-80"));
    check_nvcc(*state, 80);
    assert_true(load(*state, WS_SRCDIR "/tests/corpus/cubin/relocatable"));
    expect(*state, WS_PTX_E_UNSUPPORTED, "-rdc=true");
}

static void test_nvcc_here(void **state)
{
    char path[] = "/tmp/wattshare-cubin.XXXXXX", command[1024];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const char *nvcc = getenv("NVCC");
    snprintf(command, sizeof(command),
             "exec 2>/dev/null; timeout 60 %s -w -arch=sm_90 -cubin -o %s " WS_SRCDIR
             "/tests/ptx/cu/machine.cu",
             nvcc ? nvcc : "nvcc", path);
    bool made = !system(command) && load(*state, path);
    unlink(path);
    if (!made)
        skip();
    check_nvcc(*state, 90);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_all_is_read), T(test_as_a_module),
        T(test_other_kinds), T(test_parameters_that_do_not_fit),
        T(test_damage),      T(test_no_memory),
        T(test_nvcc_13),     T(test_nvcc_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
