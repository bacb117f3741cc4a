// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/text.c - printf and assert of device code.
 *
 * nvcc lays printf's arguments out in a buffer in local memory: each at its natural alignment,
 * float as double, char and short as int. Strings are read byte by byte from where the client may
 * read; the rest is device/text.c's. */
#include <stdio.h>
#include <string.h>

#include "device/soft/exec/priv.h"
#include "device/space.h"
#include "device/text.h"

/* Where a lane reads [va, va+bytes); NULL: it may not. */
static const uint8_t *readable(struct ws_core_ctx *c, unsigned lane, uint64_t va, uint64_t bytes)
{
    return ws_exec_lane_try(c, lane, WS_SP_GENERIC, va, bytes, false);
}

/* A string of the client's, cut to fit. Return: false if it can't be read. */
static bool read_string(struct ws_core_ctx *c, unsigned lane, uint64_t va, char *to, size_t size)
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

static void print_assert(struct ws_core_ctx *c, unsigned lane, const char *message,
                         const char *file, uint32_t line, const char *function)
{
    char text[WS_TEXT_MAX];
    const struct ws_blockrun *b = c->b;
    const struct ws_grid *g = b->g;
    const uint32_t *grid = b->part ? b->part->grid : g->grid,
                   *block = b->part ? b->part->block : g->block;
    uint64_t number = b->part ? b->number : b->linear;
    uint32_t t = c->w->index * 32 + lane, bx = block[0], by = block[1];
    struct ws_text_assert a = {.message = message,
                               .file = file,
                               .function = function,
                               .line = line,
                               .block = {(uint32_t)(number % grid[0]),
                                         (uint32_t)(number / grid[0] % grid[1]),
                                         (uint32_t)(number / grid[0] / grid[1])},
                               .thread = {t % bx, t / bx % by, t / bx / by}};
    size_t n = ws_text_assert(&a, text, sizeof(text));
    ws_space_print(ws_exec_own_space(b), WS_OUTPUT_ASSERT, text, n);
}

const struct ws_uop *ws_exec_assertfail(struct ws_core_ctx *c, const struct ws_uop *u,
                                        uint32_t lanes, const uint64_t *message_va,
                                        const uint64_t *file_va, const uint32_t *line,
                                        const uint64_t *function_va)
{
    char message[WS_TEXT_STRING_MAX], file[WS_TEXT_STRING_MAX], function[WS_TEXT_STRING_MAX],
        text[160] = "";
    for (uint32_t m = lanes; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        if (!read_string(c, i, message_va[i], message, sizeof(message)))
            strcpy(message, "?");
        if (!read_string(c, i, file_va[i], file, sizeof(file)))
            strcpy(file, "?");
        if (!read_string(c, i, function_va[i], function, sizeof(function)))
            strcpy(function, "?");
        if (m == lanes)
            snprintf(text, sizeof(text), "assertion `%.63s' failed at %.47s:%u", message, file,
                     line[i]);
        print_assert(c, i, message, file, line[i], function);
    }
    ws_text_make_printable(text);
    return ws_exec_fault(c, u, WS_DEV_E_ASSERT, (unsigned)__builtin_ctz(lanes), 0, text);
}

struct format_args {
    struct ws_text_args base;
    struct ws_core_ctx *c;
    unsigned lane;
    uint64_t va;
};

static uint64_t next_arg(struct ws_text_args *base, unsigned bytes)
{
    struct format_args *a = WS_CONTAINER_OF(base, struct format_args, base);
    uint64_t v = 0;
    a->va = (a->va + bytes - 1) & ~(uint64_t)(bytes - 1);
    const uint8_t *p = readable(a->c, a->lane, a->va, bytes);
    if (p)
        memcpy(&v, p, bytes);
    a->va += bytes;
    return v;
}

static bool string_arg(struct ws_text_args *base, uint64_t va, char *to, size_t size)
{
    struct format_args *a = WS_CONTAINER_OF(base, struct format_args, base);
    return read_string(a->c, a->lane, va, to, size);
}

int ws_exec_vprintf(struct ws_core_ctx *c, unsigned lane, uint64_t format_va, uint64_t args_va)
{
    char format[WS_TEXT_STRING_MAX], text[WS_TEXT_MAX];
    struct format_args a = {
        .base = {.next = next_arg, .string = string_arg}, .c = c, .lane = lane, .va = args_va};
    if (!read_string(c, lane, format_va, format, sizeof(format)))
        return -1;
    size_t n = ws_text_format(format, &a.base, text, sizeof(text));
    ws_space_print(ws_exec_own_space(c->b), WS_OUTPUT_PRINTF, text, n);
    return a.base.n;
}
