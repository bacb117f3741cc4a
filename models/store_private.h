// SPDX-License-Identifier: Apache-2.0
/* models/store_private.h - the columns of a profile, read by the database and the CSV side
 * alike. */
#ifndef WS_MODELS_STORE_PRIVATE_H
#define WS_MODELS_STORE_PRIVATE_H

#include "models/store.h"

enum ws_column_type { WS_COL_TEXT, WS_COL_U32, WS_COL_U64, WS_COL_DOUBLE };
struct ws_column {
    const char *name;
    enum ws_column_type type;
    size_t offset; /* into ws_profile or ws_profile_point */
    size_t bytes;  /* TEXT: of the array */
    uint32_t part; /* WS_PROFILE_… it belongs to; 0: always there */
    double min, max;
};
extern const struct ws_column ws_profile_columns[], ws_point_columns[]; /* end with a NULL name */
enum { WS_N_KEY_COLUMNS = 3 }; /* the first of ws_profile_columns */

#endif
