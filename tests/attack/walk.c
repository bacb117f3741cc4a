/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/walk.c - attacks by single commands that concern very many things of the client, at
 * each of which the daemon has to look: row 7. And the numbers of such things: row 10. */
#include <stdio.h>

#include "tests/attack/attack.h"

enum { BATCH = 1000, GRANULE = WS_MEM_GRANULE_BYTES };

/* Sends what was put, and waits for the last reply. */
static int flush(struct raw *r, uint64_t seq)
{
    return raw_send(r) ? -1 : raw_wait(r, seq, NULL);
}

static void complain(const char *attack, int e)
{
    if (e > 0)
        fprintf(stderr, "%s: error %d\n", attack, e);
}

/* Allocations and events by the ten thousand. */
static int fill_tables(struct raw *r, const struct target *t, unsigned allocations, unsigned events)
{
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__EventRecord event = WS__EVENT_RECORD__INIT;
    int e = 0;
    alloc.bytes = 4096;
    event.stream = WS_STREAM_DEFAULT_0;
    for (unsigned i = 0; attack_goes_on(t) && !e && i < allocations; i++) {
        event.event = i + 1;
        if (i < events)
            raw_put(r, WS__COMMAND__C_EVENT_RECORD, &event);
        uint64_t seq = raw_put(r, WS__COMMAND__C_MEM_ALLOC, &alloc);
        if (i % BATCH == BATCH - 1)
            e = flush(r, seq);
    }
    return e;
}

/* A client that has very many things, and then leaves. */
static const char *tables(const struct target *t, unsigned copy)
{
    struct raw r;
    (void)copy;
    if (!attack_open(&r, t))
        return NULL;
    complain("tables", fill_tables(&r, t, 200000, 65000));
    raw_close(&r);
    return NULL;
}

/* The same client, which stays until the daemon ends. */
static const char *tables_kept(const struct target *t, unsigned copy)
{
    static struct raw r;
    (void)copy;
    if (attack_open(&r, t))
        complain("tables-kept", fill_tables(&r, t, 200000, 65000));
    return NULL;
}

/* One command takes them away. */
static const char *reset(const struct target *t, unsigned copy)
{
    Ws__Reset all = WS__RESET__INIT;
    struct raw r;
    (void)copy;
    while (attack_goes_on(t) && attack_open(&r, t)) {
        int e = fill_tables(&r, t, 150000, 60000);
        e = e ? e : raw_call(&r, WS__COMMAND__C_RESET, &all, NULL);
        complain("reset", e);
        raw_close(&r);
    }
    return NULL;
}

/* One piece of memory that is mapped at very many places. */
static int map_often(struct raw *r, uint64_t object, unsigned n, bool down, uint64_t *ret_address)
{
    Ws__VaReserve reserve = WS__VA_RESERVE__INIT;
    Ws__MemMap map = WS__MEM_MAP__INIT;
    reserve.bytes = (uint64_t)n * GRANULE;
    int e = raw_call(r, WS__COMMAND__C_VA_RESERVE, &reserve, ret_address);
    map.object = object;
    map.bytes = GRANULE;
    for (unsigned i = 0; !e && i < n; i++) {
        map.address = *ret_address + (uint64_t)(down ? n - 1 - i : i) * GRANULE;
        uint64_t seq = raw_put(r, WS__COMMAND__C_MEM_MAP, &map);
        if (i % BATCH == BATCH - 1 || i + 1 == n)
            e = flush(r, seq);
    }
    return e;
}

static int create(struct raw *r, uint64_t object)
{
    Ws__MemCreate m = WS__MEM_CREATE__INIT;
    m.object = object;
    m.bytes = GRANULE;
    return raw_call(r, WS__COMMAND__C_MEM_CREATE, &m, NULL);
}

static int access_to(struct raw *r, uint64_t address, uint64_t bytes)
{
    Ws__MemAccess m = WS__MEM_ACCESS__INIT;
    m.address = address;
    m.bytes = bytes;
    m.read = m.write = true;
    return raw_call(r, WS__COMMAND__C_MEM_ACCESS, &m, NULL);
}

