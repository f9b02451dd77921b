// SPDX-License-Identifier: Apache-2.0
// A campaign whose runs Slurm starts. The collector contacts no node for it: a node has been probed
// when its feed has a run of the benchmark that is newer than the round.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/os/child.h"
#include "fleet/campaigns/campaigns.h"
#include "fleet/campaigns/parts.h"
#include "fleet/campaigns/script.h"

enum { LONGER = 2, MORE_MIN = 5 }; // the time limit of a task, beyond what is expected

void slurm_facts(struct campaign *c)
{
    for (int i = 0; i < c->nodes.n; i++) {
        const struct campaign_fact *f = &c->facts[i];
        const struct polled *n = poller_find(c->all->poller, f->node);
        bool pending = c->plan.nodes[i].state == PROBE_PENDING;
        if ((!pending && c->plan.nodes[i].state != PROBE_RUNNING) ||
            f->newest_ms - (n ? n->skew_ms : 0) < c->head.round_ms)
            continue;
        if (pending)
            probe_plan_start(&c->plan, i);
        c->states[i].run = f->newest_run;
        probe_ended(c, i, f->newest_failed ? PROBE_FAILED : PROBE_DONE, f->past_s,
                    f->newest_failed ? "the run did not succeed" : "");
    }
}

bool slurm_news(struct campaign *c)
{
    int n;
    int64_t news = 0;
    struct polled *const *nodes = poller_nodes(c->all->poller, &n);
    for (int i = 0; i < n; i++)
        if (nodes[i]->newest_ms - nodes[i]->skew_ms >= c->head.round_ms)
            news += nodes[i]->stored; // a page that is not stored has a newest run too
    bool are = news != c->news;
    c->news = news;
    return are;
}

void slurm_give_up(struct campaign *c, const char *why)
{
    for (int i = 0; i < c->nodes.n; i++)
        if (c->plan.nodes[i].state == PROBE_PENDING || c->plan.nodes[i].state == PROBE_RUNNING)
            probe_ended(c, i, PROBE_SKIPPED, 0, why);
}

static int64_t task_minutes(const struct campaign *c)
{
    return (int64_t)(LONGER * probe_plan_longest(&c->plan) / 60) + MORE_MIN;
}

// Nodes that are left, in the order of the plan.
static int nodes_left(const struct campaign *c, struct nodeset *out, struct err *err)
{
    for (int at = 0; at < c->plan.n; at++) {
        int node = c->plan.order[at];
        if (c->plan.nodes[node].state == PROBE_PENDING &&
            nodeset_add(out, c->nodes.names[node], err) < 0)
            return -1;
    }
    return 0;
}

int campaigns_script(const struct campaigns *all, int64_t id, struct buf *out, struct err *err)
{
    CLEANUP_NODESET struct nodeset left = {0};
    const struct campaign *c = campaign_active(all, id, err);
    if (!c)
        return -1;
    if (!c->request.by_slurm)
        return err_set(err, ERR_CONFLICT, "",
                       "campaign %lld contacts the daemons itself: its \"through\" is not slurm",
                       (long long)id);
    if (!c->planned)
        return err_set(err, ERR_UNAVAILABLE, "store", "its nodes are being read: try again");
    if (nodes_left(c, &left, err) < 0)
        return -1;
    if (!left.n)
        return err_set(err, ERR_CONFLICT, "", "each node was probed or submitted in this round");
    return campaign_script_write(&c->request, &left, task_minutes(c), out, err);
}

// ---- Submitting ---------------------------------------------------------------------------------

void slurm_mark(struct campaign *c)
{
    int64_t now = clock_wall_ms();
    for (int i = 0; i < c->nodes.n; i++)
        if (c->plan.nodes[i].state == PROBE_PENDING) {
            probe_plan_start(&c->plan, i);
            c->states[i].probing = PROBING_STORES;
            c->states[i].requested_ms = now;
            c->states[i].dirty = true;
        }
}

