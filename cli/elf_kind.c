// SPDX-License-Identifier: Apache-2.0
#include "cli/elf_kind.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum ws_elf_kind ws_elf_kind(const char *path)
{
    Elf64_Ehdr h;
    struct stat st;
    enum ws_elf_kind kind = WS_ELF_OTHER;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return WS_ELF_OTHER;
    if (!fstat(fd, &st) && (st.st_mode & (S_ISUID | S_ISGID)))
        kind = WS_ELF_SETUID;
    else if (read(fd, &h, sizeof h) == sizeof h && !memcmp(h.e_ident, ELFMAG, SELFMAG)) {
        if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_X86_64) {
            kind = WS_ELF_FOREIGN;
        } else {
            kind = WS_ELF_STATIC;
            for (unsigned i = 0; i < h.e_phnum && h.e_phentsize == sizeof(Elf64_Phdr); i++) {
                Elf64_Phdr p;
                if (pread(fd, &p, sizeof p, (off_t)(h.e_phoff + i * sizeof p)) != sizeof p)
                    break;
                if (p.p_type == PT_INTERP)
                    kind = WS_ELF_DYNAMIC;
            }
        }
    }
    close(fd);
    return kind;
}
