// SPDX-License-Identifier: Apache-2.0
/* What an input is, is decided by its bytes: the type that a program names may be wrong, since
 * nvrtcGetCUBIN() gave it PTX here, and nvJitLink has a type for "any". An object file of nvcc -dc
 * holds its fatbins in the section __nv_relfatbin, one after the other; other objects hold them in
 * .nv_fatbin. An archive (ar) is a magic number, and then members of a 60-byte header and data,
 * padded to 2 bytes. Files may come from anybody, so every offset is checked. */
#include "frontend/module/link_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/elf.h"
#include "frontend/errors.h"
#include "frontend/session/image.h"
#include "frontend/session/session.h"

#define AR_MAGIC "!<arch>\n"
enum {
    AR_MAGIC_BYTES = 8,
    AR_HEAD_BYTES = 60,
    AR_NAME_BYTES = 16,
    AR_SIZE_AT = 48,
    AR_SIZE_BYTES = 10
};
enum { EM_NVIDIA = 190 };
enum { FATBIN_HEAD_BYTES = 16, FATBIN_PTX = 1, FATBIN_NVVM = 8 };
#define FATBIN_MAGIC UINT32_C(0xba55ed50)
#define LTO_MAGIC    UINT32_C(0x7f4e43ed)

static int keep(struct ws_link_inputs *l, const void *data, uint64_t bytes, const char *name)
{
    if (ws_grow((void **)&l->v, &l->cap, l->n + 1, sizeof(*l->v)))
        return CUDA_OUT_OF_MEMORY;
    void *copy = ws_alloc(bytes + 1);
    char *own = ws_strdup(name ? name : "");
    if (!copy || !own) {
        free(copy);
        free(own);
        return CUDA_OUT_OF_MEMORY;
    }
    memcpy(copy, data, bytes);
    l->v[l->n++] = (struct ws_link_input){copy, bytes, own};
    return CUDA_OK;
}

static uint32_t magic_of(const uint8_t *p, uint64_t bytes)
{
    uint32_t m = 0;
    if (bytes >= sizeof(m))
        memcpy(&m, p, sizeof(m));
    return m;
}

/* The fatbins that lie one after the other in a section. */
static int add_fatbins(struct ws_link_inputs *l, const uint8_t *p, uint64_t bytes, const char *name)
{
    while (bytes >= 16) {
        uint64_t n;
        if (magic_of(p, bytes) != FATBIN_MAGIC) { /* padding */
            p += 8;
            bytes -= 8;
            continue;
        }
        if (ws_image_length(p, bytes, &n))
            return CUDA_INVALID_IMAGE;
        int code = keep(l, p, n, name);
        if (code)
            return code;
        n = WS_MIN(WS_ALIGN_UP(n, UINT64_C(8)), bytes);
        p += n;
        bytes -= n;
    }
    return CUDA_OK;
}

static int add_object(struct ws_link_inputs *l, const uint8_t *p, uint64_t bytes, const char *name)
{
    static const char *const sections[] = {"__nv_relfatbin", ".nv_fatbin"};
    struct ws_elf e;
    int code = CUDA_OK;
    uint8_t *aligned = NULL;
    if ((uintptr_t)p % 8) { /* a member of an archive */
        aligned = ws_alloc(bytes);
        if (!aligned)
            return CUDA_OUT_OF_MEMORY;
        memcpy(aligned, p, bytes);
        p = aligned;
    }
    if (ws_elf_init(&e, p, bytes))
        code = CUDA_INVALID_IMAGE;
    for (size_t i = 0; !code && i < WS_ARRAY_SIZE(sections); i++) {
        const Elf64_Shdr *s = ws_elf_section(&e, sections[i]);
        if (!s || s->sh_type == SHT_NOBITS)
            continue;
        if (s->sh_offset > bytes || s->sh_size > bytes - s->sh_offset)
            code = CUDA_INVALID_IMAGE;
        else
            code = add_fatbins(l, p + s->sh_offset, s->sh_size, name);
    }
    free(aligned);
    return code;
}

static bool is_elf(const uint8_t *p, uint64_t bytes)
{
    return bytes >= sizeof(Elf64_Ehdr) && !memcmp(p, ELFMAG, SELFMAG);
}

