// SPDX-License-Identifier: Apache-2.0
// Guard, spans, and what a cell is made of.
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench/kernels/chain.h"
#include "bench/sampling/sampler.h"
#include "bench/session/rank_team.h"
#include "tests/unit/tap.h"

static void guard(void)
{
    const struct guard_mark begin = {1000000, 500000, 7, 3, 1};
    struct guard_mark end = {3000000, 2500000, 7, 3, 1};
    CHECK(guard_judge(&begin, &end).flags == 0, "all the time on the CPU: clean");
    end.cpu_ns = 2495000;
    CHECK(guard_judge(&begin, &end).flags == 0, "0.25 %% off: clean");
    end.cpu_ns = 2480000;
    CHECK(guard_judge(&begin, &end).flags == GUARD_OFF_CPU, "1 %% off: disturbed");
    end.cpu_ns = 1500000;
    CHECK(fabs(guard_judge(&begin, &end).off_share - 0.5) < 1e-9, "half the time away is said so");
    end.cpu_ns = 2600000;
    CHECK(guard_judge(&begin, &end).off_share == 0, "the CPU clock may be ahead");
    end = (struct guard_mark){3000000, 2500000, 8, 13, 2};
    CHECK(guard_judge(&begin, &end).flags == (GUARD_FAULTS | GUARD_MOVED),
          "ten faults in 2 ms, another CPU: each is seen");
    end = (struct guard_mark){3000000, 2497000, 8, 4, 1};
    CHECK(guard_judge(&begin, &end).flags == 0 && guard_judge(&begin, &end).switches == 1,
          "a switch of 3 us and a fault in 2 ms: clean, and counted");
    struct guard_total total = {0};
    CHECK(isnan(guard_off_share(&total)), "no sample, no share");
    for (int i = 0; i < 4; i++) {
        end.cpu_ns = i ? 2500000 : 500000;
        CHECK(guard_tally(&total, &begin, &end).flags == guard_judge(&begin, &end).flags,
              "judged the same");
    }
    CHECK(fabs(guard_off_share(&total) - 0.25) < 1e-9, "one sample of four was away all the time");
}

// A pass of two ranks, 200 ms from 0; times in us.
struct part {
    uint64_t from, off;
    int64_t switches;
};

static struct sample pass_of(const struct part *parts)
{
    struct comm comm = {.size = 2};
    struct session s = {.comm = &comm, .board = calloc(1, board_bytes(2))};
    if (!s.board)
        abort();
    for (int r = 0; r < 2; r++) {
        const struct part *p = &parts[r];
        struct guard_mark from = {1000 * p->from, 0, 0, 0, r};
        struct guard_mark to = {200000000, 200000000 - 1000 * (p->from + p->off), p->switches, 0,
                                r};
        s.slot = &s.board->slot[r];
        s.slot->in_team = true;
        rank_team_set_pass(&s, &from, &to, 0);
    }
    struct sample got = rank_team_pass(&s);
    free(s.board);
    return got;
}

