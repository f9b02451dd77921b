// SPDX-License-Identifier: Apache-2.0
// These functions read single members and no table: the table of benchmarks (model/benchmarks.c)
// calls them in its checks, and model/spec.c reads that table.
#include "model/spec_values.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

uint64_t spec_auto_bytes(uint64_t llc)
{
    uint64_t least = (uint64_t)64 << 20;
    return 4 * llc < least ? least : 4 * llc;
}

uint64_t rank_cache_bytes(const struct rank_cache *c)
{
    return c->found_bytes > c->llc_bytes ? c->found_bytes : c->llc_bytes;
}

uint64_t spec_auto_bytes_of(const struct rank_cache *caches, int ranks)
{
    uint64_t most = 0;
    for (int r = 0; r < ranks; r++)
        most = rank_cache_bytes(&caches[r]) > most ? rank_cache_bytes(&caches[r]) : most;
    return spec_auto_bytes(most);
}

enum {
    PRIVATE_LEAST = 2 << 20,   // the same for all with a smaller one
    PRIVATE_UNKNOWN = 4 << 20, // the largest L2 today: of one core 3 MiB, of a module of four 4 MiB
};

int spec_load_cpus(const struct spec *s, const int *ranks, int n_ranks, int **ids, int *n,
                   struct err *err)
{
    CLEANUP_MEM int *got = NULL;
    if (str_to_ids(s->load_cpus, false, SPEC_RANKS_MAX, "load_cpus", &got, n, err) < 0)
        return -1;
    for (int i = 0; i < *n; i++)
        for (int r = 0; r < n_ranks; r++)
            if (ranks[r] == got[i])
                return err_set(err, ERR_INVALID, "load_cpus", "CPU %d has rank %d", got[i], r);
    *ids = steal_ptr(&got);
    return 0;
}

int spec_load_sharing(const int *llc, int n)
{
    int least = 0;
    for (int i = 0; i < n; i++) {
        int sharing = 0;
        for (int k = 0; k < n; k++)
            sharing += k == i || (llc[i] >= 0 && llc[k] == llc[i]);
        if (!least || sharing < least)
            least = sharing;
    }
    return least ? least : 1;
}

uint64_t spec_private_bytes(uint64_t l2, uint64_t llc)
{
    if (!l2)
        return PRIVATE_UNKNOWN;
    return l2 < llc && l2 > PRIVATE_LEAST ? l2 : PRIVATE_LEAST;
}

uint64_t spec_loader_bytes(uint64_t together, int sharing, uint64_t private_bytes)
{
    uint64_t part = together / (uint64_t)sharing / 64 * 64, least = 4 * private_bytes;
    least = together < least ? together : least;
    return part < least ? least : part;
}

uint64_t spec_bytes_per_rank(const struct spec *s, uint64_t auto_bytes)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (strcmp(s->size, "auto") == 0)
        return auto_bytes;
    if (str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &sizes, &n, NULL) < 0)
        return 0;
    return sizes[n - 1];
}

int spec_check_links(const struct spec *s, uint64_t smallest, uint64_t line, struct err *err)
{
    enum { LEAST = 8 };
    uint64_t stride = s->stride ? s->stride : line;
    if (smallest < LEAST * stride)
        return err_set(err, ERR_INVALID, "size",
                       "the smallest, %llu bytes, holds fewer than %d links of %llu",
                       (unsigned long long)smallest, LEAST, (unsigned long long)stride);
    if (s->locality && s->locality < LEAST * stride)
        return err_set(err, ERR_INVALID, "locality", "must hold %d links of %llu bytes, or be 0",
                       LEAST, (unsigned long long)stride);
    return 0;
}

int spec_operations(const struct spec *s, int64_t list[AXIS_OPERATIONS])
{
    int n = 0;
    for (int k = 0; k < AXIS_OPERATIONS; k++) {
        bool lock = operation_is_lock((enum operation)k);
        if (s->operation == CHOICE_ALL || s->operation == CHOICE_ONE + k ||
            s->operation == (lock ? CHOICE_LOCKS : CHOICE_ATOMICS))
            list[n++] = k;
    }
    return n;
}

int spec_third_node(const int *nodes, int n, int first, int second)
{
    for (int i = 0; i < n; i++)
        if (nodes[i] != first && nodes[i] != second)
            return nodes[i];
    return -1;
}

// The smallest that any architecture has: to round up to it costs less than another kind of page.
static const uint64_t THP_SMALL = 2 << 20;

bool spec_pages_reserved(enum pages pages)
{
    return pages >= PAGES_HUGE;
}

uint64_t spec_page_bytes(enum pages pages, const struct page_sizes *sizes, uint64_t bytes)
{
    if (spec_pages_reserved(pages))
        return pages == PAGES_HUGE ? sizes->huge
                                   : (uint64_t)(pages == PAGES_2M ? 2 << 20 : 1 << 30);
    bool fits = bytes >= sizes->thp || sizes->thp <= THP_SMALL;
    return pages == PAGES_THP && fits ? sizes->thp : sizes->base;
}

uint64_t spec_page_round(enum pages pages, const struct page_sizes *sizes, uint64_t bytes)
{
    uint64_t page = spec_page_bytes(pages, sizes, bytes);
    return (bytes + page - 1) / page * page;
}

static int bad_pairs(const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "pairs",
                   "must be classes, all or at most %d pairs of different ranks, each once, such "
                   "as 0-1,0-4; got \"%.60s\"",
                   SPEC_PAIRS_MAX, text);
}

int spec_pairs(const char *text, int pairs[][2], int *n, struct err *err)
{
    const char *at = text;
    for (*n = 0;; at++) {
        int first, second, used = 0;
        if (*n == SPEC_PAIRS_MAX || !isdigit((unsigned char)*at) ||
            sscanf(at, "%4d-%n", &first, &used) != 1 || !used || !isdigit((unsigned char)at[used]))
            return bad_pairs(text, err);
        at += used;
        if (sscanf(at, "%4d%n", &second, &used) != 1 || first == second ||
            first >= SPEC_RANKS_MAX || second >= SPEC_RANKS_MAX)
            return bad_pairs(text, err);
        at += used;
        pairs[*n][0] = first < second ? first : second;
        pairs[*n][1] = first < second ? second : first;
        for (int i = 0; i < *n; i++)
            if (pairs[i][0] == pairs[*n][0] && pairs[i][1] == pairs[*n][1])
                return bad_pairs(text, err);
        ++*n;
        if (!*at)
            return 0;
        if (*at != ',')
            return bad_pairs(text, err);
    }
}
