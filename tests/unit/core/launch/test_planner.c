// SPDX-License-Identifier: Apache-2.0
// Plans of the benchmarks that need more than ranks: targets, load, pairs, memory.
#include "core/launch/planner.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/admission/checks.h"
#include "core/node/hwloc.h"
#include "core/node/hwloc_stored.h"
#include "model/spec_values.h"
#include "model/target.h"
#include "tests/unit/core/node/hybrid_xml.h"
#include "tests/unit/core/node/memory_only.h"
#include "tests/unit/core/node/synthetic.h"
#include "tests/unit/tap.h"

// Two sockets, each a node with two L3 of two cores with two threads: CPU 4n is the first of L3 n.
static const char machine[] = "pack:2 [numa(memory=4294967296)] l3:2(size=33554432) core:2 pu:2";

static int make(struct plan *p, const struct topology *t, const char *request, struct err *err)
{
    struct spec s;
    CLEANUP_JSON struct json *j = json_parse(request, strlen(request), err);
    return j && spec_from_json(&s, j, NULL, err) == 0 ? plan_make(p, &s, t, err) : -1;
}

static void expect(const struct topology *t, const char *request, const char *want)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf got = BUF_INIT;
    char targets[80] = "";
    if (make(&p, t, request, &err) < 0)
        buf_fmt(&got, "%s: %s", err.member, err.text);
    for (int i = 0; i < p.n_ranks; i++)
        buf_fmt(&got, "%s%d/%d", i ? " " : "", p.ranks[i].cpu, p.ranks[i].mem_node);
    targets_write(p.targets, p.n_targets, targets, sizeof targets);
    if (p.n_ranks)
        buf_fmt(&got, " targets %s load %s MiB %lld %lld", targets, p.load_cpus,
                (long long)(p.bytes_per_rank >> 20), (long long)(p.bytes_per_target >> 20));
    CHECK_STR(buf_text(&got), want, "%s", request);
}

static void refuse(const struct topology *t, const char *request, const char *member,
                   const char *word)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(make(&p, t, request, &err) < 0 && strcmp(err.member, member) == 0 &&
              strstr(err.text, word),
          "%s: %s: %s", request, err.member, err.text);
}

static void memory(struct topology *t)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct admission a;
    struct err err = {0};
    if (make(&p, t, "{\"benchmark\":\"matrix\",\"size\":\"64G\"}", &err) < 0)
        abort();
    t->this_system = true; // of another machine nothing but that is said
    memory_only(&a, &p, t, "");
    bool told = false;
    for (int i = 0; i < a.n; i++)
        told |= a.list[i].kind == ADMIT_MEMORY;
    CHECK(told, "a target that cannot hold the arrays is a blocker");
    plan_fini(&p);
    if (make(&p, t, "{\"benchmark\":\"firsttouch\",\"size\":\"64G\"}", &err) < 0)
        abort();
    int64_t was = t->nodes[1].memory_bytes;
    t->nodes[1].memory_bytes = 0;
    memory_only(&a, &p, t, "");
    t->nodes[1].memory_bytes = was;
    for (int i = 0; i < a.n; i++)
        CHECK(!strstr(a.list[i].text, "node 1;"),
              "a node without memory is not what a first touch takes from: %s", a.list[i].text);
}

// Base pages of 64 KiB, transparent huge pages of 512 MiB (arm64): a rank's memory is what the
// benchmark maps.
static void large_pages(struct topology *t)
{
    t->pages = (struct page_sizes){65536, 512 << 20, 512 << 20};
    expect(t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"size\":\"1M\",\"pages\":\"4k\"}",
           "0/0 targets  load  MiB 1 0");
    expect(t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"size\":\"1M\"}",
           "0/0 targets  load  MiB 1 0");
    expect(t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"size\":\"600M\"}",
           "0/0 targets  load  MiB 1024 0");
    expect(t, "{\"benchmark\":\"matrix\",\"targets\":\"1\",\"size\":\"600M\"}",
           "6/0 14/1 targets 1 load  MiB 0 1024");
    expect(t, "{\"benchmark\":\"hierarchy\",\"size\":\"600M\"}",
           "6/0 14/1 targets 0-1 load  MiB 0 1280");
    t->pages = (struct page_sizes){0};
}

// Whole pages a rank: of 1 GiB, where a part of an array is 12 MiB.
static void reserved_pages(struct topology *t)
{
    expect(t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"size\":\"3M\",\"pages\":\"2M\"}",
           "0/0 targets  load  MiB 4 0");
    expect(t, "{\"benchmark\":\"matrix\",\"targets\":\"1\",\"pages\":\"1G\"}",
           "6/0 14/1 targets 1 load  MiB 0 1024");
    expect(t, "{\"benchmark\":\"bandwidth\",\"targets\":\"1\",\"size\":\"48M\",\"pages\":\"1G\"}",
           "6/0 0/0 2/0 4/0 14/1 8/1 10/1 12/1 targets 1 load  MiB 0 4096");
    expect(t, "{\"benchmark\":\"bandwidth\",\"sweep\":\"own\",\"size\":\"48M\",\"pages\":\"1G\"}",
           "6/0 0/0 2/0 4/0 14/1 8/1 10/1 12/1 targets  load  MiB 1024 0");
}

