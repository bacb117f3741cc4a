// SPDX-License-Identifier: Apache-2.0
// An ordinary CUDA program, by the driver API, that does one workload of the live experiments as often as it is told to and says on
// one line of JSON when each job was released, began and ended, by the device's clock, and whether its results were right.
//
//   program KIND [--blocks N] [--instances N] [--length N] [--seed N] [--jobs N | --for-ms MS] [--period-ms MS]
//           [--deadline-ms MS] [--offset-ms MS] [--before-ms MS] [--copy-kib N] [--warm N] [--wait] [--cpu]
//
// --warm: so many jobs first that are not reported.
// --wait: says "ready" once it could begin and waits for a line "go NS", the device's time from which offsets count (0: now).
// --cpu: the same on the host's processor, and the host's clock.
// Times are the device's. A job whose deadline has passed before it could begin is skipped, as in the simulator.
#include <errno.h>
#include <time.h>

#include "clock.h"
#include "drv.h"
#include "live.h"
#include "live_work.h"

#define NS_PER_MS 1e6

__asm__(".section .rodata\n.global live_ptx\nlive_ptx: .incbin \"" LIVE_PTX "\"\n.byte 0\n.previous\n");
extern const char live_ptx[];

struct job {
    uint64_t release_ns, start_ns, end_ns;
    bool skipped;
};
static struct options {
    double blocks, instances, length, seed, jobs, for_ms, period_ms, deadline_ms, offset_ms,
        before_ms, copy_kib, warm;
    bool wait, cpu;
} o = {.instances = 1, .seed = 1};
static const struct live_kind *kind;
static struct live_data w;
static CUfunction function;
static CUdeviceptr d_in, d_out, d_extra;
static unsigned shared_bytes;
static void *extra;
static struct job *jobs;
static size_t n_jobs, cap_jobs;
static unsigned n_wrong;

static void usage(const char *what)
{
    fprintf(stderr, "live program: %s; see bench/live/README.md\n", what);
    exit(2);
}

static double number(const char *name, const char *text)
{
    char *end;
    double v = text ? strtod(text, &end) : -1;
    if (!text || end == text || *end || !(v >= 0))
        usage(name);
    return v;
}

static void parse(int argc, char **argv)
{
    static const struct {
        const char *name;
        double *to;
    } numbers[] = {{"--blocks", &o.blocks},
                   {"--instances", &o.instances},
                   {"--length", &o.length},
                   {"--seed", &o.seed},
                   {"--jobs", &o.jobs},
                   {"--for-ms", &o.for_ms},
                   {"--period-ms", &o.period_ms},
                   {"--deadline-ms", &o.deadline_ms},
                   {"--offset-ms", &o.offset_ms},
                   {"--before-ms", &o.before_ms},
                   {"--copy-kib", &o.copy_kib},
                   {"--warm", &o.warm}};
    enum { N = sizeof numbers / sizeof *numbers };
    for (kind = live_kinds; argc > 1 && kind->name && strcmp(kind->name, argv[1]); kind++)
        ;
    if (argc < 2 || !kind->name)
        usage("the first argument is encryption, sorting, search, blackscholes, montecarlo or steps");
    for (int i = 2; i < argc; i++) {
        int k = 0;
        if (!strcmp(argv[i], "--wait"))
            o.wait = true;
        else if (!strcmp(argv[i], "--cpu"))
            o.cpu = true;
        else {
            while (k < N && strcmp(argv[i], numbers[k].name))
                k++;
            if (k == N)
                usage(argv[i]);
            *numbers[k].to = number(argv[i], argv[i + 1]);
            i++;
        }
    }
    if (!o.jobs && !o.for_ms)
        o.jobs = 1;
    if (o.for_ms && !o.period_ms && !o.jobs)
        o.jobs = 1e9;
}

