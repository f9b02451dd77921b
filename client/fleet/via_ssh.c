// SPDX-License-Identifier: Apache-2.0
// ssh makes the local socket when it is logged in: inotify reports it. Between bind and listen a
// connection is refused, so it is tried again shortly, by a timer. ssh's stderr ends with ssh,
// which is how its end is noticed. inotify, the stderrs and the timer are in one epoll set.
#include "client/fleet/via_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/fleet/socket_dir.h"
#include "client/fleet/ssh_reason.h"
#include "client/socket.h"
#include "model/nodeset.h"
#include "nodes/program.h"

enum {
    SAID_MAX = 4096, // bytes of ssh's stderr that are kept, the last ones
    TURN_EVENTS = 64,
    RETRY_MS = 2,    // after a connection that was refused
    GRACE_MS = 5000, // beyond connect_s: authentication has no limit in ssh
    FAILURE_ROOM = 256,
};

enum tunnel_state {
    TUNNEL_NONE,
    TUNNEL_WAITING,  // for a place
    TUNNEL_STARTING, // ssh is running, the socket is not there
    TUNNEL_MADE,     // the socket is there, and does not accept yet
    TUNNEL_READY,
    TUNNEL_FAILED, // reported with the next turn
};

struct tunnel {
    enum tunnel_state state;
    char name[NODESET_NAME_ROOM];
    pid_t pid;
    int said_fd;         // ssh's stderr; -1: none
    struct buf said;     // of it, since the start
    int64_t deadline_ms; // STARTING and MADE
    char *failure;       // FAILED before ssh ran
    int next;            // WAITING: the next in the queue
};

struct via_ssh {
    struct via_ssh_options o;
    via_ssh_event *event;
    void *ctx;
    struct socket_dir dir;
    int epoll, watch, timer;
    struct tunnel *list; // by the caller's numbers
    int n;
    int first, last; // of those that wait; -1: none
    int running;     // ssh processes
    char why[FAILURE_ROOM];
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
};

// What an event is about: one of these, or FROM_TUNNEL + the node.
enum { FROM_WATCH, FROM_TIMER, FROM_TUNNEL };

static int via_watch(struct via_ssh *v, int fd, uint64_t from)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = from};
    return fd < 0 ? -1 : epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &e);
}

struct via_ssh *via_ssh_new(const struct via_ssh_options *o, via_ssh_event *event, void *ctx,
                            struct err *err)
{
    struct via_ssh *v = calloc(1, sizeof *v);
    if (!v) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for ssh");
        return NULL;
    }
    *v = (struct via_ssh){
        .o = *o, .event = event, .ctx = ctx, .dir = SOCKET_DIR_NONE, .first = -1, .last = -1};
    v->o.socket = o->socket ? o->socket : SOCKET_OF_SYSTEM;
    v->epoll = epoll_create1(EPOLL_CLOEXEC);
    v->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    v->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (socket_dir_make(&v->dir, err) < 0) {
        via_ssh_free(v);
        return NULL;
    }
    if (via_watch(v, v->watch, FROM_WATCH) < 0 || via_watch(v, v->timer, FROM_TIMER) < 0 ||
        inotify_add_watch(v->watch, v->dir.path, IN_CREATE) < 0) {
        err_sys(err, "cannot watch %s", v->dir.path);
        via_ssh_free(v);
        return NULL;
    }
    return v;
}

void via_ssh_free(struct via_ssh *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->n; i++)
        via_ssh_stop(v, i);
    socket_dir_remove(&v->dir);
    fd_cleanup(&v->epoll);
    fd_cleanup(&v->watch);
    fd_cleanup(&v->timer);
    free(v->list);
    free(v);
}

int via_ssh_fd(const struct via_ssh *v)
{
    return v->epoll;
}

static const char *tunnel_path(struct via_ssh *v, int node)
{
    snprintf(v->path, sizeof v->path, "%s/n%d.sock", v->dir.path, node);
    return v->path;
}

// The timer is due at once, or at `at_ms` if that is earlier than what it has.
static void timer_at(struct via_ssh *v, int64_t at_ms)
{
    struct itimerspec now, want = {0};
    int64_t left = at_ms - clock_mono_ms();
    left = left < 1 ? 1 : left;
    timerfd_gettime(v->timer, &now);
    int64_t set = now.it_value.tv_sec * 1000 + now.it_value.tv_nsec / 1000000 + 1;
    if ((now.it_value.tv_sec || now.it_value.tv_nsec) && set <= left)
        return;
    want.it_value.tv_sec = left / 1000;
    want.it_value.tv_nsec = left % 1000 * 1000000;
    timerfd_settime(v->timer, 0, &want, NULL);
}

