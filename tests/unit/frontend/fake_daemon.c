// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/frontend/fake_daemon.h"

#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "base/macros.h"

/* ThreadSanitizer has those that a daemon gives for itself. */
#ifdef __SANITIZE_THREAD__
#define HOST_VA_FIRST UINT64_C(0x7000000000)
#else
#define HOST_VA_FIRST WS_HOST_VA_FIRST
#endif

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "fake_daemon: %s:%d: %s\n", __FILE__, __LINE__, #x);                   \
            _exit(99);                                                                             \
        }                                                                                          \
    } while (0)

struct answer {
    Ws__ServerMessage m;
    Ws__Reply reply[512], *replies[512];
    Ws__Notice notice;
};

static uint8_t *host_of(struct fake_daemon *d, uint64_t va, uint64_t bytes)
{
    for (int i = 0; i < FAKE_ALLOCS; i++)
        if (d->allocs[i].p && va >= d->allocs[i].va && bytes <= d->allocs[i].bytes &&
            va - d->allocs[i].va <= d->allocs[i].bytes - bytes)
            return d->allocs[i].p + (va - d->allocs[i].va);
    for (uint32_t i = 0; i < d->n_segments; i++)
        if (d->segments[i].address && va >= d->segments[i].address &&
            va - d->segments[i].address + bytes <= d->segments[i].bytes)
            return d->segments[i].map + (va - d->segments[i].address);
    return NULL;
}

static void set_chunk(struct fake_daemon *d, const Ws__Copy *c, uint32_t state)
{
    struct ws_staging_control *k = (void *)d->segments[c->segment].map;
    _Atomic uint32_t *word = &k->state[c->segment_offset / k->chunk_bytes];
    MUST(atomic_exchange(word, state) == WS_CHUNK_BUSY);
    if (k->n_waiting)
        syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void do_copy(struct fake_daemon *d, const Ws__Copy *c, zmq_msg_t *frame, Ws__Reply *reply)
{
    uint64_t height = c->height ? c->height : 1, rows = height * (c->depth ? c->depth : 1);
    uint8_t *staged = c->bulk == WS__COPY__BULK__STAGED_SRC || c->bulk == WS__COPY__BULK__STAGED_DST
                          ? d->segments[c->segment].map + 4096 + c->segment_offset
                          : NULL;
    uint8_t *bulk_src = NULL, *bulk_dst = NULL;
    switch (c->bulk) {
    case WS__COPY__BULK__INLINE:
        MUST(c->data.len == c->bytes * rows);
        bulk_src = c->data.data;
        break;
    case WS__COPY__BULK__STAGED_SRC:
        bulk_src = staged;
        break;
    case WS__COPY__BULK__STAGED_DST:
        bulk_dst = staged;
        break;
    case WS__COPY__BULK__FRAME_SRC:
        MUST(c->frame == 1 && zmq_msg_size(frame) == c->bytes * rows);
        bulk_src = zmq_msg_data(frame);
        break;
    case WS__COPY__BULK__REPLY_DST: {
        static uint8_t *buffer;
        MUST(reply);
        free(buffer);
        bulk_dst = buffer = malloc(c->bytes * rows);
        reply->data = (ProtobufCBinaryData){.len = c->bytes * rows, .data = buffer};
        break;
    }
    default:
        break;
    }
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t y = i % height, z = i / height;
        uint8_t *dst = bulk_dst
                           ? bulk_dst + i * c->bytes
                           : host_of(d, c->dst + y * c->dst_pitch + z * c->dst_slice, c->bytes),
                *src = bulk_src
                           ? bulk_src + i * c->bytes
                           : host_of(d, c->src + y * c->src_pitch + z * c->src_slice, c->bytes);
        MUST(dst && src);
        memmove(dst, src, c->bytes);
    }
    if (c->bulk == WS__COPY__BULK__STAGED_SRC)
        set_chunk(d, c, WS_CHUNK_FREE);
    if (c->bulk == WS__COPY__BULK__STAGED_DST)
        set_chunk(d, c, d->fail_next ? WS_CHUNK_FAILED : WS_CHUNK_READY);
}

static void do_alloc(struct fake_daemon *d, uint64_t bytes, Ws__Reply *r)
{
    static uint64_t next = WS_VA_FIRST;
    for (int i = 0; i < FAKE_ALLOCS; i++) {
        if (d->allocs[i].p)
            continue;
        d->allocs[i].p = calloc(1, bytes);
        d->allocs[i].va = r->value = next;
        d->allocs[i].bytes = bytes;
        next += WS_ALIGN_UP(bytes, 512) + 512;
        return;
    }
    r->error = WS__ERROR__OUT_OF_MEMORY;
}

