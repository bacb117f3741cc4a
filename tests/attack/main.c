/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/attack [-l | -q] [ROW or NAME…] - attacks a daemon and prints what became of it, one
 * line for each attack. Each attack has a daemon of its own and runs beside
 *   - a bystander, an ordinary program of another user that computes all the time,
 *   - two programs of a third user, one that comes in the middle of the attack and one at its end,
 *   - two processes that measure how quickly the machine itself wakes a process.
 * An attack has *held* if the daemon lives and ends well when it is told to, if all results of all
 * programs are right, if 99 of 100 of the bystander's calls end within 5 ms (and what the machine
 * takes for the four wake-ups of a call), if no turn of the daemon's loop takes more than 10 ms of
 * processor time, if the daemon's memory stays below the attack's bound, if the attackers have not
 * won what they were after, and if nothing is left of them and of the programs: no user is charged
 * with anything, the daemon has no more descriptors than at first, and when it has ended there is
 * no process and no shared memory. Else it *fell*, and the reason is given.
 * The status is 1 if one fell, and 77 if nothing was tried: it takes root to be several users.
 * -l lists the attacks. -q is for a machine that has other work: attacks are short, and calls may
 * take a second. In a build with sanitizers calls may too, programs have more time to come and to
 * go, and memory is not judged: most of it is the sanitizers'. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "tests/attack/daemon.h"
#include "tests/attack/left.h"
#include "tests/attack/people.h"

enum {
    P99_MS = 5,
    TURN_MS = 10,
    QUICK_P99_MS = 1000,
    QUICK_TURN_MS = 100,
    MEMORY_MIB = 512,
    MS = 1500,
    QUICK_MS = 500,
    FIRST_MS = 1000, /* what an attack that comes first is ahead by */
    TRIES = 3,       /* when the bystander's calls alone took too long */
    PERIOD_US = 2000,
    PROGRAM_PERIOD_US = 20000,
    READY_MS = 10000, /* a bystander's start, before the attack */
    NEW_MS = 5000,    /* a new program's start, three calls and end, during it */
    NEW_CALLS = 3,
    END_MS = 3000,
    LEFT_MS = 5000,   /* until the daemon has forgotten all who have gone */
    STOP_SECONDS = 5, /* the daemons' drain_timeout_s, and as long again */
    MOST_PROGRAMS = 16,
    WORKER_FDS = 4 /* connections to a worker that are opened when they are wanted */
};

static const struct attack *const families[] = {
    attacks_connect, attacks_message, attacks_code,   attacks_share,    attacks_host, attacks_work,
    attacks_walk,    attacks_gpu,     attacks_linger, attacks_slowfile, attacks_keys, attacks_many};
static const char *place;
static bool quick; /* -q */
static bool slow;  /* sanitizers */

struct judgement {
    char why[256];  /* "": held */
    bool only_late; /* for no other reason than that calls took long */
    double p99_ms, machine_ms, turn_ms;
    long mib;
};

/* How long to wait for what takes at most @n. */
static unsigned patience(unsigned n)
{
    return slow ? 4 * n : n;
}

static void fell(struct judgement *j, const char *format, ...)
{
    va_list ap;
    if (j->why[0] && !j->only_late)
        return; /* the first reason is the cause of the others */
    j->only_late = false;
    va_start(ap, format);
    vsnprintf(j->why, sizeof(j->why), format, ap);
    va_end(ap);
}

static void late(struct judgement *j, const char *format, ...)
{
    va_list ap;
    if (j->why[0])
        return;
    va_start(ap, format);
    vsnprintf(j->why, sizeof(j->why), format, ap);
    va_end(ap);
    j->only_late = true;
}

static void judge_daemon(struct judgement *j, const struct daemon *d)
{
    char words[160];
    daemon_last_words(d, words, sizeof(words));
    if (WIFSIGNALED(d->status))
        fell(j, "the daemon died of signal %d%s%s", WTERMSIG(d->status), words[0] ? ": " : "",
             words);
    else if (d->status)
        fell(j, "the daemon ended with status %d%s%s", WEXITSTATUS(d->status), words[0] ? ": " : "",
             words);
}

/* A program that comes now: lets it compute a little and checks that it could. */
struct newcomer {
    struct bystander b;
    bool there;
};

static void come(struct newcomer *n, const struct target *t)
{
    bystander_start(&n->b, t, place, UID_NEWCOMER, NEW_CALLS, PERIOD_US);
    n->there = true;
}

