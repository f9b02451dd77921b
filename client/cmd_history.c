// SPDX-License-Identifier: Apache-2.0
// A metric over runs: a table, a small picture, and since when it is another.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/setup_change.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/str.h"
#include "base/suggest.h"
#include "client/commands.h"
#include "client/follow.h"
#include "client/http.h"
#include "client/print.h"
#include "client/when.h"

enum { SPARK_MAX = 60 }; // characters: a line of a terminal with its ends

struct history_flags {
    char node[64], variant[512], since[40], until[40];
    int64_t limit;
};

#define FLAG(member, metavar_, help_)                                                              \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct history_flags, member),     \
        .room = sizeof((struct history_flags *)0)->member, .def = "", .metavar = metavar_,         \
        .help = help_                                                                              \
    }
static const struct param history_params[] = {
    FLAG(node, "NAME", "Only runs of this node. Default with a metric: the daemon's node."),
    FLAG(variant, "TEXT",
         "Only runs with these parameters, as history lists them. Default: those of the newest "
         "run."),
    FLAG(since, "TIME", "Measured at or after this time: 2d, 4w, yesterday, 2026-01-31."),
    FLAG(until, "TIME", "Measured before this time."),
    {.name = "limit",
     .kind = PARAM_INT,
     .offset = offsetof(struct history_flags, limit),
     .min = 1,
     .max = 10000,
     .def = "20",
     .help = "With a metric: maximum number of lines in the table. The sparkline and other "
             "formats have all."},
};
const struct param_table history_options = {history_params, COUNT_OF(history_params)};

static void cmd_history_add_query(struct buf *path, const char *name, const char *value)
{
    if (!*value)
        return;
    buf_fmt(path, "%c%s=", strchr(buf_text(path), '?') ? '&' : '?', name);
    http_escape(path, value);
}

static int history_add_time(struct buf *path, const char *name, const char *text, struct err *err)
{
    char time[WHEN_ROOM];
    if (when_read(text, clock_wall_ms(), name, time, err) < 0)
        return -1;
    cmd_history_add_query(path, name, time);
    return 0;
}

// --- Which metrics -----------------------------------------------------------------------------

static void print_series(const struct cli *c, const struct json *answer, bool narrowed)
{
    static const struct column columns[] = {
        {"metric", "metric", false},
        {"node", "node", false, true},
        {"last_value", "last", true},
        {"unit", "", false},
        {"count", "runs", true},
        {.name = "first", .title = "from", .spare = true},
        {.name = "last", .title = "to", .spare = true},
        {"variant", "measured with", false, true},
    };
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    const struct json *list = json_get(answer, "series");
    for (const struct json *s = json_first(list); s; s = json_next(s)) {
        int64_t count = json_get_i64(s, "count", -1);
        grid_cell(&g, "%s", json_get_text(s, "metric", "?"));
        grid_cell(&g, "%s", json_get_text(s, "node", "?"));
        grid_number(&g, json_get_number(s, "last_value", NAN));
        grid_cell(&g, "%s", json_get_text(s, "unit", ""));
        if (count >= 0)
            grid_cell(&g, "%lld", (long long)count);
        else
            grid_cell(&g, "%s", "many");
        grid_cell(&g, "%.10s", json_get_text(s, "first", "?"));
        grid_cell(&g, "%.10s", json_get_text(s, "last", "?"));
        grid_cell(&g, "%s", json_get_text(s, "variant", ""));
    }
    if (c->output == OUTPUT_TABLE && !json_first(list))
        puts(narrowed ? "No run with metrics is of this node and these parameters. "
                        "All are in: numaprobe history"
                      : "No run with metrics is stored. Start one with: numaprobe run");
    else
        grid_print(&g, c);
    if (c->output == OUTPUT_TABLE && json_get_bool(answer, "more_series", false))
        puts("There are more; narrow the list with --node.");
}

// --- One metric --------------------------------------------------------------------------------

static void add_point(struct grid *g, const struct json *p, const char *unit)
{
    static const char *const numbers[] = {"value", "lo", "hi"};
    grid_cell(g, "%lld", (long long)json_get_i64(p, "run", 0));
    char time[WHEN_ROOM];
    grid_cell(g, "%s", when_show(json_get_text(p, "measured", "?"), time));
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        double v = json_get_number(p, numbers[i], NAN);
        if (isfinite(v))
            grid_cell(g, "%.3f", v);
        else
            grid_cell(g, "%s", "");
    }
    grid_cell(g, "%s", unit);
}

