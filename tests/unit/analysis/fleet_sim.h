// SPDX-License-Identifier: Apache-2.0
// Simulated fleets with a truth, judged by the functions themselves: nodes differ by `node`, runs
// of a node by `run`, metrics of a node are correlated 0.5. Seeds are in the table of scenarios and
// are printed.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/peers/effect.h"
#include "analysis/peers/past.h"
#include "analysis/peers/peers.h"
#include "tests/unit/analysis/simulate.h"

struct scenario {
    const char *name;
    int nodes, metrics, bad_metrics; // bad_metrics: of a bad node
    double shift, share;             // of bad nodes: slower by; so many of them
    double node, run;                // spreads; 0: 0.01 and 0.005
    int tail;                        // degrees of freedom of what nodes differ by; 0: normal
    double spike;                    // share of runs that are 10 % slow
    double apart, second;            // a second kind, so far away; share of it
    bool one_kind, groups;           // no search for kinds; members of groups count as found
    double drift;                    // of the class a day, with nodes measured over 21 days
    int past;                        // runs before; the class drifts by 2 % after them
    int newest;                      // runs if not NEWEST_RUNS
    int history;                     // runs before, of which only the scatter counts
    double noisy, louder;            // share of the good nodes whose runs differ so many times more
    double loudest;                  // one of ten of them: so many times
    double step, stepped;            // values have levels so far apart; a run is one level worse
    bool together;                   // all metrics of a run differ alike
    unsigned long long seed;
};

struct outcome {
    int fleets, alarmed;       // alarmed: with a false one
    int sure_alarmed, grouped; // with a false one that is sure; with a group
    long found, wrong, bad;    // nodes
    long sure, sure_wrong;
    double mirror;
};

static double sim_tail(int df, unsigned long long *seed)
{
    double z = sim_normal(seed), sum = 0;
    if (df == 0)
        return z;
    for (int i = 0; i < df; i++) {
        double x = sim_normal(seed);
        sum += x * x;
    }
    return z / sqrt(sum / df) / sqrt(df / (df - 2.0));
}

static double sim_share(unsigned long long *seed)
{
    return (double)(dist_next(seed) >> 11) / 9007199254740992.0;
}

// Exactly `n` of `of`.
static void sim_choose(bool *chosen, int n, int of, unsigned long long *seed)
{
    memset(chosen, 0, of * sizeof *chosen);
    while (n > 0) {
        int i = dist_below(seed, of);
        n -= !chosen[i];
        chosen[i] = true;
    }
}

struct sim_fleet {
    struct peers_input in;
    float *v;
    int32_t *day;
    int *probe;
    bool *more, *bad;
};

// What one run of a node adds to a metric.
static double sim_run(const struct scenario *s, double noise, unsigned long long *seed)
{
    if (s->step > 0)
        return sim_share(seed) < s->stepped ? s->step : 0;
    return noise * sim_normal(seed);
}

static void sim_node(struct sim_fleet *f, const struct scenario *s, int i, unsigned long long *seed)
{
    int runs = f->in.runs, start = s->drift > 0 ? dist_below(seed, 21) : 0;
    double spread = s->node > 0 ? s->node : 0.01, noise = s->run > 0 ? s->run : 0.005;
    double common = sim_tail(s->tail, seed), slow[64], alike[64] = {0};
    bool second = s->apart > 0 && sim_share(seed) < s->second;
    if (s->noisy > 0 && sim_share(seed) < s->noisy && !f->bad[i])
        noise *= s->loudest > 0 && sim_share(seed) < 0.1 ? s->loudest : s->louder;
    spread = s->step > 0 ? 0 : spread;
    for (int r = 0; r < runs; r++) {
        f->day[(size_t)i * runs + r] = 20000 + start + (runs - 1 - r) % 5;
        slow[r] = s->spike > 0 && sim_share(seed) < s->spike ? 0.1 : 0;
        alike[r] = s->together ? sim_run(s, noise, seed) : 0;
    }
    for (int m = 0; m < s->metrics; m++) {
        double own = s->metrics > 1 ? sqrt(0.5) * (common + sim_tail(s->tail, seed)) : common;
        double level = s->past ? 0 : spread * own;
        level += second ? log1p(s->apart) : 0;
        for (int r = 0; r < runs; r++) {
            double x = level + slow[r] + (s->together ? alike[r] : sim_run(s, noise, seed));
            bool after = r < NEWEST_RUNS || !s->past;
            x += f->bad[i] && m < s->bad_metrics && after ? log1p(s->shift) : 0;
            x += s->past && after ? 0.02 : 0;
            x += s->drift * (f->day[(size_t)i * runs + r] - 20000);
            f->v[((size_t)i * s->metrics + m) * runs + r] = (float)(90 * exp(x));
        }
    }
}

static void sim_fleet_make(struct sim_fleet *f, const struct scenario *s, unsigned long long *seed)
{
    int newest = s->newest ? s->newest : NEWEST_RUNS, runs = s->past + s->history + newest;
    *f = (struct sim_fleet){.v = malloc((size_t)s->nodes * s->metrics * runs * sizeof *f->v),
                            .day = malloc((size_t)s->nodes * runs * sizeof *f->day),
                            .probe = calloc(s->metrics, sizeof *f->probe),
                            .more = calloc(s->metrics, sizeof *f->more),
                            .bad = calloc(s->nodes, sizeof *f->bad)};
    f->in = (struct peers_input){s->nodes, s->metrics, runs, 1, f->v, f->day, f->probe, f->more};
    sim_choose(f->bad, (int)lround(s->share * s->nodes), s->nodes, seed);
    for (int i = 0; i < s->nodes; i++)
        sim_node(f, s, i, seed);
}

