// SPDX-License-Identifier: Apache-2.0
// What reports say of each benchmark but latency and matrix.
#include "analysis/report/hierarchy.h"
#include "base/str.h"
#include "model/scan.h"
#include "model/target.h"
#include "tests/unit/analysis/hierarchy_machine.h"
#include "tests/unit/analysis/report_checks.h"
#include "tests/unit/analysis/simulate.h"

// Two nodes of 80 GB/s each, and what their modules could deliver.
static void check_modules(const struct matrix *m, const char *dimms, const char *speed,
                          const char *channels, const char *said)
{
    static struct fingerprint f;
    const char *const says[] = {said ? said : "Node 0", NULL};
    static const char *const none[] = {"memory modules", NULL};
    f = (struct fingerprint){0};
    facts_add(&f.machine_class, "dimms", "%s", dimms);
    if (speed)
        facts_add(&f.config, "dimm_speed", "%s", speed);
    if (channels)
        facts_add(&f.config, "dimm_channels", "%s", channels);
    facts_then = &f;
    check_report(BENCHMARK_BANDWIDTH, m, 2, says, said ? NULL : none);
    facts_then = NULL;
}

static void test_modules(const struct matrix *m)
{
    static const char *const none[] = {"memory modules", NULL};
    static const char *const some[] = {"Node 0", NULL};
    check_modules(m, "8x64G DDR5-4800 2R; slots 0-7 of 16", "4400 MT/s", NULL,
                  "8 memory modules at 4400 MT/s deliver at most 281.6 GB/s, if each has a channel "
                  "of its own. The nodes reach 160.0 GB/s together, 57 % of that.");
    check_modules(
        m, "8x64G DDR5-4800 2R; slots 0-7 of 16", "4400 MT/s", "4: mc0 0-3",
        "8 memory modules at 4400 MT/s on 4 channels deliver at most 140.8 GB/s. The nodes "
        "reach 160.0 GB/s together, 114 % of that.");
    check_modules(m, "4x64G DDR5-4800 2R; slots 0-3 of 4", NULL, "8: mc0 0-7",
                  "4 memory modules at 4800 MT/s deliver at most 153.6 GB/s, if each has");
    check_modules(m, "8x64G DDR5-4800 2R, 4x32G DDR5-5600 1R; slots 0-11 of 16", NULL, NULL,
                  "12 memory modules at 4800 MT/s deliver at most 460.8 GB/s");
    check_modules(m, "4x64G DDR4; slots 0-3 of 4", "3200 MT/s, 2933 MT/s", NULL,
                  "4 memory modules at 2933 MT/s deliver at most 93.9 GB/s");
    check_modules(m, "4x64G DDR4; slots 0-3 of 4", NULL, NULL, NULL);
    check_modules(m, "", NULL, NULL, NULL);
    check_modules(m, "x; 8", "4800 MT/s", NULL, NULL);
    check_report(BENCHMARK_BANDWIDTH, m, 2, some, none);
}

// The modules are those of both nodes, so one node says nothing of them.
static void test_modules_of_a_part(void)
{
    static const char *const none[] = {"memory modules", NULL};
    static const char *const some[] = {"Node 0", NULL};
    struct fingerprint f = {0};
    struct matrix m = {0};
    shaped(&m, BENCHMARK_BANDWIDTH, NULL, "triad", 1, 2);
    m.col.values[1] = 1;
    put(&m, 0, 0, 80000);
    put(&m, 0, 1, 40000);
    facts_add(&f.machine_class, "dimms", "8x64G DDR5-4800 2R; slots 0-7 of 16");
    facts_then = &f;
    check_report(BENCHMARK_BANDWIDTH, &m, 1, some, none);
    facts_then = NULL;
    matrix_fini(&m);
}

