// SPDX-License-Identifier: Apache-2.0
/* cli/common/private_daemon.h - a daemon with software GPUs for one command alone, on a socket
 * in a directory of its own.
 * Threads: one. */
#ifndef WS_CLI_COMMON_PRIVATE_DAEMON_H
#define WS_CLI_COMMON_PRIVATE_DAEMON_H

#include <sys/types.h>
#include "base/macros.h"

struct ws_private {
    pid_t guard;  /* the process that is the daemon's parent; 0: not running */
    int alive_fd; /* while it is open, the daemon runs */
    char dir[64];
    char endpoint[96];
};

/* Starts the daemon and waits until it is ready. @gpus: comma-separated catalog names. Return:
 * 0, or -1 with the error printed. */
WS_MUST_CHECK int ws_private_start(struct ws_private *p, const char *gpus);
/* The same, with more arguments for wattshared (NULL at the end, at most WS_PRIVATE_MORE). */
enum { WS_PRIVATE_MORE = 16 };
WS_MUST_CHECK int ws_private_start_with(struct ws_private *p, const char *gpus,
                                        const char *const *more);
/* The same with the configuration @conf, the text of a wattshared.conf. @log: the file for the
 * daemon's log; NULL: standard error. */
WS_MUST_CHECK int ws_private_start_conf(struct ws_private *p, const char *gpus, const char *conf,
                                        const char *log);
/* Drains the daemon, waits for its end, and removes the directory. The same happens if this
 * process dies without calling it. */
void ws_private_stop(struct ws_private *p);

#endif
