// SPDX-License-Identifier: Apache-2.0
/* Physical memory, addresses, and what clients share. Each function is one command. What programs
 * hold (handles, reservations, mappings) is known by the rooms above. Object ids are numbers of
 * this client. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frontend/session/private.h"

enum { GOES_MS = 5000 }; /* for so long an address is asked for that a program has yet to give up */

static _Atomic uint64_t next_object = 1;

static ws_err check_device(struct ws_channel **ret, int device)
{
    ws_err r = ws_session_enter(ret);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    return r;
}

ws_err ws_session_memory_create(int device, uint64_t bytes, uint64_t *ret_object)
{
    struct ws_channel *c;
    Ws__MemCreate m = WS__MEM_CREATE__INIT;
    ws_err r = check_device(&c, device);
    if (r)
        return r;
    m.object = next_object++;
    m.device = (uint32_t)device;
    m.bytes = bytes;
    r = ws_channel_call(c, WS_COMMAND(MEM_CREATE, mem_create, &m), NULL);
    if (!r)
        *ret_object = m.object;
    return r;
}

ws_err ws_session_memory_release(uint64_t object)
{
    struct ws_channel *c;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    return r ? r : ws_channel_post(c, WS_COMMAND(MEM_RELEASE, mem_release, object));
}

ws_err ws_session_memory_export(uint64_t object, int *ret_fd)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter(&c);
    return r ? r : ws_channel_export(c, object, ret_fd);
}

ws_err ws_session_memory_import(int fd, uint64_t *ret_object, int *ret_device, uint64_t *ret_bytes)
{
    struct ws_channel *c;
    uint64_t object = next_object++;
    uint32_t device;
    ws_err r = ws_session_enter(&c);
    if (!r)
        r = ws_channel_import(c, fd, object, &device, ret_bytes);
    if (!r && device >= (uint32_t)ws_session_n_devices())
        r = WS__ERROR__INTERNAL;
    if (!r) {
        *ret_object = object;
        *ret_device = (int)device;
    }
    return r;
}

static bool is_address(uint64_t va, uint64_t bytes)
{
    return va >= WS_VA_FIRST && va < WS_VA_LAST && bytes <= WS_VA_LAST - va;
}

/* *ret_goes: whether a program that goes still has the wanted address. */
static ws_err reserve_once(struct ws_channel *c, Ws__VaReserve *m, uint64_t *ret_address,
                           bool *ret_goes)
{
    Ws__Reply *reply = NULL;
    ws_err r = ws_channel_call(c, WS_COMMAND(VA_RESERVE, va_reserve, m), &reply);
    if (!r && !is_address(reply->value, m->bytes))
        r = WS__ERROR__INTERNAL;
    if (!r)
        *ret_address = reply->value;
    *ret_goes = !r && reply->value2;
    ws_channel_reply_free(reply);
    return r;
}

/* A program's addresses are free when it has ended, as they are with a driver of its own. So the
 * daemon is asked again while a program that had the wanted address has yet to go. */
ws_err ws_session_va_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted,
                             uint64_t *ret_address)
{
    struct ws_channel *c;
    Ws__VaReserve m = WS__VA_RESERVE__INIT;
    bool goes;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    m.bytes = bytes;
    m.alignment = alignment;
    m.wanted = wanted;
    r = reserve_once(c, &m, ret_address, &goes);
    for (long ms = 1, waited = 0; !r && goes && waited < GOES_MS; ms = WS_MIN(2 * ms, 32L)) {
        nanosleep(&(struct timespec){.tv_nsec = ms * (long)WS_NS_PER_MS}, NULL);
        waited += ms;
        r = ws_channel_call(c, WS_COMMAND(VA_FREE, va_free, *ret_address), NULL);
        if (!r)
            r = reserve_once(c, &m, ret_address, &goes);
    }
    return r;
}

ws_err ws_session_va_free(uint64_t address)
{
    struct ws_channel *c;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    return r ? r : ws_channel_call(c, WS_COMMAND(VA_FREE, va_free, address), NULL);
}

