// SPDX-License-Identifier: Apache-2.0
// hierarchy: the terms of a load's latency, for each rank in one line, and what they mean in a
// sentence each, of the medians over ranks.
#include "analysis/report/hierarchy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/hierarchy.h"
#include "analysis/stats/rank_places.h"
#include "base/cleanup.h"
#include "model/spec_values.h"

enum { LINES_MAX = 64, TEXT_ROOM = 512 };

static const double CLOSE = 0.9; // of the largest working set's latency: auto is large enough

// What a level is called, and what is known of it besides.
struct level_name {
    char text[16];
    int64_t listed; // bytes, by the kernel; 0: it lists no such cache
    bool pages;     // not a cache: translations of base pages run out here
};

// To three digits: the points of a curve are no round numbers.
static void hierarchy_size_text(int64_t bytes, char *out, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t unit = 0;
    for (; v >= 1000 && unit + 1 < COUNT_OF(units); unit++)
        v /= 1024;
    snprintf(out, room, "%.*f %s", v < 10 && unit ? 1 : 0, v, units[unit]);
}

// The smallest cache of the kernel's that is not much smaller; 0: none.
static int listed_level(const struct topology *t, int64_t bytes)
{
    for (int level = 1; t && topology_cache_bytes(t, level); level++)
        if (HIERARCHY_SAME * (double)topology_cache_bytes(t, level) >= (double)bytes)
            return level;
    return 0;
}

// 0: not known.
static uint64_t base_page_of(const struct report_source *run)
{
    return run->base_page || !run->machine ? run->base_page : fingerprint_base_page(run->machine);
}

// The curve and the chains at once are of huge pages, where there are any.
static const struct rank_info *without_huge_pages(const struct report_source *run)
{
    for (int i = 0; i < run->n_ranks; i++)
        if (run->ranks[i].huge_share < 0.99)
            return &run->ranks[i];
    return NULL;
}

// Without a topology a cache of about that size is more likely than a kernel that gave huge pages,
// and translations that run out all the same.
static bool is_step_of_pages(const struct hierarchy *h, const struct report_source *run,
                             int64_t bytes)
{
    return (run->topology || without_huge_pages(run)) &&
           hierarchy_is_reach(h, bytes, base_page_of(run));
}

static struct level_name name_of(const struct hierarchy *h, const struct report_source *run, int k)
{
    const struct topology *t = run->topology;
    struct level_name name = {0};
    int64_t bytes = h->levels.list[k].bytes;
    int level = bytes ? listed_level(t, bytes) : 0; // memory is no cache
    name.listed = level ? topology_cache_bytes(t, level) : 0;
    bool sure = name.listed && (double)bytes * HIERARCHY_SAME >= (double)name.listed;
    name.pages = !sure && is_step_of_pages(h, run, bytes);
    if (!bytes)
        snprintf(name.text, sizeof name.text, "memory");
    else if (name.pages)
        snprintf(name.text, sizeof name.text, "TLB reach");
    else if (level)
        snprintf(name.text, sizeof name.text, "L%d", level);
    else
        snprintf(name.text, sizeof name.text, t ? "unlisted cache" : "L%d", k + 1);
    return name;
}

// --- A line per rank ---------------------------------------------------------------------------

static void line_of_levels(const struct hierarchy *h, const struct report_source *run,
                           struct buf *out)
{
    bool cycles = h->cycle_ns > 0;
    for (int k = 0; k < h->levels.n; k++) {
        const struct level *l = &h->levels.list[k];
        struct level_name name = name_of(h, run, k);
        if (!l->bytes || name.pages)
            continue;
        buf_fmt(out, "%s%s %.*f%s", k ? ", " : "", name.text, !cycles,
                cycles ? l->ns / h->cycle_ns : l->ns,
                k        ? ""
                : cycles ? " cycles"
                         : " ns");
    }
}

