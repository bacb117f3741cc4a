// SPDX-License-Identifier: Apache-2.0
/* Devices, contexts, handles, and calls that are made to fail. */
#include "tests/mock/gpu.h"
#include "tests/mock/mock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum { MAX_GPUS = 4, MAX_NAMES = 128, MAX_FAILURES = 16 };

pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER;
struct ws_space *mock_space;
static struct mock_gpu gpus[MAX_GPUS];
static int n_gpus;
static bool initialised;
static struct mock_object *objects;
static struct mock_object *forgotten; /* made before a reset: kept, so that no handle comes twice */
static _Thread_local struct mock_gpu *current;
static _Atomic uint32_t n_violations;
static char first_violation[256];

static struct count {
    char name[64];
    uint64_t n;
} counts[MAX_NAMES];
static struct failure {
    char name[64];
    uint64_t nth; /* calls from now; 0: off */
    int code;
} failures[MAX_FAILURES];
static uint32_t n_failures;

/* The GPU that is played: a small one, so that tests see its limits. */
static const struct ws_gpu_spec spec = {
    .name = "mock",
    .product = "NVIDIA Mock 4",
    MOCK_GPU_NUMBERS,
};

/* WS_MOCK_CC=60: the GPU's compute capability, 6.0. */
uint32_t mock_cc(void)
{
    const char *e = getenv("WS_MOCK_CC");
    return e ? (uint32_t)strtoul(e, NULL, 10) : spec.cc_major * 10 + spec.cc_minor;
}

static _Atomic uint64_t ahead_ns;

EXPORT void ws_mock_advance(uint64_t ns);
void ws_mock_advance(uint64_t ns)
{
    ahead_ns += ns;
}

uint64_t mock_gpu_ns(void)
{
    return mock_now_ns() + ahead_ns;
}

uint64_t mock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

void mock_violation(const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "mock: VIOLATION %s\n", text);
    if (!n_violations++)
        memcpy(first_violation, text, sizeof(text));
}

/* ---- what tests ask and tell; found by dlsym ---- */

EXPORT uint32_t ws_mock_violations(const char **ret_first);
EXPORT uint64_t ws_mock_calls(const char *name);
EXPORT int ws_mock_fail(const char *name, uint64_t nth, int code);
EXPORT void ws_mock_reset(void);
EXPORT const char *ws_mock_name(uint32_t index);
EXPORT void ws_mock_hold(bool on); /* stream.c */
EXPORT void ws_mock_waits(const char *groups);
EXPORT uint64_t ws_mock_energy_mj(uint32_t *ret_mw);
EXPORT void ws_mock_watch(void (*f)(const char *name, bool behind));

uint32_t ws_mock_violations(const char **ret_first)
{
    if (ret_first)
        *ret_first = first_violation;
    return n_violations;
}

static struct count *count_of(const char *name)
{
    uint32_t k = 0;
    while (k < MAX_NAMES && counts[k].name[0] && strcmp(counts[k].name, name) != 0)
        k++;
    if (k == MAX_NAMES)
        return NULL;
    if (!counts[k].name[0])
        snprintf(counts[k].name, sizeof(counts[k].name), "%s", name);
    return &counts[k];
}

uint64_t ws_mock_calls(const char *name)
{
    pthread_mutex_lock(&mock_lock);
    const struct count *c = count_of(name);
    uint64_t n = c ? c->n : 0;
    pthread_mutex_unlock(&mock_lock);
    return n;
}

const char *ws_mock_name(uint32_t index)
{
    return index < MAX_NAMES && counts[index].name[0] ? counts[index].name : NULL;
}

int ws_mock_fail(const char *name, uint64_t nth, int code)
{
    pthread_mutex_lock(&mock_lock);
    uint32_t k = 0;
    while (k < n_failures && failures[k].nth)
        k++;
    bool room = k < MAX_FAILURES;
    if (room) {
        failures[k].nth = nth;
        failures[k].code = code;
        snprintf(failures[k].name, sizeof(failures[k].name), "%s", name);
        n_failures = WS_MAX(n_failures, k + 1);
    }
    pthread_mutex_unlock(&mock_lock);
    return room ? 0 : -1;
}

