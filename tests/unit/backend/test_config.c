// SPDX-License-Identifier: Apache-2.0
/* backend: the configuration file and the command line's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/process/config.h"
#include "backend/process/config_key.h"
#include "base/error.h"

struct fixture {
    struct ws_config c;
    struct ws_diags d;
    char path[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    strcpy(f->path, "/tmp/ws-conf-XXXXXX");
    close(mkstemp(f->path));
    *state = f;
    return ws_config_init(&f->c);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_config_deinit(&f->c);
    ws_diags_deinit(&f->d);
    unlink(f->path);
    free(f);
    return 0;
}

static int load(struct fixture *f, const char *text)
{
    FILE *o = fopen(f->path, "w");
    fputs(text, o);
    fclose(o);
    ws_diags_deinit(&f->d);
    return ws_config_load(&f->c, f->path, &f->d);
}

static void test_everything_is_taken(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        load(f, "# comment\n"
                "endpoints = {\"ipc:///tmp/a\", \"tcp://127.0.0.1:5555\"}\n"
                "socket_mode = 0666\nsocket_group = \"gpu\"\n"
                "gpus = {\"t400\", \"t400\", \"h200\"}\ncatalog = {\"/a\", \"/b\"}\n"
                "clock = skip\ntime_scale = 50\nworkers = 3\nplacement = fixed\nlog_level = error\n"
                "drain_timeout_s = 7\nheartbeat_s = 2\nmax_kernel_insns = 5000000000\n"
                "limits {\nmax_clients = 9\nmax_message_bytes = "
                "100000\nmemory_quota_bytes = 8589934592\n}\n"),
        0);
    assert_string_equal(f->c.endpoints[1], "tcp://127.0.0.1:5555");
    assert_null(f->c.endpoints[2]);
    assert_int_equal(f->c.socket_mode, 0666);
    assert_string_equal(f->c.socket_group, "gpu");
    assert_string_equal(f->c.gpus[2], "h200");
    assert_null(f->c.gpus[3]);
    assert_string_equal(f->c.catalog[1], "/b");
    assert_int_equal(f->c.clock, WS_CLOCK_SKIP);
    assert_int_equal(f->c.time_scale, 50);
    assert_int_equal(f->c.n_workers, 3);
    assert_int_equal(f->c.placement, WS_PLACE_FIXED);
    assert_int_equal(f->c.log_level, WS_ERROR);
    assert_int_equal(f->c.drain_timeout_s, 7);
    assert_int_equal(f->c.heartbeat_s, 2);
    assert_int_equal(f->c.max_kernel_insns, UINT64_C(5000000000));
    assert_int_equal(f->c.limits.pool[WS_RESOURCE_CLIENTS], 9);
    assert_int_equal(f->c.limits.max_message_bytes, 100000);
    assert_int_equal(f->c.limits.memory_quota_bytes, UINT64_C(8) << 30);
    assert_int_equal(f->c.limits.max_commands, 4096); /* what is not named keeps its default */
}

/* What could be taken for a section that is not closed, and isn't. */
static void test_braces_that_are_text(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(load(f, "# { it's\n/* { \" */ // {\ncatalog = {\"/a}\\\"{\", '/{b\"'}\n"
                             "limits { max_clients = 7 }"),
                     0);
    assert_int_equal(f->c.limits.pool[WS_RESOURCE_CLIENTS], 7);
    assert_string_equal(f->c.catalog[0], "/a}\"{");
}

