// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a connection: an account of this machine, or an address.
//
// On the unix socket the kernel names the account. Over TCP it does so too when the client's socket
// is of this machine and network namespace: it is looked up by both addresses and ports. This is
// for counting, limits and the log. It gives no rights: those over TCP come by token.
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PEER_NO_UID ((uid_t)-1)

struct peer {
    uint64_t client; // one number per client: an account, an IPv4 address, or an IPv6 /64
    uid_t uid;       // PEER_NO_UID: not known
    pid_t pid;       // that connected to the Unix socket; 0: not known
    char text[INET6_ADDRSTRLEN + 20]; // "uid:1000", "uid:1000@127.0.0.1", "192.0.2.7"
};

// A netlink socket by which peer_of_tcp() learns accounts. `listening` is the TCP socket that the
// connections come from; the new one is tried on it. -1: the kernel does not answer (containers,
// other network namespaces), and loopback counts as one client.
int peer_diag_open(int listening);

void peer_of_unix(struct peer *p, int fd);
// Never blocks. `diag` may be -1; `far` is the address that accept() gave. A client that has closed
// its socket has no account.
void peer_of_tcp(struct peer *p, int diag, int fd, const struct sockaddr_storage *far);

// The client's number where only its address is known; all of loopback is one client.
uint64_t peer_client_of_address(const struct sockaddr_storage *a);

// Root or the daemon's own account.
bool peer_is_ours(const struct peer *p);
