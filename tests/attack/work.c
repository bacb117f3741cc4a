/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/work.c - attacks by single commands and requests that are much work for the daemon:
 * row 7. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "protocol/handoff.h"
#include "tests/attack/attack.h"

/* An image of 256 MiB in pieces of nearly 4 MiB. It is not what its hash says, but that is known
 * at its end only. */
static const char *pieces(const struct target *t, unsigned copy)
{
    enum { PIECE = (4 << 20) - 4096, PIECES = 64 };
    uint8_t *piece = calloc(1, PIECE), sha256[WS_SHA256_BYTES] = {(uint8_t)copy};
    Ws__ModuleImage image = WS__MODULE_IMAGE__INIT;
    struct raw r;
    image.image_bytes = (uint64_t)PIECE * PIECES;
    image.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    image.data = (ProtobufCBinaryData){PIECE, piece};
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r))
        for (unsigned i = 0; attack_goes_on(t); i = (i + 1) % PIECES) {
            image.offset = (uint64_t)i * PIECE;
            raw_put(&r, WS__COMMAND__C_MODULE_IMAGE, &image);
            if (raw_send(&r))
                break;
        }
    return NULL;
}

/* A new module that consists of 100,000 lines like @line, of which the answer tells. */
static const char *very_many(const struct target *t, unsigned copy, const char *line)
{
    enum { LINES = 100000, LINE_BYTES = 48 };
    char *text = malloc((size_t)LINES * LINE_BYTES);
    struct raw r;
    for (unsigned i = 0; text && attack_goes_on(t) && attack_open(&r, t); i++) {
        size_t n = (size_t)sprintf(
            text, "// %u %u\n.version 7.0\n.target sm_50\n.address_size 64\n", copy, i);
        for (unsigned k = 0; k < LINES; k++)
            n += (size_t)sprintf(text + n, line, k);
        while (attack_goes_on(t) && raw_load(&r, 1, text, n) < 0)
            ; /* it takes longer than raw_wait() waits */
        raw_close(&r);
    }
    return NULL;
}

static const char *kernels(const struct target *t, unsigned copy)
{
    return very_many(t, copy, ".entry k%u(){ret;}\n");
}

static const char *variables(const struct target *t, unsigned copy)
{
    return very_many(t, copy, ".visible .global .u32 v%u = 1;\n");
}

/* The same module again and again, whose code is there. */
static const char *again(const struct target *t, unsigned copy)
{
    enum { VARIABLES = 250000 };
    char *text = malloc((size_t)VARIABLES * 48);
    struct raw r;
    if (!text || !attack_open(&r, t))
        return NULL;
    size_t n =
        (size_t)sprintf(text, "// %u\n.version 7.0\n.target sm_50\n.address_size 64\n", copy);
    for (unsigned k = 0; k < VARIABLES; k++)
        n += (size_t)sprintf(text + n, ".visible .global .u32 v%u;\n", k);
    int e = 0;
    for (uint64_t id = 1; attack_goes_on(t) && e <= 0; id++) {
        e = raw_load(&r, id, text, n); /* less than 0: it is not there yet */
        if (!e)
            raw_put(&r, WS__COMMAND__C_MODULE_UNLOAD, &id);
    }
    raw_close(&r);
    if (e > 0)
        fprintf(stderr, "again: %d\n", e);
    return NULL;
}

/* A managed variable of 256 MiB that is moved to memory whose pages are all there, again and
 * again. */
