// SPDX-License-Identifier: Apache-2.0
// STREAM by several ranks: each has its slice of the arrays, all start at a spinning barrier, and a
// pass lasts from the first start to the last end. The order of events:
//   1. rows, columns and jobs follow from the sweep: a job is a kernel, or libc's memcpy
//   2. a visit goes over all cells, in rounds; in a round teams that have no rank and no target in
//      common place and fill their arrays at once (bandwidth_cell.c); one after the other they time
//      some passes of each job, while all others sleep; at once they check every element
//   3. after the last visit each cell is summed up and reported
// A round is there because placing takes longer than measuring: on 24 nodes, one cell at a time,
// three quarters of the run.
// The slices together are the size requested, so that the rule "each array at least four times the
// caches" holds for what is measured: the ranks of a row and their caches (model/stream_team.h).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "bench/benchmarks/bandwidth_cell.h"
#include "bench/benchmarks/table.h"
#include "model/spec_values.h"
#include "model/target.h"

enum { LLC_RULE = 4 };

struct band {
    struct session *s;
    struct band_cells cells;
    struct shape shapes[SHAPES_MAX];
    int n_teams, n_rows, n_cols;
    bool streaming;            // copy, scale, add and triad store so
    struct rank_cache *caches; // of each rank; owned
    struct stream_team *teams; // owned
    int64_t row[SPEC_RANKS_MAX], col[SPEC_RANKS_MAX];
    int64_t visits, done; // cells, over all visits
};

static enum bandwidth_sweep sweep_of(const struct band *b)
{
    return (enum bandwidth_sweep)b->s->spec->sweep;
}

// --- Rows, columns and jobs ----------------------------------------------------------------------

static int set_targets(const struct session *s, int64_t *values)
{
    for (int t = 0; t < s->n_targets; t++)
        values[t] = s->targets[t];
    return s->n_targets;
}

static int find_columns(struct band *b, struct err *err)
{
    uint64_t sizes[SPEC_SIZES_MAX];
    switch (sweep_of(b)) {
    case SWEEP_OWN:
        b->col[b->n_cols++] = -1;
        return 0;
    case SWEEP_SIZES:
        b->n_cols = stream_sizes(b->s->spec, b->caches, session_ranks(b->s), sizes, err);
        for (int c = 0; c < b->n_cols; c++)
            b->col[c] = (int64_t)sizes[c];
        return b->n_cols < 0 ? -1 : 0;
    default:
        b->n_cols = set_targets(b->s, b->col);
        return 0;
    }
}

static int find_rows(struct band *b, struct err *err)
{
    struct session *s = b->s;
    int ranks = session_ranks(s);
    b->caches = session_caches(s, err);
    b->teams = calloc((size_t)ranks, sizeof *b->teams);
    if (!b->teams)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    if (!b->caches || (b->n_teams = stream_teams(s->spec, b->caches, ranks, b->teams, err)) < 0)
        return -1;
    if (sweep_of(b) == SWEEP_MEMCPY)
        b->n_rows = set_targets(s, b->row);
    else
        for (; b->n_rows < b->n_teams; b->n_rows++)
            b->row[b->n_rows] = b->teams[b->n_rows].value;
    if (find_columns(b, err) < 0)
        return -1;
    return band_cells_init(&b->cells, s, b->n_rows * b->n_cols, err);
}

// A copy is made by the ranks of its source, if that has CPUs, else by those of its destination,
// else by those of the first node.
static const struct stream_team *team_of(const struct band *b, int row, int col)
{
    if (sweep_of(b) != SWEEP_MEMCPY)
        return &b->teams[row];
    for (int pass = 0; pass < 2; pass++)
        for (int t = 0; t < b->n_teams; t++)
            if (b->teams[t].value == (pass ? b->col[col] : b->row[row]))
                return &b->teams[t];
    return &b->teams[0];
}

// What the user chose must be there; the words are those of the options.
static int find_jobs(struct band *b, struct err *err)
{
    const struct spec *s = b->s->spec;
    char there[80], wanted[16];
    bool copies = sweep_of(b) == SWEEP_MEMCPY;
    enum stores stores = copies ? STORES_STREAMING : (enum stores)s->stores;
    const struct stream_code *code = stream_code((enum instructions)s->instructions, stores);
    b->streaming = code && stores == STORES_STREAMING;
    if (!code && copies) // a machine without streaming stores
        code = stream_code((enum instructions)s->instructions, STORES_CACHED);
    if (code) {
        band_cells_jobs(&b->cells, b->shapes, shape_list(s, b->shapes), code);
        return 0;
    }
    stream_code_list(stores, there, sizeof there);
    if (!*there)
        return err_set(err, ERR_INVALID, "stores",
                       "must be cached: there are no streaming stores for this CPU");
    param_get_text(spec_param(s, "instructions"), s, wanted, sizeof wanted);
    return err_set(err, ERR_INVALID, "instructions", "%s is not in this CPU, which has %s%s",
                   wanted, there, stores == STORES_STREAMING ? " with streaming stores" : "");
}

