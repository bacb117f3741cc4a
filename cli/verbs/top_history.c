// SPDX-License-Identifier: Apache-2.0
/* The last pages are a ring for each GPU. A strip has a character for each page, the newest at the
 * right: blocks of eight heights where the terminal's characters are UTF-8, else digits. */
#include "config.h"

#include "cli/verbs/top_history.h"

#include <langinfo.h>
#include <math.h>
#include <string.h>

#include "base/macros.h"

enum { SHOWN = 40, HEIGHTS = 8 };

bool ws_top_means(const Ws__GpuStatus *now, const Ws__GpuStatus *before, double *ret_power_w,
                  double *ret_sm_share)
{
    if (!before || now->device_ns <= before->device_ns || now->energy_uj < before->energy_uj)
        return false;
    double ns = (double)(now->device_ns - before->device_ns);
    *ret_power_w = (double)(now->energy_uj - before->energy_uj) * 1e3 / ns;
    *ret_sm_share =
        fmin((double)(now->sm_busy_ns - before->sm_busy_ns) / ns / WS_MAX(now->n_sms, 1), 1);
    return true;
}

void ws_top_history_add(struct ws_top_history *h, const Ws__StatusReply *now,
                        const Ws__StatusReply *before)
{
    unsigned at = h->n++ % WS_TOP_PAGES;
    for (size_t i = 0; i < WS_MAX_DEVICES; i++) {
        double power_w = -1, share = -1;
        if (i < now->n_gpus && i < before->n_gpus)
            ws_top_means(now->gpus[i], before->gpus[i], &power_w, &share);
        h->power_w[i][at] = (float)power_w;
        h->sm_share[i][at] = (float)share;
    }
}

/* @most: the value of the full height. A page without a value is a space. */
static void put_strip(FILE *f, const float *ring, unsigned n, double most)
{
    static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    unsigned shown = WS_MIN(n, (unsigned)SHOWN);
    for (unsigned i = shown; i < SHOWN; i++)
        fputc(' ', f);
    for (unsigned i = n - shown; i < n; i++) {
        double v = (double)ring[i % WS_TOP_PAGES];
        int height = most > 0 ? (int)(v / most * HEIGHTS) : 0;
        height = WS_MIN(WS_MAX(height, 0), HEIGHTS - 1);
        if (v < 0)
            fputc(' ', f);
        else if (utf8)
            fputs(blocks[height], f);
        else
            fputc('1' + height, f);
    }
}

void ws_top_history_print(const struct ws_top_history *h, const Ws__GpuStatus *g, FILE *f)
{
    double most_w = 0;
    if (!h->n || g->gpu >= WS_MAX_DEVICES)
        return;
    for (unsigned i = 0; i < WS_MIN(h->n, (unsigned)WS_TOP_PAGES); i++)
        most_w = fmax(most_w, (double)h->power_w[g->gpu][i]);
    fputs("       W |", f);
    put_strip(f, h->power_w[g->gpu], h->n, most_w);
    fprintf(f, "| 0 to %.0f W    SMs |", most_w);
    put_strip(f, h->sm_share[g->gpu], h->n, 1);
    fputs("| 0 to 100 %\n", f);
}
