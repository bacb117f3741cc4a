// SPDX-License-Identifier: Apache-2.0
/* Session and channel against a daemon in miniature. The session is one for each process, so each
 * case runs in a child of its own, forked before any thread exists; an alarm ends one that
 * hangs. */
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/macros.h"
#include "frontend/channel/channel.h"
#include "frontend/config.h"
#include "frontend/session/session.h"
#include "tests/unit/frontend/fake_daemon.h"

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #x);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define CHECK_OK(x) CHECK((x) == WS__ERROR__OK)

/* In a child; returns its exit status, and what it wrote to stderr in @log. */
static int in_child(void (*scenario)(struct fake_daemon *), struct fake_daemon *options, char *log,
                    size_t log_room)
{
    int p[2], status = -1;
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(120);
        dup2(p[1], 2);
        close(p[0]);
        close(p[1]);
        scenario(options);
        ws_session_shutdown();
        _exit(0);
    }
    close(p[1]);
    size_t n = 0;
    for (ssize_t r; n < log_room - 1 && (r = read(p[0], log + n, log_room - 1 - n)) > 0;)
        n += r;
    log[n] = '\0';
    close(p[0]);
    waitpid(pid, &status, 0);
    return status;
}

static void run_once(void (*scenario)(struct fake_daemon *), struct fake_daemon options,
                     const char *want_log)
{
    char log[8192];
    int status = in_child(scenario, &options, log, sizeof(log));
    if (status)
        fprintf(stderr, "status %x\n%s", status, log);
    assert_int_equal(status, 0);
    if (want_log && !strstr(log, want_log))
        fail_msg("log lacks \"%s\": %s", want_log, log);
    if (!want_log && log[0])
        fail_msg("log is not empty: %s", log);
}

/* Through ZeroMQ alone, and with a ring. */
static void run_case(void (*scenario)(struct fake_daemon *), struct fake_daemon options,
                     const char *want_log)
{
    run_once(scenario, options, want_log);
    options.ring = true;
    if (!options.no_side)
        run_once(scenario, options, want_log);
}

/* Only a daemon that says nothing lets the time run out. One that answers may be late on a busy
 * machine. */
static void start(struct fake_daemon *d)
{
    struct ws_frontend_config *c = (struct ws_frontend_config *)ws_frontend_config();
    fake_daemon_start(d);
    snprintf(c->socket, sizeof(c->socket), "%s", d->endpoint);
    c->timeout_ms = d->silent ? 500 : 20000;
}

/* ---- memory and copies ---- */

static void fill_pattern(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)((i * 2654435761u + seed) >> 11);
}

