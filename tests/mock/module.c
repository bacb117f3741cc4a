// SPDX-License-Identifier: Apache-2.0
/* Modules and their functions.
 *
 * WS_MOCK_MOVES=1: functions whose addresses are taken lie elsewhere after each load, as with the
 * real driver: a function's address comes from its place in the module, so a random number of
 * functions is put before the module's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/mock/mock.h"

/* ---- loading ---- */

/* The text with some functions before its own. Return: NULL: it is to stay as it is. */
static char *moved(const char *text)
{
    enum { MOST = 7 };
    static _Atomic uint32_t n_loads;
    static const char size[] = ".address_size 64\n";
    const char *at = strstr(text, size);
    const char *e = getenv("WS_MOCK_MOVES");
    char *all = NULL;
    size_t n = 0;
    if (!e || !atoi(e) || !at)
        return NULL;
    at += sizeof(size) - 1;
    FILE *f = open_memstream(&all, &n);
    if (!f)
        abort();
    fprintf(f, "%.*s", (int)(at - text), text);
    /* neighbouring loads never have the same number */
    for (uint32_t k = 0, before = 1 + n_loads++ % MOST; k < before; k++)
        fprintf(f, ".func mock$before%u()\n{\nret;\n}\n", k);
    fputs(at, f);
    fclose(f);
    return all;
}

static void module_free(struct mock_module *m)
{
    if (m->instance)
        ws_device_instance_free(m->o.gpu->soft, m->instance);
    if (m->code)
        ws_device_module_unload(m->o.gpu->soft, m->code);
    if (m->block_va)
        mock_free(m->block_va);
    m->block_va = 0;
    ws_ptx_module_free(m->ptx);
    free(m->var_va);
    m->var_va = NULL;
    m->ptx = NULL;
    m->code = NULL;
    m->instance = NULL;
}

static void log_text(unsigned n, const int *options, void *const *values, const char *text)
{
    char *buffer = NULL;
    size_t size = 0;
    for (unsigned k = 0; k < n; k++) {
        if (options[k] == WS_CU_JIT_ERROR_LOG_BUFFER)
            buffer = values[k];
        if (options[k] == WS_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[k];
    }
    if (buffer && size)
        snprintf(buffer, size, "ptxas application ptx input, %s", text);
}

static bool place_vars(struct mock_module *m)
{
    uint64_t at = 0;
    m->var_va = ws_alloc_array(m->ptx->n_vars + (size_t)1, sizeof(*m->var_va));
    if (!m->var_va)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        at = 0;
        for (uint32_t k = 0; k < m->ptx->n_vars; k++) {
            const struct ws_ptx_var *v = &m->ptx->vars[k];
            if (!v->size_bytes || (v->space != WS_SP_GLOBAL && v->space != WS_SP_CONST))
                continue;
            at = WS_ALIGN_UP(at, (uint64_t)WS_MAX(v->align, 16u));
            if (pass)
                m->var_va[k] = m->block_va + at;
            at += v->size_bytes;
        }
        if (!pass && at && !(m->block_va = mock_alloc(m->o.gpu, at)))
            return false;
    }
    return true;
}

/* What NVIDIA's assembler said of a text; kept, since tests load the same texts again and again. */
struct assembled {
    struct assembled *next;
    char *text;
    uint32_t *regs;  /* of each kernel */
    char error[256]; /* "": it accepts the text */
};

/* Reads what `ptxas -v` says. */
static void hear(FILE *f, const struct ws_dmodule_info *info, struct assembled *ret)
{
    char line[8192], name[4200] = "";
    unsigned n;
    while (f && fgets(line, sizeof(line), f)) {
        const char *entry = strstr(line, "entry function '"), *used = strstr(line, "Used ");
        if (entry)
            (void)!sscanf(entry, "entry function '%4199[^']'", name);
        for (uint32_t k = 0; used && sscanf(used, "Used %u", &n) == 1 && k < info->n_kernels; k++)
            if (!strcmp(info->kernels[k].name, name))
                ret->regs[k] = n;
        if (!ret->error[0] && (strstr(line, "error") || strstr(line, "fatal")))
            snprintf(ret->error, sizeof(ret->error), "%.250s", line);
    }
}

