// SPDX-License-Identifier: Apache-2.0
// Each list is sorted and its elements are moved; then the numbers in other lists are exchanged.
#include "analysis/peers/fleet_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int order_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory to arrange the runs of so many nodes");
}

struct named {
    const char *name;
    int at;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

// places[old number] = new number, by the texts. NULL: no memory.
static int *places_of(const struct interned *s)
{
    CLEANUP_MEM struct named *list = calloc((size_t)s->n + 1, sizeof *list);
    int *places = calloc((size_t)s->n + 1, sizeof *places);
    for (int i = 0; list && i < s->n; i++)
        list[i] = (struct named){s->list[i], i};
    if (list && places)
        qsort(list, (size_t)s->n, sizeof *list, by_text);
    for (int i = 0; list && places && i < s->n; i++)
        places[list[i].at] = i;
    if (!list) {
        free(places);
        return NULL;
    }
    return places;
}

// Moves the n elements of `list` to their places.
static int move_elements(void *list, size_t size, const int *places, int n, struct err *err)
{
    CLEANUP_MEM char *moved = malloc((size_t)n * size + 1);
    if (!moved)
        return order_no_memory(err);
    for (int i = 0; i < n; i++)
        memcpy(moved + (size_t)places[i] * size, (char *)list + (size_t)i * size, size);
    if (n)
        memcpy(list, moved, (size_t)n * size);
    return 0;
}

static int move_texts(struct interned *s, const int *places, struct err *err)
{
    struct interned moved = {0};
    if (move_elements(s->list, sizeof *s->list, places, s->n, err) < 0)
        return -1;
    for (int i = 0; i < s->n; i++)
        if (interned_add(&moved, s->list[i], err) < 0) {
            interned_fini(&moved);
            return -1;
        }
    interned_fini(s);
    *s = moved;
    return 0;
}

// Elements with the texts that they are numbered by.
static int arrange_named(struct interned *s, void *list, size_t size, int *places, struct err *err)
{
    return !places || move_elements(list, size, places, s->n, err) < 0 ||
                   move_texts(s, places, err) < 0
               ? order_no_memory(err)
               : 0;
}

static int by_probe(const void *a, const void *b, void *ctx)
{
    const struct fleet *f = ctx;
    const struct fleet_probe *x = &f->probe[*(const int *)a], *y = &f->probe[*(const int *)b];
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    int order = strcmp(x->benchmark, y->benchmark);
    order = order ? order : strcmp(x->method, y->method);
    order = order ? order : strcmp(x->variant, y->variant);
    return order ? order
                 : (x->metrics_version > y->metrics_version) -
                       (x->metrics_version < y->metrics_version);
}

static int by_series(const void *a, const void *b, void *ctx)
{
    const struct fleet *f = ctx;
    const struct fleet_series *x = &f->one[*(const int *)a], *y = &f->one[*(const int *)b];
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->probe > y->probe) - (x->probe < y->probe);
}

// The same for what is numbered by other numbers. *places is owned by the caller.
static int arrange_numbered(void *list, size_t size, int n, struct fleet *f,
                            int (*order)(const void *a, const void *b, void *ctx), int **places,
                            struct err *err)
{
    CLEANUP_MEM int *sorted = calloc((size_t)n + 1, sizeof *sorted);
    *places = calloc((size_t)n + 1, sizeof **places);
    if (!sorted || !*places)
        return order_no_memory(err);
    for (int i = 0; i < n; i++)
        sorted[i] = i;
    qsort_r(sorted, (size_t)n, sizeof *sorted, order, f);
    for (int i = 0; i < n; i++)
        (*places)[sorted[i]] = i;
    return move_elements(list, size, *places, n, err);
}

static int by_new_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void renumber_nodes(struct fleet *f, const int *classes, const int *configs)
{
    for (int i = 0; i < f->nodes.n; i++) {
        struct fleet_node *n = &f->node[i];
        n->class = n->class < 0 ? n->class : classes[n->class];
        n->config = n->config < 0 ? n->config : configs[n->config];
    }
    for (int i = 0; i < f->probes.n; i++)
        f->probe[i].class = classes[f->probe[i].class];
}

static void renumber_series(struct fleet *f, const int *nodes, const int *probes,
                            const int *configs)
{
    for (int i = 0; i < f->n_series; i++) {
        struct fleet_series *s = &f->one[i];
        s->node = nodes[s->node];
        s->probe = probes[s->probe];
        for (int r = 0; r < s->n; r++)
            if (s->runs[r].config >= 0)
                s->runs[r].config = configs[s->runs[r].config];
    }
}

static void renumber_lists(struct fleet *f, const int *series)
{
    for (int i = 0; i < f->nodes.n; i++) {
        struct fleet_node *n = &f->node[i];
        for (int k = 0; k < n->n; k++)
            n->series[k] = series[n->series[k]];
        if (n->n)
            qsort(n->series, (size_t)n->n, sizeof *n->series, by_new_number);
    }
}

int fleet_arrange(struct fleet *f, struct err *err)
{
    CLEANUP_MEM int *nodes = places_of(&f->nodes);
    CLEANUP_MEM int *classes = places_of(&f->classes);
    CLEANUP_MEM int *configs = places_of(&f->configs);
    CLEANUP_MEM int *probes = NULL;
    CLEANUP_MEM int *series = NULL;
    f->map_page = NULL;
    if (arrange_named(&f->nodes, f->node, sizeof *f->node, nodes, err) < 0 ||
        arrange_named(&f->classes, f->class_facts, sizeof *f->class_facts, classes, err) < 0 ||
        arrange_named(&f->configs, f->config_facts, sizeof *f->config_facts, configs, err) < 0)
        return -1;
    renumber_nodes(f, classes, configs);
    if (arrange_numbered(f->probe, sizeof *f->probe, f->probes.n, f, by_probe, &probes, err) < 0)
        return -1;
    renumber_series(f, nodes, probes, configs);
    if (arrange_numbered(f->one, sizeof *f->one, f->n_series, f, by_series, &series, err) < 0)
        return -1;
    renumber_lists(f, series);
    return 0;
}
