// SPDX-License-Identifier: Apache-2.0
/* What kernels print, and what this library cannot do.
 *
 * Output. CUDA writes what kernels have printed when the program waits for them: in the
 * synchronising calls and copies, before a reset and before the end of the process. At those points
 * the text is fetched from the daemon, which keeps it meanwhile, and written to the program's own
 * stdout and stderr, so that it appears in the right place in the program's text. A program none of
 * whose modules can print pays for one look at a flag.
 *
 * Not supported. Each name is reported once on stderr, and counted. The daemon gets the counts
 * whenever they have doubled and at the end, so that a program that asks in a loop costs
 * nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "frontend/session/findings.h"
#include "frontend/session/private.h"

/* ---- output ---- */

enum { RECORD_HEAD = 4 };
enum { OUTPUT_PRINTF = 1, OUTPUT_FINDING = 3 }; /* enum ws_output of device/mapping.h */
static _Atomic bool prints;
static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER; /* keeps the order */

void ws_session_note_prints(void)
{
    prints = true;
}

static void write_records(const uint8_t *p, size_t n)
{
    while (n >= RECORD_HEAD) {
        size_t len = p[1] | (size_t)p[2] << 8 | (size_t)p[3] << 16;
        if (len > n - RECORD_HEAD)
            return;
        FILE *to = p[0] == OUTPUT_PRINTF ? stdout : stderr;
        if (to == stderr)
            fflush(stdout);
        if (p[0] == OUTPUT_FINDING)
            ws_findings_print((const char *)p + RECORD_HEAD, len);
        else
            fwrite(p + RECORD_HEAD, 1, len, to);
        p += RECORD_HEAD + len;
        n -= RECORD_HEAD + len;
    }
}

static void fetch(struct ws_channel *c)
{
    uint64_t rest = 0, lost = 0;
    bool first = true, any = false;
    do { /* up to what was there at first: a kernel may go on printing for ever */
        Ws__Reply *reply = NULL;
        if (ws_channel_call(c, WS_COMMAND(OUTPUT, output, 0), &reply)) {
            ws_channel_reply_free(reply);
            break;
        }
        size_t n = reply->data.len;
        rest = first ? reply->value : rest - WS_MIN(rest, (uint64_t)n);
        first = false;
        any |= n != 0;
        write_records(reply->data.data, n);
        lost += reply->value2;
        if (!n || !reply->value)
            rest = 0;
        ws_channel_reply_free(reply);
    } while (rest);
    if (any)
        fflush(stdout);
    if (lost)
        ws_log(
            WS_INFO,
            "session: %llu pieces of kernels' output were lost; a larger cudaLimitPrintfFifoSize "
            "keeps them",
            (unsigned long long)lost);
}

void ws_session_output(void)
{
    struct ws_channel *c;
    if ((WS_LIKELY(!prints) && !ws_findings_wanted()) || ws_session_ended() ||
        ws_session_enter_anyway(&c))
        return;
    pthread_mutex_lock(&output_lock);
    fetch(c);
    pthread_mutex_unlock(&output_lock);
}

ws_err ws_session_set_limit(int device, enum ws_limit what, uint64_t value)
{
    static const Ws__Limit__What whats[] = {
        [WS_LIMIT_PRINTF_FIFO] = WS__LIMIT__WHAT__PRINTF_FIFO_BYTES,
        [WS_LIMIT_MALLOC_HEAP] = WS__LIMIT__WHAT__MALLOC_HEAP_BYTES,
        [WS_LIMIT_STACK] = WS__LIMIT__WHAT__STACK_BYTES,
    };
    struct ws_channel *c;
    Ws__Limit m = WS__LIMIT__INIT;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    m.device = (uint32_t)device;
    m.what = whats[what];
    m.value = value;
    return ws_channel_call(c, WS_COMMAND(LIMIT, limit, &m), NULL);
}

/* ---- what we don't do ---- */

enum { NAMES = 512 };
static struct output_row {
    char *name;
    uint64_t count, told;
} rows[NAMES];
static size_t n_rows;
static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;

/* Lock held. */
static void tell(struct output_row *r)
{
    struct ws_channel *c;
    Ws__NotSupported m = WS__NOT_SUPPORTED__INIT;
    if (r->told == r->count || !ws_session_is_open() || ws_session_enter_anyway(&c))
        return;
    m.name = r->name;
    m.count = r->count - r->told;
    if (!ws_channel_post(c, WS_COMMAND(NOT_SUPPORTED, not_supported, &m)))
        r->told = r->count;
}

void ws_session_unsupported(const char *name)
{
    size_t i = 0;
    ws_session_open_log();
    pthread_mutex_lock(&rows_lock);
    while (i < n_rows && strcmp(rows[i].name, name) != 0)
        i++;
    bool fresh = i == n_rows;
    if (fresh && n_rows < NAMES && (rows[i].name = ws_strdup(name)))
        n_rows++;
    if (i < n_rows) {
        rows[i].count++;
        if (!(rows[i].count & (rows[i].count - 1)))
            tell(&rows[i]);
    }
    pthread_mutex_unlock(&rows_lock);
    if (fresh)
        ws_log(WS_WARN, "session: not supported: %s", name);
}

void ws_session_tell_unsupported(void)
{
    pthread_mutex_lock(&rows_lock);
    for (size_t i = 0; i < n_rows; i++)
        tell(&rows[i]);
    pthread_mutex_unlock(&rows_lock);
}
