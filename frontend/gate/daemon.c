// SPDX-License-Identifier: Apache-2.0
/* The daemon, as the gate sees it: the frontend's channel, one Hello that says `gate`, two commands
 * without replies, and a thread that waits for what the daemon says. Nothing here waits for the
 * daemon but the first connecting. */
#include "frontend/gate/gate.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "frontend/channel/channel.h"
#include "frontend/config.h"

enum { TIMEOUT_MS = 5000 };

static struct ws_channel *channel; /* set before the state is; never changes then */
static const Ws__HelloReply *hello;

/* The channel asks for this: here it is read from the environment when it is needed. */
const struct ws_frontend_config *ws_frontend_config(void)
{
    static struct ws_frontend_config config = {.timeout_ms = TIMEOUT_MS, .ring = true};
    return &config;
}

static void *listen_main(void *arg)
{
    uint64_t id;
    (void)arg;
    while (!ws_channel_next_gate(channel, &id))
        ws_gate_told(id);
    ws_gate_told(0);
    return NULL;
}

static bool start_listening(void)
{
    pthread_t t;
    pthread_attr_t a;
    sigset_t all, old;
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the program's */
    int r = pthread_create(&t, &a, listen_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&a);
    return !r;
}

static void fork_child(void)
{
    if (channel)
        ws_channel_abandon(channel);
    channel = NULL; /* not freed: its locks may be held by threads that are not there any more */
    ws_gate_forked();
}

static bool connect_daemon(void)
{
    const char *socket = getenv(WS_ENV_SOCKET), *task = getenv(WS_ENV_TASK);
    char exe[4096] = "";
    Ws__Hello h = WS__HELLO__INIT;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    socket = socket && *socket ? socket : WS_DEFAULT_SOCKET;
    h.version = WS_PROTOCOL_VERSION;
    h.pid = (uint32_t)getpid();
    h.exe = exe;
    h.comm = program_invocation_short_name;
    h.task = task ? (char *)task : (char *)"";
    h.local = !strncmp(socket, "ipc://", 6);
    h.gate = true;
    if (ws_channel_open(&channel, socket, &h, TIMEOUT_MS))
        return false;
    ws_channel_set_loss(channel, "the gate is open from here on: launches go without asking");
    hello = ws_channel_hello(channel);
    pthread_atfork(NULL, NULL, fork_child);
    return start_listening();
}

void ws_gate_connect(void)
{
    static bool said;
    ws_log_set_output(STDERR_FILENO, "wattshare: gate");
    if (connect_daemon()) {
        ws_gate_told(hello->gate_policy ? WS_GATE_POLICY_ON : WS_GATE_POLICY_OFF);
        return;
    }
    ws_gate_say(&said,
                "the daemon cannot be reached: the gate is open, and launches go without asking");
    ws_gate_told(0);
}

int ws_gate_device(const uint8_t uuid[16])
{
    for (size_t i = 0; hello && i < hello->n_devices; i++)
        if (hello->devices[i]->uuid.len == 16 && !memcmp(hello->devices[i]->uuid.data, uuid, 16))
            return (int)i;
    return -1;
}

uint32_t ws_gate_lease_ms(void)
{
    return hello && hello->gate_lease_ms ? hello->gate_lease_ms : 1000;
}

static bool post(const Ws__Command *m)
{
    return channel && !ws_channel_post(channel, m) && !ws_channel_flush(channel);
}

bool ws_gate_begin(uint32_t device, uint64_t serial)
{
    Ws__Command m = WS__COMMAND__INIT;
    Ws__GateBegin b = WS__GATE_BEGIN__INIT;
    m.c_case = WS__COMMAND__C_GATE_BEGIN;
    m.gate_begin = &b;
    b.device = device;
    b.serial = serial;
    return post(&m);
}

void ws_gate_end(uint32_t device, uint64_t serial, uint64_t n_launches, uint64_t device_ns,
                 bool measured)
{
    Ws__Command m = WS__COMMAND__INIT;
    Ws__GateEnd e = WS__GATE_END__INIT;
    m.c_case = WS__COMMAND__C_GATE_END;
    m.gate_end = &e;
    e.device = device;
    e.serial = serial;
    e.n_launches = n_launches;
    e.device_ns = device_ns;
    e.measured = measured;
    (void)post(&m); /* nobody to tell: the listener finds out */
}

/* The daemon would notice by itself; with this its log says that the program ended. */
__attribute__((destructor)) static void end(void)
{
    ws_gate_told(0);
    if (channel)
        ws_channel_close(channel, true);
}
