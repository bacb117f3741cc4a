// SPDX-License-Identifier: Apache-2.0
/* ptx/images/fatbin.c - the container in which nvcc ships device code.
 *
 * A 16-byte header, then entries: a header of at least 64 bytes, payload, padding to 8. Offsets and
 * sizes come from the file, so each is checked against what is left before it is used; fields are
 * read bytewise, images need no alignment. Sizes of decompressed data are what the entry claims,
 * bounded by the caller, and must come out exactly.
 *
 *   header: u32 magic, u16 version, u16 header bytes, u64 bytes of all entries
 *   entry:  0 u16 kind, 2 u16 version, 4 u32 header bytes, 8 u64 payload bytes with padding, 16 u32
 *           compressed bytes, 20 u32 offset of {u32 offset, u32 length} of options, 24 u16 minor,
 *           u16 major, 28 u32 sm, 32 u32 name offset, 36 u32 name length, 40 u64 flags, 48 u64 0,
 *           56 u64 uncompressed bytes (0: not compressed)
 *
 * Source: images that nvcc 13.0 writes with each of its compression options, and NVIDIA's
 * libraries. */
#include "ptx/ptx.h"

#include <inttypes.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/link_image.h"

enum {
    FATBIN_MAGIC = 0xba55ed50,
    HEADER_BYTES = 16,
    ENTRY_BYTES = 64,
    MAX_ENTRIES = 100000,
};
enum { F_OLD_COMPRESSION = 0x1000, F_LZ4 = 0x2000, F_ZSTD = 0x8000, F_SCRAMBLED = 0x10000 };
enum { F_ARCH_SPECIFIC = 0x100000, F_FAMILY_SPECIFIC = 0x200000 };

static uint64_t get(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, bytes); /* little-endian, as the host */
    return v;
}

static int bad(struct ws_diags *d, uint64_t offset, const char *what)
{
    ws_diags_add(d, NULL, 0, 0, "fatbin: %s (at byte %" PRIu64 ")", what, offset);
    return WS_PTX_E_FORMAT;
}

/* Fills @e from the entry at @at; @ret_next: offset behind it. */
static int read_entry(const uint8_t *image, uint64_t at, uint64_t end, struct ws_fatbin_entry *e,
                      uint64_t *ret_next, struct ws_diags *d)
{
    if (end - at < ENTRY_BYTES)
        return bad(d, at, "an entry is cut off");
    const uint8_t *p = image + at;
    uint64_t header = get(p + 4, 4), padded = get(p + 8, 8), compressed = get(p + 16, 4),
             options = get(p + 20, 4);
    if (header < ENTRY_BYTES || header > end - at)
        return bad(d, at + 4, "an entry's header size is out of range");
    if (padded > end - at - header)
        return bad(d, at + 8, "an entry's payload reaches behind the end");
    *e = (struct ws_fatbin_entry){
        .kind = get(p, 2),
        .sm = get(p + 28, 4),
        .flags = get(p + 40, 8),
        .payload = p + header,
        .payload_bytes = padded,
        .raw_bytes = get(p + 56, 8),
    };
    if (compressed) {
        if (compressed > padded)
            return bad(d, at + 16, "the compressed size is larger than the payload");
        e->payload_bytes = compressed;
    } else {
        e->raw_bytes = padded;
    }
    if (options) {
        if (options > header || header - options < 8)
            return bad(d, at + 20, "the options lie outside the entry's header");
        uint64_t off = get(p + options, 4), len = get(p + options + 4, 4);
        if (off > header || len > header - off)
            return bad(d, at + options, "the options' text lies outside the entry's header");
        e->options = (const char *)p + off;
        e->options_len = len;
    }
    *ret_next = at + header + padded;
    return 0;
}

int ws_fatbin_walk(const void *image, size_t len,
                   int (*each)(const struct ws_fatbin_entry *e, void *arg), void *arg,
                   struct ws_diags *diags)
{
    const uint8_t *p = image;
    if (len < HEADER_BYTES)
        return bad(diags, 0, "shorter than a header");
    if (get(p, 4) != FATBIN_MAGIC)
        return bad(diags, 0, "the magic number is not 0xba55ed50");
    if (get(p + 4, 2) != 1)
        return bad(diags, 4, "the version is not 1");
    uint64_t at = get(p + 6, 2), size = get(p + 8, 8);
    if (at < HEADER_BYTES || at > len)
        return bad(diags, 6, "the header size is out of range");
    if (size > len - at)
        return bad(diags, 8, "the entries reach behind the end of the image");
    uint64_t end = at + size;
    for (unsigned n = 0; at < end; n++) {
        struct ws_fatbin_entry e;
        int r = n < MAX_ENTRIES ? read_entry(p, at, end, &e, &at, diags)
                                : bad(diags, at, "too many entries");
        if (!r)
            r = each(&e, arg);
        if (r)
            return r;
    }
    return 0;
}

