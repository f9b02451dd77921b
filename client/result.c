// SPDX-License-Identifier: Apache-2.0
// Finds the run that is meant, gets it with its matrices, and prints it by
// formats/result_print.c.
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
#include "client/when.h"
#include "formats/result_print.h"
#include "formats/result_table.h"
#include "model/run.h"

enum { QUALITY_GOOD_PERCENT = 5 };         // of samples disturbed, and still good
enum { SPARK_ROWS = 16, SPARK_LEAST = 4 }; // curves shown, and the values that make one

int result_run_id(const struct json *run, int64_t *id, struct err *err)
{
    *id = json_get_i64(run, "id", 0);
    return *id > 0 ? 0 : err_set(err, ERR_UNREACHABLE, "url", "the response has no run");
}

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
                             "no run of node %.63s is stored (see numaprobe runs)", node);
}

static int find_latest(const struct cli *c, int64_t *id, struct err *err)
{
    CLEANUP_JSON struct json *run = NULL;
    if (http_json(c, "GET", "/v1/runs/latest", NULL, &run, err) < 0)
        return err->code != ERR_NOT_FOUND
                   ? -1
                   : err_set(err, ERR_NOT_FOUND, "",
                             "this node has not measured a run yet (numaprobe run). Name an "
                             "imported run by its number (numaprobe runs) or by last@NODE");
    return result_run_id(run, id, err);
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
                       "\"%.40s\" is not a run: use its number, last, or last@NODE", operands[0]);
    return 0;
}

int result_get_run(const struct cli *c, int64_t id, int wait_s, struct json **run, struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, wait_s ? "/v1/runs/%lld?wait=%d" : "/v1/runs/%lld", (long long)id,
             wait_s);
    return http_json(c, "GET", path, NULL, run, err);
}

// "latency, size 1M-64M, mode both, pages thp": the benchmark and what of it matters most.
static void what_line(const struct json *spec, char *line, size_t room)
{
    static const char *const told[] = {"size",    "mode", "kernel", "sweep", "pairs", "definition",
                                       "targets", "load", "mix",    "pages", "method"};
    snprintf(line, room, "%s", json_get_text(spec, "benchmark", "?"));
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        const char *value = json_get_text(spec, told[i], NULL);
        char sizes[200];
        if (!value || !*value)
            continue;
        if (strcmp(told[i], "size") == 0) {
            str_sizes_text(value, sizes, sizeof sizes);
            value = sizes;
        }
        snprintf(line + strlen(line), room - strlen(line), ", %s %s", told[i], value);
        if (strcmp(told[i], "pairs") == 0 && json_get_i64(spec, "pairs_most", 0) > 0)
            snprintf(line + strlen(line), room - strlen(line), " (%lld at most)",
                     (long long)json_get_i64(spec, "pairs_most", 0));
    }
}

// "2 ranks"; of a run that has none, whether it can still get some. It is planned when it starts.
static void ranks_text(const struct json *run, char *text, size_t room)
{
    int64_t n = json_get_i64(run, "ranks", 0);
    int planned = json_count(json_get(json_get(run, "plan"), "ranks"));
    bool ended = json_text(json_get(run, "finished")) != NULL;
    if (n > 0 || json_get_i64(run, "cells", 0) > 0)
        snprintf(text, room, "%lld rank%s", (long long)n, str_plural(n));
    else if (!planned)
        snprintf(text, room, "no rank %s", ended ? "started" : "yet");
    else if (ended)
        snprintf(text, room, "no rank reported, %d planned", planned);
    else
        snprintf(text, room, "%d rank%s planned", planned, str_plural(planned));
}

static void where_line(const struct json *run, char *line, size_t room)
{
    char ranks[60];
    const struct json *spec = json_get(run, "spec");
    const char *cpus = json_get_text(spec, "cpus", "");
    ranks_text(run, ranks, sizeof ranks);
    snprintf(line, room, "%s, %s (%s), memory %s", json_get_text(run, "node", "?"), ranks,
             *cpus ? cpus : json_get_text(spec, "ranks", "?"), json_get_text(spec, "numa", "?"));
}

static void when_line(const struct json *run, char *line, size_t room)
{
    char time[WHEN_ROOM];
    double seconds = json_get_number(run, "seconds", -1);
    bool imported = strcmp(json_get_text(run, "source", ""), "imported") == 0;
    snprintf(line, room, seconds >= 0 ? "%s%s, took %.1f s" : "%s%s",
             when_show(json_get_text(run, imported ? "measured" : "created", "?"), time),
             imported ? " (imported)" : "", seconds);
}

