// SPDX-License-Identifier: Apache-2.0
// One node of a campaign: its run is requested, followed to its end, and cancelled with the
// campaign. A request that may have reached the node is made again with the same key. One that
// certainly did not counts as that of a node that is not free.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "fleet/campaigns/parts.h"
#include "model/run.h"

enum {
    FOLLOW_S = 25,          // a node holds a request so long; then it is repeated
    FOLLOW_LEAST_MS = 1000, // between two of them, of a node that responds at once all the same
    PAUSE_MS = 5000,        // before a request is repeated
    AGAIN_MOST = 5,         // requests without a response that can be understood
    BUSY_S = 60,            // of a node that does not say when to come again
    BUSY_MOST_S = 6 * 3600, // whatever it says
    OVERTIME_S = 120,       // for the end of a run, beyond its time limit or its cancellation
    BODY_MEMORY = 8 << 20,  // of a response, read
};

enum probe_kind { PROBE_BEGINS, PROBE_FOLLOWS, PROBE_CANCELS };

struct probe_call {
    struct campaign *campaign;
    int round, node; // the next round may have other nodes
    enum probe_kind kind;
};

// ---- What became of it --------------------------------------------------------------------------

static void why_set(struct campaign_node *n, const char *why)
{
    free(n->why);
    n->why = *why ? strdup(why) : NULL;
}

void probe_ended(struct campaign *c, int node, enum probe_state state, double seconds,
                 const char *why)
{
    struct campaign_node *n = &c->states[node];
    probe_plan_end(&c->plan, node, state, seconds);
    n->probing = PROBING_NOT;
    n->ended_ms = clock_wall_ms();
    n->seconds = seconds > 0 ? seconds : (double)NAN;
    n->dirty = true;
    why_set(n, why);
    campaign_touch(c);
}

void probe_refused(struct campaign *c, int node, int64_t after_ms, const char *why)
{
    struct campaign_node *n = &c->states[node];
    if (c->over) {
        probe_ended(c, node, PROBE_SKIPPED, 0, "the campaign has ended");
        return;
    }
    n->probing = PROBING_NOT;
    n->dirty = true;
    why_set(n, why);
    int64_t now = campaigns_now(c->all);
    bool enough = probe_plan_refused(&c->plan, node, now, after_ms);
    n->ended_ms = enough ? now : c->plan.nodes[node].refused_ms;
    campaign_touch(c);
}

static void probe_pause(struct campaign *c, int node, int64_t until_ms)
{
    struct campaign_node *n = &c->states[node];
    n->probing = PROBING_PAUSES;
    n->due_ms = until_ms;
    campaign_touch(c);
}

// A run that has not ended by its deadline is given up.
static bool probe_overdue(struct campaign *c, int node)
{
    const struct campaign_node *n = &c->states[node];
    if (!n->deadline_ms || clock_mono_ms() <= n->deadline_ms)
        return false;
    if (n->ends)
        probe_ended(c, node, PROBE_SKIPPED, 0, "its run has not ended after it was cancelled");
    else
        probe_ended(c, node, PROBE_FAILED, 0, "the run has not ended within its time limit");
    return true;
}

// ---- Responses ----------------------------------------------------------------------------------

// Nothing of the request has reached a daemon.
static bool never_arrived(enum fetch_error e)
{
    static const bool never[FETCH_ERRORS] = {
        [FETCH_BAD_URL] = true,  [FETCH_NO_NAME] = true,       [FETCH_REFUSED] = true,
        [FETCH_NO_ROUTE] = true, [FETCH_DENIED] = true,        [FETCH_NO_CONNECTION] = true,
        [FETCH_TLS] = true,      [FETCH_TLS_UNTRUSTED] = true, [FETCH_TLS_NAME] = true,
        [FETCH_TLS_FILES] = true};
    return never[e];
}

static bool is_this_node(const char *sent, const char *name)
{
    size_t n = strlen(name), m = strlen(sent), shorter = n < m ? n : m;
    return strncmp(sent, name, shorter) == 0 &&
           (n == m || (n > m ? name[shorter] : sent[shorter]) == '.');
}

// Without an understandable response: once more, with the same key.
static void not_understood(struct campaign *c, int node, const char *why)
{
    if (++c->states[node].again < AGAIN_MOST)
        probe_pause(c, node, clock_mono_ms() + PAUSE_MS);
    else
        probe_ended(c, node, PROBE_FAILED, 0, why);
}

static void run_final(struct campaign *c, int node, const struct json *run, enum run_state state)
{
    const char *text = json_get_text(json_get(run, "error"), "text", "no reason given");
    double said = json_get_number(run, "seconds", 0), seconds = said <= PROBE_MOST_S ? said : 0;
    char why[CAMPAIGN_WHY];
    if (state == RUN_SUCCEEDED) {
        poller_soon(c->all->poller, c->nodes.names[node]);
        probe_ended(c, node, PROBE_DONE, seconds, "");
    } else if (c->states[node].ends) {
        probe_ended(c, node, PROBE_SKIPPED, seconds, "its run was cancelled with the campaign");
    } else {
        snprintf(why, sizeof why, "the run %s: %.120s", run_state_names[state], text);
        probe_ended(c, node, PROBE_FAILED, seconds, why);
    }
}