static void (*_Atomic watch)(const char *name, bool behind);

/* NULL: nobody, from here on. */
void ws_mock_watch(void (*f)(const char *name, bool behind))
{
    watch = f;
}

static void tell_watch(const char *name, bool behind)
{
    void (*f)(const char *, bool) = watch;
    if (f)
        f(name, behind);
}

void mock_leave(const char *const *name)
{
    tell_watch(*name, true);
}

/* Every call searches the list of objects, so that those of earlier scenarios must not stay on it:
 * a thousand scenarios would take a hundred times as long each. Caller holds mock_lock. */
static void forget_objects(void)
{
    struct mock_object *next, *contexts = NULL;
    for (struct mock_object *o = objects; o; o = next) {
        struct mock_object **list = o->kind == MOCK_CONTEXT ? &contexts : &forgotten;
        next = o->older;
        o->alive = o->kind == MOCK_CONTEXT;
        o->older = *list;
        *list = o;
    }
    objects = contexts;
}

/* As if the driver had just been loaded. No device is open. */
void ws_mock_reset(void)
{
    pthread_mutex_lock(&mock_lock);
    n_failures = 0;
    n_violations = 0;
    first_violation[0] = 0;
    memset(counts, 0, sizeof(counts));
    forget_objects();
    pthread_mutex_unlock(&mock_lock);
    ws_mock_hold(false);
    mock_memory_reset();
    for (int k = 0; k < n_gpus; k++) {
        if (gpus[k].soft)
            ws_device_close(gpus[k].soft);
        gpus[k].soft = NULL;
        gpus[k].n_retained = 0;
        gpus[k].sticky = 0;
        gpus[k].used_bytes = 0;
    }
}

uint64_t ws_mock_energy_mj(uint32_t *ret_mw)
{
    static _Atomic uint64_t begin;
    uint64_t none = 0;
    struct ws_device_telemetry t = {0};
    (void)atomic_compare_exchange_strong(&begin, &none, mock_now_ns());
    uint64_t ns = mock_now_ns() - begin;
    ns -= ns % 20000000; /* the counter steps */
    for (int k = 0; k < n_gpus; k++)
        if (gpus[k].soft) {
            struct ws_device_telemetry one;
            ws_device_telemetry(gpus[k].soft, &one);
            t.energy_uj += one.energy_uj;
        }
    *ret_mw = spec.static_mw;
    return t.energy_uj / 1000 + ns / 1000000 * spec.static_mw / 1000;
}

