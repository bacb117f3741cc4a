// SPDX-License-Identifier: Apache-2.0
/* Modules: the daemon sends their text, and the worker compiles it. Several may be compiled at
 * once, each on a loader: a connection of its own, made when first needed. A worker gets a module
 * when the program loads it on this GPU, or with the first instance of it or the first question
 * about it. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/proxy.h"
#include "ptx/analysis/reach.h"

/* ---- loaders ---- */

/* A new connection, whose other end is sent to the worker. calls_lock held. Return: descriptor,
 * -EIO (the worker has ended), or negative errno. */
static int connect_loader(struct ws_proxy *p)
{
    int s[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
        return ws_raise(-errno);
    int r = p->calls_fd < 0 ? -EIO
                            : ws_wire_send(p->calls_fd, ws_wire_head_of(WS_WIRE_LOADER, 0),
                                           WS_PART_NONE, WS_PART_NONE, s[1], 0);
    close(s[1]);
    if (!r)
        return s[0];
    close(s[0]);
    return -EIO;
}

/* Waits for a loader that no other thread uses. Return: its index. */
static int loader_take(struct ws_proxy *p)
{
    int k = 0;
    pthread_mutex_lock(&p->loaders_lock);
    for (;;) {
        for (k = 0; k < WS_PROXY_LOADERS && p->loader_busy[k]; k++)
            ;
        if (k < WS_PROXY_LOADERS)
            break;
        pthread_cond_wait(&p->loader_free, &p->loaders_lock);
    }
    p->loader_busy[k] = true;
    pthread_mutex_unlock(&p->loaders_lock);
    return k;
}

static void loader_give(struct ws_proxy *p, int k)
{
    pthread_mutex_lock(&p->loaders_lock);
    p->loader_busy[k] = false;
    pthread_cond_signal(&p->loader_free);
    pthread_mutex_unlock(&p->loaders_lock);
}

void ws_proxy_loaders_end(struct ws_proxy *p)
{
    for (int k = 0; k < WS_PROXY_LOADERS; k++)
        if (p->loaders[k] >= 0)
            close(p->loaders[k]);
}

static enum ws_wire_code code_of(const struct ws_dmodule *m)
{
    if (m->machine)
        return WS_WIRE_CODE_MACHINE;
    return m->fenced ? WS_WIRE_CODE_FENCED : WS_WIRE_CODE_PTX;
}

static int exchange(int fd, const struct ws_dmodule *m, struct ws_wire_message *answer)
{
    struct ws_wire_head head = ws_wire_head_of(WS_WIRE_LOAD, m->id);
    head.value = code_of(m);
    int r =
        ws_wire_send(fd, head, (struct ws_wire_part){m->text, m->text_len}, WS_PART_NONE, -1, 0);
    return r ? r : ws_wire_recv(fd, answer);
}

/* Whether @r, of a connection to the worker, says that the worker has ended. */
static bool has_ended(int64_t r)
{
    return r == -EIO || r == -EPIPE || r == -ECONNRESET;
}

/* Has @m loaded by the worker, or by the next one if it ends. *ret_generation: of the worker that
 * answered. Return: its result, or -EIO: the GPU is lost, or there is no connection. */
static int64_t ask(struct ws_proxy *p, const struct ws_dmodule *m, struct ws_wire_message *answer,
                   uint32_t *ret_generation)
{
    int k = loader_take(p), r;
    do {
        r = ws_proxy_calls_begin(p);
        if (r)
            break;
        *ret_generation = p->generation;
        if (p->loaders[k] >= 0 && p->loader_generation[k] != p->generation) {
            close(p->loaders[k]);
            p->loaders[k] = -1;
        }
        if (p->loaders[k] < 0) {
            p->loaders[k] = connect_loader(p);
            p->loader_generation[k] = p->generation;
        }
        ws_proxy_calls_end(p);
        r = p->loaders[k] < 0 ? p->loaders[k] : exchange(p->loaders[k], m, answer);
    } while (has_ended(r) && ws_proxy_await(p, *ret_generation));
    loader_give(p, k);
    return r ? -EIO : answer->head.value;
}

/* ---- modules ---- */

/* Notes that the worker of @generation has @m. Module lock held. */
static void set_loaded(struct ws_proxy *p, struct ws_dmodule *m, uint32_t generation)
{
    m->loaded[p->base.index] = p;
    m->generation[p->base.index] = generation;
}

/* Whether the worker of @generation has @m. */
static bool is_loaded(const struct ws_proxy *p, const struct ws_dmodule *m, uint32_t generation)
{
    return m->loaded[p->base.index] == p && m->generation[p->base.index] == generation;
}

bool ws_proxy_module_is_here(const struct ws_proxy *p, const struct ws_dmodule *m)
{
    return is_loaded(p, m, p->generation);
}

int ws_proxy_module_here(struct ws_proxy *p, struct ws_dmodule *m)
{
    pthread_mutex_lock(&m->lock);
    int64_t r = 0;
    if (!ws_proxy_module_is_here(p, m)) {
        struct ws_wire_message *answer = ws_alloc(sizeof(*answer));
        uint32_t generation;
        r = answer ? ask(p, m, answer, &generation) : -ENOMEM;
        if (answer && r != -EIO)
            ws_wire_done_with(answer);
        if (!r)
            set_loaded(p, m, generation);
        free(answer);
    }
    pthread_mutex_unlock(&m->lock);
    return (int)r;
}

/* Without the module lock: its holder may be waiting for the reader, which calls this. The worker
 * that is being started will have the next generation. */
int ws_proxy_module_restore(struct ws_proxy *p, struct ws_dmodule *m)
{
    uint32_t next = p->generation + 1;
    if (is_loaded(p, m, next))
        return 0;
    struct ws_wire_message *answer = ws_alloc(sizeof(*answer));
    int fd = answer ? connect_loader(p) : -ENOMEM;
    int r = fd < 0 ? fd : exchange(fd, m, answer);
    if (!r) {
        if (answer->head.value)
            ws_log(WS_ERROR, "worker: gpu=%u a module cannot be loaded by the new worker",
                   p->base.index);
        else
            set_loaded(p, m, next);
        ws_wire_done_with(answer);
    }
    if (fd >= 0)
        close(fd);
    free(answer);
    return r;
}

static int list_kernels(struct ws_dmodule *m, const struct ws_ptx_module *ptx)
{
    size_t n = ptx->n_funcs + (size_t)1;
    m->kernels = ws_alloc_array(n, sizeof(*m->kernels));
    m->why = ws_alloc_array(n, sizeof(*m->why));
    if (!m->kernels || !m->why)
        return ws_raise(-ENOMEM);
    for (uint32_t f = 0; f < ptx->n_funcs; f++) {
        const struct ws_ptx_func *e = &ptx->funcs[f];
        if (e->is_entry && !e->is_decl)
            m->kernels[m->info.n_kernels++] = ws_kernel_info_of(ptx, e);
    }
    m->info.kernels = m->kernels;
    m->info.n_vars = ptx->n_vars;
    m->info.vars = ptx->vars;
    return 0;
}

static int read_kernel(struct ws_dmodule *m, uint32_t k, const uint8_t **io_p, uint64_t *io_left)
{
    struct ws_kernel_info *i = &m->kernels[k];
    struct ws_wire_kernel q;
    if (*io_left < sizeof(q))
        return ws_raise(-EPROTO);
    memcpy(&q, *io_p, sizeof(q));
    *io_p += sizeof(q);
    *io_left -= sizeof(q);
    if (q.why_bytes > *io_left)
        return ws_raise(-EPROTO);
    i->static_shared_bytes = q.static_shared_bytes;
    i->local_bytes = q.local_bytes;
    i->n_regs = q.n_regs;
    i->max_threads_per_block = q.max_threads_per_block;
    i->const_bytes = q.const_bytes;
    i->uses_heap = q.uses_heap;
    i->prints = q.prints;
    if (!q.supported) {
        m->why[k] = strndup((const char *)*io_p, q.why_bytes);
        if (!m->why[k])
            return ws_raise(-ENOMEM);
        i->unsupported = m->why[k];
        i->unsupported_code = q.unsupported_code;
    }
    *io_p += q.why_bytes;
    *io_left -= q.why_bytes;
    return 0;
}

static int read_answer(struct ws_dmodule *m, const struct ws_wire_message *a,
                       struct ws_diags *diags)
{
    struct ws_wire_loaded l;
    if (!ws_wire_take(a, &l, sizeof(l)) || l.n_kernels != m->info.n_kernels)
        return ws_raise(-EPROTO);
    const uint8_t *p = a->body + sizeof(l);
    uint64_t left = a->head.bytes - sizeof(l);
    int r = 0;
    for (uint32_t k = 0; !r && k < l.n_kernels; k++)
        r = read_kernel(m, k, &p, &left);
    if (!r)
        ws_wire_get_diags(p, left, diags);
    return r;
}

/* Why the driver refused machine code, as far as the answer says. */
static void read_refusal(const struct ws_wire_message *a, struct ws_diags *diags)
{
    size_t head = sizeof(struct ws_wire_loaded);
    if (a->head.bytes > head)
        ws_wire_get_diags(a->body + head, a->head.bytes - head, diags);
}

static int get_text(struct ws_dmodule *m, const struct ws_ptx_module *ptx)
{
    m->machine = ptx->code;
    m->info.own_vars = ptx->code && ptx->n_vars;
    m->text_len = ptx->code_bytes;
    m->text = m->machine ? ws_alloc(ptx->code_bytes) : ws_ptx_print_text(ptx, &m->text_len);
    if (m->machine && m->text)
        memcpy(m->text, ptx->code, ptx->code_bytes);
    return m->text ? 0 : ws_raise(-ENOMEM);
}

void ws_proxy_module_unref(struct ws_dmodule *m)
{
    if (--m->n_refs)
        return;
    for (uint32_t k = 0; m->why && k < m->info.n_kernels; k++)
        free(m->why[k]);
    pthread_mutex_destroy(&m->lock);
    free(m->why);
    free(m->addresses);
    free(m->kernels);
    free(m->text);
    free(m);
}

int ws_proxy_module_load(struct ws_device *d, const struct ws_ptx_module *ptx,
                         struct ws_dmodule **ret, struct ws_diags *diags)
{
    struct ws_proxy *p = ws_proxy_of(d);
    struct ws_dmodule *m = ws_alloc(sizeof(*m));
    struct ws_wire_message *answer = ws_alloc(sizeof(*answer));
    uint32_t generation = 0;
    if (!m || !answer) {
        free(m);
        free(answer);
        return ws_raise(-ENOMEM);
    }
    m->n_refs = 1;
    m->id = ws_proxy_number();
    pthread_mutex_init(&m->lock, NULL);
    m->fenced = ptx->fenced;
    int64_t r = list_kernels(m, ptx);
    m->addresses = ws_alloc_array(m->info.n_kernels + (size_t)1, sizeof(*m->addresses));
    if (!r)
        r = m->addresses ? ws_ptx_function_addresses(ptx, m->addresses) : ws_raise(-ENOMEM);
    if (!r)
        r = get_text(m, ptx);
    if (!r) {
        r = ask(p, m, answer, &generation);
        if (!r)
            r = read_answer(m, answer, diags);
        else if (r > 0 && m->machine)
            read_refusal(answer, diags);
        if (r != -EIO)
            ws_wire_done_with(answer);
    }
    free(answer);
    if (r) {
        r = r > 0 && m->machine ? r : ws_raise(-ENOMEM);
        ws_proxy_module_unref(m);
        return (int)r;
    }
    set_loaded(p, m, generation);
    *ret = m;
    return 0;
}

void ws_proxy_module_unload(struct ws_dmodule *m)
{
    for (uint32_t k = 0; k < WS_ACCESS_DEVICES; k++)
        if (m->loaded[k])
            ws_proxy_tell_open(m->loaded[k], ws_wire_head_of(WS_WIRE_MODULE_FREE, m->id));
    ws_proxy_module_unref(m);
}

/* ---- questions ----
 *
 * They have a loader's connection of their own, whose thread waits for no other: the loop waits for
 * the answer. */

void ws_proxy_question_close(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->question_lock);
    if (p->question_fd >= 0)
        close(p->question_fd);
    p->question_fd = -EIO;
    pthread_mutex_unlock(&p->question_lock);
}

