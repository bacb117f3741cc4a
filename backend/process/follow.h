/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/follow.h - the measured kernels that software GPUs follow (timing = measured):
 * profiles whose hash is a name with a colon, as those of conf/profiles, and so belongs to no code;
 * they stand for kernels of the profile's name. Threads: the main one. */
#ifndef WS_BACKEND_PROCESS_FOLLOW_H
#define WS_BACKEND_PROCESS_FOLLOW_H

#include <stddef.h>
#include "base/diag.h"
#include "base/macros.h"
#include "device/follow.h"

struct ws_follow {
    struct ws_followed *v;
    size_t n, cap;
};
/* Reads those of @gpu from the store @path. @ret: to be given to ws_follow_deinit(), also after an
 * error. Return: 0 or negative, with the reason in @diags. */
WS_MUST_CHECK int ws_follow_read(struct ws_follow *ret, const char *path, const char *gpu,
                                 struct ws_diags *diags);
void ws_follow_deinit(struct ws_follow *f);

#endif