static void print_points(const struct cli *c, const struct json *answer, int64_t limit)
{
    static const struct column columns[] = {
        {"run", "run", true},     {"measured", "measured", false},
        {"value", "value", true}, {"lo", "from", true},
        {"hi", "to", true},       {.name = "unit"}, // a table has it in its heading
    };
    const char *unit = json_get_text(answer, "unit", "");
    CLEANUP_GRID struct grid g;
    const struct json *points = json_get(answer, "points");
    int64_t skip = c->output == OUTPUT_TABLE ? json_count(points) - limit : 0;
    grid_init(&g, columns, COUNT_OF(columns));
    for (const struct json *p = json_first(points); p; p = json_next(p), skip--)
        if (skip <= 0)
            add_point(&g, p, unit);
    grid_print(&g, c);
}

static int cmd_history_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// More points than characters: each character is the median of its share, in place.
static int thin_out(double *v, int n)
{
    if (n <= SPARK_MAX)
        return n;
    for (int i = 0; i < SPARK_MAX; i++) {
        int from = (int)((int64_t)i * n / SPARK_MAX), to = (int)((int64_t)(i + 1) * n / SPARK_MAX);
        qsort(v + from, (size_t)(to - from), sizeof *v, cmd_history_by_value);
        v[i] = v[from + (to - from) / 2];
    }
    return SPARK_MAX;
}

static void print_picture(const struct cli *c, const struct json *answer)
{
    const struct json *points = json_get(answer, "points");
    int n = 0, room = json_count(points);
    CLEANUP_MEM double *v = calloc((size_t)room + 1, sizeof *v);
    CLEANUP_BUF struct buf line = BUF_INIT;
    if (!v)
        buf_fail(&line); // it is said at the end
    if (!v || room < 2 || !print_unicode(c))
        return;
    for (const struct json *p = json_first(points); p; p = json_next(p))
        v[n++] = json_get_number(p, "value", NAN);
    print_sparkline(&line, v, thin_out(v, n));
    printf("\n%s\n", buf_text(&line));
}

static void print_cause(const struct json *change)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    buf_plain(&line, json_get_text(change, "name", "?"));
    buf_str(&line, ": ");
    buf_plain(&line, json_get_text(change, "before", "not known"));
    buf_str(&line, " -> ");
    buf_plain(&line, json_get_text(change, "after", "not known"));
    printf("    %s\n", buf_text(&line));
}

// Where the set-up changed near the change, and not with its first run.
static void print_shift(const struct json *change)
{
    const struct setup_change cause = setup_change_from_json(change);
    char text[SETUP_CHANGE_TEXT];
    if (*setup_change_text(&cause, text))
        printf("    %s:\n", text);
}

static void cmd_history_print_changes(const struct json *answer)
{
    enum { LIST_FIGURES = 6 }; // as in the list
    const struct json *list = json_get(answer, "change_points");
    if (json_is_array(list) && !json_first(list))
        puts("\nNo significant change.");
    for (const struct json *p = json_first(list); p; p = json_next(p)) {
        const struct json *changes = json_get(p, "fact_changes");
        char time[WHEN_ROOM], before[FIGURES_ROOM], after[FIGURES_ROOM];
        printf("\n%+.1f %% since %s (run %lld): %s -> %s %s\n", json_get_number(p, "percent", NAN),
               when_show(json_get_text(p, "at", "?"), time), (long long)json_get_i64(p, "run", 0),
               figures_text(json_get_number(p, "before", NAN), LIST_FIGURES, before),
               figures_text(json_get_number(p, "after", NAN), LIST_FIGURES, after),
               json_get_text(answer, "unit", ""));
        if (!json_first(changes))
            puts(json_is_array(changes)
                     ? "    no recorded fact of the machine changed with it"
                     : "    the facts of the machine are not recorded for both sides");
        print_shift(p);
        for (const struct json *k = json_first(changes); k; k = json_next(k))
            print_cause(k);
    }
    if (json_is_array(list))
        puts("\na change needs 5 runs on each side");
}

// Of the whole run, not of this metric alone: what check says of it against the baseline that check
// takes, in the words of compare. Without a baseline for it there is none.
static void print_newest(const struct cli *c, const struct json *answer)
{
    const struct json *points = json_get(answer, "points");
    int64_t run = 0;
    for (const struct json *p = json_first(points); p; p = json_next(p))
        run = json_get_i64(p, "run", 0);
    char path[64];
    CLEANUP_JSON struct json *check = NULL;
    CLEANUP_BUF struct buf line = BUF_INIT;
    snprintf(path, sizeof path, "/v1/check?run=%lld", (long long)run);
    if (!run || http_json(c, "GET", path, NULL, &check, NULL) < 0 ||
        json_is_null(json_get(check, "overall"))) {
        puts("'numaprobe check' judges the newest run against a baseline");
        return;
    }
    buf_plain(&line, json_get_text(check, "text", ""));
    print_paragraph(c, buf_text(&line), 4);
}

