// SPDX-License-Identifier: Apache-2.0
// GET /v1/runs/{id}/report: the analysis of a run, or of a serial and a concurrent one, as JSON,
// Markdown or a page.
#include "analysis/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/page.h"
#include "api/resources/resources.h"
#include "api/resources/run_side.h"
#include "api/services/run_topology.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/results/baseline_check.h"
#include "model/plan.h"
#include "model/spec_values.h"

static int source_of(const struct request *q, struct run_side *s, struct report_source *out,
                     struct err *err)
{
    const struct topology *topology;
    if (run_topology(api_of(q), &s->stored.run, &topology, err) < 0)
        return -1;
    *out =
        (struct report_source){.benchmark = (enum benchmark_id)s->stored.run.spec.benchmark,
                               .matrices = s->stored.list,
                               .n = s->stored.n,
                               .ranks = s->stored.ranks,
                               .n_ranks = s->stored.n_ranks,
                               .topology = topology,
                               .conditions = s->conditions,
                               .machine = s->then.fingerprint,
                               .found_bytes = plan_read_found(s->stored.run.plan_json),
                               .size_bytes = (int64_t)spec_bytes_per_rank(&s->stored.run.spec, 0),
                               .stores = (enum stores)s->stored.run.spec.stores};
    return 0;
}

// Whether a pair of runs is of one machine and was asked the same but for the mode; what an import
// was asked is not known.
static int check_asked(const struct run *a, const struct run *b, struct err *err)
{
    if (strcmp(a->node, b->node) != 0)
        return err_set(err, ERR_CONFLICT, "with",
                       "the runs of a pair must be of one node; run %lld is of %s, run %lld of %s",
                       (long long)a->id, a->node, (long long)b->id, b->node);
    if (*a->method && *b->method && strcmp(a->method, b->method) != 0)
        return err_set(err, ERR_CONFLICT, "with",
                       "the method differs: %s in run %lld, %s in run %lld", a->method,
                       (long long)a->id, b->method, (long long)b->id);
    struct spec_difference d[8];
    if (a->imported || b->imported)
        return 0;
    int n = spec_difference(&a->spec, &b->spec, d, COUNT_OF(d));
    for (int i = 0; i < n && i < (int)COUNT_OF(d); i++)
        if (strcmp(d[i].name, "mode") != 0)
            return err_set(err, ERR_CONFLICT, "with",
                           "the runs of a pair must differ in mode only; %s is %.60s in run %lld, "
                           "%.60s in run %lld",
                           d[i].name, *d[i].a ? d[i].a : "none", (long long)a->id,
                           *d[i].b ? d[i].b : "none", (long long)b->id);
    return 0;
}

// A report with the runs that it is about.
struct reporting {
    int64_t with;    // the other run of a pair, 0 if there is none
    char title[160]; // "Run 17: latency on n42"
    struct run_side sides[PAGE_RUNS_MAX];
    struct report_source sources[PAGE_RUNS_MAX];
    struct report *report;
};

static void reporting_fini(struct reporting *g)
{
    report_free(g->report);
    for (int i = 0; i < PAGE_RUNS_MAX; i++)
        run_side_fini(&g->sides[i]);
}

static int reporting_fill(const struct request *q, struct reporting *g, struct err *err)
{
    struct run_side *s = &g->sides[0], *t = &g->sides[1];
    if ((request_query(q, "with") && run_side_id(q, "with", &g->with, err) < 0) ||
        run_side_load(q, "id", q->arg, s, err) < 0)
        return -1;
    const char *what = benchmarks[s->stored.run.spec.benchmark].name;
    snprintf(g->title, sizeof g->title, "Run %lld: %s on %s", (long long)q->arg, what,
             s->stored.run.node);
    if (source_of(q, s, &g->sources[0], err) < 0)
        return -1;
    if (g->with) {
        if (run_side_load(q, "with", g->with, t, err) < 0 ||
            check_asked(&s->stored.run, &t->stored.run, err) < 0 ||
            source_of(q, t, &g->sources[1], err) < 0)
            return -1;
        snprintf(g->title, sizeof g->title, "Runs %lld and %lld: %s on %s", (long long)q->arg,
                 (long long)g->with, what, s->stored.run.node);
    }
    g->report = report_new(&g->sources[0], g->with ? &g->sources[1] : NULL, err);
    return g->report ? 0 : -1;
}

int report_markdown(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct reporting g CLEANUP(reporting_fini) = {0};
    if (reporting_fill(q, &g, err) < 0)
        return -1;
    buf_fmt(&body, "# %s\n\n", g.title);
    report_write_markdown(g.report, &body);
    return reply_text(r, "text/markdown; charset=utf-8", &body, err);
}

// What a check of the run against the default baseline says; `text` stays empty where there is no
// baseline that the run can be compared with.
static int verdict_of(const struct request *q, char *text, size_t room, bool *worse,
                      struct err *err)
{
    const struct api_services *api = api_of(q);
    struct check_options options = CHECK_DEFAULTS;
    struct check_result result = {0};
    struct baseline b;
    struct err why = {0};
    options.run = q->arg;
    if (baseline_check_choose(api->store, "", &b, &why) < 0)
        return 0;
    int made = baseline_check_make(api->store, api->machine->hostname, &b, &options, &result, &why);
    if (made < 0 && why.code != ERR_CONFLICT) // of another benchmark or method, for example
        *err = why;
    else
        made = 0;
    if (made == 0 && result.compared) {
        snprintf(text, room, "%s against the baseline %s: %s", check_state_names[result.state],
                 result.baseline, result.text);
        *worse = result.state != CHECK_OK;
    }
    free(result.changes);
    return made;
}

int report_html(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct reporting g CLEANUP(reporting_fini) = {0};
    char verdict[700] = "";
    struct page page = {.n = 1};
    if (reporting_fill(q, &g, err) < 0 ||
        verdict_of(q, verdict, sizeof verdict, &page.worse, err) < 0)
        return -1;
    page.title = g.title;
    page.verdict = *verdict ? verdict : NULL;
    page.report = g.report;
    page.n = g.with ? 2 : 1;
    for (int i = 0; i < page.n; i++)
        page.runs[i] = (struct page_run){&g.sides[i].stored.run, &g.sources[i]};
    if (page_write(&page, &body, err) < 0)
        return -1;
    r->store = true;
    r->standalone = true;
    return reply_text(r, "text/html; charset=utf-8", &body, err);
}

int report_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct reporting g CLEANUP(reporting_fini) = {0};
    static const char *const types[] = {"application/json", "text/markdown"};
    int form = request_accept_one(q, types, COUNT_OF(types), err);
    if (form < 0)
        return -1;
    if (form > 0)
        return report_markdown(q, r, err);
    if (reporting_fill(q, &g, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "run", q->arg);
    if (g.with)
        jsonw_i64(&w, "with", g.with);
    report_write_json(g.report, &w, "report");
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}
