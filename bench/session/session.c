// SPDX-License-Identifier: Apache-2.0
// The frame of a benchmark in the order of its steps: introduce the ranks, check memory,
// announce matrices, place and verify memory, report cells, end.
#include "bench/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "bench/session/binding.h"
#include "model/spec_values.h"
#include "model/target.h"

enum {
    POPULATE_THREADS = 8, // at most, if the rank may run on so many CPUs
};

static const double STOLEN_SHARE = 0.01;     // of the measuring time: worth a note
static const double SMALL_HUGE_SHARE = 0.01; // of an arena: worth a note
static const double CLOCK_DIFFERS = 1.03;    // as much as latencies in a cache then do

bool session_is_rank0(const struct session *s)
{
    return s->emit != NULL;
}

int session_ranks(const struct session *s)
{
    return s->comm->size;
}

double session_ms_since(uint64_t begin_ns)
{
    return (double)(clock_mono_ns() - begin_ns) / 1e6;
}

int session_meet(struct session *s, int outcome, struct err *err)
{
    if (outcome < 0)
        board_fault(s->board, s->comm->rank, err);
    return board_meet(s->board, s->comm->size, err);
}

uint64_t session_auto_bytes(const struct session *s)
{
    uint64_t most = s->found_bytes;
    for (int i = 0; i < s->comm->size; i++) // all ranks take the same
        if (s->board->slot[i].llc_bytes > most)
            most = s->board->slot[i].llc_bytes;
    return spec_auto_bytes(most);
}

uint64_t session_size(const struct session *s)
{
    return spec_bytes_per_rank(s->spec, session_auto_bytes(s));
}

// --- Who is where ------------------------------------------------------------------------------

static void introduce(struct session *s)
{
    struct rank_info *i = &s->slot->info;
    char base[PAGE_NAME_ROOM];
    const char *const pages[] = {[PAGES_THP] = "thp",
                                 [PAGES_4K] = base,
                                 [PAGES_HUGE] = "huge",
                                 [PAGES_2M] = "2M",
                                 [PAGES_1G] = "1G"};
    arena_base_name(base);
    int cpu = sched_getcpu();
    place_wanted(&s->place);
    *i = (struct rank_info){
        .rank = s->comm->rank,
        .pid = getpid(),
        .cpu_wanted = s->place.cpu_wanted,
        .cpu = cpu,
        .cpu_node = place_node_of_cpu(cpu),
        .mem_wanted = target_is_interleaved(s->place.mem_wanted) ? -1 : s->place.mem_wanted,
        .mem_node = -1,
        .mem_share = 1,
        .off_cpu_share = NAN,
        .clock_ghz = NAN,
        .load_cycles = NAN,
        .seed = s->spec->seed + s->comm->rank};
    snprintf(i->pages_wanted, sizeof i->pages_wanted, "%s", pages[s->spec->pages]);
    snprintf(i->pages_got, sizeof i->pages_got, "%s", pages[s->spec->pages]);
    s->slot->on_one_core = s->place.one_core;
    s->cache = cache_of("", cpu);
    s->slot->llc_bytes = s->cache.llc_bytes;
    if (s->found_bytes > s->cache.llc_bytes)
        s->cache.llc_bytes = s->found_bytes; // what a warm-up has to fill
    s->slot->l2_bytes = s->cache.l2_bytes;
    s->slot->cpu_place = cache_cpu_place("", cpu);
    s->slot->cpu_place.node = (int)i->cpu_node;
    s->slot->memory = s->place.mem_wanted;
}

// A launcher can start each rank with words of its own; all go by rank 0's table of results.
static int same_question(const struct session *s, struct err *err)
{
    if (s->slot->question == s->board->slot[0].question)
        return 0;
    return err_set(err, ERR_USAGE, "", "rank %d was started with other options than rank 0",
                   s->comm->rank);
}

