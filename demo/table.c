// SPDX-License-Identifier: Apache-2.0
/* Prints the demo's tables: table ALONE TOGETHER, prefixes of PREFIX.json (wattshare status
 * --json), PREFIX.results (a line "task kind verdict" for each program) and PREFIX.wall (seconds).
 * Exit status 1 if any program was wrong or is missing. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

enum { MAX_PROGRAMS = 64 };

struct program {
    char task[32], kind[16], verdict[16];
    struct json_object *client; /* of the status */
};
struct phase {
    struct json_object *status;
    struct program programs[MAX_PROGRAMS];
    int n;
    double wall_s;
};

static double number(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_double(v) : 0;
}

static const char *string(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : "";
}

static struct json_object *array(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_array)) {
        fprintf(stderr, "table: the status has no list '%s'\n", key);
        exit(2);
    }
    return v;
}

static FILE *open_part(const char *prefix, const char *suffix)
{
    char path[512];
    snprintf(path, sizeof(path), "%s.%s", prefix, suffix);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(2);
    }
    return f;
}

static void read_phase(struct phase *p, const char *prefix)
{
    char path[512];
    snprintf(path, sizeof(path), "%s.json", prefix);
    p->status = json_object_from_file(path);
    if (!p->status) {
        fprintf(stderr, "table: %s: %s\n", path, json_util_get_last_err());
        exit(2);
    }
    struct json_object *clients = array(p->status, "clients");
    FILE *f = open_part(prefix, "results");
    struct program *g = p->programs;
    for (; p->n < MAX_PROGRAMS && fscanf(f, "%31s %15s %15s", g->task, g->kind, g->verdict) == 3;
         p->n++, g++)
        for (size_t i = 0; i < json_object_array_length(clients); i++) {
            struct json_object *c = json_object_array_get_idx(clients, i);
            if (!strcmp(string(c, "task"), g->task))
                g->client = c;
        }
    fclose(f);
    f = open_part(prefix, "wall");
    if (fscanf(f, "%lf", &p->wall_s) != 1)
        p->wall_s = 0;
    fclose(f);
}

/* What a client answers for: its work and its share of idle energy. Accounts never add up to more
 * than the GPUs' counters, which the operations' own reports (energy_uj) do where operations turned
 * out to have run side by side. They may add up to less: the daemon charges former clients together
 * with what the counters show only after a client has left. */
static double account_j(struct json_object *client)
{
    return (number(client, "busy_uj") + number(client, "idle_uj")) / 1e6;
}

/* Names of the GPUs a client used: "rtx3070". */
static void gpu_names(const struct phase *p, struct json_object *client, char *buf, size_t size)
{
    struct json_object *used = array(client, "gpus"), *gpus = array(p->status, "gpus");
    size_t n = 0;
    buf[0] = 0;
    for (size_t i = 0; i < json_object_array_length(used) && n < size; i++) {
        size_t g = (size_t)json_object_get_int(json_object_array_get_idx(used, i));
        const char *name = g < json_object_array_length(gpus)
                               ? string(json_object_array_get_idx(gpus, g), "name")
                               : "?";
        n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "," : "", name);
    }
}

static int print_programs(const struct phase *p)
{
    static const char *const kinds[][2] = {{"static", "nvcc, static cudart"},
                                           {"shared", "nvcc, shared cudart"},
                                           {"driver", "C, driver API, PTX"}};
    int n_wrong = 0;
    printf("\n%-13s %-20s %-7s %-9s %8s %9s %9s %11s %9s\n", "PROGRAM", "BUILT AS", "RESULT", "GPU",
           "KERNELS", "MIB IN", "MIB OUT", "DEVICE MS", "JOULES");
    for (int i = 0; i < p->n; i++) {
        const struct program *g = &p->programs[i];
        const char *kind = g->kind;
        char gpus[64] = "-";
        for (size_t k = 0; k < WS_ARRAY_SIZE(kinds); k++)
            if (!strcmp(kind, kinds[k][0]))
                kind = kinds[k][1];
        if (g->client)
            gpu_names(p, g->client, gpus, sizeof(gpus));
        n_wrong += strcmp(g->verdict, "right") != 0 || !g->client;
        printf("%-13s %-20s %-7s %-9s %8.0f %9.2f %9.2f %11.3f %9.4f\n", g->task, kind, g->verdict,
               gpus, number(g->client, "n_kernels"), number(g->client, "bytes_in") / 1048576,
               number(g->client, "bytes_out") / 1048576, number(g->client, "device_ns") / 1e6,
               account_j(g->client));
    }
    return n_wrong;
}

/* From the first start to the last end. Alone there is no overlap: the clients' own spans follow
 * one another. Together: each GPU's clock started at 0 with its daemon. */
static double makespan_ms(const struct phase *p, int is_together)
{
    double ns = 0;
    struct json_object *gpus = array(p->status, "gpus");
    if (!is_together)
        for (int i = 0; i < p->n; i++)
            ns += number(p->programs[i].client, "span_ns");
    else
        for (size_t i = 0; i < json_object_array_length(gpus); i++) {
            double now = number(json_object_array_get_idx(gpus, i), "device_ns");
            ns = now > ns ? now : ns;
        }
    return ns / 1e6;
}

static double gpus_sum(const struct phase *p, const char *key)
{
    double sum = 0;
    struct json_object *gpus = array(p->status, "gpus");
    for (size_t i = 0; i < json_object_array_length(gpus); i++)
        sum += number(json_object_array_get_idx(gpus, i), key);
    return sum;
}

static void print_total(const char *what, double alone, double together, int digits)
{
    printf("%-44s %18.*f %12.*f", what, digits, alone, digits, together);
    if (alone > 0)
        printf(" %8.2f ×", together / alone);
    putchar('\n');
}

int main(int argc, char **argv)
{
    static struct phase alone, together;
    if (argc != 3) {
        fprintf(stderr, "usage: table ALONE TOGETHER\n");
        return 2;
    }
    read_phase(&alone, argv[1]);
    read_phase(&together, argv[2]);
    int n_wrong = print_programs(&together);
    for (int i = 0; i < alone.n; i++)
        if (strcmp(alone.programs[i].verdict, "right")) {
            printf("%s was wrong when it ran alone\n", alone.programs[i].task);
            n_wrong++;
        }
    printf("\n%-44s %18s %12s\n", "TOTAL", "ONE AFTER ANOTHER", "TOGETHER");
    print_total("time on the GPUs' clock, ms", makespan_ms(&alone, 0), makespan_ms(&together, 1),
                3);
    print_total("energy of both GPUs, J", gpus_sum(&alone, "energy_uj") / 1e6,
                gpus_sum(&together, "energy_uj") / 1e6, 4);
    print_total("kernels", gpus_sum(&alone, "n_kernels"), gpus_sum(&together, "n_kernels"), 0);
    print_total("wall time of this machine, s", alone.wall_s, together.wall_s, 2);
    printf("\nDevice time and energy are modelled (a GPU of the catalog at its clocks); the "
           "computing was done by this machine's CPU.\n");
    json_object_put(alone.status);
    json_object_put(together.status);
    return n_wrong || !together.n;
}
