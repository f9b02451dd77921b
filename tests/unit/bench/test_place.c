// SPDX-License-Identifier: Apache-2.0
// On this machine, whatever it is: what the kernel says must agree with itself.
#include "bench/memory/placement.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "bench/memory/arena.h"
#include "model/target.h"
#include "tests/unit/tap.h"

static void arena(enum pages pages, const char *unwanted)
{
    struct err err = {0};
    struct place p;
    struct arena a = {0};
    bool bound;
    struct rank_info info = {.mem_wanted = -1};
    place_wanted(&p);
    CHECK(arena_map(&a, 5 << 20, pages, &p, &bound, &err) == 0, "mapped %s", err.text);
    CHECK(a.bytes == arena_round(5 << 20, pages) && a.bytes % a.page == 0 &&
              (uint64_t)(uintptr_t)a.base % a.page == 0,
          "whole pages of %d bytes, aligned", (int)a.page);
    CHECK(arena_populate(&a, 3, &err) == 0, "populated by three threads %s", err.text);
    arena_report(&a, &info);
    CHECK(strcmp(info.pages_got, unwanted) != 0, "pages got: %s (%.2f huge)", info.pages_got,
          info.huge_share);
    place_verify(a.base, a.bytes, &info);
    CHECK(info.pages_total == (int64_t)(a.bytes / 4096) || info.pages_total > 0, "pages: %lld",
          (long long)info.pages_total);
    if (strcmp(info.mem_method, "none") == 0) {
        SKIP("this machine does not tell where pages are");
    } else {
        int64_t sum = 0;
        for (int i = 0; i < info.n_nodes; i++)
            sum += info.nodes[i].pages;
        CHECK(sum == info.pages_checked && info.pages_checked > 0,
              "%s: the nodes' pages add up to those checked", info.mem_method);
        CHECK(info.mem_share > 0 && info.mem_share <= 1 && info.mem_node >= 0, "share %.3f on %d",
              info.mem_share, (int)info.mem_node);
    }
    arena_fini(&a);
    CHECK(!a.base, "given back");
}

// Whichever way the kernel lets us ask, the answer is the same.
static void ways_to_ask(void)
{
    struct err err = {0};
    struct place p;
    struct arena a = {0};
    bool bound;
    place_wanted(&p);
    if (arena_map(&a, 4 << 20, PAGES_4K, &p, &bound, &err) < 0 || arena_populate(&a, 1, &err) < 0)
        abort();
    struct rank_info first = {.mem_wanted = -1};
    place_verify(a.base, a.bytes, &first);
    for (int way = 1; way < PLACE_METHODS; way++) {
        struct rank_info got = {.mem_wanted = -1};
        place_verify_from(way, a.base, a.bytes, &got);
        if (strcmp(got.mem_method, "none") == 0) {
            SKIP("this machine does not tell by other ways");
            continue;
        }
        CHECK(got.mem_node == first.mem_node && got.pages_checked == first.pages_checked &&
                  got.mem_share == first.mem_share && got.n_nodes == first.n_nodes,
              "%s says what %s says: %lld pages", got.mem_method, first.mem_method,
              (long long)got.pages_checked);
    }
    struct rank_info wrong = {.mem_wanted = first.mem_node + 1}, none = {.mem_wanted = -1};
    place_verify(a.base, a.bytes, &wrong);
    CHECK(wrong.mem_share == 0 || first.n_nodes > 1, "none of it is on a node that it is not on");
    place_verify_from(PLACE_METHODS, a.base, a.bytes, &none);
    CHECK(none.mem_share == 0 && none.pages_checked == 0 && strcmp(none.mem_method, "none") == 0,
          "who cannot ask claims nothing");
    arena_fini(&a);
}

// Of the allocator: it begins inside of a page, and may be less than one.
static void inside_of_pages(void)
{
    enum { PAGE_LEAST = 4096, BYTES = 3 * PAGE_LEAST };
    char *memory = malloc(BYTES);
    if (!memory)
        abort();
    memset(memory, 1, BYTES);
    for (uint64_t bytes = 100; bytes <= BYTES; bytes += BYTES - 100) {
        struct rank_info got = {.mem_wanted = -1};
        place_verify(memory + 10, bytes - 10, &got);
        if (strcmp(got.mem_method, "none") == 0 && !got.pages_total)
            CHECK(false, "%d bytes are in a page", (int)bytes);
        else if (strcmp(got.mem_method, "none") == 0)
            SKIP("this machine does not tell where pages are");
        else
            CHECK(got.pages_checked > 0 && got.pages_checked == got.pages_total &&
                      got.mem_share > 0,
                  "%d bytes: %lld pages checked", (int)bytes, (long long)got.pages_checked);
    }
    free(memory);
}