// What the daemon has stored of the run, and cannot read.
static void print_unreadable(const struct cli *c, const struct json *run)
{
    const char *label = "unreadable";
    for (const struct json *u = json_first(json_get(run, "unreadable")); u; u = json_next(u)) {
        char line[300];
        snprintf(line, sizeof line, "%s: %s", json_get_text(u, "member", "?"),
                 json_get_text(u, "text", ""));
        print_labelled(c, label, line);
        label = "";
    }
}

static void print_head(const struct cli *c, const struct json *run)
{
    const struct json *spec = json_get(run, "spec"), *error = json_get(run, "error");
    char line[300];
    const char *state = json_get_text(run, "state", "?");
    bool never =
        strcmp(state, run_state_names[RUN_CANCELED]) == 0 && !json_text(json_get(run, "started"));
    snprintf(line, sizeof line, "%lld: %s%s", (long long)json_get_i64(run, "id", 0), state,
             never ? " before it started" : "");
    print_labelled(c, "run", line);
    print_labelled(c, "why", json_get_text(error, "text", ""));
    print_labelled(c, "waiting", json_get_text(json_get(run, "waiting"), "text", ""));
    what_line(spec, line, sizeof line);
    print_labelled(c, "what", line);
    where_line(run, line, sizeof line);
    print_labelled(c, "where", line);
    when_line(run, line, sizeof line);
    print_labelled(c, "when", line);
    print_labelled(c, "method", json_get_text(run, "method", ""));
    print_labelled(c, "label", json_get_text(run, "label", ""));
    print_labelled(c, "note", json_get_text(spec, "note", ""));
    print_unreadable(c, run);
}

// Prints the conditions from a severity on. Returns how many are left out.
static int print_conditions(const struct cli *c, const struct json *run,
                            enum condition_severity from)
{
    const char *label = "conditions";
    int left_out = 0;
    for (const struct json *k = json_first(json_get(run, "conditions")); k; k = json_next(k)) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        struct condition one;
        if (condition_from_json(&one, k, NULL) < 0)
            continue;
        if (one.severity < from) {
            left_out++;
            continue;
        }
        condition_line(&one, &text);
        print_labelled(c, label, buf_text(&text));
        label = "";
    }
    return left_out;
}

// "fair: 12 % of samples disturbed, 3 of 14 cells not precise; 4 notes (numaprobe show 7 --notes)":
// one line for all that keeps a reader from believing the numbers.
static void print_quality(const struct cli *c, const struct result *r, int64_t id, int notes)
{
    double disturbed = 100 * samples_disturbed(r->matrices, r->n_matrices);
    int cells = 0, loose = 0;
    char line[200];
    for (int i = 0; i < r->n_matrices; i++)
        loose += result_cells_loose(&r->matrices[i], &cells);
    bool poor = disturbed >= 100 * SAMPLES_DOUBTFUL || 2 * loose > cells;
    bool good = !(disturbed >= QUALITY_GOOD_PERCENT) && !loose;
    const char *word = poor ? "poor" : good ? "good" : "fair";
    int n = isfinite(disturbed)
                ? snprintf(line, sizeof line, "%s: %.0f %% of samples disturbed", word, disturbed)
                : snprintf(line, sizeof line, "not known: no samples are counted");
    if (loose)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %d of %d cells not precise", loose,
                      cells);
    if (notes)
        snprintf(line + n, sizeof line - (size_t)n, "; %d note%s (numaprobe show %lld --notes)",
                 notes, str_plural(notes), (long long)id);
    print_labelled(c, "quality", line);
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
            return err_set(err, ERR_UNREACHABLE, "url", "the response has more than %d matrices",
                           RESULT_MATRICES_MAX);
        struct matrix *to = &r->matrices[r->n_matrices];
        if (matrix_from_json(to, m, err) < 0)
            return err_prefix(err, "the response of the server");
        r->n_matrices++;
        if (!result_plain(to->name) || !result_plain(to->unit) || !result_plain(to->quantity) ||
            !result_plain(to->row.name) || !result_plain(to->col.name) ||
            !result_plain(to->row.unit) || !result_plain(to->col.unit))
            return err_set(err, ERR_UNREACHABLE, "url", "the response has an invalid matrix name");
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
static void print_sparklines(const struct cli *cli, const struct matrix *m)
{
    double *v = calloc((size_t)m->col.n + 1, sizeof *v);
    char first[24], last[24], label[32];
    str_from_bytes((uint64_t)m->col.values[0], first, sizeof first);
    str_from_bytes((uint64_t)m->col.values[m->col.n - 1], last, sizeof last);
    printf("\n%s, from %s to %s\n", m->name, first, last);
    if (!v) {
        CLEANUP_BUF struct buf none = BUF_INIT;
        buf_fail(&none); // it is said at the end
    }
    for (int row = 0; v && row < m->row.n; row++) {
        CLEANUP_BUF struct buf b = BUF_INIT;
        for (int c = 0; c < m->col.n; c++)
            v[c] = matrix_at(m, row, c)->v[CELL_MEDIAN];
        axis_label(&m->row, row, label, sizeof label);
        buf_fmt(&b, "%s %-5s ", m->row.name, label);
        print_sparkline(&b, v, m->col.n);
        if (isfinite(v[0]) && isfinite(v[m->col.n - 1]))
            buf_fmt(&b, "  %.2f to %.2f %s", v[0], v[m->col.n - 1], m->unit);
        print_folded(cli, buf_text(&b), "", "    ");
    }
    free(v);
}

