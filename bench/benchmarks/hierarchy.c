// SPDX-License-Identifier: Apache-2.0
// The hierarchy benchmark: what a load's latency is made of. One rank at a time, all others asleep:
//   latency      random order through working sets from 4 KiB on, four to an octave
//   base_pages   one line on each of so many base pages: the caches hold the lines, the TLB at some
//                number no longer holds the translations
//   huge_pages   the same on huge pages
//   packed       as many lines side by side: what the same lines take without the pages
//   parallel     1 … 32 chains at once through memory: time per access
//   stride       in address order, by distance: what the prefetchers save
//   cycle        a core's cycle, by dependent instructions
//   nodes        random order through memory of each target node
// The parts take turns as often as there are visits, so that each is measured at moments spread
// over the rank's time.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/core_clock.h"
#include "bench/kernels/parallel_chase.h"
#include "bench/session/chaser.h"
#include "bench/session/proofs.h"
#include "model/hierarchy_parts.h"
#include "model/spec_values.h"

enum {
    CYCLE_TRIES = 20,
    TURNS_LEAST = 256, // of parallel chases, between looks at the clock
};

struct column {
    int64_t value;
    struct cell_sum sum; // owned
};

struct hierarchy {
    struct session *s;
    struct shape shapes[SHAPES_MAX];
    struct chaser chaser; // owned
    struct arena arena;   // of huge pages; owned
    struct arena base;    // of base pages; owned
    uint64_t bytes, usual, line, base_page, huge_page;
    int home; // among the targets: the rank's own node, or the first
    int n[HIERARCHY_PARTS];
    struct column *columns[HIERARCHY_PARTS]; // owned
    struct proofs proofs;                    // on rank 0
    struct time_limit cells;                 // of this rank's cells: a visit is a long step
};

// --- Columns -----------------------------------------------------------------------------------

static int make_columns(struct hierarchy *h, struct err *err)
{
    struct hierarchy_columns made;
    hierarchy_columns_make(&made, h->bytes, h->line, h->base_page, h->huge_page);
    for (int t = 0; t < h->s->n_targets; t++)
        made.value[PART_NODES][made.n[PART_NODES]++] = h->s->targets[t];
    for (int part = 0; part < HIERARCHY_PARTS; part++) {
        h->columns[part] = calloc((size_t)made.n[part] + 1, sizeof *h->columns[part]);
        if (!h->columns[part])
            return err_set(err, ERR_NO_MEMORY, "", "no memory for the columns");
        h->n[part] = made.n[part];
        for (int c = 0; c < made.n[part]; c++)
            h->columns[part][c].value = made.value[part][c];
    }
    return 0;
}

static int hierarchy_make_matrices(const struct hierarchy *h, struct matrix *m, struct err *err)
{
    for (int part = 0; part < HIERARCHY_PARTS; part++) {
        if (shape_make(&m[part], &h->shapes[part], session_ranks(h->s), h->n[part], err) < 0)
            return -1;
        for (int c = 0; c < h->n[part]; c++)
            m[part].col.values[c] = h->columns[part][c].value;
    }
    return 0;
}

// --- One visit of a cell -----------------------------------------------------------------------

// As far as other chases are warmed up, whatever the limits of a cell: a quick run measures the
// same. The clock is up from the part before.
static void hierarchy_warm(struct hierarchy *h)
{
    uint64_t begin = clock_mono_ns();
    chaser_fill_caches(&h->chaser);
    h->s->slot->phase_ms[PHASE_WARMUP] += session_ms_since(begin);
}

// A chain of so many links so far apart, in random order.
static int chase_links(struct hierarchy *h, const struct arena *a, uint64_t links, uint64_t stride,
                       int64_t visit, struct cell_sum *sum, struct err *err)
{
    h->chaser.stride = stride;
    chaser_build(&h->chaser, a, links * stride, visit, h->s->spec->visits);
    sampler_clear(&h->chaser.sampler);
    hierarchy_warm(h);
    chaser_sample(&h->chaser);
    return sampler_keep(&h->chaser.sampler, NULL, sum, err);
}

static struct sample parallel_sample(const struct hierarchy *h, void *at[], int chains)
{
    struct guard_mark from, to;
    uint64_t length_ns = 1000 * (uint64_t)h->s->spec->sample_us, turns = 0;
    guard_begin(&from);
    do {
        parallel_chase(at, chains, TURNS_LEAST);
        turns += TURNS_LEAST;
    } while (clock_mono_ns() - from.wall_ns < length_ns);
    guard_end(&to);
    struct sample got = {.from = from.wall_ns, .to = to.wall_ns};
    got.hop_ns = (double)(to.wall_ns - from.wall_ns) / ((double)turns * chains);
    got.verdict = guard_tally(&h->s->slot->lost, &from, &to);
    return got;
}