/* Keeps its input open until it ends of itself: the end of the input would tell it to stop. */
static void leave(struct newcomer *n, const struct attack *a, struct judgement *j, bool may_be_told)
{
    struct report r;
    if (!n->there)
        return;
    unsigned ms = patience(NEW_MS) + NEW_CALLS * patience(a->max_call_ms),
             gone_ms = (unsigned)((now_ns() - n->b.since_ns) / 1000000);
    int in = dup(n->b.in);
    bystander_end(&n->b, gone_ms < ms ? ms - gone_ms : 1, &r);
    close(in);
    n->there = false;
    if (!r.well && !(may_be_told && r.told))
        fell(j, "a new program: %s", r.text);
}

/* Watches while the attack runs. */
static void watch(struct daemon *d, const struct attackers *x, struct newcomer *middle)
{
    struct target *t = &d->target;
    uint64_t begin = now_ns(), end = t->until_ns + 1000000000;
    while (now_ns() < end && !d->ended) {
        attack_sleep_ms(20);
        daemon_look(d);
        if (!middle->there && now_ns() > begin + (t->until_ns - begin) * 2 / 5)
            come(middle, t);
        if (attackers_done(x) && now_ns() > t->until_ns)
            break;
    }
}

static void judge_turns(struct judgement *j, const struct daemon *d)
{
    double most = quick || slow ? QUICK_TURN_MS : TURN_MS;
    j->turn_ms = daemon_longest_turn_ms(d);
    if (j->turn_ms > most)
        late(j, "a turn of the daemon's loop took %.1f ms of the processor", j->turn_ms);
}

static void judge_bystander(struct judgement *j, const struct attack *a, const struct report *r)
{
    double p99_ms = quick || slow ? QUICK_P99_MS : P99_MS,
           most = a->max_call_ms ? patience(a->max_call_ms) : p99_ms + 2 * j->machine_ms;
    j->p99_ms = r->p99_ms;
    if (!r->well && a->may_be_told && r->told)
        return;
    if (!r->well)
        fell(j, "the bystander: %s", r->text);
    else if (a->max_call_ms && r->max_ms > most)
        late(j, "a call of the bystander took %.0f ms, more than %.0f", r->max_ms, most);
    else if (!a->max_call_ms && r->p99_ms > most)
        late(j, "p99 is more than %.1f ms (p50 %.2f ms, longest %.0f ms)", most, r->p50_ms,
             r->max_ms);
}

static void stop(struct daemon *d, const struct attack *a, struct judgement *j)
{
    long most = a->max_mib ? a->max_mib : MEMORY_MIB;
    daemon_look(d);
    bool ended_itself = d->ended, stopped = daemon_stop(d, patience(STOP_SECONDS));
    j->mib = d->peak_kib / 1024;
    if (ended_itself && !d->status)
        fell(j, "the daemon ended");
    else if (!stopped)
        fell(j, "the daemon did not end within %u s of SIGTERM", patience(STOP_SECONDS));
    judge_daemon(j, d);
    if (j->mib > most && !slow)
        fell(j, "the daemon took more than %ld MiB", most);
}

static void programs_end(struct bystander *programs, unsigned n, struct judgement *j,
                         bool may_be_told)
{
    struct report r;
    for (unsigned i = 0; i < n; i++) {
        bystander_end(&programs[i], patience(END_MS), &r);
        if (!r.well && !(may_be_told && r.told))
            fell(j, "one of %u programs: %s", n, r.text);
    }
}

static void begin(struct attackers *x, const struct attack *a, struct target *t)
{
    unsigned ms = a->ms && !quick ? a->ms : quick ? QUICK_MS : MS;
    ms += a->first ? FIRST_MS : 0;
    t->until_ns = now_ns() + (uint64_t)ms * 1000000;
    attackers_start(x, a, t);
}

static void judge_left(struct judgement *j, const struct daemon *d, unsigned n_descriptors)
{
    char text[160] = "";
    if (!left_nothing_inside(d, n_descriptors, patience(LEFT_MS), text, sizeof(text)))
        fell(j, "%s", text);
}

