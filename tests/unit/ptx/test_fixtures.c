// SPDX-License-Identifier: Apache-2.0
/* ptx: the fixtures in tests/ptx. x.ptx is printed and parsed again; err/x.ptx has its outcome and
 * diagnostics in err/x.err. census.txt lists opcodes that ordinary CUDA programs use; census.ptx
 * has each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "ptx/ptx.h"

enum { MAX_FILE_BYTES = 1 << 20 };

struct fixture {
    struct ws_ptx_module *m, *m2;
    struct ws_diags diags;
    char *text, *want, *out, *diag_text;
    size_t len, want_len;
    glob_t glob;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static void clear(struct fixture *x)
{
    x->m = ws_ptx_module_free(x->m);
    x->m2 = ws_ptx_module_free(x->m2);
    ws_diags_deinit(&x->diags);
    free(x->text);
    free(x->want);
    free(x->out);
    free(x->diag_text);
    x->text = x->want = x->out = x->diag_text = NULL;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    clear(x);
    globfree(&x->glob);
    free(x);
    return 0;
}

static const char *srcdir(void)
{
    const char *s = getenv("srcdir");
    return s ? s : ".";
}

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    char *t = calloc(1, MAX_FILE_BYTES);
    if (t)
        *ret_len = fread(t, 1, MAX_FILE_BYTES - 1, f);
    fclose(f);
    assert_non_null(t);
    return t;
}

static size_t find(struct fixture *x, const char *pattern)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/ptx/%s", srcdir(), pattern);
    assert_int_equal(glob(path, 0, NULL, &x->glob), 0);
    return x->glob.gl_pathc;
}

static void print_to_text(struct fixture *x, const struct ws_ptx_module *m, size_t *ret_len)
{
    FILE *f = open_memstream(&x->out, ret_len);
    assert_non_null(f);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
}

static void test_print_of_parse_is_the_same(void **state)
{
    struct fixture *x = *state;
    size_t n = find(x, "*.ptx"), len;
    assert_true(n >= 6);
    for (size_t k = 0; k < n; k++) {
        const char *path = x->glob.gl_pathv[k];
        x->text = read_file(path, &x->len);
        int r = ws_ptx_parse(&x->m, x->text, x->len, path, &x->diags);
        if (!r) {
            print_to_text(x, x->m, &len);
            r = ws_ptx_parse(&x->m2, x->out, len, "printed", &x->diags);
        }
        if (r) {
            x->diag_text = ws_diags_text(&x->diags);
            fail_msg("%s: %d\n%s", path, r, x->diag_text);
        }
        if (!ws_ptx_module_equal(x->m, x->m2))
            fail_msg("%s: printed and parsed again, it is another module:\n%s", path, x->out);
        clear(x);
    }
}

static void test_diagnostics(void **state)
{
    struct fixture *x = *state;
    size_t n = find(x, "err/*.ptx");
    assert_true(n >= 40);
    for (size_t k = 0; k < n; k++) {
        char path[4096], base[300];
        snprintf(path, sizeof(path), "%s", x->glob.gl_pathv[k]);
        x->text = read_file(path, &x->len);
        snprintf(base, sizeof(base), "%s", strrchr(path, '/') + 1);
        strcpy(strrchr(path, '.'), ".err");
        x->want = read_file(path, &x->want_len);
        int r = ws_ptx_parse(&x->m, x->text, x->len, base, &x->diags);
        x->diag_text = ws_diags_text(&x->diags);
        assert_int_equal(r, atoi(x->want));
        assert_null(x->m);
        assert_string_equal(x->diag_text, strchr(x->want, '\n') + 1);
        clear(x);
    }
}

/* The opcode and modifiers of an instruction, words sorted: the order of modifiers is not unique in
 * the census. */
static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_words(const char *s, char *out, size_t size)
{
    char copy[256], *words[32], *save;
    size_t n = 0, at = 0;
    snprintf(copy, sizeof(copy), "%s", s);
    for (char *w = strtok_r(copy, ".", &save); w && n < 32; w = strtok_r(NULL, ".", &save))
        words[n++] = w;
    qsort(words, n, sizeof(*words), compare_words);
    for (size_t k = 0; k < n; k++)
        at += snprintf(out + at, size - at, "%s.", words[k]);
}

static void test_census_is_covered(void **state)
{
    struct fixture *x = *state;
    char path[4096], *save;
    snprintf(path, sizeof(path), "%s/tests/ptx/census.ptx", srcdir());
    x->text = read_file(path, &x->len);
    assert_int_equal(ws_ptx_parse(&x->m, x->text, x->len, path, &x->diags), 0);
    snprintf(path, sizeof(path), "%s/tests/ptx/census.txt", srcdir());
    x->want = read_file(path, &x->want_len);
    const struct ws_ptx_func *f = ws_ptx_find_func(x->m, "k");
    size_t n = 0;
    for (char *op = strtok_r(x->want, "\n", &save); op; op = strtok_r(NULL, "\n", &save), n++) {
        char want[300], have[300], insn[500];
        bool found = false;
        sort_words(op, want, sizeof(want));
        for (uint32_t k = 0; k < f->n_insns && !found; k++) {
            ws_ptx_insn_text(x->m, f, &f->insns[k], insn, sizeof(insn));
            insn[strcspn(insn, " ;")] = '\0';
            sort_words(insn, have, sizeof(have));
            found = !strcmp(want, have);
        }
        if (!found)
            fail_msg("'%s' of the census is not in census.ptx as parsed", op);
    }
    assert_int_equal(n, 488);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_print_of_parse_is_the_same),
        T(test_diagnostics),
        T(test_census_is_covered),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
