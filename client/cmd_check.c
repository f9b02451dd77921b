// SPDX-License-Identifier: Apache-2.0
// The newest run as a plugin of Nagios judges it: against a baseline, by the daemon, or against a
// reference of the hardware. A reference is a file of the client, so the client judges by it.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/class_reference.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/labels.h"
#include "client/print.h"
#include "client/problem.h"
#include "client/result.h"
#include "model/run.h"

struct check_flags {
    char run[80];
    double warn, crit;
    int64_t max_age;
    char reference[1024];
};

static const struct param check_params[] = {
    {.name = "run",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct check_flags, run),
     .room = sizeof((struct check_flags *)0)->run,
     .def = "latest",
     .metavar = "ID|last",
     .help = "Run to check. Default: the newest run with the parameters of the baseline."},
    {.name = "warn",
     .kind = PARAM_REAL,
     .offset = offsetof(struct check_flags, warn),
     .min = 0.1,
     .max = 1000,
     .def = "3",
     .unit = "%",
     .help = "WARNING if slower than the baseline by at least this much, as a whole or in part."},
    {.name = "crit",
     .kind = PARAM_REAL,
     .offset = offsetof(struct check_flags, crit),
     .min = 0.1,
     .max = 1000,
     .def = "10",
     .unit = "%",
     .help = "CRITICAL if slower than the baseline by at least this much."},
    {.name = "max_age",
     .kind = PARAM_INT,
     .offset = offsetof(struct check_flags, max_age),
     .min = 0,
     .max = INT32_MAX,
     .def = "0",
     .unit = "s",
     .help = "WARNING if the run is older than this. 0: any age."},
    {.name = "reference",
     .filled = true,
     .kind = PARAM_TEXT,
     .offset = offsetof(struct check_flags, reference),
     .room = sizeof((struct check_flags *)0)->reference,
     .def = "",
     .metavar = "FILE",
     .help = "Check against what this class of hardware does, as a reference (JSON) states it, "
             "instead of a baseline."},
};
const struct param_table check_options = {check_params, COUNT_OF(check_params)};

// --- Against a reference -----------------------------------------------------------------------

enum {
    REFERENCE_BYTES_MAX = 32 << 20,
    NEWEST_OF_EACH = 10, // runs of a benchmark, among which one is looked for that compares
};

static const char *const state_names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

// The verdict on one run, or why there is none.
struct reference_answer {
    struct class_reference_verdict verdict;
    const struct summary *run; // NULL: there is none
    int runs;                  // that were judged
    struct run_age age;
};

static int read_reference(const char *path, struct class_reference *out, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_JSON struct json *document = NULL;
    CLEANUP_FILE FILE *f = fopen(path, "re");
    struct err why = {0};
    char block[1 << 14];
    size_t n;
    if (!f)
        return err_set(err, ERR_USAGE, "reference", "cannot open %.100s: %s", path,
                       strerror(errno));
    while ((n = fread(block, 1, sizeof block, f)) > 0 && text.len <= REFERENCE_BYTES_MAX)
        buf_add(&text, block, n);
    if (ferror(f))
        return err_set(err, ERR_USAGE, "reference", "cannot read %.100s: %s", path,
                       strerror(errno));
    buf_drop(&text, str_mark(buf_text(&text), text.len));
    if (!text.len)
        return err_set(err, ERR_USAGE, "reference",
                       "%.100s is empty; numaprobe fleet reference writes a reference", path);
    if (text.len > REFERENCE_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "reference", "%.100s has more than %d MiB", path,
                       REFERENCE_BYTES_MAX >> 20);
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "reference", "no memory for %.100s", path);
    if (!(document = json_parse(buf_text(&text), text.len, &why)) ||
        class_reference_read(out, document, &why) < 0)
        return err_set(err, why.code, "reference", "%.100s: %s%s%s", path, why.member,
                       *why.member ? " " : "", why.text);
    return 0;
}

// The run of --run; 0: the newest with the parameters of the baseline.
static int find_run(struct cli *c, const struct check_flags *f, int64_t *id, struct err *err)
{
    char run[sizeof f->run], *word = run;
    memcpy(run, f->run, sizeof run);
    *id = 0;
    if (strcmp(run, "latest") == 0 || result_find(c, &word, 1, id, err) == 0)
        return 0;
    return err_prefix(err, "--run");
}

