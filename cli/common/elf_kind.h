// SPDX-License-Identifier: Apache-2.0
/* cli/common/elf_kind.h - says whether LD_PRELOAD works on a program (ld.so(8)). Threads: any. */
#ifndef WS_CLI_COMMON_ELF_KIND_H
#define WS_CLI_COMMON_ELF_KIND_H

enum ws_elf_kind {
    WS_ELF_OTHER,   /* a script, or unreadable: its interpreter decides */
    WS_ELF_DYNAMIC, /* works */
    WS_ELF_STATIC,  /* no dynamic linker: nothing is preloaded */
    WS_ELF_FOREIGN, /* not 64-bit x86 */
    WS_ELF_SETUID,  /* the linker ignores LD_PRELOAD paths */
};
enum ws_elf_kind ws_elf_kind(const char *path);

#endif
