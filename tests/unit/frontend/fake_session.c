// SPDX-License-Identifier: Apache-2.0
#include "frontend/session/findings.h"
#include "tests/unit/frontend/fake_session.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

struct fake fake;

/* Every module has these: kernel k(char, double, int) of 20 bytes, kernel empty(), variable v of 64
 * bytes. */
static uint32_t k_offsets[] = {0, 8, 16}, k_sizes[] = {1, 8, 4};
static Ws__Kernel kernels[2];
struct ws_session_function {
    struct ws_session_module *m;
    int index;
};
struct ws_session_module {
    int device;
    struct ws_session_function f[2];
    uint64_t variable;
};

static Ws__Device devices[FAKE_DEVICES];
static struct {
    uint64_t base, bytes;
    enum ws_mem_kind kind;
    int device;
} memory[64];
static uint64_t next_address;
static struct {
    uint64_t id;
    int device;
    bool non_blocking;
    int priority;
} streams[16];
static struct {
    uint64_t id;
    bool recorded;
} events[16];
static uint64_t next_id;

void ws_findings_allocated(uint64_t address, uint64_t bytes)
{
}

void ws_findings_freed(uint64_t address)
{
}

void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
    memset(memory, 0, sizeof(memory));
    memset(streams, 0, sizeof(streams));
    memset(events, 0, sizeof(events));
    fake.n_devices = FAKE_DEVICES;
    fake.occupancy = 4;
    next_address = WS_VA_FIRST;
    next_id = 1000;
    for (int i = 0; i < FAKE_DEVICES; i++) {
        Ws__Device *d = &devices[i];
        ws__device__init(d);
        d->name = i ? "second" : "first";
        d->product = i ? "Second GPU" : "First GPU";
        d->gpu = (uint32_t)i;
        d->cc_major = 8;
        d->cc_minor = (uint32_t)(6 - i);
        d->n_sms = 10;
        d->max_threads_per_sm = 1536;
        d->max_blocks_per_sm = 16;
        d->regs_per_sm = 65536;
        d->max_threads_per_block = 1024;
        d->shared_bytes_per_sm = 102400;
        d->shared_bytes_per_block = 49152;
        d->shared_bytes_per_block_optin = 101376;
        d->core_mhz = 1500;
        d->memory_mhz = 7000;
        d->memory_bytes = UINT64_C(8) << 30;
    }
    ws__kernel__init(&kernels[0]);
    kernels[0].name = "k";
    kernels[0].n_param_offsets = kernels[0].n_param_sizes = 3;
    kernels[0].param_offsets = k_offsets;
    kernels[0].param_sizes = k_sizes;
    kernels[0].param_bytes = 20;
    kernels[0].n_regs = 32;
    kernels[0].static_shared_bytes = 1024;
    ws__kernel__init(&kernels[1]);
    kernels[1].name = "empty";
}

static ws_err answer(void)
{
    ws_err r = fake.next;
    fake.next = WS__ERROR__OK;
    return fake.lost ? fake.lost : r;
}

ws_err ws_session_connect(void)
{
    return answer();
}
bool ws_session_used(void)
{
    return true;
}
ws_err ws_session_device_count(int *ret)
{
    ws_err r = answer();
    if (!r)
        *ret = fake.n_devices;
    return r;
}
const Ws__Device *ws_session_device(int device)
{
    return device >= 0 && device < fake.n_devices ? &devices[device] : NULL;
}
ws_err ws_session_mem_info(int device, uint64_t *ret_free, uint64_t *ret_total)
{
    *ret_total = devices[device].memory_bytes;
    *ret_free = *ret_total - 1;
    return answer();
}
ws_err ws_session_reset(int device)
{
    fake.n_resets++;
    fake.lost = WS__ERROR__OK;
    for (size_t i = 0; i < WS_ARRAY_SIZE(memory); i++)
        if (memory[i].device == device && memory[i].kind != WS_MEM_PINNED)
            memory[i].bytes = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(streams); i++)
        if (streams[i].device == device)
            streams[i].id = 0;
    return answer();
}

