// SPDX-License-Identifier: Apache-2.0
/* Tests a GPU's worker process. It fails if one client's fault, or the end of the worker at any
 * moment, costs the other clients anything that they should keep. References are computed here.
 *
 * Usage: worker [DRIVER [NVML]], as tests/device/suite.h says. */
#include "tests/device/suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/packet.h"
#include "device/worker/worker.h"

static struct suite S;
static uint32_t seed = 1;

static uint32_t random_u32(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

static uint8_t *random_bytes(uint64_t n)
{
    uint8_t *p = malloc(n);
    assert_non_null(p);
    for (uint64_t k = 0; k < n; k++)
        p[k] = (uint8_t)random_u32();
    return p;
}

static int setup(void **state)
{
    return suite_begin(&S);
}

static int teardown(void **state)
{
    suite_end(&S);
    return 0;
}

static struct ws_worker_status status(void)
{
    struct ws_worker_status w;
    assert_true(ws_device_worker_status(S.device, &w));
    return w;
}

static uint32_t counter(int c)
{
    uint32_t n;
    suite_get(&S, c, &n, S.vars[c][0], sizeof(n));
    return n;
}

static void count(int c, uint32_t times)
{
    for (uint32_t k = 0; k < times; k++) {
        struct suite_op o = suite_launch(&S, c, K_COUNT, 1, 32, 0, 0, 0, 0);
        suite_run(&S, &o, WS_DEV_OK);
    }
}

/* Ends the worker, and waits until there is another. */
static void end_worker(void)
{
    struct ws_worker_status before = status(), now;
    assert_int_equal(kill(before.pid, SIGKILL), 0);
    do {
        usleep(1000);
        now = status();
    } while (!now.pid || now.n_restarts == before.n_restarts);
}

/* ---- what a client has ---- */

struct belongings {
    int c;
    uint64_t va[4];
    uint64_t bytes[4];
    uint8_t *is[4];
};

static void have(struct belongings *b, int c)
{
    static const uint64_t bytes[4] = {512, 70000, 2 << 20, (5 << 20) + 4096};
    b->c = c;
    for (int k = 0; k < 4; k++) {
        b->bytes[k] = bytes[k];
        b->va[k] = suite_alloc(&S, c, bytes[k]);
        b->is[k] = random_bytes(bytes[k]);
        suite_put(&S, c, b->va[k], b->is[k], bytes[k]);
    }
}

static void check(const struct belongings *b)
{
    for (int k = 0; k < 4; k++) {
        uint8_t *p = malloc(b->bytes[k]);
        assert_non_null(p);
        suite_get(&S, b->c, p, b->va[k], b->bytes[k]);
        assert_memory_equal(p, b->is[k], b->bytes[k]);
        free(p);
    }
}

static void no_more(struct belongings *b)
{
    for (int k = 0; k < 4; k++)
        free(b->is[k]);
}

/* c = a + b, against the host's sum. */
static void add(int c, uint64_t a, uint64_t b, uint64_t to, uint32_t n)
{
    float *x = malloc(n * sizeof(*x)), *y = malloc(n * sizeof(*y)), *z = malloc(n * sizeof(*z));
    assert_true(x && y && z);
    for (uint32_t k = 0; k < n; k++) {
        x[k] = (float)(random_u32() & 0xffff);
        y[k] = (float)(random_u32() & 0xffff);
    }
    suite_put(&S, c, a, x, n * sizeof(*x));
    suite_put(&S, c, b, y, n * sizeof(*y));
    struct suite_op o = suite_launch(&S, c, K_VECADD, n / 64, 64, a, b, to, n);
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, c, z, to, n * sizeof(*z));
    for (uint32_t k = 0; k < n; k++)
        assert_true(z[k] == x[k] + y[k]);
    free(x);
    free(y);
    free(z);
}

/* ---- tests ---- */

/* A faults; B has memory, variables, mapped host memory and nothing under way; C is beside A on the
 * GPU. */