static Ws__ModuleInfo *module_info(void)
{
    static uint32_t offsets[] = {0, 8, 16}, sizes[] = {8, 4, 8};
    static Ws__Kernel add = WS__KERNEL__INIT, none = WS__KERNEL__INIT, *kernels[] = {&none, &add};
    static Ws__Variable var = WS__VARIABLE__INIT, *vars[] = {&var};
    static Ws__ModuleInfo info = WS__MODULE_INFO__INIT;
    none.name = "none";
    add.name = "add";
    add.n_param_offsets = add.n_param_sizes = 3;
    add.param_offsets = offsets;
    add.param_sizes = sizes;
    add.param_bytes = 24;
    add.n_regs = 16;
    var.name = "counter";
    var.address = WS_VA_LAST - 4096;
    var.bytes = 64;
    info.n_kernels = 2;
    info.kernels = kernels;
    info.n_variables = 1;
    info.variables = vars;
    return &info;
}

static void do_command(struct fake_daemon *d, const Ws__Command *c, uint64_t seq, zmq_msg_t *frame,
                       struct answer *a)
{
    Ws__Reply r = WS__REPLY__INIT;
    bool replies = c->c_case >= WS__COMMAND__C_SYNC;
    r.seq = seq;
    d->n_commands++;
    switch (c->c_case) {
    case WS__COMMAND__C_LAUNCH:
        d->last_params_bytes = c->launch->params.len;
        if (c->launch->params.len)
            memcpy(d->last_params, c->launch->params.data,
                   WS_MIN(c->launch->params.len, sizeof(d->last_params)));
        d->n_launches++; /* last: what a test waits for */
        if (d->fail_next)
            a->notice.error = d->fail_next;
        break;
    case WS__COMMAND__C_COPY:
        do_copy(d, c->copy, frame, NULL);
        break;
    case WS__COMMAND__C_COPY_SYNC:
        do_copy(d, c->copy_sync, frame, &r);
        break;
    case WS__COMMAND__C_FILL: {
        uint8_t *p = host_of(d, c->fill->dst, c->fill->width_bytes);
        MUST(p);
        memset(p, c->fill->value, c->fill->width_bytes);
        break;
    }
    case WS__COMMAND__C_MODULE_IMAGE:
        d->n_images++;
        memcpy(d->have_sha256, c->module_image->sha256.data, WS_SHA256_BYTES);
        break;
    case WS__COMMAND__C_EVENT_RECORD:
        d->recorded = c->event_record->event;
        break;
    case WS__COMMAND__C_STREAM_WAIT:
        d->waited_for = c->stream_wait->event;
        d->waiting = c->stream_wait->stream;
        break;
    case WS__COMMAND__C_SYNC:
        d->n_syncs++;
        r.error = atomic_exchange(&d->fail_next, 0);
        break;
    case WS__COMMAND__C_QUERY:
        r.value = seq * 1000000;
        r.value2 = 1;
        break;
    case WS__COMMAND__C_MEM_ALLOC:
        do_alloc(d, c->mem_alloc->bytes, &r);
        break;
    case WS__COMMAND__C_MEM_FREE:
        r.error = WS__ERROR__INVALID_VALUE;
        for (int i = 0; i < FAKE_ALLOCS; i++)
            if (d->allocs[i].p && d->allocs[i].va == c->mem_free->address) {
                free(d->allocs[i].p);
                d->allocs[i].p = NULL;
                r.error = WS__ERROR__OK;
            }
        break;
    case WS__COMMAND__C_MODULE_LOAD:
        if (memcmp(d->have_sha256, c->module_load->sha256.data, WS_SHA256_BYTES))
            r.error = WS__ERROR__NEED_IMAGE;
        else
            r.module = module_info();
        break;
    case WS__COMMAND__C_HOST_MAP:
        r.value = c->host_map->address;
        if (!r.value)
            r.value = HOST_VA_FIRST + c->host_map->segment * (UINT64_C(1) << 30);
        d->segments[c->host_map->segment].address = r.value;
        break;
    default:
        break;
    }
    if (replies) {
        a->reply[a->m.n_replies] = r;
        a->replies[a->m.n_replies] = &a->reply[a->m.n_replies];
        a->m.n_replies++;
    }
}

