// SPDX-License-Identifier: Apache-2.0
// The document has three levels, so that names stand once: classes, probes, metrics. In memory it
// is one list.
#include "analysis/peers/class_reference.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/kinds.h"
#include "analysis/peers/table.h"
#include "analysis/stats/distributions.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#define REFERENCE_FORMAT "numaprobe-reference"
#define REFERENCE_KINDS_LEAST 0.0295588 // log 1.03
#define REFERENCE_Q 0.05
#define SPREAD_MAX 10.0 // log
#define MEDIAN_MAX 1e15
#define NUMBER_LEAST 1e-12

static int reference_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for a reference");
}

void class_reference_fini(struct class_reference *r)
{
    free(r->list);
    *r = (struct class_reference){0};
}

static struct class_reference_metric *reference_add(struct class_reference *r, int *room,
                                                    struct err *err)
{
    if (r->n == *room) {
        int more = *room ? 2 * *room : 64;
        struct class_reference_metric *list = realloc(r->list, more * sizeof *list);
        if (!list) {
            reference_no_memory(err);
            return NULL;
        }
        r->list = list;
        *room = more;
    }
    r->list[r->n] = (struct class_reference_metric){0};
    return &r->list[r->n++];
}

// --- Made of a fleet ---------------------------------------------------------------------------

static int reference_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The largest kind of the metric. False: too few nodes.
static bool metric_spread(const struct newest *n, int metric, double *scratch, struct spread *out)
{
    struct kinds kinds;
    int count = 0;
    for (int i = 0; i < n->nodes; i++)
        if (!isnan(n->now[(size_t)metric * n->nodes + i]))
            scratch[count++] = n->now[(size_t)metric * n->nodes + i];
    if (count < REFERENCE_NODES_MIN)
        return false;
    qsort(scratch, count, sizeof *scratch, reference_ascending);
    kinds_find(&kinds, scratch, count, REFERENCE_KINDS_LEAST, n->grain[metric]);
    *out = kinds.list[kinds_largest(&kinds)].spread;
    return true;
}

static void describe_metric(struct class_reference_metric *m, const struct fleet *f,
                            const struct fleet_table *t, int metric, const struct spread *s,
                            double noise)
{
    const struct fleet_probe *p = &f->probe[t->probe[t->metric_probe[metric]]];
    const char *cpu = fleet_fact(&f->class_facts[t->class], "cpu_model");
    snprintf(m->class_hash, sizeof m->class_hash, "%s", f->classes.list[t->class]);
    snprintf(m->cpu, sizeof m->cpu, "%s", cpu ? cpu : "");
    snprintf(m->benchmark, sizeof m->benchmark, "%s", p->benchmark);
    snprintf(m->variant, sizeof m->variant, "%s", p->variant);
    snprintf(m->method, sizeof m->method, "%s", p->method);
    m->metrics_version = p->metrics_version;
    snprintf(m->name, sizeof m->name, "%s", fleet_table_metric(t, f, metric));
    snprintf(m->unit, sizeof m->unit, "%s", fleet_table_unit(t, f, metric));
    m->median = newest_value(s->centre, t->more[metric], t->loss[metric]);
    m->spread = fmax(s->scale, KIND_SCALE_MIN);
    m->runs = fmax(isnan(noise) ? 0 : noise, KIND_SCALE_MIN);
    m->nodes = s->n;
}

static int add_class_metrics(struct class_reference *r, int *room, const struct fleet *f,
                             const struct fleet_table *t, struct err *err)
{
    struct newest newest;
    struct newest_column column = {0};
    CLEANUP_MEM double *scratch = malloc((t->in.nodes + 1) * sizeof *scratch);
    if (!scratch)
        return reference_no_memory(err);
    if (newest_find(&newest, &t->in, false, err) < 0)
        return -1;
    int rc = newest_column_init(&column, &t->in, err);
    for (int m = 0; m < t->in.metrics && rc == 0; m++) {
        struct spread s;
        if (!metric_spread(&newest, m, scratch, &s))
            continue;
        newest_column_fill(&column, m);
        struct class_reference_metric *made = reference_add(r, room, err);
        if (!made)
            rc = -1;
        else
            describe_metric(made, f, t, m, &s, newest_noise(&column));
    }
    newest_column_fini(&column);
    newest_fini(&newest);
    return rc;
}