static void test_wrong_lines_are_named(void **state)
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *says, *right;
    } rows[] = {
        {"\nworkers = 5000\n", 2, "workers = 5000 is out of range", "0 to 1024"},
        {"workers = many\n", 1, "workers", ""},
        {"clock = fast\n", 1, "clock = \"fast\" is not known", "functional, scaled or skip"},
        {"placement = here\n", 1, "placement", "spread or fixed"},
        {"\n\nlog_level = loud\n", 3, "log_level", "error, warning, info or debug"},
        {"socket_mode = \"0999\"\n", 1, "socket_mode", "octal"},
        {"endpoints = {\"ipc:///a\",\n \"udp://x\"}\n", 2, "\"udp://x\" is wrong",
         "ipc:///PATH or tcp://ADDRESS:PORT"},
        {"endpoints = {\"ipc://@abstract\"}\n", 1, "abstract", "ipc:///PATH"},
        {"endpoints = {\"tcp://nothing\"}\n", 1, "tcp://nothing", "tcp://ADDRESS:PORT"},
        {"endpoints = {\"ipc:///" /* 120 bytes */
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n",
         1, "xxxx", "too long"},
        {"gpus = {\"\"}\n", 1, "gpus", "catalog"},
        {"colour = red\n", 1, "no such option 'colour'", "wattshared.conf(5)"},
        {"limits {\n  max_clients = 0\n}\n", 2, "max_clients = 0 is out of range", "1 to 100000"},
        {"limits {\n  max_cats = 0\n}\n", 2, "no such option 'max_cats'", ""},
        {"gpus = {\"a\"\n", 1, "has no }", ""},
        {"\nlimits {\n  max_clients = 3\n", 2, "has no }", ""},
        {"limits {\n} # }\nuser joe { /* } */ share = 0.5 // }\n", 3, "has no }", ""},
        {"limits {\n max_clients = 3\n}\n/* gpus = {\"a\"}\n", 4, "comment", "does not end"},
        {"policy = none\ncatalog = {'a\n}\n", 2, "string", "does not end"},
        {"\npolicy = best\n", 2, "policy = \"best\" is not known",
         "none, wattshare, wattshare-servers, bcf"},
        {"policy = best\n", 1, "there are", "sbeet-mg"},
        {"policy = edl\npolicy_options = {\"l=4\",\n\"theta\"}\n", 3, "\"theta\" is wrong",
         "name=value"},
        {"policy = edl\n\npolicy_options = {\"theta=3\"}\n", 3, "policy edl: theta=3", "from"},
        {"policy = edl\n\npolicy_options = {\"speed=3\"}\n", 3, "no option 'speed=3'", "theta="},
        {"policy_options = {\"theta=1\"}\n", 1, "without a policy", "policy = "},
        {"policy = none\npolicy_options = {\"theta=1\"}\n", 2, "without a policy", ""},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        char *text;
        assert_int_equal(load(f, rows[i].text), WS_CONFIG_E_INVALID);
        assert_true(f->d.n > 0);
        text = ws_diags_text(&f->d);
        bool ok = f->d.v[0].file && strstr(f->d.v[0].text, rows[i].says) &&
                  strstr(f->d.v[0].text, rows[i].right) &&
                  (!rows[i].line || f->d.v[0].line == rows[i].line) &&
                  !strcmp(f->d.v[0].file, f->path);
        if (!ok)
            print_error("row %zu: %s", i, text);
        free(text);
        assert_true(ok);
    }
    assert_string_equal(f->c.gpus[0], "rtx3070"); /* nothing was changed */
    assert_int_equal(f->c.clock, WS_CLOCK_FUNCTIONAL);
}

static void test_policy(void **state)
{
    struct fixture *f = *state;
    assert_null(f->c.policy);
    assert_int_equal(load(f, "policy = edl\npolicy_options = {\"theta=0.8\"}\n"), 0);
    assert_string_equal(f->c.policy, "edl");
    assert_string_equal(f->c.policy_options[0], "theta=0.8");
    assert_null(f->c.policy_options[1]);
    assert_int_equal(load(f, "policy = \"sbeet-mg\"\n"), 0);
    assert_string_equal(f->c.policy, "sbeet-mg");
    assert_null(f->c.policy_options[0]);
    assert_int_equal(load(f, "policy = \"none\"\n"), 0);
    assert_null(f->c.policy);
}

