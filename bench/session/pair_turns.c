// SPDX-License-Identifier: Apache-2.0
// Every rank but rank 0 serves turns until there are no more. Rank 0 chooses for each stage how
// many pairs are measured at a time, then leads the rounds of all visits. A failure ends the
// rounds; all ranks learn of it at the meeting behind the last turn.
#include "bench/session/pair_turns.h"

#include <math.h>
#include <stdio.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/str.h"
#include "bench/session/pair_order.h"
#include "bench/session/pairs.h"
#include "model/method.h"

enum {
    STAGES_MAX = 48, // sizes of messages
    CLOCK_TURNS = 8, // of a rank: its clock is read after each; there may be thousands
};

int pair_turn_meet(struct session *s, const struct turn *turn, int outcome, struct err *err)
{
    if (outcome < 0)
        board_fault(s->board, s->comm->rank, err);
    return turns_meet(s->board, s->comm->rank, turn->peer, outcome);
}

bool pair_last_visit(const struct session *s, const struct turn *turn)
{
    return turn->visit < 0 || turn->visit == s->spec->visits - 1;
}

// Samples that disturbed neither rank.
static int pair_clean(const struct session *s, const struct turn *turn, int n)
{
    const unsigned char *ours = s->slot->flags, *theirs = s->board->slot[turn->peer].flags;
    int clean = 0;
    for (int i = 0; i < n; i++)
        clean += !(ours[i] | theirs[i]);
    return clean;
}

int pair_samples(const struct session *s, const struct turn *turn, int n, int wanted)
{
    int most = wanted < SLOT_FLAGS / PAIR_PATIENCE ? PAIR_PATIENCE * wanted : SLOT_FLAGS;
    int more = wanted - pair_clean(s, turn, n);
    return n + more < most ? n + more : most;
}

static void take_turn(struct session *s, const struct pair_work *work, const struct turn *turn)
{
    struct err err = {0};
    if (work->measure(work->context, turn, &err) < 0)
        board_fault(s->board, s->comm->rank, &err); // the first fault counts, maybe the peer's
    if (s->slot->cycle.n < CLOCK_TURNS)
        reference_clock_take(&s->slot->cycle);
    turns_done(s->board);
}

static void serve_turns(struct session *s, const struct pair_work *work)
{
    struct turn turn;
    while (turns_await(s->board, s->comm->rank, &turn))
        take_turn(s, work, &turn);
}

// --- Rank 0: rounds ------------------------------------------------------------------------------

// Which pairs are measured at a time, from the most to one. No two of them share a core, or a
// last-level cache.
enum level { LEVEL_ALL, LEVEL_LLC, LEVEL_ONE, LEVELS };

struct lead {
    struct session *s;
    const struct pair_work *work;
    struct pair_rounds rounds[LEVELS]; // made when needed; owned
    enum level levels[STAGES_MAX];     // of each stage
    double turn_s[STAGES_MAX];         // of each stage: the slowest control pair alone; 0: none
    uint64_t controls_end_ns;          // when control pairs must have ended; 0: no time limit
    bool controls_late;                // some did not fit
    int controls_percent;              // of the control pairs, as it was reported
    double done, whole, told;          // progress
    int64_t called;                    // rounds, each once a visit
};

static void lead_fini(struct lead *l)
{
    for (int i = 0; i < LEVELS; i++)
        pair_rounds_fini(&l->rounds[i]);
}

static int lead_domain(const struct lead *l, enum level level, int rank)
{
    const struct cpu_place *p = &l->s->board->slot[rank].cpu_place;
    return level == LEVEL_ALL ? p->core : level == LEVEL_LLC ? p->llc : 0;
}

// Some of all pairs: first one of each class.
static int lead_choose_pairs(struct lead *l, struct pair_rounds *r, const int *domain,
                             struct err *err)
{
    CLEANUP_MEM int(*first)[2] = NULL;
    int n = 0;
    return pair_list(l->s, "classes", &first, &n, err) < 0
               ? -1
               : pair_order_make(r, (const int(*)[2])first, n, domain, session_ranks(l->s),
                                 (int)l->s->spec->pairs_most, err);
}

static int lead_make_rounds(struct lead *l, enum level level, struct err *err)
{
    int domain[SPEC_RANKS_MAX], ranks = session_ranks(l->s);
    struct pair_rounds *r = &l->rounds[level];
    if (r->pairs)
        return 0;
    if (l->work->pairs)
        return pair_rounds_list(r, l->work->pairs, l->work->n_pairs, err);
    for (int i = 0; i < ranks; i++)
        domain[i] = 1 + lead_domain(l, level, i); // all that are not known are one
    if (pairs_chosen(l->s))
        return lead_choose_pairs(l, r, domain, err);
    return pair_rounds_all(r, domain, ranks, err);
}

