// SPDX-License-Identifier: Apache-2.0
// What the judging process gets is a copy of the states of nodes, in a memory file; what it writes
// is passed on unread. One judgement is on the way at most, until it is stored. Nodes are looked at
// and copied in pieces, since the loop has other work.
#include "fleet/collect/judging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/os/child.h"
#include "fleet/collect/judged_wire.h"
#include "fleet/collect/judging_times.h"

enum {
    JUDGING_PIECE = 1 << 16,
    JUDGING_TURN_NODES = 512, // in one turn of the loop: copying them takes 0.5 ms
};

struct mark_wait {
    int64_t ticket; // 0: none
    int64_t finding;
    bool done;
    struct err err; // code ERR_NONE: it is stored
    void (*wake)(void *ctx);
    void *ctx;
};

struct judging {
    struct loop *loop;
    const struct fleetd_config *c;
    struct poller *poller;
    struct loop_timer *timer;
    struct loop_watch *watch;
    int socket; // -1: no process
    pid_t pid;
    struct judging_times times;
    struct buf in;
    bool sent;       // a judgement is on its way into the store
    bool pending;    // something has changed that was not judged
    int64_t stored;  // runs and documents that the last judgement knew
    uint64_t states; // hash of what the last judgement knew
    struct {
        bool begun;
        int n, at;
        uint64_t lists;  // poller_lists when it began
        uint64_t states; // hash of them
        struct judged_node *list;
        int fd;
    } walk; // over the nodes: once to see whether a judgement is due, and then to copy them
    struct loop_timer *walking;
    const struct naming *naming;
    struct draining *draining;                       // NULL: no node is drained
    struct buf said[JUDGED_BODY], next[JUDGED_BODY]; // parts of the judgement, and of the next one
    struct fleet_store_size holds;                   // bytes 0: not known yet
    char problem[INGEST_TEXT];
    struct fleet_tally judged;
    bool counted;
    int64_t judged_ms;
    struct mark_wait marks[MARKS_MAX];
    int64_t last_ticket, last_done;
    int64_t seen_ticket; // the last mark that the judgement under way, or the last one, surely knew
};

// ---- The process --------------------------------------------------------------------------------

static void judging_end(struct judging *j)
{
    loop_unwatch(j->watch);
    j->watch = NULL;
    fd_cleanup(&j->socket);
    child_end(&j->pid, CHILD_END_MS);
    j->times.ended_ms = clock_mono_ms();
    buf_reset(&j->in);
}

static void judging_failed(struct judging *j, const char *why)
{
    snprintf(j->problem, sizeof j->problem, "%s", why);
    log_event(LOG_LVL_WARN, "judging", "text=\"%s\"", log_quote(why).text);
    j->pending = true;
    judging_end(j);
}

static int send_judgement(struct judging *j, const char *body, size_t n, struct err *err)
{
    CLEANUP_BUF struct buf item = BUF_INIT;
    const struct ingest_item head = {.kind = INGEST_JUDGED, .node = ""};
    buf_add(&item, body, n);
    if (!buf_ok(&item))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a judgement");
    return poller_keep(j->poller, &head, &item, err);
}

static void say_part(struct judging *j, enum judged_part part)
{
    struct buf was = j->said[part];
    j->said[part] = j->next[part];
    j->next[part] = was;
}

// On standby nothing is stored, and no drain is suggested: the collector that writes does both.
static void take_summary(struct judging *j, const struct judged_head *head)
{
    say_part(j, JUDGED_COVERAGE);
    j->judged = head->judged;
    j->counted = true;
}