static void line_of_rest(const struct hierarchy *h, struct buf *out)
{
    const struct reach *base = &h->base;
    if (base->n)
        buf_fmt(out, ", %s %+.1f ns", base->n > 1 ? "walk" : "TLB miss",
                base->miss_ns[base->n - 1]);
    if (isfinite(h->memory_ns))
        buf_fmt(out, ", memory %.1f ns", h->memory_ns);
    if (isfinite(h->hop_ns))
        buf_fmt(out, ", hop %+.1f ns", h->hop_ns);
    if (isfinite(h->misses))
        buf_fmt(out, ", %.1f loads at once", h->misses);
}

static int hierarchy_write_line(const struct report_source *run, int row, struct buf *out,
                                struct err *err)
{
    struct hierarchy h;
    if (hierarchy_find(&h, run->matrices, run->n, row, err) < 0)
        return -1;
    line_of_levels(&h, run, out);
    line_of_rest(&h, out);
    if (h.cycle_ns > 0)
        buf_fmt(out, " (%.2f GHz)", 1 / h.cycle_ns);
    return 0;
}

int hierarchy_write_lines(const struct report_source *run, struct buf *out, struct err *err)
{
    const struct matrix *pages = report_matrix(run, "base_pages");
    int rows = pages ? pages->row.n : 0;
    for (int row = 0; row < rows && row < LINES_MAX; row++) {
        int64_t rank = pages->row.values[row];
        buf_fmt(out, "rank %" PRId64 ": ", rank);
        if (hierarchy_write_line(run, row, out, err) < 0)
            return -1;
        buf_char(out, '\n');
    }
    return 0;
}

// --- What it means -----------------------------------------------------------------------------

static void report_level(struct report_out *o, const struct hierarchy *h,
                         const struct report_source *run, int k)
{
    const struct level *l = &h->levels.list[k];
    struct level_name name = name_of(h, run, k);
    char size[24], listed[24], rise[24], cycles[32] = "";
    hierarchy_size_text(h->rise_bytes, rise, sizeof rise);
    hierarchy_size_text(l->bytes, size, sizeof size);
    hierarchy_size_text(name.listed, listed, sizeof listed);
    struct jsonw *w = report_finding(o, "level");
    jsonw_text(w, "name", name.text);
    jsonw_fixed(w, "ns", l->ns, 3);
    jsonw_fixed(w, "cycles", l->ns / h->cycle_ns, 2);
    jsonw_i64(w, "bytes", l->bytes);
    jsonw_i64(w, "listed_bytes", name.listed);
    if (!l->bytes && h->rise_bytes) {
        jsonw_i64(w, "rise_bytes", h->rise_bytes);
        jsonw_fixed(w, "rise_ns", h->rise_ns, 3);
    }
    if (h->cycle_ns > 0)
        snprintf(cycles, sizeof cycles, " (%.1f cycles)", l->ns / h->cycle_ns);
    if (!l->bytes && h->rise_bytes)
        report_say(o,
                   "Beyond, a load takes %.1f ns%s. It rises to %.1f ns from %s on, by too little "
                   "for a cache: page tables outgrow the caches.",
                   l->ns, cycles, h->rise_ns, rise);
    else if (!l->bytes)
        report_say(o, "Beyond, a load takes %.1f ns%s.", l->ns, cycles);
    else if (name.pages)
        report_say(o,
                   "The step at %s is where translations of base pages run out, not a cache: up to "
                   "there %.2f ns%s.",
                   size, l->ns, cycles);
    else if (run->topology && !name.listed)
        report_say(o,
                   "Up to %s a load takes %.2f ns%s. The kernel lists no such cache: it may be a "
                   "system-level or memory-side cache.",
                   size, l->ns, cycles);
    else if ((double)l->bytes * HIERARCHY_SAME < (double)name.listed)
        report_say(o,
                   "%s: %.2f ns%s, up to %s. The kernel lists %s: the rank gets only a part of it.",
                   name.text, l->ns, cycles, size, listed);
    else
        report_say(o, "%s: %.2f ns%s, up to %s.", name.text, l->ns, cycles, size);
}