static int list_grow(struct via_ssh *v, int n)
{
    if (n <= v->n)
        return 0;
    struct tunnel *list = realloc(v->list, (size_t)n * sizeof *list);
    if (!list)
        return -1;
    for (int i = v->n; i < n; i++)
        list[i] = (struct tunnel){.said_fd = -1};
    v->list = list;
    v->n = n;
    return 0;
}

int via_ssh_start(struct via_ssh *v, int node, const char *name, struct err *err)
{
    if (nodeset_name_check(name, err) < 0)
        return -1;
    if (node < 0 || node >= VIA_SSH_NODES_MAX)
        return err_set(err, ERR_INVALID, "", "at most %d nodes", VIA_SSH_NODES_MAX);
    if (list_grow(v, node + 1) < 0)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", node + 1);
    struct tunnel *t = &v->list[node];
    if (t->state != TUNNEL_NONE)
        return err_set(err, ERR_INTERNAL, "", "node %d has a tunnel already", node);
    *t = (struct tunnel){.state = TUNNEL_WAITING, .said_fd = -1, .next = -1};
    snprintf(t->name, sizeof t->name, "%s", name);
    *(v->last < 0 ? &v->first : &v->list[v->last].next) = node;
    v->last = node;
    timer_at(v, 0);
    return 0;
}

static void queue_remove(struct via_ssh *v, int node)
{
    int before = -1;
    for (int i = v->first; i != node; i = v->list[i].next)
        before = i;
    int next = v->list[node].next;
    *(before < 0 ? &v->first : &v->list[before].next) = next;
    if (v->last == node)
        v->last = before;
}

static void tunnel_end_ssh(struct via_ssh *v, int node)
{
    struct tunnel *t = &v->list[node];
    if (!t->pid)
        return;
    program_end(t->pid);
    fd_cleanup(&t->said_fd);
    unlink(tunnel_path(v, node));
    t->pid = 0;
    v->running--;
    if (v->first >= 0)
        timer_at(v, 0); // there is a place for another
}

void via_ssh_stop(struct via_ssh *v, int node)
{
    if (node < 0 || node >= v->n || v->list[node].state == TUNNEL_NONE)
        return;
    struct tunnel *t = &v->list[node];
    if (t->state == TUNNEL_WAITING)
        queue_remove(v, node);
    tunnel_end_ssh(v, node);
    buf_free(&t->said);
    free(t->failure);
    *t = (struct tunnel){.said_fd = -1};
}

// Of the user's configuration of ssh all holds but what would prompt, share a connection that ends
// with another process, or open more than the socket.
static int tunnel_exec(struct via_ssh *v, int node, int said, struct err *err)
{
    struct tunnel *t = &v->list[node];
    char forward[400], timeout[40];
    snprintf(forward, sizeof forward, "-L%s:%s", tunnel_path(v, node), v->o.socket);
    snprintf(timeout, sizeof timeout, "-oConnectTimeout=%d", v->o.connect_s);
    const char *const argv[] = {v->o.program,
                                "-N",
                                "-T",
                                "-a",
                                "-x",
                                "-oBatchMode=yes",
                                "-oExitOnForwardFailure=yes",
                                "-oStreamLocalBindUnlink=yes",
                                "-oControlMaster=no",
                                "-oControlPath=none",
                                "-oPermitLocalCommand=no",
                                "-oLogLevel=INFO",
                                "-oServerAliveInterval=15",
                                timeout,
                                forward,
                                "--",
                                t->name,
                                NULL};
    return program_start(argv, &(struct program_files){-1, said}, &t->pid, err);
}

static void tunnel_fail_early(struct via_ssh *v, struct tunnel *t, const char *why)
{
    t->state = TUNNEL_FAILED;
    t->failure = strdup(why);
    timer_at(v, 0);
}

static void tunnel_begin(struct via_ssh *v, int node)
{
    struct tunnel *t = &v->list[node];
    struct err err = {0};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        err_sys(&err, "cannot start %.60s", v->o.program);
        tunnel_fail_early(v, t, err.text);
        return;
    }
    CLEANUP_FD int said = ends[1];
    t->said_fd = ends[0];
    fcntl(t->said_fd, F_SETFL, O_NONBLOCK);
    if (tunnel_exec(v, node, said, &err) < 0 ||
        via_watch(v, t->said_fd, FROM_TUNNEL + (uint64_t)node) < 0) {
        if (t->pid)
            program_end(t->pid);
        t->pid = 0;
        fd_cleanup(&t->said_fd);
        tunnel_fail_early(v, t, *err.text ? err.text : "no file descriptors for ssh");
        return;
    }
    v->running++;
    t->state = TUNNEL_STARTING;
    t->deadline_ms = clock_mono_ms() + v->o.connect_s * INT64_C(1000) + GRACE_MS;
    timer_at(v, t->deadline_ms);
}