// ---- data ----
static void make_data(void)
{
    w.seed = (uint64_t)o.seed;
    w.blocks = (uint32_t)((o.blocks > 0 ? o.blocks : kind->blocks) * o.instances);
    w.length = (uint32_t)(o.length > 0 ? o.length : kind->length);
    if (kind->place)
        w.length = (w.length + LIVE_UNROLL - 1) / LIVE_UNROLL * LIVE_UNROLL;
    w.in_bytes = kind->in_bytes ? kind->in_bytes * w.blocks : 8 * LIVE_RING;
    w.out_bytes = kind->out_bytes ? kind->out_bytes * w.blocks : w.in_bytes;
    w.in = work_alloc(w.in_bytes);
    w.out = work_alloc(w.out_bytes);
    w.want = work_alloc(w.out_bytes > w.in_bytes ? w.out_bytes : w.in_bytes);
    for (size_t i = 0; i < w.in_bytes; i += 4) {
        uint32_t r = (uint32_t)work_random(w.seed * 1000003 + i);
        memcpy((uint8_t *)w.in + i, &r, 4);
    }
    kind->make(&w);
}

static void answer(void)
{
    for (uint32_t b = 0; b < w.blocks; b++)
        kind->cpu(&w, b);
}

static bool right(void)
{
    if (kind->place)
        answer(); // another one each job
    return kind->same ? kind->same(&w) : !memcmp(w.out, w.want, w.out_bytes);
}

// ---- the device ----
static unsigned attribute(CUdevice d, int which)
{
    int v = 0;
    DRV(device_get_attribute(&v, which, d));
    return (unsigned)v;
}

/* So much that on no GPU do two blocks fit an SM. */
static unsigned lonely_bytes(void)
{
    enum { PER_BLOCK_OPTIN = 97, PER_SM = 81 };
    int n;
    unsigned need = 0, most = ~0u;
    DRV(device_get_count(&n));
    for (int i = 0; i < n; i++) {
        CUdevice d;
        DRV(device_get(&d, i));
        unsigned per_sm = attribute(d, PER_SM), optin = attribute(d, PER_BLOCK_OPTIN);
        need = per_sm / 2 + 256 > need ? per_sm / 2 + 256 : need;
        most = optin < most ? optin : most;
    }
    need = need / 256 * 256;
    if (need > most)
        usage("these GPUs have no size of shared memory that keeps a block alone on each");
    return need;
}

static void make_device(void)
{
    CUmodule m;
    drv_begin();
    DRV(module_load_data_ex(&m, live_ptx, 0, NULL, NULL));
    function = drv_function(m, kind->kernel);
    if (w.constant_name) {
        CUdeviceptr p;
        size_t bytes;
        DRV(module_get_global(&p, &bytes, m, w.constant_name));
        if (bytes != w.constant_bytes)
            usage("the PTX is another program's");
        DRV(memcpy_htod(p, w.constant, bytes));
    }
    if (kind->place) {
        shared_bytes = lonely_bytes();
        DRV(func_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               (int)shared_bytes));
    }
    DRV(mem_alloc(&d_in, w.in_bytes));
    if (kind->out_bytes)
        DRV(mem_alloc(&d_out, w.out_bytes));
    if (o.copy_kib > 0) {
        extra = work_alloc((size_t)(o.copy_kib * 1024));
        memset(extra, 1, (size_t)(o.copy_kib * 1024));
        DRV(mem_alloc(&d_extra, (size_t)(o.copy_kib * 1024)));
    }
    if (kind->place) {
        kind->place(&w, d_in);
        DRV(memcpy_htod(d_in, w.in, w.in_bytes));
    }
    DRV(ctx_synchronize());
}

static void launch(void)
{
    void *steps[] = {&d_in, &w.start, &w.length, &d_out}, *usual[] = {&d_in, &w.length, &d_out};
    DRV(launch_kernel(function, w.blocks, 1, 1, kind->threads, 1, 1, shared_bytes, NULL,
                      kind->place ? steps : usual, NULL));
}

static void on_device(void)
{
    if (extra)
        DRV(memcpy_htod(d_extra, extra, (size_t)(o.copy_kib * 1024)));
    if (!kind->place)
        DRV(memcpy_htod(d_in, w.in, w.in_bytes));
    if (kind->clear_out)
        DRV(memset_d8_async(d_out, 0, w.out_bytes, NULL));
    launch();
    DRV(memcpy_dtoh(w.out, kind->out_bytes ? d_out : d_in, w.out_bytes));
}

