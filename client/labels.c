// SPDX-License-Identifier: Apache-2.0
// Labels are compared for equality and stored by the scheduler each time they change. So values are
// spans and words, not measurements: they stay the same from run to run unless the node changed.
#include "client/labels.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

// Newer versions of Node Feature Discovery take no name without its domain.
#define NFD_PREFIX "feature.node.kubernetes.io/numaprobe."

// Lower case, and "-" for what is neither a letter, a digit nor one of "._-"; ends are letters or
// digits.
static void label_make_safe(const char *text, char out[static LABEL_ROOM])
{
    size_t n = 0;
    for (; *text && n < LABEL_ROOM - 1; text++) {
        unsigned char ch = (unsigned char)*text;
        bool plain = isalnum(ch) && ch < 0x80;
        if (!n && !plain)
            continue;
        out[n++] = plain ? (char)tolower(ch) : strchr("._-", ch) ? (char)ch : '-';
    }
    while (n && !isalnum((unsigned char)out[n - 1]))
        n--;
    out[n] = '\0';
}

void labels_add(struct labels *l, const char *name, const char *value)
{
    if (l->n == LABELS_MAX)
        return;
    label_make_safe(name, l->list[l->n].name);
    label_make_safe(value, l->list[l->n].value);
    if (*l->list[l->n].name && *l->list[l->n].value)
        l->n++;
}

void labels_add_age(struct labels *l, int64_t age_s)
{
    static const struct {
        int64_t s;
        const char *name;
    } spans[] = {{86400, "day"}, {7 * 86400, "week"}, {30 * 86400, "month"}, {INT64_MAX, "old"}};
    for (size_t i = 0; age_s >= 0 && i < COUNT_OF(spans); i++)
        if (age_s <= spans[i].s) {
            labels_add(l, "age", spans[i].name);
            return;
        }
}

static void labels_add_count(struct labels *l, const char *name, int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    if (n)
        labels_add(l, name, text);
}

static int nodes_of_kind(const struct json *nodes, const char *kind)
{
    int n = 0;
    for (const struct json *node = json_first(nodes); node; node = json_next(node))
        n += strcmp(json_get_text(node, "kind", ""), kind) == 0;
    return n;
}

static bool has_label(const struct labels *l, const char *name)
{
    char safe[LABEL_ROOM];
    label_make_safe(name, safe);
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->list[i].name, safe) == 0)
            return true;
    return false;
}

void labels_add_machine(struct labels *l, const struct json *topology)
{
    const struct json *nodes = json_get(topology, "nodes");
    if (!json_get_bool(topology, "this_system", false))
        return; // a recorded machine is none that jobs can be placed on
    labels_add_count(l, "numa-nodes", json_count(nodes));
    for (const struct json *node = json_first(nodes); node; node = json_next(node)) {
        char name[LABEL_ROOM];
        const char *kind = json_get_text(node, "kind", "");
        snprintf(name, sizeof name, "memory-%.40s", kind);
        if (*kind && !has_label(l, name))
            labels_add_count(l, name, nodes_of_kind(nodes, kind));
    }
    labels_add_count(l, "core-kinds", json_count(json_get(topology, "kinds")));
}

// --- Latency -----------------------------------------------------------------------------------

// Preferred numbers (ISO 3, the ten steps of a decade): a span is a quarter wide, far more than
// runs of a healthy node differ.
static void latency_span(double ns, char *out, size_t room)
{
    static const double steps[] = {1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10};
    double decade = 1;
    size_t i = 0;
    while (decade * 10 <= ns)
        decade *= 10;
    while (i + 2 < COUNT_OF(steps) && decade * steps[i + 1] <= ns)
        i++;
    snprintf(out, room, "%g-%gns", decade * steps[i], decade * steps[i + 1]);
}

// -1: it has none.
static double labelled_metric(const struct summary_page *p, const struct summary *s,
                              const char *name)
{
    const struct summary_layout *layout = s->layout < 0 ? NULL : &p->layouts[s->layout];
    for (int i = 0; layout && i < layout->n; i++)
        if (strcmp(layout->list[i].name, name) == 0)
            return s->values[i];
    return -1;
}

// Newest first, as the page has them.
static const struct summary *newest_with(const struct summary_page *p, const char *metric,
                                         double *value)
{
    const struct summary *found = NULL;
    for (int i = 0; i < p->n_runs; i++) {
        const struct summary *s = &p->runs[i];
        double ns = labelled_metric(p, s, metric);
        bool ours = s->state == RUN_SUCCEEDED && !s->imported && strcmp(s->node, p->node) == 0;
        if (!ours || ns < 1 || (found && found->id > s->id))
            continue;
        found = s;
        *value = ns;
    }
    return found;
}

const struct summary *labels_add_latency(struct labels *l, const struct summary_page *runs,
                                         double *value)
{
    // The default benchmark first: it is what a timer runs on all nodes.
    static const char *const metrics[] = {"latency.local.dram.median_ns", "matrix.local.median_ns",
                                          "hierarchy.memory_ns", "scan.memory_ns"};
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        const struct summary *s = newest_with(runs, metrics[i], value);
        if (s) {
            char span[LABEL_ROOM];
            latency_span(*value, span, sizeof span);
            labels_add(l, "latency-class", span);
            return s;
        }
    }
    return NULL;
}

// --- Output ------------------------------------------------------------------------------------

// A "+" would make it an instruction for Node Feature Discovery.
static void write_comment(const char *text, struct buf *out)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        buf_str(out, "# numaprobe: ");
        buf_add(out, text, n);
        buf_char(out, '\n');
        text += n + (text[n] != '\0');
    }
}

// Slurm's constraints have operators of their own for all but letters, digits and "_".
static void add_feature(const char *text, struct buf *out)
{
    for (buf_char(out, '_'); *text; text++)
        buf_char(out, isalnum((unsigned char)*text) ? *text : '_');
}

void labels_write(const struct labels *l, enum output form, const char *comment, struct buf *out)
{
    if (form == OUTPUT_NFD)
        write_comment(comment, out);
    else
        buf_str(out, "Features=");
    for (int i = 0; i < l->n; i++) {
        if (form == OUTPUT_NFD) {
            buf_fmt(out, NFD_PREFIX "%s=%s\n", l->list[i].name, l->list[i].value);
            continue;
        }
        buf_str(out, i ? ",numaprobe" : "numaprobe");
        add_feature(l->list[i].name, out);
        add_feature(l->list[i].value, out);
    }
    if (form != OUTPUT_NFD)
        buf_char(out, '\n');
}
