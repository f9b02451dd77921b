// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define AT(member) offsetof(struct spec, member)
#define ROOM(member) sizeof(((struct spec *)NULL)->member)

static const char *const mode_names[] = {"concurrent", "serial", "both", NULL};
static const char *const page_names[] = {"thp", "4k", "huge", NULL};

static const struct param latency_params[] = {
    {.name = "size",
     .kind = PARAM_TEXT,
     .offset = AT(latency.size),
     .room = ROOM(latency.size),
     .def = "512",
     .metavar = "LIST",
     .help = "Working sets. A bare number is MiB; 32K, 4M, 16G; lists 1,8,64; a range 1-16384 "
             "doubles."},
    {.name = "mode",
     .kind = PARAM_ENUM,
     .offset = AT(latency.mode),
     .choices = mode_names,
     .def = "concurrent",
     .help =
         "All ranks at once under constant load, one rank at a time, or both on the same chains."},
    {.name = "pages",
     .kind = PARAM_ENUM,
     .offset = AT(latency.pages),
     .choices = page_names,
     .def = "thp",
     .help =
         "Page size to ask for: transparent huge pages, 4 KiB pages, or reserved huge pages. What "
         "was got is reported."},
    {.name = "stride",
     .kind = PARAM_BYTES,
     .offset = AT(latency.stride),
     .min = 0,
     .max = 1 << 20,
     .def = "0",
     .help = "Bytes from link to link, a multiple of 8; 0 is the machine's cache line."},
    {.name = "precision",
     .kind = PARAM_REAL,
     .offset = AT(latency.precision),
     .min = 0.05,
     .max = 50,
     .def = "1",
     .unit = "%",
     .help = "Sample until the 95 % interval of the median is within plus or minus this."},
    {.name = "min_samples",
     .kind = PARAM_INT,
     .offset = AT(latency.min_samples),
     .min = 7,
     .max = 10000,
     .def = "7",
     .help = "Samples a cell, at least."},
    {.name = "sample_us",
     .kind = PARAM_INT,
     .offset = AT(latency.sample_us),
     .min = 500,
     .max = 1000000,
     .def = "2000",
     .unit = "us",
     .help = "Length of one sample (and at least 10,000 hops)."},
    {.name = "cell_ms",
     .kind = PARAM_INT,
     .offset = AT(latency.cell_ms),
     .min = 20,
     .max = 600000,
     .def = "500",
     .unit = "ms",
     .help = "Time limit of sampling one cell; a cell that is not precise by then says so."},
    {.name = "seed",
     .kind = PARAM_INT,
     .offset = AT(latency.seed),
     .min = 0,
     .max = 4503599627370496.0,
     .def = "1",
     .help = "Seed of the random orders; rank r uses seed + r."},
};

static const struct param common_params[] = {
    {.name = "cpus",
     .kind = PARAM_TEXT,
     .offset = AT(cpus),
     .room = ROOM(cpus),
     .def = "",
     .metavar = "LIST",
     .help = "CPUs to run on (OS numbers), one rank each, in this order: 1,9,17. Overrides ranks."},
    {.name = "ranks",
     .kind = PARAM_TEXT,
     .offset = AT(ranks),
     .room = ROOM(ranks),
     .def = "all-cores",
     .metavar = "WHICH",
     .help = "Where ranks run: all-cores, one-per-numa, one-per-l3, or a number of ranks per NUMA "
             "node."},
    {.name = "numa",
     .kind = PARAM_TEXT,
     .offset = AT(numa),
     .room = ROOM(numa),
     .def = "local",
     .metavar = "NODES",
     .help = "NUMA node of each rank's memory: local, auto (round-robin over the nodes with "
             "memory), one "
             "node (3), or one node a rank (0,0,1,1)."},
    {.name = "hyperthreads",
     .kind = PARAM_BOOL,
     .offset = AT(hyperthreads),
     .def = "false",
     .help = "Use every hardware thread of a core, not only its first."},
    {.name = "oversubscribe",
     .kind = PARAM_BOOL,
     .offset = AT(oversubscribe),
     .def = "false",
     .help = "Allow several ranks on one CPU."},
    {.name = "timeout_s",
     .kind = PARAM_INT,
     .offset = AT(timeout_s),
     .min = 1,
     .max = 86400,
     .def = "900",
     .unit = "s",
     .help = "Deadline of the whole run; what is not done by then is killed."},
    {.name = "note",
     .kind = PARAM_TEXT,
     .offset = AT(note),
     .room = ROOM(note),
     .def = "",
     .help = "Free text kept with the run."},
};

const struct param_table spec_common = {common_params, COUNT_OF(common_params)};

const struct benchmark benchmarks[BENCHMARKS] = {
    [BENCHMARK_LATENCY] =
        {
            .name = "latency",
            .title = "Memory latency by pointer chasing",
            .help =
                "Each rank walks one random cycle of dependent loads through its working set, one "
                "link a cache line, and reports the time of a load.",
            .params = {latency_params, COUNT_OF(latency_params)},
        },
};

const struct benchmark *benchmark_find(const char *name)
{
    for (int i = 0; i < BENCHMARKS; i++)
        if (strcmp(benchmarks[i].name, name) == 0)
            return &benchmarks[i];
    return NULL;
}

