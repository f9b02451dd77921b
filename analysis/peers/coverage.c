// SPDX-License-Identifier: Apache-2.0
// Nodes are put in order of class and age once. A class is then a stretch of them, and an age that
// some of its nodes do not exceed is one of its nodes.
#include "analysis/peers/coverage.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"

static void cover_node(struct covered_node *n, const struct fleet *f)
{
    int at = interned_find(&f->nodes, n->name);
    n->class = at < 0 ? -1 : f->node[at].class;
    if (n->class < 0)
        return;
    n->age_ms = f->o.now_ms - f->node[at].newest_ms;
    n->fresh = fleet_node_fresh(f, at);
    n->enough = fleet_node_enough(f, at);
}

static int by_class_and_age(const void *a, const void *b)
{
    const struct covered_node *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->age_ms > y->age_ms) - (x->age_ms < y->age_ms);
}

static int larger_covered(const void *a, const void *b)
{
    const struct covered_class *x = a, *y = b;
    if ((x->class < 0) != (y->class < 0))
        return x->class < 0 ? 1 : -1;
    return x->nodes != y->nodes ? y->nodes - x->nodes : x->class - y->class;
}

static int by_run_age(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// The class that the node at `i` begins, or that of the node before it.
static struct covered_class *class_at(struct coverage *c, int i)
{
    int class = c->node[i].class;
    if (i > 0 && c->node[i - 1].class == class)
        return &c->list[c->n - 1];
    struct covered_class *k = &c->list[c->n++];
    k->class = class;
    k->cpu = class < 0 ? NULL : fleet_fact(&c->f->class_facts[class], "cpu_model");
    k->first = i;
    return k;
}

static void cover_classes(struct coverage *c)
{
    qsort(c->node, (size_t)c->n_nodes, sizeof *c->node, by_class_and_age);
    for (int i = 0; i < c->n_nodes; i++) {
        const struct covered_node *n = &c->node[i];
        struct covered_class *k = class_at(c, i);
        k->nodes++;
        k->up += n->up;
        k->fresh += n->fresh;
        k->enough += n->enough;
        if (n->class >= 0)
            c->ages[c->n_ages++] = n->age_ms;
    }
    qsort(c->list, (size_t)c->n, sizeof *c->list, larger_covered);
    qsort(c->ages, (size_t)c->n_ages, sizeof *c->ages, by_run_age);
}

int coverage_make(struct coverage *out, const struct fleet *f, const struct covered_node *nodes,
                  int n, struct err *err)
{
    struct coverage c = {.f = f, .n_nodes = n};
    c.node = calloc((size_t)n + 1, sizeof *c.node);
    c.list = calloc((size_t)f->classes.n + 1, sizeof *c.list);
    c.ages = calloc((size_t)n + 1, sizeof *c.ages);
    if (!c.node || !c.list || !c.ages) {
        coverage_fini(&c);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the coverage");
    }
    for (int i = 0; i < n; i++) {
        c.node[i] = (struct covered_node){.name = nodes[i].name, .up = nodes[i].up};
        cover_node(&c.node[i], f);
    }
    cover_classes(&c);
    *out = c;
    return 0;
}

void coverage_fini(struct coverage *c)
{
    free(c->node);
    free(c->list);
    free(c->ages);
    *c = (struct coverage){0};
}

const struct covered_class *coverage_without_run(const struct coverage *c)
{
    const struct covered_class *last = c->n ? &c->list[c->n - 1] : NULL;
    return last && last->class < 0 ? last : NULL;
}

int64_t covered_class_age(const struct coverage *c, const struct covered_class *k, int percent)
{
    return k->class < 0 ? -1 : c->node[k->first + (k->nodes - 1) * percent / 100].age_ms;
}

static int64_t any_age(const struct coverage *c, int percent)
{
    return c->n_ages ? c->ages[(c->n_ages - 1) * percent / 100] : -1;
}

void coverage_write_staleness(const struct coverage *c, const struct covered_class *k,
                              struct jsonw *w)
{
    static const struct {
        const char *name;
        int percent;
    } shares[] = {{"median", 50}, {"p90", 90}, {"p99", 99}, {"max", 100}};
    jsonw_object(w, "staleness_s");
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        int64_t age =
            k ? covered_class_age(c, k, shares[i].percent) : any_age(c, shares[i].percent);
        if (age >= 0)
            jsonw_i64(w, shares[i].name, age / 1000);
        else
            jsonw_null(w, shares[i].name);
    }
    jsonw_end(w);
}
