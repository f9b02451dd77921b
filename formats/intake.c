// SPDX-License-Identifier: Apache-2.0
// A document is JSON, JSON lines or text. Text is read by import.c and log_hints.c, an export
// by run_document.c. What is missing is filled in at the end, and each such guess becomes a
// condition.
#include "formats/intake.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "formats/earlier.h"
#include "formats/import.h"
#include "model/shape.h"
#include "model/spec_request.h"

static const char *const page_names[] = {[PAGES_THP] = "thp",
                                         [PAGES_4K] = "4k",
                                         [PAGES_HUGE] = "huge",
                                         [PAGES_2M] = "2M",
                                         [PAGES_1G] = "1G"};
static const char unknown_node[] = "unknown";
// What numa_bench printed before it named its method in the output.
static const char first_method[] = "classic-v1";

void intake_fini(struct intake *i)
{
    for (int k = 0; k < i->n; k++)
        run_document_fini(&i->list[k]);
    free(i->list);
    free(i->keys);
    *i = (struct intake){0};
}

// White space at the start.
static size_t blanks(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && isspace((unsigned char)text[n]))
        n++;
    return n;
}

static bool intake_given(const char *text)
{
    return text != NULL && *text != '\0';
}

static int intake_pages_of(const char *name)
{
    for (int p = 0; p < (int)COUNT_OF(page_names); p++)
        if (strcmp(page_names[p], name) == 0)
            return p;
    return -1;
}

int intake_check(const struct intake_options *o, struct err *err)
{
    if (intake_given(o->mode) && strcmp(o->mode, "concurrent") != 0 &&
        strcmp(o->mode, "serial") != 0)
        return err_set(err, ERR_INVALID, "mode", "must be concurrent or serial; got \"%.40s\"",
                       o->mode);
    if (intake_given(o->pages) && intake_pages_of(o->pages) < 0)
        return err_set(err, ERR_INVALID, "pages",
                       "must be one of thp, 4k, huge, 2M, 1G; got \"%.40s\"", o->pages);
    if (intake_given(o->node) && run_node_check(o->node, err) < 0)
        return -1;
    if (intake_given(o->label) && run_label_check(o->label, err) < 0)
        return -1;
    return intake_given(o->method) ? run_method_check(o->method, err) : 0;
}

// ---- what is not said ---------------------------------------------------------------------------

// The run's conditions.
struct notes {
    struct buf text;
    struct jsonw w;
};

static void notes_fini(struct notes *n)
{
    buf_free(&n->text);
}

static void note_as(struct notes *n, enum condition_kind kind, const char *text)
{
    struct condition c;
    condition_set(&c, kind, -1, "%s", text);
    condition_write_json(&c, &n->w, NULL);
}

__attribute__((format(printf, 2, 3))) static void note(struct notes *n, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    note_as(n, CONDITION_IMPORT, text);
}

static void decide_node(struct run *r, const struct hints *h, const struct intake_options *o,
                        struct notes *n)
{
    bool said = *h->node && !h->several_nodes;
    snprintf(r->node, sizeof r->node, "%s",
             intake_given(o->node) ? o->node
             : said                ? h->node
                                   : unknown_node);
    if (intake_given(o->node))
        return;
    if (said)
        note(n, "node %s: taken from the lines around the table", h->node);
    else
        note(n, "the node is not known%s",
             h->several_nodes ? ": the lines around the table name several" : "");
}

static void decide_date(struct run_document *w, const struct hints *h,
                        const struct intake_options *o, struct notes *n)
{
    struct run *r = &w->run;
    r->measured_ms = o->measured_ms ? o->measured_ms : h->date_ms ? h->date_ms : o->now_ms;
    w->undated = !o->measured_ms && !h->date_ms;
    if (w->undated)
        note_as(n, CONDITION_IMPORT_UNDATED,
                "the date is not known; the time of the import is used instead");
    else if (!o->measured_ms)
        note(n, "the date was taken from the lines around the table%s",
             h->zoned ? "" : "; they name no time zone, so UTC is assumed");
}

