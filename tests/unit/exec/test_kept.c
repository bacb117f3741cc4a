// SPDX-License-Identifier: Apache-2.0
/* Machine code that is kept in a folder: found again, by another process too, and never run if it
 * is not as it was written. Skipped where LLVM's library is not installed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/soft/jit/code.h"
#include "device/soft/jit/llvm.h"
#include "device/soft/jit/store.h"
#include "tests/unit/exec/fixture.h"

enum { THREADS = 64, ROOM = 1 << 20, HEAD_BYTES = 80, NAME = 2 * WS_JIT_KEY_BYTES, RIGHT = 42 };

struct kept {
    char dir[64], file[64 + 1 + NAME + 1];
    struct ws_jit_totals before;
};

/* Runs a kernel which adds @n to each thread's number, compiled. */
static bool run(unsigned n, uint32_t threads)
{
    struct fix f;
    char ptx[1024];
    setenv("WS_SOFT_JIT", "always", 1);
    fix_init(&f);
    snprintf(ptx, sizeof(ptx),
             ".version 8.0\n.target sm_80\n.address_size 64\n"
             ".visible .entry k(.param .u64 p)\n{\n.reg .pred %%p<2>; .reg .b32 %%r<8>;\n"
             ".reg .b64 %%x<8>;\nld.param.u64 %%x0, [p]; mov.u32 %%r1, %%tid.x;\n"
             "mul.wide.u32 %%x1, %%r1, 4; add.s64 %%x2, %%x0, %%x1; mov.u32 %%r2, 0;\n"
             "again: add.u32 %%r2, %%r2, 1; setp.lt.u32 %%p0, %%r2, %u; @%%p0 bra again;\n"
             "add.u32 %%r3, %%r1, %%r2; st.global.u32 [%%x2], %%r3;\nret;\n}\n",
             n);
    fix_must_load(&f, ptx);
    uint64_t va = fix_alloc(&f, THREADS * sizeof(uint32_t));
    const uint32_t *words = fix_host(&f, va);
    fix_launch(&f, &(struct launch){
                       .kernel = "k", .grid = {1, 1, 1}, .block = {threads, 1, 1}, .params = &va});
    bool right = f.error == WS_DEV_OK;
    for (uint32_t k = 0; k < threads; k++)
        right &= words[k] == k + n;
    fix_deinit(&f);
    unsetenv("WS_SOFT_JIT");
    return right;
}

/* The kernel gives what it should, and is compiled and loaded that many times. */
static void check(struct kept *x, unsigned n, uint32_t threads, uint64_t n_compiled,
                  uint64_t n_loaded)
{
    x->before = ws_jit_totals();
    assert_true(run(n, threads));
    assert_int_equal(ws_jit_totals().n_compiled - x->before.n_compiled, n_compiled);
    assert_int_equal(ws_jit_totals().n_loaded - x->before.n_loaded, n_loaded);
}

static void in_folder(const struct kept *x, char *command)
{
    char all[512];
    snprintf(all, sizeof(all), "cd %s && %s", x->dir, command);
    assert_int_equal(system(all), 0); // NOLINT(cert-env33-c): the test's own words
}

static unsigned count_files(const struct kept *x)
{
    char command[128];
    unsigned n;
    snprintf(command, sizeof(command), "find %s -type f | wc -l", x->dir);
    FILE *p = popen(command, "r"); // NOLINT(cert-env33-c): as above
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%u", &n), 1);
    pclose(p);
    return n;
}

static int setup(void **state)
{
    struct kept *x = calloc(1, sizeof(*x));
    assert_non_null(x);
    snprintf(x->dir, sizeof(x->dir), "/tmp/wattshare-kept-XXXXXX");
    assert_non_null(mkdtemp(x->dir));
    assert_int_equal(ws_jit_store_open(x->dir, ROOM), 0);
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct kept *x = *state;
    assert_int_equal(ws_jit_store_open(NULL, 0), 0);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", x->dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): as above
    free(x);
    return 0;
}

/* Compiles the kernel, and finds the file that it is kept in. */
static void keep_one(struct kept *x)
{
    char command[128];
    check(x, 7, THREADS, 1, 0);
    snprintf(command, sizeof(command), "echo %s/*", x->dir);
    FILE *p = popen(command, "r"); // NOLINT(cert-env33-c): as above
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%129s", x->file), 1);
    pclose(p);
    assert_int_equal(strlen(x->file), strlen(x->dir) + 1 + NAME);
}

