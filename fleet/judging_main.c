// SPDX-License-Identifier: Apache-2.0
// Started by fleet/collect/judging.c. What nodes measured is judged by the function that
// /v1/fleet/outliers uses; what they respond comes from the collector. Of a node that was not
// judged or has not responded yet nothing is said, so that its findings stay.
#include "fleet/judging_main.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/os/child.h"
#include "fleet/collect/clocks.h"
#include "fleet/collect/judged_wire.h"
#include "fleet/judge/measured.h"
#include "fleet/judging_drain.h"
#include "fleet/services/coverage.h"
#include "fleet/services/stored_fleet.h"
#include "http/server/worker_process.h"

enum {
    REINSTALLED_DAYS = 7, // so long it is worth knowing
};
#define DAY_MS ((int64_t)86400 * 1000)
#define UNKNOWN ((double)NAN)

struct judging_feeds { // of one node
    int64_t open_ms;   // first page of its history; 0: it has none
    bool closed;       // it had another one
};

struct judging_work {
    struct fleet_store *store;
    struct fleet *fleet;
    const struct judged_node *nodes; // by name
    struct judging_feeds *feeds;     // [node]; owned
    int n;
    bool *class_named; // [class]: not all of its nodes are gone; owned
    struct buf unseen, sights, text, evidence;
    struct buf parts[JUDGED_BODY]; // what it says beside the judgement
    int n_unseen, n_seen;
    int flags; // of JUDGING_SLURM_KNOWN …
    int64_t now_ms;
};

static int by_judged_name(const void *key, const void *entry)
{
    return strcmp(key, ((const struct judged_node *)entry)->name);
}

static const struct judged_node *judged_find(const struct judging_work *w, const char *name)
{
    return w->n ? bsearch(name, w->nodes, (size_t)w->n, sizeof *w->nodes, by_judged_name) : NULL;
}

// No source names it any more.
static bool is_gone(const struct judging_work *w, const char *name)
{
    const struct judged_node *n = judged_find(w, name);
    return n ? n->state == NODE_GONE : w->flags & JUDGING_KNOWS_GONE;
}

static void add_unseen(struct judging_work *w, const struct kept_unseen *u)
{
    judged_add_unseen(&w->unseen, u);
    w->n_unseen++;
}

static int find_named_classes(struct judging_work *w, struct err *err)
{
    const struct fleet *f = w->fleet;
    w->class_named = calloc((size_t)f->classes.n + 1, sizeof *w->class_named);
    if (!w->class_named)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for classes");
    for (int i = 0; i < f->nodes.n; i++)
        if (f->node[i].class >= 0 && !is_gone(w, f->nodes.list[i]))
            w->class_named[f->node[i].class] = true;
    return 0;
}

static bool class_is_gone(const struct judging_work *w, const char *name)
{
    int class = interned_find(&w->fleet->classes, name);
    return class < 0 || !w->class_named[class];
}

// What is gone is not measured again: to wait for that would keep its findings for ever.
static void add_unmeasured(void *work, const struct kept_unseen *u)
{
    struct judging_work *w = work;
    bool of_class = u->about & (ABOUT_CLASS | ABOUT_DRIFT);
    if (!(of_class ? class_is_gone(w, u->name) : is_gone(w, u->name)))
        add_unseen(w, u);
}

static void add_sight(void *work, const struct kept_sight *of)
{
    struct judging_work *w = work;
    struct kept_sight s = *of;
    char text[KEPT_TEXT_MAX + 1];
    snprintf(text, sizeof text, "%s", of->text);
    for (size_t n = strlen(text); n && !str_utf8_valid(text, n);)
        text[--n] = '\0'; // it was cut within a character
    s.text = text;
    judged_add_sight(&w->sights, &s);
    w->n_seen++;
}

// ---- Findings of which nothing is known ---------------------------------------------------------

// Of a node without a stored run nothing was measured, and one that a source may yet name has not
// responded.
static void keep_unknown(struct judging_work *w, const struct fleet_kept *k)
{
    const unsigned about = kept_whats[k->what].about;
    if (kept_of_class(k->what) || is_gone(w, k->node))
        return;
    if (about == ABOUT_FACTS ? !judged_find(w, k->node)
                             : interned_find(&w->fleet->nodes, k->node) < 0)
        add_unseen(w, &(struct kept_unseen){.name = k->node, .about = about});
}

struct keeping {
    struct judging_work *work;
    const struct fleet_findings *list;
    const struct measured_to *to;
};

