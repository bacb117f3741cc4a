/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/clockjump.c - a library for LD_PRELOAD that adds to the time of day as many seconds
 * as the file ATTACK_CLOCK says. So a test can let the clock jump for one process without setting
 * that of the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void)
{
    const char *path = getenv("ATTACK_CLOCK");
    FILE *f = path ? fopen(path, "re") : NULL;
    long seconds = 0;
    if (!f)
        return 0;
    if (fscanf(f, "%ld", &seconds) != 1)
        seconds = 0;
    fclose(f);
    return seconds;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, id, t);
    if (!r && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += jump();
    return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
