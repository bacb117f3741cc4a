// SPDX-License-Identifier: Apache-2.0
/* The method wattshare_safe of `wattshare analyze`. */
#include "config.h"

#include "base/error.h"
#include "papers/sets/sbeet_set.h"
#include "papers/verbs/analyze_plan.h"
#include "policy/lookahead/fallback.h"

static struct json_object *answer(const struct ws_fallback *f)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "ok", json_object_new_boolean(f->holds));
    if (!f->holds)
        return o;
    struct json_object *homes = json_object_new_array(), *home = json_object_new_array();
    for (int i = 0; i < f->n_homes; i++) {
        struct json_object *pair = json_object_new_array();
        json_object_array_add(pair, json_object_new_int(f->homes[i].gpu));
        json_object_array_add(pair, json_object_new_int(f->homes[i].n_sm));
        json_object_array_add(homes, pair);
    }
    for (int i = 0; i < f->sys->n_tasks; i++)
        json_object_array_add(home, json_object_new_int(f->tasks[i].home));
    json_object_object_add(o, "homes", homes);
    json_object_object_add(o, "home", home);
    return o;
}

int ws_analyze_plan(struct json_object **ret, const struct ws_gpus *gpus, struct ws_json_line *l)
{
    struct ws_sbeet_set s;
    struct ws_fallback f = {0};
    int r = ws_sbeet_set_read(&s, gpus, false, l);
    *ret = NULL;
    if (!r)
        r = ws_fallback_prepare(&f, &s.system);
    if (!r)
        *ret = answer(&f);
    ws_fallback_deinit(&f);
    ws_sbeet_set_deinit(&s);
    return r;
}