static int session_check_node(const void *ctx, int node, const char *member, struct err *err)
{
    (void)ctx;
    const char *fault = node < 0 ? NULL : place_node_fault(node);
    char list[100];
    if (node < 0)
        return err_set(err, ERR_INVALID, member, "no node has memory");
    if (!fault)
        return 0;
    place_nodes_text(list, sizeof list);
    return err_set(err, ERR_INVALID, member, "node %d %s; nodes with memory are %s", node, fault,
                   list);
}

// What the kernel has; `nodes` has TARGETS_MAX places, `weights` TARGET_NODES.
static struct target_machine session_nodes(int *nodes, int *weights)
{
    struct target_machine m = {.n = place_nodes(nodes, TARGETS_MAX),
                               .nodes = nodes,
                               .weights = weights,
                               .check = session_check_node};
    place_weights(weights);
    return m;
}

static int session_find_targets(struct session *s, struct err *err)
{
    struct target_list list;
    int nodes[TARGETS_MAX], weights[TARGET_NODES];
    if (!spec_has_targets(s->spec))
        return 0;
    struct target_machine m = session_nodes(nodes, weights);
    if (targets_read(&list, s->spec->targets, "targets", err) < 0)
        return -1;
    return targets_settle(s->targets, &s->n_targets, &list, &m, "targets", err);
}

// The policy that the spec names stands above that of the process.
static int find_policy(struct session *s, struct err *err)
{
    struct target_list list;
    int nodes[TARGETS_MAX], weights[TARGET_NODES];
    if (!target_is_policy(s->spec->numa))
        return 0;
    struct target_machine m = session_nodes(nodes, weights);
    if (targets_read(&list, s->spec->numa, "numa", err) < 0 ||
        target_settle(&list.list[0], &list, &m, "numa", err) < 0)
        return -1;
    s->slot->memory = s->place.mem_wanted = s->place.mem_node = list.list[0];
    s->slot->info.mem_wanted = -1; // no single node
    return 0;
}

struct rank_cache *session_caches(const struct session *s, struct err *err)
{
    struct rank_cache *caches = calloc((size_t)s->comm->size, sizeof *caches);
    if (!caches)
        err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", s->comm->size);
    for (int r = 0; caches && r < s->comm->size; r++) {
        const struct slot *slot = &s->board->slot[r];
        caches[r] = (struct rank_cache){(int)slot->info.cpu_node, slot->cpu_place.llc,
                                        slot->llc_bytes, s->found_bytes};
    }
    return caches;
}

// --- Memory ------------------------------------------------------------------------------------

static int threads_for(const struct session *s)
{
    int share = s->place.cpus / s->comm->size;
    return share < 1 ? 1 : share < POPULATE_THREADS ? share : POPULATE_THREADS;
}

// Returns for how many nodes there is no room.
static int add_pages(struct rank_info *to, const struct rank_info *from)
{
    int left_out = 0;
    for (int i = 0; i < from->n_nodes; i++) {
        int k = 0;
        while (k < to->n_nodes && to->nodes[k].node != from->nodes[i].node)
            k++;
        if (k == RANK_NODES_MAX)
            left_out++;
        else if (k == to->n_nodes)
            to->nodes[to->n_nodes++] = from->nodes[i];
        else
            to->nodes[k].pages += from->nodes[i].pages;
    }
    return left_out;
}

// By node, what the arena and the whole process have now, with the memory there.
static void list_nodes(struct session *s, const struct rank_info *got)
{
    int pages = add_pages(&s->slot->info, got), process = place_usage(&s->slot->info);
    int left_out = pages > process ? pages : process;
    if (left_out > 0 && !*s->slot->condition.text)
        condition_set(&s->slot->condition, CONDITION_OMITTED, s->comm->rank,
                      "its memory is on more than %d nodes; %d are not in the list of nodes",
                      RANK_NODES_MAX, left_out);
}

