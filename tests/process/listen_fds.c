// SPDX-License-Identifier: Apache-2.0
/* Usage: listen_fds {stream|seqpacket PATH}… -- PROGRAM ARGUMENTS…. Does what a service manager
 * does with the sockets of a unit: it listens, and when somebody connects to the first socket it
 * becomes the program, which gets all sockets as descriptors 3 and following. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_at(const char *kind, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, !strcmp(kind, "stream") ? SOCK_STREAM : SOCK_SEQPACKET, 0);
    if (strlen(path) >= sizeof(a.sun_path))
        return -1;
    strcpy(a.sun_path, path);
    return fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 128) ? fd : -1;
}

int main(int argc, char **argv)
{
    char text[16];
    int i = 1, n = 0;
    closefrom(3); /* who called may have left descriptors open */
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2, n++)
        if (listen_at(argv[i], argv[i + 1]) != 3 + n) {
            perror(argv[i + 1]);
            return 2;
        }
    if (!n || i + 1 >= argc)
        return 2;
    struct pollfd p = {.fd = 3, .events = POLLIN};
    if (poll(&p, 1, 20000) != 1)
        return 2;
    snprintf(text, sizeof(text), "%d", n);
    setenv("LISTEN_FDS", text, 1);
    snprintf(text, sizeof(text), "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    execv(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 2;
}
