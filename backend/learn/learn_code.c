// SPDX-License-Identifier: Apache-2.0
/* What a kernel's code tells before it ever ran: the name under which its profiles are kept, and
 * how many instructions its text has. This is made when the module is loaded, by the loader
 * thread, because hashing and counting may take longer than a launch. */
#include "backend/learn/learn_private.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/kernel_hash.h"

/* Loops whose trips the text doesn't tell: less than the counter's own guess, since the kernels
 * of tests/cuda make 3 on the (geometric) average, grid-stride loops often less than one. */
static const struct ws_ptx_count_options count_options = {.loop_trips = 3};

/* Devices tell of kernels in the module's order, so each is looked for behind the last one. */
static const struct ws_ptx_func *find_entry(const struct ws_ptx_module *m, const char *name,
                                            uint32_t *io_next)
{
    for (uint32_t n = 0; n < m->n_funcs; n++) {
        uint32_t i = *io_next;
        *io_next = i + 1 < m->n_funcs ? i + 1 : 0;
        if (m->funcs[i].is_entry && !m->funcs[i].is_decl && !strcmp(m->funcs[i].name, name))
            return &m->funcs[i];
    }
    return NULL;
}

static void copy_name(char to[static WS_PROFILE_NAME_BYTES], const char *name)
{
    size_t n = strnlen(name, WS_PROFILE_NAME_BYTES - 1);
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)name[i] < 32 || name[i] == 127 ? '?' : name[i];
    to[n] = 0;
}

int ws_learn_code_new(struct ws_learn_code **ret, const struct ws_ptx_module *m,
                      const struct ws_dmodule_info *info, uint32_t n_kernels)
{
    struct ws_learn_code *c = ws_alloc(sizeof(*c));
    struct ws_ptx_counter *counter = NULL;
    struct ws_ptx_reach reach = {0};
    uint32_t next = 0;
    int r = c ? ws_ptx_counter_new(&counter, m, &count_options) : ws_raise(-ENOMEM);
    if (!r)
        r = ws_ptx_reach_init(&reach, m);
    if (!r && !(c->kernels = ws_alloc_array(n_kernels ? n_kernels : 1, sizeof(*c->kernels))))
        r = ws_raise(-ENOMEM);
    for (uint32_t i = 0; i < n_kernels && !r; i++) {
        struct ws_learn_kernel *k = &c->kernels[i];
        const struct ws_kernel_info *of = &info->kernels[i];
        const struct ws_ptx_func *f = find_entry(m, of->name, &next);
        c->n_kernels++;
        if (!f || of->unsupported)
            continue;
        r = ws_kernel_hash_of(&reach, f, k->hash);
        copy_name(k->name, of->name);
        if (!r)
            r = ws_ptx_counter_count(counter, f, &k->counts);
        k->counted = !r;
        k->n_regs = of->n_regs;
        k->static_shared_bytes = of->static_shared_bytes;
    }
    ws_ptx_counter_free(counter);
    ws_ptx_reach_deinit(&reach);
    if (r) {
        ws_learn_code_free(c);
        return ws_forward(r);
    }
    *ret = c;
    return 0;
}

struct ws_learn_code *ws_learn_code_free(struct ws_learn_code *c)
{
    if (c)
        free(c->kernels);
    free(c);
    return NULL;
}

const struct ws_learn_kernel *ws_learn_code_kernel(const struct ws_learn_code *c, uint32_t index)
{
    return c && index < c->n_kernels && c->kernels[index].hash[0] ? &c->kernels[index] : NULL;
}
