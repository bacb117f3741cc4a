/* SPDX-License-Identifier: Apache-2.0 */
/* device/text.h - what printf and assert of device code say (CUDA C++ Programming Guide, "Formatted
 * Output", "Assertion").
 *
 * Nothing in the format is trusted: conversions are rebuilt from what was understood, %n writes
 * nothing, and both a string and a line have a longest length. ptx/passes/devlib_text.c reads
 * formats by the same grammar. */
#ifndef WS_DEVICE_TEXT_H
#define WS_DEVICE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WS_TEXT_MAX = 4096, WS_TEXT_STRING_MAX = 1024 }; /* with the NUL */

/* Where arguments come from. */
struct ws_text_args {
    /* The next one, of 4 or 8 bytes. */
    uint64_t (*next)(struct ws_text_args *a, unsigned bytes);
    /* The string that an argument names, cut to fit, with its NUL. Return: false if it can't be
     * read. */
    bool (*string)(struct ws_text_args *a, uint64_t value, char *to, size_t size);
    int n; /* how many were taken; begins at 0 */
};
/* @format: with a NUL. Return: bytes written to @to, no NUL; less than @size. */
size_t ws_text_format(const char *format, struct ws_text_args *a, char *to, size_t size);

/* CUDA's line about one thread, with its newline, all printable. Return: bytes, less than @size. */
struct ws_text_assert {
    const char *message, *file, *function;
    uint32_t line, block[3], thread[3];
};
size_t ws_text_assert(const struct ws_text_assert *a, char *to, size_t size);
void ws_text_make_printable(char *text);

#endif