static void submission_close(struct campaign *c)
{
    loop_unwatch(c->submission.watch);
    close(c->submission.pipe);
    buf_free(&c->submission.text);
    c->submission.watch = NULL;
    c->submission.pid = 0;
}

static void submission_ended(struct campaign *c)
{
    int status = 0;
    char line[CAMPAIGN_WHY];
    const char *text = buf_text(&c->submission.text);
    while (waitpid(c->submission.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status != 0)
        text = *text == '!' ? text + 1 : "the process that submits it ended";
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    if (status != 0) {
        memcpy(c->submission.failure, line, sizeof line);
    } else {
        snprintf(c->submission.job, sizeof c->submission.job, "%s", line);
        log_event(LOG_LVL_INFO, "campaign", "id=%lld job=%s", (long long)c->head.id, line);
    }
    submission_close(c);
    if (!c->dropped)
        campaign_touch(c);
    campaign_release(c);
}

static void on_submission(void *ctx, uint32_t events)
{
    struct campaign *c = ctx;
    char bytes[4096];
    (void)events;
    ssize_t got = read(c->submission.pipe, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        buf_add(&c->submission.text, bytes, (size_t)got);
    else
        submission_ended(c);
}

// What the child reads: the nodes that are stored as submitted, and the body of the job.
static int submission_text(struct campaign *c, int fd, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    for (int at = 0; at < c->plan.n; at++) {
        struct campaign_node *n = &c->states[c->plan.order[at]];
        if (n->probing != PROBING_STORES)
            continue;
        n->probing = PROBING_NOT;
        buf_str(&text, text.len ? " " : "");
        buf_str(&text, c->nodes.names[c->plan.order[at]]);
    }
    buf_char(&text, '\n');
    if (campaign_script_body(&c->request, &text, err) < 0)
        return -1;
    if (!buf_ok(&text) || write(fd, text.data, text.len) != (ssize_t)text.len ||
        lseek(fd, 0, SEEK_SET) < 0)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to submit it");
    return 0;
}

static int exec_submission(struct campaign *c, int in, int out)
{
    char program[] = "numaprobe-fleetd", option[] = "--submit", none[] = "";
    char at_once[16], minutes[24], *path = getenv("PATH"); // where sbatch is
    const struct child_fd fds[] = {{in, STDIN_FILENO}, {out, STDOUT_FILENO}};
    snprintf(at_once, sizeof at_once, "%d", c->request.rules.at_once);
    snprintf(minutes, sizeof minutes, "%" PRId64, task_minutes(c));
    char *argv[] = {program, option, path ? path : none, c->head.name, at_once, minutes, NULL};
    return child_exec(&c->submission.pid, argv, fds, COUNT_OF(fds), true);
}

int slurm_submit(struct campaign *c, struct err *err)
{
    int pair[2];
    CLEANUP_FD int in = memfd_create("numaprobe-submit", MFD_CLOEXEC);
    *c->submission.job = *c->submission.failure = '\0';
    if (in < 0 || submission_text(c, in, err) < 0)
        return in < 0 ? err_sys(err, "cannot submit it") : -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "cannot submit it");
    CLEANUP_FD int ours = pair[0], theirs = pair[1];
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "cannot submit it");
    c->submission.watch = loop_watch_fd(c->all->loop, ours, EPOLLIN, on_submission, c, err);
    if (!c->submission.watch)
        return -1;
    errno = exec_submission(c, in, theirs);
    if (errno) {
        err_sys(err, "cannot submit it");
        loop_unwatch(c->submission.watch);
        c->submission.watch = NULL;
        return -1;
    }
    c->submission.pipe = steal_fd(&ours);
    c->calls++;
    return 0;
}

void slurm_submit_end(struct campaign *c)
{
    if (!c->submission.pid)
        return;
    submission_close(c); // the child ends what it has begun
    c->calls--;
}
