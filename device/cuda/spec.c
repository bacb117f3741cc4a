// SPDX-License-Identifier: Apache-2.0
/* The GPU's properties, from the driver's attributes. There are no attributes for the lanes of an
 * SM and for power. Lanes come from NVIDIA's tables by compute capability. Power comes from NVML
 * where it answers: the idle power at opening, and the limit divided among the SMs; profiles
 * replace these estimates. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "device/catalog.h"
#include "device/cuda/cuda_private.h"

/* Where NVML does not tell: the idle power, and how many times of it the limit is. */
enum { GUESSED_IDLE_MW = 50000, GUESSED_LIMIT_TIMES = 5 };

static int attribute(struct ws_cuda *d, int which)
{
    int v = 0;
    return d->cu.cuDeviceGetAttribute(&v, which, d->device) == WS_CU_SUCCESS ? WS_MAX(v, 0) : 0;
}
#define ATTR(d, name) ((uint32_t)attribute((d), WS_CU_ATTR_##name))

/* "NVIDIA H200" becomes "h200". */
static void short_name(const char *product, char *out, size_t size)
{
    size_t n = 0;
    if (!strncasecmp(product, "NVIDIA ", 7))
        product += 7;
    for (; *product && n + 1 < size; product++) {
        char c = (char)tolower((unsigned char)*product);
        bool ok = isalnum((unsigned char)c) || c == '.' || c == '_';
        if (ok || (n && out[n - 1] != '-'))
            out[n++] = ok ? c : '-';
    }
    while (n && out[n - 1] == '-')
        n--;
    out[n] = 0;
    if (!n)
        snprintf(out, size, "gpu");
}

static void lanes(struct ws_gpu_spec *s)
{
    uint32_t cc = s->cc_major * 10 + s->cc_minor;
    s->schedulers_per_sm = 4;
    s->fp32_lanes_per_sm = cc < 80 || cc == 80 ? 64 : 128;
    s->int_lanes_per_sm = 64;
    s->fp64_lanes_per_sm = 2;
    if (cc == 90 || cc == 100)
        s->fp64_lanes_per_sm = 64;
    else if (cc == 70 || cc == 80)
        s->fp64_lanes_per_sm = 32;
    s->sfu_lanes_per_sm = 16;
    s->ldst_lanes_per_sm = cc >= 80 && cc % 10 == 0 ? 32 : 16;
}

/* Why NVML does not give a value: its own reason, or @silent where it gives none, or @none where
 * there is no NVML. */
static const char *missing(const struct ws_cuda *d, enum ws_nvml_call call, const char *silent,
                           const char *none)
{
    if (!d->nvml)
        return none;
    const char *why = ws_nvml_why_not(d->nvml, call);
    return why ? why : silent;
}

