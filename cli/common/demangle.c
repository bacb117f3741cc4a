// SPDX-License-Identifier: Apache-2.0
/* The C++ library knows how names are made. It is in memory, since libzmq needs it; if it is not
 * after all, names stay as they are. */
#include "config.h"

#include "cli/common/demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/text.h"

const char *ws_demangle(const char *name, char *buf, size_t size)
{
    static char *(*function)(const char *, char *, size_t *, int *);
    char *plain = NULL;
    int status;
    if (!function)
        *(void **)&function = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    if (function && !strncmp(name, "_Z", 2))
        plain = function(name, NULL, NULL, &status);
    ws_cli_clean(plain ? plain : name, buf, size);
    free(plain);
    return buf;
}
