/* SPDX-License-Identifier: Apache-2.0 */
/* tests/lib/hard_text.h - PTX that is hard to compile: each kind repeats one thing @n times, so
 * that work which grows faster than the text shows when @n is doubled. Threads: any. */
#ifndef TESTS_LIB_HARD_TEXT_H
#define TESTS_LIB_HARD_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* How much its loading takes, beside the text's size. */
enum hard_growth {
    HARD_LINEAR,
    /* The square of it, whoever does it: what bounds it is a limit. */
    HARD_TIME,  /* of time */
    HARD_MEMORY /* of both */
};
struct hard_text {
    const char *name, *what;
    void (*write)(void *out, uint32_t n); /* to a FILE */
    enum hard_growth growth;
};

/* All kinds; the last one has no name. */
extern const struct hard_text hard_texts[];
/* The kind of that name, or NULL. */
const struct hard_text *hard_text_find(const char *name);
/* The text of @kind for @n, malloc'ed with a NUL behind it; NULL: no memory. */
char *hard_text_make(const struct hard_text *kind, uint32_t n, size_t *ret_len);

#endif
