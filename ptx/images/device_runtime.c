// SPDX-License-Identifier: Apache-2.0
/* What we offer of NVIDIA's device runtime (libcudadevrt): the barrier of a cooperative grid, as
 * compilers other than nvcc call it.
 *
 * The handle is the address of the grid's workspace: a word with its size, then a word that counts
 * arrivals. Thread 0 of each block adds 1, and that of the first block adds so much that all of
 * them together flip the highest bit. */
#include "ptx/images/device_runtime.h"

#include <string.h>

static const char text[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .func (.param .b64 ret) cudaCGGetIntrinsicHandle(.param .b32 scope)\n{\n"
    ".reg .b32 %r<3>;\n.reg .b64 %x;\n"
    "mov.u32 %r1, %envreg1;\nmov.u32 %r2, %envreg2;\nmov.b64 %x, {%r2, %r1};\n"
    "st.param.b64 [ret], %x;\nret;\n}\n"
    ".visible .func (.param .b32 ret) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r<12>;\n.reg .b64 %x;\n"
    "ld.param.b64 %x, [handle];\nsetp.eq.u64 %p, %x, 0;\nmov.u32 %r11, 1;\n@%p bra OUT;\n"
    "bar.sync 0;\n"
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nor.b32 %r1, %r1, %r2;\n"
    "mov.u32 %r2, %tid.z;\nor.b32 %r1, %r1, %r2;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra MET;\n"
    "mov.u32 %r3, %nctaid.x;\nmov.u32 %r4, %nctaid.y;\nmul.lo.u32 %r3, %r3, %r4;\n"
    "mov.u32 %r4, %nctaid.z;\nmul.lo.u32 %r3, %r3, %r4;\n"
    "sub.u32 %r3, 0x80000001, %r3;\n"
    "mov.u32 %r5, %ctaid.x;\nmov.u32 %r6, %ctaid.y;\nor.b32 %r5, %r5, %r6;\n"
    "mov.u32 %r6, %ctaid.z;\nor.b32 %r5, %r5, %r6;\nsetp.eq.u32 %p, %r5, 0;\n"
    "selp.b32 %r7, %r3, 1, %p;\n"
    "membar.gl;\natom.global.add.u32 %r8, [%x+4], %r7;\n"
    "WAIT:\nld.volatile.global.u32 %r9, [%x+4];\nxor.b32 %r10, %r8, %r9;\n"
    "setp.ge.s32 %p, %r10, 0;\n@%p bra WAIT;\nmembar.gl;\n"
    "MET:\nbar.sync 0;\nmov.u32 %r11, 0;\n"
    "OUT:\nst.param.b32 [ret], %r11;\nret;\n}\n";

static const char *const names[] = {"cudaCGGetIntrinsicHandle", "cudaCGSynchronize"};

bool ws_device_runtime_has(const char *name)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(names); i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

bool ws_device_runtime_is(const char *name)
{
    return name && strstr(name, "(cuda_device_runtime.o)") != NULL;
}

int ws_device_runtime_for(struct ws_ptx_module **ret, struct ws_ptx_link_part *parts, size_t n,
                          struct ws_diags *diags)
{
    bool wanted = false;
    *ret = NULL;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < WS_ARRAY_SIZE(names); i++) {
            const struct ws_ptx_func *f = ws_ptx_find_func(parts[k].m, names[i]);
            if (f && !f->is_decl)
                return 0;
            wanted |= f != NULL;
        }
    return wanted ? ws_ptx_parse(ret, text, sizeof(text) - 1, "device runtime", diags) : 0;
}
