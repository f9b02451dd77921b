// SPDX-License-Identifier: Apache-2.0
// The pagefault benchmark: the cost of the first touch of a page, base pages (4 KiB) and
// transparent huge pages (2 MiB), on each target node, with 1, 2, 4 … ranks at once. A pass:
//   1. each rank of the team maps fresh memory of its own, binds it and advises the page size
//   2. the team meets at a spinning barrier
//   3. each rank writes one byte to each of its pages; only this is timed
//   4. the rank verifies where its pages are and whether they are huge, and unmaps them
// A sample is the time from the first start to the last end, per page of one rank. With
// cost=collapse or migrate the rank touches its base pages before the barrier; step 3 is then what
// the kernel does with these pages.
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "bench/benchmarks/table.h"
#include "bench/session/rank_team.h"
#include "model/stream_team.h"

enum {
    KINDS = 4,
    BASE_PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    PATHS_MAX = SPEC_TARGETS_MAX * SPEC_TARGETS_MAX
};

struct fault_cell;
typedef int page_action(const struct fault_cell *c, struct err *err);
static page_action touch_first, collapse, migrate;

// Those of one cost are neighbours, in the order of its matrices.
static const struct page_kind {
    enum page_cost cost;
    enum pages pages; // that the memory is mapped for
    uint64_t page;    // that is counted
    page_action *act; // what is timed
} page_kinds[KINDS] = {
    {COST_FAULT, PAGES_4K, BASE_PAGE, touch_first},
    {COST_FAULT, PAGES_THP, HUGE_PAGE, touch_first},
    {COST_COLLAPSE, PAGES_THP, HUGE_PAGE, collapse}, // mapped at a huge page
    {COST_MIGRATE, PAGES_4K, BASE_PAGE, migrate},
};

// Where the memory is mapped and where it is in the end.
struct page_path {
    int from, to;
};

struct faults {
    struct session *s;
    struct shape shapes[SHAPES_MAX];
    uint64_t bytes;                // of each rank
    const struct page_kind *kinds; // of the cost
    int n_kinds, n_cols, n_rows;
    struct page_path cols[PATHS_MAX];
    int rows[STREAM_SERIES_MAX]; // ranks of each team
    int done;                    // visits of cells
    int64_t visits, passes;      // of a cell; of each visit
    struct cell_sum *sums;       // a cell each: of teams whose first rank this is; owned
    double *huge;                // a cell each: the least share of this rank's memory on huge
                                 // pages, of all passes; owned
    int cells, poor;             // with huge pages advised; that lack some
    double worst;                // share of huge pages, of those
    char worst_cell[80];
};

static bool is_among_first(const void *context, int rank)
{
    return rank < *(const int *)context;
}

static int pagefault_make_matrices(const struct faults *f, struct matrix *m, struct err *err)
{
    for (int k = 0; k < f->n_kinds; k++) {
        if (shape_make(&m[k], &f->shapes[k], f->n_rows, f->n_cols, err) < 0)
            return -1;
        for (int r = 0; r < f->n_rows; r++)
            m[k].row.values[r] = f->rows[r];
        for (int c = 0; c < f->n_cols; c++)
            m[k].col.values[c] = f->s->spec->cost == COST_MIGRATE
                                     ? axis_pair(f->cols[c].from, f->cols[c].to)
                                     : f->cols[c].to;
    }
    return 0;
}

static int pagefault_begin(struct faults *f, struct err *err)
{
    struct session *s = f->s;
    struct matrix m[SHAPES_MAX] = {0};
    struct demand d[SPEC_TARGETS_MAX];
    int outcome = 0;
    for (int t = 0; t < s->n_targets; t++)
        d[t] = (struct demand){
            .node = s->targets[t], .bytes = (uint64_t)session_ranks(s) * f->bytes, .in_turn = true};
    if (session_is_rank0(s))
        outcome = pagefault_make_matrices(f, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, session_is_rank0(s) ? f->n_kinds : 0, d, s->n_targets, err);
}

