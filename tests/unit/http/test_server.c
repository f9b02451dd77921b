// SPDX-License-Identifier: Apache-2.0
// A second server on http/ alone: nothing of this node's is linked here, only http, core/os, model
// and base. It has a handler, one that waits, a stream, and one that a worker process runs.
#include "http/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server/worker_process.h"
#include "tests/unit/tap.h"

static struct planet {
    const char *name;
    struct loop *loop;
    int opened, closed; // sources
} planet = {.name = "Mars"};

static const struct http_service service;

static int hello(struct request *q, struct reply *r, struct err *err)
{
    const struct planet *p = q->service->context;
    struct buf body = BUF_INIT;
    buf_fmt(&body, "%s from %s in %d", q->name, p->name, (int)getpid());
    return reply_text(r, "text/plain", &body, err);
}

// ---- a source: wakes once, and as a stream says two words

struct bell {
    struct loop_timer *timer;
    void (*wake)(void *ctx);
    void *ctx;
    int said;
};

static void ring(void *ctx, uint32_t events)
{
    struct bell *b = ctx;
    (void)events;
    b->wake(b->ctx);
}

static void *bell_open(void *context, int64_t of, int64_t after, void (*wake)(void *ctx), void *ctx,
                       struct err *err)
{
    struct planet *p = context;
    struct bell *b = calloc(1, sizeof *b);
    (void)after;
    *b = (struct bell){.timer = loop_timer_new(p->loop, ring, b, err), .wake = wake, .ctx = ctx};
    loop_timer_set(b->timer, of);
    p->opened++;
    return b;
}

static void bell_close(void *opened)
{
    struct bell *b = opened;
    loop_timer_free(b->timer);
    free(b);
    planet.closed++;
}

static ssize_t bell_read(void *opened, char *out, size_t room)
{
    static const char *const words[] = {"ding ", "dong"};
    struct bell *b = opened;
    if (b->said == 2)
        return -1;
    return snprintf(out, room, "%s", words[b->said++]);
}

static const struct reply_source bell = {.open = bell_open, .close = bell_close, .read = bell_read};

static int wait_for_bell(struct request *q, struct reply *r, struct err *err)
{
    struct buf body = BUF_INIT;
    if (!q->again)
        return reply_wait(r, &bell, q->arg, 1); // the bell, or a millisecond
    buf_str(&body, "it rang");
    return reply_text(r, "text/plain", &body, err);
}

static int listen_to_bell(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    (void)err;
    return reply_stream(r, &bell, -1, 0);
}

static int copy(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    (void)err;
    return reply_made_file(r, &bell, "text/plain");
}

enum { BUSY_NS = 12000000 }; // more than a round of the loop has for its handlers

static int busy(struct request *q, struct reply *r, struct err *err)
{
    struct buf body = BUF_INIT;
    for (const uint64_t end = clock_mono_ns() + BUSY_NS; clock_mono_ns() < end;)
        ;
    buf_fmt(&body, "%s was busy\n", q->name);
    return reply_text(r, "text/plain", &body, err);
}

static int form(struct request *q, struct reply *r, struct err *err)
{
    static const char *const types[] = {"text/plain", "text/csv"};
    int n = request_accept_one(q, types, 2, err);
    struct buf body = BUF_INIT;
    if (n < 0)
        return -1;
    buf_str(&body, "a text");
    return reply_text(r, types[n], &body, err);
}

static void much(const struct request *q, struct work *w, struct err *why)
{
    (void)q;
    (void)why;
    w->us = 1000000;
}

static struct rlimit files;

// From now on no other file can be opened, until the test ends that.
static void much_without_files(const struct request *q, struct work *w, struct err *why)
{
    int next = dup(STDOUT_FILENO);
    close(next);
    getrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_NOFILE,
              &(struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = files.rlim_max});
    much(q, w, why);
}

// ---- its worker

static int answer(void *ctx, const struct worker_question *asked, struct request *q, int body,
                  struct worker_answer *a, struct err *err)
{
    (void)ctx;
    (void)body;
    return asked->kind ? err_set(err, ERR_INTERNAL, "", "no such job")
                       : worker_process_reply(q, a, err);
}

enum { SLOW_END_BYTES = 64 << 20 };