// Full load of both nodes on their own memory, of the mix that moves most.
static void test_modules_of_loaded(void)
{
    static const char *const none[] = {"memory modules", NULL};
    static const char *const some[] = {"at full load", NULL};
    static const char *const says[] = {
        "8 memory modules at 4800 MT/s deliver at most 307.2 GB/s, if each has a channel of its "
        "own. The nodes reach 100.0 GB/s together, 33 % of that.",
        NULL};
    static const char *const names[] = {"latency_reads", "bandwidth_reads", "latency_nt",
                                        "bandwidth_nt"};
    struct fingerprint f = {0};
    struct matrix l[4] = {0};
    facts_add(&f.machine_class, "dimms", "8x64G DDR5-4800 2R; slots 0-7 of 16");
    facts_then = &f;
    for (int i = 0; i < 4; i++) {
        shaped(&l[i], BENCHMARK_LOADED, NULL, i % 2 ? "bandwidth" : "latency", 2, 2);
        snprintf(l[i].name, sizeof l[i].name, "%s", names[i]);
        for (int row = 0; row < 2; row++) {
            l[i].row.values[row] = 2 * row; // the first rank of each node
            put(&l[i], row, 0, i % 2 ? 0 : 100);
            put(&l[i], row, 1, i % 2 ? (i == 1 ? 50000 : 30000) : 200);
        }
        l[i].col.values[1] = 100;
    }
    check_report(BENCHMARK_LOADED, l, 4, says, NULL);
    put(&l[1], 1, 1, 0); // its rank is alone
    static const char *const alone[] = {
        "Node 0 (rank 0), reads: 100.0 ns idle, 180.0 ns at 80 % of the highest bandwidth",
        "Node 1 (rank 2), reads: 100.0 ns idle; no rank of the node made load.", NULL};
    check_report(BENCHMARK_LOADED, l, 4, alone, NULL);
    put(&l[1], 1, 1, 50000);
    ranks[2].mem_node = 0; // not its own
    check_report(BENCHMARK_LOADED, l, 4, some, none);
    ranks[2].mem_node = 1;
    for (int i = 0; i < 4; i++) {
        snprintf(l[i].row.name, sizeof l[i].row.name, "path");
        for (int row = 0; row < 2; row++)
            l[i].row.values[row] = axis_pair(row, row);
    }
    check_report(BENCHMARK_LOADED, l, 4, says, NULL);
    for (int i = 0; i < 4; i++)
        l[i].row.values[1] = axis_pair(0, 1);
    check_report(BENCHMARK_LOADED, l, 4, some, none);
    facts_then = NULL;
    for (int i = 0; i < 4; i++)
        matrix_fini(&l[i]);
}

// The firmware claims 60 ns for the memory of node 0 and 40 GB/s of reads for that of node 1.
static struct topo_claim firmware[] = {
    {.initiator = 0, .target = 0, .latency_ns = 60},
    {.initiator = 1, .target = 1, .read_mbps = 40000},
    {.initiator = 1, .target = 0, .read_mbps = 20000},
};

static void set_claims(int n)
{
    machine.claims = firmware;
    machine.n_claims = n;
    for (int i = 0; i < 4; i++) { // verified
        ranks[i].pages_checked = n ? 100 : 0;
        ranks[i].cpu_wanted = i;
        ranks[i].mem_share = 1;
    }
}

// The latency of a cache is not compared with a claim of memory.
static void check_cached(enum benchmark_id benchmark, const struct matrix *m, int64_t found_bytes,
                         int64_t size_bytes)
{
    const struct report_source cached = {.benchmark = benchmark,
                                         .matrices = m,
                                         .n = 1,
                                         .ranks = ranks,
                                         .n_ranks = 4,
                                         .topology = &machine,
                                         .found_bytes = found_bytes,
                                         .size_bytes = size_bytes};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct report *r = report_new(&cached, NULL, NULL);
    if (r)
        report_write_markdown(r, &text);
    CHECK(r && text.len && !strstr(buf_text(&text), "firmware"),
          "the latency of a cache is not compared");
    report_free(r);
}

static void test_claims(void)
{
    struct matrix m[2] = {0};
    static const char *const says[] = {"CPUs of node 0, memory of node 0: the firmware claims 60 "
                                       "ns, measured are 90.0 ns (idle), × 1.50.",
                                       NULL};
    static const char *const none[] = {"firmware claims", NULL}, *const any[] = {"Node 0", NULL};
    shaped(&m[0], BENCHMARK_MATRIX, NULL, "idle", 4, 2);
    m[0].col.values[1] = 1;
    for (int i = 0; i < 8; i++)
        put(&m[0], i / 2, i % 2, i / 4 == i % 2 ? 90 : 140);
    check_report(BENCHMARK_MATRIX, m, 1, any, none);
    set_claims(3);
    check_report(BENCHMARK_MATRIX, m, 1, says, NULL);
    check_cached(BENCHMARK_MATRIX, &m[0], 0, 1 << 16);
    ranks[1].mem_share = 0.5; // the other rank of the node is enough
    check_report(BENCHMARK_MATRIX, m, 1, says, NULL);
    ranks[0].mem_share = 0.5;
    check_report(BENCHMARK_MATRIX, m, 1, any, none);
    set_claims(3);
    matrix_fini(&m[0]);
    static const char *const reads[] = {
        "CPUs of node 1, memory of node 1: the firmware claims 40.0 GB/s, measured are 80.0 GB/s "
        "(read by all ranks of the node), 200 % of that.",
        "CPUs of node 1, memory of node 0: the firmware claims 20.0 GB/s, measured are 20.0 GB/s",
        NULL};
    shaped(&m[0], BENCHMARK_BANDWIDTH, NULL, "read", 2, 2);
    m[0].row.values[1] = m[0].col.values[1] = 1;
    for (int i = 0; i < 4; i++)
        put(&m[0], i / 2, i % 2, i / 2 == i % 2 ? 80000 : 20000);
    check_report(BENCHMARK_BANDWIDTH, m, 1, reads, NULL);
    matrix_fini(&m[0]);
    static const char *const busy[] = {"## Claims of the firmware",
                                       "measured are 120.0 ns (with all ranks at once), × 2.00.",
                                       NULL};
    shaped(&m[0], BENCHMARK_LATENCY, NULL, "concurrent", 4, 1);
    m[0].col.values[0] = 1 << 30;
    for (int i = 0; i < 4; i++)
        put(&m[0], i, 0, 120);
    check_report(BENCHMARK_LATENCY, m, 1, busy, NULL);
    check_cached(BENCHMARK_LATENCY, &m[0], (int64_t)1 << 30,
                 0);              // two ranks a node have 2 GiB together
    m[0].col.values[0] = 1 << 20; // in the caches that the kernel lists
    check_cached(BENCHMARK_LATENCY, &m[0], 0, 0);
    matrix_fini(&m[0]);
    set_claims(0);
}