static int keep_finding(void *ctx, const struct fleet_kept *k, struct err *err)
{
    const struct keeping *of = ctx;
    const struct measured_kept kept = {k->what, k->node, k->metric, k->percent};
    keep_unknown(of->work, k);
    return measured_keep(of->work->fleet, of->list, &kept, of->to, err);
}

static int keep_findings(struct keeping *of, struct err *err)
{
    static const struct fleet_kept_query not_ended = {
        .states =
            1U << KEPT_FORMING | 1U << KEPT_OPEN | 1U << KEPT_ACKNOWLEDGED | 1U << KEPT_FIXED};
    return fleet_store_findings(of->work->store, &not_ended, keep_finding, of, err);
}

// ---- What nodes respond -------------------------------------------------------------------------

static int note_feed(void *ctx, const struct fleet_feed *feed, struct err *err)
{
    struct judging_work *w = ctx;
    const struct judged_node *n = judged_find(w, feed->name);
    (void)err;
    if (!n || !*feed->history)
        return 0;
    struct judging_feeds *of = &w->feeds[n - w->nodes];
    if (feed->state == FLEET_FEED_CLOSED)
        of->closed = true;
    else
        of->open_ms = feed->first_ms;
    return 0;
}

// The sentence is in w->text.
static void add_fact(struct judging_work *w, const struct judged_node *n, enum kept_what what,
                     int64_t since_ms)
{
    struct kept_sight s = {.what = what,
                           .grade = KEPT_SURE,
                           .node = n->name,
                           .class = "",
                           .metric = "",
                           .percent = UNKNOWN,
                           .lo = UNKNOWN,
                           .hi = UNKNOWN,
                           .since_ms = since_ms,
                           .proof = w->now_ms,
                           // A node that does not respond shows nothing new.
                           .oldest = n->state == NODE_UP ? w->now_ms : 0};
    struct jsonw json = jsonw_to(&w->evidence);
    jsonw_object(&json, NULL);
    jsonw_text(&json, "problem", n->why);
    jsonw_text(&json, "outcome", fleet_outcomes[n->outcome].name);
    jsonw_text(&json, "other", n->other);
    jsonw_time(&json, "received", n->seen_ms);
    jsonw_i64(&json, "skew_ms", n->clock_off_ms);
    jsonw_text(&json, "version", n->version);
    jsonw_end(&json);
    s.text = buf_text(&w->text);
    s.evidence = buf_text(&w->evidence);
    add_sight(w, &s);
    buf_reset(&w->text);
    buf_reset(&w->evidence);
}

// No source names the other one. That may be what this node was called before, which leaves its
// history when the list is believed. To delete the database of either would lose runs.
static bool is_twin_of_none(const struct judging_work *w, const struct judged_node *n)
{
    const struct judged_node *other = judged_find(w, n->other);
    return n->outcome == FLEET_TWIN && *n->other && (!other || other->state == NODE_GONE);
}

static void judge_outcome(struct judging_work *w, const struct judged_node *n)
{
    static const int kinds[FLEET_OUTCOMES] = {[FLEET_TWIN] = KEPT_TWIN,
                                              [FLEET_ALIEN] = KEPT_ALIEN,
                                              [FLEET_REWOUND] = KEPT_REWOUND,
                                              [FLEET_GARBLED] = KEPT_POISON,
                                              [FLEET_CROWDED] = KEPT_POISON};
    if (!kinds[n->outcome])
        return;
    if (is_twin_of_none(w, n)) {
        add_unseen(w, &(struct kept_unseen){.name = n->name, .about = ABOUT_FACTS});
        return;
    }
    buf_fmt(&w->text, "%s: %s", n->name, fleet_outcomes[n->outcome].text);
    if (*n->other)
        buf_fmt(&w->text, " (%s)", n->other);
    add_fact(w, n, (enum kept_what)kinds[n->outcome], 0);
}

static void judge_age(struct judging_work *w, const struct judged_node *n)
{
    int at = interned_find(&w->fleet->nodes, n->name);
    int64_t newest_ms = at < 0 ? 0 : w->fleet->node[at].newest_ms;
    if (!newest_ms || fleet_node_fresh(w->fleet, at))
        return;
    int64_t days = (w->now_ms - newest_ms) / DAY_MS;
    buf_fmt(&w->text, "%s: its newest run was measured %lld day%s ago", n->name, (long long)days,
            str_plural(days));
    add_fact(w, n, KEPT_STALE, newest_ms);
}

