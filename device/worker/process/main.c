// SPDX-License-Identifier: Apache-2.0
/* wattshare-gpu-worker: the process that has a GPU, so that the GPU's faults do not end the daemon
 * (device/worker/worker.h).
 *
 * The daemon names each object by a number: spaces, memories, modules, instances, regions of host
 * memory (objects.c). When the context is lost, nothing more is taken; the operations that had
 * begun end with their error, and then the process ends. It is killed when the daemon ends. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hurry.h"
#include "base/log.h"
#include "base/packet.h"
#include "device/worker/process/process.h"

struct worker worker = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- opening ---- */

static int say_hello(int r, struct ws_wire_hello *h, const struct ws_diags *diags)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return -ENOMEM;
    ws_wire_put_diags(f, diags);
    fclose(f);
    r = ws_wire_send(WS_WIRE_FD_OPS, (struct ws_wire_head){.type = WS_WIRE_HELLO, .value = r},
                     WS_PART(*h), (struct ws_wire_part){text, n}, -1, 0);
    free(text);
    return r;
}

static void describe(struct ws_wire_hello *h)
{
    struct timespec t;
    h->spec = worker.device->spec;
    h->meter_update_ns = worker.device->meter_update_ns;
    (void)ws_device_cuda_uuid(worker.device, h->uuid);
    h->capabilities = *ws_device_cuda_capabilities(worker.device);
    for (uint32_t k = 0; k < h->capabilities.n; k++) {
        snprintf(h->names[k], sizeof(h->names[k]), "%s", h->capabilities.v[k].name);
        h->capabilities.v[k].name = NULL;
    }
    h->now_ns = ws_device_now_ns(worker.device);
    clock_gettime(CLOCK_MONOTONIC, &t);
    h->host_ns = (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Keeps addresses free, before the driver can have something there. */
static bool keep_free(uint64_t va, uint64_t bytes)
{
    void *at = (void *)(uintptr_t)va,
         *p = bytes ? mmap(at, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)
                    : MAP_FAILED;
    if (p != MAP_FAILED && p != at)
        munmap(p, bytes);
    return p == at && bytes;
}

/* Whether host memory can be mapped there: what the daemon posts must not fail. */
static bool maps_at(uint64_t va)
{
    enum { BYTES = 4096 };
    struct ws_space *s = NULL;
    int fd = ws_packet_memfd("wattshare-try", BYTES);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool can = p != MAP_FAILED && !ws_space_new(&s) && !ws_space_map_host(s, va, BYTES, p) &&
               !ws_space_unmap(s, va);
    ws_space_free(s);
    if (p != MAP_FAILED)
        munmap(p, BYTES);
    if (fd >= 0)
        close(fd);
    return can;
}

/* Opens the device and says so. Return: 0: the worker is wanted; else its exit status. */
static int begin(const struct ws_wire_config *c)
{
    struct ws_cuda_options o = {.driver_library = c->driver_library[0] ? c->driver_library : NULL,
                                .nvml_library = c->nvml_library[0] ? c->nvml_library : NULL,
                                .max_running = c->max_running,
                                .preemptible = c->preemptible,
                                .unfenced = c->unfenced,
                                .spin_ns = c->spin_ns};
    struct ws_wire_hello h = {0};
    struct ws_diags diags = WS_DIAGS_NULL;
    char build[sizeof(h.build)];
    ws_wire_build(h.build);
    ws_wire_build(build);
    int r = 0;
    if (strncmp(build, c->build, sizeof(build)) != 0) {
        r = WS_CUDA_E_MISSING;
        ws_diags_add(&diags, NULL, 0, 0, "the GPU's worker is of another build than the daemon");
    } else if (c->ordinal < 0) {
        h.count = ws_cuda_count(&o, &diags);
    } else {
        o.host_va = c->host_va;
        o.host_bytes = keep_free(c->host_va, c->host_bytes) ? c->host_bytes : 0;
        r = ws_device_open_cuda(&worker.device, c->ordinal, c->index, &o, &diags);
    }
    if (worker.device) {
        h.has_host_va = o.host_bytes && maps_at(o.host_va);
        h.keeps = ws_device_cuda_keep(worker.device, &worker_keep);
        describe(&h);
        worker_write_free();
    }
    int sent = say_hello(r, &h, &diags);
    ws_diags_deinit(&diags);
    return sent || r || c->ordinal < 0 ? 1 : 0;
}

/* ---- serving ---- */

typedef void taker(struct ws_wire_message *m);
#define FOR_START(NAME, name)
#define FOR_CALLS(NAME, name)
#define FOR_LOADER(NAME, name)
#define FOR_READER(NAME, name)
#define FOR_OPS(NAME, name)                      [WS_WIRE_##NAME] = worker_on_##name,
#define CALL(NAME, name, thread, out, back, end) FOR_##thread(NAME, name)
#define NOTICE(NAME, name, thread, out, end)     FOR_##thread(NAME, name)
static taker *const takers[_WS_WIRE_TYPES] = {
#include "device/worker/calls.def"
};
#undef CALL
#undef NOTICE

static void serve(struct ws_wire_message *m)
{
    pthread_t calls, later, page;
    if (pthread_create(&calls, NULL, worker_calls_main, NULL) ||
        pthread_create(&later, NULL, worker_later_main, NULL) ||
        pthread_create(&page, NULL, worker_page_main, NULL))
        _exit(1);
    ws_hurry(); /* the daemon asks this thread to stop kernels */
    while (!ws_wire_recv(WS_WIRE_FD_OPS, m)) {
        if (!ws_wire_is_for(m, WS_WIRE_BY_OPS)) {
            ws_log(WS_ERROR, "worker: the daemon sent a wrong submission: type=%u (%s) bytes=%llu",
                   m->head.type, ws_wire_name(m->head.type), (unsigned long long)m->head.bytes);
            _exit(1);
        }
        worker_end_if_lost();
        while (worker.page->lost) /* the next worker's; the last operation's end ends this one */
            pause();
        takers[m->head.type](m);
        ws_wire_done_with(m);
    }
    /* The daemon has closed both connections. What it left is released, so that a driver that
     * counts objects finds none. */
    pthread_join(calls, NULL);
    worker_later_end();
    pthread_join(later, NULL);
    pthread_cancel(page);
    pthread_join(page, NULL);
    worker_release_all();
    ws_device_close(worker.device);
}

int main(int argc, char **argv)
{
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    struct ws_wire_config c;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || !m)
        return 1;
    (void)close_range(WS_WIRE_FD_PAGE + 1, ~0U, 0); /* what the daemon inherited */
    (void)prctl(PR_SET_NAME, "ws-gpu-worker");
    /* Signals of a service manager or a terminal are for the daemon, which ends this process when
     * it is done. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    ws_log_set_output(2, "wattshare-gpu-worker");
    struct stat st;
    if (fstat(WS_WIRE_FD_OPS, &st) || !S_ISSOCK(st.st_mode)) {
        fputs("wattshare-gpu-worker: is started by wattshared(8)\n", stderr);
        return 2;
    }
    if (ws_wire_recv(WS_WIRE_FD_OPS, m) || !ws_wire_is_for(m, WS_WIRE_BY_START))
        return 1;
    memcpy(&c, m->body, sizeof(c));
    c.driver_library[sizeof(c.driver_library) - 1] = 0;
    c.nvml_library[sizeof(c.nvml_library) - 1] = 0;
    ws_wire_done_with(m);
    ws_log_set_level((enum ws_log_level)c.log_level);
    void *page =
        mmap(NULL, sizeof(*worker.page), PROT_READ | PROT_WRITE, MAP_SHARED, WS_WIRE_FD_PAGE, 0);
    if (page == MAP_FAILED)
        return 1;
    worker.page = page;
    int status = begin(&c);
    if (!status)
        serve(m);
    free(m);
    return status;
}
