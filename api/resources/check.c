// SPDX-License-Identifier: Apache-2.0
// GET /v1/check. Monitoring asks every minute, runs come every hour: the verdict is kept until the
// database has another version. Age alone is judged anew each time.
#include "api/resources/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/resources/resources.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "core/store/history.h"

enum {
    VERDICTS_KEPT = BASELINES_MAX + 8, // all baselines for /metrics, and some requested otherwise
    NEWEST_US = 3000,                  // to look for the newest run among those
};

// --- The memory of verdicts --------------------------------------------------------------------

static struct kept {
    const struct store *store;
    int64_t version;
    struct check_options options;
    struct check_result result;
} kept[VERDICTS_KEPT];
static int next_usual, next_other;

static bool same_options(const struct check_options *a, const struct check_options *b)
{
    return strcmp(a->baseline, b->baseline) == 0 && a->run == b->run && a->warn == b->warn &&
           a->crit == b->crit;
}

// `as_good`: one of the version before the request counts too (a worker has just made it).
static const struct check_result *find_kept(const struct store *s,
                                            const struct check_options *options, bool as_good)
{
    const struct kept *found = NULL;
    for (int i = 0; i < VERDICTS_KEPT; i++)
        if (kept[i].store == s && (as_good || kept[i].version == store_version(s)) &&
            same_options(&kept[i].options, options) && (!found || kept[i].version > found->version))
            found = &kept[i];
    return found ? &found->result : NULL;
}

// Those that /metrics shows have places of their own: requests with other limits do not drive them
// out.
static struct kept *place_for(const struct check_options *w)
{
    const struct check_options usual = CHECK_DEFAULTS;
    if (*w->baseline && !w->run && w->warn == usual.warn && w->crit == usual.crit) {
        next_usual = (next_usual + 1) % BASELINES_MAX;
        return &kept[next_usual];
    }
    next_other = (next_other + 1) % (VERDICTS_KEPT - BASELINES_MAX);
    return &kept[BASELINES_MAX + next_other];
}

static void check_keep(const struct kept *one)
{
    struct kept *k = place_for(&one->options);
    free(k->result.changes);
    *k = *one;
}

int check_verdict(const struct request *q, const struct check_options *options,
                  const struct check_result **out, struct err *err)
{
    const struct api_services *api = api_of(q);
    struct baseline b;
    struct check_result made = {0};
    *out = find_kept(api->store, options, q->prepared);
    if (*out)
        return 0;
    if (q->prepared)
        return err_set(err, ERR_UNAVAILABLE, "baseline", "it cannot be checked now");
    int rc = baseline_check_choose(api->store, options->baseline, &b, err);
    if (rc == 0)
        rc = baseline_check_make(api->store, api->machine->hostname, &b, options, &made, err);
    if (rc < 0) {
        free(made.changes);
        return -1;
    }
    check_keep(&(struct kept){api->store, store_version(api->store), *options, made});
    *out = find_kept(api->store, options, false);
    return 0;
}

// --- The answer --------------------------------------------------------------------------------

struct answer {
    const struct check_result *r;
    const struct check_options *options;
    enum check_state state;
    int64_t age_s; // -1: no run
    char text[800];
};

