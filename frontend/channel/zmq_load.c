// SPDX-License-Identifier: Apache-2.0
#include "frontend/channel/zmq_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct ws_zmq table;
static char why[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    /* RTLD_LOCAL: the program may carry a libzmq of its own. */
    void *h = dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!h) {
        snprintf(why, sizeof(why), "%s", dlerror());
        return;
    }
#define LOAD(f)                                                                                    \
    if (!(*(void **)&table.f = dlsym(h, "zmq_" #f))) {                                             \
        snprintf(why, sizeof(why), "libzmq.so.5 has no zmq_" #f);                                  \
        return;                                                                                    \
    }
    WS_ZMQ_FUNCTIONS(LOAD)
#undef LOAD
}

const struct ws_zmq *ws_zmq_load(const char **ret_why)
{
    pthread_once(&once, load);
    *ret_why = why;
    return why[0] ? NULL : &table;
}
