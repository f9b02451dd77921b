// SPDX-License-Identifier: Apache-2.0
// Turns of pairs with ranks that are threads: who decides how many are measured, and that all ranks
// know it before the matrices are announced.
#include "bench/session/pair_turns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/session/pairs.h"
#include "tests/unit/tap.h"

enum { RANKS = 8, PAIRS = RANKS * (RANKS - 1) / 2, VISITS = 2, HOUR_S = 3600 };

static const struct shape shape = {"cas", "round_trip", "ns", "rank", "rank"};

static struct scene {
    bool company_disturbs, fails;
    double room_s;  // of the budget
    double limit_s; // the time limit; 0: none
} scene;

static atomic_int reported[RANKS][RANKS], visited[RANKS][RANKS];
static atomic_int control_turns;
static atomic_int announced; // ranks that knew how many pairs there are

struct rank {
    pthread_t thread;
    struct comm comm;
    struct session session;
    struct emit emit;
    int control_turns, outcome;
    struct err err;
};

// One class of pairs and one cache: control pairs follow each other alone and with others, and a
// rank that begins one has no other control turns.
static int rank_measure(void *context, const struct turn *turn, struct err *err)
{
    struct rank *r = context;
    bool company = turn->visit == VISIT_CONTROL && r->control_turns++ % 2;
    control_turns += turn->visit == VISIT_CONTROL;
    r->session.slot->cells[0].v[CELL_MEDIAN] = company && scene.company_disturbs ? 2 : 1;
    if (turn->visit >= 0 && turn->first)
        visited[r->comm.rank][turn->peer]++;
    return pair_turn_meet(&r->session, turn, 0, err);
}

static int rank_report(void *context, int index, const int ends[2], int stage, struct err *err)
{
    (void)context, (void)index, (void)stage, (void)err;
    reported[ends[0]][ends[1]]++;
    return 0;
}

static int rank_announce(void *context, struct err *err)
{
    struct rank *r = context;
    bool fails = scene.fails && r->comm.rank == RANKS - 1;
    announced += pairs_chosen(&r->session);
    time_limit_begin(&r->session.limit, clock_mono_ns());
    return session_meet(&r->session, fails ? err_set(err, ERR_NO_MEMORY, "", "none left") : 0, err);
}

static void *run(void *context)
{
    struct rank *r = context;
    const struct pair_work work = {.context = r,
                                   .n_stages = 1,
                                   .n_cells = 1,
                                   .shapes = &shape,
                                   .visits = VISITS,
                                   .announce = rank_announce,
                                   .measure = rank_measure,
                                   .report = rank_report};
    r->outcome = pair_turns_run(&r->session, &work, &r->err);
    return NULL;
}

static void rank_begin(struct rank *r, int n, struct board *board, const struct spec *spec,
                       const struct options *o)
{
    static const struct comm_ops ops = {.name = "threads"};
    struct slot *slot = &board->slot[n];
    slot->cpu_place = (struct cpu_place){.core = n};
    r->comm = (struct comm){.ops = &ops, .rank = n, .size = RANKS, .board = board};
    r->session = (struct session){.comm = &r->comm, .board = board, .slot = slot, .spec = spec};
    if (n == 0 && emit_open(&r->emit, o, &r->err) == 0)
        r->session.emit = &r->emit;
    r->session.limit.budget_ns =
        spec->budget_s ? clock_mono_ns() + (uint64_t)(1e9 * scene.room_s) : 0;
    r->session.limit.end_ns =
        scene.limit_s > 0 ? clock_mono_ns() + (uint64_t)(1e9 * scene.limit_s) : 0;
}

// Returns the outcome of all ranks; `records` is what rank 0 reported.
static int play(struct scene played, const struct spec *spec, struct buf *records)
{
    CLEANUP_MEM struct board *board = calloc(1, board_bytes(RANKS));
    CLEANUP_MEM struct rank *ranks = calloc(RANKS, sizeof *ranks);
    struct options o = {.spec = *spec};
    char line[4096];
    scene = played;
    snprintf(o.channel, sizeof o.channel, "/tmp/numaprobe-turns-XXXXXX");
    int fd = mkstemp(o.channel), outcome = 0;
    if (!board || !ranks || fd < 0)
        abort();
    memset(reported, 0, sizeof reported);
    memset(visited, 0, sizeof visited);
    announced = control_turns = 0;
    for (int i = 0; i < RANKS; i++)
        rank_begin(&ranks[i], i, board, spec, &o);
    for (int i = 0; i < RANKS; i++)
        pthread_create(&ranks[i].thread, NULL, run, &ranks[i]);
    for (int i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        outcome += ranks[i].outcome;
    }
    buf_reset(records);
    for (ssize_t n; (n = read(fd, line, sizeof line)) > 0;)
        buf_add(records, line, (size_t)n);
    emit_fini(&ranks[0].emit);
    close(fd);
    unlink(o.channel);
    return outcome;
}

// Pairs that were reported, each once and after all its visits; -1: one was not.
static int pairs_seen(void)
{
    int n = 0;
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++) {
            if (reported[a][b] > 1 || visited[a][b] != VISITS * reported[a][b])
                return -1;
            n += reported[a][b];
        }
    return n;
}

