// SPDX-License-Identifier: Apache-2.0
// What the node is: topo, node, doctor.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/topo_tree.h"

// "0-2,5". A text of any length: every second CPU of a large machine is no range.
static void write_ids(const int *ids, int n, struct buf *out)
{
    enum { ID_ROOM = 12 }; // "-2147483648" or ",2147483647"
    size_t room = (size_t)n * ID_ROOM + 1;
    CLEANUP_MEM char *text = calloc(room, 1);
    if (!text) {
        buf_fail(out);
        return;
    }
    str_from_ids(ids, n, text, room);
    buf_str(out, text);
}

// Or "-" for none.
static void cmd_node_list_ids(const struct json *array, struct buf *out)
{
    CLEANUP_MEM int *ids = calloc((size_t)json_count(array) + 1, sizeof *ids);
    int n = 0;
    if (!ids) {
        buf_fail(out);
        return;
    }
    for (const struct json *v = json_first(array); v; v = json_next(v)) {
        int64_t i;
        if (json_i64(v, &i))
            ids[n++] = (int)i;
    }
    if (n)
        write_ids(ids, n, out);
    else
        buf_str(out, "-");
}

static void print_nodes(const struct json *topology, const struct cli *c)
{
    static const struct column columns[] = {
        {"node", "NODE", true},
        {"cpus", "CPUS", false, true},
        {"memory_bytes", "MEMORY", true},
        {"kind", "KIND", false},
        {"distances", "DISTANCES", false, true},
    };
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    for (const struct json *n = json_first(json_get(topology, "nodes")); n; n = json_next(n)) {
        char memory[32];
        CLEANUP_BUF struct buf cpus = BUF_INIT;
        double bytes = json_get_number(n, "memory_bytes", 0);
        cmd_node_list_ids(json_get(n, "cpus"), &cpus);
        if (c->output == OUTPUT_TABLE)
            print_bytes(memory, sizeof memory, bytes);
        else
            snprintf(memory, sizeof memory, "%.0f", bytes);
        CLEANUP_BUF struct buf distances = BUF_INIT;
        for (const struct json *d = json_first(json_get(n, "distances")); d; d = json_next(d)) {
            int64_t value = 0;
            json_i64(d, &value);
            buf_fmt(&distances, "%s%lld", distances.len ? " " : "", (long long)value);
        }
        grid_cell(&g, "%lld", (long long)json_get_i64(n, "node", -1));
        grid_cell(&g, "%s", buf_text(&cpus));
        grid_cell(&g, "%s", bytes || c->output != OUTPUT_TABLE ? memory : "none");
        grid_cell(&g, "%s", json_get_text(n, "kind", ""));
        grid_cell(&g, "%s", buf_text(&distances));
    }
    grid_print(&g, c);
}

static void list_cpus(const struct json *cpus, int64_t kind, struct buf *out)
{
    CLEANUP_MEM int *ids = calloc((size_t)json_count(cpus) + 1, sizeof *ids);
    int n = 0;
    if (!ids) {
        buf_fail(out);
        return;
    }
    for (const struct json *k = json_first(cpus); k; k = json_next(k))
        if (json_get_i64(k, "kind", -1) == kind)
            ids[n++] = (int)json_get_i64(k, "cpu", -1);
    write_ids(ids, n, out);
}

static void print_kinds(const struct json *topology)
{
    for (const struct json *k = json_first(json_get(topology, "kinds")); k; k = json_next(k)) {
        CLEANUP_BUF struct buf cpus = BUF_INIT, type = BUF_INIT;
        list_cpus(json_get(topology, "cpus"), json_get_i64(k, "kind", -1), &cpus);
        print_safe(&type, json_get_text(k, "type", ""));
        printf("cores of kind %lld: CPUs %s", (long long)json_get_i64(k, "kind", -1),
               buf_text(&cpus));
        if (type.len)
            printf(", %s", buf_text(&type));
        if (json_get_i64(k, "capacity", 0))
            printf(", capacity %lld of 1024", (long long)json_get_i64(k, "capacity", 0));
        if (json_get_i64(k, "max_mhz", 0))
            printf(", up to %lld MHz", (long long)json_get_i64(k, "max_mhz", 0));
        putchar('\n');
    }
}

