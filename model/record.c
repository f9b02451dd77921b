// SPDX-License-Identifier: Apache-2.0
// A table per kind of record describes its members, and both the writer and the reader walk
// over it. So what numa_bench writes is what the daemon reads.
#include "model/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

const char *const phase_names[PHASES] = {"populate", "build", "warm-up", "measure", "verify"};

#define INT(type, member, lo, hi)                                                                  \
    {                                                                                              \
#member, SLOT_I64, offsetof(struct type, member), 0, lo, hi                                \
    }
#define TEXT(type, member)                                                                         \
    {                                                                                              \
#member, SLOT_TEXT, offsetof(struct type, member), sizeof(((struct type *)NULL)->member),  \
            0, 0                                                                                   \
    }
#define SHARE(type, member)                                                                        \
    {                                                                                              \
#member, SLOT_REAL, offsetof(struct type, member), 0, 0, 1                                 \
    }
#define MAYBE(type, member, max)                                                                   \
    {                                                                                              \
#member, SLOT_MAYBE, offsetof(struct type, member), 0, 0, max                              \
    }

static const double INT_BIG = 9007199254740992.0;

static const struct record_slot hello_slots[] = {
    INT(hello, version, 1, 1000),
    TEXT(hello, nonce),
    TEXT(hello, benchmark),
    TEXT(hello, method),
    TEXT(hello, launcher),
    INT(hello, ranks, 1, 4096),
    INT(hello, line_bytes, 8, 65536),
};

const struct record_slot record_rank_slots[RECORD_RANK_SLOTS] = {
    INT(rank_info, rank, 0, 4095),
    INT(rank_info, pid, -1, INT_BIG),
    INT(rank_info, cpu_wanted, -1, 65535),
    INT(rank_info, cpu, -1, 65535),
    INT(rank_info, cpu_node, -1, 65535),
    INT(rank_info, mem_wanted, -1, 65535),
    INT(rank_info, mem_node, -1, 65535),
    SHARE(rank_info, mem_share),
    INT(rank_info, pages_checked, 0, INT_BIG),
    INT(rank_info, pages_total, 0, INT_BIG),
    TEXT(rank_info, mem_method),
    TEXT(rank_info, pages_wanted),
    TEXT(rank_info, pages_got),
    SHARE(rank_info, huge_share),
    INT(rank_info, seed, 0, INT_BIG),
    INT(rank_info, migrations, -1, INT_BIG),
    INT(rank_info, arena_bytes, 0, INT_BIG),
    MAYBE(rank_info, off_cpu_share, 1),
    MAYBE(rank_info, clock_ghz, 100),
    MAYBE(rank_info, load_cycles, 1000),
};

static const struct record_slot progress_slots[] = {
    TEXT(progress, phase),
    INT(progress, done, 0, INT_BIG),
    INT(progress, total, 0, INT_BIG),
    INT(progress, eta_ms, -1, INT_BIG),
};

static const struct record_slot fewer_pairs_slots[] = {INT(fewer_pairs, most, 1, INT_BIG)};

static void write_slots(const struct record_slot *slots, size_t n, const void *object,
                        struct jsonw *w)
{
    for (size_t i = 0; i < n; i++) {
        const char *m = (const char *)object + slots[i].offset;
        if (slots[i].kind == SLOT_MAYBE && isnan(*(const double *)(const void *)m))
            continue;
        if (slots[i].kind == SLOT_I64)
            jsonw_i64(w, slots[i].name, *(const int64_t *)(const void *)m);
        else if (slots[i].kind != SLOT_TEXT)
            jsonw_fixed(w, slots[i].name, *(const double *)(const void *)m, 5);
        else
            jsonw_text(w, slots[i].name, m);
    }
}

static int record_read_slot(const struct record_slot *s, void *object, const struct json *value,
                            struct err *err)
{
    char *m = (char *)object + s->offset;
    if (s->kind == SLOT_TEXT) {
        const char *text = json_text(value);
        if (!text || strlen(text) >= s->room)
            return err_set(err, ERR_INVALID, s->name, "must be a text of at most %zu bytes",
                           s->room - 1);
        memcpy(m, text, strlen(text) + 1);
        return 0;
    }
    double d = NAN;
    int64_t i;
    if (s->kind != SLOT_I64 && (!value || json_is_null(value))) {
        *(double *)(void *)m = d;
        return 0;
    }
    bool ok = s->kind == SLOT_I64 ? json_i64(value, &i) : json_number(value, &d);
    if (s->kind == SLOT_I64 && ok)
        d = (double)i;
    if (!ok || d < s->min || d > s->max)
        return err_set(err, ERR_INVALID, s->name, "must be a number from %.0f to %.0f", s->min,
                       s->max);
    if (s->kind == SLOT_I64)
        *(int64_t *)(void *)m = i;
    else
        *(double *)(void *)m = d;
    return 0;
}

