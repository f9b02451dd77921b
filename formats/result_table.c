// SPDX-License-Identifier: Apache-2.0
// The layout is that of the classic table, whose readers and parsers exist: fixed columns on the
// left, then columns of six characters between single spaces.
#include "formats/result_table.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/scan.h"

enum {
    VALUE_WIDTH = 6,     // "171.25", "16384M"
    LISTED_RANKS = 8,    // named in a note; the rest is counted
    OVERLAP_PERCENT = 95 // below, the load was not the same for all samples
};

// The columns left of the values; `head` and `rule` as they stand in the table.
static const char left_group[] = "|  MPI  |        CPU     |              MEMORY    |";
static const char left_rule[] = "|-------|---------|------|----------------|-------|";
static const char left_heads[] = "| Ranks | Cores   | NUMA |     Address    | NUMA  |";

static void result_table_repeat(struct buf *out, char c, int n)
{
    for (int i = 0; i < n; i++)
        buf_char(out, c);
}

static void column_head(const struct matrix *m, int col, char *text, size_t room)
{
    if (strcmp(m->col.unit, "bytes") == 0)
        str_size_head((uint64_t)m->col.values[col], text, room);
    else
        axis_label(&m->col, col, text, room);
}

static void result_table_value_text(double v, char *text, size_t room)
{
    if (isfinite(v))
        snprintf(text, room, "%.2f", v);
    else
        snprintf(text, room, "-");
}

// Widths are found once: a matrix may have 1024 ranks and 48 sizes.
struct layout {
    const struct matrix *m;
    char title[32];
    int *widths; // of each column; owned
    int total;   // of all columns with their padding and the bars between them
};

static int column_width(const struct matrix *m, int col, int least)
{
    char text[48];
    column_head(m, col, text, sizeof text);
    int width = (int)strlen(text) > least ? (int)strlen(text) : least;
    for (int r = 0; r < m->row.n; r++) {
        result_table_value_text(matrix_at(m, r, col)->v[CELL_MEDIAN], text, sizeof text);
        if ((int)strlen(text) > width)
            width = (int)strlen(text);
    }
    return width;
}

static void group_title(const struct matrix *m, char *text, size_t room)
{
    int n = *m->unit ? snprintf(text, room, "%s (%s)", m->quantity, m->unit)
                     : snprintf(text, room, "%s", m->quantity);
    int upper = (int)strlen(m->quantity);
    for (int i = 0; i < upper && i < n; i++)
        text[i] = (char)toupper((unsigned char)text[i]);
}

static void layout_fini(struct layout *l)
{
    free(l->widths);
}

static bool layout_init(struct layout *l, const struct matrix *m)
{
    *l = (struct layout){.m = m, .total = m->col.n - 1};
    l->widths = calloc((size_t)m->col.n, sizeof *l->widths);
    if (!l->widths)
        return false;
    group_title(m, l->title, sizeof l->title);
    // A title wider than a lone column widens that column.
    int title = (int)strlen(l->title);
    int least = m->col.n == 1 && title > VALUE_WIDTH ? title : VALUE_WIDTH;
    for (int c = 0; c < m->col.n; c++) {
        l->widths[c] = column_width(m, c, least);
        l->total += l->widths[c] + 2;
    }
    return true;
}

static void write_group_line(const struct layout *l, struct buf *out)
{
    int space = l->total - (int)strlen(l->title);
    buf_str(out, left_group);
    result_table_repeat(out, ' ', space / 2);
    buf_str(out, l->title);
    result_table_repeat(out, ' ', space - space / 2);
    buf_str(out, "|\n");
}

static void write_rule(const struct layout *l, struct buf *out)
{
    buf_str(out, left_rule);
    for (int c = 0; c < l->m->col.n; c++) {
        result_table_repeat(out, '-', l->widths[c] + 2);
        buf_char(out, '|');
    }
    buf_char(out, '\n');
}

static void result_table_write_heads(const struct layout *l, struct buf *out)
{
    char text[24];
    buf_str(out, left_heads);
    for (int c = 0; c < l->m->col.n; c++) {
        column_head(l->m, c, text, sizeof text);
        buf_fmt(out, " %-*s |", l->widths[c], text);
    }
    buf_char(out, '\n');
}

static const struct rank_info *result_table_find_rank(const struct rank_info *ranks, int n,
                                                      int64_t rank)
{
    for (int i = 0; ranks && i < n; i++)
        if (ranks[i].rank == rank)
            return &ranks[i];
    return NULL;
}

static const char *id_text(int64_t id, char *text, size_t room)
{
    if (id >= 0)
        snprintf(text, room, "%" PRId64, id);
    else
        snprintf(text, room, "-");
    return text;
}