static void judge_responding(struct judging_work *w, const struct judged_node *n)
{
    judge_outcome(w, n);
    judge_age(w, n);
    if (llabs(n->clock_off_ms) > NODE_SKEW_MAX_MS) {
        buf_fmt(&w->text, "%s: its clock is %lld s %s", n->name,
                (long long)llabs(n->clock_off_ms) / 1000, n->clock_off_ms > 0 ? "ahead" : "behind");
        add_fact(w, n, KEPT_CLOCK, 0);
    }
}

// A history that is yet to begin came while the clock was ahead: it is not known when.
static bool reinstalled_lately(const struct judging_work *w, const struct judging_feeds *feeds)
{
    return feeds->closed && feeds->open_ms > w->now_ms - REINSTALLED_DAYS * DAY_MS &&
           feeds->open_ms <= w->now_ms + KEPT_AHEAD_MS;
}

static void judge_node(struct judging_work *w, const struct judged_node *n,
                       const struct judging_feeds *feeds)
{
    if (n->state == NODE_GONE)
        return;
    if (n->poisoned) {
        buf_fmt(&w->text, "%s: what it sent ended the process that reads it", n->name);
        add_fact(w, n, KEPT_POISON, 0);
    }
    if (reinstalled_lately(w, feeds)) {
        buf_fmt(&w->text, "%s: it was reinstalled, and has a new history", n->name);
        add_fact(w, n, KEPT_REINSTALLED, feeds->open_ms);
    }
    if (n->duplicate || n->twice) {
        buf_fmt(&w->text, "%s: %s", n->name,
                n->duplicate ? "two machines respond under its name"
                             : "its runs come in two ways, one of them through another collector; "
                               "each is stored once");
        add_fact(w, n, KEPT_DUPLICATE, 0);
    }
    if (n->too_old) {
        buf_fmt(&w->text, "%s: its numaprobe (%s) is too old for the collector", n->name,
                *n->version ? n->version : "version not known");
        add_fact(w, n, KEPT_VERSION, 0);
    }
    if (n->state == NODE_UP && !n->asleep)
        judge_responding(w, n);
    else
        add_unseen(w, &(struct kept_unseen){.name = n->name, .about = ABOUT_FACTS});
    if (n->state == NODE_DOWN && !n->asleep) {
        buf_fmt(&w->text, "%s does not respond: %s", n->name, n->why);
        add_fact(w, n, KEPT_DOWN, n->seen_ms);
    }
}

static int judge_responded(struct judging_work *w, struct err *err)
{
    w->feeds = calloc((size_t)w->n + 1, sizeof *w->feeds);
    if (!w->feeds)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge");
    if (fleet_store_feeds(w->store, true, note_feed, w, err) < 0)
        return -1;
    for (int i = 0; i < w->n; i++)
        judge_node(w, &w->nodes[i], &w->feeds[i]);
    return 0;
}

// ---- The process --------------------------------------------------------------------------------

static int write_whole(const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        ssize_t did = write(JUDGING_OUT_FD, at, n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did <= 0)
            return -1;
        at += did;
        n -= (size_t)did;
    }
    return 0;
}

static int write_judgement(struct judging_work *w, bool stands_by, struct err *err)
{
    CLEANUP_BUF struct buf head = BUF_INIT;
    struct judged_head first = {0};
    const struct buf *body[] = {&head, &w->unseen, &w->sights};
    size_t drain = 0;
    if (fleet_store_size(w->store, &first.store, err) < 0 ||
        (stands_by && fleet_store_counts(w->store, &first.judged, err) < 0) ||
        coverage_write(w->fleet, w->nodes, w->n, !stands_by, &w->parts[JUDGED_COVERAGE], err) < 0)
        return -1;
    judged_begin(&head, w->n_unseen, w->n_seen, w->now_ms);
    for (int i = 0; i < JUDGED_BODY; i++) {
        buf_needs(&head, &w->parts[i]);
        drain += i == JUDGED_COVERAGE ? 0 : w->parts[i].len;
        first.bytes[i] = (uint32_t)w->parts[i].len;
    }
    size_t n = head.len + w->unseen.len + w->sights.len;
    if (!buf_ok(&head) || !buf_ok(&w->unseen) || !buf_ok(&w->sights))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a judgement");
    if (n > JUDGED_BYTES_MAX || w->parts[JUDGED_COVERAGE].len > JUDGED_SUMMARY_MAX ||
        drain > JUDGED_DRAIN_MAX)
        return err_set(err, ERR_TOO_LARGE, "", "a judgement of more than %d MiB",
                       JUDGED_BYTES_MAX >> 20);
    first.bytes[JUDGED_BODY] = (uint32_t)n;
    int rc = write_whole(&first, sizeof first);
    for (int i = 0; i < JUDGED_BODY && rc == 0; i++)
        rc = write_whole(w->parts[i].data, w->parts[i].len);
    for (size_t i = 0; i < COUNT_OF(body) && rc == 0; i++)
        rc = write_whole(body[i]->data, body[i]->len);
    return rc < 0 ? err_sys(err, "writing a judgement") : 0;
}

