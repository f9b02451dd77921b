// SPDX-License-Identifier: Apache-2.0
// CPUs are sorted by package, node and last-level cache, so that each part of the tree is a run of
// neighbours. Below a cache stands one line for each kind of core, since a hybrid processor has
// cores with different caches of their own.
#include "client/topo_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/print.h"

enum level { BY_PACKAGE, BY_NODE, BY_CACHE, BY_KIND, LEVELS };
enum { INDENT_ROOM = 64, ID_ROOM = 12 }; // "│  " for each level; ",2147483647"

struct tree_cpu {
    int key[LEVELS]; // -1: not known
    int cpu, core;
};

struct tree {
    const struct cli *cli;
    const struct json *topology;
    struct tree_cpu *cpus; // owned
    int n;
};

static void tree_fini(struct tree *t)
{
    free(t->cpus);
}

static int tree_by_place(const void *a, const void *b)
{
    const struct tree_cpu *x = a, *y = b;
    for (int k = 0; k < LEVELS; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] < y->key[k] ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static bool read_cpus(struct tree *t)
{
    static const char *const members[] = {"package", "node", "llc", "kind"};
    const struct json *list = json_get(t->topology, "cpus");
    t->cpus = calloc((size_t)json_count(list) + 1, sizeof *t->cpus);
    for (const struct json *k = json_first(list); k && t->cpus; k = json_next(k)) {
        struct tree_cpu *c = &t->cpus[t->n++];
        for (int m = 0; m < LEVELS; m++)
            c->key[m] = (int)json_get_i64(k, members[m], -1);
        c->cpu = (int)json_get_i64(k, "cpu", -1);
        c->core = (int)json_get_i64(k, "core", c->cpu);
    }
    if (t->cpus)
        qsort(t->cpus, (size_t)t->n, sizeof *t->cpus, tree_by_place);
    return t->cpus != NULL;
}

// ---- What stands in a line ----------------------------------------------------------------------

static void tree_size_text(const struct json *of, const char *member, struct buf *out)
{
    char size[32];
    str_rough_size(json_get_number(of, member, 0), size, sizeof size);
    buf_str(out, size);
}

static void package_text(const struct tree *t, const struct tree_cpu *first, int n, struct buf *out)
{
    (void)t, (void)n;
    if (first->key[BY_PACKAGE] >= 0)
        buf_fmt(out, "package %d", first->key[BY_PACKAGE]);
    else
        buf_str(out, "machine");
}

static void node_json_text(const struct json *node, struct buf *out)
{
    buf_fmt(out, "node %lld", (long long)json_get_i64(node, "node", -1));
    if (json_get_number(node, "memory_bytes", 0) > 0) {
        buf_str(out, ", ");
        tree_size_text(node, "memory_bytes", out);
        buf_char(out, ' ');
    } else {
        buf_str(out, ", no memory");
    }
    buf_str(out,
            json_get_number(node, "memory_bytes", 0) > 0 ? json_get_text(node, "kind", "") : "");
}

static void node_text(const struct tree *t, const struct tree_cpu *first, int n, struct buf *out)
{
    (void)n;
    for (const struct json *k = json_first(json_get(t->topology, "nodes")); k; k = json_next(k))
        if (json_get_i64(k, "node", -1) == first->key[BY_NODE]) {
            node_json_text(k, out);
            return;
        }
    buf_str(out, "no NUMA node");
}

static const struct json *cache_at(const struct tree *t, int index)
{
    const struct json *k = json_first(json_get(t->topology, "caches"));
    for (int i = 0; k && i < index; i++)
        k = json_next(k);
    return index < 0 ? NULL : k;
}

static void cache_text(const struct tree *t, const struct tree_cpu *first, int n, struct buf *out)
{
    const struct json *k = cache_at(t, first->key[BY_CACHE]);
    (void)n;
    if (!k) {
        buf_str(out, "no shared cache");
        return;
    }
    buf_fmt(out, "L%lld ", (long long)json_get_i64(k, "level", 0));
    tree_size_text(k, "bytes", out);
}

static bool is_among(const struct tree_cpu *first, int n, int64_t cpu)
{
    for (int i = 0; i < n; i++)
        if (first[i].cpu == cpu)
            return true;
    return false;
}

static bool same_form(const struct json *a, const struct json *b)
{
    static const char *const members[] = {"level", "bytes", "cpus_sharing"};
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (json_get_i64(a, members[i], 0) != json_get_i64(b, members[i], 0))
            return false;
    return true;
}

// "; L2 4 x 2M, L1 4 x 64K": caches of these CPUs that are not their last-level one.
static void inner_caches_text(const struct tree *t, const struct tree_cpu *first, int n,
                              struct buf *out)
{
    const struct json *all = json_get(t->topology, "caches");
    const struct json *last = cache_at(t, first->key[BY_CACHE]);
    const char *before = "; ";
    for (int level = 4; level >= 1; level--)
        for (const struct json *k = json_first(all); k; k = json_next(k)) {
            int count = 0;
            bool seen = false;
            if (k == last || json_get_i64(k, "level", 0) != level ||
                !is_among(first, n, json_get_i64(k, "first_cpu", -1)))
                continue;
            for (const struct json *o = json_first(all); o; o = json_next(o)) {
                bool alike = same_form(k, o) && o != last &&
                             is_among(first, n, json_get_i64(o, "first_cpu", -1));
                seen |= alike && !count && o != k;
                count += alike;
            }
            if (seen)
                continue;
            buf_fmt(out, "%sL%d %d x ", before, level, count);
            tree_size_text(k, "bytes", out);
            before = ", ";
        }
}

// "Core: ", or "cores of kind 0: " as in the list below the tree.
static void kind_text(const struct json *kind, struct buf *out)
{
    const char *type = json_get_text(kind, "type", "");
    if (*type)
        buf_fmt(out, "%s: ", type);
    else
        buf_fmt(out, "cores of kind %lld: ", (long long)json_get_i64(kind, "kind", 0));
}

// "Core: 4 cores, CPUs 0-7; L2 4 x 2M, L1 4 x 64K"
static void cores_text(const struct tree *t, const struct tree_cpu *first, int n, struct buf *out)
{
    CLEANUP_MEM int *ids = calloc((size_t)n + 1, sizeof *ids);
    size_t room = (size_t)n * ID_ROOM + 1;
    CLEANUP_MEM char *list = calloc(room, 1);
    int cores = 0;
    if (!ids || !list) {
        buf_fail(out);
        return;
    }
    for (int i = 0; i < n; i++) {
        int before = 0;
        while (before < i && first[before].core != first[i].core)
            before++;
        cores += before == i;
        ids[i] = first[i].cpu;
    }
    for (const struct json *k = json_first(json_get(t->topology, "kinds")); k; k = json_next(k))
        if (json_get_i64(k, "kind", -1) == first->key[BY_KIND])
            kind_text(k, out);
    str_from_ids(ids, n, list, room);
    buf_fmt(out, "%d core%s, CPU%s %s", cores, str_plural(cores), str_plural(n), list);
    inner_caches_text(t, first, n, out);
}

// ---- Lines --------------------------------------------------------------------------------------

static void print_branch(const struct tree *t, const char *indent, bool last,
                         const struct buf *text)
{
    CLEANUP_BUF struct buf first = BUF_INIT, next = BUF_INIT, safe = BUF_INIT;
    bool unicode = print_unicode(t->cli);
    const char *branch = last ? "`- " : "|- ", *below = last ? "   " : "|  ";
    if (unicode) {
        branch = last ? "└─ " : "├─ ";
        below = last ? "   " : "│  ";
    }
    buf_plain(&safe, buf_text(text));
    buf_fmt(&first, "%s%s", indent, branch);
    buf_fmt(&next, "%s%s  ", indent, below);
    print_folded(t->cli, buf_text(&safe), buf_text(&first), buf_text(&next));
}

// CPUs that differ in this level or one above it, and what is below each.
static void tree_draw(const struct tree *t, enum level level, const struct tree_cpu *first, int n,
                      const char *indent)
{
    static void (*const texts[LEVELS])(const struct tree *, const struct tree_cpu *, int,
                                       struct buf *) = {package_text, node_text, cache_text,
                                                        cores_text};
    for (int from = 0; from < n;) {
        char below[INDENT_ROOM];
        CLEANUP_BUF struct buf text = BUF_INIT;
        int to = from + 1;
        while (to < n && first[to].key[level] == first[from].key[level])
            to++;
        texts[level](t, first + from, to - from, &text);
        print_branch(t, indent, to == n, &text);
        snprintf(below, sizeof below, "%s%s", indent,
                 to == n                 ? "   "
                 : print_unicode(t->cli) ? "│  "
                                         : "|  ");
        if (level + 1 < LEVELS)
            tree_draw(t, (enum level)(level + 1), first + from, to - from, below);
        from = to;
    }
}

// Nodes of which no CPU is local.
static void draw_memory(const struct tree *t)
{
    for (const struct json *k = json_first(json_get(t->topology, "nodes")); k; k = json_next(k)) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        bool local = false;
        for (int i = 0; i < t->n; i++)
            local |= t->cpus[i].key[BY_NODE] == json_get_i64(k, "node", -1);
        if (local)
            continue;
        node_json_text(k, &text);
        buf_str(&text, ", no CPUs");
        print_cut(t->cli, buf_text(&text));
    }
}

void topo_tree_print(const struct cli *c, const struct json *topology)
{
    struct tree t CLEANUP(tree_fini) = {.cli = c, .topology = topology};
    CLEANUP_BUF struct buf lost = BUF_INIT;
    if (!read_cpus(&t)) {
        buf_fail(&lost); // it is said at the end
        return;
    }
    tree_draw(&t, BY_PACKAGE, t.cpus, t.n, "");
    draw_memory(&t);
}
