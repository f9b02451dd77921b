// SPDX-License-Identifier: Apache-2.0
// Random numbers are hashes of (seed, what for, node, metric, round), so nothing is kept and any
// run can be computed alone. Bad nodes are the first in an order by hash.
#include "virtual/world.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const double day_ms = 86400e3;

#define OPTION(type, member) .kind = (type), .offset = offsetof(struct world_options, member)

static const struct param params[] = {
    {.name = "nodes",
     OPTION(PARAM_INT, nodes),
     .min = 1,
     .max = WORLD_NODES_MAX,
     .def = "100",
     .help = "Virtual nodes."},
    {.name = "classes",
     OPTION(PARAM_INT, classes),
     .min = 1,
     .max = WORLD_CLASSES_MAX,
     .def = "1",
     .help = "Kinds of machines. Node i is of class i modulo N."},
    {.name = "runs",
     OPTION(PARAM_INT, runs),
     .min = 0,
     .max = 10000,
     .def = "6",
     .help = "Stored runs of each benchmark (latency, bandwidth) per node."},
    {.name = "interval_s",
     OPTION(PARAM_INT, interval_s),
     .min = 60,
     .max = 86400 * 30,
     .def = "86400",
     .unit = "s",
     .help = "Time between them."},
    {.name = "seed",
     OPTION(PARAM_INT, seed),
     .min = 0,
     .max = 1e15,
     .def = "1",
     .help = "Seed of all random numbers."},
    {.name = "node_percent",
     OPTION(PARAM_REAL, node_percent),
     .min = 0,
     .max = 50,
     .def = "1",
     .unit = "%",
     .help = "Standard deviation between nodes."},
    {.name = "run_percent",
     OPTION(PARAM_REAL, run_percent),
     .min = 0,
     .max = 50,
     .def = "0.5",
     .unit = "%",
     .help = "Standard deviation between runs of a node."},
    {.name = "correlation",
     OPTION(PARAM_REAL, correlation),
     .min = 0,
     .max = 1,
     .def = "0.5",
     .help = "Correlation of the metrics of a node, and of those of a run."},
    {.name = "drift_percent",
     OPTION(PARAM_REAL, drift_percent),
     .min = -10,
     .max = 10,
     .def = "0",
     .unit = "%",
     .help = "All nodes become slower by this per day."},
    {.name = "bad",
     OPTION(PARAM_INT, bad),
     .min = 0,
     .max = WORLD_NODES_MAX,
     .def = "1",
     .help = "Slow nodes."},
    {.name = "bad_percent",
     OPTION(PARAM_REAL, bad_percent),
     .min = 0,
     .max = 500,
     .def = "8",
     .unit = "%",
     .help = "How much slower they are."},
    {.name = "bad_from",
     OPTION(PARAM_INT, bad_from),
     .min = 0,
     .max = 1e6,
     .def = "0",
     .help = "The first slow run of each benchmark. 0: slow from the beginning."},
    {.name = "bad_metrics",
     OPTION(PARAM_INT, bad_metrics),
     .min = 0,
     .max = 100,
     .def = "0",
     .help = "Slow metrics of a slow node. 0: all."},
    {.name = "kind_share",
     OPTION(PARAM_REAL, kind_share),
     .min = 0,
     .max = 1,
     .def = "0",
     .help = "Share of the nodes that have fewer DIMMs."},
    {.name = "kind_percent",
     OPTION(PARAM_REAL, kind_percent),
     .min = 0,
     .max = 100,
     .def = "8",
     .unit = "%",
     .help = "How much slower their memory is."},
    {.name = "kind_hidden",
     OPTION(PARAM_BOOL, kind_hidden),
     .def = "false",
     .help = "No fact of these nodes states their DIMMs."},
    {.name = "waves",
     OPTION(PARAM_INT, waves),
     .min = 0,
     .max = 100,
     .def = "0",
     .help = "Waves of a rollout of new microcode, one wave per round of runs. A tenth of the "
             "nodes keeps the old one."},
    {.name = "rollout_percent",
     OPTION(PARAM_REAL, rollout_percent),
     .min = -50,
     .max = 50,
     .def = "0",
     .unit = "%",
     .help = "How much slower the new microcode is."},
};
const struct param_table world_options = {params, COUNT_OF(params)};

