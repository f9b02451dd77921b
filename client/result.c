// SPDX-License-Identifier: Apache-2.0
#include "client/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "client/http.h"
#include "client/print.h"
#include "formats/result_print.h"

enum { SPARK_ROWS = 16, SPARK_LEAST = 4 }; // curves shown, and the values that make one

// The newest run of a node, imports too.
static int find_of_node(const struct cli *c, const char *node, int64_t *id, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *page = NULL;
    buf_str(&path, "/v1/runs?limit=1&node=");
    http_escape(&path, node);
    if (!buf_ok(&path))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
    if (http_json(c, "GET", buf_text(&path), NULL, &page, err) < 0)
        return -1;
    *id = json_get_i64(json_first(json_get(page, "runs")), "id", 0);
    return *id > 0 ? 0
                   : err_set(err, ERR_NOT_FOUND, "",
                             "no run of node %.63s is stored (numaprobe runs)", node);
}

static int find_latest(const struct cli *c, int64_t *id, struct err *err)
{
    CLEANUP_JSON struct json *run = NULL;
    if (http_json(c, "GET", "/v1/runs/latest", NULL, &run, err) < 0)
        return err->code != ERR_NOT_FOUND
                   ? -1
                   : err_set(err, ERR_NOT_FOUND, "",
                             "this node has measured nothing yet (numaprobe run). Imported runs "
                             "have numbers (numaprobe runs), and last@NODE is a node's newest");
    *id = json_get_i64(run, "id", 0);
    return *id > 0 ? 0 : err_set(err, ERR_UNREACHABLE, "url", "the server names no run");
}

int result_find(const struct cli *c, char **operands, int n, int64_t *id, struct err *err)
{
    static const char of_node[] = "last@";
    if (!n || strcmp(operands[0], "last") == 0)
        return find_latest(c, id, err);
    if (str_starts(operands[0], of_node) && operands[0][sizeof of_node - 1])
        return find_of_node(c, operands[0] + sizeof of_node - 1, id, err);
    if (!str_to_i64(operands[0], id) || *id < 1)
        return err_set(err, ERR_USAGE, "",
                       "\"%.40s\" is no run: give its number, \"last\", or last@NODE", operands[0]);
    return 0;
}

int result_get_run(const struct cli *c, int64_t id, int wait_s, struct json **run, struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, wait_s ? "/v1/runs/%lld?wait=%d" : "/v1/runs/%lld", (long long)id,
             wait_s);
    return http_json(c, "GET", path, NULL, run, err);
}

static void text_line(const char *label, const char *value)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    print_safe(&b, value);
    if (b.len)
        printf("%-11s %s\n", label, buf_text(&b));
}

// "latency, size 1-64, mode both, pages thp": the benchmark and what of it matters most.
static void what_line(const struct json *spec, char *line, size_t room)
{
    static const char *const told[] = {"size",       "mode",    "kernel", "sweep", "pairs",
                                       "definition", "targets", "load",   "pages", "method"};
    snprintf(line, room, "%s", json_get_text(spec, "benchmark", "?"));
    for (size_t i = 0; i < COUNT_OF(told); i++)
        if (json_get_text(spec, told[i], NULL))
            snprintf(line + strlen(line), room - strlen(line), ", %s %s", told[i],
                     json_get_text(spec, told[i], ""));
}

void result_print_head(const struct json *run)
{
    const struct json *spec = json_get(run, "spec"), *error = json_get(run, "error");
    char line[300];
    snprintf(line, sizeof line, "%lld: %s", (long long)json_get_i64(run, "id", 0),
             json_get_text(run, "state", "?"));
    text_line("run", line);
    if (json_get_text(error, "text", NULL))
        text_line("why", json_get_text(error, "text", ""));
    text_line("waiting", json_get_text(json_get(run, "waiting"), "text", ""));
    what_line(spec, line, sizeof line);
    text_line("what", line);
    snprintf(line, sizeof line, "%s, %lld ranks (%s), memory %s", json_get_text(run, "node", "?"),
             (long long)json_get_i64(run, "ranks", 0),
             *json_get_text(spec, "cpus", "") ? json_get_text(spec, "cpus", "")
                                              : json_get_text(spec, "ranks", "?"),
             json_get_text(spec, "numa", "?"));
    text_line("where", line);
    double seconds = json_get_number(run, "seconds", -1);
    bool imported = strcmp(json_get_text(run, "source", ""), "imported") == 0;
    snprintf(line, sizeof line, seconds >= 0 ? "%s%s, took %.1f s" : "%s%s",
             json_get_text(run, imported ? "measured" : "created", "?"),
             imported ? " (imported)" : "", seconds);
    text_line("when", line);
    text_line("method", json_get_text(run, "method", ""));
    text_line("label", json_get_text(run, "label", ""));
    text_line("note", json_get_text(spec, "note", ""));
    const char *label = "conditions";
    for (const struct json *k = json_first(json_get(run, "conditions")); k; k = json_next(k)) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        struct condition c;
        if (condition_from_json(&c, k, NULL) < 0)
            continue;
        condition_line(&c, &text);
        text_line(label, buf_text(&text));
        label = "";
    }
}