static int code_of(const char *text)
{
#define X(name, n)                                                                                 \
    if (!strcmp(text, #name))                                                                      \
        return (n);
    WS_CU_RESULTS(X)
#undef X
    return atoi(text);
}

/* WS_MOCK_FAIL="NAME:NTH:CODE,…" */
static void read_environment(void)
{
    const char *e = getenv("WS_MOCK_GPUS");
    n_gpus = e ? atoi(e) : 1;
    n_gpus = n_gpus < 0 ? 0 : n_gpus > MAX_GPUS ? MAX_GPUS : n_gpus;
    e = getenv("WS_MOCK_FAIL");
    char *copy = strdup(e ? e : ""), *save;
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char name[64], code[64];
        unsigned long nth;
        if (n_failures < MAX_FAILURES && sscanf(one, "%63[^:]:%lu:%63s", name, &nth, code) == 3) {
            failures[n_failures].nth = nth;
            failures[n_failures].code = code_of(code);
            snprintf(failures[n_failures++].name, sizeof(failures[0].name), "%s", name);
        } else {
            mock_violation("WS_MOCK_FAIL: \"%s\" is not NAME:NTH:CODE", one);
        }
    }
    free(copy);
}

static bool is_sticky(int code)
{
    return code == WS_CU_ILLEGAL_ADDRESS ||
           (code >= WS_CU_CONTEXT_IS_DESTROYED && code < 720 &&
            code != WS_CU_HOST_MEMORY_ALREADY_REGISTERED &&
            code != WS_CU_HOST_MEMORY_NOT_REGISTERED) ||
           code == WS_CU_LAUNCH_TIMEOUT || code == WS_CU_ECC_UNCORRECTABLE;
}

/* WS_MOCK_STUCK=FUNCTION:FILE: as a call that waits for the GPU. */
static void wait_if_stuck(const char *name)
{
    const char *e = getenv("WS_MOCK_STUCK");
    size_t n = strlen(name);
    while (e && !strncmp(e, name, n) && e[n] == ':' && !access(e + n + 1, F_OK))
        usleep(1000);
}

/* Calls that the driver's documentation lets wait for the work that is on the GPU, by groups. */
static const struct {
    const char *group, *call;
} may_wait[] = {
    {"free", "cuMemFree"},           {"free", "cuMemFreeHost"},
    {"alloc", "cuMemAlloc"},         {"alloc", "cuMemHostAlloc"},
    {"host", "cuMemHostRegister"},   {"host", "cuMemHostUnregister"},
    {"map", "cuMemUnmap"},           {"map", "cuMemSetAccess"},
    {"map", "cuMemRelease"},         {"module", "cuModuleLoadDataEx"},
    {"module", "cuModuleUnload"},    {"module", "cuModuleGetFunction"},
    {"context", "cuStreamDestroy"},  {"context", "cuEventDestroy"},
    {"first", "cuMemsetD8Async"},    {"first", "cuMemsetD2D8Async"},
    {"first", "cuMemsetD2D16Async"}, {"first", "cuMemsetD2D32Async"},
};

static const char *_Atomic waiting_groups;

void ws_mock_waits(const char *groups)
{
    waiting_groups = groups;
}

static bool has_word(const char *words, const char *word)
{
    return words && (!strcmp(words, "all") || strstr(words, word));
}

bool mock_named(const char *variable, const char *word)
{
    return has_word(getenv(variable), word);
}

bool mock_may_wait(const char *group)
{
    const char *groups = waiting_groups;
    return has_word(groups ? groups : getenv("WS_MOCK_WAITS"), group);
}

/* WS_MOCK_SLOW=N: each Nth call takes 2 ms more. */
static void be_slow(void)
{
    enum { SLOW_US = 2000 };
    static _Atomic uint64_t n_calls;
    const char *e = getenv("WS_MOCK_SLOW");
    uint64_t n = e ? strtoull(e, NULL, 10) : 0;
    if (n && ++n_calls % n == 0)
        usleep(SLOW_US);
}

/* @nth: the call is the @nth of this function. */
static bool waits(const char *name, uint64_t nth)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(may_wait); i++)
        if (!strcmp(may_wait[i].call, name))
            return mock_may_wait(may_wait[i].group) &&
                   (nth == 1 || strcmp(may_wait[i].group, "first") != 0);
    return false;
}

void mock_wait_in(const char *call)
{
    if (!mock_wait_idle(current))
        mock_violation("%s has waited for a kernel for 20 s: does that wait for the call?", call);
}

int mock_enter_for(const char *name, unsigned needs, struct mock_gpu *of)
{
    int r = 0;
    of = of ? of : current ? current : &gpus[0];
    tell_watch(name, false);
    wait_if_stuck(name);
    be_slow();
    pthread_mutex_lock(&mock_lock);
    struct count *c = count_of(name);
    uint64_t nth = c ? ++c->n : 0;
    for (uint32_t k = 0; !r && k < n_failures; k++)
        if (failures[k].nth && !strcmp(failures[k].name, name) && !--failures[k].nth)
            r = failures[k].code;
    /* a driver that does not know what became of work has lost the GPU */
    bool lost = r && (is_sticky(r) || (r == WS_CU_UNKNOWN && !strcmp(name, "cuEventQuery")));
    if (!r && !initialised && strcmp(name, "cuInit") != 0)
        r = WS_CU_NOT_INITIALIZED;
    pthread_mutex_unlock(&mock_lock);
    if (lost) {
        mock_lose(of, r);
        (void)mock_sticky(of);
    }
    if (!r && needs & MOCK_CTX) {
        if (!current) {
            mock_violation("%s: no context is current on this thread", name);
            return WS_CU_INVALID_CONTEXT;
        }
        if (!current->n_retained) {
            mock_violation("%s: the current context was released", name);
            return WS_CU_CONTEXT_IS_DESTROYED;
        }
        r = mock_sticky(current);
        if (!r && waits(name, nth))
            mock_wait_in(name);
    }
    return r;
}