static void age_text(int64_t s, char *out, size_t room)
{
    static const struct {
        int64_t s;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
    for (unsigned i = 0; i < COUNT_OF(units); i++)
        if (s >= 2 * units[i].s) {
            snprintf(out, room, "%lld %s", (long long)(s / units[i].s), units[i].name);
            return;
        }
    snprintf(out, room, "%lld s", (long long)s);
}

static const char *verdict_text(const struct check_result *r)
{
    bool noise = r->verdict == VERDICT_SAME && r->within_noise;
    return noise ? "within the difference of its runs" : verdict_names[r->verdict];
}

static void check_write_text(struct answer *a, const struct run_age *of)
{
    const struct check_result *r = a->r;
    char age[32], dated[64];
    age_text(of->s, age, sizeof age);
    snprintf(dated, sizeof dated, "%s old%s", age, of->old ? ", too old" : "");
    if (of->ahead)
        snprintf(dated, sizeof dated, "dated in the future");
    if (!r->compared)
        snprintf(a->text, sizeof a->text, "baseline %s: %s", r->baseline, r->why);
    else
        snprintf(a->text, sizeof a->text, "run %lld of %s (%s) against baseline %s: %s; %s",
                 (long long)r->run, r->benchmark, dated, r->baseline, verdict_text(r), r->text);
}

static struct answer answer_of(const struct check_result *r, const struct check_options *options)
{
    struct answer a = {.r = r, .options = options, .state = r->state, .age_s = -1};
    struct run_age age = {0};
    if (r->run) {
        age = run_age_at(clock_wall_ms(), r->measured_ms, options->max_age_s);
        a.age_s = age.s;
    }
    if (age.old && a.state == CHECK_OK)
        a.state = CHECK_WARNING;
    check_write_text(&a, &age);
    return a;
}

// U is how performance data say that a value could not be determined.
static void write_percent(const char *name, double percent, struct buf *out)
{
    if (isfinite(percent))
        buf_fmt(out, "%s=%.2f%%", name, percent);
    else
        buf_fmt(out, "%s=U", name);
}

// One line, a bar, performance data: what Nagios and its heirs read.
static void write_line(const struct answer *a, struct buf *out)
{
    const struct check_options *w = a->options;
    buf_fmt(out, "NUMAPROBE %s - %s", check_state_names[a->state], a->text);
    if (!a->r->compared)
        return;
    buf_str(out, " | ");
    write_percent("difference", a->r->overall.percent, out);
    write_percent(" worst", a->r->worst.percent, out);
    buf_fmt(out, ";%g;%g age=%llds;", w->warn, w->crit, (long long)a->age_s);
    if (w->max_age_s)
        buf_fmt(out, "%lld", (long long)w->max_age_s);
}

static void check_write_group(const struct check_group *g, struct jsonw *w, const char *key)
{
    char label[32];
    compare_group_label(&(struct compare_group){.by = g->by, .value = g->value}, label,
                        sizeof label);
    jsonw_object(w, key);
    jsonw_text(w, "matrix", g->matrix);
    jsonw_text(w, "by", compare_by_name(g->by));
    jsonw_text(w, "label", g->by == COMPARE_PART ? g->name : label);
    jsonw_text(w, "name", g->name);
    jsonw_fixed(w, "percent", g->percent, 2);
    jsonw_fixed(w, "lo_percent", g->lo, 2);
    jsonw_fixed(w, "hi_percent", g->hi, 2);
    jsonw_text(w, "verdict", verdict_names[g->verdict]);
    jsonw_end(w);
}

static void check_write_groups(const struct check_result *r, struct jsonw *w)
{
    if (!r->compared) {
        jsonw_null(w, "overall");
        jsonw_null(w, "worst");
        return;
    }
    check_write_group(&r->overall, w, "overall");
    check_write_group(&r->worst, w, "worst");
}

static void check_write_symptoms(const struct check_result *r, struct jsonw *w)
{
    static const struct {
        const char *name, *base;
        int digits;
    } members[CHECK_SYMPTOMS] = {
        [CHECK_DISTURBED] = {"disturbed_ratio", "baseline_disturbed_ratio", 4},
        [CHECK_OFF_CPU] = {"off_cpu_ratio", "baseline_off_cpu_ratio", 4},
        [CHECK_CLOCK] = {"clock_ghz", "baseline_clock_ghz", 3},
        [CHECK_LEAST_CLOCK] = {"least_clock_ghz", "baseline_least_clock_ghz", 3},
    };
    for (int k = 0; k < CHECK_SYMPTOMS; k++) {
        jsonw_fixed(w, members[k].name, r->compared ? r->symptoms[k] : NAN, members[k].digits);
        jsonw_fixed(w, members[k].base, r->compared ? r->symptoms_base[k] : NAN, members[k].digits);
    }
}

static void write_answer(const struct answer *a, struct jsonw *w)
{
    const struct check_result *r = a->r;
    CLEANUP_BUF struct buf line = BUF_INIT;
    write_line(a, &line);
    buf_needs(w->out, &line);
    jsonw_object(w, NULL);
    jsonw_text(w, "state", check_state_names[a->state]);
    jsonw_i64(w, "code", a->state);
    jsonw_text(w, "verdict", verdict_names[r->compared ? r->verdict : VERDICT_INCONCLUSIVE]);
    jsonw_text(w, "text", a->text);
    jsonw_text(w, "line", buf_text(&line));
    jsonw_text(w, "baseline", r->baseline);
    jsonw_text(w, "benchmark", r->benchmark);
    if (r->run)
        jsonw_i64(w, "run", r->run);
    else
        jsonw_null(w, "run");
    jsonw_time(w, "measured", r->run ? r->measured_ms : 0);
    if (r->run)
        jsonw_i64(w, "age_s", a->age_s);
    else
        jsonw_null(w, "age_s");
    jsonw_fixed(w, "warn_percent", a->options->warn, 2);
    jsonw_fixed(w, "crit_percent", a->options->crit, 2);
    jsonw_fixed(w, "baseline_noise_percent", r->noise_percent, 2);
    check_write_symptoms(r, w);
    check_write_groups(r, w);
    jsonw_array(w, "notes");
    for (int i = 0; i < r->n_notes; i++)
        jsonw_text(w, NULL, r->notes[i]);
    jsonw_end(w);
    jsonw_raw(w, "fact_changes", r->changes ? r->changes : "null");
    jsonw_end(w);
}

static int read_percent(const struct request *q, const char *name, double *out, struct err *err)
{
    const char *text = request_query(q, name);
    if (text && (!str_to_double(text, out) || *out < 0.1 || *out > 1000))
        return err_set(err, ERR_INVALID, name, "must be a percentage from 0.1 to 1000");
    return 0;
}

static int check_read_options(const struct request *q, struct check_options *w, struct err *err)
{
    const char *name = request_query(q, "baseline"), *run = request_query(q, "run");
    *w = CHECK_DEFAULTS;
    if (name) {
        if (baseline_name_check(name, err) < 0) {
            snprintf(err->member, sizeof err->member, "baseline");
            return -1;
        }
        snprintf(w->baseline, sizeof w->baseline, "%s", name);
    }
    if (run && strcmp(run, "latest") != 0 && (!str_to_i64(run, &w->run) || w->run < 1))
        return err_set(err, ERR_INVALID, "run", "must be the number of a run, or latest");
    if (read_percent(q, "warn", &w->warn, err) < 0)
        return -1;
    w->crit = fmax(w->crit, w->warn);
    if (read_percent(q, "crit", &w->crit, err) < 0 ||
        request_query_int(q, "max_age", 1, INT32_MAX, &w->max_age_s, err) < 0)
        return -1;
    return w->crit >= w->warn
               ? 0
               : err_set(err, ERR_INVALID, "crit", "must be at least warn (%g)", w->warn);
}

static int wants_line(const struct request *q, bool *line, struct err *err)
{
    static const char *const types[] = {"application/json", "text/plain"};
    const char *format = request_query(q, "format");
    if (format && strcmp(format, "nagios") != 0 && strcmp(format, "json") != 0)
        return err_set(err, ERR_INVALID, "format", "must be json or nagios");
    int form = format ? *format == 'n' : request_accept_one(q, types, COUNT_OF(types), err);
    *line = form > 0;
    return form < 0 ? -1 : 0;
}

int check_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    const struct check_result *result;
    struct check_options options;
    bool line = false;
    if (wants_line(q, &line, err) < 0 || check_read_options(q, &options, err) < 0 ||
        check_verdict(q, &options, &result, err) < 0)
        return -1;
    const struct answer a = answer_of(result, &options);
    if (line) {
        write_line(&a, &body);
        buf_char(&body, '\n');
        return reply_text(r, "text/plain; charset=utf-8", &body, err);
    }
    struct jsonw w = jsonw_to(&body);
    write_answer(&a, &w);
    return reply_json(r, 200, &body, err);
}