// The pairs have their turns at the same time; rank 0 takes part itself where it is in one.
static int call_pairs(struct lead *l, const int (*pairs)[2], int n, int stage, int visit)
{
    struct session *s = l->s;
    struct turn turn;
    bool ours = false;
    for (int i = 0; i < n; i++) {
        turns_call(s->board, pairs[i], stage, visit);
        ours |= pairs[i][0] == s->comm->rank || pairs[i][1] == s->comm->rank;
    }
    if (ours) {
        turns_await(s->board, s->comm->rank, &turn);
        take_turn(s, l->work, &turn);
    }
    turns_wait(s->board);
    return board_faulty(s->board) ? -1 : 0;
}

static double cost_of(const struct pair_work *work, int stage)
{
    return work->cost ? work->cost(work->context, stage) : 1;
}

// A record for each step that a reader can see, however many turns there are.
static int progress_add(struct lead *l, double cost, struct err *err)
{
    static const double step = 0.001;
    l->done += cost;
    if (l->done - l->told < step * l->whole && l->done < l->whole)
        return 0;
    l->told = l->done;
    return session_progress(l->s, PHASE_MEASURE, l->done / l->whole, err);
}

static int lead_round(struct lead *l, const struct pair_rounds *r, int round, int stage, int visit,
                      struct err *err)
{
    const struct pair_work *work = l->work;
    bool ends = visit == work->visits - 1 || visit == VISIT_SUM_UP;
    if (call_pairs(l, r->pairs + r->begin[round], pair_rounds_width(r, round), stage, visit) < 0)
        return -1;
    for (int p = r->begin[round]; ends && p < r->begin[round + 1]; p++)
        if (work->report(work->context, p, r->pairs[p], stage, err) < 0)
            return -1;
    return visit == VISIT_SUM_UP ? 0 : progress_add(l, cost_of(work, stage), err);
}

// --- Rank 0: control pairs -----------------------------------------------------------------------

static const double COST_LIMIT = 0.02;    // of the time that a pair takes alone
static const double CONTROLS_PART = 0.25; // of the budget or the time limit, at most

struct control {
    int first, second, others, shape; // of the worst
    double alone, with_others, cost;  // medians; share of the time alone
};

// Of each class the pair that has the most company.
static int control_pairs(const struct lead *l, const struct pair_rounds *r, int *pairs)
{
    int widest[PAIR_CLASSES] = {0}, of[PAIR_CLASSES], n = 0;
    for (int p = 0; p < r->n_pairs; p++) {
        const struct slot *slot = l->s->board->slot;
        enum pair_class class =
            pair_class_of(&slot[r->pairs[p][0]].cpu_place, &slot[r->pairs[p][1]].cpu_place);
        int width = pair_rounds_width(r, pair_rounds_of(r, p));
        if (width <= 1 || width <= widest[class])
            continue;
        widest[class] = width;
        of[class] = p;
    }
    for (int class = 0; class < PAIR_CLASSES; class ++)
        if (widest[class])
            pairs[n++] = of[class];
    return n;
}

struct control_values {
    double alone[SLOT_CELLS][CONTROL_REPEATS], with_others[SLOT_CELLS][CONTROL_REPEATS];
};

static void control_take(const struct lead *l, int rank, double values[][CONTROL_REPEATS], int i)
{
    for (int cell = 0; cell < l->work->n_cells; cell++)
        values[cell][i] = l->s->board->slot[rank].cells[cell].v[CELL_MEDIAN];
}

static int control_alone(struct lead *l, const struct pair_rounds *r, int pair, int stage,
                         double *took_s)
{
    uint64_t begin = clock_mono_ns();
    int outcome = call_pairs(l, &r->pairs[pair], 1, stage, VISIT_CONTROL);
    *took_s = session_ms_since(begin) / 1e3;
    return outcome;
}

// Of the control pairs of a stage and level, the one that is measured.
struct control_turn {
    int stage;
    enum level level;
    int nth, of;
};

// Measuring needs the rest of the time limit.
static void controls_begin(struct lead *l)
{
    double room = time_limit_room_s(&l->s->limit, clock_mono_ns());
    if (isfinite(room))
        l->controls_end_ns = clock_mono_ns() + (uint64_t)(1e9 * CONTROLS_PART * room);
}

// Would two further turns of `took_s` seconds end too late?
static bool controls_are_late(struct lead *l, double took_s)
{
    double end = (double)clock_mono_ns() + 2e9 * took_s;
    l->controls_late = l->controls_end_ns && end > (double)l->controls_end_ns;
    return l->controls_late;
}

