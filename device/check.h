// SPDX-License-Identifier: Apache-2.0
/* device/check.h - the checks that all devices make of copies and fills. Threads: any. */
#ifndef WS_DEVICE_CHECK_H
#define WS_DEVICE_CHECK_H

#include "device/device.h"

/* Sets op->error and op->text. */
WS_PRINTF(3, 4) void ws_check_fail(struct ws_op *op, enum ws_dev_error e, const char *fmt, ...);
/* *ret_dst, *ret_src: whose memory each side begins in; NULL: the host's. *ret_bytes: in all, 0: nothing to do.
 * Return: false with op->error and op->text set. */
bool ws_check_copy(struct ws_op *op, struct ws_device **ret_dst, struct ws_device **ret_src,
                   uint64_t *ret_bytes);
bool ws_check_fill(struct ws_op *op, uint64_t *ret_bytes);

#endif
