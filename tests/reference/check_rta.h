// SPDX-License-Identifier: Apache-2.0
/* tests/reference/check_rta.h - what the checks of analyses share. Threads: none. */
#ifndef WS_TESTS_REFERENCE_CHECK_RTA_H
#define WS_TESTS_REFERENCE_CHECK_RTA_H

#include "papers/analysis/stgm.h"
#include "papers/sets/rt_sets.h"
#include "tests/reference/check.h"

/* The method that a name of the reference means; names without a form are the released program's
 * where @released. */
const struct ws_rta_method *ws_rta_reference_method(const char *name, bool released);
void ws_rta_out_of_memory(struct ws_check *c, int r);

#endif
