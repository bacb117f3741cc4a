/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/host.c - what goes wrong around the daemon: row 6 (its configuration), killed
 * processes, full disks, a clock that jumps. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "tests/attack/daemon.h"

/* ---- row 6: a configuration that is no file ---- */

static bool alive(const struct target *t)
{
    return !kill(t->pid, 0);
}

/* Puts something in the configuration's place by a shell command, which finds the path in $1 and
 * the folder in $2; asks the daemon to read it. */
static bool reload(const struct target *t, const char *command)
{
    char shell[512];
    snprintf(shell, sizeof(shell), "set -- '%s' '%s'; rm -rf \"$1\"; %s", t->conf, t->dir, command);
    if (system(shell))
        return false;
    kill(t->pid, SIGHUP);
    attack_sleep_ms(100);
    return alive(t);
}

static const char *strange_configuration(const struct target *t, unsigned copy)
{
    static const char *const commands[] = {
        "mkdir \"$1\"",
        "mkfifo \"$1\"",
        "ln -s /dev/zero \"$1\"",
        "ln -s /dev/tty \"$1\"",
        "ln -s \"$2/sock\" \"$1\"",
        "ln -s \"$1\" \"$1\"",
        "truncate -s 10G \"$1\"",
        "truncate -s 20000 \"$1\"",
        "head -c 3000000 /dev/urandom >\"$1\"",
        "for i in $(seq 50000); do echo 'task x {'; done >\"$1\"",
        "echo 'include(\"/dev/zero\")' >\"$1\"",
        "echo \"include(\\\"$1\\\")\" >\"$1\"",
        "mkfifo \"$2/pipe\"; echo \"include(\\\"$2/pipe\\\")\" >\"$1\"",
        "echo 'include(\"/\")' >\"$1\"",
    };
    char keep[256];
    (void)copy;
    snprintf(keep, sizeof(keep), "cp '%s' '%s.good'", t->conf, t->conf);
    if (system(keep))
        return NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(commands); i++)
        if (!reload(t, commands[i]))
            return commands[i];
    return reload(t, "cp \"$1.good\" \"$1\"") ? NULL : "the good configuration";
}

/* It grows and shrinks while it is read. */
static const char *changing_configuration(const struct target *t, unsigned copy)
{
    int fd = open(t->conf, O_WRONLY);
    struct stat st;
    char line[] = "#\n";
    (void)copy;
    if (fd < 0 || fstat(fd, &st))
        return NULL;
    for (unsigned i = 0; attack_goes_on(t) && alive(t); i++) {
        if (pwrite(fd, line, 2, st.st_size + i % 100000 * 10) != 2 ||
            (i % 50 == 0 && ftruncate(fd, st.st_size)))
            break;
        if (i % 50 == 25) {
            kill(t->pid, SIGHUP);
            attack_sleep_ms(20);
        }
    }
    return NULL;
}

/* Takes memory of both kinds, as far as it is given any. */
static _Noreturn void take_memory(const struct target *t)
{
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    alloc.bytes = 1 << 20;
    for (struct raw r;; raw_close(&r)) {
        int fd = -1, e = raw_open(&r, t->sock, NULL);
        e = e ? e : raw_open_side(&r, t->side);
        for (unsigned i = 0; !e && i < 100; i++) {
            e = raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, NULL) < 0;
            raw_side(&r, WS_HANDOFF_PINNED, 1 << 20, &fd);
            if (fd >= 0)
                close(fd);
            fd = -1;
        }
        attack_sleep_ms(5);
    }
}

/* Puts @lines behind the good configuration, and asks the daemon to read it. */
static bool configure(const struct target *t, const char *lines)
{
    char command[2048];
    snprintf(command, sizeof(command), "cat '%s.good' - >'%s' <<'END'\n%sEND\n", t->conf, t->conf,
             lines);
    return !system(command) && !kill(t->pid, SIGHUP);
}

/* Limits of root, who attacks, become smaller than what it has, and larger again. */
static const char *shrinking(const struct target *t, unsigned copy)
{
    static const char few[] = "user \"root\" {"
#define SECTION(...)
#define GROUP(...)
#define KEY(section, name, ...) ONE_##section(#name)
#define ONE_top(name)
#define ONE_limits(name)
#define ONE_task(name)
#define ONE_user(name) " " name " = 1"
#include "backend/process/config_keys.def"
                              " }\n"
                              "limits { max_streams = 1 max_events = 1 cache_bytes = 0 }\n";
    char keep[256];
    (void)copy;
    snprintf(keep, sizeof(keep), "cp '%s' '%s.good'", t->conf, t->conf);
    if (system(keep))
        return "the harness cannot keep the configuration";
    if (!fork())
        take_memory(t);
    for (unsigned i = 0; attack_goes_on(t); i++) {
        if (!configure(t, i % 2 ? "" : few))
            return "the daemon ended";
        attack_sleep_ms(50);
    }
    return configure(t, "") ? NULL : "the daemon ended";
}

/* ---- killed processes ---- */