static void test_bandwidth(void)
{
    struct matrix m[2] = {0};
    shaped(&m[0], BENCHMARK_BANDWIDTH, NULL, "triad", 2, 2);
    shaped(&m[1], BENCHMARK_BANDWIDTH, NULL, "read", 2, 2);
    for (int k = 0; k < 2; k++) {
        m[k].row.values[1] = m[k].col.values[1] = 1;
        for (int i = 0; i < 4; i++)
            put(&m[k], i / 2, i % 2, (i / 2 == i % 2 ? 40000 : 10000) * (1 + k));
    }
    static const char *const says[] = {
        "Node 0 and its own memory: best is read with 80.0 GB/s; triad gives 40.0 GB/s, 50 % of "
        "that.",
        "Node 1, triad: node 0's memory gives 10.0 GB/s, 25 % of its own", NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 2, says, NULL);
    test_modules(m);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    shaped(&m[0], BENCHMARK_BANDWIDTH, NULL, "triad", 1, 2);
    m[0].col.values[1] = target_interleaved(3, true);
    put(&m[0], 0, 0, 40000);
    put(&m[0], 0, 1, 50000);
    static const char *const spread[] = {
        "Node 0, triad: memory on nodes 0-1, interleaved by weight gives 50.0 GB/s, 125 % of its "
        "own memory.",
        NULL};
    static const char *const remote[] = {"'s memory gives", NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 1, spread, remote);
    matrix_fini(&m[0]);
    struct matrix t = {0};
    static const double grows[] = {10000, 20000, 30000, 30500};
    shaped(&t, BENCHMARK_BANDWIDTH, "sweep-threads", "triad", 4, 1);
    for (int i = 0; i < 4; i++) {
        t.row.values[i] = i + 1;
        put(&t, i, 0, grows[i]);
    }
    static const char *const full[] = {"30.0 GB/s with 3 of 4 threads is 98 % of the maximum",
                                       NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, full, NULL);
    put(&t, 3, 0, 40000);
    static const char *const more[] = {
        "grows up to the last thread, 40.0 GB/s with 4 threads, × 4.00", NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, more, NULL);
    put(&t, 0, 0, NAN);
    static const char *const not_one[] = {
        "grows up to the last thread, 40.0 GB/s with 4 threads, × 2.00 of 2 threads (20.0 GB/s)",
        NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, not_one, NULL);
    put(&t, 3, 0, NAN);
    static const char *const not_all[] = {"grows up to the last thread, 30.0 GB/s with 3 threads",
                                          NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, not_all, NULL);
    matrix_fini(&t);
    struct matrix all[2] = {0};
    shaped(&all[0], BENCHMARK_BANDWIDTH, "sweep-threads", "triad", 1, 1);
    shaped(&all[1], BENCHMARK_BANDWIDTH, "sweep-threads", "read", 1, 1);
    for (int k = 0; k < 2; k++) {
        all[k].row.values[0] = 4;
        put(&all[k], 0, 0, 20000 * (1 + k));
    }
    static const char *const together[] = {
        "4 threads together, ", "best is read with 40.0 GB/s; triad gives 20.0 GB/s, 50 % of that.",
        NULL};
    check_report(BENCHMARK_BANDWIDTH, all, 2, together, NULL);
    matrix_fini(&all[0]);
    matrix_fini(&all[1]);
}

