// SPDX-License-Identifier: Apache-2.0
// In order: the newest run that fits the baseline, its comparison with the baseline, and the
// verdict.
#include "core/results/baseline_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/results/reference.h"
#include "core/store/history.h"
#include "model/shape.h"

enum { LOOKED_AT_MAX = 50 }; // newest runs among which a comparable one is sought

// A warning: so much more of the samples, or of a rank's time, than in the baseline's runs, and so
// many times as much.
static const double DISTURBED_MORE = 0.1, DISTURBED_TIMES = 2;
// A warning: the clock is lower by so much. Turbo moves by less from day to day.
static const double CLOCK_DROPPED = 0.05;

const char *const check_state_names[CHECK_STATES] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

// --- The newest run ----------------------------------------------------------------------------

struct search {
    const struct reference *base;
    const char *variant; // of its runs, whatever their method
    int64_t id;
    bool no_memory; // to look at one
};

// The mode is not part of a variant: a run of one rank at a time has no matrix of all at once.
static bool has_all(const struct run *r, const struct reference *base)
{
    struct shape list[SHAPES_MAX];
    int n = shape_list(&r->spec, list);
    for (int i = 0; i < base->n; i++)
        if (!shape_find(list, n, base->list[i].name))
            return false;
    return true;
}

// Without the version of the method. A run by another version is found: that it cannot be compared
// is the result. Else an older run would be judged for ever.
static void check_parameters_of(const struct run *r, struct buf *out)
{
    const struct metrics_input in = {
        .spec = &r->spec, .imported = r->imported, .n_ranks = (int)r->n_ranks};
    metrics_variant(&in, out);
}

static void consider_newest(void *ctx, const struct run *r)
{
    struct search *s = ctx;
    CLEANUP_BUF struct buf variant = BUF_INIT;
    if (s->id || *r->unreadable[RUN_SPEC])
        return;
    check_parameters_of(r, &variant);
    s->no_memory |= !buf_ok(&variant);
    if (strcmp(buf_text(&variant), s->variant) == 0 && has_all(r, s->base))
        s->id = r->id;
}

static int find_newest(struct store *s, const char *node, const struct reference *base, int64_t *id,
                       struct err *err)
{
    CLEANUP_BUF struct buf variant = BUF_INIT;
    check_parameters_of(&base->first.run, &variant);
    struct search found = {
        .base = base, .variant = buf_text(&variant), .no_memory = !buf_ok(&variant)};
    const struct run_filter f = {.state = RUN_SUCCEEDED,
                                 .benchmark = benchmarks[base->first.run.spec.benchmark].name,
                                 .node = node,
                                 .limit = LOOKED_AT_MAX};
    bool more;
    if (store_run_list(s, &f, consider_newest, &found, &more, err) < 0)
        return -1;
    if (found.no_memory)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to look for the newest run");
    *id = found.id;
    return 0;
}

// --- Comparing ---------------------------------------------------------------------------------

static struct check_group group_of(const struct conclusion_part *p)
{
    struct check_group out = {.by = p->part.by,
                              .value = p->part.value,
                              .percent = p->part.d.percent,
                              .lo = p->part.d.lo,
                              .hi = p->part.d.hi,
                              .verdict = p->part.d.verdict};
    snprintf(out.matrix, sizeof out.matrix, "%s", p->matrix);
    snprintf(out.unit, sizeof out.unit, "%s", p->unit);
    snprintf(out.name, sizeof out.name, "%s", p->part.name);
    return out;
}

static void take_conclusion(struct check_result *out, const struct conclusion *k)
{
    out->compared = true;
    out->verdict = k->verdict;
    out->within_noise = k->within_noise;
    out->overall = group_of(&k->overall);
    out->worst = group_of(&k->worst);
    conclusion_text(k, out->text, sizeof out->text);
}

// Each once: most are the same for all matrices.
static void take_notes(struct check_result *out, const struct comparison *c)
{
    for (int i = 0; i < c->n_notes; i++) {
        int k = 0;
        while (k < out->n_notes && strcmp(out->notes[k], c->notes[i]) != 0)
            k++;
        if (k < out->n_notes || k == CHECK_NOTES_MAX)
            continue;
        memcpy(out->notes[out->n_notes++], c->notes[i], sizeof c->notes[i]);
    }
}

