// SPDX-License-Identifier: Apache-2.0
/* backend: which task a program is, and what the task limits: GPUs, SMs, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "backend/client/identity.h"
#include "base/alloc.h"
#include "tests/lib/wsserver.h"

/* ---- recognition, without a server ---- */

static char *cam_paths[] = {"/opt/cam/*", "/usr/bin/camd", NULL};
static char *lab_groups[] = {"/lab.slice/*", NULL};
static char *env_role[] = {"ROLE=cam*", "SITE", NULL};
static uint32_t cam_uids[] = {1000, 1001};

static struct ws_task_rule rule_list[] = {
    {.task = {.name = "path", .priority = 1}, .paths = cam_paths},
    {.task = {.name = "group", .priority = 2}, .cgroups = lab_groups},
    {.task = {.name = "user", .priority = 3}, .uids = cam_uids, .n_uids = 2},
    {.task = {.name = "env", .priority = 4}, .env = env_role},
    {.task = {.name = "both", .priority = 5}, .paths = cam_paths, .uids = cam_uids, .n_uids = 2},
    {.task = {.name = "nobody", .priority = 6}},
};
static const struct ws_task_rules rules = {rule_list, WS_ARRAY_SIZE(rule_list)};

static void test_recognise(void **state)
{
    static const char *const role[] = {"ROLE=camera", "SITE=2"}, *const part[] = {"ROLE=camera"},
                             *const wrong[] = {"ROLE=x", "SITE="},
                             *const longer[] = {"ROLES=cam", "SITE=1"};
    static const struct {
        struct ws_task_who who;
        const char *is;
        bool refused;
        const char *unconfirmed;
    } rows[] = {
        {{.name = "", .exe = "/opt/cam/bin/x", .exe_known = true, .cgroups = ""},
         "path",
         false,
         ""},
        {{.name = "", .exe = "/usr/bin/camd", .exe_known = true, .cgroups = ""}, "path", false, ""},
        {{.name = "", .exe = "/usr/bin/camd2", .exe_known = true, .cgroups = ""},
         "camd2",
         false,
         ""},
        {{.name = "", .exe = "", .cgroups = ""}, "unknown", false, ""},
        {{.name = "", .exe = "/x", .cgroups = "0::/lab.slice/a.service\n"}, "group", false, ""},
        {{.name = "", .exe = "/x", .cgroups = "4:cpu,memory:/other\n1:name=systemd:/lab.slice/b"},
         "group",
         false,
         ""},
        {{.name = "", .exe = "/x", .cgroups = "lab.slice/a\n::\n:"}, "x", false, ""},
        {{.name = "", .exe = "/x", .cgroups = "", .has_uid = true, .uid = 1001}, "user", false, ""},
        {{.name = "", .exe = "/x", .cgroups = "", .has_uid = false, .uid = 1001}, "x", false, ""},
        {{.name = "", .trusted = true, .exe = "/x", .cgroups = "", .env = role, .n_env = 2},
         "env",
         false,
         ""},
        {{.name = "", .exe = "/x", .cgroups = "", .env = part, .n_env = 1}, "x", false, ""},
        {{.name = "", .exe = "/x", .cgroups = "", .env = wrong, .n_env = 2}, "x", false, ""},
        {{.name = "", .exe = "/x", .cgroups = "", .env = longer, .n_env = 2}, "x", false, ""},
        {{.name = "nobody", .trusted = true, .exe = "/opt/cam/x", .cgroups = ""},
         "nobody",
         false,
         ""},
        {{.name = "env", .trusted = true, .exe = "/opt/cam/x", .cgroups = ""}, "env", false, ""},
        {{.name = "mine", .exe = "/opt/cam/x", .cgroups = ""}, "mine", false, ""},
        /* the users of a task bind, whatever it is called by */
        {{.name = "both", .exe = "/x", .cgroups = "", .has_uid = true, .uid = 1000},
         "both",
         false,
         ""},
        {{.name = "both", .exe = "/x", .cgroups = "", .has_uid = true, .uid = 7}, "x", true, ""},
        {{.name = "both", .exe = "/opt/cam/x", .exe_known = true, .cgroups = ""}, "path", true, ""},
        /* its own word for its path, its name or its environment is not enough */
        {{.name = "", .exe = "/opt/cam/x", .cgroups = ""}, "x", false, "path"},
        {{.name = "path", .exe = "/opt/cam/x", .cgroups = ""}, "x", false, "path"},
        {{.name = "nobody", .exe = "/x", .cgroups = ""}, "x", false, "nobody"},
        {{.name = "group", .exe = "/x", .cgroups = "0::/other\n"}, "x", false, "group"},
        {{.name = "", .exe = "/x", .cgroups = "", .env = role, .n_env = 2}, "x", false, "env"},
        /* …unless something else of the section is confirmed, or another section is */
        {{.name = "", .trusted = true, .exe = "/opt/cam/x", .cgroups = ""}, "path", false, ""},
        {{.name = "path", .exe = "/opt/cam/x", .exe_known = true, .cgroups = ""},
         "path",
         false,
         ""},
        {{.name = "group", .exe = "/x", .cgroups = "0::/lab.slice/b\n"}, "group", false, ""},
        {{.name = "", .exe = "/opt/cam/x", .cgroups = "", .has_uid = true, .uid = 1000},
         "user",
         false,
         "path"},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct ws_task t;
        struct ws_task_doubt doubt;
        const struct ws_task_rule *r = ws_task_recognise(&rules, &rows[i].who, &t, &doubt);
        if (strcmp(t.name, rows[i].is) != 0)
            print_error("row %zu: %s\n", i, t.name);
        assert_string_equal(t.name, rows[i].is);
        assert_int_equal(doubt.refused, rows[i].refused);
        assert_string_equal(doubt.unconfirmed ? doubt.unconfirmed->task.name : "",
                            rows[i].unconfirmed);
        assert_int_equal(t.priority, r ? r->task.priority : 0);
        assert_true(t.weight == (r ? 0 : 1));
    }
}

