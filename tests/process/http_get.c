// SPDX-License-Identifier: Apache-2.0
/* Usage: http_get PORT [PATH]. Prints what 127.0.0.1 serves under PATH; the status line goes to
 * standard error. Exits with 1 if the status is not 200 or the length is not the one that was
 * announced. Without PATH it connects and sends nothing. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static char page[4 << 20];

int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t n = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(20);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        perror("http_get");
        return 1;
    }
    if (argc < 3)
        return pause();
    dprintf(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\n", argv[2]);
    usleep(1000); /* in two parts */
    dprintf(fd, "Accept: */*\r\n\r\n");
    for (ssize_t k; (k = read(fd, page + n, sizeof(page) - 1 - n)) > 0;)
        n += (size_t)k;
    char *body = strstr(page, "\r\n\r\n"), *length = strstr(page, "Content-Length: ");
    if (!body || !length)
        return 1;
    body += 4;
    fprintf(stderr, "%.*s\n", (int)strcspn(page, "\r\n"), page);
    fwrite(body, 1, n - (size_t)(body - page), stdout);
    return strncmp(page, "HTTP/1.1 200 ", 13) ||
           strtoul(length + 16, NULL, 10) != n - (size_t)(body - page);
}
