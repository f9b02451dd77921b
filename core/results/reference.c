// SPDX-License-Identifier: Apache-2.0
// Matrices of the same name and axes are put together cell by cell. The first run that does not fit
// the others is an error that names it.
#include "core/results/reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"

// Of all runs together: 108 MB while they are put together.
enum { REFERENCE_CELLS_MAX = 4 * MATRIX_CELLS_MAX };

void reference_fini(struct reference *r)
{
    stored_run_fini(&r->first);
    store_matrices_free(r->list, r->n);
    buf_free(&r->variant);
    machine_then_fini(&r->then);
    *r = (struct reference){0};
}

static int check_member(const struct reference *r, const struct stored_run *other, struct err *err)
{
    const struct run *a = &r->first.run, *b = &other->run;
    CLEANUP_BUF struct buf variant = BUF_INIT;
    if (b->state != RUN_SUCCEEDED)
        return err_set(err, ERR_CONFLICT, "runs",
                       "run %" PRId64 " is %s: it has no complete result", b->id,
                       run_state_names[b->state]);
    if (a->spec.benchmark != b->spec.benchmark)
        return err_set(
            err, ERR_CONFLICT, "runs",
            "run %" PRId64 " is of %s and run %" PRId64 " of %s: they cannot be one baseline",
            a->id, benchmarks[a->spec.benchmark].name, b->id, benchmarks[b->spec.benchmark].name);
    stored_run_variant(other, &variant);
    if (!buf_ok(&variant) || !buf_ok(&r->variant))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to compare the runs");
    if (strcmp(buf_text(&r->variant), buf_text(&variant)) == 0 && strcmp(a->method, b->method) == 0)
        return 0;
    return err_set(err, ERR_CONFLICT, "runs",
                   "run %" PRId64 " was measured in another way (%s %.60s) than run %" PRId64
                   " (%s %.60s)",
                   b->id, b->method, buf_text(&variant), a->id, a->method, buf_text(&r->variant));
}

static int64_t reference_cells_of(const struct stored_run *r)
{
    int64_t n = 0;
    for (int i = 0; i < r->n; i++)
        n += (int64_t)r->list[i].row.n * r->list[i].col.n;
    return n;
}

// The matrix `at` of the first run and those of the same name of all others, with the same axes.
static int reference_matrices(const struct stored_run *runs, int n, int at,
                              const struct matrix *list[BASELINE_RUNS_MAX], struct err *err)
{
    for (int i = 0; i < n; i++) {
        list[i] = stored_run_matrix(&runs[i], runs[0].list[at].name);
        if (!list[i])
            return err_set(err, ERR_CONFLICT, "runs", "run %" PRId64 " has no matrix %s",
                           runs[i].run.id, runs[0].list[at].name);
        if (baseline_fits(list[0], list[i], err) < 0)
            return -1;
    }
    return 0;
}

static int middle_of_matrix(const struct stored_run *runs, int n, int at, struct reference *r,
                            struct err *err)
{
    const struct matrix *list[BASELINE_RUNS_MAX];
    if (reference_matrices(runs, n, at, list, err) < 0)
        return -1;
    r->noise_percent = fmax(r->noise_percent, baseline_noise(list, n));
    return baseline_middle(&r->list[at], list, n, err);
}

static double middle_of_ranks(const struct stored_run *runs, int n,
                              double (*of)(const struct rank_info *ranks, int n))
{
    double known[BASELINE_RUNS_MAX];
    int k = 0;
    for (int i = 0; i < n; i++) {
        double value = of(runs[i].ranks, runs[i].n_ranks);
        if (!isnan(value))
            known[k++] = value;
    }
    return middle_of(known, k);
}

static int put_together(struct reference *r, const struct stored_run *runs, int n, struct err *err)
{
    r->list = calloc((size_t)runs[0].n + 1, sizeof *r->list);
    if (!r->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a baseline");
    for (; r->n < runs[0].n; r->n++)
        if (middle_of_matrix(runs, n, r->n, r, err) < 0)
            return -1;
    return 0;
}

struct members {
    int n;
    struct stored_run runs[BASELINE_RUNS_MAX];
};

static void reference_members_fini(struct members *m)
{
    for (int i = 0; i < m->n; i++)
        stored_run_fini(&m->runs[i]);
}

typedef int load_fn(struct store *s, int64_t id, struct stored_run *out, struct err *err);

static int load_members(struct store *s, const struct baseline *b, load_fn *load, struct members *m,
                        struct reference *r, struct err *err)
{
    int64_t cells = 0;
    for (; m->n < b->n; m->n++) {
        struct stored_run *one = &m->runs[m->n];
        if (load(s, b->runs[m->n], one, err) < 0)
            return -1;
        cells += reference_cells_of(one);
        if (m->n == 0) {
            r->first.run = one->run; // borrowed until put_together
            stored_run_variant(one, &r->variant);
        }
        if (check_member(r, one, err) < 0 || cells > REFERENCE_CELLS_MAX) {
            m->n++;
            return cells > REFERENCE_CELLS_MAX
                       ? err_set(err, ERR_CONFLICT, "runs",
                                 "the runs have more than %d cells together; take fewer",
                                 REFERENCE_CELLS_MAX)
                       : -1;
        }
    }
    return 0;
}

int reference_check(struct store *s, const struct baseline *b, struct err *err)
{
    struct reference r CLEANUP(reference_fini) = {0};
    struct members m CLEANUP(reference_members_fini) = {0};
    const struct matrix *list[BASELINE_RUNS_MAX];
    int rc = load_members(s, b, stored_run_load_axes, &m, &r, err);
    r.first = (struct stored_run){0};
    for (int i = 0; rc == 0 && i < m.runs[0].n; i++)
        rc = reference_matrices(m.runs, m.n, i, list, err);
    return rc;
}

int reference_load(struct store *s, const struct baseline *b, struct reference *out,
                   struct err *err)
{
    struct reference r CLEANUP(reference_fini) = {.noise_percent = NAN};
    struct members m CLEANUP(reference_members_fini) = {0};
    int rc = load_members(s, b, stored_run_load, &m, &r, err);
    r.first = (struct stored_run){0};
    if (rc < 0 || machine_then_load(s, &m.runs[m.n - 1].run, &r.then, err) < 0 ||
        put_together(&r, m.runs, m.n, err) < 0)
        return -1;
    r.off_cpu = middle_of_ranks(m.runs, m.n, ranks_off_cpu);
    r.clock_ghz = middle_of_ranks(m.runs, m.n, ranks_clock);
    r.least_clock_ghz = middle_of_ranks(m.runs, m.n, ranks_least_clock);
    r.first = m.runs[0];
    m.runs[0] = (struct stored_run){0};
    *out = r;
    r = (struct reference){0};
    return 0;
}