static void take_judgement(struct judging *j)
{
    struct judged_head head;
    struct err err = {0};
    if (j->in.len < sizeof head) {
        judging_failed(j, "the process that judges has ended without a judgement");
        return;
    }
    memcpy(&head, j->in.data, sizeof head);
    head.problem[sizeof head.problem - 1] = '\0';
    size_t bytes = sizeof head;
    for (int i = 0; i < JUDGED_PARTS; i++)
        bytes += head.bytes[i];
    if (*head.problem || j->in.len != bytes) {
        judging_failed(j, *head.problem ? head.problem : "a judgement is not whole");
        return;
    }
    const char *at = j->in.data + sizeof head;
    for (int i = 0; i < JUDGED_BODY; at += head.bytes[i++]) {
        buf_reset(&j->next[i]);
        buf_add(&j->next[i], at, head.bytes[i]);
        if (!buf_ok(&j->next[i])) {
            judging_failed(j, "no memory for a judgement");
            return;
        }
    }
    j->holds = head.store;
    if (j->times.stood_by)
        take_summary(j, &head);
    else if (send_judgement(j, at, head.bytes[JUDGED_BODY], &err) < 0) {
        judging_failed(j, err.text);
        return;
    }
    j->sent = !j->times.stood_by;
    j->problem[0] = '\0';
    judging_end(j);
}

static void on_judgement(void *ctx, uint32_t events)
{
    struct judging *j = ctx;
    static char bytes[JUDGING_PIECE];
    (void)events;
    ssize_t n = recv(j->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        take_judgement(j);
        return;
    }
    buf_add(&j->in, bytes, (size_t)n);
    if (!buf_ok(&j->in))
        judging_failed(j, "no memory for a judgement");
    else if (j->in.len > (size_t)JUDGED_BYTES_MAX + JUDGED_SUMMARY_MAX + JUDGED_DRAIN_MAX +
                             sizeof(struct judged_head))
        judging_failed(j, "a judgement is too large");
}

// A drain of ours that Slurm was not requested for since would not count for the limits.
static int judging_flags(const struct judging *j)
{
    const struct naming_source *slurm = naming_slurm(j->naming);
    bool apply = j->draining && slurm &&
                 draining_last_ms(j->draining) < slurm->read_mono_ms - NAMING_LIMIT_MS;
    return (naming_slurm_known(j->naming) ? JUDGING_SLURM_KNOWN : 0) | (apply ? JUDGING_APPLY : 0) |
           (poller_stands_by(j->poller) ? JUDGING_STANDS_BY : 0) |
           (poller_knows_gone(j->poller) ? JUDGING_KNOWS_GONE : 0);
}

static void copy_node(const struct polled *p, struct judged_node *out)
{
    memcpy(out->name, p->name, sizeof out->name);
    snprintf(out->other, sizeof out->other, "%s", p->other);
    memcpy(out->version, p->version, sizeof out->version);
    snprintf(out->why, sizeof out->why, "%s", p->why);
    snprintf(out->slurm_reason, sizeof out->slurm_reason, "%s", p->slurm_reason);
    out->in_slurm = *p->slurm_state != '\0';
    out->state = p->state;
    out->outcome = p->outcome;
    out->seen_ms = p->seen_ms;
    out->poisoned = p->poison_ms != 0;
    out->too_old = p->too_old;
    out->duplicate = node_duplicate(p);
    out->twice = p->twice;
    out->clock_off_ms = node_clock_off(p);
    out->asleep = node_asleep(p);
}

// What a judgement says of a node without reading its runs changes only with this.
static uint64_t state_hash(const struct polled *p)
{
    const int64_t of[] = {p->state,       p->outcome,        p->poison_ms,
                          p->too_old,     node_duplicate(p), node_clock_wrong(p),
                          node_asleep(p), p->twice,          (int64_t)hash_text(p->slurm_reason)};
    return hash_bytes(of, sizeof of);
}

static void walk_end(struct judging *j)
{
    if (j->walk.list)
        munmap(j->walk.list, (size_t)j->walk.n * sizeof *j->walk.list);
    fd_cleanup(&j->walk.fd);
    j->walk.list = NULL;
    j->walk.n = 0;
    j->walk.begun = false;
}

