// SPDX-License-Identifier: Apache-2.0
/* wattshare doctor: runs the checks of cli/doctor and prints what they find. */
#include "config.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/common/text.h"
#include "cli/doctor/doctor.h"

struct doctor_options {
    const char *socket;
    bool json;
};

static const struct ws_option options[] = {
    {"json", NULL, "Print a JSON array instead.", WS_FLAG(struct doctor_options, json)},
    WS_OPTION_SOCKET(struct doctor_options, socket),
    {0},
};
static const char *const examples[] = {"wattshare doctor", "wattshare doctor --json", NULL};
static const char *const states[_WS_FINDING_STATE_N] = {"good", "note", "bad"};

static int doctor(int argc, char **argv);

const struct ws_verb ws_verb_doctor = {
    .name = "doctor",
    .purpose = "say what of this machine works for wattshare",
    .about =
        "Each line is something that was looked at: good, a note, or bad. Notes are of what is "
        "missing and may be wanted so. Nothing is changed.",
    .options = options,
    .examples = examples,
    .run = doctor,
};

static void print(const struct ws_check *c, const struct ws_finding *f)
{
    char text[sizeof(f->what)];
    printf("%-4s  %-13s  %s\n", states[f->state], c->name,
           ws_cli_clean(f->what, text, sizeof(text)));
    if (f->advice[0])
        printf("%21s%s\n", "", f->advice);
}

static struct json_object *finding_json(const struct ws_check *c, const struct ws_finding *f)
{
    char text[sizeof(f->what)];
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "check", json_object_new_string(c->name));
    json_object_object_add(o, "state", json_object_new_string(states[f->state]));
    json_object_object_add(o, "what",
                           json_object_new_string(ws_cli_clean(f->what, text, sizeof(text))));
    json_object_object_add(o, "advice", json_object_new_string(f->advice));
    return o;
}

static int doctor(int argc, char **argv)
{
    struct doctor_options o = {0};
    char **rest;
    int n_bad = 0, r = ws_verb_parse(&ws_verb_doctor, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    const char *root = getenv("WS_DOCTOR_ROOT"); /* of tests */
    struct ws_doctor d = {.root = root ? root : "", .endpoint = ws_cli_endpoint(o.socket)};
    struct json_object *all = o.json ? json_object_new_array() : NULL;
    for (const struct ws_check *c = ws_doctor_checks; c->name; c++) {
        struct ws_finding f = {0};
        c->look(&d, &f);
        n_bad += f.state == WS_FINDING_BAD;
        if (all)
            json_object_array_add(all, finding_json(c, &f));
        else
            print(c, &f);
    }
    if (all)
        puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
    json_object_put(all);
    return n_bad != 0;
}
