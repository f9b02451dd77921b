// SPDX-License-Identifier: Apache-2.0
// A connection reads a request, then does one thing until its response is out: sends it, waits for
// a run or a time, or one of the faults. What waits for a time is in one list, which is short.
#include "virtual/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "virtual/node.h"

enum {
    FIRST_ADDRESS = 0x7f010001, // 127.1.0.1
    PER_SUBNET = 250,           // 127.1.0.1 to .250, then 127.1.1.1
    BACKLOG = 64,
    REQUEST_MAX = 8192,    // bytes of head and body
    DESCRIPTORS_MORE = 64, // beside listeners, at the least
    EVENTS = 256,
    PORT_TRIES = 20,
    ENDLESS_BLOCK = 16384,
    LENGTH_MISSING = 1000, // bytes that a wrong length declares too many
    WAIT_MAX_S = 60,       // as the daemon does
};

#define OPTION(type, member) .kind = (type), .offset = offsetof(struct virtual_options, member)

static const struct param params[] = {
    {.name = "port",
     OPTION(PARAM_INT, port),
     .min = 0,
     .max = 65535,
     .def = "0",
     .help = "TCP port of all nodes. 0: a free one."},
    {.name = "run_ms",
     OPTION(PARAM_INT, run_ms),
     .min = 0,
     .max = 3600000,
     .def = "500",
     .unit = "ms",
     .help = "Time that a requested run takes."},
    {.name = "faults",
     OPTION(PARAM_TEXT, faults),
     .room = sizeof(((struct virtual_options *)0)->faults),
     .def = "",
     .help = "What nodes do wrong: NODES FAULT[=VALUE] [FROM-[UNTIL]]; …"},
    {.name = "truth",
     OPTION(PARAM_TEXT, truth),
     .room = sizeof(((struct virtual_options *)0)->truth),
     .def = "",
     .metavar = "FILE",
     .help = "Writes which nodes are slow and why, as JSON."},
    {.name = "hosts",
     OPTION(PARAM_TEXT, hosts),
     .room = sizeof(((struct virtual_options *)0)->hosts),
     .def = "",
     .metavar = "FILE",
     .help = "Writes the addresses of all nodes, in the format of /etc/hosts."},
};
const struct param_table virtual_options = {params, COUNT_OF(params)};

enum link_state {
    LINK_READS,
    LINK_WAITS,   // for a run, until due_ms
    LINK_HOLDS,   // a finished response, until due_ms
    LINK_SENDS,   // then reads again
    LINK_CUTS,    // sends, then closes
    LINK_DRIPS,   // sends one byte each step_ms
    LINK_ENDLESS, // sends without an end
    LINK_SILENT,  // until the client closes
};

struct source { // what epoll knows: a listener or a connection
    int fd, node;
    bool listens;
};

struct link {
    struct source source;
    void *opened;               // by the channel, if there is one
    struct link *next, *before; // in the list of those with due_ms
    bool timed, closes;
    enum link_state state;
    int64_t due_ms, step_ms, asked_ms; // monotonic
    size_t n_in, sent;
    struct buf out;
    char in[REQUEST_MAX];
};

struct server {
    struct virtual_fleet fleet;
    const struct virtual_channel *channel; // NULL: none
    struct source *listeners;
    struct link *timed;
    int nodes, port, epoll;
    int64_t started_ms, change_ms; // monotonic; next change of listeners
    int64_t responses;             // of nodes that cut some of them
};

void virtual_defaults(struct virtual_options *o)
{
    memset(o, 0, sizeof *o);
    param_defaults(&world_options, &o->world);
    param_defaults(&virtual_options, o);
    o->world.now_ms = clock_wall_ms();
}

static uint32_t node_address(int node)
{
    return FIRST_ADDRESS + (uint32_t)(node / PER_SUBNET * 256 + node % PER_SUBNET);
}