static uint64_t put(uint64_t base, uint64_t bytes, enum ws_mem_kind kind, int device)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(memory); i++)
        if (!memory[i].bytes) {
            memory[i].base = base;
            memory[i].bytes = bytes;
            memory[i].kind = kind;
            memory[i].device = device;
            return base;
        }
    abort();
}
static bool drop(uint64_t base, enum ws_mem_kind kind)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(memory); i++)
        if (memory[i].bytes && memory[i].base == base && memory[i].kind == kind) {
            memory[i].bytes = 0;
            return true;
        }
    return false;
}
ws_err ws_session_mem_alloc(int device, uint64_t bytes, uint64_t *ret)
{
    ws_err r = answer();
    if (r)
        return r;
    *ret = put(next_address, bytes, WS_MEM_DEVICE, device);
    next_address += 1 << 20;
    return r;
}
ws_err ws_session_mem_alloc_own(int device, uint64_t bytes, uint64_t *ret)
{
    return ws_session_mem_alloc(device, bytes, ret);
}
ws_err ws_session_mem_free_async(uint64_t address)
{
    return ws_session_mem_free(address);
}
ws_err ws_session_memory_close(uint64_t address)
{
    return ws_session_mem_free(address);
}
/* The fake daemon can't take over pages of the program. */
ws_err ws_session_host_adopt(void *p, uint64_t bytes, bool must_map)
{
    (void)must_map;
    ws_err r = answer();
    return r ? r : WS__ERROR__NOT_SUPPORTED;
}
ws_err ws_session_host_disown(void *p)
{
    return answer();
}
void (*_Atomic ws_session_synced)(void);
ws_err ws_session_peer_access(int device, int peer, bool on)
{
    return answer();
}
ws_err ws_session_access(uint64_t address, uint64_t bytes, int device, bool read, bool write)
{
    return answer();
}

/* Not asked for by what is tested here. */
#define NOT_HERE(name, ...)                                                                        \
    ws_err name(__VA_ARGS__)                                                                       \
    {                                                                                              \
        return WS__ERROR__NOT_SUPPORTED;                                                           \
    }
NOT_HERE(ws_session_memory_create, int device, uint64_t bytes, uint64_t *ret)
NOT_HERE(ws_session_memory_release, uint64_t object)
NOT_HERE(ws_session_memory_export, uint64_t object, int *ret)
NOT_HERE(ws_session_memory_import, int fd, uint64_t *ret, int *device, uint64_t *bytes)
NOT_HERE(ws_session_va_reserve, uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *ret)
NOT_HERE(ws_session_va_free, uint64_t address)
NOT_HERE(ws_session_map, uint64_t address, uint64_t bytes, uint64_t object, uint64_t offset)
NOT_HERE(ws_session_unmap, uint64_t address, uint64_t bytes)
NOT_HERE(ws_session_virtual_add, uint64_t base, uint64_t bytes, int device, bool readonly)
NOT_HERE(ws_session_memory_share, uint64_t address, uint8_t *handle, uint64_t *base)
NOT_HERE(ws_session_memory_open, const uint8_t *handle, uint64_t *ret, uint64_t *bytes)
NOT_HERE(ws_session_event_share, uint64_t event, uint8_t *handle)
NOT_HERE(ws_session_event_open, const uint8_t *handle, int device, uint64_t *ret)
void ws_session_virtual_remove(uint64_t base)
{
}

ws_err ws_session_mem_free(uint64_t address)
{
    ws_err r = answer();
    return r ? r : drop(address, WS_MEM_DEVICE) ? WS__ERROR__OK : WS__ERROR__INVALID_VALUE;
}
ws_err ws_session_host_alloc(uint64_t bytes, void **ret)
{
    *ret = calloc(1, bytes);
    put((uintptr_t)*ret, bytes, WS_MEM_PINNED, 0);
    return answer();
}
ws_err ws_session_host_free(void *p)
{
    ws_err r = answer();
    if (!drop((uintptr_t)p, WS_MEM_PINNED))
        return WS__ERROR__INVALID_VALUE;
    free(p);
    return r;
}
bool ws_session_maps_host(void)
{
    return true;
}
void ws_session_mem_find(uint64_t address, struct ws_mem_info *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < WS_ARRAY_SIZE(memory); i++)
        if (memory[i].bytes && address - memory[i].base < memory[i].bytes)
            *ret = (struct ws_mem_info){.kind = memory[i].kind,
                                        .base = memory[i].base,
                                        .bytes = memory[i].bytes,
                                        .device = memory[i].device};
}

static bool stream_lives(uint64_t id)
{
    if (id >= WS_STREAM_DEFAULT_0 && id < WS_STREAM_DEFAULT_0 + FAKE_DEVICES)
        return true;
    if (id == ws_stream_per_thread(0) || id == ws_stream_per_thread(1))
        return true;
    for (size_t i = 0; i < WS_ARRAY_SIZE(streams); i++)
        if (id && streams[i].id == id)
            return true;
    return false;
}
static ws_err on_stream(uint64_t id)
{
    ws_err r = answer();
    return r ? r : stream_lives(id) ? WS__ERROR__OK : WS__ERROR__INVALID_HANDLE;
}

