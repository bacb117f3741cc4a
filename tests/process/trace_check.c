// SPDX-License-Identifier: Apache-2.0
/* Usage: trace_check FILE. Reads a trace as Perfetto would. Fails if a slice is not on a named
 * thread of a named process, or if two slices of one thread overlap. Prints the number of slices
 * and how many of them are kernels. */
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACKS = 4096 };
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

int main(int argc, char **argv)
{
    size_t n_slices = 0, n_kernels = 0;
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
                ts < tracks[k].end - 0.0015 || !json_object_object_get_ex(e, "args", &args)) {
                fprintf(stderr, "wrong: %s\n", json_object_to_json_string(e));
                return 1;
            }
            tracks[k].end = ts + dur;
            if (number(args, "energy_uj") < 0 || number(args, "client") < 1)
                return 1;
            n_slices++;
            if (json_object_object_get_ex(args, "sms", NULL)) {
                n_kernels++;
                if (number(args, "sms") < 1)
                    return 1;
            }
        }
    }
    printf("%zu %zu\n", n_slices, n_kernels);
    json_object_put(all);
    return 0;
}
