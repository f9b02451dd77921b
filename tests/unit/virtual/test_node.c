// SPDX-License-Identifier: Apache-2.0
// What a virtual node responds is what readers of a real node read: pages in order and complete,
// runs that begin and end, and each fault as it is described.
#include "tests/unit/tap.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "virtual/node.h"

enum { NODES = 20, ROUNDS = 5, NODE = 7, RUN_MS = 1000 };
static const int64_t now = INT64_C(1790000000000);

static struct virtual_fleet fleet;

static void begin(void)
{
    struct world_options o = {0};
    param_defaults(&world_options, &o);
    o.nodes = NODES;
    o.runs = ROUNDS;
    o.now_ms = now;
    fleet = (struct virtual_fleet){.world = world_new(&o, NULL), .run_ms = RUN_MS};
    fleet.nodes = calloc(NODES, sizeof *fleet.nodes);
    CHECK(fleet.world && fleet.nodes, "a fleet");
}

static void reply_free(struct virtual_reply *r)
{
    buf_free(&r->body);
}

static struct virtual_reply call(const char *method, const char *path, const char *query,
                                 const char *body, int64_t wait_s, enum fault_kind kind, int64_t at)
{
    struct virtual_request q = {.body = body, .body_len = strlen(body), .wait_s = wait_s};
    struct virtual_reply r;
    snprintf(q.method, sizeof q.method, "%s", method);
    snprintf(q.path, sizeof q.path, "%s", path);
    snprintf(q.query, sizeof q.query, "%s", query);
    virtual_respond(&fleet, NODE, &q, kind, 5, at, &r);
    return r;
}

static struct virtual_reply get(const char *path, const char *query, enum fault_kind kind)
{
    return call("GET", path, query, "", 0, kind, now);
}

static int page(const char *path, const char *query, enum fault_kind kind, struct summary_page *p,
                struct err *err)
{
    struct virtual_reply r CLEANUP(reply_free) = get(path, query, kind);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&r.body), r.body.len, err);
    return r.status == 200 && j ? summary_page_read(j, p, err) : -1;
}

static void pages(void)
{
    struct summary_page a CLEANUP(summary_page_fini) = {0}, b CLEANUP(summary_page_fini) = {0},
                          each CLEANUP(summary_page_fini) = {0},
                          list CLEANUP(summary_page_fini) = {0};
    struct err err = {0};
    int newest_first = 0;
    CHECK_INT(page("/v1/feed", "form=summary&limit=7", FAULT_NONE, &a, &err), 0, "a feed %s",
              err.text);
    CHECK(a.n_runs == 7 && a.more && a.next == 7 && a.last == 2 * ROUNDS, "its first page");
    CHECK_INT(page("/v1/feed", "after=7&form=summary", FAULT_NONE, &b, &err), 0, "its second");
    CHECK(b.n_runs == 3 && !b.more && b.runs[0].seq == 8 && b.runs[2].finished_ms <= now,
          "has the rest");
    CHECK_STR(b.node, "node08", "its name");
    CHECK(b.runs[0].layout >= 0 && b.layouts[b.runs[0].layout].n > 5, "with metrics");
    CHECK_INT(page("/v1/runs", "form=summary&per_benchmark=2", FAULT_NONE, &each, &err), 0,
              "the newest of each benchmark");
    CHECK_INT(each.n_runs, 4, "two of each");
    CHECK_INT(page("/v1/runs", "form=summary&benchmark=latency&limit=3&cursor=b9", FAULT_NONE,
                   &list, &err),
              0, "a list");
    for (int i = 0; i < list.n_runs; i++)
        newest_first += list.runs[i].id == 7 - 2 * i;
    CHECK(list.n_runs == 3 && newest_first == 3 && list.more, "newest first, before its cursor");
}

static const char *phase_of_run(int number)
{
    static char phase[32];
    char path[40];
    snprintf(path, sizeof path, "/v1/runs/%d", number);
    struct virtual_reply r CLEANUP(reply_free) = call("GET", path, "", "", 0, FAULT_NONE, now);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&r.body), r.body.len, NULL);
    snprintf(phase, sizeof phase, "%s", json_get_text(json_get(j, "progress"), "phase", ""));
    return phase;
}