static void send_to(struct fake_daemon *d, zmq_msg_t *id, const Ws__ServerMessage *m)
{
    size_t n = ws__server_message__get_packed_size(m);
    uint8_t *buf = malloc(n + 1);
    ws__server_message__pack(m, buf);
    zmq_send(d->router, zmq_msg_data(id), zmq_msg_size(id), ZMQ_SNDMORE);
    if (d->garbage)
        zmq_send(d->router, "\xff\xff\xff", 3, 0);
    else
        zmq_send(d->router, buf, n, 0);
    free(buf);
}

/* Through ZeroMQ at last. */
static void send_late(struct fake_daemon *d)
{
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    zmq_msg_t id;
    if (!d->is_late)
        return;
    m.notice = &d->late;
    zmq_msg_init_data(&id, d->peer, d->peer_bytes, NULL, NULL);
    send_to(d, &id, &m);
    zmq_msg_close(&id);
    d->is_late = false;
}

/* A notice of an error goes through ZeroMQ and arrives after what was sent later through the
 * ring. */
static void answer(struct fake_daemon *d, zmq_msg_t *id, Ws__ServerMessage *m)
{
    uint8_t buf[WS_RING_MESSAGE_BYTES];
    if (!d->way.memory) {
        send_to(d, id, m);
        return;
    }
    if (m->notice->error) {
        send_late(d);
        d->late = *m->notice;
        d->is_late = true;
        d->way.n_sent++;
        m->notice->error = WS__ERROR__OK;
    }
    if (ws__server_message__get_packed_size(m) <= sizeof(buf) &&
        ws_ring_put(&d->way, buf, ws__server_message__pack(m, buf))) {
        if (d->way.memory->client_waits)
            ws_ring_signal(&d->way);
        if (d->is_late)
            usleep(2000);
    } else {
        send_late(d);
        send_to(d, id, m);
        d->way.n_sent++;
    }
}

static void answer_hello(struct fake_daemon *d, zmq_msg_t *id)
{
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__HelloReply h = WS__HELLO_REPLY__INIT;
    Ws__Limits l = WS__LIMITS__INIT;
    Ws__Device dev = WS__DEVICE__INIT, *devs[] = {&dev, &dev};
    uint8_t token[WS_TOKEN_BYTES] = {1, 2, 3};
    h.error = d->hello_error;
    h.text = (char *)(d->hello_text ? d->hello_text : "");
    h.version = d->version ? d->version : WS_PROTOCOL_VERSION;
    h.token = (ProtobufCBinaryData){.len = sizeof(token), .data = token};
    h.handoff_socket = d->no_side ? "" : d->side;
    l.max_message_bytes = 1 << 20;
    l.max_commands = 512;
    l.max_outstanding = d->outstanding ? d->outstanding : 1024;
    l.max_inline_bytes = d->inline_bytes ? d->inline_bytes : 4096;
    l.max_param_bytes = 4096;
    l.max_streams = l.max_events = 1000;
    h.limits = &l;
    dev.name = "fake";
    dev.max_threads_per_block = 1024;
    dev.regs_per_sm = 65536;
    dev.shared_bytes_per_block_optin = 49152;
    h.n_devices = 2;
    h.devices = devs;
    m.hello = &h;
    d->next_seq = 1;
    d->n_retired = 0;
    send_to(d, id, &m);
}

static void take_message(struct fake_daemon *d, zmq_msg_t *id, const void *data, size_t bytes,
                         zmq_msg_t *frame)
{
    static struct answer a; /* one daemon a process */
    Ws__ClientMessage *q = ws__client_message__unpack(NULL, bytes, data);
    MUST(q);
    d->n_messages++;
    if (!d->silent && q->hello)
        answer_hello(d, id);
    if (!d->silent && q->n_commands) {
        a.m = (Ws__ServerMessage)WS__SERVER_MESSAGE__INIT;
        a.notice = (Ws__Notice)WS__NOTICE__INIT;
        a.m.replies = a.replies;
        a.m.notice = &a.notice;
        if (q->first_seq != d->next_seq)
            d->bad_seq++;
        for (size_t i = 0; i < q->n_commands; i++)
            do_command(d, q->commands[i], d->next_seq++, frame, &a);
        a.notice.retired = d->n_retired += q->n_commands;
        a.notice.dropped = d->drop;
        answer(d, id, &a.m);
    }
    if (q->goodbye)
        d->n_goodbyes++;
    ws__client_message__free_unpacked(q, NULL);
}