static const char *places(const struct target *t, unsigned copy)
{
    enum { BYTES = 256 << 20 };
    char text[256];
    struct raw r;
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        int n = snprintf(text, sizeof(text),
                         "// %u\n.version 7.0\n.target sm_50\n.address_size 64\n"
                         ".visible .global .attribute(.managed) .b8 big[%u];\n"
                         ".visible .entry k()\n{\nret;\n}\n",
                         copy, BYTES),
            fd = -1;
        if (raw_open_side(&r, t->side) || raw_load(&r, 1, text, (size_t)n) ||
            raw_side(&r, WS_HANDOFF_PINNED, BYTES, &fd) || fd < 0)
            continue;
        uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        uint64_t address = UINT64_C(1) << 32;
        Ws__HostMap map = WS__HOST_MAP__INIT;
        Ws__ModulePlace place = WS__MODULE_PLACE__INIT;
        map.segment = 1;
        map.address = address;
        place.module = 1;
        place.addresses = &address;
        place.n_addresses = 1;
        int e = raw_call(&r, WS__COMMAND__C_HOST_MAP, &map, NULL);
        while (!e && p != MAP_FAILED && attack_goes_on(t)) {
            place.keep = !place.keep;
            memset(p, 1, BYTES);
            e = raw_call(&r, WS__COMMAND__C_MODULE_PLACE, &place, NULL);
        }
        if (e > 0)
            fprintf(stderr, "place: %d\n", e);
        munmap(p, BYTES);
        close(fd);
    }
    return NULL;
}

/* Variables whose initial values are as large as an image may be. */
static const char *initial(const struct target *t, unsigned copy)
{
    enum { WORDS = 4 << 20 };
    char *text = malloc(512 + 2 * (size_t)WORDS);
    struct raw r;
    if (!text)
        return NULL;
    size_t n = (size_t)sprintf(text,
                               "// %u\n.version 7.0\n.target sm_50\n.address_size 64\n"
                               ".visible .entry k()\n{\nret;\n}\n"
                               ".visible .global .u64 big[%u] = {",
                               copy, WORDS);
    for (unsigned i = 0; i < WORDS; i++)
        n += (size_t)sprintf(text + n, "9%s", i + 1 < WORDS ? "," : "};\n");
    while (attack_goes_on(t) && attack_open(&r, t)) {
        int e = 0;
        for (unsigned i = 1; attack_goes_on(t) && e <= 0; i++)
            e = raw_load(&r, i, text, n);
        if (e > 0)
            fprintf(stderr, "initial: %d\n", e);
        raw_close(&r);
    }
    return NULL;
}

/* Pinned memory whose last user is the daemon. */
static const char *pinned(const struct target *t, unsigned copy)
{
    enum { BYTES = 256 << 20 };
    struct raw r;
    (void)copy;
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        if (raw_open_side(&r, t->side))
            continue;
        int fd = -1;
        if (raw_side(&r, WS_HANDOFF_PINNED, BYTES, &fd) || fd < 0)
            continue;
        uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
            memset(p, 1, BYTES);
            munmap(p, BYTES);
        }
        close(fd);
    }
    return NULL;
}

/* Requests on the handoff socket, on many connections at once. */
static const char *requests(const struct target *t, unsigned copy)
{
    enum { CLIENTS = 32 };
    struct raw r[CLIENTS];
    unsigned n = 0;
    (void)copy;
    while (n < CLIENTS && attack_goes_on(t))
        if (!raw_open(&r[n], t->sock, NULL) && !raw_open_side(&r[n], t->side))
            n++;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 4096};
    while (attack_goes_on(t))
        for (unsigned c = 0; c < n; c++) {
            memcpy(q.token, r[c].token, sizeof(q.token));
            for (unsigned i = 0; i < 16; i++)
                (void)!send(r[c].side, &q, sizeof(q), MSG_DONTWAIT);
            /* The answers are read, and their descriptors closed. */
            int fd = -1;
            struct ws_handoff_reply a;
            while (ws_packet_recv(r[c].side, &a, sizeof(a), &fd, MSG_DONTWAIT) > 0) {
                if (fd >= 0)
                    close(fd);
                fd = -1;
            }
        }
    return NULL;
}

/* Kernels that start themselves again without end, in many streams: launches that no message of the
 * client's brings. Each thread starts a block of @threads, as @how says. */
