// SPDX-License-Identifier: Apache-2.0
// Pages of summaries, as nodes send them, made from a few numbers. Facts are made for the set-ups.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet.h"
#include "tests/unit/analysis/simulate.h"

#define PAGES_DAY INT64_C(86400000)
#define PAGES_NOW (20500 * PAGES_DAY + 3600000) // 2026-02-16T01:00Z

enum { PAGE_METRICS = 3 };
static struct summary_metric page_names[PAGE_METRICS] = {
    {"latency.local.dram.median_ns", "ns"},
    {"latency.n0.n1.median_ns", "ns"},
    {"bandwidth.triad.peak.gbps", "GB/s"},
};

struct page_run {
    const char *node, *class, *config;
    int64_t id, measured_ms;
    double factor[PAGE_METRICS]; // slower by; 1: as usual
    double noise;
    bool failed, forced, bare; // bare: without metrics
    bool lacking;              // the first metric
    bool updated;              // measured by a later numaprobe, with metrics of another version
    double disturbed;
};

__attribute__((unused)) static struct fleet *no_nodes(void)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    struct fleet *f = fleet_new(&o, NULL);
    if (!f)
        abort();
    return f;
}

// A run with other metrics than page_add() has. Variant "": of the same probe.
__attribute__((unused)) static struct summary other_run(const char *node, const char *variant,
                                                        int64_t id, float *values)
{
    struct summary s = {.id = id,
                        .metrics_version = 4,
                        .state = RUN_SUCCEEDED,
                        .measured_ms = PAGES_NOW - 50 * PAGES_DAY + id,
                        .values = values,
                        .lo = values,
                        .hi = values,
                        .benchmark = "latency",
                        .method = "prp4-v1",
                        .class_hash = "A",
                        .config_hash = "SET"};
    snprintf(s.node, sizeof s.node, "%s", node);
    snprintf(s.variant, sizeof s.variant, "%s", variant);
    return s;
}

// n metrics from "latency.x<first>.median_ns" on, of 100 ns each.
__attribute__((unused)) static void other_metrics(struct summary_metric *names, float *values,
                                                  int first, int n)
{
    for (int m = 0; m < n; m++) {
        snprintf(names[m].name, sizeof names[m].name, "latency.x%d.median_ns", first + m);
        snprintf(names[m].unit, sizeof names[m].unit, "ns");
        values[m] = 100;
    }
}

// One run as a page of its own.
__attribute__((unused)) static int page_add(struct fleet *f, const struct page_run *r,
                                            unsigned long long *seed)
{
    static const double usual[PAGE_METRICS] = {90, 140, 200};
    float v[PAGE_METRICS], lo[PAGE_METRICS], hi[PAGE_METRICS];
    struct summary_layout layout = {PAGE_METRICS, page_names};
    struct summary s = {.id = r->id,
                        .metrics_version = r->updated ? 7 : 4,
                        .state = r->failed ? RUN_FAILED : RUN_SUCCEEDED,
                        .forced = r->forced,
                        .measured_ms = r->measured_ms,
                        .disturbed = r->disturbed,
                        .layout = r->bare ? -1 : 0,
                        .values = v,
                        .lo = lo,
                        .hi = hi};
    struct summary_page page = {.n_layouts = 1, .n_runs = 1, .layouts = &layout, .runs = &s};
    snprintf(s.node, sizeof s.node, "%s", r->node);
    snprintf(s.benchmark, sizeof s.benchmark, "latency");
    snprintf(s.method, sizeof s.method, "prp4-v1");
    snprintf(s.class_hash, sizeof s.class_hash, "%s", r->class);
    snprintf(s.config_hash, sizeof s.config_hash, "%s", r->config);
    for (int m = 0; m < PAGE_METRICS; m++) {
        double factor = r->factor[m] > 0 ? r->factor[m] : 1;
        double x = usual[m] * (m == 2 ? 1 / factor : factor);
        v[m] = (float)(x * exp(r->noise * sim_normal(seed)));
        lo[m] = v[m] * 0.99F;
        hi[m] = v[m] * 1.01F;
    }
    if (r->lacking)
        v[0] = NAN;
    return fleet_add_page(f, &page, NULL);
}

// "bios=1.9.0 kernel=6.1" becomes the facts of a hash.
static const struct facts *page_facts_of(const char *hash, const char *text)
{
    static struct facts facts;
    static char names[FACTS_MAX][FACT_NAME_MAX];
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    facts.n = 0;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        snprintf(names[facts.n], sizeof names[0], "%s", word);
        facts_add(&facts, names[facts.n], "%s", value);
    }
    snprintf(facts.hash, sizeof facts.hash, "%s", hash);
    return &facts;
}

__attribute__((unused)) static int page_facts(struct fleet *f, const char *hash, const char *text)
{
    return fleet_add_facts(f, page_facts_of(hash, text), NULL);
}
