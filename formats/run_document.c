// SPDX-License-Identifier: Apache-2.0
// Reading is strict: an unknown value, a matrix that does not fit its benchmark or a rank
// without its plan is refused, because what is stored is served to others.
#include "formats/run_document.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "formats/earlier.h"
#include "formats/import.h"
#include "model/budget.h"
#include "model/shape.h"
#include "model/spec_request.h"

// Of one run. A plan has a line of 60 bytes a rank, conditions at most a sentence a cell that
// failed.
enum {
    MATRICES_MAX = SHAPES_MAX,
    RANKS_MAX = SPEC_RANKS_MAX,
    CONDITIONS_MAX = 256,
    // These are part of a run wherever it is listed, 200 of them in one answer.
    PLAN_BYTES_MAX = 128 << 10,      // 1024 ranks of 62 bytes, targets, notes: 80 KB
    CONDITIONS_BYTES_MAX = 96 << 10, // 30 of 300 bytes are many
    TOPOLOGY_XML_MAX = 4 << 20,      // 2048 CPUs take 1.5 MB
};

void run_document_fini(struct run_document *w)
{
    for (int i = 0; i < w->n_matrices; i++)
        matrix_fini(&w->matrices[i]);
    free(w->matrices);
    free(w->ranks);
    free(w->class_json);
    free(w->config_json);
    free(w->topology_xml);
    free(w->log);
    run_fini(&w->run);
    *w = (struct run_document){0};
}

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
}

// ---- the run ------------------------------------------------------------------------------------

