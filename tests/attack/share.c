/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/share.c - attacks on what users share, and on what they may know of each other: rows
 * 10, 12 and 13. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/attack/attack.h"

/* ---- row 10 ---- */

/* Each segment costs a mapping, however small it is. */
static const char *segments(const struct target *t, unsigned copy)
{
    struct raw r[16];
    (void)copy;
    for (unsigned c = 0; c < 16 && attack_goes_on(t); c++) {
        if (raw_open(&r[c], t->sock, NULL) || raw_open_side(&r[c], t->side))
            continue;
        int fd = -1;
        for (unsigned i = 0; i < 20000 && attack_goes_on(t); i++) {
            if (raw_side(&r[c], WS_HANDOFF_PINNED, 1, &fd))
                break;
            if (fd >= 0)
                close(fd);
        }
    }
    return NULL;
}

/* Pins @bytes where the daemon chooses. Return: Ws__Error, or -1. */
static int pin(struct raw *r, uint64_t bytes, uint32_t *io_segment, uint64_t *ret_address)
{
    Ws__HostMap map = WS__HOST_MAP__INIT;
    int fd = -1, e = raw_side(r, WS_HANDOFF_PINNED, bytes, &fd);
    if (fd >= 0)
        close(fd);
    if (e)
        return e;
    map.segment = ++*io_segment;
    return raw_call(r, WS__COMMAND__C_HOST_MAP, &map, ret_address);
}

/* A page in the middle of each GiB of addresses for pinned memory: behind something that goes again
 * and is larger each time, so that it never fits where it was. */
static const char *pinned_addresses(const struct target *t, unsigned copy)
{
    enum { PAGE = 4096, MIDDLE = 520 << 20 };
    const uint64_t all = WS_HOST_VA_LAST - WS_HOST_VA_FIRST, gib = UINT64_C(1) << 30;
    uint64_t n = 0, last = 0, at;
    uint32_t segment = 0;
    struct raw r;
    (void)copy;
    if (!attack_open(&r, t) || raw_open_side(&r, t->side))
        return NULL;
    while (attack_goes_on(t) && !pin(&r, MIDDLE + n * PAGE, &segment, &at)) {
        uint64_t large = segment;
        if (pin(&r, PAGE, &segment, &at))
            break;
        n += at / gib != last;
        last = at / gib;
        raw_put(&r, WS__COMMAND__C_HOST_UNMAP, &large);
        raw_send(&r);
    }
    while (attack_goes_on(t))
        attack_sleep_ms(5);
    return n * gib > all / 2 + gib ? "more than half of the addresses for pinned memory" : NULL;
}

/* Holes in pinned memory that the daemon reads: the kernel lets nobody see the memory before a hole
 * is as large as it is to be. A stream waits for a value there, and so the daemon looks. */
static const char *holes(const struct target *t, unsigned copy)
{
    enum { MIB = 256, BYTES = MIB << 20, VALUE_EQ = 1 };
    Ws__HostMap map = WS__HOST_MAP__INIT;
    Ws__StreamValue value = WS__STREAM_VALUE__INIT;
    struct raw r;
    int fd = -1;
    (void)copy;
    if (!attack_open(&r, t) || raw_open_side(&r, t->side) ||
        raw_side(&r, WS_HANDOFF_PINNED, BYTES, &fd) || fd < 0)
        return NULL;
    uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    map.segment = 1;
    if (p == MAP_FAILED || raw_call(&r, WS__COMMAND__C_HOST_MAP, &map, &value.address))
        return NULL;
    value.stream = WS_STREAM_DEFAULT_0;
    value.value = 1;
    value.bytes = 8;
    value.compare = VALUE_EQ;
    raw_put(&r, WS__COMMAND__C_STREAM_VALUE, &value);
    raw_send(&r);
    while (attack_goes_on(t)) {
        for (size_t at = 0; at < BYTES && attack_goes_on(t); at += 4096)
            p[at] = 2;
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES);
    }
    return NULL;
}