// Every second CPU of 512, which no range shortens: the list is whole.
static void many_loaders(void)
{
    static const char request[] = "{\"benchmark\":\"latency\",\"ranks\":1,\"load\":\"read\"}";
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 core:256 pu:2");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    CHECK(make(&p, &t, request, &err) == 0 &&
              str_to_ids(p.load_cpus, false, 1024, "", &ids, &n, &err) == 0 && n == 255 &&
              ids[0] == 0 && ids[254] == 508,
          "255 loaders, %d in the list: ... %s", n, p.load_cpus + strlen(p.load_cpus) / 10 * 9);
}

// Of one array, for the memory of all three: four times the caches of the ranks that work together.
static void expect_target(const char *text, const char *request, int64_t want_mib)
{
    struct topology t CLEANUP(topology_fini) = synthetic(text);
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(make(&p, &t, request, &err) == 0 && p.bytes_per_target >> 20 == want_mib,
          "%s: %s: %lld MiB on a target, want %lld %s", text, request,
          (long long)(p.bytes_per_target >> 20), (long long)want_mib, err.text);
}

// Targets that have their arrays at a time: of teams that have nothing in common.
static void expect_at_once(const char *text, const char *request, int want)
{
    struct topology t CLEANUP(topology_fini) = synthetic(text);
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(make(&p, &t, request, &err) == 0 && p.targets_at_once == want,
          "%s: %s: %d targets at once, want %d %s", text, request, p.targets_at_once, want,
          err.text);
}

// All ranks behind a last-level cache chase through four times as much together.
static void expect_scan(const char *text, int64_t want_mib)
{
    struct topology t CLEANUP(topology_fini) = synthetic(text);
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(make(&p, &t, "{\"benchmark\":\"scan\"}", &err) == 0 && p.bytes_per_rank >> 20 == want_mib,
          "%s: a scan has %lld MiB a rank, want %lld %s", text, (long long)(p.bytes_per_rank >> 20),
          (long long)want_mib, err.text);
}

// Machines of the size that arrays of all caches together made hours of.
static void large_machines(void)
{
    static const char nodes24[] =
        "pack:2 group:12 [numa(memory=34359738368)] l3:1(size=33554432) core:8 pu:1";
    static const char cpus512[] =
        "pack:2 group:4 [numa(memory=137438953472)] l3:2(size=33554432) core:16 pu:2";
    static const char sockets16[] =
        "pack:16 [numa(memory=68719476736)] l3:1(size=40370176) core:28 pu:1";
    static const char nodes[] = "{\"benchmark\":\"bandwidth\"}";
    static const char threads[] = "{\"benchmark\":\"bandwidth\",\"sweep\":\"threads\"}";
    static const char few[] =
        "{\"benchmark\":\"bandwidth\",\"sweep\":\"threads\",\"threads\":\"1,8\"}";
    expect_target(nodes24, nodes, 3 * 4 * 32);
    expect_target(nodes24, threads, 3 * 4 * 32 * 24); // all 192 ranks are a row
    expect_target(nodes24, few, 3 * 4 * 32);
    expect_target(nodes24, "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\"}", 2 * 4 * 32);
    expect_at_once(nodes24, nodes, 24);
    expect_at_once(nodes24, "{\"benchmark\":\"bandwidth\",\"targets\":\"0-4\"}", 5);
    expect_at_once(nodes24, "{\"benchmark\":\"bandwidth\",\"cpus\":\"0,1,8\"}", 2);
    expect_at_once(nodes24, threads, 1);
    expect_at_once(nodes24, "{\"benchmark\":\"matrix\"}", 1);
    expect_at_once(nodes24, "{\"benchmark\":\"latency\"}", 0);
    expect_target(cpus512, nodes, 3 * 4 * 2 * 32);
    expect_target(cpus512, threads, 3 * 4 * 16 * 32);
    expect_target(sockets16, nodes, 3 * 4 * 40370176 >> 20);
    expect_scan(nodes24, 4 * 32 / 8);
    expect_scan(cpus512, 4 * 32 / 16);
    expect_scan(sockets16, 8);
    struct topology t CLEANUP(topology_fini) = synthetic(nodes24);
    refuse(&t, "{\"benchmark\":\"bandwidth\",\"sweep\":\"threads\",\"threads\":\"1,200\"}",
           "threads", "has 200, but the run has 192 ranks");
}

static void expect_ranks(const struct topology *t, const char *request, int want)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(make(&p, t, request, &err) == 0 && p.n_ranks == want, "%s: %d ranks %s", request,
          p.n_ranks, err.text);
}

