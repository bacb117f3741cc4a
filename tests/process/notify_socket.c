// SPDX-License-Identifier: Apache-2.0
/* Usage: notify_socket PATH. Stands for a service manager: prints what is sent to the datagram
 * socket PATH until it is killed. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char text[4096];
    if (argc != 2 || strlen(argv[1]) >= sizeof(a.sun_path))
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    strcpy(a.sun_path, argv[1]);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a))) {
        perror(argv[1]);
        return 1;
    }
    puts("listening");
    fflush(stdout);
    for (ssize_t n; (n = recv(fd, text, sizeof(text) - 1, 0)) >= 0;) {
        text[n] = 0;
        puts(text);
        fflush(stdout);
    }
    return 1;
}
