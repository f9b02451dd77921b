// SPDX-License-Identifier: Apache-2.0
// firsttouch: the cost of memory that another rank touched first. pagefault: the cost of the first
// touch itself.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

struct touch {
    double typical, factor; // median over ranks; of each rank's ratio to its own memory
    double worst;
    int64_t worst_rank;
};

static int touch_of(struct touch *t, const struct matrix *m, int col, struct err *err)
{
    int own_col = axis_index(&m->col, ACCESS_OWN), n = 0;
    CLEANUP_MEM double *values = calloc((size_t)m->row.n + 1, sizeof *values);
    CLEANUP_MEM double *ratios = calloc((size_t)m->row.n + 1, sizeof *ratios);
    if (!values || !ratios)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    *t = (struct touch){.worst = -INFINITY, .worst_rank = -1};
    for (int i = 0; own_col >= 0 && i < m->row.n; i++) {
        double v = matrix_at(m, i, col)->v[CELL_MEDIAN];
        double ratio = v / matrix_at(m, i, own_col)->v[CELL_MEDIAN];
        if (isnan(ratio))
            continue;
        values[n] = v;
        ratios[n++] = ratio;
        if (ratio > t->worst) {
            t->worst = ratio;
            t->worst_rank = m->row.values[i];
        }
    }
    t->typical = middle_of(values, n);
    t->factor = middle_of(ratios, n);
    return 0;
}

static int report_access(struct report_out *o, const struct matrix *m, int col, struct err *err)
{
    static const char *const whose[AXIS_ACCESSES] = {
        "that a rank touched itself", "that the first rank touched", "that the next rank touched"};
    struct touch t = {0};
    char name[16];
    if (touch_of(&t, m, col, err) < 0)
        return -1;
    if (isnan(t.typical))
        return 0;
    axis_label(&m->col, col, name, sizeof name);
    struct jsonw *w = report_finding(o, "access");
    jsonw_text(w, "access", name);
    jsonw_fixed(w, "typical_ns", t.typical, 3);
    jsonw_fixed(w, "factor", t.factor, 3);
    jsonw_fixed(w, "worst_factor", t.worst, 3);
    jsonw_i64(w, "worst_rank", t.worst_rank);
    if (m->col.values[col] == ACCESS_OWN)
        report_say(o, "Memory %s (own) typically takes %.2f ns per access.", whose[0], t.typical);
    else
        report_say(
            o,
            "Memory %s (%s) takes %.2f ns, × %.2f of a rank's own; at most × %.2f (rank %" PRId64
            ").",
            whose[m->col.values[col]], name, t.typical, t.factor, t.worst, t.worst_rank);
    return 0;
}

int section_firsttouch(struct report_out *o, const struct report_source *run,
                       const struct report_source *with, struct err *err)
{
    const struct matrix *m = &run->matrices[0];
    (void)with;
    report_head(o, "Memory that another rank touched first");
    // A rank alone has touched all of its memory itself.
    for (int j = 0; j < m->col.n; j++)
        if ((m->row.n > 1 || m->col.values[j] == ACCESS_OWN) && report_access(o, m, j, err) < 0)
            return -1;
    if (m->row.n == 1) {
        jsonw_i64(report_finding(o, "one_rank"), "ranks", 1);
        report_say(o, "There is 1 rank: all of this memory is its own.");
    } else if (report_nodes_of(run, &m->row).n == 1) {
        jsonw_i64(report_finding(o, "one_node"), "ranks", m->row.n);
        report_say(o,
                   "All %d ranks are on one node: none of this memory is remote. Differences come "
                   "from concurrent load alone.",
                   m->row.n);
    }
    report_tail(o);
    return 0;
}

// ---- Page faults --------------------------------------------------------------------------------

enum { BASE_PAGE = 4096, HUGE_PAGE = 2 << 20 };

// What is said of a matrix by its name.
static const struct page_words {
    const char *name, *what; // "4 KiB pages on node 0"
    double page;
} page_words[] = {
    {"4k", "4 KiB pages on node ", BASE_PAGE},
    {"thp", "2 MiB pages on node ", HUGE_PAGE},
    {"collapse", "4 KiB pages made 2 MiB pages on node ", HUGE_PAGE},
    {"migrate", "4 KiB pages moved from node to node ", BASE_PAGE},
};

static const struct page_words *words_of_pages(const struct matrix *m)
{
    for (size_t i = 1; i < sizeof page_words / sizeof *page_words; i++)
        if (strcmp(m->name, page_words[i].name) == 0)
            return &page_words[i];
    return &page_words[0];
}

static void report_faults(struct report_out *o, const struct matrix *m, int col)
{
    const struct page_words *words = words_of_pages(m);
    int one = axis_index(&m->row, 1), last = m->row.n - 1;
    double single = one >= 0 ? matrix_at(m, one, col)->v[CELL_MEDIAN] : NAN;
    double all = matrix_at(m, last, col)->v[CELL_MEDIAN];
    int64_t threads = m->row.values[last];
    char where[40];
    axis_label(&m->col, col, where, sizeof where);
    struct jsonw *w = report_finding(o, "page_fault");
    jsonw_text(w, "pages", m->name);
    if (strcmp(m->col.name, "path") == 0)
        jsonw_text(w, "path", where);
    else
        jsonw_i64(w, "target", m->col.values[col]);
    jsonw_fixed(w, "single_ns", single, 1);
    jsonw_fixed(w, "single_gbps", words->page / single, 2);
    jsonw_i64(w, "threads", threads);
    jsonw_fixed(w, "all_ns", all, 1);
    jsonw_fixed(w, "factor", all / single, 3);
    jsonw_fixed(w, "all_gbps", (double)threads * words->page / all, 2);
    if (isnan(single) || isnan(all))
        report_say(o, "%s%s: one thread or all was not measured.", words->what, where);
    else if (threads == 1)
        report_say(o, "%s%s: 1 thread takes %.1f ns per page (%.1f GB/s).", words->what, where,
                   single, words->page / single);
    else
        report_say(o,
                   "%s%s: 1 thread takes %.1f ns per page (%.1f GB/s); each of %" PRId64
                   " threads at once takes %.1f ns, × %.2f (%.1f GB/s together).",
                   words->what, where, single, words->page / single, threads, all, all / single,
                   (double)threads * words->page / all);
}

// The rank with the least memory on huge pages; NULL: each had them, or it is not known.
static const struct rank_info *least_huge(const struct report_source *s)
{
    const struct rank_info *least = NULL;
    for (int i = 0; i < s->n_ranks; i++)
        if (s->ranks[i].huge_share < (least ? least->huge_share : 0.99))
            least = &s->ranks[i];
    return least;
}

int section_pagefault(struct report_out *o, const struct report_source *run,
                      const struct report_source *with, struct err *err)
{
    const struct rank_info *poor = least_huge(run);
    (void)with;
    (void)err;
    report_head(o, "Cost of first touching a page");
    if (poor) {
        struct jsonw *w = report_finding(o, "no_huge_pages");
        jsonw_i64(w, "rank", poor->rank);
        jsonw_fixed(w, "huge_share", poor->huge_share, 4);
        report_say(o,
                   "The kernel did not give all huge pages (rank %" PRId64 ": %.0f %% of the "
                   "memory): results of 2 MiB pages are partly of 4 KiB pages.",
                   poor->rank, 100 * poor->huge_share);
    }
    for (int i = 0; i < run->n; i++)
        for (int col = 0; col < run->matrices[i].col.n; col++)
            report_faults(o, &run->matrices[i], col);
    report_tail(o);
    return 0;
}
