/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/ptx.h - all that other rooms need to read PTX. The software GPU, the models, the passes and
 * the templates share one intermediate representation (IR) of it.
 *
 *   ptx/opcode.h, ptx/modifier.h   the opcodes and what is known of them; types, spaces, modifiers
 *   ptx/ir.h                       modules, functions, instructions, operands
 *   ptx/text/text.h                text to IR and back
 *   ptx/images/image.h             images that hold PTX or machine code
 *   ptx/analysis/cfg.h             control flow
 *
 * Passes, which change modules, have a header of their own: ptx/passes/pass.h. */
#ifndef WS_PTX_PTX_H
#define WS_PTX_PTX_H

#include "ptx/analysis/cfg.h"
#include "ptx/images/image.h"
#include "ptx/ir.h"
#include "ptx/text/text.h"

#endif
