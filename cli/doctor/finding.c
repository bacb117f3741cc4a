// SPDX-License-Identifier: Apache-2.0
/* What a check says, and where it looks. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor/doctor.h"

void ws_finding_set(struct ws_finding *f, enum ws_finding_state state, const char *fmt, ...)
{
    va_list args;
    f->state = state;
    va_start(args, fmt);
    vsnprintf(f->what, sizeof(f->what), fmt, args);
    va_end(args);
}

void ws_finding_advise(struct ws_finding *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->advice, sizeof(f->advice), fmt, args);
    va_end(args);
}

const char *ws_doctor_path(const struct ws_doctor *d, const char *path)
{
    static char buf[PATH_MAX];
    snprintf(buf, sizeof(buf), "%s%s", d->root, path);
    return buf;
}
