// SPDX-License-Identifier: Apache-2.0
/* backend: what a service needs besides serving: journal entries, users' limits, reloading, the
 * page of metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>
#include <cmocka.h>

#include "backend/client/user.h"
#include "backend/process/activation.h"
#include "backend/process/journal.h"
#include "backend/process/metrics.h"
#include "backend/process/notify.h"
#include "backend/process/reload.h"
#include "tests/lib/wsserver.h"

enum { UID = 1000 }; /* of all peers of wsserver.c */

static int setup(void **state)
{
    *state = wss_new(2);
    return 0;
}

static int teardown(void **state)
{
    struct wss *w = *state;
    ws_access_deinit(&w->config.access);
    wss_free(w);
    return 0;
}

/* ---- journal ---- */

static void has(const char *entry, size_t n, const char *line)
{
    if (!memmem(entry, n, line, strlen(line)))
        fail_msg("\"%s\" is not in \"%.*s\"", line, (int)n, entry);
}

static void test_journal_entry(void **state)
{
    char e[1024];
    static const char text[] =
        "client: dropped client=5 pid=77 exe=/bin/x error=3: bad pid=1 a=b=c, X=1 9=2";
    size_t n = ws_journal_entry(WS_WARN, text, strlen(text), e, sizeof(e));
    assert_true(n > 0);
    has(e, n, "PRIORITY=4\n");
    has(e, n, "SYSLOG_IDENTIFIER=wattshared\n");
    has(e, n, "WATTSHARE_MODULE=client\n");
    has(e, n, "WATTSHARE_CLIENT=5\n");
    has(e, n, "CLIENT_PID=77\n");
    has(e, n, "WATTSHARE_EXE=/bin/x\n");
    has(e, n, "WATTSHARE_ERROR=3\n");
    has(e, n, "WATTSHARE_A=b=c\n");
    has(e, n, "MESSAGE=client: dropped client=5");
    assert_null(memmem(e, n, "CLIENT_PID=1\n", 13)); /* the first counts */
    assert_null(memmem(e, n, "WATTSHARE_X", 11));
    assert_null(memmem(e, n, "WATTSHARE_9", 11));
    static const char two[] = "a: b\nPRIORITY=0";
    static const char want[] = "MESSAGE\n\x0f\0\0\0\0\0\0\0a: b\nPRIORITY=0\nPRIORITY=3\n";
    n = ws_journal_entry(WS_ERROR, two, strlen(two), e, sizeof(e));
    assert_true(n > sizeof(want) && !memcmp(e, want, sizeof(want) - 1));
    assert_int_equal(ws_journal_entry(WS_ERROR, two, strlen(two), e, 40),
                     0); /* too small: nothing */
}

static void test_journal_socket(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char e[1024], stream[64];
    struct stat st;
    snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/ws-journal-%d", (int)getpid());
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(ws_journal_open("/nowhere/at/all"), -ENOENT);
    assert_int_equal(ws_journal_open(a.sun_path), 0);
    ws_log(WS_INFO, "loop: serving gpus=%d", 2);
    ssize_t n = recv(fd, e, sizeof(e), 0);
    ws_journal_close();
    ws_log(WS_INFO, "loop: this line goes to the terminal");
    assert_true(n > 0);
    has(e, (size_t)n, "WATTSHARE_GPUS=2\n");
    has(e, (size_t)n, "PRIORITY=6\n");
    assert_int_equal(recv(fd, e, sizeof(e), 0), -1);
    fstat(fd, &st);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    assert_true(ws_journal_is(fd));
    assert_false(ws_journal_is(0));
    setenv("JOURNAL_STREAM", "1:", 1);
    assert_false(ws_journal_is(fd));
    unsetenv("JOURNAL_STREAM");
    assert_false(ws_journal_is(fd));
    close(fd);
    unlink(a.sun_path);
}

