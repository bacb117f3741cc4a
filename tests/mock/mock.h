// SPDX-License-Identifier: Apache-2.0
/* tests/mock/mock.h - a driver for tests. It has the names and the rules of NVIDIA's driver, runs
 * kernels on the software GPU, and notices what the real driver would punish or would forgive in
 * silence.
 *
 * At every call it checks that the context is current on the calling thread; that handles are
 * alive, of the right kind and of that context; that memory operations name whole mappings; that
 * streams are not destroyed with work in them; and that nothing is left when the context goes. What
 * is wrong is counted and printed ("mock: VIOLATION …"). Device memory is not where its address is:
 * the host faults if it touches the address.
 *
 * Failures are injected by name: WS_MOCK_FAIL="cuMemCreate:2:OUT_OF_MEMORY,…" makes the second call
 * fail. A sticky code stays, and ends what runs. After ws_mock_hold(true) kernels stay queued until
 * ws_mock_hold(false) or until somebody waits for their stream, so that a test can do something
 * while a kernel has certainly not ended.
 *
 * After ws_mock_hold_copies(true) copies between the host and the GPU stay in the copy engines'
 * queues until ws_mock_hold_copies(false).
 *
 * ws_mock_advance(NS): from now on the GPU's clock, which events record, is NS ahead of the host's.
 *
 * ws_mock_watch(f): f(NAME, false) is called before every call of the driver and f(NAME, true)
 * after it, on the caller's thread, so that a test can hold one thread at a chosen point of its
 * work and do something meanwhile.
 *
 * ws_mock_waits(GROUPS): from now on as if WS_MOCK_WAITS was that; NULL: as the environment has it,
 * which a test must not change while threads of the device read it. */
#ifndef WS_TESTS_MOCK_H
#define WS_TESTS_MOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "device/cuda/driver.h"
#include "device/device.h"
#include "device/space.h"

enum mock_kind {
    MOCK_STREAM = 1,
    MOCK_EVENT,
    MOCK_MODULE,
    MOCK_FUNCTION,
    MOCK_MEMORY,
    MOCK_CONTEXT,
    MOCK_DEFAULT_STREAM,
    MOCK_DESC,
    MOCK_GREEN,
};
/* Handles are addresses of these; they are never freed, so that a use after the end is seen. */
struct mock_object {
    enum mock_kind kind;
    bool alive;
    struct mock_gpu *gpu;
    struct mock_object *older;
};

struct mock_gpu {
    struct mock_object context;
    int ordinal;
    uint32_t n_retained;
    struct ws_device *_Atomic soft; /* NULL until the context is asked for */
    struct ws_space *space;         /* what is mapped, for all GPUs: one address space */
    _Atomic int sticky;             /* set by mock_lose() */
    uint32_t n_doing;               /* operations the soft device has; stream.c's lock */
    uint32_t n_waiting;             /* kernels that cannot begin; stream.c's lock */
    uint32_t n_kernels;             /* …kernels among them; the same lock */
    uint32_t engine_busy[2];        /* …copies to the GPU and from it */
    _Atomic uint64_t used_bytes;
    uint64_t total_bytes;
};

struct mock_green { /* a descriptor, or a green context */
    struct mock_object o;
    struct ws_sm_set sms;
    _Atomic uint32_t n_streams;
};
struct mock_stream {
    struct mock_object o;
    struct mock_green *green; /* NULL: all SMs */
    pthread_t thread;
    bool started, stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct ws_list items;
    uint32_t n_items;        /* queued or being done */
    _Atomic bool waited_for; /* its kernels start, held or not */
};
struct mock_event {
    struct mock_object o;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n_pending; /* records queued */
    bool recorded;
    uint64_t ns;
};
struct mock_module {
    struct mock_object o;
    struct ws_ptx_module *ptx;
    struct ws_dmodule *code;
    struct ws_dinstance *instance;
    uint64_t *var_va;
    uint64_t block_va, block_bytes;
    const uint32_t *regs; /* of each kernel; NULL: not known */
    _Atomic uint32_t n_running;
};
struct mock_function {
    struct mock_object o;
    struct mock_module *module;
    uint32_t kernel;
    bool large_clusters; /* non-portable ones are allowed */
    int dynamic_bytes;
    _Atomic bool launched;
};

extern pthread_mutex_t mock_lock; /* tables; held by the callers of those marked (locked) */
extern struct ws_space *mock_space;

/* Counts the call, and says whether it shall go on: 0, or the code to return. */
enum { MOCK_ANY = 0, MOCK_CTX = 1 };
int mock_enter(const char *name, unsigned needs);
/* The same for a call about @of: that GPU is lost if the call fails with an error that loses a
 * context. NULL: the current one. */