// `share`: of the turns of this control pair. Each stage may try all levels but the last.
static int controls_progress(struct lead *l, const struct control_turn *t, double share,
                             struct err *err)
{
    double of_level = (t->nth + share) / t->of, of_stage = (t->level + of_level) / LEVEL_ONE;
    int percent = (int)(100 * (t->stage + of_stage) / l->work->n_stages);
    if (percent <= l->controls_percent)
        return 0;
    l->controls_percent = percent;
    return emit_controls(l->s->emit, percent, err);
}

static void control_judge(const struct lead *l, const struct control *of, int stage,
                          struct control_values *v, struct control *worst)
{
    for (int cell = 0; cell < l->work->n_cells; cell++) {
        struct control c = *of;
        c.shape = stage * l->work->n_cells + cell;
        c.alone = middle_of(v->alone[cell], CONTROL_REPEATS);
        c.with_others = middle_of(v->with_others[cell], CONTROL_REPEATS);
        c.cost = c.with_others / c.alone - 1;
        if (fabs(c.cost) >= fabs(worst->cost))
            *worst = c;
    }
}

// One control pair, alone and with the others of its round in turns. 1: done; 0: the time limit has
// no room for it; -1: failed.
static int control_measure(struct lead *l, const struct control_turn *t, int pair,
                           struct control *worst, struct err *err)
{
    struct control_values v;
    double took_s[CONTROL_REPEATS];
    const struct pair_rounds *r = &l->rounds[t->level];
    int round = pair_rounds_of(r, pair), width = pair_rounds_width(r, round), i = 0;
    const int *ends = r->pairs[pair];
    for (; i < CONTROL_REPEATS && !(i && controls_are_late(l, took_s[i - 1])); i++) {
        if (control_alone(l, r, pair, t->stage, &took_s[i]) < 0)
            return -1;
        control_take(l, ends[0], v.alone, i);
        if (call_pairs(l, r->pairs + r->begin[round], width, t->stage, VISIT_CONTROL) < 0)
            return -1;
        control_take(l, ends[0], v.with_others, i);
        if (controls_progress(l, t, (i + 1.0) / CONTROL_REPEATS, err) < 0)
            return -1;
    }
    l->turn_s[t->stage] = fmax(l->turn_s[t->stage], middle_of(took_s, i));
    if (i < CONTROL_REPEATS)
        return 0;
    const struct control of = {.first = ends[0], .second = ends[1], .others = width - 1};
    control_judge(l, &of, t->stage, &v, worst);
    return 1;
}

static double budget_left_s(const struct session *s)
{
    uint64_t now = clock_mono_ns();
    return s->limit.budget_ns > now ? (double)(s->limit.budget_ns - now) / 1e9 : 0;
}

// Of one turn of each, before they are measured: the time of all of them would be no part of a
// budget that other pairs can spare. 1: they fit; 0: they do not; -1: failed.
static int controls_fit(struct lead *l, const struct pair_rounds *r, const int *pairs, int n,
                        int stage)
{
    double left = CONTROLS_PART * budget_left_s(l->s), all = 0, took;
    if (!l->s->limit.budget_ns)
        return 1;
    for (int i = 0; i < n && all <= left; i++) {
        if (control_alone(l, r, pairs[i], stage, &took) < 0)
            return -1;
        l->turn_s[stage] = fmax(l->turn_s[stage], took);
        all += 2 * CONTROL_REPEATS * took;
    }
    return all <= left;
}

static int note_no_controls(struct lead *l, const char *shape, const char *many, struct err *err)
{
    char of[64] = "time limit";
    if (!l->controls_late)
        snprintf(of, sizeof of, "budget of %lld s", (long long)l->s->spec->budget_s);
    return session_note(l->s, err, CONDITION_CONCURRENT_PAIRS, -1,
                        "%s: %s; control pairs would take too much of the %s", shape, many, of);
}

static int control_note(struct lead *l, enum level level, const struct control *c, bool requested,
                        struct err *err)
{
    char many[64] = "one pair at a time";
    const struct shape *shape = &l->work->shapes[c->shape];
    if (l->rounds[level].widest > 1)
        snprintf(many, sizeof many, "up to %d pairs at a time%s", l->rounds[level].widest,
                 requested ? ", as requested" : "");
    if (!c->others)
        return note_no_controls(l, shape->name, many, err);
    return session_note(l->s, err, CONDITION_CONCURRENT_PAIRS, -1,
                        "%s: %s; control pair %d-%d: %s %s alone, %s %s while %d other pairs "
                        "were measured (%+.1f %%, limit %.0f %%)",
                        shape->name, many, c->first, c->second, FIGURES(c->alone), shape->unit,
                        FIGURES(c->with_others), shape->unit, c->others, 100 * c->cost,
                        100 * COST_LIMIT);
}

