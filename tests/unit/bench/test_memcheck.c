// SPDX-License-Identifier: Apache-2.0
// Machines as folders: what is refused before it is touched.
#include "bench/memory/memory_check.h"

#include "base/memory.h"
#include "bench/memory/cache.h"
#include "model/target.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char root[64];
static double fits; // of the last refusal
static const uint64_t GIB = 1ull << 30;

static int ask(int node, uint64_t bytes, int ranks, enum pages pages, struct err *err)
{
    struct demand d[999];
    for (int i = 0; i < ranks; i++)
        d[i] = (struct demand){.node = node, .bytes = bytes};
    return memcheck(root, d, ranks, pages, &fits, err);
}

static void node(int n, int total_gib, int free_gib)
{
    char path[80], text[200];
    snprintf(path, sizeof path, "sys/devices/system/node/node%d/meminfo", n);
    snprintf(text, sizeof text, "Node %d MemTotal: %d kB\nNode %d MemFree: %d kB\n", n,
             total_gib << 20, n, free_gib << 20);
    dir_write(root, path, text);
}

static void machines(void)
{
    struct err err = {0};
    CHECK(ask(0, 999 * GIB, 1, PAGES_THP, &err) == 0, "what cannot be read does not refuse");
    dir_write(root, "proc/meminfo",
              "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nHugepagesize: 2048 kB\n");
    CHECK(ask(-1, 3 * GIB, 2, PAGES_THP, &err) == 0, "two ranks of 3 GiB fit into 8");
    CHECK(ask(-1, 4 * GIB, 2, PAGES_THP, &err) < 0 && err.code == ERR_NO_MEMORY_NODE,
          "two of 4 GiB do not: %s", err.text);
    CHECK(fits > 0.9 && fits < 1 && ask(-1, (uint64_t)(4.0 * GIB * fits), 2, PAGES_THP, &err) == 0,
          "the share that is named does: %g", fits);
    CHECK(ask(-1, 4 * GIB, 999, PAGES_THP, &err) < 0 && fits == 0,
          "of ranks that alone need more, no share does: %g", fits);
    node(0, 2, 1);
    CHECK(ask(0, 3 * GIB, 1, PAGES_THP, &err) == 0,
          "with one node the machine's number counts, not the node's");
}

static void nodes(void)
{
    struct err err = {0};
    node(0, 8, 6);
    node(2, 8, 2);
    CHECK(ask(0, 3 * GIB, 1, PAGES_THP, &err) == 0, "3 GiB fit on node 0");
    CHECK(ask(2, 3 * GIB, 1, PAGES_THP, &err) < 0 && strstr(err.text, "node 2"),
          "3 GiB do not fit on node 2: %s", err.text);
    CHECK(ask(2, GIB, 2, PAGES_THP, &err) < 0, "ranks of a node are summed");
    CHECK(ask(-1, 3 * GIB, 1, PAGES_THP, &err) == 0, "no node asked for: the machine decides");
    node(2, 8, 6);
    struct demand d[2] = {{.node = 0, .bytes = 5 * GIB}, {.node = 2, .bytes = 5 * GIB}};
    CHECK(memcheck(root, d, 2, PAGES_THP, &fits, &err) < 0, "5 GiB on each of two nodes: %s",
          err.text);
    d[0].in_turn = d[1].in_turn = true;
    CHECK(memcheck(root, d, 2, PAGES_THP, &fits, &err) == 0, "one after the other they fit");
    node(2, 8, 2);
    CHECK(memcheck(root, d, 2, PAGES_THP, &fits, &err) < 0 && strstr(err.text, "node 2"),
          "and each node has to hold its own: %s", err.text);
}

static void groups(void)
{
    struct err err = {0};
    dir_write(root, "proc/self/cgroup", "0::/a\n");
    dir_write(root, "sys/fs/cgroup/a/memory.max", "1073741824\n");
    dir_write(root, "sys/fs/cgroup/a/memory.current", "0\n");
    CHECK(ask(-1, GIB / 2, 1, PAGES_THP, &err) == 0, "half of the control group's limit fits");
    CHECK(ask(-1, GIB, 1, PAGES_THP, &err) < 0 && strstr(err.text, "cgroup"), "refused: %s",
          err.text);
    dir_write(root, "proc/self/cgroup", "");
}

