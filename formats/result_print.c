// SPDX-License-Identifier: Apache-2.0
// A table chooses the form by the axes of a matrix. Then come the conditions and a summary of
// where memory was.
#include "formats/result_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "formats/result_table.h"
#include "model/mix.h"
#include "model/scan.h"

enum {
    LABEL_WIDTH = 18,
    COLUMN_WIDTH = 10,
    STREAM_WIDTH = 12,
    NODE_COLUMNS = 64,
    HIERARCHY_MATRICES = 8,
    SCAN_MATRICES = 7,
    SCAN_ROWS = 64, // of larger tables only what is odd is printed
};

struct result {
    const struct matrix *list;
    int n;
    const struct rank_info *ranks;
    int n_ranks, width;
};

static bool axes_are(const struct matrix *m, const char *rows, const char *cols)
{
    return strcmp(m->row.name, rows) == 0 && strcmp(m->col.name, cols) == 0;
}

static double median(const struct matrix *m, int row, int col)
{
    return matrix_at(m, row, col)->v[CELL_MEDIAN];
}

static const struct rank_info *result_print_find_rank(const struct result *r, int64_t rank)
{
    for (int i = 0; i < r->n_ranks; i++)
        if (r->ranks[i].rank == rank)
            return &r->ranks[i];
    return NULL;
}

// "3 (CPU 7, node 1)" for a rank, the axis' own label for all else.
static void result_print_row_label(const struct result *r, const struct matrix *m, int row,
                                   char *out, size_t room)
{
    const struct rank_info *rank =
        strcmp(m->row.name, "rank") == 0 ? result_print_find_rank(r, m->row.values[row]) : NULL;
    if (rank)
        snprintf(out, room, "%" PRId64 " CPU %" PRId64 " node %" PRId64, rank->rank, rank->cpu,
                 rank->cpu_node);
    else
        axis_label(&m->row, row, out, room);
}

static void wide_value(double v, int width, int digits, struct buf *out)
{
    if (isfinite(v))
        buf_fmt(out, " %*.*f", width, digits, v);
    else
        buf_fmt(out, " %*s", width, "-");
}

static void value(double v, int digits, struct buf *out)
{
    wide_value(v, COLUMN_WIDTH, digits, out);
}

static int digits_of(const struct matrix *m)
{
    return strcmp(m->unit, "us") == 0 || !*m->unit ? 2 : 1; // a ratio has no unit
}

// Labels of interleaved memory are wider than numbers.
static int grid_width(const struct matrix *m)
{
    char label[AXIS_LABEL_ROOM];
    int most = COLUMN_WIDTH;
    for (int c = 0; c < m->col.n; c++) {
        axis_label(&m->col, c, label, sizeof label);
        most = (int)strlen(label) > most ? (int)strlen(label) : most;
    }
    return most;
}

static void grid_heads(const struct matrix *m, int from, int to, struct buf *out)
{
    char head[48], label[AXIS_LABEL_ROOM];
    int width = grid_width(m);
    snprintf(head, sizeof head, "%s \\ %s", m->row.name, m->col.name);
    buf_fmt(out, "%-*s", LABEL_WIDTH, head);
    for (int c = from; c < to; c++) {
        if (strcmp(m->col.unit, "bytes") == 0)
            str_from_bytes((uint64_t)m->col.values[c], label, sizeof label);
        else
            axis_label(&m->col, c, label, sizeof label);
        buf_fmt(out, " %*s", width, label);
    }
    buf_char(out, '\n');
}

static void grid_columns(const struct result *r, const struct matrix *m, int from, int to,
                         struct buf *out)
{
    char label[80];
    grid_heads(m, from, to, out);
    for (int row = 0; row < m->row.n; row++) {
        result_print_row_label(r, m, row, label, sizeof label);
        buf_fmt(out, "%-*s", LABEL_WIDTH, label);
        for (int c = from; c < to; c++)
            wide_value(median(m, row, c), grid_width(m), digits_of(m), out);
        buf_char(out, '\n');
    }
}