// ---- Drains -------------------------------------------------------------------------------------

static int judge_drains(struct judging_work *w, const struct fleet_findings *list, struct err *err)
{
    CLEANUP_MEM const char **reasons = calloc((size_t)w->fleet->nodes.n + 1, sizeof *reasons);
    if (!reasons)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge");
    for (int i = 0; i < w->fleet->nodes.n; i++) {
        const struct judged_node *n = judged_find(w, w->fleet->nodes.list[i]);
        reasons[i] = n && n->in_slurm ? n->slurm_reason : NULL;
    }
    const struct judging_drain d = {.store = w->store,
                                    .fleet = w->fleet,
                                    .list = list,
                                    .reasons = w->flags & JUDGING_SLURM_KNOWN ? reasons : NULL,
                                    .apply = w->flags & JUDGING_APPLY,
                                    .json = &w->parts[JUDGED_DRAIN],
                                    .lines = &w->parts[JUDGED_DRAIN_LINES],
                                    .now = &w->parts[JUDGED_DRAIN_NOW]};
    return judging_drain(&d, err);
}

static int judge_measured(struct judging_work *w, struct err *err)
{
    const struct measured_to measured = {add_sight, add_unmeasured, w};
    struct fleet_findings list = {0};
    if (find_named_classes(w, err) < 0 || fleet_findings_find(&list, w->fleet, err) < 0)
        return -1;
    struct keeping kept = {w, &list, &measured};
    int rc = measured_judge(w->fleet, &list, &measured, err) < 0 || keep_findings(&kept, err) < 0
                 ? -1
                 : judge_drains(w, &list, err);
    fleet_findings_fini(&list);
    return rc;
}

// ---- All ----------------------------------------------------------------------------------------

// The nodes as the collector wrote them into a memory file.
static int map_nodes(struct judging_work *w, struct err *err)
{
    struct stat st;
    if (fstat(JUDGING_NODES_FD, &st) < 0)
        return err_sys(err, "the states of the nodes");
    w->n = (int)((size_t)st.st_size / sizeof *w->nodes);
    if (!w->n)
        return 0;
    void *nodes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, JUDGING_NODES_FD, 0);
    if (nodes == MAP_FAILED)
        return err_sys(err, "the states of the nodes");
    w->nodes = nodes;
    return 0;
}

static int judging_run(struct judging_work *w, const char *where, struct err *err)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = w->now_ms = clock_wall_ms();
    w->store = fleet_store_open(where, FLEET_STORE_READ, err);
    const struct fleet_window window = {.newest = o.runs_max};
    w->fleet = w->store ? stored_fleet_of(w->store, &o, &window, err) : NULL;
    return !w->fleet || map_nodes(w, err) < 0 || judge_measured(w, err) < 0 ||
                   judge_responded(w, err) < 0
               ? -1
               : write_judgement(w, w->flags & JUDGING_STANDS_BY, err);
}

int judging_main(int argc, char **argv)
{
    struct judging_work w = {0};
    struct err err = {0};
    int64_t flags = 0;
    char where[FLEET_STORE_WHERE_MAX];
    if (argc != 3 || !str_to_i64(argv[2], &flags) ||
        !child_read_text(JUDGING_STORE_FD, where, sizeof where) || !worker_process_limit())
        return 2;
    w.flags = (int)flags;
    int rc = judging_run(&w, where, &err);
    if (rc < 0) {
        struct judged_head failed = {0};
        snprintf(failed.problem, sizeof failed.problem, "%s", err.text);
        write_whole(&failed, sizeof failed);
    }
    fleet_store_close(w.store);
    fleet_cleanup(&w.fleet);
    free(w.feeds);
    free(w.class_named);
    buf_free(&w.unseen);
    buf_free(&w.sights);
    buf_free(&w.text);
    buf_free(&w.evidence);
    for (int i = 0; i < JUDGED_BODY; i++)
        buf_free(&w.parts[i]);
    return rc < 0;
}