static void passes(void)
{
    static const struct {
        const char *what;
        struct part parts[2];
        bool clean;
    } cases[] = {
        {"undisturbed", {{0, 0, 0}, {1, 0, 0}}, true},
        {"twelve short kernel threads", {{0, 36, 12}, {0, 3, 1}}, true},
        {"a rank away for 20 ms", {{0, 0, 0}, {0, 20000, 1}}, false},
        {"a rank that starts 20 ms late", {{0, 0, 0}, {20000, 0, 0}}, false},
        {"0.4 % late and 0.4 % away", {{800, 800, 1}, {0, 0, 0}}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample got = pass_of(cases[i].parts);
        CHECK((got.verdict.flags == 0) == cases[i].clean, "a pass of 200 ms, %s: %s, lost %.4f %%",
              cases[i].what, cases[i].clean ? "clean" : "disturbed", 100 * got.verdict.off_share);
    }
}

// --- A rank that is stopped in the middle of a pass ---------------------------------------------

enum { STOPS = 50, STOP_NS = 20000000 };

struct stopped {
    atomic_int begun, resumed; // passes
    unsigned flags[STOPS];
};

static void work_until_resumed(struct stopped *x)
{
    for (int i = 0; i < STOPS; i++) {
        struct guard_mark from, to;
        guard_begin(&from);
        atomic_store(&x->begun, i + 1);
        while (atomic_load(&x->resumed) <= i)
            ;
        guard_end(&to);
        x->flags[i] = guard_judge(&from, &to).flags;
    }
    _exit(0);
}

static void stopped_ranks(void)
{
    int seen = 0, status = -1;
    struct stopped *x =
        mmap(NULL, sizeof *x, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (x == MAP_FAILED)
        abort();
    pid_t rank = fork();
    if (rank == 0)
        work_until_resumed(x);
    for (int i = 0; i < STOPS; i++) {
        while (atomic_load(&x->begun) <= i)
            ;
        kill(rank, SIGSTOP);
        waitpid(rank, &status, WUNTRACED);
        nanosleep(&(struct timespec){.tv_nsec = STOP_NS}, NULL);
        atomic_store(&x->resumed, i + 1);
        kill(rank, SIGCONT);
    }
    waitpid(rank, &status, 0);
    for (int i = 0; i < STOPS; i++)
        seen += (x->flags[i] & GUARD_OFF_CPU) != 0;
    CHECK(status == 0 && seen == STOPS, "a rank stopped for 20 ms is seen %d times of %d", seen,
          STOPS);
    munmap(x, sizeof *x);
}

static void spans(void)
{
    struct spans *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    if (!a || !b) {
        CHECK(0, "no memory");
        return;
    }
    spans_add(a, 1000000, 2000000);
    spans_add(a, 2000000 + SPAN_GAP_NS, 3000000);
    CHECK(a->n == 1 && a->at[0].to == 3000000, "a gap of reading clocks is closed");
    spans_add(a, 3100000, 4000000);
    CHECK(a->n == 2, "a longer gap is a gap");
    spans_add(b, 2500000, 3500000);
    spans_cut(a, b);
    CHECK(a->n == 2 && a->at[0].from == 2500000 && a->at[0].to == 3000000 &&
              a->at[1].from == 3100000 && a->at[1].to == 3500000,
          "what is in both");
    CHECK(spans_cover(a, 2000000, 4000000) == 900000 && spans_cover(a, 2900000, 3200000) == 200000,
          "cover counts what is inside");
    b->n = 0;
    spans_cut(a, b);
    CHECK(a->n == 0 && spans_cover(a, 0, UINT64_MAX) == 0, "nothing in common");
    for (uint64_t i = 0; i < SPANS_MAX + 10; i++)
        spans_add(b, i * 1000000, i * 1000000 + 10);
    CHECK(b->n == SPANS_MAX, "what does not fit is left out");
    free(a);
    free(b);
}

static const struct spec params = {
    .precision = 1, .min_samples = 7, .sample_us = 500, .cell_ms = 20};

// Samples of 1 ms one after the other: 100, 101, … ns, as if taken.
static void fake(struct sampler *s, int n)
{
    sampler_clear(s);
    for (s->n = 0; s->n < n; s->n++)
        s->samples[s->n] = (struct sample){.from = 1000000 * (uint64_t)s->n,
                                           .to = 1000000 * (uint64_t)(s->n + 1),
                                           .hop_ns = 100 + s->n};
}

static void disturb(struct sampler *s, int i, double off)
{
    s->samples[i].verdict = (struct guard_verdict){GUARD_OFF_CPU, off};
    s->samples[i].hop_ns = 1000;
}

static void sum_up(struct sampler *s, const struct spans *together, struct cell *c, int *clean)
{
    struct err err = {0};
    struct evidence evidence = {0};
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    CHECK(sampler_keep(s, together, &sum, &err) == 0 &&
              cell_sum_up(&sum, &params, c, &evidence, &err) == 0,
          "a cell is summed up %s", err.text);
    *clean = evidence.clean;
}

static void sums(struct sampler *s)
{
    struct cell c;
    int clean;
    fake(s, 9);
    disturb(s, 3, 0.4);
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 8 && c.v[CELL_N] == 8 && c.v[CELL_DISTURBED] == 1 && c.v[CELL_MEDIAN] == 104.5,
          "the disturbed sample is left out and counted");
    struct histogram h;
    CHECK(cell_histogram(&c, &h) && h.n == 8 && h.low == c.v[CELL_MIN],
          "its distribution is of the undisturbed samples");
    CHECK(isnan(c.v[CELL_OVERLAP]) && c.v[CELL_CONVERGED] == 0,
          "alone: no overlap; not precise: said");
    for (int i = 0; i < 4; i++)
        disturb(s, i, 0.1 * (4 - i));
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 5 && c.v[CELL_N] == 5 && c.v[CELL_DISTURBED] == 4 && c.v[CELL_MEDIAN] == 106 &&
              c.v[CELL_CONVERGED] == 0,
          "few clean samples are better than disturbed ones among them; it is not tight");
    for (int i = 0; i < 9; i++)
        disturb(s, i, 0.1 + 0.05 * i);
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 0 && c.v[CELL_N] == 1 && c.v[CELL_DISTURBED] == 9,
          "none clean: the least disturbed stands in, and is counted with the others");
    CHECK(!cell_histogram(&c, &h), "and there is no distribution");
    CHECK(isnan(c.v[CELL_MEAN]) && isnan(c.v[CELL_P10]) && isnan(c.v[CELL_P99]) &&
              cell_kept(&c) == 0,
          "nor what needs kept samples: 9 of 9 are disturbed, not 9 of 10");
    disturb(s, 0, 0.1);
    for (int i = 1; i < 9; i++)
        disturb(s, i, 0);
    s->n = 1;
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 0 && c.v[CELL_N] == 1 && c.v[CELL_DISTURBED] == 1,
          "a single sample that was disturbed is no undisturbed one");
}