static const char *start_again(const struct target *t, unsigned n_streams, unsigned blocks,
                               unsigned threads, unsigned how)
{
    static const char format[] =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2\n"
        "(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"
        ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 t);\n"
        ".visible .entry again() { .reg .b64 %%rd<3>; .reg .b32 %%r<2>;\n"
        "  mov.u64 %%rd1, again; .param .b64 f; st.param.b64 [f], %%rd1;\n"
        "  .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12];\n"
        "  st.param.b32 [g+0], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"
        "  st.param.b32 [b+0], %u; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;\n"
        "  .param .b32 s; st.param.b32 [s], 0; .param .b64 r;\n"
        "  call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);\n"
        "  ld.param.b64 %%rd2, [r]; .param .b64 p; st.param.b64 [p], %%rd2;\n"
        "  .param .b64 t; st.param.b64 [t], %u; .param .b32 e;\n"
        "  call.uni (e), __cudaCDP2LaunchDeviceV2, (p, t); ret; }\n";
    char text[sizeof(format) + 16];
    Ws__StreamCreate stream = WS__STREAM_CREATE__INIT;
    struct raw r;
    size_t n = (size_t)snprintf(text, sizeof(text), format, threads, how);
    if (!attack_open(&r, t) || raw_load(&r, 1, text, n))
        return "a client whose kernel starts kernels was refused";
    stream.non_blocking = true;
    for (unsigned i = 0; i < n_streams; i++) {
        Ws__Launch l = raw_launch(1, 0);
        l.grid_x = blocks;
        l.block_x = threads;
        l.stream = stream.stream = WS_STREAM_FIRST + i;
        raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &stream);
        raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
    }
    if (raw_send(&r))
        return "a client whose kernel starts kernels was refused";
    while (attack_goes_on(t))
        attack_sleep_ms(20);
    return NULL;
}

enum { TAIL_LAUNCH = 3, FIRE_AND_FORGET = 4 }; /* cudaStreamTailLaunch and so on */

static const char *starts(const struct target *t, unsigned copy)
{
    (void)copy;
    return start_again(t, 64, 1, 1, TAIL_LAUNCH);
}

/* More are started than can be begun. */
static const char *forks(const struct target *t, unsigned copy)
{
    (void)copy;
    return start_again(t, 16, 10000, 32, FIRE_AND_FORGET);
}

/* Very many long texts that device code prints. */
static const char *formats(const struct target *t, unsigned copy)
{
    enum { BYTES = 4096, LAUNCHES = 8 };
    static const char text[] =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 string[3] = {37, 115, 0};\n"               /* "%s" */
        ".global .align 1 .b8 wide[7] = {37, 52, 48, 48, 48, 100, 0};\n" /* "%4000d" */
        ".visible .entry say(.param .u64 p) { .local .align 8 .b8 args[8]; .reg .b64 %rd<5>;\n"
        "  ld.param.u64 %rd1, [p]; mov.u64 %rd2, args; st.local.u64 [%rd2], %rd1;\n"
        "  cvta.local.u64 %rd3, %rd2; mov.u64 %rd4, string; cvta.global.u64 %rd4, %rd4;\n"
        "  .param .b64 f; st.param.b64 [f], %rd4; .param .b64 a; st.param.b64 [a], %rd3;\n"
        "  .param .b32 r; call.uni (r), vprintf, (f, a);\n"
        "  mov.u64 %rd4, wide; cvta.global.u64 %rd4, %rd4; st.param.b64 [f], %rd4;\n"
        "  call.uni (r), vprintf, (f, a); ret; }\n";
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__Fill fill = WS__FILL__INIT;
    Ws__Sync sync = WS__SYNC__INIT;
    Ws__Launch l = raw_launch(1, 0);
    struct raw r;
    (void)copy;
    if (!attack_open(&r, t))
        return NULL;
    alloc.bytes = BYTES;
    int e = raw_load(&r, 1, text, sizeof(text) - 1);
    e = e ? e : raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, &fill.dst);
    fill.stream = WS_STREAM_DEFAULT_0;
    fill.value = 'a';
    fill.value_bytes = 1;
    fill.width_bytes = BYTES - 1;
    raw_put(&r, WS__COMMAND__C_FILL, &fill);
    sync.what_case = WS__SYNC__WHAT_DEVICE;
    l.params = (ProtobufCBinaryData){sizeof(fill.dst), (uint8_t *)&fill.dst};
    l.block_x = 1024;
    while (attack_goes_on(t) && e <= 0) {
        for (int i = 0; i < LAUNCHES; i++)
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        e = raw_call(&r, WS__COMMAND__C_SYNC, &sync, NULL);
    }
    return e > 0 ? "a client whose kernels print was refused" : NULL;
}

