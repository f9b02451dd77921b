// SPDX-License-Identifier: Apache-2.0
// One pass over the lines. Values are gathered in a flat grid first and become a matrix at the end
// of their table, when every row is known to be whole.
#include "formats/import.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char csv_mark[] = "size"; // how the heading of a CSV begins

enum { FIELDS_MAX = IMPORT_RANKS_MAX + 8 };

struct lines {
    const char *at, *end;
    int number;
    char mode[12];              // said last before the table
    char text[IMPORT_LINE_MAX]; // the line, cut into fields
    char *fields[FIELDS_MAX];
    int n;
};

struct grid {
    char mode[12]; // as said before it; "" not said
    int rows, cols;
    uint64_t unit;                                 // of sizes that have none, in bytes
    int64_t sizes[IMPORT_SIZES_MAX];               // rows or columns, by format
    double v[IMPORT_RANKS_MAX * IMPORT_SIZES_MAX]; // rank × IMPORT_SIZES_MAX + size
    struct rank_info ranks[IMPORT_RANKS_MAX];
    bool placed; // ranks say where they ran
};

#define BAD(in, err, ...) bad_line((in)->number, err, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static int bad_line(int number, struct err *err,
                                                          const char *fmt, ...)
{
    char text[200], member[32];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(member, sizeof member, "line %d", number > 0 ? number : 1); // 1: an empty text
    return err_set(err, ERR_INVALID, member, "%s: %s", member, text);
}

// 1: a line is in text; 0: no more.
static int import_next_line(struct lines *in, struct err *err)
{
    if (in->at >= in->end)
        return 0;
    const char *stop = memchr(in->at, '\n', in->end - in->at);
    size_t len = (stop == NULL ? in->end : stop) - in->at;
    if (++in->number > IMPORT_LINES_MAX)
        return err_set(err, ERR_TOO_LARGE, "", "more than %d lines", IMPORT_LINES_MAX);
    if (len >= sizeof in->text || memchr(in->at, '\0', len) != NULL)
        return BAD(in, err, len >= sizeof in->text ? "is too long" : "holds a NUL byte");
    memcpy(in->text, in->at, len);
    in->text[len] = '\0';
    if (len > 0 && in->text[len - 1] == '\r')
        in->text[len - 1] = '\0';
    in->at = stop == NULL ? in->end : stop + 1;
    return 1;
}

static char *import_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    return s;
}

static int split(struct lines *in, char separator, struct err *err)
{
    char *s = import_trim(in->text);
    size_t n = strlen(s);
    if (separator == '|' && *s == '|') {
        s++;
        n--;
        if (n == 0 || s[n - 1] != '|')
            return BAD(in, err, "does not end with a bar; is it cut?");
        s[n - 1] = '\0';
    }
    in->n = 0;
    for (char *next = s; next != NULL;) {
        char *field = next;
        next = strchr(field, separator);
        if (next != NULL)
            *next++ = '\0';
        if (in->n == FIELDS_MAX)
            return BAD(in, err, "has more than %d fields", FIELDS_MAX);
        in->fields[in->n++] = import_trim(field);
    }
    return 0;
}

static int read_value(struct lines *in, const char *what, const char *s, double *out,
                      struct err *err)
{
    double v;
    if (!str_to_double(s, &v) || v <= 0 || v > 1e9)
        return BAD(in, err, "%s is \"%.40s\"; it must be a latency in ns above 0, at most 1e9",
                   what, s);
    if (v < CELL_VALUE_LEAST)
        return BAD(in, err, "%s is \"%.40s\", which would be stored as 0; the least is 0.001", what,
                   s);
    *out = v;
    return 0;
}

static int import_read_id(struct lines *in, const char *what, const char *s, int64_t *out,
                          struct err *err)
{
    int64_t v;
    if (!str_to_i64(s, &v) || v < 0 || v > 1 << 20)
        return BAD(in, err, "%s is \"%.40s\"; it must be a whole number from 0 on", what, s);
    *out = v;
    return 0;
}

static void clear_rank(struct rank_info *r, int64_t rank)
{
    *r = (struct rank_info){.rank = rank, .pid = -1, .cpu_wanted = -1, .cpu = -1, .cpu_node = -1};
    r->mem_wanted = r->mem_node = r->migrations = -1;
    r->mem_share = r->huge_share = r->off_cpu_share = r->clock_ghz = r->load_cycles = NAN;
}