void virtual_url(int node, int port, char out[static VIRTUAL_URL_ROOM])
{
    uint32_t a = node_address(node);
    snprintf(out, VIRTUAL_URL_ROOM, "http://%u.%u.%u.%u:%d", a >> 24, a >> 16 & 255, a >> 8 & 255,
             a & 255, port);
}

// ---- connections

static void timed_remove(struct server *s, struct link *l)
{
    if (!l->timed)
        return;
    if (l->before)
        l->before->next = l->next;
    else
        s->timed = l->next;
    if (l->next)
        l->next->before = l->before;
    l->timed = false;
}

static void timed_add(struct server *s, struct link *l, int64_t due_ms)
{
    l->due_ms = due_ms;
    if (l->timed)
        return;
    l->timed = true;
    l->before = NULL;
    l->next = s->timed;
    if (s->timed)
        s->timed->before = l;
    s->timed = l;
}

static void link_close(struct server *s, struct link *l)
{
    timed_remove(s, l);
    if (l->opened)
        s->channel->close(l->opened);
    close(l->source.fd);
    buf_free(&l->out);
    free(l);
}

static void link_watch(const struct server *s, struct link *l, bool output)
{
    struct epoll_event e = {.events = EPOLLIN | (output ? EPOLLOUT : 0), .data.ptr = l};
    epoll_ctl(s->epoll, EPOLL_CTL_MOD, l->source.fd, &e);
}

static void link_reads(const struct server *s, struct link *l)
{
    l->state = LINK_READS;
    l->n_in = l->sent = 0;
    buf_reset(&l->out);
    link_watch(s, l, false);
}

