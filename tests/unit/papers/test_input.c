// SPDX-License-Identifier: Apache-2.0
/* Tests the reading of task sets, random numbers, tables, and work on several threads. It fails if
 * a wrong line is not reported, or if results depend on the number of threads. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "papers/common/parallel.h"
#include "cli/common/table.h"
#include "papers/sets/jsonl.h"
#include "papers/sets/random.h"
#include "tests/unit/papers/json_text.h"

static void jsonl_says_where(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"a\": }", "column 7: not JSON: "},
        {"{\"a\": 1", "not JSON: it ends too early"},
        {"{\"a\": 1} {", "text after the object"},
        {"[1]", "a JSON object"},
        {"{\"x\": 1}", "tasks: missing"},
        {"{\"tasks\": 3}", "tasks: expected an array"},
        {"{\"tasks\": [{\"T\": -1}]}", "tasks[0].T: -1 is negative"},
        {"{\"tasks\": [{\"T\": \"x\"}]}", "tasks[0].T: \"x\" is not a number"},
        {"{\"tasks\": [{\"T\": 1e999}]}", "tasks[0].T: "},
        {"{\"tasks\": [{}]}", "tasks[0].T: missing"},
        {"{\"tasks\": [{\"T\": 200}]}", "tasks[0].T: 200 is out of range; expected 0 to 100"},
        {"{\"tasks\": [{\"T\": 1, \"n\": 1.5}]}", "tasks[0].n: 1.5 is not a whole number"},
        {"{\"tasks\": [{\"T\": 1, \"n\": 99}]}", "tasks[0].n: 99 is out of range"},
        {"{\"tasks\": [{\"T\": 1, \"s\": 0.00001}]}", "tasks[0].s: 1e-05 is finer than 1/10000"},
        {"{\"tasks\": [{\"T\": 1, \"name\": 4}]}", "tasks[0].name: expected a string"},
        {"{\"tasks\": [{\"T\": 1},{\"T\": 1},{\"T\": 1}]}",
         "tasks: 3 elements; expected at most 2"},
        {"{\"tasks\": [{\"T\": 1, \"n\": 3, \"s\": 0.1234, \"name\": \"x\"}]}", NULL},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct ws_json_line l = json_text(rows[i].text);
        if (!l.bad) {
            struct ws_json_at root = ws_json_root(&l), tasks = ws_json_get(&root, "tasks", false);
            for (size_t k = 0; k < ws_json_length(&tasks, 2); k++) {
                struct ws_json_at t = ws_json_item(&tasks, k);
                double period = ws_json_number(&t, "T", 0, 100, NAN);
                int64_t n = ws_json_integer(&t, "n", 0, 10, false, 7);
                int64_t s = ws_json_scaled(&t, "s", 10000, INT64_C(1) << 40, false, -1);
                const char *name = ws_json_string(&t, "name", false);
                if (!rows[i].want) {
                    assert_true(period == 1);
                    assert_int_equal(n, 3);
                    assert_int_equal(s, 1234);
                    assert_string_equal(name, "x");
                }
            }
        }
        if (!rows[i].want) {
            assert_false(l.bad);
        } else {
            assert_true(l.bad);
            if (!strstr(l.diags.v[0].text, rows[i].want))
                fail_msg("%s: \"%s\" has no \"%s\"", rows[i].text, l.diags.v[0].text, rows[i].want);
        }
        ws_json_line_deinit(&l);
    }
}

static char *double_of(void *arg, struct ws_json_line *l)
{
    struct ws_json_at root = ws_json_root(l);
    int64_t v = ws_json_integer(&root, "v", 0, 100000, true, 0);
    char *text = NULL;
    return asprintf(&text, "%lld", (long long)(2 * v)) < 0 ? NULL : text;
}

struct seen {
    uint32_t next, n_bad;
};

static void see(void *arg, struct ws_json_line *l, const char *text)
{
    struct seen *s = arg;
    assert_int_equal(l->number, ++s->next);
    if (l->number % 100 == 0) {
        assert_true(l->bad);
        s->n_bad++;
    } else {
        assert_int_equal(atoi(text), 2 * (int)l->number);
    }
}

static void lines_keep_their_order(void **state)
{
    FILE *f = tmpfile();
    for (int i = 1; i <= 2000; i++)
        fprintf(f, i % 100 ? "{\"v\": %d}\n" : "{\"v\": -%d}\n", i);
    rewind(f);
    struct ws_jsonl r;
    ws_jsonl_init(&r, f, "in");
    struct seen s = {0};
    assert_int_equal(ws_parallel_lines(&r, 4, double_of, see, &s, NULL), 0);
    assert_int_equal(s.next, 2000);
    assert_int_equal(s.n_bad, 20);
    ws_jsonl_deinit(&r);
    fclose(f);
}

/* What Python 3 prints for random.Random(12345) and random.Random(2**40+7). */
static void python_random(void **state)
{
    struct ws_pyrandom r;
    ws_pyrandom_init(&r, 12345);
    assert_true(ws_pyrandom_random(&r) == 0.41661987254534116);
    assert_true(ws_pyrandom_random(&r) == 0.010169169457068361);
    assert_true(ws_pyrandom_random(&r) == 0.8252065092537432);
    ws_pyrandom_init(&r, (UINT64_C(1) << 40) + 7);
    assert_true(ws_pyrandom_random(&r) == 0.6137037779936511);
    assert_int_equal(ws_pyrandom_below(&r, 10), 9);
    assert_int_equal(ws_pyrandom_below(&r, 1000003), 739869);
    assert_true(ws_pyrandom_below(&r, UINT64_C(1) << 40) == UINT64_C(551799892330));
}

static double unit(void *arg)
{
    return ws_random_unit(arg);
}

static void random_has_its_moments(void **state)
{
    struct ws_random r;
    ws_random_init(&r, 1);
    double sum = 0, poisson = 0;
    int counts[6] = {0};
    for (int i = 0; i < 60000; i++) {
        sum += ws_random_exponential(&r);
        poisson += (double)ws_random_poisson(&r, 2.5);
        counts[ws_random_integer(&r, -2, 3) + 2]++;
    }
    assert_true(fabs(sum / 60000 - 1) < 0.02);
    assert_true(fabs(poisson / 60000 - 2.5) < 0.03);
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], 9600, 10400);
    double u[8], total = 0;
    ws_uunifast(1.5, 8, u, unit, &r);
    for (int i = 0; i < 8; i++) {
        assert_true(u[i] >= 0);
        total += u[i];
    }
    assert_true(fabs(total - 1.5) < 1e-12);
}

static void table_lines_up(void **state)
{
    static const char *const heads[] = {"näme", "W", NULL};
    struct ws_table t;
    ws_table_init(&t, heads);
    ws_table_add(&t, "a");
    ws_table_add(&t, "%d", 100);
    ws_table_add(&t, "longer");
    ws_table_add(&t, "%d", 7);
    ws_table_add(&t, "b");
    ws_table_end_row(&t);
    char text[200] = {0};
    FILE *f = fmemopen(text, sizeof(text), "w");
    assert_int_equal(ws_table_print(&t, f), 0);
    fclose(f);
    assert_string_equal(text, "näme      W\na       100\nlonger    7\nb          \n");
    ws_table_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jsonl_says_where), cmocka_unit_test(lines_keep_their_order),
        cmocka_unit_test(python_random),    cmocka_unit_test(random_has_its_moments),
        cmocka_unit_test(table_lines_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
