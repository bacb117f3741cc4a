// SPDX-License-Identifier: Apache-2.0
/* Usage: trace_check FILE. Reads a trace as Perfetto would. Fails if a slice is not on a named
 * thread of a named process, if two slices of one thread overlap, or if an arrow does not lead from
 * the beginning of a client's waiting to the operation that begins at its end. Prints the number of
 * operations, how many of them are kernels, and how many waited. */
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACKS = 4096, FIRST_CLIENT = 1000 };
static struct {
    int pid, tid;
    double end;
} tracks[TRACKS];
static size_t n_tracks;

static double number(struct json_object *o, const char *key)
{
    struct json_object *v;
    if (!json_object_object_get_ex(o, key, &v)) {
        fprintf(stderr, "no \"%s\" in %s\n", key, json_object_to_json_string(o));
        exit(1);
    }
    return json_object_get_double(v);
}

static size_t track(int pid, int tid)
{
    for (size_t i = 0; i < n_tracks; i++)
        if (tracks[i].pid == pid && tracks[i].tid == tid)
            return i;
    return n_tracks;
}

/* ---- operations that wait ---- */

struct slice {
    int pid, tid;
    double start, end, id; /* id: of the arrow that begins here */
};
static struct slice operation, waiting; /* the last ones */

static void fail(struct json_object *e)
{
    fprintf(stderr, "wrong: %s\n", json_object_to_json_string(e));
    exit(1);
}

/* Whether an event lies at the beginning of a slice. */
static bool begins(struct json_object *e, const struct slice *s)
{
    return (int)number(e, "pid") == s->pid && (int)number(e, "tid") == s->tid &&
           number(e, "ts") == s->start;
}

static void check_arrow(struct json_object *e, bool end)
{
    if (end && (!begins(e, &operation) || number(e, "id") != waiting.id ||
                fabs(waiting.end - operation.start) > 0.0015))
        fail(e);
    if (!end && !begins(e, &waiting))
        fail(e);
    waiting.id = number(e, "id");
}

int main(int argc, char **argv)
{
    size_t n_slices = 0, n_kernels = 0, n_waits = 0;
    struct json_object *all = argc > 1 ? json_object_from_file(argv[1]) : NULL, *events;
    if (!all || !json_object_object_get_ex(all, "traceEvents", &events)) {
        fprintf(stderr, "no trace: %s\n", json_util_get_last_err());
        return 1;
    }
    for (size_t i = 0; i < json_object_array_length(events); i++) {
        struct json_object *e = json_object_array_get_idx(events, i), *args, *name, *ph;
        json_object_object_get_ex(e, "ph", &ph);
        int pid = (int)number(e, "pid"), tid = (int)number(e, "tid");
        if (!strcmp(json_object_get_string(ph), "M")) {
            if (track(pid, tid) == n_tracks && n_tracks < TRACKS)
                tracks[n_tracks++] = (__typeof__(tracks[0])){pid, tid, -INFINITY};
        } else if (!strcmp(json_object_get_string(ph), "X")) {
            size_t k = track(pid, tid);
            double ts = number(e, "ts"), dur = number(e, "dur");
            json_object_object_get_ex(e, "name", &name);
            if (k == n_tracks || track(pid, 0) == n_tracks || dur < 0 ||
                ts < tracks[k].end - 0.0015)
                fail(e);
            tracks[k].end = ts + dur;
            *(pid < FIRST_CLIENT ? &operation : &waiting) =
                (struct slice){pid, tid, ts, ts + dur, 0};
            if (pid >= FIRST_CLIENT)
                continue;
            if (!json_object_object_get_ex(e, "args", &args))
                fail(e);
            if (number(args, "energy_uj") < 0 || number(args, "client") < 1)
                return 1;
            n_slices++;
            if (json_object_object_get_ex(args, "sms", NULL)) {
                n_kernels++;
                if (number(args, "sms") < 1)
                    return 1;
            }
        } else if (*json_object_get_string(ph) == 's' || *json_object_get_string(ph) == 'f') {
            bool end = *json_object_get_string(ph) == 'f';
            check_arrow(e, end);
            n_waits += end;
        }
    }
    printf("%zu %zu %zu\n", n_slices, n_kernels, n_waits);
    json_object_put(all);
    return 0;
}