int ws_cuda_read_spec(struct ws_cuda *d, struct ws_diags *diags)
{
    struct ws_gpu_spec *s = &d->base.spec;
    size_t total = 0;
    uint64_t idle_mw = 0, limit_mw = 0;
    char why[160] = "";
    if (d->cu.cuDeviceGetName(s->product, sizeof(s->product), d->device) != WS_CU_SUCCESS ||
        d->cu.cuDeviceTotalMem(&total, d->device) != WS_CU_SUCCESS) {
        ws_diags_add(diags, NULL, 0, 0, "cuda:%d: the driver does not say what GPU it is",
                     d->ordinal);
        return WS_CUDA_E_MISSING;
    }
    snprintf(d->capabilities.product, sizeof(d->capabilities.product), "%s", s->product);
    short_name(s->product, s->name, sizeof(s->name));
    s->cc_major = ATTR(d, COMPUTE_CAPABILITY_MAJOR);
    s->cc_minor = ATTR(d, COMPUTE_CAPABILITY_MINOR);
    s->n_sms = WS_MIN(ATTR(d, MULTIPROCESSOR_COUNT), (uint32_t)WS_SM_MAX);
    s->max_threads_per_sm = ATTR(d, MAX_THREADS_PER_MULTIPROCESSOR);
    s->max_blocks_per_sm = ATTR(d, MAX_BLOCKS_PER_MULTIPROCESSOR);
    s->regs_per_sm = ATTR(d, MAX_REGISTERS_PER_MULTIPROCESSOR);
    s->max_threads_per_block = ATTR(d, MAX_THREADS_PER_BLOCK);
    s->shared_bytes_per_sm = ATTR(d, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    s->shared_bytes_per_block = ATTR(d, MAX_SHARED_MEMORY_PER_BLOCK);
    s->shared_bytes_per_block_optin =
        WS_MAX(ATTR(d, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), s->shared_bytes_per_block);
    s->core_mhz = WS_MAX(ATTR(d, CLOCK_RATE) / 1000, 1u);
    s->memory_mhz = WS_MAX(ATTR(d, MEMORY_CLOCK_RATE) / 1000, 1u);
    s->memory_bus_bits = WS_MAX(ATTR(d, GLOBAL_MEMORY_BUS_WIDTH), 8u);
    s->l2_bytes = ATTR(d, L2_CACHE_SIZE);
    s->memory_bytes = total >> 20 << 20;
    /* Two transfers a clock, as DDR and HBM have. */
    s->memory_bytes_per_s = (uint64_t)s->memory_mhz * 1000000 * 2 * (s->memory_bus_bits / 8);
    s->memory_bytes_per_s -= s->memory_bytes_per_s % 1000000;
    /* Estimates, which profiles replace. */
    s->copy_bytes_per_s = UINT64_C(12000000000);
    s->copy_latency_ns = 8000;
    s->launch_overhead_ns = 3000;
    s->memory_latency_ns = 400;
    lanes(s);

    d->nvml = ws_nvml_open(d->options.nvml_library, d->uuid.bytes, why, sizeof(why));
    snprintf(d->capabilities.driver, sizeof(d->capabilities.driver), "%s", ws_nvml_driver(d->nvml));
    d->has_power = ws_nvml_read(d->nvml, WS_NVML_POWER, &idle_mw);
    d->has_counter = ws_nvml_read(d->nvml, WS_NVML_ENERGY, &d->counter_mj);
    bool has_limit = ws_nvml_read(d->nvml, WS_NVML_POWER_LIMIT, &limit_mw);
    s->static_mw = d->has_power ? (uint32_t)idle_mw : GUESSED_IDLE_MW;
    if (!has_limit || limit_mw < s->static_mw)
        limit_mw = s->static_mw * (uint64_t)GUESSED_LIMIT_TIMES;
    s->idle_mw_per_sm = (uint32_t)((limit_mw - s->static_mw) / 10 / WS_MAX(s->n_sms, 1u));
    s->dynamic_mw_per_sm = (uint32_t)((limit_mw - s->static_mw) * 8 / 10 / WS_MAX(s->n_sms, 1u));
    d->power_mw = s->static_mw;
    ws_cuda_say(d, "energy", d->has_counter, "%s",
                d->has_counter ? "NVML's counter (mJ since the driver was loaded), in windows"
                               : missing(d, WS_NVML_ENERGY, "the counter did not answer", why));
    ws_cuda_say(d, "power", d->has_power, "%s",
                d->has_power ? "NVML, a mean over about a second"
                             : missing(d, WS_NVML_POWER, "no NVML: power is guessed",
                                       "no NVML: power is guessed"));
    ws_cuda_say(d, "clocks", false,
                "not set; the setting clock_helper lets policies set them by wattshare-clocks");
    if (!ATTR(d, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) || !ATTR(d, UNIFIED_ADDRESSING)) {
        ws_diags_add(diags, NULL, 0, 0,
                     "cuda:%d: %s has no virtual memory management, which is needed for the "
                     "addresses of clients",
                     d->ordinal, s->product);
        return WS_CUDA_E_MISSING;
    }
    d->can_register = ATTR(d, HOST_REGISTER_SUPPORTED) != 0;
    return ws_gpu_spec_check(s, NULL, 0, diags) ? WS_CUDA_E_MISSING : 0;
}