static struct compare_side side_of(const struct matrix *m, const struct stored_run *r,
                                   const struct machine_then *then)
{
    return (struct compare_side){.matrix = m,
                                 .method = r->run.method,
                                 .spec = r->run.imported ? NULL : &r->run.spec,
                                 .ranks = r->ranks,
                                 .n_ranks = r->n_ranks,
                                 .fingerprint = then->fingerprint};
}

// A node that loses its CPU to something else looks healthy by the samples that are kept.
static bool is_much_more(double share, double base)
{
    return share >= fmax(base + DISTURBED_MORE, DISTURBED_TIMES * base) && !isnan(base);
}

static bool has_dropped(double ghz, double base)
{
    return ghz <= (1 - CLOCK_DROPPED) * base;
}

static const struct {
    bool (*is_bad)(double value, double base);
    const char *text, *unit, *after; // "; <text> <value> <unit><after> (baseline <base> <unit>)"
    double scale;
    int digits, base_digits;
} symptoms[CHECK_SYMPTOMS] = {
    [CHECK_DISTURBED] = {is_much_more, "", "%", " of the samples were disturbed", 100, 0, 1},
    [CHECK_OFF_CPU] = {is_much_more, "a rank was off its CPU for ", "%", " of its time", 100, 0, 1},
    [CHECK_CLOCK] = {has_dropped, "the cores ran at ", "GHz", "", 1, 2, 2},
    [CHECK_LEAST_CLOCK] = {has_dropped, "the slowest core ran at ", "GHz", "", 1, 2, 2},
};

static bool check_suffers(const struct check_result *r, enum check_symptom k)
{
    return symptoms[k].is_bad(r->symptoms[k], r->symptoms_base[k]);
}

static void take_symptoms(struct check_result *out, const struct reference *base,
                          const struct stored_run *run)
{
    const double now[CHECK_SYMPTOMS] = {
        [CHECK_DISTURBED] = samples_disturbed(run->list, run->n),
        [CHECK_OFF_CPU] = ranks_off_cpu(run->ranks, run->n_ranks),
        [CHECK_CLOCK] = ranks_clock(run->ranks, run->n_ranks),
        [CHECK_LEAST_CLOCK] = ranks_least_clock(run->ranks, run->n_ranks),
    };
    const double before[CHECK_SYMPTOMS] = {
        [CHECK_DISTURBED] = samples_disturbed(base->list, base->n),
        [CHECK_OFF_CPU] = base->off_cpu,
        [CHECK_CLOCK] = base->clock_ghz,
        [CHECK_LEAST_CLOCK] = base->least_clock_ghz,
    };
    memcpy(out->symptoms, now, sizeof now);
    memcpy(out->symptoms_base, before, sizeof before);
}

static void say_symptoms(struct check_result *out)
{
    for (int k = 0; k < CHECK_SYMPTOMS; k++) {
        size_t n = strlen(out->text);
        double scale = symptoms[k].scale;
        if (check_suffers(out, (enum check_symptom)k))
            snprintf(out->text + n, sizeof out->text - n, "; %s%.*f %s%s (baseline %.*f %s)",
                     symptoms[k].text, symptoms[k].digits, scale * out->symptoms[k],
                     symptoms[k].unit, symptoms[k].after, symptoms[k].base_digits,
                     scale * out->symptoms_base[k], symptoms[k].unit);
    }
}

static int compare_matrices(const struct reference *base, const struct stored_run *run,
                            const struct machine_then *then, const struct check_options *options,
                            struct check_result *out, struct err *err)
{
    const struct compare_options o = {.threshold_percent = options->warn,
                                      .noise_percent = base->noise_percent,
                                      .level = COMPARE_DEFAULTS.level};
    struct conclusion whole = {0};
    for (int i = 0; i < base->n; i++) {
        const struct matrix *m = stored_run_matrix(run, base->list[i].name);
        struct comparison c CLEANUP(comparison_fini) = {0};
        if (!m)
            return err_set(err, ERR_CONFLICT, "", "run %" PRId64 " has no matrix %s", run->run.id,
                           base->list[i].name);
        const struct compare_side a = side_of(&base->list[i], &base->first, &base->then);
        const struct compare_side b = side_of(m, run, then);
        if (compare(&c, &a, &b, &o, err) < 0)
            return -1;
        conclusion_add(&whole, &c, m);
        take_notes(out, &c);
    }
    take_conclusion(out, &whole);
    take_symptoms(out, base, run);
    say_symptoms(out);
    return 0;
}