// Where the pages are, and which share of them is where it has to be.
static void look_at_pages(const struct session *s, const void *memory, uint64_t bytes, int target,
                          struct rank_info *got)
{
    const struct page_sizes sizes = memory_page_sizes("");
    uint64_t unit = spec_page_bytes((enum pages)s->spec->pages, &sizes, bytes) / sizes.base;
    *got = (struct rank_info){.mem_wanted = target};
    place_verify(memory, bytes, got);
    if (!target_is_interleaved(target) || !got->pages_checked)
        return;
    double sampled = (double)got->pages_checked / (double)got->pages_total;
    got->mem_node = -1;
    got->mem_share = place_interleaved_share(got, target, (double)unit * sampled);
}

// A rank may have memory on several nodes one after the other: the least share is what holds of
// all.
struct placed session_verify(struct session *s, const void *memory, uint64_t bytes, int node)
{
    uint64_t begin = clock_mono_ns();
    struct rank_info *info = &s->slot->info, got;
    char words[TARGET_LABEL_ROOM];
    look_at_pages(s, memory, bytes, node, &got);
    // What rank 0 saw stands for all: the kernel spreads the pages of each in the same way.
    if (session_is_rank0(s) && target_is_interleaved(node))
        spreads_add(&s->spreads, node, &got);
    if (got.mem_share < info->mem_share || info->mem_node < 0)
        info->mem_node = got.mem_node;
    if (got.mem_share < info->mem_share)
        info->mem_share = got.mem_share;
    info->pages_checked += got.pages_checked;
    info->pages_total += got.pages_total;
    snprintf(info->mem_method, sizeof info->mem_method, "%s", got.mem_method);
    list_nodes(s, &got);
    target_words(node, words, sizeof words);
    if (got.pages_checked && got.mem_share < 0.9995 && node >= 0)
        condition_set(&s->slot->condition, CONDITION_PLACEMENT, s->comm->rank,
                      "only %.1f %% of the pages requested on %s are there", 100 * got.mem_share,
                      words);
    s->slot->phase_ms[PHASE_VERIFY] += session_ms_since(begin);
    return (struct placed){got.mem_share, (int)got.mem_node};
}

void session_verify_again(struct session *s, const void *memory, uint64_t bytes, int node,
                          struct placed before)
{
    static const double moved_share = 0.001;
    uint64_t begin = clock_mono_ns();
    struct rank_info *info = &s->slot->info, got;
    int target = node < 0 ? before.node : node;
    char words[TARGET_LABEL_ROOM];
    look_at_pages(s, memory, bytes, target, &got);
    if (got.mem_share < info->mem_share)
        info->mem_share = got.mem_share;
    target_words(target, words, sizeof words);
    if (got.pages_checked && got.mem_share < before.share - moved_share)
        condition_set(&s->slot->condition, CONDITION_PLACEMENT, s->comm->rank,
                      "the kernel moved pages during the measurement: %.1f %% were on %s before "
                      "it, %.1f %% after it",
                      100 * before.share, words, 100 * got.mem_share);
    s->slot->phase_ms[PHASE_VERIFY] += session_ms_since(begin);
}

void session_check_again(struct session *s, const struct arena *a, int node)
{
    session_verify_again(s, a->base, a->bytes, node >= 0 ? node : s->place.mem_wanted, a->placed);
}

static void merge_report(struct rank_info *info, const struct arena *a)
{
    struct rank_info got = {0};
    arena_report(a, &got);
    bool first = info->arena_bytes == 0;
    if (first || got.huge_share < info->huge_share)
        info->huge_share = got.huge_share;
    if (first)
        snprintf(info->pages_got, sizeof info->pages_got, "%s", got.pages_got);
    else if (strcmp(info->pages_got, got.pages_got) != 0)
        snprintf(info->pages_got, sizeof info->pages_got, "mixed");
    info->address = got.address;
    if (got.arena_bytes > info->arena_bytes)
        info->arena_bytes = got.arena_bytes;
}