static void decide_method(struct run *r, const struct hints *h, const struct intake_options *o,
                          struct notes *n)
{
    bool said = *h->method && run_method_check(h->method, NULL) == 0;
    snprintf(r->method, sizeof r->method, "%s",
             intake_given(o->method) ? o->method
             : said                  ? h->method
                                     : first_method);
    if (!intake_given(o->method) && !said)
        note(n, "the method is not known; %s, that of the first numa_bench, is assumed",
             first_method);
}

static void decide_pages(struct run_document *w, const struct intake_options *o, struct notes *n)
{
    if (!intake_given(o->pages) && (w->n_ranks == 0 || !*w->ranks[0].pages_got))
        note(n, "the page kind is not known");
    for (int i = 0; intake_given(o->pages) && i < w->n_ranks; i++) {
        snprintf(w->ranks[i].pages_wanted, sizeof w->ranks[i].pages_wanted, "%s", o->pages);
        snprintf(w->ranks[i].pages_got, sizeof w->ranks[i].pages_got, "%s", o->pages);
    }
}

// The mode in the file's name, such as lumig-8ranks-serial.txt; NULL: none, or both.
static const char *mode_in_name(const char *file)
{
    if (!intake_given(file))
        return NULL;
    bool serial = strcasestr(file, "serial") != NULL;
    bool concurrent = strcasestr(file, "concurrent") != NULL;
    return serial == concurrent ? NULL : serial ? "serial" : "concurrent";
}

static void note_mode(const struct import *i, const struct run_document *w,
                      const struct intake_options *o, struct notes *n)
{
    const char *mode = w->matrices[0].name;
    if (intake_given(o->mode) || i->format == IMPORT_JSON || w->n_matrices > 1)
        return;
    if (i->mode_known)
        note(n, "mode %s: taken from the lines around the table", mode);
    else if (mode_in_name(o->file) != NULL)
        note(n, "mode %s: taken from the file's name", mode);
    else
        note(n, "the mode is not known; %s is assumed", mode);
}

static void note_cells(const struct run_document *w, struct notes *n)
{
    const struct cell *c = matrix_at(&w->matrices[0], 0, 0);
    if (!isfinite(c->v[CELL_LO]) && !isfinite(c->v[CELL_SD]))
        note(n, "each cell holds one value, so its precision is not known");
}

// ---- What was requested -------------------------------------------------------------------------

// "1M-16G" where each size doubles, else all of them; the ends alone if that is too long.
// False, here and below: no memory for the text.
static bool size_text(const struct axis *a, char *out, size_t room)
{
    CLEANUP_BUF struct buf list = BUF_INIT;
    bool doubles = a->n > 1;
    char one[24] = "", first[24];
    str_from_bytes((uint64_t)a->values[0], first, sizeof first);
    for (int i = 0; i < a->n; i++) {
        str_from_bytes((uint64_t)a->values[i], one, sizeof one);
        buf_fmt(&list, "%s%s", i ? "," : "", one);
        doubles &= i == 0 || a->values[i] == 2 * a->values[i - 1];
    }
    if (doubles || list.len >= room)
        snprintf(out, room, "%s-%s", first, one);
    else
        snprintf(out, room, "%s", buf_text(&list));
    return buf_ok(&list);
}

static bool ids_text(const struct run_document *w, bool of_cpus, char *out, size_t room)
{
    CLEANUP_BUF struct buf list = BUF_INIT;
    for (int i = 0; i < w->n_ranks; i++)
        buf_fmt(&list, "%s%lld", i ? "," : "",
                (long long)(of_cpus ? w->ranks[i].cpu : w->ranks[i].mem_node));
    if (list.len < room)
        snprintf(out, room, "%s", buf_text(&list));
    return buf_ok(&list);
}

// Where ranks say where they were, they were asked to be there.
static bool placement_text(struct run_document *w)
{
    bool local = true, shared = false;
    for (int i = 0; i < w->n_ranks; i++) {
        local &= w->ranks[i].mem_node == w->ranks[i].cpu_node;
        for (int k = 0; k < i; k++)
            shared |= w->ranks[i].cpu == w->ranks[k].cpu;
    }
    w->run.spec.oversubscribe = shared;
    return ids_text(w, true, w->run.spec.cpus, sizeof w->run.spec.cpus) &&
           (local || ids_text(w, false, w->run.spec.numa, sizeof w->run.spec.numa));
}

