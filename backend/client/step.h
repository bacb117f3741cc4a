/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/step.h - a client that a batch scheduler started: what it may have, and what it
 * leaves on its batch job's account. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_STEP_H
#define WS_BACKEND_CLIENT_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/config/task.h"

struct ws_client;
struct ws_server;
struct ws_batch_step;

/* The step of the program that made the connection @fd: as the kernel told us, @pid of user @uid.
 * NULL: it is in none. */
struct ws_batch_step *ws_step_of_program(struct ws_server *s, int fd, uint32_t pid, uint32_t uid);
/* What the step says takes the place of what the task says, but a limit of either holds. */
void ws_step_apply(const struct ws_batch_step *t, struct ws_task *work);
/* Keeps those of order[n] that were allotted to the step; all that were, if none of them is among
 * these. Return: how many. */
uint32_t ws_step_gpus(const struct ws_server *s, const struct ws_batch_step *t, uint32_t *order,
                      uint32_t n);
/* Device memory that the clients of the same batch job have. */
uint64_t ws_step_memory_used(const struct ws_client *c);
/* "JOB.STEP", as the scheduler writes it. Return: @buf. */
const char *ws_step_text(const struct ws_batch_step *t, char *buf, size_t size);
/* The client is freed, and its energy is settled. */
void ws_step_forget(struct ws_client *c);
/* Ends the clients of steps whose process has ended (ws_client_leave()). */
void ws_steps_turn(struct ws_server *s);

#endif