static void test_tasks(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        load(
            f,
            "task \"camera\" {\n match_path = \"/opt/cam/*\"\n match_cgroup = {\"/a/*\", \"*/b\"}\n"
            " match_user = {\"root\", 1000}\n match_env = \"ROLE=camera\"\n period_ms = 33.5\n"
            " deadline_ms = 20\n priority = 10\n weight = 0.5\n wcet_ms = 7\n sms = \"0-3,7\"\n"
            " gpu = t400\n profile = p1\n busy_wait = true\n copies = true\n"
            " memory_quota_bytes = 1073741824\n}\n"
            "task batch {\n max_sms = 4\n period_ms = 100\n}\ntask plain {\n}\n"),
        0);
    assert_int_equal(f->c.tasks.n, 3);
    const struct ws_task_rule *r = f->c.tasks.v;
    assert_string_equal(r[0].task.name, "camera");
    assert_string_equal(r[0].paths[0], "/opt/cam/*");
    assert_null(r[0].paths[1]);
    assert_string_equal(r[0].cgroups[1], "*/b");
    assert_int_equal(r[0].n_uids, 2);
    assert_int_equal(r[0].uids[0], 0);
    assert_int_equal(r[0].uids[1], 1000);
    assert_string_equal(r[0].env[0], "ROLE=camera");
    assert_true(r[0].task.period_ms == 33.5 && r[0].task.deadline_ms == 20 &&
                r[0].task.weight == 0.5 && r[0].task.wcet_ms == 7);
    assert_int_equal(r[0].task.priority, 10);
    assert_int_equal(r[0].task.sms.n, 5);
    assert_string_equal(r[0].task.gpu, "t400");
    assert_string_equal(r[0].task.profile, "p1");
    assert_true(r[0].task.busy_wait && r[0].task.copies);
    assert_int_equal(r[0].task.memory_bytes, 1 << 30);
    assert_int_equal(r[1].task.n_sm_max, 4);
    assert_true(r[1].task.deadline_ms == 100); /* implicit */
    assert_false(r[1].task.busy_wait);
    assert_true(r[2].task.weight == 1 && !r[2].task.deadline_ms && !r[2].paths);
    assert_int_equal(load(f, "clock = skip\n"), 0); /* a file without tasks leaves them */
    assert_int_equal(f->c.tasks.n, 3);
    assert_int_equal(load(f, "task one {\n}\n"), 0);
    assert_int_equal(f->c.tasks.n, 1);
}

