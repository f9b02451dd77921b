// SPDX-License-Identifier: Apache-2.0
// Counted are the nodes that a source names now. Runs of others stay in the history, and cover
// nothing.
#include "fleet/services/coverage.h"

#include <stdlib.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/jsonw.h"

struct covered_class {
    int known, up, fresh, enough;
};

struct coverage {
    const struct fleet *f;
    struct covered_class *classes; // [class]; owned
    int64_t *ages;                 // of the newest runs, ms; owned
    int n_ages, unmeasured;
};

static void coverage_fini(struct coverage *c)
{
    free(c->classes);
    free(c->ages);
}

static void cover_node(struct coverage *c, const struct judged_node *n)
{
    const struct fleet *f = c->f;
    int at = interned_find(&f->nodes, n->name);
    if (at < 0 || f->node[at].class < 0) {
        c->unmeasured++;
        return;
    }
    struct covered_class *of = &c->classes[f->node[at].class];
    of->known++;
    of->up += n->state == NODE_UP;
    of->fresh += fleet_node_fresh(f, at);
    of->enough += fleet_node_enough(f, at);
    c->ages[c->n_ages++] = f->o.now_ms - f->node[at].newest_ms;
}

static int by_run_age(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void write_staleness(const struct coverage *c, struct jsonw *w)
{
    static const struct {
        const char *name;
        int percent;
    } shares[] = {{"median", 50}, {"p90", 90}, {"p99", 99}, {"max", 100}};
    jsonw_object(w, "staleness_s");
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        int at = (c->n_ages - 1) * shares[i].percent / 100;
        if (c->n_ages)
            jsonw_i64(w, shares[i].name, c->ages[at] / 1000);
        else
            jsonw_null(w, shares[i].name);
    }
    jsonw_end(w);
}

static void write_coverage(const struct coverage *c, const struct fleet_class_row *rows, int n,
                           struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_time(w, "judged", c->f->o.now_ms);
    jsonw_i64(w, "unmeasured", c->unmeasured);
    write_staleness(c, w);
    jsonw_array(w, "classes");
    for (int i = 0; i < n && i < COVERAGE_CLASSES_MAX; i++) {
        const struct covered_class *of = &c->classes[rows[i].class];
        jsonw_object(w, NULL);
        jsonw_text(w, "class", c->f->classes.list[rows[i].class]);
        jsonw_text(w, "cpu", rows[i].cpu);
        jsonw_i64(w, "known", of->known);
        jsonw_i64(w, "up", of->up);
        jsonw_i64(w, "fresh", of->fresh);
        jsonw_i64(w, "enough_runs", of->enough);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_end(w);
}

int coverage_write(const struct fleet *f, const struct judged_node *nodes, int n, struct buf *out,
                   struct err *err)
{
    struct coverage c CLEANUP(coverage_fini) = {.f = f};
    CLEANUP_MEM struct fleet_class_row *rows = NULL;
    struct jsonw w = jsonw_to(out);
    c.classes = calloc((size_t)f->classes.n + 1, sizeof *c.classes);
    c.ages = calloc((size_t)n + 1, sizeof *c.ages);
    if (!c.classes || !c.ages)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the coverage");
    int n_rows = fleet_classes(&rows, f, err);
    if (n_rows < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (nodes[i].state != NODE_GONE)
            cover_node(&c, &nodes[i]);
    if (c.n_ages)
        qsort(c.ages, (size_t)c.n_ages, sizeof *c.ages, by_run_age);
    write_coverage(&c, rows, n_rows, &w);
    return 0;
}