static int intake_mode_of(const struct run_document *w, struct err *err)
{
    for (int k = 0; k < w->n_matrices; k++)
        if (strcmp(w->matrices[k].name, "concurrent") != 0 &&
            strcmp(w->matrices[k].name, "serial") != 0)
            return err_set(err, ERR_INVALID, "matrices",
                           "\"%s\" alone does not identify the benchmark. Without their run, only "
                           "matrices of latency can be imported (concurrent, serial). GET "
                           "/v1/runs/{id}/export gives the whole run",
                           w->matrices[k].name);
    return w->n_matrices == 2                           ? MODE_BOTH
           : strcmp(w->matrices[0].name, "serial") == 0 ? MODE_SERIAL
                                                        : MODE_CONCURRENT;
}

static int make_spec(struct run_document *w, bool placed, const struct intake_options *o,
                     struct err *err)
{
    struct spec *s = &w->run.spec;
    int mode = intake_mode_of(w, err);
    if (mode < 0)
        return -1;
    spec_init(s, BENCHMARK_LATENCY);
    s->mode = mode;
    s->method = strcmp(w->run.method, first_method) == 0 ? METHOD_CLASSIC : METHOD_PRP;
    s->pages = intake_given(o->pages) ? intake_pages_of(o->pages) : PAGES_THP;
    bool whole =
        size_text(&w->matrices[0].col, s->size, sizeof s->size) && (!placed || placement_text(w));
    if (intake_given(o->file)) {
        CLEANUP_BUF struct buf name = BUF_INIT;
        buf_utf8(&name, o->file);
        snprintf(s->note, sizeof s->note, "%s", buf_text(&name));
        whole &= buf_ok(&name);
    }
    if (!whole)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the parameters");
    return spec_check(s, err);
}

// ---- tables, CSV, matrices ----------------------------------------------------------------------

