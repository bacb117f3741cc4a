// SPDX-License-Identifier: Apache-2.0
/* Checks of NVIDIA's driver and of what it says of its GPUs. NVML is opened by itself: the modes
 * that are asked for here are of no use to the device (device/cuda/nvml.h). Without a GPU most of
 * them have nothing to say. Source: NVML API reference; CUDA Driver API reference. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/doctor/doctor.h"
#include "device/cuda/driver.h"

/* ---- the driver ---- */

static bool exists(const struct ws_doctor *d, const char *path)
{
    return !access(ws_doctor_path(d, path), F_OK);
}

/* What to do about a device file that cannot be opened. */
static const char *advice_of(int e)
{
    switch (e) {
    case ENOENT:
        return "run nvidia-modprobe -u -c 0, as root";
    case EPERM:
        return "the container's device cgroup forbids it: start it with --gpus all";
    case EACCES:
        return "give the user of wattshared access to it, for example by its group";
    default:
        return "load the driver again: rmmod, modprobe nvidia-uvm";
    }
}

void ws_doctor_device_files(struct ws_doctor *d, struct ws_finding *f)
{
    enum { MAX_GPUS = 64 };
    char gpu[32] = "/dev/nvidia0"; /* a container may have another one only */
    const char *const files[] = {"/dev/nvidiactl", gpu, "/dev/nvidia-uvm"};
    int n = 0;
    for (int i = 0; i < MAX_GPUS && !exists(d, gpu); i++)
        snprintf(gpu, sizeof(gpu), "/dev/nvidia%d", (i + 1) % MAX_GPUS);
    for (size_t i = 0; i < WS_ARRAY_SIZE(files); i++)
        n += exists(d, files[i]);
    if (!n) {
        ws_finding_set(f, WS_FINDING_NOTE, "there are no device files of NVIDIA GPUs");
        ws_finding_advise(
            f, "software GPUs work; for a real one install NVIDIA's driver, or start the "
               "container with --gpus all");
        return;
    }
    for (size_t i = 0; i < WS_ARRAY_SIZE(files); i++) {
        int fd = open(ws_doctor_path(d, files[i]), O_RDWR | O_CLOEXEC);
        if (fd >= 0) {
            close(fd);
            continue;
        }
        int e = errno;
        ws_finding_set(f, WS_FINDING_BAD, "%s cannot be opened: %s", files[i], strerror(e));
        ws_finding_advise(f, "%s", advice_of(e));
        return;
    }
    ws_finding_set(f, WS_FINDING_GOOD, "the GPU's device files can be opened");
}

void ws_doctor_driver(struct ws_doctor *d, struct ws_finding *f)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_cu cu;
    int vmm = 1, n = 0;
    bool files = exists(d, "/dev/nvidiactl");
    if (ws_cu_open(&cu, NULL, &diags)) {
        char *text = ws_diags_text(&diags);
        if (text)
            text[strcspn(text, "\n")] = 0;
        ws_finding_set(f, files ? WS_FINDING_BAD : WS_FINDING_NOTE, "%s",
                       text ? text : "out of memory");
        void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        if (library)
            ws_finding_advise(f, "see nvidia-smi -L and CUDA_VISIBLE_DEVICES; update a driver "
                                 "older than 550, and restart the machine after an update");
        else if (files)
            ws_finding_advise(f, "install the driver's libraries (libcuda.so.1) of CUDA 12.4 or "
                                 "newer, of the version that the kernel has loaded");
        if (library)
            dlclose(library);
        free(text);
        ws_diags_deinit(&diags);
        return;
    }
    ws_diags_deinit(&diags);
    if (cu.cuDeviceGetCount(&n) != WS_CU_SUCCESS)
        n = 0;
    for (int i = 0; i < n; i++) {
        ws_cu_device gpu;
        int has = 0;
        if (cu.cuDeviceGet(&gpu, i) == WS_CU_SUCCESS)
            (void)cu.cuDeviceGetAttribute(&has, WS_CU_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                          gpu);
        vmm = vmm && has;
    }
    d->n_gpus = n;
    if (!n)
        ws_finding_set(f, WS_FINDING_BAD, "the driver has no GPU");
    else if (!vmm)
        ws_finding_set(f, WS_FINDING_BAD, "a GPU has no virtual memory management");
    else
        ws_finding_set(f, WS_FINDING_GOOD, "driver for CUDA %d.%d, %d GPU%s", cu.version / 1000,
                       cu.version % 1000 / 10, n, n == 1 ? "" : "s");
    if (!n)
        ws_finding_advise(f, "see nvidia-smi -L, and CUDA_VISIBLE_DEVICES");
    else if (!vmm)
        ws_finding_advise(f, "a virtual machine's GPU needs a profile that has it; else only "
                             "software GPUs can be used");
    /* The library stays open: it has threads, and the process ends soon. */
}

/* ---- NVML ---- */

struct nvml {
    void *gpu; /* the first one */
    int (*persistence)(void *, unsigned *), (*compute_mode)(void *, unsigned *);
    int (*mig)(void *, unsigned *, unsigned *), (*energy)(void *, unsigned long long *);
};

