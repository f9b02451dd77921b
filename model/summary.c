// SPDX-License-Identifier: Apache-2.0
// A page is read twice: the first pass checks and counts, so that one piece of memory holds all of
// it, and the second fills it. Members of runs are two tables, which writer and reader share.
#include "model/summary.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/fingerprint.h"

static const double width_unit = 1e-4;

typedef int check_fn(const char *text, struct err *err);

static int check_chars(const char *text, const char *allowed, struct err *err)
{
    return text[strspn(text, allowed)] ? err_set(err, ERR_INVALID, "",
                                                 "has a character that is "
                                                 "not allowed here")
                                       : 0;
}

static int check_ascii(const char *text, unsigned char least, struct err *err)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < least || (unsigned char)*c > '~')
            return err_set(err, ERR_INVALID, "", "has a character that is not printable ASCII");
    return 0;
}

static int check_benchmark(const char *text, struct err *err)
{
    return *text ? check_chars(text, "abcdefghijklmnopqrstuvwxyz0123456789_-", err)
                 : err_set(err, ERR_INVALID, "", "is empty");
}

// Spreadsheets take a cell of an export that begins so for a formula.
static int check_variant(const char *text, struct err *err)
{
    if (*text && strchr("=+-@", *text))
        return err_set(err, ERR_INVALID, "", "begins with =, +, - or @");
    return check_ascii(text, ' ', err);
}

static int check_metric(const char *text, struct err *err)
{
    if (*text < 'a' || *text > 'z')
        return err_set(err, ERR_INVALID, "", "must begin with a letter from a to z");
    return check_chars(text, "abcdefghijklmnopqrstuvwxyz0123456789_.-", err);
}

static int check_unit(const char *text, struct err *err)
{
    return check_chars(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/%^._",
                       err);
}

static int check_word(const char *text, struct err *err)
{
    return check_ascii(text, '!', err);
}

static int check_hex(const char *text, struct err *err)
{
    return check_chars(text, "0123456789abcdef", err);
}

static int check_hash(const char *text, struct err *err)
{
    if (*text && strlen(text) != 64)
        return err_set(err, ERR_INVALID, "", "must be a hash of 64 digits, or empty");
    return check_hex(text, err);
}

struct text_member {
    const char *name;
    size_t offset, room;
    check_fn *check;
};
#define TEXT(type, name, member, check)                                                            \
    {                                                                                              \
        name, offsetof(struct type, member), sizeof((struct type *)NULL)->member, check            \
    }

static const struct text_member page_texts[] = {
    TEXT(summary_page, "node", node, run_node_check),
    TEXT(summary_page, "version", version, check_word),
    TEXT(summary_page, "history_id", history_id, check_hex),
};
static const struct text_member run_texts[] = {
    TEXT(summary, "node", node, run_node_check),
    TEXT(summary, "benchmark", benchmark, check_benchmark),
    TEXT(summary, "variant", variant, check_variant),
    TEXT(summary, "method", method, run_method_check),
    TEXT(summary, "label", label, run_label_check),
    TEXT(summary, "class", class_hash, check_hash),
    TEXT(summary, "config", config_hash, check_hash),
    TEXT(summary, "topology", topology_hash, check_hash),
};
// Of a run in the feed of a collector; in no other one.
static const struct text_member node_history_text =
    TEXT(summary, "node_history_id", node_history, check_hex);
static const struct text_member note_label = TEXT(summary_note, "label", label, run_label_check);
// Of a note in the feed of a collector.
static const struct text_member note_places[] = {
    TEXT(summary_note, "node", node, run_node_check),
    TEXT(summary_note, "node_history_id", node_history, check_hex),
};
static const struct text_member metric_texts[] = {
    TEXT(summary_metric, "name", name, check_metric),
    TEXT(summary_metric, "unit", unit, check_unit),
};

