// SPDX-License-Identifier: Apache-2.0
// GET /v1/compare: is one run slower than another, and what changed on the machine? Also as a
// picture, compare.svg.
#include "analysis/compare/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/cycles.h"
#include "analysis/compare/fact_changes.h"
#include "analysis/plot/difference.h"
#include "analysis/plot/plot.h"
#include "api/resources/resources.h"
#include "api/resources/run_side.h"
#include "api/services/run_topology.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"

static int options_from(const struct request *q, struct compare_options *o, struct err *err)
{
    const char *threshold = request_query(q, "threshold");
    *o = COMPARE_DEFAULTS;
    if (threshold && (!str_to_double(threshold, &o->threshold_percent) ||
                      o->threshold_percent < 0.1 || o->threshold_percent > 100))
        return err_set(err, ERR_INVALID, "threshold", "must be a percentage from 0.1 to 100");
    return request_query_bool(q, "allow_different", &o->allow_different, err);
}

// Runs of one mode each have no matrix in common, but a report on both says what one mode costs
// against the other.
static int refuse_modes(const struct run_side *a, const struct run_side *b, struct err *err)
{
    static const char *const modes[] = {"serial", "concurrent"};
    static const char *const says[] = {"one rank at a time", "all ranks at once"};
    int first = stored_run_matrix(&a->stored, modes[0]) ? 0 : 1;
    return err_set(err, ERR_CONFLICT, "mode",
                   "run %lld is %s (%s), run %lld is %s (%s): they measure different things, so "
                   "there is no verdict. A report on both states the contention: "
                   "numaprobe report %lld %lld (GET /v1/runs/%lld/report?with=%lld)",
                   (long long)a->stored.run.id, modes[first], says[first],
                   (long long)b->stored.run.id, modes[!first], says[!first],
                   (long long)a->stored.run.id, (long long)b->stored.run.id,
                   (long long)a->stored.run.id, (long long)b->stored.run.id);
}

static bool one_mode_each(const struct run_side *a, const struct run_side *b)
{
    return (stored_run_matrix(&a->stored, "serial") &&
            stored_run_matrix(&b->stored, "concurrent")) ||
           (stored_run_matrix(&a->stored, "concurrent") && stored_run_matrix(&b->stored, "serial"));
}

// "latency, bandwidth"; of many the first.
static void list_matrices(const struct run_side *s, char *out, size_t room)
{
    enum { NAMED = 3 };
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < s->stored.n && i < NAMED && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? ", " : "",
                                 s->stored.list[i].name);
    if (s->stored.n > NAMED && used < room)
        snprintf(out + used, room - used, " and %d more", s->stored.n - NAMED);
}

static int refuse_matrices(const char *name, const struct run_side *a, const struct run_side *b,
                           struct err *err)
{
    char of_a[80], of_b[80];
    list_matrices(a, of_a, sizeof of_a);
    list_matrices(b, of_b, sizeof of_b);
    return err_set(err, name ? ERR_INVALID : ERR_CONFLICT, name ? "matrix" : "target",
                   "the two runs have no matrix%s%s in common: run %lld has %s; run %lld has %s",
                   name ? " " : "", name ? name : "", (long long)a->stored.run.id, of_a,
                   (long long)b->stored.run.id, of_b);
}

// The matrix requested, or the first that both have.
static int choose_matrix(const char *name, const struct run_side *a, const struct run_side *b,
                         const struct matrix **ma, struct err *err)
{
    for (int i = 0; i < a->stored.n; i++)
        if ((!name || strcmp(a->stored.list[i].name, name) == 0) &&
            stored_run_matrix(&b->stored, a->stored.list[i].name)) {
            *ma = &a->stored.list[i];
            return 0;
        }
    if (!name && one_mode_each(a, b))
        return refuse_modes(a, b, err);
    if (a->stored.run.spec.benchmark != b->stored.run.spec.benchmark)
        return err_set(err, name ? ERR_INVALID : ERR_CONFLICT, name ? "matrix" : "target",
                       "run %lld is of %s, run %lld of %s: they have no matrix%s%s in common",
                       (long long)a->stored.run.id, benchmarks[a->stored.run.spec.benchmark].name,
                       (long long)b->stored.run.id, benchmarks[b->stored.run.spec.benchmark].name,
                       name ? " " : "", name ? name : "");
    return refuse_matrices(name, a, b, err);
}

// All matrices that hold times. Those that cannot be converted are no matter unless they are the
// ones to compare.
static int in_cycles(struct run_side *s, const char *chosen, struct err *err)
{
    for (int i = 0; i < s->stored.n; i++) {
        struct err why = {0};
        if (matrix_to_cycles(&s->stored.list[i], s->stored.ranks, s->stored.n_ranks, &why) == 0 ||
            strcmp(s->stored.list[i].name, chosen) != 0)
            continue;
        *err = why;
        return err_prefix(err, "run %lld", (long long)s->stored.run.id);
    }
    return 0;
}

static struct compare_side compare_side_of(const struct run_side *s, const struct matrix *m)
{
    // The parameters of an import are a guess of ours, not a fact.
    return (struct compare_side){.matrix = m,
                                 .method = s->stored.run.method,
                                 .spec = s->stored.run.imported ? NULL : &s->stored.run.spec,
                                 .launcher = json_get_text(s->plan, "launcher", NULL),
                                 .node = *s->stored.run.node ? s->stored.run.node : NULL,
                                 .ranks = s->stored.ranks,
                                 .n_ranks = s->stored.n_ranks,
                                 .fingerprint = s->then.fingerprint};
}

