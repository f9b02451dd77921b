// SPDX-License-Identifier: Apache-2.0
// Answers from stored runs: is this one slower than that one, and what is there to say about this
// one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/compare/compare.h"
#include "analysis/report/report.h"
#include "api/resources/machine_then.h"
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "core/results/stored_run.h"

// A finished run with everything that is known about it.
struct side {
    struct run run;
    struct matrix *list;
    int n, n_ranks;
    struct rank_info *ranks;
    struct past past;  // what the machine was
    struct json *plan; // NULL: not known
};

static void side_fini(struct side *s)
{
    run_fini(&s->run);
    store_matrices_free(s->list, s->n);
    free(s->ranks);
    past_fini(&s->past);
    json_free(s->plan);
}

static int side_load(const struct request *q, const char *member, int64_t id, struct side *s,
                     struct err *err)
{
    if (run_find(api_of(q), id, &s->run, err) < 0)
        return -1;
    if (s->run.state != RUN_SUCCEEDED)
        return err_set(err, ERR_CONFLICT, member, "run %lld is %s: it has no whole result",
                       (long long)id, run_state_names[s->run.state]);
    if (store_matrices_get(api_of(q)->store, id, &s->list, &s->n, err) < 0 ||
        store_ranks_get(api_of(q)->store, id, &s->ranks, &s->n_ranks, err) < 0)
        return -1;
    if (s->run.plan_json)
        s->plan = json_parse(s->run.plan_json, strlen(s->run.plan_json), NULL);
    return past_load(api_of(q), &s->run, &s->past, err);
}

static const struct matrix *answers_named(const struct side *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0)
            return &s->list[i];
    return NULL;
}

// --- Compare -----------------------------------------------------------------------------------

static int id_from(const struct request *q, const char *name, int64_t *id, struct err *err)
{
    const char *text = request_query(q, name);
    if (text && str_to_i64(text, id) && *id > 0)
        return 0;
    return err_set(err, ERR_INVALID, name, "must be the number of a run");
}

static int options_from(const struct request *q, struct compare_options *o, struct err *err)
{
    const char *threshold = request_query(q, "threshold");
    *o = COMPARE_DEFAULTS;
    if (threshold && (!str_to_double(threshold, &o->threshold_percent) ||
                      o->threshold_percent < 0.1 || o->threshold_percent > 100))
        return err_set(err, ERR_INVALID, "threshold", "must be per cent from 0.1 to 100");
    return request_query_bool(q, "anyway", &o->anyway, err);
}

// Runs of one mode each have no matrix in common, but a report on both says what one mode costs
// against the other.
static int refuse_modes(const struct side *a, const struct side *b, struct err *err)
{
    static const char *const modes[] = {"serial", "concurrent"};
    static const char *const says[] = {"one rank at a time", "all ranks at once"};
    int first = answers_named(a, modes[0]) ? 0 : 1;
    return err_set(err, ERR_CONFLICT, "mode",
                   "run %lld is %s (%s), run %lld is %s (%s): they measure different things, so "
                   "neither is slower than the other. A report on both says what contention costs: "
                   "numaprobe report %lld %lld (GET /v1/runs/%lld/report?with=%lld)",
                   (long long)a->run.id, modes[first], says[first], (long long)b->run.id,
                   modes[!first], says[!first], (long long)a->run.id, (long long)b->run.id,
                   (long long)a->run.id, (long long)b->run.id);
}

static bool one_mode_each(const struct side *a, const struct side *b)
{
    return (answers_named(a, "serial") && answers_named(b, "concurrent")) ||
           (answers_named(a, "concurrent") && answers_named(b, "serial"));
}

// The matrix asked for, or the first that both have.
static int choose_matrix(const char *name, const struct side *a, const struct side *b,
                         const struct matrix **ma, struct err *err)
{
    for (int i = 0; i < a->n; i++)
        if ((!name || strcmp(a->list[i].name, name) == 0) && answers_named(b, a->list[i].name)) {
            *ma = &a->list[i];
            return 0;
        }
    if (!name && one_mode_each(a, b))
        return refuse_modes(a, b, err);
    return err_set(err, name ? ERR_INVALID : ERR_CONFLICT, name ? "matrix" : "target",
                   "the two runs have no matrix%s%s in common", name ? " " : "", name ? name : "");
}

static struct compare_side compare_side_of(const struct side *s, const struct matrix *m)
{
    // What an import was asked for is a guess of ours, not a fact.
    return (struct compare_side){.matrix = m,
                                 .method = s->run.method,
                                 .spec = s->run.imported ? NULL : &s->run.spec,
                                 .launcher = json_get_text(s->plan, "launcher", NULL),
                                 .node = *s->run.node ? s->run.node : NULL,
                                 .ranks = s->ranks,
                                 .n_ranks = s->n_ranks,
                                 .fingerprint = s->past.fingerprint};
}

