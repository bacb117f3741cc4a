// SPDX-License-Identifier: Apache-2.0
/* device/catalog.h - the catalog of GPUs: the files conf/gpu.d/ *.conf, read into struct
 * ws_gpu_spec.
 *
 * A file holds sections `gpu NAME { key = value … }`; catalog_keys.def lists the keys with their
 * ranges, as does wattshared.conf(5). A key without a default must be given.
 * Threads: none; any thread may read a loaded catalog. */
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

/* Adds the GPUs of a file, or of all *.conf files of a directory in the order of their names, to
 * @c. A GPU replaces one of the same name from an earlier file; two of one name in a file are an
 * error.
 * Return: 0; WS_CATALOG_E_INVALID (the diagnostics say file:line, what is wrong and what would be
 * right; @c is unchanged); -ENOENT, -EACCES and the like of the path; -ENOMEM. */
WS_MUST_CHECK int ws_catalog_load(struct ws_catalog *c, const char *path, struct ws_diags *diags);
/* Return: NULL: there is no GPU of that name. */
const struct ws_gpu_spec *ws_catalog_find(const struct ws_catalog *c, const char *name);
void ws_catalog_deinit(struct ws_catalog *c);

/* Checks that all fields are in range and fit each other. @diags name each that does not; @file may
 * be NULL.
 * Return: 0 or WS_CATALOG_E_INVALID. */
WS_MUST_CHECK int ws_gpu_spec_check(const struct ws_gpu_spec *spec, const char *file, uint32_t line,
                                    struct ws_diags *diags);

#endif