static void begin_waiting(struct via_ssh *v)
{
    while (v->first >= 0 && v->running < v->o.at_once) {
        int node = v->first;
        queue_remove(v, node);
        tunnel_begin(v, node);
    }
}

// Its event is the last thing that happens to a tunnel: the caller may stop it.
static void tunnel_fail(struct via_ssh *v, int node, enum err_code code, const char *text)
{
    struct err why = {.code = code};
    snprintf(why.text, sizeof why.text, "%s", text);
    tunnel_end_ssh(v, node);
    via_ssh_stop(v, node);
    v->event(v->ctx, node, NULL, &why);
}

static bool socket_accepts(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

// MADE becomes READY, or is tried again.
static void tunnel_try(struct via_ssh *v, int node)
{
    struct tunnel *t = &v->list[node];
    if (!socket_accepts(tunnel_path(v, node))) {
        timer_at(v, clock_mono_ms() + RETRY_MS);
        return;
    }
    t->state = TUNNEL_READY;
    char path[sizeof v->path]; // the event may start others, which use v->path
    memcpy(path, v->path, sizeof path);
    v->event(v->ctx, node, path, NULL);
}

static void read_watch(struct via_ssh *v)
{
    char block[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    for (ssize_t n; (n = read(v->watch, block, sizeof block)) > 0;) {
        const struct inotify_event *e;
        for (char *at = block; at < block + n; at += sizeof *e + e->len) {
            int node, end = 0;
            e = (const struct inotify_event *)(const void *)at;
            if (e->len && sscanf(e->name, "n%d.sock%n", &node, &end) == 1 && end && !e->name[end] &&
                node >= 0 && node < v->n && v->list[node].state == TUNNEL_STARTING) {
                v->list[node].state = TUNNEL_MADE;
                tunnel_try(v, node);
            }
        }
    }
}

// Whether it has ended.
static bool tunnel_listen(struct tunnel *t)
{
    char block[1024];
    ssize_t n;
    while ((n = read(t->said_fd, block, sizeof block)) > 0) {
        buf_add(&t->said, block, (size_t)n);
        if (t->said.len > SAID_MAX)
            buf_drop(&t->said, t->said.len - SAID_MAX);
    }
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

static void read_tunnel(struct via_ssh *v, int node)
{
    struct tunnel *t = &v->list[node];
    char why[FAILURE_ROOM];
    if (t->said_fd < 0 || !tunnel_listen(t))
        return;
    ssh_reason(buf_text(&t->said), t->name, why, sizeof why);
    tunnel_fail(v, node, ERR_UNREACHABLE, why);
}

static void run_timer(struct via_ssh *v)
{
    uint64_t expirations;
    int64_t now = clock_mono_ms();
    if (read(v->timer, &expirations, sizeof expirations) < 0)
        return;
    for (int i = 0; i < v->n; i++) {
        struct tunnel *t = &v->list[i];
        if (t->state == TUNNEL_FAILED) {
            char *text = t->failure; // stopping the tunnel must not free it first
            t->failure = NULL;
            tunnel_fail(v, i, ERR_UNAVAILABLE, text ? text : "no memory for ssh");
            free(text);
            continue;
        }
        if (t->state == TUNNEL_MADE)
            tunnel_try(v, i);
        t = &v->list[i];
        if (t->state != TUNNEL_STARTING && t->state != TUNNEL_MADE)
            continue;
        if (now >= t->deadline_ms)
            tunnel_fail(v, i, ERR_TIMEOUT, "ssh: no connection within the time limit");
        else
            timer_at(v, t->deadline_ms);
    }
}

void via_ssh_turn(struct via_ssh *v)
{
    struct epoll_event events[TURN_EVENTS];
    int n = epoll_wait(v->epoll, events, TURN_EVENTS, 0);
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == FROM_WATCH)
            read_watch(v);
        else if (events[i].data.u64 == FROM_TIMER)
            run_timer(v);
        else if (events[i].data.u64 - FROM_TUNNEL < (uint64_t)v->n)
            read_tunnel(v, (int)(events[i].data.u64 - FROM_TUNNEL));
    }
    begin_waiting(v);
}

const char *via_ssh_why(struct via_ssh *v, int node)
{
    if (node < 0 || node >= v->n || v->list[node].said_fd < 0)
        return "";
    struct tunnel *t = &v->list[node];
    tunnel_listen(t);
    if (!strstr(buf_text(&t->said), "open failed"))
        return ""; // a banner, a warning
    ssh_reason(buf_text(&t->said), t->name, v->why, sizeof v->why);
    return v->why;
}
