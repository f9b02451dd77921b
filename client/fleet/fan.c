// SPDX-License-Identifier: Apache-2.0
// One loop for all nodes. fetch/ moves the bytes and via_ssh makes the sockets; here is who may
// begin, and what Ctrl-C does. The first one stops what has not begun; the second one ends what is
// in progress too. So do SIGTERM, SIGHUP and the end of whoever reads our output.
#include "client/fleet/fan.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/fleet/via_ssh.h"
#include "client/interrupts.h"
#include "client/print.h"
#include "client/problem.h"
#include "client/progress.h"
#include "client/token.h"
#include "nodes/addresses.h"

enum {
    TICK_MS = 200, // the progress line; nothing else needs a time of its own
    // A page of summaries: 100 runs of 4,096 metrics are 12 MB.
    PAGE_MAX = 16 << 20,
    PAGE_MEMORY_MAX = 256 << 20, // read as JSON, 16 bytes per byte
};

struct fan {
    const struct cli *cli;
    const struct fan_work *work;
    struct fan_node *nodes; // owned
    int n, next;            // next: the first that has never begun
    int n_again;            // that come again later
    int64_t again_ms;       // the earliest of them does; INT64_MAX: none
    int at_once;            // as the option says, or as many as there are descriptors for
    int in_progress, done, failed;
    struct fetch *fetch;
    struct fetch_tls tls;
    struct via_ssh *ssh;     // NULL: fleet_url has the addresses
    struct addresses *known; // of hosts_file; NULL: by ssh
    char token[TOKEN_ROOM];
    int interrupts; // that were noticed
    bool reader_gone;
    int64_t drawn_ms;
    bool drawn;
};

struct fan_open_call {
    struct fan *fan;
    int node;
    fan_reply *reply;
    fan_refused *refused;
    bool optional;
    const char *interrupted; // borrowed
    struct fetch_limits limits;
    char *body; // owned: it is sent after fan_call has returned
};

static volatile sig_atomic_t interrupts, told_to_end;

static void fan_on_interrupt(int signo)
{
    told_to_end |= signo != SIGINT;
    interrupts++;
}

int fan_count(const struct fan *f)
{
    return f->n;
}

struct fan_node *fan_node(struct fan *f, int node)
{
    return &f->nodes[node];
}

bool fan_stopped(const struct fan *f)
{
    return f->interrupts > 0 || f->reader_gone;
}

int fan_ended(const struct fan *f, enum fan_state state)
{
    return state == FAN_DONE ? f->done : f->failed;
}

// ---- Addresses ----------------------------------------------------------------------------------

// The token's own rule about what travels in clear needs an address: each node's.
static int fan_token(struct fan *f, const char *address, struct err *err)
{
    struct cli *one = malloc(sizeof *one);
    if (!one)
        return err_set(err, ERR_NO_MEMORY, "", "no memory");
    *one = *f->cli;
    snprintf(one->url, sizeof one->url, "%s", address);
    one->url_assumed = false;
    int rc = token_find(one, f->token, err);
    free(one);
    return rc;
}

static int fan_set_addresses(struct fan *f, struct err *err)
{
    char base[128];
    for (int i = 0; i < f->n; i++) {
        if (addresses_url(f->known, f->cli->fleet.fleet_url, "fleet_url", f->nodes[i].name, base,
                          sizeof base, err) < 0 ||
            ((i == 0 || *f->token) && fan_token(f, base, err) < 0))
            return -1;
        if (!(f->nodes[i].base = strdup(base)))
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d addresses", f->n);
    }
    return 0;
}

static void fan_on_tunnel(void *ctx, int node, const char *socket, const struct err *why);