static int get_summaries(struct cli *c, const char *path, struct summary_page *out, struct err *err)
{
    CLEANUP_JSON struct json *page = NULL;
    return http_json(c, "GET", path, NULL, &page, err) < 0 ? -1 : summary_page_read(page, out, err);
}

static int get_only_run(struct cli *c, int64_t id, struct summary_page *out, struct err *err)
{
    char path[120];
    snprintf(path, sizeof path, "/v1/runs?form=summary&limit=1&cursor=b%" PRId64,
             id < INT64_MAX ? id + 1 : id);
    if (get_summaries(c, path, out, err) < 0)
        return -1;
    if (out->n_runs && out->runs[0].id == id)
        return 0;
    summary_page_fini(out);
    return err_set(err, ERR_NOT_FOUND, "run", "there is no run %" PRId64, id);
}

// The newest succeeded runs of each benchmark. Fewer of each, if all have no room in a response:
// no benchmark is left out.
static int get_newest(struct cli *c, struct summary_page *out, struct err *err)
{
    for (int each = NEWEST_OF_EACH;; each /= 2) {
        char path[120];
        snprintf(path, sizeof path, "/v1/runs?form=summary&state=succeeded&per_benchmark=%d", each);
        if (get_summaries(c, path, out, err) < 0)
            return -1;
        if (!out->more || each == 1)
            return 0;
        summary_page_fini(out);
    }
}

// A newer run of the same benchmark and parameters stands for an older one.
static bool has_newer(const struct summary_page *p, int at)
{
    const struct summary *s = &p->runs[at];
    for (int i = 0; i < p->n_runs; i++) {
        const struct summary *o = &p->runs[i];
        if (o->id > s->id && o->state == RUN_SUCCEEDED && strcmp(o->benchmark, s->benchmark) == 0 &&
            strcmp(o->variant, s->variant) == 0 && strcmp(o->class_hash, s->class_hash) == 0)
            return true;
    }
    return false;
}

// An unknown verdict stands only where there is no other; of others the most severe, then the one
// that is farthest off.
static bool more_serious(const struct class_reference_verdict *a,
                         const struct class_reference_verdict *b)
{
    if ((a->state == REFERENCE_UNKNOWN) != (b->state == REFERENCE_UNKNOWN))
        return b->state == REFERENCE_UNKNOWN;
    return a->state != b->state ? a->state > b->state : a->slower > b->slower;
}

static int judge_runs(const struct summary_page *p, const struct class_reference *r,
                      const struct check_flags *f, struct reference_answer *out, struct err *err)
{
    *out = (struct reference_answer){.verdict = {.state = REFERENCE_UNKNOWN}, .age = {.s = -1}};
    snprintf(out->verdict.why, sizeof out->verdict.why, "there is no run that succeeded");
    for (int i = 0; i < p->n_runs; i++) {
        struct class_reference_verdict v;
        const struct summary *s = &p->runs[i];
        if (s->state != RUN_SUCCEEDED || has_newer(p, i))
            continue;
        const struct class_reference_run run = {s, s->layout < 0 ? NULL : &p->layouts[s->layout]};
        if (class_reference_judge(&v, r, &run, f->warn, f->crit, err) < 0)
            return -1;
        out->runs += v.state != REFERENCE_UNKNOWN;
        if (out->run && !more_serious(&v, &out->verdict))
            continue;
        out->run = s;
        out->verdict = v;
    }
    if (!out->run)
        return 0;
    int64_t ms = out->run->measured_ms ? out->run->measured_ms : out->run->finished_ms;
    out->age = run_age_at(clock_wall_ms(), ms, f->max_age);
    if (out->age.old && out->verdict.state == REFERENCE_OK)
        out->verdict.state = REFERENCE_WARNING;
    return 0;
}

