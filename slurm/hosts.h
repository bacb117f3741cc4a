/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/hosts.h - the names in a list of nodes as Slurm writes it, such as "n[1-3,07],gpu4" (the
 * manual page scontrol(1), "show hostnames"). */
#ifndef WS_SLURM_HOSTS_H
#define WS_SLURM_HOSTS_H

#include "base/macros.h"

enum { WS_HOSTS_MAX = 65536, WS_HOSTS_NAME = 64 };

/**
 * ws_hosts_each() - calls @f for each name of @list, in the order of the list
 * @f: returns 0 to go on; anything else ends the walk and is returned
 *
 * Threads: any.
 *
 * Return: 0; what @f returned; -EINVAL: this is no such list, or a name has WS_HOSTS_NAME or more
 * characters; -E2BIG: it has more than WS_HOSTS_MAX names. @f may have been called before an error
 * was found.
 */
WS_MUST_CHECK int ws_hosts_each(const char *list, int (*f)(const char *name, void *arg), void *arg);

#endif