static void test_tasks_wrong(void **state)
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *says, *right;
    } rows[] = {
        {"task a {\n period_ms = 10\n\n deadline_ms = 11\n priority = 1\n}\n", 4,
         "task a: deadline_ms = 11", "at most period_ms = 10"},
        {"task a {\n deadline_ms = 11\n period_ms = 10\n}\n", 2, "deadline_ms = 11", "at most"},
        {"task a {\n period_ms = 0\n}\n", 2, "period_ms = 0 is out of range", "more than 0"},
        {"task a {\n period_ms = -1\n}\n", 2, "period_ms = -1 is out of range", "more than 0"},
        {"task a {\n period_ms = nan\n}\n", 2, "period_ms = nan", "more than 0"},
        {"task a {\n wcet_ms = inf\n}\n", 2, "wcet_ms = inf", "more than 0"},
        {"task a {\n wcet_ms = soon\n}\n", 2, "wcet_ms", ""},
        {"task a {\n weight = 0\n}\n", 2, "weight = 0 is out of range", "0.001 to 1000000"},
        {"task a {\n priority = 100\n}\n", 2, "priority = 100 is out of range", "0 to 99"},
        {"task a {\n priority = -1\n}\n", 2, "priority = -1 is out of range", "0 to 99"},
        {"task a {\n max_sms = 0\n}\n", 2, "max_sms = 0 is out of range", "1 to 256"},
        {"task a {\n sms = \"3-1\"\n}\n", 2, "sms = \"3-1\" is no list", "0-3,7"},
        {"task a {\n sms = 300\n}\n", 2, "sms = \"300\"", "0 to 255"},
        {"task a {\n sms = 3\n max_sms = 2\n}\n", 3, "sms and max_sms together", "how many"},
        {"task a {\n match_path = cam\n}\n", 2, "\"cam\" is wrong", "/opt/cam/*"},
        {"task a {\n match_user = {\"root\",\n\"nobody-of-that-name\"}\n}\n", 3,
         "nobody-of-that-name", "no such user"},
        {"task a {\n match_env = \"=x\"\n}\n", 2, "\"=x\" is wrong", "NAME=PATTERN"},
        {"task a {\n match_env = \"A B=x\"\n}\n", 2, "\"A B=x\"", "NAME=PATTERN"},
        {"task a {\n gpu = \"\"\n}\n", 2, "gpu = \"\"", "1 to 31 characters, one of gpus"},
        {"task a {\n profile = \"\"\n}\n", 2, "profile", "1 to 63 characters"},
        {"task a {\n busy_wait = perhaps\n}\n", 2, "busy_wait", ""},
        {"task a {\n speed = 3\n}\n", 2, "no such option 'speed'", "wattshared.conf(5)"},
        {"task a {\n}\n\ntask a {\n}\n", 4, "duplicate title 'a'", "a name of its own"},
        {"task \"a b\" {\n priority = 1\n}\n", 2, "the name \"a b\" is wrong", "letters"},
        {"task \"\" {\n priority = 1\n}\n", 2, "the name \"\" is wrong", "letters"},
        {"task {\n}\n", 1, "", ""},
        {"task a {\n memory_quota_bytes = 0\n}\n", 2, "memory_quota_bytes = 0", "1 to"},
        {"task a {\n priority = 1\ntask b {\n}\n", 1, "has no }", ""},
        {"task a {\n priority = 1\ntask b {\n}\n}\n", 3, "no such option 'task'", ""},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        int r = load(f, rows[i].text);
        char *text = ws_diags_text(&f->d);
        bool ok = r == WS_CONFIG_E_INVALID && f->d.n && f->d.v[0].file &&
                  strstr(f->d.v[0].text, rows[i].says) && strstr(f->d.v[0].text, rows[i].right) &&
                  (!rows[i].line || f->d.v[0].line == rows[i].line);
        if (!ok)
            print_error("row %zu: %d %s", i, r, text);
        free(text);
        assert_true(ok);
        assert_int_equal(f->c.tasks.n, 0);
    }
}

static void test_tasks_and_gpus(void **state)
{
    static const struct ws_gpu_spec big = {.name = "big", .n_sms = 46},
                                    small = {.name = "small", .n_sms = 6};
    static const struct ws_gpu_spec *const specs[] = {&small, &big};
    static const struct {
        const char *text;
        uint32_t line;
        const char *says;
    } rows[] = {
        {"task a {\n max_sms = 46\n}\ntask b {\n sms = \"45\"\n gpu = big\n}\n", 0, NULL},
        {"task a {\n max_sms = 47\n}\n", 2, "big, has 46"},
        {"task a {\n gpu = small\n max_sms = 7\n}\n", 3, "small, has 6"},
        {"task a {\n sms = \"0,46\"\n}\n", 2, "0 to 45"},
        {"task a {\n gpu = big\n}\ntask b {\n\n gpu = \"t4\"\n}\n", 6,
         "\"t4\" is not among gpus: use one of small, big"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        assert_int_equal(load(f, rows[i].text), 0);
        int r = ws_config_check_tasks(&f->c, specs, 2, &f->d);
        assert_int_equal(r, rows[i].says ? WS_CONFIG_E_INVALID : 0);
        if (!rows[i].says)
            continue;
        assert_int_equal(f->d.v[0].line, rows[i].line);
        assert_string_equal(f->d.v[0].file, f->path);
        assert_non_null(strstr(f->d.v[0].text, rows[i].says));
    }
}

static void test_missing_file(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ws_config_load(&f->c, "/nonexistent/x.conf", &f->d), -ENOENT);
}