static int import_add_rank(struct lines *in, struct grid *g, int64_t rank, struct err *err)
{
    if (g->rows == IMPORT_RANKS_MAX)
        return BAD(in, err, "more than %d ranks", IMPORT_RANKS_MAX);
    for (int i = 0; i < g->rows; i++)
        if (g->ranks[i].rank == rank)
            return BAD(in, err, "rank %lld is there twice", (long long)rank);
    clear_rank(&g->ranks[g->rows++], rank);
    return 0;
}

// "512", "32K", or a part of the unit ("0.03125") that is whole in bytes.
static bool read_size(const char *s, uint64_t unit, uint64_t *bytes)
{
    double v;
    if (str_to_bytes(s, unit, bytes))
        return true;
    if (!str_to_double(s, &v) || v < 0 || v * (double)unit > IMPORT_SIZE_MAX)
        return false;
    *bytes = (uint64_t)(v * (double)unit);
    return (double)*bytes == v * (double)unit;
}

static int add_size(struct lines *in, struct grid *g, const char *s, struct err *err)
{
    uint64_t bytes;
    if (!read_size(s, g->unit, &bytes) || bytes == 0 || bytes > IMPORT_SIZE_MAX)
        return BAD(in, err, "\"%.40s\" is not a size", s);
    if (g->cols == IMPORT_SIZES_MAX)
        return BAD(in, err, "more than %d sizes", IMPORT_SIZES_MAX);
    if (g->cols > 0 && g->sizes[g->cols - 1] >= (int64_t)bytes)
        return BAD(in, err, "size \"%.40s\" must be larger than the one before it", s);
    g->sizes[g->cols++] = (int64_t)bytes;
    return 0;
}

// ---- the table ----------------------------------------------------------------------------------

enum { TABLE_FIXED = 5 }; // rank, core, node, address, node

static int table_head(struct lines *in, struct grid *g, struct err *err)
{
    if (in->n <= TABLE_FIXED)
        return BAD(in, err, "the heading has no sizes");
    g->unit = 1 << 20;
    for (int i = TABLE_FIXED; i < in->n; i++)
        if (add_size(in, g, in->fields[i], err) < 0)
            return -1;
    return 0;
}

static int table_row(struct lines *in, struct grid *g, struct err *err)
{
    int64_t rank = 0;
    if (in->n != TABLE_FIXED + g->cols)
        return BAD(in, err, "has %d columns; the heading has %d", in->n, TABLE_FIXED + g->cols);
    if (import_read_id(in, "the rank", in->fields[0], &rank, err) < 0 ||
        import_add_rank(in, g, rank, err) < 0)
        return -1;
    int row = g->rows - 1;
    struct rank_info *r = &g->ranks[row];
    if (import_read_id(in, "the core", in->fields[1], &r->cpu, err) < 0 ||
        import_read_id(in, "the core's NUMA node", in->fields[2], &r->cpu_node, err) < 0 ||
        import_read_id(in, "the memory's NUMA node", in->fields[4], &r->mem_node, err) < 0)
        return -1;
    if (!str_to_hex(in->fields[3], &r->address))
        return BAD(in, err, "the address is \"%.40s\"; it must be a number like 0x7f00",
                   in->fields[3]);
    for (int j = 0; j < g->cols; j++) {
        char what[48];
        snprintf(what, sizeof what, "the value in column %d", TABLE_FIXED + j + 1);
        if (read_value(in, what, in->fields[TABLE_FIXED + j], &g->v[row * IMPORT_SIZES_MAX + j],
                       err) < 0)
            return -1;
    }
    g->placed = true;
    return 0;
}

static bool table_is_row(const struct lines *in)
{
    return isdigit((unsigned char)in->fields[0][0]);
}

static int grid_finish(const struct lines *in, struct grid *g, struct import *out, struct err *err);

