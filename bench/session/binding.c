// SPDX-License-Identifier: Apache-2.0
// What the launcher left: affinity masks, seen through the slots of all ranks.
#include "bench/session/binding.h"

// The first rank before `rank` that is bound to its CPU; -1: none.
static int rank_on_same_cpu(const struct slot *slots, int rank)
{
    int64_t cpu = slots[rank].info.cpu_wanted;
    for (int r = 0; cpu >= 0 && r < rank; r++)
        if (slots[r].info.cpu_wanted == cpu)
            return r;
    return -1;
}

void binding_describe(const struct slot *slots, int ranks, struct buf *out)
{
    int loose = 0, second = -1;
    for (int r = 0; r < ranks; r++) {
        loose += !slots[r].on_one_core;
        if (second < 0 && rank_on_same_cpu(slots, r) >= 0)
            second = r;
    }
    if (ranks < 2)
        return;
    if (second >= 0)
        buf_fmt(out, "ranks %d and %d are both bound to CPU %d, so they take turns on it",
                rank_on_same_cpu(slots, second), second, (int)slots[second].info.cpu_wanted);
    else if (loose)
        buf_fmt(out,
                "%d of %d ranks are not bound to a core, so they may share one: use --bind, "
                "numactl --physcpubind, mpirun --bind-to core or srun --cpu-bind=cores",
                loose, ranks);
}
