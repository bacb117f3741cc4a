// SPDX-License-Identifier: Apache-2.0
/* cli: verbs against something that listens like a daemon and lies. Each verb must end soon, of
 * itself, with words that say what is wrong, and without much memory, whatever it is told. A thread
 * is the daemon: it speaks ZeroMQ's protocol by hand, since libzmq would not say such things. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/macros.h"
#include "protocol/handoff.h"
#include "protocol/protocol.h"

enum { GREETING = 64, READY = 43, MORE = 1, LONG = 2 };
enum { END_MS = 15000, MOST_MIB = 512 };
#define WORST_BYTES (UINT64_C(2) << 30) /* so that a failure is no burden for the machine */

static struct {
    char dir[32], path[64], endpoint[80];
    int listener;
    pthread_t thread;
    _Atomic bool stop;
    _Atomic unsigned n_talks;
    /* Says what it likes. @m: the question. Return: false: no more. */
    bool (*lie)(int fd, const Ws__ClientMessage *m);
} liar;

/* ---- the liar ---- */

static bool say(int fd, const void *p, size_t n)
{
    return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool say_head(int fd, uint8_t flags, uint64_t n)
{
    uint8_t head[9] = {(uint8_t)(flags | LONG)};
    for (int i = 0; i < 8; i++)
        head[8 - i] = (uint8_t)(n >> 8 * i);
    return say(fd, head, sizeof(head));
}

static bool say_message(int fd, const Ws__ServerMessage *m)
{
    size_t n = ws__server_message__get_packed_size(m);
    uint8_t *p = malloc(n + 1);
    bool ok = p != NULL;
    if (ok) {
        ws__server_message__pack(m, p);
        ok = say_head(fd, 0, n) && say(fd, p, n);
    }
    free(p);
    return ok;
}

/* Whether there are so many bytes before the end. */
static bool hear(int fd, void *p, size_t n)
{
    return !n || recv(fd, p, n, MSG_WAITALL) == (ssize_t)n;
}

static bool greet(int fd)
{
    static const uint8_t ours[] = "\377\0\0\0\0\0\0\0\1\177\3\1NULL";
    static const char ready[] = "\4\51\5READY\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0";
    uint8_t greeting[GREETING] = {0}, came[GREETING + READY];
    memcpy(greeting, ours, sizeof(ours) - 1);
    return say(fd, greeting, sizeof(greeting)) && say(fd, ready, sizeof(ready)) &&
           hear(fd, came, sizeof(came));
}

static void *talk(void *arg)
{
    int fd = (int)(intptr_t)arg;
    uint8_t head[2], body[255];
    bool on = greet(fd);
    while (on && hear(fd, head, sizeof(head)) && hear(fd, body, head[1])) {
        Ws__ClientMessage *m = ws__client_message__unpack(NULL, head[1], body);
        on = m && liar.lie(fd, m);
        if (m)
            ws__client_message__free_unpacked(m, NULL);
    }
    close(fd);
    liar.n_talks--;
    return NULL;
}

/* Each connection has a thread. */
static void *live(void *arg)
{
    struct pollfd p = {.fd = liar.listener, .events = POLLIN};
    (void)arg;
    while (poll(&p, 1, -1) == 1 && !liar.stop) {
        int fd = accept4(liar.listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_t one;
        if (fd < 0)
            continue;
        liar.n_talks++;
        assert_int_equal(pthread_create(&one, NULL, talk, (void *)(intptr_t)fd), 0);
        pthread_detach(one);
    }
    return NULL;
}

static void liar_start(bool (*lie)(int fd, const Ws__ClientMessage *m))
{
    liar.lie = lie;
    liar.stop = false;
    strcpy(liar.dir, "/tmp/ws-liar-XXXXXX");
    assert_non_null(mkdtemp(liar.dir));
    snprintf(liar.path, sizeof(liar.path), "%s/sock", liar.dir);
    snprintf(liar.endpoint, sizeof(liar.endpoint), "ipc://%s", liar.path);
    liar.listener = ws_unix_listen(liar.path, SOCK_STREAM, 0600);
    assert_true(liar.listener >= 0);
    assert_int_equal(pthread_create(&liar.thread, NULL, live, NULL), 0);
}

static void liar_stop(void)
{
    liar.stop = true;
    shutdown(liar.listener, SHUT_RDWR); /* wakes the thread */
    pthread_join(liar.thread, NULL);
    while (liar.n_talks) /* whose other ends have ended */
        usleep(1000);
    close(liar.listener);
    unlink(liar.path);
    rmdir(liar.dir);
}

/* ---- the verb ---- */

/* A sanitizer's own memory is more than all that may be taken. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LIMITED 0
#else
#define LIMITED 1
#endif

struct verb {
    const char *words;
    pid_t pid;
    int err; /* its standard error */
};
struct end {
    int status; /* as of waitpid() */
    unsigned ms;
    long mib;
    char text[4096]; /* what it said to standard error */
};

static _Noreturn void be_verb(const char *words, int err)
{
    char line[256], *argv[16] = {"wattshare"}, *save = NULL;
    int n = 1, null = open("/dev/null", O_RDWR);
#if LIMITED
    setrlimit(RLIMIT_DATA, &(struct rlimit){WORST_BYTES, WORST_BYTES});
#endif
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(line, sizeof(line), "%s", words);
    for (char *w = strtok_r(line, " ", &save); w && n < 14; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    setenv("WATTSHARE_SOCKET", liar.endpoint, 1);
    dup2(null, 0);
    dup2(null, 1);
    dup2(err, 2);
    execv("cli/wattshare", argv);
    _exit(120);
}

/* Reads all that it says until its end; kills it when its time is over. */
static void watch(const struct verb *v, struct end *ret)
{
    uint64_t begun_ns = ws_clock_ns();
    size_t n = 0;
    struct pollfd p = {.fd = v->err, .events = POLLIN};
    while (n + 1 < sizeof(ret->text)) {
        unsigned gone_ms = (unsigned)((ws_clock_ns() - begun_ns) / 1000000);
        ssize_t k = 0;
        if (gone_ms >= END_MS || poll(&p, 1, (int)(END_MS - gone_ms)) != 1)
            kill(v->pid, SIGKILL);
        else
            k = read(v->err, ret->text + n, sizeof(ret->text) - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    ret->text[n] = 0;
    if (n + 1 >= sizeof(ret->text)) /* it never stops talking */
        kill(v->pid, SIGKILL);
    close(v->err);
    struct rusage use;
    assert_int_equal(wait4(v->pid, &ret->status, 0, &use), v->pid);
    ret->ms = (unsigned)((ws_clock_ns() - begun_ns) / 1000000);
    ret->mib = use.ru_maxrss / 1024;
}

static struct verb start(const char *words)
{
    int err[2];
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (!pid)
        be_verb(words, err[1]);
    close(err[1]);
    return (struct verb){words, pid, err[0]};
}

/* @status: of its end; @text: what its words have to contain. */
static void judge(const struct verb *v, const struct end *e, int status, const char *text)
{
    bool well = WIFEXITED(e->status) && WEXITSTATUS(e->status) == status && strstr(e->text, text);
#if LIMITED
    well = well && e->mib <= MOST_MIB;
#endif
    if (!well)
        fail_msg("%s: wait status %#x after %u ms with %ld MiB: %s", v->words, (unsigned)e->status,
                 e->ms, e->mib, e->text);
}

static void expect(const char *words, int status, const char *text)
{
    struct verb v = start(words);
    struct end e;
    watch(&v, &e);
    judge(&v, &e, status, text);
}

static const char *const verbs[] = {
    "status", "status --json", "top --batch --count 1", "explain",
    "policy", "smi",           "trace --duration 0.2",  "step collect --job 1"};

/* All at a time: some wait for seconds. */
static void expect_all(int status, const char *text)
{
    struct verb v[WS_ARRAY_SIZE(verbs)];
    static struct end e[WS_ARRAY_SIZE(verbs)];
    for (size_t i = 0; i < WS_ARRAY_SIZE(verbs); i++)
        v[i] = start(verbs[i]);
    for (size_t i = 0; i < WS_ARRAY_SIZE(verbs); i++)
        watch(&v[i], &e[i]);
    for (size_t i = 0; i < WS_ARRAY_SIZE(verbs); i++)
        judge(&v[i], &e[i], status, text);
}

/* ---- answers of which no sense can be made ---- */

static bool too_long(int fd, const Ws__ClientMessage *m)
{
    (void)m;
    return say_head(fd, 0, UINT64_C(1) << 32);
}

static bool parts(int fd, const Ws__ClientMessage *m)
{
    uint8_t some[3 << 16];
    (void)m;
    for (size_t i = 0; i < sizeof(some); i += 3)
        memcpy(some + i, (uint8_t[]){MORE, 1, 'x'}, 3);
    while (say(fd, some, sizeof(some)))
        ;
    return false;
}

static bool noise(int fd, const Ws__ClientMessage *m)
{
    static const uint8_t text[] = "\0\30HTTP/1.1 400 Bad Request";
    (void)m;
    return say(fd, text, sizeof(text) - 1);
}

static bool commands(int fd, const Ws__ClientMessage *m)
{
    uint8_t some[102] = {4, 100, 4, 'P', 'O', 'N', 'G'};
    (void)m;
    while (say(fd, some, sizeof(some)))
        ;
    return false;
}

static bool half(int fd, const Ws__ClientMessage *m)
{
    (void)m;
    (void)!say_head(fd, 0, 100);
    (void)!say(fd, "\"", 1);
    return true; /* silent */
}

static bool hang_up(int fd, const Ws__ClientMessage *m)
{
    (void)half(fd, m);
    return false;
}

/* Messages of the daemon's that are no answer. */
static bool others(int fd, const Ws__ClientMessage *m)
{
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__Notice notice = WS__NOTICE__INIT;
    (void)m;
    a.notice = &notice;
    while (say_message(fd, &a))
        ;
    return false;
}

/* Two bytes for each of very many messages inside one. */
static bool bomb(int fd, const Ws__ClientMessage *m)
{
    enum { TAG_CLIENTS = 5 << 3 | 2, TAG_STATUS = 4 << 3 | 2, INSIDE = 8 << 20 };
    uint8_t head[8] = {TAG_STATUS}, *p = malloc(INSIDE);
    size_t n = 1;
    bool ok = p != NULL;
    (void)m;
    for (uint32_t left = INSIDE; left; left >>= 7)
        head[n++] = (uint8_t)((left & 0x7f) | (left >> 7 ? 0x80 : 0));
    for (size_t i = 0; ok && i < INSIDE; i += 2) {
        p[i] = TAG_CLIENTS;
        p[i + 1] = 0;
    }
    ok = ok && say_head(fd, 0, n + INSIDE) && say(fd, head, n) && say(fd, p, INSIDE);
    free(p);
    return ok;
}

static void with(bool (*lie)(int fd, const Ws__ClientMessage *m), int status, const char *text)
{
    liar_start(lie);
    expect_all(status, text);
    liar_stop();
}

enum { UNAVAILABLE = 69 };
static const char too_much[] = "sends more than a daemon of wattshare does";

static void test_too_long(void **state)
{
    (void)state;
    with(too_long, UNAVAILABLE, too_much);
}

static void test_parts(void **state)
{
    (void)state;
    with(parts, UNAVAILABLE, too_much);
}

static void test_noise(void **state)
{
    (void)state;
    with(noise, UNAVAILABLE, "is no daemon of wattshare");
}

static void test_commands(void **state)
{
    (void)state;
    with(commands, UNAVAILABLE, "Connection timed out");
}

static void test_half(void **state)
{
    (void)state;
    with(half, UNAVAILABLE, "Connection timed out");
}

static void test_hang_up(void **state)
{
    (void)state;
    with(hang_up, UNAVAILABLE, "wattshare: ");
}

static void test_others(void **state)
{
    (void)state;
    with(others, UNAVAILABLE, "Connection timed out");
}

static void test_bomb(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__ /* with which the liar takes longer to say so much than the verbs wait */
    skip();
#endif
    with(bomb, UNAVAILABLE, too_much);
}

/* ---- answers that are wrong ---- */

static void expect_words(bool (*lie)(int fd, const Ws__ClientMessage *m), const char *words,
                         int status, const char *text)
{
    liar_start(lie);
    expect(words, status, text);
    liar_stop();
}

/* Explains when it is asked for the policy, and the other way round. */
static bool mistaken(int fd, const Ws__ClientMessage *m)
{
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__ExplainReply explain = WS__EXPLAIN_REPLY__INIT;
    Ws__PolicyReply policy = WS__POLICY_REPLY__INIT;
    if (m->policy)
        a.explain = &explain;
    else
        a.policy = &policy;
    return say_message(fd, &a);
}

static void test_mistaken(void **state)
{
    (void)state;
    liar_start(mistaken);
    expect("explain", UNAVAILABLE, "Connection timed out");
    expect("policy", UNAVAILABLE, "Connection timed out");
    liar_stop();
}

static bool an_honest_status(int fd)
{
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__StatusReply s = WS__STATUS_REPLY__INIT;
    Ws__GpuStatus g = WS__GPU_STATUS__INIT, *gpus[] = {&g};
    s.version = WS_PROTOCOL_VERSION;
    s.gpus = gpus;
    s.n_gpus = 1;
    a.status = &s;
    return say_message(fd, &a);
}

/* A kernel with an SM set of 64 KiB. */
static bool wide_span(int fd, const Ws__ClientMessage *m)
{
    static uint8_t set[64 << 10];
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__TraceReply t = WS__TRACE_REPLY__INIT;
    Ws__TraceSpan span = WS__TRACE_SPAN__INIT, *spans[] = {&span};
    if (!m->trace)
        return an_honest_status(fd);
    span.sms = (ProtobufCBinaryData){sizeof(set), set};
    t.spans = spans;
    t.n_spans = 1;
    t.seen = t.last = 1;
    a.trace = &t;
    return say_message(fd, &a);
}

static void test_wide_span(void **state)
{
    (void)state;
    expect_words(wide_span, "trace --duration 0.2", 0, "operations");
}

static bool a_kernel(int fd, const Ws__ClientMessage *m, char *name)
{
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__TraceReply t = WS__TRACE_REPLY__INIT;
    Ws__TraceSpan span = WS__TRACE_SPAN__INIT, *spans[] = {&span};
    if (!m->trace)
        return an_honest_status(fd);
    span.name = name;
    t.spans = spans;
    t.n_spans = 1;
    t.seen = t.last = 1;
    a.trace = &t;
    return say_message(fd, &a);
}

/* A kernel whose name is a pair of pairs, 33 deep: some 100 GB of text. */
static bool long_name(int fd, const Ws__ClientMessage *m)
{
    char name[400] = "_Z1f4pairIiiE", *end = name + strlen(name);
    for (int i = 0; i < 33; i++) {
        char c = (char)(i < 10 ? '0' + i : 'A' + i - 10);
        end += sprintf(end, "S_IS%c_S%c_E", c, c);
    }
    return a_kernel(fd, m, name);
}

static void test_long_name(void **state)
{
    (void)state;
    expect_words(long_name, "trace --duration 0.2", 0, "operations");
}

static bool ordinary_name(int fd, const Ws__ClientMessage *m)
{
    char name[] = "_Z6matmulPf";
    return a_kernel(fd, m, name);
}

static void test_ordinary_name(void **state)
{
    char path[64], words[128], text[2048] = "";
    (void)state;
    liar_start(ordinary_name);
    snprintf(path, sizeof(path), "%s/out", liar.dir);
    snprintf(words, sizeof(words), "trace --duration 0.2 --out %s", path);
    expect(words, 0, "operations");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    fclose(f);
    unlink(path);
    liar_stop();
    assert_non_null(strstr(text, "\"matmul(float*)\""));
}

/* There is always one more. */
static bool always_more(int fd, const Ws__ClientMessage *m)
{
    static uint64_t seen;
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__TraceReply t = WS__TRACE_REPLY__INIT;
    if (!m->trace)
        return an_honest_status(fd);
    t.seen = ++seen;
    t.last = UINT64_MAX - 1;
    a.trace = &t;
    return say_message(fd, &a);
}

static void test_always_more(void **state)
{
    (void)state;
    expect_words(always_more, "trace --duration 0.2", 0, "operations");
}

/* More GPUs than there can be, each used by each of many clients. */
static bool many_gpus(int fd, const Ws__ClientMessage *m)
{
    enum { N = 20000 };
    static Ws__GpuStatus g;
    static Ws__GpuStatus *gpus[N];
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__StatusReply s = WS__STATUS_REPLY__INIT;
    (void)m;
    ws__gpu_status__init(&g);
    for (size_t i = 0; i < N; i++)
        gpus[i] = &g;
    s.version = WS_PROTOCOL_VERSION;
    s.gpus = gpus;
    s.n_gpus = N;
    a.status = &s;
    return say_message(fd, &a);
}

static void test_many_gpus(void **state)
{
    (void)state;
    expect_words(many_gpus, "top --batch --count 1 --interval 0.05", UNAVAILABLE,
                 "is no daemon of wattshare");
}

/* As many clients as there may be. */
static uint8_t *very_many;
static size_t very_many_bytes;

static void make_very_many(void)
{
    enum { N = 100000 };
    Ws__ClientStatus *c = calloc(N, sizeof(*c)), **clients = calloc(N, sizeof(*clients));
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__StatusReply s = WS__STATUS_REPLY__INIT;
    assert_true(c && clients);
    for (uint32_t i = 0; i < N; i++) {
        ws__client_status__init(&c[i]);
        c[i].client = i;
        c[i].connected = true;
        clients[i] = &c[i];
    }
    s.version = WS_PROTOCOL_VERSION;
    s.clients = clients;
    s.n_clients = N;
    a.status = &s;
    very_many_bytes = ws__server_message__get_packed_size(&a);
    very_many = malloc(very_many_bytes);
    assert_non_null(very_many);
    ws__server_message__pack(&a, very_many);
    free(clients);
    free(c);
}

static bool many_clients(int fd, const Ws__ClientMessage *m)
{
    (void)m;
    return say_head(fd, 0, very_many_bytes) && say(fd, very_many, very_many_bytes);
}

static void test_many_clients(void **state)
{
    (void)state;
    make_very_many();
    expect_words(many_clients, "top --batch --count 1 --interval 0.05", 0, "");
    free(very_many);
}

/* An error text that tells the terminal something. */
static bool steers(int fd, const Ws__ClientMessage *m)
{
    Ws__ServerMessage a = WS__SERVER_MESSAGE__INIT;
    Ws__ExplainReply explain = WS__EXPLAIN_REPLY__INIT;
    (void)m;
    explain.error = 1;
    explain.text = "\x1b]0;title\a";
    a.explain = &explain;
    return say_message(fd, &a);
}

static void test_steers(void **state)
{
    (void)state;
    expect_words(steers, "explain", 1, "?]0;title?");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_long),     cmocka_unit_test(test_parts),
        cmocka_unit_test(test_noise),        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_half),         cmocka_unit_test(test_hang_up),
        cmocka_unit_test(test_others),       cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_mistaken),     cmocka_unit_test(test_wide_span),
        cmocka_unit_test(test_long_name),    cmocka_unit_test(test_ordinary_name),
        cmocka_unit_test(test_always_more),  cmocka_unit_test(test_many_gpus),
        cmocka_unit_test(test_many_clients), cmocka_unit_test(test_steers),
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("liar", tests, NULL, NULL);
}