// By ssh unless a pattern of addresses is set.
static int fan_set_way(struct fan *f, struct err *err)
{
    const struct fleet_settings *s = &f->cli->fleet;
    if (!*s->fleet_url) {
        f->ssh = via_ssh_new(&(struct via_ssh_options){.program = s->ssh,
                                                       .at_once = f->at_once,
                                                       .connect_s = (int)s->node_timeout_s},
                             fan_on_tunnel, f, err);
        return f->ssh ? 0 : -1;
    }
    f->known = addresses_read(s->hosts_file, err);
    return f->known ? fan_set_addresses(f, err) : -1;
}

// A node in progress has a connection, and at times a second one; by ssh also a process with its
// pipes. The soft limit of descriptors is raised; where that is not enough, fewer are in progress.
static int fan_places(const struct fan *f)
{
    enum { OWN = 64, BY_ADDRESS = 2, BY_SSH = 6 };
    struct rlimit limit;
    int wanted = (int)f->cli->fleet.at_once, each = *f->cli->fleet.fleet_url ? BY_ADDRESS : BY_SSH;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return wanted;
    rlim_t needed = (rlim_t)(OWN + each * wanted);
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= needed)
        return wanted;
    int places = limit.rlim_cur > OWN + each ? ((int)limit.rlim_cur - OWN) / each : 1;
    if (f->n > places)
        fprintf(stderr, "numaprobe: %d node%s at once, because only %llu files may be open\n",
                places, str_plural(places), (unsigned long long)limit.rlim_cur);
    return places;
}

struct fan *fan_new(const struct cli *c, const struct nodeset *names, const struct fan_work *work,
                    struct err *err)
{
    struct fan *f = calloc(1, sizeof *f);
    if (!f || !(f->nodes = calloc((size_t)names->n + 1, sizeof *f->nodes))) {
        free(f);
        err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", names->n);
        return NULL;
    }
    f->cli = c;
    f->work = work;
    f->n = names->n;
    for (int i = 0; i < f->n; i++)
        f->nodes[i].name = names->names[i];
    f->tls = (struct fetch_tls){c->cacert, c->cert, c->key};
    f->again_ms = INT64_MAX;
    f->at_once = fan_places(f);
    // A node whose run is canceled has its long poll open beside that.
    f->fetch = fetch_new(2 * f->at_once, NULL, err);
    if (!f->fetch || fan_set_way(f, err) < 0) {
        fan_free(f);
        return NULL;
    }
    return f;
}

void fan_free(struct fan *f)
{
    if (!f)
        return;
    if (f->fetch)
        fetch_stop(f->fetch); // frees the calls that are open
    for (int i = 0; i < f->n; i++) {
        free(f->nodes[i].why);
        free(f->nodes[i].base);
        free(f->nodes[i].socket);
    }
    fetch_free(f->fetch);
    via_ssh_free(f->ssh);
    addresses_free(f->known);
    free(f->nodes);
    free(f);
}

// ---- The life of a node -------------------------------------------------------------------------

static bool is_open(const struct fan_node *n)
{
    return n->state != FAN_DONE && n->state != FAN_FAILED;
}

// The tunnel ends with the node's conversation.
static void fan_leave(struct fan *f, int node)
{
    if (f->ssh)
        via_ssh_stop(f->ssh, node);
    free(f->nodes[node].socket);
    f->nodes[node].socket = NULL;
}

// Its turn has come, or will not any more.
static void fan_forget_turn(struct fan *f, int node)
{
    f->n_again -= f->nodes[node].again_ms != 0;
    f->nodes[node].again_ms = 0;
}

static void fan_free_place(struct fan *f)
{
    f->in_progress--;
    if (f->n_again)
        f->again_ms = 0; // one of those that come again may take it: they are looked through
}

static void fan_end(struct fan *f, int node, enum fan_state state)
{
    fan_leave(f, node);
    fan_forget_turn(f, node);
    if (f->nodes[node].state != FAN_WAITING)
        fan_free_place(f);
    f->nodes[node].state = state;
    *(state == FAN_DONE ? &f->done : &f->failed) += 1;
    if (f->work->ended)
        f->work->ended(f, node, f->work->ctx);
}

