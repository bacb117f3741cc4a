// SPDX-License-Identifier: Apache-2.0
/* frontend/module/jit.h - the options of the just-in-time compiler that come with an image. Those
 * about logs have an effect, and the number of registers where images are linked. */
#ifndef WS_FRONTEND_MODULE_JIT_H
#define WS_FRONTEND_MODULE_JIT_H

#include <stddef.h>

struct ws_jit {
    unsigned max_regs; /* of a thread; 0: no limit */
    char *info_log, *error_log;
    size_t info_bytes, error_bytes;
    void **info_bytes_slot, **error_bytes_slot; /* where the program is told how much was written */
    void **wall_time_slot;
};
/* Return: a CUDA code. */
int ws_jit_read(struct ws_jit *j, unsigned n, const int *options, void **values);
/* CU_JIT_WALL_TIME, a float in the value's own place. */
void ws_jit_wall_time(const struct ws_jit *j, double ms);
/* Writes the logs: @text is what was wrong with the image, or NULL. */
void ws_jit_report(const struct ws_jit *j, const char *text);

#endif