// --- By a worker -------------------------------------------------------------------------------

// A verdict as it goes from one process to the other.
struct image {
    struct check_options options;
    struct check_result result; // without `changes`, which follow
    size_t changes_bytes;       // with their NUL; 0: there are none
};

static int verdicts_take(const struct api_services *api, int64_t version, const char *data,
                         size_t n, struct err *err)
{
    while (n >= sizeof(struct image)) {
        struct image i;
        memcpy(&i, data, sizeof i);
        data += sizeof i;
        n -= sizeof i;
        if (i.changes_bytes > n || (i.changes_bytes && data[i.changes_bytes - 1]))
            break;
        if (i.changes_bytes && !(i.result.changes = strdup(data)))
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a verdict");
        check_keep(&(struct kept){api->store, version, i.options, i.result});
        data += i.changes_bytes;
        n -= i.changes_bytes;
    }
    return n ? err_set(err, ERR_INTERNAL, "", "invalid verdict from the worker") : 0;
}

static void check_take_verdicts(void *context, const struct job_made *made, struct err *err)
{
    if (!err->code)
        verdicts_take(context, made->version, made->data, made->n, err);
}

static const struct job_kind verdicts_job = {.number = JOB_VERDICTS, .take = check_take_verdicts};

static void add_work(const struct request *q, const struct check_options *options,
                     const struct baseline *b, struct work *w, struct err *why)
{
    if (find_kept(api_of(q)->store, options, q->prepared))
        return;
    w->us += NEWEST_US;
    for (int i = 0; i < b->n && w->us <= WORK_INLINE_US; i++)
        work_add_run(q, w, b->runs[i], WORK_CELL_NS, false, false, why);
    if (options->run)
        work_add_run(q, w, options->run, WORK_CELL_NS, false, false, why);
}