// Of one kernel by working set: with the machine's caches, and without them.
static void test_bandwidth_levels(void)
{
    static const double mbps[] = {90000, 80000, 15000};
    struct matrix m = {0};
    shaped(&m, BENCHMARK_BANDWIDTH, "sweep-sizes", "read", 2, 3);
    m.row.values[0] = 1;
    m.row.values[1] = 4;
    for (int c = 0; c < 3; c++) {
        m.col.values[c] = (int64_t)(8 << 20) << (2 * c); // 8, 32, 128 MiB
        put(&m, 0, c, mbps[c]);
        put(&m, 1, c, 2 * mbps[c]);
    }
    static const char *const says[] = {"read, 1 thread, GB/s: L3 90.0, memory 15.0.",
                                       "read, 4 threads, GB/s: L3 180.0, memory 30.0.", NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, says, NULL);
    m.col.values[0] = 48 << 20; // neither cache nor memory
    m.col.values[1] = 64 << 20;
    m.col.values[2] = 96 << 20;
    static const char *const ends[] = {"read, 1 thread: 90.0 GB/s at 48M, 15.0 GB/s at 96M.", NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, ends, NULL);
    put(&m, 0, 0, NAN);
    static const char *const known[] = {"read, 1 thread: 80.0 GB/s at 64M, 15.0 GB/s at 96M.",
                                        NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, known, NULL);
    m.col.values[0] = 8 << 20;
    m.col.values[1] = 32 << 20;
    put(&m, 0, 0, 9000);
    snprintf(m.name, sizeof m.name, "write"); // which goes around the caches
    static const char *const around[] = {"write, 1 thread: 9.0 GB/s at 8M, 15.0 GB/s at 96M.",
                                         NULL},
                             *const as_caches[] = {"L3", NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, around, as_caches);
    matrix_fini(&m);
}

static void test_copies(void)
{
    struct matrix m[2] = {0};
    for (int k = 0; k < 2; k++) {
        shaped(&m[k], BENCHMARK_BANDWIDTH, "sweep-memcpy", k ? "streaming" : "memcpy", 2, 2);
        for (int i = 0; i < 4; i++)
            put(&m[k], i / 2, i % 2, 20000 - 4000 * i);
        m[k].row.values[1] = m[k].col.values[1] = 1;
    }
    static const char *const says[] = {
        "memcpy: best is node 0 to node 0 with 20.0 GB/s, read and written; worst is node 1 to "
        "node 1 with 8.0 GB/s, 40 % of that.",
        "streaming: best is node 0", NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 2, says, NULL);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    shaped(&m[0], BENCHMARK_BANDWIDTH, "sweep-memcpy", "memcpy", 1, 1);
    put(&m[0], 0, 0, 12000);
    static const char *const one[] = {"memcpy: node 0 to node 0 12.0 GB/s, read and written.",
                                      NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 1, one, NULL);
    matrix_fini(&m[0]);
}

static void test_atomics(void)
{
    static const char *const names[] = {"time", "rate", "fairness", "share", "handover"};
    static const double values[][2] = {{5, 50}, {200, 40}, {1, 0.99}, {100, 90}, {100, 100}};
    struct matrix m[5] = {0};
    for (int i = 0; i < 5; i++) {
        bool handover = i == 4;
        shaped(&m[i], BENCHMARK_ATOMICS, NULL, names[i], handover ? 1 : 2, handover ? 2 : 3);
        for (int r = 0; r < m[i].row.n; r++) {
            m[i].row.values[r] = r || handover ? 4 : 1;
            for (int c = 0; c < m[i].col.n; c++)
                put(&m[i], r, c, values[i][r]);
        }
        for (int c = 0; c < m[i].col.n; c++)
            m[i].col.values[c] = (handover ? OPERATION_TAS : OPERATION_EXCHANGE) + c;
    }
    put(&m[1], 1, 1, 60);
    put(&m[4], 0, 1, 80);
    static const char *const says[] = {
        "exchange: 5 ns by one rank. 4 ranks on one line: 50 ns each, 40 million per second "
        "together. Jain's index is 0.99, the least rank gets 90 % of what the greatest gets.",
        "ticket: 5 ns by one rank. 4 ranks on one line: 50 ns each, 40 million per second "
        "together, "
        "handed over every 80 ns.",
        "With 4 ranks, tas is taken most often (60 million times per second), and ticket is handed "
        "over fastest (80 ns).",
        NULL};
    static const char *const unfair[] = {"unfair", NULL};
    check_report(BENCHMARK_ATOMICS, m, 5, says, unfair);
    put(&m[2], 1, 1, 0.5);
    static const char *const tas[] = {
        "tas is unfair: 4 ranks share it as if 2.0 of them had all turns.", NULL};
    check_report(BENCHMARK_ATOMICS, m, 5, tas, NULL);
    for (int i = 0; i < 4; i++)
        m[i].row.n = 1;
    static const char *const alone[] = {"exchange: 5 ns by one rank.", NULL};
    static const char *const shared[] = {"on one line:", "most often", NULL};
    check_report(BENCHMARK_ATOMICS, m, 4, alone, shared);
    for (int i = 0; i < 5; i++)
        matrix_fini(&m[i]);
}

