// SPDX-License-Identifier: Apache-2.0
// STREAM by several ranks: each has its slice of the three arrays, all start at a spinning barrier,
// and a pass lasts from the first start to the last end. The slices together are the size asked
// for, so that the rule "each array at least four times the caches" holds for what is measured: the
// ranks of a row and their caches (model/stream_team.h).
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/stream.h"
#include "bench/session/rank_team.h"
#include "model/stream_team.h"

enum { LLC_RULE = 4 };

struct band {
    struct session *s;
    int n_shapes;
    struct shape shapes[SHAPES_MAX];
    int n_rows, n_cols;
    struct rank_cache *caches; // of each rank; owned
    struct stream_team *rows;  // owned
    int done;                  // cells
    const struct stream_code *code;
};

struct row {
    const struct band *b;
    int row;
};

static bool belongs(const void *context, int rank)
{
    const struct row *of = context;
    return stream_team_has(of->b->s->spec, &of->b->rows[of->row], of->b->caches, rank);
}

static int find_rows(struct band *b, struct err *err)
{
    const struct session *s = b->s;
    int ranks = session_ranks(s);
    b->caches = session_caches(s, err);
    b->rows = calloc((size_t)ranks, sizeof *b->rows);
    if (!b->rows)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    if (!b->caches || (b->n_rows = stream_teams(s->spec, b->caches, ranks, b->rows, err)) < 0)
        return -1;
    b->n_cols = s->spec->sweep == SWEEP_OWN ? 1 : s->n_targets;
    return 0;
}

static int target_of(const struct band *b, int col)
{
    return b->s->spec->sweep == SWEEP_OWN ? -1 : b->s->targets[col];
}

static int bandwidth_make_matrices(const struct band *b, struct matrix *m, struct err *err)
{
    for (int i = 0; i < b->n_shapes; i++) {
        if (shape_make(&m[i], &b->shapes[i], b->n_rows, b->n_cols, err) < 0)
            return -1;
        for (int r = 0; r < b->n_rows; r++)
            m[i].row.values[r] = b->rows[r].value;
        for (int c = 0; c < b->n_cols; c++)
            m[i].col.values[c] = target_of(b, c);
    }
    return 0;
}

static int find_code(struct band *b, struct err *err)
{
    const struct spec *s = b->s->spec;
    char there[80], wanted[16];
    b->code = stream_code((enum instructions)s->instructions, (enum stores)s->stores);
    if (b->code)
        return 0;
    stream_code_list((enum stores)s->stores, there, sizeof there);
    if (!*there)
        return err_set(err, ERR_INVALID, "stores",
                       "must be cached: there are no streaming stores for this CPU");
    param_get_text(spec_param(s, "instructions"), s, wanted, sizeof wanted);
    return err_set(err, ERR_INVALID, "instructions", "%s is not in this CPU, which has %s%s",
                   wanted, there, s->stores == STORES_STREAMING ? " with streaming stores" : "");
}

static int note_code(const struct band *b, struct err *err)
{
    const struct spec *s = b->s->spec;
    return session_note(b->s, err, CONDITION_INSTRUCTIONS, -1,
                        "kernels in %s instructions, %s stores", b->code->name,
                        s->stores == STORES_STREAMING ? "streaming" : "cached");
}

static int bandwidth_begin(struct band *b, struct err *err)
{
    struct session *s = b->s;
    struct matrix m[SHAPES_MAX] = {0};
    int ranks = session_ranks(s), n = 0;
    uint64_t bytes = 0;
    for (int r = 0; r < b->n_rows; r++)
        bytes = b->rows[r].array_bytes > bytes ? b->rows[r].array_bytes : bytes;
    bytes *= STREAM_ARRAYS;
    CLEANUP_MEM struct demand *d = calloc((size_t)(ranks + SPEC_TARGETS_MAX), sizeof *d);
    int outcome = d ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    for (int t = 0; d && t < s->n_targets && s->spec->sweep != SWEEP_OWN; t++)
        d[n++] = (struct demand){.node = s->targets[t], .bytes = bytes, .in_turn = true};
    for (int r = 0; d && r < ranks && s->spec->sweep == SWEEP_OWN; r++)
        d[n++] = (struct demand){.node = (int)s->board->slot[r].info.mem_wanted,
                                 .bytes = bytes / (uint64_t)ranks};
    if (outcome == 0 && session_is_rank0(s))
        outcome = bandwidth_make_matrices(b, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, session_is_rank0(s) ? b->n_shapes : 0, d, n, err);
}