static void test_watchdog_environment(void **state)
{
    char pid[16];
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(ws_notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "3000000", 1);
    assert_int_equal(ws_notify_watchdog_ns(), 1500000000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(ws_notify_watchdog_ns(), 0);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(ws_notify_watchdog_ns(), 1500000000);
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(ws_notify_watchdog_ns(), 0);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* ---- users ---- */

static void limit(struct wss *w, bool everybody, uint32_t uid, uint32_t clients, uint64_t bytes,
                  uint32_t share)
{
    struct ws_user_limits l = {.everybody = everybody,
                               .uid = uid,
                               .limit[WS_RESOURCE_CLIENTS] = clients,
                               .limit[WS_RESOURCE_DEVICE_BYTES] = bytes,
                               .share = share};
    assert_int_equal(ws_access_add(&w->config.access, &l), 0);
}

static void test_user_clients(void **state)
{
    struct wss *w = *state;
    limit(w, true, 0, 1, 0, 100);
    limit(w, false, UID, 2, 0, 250);
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__OK);
    wss_hello(w, 2, NULL);
    assert_int_equal(w->peers[2].hello_error, WS__ERROR__LIMIT_EXCEEDED);
    assert_non_null(strstr(w->peers[2].text, "user 1000 has 2 clients"));
    Ws__ClientMessage bye = WS__CLIENT_MESSAGE__INIT;
    bye.goodbye = true;
    wss_message(w, 0, &bye);
    wss_turn(w);
    wss_hello(w, 3, NULL); /* there is room again */
    assert_int_equal(w->peers[3].hello_error, WS__ERROR__OK);
    struct ws_client *c = ws_list_entry(w->server->clients.all.next, struct ws_client, node);
    assert_int_equal(ws_user_share(c), 250);
}

static void test_user_memory(void **state)
{
    enum { MIB = 1 << 20 };
    struct wss *w = *state;
    limit(w, true, 0, 0, 2 * MIB, 100);
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    uint64_t a = wss_alloc(w, 0, 0, MIB);
    assert_int_not_equal(a, 0);
    assert_int_not_equal(wss_alloc(w, 1, 1, MIB), 0);
    assert_int_equal(wss_alloc(w, 1, 0, 512), 0); /* both are his */
    assert_int_equal(wss_alloc(w, 0, 0, 512), 0);
    Ws__MemFree m = WS__MEM_FREE__INIT;
    m.address = a;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_MEM_FREE, &m)), WS__ERROR__OK);
    assert_int_not_equal(wss_alloc(w, 1, 0, MIB), 0);
    w->config.access.limits[0].limit[WS_RESOURCE_DEVICE_BYTES] = 3 * MIB; /* reloaded */
    assert_int_not_equal(wss_alloc(w, 0, 0, MIB), 0);
    assert_int_equal(wss_alloc(w, 0, 0, 512), 0);
}

static void test_whose_limits(void **state)
{
    struct wss *w = *state;
    assert_null(ws_access_find(&w->config.access, 5));
    limit(w, false, 5, 1, 0, 1);
    assert_null(ws_access_find(&w->config.access, 6));
    limit(w, true, 0, 2, 0, 1);
    limit(w, false, 6, 3, 0, 1);
    assert_int_equal(ws_access_find(&w->config.access, 5)->limit[WS_RESOURCE_CLIENTS], 1);
    assert_int_equal(ws_access_find(&w->config.access, 6)->limit[WS_RESOURCE_CLIENTS], 3);
    assert_int_equal(ws_access_find(&w->config.access, 7)->limit[WS_RESOURCE_CLIENTS], 2);
}

/* ---- keys ---- */

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fchmod(fileno(f), mode);
    fclose(f);
}