static void test_lines(void)
{
    struct matrix m = {0};
    shaped(&m, BENCHMARK_C2C, NULL, "load_lines", 2, 3);
    for (int k = 0; k < 6; k++)
        put(&m, k / 3, k % 3, 50 + k % 3);
    m.row.values[0] = axis_pair(0, 1);
    m.row.values[1] = axis_pair(0, 2);
    static const char *const alike[] = {
        "load: the cache lines of a pair differ by less than 10 %, or by less than the noise; most "
        "(4.0 % over 3 lines) those of ranks 0 and 1.",
        NULL};
    static const char *const matters[] = {"it matters where", NULL};
    check_report(BENCHMARK_C2C, &m, 1, alike, matters);
    put(&m, 1, 2, 80);
    static const char *const says[] = {
        "load: it matters where a cache line is, for 1 of 2 pairs. Ranks 0 and 2 take 50 ns on the "
        "fastest of 3 lines, 80 on the slowest (1.60 times).",
        NULL};
    check_report(BENCHMARK_C2C, &m, 1, says, NULL);
    matrix_at(&m, 1, 2)->v[CELL_LO] = 49;
    check_report(BENCHMARK_C2C, &m, 1, (const char *const[]){NULL}, matters);
    matrix_fini(&m);
}

// A row a pair instead of a table.
static void test_listed_pairs(void)
{
    struct matrix m = {0};
    shaped(&m, BENCHMARK_C2C, "classes", "cas", 6, 1);
    static const int pairs[6][2] = {{0, 1}, {2, 3}, {0, 2}, {0, 3}, {1, 2}, {1, 3}};
    for (int i = 0; i < 6; i++) {
        m.row.values[i] = axis_pair(pairs[i][0], pairs[i][1]);
        put(&m, i, 0, i < 2 ? 50 : 200);
    }
    m.col.values[0] = 64;
    put(&m, 5, 0, 400);
    static const char *const says[] = {
        "cas, same L3: typically 50 ns, 50 to 50 over 2 pairs",
        "cas, same socket: typically 200 ns, 200 to 400 over 4 pairs",
        "ranks 1 and 3 have 400 ns, where 200 is typical of their class", NULL};
    check_report(BENCHMARK_C2C, &m, 1, says, NULL);
    matrix_fini(&m);
}

static void test_pairs(void)
{
    struct matrix m = {0}, p = {0};
    shaped(&m, BENCHMARK_C2C, NULL, "cas", 4, 4);
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++)
            put(&m, i, j, i / 2 == j / 2 ? 50 : 200 + i);
    static const char *const says[] = {"cas, same L3: typically 50 ns, 50 to 50 over 2 pairs",
                                       "cas, same socket: typically 200.5 ns", NULL};
    static const char *const not [] = {"typical of their class", NULL};
    check_report(BENCHMARK_C2C, &m, 1, says, not );
    put(&m, 0, 3, 400);
    static const char *const odd[] = {"ranks 0 and 3 have 400 ns", NULL};
    check_report(BENCHMARK_C2C, &m, 1, odd, NULL);
    test_listed_pairs();
    test_lines();
    shaped(&p, BENCHMARK_PINGPONG, NULL, "pingpong", 1, 2);
    p.row.values[0] = axis_pair(0, 2);
    p.col.values[1] = 1 << 20;
    put(&p, 0, 0, 0.4);
    put(&p, 0, 1, 100);
    static const char *const talk[] = {
        "Ranks 0 and 2 (same socket): a message of 0 bytes takes 0.40 µs, one of 1M 100 µs, which "
        "is 10.5 GB/s",
        NULL};
    check_report(BENCHMARK_PINGPONG, &p, 1, talk, NULL);
    p.col.values[1] = 2;
    put(&p, 0, 1, 0.5);
    static const char *const little[] = {"takes 0.40 µs, one of 2 bytes 0.5 µs, which is 4.0 MB/s.",
                                         NULL};
    check_report(BENCHMARK_PINGPONG, &p, 1, little, NULL);
    matrix_fini(&p);
    shaped(&p, BENCHMARK_PINGPONG, NULL, "pingpong", 1, 1);
    p.row.values[0] = axis_pair(0, 2);
    put(&p, 0, 0, 0.4);
    static const char *const nothing[] = {"a message of 0 bytes takes 0.40 µs.", NULL},
                             *const rates[] = {"which is", NULL};
    check_report(BENCHMARK_PINGPONG, &p, 1, nothing, rates);
    matrix_fini(&m);
    matrix_fini(&p);
}

