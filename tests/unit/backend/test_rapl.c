// SPDX-License-Identifier: Apache-2.0
/* backend/rapl: counters of a made-up powercap directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/scheduling/rapl.h"

static char root[] = "/tmp/wattshare-rapl-XXXXXX";

static void put(unsigned package, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/intel-rapl:%u", root, package);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/intel-rapl:%u/%s", root, package, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_counts_and_wraps(void **state)
{
    (void)state;
    struct ws_rapl a, b;
    assert_false(ws_rapl_read(&a, root));
    put(0, "max_energy_range_uj", "1000\n");
    assert_false(ws_rapl_read(&a, root)); /* half of it is nothing */
    put(0, "energy_uj", "900\n");
    put(1, "max_energy_range_uj", "5000\n");
    put(1, "energy_uj", "100\n");
    assert_true(ws_rapl_read(&a, root));
    assert_int_equal(a.n, 2);
    put(0, "energy_uj", "50\n"); /* round the end: 100 + 50 */
    put(1, "energy_uj", "170\n");
    assert_true(ws_rapl_read(&b, root));
    assert_int_equal(ws_rapl_used_uj(&a, &b), 150 + 70);
    put(1, "energy_uj", "rubbish\n");
    assert_true(ws_rapl_read(&b, root));
    assert_int_equal(b.n, 1);
    assert_int_equal(ws_rapl_used_uj(&a, &b), 150);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char path[256];
    for (unsigned p = 0; p < 2; p++) {
        snprintf(path, sizeof(path), "%s/intel-rapl:%u/energy_uj", root, p);
        unlink(path);
        snprintf(path, sizeof(path), "%s/intel-rapl:%u/max_energy_range_uj", root, p);
        unlink(path);
        snprintf(path, sizeof(path), "%s/intel-rapl:%u", root, p);
        rmdir(path);
    }
    return rmdir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts_and_wraps)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
