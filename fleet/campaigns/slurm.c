// SPDX-License-Identifier: Apache-2.0
// A campaign whose runs Slurm starts. The collector contacts no node for it: a node has been probed
// when its feed has a run of the benchmark that is newer than the round.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fleet/campaigns/campaigns.h"
#include "fleet/campaigns/parts.h"
#include "fleet/campaigns/script.h"
#include "nodes/program.h"

enum { LONGER = 2, MORE_MIN = 5 };    // the time limit of a task, beyond what is expected
enum { SUBMISSION_BYTES = 16 << 10 }; // of what the child prints: one line

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

// Slurm takes whole minutes: a begun one counts.
static int64_t task_minutes(const struct campaign *c)
{
    return (int64_t)ceil(LONGER * probe_plan_longest(&c->plan) / 60) + MORE_MIN;
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

static void submission_ended(void *ctx, const struct child_output_end *end)
{
    struct campaign *c = ctx;
    char line[CAMPAIGN_WHY];
    child_output_line(end->text, line, sizeof line);
    if (end->status != 0) {
        snprintf(c->submission.failure, sizeof c->submission.failure, "%s",
                 *line == '!' ? line + 1 : "the process that submits it ended");
    } else {
        snprintf(c->submission.job, sizeof c->submission.job, "%s", line);
        log_event(LOG_LVL_INFO, "campaign", "id=%lld job=%s", (long long)c->head.id, line);
    }
    if (!c->dropped)
        campaign_touch(c);
    campaign_release(c);
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

int slurm_submit(struct campaign *c, struct err *err)
{
    const struct child_output_use use = {.most = SUBMISSION_BYTES,
                                         .limit_ms = -1,
                                         .session = true,
                                         .variables = program_variables, // for sbatch
                                         .ended = submission_ended,
                                         .ctx = c};
    char program[] = "numaprobe-fleetd", option[] = "--submit";
    char at_once[16], minutes[24];
    CLEANUP_FD int in = memfd_create("numaprobe-submit", MFD_CLOEXEC);
    *c->submission.job = *c->submission.failure = '\0';
    if (in < 0 || submission_text(c, in, err) < 0)
        return in < 0 ? err_sys(err, "cannot submit it") : -1;
    snprintf(at_once, sizeof at_once, "%d", c->request.rules.at_once);
    snprintf(minutes, sizeof minutes, "%" PRId64, task_minutes(c));
    char *argv[] = {program, option, c->head.name, at_once, minutes, NULL};
    if (child_output_start(&c->submission.child, c->all->loop, &use, argv, in, err) < 0)
        return err_prefix(err, "cannot submit it");
    c->calls++;
    return 0;
}

void slurm_submit_end(struct campaign *c)
{
    if (!c->submission.child.pid)
        return;
    child_output_leave(&c->submission.child); // the child ends what it has begun
    c->calls--;
}