static void test_env_names(void **state)
{
    char names[2][WS_TASK_NAME_BYTES];
    assert_int_equal(ws_task_rules_env(&rules, names, 2), 2);
    assert_string_equal(names[0], "ROLE");
    assert_string_equal(names[1], "SITE");
    assert_int_equal(ws_task_rules_env(&rules, names, 1), 2);
}

static void test_sm_sets(void **state)
{
    static const char *const wrong[] = {"",  ",",    "1,",  "a",   "3-1",  "256",
                                        "-", "1-",   "0x2", "1 2", "1--2", "99999999999999999999",
                                        "1", "0-255"};
    char text[1024];
    struct ws_sm_set s;
    assert_true(ws_sm_set_parse("7, 0-3,2", &s));
    assert_int_equal(s.n, 5);
    assert_string_equal(ws_sm_set_text(&s, text, sizeof(text)), "0-3,7");
    for (size_t i = 0; i < WS_ARRAY_SIZE(wrong); i++)
        assert_int_equal(ws_sm_set_parse(wrong[i], &s), i >= 12);
    assert_int_equal(s.n, 256);
    assert_string_equal(ws_sm_set_text(&s, text, sizeof(text)), "0-255");
}

/* ---- in the server ---- */

enum { STRANGER = 54321 }; /* the user of the peers from 4 on; the others are the daemon's */

static struct ws_task_rule server_rules[] = {
    {.task = {.name = "small-only", .weight = 1, .gpu = "small"}},
    {.task = {.name = "limited", .weight = 1, .n_sm_max = 2, .memory_bytes = 8192}},
    {.task = {.name = "fixed", .weight = 1}},
    {.task = {.name = "mine", .weight = 1}, .uids = (uint32_t[]){4242}, .n_uids = 1},
};

