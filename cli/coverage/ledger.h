// SPDX-License-Identifier: Apache-2.0
/* cli/coverage/ledger.h - what wattshare does of CUDA: each entry point and opcode is done,
 * approximate or missing.
 *
 * Entry points come from frontend/interpose/entrypoints.def, and opcodes from what the software
 * GPU's decoder says of an instruction. cli/coverage/ledger.def says which of those that are
 * done are approximate, and in what. `wattshare coverage` and doc/coverage.md are made from
 * this. Threads: any. */
#ifndef WS_CLI_COVERAGE_LEDGER_H
#define WS_CLI_COVERAGE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

enum ws_ledger_state { WS_LEDGER_DONE, WS_LEDGER_APPROXIMATE, WS_LEDGER_MISSING, _WS_LEDGER_N };
enum ws_ledger_api { WS_LEDGER_RUNTIME, WS_LEDGER_DRIVER, WS_LEDGER_NVRTC, _WS_LEDGER_API_N };
extern const char *const ws_ledger_words[_WS_LEDGER_N]; /* "done", "approximate", "missing" */

struct ws_ledger_entry {
    const char *name;    /* "cudaMalloc", "cuMemAlloc_v2" */
    const char *chapter; /* of NVIDIA's manual: "memory" */
    enum ws_ledger_api api;
    enum ws_ledger_state state;
    const char *note; /* in what it is approximate, or what a missing one answers; NULL when done */
};
/* The entry points in the order of entrypoints.def (sorted by name). @i: 0 …
 * ws_ledger_n_entries() - 1 */
size_t ws_ledger_n_entries(void);
struct ws_ledger_entry ws_ledger_entry(size_t i);
/* Return: false if wattshare knows no such entry point. */
bool ws_ledger_find(const char *name, struct ws_ledger_entry *ret);
/* The best row that cuGetProcAddress or dlsym could answer @name with: "cuMemAlloc" is
 * cuMemAlloc_v2 as well. */
bool ws_ledger_find_asked(const char *name, struct ws_ledger_entry *ret);

/* Says in what an opcode that the decoder accepts ("ex2.approx.ftz.f32"), or a special register
 * ("%clock64"), is approximate; NULL: it is exact. */
const char *ws_ledger_opcode_note(const char *opcode);

#endif