// What a class is.
static const struct {
    const char *cpu_model, *cpu_id, *architecture, *shape, *memory, *dimms, *dimms_fewer, *product;
    const char *microcode, *microcode_new, *bios, *bios_old;
    double local_ns, remote_ns, l1_ns, l2_ns, l3_ns, gbps;
    int ranks;
} kinds_of[WORLD_CLASSES_MAX] = {
    {"AMD EPYC 9654 96-Core Processor", "AuthenticAMD/25/17/1", "x86_64",
     "2 packages, 192 cores, 384 CPUs, 2 nodes", "0:384GiB 1:384GiB", "24x32GiB DDR5-4800",
     "12x64GiB DDR5-4800", "Virtual 2S-9654", "0xa10113e", "0xa101154", "1.9.0", "1.8.2", 112.4,
     208.7, 1.08, 3.86, 13.9, 721, 192},
    {"Intel(R) Xeon(R) Platinum 8480+", "GenuineIntel/6/143/8", "x86_64",
     "2 packages, 112 cores, 224 CPUs, 2 nodes", "0:256GiB 1:256GiB", "16x32GiB DDR5-4800",
     "8x64GiB DDR5-4800", "Virtual 2S-8480", "0x2b0004b1", "0x2b0005c0", "2.4.4", "2.1.3", 118.9,
     192.3, 1.31, 4.21, 33.1, 486, 112},
    {"Intel(R) Xeon(R) Gold 6330", "GenuineIntel/6/106/6", "x86_64",
     "2 packages, 56 cores, 112 CPUs, 2 nodes", "0:128GiB 1:128GiB", "16x16GiB DDR4-2933",
     "8x32GiB DDR4-2933", "Virtual 2S-6330", "0xd0003a5", "0xd0003d1", "1.12", "1.9", 84.6, 141.5,
     1.61, 4.52, 21.7, 301, 56},
    {"Neoverse-N1", "ARM/8/0xd0c/3", "aarch64", "2 packages, 160 cores, 160 CPUs, 2 nodes",
     "0:128GiB 1:128GiB", "16x16GiB DDR4-3200", "8x32GiB DDR4-3200", "Virtual 2S-N1", "unknown",
     "unknown", "0.42", "0.39", 103.2, 231.8, 1.33, 4.34, 32.6, 317, 160},
};

enum metric_of { OF_LOCAL, OF_REMOTE, OF_L1, OF_L2, OF_L3, OF_GBPS };
struct world_metric {
    const char *name;
    enum metric_of of;
    double factor;
};

static const struct world_metric latency_metrics[] = {
    {"latency.largest.median_ns", OF_LOCAL, 1},
    {"latency.dram.median_ns", OF_LOCAL, 1},
    {"latency.local.dram.median_ns", OF_LOCAL, 1},
    {"latency.l1.median_ns", OF_L1, 1},
    {"latency.l2.median_ns", OF_L2, 1},
    {"latency.l3.median_ns", OF_L3, 1},
    {"latency.n0.n0.median_ns", OF_LOCAL, 1},
    {"latency.n0.n1.median_ns", OF_REMOTE, 1},
    {"latency.n1.n0.median_ns", OF_REMOTE, 1.004},
    {"latency.n1.n1.median_ns", OF_LOCAL, 1.003},
};
static const struct world_metric bandwidth_metrics[] = {
    {"bandwidth.read.peak.gbps", OF_GBPS, 0.520},    {"bandwidth.read.least.gbps", OF_GBPS, 0.180},
    {"bandwidth.read.single.gbps", OF_GBPS, 0.044},  {"bandwidth.copy.peak.gbps", OF_GBPS, 0.470},
    {"bandwidth.copy.least.gbps", OF_GBPS, 0.160},   {"bandwidth.copy.single.gbps", OF_GBPS, 0.039},
    {"bandwidth.scale.peak.gbps", OF_GBPS, 0.468},   {"bandwidth.scale.least.gbps", OF_GBPS, 0.159},
    {"bandwidth.scale.single.gbps", OF_GBPS, 0.038}, {"bandwidth.add.peak.gbps", OF_GBPS, 0.495},
    {"bandwidth.add.least.gbps", OF_GBPS, 0.169},    {"bandwidth.add.single.gbps", OF_GBPS, 0.041},
    {"bandwidth.triad.peak.gbps", OF_GBPS, 0.500},   {"bandwidth.triad.least.gbps", OF_GBPS, 0.170},
    {"bandwidth.triad.single.gbps", OF_GBPS, 0.042}, {"bandwidth.triad.n0.n0.gbps", OF_GBPS, 0.5},
    {"bandwidth.triad.n0.n1.gbps", OF_GBPS, 0.170},  {"bandwidth.triad.n1.n0.gbps", OF_GBPS, 0.171},
    {"bandwidth.triad.n1.n1.gbps", OF_GBPS, 0.499},  {"bandwidth.read.n0.n1.gbps", OF_GBPS, 0.180},
};

