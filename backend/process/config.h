// SPDX-License-Identifier: Apache-2.0
/* backend/process/config.h - wattshared.conf and the command line, as one struct. wattshared.conf(5) describes the keys; the table in
 * config.c is their one list. Threads: none. */
#ifndef WS_BACKEND_PROCESS_CONFIG_H
#define WS_BACKEND_PROCESS_CONFIG_H

#include <stdbool.h>
#include "base/diag.h"
#include "backend/process/access.h"
#include "base/log.h"
#include "backend/code/rewrite.h"
#include "backend/scheduling/task.h"
#include "device/device.h"

enum { WS_CONFIG_MAX_LIST = 16, WS_MAX_GPUS_CONFIGURED = 32 };

struct ws_limits { /* of one client, but for the first and last */
    uint32_t max_clients;
    uint32_t max_message_bytes, max_commands, max_outstanding, max_inline_bytes, max_param_bytes;
    uint32_t max_streams, max_events;
    uint64_t max_image_bytes, max_segment_bytes, memory_quota_bytes; /* quota 0: none */
    uint64_t max_unread_bytes; /* replies a client does not fetch */
    uint64_t cache_bytes;      /* images kept for later, of all clients */
};
extern const struct ws_limits ws_limits_default;

enum ws_placement { WS_PLACE_SPREAD, WS_PLACE_FIXED };

struct ws_config {
    char *endpoints[WS_CONFIG_MAX_LIST + 1]; /* NULL-terminated */
    char *gpus[WS_MAX_GPUS_CONFIGURED + 1];
    char *catalog[WS_CONFIG_MAX_LIST + 1];
    uint32_t socket_mode;
    char *socket_group; /* NULL: as the process */
    enum ws_device_clock clock;
    uint32_t time_scale; /* of the scaled clock */
    uint32_t n_workers;
    enum ws_placement placement;
    struct ws_rewrite_choice rewrite; /* for tests of the passes */
    bool gpu_worker;                  /* real GPUs in processes of their own */
    bool unfenced;                    /* isolation = none: of real GPUs */
    bool learn;
    char *templates; /* directory of those made by hand; NULL: none */
    bool
        fused_leader; /* fused launches of one kernel alone go by the code of one of them (templates/leader.c) */
    char *clock_helper; /* socket of wattshare-clocks; NULL: real GPUs' clocks are left alone */
    char *profiles;     /* store of what is learned; NULL: none */
    enum ws_log_level log_level;
    uint32_t gate_lease_ms; /* how long a gated client may keep a GPU from others */
    uint32_t n_slots;       /* jobs a policy may run side by side on one GPU */
    uint32_t drain_timeout_s, heartbeat_s, cancel_timeout_s;
    uint64_t max_kernel_insns;
    uint32_t n_loaders; /* threads that parse images; 0: the loop does it */
    struct ws_limits limits;
    struct ws_access access;
    struct ws_curve_keys curve;      /* the daemon's, for tcp; "": none */
    char *curve_key, *curve_clients; /* where curve and access.allowed come from; NULL: none */
    char *metrics;                   /* "ADDRESS:PORT"; NULL: off */
    char *policy; /* a name of policy/policies.def; NULL: none, nothing is held back */
    char *policy_options[WS_CONFIG_MAX_LIST + 1]; /* "name=value", NULL-terminated */
    struct ws_task_rules tasks;
    char *energy_log; /* NULL: none */
    uint32_t energy_log_ms;
};

enum {
    _WS_CONFIG_OK,
    WS_CONFIG_E_INVALID /* see the diagnostics: file:line: what, what would be right */
};

/* Sets the defaults. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_config_init(struct ws_config *c);
/* Reads @path over what @c holds. Return: 0, WS_CONFIG_E_INVALID (@c is unchanged), -ENOENT and the like of the file, -ENOMEM. */
WS_MUST_CHECK int ws_config_load(struct ws_config *c, const char *path, struct ws_diags *diags);
void ws_config_deinit(struct ws_config *c);
/* What must fit together once file and command line have been read; reads the files of keys. Return: as ws_config_load(). */
WS_MUST_CHECK int ws_config_finish(struct ws_config *c, struct ws_diags *diags);
/* What the tasks say of GPUs and SMs, against the GPUs there are. Return: 0 or WS_CONFIG_E_INVALID. */
WS_MUST_CHECK int ws_config_check_tasks(const struct ws_config *c,
                                        const struct ws_gpu_spec *const *specs, size_t n,
                                        struct ws_diags *diags);

/* Replaces a list by the comma-separated names in @text (command line). Return: 0, WS_CONFIG_E_INVALID, -ENOMEM. */
WS_MUST_CHECK int ws_config_set_gpus(struct ws_config *c, const char *text, struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_endpoints(struct ws_config *c, const char *text,
                                          struct ws_diags *diags);
/* "": none. */
WS_MUST_CHECK int ws_config_set_metrics(struct ws_config *c, const char *text,
                                        struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_catalog(struct ws_config *c, const char *path,
                                        struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_clock(struct ws_config *c, const char *word,
                                      struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_profiles(struct ws_config *c, const char *path,
                                         struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_log_level(struct ws_config *c, const char *word,
                                          struct ws_diags *diags);

#endif
