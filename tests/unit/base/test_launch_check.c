// SPDX-License-Identifier: Apache-2.0
/* base/launch_check.h: each rule at its border, and the first broken rule is the one that is
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/launch_check.h"
#include "base/macros.h"

static void test_rules(void **state)
{
    (void)state;
    static const struct {
        const char *description;
        uint32_t grid[3], block[3], static_shared, dynamic_shared, kernel_threads;
        enum ws_launch_rule rule;
    } rows[] = {
        {"one thread", {1, 1, 1}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_VALID},
        {"largest grid", {INT32_MAX, 65535, 65535}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_VALID},
        {"no grid x", {0, 1, 1}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_BAD_GRID},
        {"no grid z", {1, 1, 0}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_BAD_GRID},
        {"grid x", {UINT32_C(1) << 31, 1, 1}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_BAD_GRID},
        {"grid y", {1, 65536, 1}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_BAD_GRID},
        {"grid z", {1, 1, 65536}, {1, 1, 1}, 0, 0, 0, WS_LAUNCH_BAD_GRID},
        {"largest blocks", {1, 1, 1}, {16, 1, 64}, 0, 0, 0, WS_LAUNCH_VALID},
        {"no block y", {1, 1, 1}, {1, 0, 1}, 0, 0, 0, WS_LAUNCH_BAD_BLOCK},
        {"block x", {1, 1, 1}, {1025, 1, 1}, 0, 0, 0, WS_LAUNCH_BAD_BLOCK},
        {"block z", {1, 1, 1}, {1, 1, 65}, 0, 0, 0, WS_LAUNCH_BAD_BLOCK},
        {"threads", {1, 1, 1}, {32, 33, 1}, 0, 0, 0, WS_LAUNCH_BAD_BLOCK},
        {"as compiled", {1, 1, 1}, {256, 1, 1}, 0, 0, 256, WS_LAUNCH_VALID},
        {"too many for it", {1, 1, 1}, {257, 1, 1}, 0, 0, 256, WS_LAUNCH_TOO_MANY_THREADS},
        {"shared", {1, 1, 1}, {1, 1, 1}, 1000, 99 * 1024 - 1000, 0, WS_LAUNCH_VALID},
        {"too much", {1, 1, 1}, {1, 1, 1}, 1000, 99 * 1024 - 999, 0, WS_LAUNCH_TOO_MUCH_SHARED},
        {"wraps", {1, 1, 1}, {1, 1, 1}, 1, UINT32_MAX, 0, WS_LAUNCH_TOO_MUCH_SHARED},
        {"grid before block", {0, 1, 1}, {0, 1, 1}, 0, UINT32_MAX, 1, WS_LAUNCH_BAD_GRID},
        {"block before shared", {1, 1, 1}, {0, 1, 1}, 0, UINT32_MAX, 1, WS_LAUNCH_BAD_BLOCK},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        struct ws_launch_shape l = {
            .grid = {rows[k].grid[0], rows[k].grid[1], rows[k].grid[2]},
            .block = {rows[k].block[0], rows[k].block[1], rows[k].block[2]},
            .static_shared_bytes = rows[k].static_shared,
            .dynamic_shared_bytes = rows[k].dynamic_shared,
            .max_threads_per_block = 1024,
            .max_shared_bytes = 99 * 1024,
            .kernel_max_threads = rows[k].kernel_threads,
        };
        if (ws_launch_check(&l) != rows[k].rule)
            fail_msg("%s: %d", rows[k].description, (int)ws_launch_check(&l));
    }
}

static void test_clusters(void **state)
{
    (void)state;
    static const struct {
        const char *description;
        uint32_t cc_major;
        bool non_portable, must;
        uint32_t grid[3], cluster[3], compiled[3], most;
        bool valid;
    } rows[] = {
        {"nobody says", 7, false, false, {5, 1, 1}, {0}, {0}, 0, true},
        {"one block", 7, false, false, {5, 1, 1}, {1, 1, 1}, {0}, 0, true},
        {"no clusters there", 8, true, false, {4, 1, 1}, {2, 1, 1}, {0}, 0, false},
        {"whole ones", 9, false, false, {4, 6, 8}, {2, 2, 2}, {0}, 0, true},
        {"not in y", 9, false, false, {4, 5, 8}, {2, 2, 2}, {0}, 0, false},
        {"nine", 9, false, false, {9, 1, 1}, {9, 1, 1}, {0}, 0, false},
        {"nine, not portable", 9, true, false, {9, 1, 1}, {9, 1, 1}, {0}, 0, true},
        {"17", 9, true, false, {17, 1, 1}, {17, 1, 1}, {0}, 0, false},
        {"products wrap",
         9,
         true,
         false,
         {0x10000, 0x8000, 2},
         {0x10000, 0x8000, 2},
         {0},
         0,
         false},
        {"no z", 9, false, false, {4, 1, 1}, {4, 1, 0}, {0}, 0, false},
        {"as compiled", 9, false, false, {4, 1, 1}, {0}, {4, 1, 1}, 0, true},
        {"half of what was compiled", 9, false, false, {2, 1, 1}, {0}, {4, 1, 1}, 0, false},
        {"other than compiled", 9, false, false, {4, 1, 1}, {2, 1, 1}, {4, 1, 1}, 0, false},
        {"same as compiled", 9, false, false, {4, 1, 1}, {4, 1, 1}, {4, 1, 1}, 0, true},
        {"the kernel's most", 9, false, false, {4, 1, 1}, {4, 1, 1}, {0}, 4, true},
        {"more than the kernel's", 9, false, false, {4, 1, 1}, {4, 1, 1}, {0}, 3, false},
        {"must be said", 9, false, true, {4, 1, 1}, {0}, {0}, 0, false},
        {"is said", 9, false, true, {4, 1, 1}, {1, 1, 1}, {0}, 0, true},
        {"12.0 has 8", 12, true, false, {16, 1, 1}, {16, 1, 1}, {0}, 0, false},
        {"10.0 has 16", 10, true, false, {16, 1, 1}, {16, 1, 1}, {0}, 0, true},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        struct ws_launch_shape l = {
            .block = {1, 1, 1},
            .max_threads_per_block = 1024,
            .kernel_must_cluster = rows[k].must,
            .kernel_max_cluster = rows[k].most,
            .max_cluster = ws_launch_max_cluster(rows[k].cc_major, rows[k].non_portable)};
        memcpy(l.grid, rows[k].grid, sizeof(l.grid));
        memcpy(l.cluster, rows[k].cluster, sizeof(l.cluster));
        memcpy(l.kernel_cluster, rows[k].compiled, sizeof(l.kernel_cluster));
        if (ws_launch_check(&l) != (rows[k].valid ? WS_LAUNCH_VALID : WS_LAUNCH_BAD_CLUSTER))
            fail_msg("%s: %d", rows[k].description, (int)ws_launch_check(&l));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_clusters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