// Neighbours share a CPU, and each CPU has as many ranks as the others, or one more.
static void shared_cpus(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("pack:2 [numa(memory=8589934592)] l3:1(size=16777216) core:2 pu:1");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    static const int want[] = {0, 0, 1, 2, 2, 3};
    CHECK(make(&p, &t, "{\"benchmark\":\"c2c\",\"ranks\":3,\"oversubscribe\":true}", &err) == 0,
          "%s", err.text);
    CHECK_INT(p.n_ranks, 6, "three per node");
    for (int i = 0; i < p.n_ranks && i < 6; i++)
        CHECK_INT(p.ranks[i].cpu, want[i], "the CPU of rank %d", i);
    CHECK(p.n_notes && strstr(p.notes[0], "share CPU 0, and so does 1 other pair: they take turns"),
          "%s", p.n_notes ? p.notes[0] : "");
    expect_ranks(&t, "{\"benchmark\":\"latency\",\"ranks\":2,\"oversubscribe\":true}", 4);
    refuse(&t, "{\"benchmark\":\"c2c\",\"ranks\":3}", "ranks",
           "is 3 per node, but node 0 has 2 cores for ranks: request 2 at most, or oversubscribe");
    refuse(&t, "{\"benchmark\":\"c2c\",\"cpus\":\"1,0,1\"}", "cpus",
           "lists CPU 1 twice: several ranks on one CPU take turns, and need oversubscribe");
    refuse(&t, "{\"benchmark\":\"c2c\",\"cpus\":\"1\"}", "cpus", "needs two ranks at least");
}

static bool has_plan_note(const struct topology *t, const char *request, const char *text)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    bool found = false;
    CHECK(make(&p, t, request, &err) == 0, "%s: %s", request, err.text);
    for (int i = 0; i < p.n_notes; i++)
        found |= strstr(p.notes[i], text) != NULL;
    return found;
}

// Ranks on one core or CPU share its last-level cache too, in whatever order they are listed.
static void shared_caches(void)
{
    static const char up_to[] = "up to 3 ranks share one last-level cache";
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 l3:1(size=16777216) core:2 pu:2");
    CHECK(has_plan_note(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0,2,2\",\"oversubscribe\":true}",
                        up_to),
          "the last two on one CPU");
    CHECK(has_plan_note(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0,0,2\",\"oversubscribe\":true}",
                        up_to),
          "the first two on one CPU");
    CHECK(has_plan_note(&t, "{\"benchmark\":\"latency\",\"hyperthreads\":true}", "up to 4 ranks"),
          "both threads of both cores");
    CHECK(!has_plan_note(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0,1\"}", "last-level cache"),
          "one core alone");
    CHECK(!has_plan_note(&t, "{\"benchmark\":\"matrix\",\"ranks\":2}", "last-level cache") &&
              !has_plan_note(&t, "{\"benchmark\":\"latency\",\"mode\":\"serial\"}",
                             "last-level cache"),
          "one rank after the other");
}

// Nothing is known of the CPU of a recorded topology.
static void instructions(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 l3:1(size=16777216) core:2 pu:1");
    static const char sve[] = "{\"benchmark\":\"bandwidth\",\"instructions\":\"sve\"}",
                      avx2[] = "{\"benchmark\":\"bandwidth\",\"instructions\":\"avx2\"}",
                      lse[] = "{\"benchmark\":\"atomics\",\"form\":\"lse\"}";
    expect_ranks(&t, sve, 2);
    expect_ranks(&t, lse, 2);
    t.instructions = CPU_KNOWN | CPU_SSE2 | CPU_AVX2;
    expect_ranks(&t, avx2, 2);
    refuse(&t, sve, "instructions", "must be one of auto, scalar, sse2, avx2 on this CPU");
    refuse(&t, lse, "form", "must be auto on this CPU");
    t.instructions = CPU_KNOWN | CPU_NEON | CPU_SVE | CPU_LLSC;
    expect_ranks(&t, sve, 2);
    expect_ranks(&t, "{\"benchmark\":\"atomics\",\"form\":\"llsc\"}", 2);
    refuse(&t, avx2, "instructions", "must be one of auto, scalar, neon, sve on this CPU");
    refuse(&t, lse, "form", "must be one of auto, llsc on this CPU");
}

// Of arm64 with base pages of 64 KiB; where pages are not known nothing is refused.
static void page_sizes(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 l3:1(size=16777216) core:2 pu:1");
    static const char faults[] = "{\"benchmark\":\"pagefault\"}";
    t.pages = (struct page_sizes){0};
    expect_ranks(&t, faults, 2);
    t.pages = page_sizes_usual;
    expect_ranks(&t, faults, 2);
    t.pages = (struct page_sizes){65536, 512 << 20, 512 << 20};
    refuse(&t, faults, "benchmark", "this kernel has 64 and 524288 KiB");
    expect_ranks(&t, "{\"benchmark\":\"hierarchy\"}", 1);
}