static int read_slots(const struct record_slot *slots, size_t n, void *object,
                      const struct json *from, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct json *value = json_get(from, slots[i].name);
        if (!value && slots[i].kind != SLOT_MAYBE)
            return err_set(err, ERR_INVALID, slots[i].name, "is missing");
        if (record_read_slot(&slots[i], object, value, err) < 0)
            return -1;
    }
    return 0;
}

static void write_rank_members(const struct rank_info *r, struct jsonw *w)
{
    char address[24];
    write_slots(record_rank_slots, COUNT_OF(record_rank_slots), r, w);
    snprintf(address, sizeof address, "0x%" PRIx64, r->address);
    jsonw_text(w, "address", address);
    jsonw_array(w, "nodes");
    for (int i = 0; i < r->n_nodes; i++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "node", r->nodes[i].node);
        jsonw_i64(w, "pages", r->nodes[i].pages);
        jsonw_i64(w, "process_kib", r->nodes[i].process_kib);
        jsonw_end(w);
    }
    jsonw_end(w);
}

void rank_write_json(const struct rank_info *r, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    write_rank_members(r, w);
    jsonw_end(w);
}

int rank_from_json(struct rank_info *r, const struct json *object, struct err *err)
{
    struct rank_info got = {0};
    if (read_slots(record_rank_slots, COUNT_OF(record_rank_slots), &got, object, err) < 0)
        return -1;
    if (!str_to_hex(json_get_text(object, "address", ""), &got.address))
        return err_set(err, ERR_INVALID, "address", "must be a text like 0x7f00");
    for (const struct json *n = json_first(json_get(object, "nodes")); n; n = json_next(n)) {
        if (got.n_nodes == RANK_NODES_MAX)
            return err_set(err, ERR_INVALID, "nodes", "lists more than %d nodes", RANK_NODES_MAX);
        got.nodes[got.n_nodes].node = json_get_i64(n, "node", -1);
        got.nodes[got.n_nodes].process_kib = json_get_i64(n, "process_kib", 0);
        got.nodes[got.n_nodes++].pages = json_get_i64(n, "pages", 0);
    }
    *r = got;
    return 0;
}

void phases_write_json(const double phase_ms[PHASES], struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    for (int i = 0; i < PHASES; i++)
        jsonw_fixed(w, phase_names[i], phase_ms[i], 3);
    jsonw_end(w);
}

static void write_hello(const struct record *r, struct jsonw *w)
{
    write_slots(hello_slots, COUNT_OF(hello_slots), &r->hello, w);
}

static int read_hello(struct record *r, const struct json *o, struct err *err)
{
    return read_slots(hello_slots, COUNT_OF(hello_slots), &r->hello, o, err);
}

static void write_matrix(const struct record *r, struct jsonw *w)
{
    matrix_write_head_members(&r->matrix, w);
}

static int read_matrix(struct record *r, const struct json *o, struct err *err)
{
    return matrix_head_from_json(&r->matrix, o, err);
}

static void record_write_cell(const struct record *r, struct jsonw *w)
{
    jsonw_text(w, "matrix", r->cell.matrix);
    jsonw_i64(w, "row", r->cell.row);
    jsonw_i64(w, "col", r->cell.col);
    cell_write_members(&r->cell.cell, w);
    cell_write_distribution(&r->cell.cell, w);
}

static int read_cell(struct record *r, const struct json *o, struct err *err)
{
    snprintf(r->cell.matrix, sizeof r->cell.matrix, "%s", json_get_text(o, "matrix", ""));
    r->cell.row = json_get_i64(o, "row", -1);
    r->cell.col = json_get_i64(o, "col", -1);
    if (r->cell.row < 0 || r->cell.col < 0)
        return err_set(err, ERR_INVALID, r->cell.row < 0 ? "row" : "col",
                       "must be an index from 0");
    return cell_read_members(&r->cell.cell, o, err);
}

static void write_rank(const struct record *r, struct jsonw *w)
{
    write_rank_members(&r->rank, w);
}

