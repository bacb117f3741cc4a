/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/attack/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

static char place[48];

_Noreturn void die(const char *what)
{
    fprintf(stderr, "attack: %s: %s\n", what, strerror(errno));
    exit(2);
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the place ---- */

static void shell(const char *format, ...)
{
    char command[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    if (system(command))
        die(command);
}

const char *place_daemon_build(void)
{
    const char *other = getenv("WS_DAEMON_BUILD");
    return other ? other : ".";
}

/* The build tree is the working directory, as for all tests. */
const char *place_make(void)
{
    snprintf(place, sizeof(place), "/tmp/wattshare-attack-%d", (int)getpid());
    if (mkdir(place, 0755))
        die(place);
    shell("cp frontend/libwattshare.so tests/attack/bystander tests/attack/libclockjump.so "
          "tests/attack/libturns.so %s/ && cp -rL conf/gpu.d %s/gpu.d",
          place, place);
    shell("cd %s && cp backend/wattshared device/worker/wattshare-gpu-worker "
          "tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1 %s/ && chmod -R a+rX %s",
          place_daemon_build(), place, place);
    return place;
}

void place_remove(void)
{
    if (place[0] && !getenv("ATTACK_KEEP"))
        shell("rm -rf %s", place);
    place[0] = 0;
}

const char *place_sanitizer(void)
{
    static char path[256];
    char line[512], *at;
    FILE *f = path[0] ? NULL : fopen("/proc/self/maps", "r");
    while (f && !path[0] && fgets(line, sizeof(line), f))
        if (strstr(line, "/libasan.so") && (at = strchr(line, '/')))
            snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, "\n"), at);
    if (f)
        fclose(f);
    return path;
}

void place_preload(const char *libraries)
{
    char all[512];
    const char *first = place_sanitizer();
    snprintf(all, sizeof(all), "%s%s%s", first, first[0] ? ":" : "", libraries);
    setenv("LD_PRELOAD", all, 1);
}

void place_become(uid_t uid)
{
    if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
        die("setresuid");
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- its files ---- */

static void write_key(const char *dir, const char *name, const char *key, const char *value)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f || fchmod(fileno(f), 0600) || fprintf(f, "%s %s\n", key, value) < 0 || fclose(f))
        die(path);
    if (chown(path, UID_DAEMON, UID_DAEMON))
        die(path);
}

static void write_tcp(FILE *f, struct target *t)
{
    char secret[41], user[16];
    snprintf(user, sizeof(user), "%u", (unsigned)UID_ATTACKER);
    if (zmq_curve_keypair(t->public_key, secret) ||
        zmq_curve_keypair(t->friend_public, t->friend_secret))
        die("zmq_curve_keypair");
    write_key(t->dir, "key", "secret", secret);
    write_key(t->dir, "clients", user, t->friend_public);
    fprintf(f, "curve_key = \"%s/key\"\ncurve_clients = \"%s/clients\"\n", t->dir, t->dir);
}

/* The attack's own lines. */
static void write_lines(FILE *f, const struct target *t, const char *lines)
{
    for (const char *p = lines; *p; p++) {
        if (!strncmp(p, "%DIR%", 5)) {
            fputs(t->dir, f);
            p += 4;
        } else if (!strncmp(p, "%PORT%", 6)) {
            fprintf(f, "%u", t->port);
            p += 5;
        } else {
            fputc(*p, f);
        }
    }
    fputc('\n', f);
}

static void write_conf(struct target *t, const struct attack *a)
{
    FILE *f = fopen(t->conf, "w");
    if (!f)
        die(t->conf);
    fprintf(f, "endpoints = {\"ipc://%s\"", t->sock);
    if (a->tcp)
        fprintf(f, ", \"tcp://127.0.0.1:%u\"", t->port);
    fprintf(f,
            "}\nsocket_mode = \"0666\"\ncatalog = {\"%s/gpu.d\"}\ngpus = {\"%s\"}\n"
            "drain_timeout_s = 2\n",
            place, a->mock ? "cuda" : "rtx3070");
    if (a->tcp)
        write_tcp(f, t);
    write_lines(f, t, a->conf ? a->conf : "");
    fclose(f);
}

/* ---- the process ---- */

/* In the new process: file systems of its own, which an attack can fill without harm to others. */
static void own_disks(const char *dir)
{
    char disk[80];
    snprintf(disk, sizeof(disk), "%s/disk", dir);
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", disk, "tmpfs", 0, "size=1m,mode=0777") ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k,mode=1777"))
        die("file systems for the daemon");
}

static void preload(const char *dir, bool clock_jumps)
{
    char libraries[160], path[96];
    snprintf(libraries, sizeof(libraries), "%s/libturns.so", place);
    if (clock_jumps)
        snprintf(libraries, sizeof(libraries), "%s/libturns.so:%s/libclockjump.so", place, place);
    place_preload(libraries);
    snprintf(path, sizeof(path), "%s/turns", dir);
    setenv("ATTACK_TURNS", path, 1);
    snprintf(path, sizeof(path), "%s/clock", dir);
    setenv("ATTACK_CLOCK", path, 1);
}

