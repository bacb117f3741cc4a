// SPDX-License-Identifier: Apache-2.0
/* The real driver. WATTSHARE_GATE_DRIVER names its file (`wattshare run --gate` looks where the
 * linker would); else it is looked for in the folders where distributions and NVIDIA's installers
 * put it. Its name can't be asked of the linker here: that is our own. */
#include "frontend/gate/gate.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;
static pthread_once_t once = PTHREAD_ONCE_INIT, own_once = PTHREAD_ONCE_INIT;
static struct ws_gate_own own;

void ws_gate_say(bool *said, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    if (__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "wattshare: gate: %s\n", text);
}

/* Opens @path unless it is this library itself, or the one that stands in for the driver. */
static void *open_real(const char *path)
{
    Dl_info ours, theirs;
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL), *init = h ? dlsym(h, "cuInit") : NULL;
    if (init && dladdr((void *)ws_gate_real, &ours) && dladdr(init, &theirs) &&
        ours.dli_fbase != theirs.dli_fbase && !dlsym(h, "wattshare_job_begin"))
        return h;
    if (h)
        dlclose(h);
    return NULL;
}

static void *search(void)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu",
                                          "/usr/lib64",
                                          "/usr/lib/x86_64-linux-gnu/nvidia/current",
                                          "/usr/local/nvidia/lib64",
                                          "/run/opengl-driver/lib",
                                          "/usr/lib/wsl/lib",
                                          "/usr/lib"};
    char path[512];
    void *h = NULL;
    for (size_t i = 0; !h && i < WS_ARRAY_SIZE(folders); i++) {
        snprintf(path, sizeof(path), "%s/libcuda.so.1", folders[i]);
        if (!access(path, R_OK))
            h = open_real(path);
    }
    return h;
}

static void load(void)
{
    static bool said;
    const char *named = getenv("WATTSHARE_GATE_DRIVER");
    library = named && *named ? open_real(named) : search();
    if (library)
        return;
    if (named && *named)
        ws_gate_say(&said,
                    "WATTSHARE_GATE_DRIVER=%s is not an NVIDIA driver library that can be opened",
                    named);
    else
        ws_gate_say(&said, "no NVIDIA driver (libcuda.so.1) was found in the usual folders; set "
                           "WATTSHARE_GATE_DRIVER=FILE");
}

static int no_driver(void)
{
    return 100; /* CUDA_ERROR_NO_DEVICE */
}

void *ws_gate_real(const char *name)
{
    pthread_once(&once, load);
    return library ? dlsym(library, name) : (void *)no_driver;
}

static void load_own(void)
{
    pthread_once(&once, load);
#define X(member, name, args) own.member = library ? (int(*) args)dlsym(library, name) : NULL;
    WS_GATE_OWN(X)
#undef X
    if (!own.event_destroy && library)
        own.event_destroy = (int (*)(void *))dlsym(library, "cuEventDestroy");
    own.complete = own.ctx_current && own.ctx_set && own.ctx_device && own.uuid &&
                   own.event_create && own.event_destroy && own.event_record && own.event_query &&
                   own.event_elapsed;
}

const struct ws_gate_own *ws_gate_own(void)
{
    pthread_once(&own_once, load_own);
    return &own;
}
