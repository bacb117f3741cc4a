// SPDX-License-Identifier: Apache-2.0
/* The page: a sentence with the sums, the timeline, joules by client and by kernel, who waited for
 * whom, and what other policies would have done. It has its style in itself and no script, so it
 * can be mailed and kept. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/report/replay.h"

enum { KERNELS_SHOWN = 40 };

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1280px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse}td,th{padding:.25em .8em;border-bottom:1px solid #ddd;"
    "text-align:right;font-variant-numeric:tabular-nums}td:first-child,th:first-child"
    "{text-align:left;max-width:50em;overflow-wrap:anywhere}"
    "svg{width:100%;background:#fafafa;border:1px solid #ddd}svg text{font:12px sans-serif;"
    "fill:#444}svg .gpu{font-weight:bold}.grid{stroke:#e4e4e4}"
    ".dot{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.5em}"
    ".note{color:#666}";

static double total_uj(const struct ws_report_list *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += (double)l->v[i].energy_uj;
    return sum;
}

static int by_energy(const void *a, const void *b)
{
    const struct ws_report_sum *x = *(struct ws_report_sum *const *)a,
                               *y = *(struct ws_report_sum *const *)b;
    return (x->energy_uj < y->energy_uj) - (x->energy_uj > y->energy_uj);
}

static void put_sum(const struct ws_report_sum *s, double all_uj, const char *color, FILE *f)
{
    fputs("<tr><td>", f);
    if (color)
        fprintf(f, "<span class=\"dot\" style=\"background:%s\"></span>", color);
    ws_report_text(s->name, f);
    fprintf(f,
            "</td><td>%" PRIu64 "</td><td>%.3f</td><td>%.3f</td><td>%.4f</td><td>%.1f %%</td>"
            "</tr>\n",
            s->n, s->busy_us / 1e3, s->waited_us / 1e3, (double)s->energy_uj / 1e6,
            all_uj > 0 ? 100 * (double)s->energy_uj / all_uj : 0);
}

/* The sums by their energy, at most @max of them. */
static void put_sums(const struct ws_report_list *l, const char *what, size_t max, bool colored,
                     FILE *f)
{
    const struct ws_report_sum **v = ws_alloc_array(l->n + 1, sizeof(*v));
    double all_uj = total_uj(l);
    for (size_t i = 0; v && i < l->n; i++)
        v[i] = &l->v[i];
    if (v)
        qsort(v, l->n, sizeof(*v), by_energy);
    fprintf(f,
            "<table><tr><th>%s</th><th>operations</th><th>ms at work</th><th>ms waited</th>"
            "<th>joules</th><th>of all</th></tr>\n",
            what);
    for (size_t i = 0; v && i < WS_MIN(l->n, max); i++)
        put_sum(v[i], all_uj, colored ? ws_report_color((uint32_t)(v[i] - l->v)) : NULL, f);
    fputs("</table>\n", f);
    if (l->n > max)
        fprintf(f, "<p class=\"note\">The %zu others took less energy.</p>\n", l->n - max);
    free(v);
}

static void put_waits(const struct ws_report *r, FILE *f)
{
    const size_t n = r->clients.n;
    size_t shown = 0;
    fputs("<table><tr><th>who waited</th><th>for whom</th><th>ms</th></tr>\n", f);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            if (r->blocked_us[i * n + k] <= 0)
                continue;
            fputs("<tr><td>", f);
            ws_report_text(r->clients.v[i].name, f);
            fputs("</td><td>", f);
            ws_report_text(r->clients.v[k].name, f);
            fprintf(f, "</td><td>%.3f</td></tr>\n", r->blocked_us[i * n + k] / 1e3);
            shown++;
        }
    fputs("</table>\n", f);
    if (!shown)
        fputs("<p class=\"note\">No operation waited while another client worked.</p>\n", f);
    fputs("<p class=\"note\">An operation waits from the moment when it could have started, had "
          "its GPU been free, to its start. If several clients worked meanwhile, each of them is "
          "in the table with the whole time.</p>\n",
          f);
}

