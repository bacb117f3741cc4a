// SPDX-License-Identifier: Apache-2.0
/* Messages. The receiver checks the lengths in each head, since a process that has gone wrong may
 * have written anything. It relies on the other contents as far as its own memory is not at
 * stake. */
#include "device/worker/wire.h"

#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/packet.h"

const char *const ws_wire_limits[4] = {"threads", "blocks", "regs", "shared"};

const struct ws_wire_row ws_wire_rows[_WS_WIRE_TYPES] = {
#define NOTHING char[0]
#define CALL(NAME, name, thread, out, back, end)                                                   \
    [WS_WIRE_##NAME] = {#name, WS_WIRE_BY_##thread, WS_WIRE_##end, true, sizeof(out), sizeof(back)},
#define NOTICE(NAME, name, thread, out, end)                                                       \
    [WS_WIRE_##NAME] = {#name, WS_WIRE_BY_##thread, WS_WIRE_##end, false, sizeof(out), 0},
#include "device/worker/calls.def"
#undef CALL
#undef NOTICE
};

const char *ws_wire_name(uint32_t type)
{
    return type && type < _WS_WIRE_TYPES ? ws_wire_rows[type].name : "unknown";
}

void ws_wire_build(char ret[WS_WIRE_BUILD])
{
    size_t sizes = sizeof(struct ws_wire_page);
    for (size_t k = 1; k < _WS_WIRE_TYPES; k++)
        sizes = sizes * 31 + ws_wire_rows[k].out_bytes * 3 + ws_wire_rows[k].back_bytes;
    snprintf(ret, WS_WIRE_BUILD, "%s %zx", VERSION, sizes);
}

/* A message that is too long for a packet. */
static int send_long(int socket, struct ws_wire_head head, struct ws_wire_part body,
                     struct ws_wire_part more, int flags)
{
    int fd = ws_packet_memfd("wattshare-message", head.bytes);
    if (fd < 0)
        return ws_forward(fd);
    uint8_t *p = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int r = p == MAP_FAILED ? ws_raise(-ENOMEM) : 0;
    if (!r) {
        if (body.bytes)
            memcpy(p, body.p, body.bytes);
        if (more.bytes)
            memcpy(p + body.bytes, more.p, more.bytes);
        munmap(p, head.bytes);
        head.in_memory = 1;
        r = ws_packet_send(socket, &head, sizeof(head), fd, flags);
    }
    close(fd);
    return r;
}

int ws_wire_send(int socket, struct ws_wire_head head, struct ws_wire_part body,
                 struct ws_wire_part more, int fd, int flags)
{
    uint8_t packet[sizeof(head) + WS_WIRE_INLINE_BYTES];
    head.bytes = body.bytes + more.bytes;
    head.in_memory = 0;
    if (head.bytes > WS_WIRE_INLINE_BYTES)
        return fd >= 0 ? ws_raise(-EINVAL) : send_long(socket, head, body, more, flags);
    memcpy(packet, &head, sizeof(head));
    if (body.bytes)
        memcpy(packet + sizeof(head), body.p, body.bytes);
    if (more.bytes)
        memcpy(packet + sizeof(head) + body.bytes, more.p, more.bytes);
    return ws_packet_send(socket, packet, sizeof(head) + head.bytes, fd, flags);
}

int ws_wire_recv(int socket, struct ws_wire_message *m)
{
    m->fd = -1;
    m->map = NULL;
    ssize_t n = ws_packet_recv(socket, m->packet, sizeof(m->packet), &m->fd, 0);
    if (n <= 0)
        return n == 0 ? -ECONNRESET : (int)n;
    if ((size_t)n < sizeof(m->head)) {
        ws_wire_done_with(m);
        return -EPROTO;
    }
    memcpy(&m->head, m->packet, sizeof(m->head));
    m->body = m->packet + sizeof(m->head);
    if (!m->head.in_memory && m->head.bytes == (size_t)n - sizeof(m->head))
        return 0;
    if (!m->head.in_memory || !ws_packet_memfd_ok(m->fd, m->head.bytes)) {
        ws_wire_done_with(m);
        return -EPROTO;
    }
    m->map_bytes = m->head.bytes;
    m->map = mmap(NULL, m->map_bytes, PROT_READ, MAP_SHARED, m->fd, 0);
    if (m->map == MAP_FAILED) {
        m->map = NULL;
        ws_wire_done_with(m);
        return -ENOMEM;
    }
    close(m->fd);
    m->fd = -1;
    m->body = m->map;
    return 0;
}

void ws_wire_done_with(struct ws_wire_message *m)
{
    if (m->map)
        munmap(m->map, m->map_bytes);
    if (m->fd >= 0)
        close(m->fd);
    m->map = NULL;
    m->fd = -1;
}

bool ws_wire_is_for(const struct ws_wire_message *m, enum ws_wire_thread by)
{
    uint32_t type = m->head.type;
    return type && type < _WS_WIRE_TYPES && ws_wire_rows[type].by == by &&
           m->head.bytes >= ws_wire_rows[type].out_bytes;
}

bool ws_wire_take(const struct ws_wire_message *m, void *to, size_t bytes)
{
    if (m->head.bytes < bytes)
        return false;
    memcpy(to, m->body, bytes);
    return true;
}

/* ---- diagnostics ---- */

/* Behind it: text. */
struct wire_diag {
    uint32_t line, col, bytes;
};

void ws_wire_put_diags(FILE *f, const struct ws_diags *d)
{
    for (size_t k = 0; d && k < d->n; k++) {
        struct wire_diag w = {d->v[k].line, d->v[k].col, (uint32_t)strlen(d->v[k].text)};
        fwrite(&w, sizeof(w), 1, f);
        fwrite(d->v[k].text, 1, w.bytes, f);
    }
}

void ws_wire_get_diags(const uint8_t *p, uint64_t bytes, struct ws_diags *d)
{
    struct wire_diag w;
    while (bytes >= sizeof(w)) {
        memcpy(&w, p, sizeof(w));
        p += sizeof(w);
        bytes -= sizeof(w);
        if (w.bytes > bytes)
            return;
        ws_diags_add(d, NULL, w.line, w.col, "%.*s", (int)w.bytes, (const char *)p);
        p += w.bytes;
        bytes -= w.bytes;
    }
}