static void windows(struct sampler *s)
{
    struct cell c;
    int clean;
    CLEANUP_MEM struct spans *both = calloc(1, sizeof *both);
    if (!both) {
        CHECK(0, "no memory");
        return;
    }
    fake(s, 12);
    spans_add(both, 1500000, 6000000);
    spans_add(both, 7000000, 11000000);
    sum_up(s, both, &c, &clean);
    CHECK(c.v[CELL_N] == 9, "only samples inside the common window count");
    CHECK(fabs(c.v[CELL_OVERLAP] - 8.0 / 9) < 1e-9,
          "a gap of another rank lowers the overlap: %.3f", c.v[CELL_OVERLAP]);
    both->n = 0;
    sum_up(s, both, &c, &clean);
    CHECK(c.v[CELL_OVERLAP] == 0 && c.v[CELL_N] == 12,
          "no common time: an overlap of 0, not a missing number");
}

// Three visits that agree within themselves and not with each other.
static void visits(struct sampler *s)
{
    struct err err = {0};
    struct cell c;
    int bad = 0;
    struct evidence evidence;
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    for (int v = 0; v < 3; v++) { // the last sample by sample, as who does not chase
        fake(s, 20);
        for (int i = 0; i < 20; i++)
            s->samples[i].hop_ns = 100 + 10 * v + 0.01 * i;
        if (v == 1)
            disturb(s, 0, 0.5);
        for (int i = 0; v == 2 && i < 20; i++)
            bad += cell_sum_add(&sum, &s->samples[i], &err);
        if (v == 2)
            cell_sum_next_visit(&sum);
        else
            bad += sampler_keep(s, NULL, &sum, &err);
    }
    CHECK(sum.visits == 3 && sum.visit[0] == 0 && sum.visit[58] == 2, "each sample has its visit");
    bad += cell_sum_up(&sum, &params, &c, &evidence, &err);
    CHECK(bad == 0 && evidence.clean == 59 && c.v[CELL_DISTURBED] == 1, "visits add up %s",
          err.text);
    struct histogram h;
    CHECK(cell_histogram(&c, &h) && h.n == 59, "so do their samples in the distribution");
    CHECK(c.v[CELL_LO] < 80 && c.v[CELL_HI] > 140,
          "their differences widen the interval: %.1f to %.1f", c.v[CELL_LO], c.v[CELL_HI]);
    struct cell_sum none = {0};
    CHECK(cell_sum_up(&none, &params, &c, &evidence, &err) < 0, "a cell never visited is an error");
    struct cell_sum two CLEANUP(cell_sum_fini) = {0};
    for (int v = 0; v < 8; v++) {
        for (int i = 0; i < 5; i++) {
            struct sample x = {.to = 1000, .hop_ns = (v == 2 || v > 5 ? 59 : 20) + 0.01 * i};
            bad += cell_sum_add(&two, &x, &err);
        }
        cell_sum_next_visit(&two);
    }
    bad += cell_sum_up(&two, &params, &c, &evidence, &err);
    CHECK(bad == 0 && evidence.modes.two && fabs(evidence.modes.low - 20.02) < 1e-9 &&
              fabs(evidence.modes.high - 59.02) < 1e-9 && evidence.modes.high_share == 0.375,
          "two levels of the visits' medians");
}

