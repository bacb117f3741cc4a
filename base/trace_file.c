// SPDX-License-Identifier: Apache-2.0
/* Chrome's trace events, one a line. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/trace_file.h"

void ws_trace_quote(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

void ws_trace_begin(struct ws_trace *t, FILE *f)
{
    *t = (struct ws_trace){.f = f};
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", f);
}

int ws_trace_end(struct ws_trace *t)
{
    fputs("\n]}\n", t->f);
    return fflush(t->f) || ferror(t->f) ? ws_raise(-EIO) : 0;
}

/* Up to the name. */
static void head(struct ws_trace *t, const char *phase, int process, int thread, const char *name)
{
    if (t->begun)
        fputs(",\n", t->f);
    t->begun = true;
    fprintf(t->f, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"name\":", phase, process, thread);
    ws_trace_quote(t->f, name);
}

static void tail(struct ws_trace *t, const char *args)
{
    if (args && *args)
        fprintf(t->f, ",\"args\":{%s}", args);
    fputc('}', t->f);
}

void ws_trace_name(struct ws_trace *t, int process, int thread, const char *process_name,
                   const char *thread_name)
{
    if (process_name) {
        head(t, "M", process, thread, "process_name");
        fputs(",\"args\":{\"name\":", t->f);
        ws_trace_quote(t->f, process_name);
        fputs("}}", t->f);
        head(t, "M", process, thread, "process_sort_index");
        fprintf(t->f, ",\"args\":{\"sort_index\":%d}}", process);
    }
    if (thread_name) {
        head(t, "M", process, thread, "thread_name");
        fputs(",\"args\":{\"name\":", t->f);
        ws_trace_quote(t->f, thread_name);
        fputs("}}", t->f);
        head(t, "M", process, thread, "thread_sort_index");
        fprintf(t->f, ",\"args\":{\"sort_index\":%d}}", thread);
    }
}

void ws_trace_about(struct ws_trace *t, int process, const char *what, const char *args)
{
    head(t, "M", process, 0, what);
    tail(t, args);
}

void ws_trace_slice(struct ws_trace *t, int process, int thread, const char *name, double start,
                    double end, const char *args)
{
    head(t, "X", process, thread, name);
    fprintf(t->f, ",\"ts\":%.3f,\"dur\":%.3f", start * 1e3, (end - start) * 1e3);
    tail(t, args);
}

void ws_trace_mark(struct ws_trace *t, int process, int thread, const char *name, double at,
                   const char *args)
{
    head(t, "i", process, thread, name);
    fprintf(t->f, ",\"ts\":%.3f,\"s\":\"t\"", at * 1e3);
    tail(t, args);
}

void ws_trace_counter(struct ws_trace *t, int process, const char *name, double at, double value)
{
    head(t, "C", process, 0, name);
    fprintf(t->f, ",\"ts\":%.3f,\"args\":{\"value\":%.6g}}", at * 1e3, value);
}

void ws_trace_flow(struct ws_trace *t, int process, int thread, const char *name, double at,
                   uint64_t id, bool end)
{
    head(t, end ? "f" : "s", process, thread, name);
    fprintf(t->f, ",\"cat\":\"job\",\"id\":%" PRIu64 ",\"ts\":%.3f%s}", id, at * 1e3,
            end ? ",\"bp\":\"e\"" : "");
}