// The chains are parts of one cycle, as far apart in it as can be. It was walked by the part before
// (the same chain, in the first column), and is by the samples: memory never holds still in a cache
// that is a quarter of it.
static int chase_parallel(struct hierarchy *h, int col, int64_t visit, struct err *err)
{
    struct column *column = &h->columns[PART_PARALLEL][col];
    struct sampler *sampler = &h->chaser.sampler;
    void *at[PARALLEL_CHAINS_MAX];
    uint64_t begin = clock_mono_ns();
    int chains = (int)column->value;
    if (col == 0) {
        h->chaser.stride = h->line;
        chaser_build(&h->chaser, &h->arena, h->usual, visit, h->s->spec->visits);
        hierarchy_warm(h);
    }
    const struct chain *c = &h->chaser.chain;
    for (int i = 0; i < chains; i++)
        at[i] = chain_link(c, perm_at(&c->order, c->links / (uint64_t)chains * (uint64_t)i));
    sampler_clear(sampler);
    do {
        struct sample got = parallel_sample(h, at, chains);
        sampler_add(sampler, &got);
    } while (!sampler_done(sampler));
    h->s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    return sampler_keep(sampler, NULL, &column->sum, err);
}

static int chase_stride(struct hierarchy *h, int col, struct err *err)
{
    struct column *column = &h->columns[PART_STRIDE][col];
    struct sampler *sampler = &h->chaser.sampler;
    uint64_t begin = clock_mono_ns(),
             bytes = h->usual / HIERARCHY_STRIDE_MOST * HIERARCHY_STRIDE_MOST;
    struct warm_links warm = chaser_warm_links(h->s, bytes / h->line);
    sampler_start(sampler,
                  chain_write_strided(h->arena.base, bytes, h->line, (uint64_t)column->value));
    h->s->slot->phase_ms[PHASE_BUILD] += session_ms_since(begin);
    sampler_clear(sampler);
    begin = clock_mono_ns();
    sampler_warm(sampler, warm.loaded + warm.walked, 0);
    h->s->slot->phase_ms[PHASE_WARMUP] += session_ms_since(begin);
    chaser_sample(&h->chaser);
    return sampler_keep(sampler, NULL, &column->sum, err);
}

static int time_cycle(struct hierarchy *h, struct err *err)
{
    struct guard_mark from, to;
    guard_begin(&from);
    double cycle = core_clock_cycle_ns(CYCLE_TRIES);
    guard_end(&to);
    struct sample got = {.from = from.wall_ns, .to = to.wall_ns, .hop_ns = cycle};
    reference_clock_take(&h->s->slot->cycle);
    struct cell_sum *sum = &h->columns[PART_CYCLE][0].sum;
    if (cell_sum_add(sum, &got, err) < 0)
        return -1;
    cell_sum_next_visit(sum);
    return 0;
}

static int visit_cell(struct hierarchy *h, enum hierarchy_part part, int col, int64_t visit,
                      struct err *err)
{
    struct column *c = &h->columns[part][col];
    uint64_t value = (uint64_t)c->value;
    switch (part) {
    case PART_CURVE:
        return chase_links(h, &h->arena, value / h->line, h->line, visit, &c->sum, err);
    case PART_BASE_PAGES:
        return chase_links(h, &h->base, value, h->base_page + h->line, visit, &c->sum, err);
    case PART_PACKED:
        return chase_links(h, &h->arena, value, h->line, visit, &c->sum, err);
    case PART_HUGE_PAGES:
        return chase_links(h, &h->arena, value, h->huge_page + h->line, visit, &c->sum, err);
    case PART_PARALLEL:
        return chase_parallel(h, col, visit, err);
    case PART_STRIDE:
        return chase_stride(h, col, err);
    case PART_CYCLE:
        return time_cycle(h, err);
    default:
        if (col != h->home)
            return 0; // has an arena of its own
        return chase_links(h, &h->arena, h->usual / h->line, h->line, visit, &c->sum, err);
    }
}

// --- One rank ----------------------------------------------------------------------------------