void result_fini(struct result *r)
{
    for (int i = 0; i < r->n_matrices; i++)
        matrix_fini(&r->matrices[i]);
    free(r->ranks);
}

// The names of a matrix are printed: only what we would write ourselves is let through.
static bool result_plain(const char *text)
{
    return text[strspn(
               text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/%")] == '\0';
}

static int result_read(struct result *r, const struct json *answer, struct err *err)
{
    for (const struct json *m = json_first(json_get(answer, "matrices")); m; m = json_next(m)) {
        if (r->n_matrices == RESULT_MATRICES_MAX)
            return err_set(err, ERR_UNREACHABLE, "url", "the answer has more than %d matrices",
                           RESULT_MATRICES_MAX);
        struct matrix *to = &r->matrices[r->n_matrices];
        if (matrix_from_json(to, m, err) < 0)
            return err_prefix(err, "the answer of the server");
        r->n_matrices++;
        if (!result_plain(to->name) || !result_plain(to->unit) || !result_plain(to->quantity) ||
            !result_plain(to->row.name) || !result_plain(to->col.name) ||
            !result_plain(to->row.unit) || !result_plain(to->col.unit))
            return err_set(err, ERR_UNREACHABLE, "url", "the answer names a matrix strangely");
    }
    const struct json *ranks = json_get(answer, "ranks");
    r->ranks = calloc((size_t)json_count(ranks) + 1, sizeof *r->ranks);
    for (const struct json *k = json_first(ranks); k && r->ranks; k = json_next(k))
        if (rank_from_json(&r->ranks[r->n_ranks], k, err) == 0)
            r->n_ranks++;
    return r->ranks ? 0
                    : err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", json_count(ranks));
}

static int get_matrices(const struct cli *c, int64_t id, struct json **answer, struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, "/v1/runs/%lld/matrix", (long long)id);
    return http_json(c, "GET", path, NULL, answer, err);
}

int result_fetch(const struct cli *c, int64_t id, struct result *r, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    struct result got CLEANUP(result_fini) = {0};
    if (get_matrices(c, id, &answer, err) < 0 || result_read(&got, answer, err) < 0)
        return -1;
    *r = got;
    got = (struct result){0};
    return 0;
}

// The shape of each row over its sizes, where a terminal can show it.
static void print_sparklines(const struct matrix *m)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    double *v = calloc((size_t)m->col.n + 1, sizeof *v);
    if (!v)
        buf_fail(&b); // it is said at the end
    char first[24], last[24], label[32];
    str_from_bytes((uint64_t)m->col.values[0], first, sizeof first);
    str_from_bytes((uint64_t)m->col.values[m->col.n - 1], last, sizeof last);
    buf_fmt(&b, "\n%s, from %s to %s\n", m->name, first, last);
    for (int row = 0; v && row < m->row.n; row++) {
        for (int c = 0; c < m->col.n; c++)
            v[c] = matrix_at(m, row, c)->v[CELL_MEDIAN];
        axis_label(&m->row, row, label, sizeof label);
        buf_fmt(&b, "%s %-5s ", m->row.name, label);
        print_sparkline(&b, v, m->col.n);
        if (isfinite(v[0]) && isfinite(v[m->col.n - 1]))
            buf_fmt(&b, "  %.2f to %.2f %s", v[0], v[m->col.n - 1], m->unit);
        buf_char(&b, '\n');
    }
    free(v);
    print_buf(&b);
}

static bool has_sparklines(const struct matrix *m)
{
    return strcmp(m->col.unit, "bytes") == 0 && m->col.n >= SPARK_LEAST && m->row.n <= SPARK_ROWS;
}

static void print_tables(const struct cli *cli, const struct result *r)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    double disturbed = samples_disturbed(r->matrices, r->n_matrices);
    char quality[120];
    if (disturbed >= SAMPLES_DOUBTFUL) {
        snprintf(quality, sizeof quality,
                 "doubtful: %.0f %% of the samples were disturbed (notes below the table)",
                 100 * disturbed);
        text_line("quality", quality);
    }
    result_tables_write(r->matrices, r->n_matrices, r->ranks, r->n_ranks, &b);
    result_notes_write(r->matrices, r->n_matrices, r->ranks, r->n_ranks, &b);
    print_buf(&b);
    for (int i = 0; i < r->n_matrices && print_unicode(cli); i++)
        if (has_sparklines(&r->matrices[i]))
            print_sparklines(&r->matrices[i]);
}

static void result_print_lines(const struct result *r, bool csv)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    for (int i = 0; i < r->n_matrices; i++) {
        if (csv && i == 0)
            matrix_write_csv_head(&r->matrices[i], &b);
        (csv ? matrix_write_csv : matrix_write_ndjson)(&r->matrices[i], &b);
    }
    print_buf(&b);
}

int result_print(const struct cli *c, int64_t id, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    if (get_matrices(c, id, &answer, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON) {
        print_json(answer);
        return 0;
    }
    struct result r CLEANUP(result_fini) = {0};
    if (result_read(&r, answer, err) < 0)
        return -1;
    if (c->output == OUTPUT_TABLE)
        print_tables(c, &r);
    else
        result_print_lines(&r, c->output == OUTPUT_CSV);
    return 0;
}