static void get(void *library, const char *name, void *ret)
{
    void *p = dlsym(library, name);
    memcpy(ret, &p, sizeof(p));
}

/* Return: NULL, or why there is none. */
static const char *nvml_open(struct nvml *ret)
{
    int (*init)(void), (*by_index)(unsigned, void **);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    *ret = (struct nvml){0};
    if (!library)
        return "libnvidia-ml.so.1 is not there";
    get(library, "nvmlInit_v2", &init);
    get(library, "nvmlDeviceGetHandleByIndex_v2", &by_index);
    get(library, "nvmlDeviceGetPersistenceMode", &ret->persistence);
    get(library, "nvmlDeviceGetComputeMode", &ret->compute_mode);
    get(library, "nvmlDeviceGetMigMode", &ret->mig);
    get(library, "nvmlDeviceGetTotalEnergyConsumption", &ret->energy);
    if (!init || !by_index || init())
        return "NVML cannot be initialised";
    return by_index(0, &ret->gpu) ? "NVML knows no GPU" : NULL;
}

static bool no_gpu(const struct ws_doctor *d, struct ws_finding *f)
{
    if (!d->n_gpus)
        ws_finding_set(f, WS_FINDING_GOOD, "no real GPU is used");
    return !d->n_gpus;
}

void ws_doctor_nvml(struct ws_doctor *d, struct ws_finding *f)
{
    struct nvml n;
    unsigned long long mj;
    if (no_gpu(d, f))
        return;
    const char *why = nvml_open(&n);
    if (why) {
        ws_finding_set(f, WS_FINDING_NOTE, "%s: no power and no energy is measured", why);
        ws_finding_advise(f, "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    } else if (!n.energy || n.energy(n.gpu, &mj)) {
        ws_finding_set(f, WS_FINDING_NOTE, "the GPU has no counter of energy");
        ws_finding_advise(f, "joules come from the models then; the counter needs Volta or newer, "
                             "and no MIG");
    } else {
        ws_finding_set(f, WS_FINDING_GOOD, "the GPU's counter of energy can be read");
    }
}

/* Asks for a mode of the first GPU. Return: false: there is nothing to say (said). */
static bool mode(const struct ws_doctor *d, struct ws_finding *f, struct nvml *n)
{
    if (no_gpu(d, f))
        return false;
    const char *why = nvml_open(n);
    if (why)
        ws_finding_set(f, WS_FINDING_NOTE, "not known: %s", why);
    return !why;
}

void ws_doctor_persistence(struct ws_doctor *d, struct ws_finding *f)
{
    struct nvml n;
    unsigned on;
    if (!mode(d, f, &n))
        return;
    if (!n.persistence || n.persistence(n.gpu, &on)) {
        ws_finding_set(f, WS_FINDING_NOTE, "the GPU does not say");
    } else if (on) {
        ws_finding_set(f, WS_FINDING_GOOD, "persistence mode is on");
    } else {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "persistence mode is off: a worker's restart may lose the GPU's memory");
        ws_finding_advise(f, "systemctl enable --now nvidia-persistenced");
    }
}

void ws_doctor_mig(struct ws_doctor *d, struct ws_finding *f)
{
    struct nvml n;
    unsigned now, next;
    if (!mode(d, f, &n))
        return;
    if (!n.mig || n.mig(n.gpu, &now, &next) || !now) {
        ws_finding_set(f, WS_FINDING_GOOD, "the GPU is not divided by MIG");
    } else {
        ws_finding_set(
            f, WS_FINDING_NOTE,
            "the GPU is divided by MIG: only its first instance is used, without energy");
        ws_finding_advise(f, "nvidia-smi -mig 0, if the whole GPU is to be shared by wattshare");
    }
}

void ws_doctor_compute_mode(struct ws_doctor *d, struct ws_finding *f)
{
    struct nvml n;
    unsigned m;
    if (!mode(d, f, &n))
        return;
    if (!n.compute_mode || n.compute_mode(n.gpu, &m)) {
        ws_finding_set(f, WS_FINDING_NOTE, "the GPU does not say");
    } else if (m == 2) {
        ws_finding_set(f, WS_FINDING_BAD, "the compute mode is Prohibited: nobody may use the GPU");
        ws_finding_advise(f, "nvidia-smi -c DEFAULT");
    } else if (m) {
        ws_finding_set(
            f, WS_FINDING_NOTE,
            "the compute mode is Exclusive: programs behind the gate cannot use the GPU");
        ws_finding_advise(f, "nvidia-smi -c DEFAULT, if some are to run behind the gate");
    } else {
        ws_finding_set(f, WS_FINDING_GOOD, "the compute mode is Default");
    }
}

void ws_doctor_mps(struct ws_doctor *d, struct ws_finding *f)
{
    const char *own = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[4096];
    snprintf(path, sizeof(path), "%s/control", own && *own ? own : "/tmp/nvidia-mps");
    if (!exists(d, path)) {
        ws_finding_set(f, WS_FINDING_GOOD, "NVIDIA's MPS is not running");
    } else {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "NVIDIA's MPS is running: the daemon becomes one of its clients");
        ws_finding_advise(f, "echo quit | nvidia-cuda-mps-control, unless others need it");
    }
}