// As many columns side by side as there is room for.
static void grid(const struct result *r, const struct matrix *m, struct buf *out)
{
    int fit = r->width ? (r->width - LABEL_WIDTH) / (grid_width(m) + 1) : m->col.n;
    int step = fit > 0 ? fit : 1;
    if (*m->unit)
        buf_fmt(out, "%s: %s (%s)\n", m->name, m->quantity, m->unit);
    else
        buf_fmt(out, "%s: %s\n", m->name, m->quantity);
    for (int from = 0; from < m->col.n; from += step) {
        buf_str(out, from ? "\n" : "");
        grid_columns(r, m, from, from + step < m->col.n ? from + step : m->col.n, out);
    }
}

static void grids(const struct result *r, struct buf *out)
{
    for (int i = 0; i < r->n; i++) {
        buf_str(out, i ? "\n" : "");
        grid(r, &r->list[i], out);
    }
}

// --- Latency -----------------------------------------------------------------------------------

// The classic table where there is room for it.
static void latency_table(const struct result *r, const struct matrix *m, struct buf *out)
{
    if (r->width && result_table_width(m) > r->width)
        grid(r, m, out);
    else
        result_table_write(m, r->ranks, r->n_ranks, out);
}

static void latency(const struct result *r, struct buf *out)
{
    static const char *const titles[] = {"Concurrent (all ranks at once)",
                                         "Serial (one rank at a time)"};
    struct matrix ratio CLEANUP(matrix_fini) = {0};
    for (int i = 0; i < r->n; i++) {
        if (r->n > 1)
            buf_fmt(out, "%s\n", titles[strcmp(r->list[i].name, "serial") == 0]);
        latency_table(r, &r->list[i], out);
        buf_str(out, i + 1 < r->n ? "\n" : "");
    }
    struct err err = {0};
    if (r->n != 2)
        return;
    if (result_ratio(&ratio, &r->list[0], &r->list[1], &err) < 0) {
        if (err.code == ERR_NO_MEMORY)
            buf_fail(out);
        return; // else they have nothing in common
    }
    buf_str(out, "\nContention (concurrent / serial)\n");
    latency_table(r, &ratio, out);
}

// --- Matrix, as Intel's Memory Latency Checker prints it -----------------------------------------

enum { MLC_LABEL_WIDTH = 24, MLC_COLUMN_WIDTH = 8 };

static void node_to_node(const struct result *r, struct buf *out)
{
    const struct matrix *m = &r->list[0];
    if (r->width && MLC_LABEL_WIDTH + MLC_COLUMN_WIDTH * m->col.n > r->width) {
        grid(r, m, out);
        return;
    }
    buf_str(out, "Idle latencies (in ns)\n\t\tNuma node\nNuma node (CPU)  \t");
    for (int c = 0; c < m->col.n; c++)
        buf_fmt(out, "%8" PRId64, m->col.values[c]);
    buf_char(out, '\n');
    for (int row = 0; row < m->row.n; row++) {
        const struct rank_info *rank = result_print_find_rank(r, m->row.values[row]);
        char label[48] = "-";
        if (rank)
            snprintf(label, sizeof label, "%" PRId64 " (%" PRId64 ")", rank->cpu_node, rank->cpu);
        buf_fmt(out, "%15s  \t", label);
        for (int c = 0; c < m->col.n; c++)
            buf_fmt(out, "%8.1f", median(m, row, c));
        buf_char(out, '\n');
    }
}

// --- Bandwidth -----------------------------------------------------------------------------------

// One row and one column: the lines that STREAM prints.
static void stream_lines(const struct result *r, struct buf *out)
{
    buf_fmt(out, "%-10s %12s %12s %12s %12s\n", "Function", "Median MB/s", "Low", "High", "p99");
    for (int i = 0; i < r->n; i++) {
        const double *v = r->list[i].cells[0].v;
        static const enum cell_field fields[] = {CELL_MEDIAN, CELL_LO, CELL_HI, CELL_P99};
        buf_fmt(out, "%-10s", r->list[i].name);
        for (size_t k = 0; k < COUNT_OF(fields); k++)
            wide_value(v[fields[k]], STREAM_WIDTH, 1, out);
        buf_char(out, '\n');
    }
}