static void sim_fleet_free(struct sim_fleet *f)
{
    free(f->v);
    free(f->day);
    free(f->probe);
    free(f->more);
    free(f->bad);
}

static struct peers_table sim_table(const struct newest *n)
{
    return peers_table_of(n, false);
}

static void sim_count(struct outcome *o, const struct scenario *s, const struct sim_fleet *f,
                      const struct peers *p)
{
    long wrong = o->wrong, sure_wrong = o->sure_wrong;
    const struct peers_class *c = &p->list[0];
    for (int i = 0; i < s->nodes; i++) {
        bool found = c->node[i].grade != PEERS_FINE, sure = c->node[i].grade == PEERS_SURE;
        for (int g = 0; s->groups && g < c->n_groups; g++)
            found = found || c->groups[g].has[i];
        o->bad += f->bad[i];
        o->found += found && f->bad[i];
        o->wrong += found && !f->bad[i];
        o->sure += sure && f->bad[i];
        o->sure_wrong += sure && !f->bad[i];
    }
    o->alarmed += o->wrong > wrong;
    o->sure_alarmed += o->sure_wrong > sure_wrong;
    o->grouped += c->n_groups > 0;
    o->mirror += peers_mirror(c);
    o->fleets++;
}

__attribute__((unused)) static struct outcome sim_judge(const struct scenario *s, int fleets)
{
    struct outcome o = {0};
    unsigned long long seed = s->seed;
    for (int k = 0; k < fleets; k++) {
        struct sim_fleet f;
        struct newest newest;
        struct peers p;
        struct peers_options options = PEERS_DEFAULTS;
        options.kinds = !s->one_kind;
        sim_fleet_make(&f, s, &seed);
        if (newest_find(&newest, &f.in, s->past > 0, NULL) < 0)
            abort();
        struct peers_table t = sim_table(&newest);
        if ((s->past ? past_judge(&p, &f.in, &newest, 1, NULL)
                     : peers_judge(&p, &t, 1, &options, NULL)) < 0)
            abort();
        sim_count(&o, s, &f, &p);
        peers_fini(&p);
        newest_fini(&newest);
        sim_fleet_free(&f);
    }
    return o;
}

static double sim_ratio(long a, long b)
{
    return b ? (double)a / b : NAN;
}

__attribute__((unused)) static double outcome_recall(const struct outcome *o)
{
    return sim_ratio(o->found, o->bad);
}

__attribute__((unused)) static double outcome_precision(const struct outcome *o)
{
    return sim_ratio(o->found, o->found + o->wrong);
}

__attribute__((unused)) static void outcome_print(const struct scenario *s, const struct outcome *o)
{
    printf(
        "# %-52s seed %-4llu recall %5.1f %%  precision %5.1f %%  false/fleet %6.2f  any %3.0f %%  "
        "sure %5.1f %% of bad, %ld false  mirror %.2f\n",
        s->name, s->seed, 100 * outcome_recall(o), 100 * outcome_precision(o),
        (double)o->wrong / o->fleets, 100.0 * o->alarmed / o->fleets,
        100 * sim_ratio(o->sure, o->bad), o->sure_wrong, o->mirror / o->fleets);
    fflush(stdout);
}

// --- Rollouts -----------------------------------------------------------------------------------

struct rollout {
    int nodes, days, waves;
    double effect, untouched;
    unsigned long long seed;
};

// One rollout from day 20 on, a wave every second day, in a class that drifts by 0.2 % a day.
static int sim_rollout(struct effect *e, const struct rollout *r, unsigned long long *seed)
{
    const int64_t day_ms = 86400000;
    size_t cells = (size_t)r->nodes * r->days;
    float *v = malloc(cells * sizeof *v);
    int64_t *at = malloc(cells * sizeof *at), *changed = calloc(r->nodes, sizeof *changed);
    int *class = calloc(r->nodes, sizeof *class);
    double drift[400], sum = 0;
    for (int d = 0; d < r->days; d++)
        drift[d] = sum += 0.002 * sim_normal(seed);
    for (int i = 0; i < r->nodes; i++) {
        double level = 0.01 * sim_normal(seed);
        int day = 20 + 2 * dist_below(seed, r->waves);
        bool never = sim_share(seed) < r->untouched;
        changed[i] = never ? 0 : (20000 + day) * day_ms + 3600000;
        for (int d = 0; d < r->days; d++) {
            double x = level + drift[d] + 0.005 * sim_normal(seed);
            size_t k = (size_t)i * r->days + (r->days - 1 - d);
            v[k] = (float)(90 * exp(x + (!never && d >= day ? log1p(r->effect) : 0)));
            at[k] = (20000 + d) * day_ms + 3600000;
        }
    }
    struct effect_input in = {r->nodes, r->days, v, at, class, changed, 0, false};
    int rc = effect_reach(&in.reach, at, r->nodes, r->days, NULL);
    rc = rc < 0 ? rc : effect_find(e, &in, NULL);
    free(v);
    free(at);
    free(changed);
    free(class);
    return rc;
}

struct rollouts {
    int n, covered, called;
    double mean, deviation; // of the estimates, in per cent
};

__attribute__((unused)) static struct rollouts sim_rollouts(const struct rollout *r, int n)
{
    struct rollouts out = {.n = n};
    unsigned long long seed = r->seed;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        struct effect e;
        if (sim_rollout(&e, r, &seed) < 0)
            abort();
        sum += e.percent;
        squares += e.percent * e.percent;
        out.covered += e.lo <= 100 * r->effect && 100 * r->effect <= e.hi;
        out.called += e.verdict == EFFECT_WORSE || e.verdict == EFFECT_BETTER;
    }
    out.mean = sum / n;
    out.deviation = sqrt(fmax(0, squares / n - out.mean * out.mean));
    return out;
}
