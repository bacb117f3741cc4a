// SPDX-License-Identifier: Apache-2.0
// An ordinary CUDA program that uses the driver API. It does one workload of the live experiments
// as often as it is told to, and prints on one line of JSON when each job was released, began and
// ended by the device's clock, and whether its results were right.
//
//     program KIND[+KIND] [--blocks N] [--instances N] [--length N] [--seed N]
//             [--jobs N | --for-ms MS] [--period-ms MS] [--deadline-ms MS] [--offset-ms MS]
//             [--before-ms MS] [--copy-kib N] [--warm N] [--wait] [--cpu]
//             [--as NAME [--percents P,P,...]]
//
// KIND+KIND: search+blackscholes or encryption+montecarlo, instances of both in one launch, merged
// by hand. Those of the second kind are given by --instances2 and --length2.
//
// --as: the kernel is given this name, that of a profile which the software GPU follows.
// --percents: each job's kernel has the name NAME_P, with one of these P, drawn at random; NAME for
// P = 100.
//
// --warm: so many jobs are done first that are not reported.
//
// --wait: the program says "ready" once it can begin, and waits for a line "go NS", the device's
// time from which offsets count (0: now).
//
// --cpu: the same on the host's processor, by the host's clock.
//
// Times are the device's. A job whose deadline has passed before it could begin is skipped, as in
// the simulator.
#include <errno.h>
#include <time.h>

#include "clock.h"
#include "drv.h"
#include "live.h"
#include "live_work.h"

#define NS_PER_MS 1e6

__asm__(".section .rodata\n.global live_ptx\nlive_ptx: .incbin \"" LIVE_PTX
        "\"\n.byte 0\n.previous\n");
extern const char live_ptx[];

struct job {
    uint64_t release_ns, start_ns, end_ns;
    bool skipped;
};
static struct options {
    double blocks, instances, length, seed, jobs, for_ms, period_ms, deadline_ms, offset_ms,
        before_ms, copy_kib, warm, instances2, length2;
    bool wait, cpu;
    const char *as, *percents;
} o = {.instances = 1, .seed = 1, .instances2 = 1};
static struct work { // one, or the two of a launch merged by hand
    const struct live_kind *kind;
    struct live_data w;
    CUdeviceptr d_in, d_out;
} works[2];
static int n_works;
static char kernel[64], name[64];
enum { FUNCTIONS_MAX = 8 };
static CUfunction functions[FUNCTIONS_MAX]; // one is drawn for each job
static unsigned n_functions;
static CUdeviceptr d_extra;
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