static void test_a_fault_of_one(void **state)
{
    enum { BYTES = 8192 };
    struct belongings b;
    uint64_t a = suite_alloc(&S, 0, 512), flag = suite_alloc(&S, 0, 512), host_va = SUITE_HOST_VA;
    int fd = ws_packet_memfd("suite", BYTES); /* as the daemon makes it */
    assert_true(fd >= 0);
    float *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(host, MAP_FAILED);
    have(&b, 1);
    count(1, 5);
    ws_device_host_register(S.device, host, BYTES, fd);
    assert_int_equal(ws_space_map_host_soon(S.space[1], host_va, BYTES, host), 0);

    uint32_t one = 1, zero = 0;
    struct suite_op c = suite_launch(&S, 0, K_WAIT, 1, 1, flag, 0, 0, 0);
    suite_put(&S, 0, flag, &one, sizeof(one));
    suite_run(&S, &c, WS_DEV_OK); /* it is compiled */
    suite_put(&S, 0, flag, &zero, sizeof(zero));
    suite_submit(&S, &c); /* and now waits on the GPU */
    struct suite_op bad = suite_launch(&S, 0, K_READ, 1, 32, a + 2, 0, 0, 0);
    suite_run(&S, &bad, WS_DEV_E_MISALIGNED);
    suite_wait(&c);
    assert_int_not_equal(c.op.error, WS_DEV_OK);
    assert_non_null(strstr(c.op.text, "worker is restarted"));
    assert_non_null(strstr(c.op.text, "kernel"));

    check(&b);
    assert_int_equal(counter(1), 5 * 32);
    count(1, 1);
    assert_int_equal(counter(1), 6 * 32);
    for (int k = 0; k < BYTES / 4; k++)
        host[k] = (float)k;
    struct suite_op o =
        suite_launch(&S, 1, K_VECADD, BYTES / 4 / 64, 64, host_va, host_va, b.va[3], BYTES / 4);
    float sum[BYTES / 4];
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 1, sum, b.va[3], sizeof(sum));
    for (int k = 0; k < BYTES / 4; k++)
        assert_true(sum[k] == (float)(2 * k));
    struct ws_worker_status w = status();
    assert_int_equal(w.n_restarts, 1);
    assert_non_null(strstr(w.last, "MISALIGNED"));
    assert_null(ws_device_cuda_lost(S.device));
    assert_int_equal(ws_space_unmap(S.space[1], host_va), 0);
    ws_device_host_unregister(S.device, host, BYTES);
    munmap(host, BYTES);
    close(fd);
    no_more(&b);
}

/* Its end between operations is not noticed by what is there, nor by what comes: memory that is
 * made, given back and shared after it. */
static void test_ends_between_operations(void **state)
{
    struct belongings b;
    have(&b, 0);
    for (int round = 0; round < 7; round++) {
        count(0, 1);
        end_worker();
        check(&b);
        assert_int_equal(counter(0), 32 * (round + 1));
        uint64_t va = suite_alloc(&S, 1, 300000);
        add(1, va, va + 65536, va + 131072, 1024);
        assert_int_equal(ws_space_unmap(S.space[1], va), 0);
        /* granules that were taken and given back meanwhile */
        assert_int_equal(ws_space_unmap(S.space[0], b.va[0]), 0);
        assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], b.va[0], 512), 0);
        suite_put(&S, 0, b.va[0], b.is[0], b.bytes[0]);
    }
    struct ws_device_telemetry t;
    ws_device_telemetry(S.device, &t);
    assert_true(t.n_kernels >= 8 && t.n_running == 0);
    no_more(&b);
}

/* Addresses of functions that a program has in memory are those of the worker that ended. */
static void test_function_addresses(void **state)
{
    uint64_t p = suite_alloc(&S, 0, 512);
    struct suite_op o = suite_launch(&S, 0, K_VARS, 1, 1, p, 0, 0, 0);
    uint32_t v = 0;
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, &v, p, sizeof(v));
    assert_int_equal(v, 20 * 3 * 2);
    end_worker();
    struct suite_op again = suite_launch(&S, 0, K_VARS, 1, 1, p, 0, 0, 0);
    suite_run(&S, &again, WS_DEV_E_LAUNCH_FAILURE);
    assert_non_null(strstr(again.op.text, "vars calls functions by addresses"));
    count(0, 1);
}

/* At any moment, with work under way: each operation ends, well or with an error that says so, and
 * what was there before is there. */
static void test_ends_under_load(void **state)
{
    enum { ROUNDS = 20, N = 24, CELLS = 4096 };
    static struct suite_op ops[N];
    struct belongings b;
    uint32_t good = 0, told = 0;
    uint64_t at = suite_alloc(&S, 0, N * CELLS * 4), from = suite_alloc(&S, 0, CELLS * 4);
    uint8_t *bytes = random_bytes(CELLS * 4), *back = malloc(N * CELLS * 4);
    assert_non_null(back);
    suite_put(&S, 0, from, bytes, CELLS * 4);
    have(&b, 1);
    for (int round = 0; round < ROUNDS; round++) {
        struct ws_worker_status before = status();
        for (int k = 0; k < N; k++) {
            uint64_t va = at + (uint64_t)k * CELLS * 4;
            if (k % 3 == 0) /* a kernel; a copy there; one there and back */
                ops[k] = suite_launch(&S, 0, K_COUNT, 8, 128, 0, 0, 0, 0);
            else if (k % 3 == 1)
                ops[k] = (struct suite_op){
                    .op = {.kind = WS_OPK_COPY,
                           .space = S.space[0],
                           .copy = {.dst_va = va, .src_va = from, .bytes = CELLS * 4}}};
            else
                ops[k] = (struct suite_op){.op = {.kind = WS_OPK_COPY,
                                                  .space = S.space[0],
                                                  .copy = {.src_va = from,
                                                           .dst_host = back + k * CELLS * 4,
                                                           .bytes = CELLS * 4}}};
            suite_submit(&S, &ops[k]);
            if (k == round) /* now before, now among, now behind the others */
                assert_int_equal(kill(before.pid, SIGKILL), 0);
        }
        for (int k = 0; k < N; k++) {
            suite_wait(&ops[k]);
            if (ops[k].op.error) {
                assert_int_equal(k % 3, 0); /* copies are done again */
                assert_int_equal(ops[k].op.error, WS_DEV_E_LAUNCH_FAILURE);
                assert_non_null(strstr(ops[k].op.text, "restarted: it was ended by signal 9"));
                told++;
                continue;
            }
            good++;
            uint8_t *p = back + k * CELLS * 4;
            if (k % 3 == 1)
                suite_get(&S, 0, p, at + (uint64_t)k * CELLS * 4, CELLS * 4);
            if (k % 3)
                assert_memory_equal(p, bytes, CELLS * 4);
        }
        while (status().n_restarts == before.n_restarts)
            usleep(1000);
        check(&b);
    }
    print_message("%d ends: %u operations well, %u told\n", ROUNDS, good, told);
    assert_int_equal(status().n_restarts, ROUNDS);
    free(bytes);
    free(back);
    no_more(&b);
}