/* Uploads of 1 GiB each that never end. */
static const char *uploads(const struct target *t, unsigned copy)
{
    enum { PART = 1 << 20 };
    uint8_t *part = calloc(1, PART), sha256[WS_SHA256_BYTES] = {(uint8_t)copy};
    struct raw r;
    Ws__ModuleImage image = WS__MODULE_IMAGE__INIT;
    Ws__ModuleLoad load = WS__MODULE_LOAD__INIT;
    image.image_bytes = load.image_bytes = 1 << 30;
    image.sha256 = load.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    image.data = (ProtobufCBinaryData){PART, part};
    for (unsigned c = 0; part && attack_goes_on(t); c++) {
        if (raw_open(&r, t->sock, NULL)) {
            attack_sleep_ms(5);
            continue;
        }
        for (unsigned u = 0; u < 4; u++) {
            sha256[1] = (uint8_t)u;
            sha256[2] = (uint8_t)c;
            load.module = u + 1;
            raw_call(&r, WS__COMMAND__C_MODULE_LOAD, &load, NULL);
            for (image.offset = 0; image.offset < (1023u << 20); image.offset += PART) {
                raw_put(&r, WS__COMMAND__C_MODULE_IMAGE, &image);
                if (raw_send(&r) || !attack_goes_on(t))
                    break;
            }
        }
    }
    return NULL;
}

/* All seats but as few as can be. */
static const char *seats(const struct target *t, unsigned copy)
{
    struct raw r;
    (void)copy;
    for (unsigned n = 0; attack_goes_on(t); n++)
        if (n >= 1024 || raw_open(&r, t->sock, NULL))
            attack_sleep_ms(5);
    return NULL;
}

/* Events, streams and objects, each within what one client may have. */
static const char *objects(const struct target *t, unsigned copy)
{
    Ws__EventRecord event = WS__EVENT_RECORD__INIT;
    Ws__StreamCreate stream = WS__STREAM_CREATE__INIT;
    Ws__VaReserve reserve = WS__VA_RESERVE__INIT;
    struct raw r;
    event.stream = WS_STREAM_DEFAULT_0;
    reserve.bytes = WS_MEM_GRANULE_BYTES;
    for (unsigned c = 0; attack_goes_on(t); c++) {
        if (c >= 100 || raw_open(&r, t->sock, NULL)) {
            attack_sleep_ms(5);
            continue;
        }
        uint64_t seq = 0;
        for (unsigned i = 0; i < 3000; i++) {
            event.event = i + 1;
            stream.stream = WS_STREAM_FIRST + i;
            raw_put(&r, WS__COMMAND__C_EVENT_RECORD, &event);
            if (i < 900)
                raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &stream);
            if (i % 4 == 0)
                seq = raw_put(&r, WS__COMMAND__C_VA_RESERVE, &reserve);
            if (i % 1000 == 999 && (raw_send(&r) || raw_wait(&r, seq, NULL) < 0))
                break;
        }
    }
    (void)copy;
    return NULL;
}

/* A module whose kernel prints 1 KiB very often. */
static size_t printing_module(char *to, size_t size)
{
    enum { TEXT = 1000 };
    size_t n =
        (size_t)snprintf(to, size,
                         ".version 7.0\n.target sm_50\n.address_size 64\n"
                         ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
                         ".global .align 1 .b8 f[%d] = {",
                         TEXT + 1);
    for (int i = 0; i < TEXT; i++)
        n += (size_t)snprintf(to + n, size - n, "120,");
    n += (size_t)snprintf(to + n, size - n,
                          "0};\n.visible .entry say()\n{\n.reg .b32 %%i;\n.reg .b64 %%f;\n"
                          ".reg .pred %%p;\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n"
                          "mov.u32 %%i, 0;\nmov.u64 %%f, f;\ncvta.global.u64 %%f, %%f;\nAGAIN:\n"
                          "st.param.b64 [a], %%f;\nst.param.b64 [b], 0;\n"
                          "call.uni (c), vprintf, (a, b);\nadd.u32 %%i, %%i, 1;\n"
                          "setp.lt.u32 %%p, %%i, 1000;\n@%%p bra AGAIN;\nret;\n}\n");
    return n;
}

