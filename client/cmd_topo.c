// SPDX-License-Identifier: Apache-2.0
// The machine: a tree and a table for people, the daemon's JSON, or hwloc's XML. With --measured
// all of them have the measured values too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/topo_measured.h"
#include "client/topo_tree.h"

struct topo_flags {
    char measured[80];
    bool xml;
};

static const struct param topo_params[] = {
    {.name = "measured",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct topo_flags, measured),
     .room = sizeof((struct topo_flags *)0)->measured,
     .def = "",
     .metavar = "RUN|last",
     .help = "Add the latency and bandwidth between nodes of a run, of several (17,18), or of the "
             "newest that this node measured. Only verified, undisturbed cells count."},
    {.name = "xml",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct topo_flags, xml),
     .def = "false",
     .help = "Print hwloc's XML, for lstopo -i and programs that use hwloc."},
};
const struct param_table topo_options = {topo_params, COUNT_OF(topo_params)};

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
static void cmd_topo_list_ids(const struct json *array, struct buf *out)
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
        cmd_topo_list_ids(json_get(n, "cpus"), &cpus);
        if (c->output == OUTPUT_TABLE)
            str_rough_size(bytes, memory, sizeof memory);
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
        buf_plain(&type, json_get_text(k, "type", ""));
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
        str_rough_size(bytes, size, sizeof size);
        if (bytes > 0)
            printf("node %lld is behind a memory-side cache of %s\n", node, size);
        if (json_get_bool(n, "only_if_named", false))
            printf("node %lld is measured only when --targets or --numa names it\n", node);
    }
}

static void topo_print_tables(const struct cli *c, const struct json *t)
{
    CLEANUP_BUF struct buf head = BUF_INIT;
    int cpus = json_count(json_get(t, "cpus")), nodes = json_count(json_get(t, "nodes"));
    buf_fmt(&head, "%s: %d CPU%s, %d NUMA node%s, cache line %lld bytes",
            json_get_text(t, "cpu_model", "?"), cpus, str_plural(cpus), nodes, str_plural(nodes),
            (long long)json_get_i64(t, "line_bytes", 0));
    print_paragraph(c, buf_text(&head), 2);
    putchar('\n');
    topo_tree_print(c, t);
    putchar('\n');
    print_nodes(t, c);
    print_kinds(t);
    print_special(t);
    if (!json_get_bool(t, "this_system", true))
        puts("\nThis is the topology of another machine. It can be shown, not measured.");
    if (json_get(t, "measured"))
        topo_measured_print(t);
}

static void topo_path(const struct topo_flags *f, const char *name, struct buf *out)
{
    buf_str(out, name);
    if (!*f->measured)
        return;
    buf_str(out, "?measured=");
    http_escape(out, f->measured);
}

static int topo_print_xml(const struct cli *c, const struct topo_flags *f, struct err *err)
{
    CLEANUP_REPLY struct http_reply r = {0};
    CLEANUP_BUF struct buf path = BUF_INIT;
    if (c->output != OUTPUT_TABLE)
        return err_set(err, ERR_USAGE, "", "--xml and --output exclude each other");
    topo_path(f, "/v1/topology.xml", &path);
    if (http_call(c, "GET", buf_text(&path), NULL, NULL, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    print_buf(&r.body);
    return 0;
}

int cmd_topo(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct topo_flags *f = i->options;
    CLEANUP_JSON struct json *t = NULL;
    CLEANUP_BUF struct buf path = BUF_INIT;
    if (f->xml)
        return topo_print_xml(c, f, err);
    topo_path(f, "/v1/topology", &path);
    if (http_json(c, "GET", buf_text(&path), NULL, &t, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        print_json(t);
    else if (c->output == OUTPUT_TABLE)
        topo_print_tables(c, t);
    else
        print_nodes(t, c);
    return 0;
}
