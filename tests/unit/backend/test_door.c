// SPDX-License-Identifier: Apache-2.0
/* wire: where connections come in, with sockets of the test's own that say what libzmq never
 * would. Whoever floods the door takes from himself, and what he takes is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/process/probe.h"
#include "backend/wire/door.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/handoff.h"

enum { MESSAGES = 4096, MAX_BYTES = 4 << 20, PATIENCE_S = 60 };

struct fixture {
    struct ws_accounts *accounts;
    struct ws_account *me;
    struct ws_door *door;
    struct ws_access access;
    char path[64];
    uint64_t pool[_WS_RESOURCE_N];
    bool wants, all_known;
    unsigned n_asked;   /* whether the next message is wanted */
    uint64_t cost_ns;   /* of each message */
    uint64_t known[64]; /* who has said "hello" */
    unsigned n_known;
    struct {
        uint64_t peer;
        size_t n;
        char text[16];
        bool oversized;
    } got[MESSAGES];
    unsigned n_got, n_ended;
    uint64_t ended[MESSAGES];
    size_t most_queued; /* of the account, at any message */
};

/* ---- what the server would do ---- */

static void message(void *arg, const struct ws_message *m)
{
    struct fixture *f = arg;
    if (f->n_got == MESSAGES) /* a test that floods does not look at all */
        f->n_got = 0;
    for (uint64_t end = ws_clock_ns() + f->cost_ns; ws_clock_ns() < end;)
        ;
    __typeof__(&f->got[0]) g = &f->got[f->n_got++];
    g->peer = m->peer->id;
    g->oversized = m->oversized;
    g->n = m->n_frames ? m->frames[0].n : 0;
    if (m->n_frames)
        snprintf(g->text, sizeof(g->text), "%.*s", (int)g->n, (const char *)m->frames[0].data);
    if (!strcmp(g->text, "hello"))
        f->known[f->n_known++] = m->peer->id;
}

static bool known(void *arg, const struct ws_peer *p)
{
    struct fixture *f = arg;
    for (unsigned i = 0; i < f->n_known; i++)
        if (f->known[i] == p->id)
            return true;
    return f->all_known;
}

static bool wants(void *arg, const struct ws_peer *p)
{
    struct fixture *f = arg;
    (void)p;
    f->n_asked++;
    return f->wants;
}

static void ended(void *arg, const struct ws_peer *p)
{
    struct fixture *f = arg;
    f->ended[f->n_ended++ % MESSAGES] = p->id;
}

static uint64_t pool(void *arg, enum ws_resource r)
{
    return ((struct fixture *)arg)->pool[r];
}

/* ---- setup ---- */

static int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    ws_log_set_level(WS_ERROR + 1);
    snprintf(f.path, sizeof(f.path), "/tmp/wst-door-%d", (int)getpid());
    unlink(f.path);
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++)
        f.pool[r] = WS_ACCOUNT_UNLIMITED;
    f.wants = true;
    assert_int_equal(
        ws_accounts_new(&f.accounts, &(struct ws_accounts_ops){.arg = &f, .pool = pool}), 0);
    f.me = ws_account_of_user(f.accounts, getuid());
    struct ws_door_options o = {.ops = {&f, message, known, wants, ended},
                                .accounts = f.accounts,
                                .access = &f.access,
                                .curve_secret = "",
                                .max_message_bytes = MAX_BYTES,
                                .heartbeat_s = 5};
    assert_int_equal(ws_door_new(&f.door, &o), 0);
    int fd = ws_unix_listen(f.path, SOCK_STREAM, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ws_door_listen(f.door, fd, true), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_door_free(f->door);
    /* nothing is left on anybody's account */
    assert_int_equal(ws_accounts_used(f->accounts, WS_RESOURCE_CONNECTIONS), 0);
    assert_int_equal(ws_accounts_used(f->accounts, WS_RESOURCE_QUEUED_BYTES), 0);
    ws_account_unref(f->me);
    ws_accounts_free(f->accounts);
    unlink(f->path);
    return 0;
}

/* ---- the other end ---- */

static const uint8_t greeting[64] = {0xff, [8] = 1, [9] = 0x7f, 3, 1, 'N', 'U', 'L', 'L'};

static int plug(struct fixture *f)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, f->path, strlen(f->path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
        return fd;
    close(fd);
    return -1;
}