/* Clients whose kernels print more than may be held, and who fetch nothing. @fifo_bytes: how much
 * they want to be held; 0: they do not say. */
static const char *print(const struct target *t, unsigned n_clients, uint64_t fifo_bytes,
                         unsigned n_launches)
{
    enum { CLIENTS = 60 };
    static struct raw r[CLIENTS];
    char text[8192];
    size_t n = printing_module(text, sizeof(text));
    Ws__Limit limit = WS__LIMIT__INIT;
    limit.what = WS__LIMIT__WHAT__PRINTF_FIFO_BYTES;
    limit.value = fifo_bytes;
    for (unsigned c = 0; c < WS_MIN(n_clients, CLIENTS) && attack_open(&r[c], t); c++) {
        if (fifo_bytes)
            (void)!raw_call(&r[c], WS__COMMAND__C_LIMIT, &limit, NULL);
        if (raw_load(&r[c], 1, text, n))
            return "a module that prints could not be loaded";
        Ws__Launch l = raw_launch(1, 0);
        l.grid_x = 8;
        for (unsigned i = 0; i < n_launches; i++)
            raw_put(&r[c], WS__COMMAND__C_LAUNCH, &l);
        raw_send(&r[c]);
    }
    while (attack_goes_on(t))
        attack_sleep_ms(5);
    return NULL;
}

static const char *printed(const struct target *t, unsigned copy)
{
    (void)copy;
    return print(t, 8, 64 << 20, 100);
}

static const char *printed_by_many(const struct target *t, unsigned copy)
{
    (void)copy;
    return print(t, 60, 0, 1);
}

uint64_t attack_charged(const struct target *t, const char *resource)
{
    int fd = raw_dial(t->sock);
    uint64_t n = 0;
    Ws__ServerMessage *a = fd < 0 || raw_greet(fd, "", 0) ? NULL : raw_status(fd);
    for (size_t i = 0; a && i < a->status->n_accounts; i++)
        if (!strcmp(a->status->accounts[i]->resource, resource))
            n += a->status->accounts[i]->used;
    if (a)
        ws__server_message__free_unpacked(a, NULL);
    if (fd >= 0)
        close(fd);
    return n;
}

/* The client fetches little while its kernel prints 512 MiB, and then all the rest. It asks for the
 * largest buffer there is, of 64 MiB, for which the daemon holds up to 256 MiB of text: so much is
 * its user charged with, and so much memory may the daemon take. */
static const char *printed_taken(const struct target *t, unsigned copy)
{
    enum { LAUNCHES = 32, FETCHES = 1000 };
    const uint32_t little = 4, all = 0;
    const char *won = NULL;
    char text[8192];
    size_t n = printing_module(text, sizeof(text));
    Ws__Limit limit = WS__LIMIT__INIT;
    struct raw r;
    (void)copy;
    limit.what = WS__LIMIT__WHAT__PRINTF_FIFO_BYTES;
    limit.value = 64 << 20;
    if (!attack_open(&r, t) || raw_call(&r, WS__COMMAND__C_LIMIT, &limit, NULL) ||
        raw_load(&r, 1, text, n))
        return "a client that prints 512 MiB was refused";
    while (attack_goes_on(t) && !won) {
        Ws__Launch l = raw_launch(1, 0);
        uint64_t left = 0;
        l.grid_x = 16;
        for (unsigned i = 0; i < LAUNCHES; i++)
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        raw_send(&r);
        for (unsigned i = 0; i < FETCHES && attack_goes_on(t); i++) {
            (void)!raw_call(&r, WS__COMMAND__C_OUTPUT, &little, &left);
            attack_sleep_ms(1);
        }
        if (attack_goes_on(t) && attack_charged(t, "host_bytes") < left)
            won = "more text is held than its user is charged with";
        while (left && attack_goes_on(t) && !raw_call(&r, WS__COMMAND__C_OUTPUT, &all, &left))
            ;
    }
    return won;
}

/* ---- row 12: to be taken for another ---- */

