// SPDX-License-Identifier: Apache-2.0
// Whole benchmarks with ranks that are threads and messages of ours: what they compute from what
// they time, and what a chaser does with what was asked for.
#include "bench/benchmarks/table.h"
#include "bench/memory/placement.h"
#include "bench/session/session.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/session/chaser.h"
#include "model/method.h"
#include "tests/unit/bench/follow.h"
#include "tests/unit/tap.h"

enum { RANKS = 2, WAY_NS = 50000, MESSAGE_MAX = 16, ROUNDS = 50 };

// One message at a time, from each rank to the other; each way takes WAY_NS.
static struct mailbox {
    atomic_bool full;
    unsigned char bytes[MESSAGE_MAX];
} mailboxes[RANKS];
static int damaged; // size of the messages that arrive with a wrong byte

static int fake_send(const struct comm *c, int to, const void *bytes, size_t n, struct err *err)
{
    struct mailbox *m = &mailboxes[to];
    (void)c, (void)err;
    while (atomic_load(&m->full))
        sched_yield();
    memcpy(m->bytes, bytes, n);
    if (n && n == (size_t)damaged)
        m->bytes[n - 1] ^= 1;
    atomic_store(&m->full, true);
    return 0;
}

static int fake_receive(const struct comm *c, int from, void *bytes, size_t n, struct err *err)
{
    struct mailbox *m = &mailboxes[c->rank];
    (void)from, (void)err;
    while (!atomic_load(&m->full))
        sched_yield();
    for (uint64_t begun = clock_mono_ns(); clock_mono_ns() - begun < WAY_NS;)
        ;
    memcpy(bytes, m->bytes, n);
    atomic_store(&m->full, false);
    return 0;
}

static const struct comm_ops fake = {"fake", NULL, NULL, fake_send, fake_receive};

struct rank {
    pthread_t thread;
    struct comm comm;
    const struct options *options;
    struct emit emit;
    int outcome;
    struct err err;
};

static void *run(void *context)
{
    struct rank *r = context;
    r->outcome = session_run(&r->comm, r->options, r->comm.rank ? NULL : &r->emit,
                             benchmark_runs[r->options->spec.benchmark], &r->err);
    return NULL;
}