int mock_enter_for(const char *name, unsigned needs, struct mock_gpu *of);
struct mock_gpu *mock_current(void); /* of this thread; NULL */
WS_PRINTF(1, 2) void mock_violation(const char *fmt, ...);
/* Whether an environment variable that is a list of words has this one, or is "all". */
bool mock_named(const char *variable, const char *word);
/* Whether calls of that group wait: WS_MOCK_WAITS or ws_mock_waits(). */
bool mock_may_wait(const char *group);
/* Waits until the current context's GPU does nothing; that it does not come to that is a
 * violation. */
void mock_wait_in(const char *call);
/* (locked) */
void mock_object_add(struct mock_object *o, enum mock_kind kind, struct mock_gpu *gpu);
/* The handle, if it is alive, of this kind and of the current context; else a violation and
 * NULL. */
void *mock_object_of(const void *handle, enum mock_kind kind, const char *call);
uint32_t mock_count_alive(enum mock_kind kind, const struct mock_gpu *g);
struct mock_gpu *mock_gpu_of(int device); /* NULL: no such */
uint32_t mock_cc(void);
uint64_t mock_now_ns(void);
uint64_t mock_gpu_ns(void); /* what events record */

/* memory.c */
uint64_t mock_alloc(struct mock_gpu *g, size_t bytes); /* 0: no memory. As cuMemAlloc */
bool mock_free(uint64_t va);
uint8_t *mock_host_of(uint64_t va, uint64_t bytes); /* where the memory is; NULL: not mapped */
bool mock_reaches(const struct mock_gpu *g, uint64_t va, uint64_t bytes);
bool mock_is_pinned(const void *p, uint64_t bytes);
void mock_memory_leaks(const struct mock_gpu *g);
void mock_memory_reset(void); /* takes all away that is left */

/* machine.c: machine code, by PTX that stands beside it. Return: a code of the driver's; then
 * @diags say why. */
bool mock_is_machine(const void *image);
ws_cu_result mock_machine_ptx(const void *image, const struct ws_gpu_spec *gpu,
                              struct ws_ptx_module **ret, struct ws_diags *diags);

/* module.c: the function, if it and its module are alive; else a violation and NULL. */
const struct ws_kernel_info *mock_function_of(const void *h, const char *call,
                                              struct mock_function **ret);
/* How many threads an SM, and so a block, has registers for. */
uint32_t mock_threads_by_regs(const struct mock_function *f, const struct ws_kernel_info *k);

/* program.c: what programs, and not our daemon, call; NULL: nothing of that name */
void *mock_program_function(const char *name);
int mock_ordinal(void); /* of the current context; -1: none */

/* stream.c */
enum { MOCK_MAX_STREAMS = 256, MOCK_MAX_GPUS = 4 };
/* by WS_MOCK_PROGRAM=1: the caller is a program, not our daemon: it may use the default stream */
extern bool mock_program;
struct mock_stream *mock_default_stream(const char *call); /* of the current context */
ws_cu_result mock_program_stream(ws_cu_stream *s);
void mock_drain_all(void); /* of the current context */
struct mock_stream *mock_stream_new(struct mock_gpu *g);
void mock_wait_for_modules(void);          /* until ws_mock_hold_modules() is taken back */
void mock_streams_end(struct mock_gpu *g); /* cancels, and waits for what runs */
/* A sticky error: what runs is stopped, what is queued does nothing. */
void mock_lose(struct mock_gpu *g, int code);
/* Waits until the GPU does nothing. Return: false: it did not come to that within 20 s. */
bool mock_wait_idle(struct mock_gpu *g);
/* The context's sticky error, or 0. Where there is one, nothing runs any more when it is told: as
 * with the real one. */
int mock_sticky(struct mock_gpu *g);

#define EXPORT __attribute__((visibility("default")))

#define X(name, needed, args) EXPORT ws_cu_result name args;
WS_CU_FUNCTIONS(X)
#undef X

void mock_leave(const char *const *name);

/* What a function of the driver begins with; mock_leave() is called when it returns. */
#define ENTER_FOR(needs, of)                                                                       \
    __attribute__((cleanup(mock_leave))) const char *const call_ = __func__;                       \
    do {                                                                                           \
        int r_ = mock_enter_for(call_, (needs), (of));                                             \
        if (r_)                                                                                    \
            return r_;                                                                             \
    } while (0)
#define ENTER(needs) ENTER_FOR(needs, NULL)

#endif