static void result_print_bandwidth(const struct result *r, struct buf *out)
{
    const struct matrix *m = &r->list[0];
    if (m->row.n == 1 && m->col.n == 1 && strcmp(m->quantity, "bandwidth") == 0)
        stream_lines(r, out);
    else
        grids(r, out);
}

// --- Ping-pong, with IMB's columns ---------------------------------------------------------------

static void pair_table(const struct matrix *m, int row, struct buf *out)
{
    char label[32];
    double peak = 0;
    axis_label(&m->row, row, label, sizeof label);
    buf_fmt(out, "# Pair %s\n%13s %13s %13s %13s %13s\n", label, "#bytes", "#samples", "t[usec]",
            "Mbytes/sec", "p99[usec]");
    for (int c = 0; c < m->col.n; c++) {
        const double *v = matrix_at(m, row, c)->v;
        double rate = v[CELL_MEDIAN] > 0 ? (double)m->col.values[c] / v[CELL_MEDIAN] : 0;
        peak = rate > peak ? rate : peak;
        buf_fmt(out, "%13" PRId64 " %13.0f %13.2f %13.2f", m->col.values[c], v[CELL_N],
                v[CELL_MEDIAN], rate);
        wide_value(v[CELL_P99], 13, 2, out);
        buf_char(out, '\n');
    }
    buf_fmt(out, "latency of %.2f us", median(m, row, 0));
    if (peak > 0) // else all messages are empty
        buf_fmt(out, " and maximum bandwidth of %.2f GB/s", peak / 1000);
    buf_char(out, '\n');
}

static void pingpong(const struct result *r, struct buf *out)
{
    if (strcmp(r->list[0].unit, "us") != 0) { // cache lines of c2c are no messages of MPI
        grids(r, out);
        return;
    }
    for (int row = 0; row < r->list[0].row.n; row++) {
        buf_str(out, row ? "\n" : "");
        pair_table(&r->list[0], row, out);
    }
}

// --- First touch -------------------------------------------------------------------------------

static void first_touch(const struct result *r, struct buf *out)
{
    const struct matrix *m = &r->list[0];
    char label[80];
    buf_fmt(out,
            "Access time (ns) with all ranks at once, and its ratio to own memory\n%-*s %*s %*s "
            "%*s %*s %*s\n",
            LABEL_WIDTH, "rank", COLUMN_WIDTH, "own", COLUMN_WIDTH, "shared", COLUMN_WIDTH, "",
            COLUMN_WIDTH, "crossed", COLUMN_WIDTH, "");
    for (int row = 0; row < m->row.n; row++) {
        double own = median(m, row, ACCESS_OWN);
        result_print_row_label(r, m, row, label, sizeof label);
        buf_fmt(out, "%-*s", LABEL_WIDTH, label);
        value(own, 2, out);
        for (int a = ACCESS_SHARED; a < AXIS_ACCESSES; a++) {
            char ratio[32];
            value(median(m, row, a), 2, out);
            snprintf(ratio, sizeof ratio, "x %.2f", median(m, row, a) / own);
            buf_fmt(out, " %*s", COLUMN_WIDTH, ratio);
        }
        buf_char(out, '\n');
    }
}

// --- Loaded latency ----------------------------------------------------------------------------

// "rank 0 CPU 0 node 0 while the others of its node move data: 3:1", "path 0->2 under load"
static void loaded_heading(const struct result *r, const struct matrix *m, int row, struct buf *out)
{
    const struct load_mix *mix = mix_of_matrix(m->name);
    char label[80];
    result_print_row_label(r, m, row, label, sizeof label);
    if (strcmp(m->row.name, "path") == 0)
        buf_fmt(out, "Latency from node to node %s while the node's other ranks move data there",
                label);
    else
        buf_fmt(out, "Latency of rank %s while the others of its node move data", label);
    buf_fmt(out, "%s%s\n%*s %*s %*s\n", mix ? ": " : "", mix ? mix->name : "", COLUMN_WIDTH, "load",
            COLUMN_WIDTH, "MB/s", COLUMN_WIDTH, "ns");
}

