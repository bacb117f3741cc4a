// SPDX-License-Identifier: Apache-2.0
/* frontend/interpose/toolkit.h - which CUDA toolkit the calling code was built with. It matters
 * where a function of the runtime has other parameters in CUDA 12 or 13 than before, under the same
 * name.
 * Threads: any. */
#ifndef WS_FRONTEND_INTERPOSE_TOOLKIT_H
#define WS_FRONTEND_INTERPOSE_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From one ELF file: the version of the shared runtime that it needs, or of the static one in it
 * (11 stands for all before 12 there). 0: it uses no runtime, or can't be read. @image: 8-byte
 * aligned. */
int ws_toolkit_of_file(const void *image, size_t bytes);
/* "libcudart.so.12", also with folders before and ".3.45" behind: 12; 0 if the name is another or
 * has no number. */
int ws_toolkit_of_name(const char *name);
/* A program opened this runtime by name: what calls it shows in no file. */
void ws_toolkit_opened(const char *name);
/* Is the code at @address, a return address, built with a toolkit before CUDA @version? Where its
 * own file doesn't tell: with the newest toolkit that anything here was built with. */
bool ws_toolkit_before(const void *address, int version);

#endif