static void probe_follow(struct campaign *c, int node);
static void cancel_request(struct campaign *c, int node);

// The state of the run that was requested. One that is running is followed, not for ever.
static void run_received(struct campaign *c, int node, const struct json *run)
{
    struct campaign_node *n = &c->states[node];
    int state = run_state_find(json_get_text(run, "state", ""));
    int64_t id = json_get_i64(run, "id", 0), now = clock_mono_ms();
    int64_t limit_s = json_get_i64(json_get(run, "plan"), "timeout_s", PROBE_MOST_S);
    const char *name = json_get_text(run, "node", "");
    char why[CAMPAIGN_WHY];
    if (state < 0 || id <= 0 || (n->run && id != n->run)) {
        not_understood(c, node, "the response is no run: is it numaprobed?");
        return;
    }
    if (!is_this_node(name, c->nodes.names[node])) {
        snprintf(why, sizeof why, "another node responds: %.64s", name);
        probe_ended(c, node, PROBE_FAILED, 0, why);
        return;
    }
    n->again = 0;
    n->dirty |= n->run != id;
    n->run = id;
    if (run_state_final((enum run_state)state)) {
        run_final(c, node, run, (enum run_state)state);
        return;
    }
    bool starts = state == RUN_RUNNING && !n->ran;
    limit_s = limit_s > 0 && limit_s < PROBE_MOST_S ? limit_s : PROBE_MOST_S;
    n->ran |= starts;
    if (!n->deadline_ms || (starts && !n->ends))
        n->deadline_ms = now + 1000 * ((starts ? limit_s : PROBE_MOST_S) + OVERTIME_S);
    if (probe_overdue(c, node))
        return;
    if (now < n->followed_ms + FOLLOW_LEAST_MS)
        probe_pause(c, node, n->followed_ms + FOLLOW_LEAST_MS);
    else
        probe_follow(c, node);
    campaign_touch(c);
}

static void problem_received(struct campaign *c, int node, const struct fetch_response *r,
                             const struct json *problem)
{
    const char *type = json_get_text(problem, "type", ""), *slug = strrchr(type, '/');
    enum err_code code = err_find(slug ? slug + 1 : type);
    bool busy = code == ERR_BUSY || code == ERR_NO_MEMORY_NODE || fetch_response_busy(r);
    int64_t wait_s = r->retry_after_s > 0 ? r->retry_after_s : BUSY_S;
    const char *member = json_get_text(problem, "member", "");
    const char *detail = json_get_text(problem, "detail", "the response has no reason");
    char why[CAMPAIGN_WHY];
    // "is not a parameter of benchmark …" does not say which one. Some sentences begin with it.
    bool named = !*member || busy || str_starts(detail, member);
    snprintf(why, sizeof why, "%.40s%s%.*s", named ? "" : member, named ? "" : ": ",
             named ? 150 : 108, detail);
    if (c->states[node].run && busy && probe_overdue(c, node))
        return;
    if (c->states[node].run && busy) // no place for one more client that waits
        probe_pause(c, node, clock_mono_ms() + PAUSE_MS);
    else if (busy)
        probe_refused(c, node, 1000 * (wait_s < BUSY_MOST_S ? wait_s : BUSY_MOST_S), why);
    else
        probe_ended(c, node, PROBE_FAILED, 0, why);
}

static void response_received(struct campaign *c, int node, const struct fetch_response *r)
{
    struct campaign_node *n = &c->states[node];
    struct err err;
    if (r->error != FETCH_OK) {
        const char *why = fetch_error_info(r->error)->text;
        if (!n->run && never_arrived(r->error))
            probe_refused(c, node, c->all->c->every_s * 1000, why);
        else
            not_understood(c, node, why);
        return;
    }
    CLEANUP_JSON struct json *body =
        json_parse_within(buf_text(&r->body), r->body.len, BODY_MEMORY, &err);
    if (!body)
        not_understood(c, node, "the response is no JSON");
    else if (r->status / 100 == 2)
        run_received(c, node, body);
    else
        problem_received(c, node, r, body);
}

// The node returns the run as it is now. Any other end of it is seen by the request that follows
// it.
static void cancel_received(struct campaign *c, int node, const struct fetch_response *r)
{
    CLEANUP_JSON struct json *run =
        r->error == FETCH_OK && r->status / 100 == 2
            ? json_parse_within(buf_text(&r->body), r->body.len, BODY_MEMORY, NULL)
            : NULL;
    int state = run_state_find(json_get_text(run, "state", ""));
    if (state >= 0 && run_state_final((enum run_state)state))
        run_final(c, node, run, (enum run_state)state);
    else if (r->error != FETCH_OK || fetch_response_busy(r))
        c->states[node].cancels = false; // it is requested again with the next response
}

