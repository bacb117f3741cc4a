// SPDX-License-Identifier: Apache-2.0
/* ptx/images/image.c - what a device runs of an image: the text in a fatbin, the text itself, or
 * the texts of a container whose parts are to be linked (base/link_image.h); or machine code, where
 * there is no text for the device and it takes that.
 *
 * Of a container, a part that is NVIDIA's device runtime (libcudadevrt, for kernels that start
 * kernels) is left out: it drives hardware. What calls it stays unresolved, by name, but for what
 * we have ourselves (device_runtime.h). */
#include "ptx/ptx.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/link_image.h"
#include "ptx/images/cubin.h"
#include "ptx/images/device_runtime.h"

struct want {
    uint32_t sm;
    const char *no_machine_code;
    size_t max_bytes;
};

static int copy(const void *image, size_t len, char **ret, size_t *ret_len)
{
    *ret_len = len;
    *ret = ws_budget_charge(len) ? ws_alloc(len + 1) : NULL;
    if (!*ret)
        return ws_raise(-ENOMEM);
    memcpy(*ret, image, len);
    return 0;
}

static int cubin(const void *image, size_t len, const struct want *w, const char *name, char **ret,
                 size_t *ret_len, struct ws_diags *diags)
{
    struct ws_cubin c;
    if (w->no_machine_code) {
        ws_diags_add(diags, name, 0, 0, "holds machine code only; %s", w->no_machine_code);
        return WS_PTX_E_NOTFOUND;
    }
    if (len > w->max_bytes) {
        ws_diags_add(diags, name, 0, 0, "machine code of %zu bytes; the limit is %zu", len,
                     w->max_bytes);
        return WS_PTX_E_FORMAT;
    }
    int r = ws_cubin_read(&c, image, len, name, diags);
    if (r)
        return r;
    uint32_t sm = c.sm;
    ws_cubin_deinit(&c);
    if (!ws_fatbin_machine_runs(sm, w->sm)) {
        ws_diags_add(diags, name, 0, 0, "holds machine code for sm_%u; the GPU is an sm_%u", sm,
                     w->sm);
        return WS_PTX_E_NOTFOUND;
    }
    return copy(image, len, ret, ret_len);
}

static int plain_text(const void *image, size_t len, const struct want *w, const char *name,
                      char **ret, size_t *ret_len, bool *ret_machine, struct ws_diags *diags)
{
    switch (ws_image_kind(image, len)) {
    case WS_IMAGE_FATBIN:
        return ws_fatbin_code(image, len, w->sm, w->no_machine_code, w->max_bytes, ret, ret_len,
                              ret_machine, diags);
    case WS_IMAGE_PTX:
        return copy(image, len, ret, ret_len);
    case WS_IMAGE_CUBIN:
        *ret_machine = true;
        return cubin(image, len, w, name, ret, ret_len, diags);
    default:
        ws_diags_add(diags, name, 0, 0, "is neither a fatbin nor PTX text nor a cubin");
        return WS_PTX_E_FORMAT;
    }
}

static int add_text(struct ws_ptx_texts *t, const void *image, size_t len, const struct want *w,
                    const char *name, struct ws_diags *diags)
{
    char *text = NULL;
    size_t n = 0;
    int r = plain_text(image, len, w, name, &text, &n, &t->machine, diags);
    if (r)
        return r;
    t->v[t->n].text = text;
    t->v[t->n].len = n;
    t->v[t->n].name = name ? ws_strdup(name) : NULL;
    t->n++;
    return 0;
}

static int damaged(const char *name, const char *what, struct ws_diags *diags)
{
    ws_diags_add(diags, name, 0, 0, "container of images to link: %s", what);
    return WS_PTX_E_FORMAT;
}

