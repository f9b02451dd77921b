// SPDX-License-Identifier: Apache-2.0
// Each listener is one daemon of the library in external epoll mode, and its epoll file descriptor
// lies in our epoll. arrivals.c accepts its connections.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server/parts.h"
#include "http/server/server.h"

// How many connections there may be is the configuration's to say (server.h).
enum {
    // Headers as they came and as the library lists them; of cookies, which browsers send whatever
    // the port, a copy too: 5 KiB of them, or 12 KiB of headers without.
    CONNECTION_MEMORY = 16384,
    DESCRIPTORS_SPARE = 256, // besides connections: the rest of the program
    CROWD = 64,              // so many connections at once: 1 MiB that came and may go again
    IDLE_TIMEOUT_S = 30,     // of silence; how long each step may take at all says connections.h
};

// What the library may have: besides those that are cut and not yet gone, a batch that it was given
// and will count when it runs.
static int connections_most(const struct server *s)
{
    return s->connections + 2 * ACCEPT_BATCH;
}

// When a crowd has gone, what it was served from goes back too: the library would keep it. One
// that is cut does not count as gone: until the library lets go of the connection, it lies between
// what is free.
static void give_back(struct listener *l)
{
    if (l->most < CROWD || l->n > l->most / 4)
        return;
    l->most = l->n;
    malloc_trim(0);
}

// Before its handshake.
static struct connection *begin_connection(struct listener *l, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *c = arrival_take(l, info->connect_fd);
    if (!c || !l->socket.tls)
        return c;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    c->tls = info ? tls_begin(l->server->tls, info->tls_session) : NULL;
    return c;
}

// Its session of TLS is gone, or will have no handshake any more.
static void end_connection(struct connection *c)
{
    if (c)
        tls_release(c->tls);
    connection_free(c);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct listener *l = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        if (++l->n > l->most)
            l->most = l->n;
        *socket_context = begin_connection(l, mhd);
        return;
    }
    end_connection(*socket_context);
    *socket_context = NULL;
    l->n--;
    give_back(l);
    arrivals_go_on(l);
}

static size_t keep_escapes(void *ctx, struct MHD_Connection *mhd, char *s)
{
    (void)ctx;
    (void)mhd;
    return strlen(s); // we decode ourselves, and only the query
}

static void on_message(void *ctx, const char *fmt, va_list ap)
{
    struct listener *l = ctx;
    char text[300];
    if (!log_wants(LOG_LVL_DEBUG) || !log_may(&l->server->spared, clock_mono_ms()))
        return; // any client can cause them
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    vsnprintf(text, sizeof text, fmt, ap);
#pragma GCC diagnostic pop
    text[strcspn(text, "\n")] = '\0';
    log_event(LOG_LVL_DEBUG, "http", "text=\"%s\"", log_quote(text).text);
}

// The daemons run before the next wait.
static void on_ready(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    (void)events;
    l->touched = true;
}

// From 1.0 on the library refuses by itself what check_head() refuses for older ones.
#if MHD_VERSION >= 0x01000000
#define OPTION_STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL
enum { STRICT = 2 };
#else
#define OPTION_STRICT MHD_OPTION_STRICT_FOR_CLIENT
enum { STRICT = 1 };
#endif

