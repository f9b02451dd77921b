// SPDX-License-Identifier: Apache-2.0
// A set of nodes narrows what is sent, where its text fits into a request. The caller leaves out
// what it did not want.
#include "client/fleet/collector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/http.h"
#include "client/print.h"
#include "client/problem.h"

enum {
    LISTED_NODES = 1000,  // of a page
    LISTED_MAX = 1 << 17, // of all pages: what a collector can know
    WHERE_ROOM = 512,     // of a request's path
    PATH_ROOM = 800,
};

struct cli *collector_settings(const struct cli *c, struct err *err)
{
    struct cli *at = malloc(sizeof *at);
    if (!at) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the settings");
        return NULL;
    }
    *at = *c;
    at->url_assumed = false;
    at->url_option = "--fleet";
    problem_of_collector();
    snprintf(at->url, sizeof at->url, "%s", c->fleet.collector);
    return at;
}

void collector_where(const struct nodeset *where, struct buf *path)
{
    CLEANUP_BUF struct buf folded = BUF_INIT, text = BUF_INIT;
    if (!where || !where->n || where->n > NODESET_MEMBERS_MAX)
        return;
    nodeset_fold(where, &folded);
    buf_str(&text, "&where=");
    http_escape(&text, buf_text(&folded));
    if (text.len < WHERE_ROOM)
        buf_str(path, buf_text(&text));
}

// ---- Nodes --------------------------------------------------------------------------------------

// States and outcomes that leave newest runs out. `word` is the collector's.
static const struct {
    const char *word;
    enum err_code code;
    const char *text;
} gaps[] = {
    {"down", ERR_UNREACHABLE, "the collector does not reach it"},
    {"gone", ERR_NOT_FOUND, "no source of the collector names it any more"},
    {"twin", ERR_CONFLICT, "another node has the same history, so that neither is stored"},
    {"alien", ERR_CONFLICT, "another node responds"},
    {"rewound", ERR_CONFLICT, "its database was restored from a copy"},
    {"nameless", ERR_CONFLICT, "its numaprobed is too old for a collector"},
    {"garbled", ERR_CONFLICT, "its pages have numbers that no feed has"},
    {"crowded", ERR_CONFLICT, "it sent too many different kinds of runs"},
};

int collector_use(struct cli *c, struct err *err)
{
    if (!*c->fleet.collector)
        return err_set(err, ERR_USAGE, "",
                       "this is in the collector only: --fleet=URL names it, such as "
                       "--fleet=https://fleet:7790");
    snprintf(c->url, sizeof c->url, "%s", c->fleet.collector);
    c->url_assumed = false;
    c->url_option = "--fleet";
    problem_of_collector();
    return 0;
}

// A text of the collector for one line: printable, NULL if there is none.
static char *detail_of(const struct json *j, const char *member)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    buf_plain(&safe, json_get_text(j, member, ""));
    return safe.len ? buf_steal(&safe) : NULL;
}

static int set_why(struct known_node *n, enum err_code code, const char *text, const char *detail)
{
    n->code = code;
    return asprintf(&n->why, "%s%s%s", text, detail ? ": " : "", detail ? detail : "");
}

static int find_gap(struct known_node *n, const struct json *j)
{
    CLEANUP_MEM char *problem = detail_of(j, "problem");
    CLEANUP_MEM char *other = detail_of(j, "other");
    if (strcmp(n->state, "new") == 0 && !n->heard)
        return set_why(n, ERR_UNREACHABLE, "the collector has not reached it yet", problem);
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        bool state = strcmp(n->state, gaps[i].word) == 0;
        if (state || strcmp(n->outcome, gaps[i].word) == 0)
            return set_why(n, gaps[i].code, gaps[i].text, state ? problem : other);
    }
    return 0;
}

