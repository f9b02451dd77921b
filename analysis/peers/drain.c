// SPDX-License-Identifier: Apache-2.0
// The lines are meant for a shell, and names, metrics and reasons come from nodes and people. So
// every byte that is written is one of a few letters, or stands in a comment and is printable.
#include "analysis/peers/drain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/figures.h"
#include "base/str.h"

#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+%"

// `name` is stable, in JSON. `text` follows the name of the node in a comment, and its reason that.
static const struct {
    const char *name, *text;
} drain_infos[DRAIN_VERDICTS] = {
    [DRAIN_NODE] = {"drain", ""},
    [DRAIN_RESUME] = {"resume", "is like its peers now: "},
    [DRAIN_NOT_KNOWN] = {"not_known",
                         "is not suggested: sinfo does not say what others have drained"},
    [DRAIN_NOT_A_NAME] = {"not_a_name", "is not suggested: Slurm has no such name"},
    [DRAIN_NOT_LISTED] = {"not_listed", "Slurm does not list it"},
    [DRAIN_OF_OTHERS] = {"other_reason", "has another reason already: "},
    [DRAIN_OURS] = {"drained", "is drained already: "},
    [DRAIN_SHARE] = {"share", "is not suggested: that would be more than 2 % of its class"},
};

// ---- The plan -----------------------------------------------------------------------------------

static bool is_ours(const char *reason)
{
    return reason && str_starts(reason, DRAIN_REASON);
}

// A name that means one node to scontrol: ALL does not.
static bool is_plain(const char *node)
{
    return !node[strspn(node, WORD_LETTERS)] && strcasecmp(node, "ALL") != 0 &&
           strcasecmp(node, "DEFAULT") != 0;
}

struct drain_maker {
    struct drain_plan *plan;
    const struct fleet *f;
    const char *const *reasons;
    int *drained;  // [class]: nodes with our reason, and those that are to get it
    int *listed;   // [class]: nodes that Slurm lists; others may be gone since long
    bool *found;   // [node]: something is wrong with it
    bool *in_plan; // [node]
};

static enum drain_verdict drain_verdict_of(const struct drain_maker *m,
                                           const struct fleet_finding *one)
{
    int share = m->listed[one->class] / DRAIN_CLASS_SHARE;
    const char *has = m->reasons ? m->reasons[one->nodes[0]] : NULL;
    return !m->reasons                                     ? DRAIN_NOT_KNOWN
           : !is_plain(m->f->nodes.list[one->nodes[0]])    ? DRAIN_NOT_A_NAME
           : !has                                          ? DRAIN_NOT_LISTED
           : is_ours(has)                                  ? DRAIN_OURS
           : *has                                          ? DRAIN_OF_OTHERS
           : m->drained[one->class] >= (share ? share : 1) ? DRAIN_SHARE
                                                           : DRAIN_NODE;
}

static void plan_add(struct drain_maker *m, enum drain_verdict verdict, int node,
                     const struct fleet_finding *one)
{
    const char *has = m->reasons ? m->reasons[node] : NULL;
    m->in_plan[node] = true;
    m->plan->list[m->plan->n++] = (struct drain_one){verdict, node, one, has ? has : ""};
    if (verdict != DRAIN_NODE)
        return;
    m->plan->drains++;
    m->drained[one->class]++;
}

// Like its peers, in the metric that our reason names too.
static bool is_like_peers(const struct drain_maker *m, const struct fleet_findings *list, int node)
{
    const char *metric = strrchr(m->reasons[node], ' ');
    bool named = metric && metric_rule_find(metric + 1, NULL);
    return !m->found[node] && list->judged[node].by_peers &&
           (!named || fleet_findings_compared(list, m->f, node, metric + 1));
}

