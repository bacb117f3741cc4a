// SPDX-License-Identifier: Apache-2.0
/* backend/wire/peer.h - whether the other end of a connection is still there. */
#ifndef WS_BACKEND_WIRE_PEER_H
#define WS_BACKEND_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * ws_peer_gone() - whether the connection that a message came by has ended
 * @fd:  the descriptor it came by; its owner may have closed it since, and it may be another
 *       connection's by now; -1: unknown
 * @pid: the process at the other end, as the kernel said when it connected (unix sockets);
 *       0: unknown
 *
 * The answer is never true while the connection exists. After its end the answer is false only if
 * another connection has its number already (one of the same process, where that is known).
 */
bool ws_peer_gone(int fd, uint32_t pid);

#endif