static bool has_sparklines(const struct matrix *m)
{
    return strcmp(m->col.unit, "bytes") == 0 && m->col.n >= SPARK_LEAST && m->row.n <= SPARK_ROWS;
}

// A line per rank of hierarchy, as the report has it: which level is which cache depends on the
// topology and the page size then, which the daemon keeps.
static void print_terms(const struct cli *c, int64_t id)
{
    CLEANUP_JSON struct json *answer = NULL;
    struct err err;
    char path[80];
    int n = 0;
    snprintf(path, sizeof path, "/v1/runs/%lld/report", (long long)id);
    if (http_json(c, "GET", path, NULL, &answer, &err) < 0) {
        fprintf(stderr, "numaprobe: the caches and latencies of each rank are left out: %s\n",
                err.text);
        return;
    }
    const struct json *list = json_get(json_get(answer, "report"), "findings");
    for (const struct json *k = json_first(list); k; k = json_next(k)) {
        if (strcmp(json_get_text(k, "kind", ""), "rank") != 0)
            continue;
        print_paragraph(c, json_get_text(k, "text", ""), 0);
        n++;
    }
    if (n)
        putchar('\n');
}

static void print_tables(const struct cli *cli, int64_t id, const struct result *r)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    for (int i = 0; i < r->n_matrices; i++)
        if (strcmp(r->matrices[i].name, "base_pages") == 0) // hierarchy's
            print_terms(cli, id);
    result_tables_write(r->matrices, r->n_matrices, r->ranks, r->n_ranks, print_width(cli), &b);
    print_buf(&b);
    for (int i = 0; i < r->n_matrices && print_unicode(cli); i++)
        if (has_sparklines(&r->matrices[i]))
            print_sparklines(cli, &r->matrices[i]);
}

// A line each. Returns how many there are; prints them if that is wanted.
static int result_print_notes(const struct cli *c, const struct result *r, bool wanted)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    int n = 0;
    result_notes_write(r->matrices, r->n_matrices, r->ranks, r->n_ranks, &b);
    char *rest = b.data;
    for (char *line; rest && (line = strsep(&rest, "\n")) && *line; n++)
        if (wanted)
            print_paragraph(c, line, 4);
    return n;
}

static void result_print_lines(const struct result *r, bool csv)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    if (csv)
        matrices_write_csv(r->matrices, r->n_matrices, &b);
    else
        for (int i = 0; i < r->n_matrices; i++)
            matrix_write_ndjson(&r->matrices[i], &b);
    print_buf(&b);
}

static void result_print_numbers(const struct cli *c, int64_t id, const struct result *r)
{
    if (c->output == OUTPUT_TABLE)
        print_tables(c, id, r);
    else
        result_print_lines(r, c->output == OUTPUT_CSV);
}

int result_print(const struct cli *c, int64_t id, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    struct result r CLEANUP(result_fini) = {0};
    if (get_matrices(c, id, &answer, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON) {
        print_json(answer);
        return 0;
    }
    if (result_read(&r, answer, err) < 0)
        return -1;
    result_print_numbers(c, id, &r);
    return 0;
}

int result_print_run(const struct cli *c, const struct json *run, bool notes, struct err *err)
{
    int64_t id = json_get_i64(run, "id", 0);
    bool measured = json_get_i64(run, "cells", 0) > 0;
    struct result r CLEANUP(result_fini) = {0};
    if (c->output != OUTPUT_TABLE && measured)
        return result_print(c, id, err);
    if (c->output != OUTPUT_TABLE) {
        result_print_lines(&r, c->output == OUTPUT_CSV); // the head alone
        return 0;
    }
    if (measured && result_fetch(c, id, &r, err) < 0)
        return -1;
    print_head(c, run);
    int left_out = print_conditions(c, run, notes ? SEVERITY_INFO : SEVERITY_ERROR);
    if (!measured)
        return 0;
    print_quality(c, &r, id, notes ? 0 : left_out + result_print_notes(c, &r, false));
    putchar('\n');
    result_print_numbers(c, id, &r);
    if (notes)
        result_print_notes(c, &r, true);
    return 0;
}