enum number_kind { IS_COUNT, IS_FLAG, IS_TIME };
static const struct number_member {
    const char *name;
    size_t offset;
    enum number_kind kind;
} run_numbers[] = {
    {"seq", offsetof(struct summary, seq), IS_COUNT},
    {"id", offsetof(struct summary, id), IS_COUNT},
    {"n_ranks", offsetof(struct summary, n_ranks), IS_COUNT},
    {"imported", offsetof(struct summary, imported), IS_FLAG},
    {"forced", offsetof(struct summary, forced), IS_FLAG},
    {"measured", offsetof(struct summary, measured_ms), IS_TIME},
    {"finished", offsetof(struct summary, finished_ms), IS_TIME},
};

// ---- writing

void summary_writer_init(struct summary_writer *w)
{
    w->layouts = w->runs = w->notes = w->scratch = BUF_INIT;
    w->n_layouts = w->n_runs = w->n_notes =
        0; // of `layout`, whose 24 KB need not be cleared for an empty page
    w->layouts_w = jsonw_to(&w->layouts);
    w->runs_w = jsonw_to(&w->runs);
    w->notes_w = jsonw_to(&w->notes);
}

void summary_writer_fini(struct summary_writer *w)
{
    buf_free(&w->layouts);
    buf_free(&w->runs);
    buf_free(&w->notes);
    buf_free(&w->scratch);
}

size_t summary_writer_bytes(const struct summary_writer *w)
{
    return w->layouts.len + w->runs.len + w->notes.len;
}

static bool summary_value_counts(double v)
{
    return v >= FLT_MIN && v <= FLT_MAX;
}

static void write_layout(struct buf *out, const struct metric *list, int n)
{
    struct jsonw w = jsonw_to(out);
    jsonw_array(&w, NULL);
    for (int i = 0; i < n; i++) {
        if (!summary_value_counts(list[i].value))
            continue;
        jsonw_array(&w, NULL);
        jsonw_text(&w, NULL, list[i].name);
        jsonw_text(&w, NULL, list[i].unit);
        jsonw_end(&w);
    }
    jsonw_end(&w);
}

// The number of the layout that these metrics have; a new one is added to the page.
static int layout_of(struct summary_writer *w, const struct metric *list, int n)
{
    struct buf *text = &w->scratch;
    buf_reset(text);
    write_layout(text, list, n);
    buf_needs(&w->layouts, text);
    for (int i = w->n_layouts - 1; i >= 0; i--)
        if (w->layout[i].len == text->len &&
            memcmp(w->layouts.data + w->layout[i].at, buf_text(text), text->len) == 0)
            return i;
    jsonw_raw(&w->layouts_w, NULL, buf_text(text));
    if (!buf_ok(&w->layouts))
        return -1;
    w->layout[w->n_layouts].at = w->layouts.len - text->len;
    w->layout[w->n_layouts].len = text->len;
    w->layout[w->n_layouts].of = NULL;
    return w->n_layouts++;
}

static int layout_of_page(struct summary_writer *w, const struct summary_layout *from)
{
    for (int i = w->n_layouts - 1; i >= 0; i--)
        if (w->layout[i].of == from)
            return i;
    CLEANUP_MEM struct metric *list = calloc((size_t)from->n + 1, sizeof *list);
    if (!list) {
        buf_fail(&w->layouts);
        return -1;
    }
    for (int i = 0; i < from->n; i++) {
        list[i].value = 1; // any that counts
        snprintf(list[i].name, sizeof list[i].name, "%s", from->list[i].name);
        snprintf(list[i].unit, sizeof list[i].unit, "%s", from->list[i].unit);
    }
    int number = layout_of(w, list, from->n);
    if (number >= 0)
        w->layout[number].of = from;
    return number;
}

// How far the interval reaches on one side. Rounded up, so that no interval becomes narrower.
static int width_of(double value, double reach, double most)
{
    if (!isfinite(reach))
        return -1;
    return (int)ceil(fmin(fmax(reach / value / width_unit - 1e-6, 0), most));
}

