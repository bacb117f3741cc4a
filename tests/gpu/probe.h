/* SPDX-License-Identifier: Apache-2.0 */
/* tests/gpu/probe.h - what the parts of probe share. One section a run; a section ends the program
 * if something is wrong. */
#ifndef WS_TESTS_GPU_PROBE_H
#define WS_TESTS_GPU_PROBE_H

#include "device/cuda/driver.h"
#include "device/cuda/nvml.h"
#include "tests/device/suite.h"

enum {
    PROBE_SKIPPED = 77
}; /* exit status: it can't be tried here; the reason is in stderr's last line */
enum { P_NOTHING, P_SPIN, P_MULTIPLY, P_STREAM };
extern const char probe_ptx[];
extern const char *probe_section;
extern double probe_seconds; /* that a part may take */
extern struct suite probe_suite;
extern struct ws_dinstance *probe_instance;

uint64_t probe_now_ns(void);
/* "section,what,value,unit" */
void probe_line(const char *unit, double value, const char *fmt, ...) WS_PRINTF(3, 4);
void probe_must(bool ok, const char *text);
_Noreturn void probe_skip(const char *text);
double probe_quantile(double *v, int n, double q); /* sorts */

/* The device with the probe's kernels. */
void probe_begin(bool preemptible);
void probe_end(void);
/* One more of the kernels, for client @c; the caller's. */
struct ws_dinstance *probe_instance_of(int c);
const struct ws_ptx_module *probe_module(void); /* as parsed */
int probe_occupancy(uint32_t kernel, uint32_t threads, struct ws_occupancy *ret);
struct suite_op probe_launch(uint32_t kernel, uint32_t blocks, uint32_t threads, uint64_t p0,
                             uint64_t p1);
void probe_run(struct suite_op *o);

/* The driver's own calls. */
struct probe_native {
    struct ws_cu cu;
    ws_cu_device gpu;
    ws_cu_ctx ctx;
    ws_cu_stream stream;
    int n_sms;
};
void probe_native_begin(struct probe_native *n);
void probe_native_end(struct probe_native *n);
/* Launches with @bytes of parameters. */
void probe_native_launch(struct probe_native *n, ws_cu_stream s, ws_cu_function f,
                         const uint32_t grid[3], const uint32_t block[3], const void *params,
                         size_t bytes);

/* NVML of GPU 0; NULL without, @why says. */
struct ws_nvml *probe_nvml(char *why, size_t why_bytes);
/* Waits until the energy counter steps, 3 s at most. Return: mJ; 0: it does not move. */
uint64_t probe_edge(struct ws_nvml *n, uint64_t *ret_ns);

/* measure.c */
void probe_section_power(void);
void probe_section_green(void);
void probe_section_fused(void);
void probe_section_energy(void);
/* mwp.c */
void probe_section_mwp(void);
void probe_section_profiles(void);
/* calibrate.c */
void probe_section_calibrate(void);

#endif
