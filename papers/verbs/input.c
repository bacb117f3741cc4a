// SPDX-License-Identifier: Apache-2.0
/* The files and GPUs that a command line names, and lists of numbers. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "papers/verbs/input.h"

int ws_cli_each_input(char **names, int (*read)(void *arg, FILE *f, const char *name), void *arg)
{
    static char dash[] = "-", *standard[] = {dash, NULL};
    int missing = 0;
    for (names = *names ? names : standard; *names; names++) {
        bool in = !strcmp(*names, "-");
        FILE *f = in ? stdin : fopen(*names, "r");
        if (!f) {
            ws_cli_error("%s: %s", *names, strerror(errno));
            missing = 1;
            continue;
        }
        int r = read(arg, f, in ? "standard input" : *names);
        if (!in)
            fclose(f);
        if (r < 0) {
            ws_cli_error("%s: %s", in ? "standard input" : *names, strerror(-r));
            return r;
        }
    }
    return missing;
}

int ws_cli_numbers(const char *option, const char *text, double min, double max, double *ret,
                   int cap)
{
    int n = 0;
    for (const char *s = text;; s++) {
        char *end;
        double v = strtod(s, &end);
        if (end == s || (*end && *end != ',') || !(v >= min && v <= max) || n == cap) {
            ws_cli_error("--%s %s: expected numbers from %.10g to %.10g", option, text, min, max);
            return 0;
        }
        ret[n++] = v;
        s = end;
        if (!*s)
            return n;
    }
}

int ws_cli_gpus(struct ws_gpus *ret, struct ws_json_line *line, const char *text)
{
    char error[160];
    int r;
    if (!strchr(text, '/') && !strchr(text, '.')) {
        r = ws_gpus_parse(ret, text, error, sizeof(error));
        if (r)
            ws_cli_error("--gpus %s: %s", text, error);
        return r;
    }
    r = ws_json_file(text, line);
    if (r) {
        ws_cli_error("%s: %s", text, strerror(-r));
        return r;
    }
    if (!line->bad)
        r = ws_gpus_read(ret, line);
    ws_json_line_report(line, stderr, "wattshare");
    return line->bad ? -EINVAL : r;
}
