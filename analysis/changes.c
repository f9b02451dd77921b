// SPDX-License-Identifier: Apache-2.0
#include "analysis/changes.h"

#include <stdlib.h>
#include <string.h>

// By what a fact's name contains, so that a fact added later has a place. First match counts.
static const struct {
    const char *part;
    int weight;
} weights[] = {
    {"nps", 95},       {"snc", 95},        {"mem_speed", 95}, {"memory", 90},   {"numa_balanc", 90},
    {"hugepage", 85},  {"thp", 85},        {"governor", 80},  {"boost", 80},    {"turbo", 80},
    {"microcode", 75}, {"mitigation", 70}, {"vulnerab", 70},  {"prefetch", 70}, {"bios", 65},
    {"smt", 60},       {"freq", 60},       {"kernel", 50},    {"cmdline", 50},  {"node", 45},
    {"cpu", 45},       {"cache", 45},      {"virtual", 40},   {"mpi", 20},      {"version", 10},
    {"libc", 10},
};
enum { OTHER_WEIGHT = 30 };

static int weight_of(const char *name)
{
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (strstr(name, weights[i].part) != NULL)
            return weights[i].weight;
    return OTHER_WEIGHT;
}

static const char *value_of(const struct facts *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return f->list[i].value;
    return NULL;
}

static void add(struct changes *out, bool is_class, const char *name, const char *a, const char *b)
{
    if (out->n < CHANGES_MAX)
        out->list[out->n++] = (struct change){is_class, name, a, b, weight_of(name)};
}

static void find(struct changes *out, bool is_class, const struct facts *a, const struct facts *b)
{
    for (int i = 0; i < a->n; i++) {
        const char *other = value_of(b, a->list[i].name);
        if (other == NULL || strcmp(other, a->list[i].value) != 0)
            add(out, is_class, a->list[i].name, a->list[i].value, other);
    }
    for (int i = 0; i < b->n; i++)
        if (value_of(a, b->list[i].name) == NULL)
            add(out, is_class, b->list[i].name, NULL, b->list[i].value);
}

static int by_suspicion(const void *p, const void *q)
{
    const struct change *a = p, *b = q;
    if (a->is_class != b->is_class)
        return a->is_class ? -1 : 1;
    return a->weight != b->weight ? b->weight - a->weight : strcmp(a->name, b->name);
}

void changes_find(struct changes *out, const struct fingerprint *a, const struct fingerprint *b)
{
    out->n = 0;
    find(out, true, &a->machine_class, &b->machine_class);
    find(out, false, &a->config, &b->config);
    qsort(out->list, out->n, sizeof out->list[0], by_suspicion);
}

void changes_write_json(const struct changes *c, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < c->n; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "key", c->list[i].is_class ? "class" : "config");
        jsonw_text(w, "name", c->list[i].name);
        jsonw_text(w, "a", c->list[i].a);
        jsonw_text(w, "b", c->list[i].b);
        jsonw_i64(w, "weight", c->list[i].weight);
        jsonw_end(w);
    }
    jsonw_end(w);
}