int class_reference_make(struct class_reference *out, const struct fleet *f, struct err *err)
{
    struct class_reference made = {.created_ms = f->o.now_ms};
    int room = 0, rc = 0;
    for (int class = 0; class < f->classes.n && rc == 0; class ++) {
        struct fleet_table t;
        if (fleet_class_nodes(f, class) < REFERENCE_NODES_MIN)
            continue;
        rc = fleet_table_make(&t, f, class, NULL, err);
        if (rc < 0)
            break;
        rc = add_class_metrics(&made, &room, f, &t, err);
        fleet_table_fini(&t);
    }
    if (rc < 0)
        class_reference_fini(&made);
    else
        *out = made;
    return rc;
}

// --- Written -----------------------------------------------------------------------------------

static bool same_class(const struct class_reference_metric *a,
                       const struct class_reference_metric *b)
{
    return strcmp(a->class_hash, b->class_hash) == 0;
}

static bool same_probe(const struct class_reference_metric *a,
                       const struct class_reference_metric *b)
{
    return same_class(a, b) && strcmp(a->benchmark, b->benchmark) == 0 &&
           strcmp(a->variant, b->variant) == 0 && strcmp(a->method, b->method) == 0 &&
           a->metrics_version == b->metrics_version;
}

static void write_metric(const struct class_reference_metric *m, struct jsonw *w)
{
    char median[40];
    snprintf(median, sizeof median, "%.6g", m->median);
    jsonw_object(w, NULL);
    jsonw_text(w, "metric", m->name);
    jsonw_text(w, "unit", m->unit);
    jsonw_raw(w, "median", median);
    jsonw_fixed(w, "spread_percent", 100 * m->spread, 3);
    jsonw_fixed(w, "runs_percent", 100 * m->runs, 3);
    jsonw_i64(w, "nodes", m->nodes);
    jsonw_end(w);
}

// Metrics from `at` on, of one probe. Returns the first of another.
static int write_probe(const struct class_reference *r, int at, struct jsonw *w)
{
    const struct class_reference_metric *first = &r->list[at];
    jsonw_object(w, NULL);
    jsonw_text(w, "benchmark", first->benchmark);
    jsonw_text(w, "variant", first->variant);
    jsonw_text(w, "method", first->method);
    jsonw_i64(w, "metrics_version", first->metrics_version);
    jsonw_array(w, "metrics");
    for (; at < r->n && same_probe(first, &r->list[at]); at++)
        write_metric(&r->list[at], w);
    jsonw_end(w);
    jsonw_end(w);
    return at;
}

void class_reference_write_json(const struct class_reference *r, struct jsonw *w)
{
    jsonw_text(w, "format", REFERENCE_FORMAT);
    jsonw_i64(w, "version", REFERENCE_VERSION);
    jsonw_time(w, "created", r->created_ms);
    jsonw_array(w, "classes");
    for (int at = 0; at < r->n;) {
        const struct class_reference_metric *first = &r->list[at];
        jsonw_object(w, NULL);
        jsonw_text(w, "class", first->class_hash);
        jsonw_text(w, "cpu", first->cpu);
        jsonw_array(w, "probes");
        while (at < r->n && same_class(first, &r->list[at]))
            at = write_probe(r, at, w);
        jsonw_end(w);
        jsonw_end(w);
    }
    jsonw_end(w);
}

// --- Read --------------------------------------------------------------------------------------

struct reference_reader {
    struct class_reference *out;
    int room;
    char where[48]; // "classes[0].probes[1].metrics[2]"
    struct err *err;
};

__attribute__((format(printf, 3, 4))) static int reference_wrong(const struct reference_reader *r,
                                                                 const char *member,
                                                                 const char *what, ...)
{
    char path[96], text[200];
    va_list ap;
    va_start(ap, what);
    vsnprintf(text, sizeof text, what, ap);
    va_end(ap);
    snprintf(path, sizeof path, "%s%s%s", r->where, *r->where ? "." : "", member);
    return err_set(r->err, ERR_INVALID, path, "%s", text);
}