static void summary_write_values(struct jsonw *w, const struct metric *list, int n)
{
    jsonw_array(w, "values");
    for (int i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.6g", list[i].value);
        if (summary_value_counts(list[i].value))
            jsonw_raw(w, NULL, text);
    }
    jsonw_end(w);
    jsonw_array(w, "widths");
    for (int i = 0; i < n; i++) {
        const struct metric *m = &list[i];
        if (!summary_value_counts(m->value))
            continue;
        jsonw_i64(w, NULL, width_of(m->value, m->value - m->lo, 1 / width_unit));
        jsonw_i64(w, NULL, width_of(m->value, m->hi - m->value, SUMMARY_WIDTH_MAX));
    }
    jsonw_end(w);
}

static void write_number(struct jsonw *w, const struct number_member *m, const struct summary *s)
{
    const void *at = (const char *)s + m->offset;
    if (m->kind == IS_FLAG)
        jsonw_bool(w, m->name, *(const bool *)at);
    else if (m->kind == IS_TIME)
        jsonw_time(w, m->name, *(const int64_t *)at);
    else
        jsonw_i64(w, m->name, *(const int64_t *)at);
}

// False: the page is full.
static bool write_run_head(struct summary_writer *w, const struct summary *s)
{
    struct jsonw *r = &w->runs_w;
    if (w->n_runs++ >= SUMMARY_RUNS_MAX) {
        buf_fail(&w->runs);
        return false;
    }
    jsonw_object(r, NULL);
    for (size_t i = 0; i < COUNT_OF(run_numbers); i++)
        write_number(r, &run_numbers[i], s);
    for (size_t i = 0; i < COUNT_OF(run_texts); i++)
        jsonw_text(r, run_texts[i].name, (const char *)s + run_texts[i].offset);
    if (*s->node_history) {
        jsonw_text(r, node_history_text.name, s->node_history);
        jsonw_i64(r, "node_seq", s->node_seq);
    }
    jsonw_i64(r, "metrics_version", s->metrics_version);
    jsonw_text(r, "state", run_state_names[s->state]);
    jsonw_fixed(r, "duration_s", s->duration_s, 3);
    jsonw_fixed(r, "disturbed", s->disturbed, 4);
    return true;
}

void summary_writer_add(struct summary_writer *w, const struct summary *s,
                        const struct metric *list, int n)
{
    struct jsonw *r = &w->runs_w;
    if (!write_run_head(w, s))
        return;
    jsonw_i64(r, "layout", n < 0 ? -1 : layout_of(w, list, n));
    summary_write_values(r, list, n);
    jsonw_end(r);
}

void summary_writer_copy(struct summary_writer *w, const struct summary *s,
                         const struct summary_layout *layout)
{
    struct jsonw *r = &w->runs_w;
    char text[32];
    int n = layout ? layout->n : 0;
    if (!write_run_head(w, s))
        return;
    jsonw_i64(r, "layout", layout ? layout_of_page(w, layout) : -1);
    jsonw_array(r, "values");
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%.6g", (double)s->values[i]);
        jsonw_raw(r, NULL, text);
    }
    jsonw_end(r);
    jsonw_array(r, "widths");
    for (int i = 0; i < n; i++) {
        jsonw_i64(r, NULL, summary_width(s->values[i], s->lo[i]));
        jsonw_i64(r, NULL, summary_width(s->values[i], s->hi[i]));
    }
    jsonw_end(r);
    jsonw_end(r);
}

void summary_note_write(const struct summary_note *n, struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_i64(w, "seq", n->seq);
    jsonw_i64(w, "run_seq", n->run_seq);
    jsonw_i64(w, "run", n->run);
    jsonw_text(w, note_label.name, n->label);
    jsonw_bool(w, "baseline", n->baseline);
    if (*n->node_history) {
        for (size_t i = 0; i < COUNT_OF(note_places); i++)
            jsonw_text(w, note_places[i].name, (const char *)n + note_places[i].offset);
        jsonw_i64(w, "node_seq", n->node_seq);
    }
    jsonw_end(w);
}

void summary_writer_note(struct summary_writer *w, const struct summary_note *n)
{
    if (w->n_notes++ < SUMMARY_RUNS_MAX)
        summary_note_write(n, &w->notes_w);
    else
        buf_fail(&w->notes);
}