ws_err ws_session_map(uint64_t address, uint64_t bytes, uint64_t object, uint64_t offset)
{
    struct ws_channel *c;
    Ws__MemMap m = WS__MEM_MAP__INIT;
    ws_err r = ws_session_enter(&c);
    m.address = address;
    m.bytes = bytes;
    m.object = object;
    m.offset = offset;
    return r ? r : ws_channel_call(c, WS_COMMAND(MEM_MAP, mem_map, &m), NULL);
}

ws_err ws_session_unmap(uint64_t address, uint64_t bytes)
{
    struct ws_channel *c;
    Ws__MemUnmap m = WS__MEM_UNMAP__INIT;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    m.address = address;
    m.bytes = bytes;
    return r ? r : ws_channel_call(c, WS_COMMAND(MEM_UNMAP, mem_unmap, &m), NULL);
}

ws_err ws_session_access(uint64_t address, uint64_t bytes, int device, bool read, bool write)
{
    struct ws_channel *c;
    Ws__MemAccess m = WS__MEM_ACCESS__INIT;
    ws_err r = check_device(&c, device);
    m.address = address;
    m.bytes = bytes;
    m.device = (uint32_t)device;
    m.read = read;
    m.write = write;
    return r ? r : ws_channel_call(c, WS_COMMAND(MEM_ACCESS, mem_access, &m), NULL);
}

ws_err ws_session_virtual_add(uint64_t base, uint64_t bytes, int device, bool readonly)
{
    return ws_memtab_add(WS_MEM_VIRTUAL, base, bytes, device, readonly ? WS_MEMTAB_READONLY : 0);
}

void ws_session_virtual_remove(uint64_t base)
{
    (void)ws_memtab_remove(WS_MEM_VIRTUAL, base, NULL, NULL); /* not there: nobody had access */
}

/* ---- sharing ---- */

static ws_err share(const Ws__Share *m, Ws__Reply **ret)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter(&c);
    return r ? r : ws_channel_call(c, WS_COMMAND(SHARE, share, (Ws__Share *)m), ret);
}

static ws_err take_handle(const Ws__Reply *reply, uint8_t *ret)
{
    if (reply->data.len != WS_SHARE_BYTES)
        return WS__ERROR__INTERNAL;
    memcpy(ret, reply->data.data, WS_SHARE_BYTES);
    return WS__ERROR__OK;
}

ws_err ws_session_memory_share(uint64_t address, uint8_t *ret_handle, uint64_t *ret_base)
{
    Ws__Share m = WS__SHARE__INIT;
    Ws__Reply *reply = NULL;
    m.what = WS__SHARE__WHAT__MEMORY_EXPORT;
    m.address = address;
    ws_err r = share(&m, &reply);
    if (!r)
        r = take_handle(reply, ret_handle);
    if (!r)
        *ret_base = reply->value;
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_memory_open(const uint8_t *handle, uint64_t *ret_address, uint64_t *ret_bytes)
{
    Ws__Share m = WS__SHARE__INIT;
    Ws__Reply *reply = NULL;
    m.what = WS__SHARE__WHAT__MEMORY_IMPORT;
    m.handle = (ProtobufCBinaryData){WS_SHARE_BYTES, (uint8_t *)handle};
    ws_err r = share(&m, &reply);
    if (!r && (!is_address(reply->value, reply->value2) ||
               reply->device >= (uint32_t)ws_session_n_devices()))
        r = WS__ERROR__INTERNAL;
    if (!r)
        r = ws_memtab_add(WS_MEM_IMPORTED, reply->value, reply->value2, (int)reply->device, 0);
    if (!r) {
        *ret_address = reply->value;
        *ret_bytes = reply->value2;
    }
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_peer_access(int device, int peer, bool on)
{
    struct ws_channel *c;
    Ws__PeerAccess m = WS__PEER_ACCESS__INIT;
    ws_err r = check_device(&c, device);
    if (!r && (peer < 0 || peer >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    if (r)
        return r;
    m.device = (uint32_t)device;
    m.peer = (uint32_t)peer;
    m.on = on;
    return ws_channel_call(c, WS_COMMAND(PEER_ACCESS, peer_access, &m), NULL);
}
