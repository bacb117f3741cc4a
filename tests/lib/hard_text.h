/* SPDX-License-Identifier: Apache-2.0 */
/* tests/lib/hard_text.h - PTX that is hard to compile: each kind repeats one thing @n times, so
 * that work which grows faster than the text shows when @n is doubled. Threads: any. */
#ifndef TESTS_LIB_HARD_TEXT_H
#define TESTS_LIB_HARD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hard_text {
    const char *name, *what;
    void (*write)(void *out, uint32_t n); /* to a FILE */
    /* Its code grows with the square of the text, whoever makes it: what bounds it is a limit. */
    bool grows;
};

/* All kinds; the last one has no name. */
extern const struct hard_text hard_texts[];
/* The kind of that name, or NULL. */
const struct hard_text *hard_text_find(const char *name);
/* The text of @kind for @n, malloc'ed with a NUL behind it; NULL: no memory. */
char *hard_text_make(const struct hard_text *kind, uint32_t n, size_t *ret_len);

#endif