static int setup(void **state)
{
    struct wss *w = wss_new(3);
    server_rules[2].task.sms = (struct ws_sm_set){0};
    ws_sm_set_add(&server_rules[2].task.sms, w->dev[0].base.spec.n_sms - 1);
    ws_sm_set_add(&server_rules[2].task.sms, 250);
    w->config.tasks = (struct ws_task_rules){server_rules, WS_ARRAY_SIZE(server_rules)};
    for (unsigned i = 0; i < WSS_PEERS; i++)
        w->peers[i].uid = i < WSS_PEERS / 2 ? geteuid() : STRANGER;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    wss_free(*state);
    return 0;
}

static void hello(struct wss *w, unsigned peer, const char *task, const char *const *env, size_t n)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.task = (char *)task;
    h.env_told = env != NULL;
    h.env = (char **)env;
    h.n_env = n;
    m.hello = &h;
    wss_message(w, peer, &m);
}

static struct ws_client *client(struct wss *w, unsigned peer)
{
    return ws_client_find(w->server, &w->peers[peer].peer);
}

static void test_gpus_of_a_task(void **state)
{
    struct wss *w = *state;
    hello(w, 0, "small-only", NULL, 0);
    assert_int_equal(w->peers[0].n_devices, 1);
    assert_int_equal(w->peers[0].gpus[0], 1);
    hello(w, 1, "other", NULL, 0);
    assert_int_equal(w->peers[1].n_devices, 3);
    assert_string_equal(client(w, 1)->work.name, "other");
    assert_false(client(w, 1)->who.work_known);
}

static void test_named_but_not_for_this_user(void **state)
{
    struct wss *w = *state;
    hello(w, 0, "mine", NULL, 0);
    assert_int_equal(w->peers[0].hello_error, WS__ERROR__OK);
    assert_string_not_equal(client(w, 0)->work.name, "mine");
}

static void test_memory_quota(void **state)
{
    struct wss *w = *state;
    hello(w, 0, "limited", NULL, 0);
    uint64_t a = wss_alloc(w, 0, 0, 4096);
    assert_true(a && wss_alloc(w, 0, 1, 4096));
    assert_int_equal(wss_alloc(w, 0, 0, 512), 0);
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, a)), WS__ERROR__OK);
    assert_true(wss_alloc(w, 0, 0, 512));
    hello(w, 1, "", NULL, 0); /* others: no limit */
    assert_true(wss_alloc(w, 1, 0, 1 << 20));
}

#define PTX_HEAD ".version 7.0\n.target sm_50\n.address_size 64\n"
static const char ptx[] = PTX_HEAD ".visible .entry k()\n{\nret;\n}\n";

static uint64_t module_and_launch(struct wss *w, unsigned peer, uint32_t device, uint64_t module)
{
    assert_int_equal(wss_error(w, peer, wss_load(w, peer, module, device, ptx, sizeof(ptx))),
                     WS__ERROR__OK);
    return wss_launch(w, peer, WS_STREAM_DEFAULT_0 + device, module << WS_FUNCTION_INDEX_BITS, NULL,
                      0);
}

static void test_sms_of_launches(void **state)
{
    struct wss *w = *state;
    hello(w, 0, "limited", NULL, 0);
    hello(w, 1, "limited", NULL, 0);
    hello(w, 2, "fixed", NULL, 0);
    w->config.placement = WS_PLACE_FIXED;
    for (unsigned p = 0; p < 3; p++) {
        uint32_t device = 0; /* each one's own device 0 */
        module_and_launch(w, p, device, 1);
        struct fakedev *d = &w->dev[w->peers[p].gpus[0]];
        assert_true(d->n_ops >= 1);
        const struct ws_sm_set *s = &d->ops[d->n_ops - 1]->launch.sms;
        assert_int_equal(s->n, p < 2 ? 2 : 1);
        if (p == 2)
            assert_true(ws_sm_set_has(s, d->base.spec.n_sms - 1));
    }
    /* of one GPU, two limited programs do not have the same SMs while there are others */
    const struct ws_context *a = &client(w, 0)->contexts[0];
    for (uint32_t i = 0; i < client(w, 1)->n_contexts; i++)
        if (client(w, 1)->contexts[i].gpu == a->gpu)
            assert_false(ws_sm_set_meet(&a->sms, &client(w, 1)->contexts[i].sms));
    for (int i = 0; i < 3; i++)
        fakedev_complete_all(&w->dev[i]);
    wss_turn(w);
}

