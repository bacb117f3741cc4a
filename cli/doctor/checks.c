// SPDX-License-Identifier: Apache-2.0
/* The table of checks, and those of the system: limits, shared memory, tools, the daemon. A new
 * check is a function here or in gpu.c, a row in the table, and a planted fault in
 * tests/process/doctor.sh. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/doctor/doctor.h"

/* ---- limits ---- */

static void check_files(struct ws_doctor *d, struct ws_finding *f)
{
    enum { ENOUGH = 4096 };
    struct rlimit l = {0};
    (void)getrlimit(RLIMIT_NOFILE, &l);
    if (l.rlim_max >= ENOUGH) {
        ws_finding_set(f, WS_FINDING_GOOD, "a process may open enough files");
    } else {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "a process may open %llu files: a daemon needs some for each client",
                       (unsigned long long)l.rlim_max);
        ws_finding_advise(f, "ulimit -n %d, or LimitNOFILE= in the unit", ENOUGH);
    }
}

static void check_memlock(struct ws_doctor *d, struct ws_finding *f)
{
    enum { ENOUGH_MIB = 64 };
    struct rlimit l = {0};
    (void)getrlimit(RLIMIT_MEMLOCK, &l);
    if (!d->n_gpus || l.rlim_cur == RLIM_INFINITY || l.rlim_cur >> 20 >= ENOUGH_MIB) {
        ws_finding_set(f, WS_FINDING_GOOD, "enough memory may be locked");
    } else {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "a process may lock %llu KiB of memory: some systems let it pin no more",
                       (unsigned long long)l.rlim_cur >> 10);
        ws_finding_advise(f, "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit");
    }
}

static void check_shared_memory(struct ws_doctor *d, struct ws_finding *f)
{
    enum { ENOUGH_MIB = 256 };
    struct statvfs v;
    int fd = memfd_create("wattshare-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool sealed = fd >= 0 && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    if (fd >= 0)
        close(fd);
    if (!sealed) {
        ws_finding_set(f, WS_FINDING_BAD, "this kernel has no sealed memory files (memfd)");
        ws_finding_advise(f, "use Linux 4.14 or newer, or a sandbox that has them");
    } else if (statvfs(ws_doctor_path(d, "/dev/shm"), &v)) {
        ws_finding_set(f, WS_FINDING_NOTE, "/dev/shm: %s; some programs need it", strerror(errno));
        ws_finding_advise(f, "mount a tmpfs at /dev/shm");
    } else if (v.f_blocks * v.f_frsize >> 20 < ENOUGH_MIB) {
        ws_finding_set(f, WS_FINDING_NOTE, "/dev/shm has %llu MiB; some programs need more",
                       (unsigned long long)(v.f_blocks * v.f_frsize >> 20));
        ws_finding_advise(f, "start the container with --shm-size=1g");
    } else {
        ws_finding_set(f, WS_FINDING_GOOD, "memory can be shared");
    }
}

/* ---- tools and libraries ---- */

static void check_toolkit(struct ws_doctor *d, struct ws_finding *f)
{
    const char *path = getenv("PATH");
    char *dirs = strdup(path ? path : ""), *next = dirs, *dir, file[PATH_MAX];
    bool found = !access(ws_doctor_path(d, "/usr/local/cuda/bin/nvcc"), X_OK);
    while (!found && next && (dir = strsep(&next, ":"))) {
        snprintf(file, sizeof(file), "%s/nvcc", dir);
        found = !access(ws_doctor_path(d, file), X_OK);
    }
    free(dirs);
    ws_finding_set(f, WS_FINDING_GOOD,
                   found ? "the CUDA toolkit is there"
                         : "there is no CUDA toolkit; only building CUDA programs needs one");
}

static void check_compiler(struct ws_doctor *d, struct ws_finding *f)
{
    static const char *const dirs[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
    char file[64];
    for (int version = 16; version >= 14; version--)
        for (size_t i = 0; i < WS_ARRAY_SIZE(dirs); i++) {
            snprintf(file, sizeof(file), "%s/libLLVM-%d.so.1", dirs[i], version);
            if (access(ws_doctor_path(d, file), F_OK))
                continue;
            ws_finding_set(f, WS_FINDING_GOOD, "software GPUs compile kernels with LLVM %d",
                           version);
            return;
        }
    ws_finding_set(
        f, WS_FINDING_GOOD,
        "there is no LLVM 14 to 16; software GPUs interpret kernels, which takes longer");
}

static void check_libraries(struct ws_doctor *d, struct ws_finding *f)
{
    static const char *const dirs[] = {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                       "/usr/lib64"},
                             *const names[] = {"libcublas.so.13", "libcublas.so.12",
                                               "libcudnn.so.9", "libcusolver.so.12"};
    char file[128];
    for (size_t i = 0; i < WS_ARRAY_SIZE(dirs); i++)
        for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++) {
            snprintf(file, sizeof(file), "%s/%s", dirs[i], names[k]);
            if (access(ws_doctor_path(d, file), F_OK))
                continue;
            ws_finding_set(f, WS_FINDING_NOTE, "%s has machine code without PTX", names[k]);
            ws_finding_advise(f, "programs that use it run behind the gate: wattshare run --gate "
                                 "(wattshare coverage says of a program what it needs)");
            return;
        }
    ws_finding_set(f, WS_FINDING_GOOD, "no library of machine code without PTX was found");
}

/* ---- wattshare itself ---- */

/* The service's socket is for the group wattshare. */
static void check_group(struct ws_doctor *d, struct ws_finding *f)
{
    const struct passwd *user = getpwuid(geteuid());
    const char *name = user ? user->pw_name : "USER";
    FILE *file = fopen(ws_doctor_path(d, "/etc/group"), "re");
    const struct group *g;
    bool listed = false;
    while (file && (g = fgetgrent(file)) && strcmp(g->gr_name, "wattshare") != 0)
        ;
    if (!file || !g) {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "there is no group wattshare: a service would be for its own user alone");
        ws_finding_advise(f, "install wattshare's package, or groupadd --system wattshare");
        goto done;
    }
    for (char **member = g->gr_mem; *member; member++)
        listed = listed || !strcmp(*member, name);
    if (!geteuid() || getegid() == g->gr_gid || group_member(g->gr_gid)) {
        ws_finding_set(f, WS_FINDING_GOOD, "this user may use the service");
    } else if (listed) {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "%s is in the group wattshare, and was not when this session began", name);
        ws_finding_advise(f, "log in again, or newgrp wattshare");
    } else {
        ws_finding_set(f, WS_FINDING_NOTE,
                       "%s is not in the group wattshare, which the service is for", name);
        ws_finding_advise(f, "usermod -a -G wattshare %s, and log in again", name);
    }
