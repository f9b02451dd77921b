// SPDX-License-Identifier: Apache-2.0
// A small machine, matrices of any benchmark, and what a report of them must say.
#pragma once
#include <stdlib.h>

#include "analysis/report/report.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "model/shape.h"
#include "tests/unit/tap.h"

// Four ranks, two a node; node 0 has CPUs 0 and 1 behind one L3, node 1 has CPUs 2 and 3.
static struct rank_info ranks[4];
static struct topo_cpu cpus[4];
static int distance[4] = {10, 21, 21, 10};
static struct topo_node nodes[2] = {{.os = 0}, {.os = 1}};
static struct topo_cache caches[2] = {{.level = 3, .bytes = 32 << 20},
                                      {.level = 3, .bytes = 32 << 20}};
static struct topology machine = {.n_cpus = 4,
                                  .cpus = cpus,
                                  .n_nodes = 2,
                                  .nodes = nodes,
                                  .n_caches = 2,
                                  .caches = caches,
                                  .distance = distance};

static inline void build_machine(void)
{
    for (int i = 0; i < 4; i++) {
        ranks[i] = (struct rank_info){.rank = i, .cpu = i, .cpu_node = i / 2, .mem_node = i / 2};
        cpus[i] = (struct topo_cpu){.os = i, .core = i, .node = i / 2, .l3 = i / 2};
    }
}

static inline int shaped(struct matrix *m, enum benchmark_id id, const char *pairs,
                         const char *name, int rows, int cols)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    spec_init(&s, id);
    if (pairs)
        param_set_text(spec_param(&s, strchr(pairs, '-')          ? "sweep"
                                      : id == BENCHMARK_PAGEFAULT ? "cost"
                                                                  : "pairs"),
                       &s, strchr(pairs, '-') ? strchr(pairs, '-') + 1 : pairs, NULL);
    const struct shape *shape = shape_find(list, shape_list(&s, list), name);
    return shape ? shape_make(m, shape, rows, cols, NULL) : -1;
}

static inline void put(struct matrix *m, int row, int col, double v)
{
    struct cell *c = matrix_at(m, row, col);
    c->v[CELL_N] = 16;
    c->v[CELL_DISTURBED] = 0;
    c->v[CELL_MEDIAN] = v;
    c->v[CELL_LO] = 0.99 * v;
    c->v[CELL_HI] = 1.01 * v;
}

// Says each of `says` (ends with NULL) and none of `not`; JSON's findings are the same sentences.
static const struct json *conditions;        // of the next run; NULL: not known
static const struct fingerprint *facts_then; // likewise

static inline void check_report(enum benchmark_id id, const struct matrix *list, int n,
                                const char *const *says, const char *const * not )
{
    const struct report_source run = {.benchmark = id,
                                      .matrices = list,
                                      .n = n,
                                      .ranks = ranks,
                                      .n_ranks = 4,
                                      .topology = &machine,
                                      .conditions = conditions,
                                      .machine = facts_then};
    CLEANUP_BUF struct buf md = BUF_INIT, js = BUF_INIT;
    struct jsonw w = jsonw_to(&js);
    struct err err = {0};
    struct report *r = report_new(&run, NULL, &err);
    CHECK(r != NULL, "%s has a report %s", benchmarks[id].name, err.text);
    if (!r)
        return;
    report_write_markdown(r, &md);
    report_write_json(r, &w, NULL);
    report_free(r);
    if (getenv("SHOW") != NULL)
        fputs(buf_text(&md), stderr);
    for (; *says; says++)
        CHECK(strstr(buf_text(&md), *says) != NULL, "says: %s", *says);
    for (; not &&*not ; not ++)
        CHECK(strstr(buf_text(&md), *not ) == NULL, "does not say: %s", *not );
    CLEANUP_JSON struct json *root = json_parse(buf_text(&js), js.len, &err);
    bool same = json_count(json_get(root, "findings")) > 0;
    for (const struct json *f = json_first(json_get(root, "findings")); f; f = json_next(f))
        same = same && strstr(buf_text(&md), json_get_text(f, "text", "?")) != NULL &&
               json_get_text(f, "kind", NULL) != NULL && json_count(f) > 2;
    CHECK(same, "JSON has the same sentences, each with its kind and numbers %s", err.text);
}