// The import's matrices and ranks become the run's.
static int take_numbers(struct run_document *w, struct import *i, struct err *err)
{
    w->matrices = calloc((size_t)i->n_matrices, sizeof *w->matrices);
    if (w->matrices == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
    memcpy(w->matrices, i->matrices, (size_t)i->n_matrices * sizeof *w->matrices);
    w->n_matrices = i->n_matrices;
    i->n_matrices = 0;
    w->ranks = steal_ptr(&i->ranks);
    w->n_ranks = i->n_ranks;
    run_document_count(w);
    return 0;
}

static int intake_decide(struct run_document *w, const struct import *i,
                         const struct intake_options *o, struct err *err)
{
    struct notes n CLEANUP(notes_fini) = {.text = BUF_INIT};
    n.w = jsonw_to(&n.text);
    jsonw_array(&n.w, NULL);
    decide_node(&w->run, &i->hints, o, &n);
    decide_date(w, &i->hints, o, &n);
    decide_method(&w->run, &i->hints, o, &n);
    decide_pages(w, o, &n);
    note_mode(i, w, o, &n);
    note_cells(w, &n);
    jsonw_end(&n.w);
    snprintf(w->run.label, sizeof w->run.label, "%s", intake_given(o->label) ? o->label : "");
    w->run.conditions_json = buf_steal(&n.text);
    return w->run.conditions_json ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
}

// `spec`: of JSON that brings one; NULL: it is made of what is there.
static int make_run(struct run_document *out, struct import *i, const struct json *spec,
                    const struct intake_options *o, struct err *err)
{
    struct run_document w CLEANUP(run_document_fini) = {.run = {.state = RUN_SUCCEEDED}};
    if (take_numbers(&w, i, err) < 0 || intake_decide(&w, i, o, err) < 0)
        return -1;
    if ((spec != NULL ? spec_from_run(&w.run.spec, spec, err) : make_spec(&w, i->placed, o, err)) <
            0 ||
        run_document_check(&w, err) < 0)
        return -1;
    *out = w;
    w = (struct run_document){0};
    return 0;
}

static int read_table(struct run_document *out, const char *text, size_t len,
                      const struct intake_options *o, struct err *err)
{
    struct import i CLEANUP(import_fini) = {0};
    size_t mapping_len = o->mapping != NULL ? strlen(o->mapping) : 0; // an empty one has no ranks
    if (import_parse(&i, text, len, o->mapping, mapping_len, intake_given(o->mode) ? o->mode : NULL,
                     err) < 0)
        return -1;
    const char *mode = i.mode_known ? NULL : mode_in_name(o->file);
    if (mode != NULL)
        snprintf(i.matrices[0].name, sizeof i.matrices[0].name, "%s", mode);
    return make_run(out, &i, NULL, o, err);
}

// ---- JSON ---------------------------------------------------------------------------------------

// A whole run says all of that itself.
static int refuse_options(const struct intake_options *o, struct err *err)
{
    const struct {
        const char *name;
        bool given;
    } all[] = {{"mapping", o->mapping != NULL},     {"mode", intake_given(o->mode)},
               {"node", intake_given(o->node)},     {"pages", intake_given(o->pages)},
               {"method", intake_given(o->method)}, {"date", o->measured_ms != 0}};
    for (size_t k = 0; k < COUNT_OF(all); k++)
        if (all[k].given)
            return err_set(err, ERR_INVALID, all[k].name,
                           "cannot be given for an exported run, which contains it");
    return 0;
}

static int check_dates(const struct run_document *w, const struct intake_options *o,
                       struct err *err)
{
    enum { DAY_MS = 86400000 }; // clocks of two nodes, and their zones
    const struct {
        const char *member;
        int64_t ms;
    } dates[] = {{o->measured_ms ? "date" : "measured", w->run.measured_ms},
                 {"created", w->run.created_ms},
                 {"started", w->run.started_ms},
                 {"finished", w->run.finished_ms}};
    for (size_t i = 0; o->now_ms && i < COUNT_OF(dates); i++)
        if (dates[i].ms > o->now_ms + DAY_MS)
            return err_set(err, ERR_INVALID, dates[i].member,
                           "is in the future; is the clock right?");
    return 0;
}

static int read_json(struct run_document *out, const struct json *root,
                     const struct intake_options *o, struct err *err)
{
    struct import i CLEANUP(import_fini) = {0};
    if (json_get(root, "format") != NULL) {
        if (refuse_options(o, err) < 0 || run_document_from_json(out, root, err) < 0)
            return -1;
        if (intake_given(o->label))
            snprintf(out->run.label, sizeof out->run.label, "%s", o->label);
        return 0;
    }
    if (intake_given(o->mode) || o->mapping != NULL)
        return err_set(err, ERR_INVALID, intake_given(o->mode) ? "mode" : "mapping",
                       "belongs to tables and CSV; JSON contains it");
    if (import_from_json(&i, root, err) < 0)
        return -1;
    return make_run(out, &i, json_get(root, "spec"), o, err);
}

// ---- documents ----------------------------------------------------------------------------------

static int intake_make_room(struct intake *i, int n, struct err *err)
{
    struct run_document *list = realloc(i->list, (size_t)n * sizeof *list);
    if (list != NULL)
        i->list = list;
    char(*keys)[65] = realloc(i->keys, (size_t)n * sizeof *keys);
    if (keys != NULL)
        i->keys = keys;
    return list && keys ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %d runs", n);
}

// One more run: of `root`, or of the text where that is NULL.
static int intake_add_run(struct intake *i, const struct json *root, const char *text, size_t len,
                          const struct intake_options *o, struct err *err)
{
    struct run_document w CLEANUP(run_document_fini) = {0};
    if (i->n == INTAKE_RUNS_MAX)
        return err_set(err, ERR_INVALID, "runs", "are more than %d; import them in parts",
                       INTAKE_RUNS_MAX);
    if ((root != NULL ? read_json(&w, root, o, err) : read_table(&w, text, len, o, err)) < 0 ||
        check_dates(&w, o, err) < 0 || import_check_cells(i->cells + w.run.n_cells, err) < 0)
        return -1;
    if ((i->n & (i->n - 1)) == 0 && intake_make_room(i, i->n ? 2 * i->n : 1, err) < 0)
        return -1;
    if (run_document_key(&w, i->keys[i->n], err) < 0)
        return -1;
    i->cells += w.run.n_cells;
    i->list[i->n++] = w;
    w = (struct run_document){0};
    return 0;
}

// Puts where it was before what was wrong: "line 3", "runs[2]".
__attribute__((format(printf, 2, 3))) static int at(struct err *err, const char *fmt, ...)
{
    char where[64], member[64];
    if (err == NULL)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    memcpy(member, err->member, sizeof member);
    memcpy(err->member, where, sizeof where);
    return *member ? err_prefix(err, "%s: %s", where, member) : err_prefix(err, "%s", where);
}

static int intake_read_list(struct intake *made, const struct json *list,
                            const struct intake_options *o, struct err *err)
{
    made->several = true;
    if (!json_is_array(list) || json_first(list) == NULL)
        return err_set(err, ERR_INVALID, "runs", "must be an array of exported runs");
    for (const struct json *r = json_first(list); r != NULL; r = json_next(r))
        if (intake_add_run(made, r, NULL, 0, o, err) < 0)
            return at(err, "runs[%d]", made->n);
    return 0;
}

int intake_from_json(struct intake *out, struct json *root, const struct intake_options *o,
                     struct err *err)
{
    struct intake made CLEANUP(intake_fini) = {0};
    earlier_names(root);
    const struct json *list = json_get(root, "runs");
    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "",
                       "must be an object: an exported run, {\"runs\":[…]}, "
                       "or one with \"matrices\"");
    if ((list != NULL ? intake_read_list(&made, list, o, err)
                      : intake_add_run(&made, root, NULL, 0, o, err)) < 0)
        return -1;
    *out = made;
    made = (struct intake){0};
    return 0;
}