static int unmap(struct raw *r, uint64_t address, uint64_t bytes)
{
    Ws__MemUnmap m = WS__MEM_UNMAP__INIT;
    m.address = address;
    m.bytes = bytes;
    return raw_call(r, WS__COMMAND__C_MEM_UNMAP, &m, NULL);
}

/* Two reservations full of mappings. The one with the lower addresses is made accessible last and
 * taken away first, each time by one command. */
static const char *mappings(const struct target *t, unsigned copy)
{
    enum { N = 100000 };
    uint64_t at[2] = {0}, bytes = (uint64_t)N * GRANULE;
    struct raw r;
    (void)copy;
    while (attack_goes_on(t) && attack_open(&r, t)) {
        int e = create(&r, 1);
        e = e ? e : map_often(&r, 1, N, true, &at[0]);
        e = e ? e : map_often(&r, 1, N, false, &at[1]);
        unsigned low = at[1] < at[0];
        e = e ? e : access_to(&r, at[!low], bytes);
        e = e ? e : access_to(&r, at[low], bytes);
        e = e ? e : unmap(&r, at[low], bytes);
        complain("mappings", e);
        raw_close(&r);
    }
    return NULL;
}

/* Streams that wait for values which nobody writes. */
static const char *values(const struct target *t, unsigned copy)
{
    enum { CLIENTS = 200, STREAMS = 1000 };
    static struct raw r[CLIENTS];
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    (void)copy;
    alloc.bytes = 4096;
    for (unsigned c = 0; c < CLIENTS && attack_open(&r[c], t); c++) {
        Ws__StreamCreate create_stream = WS__STREAM_CREATE__INIT;
        Ws__StreamValue value = WS__STREAM_VALUE__INIT;
        int e = raw_call(&r[c], WS__COMMAND__C_MEM_ALLOC, &alloc, &value.address);
        value.bytes = 8;
        value.value = 1;
        create_stream.non_blocking = true;
        for (unsigned i = 0; !e && i < STREAMS; i++) {
            create_stream.stream = value.stream = WS_STREAM_FIRST + i;
            raw_put(&r[c], WS__COMMAND__C_STREAM_CREATE, &create_stream);
            raw_put(&r[c], WS__COMMAND__C_STREAM_VALUE, &value);
            if (i % BATCH == BATCH - 1)
                e = raw_send(&r[c]);
        }
        complain("values", e);
    }
    while (attack_goes_on(t))
        attack_sleep_ms(5);
    return NULL;
}

/* Exports an event that waits for function 1 of @r. */
static bool export_event(struct raw *r, uint8_t handle[WS_SHARE_BYTES])
{
    Ws__HostFunction held = WS__HOST_FUNCTION__INIT;
    Ws__EventRecord record = WS__EVENT_RECORD__INIT;
    Ws__Share share = WS__SHARE__INIT;
    held.stream = record.stream = WS_STREAM_DEFAULT_0;
    held.function = record.event = share.event = 1;
    share.what = WS__SHARE__WHAT__EVENT_EXPORT;
    raw_put(r, WS__COMMAND__C_HOST_FUNCTION, &held);
    raw_put(r, WS__COMMAND__C_EVENT_RECORD, &record);
    uint64_t seq = raw_put(r, WS__COMMAND__C_SHARE, &share);
    return !raw_send(r) && raw_wait_data(r, seq, handle, WS_SHARE_BYTES);
}