// 1: pairs of this level do not disturb each other; 0: they do, or it is not known; -1: failed.
static int level_holds(struct lead *l, enum level level, int stage, struct control *worst,
                       struct err *err)
{
    int pairs[PAIR_CLASSES];
    if (lead_make_rounds(l, level, err) < 0)
        return -1;
    int n = control_pairs(l, &l->rounds[level], pairs);
    if (!n)
        return 1; // one pair at a time: what the level before it showed is the reason
    *worst = (struct control){.shape = stage * l->work->n_cells};
    int fit = controls_fit(l, &l->rounds[level], pairs, n, stage);
    if (fit <= 0)
        return fit;
    l->turn_s[stage] = 0; // that was the first turn of each
    for (int i = 0; i < n; i++) {
        const struct control_turn t = {stage, level, i, n};
        int done = control_measure(l, &t, pairs[i], worst, err);
        if (done <= 0) {
            worst->others = 0;
            return done;
        }
    }
    return fabs(worst->cost) < COST_LIMIT;
}

// Where a level has one pair a round there is nothing to control.
static int choose_level(struct lead *l, int stage, struct err *err)
{
    static const enum level wanted[] = {[CONCURRENT_PAIRS_AUTO] = LEVEL_ALL,
                                        [CONCURRENT_PAIRS_ONE] = LEVEL_ONE,
                                        [CONCURRENT_PAIRS_LLC] = LEVEL_LLC,
                                        [CONCURRENT_PAIRS_ALL] = LEVEL_ALL};
    int choice = l->s->spec->concurrent_pairs, level = wanted[choice];
    bool fixed = choice != CONCURRENT_PAIRS_AUTO;
    struct control worst = {.shape = -1}; // nothing to control
    if (l->work->pairs)
        level = LEVEL_ONE;
    // The next level has control pairs too: where there is no time for these, there is none for
    // them.
    for (; level < LEVEL_ONE; level = worst.others ? level + 1 : LEVEL_ONE) {
        int holds = level_holds(l, (enum level)level, stage, &worst, err);
        if (holds < 0)
            return -1;
        if (holds || fixed)
            break;
    }
    l->levels[stage] = (enum level)level;
    if (lead_make_rounds(l, l->levels[stage], err) < 0)
        return -1;
    return worst.shape >= 0 ? control_note(l, l->levels[stage], &worst, fixed, err) : 0;
}

// --- Rank 0: pairs for which a budget has room ---------------------------------------------------

// One visit of all pairs, by what control pairs took; 0: there were none.
static double visit_s(const struct lead *l)
{
    double sum = 0;
    for (int stage = 0; stage < l->work->n_stages; stage++)
        sum += l->turn_s[stage] * l->rounds[l->levels[stage]].n_rounds;
    return sum;
}

// A pair has the visits of the least effort at least, or as many as were requested.
static double least_visits(const struct session *s)
{
    struct spec quick = *s->spec;
    spec_quick(&quick);
    return (double)(quick.visits < s->spec->visits ? quick.visits : s->spec->visits);
}

static int note_fewer(struct lead *l, int64_t most, int64_t planned, double visit, struct err *err)
{
    int64_t ranks = session_ranks(l->s);
    if (emit_pairs(l->s->emit, most, err) < 0)
        return -1;
    return session_note(l->s, err, CONDITION_BUDGET, -1,
                        "%lld of %lld pairs were measured: a visit of %lld takes %.3g s, by what "
                        "control pairs took, and the budget of %lld s has no room for so many",
                        (long long)most, (long long)(ranks * (ranks - 1) / 2), (long long)planned,
                        visit, (long long)l->s->spec->budget_s);
}

// The estimate of the plan counts with company, and cannot know what the control pairs show.
static int choose_fewer(struct lead *l, struct err *err)
{
    struct session *s = l->s;
    int64_t planned = l->rounds[l->levels[0]].n_pairs, least = spec_fewest_pairs(session_ranks(s));
    double visit = visit_s(l);
    if (!s->limit.budget_ns || l->work->pairs)
        return 0;
    int64_t most = pairs_that_fit(planned, least, visit, least_visits(s), budget_left_s(s));
    if (most == planned)
        return 0;
    s->board->pairs_most = most;
    for (int i = 0; i < LEVELS; i++)
        pair_rounds_fini(&l->rounds[i]);
    return note_fewer(l, most, planned, visit, err);
}