static void requested(void)
{
    struct virtual_reply r CLEANUP(reply_free) =
        call("POST", "/v1/runs", "", "{\"benchmark\":\"bandwidth\"}", 0, FAULT_NONE, now);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&r.body), r.body.len, NULL);
    CHECK_INT(r.status, 202, "a run is accepted");
    CHECK_STR(json_get_text(j, "state", ""), "running", "it runs");
    CHECK_STR(phase_of_run(11), "start", "no one waits for its end");
    struct virtual_reply wait = call("GET", "/v1/runs/11", "", "", 30, FAULT_NONE, now);
    CHECK(wait.until_ms == now + RUN_MS / 2 && !wait.body.len, "who waits for it waits");
    struct virtual_reply late = call("GET", "/v1/runs/11", "", "", 30, FAULT_NONE, now + 600);
    CHECK(late.until_ms == now + RUN_MS && !late.body.len, "to its end, with looks before it");
    CHECK_STR(phase_of_run(11), "measure", "and all know that it is followed");
    struct virtual_reply feed =
        call("GET", "/v1/feed", "form=summary&after=10", "", 30, FAULT_NONE, now);
    CHECK(feed.until_ms == now + RUN_MS && !feed.body.len, "so does the feed");
    struct virtual_reply done CLEANUP(reply_free) =
        call("GET", "/v1/runs/11", "", "", 30, FAULT_NONE, now + RUN_MS);
    CLEANUP_JSON struct json *d = json_parse(buf_text(&done.body), done.body.len, NULL);
    CHECK_STR(json_get_text(d, "state", ""), "succeeded", "it ends");
    CHECK_INT(json_get_i64(d, "seq", 0), 11, "with its place in the feed");
    struct virtual_reply busy CLEANUP(reply_free) =
        call("POST", "/v1/runs", "", "{\"benchmark\":\"latency\"}", 0, FAULT_BUSY, now);
    CHECK(busy.status == 409 && busy.retry_after_s == 5 &&
              strstr(buf_text(&busy.body), "batch_job"),
          "a busy node refuses");
    struct virtual_reply wrong CLEANUP(reply_free) =
        call("POST", "/v1/runs", "", "{\"benchmark\":\"tea\"}", 0, FAULT_NONE, now);
    CHECK_INT(wrong.status, 422, "a benchmark that it does not have");
}

// A label that a run gets later has a place in the feed, and what finishes then comes after it.
static void labels(void)
{
    struct summary_page p CLEANUP(summary_page_fini) = {0}, all CLEANUP(summary_page_fini) = {0};
    struct err err = {0};
    struct virtual_reply set CLEANUP(reply_free) =
        call("PUT", "/v1/runs/3/label", "", "{\"label\":\"kept\"}", 0, FAULT_NONE, now);
    CHECK(set.status == 200 && strstr(buf_text(&set.body), "\"label\":\"kept\""), "a label is set");
    CHECK_INT(page("/v1/feed", "form=summary&after=10", FAULT_NONE, &p, &err), 0, "the feed %s",
              err.text);
    CHECK(p.n_runs == 0 && p.n_notes == 1 && p.next == 11 && p.last == 11 && p.notes[0].seq == 11 &&
              p.notes[0].run_seq == 3 && p.notes[0].run == 3 &&
              strcmp(p.notes[0].label, "kept") == 0,
          "has a note");
    struct virtual_reply done CLEANUP(reply_free) =
        call("GET", "/v1/runs/11/export", "", "", 0, FAULT_NONE, now + RUN_MS);
    CHECK(strstr(buf_text(&done.body), "\"seq\":12"), "the run that ends then is behind it");
    CHECK_INT(page("/v1/feed", "form=summary&limit=100", FAULT_NONE, &all, &err), 0, "all of it");
    CHECK(all.n_runs == 10 && all.n_notes == 1 && strcmp(all.runs[2].label, "kept") == 0,
          "the run has the label wherever it is named");
    struct virtual_reply wrong CLEANUP(reply_free) =
        call("PUT", "/v1/runs/3/label", "", "{\"label\":7}", 0, FAULT_NONE, now);
    CHECK_INT(wrong.status, 422, "what is no label");
    struct virtual_reply none CLEANUP(reply_free) =
        call("PUT", "/v1/runs/11/label", "", "{\"label\":\"x\"}", 0, FAULT_NONE, now);
    CHECK_INT(none.status, 404, "a run that has not finished");
}

static void faults(void)
{
    struct err err = {0};
    struct summary_page other CLEANUP(summary_page_fini) = {0},
                              gaps CLEANUP(summary_page_fini) = {0},
                              newer CLEANUP(summary_page_fini) = {0}, bad = {0};
    CHECK_INT(page("/v1/feed", "form=summary", FAULT_NAME, &other, &err), 0, "another node");
    CHECK_STR(other.node, "node09", "says so");
    CHECK_INT(page("/v1/feed", "form=summary", FAULT_GAPS, &gaps, &err), 0, "gaps");
    CHECK(gaps.runs[0].seq == 3 && gaps.runs[1].seq == 6, "in the numbers");
    CHECK_INT(page("/v1/feed", "form=summary", FAULT_NEWER, &newer, &err), 0,
              "a newer node is read");
    CHECK_STR(newer.version, "99.0.0", "by its version");
    CHECK(page("/v1/feed", "form=summary", FAULT_TEXT, &bad, &err) < 0, "hostile texts are not");
    CHECK(page("/v1/feed", "form=summary", FAULT_OLDER, &bad, &err) < 0, "nor an older node's");
    struct virtual_reply none CLEANUP(reply_free) =
        get("/v1/feed", "form=summary", FAULT_UNAVAILABLE);
    CHECK(none.status == 503 && none.retry_after_s == 5, "unavailable");
    int read = 0;
    for (int node = 0; node < NODES; node++) {
        struct virtual_request q = {
            .method = "GET", .path = "/v1/feed", .query = "form=summary", .body = ""};
        struct virtual_reply r CLEANUP(reply_free);
        virtual_respond(&fleet, node, &q, FAULT_JSON, 0, now, &r);
        CLEANUP_JSON struct json *j = json_parse(buf_text(&r.body), r.body.len, NULL);
        read += j && summary_page_read(j, &bad, NULL) == 0;
    }
    CHECK_INT(read, 0, "no hostile JSON is a page");
}

int main(void)
{
    begin();
    pages();
    requested();
    labels();
    faults();
    virtual_fleet_free(&fleet);
    return tap_done();
}