ws_err ws_session_copy(uint64_t stream, void *dst, const void *src, uint64_t bytes,
                       enum ws_copy_dir dir, bool async)
{
    fake.n_copies++;
    fake.copy.stream = stream;
    fake.copy.dst = dst;
    fake.copy.src = src;
    fake.copy.bytes = bytes;
    fake.copy.dir = dir;
    fake.copy.async = async;
    return on_stream(stream);
}
ws_err ws_session_copy_box(uint64_t stream, const struct ws_copy_side *dst,
                           const struct ws_copy_side *src, const struct ws_copy_box *box,
                           enum ws_copy_dir dir, bool async)
{
    fake.box.dst = *dst;
    fake.box.src = *src;
    fake.box.box = *box;
    return ws_session_copy(stream, (void *)(uintptr_t)dst->address, (void *)(uintptr_t)src->address,
                           box->width_bytes, dir, async);
}
ws_err ws_session_fill(uint64_t stream, uint64_t dst, uint32_t value, uint32_t value_bytes,
                       uint64_t width, uint64_t height, uint64_t pitch, bool async)
{
    fake.n_fills++;
    fake.fill.stream = stream;
    fake.fill.dst = dst;
    fake.fill.value = value;
    fake.fill.value_bytes = value_bytes;
    fake.fill.width = width;
    fake.fill.height = height;
    fake.fill.pitch = pitch;
    fake.fill.async = async;
    return on_stream(stream);
}

uint64_t ws_stream_per_thread(int device)
{
    return 500 + (uint64_t)device;
}
ws_err ws_session_stream_create(int device, bool non_blocking, int priority, uint64_t *ret)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(streams); i++)
        if (!streams[i].id) {
            streams[i].id = *ret = next_id++;
            streams[i].device = device;
            streams[i].non_blocking = non_blocking;
            streams[i].priority = priority;
            return answer();
        }
    return WS__ERROR__OUT_OF_MEMORY;
}
ws_err ws_session_stream_destroy(uint64_t stream)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(streams); i++)
        if (streams[i].id == stream) {
            streams[i].id = 0;
            return answer();
        }
    return WS__ERROR__INVALID_HANDLE;
}
ws_err ws_session_stream_info(uint64_t stream, int *ret_device, bool *ret_non_blocking,
                              int *ret_priority)
{
    ws_err r = on_stream(stream);
    if (ret_device)
        *ret_device = 0;
    if (ret_non_blocking)
        *ret_non_blocking = false;
    if (ret_priority)
        *ret_priority = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(streams); i++) {
        if (streams[i].id != stream)
            continue;
        if (ret_device)
            *ret_device = streams[i].device;
        if (ret_non_blocking)
            *ret_non_blocking = streams[i].non_blocking;
        if (ret_priority)
            *ret_priority = streams[i].priority;
    }
    return r;
}
ws_err ws_session_stream_sync(uint64_t stream)
{
    fake.n_syncs++;
    return on_stream(stream);
}
ws_err ws_session_stream_query(uint64_t stream)
{
    return on_stream(stream);
}
ws_err ws_session_stream_wait(uint64_t stream, uint64_t event)
{
    return on_stream(stream);
}
ws_err ws_session_device_sync(int device)
{
    fake.n_syncs++;
    return answer();
}

static ws_err on_event(uint64_t event)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(events); i++)
        if (event && events[i].id == event)
            return answer();
    return WS__ERROR__INVALID_HANDLE;
}
ws_err ws_session_event_create(int device, bool timing, uint64_t *ret)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(events); i++)
        if (!events[i].id) {
            events[i].id = *ret = next_id++;
            return answer();
        }
    return WS__ERROR__OUT_OF_MEMORY;
}
int ws_session_event_device(uint64_t event)
{
    return on_event(event) ? -1 : 0;
}
ws_err ws_session_event_destroy(uint64_t event)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(events); i++)
        if (events[i].id == event) {
            events[i].id = 0;
            return answer();
        }
    return WS__ERROR__INVALID_HANDLE;
}
ws_err ws_session_event_record(uint64_t event, uint64_t stream)
{
    return on_event(event);
}
ws_err ws_session_event_sync(uint64_t event)
{
    return on_event(event);
}
ws_err ws_session_event_query(uint64_t event)
{
    return on_event(event);
}
ws_err ws_session_event_elapsed(uint64_t start, uint64_t end, float *ret_ms)
{
    *ret_ms = 1;
    return on_event(start);
}

