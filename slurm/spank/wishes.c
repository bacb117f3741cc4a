// SPDX-License-Identifier: Apache-2.0
/* What users ask for is checked when they submit a job, so that nobody finds out hours later that
 * an option was wrong. A user can have a client of his own that does not check, so the numbers are
 * read again on the node, by the same code, and the daemon decides what may be asked for. */
#include "slurm/spank/wishes.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct ws_wish_info ws_wish_info[_WS_WISH_N] = {
    [WS_WISH_TASK] = {"wattshare", "[TASK]",
                      "run the job's CUDA programs through wattshare, as TASK of wattshared.conf",
                      NULL},
    [WS_WISH_DEADLINE] = {"watt-deadline", "MS",
                          "each piece of GPU work is to end this long after it was given",
                          "deadline"},
    [WS_WISH_PERIOD] = {"watt-period", "MS", "GPU work comes at this interval", "period"},
    [WS_WISH_SMS] = {"watt-sms", "N", "use at most N SMs of each GPU, in each program", "sms"},
    [WS_WISH_MEMORY] = {"watt-memory", "SIZE",
                        "use at most this device memory (K, M, G), in each program", "memory"},
    [WS_WISH_PRIORITY] = {"watt-priority", "N", "priority of the GPU work, 0 is best effort",
                          "priority"},
    [WS_WISH_FINISH] = {"watt-finish", "S",
                        "the job must have ended this long after it was submitted", NULL},
    [WS_WISH_LENGTH] = {"watt-length", "S", "how long the job takes at the GPU's default clocks",
                        NULL},
};

static const char *wrong(char *buf, size_t size, enum ws_wish which, const char *text,
                         const char *right)
{
    snprintf(buf, size, "--%s=%.40s: expected %s", ws_wish_info[which].name, text, right);
    return buf;
}

/* A time with a fraction or without. */
static bool is_time(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    return isdigit((unsigned char)text[0]) && !*end && isfinite(v) && v > 0 && v <= 1e9 &&
           strspn(text, "0123456789.") == strlen(text);
}

/* Digits alone, from 1 or @least on. */
static bool is_count(const char *text, long least, long most)
{
    size_t n = strlen(text);
    return n && n <= 9 && strspn(text, "0123456789") == n && atol(text) >= least &&
           atol(text) <= most;
}

/* Bytes, 0: it is no size. */
static unsigned long long size_of(const char *text)
{
    static const char suffixes[] = "KMG";
    char *end;
    size_t digits = strspn(text, "0123456789");
    unsigned long long v = digits && digits <= 12 ? strtoull(text, &end, 10) : 0;
    if (!v || !*end)
        return v;
    const char *s = strchr(suffixes, toupper((unsigned char)*end));
    return s && !end[1] ? v << 10 * (s - suffixes + 1) : 0;
}

static bool is_task(const char *text)
{
    for (const char *p = text; *p; p++)
        if (!isgraph((unsigned char)*p))
            return false;
    return strlen(text) < sizeof((struct ws_wishes){0}.text[0]);
}

const char *ws_wishes_take(struct ws_wishes *w, enum ws_wish which, const char *text, char *buf,
                           size_t size)
{
    text = text ? text : "";
    char *ret = w->text[which];
    switch (which) {
    case WS_WISH_TASK:
        if (!is_task(text))
            return wrong(buf, size, which, text, "the name of a task, up to 63 characters");
        snprintf(ret, sizeof(w->text[0]), "%s", text);
        break;
    case WS_WISH_DEADLINE:
    case WS_WISH_PERIOD:
        if (!is_time(text))
            return wrong(buf, size, which, text, "milliseconds, such as 40 or 16.7");
        snprintf(ret, sizeof(w->text[0]), "%s", text);
        break;
    case WS_WISH_FINISH:
    case WS_WISH_LENGTH:
        if (!is_time(text))
            return wrong(buf, size, which, text, "seconds, such as 600 or 0.5");
        snprintf(ret, sizeof(w->text[0]), "%s", text);
        break;
    case WS_WISH_SMS:
        if (!is_count(text, 1, 1024))
            return wrong(buf, size, which, text, "a number of SMs, 1 to 1024");
        snprintf(ret, sizeof(w->text[0]), "%s", text);
        break;
    case WS_WISH_PRIORITY:
        if (!is_count(text, 0, 1000000))
            return wrong(buf, size, which, text, "a number, 0 to 1000000");
        snprintf(ret, sizeof(w->text[0]), "%s", text);
        break;
    default: /* WS_WISH_MEMORY */
        if (!size_of(text))
            return wrong(buf, size, which, text, "a size, such as 512M or 2G");
        snprintf(ret, sizeof(w->text[0]), "%llu", size_of(text));
        break;
    }
    w->given[which] = true;
    return NULL;
}

const char *ws_wishes_wrong(const struct ws_wishes *w, char *buf, size_t size)
{
    for (int i = 0; i < _WS_WISH_N; i++)
        if (w->given[i] && !w->given[WS_WISH_TASK]) {
            snprintf(buf, size, "--%s goes with --wattshare: give that too", ws_wish_info[i].name);
            return buf;
        }
    if (w->given[WS_WISH_LENGTH] && !w->given[WS_WISH_FINISH]) {
        snprintf(buf, size, "--watt-length goes with --watt-finish: give that too");
        return buf;
    }
    if (w->given[WS_WISH_DEADLINE] && w->given[WS_WISH_PERIOD] &&
        strtod(w->text[WS_WISH_DEADLINE], NULL) > strtod(w->text[WS_WISH_PERIOD], NULL)) {
        snprintf(buf, size,
                 "--watt-deadline=%s is later than --watt-period=%s, when the next work comes: "
                 "give a deadline of at most the period",
                 w->text[WS_WISH_DEADLINE], w->text[WS_WISH_PERIOD]);
        return buf;
    }
    return NULL;
}