static const struct {
    const char *name, *method, *variant;
    const struct world_metric *metrics;
    int n;
    double seconds;
} benchmarks_of[WORLD_BENCHMARKS] = {
    {"latency", "prp4-v1", "sizes=auto", latency_metrics, COUNT_OF(latency_metrics), 12.4},
    {"bandwidth", "stream-v1", "sizes=auto", bandwidth_metrics, COUNT_OF(bandwidth_metrics), 21.8},
};
_Static_assert(COUNT_OF(bandwidth_metrics) <= WORLD_METRICS_MAX, "a run's metrics");

// Every machine there is: class, DIMMs, microcode, firmware.
enum { MACHINES = WORLD_CLASSES_MAX * 2 * 2 * 2 };
static int machine_index(int class, bool fewer, bool rolled, bool old_bios)
{
    return ((class * 2 + fewer) * 2 + rolled) * 2 + old_bios;
}

struct world {
    struct world_options o;
    int digits;
    int *bad; // ascending, o.bad of them
    struct fingerprint machines[MACHINES];
};

enum random_of {
    RANDOM_BAD,
    RANDOM_KIND,
    RANDOM_WAVE,
    RANDOM_NODE,
    RANDOM_NODE_METRIC,
    RANDOM_RUN,
    RANDOM_RUN_METRIC,
    RANDOM_PHASE
};

// SplitMix64's finisher.
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t world_random(const struct world *w, enum random_of of, int node, int a, int b)
{
    uint64_t x = mix((uint64_t)w->o.seed + UINT64_C(0x9e3779b97f4a7c15));
    x = mix(x ^ ((uint64_t)of << 56) ^ (uint64_t)(uint32_t)node);
    return mix(x ^ ((uint64_t)(uint32_t)a << 32) ^ (uint64_t)(uint32_t)b);
}