// Two runs, matrix by matrix, and what all that comes to.
struct answer {
    const struct side *a, *b;
    const struct matrix *chosen; // of a: told in detail
    bool alone;                  // it was asked for, and it alone decides
    struct comparison detail;    // of it
    struct conclusion conclusion;
    struct buf matrices; // JSON, one line each
};

static void answer_fini(struct answer *n)
{
    comparison_fini(&n->detail);
    buf_free(&n->matrices);
}

static int compare_one(struct answer *n, const struct matrix *m, const struct compare_options *o,
                       struct jsonw *w, struct err *err)
{
    struct comparison c CLEANUP(comparison_fini) = {0};
    const struct matrix *other = answers_named(n->b, m->name);
    const struct compare_side sa = compare_side_of(n->a, m);
    const struct compare_side sb = compare_side_of(n->b, other);
    struct err why = {0};
    if (!other)
        return 0;
    if (compare(&c, &sa, &sb, o, &why) < 0) {
        if (m != n->chosen && why.code != ERR_NO_MEMORY)
            return 0; // these two ask different questions; the chosen ones may not
        *err = why;
        return -1;
    }
    comparison_write_overall(&c, &sa, w, NULL);
    if (!n->alone || m == n->chosen)
        conclusion_add(&n->conclusion, &c, m);
    if (m == n->chosen) {
        n->detail = c;
        c = (struct comparison){0};
    }
    return 0;
}

static int compare_all(struct answer *n, const struct compare_options *o, struct err *err)
{
    struct jsonw w = jsonw_to(&n->matrices);
    jsonw_array(&w, NULL);
    for (int i = 0; i < n->a->n; i++)
        if (compare_one(n, &n->a->list[i], o, &w, err) < 0)
            return -1;
    jsonw_end(&w);
    return 0;
}

static int answers_send_answer(struct answer *n, const struct compare_options *o, struct reply *r,
                               struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    const struct compare_side side = compare_side_of(n->a, n->chosen);
    char text[500];
    struct jsonw w = jsonw_to(&body);
    conclusion_text(&n->conclusion, text, sizeof text);
    buf_needs(&body, &n->matrices);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "base", n->a->run.id);
    jsonw_i64(&w, "target", n->b->run.id);
    jsonw_text(&w, "verdict", verdict_names[n->conclusion.verdict]);
    jsonw_text(&w, "text", text);
    jsonw_text(&w, "matrix", n->chosen->name);
    jsonw_text(&w, "unit", n->chosen->unit);
    jsonw_fixed(&w, "threshold_percent", o->threshold_percent, 2);
    jsonw_raw(&w, "matrices", buf_text(&n->matrices));
    comparison_write_json(&n->detail, &side, &w, "comparison");
    if (past_write_changes(&n->a->past, &n->b->past, &w, "fact_changes", err) < 0)
        return -1;
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

int compare_get(struct request *q, struct reply *r, struct err *err)
{
    struct side a CLEANUP(side_fini) = {0};
    struct side b CLEANUP(side_fini) = {0};
    const char *matrix = request_query(q, "matrix");
    struct answer n CLEANUP(answer_fini) = {
        .a = &a, .b = &b, .alone = matrix, .matrices = BUF_INIT};
    struct compare_options options;
    int64_t base, target;
    if (id_from(q, "base", &base, err) < 0 || id_from(q, "target", &target, err) < 0 ||
        options_from(q, &options, err) < 0 || side_load(q, "base", base, &a, err) < 0 ||
        side_load(q, "target", target, &b, err) < 0 ||
        choose_matrix(matrix, &a, &b, &n.chosen, err) < 0 || compare_all(&n, &options, err) < 0)
        return -1;
    return answers_send_answer(&n, &options, r, err);
}

// --- Report ------------------------------------------------------------------------------------

// hwloc reads a stored topology in a process of its own, 50 ms for a large machine: those read last
// are kept, and which of them it cannot read, or not in time. A pair of runs needs two at once.
enum { TOPOLOGIES_KEPT = 4 };
static struct {
    char hash[65];
    bool readable;
    struct topology t;
} topologies[TOPOLOGIES_KEPT];
static int topologies_next;

