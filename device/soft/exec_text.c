// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec_text.c - printf and assert of device code.
 *
 * nvcc lays printf's arguments out in a buffer in local memory: each at its natural alignment, float as double, char and short as
 * int. Nothing in the format is trusted: conversions are rebuilt from what was understood, %n writes nothing, strings are read
 * byte by byte from where the client may read, and both a string and a line have a longest length. */
#include <stdio.h>
#include <string.h>

#include "device/soft/exec_priv.h"
#include "device/space.h"

enum { TEXT_MAX = 4096, STRING_MAX = 1024 };

/* Where a lane reads [va, va+bytes); NULL: it may not. */
static const uint8_t *readable(struct ws_ctx *c, unsigned lane, uint64_t va, uint64_t bytes)
{
    uint64_t window = WS_WINDOW_OF(va), off = va & ~UINT64_C(0xff00000000000000);
    if (window == WS_WINDOW_LOCAL)
        return off < c->local_stride && c->local_stride - off >= bytes
                   ? c->local + lane * c->local_stride + off
                   : NULL;
    if (window == WS_WINDOW_SHARED)
        return off < c->shared_bytes && c->shared_bytes - off >= bytes ? c->shared + off : NULL;
    if (window == WS_WINDOW_PARAM && c->b->part)
        return NULL;
    if (window == WS_WINDOW_PARAM)
        return off < c->param_bytes && c->param_bytes - off >= bytes ? c->params + off : NULL;
    const struct ws_mapping *m = ws_exec_map(c, va, bytes);
    return m ? m->host + (va - m->va) : NULL;
}

/* A string of the client's, cut to fit. Return: false if it can't be read. */
static bool read_string(struct ws_ctx *c, unsigned lane, uint64_t va, char *to, size_t size)
{
    size_t n = 0;
    for (; n + 1 < size; n++) {
        const uint8_t *p = readable(c, lane, va + n, 1);
        if (!p && n == 0)
            return false;
        if (!p || !*p)
            break;
        to[n] = (char)*p;
    }
    to[n] = 0;
    return true;
}

static void make_printable(char *text)
{
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

/* CUDA's line about one thread. */
static void print_assert(struct ws_ctx *c, unsigned lane, const char *message, const char *file,
                         uint32_t line, const char *function)
{
    char text[TEXT_MAX];
    const struct ws_blockrun *b = c->b;
    const struct ws_grid *g = b->g;
    const uint32_t *grid = b->part ? b->part->grid : g->grid,
                   *block = b->part ? b->part->block : g->block;
    uint64_t number = b->part ? b->number : b->linear;
    uint32_t t = c->w->index * 32 + lane, bx = block[0], by = block[1];
    int n = snprintf(text, sizeof text - 1,
                     "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.",
                     file, line, function, (uint32_t)(number % grid[0]),
                     (uint32_t)(number / grid[0] % grid[1]), (uint32_t)(number / grid[0] / grid[1]),
                     t % bx, t / bx % by, t / bx / by, message);
    if (n < 0)
        return;
    make_printable(text);
    n = (int)strlen(text);
    text[n++] = '\n';
    ws_space_print(ws_exec_own_space(b), WS_OUTPUT_ASSERT, text, (size_t)n);
}

const struct ws_uop *ws_exec_assertfail(struct ws_ctx *c, const struct ws_uop *u, uint32_t lanes,
                                        const uint64_t *message_va, const uint64_t *file_va,
                                        const uint32_t *line, const uint64_t *function_va)
{
    char message[STRING_MAX], file[STRING_MAX], function[STRING_MAX], text[160] = "";
    for (uint32_t m = lanes; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        if (!read_string(c, i, message_va[i], message, sizeof message))
            strcpy(message, "?");
        if (!read_string(c, i, file_va[i], file, sizeof file))
            strcpy(file, "?");
        if (!read_string(c, i, function_va[i], function, sizeof function))
            strcpy(function, "?");
        if (m == lanes)
            snprintf(text, sizeof text, "assertion `%.63s' failed at %.47s:%u", message, file,
                     line[i]);
        print_assert(c, i, message, file, line[i], function);
    }
    make_printable(text);
    return ws_exec_fault(c, u, WS_DEV_E_ASSERT, (unsigned)__builtin_ctz(lanes), 0, text);
}

struct args {
    struct ws_ctx *c;
    unsigned lane;
    uint64_t va;
    int n;
};

static uint64_t next_arg(struct args *a, unsigned bytes)
{
    uint64_t v = 0;
    a->va = (a->va + bytes - 1) & ~(uint64_t)(bytes - 1);
    const uint8_t *p = readable(a->c, a->lane, a->va, bytes);
    if (p)
        memcpy(&v, p, bytes);
    a->va += bytes;
    a->n++;
    return v;
}

static int field(const char **f, struct args *a)
{
    int v = 0;
    if (**f == '*') {
        ++*f;
        v = (int)next_arg(a, 4);
        return v < -STRING_MAX ? -STRING_MAX : v > STRING_MAX ? STRING_MAX : v;
    }
    for (; **f >= '0' && **f <= '9'; ++*f)
        v = WS_MIN(v * 10 + (**f - '0'), STRING_MAX);
    return v;
}

/* One conversion; *f stands behind the '%'. Return: characters written to to[size]. */
static size_t convert(const char **f, struct args *a, char *to, size_t size)
{
    char spec[16] = "%", string[STRING_MAX];
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
        uint64_t v = next_arg(a, wide ? 8 : 4);
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
        w = snprintf(to, size, spec, width, precision,
                     (unsigned long long)next_arg(a, wide ? 8 : 4));
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
        uint64_t v = next_arg(a, 8);
        double d;
        memcpy(&d, &v, 8);
        spec[n] = conv;
        w = snprintf(to, size, spec, width, precision, d);
        break;
    }
    case 'p':
        w = snprintf(to, size, "%*p", width, (void *)(uintptr_t)next_arg(a, 8));
        break;
    case 'c':
        w = snprintf(to, size, "%*c", width, (int)next_arg(a, 4));
        break;
    case 's':
        if (!read_string(a->c, a->lane, next_arg(a, 8), string, sizeof string))
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

int ws_exec_vprintf(struct ws_ctx *c, unsigned lane, uint64_t format_va, uint64_t args_va)
{
    char format[STRING_MAX], text[TEXT_MAX];
    struct args a = {.c = c, .lane = lane, .va = args_va};
    size_t n = 0;
    if (!read_string(c, lane, format_va, format, sizeof format))
        return -1;
    for (const char *f = format; *f && n + 1 < sizeof text;) {
        if (*f != '%')
            text[n++] = *f++;
        else {
            f++;
            n += convert(&f, &a, text + n, sizeof text - n);
        }
    }
    ws_space_print(ws_exec_own_space(c->b), WS_OUTPUT_PRINTF, text, n);
    return a.n;
}