static void check_memory_level(const struct report *r)
{
    CLEANUP_BUF struct buf json = BUF_INIT;
    struct jsonw w = jsonw_to(&json);
    report_write_json(r, &w, NULL);
    const char *memory = strstr(buf_text(&json), "\"name\":\"memory\"");
    CHECK(memory && strstr(memory, "\"listed_bytes\":") &&
              str_starts(strstr(memory, "\"listed_bytes\":"), "\"listed_bytes\":0,"),
          "memory is no cache that the kernel lists");
}

// Of a run whose topology is not known; `from` has a rank without huge pages.
static void check_lines_alone(const struct report_source *from)
{
    struct report_source s = *from;
    CLEANUP_BUF struct buf lines = BUF_INIT;
    s.topology = NULL;
    CHECK(hierarchy_write_lines(&s, &lines, NULL) == 0 &&
              strstr(buf_text(&lines), "rank 0: L1 5 cycles, L2 14, L3 50"),
          "without a topology levels are counted");
    const struct rank_info huge[] = {{.rank = 0, .huge_share = 1}, {.rank = 1, .huge_share = 1}};
    s.ranks = huge;
    s.n_ranks = 2;
    s.base_page = 16384;
    buf_reset(&lines);
    CHECK(hierarchy_write_lines(&s, &lines, NULL) == 0 &&
              strstr(buf_text(&lines), "rank 0: L1 5 cycles, L2 14, L3 50"),
          "nor is one left out that is as large as the TLB's reach, where pages are huge: %s",
          buf_text(&lines));
}

// A machine whose three caches the kernel lists, and one that hides the last.
static void test_hierarchy(void)
{
    static struct topo_cache listed[] = {{.level = 1, .bytes = 32 << 10},
                                         {.level = 2, .bytes = 1 << 20},
                                         {.level = 3, .bytes = 32 << 20}};
    static struct topo_cache fewer[] = {{.level = 1, .bytes = 32 << 10},
                                        {.level = 2, .bytes = 1 << 20}};
    struct topology t = {.n_caches = 3, .caches = listed};
    static const char *const says[] = {
        "Rank 1: L1 5 cycles, L2 14, L3 50, walk +22.3 ns, memory 96.0 ns, hop +63.0 ns, 12.0 "
        "loads "
        "at once (4.00 GHz).",
        "L2: 3.51 ns (14.1 cycles), up to 1.0 MiB.",
        "Beyond, a load takes 9",
        "The TLB holds 3",
        "A core has 12.0 loads of memory under way at once: 8.0 ns per load instead of 96.0.",
        "8.0 at 64 B (× 12.0)",
        "128 MiB, reaches only 84 % of 91.0 ns, the median latency above 256 MiB, up to 512 MiB. "
        "Use size=256M",
        NULL};
    struct matrix m[HIERARCHY_PARTS] = {0};
    struct report_source s = {.benchmark = BENCHMARK_HIERARCHY,
                              .matrices = m,
                              .n = hierarchy_matrices(m, 2),
                              .topology = &t};
    struct report *r = report_new(&s, NULL, NULL);
    struct buf md = BUF_INIT;
    report_write_markdown(r, &md);
    for (int i = 0; says[i]; i++)
        CHECK(strstr(buf_text(&md), says[i]), "hierarchy: \"%s\"", says[i]);
    check_memory_level(r);
    report_free(r);
    buf_reset(&md);
    t = (struct topology){.n_caches = 2, .caches = fewer};
    r = report_new(&s, NULL, NULL);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "The kernel lists no such cache"),
          "a cache that the kernel does not list");
    report_free(r);
    t.n_caches = 1;
    r = report_new(&s, NULL, NULL);
    buf_reset(&md);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "Up to 1.0 MiB a load takes"),
          "1 MiB is no reach of 64 base pages");
    report_free(r);
    struct fingerprint facts = {0};
    facts_add(&facts.config, "page_size", "16K");
    s.machine = &facts;
    r = report_new(&s, NULL, NULL);
    buf_reset(&md);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "The step at 1.0 MiB is where translations of base pages run out"),
          "but it is of pages of 16 KiB");
    report_free(r);
    s.machine = NULL;
    t.n_caches = 2;
    const struct rank_info poor = {.rank = 1, .huge_share = 0.25};
    s.ranks = &poor;
    s.n_ranks = 1;
    buf_reset(&md);
    r = report_new(&s, NULL, NULL);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "huge pages for 25 % of the memory only (rank 1)") &&
              !strstr(buf_text(&md), "holds 32 huge"),
          "a kernel without huge pages to give");
    report_free(r);
    check_lines_alone(&s);
    for (int i = 0; i < s.n; i++)
        matrix_fini(&m[i]);
    buf_free(&md);
}

