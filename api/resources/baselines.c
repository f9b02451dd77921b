// SPDX-License-Identifier: Apache-2.0
// Baselines: runs under a name that others are checked against.
#include <stdlib.h>
#include <string.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/results/reference.h"

static int write_baseline(const struct api_services *api, const struct baseline *b, struct jsonw *w,
                          struct err *err)
{
    struct run run CLEANUP(run_fini) = {0};
    if (store_run_get(api->store, b->runs[0], &run, err) < 0)
        return -1;
    jsonw_object(w, NULL);
    jsonw_text(w, "name", b->name);
    jsonw_time(w, "created", b->created_ms);
    jsonw_text(w, "benchmark", run_benchmark(&run));
    jsonw_text(w, "node", run.node);
    jsonw_array(w, "runs");
    for (int i = 0; i < b->n; i++)
        jsonw_i64(w, NULL, b->runs[i]);
    jsonw_end(w);
    jsonw_end(w);
    return 0;
}

int baselines_list(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_MEM struct baseline *list = NULL;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    int n;
    if (store_baseline_list(api_of(q)->store, &list, &n, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    jsonw_array(&w, "baselines");
    for (int i = 0; i < n; i++)
        if (write_baseline(api_of(q), &list[i], &w, err) < 0)
            return -1;
    jsonw_end(&w);
    jsonw_end(&w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

int baselines_show(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct baseline b;
    if (store_baseline_get(api_of(q)->store, q->name, &b, err) < 0 ||
        write_baseline(api_of(q), &b, &w, err) < 0)
        return -1;
    r->store = true;
    return reply_json(r, 200, &body, err);
}

static int baselines_add_run(struct baseline *b, const struct json *v, const char *member,
                             struct err *err)
{
    int64_t id;
    if (!json_i64(v, &id) || id < 1)
        return err_set(err, ERR_INVALID, member, "must be the number of a run");
    int at = b->n;
    while (at > 0 && b->runs[at - 1] >= id)
        at--;
    if (at < b->n && b->runs[at] == id)
        return err_set(err, ERR_INVALID, member, "has run %lld twice", (long long)id);
    if (b->n == BASELINE_RUNS_MAX)
        return err_set(err, ERR_INVALID, member, "must be at most %d runs", BASELINE_RUNS_MAX);
    memmove(&b->runs[at + 1], &b->runs[at], (size_t)(b->n++ - at) * sizeof *b->runs);
    b->runs[at] = id;
    return 0;
}

static int baselines_read_runs(const struct json *root, struct baseline *b, struct err *err)
{
    const struct json *one = json_get(root, "run"), *several = json_get(root, "runs");
    for (const struct json *m = json_first(root); m; m = json_next(m))
        if (m != one && m != several)
            return err_set(err, ERR_INVALID, json_name(m), "is unknown; allowed are run and runs");
    if (!json_is_object(root) || !one == !several)
        return err_set(err, ERR_INVALID, "runs",
                       "must be given: {\"runs\":[3,4]}, or {\"run\":3} for one");
    if (one)
        return baselines_add_run(b, one, "run", err);
    if (!json_is_array(several) || !json_count(several))
        return err_set(err, ERR_INVALID, "runs", "must be a list of runs such as [3,4]");
    for (const struct json *v = json_first(several); v; v = json_next(v))
        if (baselines_add_run(b, v, "runs", err) < 0)
            return -1;
    return 0;
}

int baselines_put(struct request *q, struct reply *r, struct err *err)
{
    struct baseline b = {0};
    CLEANUP_JSON struct json *root = request_json(q, err);
    if (!root || baselines_read_runs(root, &b, err) < 0 || baseline_name_check(q->name, err) < 0)
        return -1;
    memcpy(b.name, q->name, sizeof b.name);
    // Runs that cannot be put together are found now, not when a check fails at night.
    if (reference_check(api_of(q)->store, &b, err) < 0 ||
        store_has_room(api_of(q)->store, err) < 0 ||
        store_baseline_put(api_of(q)->store, &b, err) < 0)
        return -1;
    return baselines_show(q, r, err);
}

int baselines_delete(struct request *q, struct reply *r, struct err *err)
{
    if (store_baseline_delete(api_of(q)->store, q->name, err) < 0)
        return -1;
    r->status = 204;
    return 0;
}