static void copies(struct fake_daemon *d)
{
    enum { N = 9 * 1024 * 1024 + 123 };
    uint8_t *src = malloc(N), *dst = malloc(N), *pinned;
    uint64_t a, b, s = ws_stream_legacy(0);
    struct ws_mem_info info;
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, N, &a));
    CHECK_OK(ws_session_mem_alloc(0, N, &b));
    CHECK_OK(ws_session_host_alloc(N, (void **)&pinned));
    for (size_t n = 1; n <= N; n = n * 7 + 1) {
        fill_pattern(src, n, n);
        memset(dst, 0, n);
        CHECK_OK(ws_session_copy(s, (void *)a, src, n, WS_COPY_H2D, false));
        CHECK_OK(ws_session_copy(s, (void *)b, (void *)a, n, WS_COPY_AUTO, true));
        CHECK_OK(ws_session_copy(s, dst, (void *)b, n, WS_COPY_D2H, false));
        CHECK(!memcmp(src, dst, n));
        memset(pinned, 0, n);
        CHECK_OK(ws_session_copy(s, pinned, (void *)b, n, WS_COPY_AUTO, true));
        CHECK_OK(ws_session_stream_sync(s));
        CHECK(!memcmp(src, pinned, n));
        pinned[n / 2] ^= 1;
        CHECK_OK(ws_session_copy(s, (void *)a, pinned, n, WS_COPY_H2D, false));
        CHECK_OK(ws_session_copy(s, dst, (void *)a, n, WS_COPY_AUTO, false));
        CHECK(!memcmp(dst, pinned, n));
        CHECK_OK(ws_session_copy(s, dst, src, n, WS_COPY_H2H, false));
        CHECK(!memcmp(src, dst, n));
    }
    CHECK_OK(ws_session_fill(s, a, 0x5a, 1, 1000, 1, 0, false));
    CHECK_OK(ws_session_copy(s, dst, (void *)a, 1000, WS_COPY_D2H, false));
    CHECK(dst[0] == 0x5a && dst[999] == 0x5a);
    /* wrong ranges, directions, addresses */
    CHECK(ws_session_copy(s, (void *)(a + 1), src, N, WS_COPY_H2D, false) ==
          WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(s, (void *)a, src, N, WS_COPY_D2H, false) == WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(s, dst, (void *)a, N, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(s, dst, (void *)(WS_VA_LAST - 64), 8, WS_COPY_AUTO, false) ==
          WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(s, NULL, (void *)a, 8, WS_COPY_D2H, false) == WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(s, dst, (void *)a, UINT64_MAX, WS_COPY_D2H, false) ==
          WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(999, dst, (void *)a, 8, WS_COPY_D2H, false) == WS__ERROR__INVALID_HANDLE);
    CHECK(ws_session_fill(s, a + N - 8, 0, 4, 16, 1, 0, false) == WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_fill(s, a, 0, 4, 16, UINT64_MAX / 8, 1 << 20, false) ==
          WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_fill(s, (uintptr_t)dst, 0, 4, 16, 1, 0, false) == WS__ERROR__INVALID_VALUE);
    ws_session_mem_find(a + 5, &info);
    CHECK(info.kind == WS_MEM_DEVICE && info.base == a && info.bytes == N && info.device == 0);
    ws_session_mem_find((uintptr_t)pinned + N - 1, &info);
    CHECK(info.kind == WS_MEM_PINNED && info.base == (uintptr_t)pinned);
    ws_session_mem_find((uintptr_t)src, &info);
    CHECK(info.kind == WS_MEM_NONE);
    CHECK(ws_session_mem_free(a + 512) == WS__ERROR__INVALID_VALUE);
    CHECK_OK(ws_session_mem_free(a));
    CHECK(ws_session_mem_free(a) == WS__ERROR__INVALID_VALUE);
    CHECK_OK(ws_session_host_free(pinned));
    CHECK(ws_session_host_free(pinned) == WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_copy(s, (void *)a, src, 8, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    CHECK(ws_session_mem_alloc(2, 8, &a) == WS__ERROR__INVALID_DEVICE);
    CHECK(d->bad_seq == 0);
}

/* Boxes of rows, packed and not, by every road; gaps stay as they were. Small frames and chunks cut
 * inside rows and slices. */
static void boxes(struct fake_daemon *d)
{
    static const struct {
        uint64_t width, height, depth, pitch_a, slice_a, pitch_b, slice_b;
    } v[] = {
        {1, 5, 1, 3, 0, 1, 0},
        {100, 7, 3, 128, 1000, 101, 707},
        {1000, 100, 1, 1024, 0, 1001, 0},
        {37, 41, 43, 64, 64 * 41 + 5, 37, 37 * 41},
        {1500000, 3, 2, 1500001, 4600000, 1500000, 4500000},
        {3 << 20, 2, 1, (3 << 20) + 7, 0, 3 << 20, 0},
    };
    enum { N = 10 << 20 };
    uint8_t *src = malloc(N), *dst = malloc(N), *want = malloc(N), *pinned;
    uint64_t a, b, s = ws_stream_legacy(0);
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, N, &a));
    CHECK_OK(ws_session_mem_alloc(0, N, &b));
    CHECK_OK(ws_session_host_alloc(N, (void **)&pinned));
    fill_pattern(src, N, 77);
    for (size_t i = 0; i < WS_ARRAY_SIZE(v); i++) {
        struct ws_copy_box box = {v[i].width, v[i].height, v[i].depth};
        struct ws_copy_side host = {(uintptr_t)src + 3, v[i].pitch_b, v[i].slice_b};
        struct ws_copy_side da = {a + 5, v[i].pitch_a, v[i].slice_a};
        struct ws_copy_side db = {b + 1, v[i].pitch_b, v[i].slice_b};
        struct ws_copy_side pin = {(uintptr_t)pinned, v[i].pitch_a, v[i].slice_a};
        struct ws_copy_side out = {(uintptr_t)dst + 9, v[i].pitch_a, v[i].slice_a};
        memset(dst, 0xee, N);
        memset(want, 0xee, N);
        CHECK_OK(ws_session_fill(s, a, 0x11, 1, N, 1, 0, false));
        CHECK_OK(ws_session_copy_box(s, &da, &host, &box, WS_COPY_H2D, false));
        CHECK_OK(ws_session_copy_box(s, &db, &da, &box, WS_COPY_AUTO, true));
        CHECK_OK(ws_session_copy_box(s, &pin, &db, &box, WS_COPY_D2H, true));
        CHECK_OK(ws_session_stream_sync(s));
        CHECK_OK(ws_session_fill(s, b, 0x22, 1, N, 1, 0, false));
        CHECK_OK(ws_session_copy_box(s, &db, &pin, &box, WS_COPY_AUTO, true));
        CHECK_OK(ws_session_copy_box(s, &out, &db, &box, WS_COPY_AUTO, true));
        for (uint64_t z = 0; z < box.depth; z++)
            for (uint64_t y = 0; y < box.height; y++)
                memcpy(want + 9 + z * v[i].slice_a + y * v[i].pitch_a,
                       src + 3 + z * v[i].slice_b + y * v[i].pitch_b, box.width_bytes);
        CHECK(!memcmp(dst, want, N));
        CHECK_OK(ws_session_copy(s, dst, (void *)a, 5, WS_COPY_D2H, false));
        CHECK(dst[0] == 0x11 && dst[4] == 0x11); /* before the box */
        memset(dst, 0xee, N);
        CHECK_OK(ws_session_copy_box(s, &out, &host, &box, WS_COPY_H2H, false));
        CHECK(!memcmp(dst, want, N));
    }
    struct ws_copy_side h = {(uintptr_t)src, 100, 1000}, dev = {a, 100, 1000};
    struct ws_copy_box box = {100, 10, 10};
    CHECK_OK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false));
    box.height = 11; /* slices overlap */
    CHECK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    box = (struct ws_copy_box){101, 10, 1}; /* rows overlap */
    CHECK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    box = (struct ws_copy_box){100, N / 100 + 1, 1}; /* past the end */
    CHECK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    box = (struct ws_copy_box){100, UINT64_MAX / 50, 1};
    CHECK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    box = (struct ws_copy_box){UINT64_MAX, 2, 2};
    dev.pitch_bytes = dev.slice_bytes = h.pitch_bytes = h.slice_bytes = UINT64_MAX;
    CHECK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false) == WS__ERROR__INVALID_VALUE);
    box.depth = 0;
    CHECK_OK(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false));
    CHECK(ws_session_copy_box(999, &dev, &h, &box, WS_COPY_H2D, false) ==
          WS__ERROR__INVALID_HANDLE);
    CHECK(d->bad_seq == 0);
}