// A text, null or absent ("" then).
static int run_document_read_text(const struct json *o, const char *member, char *out, size_t room,
                                  struct err *err)
{
    const struct json *v = json_get(o, member);
    const char *text = v == NULL || json_is_null(v) ? "" : json_text(v);
    if (text == NULL || strlen(text) >= room)
        return err_set(err, ERR_INVALID, member, "must be a text of at most %zu bytes, or null",
                       room - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int read_time(const struct json *o, const char *member, int64_t *ms, struct err *err)
{
    const struct json *v = json_get(o, member);
    *ms = 0;
    if (v == NULL || json_is_null(v))
        return 0;
    if (json_text(v) == NULL || !clock_parse(json_text(v), ms))
        return err_set(err, ERR_INVALID, member,
                       "must be a time such as 2026-11-21T04:05:06Z, from 1970 on");
    return 0;
}

// A clock may be set while a run lasts, but not so far.
static int check_order(const struct run *r, struct err *err)
{
    enum { DAY_MS = 86400000 };
    if (!r->started_ms || !r->finished_ms || r->finished_ms >= r->started_ms - DAY_MS)
        return 0;
    return err_set(err, ERR_INVALID, "finished", "is before started");
}

static int run_document_read_phases(const struct json *o, struct run *r, struct err *err)
{
    const double most_ms = RUN_SECONDS_MAX * 1000.0;
    const struct json *phases = json_get(o, "phases_ms");
    if (phases && !json_is_null(phases) && !json_is_object(phases))
        return err_set(err, ERR_INVALID, "phases_ms", "must be an object or null");
    for (int i = 0; i < PHASES; i++) {
        const struct json *v = json_get(phases, phase_names[i]);
        double ms = 0;
        if (v && !json_is_null(v) && (!json_number(v, &ms) || !(ms >= 0 && ms <= most_ms)))
            return err_set(err, ERR_INVALID, "phases_ms",
                           "%s must be a number of milliseconds from 0 to %.0f, or null",
                           phase_names[i], most_ms);
        r->phase_ms[i] = ms;
    }
    return 0;
}

static int run_document_read_times(const struct json *o, struct run *r, struct err *err)
{
    const struct {
        const char *member;
        int64_t *ms;
    } times[] = {{"created", &r->created_ms},
                 {"started", &r->started_ms},
                 {"finished", &r->finished_ms},
                 {"measured", &r->measured_ms}};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        if (read_time(o, times[i].member, times[i].ms, err) < 0)
            return -1;
    if (r->measured_ms == 0)
        r->measured_ms = r->started_ms != 0 ? r->started_ms : r->created_ms;
    if (r->measured_ms == 0)
        return err_set(err, ERR_INVALID, "measured", "is missing: when the run was measured");
    return check_order(r, err);
}

static int read_error(const struct json *o, struct run *r, struct err *err)
{
    const struct json *e = json_get(o, "error");
    if (e == NULL || json_is_null(e))
        return 0;
    if (!json_is_object(e))
        return err_set(err, ERR_INVALID, "error", "must be an object or null");
    r->error = err_find(json_get_text(e, "type", "unknown"));
    return run_document_read_text(e, "member", r->error_member, sizeof r->error_member, err) < 0
               ? -1
               : run_document_read_text(e, "text", r->error_text, sizeof r->error_text, err);
}

// The text is the run's from now on.
static int run_document_keep(struct buf *text, const char *member, size_t most, char **out,
                             struct err *err)
{
    if (text->len > most)
        return err_set(err, ERR_INVALID, member, "takes more than %zu KiB", most >> 10);
    *out = buf_steal(text);
    return *out == NULL ? no_memory(err) : 0;
}

static int read_plan(const struct json *o, struct run *r, struct err *err)
{
    const struct json *plan = json_get(o, "plan");
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (plan == NULL || json_is_null(plan))
        return 0;
    if (!json_is_object(plan))
        return err_set(err, ERR_INVALID, "plan", "must be an object or null");
    struct jsonw w = jsonw_to(&text);
    json_write(plan, &w, NULL);
    if (run_document_keep(&text, "plan", PLAN_BYTES_MAX, &r->plan_json, err) < 0)
        return -1;
    budget_apply_stored(r->plan_json, &r->spec);
    return 0;
}

static int read_condition(struct condition *c, const struct json *value, int i, struct err *err)
{
    const char *sentence = json_text(value);
    if ((sentence != NULL ? earlier_condition(c, sentence, err)
                          : condition_from_json(c, value, err)) == 0)
        return 0;
    return err_prefix(err, "conditions[%d]", i);
}

static int read_conditions(const struct json *o, struct run_document *w, struct err *err)
{
    const struct json *list = json_get(o, "conditions");
    CLEANUP_BUF struct buf text = BUF_INIT;
    int i = 0;
    if (list == NULL || json_is_null(list))
        return 0;
    if (!json_is_array(list) || json_count(list) > CONDITIONS_MAX)
        return err_set(err, ERR_INVALID, "conditions", "must be an array of at most %d conditions",
                       CONDITIONS_MAX);
    struct jsonw out = jsonw_to(&text);
    jsonw_array(&out, NULL);
    for (const struct json *v = json_first(list); v != NULL; v = json_next(v)) {
        struct condition c;
        if (read_condition(&c, v, i++, err) < 0)
            return -1;
        w->undated |= c.kind == CONDITION_IMPORT_UNDATED;
        condition_write_json(&c, &out, NULL);
    }
    jsonw_end(&out);
    return i == 0 ? 0
                  : run_document_keep(&text, "conditions", CONDITIONS_BYTES_MAX,
                                      &w->run.conditions_json, err);
}

static int run_document_read_spec(const struct json *o, struct run *r, struct err *err)
{
    if (spec_from_run(&r->spec, json_get(o, "spec"), err) == 0)
        return 0;
    if (err->code == ERR_INVALID) {
        // The document has no version but that of its form: later ones can have benchmarks and
        // parameters that this one has not.
        const struct err why = *err;
        err_set(err, ERR_INVALID, why.member,
                "%.170s; if a newer numaprobe wrote this: update this one", why.text);
    }
    return err_prefix(err, "spec");
}

static int read_state(const struct json *o, struct run *r, struct err *err)
{
    int state = run_state_find(json_get_text(o, "state", ""));
    if (state < 0 || !run_state_final((enum run_state)state))
        return err_set(err, ERR_INVALID, "state",
                       "must be succeeded, failed, canceled or interrupted");
    r->state = (enum run_state)state;
    return 0;
}

static int run_document_read_run(const struct json *o, struct run_document *w, struct err *err)
{
    struct run *r = &w->run;
    if (!json_is_object(o))
        return err_set(err, ERR_INVALID, "run", "must be an object");
    if (read_state(o, r, err) < 0 ||
        run_document_read_text(o, "node", r->node, sizeof r->node, err) < 0 ||
        run_node_check(r->node, err) < 0 ||
        run_document_read_text(o, "label", r->label, sizeof r->label, err) < 0 ||
        run_label_check(r->label, err) < 0 ||
        run_document_read_text(o, "method", r->method, sizeof r->method, err) < 0 ||
        run_method_check(r->method, err) < 0)
        return -1;
    return run_document_read_times(o, r, err) < 0 || run_document_read_phases(o, r, err) < 0 ||
                   read_error(o, r, err) < 0 || run_document_read_spec(o, r, err) < 0 ||
                   read_plan(o, r, err) < 0
               ? -1
               : read_conditions(o, w, err);
}

// ---- the machine --------------------------------------------------------------------------------

static int read_facts(const struct json *o, const char *member, char **kept, char hash[65],
                      struct err *err)
{
    CLEANUP_MEM struct facts *f = calloc(1, sizeof *f);
    struct buf text = BUF_INIT;
    if (f == NULL)
        return no_memory(err);
    if (facts_from_json(f, json_get(o, member), err) < 0)
        return err_prefix(err, "%s", member);
    char told[65];
    memcpy(told, f->hash, sizeof told);
    facts_seal(f);
    if (strcmp(told, f->hash) != 0)
        return err_set(err, ERR_INVALID, member, "its hash is not that of its facts");
    struct jsonw w = jsonw_to(&text);
    facts_write_json(f, &w, NULL);
    *kept = buf_steal(&text);
    memcpy(hash, f->hash, sizeof f->hash);
    return *kept == NULL ? no_memory(err) : 0;
}

static int read_fingerprint(const struct json *object, struct run_document *w, struct err *err)
{
    const struct json *o = json_get(object, "fingerprint");
    if (o == NULL || json_is_null(o))
        return 0;
    return read_facts(o, "hardware", &w->class_json, w->run.class_hash, err) < 0 ||
                   read_facts(o, "config", &w->config_json, w->run.config_hash, err) < 0
               ? err_prefix(err, "fingerprint")
               : 0;
}

static int run_document_read_topology(const struct json *object, struct run_document *w,
                                      struct err *err)
{
    const struct json *o = json_get(object, "topology");
    if (o == NULL || json_is_null(o))
        return 0;
    char *hash = w->run.topology_hash, found[65];
    if (!json_is_object(o))
        return err_set(err, ERR_INVALID, "topology", "must be an object or null");
    if (run_document_read_text(o, "hash", hash, sizeof w->run.topology_hash, err) < 0)
        return err_prefix(err, "topology");
    const struct json *text = json_get(o, "xml");
    const char *xml = json_text(text);
    if (text == NULL || json_is_null(text))
        return 0;
    if (xml == NULL)
        return err_set(err, ERR_INVALID, "topology", "xml must be a text or null");
    if (strlen(xml) > TOPOLOGY_XML_MAX)
        return err_set(err, ERR_INVALID, "topology", "takes more than %d KiB",
                       TOPOLOGY_XML_MAX >> 10);
    text_hash(xml, found);
    if (strcmp(hash, found) != 0)
        return err_set(err, ERR_INVALID, "topology", "its hash is not that of its XML");
    w->topology_xml = strdup(xml);
    return w->topology_xml == NULL ? no_memory(err) : 0;
}

// ---- the numbers --------------------------------------------------------------------------------

// How many elements the list has; -1 if it is none, or has more than `most`.
static int count_list(const struct json *object, const char *member, int most, struct err *err)
{
    const struct json *list = json_get(object, member);
    if (!json_is_array(list) || json_count(list) > most)
        return err_set(err, ERR_INVALID, member, "must be an array of at most %d", most);
    return json_count(list);
}

static int run_document_read_matrices(const struct json *object, struct run_document *w,
                                      struct err *err)
{
    int n = count_list(object, "matrices", MATRICES_MAX, err);
    if (n < 0)
        return -1;
    w->matrices = calloc((size_t)n + 1, sizeof *w->matrices);
    if (w->matrices == NULL)
        return no_memory(err);
    const struct json *m = json_first(json_get(object, "matrices"));
    for (; m != NULL; m = json_next(m)) {
        if (matrix_from_json(&w->matrices[w->n_matrices], m, err) < 0)
            return err_prefix(err, "matrices[%d]", w->n_matrices);
        w->n_matrices++;
        if (import_check_cells(matrices_cells(w->matrices, w->n_matrices), err) < 0)
            return -1;
    }
    return 0;
}

static int read_ranks(const struct json *object, struct run_document *w, struct err *err)
{
    int n = count_list(object, "ranks", RANKS_MAX, err);
    if (n < 0)
        return -1;
    w->ranks = calloc((size_t)n + 1, sizeof *w->ranks);
    if (w->ranks == NULL)
        return no_memory(err);
    const struct json *r = json_first(json_get(object, "ranks"));
    for (; r != NULL; r = json_next(r), w->n_ranks++)
        if (rank_from_json(&w->ranks[w->n_ranks], r, err) < 0)
            return err_prefix(err, "ranks[%d]", w->n_ranks);
    return 0;
}

static int read_log(const struct json *object, struct run_document *w, struct err *err)
{
    const struct json *log = json_get(object, "log");
    const char *text = json_text(log);
    if (log == NULL || json_is_null(log))
        return 0;
    if (text == NULL)
        return err_set(err, ERR_INVALID, "log", "must be a text or null");
    w->log = strdup(text);
    return w->log == NULL ? no_memory(err) : 0;
}

void run_document_count(struct run_document *w)
{
    w->run.n_ranks = w->n_ranks;
    w->run.n_cells = matrices_cells(w->matrices, w->n_matrices);
}

int run_document_from_json(struct run_document *out, const struct json *object, struct err *err)
{
    struct run_document got CLEANUP(run_document_fini) = {0};
    const char *format = json_get_text(object, "format", "");
    if (strcmp(format, RUN_DOCUMENT_FORMAT) != 0)
        return err_set(err, ERR_INVALID, "format", "must be \"%s\"", RUN_DOCUMENT_FORMAT);
    if (json_get_i64(object, "version", 0) != RUN_DOCUMENT_VERSION)
        return err_set(err, ERR_INVALID, "version",
                       "must be %d; another version of numaprobe wrote this", RUN_DOCUMENT_VERSION);
    if (run_document_read_run(json_get(object, "run"), &got, err) < 0 ||
        read_fingerprint(object, &got, err) < 0 ||
        run_document_read_topology(object, &got, err) < 0 ||
        run_document_read_matrices(object, &got, err) < 0 || read_ranks(object, &got, err) < 0 ||
        read_log(object, &got, err) < 0 || run_document_check(&got, err) < 0)
        return -1;
    run_document_count(&got);
    *out = got;
    got = (struct run_document){0};
    return 0;
}

// ---- checks -------------------------------------------------------------------------------------

// A bandwidth is 0 where nothing was moved: the idle level of a curve under load.
static int check_values(const struct matrix *m, struct err *err)
{
    bool idle = strcmp(m->quantity, "bandwidth") == 0 && strcmp(m->col.name, "load") == 0;
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            struct err why = {0};
            // Of NaN both are false.
            if (matrix_at(m, r, c)->v[CELL_MEDIAN] < 0 ||
                (matrix_at(m, r, c)->v[CELL_MEDIAN] == 0 && !(idle && m->col.values[c] == 0)))
                return err_set(err, ERR_INVALID, "matrices",
                               "matrix %s: the median in row %d, column %d must be above 0",
                               m->name, r, c);
            if (cell_check(matrix_at(m, r, c), &why) < 0)
                return err_set(err, ERR_INVALID, "matrices",
                               "matrix %s: %s in row %d, column %d %s", m->name, why.member, r, c,
                               why.text);
        }
    return 0;
}

static int check_matrices(const struct run_document *w, struct err *err)
{
    for (int i = 0; i < w->n_matrices; i++) {
        const struct matrix *m = &w->matrices[i];
        for (int k = 0; k < i; k++)
            if (strcmp(m->name, w->matrices[k].name) == 0)
                return err_set(err, ERR_INVALID, "matrices", "matrix \"%s\" is there twice",
                               m->name);
        if (shape_check_alone(m, &w->run.spec, err) < 0 || check_values(m, err) < 0)
            return -1;
        if (w->run.state == RUN_SUCCEEDED && !shape_measured(m, &w->run.spec))
            return err_set(err, ERR_INVALID, "matrices",
                           "matrix %s of a run that succeeded lacks medians", m->name);
    }
    if (w->run.state == RUN_SUCCEEDED && w->n_matrices == 0)
        return err_set(err, ERR_INVALID, "matrices", "a run that succeeded has at least one");
    return 0;
}

int run_document_check(const struct run_document *w, struct err *err)
{
    for (int i = 0; i < w->n_ranks; i++)
        for (int k = 0; k < i; k++)
            if (w->ranks[i].rank == w->ranks[k].rank)
                return err_set(err, ERR_INVALID, "ranks", "rank %" PRId64 " is there twice",
                               w->ranks[i].rank);
    return check_matrices(w, err);
}

int run_document_key(const struct run_document *w, char key[static 65], struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT, first = BUF_INIT;
    struct jsonw j = jsonw_to(&text);
    jsonw_object(&j, NULL);
    jsonw_text(&j, "node", w->run.node);
    jsonw_time(&j, "measured", w->undated ? 0 : w->run.measured_ms);
    jsonw_text(&j, "state", run_state_names[w->run.state]);
    jsonw_text(&j, "method", w->run.method);
    jsonw_text(&j, "benchmark", benchmarks[w->run.spec.benchmark].name);
    jsonw_array(&j, "matrices");
    for (int i = 0; i < w->n_matrices; i++)
        matrix_write_json(&w->matrices[i], &j, NULL, false);
    jsonw_end(&j);
    jsonw_array(&j, "ranks");
    for (int i = 0; i < w->n_ranks; i++)
        rank_write_json(&w->ranks[i], &j, NULL);
    jsonw_end(&j);
    jsonw_end(&j);
    earlier_text(buf_text(&text), &first);
    buf_needs(&first, &text);
    if (!buf_ok(&first))
        return no_memory(err);
    text_hash(buf_text(&first), key);
    return 0;
}