static bool find_kinds(const char *text)
{
    snprintf(name, sizeof(name), "%s", text);
    strcpy(kernel, "live");
    for (const char *p = text; n_works < 2; p += strcspn(p, "+") + 1) {
        size_t n = strcspn(p, "+");
        const struct live_kind *k = live_kinds;
        while (k->name && (strlen(k->name) != n || strncmp(k->name, p, n)))
            k++;
        if (!k->name)
            return false;
        works[n_works++].kind = k;
        snprintf(kernel + strlen(kernel), sizeof(kernel) - strlen(kernel), "_%s", k->name);
        if (!p[n])
            return true;
    }
    return false;
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
                   {"--warm", &o.warm},
                   {"--instances2", &o.instances2},
                   {"--length2", &o.length2}};
    enum { N = sizeof(numbers) / sizeof(*numbers) };
    if (argc < 2 || !find_kinds(argv[1]))
        usage(
            "the first argument is encryption, sorting, search, blackscholes, montecarlo or steps");
    for (int i = 2; i < argc; i++) {
        int k = 0;
        if (!strcmp(argv[i], "--wait"))
            o.wait = true;
        else if (!strcmp(argv[i], "--cpu"))
            o.cpu = true;
        else if (!strcmp(argv[i], "--as") && argv[i + 1])
            o.as = argv[++i];
        else if (!strcmp(argv[i], "--percents") && argv[i + 1])
            o.percents = argv[++i];
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
static void make_data(struct work *k, double blocks, double instances, double length)
{
    struct live_data *w = &k->w;
    w->seed = (uint64_t)o.seed;
    w->blocks = (uint32_t)((blocks > 0 ? blocks : k->kind->blocks) * instances);
    w->length = (uint32_t)(length > 0 ? length : k->kind->length);
    if (k->kind->place)
        w->length = (w->length + LIVE_UNROLL - 1) / LIVE_UNROLL * LIVE_UNROLL;
    w->in_bytes = k->kind->in_bytes ? k->kind->in_bytes * w->blocks : 8 * LIVE_RING;
    w->out_bytes = k->kind->out_bytes ? k->kind->out_bytes * w->blocks : w->in_bytes;
    w->in = work_alloc(w->in_bytes);
    w->out = work_alloc(w->out_bytes);
    w->want = work_alloc(w->out_bytes > w->in_bytes ? w->out_bytes : w->in_bytes);
    for (size_t i = 0; i < w->in_bytes; i += 4) {
        uint32_t r = (uint32_t)work_random(w->seed * 1000003 + i);
        memcpy((uint8_t *)w->in + i, &r, 4);
    }
    k->kind->make(w);
}

static void answer(struct work *k)
{
    for (uint32_t b = 0; b < k->w.blocks; b++)
        k->kind->cpu(&k->w, b);
}

static bool right(struct work *k)
{
    if (k->kind->place)
        answer(k); // another one each job
    return k->kind->same ? k->kind->same(&k->w) : !memcmp(k->w.out, k->w.want, k->w.out_bytes);
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

static void make_work(CUmodule m, struct work *k)
{
    struct live_data *w = &k->w;
    if (w->constant_name) {
        CUdeviceptr p;
        size_t bytes;
        DRV(module_get_global(&p, &bytes, m, w->constant_name));
        if (bytes != w->constant_bytes)
            usage("the PTX is another program's");
        DRV(memcpy_htod(p, w->constant, bytes));
    }
    DRV(mem_alloc(&k->d_in, w->in_bytes));
    if (k->kind->out_bytes)
        DRV(mem_alloc(&k->d_out, w->out_bytes));
    if (!k->kind->place)
        return;
    shared_bytes = lonely_bytes();
    for (unsigned i = 0; i < n_functions; i++)
        DRV(func_set_attribute(functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               (int)shared_bytes));
    k->kind->place(w, k->d_in);
    DRV(memcpy_htod(k->d_in, w->in, w->in_bytes));
}

// The kernels, with that of this program under the name @as.
static char *renamed(const char *as)
{
    size_t n = strlen(live_ptx), from = strlen(kernel), to = strlen(as);
    char *text = work_alloc(n * (to > from ? to : from) / from + to + 1), *out = text;
    for (const char *p = live_ptx; *p;) {
        const char *next = strstr(p, kernel);
        size_t before = next ? (size_t)(next - p) : strlen(p);
        memcpy(out, p, before);
        out += before;
        p += before;
        if (!next)
            break;
        memcpy(out, as, to);
        out += to;
        p += from;
    }
    *out = 0;
    return text;
}

static CUmodule load(const char *as)
{
    CUmodule m;
    if (n_functions == FUNCTIONS_MAX)
        usage("--percents: too many");
    char *text = as ? renamed(as) : NULL;
    DRV(module_load_data_ex(&m, text ? text : live_ptx, 0, NULL, NULL));
    free(text);
    functions[n_functions++] = drv_function(m, as ? as : kernel);
    return m;
}

static CUmodule load_percents(void)
{
    CUmodule m = NULL;
    char as[128];
    for (const char *p = o.percents; *p; p += strspn(p, ",")) {
        char *end;
        long percent = strtol(p, &end, 10);
        if (end == p || percent < 1)
            usage("--percents");
        snprintf(as, sizeof(as), percent == 100 ? "%s" : "%s_%ld", o.as, percent);
        m = load(as);
        p = end;
    }
    return m;
}

static void make_device(void)
{
    drv_begin();
    CUmodule m = o.as && o.percents ? load_percents() : load(o.as);
    if (!m)
        usage("--percents");
    for (int i = 0; i < n_works; i++)
        make_work(m, &works[i]);
    if (o.copy_kib > 0) {
        extra = work_alloc((size_t)(o.copy_kib * 1024));
        memset(extra, 1, (size_t)(o.copy_kib * 1024));
        DRV(mem_alloc(&d_extra, (size_t)(o.copy_kib * 1024)));
    }
    DRV(ctx_synchronize());
}

static void launch(void)
{
    struct work *a = &works[0], *b = &works[1];
    void *steps[] = {&a->d_in, &a->w.start, &a->w.length, &a->d_out},
         *usual[] = {&a->d_in, &a->w.length, &a->d_out},
         *both[] = {&a->w.blocks, &a->d_in,     &a->w.length, &a->d_out,
                    &b->d_in,     &b->w.length, &b->d_out};
    unsigned which = (unsigned)(work_random((uint64_t)o.seed * 1000003 + n_jobs) % n_functions);
    DRV(launch_kernel(functions[which], a->w.blocks + b->w.blocks, 1, 1, a->kind->threads, 1, 1,
                      shared_bytes, NULL,
                      n_works == 2     ? both
                      : a->kind->place ? steps
                                       : usual,
                      NULL));
}

static void on_device(void)
{
    if (extra)
        DRV(memcpy_htod(d_extra, extra, (size_t)(o.copy_kib * 1024)));
    for (struct work *k = works; k < works + n_works; k++) {
        if (!k->kind->place)
            DRV(memcpy_htod(k->d_in, k->w.in, k->w.in_bytes));
        if (k->kind->clear_out)
            DRV(memset_d8_async(k->d_out, 0, k->w.out_bytes, NULL));
    }
    launch();
    for (struct work *k = works; k < works + n_works; k++)
        DRV(memcpy_dtoh(k->w.out, k->kind->out_bytes ? k->d_out : k->d_in, k->w.out_bytes));
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
    for (struct work *k = works; k < works + n_works; k++) {
        memcpy(k->w.want, k->w.in, k->w.in_bytes);
        answer(k);
    }
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
        jobs = realloc(jobs, cap_jobs * sizeof(*jobs));
        if (!jobs)
            usage("out of memory");
    }
    jobs[n_jobs] = (struct job){0};
    return &jobs[n_jobs++];
}

static void do_job(uint64_t release_ns)
{
    uint64_t deadline_ns = (uint64_t)(o.deadline_ms * NS_PER_MS), t = now_ns(), end_ns = 0;
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
        works[0].w.start = (uint32_t)(7 * n_jobs % LIVE_RING);
        live_job_begin(deadline_ns ? deadline_ns - (t - j->release_ns) : 0);
        on_device();
        end_ns = live_job_end();
    }
    j->end_ns = end_ns ? end_ns : now_ns();
    for (int i = 0; i < n_works && !o.cpu; i++)
        if (!right(&works[i])) {
            n_wrong++;
            break;
        }
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
    if (!fgets(line, sizeof(line), stdin) || sscanf(line, "go %llu", &ns) != 1)
        exit(3); // whoever started us is gone
    return ns;
}

