// SPDX-License-Identifier: Apache-2.0
/* The ledger's two tables, and the patterns that say which rows are approximate. */
#include "cli/coverage/ledger.h"

#include <fnmatch.h>
#include <string.h>

#include "base/macros.h"

const char *const ws_ledger_words[_WS_LEDGER_N] = {"done", "approximate", "missing"};

enum support { NONE, DONE };
static const struct ledger_row {
    const char *name, *chapter, *asked;
    enum ws_ledger_api api;
    enum support state;
} rows[] = {
#define WS_RT(name, chapter, state)    {#name, #chapter, #name, WS_LEDGER_RUNTIME, state},
#define WS_NVRTC(name, chapter, state) {#name, #chapter, #name, WS_LEDGER_NVRTC, state},
#define WS_DRV(name, chapter, state, asked, version, stream)                                       \
    {#name, #chapter, #asked, WS_LEDGER_DRIVER, state},
#include "frontend/interpose/entrypoints.def"
#undef WS_RT
#undef WS_DRV
#undef WS_NVRTC
};

struct note {
    const char *pattern, *text;
};
static const struct note entry_notes[] = {
#define WS_APPROX_ENTRY(pattern, text) {pattern, text},
#define WS_APPROX_OP(pattern, text)
#define WS_WHY(chapter, text)
#include "cli/coverage/ledger.def"
#undef WS_APPROX_ENTRY
#undef WS_APPROX_OP
#undef WS_WHY
};
static const struct note op_notes[] = {
#define WS_APPROX_ENTRY(pattern, text)
#define WS_APPROX_OP(pattern, text) {pattern, text},
#define WS_WHY(chapter, text)
#include "cli/coverage/ledger.def"
#undef WS_APPROX_ENTRY
#undef WS_APPROX_OP
#undef WS_WHY
};
static const struct note whys[] = {
#define WS_APPROX_ENTRY(pattern, text)
#define WS_APPROX_OP(pattern, text)
#define WS_WHY(chapter, text) {chapter, text},
#include "cli/coverage/ledger.def"
#undef WS_APPROX_ENTRY
#undef WS_APPROX_OP
#undef WS_WHY
};

static const char *note(const struct note *notes, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!fnmatch(notes[i].pattern, name, 0))
            return notes[i].text;
    return NULL;
}

static struct ws_ledger_entry entry(const struct ledger_row *r)
{
    struct ws_ledger_entry e = {r->name, r->chapter, r->api, WS_LEDGER_DONE, NULL};
    if (r->state == NONE) {
        e.state = WS_LEDGER_MISSING;
        e.note = note(whys, WS_ARRAY_SIZE(whys), r->chapter);
    } else {
        e.note = note(entry_notes, WS_ARRAY_SIZE(entry_notes), r->name);
        if (e.note)
            e.state = WS_LEDGER_APPROXIMATE;
    }
    return e;
}

size_t ws_ledger_n_entries(void)
{
    return WS_ARRAY_SIZE(rows);
}

struct ws_ledger_entry ws_ledger_entry(size_t i)
{
    return entry(&rows[i]);
}

bool ws_ledger_find(const char *name, struct ws_ledger_entry *ret)
{
    for (size_t lo = 0, hi = WS_ARRAY_SIZE(rows); lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(rows[mid].name, name);
        if (!c) {
            *ret = entry(&rows[mid]);
            return true;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

bool ws_ledger_find_asked(const char *name, struct ws_ledger_entry *ret)
{
    bool found = false;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].asked, name) && strcmp(rows[i].name, name))
            continue;
        struct ws_ledger_entry e = entry(&rows[i]);
        if (!found || e.state < ret->state)
            *ret = e;
        found = true;
    }
    return found;
}

const char *ws_ledger_opcode_note(const char *opcode)
{
    return note(op_notes, WS_ARRAY_SIZE(op_notes), opcode);
}
