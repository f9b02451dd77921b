// SPDX-License-Identifier: Apache-2.0
// Machines as folders: how much memory they say there is.
#include "base/memory.h"

#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char root[64];
static const int64_t MIB = 1 << 20, GIB = 1 << 30;

static void nothing_known(void)
{
    CHECK(memory_available_bytes(root) == MEMORY_UNKNOWN &&
              memory_node_available_bytes(root, 0) == MEMORY_UNKNOWN &&
              memory_node_huge_bytes(root, 0, 2 * MIB) == MEMORY_UNKNOWN &&
              memory_cgroup_room_bytes(root) == MEMORY_UNKNOWN,
          "without files nothing is known");
}

static void one_node(void)
{
    dir_write(root, "proc/meminfo",
              "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nHugepagesize: 2048 kB\n");
    CHECK(memory_available_bytes(root) == 8 * GIB, "MemAvailable is read");
    dir_write(root, "sys/devices/system/node/has_memory", "0\n");
    dir_write(root, "sys/devices/system/node/node0/meminfo",
              "Node 0 MemTotal: 2097152 kB\nNode 0 MemFree: 1048576 kB\n");
    CHECK(memory_node_available_bytes(root, 0) == 8 * GIB,
          "with one node the machine's number counts, not the node's");
    dir_write(root, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB\n");
    CHECK(memory_node_available_bytes(root, 0) == 8 * GIB, "a node without memory is none");
}

static void nodes(void)
{
    dir_write(root, "sys/devices/system/node/node0/meminfo",
              "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 1048576 kB\n"
              "Node 0 Inactive(file): 524288 kB\nNode 0 Dirty: 0 kB\n");
    dir_write(root, "sys/devices/system/node/node17/meminfo",
              "Node 17 MemTotal: 8388608 kB\nNode 17 MemFree: 131072 kB\n");
    CHECK(memory_node_available_bytes(root, 0) == (1024 + 256) * MIB,
          "free and half of the clean page cache");
    CHECK(memory_node_available_bytes(root, 17) == 128 * MIB,
          "free alone where that is all that is said");
    CHECK(memory_node_available_bytes(root, 3) == MEMORY_UNKNOWN, "a node that is not there");
    dir_write(root, "sys/devices/system/node/node0/meminfo",
              "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 1048576 kB\n"
              "Node 0 Active(file): 262144 kB\nNode 0 Inactive(file): 524288 kB\n"
              "Node 0 Dirty: 131072 kB\nNode 0 Writeback: 131072 kB\n"
              "Node 0 SReclaimable: 65536 kB\n");
    CHECK(memory_node_available_bytes(root, 0) == (1024 + (256 + 512 - 256 + 64) / 2) * MIB,
          "active cache and slabs count, what is to be written does not");
    dir_write(root, "sys/devices/system/node/node0/meminfo",
              "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 1048576 kB\n"
              "Node 0 Inactive(file): 1024 kB\nNode 0 Dirty: 2048 kB\n");
    CHECK(memory_node_available_bytes(root, 0) == GIB, "never less than what is free");
}

static void page_sizes(void)
{
    struct page_sizes p = memory_page_sizes(root);
    CHECK(p.base == (uint64_t)sysconf(_SC_PAGESIZE) && p.thp == 2 << 20 && p.huge == 2 << 20,
          "what the kernel does not say is the usual");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912\n");
    dir_write(root, "proc/meminfo", "MemTotal: 16777216 kB\nHugepagesize: 1048576 kB\n");
    p = memory_page_sizes(root);
    CHECK(p.thp == 512 << 20 && p.huge == 1 << 30, "transparent and reserved sizes are read");
}

static void small_huge_pages(void)
{
    CHECK(memory_small_huge_bytes(root) == MEMORY_UNKNOWN, "no counters of other sizes");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/nr_anon", "16\n");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/nr_anon", "8\n");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/nr_anon", "99\n");
    CHECK(memory_small_huge_bytes(root) == 2 * MIB, "those that are smaller than the usual");
}

static void huge_pages(void)
{
    dir_write(root, "sys/devices/system/node/node2/hugepages/hugepages-2048kB/free_hugepages",
              "512\n");
    CHECK(memory_node_huge_bytes(root, 2, 2 * MIB) == GIB, "free huge pages of a node");
    CHECK(memory_node_huge_bytes(root, 2, GIB) == MEMORY_UNKNOWN, "of a size that there is not");
    CHECK(memory_node_huge_bytes(root, 3, 2 * MIB) == MEMORY_UNKNOWN,
          "of a node that has no such file");
}