void summary_writer_end(struct summary_writer *w, const struct summary_page *head, struct buf *out)
{
    struct jsonw p = jsonw_to(out);
    buf_needs(out, &w->layouts);
    buf_needs(out, &w->runs);
    buf_needs(out, &w->notes);
    jsonw_object(&p, NULL);
    jsonw_text(&p, "form", "summary");
    for (size_t i = 0; i < COUNT_OF(page_texts); i++)
        jsonw_text(&p, page_texts[i].name, (const char *)head + page_texts[i].offset);
    jsonw_i64(&p, "after", head->after);
    jsonw_array(&p, "layouts");
    buf_add(out, buf_text(&w->layouts), w->layouts.len);
    jsonw_end(&p);
    jsonw_array(&p, "runs");
    buf_add(out, buf_text(&w->runs), w->runs.len);
    jsonw_end(&p);
    if (w->n_notes) {
        jsonw_array(&p, "notes");
        buf_add(out, buf_text(&w->notes), w->notes.len);
        jsonw_end(&p);
    }
    jsonw_i64(&p, "next", head->next);
    jsonw_i64(&p, "last", head->last);
    jsonw_bool(&p, "more", head->more);
    if (head->deleted)
        jsonw_i64(&p, "deleted", head->deleted);
    jsonw_end(&p);
}

void summary_set_variant(struct summary *s, const char *variant)
{
    const size_t room = sizeof s->variant;
    char hash[65];
    if (strlen(variant) < room) {
        memcpy(s->variant, variant, strlen(variant) + 1);
        return;
    }
    text_hash(variant, hash);
    snprintf(s->variant, room, "%.*s#%s", (int)(room - sizeof hash - 1), variant, hash);
}

// ---- reading

static int bad_member(struct err *err, const char *within, const char *name)
{
    char text[sizeof err->text];
    if (!err)
        return -1;
    snprintf(text, sizeof text, "%s", err->text);
    err_set(err, ERR_INVALID, "", "%s", text);
    snprintf(err->member, sizeof err->member, "%s%s%s", within, *within && *name ? "." : "", name);
    return -1;
}

static int wrong(struct err *err, const char *within, const char *name, const char *what)
{
    err_set(err, ERR_INVALID, "", "%s", what);
    return bad_member(err, within, name);
}

static int read_text(const struct json *v, const struct text_member *m, void *into,
                     const char *within, struct err *err)
{
    const char *text = json_text(v);
    size_t n = text ? strlen(text) : 0;
    if (!text || n >= m->room) {
        err_set(err, ERR_INVALID, "", "must be a text of at most %zu bytes", m->room - 1);
        return bad_member(err, within, m->name);
    }
    if (m->check(text, err) < 0)
        return bad_member(err, within, m->name);
    memcpy((char *)into + m->offset, text, n + 1);
    return 0;
}

static int read_count(const struct json *object, const char *within, const char *name,
                      int64_t least, int64_t most, int64_t *out, struct err *err)
{
    int64_t n;
    if (json_i64(json_get(object, name), &n) && n >= least && n <= most) {
        *out = n;
        return 0;
    }
    err_set(err, ERR_INVALID, "", "must be a whole number from %lld to %lld", (long long)least,
            (long long)most);
    return bad_member(err, within, name);
}

static const int64_t count_max = INT64_C(1) << 53;

static int read_number(const struct json *object, const struct number_member *m, struct summary *s,
                       const char *within, struct err *err)
{
    void *at = (char *)s + m->offset;
    const struct json *v = json_get(object, m->name);
    if (m->kind == IS_COUNT)
        return read_count(object, within, m->name, 0, count_max, at, err);
    if (m->kind == IS_FLAG)
        return json_bool(v, at) ? 0 : wrong(err, within, m->name, "must be true or false");
    *(int64_t *)at = 0;
    const char *text = json_text(v);
    if (json_is_null(v) || (text && clock_parse(text, at)))
        return 0;
    return wrong(err, within, m->name, "must be a time, such as 2026-11-21T10:00:00Z, or null");
}