done:
    if (file)
        fclose(file);
}

static void check_daemon(struct ws_doctor *d, struct ws_finding *f)
{
    Ws__ServerMessage *m = NULL;
    const char *path = strncmp(d->endpoint, "ipc://", 6) ? NULL : d->endpoint + 6;
    int r = ws_cli_ask_status(d->endpoint, WS_CLI_TIMEOUT_MS, &m);
    if (!r) {
        ws_finding_set(f, WS_FINDING_GOOD, "a daemon answers at %s, with %zu GPU%s", d->endpoint,
                       m->status->n_gpus, m->status->n_gpus == 1 ? "" : "s");
        ws__server_message__free_unpacked(m, NULL);
    } else if (path && !access(path, F_OK) && access(path, W_OK)) {
        ws_finding_set(f, WS_FINDING_BAD, "the socket of the daemon at %s is not for this user",
                       d->endpoint);
        ws_finding_advise(f, "usermod -a -G wattshare USER, and log in again");
    } else if (r == -EPROTONOSUPPORT || r == -EPROTO) {
        ws_finding_set(f, WS_FINDING_BAD, "what answers at %s is of another version", d->endpoint);
        ws_finding_advise(f, "systemctl restart wattshared, after an update");
    } else {
        ws_finding_set(f, WS_FINDING_NOTE, "no daemon answers at %s: %s", d->endpoint,
                       strerror(-r));
        ws_finding_advise(f, "systemctl start wattshared; or wattshare run --private");
    }
}

const struct ws_check ws_doctor_checks[] = {
    {"device files", ws_doctor_device_files},
    {"driver", ws_doctor_driver},
    {"energy", ws_doctor_nvml},
    {"persistence", ws_doctor_persistence},
    {"MIG", ws_doctor_mig},
    {"compute mode", ws_doctor_compute_mode},
    {"MPS", ws_doctor_mps},
    {"open files", check_files},
    {"locked memory", check_memlock},
    {"shared memory", check_shared_memory},
    {"toolkit", check_toolkit},
    {"compiler", check_compiler},
    {"libraries", check_libraries},
    {"group", check_group},
    {"daemon", check_daemon},
    {NULL, NULL},
};
