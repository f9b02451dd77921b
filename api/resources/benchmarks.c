// SPDX-License-Identifier: Apache-2.0
// What can be requested, and whether it would be admitted now.
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "http/access/access.h"
#include "model/spec_request.h"

int benchmarks_get(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    spec_write_catalogue(&w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

// ?size=1-1024&ranks=one-per-numa: parameters of a run by their names.
static int spec_from_query(struct spec *s, const struct request *q, struct err *err)
{
    const char *name = request_query(q, "benchmark");
    const struct benchmark *b = benchmark_find(name ? name : "latency");
    if (!b)
        return err_set(err, ERR_INVALID, "benchmark",
                       "\"%.40s\" is not a benchmark (GET /v1/benchmarks lists them)", name);
    spec_init(s, (enum benchmark_id)(b - benchmarks));
    for (int i = 0; i < q->n_query; i++) {
        const struct param *p = param_find(&spec_common, q->query[i].name);
        if (!p)
            p = param_find(&b->params, q->query[i].name);
        if (!p && q->query[i].value != name)
            return err_set(err, ERR_INVALID, q->query[i].name,
                           "is not a parameter of benchmark \"%s\" (GET /v1/benchmarks lists them)",
                           b->name);
        if (p && param_set_query(p, s, q->query[i].value, err) < 0)
            return -1;
    }
    return spec_check(s, err) < 0 ? -1 : spec_check_request(s, err);
}

int availability_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct spec spec;
    struct admission now;
    const bool named = access_sees_names(q);
    int64_t waiting = 0;
    uint64_t begin_ns = clock_mono_ns();
    struct batch_place job CLEANUP(batch_place_fini) = {0};
    const struct batch_place *within = batch_place_find(&job, "", q->pid, q->uid) ? &job : NULL;
    if (spec_from_query(&spec, q, err) < 0 ||
        runner_available(api_of(q)->runner, &spec, within, &now, err) < 0)
        return -1;
    double took_ms = (double)(clock_mono_ns() - begin_ns) / 1e6;
    if (store_queue_length(api_of(q)->store, &waiting, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "available", now.n == 0 && waiting < RUNNER_QUEUE_MAX);
    jsonw_bool(&w, "busy", runner_busy(api_of(q)->runner));
    jsonw_i64(&w, "queued", waiting);
    admission_write_json(now.list, now.n, named, &w, "blockers");
    admission_write_json(now.warnings, now.n_warnings, named, &w, "warnings");
    jsonw_array(&w, "notes");
    for (int i = 0; i < now.n_notes; i++)
        jsonw_text(&w, NULL, now.notes[i]);
    jsonw_end(&w);
    if (now.retry_after_s)
        jsonw_i64(&w, "retry_after_s", now.retry_after_s);
    else
        jsonw_null(&w, "retry_after_s");
    jsonw_fixed(&w, "took_ms", took_ms, 3);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}