int answers_topology(const struct request *q, const struct run *run, const struct topology **out,
                     struct err *err)
{
    *out = NULL;
    if (!*run->topology_hash)
        return 0;
    for (int i = 0; i < TOPOLOGIES_KEPT; i++)
        if (strcmp(topologies[i].hash, run->topology_hash) == 0) {
            *out = topologies[i].readable ? &topologies[i].t : NULL;
            return 0;
        }
    struct topology t = {0};
    const struct topology *found;
    if (stored_run_topology(api_of(q)->store, api_of(q)->machine, run->id, &t, &found, err) < 0)
        return -1;
    *out = found;
    if (found && found != &t) // this machine's
        return 0;
    int at = topologies_next;
    topologies_next = (topologies_next + 1) % TOPOLOGIES_KEPT;
    topology_fini(&topologies[at].t);
    snprintf(topologies[at].hash, sizeof topologies[at].hash, "%s", run->topology_hash);
    topologies[at].readable = found != NULL;
    topologies[at].t = t;
    *out = found ? &topologies[at].t : NULL;
    return 0;
}

static int source_of(const struct request *q, struct side *s, struct report_source *out,
                     struct err *err)
{
    const struct topology *topology;
    if (answers_topology(q, &s->run, &topology, err) < 0)
        return -1;
    *out = (struct report_source){.benchmark = (enum benchmark_id)s->run.spec.benchmark,
                                  .matrices = s->list,
                                  .n = s->n,
                                  .ranks = s->ranks,
                                  .n_ranks = s->n_ranks,
                                  .topology = topology};
    return 0;
}

// Whether a pair of runs is of one machine and was asked the same but for the mode; what an import
// was asked is not known.
static int check_asked(const struct side *a, const struct side *b, struct err *err)
{
    if (strcmp(a->run.node, b->run.node) != 0)
        return err_set(err, ERR_CONFLICT, "with",
                       "a pair is of one node; run %lld is of %s, run %lld of %s",
                       (long long)a->run.id, a->run.node, (long long)b->run.id, b->run.node);
    if (*a->run.method && *b->run.method && strcmp(a->run.method, b->run.method) != 0)
        return err_set(err, ERR_CONFLICT, "with",
                       "the method differs: %s in run %lld, %s in run %lld", a->run.method,
                       (long long)a->run.id, b->run.method, (long long)b->run.id);
    struct spec_difference d[8];
    if (a->run.imported || b->run.imported)
        return 0;
    int n = spec_difference(&a->run.spec, &b->run.spec, d, COUNT_OF(d));
    for (int i = 0; i < n && i < (int)COUNT_OF(d); i++)
        if (strcmp(d[i].name, "mode") != 0)
            return err_set(
                err, ERR_CONFLICT, "with",
                "a pair differs in mode only; %s is %.60s in run %lld, %.60s in run %lld",
                d[i].name, *d[i].a ? d[i].a : "none", (long long)a->run.id,
                *d[i].b ? d[i].b : "none", (long long)b->run.id);
    return 0;
}

struct told {
    int64_t with;    // the other run of a pair, 0 if there is none
    char title[160]; // "Run 17: latency on n42"
};

static struct report *make_report(const struct request *q, struct told *told, struct err *err)
{
    struct side s CLEANUP(side_fini) = {0};
    struct side t CLEANUP(side_fini) = {0};
    *told = (struct told){0};
    if ((request_query(q, "with") && id_from(q, "with", &told->with, err) < 0) ||
        side_load(q, "id", q->arg, &s, err) < 0)
        return NULL;
    const char *what = benchmarks[s.run.spec.benchmark].name;
    snprintf(told->title, sizeof told->title, "Run %lld: %s on %s", (long long)q->arg, what,
             s.run.node);
    struct report_source run, other;
    if (source_of(q, &s, &run, err) < 0)
        return NULL;
    if (!told->with)
        return report_new(&run, NULL, err);
    if (side_load(q, "with", told->with, &t, err) < 0 || check_asked(&s, &t, err) < 0)
        return NULL;
    snprintf(told->title, sizeof told->title, "Runs %lld and %lld: %s on %s", (long long)q->arg,
             (long long)told->with, what, s.run.node);
    return source_of(q, &t, &other, err) < 0 ? NULL : report_new(&run, &other, err);
}

int report_markdown(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct told told;
    struct report *report = make_report(q, &told, err);
    if (!report)
        return -1;
    buf_fmt(&body, "# %s\n\n", told.title);
    report_write_markdown(report, &body);
    report_free(report);
    return reply_text(r, "text/markdown; charset=utf-8", &body, err);
}

int report_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct told told;
    const char *accept = request_header(q, "Accept");
    if (accept && strcasestr(accept, "text/markdown"))
        return report_markdown(q, r, err);
    struct report *report = make_report(q, &told, err);
    if (!report)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "run", q->arg);
    if (told.with)
        jsonw_i64(&w, "with", told.with);
    report_write_json(report, &w, "report");
    jsonw_end(&w);
    report_free(report);
    return reply_json(r, 200, &body, err);
}
