// SPDX-License-Identifier: Apache-2.0
// The teams of `bandwidth`: who is in them, which caches they have, how large their arrays are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/scan.h"
#include "model/spec_values.h"
#include "model/stream_team.h"
#include "tests/unit/tap.h"

enum { RANKS = 6, MIB = 1 << 20 };

// Two nodes; node 0 has two caches of 32 MiB, node 1 one of 16 MiB, which a rank of node 0 shares.
static const struct rank_cache machine[RANKS] = {
    {0, 0, 32 * MIB}, {0, 0, 32 * MIB}, {0, 3, 32 * MIB},
    {0, 4, 16 * MIB}, {1, 4, 16 * MIB}, {1, 4, 16 * MIB},
};

static void expect(const char *sweep, const char *threads, const char *want)
{
    struct spec s;
    struct stream_team teams[RANKS];
    struct err err = {0};
    char got[200] = "";
    spec_init(&s, BENCHMARK_BANDWIDTH);
    if (param_set_text(spec_param(&s, "sweep"), &s, sweep, &err) < 0)
        abort();
    snprintf(s.threads, sizeof s.threads, "%s", threads);
    int n = stream_teams(&s, machine, RANKS, teams, &err);
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld:%d:%lld:%lld", i ? " " : "",
                 (long long)teams[i].value, teams[i].n_ranks, (long long)(teams[i].llc_bytes / MIB),
                 (long long)(teams[i].array_bytes / MIB));
    CHECK_STR(n < 0 ? err.text : got, want, "%s %s", sweep, threads);
}

// Beyond the caches of the list a node has one of 96 MiB: it counts where it is more, once a node.
static void found(void)
{
    struct rank_cache beyond[RANKS];
    struct stream_team teams[RANKS];
    struct spec s;
    struct err err = {0};
    spec_init(&s, BENCHMARK_BANDWIDTH);
    memcpy(beyond, machine, sizeof beyond);
    for (int r = 0; r < RANKS; r++)
        beyond[r].found_bytes = 96 * MIB;
    CHECK(stream_teams(&s, beyond, RANKS, teams, &err) == 2 && teams[0].llc_bytes == 96 * MIB &&
              teams[1].array_bytes == 4 * 96 * MIB,
          "a node's team has its node's");
    s.sweep = SWEEP_OWN;
    CHECK(stream_teams(&s, beyond, RANKS, teams, &err) == 1 && teams[0].llc_bytes == 192 * MIB,
          "that of all ranks has two");
    for (int r = 0; r < RANKS; r++)
        beyond[r].found_bytes = 24 * MIB;
    CHECK(stream_teams(&s, beyond, RANKS, teams, &err) == 1 && teams[0].llc_bytes == 80 * MIB &&
              spec_auto_bytes_of(beyond, RANKS) == 4 * 32 * MIB,
          "less than those of the list changes nothing");
    beyond[5].found_bytes = 96 * MIB;
    CHECK(spec_auto_bytes_of(beyond, RANKS) == 4 * 96 * MIB &&
              scan_memory_bytes(beyond, RANKS) == 4 * 96 * MIB / 2,
          "auto is of the largest, a scan's memory of those that share it: %d MiB",
          (int)(scan_memory_bytes(beyond, RANKS) / MIB));
}

static void series(void)
{
    int counts[STREAM_SERIES_MAX];
    CHECK(stream_series(1, counts) == 1 && counts[0] == 1, "one rank");
    CHECK(stream_series(6, counts) == 4 && counts[2] == 4 && counts[3] == 6, "1 2 4 6");
    CHECK(stream_series(8, counts) == 4 && counts[3] == 8, "1 2 4 8");
    int most = 0;
    for (int n = 1; n <= SPEC_RANKS_MAX; n++) {
        int got = stream_series(n, counts);
        most = got > most ? got : most;
    }
    CHECK(most <= STREAM_SERIES_MAX, "all have room: %d", most);
}

static void expect_sizes(const char *size, const char *want)
{
    struct spec s;
    uint64_t sizes[SPEC_SIZES_MAX];
    struct err err = {0};
    char got[200] = "";
    spec_init(&s, BENCHMARK_BANDWIDTH);
    s.sweep = SWEEP_SIZES;
    snprintf(s.size, sizeof s.size, "%s", size);
    int n = stream_sizes(&s, machine, RANKS, sizes, &err);
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", i ? " " : "",
                 (long long)(sizes[i] >> 10));
    CHECK_STR(n < 0 ? err.member : got, want, "%s", size);
}