static struct assembled *ask_ptxas(const struct mock_module *m, const char *text)
{
    const struct ws_dmodule_info *info = ws_dmodule_info(m->code);
    const struct ws_gpu_spec *spec = &m->o.gpu->soft->spec;
    struct assembled *a = ws_alloc(sizeof(*a));
    char command[256];
    int fd = memfd_create("ptx", MFD_CLOEXEC);
    if (!a || !(a->text = strdup(text)) ||
        !(a->regs = ws_alloc_array(info->n_kernels + (size_t)1, sizeof(*a->regs))) || fd < 0 ||
        write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    snprintf(command, sizeof(command), "ptxas -v -arch=sm_%u%u /proc/%d/fd/%d -o /dev/null 2>&1",
             spec->cc_major, spec->cc_minor, (int)getpid(), fd);
    FILE *f = popen(command, "re");
    hear(f, info, a);
    if ((!f || pclose(f)) && !a->error[0])
        snprintf(a->error, sizeof(a->error), "ptxas failed");
    close(fd);
    return a;
}

/* WS_MOCK_REGS=ptxas: asks NVIDIA's assembler, which is in the PATH, how many registers each kernel
 * needs. What it refuses, the driver would refuse. Return: false: it does. */
static bool assemble(struct mock_module *m, const char *text, struct ws_diags *diags)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct assembled *known;
    const char *e = getenv("WS_MOCK_REGS");
    if (!e || strcmp(e, "ptxas") != 0)
        return true;
    pthread_mutex_lock(&lock);
    struct assembled *a = known;
    while (a && strcmp(a->text, text) != 0)
        a = a->next;
    if (!a) {
        a = ask_ptxas(m, text);
        a->next = known;
        known = a;
    }
    pthread_mutex_unlock(&lock);
    m->regs = a->regs;
    if (a->error[0])
        ws_diags_add(diags, NULL, 0, 0, "%s", a->error);
    return !a->error[0];
}

ws_cu_result cuModuleLoadDataEx(ws_cu_module *ret, const void *image, unsigned n, int *options,
                                void **values)
{
    ENTER(MOCK_CTX);
    mock_wait_for_modules();
    struct ws_diags diags = WS_DIAGS_NULL;
    struct mock_module *m = ws_alloc(sizeof(*m));
    if (!m)
        return WS_CU_OUT_OF_MEMORY;
    m->o.gpu = mock_current();
    int r = WS_CU_SUCCESS;
    if (mock_is_machine(image)) {
        r = mock_machine_ptx(image, &m->o.gpu->soft->spec, &m->ptx, &diags);
    } else {
        char *text = moved(image);
        const char *t = text ? text : image;
        if (ws_ptx_parse(&m->ptx, t, strlen(t), "", &diags) || m->ptx->sm > mock_cc())
            r = WS_CU_INVALID_PTX;
        free(text);
    }
    if (!r && ws_device_module_load(m->o.gpu->soft, m->ptx, &m->code, &diags))
        r = WS_CU_INVALID_PTX;
    for (uint32_t k = 0; !r && k < ws_dmodule_info(m->code)->n_kernels; k++)
        if (ws_dmodule_info(m->code)->kernels[k].unsupported_code == WS_PTX_E_NOTFOUND)
            r = WS_CU_INVALID_PTX;
    if (!r && (!place_vars(m) || ws_device_instance_new(m->o.gpu->soft, m->code, m->o.gpu->space,
                                                        m->var_va, &m->instance)))
        r = WS_CU_OUT_OF_MEMORY;
    if (!r && !mock_is_machine(image) && !assemble(m, image, &diags))
        r = WS_CU_INVALID_PTX;
    if (r) {
        log_text(n, options, values, diags.n ? diags.v[0].text : "no memory");
        module_free(m);
        free(m);
    } else {
        pthread_mutex_lock(&mock_lock);
        mock_object_add(&m->o, MOCK_MODULE, mock_current());
        pthread_mutex_unlock(&mock_lock);
        *ret = (ws_cu_module)(void *)m;
    }
    ws_diags_deinit(&diags);
    return r;
}

ws_cu_result cuModuleUnload(ws_cu_module h)
{
    int r = mock_enter(__func__, MOCK_CTX);
    struct mock_module *m = mock_object_of(h, MOCK_MODULE, __func__);
    if (!m)
        return WS_CU_INVALID_HANDLE;
    if (m->n_running) {
        if (!r)
            mock_violation("cuModuleUnload: %u launches of it are under way", m->n_running);
        return r;
    }
    pthread_mutex_lock(&mock_lock);
    m->o.alive = false;
    pthread_mutex_unlock(&mock_lock);
    module_free(m);
    return r;
}

ws_cu_result cuModuleGetFunction(ws_cu_function *f, ws_cu_module h, const char *name)
{
    ENTER(MOCK_CTX);
    struct mock_module *m = mock_object_of(h, MOCK_MODULE, __func__);
    if (!m)
        return WS_CU_INVALID_HANDLE;
    const struct ws_dmodule_info *info = ws_dmodule_info(m->code);
    for (uint32_t k = 0; k < info->n_kernels; k++)
        if (!strcmp(info->kernels[k].name, name)) {
            struct mock_function *fn = ws_alloc(sizeof(*fn));
            if (!fn)
                return WS_CU_OUT_OF_MEMORY;
            fn->module = m;
            fn->kernel = k;
            pthread_mutex_lock(&mock_lock);
            mock_object_add(&fn->o, MOCK_FUNCTION, mock_current());
            pthread_mutex_unlock(&mock_lock);
            *f = (ws_cu_function)(void *)fn;
            return WS_CU_SUCCESS;
        }
    return WS_CU_NOT_FOUND;
}