static void plan_fill(struct drain_maker *m, const struct fleet_findings *list)
{
    const struct fleet *f = m->f;
    for (int i = 0; m->reasons && i < f->nodes.n; i++) {
        bool ours = is_ours(m->reasons[i]), listed = m->reasons[i] != NULL;
        m->plan->ours += ours;
        m->plan->listed += listed;
        if (f->node[i].class >= 0) {
            m->drained[f->node[i].class] += ours;
            m->listed[f->node[i].class] += listed;
        }
    }
    for (int i = 0; i < list->n; i++) {
        const struct fleet_finding *one = &list->list[i];
        if (one->what == FINDING_GROUP)
            continue;
        m->found[one->nodes[0]] = true;
        if (one->grade == PEERS_SURE && !m->in_plan[one->nodes[0]])
            plan_add(m, drain_verdict_of(m, one), one->nodes[0], one);
    }
    for (int i = 0; m->reasons && i < f->nodes.n; i++)
        if (is_ours(m->reasons[i]) && is_plain(f->nodes.list[i]) && is_like_peers(m, list, i))
            plan_add(m, DRAIN_RESUME, i, NULL);
}

int drain_plan_make(struct drain_plan *out, const struct fleet *f,
                    const struct fleet_findings *list, const char *const *reasons, struct err *err)
{
    CLEANUP_MEM int *drained = calloc((size_t)f->classes.n + 1, sizeof *drained);
    CLEANUP_MEM int *listed = calloc((size_t)f->classes.n + 1, sizeof *listed);
    CLEANUP_MEM bool *found = calloc((size_t)f->nodes.n + 1, sizeof *found);
    CLEANUP_MEM bool *in_plan = calloc((size_t)f->nodes.n + 1, sizeof *in_plan);
    *out = (struct drain_plan){.known = reasons != NULL};
    out->list = calloc((size_t)f->nodes.n + 1, sizeof *out->list);
    if (!drained || !listed || !found || !in_plan || !out->list) {
        drain_plan_fini(out);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the nodes to drain");
    }
    plan_fill(&(struct drain_maker){out, f, reasons, drained, listed, found, in_plan}, list);
    return 0;
}

void drain_plan_fini(struct drain_plan *p)
{
    free(p->list);
    *p = (struct drain_plan){0};
}

// ---- Lines --------------------------------------------------------------------------------------

static void word_write(const char *text, struct buf *out)
{
    for (; *text; text++)
        buf_char(out, strchr(WORD_LETTERS, *text) ? *text : '_');
}

// Of a comment: nothing in it ends the line.
static void comment_write(const char *text, struct buf *out)
{
    for (; *text; text++)
        buf_char(out, *text >= ' ' && *text <= '~' ? *text : '?');
}

void drain_reason(const struct fleet_finding *one, struct buf *out)
{
    char percent[32];
    snprintf(percent, sizeof percent, "%+.1f%%", percent_written(one->percent));
    buf_str(out, DRAIN_REASON " ");
    word_write(isfinite(one->percent) ? percent : "slow", out);
    buf_char(out, ' ');
    word_write(one->metric, out);
}

// Of DRAIN_NODE and DRAIN_RESUME.
static void command_write(const struct drain_one *one, const char *node, struct buf *out)
{
    buf_str(out, "scontrol update NodeName=");
    word_write(node, out);
    buf_str(out, one->finding ? " State=DRAIN Reason='" : " State=RESUME");
    if (!one->finding)
        return;
    drain_reason(one->finding, out);
    buf_char(out, '\'');
}

static bool is_suggested(const struct drain_one *one)
{
    return one->verdict == DRAIN_NODE || one->verdict == DRAIN_RESUME;
}

static void line_write(const struct drain_one *one, const char *node, struct buf *out)
{
    if (one->verdict == DRAIN_NODE) {
        command_write(one, node, out);
    } else if (one->verdict == DRAIN_RESUME) {
        buf_fmt(out, "# %s", drain_infos[DRAIN_RESUME].text);
        command_write(one, node, out);
    } else {
        buf_str(out, "# ");
        word_write(node, out);
        buf_fmt(out, ": %s", drain_infos[one->verdict].text);
        comment_write(one->reason, out);
    }
    buf_char(out, '\n');
}