int session_map(struct session *s, struct arena *a, uint64_t bytes, enum pages pages, int node,
                struct err *err)
{
    bool bound = true;
    struct place place = s->place;
    if (node >= 0)
        place.mem_wanted = place.mem_node = node;
    if (arena_map(a, bytes, pages, &place, &bound, err) < 0)
        return -1;
    if (!bound)
        condition_set(&s->slot->condition, CONDITION_MEMORY_POLICY, s->comm->rank,
                      "the kernel refused to bind the memory; the process's policy applies");
    return 0;
}

void session_check(struct session *s, struct arena *a, int node)
{
    a->placed = session_verify(s, a->base, a->bytes, node >= 0 ? node : s->place.mem_wanted);
    merge_report(&s->slot->info, a);
}

// Pages of other sizes between base and huge pages (multi-size THP): smaps does not show them.
static int note_small_huge(struct session *s, const struct arena *a, int64_t before,
                           struct err *err)
{
    int64_t more = memory_small_huge_bytes("") - before;
    if (before < 0 || s->spec->pages != PAGES_THP ||
        (double)more < SMALL_HUGE_SHARE * (double)a->bytes)
        return 0;
    return session_note(s, err, CONDITION_HUGE_PAGES, -1,
                        "%lld MiB were put on transparent huge pages smaller than the usual while "
                        "memory was populated: the cost of TLB misses is between that of base and "
                        "of huge pages",
                        (long long)(more >> 20));
}

int session_arena(struct session *s, struct arena *a, uint64_t bytes, int node, struct err *err)
{
    uint64_t begin = clock_mono_ns();
    int64_t before = memory_small_huge_bytes("");
    if (session_map(s, a, bytes, (enum pages)s->spec->pages, node, err) < 0 ||
        arena_populate(a, threads_for(s), err) < 0 || note_small_huge(s, a, before, err) < 0)
        return -1;
    s->slot->phase_ms[PHASE_POPULATE] += session_ms_since(begin);
    session_check(s, a, node);
    return 0;
}

// --- Telling -----------------------------------------------------------------------------------

// Memory below one transparent huge page gets base pages where that page is large (arm64).
static int note_small(struct session *s, const struct demand *demands, int n, struct err *err)
{
    const struct page_sizes sizes = memory_page_sizes("");
    char page[24], thp[24];
    uint64_t most = 0;
    for (int i = 0; i < n; i++)
        most = demands[i].bytes > most ? demands[i].bytes : most;
    if (s->spec->pages != PAGES_THP || !spec_param(s->spec, "pages") ||
        spec_page_bytes(PAGES_THP, &sizes, most) == sizes.thp)
        return 0;
    str_from_bytes(sizes.base, page, sizeof page);
    str_from_bytes(sizes.thp, thp, sizeof thp);
    return session_note(s, err, CONDITION_HUGE_PAGES, -1,
                        "the working set is smaller than a transparent huge page (%s): pages of %s "
                        "are used",
                        thp, page);
}

static int note_binding(struct session *s, struct err *err)
{
    CLEANUP_BUF struct buf text = {0};
    binding_describe(s->board->slot, s->comm->size, &text);
    return text.len ? session_note(s, err, CONDITION_BINDING, -1, "%s", text.data) : 0;
}

// Names a size that does fit. The benchmark may have none: then only fewer ranks help.
static int refuse_memory(const struct session *s, double fits, struct err *err)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n = 0;
    char text[24];
    if (strcmp(err->member, "size") != 0 || !spec_param(s->spec, "size") ||
        str_to_sizes(s->spec->size, SPEC_SIZES_MAX, "size", &sizes, &n, NULL) < 0 || !n)
        return -1;
    // Rounded down, because arenas are rounded up.
    uint64_t most = (uint64_t)(0.9 * fits * (double)sizes[n - 1]) >> 20;
    if (!most)
        return -1;
    str_from_bytes(most << 20, text, sizeof text);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ". %s fits", text);
    return -1;
}

