// SPDX-License-Identifier: Apache-2.0
// Tokens: make one (its text is shown this once), list them, revoke one.
#include "http/access/tokens.h"

#include <string.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

static void write_token(struct jsonw *w, const struct token *t, const char *text)
{
    char created[32];
    clock_rfc3339(t->created_ms, created);
    jsonw_object(w, NULL);
    jsonw_text(w, "name", t->name);
    jsonw_text(w, "scope", scope_name(t->scope));
    jsonw_text(w, "created", created);
    if (text)
        jsonw_text(w, "token", text);
    jsonw_end(w);
}

int tokens_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    const struct token *list;
    int n;
    if (tokens_list(api_of(q)->tokens, &list, &n, err) < 0)
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

static int tokens_read_request(struct request *q, char name[TOKEN_NAME_MAX + 1], enum scope *scope,
                               struct err *err)
{
    CLEANUP_JSON struct json *root = json_parse(buf_text(&q->body), q->body.len, err);
    if (!root)
        return -1;
    for (const struct json *m = json_first(root); m; m = json_next(m))
        if (!json_name(m) ||
            (strcmp(json_name(m), "name") != 0 && strcmp(json_name(m), "scope") != 0))
            return err_set(err, ERR_INVALID, json_name(m), "is unknown; allowed are name, scope");
    const char *text = json_text(json_get(root, "name"));
    const char *wanted = json_text(json_get(root, "scope"));
    if (token_check_name(text ? text : "", err) < 0)
        return -1;
    if (!wanted || !scope_find(wanted, scope) || *scope == SCOPE_NONE)
        return err_set(err, ERR_INVALID, "scope", "must be read, run or admin");
    snprintf(name, TOKEN_NAME_MAX + 1, "%s", text);
    return 0;
}

int tokens_post(struct request *q, struct reply *r, struct err *err)
{
    char name[TOKEN_NAME_MAX + 1], text[TOKEN_TEXT_SIZE];
    enum scope scope;
    struct token made;
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (tokens_read_request(q, name, &scope, err) < 0 ||
        tokens_create(api_of(q)->tokens, name, scope, &made, text, err) < 0)
        return -1;
    log_event(LOG_LVL_INFO, "token.created", "name=%s scope=%s", name, scope_name(scope));
    struct jsonw w = jsonw_to(&body);
    write_token(&w, &made, text);
    explicit_bzero(text, sizeof text);
    return reply_json(r, 201, &body, err);
}

int tokens_delete(struct request *q, struct reply *r, struct err *err)
{
    if (tokens_revoke(api_of(q)->tokens, q->name, err) < 0)
        return -1;
    log_event(LOG_LVL_INFO, "token.revoked", "name=%s", q->name);
    r->status = 204;
    return 0;
}