/* The attack itself, on a daemon that serves. */
static void assault(struct daemon *d, const struct attack *a, struct judgement *j)
{
    struct target *t = &d->target;
    struct bystander b, programs[MOST_PROGRAMS];
    struct newcomer middle = {0}, end = {0};
    struct attackers x;
    struct control control;
    struct report r;
    unsigned n = WS_MIN(a->n_programs, (unsigned)MOST_PROGRAMS),
             n_fds = left_descriptors(d) + (a->mock ? WORKER_FDS : 0);
    if (a->first) {
        begin(&x, a, t);
        attack_sleep_ms(FIRST_MS);
    }
    for (unsigned i = 0; i < n; i++)
        bystander_start(&programs[i], t, place, UID_PROGRAM + i, 0, PROGRAM_PERIOD_US);
    /* What a program takes of the machine to start is no delay of the daemon's. */
    for (unsigned i = 0; i < n; i++)
        if (!bystander_ready(&programs[i], patience(READY_MS)))
            fell(j, "one of %u programs did not start, before the attack", n);
    bystander_start(&b, t, place, UID_BYSTANDER, 0, PERIOD_US);
    if (!bystander_ready(&b, patience(READY_MS)))
        fell(j, "the bystander did not start, before the attack");
    t->bystander = b.pid;
    control_start(&control);
    daemon_turns_begin(d);
    if (!a->first)
        begin(&x, a, t);
    watch(d, &x, &middle);
    if (!d->ended) {
        come(&end, t);
        leave(&middle, a, j, a->may_be_told);
        leave(&end, a, j, false);
    }
    j->machine_ms = control_end(&control);
    daemon_look(d);
    if (d->ended) { /* which is why the others have no answers */
        j->why[0] = 0;
        judge_daemon(j, d);
        fell(j, "the daemon ended");
        leave(&middle, a, j, a->may_be_told);
    }
    bystander_end(&b, patience(END_MS), &r);
    judge_turns(j, d);
    judge_bystander(j, a, &r);
    programs_end(programs, n, j, a->may_be_told);
    for (unsigned i = 0; i < x.n; i++)
        if (x.won[i].text[0])
            fell(j, "%s", x.won[i].text);
    if (a->with_attackers)
        stop(d, a, j);
    attackers_end(&x);
    if (!d->ended)
        judge_left(j, d, n_fds);
}

static void run(const struct attack *a, struct judgement *j)
{
    struct daemon d;
    char text[160] = "";
    *j = (struct judgement){0};
    if (daemon_start(&d, a))
        assault(&d, a, j);
    else
        fell(j, "the daemon does not start");
    if (!d.ended || !a->with_attackers)
        stop(&d, a, j);
    if (!left_nothing_outside(text, sizeof(text)))
        fell(j, "%s", text);
    if (j->why[0] && getenv("ATTACK_KEEP"))
        printf("    kept: %s\n", d.target.dir);
    else
        daemon_remove(&d);
}

/* ---- the table ---- */

static bool wanted(const struct attack *a, char **names)
{
    if (!*names)
        return true;
    for (; *names; names++)
        if (!strcmp(*names, a->row) || !strcmp(*names, a->name))
            return true;
    return false;
}

static unsigned n_held, n_fell;

static void do_one(const struct attack *a)
{
    struct judgement j = {0};
    /* A machine with other work than this one makes calls late now and then; a daemon that is held
     * up does so each time. */
    unsigned tries = 0;
    do
        run(a, &j);
    while (++tries < TRIES && j.only_late);
    *(j.why[0] ? &n_fell : &n_held) += 1;
    printf("%-4s %-19s %-5s %8.2f %8.2f %8.2f %6ld  %s%s%s", a->row, a->name,
           j.why[0] ? "FELL" : "held", j.p99_ms, j.machine_ms, j.turn_ms, j.mib, a->what,
           j.why[0] ? ": " : "", j.why);
    printf(tries > 1 ? " (%u tries)\n" : "\n", tries);
    fflush(stdout);
}

static void list(void)
{
    for (size_t f = 0; f < WS_ARRAY_SIZE(families); f++)
        for (const struct attack *a = families[f]; a->name; a++)
            printf("%-4s %-19s %s\n", a->row, a->name, a->what);
}

int main(int argc, char **argv)
{
    char **names = argv + 1;
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && !strcmp(argv[1], "-l")) {
        list();
        return 0;
    }
    quick = argc > 1 && !strcmp(argv[1], "-q");
    names += quick;
    if (getuid()) {
        puts("skipped: this needs root, to be several users");
        return 77;
    }
    place = place_make();
    slow = place_sanitizer()[0] || place_daemon_build()[0] != '.';
    atexit(place_remove);
    printf("%-4s %-19s %-5s %8s %8s %8s %6s\n", "row", "attack", "", "p99 ms", "machine", "turn",
           "MiB");
    for (size_t f = 0; f < WS_ARRAY_SIZE(families); f++)
        for (const struct attack *a = families[f]; a->name; a++)
            if (wanted(a, names))
                do_one(a);
    printf("%u held, %u fell\n", n_held, n_fell);
    if (!(n_held + n_fell))
        return 2;
    return n_fell ? 1 : 0;
}