static int say_hello(struct session *s, const struct demand *demands, int n_demands,
                     struct err *err)
{
    double fits = 0;
    if (memcheck("", demands, n_demands, (enum pages)s->spec->pages, &fits, err) < 0)
        return refuse_memory(s, fits, err);
    if (emit_begin(s->emit, s->comm->size, s->comm->ops->name, s->cache.line_bytes, err) < 0)
        return -1;
    return note_binding(s, err) < 0 ? -1 : note_small(s, demands, n_demands, err);
}

int session_announce(struct session *s, struct matrix *matrices, int n, struct err *err)
{
    int outcome = 0;
    s->total = 0;
    for (int i = 0; i < n; i++)
        s->total += shape_cells_measured(&matrices[i], s->spec);
    if (session_is_rank0(s))
        outcome = emit_matrices(s->emit, matrices, n, err);
    if (session_is_rank0(s) && outcome == 0)
        outcome = emit_progress(s->emit, PHASE_POPULATE, 0, s->total, -1, err);
    time_limit_begin(&s->limit, clock_mono_ns());
    return session_meet(s, outcome, err);
}

int session_begin(struct session *s, struct matrix *matrices, int n, const struct demand *demands,
                  int n_demands, struct err *err)
{
    int outcome = session_is_rank0(s) ? say_hello(s, demands, n_demands, err) : 0;
    if (session_meet(s, outcome, err) < 0) {
        for (int i = 0; i < n; i++)
            matrix_fini(&matrices[i]);
        return -1;
    }
    return matrices ? session_announce(s, matrices, n, err) : 0;
}

void session_take_pairs(struct session *s)
{
    if (!s->board->pairs_most)
        return;
    s->fewer = *s->spec;
    s->fewer.pairs_most = s->board->pairs_most;
    s->spec = &s->fewer;
}

int session_report_cell(struct session *s, const char *matrix, int row, int col,
                        const struct cell *c, struct err *err)
{
    return session_is_rank0(s) ? emit_cell(s->emit, matrix, row, col, c, err) : 0;
}

bool session_stopped(const struct session *s)
{
    return board_stopped(s->board);
}

bool session_must_stop(const struct session *s)
{
    return board_stop_posted(s->board);
}

int session_progress(struct session *s, enum phase phase, double share, struct err *err)
{
    if (!session_is_rank0(s))
        return 0;
    if (time_limit_step(&s->limit, clock_mono_ns(), share)) // rank 0 alone looks at the clock
        board_stop(s->board);
    double left = time_limit_left_s(&s->limit, s->limit.step_ns, share);
    int64_t done = (int64_t)((double)s->total * share);
    return emit_progress(s->emit, phase, done < s->total ? done : s->total, s->total,
                         left < 0 ? -1 : (int64_t)(1e3 * left), err);
}

int session_note(struct session *s, struct err *err, enum condition_kind kind, int rank,
                 const char *fmt, ...)
{
    struct condition c;
    va_list ap;
    if (!session_is_rank0(s))
        return 0;
    va_start(ap, fmt);
    condition_vset(&c, kind, rank, fmt, ap);
    va_end(ap);
    return emit_condition(s->emit, &c, err);
}

static void judge_modes(struct doubts *d, const struct modes *m, const char *cell)
{
    if (!m->two)
        return;
    if (d->two++ && m->high / m->low <= d->modes.high / d->modes.low)
        return;
    d->modes = *m;
    snprintf(d->widest, sizeof d->widest, "%s", cell);
}

