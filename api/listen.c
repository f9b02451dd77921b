// SPDX-License-Identifier: Apache-2.0
#include "api/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { BACKLOG = 128 }; // as many as wait for one round of the loop, and half the connection limit

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

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
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
        if (inet_pton(AF_INET6, inner, &v6->sin6_addr) == 1)
            return 0;
    } else {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
            return 0;
    }
    return err_set(err, ERR_INVALID, "listen",
                   "must be an IP address or localhost (IPv6 in brackets), got \"%.50s\"", host);
}

static int bind_and_listen(int fd, const struct sockaddr *a, socklen_t n, const char *text,
                           struct err *err)
{
    if (bind(fd, a, n) < 0)
        return errno == EADDRINUSE ? err_set(err, ERR_UNAVAILABLE, "listen",
                                             "%s is in use by another program", text)
                                   : err_sys(err, "cannot bind to %s", text);
    if (listen(fd, BACKLOG) < 0)
        return err_sys(err, "cannot listen on %s", text);
    return 0;
}

int listen_tcp(struct listen_socket *out, const char *address, struct err *err)
{
    struct sockaddr_storage a;
    char host[56];
    uint16_t port = 0;
    if (split_address(address, host, sizeof host, &port, err) < 0 ||
        parse_host(host, sizeof host, port, &a, err) < 0)
        return -1;
    if (!is_loopback(&a))
        return err_set(err, ERR_INVALID, "listen",
                       "%s is not a loopback address; there is no access control yet, so use "
                       "127.0.0.1, [::1] or the unix socket, and ssh -L from elsewhere",
                       host);
    CLEANUP_FD int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    socklen_t n =
        a.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (fd < 0)
        return err_sys(err, "cannot make a socket for %s", address);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); // restart while old ones linger
    if (bind_and_listen(fd, (struct sockaddr *)&a, n, address, err) < 0)
        return -1;
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return err_sys(err, "cannot read the address of %s", address);
    port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
    snprintf(out->host, sizeof out->host, "%s", host);
    snprintf(out->text, sizeof out->text, "%s:%u", host, port);
    out->fd = steal_fd(&fd);
    return 0;
}

int listen_unix(struct listen_socket *out, const char *path, struct err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof a.sun_path)
        return err_set(err, ERR_INVALID, "socket", "the path is longer than %zu bytes",
                       sizeof a.sun_path - 1);
    memcpy(a.sun_path, path, strlen(path));
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return err_set(err, ERR_INVALID, "socket", "%s is there and is not a socket", path);
    unlink(path);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "cannot make a unix socket");
    mode_t before = umask(0117); // the socket is born with mode 0660
    int rc = bind_and_listen(fd, (struct sockaddr *)&a, sizeof a, path, err);
    umask(before);
    if (rc < 0)
        return -1;
    snprintf(out->text, sizeof out->text, "unix");
    out->host[0] = '\0';
    out->fd = steal_fd(&fd);
    return 0;
}
