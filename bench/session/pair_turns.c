// SPDX-License-Identifier: Apache-2.0
#include "bench/session/pair_turns.h"

enum { PATIENCE = 4 }; // times the samples requested, while too many are disturbed

int pair_turn_meet(struct session *s, const struct turn *turn, int outcome, struct err *err)
{
    if (outcome < 0)
        board_fault(s->board, s->comm->rank, err);
    return turns_meet(s->board, s->comm->rank, turn->peer, outcome);
}

int pair_clean(const struct session *s, const struct turn *turn, int n)
{
    const unsigned char *ours = s->slot->flags, *theirs = s->board->slot[turn->peer].flags;
    int clean = 0;
    for (int i = 0; i < n; i++)
        clean += !(ours[i] | theirs[i]);
    return clean;
}

int pair_samples(const struct session *s, const struct turn *turn, int n, int wanted)
{
    int most = wanted < SLOT_FLAGS / PATIENCE ? PATIENCE * wanted : SLOT_FLAGS;
    int more = wanted - pair_clean(s, turn, n);
    return n + more < most ? n + more : most;
}

static void take_turn(struct session *s, const struct pair_work *work, const struct turn *turn)
{
    struct err err = {0};
    if (work->measure(work->context, turn, &err) < 0)
        board_fault(s->board, s->comm->rank, &err); // the first fault counts, maybe the peer's
    turns_done(s->board);
}

static void serve_turns(struct session *s, const struct pair_work *work)
{
    struct turn turn;
    while (turns_await(s->board, s->comm->rank, &turn))
        take_turn(s, work, &turn);
}

// --- Rank 0 --------------------------------------------------------------------------------------

struct pair_progress {
    double done, whole, told;
};

static double cost_of(const struct pair_work *work, int stage)
{
    return work->cost ? work->cost(work->context, stage) : 1;
}

static struct pair_progress progress_begin(const struct pair_work *work)
{
    struct pair_progress p = {0};
    for (int stage = 0; stage < work->n_stages; stage++)
        p.whole += cost_of(work, stage) * work->n_pairs * work->visits;
    return p;
}

// A record for each step that a reader can see, however many turns there are.
static int progress_add(struct session *s, struct pair_progress *p, double cost, struct err *err)
{
    static const double step = 0.001;
    p->done += cost;
    if (p->done - p->told < step * p->whole && p->done < p->whole)
        return 0;
    p->told = p->done;
    return session_progress(s, PHASE_MEASURE, p->done / p->whole, err);
}

// The two ranks have their turn; rank 0 takes part itself where it is one of them.
static int pair_turn_call(struct session *s, const struct pair_work *work, const int ends[2],
                          int stage, int visit)
{
    struct turn turn;
    turns_call(s->board, ends, stage, visit);
    if (ends[0] == s->comm->rank || ends[1] == s->comm->rank) {
        turns_await(s->board, s->comm->rank, &turn);
        take_turn(s, work, &turn);
    }
    turns_wait(s->board);
    return board_faulty(s->board) ? -1 : 0;
}

static int pair_turns_visit(struct session *s, const struct pair_work *work, int visit,
                            struct pair_progress *progress, struct err *err)
{
    bool last = visit == work->visits - 1;
    for (int pair = 0; pair < work->n_pairs; pair++)
        for (int stage = 0; stage < work->n_stages; stage++)
            if (pair_turn_call(s, work, work->pairs[pair], stage, visit) < 0 ||
                (last && work->report(work->context, pair, stage, err) < 0) ||
                progress_add(s, progress, cost_of(work, stage), err) < 0)
                return -1;
    return 0;
}

static void lead_turns(struct session *s, const struct pair_work *work)
{
    struct err err = {0};
    struct pair_progress progress = progress_begin(work);
    int outcome = 0;
    for (int visit = 0; outcome == 0 && visit < work->visits; visit++)
        outcome = pair_turns_visit(s, work, visit, &progress, &err);
    if (outcome < 0)
        board_fault(s->board, s->comm->rank, &err); // unless a turn's failure is there already
    turns_end(s->board, session_ranks(s));
}

int pair_turns_run(struct session *s, const struct pair_work *work, struct err *err)
{
    if (session_is_rank0(s))
        lead_turns(s, work);
    serve_turns(s, work);
    return session_meet(s, 0, err);
}
