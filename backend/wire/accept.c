// SPDX-License-Identifier: Apache-2.0
/* accept4() takes a descriptor before it looks whether a connection waits. So when no descriptor is
 * left, one that is held in reserve is given up: what is accepted then has it if somebody leaves
 * room, and is closed otherwise. A connection that stays at the listener would keep it readable,
 * and the loop would spin. */
#include "backend/wire/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/packet.h"

enum { PER_TURN = 16 };
#define NO_DESCRIPTOR_NS (100 * WS_NS_PER_MS)

bool ws_accept_may_say(void)
{
    static uint64_t said_ns;
    uint64_t now = ws_clock_ns();
    if (said_ns && now - said_ns < WS_NS_PER_S)
        return false;
    said_ns = now;
    return true;
}

void ws_accept_say_refused(const struct ws_account *a, enum ws_resource r, uint64_t n)
{
    char text[256];
    if (ws_accept_may_say())
        ws_log(WS_WARN, "door: refused: %s", ws_account_refusal(a, r, n, text, sizeof(text)));
}

bool ws_accept_charge(const struct ws_accept_ops *ops, struct ws_account *a)
{
    if (!a)
        return false;
    if (!ws_account_charge(a, WS_RESOURCE_CONNECTIONS, 1) ||
        (ops->make_room(ops->arg, a) && !ws_account_charge(a, WS_RESOURCE_CONNECTIONS, 1)))
        return true;
    ws_accept_say_refused(a, WS_RESOURCE_CONNECTIONS, 1);
    ws_account_unref(a);
    return false;
}

bool ws_accept_lets_go(const struct ws_account *a, const struct ws_account *has, uint64_t *most)
{
    uint64_t n = a ? has == a : ws_account_used(has, WS_RESOURCE_CONNECTIONS);
    if (n <= *most)
        return false;
    *most = n;
    return true;
}

/* Whose it is, as the kernel knows. */
static struct ws_account *account_of(const struct ws_accept *l, struct ws_newly_accepted *n)
{
    socklen_t size = sizeof(n->cred);
    if (!l->local)
        return ws_account_of_address(l->ops.accounts, (const struct sockaddr *)&n->from, n->n_from);
    if (getsockopt(n->fd, SOL_SOCKET, SO_PEERCRED, &n->cred, &size))
        n->cred = (struct ucred){.uid = WS_ACCOUNT_NO_UID};
    return ws_account_of_user(l->ops.accounts, n->cred.uid);
}

static int accept_one(const struct ws_accept *l, struct ws_newly_accepted *ret)
{
    *ret = (struct ws_newly_accepted){.n_from = sizeof(ret->from)};
    ret->fd =
        accept4(l->fd, (struct sockaddr *)&ret->from, &ret->n_from, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return ret->fd;
}

/* It may have sent something already. */
static void refuse(const struct ws_accept *l, const struct ws_newly_accepted *n)
{
    struct ws_account *a =
        l->local ? account_of(l, &(struct ws_newly_accepted){.fd = n->fd}) : NULL;
    if (!a) {
        close(n->fd);
        return;
    }
    ws_account_take_over(a, WS_RESOURCE_CONNECTIONS, 1);
    ws_closer_end(l->ops.closer, n->fd, a, WS_RESOURCE_CONNECTIONS);
    ws_account_unref(a);
}

static void enter(struct ws_accept *l, struct ws_newly_accepted *n)
{
    n->account = account_of(l, n);
    if (ws_accept_charge(&l->ops, n->account))
        l->ops.enter(l->ops.arg, n);
    else
        refuse(l, n);
}

static void open_reserve(struct ws_accept *l)
{
    if (l->reserve_fd < 0)
        l->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    l->again_ns = l->reserve_fd < 0 ? ws_clock_ns() + NO_DESCRIPTOR_NS : 0;
}

static void accept_by_reserve(struct ws_accept *l)
{
    struct ws_newly_accepted n;
    if (l->reserve_fd >= 0)
        close(l->reserve_fd);
    l->reserve_fd = -1;
    if (accept_one(l, &n) < 0) {
        l->more = errno != EAGAIN;
    } else if (l->ops.make_room(l->ops.arg, NULL)) {
        enter(l, &n);
    } else {
        refuse(l, &n);
        if (ws_accept_may_say())
            ws_log(WS_ERROR, "door: no descriptor left for a new connection; raise the limit of "
                             "open files (ulimit -n)");
    }
    open_reserve(l);
}

void ws_accept_turn(struct ws_accept *l)
{
    if (l->again_ns && ws_clock_ns() >= l->again_ns)
        open_reserve(l);
    for (int i = 0; i < PER_TURN && l->more && !l->again_ns; i++) {
        struct ws_newly_accepted n;
        if (accept_one(l, &n) >= 0)
            enter(l, &n);
        else if (errno == EMFILE || errno == ENFILE)
            accept_by_reserve(l);
        else if (errno == EAGAIN)
            l->more = false;
    }
}

int ws_accept_timeout_ms(const struct ws_accept *l)
{
    if (!l->more)
        return -1;
    return l->again_ns ? ws_timeout_until(l->again_ns) : 0;
}

void ws_accept_init(struct ws_accept *l, int fd, bool local, const struct ws_accept_ops *ops)
{
    *l = (struct ws_accept){.ops = *ops, .fd = fd, .local = local, .reserve_fd = -1};
    if (local)
        ws_packet_let_fds_in(fd, false);
    open_reserve(l);
}

void ws_accept_deinit(struct ws_accept *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->reserve_fd >= 0)
        close(l->reserve_fd);
    l->fd = l->reserve_fd = -1;
}