/* In the new process: the driver, and the program that it is loaded into. */
static void use_mock(void)
{
    char worker[96];
    snprintf(worker, sizeof(worker), "%s/wattshare-gpu-worker", place);
    setenv("WATTSHARE_GPU_WORKER", worker, 1);
    setenv("LD_LIBRARY_PATH", place, 1);
    setenv("WS_MOCK_FULL", "1", 1);
}

static _Noreturn void be_daemon(const struct target *t, const struct attack *a, int ready)
{
    char program[64], log[96];
    snprintf(program, sizeof(program), "%s/wattshared", place);
    if (a->full_disk)
        own_disks(t->dir);
    snprintf(log, sizeof(log), "%s/%slog", t->dir, a->full_disk ? "disk/" : "");
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(fd, 2);
    dup2(ready, 3);
    close_range(4, ~0U, 0);
    if (a->n_files)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){a->n_files, a->n_files});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    preload(t->dir, a->clock_jumps);
    if (a->mock)
        use_mock();
    place_become(UID_DAEMON);
    execl(program, program, "--config", t->conf, "--ready-fd", "3", NULL);
    _exit(127);
}

/* The file in which the daemon tells of its turns. */
static struct turns *turns_new(const char *dir)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/turns", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || fchmod(fd, 0666) || ftruncate(fd, sizeof(struct turns)))
        die(path);
    void *p = mmap(NULL, sizeof(struct turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        die(path);
    close(fd);
    return p;
}

void daemon_turns_begin(struct daemon *d)
{
    d->turns->longest_ns = 0;
}

double daemon_longest_turn_ms(const struct daemon *d)
{
    return (double)d->turns->longest_ns / 1e6;
}

/* The device for file systems of users' own, which on most machines every user may open. Where it
 * cannot be made, the attack with it does nothing. */
static void make_fuse(const char *dir)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/fuse", dir);
    if (!mknod(path, S_IFCHR | 0666, makedev(10, 229)))
        (void)chmod(path, 0666);
}

bool daemon_start(struct daemon *d, const struct attack *a)
{
    static unsigned n;
    int ready[2];
    char byte;
    struct target *t = &d->target;
    *d = (struct daemon){.target.port = 20000 + (unsigned)(getpid() + n) % 20000};
    snprintf(t->dir, sizeof(t->dir), "%s/%u", place, n++);
    snprintf(t->sock, sizeof(t->sock), "%s/sock", t->dir);
    snprintf(t->side, sizeof(t->side), "%s.side", t->sock);
    snprintf(t->conf, sizeof(t->conf), "%s/conf", t->dir);
    /* Attacks keep files here too, so it is everybody's. */
    shell("mkdir -m 777 %s && mkdir -m 777 %s/disk", t->dir, t->dir);
    make_fuse(t->dir);
    if (chmod(t->dir, 0777))
        die(t->dir);
    write_conf(t, a);
    d->turns = turns_new(t->dir);
    if (pipe(ready))
        die("pipe");
    t->pid = fork();
    if (t->pid < 0)
        die("fork");
    if (!t->pid)
        be_daemon(t, a, ready[1]);
    close(ready[1]);
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    bool started = poll(&p, 1, 20000) == 1 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    daemon_look(d);
    return started && !d->ended;
}

/* What the process has now that the machine could not take back: pages of its own and shared
 * memory. Pages of files that it has mapped don't count. */
static long own_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "RssAnon:", 8) || !strncmp(line, "RssShmem:", 9))
            kib += atol(strchr(line, ':') + 1);
    if (f)
        fclose(f);
    return kib;
}

void daemon_look(struct daemon *d)
{
    long kib = own_kib(d->target.pid);
    if (kib > d->peak_kib)
        d->peak_kib = kib;
    if (!d->ended && waitpid(d->target.pid, &d->status, WNOHANG) == d->target.pid)
        d->ended = true;
}

bool daemon_stop(struct daemon *d, unsigned seconds)
{
    uint64_t until = now_ns() + (uint64_t)seconds * 1000000000;
    if (!d->ended)
        kill(d->target.pid, SIGTERM);
    while (!d->ended && now_ns() < until) {
        attack_sleep_ms(10);
        daemon_look(d);
    }
    if (d->ended)
        return true;
    kill(d->target.pid, SIGKILL);
    waitpid(d->target.pid, &d->status, 0);
    d->ended = true;
    return false;
}

void daemon_last_words(const struct daemon *d, char *buf, size_t size)
{
    char path[96], line[1024];
    snprintf(path, sizeof(path), "%s/log", d->target.dir);
    FILE *f = fopen(path, "r");
    buf[0] = 0;
    while (f && fgets(line, sizeof(line), f))
        if (strstr(line, "ssert") || strstr(line, "Sanitizer: ") || strstr(line, "Aborted") ||
            strstr(line, "failed (") || strstr(line, "flex"))
            snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
}

void daemon_remove(struct daemon *d)
{
    munmap(d->turns, sizeof(*d->turns));
    shell("rm -rf %s", d->target.dir);
}
