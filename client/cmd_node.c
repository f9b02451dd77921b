// SPDX-License-Identifier: Apache-2.0
// What the node is: node, doctor.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"

static void add_facts(struct grid *g, const struct json *fingerprint, const char *key)
{
    for (const struct json *f = json_first(json_get(json_get(fingerprint, key), "facts")); f;
         f = json_next(f)) {
        grid_cell(g, "%s", key);
        grid_cell(g, "%s", json_name(f));
        grid_cell(g, "%s", json_text(f) ? json_text(f) : "");
    }
}

int cmd_node(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct column columns[] = {{"key", "KEY", false},
                                            {"fact", "FACT", false},
                                            {.name = "value", .title = "VALUE", .wraps = true}};
    (void)i;
    CLEANUP_JSON struct json *node = NULL;
    if (http_json(c, "GET", "/v1/node", NULL, &node, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON) {
        print_json(node);
        return 0;
    }
    const struct json *f = json_get(node, "fingerprint");
    if (c->output == OUTPUT_TABLE) {
        CLEANUP_BUF struct buf b = BUF_INIT;
        buf_plain(&b, json_get_text(node, "node", "?"));
        char hashes[80];
        snprintf(hashes, sizeof hashes, ": class %.12s, config %.12s; ranks run as ",
                 json_get_text(json_get(f, "hardware"), "hash", "?"),
                 json_get_text(json_get(f, "config"), "hash", "?"));
        buf_plain(&b, hashes);
        buf_plain(&b, json_get_text(node, "job_account", "?"));
        printf("%s\n\n", buf_text(&b));
    }
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    add_facts(&g, f, "hardware");
    add_facts(&g, f, "config");
    grid_print(&g, c);
    return 0;
}

// Adds one finding; a missing daemon is one too, so doctor answers without it.
static void add_finding(struct grid *g, const char *name, const char *text, const char *remedy,
                        bool serious)
{
    grid_cell(g, "%s", serious ? "serious" : "note");
    grid_cell(g, "%s", name);
    grid_cell(g, "%s", text);
    grid_cell(g, "%s", remedy);
}

static bool cmd_node_add_findings(struct grid *g, const struct json *node)
{
    bool serious = false;
    for (const struct json *f = json_first(json_get(node, "findings")); f; f = json_next(f)) {
        bool bad = json_get_bool(f, "serious", false);
        add_finding(g, json_get_text(f, "name", ""), json_get_text(f, "text", ""),
                    json_get_text(f, "remedy", ""), bad);
        serious |= bad;
    }
    return serious;
}

static bool add_readiness(struct grid *g, struct cli *c)
{
    CLEANUP_REPLY struct http_reply r = {0};
    if (http_call(c, "GET", "/readyz?verbose", NULL, NULL, &r, NULL) < 0)
        return false;
    CLEANUP_JSON struct json *j = json_parse(buf_text(&r.body), r.body.len, NULL);
    bool serious = false;
    serious |= cmd_node_add_findings(g, j);
    for (const struct json *k = json_first(json_get(j, "checks")); k; k = json_next(k))
        if (!json_get_bool(k, "ok", true)) {
            add_finding(g, json_get_text(k, "name", ""), json_get_text(k, "text", ""), "", true);
            serious = true;
        }
    return serious;
}

static bool has_finding(const struct grid *g, const char *name)
{
    for (int i = 0; i < g->n_rows; i += g->n_columns)
        if (strcmp(g->cells[i + 1], name) == 0)
            return true;
    return false;
}

static void add_blocker(struct grid *g, const struct json *b, const char *remedy)
{
    const char *kind = json_get_text(b, "kind", "");
    if (!has_finding(g, kind))
        add_finding(g, kind, json_get_text(b, "text", ""), remedy, false);
}

// What would keep a run from starting now passes, so it is no serious finding.
static void add_blockers(struct grid *g, struct cli *c)
{
    CLEANUP_JSON struct json *now = NULL;
    if (http_json(c, "GET", "/v1/availability", NULL, &now, NULL) < 0)
        return;
    for (const struct json *b = json_first(json_get(now, "blockers")); b; b = json_next(b))
        add_blocker(g, b,
                    strcmp(json_get_text(b, "kind", ""), "topology_not_live") == 0
                        ? "" // waiting changes nothing
                        : "numaprobe run --wait-for-node=1h");
    for (const struct json *b = json_first(json_get(now, "warnings")); b; b = json_next(b))
        add_blocker(g, b, "");
}

static void print_findings(const struct cli *c, const struct grid *g)
{
    if (!g->n_rows)
        puts("No condition that distorts measurements was found on this node.");
    for (int i = 0; i < g->n_rows; i += g->n_columns) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(&line, "%s %s: %s", strcmp(g->cells[i], "serious") ? "-" : "!", g->cells[i + 1],
                g->cells[i + 2]);
        print_paragraph(c, buf_text(&line), 2);
        if (*g->cells[i + 3])
            printf("    fix: %s\n", g->cells[i + 3]);
    }
}

// One line, for people: how much is stored and what becomes of it.
static void print_storage(struct cli *c)
{
    CLEANUP_JSON struct json *s = NULL;
    char used[32], left[32];
    if (http_json(c, "GET", "/v1/storage", NULL, &s, NULL) < 0)
        return;
    const struct json *r = json_get(s, "retention");
    bool limited = json_get_i64(r, "keep_days", 0) || json_get_i64(r, "keep_runs", 0) ||
                   json_get_i64(r, "keep_bytes", 0);
    str_rough_size(json_get_number(s, "used_bytes", 0), used, sizeof used);
    str_rough_size(json_get_number(s, "disk_free_bytes", 0), left, sizeof left);
    int64_t runs = json_get_i64(s, "runs", 0);
    CLEANUP_BUF struct buf line = BUF_INIT;
    buf_fmt(&line, "stored: %lld run%s in %s, %s free on the disk; %s", (long long)runs,
            str_plural(runs), used, left,
            limited ? "old runs are deleted, except labelled runs and baselines"
                    : "no run is ever deleted");
    putchar('\n');
    print_paragraph(c, buf_text(&line), 0);
}

int cmd_doctor(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct column columns[] = {{"weight", "WEIGHT", false},
                                            {"name", "NAME", false},
                                            {"text", "TEXT", false},
                                            {"remedy", "REMEDY", false}};
    (void)i;
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    CLEANUP_JSON struct json *node = NULL;
    bool serious;
    if (http_json(c, "GET", "/v1/node", NULL, &node, err) < 0) {
        add_finding(&g, "daemon", err->text, "systemctl enable --now numaprobed", true);
        serious = true;
    } else {
        serious = add_readiness(&g, c);
        serious |= cmd_node_add_findings(&g, node);
        add_blockers(&g, c);
    }
    if (c->output == OUTPUT_TABLE) {
        print_findings(c, &g);
        if (node)
            print_storage(c);
    } else
        grid_print(&g, c);
    return serious ? 1 : 0;
}
