// SPDX-License-Identifier: Apache-2.0
/* frontend/interpose/redirect.h - the redirect of CUDA runtimes that are linked statically into a
 * program or its libraries: their entry points are overwritten with jumps to ours. */
#ifndef WS_FRONTEND_INTERPOSE_REDIRECT_H
#define WS_FRONTEND_INTERPOSE_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Redirects those in the objects loaded now and sees to those loaded later. Once, from the
 * constructor; ends the process, with one line saying why and what to do, if the program itself
 * carries a runtime that can't be redirected. */
void ws_redirect_begin(void);
/* Looks at objects that came since. Threads: any. */
void ws_redirect_scan(void);
/* True if later objects are seen before their constructors run. */
bool ws_redirect_early(void);
/* If the code at @address belongs to a CUDA runtime that could not be redirected: the name of its
 * file; else NULL. */
const char *ws_redirect_stranger(const void *address);
/* The toolkit (toolkit.h) that the object was built with that holds the code at @address; 0: it
 * doesn't tell, or there is none. *ret_newest: the newest of all objects. */
int ws_redirect_toolkit(const void *address, int *ret_newest);
/* The copy of the CUDA runtime that the code at @address calls: a number that each library with a
 * static runtime has for itself; 0: the program's, or the one that all others share. */
uintptr_t ws_redirect_runtime(const void *address);
/* True if a library has a copy of its own, so that it matters who calls. */
bool ws_redirect_has_copies(void);
enum {
    WS_REDIRECT_NONE = 0 /* no static runtime */,
    WS_REDIRECT_STRIPPED =
        1 << 20 /* one without symbols, which base/runtimes/static_runtime.h does not know */
};
struct ws_redirected {
    size_t n_failed;              /* functions that are too short to be patched */
    const char *stripped_version; /* of a runtime without symbols that is known, or NULL */
};
/* Writes jumps over the entry points found in one file: by its symbols, or by what the runtime's
 * code is known to look like. @image, @bytes: the file; @base: where it is loaded; @find: gives
 * the replacement for a name, or NULL. Return: number redirected, WS_REDIRECT_…, or a negative
 * error. */
int ws_redirect_object(const void *image, size_t bytes, uintptr_t base,
                       void *(*find)(const char *name), struct ws_redirected *ret);

#endif