static void test_copies_local(void **state)
{
    run_case(copies, (struct fake_daemon){0}, NULL);
    run_case(boxes, (struct fake_daemon){0}, NULL);
}
static void test_copies_in_frames(void **state)
{
    run_case(copies, (struct fake_daemon){.no_side = true}, NULL);
    run_case(boxes, (struct fake_daemon){.no_side = true}, NULL);
}
static void test_copies_in_a_small_window(void **state)
{
    run_case(copies, (struct fake_daemon){.outstanding = 2, .inline_bytes = 64}, NULL);
    run_case(boxes, (struct fake_daemon){.outstanding = 2, .inline_bytes = 64}, NULL);
}
static void test_copies_over_tcp(void **state)
{
    char endpoint[64];
    snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%d", 20000 + getpid() % 20000);
    run_case(copies, (struct fake_daemon){.no_side = true, .endpoint = endpoint}, NULL);
    run_case(boxes, (struct fake_daemon){.no_side = true, .endpoint = endpoint}, NULL);
}

/* ---- launches, modules, events ---- */

static void launches(struct fake_daemon *d)
{
    static const char ptx[] = ".version 9.0\n.target sm_75\n.address_size 64\n";
    struct ws_session_module *m, *m2;
    struct ws_session_function *f, *none;
    uint64_t s, e0, e1, va, bytes, p = 0x1122334455667788;
    uint32_t q = 0xaabbccdd;
    double r = 1.5;
    float ms;
    start(d);
    CHECK_OK(ws_session_module_load(0, ptx, 0, "test", &m, NULL));
    CHECK(d->n_images == 1);
    CHECK_OK(ws_session_module_load(1, ptx, sizeof(ptx), "test", &m2, NULL));
    CHECK(d->n_images == 1); /* the content is known */
    CHECK(ws_session_module_function(m, "sub", &f) == WS__ERROR__NOT_FOUND);
    CHECK_OK(ws_session_module_function(m, "none", &none));
    CHECK_OK(ws_session_module_function(m, "add", &f));
    CHECK_OK(ws_session_module_variable(m, "counter", &va, &bytes));
    CHECK(bytes == 64);
    CHECK_OK(ws_session_stream_create(0, true, 0, &s));
    struct ws_launch l = {.function = f,
                          .stream = s,
                          .grid = {2, 3, 4},
                          .block = {32, 2, 1},
                          .args = (void *[]){&p, &q, &r}};
    CHECK_OK(ws_session_launch(&l));
    CHECK_OK(ws_session_stream_sync(s));
    CHECK(d->n_launches == 1 && d->last_params_bytes == 24);
    CHECK(!memcmp(d->last_params, &p, 8) && !memcmp(d->last_params + 8, &q, 4) &&
          !memcmp(d->last_params + 16, &r, 8));
    uint8_t packed[24] = {9, 8, 7};
    l.packed = packed;
    l.packed_bytes = 23;
    CHECK(ws_session_launch(&l) == WS__ERROR__INVALID_VALUE);
    l.packed_bytes = 24;
    CHECK_OK(ws_session_launch(&l));
    for (int i = 0; i < 5000; i++)
        CHECK_OK(ws_session_launch(&l));
    CHECK_OK(ws_session_device_sync(0));
    CHECK(d->n_launches == 5002 && d->last_params[2] == 7);
    static const struct {
        const char *description;
        uint32_t grid[3], block[3], shared;
        ws_err want;
    } bad[] = {
        {"empty grid", {0, 1, 1}, {1, 1, 1}, 0, WS__ERROR__INVALID_CONFIGURATION},
        {"high grid", {1, 65536, 1}, {1, 1, 1}, 0, WS__ERROR__INVALID_CONFIGURATION},
        {"big block", {1, 1, 1}, {1024, 2, 1}, 0, WS__ERROR__INVALID_CONFIGURATION},
        {"deep block", {1, 1, 1}, {1, 1, 65}, 0, WS__ERROR__INVALID_CONFIGURATION},
        {"block that overflows", {1, 1, 1}, {65536, 65536, 1}, 0, WS__ERROR__INVALID_CONFIGURATION},
        {"shared", {1, 1, 1}, {1, 1, 1}, 49153, WS__ERROR__INVALID_VALUE},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        struct ws_launch b = {.function = none, .stream = s, .shared_bytes = bad[i].shared};
        memcpy(b.grid, bad[i].grid, sizeof(b.grid));
        memcpy(b.block, bad[i].block, sizeof(b.block));
        CHECK(ws_session_launch(&b) == bad[i].want);
    }
    l.stream = ws_stream_legacy(1);
    CHECK(ws_session_launch(&l) == WS__ERROR__INVALID_HANDLE); /* another device's stream */
    /* events */
    CHECK_OK(ws_session_event_create(0, true, &e0));
    CHECK_OK(ws_session_event_create(0, true, &e1));
    CHECK(ws_session_event_elapsed(e0, e1, &ms) == WS__ERROR__INVALID_HANDLE);
    CHECK_OK(ws_session_event_sync(e0));
    CHECK_OK(ws_session_stream_wait(s, e0));
    CHECK_OK(ws_session_event_record(e0, s));
    CHECK_OK(ws_session_event_record(e1, s));
    CHECK_OK(ws_session_event_elapsed(e0, e1, &ms));
    CHECK(ms == 1.0f); /* the daemon's clock goes 1 ms a command */
    CHECK_OK(ws_session_event_elapsed(e1, e0, &ms));
    CHECK(ms == -1.0f);
    CHECK(ws_session_event_record(e0, ws_stream_legacy(1)) == WS__ERROR__INVALID_HANDLE);
    CHECK_OK(ws_session_event_destroy(e0));
    CHECK(ws_session_event_record(e0, s) == WS__ERROR__INVALID_HANDLE);
    CHECK(ws_session_event_destroy(e0) == WS__ERROR__INVALID_HANDLE);
    /* the slot is used again, the id is not */
    uint64_t e2;
    CHECK_OK(ws_session_event_create(0, true, &e2));
    CHECK(e2 != e0 && (uint32_t)e2 == (uint32_t)e0);
    CHECK_OK(ws_session_stream_destroy(s));
    CHECK(ws_session_stream_sync(s) == WS__ERROR__INVALID_HANDLE);
    /* reset */
    CHECK_OK(ws_session_reset(0));
    CHECK(ws_session_event_record(e1, ws_stream_legacy(0)) == WS__ERROR__INVALID_HANDLE);
    l.stream = ws_stream_legacy(0);
    CHECK(ws_session_launch(&l) == WS__ERROR__INVALID_HANDLE);
    CHECK_OK(ws_session_module_unload(m));
    CHECK_OK(ws_session_module_unload(m2));
    CHECK(d->bad_seq == 0);
}

