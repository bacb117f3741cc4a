// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/start.c - calls of the device runtime, by their names
 * (device/soft/exec/start.h). */
#include <string.h>

#include "device/soft/decode/priv.h"
#include "device/soft/exec/start.h"

/* Ends the names of those compiled for a default stream of each thread. */

static const struct {
    const char *name;
    uint8_t what;
    const char *args; /* p: 8 bytes, w: 4 bytes; structures: see words() */
} calls[] = {
    {"GetParameterBufferV2", WS_START_BUFFER, "pddw"},
    {"LaunchDeviceV2", WS_START_LAUNCH, "pp"},
    {"GetParameterBuffer", WS_START_BUFFER_OF, "pp"},
    {"LaunchDevice", WS_START_LAUNCH_OF, "ppddwp"},
    {"MemcpyAsync", WS_START_COPY, "pppwp"},
    {"MemsetAsync", WS_START_FILL, "pwpp"},
    {"Memcpy2DAsync", WS_START_COPY_2D, "ppppppwp"},
    {"Memset2DAsync", WS_START_FILL_2D, "ppwppp"},
    {"Memcpy3DAsync", WS_START_COPY_3D, "pp"},
    {"Memset3DAsync", WS_START_FILL_3D, "qwep"},
    {"GetLastError", WS_START_ERROR, ""},
    {"PeekAtLastError", WS_START_PEEK, ""},
    {"StreamCreateWithFlags", WS_START_HANDLE, "pw"},
    {"EventCreateWithFlags", WS_START_HANDLE, "pw"},
    {"GetDevice", WS_START_DEVICE, "p"},
    {"GetDeviceCount", WS_START_COUNT, "p"},
    {"RuntimeGetVersion", WS_START_VERSION, "p"},
    {"Malloc", WS_START_TAKE, "pp"},
    {"Free", WS_START_GIVE, "p"},
    {"StreamDestroy", WS_START_NOTHING, "p"},
    {"StreamWaitEvent", WS_START_NOTHING, "ppw"},
    {"EventRecord", WS_START_NOTHING, "pp"},
    {"EventRecordWithFlags", WS_START_NOTHING, "ppw"},
    {"EventDestroy", WS_START_NOTHING, "p"},
};

/* Of a structure, 0: it is none: dim3, cudaExtent, cudaPitchedPtr. */
static unsigned words(char type)
{
    switch (type) {
    case 'd':
        return 3;
    case 'e':
        return 6;
    case 'q':
        return 8;
    default:
        return 0;
    }
}

static void arguments(struct ws_dec *d, const struct ws_ptx_call *c, const char *args,
                      struct ws_startop *o)
{
    unsigned n = 0;
    for (unsigned k = 0; args[k]; k++) {
        if (!words(args[k]))
            o->arg[n++] = ws_dec_arg(d, &c->args[k], args[k] == 'p' ? 8 : 4);
        for (unsigned w = 0; w < words(args[k]); w++)
            o->arg[n++] = ws_dec_arg_word(d, &c->args[k], w);
    }
}

bool ws_dec_start(struct ws_dec *d, const struct ws_ptx_call *c, const char *name)
{
    size_t k = 0;
    name = ws_ptx_device_runtime(name);
    while (name && k < WS_ARRAY_SIZE(calls) && !ws_ptx_is_device_runtime(name, calls[k].name))
        k++;
    if (!name || k == WS_ARRAY_SIZE(calls) || c->n_args != strlen(calls[k].args) || c->n_rets > 1)
        return false;
    struct ws_startop *o = ws_arena_alloc(&d->code->arena, sizeof(*o));
    if (!o) {
        d->oom = true;
        return true;
    }
    uint32_t width = ws_exec_start_gives_address((enum ws_start_what)calls[k].what) ? 8 : 4;
    o->what = calls[k].what;
    o->d = ws_dec_temp(d, width);
    arguments(d, c, calls[k].args, o);
    ws_dec_emit(d, WS_H_start)->imm = (int64_t)(uintptr_t)o;
    d->starts = d->uses_heap = true;
    if (c->n_rets)
        ws_dec_result(d, &c->rets[0], width, o->d);
    return true;
}