static void report_reach(struct report_out *o, const struct reach *r, const char *pages)
{
    struct jsonw *w = report_finding(o, "tlb");
    jsonw_text(w, "pages", pages);
    jsonw_array(w, "levels");
    for (int k = 0; k < r->n; k++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "entries", r->pages[k]);
        jsonw_fixed(w, "miss_ns", r->miss_ns[k], 3);
        jsonw_end(w);
    }
    jsonw_end(w);
    if (r->n == 0)
        report_say(o, "With %s pages no translation was missed: 0 ns.", pages);
    else if (r->n == 1)
        report_say(o, "The TLB holds %" PRId64 " %s pages; with more, a load takes %.1f ns longer.",
                   r->pages[0], pages, r->miss_ns[0]);
    else
        report_say(o,
                   "The first-level TLB holds %" PRId64 " %s pages, the second %" PRId64
                   ". A load that misses the first takes %.1f ns longer, one that misses both "
                   "(a walk) %.1f ns.",
                   r->pages[0], pages, r->pages[1], r->miss_ns[0], r->miss_ns[1]);
}

static void report_misses(struct report_out *o, const struct hierarchy *h)
{
    struct jsonw *w = report_finding(o, "parallel");
    jsonw_fixed(w, "loads", h->misses, 2);
    jsonw_i64(w, "chains", h->misses_chains);
    jsonw_fixed(w, "access_ns", h->access_ns, 3);
    report_say(o,
               "A core has %.1f loads of memory under way at once: %.1f ns per load instead of "
               "%.1f. %d chains at once are enough for 95 %% of that.",
               h->misses, h->access_ns, h->misses * h->access_ns, h->misses_chains);
}

static void report_strides(struct report_out *o, const struct hierarchy *h)
{
    char text[TEXT_ROOM] = "", size[24];
    struct jsonw *w = report_finding(o, "prefetch");
    jsonw_array(w, "strides");
    for (int i = 0; i < h->n_strides; i++) {
        size_t used = strlen(text);
        hierarchy_size_text(h->strides[i].bytes, size, sizeof size);
        snprintf(text + used, sizeof text - used, "%s%.1f at %s (× %.1f)", i ? ", " : "",
                 h->strides[i].ns, size, h->strides[i].gain);
        jsonw_object(w, NULL);
        jsonw_i64(w, "stride", h->strides[i].bytes);
        jsonw_fixed(w, "ns", h->strides[i].ns, 3);
        jsonw_fixed(w, "gain", h->strides[i].gain, 3);
        jsonw_end(w);
    }
    jsonw_end(w);
    report_say(o,
               "In address order prefetchers help: ns per dependent load by stride, and how many "
               "times as long random order takes: %s.",
               text);
}

static void report_usual(struct report_out *o, const struct hierarchy *h, int64_t usual)
{
    char at[24], half[24], largest[24];
    hierarchy_size_text(usual, at, sizeof at);
    hierarchy_size_text(h->largest_bytes / 2, half, sizeof half);
    hierarchy_size_text(h->largest_bytes, largest, sizeof largest);
    struct jsonw *w = report_finding(o, "auto");
    jsonw_i64(w, "bytes", usual);
    jsonw_fixed(w, "share", h->usual_share, 4);
    jsonw_i64(w, "largest_bytes", h->largest_bytes);
    jsonw_fixed(w, "largest_ns", h->largest_ns, 2);
    jsonw_i64(w, "enough_bytes", h->enough_bytes);
    if (h->usual_share >= CLOSE)
        report_say(o,
                   "The size auto of other benchmarks, %s, reaches %.0f %% of %.1f ns, the median "
                   "latency above %s, up to %s.",
                   at, 100 * h->usual_share, h->largest_ns, half, largest);
    else
        report_say(o,
                   "The size auto of other benchmarks, %s, reaches only %.0f %% of %.1f ns, the "
                   "median latency above %s, up to %s. Use size=%" PRId64
                   "M to measure memory: from there on it is 95 %%.",
                   at, 100 * h->usual_share, h->largest_ns, half, largest,
                   (h->enough_bytes + (1 << 20) - 1) >> 20);
}