static int spawn(void *context, int control, pid_t *pid, struct err *err)
{
    (void)context;
    *pid = fork();
    if (*pid < 0)
        return err_sys(err, "fork");
    if (*pid)
        return 0;
    dup2(control, WORKER_CONTROL_FD);
    close_range(WORKER_CONTROL_FD + 1, ~0U, 0);
    // It ends some milliseconds after it was killed.
    mmap(NULL, SLOW_END_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
         -1, 0);
    _exit(worker_process_run(&service, answer, NULL));
}

static bool process_is_outdated;

static bool is_outdated(void *context)
{
    (void)context;
    return process_is_outdated;
}

static int64_t always(void *context)
{
    (void)context;
    return 1;
}

static bool files_are_limited;

static void failed(void *context, const struct err *err)
{
    (void)context;
    CHECK(files_are_limited, "a job failed: %s", err->text);
}

static const struct route routes[] = {
    {"GET", "/hello/{name}", hello, NULL, SCOPE_READ},
    {"GET", "/bells/{id}", wait_for_bell, NULL, SCOPE_READ},
    {"GET", "/bells", listen_to_bell, NULL, SCOPE_READ},
    {"GET", "/file", copy, NULL, SCOPE_READ},
    {"GET", "/far/{name}", hello, NULL, SCOPE_READ, .work = much},
    {"GET", "/full/{name}", hello, NULL, SCOPE_READ, .work = much_without_files},
    {"GET", "/busy/{name}", busy, NULL, SCOPE_READ},
    {"GET", "/form", form, NULL, SCOPE_READ},
    {"GET", "/far-form", form, NULL, SCOPE_READ, .work = much},
    {"DELETE", "/bells", hello, NULL, SCOPE_ADMIN},
    {0},
};
static const struct job_service jobs = {.spawn = spawn,
                                        .is_outdated = is_outdated,
                                        .version = always,
                                        .generation = always,
                                        .failed = failed};
static const struct http_service service = {.routes = routes, .context = &planet, .jobs = &jobs};

// ---- a client in the same loop

struct client {
    int fd;
    char text[4096];
    size_t n;
};

static void hear(void *ctx, uint32_t events)
{
    struct client *c = ctx;
    (void)events;
    ssize_t n = recv(c->fd, c->text + c->n, sizeof c->text - 1 - c->n, MSG_DONTWAIT);
    if (n > 0)
        c->n += (size_t)n;
    else if (n == 0 || errno != EAGAIN)
        loop_stop(planet.loop);
}

static bool dial(struct server *s, struct client *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)atoi(strrchr(server_addresses(s), ':') + 1));
    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    return connect(c->fd, (struct sockaddr *)&a, sizeof a) == 0;
}

static bool send_head(struct client *c, const char *method, const char *path, const char *more)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path,
                     more);
    c->n = 0;
    return send(c->fd, text, (size_t)n, 0) == n;
}

// What comes back, with its head; borrowed until the next question.
static const char *ask_with(struct server *s, const char *method, const char *path,
                            const char *headers)
{
    static struct client c;
    struct err err;
    if (!dial(s, &c) || !send_head(&c, method, path, headers))
        return "no connection";
    struct loop_watch *w = loop_watch_fd(planet.loop, c.fd, EPOLLIN, hear, &c, &err);
    loop_run(planet.loop, &err);
    loop_unwatch(w);
    close(c.fd);
    c.text[c.n] = '\0';
    return c.text;
}

static const char *ask(struct server *s, const char *method, const char *path)
{
    return ask_with(s, method, path, "Connection: close\r\n");
}

static bool says(const char *text, int status, const char *words)
{
    char first[24];
    snprintf(first, sizeof first, "HTTP/1.1 %d ", status);
    bool good = strncmp(text, first, strlen(first)) == 0 && strstr(text, words);
    if (!good)
        printf("# %s\n", text);
    return good;
}

static void handlers(struct server *s)
{
    char here[32];
    snprintf(here, sizeof here, "in %d", (int)getpid());
    CHECK(says(ask(s, "GET", "/hello/Ada"), 200, "Ada from Mars"), "a handler has its context");
    CHECK(says(ask(s, "GET", "/hello/Ada"), 200, here), "and runs in the loop");
    CHECK(says(ask(s, "GET", "/nowhere"), 404, "/problems/not-found"), "404 is a problem document");
    CHECK(says(ask(s, "DELETE", "/bells"), 401, "admin"), "a scope is asked for");
}