// Eight links need eight lines, which have 128 bytes on POWER and 256 on A64FX.
static void long_lines(void)
{
    static const struct {
        int line;
        const char *request, *member, *fault;
    } refused[] = {
        {128, "{\"benchmark\":\"latency\",\"locality\":512}", "locality", "8 links of 128 bytes"},
        {256, "{\"benchmark\":\"latency\",\"size\":\"1K,1M\"}", "size",
         "fewer than 8 links of 256"},
        {256, "{\"benchmark\":\"matrix\",\"size\":\"1K\"}", "size", "fewer than 8 links of 256"},
        {256, "{\"benchmark\":\"latency\",\"locality\":\"1K\"}", "locality",
         "8 links of 256 bytes"},
        {256, "{\"benchmark\":\"loaded\",\"size\":\"1K\"}", "size", "fewer than 8 links of 256"},
        {256, "{\"benchmark\":\"latency\",\"stride\":128}", "stride", "cache line of 256 bytes"},
    };
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 l3:1(size=16777216) core:2 pu:1");
    t.line_bytes = 64;
    expect_ranks(&t, "{\"benchmark\":\"latency\",\"locality\":512}", 2);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        t.line_bytes = refused[i].line;
        refuse(&t, refused[i].request, refused[i].member, refused[i].fault);
    }
    expect_ranks(&t, "{\"benchmark\":\"latency\",\"size\":\"2K\"}", 2);
    expect_ranks(&t, "{\"benchmark\":\"latency\",\"method\":\"classic\",\"size\":\"1K\"}", 2);
}

// What changes nothing and is no error is stated.
static void unused_members(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 l3:1(size=16777216) core:2 pu:1");
    CHECK(has_plan_note(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"ranks\":2}",
                        "ranks (2) is not used"),
          "ranks beside cpus");
    CHECK(!has_plan_note(&t, "{\"benchmark\":\"matrix\",\"cpus\":\"0\"}", "is not used"),
          "a default is not stated");
    CHECK(has_plan_note(&t, "{\"benchmark\":\"latency\",\"method\":\"classic\",\"quick\":true}",
                        "quick changes nothing"),
          "quick beside classic");
    CHECK(has_plan_note(&t, "{\"benchmark\":\"pagefault\",\"size\":\"3M\"}",
                        "whole huge pages: 4 MiB") &&
              !has_plan_note(&t, "{\"benchmark\":\"pagefault\"}", "huge pages"),
          "a size that is rounded up");
}

// What the ranks would refuse is refused by the plan.
static void limits_of_ranks(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 l3:1(size=16777216) core:2 pu:1");
    t.line_bytes = 64;
    refuse(&t, "{\"benchmark\":\"atomics\",\"threads\":\"1,5\"}", "threads",
           "has 5, but the run has 2 ranks");
    refuse(&t, "{\"benchmark\":\"latency\",\"stride\":32}", "stride",
           "must be 0 or at least the cache line of 64 bytes");
    refuse(&t, "{\"benchmark\":\"matrix\",\"stride\":8}", "stride", "got 8");
    refuse(&t, "{\"benchmark\":\"matrix\",\"ranks\":2,\"pairs_most\":1}", "pairs_most",
           "must be 0, because there are 2 pairs of a rank and a target in all");
    expect_ranks(&t, "{\"benchmark\":\"latency\",\"stride\":64}", 2);
}

// Benchmarks of all pairs have a cell a pair; the others take the most ranks there may be. A list
// names a node for each of them.
static void many_ranks(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic("node:2 core:256 pu:2");
    CLEANUP_BUF struct buf request = BUF_INIT;
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    refuse(&t, "{\"benchmark\":\"c2c\",\"hyperthreads\":true}", "ranks",
           "1024 ranks have 523776 pairs, and a table of all pairs has at most 512 ranks "
           "(ranks=one-per-l3, a number per node, or cpus): pairs=classes measures");
    refuse(&t, "{\"benchmark\":\"c2c\",\"hyperthreads\":true,\"pairs\":\"0-1,3-1024\"}", "pairs",
           "must be classes, all or at most 64 pairs");
    refuse(&t, "{\"benchmark\":\"c2c\",\"pairs\":\"0-1,3-512\"}", "pairs",
           "has rank 512, but the run has ranks 0-511");
    expect_ranks(&t, "{\"benchmark\":\"c2c\",\"pairs\":\"0-1,0-1023\",\"hyperthreads\":true}",
                 1024);
    expect_ranks(&t, "{\"benchmark\":\"c2c\",\"pairs\":\"classes\"}", 4);
    expect_ranks(&t, "{\"benchmark\":\"c2c\"}", 512);
    expect_ranks(&t, "{\"benchmark\":\"scan\",\"hyperthreads\":true}", 1024);
    expect_ranks(&t, "{\"benchmark\":\"pingpong\",\"pairs\":\"0-1,0-1000\",\"hyperthreads\":true}",
                 1024);
    refuse(
        &t, "{\"benchmark\":\"pingpong\",\"pairs\":\"all\",\"hyperthreads\":true}", "ranks",
        "pairs=classes measures a pair of each kind, pairs=0-1,0-600 those that are named, and the "
        "benchmark scan");
    buf_str(&request, "{\"benchmark\":\"pingpong\",\"hyperthreads\":true,\"numa\":\"0");
    for (int i = 1; i < SPEC_RANKS_MAX; i++)
        buf_fmt(&request, ",%d", i % 2);
    buf_str(&request, "\"}");
    CHECK(make(&p, &t, buf_text(&request), &err) == 0 && p.n_ranks == SPEC_RANKS_MAX &&
              p.ranks[SPEC_RANKS_MAX - 1].mem_node == 1,
          "1,024 ranks and a list of their nodes: %s", err.text);
}