static void test_found_again(void **state)
{
    struct kept *x = *state;
    if (!ws_llvm_open())
        skip();
    check(x, 7, THREADS, 1, 0);
    check(x, 7, THREADS, 0, 1);
    check(x, 8, THREADS, 1, 0); /* it has another number in it */
    check(x, 7, 32, 1, 0);      /* its blocks have another shape */
    check(x, 8, THREADS, 0, 1);
    check(x, 7, 32, 0, 1);
    assert_int_equal(ws_jit_store_counts().n_kept, 3);
    assert_int_equal(ws_jit_store_open(NULL, 0), 0);
    check(x, 7, THREADS, 1, 0);
}

/* A process of its own, in which everything has other addresses. */
static int be_another(const char *dir)
{
    if (ws_jit_store_open(dir, ROOM) || !ws_llvm_open())
        return 1;
    return run(7, THREADS) && ws_jit_totals().n_loaded == 1 && ws_jit_totals().n_compiled == 0
               ? RIGHT
               : 1;
}

static void test_found_by_another_process(void **state)
{
    struct kept *x = *state;
    char *args[] = {"test_kept", "--another", x->dir, NULL};
    if (!ws_llvm_open())
        skip();
    check(x, 7, THREADS, 1, 0);
    fix_run_again(args, RIGHT);
}

/* What is done to the file $f, which has the size $s. */
static const struct {
    const char *how;
    bool needs_root;
} damages[] = {
    {"truncate -s $((s - 1)) $f", false},
    {"truncate -s 40 $f", false},
    {"truncate -s 0 $f", false},
    {"printf x >>$f", false},
    {"printf x | dd of=$f bs=1 seek=0 conv=notrunc", false},           /* what kind of file it is */
    {"printf xy | dd of=$f bs=1 seek=20 conv=notrunc", false},         /* the key */
    {"printf xy | dd of=$f bs=1 seek=46 conv=notrunc", false},         /* the size */
    {"printf xy | dd of=$f bs=1 seek=60 conv=notrunc", false},         /* the digest */
    {"printf xy | dd of=$f bs=1 seek=90 conv=notrunc", false},         /* the object's head */
    {"printf xy | dd of=$f bs=1 seek=$((s / 2)) conv=notrunc", false}, /* somewhere in it */
    {"printf xy | dd of=$f bs=1 seek=$((s - 2)) conv=notrunc", false},
    {"chmod 0640 $f", false},
    {"chmod 0602 $f", false},
    {"chown 65534 $f", true},
    {"mv $f other && ln -s other $f", false},
    {"rm $f && mkfifo -m 0600 $f", false},
};

static void test_damaged_files_are_not_run(void **state)
{
    struct kept *x = *state;
    char command[384];
    if (!ws_llvm_open())
        skip();
    keep_one(x);
    for (size_t k = 0; k < WS_ARRAY_SIZE(damages); k++) {
        if (damages[k].needs_root && geteuid() != 0)
            continue;
        uint64_t n_damaged = ws_jit_store_counts().n_damaged;
        snprintf(command, sizeof(command), "f=%s; s=$(stat -c %%s $f); { %s; } 2>/dev/null",
                 x->file, damages[k].how);
        in_folder(x, command);
        check(x, 7, THREADS, 1, 0);
        assert_int_equal(ws_jit_store_counts().n_damaged, n_damaged + 1);
        check(x, 7, THREADS, 0, 1); /* it was removed, and kept once more */
    }
    snprintf(command, sizeof(command), "rm %s && mkdir %s", x->file, x->file);
    in_folder(x, command);
    check(x, 7, THREADS, 1, 0);
    check(x, 7, THREADS, 1, 0);
}

/* One under whose name another kernel's code stands, whole. */
static void test_code_of_another_kernel_is_not_run(void **state)
{
    struct kept *x = *state;
    char command[384];
    if (!ws_llvm_open())
        skip();
    keep_one(x);
    check(x, 8, THREADS, 1, 0);
    snprintf(command, sizeof(command),
             "for g in *; do [ $g = $(basename %s) ] || cp -p $g %s; done", x->file, x->file);
    in_folder(x, command);
    check(x, 7, THREADS, 1, 0);
    assert_int_equal(ws_jit_store_counts().n_damaged, 1);
}