static void print_special(const struct json *topology)
{
    for (const struct json *n = json_first(json_get(topology, "nodes")); n; n = json_next(n)) {
        char size[32];
        long long node = (long long)json_get_i64(n, "node", -1);
        double bytes = json_get_number(n, "memory_side_cache_bytes", 0);
        print_bytes(size, sizeof size, bytes);
        if (bytes > 0)
            printf("node %lld is behind a memory-side cache of %s\n", node, size);
        if (json_get_bool(n, "only_if_named", false))
            printf("node %lld is measured only when --targets or --numa names it\n", node);
    }
}

int cmd_topo(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)i;
    CLEANUP_JSON struct json *t = NULL;
    if (http_json(c, "GET", "/v1/topology", NULL, &t, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON) {
        print_json(t);
        return 0;
    }
    if (c->output == OUTPUT_TABLE) {
        CLEANUP_BUF struct buf model = BUF_INIT;
        print_safe(&model, json_get_text(t, "cpu_model", "?"));
        printf("%s: %d CPUs, %d NUMA node%s, cache line %lld bytes\n\n", buf_text(&model),
               json_count(json_get(t, "cpus")), json_count(json_get(t, "nodes")),
               json_count(json_get(t, "nodes")) == 1 ? "" : "s",
               (long long)json_get_i64(t, "line_bytes", 0));
    }
    if (c->output == OUTPUT_TABLE) {
        topo_tree_print(c, t);
        putchar('\n');
    }
    print_nodes(t, c);
    if (c->output == OUTPUT_TABLE) {
        print_kinds(t);
        print_special(t);
        if (!json_get_bool(t, "this_system", true))
            puts("\nThis is the topology of another machine. It can be shown, not measured.");
    }
    return 0;
}

static void add_facts(struct grid *g, const struct json *fingerprint, const char *key)
{
    for (const struct json *f = json_first(json_get(json_get(fingerprint, key), "facts")); f;
         f = json_next(f)) {
        grid_cell(g, "%s", key);
        grid_cell(g, "%s", json_name(f));
        grid_cell(g, "%s", json_text(f) ? json_text(f) : "");
    }
}

