// SPDX-License-Identifier: Apache-2.0
/* Time and energy.
 *
 * Time. Device time is the host's clock less zero_ns, the same for all GPUs. The device time of an
 * event is that of a reference event plus the time that the driver says elapsed between the two.
 * The driver gives that time as a float of milliseconds: after 1,000 s its steps are 62 us. So the
 * reference is renewed four times a second, whether or not something runs, and how long an
 * operation took is asked of its own two events. The GPU's clock is not exactly as fast as the
 * host's. A new reference was recorded after it was asked for and before it was seen; what the old
 * one says of it is moved into that interval, so the two clocks never drift apart.
 *
 * Energy. NVML's counter steps about ten times a second, and its power is a mean over a second, so
 * neither tells the energy of one kernel. The meter thread reads the counter in windows of at least
 * 100 ms, and so knows the total energy and the mean power of the last window. An operation is
 * given this power times its time, divided by the number of operations that ran beside it. It gets
 * no more than the counter has measured and no operation was given, so the sum over operations
 * never exceeds the counter. The rest is idle energy, which the daemon's ledger distributes. */
#include <time.h>

#include "base/error.h"
#include "device/cuda/cuda_private.h"

#define RENEW_NS  UINT64_C(250000000) /* the age at which the reference is renewed */
#define WINDOW_NS UINT64_C(100000000) /* over which power is measured */
#define UPDATE_NS                                                                                  \
    UINT64_C(100000000) /* between two steps of NVML's counter or its power, at most */
/* Between two samples while something runs; otherwise 1 s. A step is seen so much late at most:
 * little beside UPDATE_NS, because the learner takes the moment for that of the step. */
enum { BUSY_NS = 10000000 };

uint64_t ws_cuda_host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The host's time at device time 0. It is the same for all GPUs, since a program compares events of
 * several. */
static uint64_t zero_ns(const struct ws_cuda *d, uint64_t now)
{
    static _Atomic uint64_t first;
    uint64_t none = 0;
    if (d->options.epoch_ns)
        return WS_MIN(d->options.epoch_ns, now);
    atomic_compare_exchange_strong(&first, &none, now);
    return first;
}

int ws_cuda_clock_open(struct ws_cuda *d)
{
    /* Read first, so that the present time is never before the end of an operation. */
    d->asked_ns = ws_cuda_host_ns();
    d->zero_ns = zero_ns(d, d->asked_ns);
    d->reference_ns = d->asked_ns - d->zero_ns;
    ws_cu_result r =
        WS_CU(d, cuStreamCreateWithPriority, &d->clock_stream, WS_CU_STREAM_NON_BLOCKING, 0);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventCreate, &d->reference, WS_CU_EVENT_DEFAULT);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventCreate, &d->next_reference, WS_CU_EVENT_DEFAULT);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventRecord, d->reference, d->clock_stream);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventSynchronize, d->reference);
    return r == WS_CU_SUCCESS ? 0 : WS_CUDA_E_MISSING;
}

void ws_cuda_clock_close(struct ws_cuda *d)
{
    if (d->clock_stream)
        (void)ws_cuda_drain(d, d->clock_stream);
    if (d->reference)
        (void)d->cu.cuEventDestroy(d->reference);
    if (d->next_reference)
        (void)d->cu.cuEventDestroy(d->next_reference);
    if (d->clock_stream)
        (void)d->cu.cuStreamDestroy(d->clock_stream);
}

bool ws_cuda_event_ns(struct ws_cuda *d, ws_cu_event e, uint64_t *ret)
{
    float ms = 0;
    if (WS_CU(d, cuEventElapsedTime, &ms, d->reference, e) != WS_CU_SUCCESS)
        return false;
    double ns = (double)d->reference_ns + (double)ms * 1e6;
    *ret = ns > 0 ? (uint64_t)ns : 0;
    return true;
}

bool ws_cuda_span_ns(struct ws_cuda *d, ws_cu_event from, ws_cu_event to, uint64_t *ret)
{
    float ms = 0;
    if (WS_CU(d, cuEventElapsedTime, &ms, from, to) != WS_CU_SUCCESS)
        return false;
    *ret = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return true;
}

static void ask(struct ws_cuda *d)
{
    d->asked_ns = ws_cuda_host_ns();
    d->asked = WS_CU(d, cuEventRecord, d->next_reference, d->clock_stream) == WS_CU_SUCCESS;
}

