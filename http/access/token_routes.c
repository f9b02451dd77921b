// SPDX-License-Identifier: Apache-2.0
// Tokens: make one (its text is shown this once), list them, revoke one.
#include "http/access/token_routes.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "http/access/tokens.h"
#include "http/messages/service.h"

static void write_token(struct jsonw *w, const struct token *t, const char *text)
{
    char created[32];
    clock_rfc3339(t->created_ms, created);
    jsonw_object(w, NULL);
    jsonw_text(w, "name", t->name);
    jsonw_text(w, "scope", scope_name(t->scope));
    jsonw_text(w, "created", created);
    if (*t->nodes)
        jsonw_text(w, "nodes", t->nodes);
    if (text)
        jsonw_text(w, "token", text);
    jsonw_end(w);
}

int tokens_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    const struct token *list;
    int n;
    if (tokens_list(q->tokens, &list, &n, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "tokens");
    for (int i = 0; i < n; i++)
        write_token(&w, &list[i], NULL);
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

// A collector: scope push means something.
static bool takes_pushes(const struct request *q)
{
    for (const struct route *r = q->service->routes; r->method; r++)
        if (r->scope == SCOPE_PUSH)
            return true;
    return false;
}

static int tokens_read_nodes(const struct json *root, struct token *out, struct err *err)
{
    const char *nodes = json_text(json_get(root, "nodes"));
    if (out->scope != SCOPE_PUSH)
        return json_get(root, "nodes")
                   ? err_set(err, ERR_INVALID, "nodes", "belongs to scope push alone")
                   : 0;
    if (token_check_nodes(nodes ? nodes : "", err) < 0)
        return -1;
    snprintf(out->nodes, sizeof out->nodes, "%s", nodes);
    return 0;
}

static int tokens_read_request(const struct request *q, struct token *out, struct err *err)
{
    static const char *const members[] = {"name", "scope", "nodes"};
    const bool push = takes_pushes(q);
    CLEANUP_JSON struct json *root = request_json(q, err);
    if (!root)
        return -1;
    for (const struct json *m = json_first(root); m; m = json_next(m)) {
        bool known = false;
        for (size_t i = 0; i < COUNT_OF(members) - !push; i++)
            known = known || (json_name(m) && strcmp(json_name(m), members[i]) == 0);
        if (!known)
            return err_set(err, ERR_INVALID, json_name(m), "is unknown; allowed are name, scope%s",
                           push ? ", nodes" : "");
    }
    const char *name = json_text(json_get(root, "name"));
    const char *scope = json_text(json_get(root, "scope"));
    if (token_check_name(name ? name : "", err) < 0)
        return -1;
    if (!scope || !scope_find(scope, &out->scope) || out->scope == SCOPE_NONE ||
        (out->scope == SCOPE_PUSH && !push))
        return err_set(err, ERR_INVALID, "scope", "must be %sread, run or admin",
                       push ? "push, " : "");
    snprintf(out->name, sizeof out->name, "%s", name);
    return tokens_read_nodes(root, out, err);
}

int tokens_post(struct request *q, struct reply *r, struct err *err)
{
    char text[TOKEN_TEXT_SIZE];
    struct token made, wanted = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (tokens_read_request(q, &wanted, err) < 0 ||
        tokens_create(q->tokens, wanted.name, wanted.scope, wanted.nodes, &made, text, err) < 0)
        return -1;
    log_event(LOG_LVL_INFO, "token.created", "name=%s scope=%s", made.name, scope_name(made.scope));
    struct jsonw w = jsonw_to(&body);
    write_token(&w, &made, text);
    explicit_bzero(text, sizeof text);
    return reply_json(r, 201, &body, err);
}

int tokens_delete(struct request *q, struct reply *r, struct err *err)
{
    if (tokens_revoke(q->tokens, q->name, err) < 0)
        return -1;
    log_event(LOG_LVL_INFO, "token.revoked", "name=%s", q->name);
    r->status = 204;
    return 0;
}