// Sends what it can of l->out. 1: all; 0: later; -1: the client has gone.
static int link_send(const struct server *s, struct link *l, size_t most)
{
    size_t left = l->out.len - l->sent, now = left < most ? left : most;
    const char *from = l->out.data + l->sent;
    ssize_t n = l->opened ? s->channel->send(l->opened, from, now)
                          : send(l->source.fd, from, now, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    l->sent += n > 0 ? (size_t)n : 0;
    if (l->sent == l->out.len)
        return 1;
    if (most == SIZE_MAX)
        link_watch(s, l, true);
    return 0;
}

static void link_output(struct server *s, struct link *l)
{
    int rc = link_send(s, l, SIZE_MAX);
    if (rc > 0 && l->state == LINK_ENDLESS) {
        l->sent = 0;
        return;
    }
    if (rc < 0 || (rc > 0 && (l->closes || l->state == LINK_CUTS)))
        link_close(s, l);
    else if (rc > 0)
        link_reads(s, l);
}

static void link_drips(struct server *s, struct link *l, int64_t now_ms)
{
    if (link_send(s, l, 1) != 0)
        link_close(s, l);
    else
        timed_add(s, l, now_ms + l->step_ms);
}

// ---- responses

static void write_date(char *out, size_t room, int64_t wall_ms)
{
    time_t t = (time_t)(wall_ms / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, room, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

static void write_response(struct link *l, const struct virtual_reply *r, enum fault_kind kind,
                           double value)
{
    char date[40];
    bool too_long = kind == FAULT_LENGTH;
    write_date(date, sizeof date,
               clock_wall_ms() + (kind == FAULT_CLOCK ? (int64_t)(value * 1e3) : 0));
    buf_fmt(&l->out, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n", r->status,
            r->status < 400 ? "OK" : "Refused", date, r->type);
    if (kind != FAULT_ENDLESS)
        buf_fmt(&l->out, "Content-Length: %zu\r\n", r->body.len + (too_long ? LENGTH_MISSING : 0));
    if (r->retry_after_s)
        buf_fmt(&l->out, "Retry-After: %d\r\n", r->retry_after_s);
    buf_fmt(&l->out, "%s\r\n", l->closes ? "Connection: close\r\n" : "");
    buf_add(&l->out, buf_text(&r->body), r->body.len);
    if (kind == FAULT_ENDLESS)
        for (int i = 0; i < ENDLESS_BLOCK; i++)
            buf_char(&l->out, ' ');
}

// Which ones follows from their order alone.
static bool cuts_this(struct server *s, double percent)
{
    int64_t number = s->responses++;
    return (double)(hash_bytes(&number, sizeof number) % 10000) < percent * 100;
}

static void send_response(struct server *s, struct link *l, enum fault_kind kind, double value,
                          int64_t now_ms)
{
    static const char garbage[] = "\1\2SSH-2.0-dropbear\r\n\xff\xfe\r\n\r\n";
    l->state = LINK_SENDS;
    switch (kind) {
    case FAULT_SLOW:
        l->state = LINK_HOLDS;
        timed_add(s, l, now_ms + (int64_t)(value * 1e3));
        return;
    case FAULT_DRIPS:
        l->state = LINK_DRIPS;
        l->step_ms = (int64_t)(1e3 / value) > 0 ? (int64_t)(1e3 / value) : 1;
        timed_add(s, l, now_ms);
        return;
    case FAULT_GARBAGE:
        buf_reset(&l->out);
        buf_add(&l->out, garbage, sizeof garbage);
        l->state = LINK_CUTS;
        break;
    case FAULT_CUTS:
    case FAULT_CUT:
        if (kind == FAULT_CUTS && !cuts_this(s, value))
            break;
        l->out.len /= 2;
        l->state = LINK_CUTS;
        break;
    case FAULT_ENDLESS:
        l->state = LINK_ENDLESS;
        link_watch(s, l, true);
        break;
    default:
        break;
    }
    link_output(s, l);
}

static const char *header_value(const char *head, const char *name)
{
    const char *at = strcasestr(head, name);
    return at ? at + strlen(name) : NULL;
}

static int64_t wait_of(const char *head, const char *query)
{
    const char *at = strstr(query, "wait=");
    int64_t seconds = at ? strtol(at + strlen("wait="), NULL, 10) : 0;
    if (!at && (at = header_value(head, "\r\nPrefer: wait=")))
        seconds = strtol(at, NULL, 10);
    return seconds > WAIT_MAX_S ? WAIT_MAX_S : seconds;
}

// False: not HTTP, or too long for us.
static bool read_request(const struct link *l, size_t head, struct virtual_request *q)
{
    char target[sizeof q->path + sizeof q->query];
    if (sscanf(l->in, "%7s %500s", q->method, target) != 2)
        return false;
    size_t path = strcspn(target, "?");
    if (path >= sizeof q->path || strlen(target + path) >= sizeof q->query)
        return false;
    snprintf(q->path, sizeof q->path, "%.*s", (int)path, target);
    snprintf(q->query, sizeof q->query, "%s", target + path + (target[path] == '?'));
    const char *key = header_value(l->in, "\r\nIdempotency-Key: ");
    q->key = key ? hash_bytes(key, strcspn(key, "\r\n")) : 0;
    q->wait_s = wait_of(l->in, q->query);
    q->body = l->in + head;
    q->body_len = l->n_in - head;
    return true;
}

// Responds to the request in l->in, now or when what it waits for has come.
static void link_respond(struct server *s, struct link *l, size_t head, int64_t now_ms)
{
    struct virtual_request q = {0};
    struct virtual_reply r = {0};
    double value = 0;
    int64_t wall_ms = clock_wall_ms();
    enum fault_kind kind =
        faults_now(&s->fleet.faults, l->source.node, now_ms - s->started_ms, &value);
    if (!read_request(l, head, &q)) {
        link_close(s, l);
        return;
    }
    if (kind == FAULT_SILENT) {
        l->state = LINK_SILENT;
        return;
    }
    int64_t left_ms = l->asked_ms + q.wait_s * 1000 - now_ms;
    if (left_ms <= 0)
        q.wait_s = 0;
    l->closes = header_value(l->in, "\r\nConnection: close") != NULL;
    virtual_respond(&s->fleet, l->source.node, &q, kind, value, wall_ms, &r);
    if (r.until_ms) {
        int64_t until_ms = r.until_ms - wall_ms < left_ms ? r.until_ms - wall_ms : left_ms;
        l->state = LINK_WAITS;
        timed_add(s, l, now_ms + until_ms);
    } else {
        write_response(l, &r, kind, value);
        if (buf_ok(&l->out))
            send_response(s, l, kind, value, now_ms);
        else
            link_close(s, l);
    }
    buf_free(&r.body);
}

// Bytes of the request's head if all of the request is there; 0: not yet.
static size_t whole_request(const struct link *l)
{
    const char *end = strstr(l->in, "\r\n\r\n");
    if (!end)
        return 0;
    size_t head = (size_t)(end - l->in) + 4;
    const char *length = header_value(l->in, "\r\nContent-Length: ");
    size_t body = length ? strtoul(length, NULL, 10) : 0;
    return l->n_in >= head + body ? head : 0;
}

static void link_input(struct server *s, struct link *l)
{
    char more[256]; // of a client that does not wait for its response
    bool reads = l->state == LINK_READS;
    char *to = reads ? l->in + l->n_in : more;
    size_t room = reads ? sizeof l->in - 1 - l->n_in : sizeof more;
    ssize_t n =
        l->opened ? s->channel->receive(l->opened, to, room) : recv(l->source.fd, to, room, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        link_close(s, l);
        return;
    }
    if (!reads)
        return;
    l->n_in += (size_t)n;
    l->in[l->n_in] = '\0';
    size_t head = whole_request(l);
    if (head) {
        l->asked_ms = clock_mono_ms();
        link_respond(s, l, head, l->asked_ms);
    } else if (l->n_in == sizeof l->in - 1) {
        link_close(s, l);
    }
}

static void serve_timed(struct server *s, int64_t now_ms)
{
    for (struct link *l = s->timed, *next; l; l = next) {
        next = l->next;
        if (l->due_ms > now_ms)
            continue;
        timed_remove(s, l);
        if (l->state == LINK_DRIPS)
            link_drips(s, l, now_ms);
        else if (l->state == LINK_WAITS)
            link_respond(s, l, whole_request(l), now_ms);
        else {
            l->state = LINK_SENDS;
            link_output(s, l);
        }
    }
}

// NULL: no memory for it.
static struct link *link_new(const struct server *s, int node, int fd)
{
    struct link *l = malloc(sizeof *l);
    if (!l)
        return NULL;
    memset(l, 0, offsetof(struct link, in));
    l->source = (struct source){fd, node, false};
    if (s->channel && !(l->opened = s->channel->open(node, fd))) {
        free(l);
        return NULL;
    }
    return l;
}

static void accept_all(struct server *s, const struct source *listener)
{
    int fd;
    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct link *l = link_new(s, listener->node, fd);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
        if (l)
            epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
        else
            close(fd);
    }
}

// ---- listeners

static int node_listen(struct server *s, int node, struct err *err)
{
    struct source *l = &s->listeners[node];
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->port),
                             .sin_addr.s_addr = htonl(node_address(node))};
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
    socklen_t room = sizeof at;
    int one = 1;
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return err_sys(err, "cannot make a socket");
    setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(l->fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(l->fd, BACKLOG) < 0 ||
        getsockname(l->fd, (struct sockaddr *)&at, &room) < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, l->fd, &e) < 0) {
        int sys = errno;
        fd_cleanup(&l->fd);
        errno = sys;
        return err_sys(err, "virtual node %d cannot listen on port %d", node + 1, s->port);
    }
    s->port = ntohs(at.sin_port);
    return 0;
}