// 120 cores below one cache of 320 MiB: together the loaders have four of it, not each.
static void loaders(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("node:1 l3:1(size=335544320) l2:120(size=1048576) core:1 pu:1");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    for (int i = 0; i < t.n_caches; i++)
        t.caches[i].bytes = t.caches[i].level == 2 ? 5 << 20 : t.caches[i].bytes;
    if (make(&p, &t, "{\"benchmark\":\"loaded\"}", &err) < 0)
        abort();
    CHECK(p.bytes_per_loader == 20 << 20, "four caches of 5 MiB: %lld MiB",
          (long long)(p.bytes_per_loader >> 20));
    plan_fini(&p);
    for (int i = 0; i < t.n_caches; i++)
        t.caches[i].bytes = t.caches[i].level == 2 ? 1 << 20 : t.caches[i].bytes;
    if (make(&p, &t, "{\"benchmark\":\"loaded\"}", &err) < 0)
        abort();
    CHECK(p.bytes_per_rank == 1280 << 20 && p.bytes_per_loader == 12 << 20,
          "a loader of 119 has %lld MiB", (long long)(p.bytes_per_loader >> 20));
    CHECK(!p.ranks[0].loads && p.ranks[1].loads && p.ranks[119].loads &&
              plan_rank_bytes(&p, 0) == 1280 << 20 && plan_rank_bytes(&p, 119) == 12 << 20,
          "the first rank of the node measures");
    CHECK(admission_plan_bytes(&p) < (int64_t)12 << 30, "%lld MiB are needed",
          (long long)(admission_plan_bytes(&p) >> 20));
    static const int shared[] = {0, 0, 1, 1, 1, -1}, none[] = {-1, -1};
    CHECK(spec_load_sharing(shared, 5) == 2 && spec_load_sharing(shared, 6) == 1 &&
              spec_load_sharing(none, 2) == 1 && spec_load_sharing(none, 0) == 1,
          "the cache that fewest share; one that is not known is not shared");
    CHECK(spec_loader_bytes(1 << 30, 4, 2 << 20) == 1 << 28 &&
              spec_loader_bytes(1 << 26, 64, 2 << 20) == 8 << 20 &&
              spec_loader_bytes(1 << 26, 64, 3 << 20) == 12 << 20 &&
              spec_loader_bytes(4 << 20, 64, 2 << 20) == 4 << 20,
          "a part, but more than a private cache holds where there is as much");
    CHECK(spec_private_bytes(1 << 20, 32 << 20) == 2 << 20 &&
              spec_private_bytes(3 << 20, 36 << 20) == 3 << 20 &&
              spec_private_bytes(8 << 20, 8 << 20) == 2 << 20 &&
              spec_private_bytes(0, 32 << 20) == 4 << 20,
          "the second level, unless it is the last");
}

static bool notes(const struct topology *t, const char *request, const char *says)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    bool found = false;
    if (make(&p, t, request, &err) < 0)
        printf("# %s\n", err.text);
    for (int i = 0; i < p.n_notes; i++)
        found |= strstr(p.notes[i], says) != NULL;
    return found;
}

// Strong and weak cores, and a node with a GPU's memory.
static void hybrid(void)
{
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    CHECK_INT(probe_topology_stored(&t, hybrid_xml, &err), 0, "read: %s", err.text);
    expect(&t, "{\"benchmark\":\"latency\",\"ranks\":\"one-per-numa\",\"size\":64}",
           "1/0 3/0 targets  load  MiB 64 0");
    expect(&t, "{\"benchmark\":\"latency\",\"ranks\":1,\"size\":64}",
           "1/0 3/0 targets  load  MiB 64 0");
    expect(&t, "{\"benchmark\":\"latency\",\"size\":64}",
           "0/0 1/0 2/0 3/0 targets  load  MiB 64 0");
    CHECK(notes(&t, "{\"benchmark\":\"latency\"}",
                "ranks are on 2 kinds of cores, which differ in speed: 2 of kind 1 (CPU 1), 2 of "
                "kind 0 "
                "(CPU 0)"),
          "a selection that mixes kinds is noted");
    CHECK(!notes(&t, "{\"benchmark\":\"latency\",\"ranks\":1}", "kinds"),
          "one that does not is not");
    expect(&t, "{\"benchmark\":\"loaded\",\"size\":64}", "1/0 0/0 3/0 2/0 targets  load  MiB 64 0");
    expect(&t, "{\"benchmark\":\"latency\",\"numa\":\"auto\",\"size\":64}",
           "0/0 1/0 2/0 3/0 targets  load  MiB 64 0");
    CHECK(notes(&t, "{\"benchmark\":\"matrix\"}",
                "memory of node 0 is behind a memory-side cache of 256M: what is smaller is") &&
              notes(&t, "{\"benchmark\":\"firsttouch\"}", "behind a memory-side cache"),
          "a memory-side cache is noted");
    CHECK(
        !notes(&t, "{\"benchmark\":\"latency\",\"cpus\":\"2,3\",\"numa\":\"1\"}", "memory-side") &&
            !notes(&t, "{\"benchmark\":\"matrix\",\"targets\":\"1\"}", "memory-side"),
        "that of a node that is not used is not");
    // Caches that the machine hides are assumed to be large, as numa_bench does.
    expect(&t, "{\"benchmark\":\"matrix\"}", "1/0 3/0 targets 0 load  MiB 0 256");
    CHECK(notes(&t, "{\"benchmark\":\"matrix\"}",
                "node 1 (memory of the kind gpumemory) is left out: name it in targets to measure "
                "it") &&
              notes(&t, "{\"benchmark\":\"latency\",\"numa\":\"auto\"}", "in numa to measure"),
          "a GPU's memory is left out, and a note says so");
    expect(&t, "{\"benchmark\":\"matrix\",\"targets\":\"1\"}", "1/0 3/0 targets 1 load  MiB 0 256");
    expect(&t, "{\"benchmark\":\"latency\",\"cpus\":\"1\",\"numa\":\"1\",\"size\":64}",
           "1/1 targets  load  MiB 64 0");
    static const char *const ours[] = {"hbm", "mcdram", "cxl-dram", "cxl", "dram"};
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        snprintf(t.nodes[1].kind, sizeof t.nodes[1].kind, "%s", ours[i]);
        expect(&t, "{\"benchmark\":\"matrix\"}", "1/0 3/1 targets 0-1 load  MiB 0 256");
    }
    snprintf(t.nodes[0].kind, sizeof t.nodes[0].kind, "nvm");
    snprintf(t.nodes[1].kind, sizeof t.nodes[1].kind, "spm");
    refuse(&t, "{\"benchmark\":\"matrix\"}", "numa", "without being named");
}

