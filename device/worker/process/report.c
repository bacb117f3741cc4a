// SPDX-License-Identifier: Apache-2.0
/* What the daemon is told without having asked: messages on the "ops" connection, the shared page,
 * and that the context is lost. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "device/worker/process/process.h"

enum {
    PAGE_BUSY_US = 50000, /* how often the shared page is written while something runs */
    PAGE_IDLE_US = 500000,
};

static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t send_lock = PTHREAD_MUTEX_INITIALIZER;

void worker_send(struct ws_wire_head head, struct ws_wire_part body, struct ws_wire_part more,
                 int fd)
{
    pthread_mutex_lock(&send_lock);
    int r = ws_wire_send(WS_WIRE_FD_OPS, head, body, more, fd, 0);
    pthread_mutex_unlock(&send_lock);
    if (r && r != -EPIPE && r != -ECONNRESET) {
        ws_log(WS_ERROR, "worker: the message %s was not sent to the daemon: %s",
               ws_wire_name(head.type), strerror(-r));
        _exit(1); /* the daemon would wait for it for ever */
    }
}

void worker_print(void *arg, enum ws_output to, const char *text, size_t n)
{
    worker_send((struct ws_wire_head){.type = WS_WIRE_PRINT, .id = (uintptr_t)arg, .value = to},
                (struct ws_wire_part){text, n}, WS_PART_NONE, -1);
}

void worker_write_page(void)
{
    struct ws_device_telemetry t;
    pthread_mutex_lock(&page_lock); /* of two threads, the one that asked first writes first */
    ws_device_telemetry(worker.device, &t);
    atomic_fetch_add(&worker.page->seq, 1);
    worker.page->telemetry = t;
    atomic_fetch_add(&worker.page->seq, 1);
    pthread_mutex_unlock(&page_lock);
}

void worker_write_free(void)
{
    atomic_store(&worker.page->free_bytes, ws_device_cuda_free_bytes(worker.device));
}

/* Keeps the page fresh for whoever asks while no operation ends. Programs that do not use the
 * daemon may have taken memory. */
void *worker_page_main(void *arg)
{
    for (;;) {
        usleep(worker.n_running ? PAGE_BUSY_US : PAGE_IDLE_US);
        int usual;
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &usual); /* the driver has locks */
        worker_write_page();
        worker_write_free();
        (void)pthread_setcancelstate(usual, &usual);
    }
    return NULL;
}

void worker_no_answer_if_lost(uint32_t type, int64_t value)
{
    if (!value || ws_wire_rows[type].end == WS_WIRE_ENDS)
        return;
    worker_end_if_lost();
    while (worker.page->lost)
        pause();
}

void worker_end_if_lost(void)
{
    const char *text = ws_device_cuda_lost(worker.device);
    if (!text)
        return;
    pthread_mutex_lock(&page_lock);
    if (!worker.page->lost) {
        snprintf(worker.page->lost_text, sizeof(worker.page->lost_text), "%s", text);
        worker.page->lost = 1;
    }
    pthread_mutex_unlock(&page_lock);
    if (!worker.n_running)
        _exit(WS_WIRE_EXIT_LOST);
}