int cmd_node(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct column columns[] = {
        {"key", "KEY", false}, {"fact", "FACT", false}, {"value", "VALUE", false}};
    (void)i;
    CLEANUP_JSON struct json *node = NULL;
    if (http_json(c, "GET", "/v1/node", NULL, &node, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON) {
        print_json(node);
        return 0;
    }
    const struct json *f = json_get(node, "fingerprint");
    if (c->output == OUTPUT_TABLE) {
        CLEANUP_BUF struct buf b = BUF_INIT;
        print_safe(&b, json_get_text(node, "node", "?"));
        char hashes[80];
        snprintf(hashes, sizeof hashes, ": class %.12s, config %.12s; ranks run as ",
                 json_get_text(json_get(f, "hardware"), "hash", "?"),
                 json_get_text(json_get(f, "config"), "hash", "?"));
        print_safe(&b, hashes);
        print_safe(&b, json_get_text(node, "job_account", "?"));
        printf("%s\n\n", buf_text(&b));
    }
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    add_facts(&g, f, "hardware");
    add_facts(&g, f, "config");
    grid_print(&g, c);
    return 0;
}

// Adds one finding; a missing daemon is one too, so doctor answers without it.
static void add_finding(struct grid *g, const char *name, const char *text, const char *remedy,
                        bool serious)
{
    grid_cell(g, "%s", serious ? "serious" : "note");
    grid_cell(g, "%s", name);
    grid_cell(g, "%s", text);
    grid_cell(g, "%s", remedy);
}

static bool cmd_node_add_findings(struct grid *g, const struct json *node)
{
    bool serious = false;
    for (const struct json *f = json_first(json_get(node, "findings")); f; f = json_next(f)) {
        bool bad = json_get_bool(f, "serious", false);
        add_finding(g, json_get_text(f, "name", ""), json_get_text(f, "text", ""),
                    json_get_text(f, "remedy", ""), bad);
        serious |= bad;
    }
    return serious;
}

static bool add_readiness(struct grid *g, struct cli *c)
{
    CLEANUP_REPLY struct http_reply r = {0};
    if (http_call(c, "GET", "/readyz?verbose", NULL, NULL, &r, NULL) < 0)
        return false;
    CLEANUP_JSON struct json *j = json_parse(buf_text(&r.body), r.body.len, NULL);
    bool serious = false;
    serious |= cmd_node_add_findings(g, j);
    for (const struct json *k = json_first(json_get(j, "checks")); k; k = json_next(k))
        if (!json_get_bool(k, "ok", true)) {
            add_finding(g, json_get_text(k, "name", ""), json_get_text(k, "text", ""), "", true);
            serious = true;
        }
    return serious;
}

static bool has_finding(const struct grid *g, const char *name)
{
    for (int i = 0; i < g->n_rows; i += g->n_columns)
        if (strcmp(g->cells[i + 1], name) == 0)
            return true;
    return false;
}

static void add_blocker(struct grid *g, const struct json *b, const char *remedy)
{
    const char *kind = json_get_text(b, "kind", "");
    if (!has_finding(g, kind))
        add_finding(g, kind, json_get_text(b, "text", ""), remedy, false);
}

// What would keep a run from starting now passes, so it is no serious finding.
static void add_blockers(struct grid *g, struct cli *c)
{
    CLEANUP_JSON struct json *now = NULL;
    if (http_json(c, "GET", "/v1/availability", NULL, &now, NULL) < 0)
        return;
    for (const struct json *b = json_first(json_get(now, "blockers")); b; b = json_next(b))
        add_blocker(g, b,
                    strcmp(json_get_text(b, "kind", ""), "topology_not_live") == 0
                        ? "" // waiting changes nothing
                        : "numaprobe run --wait-for-node=3600");
    for (const struct json *b = json_first(json_get(now, "warnings")); b; b = json_next(b))
        add_blocker(g, b, "");
}

static void print_findings(const struct grid *g)
{
    if (!g->n_rows)
        puts("No condition that distorts measurements was found on this node.");
    for (int i = 0; i < g->n_rows; i += g->n_columns) {
        printf("%s %s: %s\n", strcmp(g->cells[i], "serious") ? "-" : "!", g->cells[i + 1],
               g->cells[i + 2]);
        if (*g->cells[i + 3])
            printf("    fix: %s\n", g->cells[i + 3]);
    }
}

// One line, for people: how much is stored and what becomes of it.
static void print_storage(struct cli *c)
{
    CLEANUP_JSON struct json *s = NULL;
    char used[32], left[32];
    if (http_json(c, "GET", "/v1/storage", NULL, &s, NULL) < 0)
        return;
    const struct json *r = json_get(s, "retention");
    bool limited = json_get_i64(r, "keep_days", 0) || json_get_i64(r, "keep_runs", 0) ||
                   json_get_i64(r, "keep_bytes", 0);
    print_bytes(used, sizeof used, json_get_number(s, "used_bytes", 0));
    print_bytes(left, sizeof left, json_get_number(s, "disk_free_bytes", 0));
    printf("\nstored: %lld runs in %s, %s free on the disk; %s\n",
           (long long)json_get_i64(s, "runs", 0), used, left,
           limited ? "old runs are deleted, except labelled runs and baselines"
                   : "no run is ever deleted");
}

int cmd_doctor(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct column columns[] = {{"weight", "WEIGHT", false},
                                            {"name", "NAME", false},
                                            {"text", "TEXT", false},
                                            {"remedy", "REMEDY", false}};
    (void)i;
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    CLEANUP_JSON struct json *node = NULL;
    bool serious;
    if (http_json(c, "GET", "/v1/node", NULL, &node, err) < 0) {
        add_finding(&g, "daemon", err->text, "systemctl enable --now numaprobed", true);
        serious = true;
    } else {
        serious = add_readiness(&g, c);
        serious |= cmd_node_add_findings(&g, node);
        add_blockers(&g, c);
    }
    if (c->output == OUTPUT_TABLE) {
        print_findings(&g);
        if (node)
            print_storage(c);
    } else
        grid_print(&g, c);
    return serious ? 1 : 0;
}
