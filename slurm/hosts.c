// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "slurm/hosts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

struct host_walk {
    int (*f)(const char *name, void *arg);
    void *arg;
    int n;
    char name[WS_HOSTS_NAME];
};

/* A number, or a first and a last one, of a pair of brackets. */
struct host_range {
    unsigned long first, last;
    int width; /* "07" has two digits, and so have those that follow it */
};

static int end_of_name(struct host_walk *w)
{
    if (!w->name[0])
        return ws_raise(-EINVAL);
    if (w->n++ == WS_HOSTS_MAX)
        return ws_raise(-E2BIG);
    return w->f(w->name, w->arg);
}

/* Puts @n characters of @text behind the first @at of the name. Return: false: it is too long. */
static bool put(struct host_walk *w, size_t at, const char *text, size_t n)
{
    if (at + n >= sizeof(w->name))
        return false;
    memcpy(w->name + at, text, n);
    w->name[at + n] = 0;
    return true;
}

/* Reads a number of 1 to 9 digits. Return: how many digits it has, 0: there is none. */
static int read_number(const char *p, unsigned long *ret)
{
    int n = (int)strspn(p, "0123456789");
    *ret = 0;
    for (int i = 0; i < n; i++)
        *ret = *ret * 10 + (unsigned long)(p[i] - '0');
    return n <= 9 ? n : 0;
}

/* Return: what stands behind the range; NULL: there is none at @p. */
static const char *read_range(const char *p, struct host_range *ret)
{
    ret->width = read_number(p, &ret->first);
    ret->last = ret->first;
    p += ret->width;
    if (ret->width && *p == '-') {
        int n = read_number(++p, &ret->last);
        p += n;
        ret->width = n ? ret->width : 0;
    }
    return ret->width && ret->last >= ret->first && (*p == ',' || *p == ']') ? p : NULL;
}

/* The name begins with @at characters that are in place; what follows is made of @p, up to the
 * comma or the end of the list. */
static int expand(struct host_walk *w, size_t at, const char *p)
{
    size_t n = strcspn(p, "[],");
    const char *open = p + n;
    if (*open == ']' || !put(w, at, p, n))
        return ws_raise(-EINVAL);
    if (*open != '[')
        return end_of_name(w);
    const char *close = open + strcspn(open, "]");
    int r = 0;
    if (!*close)
        return ws_raise(-EINVAL);
    for (const char *range = open; range != close && !r;) {
        struct host_range v;
        char digits[24];
        range = read_range(range + 1, &v);
        if (!range)
            return ws_raise(-EINVAL);
        for (unsigned long i = v.first; i <= v.last && !r; i++) {
            int k = snprintf(digits, sizeof(digits), "%0*lu", v.width, i);
            r = put(w, at + n, digits, (size_t)k) ? expand(w, at + n + (size_t)k, close + 1)
                                                  : ws_raise(-EINVAL);
        }
    }
    return r;
}

/* Return: the comma that ends the first name of @p, or the end of the list. */
static const char *end_of_first(const char *p)
{
    for (bool inside = false; *p && (inside || *p != ','); p++)
        inside = *p == '[' || (inside && *p != ']');
    return p;
}

int ws_hosts_each(const char *list, int (*f)(const char *name, void *arg), void *arg)
{
    struct host_walk w = {.f = f, .arg = arg};
    int r = 0;
    for (const char *p = list, *end; !r; p = end + 1) {
        end = end_of_first(p);
        r = expand(&w, 0, p);
        if (!*end)
            break;
    }
    return r;
}