static void test_key_files(void **state)
{
    char path[64], text[512], pub[41], sec[41];
    struct ws_curve_keys k;
    unsigned line;
    snprintf(path, sizeof(path), "/tmp/ws-key-%d", (int)getpid());
    assert_int_equal(zmq_curve_keypair(pub, sec), 0);
    assert_int_equal(ws_curve_read("/nowhere", &k, &line), -ENOENT);
    snprintf(text, sizeof(text), "# mine\n\npublic %s\n  secret   %s\n", pub, sec);
    write_file(path, text, 0600);
    assert_int_equal(ws_curve_read(path, &k, &line), 0);
    assert_string_equal(k.public_key, pub);
    assert_string_equal(k.secret_key, sec);
    write_file(path, text, 0640);
    assert_int_equal(ws_curve_read(path, &k, &line), 0); /* a service's group may */
    write_file(path, text, 0604);
    assert_int_equal(ws_curve_read(path, &k, &line), -EPERM);
    snprintf(text, sizeof(text), "public %s\n", pub);
    write_file(path, text, 0644); /* nothing secret in it */
    assert_int_equal(ws_curve_read(path, &k, &line), 0);
    static const char *const wrong[] = {"public x\n", "secret\n", "key 1\n", "public %s more\n",
                                        "public %s\npublic %s\n"};
    static const unsigned at[] = {1, 1, 1, 1, 2};
    for (size_t i = 0; i < WS_ARRAY_SIZE(wrong); i++) {
        char *to = text;
        for (const char *p = wrong[i]; *p; p++) {
            if (!strncmp(p, "%s", 2)) {
                to = stpcpy(to, pub);
                p++;
            } else {
                *to++ = *p;
            }
        }
        *to = 0;
        write_file(path, text, 0600);
        assert_int_equal(ws_curve_read(path, &k, &line), -EINVAL);
        assert_int_equal(line, at[i]);
    }
    unlink(path);
}

static void test_allowed_keys(void **state)
{
    char path[64], text[4096], pub[9][41], sec[41];
    uint8_t key[WS_CURVE_KEY_BYTES];
    struct ws_access a = WS_ACCESS_NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    snprintf(path, sizeof(path), "/tmp/ws-allowed-%d", (int)getpid());
    int n = sprintf(text, "# who may\n");
    for (int i = 0; i < 9; i++) {
        zmq_curve_keypair(pub[i], sec);
        n += sprintf(text + n, "%d %s # of %d\n", 100 + i, pub[i], i);
    }
    write_file(path, text, 0644);
    assert_int_equal(ws_access_load(&a, path, &d), 0);
    assert_int_equal(a.n_allowed, 9);
    for (int i = 0; i < 9; i++) {
        zmq_z85_decode(key, pub[i]);
        assert_int_equal(ws_access_allows(&a, key)->uid, 100 + i);
    }
    key[3] ^= 1;
    assert_null(ws_access_allows(&a, key));
    ws_access_deinit(&a);
    write_file(path, "1 short\n2 also\n", 0644);
    assert_int_equal(ws_access_load(&a, path, &d), 1);
    assert_int_equal(d.n, 2);
    assert_int_equal(d.v[1].line, 2);
    ws_diags_deinit(&d);
    ws_access_deinit(&a);
    unlink(path);
    assert_int_equal(ws_access_load(&a, path, &d), -ENOENT);
}

/* ---- reloading ---- */

static void test_reload(void **state)
{
    struct ws_config live, fresh;
    char later[256];
    assert_int_equal(ws_config_init(&live), 0);
    assert_int_equal(ws_config_init(&fresh), 0);
    ws_reload_apply(&live, &fresh, later, sizeof(later));
    assert_string_equal(later, "");
    fresh.limits.pool[WS_RESOURCE_CLIENTS] = 7;
    fresh.limits.max_message_bytes = 1 << 20;
    fresh.drain_timeout_s = 3;
    fresh.n_loaders = 5;
    fresh.placement = WS_PLACE_FIXED;
    fresh.metrics = strdup("127.0.0.1:1");
    struct ws_user_limits l = {.uid = 3, .limit[WS_RESOURCE_CLIENTS] = 4};
    assert_int_equal(ws_access_add(&fresh.access, &l), 0);
    ws_reload_apply(&live, &fresh, later, sizeof(later));
    assert_string_equal(later, "metrics, loaders, max_message_bytes");
    assert_int_equal(live.limits.pool[WS_RESOURCE_CLIENTS], 7);
    assert_int_equal(live.limits.max_message_bytes, 4 << 20);
    assert_int_equal(live.drain_timeout_s, 3);
    assert_int_equal(live.n_loaders, 2);
    assert_int_equal(live.placement, WS_PLACE_FIXED);
    assert_null(live.metrics);
    assert_int_equal(ws_access_find(&live.access, 3)->limit[WS_RESOURCE_CLIENTS], 4);
    ws_reload_apply(&live, &fresh, later, 12); /* a short buffer is cut, not overrun */
    assert_true(strlen(later) < 12);
    ws_config_deinit(&live);
    ws_config_deinit(&fresh);
}

