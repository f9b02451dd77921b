// SPDX-License-Identifier: Apache-2.0
// Who is at the other end, as this machine's kernel says it.
#include "http/access/peer.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/access/access.h"
#include "tests/unit/tap.h"

struct way {
    const char *what;
    int family;               // of the listening socket
    const char *listens, *as; // as: the address that is connected to
    int as_family;
};

static const struct way ways[] = {
    {"IPv4", AF_INET, "127.0.0.1", "127.0.0.1", AF_INET},
    {"any IPv4", AF_INET, "0.0.0.0", "127.0.0.1", AF_INET},
    {"another loopback address", AF_INET, "0.0.0.0", "127.200.3.4", AF_INET},
    {"IPv6", AF_INET6, "::1", "::1", AF_INET6},
    {"any IPv6", AF_INET6, "::", "::1", AF_INET6},
    {"IPv4 to a socket of IPv6", AF_INET6, "::", "127.0.0.1", AF_INET},
    {"IPv4 mapped into IPv6", AF_INET6, "::", "::ffff:127.0.0.1", AF_INET6},
};

static socklen_t address(struct sockaddr_storage *a, int family, const char *text, uint16_t port)
{
    *a = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
    if (family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)a;
        v4->sin_port = port;
        inet_pton(family, text, &v4->sin_addr);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;
    v6->sin6_port = port;
    inet_pton(family, text, &v6->sin6_addr);
    return sizeof *v6;
}

static int listen_at(const struct way *w, uint16_t *port)
{
    struct sockaddr_storage a;
    socklen_t n = address(&a, w->family, w->listens, 0);
    int fd = socket(w->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return -1;
    *port = w->family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
                                 : ((struct sockaddr_in6 *)&a)->sin6_port;
    return fd;
}

static int connect_to(const struct way *w, uint16_t port)
{
    struct sockaddr_storage a;
    socklen_t n = address(&a, w->as_family, w->as, port);
    int fd = socket(w->as_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&a, n) < 0 ? -1 : fd;
}

static int accept_from(int listening, struct sockaddr_storage *far)
{
    socklen_t n = sizeof *far;
    *far = (struct sockaddr_storage){0};
    return accept(listening, (struct sockaddr *)far, &n);
}

// A client of another account, until the pipe ends.
static pid_t connect_as(uid_t uid, const struct way *w, uint16_t port, const int until[2])
{
    pid_t pid = fork();
    if (pid)
        return pid;
    char end;
    close(until[1]);
    if (setuid(uid) < 0 || connect_to(w, port) < 0)
        _exit(1);
    _exit(read(until[0], &end, 1) != 0);
}

static void of_another(const struct way *w, int listening, int diag, uint16_t port)
{
    enum { STRANGER = 12345 };
    int ends[2];
    struct sockaddr_storage far;
    struct peer p;
    if (geteuid() != 0 || pipe(ends) < 0) {
        SKIP("needs root to be another account");
        return;
    }
    pid_t pid = connect_as(STRANGER, w, port, ends);
    int fd = accept_from(listening, &far);
    peer_of_tcp(&p, diag, fd, &far);
    CHECK(p.uid == STRANGER && !peer_is_ours(&p), "%s: the account of another: %s", w->what,
          p.text);
    close(ends[0]);
    close(ends[1]);
    close(fd);
    waitpid(pid, NULL, 0);
}

static void try_way(const struct way *w)
{
    uint16_t port = 0;
    struct sockaddr_storage far;
    struct peer p, gone;
    int listening = listen_at(w, &port);
    if (listening < 0) {
        SKIP("%s: not here", w->what);
        return;
    }
    int diag = peer_diag_open(listening), client = connect_to(w, port);
    int fd = accept_from(listening, &far);
    if (diag < 0) {
        SKIP("%s: the kernel names no accounts here", w->what);
        return;
    }
    peer_of_tcp(&p, diag, fd, &far);
    CHECK(p.uid == geteuid() && peer_is_ours(&p), "%s: our own account: %s", w->what, p.text);
    close(client);
    peer_of_tcp(&gone, diag, fd, &far);
    CHECK(gone.uid == PEER_NO_UID && !peer_is_ours(&gone) && gone.client != p.client,
          "%s: closed, it is nobody's, and never root's: %s", w->what, gone.text);
    peer_of_tcp(&gone, -1, fd, &far);
    CHECK(gone.uid == PEER_NO_UID, "%s: nor where the kernel cannot be asked", w->what);
    close(fd);
    of_another(w, listening, diag, port);
    close(diag);
    close(listening);
}

// A thousand look-ups; printed, not judged.
static void cost(void)
{
    enum { TIMES = 1000 };
    uint16_t port = 0;
    struct sockaddr_storage far;
    struct peer p;
    int listening = listen_at(&ways[0], &port), diag = peer_diag_open(listening);
    int client = connect_to(&ways[0], port), fd = accept_from(listening, &far);
    uint64_t begin = clock_mono_ns();
    for (int i = 0; i < TIMES; i++)
        peer_of_tcp(&p, diag, fd, &far);
    printf("# a look-up takes %.1f us\n", (double)(clock_mono_ns() - begin) / 1e3 / TIMES);
    close(client);
    close(fd);
    close(diag);
    close(listening);
}

static void no_socket(void)
{
    const struct access_rules open = {.anonymous = SCOPE_ADMIN};
    struct peer p;
    int ends[2];
    if (pipe(ends) < 0)
        return;
    CHECK(access_of_account(&open, ends[0]) == SCOPE_NONE,
          "of whom the kernel says nothing may do nothing");
    peer_of_unix(&p, ends[0]);
    CHECK(p.uid == PEER_NO_UID && !peer_is_ours(&p), "and is nobody");
    peer_of_tcp(&p, -1, ends[0], &(struct sockaddr_storage){0});
    CHECK(p.uid == PEER_NO_UID && !peer_is_ours(&p), "over TCP too");
}

static void one_client(const char *a, const char *b, bool same)
{
    uint64_t of[2];
    const char *text[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct sockaddr_storage s;
        address(&s, strchr(text[i], ':') ? AF_INET6 : AF_INET, text[i], htons(1));
        of[i] = peer_client_of_address(&s);
    }
    CHECK((of[0] == of[1]) == same, "%s and %s are %s", a, b, same ? "one client" : "two clients");
}

int main(void)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        try_way(&ways[i]);
    no_socket();
    one_client("127.0.0.1", "127.255.3.4", true);
    one_client("127.0.0.1", "::1", true);
    one_client("127.0.0.1", "::ffff:127.9.9.9", true);
    one_client("192.0.2.1", "192.0.2.2", false);
    one_client("192.0.2.1", "::ffff:192.0.2.1", true);
    one_client("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true);
    one_client("2001:db8:1:2::1", "2001:db8:1:3::1", false);
    one_client("192.0.2.1", "127.0.0.1", false);
    cost();
    return tap_done();
}
