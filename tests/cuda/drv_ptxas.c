// SPDX-License-Identifier: Apache-2.0
// Starts a ptxas by its path, in each way that there is, and loads what it makes. Argument 1 is the
// ptxas; what it makes is no PTX. Fails if a process that does not use CUDA yet gets another one,
// if one that does gets this one, if the module can't be loaded from memory that goes on behind it,
// or if the driver's file is not there.
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "drv.h"
#define WORK "drv_ptxas"

extern char **environ;
static const char kernel[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                             ".visible .entry run(.param .u64 out)\n"
                             "{\n"
                             "    .reg .b64 %rd<2>;\n"
                             "    ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 77; ret;\n"
                             "}";
static char in[] = "/tmp/wattshare-ptxas.XXXXXX", out[sizeof(in) + 2];
enum { EXECV, EXECVE, SPAWN, SPAWNP, WAYS };
static const char *const names[] = {"execv", "execve", "posix_spawn", "posix_spawnp"};

/* Return: the length of the file that it made. */
static size_t assemble(int way, const char *ptxas, char *image, size_t room)
{
    char *const argv[] = {(char *)ptxas, "-arch=sm_86", in, "-o", out, NULL};
    pid_t pid = -1;
    int status;
    if (way == SPAWN)
        posix_spawn(&pid, ptxas, NULL, NULL, argv, environ);
    else if (way == SPAWNP)
        posix_spawnp(&pid, ptxas, NULL, NULL, argv, environ);
    else if (!(pid = fork())) {
        way == EXECV ? execv(ptxas, argv) : execve(ptxas, argv, environ);
        _exit(1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
        exit(work_fail(WORK, "%s: status %d", names[way], pid < 0 ? -1 : status));
    FILE *f = fopen(out, "r");
    size_t n = f ? fread(image, 1, room, f) : 0;
    if (f)
        fclose(f);
    unlink(out);
    return n;
}

int main(int argc, char **argv)
{
    char image[1000];
    unsigned got = 0;
    struct stat st;
    CUmodule m;
    CUdeviceptr p;
    int fd = mkstemp(in);
    if (argc < 2 || fd < 0 || write(fd, kernel, sizeof(kernel) - 1) < 0 || close(fd))
        return work_fail(WORK, "can't write %s", in);
    snprintf(out, sizeof(out), "%s.o", in);
    if (stat("/dev/nvidiactl", &st))
        return work_fail(WORK, "there is no /dev/nvidiactl");
    for (int way = 0; way < WAYS; way++)
        if (!assemble(way, argv[1], image, sizeof(image)) || !memcmp(image, kernel, 8))
            return work_fail(WORK, "%s: another ptxas ran before CUDA was used", names[way]);
    drv_begin();
    DRV(mem_alloc(&p, 4));
    for (int way = 0; way < WAYS; way++) {
        memset(image, '~', sizeof(image));
        assemble(way, argv[1], image, sizeof(image));
        DRV(module_load_data_ex(&m, image, 0, NULL, NULL));
        DRV(memset_d8(p, 0, 4));
        drv_launch(drv_function(m, "run"), 1, 1, 0, NULL, &p);
        DRV(memcpy_dtoh(&got, p, 4));
        if (got != 77)
            return work_fail(WORK, "%s: %u", names[way], got);
        DRV(module_unload(m));
    }
    unlink(in);
    DRV(mem_free(p));
    drv_end();
    return work_pass(WORK);
}