ws_cu_result cuModuleGetGlobal(ws_cu_ptr *va, size_t *bytes, ws_cu_module h, const char *name)
{
    ENTER(MOCK_CTX);
    struct mock_module *m = mock_object_of(h, MOCK_MODULE, __func__);
    for (uint32_t k = 0; m && k < m->ptx->n_vars; k++)
        if (!strcmp(m->ptx->vars[k].name, name)) {
            *va = m->var_va[k];
            *bytes = m->ptx->vars[k].size_bytes;
            return WS_CU_SUCCESS;
        }
    return m ? WS_CU_NOT_FOUND : WS_CU_INVALID_HANDLE;
}

const struct ws_kernel_info *mock_function_of(const void *h, const char *call,
                                              struct mock_function **ret)
{
    struct mock_function *f = mock_object_of(h, MOCK_FUNCTION, call);
    if (f && !f->module->o.alive) {
        mock_violation("%s: the function's module was unloaded", call);
        f = NULL;
    }
    *ret = f;
    return f ? &ws_dmodule_info(f->module->code)->kernels[f->kernel] : NULL;
}

/* WS_MOCK_REGS=N: kernels need N registers for each thread, or as many as a block leaves that is as
 * large as the kernel says. 0: it is not asked for. */
static uint32_t regs_of(const struct mock_function *f, const struct ws_kernel_info *k)
{
    const char *e = getenv("WS_MOCK_REGS");
    uint32_t n = e ? (uint32_t)strtoul(e, NULL, 10) : 0;
    const struct ws_ptx_func *p = ws_ptx_find_func(f->module->ptx, k->name);
    bool says = p && (p->maxntid[0] || p->reqntid[0]);
    if (f->module->regs)
        return f->module->regs[f->kernel];
    return says ? WS_MIN(n, f->o.gpu->soft->spec.regs_per_sm / k->max_threads_per_block) : n;
}

uint32_t mock_threads_by_regs(const struct mock_function *f, const struct ws_kernel_info *k)
{
    enum { UNIT = 8 }; /* a warp has registers in units of 256 */
    uint32_t n = WS_ALIGN_UP(regs_of(f, k), (uint32_t)UNIT);
    return n ? f->o.gpu->soft->spec.regs_per_sm / n & ~31u : UINT32_MAX;
}

ws_cu_result cuFuncGetAttribute(int *value, int attribute, ws_cu_function h)
{
    ENTER(MOCK_CTX);
    struct mock_function *f;
    const struct ws_kernel_info *k = mock_function_of(h, __func__, &f);
    if (!k)
        return WS_CU_INVALID_HANDLE;
    switch (attribute) {
    case WS_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)WS_MIN(k->max_threads_per_block, mock_threads_by_regs(f, k));
        break;
    case WS_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)k->static_shared_bytes;
        break;
    case WS_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = (int)k->const_bytes;
        break;
    case WS_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)k->local_bytes;
        break;
    case WS_CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)(regs_of(f, k) ? regs_of(f, k) : WS_MIN(k->n_regs, 255u));
        break;
    default:
        return WS_CU_INVALID_VALUE;
    }
    return WS_CU_SUCCESS;
}

ws_cu_result cuFuncSetAttribute(ws_cu_function h, int attribute, int value)
{
    ENTER(MOCK_CTX);
    struct mock_function *f;
    const struct ws_kernel_info *k = mock_function_of(h, __func__, &f);
    if (k && attribute == WS_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        f->large_clusters = value != 0;
        return WS_CU_SUCCESS;
    }
    if (!k || attribute != WS_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        value + (int)k->static_shared_bytes >
            (int)f->o.gpu->soft->spec.shared_bytes_per_block_optin)
        return WS_CU_INVALID_VALUE;
    f->dynamic_bytes = value;
    return WS_CU_SUCCESS;
}

ws_cu_result cuFuncGetParamInfo(ws_cu_function h, size_t index, size_t *offset, size_t *bytes)
{
    ENTER(MOCK_CTX);
    struct mock_function *f;
    const struct ws_kernel_info *k = mock_function_of(h, __func__, &f);
    if (!k)
        return WS_CU_INVALID_HANDLE;
    if (index >= k->n_params)
        return WS_CU_INVALID_VALUE;
    /* Counted anew: C layout in the order written. */
    uint64_t at = 0;
    for (size_t p = 0; p <= index; p++) {
        const struct ws_ptx_var *v = &k->params[p];
        at = WS_ALIGN_UP(at, (uint64_t)WS_MAX(v->align, 1u));
        *offset = at;
        *bytes = v->size_bytes;
        at += v->size_bytes;
    }
    return WS_CU_SUCCESS;
}

ws_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, ws_cu_function h, int threads,
                                                         size_t shared_bytes)
{
    ENTER(MOCK_CTX);
    struct mock_function *f;
    struct ws_occupancy o;
    const struct ws_kernel_info *k = mock_function_of(h, __func__, &f);
    if (!k)
        return WS_CU_INVALID_HANDLE;
    if (threads <= 0 || ws_device_occupancy(f->o.gpu->soft, f->module->code, f->kernel,
                                            (uint32_t)threads, (uint32_t)shared_bytes, &o))
        return WS_CU_INVALID_VALUE;
    *blocks = (int)WS_MIN(o.blocks_per_sm, mock_threads_by_regs(f, k) / (uint32_t)threads);
    return WS_CU_SUCCESS;
}