static void test_folder_is_ours_alone(void **state)
{
    static char *const modes[] = {"0750", "0710", "0701", "0704", "0702", "1777"};
    struct kept *x = *state;
    char command[64], path[80];
    for (size_t k = 0; k < WS_ARRAY_SIZE(modes); k++) {
        snprintf(command, sizeof(command), "chmod %s .", modes[k]);
        in_folder(x, command);
        assert_int_equal(ws_jit_store_open(x->dir, ROOM), -EPERM);
        assert_false(ws_jit_store_is_open());
    }
    in_folder(x, "chmod 0700 .");
    assert_int_equal(ws_jit_store_open(x->dir, ROOM), 0);
    if (geteuid() == 0) {
        in_folder(x, "chown 65534 .");
        assert_int_equal(ws_jit_store_open(x->dir, ROOM), -EPERM);
        in_folder(x, "chown 0 .");
    }
    snprintf(path, sizeof(path), "%s/none", x->dir);
    assert_int_equal(ws_jit_store_open(path, ROOM), -ENOENT);
    in_folder(x, "touch none");
    assert_int_equal(ws_jit_store_open(path, ROOM), -ENOTDIR);
}

static void key_of(unsigned k, uint8_t *ret)
{
    memset(ret, 0, WS_JIT_KEY_BYTES);
    memcpy(ret, &k, sizeof(k));
}

static bool has(unsigned k)
{
    uint8_t key[WS_JIT_KEY_BYTES];
    void *object;
    size_t bytes;
    key_of(k, key);
    if (!ws_jit_store_get(key, &object, &bytes))
        return false;
    free(object);
    return true;
}

/* The files never take more than they may, and the one that is used all the time stays. */
static void test_room_is_bounded(void **state)
{
    enum { OBJECTS = 100, BYTES = 5000, TAKEN = 8192, MAX = 20 * TAKEN };
    struct kept *x = *state;
    static uint8_t object[MAX];
    uint8_t key[WS_JIT_KEY_BYTES];
    assert_int_equal(ws_jit_store_open(x->dir, MAX), 0);
    in_folder(x, "touch foreign");
    for (unsigned k = 0; k < OBJECTS; k++) {
        key_of(k, key);
        ws_jit_store_put(key, object, BYTES);
        assert_true(has(k));
        assert_true(has(0));
        assert_in_range(count_files(x), 1, 20 + 1);
    }
    assert_in_range(count_files(x), 15, 20 + 1);
    assert_true(has(OBJECTS - 10));
    assert_false(has(OBJECTS - 25));
    in_folder(x, "rm foreign"); /* what is not ours is left alone */
    assert_int_equal(ws_jit_store_open(x->dir, 4 * TAKEN), 0);
    assert_in_range(count_files(x), 1, 4);
    assert_true(has(OBJECTS - 1));
    key_of(OBJECTS, key);
    ws_jit_store_put(key, object, MAX / 2); /* more than an eighth of the room */
    assert_false(has(OBJECTS));
}

/* What a process left that died while it wrote. */
static void test_half_written_files(void **state)
{
    struct kept *x = *state;
    in_folder(x, "touch -d '2 minutes ago' new-1 && touch new-2");
    assert_int_equal(ws_jit_store_open(x->dir, ROOM), 0);
    in_folder(x, "[ ! -e new-1 ] && [ -e new-2 ]");
}

static void put(unsigned k)
{
    static const uint8_t object[5000] = {1};
    uint8_t key[WS_JIT_KEY_BYTES];
    key_of(k, key);
    ws_jit_store_put(key, object, sizeof(object));
}

/* The disk is full, another folder takes the place of ours, ours is no more: nothing is written
 * elsewhere, nothing half, and what is there is found for as long as it is there. */
static void test_folder_goes_wrong(void **state)
{
    struct kept *x = *state;
    struct rlimit old, little = {4096, RLIM_INFINITY};
    assert_int_equal(ws_jit_store_open(x->dir, ROOM), 0);
    put(1);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0); /* as a disk without room */
    put(2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(has(1));
    assert_false(has(2));
    assert_int_equal(count_files(x), 1);
    in_folder(x, "mv \"$PWD\" \"$PWD.gone\" && mkdir \"$PWD.other\" && "
                 "ln -s \"$PWD.other\" \"$PWD\"");
    put(3);
    assert_true(has(1));
    assert_true(has(3));
    in_folder(x, "[ ! \"$(ls)\" ] && rm -r \"$PWD.gone\" && rm \"$PWD\" && "
                 "mv \"$PWD.other\" \"$PWD\"");
    put(4);
    assert_false(has(1));
    assert_false(has(4));
    assert_int_equal(count_files(x), 0);
}