static void lost_cpus(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic(machine);
    for (int i = 8; i < t.n_cpus; i++)
        t.cpus[i].node = -1;
    CHECK(notes(&t, "{\"benchmark\":\"latency\"}",
                "4 ranks are on CPUs of no NUMA node, such as CPU 8: memory of node 0 is used"),
          "CPUs of no node are noted, with their number");
    refuse(&t, "{\"benchmark\":\"latency\",\"ranks\":5}", "ranks", "CPUs of no node have 4 cores");
}

// Where lines of a pair can be: with the other rank, or on a node that is neither's.
static void homes(void)
{
    struct topology one CLEANUP(topology_fini) = synthetic("node:1 core:4 pu:1");
    struct topology two CLEANUP(topology_fini) = synthetic("node:2 core:2 pu:1");
    struct topology four CLEANUP(topology_fini) = synthetic("node:4 core:1 pu:1");
    static const char second[] = "{\"benchmark\":\"c2c\",\"home\":\"second\"}";
    static const char third[] = "{\"benchmark\":\"c2c\",\"home\":\"third\"}";
    refuse(&one, second, "home", "is second, but all ranks are on node 0: use first");
    refuse(&one, third, "home", "rank 0 (0) nor that of rank 1 (0)");
    expect(&two, second, "0/0 1/0 2/1 3/1 targets  load  MiB 0 0");
    refuse(&two, "{\"benchmark\":\"c2c\",\"home\":\"second\",\"cpus\":\"2,3\"}", "home",
           "all ranks are on node 1");
    refuse(&two, third, "home",
           "no node of targets (0-1) is neither that of rank 0 (0) nor that of rank 2 (1)");
    expect(&two, "{\"benchmark\":\"c2c\",\"home\":\"third\",\"cpus\":\"0,1\"}",
           "0/0 1/0 targets 0-1 load  MiB 0 0");
    expect(&four, third, "0/0 1/1 2/2 3/3 targets 0-3 load  MiB 0 0");
    expect(&four, "{\"benchmark\":\"c2c\"}", "0/0 1/1 2/2 3/3 targets  load  MiB 0 0");
    refuse(&four, "{\"benchmark\":\"c2c\",\"home\":\"third\",\"targets\":\"0,3\"}", "home",
           "rank 0 (0) nor that of rank 3 (3)");
    refuse(&four, "{\"benchmark\":\"c2c\",\"home\":\"third\",\"targets\":\"9\"}", "targets",
           "not there");
    static const int nodes[] = {1, 4, 7};
    CHECK(spec_third_node(nodes, 3, 1, 4) == 7 && spec_third_node(nodes, 3, 7, 1) == 4 &&
              spec_third_node(nodes, 3, 0, 0) == 1 && spec_third_node(nodes, 2, 1, 4) == -1,
          "the first node that is neither");
}