static void test_launches(void **state)
{
    run_case(launches, (struct fake_daemon){0}, NULL);
}

/* ---- copies that have returned before they are done ---- */

static bool is_waited_for(struct fake_daemon *d, uint64_t stream, uint64_t to, bool async)
{
    uint8_t from[64] = {1};
    uint64_t before = d->n_syncs;
    CHECK_OK(ws_session_copy(stream, (void *)to, from, sizeof(from), WS_COPY_H2D, async));
    return d->n_syncs > before;
}

static void outrun(struct fake_daemon *d)
{
    uint64_t a, s, e, legacy = ws_stream_legacy(0);
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, 64, &a));
    /* All streams that there are come after it. */
    CHECK(!is_waited_for(d, legacy, a, false));
    CHECK_OK(ws_session_stream_create(0, false, 0, &s));
    CHECK(!is_waited_for(d, legacy, a, false));
    CHECK(is_waited_for(d, s, a, false));
    CHECK(d->recorded && !d->waited_for);
    /* One that is created later waits for it, and not for what came behind it. */
    uint64_t recorded = d->recorded;
    CHECK_OK(ws_session_event_create(0, false, &e));
    CHECK_OK(ws_session_event_record(e, legacy));
    for (int k = 0; k < 2; k++) {
        CHECK_OK(ws_session_stream_create(0, true, 0, &s));
        CHECK_OK(ws_session_stream_sync(s));
        CHECK(d->waiting == s && d->waited_for == recorded);
    }
    /* Then copies are waited for. */
    CHECK(is_waited_for(d, legacy, a, false));
    CHECK(!is_waited_for(d, legacy, a, true));
    CHECK(d->recorded == e);
    /* After a reset there is none to wait for. */
    CHECK_OK(ws_session_reset(0));
    CHECK_OK(ws_session_stream_create(0, true, 0, &s));
    CHECK_OK(ws_session_stream_sync(s));
    CHECK(d->waiting != s);
}