static void reference_text(const struct reference_answer *a, const char *path, struct buf *out)
{
    const struct class_reference_verdict *v = &a->verdict;
    char age[32], dated[64];
    if (v->state == REFERENCE_UNKNOWN) {
        buf_fmt(out, "reference %s: %s", path, v->why);
        return;
    }
    print_duration(age, sizeof age, (double)a->age.s);
    snprintf(dated, sizeof dated, "%s old%s", age, a->age.old ? ", too old" : "");
    buf_fmt(out, "run %" PRId64 " of %s (%s) against reference %s: ", a->run->id, a->run->benchmark,
            a->age.ahead ? "dated in the future" : dated, path);
    if (v->worse)
        buf_fmt(out, "%d of %d metric%s significantly slower; ", v->worse, v->compared,
                str_plural(v->compared));
    else
        buf_fmt(out, "none of %d metric%s significantly slower by the threshold; ", v->compared,
                str_plural(v->compared));
    buf_fmt(out, "worst %s %s%s%s, %+.1f %% of %s (%d node%s, spread %.1f %%)", v->worst->name,
            FIGURES(v->value), *v->worst->unit ? " " : "", v->worst->unit,
            percent_written(v->percent), FIGURES(v->worst->median), v->worst->nodes,
            str_plural(v->worst->nodes), 100 * v->worst->spread);
}

static void reference_line(const struct reference_answer *a, const struct check_flags *f,
                           const char *text, struct buf *out)
{
    buf_fmt(out, "NUMAPROBE %s - %s", state_names[a->verdict.state], text);
    if (a->verdict.worst)
        buf_fmt(out, " | worst=%.2f%%;%g;%g age=%" PRId64 "s;", 100 * expm1(a->verdict.slower),
                f->warn, f->crit, a->age.s);
    if (a->verdict.worst && f->max_age)
        buf_fmt(out, "%" PRId64, f->max_age);
}

static void write_reference_worst(const struct class_reference_verdict *v, struct jsonw *w)
{
    if (!v->worst) {
        jsonw_null(w, "worst");
        return;
    }
    jsonw_object(w, "worst");
    jsonw_text(w, "metric", v->worst->name);
    jsonw_text(w, "unit", v->worst->unit);
    jsonw_fixed(w, "value", v->value, 6);
    jsonw_fixed(w, "median", v->worst->median, 6);
    jsonw_fixed(w, "percent", v->percent, 2);
    jsonw_fixed(w, "spread_percent", 100 * v->worst->spread, 3);
    jsonw_i64(w, "nodes", v->worst->nodes);
    jsonw_fixed(w, "q", v->q, 6);
    jsonw_end(w);
}

static void write_reference(const struct reference_answer *a, const struct check_flags *f,
                            const char *text, const char *line, struct jsonw *w)
{
    const struct class_reference_verdict *v = &a->verdict;
    jsonw_object(w, NULL);
    jsonw_text(w, "state", state_names[v->state]);
    jsonw_i64(w, "code", v->state);
    jsonw_text(w, "text", text);
    jsonw_text(w, "line", line);
    jsonw_text(w, "reference", f->reference);
    jsonw_text(w, "benchmark", a->run ? a->run->benchmark : NULL);
    if (a->run)
        jsonw_i64(w, "run", a->run->id);
    else
        jsonw_null(w, "run");
    jsonw_time(w, "measured", a->run ? a->run->measured_ms : 0);
    if (a->run)
        jsonw_i64(w, "age_s", a->age.s);
    else
        jsonw_null(w, "age_s");
    jsonw_i64(w, "runs", a->runs);
    jsonw_fixed(w, "warn_percent", f->warn, 2);
    jsonw_fixed(w, "crit_percent", f->crit, 2);
    jsonw_i64(w, "metrics", v->compared);
    jsonw_i64(w, "metrics_worse", v->worse);
    write_reference_worst(v, w);
    jsonw_end(w);
}

// The same members as /v1/check has, where both have them.
static int reference_document(const struct reference_answer *a, const struct check_flags *f,
                              struct json **out, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT, line = BUF_INIT, written = BUF_INIT;
    reference_text(a, f->reference, &text);
    reference_line(a, f, buf_text(&text), &line);
    struct jsonw w = jsonw_to(&written);
    write_reference(a, f, buf_text(&text), buf_text(&line), &w);
    *out = json_parse(buf_text(&written), written.len, err);
    return *out ? 0 : -1;
}