// --- One cell ----------------------------------------------------------------------------------

struct fault_cell {
    struct faults *f;
    struct rank_team team;
    const struct page_kind *kind;
    struct page_path path;
    struct arena arena; // of one pass; owned
    struct cell_sum *sum;
    double *huge;
};

static void fault_cell_fini(struct fault_cell *c)
{
    arena_fini(&c->arena);
}

static void touch_pages(const struct arena *a, uint64_t page)
{
    for (uint64_t at = 0; at < a->bytes; at += page)
        ((volatile char *)a->base)[at] = 1;
}

// Where no huge page was to be had, most base pages are untouched yet.
static void check_pages(struct fault_cell *c)
{
    struct rank_info got = {0};
    touch_pages(&c->arena, BASE_PAGE);
    arena_report(&c->arena, &got);
    *c->huge = got.huge_share < *c->huge ? got.huge_share : *c->huge;
    if (c->kind->page == HUGE_PAGE)
        session_check(c->f->s, &c->arena, c->path.to);
    else
        session_verify(c->f->s, c->arena.base, c->arena.bytes, c->path.to);
}

static int touch_first(const struct fault_cell *c, struct err *err)
{
    (void)err;
    touch_pages(&c->arena, c->kind->page);
    return 0;
}

static int collapse(const struct fault_cell *c, struct err *err)
{
    return arena_collapse(&c->arena, err);
}

static int migrate(const struct fault_cell *c, struct err *err)
{
    return place_move(c->arena.base, c->arena.bytes, BASE_PAGE, c->path.to, err);
}

// Fresh memory; of other costs than the first touch with its base pages touched.
static int fault_prepare(struct fault_cell *c, struct err *err)
{
    if (session_map(c->f->s, &c->arena, c->f->bytes, c->kind->pages, c->path.from, err) < 0)
        return -1;
    if (c->kind->cost == COST_COLLAPSE)
        arena_advise_huge(&c->arena, false);
    if (c->kind->cost != COST_FAULT)
        touch_pages(&c->arena, BASE_PAGE);
    if (c->kind->cost == COST_COLLAPSE)
        arena_advise_huge(&c->arena, true);
    return 0;
}

static int fault_pass(struct fault_cell *c, bool counts, struct err *err)
{
    struct session *s = c->f->s;
    struct guard_mark from, to;
    uint64_t page = c->kind->page;
    if (fault_prepare(c, err) < 0)
        return -1;
    rank_team_wait(s, &c->team);
    guard_begin(&from);
    int outcome = c->kind->act(c, err);
    guard_end(&to);
    if (outcome < 0)
        return -1;
    rank_team_set_pass(s, &from, &to, GUARD_FAULTS); // which are what is measured
    rank_team_wait(s, &c->team);
    if (counts && c->team.index == 0) {
        struct sample got = rank_team_pass(s);
        got.hop_ns = (double)(got.to - got.from) / ((double)c->arena.bytes / (double)page);
        if (cell_sum_add(c->sum, &got, err) < 0)
            return -1;
    }
    check_pages(c);
    arena_fini(&c->arena);
    return 0;
}

// A rank that fails says so at once: the others wait for it at the next barrier. The first pass of
// all is not counted.
static int fault_passes(struct fault_cell *c, bool fresh, struct err *err)
{
    struct session *s = c->f->s;
    uint64_t begin = clock_mono_ns();
    for (int64_t p = fresh ? -1 : 0; p < c->f->passes && !board_faulty(s->board); p++)
        if (fault_pass(c, p >= 0, err) < 0) {
            board_fault(s->board, s->comm->rank, err);
            return -1;
        }
    cell_sum_next_visit(c->sum);
    s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    reference_clock_take(&s->slot->cycle);
    return 0;
}