static void test_command_line_words(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ws_config_set_gpus(&f->c, "t400,h200", &f->d), 0);
    assert_string_equal(f->c.gpus[1], "h200");
    assert_null(f->c.gpus[2]);
    assert_int_equal(ws_config_set_gpus(&f->c, ",", &f->d), WS_CONFIG_E_INVALID);
    assert_int_equal(ws_config_set_endpoints(&f->c, "ipc:///x,tcp://*:1", &f->d), 0);
    assert_string_equal(f->c.endpoints[1], "tcp://*:1");
    assert_int_equal(ws_config_set_endpoints(&f->c, "ipc:///x,file", &f->d), WS_CONFIG_E_INVALID);
    assert_string_equal(f->c.endpoints[1], "tcp://*:1");
    assert_int_equal(ws_config_set_clock(&f->c, "scaled", &f->d), 0);
    assert_int_equal(f->c.clock, WS_CLOCK_SCALED);
    assert_int_equal(ws_config_set_clock(&f->c, "skip", &f->d), 0);
    assert_int_equal(ws_config_set_clock(&f->c, "skap", &f->d), WS_CONFIG_E_INVALID);
    assert_int_equal(ws_config_set_log_level(&f->c, "warning", &f->d), 0);
    assert_int_equal(ws_config_set_log_level(&f->c, "", &f->d), WS_CONFIG_E_INVALID);
    assert_int_equal(ws_config_set_catalog(&f->c, "", &f->d), WS_CONFIG_E_INVALID);
    assert_int_equal(f->d.n, 5);
}

/* ---- the table of keys: each row keeps what it says ---- */

/* Reads a file with the key in its section, on line 2. */
static int load_key(struct fixture *f, const struct ws_config_key *k, const char *value)
{
    const char *section = ws_config_section_name(k->section);
    bool titled = k->section == WS_CONFIG_USER || k->section == WS_CONFIG_TASK;
    char *text = NULL;
    assert_true(asprintf(&text, "%s%s%s\n%s = %s\n%s", section, titled ? " root" : "",
                         section[0] ? " {" : "", k->name, value, section[0] ? "}\n" : "") > 0);
    int r = load(f, text);
    if (r && r != WS_CONFIG_E_INVALID)
        print_error("%s = %s: %d\n", k->name, value, r);
    free(text);
    return r;
}

static void assert_right(struct fixture *f, const struct ws_config_key *k, const char *value)
{
    if (!load_key(f, k, value))
        return;
    print_error("%s = %s: %s\n", k->name, value, f->d.n ? f->d.v[0].text : "");
    fail();
}

/* The message names the file, the line and the key, and says @right. */
static void assert_wrong(struct fixture *f, const struct ws_config_key *k, const char *value,
                         const char *right)
{
    int r = load_key(f, k, value);
    bool ok = r == WS_CONFIG_E_INVALID && f->d.n && !strcmp(f->d.v[0].file, f->path) &&
              f->d.v[0].line == 2 && strstr(f->d.v[0].text, k->name) &&
              strstr(f->d.v[0].text, right);
    if (ok)
        return;
    print_error("%s = %s: %d, line %u: %s; not: %s\n", k->name, value, r,
                f->d.n ? f->d.v[0].line : 0, f->d.n ? f->d.v[0].text : "nothing said", right);
    fail();
}

static const void *struct_of(const struct fixture *f, const struct ws_config_key *k)
{
    return k->section == WS_CONFIG_LIMITS ? (const void *)&f->c.limits : &f->c;
}

/* A default that stands in the file is what counts without the file. */
static void test_defaults(void **state)
{
    struct fixture *f = *state, without = {0};
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    assert_int_equal(n, WS_CONFIG_N_KEYS);
    assert_int_equal(ws_config_init(&without.c), 0);
    for (size_t i = 0; i < n; i++) {
        const struct ws_config_key *k = &keys[i];
        if (k->section != WS_CONFIG_TOP && k->section != WS_CONFIG_LIMITS)
            continue;
        if (!strcmp(k->name, "catalog")) /* here the default is the source tree's */
            continue;
        if (k->example && strncmp(k->name, "policy", 6)) /* these two depend on each other */
            assert_right(f, k, k->example);
        assert_right(f, k, k->def);
        if (!ws_config_key_same(k, struct_of(f, k), struct_of(&without, k))) {
            print_error("%s = %s is not the default\n", k->name, k->def);
            fail();
        }
    }
    ws_config_deinit(&without.c);
}