// Printable, and short enough.
static int read_member_text(const struct reference_reader *r, const struct json *object,
                            const char *member, char *out, size_t room)
{
    const char *text = json_text(json_get(object, member));
    if (!text)
        return reference_wrong(r, member, "must be a text");
    if (strlen(text) >= room)
        return reference_wrong(r, member, "must have at most %zu bytes", room - 1);
    if (!utf8_all_shown(text))
        return reference_wrong(r, member, "has a control character");
    snprintf(out, room, "%s", text);
    return 0;
}

static int read_member_name(const struct reference_reader *r, const struct json *object,
                            const char *member, char *out, size_t room)
{
    if (read_member_text(r, object, member, out, room) < 0)
        return -1;
    return *out ? 0 : reference_wrong(r, member, "must not be empty");
}

static int read_member_number(const struct reference_reader *r, const struct json *object,
                              const char *member, double most, double *out)
{
    double v;
    if (!json_number(json_get(object, member), &v) || !(v >= NUMBER_LEAST && v <= most))
        return reference_wrong(r, member, "must be a number from %g to %g", NUMBER_LEAST, most);
    *out = v;
    return 0;
}

static int read_member_count(const struct reference_reader *r, const struct json *object,
                             const char *member, int *out)
{
    enum { MOST = 1000000000 };
    int64_t v;
    if (!json_i64(json_get(object, member), &v) || v < 1 || v > MOST)
        return reference_wrong(r, member, "must be a whole number from 1 to %d", MOST);
    *out = (int)v;
    return 0;
}

static int reference_read_metric(struct reference_reader *r, const struct json *j,
                                 const struct class_reference_metric *probe)
{
    if (r->out->n == REFERENCE_METRICS_MAX)
        return reference_wrong(r, "metric", "is one more than a reference may have");
    struct class_reference_metric *m = reference_add(r->out, &r->room, r->err);
    double spread = 0, runs = 0;
    if (!m)
        return -1;
    *m = *probe;
    if (read_member_name(r, j, "metric", m->name, sizeof m->name) < 0 ||
        read_member_text(r, j, "unit", m->unit, sizeof m->unit) < 0 ||
        read_member_number(r, j, "median", MEDIAN_MAX, &m->median) < 0 ||
        read_member_number(r, j, "spread_percent", 100 * SPREAD_MAX, &spread) < 0 ||
        read_member_number(r, j, "runs_percent", 100 * SPREAD_MAX, &runs) < 0 ||
        read_member_count(r, j, "nodes", &m->nodes) < 0)
        return -1;
    m->spread = spread / 100;
    m->runs = runs / 100;
    return 0;
}

static int read_probe(struct reference_reader *r, const struct json *j,
                      struct class_reference_metric *probe)
{
    char base[sizeof r->where];
    int i = 0;
    snprintf(base, sizeof base, "%s", r->where);
    if (read_member_name(r, j, "benchmark", probe->benchmark, sizeof probe->benchmark) < 0 ||
        read_member_text(r, j, "variant", probe->variant, sizeof probe->variant) < 0 ||
        read_member_name(r, j, "method", probe->method, sizeof probe->method) < 0 ||
        read_member_count(r, j, "metrics_version", &probe->metrics_version) < 0)
        return -1;
    if (!json_is_array(json_get(j, "metrics")))
        return reference_wrong(r, "metrics", "must be an array");
    for (const struct json *m = json_first(json_get(j, "metrics")); m; m = json_next(m), i++) {
        snprintf(r->where, sizeof r->where, "%.30s.metrics[%d]", base, i);
        if (reference_read_metric(r, m, probe) < 0)
            return -1;
    }
    return 0;
}

static int read_class(struct reference_reader *r, const struct json *j)
{
    struct class_reference_metric probe = {0};
    char base[sizeof r->where];
    int i = 0;
    snprintf(base, sizeof base, "%s", r->where);
    if (read_member_name(r, j, "class", probe.class_hash, sizeof probe.class_hash) < 0 ||
        read_member_text(r, j, "cpu", probe.cpu, sizeof probe.cpu) < 0)
        return -1;
    if (!json_is_array(json_get(j, "probes")))
        return reference_wrong(r, "probes", "must be an array");
    for (const struct json *p = json_first(json_get(j, "probes")); p; p = json_next(p), i++) {
        snprintf(r->where, sizeof r->where, "%.16s.probes[%d]", base, i);
        if (read_probe(r, p, &probe) < 0)
            return -1;
    }
    return 0;
}

