// SPDX-License-Identifier: Apache-2.0
// Each rank samples until all have enough. Afterwards the spans of time in which every rank was
// at work are intersected, and only samples inside count.
#include "bench/session/concurrent.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

static void concurrent_sample(struct session *s, const struct work *w, uint64_t visits)
{
    uint64_t begin = clock_mono_ns();
    do
        w->take(w->context);
    while (!sampler_done(w->sampler) && !board_faulty(s->board));
    board_count(s->board, TALLY_DONE);
    while (!board_all(s->board, TALLY_DONE, visits, s->comm->size))
        w->take(w->context);
    s->slot->info.migrations = w->sampler->moves;
    s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
}

// When all ranks were at work.
static void common_spans(const struct session *s, struct spans *together)
{
    *together = s->slot->spans;
    for (int i = 0; i < s->comm->size; i++)
        if (i != s->comm->rank)
            spans_cut(together, &s->board->slot[i].spans);
}

int concurrent_measure(struct session *s, const struct work *w, uint64_t visits,
                       struct cell_sum *sum, struct err *err)
{
    CLEANUP_MEM struct spans *common = malloc(sizeof *common);
    sampler_clear(w->sampler);
    w->warm(w->context);
    board_count(s->board, TALLY_WARM);
    while (!board_all(s->board, TALLY_WARM, visits, s->comm->size))
        w->linger(w->context);
    concurrent_sample(s, w, visits);
    s->slot->spans = w->sampler->spans;
    int outcome = common ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to compare windows");
    if (session_meet(s, outcome, err) < 0)
        return -1;
    common_spans(s, common);
    return session_meet(s, sampler_keep(w->sampler, common, sum, err), err);
}
