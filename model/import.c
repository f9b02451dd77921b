// SPDX-License-Identifier: Apache-2.0
// One pass over the lines. Values are gathered in a flat grid first and become a matrix at the end,
// when every row is known to be whole.
#include "model/import.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { FIELDS_MAX = IMPORT_RANKS_MAX + 8, LINE_MAX_BYTES = 1 << 16 };

struct lines {
    const char *at, *end;
    int number;
    char text[LINE_MAX_BYTES]; // the line, cut into fields
    char *fields[FIELDS_MAX];
    int n;
};

struct grid {
    int rows, cols;
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
    snprintf(member, sizeof member, "line %d", number);
    return err_set(err, ERR_INVALID, member, "line %d: %s", number, text);
}

// 1: a line is in text; 0: no more.
static int next_line(struct lines *in, struct err *err)
{
    if (in->at >= in->end)
        return 0;
    const char *stop = memchr(in->at, '\n', in->end - in->at);
    size_t len = (stop == NULL ? in->end : stop) - in->at;
    in->number++;
    if (len >= sizeof in->text || memchr(in->at, '\0', len) != NULL)
        return BAD(in, err, len >= sizeof in->text ? "is too long" : "holds a NUL byte");
    memcpy(in->text, in->at, len);
    in->text[len] = '\0';
    if (len > 0 && in->text[len - 1] == '\r')
        in->text[len - 1] = '\0';
    in->at = stop == NULL ? in->end : stop + 1;
    return 1;
}

static char *trim(char *s)
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
    char *s = trim(in->text);
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
        in->fields[in->n++] = trim(field);
    }
    return 0;
}

static int read_value(struct lines *in, const char *what, const char *s, double *out,
                      struct err *err)
{
    double v;
    if (!str_to_double(s, &v) || v <= 0 || v > 1e9)
        return BAD(in, err, "%s is \"%.40s\"; it must be a latency in ns above 0", what, s);
    *out = v;
    return 0;
}

static int read_id(struct lines *in, const char *what, const char *s, int64_t *out, struct err *err)
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
    r->mem_share = r->huge_share = NAN;
}

static int add_rank(struct lines *in, struct grid *g, int64_t rank, struct err *err)
{
    if (g->rows == IMPORT_RANKS_MAX)
        return BAD(in, err, "more than %d ranks", IMPORT_RANKS_MAX);
    for (int i = 0; i < g->rows; i++)
        if (g->ranks[i].rank == rank)
            return BAD(in, err, "rank %lld is there twice", (long long)rank);
    clear_rank(&g->ranks[g->rows++], rank);
    return 0;
}

static int add_size(struct lines *in, struct grid *g, const char *s, struct err *err)
{
    uint64_t bytes;
    if (!str_to_bytes(s, 1 << 20, &bytes) || bytes == 0 || bytes > (uint64_t)1 << 50)
        return BAD(in, err, "\"%.40s\" is not a size", s);
    if (g->cols == IMPORT_SIZES_MAX)
        return BAD(in, err, "more than %d sizes", IMPORT_SIZES_MAX);
    if (g->cols > 0 && g->sizes[g->cols - 1] >= (int64_t)bytes)
        return BAD(in, err, "size \"%.40s\" must be larger than the one before it", s);
    g->sizes[g->cols++] = bytes;
    return 0;
}

// ---- the table ----------------------------------------------------------------------------------

enum { TABLE_FIXED = 5 }; // rank, core, node, address, node

