// SPDX-License-Identifier: Apache-2.0
/* backend/process/metrics.h - what Prometheus scrapes: a page of text over HTTP at a local port,
 * and the sums it is made from. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_METRICS_H
#define WS_BACKEND_PROCESS_METRICS_H

#include <stddef.h>
#include "base/macros.h"

struct ws_metrics;
struct ws_server;
struct ws_client;

/* Listens at @address, "ADDRESS:PORT" ("[::1]:PORT" too). Each connection is on the account of its
 * address. Return: 0 or negative errno. */
WS_MUST_CHECK int ws_metrics_open(struct ws_metrics **ret, struct ws_server *s,
                                  const char *address);
void ws_metrics_close(struct ws_metrics *m); /* NULL ok */
/* Readable when ws_metrics_turn() has work. Return: -1 for NULL, and while nobody is to be served:
 * for a while after each page. */
int ws_metrics_fd(struct ws_metrics *m);
void ws_metrics_turn(struct ws_metrics *m, struct ws_server *s);
int ws_metrics_timeout_ms(const struct ws_metrics *m); /* -1: none; NULL ok */

/* The page, in Prometheus' text format. Return: 0 (*ret is malloc'ed), or -ENOMEM. */
WS_MUST_CHECK int ws_metrics_page(struct ws_server *s, char **ret, size_t *ret_n);

/* ---- sums for each user and task, over clients that are there and those that were ---- */
enum { WS_METRICS_USERS_MAX = 100 }; /* for each resource; others share the one called "other" */
enum { WS_TASK_SUMS_MAX = 512 };     /* more tasks than that share the one called "other" */
void ws_task_sums_ended(struct ws_client *c); /* once for each client */
void ws_task_sums_free(struct ws_server *s);

#endif
