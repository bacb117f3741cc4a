/* SPDX-License-Identifier: Apache-2.0 */
/* device/check.h - the checks that all devices make of launches, copies and fills. Threads: any. */
#ifndef WS_DEVICE_CHECK_H
#define WS_DEVICE_CHECK_H

#include "device/device.h"

/* Sets op->error and op->text. */
WS_PRINTF(3, 4) void ws_check_fail(struct ws_op *op, enum ws_dev_error e, const char *fmt, ...);
/* *ret_dst, *ret_src: whose memory each side begins in; NULL: the host's. *ret_bytes: in all, 0:
 * nothing to do.
 * Return: false with op->error and op->text set. */
bool ws_check_copy(struct ws_op *op, struct ws_device **ret_dst, struct ws_device **ret_src,
                   uint64_t *ret_bytes);
bool ws_check_fill(struct ws_op *op, uint64_t *ret_bytes);
/* @info, @space: of the module instance that the operation names; @info NULL: there is none. What a
 *   device checks beyond this (room for
 * a cooperative grid, a launch that is resumed) comes after it. Return: as above. */
bool ws_check_launch(struct ws_op *op, const struct ws_gpu_spec *spec,
                     const struct ws_dmodule_info *info, const struct ws_space *space);

#endif