static void say(int fd, const void *p, size_t n)
{
    assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
}

static void say_frame(int fd, const char *text)
{
    uint8_t head[2] = {0, (uint8_t)strlen(text)};
    say(fd, head, 2);
    say(fd, text, strlen(text));
}

static void say_ready(int fd, const char *identity, size_t n)
{
    uint8_t c[128] = {4, (uint8_t)(6 + 22 + 13 + n)};
    memcpy(c + 2, "\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0", 40);
    c[42] = (uint8_t)n;
    memcpy(c + 43, identity, n);
    say(fd, c, 43 + n);
}

static int introduce(struct fixture *f)
{
    int fd = plug(f);
    assert_true(fd >= 0);
    say(fd, greeting, sizeof(greeting));
    say_ready(fd, "", 0);
    return fd;
}

/* ---- the loop ---- */

static void turn(struct fixture *f)
{
    struct pollfd p = {.fd = ws_door_fd(f->door), .events = POLLIN};
    int ms = ws_door_timeout_ms(f->door);
    (void)poll(&p, 1, ms < 0 || ms > 5 ? 5 : ms);
    ws_door_turn(f->door);
    size_t queued = ws_account_used(f->me, WS_RESOURCE_QUEUED_BYTES);
    f->most_queued = WS_MAX(f->most_queued, queued);
}

static void turns(struct fixture *f, int n)
{
    while (n--)
        turn(f);
}

/* Turns until so many messages have come, or for too long. */
static void await_messages(struct fixture *f, unsigned n)
{
    uint64_t end = ws_clock_ns() + PATIENCE_S * WS_NS_PER_S;
    while (f->n_got < n && ws_clock_ns() < end)
        turn(f);
    assert_true(f->n_got >= n);
}

static void await_ended(struct fixture *f, unsigned n)
{
    uint64_t end = ws_clock_ns() + PATIENCE_S * WS_NS_PER_S;
    while (f->n_ended < n && ws_clock_ns() < end)
        turn(f);
    assert_int_equal(f->n_ended, n);
}