// Sizes from a run of hierarchy: its cache stands for those of the kernel's list where it is
// larger.
static void found_caches(void)
{
    static const char matrix[] = "{\"benchmark\":\"matrix\"}",
                      sized[] = "{\"benchmark\":\"matrix\",\"size\":64}",
                      curve[] = "{\"benchmark\":\"hierarchy\"}";
    struct topology t CLEANUP(topology_fini) = synthetic(machine);
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(!notes(&t, matrix, "sizes from"), "no run, no word");
    t.found = (struct found_memory){.run = 12};
    CHECK(!notes(&t, matrix, "sizes from"), "nor of one that found nothing");
    t.found.found = 31 << 20;
    expect(&t, matrix, "6/0 14/1 targets 0-1 load  MiB 0 128");
    CHECK(notes(&t, matrix,
                "sizes from run 12 (hierarchy): it found no cache beyond the 32 MiB that the "
                "kernel lists") &&
              !notes(&t, sized, "sizes from"),
          "a run that agrees with the kernel");
    t.found = (struct found_memory){.run = 12, .found = 90 << 20, .bytes = 96 << 20};
    expect(&t, matrix, "6/0 14/1 targets 0-1 load  MiB 0 384");
    expect(&t, "{\"benchmark\":\"bandwidth\"}",
           "6/0 0/0 2/0 4/0 14/1 8/1 10/1 12/1 targets 0-1 load  MiB 0 1152");
    expect(&t, curve, "6/0 14/1 targets 0-1 load  MiB 0 640");
    CHECK(notes(&t, matrix,
                "sizes from run 12 (hierarchy): it found a cache of 90 MiB, the kernel lists 32 "
                "MiB") &&
              notes(&t, sized, "sizes from run 12") && !notes(&t, curve, "sizes from"),
          "one that does not; hierarchy itself goes by the kernel's");
    CLEANUP_BUF struct buf json = BUF_INIT;
    struct jsonw w = jsonw_to(&json);
    if (make(&p, &t, matrix, &err) == 0)
        plan_write_json(&p, &w, NULL);
    CHECK(strstr(buf_text(&json), "\"sizes_from\":12,\"found_cache_bytes\":100663296") &&
              strstr(buf_text(&json), "\"estimate_from\":null"),
          "%s", buf_text(&json));
    t.speeds[SPEED_LOAD] = (struct found_speed){.run = 13, .times = 1.5};
    t.speeds[SPEED_MESSAGE] = (struct found_speed){.run = 14, .times = 2};
    plan_fini(&p);
    if (make(&p, &t, curve, &err) == 0)
        plan_write_json(&p, &w, NULL);
    CHECK(strstr(buf_text(&json),
                 "\"estimate_from\":13,\"estimate_speeds\":[{\"speed\":\"memory_load\","
                 "\"benchmark\":\"hierarchy\",\"run\":13,\"times\":1.5}]"),
          "a message is of no account here: %s", buf_text(&json));
    CHECK(strstr(buf_text(&json), "\"estimate_past\":null"), "no run of the same request");
    p.past = (struct found_speed){.run = 15, .times = 1.25};
    plan_write_json(&p, &w, NULL);
    CHECK(strstr(buf_text(&json), "\"estimate_past\":{\"run\":15,\"times\":1.25}"), "one: %s",
          buf_text(&json));
}

// Memory over several nodes: each has its part of it.
static void interleaved(struct topology *t)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    expect(t, "{\"benchmark\":\"bandwidth\",\"ranks\":2,\"targets\":\"1+interleave:all\"}",
           "4/0 6/0 12/1 14/1 targets 1+interleave:0-1 load  MiB 0 384");
    refuse(t, "{\"benchmark\":\"bandwidth\",\"targets\":\"interleave:0,7\"}", "targets",
           "node 7 is not there");
    refuse(t, "{\"benchmark\":\"latency\",\"numa\":\"weighted:0-1\"}", "numa", "Linux 6.9");
    refuse(t, "{\"benchmark\":\"matrix\",\"targets\":\"interleave:0\"}", "targets",
           "which bandwidth, loaded and latency");
    refuse(t, "{\"benchmark\":\"pingpong\",\"numa\":\"interleave:0\"}", "numa", "contradicts");
    t->weights[0] = 3;
    t->weights[1] = 1;
    refuse(t, "{\"benchmark\":\"latency\",\"numa\":\"weighted:0=1,1=1\"}", "numa", "0=3,1=1");
    static const char request[] =
        "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"numa\":\"weighted:0=3,1=1\",\"size\":\"5G\"}";
    CHECK(make(&p, t, request, &err) == 0 && p.ranks[0].mem_node == target_interleaved(3, true) &&
              plan_rank_node(&p, 0) == -1,
          "by weight: no single node %s", err.text);
    CLEANUP_BUF struct buf json = BUF_INIT;
    struct jsonw w = jsonw_to(&json);
    plan_write_json(&p, &w, NULL);
    CHECK(strstr(buf_text(&json), "\"mem_node\":-1") &&
              strstr(buf_text(&json), "\"interleaved\":[\"weighted:0-1\"]"),
          "the plan names it: %s", buf_text(&json));
    t->weights[0] = t->weights[1] = 0;
}