/* Many clients wait for one event, each very often. One word then ends all this waiting. */
static const char *syncs(const struct target *t, unsigned copy)
{
    enum { CLIENTS = 40, SYNCS = 8000 };
    static struct raw r[CLIENTS];
    struct raw owner;
    uint8_t handle[WS_SHARE_BYTES];
    uint64_t function = 1;
    (void)copy;
    while (attack_goes_on(t) && attack_open(&owner, t) && export_event(&owner, handle)) {
        Ws__Share share = WS__SHARE__INIT;
        Ws__Sync sync = WS__SYNC__INIT;
        unsigned n = 0;
        share.what = WS__SHARE__WHAT__EVENT_IMPORT;
        share.handle = (ProtobufCBinaryData){sizeof(handle), handle};
        share.event = sync.event = 1;
        sync.what_case = WS__SYNC__WHAT_EVENT;
        for (int e = 0; !e && n < CLIENTS && attack_open(&r[n], t); n++) {
            e = raw_call(&r[n], WS__COMMAND__C_SHARE, &share, NULL);
            for (unsigned i = 0; !e && i < SYNCS; i++) {
                raw_put(&r[n], WS__COMMAND__C_SYNC, &sync);
                if (i % BATCH == BATCH - 1)
                    e = raw_send(&r[n]);
            }
            complain("syncs", e);
        }
        attack_sleep_ms(300);
        raw_put(&owner, WS__COMMAND__C_HOST_FUNCTION_DONE, &function);
        raw_send(&owner);
        attack_sleep_ms(200);
        raw_close(&owner);
        while (n)
            raw_close(&r[--n]);
    }
    return NULL;
}

/* Fills of a range of very many mappings, with a hole behind the last. */
static const char *ranges(const struct target *t, unsigned copy)
{
    enum { N = 100000, FILLS = 200 };
    Ws__Fill fill = WS__FILL__INIT;
    struct raw r;
    (void)copy;
    if (!attack_open(&r, t))
        return NULL;
    int e = create(&r, 1);
    e = e ? e : map_often(&r, 1, N, false, &fill.dst);
    e = e ? e : access_to(&r, fill.dst, (uint64_t)N * GRANULE);
    complain("ranges", e);
    fill.stream = WS_STREAM_DEFAULT_0;
    fill.value_bytes = 1;
    fill.width_bytes = (uint64_t)N * GRANULE + 1;
    while (attack_goes_on(t) && !e) {
        for (unsigned i = 0; i < FILLS; i++)
            raw_put(&r, WS__COMMAND__C_FILL, &fill);
        e = raw_send(&r);
        attack_sleep_ms(20);
    }
    return NULL;
}

/* Busy streams, and commands that wait for all of them. @release: one word of the client then lets
 * all of them go on at once. */
static const char *wait_for_all(const struct target *t, bool release)
{
    enum { STREAMS = 4000, SYNCS = 100, FUNCTION = 1, EVENT = 1 };
    struct raw r;
    while (attack_goes_on(t) && attack_open(&r, t)) {
        Ws__StreamCreate create_stream = WS__STREAM_CREATE__INIT;
        Ws__HostFunction held = WS__HOST_FUNCTION__INIT;
        Ws__EventRecord record = WS__EVENT_RECORD__INIT;
        Ws__StreamWait wait = WS__STREAM_WAIT__INIT;
        Ws__Sync sync = WS__SYNC__INIT;
        uint64_t function = FUNCTION;
        int e = 0;
        create_stream.non_blocking = true;
        held.function = function;
        record.event = wait.event = EVENT;
        for (unsigned i = 0; !e && i < STREAMS; i++) {
            create_stream.stream = wait.stream = WS_STREAM_FIRST + i;
            raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &create_stream);
            if (!i) {
                held.stream = record.stream = create_stream.stream;
                raw_put(&r, WS__COMMAND__C_HOST_FUNCTION, &held);
                raw_put(&r, WS__COMMAND__C_EVENT_RECORD, &record);
            }
            raw_put(&r, WS__COMMAND__C_STREAM_WAIT, &wait);
            if (i % BATCH == BATCH - 1)
                e = raw_send(&r);
        }
        sync.what_case = WS__SYNC__WHAT_DEVICE;
        for (unsigned i = 0; !e && i < SYNCS; i++)
            raw_put(&r, WS__COMMAND__C_SYNC, &sync);
        e = e ? e : raw_send(&r);
        attack_sleep_ms(300);
        if (!e && release) {
            raw_put(&r, WS__COMMAND__C_HOST_FUNCTION_DONE, &function);
            raw_send(&r);
            attack_sleep_ms(100);
        }
        raw_close(&r);
    }
    return NULL;
}

