// SPDX-License-Identifier: Apache-2.0
// Whole requests against every route, with a store, a runner whose loop never turns, and all
// rights. An answer has a status of ours; a refusal is a problem document; a success is JSON where
// it says so.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "api/routes.h"
#include "api/services/run_bodies.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "http/access/access.h"
#include "http/access/tokens.h"
#include "http/messages/request_checks.h"
#include "http/server/dispatch.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message.h"

static struct {
    struct api_services api;
    struct http_service service;
    struct machine machine;
    struct tokens *tokens;
    int64_t kept; // the newest run that stays
} fixture;

static void see_newest(void *ctx, const struct run *r)
{
    *(int64_t *)ctx = r->id;
}

static int64_t newest(void)
{
    const struct run_filter f = {.state = -1, .limit = 1};
    int64_t id = 0;
    bool more;
    fuzz_hold(store_run_list(fixture.api.store, &f, see_newest, &id, &more, NULL) == 0);
    return id;
}

// So that the queue is never full and the store stays small.
static void forget_runs(void)
{
    for (int64_t id; (id = newest()) > fixture.kept;) {
        runner_cancel(fixture.api.runner, id, NULL);
        fuzz_hold(store_run_delete(fixture.api.store, id, NULL) == 0);
    }
}

static void keep_run(void)
{
    static const char table[] = "POST /v1/imports?node=node1\nHost: localhost\n"
                                "Content-Type: text/csv\n\n"
                                "size (MB),0,1\n1,10.5,10.25\n2,11.5,11.25\n4,12.5,12.25\n";
    struct message m;
    struct reply r = {0};
    fuzz_hold(message_read(&m, (const uint8_t *)table, sizeof table - 1));
    fuzz_hold(request_split(&m.q, NULL) == 0);
    m.q.service = &fixture.service;
    m.q.tokens = fixture.tokens;
    m.q.granted = SCOPE_ADMIN;
    dispatch(&m.q, &r);
    if (r.status / 100 != 2)
        fprintf(stderr, "%s\n", buf_text(&r.body));
    fuzz_hold(r.status / 100 == 2 && (fixture.kept = newest()) > 0);
    reply_fini(&r);
    message_fini(&m);
}

static void end_api(void)
{
    run_bodies_free(fixture.api.bodies);
    tokens_free(fixture.tokens);
    upkeep_free(fixture.api.upkeep);
    runner_free(fixture.api.runner);
    machine_fini(&fixture.machine);
    store_close(fixture.api.store);
    loop_free(fixture.api.loop);
}

void fuzz_api_begin(const char *dir)
{
    static char run_dir[300], tokens[300];
    static struct policy policy;
    static const struct store_limits limits;
    struct api_services *a = &fixture.api;
    struct err err = {0};
    snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    snprintf(tokens, sizeof tokens, "%s/tokens", dir);
    fuzz_hold(chmod(dir, 0711) == 0); // the ranks' account must reach it, or no run is taken
    policy_defaults(&policy);
    policy.strongest = POLICY_IGNORE;
    snprintf(policy.host_lock, sizeof policy.host_lock, "none");
    fuzz_hold(policy_finish(&policy, &err) == 0);
    const struct runner_config runner = {run_dir, NULL, &policy};
    log_init(LOG_LVL_ERROR, 0);
    setenv("NUMAPROBE_BENCH", "/bin/true", 1);
    a->loop = loop_new(&err);
    a->store = store_open(dir, &err);
    a->machine = &fixture.machine;
    fuzz_hold(a->loop && a->store && machine_read(&fixture.machine, "", &err) == 0);
    a->runner = runner_new(a->loop, a->store, a->machine, &runner, &err);
    a->upkeep = a->runner ? upkeep_new(a->loop, a->store, a->runner, &limits, &err) : NULL;
    fixture.tokens = tokens_open(tokens, &err);
    a->bodies = run_bodies_new(a->store, &err);
    if (!a->upkeep || !fixture.tokens || !a->bodies)
        fprintf(stderr, "%s\n", err.text);
    fuzz_hold(a->upkeep && fixture.tokens && a->bodies);
    fixture.service = (struct http_service){.routes = routes, .context = a};
    atexit(end_api);
    keep_run();
}

static void check_reply(const struct reply *r)
{
    if (r->kind != REPLY_WHOLE)
        return;
    fuzz_hold(r->status >= 200 && r->status < 600);
    if (r->file || !r->type)
        return;
    bool json = str_starts(r->type, "application/json") || str_starts(r->type, "application/prob");
    fuzz_hold(r->status < 400 || r->status == 503 || str_starts(r->type, "application/prob"));
    // A document of ours may be deeper and longer than what we take from strangers.
    size_t n;
    const char *body = reply_bytes(r, &n);
    if (json && n) {
        struct err err = {0};
        CLEANUP_JSON struct json *j = json_parse(body, n, &err);
        fuzz_hold(j != NULL);
    }
}

static void answer(struct request *q)
{
    struct err err = {0};
    struct route_args args = {0};
    const char *allow;
    struct reply r = {0};
    if (check_framing(q, &err) < 0 || request_split(q, &err) < 0)
        return;
    const struct route *route = route_find(routes, q->method, q->path, &args, &allow, NULL);
    q->body_max = route && route->body_max ? route->body_max : HTTP_BODY_MAX;
    q->body_types = route && route->body_types ? route->body_types : "application/json";
    if (check_source(q, &err) < 0 || access_identify(q, &err) < 0 || dispatch_allows(q, &err) < 0 ||
        check_body_headers(q, &err) < 0)
        return;
    dispatch(q, &r);
    check_reply(&r);
    reply_fini(&r);
    if (strcmp(q->method, "POST") == 0)
        forget_runs();
}

void fuzz_api(const uint8_t *data, size_t size)
{
    struct message m;
    bool kept;
    if (message_read(&m, data, size)) {
        m.q.service = &fixture.service;
        m.q.tokens = fixture.tokens;
        m.q.granted = SCOPE_ADMIN;
        answer(&m.q);
    }
    message_fini(&m);
    kept = newest() == fixture.kept;
    if (!kept) // it was deleted
        keep_run();
}
