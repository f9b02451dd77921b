// SPDX-License-Identifier: Apache-2.0
// Runs whole, one after the other: never more than one is in memory. A topology is large and many
// runs share it, so it goes out with the first run that has it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/out_file.h"
#include "client/print.h"
#include "client/result.h"
#include "client/when.h"
#include "model/matrix.h"
#include "model/run.h"

enum { PAGE = 200, TOPOLOGIES_MAX = 256 };

struct export_flags {
    bool all;
    char since[40], until[40], node[64], file[512];
};

static const struct param export_params[] = {
    {.name = "all",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct export_flags, all),
     .def = "false",
     .help = "All finished runs."},
    PARAM_TEXT_ROW(
        struct export_flags, since, .metavar = "TIME",
        .help =
            "Only runs requested or imported at or after this time: 2d, yesterday, 2026-01-31."),
    PARAM_TEXT_ROW(struct export_flags, until, .metavar = "TIME",
                   .help = "Only runs requested or imported before this time."),
    PARAM_TEXT_ROW(struct export_flags, node, .metavar = "NAME", .help = "Only runs of this node."),
    PARAM_TEXT_ROW(struct export_flags, file, .metavar = "PATH",
                   .help = "Write to this file when the export is complete."),
};
const struct param_table export_options = {export_params, COUNT_OF(export_params)};

struct exporting {
    char since[WHEN_ROOM], until[WHEN_ROOM];
    const struct cli *cli;
    const struct export_flags *flags;
    FILE *out;
    int form; // enum output, never OUTPUT_TABLE
    int64_t *ids;
    size_t n, room;
    int64_t before;                      // the last run that was listed: pages go down from it
    char topologies[TOPOLOGIES_MAX][65]; // gone out already
    int n_topologies;
};

static void exporting_fini(struct exporting *e)
{
    free(e->ids);
}

// ---- which ----

static int add_id(struct exporting *e, int64_t id, struct err *err)
{
    if (e->n == e->room) {
        size_t room = e->room ? 2 * e->room : 256;
        int64_t *more = realloc(e->ids, room * sizeof *more);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %zu runs", room);
        e->ids = more;
        e->room = room;
    }
    e->ids[e->n++] = id;
    return 0;
}

static bool is_over(const struct json *run)
{
    int state = run_state_find(json_get_text(run, "state", ""));
    return state >= 0 && run_state_final((enum run_state)state);
}

static int list_endless(struct err *err)
{
    return err_set(err, ERR_UNREACHABLE, "url", "the server's pages of runs do not end");
}

static int add_runs(struct exporting *e, const struct json *runs, struct err *err)
{
    for (const struct json *r = json_first(runs); r; r = json_next(r)) {
        int64_t id = json_get_i64(r, "id", 0);
        if (id < 1 || id >= e->before)
            return list_endless(err);
        e->before = id;
        if (is_over(r) && add_id(e, id, err) < 0)
            return -1;
    }
    return 0;
}

static int list_page(struct exporting *e, char *next, size_t room, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *page = NULL;
    const struct {
        const char *name, *value;
    } filters[] = {
        {"since", e->since}, {"until", e->until}, {"node", e->flags->node}, {"cursor", next}};
    buf_fmt(&path, "/v1/runs?limit=%d", PAGE);
    for (size_t i = 0; i < COUNT_OF(filters); i++)
        if (*filters[i].value) {
            buf_fmt(&path, "&%s=", filters[i].name);
            http_escape(&path, filters[i].value);
        }
    if (http_json(e->cli, "GET", buf_text(&path), NULL, &page, err) < 0)
        return -1;
    const struct json *runs = json_get(page, "runs");
    snprintf(next, room, "%s", json_get_text(page, "next", ""));
    return *next && !json_count(runs) ? list_endless(err) : add_runs(e, runs, err);
}

// The list is newest first; runs go out oldest first, so that an import gives them their order.
static int cmd_export_list_ids(struct exporting *e, struct err *err)
{
    char next[200] = "";
    do {
        if (list_page(e, next, sizeof next, err) < 0)
            return -1;
    } while (*next);
    for (size_t i = 0; i < e->n / 2; i++) {
        int64_t kept = e->ids[i];
        e->ids[i] = e->ids[e->n - 1 - i];
        e->ids[e->n - 1 - i] = kept;
    }
    return 0;
}

// An export of no runs is one, as a list of them is; but a name may be mistyped.
static void say_nothing(const struct export_flags *f)
{
    bool range = *f->since || *f->until;
    fprintf(stderr, "numaprobe: no finished run%s%s%s\n", *f->node ? " is of node " : " is there",
            f->node, range ? " in this time" : "");
}

static int cmd_export_choose(struct exporting *e, const struct invocation *i, struct err *err)
{
    const struct export_flags *f = e->flags;
    int64_t now = clock_wall_ms();
    if (when_read(f->since, now, "since", e->since, err) < 0 ||
        when_read(f->until, now, "until", e->until, err) < 0)
        return -1;
    bool range = f->all || *f->since || *f->until || *f->node;
    if (i->n && range)
        return err_set(err, ERR_USAGE, "",
                       "name runs by number or by --all, --since, --until and --node, "
                       "not by both");
    if (!i->n && !range)
        return err_set(err, ERR_USAGE, "", "no run is named: use numbers, last, or --all");
    for (int k = 0; k < i->n; k++) {
        int64_t id;
        if (result_find(e->cli, &i->operands[k], 1, &id, err) < 0 || add_id(e, id, err) < 0)
            return -1;
    }
    if (i->n)
        return 0;
    if (cmd_export_list_ids(e, err) < 0)
        return -1;
    if (!e->n)
        say_nothing(f);
    return 0;
}

// ---- one run ----