static int check_reference(struct cli *c, const struct check_flags *f, int64_t id,
                           struct json **out, struct err *err)
{
    struct class_reference r;
    struct summary_page page;
    struct reference_answer answer;
    if (f->crit < f->warn)
        return err_set(err, ERR_USAGE, "crit", "--crit must be at least --warn (%g)", f->warn);
    if (read_reference(f->reference, &r, err) < 0)
        return -1;
    int rc = id ? get_only_run(c, id, &page, err) : get_newest(c, &page, err);
    if (rc == 0) {
        rc = judge_runs(&page, &r, f, &answer, err);
        if (rc == 0 && id && !answer.run)
            snprintf(answer.verdict.why, sizeof answer.verdict.why,
                     "run %" PRId64 " did not succeed", id);
        if (rc == 0)
            rc = reference_document(&answer, f, out, err);
        summary_page_fini(&page);
    }
    class_reference_fini(&r);
    return rc;
}

// --- Against a baseline ------------------------------------------------------------------------

static int check_path(const struct check_flags *f, int64_t run, const char *name, struct buf *path,
                      struct err *err)
{
    buf_fmt(path, "/v1/check?warn=%g&crit=%g", f->warn, f->crit);
    if (run)
        buf_fmt(path, "&run=%" PRId64, run);
    if (f->max_age)
        buf_fmt(path, "&max_age=%lld", (long long)f->max_age);
    if (name) {
        buf_str(path, "&baseline=");
        http_escape(path, name);
    }
    return buf_ok(path) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
}

static int check_baseline(struct cli *c, const struct invocation *i, int64_t run, struct json **out,
                          struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    return check_path(i->options, run, i->n ? i->operands[0] : NULL, &path, err) < 0
               ? -1
               : http_json(c, "GET", buf_text(&path), NULL, out, err);
}

// --- The verdict, and its forms ----------------------------------------------------------------

// The one verdict, from whatever it is made against: a document with state, code, line and age_s.
// Returns its code, or -1 and an error.
static int check_judge(struct cli *c, const struct invocation *i, struct json **out,
                       struct err *err)
{
    const struct check_flags *f = i->options;
    if (*f->reference && i->n)
        return err_set(err, ERR_USAGE, "reference",
                       "a run is checked against a baseline or against --reference, not both");
    int64_t run;
    if (find_run(c, f, &run, err) < 0)
        return -1;
    int rc =
        *f->reference ? check_reference(c, f, run, out, err) : check_baseline(c, i, run, out, err);
    int64_t code = rc < 0 ? -1 : json_get_i64(*out, "code", -1);
    if (rc == 0 && (code < 0 || code >= (int64_t)COUNT_OF(state_names)))
        return err_set(err, ERR_UNREACHABLE, "url", "the response is not one of numaprobed's");
    return (int)code;
}

// What is not known has no label: the others still help a scheduler.
static void add_labels_of_node(struct cli *c, struct labels *l, struct buf *comment)
{
    CLEANUP_JSON struct json *topology = NULL, *node = NULL;
    struct summary_page page;
    const struct summary *run;
    struct err err = {0};
    double ns = 0;
    if (http_json(c, "GET", "/v1/topology", NULL, &topology, &err) == 0)
        labels_add_machine(l, topology);
    if (http_json(c, "GET", "/v1/node", NULL, &node, &err) == 0) {
        char hash[13]; // as it is shown everywhere
        const struct json *hardware = json_get(json_get(node, "fingerprint"), "hardware");
        snprintf(hash, sizeof hash, "%s", json_get_text(hardware, "hash", ""));
        labels_add(l, "hardware", hash);
    }
    if (get_newest(c, &page, &err) == 0) {
        if ((run = labels_add_latency(l, &page, &ns)))
            buf_fmt(comment, "latency of local memory: %.1f ns, run %" PRId64 " of %s\n", ns,
                    run->id, run->benchmark);
        summary_page_fini(&page);
    }
    if (err.code)
        problem_report("not all labels are known", &err);
}

static void add_whole(struct grid *g, const struct json *object, const char *member)
{
    int64_t n = 0;
    if (json_i64(json_get(object, member), &n))
        grid_cell(g, "%" PRId64, n);
    else
        grid_cell(g, "%s", "");
}