static void *alloc_main(void *arg)
{
    for (int k = 0; k < 200; k++) {
        uint64_t va = SUITE_VA(1) + (UINT64_C(1) << 30);
        int r = ws_device_mem_alloc(S.device, S.space[1], va, k % 2 ? 4096 : 3 << 20);
        if (r) {
            print_message("memory %d was refused: %d\n", k, r);
            return "memory was refused";
        }
        if (ws_space_unmap(S.space[1], va))
            return "memory was not there";
    }
    return NULL;
}

/* A call that the old one has not answered, the new one does. */
static void test_ends_while_it_is_asked(void **state)
{
    pthread_t t;
    void *wrong;
    assert_int_equal(pthread_create(&t, NULL, alloc_main, NULL), 0);
    for (int k = 0; k < 5; k++)
        end_worker();
    pthread_join(t, &wrong);
    if (wrong)
        fail_msg("%s", (char *)wrong);
    struct ws_device_telemetry m;
    ws_device_telemetry(S.device, &m);
    assert_int_equal(m.memory_used_bytes, 2 * 8192); /* the variables' */
}

static const char *one_instance(struct ws_dmodule *m)
{
    struct ws_dinstance *i;
    struct ws_occupancy fits;
    uint64_t none = 0;
    if (ws_device_occupancy(S.device, m, 0, 32, 0, &fits))
        return "a question about a module was not answered";
    if (ws_device_instance_new(S.device, m, S.space[0], &none, &i))
        return "an instance was refused";
    ws_device_instance_free(S.device, i);
    return NULL;
}

/* Instances of modules that the worker was just told, and questions about them; also of one module
 * that each new worker is told again because there is an instance already. */
static const char *instances(const struct ws_ptx_module *ptx, _Atomic bool *over)
{
    struct ws_dmodule *old, *m;
    struct ws_dinstance *i;
    uint64_t none = 0;
    if (ws_device_module_load(S.device, ptx, &old, NULL) ||
        ws_device_instance_new(S.device, old, S.space[1], &none, &i))
        return "there was no instance to begin with";
    const char *wrong = NULL;
    unsigned n = 0;
    while (!wrong && !*over) {
        if (ws_device_module_load(S.device, ptx, &m, NULL))
            return "a module was refused";
        wrong = one_instance(m);
        ws_device_module_unload(S.device, m);
        usleep(n++ % 4 * 10000); /* a call may also begin while there is no worker */
        wrong = wrong ? wrong : one_instance(old);
    }
    ws_device_instance_free(S.device, i);
    ws_device_module_unload(S.device, old);
    return wrong;
}

static void *instance_main(void *arg)
{
    static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                               ".visible .entry k()\n{\nret;\n}\n";
    struct ws_ptx_module *ptx;
    if (ws_ptx_parse(&ptx, text, strlen(text), NULL, NULL))
        return "the module was not read";
    const char *wrong = instances(ptx, arg);
    ws_ptx_module_free(ptx);
    return (void *)(uintptr_t)wrong;
}

/* The new one is asked for what rests on something that only the old one has answered. */
static void test_ends_between_calls(void **state)
{
    pthread_t t;
    void *wrong;
    _Atomic bool over = false;
    assert_int_equal(pthread_create(&t, NULL, instance_main, &over), 0);
    for (unsigned k = 0; k < 10; k++) {
        usleep(k * 1100);
        end_worker();
    }
    over = true;
    pthread_join(t, &wrong);
    if (wrong)
        fail_msg("%s", (char *)wrong);
}

