/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/attack/people.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/attack/daemon.h"
#include "tests/attack/pace.h"

/* A process with pipes to its standard input and output, which no other process here keeps open. */
static pid_t start(int *ret_in, int *ret_out)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (!pid) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close_range(3, ~0U, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return 0;
    }
    close(in[0]);
    close(out[1]);
    *ret_in = in[1];
    *ret_out = out[0];
    return pid;
}

/* ---- bystanders ---- */

void bystander_start(struct bystander *b, const struct target *t, const char *place, uid_t uid,
                     unsigned calls, unsigned period_us)
{
    char program[80], library[80], endpoint[112], user[16], n[16], period[16];
    b->since_ns = now_ns();
    b->pid = start(&b->in, &b->out);
    if (b->pid)
        return;
    snprintf(program, sizeof(program), "%s/bystander", place);
    snprintf(library, sizeof(library), "%s/libwattshare.so", place);
    snprintf(endpoint, sizeof(endpoint), "ipc://%s", t->sock);
    snprintf(user, sizeof(user), "%d", (int)uid);
    snprintf(n, sizeof(n), "%u", calls);
    snprintf(period, sizeof(period), "%u", period_us);
    place_preload(library);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the program's own are its own affair */
    setenv("WATTSHARE_SOCKET", endpoint, 1);
    dup2(1, 2);
    execl(program, program, user, n, period, NULL);
    _exit(127);
}

/* Reads until @word has come, or the end. Return: false: not within @ms. */
static bool read_until(int fd, const char *word, unsigned ms, char *buf, size_t size)
{
    uint64_t until = now_ns() + (uint64_t)ms * 1000000;
    size_t n = 0;
    buf[0] = 0;
    for (uint64_t now; (now = now_ns()) < until && n + 1 < size;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)((until - now) / 1000000) + 1) < 1)
            continue;
        ssize_t got = read(fd, buf + n, size - 1 - n);
        if (got <= 0)
            return !word;
        buf[n += (size_t)got] = 0;
        if (word && strstr(buf, word))
            return true;
    }
    return false;
}

bool bystander_ready(struct bystander *b, unsigned ms)
{
    char text[512];
    return read_until(b->out, "ready\n", ms, text, sizeof(text));
}

void bystander_end(struct bystander *b, unsigned ms, struct report *ret)
{
    char text[2048];
    unsigned p50, p99, max;
    int status;
    *ret = (struct report){0};
    close(b->in);
    bool ended = read_until(b->out, NULL, ms, text, sizeof(text));
    if (!ended)
        kill(b->pid, SIGKILL);
    waitpid(b->pid, &status, 0);
    close(b->out);
    const char *line = strstr(text, "calls=");
    ret->well = ended && !status && line &&
                sscanf(line, "calls=%u p50=%u p99=%u max=%u", &ret->calls, &p50, &p99, &max) == 4;
    if (ret->well) {
        ret->p50_ms = p50 / 1e3;
        ret->p99_ms = p99 / 1e3;
        ret->max_ms = max / 1e3;
    } else if (!ended) {
        snprintf(ret->text, sizeof(ret->text), "gets no answer");
    } else {
        ret->told = strstr(text, "CUDA_ERROR_LAUNCH_FAILED") != NULL;
        /* What the library says of a failure stands before the program's own words. */
        const char *said = strstr(text, "wattshare");
        said = said ? said : text;
        snprintf(ret->text, sizeof(ret->text), "%.*s (status %d)", (int)strcspn(said, "\n"), said,
                 status);
    }
}

/* ---- the machine itself ---- */

void control_start(struct control *c)
{
    static struct pace pace;
    int there[2], back[2];
    char byte = 0;
    c->pid = start(&c->in, &c->out);
    if (c->pid)
        return;
    if (pipe(there) || pipe(back))
        _exit(2);
    pid_t other = fork();
    if (!other) {
        close(there[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    struct pollfd stop = {.fd = 0, .events = POLLIN};
    pace.period_ns = 2000000;
    while (!poll(&stop, 1, 0)) {
        pace_wait(&pace);
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            _exit(2);
        pace_done(&pace);
    }
    pace_end(&pace);
    printf("p99=%u\n", pace_permille(&pace, 990));
    fflush(stdout);
    _exit(0);
}

double control_end(struct control *c)
{
    char text[64];
    unsigned p99 = 0;
    close(c->in);
    read_until(c->out, NULL, 2000, text, sizeof(text));
    close(c->out);
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    return sscanf(text, "p99=%u", &p99) == 1 ? p99 / 1e3 : 0;
}

/* ---- attackers ---- */

bool attack_goes_on(const struct target *t)
{
    return now_ns() < t->until_ns;
}

void attack_sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

bool attack_open(struct raw *r, const struct target *t)
{
    while (attack_goes_on(t)) {
        if (!raw_open(r, t->sock, NULL))
            return true;
        attack_sleep_ms(5);
    }
    return false;
}

/* What an attacker computes takes the bystanders' processors from them, which the daemon cannot
 * help: hence the low priority. It keeps what it has taken until it is killed. */
static _Noreturn void be_attacker(const struct attack *a, const struct target *t, unsigned copy,
                                  struct won *won)
{
    struct rlimit files;
    setpgid(0, 0);
    setpriority(PRIO_PROCESS, 0, 10);
    close_range(3, ~0U, 0); /* the pipes of the others, which must see their ends */
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (!a->owner)
        place_become(UID_ATTACKER);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *text = a->run(t, copy);
    if (text)
        snprintf(won->text, sizeof(won->text), "%s", text);
    won->done = 1;
    for (;;)
        pause();
}

void attackers_start(struct attackers *x, const struct attack *a, const struct target *t)
{
    x->n = a->copies ? a->copies : 1;
    x->won = mmap(NULL, sizeof(*x->won) * x->n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    if (x->won == MAP_FAILED)
        die("mmap");
    fflush(NULL);
    for (unsigned i = 0; i < x->n; i++) {
        x->pids[i] = fork();
        if (x->pids[i] < 0)
            die("fork");
        if (!x->pids[i])
            be_attacker(a, t, i, &x->won[i]);
        setpgid(x->pids[i], x->pids[i]);
    }
}

bool attackers_done(const struct attackers *x)
{
    for (unsigned i = 0; i < x->n; i++)
        if (!x->won[i].done)
            return false;
    return true;
}

void attackers_end(struct attackers *x)
{
    for (unsigned i = 0; i < x->n; i++) {
        kill(-x->pids[i], SIGKILL); /* and its own children */
        waitpid(x->pids[i], NULL, 0);
    }
}
