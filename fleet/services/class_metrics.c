// SPDX-License-Identifier: Apache-2.0
// An image is the text of the metrics, then the names of nodes in order, each with the hash of its
// class; each text ends with a NUL.
#include "fleet/services/class_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_view.h"
#include "analysis/peers/peers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exposition.h"
#include "fleet/services/stored_fleet.h"

// ---- Made by the process that reads -------------------------------------------------------------

// The families of medians, by unit. The last one has what has no unit.
static const struct {
    const char *family;
    const char *units[2]; // as stored
} median_families[] = {
    {"numaprobe_fleet_class_median_seconds", {"ns", "us"}},
    {"numaprobe_fleet_class_median_bytes_per_second", {"GB/s"}},
    {"numaprobe_fleet_class_median_hertz", {"GHz"}},
    {"numaprobe_fleet_class_median_bytes", {"bytes"}},
    {"numaprobe_fleet_class_median", {NULL}},
};
enum { MEDIAN_FAMILIES = COUNT_OF(median_families) };

struct class_value {
    const char *class; // borrowed from the fleet, as all texts
    const char *benchmark, *variant, *metric;
    int family;
    double median, spread; // in base units; a share of it
};

struct class_values {
    struct class_value list[CLASS_SERIES_MAX / 2];
    int n, omitted;
};

static int family_of_unit(const char *unit)
{
    for (int i = 0; i < MEDIAN_FAMILIES - 1; i++)
        for (size_t k = 0; k < COUNT_OF(median_families[i].units); k++)
            if (median_families[i].units[k] && strcmp(median_families[i].units[k], unit) == 0)
                return i;
    return MEDIAN_FAMILIES - 1;
}

static int add_class_value(struct class_values *all, struct fleet_view *v, int metric,
                           struct err *err)
{
    const struct fleet *f = v->f;
    const struct fleet_probe *probe = &f->probe[v->table.probe[v->table.metric_probe[metric]]];
    const char *unit = fleet_table_unit(&v->table, f, metric);
    struct fleet_ranking r;
    if (fleet_ranking_make(&r, v, metric, err) < 0)
        return -1;
    if (r.n)
        all->list[all->n++] = (struct class_value){f->classes.list[v->table.class],
                                                   probe->benchmark,
                                                   probe->variant,
                                                   fleet_table_metric(&v->table, f, metric),
                                                   family_of_unit(unit),
                                                   r.median * metric_base_factor(unit),
                                                   r.spread / 100};
    fleet_ranking_fini(&r);
    return 0;
}

static int add_class_values(struct class_values *all, const struct fleet *f, int class,
                            struct err *err)
{
    struct fleet_view v;
    int rc = 0;
    if (fleet_view_open(&v, f, class, err) < 0)
        return -1;
    for (int m = 0; m < v.table.in.metrics && rc == 0; m++)
        if (m < CLASS_METRICS_MAX && all->n < (int)COUNT_OF(all->list))
            rc = add_class_value(all, &v, m, err);
        else
            all->omitted++;
    fleet_view_close(&v);
    return rc;
}

static void write_class_value(struct exposition *e, const struct class_value *c, double value)
{
    const char *const labels[][2] = {{"class", c->class},
                                     {"benchmark", c->benchmark},
                                     {"variant", c->variant},
                                     {"metric", c->metric}};
    exposition_sample(e, labels, COUNT_OF(labels), value);
}

static void expose_medians(struct exposition *e, const struct class_values *all)
{
    for (int family = 0; family < MEDIAN_FAMILIES; family++)
        for (int i = 0, begun = 0; i < all->n; i++)
            if (all->list[i].family == family) {
                if (!begun++)
                    exposition_begin(e, median_families[family].family, "gauge",
                                     "Median of a class's nodes, each with its newest runs");
                write_class_value(e, &all->list[i], all->list[i].median);
            }
    if (all->n)
        exposition_begin(e, "numaprobe_fleet_class_mad_ratio", "gauge",
                         "Spread of a class's nodes: 1.4826 of their median absolute deviation, as "
                         "a share of the median");
    for (int i = 0; i < all->n; i++)
        write_class_value(e, &all->list[i], all->list[i].spread);
}