static void put_policy(const struct ws_replay *o, const struct ws_replay_row *row, FILE *f)
{
    fprintf(f, "<tr><td>%s</td>", row->name);
    if (*row->note) {
        fprintf(f, "<td colspan=\"%d\">", o->has_deadlines ? 6 : 5);
        ws_report_text(row->note, f);
        fputs("</td></tr>\n", f);
        return;
    }
    fprintf(f, "<td>%.3f</td><td>%.3f</td><td>%.3f</td><td>%.3f</td><td>%.4f</td>", row->end_ms,
            row->wait_ms, row->longest_wait_ms, row->response_ms, row->joules);
    if (o->has_deadlines)
        fprintf(f, "<td>%" PRIu64 "</td>", row->n_late);
    fputs("</tr>\n", f);
}

static void put_policies(const struct ws_replay *o, FILE *f)
{
    fputs("<h2>What another policy would have done</h2>\n", f);
    if (o->impossible) {
        fprintf(f, "<p class=\"note\">%s</p>\n", o->impossible);
        return;
    }
    fprintf(f,
            "<table><tr><th>policy</th><th>ms until all was done</th><th>ms waited, mean</th>"
            "<th>longest</th><th>ms until a job was done, mean</th><th>joules</th>%s</tr>\n",
            o->has_deadlines ? "<th>late or dropped</th>" : "");
    put_policy(o, &o->traced, f);
    for (size_t i = 0; i < o->n_rows; i++)
        put_policy(o, &o->rows[i], f);
    fprintf(
        f,
        "</table>\n<p class=\"note\">The first row is what the trace shows of its %zu jobs. The "
        "others are simulated with the same jobs, so they are approximate. A client gives its "
        "next job as long after the end of the one before as it did in the trace; a task with "
        "a period, as long after the release. On another number of SMs a kernel takes as many "
        "turns as its blocks need, and the same energy for each SM and millisecond%s. What a "
        "policy predicts is the mean of the client's jobs. Copies are left out; so is what "
        "kernels that run side by side do to each other, and merged launches.%s Policies of run "
        "lists and of servers, such as gcaps and edl, have simulators of their own and are not "
        "in the table.",
        o->n_jobs,
        o->has_idle ? "; to this comes the GPUs' idle power" : ", without the GPUs' idle power",
        o->has_deadlines ? " The simulator drops a job whose deadline comes before its start."
                         : "");
    if (o->n_left_out)
        fprintf(f, " The %zu jobs that came last are in no row.", o->n_left_out);
    fputs("</p>\n", f);
}

void ws_report_html(const struct ws_report *r, const struct ws_replay *other, const char *source,
                    FILE *f)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>wattshare: ",
          f);
    ws_report_text(source, f);
    fprintf(f, "</title>\n<style>%s</style></head><body>\n<h1>What ran in ", style);
    ws_report_text(source, f);
    fprintf(f,
            "</h1>\n<p id=\"sum\">%zu operations of %zu clients took %.3f ms of the GPUs' clock "
            "and %.4f J.</p>\n",
            r->n, r->clients.n, (r->end_us - r->start_us) / 1e3, total_uj(&r->clients) / 1e6);
    if (r->n) {
        fputs("<h2>Who worked when</h2>\n", f);
        ws_report_timeline(r, f);
        fputs("<h2>Joules by client</h2>\n", f);
        put_sums(&r->clients, "client", SIZE_MAX, true, f);
        fputs("<h2>Joules by kernel</h2>\n", f);
        put_sums(&r->kernels, "kernel", KERNELS_SHOWN, false, f);
        fputs("<h2>Who waited for whom</h2>\n", f);
        put_waits(r, f);
        put_policies(other, f);
    }
    fputs("<p class=\"note\">Joules are those of the operations, without the GPUs' idle energy. "
          "The page was made by wattshare " PACKAGE_VERSION ".</p>\n</body></html>\n",
          f);
}
