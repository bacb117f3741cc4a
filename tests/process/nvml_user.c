// SPDX-License-Identifier: Apache-2.0
/* Usage: nvml_user [PID]. Asks NVML what a monitor asks, and prints a line "GPU NAME VALUE" for
 * each answer. With PID also what NVML says of that process. It does not stop where a function
 * answers with an error: then VALUE is "error CODE". With "lost" instead of PID it asks again when
 * it has read a line, so that a test may end the daemon in between; with "samples" it samples power
 * and energy for three seconds instead. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *library;

/* Each of these is a function of NVML; all have this form or one that is called like it. */
typedef int (*call)();

static call function(const char *name)
{
    call f = (call)(uintptr_t)dlsym(library, name);
    if (!f) {
        printf("missing %s\n", name);
        exit(1);
    }
    return f;
}

static void number(void *gpu, const char *name, int bytes)
{
    uint64_t v = 0;
    int r = function(name)(gpu, &v);
    if (r)
        printf("%s error %d\n", name, r);
    else
        printf("%s %" PRIu64 "\n", name, bytes == 4 ? (uint32_t)v : v);
}

static void text(void *gpu, const char *name)
{
    char buf[96];
    int r = function(name)(gpu, buf, (unsigned)sizeof(buf));
    if (r)
        printf("%s error %d\n", name, r);
    else
        printf("%s %s\n", name, buf);
}

struct process {
    unsigned pid;
    uint64_t memory;
    unsigned a, b;
};

static void processes(void *gpu)
{
    struct process p[16];
    unsigned n = 16;
    int r = function("nvmlDeviceGetComputeRunningProcesses_v3")(gpu, &n, p);
    printf("processes %d %u\n", r, n);
    for (unsigned i = 0; !r && i < n; i++)
        printf("process %u %" PRIu64 "\n", p[i].pid, p[i].memory);
    n = 0;
    printf("processes_size %d\n",
           function("nvmlDeviceGetComputeRunningProcesses_v3")(gpu, &n, NULL));
}

struct field {
    uint32_t id, scope;
    int64_t time_us, latency_us;
    uint32_t type;
    int32_t code;
    uint64_t value;
};

static void fields(void *gpu, unsigned pid)
{
    struct field f[] = {{.id = 83},
                        {.id = 83, .scope = pid},
                        {.id = 186},
                        {.id = 82},
                        {.id = 186, .scope = 2 /* memory */},
                        {.id = 197},
                        {.id = 198}};
    int r = function("nvmlDeviceGetFieldValues")(gpu, 7, f);
    printf("fields %d %d %d %d %d %d\n", r, f[0].code, f[1].code, f[2].code, f[3].code, f[4].code);
    printf("field_energy %" PRIu64 "\nfield_process_energy %" PRIu64 "\nfield_power %u\n",
           f[0].value, f[1].value, (uint32_t)f[2].value);
    printf("link_bytes %d %" PRIu64 " %d %" PRIu64 "\n", f[5].code, f[5].value, f[6].code,
           f[6].value);
}

