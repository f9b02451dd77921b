// SPDX-License-Identifier: Apache-2.0
// numaprobe push: for a node that its collector cannot contact. The collector says where it stands
// after each page, and which facts of the machine it lacks, so nothing is kept here.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/problem.h"
#include "model/fingerprint.h"
#include "model/nodeset.h"

enum {
    PUSH_RUNS = 100,  // of a page
    PUSH_REPEATS = 3, // pages that are not stored because the place was elsewhere
    PUSH_FACTS = 32,  // documents of facts; others are sent the next time
};

struct push_flags {
    char to[256], to_token_file[256], to_cacert[256];
    char node[64];
};

static const struct param push_params[] = {
    PARAM_TEXT_ROW(struct push_flags, to, .metavar = "URL",
                   .help = "Address of the collector (numaprobe-fleetd)."),
    PARAM_TEXT_ROW(struct push_flags, to_token_file, .metavar = "FILE",
                   .help = "File with a token of the collector, of scope push, for this node."),
    PARAM_TEXT_ROW(struct push_flags, to_cacert, .metavar = "FILE",
                   .help = "CA bundle (PEM) that verifies the collector. Default: the system's."),
    PARAM_TEXT_ROW(struct push_flags, node, .metavar = "NAME",
                   .help = "Name of this node at the collector. Default: as the daemon names it."),
};
const struct param_table push_options = {push_params, COUNT_OF(push_params)};

struct push {
    const struct cli *from;
    struct cli *to;
    char node[64], history[40];
    int64_t after, stored;
    int repeats;
    bool more;
    char facts[PUSH_FACTS][65]; // hashes of those that the collector lacks
    int n_facts;
};

static void take_place(struct push *p, const struct json *place)
{
    p->after = json_get_i64(place, "next", 0);
    snprintf(p->history, sizeof p->history, "%s", json_get_text(place, "history_id", ""));
    p->n_facts = 0;
    for (const struct json *h = json_first(json_get(place, "facts_wanted"));
         h && p->n_facts < PUSH_FACTS; h = json_next(h)) {
        const char *hash = json_text(h);
        if (hash && facts_is_hash(hash))
            snprintf(p->facts[p->n_facts++], sizeof p->facts[0], "%s", hash);
    }
}

static int get_name(struct push *p, const struct push_flags *f, struct err *err)
{
    CLEANUP_JSON struct json *page = NULL;
    if (!*f->node &&
        http_json(p->from, "GET", "/v1/feed?form=summary&limit=1", NULL, &page, err) < 0)
        return -1;
    snprintf(p->node, sizeof p->node, "%s", *f->node ? f->node : json_get_text(page, "node", ""));
    return nodeset_name_check(p->node, err);
}

// The history of the node is another one than the collector's: from its beginning.
static int get_page(struct push *p, struct http_reply *page, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    for (int again = 0; again < 2; again++) {
        http_reply_free(page);
        buf_reset(&path);
        buf_fmt(&path, "/v1/feed?form=summary&limit=%d&after=%" PRId64, PUSH_RUNS, p->after);
        if (*p->history) {
            buf_str(&path, "&history_id=");
            http_escape(&path, p->history);
        }
        if (http_call(p->from, "GET", buf_text(&path), NULL, NULL, page, err) < 0)
            return -1;
        if (page->status != 409)
            break;
        p->after = 0;
        p->history[0] = '\0';
    }
    return page->status == 200 ? 0 : http_problem(page, err);
}

static void hint_there(void)
{
    problem_access("use a token of the collector, of scope push, for this node "
                   "(--to-token-file=FILE)");
}

// What the collector refuses has nothing to do with the token for the daemon.
static int refused_there(const struct http_reply *reply, struct err *err)
{
    hint_there();
    return http_problem(reply, err);
}

static int take_outcome(struct push *p, const struct json *said, struct err *err)
{
    static const char *const again[] = {"behind", "reinstalled", "renamed"};
    const char *outcome = json_get_text(said, "outcome", "");
    CLEANUP_BUF struct buf safe = BUF_INIT;
    bool stored = strcmp(outcome, "stored") == 0, repeat = false;
    for (size_t i = 0; i < COUNT_OF(again); i++)
        repeat = repeat || strcmp(outcome, again[i]) == 0;
    p->repeats = repeat ? p->repeats + 1 : 0;
    p->stored += json_get_i64(said, "stored", 0);
    if (stored || (repeat && p->repeats <= PUSH_REPEATS)) {
        const int64_t before = p->after;
        take_place(p, said);
        p->more = repeat || (json_get_bool(said, "more", false) && p->after > before);
        return 0;
    }
    buf_plain(&safe, json_get_text(said, "outcome_text", ""));
    return err_set(err, ERR_CONFLICT, "node", "the collector does not store the runs of %s: %.120s",
                   p->node, buf_text(&safe));
}