static void loaded_curve(const struct result *r, const struct matrix *pair, int row,
                         struct buf *out)
{
    loaded_heading(r, &pair[0], row, out);
    for (int c = 0; c < pair[0].col.n; c++) {
        buf_fmt(out, "%*" PRId64 "%%", COLUMN_WIDTH - 1, pair[0].col.values[c]);
        value(median(&pair[1], row, c), 1, out);
        value(median(&pair[0], row, c), 1, out);
        buf_char(out, '\n');
    }
}

// Pairs of latency and bandwidth, one of each mix.
static void loaded(const struct result *r, struct buf *out)
{
    for (int row = 0; row < r->list[0].row.n; row++)
        for (int i = 0; i + 1 < r->n; i += 2) {
            buf_str(out, row || i ? "\n" : "");
            loaded_curve(r, &r->list[i], row, out);
        }
}

// --- Scan --------------------------------------------------------------------------------------

// What is odd, a line each: the unit, what is slow, per cent of the peers and the interval.
// Adds to *loose what deviates and was not confirmed. Returns how many are odd.
static int scan_odd_lines(const struct result *r, const struct matrix *m, int *loose,
                          struct buf *out)
{
    char unit[80], aspect[32];
    int odd = 0;
    for (int row = 0; row < m->row.n; row++)
        for (int c = 0; c < m->col.n; c++) {
            const struct cell *cell = matrix_at(m, row, c);
            *loose += scan_is_unconfirmed(cell);
            if (!scan_is_odd(cell))
                continue;
            result_print_row_label(r, m, row, unit, sizeof unit);
            axis_label(&m->col, c, aspect, sizeof aspect);
            buf_fmt(out, "%-6s %-*s %-*s", m->name, LABEL_WIDTH, unit, COLUMN_WIDTH, aspect);
            value(cell->v[CELL_MEDIAN], 1, out);
            value(cell->v[CELL_LO], 1, out);
            value(cell->v[CELL_HI], 1, out);
            buf_char(out, '\n');
            odd++;
        }
    return odd;
}

static void scan_tables(const struct result *r, struct buf *out)
{
    int odd = 0, loose = 0;
    buf_fmt(out, "Slower than the peers (%% of their median)\n%-6s %-*s %-*s %*s %*s %*s\n", "",
            LABEL_WIDTH, "", COLUMN_WIDTH, "", COLUMN_WIDTH, "median", COLUMN_WIDTH, "low",
            COLUMN_WIDTH, "high");
    for (int i = 0; i < r->n; i++)
        if (axes_are(&r->list[i], r->list[i].row.name, "aspect"))
            odd += scan_odd_lines(r, &r->list[i], &loose, out);
    if (loose)
        buf_fmt(out, "%d deviation%s not confirmed: raise --budget, or --visits\n", loose,
                loose == 1 ? " was" : "s were");
    else if (!odd)
        buf_str(out, "nothing is odd\n");
    for (int i = 0; i < r->n; i++)
        if (r->list[i].row.n <= SCAN_ROWS) {
            buf_char(out, '\n');
            grid(r, &r->list[i], out);
        }
}

// --- The whole ---------------------------------------------------------------------------------

static const struct {
    const char *rows, *cols;
    int matrices; // 0: any number
    void (*write)(const struct result *r, struct buf *out);
} forms[] = {
    {"rank", "working_set", HIERARCHY_MATRICES, grids},
    {"rank", "working_set", SCAN_MATRICES, scan_tables},
    {"rank", "working_set", 0, latency},
    {"rank", "target", 1, node_to_node},
    {"initiator", "target", 0, result_print_bandwidth},
    {"threads", "target", 0, result_print_bandwidth},
    {"threads", "working_set", 0, result_print_bandwidth},
    {"source", "target", 0, result_print_bandwidth},
    {"pair", "message", 1, pingpong},
    {"rank", "access", 1, first_touch},
    {"rank", "load", 0, loaded},
    {"path", "load", 0, loaded},
};