static void test_copies_that_kernels_may_outrun(void **state)
{
    run_case(outrun, (struct fake_daemon){0}, NULL);
}

/* ---- damaged images ---- */

static void images(struct fake_daemon *d)
{
    struct ws_session_module *m;
    uint8_t fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1,    0,    16, 0,
                          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,  0};
    uint8_t elf[64] = {0x7f, 'E', 'L', 'F', 2, 1};
    start(d);
    elf[40] = 0xff; /* section headers far away */
    elf[46] = 0xff;
    CHECK(ws_session_module_load(0, fatbin, 0, "", &m, NULL) == WS__ERROR__INVALID_IMAGE);
    CHECK(ws_session_module_load(0, elf, 0, "", &m, NULL) == WS__ERROR__INVALID_IMAGE);
    CHECK(ws_session_module_load(0, "", 0, "", &m, NULL) == WS__ERROR__INVALID_IMAGE);
    CHECK(ws_session_module_load(0, (void *)8, 0, "", &m, NULL) == WS__ERROR__INVALID_IMAGE);
    CHECK(ws_session_module_load(0, fatbin, (uint64_t)1 << 50, "", &m, NULL) ==
          WS__ERROR__INVALID_IMAGE);
    CHECK(ws_session_module_load(0, NULL, 0, "", &m, NULL) == WS__ERROR__INVALID_VALUE);
    CHECK(d->n_images == 0);
}

static void test_damaged_images(void **state)
{
    run_case(images, (struct fake_daemon){0}, NULL);
}

/* ---- asynchronous work starts by itself ---- */

static void starts(struct fake_daemon *d)
{
    uint64_t a, s = ws_stream_legacy(0), deadline;
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, 64, &a));
    for (int round = 0; round < 5; round++) {
        uint64_t before = d->n_commands;
        for (int i = 0; i < 10; i++)
            CHECK_OK(ws_session_fill(s, a, i, 1, 64, 1, 0, true));
        deadline = ws_clock_ns() + 60 * WS_NS_PER_S;
        while (d->n_commands < before + 10 && ws_clock_ns() < deadline)
            usleep(100);
        CHECK(d->n_commands == before + 10);
        usleep(round * 1000);
    }
}

static void test_async_work_starts_without_sync(void **state)
{
    run_case(starts, (struct fake_daemon){0}, NULL);
}

/* ---- errors ---- */

