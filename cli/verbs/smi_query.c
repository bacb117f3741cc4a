// SPDX-License-Identifier: Apache-2.0
/* wattshare smi --query-gpu and --query-compute-apps: the fields by the names that scripts know. A
 * field that wattshare knows nothing of is "[N/A]", as on a GPU that does not measure it. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "cli/common/text.h"
#include "cli/verbs/smi.h"

enum { CELL_BYTES = 256 };
#define NOT_KNOWN "[N/A]"

struct smi_row {
    const struct ws_monitored *gpu;
    const Ws__ClientStatus *client; /* NULL in a table of GPUs */
};

struct smi_field {
    const char *name, *unit; /* unit NULL: none */
    /* Writes nothing where the value is not known. NULL: it is never known. */
    void (*put)(const struct smi_row *r, char *buf, size_t size);
};

/* ---- of GPUs ---- */

#define NUMBER(function, fmt, value)                                                               \
    static void function(const struct smi_row *r, char *buf, size_t size)                          \
    {                                                                                              \
        snprintf(buf, size, fmt, value);                                                           \
    }
#define TEXT(function, value)                                                                      \
    static void function(const struct smi_row *r, char *buf, size_t size)                          \
    {                                                                                              \
        ws_cli_clean(value, buf, size);                                                            \
    }
/* 0 stands for what is not known. */
#define NUMBER_IF_KNOWN(function, fmt, known, value)                                               \
    static void function(const struct smi_row *r, char *buf, size_t size)                          \
    {                                                                                              \
        if (known)                                                                                 \
            snprintf(buf, size, fmt, value);                                                       \
    }

NUMBER(put_index, "%u", r->gpu->now->gpu)
NUMBER(put_count, "%zu", r->gpu->status->n_gpus)
TEXT(put_name, r->gpu->now->product)
TEXT(put_uuid, r->gpu->now->uuid)
NUMBER(put_bus_id, "00000000:%02X:00.0", r->gpu->now->gpu + 1)
NUMBER(put_memory, "%" PRIu64, r->gpu->now->memory_bytes >> 20)
NUMBER(put_used, "%" PRIu64, r->gpu->now->memory_used_bytes >> 20)
NUMBER(put_free, "%" PRIu64,
       (r->gpu->now->memory_bytes -
        WS_MIN(r->gpu->now->memory_used_bytes, r->gpu->now->memory_bytes)) >>
           20)
NUMBER(put_busy, "%u", ws_monitor_busy_percent(r->gpu))
NUMBER(put_power, "%.2f", (double)ws_monitor_power_mw(r->gpu) / 1e3)
NUMBER_IF_KNOWN(put_pcie, "%u", r->gpu->now->pcie_generation, r->gpu->now->pcie_generation)
NUMBER_IF_KNOWN(put_lanes, "%u", r->gpu->now->pcie_lanes, r->gpu->now->pcie_lanes)
NUMBER_IF_KNOWN(put_limit, "%.2f", r->gpu->now->limit_mw, (double)r->gpu->now->limit_mw / 1e3)
NUMBER(put_energy, "%.4f", (double)ws_monitor_energy_uj(r->gpu->status, r->gpu->now) / 1e6)
NUMBER(put_core, "%u", r->gpu->now->core_mhz)
NUMBER(put_memory_clock, "%u", r->gpu->now->memory_mhz)
NUMBER(put_core_max, "%u", r->gpu->now->default_core_mhz)
NUMBER(put_memory_max, "%u", r->gpu->now->default_memory_mhz)
NUMBER(put_compute_mode, "%s", "Default")
NUMBER(put_off, "%s", "Disabled")

static void put_cc(const struct smi_row *r, char *buf, size_t size)
{
    snprintf(buf, size, "%u.%u", r->gpu->now->cc_major, r->gpu->now->cc_minor);
}

static void put_driver(const struct smi_row *r, char *buf, size_t size)
{
    const char *driver = r->gpu->now->driver;
    if (*driver)
        snprintf(buf, size, "%.*s", (int)strcspn(driver, " "), driver);
    else
        snprintf(buf, size, "%s", PACKAGE_VERSION);
}

static void put_time(const struct smi_row *r, char *buf, size_t size)
{
    struct timespec t;
    struct tm tm;
    (void)r;
    clock_gettime(CLOCK_REALTIME, &t);
    localtime_r(&t.tv_sec, &tm);
    size_t n = strftime(buf, size, "%Y/%m/%d %H:%M:%S", &tm);
    snprintf(buf + n, size - n, ".%03ld", t.tv_nsec / 1000000);
}

static const struct smi_field gpu_fields[] = {
    {"timestamp", NULL, put_time},
    {"index", NULL, put_index},
    {"count", NULL, put_count},
    {"name", NULL, put_name},
    {"uuid", NULL, put_uuid},
    {"driver_version", NULL, put_driver},
    {"compute_cap", NULL, put_cc},
    {"pci.bus_id", NULL, put_bus_id},
    {"memory.total", "MiB", put_memory},
    {"memory.used", "MiB", put_used},
    {"memory.free", "MiB", put_free},
    {"utilization.gpu", "%", put_busy},
    {"utilization.memory", "%", NULL},
    {"power.draw", "W", put_power},
    {"power.draw.instant", "W", put_power},
    {"power.limit", "W", put_limit},
    {"enforced.power.limit", "W", put_limit},
    {"energy", "J", put_energy}, /* our own: since the daemon's start */
    {"clocks.sm", "MHz", put_core},
    {"clocks.gr", "MHz", put_core},
    {"clocks.mem", "MHz", put_memory_clock},
    {"clocks.max.sm", "MHz", put_core_max},
    {"clocks.max.gr", "MHz", put_core_max},
    {"clocks.max.mem", "MHz", put_memory_max},
    {"compute_mode", NULL, put_compute_mode},
    {"display_active", NULL, put_off},
    {"mig.mode.current", NULL, NULL},
    {"persistence_mode", NULL, NULL},
    {"pstate", NULL, NULL},
    {"temperature.gpu", NULL, NULL},
    {"temperature.memory", NULL, NULL},
    {"fan.speed", "%", NULL},
    {"ecc.mode.current", NULL, NULL},
    {"serial", NULL, NULL},
    {"vbios_version", NULL, NULL},
    {"pcie.link.gen.current", NULL, put_pcie},
    {"pcie.link.gen.max", NULL, put_pcie},
    {"pcie.link.gen.gpumax", NULL, put_pcie},
    {"pcie.link.width.current", NULL, put_lanes},
    {"pcie.link.width.max", NULL, put_lanes},
};