// --- The whole -----------------------------------------------------------------------------------

static int lead_visit(struct lead *l, int visit, struct err *err)
{
    for (int stage = 0; stage < l->work->n_stages; stage++) {
        const struct pair_rounds *r = &l->rounds[l->levels[stage]];
        for (int round = 0; round < r->n_rounds && !session_must_stop(l->s); round++) {
            if (lead_round(l, r, round, stage, visit, err) < 0)
                return -1;
            l->called++;
        }
    }
    return 0;
}

// The time limit ended the visits: reports the rounds that had at least one, but not the last.
static int lead_sum_up(struct lead *l, struct err *err)
{
    int64_t at = 0, of_visit = 0;
    for (int stage = 0; stage < l->work->n_stages; stage++)
        of_visit += l->rounds[l->levels[stage]].n_rounds;
    int64_t reported = l->called - of_visit * (l->work->visits - 1);
    for (int stage = 0; stage < l->work->n_stages; stage++) {
        const struct pair_rounds *r = &l->rounds[l->levels[stage]];
        for (int round = 0; round < r->n_rounds; round++, at++)
            if (at < l->called && at >= reported &&
                lead_round(l, r, round, stage, VISIT_SUM_UP, err) < 0)
                return -1;
    }
    return 0;
}

static int note_no_room(struct lead *l, double whole, double room, double visit, struct err *err)
{
    struct session *s = l->s;
    const char *left_out = room >= visit ? "it leaves out repetitions" : "some pairs are left out";
    return session_note(s, err, CONDITION_TIME_LIMIT, -1,
                        "%d repetition%s of all pairs take about %.3g s, by what control pairs "
                        "took, and the time limit has room for %.3g s: %s. Raise the limit, or "
                        "set a budget, which chooses pairs",
                        l->work->visits, str_plural(l->work->visits), whole, room, left_out);
}

// The estimate of the plan counts with company: here it is known how many pairs are measured at a
// time, so the time left is reported before the first of many steps.
static int lead_expect(struct lead *l, struct err *err)
{
    static const double certain = 1.1; // control pairs are slow in one of some runs
    double visit = visit_s(l), whole = visit * l->work->visits;
    double room = time_limit_room_s(&l->s->limit, clock_mono_ns());
    l->s->limit.expected_s = whole;
    if (whole > certain * room && note_no_room(l, whole, room, visit, err) < 0)
        return -1;
    return whole > 0 ? session_progress(l->s, PHASE_MEASURE, 0, err) : 0;
}

static int lead_visits(struct lead *l, struct err *err)
{
    const struct pair_work *work = l->work;
    for (int stage = 0; stage < work->n_stages; stage++) {
        if (lead_make_rounds(l, l->levels[stage], err) < 0) // those that were chosen last
            return -1;
        l->whole += cost_of(work, stage) * l->rounds[l->levels[stage]].n_rounds * work->visits;
    }
    if (lead_expect(l, err) < 0)
        return -1;
    for (int visit = 0; visit < work->visits && !session_must_stop(l->s); visit++)
        if (lead_visit(l, visit, err) < 0)
            return -1;
    return session_must_stop(l->s) ? lead_sum_up(l, err) : 0;
}

static int lead_controls(struct lead *l, struct err *err)
{
    controls_begin(l);
    for (int stage = 0; stage < l->work->n_stages; stage++)
        if (choose_level(l, stage, err) < 0)
            return -1;
    if (l->controls_percent && l->controls_percent < 100 && emit_controls(l->s->emit, 100, err) < 0)
        return -1;
    return choose_fewer(l, err);
}

// Rank 0 leads, and the others serve it until it has ended.
static int pair_turns_part(struct lead *l, int (*lead)(struct lead *l, struct err *err),
                           struct err *err)
{
    struct session *s = l->s;
    struct err failure = {0};
    if (session_is_rank0(s)) {
        if (lead(l, &failure) < 0) // a turn's failure is there already and counts
            board_fault(s->board, s->comm->rank, &failure);
        turns_end(s->board, session_ranks(s));
    }
    serve_turns(s, l->work);
    return session_meet(s, 0, err);
}

int pair_turns_run(struct session *s, const struct pair_work *work, struct err *err)
{
    struct lead l CLEANUP(lead_fini) = {.s = s, .work = work};
    if (pair_turns_part(&l, lead_controls, err) < 0)
        return -1;
    session_take_pairs(s);
    return work->announce(work->context, err) < 0 ? -1 : pair_turns_part(&l, lead_visits, err);
}