static void test_hierarchy_kinds(void)
{
    struct topo_cpu cores[] = {{.os = 0, .kind = 1}, {.os = 1, .kind = 0}};
    const struct topology t = {.n_cpus = 2, .cpus = cores, .n_kinds = 2};
    const struct rank_info on[] = {{.rank = 0, .cpu = 0, .huge_share = 1},
                                   {.rank = 1, .cpu = 1, .huge_share = 1}};
    struct matrix m[HIERARCHY_PARTS] = {0};
    const struct report_source s = {.benchmark = BENCHMARK_HIERARCHY,
                                    .matrices = m,
                                    .n = hierarchy_matrices(m, 2),
                                    .topology = &t,
                                    .ranks = on,
                                    .n_ranks = 2};
    CLEANUP_BUF struct buf md = BUF_INIT;
    struct report *r = report_new(&s, NULL, NULL);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "What follows is of the 1 of 2 ranks on the strongest kind"),
          "of two kinds of cores one counts");
    report_free(r);
    for (int i = 0; i < s.n; i++)
        matrix_fini(&m[i]);
}

// The core of rank 1 and node 2 are odd.
static void test_scan(void)
{
    struct matrix m[3] = {0};
    shaped(&m[0], BENCHMARK_SCAN, NULL, SCAN_LATENCY, 4, 2);
    shaped(&m[1], BENCHMARK_SCAN, NULL, SCAN_OF_CORE, 4, AXIS_ASPECTS);
    shaped(&m[2], BENCHMARK_SCAN, NULL, SCAN_OF_NODE, 2, ASPECT_TRANSFER);
    m[0].col.values[0] = 1 << 18;
    m[0].col.values[1] = 1 << 26;
    m[2].row.values[1] = 2;
    for (int i = 1; i < 3; i++) {
        for (int a = 0; a < m[i].col.n; a++)
            m[i].col.values[a] = a;
        for (int k = 0; k < m[i].row.n * m[i].col.n; k++)
            m[i].cells[k].v[CELL_MEDIAN] = 100.5, m[i].cells[k].v[CELL_N] = 9,
            m[i].cells[k].v[CELL_LO] = 99, m[i].cells[k].v[CELL_HI] = 101,
            m[i].cells[k].v[CELL_SD] = 1;
    }
    put(&m[0], 1, 0, 8.1);
    struct cell *core = matrix_at(&m[1], 1, ASPECT_L2), *node = matrix_at(&m[2], 1, 2);
    core->v[CELL_MEDIAN] = 111, core->v[CELL_LO] = 110, core->v[CELL_HI] = 112;
    node->v[CELL_MEDIAN] = 120, node->v[CELL_LO] = 118, node->v[CELL_HI] = 121;
    static const char *const says[] = {
        "The node 2: +20.0 % in bandwidth, +18.0 to +21.0 %, measured 9 times.",
        "+11.0 % in latency in L2 (8.1 ns; its peers 7.297 ± 0.073), +10.0 to +12.0 %",
        "Compared with their peers: 2 nodes, 4 cores. Of what is not odd, the ", NULL};
    static const char *const missing[] = {"0 of", NULL};
    check_report(BENCHMARK_SCAN, m, 3, says, missing);
    core->v[CELL_LO] = node->v[CELL_LO] = 99;
    static const char *const nothing[] = {"0 of 22 comparisons with peers found anything odd",
                                          "the node 2 deviates most: +20.0 % in bandwidth", NULL};
    static const char *const named[] = {"measured", NULL};
    check_report(BENCHMARK_SCAN, m, 3, nothing, named);
    node->v[CELL_CONVERGED] = 0;
    static const char *const doubtful[] = {"1 of 22 comparisons deviated, and too few repetitions "
                                           "confirmed it: raise the budget, or visits.",
                                           NULL};
    check_report(BENCHMARK_SCAN, m, 3, doubtful, missing);
    for (int i = 0; i < 3; i++)
        matrix_fini(&m[i]);
}

