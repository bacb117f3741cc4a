// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "papers/experiments/truth.h"
#include "papers/fit/entry.h"
#include "papers/live/live.h"

const struct ws_truth_source ws_truth_sources[WS_TRUTH_SOURCES] = {
    {"v100", "V100", "nvdvfs-nvprof/v100.csv", NULL, true, "nvdvfs-dcgm/v100-real.csv"},
    {"p100", "P100", "nvdvfs-nvprof/p100.csv", NULL, true, NULL},
    {"gtx980", "GTX 980", "nvdvfs-nvprof/gtx980.csv", NULL, true, NULL},
    {"gtx1080ti", "GTX 1080 Ti", "nvdvfs-nvprof/gtx1080ti.csv", NULL, true, NULL},
    {"rtx8000", "RTX 8000", "nvdvfs-dcgm/rtx8000-real.csv", "nvdvfs-dcgm/rtx8000-micro.csv", false,
     NULL},
    {"gv100", "GV100", "accelwattch/quadrogv100.csv", NULL, false, NULL},
};

int ws_truth_check(const struct ws_experiment_run *x)
{
    if (x->data)
        return 0;
    ws_cli_error("%s: --data must name the folder of measurements", x->name);
    return -EINVAL;
}

static FILE *open_data(const struct ws_experiment_run *x, const char *name)
{
    char *path = NULL;
    FILE *f = asprintf(&path, "%s/%s", x->data, name) < 0 ? NULL : fopen(path, "re");
    if (!f)
        ws_cli_error("%s/%s: %s", x->data, name, strerror(errno));
    free(path);
    return f;
}

static int report(struct ws_diags *d, int r)
{
    for (size_t i = 0; i < d->n; i++)
        ws_cli_error("%s:%u: %s", d->v[i].file, d->v[i].line, d->v[i].text);
    ws_diags_deinit(d);
    return r;
}

static int read_families(const struct ws_experiment_run *x, struct ws_truth_data *t)
{
    struct ws_diags d = WS_DIAGS_NULL;
    FILE *f = open_data(x, "split.csv");
    int r = f ? ws_measured_families(&t->set, f, "split.csv", &d) : -ENOENT;
    if (f)
        fclose(f);
    return report(&d, r);
}

static int read_launches(const struct ws_experiment_run *x, struct ws_truth_data *t,
                         const char *name)
{
    struct ws_diags d = WS_DIAGS_NULL;
    FILE *f = open_data(x, name);
    int r = f ? ws_measured_read(&t->set, f, name, &t->gpu, &d) : -ENOENT;
    if (f)
        fclose(f);
    return report(&d, r);
}

int ws_truth_read(const struct ws_experiment_run *x, const struct ws_truth_source *source,
                  struct ws_truth_data *ret)
{
    *ret = (struct ws_truth_data){.source = source};
    if (ws_live_gpu(source->gpu, &ret->spec))
        return -ENOENT;
    ret->gpu = ws_fit_entry_gpu(&ret->spec);
    int r = read_families(x, ret);
    if (!r && source->judged)
        r = read_launches(x, ret, source->judged);
    ret->n_judged = ret->set.n;
    if (!r && source->also)
        r = read_launches(x, ret, source->also);
    return r;
}

void ws_truth_deinit(struct ws_truth_data *t)
{
    ws_measured_deinit(&t->set);
}

struct ws_calibrate ws_truth_calibrate(const struct ws_truth_data *t)
{
    return (struct ws_calibrate){.gpu = &t->gpu,
                                 .v = t->set.v,
                                 .n = t->set.n,
                                 .n_families = t->set.n_families,
                                 .prior = WS_CALIBRATE_PRIOR,
                                 .idle_w = ws_event_power_idle_w(&t->gpu)};
}
