// SPDX-License-Identifier: Apache-2.0
/* cli/verbs/profiles.h - what `profiles` and `profile` share. The functions print errors.
 * Threads: one. */
#ifndef WS_CLI_VERBS_PROFILES_H
#define WS_CLI_VERBS_PROFILES_H

#include <json-c/json.h>
#include "models/store.h"

/* Opens a store. @mode: as ws_store_open(). Return: NULL if it cannot be opened. */
struct ws_store *ws_cli_store_open(const char *path, int mode);
/* Prints what failed last. Return: the exit status. */
int ws_cli_store_failed(const char *path, const struct ws_store *s, int r);
/* Prints a whole profile for people. Return: 0 or -ENOMEM. */
int ws_cli_profile_show(const struct ws_profile *p);
struct json_object *ws_cli_profile_json(const struct ws_profile *p);

#endif