static const char *marks(const struct target *t, unsigned copy)
{
    (void)copy;
    return wait_for_all(t, false);
}

static const char *release(const struct target *t, unsigned copy)
{
    (void)copy;
    return wait_for_all(t, true);
}

/* Memory that very many mappings of one client refer to, and few of another. */
static const char *references(const struct target *t, unsigned copy)
{
    enum { N = 200000, TIMES = 500 };
    struct raw a, b;
    (void)copy;
    if (!attack_open(&a, t) || !attack_open(&b, t))
        return NULL;
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__Share share = WS__SHARE__INIT;
    uint8_t handle[WS_SHARE_BYTES];
    uint64_t seq = 0;
    int e;
    alloc.bytes = 4096;
    e = raw_call(&b, WS__COMMAND__C_MEM_ALLOC, &alloc, &share.address);
    seq = raw_put(&b, WS__COMMAND__C_SHARE, &share);
    if (e || raw_send(&b) || !raw_wait_data(&b, seq, handle, sizeof(handle)))
        return NULL;
    Ws__MemFree first = WS__MEM_FREE__INIT;
    first.address = share.address;
    share.what = WS__SHARE__WHAT__MEMORY_IMPORT;
    share.handle = (ProtobufCBinaryData){sizeof(handle), handle};
    for (unsigned i = 0; attack_goes_on(t) && !e && i < N; i++) {
        seq = raw_put(&a, WS__COMMAND__C_SHARE, &share);
        if (i % BATCH == BATCH - 1)
            e = flush(&a, seq);
    }
    uint64_t at;
    e = e ? e : raw_call(&b, WS__COMMAND__C_SHARE, &share, &at);
    e = e ? e : raw_call(&b, WS__COMMAND__C_MEM_FREE, &first, NULL);
    while (attack_goes_on(t) && !e) {
        uint64_t v[TIMES];
        Ws__MemFree one = WS__MEM_FREE__INIT;
        for (unsigned i = 0; i < TIMES && !e; i++)
            e = raw_call(&b, WS__COMMAND__C_SHARE, &share, &v[i]);
        for (unsigned i = 0; i < TIMES && !e; i++) {
            one.address = v[i];
            seq = raw_put(&b, WS__COMMAND__C_MEM_FREE, &one);
        }
        e = e ? e : flush(&b, seq);
    }
    complain("references", e);
    return NULL;
}

/* All addresses there are, without any memory. */
static const char *addresses(const struct target *t, unsigned copy)
{
    enum { CLIENTS = 200 };
    static struct raw r[CLIENTS];
    Ws__VaReserve reserve = WS__VA_RESERVE__INIT;
    (void)copy;
    for (unsigned c = 0; c < CLIENTS && attack_open(&r[c], t); c++)
        for (unsigned shift = 41; shift >= 34; shift--) {
            reserve.bytes = UINT64_C(1) << shift;
            while (!raw_call(&r[c], WS__COMMAND__C_VA_RESERVE, &reserve, NULL))
                ;
        }
    while (attack_goes_on(t))
        attack_sleep_ms(5);
    return NULL;
}

/* Very many small reservations. */
static const char *reservations(const struct target *t, unsigned copy)
{
    enum { CLIENTS = 100, EACH = 65000 };
    static struct raw r[CLIENTS];
    Ws__VaReserve reserve = WS__VA_RESERVE__INIT;
    uint64_t seq;
    (void)copy;
    reserve.bytes = GRANULE;
    for (unsigned c = 0; c < CLIENTS && attack_open(&r[c], t); c++)
        for (unsigned i = 0; i < EACH && attack_goes_on(t); i++) {
            seq = raw_put(&r[c], WS__COMMAND__C_VA_RESERVE, &reserve);
            if (i % BATCH == BATCH - 1 && flush(&r[c], seq))
                break;
        }
    while (attack_goes_on(t))
        attack_sleep_ms(5);
    return NULL;
}

#define HEAD ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k("

