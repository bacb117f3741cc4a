// SPDX-License-Identifier: Apache-2.0
#include "tests/device/mocked.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tests/device/suite.h"

struct mocked mock;

bool mocked_open(char **argv)
{
    static const char *const names[] = {
        "ws_mock_violations",  "ws_mock_calls",   "ws_mock_fail",  "ws_mock_reset", "ws_mock_hold",
        "ws_mock_hold_copies", "ws_mock_advance", "ws_mock_watch", "ws_mock_waits"};
    _Static_assert(sizeof(mock) == sizeof(void * [WS_ARRAY_SIZE(names)]), "one name each");
    char *args[] = {argv[0], (char *)"cuda", argv[1], argv[1] ? argv[2] : NULL};
    void **to = (void **)(void *)&mock;
    if (!args[2] || !args[3] || !suite_target_parse(4, args)) {
        fprintf(stderr, "usage: %s DRIVER NVML\n", program_invocation_short_name);
        return false;
    }
    void *lib = dlopen(args[2], RTLD_NOW);
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        if (!lib || !(to[k] = dlsym(lib, names[k]))) {
            fprintf(stderr, "%s: this is not the mock driver\n", program_invocation_short_name);
            return false;
        }
    return true;
}

void mocked_check(bool ok, const char *text)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
    exit(1);
}