void ws_proxy_question_open(struct ws_proxy *p)
{
    ws_proxy_question_close(p);
    int fd = connect_loader(p);
    pthread_mutex_lock(&p->question_lock);
    p->question_fd = fd;
    p->question_generation = p->generation + 1;
    pthread_mutex_unlock(&p->question_lock);
}

/* Return: the answer's value; WS_PROXY_ENDED: the worker has ended; or -EIO: the answer is shorter
 * than @bytes, or there is no connection. question_lock held. */
static int64_t question(struct ws_proxy *p, struct ws_wire_head head, struct ws_wire_part body,
                        void *ret, size_t bytes)
{
    struct ws_wire_message *a = ws_alloc(sizeof(*a));
    int64_t r = !a ? -ENOMEM : p->question_fd < 0 ? p->question_fd : 0;
    if (!r)
        r = ws_wire_send(p->question_fd, head, body, WS_PART_NONE, -1, 0);
    if (!r)
        r = ws_wire_recv(p->question_fd, a);
    if (r) {
        r = has_ended(r) ? WS_PROXY_ENDED : -EIO;
    } else {
        r = ws_wire_take(a, ret, bytes) ? a->head.value : -EIO;
        ws_wire_done_with(a);
    }
    free(a);
    return r;
}

/* The worker may have been started after @m was told to the one before. */
static int64_t ask_occupancy(struct ws_proxy *p, const struct ws_dmodule *m,
                             struct ws_wire_occupancy *io)
{
    pthread_mutex_lock(&p->question_lock);
    int64_t r =
        is_loaded(p, m, p->question_generation)
            ? question(p, ws_wire_head_of(WS_WIRE_OCCUPANCY, m->id), WS_PART(*io), io, sizeof(*io))
            : WS_PROXY_ENDED;
    pthread_mutex_unlock(&p->question_lock);
    return r;
}

