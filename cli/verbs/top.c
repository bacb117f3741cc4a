// SPDX-License-Identifier: Apache-2.0
/* wattshare top: shows what happens on the GPUs now. A page is text that is made from two
 * successive statuses; a terminal shows it with ncurses, and --batch prints it. Rates are per
 * second of the GPUs' own clock, which on a software GPU is not real time. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/common/options.h"
#include "cli/common/link.h"
#include "cli/common/text.h"
#include "cli/verbs/top_history.h"

enum sort { BY_ENERGY, BY_KERNELS, BY_MEMORY, BY_AGE };
enum { NAME_BYTES = 25 };
static const char client_marks[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

struct top {
    struct ws_cli_link *link;
    Ws__ServerMessage *now, *before; /* before NULL: the first page */
    enum sort sort;
    struct ws_top_history history;
};

static uint64_t used_uj(const Ws__ClientStatus *c)
{
    return c->busy_uj + c->idle_uj;
}

static char mark_of(uint32_t client)
{
    if (client == 0)
        return '.';
    if (client == UINT32_MAX) /* several clients' */
        return '*';
    return client_marks[(client - 1) % (sizeof(client_marks) - 1)];
}

static const Ws__GpuStatus *gpu_before(const struct top *t, uint32_t gpu)
{
    const Ws__StatusReply *s = t->before ? t->before->status : NULL;
    for (size_t i = 0; s && i < s->n_gpus; i++)
        if (s->gpus[i]->gpu == gpu)
            return s->gpus[i];
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const Ws__ClientStatus *x = *(Ws__ClientStatus *const *)a, *y = *(Ws__ClientStatus *const *)b;
    return x->client < y->client ? -1 : x->client > y->client;
}

/* The clients of the page before are in the order of their numbers. */
static const Ws__ClientStatus *client_before(const struct top *t, const Ws__ClientStatus *c)
{
    const Ws__StatusReply *s = t->before ? t->before->status : NULL;
    Ws__ClientStatus **found =
        s && s->n_clients ? bsearch(&c, s->clients, s->n_clients, sizeof(*s->clients), by_number)
                          : NULL;
    return found ? *found : NULL;
}

/* Device time between the pages on the GPUs that the client uses, in s: the longest; 0: none. */
static double device_s(const struct top *t, const Ws__ClientStatus *c)
{
    double most = 0;
    for (size_t i = 0; i < t->now->status->n_gpus; i++) {
        const Ws__GpuStatus *g = t->now->status->gpus[i], *b = gpu_before(t, g->gpu);
        bool uses = false;
        for (size_t k = 0; k < c->n_gpus; k++)
            uses |= c->gpus[k] == g->gpu;
        if (uses && b && g->device_ns > b->device_ns)
            most = fmax(most, (double)(g->device_ns - b->device_ns) / 1e9);
    }
    return most;
}

