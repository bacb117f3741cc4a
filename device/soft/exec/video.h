/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/video.h - a video instruction's modifiers, as video.c packs them into
 * uop.imm and uop.x. Private to the interpreter. */
#ifndef WS_DEVICE_SOFT_EXEC_VIDEO_H
#define WS_DEVICE_SOFT_EXEC_VIDEO_H

#include <stdint.h>

enum ws_video_op {
    WS_VIDEO_ADD,
    WS_VIDEO_SUB,
    WS_VIDEO_ABSDIFF,
    WS_VIDEO_MIN,
    WS_VIDEO_MAX,
    WS_VIDEO_SHL,
    WS_VIDEO_SHR,
    WS_VIDEO_MAD,
    WS_VIDEO_SET,
    WS_VIDEO_AVRG
};
enum {
    WS_VIDEO_D_SIGNED = 1,
    WS_VIDEO_A_SIGNED = 2,
    WS_VIDEO_B_SIGNED = 4,
    WS_VIDEO_SAT = 8,
    WS_VIDEO_WRAP = 16, /* vshl, vshr: shift modulo 32 */
    WS_VIDEO_PO = 32,   /* vmad: plus one */
    WS_VIDEO_NEG_AB = 64,
    WS_VIDEO_NEG_C = 128, /* vmad: the product, c negated; not both */
};
/* Part of a register. */
enum ws_video_part {
    WS_VIDEO_ALL,
    WS_VIDEO_B0,
    WS_VIDEO_B1,
    WS_VIDEO_B2,
    WS_VIDEO_B3,
    WS_VIDEO_H0,
    WS_VIDEO_H1
};
union ws_video {
    struct {
        uint8_t op, flags, cmp;   /* cmp: enum ws_ptx_cmp */
        uint8_t second;           /* enum ws_ptx_sub: NONE, ADD, MIN, MAX */
        uint8_t asel, bsel, dsel; /* scalar: enum ws_video_part; SIMD: dsel is a mask of lanes */
        uint8_t shift;            /* vmad: scale. SIMD: lanes, 2 or 4 */
    };
    int64_t imm;
};
_Static_assert(sizeof(union ws_video) == 8, "fits uop.imm");
/* SIMD: uop.x holds selectors, 3 bits for each lane: of a from bit 0, of b from bit 16 */

#endif
