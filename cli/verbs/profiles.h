// SPDX-License-Identifier: Apache-2.0
/* cli/verbs/profiles.h - what `profiles` and `profile` share. Errors have been printed. */
#ifndef WS_CLI_VERBS_PROFILES_H
#define WS_CLI_VERBS_PROFILES_H

#include <json-c/json.h>
#include "models/store.h"

/* NULL: it can't be opened. @mode: as ws_store_open(). */
struct ws_store *ws_cli_store_open(const char *path, int mode);
/* Says what failed last. Return: the exit status. */
int ws_cli_store_failed(const char *path, const struct ws_store *s, int r);
/* All of a profile, for people. Return: 0 or -ENOMEM. */
int ws_cli_profile_show(const struct ws_profile *p);
struct json_object *ws_cli_profile_json(const struct ws_profile *p);

#endif
