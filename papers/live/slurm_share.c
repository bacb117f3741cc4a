// SPDX-License-Identifier: Apache-2.0
/* Small jobs under Slurm on a private cluster of this machine: each has a GPU to itself, or four
 * share one, by shards or by the policy consolidate. slurm/cluster/share.sh does one run. */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "papers/experiments/experiment.h"
#include "papers/live/slurm.h"

enum { JOBS = 8, QUICK_LAUNCHES = 10, LAUNCHES = 40 };
enum share_way { WHOLE, SHARD, CONSOLIDATE, WAYS };
static const char *const ways[WAYS] = {"gpu", "shard", "consolidate"};

struct share_outcome {
    double ms, uj, busy_ms, jobs_uj; /* of both GPUs; jobs_uj: on the accounts of the jobs */
};

/* Return: 0 or negative; the script has said why. */
static int run_way(enum share_way way, int launches, struct share_outcome *ret)
{
    FILE *f = ws_slurm_script("share.sh", "%s %d %d", ways[way], JOBS, launches);
    if (!f)
        return -EIO;
    int n = fscanf(f, "%lf %lf %lf %lf", &ret->ms, &ret->uj, &ret->busy_ms, &ret->jobs_uj);
    int r = ws_slurm_script_end(f);
    return n == 4 ? r : -EIO;
}

static void compare(struct ws_experiment_run *x, const struct share_outcome *o)
{
    /* Four of these jobs have room on a GPU side by side, and each takes as long as alone. */
    ws_experiment_compare(x, "busy time, shards / a GPU each", 1.0 / 4,
                          o[SHARD].busy_ms / o[WHOLE].busy_ms, 0.15, WS_SPREAD_RELATIVE,
                          "\"paper\": four jobs side by side take the time of one");
    ws_experiment_compare(x, "busy time, consolidate / a GPU each", 1.0 / 4,
                          o[CONSOLIDATE].busy_ms / o[WHOLE].busy_ms, 0.15, WS_SPREAD_RELATIVE,
                          "the same");
    ws_experiment_claim(x, "makespan: shards are quicker than a GPU each",
                        o[SHARD].ms < o[WHOLE].ms, "with what Slurm itself takes");
    ws_experiment_claim(x, "energy: shards take less than a GPU each", o[SHARD].uj < o[WHOLE].uj,
                        "of both GPUs, until the last job has ended");
    ws_experiment_claim(x, "energy: consolidate takes less than a GPU each",
                        o[CONSOLIDATE].uj < o[WHOLE].uj, "");
}

static int run_share(struct ws_experiment_run *x)
{
    struct share_outcome o[WAYS];
    FILE *f = ws_experiment_csv(x, "slurm-share");
    int r = f ? 0 : -EIO;
    ws_experiment_gpus("gtx1080ti");
    if (f)
        fprintf(f, "way,makespan (ms),energy (mJ),busy (ms),energy of the jobs (mJ)\n");
    for (enum share_way i = 0; i < WAYS && !r; i++) {
        r = run_way(i, x->quick ? QUICK_LAUNCHES : LAUNCHES, &o[i]);
        if (!r)
            fprintf(f, "%s,%.3f,%.3f,%.3f,%.3f\n", ways[i], o[i].ms, o[i].uj / 1e3, o[i].busy_ms,
                    o[i].jobs_uj / 1e3);
    }
    if (f && fclose(f) && !r)
        r = -EIO;
    if (r)
        return r;
    compare(x, o);
    ws_experiment_plot(x, "slurm-share",
                       "set style data histograms\nset style fill solid 0.7\nset ylabel 'makespan, "
                       "ms'\nset y2label 'energy of both GPUs, J'\nset y2tics\nset ytics "
                       "nomirror\nset yrange [0:*]\nset y2range [0:*]\nplot 'slurm-share.csv' "
                       "using 2:xtic(1) title 'makespan', '' using ($3/1e3) axes x1y2 title "
                       "'energy'");
    return 0;
}

const struct ws_experiment ws_experiment_slurm_share = {
    "slurm-share", "sharing under Slurm",
    "small jobs of a private Slurm cluster: a GPU each, four a GPU by shards, by consolidate",
    run_share};