static void sources(struct server *s)
{
    CHECK(says(ask(s, "GET", "/bells/1"), 200, "it rang"), "a wait ends when its source wakes it");
    CHECK(says(ask(s, "GET", "/bells/60000"), 200, "it rang"), "or when its time has passed");
    const char *text = ask(s, "GET", "/bells");
    CHECK(says(text, 200, "ding ") && strstr(text, "dong"), "a stream says what its source writes");
    CHECK(planet.opened == 3 && planet.closed == 3, "every source was closed");
}

// A body after HEAD, or the end of one in chunks, is the next answer to a client that keeps its
// connection.
static void heads(struct server *s)
{
    static const char *const paths[] = {"/hello/Ada", "/bells", "/file"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const char *text = ask(s, "HEAD", paths[i]);
        const char *end = strstr(text, "\r\n\r\n");
        CHECK(says(text, 200, "Content-Type: ") && end && !end[4], "HEAD has no body");
        CHECK(!strstr(text, "Content-Length: 0") && !strstr(text, "chunked"),
              "and says nothing untrue of its length");
    }
    CHECK(planet.opened == 3, "and opens no source");
}

static void workers(struct server *s)
{
    char here[32];
    snprintf(here, sizeof here, "in %d", (int)getpid());
    const char *text = ask(s, "GET", "/far/Ada");
    CHECK(says(text, 200, "Ada from Mars") && !strstr(text, here), "a worker process answers");
    static const char two[] = "Connection: close\r\nAccept: image/png\r\naccept: text/csv\r\n";
    CHECK(says(ask_with(s, "GET", "/form", two), 200, "text/csv"), "two Accept headers count");
    CHECK(says(ask_with(s, "GET", "/far-form", two), 200, "text/csv"), "as they do in a worker");
}

static int processes_held(void)
{
    int n = 0;
    char name[40], link[64];
    for (int fd = 0; fd < 256; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(name, link, sizeof link - 1);
        n += length > 0 && memmem(link, (size_t)length, "pidfd", 5);
    }
    return n;
}

// The next process may never be needed.
static void replaced_worker(struct server *s)
{
    const int64_t end = clock_mono_ms() + 30000;
    ask(s, "GET", "/far/Ada");
    CHECK(processes_held() == 1, "a process is there: %d", processes_held());
    process_is_outdated = true;
    CHECK(says(ask(s, "GET", "/far/Bob"), 200, "Bob from Mars"), "a new one answers");
    process_is_outdated = false;
    while (processes_held() != 1 && clock_mono_ms() < end)
        ask(s, "GET", "/hello/Ada");
    CHECK(processes_held() == 1, "nothing is left of one that was ended: %d", processes_held());
}

static void limit_of_files(struct server *s)
{
    ask(s, "GET", "/far/Ada"); // the process is there
    files_are_limited = true;
    bool full = says(ask(s, "GET", "/full/Ada"), 503, "no file descriptor is left");
    setrlimit(RLIMIT_NOFILE, &files);
    files_are_limited = false;
    CHECK(full, "without a file for the response its client is told");
    CHECK(says(ask(s, "GET", "/far/Ada"), 200, "Ada from Mars"), "and it is gone with the limit");
}

// ---- a crowd of another account that requests without end what takes longer than a round

enum { CROWD = CONNECTIONS_MIN / 4, CROWD_MOST = 10 * CROWD, CROWD_UID = 12345 };

static struct crowd {
    int answers; // that it got
    struct crowd_member {
        struct client c;
        struct loop_watch *watch;
    } list[CROWD];
} crowd;

static bool is_answered(struct client *c)
{
    c->text[c->n] = '\0';
    return strstr(c->text, "was busy\n");
}

static void hear_crowd(void *ctx, uint32_t events)
{
    struct client *c = ctx;
    hear(c, events);
    if (!is_answered(c))
        return;
    if (++crowd.answers == CROWD_MOST || !send_head(c, "GET", "/busy/crowd", ""))
        loop_stop(planet.loop);
}

static void hear_late(void *ctx, uint32_t events)
{
    hear(ctx, events);
    if (is_answered(ctx))
        loop_stop(planet.loop);
}

// The kernel knows the account by the socket.
static bool dial_as_crowd(struct server *s, struct client *c)
{
    bool done = seteuid(CROWD_UID) == 0 && dial(s, c);
    return seteuid(0) == 0 && done;
}