static void one_cpu(void)
{
    cpu_set_t before, one;
    struct place p;
    int cpu = sched_getcpu();
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) < 0) {
        SKIP("no right to bind");
        return;
    }
    place_wanted(&p);
    CHECK(p.cpu_wanted == cpu && p.cpus == 1, "bound to one CPU: that is the one wanted");
    sched_setaffinity(0, sizeof before, &before);
}

// Pages by node, as the kernel may report them, against what they have to be.
static void spread(void)
{
    struct rank_info got = {.n_nodes = 3, .nodes = {{0, 500, 0}, {1, 501, 0}, {2, 0, 0}}};
    int two = target_interleaved(3, false);
    CHECK(place_interleaved_share(&got, two, 1) == 1, "one page more is a page of the turn");
    got.nodes[0].pages = 400;
    got.nodes[1].pages = 600;
    double share = place_interleaved_share(&got, two, 1);
    CHECK(share > 0.9 && share < 0.902, "100 of 1,000 pages more than half are not: %.4f", share);
    CHECK(place_interleaved_share(&got, two, 512) == 1, "unless the kernel gives so many at once");
    got.nodes[2].pages = 1000;
    CHECK(place_interleaved_share(&got, two, 512) == 0.5, "pages of another node are astray");
}

// Interleaved over the nodes that there are, in turn.
static void interleave(void)
{
    struct err err = {0};
    struct place p;
    struct arena a = {0};
    unsigned all = 0;
    bool bound;
    int nodes[TARGET_NODES], n = place_nodes(nodes, TARGET_NODES);
    for (int i = 0; i < n && nodes[i] < TARGET_NODES; i++)
        all |= 1u << nodes[i];
    place_wanted(&p);
    p.mem_wanted = p.mem_node = target_interleaved(all, false);
    if (arena_map(&a, 4 << 20, PAGES_4K, &p, &bound, &err) < 0 || arena_populate(&a, 1, &err) < 0)
        abort();
    struct rank_info got = {.mem_wanted = -1};
    place_verify(a.base, a.bytes, &got);
    if (bound && got.pages_checked)
        CHECK(place_interleaved_share(&got, p.mem_node, 1) == 1, "%d nodes have their parts",
              got.n_nodes);
    else
        SKIP("no memory policies on this machine");
    arena_fini(&a);
}

static void one_page(void)
{
    struct page_sizes sizes = memory_page_sizes("");
    CHECK(arena_round(1, PAGES_4K) == sizes.base, "a byte of base pages takes one: %d",
          (int)sizes.base);
}

// Memory of a process on `n` nodes, every 12th from node 4 on.
static int usage_of(const char *name, int n, struct rank_info *info)
{
    char path[400];
    snprintf(path, sizeof path, "%s.maps", name);
    FILE *f = fopen(path, "we");
    if (!f)
        return -1;
    fprintf(f, "7f0000000000 default anon=%d dirty=%d", n, n);
    for (int i = 0; i < n; i++)
        fprintf(f, " N%d=%d", 4 + 12 * i, i + 1);
    fprintf(f, " kernelpagesize_kB=64\n");
    fclose(f);
    int left_out = place_usage_from(path, info);
    unlink(path);
    return left_out;
}

static void many_nodes(const char *name)
{
    struct rank_info few = {0}, many = {0};
    CHECK(usage_of(name, 8, &few) == 0 && few.n_nodes == 8 && few.nodes[7].node == 88 &&
              few.nodes[7].process_kib == 8 * 64,
          "memory on node 88: %d nodes, the last is %d", few.n_nodes, (int)few.nodes[7].node);
    CHECK(usage_of(name, 70, &many) == 70 - RANK_NODES_MAX && many.n_nodes == RANK_NODES_MAX,
          "more than %d nodes are not lost silently", RANK_NODES_MAX);
    CHECK(place_usage_from("/nonexistent", &many) == -1, "a list that cannot be read");
}

int main(int argc, char **argv)
{
    (void)argc;
    one_page();
    spread();
    interleave();
    struct rank_info u = {0};
    arena(PAGES_4K, "thp");
    arena(PAGES_THP, "huge");
    ways_to_ask();
    inside_of_pages();
    one_cpu();
    many_nodes(argv[0]);
    if (place_usage(&u) == 0) {
        int64_t sum = 0;
        for (int i = 0; i < u.n_nodes; i++)
            sum += u.nodes[i].process_kib;
        CHECK(sum > 100, "this process uses %lld KiB", (long long)sum);
    } else {
        SKIP("no numa_maps on this machine");
    }
    CHECK(place_node_count() >= 1, "there is a node");
    return tap_done();
}