/* Kernels without end in very many streams, which all end at once: one fails. */
static int end_at_once(struct raw *r, unsigned n_streams)
{
    enum { SPIN, FAIL, BATCH = 2000 };
    Ws__StreamCreate stream = WS__STREAM_CREATE__INIT;
    Ws__Sync sync = WS__SYNC__INIT;
    Ws__Reset reset = WS__RESET__INIT;
    stream.non_blocking = true;
    sync.what_case = WS__SYNC__WHAT_STREAM;
    for (unsigned i = 0; i < n_streams; i++) {
        Ws__Launch l = raw_launch(1, i + 1 < n_streams ? SPIN : FAIL);
        l.stream = sync.stream = stream.stream = WS_STREAM_FIRST + i;
        raw_put(r, WS__COMMAND__C_STREAM_CREATE, &stream);
        raw_put(r, WS__COMMAND__C_LAUNCH, &l);
        if (i % BATCH == BATCH - 1 && raw_send(r))
            return -1;
    }
    int e = raw_call(r, WS__COMMAND__C_SYNC, &sync, NULL);
    return e < 0 ? e : raw_call(r, WS__COMMAND__C_RESET, &reset, NULL);
}

static const char *ends(const struct target *t, unsigned copy)
{
    static const char text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry spin() { loop: bra loop; }\n"
                               ".visible .entry fail() { trap; }\n";
    struct raw r;
    (void)copy;
    if (!attack_open(&r, t))
        return "a client was refused";
    while (attack_goes_on(t) && !raw_load(&r, 1, text, sizeof(text) - 1))
        if (end_at_once(&r, 1000))
            return "a client whose kernels ended was refused";
    return NULL;
}

const struct attack attacks_work[] = {
    {"7", "pieces", "images of 256 MiB in pieces of 4 MiB", pieces, .copies = 1},
    {"7", "kernels", "a module of 100,000 kernels", kernels, .ms = 4000, .max_mib = 1024},
    {"7", "variables", "a module of 100,000 variables", variables, .ms = 4000, .max_mib = 1024},
    {"7", "again", "the same module of 250,000 variables again and again", again, .ms = 4000,
     .max_mib = 1024},
    {"7", "places", "moves a managed variable of 256 MiB", places, .ms = 3000, .max_mib = 1024},
    {"7", "initial", "loads 32 MiB of initial values", initial, .ms = 4000, .max_mib = 2048},
    {"7", "pinned", "pinned memory of 256 MiB that others have left", pinned, .ms = 3000},
    {"7", "requests", "requests on the handoff socket by 32 clients", requests, .copies = 1},
    {"7", "starts", "kernels that start themselves again without end", starts, .copies = 2},
    {"7", "forks", "kernels each thread of which starts a kernel", forks, .copies = 2, .ms = 4000,
     .max_call_ms = 1000},
    {"7", "formats", "long texts that device code prints", formats, .ms = 2000},
    {"7", "ends", "a thousand kernels that end at once, again and again", ends, .copies = 2,
     .max_call_ms = 1000},
    {0}};
