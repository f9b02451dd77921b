// SPDX-License-Identifier: Apache-2.0
// The rows come first: nodes, or numbers of ranks. Then each gets its ranks, the caches of these,
// and from the caches its arrays.
#include "model/stream_team.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/spec_values.h"

enum { SIZES_FROM = 16 << 10 };

int stream_series(int ranks, int *counts)
{
    int n = 0;
    for (int k = 1; k < ranks; k *= 2)
        counts[n++] = k;
    counts[n++] = ranks;
    return n;
}

int stream_sizes(const struct spec *s, const struct rank_cache *caches, int ranks, uint64_t *sizes,
                 struct err *err)
{
    CLEANUP_MEM uint64_t *listed = NULL;
    int n = 0;
    if (strcmp(s->size, "auto") == 0) {
        uint64_t most = spec_auto_bytes_of(caches, ranks);
        for (uint64_t bytes = SIZES_FROM; bytes < most && n < SPEC_SIZES_MAX - 1; bytes *= 2)
            sizes[n++] = bytes;
        sizes[n++] = most;
        return n;
    }
    if (str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &listed, &n, err) < 0)
        return -1;
    memcpy(sizes, listed, (size_t)n * sizeof *sizes);
    return n;
}

static int team_add(struct stream_team *teams, int n, int64_t value)
{
    for (int i = 0; i < n; i++)
        if (teams[i].value == value)
            return n;
    teams[n] = (struct stream_team){.value = value};
    return n + 1;
}

static int by_count(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int listed_counts(const struct spec *s, int ranks, int *counts, struct err *err)
{
    CLEANUP_MEM int *listed = NULL;
    int n = 0;
    if (str_to_ids(s->threads, false, SPEC_RANKS_MAX, "threads", &listed, &n, err) < 0)
        return -1;
    qsort(listed, (size_t)n, sizeof *listed, by_count);
    if (n && listed[n - 1] > ranks)
        return err_set(err, ERR_INVALID, "threads", "has %d, but the run has %d rank%s",
                       listed[n - 1], ranks, str_plural(ranks));
    memcpy(counts, listed, (size_t)n * sizeof *counts);
    return n;
}

int stream_thread_counts(const struct spec *s, int ranks, int *counts, struct err *err)
{
    if (strcmp(s->threads, "all") == 0) {
        for (int k = 0; k < ranks; k++)
            counts[k] = k + 1;
        return ranks;
    }
    if (strcmp(s->threads, "auto") != 0 && strcmp(s->threads, "doubling") != 0)
        return listed_counts(s, ranks, counts, err);
    return stream_series(ranks, counts);
}

static int thread_counts(const struct spec *s, int ranks, struct stream_team *teams,
                         struct err *err)
{
    CLEANUP_MEM int *counts = calloc(SPEC_RANKS_MAX, sizeof *counts);
    int n = 0;
    if (!counts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    if (strcmp(s->threads, "auto") == 0 && s->sweep == SWEEP_SIZES)
        return team_add(teams, team_add(teams, 0, 1), ranks);
    int all = stream_thread_counts(s, ranks, counts, err);
    for (int i = 0; i < all; i++)
        n = team_add(teams, n, counts[i]);
    return all < 0 ? -1 : n;
}

static int find_teams(const struct spec *s, const struct rank_cache *caches, int ranks,
                      struct stream_team *teams, struct err *err)
{
    int n = 0;
    switch ((enum bandwidth_sweep)s->sweep) {
    case SWEEP_NODES:
    case SWEEP_MEMCPY:
        for (int r = 0; r < ranks; r++)
            n = team_add(teams, n, caches[r].node);
        return n;
    case SWEEP_THREADS:
    case SWEEP_SIZES:
        return thread_counts(s, ranks, teams, err);
    case SWEEP_OWN:
        break;
    }
    return team_add(teams, 0, ranks);
}

static bool team_is_node(const struct spec *s)
{
    return s->sweep == SWEEP_NODES || s->sweep == SWEEP_MEMCPY;
}

bool stream_team_has(const struct spec *s, const struct stream_team *t,
                     const struct rank_cache *caches, int rank)
{
    return team_is_node(s) ? caches[rank].node == t->value : rank < t->value;
}

// Teams of nodes have no rank in common, but a copy has two targets.
static bool places_at_once(const struct spec *s)
{
    return s->benchmark == BENCHMARK_BANDWIDTH && s->sweep == SWEEP_NODES;
}

int stream_at_once(const struct spec *s, int rows, int cols)
{
    if (!places_at_once(s))
        return 1;
    return rows < cols ? rows : cols;
}

int stream_rounds(const struct spec *s, int rows, int cols)
{
    if (!places_at_once(s))
        return rows * cols;
    return rows > cols ? rows : cols;
}

int stream_round_col(const struct spec *s, int rows, int cols, int round, int row)
{
    if (!places_at_once(s))
        return round % rows == row ? round / rows : -1;
    int col = (row + round) % stream_rounds(s, rows, cols);
    return col < cols ? col : -1;
}

// Of the caches beyond those that the kernel lists, one a node.
static uint64_t team_found_bytes(const struct spec *s, const struct rank_cache *caches, int end,
                                 const struct stream_team *t)
{
    uint64_t sum = 0;
    for (int r = 0; r < end; r++) {
        int k = caches[r].found_bytes ? r - 1 : -1;
        while (k >= 0 && (caches[k].node != caches[r].node || !stream_team_has(s, t, caches, k)))
            k--;
        if (k < 0 && stream_team_has(s, t, caches, r))
            sum += caches[r].found_bytes;
    }
    return sum;
}

// A cache counts by the first rank of the team that has it.
static void team_caches(const struct spec *s, const struct rank_cache *caches, int ranks,
                        const int *before, struct stream_team *t)
{
    int end = team_is_node(s) ? ranks : (int)t->value; // ranks behind it are none of the team's
    for (int r = 0; r < end; r++) {
        if (!stream_team_has(s, t, caches, r))
            continue;
        t->n_ranks++;
        int k = before[r];
        while (k >= 0 && !stream_team_has(s, t, caches, k))
            k = before[k];
        t->llc_bytes += k < 0 ? caches[r].llc_bytes : 0;
    }
    uint64_t found = team_found_bytes(s, caches, end, t);
    t->llc_bytes = found > t->llc_bytes ? found : t->llc_bytes;
    t->array_bytes = spec_bytes_per_rank(s, spec_auto_bytes(t->llc_bytes));
}

int stream_teams(const struct spec *s, const struct rank_cache *caches, int ranks,
                 struct stream_team *teams, struct err *err)
{
    // Of each rank the last one before it on the same cache; -1: there is none.
    CLEANUP_MEM int *before = calloc((size_t)ranks + 1, sizeof *before);
    if (!before)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    for (int r = 0; r < ranks; r++) {
        before[r] = r - 1;
        while (before[r] >= 0 && caches[before[r]].llc != caches[r].llc)
            before[r]--;
    }
    int n = find_teams(s, caches, ranks, teams, err);
    for (int i = 0; i < n; i++)
        team_caches(s, caches, ranks, before, &teams[i]);
    return n;
}