static void budgets(void)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    struct spec spec;
    spec_init(&spec, BENCHMARK_C2C);
    spec.visits = VISITS;
    CHECK(play((struct scene){.company_disturbs = true}, &spec, &said) == 0 &&
              pairs_seen() == PAIRS && !announced,
          "without a budget all pairs are measured");
    CHECK(strstr(buf_text(&said), "cas: one pair at a time; control pair 0-7: 1 ns alone, 2 ns "),
          "one at a time, where company disturbs");
    spec.budget_s = 10;
    CHECK(play((struct scene){true, false, HOUR_S}, &spec, &said) == 0 && pairs_seen() == PAIRS &&
              !announced && !strstr(buf_text(&said), "\"pairs\""),
          "a budget with room leaves none out");
    CHECK(play((struct scene){.company_disturbs = true}, &spec, &said) == 0 &&
              pairs_seen() == RANKS && announced == RANKS,
          "one without room leaves the fewest, and all ranks know it");
    CHECK(
        control_turns == 2 &&
            strstr(buf_text(&said), "cas: one pair at a time; control pairs would take too much "),
        "nor does it leave room for control pairs: %d turns", (int)control_turns);
    CHECK(strstr(buf_text(&said), "{\"rec\":\"pairs\",\"most\":8}") &&
              strstr(buf_text(&said), "8 of 28 pairs were measured: a visit of 28 takes "),
          "and so does the reader");
    spec.pairs_most = 16;
    CHECK(play((struct scene){.room_s = 0}, &spec, &said) == 0 && pairs_seen() == RANKS &&
              strstr(buf_text(&said), "a visit of 16 takes "),
          "also of those that were chosen, and where company does not disturb");
    snprintf(spec.pairs, sizeof spec.pairs, "all");
    CHECK(play((struct scene){.fails = true}, &spec, &said) == -RANKS,
          "who cannot announce ends all ranks");
}

// The time that control pairs have shown is reported before the first turn that counts.
static void time_limits(void)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    struct spec spec;
    spec_init(&spec, BENCHMARK_C2C);
    spec.visits = VISITS;
    CHECK(play((struct scene){.company_disturbs = true, .limit_s = HOUR_S}, &spec, &said) == 0 &&
              pairs_seen() == PAIRS && !strstr(buf_text(&said), "time_limit"),
          "a time limit with room is not named");
    int percent = 0;
    const char *control = strstr(buf_text(&said), "\"phase\":\"control pairs\"");
    for (const char *at = control; at; at = strstr(at + 1, "\"phase\":\"control pairs\"")) {
        int now = -1;
        CHECK(sscanf(at, "\"phase\":\"control pairs\",\"done\":%d,\"total\":100,\"eta_ms\":-1",
                     &now) == 1 &&
                  now > percent && now <= 100,
              "control pairs have progress: %d %% after %d %%", now, percent);
        percent = now;
    }
    CHECK_INT(percent, 100, "to their end");
    const char *first = strstr(buf_text(&said), "\"phase\":\"measure\"");
    CHECK(control && control < first, "which comes before that of measuring");
    CHECK(first && !strstr(first, "\"eta_ms\":-1") && strstr(first, "\"done\":0,"),
          "and the first progress has the time left: %.80s", first ? first : "none");
    CHECK(play((struct scene){.company_disturbs = true, .limit_s = 1e-9}, &spec, &said) == 0 &&
              strstr(buf_text(&said), "2 repetitions of all pairs take about ") &&
              strstr(buf_text(&said), ": some pairs are left out. Raise the limit"),
          "one without room is, at once");
    CHECK(strstr(buf_text(&said), "\"time_limit\"") < strstr(buf_text(&said), "\"measure\""),
          "before the first progress of measuring, so that who follows the run sees it");
    CHECK(strstr(buf_text(&said),
                 "one pair at a time; control pairs would take too much of the time "
                 "limit") &&
              control_turns == 2 + RANKS,
          "nor does it leave room for control pairs: %d turns", (int)control_turns);
}

static void arithmetic(void)
{
    static const struct {
        int64_t all, least;
        double visit_s, visits, room_s;
        int64_t most;
    } of[] = {
        {28, 8, 1, 4, 4, 28},         {28, 8, 1, 4, 3.9, 16}, {28, 8, 1, 4, 1.2, 8},
        {28, 8, 1, 4, 0, 8},          {28, 8, 0, 4, 0, 28},   {32, 8, 1, 4, 3.9, 16},
        {6, 8, 1, 4, 0, 6},           {1, 5, 1, 4, 0, 1},     {130816, 512, 523, 4, 60, 2048},
        {18336, 192, 73, 2, 9, 1024},
    };
    for (size_t i = 0; i < COUNT_OF(of); i++)
        CHECK_INT(pairs_that_fit(of[i].all, of[i].least, of[i].visit_s, of[i].visits, of[i].room_s),
                  of[i].most, "%d pairs, %g visits of %g s, %g s left", (int)of[i].all,
                  of[i].visits, of[i].visit_s, of[i].room_s);
}

int main(void)
{
    arithmetic();
    budgets();
    time_limits();
    return tap_done();
}
