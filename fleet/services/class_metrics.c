// SPDX-License-Identifier: Apache-2.0
// An image is the text of the metrics, then the names of nodes in order, each with the hash of its
// class ("": not known) and the time of its newest run; each text ends with a NUL.
#include "fleet/services/class_metrics.h"

#include <inttypes.h>
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
#include "base/str.h"
#include "fleet/services/services.h"
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
    const char *class; // borrowed from the fleet, as all that is pointed to
    const struct fleet_probe *probe;
    const char *metric;
    int family, nodes;     // nodes that have it
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

// During an update of numaprobe some nodes measure by a newer method. Both are one series: that of
// most nodes.
static void keep_class_value(struct class_values *all, const struct class_value *made)
{
    for (int i = 0; i < all->n; i++) {
        struct class_value *have = &all->list[i];
        if (fleet_probes_are_versions(have->probe, made->probe) &&
            strcmp(have->metric, made->metric) == 0) {
            if (made->nodes > have->nodes)
                *have = *made;
            return;
        }
    }
    all->list[all->n++] = *made;
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
        keep_class_value(all, &(struct class_value){
                                  f->classes.list[v->table.class], probe,
                                  fleet_table_metric(&v->table, f, metric), family_of_unit(unit),
                                  r.n, r.median * metric_base_factor(unit), r.spread / 100});
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
                                     {"benchmark", c->probe->benchmark},
                                     {"variant", c->probe->variant},
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
    int64_t newest_ms;
};

static int by_node_name(const void *a, const void *b)
{
    return strcmp(((const struct node_class *)a)->node, ((const struct node_class *)b)->node);
}

static void add_image_text(struct buf *out, const char *text)
{
    buf_add(out, text, strlen(text) + 1);
}

static int write_node_classes(const struct fleet *f, struct buf *out, struct err *err)
{
    char newest[24];
    CLEANUP_MEM struct node_class *list = calloc((size_t)f->nodes.n + 1, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the classes of nodes");
    for (int i = 0; i < f->nodes.n; i++) {
        int class = f->node[i].class;
        list[i] = (struct node_class){f->nodes.list[i], class < 0 ? "" : f->classes.list[class],
                                      f->node[i].newest_ms};
    }
    qsort(list, (size_t)f->nodes.n, sizeof *list, by_node_name);
    for (int i = 0; i < f->nodes.n; i++) {
        snprintf(newest, sizeof newest, "%" PRId64, list[i].newest_ms);
        add_image_text(out, list[i].node);
        add_image_text(out, list[i].class);
        add_image_text(out, newest);
    }
    return 0;
}

int class_metrics_make(const struct request *q, int64_t now_ms, struct buf *out, struct err *err)
{
    struct fleet_options o = FLEET_DEFAULTS;
    struct exposition e = exposition_to(out, false);
    o.now_ms = now_ms;
    const struct fleet_window w = {.newest = o.runs_max};
    // Of all nodes, whatever the request names: it is kept for others too.
    CLEANUP_FLEET struct fleet *f = stored_fleet_of(fleet_of(q)->store, &o, &w, err);
    if (!f || expose_classes(&e, f, err) < 0 || expose_verdict(&e, f, err) < 0)
        return -1;
    buf_char(out, '\0');
    if (write_node_classes(f, out, err) < 0)
        return -1;
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for metrics of classes");
}

// ---- Kept by the collector ----------------------------------------------------------------------

enum {
    NODE_TEXTS = 3, // of an image, for each node
    CLASS_METRICS_OLD_MS = 3600 * 1000,
};

struct class_entry {
    const char *node; // of the image
    struct class_node of;
};

static struct {
    char *image;
    struct class_entry *list; // by name of the node; owned
    size_t nodes;
    int64_t version, made_ms; // monotonic; 0: nothing was made
    bool missed;              // the last time nothing could be made
} kept;

static const char *image_next(const char *text)
{
    return text + strlen(text) + 1;
}

int class_metrics_keep(const void *image, size_t n, int64_t version, struct err *err)
{
    const char *from = image;
    size_t texts = 0, nodes;
    if (!n || from[n - 1])
        return err_set(err, ERR_INTERNAL, "", "invalid metrics of classes");
    for (size_t i = 0; i < n; i++)
        texts += !from[i];
    if (texts % NODE_TEXTS != 1)
        return err_set(err, ERR_INTERNAL, "", "invalid classes of nodes");
    nodes = texts / NODE_TEXTS;
    char *copy = malloc(n);
    struct class_entry *list = calloc(nodes + 1, sizeof *list);
    if (!copy || !list) {
        free(copy);
        free(list);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics of classes");
    }
    memcpy(copy, image, n);
    const char *at = image_next(copy);
    for (size_t i = 0; i < nodes; i++, at = image_next(at)) {
        list[i].node = at;
        at = image_next(at);
        list[i].of.class = *at ? at : NULL;
        at = image_next(at);
        str_to_i64(at, &list[i].of.newest_ms);
    }
    free(kept.image);
    free(kept.list);
    kept.image = copy;
    kept.list = list;
    kept.nodes = nodes;
    kept.version = version;
    kept.made_ms = clock_mono_ms();
    kept.missed = false;
    return 0;
}

void class_metrics_missed(void)
{
    kept.made_ms = clock_mono_ms();
    kept.missed = true;
}

bool class_metrics_fresh(int64_t version, int age_s)
{
    int64_t age_ms = clock_mono_ms() - kept.made_ms;
    if (kept.missed && age_s > CLASS_METRICS_AGE_S)
        age_s = CLASS_METRICS_AGE_S;
    return kept.made_ms &&
           (age_ms < (int64_t)age_s * 1000 ||
            (!kept.missed && kept.version == version && age_ms < CLASS_METRICS_OLD_MS));
}

const char *class_metrics_text(void)
{
    return kept.image ? kept.image : "";
}

struct class_node class_metrics_next(struct class_search *s, const char *node)
{
    int order = -1;
    while (s->at < kept.nodes && (order = strcmp(kept.list[s->at].node, node)) < 0)
        s->at++;
    return order == 0 ? kept.list[s->at].of : (struct class_node){0};
}

static int node_of_entry(const void *node, const void *entry)
{
    return strcmp(node, ((const struct class_entry *)entry)->node);
}

struct class_node class_metrics_of(const char *node)
{
    const struct class_entry *found =
        kept.nodes ? bsearch(node, kept.list, kept.nodes, sizeof *kept.list, node_of_entry) : NULL;
    return found ? found->of : (struct class_node){0};
}