/* Launches that wait, and name very much: the policy asks what it costs to move all that to the
 * other GPU, and moves it there. Endless kernels keep both GPUs busy until then. */
static const char *moves(const struct target *t, unsigned copy)
{
    enum { STREAMS = 2000, ALLOCATIONS = 100000, WORDS = 512 };
    static const char endless[] = HEAD ")\n{\nL:\nbra L;\n}\n",
                      names[] = HEAD ".param .align 8 .b8 p[4096])\n{\nret;\n}\n";
    Ws__StreamCreate create_stream = WS__STREAM_CREATE__INIT;
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__Launch busy = raw_launch(1, 0), l = raw_launch(1, 0);
    uint64_t named[WORDS] = {0};
    struct raw r, others[2];
    (void)copy;
    busy.grid_x = 64;
    alloc.bytes = 512;
    create_stream.non_blocking = true;
    l.params = (ProtobufCBinaryData){sizeof(named), (uint8_t *)named};
    int e = attack_open(&r, t) ? raw_load(&r, 1, names, sizeof(names) - 1) : -1;
    e = e ? e : fill_tables(&r, t, ALLOCATIONS, 0);
    for (unsigned i = 0; !e && i < WORDS; i++)
        e = raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, &named[i]);
    while (attack_goes_on(t) && !e) {
        for (unsigned i = 0; i < 2 && attack_open(&others[i], t); i++) {
            (void)raw_load(&others[i], 1, endless, sizeof(endless) - 1);
            raw_put(&others[i], WS__COMMAND__C_LAUNCH, &busy);
            raw_send(&others[i]);
        }
        attack_sleep_ms(20);
        for (unsigned i = 0; !e && i < STREAMS; i++) {
            create_stream.stream = l.stream = WS_STREAM_FIRST + i;
            raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &create_stream);
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
            raw_put(&r, WS__COMMAND__C_STREAM_DESTROY, &l.stream);
            if (i % 100 == 99)
                e = raw_send(&r);
        }
        Ws__Sync sync = WS__SYNC__INIT;
        sync.what_case = WS__SYNC__WHAT_DEVICE;
        e = e ? e : raw_call(&r, WS__COMMAND__C_SYNC, &sync, NULL);
        raw_close(&others[0]);
        raw_close(&others[1]);
    }
    complain("moves", e);
    return NULL;
}

/* Lets each GPU use what the other has, and takes that back, very often: the daemon looks at all
 * that the client has each time. */
static const char *peers(const struct target *t, unsigned copy)
{
    enum { ALLOCATIONS = 100000, CHANGES = 50 };
    Ws__PeerAccess m = WS__PEER_ACCESS__INIT;
    struct raw r;
    (void)copy;
    int e = attack_open(&r, t) ? fill_tables(&r, t, ALLOCATIONS, 0) : -1;
    while (!e && attack_goes_on(t)) {
        uint64_t seq = 0;
        for (unsigned k = 0; k < CHANGES; k++) {
            m.on = k % 4 < 2;
            m.device = k % 2;
            m.peer = !m.device;
            seq = raw_put(&r, WS__COMMAND__C_PEER_ACCESS, &m);
        }
        e = raw_send(&r);
        while (!e && attack_goes_on(t) && raw_wait(&r, seq, NULL) < 0)
            ;
    }
    complain("peers", e);
    return NULL;
}

enum { KERNELS = 4000 };

/* A kernel of @source for each of very many streams, of a client that ends soon. */
static int launch_in_streams(const struct target *t, const char *source, size_t length,
                             unsigned threads, unsigned ms)
{
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__StreamCreate create_stream = WS__STREAM_CREATE__INIT;
    Ws__Launch l = raw_launch(1, 0);
    struct raw r;
    uint64_t at;
    if (!attack_open(&r, t))
        return 0;
    alloc.bytes = 512;
    create_stream.non_blocking = true;
    int e = raw_load(&r, 1, source, length);
    e = e ? e : raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, &at);
    l.params = (ProtobufCBinaryData){sizeof(at), (uint8_t *)&at};
    l.block_x = threads;
    for (unsigned i = 0; !e && i < KERNELS; i++) {
        create_stream.stream = l.stream = WS_STREAM_FIRST + i;
        raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &create_stream);
        raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        if (i % BATCH == BATCH - 1)
            e = raw_send(&r);
    }
    attack_sleep_ms(ms);
    raw_close(&r);
    return e;
}

