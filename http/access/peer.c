// SPDX-License-Identifier: Apache-2.0
// The account of a TCP client on this machine is looked up in the kernel's table of sockets
// (netlink, sock_diag): the row whose two ends are those of the connection, seen from the other
// side.
#include "http/access/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

// The upper half of a client's number, for what is no IPv6 prefix: those of 0001::/16 to 0003::/16
// are assigned to no network.
enum { OF_ACCOUNT = 1 << 16, OF_IPV4 = 2 << 16, OF_LOOPBACK = 3 << 16 };

// What the kernel calls an account that a user namespace does not map.
enum { OVERFLOW_UID = 65534 };

// Of a TCP socket: both ends in network byte order, as the kernel's table has them.
struct pair {
    sa_family_t family; // AF_INET also for IPv4 mapped into IPv6
    uint16_t near_port, far_port;
    uint32_t near[4], far[4];
    uint32_t interface; // of a link-local address
};

static uint64_t peer_number(uint32_t kind, uint32_t value)
{
    return (uint64_t)kind << 32 | value;
}

static bool end_of(const struct sockaddr_storage *a, struct pair *p, uint16_t *port,
                   uint32_t address[4])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
    memset(address, 0, 4 * sizeof address[0]);
    if (a->ss_family == AF_INET) {
        p->family = AF_INET;
        *port = v4->sin_port;
        address[0] = v4->sin_addr.s_addr;
        return true;
    }
    if (a->ss_family != AF_INET6)
        return false;
    bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    p->family = mapped ? AF_INET : AF_INET6;
    *port = v6->sin6_port;
    memcpy(address, mapped ? &v6->sin6_addr.s6_addr[12] : v6->sin6_addr.s6_addr, mapped ? 4 : 16);
    p->interface = v6->sin6_scope_id;
    return true;
}

// Of an established connection seen from here. far NULL: of a listening socket, which has none.
static bool read_pair(int fd, const struct sockaddr_storage *far, struct pair *p)
{
    struct sockaddr_storage near = {0};
    socklen_t n = sizeof near;
    *p = (struct pair){0};
    if (getsockname(fd, (struct sockaddr *)&near, &n) < 0 ||
        (far && !end_of(far, p, &p->far_port, p->far)))
        return false;
    return end_of(&near, p, &p->near_port, p->near);
}

static bool peer_is_loopback(const struct pair *p)
{
    static const uint8_t one[16] = {[15] = 1};
    return p->family == AF_INET ? ntohl(p->far[0]) >> 24 == 127
                                : memcmp(p->far, one, sizeof one) == 0;
}

static uint64_t peer_client_of(const struct pair *p)
{
    if (peer_is_loopback(p))
        return peer_number(OF_LOOPBACK, 0);
    return p->family == AF_INET ? peer_number(OF_IPV4, ntohl(p->far[0]))
                                : (uint64_t)ntohl(p->far[0]) << 32 | ntohl(p->far[1]);
}

uint64_t peer_client_of_address(const struct sockaddr_storage *a)
{
    struct pair p = {0};
    return end_of(a, &p, &p.far_port, p.far) ? peer_client_of(&p) : peer_number(OF_LOOPBACK, 0);
}

// One question, one answer: the kernel works on it inside sendto(), in about 10 us.
static bool peer_ask(int diag, const struct pair *p, bool other_end, struct inet_diag_msg *out)
{
    static uint32_t sequence;
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 of;
    } question = {
        .head = {.nlmsg_len = sizeof question,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = ++sequence},
        .of = {.sdiag_family = (uint8_t)p->family,
               .sdiag_protocol = IPPROTO_TCP,
               .idiag_states = ~0U,
               .id = {.idiag_sport = other_end ? p->far_port : p->near_port,
                      .idiag_dport = other_end ? p->near_port : p->far_port,
                      .idiag_if = p->interface,
                      .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    _Alignas(struct nlmsghdr) char answer[1024];
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    memcpy(question.of.id.idiag_src, other_end ? p->far : p->near, sizeof p->far);
    memcpy(question.of.id.idiag_dst, other_end ? p->near : p->far, sizeof p->far);
    if (sendto(diag, &question, sizeof question, MSG_DONTWAIT, (struct sockaddr *)&kernel,
               sizeof kernel) != (ssize_t)sizeof question)
        return false;
    for (ssize_t n; (n = recv(diag, answer, sizeof answer, MSG_DONTWAIT)) > 0;) {
        const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)answer;
        if (!NLMSG_OK(head, (size_t)n) || head->nlmsg_seq != sequence)
            continue; // the answer to an earlier question
        if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof *out))
            return false;
        memcpy(out, answer + NLMSG_HDRLEN, sizeof *out);
        return true;
    }
    return false;
}

// The states of the kernel's table. A socket that its process has closed belongs to no account any
// more, and the kernel says 0 for it, which is root: its inode is 0 too. For a pair of ends that it
// does not know it may name a listening socket of the same port.
enum { STATE_LISTEN = 10 };

static uid_t account_of(int diag, const struct pair *p)
{
    struct inet_diag_msg found;
    if (diag < 0 || !peer_ask(diag, p, true, &found) || found.idiag_state == STATE_LISTEN ||
        !found.idiag_inode)
        return PEER_NO_UID;
    return found.idiag_uid;
}

int peer_diag_open(int listening)
{
    struct pair p;
    struct inet_diag_msg found;
    CLEANUP_FD int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (fd < 0 || !read_pair(listening, NULL, &p) || !peer_ask(fd, &p, false, &found) ||
        found.idiag_state != STATE_LISTEN)
        return -1;
    return steal_fd(&fd);
}

void peer_of_unix(struct peer *p, int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0;
    p->uid = known ? who.uid : PEER_NO_UID;
    p->pid = known ? who.pid : 0;
    p->client = peer_number(OF_ACCOUNT, p->uid);
    snprintf(p->text, sizeof p->text, known ? "uid:%u" : "?", (unsigned)p->uid);
}

void peer_of_tcp(struct peer *p, int diag, int fd, const struct sockaddr_storage *far)
{
    char address[INET6_ADDRSTRLEN] = "?";
    struct pair ends;
    *p = (struct peer){.uid = PEER_NO_UID, .client = peer_number(OF_LOOPBACK, 0), .text = "?"};
    if (!read_pair(fd, far, &ends) || !ends.far_port)
        return;
    inet_ntop(ends.family, ends.far, address, sizeof address);
    snprintf(p->text, sizeof p->text, "%s", address);
    p->uid = account_of(diag, &ends);
    if (p->uid != PEER_NO_UID) {
        p->client = peer_number(OF_ACCOUNT, p->uid);
        snprintf(p->text, sizeof p->text, "uid:%u@%s", (unsigned)p->uid, address);
    } else {
        p->client = peer_client_of(&ends);
    }
}

bool peer_is_ours(const struct peer *p)
{
    return p->uid == 0 || (p->uid == geteuid() && p->uid != OVERFLOW_UID);
}
