// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/fit_events.h - the form of `wattshare fit` that fits the models of power and time
 * from events (models/event_power.h, event_time.h), or checks them. Threads: none. */
#ifndef WS_PAPERS_VERBS_FIT_EVENTS_H
#define WS_PAPERS_VERBS_FIT_EVENTS_H

#include <stdbool.h>

struct ws_fit_events {
    const char *gpu;      /* of the catalog; NULL: the column gpu says it */
    const char *families; /* CSV; NULL: each application is a family */
    const char *more;     /* launches to fit to whose errors are not counted; NULL: none */
    const char *entry;    /* file of the catalog to write to; NULL: none */
    const char *source;   /* of the measurements, for the entry; NULL: the files' names */
    double idle_w;        /* 0: what is expected of such a board */
    bool check;           /* predict with the entry that there is, fit nothing */
};
/* @files: NULL at the end. Return: the exit status. */
int ws_fit_events(const struct ws_fit_events *x, char **files);

#endif