// Each cell once in a repetition, and in no round two of a row or of a column.
static void expect_rounds(enum bandwidth_sweep sweep, int rows, int cols, int at_once)
{
    struct spec s;
    int seen[24][24] = {0}, twice = 0, most = 0, missing = 0;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    s.sweep = sweep;
    int rounds = stream_rounds(&s, rows, cols);
    for (int round = 0; round < rounds; round++) {
        bool taken[24] = {false};
        int n = 0;
        for (int row = 0; row < rows; row++) {
            int col = stream_round_col(&s, rows, cols, round, row);
            if (col < 0)
                continue;
            twice += taken[col];
            taken[col] = true;
            seen[row][col]++;
            n++;
        }
        most = n > most ? n : most;
    }
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++)
            missing += seen[row][col] != 1;
    CHECK(twice == 0 && missing == 0 && most == at_once &&
              stream_at_once(&s, rows, cols) == at_once,
          "sweep %d, %d x %d: %d rounds, %d cells not once, %d columns twice, %d at once", sweep,
          rows, cols, rounds, missing, twice, most);
}

static void rounds(void)
{
    expect_rounds(SWEEP_NODES, 24, 24, 24);
    expect_rounds(SWEEP_NODES, 2, 24, 2);
    expect_rounds(SWEEP_NODES, 24, 5, 5);
    expect_rounds(SWEEP_NODES, 1, 3, 1);
    expect_rounds(SWEEP_NODES, 1, 1, 1);
    expect_rounds(SWEEP_THREADS, 4, 3, 1); // rows share ranks
    expect_rounds(SWEEP_MEMCPY, 4, 4, 1);  // a cell has two targets
    expect_rounds(SWEEP_SIZES, 2, 14, 1);
}

// Three arrays of 600 MiB, or a working set of 600 MiB for each rank. Four ranks have less than a
// huge page of 512 MiB each, two have more.
static void expect_bytes(const char *sweep, const struct page_sizes *pages, const char *kind,
                         uint64_t mib)
{
    struct spec s;
    struct err err = {0};
    uint64_t bytes = 0;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    param_set_text(spec_param(&s, "sweep"), &s, sweep, &err);
    param_set_text(spec_param(&s, "pages"), &s, kind, &err);
    snprintf(s.size, sizeof s.size, "600");
    int outcome = benchmarks[BENCHMARK_BANDWIDTH].bytes(&s, machine, RANKS, pages, &bytes, &err);
    CHECK(outcome == 0 && bytes >> 20 == mib, "%s in %s pages of %llu MiB: %llu MiB, not %llu",
          sweep, kind, (unsigned long long)(pages->thp >> 20), (unsigned long long)(bytes >> 20),
          (unsigned long long)mib);
}

static void bytes_of_teams(void)
{
    static const struct page_sizes arm = {65536, 512 << 20, 512 << 20};
    expect_bytes("nodes", &page_sizes_usual, "thp", 3 * 600);
    expect_bytes("nodes", &arm, "thp", 2 * 1024);
    expect_bytes("nodes", &arm, "4k", 3 * 600);
    expect_bytes("nodes", &arm, "2M", 3 * 600);
    expect_bytes("sizes", &arm, "thp", 6 * 1024);
    expect_bytes("sizes", &page_sizes_usual, "thp", 6 * 600);
}

int main(void)
{
    bytes_of_teams();
    rounds();
    series();
    found();
    expect_sizes("auto", "16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536 131072");
    expect_sizes("64K,1", "64 1024");
    expect_sizes("some", "size");
    expect("nodes", "doubling", "0:4:80:320 1:2:16:64");
    expect("threads", "doubling", "1:1:32:128 2:2:32:128 4:4:80:320 6:6:80:320");
    expect("threads", "all", "1:1:32:128 2:2:32:128 3:3:64:256 4:4:80:320 5:5:80:320 6:6:80:320");
    expect("threads", "6,1", "1:1:32:128 6:6:80:320");
    expect("threads", "7", "has 7, but the run has 6 ranks");
    expect("threads", "auto", "1:1:32:128 2:2:32:128 4:4:80:320 6:6:80:320");
    expect("sizes", "auto", "1:1:32:128 6:6:80:320");
    expect("sizes", "2", "2:2:32:128");
    expect("memcpy", "auto", "0:4:80:320 1:2:16:64");
    expect("own", "doubling", "6:6:80:320");
    return tap_done();
}