static int unsupported(struct ws_diags *d, const struct ws_fatbin_entry *e, const char *what)
{
    ws_diags_add(d, NULL, 0, 0, "fatbin: not supported: %s (kind %u, sm_%u, flags 0x%" PRIx64 ")",
                 what, e->kind, e->sm, e->flags);
    return WS_PTX_E_UNSUPPORTED;
}

static int unpack_zstd(const struct ws_fatbin_entry *e, char *out, struct ws_diags *d)
{
    size_t n = ZSTD_decompress(out, e->raw_bytes, e->payload, e->payload_bytes);
    if (!ZSTD_isError(n) && n == e->raw_bytes)
        return 0;
    ws_diags_add(d, NULL, 0, 0, "fatbin: the zstd data of the sm_%u entry is damaged: %s", e->sm,
                 ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is shorter than the entry says");
    return WS_PTX_E_FORMAT;
}

static int unpack_lz4(const struct ws_fatbin_entry *e, char *out, struct ws_diags *d)
{
    if (e->payload_bytes > INT32_MAX || e->raw_bytes > INT32_MAX)
        return unsupported(d, e, "an LZ4 entry of 2 GiB or more");
    int n = LZ4_decompress_safe((const char *)e->payload, out, (int)e->payload_bytes,
                                (int)e->raw_bytes);
    if (n >= 0 && (size_t)n == e->raw_bytes)
        return 0;
    ws_diags_add(d, NULL, 0, 0, "fatbin: the LZ4 data of the sm_%u entry is damaged", e->sm);
    return WS_PTX_E_FORMAT;
}

int ws_fatbin_extract(const struct ws_fatbin_entry *e, size_t max_bytes, char **ret,
                      size_t *ret_len, struct ws_diags *diags)
{
    if (e->flags & F_SCRAMBLED)
        return unsupported(diags, e, "scrambled code for link-time optimisation");
    bool zstd = e->flags & F_ZSTD, lz4 = e->flags & F_LZ4;
    if (e->flags & F_OLD_COMPRESSION && !zstd && !lz4)
        return unsupported(
            diags, e, "the compression of old toolkits; build with -no-compress or a newer one");
    if (e->raw_bytes > max_bytes) {
        ws_diags_add(diags, NULL, 0, 0,
                     "fatbin: the sm_%u entry says it unpacks to %zu bytes; the limit is %zu",
                     e->sm, e->raw_bytes, max_bytes);
        return WS_PTX_E_FORMAT;
    }
    /* A claim that no compressor can make good: zstd's best ratio is bounded by 128 KiB blocks of
     * one byte (some 3 bytes each), LZ4's by 255. Saves allocating what a few bytes ask for. */
    if ((lz4 && e->raw_bytes / 256 > e->payload_bytes) ||
        (zstd && e->raw_bytes / 65536 > e->payload_bytes))
        return bad(diags, 0, "the uncompressed size cannot be true");
    char *out = ws_budget_charge(e->raw_bytes) ? ws_alloc(e->raw_bytes + 1) : NULL;
    if (!out)
        return ws_raise(-ENOMEM);
    int r = 0;
    if (zstd)
        r = unpack_zstd(e, out, diags);
    else if (lz4)
        r = unpack_lz4(e, out, diags);
    else if (e->raw_bytes > e->payload_bytes)
        r = bad(diags, 0, "an entry that is not compressed is larger than its payload");
    else
        memcpy(out, e->payload, e->raw_bytes);
    if (r) {
        free(out);
        return r;
    }
    size_t n = e->raw_bytes;
    if (e->kind == WS_FATBIN_PTX) /* padded with NULs */
        while (n && !out[n - 1])
            n--;
    *ret = out;
    *ret_len = n;
    return 0;
}

struct fatbin_choice {
    uint32_t sm;
    struct ws_fatbin_entry best, machine; /* PTX; machine code that the GPU runs */
    bool found, has_machine;
    char seen[256]; /* what else is there, for the message */
};

/* Of two PTX texts: at or below the device the newer one, else the older; the plain one before one
 * that is bound to an architecture ("sm_90a"), which only that very device may run. */
static bool better(const struct ws_fatbin_entry *a, const struct ws_fatbin_entry *b, uint32_t sm)
{
    bool ra = a->sm <= sm, rb = b->sm <= sm;
    if (ra != rb)
        return ra;
    if (a->sm != b->sm)
        return ra ? a->sm > b->sm : a->sm < b->sm;
    uint64_t mask = F_ARCH_SPECIFIC | F_FAMILY_SPECIFIC;
    return !(a->flags & mask) && b->flags & mask;
}

bool ws_fatbin_machine_runs(uint32_t code_sm, uint32_t sm)
{
    return code_sm / 10 == sm / 10 && code_sm <= sm;
}

/* Code that is bound to an architecture runs on that one alone. */
static bool machine_runs(const struct ws_fatbin_entry *e, uint32_t sm)
{
    return ws_fatbin_machine_runs(e->sm, sm) && (!(e->flags & F_ARCH_SPECIFIC) || e->sm == sm);
}

static bool ptx_compiles(const struct ws_fatbin_entry *e, uint32_t sm)
{
    return e->sm <= sm && (!(e->flags & F_ARCH_SPECIFIC) || e->sm == sm) &&
           (!(e->flags & F_FAMILY_SPECIFIC) || e->sm / 10 == sm / 10);
}

static const char *kind_name(uint16_t kind)
{
    switch (kind) {
    case WS_FATBIN_PTX:
        return "PTX";
    case WS_FATBIN_ELF:
        return "machine code";
    case WS_FATBIN_LTO:
        return "LTO code";
    default:
        return "unknown code";
    }
}

static int consider(const struct ws_fatbin_entry *e, void *arg)
{
    struct fatbin_choice *c = arg;
    size_t n = strlen(c->seen);
    const char *suffix = e->flags & F_FAMILY_SPECIFIC ? "f" : "";
    if (e->flags & F_ARCH_SPECIFIC)
        suffix = "a";
    snprintf(c->seen + n, sizeof(c->seen) - n, "%s%s sm_%u%s", n ? ", " : "", kind_name(e->kind),
             e->sm, suffix);
    if (e->kind == WS_FATBIN_PTX && (!c->found || better(e, &c->best, c->sm))) {
        c->best = *e;
        c->found = true;
    }
    if (e->kind == WS_FATBIN_ELF && machine_runs(e, c->sm) &&
        (!c->has_machine || e->sm > c->machine.sm)) {
        c->machine = *e;
        c->has_machine = true;
    }
    return 0;
}

static int choose(const void *image, size_t len, uint32_t sm, struct fatbin_choice *ret,
                  struct ws_diags *diags)
{
    *ret = (struct fatbin_choice){.sm = sm};
    return ws_fatbin_walk(image, len, consider, ret, diags);
}

static int nothing_for_it(const struct fatbin_choice *c, const char *no_machine_code,
                          struct ws_diags *diags)
{
    ws_diags_add(
        diags, NULL, 0, 0, "fatbin: no PTX inside, only: %s; %s", c->seen[0] ? c->seen : "nothing",
        c->has_machine && no_machine_code ? no_machine_code
                                          : "build with -gencode …,code=compute_XX or -arch=…");
    return WS_PTX_E_NOTFOUND;
}

int ws_fatbin_ptx(const void *image, size_t len, uint32_t sm, size_t max_bytes, char **ret,
                  size_t *ret_len, struct ws_diags *diags)
{
    struct fatbin_choice c;
    int r = choose(image, len, sm, &c, diags);
    if (!r && !c.found)
        r = nothing_for_it(&c, NULL, diags);
    return r ? r : ws_fatbin_extract(&c.best, max_bytes, ret, ret_len, diags);
}

int ws_fatbin_code(const void *image, size_t len, uint32_t sm, const char *no_machine_code,
                   size_t max_bytes, char **ret, size_t *ret_len, bool *ret_machine,
                   struct ws_diags *diags)
{
    struct fatbin_choice c;
    int r = choose(image, len, sm, &c, diags);
    if (r)
        return r;
    bool machine = c.has_machine && !no_machine_code && !(c.found && ptx_compiles(&c.best, c.sm));
    if (!machine && !c.found)
        return nothing_for_it(&c, no_machine_code, diags);
    r = ws_fatbin_extract(machine ? &c.machine : &c.best, max_bytes, ret, ret_len, diags);
    if (!r)
        *ret_machine = machine;
    return r;
}

enum ws_image_kind ws_image_kind(const void *image, size_t len)
{
    const uint8_t *p = image;
    if (len >= 4 && get(p, 4) == FATBIN_MAGIC)
        return WS_IMAGE_FATBIN;
    if (len >= 4 && get(p, 4) == WS_LINK_IMAGE_MAGIC)
        return WS_IMAGE_LINK;
    /* ELF for NVIDIA's machine */
    if (len >= 20 && !memcmp(p,
                             "\x7f"
                             "ELF",
                             4))
        return get(p + 18, 2) == 190 ? WS_IMAGE_CUBIN : WS_IMAGE_UNKNOWN;
    /* PTX: blanks and comments, then ".version" */
    size_t k = 0;
    while (k < len) {
        if (p[k] == ' ' || (p[k] >= '\t' && p[k] <= '\r')) {
            k++;
        } else if (k + 1 < len && p[k] == '/' && p[k + 1] == '/') {
            const uint8_t *nl = memchr(p + k, '\n', len - k);
            k = nl ? (size_t)(nl - p) : len;
        } else if (k + 1 < len && p[k] == '/' && p[k + 1] == '*') {
            const uint8_t *e = len - k > 3 ? memmem(p + k + 2, len - k - 2, "*/", 2) : NULL;
            k = e ? (size_t)(e + 2 - p) : len;
        } else {
            break;
        }
    }
    return len - k >= 8 && !memcmp(p + k, ".version", 8) ? WS_IMAGE_PTX : WS_IMAGE_UNKNOWN;
}