/* A client keeps to what it was told; new ones are told anew. */
static void test_limits_stay_with_clients(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    w->config.limits.max_streams = 1;
    for (unsigned i = 0; i < 3; i++)
        wss_stream(w, 0, WS_STREAM_FIRST + i, 0, false);
    assert_false(w->peers[0].dropped);
    wss_hello(w, 1, NULL);
    for (unsigned i = 0; i < 3; i++)
        wss_stream(w, 1, WS_STREAM_FIRST + i, 0, false);
    assert_true(w->peers[1].dropped);
    assert_int_equal(w->peers[1].dropped_error, WS__ERROR__LIMIT_EXCEEDED);
}

/* ---- metrics: the text format, checked to the letter ---- */

static bool is_name(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz_", p[i]) && (!i || !strchr("0123456789", p[i])))
            return false;
    return n > 0;
}

/* Return: behind the labels. */
static const char *labels(const char *p)
{
    assert_int_equal(*p, '{');
    do {
        size_t n = strcspn(++p, "=");
        assert_true(is_name(p, n));
        p += n + 1;
        assert_int_equal(*p++, '"');
        for (; *p != '"'; p++) {
            assert_true((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f);
            if (*p == '\\')
                assert_non_null(strchr("\\\"n", *++p));
        }
        p++;
    } while (*p == ',');
    assert_int_equal(*p, '}');
    return p + 1;
}

static void check_page(char *page)
{
    char family[128] = "", type[16] = "", seen[64][128];
    size_t n_seen = 0, n_samples = 0;
    assert_true(page[0] && page[strlen(page) - 1] == '\n');
    for (char *save = NULL, *line = strtok_r(page, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        size_t n = strcspn(line, "{ ");
        if (!strncmp(line, "# HELP ", 7)) {
            assert_true(n_samples > 0 || !family[0]); /* no family without samples */
            size_t k = strcspn(line + 7, " ");
            snprintf(family, sizeof(family), "%.*s", (int)k, line + 7);
            assert_true(is_name(family, k) && !strncmp(family, "wattshare_", 10));
            assert_true(strlen(line) > 7 + k + 1);
            for (size_t i = 0; i < n_seen; i++) /* each family once, all in one place */
                assert_string_not_equal(seen[i], family);
            strcpy(seen[n_seen++], family);
            type[0] = 0;
            n_samples = 0;
        } else if (!strncmp(line, "# TYPE ", 7)) {
            size_t k = strlen(family);
            assert_true(!strncmp(line + 7, family, k) && line[7 + k] == ' ');
            snprintf(type, sizeof(type), "%s", line + 8 + k);
            bool counter = !strcmp(type, "counter");
            assert_true(counter || !strcmp(type, "gauge"));
            assert_int_equal(counter, k > 6 && !strcmp(family + k - 6, "_total"));
        } else {
            char *end;
            assert_true(type[0] && n == strlen(family) && !strncmp(line, family, n));
            const char *v = line[n] == '{' ? labels(line + n) : line + n;
            assert_int_equal(*v, ' ');
            assert_true(strtod(v + 1, &end) >= 0 && end > v + 1 && !*end);
            n_samples++;
        }
    }
    assert_true(n_samples > 0);
}

static void test_metrics_page(void **state)
{
    struct wss *w = *state;
    char *page;
    size_t n;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    struct ws_client *c = ws_list_entry(w->server->clients.all.next, struct ws_client, node);
    strcpy(c->who.task, "a \"task\"\\\n");
    c->energy.gpu[1].busy_uj = 1000001;
    c->energy.gpu[0].idle_uj = 500000;
    c->stats.device_ns = 1;
    c->stats.n_kernels = 3;
    assert_int_equal(ws_metrics_page(w->server, &page, &n), 0);
    assert_int_equal(strlen(page), n);
    static const char sample[] = "wattshare_task_energy_joules_total{user=\"1000\",task=\"a "
                                 "\\\"task\\\"\\\\\\n\"} 1.500001\n";
    has(page, n, sample);
    has(page, n, "wattshare_clients 2\n");
    has(page, n, "} 0.000000001\n");
    check_page(page);
    free(page);
    ws_client_drop(c, WS__ERROR__OK, "over"); /* what it used stays, it goes */
    wss_turn(w);
    assert_int_equal(ws_metrics_page(w->server, &page, &n), 0);
    has(page, n, sample);
    has(page, n, "wattshare_task_clients{user=\"1000\",task=\"a \\\"task\\\"\\\\\\n\"} 0\n");
    has(page, n, "wattshare_clients 1\n");
    check_page(page);
    free(page);
}

static void test_metrics_are_bounded(void **state)
{
    struct wss *w = *state;
    char *page, *p;
    size_t n, n_tasks = 0;
    wss_hello(w, 0, NULL);
    struct ws_client *c = ws_list_entry(w->server->clients.all.next, struct ws_client, node);
    c->stats.n_kernels = 1;
    for (int i = 0; i < WS_TASK_SUMS_MAX + 88; i++) {
        snprintf(c->who.task, sizeof(c->who.task), "task %d", i);
        ws_task_sums_ended(c);
    }
    strcpy(c->who.task, "task 0");
    assert_int_equal(ws_metrics_page(w->server, &page, &n), 0);
    for (p = page; (p = strstr(p, "wattshare_task_kernels_total{")); p++)
        n_tasks++;
    assert_int_equal(n_tasks, WS_TASK_SUMS_MAX + 1);
    has(page, n, "wattshare_task_kernels_total{user=\"\",task=\"other\"} 88\n");
    has(page, n, "wattshare_task_kernels_total{user=\"1000\",task=\"task 0\"} 2\n");
    free(page);
}

static void test_metrics_of_users(void **state)
{
    enum { USERS = WS_METRICS_USERS_MAX + 7 };
    struct wss *w = *state;
    struct ws_account *a[USERS];
    char *page, *p;
    size_t n, n_users = 0;
    w->config.limits.pool[WS_RESOURCE_CLIENTS] = 4;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    wss_hello(w, 2, NULL);
    for (unsigned i = 0; i < USERS; i++) {
        assert_non_null(a[i] = ws_account_of_user(w->server->accounts, 2000 + i));
        assert_int_equal(ws_account_charge(a[i], WS_RESOURCE_DEVICE_BYTES, 10), 0);
    }
    assert_int_equal(ws_metrics_page(w->server, &page, &n), 0);
    has(page, n, "wattshare_pool_limit{resource=\"clients\"} 4\n");
    has(page, n, "wattshare_pool_used{resource=\"clients\"} 2\n");
    has(page, n, "wattshare_user_used{user=\"1000\",resource=\"clients\"} 2\n");
    has(page, n, "wattshare_user_refused_total{user=\"1000\",resource=\"clients\"} 1\n");
    has(page, n, "wattshare_user_used{user=\"other\",resource=\"device_bytes\"} 70\n");
    for (p = page; (p = strstr(p, "\",resource=\"device_bytes\"} 10\n")); p++)
        n_users++;
    assert_int_equal(n_users, WS_METRICS_USERS_MAX);
    for (unsigned i = 0; i < USERS; i++)
        ws_account_unref(a[i]);
    free(page);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journal_entry),
        cmocka_unit_test(test_journal_socket),
        cmocka_unit_test(test_watchdog_environment),
        cmocka_unit_test(test_key_files),
        cmocka_unit_test(test_allowed_keys),
        cmocka_unit_test(test_reload),
        T(test_user_clients),
        T(test_user_memory),
        T(test_whose_limits),
        T(test_limits_stay_with_clients),
        T(test_metrics_page),
        T(test_metrics_are_bounded),
        T(test_metrics_of_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