static void turns(struct server *s)
{
    static struct client late;
    struct err err;
    bool begun = true;
    if (geteuid() != 0) {
        SKIP("only root can be two accounts");
        return;
    }
    for (struct crowd_member *m = crowd.list; m < crowd.list + CROWD; m++) {
        begun = begun && dial_as_crowd(s, &m->c) && send_head(&m->c, "GET", "/busy/crowd", "");
        m->watch = loop_watch_fd(planet.loop, m->c.fd, EPOLLIN, hear_crowd, &m->c, &err);
    }
    crowd.answers = CROWD_MOST - 2 * CROWD; // all wait by then, and the loop knows what they take
    loop_run(planet.loop, &err);
    crowd.answers = 0;
    for (struct crowd_member *m = crowd.list; m < crowd.list + CROWD; m++)
        if (is_answered(&m->c))
            begun = begun && send_head(&m->c, "GET", "/busy/crowd", "");
    begun = begun && dial(s, &late) && send_head(&late, "GET", "/busy/late", "");
    struct loop_watch *w = loop_watch_fd(planet.loop, late.fd, EPOLLIN, hear_late, &late, &err);
    loop_run(planet.loop, &err);
    CHECK(begun && is_answered(&late) && crowd.answers <= 3 * CROWD,
          "who comes late has a turn too: after %d of the others", crowd.answers);
    loop_unwatch(w);
    close(late.fd);
    for (struct crowd_member *m = crowd.list; m < crowd.list + CROWD; m++) {
        loop_unwatch(m->watch);
        close(m->c.fd);
    }
}

static void hear_some(void *ctx, uint32_t events)
{
    struct client *c = ctx;
    hear(ctx, events);
    c->text[c->n] = '\0';
    if (strstr(c->text, "from Mars in "))
        loop_stop(planet.loop);
}

// A request that the server reads only while it stops. It frees the server.
static void stopping(struct server *s, struct client *c, const char *path)
{
    struct err err;
    CHECK(dial(s, c) && send_head(c, "GET", "/hello/Ada", ""), "a connection that stays open");
    struct loop_watch *w = loop_watch_fd(planet.loop, c->fd, EPOLLIN, hear_some, c, &err);
    loop_run(planet.loop, &err);
    loop_unwatch(w);
    CHECK(send_head(c, "GET", path, ""), "its second request");
    server_free(s);
    for (ssize_t n = 1; n > 0; c->n += n > 0 ? (size_t)n : 0)
        n = recv(c->fd, c->text + c->n, sizeof c->text - 1 - c->n, 0);
    c->text[c->n] = '\0';
    close(c->fd);
}

static void last_requests(const struct access_rules *rules, const struct http_config *config)
{
    static const struct {
        const char *path, *words;
        int status;
    } cases[] = {
        {"/bells/60000", "it rang", 200},
        {"/bells", "the daemon is stopping", 503},
        {"/file", "the daemon is stopping", 503},
    };
    static struct client c;
    struct err err = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct server *s = server_new(planet.loop, &service, rules, config, &err);
        CHECK(s, "a server that stops: %s", err.text);
        if (!s)
            return;
        stopping(s, &c, cases[i].path);
        CHECK(says(c.text, cases[i].status, cases[i].words), "%s while it stops", cases[i].path);
    }
}

int main(void)
{
    struct err err = {0};
    const struct access_rules rules = {
        .anonymous = SCOPE_READ, .run_group = (gid_t)-1, .admin_group = (gid_t)-1};
    const struct http_config config = {.connections = CONNECTIONS_MIN,
                                       .listen = "127.0.0.1:0",
                                       .tls_certificate = "",
                                       .tls_key = "",
                                       .tls_client_ca = "",
                                       .socket = ""};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); // workers are reaped by the kernel
    log_init(LOG_LVL_ERROR, false);
    planet.loop = loop_new(&err);
    struct server *s = server_new(planet.loop, &service, &rules, &config, &err);
    CHECK(s, "a second server starts%s%s", s ? "" : ": ", err.text);
    if (s) {
        handlers(s);
        sources(s);
        heads(s);
        workers(s);
        replaced_worker(s);
        limit_of_files(s);
        turns(s);
    }
    server_free(s);
    last_requests(&rules, &config);
    loop_free(planet.loop);
    return tap_done();
}
