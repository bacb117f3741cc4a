// SPDX-License-Identifier: Apache-2.0
/* cli/report/report.h - what a trace of `wattshare trace` holds, what follows from it, and the page
 * that shows it. Threads: none. */
#ifndef WS_CLI_REPORT_REPORT_H
#define WS_CLI_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/macros.h"

enum { WS_REPORT_NAME = 160, WS_REPORT_GPUS = 64 };

struct ws_report_slice { /* an operation */
    double start_us, end_us, waited_us;
    uint64_t energy_uj, n_blocks, job; /* n_blocks, job: 0: not known */
    uint32_t gpu, client, kernel;      /* places in the lists below */
    uint32_t n_sms;                    /* of a kernel */
    bool is_kernel;
};
struct ws_report_sum { /* of a client, a kernel or a kind of copy */
    char name[WS_REPORT_NAME];
    uint64_t key, energy_uj, n;
    double busy_us, waited_us;
};
struct ws_report_list {
    struct ws_report_sum *v;
    size_t n, cap;
};
struct ws_report_gpu {
    char name[WS_REPORT_NAME]; /* "": no such GPU */
    int n_sms;                 /* 0: the trace does not say */
    double idle_w, core_mhz;
};
struct ws_report_promise { /* what a client's task has; clients without any are not there */
    uint64_t client;       /* its number */
    int priority;
    double period_ms, deadline_ms;
};
struct ws_report {
    struct ws_report_gpu gpus[WS_REPORT_GPUS];
    struct ws_report_promise *promises;
    size_t n_promises, cap_promises;
    struct ws_report_slice *slices; /* by GPU and start */
    size_t n, cap;
    double start_us, end_us;
    struct ws_report_list clients, kernels;
    /* [waiting * clients.n + working]: for how long operations of one client waited while the
     * other's were on the same GPU, in µs. Where several worked, each is charged the whole time. */
    double *blocked_us;
};

/**
 * ws_report_read() - read a trace and sum it up
 * Return: 0, or negative with the error printed. @ret is freed in either case with
 * ws_report_deinit().
 */
WS_MUST_CHECK int ws_report_read(struct ws_report *ret, const char *path);
void ws_report_deinit(struct ws_report *r);

struct ws_replay; /* replay.h */
/* The page: one HTML file that needs no other. @source: what the trace is called in it. */
void ws_report_html(const struct ws_report *r, const struct ws_replay *other, const char *source,
                    FILE *f);
/* The drawing of who worked when, as SVG within the page. */
void ws_report_timeline(const struct ws_report *r, FILE *f);
/* @text with what HTML gives a meaning made harmless. */
void ws_report_text(const char *text, FILE *f);
/* A client's colour, "#rrggbb". */
const char *ws_report_color(uint32_t client);

#endif