static void write_place(const struct rank_info *r, int64_t rank, struct buf *out)
{
    char cpu[24] = "-", cpu_node[24] = "-", mem_node[24] = "-", address[24] = "-", number[24];
    if (r) {
        id_text(r->cpu, cpu, sizeof cpu);
        id_text(r->cpu_node, cpu_node, sizeof cpu_node);
        id_text(r->mem_node, mem_node, sizeof mem_node);
    }
    if (r && r->address)
        snprintf(address, sizeof address, "0x%" PRIx64, r->address);
    snprintf(number, sizeof number, "%03" PRId64, rank);
    buf_fmt(out, "|  %-5s| %-7s | %3s  | %-14s | %3s   |", number, cpu, cpu_node, address,
            mem_node);
}

static void write_row(const struct layout *l, int row, const struct rank_info *r, struct buf *out)
{
    char text[48];
    write_place(r, l->m->row.values[row], out);
    for (int c = 0; c < l->m->col.n; c++) {
        result_table_value_text(matrix_at(l->m, row, c)->v[CELL_MEDIAN], text, sizeof text);
        buf_fmt(out, " %-*s |", l->widths[c], text);
    }
    buf_char(out, '\n');
}

static void write_edge(const struct layout *l, struct buf *out)
{
    buf_char(out, ' ');
    result_table_repeat(out, '=', (int)sizeof left_group - 2 + l->total); // without the outer bars
    buf_char(out, '\n');
}

int result_table_width(const struct matrix *m)
{
    struct layout l CLEANUP(layout_fini);
    return layout_init(&l, m) ? (int)sizeof left_group + l.total : 0;
}

void result_table_write(const struct matrix *m, const struct rank_info *ranks, int n_ranks,
                        struct buf *out)
{
    struct layout l CLEANUP(layout_fini);
    if (!layout_init(&l, m)) {
        buf_fail(out);
        return;
    }
    write_edge(&l, out);
    write_group_line(&l, out);
    write_rule(&l, out);
    result_table_write_heads(&l, out);
    write_rule(&l, out);
    for (int r = 0; r < m->row.n; r++)
        write_row(&l, r, result_table_find_rank(ranks, n_ranks, m->row.values[r]), out);
    write_edge(&l, out);
}

static bool result_table_same_axis(const struct axis *a, const struct axis *b)
{
    return a->n == b->n && memcmp(a->values, b->values, (size_t)a->n * sizeof *a->values) == 0;
}

int result_ratio(struct matrix *ratio, const struct matrix *top, const struct matrix *bottom,
                 struct err *err)
{
    if (!result_table_same_axis(&top->row, &bottom->row) ||
        !result_table_same_axis(&top->col, &bottom->col))
        return err_set(err, ERR_INVALID, "matrix", "\"%s\" and \"%s\" have different axes",
                       top->name, bottom->name);
    struct matrix got CLEANUP(matrix_fini) = {0};
    char name[sizeof got.name];
    snprintf(name, sizeof name, "%.11s/%.11s", top->name, bottom->name);
    if (matrix_init(&got, name, "latency ratio", "", top->row.n, top->col.n, err) < 0)
        return -1;
    memcpy(got.row.values, top->row.values, (size_t)top->row.n * sizeof *got.row.values);
    memcpy(got.col.values, top->col.values, (size_t)top->col.n * sizeof *got.col.values);
    memcpy(got.row.name, top->row.name, sizeof got.row.name);
    memcpy(got.col.name, top->col.name, sizeof got.col.name);
    memcpy(got.col.unit, top->col.unit, sizeof got.col.unit);
    for (int i = 0; i < got.row.n * got.col.n; i++) {
        double below = bottom->cells[i].v[CELL_MEDIAN];
        got.cells[i].v[CELL_MEDIAN] = below > 0 ? top->cells[i].v[CELL_MEDIAN] / below : NAN;
    }
    *ratio = got;
    got = (struct matrix){0};
    return 0;
}

// "rank 3 at 64MB", "initiator 0, target 1"
static void cell_place(const struct matrix *m, int at, char *text, size_t room)
{
    char row[32], col[32];
    axis_label(&m->row, at / m->col.n, row, sizeof row);
    if (strcmp(m->col.unit, "bytes") == 0) {
        str_from_bytes((uint64_t)m->col.values[at % m->col.n], col, sizeof col);
        snprintf(text, room, "%s %s at %s", m->row.name, row, col);
    } else {
        axis_label(&m->col, at % m->col.n, col, sizeof col);
        snprintf(text, room, "%s %s, %s %s", m->row.name, row, m->col.name, col);
    }
}

