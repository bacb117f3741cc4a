// SPDX-License-Identifier: Apache-2.0
/* Modules and instances.
 *
 * A module is printed as PTX, and the driver compiles it. Code that names no variables in memory is
 * compiled once for each device and shared by all instances; other code is compiled for each
 * instance, for the addresses of its variables (bake.c).
 *
 * An instance's own code is compiled on the compiler thread, as soon as the instance is there: to
 * load code, the driver may wait for all kernels that run, and one of them may wait for the launch
 * that needs the code. If initial values of variables hold addresses of functions, it is compiled
 * with the instance.
 *
 * Other forms (code.h) are made in the same way when a launch first needs them. In one, kernels
 * take their blocks from a counter, so they can be kept to a set of SMs and stopped at a block
 * boundary (ptx/passes/pass.h). Another is for blocks that are too large for the registers which a
 * kernel needs with what was added to it. All work on the same variables, since their addresses are
 * numbers.
 *
 * Machine code has one form, loaded as it is (machine.c).
 *
 * Messages of the driver's compiler go to the diagnostics. A module that it refuses has no kernel
 * that can be launched. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/launch_check.h"
#include "device/cuda/cuda_private.h"
#include "device/soft/timeline/occupancy.h"
#include "ptx/analysis/reach.h"
#include "ptx/passes/devlib.h"

enum { JIT_LOG_BYTES = 8192 };
/* The address of variables that no instance has placed yet: such code is compiled only to learn its
 * properties. */
#define NOWHERE UINT64_C(0x200000000000)

/* ---- compiling ---- */

