// SPDX-License-Identifier: Apache-2.0
// Counters that a script plays: this machine may have none.
#include "bench/sampling/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdlib.h>

#include "bench/sampling/sampler.h"
#include "bench/session/proofs.h"
#include "tests/unit/tap.h"

static struct {
    uint64_t lacks;       // type of events that the CPU does not have, plus 1
    int fails;            // errno of the first
    int opened, readings; // so far
    double hop[COUNTERS]; // of each event
    uint64_t step;        // hops between readings
    bool half;            // the group has the counters half of the time
} script;

static int scripted_open(struct perf_event_attr *event, int group)
{
    bool user = event->exclude_kernel && event->exclude_hv;
    errno = script.fails ? script.fails : !user ? EACCES : ENOENT;
    if (script.fails || !user || (script.lacks && event->type + 1 == script.lacks) ||
        (group < 0) != (script.opened == 0))
        return -1;
    script.opened++;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

// What the events that are open have counted after another `step` hops.
static ssize_t scripted_read(int fd, void *to, size_t bytes)
{
    uint64_t *group = to;
    (void)fd;
    uint64_t hops = ++script.readings * script.step;
    group[0] = (uint64_t)script.opened;
    group[1] = 1000 * (uint64_t)script.readings;
    group[2] = script.half ? group[1] / 2 : group[1];
    for (int i = 0; i < script.opened; i++)
        group[3 + i] = (uint64_t)((double)hops * script.hop[i]) / (script.half ? 2 : 1);
    return (ssize_t)bytes;
}

static const struct counter_calls scripted = {scripted_open, scripted_read};

static void play(double cycles, double instructions, double misses, double walks)
{
    script.lacks = 0;
    script.fails = script.opened = script.readings = 0;
    script.half = false;
    script.step = 100000;
    script.hop[0] = cycles;
    script.hop[1] = instructions;
    script.hop[2] = misses;
    script.hop[3] = walks;
}

// A cell of some samples of 100 ns a hop, as the sampler counts them.
static struct cell count_cell(void)
{
    struct counters c;
    struct cell_sum sum = {0};
    struct cell cell;
    struct spec spec = {.min_samples = 5};
    struct err err = {0};
    struct evidence evidence;
    counters_open(&c, &scripted);
    for (int i = 0; i < 6; i++) {
        struct counts from = counters_read(&c), to = counters_read(&c);
        struct sample x = {.hop_ns = 100,
                           .counts = counts_between(&from, &to),
                           .hops = c.n ? (double)script.step : 0,
                           .verdict.flags = i == 2 ? GUARD_MOVED : 0};
        x.counts.v[COUNTER_MISSES] += i == 2 ? 1e9 : 0; // of a sample that does not count
        if (cell_sum_add(&sum, &x, &err) < 0)
            abort();
    }
    CHECK(cell_sum_up(&sum, &spec, &cell, &evidence, &err) == 0 && evidence.clean == 5, "a cell %s",
          err.text);
    cell_sum_fini(&sum);
    counters_close(&c);
    return cell;
}

static void refused(void)
{
    static const int reasons[] = {ENOENT, EACCES, EPERM, ENOSYS};
    for (int i = 0; i < 4; i++) {
        struct counters c;
        play(360, 1.03, 1, 0.1);
        script.fails = reasons[i];
        CHECK(counters_open(&c, &scripted) == 0 && isnan(counters_read(&c).v[COUNTER_CYCLES]),
              "%s: nothing is counted, and nothing fails", strerror(reasons[i]));
        counters_close(&c);
        play(360, 1.03, 1, 0.1);
        script.fails = reasons[i];
        struct cell cell = count_cell();
        CHECK(isnan(cell.v[CELL_MISSES]) && isnan(cell.v[CELL_WALKS]) &&
                  isnan(cell.v[CELL_CYCLES]) && isnan(cell.v[CELL_CONFIRMED]) &&
                  cell.v[CELL_MEDIAN] == 100,
              "a cell without proof");
    }
    struct counters real;
    int n = counters_open(&real, &counter_kernel);
    CHECK(n >= 0 && n <= COUNTERS, "the kernel here has %d of %d", n, COUNTERS);
    counters_close(&real);
}

static void rates(void)
{
    play(360, 1.03, 0.99, 0.25);
    struct cell c = count_cell();
    CHECK(fabs(c.v[CELL_MISSES] - 0.99) < 1e-4 && fabs(c.v[CELL_WALKS] - 0.25) < 1e-4,
          "misses and walks a hop");
    CHECK(fabs(c.v[CELL_CYCLES] / c.v[CELL_MEAN] - 3.6) < 1e-3, "360 cycles in 100 ns: %.3f GHz",
          c.v[CELL_CYCLES] / c.v[CELL_MEAN]);
    play(360, 1.03, 0.99, 0.25);
    script.half = true;
    c = count_cell();
    CHECK(fabs(c.v[CELL_MISSES] - 0.99) < 1e-3,
          "a group that had the counters half of the time is scaled");
    play(360, 1.03, 0.1, 0);
    script.lacks = PERF_TYPE_HW_CACHE + 1;
    c = count_cell();
    CHECK(fabs(c.v[CELL_CYCLES] - 360) < 1e-3 && isnan(c.v[CELL_MISSES]),
          "a CPU without events of its caches has cycles, and no misses");
    CHECK(proof_of(c.v[CELL_MISSES], 1 << 30, 32 << 20) == PROOF_NONE, "which prove nothing");
}

static void verdicts(void)
{
    static const struct {
        double misses;
        uint64_t mib;
        enum proof want;
        const char *what;
    } cases[] = {
        {1.01, 256, PROOF_CONFIRMED, "memory beyond the cache"},
        {0.86, 256, PROOF_CONFIRMED, "the eighth that the cache can hold"},
        {0.42, 256, PROOF_CACHED, "a chain that a cache holds in part"},
        {0.00, 1024, PROOF_CACHED, "a chain that a cache holds"},
        {0.5, 48, PROOF_NONE, "a size between"},
        {0.01, 8, PROOF_CONFIRMED, "a size within the cache"},
        {0.7, 8, PROOF_MISSED, "a size within the cache that misses it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        play(200, 1.03, cases[i].misses, 0);
        struct cell c = count_cell();
        CHECK(proof_of(c.v[CELL_MISSES], cases[i].mib << 20, 32 << 20) == cases[i].want,
              "%s: %.2f misses a hop at %d MiB", cases[i].what, cases[i].misses, (int)cases[i].mib);
    }
    play(200, 0, 1, 0);
    struct cell still = count_cell();
    CHECK(isnan(still.v[CELL_MISSES]) && isnan(still.v[CELL_CYCLES]), "counters that stand still");
}

// Two ranks behind one cache have half of it each while both are at work.
static void cells_of_a_run(void)
{
    struct board *board = calloc(1, board_bytes(2));
    struct comm comm = {.size = 2, .board = board};
    struct session s = {.comm = &comm, .board = board};
    struct proofs p = {0};
    if (!board)
        return;
    board->slot[0].llc_bytes = board->slot[1].llc_bytes = 32 << 20;
    play(360, 1.03, 0.98, 0.25);
    struct cell good = count_cell(), alone = good;
    play(360, 1.03, 0.3, 0.25);
    struct cell bad = count_cell();
    proofs_add(&p, &s, 0, &good, 64 << 20, true, "rank 0 at 64M");
    CHECK(p.cells == 1 && p.confirmed == 1 && good.v[CELL_CONFIRMED] == 1,
          "64M is beyond half of 32M");
    char text[400];
    proofs_text(&p, text, sizeof text);
    CHECK(strstr(text, ", at most 0.25 page walks per hop, "), "%s", text);
    struct proofs no_walks = {0};
    struct cell unknown = good;
    unknown.v[CELL_WALKS] = NAN;
    proofs_add(&no_walks, &s, 0, &unknown, 64 << 20, true, "rank 0 at 64M");
    proofs_text(&no_walks, text, sizeof text);
    CHECK(!strstr(text, "page walks") && strstr(text, "confirm 1 of 1 cells"),
          "without their event nothing is said of walks: %s", text);
    proofs_add(&p, &s, 0, &alone, 64 << 20, false, "rank 0 at 64M");
    CHECK(p.cells == 1 && isnan(alone.v[CELL_CONFIRMED]), "and between for a rank that is alone");
    proofs_add(&p, &s, 1, &bad, 64 << 20, true, "rank 1 at 64M");
    CHECK(p.wrong == 1 && bad.v[CELL_CONFIRMED] == 0 &&
              strstr(p.first, "rank 1 at 64M has 0.30 misses") &&
              strstr(p.first, "larger than its part of that cache (16M)"),
          "%s", p.first);
    free(board);
}

int main(void)
{
    refused();
    rates();
    verdicts();
    cells_of_a_run();
    return tap_done();
}