static void take_lane(struct fake_daemon *d)
{
    uint8_t buf[WS_RING_MESSAGE_BYTES];
    ssize_t n;
    zmq_msg_t id, none;
    zmq_msg_init(&none);
    zmq_msg_init_data(&id, d->peer, d->peer_bytes, NULL, NULL);
    while ((n = ws_ring_take(&d->way, buf)) >= 0)
        take_message(d, &id, buf, n, &none);
    zmq_msg_close(&id);
}

static void take(struct fake_daemon *d)
{
    zmq_msg_t id, m, frame;
    int more = 0;
    size_t n = sizeof(more);
    zmq_msg_init(&id);
    zmq_msg_init(&m);
    zmq_msg_init(&frame);
    MUST(zmq_msg_recv(&id, d->router, 0) >= 0 && zmq_msg_recv(&m, d->router, 0) >= 0);
    zmq_getsockopt(d->router, ZMQ_RCVMORE, &more, &n);
    if (more)
        MUST(zmq_msg_recv(&frame, d->router, 0) >= 0);
    take_lane(d);
    d->peer_bytes = zmq_msg_size(&id);
    MUST(d->peer_bytes <= (int)sizeof(d->peer));
    memcpy(d->peer, zmq_msg_data(&id), d->peer_bytes);
    take_message(d, &id, zmq_msg_data(&m), zmq_msg_size(&m), &frame);
    if (d->way.memory)
        d->way.n_received++;
    take_lane(d);
    zmq_msg_close(&id);
    zmq_msg_close(&m);
    zmq_msg_close(&frame);
}

