// SPDX-License-Identifier: Apache-2.0
// The world is what its options say: spreads, correlation, bad nodes, kinds, drift and rollouts are
// measured on its runs. Seeds are fixed, so nothing here depends on luck.
#include "tests/unit/tap.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "virtual/world.h"

enum { NODES = 2000 };

static struct world *make(void (*change)(struct world_options *o))
{
    struct world_options o = {0};
    struct err err = {0};
    param_defaults(&world_options, &o);
    o.nodes = NODES;
    o.bad = 0;
    o.now_ms = INT64_C(1790000000000);
    if (change)
        change(&o);
    struct world *w = world_new(&o, &err);
    CHECK(w != NULL, "a world %s", err.text);
    if (!w)
        exit(1);
    return w;
}

static double value(const struct world *w, int node, int round, int benchmark, int metric)
{
    struct summary s;
    struct metric list[WORLD_METRICS_MAX];
    struct world_run run = world_past_run(w, node, round, benchmark);
    world_measure(w, &run, &s, list);
    return log(list[metric].value);
}

// Mean and standard deviation over nodes of one round, in percent.
static void spread(const struct world *w, int round, int benchmark, int metric, double *mean,
                   double *sd)
{
    double sum = 0, squares = 0, base = value(w, 0, round, benchmark, metric);
    for (int i = 0; i < NODES; i++) {
        double x = (value(w, i, round, benchmark, metric) - base) * 100;
        sum += x;
        squares += x * x;
    }
    *mean = base * 100 + sum / NODES;
    *sd = sqrt(squares / NODES - sum / NODES * (sum / NODES));
}

static void spreads(void)
{
    struct world *w = make(NULL);
    double mean, sd, runs = 0, together = 0, one = 0, other = 0, m1, m2, s2;
    spread(w, 5, 0, 6, &mean, &sd);
    // Of 1 % between nodes and 0.5 % between runs; 2,000 nodes tell it to 1.6 %.
    CHECK(fabs(sd - sqrt(1 + 0.25)) < 0.1, "nodes and runs spread as told: %.3f", sd);
    for (int i = 0; i < NODES; i++) {
        double d = (value(w, i, 5, 0, 6) - value(w, i, 4, 0, 6)) * 100;
        runs += d * d / NODES;
    }
    CHECK(fabs(sqrt(runs / 2) - 0.5) < 0.05, "runs of a node as told: %.3f", sqrt(runs / 2));
    spread(w, 5, 1, 12, &m1, &one);
    spread(w, 5, 1, 15, &m2, &other);
    for (int i = 0; i < NODES; i++)
        together += (value(w, i, 5, 1, 12) * 100 - m1) * (value(w, i, 5, 1, 15) * 100 - m2) / NODES;
    s2 = together / one / other;
    CHECK(fabs(s2 - 0.5) < 0.06, "metrics are correlated as told: %.3f", s2);
    CHECK(value(w, 7, 3, 0, 2) == value(w, 7, 3, 0, 2), "a run is always the same");
    world_free(w);
}

static void ten_bad(struct world_options *o)
{
    o->bad = 10;
    o->bad_percent = 50;
    o->bad_from = 3;
    o->bad_metrics = 2;
}

static void bad_nodes(void)
{
    struct world *w = make(ten_bad);
    int slow = 0, early = 0, others = 0, bandwidth = 0, old_bios = 0;
    for (int i = 0; i < NODES; i++) {
        struct world_run now = world_past_run(w, i, 5, 0);
        const struct facts *f = &world_machine(w, &now)->config;
        double jump = value(w, i, 5, 0, 0) - value(w, i, 0, 0, 0);
        slow += jump > 0.3;
        early += value(w, i, 2, 0, 0) - value(w, i, 0, 0, 0) > 0.3;
        others += value(w, i, 5, 0, 2) - value(w, i, 0, 0, 2) > 0.3;
        bandwidth += value(w, i, 5, 1, 0) - value(w, i, 0, 1, 0) < -0.3;
        old_bios += strcmp(f->list[0].value, "1.8.2") == 0;
    }
    CHECK_INT(slow, 10, "so many nodes are slow");
    CHECK_INT(early, 0, "not before their run");
    CHECK_INT(others, 0, "not in other metrics");
    CHECK_INT(bandwidth, 10, "slow bandwidth is less of it");
    CHECK(old_bios > 0 && old_bios < 10, "some of them have old firmware: %d", old_bios);
    world_free(w);
}

