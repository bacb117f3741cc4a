/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/spank/wishes.h - the options --wattshare and --watt-…, as users give them to srun, sbatch
 * and salloc. Threads: none. */
#ifndef WS_SLURM_SPANK_WISHES_H
#define WS_SLURM_SPANK_WISHES_H

#include <stdbool.h>
#include <stddef.h>

enum ws_wish {
    WS_WISH_TASK,     /* --wattshare[=TASK]: an argument, or "" */
    WS_WISH_DEADLINE, /* milliseconds */
    WS_WISH_PERIOD,   /* milliseconds */
    WS_WISH_SMS,
    WS_WISH_MEMORY, /* bytes; the suffixes K, M and G are powers of 1024 */
    WS_WISH_PRIORITY,
    WS_WISH_FINISH, /* seconds; of the job, not of its GPU work */
    WS_WISH_LENGTH, /* seconds */
    _WS_WISH_N
};

struct ws_wish_info {
    const char *name, *argument, *usage;
    const char *begin_option; /* of `wattshare step begin`, which gets the number; NULL: none */
};
extern const struct ws_wish_info ws_wish_info[_WS_WISH_N];

struct ws_wishes {
    bool given[_WS_WISH_N];
    char text[_WS_WISH_N][64]; /* a number as `wattshare step begin` takes it; or the task */
};

/* Takes an option and its argument, which may be NULL. Return: NULL, or what is wrong, in @buf. */
const char *ws_wishes_take(struct ws_wishes *w, enum ws_wish which, const char *text, char *buf,
                           size_t size);
/* What is wrong with the options together. Return: NULL, or that, in @buf. */
const char *ws_wishes_wrong(const struct ws_wishes *w, char *buf, size_t size);

#endif
