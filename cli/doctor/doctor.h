/* SPDX-License-Identifier: Apache-2.0 */
/* cli/doctor/doctor.h - what of this machine works for wattshare, what does not, and what to do.
 * Each check looks at one thing and changes nothing. Threads: none. */
#ifndef WS_CLI_DOCTOR_DOCTOR_H
#define WS_CLI_DOCTOR_DOCTOR_H

#include "base/macros.h"

enum ws_finding_state {
    WS_FINDING_GOOD,
    WS_FINDING_NOTE, /* something is missing or slower, which may be wanted so */
    WS_FINDING_BAD,  /* something that is there cannot be used */
    _WS_FINDING_STATE_N
};

struct ws_finding {
    enum ws_finding_state state;
    char what[256];   /* "the driver is for CUDA 12.2" */
    char advice[256]; /* what to do; "": nothing */
};

/* What checks share: what one has found, so that the next ones need not look again. */
struct ws_doctor {
    const char *root;     /* prefix of all paths: "", or a test's folder */
    const char *endpoint; /* of the daemon */
    int n_gpus;           /* that the driver has */
};

struct ws_check {
    const char *name;
    void (*look)(struct ws_doctor *d, struct ws_finding *f);
};
/* In the order in which they run; ends with an empty row. */
extern const struct ws_check ws_doctor_checks[];

/* What gpu.c looks at. */
void ws_doctor_device_files(struct ws_doctor *d, struct ws_finding *f);
void ws_doctor_driver(struct ws_doctor *d, struct ws_finding *f);
void ws_doctor_nvml(struct ws_doctor *d, struct ws_finding *f);
void ws_doctor_persistence(struct ws_doctor *d, struct ws_finding *f);
void ws_doctor_mig(struct ws_doctor *d, struct ws_finding *f);
void ws_doctor_compute_mode(struct ws_doctor *d, struct ws_finding *f);
void ws_doctor_mps(struct ws_doctor *d, struct ws_finding *f);

void ws_finding_set(struct ws_finding *f, enum ws_finding_state state, const char *fmt, ...)
    WS_PRINTF(3, 4);
void ws_finding_advise(struct ws_finding *f, const char *fmt, ...) WS_PRINTF(2, 3);
/* @path behind the doctor's root, in a buffer that the next call overwrites. */
const char *ws_doctor_path(const struct ws_doctor *d, const char *path);

#endif
