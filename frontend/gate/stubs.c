// SPDX-License-Identifier: Apache-2.0
/* Every function of the driver that the table of entry points knows, handed through to the real
 * one: a jump through a slot, which at first leads to the code that looks the function up.
 * Registers and stack are the caller's at the jump, so no prototype is needed. The symbols are
 * weak: where calls.c has a function of the name, that one counts. x86-64 only, as the project
 * is. */
#include "frontend/gate/gate.h"

struct gate_entry {
    void **slot;
    const char *name;
};

static int no_such_function(void)
{
    return 801; /* CUDA_ERROR_NOT_SUPPORTED: not in this driver */
}

/* Called by the code below. */
__attribute__((used, visibility("hidden"))) void *ws_gate_resolve(const struct gate_entry *e);
void *ws_gate_resolve(const struct gate_entry *e)
{
    void *fn = ws_gate_real(e->name);
    if (!fn)
        fn = (void *)no_such_function;
    __atomic_store_n(e->slot, fn, __ATOMIC_RELEASE);
    return fn;
}

/* r11: the entry. All that may carry an argument is kept. */
__asm__(".text\n"
        ".type ws_gate_lazy, @function\n"
        "ws_gate_lazy:\n"
        "  pushq %rax\n  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  "
        "pushq %r9\n"
        "  subq $128, %rsp\n"
        "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n  movups %xmm2, 32(%rsp)\n"
        "  movups %xmm3, 48(%rsp)\n  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n"
        "  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"
        "  movq %r11, %rdi\n"
        "  call ws_gate_resolve\n"
        "  movq %rax, %r11\n"
        "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n  movups 32(%rsp), %xmm2\n"
        "  movups 48(%rsp), %xmm3\n  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n"
        "  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"
        "  addq $128, %rsp\n"
        "  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n  popq %rax\n"
        "  jmp *%r11\n"
        ".size ws_gate_lazy, .-ws_gate_lazy\n");

#define WS_RT(name, chapter, state)
#define WS_NVRTC(name, chapter, state)
#define WS_DRV(name, chapter, state, asked, version, stream) STUB(#name)
#define STUB(name)                                                                                 \
    __asm__(".pushsection .rodata.str1.1,\"aMS\",@progbits,1\n"                                    \
            ".Ltext_" name ": .string \"" name "\"\n"                                              \
            ".popsection\n"                                                                        \
            ".pushsection .data.rel.local,\"aw\",@progbits\n.balign 8\n"                           \
            ".Lslot_" name ": .quad .Llazy_" name "\n"                                             \
            ".Lentry_" name ": .quad .Lslot_" name ", .Ltext_" name "\n"                           \
            ".popsection\n"                                                                        \
            ".text\n.balign 16\n.weak " name "\n.type " name ", @function\n" name ":\n"            \
            "  endbr64\n  jmp *.Lslot_" name "(%rip)\n"                                            \
            ".Llazy_" name ":\n  leaq .Lentry_" name "(%rip), %r11\n  jmp ws_gate_lazy\n"          \
            ".size " name ", .-" name "\n");
#include "frontend/interpose/entrypoints.def"
