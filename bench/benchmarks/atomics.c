// SPDX-License-Identifier: Apache-2.0
// The atomics benchmark: 1, 2, 4 … ranks at once work on one cache line with atomic operations, or
// take and give back one lock. A sample:
//   1. the first rank of the team clears the line
//   2. the team meets at a spinning barrier
//   3. each rank makes operations until one of them has worked for sample_us; only this is timed
//   4. the team meets again; the first rank sums up, and compares the line with what was done
// The other ranks sleep.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/stats/fairness.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/contended.h"
#include "bench/memory/shared_memory.h"
#include "bench/session/rank_team.h"
#include "model/method.h"
#include "model/spec_values.h"
#include "model/stream_team.h"

enum { PATIENCE = 4 }; // times the samples requested, while too many are disturbed

// What a sample gives, each a matrix.
enum quantity { TIME, RATE, FAIRNESS, LEAST_SHARE, HANDOVER, QUANTITIES };

struct atomics {
    struct session *s;
    int n_shapes;
    struct shape shapes[SHAPES_MAX];
    const struct atomic_code *code;
    int n_rows, n_cols;
    int rows[SPEC_RANKS_MAX];            // ranks of each team
    int64_t operations[AXIS_OPERATIONS]; // of the columns
    struct share line;                   // of the first rank
    struct placed placed;                // before measuring
    uint64_t batch[AXIS_OPERATIONS];
    struct cell_sum *sums; // [row][column][quantity] of the first rank; owned
    double *parts;         // of a sample's ranks; owned
    int64_t done;          // visits of cells
};

static uint64_t line_bytes(void)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (sizeof(struct contended) + page - 1) / page * page;
}

static bool atomics_among_first(const void *context, int rank)
{
    return rank < *(const int *)context;
}

static struct cell_sum *atomics_sums(const struct atomics *a, int row, int col)
{
    return &a->sums[(row * a->n_cols + col) * QUANTITIES];
}

// Of locks alone, and of two ranks at least, where there is a rank to hand them to.
static bool has_handover(const struct atomics *a, int row, int col)
{
    return a->rows[row] > 1 && operation_is_lock((enum operation)a->operations[col]);
}

// --- What is announced ---------------------------------------------------------------------------

// The rows or columns of the handover: the others come before them.
static int first_handover(const struct atomics *a, bool rows)
{
    int first = 0;
    while (rows ? a->rows[first] < 2 : !operation_is_lock((enum operation)a->operations[first]))
        first++;
    return first;
}

static int atomics_make_matrix(const struct atomics *a, struct matrix *m, const struct shape *shape,
                               bool handover, struct err *err)
{
    int row = handover ? first_handover(a, true) : 0, col = handover ? first_handover(a, false) : 0;
    if (shape_make(m, shape, a->n_rows - row, a->n_cols - col, err) < 0)
        return -1;
    for (int r = 0; r < m->row.n; r++)
        m->row.values[r] = a->rows[row + r];
    for (int c = 0; c < m->col.n; c++)
        m->col.values[c] = a->operations[col + c];
    return 0;
}

static int atomics_begin(struct atomics *a, struct err *err)
{
    struct session *s = a->s;
    struct matrix m[SHAPES_MAX] = {0};
    int outcome = 0, n = session_is_rank0(s) ? a->n_shapes : 0;
    for (int i = 0; outcome == 0 && i < n; i++)
        outcome = atomics_make_matrix(a, &m[i], &a->shapes[i], i == HANDOVER, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, n, NULL, 0, err);
}

static int find_teams_of_atomics(struct atomics *a, struct err *err)
{
    a->n_rows = stream_thread_counts(a->s->spec, session_ranks(a->s), a->rows, err);
    if (a->n_rows < 0)
        return -1;
    if (a->n_shapes <= HANDOVER || a->rows[a->n_rows - 1] > 1)
        return 0;
    return err_set(err, ERR_USAGE, "threads",
                   "--threads: a lock needs a number above 1, to be handed over");
}

static int atomics_choose(struct atomics *a, struct err *err)
{
    struct session *s = a->s;
    a->n_shapes = shape_list(s->spec, a->shapes);
    a->n_cols = spec_operations(s->spec, a->operations);
    a->code = atomic_code((enum atomic_form)s->spec->form);
    if (session_ranks(s) < 2)
        return err_set(err, ERR_USAGE, "ranks",
                       "two ranks are needed: start at least two (mpirun -np 2, --np=2)");
    if (!a->code)
        return err_set(err, ERR_UNAVAILABLE, "form",
                       "--form: must be auto on this CPU: lse and llsc are instructions of arm64, "
                       "and lse needs ARMv8.1");
    return find_teams_of_atomics(a, err);
}

// --- The line ------------------------------------------------------------------------------------