static void expose_class_rows(struct exposition *e, const struct fleet *f,
                              const struct fleet_class_row *rows, int n)
{
    static const char *const columns[] = {"seen", "fresh", "enough_runs"};
    if (n)
        exposition_begin(e, "numaprobe_fleet_class_nodes", "gauge",
                         "Nodes of a class: seen, with a new run, and with enough runs for a "
                         "verdict");
    for (int i = 0; i < n; i++) {
        const int counts[] = {rows[i].nodes, rows[i].fresh, rows[i].enough};
        for (size_t k = 0; k < COUNT_OF(columns); k++) {
            const char *const labels[][2] = {{"class", f->classes.list[rows[i].class]},
                                             {"kind", columns[k]}};
            exposition_sample(e, labels, COUNT_OF(labels), counts[k]);
        }
    }
    if (n)
        exposition_begin(e, "numaprobe_fleet_class_info", "gauge",
                         "1; the hardware of a class is in the labels");
    for (int i = 0; i < n; i++) {
        const char *const labels[][2] = {{"class", f->classes.list[rows[i].class]},
                                         {"cpu", rows[i].cpu ? rows[i].cpu : ""},
                                         {"shape", rows[i].shape ? rows[i].shape : ""}};
        exposition_sample(e, labels, COUNT_OF(labels), 1);
    }
}

static int expose_classes(struct exposition *e, const struct fleet *f, struct err *err)
{
    CLEANUP_MEM struct fleet_class_row *rows = NULL;
    CLEANUP_MEM struct class_values *all = calloc(1, sizeof *all);
    int n = all ? fleet_classes(&rows, f, err)
                : err_set(err, ERR_NO_MEMORY, "", "no memory for the medians of classes");
    if (n < 0)
        return -1;
    int shown = n < CLASSES_MAX ? n : CLASSES_MAX;
    for (int i = 0; i < shown; i++)
        if (add_class_values(all, f, rows[i].class, err) < 0)
            return -1;
    expose_class_rows(e, f, rows, shown);
    expose_medians(e, all);
    exposition_single(e, "numaprobe_fleet_classes_omitted", "gauge",
                      "Classes that are not shown, because others have more nodes", n - shown);
    exposition_single(e, "numaprobe_fleet_metrics_omitted", "gauge",
                      "Medians that are not shown, because there are too many", all->omitted);
    return 0;
}

static void expose_finding_counts(struct exposition *e, const struct fleet_findings *found)
{
    int counts[FINDING_KINDS][PEERS_GRADES] = {0};
    for (int i = 0; i < found->n; i++)
        counts[found->list[i].what][found->list[i].grade]++;
    exposition_begin(e, "numaprobe_fleet_findings", "gauge",
                     "Findings of the verdict by kind and grade. A group has no grade of its own: "
                     "fine");
    for (int what = 0; what < FINDING_KINDS; what++)
        for (int grade = 0; grade < PEERS_GRADES; grade++)
            if ((what == FINDING_GROUP) == (grade == PEERS_FINE)) {
                const char *const labels[][2] = {{"what", fleet_finding_names[what]},
                                                 {"grade", peers_grade_names[grade]}};
                exposition_sample(e, labels, COUNT_OF(labels), counts[what][grade]);
            }
}

static void expose_deviations(struct exposition *e, const struct fleet *f,
                              const struct fleet_findings *found)
{
    int shown = 0;
    for (int i = 0; i < found->n && shown < CLASS_FINDINGS_MAX; i++) {
        const struct fleet_finding *one = &found->list[i];
        if (one->what == FINDING_GROUP)
            continue;
        if (!shown++)
            exposition_begin(e, "numaprobe_fleet_deviation_ratio", "gauge",
                             "Difference of the worst metric of a node that is found; 0.06 is 6 % "
                             "more than its peers have");
        const char *const labels[][2] = {{"node", f->nodes.list[one->nodes[0]]},
                                         {"class", f->classes.list[one->class]},
                                         {"what", fleet_finding_names[one->what]},
                                         {"grade", peers_grade_names[one->grade]},
                                         {"metric", one->metric}};
        exposition_sample(e, labels, COUNT_OF(labels), one->percent / 100);
    }
}

