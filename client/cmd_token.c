// SPDX-License-Identifier: Apache-2.0
// Tokens: make, list, revoke. The daemon keeps them; asking needs the scope admin, which root and
// the daemon's account have on the unix socket.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "model/token.h"

struct token_flags {
    int scope;
    char nodes[256];
};

static const char *const scopes[] = {"read", "run", "admin", "push", NULL};
static const struct param token_params[] = {
    {.name = "scope",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct token_flags, scope),
     .choices = scopes,
     .def = "read",
     .help =
         "Scope of the new token. read: read; run: also start runs and import; admin: also delete, "
         "back up and manage tokens; push: send runs of some nodes to a collector, nothing else."},
    {.name = "nodes",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct token_flags, nodes),
     .room = sizeof(((struct token_flags *)NULL)->nodes),
     .def = "",
     .metavar = "SET",
     .help = "With --scope=push: the nodes whose runs it may send: n[1-9],m1."},
};
const struct param_table token_options = {token_params, COUNT_OF(token_params)};

// The token alone on stdout, so that a shell can redirect it into a file.
static int create(struct cli *c, const struct token_flags *f, const char *name, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    struct jsonw w = jsonw_to(&body);
    if (print_refuse_csv(c, "a token is", err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    jsonw_text(&w, "name", name);
    jsonw_text(&w, "scope", scopes[f->scope]);
    if (*f->nodes)
        jsonw_text(&w, "nodes", f->nodes);
    jsonw_end(&w);
    if (http_json(c, "POST", "/v1/tokens", buf_text(&body), &answer, err) < 0)
        return -1;
    CLEANUP_BUF struct buf safe = BUF_INIT;
    buf_plain(&safe, json_get_text(answer, "token", ""));
    if (!print_if_json(c, answer))
        puts(buf_text(&safe));
    fputs("The token is shown once. Store it in a file of mode 0600 and use --token-file=FILE.\n",
          stderr);
    return 0;
}

static int cmd_token_list(struct cli *c, struct err *err)
{
    static const struct column columns[] = {{"name", "name", false},
                                            {"scope", "scope", false},
                                            {"created", "created", false},
                                            {"nodes", "nodes", false}};
    CLEANUP_JSON struct json *answer = NULL;
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    if (http_json(c, "GET", "/v1/tokens", NULL, &answer, err) < 0)
        return -1;
    const struct json *tokens = json_get(answer, "tokens");
    for (const struct json *t = json_first(tokens); t; t = json_next(t)) {
        grid_cell(&g, "%s", json_get_text(t, "name", "?"));
        grid_cell(&g, "%s", json_get_text(t, "scope", "?"));
        grid_cell(&g, "%.19sZ", json_get_text(t, "created", "?"));
        grid_cell(&g, "%s", json_get_text(t, "nodes", ""));
    }
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else if (c->output == OUTPUT_TABLE && !json_first(tokens))
        puts("No token is stored. Create one with: numaprobe token create NAME --scope=run");
    else
        grid_print(&g, c);
    return 0;
}

static int take_back(struct cli *c, const char *name, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_REPLY struct http_reply r = {0};
    if (token_check_name(name, err) < 0)
        return -1;
    buf_str(&path, "/v1/tokens/");
    http_escape(&path, name);
    if (http_call(c, "DELETE", buf_text(&path), NULL, NULL, &r, err) < 0)
        return -1;
    return r.status == 204 ? 0 : http_problem(&r, err);
}

int cmd_token(struct cli *c, const struct invocation *i, struct err *err)
{
    const char *what = i->operands[0];
    const char *name = i->n > 1 ? i->operands[1] : NULL;
    if (strcmp(what, "list") == 0 && !name)
        return cmd_token_list(c, err);
    if (strcmp(what, "create") == 0 && name)
        return create(c, i->options, name, err);
    if (strcmp(what, "revoke") == 0 && name)
        return take_back(c, name, err);
    return err_set(err, ERR_USAGE, "",
                   "usage: numaprobe token create NAME, token list, or token revoke NAME");
}