static int intake_read_lines(struct intake *made, const char *text, size_t len,
                             const struct intake_options *o, struct err *err)
{
    const char *end = text + len;
    int number = 0;
    made->several = true;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *next = stop == NULL ? end : stop + 1;
        size_t n = (size_t)((stop == NULL ? end : stop) - line);
        if (++number > IMPORT_LINES_MAX)
            return err_set(err, ERR_TOO_LARGE, "", "more than %d lines", IMPORT_LINES_MAX);
        if (n > blanks(line, n)) {
            CLEANUP_JSON struct json *root = json_parse(line, n, err);
            if (root != NULL)
                earlier_names(root);
            if (root == NULL || intake_add_run(made, root, NULL, 0, o, err) < 0)
                return at(err, "line %d", number);
        }
        line = next;
    }
    return 0;
}

// JSON lines: the first line is a whole object, and another one follows.
static bool is_lines(const char *text, size_t len)
{
    const char *stop = memchr(text, '\n', len);
    if (stop == NULL)
        return false;
    size_t first = (size_t)(stop - text), rest = len - first;
    while (first > 0 && isspace((unsigned char)text[first - 1]))
        first--;
    return first > 0 && text[first - 1] == '}' && rest > blanks(stop, rest);
}

int intake_read(struct intake *out, const char *text, size_t len, const struct intake_options *o,
                struct err *err)
{
    struct intake made CLEANUP(intake_fini) = {0};
    size_t mark = str_mark(text, len), skip = mark + blanks(text + mark, len - mark);
    bool json = skip < len && text[skip] == '{';
    if (json && !is_lines(text + skip, len - skip)) {
        CLEANUP_JSON struct json *root = json_parse(text + skip, len - skip, err);
        return root == NULL ? -1 : intake_from_json(out, root, o, err);
    }
    if ((json ? intake_read_lines(&made, text + mark, len - mark, o, err)
              : intake_add_run(&made, NULL, text, len, o, err)) < 0)
        return -1;
    *out = made;
    made = (struct intake){0};
    return 0;
}
