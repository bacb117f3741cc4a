// SPDX-License-Identifier: Apache-2.0
/* Chapter "Error Log Management Functions": the warnings and errors that this library writes to
 * stderr are kept as CUDA documents it, the last 100 messages of at most 255 characters each. An
 * iterator is the number of the next message, counted from the start of the process. Messages are
 * kept from the first call of any function here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/log.h"
#include "frontend/facade.h"

enum { MESSAGES = 100, MESSAGE_BYTES = 256 };
static const char truncated[] = "(older messages were overwritten, or have no room here)\n";

struct ws_log_callback {
    struct ws_list node;
    void (*fn)(void *data, int level, char *message, size_t length);
    void *data;
};
static char messages[MESSAGES][MESSAGE_BYTES]; /* with a newline */
static unsigned n_messages;                    /* ever */
static struct ws_list callbacks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void tap(enum ws_log_level level, const char *text, size_t n)
{
    enum { MAX_CALLBACKS = 16 };
    struct ws_log_callback copy[MAX_CALLBACKS];
    char message[MESSAGE_BYTES];
    unsigned n_copy = 0;
    if (level > WS_WARN)
        return;
    n = WS_MIN(n, sizeof(message) - 2);
    memcpy(message, text, n);
    memcpy(message + n, "\n", 2);
    pthread_mutex_lock(&lock);
    memcpy(messages[n_messages++ % MESSAGES], message, n + 2);
    ws_list_for_each (at, &callbacks)
        if (n_copy < MAX_CALLBACKS)
            copy[n_copy++] = *ws_list_entry(at, struct ws_log_callback, node);
    pthread_mutex_unlock(&lock);
    message[n] = '\0';
    for (unsigned i = 0; i < n_copy; i++)
        copy[i].fn(copy[i].data, level == WS_WARN, message, n);
}

static void begin(void)
{
    ws_list_init(&callbacks);
    ws_log_set_tap(tap);
}

static int add_callback(void (*fn)(void *, int, char *, size_t), void *data,
                        struct ws_log_callback **ret)
{
    if (!fn)
        return CUDA_INVALID_VALUE;
    struct ws_log_callback *c = ws_alloc(sizeof(*c));
    if (!c)
        return CUDA_OUT_OF_MEMORY;
    pthread_once(&once, begin);
    c->fn = fn;
    c->data = data;
    pthread_mutex_lock(&lock);
    ws_list_append(&callbacks, &c->node);
    pthread_mutex_unlock(&lock);
    if (ret)
        *ret = c;
    return CUDA_OK;
}

static int remove_callback(struct ws_log_callback *c)
{
    int code = CUDA_INVALID_VALUE;
    pthread_once(&once, begin);
    pthread_mutex_lock(&lock);
    ws_list_for_each_safe (at, &callbacks)
        if (ws_list_entry(at, struct ws_log_callback, node) == c) {
            ws_list_remove(at);
            free(c);
            code = CUDA_OK;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

static int current(unsigned *ret, unsigned flags)
{
    pthread_once(&once, begin);
    if (!ret || flags)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *ret = n_messages;
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

/* What is to be dumped, as much as fits @room (with a NUL), newest last. Lock held. Return: its
 * length. */
static size_t dump(unsigned from, char *to, size_t room)
{
    unsigned kept = WS_MIN(n_messages, (unsigned)MESSAGES), first = n_messages - kept;
    bool cut = from < first;
    size_t n = 0;
    first = WS_MAX(first, WS_MIN(from, n_messages));
    for (unsigned i = first; i < n_messages; i++)
        n += strlen(messages[i % MESSAGES]);
    while (first < n_messages && n + (cut ? sizeof(truncated) - 1 : 0) + 1 > room) {
        n -= strlen(messages[first++ % MESSAGES]);
        cut = true;
    }
    char *at = to;
    if (cut && n)
        at = stpcpy(at, truncated);
    *at = '\0';
    for (unsigned i = first; i < n_messages; i++)
        at = stpcpy(at, messages[i % MESSAGES]);
    return (size_t)(at - to);
}

static int dump_to_memory(unsigned *iterator, char *buffer, size_t *bytes, unsigned flags)
{
    pthread_once(&once, begin);
    if (!buffer || !bytes || !*bytes || flags)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    unsigned from = iterator ? *iterator : 0;
    bool any = from < n_messages;
    *bytes = dump(from, buffer, *bytes);
    if (iterator && *bytes)
        *iterator = n_messages;
    pthread_mutex_unlock(&lock);
    return any && !*bytes ? CUDA_INVALID_VALUE : CUDA_OK;
}

static int dump_to_file(unsigned *iterator, const char *path, unsigned flags)
{
    size_t bytes = (size_t)MESSAGES * MESSAGE_BYTES + sizeof(truncated);
    if (!path || flags)
        return CUDA_INVALID_VALUE;
    char *buffer = ws_alloc(bytes);
    if (!buffer)
        return CUDA_OUT_OF_MEMORY;
    int code = dump_to_memory(iterator, buffer, &bytes, 0);
    FILE *f = code ? NULL : fopen(path, "we");
    if (!code && (!f || fwrite(buffer, 1, bytes, f) != bytes))
        code = CUDA_INVALID_VALUE;
    if (f && fclose(f))
        code = CUDA_INVALID_VALUE;
    free(buffer);
    return code;
}

WS_BOTH_API(cudaLogsRegisterCallback, cuLogsRegisterCallback,
            (void (*fn)(void *, int, char *, size_t), void *data, struct ws_log_callback **ret),
            (fn, data, ret))
{
    return add_callback(fn, data, ret);
}
WS_BOTH_API(cudaLogsUnregisterCallback, cuLogsUnregisterCallback,
            (struct ws_log_callback * callback), (callback))
{
    return remove_callback(callback);
}
WS_BOTH_API(cudaLogsCurrent, cuLogsCurrent, (unsigned *iterator, unsigned flags), (iterator, flags))
{
    return current(iterator, flags);
}
WS_BOTH_API(cudaLogsDumpToFile, cuLogsDumpToFile,
            (unsigned *iterator, const char *path, unsigned flags), (iterator, path, flags))
{
    return dump_to_file(iterator, path, flags);
}
WS_BOTH_API(cudaLogsDumpToMemory, cuLogsDumpToMemory,
            (unsigned *iterator, char *buffer, size_t *bytes, unsigned flags),
            (iterator, buffer, bytes, flags))
{
    return dump_to_memory(iterator, buffer, bytes, flags);
}
