// SPDX-License-Identifier: Apache-2.0
// A scraper asks every few seconds, runs come every hour: what was read is kept until the database
// has another version.
#include "api/resources/gauges.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/store/history.h"

// Runs are regular when a variant was measured at least CADENCE_RUNS times, each at least
// CADENCE_APART_MS after the one before, and the longest of the pauses is at most CADENCE_SPREAD
// times the shortest: a weekend between working days is three, and a timer may be late. Several
// runs of one afternoon count as one, so a user who tries something out starts no schedule; of
// hourly runs every twelfth counts.
enum { CADENCE_RUNS = 5, CADENCE_APART_MS = 12 * 3600 * 1000 };
static const double CADENCE_SPREAD = 3.5;

// ---- Reading

static void gauges_clear(struct gauges *g)
{
    for (int i = 0; i < g->n; i++)
        free(g->list[i].variant);
    free(g->list);
    free(g->variants);
    *g = (struct gauges){0};
}

// The first word of a metric's name is its benchmark; "contention" is of latency's two modes.
static int benchmark_of(const char *metric)
{
    size_t n = strcspn(metric, ".");
    for (int b = 0; b < BENCHMARKS; b++)
        if (strncmp(benchmarks[b].name, metric, n) == 0 && !benchmarks[b].name[n])
            return b;
    return BENCHMARK_LATENCY;
}

struct reading {
    struct gauges g;
    int n_variants;
    int variants[GAUGE_VARIANTS_MAX]; // the first gauge of each
    int rows;                         // that are shown, or are of another version
    bool no_memory;
};

// False: one variant too many. A run's series come one after another, so the variant is mostly that
// of the one before, which is looked at first.
static bool has_room(struct reading *r, int benchmark, const char *variant)
{
    for (int i = r->n_variants - 1; i >= 0; i--) {
        const struct gauge *first = &r->g.list[r->variants[i]];
        if (first->benchmark == benchmark && strcmp(first->variant, variant) == 0)
            return true;
    }
    if (r->n_variants == GAUGE_VARIANTS_MAX)
        return false;
    r->variants[r->n_variants++] = r->g.n;
    return true;
}

static void gauges_take(void *ctx, const struct newest_value *v)
{
    struct reading *r = ctx;
    struct gauge one = {.value = v->value * metric_base_factor(v->unit),
                        .benchmark = benchmark_of(v->metric),
                        .series = v->series,
                        .run_id = v->run_id,
                        .measured_ms = v->measured_ms};
    if (r->no_memory)
        return;
    one.rule = metric_rule_find(v->metric, &one.labels);
    if (one.rule && !has_room(r, one.benchmark, v->variant))
        return;
    r->rows++;
    if (!one.rule)
        return; // the name is of another version
    one.variant = strdup(v->variant);
    r->no_memory |= !one.variant;
    if (!one.variant)
        return;
    r->g.list[r->g.n++] = one;
    if (v->run_id > r->g.newest_run)
        r->g.newest_run = v->run_id;
}

static int by_family(const void *a, const void *b)
{
    const struct gauge *x = a, *y = b;
    int variant = strcmp(x->variant, y->variant);
    return x->rule != y->rule ? (x->rule > y->rule) - (x->rule < y->rule)
           : variant          ? variant
                              : (x->series > y->series) - (x->series < y->series);
}

// ---- Variants and how regular they are

// A variant does not name the mode, which is in the metrics' names.
static const char *gauges_mode_of(const struct gauge *g)
{
    for (int i = 0; i < g->labels.n; i++)
        if (strcmp(g->labels.list[i].name, "mode") == 0)
            return g->labels.list[i].value;
    return g->benchmark == BENCHMARK_LATENCY ? "both" : "";
}

static int by_way(const struct gauge *x, const struct gauge *y)
{
    int variant = strcmp(x->variant, y->variant);
    return x->benchmark != y->benchmark ? x->benchmark - y->benchmark
           : variant                    ? variant
                                        : strcmp(gauges_mode_of(x), gauges_mode_of(y));
}

// The newest run of each first.
static int by_way_and_run(const void *a, const void *b)
{
    const struct gauge *x = *(const struct gauge *const *)a, *y = *(const struct gauge *const *)b;
    int way = by_way(x, y);
    return way                      ? way
           : x->run_id != y->run_id ? (x->run_id < y->run_id) - (x->run_id > y->run_id)
                                    : (x->series > y->series) - (x->series < y->series);
}

static int find_interval(struct store *s, const struct gauge *newest, int64_t *interval_ms,
                         struct err *err)
{
    int64_t at = newest->measured_ms, longest = 0, shortest = INT64_MAX;
    for (int i = 1; i < CADENCE_RUNS; i++) {
        int64_t before;
        int found = store_series_before(s, newest->series, at - CADENCE_APART_MS, &before, err);
        if (found <= 0)
            return found;
        longest = at - before > longest ? at - before : longest;
        shortest = at - before < shortest ? at - before : shortest;
        at = before;
    }
    if ((double)longest <= CADENCE_SPREAD * (double)shortest)
        *interval_ms = longest;
    return 0;
}

static int find_variants(struct store *s, struct gauges *g, struct err *err)
{
    CLEANUP_MEM const struct gauge **sorted = calloc((size_t)g->n + 1, sizeof(struct gauge *));
    g->variants = calloc((size_t)g->n + 1, sizeof *g->variants);
    if (!sorted || !g->variants)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
    for (int i = 0; i < g->n; i++)
        sorted[i] = &g->list[i];
    qsort(sorted, (size_t)g->n, sizeof(struct gauge *), by_way_and_run);
    for (int i = 0; i < g->n; i++) {
        const struct gauge *one = sorted[i];
        if (i && by_way(sorted[i - 1], one) == 0)
            continue;
        struct gauge_variant *v = &g->variants[g->n_variants++];
        *v = (struct gauge_variant){one->benchmark, one->variant,     gauges_mode_of(one),
                                    one->run_id,    one->measured_ms, 0};
        if (find_interval(s, one, &v->interval_ms, err) < 0)
            return -1;
    }
    return 0;
}

static int gauges_read_all(const struct api_services *api, struct reading *r, struct err *err)
{
    const char *node = api->machine->hostname;
    int64_t all = 0;
    r->g.list = calloc(GAUGES_MAX, sizeof *r->g.list);
    if (!r->g.list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
    if (store_newest_values(api->store, node, GAUGES_MAX, gauges_take, r, err) < 0 ||
        store_newest_count(api->store, node, GAUGES_COUNTED_MAX, &all, err) < 0)
        return -1;
    r->g.omitted = all > r->rows ? all - r->rows : 0;
    if (r->no_memory)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
    struct gauge *fit = realloc(r->g.list, ((size_t)r->g.n + 1) * sizeof *fit);
    r->g.list = fit ? fit : r->g.list; // before anything points into it
    qsort(r->g.list, (size_t)r->g.n, sizeof *r->g.list, by_family);
    return find_variants(api->store, &r->g, err);
}

const struct gauges *gauges_get(const struct api_services *api, struct err *err)
{
    static struct {
        const struct store *store;
        int64_t version, readings;
        struct gauges g;
    } kept;
    int64_t version = store_version(api->store);
    if (kept.store == api->store && kept.version == version)
        return &kept.g;
    struct reading r = {0};
    if (gauges_read_all(api, &r, err) < 0) {
        gauges_clear(&r.g);
        return NULL;
    }
    gauges_clear(&kept.g);
    kept.store = api->store;
    kept.version = version;
    kept.g = r.g;
    kept.g.reading = ++kept.readings;
    return &kept.g;
}
