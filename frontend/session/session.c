// SPDX-License-Identifier: Apache-2.0
/* The life of the session: NEW -> OPEN at the first call that needs the daemon, or FAILED for good;
 * ENDED when exit begins; CHILD in a forked child of an open one. The state is read without a lock
 * on every call; it changes under init_lock, which is held over fork so that a child of a NEW
 * session finds it consistent. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "frontend/config.h"
#include "frontend/session/findings.h"
#include "frontend/session/private.h"

enum session_state { NEW, OPEN, FAILED, ENDED, CHILD };
static _Atomic enum session_state state;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_channel *channel; /* set before OPEN is; never changes then */
static const Ws__HelloReply *hello;
static bool local;
static _Atomic uint32_t epochs[WS_MAX_DEVICES];

/* ---- the log: a descriptor of our own, out of the way of programs that count theirs ---- */
enum { LOG_FD_FIRST = 200 };
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static void log_open(void)
{
    int fd = -1, file = -1;
    if (ws_frontend_config()->log[0])
        file = open(ws_frontend_config()->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    fd = fcntl(file >= 0 ? file : STDERR_FILENO, F_DUPFD_CLOEXEC, LOG_FD_FIRST);
    if (file >= 0 && fd >= 0)
        close(file);
    if (fd < 0)
        fd = file;
    if (fd < 0) /* a low limit of descriptors */
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    ws_log_set_output(fd >= 0 ? fd : STDERR_FILENO, "wattshare");
}

/* ---- fork ---- */
static void fork_prepare(void)
{
    pthread_mutex_lock(&init_lock);
}
static void fork_parent(void)
{
    pthread_mutex_unlock(&init_lock);
}
static void fork_child(void)
{
    if (state == OPEN) {
        state = CHILD;
        ws_channel_abandon(channel);
    }
    pthread_mutex_init(&init_lock, NULL);
}

/* ---- connecting ---- */
static ws_err connect_locked(void)
{
    static bool fork_known;
    const struct ws_frontend_config *cfg = ws_frontend_config();
    char exe[4096] = "", comm[32] = "";
    Ws__Hello h = WS__HELLO__INIT;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';
    snprintf(comm, sizeof(comm), "%.31s",
             program_invocation_short_name ? program_invocation_short_name : "");
    local = !strncmp(cfg->socket, "ipc://", 6);
    h.version = WS_PROTOCOL_VERSION;
    h.pid = getpid();
    h.exe = exe;
    h.comm = comm;
    h.task = (char *)cfg->task;
    h.visible_devices = (char *)cfg->visible_devices;
    h.has_visible_devices = cfg->has_visible_devices;
    h.local = local;
    h.sms = (uint32_t)cfg->sms;
    if (!fork_known && pthread_atfork(fork_prepare, fork_parent, fork_child) == 0)
        fork_known = true;
    int r = ws_channel_open(&channel, cfg->socket, &h, cfg->timeout_ms);
    if (r)
        return r;
    hello = ws_channel_hello(channel);
    local = local && hello->handoff_socket[0];
    if (!hello->limits || hello->n_devices > WS_MAX_DEVICES) {
        ws_log(WS_ERROR, "session: the daemon's hello lacks limits or has too many devices");
        return WS__ERROR__DISCONNECTED;
    }
    return WS__ERROR__OK;
}

static ws_err enter_slow(void)
{
    pthread_once(&log_once, log_open);
    pthread_mutex_lock(&init_lock);
    if (state == NEW)
        state = connect_locked() ? FAILED : OPEN;
    static bool told;
    if (state == CHILD && !told) {
        told = true;
        ws_log(WS_ERROR,
               "session: CUDA was in use when pid %d was forked, so the child cannot use it "
               "(fork before the first CUDA call, or exec)",
               (int)getpid());
    }
    bool ok = state == OPEN;
    pthread_mutex_unlock(&init_lock);
    return ok ? WS__ERROR__OK : WS__ERROR__DISCONNECTED;
}

ws_err ws_session_enter_anyway(struct ws_channel **ret)
{
    if (WS_UNLIKELY(state != OPEN)) {
        ws_err r = enter_slow();
        if (r)
            return r;
    }
    *ret = channel;
    return WS__ERROR__OK;
}

ws_err ws_session_enter(struct ws_channel **ret)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter_anyway(&c);
    if (WS_UNLIKELY(r))
        return r;
    int e = ws_channel_async_error(c, false);
    if (WS_UNLIKELY(e >= WS__ERROR__ILLEGAL_ADDRESS))
        return e;
    *ret = c;
    return WS__ERROR__OK;
}