static void groups(void)
{
    dir_write(root, "proc/self/cgroup", "0::/c\n");
    dir_write(root, "sys/fs/cgroup/c/memory.max", "max\n");
    dir_write(root, "sys/fs/cgroup/c/memory.current", "5\n");
    CHECK(memory_cgroup_room_bytes(root) == MEMORY_UNKNOWN, "no limit");
    dir_write(root, "sys/fs/cgroup/c/memory.max", "1000000000\n");
    dir_write(root, "sys/fs/cgroup/c/memory.current", "900000000\n");
    CHECK(memory_cgroup_room_bytes(root) == 100000000, "what is left below the limit");
    dir_write(root, "sys/fs/cgroup/c/memory.stat",
              "anon 1\ninactive_file 500000000\nfile_dirty 1000\n");
    CHECK(memory_cgroup_room_bytes(root) == 599999000, "clean page cache can be had");
    dir_write(root, "sys/fs/cgroup/c/memory.high", "800000000\n");
    CHECK(memory_cgroup_room_bytes(root) == 399999000, "memory.high is a limit too");
    dir_write(root, "sys/fs/cgroup/c/memory.max", "max\n");
    CHECK(memory_cgroup_room_bytes(root) == 399999000, "also where it is the only one");
    dir_write(root, "sys/fs/cgroup/c/memory.high", "300000000\n");
    CHECK(memory_cgroup_room_bytes(root) == 0, "above it there is no room");
}

static void groups_above(void)
{
    dir_write(root, "proc/self/cgroup", "0::/a/b\n");
    dir_write(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
    dir_write(root, "sys/fs/cgroup/a/b/memory.current", "0\n");
    dir_write(root, "sys/fs/cgroup/a/memory.max", "2147483648\n");
    dir_write(root, "sys/fs/cgroup/a/memory.current", "1610612736\n");
    dir_write(root, "sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 536870912\n");
    CHECK(memory_cgroup_room_bytes(root) == GIB,
          "the limit of a group above, less use, plus cache");
    dir_write(root, "proc/self/cgroup", "0::/docker/f00d\n");
    dir_write(root, "sys/fs/cgroup/memory.max", "209715200\n");
    dir_write(root, "sys/fs/cgroup/memory.current", "0\n");
    CHECK(memory_cgroup_room_bytes(root) == 200 * MIB,
          "a group that cannot be seen from inside is the root of the mount");
    dir_write(root, "proc/self/cgroup", "0::/\n");
    CHECK(memory_cgroup_room_bytes(root) == 200 * MIB, "so is /");
}

static void tasks(void)
{
    CHECK(cgroup_room_tasks(root) == MEMORY_UNKNOWN, "no limit of tasks");
    dir_write(root, "proc/self/cgroup", "0::/t/u\n");
    dir_write(root, "sys/fs/cgroup/t/u/pids.max", "max\n");
    dir_write(root, "sys/fs/cgroup/t/u/pids.current", "3\n");
    dir_write(root, "sys/fs/cgroup/t/pids.max", "4096\n");
    dir_write(root, "sys/fs/cgroup/t/pids.current", "96\n");
    CHECK(cgroup_room_tasks(root) == 4000, "what a group above leaves");
    dir_write(root, "proc/self/cgroup", "7:pids:/old\n4:cpuset,memory:/x\n");
    dir_write(root, "sys/fs/cgroup/pids/old/pids.max", "10\n");
    dir_write(root, "sys/fs/cgroup/pids/old/pids.current", "12\n");
    CHECK(cgroup_room_tasks(root) == 0, "version 1, and above its limit");
}

static void old_groups(void)
{
    dir_write(root, "proc/self/cgroup", "nonsense\n3:name=memory:/x\n4:cpuset,memory:/x\n");
    dir_write(root, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    dir_write(root, "sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1\n");
    CHECK(memory_cgroup_room_bytes(root) == MEMORY_UNKNOWN, "the old interface's way to say none");
    dir_write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    dir_write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "536870912\n");
    CHECK(memory_cgroup_room_bytes(root) == GIB / 2, "the old interface's limit");
    dir_write(root, "sys/fs/cgroup/memory/memory.stat",
              "inactive_file 1\ntotal_inactive_file 2097152\ntotal_dirty 1048576\n");
    CHECK(memory_cgroup_room_bytes(root) == GIB / 2 + MIB, "and its clean cache, of the subtree");
    dir_write(root, "proc/self/cgroup", "3:name=memory:/x\n");
    CHECK(memory_cgroup_room_bytes(root) == MEMORY_UNKNOWN, "a name is no controller");
}

int main(void)
{
    dir_make(root);
    nothing_known();
    page_sizes();
    small_huge_pages();
    one_node();
    nodes();
    huge_pages();
    groups();
    groups_above();
    tasks();
    old_groups();
    dir_remove(root);
    CHECK(access(root, F_OK) != 0, "the folder is gone");
    return tap_done();
}