// ---- the host's processor, for comparison ----
static uint64_t host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_host(void)
{
    memcpy(w.want, w.in, w.in_bytes);
    answer();
}

// ---- jobs ----
static uint64_t now_ns(void)
{
    return o.cpu ? host_ns() : live_now_ns();
}

static struct job *add_job(void)
{
    if (n_jobs == cap_jobs) {
        cap_jobs = 2 * cap_jobs + 16;
        jobs = realloc(jobs, cap_jobs * sizeof *jobs);
        if (!jobs)
            usage("out of memory");
    }
    jobs[n_jobs] = (struct job){0};
    return &jobs[n_jobs++];
}

static void do_job(uint64_t release_ns)
{
    uint64_t deadline_ns = (uint64_t)(o.deadline_ms * NS_PER_MS), t = now_ns();
    struct job *j = add_job();
    j->release_ns = release_ns ? release_ns : t;
    j->start_ns = t;
    if (deadline_ns && t >= j->release_ns + deadline_ns) {
        j->skipped = true;
        return;
    }
    if (o.before_ms > 0)
        live_wait_until(t + (uint64_t)(o.before_ms * NS_PER_MS));
    if (o.cpu) {
        on_host();
    } else {
        w.start = (uint32_t)(7 * n_jobs % LIVE_RING);
        live_segment_begin(deadline_ns ? deadline_ns - (t - j->release_ns) : 0);
        on_device();
        live_segment_end();
    }
    j->end_ns = now_ns();
    if (!o.cpu && !right())
        n_wrong++;
}

static void do_jobs(uint64_t base_ns)
{
    double first = (double)base_ns + o.offset_ms * NS_PER_MS,
           end = (double)base_ns + o.for_ms * NS_PER_MS;
    for (double n = 0; !o.jobs || n < o.jobs; n++) {
        double release = first + n * o.period_ms * NS_PER_MS;
        if (o.for_ms > 0 && (o.period_ms > 0 ? release : (double)now_ns()) >= end)
            break;
        if (!o.cpu && (o.period_ms > 0 || n == 0))
            live_wait_until((uint64_t)release);
        do_job(o.period_ms > 0 ? (uint64_t)release : 0);
    }
}

static uint64_t wait_for_go(void)
{
    char line[64];
    unsigned long long ns;
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin) || sscanf(line, "go %llu", &ns) != 1)
        exit(3); // whoever started us is gone
    return ns;
}

static void report(void)
{
    unsigned n_missed = 0, n_skipped = 0;
    double deadline_ns = o.deadline_ms * NS_PER_MS;
    for (size_t i = 0; i < n_jobs; i++) {
        n_skipped += jobs[i].skipped;
        n_missed += jobs[i].skipped ||
                    (deadline_ns > 0 && (double)(jobs[i].end_ns - jobs[i].release_ns) > deadline_ns);
    }
    printf("{\"kind\": \"%s\", \"released\": %zu, \"missed\": %u, \"skipped\": %u, \"wrong\": %u, \"jobs\": [",
           kind->name, n_jobs, n_missed, n_skipped, n_wrong);
    for (size_t i = 0; i < n_jobs; i++)
        printf("%s[%llu, %llu, %llu]", i ? ", " : "", (unsigned long long)jobs[i].release_ns,
               (unsigned long long)jobs[i].start_ns, (unsigned long long)jobs[i].end_ns);
    printf("]}\n");
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    make_data();
    if (!o.cpu && !kind->place)
        answer();
    if (!o.cpu) {
        live_clock_init();
        make_device();
    }
    for (double n = 0; n < o.warm; n++)
        do_job(0);
    n_jobs = 0;
    uint64_t base_ns = o.wait ? wait_for_go() : 0;
    do_jobs(base_ns ? base_ns : now_ns());
    report();
    return n_wrong ? 1 : 0;
}