void ws_session_open_log(void)
{
    pthread_once(&log_once, log_open);
}

bool ws_session_is_open(void)
{
    return state == OPEN;
}

bool ws_session_used(void)
{
    enum session_state s = state;
    return s != NEW && s != FAILED;
}

bool ws_session_ended(void)
{
    return state == ENDED;
}
const Ws__Limits *ws_session_limits(void)
{
    return hello->limits;
}
bool ws_session_local(void)
{
    return local;
}
int ws_session_n_devices(void)
{
    return (int)hello->n_devices;
}
uint32_t ws_session_epoch(int device)
{
    return epochs[device];
}

ws_err ws_session_connect(void)
{
    struct ws_channel *c;
    return ws_session_enter(&c);
}

void ws_session_shutdown(void)
{
    if (state == OPEN) {
        ws_session_output();
        ws_findings_end(ws_channel_async_error(channel, false) != WS__ERROR__OK);
        ws_session_tell_unsupported();
    }
    pthread_mutex_lock(&init_lock);
    enum session_state s = state;
    if (s != CHILD)
        state = ENDED;
    pthread_mutex_unlock(&init_lock);
    if (s == OPEN)
        ws_channel_close(channel, true);
}

/* ---- devices ---- */
ws_err ws_session_device_count(int *ret)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter_anyway(&c);
    if (!r)
        *ret = ws_session_n_devices();
    return r;
}

const Ws__Device *ws_session_device(int device)
{
    struct ws_channel *c;
    if (ws_session_enter_anyway(&c) || device < 0 || device >= ws_session_n_devices())
        return NULL;
    return hello->devices[device];
}

static ws_err check_device(struct ws_channel **ret, int device)
{
    ws_err r = ws_session_enter(ret);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    return r;
}

ws_err ws_session_mem_info(int device, uint64_t *ret_free, uint64_t *ret_total)
{
    struct ws_channel *c;
    Ws__Reply *reply = NULL;
    ws_err r = check_device(&c, device);
    if (!r)
        r = ws_channel_call(c, WS_COMMAND(MEM_INFO, mem_info, (uint32_t)device), &reply);
    if (!r) {
        *ret_free = reply->value;
        *ret_total = reply->value2;
    }
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_reset(int device)
{
    struct ws_channel *c;
    Ws__Reset reset = WS__RESET__INIT;
    ws_err r = ws_session_enter_anyway(&c);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    if (r)
        return r;
    reset.device = device;
    r = ws_channel_call(c, WS_COMMAND(RESET, reset, &reset), NULL);
    ws_session_output();
    if (r == WS__ERROR__DISCONNECTED)
        return r;
    ws_channel_async_error(c, true);
    epochs[device]++;
    ws_memtab_remove_device(device);
    ws_findings_reset();
    return r;
}

void (*_Atomic ws_session_synced)(void);

void ws_session_note_synced(ws_err r)
{
    void (*fn)(void) = r ? NULL : ws_session_synced;
    if (WS_UNLIKELY(fn != NULL))
        fn();
}

ws_err ws_session_device_sync(int device)
{
    struct ws_channel *c;
    Ws__Sync sync = WS__SYNC__INIT;
    ws_err r = check_device(&c, device);
    sync.what_case = WS__SYNC__WHAT_DEVICE;
    sync.device = device;
    if (!r)
        r = ws_channel_call(c, WS_COMMAND(SYNC, sync, &sync), NULL);
    ws_session_output();
    ws_session_note_synced(r);
    return r;
}