static void link_lines(void *gpu)
{
    static const char *const names[] = {
        "nvmlDeviceGetMaxPcieLinkGeneration",  "nvmlDeviceGetGpuMaxPcieLinkGeneration",
        "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth",
        "nvmlDeviceGetCurrPcieLinkWidth",      "nvmlDeviceGetPcieSpeed",
        "nvmlDeviceGetPcieLinkMaxSpeed",       "nvmlDeviceGetBusType",
        "nvmlDeviceGetPcieReplayCounter"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        number(gpu, names[i], 4);
    for (int counter = 0; counter < 3; counter++) {
        unsigned kb = 0;
        int r = function("nvmlDeviceGetPcieThroughput")(gpu, counter, &kb);
        printf("throughput_%d %d %u\n", counter, r, kb);
    }
}

static void gpu_lines(unsigned i, unsigned pid)
{
    void *gpu;
    uint64_t memory[3];
    unsigned use[2];
    if (function("nvmlDeviceGetHandleByIndex_v2")(i, &gpu))
        return;
    printf("gpu %u\n", i);
    text(gpu, "nvmlDeviceGetName");
    text(gpu, "nvmlDeviceGetUUID");
    if (!function("nvmlDeviceGetMemoryInfo")(gpu, memory))
        printf("memory %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", memory[0], memory[1], memory[2]);
    if (!function("nvmlDeviceGetUtilizationRates")(gpu, use))
        printf("utilization %u\n", use[0]);
    number(gpu, "nvmlDeviceGetPowerUsage", 4);
    number(gpu, "nvmlDeviceGetTotalEnergyConsumption", 8);
    number(gpu, "nvmlDeviceGetNumGpuCores", 4);
    number(gpu, "nvmlDeviceGetTemperature", 4);
    number(gpu, "nvmlDeviceGetEccMode", 4);
    link_lines(gpu);
    processes(gpu);
    fields(gpu, pid);
}

static void wrong_calls(void)
{
    unsigned v;
    void *gpu;
    printf("no_handle %d\n", function("nvmlDeviceGetPowerUsage")((void *)8, &v));
    printf("no_result %d\n", function("nvmlDeviceGetCount_v2")(NULL));
    printf("no_gpu %d\n", function("nvmlDeviceGetHandleByIndex_v2")(63U, &gpu));
    printf("no_uuid %d\n", function("nvmlDeviceGetHandleByUUID")("GPU-0", &gpu));
}

/* Power and counter of each GPU, every 0.1 s: "sample GPU NANOSECONDS MILLIWATTS MILLIJOULES". */
static void samples(unsigned n_gpus, unsigned n)
{
    struct timespec t;
    void *gpu;
    for (unsigned i = 0; i < n * n_gpus; i++) {
        unsigned mw = 0;
        uint64_t mj = 0;
        function("nvmlDeviceGetHandleByIndex_v2")(i % n_gpus, &gpu);
        function("nvmlDeviceGetPowerUsage")(gpu, &mw);
        function("nvmlDeviceGetTotalEnergyConsumption")(gpu, &mj);
        clock_gettime(CLOCK_MONOTONIC, &t);
        printf("sample %u %" PRIu64 " %u %" PRIu64 "\n", i % n_gpus,
               (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec, mw, mj);
        if (i % n_gpus == n_gpus - 1)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

/* The first two versions of the place on the bus are shorter than the third: 52 bytes, or 48. */
static void old_places(void)
{
    unsigned char place[68];
    void *gpu;
    function("nvmlDeviceGetHandleByIndex_v2")(0U, &gpu);
    for (int version = 1; version <= 2; version++) {
        memset(place, 0xaa, sizeof(place));
        int r =
            function(version == 1 ? "nvmlDeviceGetPciInfo" : "nvmlDeviceGetPciInfo_v2")(gpu, place);
        printf("place_%d %d %s %d\n", version, r, (char *)place, place[48] == 0xaa);
    }
}

int main(int argc, char **argv)
{
    unsigned n = 0;
    char line[8];
    void *gpu = NULL;
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    printf("early %d\n", function("nvmlDeviceGetCount_v2")(&n));
    int r = function("nvmlInit_v2")();
    printf("init %d\n", r);
    if (r)
        return 2;
    r = function("nvmlDeviceGetCount_v2")(&n);
    printf("count %d %u\n", r, n);
    if (argc > 1 && !strcmp(argv[1], "samples")) {
        samples(n, 30);
        return 0;
    }
    for (unsigned i = 0; i < n; i++)
        gpu_lines(i, argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0);
    wrong_calls();
    old_places();
    if (argc > 1 && !strcmp(argv[1], "lost")) {
        function("nvmlDeviceGetHandleByIndex_v2")(0U, &gpu);
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
            return 1;
        number(gpu, "nvmlDeviceGetPowerUsage", 4);
    }
    r = function("nvmlShutdown")();
    printf("shutdown %d %d\n", r, function("nvmlShutdown")());
    return 0;
}
