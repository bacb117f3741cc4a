// SPDX-License-Identifier: Apache-2.0
/* Descriptors that stand for memory. Each is the writing end of a pipe that nobody writes to.
 * The daemon keeps the reading end: end of file there says that no process has the descriptor
 * any more. A descriptor that comes back is known by its inode. So whoever has been given the
 * descriptor may use the memory, and nobody else; and the memory exists as long as one is open,
 * as in CUDA. */
#include "backend/backend.h"
#include "backend/client/object.h"
#include "backend/client/user.h"
#include "backend/client/vmm.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/packet.h"
#include "base/watch.h"
#include "protocol/handoff.h"

struct ws_export {
    enum ws_handoff_source source; /* first: what an event of the epoll descriptor points at */
    ino_t inode;                   /* of the pipe */
    int fd;                        /* the reading end */
    struct ws_object *object;
    struct ws_client *client;   /* who counts it; NULL: gone */
    struct ws_list of_client;   /* client->memory.exports */
    struct ws_account *account; /* of its user, charged with the descriptor */
    struct ws_list node;        /* object->exports */
    UT_hash_handle hh;
};

Ws__Error ws_export_new(struct ws_client *c, uint64_t handle, int *ret_fd)
{
    struct ws_server *s = c->server;
    struct ws_handle *h = ws_handle_find(c, handle);
    int fds[2];
    if (!h)
        return WS__ERROR__INVALID_HANDLE;
    if (c->memory.n_exports >= WS_MAX_EXPORTS || ws_client_charge(c, WS_RESOURCE_DESCRIPTORS, 1))
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_export *e = ws_alloc(sizeof(*e));
    if (!e || pipe2(fds, O_CLOEXEC)) {
        ws_client_release(c, WS_RESOURCE_DESCRIPTORS, 1);
        free(e);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    struct epoll_event event = {.events = 0, .data.ptr = e}; /* a hang-up is always told */
    e->source = WS_HANDOFF_SOURCE_EXPORT;
    e->fd = fds[0];
    if (!ws_packet_is_pipe(e->fd, &e->inode) ||
        epoll_ctl(s->handoff.epoll_fd, EPOLL_CTL_ADD, e->fd, &event)) {
        close(fds[0]);
        close(fds[1]);
        ws_client_release(c, WS_RESOURCE_DESCRIPTORS, 1);
        free(e);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    e->object = h->ref.object;
    e->client = c;
    e->account = ws_account_ref(c->who.account);
    c->memory.n_exports++;
    ws_list_append(&c->memory.exports, &e->of_client);
    ws_list_append(&e->object->exports, &e->node);
    HASH_ADD(hh, s->memory.exports, inode, sizeof(e->inode), e);
    *ret_fd = fds[1];
    return WS__ERROR__OK;
}

Ws__Error ws_export_import(struct ws_client *c, int fd, uint64_t handle,
                           struct ws_handoff_reply *ret)
{
    struct ws_export *e = NULL;
    ino_t inode;
    if (fd >= 0 && ws_packet_is_pipe(fd, &inode)) /* of other files, some would have to be asked */
        HASH_FIND(hh, c->server->memory.exports, &inode, sizeof(inode), e);
    if (!e || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
        return WS__ERROR__INVALID_VALUE;
    struct ws_context *x = ws_object_context(c, e->object);
    if (!x)
        return WS__ERROR__INVALID_DEVICE;
    ret->bytes = e->object->bytes;
    ret->segment = x->index;
    return ws_handle_add(c, handle, e->object);
}

void ws_export_closed(struct ws_export *e)
{
    struct ws_object *o = e->object;
    struct ws_server *s = o->gpu->server;
    HASH_DEL(s->memory.exports, e);
    ws_watch_close(s->handoff.epoll_fd, e->fd);
    ws_list_remove(&e->node);
    if (e->client)
        e->client->memory.n_exports--;
    ws_list_remove(&e->of_client);
    ws_account_release(e->account, WS_RESOURCE_DESCRIPTORS, 1);
    ws_account_unref(e->account);
    free(e);
    ws_object_settle(o);
}

void ws_exports_forget(struct ws_client *c)
{
    struct ws_list *n;
    while ((n = ws_list_pop(&c->memory.exports)))
        ws_list_entry(n, struct ws_export, of_client)->client = NULL;
}

void ws_exports_free(struct ws_server *s)
{
    struct ws_export *e, *next;
    HASH_ITER (hh, s->memory.exports, e, next)
        ws_export_closed(e);
}
