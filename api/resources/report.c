// SPDX-License-Identifier: Apache-2.0
// GET /v1/runs/{id}/report: the analysis of a run, or of a serial and a concurrent one.
#include "analysis/report/report.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/resources/resources.h"
#include "api/resources/run_side.h"
#include "api/services/run_topology.h"
#include "base/cleanup.h"
#include "base/jsonw.h"

static int source_of(const struct request *q, struct run_side *s, struct report_source *out,
                     struct err *err)
{
    const struct topology *topology;
    if (run_topology(api_of(q), &s->stored.run, &topology, err) < 0)
        return -1;
    *out = (struct report_source){.benchmark = (enum benchmark_id)s->stored.run.spec.benchmark,
                                  .matrices = s->stored.list,
                                  .n = s->stored.n,
                                  .ranks = s->stored.ranks,
                                  .n_ranks = s->stored.n_ranks,
                                  .topology = topology,
                                  .conditions = s->conditions,
                                  .machine = s->then.fingerprint};
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

struct report_heading {
    int64_t with;    // the other run of a pair, 0 if there is none
    char title[160]; // "Run 17: latency on n42"
};

static struct report *make_report(const struct request *q, struct report_heading *heading,
                                  struct err *err)
{
    struct run_side s CLEANUP(run_side_fini) = {0};
    struct run_side t CLEANUP(run_side_fini) = {0};
    *heading = (struct report_heading){0};
    if ((request_query(q, "with") && run_side_id(q, "with", &heading->with, err) < 0) ||
        run_side_load(q, "id", q->arg, &s, err) < 0)
        return NULL;
    const char *what = benchmarks[s.stored.run.spec.benchmark].name;
    snprintf(heading->title, sizeof heading->title, "Run %lld: %s on %s", (long long)q->arg, what,
             s.stored.run.node);
    struct report_source run, other;
    if (source_of(q, &s, &run, err) < 0)
        return NULL;
    if (!heading->with)
        return report_new(&run, NULL, err);
    if (run_side_load(q, "with", heading->with, &t, err) < 0 ||
        check_asked(&s.stored.run, &t.stored.run, err) < 0)
        return NULL;
    snprintf(heading->title, sizeof heading->title, "Runs %lld and %lld: %s on %s",
             (long long)q->arg, (long long)heading->with, what, s.stored.run.node);
    return source_of(q, &t, &other, err) < 0 ? NULL : report_new(&run, &other, err);
}

int report_markdown(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct report_heading heading;
    struct report *report = make_report(q, &heading, err);
    if (!report)
        return -1;
    buf_fmt(&body, "# %s\n\n", heading.title);
    report_write_markdown(report, &body);
    report_free(report);
    return reply_text(r, "text/markdown; charset=utf-8", &body, err);
}

int report_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct report_heading heading;
    const char *accept = request_header(q, "Accept");
    if (accept && strcasestr(accept, "text/markdown"))
        return report_markdown(q, r, err);
    struct report *report = make_report(q, &heading, err);
    if (!report)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "run", q->arg);
    if (heading.with)
        jsonw_i64(&w, "with", heading.with);
    report_write_json(report, &w, "report");
    jsonw_end(&w);
    report_free(report);
    return reply_json(r, 200, &body, err);
}