void session_judge(struct session *s, const struct evidence *evidence, double stolen_share,
                   const char *fmt, ...)
{
    struct doubts *d = &s->doubts;
    char cell[sizeof d->first_few];
    int clean = evidence->clean;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(cell, sizeof cell, fmt, ap);
    va_end(ap);
    d->cells++;
    judge_modes(d, &evidence->modes, cell);
    if ((clean < s->spec->min_samples || !clean) && !d->few++)
        memcpy(d->first_few, cell, sizeof cell);
    d->none += !clean;
    if (stolen_share <= STOLEN_SHARE)
        return;
    d->stolen++;
    if (stolen_share <= d->worst)
        return;
    d->worst = stolen_share;
    memcpy(d->worst_stolen, cell, sizeof cell);
}

// A cell in a hundred has two levels by chance. More than 99 of 100 runs would have is no chance.
static int report_modes(struct session *s, struct err *err)
{
    static const double chance = 0.01, errors = 2.33;
    const struct doubts *d = &s->doubts;
    double expected = chance * d->cells;
    if (d->two <= expected + errors * sqrt(expected * (1 - chance)))
        return 0;
    return session_note(
        s, err, CONDITION_TWO_MODES, -1,
        "the repetitions of %d of %d cells have two levels, and the result is one of "
        "them by chance: %s in %.0f %% of the repetitions and %s in %.0f %% "
        "(%s)",
        d->two, d->cells, FIGURES(d->modes.low), 100 * (1 - d->modes.high_share),
        FIGURES(d->modes.high), 100 * d->modes.high_share, d->widest);
}

// The classic method has no repetitions, and says so by its name.
static int report_single(struct session *s, struct err *err)
{
    if (!spec_param(s->spec, "visits") || s->spec->visits > 1 ||
        strcmp(spec_method(s->spec), benchmarks[s->spec->benchmark].method) != 0)
        return 0;
    return session_note(
        s, err, CONDITION_ONE_REPETITION, -1,
        "one repetition of each cell: low and high are of its samples alone, and no "
        "interval states what a repeat would change");
}

static int session_report_doubts(struct session *s, struct err *err)
{
    const struct doubts *d = &s->doubts;
    char some[48] = "no undisturbed sample", none[80] = "";
    if (d->few > d->none)
        snprintf(some, sizeof some, "fewer than %lld undisturbed samples",
                 (long long)s->spec->min_samples);
    if (d->none)
        snprintf(none, sizeof none, "; %d cell%s without any ha%s the least disturbed one", d->none,
                 str_plural(d->none), d->none == 1 ? "s" : "ve");
    if (d->few &&
        session_note(s, err, CONDITION_FEW_SAMPLES, -1, "%d of %d cells had %s (%s%s)%s", d->few,
                     d->cells, some, d->first_few, d->few > 1 ? " and others" : "", none) < 0)
        return -1;
    if (report_modes(s, err) < 0)
        return -1;
    if (!d->stolen)
        return 0;
    return session_note(
        s, err, CONDITION_STEAL, -1,
        "the host took the CPU for more than %.0f %% of the time in %d of %d cells: %.1f %% (%s)",
        100 * STOLEN_SHARE, d->stolen, d->cells, 100 * d->worst, d->worst_stolen);
}

static const struct cycle_seen *cycle_of(const struct session *s, int rank)
{
    return &s->board->slot[rank].cycle;
}

static int report_clocks_of_ranks(struct session *s, int fast, int slow, struct err *err)
{
    double fast_ns = reference_clock_mean_ns(cycle_of(s, fast)),
           slow_ns = reference_clock_mean_ns(cycle_of(s, slow));
    if (!(slow_ns > CLOCK_DIFFERS * fast_ns))
        return 0;
    return session_note(s, err, CONDITION_CLOCK, -1,
                        "the clocks of the cores differ: %.2f GHz on rank %d, %.2f GHz on rank %d",
                        1 / slow_ns, slow, 1 / fast_ns, fast);
}