/* ---- of programs ---- */

static void put_app_memory(const struct smi_row *r, char *buf, size_t size)
{
    uint64_t bytes;
    if (ws_smi_memory(r->client, &bytes))
        snprintf(buf, size, "%" PRIu64, bytes >> 20);
}

NUMBER(put_pid, "%u", r->client->pid)
TEXT(put_exe, r->client->exe)
TEXT(put_task, *r->client->work ? r->client->work : r->client->task)
NUMBER(put_app_energy, "%.4f", (double)(r->client->busy_uj + r->client->idle_uj) / 1e6)

static const struct smi_field app_fields[] = {
    {"timestamp", NULL, put_time},          {"pid", NULL, put_pid},
    {"process_name", NULL, put_exe},        {"name", NULL, put_exe},
    {"used_memory", "MiB", put_app_memory}, {"used_gpu_memory", "MiB", put_app_memory},
    {"gpu_name", NULL, put_name},           {"gpu_uuid", NULL, put_uuid},
    {"gpu_bus_id", NULL, put_bus_id},       {"task", NULL, put_task}, /* our own */
    {"energy", "J", put_app_energy}, /* our own: of all GPUs that it uses */
};

/* ---- the table ---- */

struct smi_fields {
    const struct smi_field *v;
    size_t n;
};
static const struct smi_fields of_gpus = {gpu_fields, WS_ARRAY_SIZE(gpu_fields)};
static const struct smi_fields of_apps = {app_fields, WS_ARRAY_SIZE(app_fields)};

/* The next name of "NAME, NAME…", and where the one after it begins; NULL at the end. */
static const char *next_name(const char *names, size_t *ret_len)
{
    names += strspn(names, ", ");
    *ret_len = strcspn(names, ", ");
    return *ret_len ? names : NULL;
}

static const struct smi_field *find(const struct smi_fields *f, const char *name, size_t len)
{
    for (size_t i = 0; i < f->n; i++)
        if (strlen(f->v[i].name) == len && !strncmp(f->v[i].name, name, len))
            return &f->v[i];
    return NULL;
}

bool ws_smi_check_fields(const char *names, bool apps)
{
    const struct smi_fields *f = apps ? &of_apps : &of_gpus;
    char all[1024] = "";
    size_t len, at = 0;
    while ((names = next_name(names, &len)) && find(f, names, len))
        names += len;
    if (!names)
        return true;
    for (size_t i = 0; i < f->n && at < sizeof(all); i++)
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i ? ", " : "", f->v[i].name);
    ws_cli_error("smi has no field '%.*s'; it has %s", (int)len, names, all);
    return false;
}

static void put_titles(FILE *f, const struct smi_fields *fields, const char *names,
                       const struct ws_smi_format *format)
{
    size_t len;
    for (const char *between = ""; (names = next_name(names, &len)); names += len) {
        const struct smi_field *x = find(fields, names, len);
        fprintf(f, "%s%s", between, x->name);
        if (x->unit && !format->no_units)
            fprintf(f, " [%s]", x->unit);
        between = ", ";
    }
    fputc('\n', f);
}

static void put_row(FILE *f, const struct smi_fields *fields, const char *names,
                    const struct ws_smi_format *format, const struct smi_row *r)
{
    size_t len;
    for (const char *between = ""; (names = next_name(names, &len)); names += len) {
        const struct smi_field *x = find(fields, names, len);
        char cell[CELL_BYTES] = "";
        if (x->put)
            x->put(r, cell, sizeof(cell));
        fprintf(f, "%s%s", between, *cell ? cell : NOT_KNOWN);
        if (*cell && x->unit && !format->no_units)
            fprintf(f, " %s", x->unit);
        between = ", ";
    }
    fputc('\n', f);
}

void ws_smi_query(FILE *f, const char *names, const struct ws_smi_format *format,
                  const struct ws_monitored *gpus, size_t n)
{
    if (!format->no_header)
        put_titles(f, &of_gpus, names, format);
    for (size_t i = 0; i < n; i++)
        put_row(f, &of_gpus, names, format, &(struct smi_row){&gpus[i], NULL});
}

void ws_smi_query_apps(FILE *f, const char *names, const struct ws_smi_format *format,
                       const struct ws_monitored *gpus, size_t n)
{
    if (!format->no_header)
        put_titles(f, &of_apps, names, format);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < gpus[i].status->n_clients; k++)
            if (ws_smi_uses(gpus[i].status->clients[k], gpus[i].now))
                put_row(f, &of_apps, names, format,
                        &(struct smi_row){&gpus[i], gpus[i].status->clients[k]});
}