/* Clients that have a module, memory and work, and go without a word. */
static const char *kills(const struct target *t, unsigned copy)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k()\n{\nL:\nbra L;\n}\n";
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__Launch l = raw_launch(1, 0);
    (void)copy;
    alloc.bytes = 1 << 20;
    for (unsigned i = 0; i < 60 && attack_goes_on(t); i++) {
        pid_t pid = fork();
        if (!pid) {
            struct raw r;
            if (raw_open(&r, t->sock, NULL) || raw_open_side(&r, t->side) ||
                raw_load(&r, 1, ptx, sizeof(ptx) - 1))
                _exit(1);
            raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, NULL);
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
            raw_send(&r);
            pause();
        }
        attack_sleep_ms(30);
        kill(pid, SIGKILL);
    }
    return NULL;
}

/* ---- full disks ---- */

/* The daemon's own small file systems (daemon.c), by way of its root directory. */
static const char *full_disk(const struct target *t, unsigned copy)
{
    static const char *const places[] = {"%s/disk/rest", "/dev/shm/rest"};
    char path[256], inside[128], block[4096] = {0};
    (void)copy;
    for (size_t i = 0; i < WS_ARRAY_SIZE(places); i++) {
        snprintf(inside, sizeof(inside), places[i], t->dir);
        snprintf(path, sizeof(path), "/proc/%d/root%s", (int)t->pid, inside);
        int fd = open(path, O_WRONLY | O_CREAT, 0666);
        if (fd < 0)
            return "the harness cannot fill the disk";
        while (write(fd, block, sizeof(block)) > 0)
            ;
        while (write(fd, block, 1) > 0)
            ;
    }
    while (attack_goes_on(t)) {
        kill(t->pid, SIGHUP); /* which it logs */
        attack_sleep_ms(20);
    }
    return NULL;
}

/* ---- the time of day ---- */

/* The daemon's library adds years to the time of day, or takes them away, as the file says. */
static const char *clock_jumps(const struct target *t, unsigned copy)
{
    static const long jumps[] = {86400L * 3650, -86400L * 3650, -2000000000L, 3600, 0};
    char path[96];
    (void)copy;
    snprintf(path, sizeof(path), "%s/clock", t->dir);
    for (size_t i = 0; attack_goes_on(t); i++) {
        FILE *f = fopen(path, "w");
        if (!f)
            return "the harness cannot change the clock";
        fprintf(f, "%ld\n", jumps[i % WS_ARRAY_SIZE(jumps)]);
        fclose(f);
        attack_sleep_ms(100);
    }
    return NULL;
}

/* ---- row 3: steps of a batch scheduler ---- */

/* As the scheduler's plugin passes them on, whose user has begun very many steps. Each is watched
 * by a descriptor of the daemon's. */
static const char *announced(const struct target *t, unsigned copy)
{
    enum { AT_A_TIME = 64 };
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StepRequest q = WS__STEP_REQUEST__INIT;
    int fd = raw_dial(t->sock);
    (void)copy;
    pid_t step = fork();
    if (!step) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    q.version = WS_PROTOCOL_VERSION;
    q.uid = UID_ATTACKER;
    q.pid = (uint32_t)step;
    q.all_gpus = true;
    m.step = &q;
    for (bool ok = step > 0 && fd >= 0 && !raw_greet(fd, "", 0); ok && attack_goes_on(t);) {
        for (unsigned i = 0; ok && i < AT_A_TIME; i++) {
            q.job = 1 + q.step++ % 100;
            ok = !raw_message(fd, &m);
        }
        for (unsigned i = 0; ok && i < AT_A_TIME; i++) {
            Ws__ServerMessage *a = raw_receive(fd);
            ok = a;
            if (a)
                ws__server_message__free_unpacked(a, NULL);
        }
    }
    kill(step, SIGKILL);
    waitpid(step, NULL, 0);
    close(fd);
    return NULL;
}

const struct attack attacks_host[] = {
    {"3", "announced", "100,000 steps of a batch scheduler", announced, .ms = 4000, .owner = true,
     .n_files = 4096},
    {"6", "configuration", "SIGHUP when the configuration is no such file", strange_configuration,
     .owner = true, .ms = 4000},
    {"6", "changing", "SIGHUP while the configuration changes", changing_configuration,
     .owner = true},
    {"6", "shrinking", "SIGHUP with limits below what clients have", shrinking, .owner = true},
    {"+", "kills", "SIGKILL of 60 clients that compute", kills, .ms = 3000, .max_call_ms = 2000},
    {"+", "full-disk", "no space for log, energy log, profiles, /dev/shm", full_disk, .owner = true,
     .full_disk = true,
     .conf = "energy_log = \"%DIR%/disk/energy.csv\"\nenergy_log_ms = 10\n"
             "profiles = \"%DIR%/disk/profiles.db\"\n"},
    {"+", "clock-jumps", "the time of day jumps by years", clock_jumps, .owner = true,
     .clock_jumps = true, .conf = "energy_log = \"%DIR%/energy.csv\"\nenergy_log_ms = 10\n"},
    {0}};
