// SPDX-License-Identifier: Apache-2.0
#include "slurm/planner/note.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char for_node[] = ", waits for its node";

bool ws_plan_note_write(char *buf, size_t size, const struct ws_plan_note *p)
{
    int n = snprintf(buf, size,
                     "plan: made %.6f, %.6f s, until %.6f, deadline %.6f, clocks %.6f %.6f %.6f, "
                     "%.6f J%s",
                     p->made, p->length, p->end, p->deadline, p->volt, p->core, p->memory,
                     p->energy, p->waits ? for_node : "");
    return n >= 0 && (size_t)n < size;
}

bool ws_plan_note_read(const char *comment, struct ws_plan_note *p)
{
    const char *entry = comment ? strstr(comment, "plan: made ") : NULL;
    if (!entry || (entry != comment && entry[-1] != ' '))
        return false;
    int end = 0;
    int n =
        sscanf(entry, "plan: made %lf, %lf s, until %lf, deadline %lf, clocks %lf %lf %lf, %lf J%n",
               &p->made, &p->length, &p->end, &p->deadline, &p->volt, &p->core, &p->memory,
               &p->energy, &end);
    p->waits = end && !strncmp(entry + end, for_node, strlen(for_node));
    return n == 8 && isfinite(p->made) && p->length > 0 && isfinite(p->length) && p->volt > 0 &&
           p->core > 0 && p->memory > 0;
}
