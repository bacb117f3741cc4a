// SPDX-License-Identifier: Apache-2.0
/* What holds a stream up: the places of host functions, and waits for values in memory. The
 * daemon's side is backend/client/host_function.c. */
#include "frontend/session/private.h"

ws_err ws_session_gate_put(uint64_t stream, uint64_t gate)
{
    struct ws_channel *c;
    Ws__HostFunction m = WS__HOST_FUNCTION__INIT;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    m.stream = stream;
    m.function = gate;
    return ws_channel_post(c, WS_COMMAND(HOST_FUNCTION, host_function, &m));
}

ws_err ws_session_gate_open(uint64_t gate)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter_anyway(&c); /* streams of a lost context must run empty */
    if (!r)
        r = ws_channel_post(c, WS_COMMAND(HOST_FUNCTION_DONE, host_function_done, gate));
    return r ? r : ws_channel_flush(c);
}

void ws_session_serve_gates(void)
{
    ws_channel_use_reserve();
}

ws_err ws_session_gate_next(uint64_t *ret_gate)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter_anyway(&c);
    return r ? r : ws_channel_next_gate(c, ret_gate);
}

ws_err ws_session_lost(void)
{
    struct ws_channel *c;
    return ws_session_enter(&c);
}

ws_err ws_session_value(uint64_t stream, uint64_t address, uint64_t value, uint32_t bytes,
                        bool write, uint32_t compare)
{
    struct ws_channel *c;
    struct ws_mem_info m;
    Ws__StreamValue v = WS__STREAM_VALUE__INIT;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    ws_session_mem_find(address, &m);
    if ((bytes != 4 && bytes != 8) || address % bytes || m.kind == WS_MEM_NONE ||
        bytes > m.bytes - (address - m.base) || compare > 3)
        return WS__ERROR__INVALID_VALUE;
    if (m.kind == WS_MEM_PINNED && !ws_session_local())
        return WS__ERROR__NOT_SUPPORTED;
    v.stream = stream;
    v.address = address;
    v.value = value;
    v.bytes = bytes;
    v.compare = compare;
    v.write = write;
    return ws_channel_post(c, WS_COMMAND(STREAM_VALUE, stream_value, &v));
}
