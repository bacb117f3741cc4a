// SPDX-License-Identifier: Apache-2.0
/* device/catalog.h - what GPUs there are: conf/gpu.d/ *.conf read into struct ws_gpu_spec.
 *
 * A file holds sections `gpu NAME { key = value … }`; the keys, their units and ranges are the table at the top of catalog.c
 * (and wattshared.conf(5)). Every key is required unless the table has a default.
 * Threads: none; a loaded catalog may be read by any. */
#ifndef WS_DEVICE_CATALOG_H
#define WS_DEVICE_CATALOG_H

#include "device/device.h"

struct ws_catalog {
    struct ws_gpu_spec *v;
    size_t n, cap;
};
#define WS_CATALOG_NULL ((struct ws_catalog){0})
enum {
    _WS_CATALOG_OK,
    WS_CATALOG_E_INVALID /* something is wrong in a file: see the diagnostics */
};

/* Adds the GPUs of a file, or of all *.conf files of a directory in the order of their names, to @c. A GPU that is there
 * already is replaced by a later file's; twice in one file is an error.
 * Return: 0; WS_CATALOG_E_INVALID (file:line, what, what would be right; @c is unchanged); -ENOENT, -EACCES, … of the path;
 * -ENOMEM. */
WS_MUST_CHECK int ws_catalog_load(struct ws_catalog *c, const char *path, struct ws_diags *diags);
/* NULL: not there. */
const struct ws_gpu_spec *ws_catalog_find(const struct ws_catalog *c, const char *name);
void ws_catalog_deinit(struct ws_catalog *c);

/* Whether all fields are in range and fit each other; each that is not is named in @diags (@file, @line may be NULL, 0).
 * Return: 0 or WS_CATALOG_E_INVALID. */
WS_MUST_CHECK int ws_gpu_spec_check(const struct ws_gpu_spec *spec, const char *file, uint32_t line,
                                    struct ws_diags *diags);

#endif