static bool is_plain_word(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static int read_known_node(const struct json *j, struct known_node *n, struct err *err)
{
    *n = (struct known_node){.clock_wrong = json_get_bool(j, "clock_wrong", false),
                             .heard = json_text(json_get(j, "received")) != NULL};
    snprintf(n->name, sizeof n->name, "%s", json_get_text(j, "node", ""));
    snprintf(n->version, sizeof n->version, "%s", json_get_text(j, "version", ""));
    snprintf(n->state, sizeof n->state, "%s", json_get_text(j, "state", ""));
    snprintf(n->outcome, sizeof n->outcome, "%s", json_get_text(j, "outcome", ""));
    const char *reason = json_text(json_get(j, "slurm_reason"));
    n->in_slurm = reason != NULL;
    snprintf(n->slurm_reason, sizeof n->slurm_reason, "%s", reason ? reason : "");
    if (nodeset_name_check(n->name, err) < 0 || !is_plain_word(n->version) ||
        !is_plain_word(n->state) || !is_plain_word(n->outcome))
        return err_set(err, ERR_UNREACHABLE, "", "the collector lists a node in an unknown form");
    return find_gap(n, j) < 0 ? err_set(err, ERR_NO_MEMORY, "", "no memory for a node") : 0;
}

int collector_endless(struct err *err)
{
    return err_set(err, ERR_UNREACHABLE, "", "the collector's pages do not end");
}

// The collector knows none of the nodes that were named: it has nothing of them.
static bool knows_none(const struct nodeset *where, const struct err *err)
{
    return where && where->n && err->code == ERR_NOT_FOUND && strcmp(err->member, "where") == 0;
}

int collector_nodes(const struct cli *at, const struct nodeset *where, known_node_fn *fn, void *ctx,
                    struct err *err)
{
    char path[PATH_ROOM], cursor[NODESET_NAME_ROOM] = "";
    int listed = 0;
    CLEANUP_BUF struct buf set = BUF_INIT;
    collector_where(where, &set);
    do {
        CLEANUP_JSON struct json *page = NULL;
        snprintf(path, sizeof path, "/v1/fleet/nodes?limit=%d%s%s%s", LISTED_NODES, buf_text(&set),
                 *cursor ? "&cursor=" : "", cursor);
        if (http_json(at, "GET", path, NULL, &page, err) < 0 && knows_none(where, err))
            return 0;
        if (!page)
            return err->code != ERR_NOT_FOUND
                       ? -1
                       : err_set(err, ERR_NOT_FOUND, "fleet",
                                 "%.100s is no collector of a fleet (numaprobe-fleetd)", at->url);
        const struct json *list = json_get(page, "nodes");
        bool standby = json_get_bool(page, "standby", false);
        for (const struct json *j = json_first(list); j; j = json_next(j)) {
            struct known_node n;
            if (read_known_node(j, &n, err) < 0)
                return -1;
            n.standby = standby;
            if (fn(ctx, &n, err) < 0)
                return -1;
        }
        const char *next = json_count(list) ? json_text(json_get(page, "cursor")) : NULL;
        listed += json_count(list);
        // Pages are in the order of names.
        if (next &&
            (listed > LISTED_MAX || strcmp(next, cursor) <= 0 || nodeset_name_check(next, err) < 0))
            return collector_endless(err);
        snprintf(cursor, sizeof cursor, "%s", next ? next : "");
    } while (*cursor);
    return 0;
}

// ---- The collector itself -----------------------------------------------------------------------

int collector_problems(const struct cli *at, struct interned *texts, struct err *err)
{
    static const char *const members[] = {"sources_problem", "store_problem", "clock_problem"};
    CLEANUP_JSON struct json *status = NULL;
    if (http_json(at, "GET", "/v1/fleet/status", NULL, &status, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        CLEANUP_MEM char *text = detail_of(status, members[i]);
        if (text && interned_add(texts, text, err) < 0)
            return -1;
    }
    return 0;
}

// ---- Runs ---------------------------------------------------------------------------------------

int collector_runs(const struct cli *at, const struct nodeset *where, int newest, known_runs_fn *fn,
                   void *ctx, struct err *err)
{
    char path[PATH_ROOM];
    int64_t cursor = 0;
    CLEANUP_BUF struct buf set = BUF_INIT;
    collector_where(where, &set);
    for (bool more = true; more;) {
        CLEANUP_JSON struct json *body = NULL;
        struct summary_page page CLEANUP(summary_page_fini) = {0};
        snprintf(path, sizeof path, "/v1/fleet/runs?form=summary&newest=%d&cursor=%" PRId64 "%s",
                 newest, cursor, buf_text(&set));
        if (http_json(at, "GET", path, NULL, &body, err) < 0 && knows_none(where, err))
            return 0;
        if (!body || summary_page_read(body, &page, err) < 0)
            return -1;
        more = page.more;
        if (fn(ctx, &page, err) < 0)
            return -1;
        if (more && page.next <= cursor)
            return collector_endless(err);
        cursor = page.next;
    }
    return 0;
}
