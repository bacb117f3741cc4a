// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "papers/live/slurm.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "papers/live/live.h"

/* The top of the build tree: the folder above that of this program. malloc'ed. */
static char *build_tree(void)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    for (int i = 0; i < 2 && n > 0; i++) {
        exe[n] = 0;
        char *slash = strrchr(exe, '/');
        n = slash ? slash - exe : 0;
    }
    exe[n > 0 ? n : 0] = 0;
    return strdup(exe);
}

FILE *ws_slurm_script(const char *name, const char *fmt, ...)
{
    char path[64], arguments[256], *command = NULL;
    FILE *f = NULL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(arguments, sizeof(arguments), fmt, ap);
    va_end(ap);
    snprintf(path, sizeof(path), "slurm/cluster/%s", name);
    char *script = ws_live_above(path), *build = build_tree();
    if (!script)
        ws_cli_error("%s is missing: this experiment runs in a build tree inside the source tree",
                     path);
    /* The shell is given the paths as variables, so they may hold any characters. */
    else if (!build || setenv("WATTSHARE_BUILD", build, 1) ||
             setenv("WATTSHARE_SCRIPT", script, 1) ||
             asprintf(&command, "cd \"$WATTSHARE_BUILD\" && exec sh \"$WATTSHARE_SCRIPT\" %s",
                      arguments) < 0 ||
             !(f = popen(command, "re")))
        ws_cli_error("cannot start %s: %s", path, strerror(errno));
    free(script);
    free(build);
    free(command);
    return f;
}

int ws_slurm_script_end(FILE *f)
{
    return pclose(f) ? -EIO : 0;
}
