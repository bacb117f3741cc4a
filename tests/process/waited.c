// SPDX-License-Identifier: Apache-2.0
/* waited FILE [LIMIT-US PER-MILLE]… - prints what libwaited.so has measured, or makes the file. It
 * fails if more turns or more preemptions than that reach the limit, or if there were none. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/process/waited.h"

static void print_time(const char *what, const struct waited_time *t)
{
    printf("  %-22s %8.3f ms: %.3f of a processor, %.3f waited, %.3f the machine's\n", what,
           (double)t->whole_ns / 1e6, (double)t->processor_ns / 1e6, (double)t->waited_ns / 1e6,
           ((double)t->whole_ns - (double)t->processor_ns - (double)t->waited_ns) / 1e6);
}

/* Return: how many used a processor and waited for @us or more, @us being a power of 2. */
static uint64_t beyond(const struct waited_kind *k, uint64_t us)
{
    uint64_t n = k->n;
    for (unsigned b = 0; b < 32 && UINT64_C(1) << b <= us; b++)
        n -= k->within[b];
    return n;
}

static void print_kind(const char *name, const struct waited_kind *k)
{
    static const uint64_t us[] = {128, 256, 512, 1024, 2048, 4096, 16384};
    printf("%s: %" PRIu64 "\n", name, k->n);
    print_time("longest by itself", &k->longest);
    print_time("longest by the clock", &k->most_whole);
    printf("  by itself at least");
    for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++)
        printf("%s %.3g ms: %" PRIu64, i ? "," : "", (double)us[i] / 1024, beyond(k, us[i]));
    printf("\n");
}

static bool within(const char *name, const struct waited_kind *k, uint64_t us, uint64_t per_mille)
{
    uint64_t n = beyond(k, us);
    if (k->n && n * 1000 <= k->n * per_mille)
        return true;
    printf("FAIL: %" PRIu64 " of %" PRIu64 " %s took %" PRIu64 " us or more by themselves\n", n,
           k->n, name, us);
    return false;
}

int main(int argc, char **argv)
{
    int fd = argc % 2 == 0 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    struct waited *w = MAP_FAILED;
    if (fd >= 0 && !ftruncate(fd, sizeof(*w)))
        w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (w == MAP_FAILED) {
        fputs("usage: waited FILE [LIMIT-US PER-MILLE]…\n", stderr);
        return 2;
    }
    if (!w->turns.n && argc == 2)
        return 0; /* it was made */
    print_kind("turns of the daemon's loop", &w->turns);
    print_kind("preemptions", &w->preempts);
    bool ok = true;
    for (int k = 2; k < argc; k += 2) {
        uint64_t us = strtoull(argv[k], NULL, 10), per_mille = strtoull(argv[k + 1], NULL, 10);
        ok &= within("turns", &w->turns, us, per_mille);
        ok &= within("preemptions", &w->preempts, us, per_mille);
    }
    return ok ? 0 : 1;
}
