// SPDX-License-Identifier: Apache-2.0
/* The device itself: opening, closing, its clock, and its telemetry.
 *
 * The device's clock is the host's, less the time at which the first worker's clock began; times
 * that workers report are converted to it. Energy and counts are sums over all workers that there
 * have been. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/packet.h"
#include "device/worker/proxy.h"

enum { PAGE_TRIES = 1000 }; /* to read the shared page while the worker does not write it */

uint64_t ws_proxy_number(void)
{
    static _Atomic uint64_t n;
    return atomic_fetch_add(&n, 1) + 1;
}

uint64_t ws_proxy_host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

void ws_proxy_not_before(struct ws_proxy *p, uint64_t ns)
{
    uint64_t last = p->last_ns;
    while (last < ns && !atomic_compare_exchange_weak(&p->last_ns, &last, ns))
        ;
}

static uint64_t now_ns(struct ws_device *d)
{
    struct ws_proxy *p = ws_proxy_of(d);
    ws_proxy_not_before(p, ws_proxy_host_ns() - p->epoch_ns);
    return p->last_ns;
}

static void telemetry(struct ws_device *d, struct ws_device_telemetry *ret)
{
    struct ws_proxy *p = ws_proxy_of(d);
    struct ws_wire_page *page = p->page;
    uint32_t seq;
    int tries = 0;
    pthread_mutex_lock(&p->ops_lock);
    do { /* a worker that died while it wrote leaves seq odd: the page is then read as it is */
        seq = atomic_load(&page->seq);
        *ret = page->telemetry;
    } while ((seq & 1 || atomic_load(&page->seq) != seq) && tries++ < PAGE_TRIES);
    const struct ws_device_telemetry *b = &p->before;
    ret->busy_ns += b->busy_ns;
    ret->sm_busy_ns += b->sm_busy_ns;
    ret->energy_uj += b->energy_uj;
    ret->n_kernels += b->n_kernels;
    ret->n_copies += b->n_copies;
    ret->copied_bytes += b->copied_bytes;
    ret->n_thread_insns += b->n_thread_insns;
    ret->idle_energy_uj += b->idle_energy_uj;
    if (!ret->power_mw)
        ret->power_mw = b->power_mw;
    pthread_mutex_unlock(&p->ops_lock);
    ret->now_ns = now_ns(d);
    ret->n_running = p->n_running;
    ret->memory_used_bytes = p->memory_used; /* the worker may not know yet of what was released */
}

/* Each worker can reach the memory of its own GPU only. */
static uint32_t peers(struct ws_device *d)
{
    return UINT32_C(1) << d->index;
}

static int alarm_at(struct ws_device *d, struct ws_alarm *a)
{
    return ws_alarms_add(&ws_proxy_of(d)->alarms, a);
}

static const struct ws_cuda_capabilities *capabilities(const struct ws_device *d)
{
    return &WS_CONTAINER_OF(d, const struct ws_proxy, base)->capabilities;
}

static void uuid(const struct ws_device *d, uint8_t ret[16])
{
    memcpy(ret, WS_CONTAINER_OF(d, const struct ws_proxy, base)->hello.uuid, 16);
}

static const char *lost(const struct ws_device *d)
{
    struct ws_proxy *p = WS_CONTAINER_OF(d, struct ws_proxy, base); /* for its lock */
    pthread_mutex_lock(&p->ops_lock);
    bool is = p->state == WS_PROXY_LOST;
    pthread_mutex_unlock(&p->ops_lock);
    return is ? p->lost_text : NULL; /* it does not change from then on */
}

static const struct ws_real_ops real_ops = {capabilities, uuid, ws_proxy_charge, lost};

/* There is no worker any more, so posts that are left come to nothing, and free what they have. */
static void end_poster(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->posts_lock);
    p->posts_end = true;
    pthread_cond_signal(&p->post_wake);
    pthread_mutex_unlock(&p->posts_lock);
    if (p->poster_on)
        pthread_join(p->poster, NULL);
}

static void proxy_close(struct ws_device *d)
{
    struct ws_proxy *p = ws_proxy_of(d);
    ws_proxy_peers_end();
    ws_alarms_close(&p->alarms);
    ws_proxy_stop(p);
    end_poster(p);
    ws_proxy_hosts_close(p);
    ws_proxy_loaders_end(p);
    ws_proxy_tables_free(p);
    if (p->page)
        munmap(p->page, sizeof(*p->page));
    if (p->page_fd >= 0)
        close(p->page_fd);
    if (p->program >= 0)
        close(p->program);
    free(p->answer);
    free(p);
}

