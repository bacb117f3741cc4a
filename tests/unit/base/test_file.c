/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.h: what may stand under a file's name, and what is read of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX = 10000 };

struct fixture {
    char dir[32], path[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    strcpy(f->dir, "/tmp/wst-file-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/x", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    remove(f->path);
    rmdir(f->dir);
    free(f);
    return 0;
}

static void write_bytes(const struct fixture *f, size_t n)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < n; i++)
        fputc((int)(i % 250 + 1), file);
    fclose(file);
}

/* Return: how many bytes the stream has. */
static size_t read_back(const struct fixture *f)
{
    FILE *stream;
    struct stat st;
    size_t n = 0;
    assert_int_equal(ws_file_open(&stream, f->path, MAX, &st), 0);
    for (int c; (c = fgetc(stream)) != EOF; n++)
        if (c != (int)(n % 250 + 1)) {
            fclose(stream);
            fail_msg("byte %zu", n);
        }
    int failed = ferror(stream);
    fclose(stream);
    assert_int_equal(failed, 0);
    assert_int_equal(st.st_size, n);
    return n;
}

static void test_sizes(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 1, 250, 4096, 4097, MAX - 1, MAX};
    FILE *stream = NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(sizes); i++) {
        write_bytes(f, sizes[i]);
        assert_int_equal(read_back(f), sizes[i]);
    }
    write_bytes(f, MAX + 1);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -EFBIG);
    assert_int_equal(truncate(f->path, INT64_C(10) << 30), 0);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -EFBIG);
    write_bytes(f, 100);
    assert_int_equal(truncate(f->path, 101), 0);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -EILSEQ);
    assert_null(stream);
}

/* What the stream has does not change with the file. */
static void test_later_changes(void **state)
{
    struct fixture *f = *state;
    FILE *stream;
    write_bytes(f, 5000);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), 0);
    assert_int_equal(truncate(f->path, 0), 0);
    fseek(stream, 4999, SEEK_SET);
    int last = fgetc(stream), end = fgetc(stream);
    fclose(stream);
    assert_int_equal(last, 4999 % 250 + 1);
    assert_int_equal(end, EOF);
}

/* A call that would wait for somebody to write into the pipe is ended by the alarm. */
static void test_no_regular_file(void **state)
{
    struct fixture *f = *state;
    FILE *stream = NULL;
    alarm(20);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -ENOENT);
    assert_int_equal(ws_file_open(&stream, f->dir, MAX, NULL), -EISDIR);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -ENOTSUP);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink("/dev/zero", f->path), 0);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -ENOTSUP);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink(f->path, f->path), 0);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), -ELOOP);
    assert_null(stream);
    alarm(0);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink("/dev/null", f->path), 0);
    assert_int_equal(ws_file_open(&stream, f->path, MAX, NULL), 0);
    int end = fgetc(stream);
    fclose(stream);
    assert_int_equal(end, EOF);
}

static void test_reasons(void **state)
{
    (void)state;
    assert_string_equal(ws_file_why(-EISDIR), "it is a directory");
    assert_string_equal(ws_file_why(-ENOENT), strerror(ENOENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_later_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_regular_file, setup, teardown),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