static int container(struct ws_ptx_texts *t, const uint8_t *image, size_t len,
                     const struct want *whole, const char *name, struct ws_diags *diags)
{
    struct want w = *whole;
    if (!w.no_machine_code)
        w.no_machine_code = "machine code can't be linked here: build all parts with PTX";
    struct ws_link_image h;
    if (len < sizeof(h))
        return damaged(name, "header cut off", diags);
    memcpy(&h, image, sizeof(h));
    if (h.version != WS_LINK_IMAGE_VERSION || h.bytes != len)
        return damaged(name, "version or length is wrong", diags);
    if (!h.n_parts || h.n_parts > WS_LINK_IMAGE_MAX_PARTS ||
        h.n_parts > (len - sizeof(h)) / sizeof(struct ws_link_part))
        return damaged(name, "number of parts is wrong", diags);
    t->v = ws_alloc_array(h.n_parts, sizeof(*t->v));
    if (!t->v)
        return ws_raise(-ENOMEM);
    t->link = true;
    t->strict = h.flags & WS_LINK_IMAGE_STRICT;
    t->max_regs = h.max_regs;
    for (uint32_t k = 0; k < h.n_parts; k++) {
        struct ws_link_part p;
        memcpy(&p, image + sizeof(h) + k * sizeof(p), sizeof(p));
        if (p.offset > len || p.bytes > len - p.offset || p.name >= len)
            return damaged(name, "a part lies outside", diags);
        if (!memchr(image + p.name, 0, WS_MIN(len - p.name, (uint64_t)WS_LINK_IMAGE_MAX_NAME)))
            return damaged(name, "a part's name does not end, or is too long", diags);
        if (h.n_parts > 1 && ws_device_runtime_is((const char *)image + p.name))
            continue;
        int r = add_text(t, image + p.offset, p.bytes, &w, (const char *)image + p.name, diags);
        if (r)
            return r;
        w.max_bytes -= WS_MIN(w.max_bytes, t->v[t->n - 1].len);
    }
    return 0;
}

int ws_ptx_image_texts(struct ws_ptx_texts *ret, const void *image, size_t len, uint32_t sm,
                       const char *no_machine_code, size_t max_bytes, const char *name,
                       struct ws_diags *diags)
{
    const struct want w = {sm, no_machine_code, max_bytes};
    struct ws_ptx_texts t = {0};
    int r;
    if (ws_image_kind(image, len) == WS_IMAGE_LINK) {
        r = container(&t, image, len, &w, name, diags);
    } else {
        t.v = ws_alloc_array(1, sizeof(*t.v));
        r = t.v ? add_text(&t, image, len, &w, name, diags) : ws_raise(-ENOMEM);
    }
    if (r)
        ws_ptx_texts_deinit(&t);
    else
        *ret = t;
    return r;
}

void ws_ptx_texts_deinit(struct ws_ptx_texts *t)
{
    for (size_t k = 0; k < t->n; k++) {
        ws_budget_give_back(t->v[k].len);
        free(t->v[k].text);
        free(t->v[k].name);
    }
    free(t->v);
    *t = (struct ws_ptx_texts){0};
}

static bool is_device_runtime(const struct ws_ptx_module *m)
{
    const struct ws_ptx_func *f = ws_ptx_find_func(m, "__cudaCDP2LaunchDeviceV2");
    return f && !f->is_decl;
}

static void limit_regs(struct ws_ptx_module *m, uint32_t max_regs)
{
    for (uint32_t k = 0; max_regs && k < m->n_funcs; k++)
        if (m->funcs[k].is_entry && !m->funcs[k].maxnreg && !m->funcs[k].minnctapersm)
            m->funcs[k].maxnreg = max_regs;
}

int ws_ptx_image_parse(struct ws_ptx_module **ret, const struct ws_ptx_texts *t,
                       struct ws_diags *diags)
{
    if (t->machine)
        return ws_cubin_module(ret, t->v[0].text, t->v[0].len, t->v[0].name, diags);
    if (!t->link)
        return ws_ptx_parse(ret, t->v[0].text, t->v[0].len, t->v[0].name, diags);
    struct ws_ptx_link_part *parts = ws_alloc_array(t->n + 2, sizeof(*parts));
    struct ws_ptx_module *runtime = NULL;
    size_t n = 0;
    int r = parts ? 0 : ws_raise(-ENOMEM);
    for (size_t k = 0; !r && k < t->n; k++) {
        struct ws_ptx_module *m;
        r = ws_ptx_parse(&m, t->v[k].text, t->v[k].len, t->v[k].name, diags);
        if (r)
            break;
        if (t->n > 1 && is_device_runtime(m))
            ws_ptx_module_free(m);
        else
            parts[n++] = (struct ws_ptx_link_part){m, t->v[k].name};
    }
    if (!r)
        r = ws_device_runtime_for(&runtime, parts, n, diags);
    if (runtime)
        parts[n++] = (struct ws_ptx_link_part){runtime, "device runtime"};
    if (!r) {
        r = ws_ptx_link(ret, parts, n, t->strict ? WS_PTX_LINK_STRICT : 0, diags);
        if (!r)
            limit_regs(*ret, t->max_regs);
    } else {
        for (size_t k = 0; k < n; k++)
            ws_ptx_module_free(parts[k].m);
    }
    free(parts);
    return r;
}