static void see(struct ws_cuda *d)
{
    uint64_t then;
    ws_cu_result r = ws_cuda_end_of(d, d->next_reference);
    if (r == WS_CU_NOT_READY)
        return;
    d->asked = false;
    if (r != WS_CU_SUCCESS || !ws_cuda_event_ns(d, d->next_reference, &then))
        return;
    then = WS_MAX(then, d->asked_ns - d->zero_ns);
    d->reference_ns = WS_MIN(then, ws_cuda_host_ns() - d->zero_ns);
    ws_cu_event old = d->reference;
    d->reference = d->next_reference;
    d->next_reference = old;
}

void ws_cuda_clock_renew(struct ws_cuda *d)
{
    if (d->lost)
        return;
    if (d->asked)
        see(d);
    else if (ws_cuda_host_ns() - d->asked_ns >= RENEW_NS)
        ask(d);
}

uint64_t ws_cuda_now_ns(struct ws_cuda *d)
{
    return ws_cuda_host_ns() - d->zero_ns;
}

/* ---- energy ---- */

/* Reads the counter. Where NVML has none, power over time is summed; where it has no power either,
 * the idle power that was assumed at opening (spec.c). */
static void sample(struct ws_cuda *d)
{
    uint64_t mj, mw, now = ws_cuda_host_ns();
    bool counted = d->has_counter && ws_nvml_read(d->nvml, WS_NVML_ENERGY, &mj);
    bool powered = !counted && d->has_power && ws_nvml_read(d->nvml, WS_NVML_POWER, &mw);
    pthread_mutex_lock(&d->energy_lock);
    if (counted && mj >= d->counter_mj) {
        d->energy_uj += (mj - d->counter_mj) * 1000;
        d->counter_mj = mj;
        if (mj > d->window_mj && now - d->window_ns >= WINDOW_NS) {
            d->power_mw =
                (uint64_t)((double)(mj - d->window_mj) * 1e9 / (double)(now - d->window_ns));
            d->window_mj = mj;
            d->window_ns = now;
        }
    } else if (!counted) {
        if (powered)
            d->power_mw = mw;
        d->energy_uj += d->power_mw * ((now - d->sampled_ns) / 1000) / 1000;
    }
    d->sampled_ns = now;
    pthread_mutex_unlock(&d->energy_lock);
}

static void *meter_main(void *arg)
{
    struct ws_cuda *d = arg;
    pthread_mutex_lock(&d->run_lock);
    while (!d->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        bool busy = d->n_running > 0;
        until.tv_sec += busy ? 0 : 1;
        until.tv_nsec += busy ? BUSY_NS : 0;
        if (until.tv_nsec >= (long)WS_NS_PER_S) {
            until.tv_sec++;
            until.tv_nsec -= (long)WS_NS_PER_S;
        }
        pthread_cond_timedwait(&d->meter_wake, &d->run_lock, &until);
        pthread_mutex_unlock(&d->run_lock);
        sample(d);
        pthread_mutex_lock(&d->run_lock);
    }
    pthread_mutex_unlock(&d->run_lock);
    return NULL;
}

int ws_cuda_meter_open(struct ws_cuda *d)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&d->meter_wake, &a);
    pthread_condattr_destroy(&a);
    d->sampled_ns = d->window_ns = ws_cuda_host_ns();
    d->window_mj = d->counter_mj;
    d->base.meter_update_ns = d->has_counter || d->has_power ? UPDATE_NS : 0;
    int r = pthread_create(&d->meter, NULL, meter_main, d);
    d->meter_on = !r;
    return r ? ws_raise(-EAGAIN) : 0;
}

void ws_cuda_meter_close(struct ws_cuda *d)
{
    if (d->meter_on) {
        pthread_mutex_lock(&d->run_lock);
        d->stop = true;
        pthread_cond_broadcast(&d->meter_wake);
        pthread_mutex_unlock(&d->run_lock);
        pthread_join(d->meter, NULL);
    }
    d->nvml = ws_nvml_close(d->nvml);
    pthread_mutex_destroy(&d->energy_lock);
}

uint64_t ws_cuda_energy_share(struct ws_cuda *d, uint64_t ns, uint32_t n_running)
{
    pthread_mutex_lock(&d->energy_lock);
    double want = (double)d->power_mw * (double)ns / 1e6 / WS_MAX(n_running, 1u);
    uint64_t left = d->energy_uj - WS_MIN(d->given_uj, d->energy_uj);
    uint64_t share = want < (double)left ? (uint64_t)want : left;
    d->given_uj += share;
    pthread_mutex_unlock(&d->energy_lock);
    return share;
}

void ws_cuda_energy(struct ws_cuda *d, uint64_t *ret_uj, uint32_t *ret_mw)
{
    pthread_mutex_lock(&d->energy_lock);
    *ret_uj = d->energy_uj;
    *ret_mw = (uint32_t)d->power_mw;
    pthread_mutex_unlock(&d->energy_lock);
}