static const char *another_exe(const struct target *t, unsigned copy)
{
    struct raw r;
    const char *won = NULL;
    (void)copy;
    if (raw_open(&r, t->sock, "/opt/cam/x"))
        return NULL;
    Ws__ServerMessage *a = raw_status(r.fd);
    for (size_t i = 0; a && i < a->status->n_clients; i++) {
        const Ws__ClientStatus *c = a->status->clients[i];
        if (c->client == r.client && (c->priority == 50 || !strcmp(c->work, "camera")))
            won = "a client that said it was /opt/cam/x got that program's task and priority";
    }
    if (a)
        ws__server_message__free_unpacked(a, NULL);
    return won;
}

/* ---- row 13: what others do ---- */

static bool status_tells(int fd, pid_t who)
{
    Ws__ServerMessage *a = raw_status(fd);
    bool tells = false;
    for (size_t i = 0; a && i < a->status->n_clients; i++)
        tells |= a->status->clients[i]->pid == (uint32_t)who;
    if (a)
        ws__server_message__free_unpacked(a, NULL);
    return tells;
}

static bool explain_tells(int fd)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__ExplainRequest q = WS__EXPLAIN_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.explain = &q;
    Ws__ServerMessage *a = raw_message(fd, &m) ? NULL : raw_receive(fd);
    bool tells = a && a->explain && strstr(a->explain->text, "bystander");
    if (a)
        ws__server_message__free_unpacked(a, NULL);
    return tells;
}

static bool trace_tells(int fd, pid_t who)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__TraceRequest q = WS__TRACE_REQUEST__INIT;
    bool tells = false;
    q.version = WS_PROTOCOL_VERSION;
    m.trace = &q;
    for (int k = 0; k < 2; k++) { /* asking makes the daemon begin */
        Ws__ServerMessage *a = raw_message(fd, &m) ? NULL : raw_receive(fd);
        for (size_t i = 0; a && a->trace && i < a->trace->n_spans; i++)
            tells |= a->trace->spans[i]->pid == (uint32_t)who || a->trace->spans[i]->name[0];
        if (a)
            ws__server_message__free_unpacked(a, NULL);
        attack_sleep_ms(300);
    }
    return tells;
}

static const char *look(const struct target *t, unsigned copy)
{
    int fd = raw_dial(t->sock);
    (void)copy;
    if (fd < 0 || raw_greet(fd, "", 0))
        return NULL;
    if (status_tells(fd, t->bystander))
        return "the status shows another user's process";
    if (trace_tells(fd, t->bystander))
        return "the trace shows another user's process and its kernels";
    if (explain_tells(fd))
        return "an explanation names another user's program";
    return NULL;
}

const struct attack attacks_share[] = {
    {"10", "segments", "65,000 segments of one byte", segments, .ms = 4000, .max_mib = 1024},
    {"10", "pinned-addresses", "all addresses for pinned memory", pinned_addresses, .ms = 6000,
     .max_mib = 1024},
    {"7", "holes", "holes in pinned memory where a stream waits for a value", holes,
     .max_mib = 1024},
    {"10", "uploads", "uploads of 1 GiB that never end", uploads, .copies = 2, .ms = 4000,
     .max_mib = 2560},
    {"10", "seats", "all seats for one user", seats, .copies = 2},
    {"10", "objects", "streams, events and reservations of 100 clients", objects, .copies = 2},
    {"10", "printed", "kernels print 256 MiB for each of 8 clients", printed, .ms = 4000,
     .max_mib = 128, .max_call_ms = 1000, .conf = "limits { max_host_bytes = 268435456 }\n"},
    {"10", "printed-by-many", "kernels of 60 clients print 4 MiB each", printed_by_many, .ms = 4000,
     .max_mib = 192, .max_call_ms = 1000, .conf = "limits { max_host_bytes = 268435456 }\n"},
    {"7", "printed-taken", "fetches what kernels print, a little and then all", printed_taken,
     .ms = 5000, .max_mib = 320},
    {"12", "another-exe", "says that it is another program", another_exe,
     .conf = "task \"camera\" { match_path = {\"/opt/cam/*\"} priority = 50 }\n"},
    {"13", "look", "looks at what others do", look, .conf = "policy = \"rr\"\n"},
    {0}};