static void close_listeners(struct server *s)
{
    for (int i = 0; s->listeners && i < s->nodes; i++)
        fd_cleanup(&s->listeners[i].fd);
}

// A free port of the first address may be taken on a later one: then another is tried.
static int listen_all(struct server *s, int port, struct err *err)
{
    for (int tries = 1;; tries++) {
        int i = 0;
        s->port = port;
        while (i < s->nodes && node_listen(s, i, err) == 0)
            i++;
        if (i == s->nodes)
            return 0;
        if (port || err->sys != EADDRINUSE || tries == PORT_TRIES)
            return -1;
        close_listeners(s);
    }
}

static void change_listeners(struct server *s, int64_t now_ms)
{
    struct err err = {0};
    int64_t since_ms = now_ms - s->started_ms;
    for (int i = 0; i < s->nodes; i++)
        if (faults_refuses(&s->fleet.faults, i, since_ms))
            fd_cleanup(&s->listeners[i].fd);
        else if (s->listeners[i].fd < 0)
            node_listen(s, i, &err); // its port may be taken meanwhile: it stays dead
    int64_t next = faults_next_change(&s->fleet.faults, since_ms);
    s->change_ms = next == INT64_MAX ? INT64_MAX : s->started_ms + next;
}

// ---- the whole

static int room_for(int nodes, struct err *err)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return err_sys(err, "cannot read the limit of file descriptors");
    l.rlim_cur = l.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur < (rlim_t)nodes + DESCRIPTORS_MORE)
        return err_set(err, ERR_INVALID, "nodes",
                       "%d nodes need %d file descriptors, and the limit is %llu (ulimit -Hn)",
                       nodes, nodes + DESCRIPTORS_MORE, (unsigned long long)l.rlim_max);
    return 0;
}

