// SPDX-License-Identifier: Apache-2.0
/* Start and end of the library in a process. The constructor runs in every program that inherits
 * LD_PRELOAD, and nearly all of them never call CUDA. So it opens no socket, starts no thread and
 * loads nothing: it reads the configuration, and looks in the loaded files for CUDA runtimes to
 * redirect. It runs before libc's own initialisation (initfirst), so the environment comes as an
 * argument. */
#include "frontend/compilers/compilers.h"
#include "frontend/config.h"
#include "frontend/interpose/redirect.h"

#include <unistd.h>

#include "frontend/session/session.h"

__attribute__((constructor)) static void begin(int argc, char **argv, char **envp)
{
    if (!environ)
        environ = envp; /* what libc is about to do; getenv() is used from here on */
    ws_frontend_config_read(envp);
    ws_compiler_begin();
    ws_redirect_begin();
}

__attribute__((destructor)) static void end(void)
{
    ws_session_shutdown();
}