// A number of at least 0, or null.
static int read_amount(const struct json *object, const char *within, const char *name, double most,
                       double *out, struct err *err)
{
    const struct json *v = json_get(object, name);
    double d = NAN;
    if (!json_is_null(v) && (!json_number(v, &d) || d < 0 || d > most)) {
        err_set(err, ERR_INVALID, "", "must be a number from 0 to %g, or null", most);
        return bad_member(err, within, name);
    }
    *out = d;
    return 0;
}

static int read_node_place(const struct json *o, const char *within, struct summary *s,
                           struct err *err)
{
    const struct json *history = json_get(o, node_history_text.name);
    if (!history)
        return 0;
    return read_text(history, &node_history_text, s, within, err) < 0
               ? -1
               : read_count(o, within, "node_seq", 1, count_max, &s->node_seq, err);
}

// Everything of a run that is in the struct itself.
static int read_run_head(const struct json *o, const char *within, int n_layouts, struct summary *s,
                         struct err *err)
{
    int64_t version, layout;
    for (size_t i = 0; i < COUNT_OF(run_numbers); i++)
        if (read_number(o, &run_numbers[i], s, within, err) < 0)
            return -1;
    for (size_t i = 0; i < COUNT_OF(run_texts); i++)
        if (read_text(json_get(o, run_texts[i].name), &run_texts[i], s, within, err) < 0)
            return -1;
    const char *state = json_text(json_get(o, "state"));
    int found = state ? run_state_find(state) : -1;
    if (found < 0)
        return wrong(err, within, "state", "is not a state of a run");
    if (read_node_place(o, within, s, err) < 0 ||
        read_count(o, within, "metrics_version", 0, INT32_MAX, &version, err) < 0 ||
        read_count(o, within, "layout", -1, n_layouts - 1, &layout, err) < 0 ||
        read_amount(o, within, "duration_s", 1e9, &s->duration_s, err) < 0 ||
        read_amount(o, within, "disturbed", 1, &s->disturbed, err) < 0)
        return -1;
    s->state = (enum run_state)found;
    s->metrics_version = (int)version;
    s->layout = (int)layout;
    return 0;
}

static int summary_read_value(const struct json *v, float *out)
{
    double d;
    if (!json_number(v, &d) || !summary_value_counts(d))
        return -1;
    *out = (float)d;
    return 0;
}

int summary_width(float value, float end)
{
    return isfinite(end) ? (int)lround(fabs((double)end / value - 1) / width_unit) : -1;
}

float summary_end(float value, int sign, int width)
{
    return width < 0 ? NAN : (float)(value * (1 + sign * (double)width * width_unit));
}

// One end of the interval; `most` is how far it may reach.
static int read_width(const struct json *v, int sign, float value, int64_t most, float *out)
{
    int64_t n;
    if (!json_i64(v, &n) || n < -1 || n > most)
        return -1;
    *out = summary_end(value, sign, (int)n);
    return 0;
}

static int read_values(const struct json *o, const char *within, struct summary *s, int n,
                       struct err *err)
{
    const struct json *values = json_get(o, "values"), *widths = json_get(o, "widths");
    if (!json_is_array(widths) || json_count(widths) != 2 * n)
        return wrong(err, within, "widths", "must be an array of two numbers for each value");
    const struct json *v = json_first(values), *w = json_first(widths);
    for (int i = 0; i < n; i++) {
        if (summary_read_value(v, &s->values[i]) < 0)
            return wrong(err, within, "values", "has something else than a number above 0");
        if (read_width(w, -1, s->values[i], (int64_t)(1 / width_unit), &s->lo[i]) < 0 ||
            read_width(json_next(w), 1, s->values[i], SUMMARY_WIDTH_MAX, &s->hi[i]) < 0)
            return wrong(err, within, "widths", "has a number that is out of range");
        v = json_next(v);
        w = json_next(json_next(w));
    }
    return 0;
}