static void on_probe(void *ctx, struct fetch_response *r)
{
    struct probe_call *call = ctx;
    struct campaign *c = call->campaign;
    bool waits = !c->dropped && c->planned && call->round == c->head.round &&
                 c->plan.nodes[call->node].state == PROBE_RUNNING;
    if (waits && call->kind == PROBE_CANCELS)
        cancel_received(c, call->node, r);
    else if (waits)
        response_received(c, call->node, r);
    campaign_release(c);
    free(call);
}

// ---- Requests -----------------------------------------------------------------------------------

// False: it was not sent, and err says why.
static bool probe_send(struct campaign *c, int node, struct fetch_request *q, const char *path,
                       enum probe_kind kind, struct err *err)
{
    struct campaigns *all = c->all;
    const struct polled *polled = poller_find(all->poller, c->nodes.names[node]);
    struct probe_call *call = polled ? calloc(1, sizeof *call) : NULL;
    char url[POLLED_BASE + 80];
    if (!call || !node_is_here(polled)) {
        err_set(err, ERR_NOT_FOUND, NULL, "%s",
                !polled ? "no source names it"
                : !call ? "out of memory"
                        : "the collector does not contact it any more");
        free(call);
        return false;
    }
    *call = (struct probe_call){c, c->head.round, node, kind};
    snprintf(url, sizeof url, "%s%s", polled->base[polled->at_base], path);
    poller_address(all->poller, q, url);
    if (fetch_start(kind == PROBE_FOLLOWS ? all->held.fetch : all->brief.fetch, q, on_probe, call,
                    err) < 0) {
        free(call);
        return false;
    }
    c->calls++;
    return true;
}

// A collector that has just begun may not know the node yet: others are probed first, but a run
// that is to be cancelled is not given up for that.
static void not_sent(struct campaign *c, int node, const char *why)
{
    char text[CAMPAIGN_WHY];
    if (c->over && !poller_named(c->all->poller)) {
        probe_pause(c, node, clock_mono_ms() + NAMED_SOON_MS);
    } else if (c->over) {
        snprintf(text, sizeof text, "its run could not be cancelled: %.120s", why);
        probe_ended(c, node, PROBE_SKIPPED, 0, text);
    } else {
        probe_refused(c, node, c->all->c->every_s * 1000, why);
    }
}

void probe_request(struct campaign *c, int node)
{
    struct fetch_request q = poller_request(c->all->poller);
    struct err err;
    char key[200];
    snprintf(key, sizeof key, "Idempotency-Key: %" PRId64 "-%" PRIx64 "/%d/%s", c->head.id,
             (uint64_t)c->head.created_ms, c->head.round, c->nodes.names[node]);
    q.method = "POST";
    q.headers[0] = "Content-Type: application/json";
    q.headers[1] = key;
    q.body = buf_text(&c->request.spec);
    q.body_len = c->request.spec.len;
    c->states[node].probing = PROBING_REQUEST;
    if (!probe_send(c, node, &q, "/v1/runs", PROBE_BEGINS, &err))
        not_sent(c, node, err.text);
}

static void probe_follow(struct campaign *c, int node)
{
    struct fetch_request q = poller_request(c->all->poller);
    struct err err;
    char path[80];
    if (c->states[node].ends)
        cancel_request(c, node);
    snprintf(path, sizeof path, "/v1/runs/%" PRId64 "?wait=%d", c->states[node].run, FOLLOW_S);
    c->states[node].probing = PROBING_FOLLOWS;
    c->states[node].followed_ms = clock_mono_ms();
    if (!probe_send(c, node, &q, path, PROBE_FOLLOWS, &err))
        not_sent(c, node, err.text);
}

// Its end is seen by the request that follows it.
static void cancel_request(struct campaign *c, int node)
{
    struct campaign_node *n = &c->states[node];
    struct fetch_request q = poller_request(c->all->poller);
    struct err err;
    char path[80];
    if (!n->run || n->cancels)
        return;
    snprintf(path, sizeof path, "/v1/runs/%" PRId64 "/cancel", n->run);
    q.method = "POST";
    n->cancels = probe_send(c, node, &q, path, PROBE_CANCELS, &err);
}

void probe_cancel(struct campaign *c, int node)
{
    struct campaign_node *n = &c->states[node];
    int64_t deadline_ms = clock_mono_ms() + 1000 * OVERTIME_S;
    n->ends = true;
    if (!n->deadline_ms || n->deadline_ms > deadline_ms)
        n->deadline_ms = deadline_ms;
    if (n->probing == PROBING_STORES)
        probe_ended(c, node, PROBE_SKIPPED, 0, "the campaign has ended");
    else
        cancel_request(c, node);
}

void probes_due(struct campaign *c, int64_t now_ms, int64_t *next_ms)
{
    for (int i = 0; i < c->nodes.n; i++) {
        struct campaign_node *n = &c->states[i];
        if (n->probing != PROBING_PAUSES)
            continue;
        if (n->due_ms > now_ms)
            *next_ms = n->due_ms < *next_ms ? n->due_ms : *next_ms;
        else if (n->run)
            probe_follow(c, i);
        else
            probe_request(c, i);
    }
}
