// SPDX-License-Identifier: Apache-2.0
/* wattshare smi: GPUs and programs in the form that users of nvidia-smi know, for eyes and for
 * scripts. Power and energy are in the host's time (protocol/monitor.h), all else is as in
 * `wattshare status`; power and shares of time are means over a tenth of a second between two
 * statuses. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/common/link.h"
#include "cli/common/options.h"
#include "cli/common/text.h"
#include "cli/verbs/smi.h"

enum { BETWEEN_MS = 100, ALL_GPUS = -1 };

struct smi_options {
    const char *socket, *fields, *app_fields, *format;
    bool list, details;
    int gpu;
};

static const struct ws_option options[] = {
    {"list-gpus", NULL, "List the GPUs with their UUIDs; also -L.",
     WS_FLAG(struct smi_options, list), .letter = 'L'},
    {"query", NULL, "Print what is known of each GPU, a line for each figure; also -q.",
     WS_FLAG(struct smi_options, details), .letter = 'q'},
    {"query-gpu", "FIELDS", "Print these fields of each GPU, separated by commas.",
     .more = "A wrong name is answered with all names.", WS_TEXT(struct smi_options, fields)},
    {"query-compute-apps", "FIELDS", "Print these fields of each program on a GPU.",
     WS_TEXT(struct smi_options, app_fields)},
    {"format", "FORMAT",
     "The form of the fields: csv, and after it, with commas, noheader and "
     "nounits.",
     WS_TEXT(struct smi_options, format)},
    {"id", "GPU", "Only this GPU, by its number.", WS_INT(struct smi_options, gpu, 0, 63)},
    WS_OPTION_SOCKET(struct smi_options, socket),
    {0}};
static const char *const examples[] = {
    "wattshare smi", "wattshare smi -L",
    "wattshare smi --query-gpu=name,power.draw,energy --format=csv,noheader", NULL};

static int smi(int argc, char **argv);

const struct ws_verb ws_verb_smi = {
    .name = "smi",
    .purpose = "show GPUs and programs as nvidia-smi does",
    .options = options,
    .examples = examples,
    .run = smi,
};

/* ---- for eyes ---- */

static void put_list(const struct ws_monitored *gpus, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("GPU %u: %s (UUID: %s)\n", gpus[i].now->gpu, gpus[i].now->product,
               gpus[i].now->uuid);
}

/* A line of a sheet: "Name   : value". */
static void put_line(const char *name, const char *fmt, ...) WS_PRINTF(2, 3);
static void put_line(const char *name, const char *fmt, ...)
{
    va_list ap;
    printf("    %-32s: ", name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

static void put_details(const struct ws_monitored *v)
{
    const Ws__GpuStatus *g = v->now;
    printf("\nGPU %u\n", g->gpu);
    put_line("Product name", "%s", g->product);
    put_line("UUID", "%s", g->uuid);
    put_line("Kind", "%s", strcmp(g->kind, "soft") ? "real" : "software");
    if (g->calibrated[0])
        put_line("Model", "%s: %s", g->name, g->calibrated);
    put_line("Driver", "%s", g->driver[0] ? g->driver : "wattshare " PACKAGE_VERSION);
    put_line("Compute capability", "%u.%u", g->cc_major, g->cc_minor);
    put_line("SMs", "%u", g->n_sms);
    put_line("Memory", "%" PRIu64 " MiB used of %" PRIu64 " MiB", g->memory_used_bytes >> 20,
             g->memory_bytes >> 20);
    put_line("Utilization", "%u %%", ws_monitor_busy_percent(v));
    put_line("Power", "%.2f W", (double)ws_monitor_power_mw(v) / 1e3);
    if (g->limit_mw)
        put_line("Power limit", "%.2f W", (double)g->limit_mw / 1e3);
    put_line("Energy since the daemon's start", "%.4f J",
             (double)ws_monitor_energy_uj(v->status, g) / 1e6);
    put_line("SM clock", "%u MHz (default %u MHz)", g->core_mhz, g->default_core_mhz);
    put_line("Memory clock", "%u MHz (default %u MHz)", g->memory_mhz, g->default_memory_mhz);
    if (g->pcie_generation)
        put_line("PCI Express",
                 "generation %u, %u lanes; %" PRIu64 " KB/s in, %" PRIu64 " KB/s out",
                 g->pcie_generation, g->pcie_lanes, ws_monitor_link_bytes_per_s(v, false) / 1000,
                 ws_monitor_link_bytes_per_s(v, true) / 1000);
    put_line("Temperature", "N/A");
}

#define RULE                                                                                       \
    "+---------------------------------------------------------------------------------------+\n"

static void put_gpu_rows(const struct ws_monitored *gpus, size_t n)
{
    printf(RULE "| %3s  %-30s %9s %12s %19s %6s |\n" RULE, "GPU", "Name", "Power", "Energy",
           "Memory", "Busy");
    for (size_t i = 0; i < n; i++) {
        const Ws__GpuStatus *g = gpus[i].now;
        char name[31];
        printf("| %3u  %-30s %7.1f W %10.1f J %6" PRIu64 " / %6" PRIu64 " MiB %4u %% |\n", g->gpu,
               ws_cli_clean(g->product, name, sizeof(name)),
               (double)ws_monitor_power_mw(&gpus[i]) / 1e3,
               (double)ws_monitor_energy_uj(gpus[i].status, g) / 1e6, g->memory_used_bytes >> 20,
               g->memory_bytes >> 20, ws_monitor_busy_percent(&gpus[i]));
    }
    fputs(RULE, stdout);
}

static void put_app_rows(const struct ws_monitored *gpus, size_t n)
{
    size_t shown = 0;
    printf("\n" RULE "| %3s %10s  %-42s %12s %12s |\n" RULE, "GPU", "PID", "Program", "Energy",
           "Memory");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < gpus[i].status->n_clients; k++) {
            const Ws__ClientStatus *c = gpus[i].status->clients[k];
            char name[43], memory[24] = "N/A";
            uint64_t bytes;
            if (!ws_smi_uses(c, gpus[i].now))
                continue;
            if (ws_smi_memory(c, &bytes))
                snprintf(memory, sizeof(memory), "%" PRIu64 " MiB", bytes >> 20);
            printf("| %3u %10u  %-42s %10.1f J %12s |\n", gpus[i].now->gpu, c->pid,
                   ws_cli_clean(ws_cli_base_name(c->exe), name, sizeof(name)),
                   (double)(c->busy_uj + c->idle_uj) / 1e6, memory);
            shown++;
        }
    if (!shown)
        printf("| %-85s |\n", "No program uses a GPU that you may see.");
    fputs(RULE, stdout);
}

/* ---- the verb ---- */

/* Return: false, with the error printed. */
static bool read_format(const char *text, struct ws_smi_format *ret)
{
    *ret = (struct ws_smi_format){0};
    for (size_t n = 0; text && *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        if (n == strlen("noheader") && !strncmp(text, "noheader", n)) {
            ret->no_header = true;
        } else if (n == strlen("nounits") && !strncmp(text, "nounits", n)) {
            ret->no_units = true;
        } else if (n != strlen("csv") || strncmp(text, "csv", n) != 0) {
            ws_cli_error("--format %.*s: expected csv, noheader or nounits", (int)n, text);
            return false;
        }
    }
    return true;
}

/* The GPUs that are asked for. Return: how many. */
static size_t choose(const Ws__StatusReply *now, const Ws__StatusReply *before, int id,
                     struct ws_monitored *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < now->n_gpus; i++)
        if (id == ALL_GPUS || now->gpus[i]->gpu == (uint32_t)id)
            ret[n++] = (struct ws_monitored){now, before, now->gpus[i],
                                             i < before->n_gpus ? before->gpus[i] : NULL};
    return n;
}

