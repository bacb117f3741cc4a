// SPDX-License-Identifier: Apache-2.0
/* A session without a daemon, linked in the session's place: two devices, memory that is only
 * numbers, and a record of what the façades asked for. */
#ifndef WS_TESTS_UNIT_FRONTEND_FAKE_SESSION_H
#define WS_TESTS_UNIT_FRONTEND_FAKE_SESSION_H

#include "frontend/session/session.h"

enum { FAKE_DEVICES = 2, FAKE_PARAM_BYTES = 64 };
struct fake {
    int limit_what, limit_error;
    uint64_t limit_value;
    ws_err next; /* what the next call returns; then OK again */
    ws_err lost; /* the sticky error that every call returns */
    int n_devices;
    int n_loads, n_unloads, n_launches, n_copies, n_fills, n_syncs, n_resets, n_unsupported;
    const void *loaded_image;
    uint8_t loaded[512]; /* its first bytes, if the length was given */
    uint64_t loaded_bytes;
    int loaded_device;
    ws_err load_result;
    const char *load_log;
    struct ws_launch launch; /* the last; args and packed are gathered into params */
    uint8_t params[FAKE_PARAM_BYTES];
    char launched[64]; /* the kernel's name */
    struct {
        uint64_t stream;
        const void *dst, *src;
        uint64_t bytes;
        enum ws_copy_dir dir;
        bool async;
    } copy;
    struct {
        struct ws_copy_side dst, src;
        struct ws_copy_box box;
    } box; /* the last copy that was not of one range */
    struct {
        uint64_t stream, dst, width, height, pitch;
        uint32_t value, value_bytes;
        bool async;
    } fill;
    char unsupported[64];
    uint32_t occupancy;
};
extern struct fake fake;
void fake_reset(void);

#endif
