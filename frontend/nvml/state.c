// SPDX-License-Identifier: Apache-2.0
/* The daemon's status, asked for again when it is older than a call may see. Two earlier ones are
 * kept for means: `middle` is replaced by `now` every half a second, and `oldest` by `middle`. So
 * there is always one of about a second ago, however often a program asks. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/macros.h"
#include "frontend/nvml/nvml.h"

enum { FRESH_MS = 5, MIDDLE_MS = 500, MEAN_MIN_MS = 100, MEAN_WANTED_MS = 167 };
enum { GPUS_MAX = 64 };

struct status_at {
    Ws__ServerMessage *m;
    uint64_t at_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct {
    unsigned n_init;
    struct status_at now, middle, oldest;
    /* What the counter of each GPU has shown: a daemon reads its clock, the GPU's clock and the
     * GPU's energy one after another, but a counter must not go back. */
    uint64_t shown_uj[GPUS_MAX];
} state;

static struct ws_nvml_device devices[GPUS_MAX];

static void drop(struct status_at *m)
{
    if (m->m)
        ws__server_message__free_unpacked(m->m, NULL);
    *m = (struct status_at){0};
}

static void drop_all(void)
{
    drop(&state.now);
    drop(&state.middle);
    drop(&state.oldest);
    memset(state.shown_uj, 0, sizeof(state.shown_uj));
}

static uint64_t age_ms(const struct status_at *m)
{
    return m->m ? (ws_clock_ns() - m->at_ns) / WS_NS_PER_MS : UINT64_MAX;
}

static int code_of(int r)
{
    switch (-r) {
    case 0:
        return WS_NVML_SUCCESS;
    case EACCES:
    case EPERM:
        return WS_NVML_NO_PERMISSION;
    case EPROTONOSUPPORT:
        return WS_NVML_VERSION_MISMATCH;
    case ENOMEM:
        return WS_NVML_MEMORY;
    case ETIMEDOUT:
        return WS_NVML_TIMEOUT;
    default:
        return WS_NVML_DRIVER_NOT_LOADED;
    }
}

static int refresh(void)
{
    const char *env = getenv(WS_ENV_SOCKET);
    Ws__ServerMessage *m;
    int r = ws_nvml_ask(env && *env ? env : WS_DEFAULT_SOCKET, &m);
    if (r)
        return code_of(r);
    if (state.now.m && state.now.m->status->pid != m->status->pid)
        drop_all(); /* the daemon was started again: its counters began anew */
    if (state.now.m && age_ms(&state.middle) > MIDDLE_MS) {
        drop(&state.oldest);
        state.oldest = state.middle;
        state.middle = state.now;
    } else {
        drop(&state.now);
    }
    state.now = (struct status_at){m, ws_clock_ns()};
    return WS_NVML_SUCCESS;
}

/* With the lock. */
static int freshen(void)
{
    if (!state.n_init)
        return WS_NVML_UNINITIALIZED;
    int r = age_ms(&state.now) < FRESH_MS ? WS_NVML_SUCCESS : refresh();
    return r == WS_NVML_DRIVER_NOT_LOADED ? WS_NVML_GPU_IS_LOST : r; /* it was there before */
}

/* ---- life ---- */

WS_NVML_API int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    int r = state.n_init ? WS_NVML_SUCCESS : refresh();
    if (!r)
        state.n_init++;
    pthread_mutex_unlock(&lock);
    return r;
}

WS_NVML_API int nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

WS_NVML_API int nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

WS_NVML_API int nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    int r = state.n_init ? WS_NVML_SUCCESS : WS_NVML_UNINITIALIZED;
    if (!r && !--state.n_init)
        drop_all();
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- what calls read ---- */

uint32_t ws_nvml_n_gpus(const Ws__StatusReply *s)
{
    uint32_t n = 0;
    while (n < s->n_gpus && n < GPUS_MAX && strcmp(s->gpus[n]->name, "host"))
        n++;
    return n;
}

