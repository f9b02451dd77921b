// SPDX-License-Identifier: Apache-2.0
// Counted are the nodes that a source names now. Runs of others stay in the history, and cover
// nothing.
#include "fleet/services/coverage.h"

#include <stdlib.h>

#include "analysis/peers/coverage.h"
#include "base/cleanup.h"
#include "base/jsonw.h"

static void write_covered_class(const struct coverage *c, const struct covered_class *k,
                                bool up_known, struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "class", c->f->classes.list[k->class]);
    jsonw_text(w, "cpu", k->cpu);
    jsonw_i64(w, "known", k->nodes);
    if (up_known)
        jsonw_i64(w, "up", k->up);
    else
        jsonw_null(w, "up");
    jsonw_i64(w, "fresh", k->fresh);
    jsonw_i64(w, "enough_runs", k->enough);
    jsonw_i64(w, "stale", k->nodes - k->fresh);
    coverage_write_staleness(c, k, w);
    jsonw_end(w);
}

static void write_coverage(const struct coverage *c, bool up_known, struct jsonw *w)
{
    const struct covered_class *unmeasured = coverage_without_run(c);
    jsonw_object(w, NULL);
    jsonw_time(w, "judged", c->f->o.now_ms);
    jsonw_i64(w, "unmeasured", unmeasured ? unmeasured->nodes : 0);
    coverage_write_staleness(c, NULL, w);
    jsonw_array(w, "classes");
    for (int i = 0; i < c->n && i < COVERAGE_CLASSES_MAX; i++)
        if (c->list[i].class >= 0)
            write_covered_class(c, &c->list[i], up_known, w);
    jsonw_end(w);
    jsonw_end(w);
}

int coverage_write(const struct fleet *f, const struct judged_node *nodes, int n, bool up_known,
                   struct buf *out, struct err *err)
{
    CLEANUP_COVERAGE struct coverage c = {0};
    CLEANUP_MEM struct covered_node *counted = calloc((size_t)n + 1, sizeof *counted);
    struct jsonw w = jsonw_to(out);
    int known = 0;
    if (!counted)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the coverage");
    for (int i = 0; i < n; i++)
        if (nodes[i].state != NODE_GONE)
            counted[known++] =
                (struct covered_node){.name = nodes[i].name, .up = nodes[i].state == NODE_UP};
    if (coverage_make(&c, f, counted, known, err) < 0)
        return -1;
    write_coverage(&c, up_known, &w);
    return 0;
}
