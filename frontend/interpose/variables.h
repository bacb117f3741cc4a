// SPDX-License-Identifier: Apache-2.0
/* frontend/interpose/variables.h - libraries whose own variables bear the names of entry points.
 * Threads: any, one at a time for an object. */
#ifndef WS_FRONTEND_INTERPOSE_VARIABLES_H
#define WS_FRONTEND_INTERPOSE_VARIABLES_H

#include <stddef.h>
#include <stdint.h>

/* Sees to it that a library which is loaded at [@base, @last), and not yet relocated, means its own
 * variables where they have the name of an entry point. @image, @bytes: its file; @find: gives the
 * entry point of a name, or NULL. */
void ws_variables_keep(const void *image, size_t bytes, uintptr_t base, uintptr_t last,
                       void *(*find)(const char *name));

#endif