// --- One cell ----------------------------------------------------------------------------------

struct pass_work {
    struct band *b;
    struct rank_team team;
    uint64_t array_bytes; // of all the team's ranks together
    struct arena arena;   // owned
    struct stream_arrays arrays;
    double want[3]; // that every element has now
    struct cell_sum sums[STREAM_KERNELS];
    double sum; // of reads, so that none is optimised away
};

static int place_arrays(struct pass_work *w, int target, struct err *err)
{
    size_t n = w->array_bytes / sizeof(double) / (size_t)w->team.n / 8 * 8;
    uint64_t bytes = n * sizeof(double);
    if (n < 64)
        return err_set(err, ERR_USAGE, "size", "--size: %llu bytes are too few for %d ranks",
                       (unsigned long long)w->array_bytes, w->team.n);
    if (session_arena(w->b->s, &w->arena, STREAM_ARRAYS * bytes, target, err) < 0)
        return -1;
    double *at = (double *)(void *)w->arena.base;
    w->arrays = (struct stream_arrays){.a = at, .b = at + n, .c = at + 2 * n, .n = n};
    stream_fill(&w->arrays, 0, n);
    stream_begin(w->want);
    return 0;
}

static int record(struct pass_work *w, enum stream_kernel k, struct err *err)
{
    struct sample got = rank_team_pass(w->b->s);
    double elements = (double)w->arrays.n * (double)w->team.n;
    got.hop_ns = stream_mb_per_s(k, elements, (double)(got.to - got.from));
    return cell_sum_add(&w->sums[k], &got, err);
}

static int pass(struct pass_work *w, enum stream_kernel k, bool counts, struct err *err)
{
    struct session *s = w->b->s;
    struct guard_mark from, to;
    rank_team_wait(s, &w->team);
    guard_begin(&from);
    w->sum += stream_pass_in(w->b->code, k, &w->arrays, 0, w->arrays.n);
    guard_end(&to);
    rank_team_set_pass(s, &from, &to, 0);
    stream_expect(w->want, k);
    rank_team_wait(s, &w->team);
    return counts && w->team.index == 0 ? record(w, k, err) : 0;
}

static bool wanted(const struct band *b, enum stream_kernel k)
{
    return b->s->spec->kernel == 0 || b->s->spec->kernel == (int)k + 1;
}

static int check_arrays(const struct pass_work *w, struct err *err)
{
    struct stream_check check = stream_verify(&w->arrays, w->want);
    if (!check.wrong)
        return 0;
    return err_set(err, ERR_INTERNAL, "",
                   "%zu elements of the arrays are wrong (worst relative error %g): the memory or "
                   "the compiler is at fault",
                   check.wrong, check.worst);
}

// STREAM's four in its order, again and again; then the two that it does not have, one by one.
static int all_passes(struct pass_work *w, struct err *err)
{
    static const enum stream_kernel groups[][4] = {
        {STREAM_COPY, STREAM_SCALE, STREAM_ADD, STREAM_TRIAD},
        {STREAM_READ, STREAM_KERNELS},
        {STREAM_WRITE, STREAM_KERNELS},
    };
    uint64_t begin = clock_mono_ns();
    for (size_t g = 0; g < COUNT_OF(groups); g++)
        for (int64_t p = 0; p < w->b->s->spec->passes; p++)
            for (int i = 0; i < 4 && groups[g][i] != STREAM_KERNELS; i++)
                if (wanted(w->b, groups[g][i]) && pass(w, groups[g][i], p > 0, err) < 0)
                    return -1;
    w->b->s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    return check_arrays(w, err);
}

