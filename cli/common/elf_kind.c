// SPDX-License-Identifier: Apache-2.0
#include "cli/common/elf_kind.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Whether the kernel will set AT_SECURE: other ids than ours, or capabilities, come with the
 * file. */
static bool is_secure(int fd, const struct stat *st)
{
    struct statvfs fs;
    if (!fstatvfs(fd, &fs) && (fs.f_flag & ST_NOSUID))
        return false;
    if ((st->st_mode & S_ISUID) && st->st_uid != getuid())
        return true;
    if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getgid())
        return true;
    return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

enum ws_elf_kind ws_elf_kind(const char *path)
{
    Elf64_Ehdr h;
    struct stat st;
    enum ws_elf_kind kind = WS_ELF_OTHER;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return WS_ELF_OTHER;
    if (!fstat(fd, &st) && is_secure(fd, &st))
        kind = WS_ELF_SETUID;
    else if (read(fd, &h, sizeof(h)) == sizeof(h) && !memcmp(h.e_ident, ELFMAG, SELFMAG)) {
        if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_X86_64) {
            kind = WS_ELF_FOREIGN;
        } else {
            kind = WS_ELF_STATIC;
            for (unsigned i = 0; i < h.e_phnum && h.e_phentsize == sizeof(Elf64_Phdr); i++) {
                Elf64_Phdr p;
                if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + i * sizeof(p))) != sizeof(p))
                    break;
                if (p.p_type == PT_INTERP)
                    kind = WS_ELF_DYNAMIC;
            }
        }
    }
    close(fd);
    return kind;
}