static void take_side(struct fake_daemon *d, int fd)
{
    struct ws_handoff_request q;
    struct ws_handoff_reply r = {.data_offset = 0};
    int passed = -1;
    union {
        struct cmsghdr h;
        char b[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {&r, sizeof(r)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (recv(fd, &q, sizeof(q), MSG_DONTWAIT) != sizeof(q))
        return;
    if ((q.kind == WS_HANDOFF_STAGING || q.kind == WS_HANDOFF_PINNED) &&
        d->n_segments < FAKE_SEGMENTS) {
        r.segment = d->n_segments++;
        r.data_offset = q.kind == WS_HANDOFF_STAGING ? 4096 : 0;
        r.bytes = q.bytes;
        int s = memfd_create("fake", MFD_CLOEXEC);
        MUST(s >= 0 && ftruncate(s, r.data_offset + q.bytes) == 0);
        uint8_t *map =
            mmap(NULL, r.data_offset + q.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
        MUST(map != MAP_FAILED);
        if (q.kind == WS_HANDOFF_STAGING) {
            struct ws_staging_control *k = (void *)map;
            k->magic = WS_STAGING_MAGIC;
            k->chunk_bytes = q.chunk_bytes;
            k->n_chunks = q.bytes / q.chunk_bytes;
        }
        d->segments[r.segment].kind = q.kind;
        d->segments[r.segment].fd = s;
        d->segments[r.segment].map = map;
        d->segments[r.segment].bytes = q.bytes;
        passed = s;
    } else if (d->ring && q.kind == WS_HANDOFF_RING && !d->way.memory) {
        passed = memfd_create("fake", MFD_CLOEXEC);
        MUST(passed >= 0 && ftruncate(passed, sizeof(struct ws_ring_memory)) == 0);
        MUST(ws_ring_map(&d->way, passed, false) == 0);
    } else if (d->way.memory && q.kind == WS_HANDOFF_DOORBELL) {
        int pair[2];
        MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        d->way.doorbell = pair[0];
        passed = pair[1];
    }
    if (passed >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        control.h = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(passed)),
                                     .cmsg_level = SOL_SOCKET,
                                     .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.h), &passed, sizeof(passed));
    }
    sendmsg(fd, &m, MSG_NOSIGNAL);
    if (q.kind == WS_HANDOFF_RING || q.kind == WS_HANDOFF_DOORBELL)
        close(passed);
}

static void *run(void *arg)
{
    struct fake_daemon *d = arg;
    while (!d->stop) {
        d->n_turns++;
        zmq_pollitem_t p[11] = {{.socket = d->router, .events = d->paused ? 0 : ZMQ_POLLIN},
                                {.fd = d->side_listen, .events = ZMQ_POLLIN}};
        for (int i = 0; i < d->n_side; i++)
            p[2 + i] = (zmq_pollitem_t){.fd = d->side_fds[i], .events = ZMQ_POLLIN};
        if (d->way.doorbell >= 0)
            p[2 + d->n_side] =
                (zmq_pollitem_t){.fd = d->way.doorbell, .events = d->paused ? 0 : ZMQ_POLLIN};
        int n = zmq_poll(p, 2 + d->n_side + (d->way.doorbell >= 0), 10);
        send_late(d);
        if (n > 0 && d->way.doorbell >= 0 && p[2 + d->n_side].revents && !d->paused) {
            if (!ws_ring_hear(&d->way, NULL))
                d->way.doorbell = (close(d->way.doorbell), -1);
            take_lane(d);
        }
        if (p[0].revents && !d->paused)
            take(d);
        for (int i = 0; i < d->n_side; i++)
            if (p[2 + i].revents)
                take_side(d, d->side_fds[i]);
        if (p[1].revents && d->n_side < 8)
            d->side_fds[d->n_side++] = accept4(d->side_listen, NULL, NULL, SOCK_CLOEXEC);
    }
    return NULL;
}

/* Keys for tcp, and where the frontend looks for its own. Without anybody who is asked, each client
 * that has one may come. */
static void use_keys(struct fake_daemon *d)
{
    char public_key[41], secret_key[41], own_public[41], own_secret[41], path[96];
    int on = 1;
    MUST(!zmq_curve_keypair(public_key, secret_key) && !zmq_curve_keypair(own_public, own_secret));
    snprintf(path, sizeof(path), "%s/key", d->dir);
    FILE *f = fopen(path, "w");
    MUST(f && !fchmod(fileno(f), 0600));
    fprintf(f, "public %s\nsecret %s\n", own_public, own_secret);
    fclose(f);
    setenv("WATTSHARE_KEY", path, 1);
    setenv("WATTSHARE_SERVER_KEY", public_key, 1);
    MUST(!zmq_setsockopt(d->router, ZMQ_CURVE_SERVER, &on, sizeof(on)) &&
         !zmq_setsockopt(d->router, ZMQ_CURVE_SECRETKEY, secret_key, sizeof(secret_key)));
}

void fake_daemon_start(struct fake_daemon *d)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(d->dir, "/tmp/wattshare-test-XXXXXX");
    MUST(mkdtemp(d->dir));
    snprintf(d->ipc, sizeof(d->ipc), "ipc://%s/s", d->dir);
    snprintf(d->side, sizeof(d->side), "%s/side", d->dir);
    if (!d->endpoint)
        d->endpoint = d->ipc;
    strcpy(a.sun_path, d->side);
    d->side_listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    MUST(bind(d->side_listen, (struct sockaddr *)&a, sizeof(a)) == 0 &&
         listen(d->side_listen, 8) == 0);
    d->way.doorbell = -1;
    MUST((d->ctx = zmq_ctx_new()) && (d->router = zmq_socket(d->ctx, ZMQ_ROUTER)));
    int zero = 0;
    zmq_setsockopt(d->router, ZMQ_LINGER, &zero, sizeof(zero));
    zmq_setsockopt(d->router, ZMQ_SNDHWM, &zero, sizeof(zero));
    zmq_setsockopt(d->router, ZMQ_RCVHWM, &zero, sizeof(zero));
    if (!strncmp(d->endpoint, "tcp://", 6))
        use_keys(d);
    MUST(zmq_bind(d->router, d->endpoint) == 0);
    MUST(pthread_create(&d->thread, NULL, run, d) == 0);
}

void fake_daemon_pause(struct fake_daemon *d)
{
    d->paused = true;
    for (uint64_t n = d->n_turns; d->n_turns == n;) /* what it was at is over */
        usleep(1000);
}

void fake_daemon_stop(struct fake_daemon *d)
{
    d->stop = true;
    pthread_join(d->thread, NULL);
    ws_ring_end(&d->way);
    close(d->side_listen);
    for (int i = 0; i < d->n_side; i++)
        close(d->side_fds[i]);
    zmq_close(d->router);
    zmq_ctx_term(d->ctx);
    for (uint32_t i = 0; i < d->n_segments; i++)
        close(d->segments[i].fd);
    for (int i = 0; i < FAKE_ALLOCS; i++)
        free(d->allocs[i].p);
    unlink(d->side);
    unlink(d->ipc + strlen("ipc://"));
    char key[96];
    snprintf(key, sizeof(key), "%s/key", d->dir);
    unlink(key);
    rmdir(d->dir);
}
