// SPDX-License-Identifier: Apache-2.0
/* backend/process/config.h - wattshared.conf and the command line as one struct. config_keys.def
 * lists the keys, says which field each one sets and what it means; wattshared.conf(5) is made
 * from it. Threads: none. */
#ifndef WS_BACKEND_PROCESS_CONFIG_H
#define WS_BACKEND_PROCESS_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/diag.h"
#include "backend/accounts/account.h"
#include "backend/config/access.h"
#include "base/log.h"
#include "backend/code/rewrite.h"
#include "backend/config/task.h"
#include "device/device.h"

enum { WS_CONFIG_MAX_LIST = 16, WS_MAX_GPUS_CONFIGURED = 32 };

struct ws_limits { /* of one client; pool and cache_bytes are of all clients together */
    uint64_t pool[_WS_RESOURCE_N]; /* 0: as the machine allows */
    uint32_t max_message_bytes, max_commands, max_outstanding, max_inline_bytes, max_param_bytes;
    uint32_t max_streams, max_events, max_compile_ms;
    uint64_t max_image_bytes, max_segment_bytes, memory_quota_bytes; /* quota 0: none */
    uint64_t max_unread_bytes;
    uint64_t cache_bytes;
};

enum ws_placement { WS_PLACE_SPREAD, WS_PLACE_FIXED };

struct ws_config {
    char *endpoints[WS_CONFIG_MAX_LIST + 1]; /* lists are NULL-terminated */
    char *gpus[WS_MAX_GPUS_CONFIGURED + 1];
    char *catalog[WS_CONFIG_MAX_LIST + 1];
    char *policy_options[WS_CONFIG_MAX_LIST + 1]; /* "name=value" */
    /* Texts; NULL: not set. */
    char *socket_group, *admin_group, *subordinate_uids, *curve_key, *curve_clients, *metrics,
        *policy, *templates, *clock_helper;
    char *profiles, *energy_log, *code_cache;
    uint32_t socket_mode;
    enum ws_device_clock clock;
    enum ws_device_meter meter;
    uint32_t meter_update_ms, meter_noise; /* noise: in percent */
    enum ws_placement placement;
    enum ws_log_level log_level;
    struct ws_rewrite_choice rewrite;
    bool unfenced; /* isolation = none */
    bool gpu_worker, learn, fused_leader, strict_bounds, follows;
    bool only_steps;
    uint32_t shard_sms, step_priority;
    uint64_t shard_memory_bytes;
    uint32_t time_scale, n_workers, n_loaders, n_slots;
    uint32_t check; /* mask of enum ws_inspect_tool */
    enum ws_device_compile compile;
    uint64_t code_cache_bytes;
    uint32_t gate_lease_ms, energy_log_ms, drain_timeout_s, heartbeat_s, cancel_timeout_s,
        max_kernel_ms;
    uint64_t max_kernel_insns;
    struct ws_limits limits;
    struct ws_task_rules tasks;
    struct ws_access access;    /* the sections `user`, curve_clients, subordinate_uids */
    struct ws_curve_keys curve; /* what curve_key holds; "": none */
    bool has_admin_group;
    gid_t admin_gid; /* of admin_group */
};

enum {
    _WS_CONFIG_OK,
    WS_CONFIG_E_INVALID /* the diagnostics say file:line, what is wrong and what would be right */
};

/* Sets the defaults. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_config_init(struct ws_config *c);
/* The default limits alone. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_config_limits(struct ws_limits *ret);
/* Reads @path over what @c holds. Return: 0, WS_CONFIG_E_INVALID (@c is unchanged), -ENOENT and
 * the like of the file, -ENOMEM. */
WS_MUST_CHECK int ws_config_load(struct ws_config *c, const char *path, struct ws_diags *diags);
void ws_config_deinit(struct ws_config *c);
/* Checks what must fit together once file and command line have been read, and reads the files of
 * keys. Return: as ws_config_load(). */
WS_MUST_CHECK int ws_config_finish(struct ws_config *c, struct ws_diags *diags);
/* Checks what the tasks say of GPUs and SMs against the GPUs @specs. Return: 0 or
 * WS_CONFIG_E_INVALID. */
WS_MUST_CHECK int ws_config_check_tasks(const struct ws_config *c,
                                        const struct ws_gpu_spec *const *specs, size_t n,
                                        struct ws_diags *diags);

/* What the command line sets; lists are separated by commas. Return: 0, WS_CONFIG_E_INVALID,
 * -ENOMEM. */
WS_MUST_CHECK int ws_config_set_gpus(struct ws_config *c, const char *text, struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_endpoints(struct ws_config *c, const char *text,
                                          struct ws_diags *diags);
WS_MUST_CHECK int ws_config_set_metrics(struct ws_config *c, const char *text /* "": none */,
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
