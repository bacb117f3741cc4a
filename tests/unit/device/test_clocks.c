// SPDX-License-Identifier: Apache-2.0
/* Clocks of real GPUs by wattshare-clocks: the steps, whose a GPU is, and that its own clocks come
 * back whoever dies. NVML is the mock, which writes down what is set. Runs in the build tree's
 * top. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/clocks.h"
#include "device/cuda/cuda.h"

static void uuid(const struct ws_device *d, uint8_t ret[16])
{
    memset(ret, 0xa0 + (int)d->index, 16);
}
static const struct ws_real_ops real = {.uuid = uuid};
static void closed(struct ws_device *d)
{
    (void)d;
}
static const struct ws_device_ops ops = {.close = closed, .real = &real};

struct fixture {
    char folder[64], socket[96], state[96], log[96];
    long told_bytes; /* of the log, by told() */
    pid_t helper;
    struct ws_device a, b; /* two GPUs */
};

static void helper_start(struct fixture *f)
{
    f->helper = fork();
    assert_true(f->helper >= 0);
    if (!f->helper) {
        char library[4096];
        if (!realpath("tests/mock/libnvidia-ml.so.1", library))
            _exit(1);
        execl("backend/wattshare-clocks", "wattshare-clocks", "--socket", f->socket, "--state",
              f->state, "--nvml", library, NULL);
        _exit(1);
    }
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strcpy(at.sun_path, f->socket);
    for (int k = 0; k < 6000; k++) { /* it unlinks the old socket first: who connects is served */
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        bool there = !connect(fd, (struct sockaddr *)&at, sizeof(at));
        close(fd);
        if (there)
            return;
        usleep(10000);
    }
    fail_msg("the helper does not listen");
}

static void helper_end(struct fixture *f, int signal)
{
    int status;
    kill(f->helper, signal);
    assert_int_equal(waitpid(f->helper, &status, 0), f->helper);
    if (signal == SIGTERM)
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    f->helper = 0;
}

static void device_new(struct fixture *f, struct ws_device *d, uint32_t index)
{
    *d = (struct ws_device){
        .ops = &ops, .index = index, .spec = {.core_mhz = 1500, .memory_mhz = 7001}};
    assert_int_equal(ws_clocks_manage(d, f->socket), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    strcpy(f->folder, "/tmp/wattshare-clocks.XXXXXX");
    if (!f || !mkdtemp(f->folder))
        return -1;
    snprintf(f->socket, sizeof(f->socket), "%s/s", f->folder);
    snprintf(f->state, sizeof(f->state), "%s/state", f->folder);
    snprintf(f->log, sizeof(f->log), "%s/log", f->folder);
    setenv("WS_MOCK_NVML_CLOCKS", f->log, 1);
    unsetenv("WS_MOCK_NVML_FAIL");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    if (f->helper)
        helper_end(f, SIGKILL);
    snprintf(command, sizeof(command), "rm -r %s", f->folder);
    int r = system(command);
    free(f);
    return r;
}

/* What was set since it was last asked: "core 1200 1200; memory own; ". The file stays, because the
 * helper may be about to write the next line. */
static const char *told(struct fixture *f)
{
    static char text[2048];
    text[0] = 0;
    FILE *r = fopen(f->log, "r");
    if (!r)
        return text;
    fseek(r, f->told_bytes, SEEK_SET);
    for (char line[64]; fgets(line, sizeof(line), r);) {
        line[strcspn(line, "\n")] = 0;
        strcat(strcat(text, line), "; ");
    }
    f->told_bytes = ftell(r);
    fclose(r);
    return text;
}

/* Until the helper has done it, however slow the machine is. */
static void told_at_last(struct fixture *f, const char *want)
{
    char all[2048] = "";
    for (int k = 0; k < 6000 && !strstr(all, want); k++) {
        strncat(all, told(f), sizeof(all) - strlen(all) - 1);
        usleep(10000);
    }
    assert_non_null(strstr(all, want));
}

static void gone_at_last(const char *path)
{
    int k = 0;
    while (k++ < 6000 && !access(path, F_OK))
        usleep(10000);
    assert_int_equal(access(path, F_OK), -1);
}

static struct ws_device_clocks set(struct ws_device *d, double core, double memory, int want)
{
    struct ws_device_clocks is = {0}, ask = {core == 1 && memory == 1 ? 1 : 0.9, core, memory};
    assert_int_equal(ws_device_set_clocks(d, &ask, &is), want);
    return is;
}

static void near(double a, double b)
{
    assert_true(a > b - 1e-3 && a < b + 1e-3);
}

static void test_steps(void **state)
{
    struct fixture *f = *state;
    static const struct {
        double want;
        unsigned mhz;
    } rows[] = {{0.8, 1200}, {0.81, 1410}, {0.05, 300}, {1.4, 1500}, {0.6, 900}};
    helper_start(f);
    device_new(f, &f->a, 0);
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char line[64];
        struct ws_device_clocks is = set(&f->a, rows[k].want, 1, 0);
        near(is.core, rows[k].mhz / 1500.);
        near(is.memory, 1);
        near(is.volt, 0.9); /* the GPU's own affair */
        assert_true(f->a.clocked);
        snprintf(line, sizeof(line), "core %u %u; ", rows[k].mhz, rows[k].mhz);
        assert_non_null(strstr(told(f), line));
    }
    struct ws_device_clocks is = set(&f->a, 0.6, 0.7, 0);
    near(is.memory, 5001 / 7001.);
    assert_string_equal(told(f), "memory 5001 5001; core 900 900; ");
    is = set(&f->a, 1, 1, 0);
    near(is.core, 1);
    assert_false(f->a.clocked);
    assert_string_equal(told(f), "memory own; core own; ");
    set(&f->a, 1, 1, 0); /* nothing to undo: NVML isn't asked */
    assert_string_equal(told(f), "");
    ws_device_close(&f->a);
}

