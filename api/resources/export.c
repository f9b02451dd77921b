// SPDX-License-Identifier: Apache-2.0
// Parts are written in a fixed order from single statements on the store, so that two exports
// of one run are equal byte for byte.
#include "api/resources/export.h"

#include <inttypes.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "formats/run_document.h"

static int write_facts(struct store *s, const char *hash, struct jsonw *w, const char *key,
                       struct err *err)
{
    CLEANUP_MEM char *json = NULL;
    if (store_fingerprint_json(s, hash, &json, err) < 0)
        return -1;
    jsonw_raw(w, key, json);
    return 0;
}

static int write_fingerprint(struct store *s, const struct run *run, struct jsonw *w,
                             struct err *err)
{
    if (!*run->class_hash || !*run->config_hash) {
        jsonw_null(w, "fingerprint");
        return 0;
    }
    jsonw_object(w, "fingerprint");
    if (write_facts(s, run->class_hash, w, "hardware", err) < 0 ||
        write_facts(s, run->config_hash, w, "config", err) < 0)
        return -1;
    jsonw_end(w);
    return 0;
}

static int write_topology(struct store *s, const struct run *run, bool with_xml, struct jsonw *w,
                          struct err *err)
{
    CLEANUP_MEM char *xml = NULL;
    if (!*run->topology_hash) {
        jsonw_null(w, "topology");
        return 0;
    }
    if (with_xml && store_topology_xml(s, run->id, &xml, err) < 0)
        return -1;
    jsonw_object(w, "topology");
    jsonw_text(w, "hash", run->topology_hash);
    jsonw_text(w, "xml", xml);
    jsonw_end(w);
    return 0;
}

static int write_matrices(struct store *s, int64_t id, bool distributions, struct jsonw *w,
                          struct err *err)
{
    struct matrix *list = NULL;
    int n = 0;
    if (store_matrices_get(s, id, &list, &n, err) < 0)
        return -1;
    jsonw_array(w, "matrices");
    for (int i = 0; i < n; i++)
        matrix_write_json(&list[i], w, NULL, distributions);
    jsonw_end(w);
    store_matrices_free(list, n);
    return 0;
}

int ranks_write(struct store *s, int64_t id, struct jsonw *w, struct err *err)
{
    CLEANUP_MEM struct rank_info *ranks = NULL;
    int n = 0;
    if (store_ranks_get(s, id, &ranks, &n, err) < 0)
        return -1;
    jsonw_array(w, "ranks");
    for (int i = 0; i < n; i++)
        rank_write_json(&ranks[i], w, NULL);
    jsonw_end(w);
    return 0;
}

static int write_log(struct store *s, int64_t id, struct jsonw *w, struct err *err)
{
    CLEANUP_MEM char *text = NULL;
    if (store_log_get(s, id, &text, err) < 0)
        return -1;
    jsonw_text(w, "log", *text ? text : NULL);
    return 0;
}

int run_document_write(struct store *s, const struct run *run, enum run_document_parts parts,
                       struct jsonw *w, const char *key, struct err *err)
{
    if (!run_state_final(run->state))
        return err_set(err, ERR_CONFLICT, "state", "run %" PRId64 " is %s: it has not finished yet",
                       run->id, run_state_names[run->state]);
    if (run_check_parts(run, err) < 0) // without its conditions it would look undisturbed
        return -1;
    jsonw_object(w, key);
    jsonw_text(w, "format", RUN_DOCUMENT_FORMAT);
    jsonw_i64(w, "version", RUN_DOCUMENT_VERSION);
    run_write_json(run, w, "run");
    if (write_fingerprint(s, run, w, err) < 0 ||
        write_topology(s, run, parts & RUN_DOCUMENT_TOPOLOGY, w, err) < 0 ||
        write_matrices(s, run->id, parts & RUN_DOCUMENT_DISTRIBUTIONS, w, err) < 0 ||
        ranks_write(s, run->id, w, err) < 0)
        return -1;
    if (!(parts & RUN_DOCUMENT_LOG))
        jsonw_null(w, "log");
    else if (write_log(s, run->id, w, err) < 0)
        return -1;
    jsonw_end(w);
    return buf_ok(w->out) ? 0
                          : err_set(err, ERR_NO_MEMORY, "", "no memory for run %" PRId64, run->id);
}

int run_export(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(run_fini) struct run run = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    bool topology = true, log = true, distributions = true;
    if (request_query_bool(q, "topology", &topology, err) < 0 ||
        request_query_bool(q, "log", &log, err) < 0 ||
        request_query_bool(q, "distributions", &distributions, err) < 0 ||
        run_find(api_of(q), q->arg, &run, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    unsigned parts = (topology ? RUN_DOCUMENT_TOPOLOGY : 0u) | (log ? RUN_DOCUMENT_LOG : 0u) |
                     (distributions ? RUN_DOCUMENT_DISTRIBUTIONS : 0u);
    if (run_document_write(api_of(q)->store, &run, (enum run_document_parts)parts, &w, NULL, err) <
        0)
        return -1;
    r->store = true;
    return reply_json(r, 200, &body, err);
}