int main(void)
{
    hybrid();
    homes();
    lost_cpus();
    found_caches();
    struct topology t CLEANUP(topology_fini) = synthetic(machine);
    expect(&t, "{\"benchmark\":\"matrix\"}", "6/0 14/1 targets 0-1 load  MiB 0 128");
    expect(&t, "{\"benchmark\":\"matrix\",\"targets\":\"1\",\"ranks\":\"one-per-l3\"}",
           "2/0 6/0 10/1 14/1 targets 1 load  MiB 0 128");
    expect(&t, "{\"benchmark\":\"firsttouch\"}", "6/-1 14/-1 targets  load  MiB 128 0");
    expect(&t, "{\"benchmark\":\"pagefault\",\"ranks\":2,\"size\":\"3M\"}",
           "4/0 6/0 12/1 14/1 targets 0-1 load  MiB 0 16");
    expect(&t, "{\"benchmark\":\"hierarchy\"}", "6/0 14/1 targets 0-1 load  MiB 0 640");
    refuse(&t, "{\"benchmark\":\"hierarchy\",\"size\":\"16M\"}", "size", "must be 32M at least");
    expect(&t, "{\"benchmark\":\"pingpong\"}", "0/0 1/0 2/0 4/0 8/1 targets  load  MiB 8 0");
    expect(&t, "{\"benchmark\":\"bandwidth\",\"ranks\":2}",
           "4/0 6/0 12/1 14/1 targets 0-1 load  MiB 0 384");
    expect(&t, "{\"benchmark\":\"bandwidth\",\"ranks\":2,\"sweep\":\"own\"}",
           "4/0 6/0 12/1 14/1 targets  load  MiB 192 0");
    expect(&t, "{\"benchmark\":\"bandwidth\",\"ranks\":2,\"sweep\":\"sizes\"}",
           "4/0 6/0 12/1 14/1 targets  load  MiB 128 0");
    expect(&t, "{\"benchmark\":\"latency\",\"ranks\":1,\"load\":\"read\",\"size\":64}",
           "6/0 14/1 targets  load 0,2,4,8,10,12 MiB 64 0");
    expect(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"load\":\"copy\",\"load_cpus\":\"9\"}",
           "0/0 targets  load 9 MiB 512 0");
    expect(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"method\":\"classic\",\"size\":64}",
           "0/0 targets  load  MiB 128 0");
    expect(&t, "{\"benchmark\":\"loaded\"}",
           "6/0 0/0 2/0 4/0 14/1 8/1 10/1 12/1 targets  load  MiB 128 0");
    expect(&t, "{\"benchmark\":\"loaded\",\"ranks\":4}",
           "6/0 0/0 2/0 4/0 14/1 8/1 10/1 12/1 targets  load  MiB 128 0");
    expect(
        &t, "{\"benchmark\":\"loaded\",\"hyperthreads\":true}",
        "6/0 0/0 1/0 2/0 3/0 4/0 5/0 7/0 14/1 8/1 9/1 10/1 11/1 12/1 13/1 15/1 targets  load  MiB "
        "128 0");
    expect(&t, "{\"benchmark\":\"loaded\",\"cpus\":\"0-3\"}",
           "0/0 1/0 2/0 3/0 targets  load  MiB 128 0");
    expect(&t, "{\"benchmark\":\"loaded\",\"targets\":\"all\",\"mix\":\"all\"}",
           "6/0 0/0 2/0 4/0 14/1 8/1 10/1 12/1 targets 0-1 load  MiB 0 512");
    loaders();
    CHECK(notes(&t, "{\"benchmark\":\"loaded\",\"cpus\":\"0,2,8\"}",
                "node 1 has one rank, which chases: nothing loads its memory") &&
              !notes(&t, "{\"benchmark\":\"loaded\"}", "which chases") &&
              !notes(&t, "{\"benchmark\":\"matrix\"}", "which chases"),
          "a chaser without loaders");
    expect(&t, "{\"benchmark\":\"pagefault\",\"ranks\":1,\"cost\":\"migrate\",\"size\":\"4M\"}",
           "6/0 14/1 targets 0-1 load  MiB 0 8");
    refuse(&t, "{\"benchmark\":\"pagefault\",\"cost\":\"migrate\",\"targets\":\"1\"}", "cost",
           "needs two nodes with memory");
    refuse(&t, "{\"benchmark\":\"matrix\",\"targets\":\"7\"}", "targets", "not there");
    refuse(&t, "{\"benchmark\":\"c2c\",\"cpus\":\"3\"}", "cpus", "two ranks");
    refuse(&t, "{\"benchmark\":\"atomics\",\"cpus\":\"3\"}", "cpus", "two ranks");
    expect(&t, "{\"benchmark\":\"atomics\",\"ranks\":1}", "6/0 14/1 targets  load  MiB 0 0");
    refuse(&t, "{\"benchmark\":\"loaded\",\"cpus\":\"3\"}", "cpus", "two ranks");
    refuse(&t, "{\"benchmark\":\"loaded\",\"ranks\":\"one-per-numa\"}", "ranks", "no rank is left");
    refuse(&t, "{\"benchmark\":\"latency\",\"load\":\"read\"}", "load", "every core");
    refuse(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"load\":\"read\",\"load_cpus\":\"0\"}",
           "load_cpus", "has rank 0");
    refuse(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"load\":\"read\",\"load_cpus\":\"99\"}",
           "load_cpus", "not there");
    interleaved(&t);
    memory(&t);
    large_pages(&t);
    reserved_pages(&t);
    many_loaders();
    large_machines();
    many_ranks();
    shared_cpus();
    shared_caches();
    instructions();
    page_sizes();
    long_lines();
    unused_members();
    limits_of_ranks();
    return tap_done();
}