/* What was cancelled is not done again; a launch that had not begun can be taken back while there
 * is no worker. */
static void test_cancelled_and_ended(void **state)
{
    uint64_t flag = suite_alloc(&S, 0, 512);
    uint32_t one = 1, zero = 0;
    struct suite_op c = suite_launch(&S, 0, K_WAIT, 1, 1, flag, 0, 0, 0);
    suite_put(&S, 0, flag, &one, sizeof(one));
    suite_run(&S, &c, WS_DEV_OK);
    suite_put(&S, 0, flag, &zero, sizeof(zero));
    suite_submit(&S, &c);
    ws_device_cancel(S.device, S.space[0]);
    end_worker();
    suite_wait(&c);
    assert_int_equal(c.op.error, WS_DEV_E_CANCELLED);
    count(0, 1);
    assert_int_equal(counter(0), 32);
}

/* A kernel that waits for ever, of a client that has gone: its worker is ended, and others' memory
 * is as it was. */
static void test_endless(void **state)
{
    struct belongings b;
    uint64_t flag = suite_alloc(&S, 0, 512);
    uint64_t before = status().n_restarts;
    have(&b, 1);
    struct suite_op c = suite_launch(&S, 0, K_WAIT, 1, 1, flag, 0, 0, 0);
    suite_submit(&S, &c);
    usleep(20000);
    assert_int_equal(status().n_restarts, before); /* nobody minds while its client is there */
    ws_device_cancel(S.device, S.space[0]);
    suite_wait(&c);
    assert_int_not_equal(c.op.error, WS_DEV_OK);
    while (status().n_restarts == before)
        usleep(1000);
    assert_non_null(strstr(status().last, "did not end within 0.1 s"));
    check(&b);
    no_more(&b);
}

/* The same while its client is there and others wait: the client is told that it took too long. It
 * may do so again and again without losing the GPU for others. */
static void test_endless_while_others_wait(void **state)
{
    struct belongings b;
    uint64_t flag = suite_alloc(&S, 0, 512);
    have(&b, 1);
    for (int round = 0; round < 7; round++) {
        struct suite_op c = suite_launch(&S, 0, K_WAIT, 1, 1, flag, 0, 0, 0);
        uint64_t before = status().n_restarts;
        suite_submit(&S, &c);
        for (int i = 0; i < 2000 && status().n_restarts == before; i++) {
            int r = ws_device_urge(S.device, &c.op, 20000000);
            assert_true(r == 0 || r == WS_DEVICE_EXECUTED);
            usleep(5000);
        }
        suite_wait(&c);
        assert_int_equal(c.op.error, WS_DEV_E_TIMEOUT);
        assert_non_null(strstr(c.op.text, "did not end while others waited"));
    }
    check(&b);
    no_more(&b);
}

/* Closing does not wait for a worker that comes too late to be told. */
static void test_closed_while_it_ends(void **state)
{
    for (unsigned us = 0; us < 8000; us += 500) {
        assert_int_equal(kill(status().pid, SIGKILL), 0);
        usleep(us);
        suite_end(&S);
        assert_int_equal(suite_begin(&S), 0);
    }
}

/* A GPU that goes on failing is given up, and says why; closing it works. */
static void test_given_up(void **state)
{
    const char *lost = NULL;
    struct belongings b;
    have(&b, 0);
    for (int k = 0; k < 2; k++)
        end_worker();
    check(&b);
    assert_null(ws_device_cuda_lost(S.device));
    assert_int_equal(kill(status().pid, SIGKILL), 0);
    while (!(lost = ws_device_cuda_lost(S.device)))
        usleep(1000);
    assert_non_null(strstr(lost, "restarted 2 times within a minute"));
    struct suite_op o = suite_launch(&S, 0, K_COUNT, 1, 32, 0, 0, 0, 0);
    suite_run(&S, &o, WS_DEV_E_LAUNCH_FAILURE);
    assert_non_null(strstr(o.op.text, "the GPU is lost"));
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], SUITE_VA(0) + (1 << 30), 512),
                     WS_DEV_E_NO_MEMORY);
    no_more(&b);
}

/* Where memory can't be kept, those that had some are told; who comes new is served. */
static void test_memory_that_is_not_kept(void **state)
{
    struct belongings b;
    struct ws_space *space;
    uint32_t n = 7, back = 0;
    if (!suite_target.mock) /* another driver cannot be told to keep none */
        skip();
    have(&b, 0);
    end_worker();
    struct suite_op o = suite_launch(&S, 0, K_COUNT, 1, 32, 0, 0, 0, 0);
    suite_run(&S, &o, WS_DEV_E_LAUNCH_FAILURE);
    assert_non_null(strstr(o.op.text, "memory was lost"));
    assert_int_equal(ws_space_new(&space), 0);
    assert_int_equal(ws_device_mem_alloc(S.device, space, SUITE_VA(7), 512), 0);
    struct suite_op in = {.op = {.kind = WS_OPK_COPY,
                                 .space = space,
                                 .copy = {.dst_va = SUITE_VA(7), .src_host = &n, .bytes = 4}}};
    struct suite_op out = {.op = {.kind = WS_OPK_COPY,
                                  .space = space,
                                  .copy = {.src_va = SUITE_VA(7), .dst_host = &back, .bytes = 4}}};
    suite_run(&S, &in, WS_DEV_OK);
    suite_run(&S, &out, WS_DEV_OK);
    assert_int_equal(back, 7);
    ws_space_free(space);
    no_more(&b);
}