static int table_head(struct lines *in, struct grid *g, struct err *err)
{
    if (in->n <= TABLE_FIXED)
        return BAD(in, err, "the heading has no sizes");
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
    if (read_id(in, "the rank", in->fields[0], &rank, err) < 0 || add_rank(in, g, rank, err) < 0)
        return -1;
    int row = g->rows - 1;
    struct rank_info *r = &g->ranks[row];
    if (read_id(in, "the core", in->fields[1], &r->cpu, err) < 0 ||
        read_id(in, "the core's NUMA node", in->fields[2], &r->cpu_node, err) < 0 ||
        read_id(in, "the memory's NUMA node", in->fields[4], &r->mem_node, err) < 0)
        return -1;
    r->address = strtoull(in->fields[3], NULL, 16);
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

// Lines without a bar in front are log lines and no business of ours.
static int parse_table(struct lines *in, struct grid *g, struct err *err)
{
    int more;
    while ((more = next_line(in, err)) == 1) {
        if (*trim(in->text) != '|')
            continue;
        if (split(in, '|', err) < 0)
            return -1;
        if (strcmp(in->fields[0], "Ranks") == 0) {
            if (g->cols > 0)
                return BAD(in, err, "a second table begins; import them one by one");
            if (table_head(in, g, err) < 0)
                return -1;
        } else if (table_is_row(in)) {
            if (g->cols == 0)
                return BAD(in, err, "a row comes before the heading \"| Ranks | Cores | …\"");
            if (table_row(in, g, err) < 0)
                return -1;
        } else if (in->fields[0][0] != '-' && strcmp(in->fields[0], "MPI") != 0) {
            return BAD(in, err, "the rank is \"%.40s\"; it must be a whole number", in->fields[0]);
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

static int parse_csv(struct lines *in, struct grid *g, struct err *err)
{
    int more;
    while ((more = next_line(in, err)) == 1) {
        if (*trim(in->text) == '\0')
            continue;
        if (split(in, ',', err) < 0)
            return -1;
        if (g->rows > 0) {
            if (csv_row(in, g, err) < 0)
                return -1;
            continue;
        }
        if (in->n < 2)
            return BAD(in, err, "the heading must be \"size (MB),0,1,…\"");
        for (int i = 1; i < in->n; i++) {
            int64_t rank = 0;
            if (read_id(in, "a rank in the heading", in->fields[i], &rank, err) < 0 ||
                add_rank(in, g, rank, err) < 0)
                return -1;
        }
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
        if (read_id(in, names[k], in->fields[k], &v[k], err) < 0)
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
    while ((more = next_line(in, err)) == 1) {
        if (*trim(in->text) == '\0')
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

static int grid_finish(const struct grid *g, const char *mode, struct import *out, struct err *err)
{
    struct matrix *m = &out->matrices[0];
    if (matrix_init(m, mode == NULL ? "concurrent" : mode, "latency", "ns", g->rows, g->cols, err) <
        0)
        return -1;
    out->n_matrices = 1;
    snprintf(m->row.name, sizeof m->row.name, "rank");
    snprintf(m->col.name, sizeof m->col.name, "working_set");
    snprintf(m->col.unit, sizeof m->col.unit, "bytes");
    memcpy(m->col.values, g->sizes, g->cols * sizeof g->sizes[0]);
    for (int i = 0; i < g->rows; i++) {
        m->row.values[i] = g->ranks[i].rank;
        for (int j = 0; j < g->cols; j++)
            matrix_at(m, i, j)->v[CELL_MEDIAN] = g->v[i * IMPORT_SIZES_MAX + j];
    }
    if (!g->placed)
        return 0;
    out->ranks = malloc(g->rows * sizeof *out->ranks);
    if (out->ranks == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the ranks");
    memcpy(out->ranks, g->ranks, g->rows * sizeof *out->ranks);
    out->n_ranks = g->rows;
    return 0;
}

static int import_grid(struct import *out, struct lines *in, const char *mapping, size_t len,
                       const char *mode, struct err *err)
{
    CLEANUP_MEM struct grid *g = calloc(1, sizeof *g);
    if (g == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the import");
    int got = out->format == IMPORT_TABLE ? parse_table(in, g, err) : parse_csv(in, g, err);
    if (got < 0)
        return -1;
    if (g->rows == 0 || g->cols == 0)
        return BAD(in, err, "the text ends without %s", g->cols == 0 ? "sizes" : "ranks");
    if (mapping != NULL) {
        in->at = mapping;
        in->end = mapping + len;
        in->number = 0;
        if (parse_mapping(in, g, err) < 0)
            return err_prefix(err, "mapping");
    }
    return grid_finish(g, mode, out, err);
}

static int json_ranks(struct import *out, const struct json *list, struct err *err)
{
    int n = json_count(list);
    if (n == 0)
        return 0;
    if (!json_is_array(list) || n > IMPORT_RANKS_MAX)
        return err_set(err, ERR_INVALID, "ranks", "must be an array of at most %d ranks",
                       IMPORT_RANKS_MAX);
    out->ranks = calloc(n, sizeof *out->ranks);
    if (out->ranks == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the ranks");
    for (const struct json *r = json_first(list); r != NULL; r = json_next(r))
        if (rank_from_json(&out->ranks[out->n_ranks++], r, err) < 0)
            return -1;
    return 0;
}

static int import_json(struct import *out, const char *text, size_t len, struct err *err)
{
    CLEANUP_JSON struct json *root = json_parse(text, len, err);
    if (root == NULL)
        return -1;
    const struct json *list = json_get(root, "matrices");
    if (list == NULL) {
        if (matrix_from_json(&out->matrices[0], root, err) < 0)
            return -1;
        out->n_matrices = 1;
        return 0;
    }
    if (!json_is_array(list) || json_count(list) < 1 || json_count(list) > IMPORT_MATRICES_MAX)
        return err_set(err, ERR_INVALID, "matrices", "must be an array of 1 to %d matrices",
                       IMPORT_MATRICES_MAX);
    for (const struct json *m = json_first(list); m != NULL; m = json_next(m)) {
        if (matrix_from_json(&out->matrices[out->n_matrices], m, err) < 0)
            return -1;
        out->n_matrices++;
    }
    snprintf(out->method, sizeof out->method, "%s", json_get_text(root, "method", ""));
    return json_ranks(out, json_get(root, "ranks"), err);
}

static enum import_format recognise(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && isspace((unsigned char)text[i]))
        i++;
    if (i < len && text[i] == '{')
        return IMPORT_JSON;
    bool csv = len - i >= 4 && memcmp(text + i, "size", 4) == 0;
    return csv ? IMPORT_CSV : IMPORT_TABLE;
}

void import_fini(struct import *i)
{
    for (int k = 0; k < i->n_matrices; k++)
        matrix_fini(&i->matrices[k]);
    free(i->ranks);
    *i = (struct import){0};
}

int import_parse(struct import *out, const char *text, size_t len, const char *mapping,
                 size_t mapping_len, const char *mode, struct err *err)
{
    CLEANUP(import_fini) struct import made = {.format = recognise(text, len)};
    CLEANUP_MEM struct lines *in = calloc(1, sizeof *in);
    if (in == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the import");
    in->at = text;
    in->end = text + len;
    int failed = made.format == IMPORT_JSON
                     ? import_json(&made, text, len, err)
                     : import_grid(&made, in, mapping, mapping_len, mode, err);
    if (failed < 0)
        return -1;
    *out = made;
    made = (struct import){0};
    return 0;
}
