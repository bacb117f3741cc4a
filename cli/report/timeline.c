// SPDX-License-Identifier: Apache-2.0
/* The drawing: a band for each GPU, in it a row for each client that used it. Operations of a
 * client that are closer together than a viewer can see become one bar, so the drawing of a long
 * trace stays small. */
#include "config.h"

#include <math.h>

#include "cli/report/report.h"

enum { LEFT = 220, WIDTH = 1000, ROW = 18, HEAD = 24, GAP = 10, TICKS = 10 };
#define NEAR 0.5 /* pixels */

struct bar { /* operations that are drawn as one */
    double from, to;
    size_t n;
    const struct ws_report_slice *only;
};

static double x_of(const struct ws_report *r, double us)
{
    double all = r->end_us - r->start_us;
    return LEFT + (all > 0 ? (us - r->start_us) / all * WIDTH : 0);
}

static bool uses(const struct ws_report *r, uint32_t client, uint32_t gpu)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->slices[i].gpu == gpu && r->slices[i].client == client)
            return true;
    return false;
}

static void put_bar(const struct ws_report *r, const struct bar *b, int y, uint32_t client, FILE *f)
{
    fprintf(f, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>",
            b->from, y, fmax(b->to - b->from, NEAR), ROW - 4, ws_report_color(client));
    ws_report_text(b->n == 1 ? r->kernels.v[b->only->kernel].name : "", f);
    if (b->n == 1)
        fprintf(f, ": %.3f ms, %.6f J, waited %.3f ms", (b->only->end_us - b->only->start_us) / 1e3,
                (double)b->only->energy_uj / 1e6, b->only->waited_us / 1e3);
    else
        fprintf(f, "%zu operations", b->n);
    fputs("</title></rect>\n", f);
}

static void put_row(const struct ws_report *r, uint32_t gpu, uint32_t client, int y, FILE *f)
{
    struct bar b = {0};
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, y + ROW - 7);
    ws_report_text(r->clients.v[client].name, f);
    fputs("</text>\n", f);
    for (size_t i = 0; i < r->n; i++) {
        const struct ws_report_slice *p = &r->slices[i];
        if (p->gpu != gpu || p->client != client)
            continue;
        double from = x_of(r, p->start_us), to = x_of(r, p->end_us);
        if (b.n && from - b.to < NEAR) {
            b.to = fmax(b.to, to);
            b.n++;
            continue;
        }
        if (b.n)
            put_bar(r, &b, y, client, f);
        b = (struct bar){from, to, 1, p};
    }
    if (b.n)
        put_bar(r, &b, y, client, f);
}

static void put_axis(const struct ws_report *r, int y, FILE *f)
{
    for (int i = 0; i <= TICKS; i++) {
        double x = LEFT + (double)i * WIDTH / TICKS;
        fprintf(f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\" class=\"grid\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g ms</text>\n",
                x, x, y, x, y + 16, (r->end_us - r->start_us) / 1e3 * i / TICKS);
    }
}

static int height(const struct ws_report *r)
{
    int y = 0;
    for (uint32_t g = 0; g < WS_REPORT_GPUS; g++) {
        y += *r->gpus[g].name ? HEAD + GAP : 0;
        for (uint32_t c = 0; *r->gpus[g].name && c < r->clients.n; c++)
            y += uses(r, c, g) ? ROW : 0;
    }
    return y;
}

void ws_report_timeline(const struct ws_report *r, FILE *f)
{
    int y = 0, bottom = height(r);
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Who worked when\">\n",
            LEFT + WIDTH + 40, bottom + HEAD);
    put_axis(r, bottom, f);
    for (uint32_t g = 0; g < WS_REPORT_GPUS; g++) {
        if (!*r->gpus[g].name)
            continue;
        fprintf(f, "<text x=\"8\" y=\"%d\" class=\"gpu\">", y + HEAD - 8);
        ws_report_text(r->gpus[g].name, f);
        fputs("</text>\n", f);
        y += HEAD;
        for (uint32_t c = 0; c < r->clients.n; c++)
            if (uses(r, c, g)) {
                put_row(r, g, c, y, f);
                y += ROW;
            }
        y += GAP;
    }
    fputs("</svg>\n", f);
}