// Two runs, matrix by matrix, and what all that comes to.
struct answer {
    const struct run_side *a, *b;
    const struct matrix *chosen; // of a: reported in detail
    bool alone;                  // it was requested, and it alone decides
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
    const struct matrix *other = stored_run_matrix(&n->b->stored, m->name);
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
    for (int i = 0; i < n->a->stored.n; i++)
        if (compare_one(n, &n->a->stored.list[i], o, &w, err) < 0)
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
    jsonw_i64(&w, "base", n->a->stored.run.id);
    jsonw_i64(&w, "target", n->b->stored.run.id);
    jsonw_text(&w, "verdict", verdict_names[n->conclusion.verdict]);
    jsonw_text(&w, "text", text);
    jsonw_text(&w, "matrix", n->chosen->name);
    jsonw_text(&w, "unit", n->chosen->unit);
    jsonw_fixed(&w, "threshold_percent", o->threshold_percent, 2);
    jsonw_raw(&w, "matrices", buf_text(&n->matrices));
    comparison_write_json(&n->detail, &side, &w, "comparison");
    if (machine_then_write_changes(&n->a->then, &n->b->then, &w, "fact_changes", err) < 0)
        return -1;
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

static int answer_fill(const struct request *q, struct run_side *a, struct run_side *b,
                       struct answer *n, struct compare_options *options, struct err *err)
{
    const char *matrix = request_query(q, "matrix");
    int64_t base, target;
    bool cycles = false;
    *n = (struct answer){.a = a, .b = b, .alone = matrix, .matrices = BUF_INIT};
    if (run_side_id(q, "base", &base, err) < 0 || run_side_id(q, "target", &target, err) < 0 ||
        options_from(q, options, err) < 0 || request_query_bool(q, "cycles", &cycles, err) < 0 ||
        run_side_load(q, "base", base, a, err) < 0 ||
        run_side_load(q, "target", target, b, err) < 0 ||
        choose_matrix(matrix, a, b, &n->chosen, err) < 0 ||
        (cycles &&
         (in_cycles(a, n->chosen->name, err) < 0 || in_cycles(b, n->chosen->name, err) < 0)))
        return -1;
    return compare_all(n, options, err);
}

int compare_get(struct request *q, struct reply *r, struct err *err)
{
    struct run_side a CLEANUP(run_side_fini) = {0};
    struct run_side b CLEANUP(run_side_fini) = {0};
    struct answer n CLEANUP(answer_fini) = {0};
    struct compare_options options;
    if (answer_fill(q, &a, &b, &n, &options, err) < 0)
        return -1;
    return answers_send_answer(&n, &options, r, err);
}

// --- As a picture --------------------------------------------------------------------------------

enum { FACTS_NAMED = 4 };

// "Facts of the machine that differ: microcode: 0x1 -> 0x2; 3 more".
static int facts_text(const struct run_side *a, const struct run_side *b, struct buf *out,
                      struct err *err)
{
    CLEANUP_MEM struct changes *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for changes");
    if (!a->then.fingerprint || !b->then.fingerprint) {
        buf_str(out, "The facts of the machine are not recorded for both runs.");
        return 0;
    }
    changes_find(c, a->then.fingerprint, b->then.fingerprint);
    buf_str(out, c->n ? "Facts of the machine that differ: "
                      : "No recorded fact of the machine "
                        "differs.");
    for (int i = 0; i < c->n && i < FACTS_NAMED; i++)
        buf_fmt(out, "%s%s: %s -> %s", i ? "; " : "", c->list[i].name,
                c->list[i].a ? c->list[i].a : "not known",
                c->list[i].b ? c->list[i].b : "not known");
    if (c->n > FACTS_NAMED)
        buf_fmt(out, "; %d more", c->n - FACTS_NAMED);
    return 0;
}

int compare_svg(struct request *q, struct reply *r, struct err *err)
{
    struct run_side a CLEANUP(run_side_fini) = {0};
    struct run_side b CLEANUP(run_side_fini) = {0};
    struct answer n CLEANUP(answer_fini) = {0};
    CLEANUP_BUF struct buf facts = BUF_INIT;
    CLEANUP_BUF struct buf svg = BUF_INIT;
    struct compare_options options;
    const struct topology *topology;
    char text[500];
    if (answer_fill(q, &a, &b, &n, &options, err) < 0 || facts_text(&a, &b, &facts, err) < 0 ||
        run_topology(api_of(q), &a.stored.run, &topology, err) < 0)
        return -1;
    conclusion_text(&n.conclusion, text, sizeof text);
    struct difference_picture d = {.plot = {.matrix = n.chosen,
                                            .ranks = a.stored.ranks,
                                            .n_ranks = a.stored.n_ranks,
                                            .run = &a.stored.run},
                                   .other = &b.stored.run,
                                   .other_matrix = stored_run_matrix(&b.stored, n.chosen->name),
                                   .comparison = &n.detail,
                                   .verdict = n.conclusion.verdict,
                                   .text = text,
                                   .facts = &facts};
    plot_marks_from(&d.plot, topology);
    if (difference_write_svg(&d, &svg, err) < 0)
        return -1;
    r->store = true;
    return reply_text(r, "image/svg+xml", &svg, err);
}