static void print_detectable(const struct json *answer)
{
    const struct json *d = json_get(answer, "detectable");
    double one = json_get_number(d, "one_run_percent", NAN);
    if (isfinite(one))
        printf(
            "\n%lld runs at this level differ by %.1f %% (CV): a change of %.1f %% is detectable "
            "between two runs,\nof %.1f %% between three runs and three\n",
            (long long)json_get_i64(d, "runs", 0), json_get_number(d, "cv_percent", NAN), one,
            json_get_number(d, "three_run_percent", NAN));
}

static void print_history_head(const struct cli *c, const struct json *answer)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    const char *variant = json_get_text(answer, "variant", "");
    const char *unit = json_get_text(answer, "unit", "");
    print_paragraph(c, json_get_text(answer, "help", ""), 0);
    buf_fmt(&line, "node %s%s%s; %s", json_get_text(answer, "node", "?"), *variant ? ", " : "",
            variant, *unit ? unit : "ratio");
    print_paragraph(c, buf_text(&line), 4);
    putchar('\n');
}

static void print_history(const struct cli *c, const struct json *answer, int64_t limit)
{
    if (c->output == OUTPUT_TABLE)
        print_history_head(c, answer);
    print_points(c, answer, limit);
    if (c->output != OUTPUT_TABLE)
        return;
    print_picture(c, answer);
    cmd_history_print_changes(answer);
    print_detectable(answer);
    print_newest(c, answer);
}

// ---- Runs whose metrics are not computed yet

enum {
    POLL_MS = 250,
    WAIT_MS = 15000,   // for all of them: 60 imported runs take a second
    STALLED_MS = 3000, // without any progress: the daemon computes none while a run is measured
};

// Asks again until no run is missing, or for as long as there is progress. What is missing then is
// in the answer. Before the first run of a node has its metrics the answer is an error.
static int cmd_history_ask(const struct cli *c, const char *path, struct json **answer,
                           struct err *err)
{
    int64_t now = clock_mono_ms(), end = now + WAIT_MS, progress = now, least = INT64_MAX;
    for (;;) {
        bool failed = http_json(c, "GET", path, NULL, answer, err) < 0;
        if (failed && strcmp(err->member, "pending") != 0)
            return -1;
        int64_t pending = failed ? INT64_MAX - 1 : json_get_i64(*answer, "pending", 0);
        now = clock_mono_ms();
        progress = pending < least ? now : progress;
        least = pending < least ? pending : least;
        if (!pending || now >= end || now - progress >= STALLED_MS)
            return failed ? -1 : 0;
        json_free(steal_ptr(answer));
        follow_pause_until(now + POLL_MS);
    }
}

// The daemon does not know the metric: names the nearest that it has.
static int unknown_metric(const struct cli *c, const char *metric, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    struct suggestion near = SUGGESTION_FOR(metric);
    char text[SUGGEST_TEXT_ROOM];
    if (strcmp(err->member, "metric") != 0 ||
        http_json(c, "GET", "/v1/history", NULL, &answer, NULL) < 0)
        return -1;
    for (const struct json *s = json_first(json_get(answer, "series")); s; s = json_next(s)) {
        if (strcmp(json_get_text(s, "metric", ""), metric) == 0)
            return -1; // it is known: of other nodes
        suggest_consider(&near, json_get_text(s, "metric", ""));
    }
    return err_set(err, err->code, "", "%s \"%.60s\"%s (see numaprobe history)",
                   err->code == ERR_NOT_FOUND ? "no run of the node has the metric"
                                              : "unknown metric",
                   metric, suggest_text(&near, "", text, sizeof text));
}

static void warn_pending(const struct json *answer, bool of_metric)
{
    int64_t pending = json_get_i64(answer, "pending", 0);
    if (pending > 0)
        fprintf(stderr,
                "numaprobe: the metrics of %lld run%s are not computed yet: they are missing%s; "
                "repeat the command later\n",
                (long long)pending, str_plural(pending),
                of_metric ? ", and changes are not searched for" : "");
}

int cmd_history(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct history_flags *f = i->options;
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    if (i->n && !*i->operands[0])
        return err_set(err, ERR_USAGE, "", "the metric is empty (see numaprobe history)");
    buf_str(&path, "/v1/history");
    cmd_history_add_query(&path, "metric", i->n ? i->operands[0] : "");
    cmd_history_add_query(&path, "node", f->node);
    cmd_history_add_query(&path, "variant", f->variant);
    if (history_add_time(&path, "since", f->since, err) < 0 ||
        history_add_time(&path, "until", f->until, err) < 0)
        return -1;
    if (!buf_ok(&path))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
    if (cmd_history_ask(c, buf_text(&path), &answer, err) < 0)
        return i->n ? unknown_metric(c, i->operands[0], err) : -1;
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else if (i->n)
        print_history(c, answer, f->limit);
    else
        print_series(c, answer, *f->node || *f->variant);
    warn_pending(answer, i->n > 0);
    return 0;
}
