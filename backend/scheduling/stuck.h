/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/stuck.h - max_kernel_ms on real GPUs where no policy decides: a kernel that
 * keeps the operations of other clients from ending is ended. Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_STUCK_H
#define WS_BACKEND_SCHEDULING_STUCK_H

#include <stdbool.h>
#include <stdint.h>

struct ws_server;

struct ws_gpu_stuck {  /* of a GPU, at the last look */
    uint64_t suspect;  /* ws_command.begun of the launch that others wait for; 0: there is none */
    uint64_t since_ns; /* host clock: since then no operation of another client has ended */
    uint64_t others_ended; /* …by then: how many had */
    bool urged;
};

/* Looks at all GPUs, if it is time. Return: ms until the next look, or -1. */
int ws_stuck_turn(struct ws_server *s);

#endif