static void interleaved(void)
{
    struct err err = {0};
    node(0, 8, 6);
    node(2, 8, 2);
    CHECK(ask(target_interleaved(5, false), 3 * GIB, 1, PAGES_THP, &err) == 0,
          "half of 3 GiB fits on each of two nodes: %s", err.text);
    CHECK(ask(target_interleaved(5, false), 4 * GIB, 1, PAGES_THP, &err) < 0 &&
              strstr(err.text, "node 2"),
          "half of 4 GiB does not: %s", err.text);
    dir_write(root, "sys/kernel/mm/mempolicy/weighted_interleave/node0", "3\n");
    dir_write(root, "sys/kernel/mm/mempolicy/weighted_interleave/node2", "1\n");
    CHECK(memory_interleave_weight(root, 0) == 3 &&
              memory_interleave_weight(root, 1) == MEMORY_UNKNOWN,
          "weights of the kernel");
    CHECK(ask(target_interleaved(5, true), 4 * GIB, 1, PAGES_THP, &err) == 0, "a quarter does: %s",
          err.text);
}

static void huge(void)
{
    struct err err = {0};
    dir_write(root, "sys/devices/system/node/node2/hugepages/hugepages-2048kB/free_hugepages",
              "512\n");
    CHECK(ask(2, GIB, 1, PAGES_HUGE, &err) == 0, "just enough of them");
    CHECK(ask(2, GIB, 2, PAGES_HUGE, &err) < 0 && strcmp(err.member, "pages") == 0, "not twice: %s",
          err.text);
    CHECK(ask(2, GIB, 1, PAGES_2M, &err) == 0, "the same by their size");
    CHECK(ask(2, GIB, 1, PAGES_1G, &err) < 0 &&
              strcmp(err.text, "node 2 has no reserved pages of 1G") == 0,
          "there are none of another size: %s", err.text);
    dir_write(root, "sys/devices/system/node/node2/hugepages/hugepages-1048576kB/free_hugepages",
              "1\n");
    CHECK(ask(2, GIB, 1, PAGES_1G, &err) == 0 && ask(2, GIB, 3, PAGES_1G, &err) < 0 &&
              strcmp(err.text, "the ranks need 3 reserved pages of 1G on node 2, which has 1 of "
                               "them free") == 0,
          "one page of it, and not three: %s", err.text);
}

static void caches(void)
{
    struct cache_info c = cache_of(root, 3);
    CHECK(c.line_bytes == 64 && c.llc_bytes == SPEC_LLC_DEFAULT, "caches not known: assumed");
    dir_write(root, "sys/devices/system/cpu/cpu3/cache/index0/type", "Instruction\n");
    dir_write(root, "sys/devices/system/cpu/cpu3/cache/index0/level", "1\n");
    dir_write(root, "sys/devices/system/cpu/cpu3/cache/index1/type", "Unified\n");
    dir_write(root, "sys/devices/system/cpu/cpu3/cache/index1/level", "3\n");
    dir_write(root, "sys/devices/system/cpu/cpu3/cache/index1/size", "32768K\n");
    dir_write(root, "sys/devices/system/cpu/cpu3/cache/index1/coherency_line_size", "128\n");
    c = cache_of(root, 3);
    CHECK(c.line_bytes == 128 && c.llc_bytes == 32 << 20, "line and last level are read");
}

// Of three CPUs: the strongest, one that reaches a little less, a weak one.
static void kinds(void)
{
    dir_write(root, "sys/devices/system/cpu/cpu4/cpu_capacity", "1024\n");
    dir_write(root, "sys/devices/system/cpu/cpu5/cpu_capacity", "1009\n");
    dir_write(root, "sys/devices/system/cpu/cpu6/cpu_capacity", "623\n");
    int strong = cache_cpu_place(root, 4).kind, less = cache_cpu_place(root, 5).kind;
    CHECK_INT(less, strong, "a core with a slightly lower clock is of the same kind");
    CHECK(cache_cpu_place(root, 6).kind != strong, "a weak core is of another kind");
}

int main(void)
{
    dir_make(root);
    machines();
    nodes();
    groups();
    interleaved();
    huge();
    caches();
    kinds();
    dir_remove(root);
    CHECK(access(root, F_OK) != 0, "the folder is gone");
    return tap_done();
}