// The first rank makes it, so it is on that rank's node; all verify that.
static int atomics_share(struct atomics *a, struct err *err)
{
    struct session *s = a->s;
    const struct slot *owner = &s->board->slot[0];
    bool ours = session_is_rank0(s);
    int outcome = ours ? share_make(&a->line, line_bytes(), err) : 0;
    if (ours && outcome == 0)
        contended_reset((struct contended *)(void *)a->line.base);
    s->slot->share_fd = a->line.fd;
    if (session_meet(s, outcome, err) < 0)
        return -1;
    if (!ours)
        outcome = share_open(&a->line, owner->info.pid, owner->share_fd, line_bytes(), err);
    for (uint64_t i = 0; outcome == 0 && i < line_bytes(); i += 4096)
        (void)*(volatile char *)(a->line.base + i); // mapped here too, to be looked up
    if (outcome == 0)
        a->placed = session_verify(s, a->line.base, a->line.bytes, owner->cpu_place.node);
    return session_meet(s, outcome, err);
}

// --- A visit of a cell ---------------------------------------------------------------------------

struct atomics_cell {
    struct atomics *a;
    struct rank_team *team;
    int row, col;
};

static void atomics_part(const struct atomics_cell *c, uint64_t least_ns)
{
    struct atomics *a = c->a;
    struct session *s = a->s;
    struct guard_mark from, to;
    struct contended_done done;
    enum operation operation = (enum operation)a->operations[c->col];
    struct contended_part part = {.shared = (struct contended *)(void *)a->line.base,
                                  .operation = operation,
                                  .code = a->code,
                                  .number = (uint32_t)c->team->index,
                                  .least_ns = least_ns,
                                  .batch = a->batch[operation]};
    rank_team_wait(s, c->team);
    guard_begin(&from);
    contended_run(&part, &done);
    guard_end(&to);
    a->batch[operation] = part.batch;
    rank_team_set_pass(s, &from, &to, 0);
    s->slot->operations = done.operations;
    s->slot->handovers = done.handovers;
    s->slot->balance = done.balance;
    rank_team_wait(s, c->team);
}

static struct contended_done sum_of_team(const struct atomics_cell *c)
{
    const struct session *s = c->a->s;
    struct contended_done all = {0};
    for (int r = 0; r < c->team->n; r++) {
        const struct slot *slot = &s->board->slot[r];
        all.operations += slot->operations;
        all.handovers += slot->handovers;
        all.balance += slot->balance;
        c->a->parts[r] = (double)slot->operations;
    }
    return all;
}

static int atomics_add(const struct atomics_cell *c, const struct sample *pass,
                       const struct contended_done *all, struct err *err)
{
    struct atomics *a = c->a;
    double ns = (double)(pass->to - pass->from), n = c->team->n;
    double operations = (double)all->operations;
    const double values[QUANTITIES] = {
        [TIME] = ns * n / operations,
        [RATE] = 1e3 * operations / ns,
        [FAIRNESS] = fairness_jain(a->parts, c->team->n),
        [LEAST_SHARE] = fmax(100 * fairness_least(a->parts, c->team->n), CELL_VALUE_LEAST),
        [HANDOVER] = ns / fmax(1, (double)all->handovers),
    };
    for (int q = 0; q < QUANTITIES; q++) {
        struct sample got = *pass;
        got.hop_ns = values[q];
        if ((q != HANDOVER || has_handover(a, c->row, c->col)) &&
            cell_sum_add(&atomics_sums(a, c->row, c->col)[q], &got, err) < 0)
            return -1;
    }
    return 0;
}

// The first rank, while the others wait for it. `counts`: no warm-up.
static int atomics_judge(const struct atomics_cell *c, bool counts, struct err *err)
{
    struct contended *shared = (struct contended *)(void *)c->a->line.base;
    enum operation operation = (enum operation)c->a->operations[c->col];
    const struct contended_done all = sum_of_team(c);
    struct sample pass = rank_team_pass(c->a->s);
    bool right = contended_is_right(shared, operation, &all);
    contended_reset(shared);
    if (!right)
        return err_set(err, ERR_INTERNAL, "", "%s with %d ranks lost operations on its cache line",
                       operation_names[operation], c->team->n);
    return counts ? atomics_add(c, &pass, &all, err) : 0;
}

static int atomics_sample(const struct atomics_cell *c, uint64_t least_ns, bool counts,
                          struct err *err)
{
    atomics_part(c, least_ns);
    return c->team->index == 0 ? atomics_judge(c, counts, err) : 0;
}

// Are there as many clean samples as wanted, or is patience at its end?
static bool atomics_has_enough(const struct cell_sum *sum, int before, int wanted,
                               uint64_t begin_ns, uint64_t sample_ns)
{
    uint64_t limit_ns = (uint64_t)(PATIENCE * wanted) * sample_ns;
    return sum->n - before >= wanted || clock_mono_ns() - begin_ns > limit_ns;
}