// --- What is announced ---------------------------------------------------------------------------

static int bandwidth_make_matrices(const struct band *b, struct matrix *m, struct err *err)
{
    for (int i = 0; i < b->cells.n_jobs; i++) {
        if (shape_make(&m[i], &b->shapes[i], b->n_rows, b->n_cols, err) < 0)
            return -1;
        memcpy(m[i].row.values, b->row, (size_t)b->n_rows * sizeof *b->row);
        memcpy(m[i].col.values, b->col, (size_t)b->n_cols * sizeof *b->col);
    }
    return 0;
}

static int bandwidth_begin(struct band *b, struct err *err)
{
    struct session *s = b->s;
    struct matrix m[SHAPES_MAX] = {0};
    int ranks = session_ranks(s), n = 0;
    uint64_t bytes = 0;
    CLEANUP_MEM struct demand *d = calloc((size_t)(ranks + SPEC_TARGETS_MAX), sizeof *d);
    const struct page_sizes sizes = memory_page_sizes("");
    int outcome =
        d ? benchmarks[BENCHMARK_BANDWIDTH].bytes(s->spec, b->caches, ranks, &sizes, &bytes, err)
          : err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    bool targets = spec_has_targets(s->spec);
    int last_in_turn = s->n_targets - stream_at_once(s->spec, b->n_rows, s->n_targets);
    for (int t = 0; d && targets && t < s->n_targets; t++)
        d[n++] =
            (struct demand){.node = s->targets[t], .bytes = bytes, .in_turn = t <= last_in_turn};
    for (int r = 0; d && !targets && r < ranks; r++)
        d[n++] =
            (struct demand){.node = s->board->slot[r].memory, .bytes = bytes / (uint64_t)ranks};
    if (outcome == 0 && session_is_rank0(s))
        outcome = bandwidth_make_matrices(b, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, session_is_rank0(s) ? b->cells.n_jobs : 0, d, n, err);
}

static int note_code(const struct band *b, struct err *err)
{
    const char *stores = b->streaming ? "streaming" : "cached";
    if (sweep_of(b) == SWEEP_MEMCPY && !b->streaming)
        stores = "cached (this CPU has no streaming)";
    return session_note(b->s, err, CONDITION_INSTRUCTIONS, -1,
                        "kernels in %s instructions, %s stores", b->cells.code->name, stores);
}

// The team whose arrays are smallest beside its caches, if they are below STREAM's rule.
static int warn_of_caches(const struct band *b, struct err *err)
{
    const struct stream_team *worst = NULL;
    for (int t = 0; t < b->n_teams && sweep_of(b) != SWEEP_SIZES; t++)
        if (b->teams[t].array_bytes < LLC_RULE * b->teams[t].llc_bytes &&
            (!worst || b->teams[t].llc_bytes > worst->llc_bytes))
            worst = &b->teams[t];
    if (!worst)
        return 0;
    return session_note(b->s, err, CONDITION_CACHE, -1,
                        "arrays of %llu MiB are less than four times the last-level caches (%llu "
                        "MiB) of %d rank%s: part of the bandwidth is that of the caches",
                        (unsigned long long)(worst->array_bytes >> 20),
                        (unsigned long long)(worst->llc_bytes >> 20), worst->n_ranks,
                        str_plural(worst->n_ranks));
}

// --- Visits --------------------------------------------------------------------------------------

struct membership {
    const struct band *b;
    const struct stream_team *team;
};

static bool belongs(const void *context, int rank)
{
    const struct membership *of = context;
    return stream_team_has(of->b->s->spec, of->team, of->b->caches, rank);
}

static void place_of(const struct band *b, int row, int col, struct band_place *place)
{
    const struct stream_team *team = team_of(b, row, col);
    int target = spec_has_targets(b->s->spec) ? (int)b->col[col] : -1;
    bool sizes = sweep_of(b) == SWEEP_SIZES, copies = sweep_of(b) == SWEEP_MEMCPY;
    *place = (struct band_place){
        .set_bytes = sizes ? (uint64_t)b->col[col] : 0,
        .array_bytes = team->array_bytes / (uint64_t)team->n_ranks,
        .ranks = team->n_ranks,
        .from = copies ? (int)b->row[row] : target,
        .to = target,
    };
}

// "copy: initiator 0, target interleave:0-3", "copy: threads 2, working set 16K"
static void bandwidth_cell_name(const struct matrix *m, int row, int col, char *out, size_t room)
{
    char value[TARGET_LABEL_ROOM];
    bool sizes = strcmp(m->col.name, "working_set") == 0;
    if (sizes)
        str_from_bytes((uint64_t)m->col.values[col], value, sizeof value);
    else
        axis_label(&m->col, col, value, sizeof value);
    snprintf(out, room, "%s: %s %lld, %s %s", m->name, m->row.name, (long long)m->row.values[row],
             sizes ? "working set" : m->col.name, value);
}

