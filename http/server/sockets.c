// SPDX-License-Identifier: Apache-2.0
// Opens and checks listening sockets.
#include "http/server/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/str.h"

// More than all connections that the limits allow: a crowd waits here for one round of the loop. A
// full backlog is worse than a wait: connecting without blocking to a unix socket then fails with
// EAGAIN.
enum {
    BACKLOG = 1024
}; // Linux cuts it at net.core.somaxconn, 4096 unless set; 1024 x ~1 KiB of kernel

static int split_address(const char *address, char *host, size_t room, uint16_t *port,
                         struct err *err)
{
    const char *colon = strrchr(address, ':');
    uint64_t number = 0;
    size_t n = colon ? (size_t)(colon - address) : 0;
    if (!n || n >= room || !str_to_u64(colon + 1, &number) || number > 65535)
        return err_set(err, ERR_INVALID, "listen",
                       "must be ADDRESS:PORT such as 127.0.0.1:7780 or [::1]:7780, got \"%.60s\"",
                       address);
    memcpy(host, address, n);
    host[n] = '\0';
    *port = (uint16_t)number;
    return 0;
}

static bool listen_is_loopback(const struct sockaddr_storage *a)
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
    if (a->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
    return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
}

static uint16_t port_of(const struct sockaddr_storage *a)
{
    return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                          : ((const struct sockaddr_in *)a)->sin_port);
}

static bool host_text(const struct sockaddr_storage *a, char host[LISTEN_HOST_ROOM])
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
    bool is_v6 = a->ss_family == AF_INET6, mapped = is_v6 && IN6_IS_ADDR_V4MAPPED(v6);
    const void *address = mapped  ? (const void *)&v6->s6_addr[12]
                          : is_v6 ? (const void *)v6
                                  : &((const struct sockaddr_in *)a)->sin_addr;
    char ip[INET6_ADDRSTRLEN];
    if (!inet_ntop(is_v6 && !mapped ? AF_INET6 : AF_INET, address, ip, sizeof ip))
        return false;
    snprintf(host, LISTEN_HOST_ROOM, is_v6 && !mapped ? "[%s]" : "%s", ip);
    return true;
}

static int parse_host(char *host, size_t room, uint16_t port, struct sockaddr_storage *a,
                      struct err *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)a;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;
    size_t n = strlen(host);
    memset(a, 0, sizeof *a);
    if (strcmp(host, "localhost") == 0)
        snprintf(host, room, "127.0.0.1");
    if (*host == '[' && host[n - 1] == ']') {
        char inner[56];
        snprintf(inner, sizeof inner, "%.*s", (int)(n - 2), host + 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        inner[strcspn(inner, "%")] = '\0';
        if (inet_pton(AF_INET6, inner, &v6->sin6_addr) == 1)
            return strchr(host, '%') || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)
                       ? err_set(err, ERR_INVALID, "listen",
                                 "must not be an address of one network card, got \"%.50s\"", host)
                       : 0;
    } else {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
            return 0;
    }
    return err_set(err, ERR_INVALID, "listen",
                   "must be an IP address or localhost (IPv6 in brackets), got \"%.50s\"", host);
}

static int check_loopback(const struct sockaddr_storage *a, const char *host, bool beyond,
                          struct err *err)
{
    if (listen_is_loopback(a) || beyond)
        return 0;
    return err_set(
        err, ERR_INVALID, "listen",
        "%s is not a loopback address: tokens and results would travel in clear. "
        "Write https:// before it, or use 127.0.0.1 and ssh -L, or say --insecure-plaintext",
        host);
}

// Of a daemon that was killed, a child that had just been forked may have its sockets for a moment.
static bool in_use_for_long(int *tries)
{
    enum { TRIES = 40, EACH_MS = 50 };
    poll(NULL, 0, EACH_MS);
    return ++*tries == TRIES;
}

static int bind_and_listen(int fd, const struct sockaddr *a, socklen_t n, const char *text,
                           struct err *err)
{
    for (int tries = 0; bind(fd, a, n) < 0;) {
        if (errno != EADDRINUSE)
            return err_sys(err, "cannot bind to %s", text);
        if (in_use_for_long(&tries))
            return err_set(err, ERR_UNAVAILABLE, "listen", "%s is in use by another program", text);
    }
    if (listen(fd, BACKLOG) < 0)
        return err_sys(err, "cannot listen on %s", text);
    return 0;
}

static const char https[] = "https://";

int listen_parse(struct listen_address *out, const char *text, bool beyond, struct err *err)
{
    uint16_t port = 0;
    *out = (struct listen_address){.tls = str_starts(text, https)};
    text += out->tls ? strlen(https) : 0;
    if (split_address(text, out->host, sizeof out->host, &port, err) < 0 ||
        parse_host(out->host, sizeof out->host, port, &out->a, err) < 0)
        return -1;
    host_text(&out->a, out->host); // as browsers write it: [::1] for [0:0:0:0:0:0:0:1]
    return check_loopback(&out->a, out->host, beyond || out->tls, err);
}

