// SPDX-License-Identifier: Apache-2.0
// Figures, not assertions: what a fleet's store takes, on SQLite (a path) or PostgreSQL (a URI);
// the database must be empty, or is one that this program has filled, which is read again. A fleet
// of NODES nodes is swept DAYS times with a new run each, in transactions of 500 nodes; then nodes
// come with five years of daily runs, in pages of 100. Goals: 15,000 runs/s of such pages with
// SQLite, 20,000 with PostgreSQL; 450 bytes a run of 30 metrics; five years of a metric in 30 ms;
// the effect of a rollout over 60 days in 2 s; 800 whole runs/s of 8 ranks and 15 sizes; a verdict
// anew in 400 ms. Four of five nodes change their set-up, in eight waves over the middle of the
// sweeps. With YEARS, all nodes have daily runs of so many years instead, which come day by day (or
// in pages of RUNS), and are read. That takes minutes, and 7 GB for 10,000 nodes and 5 years. The
// same command once more also deletes all but the last year. usage: fleet_store WHERE [NODES [DAYS
// [YEARS [RUNS]]]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/peers/fleet_effect.h"
#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_order.h"
#include "analysis/peers/rollouts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "fleet/store/archive.h"

enum { METRICS = 30, BATCH = 500, PAGE = 100, YEARS_DAYS = 1826, OLD_NODES = 40, TURNS = 9 };
static const int64_t day_ms = 86400000, first_ms = 1577836800000; // 2020-01-01

struct figure_page {
    struct fleet_page page;
    struct summary_page body;
    char name[64];
};

enum { WAVES = 8, SETUPS = 2 };
static int sweep_days, end_day;     // of the newest runs, and of the last one
static struct facts setups[SETUPS]; // before and after the rollout