// One row, whatever the run was checked against. JSON has the details.
static void check_print_csv(const struct cli *c, const struct json *verdict)
{
    static const struct column columns[] = {{"state"},
                                            {"code", .number = true},
                                            {"benchmark"},
                                            {"run", .number = true},
                                            {"measured"},
                                            {"age_s", .number = true},
                                            {"baseline"},
                                            {"reference"},
                                            {"percent", .number = true},
                                            {"worst_percent", .number = true},
                                            {"text"}};
    static const char *const groups[] = {"overall", "worst"};
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    grid_cell(&g, "%s", json_get_text(verdict, "state", ""));
    add_whole(&g, verdict, "code");
    grid_cell(&g, "%s", json_get_text(verdict, "benchmark", ""));
    add_whole(&g, verdict, "run");
    grid_cell(&g, "%s", json_get_text(verdict, "measured", ""));
    add_whole(&g, verdict, "age_s");
    grid_cell(&g, "%s", json_get_text(verdict, "baseline", ""));
    grid_cell(&g, "%s", json_get_text(verdict, "reference", ""));
    for (size_t i = 0; i < COUNT_OF(groups); i++)
        grid_number(&g, json_get_number(json_get(verdict, groups[i]), "percent", NAN));
    grid_cell(&g, "%s", json_get_text(verdict, "text", ""));
    grid_print(&g, c);
}

void check_print_unknown(const struct cli *c, const char *text, const char *line)
{
    enum { UNKNOWN = COUNT_OF(state_names) - 1 };
    CLEANUP_BUF struct buf document = BUF_INIT;
    struct jsonw w = jsonw_to(&document);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "state", state_names[UNKNOWN]);
    jsonw_i64(&w, "code", UNKNOWN);
    jsonw_text(&w, "text", text);
    jsonw_text(&w, "line", line);
    jsonw_end(&w);
    if (c->output != OUTPUT_CSV) {
        puts(buf_text(&document));
        return;
    }
    struct err err = {0};
    CLEANUP_JSON struct json *verdict = json_parse(document.data, document.len, &err);
    check_print_csv(c, verdict);
}

// Labels are there without a verdict too: it is unknown then, and the comment has the reason.
static int check_print_labels(struct cli *c, const struct json *verdict, const struct err *why)
{
    enum { UNKNOWN = COUNT_OF(state_names) - 1 };
    CLEANUP_BUF struct buf comment = BUF_INIT, out = BUF_INIT;
    struct labels l = {0};
    int code = verdict ? (int)json_get_i64(verdict, "code", UNKNOWN) : UNKNOWN;
    if (verdict)
        buf_plain(&comment, json_get_text(verdict, "text", ""));
    else
        problem_write(why, &comment);
    for (size_t i = 0; i < comment.len; i++)
        if (comment.data[i] == '\n')
            comment.data[i] = ' ';
    buf_char(&comment, '\n');
    labels_add(&l, "verdict", state_names[code]);
    if (verdict)
        labels_add_age(&l, json_get_i64(verdict, "age_s", -1));
    if (!verdict && c->output == OUTPUT_SLURM) // its line has no place for a comment
        fprintf(stderr, "numaprobe: %s", buf_text(&comment));
    if (verdict || why->code != ERR_UNREACHABLE)
        add_labels_of_node(c, &l, &comment);
    labels_write(&l, c->output, buf_text(&comment), &out);
    print_buf(&out);
    return code;
}

int cmd_check(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    CLEANUP_JSON struct json *verdict = NULL;
    int code = check_judge(c, i, &verdict, err);
    if (c->output >= OUTPUT_NFD && (code >= 0 || err->code != ERR_USAGE))
        return check_print_labels(c, code < 0 ? NULL : verdict, err);
    if (code < 0)
        return -1;
    if (c->output == OUTPUT_TABLE) {
        buf_plain(&line, json_get_text(verdict, "line", ""));
        puts(buf_text(&line));
    } else if (c->output == OUTPUT_CSV) {
        check_print_csv(c, verdict);
    } else {
        print_json(verdict);
    }
    return code;
}