/* Whether the other end was closed, after all that was sent. */
static bool is_closed(int fd)
{
    char waste[4096];
    ssize_t n;
    while ((n = recv(fd, waste, sizeof(waste), 0)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

/* ---- tests ---- */

static void test_last_messages_before_the_end(void **state)
{
    struct fixture *f = *state;
    static char words[1000 * 12];
    int fd = introduce(f);
    for (size_t i = 0; i < sizeof(words); i += 12)
        memcpy(words + i, "\0\12last words", 12);
    say(fd, words, sizeof(words));
    close(fd);
    await_ended(f, 1);
    assert_int_equal(f->n_got, 1000);
    assert_int_equal(f->ended[0], f->got[999].peer);
}

/* A process that is being started has all of the daemon's files open for a while. What the daemon
 * closes then must not be told of any more, because nothing is left of it. */
static void test_ends_while_a_process_starts(void **state)
{
    struct fixture *f = *state;
    f->pool[WS_RESOURCE_CONNECTIONS] = 2; /* who is alone may have one */
    int fd = plug(f);
    turns(f, 5);
    pid_t starting = fork();
    if (!starting) {
        pause();
        _exit(0);
    }
    int next = plug(f); /* makes room for itself */
    turns(f, 5);
    shutdown(fd, SHUT_RDWR);
    struct pollfd p = {.fd = ws_door_fd(f->door), .events = POLLIN};
    int n_told = poll(&p, 1, 0);
    kill(starting, SIGKILL);
    assert_int_equal(waitpid(starting, NULL, 0), starting);
    assert_int_equal(f->n_ended, 1);
    assert_int_equal(n_told, 0);
    close(fd);
    close(next);
}

static void test_who_is_behind_it(void **state)
{
    struct fixture *f = *state;
    int fd = introduce(f);
    say_frame(fd, "x");
    await_messages(f, 1);
    struct ws_peer_info info;
    struct ws_peer peer = {f->got[0].peer};
    ws_door_info(f->door, &(struct ws_message){.peer = &peer}, &info);
    assert_true(info.ipc && info.has_uid);
    assert_int_equal(info.uid, getuid());
    assert_int_equal(info.pid, getpid());
    assert_false(ws_door_hung_up(f->door, &peer));
    close(fd);
    await_ended(f, 1);
    assert_true(ws_door_hung_up(f->door, &peer));
    assert_int_equal(ws_door_send(f->door, &peer, "x", 1), -EHOSTUNREACH);
}

/* libzmq aborts when two claim the same name, or one that it gives out itself. */
static void test_names_mean_nothing(void **state)
{
    struct fixture *f = *state;
    enum { N = 8 };
    int fds[N];
    for (int i = 0; i < N; i++) {
        fds[i] = plug(f);
        say(fds[i], greeting, sizeof(greeting));
        say_ready(fds[i], i & 1 ? "\0\0\0\0\1" : "same", i & 1 ? 5 : 4);
        say_frame(fds[i], "x");
    }
    await_messages(f, N);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(f->got[i].peer, f->got[k].peer);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    await_ended(f, N);
}

/* Thousands that say nothing: one who speaks is served at once, before and after. */
static void test_silent_flood(void **state)
{
    struct fixture *f = *state;
    enum { N = 3000, SLOTS = 128 };
    static int fds[N];
    f->pool[WS_RESOURCE_CONNECTIONS] = 2 * SLOTS; /* who is alone may have half of them */
    int client = introduce(f);
    say_frame(client, "hello");
    await_messages(f, 1);
    for (int i = 0; i < N; i++) {
        while ((fds[i] = plug(f)) < 0)
            turn(f);
        assert_true(ws_door_n_connections(f->door) <= SLOTS);
        if (i >= SLOTS && i % 64 == 0)
            close(fds[i - SLOTS]), fds[i - SLOTS] = -1;
    }
    say_frame(client, "still there");
    int late = introduce(f);
    say_frame(late, "hello");
    await_messages(f, 3);
    assert_int_equal(ws_account_used(f->me, WS_RESOURCE_CONNECTIONS), SLOTS);
    assert_false(f->n_ended == 0);
    for (unsigned i = 0; i < f->n_ended && i < MESSAGES; i++)
        assert_int_not_equal(f->ended[i], f->got[0].peer); /* a client leaves no room */
    for (int i = 0; i < N; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    close(client);
    close(late);
    turns(f, 200);
    assert_int_equal(ws_door_n_connections(f->door), 0);
}

/* No descriptor is left: clients stay, the newest come in for the oldest that said nothing, and
 * where all are clients the new one is turned away. The loop does not spin. */
static void test_no_descriptor_left(void **state)
{
    struct fixture *f = *state;
    enum { N = 40, LEFT = 8 };
    struct rlimit old, few;
    int fds[N], client = introduce(f);
    say_frame(client, "hello");
    await_messages(f, 1);
    for (int i = 0; i < N; i++)
        fds[i] = plug(f); /* they wait at the listener */
    int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = (rlim_t)next + LEFT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    turns(f, 50);
    assert_int_equal(ws_door_n_connections(f->door), 1 + LEFT);
    assert_int_equal(f->n_ended, N - LEFT);
    say_frame(client, "x");
    await_messages(f, 2);
    f->all_known = true;
    few.rlim_cur = old.rlim_cur;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int last = plug(f);
    few.rlim_cur = (rlim_t)next + LEFT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    turns(f, 20);
    assert_int_equal(ws_door_n_connections(f->door), 1 + LEFT);
    assert_true(is_closed(last));
    assert_int_not_equal(ws_door_timeout_ms(f->door), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    f->all_known = false;
    for (int i = 0; i < N; i++)
        close(fds[i]);
    close(client);
    close(last);
    turns(f, 50);
}

/* A message that never ends: a stranger's is cut off early, a client's at the limit; what of it
 * waits is on the account, and is nothing once it is cut off. */
static void test_message_without_end(void **state)
{
    struct fixture *f = *state;
    static uint8_t frame[9 + 60000] = {1 | 2, [7] = 60000 >> 8, [8] = 60000 & 255};
    for (int client = 0; client < 2; client++) {
        int fd = introduce(f);
        f->n_got = f->n_ended = 0;
        f->most_queued = 0;
        if (client) {
            say_frame(fd, "hello");
            await_messages(f, 1);
        }
        size_t sent = 0;
        ssize_t n = 0;
        while (!f->n_ended && sent < 100u << 20) {
            n = send(fd, frame + sent % sizeof(frame), sizeof(frame) - sent % sizeof(frame),
                     MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
            turn(f);
        }
        assert_int_equal(f->n_ended, 1);
        assert_true(f->got[f->n_got - 1].oversized);
        assert_true(f->most_queued <= (client ? (size_t)MAX_BYTES : 64u << 10) + (64 << 10));
        assert_true(!client || f->most_queued > 60000 * 60);
        turns(f, 3);
        assert_int_equal(ws_account_used(f->me, WS_RESOURCE_QUEUED_BYTES), 0);
        assert_true(is_closed(fd));
        close(fd);
        turns(f, 3);
    }
}

/* While the server does not want more, a client's bytes stay in its socket. */
static void test_held_back(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[1 << 20];
    int fd = introduce(f);
    say_frame(fd, "hello");
    await_messages(f, 1);
    f->wants = false;
    for (size_t i = 0; i < sizeof(data); i += 3)
        memcpy(data + i, "\0\1x", WS_MIN(sizeof(data) - i, (size_t)3));
    ssize_t sent = send(fd, data, sizeof(data), MSG_NOSIGNAL);
    assert_true(sent > 0 && sent < (ssize_t)sizeof(data)); /* its socket is full */
    turns(f, 20);
    assert_int_equal(f->n_got, 1);
    assert_int_equal(f->most_queued, 0);
    assert_int_not_equal(ws_door_timeout_ms(f->door), 0);
    f->wants = true;
    shutdown(fd, SHUT_WR);
    await_ended(f, 1);
    close(fd);
}

/* Whose account is full is not read until it is not; who stays so is closed. */
static void test_account_is_full(void **state)
{
    struct fixture *f = *state;
    int fd = introduce(f);
    say_frame(fd, "hello");
    await_messages(f, 1);
    f->pool[WS_RESOURCE_QUEUED_BYTES] = 100000;
    assert_int_equal(ws_account_charge(f->me, WS_RESOURCE_QUEUED_BYTES, 45000), 0);
    say_frame(fd, "x");
    turns(f, 20);
    assert_int_equal(f->n_got, 1);
    assert_int_not_equal(ws_door_timeout_ms(f->door), 0);
    f->pool[WS_RESOURCE_QUEUED_BYTES] = WS_ACCOUNT_UNLIMITED;
    await_messages(f, 2);
    ws_account_release(f->me, WS_RESOURCE_QUEUED_BYTES, 45000);
    close(fd);
    await_ended(f, 1);
}

/* What the other end does not fetch: a message in part at most waits here. */
static void test_never_fetches(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[300000];
    int fd = introduce(f), r, n = 0;
    say_frame(fd, "hello");
    await_messages(f, 1);
    struct ws_peer peer = {f->got[0].peer};
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    while (!(r = ws_door_send(f->door, &peer, data, sizeof(data))) && n < 100)
        n++;
    assert_int_equal(r, -EAGAIN);
    assert_in_range(n, 1, 10);
    assert_in_range(ws_account_used(f->me, WS_RESOURCE_QUEUED_BYTES), 1, sizeof(data) + 9);
    /* now it does: nothing is missing, and more goes */
    size_t came = 0, want = 64 + 43 + (size_t)n * (sizeof(data) + 9);
    static uint8_t back[11 * sizeof(data)];
    for (int i = 0; i < 1000 && came < want; i++) {
        ssize_t k = recv(fd, back + came, sizeof(back) - came, 0);
        came += k > 0 ? (size_t)k : 0;
        turn(f);
    }
    assert_true(came >= want);
    assert_memory_equal(back + came - sizeof(data), data, sizeof(data));
    assert_int_equal(ws_account_used(f->me, WS_RESOURCE_QUEUED_BYTES), 0);
    assert_int_equal(ws_door_send(f->door, &peer, "x", 1), 0);
    close(fd);
    await_ended(f, 1);
}

/* Many who have not said hello, all of one user, do not keep somebody of another user waiting. */
static void test_turns_of_strangers(void **state)
{
    struct fixture *f = *state;
    enum { N = 64, OTHER_UID = 65534 };
    static uint8_t data[30000];
    int fds[N], n_turns = 0;
    if (getuid())
        skip(); /* only root can be several users */
    for (size_t i = 0; i < sizeof(data); i += 3)
        memcpy(data + i, "\0\1x", 3);
    for (int i = 0; i < N; i++)
        fds[i] = introduce(f);
    assert_int_equal(chmod(f->path, 0666), 0);
    assert_int_equal(seteuid(OTHER_UID), 0);
    int other = introduce(f);
    assert_int_equal(seteuid(0), 0);
    for (int i = 0; i < N; i++)
        (void)!send(fds[i], data, sizeof(data), MSG_NOSIGNAL);
    say_frame(other, "mine");
    f->cost_ns = 20 * WS_NS_PER_US;
    for (bool seen = false; !seen && n_turns < 10 * N; n_turns++) {
        f->n_got = 0;
        turn(f);
        for (unsigned i = 0; i < f->n_got; i++)
            seen |= !strcmp(f->got[i].text, "mine");
    }
    assert_in_range(n_turns, 1, N / 4);
    f->cost_ns = 0;
    for (int i = 0; i < N; i++)
        close(fds[i]);
    close(other);
    await_ended(f, N + 1);
}

/* Whoever waits costs nothing, however many they are. */
static void test_strangers_that_wait(void **state)
{
    struct fixture *f = *state;
    enum { N = 64 };
    int fds[N];
    f->wants = false;
    for (int i = 0; i < N; i++) {
        fds[i] = introduce(f);
        say_frame(fds[i], "later");
    }
    turns(f, N);
    f->n_asked = 0;
    (void)ws_door_timeout_ms(f->door);
    assert_int_equal(f->n_asked, 1);
    assert_int_equal(f->n_got, 0);
    f->wants = true;
    assert_int_equal(ws_door_timeout_ms(f->door), 0);
    await_messages(f, N);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    await_ended(f, N);
}

/* Many that send without end: each has its turn. */
static void test_turns(void **state)
{
    struct fixture *f = *state;
    enum { N = 8 };
    static uint8_t data[150000];
    int fds[N];
    unsigned turns_until = 0;
    for (size_t i = 0; i < sizeof(data); i += 3)
        memcpy(data + i, "\0\1x", 3);
    for (int i = 0; i < N; i++) {
        fds[i] = introduce(f);
        say_frame(fds[i], "hello");
    }
    await_messages(f, N);
    int quiet = introduce(f);
    say_frame(quiet, "hello");
    await_messages(f, N + 1);
    for (int i = 0; i < N; i++)
        (void)!send(fds[i], data, sizeof(data), MSG_NOSIGNAL);
    say_frame(quiet, "mine");
    f->cost_ns = 20 * WS_NS_PER_US;
    for (bool seen = false; !seen && turns_until < 1000; turns_until++) {
        f->n_got = 0;
        unsigned at = 0;
        turn(f);
        for (; at < f->n_got; at++)
            seen |= !strcmp(f->got[at].text, "mine");
    }
    assert_true(turns_until <= 2 * N + 2);
    f->cost_ns = 0;
    for (int i = 0; i < N; i++)
        close(fds[i]);
    close(quiet);
    await_ended(f, N + 1);
}

/* The daemon asks itself: only an answer to the request says that messages go through. */
static void test_probe(void **state)
{
    struct fixture *f = *state;
    struct ws_probe p;
    ws_probe_init(&p, f->path);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(ws_probe_ask(&p), 0);
        f->n_got = 0;
        await_messages(f, 1);
        turns(f, 3);
        assert_false(ws_probe_answered(&p)); /* connected and read, but not answered */
        struct ws_peer peer = {f->got[0].peer};
        assert_int_equal(ws_door_send(f->door, &peer, "x", 1), 0);
        assert_true(ws_probe_answered(&p));
        assert_false(ws_probe_answered(&p));
    }
    unlink(f->path);
    assert_true(ws_probe_ask(&p) < 0);
    assert_int_equal(ws_probe_fd(&p), -1);
    ws_probe_deinit(&p);
    await_ended(f, 2);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_last_messages_before_the_end),
        T(test_ends_while_a_process_starts),
        T(test_who_is_behind_it),
        T(test_names_mean_nothing),
        T(test_silent_flood),
        T(test_no_descriptor_left),
        T(test_message_without_end),
        T(test_held_back),
        T(test_account_is_full),
        T(test_never_fetches),
        T(test_turns_of_strangers),
        T(test_strangers_that_wait),
        T(test_turns),
        T(test_probe),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