void fan_done(struct fan *f, int node)
{
    if (is_open(&f->nodes[node]))
        fan_end(f, node, FAN_DONE);
}

void fan_fail(struct fan *f, int node, enum err_code code, const char *why)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    if (!is_open(&f->nodes[node]))
        return;
    buf_plain(&safe, why);
    f->nodes[node].code = code;
    f->nodes[node].why = buf_steal(&safe);
    fan_end(f, node, FAN_FAILED);
}

void fan_fail_refused(struct fan *f, int node, const struct err *refusal, const char *too_old)
{
    if (refusal->code == ERR_BAD_REQUEST || refusal->code == ERR_NOT_FOUND)
        fan_fail(f, node, ERR_CONFLICT, too_old);
    else
        fan_fail(f, node, refusal->code, refusal->text);
}

void fan_pause(struct fan *f, int node, int64_t delay_ms)
{
    struct fan_node *n = &f->nodes[node];
    n->again_ms = clock_mono_ms() + delay_ms;
    f->again_ms = f->n_again++ && f->again_ms < n->again_ms ? f->again_ms : n->again_ms;
}

void fan_later(struct fan *f, int node, int64_t delay_ms)
{
    if (fan_stopped(f)) {
        fan_fail(f, node, ERR_BUSY, "busy when it was interrupted");
        return;
    }
    fan_pause(f, node, delay_ms);
    f->nodes[node].state = FAN_WAITING;
    fan_free_place(f);
    fan_leave(f, node);
}

static void fan_on_tunnel(void *ctx, int node, const char *socket, const struct err *why)
{
    struct fan *f = ctx;
    struct fan_node *n = &f->nodes[node];
    if (!is_open(n))
        return;
    if (!socket) {
        fan_fail(f, node, why->code, why->text);
        return;
    }
    n->state = FAN_TALKING;
    n->socket = strdup(socket);
    if (n->socket)
        f->work->begin(f, node, f->work->ctx);
    else
        fan_fail(f, node, ERR_NO_MEMORY, "no memory for a socket's name");
}

static void fan_begin(struct fan *f, int node)
{
    struct err err = {0};
    f->in_progress++;
    f->nodes[node].state = f->ssh ? FAN_REACHING : FAN_TALKING;
    if (!f->ssh)
        f->work->begin(f, node, f->work->ctx);
    else if (via_ssh_start(f->ssh, node, f->nodes[node].name, &err) < 0)
        fan_fail(f, node, err.code, err.text);
}

// Those that come again go before those that never had a turn. Some have kept their place.
static void fan_begin_again(struct fan *f)
{
    int64_t now = clock_mono_ms();
    if (now < f->again_ms)
        return;
    f->again_ms = INT64_MAX;
    for (int i = 0; f->n_again && i < f->next; i++) {
        struct fan_node *n = &f->nodes[i];
        bool keeps = n->state == FAN_TALKING, full = !keeps && f->in_progress >= f->at_once;
        if (!n->again_ms || full)
            continue; // a place that becomes free is for it
        if (n->again_ms > now) {
            f->again_ms = n->again_ms < f->again_ms ? n->again_ms : f->again_ms;
            continue;
        }
        fan_forget_turn(f, i);
        if (keeps)
            f->work->begin(f, i, f->work->ctx);
        else
            fan_begin(f, i);
    }
}

static void fan_begin_next(struct fan *f)
{
    fan_begin_again(f);
    while (f->next < f->n && f->in_progress < f->at_once)
        fan_begin(f, f->next++);
}

bool fan_is_node(struct fan *f, int node, const char *name)
{
    const char *requested = f->nodes[node].name;
    size_t n = strcspn(requested, "."), m = strcspn(name, ".");
    return str_is_address(requested) || (n == m && strncmp(requested, name, n) == 0);
}

// ---- Requests -----------------------------------------------------------------------------------