// The first rank decides for all before the next barrier whether there is another sample.
static int atomics_visit_cell(const struct atomics_cell *c, bool first_of_row, struct err *err)
{
    struct session *s = c->a->s;
    const struct cell_sum *sum = c->a->sums ? atomics_sums(c->a, c->row, c->col) : NULL;
    uint64_t sample_ns = (uint64_t)s->spec->sample_us * 1000;
    uint64_t warm_ns = first_of_row && WARM_NS > sample_ns ? WARM_NS : sample_ns;
    int wanted = (int)((s->spec->min_samples + s->spec->visits - 1) / s->spec->visits);
    int before = sum ? sum->n : 0;
    int outcome = atomics_sample(c, warm_ns, false, err);
    if (first_of_row)
        reference_clock_take(&s->slot->cycle);
    uint64_t begin = clock_mono_ns();
    for (int i = 0; i < PATIENCE * wanted; i++) {
        if (sum)
            s->slot->measured =
                outcome < 0 || (i && atomics_has_enough(sum, before, wanted, begin, sample_ns));
        if (outcome < 0)
            board_fault(s->board, s->comm->rank, err);
        rank_team_wait(s, c->team);
        if (s->board->slot[0].measured || board_faulty(s->board))
            break;
        outcome = atomics_sample(c, sample_ns, true, err);
    }
    return outcome;
}

static int atomics_visit_row(struct atomics *a, int row, struct err *err)
{
    struct session *s = a->s;
    uint64_t begin = clock_mono_ns();
    struct rank_team team = rank_team_of(s, atomics_among_first, &a->rows[row]);
    if (session_meet(s, 0, err) < 0)
        return -1;
    int outcome = 0;
    for (int col = 0; team.mine && col < a->n_cols && outcome == 0 && !board_faulty(s->board);
         col++)
        outcome = atomics_visit_cell(&(struct atomics_cell){a, &team, row, col}, col == 0, err);
    s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    for (int i = 0; a->sums && i < a->n_cols * QUANTITIES; i++)
        cell_sum_next_visit(&atomics_sums(a, row, 0)[i]);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    double all = (double)(s->spec->visits * a->n_rows);
    return session_meet(s, session_progress(s, PHASE_MEASURE, (double)++a->done / all, err), err);
}

// --- The whole -----------------------------------------------------------------------------------

static int atomics_report_cell(struct atomics *a, int row, int col, struct err *err)
{
    struct session *s = a->s;
    for (int q = 0; q < a->n_shapes; q++) {
        struct cell_sum *sum = &atomics_sums(a, row, col)[q];
        int skipped = q == HANDOVER;
        struct evidence evidence;
        struct cell cell;
        if (!cell_sum_any(sum)) // no handover, or the time limit came first
            continue;
        if (cell_sum_up(sum, s->spec, &cell, &evidence, err) < 0)
            return -1;
        if (q == TIME)
            session_judge(s, &evidence, 0, "threads %d, operation %s", a->rows[row],
                          operation_names[a->operations[col]]);
        if (session_report_cell(s, a->shapes[q].name, row - (skipped ? first_handover(a, true) : 0),
                                col - (skipped ? first_handover(a, false) : 0), &cell, err) < 0)
            return -1;
    }
    return 0;
}

static int atomics_report(struct atomics *a, struct err *err)
{
    for (int row = 0; a->sums && row < a->n_rows; row++)
        for (int col = 0; col < a->n_cols; col++)
            if (atomics_report_cell(a, row, col, err) < 0)
                return -1;
    return 0;
}

static int atomics_room(struct atomics *a, struct err *err)
{
    if (!session_is_rank0(a->s))
        return 0;
    a->sums = calloc((size_t)(a->n_rows * a->n_cols * QUANTITIES), sizeof *a->sums);
    a->parts = calloc((size_t)session_ranks(a->s), sizeof *a->parts);
    return a->sums && a->parts ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for samples");
}

static int atomics_measure_all(struct atomics *a, struct err *err)
{
    struct session *s = a->s;
    if (session_meet(s, atomics_choose(a, err), err) < 0 ||
        session_meet(s, atomics_room(a, err), err) < 0 || atomics_share(a, err) < 0 ||
        atomics_begin(a, err) < 0 ||
        session_meet(s,
                     session_note(s, err, CONDITION_INSTRUCTIONS, -1,
                                  "fetch_add, cas and exchange by %s instructions",
                                  atomic_code_name(a->code)),
                     err) < 0)
        return -1;
    for (int64_t v = 0; v < s->spec->visits; v++)
        for (int row = 0; row < a->n_rows && !session_stopped(s); row++)
            if (atomics_visit_row(a, row, err) < 0)
                return -1;
    session_verify_again(s, a->line.base, a->line.bytes, s->board->slot[0].cpu_place.node,
                         a->placed);
    return session_meet(s, atomics_report(a, err), err);
}

static void atomics_fini(struct atomics *a)
{
    for (int i = 0; a->sums && i < a->n_rows * a->n_cols * QUANTITIES; i++)
        cell_sum_fini(&a->sums[i]);
    share_fini(&a->line);
    free(a->sums);
    free(a->parts);
}

int atomics_run(struct session *s, struct err *err)
{
    struct atomics a CLEANUP(atomics_fini) = {.s = s, .line = {.fd = -1}};
    s->slot->info.mem_wanted = -1; // the line is where the first rank is
    return atomics_measure_all(&a, err);
}