static void sticky(struct fake_daemon *d)
{
    struct ws_session_module *m;
    struct ws_session_function *f;
    uint64_t a;
    start(d);
    CHECK_OK(ws_session_module_load(0, ".version 1.0", 0, "", &m, NULL));
    CHECK_OK(ws_session_module_function(m, "none", &f));
    struct ws_launch l = {
        .function = f, .stream = ws_stream_legacy(0), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    d->fail_next = WS__ERROR__ILLEGAL_ADDRESS;
    CHECK_OK(ws_session_launch(&l)); /* asynchronous: not told yet */
    CHECK(ws_session_device_sync(0) == WS__ERROR__ILLEGAL_ADDRESS);
    CHECK(ws_session_launch(&l) == WS__ERROR__ILLEGAL_ADDRESS);
    CHECK(ws_session_mem_alloc(0, 8, &a) == WS__ERROR__ILLEGAL_ADDRESS);
    CHECK_OK(ws_session_reset(0));
    CHECK_OK(ws_session_mem_alloc(0, 8, &a));
    /* not sticky: told once */
    d->fail_next = WS__ERROR__INVALID_HANDLE;
    CHECK_OK(ws_session_fill(ws_stream_legacy(0), a, 0, 1, 8, 1, 0, true));
    CHECK(ws_session_device_sync(0) == WS__ERROR__INVALID_HANDLE);
    CHECK_OK(ws_session_device_sync(0));
    /* a read that fails asks why */
    enum { BIG = 3 << 20 };
    uint8_t *host = malloc(BIG);
    CHECK_OK(ws_session_mem_alloc(0, BIG, &a));
    d->fail_next = WS__ERROR__LAUNCH_TIMEOUT;
    CHECK(ws_session_copy(ws_stream_legacy(0), host, (void *)a, BIG, WS_COPY_D2H, false) ==
          WS__ERROR__LAUNCH_TIMEOUT);
    CHECK_OK(ws_session_copy(ws_stream_legacy(0), host, (void *)a, BIG, WS_COPY_D2H,
                             false)); /* no chunk was lost */
    CHECK_OK(ws_session_copy(ws_stream_legacy(0), host, (void *)a, BIG, WS_COPY_D2H, false));
    free(host);
}

static void test_errors_of_asynchronous_work(void **state)
{
    run_case(sticky, (struct fake_daemon){0}, NULL);
}

/* What it does waits for nothing. A busy machine may stop any thread for a while, but not every
 * time. */
static bool takes_less(uint64_t ns, void (*what)(void))
{
    for (int i = 0; i < 100; i++) {
        uint64_t t = ws_clock_ns();
        what();
        if (ws_clock_ns() - t < ns)
            return true;
    }
    return false;
}

static void fails_again(void)
{
    uint64_t a;
    CHECK(ws_session_mem_alloc(0, 8, &a) == WS__ERROR__DISCONNECTED);
    CHECK(ws_session_connect() == WS__ERROR__DISCONNECTED && !ws_session_device(0));
}

static void fails_at_once(struct fake_daemon *d)
{
    uint64_t a, t = ws_clock_ns();
    if (d->dir[0] != 'x')
        start(d);
    CHECK(ws_session_mem_alloc(0, 8, &a) != WS__ERROR__OK);
    CHECK(ws_clock_ns() - t < 30 * WS_NS_PER_S);
    CHECK(takes_less(50 * WS_NS_PER_MS, fails_again));
}

static void missing(struct fake_daemon *d)
{
    snprintf(((struct ws_frontend_config *)ws_frontend_config())->socket, 256,
             "ipc:///tmp/wattshare-test-no-such/s");
    fails_at_once(d);
}

static void test_no_daemon(void **state)
{
    run_case(missing, (struct fake_daemon){.dir = "x"},
             "no daemon at ipc:///tmp/wattshare-test-no-such/s: no such socket");
}
static void bad_endpoint(struct fake_daemon *d)
{
    snprintf(((struct ws_frontend_config *)ws_frontend_config())->socket, 256, "nonsense");
    fails_at_once(d);
}
static void test_bad_endpoint(void **state)
{
    run_case(bad_endpoint, (struct fake_daemon){.dir = "x"}, "can't connect to nonsense");
}
static void test_silent_daemon(void **state)
{
    run_case(fails_at_once, (struct fake_daemon){.silent = true}, "within 500 ms");
}
static void test_other_version(void **state)
{
    run_case(fails_at_once, (struct fake_daemon){.version = 7}, "speaks version 7 of the protocol");
}
static void test_refused(void **state)
{
    run_case(fails_at_once,
             (struct fake_daemon){.hello_error = WS__ERROR__DENIED, .hello_text = "not your GPU"},
             "denies access: not your GPU");
    run_case(fails_at_once, (struct fake_daemon){.hello_error = WS__ERROR__DRAINING},
             "is going down");
}
static void test_garbage(void **state)
{
    run_case(fails_at_once, (struct fake_daemon){.garbage = true}, "");
}

/* ---- death of the daemon ---- */

static void *stop_soon(void *arg)
{
    usleep(100 * 1000);
    fake_daemon_stop(arg);
    return NULL;
}

static void calls_fail(void)
{
    uint64_t a;
    CHECK(ws_session_mem_alloc(0, 8, &a) == WS__ERROR__DISCONNECTED);
    CHECK(ws_session_device_sync(0) == WS__ERROR__DISCONNECTED);
}

static void all_fail(void)
{
    CHECK(takes_less(100 * WS_NS_PER_MS, calls_fail));
}

static void *sync_until_dead(void *arg)
{
    return (void *)(intptr_t)ws_session_device_sync(0);
}

static void dies_in_sync(struct fake_daemon *d)
{
    pthread_t killer, others[3];
    void *r;
    start(d);
    CHECK_OK(ws_session_device_sync(0));
    fake_daemon_pause(d);
    pthread_create(&killer, NULL, stop_soon, d);
    for (int i = 0; i < 3; i++)
        pthread_create(&others[i], NULL, sync_until_dead, NULL);
    uint64_t t = ws_clock_ns();
    CHECK(ws_session_device_sync(0) == WS__ERROR__DISCONNECTED);
    for (int i = 0; i < 3; i++) {
        pthread_join(others[i], &r);
        CHECK((intptr_t)r == WS__ERROR__DISCONNECTED);
    }
    CHECK(ws_clock_ns() - t < 30 * WS_NS_PER_S);
    pthread_join(killer, NULL);
    all_fail();
}

static void dies_in_copy(struct fake_daemon *d, bool read)
{
    enum { N = 64 << 20 }; /* more than the staging segment holds */
    uint8_t *host = calloc(1, N);
    pthread_t killer;
    uint64_t a;
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, N, &a));
    CHECK_OK(ws_session_copy(ws_stream_legacy(0), host, (void *)a, N, WS_COPY_D2H, false));
    fake_daemon_pause(d);
    pthread_create(&killer, NULL, stop_soon, d);
    uint64_t t = ws_clock_ns();
    CHECK((read ? ws_session_copy(ws_stream_legacy(0), host, (void *)a, N, WS_COPY_D2H, false)
                : ws_session_copy(ws_stream_legacy(0), (void *)a, host, N, WS_COPY_H2D, false)) ==
          WS__ERROR__DISCONNECTED);
    CHECK(ws_clock_ns() - t < 30 * WS_NS_PER_S);
    pthread_join(killer, NULL);
    all_fail();
}
static void dies_in_read(struct fake_daemon *d)
{
    dies_in_copy(d, true);
}
static void dies_in_write(struct fake_daemon *d)
{
    dies_in_copy(d, false);
}
static void dies_at_full_window(struct fake_daemon *d)
{
    uint64_t a, n = 0;
    pthread_t killer;
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, 64, &a));
    fake_daemon_pause(d);
    pthread_create(&killer, NULL, stop_soon, d);
    while (ws_session_fill(ws_stream_legacy(0), a, 0, 1, 8, 1, 0, true) == WS__ERROR__OK)
        CHECK(++n <= 16); /* the window */
    pthread_join(killer, NULL);
    all_fail();
}