int mock_enter(const char *name, unsigned needs)
{
    return mock_enter_for(name, needs, NULL);
}

struct mock_gpu *mock_current(void)
{
    return current;
}

struct mock_gpu *mock_gpu_of(int device)
{
    return device >= 0 && device < n_gpus ? &gpus[device] : NULL;
}

void mock_object_add(struct mock_object *o, enum mock_kind kind, struct mock_gpu *gpu)
{
    o->kind = kind;
    o->alive = true;
    o->gpu = gpu;
    o->older = objects;
    objects = o;
}

void *mock_object_of(const void *handle, enum mock_kind kind, const char *call)
{
    const char *wrong = NULL;
    pthread_mutex_lock(&mock_lock);
    struct mock_object *o = objects;
    while (o && o != handle)
        o = o->older;
    if (!o || o->kind != kind)
        wrong = "was never a handle of that kind";
    else if (!o->alive)
        wrong = "is used after its end";
    else if (current && o->gpu != current && kind != MOCK_MEMORY)
        wrong = "is of another context than the current one";
    pthread_mutex_unlock(&mock_lock);
    if (wrong)
        mock_violation("%s: handle %p %s", call, handle, wrong);
    return wrong ? NULL : o;
}

uint32_t mock_count_alive(enum mock_kind kind, const struct mock_gpu *g)
{
    uint32_t n = 0;
    pthread_mutex_lock(&mock_lock);
    for (const struct mock_object *o = objects; o; o = o->older)
        n += o->kind == kind && o->alive && o->gpu == g;
    pthread_mutex_unlock(&mock_lock);
    return n;
}

/* ---- devices and contexts ---- */

#define DEVICE(d)                                                                                  \
    struct mock_gpu *g = mock_gpu_of(d);                                                           \
    if (!g)                                                                                        \
    return WS_CU_INVALID_DEVICE

EXPORT ws_cu_result cuGetProcAddress_v2(const char *name, void **ret, int version,
                                        unsigned long long flags, int *status);

ws_cu_result cuInit(unsigned flags)
{
    ENTER(MOCK_ANY);
    pthread_mutex_lock(&mock_lock);
    int r = flags ? WS_CU_INVALID_VALUE : 0;
    if (!r && !initialised) {
        read_environment();
        initialised = true;
    }
    if (!r && !mock_space && ws_space_new(&mock_space))
        r = WS_CU_OUT_OF_MEMORY;
    pthread_mutex_unlock(&mock_lock);
    return r ? r : n_gpus ? WS_CU_SUCCESS : WS_CU_NO_DEVICE;
}

