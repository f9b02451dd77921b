// SPDX-License-Identifier: Apache-2.0
// The history: runs, show, matrix, log, delete.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/exits.h"
#include "client/follow.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"
#include "client/when.h"

struct runs_flags {
    char state[64], benchmark[64], since[40], node[64], label[64];
    int64_t limit;
};

static const struct param runs_params[] = {
    {.name = "state",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct runs_flags, state),
     .room = sizeof((struct runs_flags *)0)->state,
     .def = "",
     .metavar = "STATE",
     .help =
         "Only runs in this state: queued, running, succeeded, failed, canceled or interrupted."},
    {.name = "benchmark",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct runs_flags, benchmark),
     .room = sizeof((struct runs_flags *)0)->benchmark,
     .def = "",
     .metavar = "NAME",
     .help = "Only runs of this benchmark."},
    {.name = "since",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct runs_flags, since),
     .room = sizeof((struct runs_flags *)0)->since,
     .def = "",
     .metavar = "TIME",
     .help = "Only runs requested at or after this time: 2d, 12h, yesterday, 2026-01-31 or "
             "2026-01-31T06:00:00Z (UTC)."},
    {.name = "node",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct runs_flags, node),
     .room = sizeof((struct runs_flags *)0)->node,
     .def = "",
     .metavar = "NAME",
     .help = "Only runs of this node."},
    {.name = "label",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct runs_flags, label),
     .room = sizeof((struct runs_flags *)0)->label,
     .def = "",
     .metavar = "TEXT",
     .help = "Only runs with this label."},
    {.name = "limit",
     .kind = PARAM_INT,
     .offset = offsetof(struct runs_flags, limit),
     .min = 1,
     .max = 100000,
     .def = "20",
     .help = "Maximum number of runs."},
};
const struct param_table runs_options = {runs_params, COUNT_OF(runs_params)};

struct show_flags {
    bool follow, notes;
};

static const struct param show_params[] = {
    {.name = "follow",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct show_flags, follow),
     .def = "false",
     .help = "Wait until the run has finished."},
    {.name = "notes",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct show_flags, notes),
     .def = "false",
     .help = "Print every condition and every note instead of the quality line alone."},
};
const struct param_table show_options = {show_params, COUNT_OF(show_params)};

// Minutes are enough for a list that has to fit 80 columns.
static const char *run_time(const char *time, bool short_form, char out[static WHEN_ROOM])
{
    enum { TO_MINUTES = 16 };
    when_show(time, out);
    if (short_form && strlen(out) > TO_MINUTES + 1)
        snprintf(out + TO_MINUTES, WHEN_ROOM - TO_MINUTES, "Z");
    return out;
}

// A table shows imports by the time and node of their measurement; programs get each fact apart.
static void cmd_runs_add_run(struct grid *g, const struct json *r, bool table)
{
    const struct json *spec = json_get(r, "spec");
    double seconds = json_get_number(r, "seconds", -1);
    const char *source = json_get_text(r, "source", "measured");
    const char *created = json_get_text(r, "created", "?");
    const char *measured = json_get_text(r, "measured", "");
    char time[WHEN_ROOM], sizes[200];
    str_sizes_text(json_get_text(spec, "size", ""), sizes, sizeof sizes);
    grid_cell(g, "%lld", (long long)json_get_i64(r, "id", 0));
    grid_cell(g, "%s", json_get_text(r, "state", "?"));
    grid_cell(g, "%s", run_time(table && *measured ? measured : created, table, time));
    grid_cell(g, "%s", json_get_text(spec, "benchmark", "?"));
    grid_cell(g, "%s", table ? sizes : json_get_text(spec, "size", ""));
    grid_cell(g, "%lld", (long long)json_get_i64(r, "ranks", 0));
    grid_cell(g, "%s%s", json_get_text(r, "node", ""),
              table && strcmp(source, "imported") == 0 ? ", imported" : "");
    if (seconds >= 0)
        grid_cell(g, "%.1f", seconds);
    else
        grid_cell(g, "%s", "");
    const char *label = json_get_text(r, "label", ""), *note = json_get_text(spec, "note", "");
    grid_cell(g, "%s", table && !*label ? note : label);
    grid_cell(g, "%s", note);
    grid_cell(g, "%s", run_time(measured, false, time));
    grid_cell(g, "%s", source);
}

static void page_path(struct buf *path, const struct runs_flags *f, const char *since, int64_t left,
                      const char *cursor)
{
    buf_fmt(path, "/v1/runs?limit=%lld", (long long)(left > 200 ? 200 : left));
    const struct {
        const char *name, *value;
    } filters[] = {{"state", f->state}, {"benchmark", f->benchmark}, {"since", since},
                   {"node", f->node},   {"label", f->label},         {"cursor", cursor}};
    for (size_t i = 0; i < COUNT_OF(filters); i++)
        if (*filters[i].value) {
            buf_fmt(path, "&%s=", filters[i].name);
            http_escape(path, filters[i].value);
        }
}