const struct ws_device_ops ws_proxy_ops = {
    .name = "cuda",
    .close = proxy_close,
    .mem_alloc = ws_proxy_mem_alloc,
    .map = ws_proxy_map_memory,
    .unmap = ws_proxy_unmap_memory,
    .set_access = ws_proxy_set_access,
    .peers = peers,
    .place = ws_proxy_place,
    .host_register = ws_proxy_host_register,
    .host_unregister = ws_proxy_host_unregister,
    .module_load = ws_proxy_module_load,
    .module_unload = ws_proxy_module_unload,
    .instance_new = ws_proxy_instance_new,
    .instance_free = ws_proxy_instance_free,
    .instance_vars = ws_proxy_instance_vars,
    .submit = ws_proxy_submit,
    .cancel = ws_proxy_cancel,
    .telemetry = telemetry,
    .occupancy = ws_proxy_occupancy,
    .preempt = ws_proxy_preempt,
    .urge = ws_proxy_urge,
    .alarm = alarm_at,
    .now_ns = now_ns,
    .real = &real_ops,
};

static int set_config(struct ws_wire_config *c, int ordinal, uint32_t index,
                      const struct ws_cuda_options *o, struct ws_diags *diags)
{
    static const struct ws_cuda_options usual;
    o = o ? o : &usual;
    memset(c, 0, sizeof(*c));
    ws_wire_build(c->build);
    c->ordinal = ordinal;
    c->index = index;
    c->max_running = o->max_running;
    c->preemptible = o->preemptible;
    c->unfenced = o->unfenced;
    c->spin_ns = o->spin_ns;
    c->host_va = o->host_va;
    c->host_bytes = o->host_bytes;
    c->log_level = WS_INFO;
    const char *driver = o->driver_library ? o->driver_library : "",
               *nvml = o->nvml_library ? o->nvml_library : "";
    if (strlen(driver) >= sizeof(c->driver_library) || strlen(nvml) >= sizeof(c->nvml_library)) {
        ws_diags_add(diags, NULL, 0, 0, "cuda:%d: a library's path is too long", ordinal);
        return WS_CUDA_E_MISSING;
    }
    memcpy(c->driver_library, driver, strlen(driver));
    memcpy(c->nvml_library, nvml, strlen(nvml));
    return 0;
}

static void init_locks(struct ws_proxy *p)
{
    pthread_mutex_t *locks[] = {&p->ops_lock,      &p->calls_lock,  &p->posts_lock,
                                &p->question_lock, &p->tables_lock, &p->loaders_lock,
                                &p->regions_lock};
    for (size_t k = 0; k < WS_ARRAY_SIZE(locks); k++)
        pthread_mutex_init(locks[k], NULL);
    pthread_cond_init(&p->changed, NULL);
    pthread_cond_init(&p->sender_wake, NULL);
    pthread_cond_init(&p->post_wake, NULL);
    pthread_cond_init(&p->post_done, NULL);
    pthread_cond_init(&p->loader_free, NULL);
    struct ws_list *lists[] = {&p->ops,       &p->asks,    &p->posts,         &p->memories,
                               &p->instances, &p->regions, &p->posted_regions};
    for (size_t k = 0; k < WS_ARRAY_SIZE(lists); k++)
        ws_list_init(lists[k]);
    for (int k = 0; k < WS_PROXY_LOADERS; k++)
        p->loaders[k] = -1;
    p->ops_fd = p->calls_fd = p->program = p->page_fd = -1;
    p->question_fd = -EIO;
}

static int make_page(struct ws_proxy *p)
{
    p->page_fd = ws_packet_memfd("wattshare-gpu", sizeof(*p->page));
    if (p->page_fd < 0)
        return ws_forward(p->page_fd);
    int high = fcntl(p->page_fd, F_DUPFD_CLOEXEC, WS_PROXY_HIGH_FD);
    close(p->page_fd);
    p->page_fd = high;
    void *m = high < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE, MAP_SHARED, high, 0);
    if (m == MAP_FAILED)
        return ws_raise(-ENOMEM);
    p->page = m;
    return 0;
}