int listen_tcp(struct listen_socket *out, const struct listen_address *on, struct err *err)
{
    struct sockaddr_storage a = on->a;
    char text[sizeof on->host + 8];
    snprintf(text, sizeof text, "%s:%u", on->host, port_of(&a));
    CLEANUP_FD int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    socklen_t n =
        a.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (fd < 0)
        return err_sys(err, "cannot make a socket for %s", text);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); // restart while old ones linger
    if (on->six_alone && a.ss_family == AF_INET6)               // 0.0.0.0 is alone anyway
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind_and_listen(fd, (struct sockaddr *)&a, n, text, err) < 0)
        return -1;
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return err_sys(err, "cannot read the address of %s", text);
    snprintf(out->host, sizeof out->host, "%s", on->host);
    snprintf(out->text, sizeof out->text, "%s%s:%u", on->tls ? https : "", on->host, port_of(&a));
    out->tls = on->tls;
    out->loopback = listen_is_loopback(&a);
    out->fd = steal_fd(&fd);
    return 0;
}

// A socket file that is left over refuses connections; of one that is served even a full backlog
// is another answer.
static bool is_served(const struct sockaddr_un *a)
{
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 || errno == EAGAIN);
}

int listen_check_path(const char *path, struct err *err)
{
    size_t room = sizeof((struct sockaddr_un *)0)->sun_path;
    struct stat st;
    if (strlen(path) >= room)
        return err_set(err, ERR_INVALID, "socket", "the path is longer than %zu bytes", room - 1);
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return err_set(err, ERR_INVALID, "socket", "%s exists and is not a socket", path);
    return 0;
}

int listen_unix(struct listen_socket *out, const char *path, bool open, struct err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (listen_check_path(path, err) < 0)
        return -1;
    memcpy(a.sun_path, path, strlen(path));
    for (int tries = 0; is_served(&a);)
        if (in_use_for_long(&tries))
            return err_set(err, ERR_UNAVAILABLE, "socket", "%s is in use by another program", path);
    unlink(path);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "cannot make a unix socket");
    mode_t before = umask(open ? 0111 : 0117); // the socket is born with its mode
    int rc = bind_and_listen(fd, (struct sockaddr *)&a, sizeof a, path, err);
    umask(before);
    if (rc < 0)
        return -1;
    snprintf(out->text, sizeof out->text, "%s", path);
    out->host[0] = '\0';
    out->loopback = true;
    out->tls = false;
    out->fd = steal_fd(&fd);
    return 0;
}

static bool has_option(int fd, int option, int value)
{
    int got = 0;
    socklen_t n = sizeof got;
    return getsockopt(fd, SOL_SOCKET, option, &got, &n) == 0 && got == value;
}

void listen_near(const struct listen_socket *s, int connection, char host[LISTEN_HOST_ROOM])
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    bool any = strcmp(s->host, "0.0.0.0") == 0 || strcmp(s->host, "[::]") == 0;
    if (!any || getsockname(connection, (struct sockaddr *)&a, &n) < 0 || !host_text(&a, host))
        snprintf(host, LISTEN_HOST_ROOM, "%s", s->host);
}

static int passed_tcp(struct listen_socket *out, const struct sockaddr_storage *a, bool beyond,
                      struct err *err)
{
    if (!host_text(a, out->host))
        return err_sys(err, "cannot write the address of a socket");
    snprintf(out->text, sizeof out->text, "%s:%u", out->host, port_of(a));
    out->loopback = listen_is_loopback(a);
    return check_loopback(a, out->host, beyond, err);
}

int listen_passed(struct listen_socket *out, int fd, bool beyond, struct err *err)
{
    struct sockaddr_storage a = {0};
    struct listen_socket got = {.fd = fd, .loopback = true};
    socklen_t n = sizeof a;
    if (!has_option(fd, SO_ACCEPTCONN, 1) || !has_option(fd, SO_TYPE, SOCK_STREAM))
        return err_set(err, ERR_INVALID, "listen",
                       "file descriptor %d, passed by systemd, is not a listening stream socket",
                       fd);
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return err_sys(err, "cannot read the address of file descriptor %d", fd);
    if (a.ss_family == AF_UNIX)
        snprintf(got.text, sizeof got.text, "%.*s", (int)sizeof((struct sockaddr_un *)0)->sun_path,
                 ((struct sockaddr_un *)&a)->sun_path);
    else if (passed_tcp(&got, &a, beyond, err) < 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_sys(err, "cannot set up file descriptor %d", fd);
    *out = got;
    return 0;
}