void result_tables_write(const struct matrix *list, int n, const struct rank_info *ranks,
                         int n_ranks, int width, struct buf *out)
{
    const struct result r = {list, n, ranks, n_ranks, width};
    for (size_t i = 0; n > 0 && i < COUNT_OF(forms); i++)
        if (axes_are(&list[0], forms[i].rows, forms[i].cols) &&
            (!forms[i].matrices || forms[i].matrices == n)) {
            forms[i].write(&r, out);
            return;
        }
    grids(&r, out);
}

void result_notes_write(const struct matrix *list, int n, const struct rank_info *ranks,
                        int n_ranks, struct buf *out)
{
    for (int i = 0; i < n; i++)
        result_notes_matrix(&list[i], out);
    result_notes_ranks(ranks, n_ranks, out);
}

// --- Where memory is ---------------------------------------------------------------------------

static int known_nodes(const struct rank_info *ranks, int n_ranks, int64_t nodes[NODE_COLUMNS])
{
    int n = 0;
    for (int r = 0; r < n_ranks; r++)
        for (int i = 0; i < ranks[r].n_nodes; i++) {
            int64_t node = ranks[r].nodes[i].node;
            int at = 0;
            while (at < n && nodes[at] < node)
                at++;
            if (!ranks[r].nodes[i].process_kib || n == NODE_COLUMNS ||
                (at < n && nodes[at] == node))
                continue;
            memmove(&nodes[at + 1], &nodes[at], (size_t)(n - at) * sizeof *nodes);
            nodes[at] = node;
            n++;
        }
    return n;
}

static void usage_line(struct buf *out, const char *head, const double *mib, int nodes)
{
    double total = 0;
    buf_fmt(out, "%-17s", head);
    for (int n = 0; n < nodes; n++) {
        buf_fmt(out, " %15.2f", mib[n]);
        total += mib[n];
    }
    buf_fmt(out, " %15.2f\n", total);
}

static void usage_rule(struct buf *out, const char *head, int columns)
{
    buf_fmt(out, "%-17s", head);
    for (int n = 0; n < columns; n++)
        buf_str(out, " ---------------");
    buf_char(out, '\n');
}

static void usage_heads(struct buf *out, const int64_t *nodes, int n)
{
    char text[32];
    buf_fmt(out, "Per-node memory usage of the ranks (in MBs)\n%-17s", "");
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "Node %" PRId64, nodes[i]);
        buf_fmt(out, " %15s", text);
    }
    buf_fmt(out, " %15s\n", "Total");
    usage_rule(out, "", n + 1);
}

void result_usage_write(const struct rank_info *ranks, int n_ranks, struct buf *out)
{
    int64_t nodes[NODE_COLUMNS + 1];
    double sum[NODE_COLUMNS] = {0};
    int n = known_nodes(ranks, n_ranks, nodes);
    if (!n)
        return;
    usage_heads(out, nodes, n);
    for (int r = 0; r < n_ranks; r++) {
        double mib[NODE_COLUMNS] = {0};
        char text[32];
        for (int i = 0; i < ranks[r].n_nodes; i++)
            for (int k = 0; k < n; k++)
                if (nodes[k] == ranks[r].nodes[i].node)
                    mib[k] = (double)ranks[r].nodes[i].process_kib / 1024;
        for (int k = 0; k < n; k++)
            sum[k] += mib[k];
        snprintf(text, sizeof text, "Rank %03" PRId64, ranks[r].rank);
        usage_line(out, text, mib, n);
    }
    usage_rule(out, "----------------", n + 1);
    usage_line(out, "Total", sum, n);
}
