// SPDX-License-Identifier: Apache-2.0
/* cli/verbs/smi.h - what the files of `wattshare smi` share. Threads: none. */
#ifndef WS_CLI_VERBS_SMI_H
#define WS_CLI_VERBS_SMI_H

#include <stdio.h>
#include "cli/cli.h"
#include "protocol/monitor.h"

struct ws_smi_format {
    bool no_header, no_units;
};

/* The status has the sum of all GPUs of a client, so the memory on one is known only of a client
 * that uses one. Return: false: not known. */
bool ws_smi_memory(const Ws__ClientStatus *c, uint64_t *ret_bytes);
/* Whether a connected client uses the GPU. */
bool ws_smi_uses(const Ws__ClientStatus *c, const Ws__GpuStatus *g);

/* "NAME,NAME…" of GPUs or, with @apps, of programs. Return: false, with the error printed: one of
 * the names is unknown. */
bool ws_smi_check_fields(const char *names, bool apps);
/* CSV: a line of titles, and a line for each GPU, or program of a GPU. */
void ws_smi_query(FILE *f, const char *names, const struct ws_smi_format *format,
                  const struct ws_monitored *gpus, size_t n);
void ws_smi_query_apps(FILE *f, const char *names, const struct ws_smi_format *format,
                       const struct ws_monitored *gpus, size_t n);

#endif
