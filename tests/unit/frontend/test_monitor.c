// SPDX-License-Identifier: Apache-2.0
/* What monitors show of a GPU, from two statuses that are one second apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "protocol/monitor.h"

static struct two {
    Ws__StatusReply status[2];
    Ws__GpuStatus gpu[2];
} t;
static const struct ws_monitored m = {&t.status[1], &t.status[0], &t.gpu[1], &t.gpu[0]};

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ws__status_reply__init(&t.status[i]);
        ws__gpu_status__init(&t.gpu[i]);
        t.gpu[i].kind = "soft";
        t.status[i].uptime_ns = (uint64_t)(3 + i) * WS_NS_PER_S;
    }
    return 0;
}

static void test_the_link(void **state)
{
    (void)state;
    t.gpu[0].bytes_in = 1000;
    t.gpu[1].bytes_in = 5001000;
    t.gpu[0].bytes_out = 7;
    t.gpu[1].bytes_out = 1007;
    assert_int_equal(ws_monitor_link_bytes_per_s(&m, false), 5000000);
    assert_int_equal(ws_monitor_link_bytes_per_s(&m, true), 1000);
    t.status[1].uptime_ns += WS_NS_PER_S; /* two seconds */
    assert_int_equal(ws_monitor_link_bytes_per_s(&m, false), 2500000);
    t.gpu[1].bytes_in = 0; /* another daemon's */
    assert_int_equal(ws_monitor_link_bytes_per_s(&m, false), 0);
    t.status[1].uptime_ns = t.status[0].uptime_ns;
    assert_int_equal(ws_monitor_link_bytes_per_s(&m, true), 0);
    assert_int_equal(ws_monitor_link_bytes_per_s(
                         &(struct ws_monitored){&t.status[1], NULL, &t.gpu[1], NULL}, true),
                     0);
}

static void test_power(void **state)
{
    (void)state;
    t.gpu[0].idle_mw = t.gpu[1].idle_mw = 20000;
    t.gpu[1].energy_uj = 3000000;
    t.gpu[1].device_ns = WS_NS_PER_S / 2; /* the other half it idled */
    assert_int_equal(ws_monitor_power_mw(&m), 13000);
    t.gpu[1].kind = "cuda";
    t.gpu[1].power_mw = 77;
    assert_int_equal(ws_monitor_power_mw(&m), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_link, setup),
        cmocka_unit_test_setup(test_power, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