static int server_make(struct server *s, const struct virtual_options *o, struct err *err)
{
    *s = (struct server){.epoll = -1, .nodes = (int)o->world.nodes, .change_ms = INT64_MAX};
    s->channel = o->channel;
    s->fleet.run_ms = o->run_ms;
    s->fleet.world = world_new(&o->world, err);
    if (!s->fleet.world || room_for(s->nodes, err) < 0)
        return -1;
    s->fleet.nodes = calloc((size_t)s->nodes, sizeof *s->fleet.nodes);
    s->listeners = calloc((size_t)s->nodes, sizeof *s->listeners);
    if (!s->fleet.nodes || !s->listeners)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", s->nodes);
    for (int i = 0; i < s->nodes; i++)
        s->listeners[i] = (struct source){-1, i, true};
    if (faults_read(&s->fleet.faults, o->faults, s->fleet.world, err) < 0)
        return -1;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0)
        return err_sys(err, "cannot wait for connections");
    return listen_all(s, (int)o->port, err);
}

// Connections need no list: the kernel closes them when the process ends, or their clients do.
static void virtual_server_free(struct server *s)
{
    close_listeners(s);
    fd_cleanup(&s->epoll);
    free(s->listeners);
    virtual_fleet_free(&s->fleet);
}

static int write_file(const char *path, const struct buf *text, struct err *err)
{
    CLEANUP_FILE FILE *f = fopen(path, "we");
    if (!f || fwrite(buf_text(text), 1, text->len, f) != text->len || fflush(f) != 0)
        return err_sys(err, "cannot write %.200s", path);
    return 0;
}

static int write_truth(const struct server *s, const char *path, struct err *err)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    CLEANUP_BUF struct buf world = BUF_INIT;
    struct jsonw w = jsonw_to(&out), in = jsonw_to(&world);
    if (!*path)
        return 0;
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "port", s->port);
    world_write_truth(s->fleet.world, &in);
    jsonw_raw(&w, "world", buf_text(&world));
    faults_write_json(&s->fleet.faults, s->fleet.world, &w);
    jsonw_end(&w);
    return write_file(path, &out, err);
}

static int write_hosts(const struct server *s, const char *path, struct err *err)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    char name[WORLD_NAME_ROOM], url[VIRTUAL_URL_ROOM];
    if (!*path)
        return 0;
    for (int i = 0; i < s->nodes; i++) {
        const char *address = url + strlen("http://");
        virtual_url(i, s->port, url);
        world_name(s->fleet.world, i, name);
        buf_fmt(&out, "%.*s %s\n", (int)strcspn(address, ":"), address, name);
    }
    return write_file(path, &out, err);
}