// Where the pages of interleaved memory were.
static int report_spreads(struct session *s, struct err *err)
{
    for (int i = 0; i < s->spreads.n; i++) {
        const struct spread *p = &s->spreads.list[i];
        char words[TARGET_LABEL_ROOM], parts[SPREAD_TEXT_ROOM];
        target_words(p->target, words, sizeof words);
        spread_text(p, parts);
        if (session_note(s, err, CONDITION_INTERLEAVED, -1, "memory on %s: %s", words, parts) < 0)
            return -1;
    }
    return 0;
}

// Reserved huge pages are given or refused as a whole; that they are what smaps shows is checked
// nevertheless.
static int report_reserved(struct session *s, struct err *err)
{
    const struct page_sizes sizes = memory_page_sizes("");
    enum pages pages = (enum pages)s->spec->pages;
    int64_t most = 0;
    int other = 0;
    char size[24];
    if (!spec_pages_reserved(pages))
        return 0;
    for (int r = 0; r < s->comm->size; r++) {
        const struct rank_info *i = &s->board->slot[r].info;
        most = i->arena_bytes > most ? i->arena_bytes : most;
        other += i->arena_bytes && strcmp(i->pages_got, i->pages_wanted) != 0;
    }
    uint64_t page = spec_page_bytes(pages, &sizes, (uint64_t)most);
    str_from_bytes(page, size, sizeof size);
    if (other)
        return session_note(s, err, CONDITION_HUGE_PAGES, -1,
                            "%d of %d ranks have memory that is not on reserved huge pages of %s",
                            other, s->comm->size, size);
    return session_note(s, err, CONDITION_PAGES, -1,
                        "memory is on reserved huge pages of %s, up to %" PRIu64
                        " of them per rank",
                        size, (uint64_t)most / page);
}

static int session_report_clocks(struct session *s, struct err *err)
{
    int fast = 0, slow = 0, most = 0, changed = 0;
    for (int r = 0; r < session_ranks(s); r++) {
        double ns = reference_clock_mean_ns(cycle_of(s, r)); // NaN of a rank that measured nothing
        double change = reference_clock_change(cycle_of(s, r));
        fast = !(ns >= reference_clock_mean_ns(cycle_of(s, fast))) && !isnan(ns) ? r : fast;
        slow = !(ns <= reference_clock_mean_ns(cycle_of(s, slow))) && !isnan(ns) ? r : slow;
        most = change > reference_clock_change(cycle_of(s, most)) ? r : most;
        changed += change > CLOCK_DIFFERS;
    }
    if (report_clocks_of_ranks(s, fast, slow, err) < 0)
        return -1;
    if (!changed)
        return 0;
    return session_note(s, err, CONDITION_CLOCK, -1,
                        "the clock of %d of %d ranks changed between repetitions, most on rank %d: "
                        "%.2f to %.2f GHz",
                        changed, session_ranks(s), most, 1 / cycle_of(s, most)->most_ns,
                        1 / cycle_of(s, most)->least_ns);
}

// --- The whole ---------------------------------------------------------------------------------

static int report_left_out(struct session *s, const struct options *o, struct err *err)
{
    const struct time_limit *t = &s->limit;
    const bool budget = time_limit_is_budget(t);
    if (!t->wanted)
        return 0;
    return session_note(s, err, budget ? CONDITION_BUDGET : CONDITION_TIME_LIMIT, -1,
                        "the %s of %lld s ended the run after %lld of %lld repetitions%s",
                        budget ? "budget" : "time limit",
                        (long long)(budget ? o->spec.budget_s : o->deadline_s), (long long)t->kept,
                        (long long)t->wanted, t->repetitions ? "" : " of some cells");
}