/* While this file is there, the call is stuck. */
static const char *stuck_path(void)
{
    static char path[128];
    snprintf(path, sizeof(path), "worker-stuck.%d", (int)getpid());
    return path;
}

static void make_file(void)
{
    int fd = open(stuck_path(), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_done(const struct suite_op *o)
{
    return __atomic_load_n(&o->done, __ATOMIC_ACQUIRE);
}

/* A call that waits in the driver delays neither the loop nor who stops operations nor other
 * clients' operations. What needs its result waits for it. */
static void test_stops_beside_a_slow_call(void **state)
{
    static const uint32_t zero[4];
    uint32_t v[4] = {1, 1, 1, 1};
    struct suite_op o = suite_launch(&S, 1, K_COUNT, 1, 32, 0, 0, 0, 0),
                    next = suite_launch(&S, 1, K_COUNT, 1, 32, 0, 0, 0, 0);
    if (!suite_target.mock)
        skip();
    make_file();
    uint64_t va = suite_alloc(&S, 0, 4 << 20); /* the worker does not come back from it */
    struct suite_op needs = {.op = {.kind = WS_OPK_COPY,
                                    .space = S.space[0],
                                    .copy = {.src_va = va, .dst_host = v, .bytes = sizeof(v)}}};
    suite_submit(&S, &needs);
    suite_submit(&S, &o);
    int r = suite_preempt(&S, &o); /* which may have begun, or be over */
    assert_true(r >= 0 || r == -ENOTSUP);
    ws_device_cancel(S.device, S.space[1]);
    suite_wait(&o);
    suite_run(&S, &next, WS_DEV_OK);
    struct ws_occupancy fits;
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 32, 0, &fits), 0);
    assert_false(is_done(&needs));
    unlink(stuck_path());
    suite_wait(&needs);
    assert_int_equal(needs.op.error, WS_DEV_OK);
    assert_memory_equal(v, zero, sizeof(v));
}

enum { HELD_MS = 300 };

static void *let_go(void *arg)
{
    usleep(HELD_MS * 1000);
    unlink(stuck_path());
    return NULL;
}

/* Whatever a client does while the driver waits for 300 ms, the daemon's loop is kept for a small
 * part of that. The device measures it, and this program's first thread is its loop. */
static void test_nothing_keeps_the_loop(void **state)
{
    enum { PAGE = 4096 };
    pthread_t thread;
    if (!suite_target.mock)
        skip();
    uint64_t old = suite_alloc(&S, 0, 4 << 20);
    count(0, 1);
    uint64_t before_ns = status().longest_wait_ns, least_ns = HELD_MS * UINT64_C(1000000) / 3;
    int memory = memfd_create("loop", MFD_CLOEXEC);
    assert_true(memory >= 0 && !ftruncate(memory, PAGE));
    void *host = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    assert_true(host != MAP_FAILED);
    make_file();
    assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
    uint64_t va = suite_alloc(&S, 0, 4 << 20), small = suite_alloc(&S, 1, 512);
    assert_int_equal(ws_space_set_access(S.space[0], va, 1, 1), 0);
    ws_device_host_register(S.device, host, PAGE, memory);
    assert_int_equal(ws_space_map_host_soon(S.space[0], SUITE_HOST_VA, PAGE, host), 0);
    struct ws_dinstance *i;
    assert_int_equal(ws_device_instance_borrow(S.device, S.module, S.space[0], S.vars[0], &i), 0);
    ws_device_instance_free(S.device, i);
    assert_int_equal(ws_space_unmap(S.space[0], SUITE_HOST_VA), 0);
    ws_device_host_unregister(S.device, host, PAGE);
    assert_int_equal(ws_space_unmap(S.space[0], old), 0);
    struct ws_occupancy fits;
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 32, 0, &fits), 0);
    assert_true(access(stuck_path(), F_OK) == 0); /* so there was something to wait for */
    assert_in_range(status().longest_wait_ns, 0, WS_MAX(before_ns, least_ns));
    pthread_join(thread, NULL);
    uint32_t v = 1;
    suite_get(&S, 1, &v, small, sizeof(v));
    assert_int_equal(v, 0);
    munmap(host, PAGE);
    close(memory);
}