static void fan_take(struct fan_open_call *c, const struct fetch_response *r)
{
    struct err why = {0}, plain = {0};
    struct fan *f = c->fan;
    if (r->status < 200 || r->status > 299) {
        struct http_reply reply = {.status = r->status, .body = r->body}; // borrowed
        CLEANUP_BUF struct buf text = BUF_INIT;
        http_problem(&reply, &plain);
        problem_write(&plain, &text); // members become options
        err_set(&why, plain.code, plain.member, "%s", buf_text(&text));
        if (c->refused)
            c->refused(f, c->node, &why, r->retry_after_s, f->work->ctx);
        else
            fan_fail(f, c->node, why.code, why.text);
        return;
    }
    CLEANUP_JSON struct json *body =
        json_parse_within(buf_text(&r->body), r->body.len, PAGE_MEMORY_MAX, &why);
    if (!body) {
        const bool had_memory = why.code != ERR_NO_MEMORY;
        err_prefix(&why, had_memory ? "the response is not JSON" : "the response");
        why.code = had_memory ? ERR_UNREACHABLE : why.code;
        if (c->optional)
            c->refused(f, c->node, &why, 0, f->work->ctx);
        else
            fan_fail(f, c->node, why.code, why.text);
        return;
    }
    c->reply(f, c->node, body, f->work->ctx);
}

// ssh knows better why its socket leads nowhere.
static const char *fan_why(struct fan *f, int node, const struct fetch_response *r)
{
    const char *ssh = f->ssh ? via_ssh_why(f->ssh, node) : "";
    if (r->sys == EMFILE || r->sys == ENFILE)
        return "no file descriptor is left here: a lower --at-once needs fewer";
    return *ssh ? ssh : fetch_error_info(r->error)->text;
}

static void fan_responded(void *ctx, struct fetch_response *r)
{
    struct fan_open_call *c = ctx;
    struct fan_node *n = &c->fan->nodes[c->node];
    n->reached |= r->error == FETCH_OK;
    if (r->error == FETCH_OK && r->dated) {
        n->dated = true;
        n->skew_ms = r->skew_ms;
    }
    if (!is_open(n))
        ; // it failed meanwhile, and nothing waits for this
    else if (r->error == FETCH_INTERRUPTED)
        fan_fail(c->fan, c->node, ERR_TIMEOUT, c->interrupted);
    else if (r->error != FETCH_OK && c->optional)
        c->refused(c->fan, c->node, &(struct err){.code = ERR_UNREACHABLE}, 0, c->fan->work->ctx);
    else if (r->error != FETCH_OK)
        fan_fail(c->fan, c->node, ERR_UNREACHABLE, fan_why(c->fan, c->node, r));
    else
        fan_take(c, r);
    free(c->body);
    free(c);
}

void fan_call(struct fan *f, int node, const struct fan_request *q)
{
    struct err err = {0};
    CLEANUP_BUF struct buf url = BUF_INIT;
    const struct fan_node *n = &f->nodes[node];
    struct fan_open_call *c = calloc(1, sizeof *c);
    char *body = q->body ? strdup(q->body) : NULL;
    buf_fmt(&url, "%s%s", n->socket ? "http://localhost" : n->base, q->path);
    if (!c || (q->body && !body) || !buf_ok(&url)) {
        free(c);
        free(body);
        fan_fail(f, node, ERR_NO_MEMORY, "no memory for a request");
        return;
    }
    *c = (struct fan_open_call){.fan = f,
                                .node = node,
                                .reply = q->reply,
                                .refused = q->refused,
                                .optional = q->optional,
                                .interrupted = q->interrupted ? q->interrupted : "interrupted",
                                .limits = fetch_limits_within(f->cli->fleet.node_timeout_s),
                                .body = body};
    c->limits.body_max = PAGE_MAX;
    c->limits.total_ms += q->wait_s * 1000;
    if (c->limits.total_ms < c->limits.connect_ms)
        c->limits.connect_ms = c->limits.total_ms;
    if (q->wait_s)
        c->limits.least_rate = 0;
    struct fetch_request request = {
        .method = q->method,
        .url = buf_text(&url),
        .socket = n->socket,
        .address = n->socket ? NULL : addresses_of_url(f->known, buf_text(&url)),
        .token = f->token,
        .headers = {q->body ? "Content-Type: application/json" : q->header,
                    q->body ? q->header : NULL},
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .tls = &f->tls,
        .limits = &c->limits,
        .more = !q->last,
    };
    if (fetch_start(f->fetch, &request, fan_responded, c, &err) == 0)
        return;
    free(c);
    free(body);
    fan_fail(f, node, err.code, err.text);
}