static void two_kinds(struct world_options *o)
{
    o->kind_share = 0.3;
    o->kind_percent = 12;
    o->classes = 4;
}

static void hidden_kinds(struct world_options *o)
{
    two_kinds(o);
    o->kind_hidden = true;
}

static int classes_of(const struct world *w)
{
    char seen[16][65] = {""};
    int n = 0;
    for (int i = 0; i < NODES; i++) {
        struct world_run run = world_past_run(w, i, 0, 0);
        const struct fingerprint *f = world_machine(w, &run);
        int k = 0;
        while (k < n && strcmp(seen[k], f->machine_class.hash) != 0)
            k++;
        if (k == n && n < 16)
            memcpy(seen[n++], f->machine_class.hash, 65);
    }
    return n;
}

static void kinds(void)
{
    struct world *w = make(two_kinds), *hidden = make(hidden_kinds);
    CHECK_INT(classes_of(w), 8, "4 classes, each with two kinds of DIMMs");
    CHECK_INT(classes_of(hidden), 4, "hidden kinds are no classes");
    struct world_run run = world_past_run(w, 3, 0, 0);
    const struct fingerprint *f = world_machine(w, &run);
    const struct facts *found = world_facts(w, f->config.hash);
    CHECK(found && strcmp(found->hash, f->config.hash) == 0, "facts are found by their hash");
    CHECK(!world_facts(w, "0"), "and no others");
    world_free(w);
    world_free(hidden);
}

static void drifting(struct world_options *o)
{
    o->drift_percent = 0.5;
    o->node_percent = o->run_percent = 0;
    o->waves = 2;
    o->rollout_percent = 3;
}

static void drift_and_rollout(void)
{
    struct world *w = make(drifting);
    int rolled = 0, wrong = 0;
    for (int i = 0; i < NODES; i++) {
        struct world_run first = world_past_run(w, i, 0, 0), last = world_past_run(w, i, 5, 0);
        bool changed = strcmp(world_machine(w, &first)->config.hash,
                              world_machine(w, &last)->config.hash) != 0;
        double want = 5 * 0.005 + (changed ? log(1.03) : 0);
        rolled += changed;
        wrong += fabs(value(w, i, 5, 0, 0) - value(w, i, 0, 0, 0) - want) > 1e-5;
    }
    CHECK(rolled > NODES * 0.87 && rolled < NODES * 0.93, "%d of %d nodes get it", rolled, NODES);
    CHECK_INT(wrong, 0, "each has five days of drift, and the rollout's cost");
    world_free(w);
}

static void truth(void)
{
    struct world *w = make(ten_bad);
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw out = jsonw_to(&text);
    world_write_truth(w, &out);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    int bad = 0;
    for (const struct json *n = json_first(json_get(j, "nodes")); n; n = json_next(n))
        bad += json_get_bool(n, "bad", false);
    CHECK(j && json_count(json_get(j, "nodes")) == NODES && bad == 10, "the truth is written");
    world_free(w);
    struct world_options o = {0};
    struct err err = {0};
    param_defaults(&world_options, &o);
    o.bad = o.nodes + 1;
    CHECK(!world_new(&o, &err) && err.code == ERR_INVALID, "not more bad nodes than nodes");
}

int main(void)
{
    spreads();
    bad_nodes();
    kinds();
    drift_and_rollout();
    truth();
    return tap_done();
}
