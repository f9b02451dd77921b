// SPDX-License-Identifier: Apache-2.0
// Baselines: reference runs that check uses.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"
#include "model/token.h"

// --- baseline ----------------------------------------------------------------------------------

static void add_baseline(struct grid *g, const struct json *b)
{
    CLEANUP_BUF struct buf runs = BUF_INIT;
    for (const struct json *r = json_first(json_get(b, "runs")); r; r = json_next(r)) {
        int64_t id = 0;
        json_i64(r, &id);
        buf_fmt(&runs, "%s%lld", runs.len ? " " : "", (long long)id);
    }
    grid_cell(g, "%s", json_get_text(b, "name", "?"));
    grid_cell(g, "%s", json_get_text(b, "benchmark", "?"));
    grid_cell(g, "%s", json_get_text(b, "node", "?"));
    grid_cell(g, "%.19sZ", json_get_text(b, "created", "?"));
    grid_cell(g, "%s", buf_text(&runs));
}

// One baseline, or a list of them.
static void print_baselines(const struct cli *c, const struct json *one, const struct json *list)
{
    static const struct column columns[] = {
        {"name", "name", false},       {"benchmark", "benchmark", false}, {"node", "node", false},
        {"created", "created", false}, {"runs", "runs", false},
    };
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    if (one)
        add_baseline(&g, one);
    for (const struct json *b = json_first(list); b; b = json_next(b))
        add_baseline(&g, b);
    grid_print(&g, c);
}

static int path_of(const char *name, struct buf *path, struct err *err)
{
    struct err why;
    if (token_check_name(name, &why) < 0)
        return err_set(err, ERR_USAGE, "", "the name of a baseline %s, got \"%.70s\"", why.text,
                       name);
    buf_fmt(path, "/v1/baselines/%s", name);
    return buf_ok(path) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
}

static int cmd_baseline_body_of(struct cli *c, char **ids, int n, struct buf *body, struct err *err)
{
    struct jsonw w = jsonw_to(body);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "runs");
    for (int i = 0; i < n; i++) {
        int64_t id;
        if (result_find(c, ids + i, 1, &id, err) < 0)
            return -1;
        jsonw_i64(&w, NULL, id);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    return 0;
}

static int baseline_set(struct cli *c, char **words, int n, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT, body = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    if (path_of(words[0], &path, err) < 0 ||
        cmd_baseline_body_of(c, words + 1, n - 1, &body, err) < 0 ||
        http_json(c, "PUT", buf_text(&path), buf_text(&body), &answer, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else
        print_baselines(c, answer, NULL);
    return 0;
}

static int baseline_list(struct cli *c, char **words, int n, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    (void)words, (void)n;
    if (http_json(c, "GET", "/v1/baselines", NULL, &answer, err) < 0)
        return -1;
    const struct json *list = json_get(answer, "baselines");
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else if (c->output == OUTPUT_TABLE && !json_first(list))
        puts("No baseline is stored. Create one with: numaprobe baseline set default 17 18 19");
    else
        print_baselines(c, NULL, list);
    return 0;
}

static int baseline_show(struct cli *c, char **words, int n, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    (void)n;
    if (path_of(words[0], &path, err) < 0 ||
        http_json(c, "GET", buf_text(&path), NULL, &answer, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else
        print_baselines(c, answer, NULL);
    return 0;
}

static int baseline_delete(struct cli *c, char **words, int n, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_REPLY struct http_reply r = {0};
    (void)n;
    if (path_of(words[0], &path, err) < 0 ||
        http_call(c, "DELETE", buf_text(&path), NULL, NULL, &r, err) < 0)
        return -1;
    return r.status == 204 ? 0 : http_problem(&r, err);
}

static const struct {
    const char *name, *operands;
    int n_min, n_max;
    int (*run)(struct cli *c, char **words, int n, struct err *err);
} actions[] = {
    {"set", " NAME ID...", 2, BASELINE_OPERANDS_MAX - 1, baseline_set},
    {"list", "", 0, 0, baseline_list},
    {"show", " NAME", 1, 1, baseline_show},
    {"delete", " NAME", 1, 1, baseline_delete},
};

int cmd_baseline(struct cli *c, const struct invocation *i, struct err *err)
{
    for (size_t a = 0; a < COUNT_OF(actions); a++) {
        if (strcmp(actions[a].name, i->operands[0]) != 0)
            continue;
        int n = i->n - 1;
        if (n < actions[a].n_min || n > actions[a].n_max)
            return err_set(err, ERR_USAGE, "", "usage: numaprobe baseline %s%s", actions[a].name,
                           actions[a].operands);
        return actions[a].run(c, i->operands + 1, n, err);
    }
    return err_set(err, ERR_USAGE, "",
                   "unknown action \"%.40s\": use baseline set, list, show or delete",
                   i->operands[0]);
}