static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static struct MHD_Daemon *start_mhd(struct listener *l)
{
    // What ends the list comes sooner without TLS. The library would keep a certificate for ever:
    // each session gets the one in use (begin_connection).
    struct MHD_OptionItem tls[] = {
        {l->socket.tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, 0, tls_no_certificate()},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            MHD_USE_NO_LISTEN_SOCKET | (l->socket.tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, exchange_on_access, l, MHD_OPTION_EXTERNAL_LOGGER, on_message, l,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)connections_most(l->server),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, OPTION_STRICT, STRICT, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, exchange_on_uri, l,
        MHD_OPTION_NOTIFY_COMPLETED, exchange_on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, l, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

// Takes over the socket.
static int add_listener(struct server *s, const struct listen_socket *socket, struct err *err)
{
    struct listener *l = &s->listeners[s->n];
    if (s->n == LISTENERS_MAX) {
        close(socket->fd);
        return err_set(err, ERR_INVALID, "listen", "more than %d sockets", s->n);
    }
    *l = (struct listener){.server = s, .socket = *socket, .diag = -1};
    l->mhd = start_mhd(l);
    if (!l->mhd) {
        close(socket->fd);
        return err_set(err, ERR_INTERNAL, "", "the HTTP library cannot serve %s", socket->text);
    }
    s->n++;
    if (arrivals_start(l, err) < 0 ||
        connections_init(&l->connections, s->loop, s->connections, err) < 0)
        return -1;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    if (*socket->host)
        buf_fmt(&s->addresses, "%s%s", s->addresses.len ? "," : "", socket->text);
    l->watch = loop_watch_fd(s->loop, info->epoll_fd, EPOLLIN, on_ready, l, err);
    return l->watch ? 0 : -1;
}

// Port 0: each gets another one.
static bool have_one_port(const struct listen_address *a, const struct listen_address *b)
{
    const struct sockaddr_in *in = (const void *)&a->a; // of IPv6 it is at the same place
    return in->sin_port && in->sin_port == ((const struct sockaddr_in *)&b->a)->sin_port;
}

static bool is_any_address(const struct listen_address *a)
{
    return strcmp(a->host, "0.0.0.0") == 0 || strcmp(a->host, "[::]") == 0;
}

// [::] takes the port of IPv4 too, unless an address of IPv4 is listed.
static int settle_ports(struct listen_address *a, struct listen_address *b, struct err *err)
{
    if (!have_one_port(a, b))
        return 0;
    if (strcmp(a->host, b->host) == 0)
        return err_set(err, ERR_INVALID, "listen", "%s is listed twice with one port", a->host);
    if (a->a.ss_family == b->a.ss_family && (is_any_address(a) || is_any_address(b)))
        return err_set(err, ERR_INVALID, "listen", "%s and %s cannot have one port: %s includes %s",
                       a->host, b->host, is_any_address(a) ? a->host : b->host,
                       is_any_address(a) ? b->host : a->host);
    a->six_alone |= is_any_address(a) && b->a.ss_family == AF_INET;
    b->six_alone |= is_any_address(b) && a->a.ss_family == AF_INET;
    return 0;
}

// The addresses of a comma-separated list. One more can be there: the unix socket.
static int parse_addresses(struct listen_address out[static LISTENERS_MAX - 1], const char *list,
                           bool beyond, bool tls, struct err *err)
{
    enum { MOST = LISTENERS_MAX - 1 };
    int count = 0;
    size_t n;
    for (const char *word; (word = str_list_next(&list, &n));) {
        char one[80];
        snprintf(one, sizeof one, "%.*s", (int)n, word);
        if (n >= sizeof one) // the beginning of a port would be another one
            return err_set(err, ERR_INVALID, "listen", "%s… is too long for an address", one);
        if (count == MOST)
            return err_set(err, ERR_INVALID, "listen", "more than %d addresses", MOST);
        if (listen_parse(&out[count], one, beyond, err) < 0)
            return -1;
        for (int i = 0; i < count; i++)
            if (settle_ports(&out[i], &out[count], err) < 0)
                return -1;
        if (out[count++].tls && !tls)
            return err_set(err, ERR_INVALID, "listen", "%s needs tls_certificate and tls_key", one);
    }
    return count;
}

static int add_tcp(struct server *s, const char *list, struct err *err)
{
    struct listen_address on[LISTENERS_MAX - 1];
    int n = parse_addresses(on, list, s->access.insecure_plaintext, s->tls != NULL, err);
    for (int i = 0; i < n; i++) {
        struct listen_socket socket;
        if (listen_tcp(&socket, &on[i], err) < 0 || add_listener(s, &socket, err) < 0)
            return -1;
    }
    return n < 0 ? -1 : 0;
}

static int no_listener(struct err *err)
{
    return err_set(err, ERR_INVALID, "listen", "neither an address nor a socket is configured");
}

int listeners_check(const struct http_config *c, bool beyond, bool tls, struct err *err)
{
    struct listen_address on[LISTENERS_MAX - 1];
    int n = parse_addresses(on, c->listen, beyond, tls, err);
    if (n < 0 || (*c->socket && listen_check_path(c->socket, err) < 0))
        return -1;
    return c->passed && !c->n_passed && !n && !*c->socket ? no_listener(err) : 0;
}

// A socket that was passed replaces all addresses, or the unix socket.
static void replace_listed(struct http_config *c, const struct listen_socket *passed)
{
    if (*passed->host)
        c->listen = "";
    else
        c->socket = "";
}

int listeners_replace(struct http_config *c, bool beyond, struct err *err)
{
    for (int i = 0; i < c->n_passed; i++) {
        struct listen_socket socket;
        if (listen_passed(&socket, c->passed[i], beyond, err) < 0)
            return -1;
        replace_listed(c, &socket);
    }
    return 0;
}

static int add_unix(struct server *s, const char *path, struct err *err)
{
    struct listen_socket socket;
    if (!*path)
        return 0;
    s->socket_path = strdup(path);
    if (!s->socket_path)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a listener");
    if (listen_unix(&socket, path, s->access.socket_open, err) < 0) {
        free(steal_ptr(&s->socket_path)); // not ours: it must not be removed
        snprintf(err->member, sizeof err->member, "socket");
        return err_prefix(err, "socket");
    }
    return add_listener(s, &socket, err);
}

// What systemd listens on already. One kind of sockets is settled by them; of the other kind the
// configuration says.
static int add_passed(struct server *s, struct http_config *c, struct err *err)
{
    for (int i = 0; i < c->n_passed; i++) {
        struct listen_socket socket;
        if (listen_passed(&socket, c->passed[i], s->access.insecure_plaintext, err) < 0 ||
            add_listener(s, &socket, err) < 0)
            return -1;
        replace_listed(c, &socket);
    }
    return 0;
}

// With all connections in use, file descriptors must be left for the rest of the program.
static int have_descriptors(struct server *s, struct err *err)
{
    const rlim_t need = (rlim_t)s->n * (rlim_t)connections_most(s) + DESCRIPTORS_SPARE;
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) < 0)
        return err_sys(err, "cannot read the limit of file descriptors");
    if (now.rlim_max < need)
        return err_set(
            err, ERR_INVALID, "connections",
            "connections = %d on %d sockets need %llu file descriptors and the limit is %llu: "
            "set fewer connections, or raise the limit (LimitNOFILE=, ulimit -Hn)",
            s->connections, s->n, (unsigned long long)need, (unsigned long long)now.rlim_max);
    const rlim_t more = now.rlim_max - need;
    s->held_max = more < HELD_MAX ? (int)more : HELD_MAX;
    const rlim_t wanted = need + (rlim_t)s->held_max;
    if (now.rlim_cur >= wanted)
        return 0;
    now.rlim_cur = wanted;
    return setrlimit(RLIMIT_NOFILE, &now) < 0
               ? err_sys(err, "cannot raise the limit to %llu file descriptors",
                         (unsigned long long)wanted)
               : 0;
}

int listeners_start(struct server *s, const struct http_config *c, struct err *err)
{
    struct http_config left = *c; // to be opened here
    if (add_passed(s, &left, err) < 0 || add_tcp(s, left.listen, err) < 0 ||
        add_unix(s, left.socket, err) < 0)
        return -1;
    if (!s->n)
        return no_listener(err);
    if (!buf_ok(&s->addresses))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a listener");
    return have_descriptors(s, err);
}

void listeners_stop(struct server *s)
{
    for (int i = 0; i < s->n; i++) {
        struct listener *l = &s->listeners[i];
        loop_unwatch(l->watch);
        arrivals_stop(l);
        MHD_stop_daemon(l->mhd);
        connections_fini(&l->connections);
        close(l->socket.fd);
    }
    if (s->socket_path)
        unlink(s->socket_path);
    free(s->socket_path);
    buf_free(&s->addresses);
}

const char *server_addresses(const struct server *s)
{
    return buf_text(&s->addresses);
}

const char *server_socket(const struct server *s)
{
    for (int i = 0; i < s->n; i++)
        if (!*s->listeners[i].socket.host)
            return s->listeners[i].socket.text;
    return "";
}