struct ws_nvml_device *ws_nvml_handle(uint32_t gpu)
{
    return &devices[gpu];
}

/* Return: false: the handle is no device of the status. */
static bool see_gpu(const struct ws_nvml_device *d, const Ws__StatusReply *s,
                    struct ws_nvml_view *ret)
{
    uintptr_t i = ((uintptr_t)d - (uintptr_t)devices) / sizeof(*devices);
    if ((uintptr_t)d < (uintptr_t)devices || i >= ws_nvml_n_gpus(s))
        return false;
    *ret = (struct ws_nvml_view){s, s->gpus[i]};
    return true;
}

int ws_nvml_hold(struct ws_nvml_view *ret)
{
    pthread_mutex_lock(&lock);
    int r = freshen();
    if (r)
        pthread_mutex_unlock(&lock);
    else
        *ret = (struct ws_nvml_view){state.now.m->status, NULL};
    return r;
}

void ws_nvml_release(void)
{
    pthread_mutex_unlock(&lock);
}

int ws_nvml_hold_gpu(const struct ws_nvml_device *d, const void *result, struct ws_nvml_view *ret)
{
    int r = ws_nvml_hold(ret);
    if (!r && (!result || !see_gpu(d, ret->status, ret))) {
        ws_nvml_release();
        r = WS_NVML_INVALID_ARGUMENT;
    }
    return r;
}

/* With the lock. The earlier status that a mean is taken from; NULL: it is too early. */
static const struct status_at *earlier(void)
{
    if (state.middle.m && age_ms(&state.middle) >= MEAN_WANTED_MS)
        return &state.middle;
    if (state.oldest.m)
        return &state.oldest;
    return state.middle.m && age_ms(&state.middle) >= MEAN_MIN_MS ? &state.middle : NULL;
}

/* With the lock. Waits until there is an earlier status. */
static int await_earlier(const struct status_at **ret)
{
    int r = WS_NVML_SUCCESS;
    while (!r && !(*ret = earlier())) {
        nanosleep(&(struct timespec){.tv_nsec = MEAN_MIN_MS * (long)WS_NS_PER_MS}, NULL);
        r = refresh();
    }
    return r;
}

int ws_nvml_hold_two(const struct ws_nvml_device *d, const void *result, struct ws_nvml_view *ret,
                     struct ws_nvml_view *before)
{
    const struct status_at *m;
    int r = ws_nvml_hold_gpu(d, result, ret);
    if (r)
        return r;
    r = await_earlier(&m);
    if (!r && see_gpu(d, state.now.m->status, ret) && see_gpu(d, m->m->status, before))
        return WS_NVML_SUCCESS;
    ws_nvml_release();
    return r ? r : WS_NVML_INVALID_ARGUMENT;
}

struct ws_monitored ws_nvml_two(const struct ws_nvml_view *now, const struct ws_nvml_view *before)
{
    return (struct ws_monitored){now->status, before->status, now->gpu, before->gpu};
}

uint64_t ws_nvml_energy_uj(const struct ws_nvml_view *v)
{
    uint64_t *shown = &state.shown_uj[v->gpu->gpu % GPUS_MAX];
    *shown = WS_MAX(*shown, ws_monitor_energy_uj(v->status, v->gpu));
    return *shown;
}

const Ws__ClientStatus *ws_nvml_next_client(const struct ws_nvml_view *v, size_t *i)
{
    while (*i < v->status->n_clients) {
        const Ws__ClientStatus *c = v->status->clients[(*i)++];
        for (size_t k = 0; c->connected && k < c->n_gpus; k++)
            if (c->gpus[k] == v->gpu->gpu)
                return c;
    }
    return NULL;
}

int ws_nvml_put_text(const char *text, char *buf, unsigned size)
{
    if (!buf)
        return WS_NVML_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return WS_NVML_INSUFFICIENT_SIZE;
    strcpy(buf, text);
    return WS_NVML_SUCCESS;
}
