// SPDX-License-Identifier: Apache-2.0
// The program is linked with libcuda.so.1: its symbols are bound when it is loaded.
#include "drv.h"

#define DRV_PROTOTYPE(member, symbol, args) extern CUresult symbol args;
DRV_FUNCTIONS(DRV_PROTOTYPE)

void drv_load(void)
{
#define DRV_ASSIGN(member, symbol, args) drv.member = symbol;
    DRV_FUNCTIONS(DRV_ASSIGN)
}