static int expose_verdict(struct exposition *e, const struct fleet *f, struct err *err)
{
    struct fleet_findings found;
    if (fleet_findings_find(&found, f, err) < 0)
        return -1;
    expose_finding_counts(e, &found);
    expose_deviations(e, f, &found);
    fleet_findings_fini(&found);
    return 0;
}

struct node_class {
    const char *node, *class;
};

static int by_node_name(const void *a, const void *b)
{
    return strcmp(((const struct node_class *)a)->node, ((const struct node_class *)b)->node);
}

static int write_node_classes(const struct fleet *f, struct buf *out, struct err *err)
{
    int n = 0;
    CLEANUP_MEM struct node_class *list = calloc((size_t)f->nodes.n + 1, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the classes of nodes");
    for (int i = 0; i < f->nodes.n; i++)
        if (f->node[i].class >= 0)
            list[n++] = (struct node_class){f->nodes.list[i], f->classes.list[f->node[i].class]};
    qsort(list, (size_t)n, sizeof *list, by_node_name);
    for (int i = 0; i < n; i++) {
        buf_add(out, list[i].node, strlen(list[i].node) + 1);
        buf_add(out, list[i].class, strlen(list[i].class) + 1);
    }
    return 0;
}

int class_metrics_make(const struct request *q, int64_t now_ms, struct buf *out, struct err *err)
{
    struct fleet_options o = FLEET_DEFAULTS;
    struct exposition e = exposition_to(out, false);
    o.now_ms = now_ms;
    const struct fleet_window w = {.newest = o.runs_max};
    CLEANUP_FLEET struct fleet *f = stored_fleet_read(q, &o, &w, err);
    if (!f || expose_classes(&e, f, err) < 0 || expose_verdict(&e, f, err) < 0)
        return -1;
    buf_char(out, '\0');
    if (write_node_classes(f, out, err) < 0)
        return -1;
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for metrics of classes");
}

// ---- Kept by the collector ----------------------------------------------------------------------

static struct {
    char *image;
    const char **texts; // node, class, node, class, …
    size_t nodes;
    int64_t version, made_ms; // monotonic; 0: nothing was made
} kept;

int class_metrics_keep(const void *image, size_t n, int64_t version, struct err *err)
{
    const char *from = image;
    size_t texts = 0, at = 0;
    if (!n || from[n - 1])
        return err_set(err, ERR_INTERNAL, "", "invalid metrics of classes");
    for (size_t i = 0; i < n; i++)
        texts += !from[i];
    if (texts % 2 == 0)
        return err_set(err, ERR_INTERNAL, "", "invalid classes of nodes");
    char *copy = malloc(n);
    const char **list = calloc(texts, sizeof *list);
    if (!copy || !list) {
        free(copy);
        free(list);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics of classes");
    }
    memcpy(copy, image, n);
    for (const char *p = copy + strlen(copy) + 1; p < copy + n; p += strlen(p) + 1)
        list[at++] = p;
    free(kept.image);
    free(kept.texts);
    kept.image = copy;
    kept.texts = list;
    kept.nodes = at / 2;
    kept.version = version;
    kept.made_ms = clock_mono_ms();
    return 0;
}

void class_metrics_missed(void)
{
    kept.made_ms = clock_mono_ms();
}

bool class_metrics_fresh(int64_t version)
{
    return kept.made_ms &&
           (kept.version == version || clock_mono_ms() - kept.made_ms < CLASS_METRICS_AGE_S * 1000);
}

const char *class_metrics_text(void)
{
    return kept.image ? kept.image : "";
}

const char *class_metrics_next(struct class_search *s, const char *node)
{
    int order = -1;
    while (s->at < kept.nodes && (order = strcmp(kept.texts[2 * s->at], node)) < 0)
        s->at++;
    return order == 0 ? kept.texts[2 * s->at + 1] : NULL;
}

static int node_of_pair(const void *node, const void *pair)
{
    return strcmp(node, *(const char *const *)pair);
}

const char *class_metrics_of(const char *node)
{
    char **pair = kept.nodes
                      ? bsearch(node, kept.texts, kept.nodes, 2 * sizeof *kept.texts, node_of_pair)
                      : NULL;
    return pair ? pair[1] : NULL;
}