// "| MPI | CPU | MEMORY | LATENCY (ns) |" opens a table. The ratio of two modes follows from them.
static int table_title(struct lines *in, struct import *out, bool *skip, struct err *err)
{
    const char *what = in->fields[in->n - 1];
    snprintf(in->mode, sizeof in->mode, "%s", out->hints.mode);
    *skip = str_starts(what, "LATENCY RATIO");
    if (*skip || str_starts(what, "LATENCY (ns)"))
        return 0;
    return BAD(in, err, "is a table of \"%.40s\"; it must be of LATENCY (ns)", what);
}

static int table_line(struct lines *in, struct grid *g, struct import *out, struct err *err)
{
    if (strcmp(in->fields[0], "Ranks") == 0) {
        if (g->cols > 0 && grid_finish(in, g, out, err) < 0)
            return -1;
        *g = (struct grid){0};
        snprintf(g->mode, sizeof g->mode, "%s", in->mode);
        return table_head(in, g, err);
    }
    if (!table_is_row(in))
        return in->fields[0][0] == '-'
                   ? 0
                   : BAD(in, err, "the rank is \"%.40s\"; it must be a whole number",
                         in->fields[0]);
    if (g->cols == 0)
        return BAD(in, err, "a row comes before the heading \"| Ranks | Cores | …\"");
    return table_row(in, g, err);
}

// Lines without a bar in front are log lines; they may say what the table does not.
static int parse_table(struct lines *in, struct grid *g, struct import *out, struct err *err)
{
    int more;
    bool skip = false;
    while ((more = import_next_line(in, err)) == 1) {
        char *text = import_trim(in->text);
        if (*text != '|') {
            hints_read(&out->hints, text);
            continue;
        }
        if (split(in, '|', err) < 0)
            return -1;
        if (strcmp(in->fields[0], "MPI") == 0) {
            if (table_title(in, out, &skip, err) < 0)
                return -1;
        } else if (!skip && table_line(in, g, out, err) < 0) {
            return -1;
        }
    }
    return more;
}

// ---- the wide CSV -------------------------------------------------------------------------------

static int csv_row(struct lines *in, struct grid *g, struct err *err)
{
    if (in->n != g->rows + 1)
        return BAD(in, err, "has %d fields; the heading has %d", in->n, g->rows + 1);
    if (add_size(in, g, in->fields[0], err) < 0)
        return -1;
    for (int i = 0; i < g->rows; i++) {
        char what[48];
        snprintf(what, sizeof what, "the value of rank %lld", (long long)g->ranks[i].rank);
        if (read_value(in, what, in->fields[i + 1], &g->v[i * IMPORT_SIZES_MAX + g->cols - 1],
                       err) < 0)
            return -1;
    }
    return 0;
}

// "size (MB)": the unit of the sizes below it, a power of 1024.
static int csv_unit(struct lines *in, struct grid *g, struct err *err)
{
    static const char letters[] = "BKMGT";
    const char *at = in->fields[0] + strlen(csv_mark);
    at += strspn(at, " \t");
    const char *letter =
        *at == '(' && at[1] ? strchr(letters, toupper((unsigned char)at[1])) : NULL;
    const char *rest = letter ? at + 2 : "";
    if (letter && *letter != 'B')
        rest += strncasecmp(rest, "iB", 2) == 0 ? 2 : strncasecmp(rest, "B", 1) == 0;
    if (strcmp(rest, ")") != 0)
        return BAD(in, err,
                   "the heading begins with \"%.40s\"; it must be size (MB), or (B), (KB), (GB), "
                   "(TB), which are powers of 1024",
                   in->fields[0]);
    g->unit = (uint64_t)1 << (10 * (letter - letters));
    return 0;
}

static int import_csv_head(struct lines *in, struct grid *g, struct err *err)
{
    if (in->n < 2)
        return BAD(in, err, "the heading must be \"size (MB),0,1,…\"");
    if (csv_unit(in, g, err) < 0)
        return -1;
    for (int i = 1; i < in->n; i++) {
        int64_t rank = 0;
        if (import_read_id(in, "a rank in the heading", in->fields[i], &rank, err) < 0 ||
            import_add_rank(in, g, rank, err) < 0)
            return -1;
    }
    return 0;
}

