// SPDX-License-Identifier: Apache-2.0
/* frontend/compilers/compilers.h - NVIDIA's compilers as libraries. libnvrtc and libnvJitLink run
 * as they are; they need no GPU. Only where they would return machine code, our functions return
 * PTX. Programs reach them either linked, or by dlopen() and dlsym(), which looks into the library
 * itself. So dlsym() is wrapped (interpose/dlhook.c) and asks here. Threads: any. */
#ifndef WS_FRONTEND_COMPILERS_COMPILERS_H
#define WS_FRONTEND_COMPILERS_COMPILERS_H

/* What a program's dlsym(@handle, @name) = @found gives: our function of that name if @found is a
 * compiler's, else NULL. Remembers the library, for ws_compiler_function(). */
void *ws_compiler_stand_in(void *handle, const char *name, void *found);
/* The compiler's own function of that name, or NULL (said and counted by name). */
void *ws_compiler_function(const char *name);
/* For the constructor. */
void ws_compiler_begin(void);
/* dlsym() as libc has it, or NULL. */
void *ws_dlsym(void);

#endif