static int metric_order(const void *a, const void *b)
{
    const struct class_reference_metric *x = *(const struct class_reference_metric *const *)a;
    const struct class_reference_metric *y = *(const struct class_reference_metric *const *)b;
    const char *const texts[][2] = {{x->name, y->name},           {x->unit, y->unit},
                                    {x->benchmark, y->benchmark}, {x->variant, y->variant},
                                    {x->method, y->method},       {x->class_hash, y->class_hash}};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int order = strcmp(texts[i][0], texts[i][1]);
        if (order)
            return order;
    }
    return (x->metrics_version > y->metrics_version) - (x->metrics_version < y->metrics_version);
}

// It is not known which of the two is meant.
static int refuse_twice(const struct reference_reader *r)
{
    const int n = r->out->n;
    CLEANUP_MEM const struct class_reference_metric **sorted = calloc((size_t)n, sizeof *sorted);
    if (!sorted)
        return reference_no_memory(r->err);
    for (int i = 0; i < n; i++)
        sorted[i] = &r->out->list[i];
    qsort(sorted, (size_t)n, sizeof *sorted, metric_order);
    for (int i = 1; i < n; i++)
        if (metric_order(&sorted[i - 1], &sorted[i]) == 0)
            return reference_wrong(r, "classes", "has the metric %.60s of %s twice in class %.12s",
                                   sorted[i]->name, sorted[i]->benchmark, sorted[i]->class_hash);
    return 0;
}

static int reference_read_all(struct reference_reader *r, const struct json *j)
{
    const char *format = json_text(json_get(j, "format"));
    const char *created = json_text(json_get(j, "created"));
    int version = 0, i = 0;
    if (!format || strcmp(format, REFERENCE_FORMAT) != 0)
        return reference_wrong(r, "format", "must be \"" REFERENCE_FORMAT "\"");
    if (read_member_count(r, j, "version", &version) < 0)
        return -1;
    if (version > REFERENCE_VERSION)
        return reference_wrong(r, "version",
                               "is newer than this program; a newer numaprobe reads it");
    if (created && !clock_parse(created, &r->out->created_ms))
        return reference_wrong(r, "created", "must be a time, such as \"2026-11-22T04:10:09Z\"");
    if (!json_is_array(json_get(j, "classes")))
        return reference_wrong(r, "classes", "must be an array");
    for (const struct json *c = json_first(json_get(j, "classes")); c; c = json_next(c), i++) {
        snprintf(r->where, sizeof r->where, "classes[%d]", i);
        if (read_class(r, c) < 0)
            return -1;
    }
    *r->where = '\0';
    return r->out->n ? refuse_twice(r) : reference_wrong(r, "classes", "has no metric");
}