ws_cu_result cuDriverGetVersion(int *version)
{
    ENTER(MOCK_ANY);
    const char *e = getenv("WS_MOCK_VERSION");
    *version = e ? atoi(e) : 13000;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDeviceGetCount(int *n)
{
    ENTER(MOCK_ANY);
    *n = n_gpus;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDeviceGet(ws_cu_device *d, int ordinal)
{
    ENTER(MOCK_ANY);
    if (ordinal < 0 || ordinal >= n_gpus)
        return WS_CU_INVALID_DEVICE;
    *d = ordinal;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDeviceGetName(char *name, int len, ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    snprintf(name, (size_t)len, "%s", spec.product);
    (void)g;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDeviceGetUuid(struct ws_cu_uuid *uuid, ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    memset(uuid, 0x40 + g->ordinal, sizeof(*uuid));
    uuid->bytes[0] = (char)d;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDeviceTotalMem(size_t *bytes, ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    (void)g;
    *bytes = spec.memory_bytes;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDeviceGetAttribute(int *value, int attribute, ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    (void)g;
    const struct {
        int which;
        uint32_t value;
    } known[] = {
        {WS_CU_ATTR_MAX_THREADS_PER_BLOCK, spec.max_threads_per_block},
        {WS_CU_ATTR_MAX_SHARED_MEMORY_PER_BLOCK, spec.shared_bytes_per_block},
        {10 /* warp size: programs ask */, 32},
        {WS_CU_ATTR_MAX_PITCH, INT32_MAX},
        {WS_CU_ATTR_CLOCK_RATE, spec.core_mhz * 1000},
        {WS_CU_ATTR_MULTIPROCESSOR_COUNT, spec.n_sms},
        {WS_CU_ATTR_MEMORY_CLOCK_RATE, spec.memory_mhz * 1000},
        {WS_CU_ATTR_GLOBAL_MEMORY_BUS_WIDTH, spec.memory_bus_bits},
        {WS_CU_ATTR_L2_CACHE_SIZE, spec.l2_bytes},
        {WS_CU_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, spec.max_threads_per_sm},
        {WS_CU_ATTR_UNIFIED_ADDRESSING, 1},
        {WS_CU_ATTR_COMPUTE_CAPABILITY_MAJOR, mock_cc() / 10},
        {WS_CU_ATTR_COMPUTE_CAPABILITY_MINOR, mock_cc() % 10},
        {WS_CU_ATTR_STREAM_PRIORITIES_SUPPORTED, 1},
        {WS_CU_ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, spec.shared_bytes_per_sm},
        {WS_CU_ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR, spec.regs_per_sm},
        {WS_CU_ATTR_COOPERATIVE_LAUNCH, 1},
        {WS_CU_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, spec.shared_bytes_per_block_optin},
        {WS_CU_ATTR_HOST_REGISTER_SUPPORTED, 1},
        {WS_CU_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, !getenv("WS_MOCK_NO_HOST_POINTERS")},
        {WS_CU_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, !getenv("WS_MOCK_NO_VMM")},
        {WS_CU_ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, !getenv("WS_MOCK_NO_EXPORT")},
        {WS_CU_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR, spec.max_blocks_per_sm},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(known); k++)
        if (known[k].which == attribute) {
            *value = (int)known[k].value;
            return WS_CU_SUCCESS;
        }
    return WS_CU_INVALID_VALUE;
}

ws_cu_result cuDeviceCanAccessPeer(int *can, ws_cu_device d, ws_cu_device peer)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    if (!mock_gpu_of(peer))
        return WS_CU_INVALID_DEVICE;
    *can = g->ordinal != peer && !getenv("WS_MOCK_NO_PEERS");
    return WS_CU_SUCCESS;
}

ws_cu_result cuDevicePrimaryCtxRetain(ws_cu_ctx *ctx, ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    if (!g->soft) {
        struct ws_device_options o = {.n_workers = 2, .local_bytes_per_thread_max = 512 << 10};
        struct ws_device *soft;
        struct ws_gpu_spec with = spec;
        if (mock_cc() >= 90) { /* clusters */
            with.cc_major = mock_cc() / 10;
            with.cc_minor = mock_cc() % 10;
        }
        if (ws_device_open_soft(&soft, &with, (uint32_t)d, &o, NULL))
            return WS_CU_OUT_OF_MEMORY;
        g->space = mock_space;
        g->total_bytes = spec.memory_bytes;
        g->ordinal = d;
        g->soft = soft; /* NVML may ask for its energy */
    }
    pthread_mutex_lock(&mock_lock);
    if (!g->context.kind)
        mock_object_add(&g->context, MOCK_CONTEXT, g);
    g->n_retained++;
    pthread_mutex_unlock(&mock_lock);
    *ctx = (ws_cu_ctx)(void *)g;
    return WS_CU_SUCCESS;
}

static void leaks(const struct mock_gpu *g)
{
    static const struct {
        enum mock_kind kind;
        const char *name;
    } kinds[] = {{MOCK_STREAM, "stream"},
                 {MOCK_EVENT, "event"},
                 {MOCK_MODULE, "module"},
                 {MOCK_GREEN, "green context"},
                 {MOCK_MEMORY, "memory handle"}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(kinds); k++) {
        uint32_t n = mock_count_alive(kinds[k].kind, g);
        if (n)
            mock_violation("%u %s%s left when the context was released", n, kinds[k].name,
                           n == 1 ? "" : "s");
    }
    mock_memory_leaks(g);
}

ws_cu_result cuDevicePrimaryCtxRelease(ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    if (!g->n_retained) {
        mock_violation("cuDevicePrimaryCtxRelease: not retained");
        return WS_CU_INVALID_CONTEXT;
    }
    pthread_mutex_lock(&mock_lock);
    bool more = --g->n_retained;
    pthread_mutex_unlock(&mock_lock);
    if (more)
        return WS_CU_SUCCESS;
    if (!g->sticky)
        leaks(g);
    mock_streams_end(g);
    ws_device_close(g->soft);
    g->soft = NULL;
    g->sticky = 0;
    return WS_CU_SUCCESS;
}

ws_cu_result cuDevicePrimaryCtxReset(ws_cu_device d)
{
    ENTER(MOCK_ANY);
    DEVICE(d);
    g->sticky = 0;
    return WS_CU_SUCCESS;
}

ws_cu_result cuCtxSetCurrent(ws_cu_ctx ctx)
{
    struct mock_gpu *g = (struct mock_gpu *)(void *)ctx;
    bool known = g >= gpus && g < gpus + n_gpus;
    ENTER_FOR(MOCK_ANY, known ? g : NULL);
    if (g && !known) {
        mock_violation("cuCtxSetCurrent: %p is no context", (void *)ctx);
        return WS_CU_INVALID_CONTEXT;
    }
    current = g;
    return WS_CU_SUCCESS;
}

int mock_ordinal(void)
{
    return current ? current->ordinal : -1;
}

ws_cu_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(MOCK_CTX);
    *least = 0;
    *greatest = -5;
    return WS_CU_SUCCESS;
}

ws_cu_result cuCtxSetLimit(int limit, size_t value)
{
    ENTER(MOCK_CTX);
    return limit == WS_CU_LIMIT_STACK_SIZE && value <= 512 << 10 ? WS_CU_SUCCESS
                                                                 : WS_CU_INVALID_VALUE;
}

/* What a table made from cudaTypedefs.h would say: all of ours is there from 12.4 on. */
ws_cu_result cuGetProcAddress_v2(const char *name, void **ret, int version,
                                 unsigned long long flags, int *status)
{
    static const struct {
        const char *name;
        void *p;
    } table[] = {
#define X(name, needed, args) {#name, (void *)(name)},
        WS_CU_FUNCTIONS(X)
#undef X
    };
    const char *without = getenv("WS_MOCK_WITHOUT");
    *ret = NULL;
    if (version < (mock_program ? 12000 : 12040)) {
        mock_violation("cuGetProcAddress: %s for version %d", name, version);
        *status = 2; /* version not sufficient */
        return WS_CU_NOT_FOUND;
    }
    for (size_t k = 0; k < WS_ARRAY_SIZE(table); k++)
        if (!strcmp(table[k].name, name) && !(without && !strcmp(without, name)))
            *ret = table[k].p;
    if (mock_program && mock_program_function(name))
        *ret = mock_program_function(name);
    *status = *ret ? 0 : 1;
    return *ret ? WS_CU_SUCCESS : WS_CU_NOT_FOUND;
}