static void put_all(const struct smi_options *o, const struct ws_smi_format *format,
                    const struct ws_monitored *gpus, size_t n)
{
    if (o->fields)
        ws_smi_query(stdout, o->fields, format, gpus, n);
    if (o->app_fields)
        ws_smi_query_apps(stdout, o->app_fields, format, gpus, n);
    if (o->list)
        put_list(gpus, n);
    for (size_t i = 0; o->details && i < n; i++)
        put_details(&gpus[i]);
    if (o->fields || o->app_fields || o->list || o->details)
        return;
    printf("wattshare %s, policy %s\n", PACKAGE_VERSION,
           *gpus[0].status->policy ? gpus[0].status->policy : "none");
    put_gpu_rows(gpus, n);
    put_app_rows(gpus, n);
}

/* Two statuses with a pause between. Return: 0 or negative. */
static int ask_twice(struct ws_cli_link *l, Ws__ServerMessage *ret[2])
{
    struct timespec pause = {0, BETWEEN_MS * (long)WS_NS_PER_MS};
    int r = ws_cli_link_status(l, WS_CLI_TIMEOUT_MS, &ret[0]);
    if (r)
        return r;
    nanosleep(&pause, NULL);
    r = ws_cli_link_status(l, WS_CLI_TIMEOUT_MS, &ret[1]);
    if (r)
        ws__server_message__free_unpacked(ret[0], NULL);
    return r;
}

static int show(const struct smi_options *o, const struct ws_smi_format *format,
                Ws__ServerMessage *const m[2])
{
    const Ws__StatusReply *now = m[1]->status;
    struct ws_monitored *gpus = ws_alloc_array(now->n_gpus + 1, sizeof(*gpus));
    size_t n = gpus ? choose(now, m[0]->status, o->gpu, gpus) : 0;
    int r = n ? 0 : WS_EXIT_USAGE;
    if (n)
        put_all(o, format, gpus, n);
    else
        ws_cli_error("there is no GPU %d; the daemon has %zu, from 0 on", o->gpu, now->n_gpus);
    free(gpus);
    return r;
}

static int smi(int argc, char **argv)
{
    struct smi_options o = {.gpu = ALL_GPUS};
    struct ws_smi_format format;
    struct ws_cli_link *l = NULL;
    Ws__ServerMessage *m[2];
    char **rest;
    int r = ws_verb_parse(&ws_verb_smi, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    if (!read_format(o.format, &format) || (o.fields && !ws_smi_check_fields(o.fields, false)) ||
        (o.app_fields && !ws_smi_check_fields(o.app_fields, true)))
        return WS_EXIT_USAGE;
    const char *endpoint = ws_cli_endpoint(o.socket);
    r = ws_cli_link_open(&l, endpoint);
    if (!r)
        r = ask_twice(l, m);
    ws_cli_link_close(l);
    if (r)
        return ws_cli_no_daemon(endpoint, r, NULL);
    r = show(&o, &format, m);
    ws__server_message__free_unpacked(m[0], NULL);
    ws__server_message__free_unpacked(m[1], NULL);
    return r;
}