static int parse_csv(struct lines *in, struct grid *g, struct import *out, struct err *err)
{
    int more;
    while ((more = import_next_line(in, err)) == 1) {
        char *text = import_trim(in->text);
        if (*text == '#')
            hints_read(&out->hints, text);
        if (*text == '\0' || *text == '#')
            continue;
        if (split(in, ',', err) < 0)
            return -1;
        if ((g->rows > 0 ? csv_row : import_csv_head)(in, g, err) < 0)
            return -1;
    }
    return more;
}

static int map_rank(struct lines *in, struct grid *g, struct err *err)
{
    int64_t v[4] = {0};
    static const char *const names[4] = {"rank", "cpu_id", "cpu_numa", "memory_numa"};
    if (in->n != 4)
        return BAD(in, err,
                   "the mapping has %d fields; it must be rank,cpu_id,cpu_numa,memory_numa", in->n);
    for (int k = 0; k < 4; k++)
        if (import_read_id(in, names[k], in->fields[k], &v[k], err) < 0)
            return -1;
    for (int i = 0; i < g->rows; i++) {
        struct rank_info *r = &g->ranks[i];
        if (r->rank != v[0])
            continue;
        if (r->cpu >= 0)
            return BAD(in, err, "rank %lld is mapped twice", (long long)v[0]);
        r->cpu = v[1];
        r->cpu_node = v[2];
        r->mem_node = v[3];
        return 0;
    }
    return BAD(in, err, "rank %lld of the mapping is not in the data", (long long)v[0]);
}

static int parse_mapping(struct lines *in, struct grid *g, struct err *err)
{
    int more;
    bool first = true;
    while ((more = import_next_line(in, err)) == 1) {
        if (*import_trim(in->text) == '\0')
            continue;
        if (split(in, ',', err) < 0)
            return -1;
        if (first && strcmp(in->fields[0], "rank") == 0)
            first = false;
        else if (map_rank(in, g, err) < 0)
            return -1;
    }
    for (int i = 0; more == 0 && i < g->rows; i++)
        if (g->ranks[i].cpu < 0)
            return BAD(in, err, "the mapping has no line for rank %lld",
                       (long long)g->ranks[i].rank);
    g->placed = true;
    return more;
}

// ---- into nouns ---------------------------------------------------------------------------------

static int same_axes(const struct lines *in, const struct grid *g, const struct import *out,
                     struct err *err)
{
    const struct matrix *first = &out->matrices[0];
    bool same = first->row.n == g->rows && first->col.n == g->cols &&
                memcmp(first->col.values, g->sizes, g->cols * sizeof g->sizes[0]) == 0;
    for (int i = 0; same && i < g->rows; i++)
        same = first->row.values[i] == g->ranks[i].rank;
    if (!same)
        return BAD(in, err, "another table ends here, of other ranks or sizes; import them apart");
    bool known = *g->mode;
    for (int i = 0; i < out->n_matrices; i++)
        known &= *out->matrices[i].name && strcmp(out->matrices[i].name, g->mode) != 0;
    if (!known)
        return BAD(in, err, "another table ends here, %s; import them apart",
                   *g->mode && *first->name ? "of the same mode"
                                            : "and nothing says of which modes they are");
    return 0;
}

