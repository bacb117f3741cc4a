// SPDX-License-Identifier: Apache-2.0
/* tests/device/suite.h - what the tests of a device share: opening it, two clients, and operations
 * that are waited for. */
#ifndef WS_TESTS_DEVICE_SUITE_H
#define WS_TESTS_DEVICE_SUITE_H

#include <pthread.h>
#include "device/cuda/cuda.h"
#include "device/device.h"

/* Which device: from the command line, KIND [DRIVER [NVML]]: "soft", "cuda", "worker", "cuda
 * tests/mock/libcuda.so.1 …". */
struct suite_target {
    bool cuda, mock;
    bool worker; /* in a process of its own; cuda, too */
    int ordinal;
    struct ws_cuda_options options;
};
extern struct suite_target suite_target;
bool suite_target_parse(int argc, char **argv);
int suite_open(struct ws_device **ret, struct ws_diags *diags);
int suite_open_second(struct ws_device **ret, struct ws_diags *diags); /* the next GPU; index 1 */

/* Where clients' addresses begin, and where host memory is mapped for them. ThreadSanitizer has
 * most addresses for itself; of those that it leaves to the program, nothing else is at these. */
#ifdef __SANITIZE_THREAD__
#define SUITE_VA_FIRST UINT64_C(0x400000000)
#define SUITE_HOST_VA  UINT64_C(0x7000000000)
#else
#define SUITE_VA_FIRST UINT64_C(0x200000000000)
#define SUITE_HOST_VA  UINT64_C(0x510000000000)
#endif
/* Addresses of client @c, disjoint as the daemon's are. */
#define SUITE_VA(c)      (SUITE_VA_FIRST + (uint64_t)(c)*UINT64_C(0x400000000))
#define SUITE_HOST_BYTES (UINT64_C(1) << 30)
enum { SUITE_CLIENTS = 2 };

enum suite_kernel {
    K_VECADD,
    K_COUNT,
    K_VARS,
    K_IDS,
    K_SMID,
    K_SHARED,
    K_BARRIER,
    K_READ,
    K_TRAP,
    K_WAIT,
    _K_N
};
extern const char suite_ptx[];

struct suite {
    struct ws_device *device;
    struct ws_ptx_module *ptx;
    struct ws_dmodule *module;
    struct ws_space *space[SUITE_CLIENTS];
    struct ws_dinstance *instance[SUITE_CLIENTS];
    uint64_t vars[SUITE_CLIENTS][16], next_va[SUITE_CLIENTS];
};
/* Return: 0; else it was printed what failed. */
int suite_begin(struct suite *s);
void suite_end(struct suite *s);
/* Memory of client @c at the next address; fails the test without. */
uint64_t suite_alloc(struct suite *s, int c, uint64_t bytes);

struct suite_op {
    struct ws_op op;
    uint64_t params[8];
    bool done;
};
void suite_submit(struct suite *s, struct suite_op *o);
/* ws_device_preempt(), unless it is done. Return: as that; 1: it is done. */
int suite_preempt(struct suite *s, struct suite_op *o);
void suite_wait(struct suite_op *o); /* fails the test after 60 s */
/* Submits, waits; fails the test unless it ends with @e. */
void suite_run(struct suite *s, struct suite_op *o, enum ws_dev_error e);
struct suite_op suite_launch(struct suite *s, int c, enum suite_kernel k, uint32_t blocks,
                             uint32_t threads, uint64_t p0, uint64_t p1, uint64_t p2, uint64_t p3);
/* Blocking copies of client @c's memory. */
void suite_put(struct suite *s, int c, uint64_t va, const void *from, uint64_t bytes);
void suite_get(struct suite *s, int c, void *to, uint64_t va, uint64_t bytes);
/* machine_code.c: all of the test; what the mock needs for it, before any device is open. */
bool suite_machine_code_begin(void);
void suite_machine_code_end(void);
void suite_machine_code(struct suite *s);
/* texture.c: tests by themselves. */
void suite_textures(struct suite *s);
void suite_textures_isolated(struct suite *s);
/* Of the mock driver, where it is the one: NULL otherwise. */
void *suite_mock(const char *name);

#endif