static int first_worker(struct ws_proxy *p, struct ws_diags *diags)
{
    p->open_diags = diags;
    if (pthread_create(&p->reader, NULL, ws_proxy_reader_main, p))
        return ws_raise(-EAGAIN);
    p->reader_on = true;
    pthread_mutex_lock(&p->ops_lock);
    while (!p->opened)
        pthread_cond_wait(&p->changed, &p->ops_lock);
    int r = p->open_result;
    pthread_mutex_unlock(&p->ops_lock);
    if (r)
        return r;
    p->base.spec = p->hello.spec;
    p->base.meter_update_ns = p->hello.meter_update_ns;
    p->base.no_machine_code = p->config.unfenced ? NULL : ws_cuda_no_machine_code;
    p->capabilities = p->hello.capabilities;
    p->capabilities.n = WS_MIN(p->capabilities.n, (uint32_t)WS_CUDA_MAX_CAPABILITIES);
    for (uint32_t k = 0; k < p->capabilities.n; k++) {
        p->hello.names[k][sizeof(p->hello.names[k]) - 1] = 0;
        p->capabilities.v[k].name = p->hello.names[k];
        if (!strcmp(p->hello.names[k], "isolation") && p->capabilities.v[k].yes)
            snprintf(
                p->capabilities.v[k].how, sizeof(p->capabilities.v[k].how), "%s",
                "kernels check their addresses; those that cannot be made to are refused. Other "
                "faults restart the GPU's worker");
    }
    return 0;
}

int ws_device_open_worker(struct ws_device **ret, int ordinal, uint32_t index,
                          const struct ws_cuda_options *options, struct ws_diags *diags)
{
    struct ws_proxy *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    init_locks(p);
    p->opener = pthread_self();
    p->base.ops = &ws_proxy_ops;
    p->base.plain_memory = true;
    p->base.index = index;
    p->patience_ns = options ? options->cancel_ns : 0;
    p->max_restarts = options && options->max_restarts
                          ? WS_MIN(options->max_restarts, (uint32_t)WS_PROXY_RESTARTS_LIMIT)
                          : WS_PROXY_RESTARTS_MAX;
    p->answer = ws_alloc(sizeof(*p->answer));
    if (p->answer)
        p->answer->fd = -1; /* it holds nothing */
    int r = p->answer ? set_config(&p->config, WS_MAX(ordinal, 0), index, options, diags) : -ENOMEM;
    if (!r && index >= WS_ACCESS_DEVICES)
        r = ws_raise(-EINVAL);
    if (!r) {
        p->program = ws_proxy_find_program(diags);
        r = p->program < 0 ? WS_CUDA_E_MISSING : make_page(p);
    }
    if (!r)
        r = first_worker(p, diags);
    if (!r) {
        ws_proxy_hosts_open(p);
        r = pthread_create(&p->sender, NULL, ws_proxy_sender_main, p) ? ws_raise(-EAGAIN) : 0;
        p->sender_on = !r;
    }
    if (!r) {
        r = pthread_create(&p->poster, NULL, ws_proxy_poster_main, p) ? ws_raise(-EAGAIN) : 0;
        p->poster_on = !r;
    }
    if (!r)
        r = ws_alarms_open(&p->alarms, &p->base);
    if (r) {
        proxy_close(&p->base);
        return r;
    }
    *ret = &p->base;
    return 0;
}

uint32_t ws_worker_count(const struct ws_cuda_options *options, struct ws_diags *diags)
{
    struct ws_wire_config c;
    struct ws_wire_hello h = {.count = 0};
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    int fd[2], page = ws_packet_memfd("wattshare-gpu", sizeof(struct ws_wire_page));
    int high = page < 0 ? -1 : fcntl(page, F_DUPFD_CLOEXEC, WS_PROXY_HIGH_FD);
    int program = m && high >= 0 && !set_config(&c, -1, 0, options, diags)
                      ? ws_proxy_find_program(diags)
                      : -1;
    int pid = program < 0 ? -1 : ws_proxy_spawn(program, &c, high, false, fd, m);
    if (pid > 0) {
        memcpy(&h, m->body, sizeof(h));
        ws_wire_get_diags(m->body + sizeof(h), m->head.bytes - sizeof(h), diags);
        ws_wire_done_with(m);
        close(fd[0]);
        close(fd[1]);
        (void)waitpid(pid, NULL, 0);
    } else if (program >= 0) {
        ws_diags_add(diags, NULL, 0, 0, "the GPU's worker does not start: %s", strerror(-pid));
    }
    if (program >= 0)
        close(program);
    if (high >= 0)
        close(high);
    if (page >= 0)
        close(page);
    free(m);
    return h.count;
}

bool ws_device_worker_status(struct ws_device *d, struct ws_worker_status *ret)
{
    if (d->ops != &ws_proxy_ops)
        return false;
    struct ws_proxy *p = ws_proxy_of(d);
    pthread_mutex_lock(&p->ops_lock);
    *ret = p->status;
    ret->preempt_ns = p->page->preempt_ns;
    ret->longest_preempt_ns = p->page->longest_preempt_ns;
    pthread_mutex_unlock(&p->ops_lock);
    ret->longest_wait_ns = p->longest_wait_ns;
    return true;
}
