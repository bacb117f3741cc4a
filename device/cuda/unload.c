// SPDX-License-Identifier: Apache-2.0
/* Unloading code. The driver may wait for all kernels that run until it has unloaded a module. Who
 * has done with a module does not wait for that: its client may end, and other clients' calls may
 * follow, while a kernel waits for just these. So a thread does nothing but unload. */
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

/* The thread's own: no other context is ever current on it. That the GPU is lost, others see. */
static void unload_one(struct ws_cuda *d, ws_cu_module m)
{
    while (d->cu.cuCtxSetCurrent(d->context) != WS_CU_SUCCESS && !d->lost)
        usleep(1000);
    (void)d->cu.cuModuleUnload(m);
}

static void *unloader_main(void *arg)
{
    struct ws_cuda *d = arg;
    struct ws_cuda_unloads *u = &d->unloads;
    pthread_mutex_lock(&u->lock);
    for (;;) {
        if (!u->n && u->stop)
            break;
        if (!u->n) {
            pthread_cond_wait(&u->wake, &u->lock);
            continue;
        }
        ws_cu_module m = u->v[--u->n];
        pthread_mutex_unlock(&u->lock);
        unload_one(d, m);
        pthread_mutex_lock(&u->lock);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

void ws_cuda_unload(struct ws_cuda *d, ws_cu_module m)
{
    struct ws_cuda_unloads *u = &d->unloads;
    pthread_mutex_lock(&u->lock);
    bool later = u->on && !ws_grow((void **)&u->v, &u->cap, u->n + 1, sizeof(*u->v));
    if (later)
        u->v[u->n++] = m;
    else
        ws_log(WS_ERROR, "cuda: gpu=%u out of memory: code stays on the GPU", d->base.index);
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
}

int ws_cuda_unload_open(struct ws_cuda *d)
{
    struct ws_cuda_unloads *u = &d->unloads;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->wake, NULL);
    u->on = !pthread_create(&u->thread, NULL, unloader_main, d);
    return u->on ? 0 : ws_raise(-EAGAIN);
}

void ws_cuda_unload_close(struct ws_cuda *d)
{
    struct ws_cuda_unloads *u = &d->unloads;
    if (!u->on)
        return;
    pthread_mutex_lock(&u->lock);
    u->stop = true;
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    pthread_join(u->thread, NULL);
    free(u->v);
}
