// SPDX-License-Identifier: Apache-2.0
/* Loses the GPU at each point of submitting an operation: after the first call of the driver that
 * submitting makes, after the second, and so on. The waiter's thread notices the loss while the
 * submitting thread is held at that point. It fails if an operation is not done exactly once, with
 * an error and a text, or if something is left of the device when it is closed.
 *
 * Usage: lost DRIVER NVML */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"
#include "tests/device/mocked.h"
#include "tests/device/suite.h"

/* ---- losing the GPU ---- */

static struct {
    struct ws_cuda *device; /* what is lost */
    pthread_t thread;       /* that submits */
    unsigned nth;           /* of its calls: behind this one */
    unsigned n_calls;       /* that it has made */
    int kind;               /* of the operation: for messages */
    char name[64];          /* of the call */
} point;
static _Atomic bool stands, go; /* the waiter, before it asks the driver; it may go on */

static void on_call(const char *name, bool behind)
{
    bool submits = pthread_equal(pthread_self(), point.thread);
    if (!submits && !behind && !strcmp(name, "cuEventQuery") && !go) {
        stands = true;
        while (!go)
            usleep(10);
    }
    if (!submits || !behind || ++point.n_calls != point.nth)
        return;
    snprintf(point.name, sizeof(point.name), "%s", name);
    (void)mock.fail_call("cuEventQuery", 1, WS_CU_ILLEGAL_ADDRESS);
    go = true;
    while (!point.device->lost)
        usleep(10);
}

/* ---- what is submitted ---- */

static _Atomic unsigned n_done;

static void on_done(struct ws_op *op)
{
    (void)op;
    n_done++;
}

static void wait_for(unsigned n)
{
    for (int ms = 0; n_done < n && ms < 20000; ms++)
        usleep(1000);
}

enum { KINDS = 5 };
static uint8_t host[1 << 20];

static struct suite_op operation(struct suite *s, int kind, uint64_t va)
{
    struct suite_op o = {.op = {.kind = WS_OPK_COPY, .space = s->space[0]}};
    switch (kind) {
    case 0: /* by the bounce buffer */
        o.op.copy.dst_va = va;
        o.op.copy.src_host = host;
        o.op.copy.bytes = 4096;
        return o;
    case 1: /* by the starter */
        o.op.copy.src_va = va;
        o.op.copy.dst_host = host;
        o.op.copy.bytes = sizeof(host);
        return o;
    case 2:
        o.op.kind = WS_OPK_FILL;
        o.op.fill.va = va;
        o.op.fill.width_bytes = 4096;
        o.op.fill.height = 1;
        o.op.fill.value_bytes = 4;
        return o;
    case 3:
        return suite_launch(s, 0, K_COUNT, 20, 32, 0, 0, 0, 0);
    default: /* by tickets: on one SM */
        o = suite_launch(s, 0, K_SMID, 40, 32, va, va + 65536, 0, 0);
        ws_sm_set_add(&o.op.launch.sms, 1);
        return o;
    }
}

static void check(bool ok, const char *text)
{
    if (ok)
        return;
    fprintf(stderr, "lost: operation %d, behind call %u (%s): %s\n", point.kind, point.nth,
            point.name, text);
    exit(1);
}

static void submit(struct suite *s, struct suite_op *o)
{
    o->op.done = on_done;
    suite_submit(s, o);
}

/* One operation runs and does not end, so that the waiter looks after it; then one of @kind is
 * submitted, and the GPU is lost behind its @nth call. Return: false: it makes fewer calls. */
static bool lose(int kind, unsigned nth)
{
    struct suite s;
    struct ws_device_telemetry t;
    const char *first = "";
    mock.reset();
    n_done = 0;
    point.kind = kind;
    point.nth = nth;
    strcpy(point.name, "none");
    check(!suite_begin(&s), "the device can't be opened");
    uint64_t va = suite_alloc(&s, 0, sizeof(host));
    mock.hold(true);
    struct suite_op runs = suite_launch(&s, 0, K_COUNT, 1, 32, 0, 0, 0, 0),
                    o = operation(&s, kind, va);
    submit(&s, &runs);
    point.thread = pthread_self();
    point.n_calls = 0;
    point.device = ws_cuda_of(s.device);
    stands = go = false;
    mock.watch(on_call);
    while (!stands)
        usleep(10);
    submit(&s, &o);
    go = true;
    mock.watch(NULL);
    mock.hold(false);
    wait_for(2);
    ws_device_telemetry(s.device, &t);
    check(n_done >= 2, "an operation is not done");
    check(t.n_running == 0, "operations are left");
    bool lost = point.n_calls >= nth;
    check(!lost || (o.op.error && o.op.text[0]), "the operation has no error, or no text");
    check(lost || !o.op.error, "an error though nothing failed");
    suite_end(&s); /* the waiter has ended: */
    check(n_done == 2, "an operation is done twice");
    check(!mock.violations(&first), first);
    return lost;
}

int main(int argc, char **argv)
{
    if (argc != 3 || !mocked_open(argv))
        return 2;
    ws_log_set_level(WS_ERROR - 1);
    alarm(300); /* nothing may hang */
    unsigned n = 0;
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned nth = 1; lose(kind, nth); nth++)
            n++;
    printf("lost at %u points of submitting: each operation done once\n", n);
    return n ? 0 : 1;
}