void spec_init(struct spec *s, enum benchmark_id id)
{
    memset(s, 0, sizeof *s);
    s->benchmark = id;
    param_defaults(&spec_common, s);
    param_defaults(&benchmarks[id].params, s);
}

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int read_member(struct spec *s, const struct json *m, struct err *err)
{
    const struct param *p = param_find(&spec_common, json_name(m));
    if (!p)
        p = param_find(&benchmarks[s->benchmark].params, json_name(m));
    if (!p)
        return err_set(err, ERR_INVALID, json_name(m),
                       "is not a parameter of benchmark \"%s\" (GET /v1/benchmarks lists them)",
                       benchmarks[s->benchmark].name);
    return param_set_json(p, s, m, err);
}

int spec_from_json(struct spec *s, const struct json *object, const char *const *ignore,
                   struct err *err)
{
    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "",
                       "must be a JSON object such as {\"benchmark\":\"latency\"}");
    const struct json *which = json_get(object, "benchmark");
    if (!which)
        return err_set(err, ERR_INVALID, "benchmark", "is missing; for example \"latency\"");
    const struct benchmark *b = json_text(which) ? benchmark_find(json_text(which)) : NULL;
    if (!b)
        return err_set(err, ERR_INVALID, "benchmark",
                       "is not a benchmark (GET /v1/benchmarks lists them)");
    struct spec got;
    spec_init(&got, (enum benchmark_id)(b - benchmarks));
    for (const struct json *m = json_first(object); m; m = json_next(m)) {
        if (m == which || listed(ignore, json_name(m)))
            continue;
        if (read_member(&got, m, err) < 0)
            return -1;
    }
    if (spec_check(&got, err) < 0)
        return -1;
    *s = got;
    return 0;
}

void spec_write_json(const struct spec *s, struct jsonw *w, const char *key)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    jsonw_object(w, key);
    jsonw_text(w, "benchmark", b->name);
    for (int i = 0; i < b->params.n; i++)
        param_write_value(&b->params.params[i], s, w);
    for (int i = 0; i < spec_common.n; i++)
        param_write_value(&spec_common.params[i], s, w);
    jsonw_end(w);
}

static int check_ranks(const struct spec *s, struct err *err)
{
    static const char *const words[] = {"all-cores", "one-per-numa", "one-per-l3", NULL};
    uint64_t n;
    if (listed(words, s->ranks))
        return 0;
    if (!str_to_u64(s->ranks, &n) || n < 1 || n > SPEC_RANKS_MAX)
        return err_set(err, ERR_INVALID, "ranks",
                       "must be all-cores, one-per-numa, one-per-l3 or ranks per node from 1 to "
                       "%d; got \"%s\"",
                       SPEC_RANKS_MAX, s->ranks);
    return 0;
}

static int check_placement(const struct spec *s, struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    if (*s->cpus &&
        str_to_ids(s->cpus, s->oversubscribe, SPEC_RANKS_MAX, "cpus", &ids, &n, err) < 0)
        return -1;
    if (!*s->cpus && check_ranks(s, err) < 0)
        return -1;
    CLEANUP_MEM int *nodes = NULL;
    if (strcmp(s->numa, "local") == 0 || strcmp(s->numa, "auto") == 0)
        return 0;
    if (!*s->numa)
        return err_set(err, ERR_INVALID, "numa",
                       "must be local, auto, a node (3) or a list (0,0,1,1)");
    return str_to_ids(s->numa, true, SPEC_RANKS_MAX, "numa", &nodes, &n, err);
}

static int check_latency(const struct latency_params *p, struct err *err)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (str_to_sizes(p->size, SPEC_SIZES_MAX, "size", &sizes, &n, err) < 0)
        return -1;
    uint64_t stride = p->stride ? p->stride : 64;
    if (p->stride % 8)
        return err_set(err, ERR_INVALID, "stride", "must be a multiple of 8 bytes, got %llu",
                       (unsigned long long)p->stride);
    if (sizes[0] < 8 * stride)
        return err_set(err, ERR_INVALID, "size",
                       "the smallest, %llu bytes, holds fewer than 8 links of %llu",
                       (unsigned long long)sizes[0], (unsigned long long)stride);
    if (sizes[n - 1] > (uint64_t)1 << 46)
        return err_set(err, ERR_INVALID, "size", "the largest is above 64T");
    return 0;
}

int spec_check(const struct spec *s, struct err *err)
{
    if (check_placement(s, err) < 0)
        return -1;
    return check_latency(&s->latency, err);
}

static void write_params(const struct param_table *t, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < t->n; i++)
        param_write_catalogue(&t->params[i], w);
    jsonw_end(w);
}

void spec_write_catalogue(struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_array(w, "benchmarks");
    for (int i = 0; i < BENCHMARKS; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "name", benchmarks[i].name);
        jsonw_text(w, "title", benchmarks[i].title);
        jsonw_text(w, "help", benchmarks[i].help);
        write_params(&benchmarks[i].params, w, "params");
        jsonw_end(w);
    }
    jsonw_end(w);
    write_params(&spec_common, w, "common");
    jsonw_end(w);
}