static int bandwidth_sum_up(struct pass_work *w, struct err *err)
{
    struct slot *slot = w->b->s->slot;
    for (int k = 0; k < STREAM_KERNELS && w->team.index == 0; k++) {
        if (wanted(w->b, (enum stream_kernel)k) &&
            cell_sum_up(&w->sums[k], w->b->s->spec, &slot->cells[k], &slot->cleans[k], err) < 0)
            return -1;
    }
    return 0;
}

static int bandwidth_report(struct band *b, const struct rank_team *team, int row, int col,
                            struct err *err)
{
    const struct slot *slot = &b->s->board->slot[team->first];
    for (int i = 0, k = 0; k < STREAM_KERNELS; k++) {
        if (!wanted(b, (enum stream_kernel)k))
            continue;
        const struct shape *shape = &b->shapes[i++];
        session_judge(b->s, slot->cleans[k], 0, "%s: %s %lld, target %d", shape->name, shape->rows,
                      (long long)b->rows[row].value, target_of(b, col));
        if (session_report_cell(b->s, shape->name, row, col, &slot->cells[k], err) < 0)
            return -1;
    }
    return session_progress(b->s, PHASE_MEASURE, ++b->done / (double)(b->n_rows * b->n_cols), err);
}

static void pass_fini(struct pass_work *w)
{
    arena_fini(&w->arena);
    for (int k = 0; k < STREAM_KERNELS; k++)
        cell_sum_fini(&w->sums[k]);
}

static int bandwidth_measure(struct band *b, int row, int col, struct err *err)
{
    struct session *s = b->s;
    struct row of = {b, row};
    struct pass_work w CLEANUP(pass_fini) = {
        .b = b, .team = rank_team_of(s, belongs, &of), .array_bytes = b->rows[row].array_bytes};
    int outcome = w.team.mine ? place_arrays(&w, target_of(b, col), err) : 0;
    if (session_meet(s, outcome, err) < 0)
        return -1;
    outcome = w.team.mine ? all_passes(&w, err) : 0;
    if (session_meet(s, outcome, err) < 0 ||
        session_meet(s, w.team.mine ? bandwidth_sum_up(&w, err) : 0, err) < 0)
        return -1;
    return session_meet(s, session_is_rank0(s) ? bandwidth_report(b, &w.team, row, col, err) : 0,
                        err);
}

// The team whose arrays are smallest beside its caches, if they are below STREAM's rule.
static int warn_of_caches(const struct band *b, struct err *err)
{
    const struct stream_team *worst = NULL;
    for (int r = 0; r < b->n_rows; r++)
        if (b->rows[r].array_bytes < LLC_RULE * b->rows[r].llc_bytes &&
            (!worst || b->rows[r].llc_bytes > worst->llc_bytes))
            worst = &b->rows[r];
    if (!worst)
        return 0;
    return session_note(b->s, err, CONDITION_CACHE, -1,
                        "arrays of %llu MiB are less than four times the last-level caches (%llu "
                        "MiB) of %d rank%s: part of the bandwidth is that of the caches",
                        (unsigned long long)(worst->array_bytes >> 20),
                        (unsigned long long)(worst->llc_bytes >> 20), worst->n_ranks,
                        worst->n_ranks == 1 ? "" : "s");
}

static int bandwidth_measure_all(struct band *b, struct err *err)
{
    struct session *s = b->s;
    if (session_meet(s, find_code(b, err), err) < 0 ||
        session_meet(s, find_rows(b, err), err) < 0 || bandwidth_begin(b, err) < 0 ||
        session_meet(s, note_code(b, err), err) < 0 ||
        session_meet(s, warn_of_caches(b, err), err) < 0)
        return -1;
    for (int col = 0; col < b->n_cols; col++)
        for (int row = 0; row < b->n_rows; row++)
            if (bandwidth_measure(b, row, col, err) < 0)
                return -1;
    return 0;
}

int bandwidth_run(struct session *s, struct err *err)
{
    struct band b = {.s = s};
    b.n_shapes = shape_list(s->spec, b.shapes);
    if (s->spec->sweep != SWEEP_OWN)
        s->slot->info.mem_wanted = -1; // each target in turn
    int outcome = bandwidth_measure_all(&b, err);
    free(b.rows);
    free(b.caches);
    return outcome;
}
