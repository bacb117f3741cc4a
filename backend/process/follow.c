// SPDX-License-Identifier: Apache-2.0
#include "backend/process/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/store.h"

struct follow_reading {
    struct ws_follow *to;
    const char *gpu;
};

static int add_profile(void *arg, const struct ws_profile *p)
{
    struct follow_reading *r = arg;
    struct ws_follow *f = r->to;
    if (strcmp(p->key.gpu, r->gpu) != 0 || !strchr(p->key.hash, ':') || !p->n_points)
        return 0;
    void *v = f->v;
    if (ws_grow(&v, &f->cap, f->n + 1, sizeof(*f->v)) < 0)
        return ws_raise(-ENOMEM);
    f->v = v;
    uint32_t n = p->points[p->n_points - 1].n_sms;
    double *time_ns = ws_alloc_array(n, sizeof(double)),
           *power_mw = ws_alloc_array(n, sizeof(double));
    char *kernel = ws_strdup(p->name);
    f->v[f->n++] = (struct ws_followed){kernel, n, time_ns, power_mw};
    if (!time_ns || !power_mw || !kernel)
        return ws_raise(-ENOMEM);
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct ws_profile_point *q = &p->points[i];
        time_ns[q->n_sms - 1] = q->time_mean_ms * 1e6;
        power_mw[q->n_sms - 1] = q->n_powers ? q->power_w * 1e3 : 0;
    }
    return 0;
}

int ws_follow_read(struct ws_follow *ret, const char *path, const char *gpu, struct ws_diags *diags)
{
    struct ws_store *s = NULL;
    struct follow_reading r = {ret, gpu};
    *ret = (struct ws_follow){0};
    if (ws_store_open(&s, path, WS_STORE_READ, diags))
        return ws_raise(-EINVAL);
    int e = ws_store_each(s, add_profile, &r);
    if (e)
        ws_diags_add(diags, path, 0, 0, "%s", e < 0 ? strerror(-e) : ws_store_error(s));
    ws_store_close(s);
    return e ? ws_raise(-EINVAL) : 0;
}

void ws_follow_deinit(struct ws_follow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free((void *)f->v[i].kernel);
        free((void *)f->v[i].time_ns);
        free((void *)f->v[i].power_mw);
    }
    free(f->v);
    *f = (struct ws_follow){0};
}