void check_work(const struct request *q, struct work *w, struct err *why)
{
    struct check_options options;
    struct baseline b;
    w->kind = &verdicts_job;
    if (check_read_options(q, &options, why) == 0 &&
        baseline_check_choose(api_of(q)->store, options.baseline, &b, why) == 0)
        add_work(q, &options, &b, w, why);
}

static struct check_options usual_options(const struct baseline *b)
{
    struct check_options options = CHECK_DEFAULTS;
    snprintf(options.baseline, sizeof options.baseline, "%s", b->name);
    return options;
}

void metrics_work(const struct request *q, struct work *w, struct err *why)
{
    CLEANUP_MEM struct baseline *list = NULL;
    int n = 0;
    w->kind = &verdicts_job;
    if (store_baseline_list(api_of(q)->store, &list, &n, why) < 0)
        return;
    for (int i = 0; i < n; i++) {
        const struct check_options options = usual_options(&list[i]);
        add_work(q, &options, &list[i], w, why);
    }
}

static void add_image(struct buf *out, const struct check_options *options,
                      const struct check_result *r)
{
    struct image i = {*options, *r, r->changes ? strlen(r->changes) + 1 : 0};
    i.result.changes = NULL;
    buf_add(out, &i, sizeof i);
    buf_add(out, r->changes, i.changes_bytes);
}

static int make_usual(const struct request *q, struct buf *out, struct err *err)
{
    CLEANUP_MEM struct baseline *list = NULL;
    const struct check_result *r;
    int n = 0;
    if (store_baseline_list(api_of(q)->store, &list, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        const struct check_options options = usual_options(&list[i]);
        if (check_verdict(q, &options, &r, NULL) == 0) // else it is shown as unknown
            add_image(out, &options, r);
    }
    return 0;
}

int verdicts_make(const struct request *q, struct buf *out, struct err *err)
{
    struct check_options options;
    const struct check_result *r;
    if (strcmp(q->path, "/v1/check") != 0)
        return make_usual(q, out, err);
    if (check_read_options(q, &options, err) < 0 || check_verdict(q, &options, &r, err) < 0)
        return -1;
    add_image(out, &options, r);
    return 0;
}