// Pages are touched in random order: neighbours in memory would not be neighbours in the address
// space, and no CPU can hold the translations of several of them in one entry.
static int populate_base(struct hierarchy *h, int node, struct err *err)
{
    struct session *s = h->s;
    struct perm order;
    uint64_t begin = clock_mono_ns();
    if (session_map(s, &h->base, h->bytes / 4, PAGES_4K, node, err) < 0)
        return -1;
    uint64_t pages = h->base.bytes / h->base_page;
    perm_init(&order, pages, (uint64_t)s->slot->info.seed);
    for (uint64_t i = 0; i < pages; i++)
        h->base.base[perm_at(&order, i) * h->base_page] = 1;
    s->slot->phase_ms[PHASE_POPULATE] += session_ms_since(begin);
    h->base.placed = session_verify(s, h->base.base, h->base.bytes, node);
    return 0;
}

// The rank that measures looks at the clock itself: the others sleep.
static void mind_time_limit(struct hierarchy *h)
{
    if (time_limit_step(&h->cells, clock_mono_ns(), 0))
        board_stop(h->s->board);
}

static int hierarchy_visit(struct hierarchy *h, int64_t visit, struct err *err)
{
    for (int part = 0; part < HIERARCHY_PARTS; part++)
        for (int col = 0; col < h->n[part] && !session_must_stop(h->s); col++) {
            if (visit_cell(h, (enum hierarchy_part)part, col, visit, err) < 0)
                return -1;
            mind_time_limit(h);
        }
    return 0;
}

static int open_home(struct hierarchy *h, struct err *err)
{
    int node = h->s->targets[h->home];
    if (session_arena(h->s, &h->arena, h->bytes, node, err) < 0 || populate_base(h, node, err) < 0)
        return -1;
    time_limit_begin(&h->cells, clock_mono_ns());
    return 0;
}

// What was placed right may have moved since.
static void close_home(struct hierarchy *h)
{
    int node = h->s->targets[h->home];
    session_check_again(h->s, &h->arena, node);
    session_check_again(h->s, &h->base, node);
    arena_fini(&h->base);
    arena_fini(&h->arena);
}

static int measure_target(struct hierarchy *h, int target, struct err *err)
{
    struct cell_sum *sum = &h->columns[PART_NODES][target].sum;
    if (session_arena(h->s, &h->arena, h->usual, h->s->targets[target], err) < 0)
        return -1;
    for (int64_t v = 0; v < h->s->spec->visits && !session_must_stop(h->s); v++) {
        if (chase_links(h, &h->arena, h->usual / h->line, h->line, v, sum, err) < 0)
            return -1;
        mind_time_limit(h);
    }
    session_check_again(h->s, &h->arena, h->s->targets[target]);
    arena_fini(&h->arena);
    return 0;
}

static int other_targets(struct hierarchy *h, struct err *err)
{
    for (int t = 0; t < h->s->n_targets; t++)
        if (t != h->home && !session_must_stop(h->s) && measure_target(h, t, err) < 0)
            return -1;
    return 0;
}

// Each rank has its part of the budget, or of the time limit.
static void mind_part(struct hierarchy *h, int rank, int64_t done)
{
    struct session *s = h->s;
    s->slot->behind = time_limit_behind(&s->limit, (rank + 1.0) / session_ranks(s));
    if (s->slot->behind && done < s->spec->visits)
        time_limit_left_out(&s->limit, done, s->spec->visits);
}

// All ranks come along; they sleep while one measures.
static int measure_rank(struct hierarchy *h, int rank, struct err *err)
{
    struct session *s = h->s;
    bool ours = rank == s->comm->rank;
    double visits = (double)s->spec->visits;
    if (session_meet(s, ours ? open_home(h, err) : 0, err) < 0)
        return -1;
    for (int64_t v = 0; v < s->spec->visits && !session_stopped(s); v++) {
        if (v && s->board->slot[0].behind) // the same for all since the last meeting
            break;
        if (session_meet(s, ours ? hierarchy_visit(h, v, err) : 0, err) < 0)
            return -1;
        double share = (rank + (double)(v + 1) / visits) / session_ranks(s);
        int outcome = session_progress(s, PHASE_MEASURE, share, err);
        if (session_is_rank0(s))
            mind_part(h, rank, v + 1);
        if (session_meet(s, outcome, err) < 0)
            return -1;
    }
    if (ours)
        close_home(h);
    return session_meet(s, ours && !session_stopped(s) ? other_targets(h, err) : 0, err);
}

// --- Telling -----------------------------------------------------------------------------------

