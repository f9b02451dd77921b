// SPDX-License-Identifier: Apache-2.0
// The frame: a section a benchmark, then where memory was and what disturbed, for all of them.
#include "analysis/report/report.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "base/str.h"
#include "model/condition.h"

#define SECTION(id, name) [BENCHMARK_##id] = section_##name,
static report_section *const sections[BENCHMARKS] = {BENCHMARK_LIST(SECTION)};

struct report {
    struct report_out out;
};

struct placement {
    bool known;
    int ranks, wrong_memory, migrated; // wrong: less than 99 % of the pages where wanted
    double kept, disturbed;            // samples
    int cells, lone;                   // with samples; resting on one
    double off_cpu;                    // of the rank that lost most; NaN: not known
    double slow_ghz, fast_ghz;         // clocks of the ranks; NaN: not known
    double least_cycles, most_cycles;  // that loads from L1 take; NaN: not known
};

// ---- Placement and disturbance ------------------------------------------------------------------

static void add_samples(struct placement *p, const struct matrix *m)
{
    for (int k = 0; k < m->row.n * m->col.n; k++) {
        const double *v = m->cells[k].v;
        if (isnan(v[CELL_N]) || isnan(v[CELL_DISTURBED]))
            continue;
        p->cells++;
        p->lone += v[CELL_N] <= 1;
        p->kept += cell_kept(&m->cells[k]);
        p->disturbed += v[CELL_DISTURBED];
    }
}

static void add_source(struct placement *p, const struct report_source *s)
{
    for (int i = 0; s->ranks != NULL && i < s->n_ranks; i++) {
        bool checked = s->ranks[i].pages_checked > 0 && !isnan(s->ranks[i].mem_share);
        p->known = p->known || checked;
        p->ranks += checked;
        p->wrong_memory += checked && s->ranks[i].mem_share < 0.99;
        p->migrated += s->ranks[i].migrations > 0;
        if (s->ranks[i].clock_ghz > 0) {
            p->slow_ghz = fmin(p->slow_ghz, s->ranks[i].clock_ghz);
            p->fast_ghz = fmax(p->fast_ghz, s->ranks[i].clock_ghz);
        }
        p->least_cycles = fmin(p->least_cycles, s->ranks[i].load_cycles); // NaN leaves them
        p->most_cycles = fmax(p->most_cycles, s->ranks[i].load_cycles);
    }
    p->off_cpu = fmax(p->off_cpu, ranks_off_cpu(s->ranks, s->n_ranks));
    for (int i = 0; i < s->n; i++)
        add_samples(p, &s->matrices[i]);
}

static double disturbed_share(const struct placement *p)
{
    double all = p->kept + p->disturbed;
    return all > 0 ? p->disturbed / all : NAN;
}

static void write_placement(const struct placement *p, struct jsonw *w)
{
    jsonw_object(w, "placement");
    jsonw_bool(w, "known", p->known);
    jsonw_i64(w, "ranks_checked", p->ranks);
    jsonw_i64(w, "ranks_with_wrong_memory", p->wrong_memory);
    jsonw_i64(w, "ranks_migrated", p->migrated);
    jsonw_fixed(w, "disturbed_share", disturbed_share(p), 4);
    jsonw_fixed(w, "off_cpu_share", p->off_cpu, 4);
    jsonw_fixed(w, "least_clock_ghz", p->slow_ghz, 3);
    jsonw_fixed(w, "largest_clock_ghz", p->fast_ghz, 3);
    jsonw_fixed(w, "least_load_cycles", p->least_cycles, 2);
    jsonw_fixed(w, "largest_load_cycles", p->most_cycles, 2);
    jsonw_end(w);
}

static void say_placement(const struct placement *p, struct buf *out)
{
    buf_str(out, "## Placement and disturbance\n\n");
    if (p->known)
        buf_fmt(out,
                "- %d of %d ranks had less than 99 %% of their pages on the requested node; %d "
                "moved to another CPU.\n",
                p->wrong_memory, p->ranks, p->migrated);
    else
        buf_str(out, "- The placement of the memory is not recorded.\n");
    if (isnan(disturbed_share(p)))
        buf_str(out, "- Disturbance is not recorded.\n");
    else
        buf_fmt(out, "- %.1f %% of the samples were disturbed and left out.\n",
                100 * disturbed_share(p));
    if (!isnan(p->off_cpu))
        buf_fmt(out, "- The rank that lost most was off its CPU for %.1f %% of its time.\n",
                100 * p->off_cpu);
    if (!isnan(p->slow_ghz))
        buf_fmt(out, "- The clock of the slowest core was %.2f GHz, of the fastest %.2f GHz.\n",
                p->slow_ghz, p->fast_ghz);
    if (!isnan(p->least_cycles))
        buf_fmt(out, "- A load from L1 took %.2f cycles at least on a core, %.2f at most.\n",
                p->least_cycles, p->most_cycles);
}