static void test_own_clocks_come_back(void **state)
{
    struct fixture *f = *state;
    helper_start(f);
    device_new(f, &f->a, 0);
    device_new(f, &f->b, 1);
    set(&f->a, 0.5, 1, 0);
    set(&f->b, 0.5, 1, 0);
    (void)told(f);
    ws_device_close(&f->a);
    told_at_last(f, "core own; ");
    set(&f->b, 0.6, 1, 0); /* the other keeps what it has */
    assert_non_null(strstr(told(f), "core 900 900; "));
    pid_t child = fork();
    if (!child) { /* a daemon that is killed */
        struct ws_device_clocks is, half = {1, 0.5, 1};
        device_new(f, &f->a, 0);
        if (!ws_device_set_clocks(&f->a, &half, &is) && is.core < 0.9)
            pause();
        _exit(1);
    }
    told_at_last(f, "core 900 900; ");
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    told_at_last(f, "core own; ");
    helper_end(f, SIGTERM); /* the helper is told to end */
    assert_non_null(strstr(told(f), "core own; "));
    struct ws_device_clocks is = set(&f->b, 0.5, 1, 0); /* nobody there: what they are now */
    near(is.core, 1);
    assert_false(f->b.clocked);
    assert_non_null(strstr(ws_clocks_text(f->b.clocks), f->socket));
    ws_device_close(&f->b);
}

static void test_helper_killed(void **state)
{
    struct fixture *f = *state;
    char path[160], command[512];
    struct stat st;
    helper_start(f);
    device_new(f, &f->a, 0);
    set(&f->a, 0.5, 1, 0);
    helper_end(f, SIGKILL);
    snprintf(path, sizeof(path), "%s/a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0.gpu", f->state);
    assert_int_equal(stat(path, &st), 0);
    (void)told(f);
    helper_start(f); /* the next one undoes it, and does so after it has begun to listen */
    told_at_last(f, "core own; ");
    gone_at_last(path);
    ws_device_close(&f->a);
    device_new(f, &f->a, 0);
    set(&f->a, 0.5, 1, 0);
    helper_end(f, SIGKILL);
    (void)told(f);
    snprintf(command, sizeof(command),
             "backend/wattshare-clocks --state %s --nvml $PWD/tests/mock/libnvidia-ml.so.1 --reset",
             f->state);
    assert_int_equal(system(command), 0); /* as the unit does */
    assert_non_null(strstr(told(f), "core own; "));
    assert_int_equal(stat(path, &st), -1);
    ws_device_close(&f->a);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    struct ws_device other;
    helper_start(f);
    device_new(f, &f->a, 0);
    device_new(f, &other, 0);
    set(&f->a, 0.5, 1, 0);
    set(&other, 0.8, 1, -ENOTSUP);
    assert_non_null(strstr(ws_clocks_text(other.clocks), "another daemon"));
    (void)told(f);
    set(&other, 1, 1, -ENOTSUP); /* nor may it give back what it doesn't have */
    assert_string_equal(told(f), "");
    ws_device_close(&f->a);
    told_at_last(f, "core own; ");
    near(set(&other, 0.8, 1, 0).core, 0.8);
    ws_device_close(&other);
    helper_end(f, SIGTERM);

    setenv("WS_MOCK_NVML_FAIL", "nvmlDeviceSetGpuLockedClocks:4", 1);
    helper_start(f);
    (void)told(f);
    device_new(f, &f->a, 0);
    set(&f->a, 0.5, 0.7, -ENOTSUP);
    assert_non_null(strstr(ws_clocks_text(f->a.clocks), "must be root"));
    assert_non_null(strstr(told(f), "memory own; core own; ")); /* half of it is not left */
    ws_device_close(&f->a);
}

static void test_messages_that_are_none(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    static const size_t sizes[] = {0, 1, sizeof(struct ws_clocks_ask) - 1,
                                   sizeof(struct ws_clocks_ask), 4096};
    char bytes[4096] = {0}, back[256];
    helper_start(f);
    device_new(f, &f->a, 0);
    set(&f->a, 0.5, 1, 0);
    strcpy(at.sun_path, f->socket);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(send(fd, bytes, sizes[k], 0), (ssize_t)sizes[k]);
        assert_true(recv(fd, back, sizeof(back), 0) <= 0);
        close(fd);
    }
    int idle[64]; /* more than it takes */
    for (int k = 0; k < 64; k++) {
        idle[k] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(idle[k], (struct sockaddr *)&at, sizeof(at)), 0);
    }
    (void)told(f);
    set(&f->a, 0.6, 1, 0);
    assert_non_null(strstr(told(f), "core 900 900; "));
    for (int k = 0; k < 64; k++)
        close(idle[k]);
    ws_device_close(&f->a);
    helper_end(f, SIGTERM);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_steps),   T(test_own_clocks_come_back),   T(test_helper_killed),
        T(test_refused), T(test_messages_that_are_none),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