// What is written of a plan: at most so many suggestions, and as many others.
struct drain_limit {
    int most, suggested, others;
};

static bool limit_takes(struct drain_limit *l, const struct drain_one *one)
{
    int *n = is_suggested(one) ? &l->suggested : &l->others;
    return ++*n <= l->most;
}

static int limit_more(const struct drain_limit *l)
{
    return (l->suggested > l->most ? l->suggested - l->most : 0) +
           (l->others > l->most ? l->others - l->most : 0);
}

void drain_write_lines(const struct drain_plan *p, const struct fleet *f, int most, struct buf *out)
{
    struct drain_limit limit = {.most = most};
    for (int i = 0; i < p->n; i++)
        if (limit_takes(&limit, &p->list[i]))
            line_write(&p->list[i], f->nodes.list[p->list[i].node], out);
    if (limit_more(&limit))
        buf_fmt(out, "# %d more are not listed\n", limit_more(&limit));
}

// ---- JSON ---------------------------------------------------------------------------------------

static void suggestion_write(const struct drain_one *one, const struct fleet *f, struct jsonw *w)
{
    CLEANUP_BUF struct buf line = BUF_INIT, reason = BUF_INIT;
    const char *node = f->nodes.list[one->node];
    command_write(one, node, &line);
    if (one->finding)
        drain_reason(one->finding, &reason);
    jsonw_object(w, NULL);
    jsonw_text(w, "node", node);
    jsonw_text(w, "action", drain_infos[one->verdict].name);
    jsonw_text(w, "line", buf_text(&line));
    jsonw_text(w, "reason", one->finding ? buf_text(&reason) : one->reason);
    jsonw_text(w, "class",
               f->node[one->node].class < 0 ? NULL : f->classes.list[f->node[one->node].class]);
    jsonw_text(w, "what", one->finding ? fleet_finding_names[one->finding->what] : NULL);
    jsonw_text(w, "metric", one->finding ? one->finding->metric : NULL);
    jsonw_fixed(w, "percent", one->finding ? one->finding->percent : NAN, 2);
    jsonw_end(w);
    buf_needs(w->out, &line);
    buf_needs(w->out, &reason);
}

static void left_alone_write(const struct drain_one *one, const struct fleet *f, struct jsonw *w)
{
    CLEANUP_BUF struct buf reason = BUF_INIT;
    comment_write(one->reason, &reason);
    jsonw_object(w, NULL);
    jsonw_text(w, "node", f->nodes.list[one->node]);
    jsonw_text(w, "why", drain_infos[one->verdict].name);
    jsonw_text(w, "reason", reason.len ? buf_text(&reason) : NULL);
    jsonw_end(w);
    buf_needs(w->out, &reason);
}

void drain_write_json(const struct drain_plan *p, const struct fleet *f, int most, struct jsonw *w,
                      const char *key)
{
    struct drain_limit limit = {.most = most};
    jsonw_object(w, key);
    jsonw_time(w, "evaluated", f->o.now_ms);
    jsonw_bool(w, "reasons_known", p->known);
    jsonw_array(w, "suggestions");
    for (int i = 0; i < p->n; i++)
        if (is_suggested(&p->list[i]) && limit_takes(&limit, &p->list[i]))
            suggestion_write(&p->list[i], f, w);
    jsonw_end(w);
    jsonw_array(w, "left_alone");
    for (int i = 0; i < p->n; i++)
        if (!is_suggested(&p->list[i]) && limit_takes(&limit, &p->list[i]))
            left_alone_write(&p->list[i], f, w);
    jsonw_end(w);
    jsonw_i64(w, "not_listed", limit_more(&limit));
    jsonw_end(w);
}