// ---- Doubts -------------------------------------------------------------------------------------

__attribute__((format(printf, 3, 4))) static void doubt(struct report_out *o, int *n,
                                                        const char *fmt, ...)
{
    va_list ap;
    if (!(*n)++)
        buf_str(&o->markdown, "## Caveats\n\n");
    va_start(ap, fmt);
    report_sentence(o, NULL, fmt, ap);
    va_end(ap);
}

// What the benchmark found out about its repetitions.
static void doubt_repetitions(struct report_out *o, int *n, const struct json *conditions)
{
    for (const struct json *i = json_first(conditions); i; i = json_next(i)) {
        struct condition c;
        if (condition_from_json(&c, i, NULL) == 0 &&
            (c.kind == CONDITION_TWO_MODES || c.kind == CONDITION_ONE_REPETITION))
            doubt(o, n, "%c%s.", toupper((unsigned char)*c.text), c.text + 1);
    }
}

// What makes the numbers doubtful is said before them.
static void say_doubts(struct report_out *o, const struct placement *p,
                       const struct report_source *run, const struct report_source *with)
{
    int n = 0;
    jsonw_array(&o->w, "caveats");
    if (disturbed_share(p) >= SAMPLES_DOUBTFUL)
        doubt(o, &n,
              "%.0f %% of the samples were disturbed and left out: they may explain the findings "
              "below.",
              100 * disturbed_share(p));
    if (p->lone)
        doubt(o, &n, "%d of %d cells have at most one undisturbed sample.", p->lone, p->cells);
    if (p->wrong_memory)
        doubt(o, &n, "%d of %d ranks had less than 99 %% of their pages on the requested node.",
              p->wrong_memory, p->ranks);
    if (p->migrated)
        doubt(o, &n, "%d rank%s moved to another CPU.", p->migrated, str_plural(p->migrated));
    doubt_repetitions(o, &n, run->conditions);
    doubt_repetitions(o, &n, with ? with->conditions : NULL);
    jsonw_end(&o->w);
    if (n)
        buf_char(&o->markdown, '\n');
}

// ---- The report ---------------------------------------------------------------------------------

void report_free(struct report *r)
{
    if (!r)
        return;
    buf_free(&r->out.json);
    buf_free(&r->out.markdown);
    free(r);
}

static int report_fill(struct report_out *o, const struct report_source *run,
                       const struct report_source *with, struct err *err)
{
    struct placement p = {
        .off_cpu = NAN, .slow_ghz = NAN, .fast_ghz = NAN, .least_cycles = NAN, .most_cycles = NAN};
    if (with && (run->benchmark != BENCHMARK_LATENCY || with->benchmark != BENCHMARK_LATENCY))
        return err_set(err, ERR_CONFLICT, "with", "a pair must be of two latency runs");
    if (run->n == 0)
        return err_set(err, ERR_INVALID, "matrices", "there is no matrix to report on");
    o->w = jsonw_to(&o->json);
    jsonw_object(&o->w, NULL);
    jsonw_text(&o->w, "benchmark", benchmarks[run->benchmark].name);
    add_source(&p, run);
    if (with)
        add_source(&p, with);
    say_doubts(o, &p, run, with);
    if (sections[run->benchmark](o, run, with, err) < 0)
        return -1;
    write_placement(&p, &o->w);
    say_placement(&p, &o->markdown);
    jsonw_end(&o->w);
    if (buf_ok(&o->json) && buf_ok(&o->markdown))
        return 0;
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
}

struct report *report_new(const struct report_source *run, const struct report_source *with,
                          struct err *err)
{
    struct report *r = calloc(1, sizeof *r);
    if (r == NULL) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
        return NULL;
    }
    if (report_fill(&r->out, run, with, err) == 0)
        return r;
    report_free(r);
    return NULL;
}

void report_write_json(const struct report *r, struct jsonw *w, const char *key)
{
    jsonw_raw(w, key, buf_text(&r->out.json));
}

void report_write_markdown(const struct report *r, struct buf *out)
{
    buf_str(out, buf_text(&r->out.markdown));
}