static int keep_ranks(const struct grid *g, struct import *out, struct err *err)
{
    out->ranks = malloc(g->rows * sizeof *out->ranks);
    if (out->ranks == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the ranks");
    memcpy(out->ranks, g->ranks, g->rows * sizeof *out->ranks);
    out->n_ranks = g->rows;
    out->placed = g->placed;
    return 0;
}

// A whole table into the next matrix; its name is the mode that was said, or "".
static int grid_finish(const struct lines *in, struct grid *g, struct import *out, struct err *err)
{
    struct matrix *m = &out->matrices[out->n_matrices];
    if (g->rows == 0)
        return BAD(in, err, "the text ends without ranks");
    if (out->n_matrices > 0 && same_axes(in, g, out, err) < 0)
        return -1;
    if (matrix_init(m, g->mode, "latency", "ns", g->rows, g->cols, err) < 0)
        return -1;
    out->n_matrices++;
    snprintf(m->row.name, sizeof m->row.name, "rank");
    snprintf(m->col.name, sizeof m->col.name, "working_set");
    snprintf(m->col.unit, sizeof m->col.unit, "bytes");
    memcpy(m->col.values, g->sizes, g->cols * sizeof g->sizes[0]);
    for (int i = 0; i < g->rows; i++) {
        m->row.values[i] = g->ranks[i].rank;
        for (int j = 0; j < g->cols; j++)
            matrix_at(m, i, j)->v[CELL_MEDIAN] = g->v[i * IMPORT_SIZES_MAX + j];
    }
    return out->ranks == NULL ? keep_ranks(g, out, err) : 0;
}

// What the caller says beats log lines; a command line without --serial is concurrent.
static int name_matrix(struct import *out, const char *mode, struct err *err)
{
    struct matrix *m = &out->matrices[0];
    const struct hints *h = &out->hints;
    if (mode != NULL && out->n_matrices > 1)
        return err_set(err, ERR_INVALID, "mode", "the text says it of each of its %d tables",
                       out->n_matrices);
    out->mode_known = mode != NULL || *m->name || *h->mode || h->command;
    if (mode != NULL)
        snprintf(m->name, sizeof m->name, "%s", mode);
    else if (!*m->name)
        snprintf(m->name, sizeof m->name, "%s", *h->mode ? h->mode : "concurrent");
    return 0;
}

static int apply_mapping(struct lines *in, struct grid *g, const char *mapping, size_t len,
                         const struct import *out, struct err *err)
{
    if (g->placed || out->n_matrices > 0)
        return err_set(err, ERR_INVALID, "mapping",
                       "belongs to a CSV; the table says itself where its ranks were");
    in->at = mapping + str_mark(mapping, len);
    in->end = mapping + len;
    in->number = 0;
    if (parse_mapping(in, g, err) == 0)
        return 0;
    snprintf(err->member, sizeof err->member, "mapping");
    return err_prefix(err, "mapping");
}

static int import_grid(struct import *out, struct lines *in, const char *mapping, size_t len,
                       const char *mode, struct err *err)
{
    CLEANUP_MEM struct grid *g = calloc(1, sizeof *g);
    if (g == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the import");
    int got =
        out->format == IMPORT_TABLE ? parse_table(in, g, out, err) : parse_csv(in, g, out, err);
    if (got < 0)
        return -1;
    if (g->cols == 0 && g->rows > 0)
        return BAD(in, err, "the text ends without sizes");
    if (g->cols == 0)
        return BAD(in, err,
                   "the text ends without a table of numa_bench (\"| Ranks | …\"), and it is "
                   "neither CSV (\"size (MB),0,1,…\") nor JSON");
    if (mapping != NULL && apply_mapping(in, g, mapping, len, out, err) < 0)
        return -1;
    return grid_finish(in, g, out, err) < 0 ? -1 : name_matrix(out, mode, err);
}

static int json_ranks(struct import *out, const struct json *list, struct err *err)
{
    int n = json_count(list);
    if (list == NULL || json_is_null(list))
        return 0;
    if (!json_is_array(list) || n > IMPORT_RANKS_MAX)
        return err_set(err, ERR_INVALID, "ranks", "must be an array of at most %d ranks",
                       IMPORT_RANKS_MAX);
    if (n == 0)
        return 0;
    out->ranks = calloc(n, sizeof *out->ranks);
    if (out->ranks == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the ranks");
    for (const struct json *r = json_first(list); r != NULL; r = json_next(r))
        if (rank_from_json(&out->ranks[out->n_ranks++], r, err) < 0)
            return -1;
    return 0;
}

int import_check_cells(int64_t cells, struct err *err)
{
    if (cells <= IMPORT_CELLS_MAX)
        return 0;
    return err_set(err, ERR_TOO_LARGE, "", "more than %d cells; import them in parts",
                   IMPORT_CELLS_MAX);
}

static int json_matrices(struct import *out, const struct json *list, struct err *err)
{
    if (!json_is_array(list) || json_count(list) < 1 || json_count(list) > IMPORT_MATRICES_MAX)
        return err_set(err, ERR_INVALID, "matrices", "must be an array of 1 to %d matrices",
                       IMPORT_MATRICES_MAX);
    for (const struct json *m = json_first(list); m != NULL; m = json_next(m)) {
        if (matrix_from_json(&out->matrices[out->n_matrices], m, err) < 0)
            return err_prefix(err, "matrix %d", out->n_matrices);
        out->n_matrices++;
        if (import_check_cells(matrices_cells(out->matrices, out->n_matrices), err) < 0)
            return -1;
    }
    return 0;
}

int import_from_json(struct import *out, const struct json *root, struct err *err)
{
    CLEANUP(import_fini) struct import made = {.format = IMPORT_JSON, .mode_known = true};
    const struct json *list = json_get(root, "matrices");
    if (list == NULL && json_get(root, "cells") == NULL)
        return err_set(err, ERR_INVALID, "matrices", "is missing");
    if (list == NULL) {
        if (matrix_from_json(&made.matrices[0], root, err) < 0)
            return -1;
        made.n_matrices = 1;
    } else if (json_matrices(&made, list, err) < 0 ||
               json_ranks(&made, json_get(root, "ranks"), err) < 0) {
        return -1;
    }
    snprintf(made.hints.method, sizeof made.hints.method, "%s", json_get_text(root, "method", ""));
    made.placed = made.ranks != NULL;
    *out = made;
    made = (struct import){0};
    return 0;
}

// The first line that is neither empty nor a comment decides.
static enum import_format recognise(const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    while (at < end && (isspace((unsigned char)*at) || *at == '#')) {
        const char *stop = *at == '#' ? memchr(at, '\n', (size_t)(end - at)) : at;
        at = stop == NULL ? end : stop + 1;
    }
    if (at < end && *at == '{')
        return IMPORT_JSON;
    size_t n = strlen(csv_mark);
    bool csv = (size_t)(end - at) >= n && memcmp(at, csv_mark, n) == 0;
    return csv ? IMPORT_CSV : IMPORT_TABLE;
}

void import_fini(struct import *i)
{
    for (int k = 0; k < i->n_matrices; k++)
        matrix_fini(&i->matrices[k]);
    free(i->ranks);
    *i = (struct import){0};
}

// What is no text at all, by how it begins.
static int import_check_text(const char *text, size_t len, struct err *err)
{
    static const struct {
        const char *begin, *is;
    } others[] = {
        {"\x1f\x8b", "compressed with gzip: decompress it first"},
        {"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first"},
        {"\xfd"
         "7zXZ",
         "compressed with xz: decompress it first"},
        {"BZh", "compressed with bzip2: decompress it first"},
        {"PK\x03\x04", "a ZIP archive: extract its files first"},
        {"\xff\xfe", "UTF-16: it must be UTF-8"},
        {"\xfe\xff", "UTF-16: it must be UTF-8"},
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        size_t n = strlen(others[i].begin);
        if (len >= n && memcmp(text, others[i].begin, n) == 0)
            return bad_line(1, err, "is %s", others[i].is);
    }
    size_t skip = 0;
    while (skip < len && isspace((unsigned char)text[skip]))
        skip++;
    struct err unused;
    CLEANUP_JSON struct json *list =
        skip < len && text[skip] == '[' ? json_parse(text, len, &unused) : NULL; // or a log line
    return list == NULL ? 0
                        : bad_line(1, err,
                                   "is a JSON array; it must be an object: an exported run, "
                                   "{\"runs\":[…]}, or one with \"matrices\"");
}

static int import_text(struct import *out, const char *text, size_t len, const char *mapping,
                       size_t mapping_len, const char *mode, struct err *err)
{
    CLEANUP(import_fini) struct import made = {.format = recognise(text, len)};
    CLEANUP_MEM struct lines *in = calloc(1, sizeof *in);
    if (in == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the import");
    in->at = text;
    in->end = text + len;
    if (import_check_text(text, len, err) < 0 ||
        import_grid(&made, in, mapping, mapping_len, mode, err) < 0)
        return -1;
    *out = made;
    made = (struct import){0};
    return 0;
}

int import_parse(struct import *out, const char *text, size_t len, const char *mapping,
                 size_t mapping_len, const char *mode, struct err *err)
{
    size_t mark = str_mark(text, len);
    if (recognise(text + mark, len - mark) != IMPORT_JSON)
        return import_text(out, text + mark, len - mark, mapping, mapping_len, mode, err);
    CLEANUP_JSON struct json *root = json_parse(text + mark, len - mark, err);
    return root == NULL ? -1 : import_from_json(out, root, err);
}