static void result_table_note_disturbed(const struct matrix *m, struct buf *out)
{
    double kept = 0, left_out = 0, worst = 0;
    int at = 0, touched = 0, n = m->row.n * m->col.n;
    for (int i = 0; i < n; i++) {
        const double *v = m->cells[i].v;
        if (!(v[CELL_DISTURBED] > 0))
            continue;
        touched++;
        left_out += v[CELL_DISTURBED];
        if (v[CELL_DISTURBED] > worst) {
            worst = v[CELL_DISTURBED];
            at = i;
        }
    }
    for (int i = 0; i < n; i++)
        kept += isfinite(m->cells[i].v[CELL_N]) ? cell_kept(&m->cells[i]) : 0;
    if (!touched)
        return;
    char head[96];
    cell_place(m, at, head, sizeof head);
    buf_fmt(out,
            "%s: %.0f of %.0f samples were disturbed and left out, in %d of %d cells; most (%.0f) "
            "on %s\n",
            m->name, left_out, kept + left_out, touched, n, worst, head);
}

// Counts cells where `field` is below `limit`; `col` and `row` say where the last one is.
static int cells_below(const struct matrix *m, enum cell_field field, double limit, int *last)
{
    int count = 0;
    for (int i = 0; i < m->row.n * m->col.n; i++)
        if (m->cells[i].v[field] < limit) { // false for NaN
            count++;
            *last = i;
        }
    return count;
}

// Of a scan it is that a unit could not be confirmed as odd: its report states that.
static int loose_cells(const struct matrix *m, int *last)
{
    return scan_has_deviations(m) ? 0 : cells_below(m, CELL_CONVERGED, 1, last);
}

int result_cells_loose(const struct matrix *m, int *cells)
{
    int at;
    *cells += m->row.n * m->col.n;
    return loose_cells(m, &at);
}

void result_notes_matrix(const struct matrix *m, struct buf *out)
{
    char where[96];
    int at = 0;
    result_table_note_disturbed(m, out);
    int loose = loose_cells(m, &at);
    cell_place(m, at, where, sizeof where);
    if (loose)
        buf_fmt(out, "%s: %d of %d cells did not reach the requested precision in time (%s%s)\n",
                m->name, loose, m->row.n * m->col.n, where, loose > 1 ? " and others" : "");
    int apart = cells_below(m, CELL_OVERLAP, OVERLAP_PERCENT / 100.0, &at);
    cell_place(m, at, where, sizeof where);
    if (apart)
        buf_fmt(out,
                "%s: in %d of %d cells the ranks worked together for less than %d %% of the "
                "measuring time (%s)\n",
                m->name, apart, m->row.n * m->col.n, OVERLAP_PERCENT, where);
}

static bool wrong_cpu(const struct rank_info *r)
{
    return r->cpu_wanted >= 0 && r->cpu >= 0 && r->cpu != r->cpu_wanted;
}

static bool wrong_node(const struct rank_info *r)
{
    return r->mem_wanted >= 0 && r->pages_checked > 0 && r->mem_share < 1;
}

static bool wrong_pages(const struct rank_info *r)
{
    return *r->pages_wanted && *r->pages_got && strcmp(r->pages_wanted, r->pages_got) != 0;
}

static bool result_table_moved(const struct rank_info *r)
{
    return r->migrations > 0;
}

static bool unchecked(const struct rank_info *r)
{
    return r->pages_checked == 0;
}

static const struct {
    bool (*applies)(const struct rank_info *r);
    const char *text;
} rank_notes[] = {
    {wrong_cpu, "ran on another CPU than requested"},
    {result_table_moved, "moved to another CPU while measuring"},
    {wrong_node, "had memory on another node than requested"},
    {wrong_pages, "did not get the requested page size"},
    {unchecked, "could not verify where their memory was"},
};

void result_notes_ranks(const struct rank_info *ranks, int n_ranks, struct buf *out)
{
    for (size_t k = 0; k < COUNT_OF(rank_notes); k++) {
        int count = 0;
        for (int i = 0; i < n_ranks; i++) {
            if (!rank_notes[k].applies(&ranks[i]))
                continue;
            if (count < LISTED_RANKS)
                buf_fmt(out, "%s%" PRId64, count ? ", " : "placement: rank ", ranks[i].rank);
            count++;
        }
        if (count > LISTED_RANKS)
            buf_fmt(out, " and %d more", count - LISTED_RANKS);
        if (count)
            buf_fmt(out, " %s\n", rank_notes[k].text);
    }
}