static int get_run(const struct exporting *e, int64_t id, bool topology, struct json **out,
                   struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, "/v1/runs/%lld/export?topology=%s", (long long)id,
             topology ? "true" : "false");
    return http_json(e->cli, "GET", path, NULL, out, err);
}

// True once for each topology.
static bool first_of(struct exporting *e, const char *hash)
{
    for (int i = 0; i < e->n_topologies; i++)
        if (strcmp(e->topologies[i], hash) == 0)
            return false;
    if (e->n_topologies < TOPOLOGIES_MAX)
        snprintf(e->topologies[e->n_topologies++], sizeof e->topologies[0], "%.64s", hash);
    return *hash;
}

static int cmd_export_fetch(struct exporting *e, int64_t id, struct json **out, struct err *err)
{
    CLEANUP_JSON struct json *run = NULL;
    if (get_run(e, id, false, &run, err) < 0)
        return -1;
    const char *hash = json_get_text(json_get(run, "topology"), "hash", "");
    if (e->form != OUTPUT_CSV && first_of(e, hash)) {
        json_cleanup(&run);
        if (get_run(e, id, true, &run, err) < 0)
            return -1;
    }
    *out = steal_ptr(&run);
    return 0;
}

static void cmd_export_write_text(struct exporting *e, const struct json *run)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (e->out == stdout) {
        print_json(run);
        return;
    }
    struct jsonw w = jsonw_to(&text);
    json_write(run, &w, NULL);
    buf_char(&text, '\n');
    fwrite(buf_text(&text), 1, text.len, e->out);
}

static void cmd_export_csv_head(FILE *out)
{
    fputs("run,node,measured,benchmark,method,matrix,quantity,unit,row_axis,row,col_axis,col", out);
    for (int f = 0; f < CELL_FIELDS; f++)
        fprintf(out, ",%s", cell_fields[f].name);
    putc('\n', out);
}

static void export_csv_cell(struct buf *out, const char *text)
{
    buf_char(out, ',');
    csv_cell(out, text);
}

static void csv_matrix(const struct matrix *m, const char *before, FILE *out)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            const struct cell *cell = matrix_at(m, r, c);
            if (!isfinite(cell->v[CELL_MEDIAN]))
                continue;
            buf_str(&line, before);
            export_csv_cell(&line, m->name);
            export_csv_cell(&line, m->quantity);
            export_csv_cell(&line, m->unit);
            export_csv_cell(&line, m->row.name);
            axis_csv(&m->row, r, &line);
            export_csv_cell(&line, m->col.name);
            axis_csv(&m->col, c, &line);
            cell_write_csv(cell, &line);
            buf_char(&line, '\n');
        }
    fwrite(buf_text(&line), 1, line.len, out);
}

static int cmd_export_write_csv(struct exporting *e, int64_t id, const struct json *whole,
                                struct err *err)
{
    const struct json *run = json_get(whole, "run");
    CLEANUP_BUF struct buf before = BUF_INIT;
    buf_fmt(&before, "%lld", (long long)id);
    export_csv_cell(&before, json_get_text(run, "node", ""));
    export_csv_cell(&before, json_get_text(run, "measured", ""));
    export_csv_cell(&before, json_get_text(json_get(run, "spec"), "benchmark", ""));
    export_csv_cell(&before, json_get_text(run, "method", ""));
    for (const struct json *j = json_first(json_get(whole, "matrices")); j; j = json_next(j)) {
        struct matrix m CLEANUP(matrix_fini) = {0};
        if (matrix_from_json(&m, j, err) < 0)
            return err_prefix(err, "the response of %.100s", e->cli->url);
        csv_matrix(&m, buf_text(&before), e->out);
    }
    return 0;
}

// ---- all ----

static int cmd_export_write_runs(struct exporting *e, struct err *err)
{
    bool list = e->form == OUTPUT_JSON && e->n != 1;
    if (e->form == OUTPUT_CSV)
        cmd_export_csv_head(e->out);
    if (list)
        fputs("{\"runs\":[\n", e->out);
    for (size_t i = 0; i < e->n; i++) {
        CLEANUP_JSON struct json *run = NULL;
        if (cmd_export_fetch(e, e->ids[i], &run, err) < 0)
            return -1;
        if (list && i)
            putc(',', e->out);
        if (e->form != OUTPUT_CSV)
            cmd_export_write_text(e, run);
        else if (cmd_export_write_csv(e, e->ids[i], run, err) < 0)
            return -1;
        if (ferror(
                e->out)) // of the output, whoever ends the program says so, or that it is not read
            return e->out == stdout ? 0 : err_sys(err, "the export cannot be written");
    }
    if (list)
        fputs("]}\n", e->out);
    return 0;
}

static int cmd_export_write_file(struct exporting *e, struct err *err)
{
    CLEANUP_OUT_FILE struct out_file file = {0};
    if (out_file_open(&file, e->flags->file, 0666, true, err) < 0)
        return -1;
    e->out = file.file;
    if (cmd_export_write_runs(e, err) < 0 || out_file_keep(&file, err) < 0)
        return -1;
    fprintf(stderr, "%zu run%s written to %s\n", e->n, str_plural(e->n), e->flags->file);
    return 0;
}

int cmd_export(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_MEM struct exporting *e = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for an export");
    *e = (struct exporting){
        .cli = c, .flags = i->options, .out = stdout, .form = c->output, .before = INT64_MAX};
    int rc = cmd_export_choose(e, i, err);
    if (c->output == OUTPUT_TABLE)
        e->form = e->n == 1 ? OUTPUT_JSON : OUTPUT_NDJSON;
    if (rc == 0)
        rc = *e->flags->file ? cmd_export_write_file(e, err) : cmd_export_write_runs(e, err);
    exporting_fini(e);
    return rc;
}