static void count_huge(struct faults *f, const struct rank_team *team, const char *cell)
{
    double least = 1;
    for (int r = 0; r < team->n; r++)
        if (f->s->board->slot[r].huge_share < least)
            least = f->s->board->slot[r].huge_share;
    f->cells++;
    if (least >= 0.99)
        return;
    if (!f->poor++ || least < f->worst) {
        f->worst = least;
        snprintf(f->worst_cell, sizeof f->worst_cell, "%s", cell);
    }
}

static int pagefault_report_cell(struct faults *f, const struct rank_team *team, int kind, int row,
                                 int col, struct err *err)
{
    struct session *s = f->s;
    const struct slot *slot = &s->board->slot[team->first];
    const char *name = f->shapes[kind].name;
    const struct axis *a = &s->emit->matrix[kind].col;
    char cell[80], label[40];
    axis_label(a, col, label, sizeof label);
    snprintf(cell, sizeof cell, "%s: threads %d, %s %s", name, team->n, a->name, label);
    session_judge(s, &slot->evidence, 0, "%s", cell);
    if (f->kinds[kind].page == HUGE_PAGE)
        count_huge(f, team, cell);
    return session_report_cell(s, name, row, col, &slot->cell, err);
}

static int cell_at(const struct faults *f, int kind, int row, int col)
{
    return (kind * f->n_rows + row) * f->n_cols + col;
}

static int pagefault_visit_cell(struct faults *f, int kind, int row, int col, int64_t visit,
                                struct err *err)
{
    struct session *s = f->s;
    int at = cell_at(f, kind, row, col), cells = f->n_kinds * f->n_rows * f->n_cols;
    struct fault_cell c CLEANUP(fault_cell_fini) = {.f = f,
                                                    .kind = &f->kinds[kind],
                                                    .path = f->cols[col],
                                                    .sum = &f->sums[at],
                                                    .huge = &f->huge[at]};
    c.team = rank_team_of(s, is_among_first, &f->rows[row]);
    if (session_meet(s, 0, err) < 0 || // the barrier of the team is made
        session_meet(s, c.team.mine ? fault_passes(&c, visit == 0, err) : 0, err) < 0)
        return -1;
    return session_meet(
        s, session_progress(s, PHASE_MEASURE, ++f->done / ((double)cells * (double)f->visits), err),
        err);
}

// By the first rank of its team, which has the samples.
static int pagefault_sum_up(struct faults *f, int kind, int row, int col, struct err *err)
{
    struct session *s = f->s;
    int at = cell_at(f, kind, row, col), outcome = 0;
    const struct cell_sum *sum = &f->sums[at];
    struct rank_team team = rank_team_of(s, is_among_first, &f->rows[row]);
    bool ours = team.mine && team.index == 0;
    s->slot->huge_share = f->huge[at];
    s->slot->measured = ours && cell_sum_any(sum);
    if (s->slot->measured)
        outcome = cell_sum_up(sum, s->spec, &s->slot->cell, &s->slot->evidence, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    if (session_is_rank0(s) && s->board->slot[team.first].measured)
        outcome = pagefault_report_cell(f, &team, kind, row, col, err);
    return session_meet(s, outcome, err);
}

static int note_huge(struct faults *f, struct err *err)
{
    bool first = f->kinds->cost == COST_FAULT;
    if (!f->poor)
        return 0;
    return session_note(f->s, err, CONDITION_HUGE_PAGES, -1,
                        "%d of %d %s cells lack huge pages: %.0f %% of the memory was on huge "
                        "pages (%s%s); %s",
                        f->poor, f->cells, first ? "thp" : "collapse", 100 * f->worst,
                        f->worst_cell, f->poor > 1 ? " and others" : "",
                        first ? "such a cell holds the cost of base pages"
                              : "the kernel found no huge page for the rest");
}

static int pagefault_measure_all(struct faults *f, struct err *err)
{
    struct session *s = f->s;
    if (pagefault_begin(f, err) < 0)
        return -1;
    time_limit_begin(&s->limit, clock_mono_ns());
    for (int64_t v = 0; v < f->visits; v++)
        for (int col = 0; col < f->n_cols; col++)
            for (int row = 0; row < f->n_rows; row++)
                for (int kind = 0; kind < f->n_kinds && !session_stopped(s); kind++)
                    if (pagefault_visit_cell(f, kind, row, col, v, err) < 0)
                        return -1;
    for (int col = 0; col < f->n_cols; col++)
        for (int row = 0; row < f->n_rows; row++)
            for (int kind = 0; kind < f->n_kinds; kind++)
                if (pagefault_sum_up(f, kind, row, col, err) < 0)
                    return -1;
    return session_meet(s, note_huge(f, err), err);
}

static int check_page_sizes(struct err *err)
{
    const struct page_sizes sizes = memory_page_sizes("");
    if (sizes.base == BASE_PAGE && sizes.thp == HUGE_PAGE)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "benchmark",
                   "pagefault needs base pages of 4 KiB and huge pages of 2 MiB; this kernel has "
                   "%llu and %llu KiB",
                   (unsigned long long)(sizes.base >> 10), (unsigned long long)(sizes.thp >> 10));
}