// One page into the grid, or straight out where the form is JSON lines. *next "" at the end.
static int one_page(const struct cli *c, const struct runs_flags *f, const char *since,
                    int64_t *left, char *next, size_t room, struct grid *g, struct jsonw *all,
                    struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *page = NULL;
    page_path(&path, f, since, *left, next);
    if (http_json(c, "GET", buf_text(&path), NULL, &page, err) < 0)
        return -1;
    for (const struct json *r = json_first(json_get(page, "runs")); r && *left > 0;
         r = json_next(r), --*left)
        if (c->output == OUTPUT_JSON)
            json_write(r, all, NULL);
        else if (c->output == OUTPUT_NDJSON)
            print_json(r);
        else
            cmd_runs_add_run(g, r, c->output == OUTPUT_TABLE);
    const char *more = json_get_text(page, "next", "");
    if (strcmp(more, next) == 0 && *more)
        return err_set(err, ERR_UNREACHABLE, "url", "the server repeats a page");
    snprintf(next, room, "%s", more);
    return 0;
}

static bool runs_are_narrowed(const struct runs_flags *f)
{
    return *f->state || *f->benchmark || *f->since || *f->node || *f->label;
}

int cmd_runs(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct column columns[] = {
        {"id", "ID", true},
        {"state", "STATE", false},
        {"created", "MEASURED", false},
        {"benchmark", "BENCHMARK", false},
        {"size", "SIZE", false, true},
        {"ranks", "RANKS", true},
        {"node", "NODE", false, true},
        {"seconds", "TIME/s", true},
        {"label", "LABEL OR NOTE", false, true},
        {.name = "note"},
        {.name = "measured"},
        {.name = "source"},
    };
    const struct runs_flags *f = i->options;
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    CLEANUP_BUF struct buf all = BUF_INIT;
    struct jsonw w = jsonw_to(&all);
    char next[200] = "";
    int64_t left = f->limit;
    char since[WHEN_ROOM];
    if (when_read(f->since, clock_wall_ms(), "since", since, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    jsonw_array(&w, "runs");
    do {
        if (one_page(c, f, since, &left, next, sizeof next, &g, &w, err) < 0)
            return -1;
    } while (*next && left > 0);
    jsonw_end(&w);
    jsonw_end(&w);
    buf_char(&all, '\n');
    if (c->output == OUTPUT_JSON)
        print_buf(&all);
    else if (c->output == OUTPUT_TABLE && !g.n_rows)
        puts(runs_are_narrowed(f) ? "No run matches. numaprobe runs lists all."
                                  : "No run is stored. Start one with: numaprobe run");
    else if (c->output != OUTPUT_NDJSON)
        grid_print(&g, c);
    return 0;
}

int cmd_show(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct show_flags *f = i->options;
    CLEANUP_JSON struct json *run = NULL;
    int64_t id;
    if (result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    if ((f->follow ? follow(c, id, &run, err) : result_get_run(c, id, 0, &run, err)) < 0)
        return err->code == ERR_TIMEOUT ? CLI_EXIT_INTERRUPTED : -1;
    if (c->output == OUTPUT_JSON || c->output == OUTPUT_NDJSON) {
        print_json(run);
        return 0;
    }
    return result_print_run(c, run, f->notes, err);
}

int cmd_matrix(struct cli *c, const struct invocation *i, struct err *err)
{
    int64_t id;
    return result_find(c, i->operands, i->n, &id, err) < 0 ? -1 : result_print(c, id, err);
}

int cmd_log(struct cli *c, const struct invocation *i, struct err *err)
{
    int64_t id;
    char path[80];
    CLEANUP_REPLY struct http_reply r = {0};
    if (print_refuse_all_but_text(c, "a log is", err) < 0 ||
        result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/runs/%lld/log", (long long)id);
    if (http_call(c, "GET", path, NULL, NULL, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    if (!r.body.len)
        fprintf(stderr, "numaprobe: the processes of run %lld printed nothing\n", (long long)id);
    // Line by line, so that line ends survive and everything else is made safe.
    char *rest = r.body.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        CLEANUP_BUF struct buf safe = BUF_INIT;
        buf_plain(&safe, line);
        if (rest || safe.len)
            printf("%s\n", buf_text(&safe));
    }
    return 0;
}

int cmd_delete(struct cli *c, const struct invocation *i, struct err *err)
{
    int64_t id;
    char path[80];
    CLEANUP_REPLY struct http_reply r = {0};
    if (result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/runs/%lld", (long long)id);
    if (http_call(c, "DELETE", path, NULL, NULL, &r, err) < 0)
        return -1;
    if (r.status < 200 || r.status > 299)
        return http_problem(&r, err);
    if (c->output == OUTPUT_TABLE) // the daemon's answer is empty
        printf("run %lld is deleted\n", (long long)id);
    return 0;
}
