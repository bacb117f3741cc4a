// SPDX-License-Identifier: Apache-2.0
/* A hunt draws what the guarantee of a policy must not depend on: when jobs are released, and how
 * early kernels end. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "papers/sets/random.h"
#include "papers/sets/sbeet_hunt.h"

/* By what share kernels end early, and periods are longer, in half of the runs each. */
#define EARLY 0.9
#define LATE  0.7

double ws_sbeet_hunt_period(const struct ws_sbeet_set *s)
{
    double longest = 0;
    for (int i = 0; i < s->system.n_tasks; i++)
        longest = fmax(longest, s->tasks[i].period);
    return longest;
}

static void add_result(struct ws_machine_result *sum, const struct ws_machine_result *r)
{
    sum->n_released += r->n_released;
    sum->n_on_time += r->n_on_time;
    sum->n_late += r->n_late;
    sum->n_skipped += r->n_skipped;
    sum->n_started += r->n_started;
    sum->n_preempted += r->n_preempted;
    sum->sum_sm += r->sum_sm;
    sum->energy += r->energy;
    for (int i = 0; i < r->n_tasks; i++) {
        sum->released[i] += r->released[i];
        sum->missed[i] += r->missed[i];
        sum->worst_response[i] = fmax(sum->worst_response[i], r->worst_response[i]);
        for (int k = 0; k < r->n_gpus; k++)
            sum->started[i * r->n_gpus + k] += r->started[i * r->n_gpus + k];
    }
}

int ws_sbeet_hunt(struct ws_sbeet_outcome *sum, struct ws_sbeet_set *s,
                  const struct ws_policy_ops *ops, const char *const *policy_options,
                  const struct ws_machine_options *base, uint64_t seed, int n)
{
    struct ws_machine_options mo = *base;
    int r = 0;
    for (int k = 1; k <= n && !r; k++) {
        struct ws_sbeet_outcome o;
        struct ws_random random;
        ws_random_init_part(&random, seed, (uint64_t)k);
        for (int i = 0; i < s->system.n_tasks; i++) {
            double at = ws_random_uniform(&random, 0, s->tasks[i].period);
            s->tasks[i].offset = k % 2 ? at : floor(at);
        }
        mo.early = EARLY * (double)ws_random_integer(&random, 0, 1);
        mo.late = LATE * (double)ws_random_integer(&random, 0, 1);
        mo.seed = ws_random_next(&random);
        r = ws_sbeet_set_run(&o, s, ops, policy_options, &mo);
        if (r)
            memcpy(sum->note, o.note, sizeof(sum->note));
        else
            add_result(&sum->r, &o.r);
        ws_sbeet_outcome_deinit(&o);
    }
    return r;
}
