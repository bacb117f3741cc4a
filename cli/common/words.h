// SPDX-License-Identifier: Apache-2.0
/* cli/common/words.h - words that a shell completes and that no table of options has. Threads:
 * none. */
#ifndef WS_CLI_COMMON_WORDS_H
#define WS_CLI_COMMON_WORDS_H

#include <stdbool.h>

/* Prints the words of @kind, a line for each: "policies", "gpus" (of the installed catalog, or of
 * the folder that WATTSHARE_CATALOG names), "experiments", or "tasks" (of the programs that the
 * daemon has; none where no daemon answers at once). Return: false: no such kind. */
bool ws_words_print(const char *kind);

#endif
