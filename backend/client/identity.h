/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/identity.h - what the kernel says of the program at the other end of a
 * connection. What the program says of itself is its user's word, and no more. Threads: the
 * loop. */
#ifndef WS_BACKEND_CLIENT_IDENTITY_H
#define WS_BACKEND_CLIENT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct ws_identity {
    char exe[256];      /* path; "": the kernel does not tell */
    char cgroups[4096]; /* text of /proc/PID/cgroup; "": the kernel does not tell */
};

/* Reads what /proc says of the process that made the connection @fd: as the kernel told us, @pid
 * of user @uid. It makes sure that the process was there all the time, so that nothing is read
 * of a later process with the same number.
 *
 * The path is told if the daemon may look at the process (as the same user, or with
 * CAP_SYS_PTRACE), and if it is the same file here: a program in a mount namespace of its own can
 * give its file any path. The control group is told to everybody.
 *
 * No file system is asked for the path, since its server might not answer: what the kernel has in
 * memory is enough, with local file systems always. Where it is not, the path is looked up if
 * @names(@arg, path) says that the configuration has it, and is not told otherwise. */
void ws_identity_read(int fd, uint32_t pid, uint32_t uid,
                      bool (*names)(const void *arg, const char *path), const void *arg,
                      struct ws_identity *ret);
/* The process's own number, its parent's, and so on up, at most @max; the process is made sure of
 * as above. Return: how many; 0: the process is gone, or another one. */
uint32_t ws_identity_line(int fd, uint32_t pid, uint32_t uid, uint32_t *ret, uint32_t max);

#endif
