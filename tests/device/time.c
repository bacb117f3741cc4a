// SPDX-License-Identifier: Apache-2.0
/* Times of operations on a GPU that is never idle: the driver tells the time between two events as
 * a float of milliseconds, whose steps grow with that time.
 *
 * Usage: time DRIVER NVML */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/device/mocked.h"
#include "tests/device/suite.h"

enum { COPIES = 20 };
#define AGE_NS  (1000 * WS_NS_PER_S)
#define STEP_NS UINT64_C(62500) /* of a float of milliseconds, at that age */

/* Only a new reference is recorded by another thread than that which submits. */
static pthread_t submitter;
static _Atomic unsigned n_references;

static void on_call(const char *name, bool behind)
{
    if (behind && !strcmp(name, "cuEventRecord") && !pthread_equal(pthread_self(), submitter))
        n_references++;
}

int main(int argc, char **argv)
{
    static uint8_t host[4096];
    struct suite s;
    const char *first = "";
    if (argc != 3 || !mocked_open(argv))
        return 2;
    alarm(100); /* nothing may hang */
    mocked_check(!suite_begin(&s), "the device can't be opened");
    struct suite_op runs = suite_launch(&s, 0, K_COUNT, 1, 32, 0, 0, 0, 0);
    uint64_t va = suite_alloc(&s, 0, sizeof(host)), from = ws_device_now_ns(s.device);
    mock.hold(true);
    suite_submit(&s, &runs);
    submitter = pthread_self();
    mock.watch(on_call);
    mock.advance(AGE_NS);
    unsigned n_coarse = 0;
    for (int k = 0; k < COPIES; k++) {
        struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                    .space = s.space[0],
                                    .copy = {.dst_va = va, .src_host = host, .bytes = 4096}}};
        suite_run(&s, &o, WS_DEV_OK);
        n_coarse += (o.op.end_ns - o.op.start_ns) % STEP_NS == 0;
        mocked_check(o.op.start_ns >= from && o.op.end_ns <= ws_device_now_ns(s.device),
                     "an operation was not between its submission and now");
    }
    mocked_check(n_coarse < COPIES / 2, "the times of operations have steps of 62 us");
    for (int ms = 0; ms < 5000 && n_references < 2; ms += 10)
        usleep(10000);
    mocked_check(n_references >= 2, "the reference was not renewed while a kernel ran");
    mock.watch(NULL);
    mock.hold(false);
    suite_wait(&runs);
    suite_end(&s);
    mocked_check(!mock.violations(&first), first);
    printf("times are fine on a GPU that is never idle\n");
    return 0;
}
