// SPDX-License-Identifier: Apache-2.0
#include "device/text.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

static uint64_t next(struct ws_text_args *a, unsigned bytes)
{
    a->n++;
    return a->next(a, bytes);
}

static int field(const char **f, struct ws_text_args *a)
{
    int v = 0;
    if (**f == '*') {
        ++*f;
        v = (int)next(a, 4);
        return v < -WS_TEXT_STRING_MAX  ? -WS_TEXT_STRING_MAX
               : v > WS_TEXT_STRING_MAX ? WS_TEXT_STRING_MAX
                                        : v;
    }
    for (; **f >= '0' && **f <= '9'; ++*f)
        v = WS_MIN(v * 10 + (**f - '0'), WS_TEXT_STRING_MAX);
    return v;
}

/* One conversion; *f stands behind the '%'. Return: characters written to to[size]. */
static size_t convert(const char **f, struct ws_text_args *a, char *to, size_t size)
{
    char spec[16] = "%", string[WS_TEXT_STRING_MAX];
    size_t n = 1;
    int width, precision = -1, w = 0;
    bool wide = false;
    for (; **f && strchr("-+ #0", **f); ++*f)
        if (n < 6)
            spec[n++] = **f;
    width = field(f, a);
    if (**f == '.') {
        ++*f;
        precision = field(f, a);
    }
    for (; **f && strchr("hlLqjzt", **f); ++*f)
        wide |= **f != 'h' && **f != 'L';
    char conv = **f;
    if (!conv)
        return 0;
    ++*f;
    memcpy(spec + n, "*.*", 3);
    n += 3;
    switch (conv) {
    case 'd':
    case 'i': {
        uint64_t v = next(a, wide ? 8 : 4);
        memcpy(spec + n, "lld", 4);
        w = snprintf(to, size, spec, width, precision, wide ? (long long)v : (long long)(int32_t)v);
        break;
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        memcpy(spec + n, "ll", 2);
        spec[n + 2] = conv;
        w = snprintf(to, size, spec, width, precision, (unsigned long long)next(a, wide ? 8 : 4));
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
        uint64_t v = next(a, 8);
        double d;
        memcpy(&d, &v, 8);
        spec[n] = conv;
        w = snprintf(to, size, spec, width, precision, d);
        break;
    }
    case 'p':
        w = snprintf(to, size, "%*p", width, (void *)(uintptr_t)next(a, 8));
        break;
    case 'c':
        w = snprintf(to, size, "%*c", width, (int)next(a, 4));
        break;
    case 's':
        if (!a->string(a, next(a, 8), string, sizeof(string)))
            strcpy(string, "(null)");
        spec[n] = 's';
        w = snprintf(to, size, spec, width, precision, string);
        break;
    default: /* '%', and what is no conversion */
        to[0] = conv;
        return 1;
    }
    return w < 0 ? 0 : WS_MIN((size_t)w, size - 1);
}

size_t ws_text_format(const char *format, struct ws_text_args *a, char *to, size_t size)
{
    size_t n = 0;
    for (const char *f = format; *f && n + 1 < size;) {
        if (*f != '%')
            to[n++] = *f++;
        else {
            f++;
            n += convert(&f, a, to + n, size - n);
        }
    }
    return n;
}

void ws_text_make_printable(char *text)
{
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

size_t ws_text_assert(const struct ws_text_assert *a, char *to, size_t size)
{
    int n = snprintf(to, size - 1,
                     "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.",
                     a->file, a->line, a->function, a->block[0], a->block[1], a->block[2],
                     a->thread[0], a->thread[1], a->thread[2], a->message);
    if (n < 0)
        return 0;
    ws_text_make_printable(to);
    size_t len = strlen(to);
    to[len++] = '\n';
    return len;
}