static double world_uniform(const struct world *w, enum random_of of, int node, int a, int b)
{
    return ((double)(world_random(w, of, node, a, b) >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller, the cosine alone.
static double world_normal(const struct world *w, enum random_of of, int node, int a, int b)
{
    double u = world_uniform(w, of, node, a, b);
    double v = (double)(mix(world_random(w, of, node, a, b)) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static int node_class(const struct world *w, int node)
{
    return node % (int)w->o.classes;
}

static bool node_has_fewer(const struct world *w, int node)
{
    return world_uniform(w, RANDOM_KIND, node, 0, 0) < w->o.kind_share;
}

// The wave of a node's rollout from 0; -1: it keeps the old microcode.
static int node_wave(const struct world *w, int node)
{
    if (!w->o.waves || world_uniform(w, RANDOM_WAVE, node, 0, 0) < 0.1)
        return -1;
    return (int)(world_random(w, RANDOM_WAVE, node, 1, 0) % (uint64_t)w->o.waves);
}

// Waves are in the middle of the stored rounds, so that there are runs before and after.
static int wave_round(const struct world *w, int wave)
{
    int first = (int)(w->o.runs - w->o.waves) / 2;
    return (first > 0 ? first : 1) + wave;
}

static bool run_is_rolled(const struct world *w, const struct world_run *run)
{
    int wave = node_wave(w, run->node);
    return wave >= 0 && run->round >= wave_round(w, wave);
}

static int bad_order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static bool node_is_bad(const struct world *w, int node)
{
    return bsearch(&node, w->bad, (size_t)w->o.bad, sizeof *w->bad, bad_order) != NULL;
}

// Every second bad node also has older firmware: what is different about it.
static bool node_has_old_bios(const struct world *w, int node)
{
    return node_is_bad(w, node) && world_random(w, RANDOM_BAD, node, 1, 0) % 2 == 0;
}

static bool metric_is_bad(const struct world *w, const struct world_run *run, int metric)
{
    return run->round >= w->o.bad_from && node_is_bad(w, run->node) &&
           (!w->o.bad_metrics || metric < w->o.bad_metrics);
}

// Bad nodes are those whose hash falls first.
static void choose_bad(struct world *w)
{
    int found = 0, n = (int)w->o.nodes;
    for (uint64_t try = 0; found < w->o.bad; try++) {
        int node = (int)(mix((uint64_t)w->o.seed * 31 + try) % (uint64_t)n), i = 0;
        while (i < found && w->bad[i] != node)
            i++;
        if (i == found)
            w->bad[found++] = node;
    }
    qsort(w->bad, (size_t)found, sizeof *w->bad, bad_order);
}

static void make_machine(struct world *w, int class, bool fewer, bool rolled, bool old_bios)
{
    struct fingerprint *f = &w->machines[machine_index(class, fewer, rolled, old_bios)];
    struct facts *c = &f->machine_class, *s = &f->config;
    facts_add(c, "cpu_model", "%s", kinds_of[class].cpu_model);
    facts_add(c, "cpu_id", "%s", kinds_of[class].cpu_id);
    facts_add(c, "architecture", "%s", kinds_of[class].architecture);
    facts_add(c, "shape", "%s", kinds_of[class].shape);
    facts_add(c, "memory", "%s", kinds_of[class].memory);
    facts_add(c, "product", "%s", kinds_of[class].product);
    if (!w->o.kind_hidden)
        facts_add(c, "dimms", "%s", fewer ? kinds_of[class].dimms_fewer : kinds_of[class].dimms);
    facts_add(s, "bios_version", "%s", old_bios ? kinds_of[class].bios_old : kinds_of[class].bios);
    facts_add(s, "microcode", "%s",
              rolled ? kinds_of[class].microcode_new : kinds_of[class].microcode);
    facts_add(s, "kernel", "%s", "6.1.0-28-amd64 #1 SMP Debian 6.1.119-1");
    facts_add(s, "thp_enabled", "%s", "always");
    facts_add(s, "numa_balancing", "%s", "0");
    facts_add(s, "cpufreq_governor", "%s", "performance");
    facts_seal(c);
    facts_seal(s);
}

struct world *world_new(const struct world_options *o, struct err *err)
{
    char last[16];
    if (o->bad > o->nodes) {
        err_set(err, ERR_INVALID, "bad", "must be at most the number of nodes, %lld",
                (long long)o->nodes);
        return NULL;
    }
    struct world *w = calloc(1, sizeof *w);
    int *bad = calloc((size_t)o->bad + 1, sizeof *bad);
    if (!w || !bad) {
        free(w);
        free(bad);
        err_set(err, ERR_NO_MEMORY, "", "no memory for %lld nodes", (long long)o->nodes);
        return NULL;
    }
    w->o = *o;
    w->bad = bad;
    w->digits = snprintf(last, sizeof last, "%lld", (long long)o->nodes);
    choose_bad(w);
    for (int i = 0; i < MACHINES; i++)
        make_machine(w, i / 8, i / 4 % 2, i / 2 % 2, i % 2);
    return w;
}

void world_free(struct world *w)
{
    if (w)
        free(w->bad);
    free(w);
}

const struct world_options *world_get_options(const struct world *w)
{
    return &w->o;
}

void world_name(const struct world *w, int node, char out[static WORLD_NAME_ROOM])
{
    snprintf(out, WORLD_NAME_ROOM, "node%0*d", w->digits, node + 1);
}

int world_benchmark_find(const char *name)
{
    for (int b = 0; b < WORLD_BENCHMARKS; b++)
        if (strcmp(benchmarks_of[b].name, name) == 0)
            return b;
    return -1;
}

// Nodes measure at another time of the interval each, the same every day.
struct world_run world_past_run(const struct world *w, int node, int round, int benchmark)
{
    double phase = world_uniform(w, RANDOM_PHASE, node, 0, 0) * 0.5;
    double back = (double)(w->o.runs - 1 - round) + phase;
    int64_t finished = w->o.now_ms - (int64_t)(back * (double)w->o.interval_s * 1e3) -
                       (WORLD_BENCHMARKS - 1 - benchmark) * 60000;
    return (struct world_run){node, round, benchmark, finished};
}

const struct fingerprint *world_machine(const struct world *w, const struct world_run *run)
{
    return &w->machines[machine_index(node_class(w, run->node), node_has_fewer(w, run->node),
                                      run_is_rolled(w, run), node_has_old_bios(w, run->node))];
}

const struct facts *world_facts(const struct world *w, const char *hash)
{
    for (int i = 0; i < MACHINES; i++) {
        const struct fingerprint *f = &w->machines[i];
        if (strcmp(f->machine_class.hash, hash) == 0)
            return &f->machine_class;
        if (strcmp(f->config.hash, hash) == 0)
            return &f->config;
    }
    return NULL;
}

static double class_value(int class, const struct world_metric *m)
{
    const double of[] = {kinds_of[class].local_ns, kinds_of[class].remote_ns, kinds_of[class].l1_ns,
                         kinds_of[class].l2_ns,    kinds_of[class].l3_ns,     kinds_of[class].gbps};
    return of[m->of] * m->factor;
}

static bool metric_of_memory(const struct world_metric *m)
{
    return m->of == OF_LOCAL || m->of == OF_REMOTE || m->of == OF_GBPS;
}

// How much slower than the class's value, as a logarithm.
static double world_slower(const struct world *w, const struct world_run *run, int metric)
{
    const struct world_options *o = &w->o;
    const struct world_metric *m = &benchmarks_of[run->benchmark].metrics[metric];
    int id = run->benchmark * WORLD_METRICS_MAX + metric;
    int at = run->round * WORLD_BENCHMARKS + run->benchmark;
    double common = sqrt(o->correlation), own = sqrt(1 - o->correlation);
    double node = common * world_normal(w, RANDOM_NODE, run->node, 0, 0) +
                  own * world_normal(w, RANDOM_NODE_METRIC, run->node, id, 0);
    double noise = common * world_normal(w, RANDOM_RUN, run->node, at, 0) +
                   own * world_normal(w, RANDOM_RUN_METRIC, run->node, id, at);
    double days = (double)(run->finished_ms - o->now_ms) / day_ms;
    double x = (node * o->node_percent + noise * o->run_percent + days * o->drift_percent) / 100;
    if (metric_is_bad(w, run, metric))
        x += log1p(o->bad_percent / 100);
    if (metric_of_memory(m) && node_has_fewer(w, run->node))
        x += log1p(o->kind_percent / 100);
    if (run_is_rolled(w, run))
        x += log1p(o->rollout_percent / 100);
    return x;
}

int world_measure(const struct world *w, const struct world_run *run, struct summary *s,
                  struct metric list[static WORLD_METRICS_MAX])
{
    const struct fingerprint *f = world_machine(w, run);
    int n = benchmarks_of[run->benchmark].n, class = node_class(w, run->node);
    char name[WORLD_NAME_ROOM];
    double seconds = benchmarks_of[run->benchmark].seconds;
    world_name(w, run->node, name);
    *s = (struct summary){.metrics_version = 1,
                          .state = RUN_SUCCEEDED,
                          .finished_ms = run->finished_ms,
                          .measured_ms = run->finished_ms - (int64_t)(seconds * 1e3),
                          .duration_s = seconds,
                          .n_ranks = kinds_of[class].ranks,
                          .disturbed = 0.01};
    snprintf(s->node, sizeof s->node, "%s", name);
    snprintf(s->benchmark, sizeof s->benchmark, "%s", benchmarks_of[run->benchmark].name);
    snprintf(s->variant, sizeof s->variant, "%s", benchmarks_of[run->benchmark].variant);
    snprintf(s->method, sizeof s->method, "%s", benchmarks_of[run->benchmark].method);
    memcpy(s->class_hash, f->machine_class.hash, sizeof s->class_hash);
    memcpy(s->config_hash, f->config.hash, sizeof s->config_hash);
    for (int i = 0; i < n; i++) {
        const struct world_metric *m = &benchmarks_of[run->benchmark].metrics[i];
        double x = world_slower(w, run, i), value = class_value(class, m);
        struct metric *out = &list[i];
        *out = (struct metric){.value = m->of == OF_GBPS ? value / exp(x) : value * exp(x)};
        snprintf(out->name, sizeof out->name, "%s", m->name);
        snprintf(out->unit, sizeof out->unit, "%s", m->of == OF_GBPS ? "GB/s" : "ns");
        // Two standard deviations of a repeat.
        out->lo = out->value * (1 - 2 * w->o.run_percent / 100);
        out->hi = out->value * (1 + 2 * w->o.run_percent / 100);
    }
    return n;
}

static void write_classes(const struct world *w, struct jsonw *out)
{
    jsonw_array(out, "classes");
    for (int c = 0; c < w->o.classes; c++) {
        jsonw_object(out, NULL);
        jsonw_text(out, "cpu_model", kinds_of[c].cpu_model);
        jsonw_text(out, "class",
                   w->machines[machine_index(c, false, false, false)].machine_class.hash);
        jsonw_text(out, "class_fewer_dimms",
                   w->machines[machine_index(c, true, false, false)].machine_class.hash);
        jsonw_object(out, "values");
        for (int b = 0; b < WORLD_BENCHMARKS; b++)
            for (int i = 0; i < benchmarks_of[b].n; i++)
                jsonw_fixed(out, benchmarks_of[b].metrics[i].name,
                            class_value(c, &benchmarks_of[b].metrics[i]), 6);
        jsonw_end(out);
        jsonw_end(out);
    }
    jsonw_end(out);
}

static void write_node_truth(const struct world *w, int node, struct jsonw *out)
{
    char name[WORLD_NAME_ROOM];
    int wave = node_wave(w, node);
    world_name(w, node, name);
    jsonw_object(out, NULL);
    jsonw_text(out, "node", name);
    jsonw_i64(out, "class", node_class(w, node));
    jsonw_bool(out, "bad", node_is_bad(w, node));
    jsonw_bool(out, "old_bios", node_has_old_bios(w, node));
    jsonw_bool(out, "fewer_dimms", node_has_fewer(w, node));
    if (wave >= 0)
        jsonw_i64(out, "rolled_round", wave_round(w, wave));
    else
        jsonw_null(out, "rolled_round");
    jsonw_end(out);
}

void world_write_truth(const struct world *w, struct jsonw *out)
{
    jsonw_object(out, NULL);
    jsonw_object(out, "options");
    for (int i = 0; i < world_options.n; i++)
        param_write_value(&world_options.params[i], &w->o, out);
    jsonw_time(out, "now", w->o.now_ms);
    jsonw_end(out);
    write_classes(w, out);
    jsonw_array(out, "nodes");
    for (int i = 0; i < w->o.nodes; i++)
        write_node_truth(w, i, out);
    jsonw_end(out);
    jsonw_end(out);
}