// ---- The loop -----------------------------------------------------------------------------------

static void fan_clear(struct fan *f)
{
    if (f->drawn)
        fputs("\r\033[K", stderr);
    f->drawn = false;
}

static void fan_draw(struct fan *f)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    int64_t now = clock_mono_ms();
    int busy = 0;
    if (!f->cli->err_terminal || now - f->drawn_ms < TICK_MS)
        return;
    f->drawn_ms = now;
    buf_fmt(&line, " %d node%s: %d done, %d in progress, %d failed", f->n, str_plural(f->n),
            f->done, f->in_progress, f->failed);
    for (int i = 0; f->n_again && i < f->next; i++)
        busy += f->nodes[i].again_ms && f->nodes[i].state == FAN_WAITING;
    if (busy)
        buf_fmt(&line, ", %d busy", busy);
    if (f->work->progress)
        f->work->progress(f, &line, f->work->ctx);
    progress_line(buf_text(&line));
    f->drawn = true;
}

// What is in progress ends with "interrupted".
static void fan_stop_all(struct fan *f)
{
    fetch_stop(f->fetch);
    for (int i = 0; i < f->n; i++)
        fan_fail(f, i, ERR_TIMEOUT, "interrupted");
}

// Nothing begins any more. What has not begun has failed, and says so.
static void fan_stop(struct fan *f, bool reader_gone)
{
    const char *hurry = reader_gone   ? "the output has no reader any more"
                        : told_to_end ? "the command was ended"
                                      : NULL;
    bool first = !fan_stopped(f);
    fan_clear(f);
    f->interrupts = (int)interrupts;
    f->reader_gone |= reader_gone;
    for (int i = 0; i < f->n; i++)
        if (f->nodes[i].state == FAN_REACHING || f->nodes[i].state == FAN_WAITING)
            fan_fail(f, i, ERR_TIMEOUT,
                     f->nodes[i].state == FAN_WAITING && i < f->next
                         ? "busy when it was interrupted"
                         : "interrupted before its turn");
    f->next = f->n;
    if (!first || f->interrupts > 1 || !f->work->interrupted ||
        !f->work->interrupted(f, hurry, f->work->ctx))
        fan_stop_all(f);
}

void fan_run(struct fan *f)
{
    struct interrupts before;
    interrupts = told_to_end = 0;
    interrupts_take(&before, fan_on_interrupt);
    while (f->done + f->failed < f->n) {
        struct pollfd fds[] = {{.fd = fetch_fd(f->fetch), .events = POLLIN},
                               {.fd = f->ssh ? via_ssh_fd(f->ssh) : -1, .events = POLLIN},
                               {.fd = f->reader_gone ? -1 : STDOUT_FILENO}}; // errors alone
        if (interrupts > f->interrupts)
            fan_stop(f, false);
        fan_begin_next(f);
        fan_draw(f);
        fetch_turn(f->fetch);
        if (f->done + f->failed < f->n)
            poll(fds, COUNT_OF(fds), TICK_MS);               // a signal ends it
        if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) // a socket has no POLLERR
            fan_stop(f, true);
        fetch_turn(f->fetch);
        if (f->ssh)
            via_ssh_turn(f->ssh);
    }
    fan_clear(f);
    interrupts_give_back(&before);
}
