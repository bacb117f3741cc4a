// SPDX-License-Identifier: Apache-2.0
/* A finished operation reaches the loop in one of two ways: the device finished it inside
 * ws_device_submit(), which the submitter sees by a flag (no queue, no wake-up); or it is pushed
 * on a lock-free list that the loop takes whole, and only the push onto an empty list writes to
 * the eventfd. What follows from an end may take long, so the loop only gives each client its own
 * there; ws_server_run_ready() (run.h) does the rest. */
#include "backend/scheduling/finished.h"

#include <unistd.h>

#include "backend/backend.h"
#include "backend/client/stream.h"
#include "backend/scheduling/energy.h"

void ws_command_done(struct ws_op *op)
{
    struct ws_command *j = WS_CONTAINER_OF(op, struct ws_command, op);
    struct ws_server *s = j->client->server;
    if (!j->carries) /* of a merged launch each member is charged its part */
        ws_energy_charge(j->client, j->stream->context->gpu->device->index, op->energy_uj);
    if (pthread_equal(pthread_self(), s->commands.thread) && j->submitting) {
        j->finished_inline = true;
        return;
    }
    int fd = s->commands.wake_fd;
    atomic_fetch_add(&s->commands.n_waking, 1);
    struct ws_command *head = atomic_load_explicit(&s->commands.finished, memory_order_relaxed);
    do {
        j->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&s->commands.finished, &head, j,
                                                    memory_order_release, memory_order_relaxed));
    if (!head) {
        uint64_t one = 1;
        ssize_t ignored = write(fd, &one, sizeof(one));
        (void)ignored; /* full means that it is readable already */
    }
    atomic_fetch_sub(&s->commands.n_waking, 1); /* from here on the server may be gone */
}

static struct ws_command *take_in_order(struct ws_server *s)
{
    struct ws_command *j = atomic_exchange_explicit(&s->commands.finished, NULL,
                                                    memory_order_acquire),
                      *in_order = NULL;
    while (j) {
        struct ws_command *next = j->next;
        j->next = in_order;
        in_order = j;
        j = next;
    }
    return in_order;
}

void ws_finished_deal(struct ws_server *s)
{
    for (struct ws_command *j = take_in_order(s), *next; j; j = next) {
        next = j->next;
        ws_client_op_ended(j);
    }
}
