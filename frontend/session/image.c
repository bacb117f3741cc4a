// SPDX-License-Identifier: Apache-2.0
#include "frontend/session/image.h"

#include "frontend/session/link_image.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int ws_image_place(const void *image, uint64_t bytes, struct ws_image_place *ret)
{
    uint64_t a = (uintptr_t)image, end = 0;
    char line[4352];
    *ret = (struct ws_image_place){0};
    FILE *f = fopen("/proc/self/maps", "re");
    if (!f) { /* no /proc: trust the caller */
        ret->address = a;
        ret->room_bytes = bytes ? bytes : UINT32_MAX;
        return 0;
    }
    while (fgets(line, sizeof(line), f)) {
        uint64_t lo, hi, offset, inode;
        unsigned major, minor;
        char perms[5];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &lo, &hi, perms,
                   &offset, &major, &minor, &inode) != 7)
            continue;
        if (!end && a >= lo && a < hi && perms[0] == 'r') {
            ret->constant = inode && perms[1] == '-';
            ret->file = inode ^ (uint64_t)major << 56 ^ (uint64_t)minor << 40;
            ret->file_offset = offset + (a - lo);
            end = hi;
        } else if (end && lo == end && perms[0] == 'r') {
            end = hi;
        } else if (end) {
            break;
        }
        /* A constant image lies in one mapping. */
        if (end == hi && (bytes ? bytes > hi - a : false))
            ret->constant = false;
    }
    fclose(f);
    ret->address = a;
    ret->room_bytes = end ? end - a : 0;
    return end && bytes <= end - a ? 0 : -EFAULT;
}

static int fatbin_length(const uint8_t *p, uint64_t room, uint64_t *ret)
{
    enum { HEADER = 16 };
    uint16_t header;
    uint64_t body;
    if (room < HEADER)
        return -EINVAL;
    memcpy(&header, p + 6, sizeof(header));
    memcpy(&body, p + 8, sizeof(body));
    if (header < HEADER || header > room || body > room - header)
        return -EINVAL;
    *ret = header + body;
    return 0;
}

static int elf_length(const uint8_t *p, uint64_t room, uint64_t *ret)
{
    Elf64_Ehdr h;
    uint64_t end = sizeof(h);
    if (room < sizeof(h))
        return -EINVAL;
    memcpy(&h, p, sizeof(h));
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || (h.e_shnum && h.e_shentsize != sizeof(Elf64_Shdr)) ||
        (h.e_phnum && h.e_phentsize != sizeof(Elf64_Phdr)))
        return -EINVAL;
    uint64_t sh_bytes = (uint64_t)h.e_shnum * sizeof(Elf64_Shdr),
             ph_bytes = (uint64_t)h.e_phnum * sizeof(Elf64_Phdr);
    if (h.e_shoff > room || sh_bytes > room - h.e_shoff || h.e_phoff > room ||
        ph_bytes > room - h.e_phoff)
        return -EINVAL;
    end = WS_MAX(end, WS_MAX(h.e_shoff + sh_bytes, h.e_phoff + ph_bytes));
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, p + h.e_shoff + i * sizeof(s), sizeof(s));
        if (s.sh_type == SHT_NOBITS)
            continue;
        if (s.sh_offset > room || s.sh_size > room - s.sh_offset)
            return -EINVAL;
        end = WS_MAX(end, s.sh_offset + s.sh_size);
    }
    *ret = end;
    return 0;
}

/* Byte by byte: a text may be shorter than the magic. */
static bool starts_with(const uint8_t *p, uint64_t room, const char *magic)
{
    for (; *magic && room; magic++, p++, room--)
        if (*p != (uint8_t)*magic)
            return false;
    return !*magic;
}

int ws_image_length(const void *image, uint64_t room_bytes, uint64_t *ret_bytes)
{
    const uint8_t *p = image;
    if (starts_with(p, room_bytes, "\x50\xed\x55\xba"))
        return fatbin_length(p, room_bytes, ret_bytes);
    if (ws_link_image_is(p, room_bytes, ret_bytes))
        return 0;
    if (starts_with(p, room_bytes, ELFMAG))
        return elf_length(p, room_bytes, ret_bytes);
    const uint8_t *nul = memchr(p, 0, room_bytes);
    if (!nul || nul == p)
        return -EINVAL;
    *ret_bytes = (uint64_t)(nul - p) + 1;
    return 0;
}