int class_reference_read(struct class_reference *out, const struct json *document, struct err *err)
{
    struct class_reference made = {0};
    struct reference_reader r = {.out = &made, .err = err};
    if (reference_read_all(&r, document) < 0) {
        class_reference_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

// --- Judged ------------------------------------------------------------------------------------

// Why the reference cannot say anything of such a run. `near`: its metric that has most in common
// with the run, in so many of class, benchmark, variant, and method with version.
static void say_incomparable(const struct class_reference_metric *near, int common,
                             const struct summary *s, char *why, size_t room)
{
    if (!*s->class_hash)
        snprintf(why, room, "the hardware of the run is not known");
    else if (common == 0)
        snprintf(why, room,
                 "the reference is of other hardware: %.100s%sclass %.12s; the run's is "
                 "class %.12s",
                 near->cpu, *near->cpu ? ", " : "", near->class_hash, s->class_hash);
    else if (common == 1)
        snprintf(why, room, "the reference has no run of %s", s->benchmark);
    else if (common == 2)
        snprintf(why, room,
                 "the reference has %s with other parameters: \"%.80s\"; the run has "
                 "\"%.80s\"",
                 s->benchmark, near->variant, s->variant);
    else
        snprintf(why, room,
                 "the reference is of method %s and metrics of version %d, the run of %s "
                 "and %d",
                 near->method, near->metrics_version, s->method, s->metrics_version);
}

// Whether the reference can say anything of such a run; else why not.
static bool comparable(const struct class_reference *r, const struct summary *s, char *why,
                       size_t room)
{
    enum { ALL = 4 };
    int most = -1;
    const struct class_reference_metric *near = NULL;
    for (int i = 0; i < r->n && most < ALL; i++) {
        const struct class_reference_metric *m = &r->list[i];
        const bool same[ALL] = {
            strcmp(m->class_hash, s->class_hash) == 0,
            strcmp(m->benchmark, s->benchmark) == 0,
            strcmp(m->variant, s->variant) == 0,
            strcmp(m->method, s->method) == 0 && m->metrics_version == s->metrics_version,
        };
        int common = 0;
        while (common < ALL && same[common])
            common++;
        if (common > most) {
            most = common;
            near = m;
        }
    }
    if (near && most < ALL)
        say_incomparable(near, most, s, why, room);
    else if (!near)
        snprintf(why, room, "the reference has no metric");
    return most == ALL;
}

static const struct class_reference_metric *metric_of(const struct class_reference *r,
                                                      const struct summary *s,
                                                      const struct summary_metric *metric)
{
    for (int i = 0; i < r->n; i++) {
        const struct class_reference_metric *m = &r->list[i];
        if (strcmp(m->name, metric->name) == 0 && strcmp(m->unit, metric->unit) == 0 &&
            strcmp(m->class_hash, s->class_hash) == 0 && strcmp(m->benchmark, s->benchmark) == 0 &&
            strcmp(m->variant, s->variant) == 0 && strcmp(m->method, s->method) == 0 &&
            m->metrics_version == s->metrics_version)
            return m;
    }
    return NULL;
}

static double how_much_worse(const struct class_reference_metric *m, double value)
{
    bool more = metric_more_is_better(m->unit), loss = metric_is_loss(m->name);
    return newest_log(value, more, loss) - newest_log(m->median, more, loss);
}

static double chance(const struct class_reference_metric *m, double worse)
{
    return dist_t_upper(worse / hypot(m->spread, m->runs), spread_freedom(m->nodes));
}

// The worst among the metrics that are significantly worse; where none is, the worst of all.
static void take_metric(struct class_reference_verdict *out, const struct class_reference_metric *m,
                        double value, double q, double warn)
{
    double worse = how_much_worse(m, value);
    bool counts = q <= REFERENCE_Q && worse >= log1p(warn / 100);
    bool before = out->worse > 0;
    out->compared++;
    out->worse += counts;
    if (out->worst && (before > counts || (before == counts && worse <= out->slower)))
        return;
    out->worst = m;
    out->value = value;
    out->more = metric_more_is_better(m->unit);
    out->percent = 100 * expm1(out->more ? -worse : worse);
    out->slower = worse;
    out->q = q;
}

int class_reference_judge(struct class_reference_verdict *out, const struct class_reference *r,
                          const struct class_reference_run *run, double warn, double crit,
                          struct err *err)
{
    struct class_reference_verdict made = {.state = REFERENCE_UNKNOWN};
    const struct summary_layout *l = run->layout;
    int n = l ? l->n : 0;
    CLEANUP_MEM const struct class_reference_metric **known = calloc(n + 1, sizeof *known);
    CLEANUP_MEM double *q = malloc((n + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((n + 1) * sizeof *order);
    if (!known || !q || !order)
        return reference_no_memory(err);
    if (!comparable(r, run->run, made.why, sizeof made.why)) {
        *out = made;
        return 0;
    }
    for (int i = 0; i < n; i++) {
        known[i] = metric_of(r, run->run, &l->list[i]);
        q[i] = known[i] ? chance(known[i], how_much_worse(known[i], run->run->values[i])) : NAN;
    }
    dist_fdr(q, n, order);
    for (int i = 0; i < n; i++)
        if (known[i])
            take_metric(&made, known[i], run->run->values[i], q[i], warn);
    if (made.compared == 0)
        snprintf(made.why, sizeof made.why, "the run has none of the reference's metrics");
    else
        made.state = made.worse == 0                    ? REFERENCE_OK
                     : made.slower >= log1p(crit / 100) ? REFERENCE_CRITICAL
                                                        : REFERENCE_WARNING;
    *out = made;
    return 0;
}