static int next_timeout(const struct server *s, int64_t now_ms)
{
    int64_t due = s->change_ms;
    for (const struct link *l = s->timed; l; l = l->next)
        if (l->due_ms < due)
            due = l->due_ms;
    int64_t left = due - now_ms;
    return due == INT64_MAX ? -1 : left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

// True: stop.
static bool serve_once(struct server *s, const struct source *stop)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(s->epoll, events, EVENTS, next_timeout(s, clock_mono_ms()));
    for (int i = 0; i < n; i++) {
        struct source *source = events[i].data.ptr;
        if (source == stop)
            return true;
        if (source->listens)
            accept_all(s, source);
        else if (events[i].events & EPOLLIN)
            link_input(s, events[i].data.ptr);
        else if (events[i].events & EPOLLOUT)
            link_output(s, events[i].data.ptr);
        else
            link_close(s, events[i].data.ptr);
    }
    int64_t now_ms = clock_mono_ms();
    if (now_ms >= s->change_ms)
        change_listeners(s, now_ms);
    serve_timed(s, now_ms);
    return n < 0 && errno != EINTR;
}

int virtual_serve(const struct virtual_options *o, int stop_fd, virtual_ready *ready, void *ctx,
                  struct err *err)
{
    struct server s CLEANUP(virtual_server_free);
    struct source stop = {stop_fd, 0, false};
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &stop};
    if (server_make(&s, o, err) < 0 || write_truth(&s, o->truth, err) < 0 ||
        write_hosts(&s, o->hosts, err) < 0)
        return -1;
    if (epoll_ctl(s.epoll, EPOLL_CTL_ADD, stop_fd, &e) < 0)
        return err_sys(err, "cannot watch for the end");
    s.started_ms = clock_mono_ms();
    s.fleet.started_ms = clock_wall_ms();
    change_listeners(&s, s.started_ms);
    ready(ctx, s.port);
    while (!serve_once(&s, &stop))
        ;
    return 0;
}

// ---- in a child

struct started { // what the child reports
    int port;
    struct err err;
};

static void report_ready(void *ctx, int port)
{
    const int *fd = ctx;
    struct started done = {.port = port};
    if (write(*fd, &done, sizeof done) != sizeof done)
        _exit(1);
    close(*fd);
}

_Noreturn static void child_main(const struct virtual_options *o, int stop_fd, int report_fd,
                                 pid_t parent)
{
    struct started failed = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    int rc = virtual_serve(o, stop_fd, report_ready, &report_fd, &failed.err);
    if (rc < 0 && write(report_fd, &failed, sizeof failed) < 0)
        _exit(2);
    _exit(rc < 0);
}

int virtual_start(struct virtual_child *c, const struct virtual_options *o, struct err *err)
{
    int stop[2] = {-1, -1}, reports[2] = {-1, -1};
    struct started got = {0};
    if (pipe2(stop, O_CLOEXEC) < 0 || pipe2(reports, O_CLOEXEC) < 0) {
        fd_cleanup(&stop[0]);
        fd_cleanup(&stop[1]);
        return err_sys(err, "cannot make a pipe");
    }
    pid_t parent = getpid();
    *c = (struct virtual_child){.pid = fork(), .stop_fd = stop[1]};
    if (c->pid == 0) {
        close(stop[1]);
        close(reports[0]);
        child_main(o, stop[0], reports[1], parent);
    }
    close(stop[0]);
    close(reports[1]);
    ssize_t n = c->pid > 0 ? read(reports[0], &got, sizeof got) : -1;
    close(reports[0]);
    if (n == sizeof got && got.port) {
        c->port = got.port;
        return 0;
    }
    virtual_stop(c);
    if (n == sizeof got) {
        *err = got.err;
        return -1;
    }
    return err_set(err, ERR_SYSTEM, "", "the virtual nodes did not start");
}

void virtual_stop(struct virtual_child *c)
{
    fd_cleanup(&c->stop_fd);
    if (c->pid > 0)
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    c->pid = 0;
}
