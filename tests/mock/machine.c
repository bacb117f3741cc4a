// SPDX-License-Identifier: Apache-2.0
/* Machine code. The mock runs PTX only, so each cubin needs a PTX text from the same source.
 * WS_MOCK_MACHINE_CODE names a folder of *.ptx; the first text is used that has all kernels of the
 * cubin, with the same parameters at the same places, and its variables. What the file says of
 * itself (its architecture, that it is complete) is checked as the real driver would. */
#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ptx/images/cubin.h"
#include "tests/mock/mock.h"

bool mock_is_machine(const void *image)
{
    return !memcmp(image, ELFMAG, SELFMAG);
}

/* As far as its tables say; the caller gave no length. */
static size_t length(const uint8_t *p)
{
    Elf64_Ehdr h;
    memcpy(&h, p, sizeof(h));
    size_t end = WS_MAX(h.e_shoff + (size_t)h.e_shnum * h.e_shentsize,
                        h.e_phoff + (size_t)h.e_phnum * h.e_phentsize);
    for (unsigned k = 0; k < h.e_shnum && h.e_shentsize == sizeof(Elf64_Shdr); k++) {
        Elf64_Shdr s;
        memcpy(&s, p + h.e_shoff + k * sizeof(s), sizeof(s));
        if (s.sh_type != SHT_NOBITS)
            end = WS_MAX(end, s.sh_offset + s.sh_size);
    }
    return end;
}

static bool same_kernel(const struct ws_cubin_kernel *k, const struct ws_ptx_func *f)
{
    bool same = f && f->is_entry && !f->is_decl && f->n_params == k->n_params;
    for (uint32_t p = 0; same && p < k->n_params; p++)
        same = f->params[p].param_offset == k->params[p].offset &&
               f->params[p].size_bytes == k->params[p].bytes;
    return same;
}

static bool stands_for(const struct ws_ptx_module *m, const struct ws_cubin *c)
{
    bool same = true;
    for (uint32_t k = 0; same && k < c->n_kernels; k++)
        same = same_kernel(&c->kernels[k], ws_ptx_find_func(m, c->kernels[k].name));
    for (uint32_t k = 0; same && k < c->n_vars; k++) {
        same = false;
        for (uint32_t v = 0; !same && v < m->n_vars; v++)
            same = !strcmp(m->vars[v].name, c->vars[k].name) &&
                   m->vars[v].size_bytes == c->vars[k].bytes;
    }
    return same;
}

static struct ws_ptx_module *parse_file(const char *folder, const char *name)
{
    struct ws_ptx_module *m = NULL;
    char path[4352];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t len = 0;
    if (f && getdelim(&text, &len, 0, f) > 0 && ws_ptx_parse(&m, text, strlen(text), path, NULL))
        m = NULL;
    free(text);
    if (f)
        fclose(f);
    return m;
}

static struct ws_ptx_module *beside(const struct ws_cubin *c, const char *folder)
{
    struct ws_ptx_module *found = NULL;
    DIR *d = opendir(folder);
    const struct dirent *e;
    while (d && !found && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 4, ".ptx") != 0)
            continue;
        found = parse_file(folder, e->d_name);
        if (found && !stands_for(found, c))
            found = ws_ptx_module_free(found);
    }
    if (d)
        closedir(d);
    return found;
}

ws_cu_result mock_machine_ptx(const void *image, const struct ws_gpu_spec *gpu,
                              struct ws_ptx_module **ret, struct ws_diags *diags)
{
    struct ws_cubin c;
    const char *folder = getenv("WS_MOCK_MACHINE_CODE");
    if (ws_cubin_read(&c, image, length(image), "machine code", diags))
        return WS_CU_INVALID_IMAGE;
    ws_cu_result r = WS_CU_SUCCESS;
    if (c.sm / 10 != gpu->cc_major || c.sm % 10 > gpu->cc_minor)
        r = WS_CU_NO_BINARY_FOR_GPU;
    else if (!(*ret = folder ? beside(&c, folder) : NULL))
        r = WS_CU_INVALID_IMAGE;
    if (r)
        ws_diags_add(diags, NULL, 0, 0,
                     r == WS_CU_NO_BINARY_FOR_GPU
                         ? "sm_%u does not run here"
                         : "the mock has no PTX for this sm_%u code in WS_MOCK_MACHINE_CODE",
                     c.sm);
    ws_cubin_deinit(&c);
    return r;
}