static void test_daemon_dies(void **state)
{
    run_case(dies_in_sync, (struct fake_daemon){0}, "lost the daemon");
    run_case(dies_in_read, (struct fake_daemon){0}, "lost the daemon");
    run_case(dies_in_write, (struct fake_daemon){0}, "lost the daemon");
    run_case(dies_at_full_window, (struct fake_daemon){.outstanding = 16}, "lost the daemon");
}

static void test_daemon_dies_tcp(void **state)
{
    char endpoint[64];
    snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%d", 20000 + getpid() % 20000);
    run_case(dies_in_sync, (struct fake_daemon){.no_side = true, .endpoint = endpoint},
             "lost the daemon");
}

static void dropped(struct fake_daemon *d)
{
    start(d);
    CHECK_OK(ws_session_connect());
    d->drop = true;
    CHECK(ws_session_device_sync(0) == WS__ERROR__OK || true);
    all_fail();
}
static void test_dropped(void **state)
{
    run_case(dropped, (struct fake_daemon){0}, "it dropped this client");
}

/* ---- fork ---- */

static void fork_after(struct fake_daemon *d)
{
    int status;
    uint64_t a;
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, 8, &a));
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(ws_session_mem_alloc(0, 8, &a) == WS__ERROR__DISCONNECTED);
        CHECK(ws_session_mem_free(a) == WS__ERROR__DISCONNECTED);
        ws_session_shutdown();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_OK(ws_session_mem_alloc(0, 8, &a)); /* the parent is unharmed */
    CHECK(d->n_goodbyes == 0);
}
static void fork_before(struct fake_daemon *d)
{
    int status;
    uint64_t a;
    start(d);
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(100); /* an alarm is not inherited */
            CHECK_OK(ws_session_mem_alloc(0, 8, &a));
            ws_session_shutdown();
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    for (int i = 0; i < 30000 && d->n_goodbyes < 2; i++)
        usleep(1000);
    CHECK(d->n_goodbyes == 2);
}
__attribute__((unused)) static void test_fork_before_connecting(void **state)
{
    run_once(fork_before, (struct fake_daemon){0}, NULL);
}