static int bandwidth_report(struct band *b, const struct rank_team *team, int row, int col,
                            struct err *err)
{
    const struct slot *slot = &b->s->board->slot[team->first];
    for (int i = 0; i < b->cells.n_jobs; i++) {
        char name[160];
        bandwidth_cell_name(&b->s->emit->matrix[i], row, col, name, sizeof name);
        session_judge(b->s, &slot->evidences[i], 0, "%s", name);
        if (session_report_cell(b->s, b->shapes[i].name, row, col, &slot->cells[i], err) < 0)
            return -1;
    }
    return 0;
}

// The column of a round in this row; -1: none.
static int round_col(const struct band *b, int round, int row)
{
    return stream_round_col(b->s->spec, b->n_rows, b->n_cols, round, row);
}

// The cell of the round that this rank's team has, if it has one.
static int bandwidth_place(struct band *b, int round, struct band_visit *v, struct err *err)
{
    for (int row = 0; row < b->n_rows; row++) {
        int col = round_col(b, round, row);
        struct membership of = {b, col < 0 ? NULL : team_of(b, row, col)};
        if (col < 0 || !belongs(&of, b->s->comm->rank))
            continue;
        struct band_place place;
        place_of(b, row, col, &place);
        return band_visit_place(v, &b->cells, &place, row * b->n_cols + col, err);
    }
    return 0;
}

// How far all cells are. Rank 0 writes it while no rank measures.
static int bandwidth_advance(struct band *b, struct err *err)
{
    double all = (double)(b->visits * b->n_rows * b->n_cols);
    return b->done ? session_progress(b->s, PHASE_MEASURE, (double)b->done / all, err) : 0;
}

static int bandwidth_measure(struct band *b, int row, int col, struct band_visit *v,
                             struct err *err)
{
    struct session *s = b->s;
    struct membership of = {b, team_of(b, row, col)};
    struct rank_team team = rank_team_of(s, belongs, &of);
    if (session_meet(s, bandwidth_advance(b, err), err) < 0)
        return -1;
    if (session_stopped(s))
        return 0;
    b->done++;
    return session_meet(s, team.mine ? band_visit_measure(v, &team, b->visits, err) : 0, err);
}

static int bandwidth_round(struct band *b, int round, struct err *err)
{
    struct session *s = b->s;
    struct band_visit v CLEANUP(band_visit_fini) = {0};
    if (session_meet(s, bandwidth_place(b, round, &v, err), err) < 0)
        return -1;
    for (int row = 0; row < b->n_rows && !session_stopped(s); row++) {
        int col = round_col(b, round, row);
        if (col >= 0 && bandwidth_measure(b, row, col, &v, err) < 0)
            return -1;
    }
    return session_meet(s, v.b ? band_visit_check(&v, err) : 0, err);
}

static int bandwidth_sum_up(struct band *b, int row, int col, struct err *err)
{
    struct session *s = b->s;
    struct membership of = {b, team_of(b, row, col)};
    struct rank_team team = rank_team_of(s, belongs, &of);
    int outcome = 0;
    if (team.mine && team.index == 0)
        outcome = band_cell_sum_up(&b->cells, row * b->n_cols + col, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_meet(s, session_is_rank0(s) ? bandwidth_report(b, &team, row, col, err) : 0,
                        err);
}

static int bandwidth_measure_all(struct band *b, struct err *err)
{
    struct session *s = b->s;
    const struct spec *p = s->spec;
    if (session_meet(s, find_jobs(b, err), err) < 0 ||
        session_meet(s, find_rows(b, err), err) < 0 || bandwidth_begin(b, err) < 0 ||
        session_meet(s, note_code(b, err), err) < 0 ||
        session_meet(s, warn_of_caches(b, err), err) < 0)
        return -1;
    s->limit.repetitions = b->visits = p->visits < p->passes ? p->visits : p->passes;
    int rounds = stream_rounds(p, b->n_rows, b->n_cols);
    for (int64_t v = 0; v < b->visits; v++)
        for (int round = 0; round < rounds && !session_stopped(s); round++)
            if (bandwidth_round(b, round, err) < 0)
                return -1;
    if (session_meet(s, bandwidth_advance(b, err), err) < 0)
        return -1;
    int64_t visited = b->done; // in this order
    for (int round = 0; round < rounds; round++)
        for (int row = 0; row < b->n_rows; row++) {
            int col = round_col(b, round, row);
            if (col >= 0 && visited-- > 0 && bandwidth_sum_up(b, row, col, err) < 0)
                return -1;
        }
    return 0;
}

int bandwidth_run(struct session *s, struct err *err)
{
    CLEANUP_MEM struct band *b = calloc(1, sizeof *b);
    if (session_meet(s, b ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the benchmark"),
                     err) < 0)
        return -1;
    b->s = s;
    if (spec_has_targets(s->spec))
        s->slot->info.mem_wanted = -1; // each target in turn
    int outcome = bandwidth_measure_all(b, err);
    band_cells_fini(&b->cells);
    free(b->teams);
    free(b->caches);
    return outcome;
}