static int read_layout(const struct json *list, const char *within, struct summary_layout *l,
                       struct err *err)
{
    for (const struct json *m = json_first(list); m; m = json_next(m)) {
        const struct json *name = json_first(m);
        if (!json_is_array(m) || json_count(m) != 2)
            return wrong(err, within, "", "must have a name and a unit for each metric");
        struct summary_metric *into = &l->list[l->n++];
        if (read_text(name, &metric_texts[0], into, within, err) < 0 ||
            read_text(json_next(name), &metric_texts[1], into, within, err) < 0)
            return -1;
    }
    return 0;
}

// How much memory the parts of a page take, as the document claims; checked when they are read.
struct sizes {
    size_t layouts, runs, notes, metrics, values;
};

static int summary_count_list(const struct json *document, const char *name, int most, size_t *n,
                              struct err *err)
{
    const struct json *list = json_get(document, name);
    if (!json_is_array(list))
        return wrong(err, "", name, "must be an array");
    *n = (size_t)json_count(list);
    if (*n <= (size_t)most)
        return 0;
    return err_set(err, ERR_TOO_LARGE, name, "has %zu elements; at most %d are read", *n, most);
}

static int measure(const struct json *document, struct sizes *z, struct err *err)
{
    if (summary_count_list(document, "layouts", SUMMARY_LAYOUTS_MAX, &z->layouts, err) < 0 ||
        summary_count_list(document, "runs", SUMMARY_RUNS_MAX, &z->runs, err) < 0 ||
        (json_get(document, "notes") &&
         summary_count_list(document, "notes", SUMMARY_RUNS_MAX, &z->notes, err) < 0))
        return -1;
    for (const struct json *l = json_first(json_get(document, "layouts")); l; l = json_next(l)) {
        int n = json_count(l);
        if (!json_is_array(l) || n > METRICS_MAX)
            return err_set(err, ERR_INVALID, "layouts",
                           "must hold arrays of at most %d metrics each", METRICS_MAX);
        z->metrics += (size_t)n;
    }
    for (const struct json *r = json_first(json_get(document, "runs")); r; r = json_next(r))
        z->values += (size_t)json_count(json_get(r, "values"));
    return 0;
}

// Largest alignment first; the pieces are handed out as they are filled.
static int page_make_room(struct summary_page *p, const struct sizes *z, float **values,
                          struct summary_metric **metrics, struct err *err)
{
    size_t runs = z->runs * sizeof *p->runs, layouts = z->layouts * sizeof *p->layouts;
    size_t notes = z->notes * sizeof *p->notes, floats = 3 * z->values * sizeof(float);
    char *memory = calloc(1, runs + notes + layouts + floats + z->metrics * sizeof **metrics + 1);
    if (!memory)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a page of %zu runs", z->runs);
    p->memory = memory;
    p->runs = (void *)memory;
    p->notes = (void *)(memory + runs);
    p->layouts = (void *)(memory + runs + notes);
    *values = (void *)(memory + runs + notes + layouts);
    *metrics = (void *)(memory + runs + notes + layouts + floats);
    return 0;
}

static int read_layouts(const struct json *document, struct summary_page *p,
                        struct summary_metric *metrics, struct err *err)
{
    char within[32];
    for (const struct json *l = json_first(json_get(document, "layouts")); l; l = json_next(l)) {
        struct summary_layout *into = &p->layouts[p->n_layouts];
        snprintf(within, sizeof within, "layouts[%d]", p->n_layouts++);
        into->list = metrics;
        if (read_layout(l, within, into, err) < 0)
            return -1;
        metrics += into->n;
    }
    return 0;
}