static void real(struct sampler *s)
{
    struct cell c;
    int clean;
    struct chain chain;
    void *memory = aligned_alloc(4096, 1 << 16);
    if (!memory) {
        CHECK(0, "no memory");
        return;
    }
    chain_plan(&chain, memory, 1 << 16, 64, 0, 1);
    chain_write(&chain, 0, chain.links);
    sampler_start(s, memory);
    sampler_clear(s);
    sampler_warm(s, chain.links, 0);
    do
        sampler_take(s);
    while (!sampler_done(s));
    CHECK(s->n >= 7, "%d samples taken", s->n);
    CHECK(s->samples[0].to - s->samples[0].from >= 500000, "a sample is as long as asked for");
    sum_up(s, NULL, &c, &clean);
    CHECK(c.v[CELL_MEDIAN] > 0.3 && c.v[CELL_MEDIAN] < 1e5, "64 KiB take %.2f ns a hop",
          c.v[CELL_MEDIAN]);
    if (c.v[CELL_N] < 2) // a machine so busy that the least disturbed stands in
        CHECK(isnan(c.v[CELL_LO]) && isnan(c.v[CELL_HI]), "one sample has no interval");
    else
        CHECK(c.v[CELL_LO] <= c.v[CELL_MEDIAN] && c.v[CELL_MEDIAN] <= c.v[CELL_HI],
              "lo, median, hi");
    free(memory);
}

static void clocks(void)
{
    struct cycle_seen seen = {0};
    CHECK(isnan(reference_clock_mean_ns(&seen)) && reference_clock_change(&seen) == 1,
          "a clock never seen");
    for (int i = 0; i < 3; i++)
        reference_clock_take(&seen);
    double mean = reference_clock_mean_ns(&seen);
    CHECK(seen.n == 3 && seen.least_ns <= mean && mean <= seen.most_ns, "%.2f GHz", 1 / mean);
    CHECK(mean > 0.1 && mean < 10 && reference_clock_change(&seen) >= 1, "between 0.1 and 10 GHz");
}

int main(void)
{
    struct sampler s = {0};
    struct err err = {0};
    guard();
    passes();
    stopped_ranks();
    clocks();
    spans();
    CHECK(sampler_init(&s, &params, 1, &err) == 0, "a sampler");
    sums(&s);
    windows(&s);
    visits(&s);
    real(&s);
    sampler_fini(&s);
    return tap_done();
}