// What the time limit left out: repetitions, or cells, and then the run has failed.
static int report_stop(struct session *s, const struct options *o, struct err *err)
{
    int64_t cells = s->emit->end.cells;
    if (cells == s->total && s->limit.wanted) // stated already
        return 0;
    if (cells == s->total)
        return session_note(s, err, CONDITION_TIME_LIMIT, -1,
                            "the time limit of %lld s ended the run before all repetitions",
                            (long long)o->deadline_s);
    return session_note(
        s, err, CONDITION_TIME_LIMIT, -1, "the time limit of %lld s left out %lld of %lld cells",
        (long long)o->deadline_s, (long long)(s->total - cells), (long long)s->total);
}

// The end of a run whose cells are all there, or the failure of one whose cells are not.
static int report_end(struct session *s, const struct options *o, struct err *err)
{
    int64_t cells = s->emit->end.cells;
    if (cells == s->total || !session_stopped(s))
        return emit_end(s->emit, s->board, err);
    if (emit_part(s->emit, s->board, err) < 0)
        return -1;
    return err_set(
        err, ERR_TIMEOUT, *o->channel ? "timeout_s" : "deadline",
        "the time limit of %lld s left out %lld of %lld cells: raise it, or measure less",
        (long long)o->deadline_s, (long long)(s->total - cells), (long long)s->total);
}

static int session_finish(struct session *s, const struct options *o, struct err *err)
{
    if (sched_getcpu() != s->slot->info.cpu && s->slot->info.migrations == 0)
        s->slot->info.migrations = 1; // between samples
    s->slot->info.off_cpu_share = guard_off_share(&s->slot->lost);
    s->slot->info.clock_ghz = 1 / reference_clock_mean_ns(&s->slot->cycle);
    s->slot->info.load_cycles = reference_clock_load_cycles(&s->slot->cycle);
    if (session_meet(s, 0, err) < 0)
        return -1;
    int outcome = session_is_rank0(s) ? session_report_doubts(s, err) : 0;
    if (session_is_rank0(s) && outcome == 0)
        outcome = report_single(s, err);
    if (session_is_rank0(s) && outcome == 0)
        outcome = session_report_clocks(s, err);
    if (session_is_rank0(s) && outcome == 0)
        outcome = report_left_out(s, o, err);
    if (session_is_rank0(s) && outcome == 0)
        outcome = report_spreads(s, err);
    if (session_is_rank0(s) && outcome == 0)
        outcome = report_reserved(s, err);
    if (session_is_rank0(s) && outcome == 0 && session_stopped(s))
        outcome = report_stop(s, o, err);
    for (int r = 0; session_is_rank0(s) && outcome == 0 && r < s->comm->size; r++)
        if (*s->board->slot[r].condition.text)
            outcome = emit_condition(s->emit, &s->board->slot[r].condition, err);
    if (session_is_rank0(s) && outcome == 0)
        outcome = report_end(s, o, err);
    return session_meet(s, outcome, err);
}

int session_run(struct comm *comm, const struct options *o, struct emit *e, benchmark_fn *measure,
                struct err *err)
{
    struct session s = {.comm = comm,
                        .board = comm->board,
                        .slot = &comm->board->slot[comm->rank],
                        .spec = &o->spec,
                        .emit = e,
                        .found_bytes = o->found_bytes};
    introduce(&s);
    // Specs are made from zeroed memory, texts included: the same request gives the same bytes.
    s.slot->question = hash_bytes(s.spec, sizeof *s.spec);
    if (session_meet(&s, session_find_targets(&s, err), err) < 0 ||
        session_meet(&s, find_policy(&s, err), err) < 0 ||
        session_meet(&s, same_question(&s, err), err) < 0)
        return -1;
    if (!benchmarks[s.spec->benchmark].keeps_budget) // which minds its budget itself
        s.limit.repetitions = s.spec->visits;
    if (s.emit)
        time_limit_set(&s.limit, s.emit->started_ns, (double)o->deadline_s,
                       (double)o->spec.budget_s, comm->size);
    s.slot->ends_ns = s.limit.end_ns;
    return measure(&s, err) < 0 ? -1 : session_finish(&s, o, err);
}