// The kinds of the cost, and a column for each target, or for each pair of them.
static void pagefault_find_columns(struct faults *f)
{
    const struct session *s = f->s;
    bool pairs = s->spec->cost == COST_MIGRATE;
    f->kinds = page_kinds;
    while (f->kinds->cost != (enum page_cost)s->spec->cost)
        f->kinds++;
    while (f->kinds + f->n_kinds < page_kinds + KINDS &&
           f->kinds[f->n_kinds].cost == f->kinds->cost)
        f->n_kinds++;
    for (int i = 0; i < s->n_targets; i++)
        for (int k = 0; k < s->n_targets && f->n_cols < PATHS_MAX; k++)
            if (pairs ? i != k : i == k)
                f->cols[f->n_cols++] = (struct page_path){s->targets[i], s->targets[k]};
}

static int check_columns(const struct faults *f, struct err *err)
{
    return f->n_cols ? 0
                     : err_set(err, ERR_USAGE, "cost",
                               "--cost: migrate needs two nodes with memory; targets has %d",
                               f->s->n_targets);
}

static int pagefault_init(struct faults *f, struct session *s, struct err *err)
{
    const struct spec *p = s->spec;
    f->s = s;
    f->bytes = arena_round(session_size(s), PAGES_THP);
    f->visits = p->visits < p->passes ? p->visits : p->passes;
    f->passes = (p->passes + f->visits - 1) / f->visits;
    shape_list(p, f->shapes);
    f->n_rows = stream_series(session_ranks(s), f->rows);
    pagefault_find_columns(f);
    if (check_page_sizes(err) < 0 || check_columns(f, err) < 0)
        return -1;
    size_t cells = (size_t)(f->n_kinds * f->n_rows * f->n_cols);
    f->sums = calloc(cells, sizeof *f->sums);
    f->huge = calloc(cells, sizeof *f->huge);
    if (!f->sums || !f->huge)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the benchmark");
    for (size_t i = 0; i < cells; i++)
        f->huge[i] = 1;
    s->slot->info.mem_wanted = -1; // each target in turn
    s->limit.repetitions = f->visits;
    return 0;
}

static void faults_fini(struct faults *f)
{
    for (int i = 0; f->sums && i < f->n_kinds * f->n_rows * f->n_cols; i++)
        cell_sum_fini(&f->sums[i]);
    free(f->sums);
    free(f->huge);
}

int pagefault_run(struct session *s, struct err *err)
{
    struct faults f CLEANUP(faults_fini) = {0};
    if (session_meet(s, pagefault_init(&f, s, err), err) < 0)
        return -1;
    return pagefault_measure_all(&f, err);
}