static int hierarchy_report_cell(struct hierarchy *h, int rank, int part, int col, struct err *err)
{
    struct session *s = h->s;
    const struct slot *slot = &s->board->slot[rank];
    const char *name = h->shapes[part].name;
    if (part != PART_CYCLE)
        session_judge(s, &slot->evidence, 0, "%s: rank %d at %" PRId64, name, rank,
                      h->columns[part][col].value);
    struct cell cell = slot->cell;
    int64_t value = h->columns[part][col].value;
    if (part == PART_CURVE || part == PART_NODES)
        proofs_add(&h->proofs, s, rank, &cell, part == PART_CURVE ? (uint64_t)value : h->usual,
                   false, "%s: rank %d at %" PRId64, name, rank, value);
    return session_report_cell(s, name, rank, col, &cell, err);
}

static int report_rank(struct hierarchy *h, int rank, struct err *err)
{
    struct session *s = h->s;
    bool ours = rank == s->comm->rank;
    for (int part = 0; part < HIERARCHY_PARTS; part++)
        for (int col = 0; col < h->n[part]; col++) {
            const struct cell_sum *sum = &h->columns[part][col].sum;
            int outcome = 0;
            if (ours && (s->slot->measured = cell_sum_any(sum)))
                outcome = cell_sum_up(sum, s->spec, &s->slot->cell, &s->slot->evidence, err);
            if (session_meet(s, outcome, err) < 0)
                return -1;
            if (session_is_rank0(s) && s->board->slot[rank].measured)
                outcome = hierarchy_report_cell(h, rank, part, col, err);
            if (session_meet(s, outcome, err) < 0)
                return -1;
        }
    return 0;
}

// --- The whole ---------------------------------------------------------------------------------

static void hierarchy_fini(struct hierarchy *h)
{
    for (int part = 0; part < HIERARCHY_PARTS; part++) {
        for (int c = 0; h->columns[part] && c < h->n[part]; c++)
            cell_sum_fini(&h->columns[part][c].sum);
        free(h->columns[part]);
    }
    chaser_fini(&h->chaser);
    arena_fini(&h->base);
    arena_fini(&h->arena);
}

static int hierarchy_init(struct hierarchy *h, struct err *err)
{
    struct session *s = h->s;
    const struct page_sizes sizes = memory_page_sizes("");
    h->usual = session_auto_bytes(s);
    h->bytes = arena_round(spec_bytes_per_rank(s->spec, 4 * h->usual), PAGES_THP);
    h->usual = h->usual < h->bytes ? h->usual : h->bytes;
    h->line = s->cache.line_bytes;
    h->base_page = sizes.base;
    h->huge_page = spec_page_bytes(PAGES_THP, &sizes, h->bytes); // those that the arena has
    shape_list(s->spec, h->shapes);
    if (make_columns(h, err) < 0)
        return -1;
    for (int t = 0; t < s->n_targets; t++)
        h->home = s->targets[t] == s->slot->info.cpu_node ? t : h->home;
    return chaser_init(&h->chaser, s, CURVE_FIRST, s->spec->visits, err);
}

static int hierarchy_begin(struct hierarchy *h, struct err *err)
{
    struct session *s = h->s;
    struct matrix m[SHAPES_MAX] = {0};
    struct demand d[SPEC_TARGETS_MAX];
    int n = session_is_rank0(s) ? HIERARCHY_PARTS : 0;
    for (int t = 0; t < s->n_targets; t++)
        d[t] = (struct demand){
            .node = s->targets[t], .bytes = h->bytes + h->bytes / 4, .in_turn = true};
    if (session_meet(s, n ? hierarchy_make_matrices(h, m, err) : 0, err) < 0)
        return -1;
    return session_begin(s, m, n, d, s->n_targets, err);
}

int hierarchy_run(struct session *s, struct err *err)
{
    struct hierarchy h CLEANUP(hierarchy_fini) = {.s = s};
    s->slot->info.mem_wanted = -1; // each target in turn
    s->limit.repetitions = 0;      // a rank's repetitions follow each other
    if (session_meet(s, hierarchy_init(&h, err), err) < 0 || hierarchy_begin(&h, err) < 0)
        return -1;
    h.cells.end_ns = s->board->slot[0].ends_ns;
    for (int r = 0; r < session_ranks(s) && !session_stopped(s); r++)
        if (measure_rank(&h, r, err) < 0 || report_rank(&h, r, err) < 0)
            return -1;
    return session_meet(s, proofs_report(&h.proofs, s, err), err);
}
