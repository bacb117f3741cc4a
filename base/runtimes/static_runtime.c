// SPDX-License-Identifier: Apache-2.0
/* A program that is linked with libcudart_static.a and then stripped holds the runtime's code, but
 * no names. The archive is one object file with one section of code. A linker moves that section as
 * a whole and changes only the bytes that the archive's relocations name. So all other bytes say
 * which runtime it is and where it begins, and the archive's symbol table, which is public, says
 * where in it each function is. Nothing is disassembled, and no guess is made: all probes of one
 * runtime must be in their places.
 *
 * The search hashes the 32 bytes at every multiple of 16, since the section and its functions are
 * aligned so. Most places are ruled out by a filter of 64 bits; what passes is compared with each
 * runtime's first probe, and then with the others. */
#include "base/runtimes/static_runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/elf.h"
#include "base/macros.h"

enum { N_PROBES = 16, PROBE_BYTES = 32, ALIGNMENT = 16, LONG_ENOUGH = 14, NO_FUNCTION = 1 };

struct probe {
    uint32_t place;
    uint64_t hash;
};
struct known_runtime {
    const char *version;
    uint32_t bytes;
    struct probe probes[N_PROBES];
};

#define WS_STATIC_PROBE(place, hash)                                                               \
    {                                                                                              \
        place, hash                                                                                \
    }
#define WS_STATIC_RUNTIME(version, bytes, ...) {version, bytes, {__VA_ARGS__}},
#define WS_STATIC_FUNCTION(name, ...)
static const struct known_runtime known[] = {
#include "base/runtimes/static_runtimes.def"
};
#undef WS_STATIC_RUNTIME
#undef WS_STATIC_FUNCTION

struct known_function {
    const char *name;
    uint32_t places[WS_ARRAY_SIZE(known)];
};
#define WS_STATIC_RUNTIME(version, bytes, ...)
#define WS_STATIC_FUNCTION(name, ...) {#name, {__VA_ARGS__}},
static const struct known_function functions[] = {
#include "base/runtimes/static_runtimes.def"
};

static uint64_t hash_at(const uint8_t *p)
{
    uint64_t h = 0, word;
    for (size_t i = 0; i < PROBE_BYTES; i += sizeof(word)) {
        memcpy(&word, p + i, sizeof(word));
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

/* Is the runtime @k at @place of @code? */
static bool is_at(const struct known_runtime *k, const uint8_t *code, uint64_t bytes,
                  uint64_t place)
{
    if (place > bytes || k->bytes > bytes - place)
        return false;
    for (size_t i = 0; i < N_PROBES; i++)
        if (hash_at(code + place + k->probes[i].place) != k->probes[i].hash)
            return false;
    return true;
}

static bool search(const uint8_t *code, uint64_t bytes, struct ws_static_runtime *ret)
{
    uint64_t filter = 0;
    for (size_t k = 0; k < WS_ARRAY_SIZE(known); k++)
        filter |= UINT64_C(1) << (known[k].probes[0].hash & 63);
    for (uint64_t at = 0; at + PROBE_BYTES <= bytes; at += ALIGNMENT) {
        uint64_t h = hash_at(code + at);
        if (!(filter >> (h & 63) & 1))
            continue;
        for (unsigned k = 0; k < WS_ARRAY_SIZE(known); k++) {
            const struct probe *first = &known[k].probes[0];
            if (first->hash != h || first->place > at ||
                !is_at(&known[k], code, bytes, at - first->place))
                continue;
            *ret =
                (struct ws_static_runtime){known[k].version, at - first->place, known[k].bytes, k};
            return true;
        }
    }
    return false;
}

bool ws_static_runtime_find(const struct ws_elf *e, struct ws_static_runtime *ret)
{
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        const uint8_t *code = s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_EXECINSTR)
                                  ? ws_elf_contents(e, s, 1)
                                  : NULL;
        /* Alignment counts from the address, where the linker has put things. */
        uint64_t skip = -s->sh_addr % ALIGNMENT;
        if (!code || skip >= s->sh_size || !search(code + skip, s->sh_size - skip, ret))
            continue;
        ret->address += s->sh_addr + skip;
        return true;
    }
    return false;
}

bool ws_static_runtime_next(const struct ws_static_runtime *rt, size_t *i,
                            struct ws_static_function *ret)
{
    for (; *i < WS_ARRAY_SIZE(functions); ++*i) {
        uint32_t place = functions[*i].places[rt->column], size = place % ALIGNMENT;
        if (place == NO_FUNCTION)
            continue;
        *ret = (struct ws_static_function){functions[(*i)++].name, rt->address + place - size,
                                           size ? size : LONG_ENOUGH};
        return true;
    }
    return false;
}