// No nodes are judged too, once all sources say that there are none: findings about those that were
// there end.
static void walk_begin(struct judging *j)
{
    poller_compare_clocks(j->poller);
    poller_nodes(j->poller, &j->walk.n);
    j->walk.at = 0;
    j->walk.lists = poller_lists(j->poller);
    j->walk.states = (uint64_t)judging_flags(j);
    j->walk.begun = j->walk.n || poller_named(j->poller);
    if (j->walk.begun)
        loop_timer_set(j->walking, 0);
}

static int copy_begin(struct judging *j, struct err *err)
{
    size_t bytes = (size_t)j->walk.n * sizeof(struct judged_node); // 0: nothing can be mapped
    CLEANUP_FD int fd = memfd_create("judging", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return err_sys(err, "a memory file of nodes");
    struct judged_node *list =
        bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    if (list == MAP_FAILED)
        return err_sys(err, "a memory file of nodes");
    j->walk.list = list;
    j->walk.fd = steal_fd(&fd);
    j->walk.at = 0;
    return 0;
}

static int judging_start(struct judging *j, struct err *err)
{
    int pair[2];
    char program[] = "numaprobe-fleetd", option[] = "--judge", flags[16];
    char *argv[] = {program, option, flags, NULL};
    CLEANUP_FD int where = child_text(j->c->store, err);
    if (where < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    CLEANUP_FD int theirs = pair[1];
    j->socket = pair[0];
    const struct child_fd fds[] = {
        {j->walk.fd, JUDGING_NODES_FD}, {theirs, JUDGING_OUT_FD}, {where, JUDGING_STORE_FD}};
    snprintf(flags, sizeof flags, "%d", judging_flags(j));
    errno = child_exec(&j->pid, argv, fds, COUNT_OF(fds), false);
    if (errno) {
        j->pid = 0;
        return err_sys(err, "starting the process that judges");
    }
    j->watch = loop_watch_fd(j->loop, j->socket, EPOLLIN, on_judgement, j, err);
    return j->watch ? 0 : -1;
}

// ---- When ---------------------------------------------------------------------------------------

static bool judging_may(const struct judging *j)
{
    struct poller_totals t;
    poller_totals(j->poller, &t);
    return t.store_state == STORE_READY || poller_stands_by(j->poller);
}

static bool judging_due(const struct judging *j)
{
    struct poller_totals t;
    poller_totals(j->poller, &t);
    const bool changed = j->pending || t.stored + t.documents != j->stored ||
                         j->walk.states != j->states || j->judged.counts.unsettled;
    const bool stands_by = poller_stands_by(j->poller);
    return judging_may(j) &&
           (judging_is_old(&j->times, stands_by, clock_mono_ms()) || (changed && !stands_by));
}

static int judging_begin(struct judging *j, struct err *err)
{
    struct poller_totals t;
    poller_totals(j->poller, &t);
    j->times.started_ms = clock_mono_ms();
    j->times.stood_by = poller_stands_by(j->poller);
    j->pending = false;
    j->stored = t.stored + t.documents;
    j->states = j->walk.states;
    j->seen_ticket = j->last_done;
    return judging_start(j, err);
}

// True: all were looked at.
static bool walk_some(struct judging *j, struct polled *const *nodes)
{
    int end = j->walk.at + JUDGING_TURN_NODES;
    for (; j->walk.at < j->walk.n && j->walk.at < end; j->walk.at++)
        if (j->walk.list)
            copy_node(nodes[j->walk.at], &j->walk.list[j->walk.at]);
        else
            j->walk.states = 31 * j->walk.states + state_hash(nodes[j->walk.at]);
    return j->walk.at == j->walk.n;
}

// 1: there is more to look at.
static int walk_next(struct judging *j, struct err *err)
{
    int n;
    struct polled *const *nodes = poller_nodes(j->poller, &n);
    if (!walk_some(j, nodes))
        return 1;
    if (j->walk.fd >= 0)
        return judging_begin(j, err);
    if (!judging_due(j))
        return 0;
    return copy_begin(j, err) < 0 ? -1 : 1;
}

static void on_walking(void *ctx, uint32_t events)
{
    struct judging *j = ctx;
    struct err err = {0};
    (void)events;
    if (j->walk.lists != poller_lists(j->poller)) { // other nodes have these places now
        walk_end(j);
        walk_begin(j);
        return;
    }
    int more = walk_next(j, &err);
    if (more > 0) {
        loop_timer_set(j->walking, 0);
        return;
    }
    walk_end(j);
    if (more < 0)
        judging_failed(j, err.text);
}

static void on_round(void *ctx, uint32_t events)
{
    struct judging *j = ctx;
    const int64_t now = clock_mono_ms(), every_ms = j->c->every_s * 1000;
    (void)events;
    if (j->pid && judging_takes_too_long(&j->times, now))
        judging_failed(j, "a judgement took too long");
    else if (!j->pid && !j->sent && !j->walk.begun &&
             judging_looks(&j->times, judging_may(j), poller_stands_by(j->poller), every_ms, now))
        walk_begin(j);
    loop_timer_set(j->timer, judging_look_in(&j->times, every_ms, now));
}

// ---- What the process that stores reports -------------------------------------------------------

static void mark_done(struct judging *j, enum err_code code, const char *text)
{
    struct mark_wait *m = &j->marks[++j->last_done % MARKS_MAX];
    const char *member = code == ERR_NOT_FOUND     ? "id"
                         : code == ERR_UNAVAILABLE ? "store"
                         : code == ERR_CONFLICT    ? "state"
                                                   : "";
    m->done = true;
    m->err = (struct err){0};
    if (code)
        err_set(&m->err, code, member, "%s", text);
    if (m->wake)
        m->wake(m->ctx);
}

// A person may have marked the finding since the judgement began. Of more marks than are remembered
// any may be of it.
static bool marked_since(const struct judging *j, int64_t finding)
{
    int64_t ticket = j->seen_ticket;
    if (j->last_ticket - ticket > MARKS_MAX)
        return true;
    while (ticket++ < j->last_ticket)
        if (j->marks[ticket % MARKS_MAX].finding == finding)
            return true;
    return false;
}

// A judgement decides anew about a node that is left out here.
static void drain_judged(struct judging *j)
{
    CLEANUP_BUF struct buf lines = BUF_INIT;
    for (const char *at = buf_text(&j->said[JUDGED_DRAIN_NOW]), *end; (end = strchr(at, '\n'));
         at = end + 1) {
        if (marked_since(j, strtoll(at, NULL, 10)))
            j->pending = true;
        else
            buf_add(&lines, at, (size_t)(end + 1 - at));
    }
    if (buf_ok(&lines))
        draining_begin(j->draining, buf_text(&lines));
    else
        j->pending = true;
}

static void judgement_done(struct judging *j, const struct ingest_report *r)
{
    j->sent = false;
    if (r->kind != INGEST_STORED) {
        judging_failed(j, r->text);
        return;
    }
    for (int i = 0; i < JUDGED_BODY; i++)
        say_part(j, (enum judged_part)i);
    j->judged_ms = clock_wall_ms();
    if (j->draining)
        drain_judged(j);
}

// What was sent is lost, for the reason that is the state of the store now.
static void judging_lost(struct judging *j)
{
    struct poller_totals t;
    poller_totals(j->poller, &t);
    j->pending |= j->sent;
    j->sent = false;
    while (j->last_done < j->last_ticket)
        mark_done(j, ERR_UNAVAILABLE, t.store);
}

static void judging_report(void *ctx, const struct ingest_report *r)
{
    struct judging *j = ctx;
    if (!r) {
        judging_lost(j);
        return;
    }
    bool confirmed = r->kind == INGEST_STORED || r->kind == INGEST_REFUSED;
    if (r->kind == INGEST_COUNTED) {
        j->judged = r->judged;
        j->counted = true;
    } else if (confirmed && r->of == INGEST_JUDGED)
        judgement_done(j, r);
    else if (confirmed && r->of == INGEST_MARK)
        mark_done(j, r->kind == INGEST_STORED ? ERR_NONE : r->code, r->text);
}

// ---- Marks --------------------------------------------------------------------------------------

int64_t judging_mark(struct judging *j, const struct ingest_mark *m, struct err *err)
{
    CLEANUP_BUF struct buf item = BUF_INIT;
    const struct ingest_item head = {.kind = INGEST_MARK, .node = ""};
    if (j->last_ticket - j->last_done >= MARKS_MAX)
        return err_set(err, ERR_UNAVAILABLE, "store", "too many changes wait for the store");
    buf_add(&item, m, sizeof *m);
    if (!buf_ok(&item))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a change");
    if (poller_keep(j->poller, &head, &item, err) < 0)
        return -1;
    int64_t ticket = ++j->last_ticket;
    j->marks[ticket % MARKS_MAX] = (struct mark_wait){.ticket = ticket, .finding = m->id};
    return ticket;
}

int judging_marked(const struct judging *j, int64_t ticket, struct err *err)
{
    const struct mark_wait *m = &j->marks[ticket % MARKS_MAX];
    if (m->ticket == ticket && !m->done)
        return 0;
    if (m->ticket == ticket && m->err.code == ERR_NONE)
        return 1;
    *err = m->err;
    return m->ticket == ticket ? -1 : err_set(err, ERR_UNAVAILABLE, "store", "it is not known");
}

void judging_mark_wake(struct judging *j, int64_t ticket, void (*wake)(void *ctx), void *ctx)
{
    struct mark_wait *m = &j->marks[ticket % MARKS_MAX];
    if (m->ticket != ticket)
        return;
    m->wake = wake;
    m->ctx = ctx;
}

// ---- Life ---------------------------------------------------------------------------------------

struct judging_summary judging_summary(const struct judging *j)
{
    return (struct judging_summary){.judged = j->judged,
                                    .counted = j->counted,
                                    .coverage = &j->said[JUDGED_COVERAGE],
                                    .drain = &j->said[JUDGED_DRAIN],
                                    .drain_lines = &j->said[JUDGED_DRAIN_LINES],
                                    .store = j->holds,
                                    .judged_ms = j->judged_ms,
                                    .problem = j->problem,
                                    .drain_problem =
                                        j->draining ? draining_problem(j->draining) : ""};
}

struct judging *judging_new(struct loop *loop, const struct fleetd_config *c, struct poller *p,
                            const struct naming *naming, struct err *err)
{
    struct judging *j = calloc(1, sizeof *j);
    if (!j) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the judge");
        return NULL;
    }
    *j = (struct judging){.loop = loop, .c = c, .poller = p, .naming = naming, .socket = -1};
    j->walk.fd = -1;
    j->timer = loop_timer_new(loop, on_round, j, err);
    j->walking = j->timer ? loop_timer_new(loop, on_walking, j, err) : NULL;
    if (j->walking && c->drain == FLEETD_DRAIN_APPLY)
        j->draining = draining_new(loop, p, err);
    if (!j->walking || (c->drain == FLEETD_DRAIN_APPLY && !j->draining)) {
        loop_timer_free(j->timer);
        loop_timer_free(j->walking);
        free(j);
        return NULL;
    }
    poller_listen(p, judging_report, j);
    loop_timer_set(j->timer, judging_look_in(&j->times, c->every_s * 1000, clock_mono_ms()));
    return j;
}

void judging_free(struct judging *j)
{
    if (!j)
        return;
    poller_listen(j->poller, NULL, j);
    judging_end(j);
    walk_end(j);
    draining_free(j->draining);
    loop_timer_free(j->timer);
    loop_timer_free(j->walking);
    buf_free(&j->in);
    for (int i = 0; i < JUDGED_BODY; i++) {
        buf_free(&j->said[i]);
        buf_free(&j->next[i]);
    }
    free(j);
}