/* All are cancelled. They have been executed, and wait until their device time is over: loads, one
 * after the other. */
static const char *cancels(const struct target *t, unsigned copy)
{
    static const char slow[] =
        HEAD ".param .u64 p)\n{\n.reg .pred q;\n.reg .u32 %i, %x;\n.reg .u64 %a;\n"
             "mov.u32 %i, %tid.x;\nsetp.ne.u32 q, %i, 0;\n@q ret;\nld.param.u64 %a, [p];\nL:\n"
             "ld.volatile.global.u32 %x, [%a];\nadd.u32 %i, %i, 1;\nadd.u32 %i, %i, %x;\n"
             "setp.lt.u32 q, %i, 1000;\n@q bra L;\nret;\n}\n";
    (void)copy;
    while (attack_goes_on(t))
        complain("cancels", launch_in_streams(t, slow, sizeof(slow) - 1, 1024, 300));
    return NULL;
}

/* Others wait for the GPU that they have: each of them is urged, asked to stop, and ended. */
static const char *urges(const struct target *t, unsigned copy)
{
    static const char endless[] = HEAD ".param .u64 p)\n{\nL:\nbra L;\n}\n";
    (void)copy;
    while (attack_goes_on(t))
        complain("urges", launch_in_streams(t, endless, sizeof(endless) - 1, 32, 1000));
    return NULL;
}

const struct attack attacks_walk[] = {
    {"7", "tables", "200,000 allocations and 65,000 events", tables, .ms = 4000, .max_mib = 2048},
    {"7", "tables-kept", "the same, which the daemon's end has to free", tables_kept, .ms = 4000,
     .max_mib = 2048, .with_attackers = true},
    {"7", "reset-many", "resets a device with 150,000 allocations and 60,000 events", reset,
     .ms = 5000, .max_mib = 2048},
    {"7", "mappings", "changes 100,000 mappings by one command", mappings, .ms = 6000,
     .max_mib = 1024},
    {"7", "values", "200,000 streams that wait for values", values, .ms = 5000},
    {"7", "syncs", "40 clients wait for an event 8,000 times each", syncs, .ms = 4000},
    {"7", "ranges", "fills ranges of 100,000 mappings", ranges, .ms = 4000, .max_mib = 1024},
    {"7", "marks", "waits for 4,000 busy streams, 100 times at once", marks, .ms = 3000},
    {"7", "release", "lets 400,000 waiting commands go on at once", release, .ms = 3000},
    {"7", "references", "gives up some of 200,000 references", references, .ms = 4000,
     .max_mib = 1024},
    {"7", "moves", "2,000 launches that wait and name 512 addresses each, two GPUs", moves,
     .ms = 5000, .max_mib = 1024, .max_call_ms = 2000,
     .conf = "gpus = {\"rtx3070\", \"rtx3070\"}\npolicy = \"fifo\"\nmax_kernel_ms = 200\n"},
    {"7", "peers", "changes the access of peers to 100,000 allocations", peers, .ms = 4000,
     .max_mib = 1024, .conf = "gpus = {\"rtx3070\", \"rtx3070\"}\n"},
    {"7", "cancels", "4,000 kernels of a client that ends", cancels, .ms = 5000, .max_mib = 1024,
     .max_call_ms = 8000, .conf = "clock = \"scaled\"\n"},
    {"7", "urges", "4,000 endless kernels of a client that others wait for", urges, .ms = 5000,
     .max_mib = 1024, .max_call_ms = 2000, .conf = "policy = \"fifo\"\nmax_kernel_ms = 200\n"},
    {"10", "addresses", "reserves all addresses", addresses, .ms = 2000},
    {"10", "reservations", "65,000 reservations of each of 100 clients", reservations, .ms = 6000},
    {0}};