static void test_pagefault(void)
{
    struct matrix m[2] = {0};
    shaped(&m[0], BENCHMARK_PAGEFAULT, NULL, "4k", 2, 1);
    shaped(&m[1], BENCHMARK_PAGEFAULT, NULL, "thp", 2, 1);
    for (int i = 0; i < 2; i++) {
        m[i].row.values[0] = 1;
        m[i].row.values[1] = 4;
        put(&m[i], 0, 0, i ? 65536 : 512);
        put(&m[i], 1, 0, i ? 131072 : 768);
    }
    static const char *const says[] = {
        "4 KiB pages on node 0: 1 thread takes 512.0 ns per page (8.0 GB/s); each of 4 threads at "
        "once takes 768.0 ns, × 1.50 (21.3 GB/s together).",
        "2 MiB pages on node 0: 1 thread takes 65536.0 ns per page (32.0 GB/s)", NULL};
    static const char *const missing[] = {"did not give", NULL};
    for (int i = 0; i < 4; i++)
        ranks[i].huge_share = 1;
    check_report(BENCHMARK_PAGEFAULT, m, 2, says, missing);
    struct matrix moved = {0};
    shaped(&moved, BENCHMARK_PAGEFAULT, "migrate", "migrate", 2, 1);
    for (int i = 0; i < 2; i++) {
        moved.row.values[i] = 1 + i;
        put(&moved, i, 0, 1024);
    }
    moved.col.values[0] = axis_pair(0, 2);
    static const char *const path[] = {
        "4 KiB pages moved from node to node 0->2: 1 thread takes 1024.0 ns per page (4.0 GB/s)",
        NULL};
    check_report(BENCHMARK_PAGEFAULT, &moved, 1, path, missing);
    matrix_fini(&moved);
    const struct rank_info rank = {.rank = 3, .huge_share = 0.25};
    const struct report_source s = {
        .benchmark = BENCHMARK_PAGEFAULT, .matrices = m, .n = 2, .ranks = &rank, .n_ranks = 1};
    struct report *r = report_new(&s, NULL, NULL);
    struct buf md = BUF_INIT;
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "did not give all huge pages (rank 3: 25 %"),
          "missing huge pages are reported");
    buf_free(&md);
    report_free(r);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

static void test_touch_and_load(void)
{
    struct matrix m = {0}, l[2] = {0};
    shaped(&m, BENCHMARK_FIRSTTOUCH, NULL, "access", 4, 3);
    for (int i = 0; i < 4; i++) {
        put(&m, i, ACCESS_OWN, 10);
        put(&m, i, ACCESS_SHARED, i / 2 ? 15 : 10);
        put(&m, i, ACCESS_CROSSED, i == 3 ? 20 : 10);
    }
    static const char *const says[] = {
        "typically takes 10.00 ns per access", "(shared) takes 12.50 ns, × 1.25",
        "(crossed) takes 10.00 ns, × 1.00 of a rank's own; at most × 2.00 (rank 3)", NULL};
    check_report(BENCHMARK_FIRSTTOUCH, &m, 1, says, NULL);
    shaped(&l[0], BENCHMARK_LOADED, NULL, "latency", 1, 5);
    shaped(&l[1], BENCHMARK_LOADED, NULL, "bandwidth", 1, 5);
    static const double ns[] = {100, 102, 105, 110, 300}, mbps[] = {0, 5000, 10000, 15000, 20000};
    for (int j = 0; j < 5; j++) {
        l[0].col.values[j] = l[1].col.values[j] = 25 * j;
        put(&l[0], 0, j, ns[j]);
        put(&l[1], 0, j, mbps[j]);
    }
    static const char *const knee[] = {"100.0 ns idle, 148.0 ns at 80 % of the highest bandwidth, "
                                       "300.0 ns at full load (20.0 GB/s, × 3.00); "
                                       "the knee is at 75 % of load, 15.0 GB/s and 110.0 ns",
                                       NULL};
    check_report(BENCHMARK_LOADED, l, 2, knee, NULL);
    put(&l[0], 0, 4, 112);
    static const char *const flat[] = {"no distinct knee", NULL};
    check_report(BENCHMARK_LOADED, l, 2, flat, NULL);
    snprintf(l[0].name, sizeof l[0].name, "latency_3r1w");
    snprintf(l[1].name, sizeof l[1].name, "bandwidth_3r1w");
    for (int i = 0; i < 2; i++) {
        snprintf(l[i].row.name, sizeof l[i].row.name, "path");
        l[i].row.values[0] = axis_pair(0, 2);
    }
    static const char *const path[] = {"Node 0 to node 2, 3:1: 100.0 ns idle", NULL};
    check_report(BENCHMARK_LOADED, l, 2, path, NULL);
    l[0].row.values[0] = l[1].row.values[0] = axis_pair(0, target_interleaved(5, false));
    static const char *const wide[] = {"Node 0 to nodes 0,2, interleaved, 3:1: 100.0 ns idle",
                                       NULL};
    check_report(BENCHMARK_LOADED, l, 2, wide, NULL);
    matrix_fini(&m);
    matrix_fini(&l[0]);
    matrix_fini(&l[1]);
}

// ---- Latency: shared caches and pairs of runs ---------------------------------------------------

int main(void)
{
    build_machine();
    test_claims();
    test_modules_of_a_part();
    test_modules_of_loaded();
    test_bandwidth();
    test_bandwidth_levels();
    test_copies();
    test_atomics();
    test_pairs();
    test_hierarchy();
    test_hierarchy_kinds();
    test_scan();
    test_pagefault();
    test_touch_and_load();
    return tap_done();
}