ws_err ws_session_module_load(int device, const void *image, uint64_t bytes, const char *name,
                              struct ws_session_module **ret, char **ret_log)
{
    ws_err r = answer();
    fake.n_loads++;
    fake.loaded_image = image;
    fake.loaded_device = device;
    fake.loaded_bytes = bytes;
    memcpy(fake.loaded, image, bytes < sizeof(fake.loaded) ? bytes : sizeof(fake.loaded));
    if (!r)
        r = fake.load_result;
    if (r) {
        if (ret_log && fake.load_log)
            *ret_log = strdup(fake.load_log);
        return r;
    }
    struct ws_session_module *m = calloc(1, sizeof(*m));
    m->device = device;
    for (int i = 0; i < 2; i++)
        m->f[i] = (struct ws_session_function){m, i};
    m->variable = put(next_address, 64, WS_MEM_VARIABLE, device);
    next_address += 1 << 20;
    *ret = m;
    return WS__ERROR__OK;
}
ws_err ws_session_module_unload(struct ws_session_module *m)
{
    fake.n_unloads++;
    drop(m->variable, WS_MEM_VARIABLE);
    free(m);
    return answer();
}
ws_err ws_session_module_function_at(struct ws_session_module *m, size_t index,
                                     struct ws_session_function **ret)
{
    if (index >= 2)
        return WS__ERROR__NOT_FOUND;
    *ret = &m->f[index];
    return WS__ERROR__OK;
}
ws_err ws_session_module_function(struct ws_session_module *m, const char *name,
                                  struct ws_session_function **ret)
{
    for (size_t i = 0; i < 2; i++)
        if (!strcmp(kernels[i].name, name))
            return ws_session_module_function_at(m, i, ret);
    return WS__ERROR__NOT_FOUND;
}
ws_err ws_session_module_variable(struct ws_session_module *m, const char *name,
                                  uint64_t *ret_address, uint64_t *ret_bytes)
{
    if (strcmp(name, "v") && strcmp(name, "t"))
        return WS__ERROR__NOT_FOUND;
    *ret_address = m->variable;
    *ret_bytes = 64;
    return WS__ERROR__OK;
}
int ws_session_module_variable_kind(struct ws_session_module *m, const char *name)
{
    return strcmp(name, "t") ? WS__VARIABLE__KIND__DATA : WS__VARIABLE__KIND__TEXREF;
}
const Ws__Kernel *ws_function_info(const struct ws_session_function *f)
{
    return &kernels[f->index];
}

ws_err ws_session_launch(const struct ws_launch *l)
{
    const Ws__Kernel *k = ws_function_info(l->function);
    fake.n_launches++;
    fake.launch = *l;
    memset(fake.params, 0, sizeof(fake.params));
    if (l->packed)
        memcpy(fake.params, l->packed, l->packed_bytes);
    for (size_t i = 0; l->args && i < k->n_param_offsets; i++)
        memcpy(fake.params + k->param_offsets[i], l->args[i], k->param_sizes[i]);
    strcpy(fake.launched, k->name);
    return on_stream(l->stream);
}
ws_err ws_session_occupancy(const struct ws_session_function *f, uint32_t block_threads,
                            uint32_t shared_bytes, uint32_t *ret_blocks)
{
    *ret_blocks = fake.occupancy;
    return answer();
}
bool ws_session_module_managed(struct ws_session_module *m, size_t index, const char **ret_name,
                               uint64_t *ret_bytes)
{
    return false;
}
ws_err ws_session_module_place(struct ws_session_module *m, const uint64_t *addresses, bool keep)
{
    return WS__ERROR__INTERNAL;
}
bool ws_session_module_variable_managed(struct ws_session_module *m, const char *name)
{
    return false;
}
void ws_session_output(void)
{
}
ws_err ws_session_set_limit(int device, enum ws_limit what, uint64_t value)
{
    fake.limit_what = what;
    fake.limit_value = value;
    return fake.limit_error;
}

void ws_session_unsupported(const char *entry_point)
{
    fake.n_unsupported++;
    strncpy(fake.unsupported, entry_point, sizeof(fake.unsupported) - 1);
}

/* ---- gates: none is ever reached ---- */
ws_err ws_session_gate_put(uint64_t stream, uint64_t gate)
{
    return on_stream(stream);
}
ws_err ws_session_gate_open(uint64_t gate)
{
    return answer();
}
void ws_session_serve_gates(void)
{
}
ws_err ws_session_gate_next(uint64_t *ret_gate)
{
    return WS__ERROR__DISCONNECTED;
}
ws_err ws_session_lost(void)
{
    return fake.lost;
}
ws_err ws_session_value(uint64_t stream, uint64_t address, uint64_t value, uint32_t bytes,
                        bool write, uint32_t compare)
{
    return on_stream(stream);
}
ws_err ws_session_launch_check(const struct ws_launch *l)
{
    return answer();
}
int ws_function_device(const struct ws_session_function *f)
{
    return f->m->device;
}
