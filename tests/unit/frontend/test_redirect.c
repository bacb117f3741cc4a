// SPDX-License-Identifier: Apache-2.0
/* Redirect, tried on this program itself: it carries functions named and shaped like those of a
 * statically linked CUDA runtime. And the ELF reader on damaged files. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/elf.h"
#include "frontend/interpose/redirect.h"
#include "frontend/interpose/toolkit.h"

/* The shapes that nvcc's runtime has, and worse. Each returns 1. In pages of their own: what
 * rewrites them is here for once part of the same program, and pages being rewritten can't be
 * executed. */
__asm__(".section .text.cuda, \"ax\", @progbits\n"
        ".p2align 12\n"
        ".macro function name\n"
        ".globl \\name\n"
        ".hidden \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".endm\n"
        ".p2align 4\n"
        "function cudaMalloc\n" /* long */
        ".fill 16, 1, 0x90\n"
        "movl $1, %eax\n"
        "ret\n"
        ".size cudaMalloc, . - cudaMalloc\n"
        ".p2align 4\n"
        "function __cudaRegisterFatBinary\n" /* 6 bytes, padded by the assembler's long no-ops */
        "movl $1, %eax\n"
        "ret\n"
        ".size __cudaRegisterFatBinary, . - __cudaRegisterFatBinary\n"
        ".p2align 4\n"
        "function __cudaGetProcAddress\n" /* 3 bytes, padded with int3 */
        "xorl %eax, %eax\n"
        "ret\n"
        ".size __cudaGetProcAddress, . - __cudaGetProcAddress\n"
        ".p2align 4, 0xcc\n"
        "function cudaCrowded\n" /* 6 bytes and a neighbour: a near jump */
        "movl $1, %eax\n"
        "ret\n"
        ".size cudaCrowded, . - cudaCrowded\n"
        "function neighbour\n"
        "movl $7, %eax\n"
        "ret\n"
        ".size neighbour, . - neighbour\n"
        ".p2align 4\n"
        "function cudaTiny\n" /* 3 bytes and a neighbour: can't be done */
        "xorl %eax, %eax\n"
        "ret\n"
        ".size cudaTiny, . - cudaTiny\n"
        "function neighbour2\n"
        "movl $8, %eax\n"
        "ret\n"
        ".size neighbour2, . - neighbour2\n"
        ".p2align 4\n"
        "function cudaUnknown\n" /* not in the table */
        ".fill 20, 1, 0x90\n"
        "movl $1, %eax\n"
        "ret\n"
        ".size cudaUnknown, . - cudaUnknown\n"
        ".p2align 12\n"
        ".text\n");
int cudaMalloc(void), __cudaRegisterFatBinary(void), __cudaGetProcAddress(void), cudaCrowded(void),
    neighbour(void), cudaTiny(void), neighbour2(void), cudaUnknown(void);

static int replacement(void)
{
    return 42;
}

static void *find_but_tiny(const char *name)
{
    return strcmp(name, "cudaTiny") && strcmp(name, "cudaUnknown") ? (void *)replacement : NULL;
}
static void *find_the_others(const char *name)
{
    return find_but_tiny(name) ? NULL : (void *)replacement;
}
static void *find_none(const char *name)
{
    return NULL;
}

static int first_base(struct dl_phdr_info *info, size_t size, void *arg)
{
    *(uintptr_t *)arg = info->dlpi_addr;
    return 1;
}

struct self {
    uint8_t *file;
    size_t bytes;
    uintptr_t base;
};

static int setup(void **state)
{
    struct self *s = calloc(1, sizeof(*s));
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    s->bytes = st.st_size;
    s->file = malloc(s->bytes);
    assert_int_equal(read(fd, s->file, s->bytes), s->bytes);
    close(fd);
    dl_iterate_phdr(first_base, &s->base);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct self *s = *state;
    free(s->file);
    free(s);
    return 0;
}

/* Damaged files first: they must write nothing, and read nothing outside. */
static void test_truncated(void **state)
{
    struct self *s = *state;
    struct ws_redirected result;
    for (size_t n = 0; n < s->bytes; n += n < 4096 ? 61 : 1009) {
        uint8_t *copy = malloc(n ? n : 1); /* exact size: the sanitizer sees what goes past it */
        memcpy(copy, s->file, n);
        int r = ws_redirect_object(copy, n, s->base, find_none, &result);
        free(copy);
        assert_true(r == WS_REDIRECT_NONE || r == WS_REDIRECT_STRIPPED);
    }
}