/* Begins with a driver that has @variable in its environment. */
static int setup_with(const char *variable, const char *value)
{
    const char *usual = getenv(variable);
    char *before = usual ? strdup(usual) : NULL;
    setenv(variable, value, 1);
    int r = suite_begin(&S);
    unsetenv(variable);
    if (before)
        setenv(variable, before, 1);
    free(before);
    return r;
}

static int setup_stuck(void **state)
{
    char value[160];
    snprintf(value, sizeof(value), "cuMemCreate:%s", stuck_path());
    return setup_with("WS_MOCK_STUCK", value);
}

/* ---- the loop does not wait, whatever the driver waits for ---- */

enum { LIMIT_NS = 1000000, ATTEMPTS = 50, N_STEPS = 11, STEP_PAGE = 4096 };

/* A thread of a loader, as the daemon has them. */
struct loading {
    struct ws_ptx_module *ptx;
    struct ws_dmodule *module;
    _Atomic bool loaded;
};

static void *load_main(void *arg)
{
    struct loading *l = arg;
    static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                               ".global .align 4 .u32 g;\n.visible .entry k()\n{\n"
                               ".reg .b32 %r;\nst.global.u32 [g], 1;\nret;\n}\n";
    if (ws_ptx_parse(&l->ptx, text, strlen(text), NULL, NULL) ||
        ws_device_module_load(S.device, l->ptx, &l->module, NULL))
        return "the module was not loaded";
    l->loaded = true;
    return NULL;
}

static uint64_t since(uint64_t *io_ns)
{
    uint64_t now = ws_clock_ns(), ns = now - *io_ns;
    *io_ns = now;
    return ns;
}

/* What clients do in one turn of the loop, and how long it kept the loop, step by step. */
static void turn(void *host, int memory, struct suite_op *launch, struct suite_op *copy,
                 uint64_t ret_ns[N_STEPS])
{
    struct ws_dinstance *i;
    struct ws_occupancy fits;
    uint64_t t = ws_clock_ns(), n = 0, va = suite_alloc(&S, 0, 4 << 20);
    ret_ns[n++] = since(&t);
    uint64_t small = suite_alloc(&S, 0, 512);
    ret_ns[n++] = since(&t);
    assert_int_equal(ws_space_set_access(S.space[0], va, 1, 1), 0);
    ret_ns[n++] = since(&t);
    ws_device_host_register(S.device, host, STEP_PAGE, memory);
    ret_ns[n++] = since(&t);
    assert_int_equal(ws_device_instance_borrow(S.device, S.module, S.space[0], S.vars[0], &i), 0);
    ret_ns[n++] = since(&t);
    *launch = suite_launch(&S, 0, K_COUNT, 1, 32, 0, 0, 0, 0); /* of code that is not loaded */
    launch->op.launch.instance = i;
    suite_submit(&S, launch);
    ret_ns[n++] = since(&t);
    *copy = (struct suite_op){.op = {.kind = WS_OPK_COPY,
                                     .space = S.space[0],
                                     .copy = {.dst_va = small, .src_host = host, .bytes = 64}}};
    suite_submit(&S, copy);
    ret_ns[n++] = since(&t);
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 32, 0, &fits), 0);
    ret_ns[n++] = since(&t);
    (void)suite_preempt(&S, launch);
    ret_ns[n++] = since(&t);
    ws_device_host_unregister(S.device, host, STEP_PAGE);
    ret_ns[n++] = since(&t);
    assert_int_equal(ws_space_unmap(S.space[0], va), 0);
    ret_ns[n++] = since(&t);
    assert_int_equal(n, N_STEPS);
}

/* A kernel has the GPU, and every call of the driver that may wait for it does. Meanwhile nothing
 * that clients do keeps the daemon's loop for 1 ms. This program's first thread is the loop. On a
 * busy machine any thread may stand still for that long, so each step has several attempts; a wait
 * for the kernel would be in all of them. */
