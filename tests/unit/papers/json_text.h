// SPDX-License-Identifier: Apache-2.0
/* tests/unit/papers/json_text.h - the first line of a text as papers/sets/jsonl.h reads it. After
 * cmocka.h. */
#ifndef WS_TESTS_UNIT_PAPERS_JSON_TEXT_H
#define WS_TESTS_UNIT_PAPERS_JSON_TEXT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "papers/sets/jsonl.h"

/* The caller deinits. */
static inline struct ws_json_line json_text(const char *text)
{
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    struct ws_jsonl r;
    struct ws_json_line l = {0};
    ws_jsonl_init(&r, f, "in");
    assert_int_equal(ws_jsonl_next(&r, &l), 0);
    ws_jsonl_deinit(&r);
    fclose(f);
    return l;
}

#endif