static void test_damaged(void **state)
{
    struct self *s = *state;
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)s->file;
    uint8_t *copy = malloc(s->bytes);
    struct ws_redirected result;
    uint32_t seed = 1;
    for (int i = 0; i < 4000; i++) {
        memcpy(copy, s->file, s->bytes);
        for (int k = 0; k < 3; k++) { /* in the header, the section headers, the program headers */
            seed = seed * 1664525 + 1013904223;
            size_t where = k == 0   ? 16 + (seed >> 8) % 48
                           : k == 1 ? h->e_shoff + (seed >> 8) % (h->e_shnum * sizeof(Elf64_Shdr))
                                    : h->e_phoff + (seed >> 8) % (h->e_phnum * sizeof(Elf64_Phdr));
            copy[where] = (uint8_t)(seed >> 3 ^ i);
        }
        int r = ws_redirect_object(copy, s->bytes, s->base, find_none, &result);
        assert_true(r == WS_REDIRECT_NONE || r == WS_REDIRECT_STRIPPED);
    }
    free(copy);
}

static void test_elf_reads(void **state)
{
    struct self *s = *state;
    struct ws_elf e;
    struct ws_elf_symbols t;
    assert_int_equal(ws_elf_init(&e, s->file, s->bytes), 0);
    assert_non_null(ws_elf_section(&e, ".text"));
    assert_null(ws_elf_section(&e, ".nvFatBinSegment"));
    assert_true(ws_elf_symbols(&e, SHT_SYMTAB, &t));
    bool found = false;
    for (uint64_t i = 0; i < t.n; i++) {
        const char *name = ws_elf_symbol_name(&t, &t.v[i]);
        if (name && !strcmp(name, "cudaCrowded"))
            found = t.v[i].st_size == 6;
    }
    assert_true(found);
    assert_int_equal(ws_elf_init(&e, "hello", 5), -EINVAL);
}

static void test_redirects(void **state)
{
    struct self *s = *state;
    struct ws_redirected result;
    assert_int_equal(cudaMalloc() + __cudaRegisterFatBinary() + cudaCrowded(), 3);
    assert_int_equal(ws_redirect_object(s->file, s->bytes, s->base, find_but_tiny, &result), 4);
    assert_int_equal(result.n_failed, 0);
    assert_int_equal(cudaMalloc(), 42);
    assert_int_equal(__cudaRegisterFatBinary(), 42);
    assert_int_equal(__cudaGetProcAddress(), 42);
    assert_int_equal(cudaCrowded(), 42);
    assert_int_equal(neighbour(), 7);
    assert_int_equal(cudaTiny(), 0);
    assert_int_equal(neighbour2(), 8);
    assert_int_equal(cudaUnknown(), 1);
}

static void test_too_short_is_told(void **state)
{
    struct self *s = *state;
    struct ws_redirected result;
    assert_int_equal(ws_redirect_object(s->file, s->bytes, s->base, find_the_others, &result), 1);
    assert_int_equal(result.n_failed, 1);
    assert_int_equal(cudaTiny(), 0);
    assert_int_equal(neighbour2(), 8);
    assert_int_equal(cudaUnknown(), 42);
}

/* No page of code is left writable. */
static void test_pages_are_not_writable(void **state)
{
    char line[512];
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        assert_null(strstr(line, "rwxp"));
    fclose(f);
}

int main(int argc, char **argv);

static void test_toolkits(void **state)
{
    static const struct {
        const char *name;
        int version;
    } rows[] = {{"libcudart.so.12", 12},
                {"/a/b/libcudart.so.13", 13},
                {"libcudart.so.11.8.89", 11},
                {"libcudart.so", 0},
                {"libcudart.so.", 0},
                {"libcuda.so.1", 0},
                {"xlibcudart.so.12", 0},
                {"", 0},
                {"libcudart.so.99999999999", 999}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++)
        if (rows[k].version < 999)
            assert_int_equal(ws_toolkit_of_name(rows[k].name), rows[k].version);
        else
            assert_true(ws_toolkit_of_name(rows[k].name) >= rows[k].version);
    static const uint64_t junk[8] = {0x464c457f};
    assert_int_equal(ws_toolkit_of_file(junk, sizeof(junk)), 0);
    assert_int_equal(ws_toolkit_of_file(junk, 3), 0);
    /* A program opened the older runtime by name, and no object tells of another. */
    assert_false(ws_toolkit_before((const void *)(uintptr_t)main, 13));
    ws_toolkit_opened("libcudart.so.11.0");
    assert_true(ws_toolkit_before((const void *)(uintptr_t)main, 12));
    ws_toolkit_opened("libcudart.so.12");
    assert_false(ws_toolkit_before((const void *)(uintptr_t)main, 12));
    assert_true(ws_toolkit_before((const void *)(uintptr_t)main, 13));
    ws_toolkit_opened("libcudart.so.11.0");
    ws_toolkit_opened("libcudart.so.13");
    assert_false(ws_toolkit_before((const void *)(uintptr_t)main, 13));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toolkits),
        cmocka_unit_test(test_elf_reads),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_too_short_is_told),
        cmocka_unit_test(test_pages_are_not_writable),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("frontend/redirect", tests, setup, teardown);
}