/* Addresses, of which nothing is read. */
static struct ws_jit_names names_of(uint32_t n_uops, uint32_t n_segs)
{
    return (struct ws_jit_names){&ws_isa_sse2, (const struct ws_uop *)0x10000,
                                 (const struct ws_seg *)0x20000, n_uops, n_segs};
}

/* The object in the file, in memory of its own. */
static uint8_t *read_object(const struct kept *x, size_t *ret_bytes)
{
    FILE *f = fopen(x->file, "r");
    struct stat st;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *ret_bytes = (size_t)st.st_size - HEAD_BYTES;
    uint8_t *object = malloc(*ret_bytes);
    assert_non_null(object);
    assert_int_equal(fseek(f, HEAD_BYTES, SEEK_SET), 0);
    assert_int_equal(fread(object, 1, *ret_bytes, f), *ret_bytes);
    fclose(f);
    return object;
}

/* Whatever stands in an object, linking it ends, and touches nothing but its pages. */
static void test_damaged_objects_are_not_linked(void **state)
{
    enum { CHANGES = 20000 };
    struct kept *x = *state;
    static const uint8_t values[] = {0, 1, 2, 4, 0x7f, 0x80, 0xfe, 0xff};
    struct ws_jit_pages *pages;
    uint8_t *run;
    char why[64];
    size_t bytes;
    unsigned n_linked = 0;
    uint64_t random = 1;
    if (!ws_llvm_open())
        skip();
    keep_one(x);
    uint8_t *object = read_object(x, &bytes), *changed = malloc(bytes);
    struct ws_jit_names names = names_of(1000, 100);
    assert_non_null(changed);
    assert_int_equal(ws_jit_link(&pages, &run, object, bytes, &names, why, sizeof(why)), 0);
    ws_jit_pages_free(pages);
    for (unsigned n = 0; n < CHANGES; n++) {
        memcpy(changed, object, bytes);
        size_t left = n % 16 ? bytes : n / 16 % bytes; /* it may be cut, too */
        for (unsigned k = 0; k <= n % 3; k++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            /* Mostly in the tables, which stand at the end, and in the head. */
            size_t at = random >> 60 ? bytes - 1 - (random >> 20) % (bytes / 2) : random >> 20 & 63;
            changed[at] = values[random >> 33 & 7];
        }
        int r = ws_jit_link(&pages, &run, changed, left, &names, why, sizeof(why));
        assert_true(r == 0 || r == WS_JIT_LINK_E_OBJECT);
        if (r == 0) {
            assert_true(run >= pages->code && run < pages->code + pages->code_bytes);
            ws_jit_pages_free(pages);
            n_linked++;
        }
    }
    assert_in_range(n_linked, 1, CHANGES - 1);
    free(changed);
    free(object);
}

/* Names are of the image's own micro-ops and segments, and of the functions of the table. */
static void test_only_what_has_a_name_is_linked(void **state)
{
    struct kept *x = *state;
    struct ws_jit_pages *pages;
    uint8_t *run;
    char why[64];
    size_t bytes;
    if (!ws_llvm_open())
        skip();
    keep_one(x);
    uint8_t *object = read_object(x, &bytes);
    const struct ws_jit_names few[] = {names_of(2, 100), names_of(1000, 1)};
    for (size_t k = 0; k < WS_ARRAY_SIZE(few); k++) {
        assert_int_equal(ws_jit_link(&pages, &run, object, bytes, &few[k], why, sizeof(why)),
                         WS_JIT_LINK_E_OBJECT);
        assert_string_equal(why, "a name that is not known");
    }
    char *name = memmem(object, bytes, "ws_jit_next", sizeof("ws_jit_next"));
    assert_non_null(name);
    memcpy(name, "getpriority", sizeof("ws_jit_next"));
    struct ws_jit_names names = names_of(1000, 100);
    assert_int_equal(ws_jit_link(&pages, &run, object, bytes, &names, why, sizeof(why)),
                     WS_JIT_LINK_E_OBJECT);
    free(object);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--another") == 0)
        return be_another(argv[2]);
#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_found_again),
        ROW(test_found_by_another_process),
        ROW(test_damaged_files_are_not_run),
        ROW(test_code_of_another_kernel_is_not_run),
        ROW(test_folder_is_ours_alone),
        ROW(test_room_is_bounded),
        ROW(test_half_written_files),
        ROW(test_folder_goes_wrong),
        ROW(test_damaged_objects_are_not_linked),
        ROW(test_only_what_has_a_name_is_linked),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("exec_kept", tests, NULL, NULL);
}