int ws_proxy_occupancy(struct ws_device *d, const struct ws_dmodule *cm, uint32_t kernel,
                       uint32_t threads, uint32_t shared_bytes, struct ws_occupancy *ret)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    /* only the note of where it is loaded may change */
    struct ws_dmodule *m = (struct ws_dmodule *)cm;
    struct ws_wire_occupancy q = {
        .kernel = kernel, .threads = threads, .shared_bytes = shared_bytes};
    uint32_t generation;
    int64_t r;
    do { /* of the worker, or of the next one if it ends */
        generation = p->generation;
        r = ws_proxy_module_here(p, m);
        r = r ? r : ask_occupancy(p, m, &q);
    } while (r == WS_PROXY_ENDED && ws_proxy_await(p, generation));
    if (r)
        return ws_raise(-EINVAL);
    *ret = (struct ws_occupancy){.blocks_per_sm = q.blocks_per_sm,
                                 .limit = ws_wire_limits[q.limit % WS_ARRAY_SIZE(ws_wire_limits)]};
    return 0;
}

bool ws_proxy_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    pthread_mutex_lock(&p->question_lock);
    int64_t r =
        question(p, ws_wire_head_of(WS_WIRE_CHARGE, ns), WS_PART_NONE, ret_uj, sizeof(*ret_uj));
    pthread_mutex_unlock(&p->question_lock);
    return r == 1;
}