static void run_all(struct rank *ranks, const struct options *o)
{
    struct board *board = calloc(1, board_bytes(RANKS));
    if (!board || emit_open(&ranks[0].emit, o, &ranks[0].err) < 0)
        abort();
    // Ranks are processes; as threads they would fill libnuma's table of nodes together.
    place_wanted(&(struct place){0});
    for (int i = 0; i < RANKS; i++) {
        ranks[i].comm = (struct comm){.ops = &fake, .rank = i, .size = RANKS, .board = board};
        ranks[i].options = o;
        atomic_store(&mailboxes[i].full, false);
        pthread_create(&ranks[i].thread, NULL, run, &ranks[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    emit_fini(&ranks[0].emit);
    free(board);
}

// The smallest of all cells' smallest samples: what a busy machine cannot make larger.
static double least_of(const char *path, int *cells)
{
    char line[RECORD_LINE_MAX];
    double least = INFINITY;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        struct record r = {0};
        if (record_parse(&r, line, strcspn(line, "\n"), NULL) < 0)
            continue;
        if (r.kind == RECORD_CELL) {
            ++*cells;
            least = fmin(least, r.cell.cell.v[CELL_MIN]);
        }
        record_fini(&r);
    }
    if (f)
        fclose(f);
    return least;
}

static void pingpong(void)
{
    char path[] = "/tmp/numaprobe-session-XXXXXX";
    struct options o = {0};
    struct rank ranks[RANKS] = {0};
    int fd = mkstemp(path), cells = 0;
    spec_init(&o.spec, BENCHMARK_PINGPONG);
    o.spec.message_max = MESSAGE_MAX;
    o.spec.repetitions = 20;
    snprintf(o.spec.pairs, sizeof o.spec.pairs, "0-1");
    snprintf(o.channel, sizeof o.channel, "%s", path);
    double least_us = INFINITY;
    // Others on the CPUs only add: on a busy machine it takes some rounds until both ranks had one.
    for (int i = 0; i < ROUNDS && least_us >= 1.8 * WAY_NS / 1e3; i++) {
        cells = 0;
        run_all(ranks, &o);
        least_us = fmin(least_us, least_of(path, &cells));
    }
    CHECK(ranks[0].outcome == 0 && ranks[1].outcome == 0 && cells == 6, "%d sizes are measured %s",
          cells, ranks[0].err.text);
    CHECK(least_us >= WAY_NS / 1e3 && least_us < 1.8 * WAY_NS / 1e3,
          "half of the round trip: %.1f us for a way of %d", least_us, WAY_NS / 1000);
    damaged = 4;
    run_all(ranks, &o);
    CHECK(ranks[0].outcome < 0 && ranks[1].outcome < 0 &&
              strstr(ranks[1].err.text, "of a message of 4 arrived damaged"),
          "a damaged byte ends it in all ranks: %s", ranks[0].err.text);
    close(fd);
    unlink(path);
}

static uint64_t lap(const struct chain *c)
{
    char *at = c->base;
    uint64_t hops = 0;
    do {
        memcpy(&at, (void *)at, sizeof at);
        hops++;
    } while (at != c->base && hops <= c->links);
    return hops;
}

static void chaser(void)
{
    enum { MIB = 1 << 20 };
    struct board *board = calloc(1, board_bytes(1));
    struct arena a = {.base = aligned_alloc(4096, 4 * MIB), .bytes = 4 * MIB};
    struct comm comm = {.size = 1, .board = board};
    struct spec spec;
    struct err err = {0};
    struct chaser c = {0};
    spec_init(&spec, BENCHMARK_LATENCY);
    spec.stride = 256;
    spec.locality = 65536;
    struct session s = {.comm = &comm, .board = board, .spec = &spec, .cache = {64, 8 * MIB}};
    if (!board || !a.base)
        abort();
    s.slot = &board->slot[0];
    CHECK(chaser_init(&c, &s, MIB, 2, &err) == 0, "a chaser %s", err.text);
    chaser_build(&c, &a, MIB, 0, 2);
    CHECK(c.chain.stride == 256 && c.chain.links == 4096 && c.chain.block == 256 &&
              lap(&c.chain) == 4096,
          "a chain with the stride and locality asked for");
    chaser_warm(&c);
    CHECK(s.slot->phase_ms[PHASE_WARMUP] >= 20, "a small chain is warmed up for 20 ms");
    s.cache.llc_bytes = 64 * MIB;
    uint64_t lines = s.cache.llc_bytes / 64, most = 4 * lines;
    static const struct {
        double llcs;
        uint64_t loaded, walked; // 64ths of the cache's lines
    } cases[] = {{0.5, 0, 32}, {1, 0, 64}, {2, 64, 64}, {3.5, 160, 64}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct warm_links n = chaser_warm_links(&s, (uint64_t)(cases[i].llcs * (double)lines));
        CHECK(n.loaded == cases[i].loaded * lines / 64 && n.walked == cases[i].walked * lines / 64,
              "%.1f last-level caches: a lap, of which one cache is walked", cases[i].llcs);
    }
    CHECK(chaser_warm_links(&s, most).loaded == lines - most / 64 &&
              chaser_warm_links(&s, 64 * lines).loaded == 0 &&
              chaser_warm_links(&s, 64 * lines).walked == WARM_CHUNK,
          "from four on what fills one is loaded, less 1/64, and some links are walked");
    struct chain first = c.chain;
    chaser_build(&c, &a, MIB, 1, 2);
    CHECK(c.chain.base == a.base + 2 * MIB && first.base == a.base,
          "another visit is on another part of the arena");
    CHECK(chain_expect(&first, 0, 1) != chain_expect(&c.chain, 0, 1) ||
              chain_expect(&first, 1, 1) != chain_expect(&c.chain, 1, 1),
          "and in another order");
    chaser_fini(&c);
    spec.stride = 32;
    CHECK(chaser_init(&c, &s, MIB, 1, &err) < 0 && strstr(err.text, "cache line"),
          "links that share a line are refused: %s", err.text);
    spec.stride = 4096;
    CHECK(chaser_init(&c, &s, 16384, 1, &err) < 0 && strstr(err.text, "8 links"),
          "too few links are refused: %s", err.text);
    free(a.base);
    free(board);
}

// Records of this kind whose line has the word.
static int lines_with(const char *path, const char *kind, const char *word)
{
    char line[RECORD_LINE_MAX];
    int n = 0;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, kind) && strstr(line, word);
    if (f)
        fclose(f);
    return n;
}

static void check_pagefault(const char *path, const struct rank *ranks, double least, int cells)
{
    CHECK(ranks[0].outcome == 0 && ranks[1].outcome == 0 && cells == 4,
          "4k and thp by 1 and 2 threads: %d cells %s", cells, ranks[0].err.text);
    CHECK(least > 20, "no page is zeroed in %.1f ns", least);
    CHECK(lines_with(path, "huge_pages", "2 of 2 thp cells lack huge pages: 0 %") == 1,
          "the run's condition counts the cells");
    CHECK(lines_with(path, "\"rec\":\"rank\"", "\"pages_got\":\"4k\"") == RANKS &&
              lines_with(path, "\"rec\":\"rank\"", "\"mem_share\":1") == RANKS,
          "each rank states the pages that it got, all on their node");
}

// A kernel that has no huge pages to give: the run reports it, cell and rank.
static void pagefault(void)
{
    char path[] = "/tmp/numaprobe-session-XXXXXX";
    struct options o = {0};
    struct rank ranks[RANKS] = {0};
    int fd = mkstemp(path), cells = 0;
    spec_init(&o.spec, BENCHMARK_PAGEFAULT);
    o.spec.passes = 3;
    snprintf(o.spec.size, sizeof o.spec.size, "4");
    snprintf(o.spec.targets, sizeof o.spec.targets, "0");
    snprintf(o.channel, sizeof o.channel, "%s", path);
    int off = prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    if (getenv("NUMAPROBE_EMULATED")) // it has none, and no such switch
        SKIP("user-mode emulation has no huge pages");
    else
        CHECK_INT(off, 0, "huge pages are off");
    run_all(ranks, &o);
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    double least = least_of(path, &cells);
    bool usual = sysconf(_SC_PAGESIZE) == 4096;
    if (!usual)
        CHECK(ranks[0].outcome < 0 && strstr(ranks[0].err.text, "needs base pages of 4 KiB"),
              "refused with other base pages: %s", ranks[0].err.text);
    else
        check_pagefault(path, ranks, least, cells);
    close(fd);
    unlink(path);
}

// All targets of interleaved memory have a place, and all their nodes are in the condition's text.
static void spreads(void)
{
    CLEANUP_MEM struct spreads *many = calloc(1, sizeof *many);
    struct rank_info got = {.n_nodes = 2, .nodes = {{.node = 0, .pages = 3}, {.node = 5}}};
    for (int k = 0; many && k < 2 * SPEC_TARGETS_MAX; k++) {
        got.nodes[1].pages = k % SPEC_TARGETS_MAX;
        spreads_add(many, target_interleaved(2u + (unsigned)(k % SPEC_TARGETS_MAX), false), &got);
    }
    CHECK(many && many->n == SPEC_TARGETS_MAX && many->list[40].pages[0] == 6 &&
              many->list[40].pages[5] == 80,
          "as many targets as a run may have");
    char text[SPREAD_TEXT_ROOM];
    struct spread two = {.pages = {100, 300}}, all = {0};
    spread_text(&two, text);
    CHECK_STR(text, "25.0 % on node 0, 75.0 % on node 1", "two nodes");
    for (int node = 0; node < TARGET_NODES; node++)
        all.pages[node] = node % 2 ? 1000 : 1100;
    spread_text(&all, text);
    CHECK_STR(text, "3.4 to 3.7 % on each of nodes 0-27", "more than fit, one by one");
}

int main(void)
{
    spreads();
    pagefault();
    chaser();
    pingpong();
    return tap_done();
}