static void test_sms_that_are_not_there(void **state)
{
    struct wss *w = *state;
    server_rules[2].task.sms = (struct ws_sm_set){0};
    ws_sm_set_add(&server_rules[2].task.sms, 250);
    hello(w, 0, "fixed", NULL, 0);
    module_and_launch(w, 0, 0, 1);
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__OUT_OF_RESOURCES);
    assert_non_null(strstr(w->peers[0].text, "the SMs 250 only"));
    assert_int_equal(w->dev[0].n_submitted + w->dev[1].n_submitted + w->dev[2].n_submitted, 0);
}

static void test_env_is_asked_for(void **state)
{
    static char *patterns[] = {"ROLE=cam*", NULL};
    static struct ws_task_rule r = {.task = {.name = "env", .weight = 1}, .env = patterns};
    static const char *const env[] = {"ROLE=camera", "junk", "PATH=/x"};
    struct wss *w = *state;
    w->config.tasks = (struct ws_task_rules){&r, 1};
    hello(w, 0, "", NULL, 0);
    assert_int_equal(w->peers[0].hello_error, WS__ERROR__OK);
    assert_null(client(w, 0)); /* asked, and nothing else done */
    hello(w, 0, "", env, 3);
    assert_string_equal(client(w, 0)->work.name, "env");
    hello(w, 1, "", env + 1, 2);
    assert_string_not_equal(client(w, 1)->work.name, "env");
}

/* What the kernel says counts more than what the program says. */
static void test_path_is_the_kernels_word(void **state)
{
    static char *paths[] = {"/opt/cam/*", NULL}, *ours[] = {"*/backend/test_tasks", NULL};
    static struct ws_task_rule r[] = {{.task = {.name = "cam", .weight = 1}, .paths = paths},
                                      {.task = {.name = "ours", .weight = 1}, .paths = ours}};
    struct wss *w = *state;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    w->config.tasks = (struct ws_task_rules){r, 2};
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"/opt/cam/x";
    m.hello = &h;
    wss_message(w, 0, &m);
    assert_string_equal(client(w, 0)->work.name, "ours");
    assert_non_null(strstr(client(w, 0)->who.exe, "backend/test_tasks"));
}

static void set_task(struct wss *w, unsigned peer, const char *name, Ws__Error e)
{
    assert_int_equal(wss_error(w, peer, wss_do(w, peer, WS__COMMAND__C_SET_TASK, (void *)name)), e);
}

/* Row 12 of the attacks: somebody else's quota and priority by one's own word. The process of this
 * test is not the stranger's, so the kernel tells nothing of him. */
static void test_word_of_a_stranger(void **state)
{
    static char *paths[] = {"/opt/cam/*", NULL};
    static uint32_t strangers[] = {STRANGER};
    static struct ws_task_rule r[] = {
        {.task = {.name = "cam", .weight = 1, .priority = 20}, .paths = paths},
        {.task = {.name = "his", .weight = 1}, .paths = paths, .uids = strangers, .n_uids = 1}};
    struct wss *w = *state;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"/opt/cam/x";
    m.hello = &h;
    w->config.tasks = (struct ws_task_rules){r, 1};
    wss_message(w, 4, &m);
    assert_string_equal(client(w, 4)->work.name, "x");
    assert_int_equal(client(w, 4)->work.priority, 0);
    h.task = (char *)"cam";
    wss_message(w, 5, &m);
    assert_string_equal(client(w, 5)->work.name, "x");
    assert_int_equal(client(w, 5)->work.priority, 0);
    set_task(w, 5, "cam", WS__ERROR__DENIED);
    w->config.tasks.n = 2; /* the kernel confirms the user */
    set_task(w, 5, "his", WS__ERROR__OK);
    h.task = (char *)"";
    wss_message(w, 6, &m);
    assert_string_equal(client(w, 6)->work.name, "his");
}