static int push_page(struct push *p, const char *path, struct err *err)
{
    CLEANUP_REPLY struct http_reply page = {0}, reply = {0};
    if (get_page(p, &page, err) < 0 ||
        http_post(p->to, path, "application/json", &page.body, &reply, err) < 0)
        return -1;
    if (reply.status != 200)
        return refused_there(&reply, err);
    CLEANUP_JSON struct json *said = json_parse(buf_text(&reply.body), reply.body.len, err);
    return said ? take_outcome(p, said, err) : -1;
}

// Facts whose runs were deleted here, or that came another way meanwhile, are passed over.
static int push_facts(struct push *p, const char *place, const char *hash, struct err *err)
{
    CLEANUP_BUF struct buf from = BUF_INIT, to = BUF_INIT;
    CLEANUP_REPLY struct http_reply facts = {0}, reply = {0};
    buf_fmt(&from, "/v1/facts/%s", hash);
    buf_fmt(&to, "%s/facts?hash=%s", place, hash);
    if (http_call(p->from, "GET", buf_text(&from), NULL, NULL, &facts, err) < 0)
        return -1;
    if (facts.status == 404)
        return 0;
    if (facts.status != 200)
        return http_problem(&facts, err);
    if (http_post(p->to, buf_text(&to), "application/json", &facts.body, &reply, err) < 0)
        return -1;
    return reply.status == 200 || reply.status == 409 ? 0 : refused_there(&reply, err);
}

// A node has no /v1/fleet, and says no more than that.
static int tell_of_node(const struct push *p, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    struct err none = {0};
    hint_there();
    if (err->code != ERR_NOT_FOUND || http_json(p->to, "GET", "/v1/node", NULL, &answer, &none) < 0)
        return -1;
    return err_set(err, ERR_NOT_FOUND, "to",
                   "--to: %.120s is the daemon of a node (numaprobed), not a collector "
                   "(numaprobe-fleetd)",
                   p->to->url);
}

static int push_all(struct push *p, const struct push_flags *f, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *place = NULL;
    if (get_name(p, f, err) < 0)
        return -1;
    buf_fmt(&path, "/v1/fleet/feeds/%s", p->node);
    if (http_json(p->to, "GET", buf_text(&path), NULL, &place, err) < 0)
        return tell_of_node(p, err);
    take_place(p, place);
    for (p->more = true; p->more;)
        if (push_page(p, buf_text(&path), err) < 0)
            return -1;
    for (int i = 0; i < p->n_facts; i++)
        if (push_facts(p, buf_text(&path), p->facts[i], err) < 0)
            return -1;
    return 0;
}

int cmd_push(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct push_flags *f = i->options;
    CLEANUP_MEM struct cli *to = malloc(sizeof *to);
    struct push p = {.from = c, .to = to};
    if (!to)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the settings");
    if (!*f->to)
        return err_set(err, ERR_USAGE, "to", "name the collector: --to=https://HOST:PORT");
    if (print_refuse_csv(c, "what push prints is", err) < 0)
        return -1;
    *to = *c;
    to->url_assumed = false;
    to->ignores_token_variable = true;
    to->url_option = "--to";
    to->cert[0] = to->key[0] = '\0'; // they are for the daemon, as its token is
    snprintf(to->url, sizeof to->url, "%s", f->to);
    snprintf(to->token_file, sizeof to->token_file, "%s", f->to_token_file);
    snprintf(to->cacert, sizeof to->cacert, "%s", f->to_cacert);
    if (push_all(&p, f, err) < 0)
        return -1;
    if (c->output != OUTPUT_TABLE)
        printf("{\"node\":\"%s\",\"stored\":%" PRId64 ",\"next\":%" PRId64 "}\n", p.node, p.stored,
               p.after);
    else
        printf("%s: %" PRId64 " run%s sent\n", p.node, p.stored, str_plural(p.stored));
    return 0;
}
