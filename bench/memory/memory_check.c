// SPDX-License-Identifier: Apache-2.0
// The demands of all ranks are summed up per node, and compared with what each node and the
// cgroup still have. One node that is short refuses the run on all ranks.
#include "bench/memory/memory_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/str.h"
#include "model/spec_values.h"
#include "model/target.h"

static const uint64_t MIB = 1 << 20;

// Arena, its page tables, and the rest of a rank.
static uint64_t rank_bytes(const struct demand *d)
{
    return d->bytes + d->bytes / 512 + MEMCHECK_RANK_MIB * MIB;
}

// Of ranks that need `need` bytes, what they all would need of `room` at a smaller size. What they
// need besides their arenas stays.
static double memory_check_share(uint64_t need, int64_t room, int ranks)
{
    double rest = (double)ranks * MEMCHECK_RANK_MIB * (double)MIB,
           free = (double)room - MEMCHECK_RESERVE_MIB * (double)MIB;
    return free > rest && (double)need > rest ? (free - rest) / ((double)need - rest) : 0;
}

static bool memory_check_fits(uint64_t need, int64_t room)
{
    return room < 0 || need + MEMCHECK_RESERVE_MIB * MIB <= (uint64_t)room;
}

// *fits is set where it is refused.
static int memory_check_limit(const char *where, uint64_t need, int64_t room, int ranks,
                              double *fits, struct err *err)
{
    if (memory_check_fits(need, room))
        return 0;
    *fits = memory_check_share(need, room, ranks);
    return err_set(err, ERR_NO_MEMORY_NODE, "size",
                   "the ranks need %" PRIu64 " MiB %s, which has %" PRIu64
                   " MiB (%d MiB of it kept in reserve): choose a smaller size or fewer ranks",
                   need / MIB, where, (uint64_t)room / MIB, MEMCHECK_RESERVE_MIB);
}

static int memory_check_reserved(const char *root, int node, uint64_t need, enum pages pages,
                                 struct err *err)
{
    const struct page_sizes sizes = memory_page_sizes(root);
    uint64_t page = spec_page_bytes(pages, &sizes, need);
    int64_t room = memory_node_huge_bytes(root, node, page);
    char text[24];
    str_from_bytes(page, text, sizeof text);
    if (room < 0)
        return err_set(err, ERR_NO_MEMORY_NODE, "pages", "node %d has no reserved pages of %s",
                       node, text);
    if (need <= (uint64_t)room)
        return 0;
    return err_set(err, ERR_NO_MEMORY_NODE, "pages",
                   "the ranks need %" PRIu64 " reserved pages of %s on node %d, which has %" PRIu64
                   " of them free",
                   (need + page - 1) / page, text, node, (uint64_t)room / page);
}

static int memory_check_node(const char *root, int node, uint64_t need, enum pages pages, int ranks,
                             double *fits, struct err *err)
{
    char where[48];
    if (spec_pages_reserved(pages))
        return memory_check_reserved(root, node, need, pages, err);
    snprintf(where, sizeof where, "on node %d", node);
    return memory_check_limit(where, need, memory_node_available_bytes(root, node), ranks, fits,
                              err);
}

// What all demands together need of a node: of those that are in turn, the largest.
static uint64_t need_of(const struct demand *ranks, int n, int node, enum pages pages,
                        const int *weights)
{
    double need = 0, turn = 0;
    for (int i = 0; i < n; i++) {
        uint64_t bytes = spec_pages_reserved(pages) ? ranks[i].bytes : rank_bytes(&ranks[i]);
        double part = (double)bytes * target_share(ranks[i].node, node, weights);
        need += ranks[i].in_turn ? 0 : part;
        turn = ranks[i].in_turn ? fmax(turn, part) : turn;
    }
    return (uint64_t)(need + turn);
}

static int check_nodes(const char *root, const struct demand *ranks, int n, enum pages pages,
                       double *fits, struct err *err)
{
    int weights[TARGET_NODES], last = -1;
    for (int i = 0; i < TARGET_NODES; i++)
        weights[i] = memory_interleave_weight(root, i);
    for (int i = 0; i < n; i++) {
        int most = target_is_interleaved(ranks[i].node) ? TARGET_NODES - 1 : ranks[i].node;
        last = most > last ? most : last;
    }
    for (int node = 0; node <= last; node++) {
        uint64_t need = need_of(ranks, n, node, pages, weights);
        if (need && memory_check_node(root, node, need, pages, n, fits, err) < 0)
            return -1;
    }
    return 0;
}

int memcheck(const char *root, const struct demand *ranks, int n, enum pages pages, double *fits,
             struct err *err)
{
    uint64_t need = 0, turn = 0;
    for (int i = 0; i < n; i++) {
        uint64_t bytes =
            spec_pages_reserved(pages) ? MEMCHECK_RANK_MIB * MIB : rank_bytes(&ranks[i]);
        if (!ranks[i].in_turn)
            need += bytes;
        else if (bytes > turn)
            turn = bytes;
    }
    need += turn;
    if (memory_check_limit("on this machine", need, memory_available_bytes(root), n, fits, err) <
            0 ||
        memory_check_limit("in this cgroup", need, memory_cgroup_room_bytes(root), n, fits, err) <
            0)
        return -1;
    return check_nodes(root, ranks, n, pages, fits, err);
}