static double wall_s(const struct top *t)
{
    const Ws__StatusReply *s = t->now->status, *b = t->before ? t->before->status : NULL;
    return b && s->pid == b->pid && s->uptime_ns > b->uptime_ns
               ? (double)(s->uptime_ns - b->uptime_ns) / 1e9
               : 0;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

/* All figures of the first line are means since the page before, or sums. */
static void gpu_lines(const struct top *t, const Ws__GpuStatus *g, FILE *f)
{
    const Ws__GpuStatus *b = gpu_before(t, g->gpu);
    char used[24], total[24], name[NAME_BYTES], power[24] = "-";
    double power_w, sm_share, busy = 0;
    if (ws_top_means(g, b, &power_w, &sm_share)) {
        busy = (double)(g->busy_ns - b->busy_ns) / (double)(g->device_ns - b->device_ns);
        snprintf(power, sizeof(power), "%.1f", power_w);
    }
    fprintf(
        f, "GPU %-2u %-12s %3u SMs  busy %5.1f %%  %7s W  %12.4f J  %9s / %-9s  %10.1f kernels/s\n",
        g->gpu, ws_cli_clean(g->name, name, sizeof(name)), g->n_sms, 100 * fmin(busy, 1), power,
        (double)g->energy_uj / 1e6, ws_cli_bytes_text(g->memory_used_bytes, used),
        ws_cli_bytes_text(g->memory_bytes, total),
        b ? rate(g->n_kernels, b->n_kernels, wall_s(t)) : 0);
    ws_top_history_print(&t->history, g, f);
    fputs("       ", f);
    for (size_t i = 0; i < g->n_sm_clients; i++) {
        if (i && i % 64 == 0)
            fputs("\n       ", f);
        fputc(mark_of(g->sm_clients[i]), f);
    }
    fputc('\n', f);
}

static void client_line(const struct top *t, const Ws__ClientStatus *c, FILE *f)
{
    double seconds = device_s(t, c);
    const Ws__ClientStatus *b = client_before(t, c);
    char memory[24], name[NAME_BYTES], deadline[24] = "-", late[32] = "-", gpus[16] = "-";
    size_t n = 0;
    for (size_t k = 0; k < c->n_gpus && n + 4 < sizeof(gpus); k++)
        n += (size_t)snprintf(gpus + n, sizeof(gpus) - n, k ? ",%u" : "%u", c->gpus[k]);
    if (c->has_job)
        snprintf(deadline, sizeof(deadline), "%.1f", c->deadline_left_ms);
    else if (c->deadline_ms > 0)
        snprintf(deadline, sizeof(deadline), "(%.1f)", c->deadline_ms);
    if (c->n_jobs)
        snprintf(late, sizeof(late), "%" PRIu64 "/%" PRIu64, c->n_late, c->n_jobs);
    static const char *const gates[] = {
        [WS__CLIENT_STATUS__GATE__GATE_IDLE] = "gated",
        [WS__CLIENT_STATUS__GATE__GATE_WAITS] = "gate: waits",
        [WS__CLIENT_STATUS__GATE__GATE_HOLDS] = "gate: holds",
        [WS__CLIENT_STATUS__GATE__GATE_OVER_LEASE] = "gate: over lease",
    };
    const char *gate = c->gate > 0 && (size_t)c->gate < WS_ARRAY_SIZE(gates) ? gates[c->gate] : "";
    const char *text = *c->work ? c->work : c->task;
    if (!*text)
        text = ws_cli_base_name(c->exe);
    fprintf(f, "%c %-6u %7u %-24s %-4s %10s %10.1f %6.1f %12.4f %9.1f %11s %9s%s%s\n",
            mark_of(c->client), c->client, c->pid, ws_cli_clean(text, name, sizeof(name)), gpus,
            ws_cli_bytes_text(c->memory_bytes, memory),
            b ? rate(c->n_kernels, b->n_kernels, wall_s(t)) : 0,
            b ? 100 * rate(c->device_ns, b->device_ns, seconds) / 1e9 : 0, (double)used_uj(c) / 1e6,
            b ? rate(used_uj(c), used_uj(b), seconds) / 1e6 : 0, deadline, late, *gate ? "  " : "",
            gate);
}

static enum sort sort_order;

static int compare(const void *a, const void *b)
{
    const Ws__ClientStatus *x = *(Ws__ClientStatus *const *)a, *y = *(Ws__ClientStatus *const *)b;
    uint64_t p = 0, q = 0;
    if (sort_order == BY_ENERGY)
        p = used_uj(x), q = used_uj(y);
    else if (sort_order == BY_KERNELS)
        p = x->n_kernels, q = y->n_kernels;
    else if (sort_order == BY_MEMORY)
        p = x->memory_bytes, q = y->memory_bytes;
    if (p != q)
        return p < q ? 1 : -1;
    return by_number(a, b);
}

/* The page as text; malloc'ed, or NULL. */
static char *page(const struct top *t)
{
    const Ws__StatusReply *s = t->now->status;
    Ws__ClientStatus **v = ws_alloc_array(s->n_clients + 1, sizeof(*v));
    char *text = NULL;
    size_t size, n = 0;
    FILE *f = v ? open_memstream(&text, &size) : NULL;
    if (!f) {
        free(v);
        return NULL;
    }
    for (size_t i = 0; i < s->n_clients; i++)
        if (s->clients[i]->connected)
            v[n++] = s->clients[i];
    sort_order = t->sort;
    qsort(v, n, sizeof(*v), compare);
    fprintf(f, "wattshared pid %u, up %.1f s: %zu clients, %u modules, %.1f commands/s%s%s\n",
            s->pid, (double)s->uptime_ns / 1e9, n, s->n_modules,
            t->before ? rate(s->n_commands, t->before->status->n_commands, wall_s(t)) : 0,
            *s->policy ? ", policy " : "", s->policy);
    for (size_t i = 0; i < s->n_gpus; i++)
        gpu_lines(t, s->gpus[i], f);
    fprintf(f, "\n  %-6s %7s %-24s %-4s %10s %10s %6s %12s %9s %11s %9s\n", "CLIENT", "PID", "TASK",
            "GPU", "MEMORY", "KERNELS/S", "BUSY%", "JOULES", "WATTS", "DEADLINE MS", "LATE");
    for (size_t i = 0; i < n; i++)
        client_line(t, v[i], f);
    free(v);
    if (!fclose(f))
        return text;
    free(text);
    return NULL;
}

/* The next status. Return: 0 or negative. */
static int refresh_status(struct top *t)
{
    Ws__ServerMessage *m;
    int r = ws_cli_link_status(t->link, WS_CLI_NEXT_TIMEOUT_MS, &m);
    if (r)
        return r;
    if (t->before)
        ws__server_message__free_unpacked(t->before, NULL);
    t->before = t->now;
    t->now = m;
    if (t->before && t->before->status->n_clients)
        qsort(t->before->status->clients, t->before->status->n_clients,
              sizeof(*t->before->status->clients), by_number);
    if (t->before && t->before->status->pid == m->status->pid)
        ws_top_history_add(&t->history, m->status, t->before->status);
    return 0;
}

static int batch(struct top *t, double interval, long count)
{
    struct timespec pause = {(time_t)interval, (long)(fmod(interval, 1) * 1e9)};
    int r = refresh_status(t); /* so that the first page has rates too */
    for (long i = 0; !r && (!count || i < count); i++) {
        if (i)
            putchar('\n');
        nanosleep(&pause, NULL);
        r = refresh_status(t);
        char *text = r ? NULL : page(t);
        if (text && (fputs(text, stdout) < 0 || fflush(stdout)))
            r = -EPIPE;
        free(text);
    }
    return r;
}

/* The bytes of the line's characters that fit into the terminal. */
static int fitting_bytes(const char *line)
{
    enum { FOLLOWS_MASK = 0xc0, FOLLOWS = 0x80 }; /* a byte of UTF-8 that begins no character */
    int n = 0, columns = 0;
    for (; line[n]; n++)
        if (((unsigned char)line[n] & FOLLOWS_MASK) != FOLLOWS && ++columns > COLS)
            break;
    return n;
}

static void show(char *text, const struct top *t)
{
    static const char *const sorts[] = {"energy", "kernels", "memory", "age"};
    int y = 0, heading = -1;
    erase();
    for (char *save = NULL, *line = text; line && y < LINES - 1; line = save) {
        save = strchr(line, '\n');
        if (save)
            *save++ = 0;
        if (!strncmp(line, "  CLIENT", 8))
            heading = y;
        if (y == heading)
            attron(A_REVERSE);
        mvaddnstr(y, 0, line, fitting_bytes(line));
        if (y == heading)
            attroff(A_REVERSE);
        y++;
    }
    attron(A_DIM);
    mvprintw(LINES - 1, 0, "by %s; e energy, k kernels, m memory, a age, q quit", sorts[t->sort]);
    attroff(A_DIM);
    refresh();
}

/* Return: false: quit. */
static bool on_key(struct top *t, int key)
{
    switch (key) {
    case 'q':
    case 'Q':
        return false;
    case 'e':
        t->sort = BY_ENERGY;
        break;
    case 'k':
        t->sort = BY_KERNELS;
        break;
    case 'm':
        t->sort = BY_MEMORY;
        break;
    case 'a':
        t->sort = BY_AGE;
        break;
    default:
        break;
    }
    return true;
}

static int screen(struct top *t, double interval)
{
    int r = 0;
    if (!initscr())
        return -ENOTTY;
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    timeout((int)(interval * 1000));
    for (bool on = true; on && !r;) {
        r = refresh_status(t);
        char *text = r ? NULL : page(t);
        if (text)
            show(text, t);
        free(text);
        on = on_key(t, getch());
    }
    endwin();
    return r;
}

struct top_options {
    const char *socket;
    bool batch;
    double interval;
    int count; /* 0: no end */
};

static const struct ws_option options[] = {
    {"batch", NULL, "Print pages, separated by an empty line, instead of drawing them.",
     .more = "The first page has no rates.", WS_FLAG(struct top_options, batch)},
    {"count", "N", "With --batch: stop after so many pages.",
     WS_INT(struct top_options, count, 1, INT_MAX)},
    {"interval", "S", "The seconds from one page to the next, 0.05 to 3600 (1).",
     WS_NUMBER(struct top_options, interval, 0.05, 3600)},
    WS_OPTION_SOCKET(struct top_options, socket),
    {0}};
static const char *const examples[] = {"wattshare top", "wattshare top --batch --count 2", NULL};

static int top(int argc, char **argv);

const struct ws_verb ws_verb_top = {
    .name = "top",
    .purpose = "show what happens on the GPUs now, in a terminal",
    .options = options,
    .examples = examples,
    .run = top,
};

static int top(int argc, char **argv)
{
    struct top t = {0};
    struct top_options o = {.interval = 1};
    char **rest;
    int r = ws_verb_parse(&ws_verb_top, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    if (o.count && !o.batch)
        return ws_verb_wrong(&ws_verb_top, "--count goes with --batch");
    if (!o.batch && !isatty(STDOUT_FILENO)) {
        ws_cli_error("standard output is not a terminal; use --batch");
        return WS_EXIT_USAGE;
    }
    const char *endpoint = ws_cli_endpoint(o.socket);
    setlocale(LC_CTYPE, "");
    r = ws_cli_link_open(&t.link, endpoint);
    if (!r)
        r = o.batch ? batch(&t, o.interval, o.count) : screen(&t, o.interval);
    if (t.before)
        ws__server_message__free_unpacked(t.before, NULL);
    if (t.now)
        ws__server_message__free_unpacked(t.now, NULL);
    ws_cli_link_close(t.link);
    if (r == -EPIPE)
        return WS_EXIT_UNAVAILABLE;
    return r ? ws_cli_no_daemon(endpoint, r, NULL) : 0;
}