static void report(void)
{
    unsigned n_missed = 0, n_skipped = 0;
    double deadline_ns = o.deadline_ms * NS_PER_MS;
    for (size_t i = 0; i < n_jobs; i++) {
        n_skipped += jobs[i].skipped;
        n_missed +=
            jobs[i].skipped ||
            (deadline_ns > 0 && (double)(jobs[i].end_ns - jobs[i].release_ns) > deadline_ns);
    }
    printf("{\"kind\": \"%s\", \"released\": %zu, \"missed\": %u, \"skipped\": %u, \"wrong\": %u, "
           "\"jobs\": [",
           name, n_jobs, n_missed, n_skipped, n_wrong);
    for (size_t i = 0; i < n_jobs; i++)
        printf("%s[%llu, %llu, %llu]", i ? ", " : "", (unsigned long long)jobs[i].release_ns,
               (unsigned long long)jobs[i].start_ns, (unsigned long long)jobs[i].end_ns);
    printf("]}\n");
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    make_data(&works[0], o.blocks, o.instances, o.length);
    if (n_works == 2)
        make_data(&works[1], 0, o.instances2, o.length2);
    for (int i = 0; i < n_works; i++)
        if (!o.cpu && !works[i].kind->place)
            answer(&works[i]);
    if (!o.cpu) {
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