static void test_examples(void **state)
{
    struct fixture *f = *state;
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; i < n; i++)
        assert_right(f, &keys[i], keys[i].example ? keys[i].example : keys[i].def);
}

static void check_number(struct fixture *f, const struct ws_config_key *k)
{
    char low[32], high[32], right[96];
    snprintf(low, sizeof(low), "%lld", (long long)k->min);
    snprintf(high, sizeof(high), "%lld", (long long)k->max);
    snprintf(right, sizeof(right), "is out of range: use %s to %s", low, high);
    assert_right(f, k, low);
    assert_right(f, k, high);
    snprintf(low, sizeof(low), "%lld", (long long)k->min - 1);
    snprintf(high, sizeof(high), "%lld", (long long)k->max + 1);
    assert_wrong(f, k, low, right);
    assert_wrong(f, k, high, right);
}

static void check_real(struct fixture *f, const struct ws_config_key *k)
{
    char low[32], high[32], right[96];
    snprintf(low, sizeof(low), "%f", k->real_min > 0 ? k->real_min : 0.001);
    snprintf(high, sizeof(high), "%f", k->real_max);
    assert_right(f, k, low);
    assert_right(f, k, high);
    snprintf(right, sizeof(right), "%.0f", k->real_max);
    snprintf(low, sizeof(low), "%f", k->real_min * 0.99);
    snprintf(high, sizeof(high), "%f", k->real_max * 1.01);
    assert_wrong(f, k, low, right);
    assert_wrong(f, k, high, right);
    assert_wrong(f, k, "nan", right);
}

static void check_words(struct fixture *f, const struct ws_config_key *k)
{
    char right[512];
    for (const struct ws_config_word *w = k->words; w->word; w++) {
        assert_right(f, k, w->word);
        assert_memory_equal((const char *)struct_of(f, k) + k->offset, w->value, k->size);
    }
    assert_wrong(f, k, "\"\"", ws_config_words_text(k->words, right, sizeof(right)));
    assert_wrong(f, k, "nothing-of-that-kind", right);
}

/* One entry more than there may be; which entries are right is said by the example. */
static void check_list(struct fixture *f, const struct ws_config_key *k)
{
    char entry[128], list[8192] = "{", right[64];
    const char *from = strcmp(k->def, "{}") ? k->def : k->example;
    if (!strcmp(k->name, "policy_options")) /* what is right depends on the policy */
        return;
    assert_int_equal(sscanf(from, "{%127[^,}]", entry), 1);
    size_t n = strlen(list);
    for (size_t i = 0; i < k->n_max; i++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", entry);
    snprintf(list + n, sizeof(list) - n, "}");
    assert_right(f, k, list);
    snprintf(list + n, sizeof(list) - n, ", %s}", entry);
    snprintf(right, sizeof(right), "more than %zu entries", k->n_max);
    assert_wrong(f, k, list, right);
}

static void test_ranges(void **state)
{
    struct fixture *f = *state;
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; i < n; i++) {
        const struct ws_config_key *k = &keys[i];
        if (k->kind == WS_CONFIG_NUMBER)
            check_number(f, k);
        else if (k->kind == WS_CONFIG_REAL)
            check_real(f, k);
        else if (k->kind == WS_CONFIG_WORD)
            check_words(f, k);
        else if (k->n_max)
            check_list(f, k);
    }
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_everything_is_taken),
        T(test_wrong_lines_are_named),
        T(test_braces_that_are_text),
        T(test_policy),
        T(test_tasks),
        T(test_tasks_wrong),
        T(test_tasks_and_gpus),
        T(test_missing_file),
        T(test_command_line_words),
        T(test_defaults),
        T(test_examples),
        T(test_ranges),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
