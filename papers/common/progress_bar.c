// SPDX-License-Identifier: Apache-2.0
/* The bar is drawn at most ten times a second, by the thread that steps at that moment. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "papers/common/progress_bar.h"

enum { WIDTH = 32 };

void ws_progress_bar_start(struct ws_progress_bar *p, const char *what, uint64_t total)
{
    p->what = what;
    p->total = total;
    p->start_ns = ws_clock_ns();
    atomic_store(&p->done, 0);
    atomic_store(&p->shown_ns, 0);
    p->on = isatty(STDERR_FILENO);
}

void ws_progress_bar_step(struct ws_progress_bar *p, uint64_t n)
{
    uint64_t done = atomic_fetch_add(&p->done, n) + n, now = p->on ? ws_clock_ns() : 0;
    uint64_t shown = atomic_load(&p->shown_ns);
    if (!p->on || now - shown < 100 * WS_NS_PER_MS ||
        !atomic_compare_exchange_strong(&p->shown_ns, &shown, now))
        return;
    char bar[WIDTH + 1];
    uint64_t fill = p->total ? WS_MIN(done, p->total) * WIDTH / p->total : 0;
    for (uint64_t i = 0; i < WIDTH; i++)
        bar[i] = i < fill ? '#' : '.';
    bar[WIDTH] = 0;
    if (p->total)
        fprintf(stderr, "\r%s [%s] %" PRIu64 "/%" PRIu64 " %.0f s\033[K", p->what, bar, done,
                p->total, (double)(now - p->start_ns) * 1e-9);
    else
        fprintf(stderr, "\r%s %" PRIu64 " %.0f s\033[K", p->what, done,
                (double)(now - p->start_ns) * 1e-9);
}

void ws_progress_bar_end(struct ws_progress_bar *p)
{
    if (p->on && atomic_load(&p->shown_ns))
        fputs("\r\033[K", stderr);
}