// What other benchmarks take as auto after this run (core/results/found_memory.c).
static int64_t usual_bytes(const struct report_source *run, const struct hierarchy *h, bool poor)
{
    int64_t llc = run->topology ? topology_llc_bytes(run->topology) : 0;
    int64_t beyond = llc > 0 && !poor ? hierarchy_beyond_bytes(h, llc, base_page_of(run)) : 0;
    return llc > 0 ? (int64_t)spec_auto_bytes((uint64_t)(beyond ? beyond : llc)) : 0;
}

static void report_no_huge(struct report_out *o, const struct rank_info *rank)
{
    struct jsonw *w = report_finding(o, "no_huge_pages");
    jsonw_i64(w, "rank", rank->rank);
    jsonw_fixed(w, "huge_share", rank->huge_share, 4);
    report_say(o,
               "The kernel gave huge pages for %.0f %% of the memory only (rank %" PRId64
               "): the latencies contain page walks, and nothing is known of the TLB for huge "
               "pages.",
               100 * rank->huge_share, rank->rank);
}

static int report_ranks(struct report_out *o, const struct report_source *run, struct err *err)
{
    const struct matrix *m = &run->matrices[0];
    for (int row = 0; row < m->row.n && row < LINES_MAX; row++) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        if (hierarchy_write_line(run, row, &line, err) < 0)
            return -1;
        buf_needs(&o->json, &line);
        jsonw_i64(report_finding(o, "rank"), "rank", m->row.values[row]);
        report_say(o, "Rank %" PRId64 ": %s.", m->row.values[row], buf_text(&line));
    }
    return 0;
}

static int hierarchy_report_rows(bool **rows, const struct report_source *run, struct err *err)
{
    struct places places CLEANUP(places_fini) = {0};
    return places_init(&places, run->ranks, run->n_ranks, run->topology, err) < 0
               ? -1
               : hierarchy_rows(rows, run->matrices, run->n, &places, err);
}

static void report_strongest(struct report_out *o, const struct report_source *run,
                             const bool *rows)
{
    int n = 0, all = run->matrices[0].row.n;
    for (int i = 0; i < all; i++)
        n += rows[i];
    jsonw_i64(report_finding(o, "strongest"), "ranks", n);
    report_say(o, "What follows is of the %d of %d ranks on the strongest kind of core.", n, all);
}

int section_hierarchy(struct report_out *o, const struct report_source *run,
                      const struct report_source *with, struct err *err)
{
    struct hierarchy h;
    CLEANUP_MEM bool *rows = NULL;
    const struct rank_info *poor = without_huge_pages(run);
    (void)with;
    if (hierarchy_report_rows(&rows, run, err) < 0 ||
        hierarchy_find_of(&h, run->matrices, run->n, rows, err) < 0)
        return -1;
    int64_t usual = usual_bytes(run, &h, poor != NULL);
    if (hierarchy_find_usual(&h, run->matrices, run->n, rows, usual, err) < 0)
        return -1;
    report_head(o, "What a load's latency is made of");
    if (report_ranks(o, run, err) < 0)
        return -1;
    if (rows)
        report_strongest(o, run, rows);
    for (int k = 0; k < h.levels.n; k++)
        report_level(o, &h, run, k);
    report_reach(o, &h.base, "base");
    if (poor)
        report_no_huge(o, poor);
    else
        report_reach(o, &h.huge, "huge");
    if (isfinite(h.misses))
        report_misses(o, &h);
    if (h.n_strides)
        report_strides(o, &h);
    if (isfinite(h.usual_share))
        report_usual(o, &h, usual);
    report_tail(o);
    return 0;
}