static int read_runs(const struct json *document, struct summary_page *p, float *values,
                     struct err *err)
{
    char within[32];
    for (const struct json *r = json_first(json_get(document, "runs")); r; r = json_next(r)) {
        struct summary *s = &p->runs[p->n_runs];
        snprintf(within, sizeof within, "runs[%d]", p->n_runs++);
        if (!json_is_object(r))
            return wrong(err, within, "", "must be an object");
        if (read_run_head(r, within, p->n_layouts, s, err) < 0)
            return -1;
        int n = s->layout < 0 ? 0 : p->layouts[s->layout].n;
        // Its room was counted by its own array, which must be as long as the layout.
        const struct json *list = json_get(r, "values");
        if (!json_is_array(list) || json_count(list) != n)
            return wrong(err, within, "values", "must have a value for each metric of the layout");
        s->values = values;
        s->lo = values + n;
        s->hi = values + 2 * n;
        values += 3 * n;
        if (read_values(r, within, s, n, err) < 0)
            return -1;
    }
    return 0;
}

static int read_note_place(const struct json *o, const char *within, struct summary_note *n,
                           struct err *err)
{
    if (!json_get(o, node_history_text.name))
        return 0;
    for (size_t i = 0; i < COUNT_OF(note_places); i++)
        if (read_text(json_get(o, note_places[i].name), &note_places[i], n, within, err) < 0)
            return -1;
    return read_count(o, within, "node_seq", 1, count_max, &n->node_seq, err);
}

static int read_notes(const struct json *document, struct summary_page *p, struct err *err)
{
    char within[32];
    for (const struct json *o = json_first(json_get(document, "notes")); o; o = json_next(o)) {
        struct summary_note *n = &p->notes[p->n_notes];
        snprintf(within, sizeof within, "notes[%d]", p->n_notes++);
        if (!json_is_object(o))
            return wrong(err, within, "", "must be an object");
        if (read_count(o, within, "seq", 1, count_max, &n->seq, err) < 0 ||
            read_count(o, within, "run_seq", 1, count_max, &n->run_seq, err) < 0 ||
            read_count(o, within, "run", 0, count_max, &n->run, err) < 0 ||
            read_text(json_get(o, note_label.name), &note_label, n, within, err) < 0 ||
            read_note_place(o, within, n, err) < 0)
            return -1;
        if (!json_bool(json_get(o, "baseline"), &n->baseline))
            return wrong(err, within, "baseline", "must be true or false");
    }
    return 0;
}

static int read_page_head(const struct json *document, struct summary_page *p, struct err *err)
{
    const char *form = json_text(json_get(document, "form"));
    if (!form || strcmp(form, "summary") != 0)
        return wrong(err, "", "form", "must be \"summary\"; the sender is older than this form");
    for (size_t i = 0; i < COUNT_OF(page_texts); i++) {
        const struct json *v = json_get(document, page_texts[i].name);
        if (v && read_text(v, &page_texts[i], p, "", err) < 0)
            return -1;
    }
    if (!json_bool(json_get(document, "more"), &p->more))
        return wrong(err, "", "more", "must be true or false");
    if (json_get(document, "deleted") &&
        read_count(document, "", "deleted", 0, count_max, &p->deleted, err) < 0)
        return -1;
    return read_count(document, "", "after", 0, count_max, &p->after, err) < 0 ||
                   read_count(document, "", "next", 0, count_max, &p->next, err) < 0 ||
                   read_count(document, "", "last", 0, count_max, &p->last, err) < 0
               ? -1
               : 0;
}

int summary_page_read(const struct json *document, struct summary_page *out, struct err *err)
{
    struct summary_page p CLEANUP(summary_page_fini) = {0};
    struct sizes z = {0};
    struct summary_metric *metrics = NULL;
    float *values = NULL;
    if (!json_is_object(document))
        return err_set(err, ERR_INVALID, "", "a page of summaries must be an object");
    if (read_page_head(document, &p, err) < 0 || measure(document, &z, err) < 0 ||
        page_make_room(&p, &z, &values, &metrics, err) < 0 ||
        read_layouts(document, &p, metrics, err) < 0 || read_runs(document, &p, values, err) < 0 ||
        read_notes(document, &p, err) < 0)
        return -1;
    *out = p;
    p.memory = NULL;
    return 0;
}

void summary_page_fini(struct summary_page *p)
{
    free(p->memory);
    *p = (struct summary_page){0};
}
