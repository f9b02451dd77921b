// SPDX-License-Identifier: Apache-2.0
// Days of a simulated fleet, judged as the collector judges: each node is measured once a day, half
// of them before the first of two judgements. What is kept goes from one judgement to the next, as
// through the store. In a quiet fleet each alarm is a false one.
#pragma once
#include "base/cleanup.h"
#include "fleet/judge/measured.h"
#include "tests/unit/analysis/fleet_pages.h"

enum { QUIET_SIGHTS = 1000, JUDGED_A_DAY = 2 };

// Nodes differ by `spread`, runs of a node by `run`, days by `common`; logs.
struct quiet {
    int nodes;
    double spread, run, common;
    unsigned long long seed;
    int bad_from, bad_until; // days on which node 0 is slower by `slow`
    double slow;
    int drift_from; // 0: never; from this day on all are slower by `drift`
    double drift;
    int end; // 0: never; from this day on only the first `left` nodes are measured
    int left;
    int moved; // 0: never; from this day on node 0 is other hardware
    int lacks; // 0: never; from this day on runs do not have the first metric
};

struct quiet_run {
    struct quiet w;
    struct fleet *fleet;
    struct kept_list kept;
    unsigned long long seed;
    struct kept_sight seen[QUIET_SIGHTS];
    struct kept_unseen unseen[QUIET_SIGHTS];
    int n_seen, n_unseen;
    int day;
    int alarms[KEPT_WHATS], sure; // since the start; sure: when they opened
};

static void quiet_sight(void *ctx, const struct kept_sight *s)
{
    struct quiet_run *r = ctx;
    if (r->n_seen == QUIET_SIGHTS)
        abort();
    r->seen[r->n_seen++] = *s;
}

static void quiet_unseen(void *ctx, const struct kept_unseen *u)
{
    struct quiet_run *r = ctx;
    if (r->n_unseen == QUIET_SIGHTS)
        abort();
    r->unseen[r->n_unseen++] = *u;
}

// As the store reads it for the next judgement.
static void quiet_read_back(struct quiet_run *r)
{
    struct kept_list next = {0};
    for (int i = 0; i < r->kept.identities.n; i++) {
        struct kept_finding one = r->kept.list[i];
        if (one.change == KEPT_DELETED)
            continue;
        one.change = KEPT_SAME;
        one.sight = NULL;
        if (kept_list_add(&next, &one, r->kept.identities.list[i], r->kept.names[i], NULL) < 0)
            abort();
    }
    kept_list_fini(&r->kept);
    r->kept = next;
}

static void quiet_judge(struct quiet_run *r, int64_t now_ms)
{
    const struct measured_to to = {quiet_sight, quiet_unseen, r};
    r->n_seen = r->n_unseen = 0;
    r->fleet->o.now_ms = now_ms;
    quiet_read_back(r);
    struct fleet_findings list = {0};
    if (fleet_findings_find(&list, r->fleet, NULL) < 0 ||
        measured_judge(r->fleet, &list, &to, NULL) < 0)
        abort();
    for (int i = 0; i < r->kept.identities.n; i++) {
        const struct kept_finding *f = &r->kept.list[i];
        const struct measured_kept kept = {f->what, r->kept.names[i], page_names[0].name, NAN};
        if (f->state != KEPT_CLOSED && measured_keep(r->fleet, &list, &kept, &to, NULL) < 0)
            abort();
    }
    fleet_findings_fini(&list);
    const struct kept_judgement j = {r->seen, r->unseen, r->n_seen, r->n_unseen, now_ms};
    if (kept_judge(&r->kept, &j, NULL) < 0)
        abort();
    for (int i = 0; i < r->kept.identities.n; i++) {
        const struct kept_finding *f = &r->kept.list[i];
        bool opened = f->state == KEPT_OPEN && f->opened_ms == now_ms;
        r->alarms[f->what] += opened;
        r->sure += opened && f->grade == KEPT_SURE;
    }
}

static void quiet_measure(struct quiet_run *r, int node, int64_t now_ms, double common)
{
    char name[16];
    unsigned long long own = r->w.seed * 7919 + node;
    bool bad = node == 0 && r->day >= r->w.bad_from && r->day < r->w.bad_until;
    double level = r->w.spread * sim_normal(&own) + common + (bad ? log1p(r->w.slow) : 0);
    snprintf(name, sizeof name, "n%03d", node);
    struct page_run run = {.node = name,
                           .class = node == 0 && r->w.moved && r->day >= r->w.moved ? "BBB" : "AAA",
                           .config = "OLD",
                           .id = r->day + 1,
                           .noise = r->w.run,
                           .lacking = r->w.lacks && r->day >= r->w.lacks,
                           .measured_ms = now_ms};
    for (int m = 0; m < PAGE_METRICS; m++)
        run.factor[m] = exp(level);
    if (page_add(r->fleet, &run, &r->seed) < 0)
        abort();
}

static void quiet_day(struct quiet_run *r)
{
    double common = r->w.common * sim_normal(&r->seed);
    common += r->w.drift_from && r->day >= r->w.drift_from ? log1p(r->w.drift) : 0;
    for (int part = 0; part < JUDGED_A_DAY; part++) {
        int64_t now_ms = PAGES_NOW + r->day * PAGES_DAY + part * PAGES_DAY / JUDGED_A_DAY;
        int nodes = r->w.end && r->day >= r->w.end ? r->w.left : r->w.nodes;
        for (int i = part; i < nodes; i += JUDGED_A_DAY)
            quiet_measure(r, i, now_ms, common);
        quiet_judge(r, now_ms + 1);
    }
    r->day++;
}

static void quiet_begin(struct quiet_run *r, const struct quiet *w)
{
    struct fleet_options o = FLEET_DEFAULTS;
    *r = (struct quiet_run){.w = *w, .seed = w->seed, .fleet = fleet_new(&o, NULL)};
    if (!r->fleet)
        abort();
}

static void quiet_end(struct quiet_run *r)
{
    kept_list_fini(&r->kept);
    fleet_cleanup(&r->fleet);
}

static int quiet_alarms(const struct quiet_run *r)
{
    int n = 0;
    for (int i = 0; i < KEPT_WHATS; i++)
        n += r->alarms[i];
    return n;
}

// All of `fleets`, one after the other with the next seeds. Prints what opened, and returns how
// many did.
static int quiet_fleets(struct quiet w, int fleets, int days)
{
    static struct quiet_run r;
    unsigned long long first = w.seed;
    int alarms = 0, sure = 0, kinds[KEPT_WHATS] = {0};
    for (int i = 0; i < fleets; i++, w.seed++) {
        quiet_begin(&r, &w);
        while (r.day < days)
            quiet_day(&r);
        alarms += quiet_alarms(&r);
        sure += r.sure;
        for (int k = 0; k < KEPT_WHATS; k++)
            kinds[k] += r.alarms[k];
        quiet_end(&r);
    }
    printf("# seeds %llu to %llu: %d fleets of %d nodes, %d quiet days each, nodes differ by %.1f "
           "%%, runs %.1f %%, days %.1f %%: %d alarms",
           first, w.seed - 1, fleets, w.nodes, days, 100 * w.spread, 100 * w.run, 100 * w.common,
           alarms);
    for (int k = 0; k < KEPT_WHATS; k++)
        if (kinds[k])
            printf(", %d %s", kinds[k], kept_whats[k].name);
    printf("; %d sure\n", sure);
    return alarms;
}