static int record_read_rank(struct record *r, const struct json *o, struct err *err)
{
    return rank_from_json(&r->rank, o, err);
}

static void record_write_progress(const struct record *r, struct jsonw *w)
{
    write_slots(progress_slots, COUNT_OF(progress_slots), &r->progress, w);
}

static int read_progress(struct record *r, const struct json *o, struct err *err)
{
    return read_slots(progress_slots, COUNT_OF(progress_slots), &r->progress, o, err);
}

static void record_write_condition(const struct record *r, struct jsonw *w)
{
    condition_write_members(&r->condition, w);
}

static int record_read_condition(struct record *r, const struct json *o, struct err *err)
{
    return condition_from_json(&r->condition, o, err);
}

static void write_fewer_pairs(const struct record *r, struct jsonw *w)
{
    write_slots(fewer_pairs_slots, COUNT_OF(fewer_pairs_slots), &r->pairs, w);
}

static int read_fewer_pairs(struct record *r, const struct json *o, struct err *err)
{
    return read_slots(fewer_pairs_slots, COUNT_OF(fewer_pairs_slots), &r->pairs, o, err);
}

static void write_end(const struct record *r, struct jsonw *w)
{
    jsonw_bool(w, "ok", r->end.ok);
    jsonw_i64(w, "cells", r->end.cells);
    phases_write_json(r->end.phase_ms, w, "phases_ms");
    if (r->end.ok)
        return;
    jsonw_text(w, "error", err_info(r->end.code)->slug);
    jsonw_text(w, "member", r->end.member);
    jsonw_text(w, "text", r->end.text);
}

static int read_end(struct record *r, const struct json *o, struct err *err)
{
    struct end *e = &r->end;
    if (!json_bool(json_get(o, "ok"), &e->ok))
        return err_set(err, ERR_INVALID, "ok", "must be true or false");
    e->cells = json_get_i64(o, "cells", -1);
    for (int i = 0; i < PHASES; i++)
        e->phase_ms[i] = json_get_number(json_get(o, "phases_ms"), phase_names[i], 0);
    const char *slug = json_get_text(o, "error", "none");
    for (int c = 0; c < ERR_CODES; c++)
        if (strcmp(err_info(c)->slug, slug) == 0)
            e->code = c;
    snprintf(e->member, sizeof e->member, "%s", json_get_text(o, "member", ""));
    snprintf(e->text, sizeof e->text, "%s", json_get_text(o, "text", ""));
    return 0;
}

static const struct {
    const char *name;
    void (*write)(const struct record *r, struct jsonw *w);
    int (*read)(struct record *r, const struct json *object, struct err *err);
} kinds[RECORD_KINDS] = {
    [RECORD_HELLO] = {"hello", write_hello, read_hello},
    [RECORD_MATRIX] = {"matrix", write_matrix, read_matrix},
    [RECORD_CELL] = {"cell", record_write_cell, read_cell},
    [RECORD_RANK] = {"rank", write_rank, record_read_rank},
    [RECORD_PROGRESS] = {"progress", record_write_progress, read_progress},
    [RECORD_CONDITION] = {"condition", record_write_condition, record_read_condition},
    [RECORD_PAIRS] = {"pairs", write_fewer_pairs, read_fewer_pairs},
    [RECORD_END] = {"end", write_end, read_end},
};

void record_write(const struct record *r, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "rec", kinds[r->kind].name);
    kinds[r->kind].write(r, &w);
    jsonw_end(&w);
    buf_char(out, '\n');
}

int record_parse(struct record *r, const char *line, size_t len, struct err *err)
{
    if (len > RECORD_LINE_MAX)
        return err_set(err, ERR_INVALID, "rec", "line of %zu bytes, at most %d", len,
                       RECORD_LINE_MAX);
    CLEANUP_JSON struct json *o = json_parse(line, len, err);
    if (!o)
        return -1;
    const char *name = json_get_text(o, "rec", "");
    for (int k = 0; k < RECORD_KINDS; k++)
        if (strcmp(kinds[k].name, name) == 0) {
            struct record got = {.kind = (enum record_kind)k};
            if (kinds[k].read(&got, o, err) < 0)
                return err_prefix(err, "record \"%s\"", name);
            *r = got;
            return 0;
        }
    return err_set(err, ERR_INVALID, "rec", "unknown record \"%.30s\"", name);
}

void record_fini(struct record *r)
{
    if (r->kind == RECORD_MATRIX)
        matrix_fini(&r->matrix);
}
