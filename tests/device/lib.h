/* SPDX-License-Identifier: Apache-2.0 */
/* tests/device/lib.h - tests of what kernels print, how they stop, and of their heap; for
 * conformance.c. */
#ifndef WS_TESTS_DEVICE_LIB_H
#define WS_TESTS_DEVICE_LIB_H

struct suite;
void suite_lib_formats(struct suite *s);
void suite_lib_any_format(struct suite *s);
void suite_lib_many_prints(struct suite *s);
void suite_lib_assert(struct suite *s);
void suite_lib_trap(struct suite *s);
void suite_lib_parts(struct suite *s);
void suite_lib_heap(struct suite *s);
void suite_lib_free(struct suite *s);

#endif