static struct fleet_store *s;
static struct summary_metric metrics[METRICS];
static struct summary_layout layout = {METRICS, metrics};
static struct figure_page made[BATCH];
static struct fleet_page pages[BATCH];
static struct fleet_ack acks[BATCH];

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void fail(const struct err *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void make_room(int runs)
{
    for (int i = 0; i < BATCH; i++) {
        struct summary_page *p = &made[i].body;
        float *values = calloc((size_t)runs * 3 * METRICS, sizeof *values);
        p->runs = calloc(runs, sizeof *p->runs);
        if (!values || !p->runs)
            exit(1);
        p->layouts = &layout;
        p->n_layouts = 1;
        for (int r = 0; r < runs; r++) {
            struct summary *run = &p->runs[r];
            run->values = values + (size_t)r * 3 * METRICS;
            run->lo = run->values + METRICS;
            run->hi = run->lo + METRICS;
            run->state = RUN_SUCCEEDED;
            run->duration_s = 31.49;
            run->n_ranks = 64;
            run->disturbed = 0.01;
            run->metrics_version = 4;
            snprintf(run->benchmark, sizeof run->benchmark, "latency");
            snprintf(run->variant, sizeof run->variant, "size=1-1024 n_ranks=64");
            snprintf(run->method, sizeof run->method, "prp4-v1");
        }
    }
}

static bool has_changed(int node, int64_t day)
{
    int wave = node / 5 % WAVES;
    return node % 5 &&
           day > end_day - sweep_days + sweep_days / 4 + (sweep_days / 2) * wave / WAVES;
}

static void make_setups(void)
{
    struct err err = {0};
    for (int i = 0; i < SETUPS; i++) {
        facts_add(&setups[i], "microcode", "0x%d", i);
        facts_seal(&setups[i]);
        if (fleet_store_facts_put(s, &setups[i], &err) < 0)
            fail(&err);
    }
}

// Runs after+1 to after+n of a node, one a day from the day `start` on.
static void fill(struct figure_page *f, int node, int start, int64_t after, int n)
{
    struct summary_page *p = &f->body;
    snprintf(f->name, sizeof f->name, "node%05d", node);
    snprintf(p->node, sizeof p->node, "%s", f->name);
    snprintf(p->version, sizeof p->version, "1.0.0");
    snprintf(p->history_id, sizeof p->history_id, "%032x", node + 1);
    p->after = after;
    p->n_runs = n;
    p->next = p->last = after + n;
    for (int r = 0; r < n; r++) {
        struct summary *run = &p->runs[r];
        snprintf(run->class_hash, sizeof run->class_hash, "%064x", node % 4);
        snprintf(run->config_hash, sizeof run->config_hash, "%s",
                 setups[has_changed(node, start + after + r + 1)].hash);
        snprintf(run->topology_hash, sizeof run->topology_hash, "%064x", 64 + node % 4);
        run->seq = run->id = after + r + 1;
        run->measured_ms = first_ms + (start + run->seq) * day_ms + node % 14400 * 1000;
        run->finished_ms = run->measured_ms + 31490;
        for (int m = 0; m < METRICS; m++) {
            run->values[m] = 80 + 9 * m + (float)(rand() % 2000) / 1000;
            run->lo[m] = summary_end(run->values[m], -1, 50 + rand() % 30);
            run->hi[m] = summary_end(run->values[m], 1, 50 + rand() % 30);
        }
    }
    f->page =
        (struct fleet_page){f->name, after, first_ms + (start + after + n + 1) * day_ms, 3, p};
}

static double put_batch(int n)
{
    struct err err = {0};
    for (int i = 0; i < n; i++)
        pages[i] = made[i].page;
    double start = now_ms();
    if (fleet_store_put(s, pages, n, acks, &err) < 0)
        fail(&err);
    double took = now_ms() - start;
    for (int i = 0; i < n; i++)
        if (acks[i].outcome != FLEET_STORED) {
            fprintf(stderr, "%s: %s\n", pages[i].name, fleet_outcomes[acks[i].outcome].text);
            exit(1);
        }
    return took;
}

// ms of all transactions.
static double sweep(int nodes, int start, int64_t after, int runs)
{
    double took = 0;
    for (int from = 0; from < nodes; from += BATCH) {
        int n = nodes - from < BATCH ? nodes - from : BATCH;
        for (int i = 0; i < n; i++)
            fill(&made[i], from + i, start, after, runs);
        took += put_batch(n);
    }
    return took;
}

static void figure_sweeps(int nodes, int days)
{
    double took[64], empty[TURNS];
    double first = sweep(nodes, YEARS_DAYS, 0, 1);
    for (int d = 1; d < days; d++)
        took[d - 1] = sweep(nodes, YEARS_DAYS, d, 1);
    int part = (days + 2) / 4;
    double begin = middle_of(took, part), end = middle_of(took + days - 1 - part, part);
    double t = middle_of(took, days - 1);
    for (int i = 0; i < TURNS; i++)
        empty[i] = sweep(nodes, YEARS_DAYS, days, 0);
    printf("sweep of %d nodes, a new run each, %d nodes a transaction: %.2f s, %.0f runs/s (the "
           "first one %.2f s, the first quarter %.2f s, the last quarter %.2f s); nothing new: "
           "%.2f s\n",
           nodes, BATCH, t / 1e3, nodes / t * 1e3, first / 1e3, begin / 1e3, end / 1e3,
           middle_of(empty, TURNS) / 1e3);
}

// Every node, `runs` days at a time, up to end_day.
static void figure_years(int nodes, int runs)
{
    double begin = now_ms(), took = 0, last = 0;
    for (int day = 0; day < end_day; day += runs) {
        int n = end_day - day < runs ? end_day - day : runs;
        last = sweep(nodes, 0, day, n);
        took += last;
    }
    double n = (double)nodes * end_day;
    printf("%.0f runs of %d nodes in pages of %d: %.0f s, %.0f runs/s (all in all %.0f s); the "
           "last %d of each: %.2f s\n",
           n, nodes, runs, took / 1e3, n / took * 1e3, (now_ms() - begin) / 1e3, runs, last / 1e3);
}

static void figure_history(int nodes)
{
    double took[YEARS_DAYS];
    int n = 0;
    for (int64_t after = 0; after + PAGE <= YEARS_DAYS; after += PAGE, n++) {
        for (int i = 0; i < OLD_NODES; i++)
            fill(&made[i], nodes + i, 0, after, PAGE);
        took[n] = put_batch(OLD_NODES);
    }
    double t = middle_of(took, n);
    printf("pages of %d runs, %d pages a transaction: %.1f ms, %.0f runs/s\n", PAGE, OLD_NODES, t,
           OLD_NODES * PAGE / t * 1e3);
}

// A run of 8 ranks and 15 sizes, 21 KB: read, compressed and stored as --ingest does it.
static void write_whole(struct buf *out, int64_t seq)
{
    enum { RANKS = 8, SIZES = 15 };
    buf_reset(out);
    buf_fmt(out, "{\"format\":\"numaprobe-run\",\"run\":{\"id\":%lld,\"seq\":%lld},\"cells\":[",
            (long long)seq, (long long)seq);
    for (int i = 0; i < RANKS * SIZES; i++) {
        double v = 10 + i % SIZES * 9 + (double)(rand() % 1000) / 1000;
        buf_fmt(out,
                "%s{\"n\":%d,\"disturbed\":%d,\"median\":%.3f,\"lo\":%.3f,\"hi\":%.3f,"
                "\"min\":%.3f,\"p10\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"mean\":%.3f,\"sd\":%.3f,"
                "\"overlap\":%.4f,\"converged\":true}",
                i ? "," : "", 40 + rand() % 8, rand() % 3, v, v * .99, v * 1.01, v * .97, v * .98,
                v * 1.02, v * 1.04, v + .001 * (rand() % 9), v * .008, .98 + 1e-5 * (rand() % 999));
    }
    buf_str(out, "]}");
}

static void figure_wholes(int nodes)
{
    enum { AT_ONCE = 64, BATCHES = 20 };
    struct err err = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_whole list[AT_ONCE];
    int64_t seqs[AT_ONCE], bytes = 0, frames = 0;
    char name[64];
    double took = 0;
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    for (int b = 0; b < BATCHES; b++) {
        snprintf(name, sizeof name, "node%05d", nodes + b);
        for (int i = 0; i < AT_ONCE; i++)
            seqs[i] = i + 1;
        const struct fleet_cited_runs cited = {name, seqs, AT_ONCE, 0};
        if (fleet_store_archive_want(s, &cited, 1, &err) < 0)
            fail(&err);
        for (int i = 0; i < AT_ONCE; i++) {
            write_whole(&text, seqs[i]);
            list[i] = (struct fleet_whole){.node = name, .seq = seqs[i], .why = ""};
            double start = now_ms();
            CLEANUP_JSON struct json *document = json_parse(buf_text(&text), text.len, &err);
            if (!document || fleet_whole_fill(&list[i], buf_text(&text), text.len, &err) < 0)
                fail(&err);
            took += now_ms() - start;
            bytes += list[i].bytes;
            frames += (int64_t)list[i].frame.len;
        }
        double start = now_ms();
        if (fleet_store_archive_put(s, list, AT_ONCE, first_ms, &err) < 0)
            fail(&err);
        took += now_ms() - start;
        for (int i = 0; i < AT_ONCE; i++)
            buf_free(&list[i].frame);
    }
    printf("whole runs of 8 x 15: %.0f runs/s, %lld bytes become %lld\n",
           BATCHES * AT_ONCE / took * 1e3, (long long)(bytes / (BATCHES * AT_ONCE)),
           (long long)(frames / (BATCHES * AT_ONCE)));
}

static int take_page(void *ctx, const struct summary_page *p, struct err *err)
{
    return fleet_add_page(ctx, p, err);
}

static int count_runs(void *ctx, const struct summary_page *p, struct err *err)
{
    (void)err;
    *(long *)ctx += p->n_runs;
    return 0;
}

static int count_point(void *ctx, const struct fleet_store_point *p, struct err *err)
{
    (void)p;
    (void)err;
    ++*(long *)ctx;
    return 0;
}

static void figure_window(void)
{
    struct err err = {0};
    double took[TURNS], filled[TURNS];
    long runs = 0;
    const struct fleet_window w = {.since_ms = first_ms + (end_day - 13) * day_ms, .newest = 5};
    for (int i = 0; i < TURNS; i++) {
        struct fleet_options o = FLEET_DEFAULTS;
        CLEANUP_FLEET struct fleet *f = fleet_new(&o, &err);
        runs = 0;
        double start = now_ms();
        if (fleet_store_window(s, &w, count_runs, &runs, &err) < 0)
            fail(&err);
        took[i] = now_ms() - start;
        start = now_ms();
        if (fleet_store_window(s, &w, take_page, f, &err) < 0)
            fail(&err);
        filled[i] = now_ms() - start;
    }
    printf(
        "window of 14 days, the newest 5 of each node: %ld runs, %.0f ms; into a fleet %.0f ms\n",
        runs, middle_of(took, TURNS), middle_of(filled, TURNS));
}

static int add_setup(void *ctx, const struct fleet_store_setup *p, struct err *err)
{
    return setups_add(ctx, p->node, p->config_hash, p->from_ms, err);
}

static void figure_rollouts(void)
{
    struct err err = {0};
    double took[TURNS];
    int nodes = 0;
    for (int i = 0; i < TURNS; i++) {
        CLEANUP_SETUPS struct setups list = {0};
        CLEANUP_ROLLOUTS struct rollouts r = {0};
        double start = now_ms();
        if (fleet_store_setups(s, NULL, add_setup, &list, &err) < 0)
            fail(&err);
        for (int k = 0; k < SETUPS; k++)
            setups_add_facts(&list, &setups[k], &err);
        if (rollouts_find(&r, &list, 0, 0, &err) < 0)
            fail(&err);
        nodes = r.n ? r.list[0].n : 0;
        took[i] = now_ms() - start;
    }
    printf("rollouts: %d nodes changed, %.1f ms\n", nodes, middle_of(took, TURNS));
}

static void figure_effect(int days)
{
    enum { EFFECTS = 3 };
    struct err err = {0};
    double read[EFFECTS], whole[EFFECTS], cpu[EFFECTS];
    struct fleet_effect e = {0};
    const struct fleet_window w = {.since_ms = first_ms + (end_day - days) * day_ms,
                                   .values_only = true};
    long runs = 0;
    for (int i = 0; i < EFFECTS; i++) {
        struct fleet_options o = FLEET_DEFAULTS;
        o.runs_max = days;
        double start = now_ms(), spent = cpu_ms();
        CLEANUP_FLEET struct fleet *f = fleet_new(&o, &err);
        if (!f || fleet_store_window(s, &w, take_page, f, &err) < 0)
            fail(&err);
        for (int k = 0; k < SETUPS; k++)
            fleet_add_facts(f, &setups[k], &err);
        read[i] = now_ms() - start;
        fleet_effect_fini(&e);
        if (fleet_effect_find(&e, f, "microcode", NULL, NULL, &err) < 0)
            fail(&err);
        whole[i] = now_ms() - start;
        cpu[i] = cpu_ms() - spent;
        runs = f->runs;
    }
    printf("effect over %d days: %ld runs, %d nodes changed on %d days, %d metrics: %.0f ms, of "
           "which reading %.0f ms; CPU %.0f ms\n",
           days, runs, e.change.nodes, e.days, e.n, middle_of(whole, EFFECTS),
           middle_of(read, EFFECTS), middle_of(cpu, EFFECTS));
    fleet_effect_fini(&e);
}

// As GET /v1/fleet/outliers reads and judges, with the newest `newest` of each node.
static void figure_verdict(int newest, const char *class)
{
    enum { VERDICTS = 5 };
    struct err err = {0};
    double read[VERDICTS], whole[VERDICTS], cpu[VERDICTS];
    long runs = 0;
    int tested = 0;
    const struct fleet_window w = {.newest = newest, .class_hash = class};
    for (int i = 0; i < VERDICTS; i++) {
        struct fleet_options o = FLEET_DEFAULTS;
        struct fleet_findings found = {0};
        o.runs_max = newest;
        o.now_ms = first_ms + (end_day + 1) * day_ms;
        double start = now_ms(), spent = cpu_ms();
        CLEANUP_FLEET struct fleet *f = fleet_new(&o, &err);
        if (!f || fleet_store_window(s, &w, take_page, f, &err) < 0 || fleet_arrange(f, &err) < 0)
            fail(&err);
        read[i] = now_ms() - start;
        if (fleet_findings_find(&found, f, &err) < 0)
            fail(&err);
        whole[i] = now_ms() - start;
        cpu[i] = cpu_ms() - spent;
        runs = f->runs;
        tested = found.tested;
        fleet_findings_fini(&found);
    }
    printf("verdict of the newest %d of each node%s: %ld runs, %d nodes judged, %.0f ms, of which "
           "reading %.0f ms; CPU %.0f ms\n",
           newest, class ? " of a class" : "", runs, tested, middle_of(whole, VERDICTS),
           middle_of(read, VERDICTS), middle_of(cpu, VERDICTS));
}

static void figure_verdicts(void)
{
    const struct fleet_options o = FLEET_DEFAULTS;
    char class[65];
    snprintf(class, sizeof class, "%064x", 1);
    figure_verdict(NEWEST_RUNS, NULL);
    figure_verdict(o.runs_max, NULL);
    figure_verdict(o.runs_max, class);
}

static void figure_bytes(const struct fleet_store_size *before)
{
    struct err err = {0};
    struct fleet_store_size z = {0};
    if (fleet_store_size(s, &z, &err) < 0)
        fail(&err);
    printf("%lld runs, %.2f GB: %.0f bytes a run of %d metrics\n", (long long)z.runs,
           (double)z.bytes / 1e9, (double)(z.bytes - before->bytes) / (double)z.runs, METRICS);
}

static void figure_retention(int month_days)
{
    struct err err = {0};
    double start = now_ms();
    struct fleet_retention r = {.before_ms = first_ms + month_days * day_ms,
                                .now_ms = first_ms + 10000 * day_ms};
    if (fleet_store_retain(s, &r, &err) < 0)
        fail(&err);
    printf("the first %d days deleted: %lld runs, %.2f s\n", month_days, (long long)r.deleted,
           (now_ms() - start) / 1e3);
}

static void figure_series(int nodes)
{
    struct err err = {0};
    double took[TURNS], cpu[TURNS];
    long points = 0;
    for (int i = 0; i < TURNS; i++) {
        char name[64];
        snprintf(name, sizeof name, "node%05d", nodes + i);
        points = 0;
        double start = now_ms(), spent = cpu_ms();
        if (fleet_store_series(s, &(struct fleet_line){.node = name, .metric = metrics[3].name},
                               count_point, &points, &err) < 0)
            fail(&err);
        took[i] = now_ms() - start;
        cpu[i] = cpu_ms() - spent;
    }
    printf("a metric of a node over five years: %ld points, %.1f ms; CPU %.1f ms\n", points,
           middle_of(took, TURNS), middle_of(cpu, TURNS));
}

static int count_arrival(void *ctx, const struct summary *run, const struct summary_layout *l,
                         struct err *err)
{
    (void)run;
    (void)l;
    (void)err;
    ++*(int *)ctx;
    return 0;
}

static int count_note(void *ctx, const struct summary_note *note, struct err *err)
{
    (void)note;
    (void)err;
    ++*(int *)ctx;
    return 0;
}

// The collector's own feed, as another collector reads it from its start, and where it has read
// all.
static void figure_feed(void)
{
    enum { LIMIT = 1000 };
    struct err err = {0};
    struct fleet_arrivals a = {.limit = LIMIT};
    double slowest = 0, start = now_ms(), took[TURNS];
    int n = 0;
    do {
        double page = now_ms();
        a.after = a.next;
        if (fleet_store_arrivals(s, &a, count_arrival, count_note, &n, &err) < 0)
            fail(&err);
        slowest = fmax(slowest, now_ms() - page);
    } while (a.next < a.last);
    double all = now_ms() - start;
    int runs = n;
    for (int i = 0; i < TURNS; i++) {
        start = now_ms();
        a.after = a.last - 1;
        if (fleet_store_arrivals(s, &a, count_arrival, count_note, &n, &err) < 0)
            fail(&err);
        took[i] = now_ms() - start;
    }
    printf("own feed: %d runs in pages of %d: %.0f runs/s, slowest page %.1f ms; the newest run "
           "%.1f ms\n",
           runs, LIMIT, runs / all * 1e3, slowest, middle_of(took, TURNS));
}

static void figures_of_days(int nodes, const struct fleet_store_size *before)
{
    const struct fleet_store_size empty = {0};
    if (!before->runs) {
        figure_sweeps(nodes, sweep_days);
        figure_history(nodes);
        figure_wholes(nodes);
    }
    figure_bytes(before->runs ? &empty : before);
    figure_window();
    figure_verdicts();
    figure_series(nodes);
    figure_rollouts();
    figure_effect(sweep_days);
    figure_feed();
}

static void figures_of_years(int nodes, int runs, const struct fleet_store_size *before)
{
    enum { FIRST_MONTH = 31 };
    const struct fleet_store_size empty = {0};
    if (!before->runs)
        figure_years(nodes, runs);
    figure_bytes(before->runs ? &empty : before);
    figure_window();
    figure_verdicts();
    figure_series(0);
    figure_rollouts();
    figure_effect(sweep_days);
    figure_feed();
    if (!before->runs)
        return;
    figure_retention(FIRST_MONTH);
    figure_retention(end_day * 4 / 5);
    figure_bytes(&empty);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct fleet_store_size before = {0};
    int nodes = argc > 2 ? atoi(argv[2]) : 10000, days = argc > 3 ? atoi(argv[3]) : 10;
    int years = argc > 4 ? atoi(argv[4]) : 0, runs = argc > 5 ? atoi(argv[5]) : 1;
    if (argc < 2 || nodes < 1 || days < 2 || days > 60 || years < 0 || runs < 1 || runs > PAGE)
        return 2;
    s = fleet_store_open(argv[1], FLEET_STORE_WRITE, &err);
    if (!s || fleet_store_size(s, &before, &err) < 0)
        fail(&err);
    for (int i = 0; i < METRICS; i++) {
        snprintf(metrics[i].name, sizeof metrics[i].name, "latency.n%d.n%d.median_ns", i / 8,
                 i % 8);
        snprintf(metrics[i].unit, sizeof metrics[i].unit, "ns");
    }
    sweep_days = days;
    end_day = years ? years * YEARS_DAYS / 5 : YEARS_DAYS + days;
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_room(PAGE);
    make_setups();
    if (years)
        figures_of_years(nodes, runs, &before);
    else
        figures_of_days(nodes, &before);
    fleet_store_close(s);
    return 0;
}