static ws_cu_result load_text(struct ws_cuda *d, const char *text, ws_cu_module *ret,
                              struct ws_diags *diags)
{
    char error[JIT_LOG_BYTES] = "", info[JIT_LOG_BYTES] = "", name[64];
    int options[] = {WS_CU_JIT_ERROR_LOG_BUFFER, WS_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                     WS_CU_JIT_INFO_LOG_BUFFER, WS_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)sizeof(error), info, (void *)sizeof(info)};
    ws_cu_result r = WS_CU(d, cuModuleLoadDataEx, ret, text, 4, options, values);
    error[sizeof(error) - 1] = info[sizeof(info) - 1] = 0;
    if (r != WS_CU_SUCCESS)
        ws_diags_add(diags, NULL, 0, 0, "the driver's compiler: %s",
                     ws_cu_result_name(r, name, sizeof(name)));
    char *save, *log = r != WS_CU_SUCCESS ? error : info;
    for (char *line = strtok_r(log, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        ws_diags_add(diags, NULL, 0, 0, "the driver's compiler: %s", line);
    return r;
}

struct ws_cuda_image *ws_cuda_image_free(struct ws_cuda_image *i)
{
    if (!i)
        return NULL;
    if (i->module)
        ws_cuda_unload(i->device, i->module);
    free(i->functions);
    free(i->kinds);
    free(i->flat);
    free(i->max_threads);
    free(i->fits);
    free(i->fence_at);
    free(i->ctl_at);
    free(i->lib_at);
    free(i->lib_uses);
    free(i);
    return NULL;
}

static struct ws_cuda_image *image_new(struct ws_cuda *d, uint32_t n_kernels)
{
    struct ws_cuda_image *i = ws_alloc(sizeof(*i));
    size_t n = n_kernels + (size_t)1;
    if (!i)
        return NULL;
    i->device = d;
    i->functions = ws_alloc_array(n, sizeof(*i->functions));
    i->kinds = ws_alloc_array(n, sizeof(*i->kinds));
    i->flat = ws_alloc_array(n, sizeof(*i->flat));
    i->max_threads = ws_alloc_array(n, sizeof(*i->max_threads));
    i->fits = ws_alloc_array(n, sizeof(*i->fits));
    i->fence_at = ws_alloc_array(n, sizeof(*i->fence_at));
    i->ctl_at = ws_alloc_array(n, sizeof(*i->ctl_at));
    i->lib_at = ws_alloc_array(n, sizeof(*i->lib_at));
    i->lib_uses = ws_alloc_array(n, sizeof(*i->lib_uses));
    bool all = i->functions && i->kinds && i->flat && i->max_threads && i->fits && i->fence_at &&
               i->ctl_at && i->lib_at && i->lib_uses;
    return all ? i : ws_cuda_image_free(i);
}

static const char *isolation_refuses(struct ws_ptx_module *ptx, const char *text)
{
    char full[256];
    int n = snprintf(full, sizeof(full), "isolation: %s (isolation = none allows it)", text);
    return ws_arena_strndup(&ptx->arena, full, (size_t)WS_MIN(n, (int)sizeof(full) - 1));
}

/* Adds to @ptx a form of each kernel that prints, stops or uses the heap, in which our functions do
 * it (ptx/passes/devlib.c). Where that is impossible, the driver's functions do it; but malloc() is
 * then refused where there is a fence, since its memory is in no range. */
static int add_lib(const struct ws_dmodule *m, struct ws_ptx_module *ptx, bool fenced,
                   const char **why, struct ws_cuda_image *i, uint32_t *io_func)
{
    for (uint32_t k = 0; k < m->info.n_kernels; k++) {
        char text[160];
        uint32_t from = m->func[k], uses = 0;
        int r = why[from] ? 0 : ws_ptx_lib_uses(ptx, from, &uses);
        if (!r && uses && m->ptx->fenced) { /* our functions would read memory for it unchecked */
            if (!(why[from] = isolation_refuses(ptx, "prints, asserts, traps or uses the heap")))
                return ws_raise(-ENOMEM);
            continue;
        }
        if (!r && uses)
            r = ws_ptx_lib_refused(ptx, from, text, sizeof(text));
        if (r > 0) {
            if (fenced && uses & WS_LIB_HEAP && !(why[from] = isolation_refuses(ptx, text)))
                return ws_raise(-ENOMEM);
            continue;
        }
        if (!r && uses)
            r = ws_ptx_lib(ptx, from, &io_func[k]);
        if (r)
            return r < 0 ? ws_forward(r) : ws_fold(r);
        if (uses) {
            const struct ws_ptx_func *f = &ptx->funcs[io_func[k]];
            i->lib_at[k] = (uint32_t)f->params[f->n_params - 1].param_offset;
            i->lib_uses[k] = uses;
        }
    }
    return 0;
}

/* Adds to @ptx a fenced form of each kernel; a kernel that cannot be fenced is refused. @io_func:
 * [n_kernels]: the kernel's function. */
static int add_fenced(const struct ws_dmodule *m, struct ws_ptx_module *ptx, const char **why,
                      struct ws_cuda_image *i, uint32_t *io_func)
{
    for (uint32_t k = 0; k < m->info.n_kernels; k++) {
        char text[160];
        uint32_t from = m->func[k];
        int r = why[from] ? 0 : ws_ptx_fence_refused(ptx, io_func[k], text, sizeof(text));
        if (r > 0) {
            if (!(why[from] = isolation_refuses(ptx, text)))
                return ws_raise(-ENOMEM);
            continue;
        }
        if (!r && !why[from])
            r = ws_ptx_fence(ptx, io_func[k], &io_func[k]);
        if (r)
            return r < 0 ? ws_forward(r) : ws_fold(r);
        if (!why[from]) {
            const struct ws_ptx_func *f = &ptx->funcs[io_func[k]];
            i->fence_at[k] = (uint32_t)f->params[f->n_params - 1].param_offset;
        }
    }
    return 0;
}

/* Adds to @ptx a form of each kernel that takes its blocks from a counter; in a loop where that is
 * safe. */
static int add_rewritten(const struct ws_dmodule *m, struct ws_ptx_module *ptx,
                         const char *const *why, struct ws_cuda_image *i, uint32_t *io_func)
{
    static const enum ws_ptx_rewrite kinds[] = {WS_REWRITE_PERSISTENT, WS_REWRITE_TICKET};
    for (uint32_t k = 0; k < m->info.n_kernels; k++) {
        uint32_t from = io_func[k];
        i->ctl_at[k] = (uint32_t)ws_ptx_ctl_offset(&ptx->funcs[from]);
        bool may = !why[m->func[k]] && !m->addresses[k];
        for (size_t n = 0; n < WS_ARRAY_SIZE(kinds) && may && !i->kinds[k]; n++) {
            char text[160];
            int r = ws_ptx_rewrite_refused(ptx, from, kinds[n], &i->flat[k], text, sizeof(text));
            if (!r)
                r = ws_ptx_rewrite(ptx, from, kinds[n], &io_func[k]);
            if (r < 0)
                return ws_forward(r);
            if (!r)
                i->kinds[k] = (uint8_t)kinds[n];
        }
    }
    return 0;
}

/* Removes the bodies of functions that are not used in this image: other forms of its kernels, and
 * those of our functions that are not called. */
static int leave_out(const struct ws_dmodule *m, struct ws_ptx_module *ptx, const uint32_t *func)
{
    bool *used = ws_alloc_array((size_t)ptx->n_funcs + 1, sizeof(*used));
    if (!used)
        return ws_raise(-ENOMEM);
    int r = ws_ptx_lib_reached(ptx, func, m->info.n_kernels, used);
    for (uint32_t f = 0; !r && f < ptx->n_funcs; f++)
        if (!used[f] && (ptx->funcs[f].is_entry || ptx->funcs[f].lib))
            ptx->funcs[f].n_insns = ptx->funcs[f].n_labels = 0;
    free(used);
    return r;
}

/* Gives the kernels that were added names that no other function has. */
static int name_added(struct ws_ptx_module *ptx, uint32_t n_before)
{
    for (uint32_t f = n_before; f < ptx->n_funcs; f++) {
        char name[4400];
        int n = 0;
        if (!ptx->funcs[f].is_entry)
            continue;
        for (uint32_t k = 0; !n || ws_ptx_find_func(ptx, name); k++)
            n = snprintf(name, sizeof(name), "%.4200s$%u_%u", ptx->funcs[f].name, f, k);
        ptx->funcs[f].name = ws_arena_strndup(&ptx->arena, name, (size_t)n);
        if (!ptx->funcs[f].name)
            return ws_raise(-ENOMEM);
    }
    return 0;
}

static int attribute(struct ws_cuda *d, ws_cu_function f, int which)
{
    int v = 0;
    return WS_CU(d, cuFuncGetAttribute, &v, which, f) == WS_CU_SUCCESS ? WS_MAX(v, 0) : 0;
}

/* Dynamic shared memory beyond the default has to be allowed once for each function: all that there
 * is, since launches that allowed what they need could take it from each other. So have large
 * clusters. Without it, such a launch is refused by the driver. */
static void allow_large(struct ws_cuda *d, ws_cu_function f)
{
    if (ws_launch_max_cluster(d->base.spec.cc_major, true) > WS_CLUSTER_PORTABLE_MAX)
        (void)WS_CU(d, cuFuncSetAttribute, f,
                    WS_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    int most = (int)d->base.spec.shared_bytes_per_block_optin -
               attribute(d, f, WS_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    if (most > 0)
        (void)WS_CU(d, cuFuncSetAttribute, f, WS_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    most);
}

static ws_cu_result find_functions(const struct ws_dmodule *m, const struct ws_ptx_module *ptx,
                                   const uint32_t *func, struct ws_cuda_image *i, unsigned form)
{
    for (uint32_t k = 0; k < m->info.n_kernels; k++) {
        if (m->kernels[k].unsupported || (form & WS_CUDA_TICKETS && !i->kinds[k]))
            continue;
        ws_cu_result r = WS_CU(i->device, cuModuleGetFunction, &i->functions[k], i->module,
                               ptx->funcs[func[k]].name);
        if (r != WS_CU_SUCCESS)
            return r;
        allow_large(i->device, i->functions[k]);
        i->max_threads[k] = (uint32_t)attribute(i->device, i->functions[k],
                                                WS_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    }
    return WS_CU_SUCCESS;
}

static bool says_bounds(const struct ws_ptx_func *f)
{
    return f->maxntid[0] || f->reqntid[0] || f->maxnreg;
}

/* Whether kernel @k can have a wide form: what is added to it may need more registers than its
 * block leaves. */
static bool can_be_wide(const struct ws_cuda *d, const struct ws_dmodule *m, uint32_t k)
{
    return !m->ptx->code && !says_bounds(&m->ptx->funcs[m->func[k]]) &&
           (!d->options.unfenced || d->options.preemptible);
}

/* Rewrites @ptx into what the driver compiles. @why: out, [functions of m->ptx, and
 * WS_TEXTURE_FUNCS more]. @func: out, [n_kernels], the function that is launched for each kernel.
 * Variables get their addresses before fences are added: fences do not check constant memory, and
 * what was constant memory is global memory from then on. */
static int prepare(const struct ws_dmodule *m, struct ws_ptx_module *ptx, const uint64_t *var_va,
                   unsigned form, struct ws_cuda_image *i, const char **why, uint32_t *func)
{
    bool fenced = !i->device->options.unfenced && !m->ptx->fenced;
    uint32_t unused;
    int r = ws_ptx_texture(ptx);
    uint32_t n_before = ptx->n_funcs;
    if (!r)
        r = ws_cuda_prune(ptx, why);
    if (m->info.n_kernels)
        memcpy(func, m->func, m->info.n_kernels * sizeof(*func));
    if (!r)
        r = ws_cuda_add_function_table(ptx, &unused);
    if (!r && (var_va || fenced || m->ptx->fenced))
        r = ws_cuda_bake(ptx, var_va);
    if (!r)
        r = add_lib(m, ptx, fenced, why, i, func);
    if (!r && fenced)
        r = add_fenced(m, ptx, why, i, func);
    if (!r && form & WS_CUDA_TICKETS)
        r = add_rewritten(m, ptx, why, i, func);
    for (uint32_t k = 0; !r && k < m->info.n_kernels; k++) {
        uint32_t *most = ptx->funcs[func[k]].maxntid;
        bool wide = form & WS_CUDA_WIDE || m->addresses[k];
        if (wide && can_be_wide(i->device, m, k)) {
            most[0] = i->device->base.spec.max_threads_per_block;
            most[1] = most[2] = 1;
        }
    }
    if (!r)
        r = leave_out(m, ptx, func);
    return r ? r : name_added(ptx, n_before);
}

/* Machine code is loaded as it is. */
static struct ws_cuda_image *load_machine(const struct ws_dmodule *m, struct ws_cuda *d,
                                          struct ws_diags *diags, ws_cu_result *ret_r)
{
    char name[64];
    struct ws_cuda_image *i = image_new(d, m->info.n_kernels);
    ws_cu_result r = i ? ws_cuda_enter(d) : WS_CU_OUT_OF_MEMORY;
    if (r == WS_CU_SUCCESS)
        r = load_text(d, (const char *)m->ptx->code, &i->module, diags);
    if (r == WS_CU_SUCCESS)
        r = find_functions(m, m->ptx, m->func, i, 0);
    if (r != WS_CU_SUCCESS)
        ws_diags_add(diags, NULL, 0, 0, "the driver does not accept the machine code: %s",
                     ws_cu_result_name(r, name, sizeof(name)));
    *ret_r = r;
    return r == WS_CU_SUCCESS ? i : ws_cuda_image_free(i);
}

/* @var_va: NULL: the code names no variables. @why: as in prepare(). Return: NULL: the driver
 * refused it (*ret_r says why), or there is no memory. */
static struct ws_cuda_image *compile(struct ws_dmodule *m, struct ws_cuda *d,
                                     const uint64_t *var_va, unsigned form, const char **why,
                                     char **ret_why, struct ws_diags *diags, ws_cu_result *ret_r)
{
    if (m->ptx->code)
        return load_machine(m, d, diags, ret_r);
    struct ws_ptx_module *ptx = NULL;
    struct ws_cuda_image *i = image_new(d, m->info.n_kernels);
    char *text = NULL;
    size_t len = 0;
    uint32_t *func = ws_alloc_array(m->info.n_kernels + (size_t)1, sizeof(*func));
    ws_cu_result r = ws_cuda_enter(d);
    int e = !i || !func ? -ENOMEM : ws_ptx_parse(&ptx, m->text, m->text_len, NULL, diags);
    if (!e)
        e = prepare(m, ptx, var_va, form, i, why, func);
    if (!e && !(text = ws_ptx_print_text(ptx, &len)))
        e = -ENOMEM;
    for (uint32_t k = 0; !e && ret_why && k < m->info.n_kernels; k++)
        if (why[m->func[k]] && !(ret_why[k] = ws_strdup(why[m->func[k]])))
            e = -ENOMEM;
    if (!e && ret_why)
        for (uint32_t k = 0; k < m->info.n_kernels; k++)
            m->kernels[k].unsupported = ret_why[k];
    if (e)
        r = WS_CU_OUT_OF_MEMORY;
    if (r == WS_CU_SUCCESS)
        r = load_text(d, text, &i->module, diags);
    if (r == WS_CU_SUCCESS)
        r = find_functions(m, ptx, func, i, form);
    free(text);
    free(func);
    ws_ptx_module_free(ptx);
    *ret_r = r;
    return r == WS_CU_SUCCESS ? i : ws_cuda_image_free(i);
}

static struct ws_cuda_image *compile_again(struct ws_dmodule *m, struct ws_cuda *d,
                                           const uint64_t *var_va, unsigned form)
{
    ws_cu_result r;
    char text[64];
    struct ws_diags diags = WS_DIAGS_NULL;
    const char **why = ws_alloc_array(m->ptx->n_funcs + (size_t)WS_TEXTURE_FUNCS, sizeof(*why));
    struct ws_cuda_image *i = why ? compile(m, d, var_va, form, why, NULL, &diags, &r) : NULL;
    if (!i && why)
        ws_log(WS_ERROR, "cuda: gpu=%u a module was not compiled again: %s", d->base.index,
               diags.n ? diags.v[diags.n - 1].text : ws_cu_result_name(r, text, sizeof(text)));
    ws_diags_deinit(&diags);
    free(why);
    return i;
}

/* ---- modules ---- */

void ws_cuda_module_unload(struct ws_dmodule *m)
{
    for (int k = 0; k < _WS_CUDA_FORMS; k++)
        for (struct ws_cuda_image *i = m->images[k], *next; i; i = next) {
            next = i->next;
            ws_cuda_image_free(i);
        }
    for (uint32_t k = 0; m->why && k < m->info.n_kernels; k++)
        free(m->why[k]);
    pthread_mutex_destroy(&m->lock);
    free(m->why);
    free(m->func);
    free(m->uses);
    free(m->addresses);
    free(m->kernels);
    free(m->text);
    free(m);
}

/* Whether the driver has the same layout of the parameters; drivers that cannot say are assumed
 * to. */
static bool layout_agrees(struct ws_cuda *d, ws_cu_function f, const struct ws_kernel_info *k)
{
    size_t offset, bytes;
    for (uint32_t p = 0; d->cu.cuFuncGetParamInfo && p < k->n_params; p++) {
        ws_cu_result r = WS_CU(d, cuFuncGetParamInfo, f, p, &offset, &bytes);
        if (r == WS_CU_NOT_SUPPORTED)
            return true;
        if (r != WS_CU_SUCCESS || offset != k->params[p].param_offset ||
            bytes != k->params[p].size_bytes)
            return false;
    }
    return true;
}

static int kernel_refuse(struct ws_dmodule *m, uint32_t k, const char *text)
{
    free(m->why[k]);
    m->kernels[k].unsupported = m->why[k] = ws_strdup(text);
    m->kernels[k].unsupported_code = WS_PTX_E_UNSUPPORTED;
    return m->why[k] ? 0 : ws_raise(-ENOMEM);
}

static int read_kernels(struct ws_dmodule *m, struct ws_cuda *d, struct ws_cuda_image *i,
                        struct ws_diags *diags)
{
    int r = 0;
    for (uint32_t k = 0; !r && k < m->info.n_kernels; k++) {
        struct ws_kernel_info *info = &m->kernels[k];
        if (!info->unsupported && !i)
            r = kernel_refuse(m, k, "the driver's compiler refused the module");
        else if (!info->unsupported && !layout_agrees(d, i->functions[k], info))
            r = kernel_refuse(m, k, "the driver has another layout of its parameters");
        if (info->unsupported) {
            if (!info->unsupported_code)
                info->unsupported_code = strncmp(info->unsupported, "unresolved", 10)
                                             ? WS_PTX_E_UNSUPPORTED
                                             : WS_PTX_E_NOTFOUND;
            ws_diags_add(diags, NULL, m->ptx->funcs[m->func[k]].line, 0, "kernel %s: %s",
                         info->name, info->unsupported);
            continue;
        }
        ws_cu_function f = i->functions[k];
        info->static_shared_bytes =
            (uint32_t)attribute(d, f, WS_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        info->local_bytes = (uint32_t)attribute(d, f, WS_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
        info->const_bytes = (uint32_t)attribute(d, f, WS_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
        info->n_regs = (uint32_t)attribute(d, f, WS_CU_FUNC_ATTRIBUTE_NUM_REGS);
        info->max_threads_per_block = can_be_wide(d, m, k) && !d->options.unfenced
                                          ? d->base.spec.max_threads_per_block
                                          : i->max_threads[k];
    }
    return r;
}

static int list_kernels(struct ws_dmodule *m)
{
    const struct ws_ptx_module *ptx = m->ptx;
    size_t n = ptx->n_funcs + (size_t)1;
    m->kernels = ws_alloc_array(n, sizeof(*m->kernels));
    m->func = ws_alloc_array(n, sizeof(*m->func));
    m->why = ws_alloc_array(n, sizeof(*m->why));
    m->uses = ws_alloc_array(n, sizeof(*m->uses));
    m->addresses = ws_alloc_array(n, sizeof(*m->addresses));
    if (!m->kernels || !m->func || !m->why || !m->uses || !m->addresses)
        return ws_raise(-ENOMEM);
    for (uint32_t f = 0; f < ptx->n_funcs; f++) {
        const struct ws_ptx_func *e = &ptx->funcs[f];
        if (!e->is_entry || e->is_decl)
            continue;
        m->func[m->info.n_kernels] = f;
        m->kernels[m->info.n_kernels++] = ws_kernel_info_of(ptx, e);
    }
    m->info.kernels = m->kernels;
    m->info.n_vars = ptx->n_vars;
    m->info.vars = ptx->vars;
    return ws_ptx_function_addresses(ptx, m->addresses);
}

/* Finds which kernels print, stop and use the heap by our functions. */
static int find_uses(struct ws_dmodule *m)
{
    for (uint32_t k = 0; k < m->info.n_kernels; k++) {
        char text[160];
        int r = ws_ptx_lib_uses(m->ptx, m->func[k], &m->uses[k]);
        if (!r && m->uses[k])
            r = ws_ptx_lib_refused(m->ptx, m->func[k], text, sizeof(text));
        if (r < 0)
            return ws_forward(r);
        if (r)
            m->uses[k] = 0;
        m->kernels[k].uses_heap = m->uses[k] & WS_LIB_HEAP;
        m->kernels[k].prints = m->uses[k] & WS_LIB_PRINTS;
    }
    return 0;
}

static uint64_t *nowhere(const struct ws_dmodule *m)
{
    uint64_t *va = ws_alloc_array(m->info.n_vars + (size_t)1, sizeof(*va));
    for (uint32_t k = 0; va && k < m->info.n_vars; k++)
        va[k] = NOWHERE + k * UINT64_C(4096);
    return va;
}

/* Compiles the module for the first time. After an error of the driver the module has no kernels.
 * Return: 0 or -ENOMEM. */
static int first_image(struct ws_dmodule *m, struct ws_cuda *d, struct ws_diags *diags)
{
    ws_cu_result r = WS_CU_OUT_OF_MEMORY;
    uint64_t *va = m->uses_vars ? nowhere(m) : NULL;
    const char **why = ws_alloc_array(m->ptx->n_funcs + (size_t)WS_TEXTURE_FUNCS, sizeof(*why));
    if (why && (va || !m->uses_vars))
        m->images[0] = compile(m, d, va, 0, why, m->why, diags, &r);
    free(why);
    free(va);
    return m->images[0] || r != WS_CU_OUT_OF_MEMORY ? 0 : ws_raise(-ENOMEM);
}

int ws_cuda_module_load(struct ws_device *dev, const struct ws_ptx_module *ptx,
                        struct ws_dmodule **ret, struct ws_diags *diags)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    int r = ptx->code ? ws_cuda_machine_check(ptx, diags) : 0;
    if (r)
        return r;
    struct ws_dmodule *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    m->ptx = ptx;
    pthread_mutex_init(&m->lock, NULL);
    r = list_kernels(m);
    if (!r && !ptx->code)
        r = find_uses(m);
    if (!r && !ptx->code && !(m->text = ws_ptx_print_text(ptx, &m->text_len)))
        r = ws_raise(-ENOMEM);
    if (!r) {
        m->uses_vars = ptx->code ? ptx->n_vars : ws_cuda_names_vars(ptx);
        m->info.own_vars = ptx->code && ptx->n_vars;
        for (uint32_t v = 0; v < ptx->n_vars; v++)
            for (uint32_t k = 0; k < ptx->vars[v].n_init_syms; k++)
                m->n_function_refs +=
                    WS_PTX_SYM_KIND(ptx->vars[v].init_syms[k].sym) == WS_PTX_SYM_FUNC;
        r = first_image(m, d, diags);
    }
    if (!r && ptx->code && !m->images[0]) /* @diags say why; none of its kernels can run */
        r = WS_PTX_E_NOTFOUND;
    if (!r)
        r = read_kernels(m, d, m->images[0], diags);
    if (r) {
        ws_cuda_module_unload(m);
        return r;
    }
    if (ptx->code)
        ws_log(WS_INFO,
               "cuda: gpu=%u machine code: kernels=%u first=%s: not isolated, not stopped between "
               "blocks",
               dev->index, m->info.n_kernels, m->info.n_kernels ? m->kernels[0].name : "");
    *ret = m;
    return 0;
}

/* The shared form of @m on @d; @make: it is compiled if it is not there. m->lock held. */
static struct ws_cuda_image *shared_image(struct ws_dmodule *m, struct ws_cuda *d, unsigned form,
                                          bool make)
{
    struct ws_cuda_image **list = &m->images[form], *i = *list;
    while (i && i->device != d)
        i = i->next;
    if (!i && make && (i = compile_again(m, d, NULL, form))) {
        i->next = *list;
        *list = i;
    }
    return i;
}

/* ---- instances ---- */

/* Through pinned memory: from other memory the driver may still be copying when its call has
 * returned, and no stream of ours waits for that. */
static ws_cu_result put(struct ws_cuda *d, uint64_t va, const uint8_t *from, uint64_t n)
{
    uint64_t room = ws_cuda_stock_find(d, WS_CUDA_STOCK_PINNED, WS_CUDA_BOUNCE_BYTES, true);
    ws_cu_result r = room ? WS_CU_SUCCESS : WS_CU_OUT_OF_MEMORY;
    for (uint64_t at = 0, len; r == WS_CU_SUCCESS && at < n; at += len) {
        len = WS_MIN(n - at, (uint64_t)WS_CUDA_BOUNCE_BYTES);
        memcpy((void *)(uintptr_t)room, from + at, len);
        r = WS_CU(d, cuMemcpyHtoDAsync, va + at, (void *)(uintptr_t)room, len, d->memory_stream);
        ws_cu_result e = ws_cuda_drain(d, d->memory_stream);
        r = r == WS_CU_SUCCESS ? e : r;
    }
    ws_cuda_stock_give(d, WS_CUDA_STOCK_PINNED, room, WS_CUDA_BOUNCE_BYTES);
    return r;
}

/* @bytes: NULL: zeros. */
static int write_bytes(struct ws_cuda *d, const struct ws_space *s, uint64_t va, const void *bytes,
                       uint64_t n)
{
    const uint8_t *from = bytes;
    while (n) {
        uint8_t *host;
        uint64_t len;
        uint32_t flags;
        struct ws_device *device;
        if (!ws_space_resolve(s, va, &host, &len, &flags, &device))
            return ws_raise(-EINVAL);
        len = WS_MIN(len, n);
        if (!device && from)
            memcpy(host, from, len);
        else if (!device)
            memset(host, 0, len);
        else if ((from ? put(d, va, from, len) : ws_cuda_clear(d, va, len)) != WS_CU_SUCCESS)
            return ws_raise(-EIO);
        from = from ? from + len : NULL;
        va += len;
        n -= len;
    }
    return 0;
}

static int sym_value(const struct ws_dinstance *i, const struct ws_ptx_init_sym *s,
                     const uint64_t *functions, uint32_t function, uint64_t *ret)
{
    const struct ws_ptx_module *ptx = i->module->ptx;
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(s->sym);
    if (s->sym >= 0 && WS_PTX_SYM_KIND(s->sym) == WS_PTX_SYM_FUNC && functions)
        *ret = functions[function];
    else if (s->sym >= 0 && WS_PTX_SYM_KIND(s->sym) == WS_PTX_SYM_VAR && k < ptx->n_vars &&
             (i->var_va[k] || ptx->vars[k].link == WS_LINK_EXTERN))
        *ret = i->var_va[k];
    else
        return ws_raise(-EINVAL);
    *ret += (uint64_t)s->addend;
    if (s->masked)
        *ret >>= s->shift;
    return 0;
}

/* Writes the initial value of variable @v. @io_function: how many functions initial values have
 * named so far. */
static int var_init(struct ws_dinstance *i, uint32_t v, enum ws_instance_write write,
                    const uint64_t *functions, uint32_t *io_function)
{
    const struct ws_ptx_var *var = &i->module->ptx->vars[v];
    uint64_t va = i->var_va[v];
    int r = 0;
    bool here = (var->space == WS_SP_GLOBAL || var->space == WS_SP_CONST) && var->size_bytes &&
                var->link != WS_LINK_EXTERN;
    if (here && !va)
        return ws_raise(-EINVAL);
    here &= write == WS_WRITE_ALL || !var->managed;
    if (here)
        r = write_bytes(i->device, i->space, va, NULL, var->size_bytes);
    if (!r && here && var->init_bytes)
        r = write_bytes(i->device, i->space, va, var->init, var->init_bytes);
    for (uint32_t k = 0; !r && k < var->n_init_syms; k++) {
        const struct ws_ptx_init_sym *s = &var->init_syms[k];
        uint64_t value = 0;
        uint32_t function = *io_function;
        *io_function += WS_PTX_SYM_KIND(s->sym) == WS_PTX_SYM_FUNC;
        if (!here)
            continue;
        if (s->bytes > sizeof(value) || s->offset > var->size_bytes ||
            s->bytes > var->size_bytes - s->offset)
            return ws_raise(-EINVAL);
        r = sym_value(i, s, functions, function, &value);
        if (!r)
            r = write_bytes(i->device, i->space, va + s->offset, &value, s->bytes);
    }
    return r;
}

static int init_vars(struct ws_dinstance *i, enum ws_instance_write write)
{
    struct ws_dmodule *m = i->module;
    struct ws_cuda *d = i->device;
    uint64_t *functions = NULL;
    uint32_t n = 0;
    int r = 0;
    if (m->n_function_refs && i->image[0]) {
        ws_cu_ptr at = 0;
        size_t bytes = 0;
        functions = ws_alloc_array(m->n_function_refs, sizeof(*functions));
        if (!functions)
            return ws_raise(-ENOMEM);
        if (WS_CU(d, cuModuleGetGlobal, &at, &bytes, i->image[0]->module, WS_CUDA_FUNCTION_TABLE) ||
            bytes < m->n_function_refs * sizeof(*functions) ||
            WS_CU(d, cuMemcpyDtoH, functions, at, m->n_function_refs * sizeof(*functions)))
            r = ws_raise(-EIO);
    }
    unsigned epoch = ws_space_enter(i->space);
    for (uint32_t v = 0; !r && v < m->info.n_vars; v++)
        r = var_init(i, v, write, functions, &n);
    ws_space_leave(i->space, epoch);
    free(functions);
    return r;
}

/* ---- compiling ahead ---- */

/* The form that launches of the whole GPU have. */
static unsigned usual_form(const struct ws_cuda *d)
{
    return d->options.preemptible ? WS_CUDA_TICKETS : 0;
}

/* Whether a kernel has to do with addresses of functions, and so has the first form only. */
static bool needs_first_form(const struct ws_dmodule *m)
{
    bool any = false;
    for (uint32_t k = 0; k < m->info.n_kernels; k++)
        any |= m->addresses[k] != 0;
    return any;
}

static void preload(struct ws_dinstance *i)
{
    struct ws_cuda *d = i->device;
    if (ws_cuda_image_ready(i, usual_form(d)) &&
        (!needs_first_form(i->module) || ws_cuda_image_ready(i, 0)))
        return;
    pthread_mutex_lock(&d->run_lock);
    ws_list_append(&d->preloads, &i->preload);
    pthread_cond_signal(&d->starters[WS_CUDA_COMPILER].wake);
    pthread_mutex_unlock(&d->run_lock);
}

struct ws_dinstance *ws_cuda_preload_next(struct ws_cuda *d)
{
    struct ws_list *n = ws_list_pop(&d->preloads);
    d->preloading = n ? ws_list_entry(n, struct ws_dinstance, preload) : NULL;
    return d->preloading;
}

void ws_cuda_preload_compile(struct ws_dinstance *i)
{
    if (ws_cuda_enter(i->device) != WS_CU_SUCCESS)
        return;
    (void)ws_cuda_image_of(i, usual_form(i->device));
    if (needs_first_form(i->module))
        (void)ws_cuda_image_of(i, 0);
}

void ws_cuda_preload_done(struct ws_cuda *d)
{
    d->preloading = NULL;
    pthread_cond_broadcast(&d->preloaded);
}

/* The instance goes. */
static void preload_forget(struct ws_dinstance *i)
{
    struct ws_cuda *d = i->device;
    pthread_mutex_lock(&d->run_lock);
    ws_list_remove(&i->preload);
    while (d->preloading == i)
        pthread_cond_wait(&d->preloaded, &d->run_lock);
    pthread_mutex_unlock(&d->run_lock);
}

void ws_cuda_instance_free(struct ws_dinstance *i)
{
    preload_forget(i);
    if (i->machine) {
        ws_cuda_machine_free(i);
    } else if (i->own) {
        for (int k = 0; k < _WS_CUDA_FORMS; k++)
            ws_cuda_image_free(i->image[k]);
    }
    free(i->var_va);
    free(i);
}

static bool any_kernel(const struct ws_dmodule *m)
{
    bool any = false;
    for (uint32_t k = 0; k < m->info.n_kernels; k++)
        any |= !m->kernels[k].unsupported;
    return any;
}

int ws_cuda_instance_new(struct ws_device *dev, struct ws_dmodule *m, struct ws_space *s,
                         const uint64_t *var_va, enum ws_instance_write write,
                         struct ws_dinstance **ret)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct ws_dinstance *i = ws_alloc(sizeof(*i));
    uint64_t *va = ws_alloc_array(m->info.n_vars + (size_t)1, sizeof(*va));
    if (!i || !va) {
        free(i);
        free(va);
        return ws_raise(-ENOMEM);
    }
    *i = (struct ws_dinstance){
        .module = m, .device = d, .space = s, .var_va = va, .own = m->uses_vars};
    ws_list_init(&i->preload);
    for (int k = 1; k < _WS_CUDA_FORMS; k++)
        i->failed[k] = m->ptx->code; /* machine code has no such forms */
    if (m->info.n_vars && !m->info.own_vars)
        memcpy(va, var_va, m->info.n_vars * sizeof(*va));
    int r = d->lost || ws_cuda_enter(d) != WS_CU_SUCCESS ? ws_raise(-EIO) : 0;
    /* Only initial values that name functions need the code now; else the first launch waits for
     * it. */
    if (!r && m->n_function_refs && !ws_cuda_image_of(i, 0) && any_kernel(m))
        r = ws_raise(-ENOMEM);
    /* The lock cannot be taken while the module is compiled. */
    if (!r && !i->own && !pthread_mutex_trylock(&m->lock)) {
        i->image[0] = shared_image(m, d, 0, false);
        pthread_mutex_unlock(&m->lock);
    }
    if (!r && m->info.own_vars)
        r = ws_cuda_image_of(i, 0) ? ws_cuda_machine_place(i) : ws_raise(-EIO);
    else if (!r && write)
        r = init_vars(i, write);
    if (r) {
        ws_cuda_instance_free(i);
        return r == -EIO ? -ENOMEM : r;
    }
    if (any_kernel(m))
        preload(i);
    *ret = i;
    return 0;
}

bool ws_cuda_image_ready(struct ws_dinstance *i, unsigned form)
{
    /* Without the lock, which is held during a compilation. */
    return __atomic_load_n(&i->image[form], __ATOMIC_ACQUIRE) ||
           __atomic_load_n(&i->failed[form], __ATOMIC_ACQUIRE);
}

struct ws_cuda_image *ws_cuda_image_of(struct ws_dinstance *i, unsigned form)
{
    struct ws_dmodule *m = i->module;
    if (ws_cuda_image_ready(i, form))
        return __atomic_load_n(&i->image[form], __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&m->lock);
    struct ws_cuda_image *image = i->image[form];
    if (!image && !i->failed[form]) {
        image = i->own ? compile_again(m, i->device, i->var_va, form)
                       : shared_image(m, i->device, form, true);
        __atomic_store_n(&i->image[form], image, __ATOMIC_RELEASE);
        __atomic_store_n(&i->failed[form], !image, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&m->lock);
    return image;
}

int ws_cuda_occupancy(struct ws_device *dev, const struct ws_dmodule *m, uint32_t kernel,
                      uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    const struct ws_kernel_info *k = &m->info.kernels[kernel];
    struct ws_fit fit;
    int blocks = 0;
    if (block_threads > dev->spec.max_threads_per_block ||
        (k->max_threads_per_block && block_threads > k->max_threads_per_block)) {
        *ret = (struct ws_occupancy){.limit = "threads"};
        return 0;
    }
    if ((uint64_t)shared_bytes + k->static_shared_bytes > dev->spec.shared_bytes_per_block_optin) {
        *ret = (struct ws_occupancy){.limit = "shared"};
        return 0;
    }
    const struct ws_cuda_image *i = m->images[0];
    uint32_t regs = k->n_regs;
    bool wide = i && i->max_threads[kernel] && block_threads > i->max_threads[kernel];
    if (wide)
        regs = WS_MIN(regs, dev->spec.regs_per_sm / dev->spec.max_threads_per_block);
    ws_occupancy_fit(&dev->spec, block_threads, regs, shared_bytes + k->static_shared_bytes, &fit);
    *ret = (struct ws_occupancy){.blocks_per_sm = fit.blocks_per_sm, .limit = fit.limit};
    if (!k->unsupported && i && !wide && i->device == d && ws_cuda_enter(d) == WS_CU_SUCCESS &&
        WS_CU(d, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, i->functions[kernel],
              (int)block_threads, shared_bytes) == WS_CU_SUCCESS)
        ret->blocks_per_sm = (uint32_t)WS_MAX(blocks, 0);
    return 0;
}
