// SPDX-License-Identifier: Apache-2.0
/* The runtime's last error belongs to the thread, and to the copy of the runtime that the program
 * called: a library with a static runtime does not see the errors of another's. Code such as CUB's
 * would take them for errors of its own launches and give up. */
#include "frontend/context/context.h"
#include "frontend/errors.h"
#include "frontend/interpose/redirect.h"
#include "frontend/session/callers.h"

/* The copy that the innermost function of the program on the stack calls. Most programs have one
 * copy only, and need no look at the stack. A function that jumps here as its last act is not on
 * the stack any more; its caller counts, which is mostly of the same library. */
static uintptr_t calling_runtime(void)
{
    struct ws_callers c = {0};
    if (!ws_redirect_has_copies())
        return 0;
    ws_callers_take(&c);
    return c.n ? ws_redirect_runtime(c.at[0]) : 0;
}

static struct ws_last_error *find(uintptr_t runtime)
{
    for (unsigned i = 0; i < ws_thread.n_last_errors; i++)
        if (ws_thread.last_errors[i].runtime == runtime)
            return &ws_thread.last_errors[i];
    return NULL;
}

void ws_rt_failed(int code)
{
    uintptr_t runtime = calling_runtime();
    struct ws_last_error *e = find(runtime);
    if (!e && ws_thread.n_last_errors < WS_LAST_ERRORS)
        e = &ws_thread.last_errors[ws_thread.n_last_errors++];
    if (!e) /* that many copies failed, and none was asked: the oldest is least wanted */
        e = ws_thread.last_errors;
    *e = (struct ws_last_error){runtime, code};
}

/* Quick where there is nothing: programs ask after each launch. */
int ws_rt_last_error(bool forget)
{
    struct ws_last_error *e = ws_thread.n_last_errors ? find(calling_runtime()) : NULL;
    int code = e ? e->code : CUDA_OK;
    if (e && forget)
        *e = ws_thread.last_errors[--ws_thread.n_last_errors];
    return code;
}
