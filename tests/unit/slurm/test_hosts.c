// SPDX-License-Identifier: Apache-2.0
/* Tests the lists of nodes. It fails if a name is missing, comes twice or loses its zeros, if
 * something that is no list is taken for one, or if a list may be of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slurm/hosts.h"

static int add(const char *name, void *arg)
{
    char *all = arg;
    size_t n = strlen(all);
    snprintf(all + n, 1024 - n, "%s ", name);
    return 0;
}

static void test_names(void **state)
{
    static const struct {
        const char *list, *names;
    } rows[] = {
        {"n1", "n1 "},
        {"n[1-3]", "n1 n2 n3 "},
        {"n[1-2,07-09,11],gpu4", "n1 n2 n07 n08 n09 n11 gpu4 "},
        {"gpu4,n[098-101]", "gpu4 n098 n099 n100 n101 "},
        {"rack[1-2]node[0-1].local", "rack1node0.local rack1node1.local rack2node0.local "
                                     "rack2node1.local "},
        {"[5-6]", "5 6 "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char all[1024] = "";
        assert_int_equal(ws_hosts_each(rows[i].list, add, all), 0);
        assert_string_equal(all, rows[i].names);
    }
}

static void test_what_is_no_list(void **state)
{
    static const char *const lists[] = {
        "",
        ",",
        "a,",
        "a,,b",
        "n[",
        "n]",
        "n[]",
        "n[1",
        "n[1-",
        "n[-1]",
        "n[2-1]",
        "n[1,]",
        "n[x]",
        "n[1x]",
        "n[1-2-3]",
        "n[1234567890]",
        "n[1[2]]",
        "n[1-9999999999]",
        "a123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        char all[1024] = "";
        int r = ws_hosts_each(lists[i], add, all);
        if (r != -EINVAL)
            fail_msg("\"%s\" is taken for \"%s\"", lists[i], all);
    }
}

static int count(const char *name, void *arg)
{
    int *n = arg;
    return ++*n == 10 && !strcmp(name, "stop10") ? 7 : 0;
}

static void test_its_end(void **state)
{
    int n = 0;
    assert_int_equal(ws_hosts_each("n[0-99999999][0-99999999]", count, &n), -E2BIG);
    assert_int_equal(n, WS_HOSTS_MAX);
    n = 0;
    assert_int_equal(ws_hosts_each("n[1-65536]", count, &n), 0);
    assert_int_equal(n, WS_HOSTS_MAX);
    n = 0;
    assert_int_equal(ws_hosts_each("stop[1-20]", count, &n), 7);
    assert_int_equal(n, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_what_is_no_list),
                                       cmocka_unit_test(test_its_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