static void test_the_loop_never_waits(void **state)
{
    static const char *const names[N_STEPS] = {
        "memory", "small memory", "access",     "pinned memory",   "an instance", "a launch",
        "a copy", "occupancy",    "preempting", "unpinned memory", "unmapping"};
    static struct suite_op launches[ATTEMPTS], copies[ATTEMPTS];
    uint64_t best[N_STEPS], ns[N_STEPS], worst = 0;
    struct loading l = {0};
    char began[160];
    pthread_t loader;
    void *wrong = NULL;
    int n = 0;
    if (!suite_target.mock)
        skip();
    snprintf(began, sizeof(began), "%s.began", stuck_path());
    int memory = memfd_create("loop", MFD_CLOEXEC);
    assert_true(memory >= 0 && !ftruncate(memory, STEP_PAGE));
    void *host = mmap(NULL, STEP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    assert_true(host != MAP_FAILED);
    memset(best, 0xff, sizeof(best));
    struct suite_op holds = suite_launch(&S, 1, K_COUNT, 1, 32, 0, 0, 0, 0);
    suite_submit(&S, &holds);
    while (access(began, F_OK)) /* until it has the GPU: the device counts it before that */
        usleep(1000);
    assert_int_equal(pthread_create(&loader, NULL, load_main, &l), 0);
    do {
        worst = 0;
        turn(host, memory, &launches[n], &copies[n], ns);
        for (int k = 0; k < N_STEPS; k++) {
            best[k] = WS_MIN(best[k], ns[k]);
            worst = WS_MAX(worst, best[k]);
        }
    } while (++n < ATTEMPTS && worst > LIMIT_NS);
    assert_false(is_done(&holds)); /* so there was something to wait for */
    assert_false(l.loaded);
    for (int k = 0; k < N_STEPS; k++)
        if (best[k] > LIMIT_NS)
            fail_msg("%s kept the loop for %.1f ms each time", names[k], (double)best[k] / 1e6);
    print_message("%d turns: no step keeps the loop for more than %.0f us\n", n,
                  (double)worst / 1e3);
    make_file(); /* kernels may end */
    suite_wait(&holds);
    for (int k = 0; k < n; k++) {
        suite_wait(&launches[k]);
        suite_wait(&copies[k]);
        assert_true(!launches[k].op.error && !copies[k].op.error);
        launches[k].op.launch.progress = ws_progress_free(launches[k].op.launch.progress);
        ws_device_instance_free(S.device, launches[k].op.launch.instance);
    }
    pthread_join(loader, &wrong);
    unlink(stuck_path());
    unlink(began);
    if (wrong)
        fail_msg("%s", (char *)wrong);
    ws_device_module_unload(S.device, l.module);
    ws_ptx_module_free(l.ptx);
    munmap(host, STEP_PAGE);
    close(memory);
}

static int setup_waits(void **state)
{
    setenv("WS_MOCK_UNTIL", stuck_path(), 1);
    make_file(); /* the device runs kernels when it is opened */
    int r = setup_with("WS_MOCK_WAITS", "all");
    unlink(stuck_path());
    unsetenv("WS_MOCK_UNTIL");
    return r;
}

/* ---- preempting beside copies ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The queues of both copy engines are full and do not move. Launches begin and are stopped all the
 * same, and the worker has asked the GPU to stop them within 1 ms of being told. As above, it is
 * enough if that holds once: a wait for the copies would be in all rounds. */
static void test_preempts_beside_full_queues(void **state)
{
    enum { COPIES = 40, BYTES = 1 << 16, BLOCKS = 20000, ROUNDS = 20 };
    static uint8_t host[COPIES][BYTES];
    static struct suite_op copies[COPIES];
    uint64_t asked[ROUNDS], stopped[ROUNDS];
    uint32_t n = 0;
    if (!suite_target.mock)
        skip();
    uint64_t va = suite_alloc(&S, 1, COPIES * BYTES);
    struct suite_op o = suite_launch(&S, 0, K_COUNT, BLOCKS, 32, 0, 0, 0, 0);
    suite_run(&S, &o, WS_DEV_OK); /* its code is loaded */
    make_file();
    for (int k = 0; k < COPIES; k++) {
        copies[k] = (struct suite_op){
            .op = {.kind = WS_OPK_COPY, .space = S.space[1], .copy = {.bytes = BYTES}}};
        if (k % 2) {
            copies[k].op.copy.dst_va = va + (uint64_t)k * BYTES;
            copies[k].op.copy.src_host = host[k];
        } else {
            copies[k].op.copy.src_va = va + (uint64_t)k * BYTES;
            copies[k].op.copy.dst_host = host[k];
        }
        suite_submit(&S, &copies[k]);
    }
    for (int k = 0; n < ROUNDS && k < 20 * ROUNDS; k++) {
        o = suite_launch(&S, 0, K_COUNT, BLOCKS, 32, 0, 0, 0, 0);
        suite_submit(&S, &o);
        usleep(500);
        uint64_t t = ws_clock_ns();
        (void)suite_preempt(&S, &o);
        suite_wait(&o);
        assert_int_equal(o.op.error, WS_DEV_OK);
        if (o.op.preempted) { /* it had not ended */
            stopped[n] = ws_clock_ns() - t;
            asked[n++] = status().preempt_ns;
        }
        o.op.launch.progress = ws_progress_free(o.op.launch.progress);
    }
    for (int k = 0; k < COPIES; k++)
        assert_false(is_done(&copies[k]));
    assert_int_equal(n, ROUNDS);
    assert_in_range(status().longest_preempt_ns, asked[0], UINT64_MAX);
    qsort(asked, n, sizeof(*asked), compare);
    qsort(stopped, n, sizeof(*stopped), compare);
    print_message("preempted beside %d copies: asked within %.0f us (half of them), %.0f us (all); "
                  "stopped within %.0f us (half), %.0f us (all)\n",
                  COPIES, (double)asked[n / 2] / 1e3, (double)asked[n - 1] / 1e3,
                  (double)stopped[n / 2] / 1e3, (double)stopped[n - 1] / 1e3);
    assert_in_range(asked[0], 1, LIMIT_NS);
    unlink(stuck_path());
    for (int k = 0; k < COPIES; k++)
        suite_wait(&copies[k]);
}

static int setup_full_queues(void **state)
{
    suite_target.options.preemptible = true;
    int r = setup_with("WS_MOCK_COPIES_WAIT", stuck_path());
    suite_target.options.preemptible = false;
    return r;
}

/* Code that is released while it is being compiled delays no other client's calls. */
static void test_released_while_it_is_compiled(void **state)
{
    static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                               ".global .align 4 .u32 g;\n.visible .entry k()\n{\n"
                               ".reg .b32 %r;\nst.global.u32 [g], 1;\nret;\n}\n";
    struct ws_ptx_module *ptx;
    struct ws_dmodule *m;
    struct ws_dinstance *i;
    uint32_t v = 1;
    if (!suite_target.mock)
        skip();
    assert_int_equal(ws_ptx_parse(&ptx, text, strlen(text), NULL, NULL), 0);
    assert_int_equal(ws_device_module_load(S.device, ptx, &m, NULL), 0);
    uint64_t g = suite_alloc(&S, 0, 512);
    make_file();
    assert_int_equal(ws_device_instance_borrow(S.device, m, S.space[0], &g, &i), 0);
    usleep(50000); /* the compiler has it */
    ws_device_instance_free(S.device, i);
    uint64_t va = suite_alloc(&S, 1, 4 << 20);
    suite_get(&S, 1, &v, va, sizeof(v));
    assert_int_equal(v, 0);
    assert_int_equal(unlink(stuck_path()), 0);
    ws_device_module_unload(S.device, m);
    ws_ptx_module_free(ptx);
}

static int setup_slow_compiler(void **state)
{
    char value[160];
    snprintf(value, sizeof(value), "cuModuleLoadDataEx:%s", stuck_path());
    return setup_with("WS_MOCK_STUCK", value);
}

/* What a client asks for is done by the next worker if the call tells first that a fault of
 * somebody else's has destroyed the context. */
static void test_asked_while_the_context_is_lost(void **state)
{
    enum { TIMES = 12 }; /* of which one fails */
    if (!suite_target.mock)
        skip();
    for (int k = 0; k < TIMES; k++) {
        uint8_t byte = 1;
        uint64_t va = suite_alloc(&S, 1, 4 << 20);
        suite_get(&S, 1, &byte, va, 1);
        assert_int_equal(byte, 0);
    }
    assert_int_equal(status().n_restarts, 1);
}

static int setup_fault_in_a_call(void **state)
{
    return setup_with("WS_MOCK_FAIL", "cuMemSetAccess:8:MISALIGNED_ADDRESS");
}

static int setup_unkept(void **state)
{
    return setup_with("WS_MOCK_NO_EXPORT", "1");
}

static int setup_impatient(void **state)
{
    suite_target.options.cancel_ns = 100000000;
    int r = suite_begin(&S);
    suite_target.options.cancel_ns = 0;
    return r;
}

static int setup_two(void **state)
{
    suite_target.options.max_restarts = 2;
    int r = suite_begin(&S);
    suite_target.options.max_restarts = 64;
    return r;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(test_a_fault_of_one),
        T(test_ends_between_operations),
        T(test_function_addresses),
        T(test_ends_under_load),
        T(test_ends_while_it_is_asked),
        T(test_ends_between_calls),
        T(test_cancelled_and_ended),
        T(test_closed_while_it_ends),
        cmocka_unit_test_setup_teardown(test_endless, setup_impatient, teardown),
        cmocka_unit_test_setup_teardown(test_endless_while_others_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_up, setup_two, teardown),
        cmocka_unit_test_setup_teardown(test_stops_beside_a_slow_call, setup_stuck, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_keeps_the_loop, setup_stuck, teardown),
        cmocka_unit_test_setup_teardown(test_the_loop_never_waits, setup_waits, teardown),
        cmocka_unit_test_setup_teardown(test_preempts_beside_full_queues, setup_full_queues,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_released_while_it_is_compiled, setup_slow_compiler,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_memory_that_is_not_kept, setup_unkept, teardown),
        cmocka_unit_test_setup_teardown(test_asked_while_the_context_is_lost, setup_fault_in_a_call,
                                        teardown),
    };
    if (!suite_target_parse(argc, argv) || !suite_target.worker) {
        fprintf(stderr, "usage: worker worker [DRIVER [NVML]]\n");
        return 2;
    }
    suite_target.options.max_restarts = 64;
    if (getenv("SUITE_FILTER"))
        cmocka_set_test_filter(getenv("SUITE_FILTER"));
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
