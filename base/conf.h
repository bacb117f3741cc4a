// SPDX-License-Identifier: Apache-2.0
/* base/conf.h - what libconfuse does not see in a configuration file. Threads: none. */
#ifndef WS_BASE_CONF_H
#define WS_BASE_CONF_H

#include <stdbool.h>

#include "base/diag.h"

/* Whether every section, list, string and comment that is begun in @f ends in it: libconfuse takes
 * the end of the file for the end of each of them, so that half a file counts. What is open at the
 * end goes to @diags, with the line where it began. @f is read from where it is, and rewound. */
bool ws_conf_closed(FILE *f, const char *path, struct ws_diags *diags);

#endif
