// SPDX-License-Identifier: Apache-2.0
/* Usage: session_client MODE. Works through the session without pause until a call fails. Then it
 * prints what failed, and exits with 0 if all later calls fail at once too. It says "ready" when
 * the work has begun. Modes: sync launch write read alloc, and gate, which waits for streams to get
 * to host functions; the second one in a row is never reached, since the daemon is to end
 * meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "frontend/config.h"
#include "frontend/session/session.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry none()\n{\n\tret;\n}\n";
enum { BYTES = 32 << 20 };
static uint8_t *host;
static uint64_t device;
static struct ws_session_function *function;

static ws_err work(const char *mode)
{
    static uint64_t gate;
    uint64_t s = ws_stream_legacy(0), a;
    struct ws_launch l = {
        .function = function, .stream = s, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    ws_err r;
    switch (mode[0]) {
    case 's':
        return ws_session_device_sync(0);
    case 'l':
        return ws_session_launch(&l);
    case 'w':
        return ws_session_copy(s, (void *)device, host, BYTES, WS_COPY_H2D, false);
    case 'r':
        return ws_session_copy(s, host, (void *)device, BYTES, WS_COPY_D2H, false);
    case 'g':
        gate++;
        if (gate == 1 && (r = ws_session_gate_put(s, gate)))
            return r;
        r = ws_session_gate_next(&a);
        return r ? r : a != gate;
    default:
        r = ws_session_mem_alloc(0, 4096, &a);
        return r ? r : ws_session_mem_free(a);
    }
}

int main(int argc, char **argv)
{
    struct ws_session_module *m;
    ws_frontend_config_read(environ);
    host = calloc(1, BYTES);
    if (argc != 2 || !host || ws_session_module_load(0, ptx, 0, "none", &m, NULL) ||
        ws_session_module_function(m, "none", &function) ||
        ws_session_mem_alloc(0, BYTES, &device) || work(argv[1]))
        return 2;
    puts("ready");
    fflush(stdout);
    ws_err r;
    while (!(r = work(argv[1])))
        ;
    uint64_t t = ws_clock_ns();
    ws_err again = ws_session_device_sync(0), alloc = ws_session_mem_alloc(0, 8, &device);
    printf("failed %d\n", r);
    return r != WS__ERROR__DISCONNECTED || again != r || alloc != r ||
           ws_clock_ns() - t > 100 * WS_NS_PER_MS;
}