// As compare refuses it, in words that say which of the two is which.
static int check_same_method(const struct run *base, const struct run *r, struct err *err)
{
    if (!*base->method || !*r->method || strcmp(base->method, r->method) == 0)
        return 0;
    return err_set(err, ERR_CONFLICT, "method",
                   "run %" PRId64 " was measured by method %s and the baseline by %s: they cannot "
                   "be compared. Set the baseline to newer runs",
                   r->id, r->method, base->method);
}

// A run beside itself shows nothing of the node as it is now.
static void say_own(struct check_result *out, const struct baseline *b)
{
    size_t n = strlen(out->text);
    for (int i = 0; i < b->n && out->compared; i++)
        if (b->runs[i] == out->run)
            snprintf(out->text + n, sizeof out->text - n,
                     "; the run is one of the baseline: no run was measured in this way since");
}

static enum check_state judge(const struct check_result *r, const struct check_options *options)
{
    enum check_state least = CHECK_OK;
    for (int k = 0; r->compared && k < CHECK_SYMPTOMS; k++)
        if (check_suffers(r, (enum check_symptom)k))
            least = CHECK_WARNING;
    if (r->compared && r->verdict == VERDICT_SLOWER)
        return fabs(r->worst.percent) >= options->crit ? CHECK_CRITICAL : CHECK_WARNING;
    if (!r->compared || r->verdict == VERDICT_INCONCLUSIVE)
        return least == CHECK_OK ? CHECK_UNKNOWN : least;
    return least;
}

static int check_run(struct store *s, const struct reference *base,
                     const struct check_options *options, int64_t id, struct check_result *out,
                     struct err *err)
{
    struct stored_run run CLEANUP(stored_run_fini) = {0};
    struct machine_then then CLEANUP(machine_then_fini) = {0};
    CLEANUP_BUF struct buf changes = BUF_INIT;
    struct jsonw w = jsonw_to(&changes);
    if (stored_run_load(s, id, &run, err) < 0 || machine_then_load(s, &run.run, &then, err) < 0)
        return -1;
    out->run = id;
    out->measured_ms = run.run.measured_ms;
    if (run.run.state != RUN_SUCCEEDED)
        return err_set(err, ERR_CONFLICT, "run", "run %" PRId64 " is %s: it has no complete result",
                       id, run_state_names[run.run.state]);
    if (check_same_method(&base->first.run, &run.run, err) < 0 ||
        compare_matrices(base, &run, &then, options, out, err) < 0 ||
        machine_then_write_changes(&base->then, &then, &w, NULL, err) < 0)
        return -1;
    out->changes = buf_steal(&changes);
    return 0;
}

int baseline_check_make(struct store *s, const char *node, const struct baseline *b,
                        const struct check_options *options, struct check_result *out,
                        struct err *err)
{
    struct reference base CLEANUP(reference_fini) = {0};
    struct err why = {0};
    int64_t id = options->run;
    snprintf(out->baseline, sizeof out->baseline, "%s", b->name);
    if (reference_load(s, b, &base, err) < 0 || (!id && find_newest(s, node, &base, &id, err) < 0))
        return -1;
    snprintf(out->benchmark, sizeof out->benchmark, "%s",
             benchmarks[base.first.run.spec.benchmark].name);
    out->noise_percent = base.noise_percent;
    if (!id)
        snprintf(out->why, sizeof out->why,
                 "none of the newest %d runs of %s was measured as the baseline was", LOOKED_AT_MAX,
                 out->benchmark);
    else if (check_run(s, &base, options, id, out, &why) < 0) {
        if (why.code != ERR_CONFLICT || options->run) {
            *err = why;
            return -1;
        }
        out->compared = false;
        snprintf(out->why, sizeof out->why, "%s", why.text);
    }
    say_own(out, b);
    out->state = judge(out, options);
    return 0;
}

int baseline_check_choose(struct store *s, const char *name, struct baseline *out, struct err *err)
{
    CLEANUP_MEM struct baseline *list = NULL;
    int n;
    if (*name)
        return store_baseline_get(s, name, out, err);
    if (store_baseline_list(s, &list, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (n == 1 || strcmp(list[i].name, "default") == 0) {
            *out = list[i];
            return 0;
        }
    return n ? err_set(err, ERR_INVALID, "baseline",
                       "must be given: there are %d and none is named \"default\"", n)
             : err_set(err, ERR_NOT_FOUND, "baseline",
                       "there is no baseline yet (PUT /v1/baselines/default)");
}