static int add_archive(struct ws_link_inputs *l, const uint8_t *p, uint64_t bytes, const char *name)
{
    for (uint64_t at = AR_MAGIC_BYTES; bytes - at >= AR_HEAD_BYTES;) {
        char size[AR_SIZE_BYTES + 1] = "", member[512];
        memcpy(size, p + at + AR_SIZE_AT, AR_SIZE_BYTES);
        unsigned long long n = strtoull(size, NULL, 10);
        snprintf(member, sizeof(member), "%s(%.*s)", name ? name : "archive",
                 (int)strcspn((const char *)p + at, "/ "), (const char *)p + at);
        at += AR_HEAD_BYTES;
        if (n > bytes - at)
            return CUDA_INVALID_IMAGE;
        int code = is_elf(p + at, n) ? add_object(l, p + at, n, member) : CUDA_OK;
        if (code)
            return code;
        at += WS_MIN(WS_ALIGN_UP(n, 2ull), bytes - at);
    }
    return CUDA_OK;
}

static bool is_nvvm_text(const uint8_t *p, uint64_t bytes)
{
    return magic_of(p, bytes) == LTO_MAGIC || (bytes > 4 && !memcmp(p, "BC\xc0\xde", 4));
}

int ws_link_inputs_add(struct ws_link_inputs *l, const void *data, uint64_t bytes, const char *name)
{
    const uint8_t *p = data;
    struct ws_link_input part;
    uint64_t n;
    if (ws_link_image_is(p, bytes, &n)) {
        for (size_t i = 0; ws_link_image_part(p, n, i, &part); i++) {
            int code = keep(l, part.data, part.bytes, part.name);
            if (code)
                return code;
        }
        return CUDA_OK;
    }
    if (bytes > AR_MAGIC_BYTES && !memcmp(p, AR_MAGIC, AR_MAGIC_BYTES))
        return add_archive(l, p, bytes, name);
    if (is_elf(p, bytes) && ((const Elf64_Ehdr *)(const void *)p)->e_machine != EM_NVIDIA)
        return add_object(l, p, bytes, name);
    if (is_nvvm_text(p, bytes)) {
        ws_session_unsupported("linking of LTO code (NVVM)");
        return CUDA_NOT_SUPPORTED;
    }
    return keep(l, p, bytes, name);
}

/* The kinds of code in a fatbin, one bit each. The header of the file, and of each entry, says its
 * own length and that of what follows. */
static uint32_t kinds_in_fatbin(const uint8_t *p, uint64_t bytes)
{
    uint32_t kinds = 0;
    uint16_t head = 0, kind;
    uint32_t entry_head;
    uint64_t body;
    if (bytes >= FATBIN_HEAD_BYTES)
        memcpy(&head, p + 6, sizeof(head));
    for (uint64_t at = head; at && at < bytes && bytes - at >= FATBIN_HEAD_BYTES;) {
        memcpy(&kind, p + at, sizeof(kind));
        memcpy(&entry_head, p + at + 4, sizeof(entry_head));
        memcpy(&body, p + at + 8, sizeof(body));
        kinds |= kind < 32 ? UINT32_C(1) << kind : 0;
        if (!entry_head || body > bytes - at || entry_head > bytes - at - body)
            break;
        at += entry_head + body;
    }
    return kinds;
}

bool ws_link_input_is_nvvm(const void *data, uint64_t bytes)
{
    struct ws_link_inputs parts = {0};
    uint32_t kinds = 0;
    if (is_nvvm_text(data, bytes))
        return true;
    if (!ws_link_inputs_add(&parts, data, bytes, NULL))
        for (size_t i = 0; i < parts.n; i++)
            kinds |= magic_of(parts.v[i].data, parts.v[i].bytes) == FATBIN_MAGIC
                         ? kinds_in_fatbin(parts.v[i].data, parts.v[i].bytes)
                         : 1u << FATBIN_PTX;
    ws_link_inputs_deinit(&parts);
    return kinds & 1u << FATBIN_NVVM && !(kinds & 1u << FATBIN_PTX);
}

void ws_link_inputs_deinit(struct ws_link_inputs *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free((void *)l->v[i].data);
        free((char *)l->v[i].name);
    }
    free(l->v);
    *l = (struct ws_link_inputs){0};
}