static bool none(const void *arg, const char *path)
{
    (void)arg;
    (void)path;
    return false;
}

static void test_identity_of_this_process(void **state)
{
    struct ws_identity id;
    int pair[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ws_identity_read(pair[0], (uint32_t)getpid(), geteuid(), none, NULL, &id); /* by the socket */
    assert_non_null(strstr(id.exe, "test_tasks"));
    assert_true(access("/proc/self/cgroup", R_OK) || id.cgroups[0]);
    ws_identity_read(-1, (uint32_t)getpid(), geteuid(), none, NULL,
                     &id); /* by the number and the user */
    assert_non_null(strstr(id.exe, "test_tasks"));
    ws_identity_read(-1, (uint32_t)getpid(), STRANGER, none, NULL, &id);
    assert_string_equal(id.exe, "");
    ws_identity_read(pair[0], (uint32_t)getpid(), STRANGER, none, NULL, &id);
    assert_string_equal(id.exe, "");
    pid_t child = fork(); /* it connects and ends: nothing is read of it */
    if (!child)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    ws_identity_read(-1, (uint32_t)child, geteuid(), none, NULL, &id);
    assert_string_equal(id.exe, "");
    assert_string_equal(id.cgroups, "");
    close(pair[0]);
    close(pair[1]);
}

static void test_set_task(void **state)
{
    struct wss *w = *state;
    char huge[200];
    memset(huge, 'x', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = 0;
    hello(w, 0, "", NULL, 0);
    set_task(w, 0, "none-such", WS__ERROR__NOT_FOUND);
    set_task(w, 0, "", WS__ERROR__INVALID_VALUE);
    set_task(w, 0, huge, WS__ERROR__INVALID_VALUE);
    set_task(w, 0, "mine", WS__ERROR__DENIED);
    assert_int_equal(client(w, 0)->work.n_sm_max, 0);
    set_task(w, 0, "limited", WS__ERROR__OK);
    assert_string_equal(client(w, 0)->work.name, "limited");
    assert_int_equal(client(w, 0)->contexts[0].sms.n, 2);
    assert_int_equal(wss_alloc(w, 0, 0, 8193), 0);
}

static uint64_t segment_begin(struct wss *w, unsigned peer, uint64_t deadline_ns)
{
    Ws__JobBegin b = WS__JOB_BEGIN__INIT;
    b.deadline_ns = deadline_ns;
    return wss_do(w, peer, WS__COMMAND__C_JOB_BEGIN, &b);
}

static uint64_t segment_end(struct wss *w, unsigned peer)
{
    return wss_do(w, peer, WS__COMMAND__C_JOB_END, (void *)1);
}

static void test_segments(void **state)
{
    struct wss *w = *state;
    hello(w, 0, "", NULL, 0);
    struct fakedev *d = &w->dev[w->peers[0].gpus[0]];
    assert_int_equal(wss_error(w, 0, segment_end(w, 0)), WS__ERROR__INVALID_VALUE);
    assert_int_equal(wss_error(w, 0, segment_begin(w, 0, 0)), WS__ERROR__OK);
    assert_int_equal(wss_error(w, 0, segment_begin(w, 0, 0)), WS__ERROR__NOT_READY);
    module_and_launch(w, 0, 0, 1);
    uint64_t end = segment_end(w, 0);
    assert_false(wss_replied(w, 0, end)); /* not before its work is done */
    assert_int_equal(wss_error(w, 0, segment_end(w, 0)), WS__ERROR__INVALID_VALUE);
    fakedev_complete_all(d);
    wss_turn(w);
    assert_int_equal(wss_error(w, 0, end), WS__ERROR__OK);
    assert_int_equal(wss_error(w, 0, segment_begin(w, 0, UINT64_MAX)), WS__ERROR__OK);
    /* gone with a segment open, and with the end under way */
    module_and_launch(w, 0, 0, 2);
    segment_end(w, 0);
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true;
    wss_message(w, 0, &m);
    fakedev_complete_all(d);
    wss_turn(w);
    assert_null(client(w, 0));
}

static uint64_t wait_period(struct wss *w, unsigned peer)
{
    uint64_t seq = wss_do(w, peer, WS__COMMAND__C_WAIT_PERIOD, (void *)1);
    wss_turn(w);
    return seq;
}

static void test_periods(void **state)
{
    enum { MS = 1000000 };
    static struct ws_task_rule r = {.task = {.name = "p", .weight = 1, .period_ms = 2}};
    struct wss *w = *state;
    w->config.tasks = (struct ws_task_rules){&r, 1};
    hello(w, 0, "", NULL, 0);
    assert_int_equal(wss_error(w, 0, wait_period(w, 0)), WS__ERROR__INVALID_VALUE);
    hello(w, 1, "p", NULL, 0);
    struct fakedev *d = &w->dev[w->peers[1].gpus[0]];
    uint64_t first = d->now_ns;
    assert_int_equal(wss_value(w, 1, wait_period(w, 1)), first);
    uint64_t seq = wait_period(w, 1);
    assert_false(wss_replied(w, 1, seq));
    assert_int_equal(wss_error(w, 1, wait_period(w, 1)), WS__ERROR__NOT_READY); /* another thread */
    fakedev_pass(d, first + 2 * MS - 1);
    wss_turn(w);
    assert_false(wss_replied(w, 1, seq));
    fakedev_pass(d, first + 2 * MS);
    wss_turn(w);
    assert_int_equal(wss_value(w, 1, seq), first + 2 * MS);
    fakedev_pass(d, first + 9 * MS); /* late: the next at once, on the grid */
    for (uint64_t i = 2; i <= 4; i++)
        assert_int_equal(wss_value(w, 1, wait_period(w, 1)), first + i * 2 * MS);
    seq = wait_period(w, 1);
    assert_false(wss_replied(w, 1, seq));
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true; /* gone while it waits */
    wss_message(w, 1, &m);
    fakedev_pass(d, first + 20 * MS);
    wss_turn(w);
    hello(w, 2, "p", NULL, 0); /* the daemon ends while it waits */
    wait_period(w, 2);
    wait_period(w, 2);
    assert_non_null(w->dev[w->peers[2].gpus[0]].alarm); /* rings after the server's end */
}

/* A hello may hold anything. */
static void test_hellos_that_lie(void **state)
{
    struct wss *w = *state;
    char *huge = malloc(300000);
    memset(huge, 'x', 299999);
    huge[299999] = 0;
    const char **env = malloc(5000 * sizeof(*env));
    for (int i = 0; i < 5000; i++)
        env[i] = i % 2 ? "=" : "A=B";
    env[0] = huge;
    hello(w, 0, huge, env, 5000);
    assert_int_equal(w->peers[0].hello_error, WS__ERROR__OK);
    assert_true(strlen(client(w, 0)->work.name) < WS_TASK_NAME_BYTES);
    hello(w, 1, "lim\nited\x1b[2J", NULL, 0);
    assert_null(strchr(client(w, 1)->work.name, '\n'));
    assert_null(strchr(client(w, 1)->work.name, 0x1b));
    free(huge);
    free(env);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recognise),
        cmocka_unit_test(test_env_names),
        cmocka_unit_test(test_sm_sets),
        T(test_gpus_of_a_task),
        T(test_named_but_not_for_this_user),
        T(test_memory_quota),
        T(test_sms_of_launches),
        T(test_sms_that_are_not_there),
        T(test_env_is_asked_for),
        T(test_hellos_that_lie),
        T(test_path_is_the_kernels_word),
        T(test_word_of_a_stranger),
        cmocka_unit_test(test_identity_of_this_process),
        T(test_set_task),
        T(test_segments),
        T(test_periods),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