static void test_fork_after_connecting(void **state)
{
    run_case(fork_after, (struct fake_daemon){0}, "was forked");
}

/* ---- threads ---- */

static struct ws_session_function *shared_function;

static void *hammer(void *arg)
{
    int id = (int)(intptr_t)arg, device = id & 1;
    enum { N = 700 * 1000 };
    uint8_t *src = malloc(N), *dst = malloc(N);
    uint64_t s = ws_stream_per_thread(device), a, e;
    CHECK(s == ws_stream_per_thread(device) && s != ws_stream_legacy(device));
    CHECK_OK(ws_session_mem_alloc(device, N, &a));
    CHECK_OK(ws_session_event_create(device, true, &e));
    for (int i = 0; i < 40; i++) {
        size_t n = (size_t)(i * 7919 * (id + 1)) % N + 1;
        fill_pattern(src, n, i + id);
        CHECK_OK(ws_session_copy(s, (void *)a, src, n, WS_COPY_H2D, true));
        for (int k = 0; k < 20 && device == 0; k++) {
            struct ws_launch l = {
                .function = shared_function, .stream = s, .grid = {1, 1, 1}, .block = {1, 1, 1}};
            CHECK_OK(ws_session_launch(&l));
        }
        CHECK_OK(ws_session_event_record(e, s));
        CHECK_OK(ws_session_event_query(e));
        CHECK_OK(ws_session_copy(s, dst, (void *)a, n, WS_COPY_D2H, true));
        CHECK(!memcmp(src, dst, n));
        CHECK_OK(ws_session_stream_sync(s));
    }
    CHECK_OK(ws_session_event_destroy(e));
    CHECK_OK(ws_session_mem_free(a));
    free(src);
    free(dst);
    return NULL;
}

static void threads(struct fake_daemon *d)
{
    enum { THREADS = 8 };
    pthread_t t[THREADS];
    struct ws_session_module *m;
    start(d);
    CHECK_OK(ws_session_module_load(0, ".version 1.0", 0, "", &m, NULL));
    CHECK_OK(ws_session_module_function(m, "none", &shared_function));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, hammer, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    CHECK_OK(ws_session_device_sync(0));
    CHECK(d->n_launches == THREADS / 2 * 40 * 20);
    CHECK(d->bad_seq == 0);
}
static void test_threads(void **state)
{
    run_case(threads, (struct fake_daemon){.outstanding = 64}, NULL);
}

/* ---- exit ---- */

static void ends(struct fake_daemon *d)
{
    uint64_t a;
    start(d);
    CHECK_OK(ws_session_mem_alloc(0, 8, &a));
    for (int i = 0; i < 100; i++)
        CHECK_OK(ws_session_fill(ws_stream_legacy(0), a, i, 1, 8, 1, 0, true));
    ws_session_shutdown();
    for (int i = 0; i < 30000 && !d->n_goodbyes; i++)
        usleep(1000);
    CHECK(d->n_goodbyes == 1 && d->n_commands == 101); /* what was queued arrived */
    CHECK_OK(ws_session_mem_free(a));
    CHECK(ws_session_device_sync(0) == WS__ERROR__DISCONNECTED);
    ws_session_shutdown();
}
static void test_exit(void **state)
{
    run_case(ends, (struct fake_daemon){0}, NULL);
}

/* ZeroMQ is not instrumented. And ThreadSanitizer can't start threads in the child of a process
 * that has some. */
WS_EXPORT const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1";
}
/* AddressSanitizer's allocator may be locked by another thread at the fork, and stays so in the
 * child: seen as a hang. The plain build runs the case. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define FORK_BEFORE(f)
#else
#define FORK_BEFORE(f) cmocka_unit_test(f),
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_local),
        cmocka_unit_test(test_copies_in_frames),
        cmocka_unit_test(test_copies_in_a_small_window),
        cmocka_unit_test(test_copies_over_tcp),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_copies_that_kernels_may_outrun),
        cmocka_unit_test(test_damaged_images),
        cmocka_unit_test(test_async_work_starts_without_sync),
        cmocka_unit_test(test_errors_of_asynchronous_work),
        cmocka_unit_test(test_no_daemon),
        cmocka_unit_test(test_bad_endpoint),
        cmocka_unit_test(test_silent_daemon),
        cmocka_unit_test(test_other_version),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_daemon_dies),
        cmocka_unit_test(test_daemon_dies_tcp),
        cmocka_unit_test(test_dropped),
        FORK_BEFORE(test_fork_before_connecting) cmocka_unit_test(test_fork_after_connecting),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_exit),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("frontend/session", tests, NULL, NULL);
}
