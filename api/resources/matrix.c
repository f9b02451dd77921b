// SPDX-License-Identifier: Apache-2.0
// The measured matrices in four forms: whole (JSON), for spreadsheets (CSV), for streams (NDJSON),
// one as a picture (SVG).
#include <string.h>

#include "analysis/plot/plot.h"
#include "api/resources/export.h"
#include "api/resources/measured.h"
#include "api/resources/resources.h"
#include "api/services/run_topology.h"
#include "base/cleanup.h"
#include "base/jsonw.h"

int matrix_json(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(measured_fini) struct measured m = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    bool distributions = false;
    if (request_query_bool(q, "distributions", &distributions, err) < 0 ||
        measured_load(q, &m, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "run", q->arg);
    jsonw_text(&w, "state", run_state_names[m.run.state]);
    jsonw_text(&w, "method", *m.run.method ? m.run.method : NULL);
    jsonw_array(&w, "matrices");
    for (int i = 0; i < m.n; i++)
        matrix_write_json(&m.list[i], &w, NULL, distributions);
    jsonw_end(&w);
    if (ranks_write(api_of(q)->store, q->arg, &w, err) < 0)
        return -1;
    jsonw_end(&w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

int matrix_csv(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(measured_fini) struct measured m = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (measured_load(q, &m, err) < 0)
        return -1;
    matrices_write_csv(m.list, m.n, &body);
    r->store = true;
    return reply_text(r, "text/csv; charset=utf-8; header=present", &body, err);
}

int matrix_ndjson(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(measured_fini) struct measured m = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (measured_load(q, &m, err) < 0)
        return -1;
    for (int i = 0; i < m.n; i++)
        matrix_write_ndjson(&m.list[i], &body);
    r->store = true;
    return reply_text(r, "application/x-ndjson", &body, err);
}

int matrix_svg(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(measured_fini) struct measured m = {0};
    CLEANUP_MEM struct rank_info *ranks = NULL;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct plot p = {.run = &m.run};
    if (measured_load(q, &m, err) < 0 ||
        store_ranks_get(api_of(q)->store, q->arg, &ranks, &p.n_ranks, err) < 0)
        return -1;
    p.ranks = ranks;
    const struct topology *topology;
    if (run_topology(api_of(q), &m.run, &topology, err) < 0)
        return -1;
    plot_marks_from(&p, topology);
    if (plot_choose(&p, m.list, m.n, request_query(q, "matrix"), err) < 0 ||
        plot_write_svg(&p, &body, err) < 0)
        return -1;
    r->store = true;
    return reply_text(r, "image/svg+xml", &body, err);
}

// In order of our preference. Some browsers name SVG whenever they open an address: a request for a
// page gets the whole.
enum { MATRIX_FORMS = 6 };
static const char *const matrix_types[MATRIX_FORMS] = {
    "application/json",   "text/csv",  "application/x-ndjson",
    "application/ndjson", "text/html", "image/svg+xml",
};
static handler_fn *const matrix_handlers[MATRIX_FORMS] = {
    matrix_json, matrix_csv, matrix_ndjson, matrix_ndjson, matrix_json, matrix_svg,
};

// Each form by the first of its types, which is the one that it comes as.
static int matrix_refuse(struct err *err)
{
    const char *forms[MATRIX_FORMS];
    int n = 0;
    for (int i = 0; i < MATRIX_FORMS; i++) {
        int first = 0;
        while (matrix_handlers[first] != matrix_handlers[i])
            first++;
        if (first == i)
            forms[n++] = matrix_types[i];
    }
    return request_refuse_types(forms, n, err);
}

int matrix_get(struct request *q, struct reply *r, struct err *err)
{
    int form = request_accepts(q, matrix_types, MATRIX_FORMS);
    return form < 0 ? matrix_refuse(err) : matrix_handlers[form](q, r, err);
}
