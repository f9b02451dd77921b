// SPDX-License-Identifier: Apache-2.0
#include "bench/memcheck.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { NODES_MAX = 1024 };
static const uint64_t MIB = 1 << 20;
static const uint64_t UNKNOWN = UINT64_MAX;

__attribute__((format(printf, 1, 2))) static FILE *open_at(const char *fmt, ...)
{
    char path[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    return fopen(path, "re");
}

// The number after `key` anywhere in a line of the file; closes it. Absent: UNKNOWN.
static uint64_t find_number(FILE *f, const char *key)
{
    char line[512];
    uint64_t found = UNKNOWN;
    if (!f)
        return UNKNOWN;
    while (found == UNKNOWN && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, key);
        char *end;
        if (!at)
            continue;
        at += strlen(key);
        uint64_t v = strtoull(at, &end, 10);
        if (end != at)
            found = v;
    }
    fclose(f);
    return found;
}

static uint64_t kib(uint64_t v)
{
    return v == UNKNOWN ? UNKNOWN : v * 1024;
}

uint64_t memcheck_machine(const char *root)
{
    return kib(find_number(open_at("%s/proc/meminfo", root), "MemAvailable:"));
}

static uint64_t node_number(const char *root, int node, const char *key)
{
    return kib(find_number(open_at("%s/sys/devices/system/node/node%d/meminfo", root, node), key));
}

static uint64_t or_zero(uint64_t v)
{
    return v == UNKNOWN ? 0 : v;
}

// As the kernel's MemAvailable, which there is none of by node: free, and half of what can be
// dropped.
uint64_t memcheck_node(const char *root, int node)
{
    uint64_t free_bytes = node_number(root, node, "MemFree:");
    if (free_bytes == UNKNOWN)
        return UNKNOWN;
    uint64_t drop = or_zero(node_number(root, node, "Active(file):")) +
                    or_zero(node_number(root, node, "Inactive(file):")) +
                    or_zero(node_number(root, node, "SReclaimable:"));
    return free_bytes + drop / 2;
}

uint64_t memcheck_node_huge(const char *root, int node)
{
    uint64_t size = kib(find_number(open_at("%s/proc/meminfo", root), "Hugepagesize:"));
    if (size == UNKNOWN)
        return UNKNOWN;
    uint64_t pages = find_number(open_at("%s/sys/devices/system/node/node%d/hugepages/"
                                         "hugepages-%" PRIu64 "kB/free_hugepages",
                                         root, node, size / 1024),
                                 "");
    return pages == UNKNOWN ? UNKNOWN : pages * size;
}

struct cgroup_files {
    const char *mount, *limit, *used, *reclaimable;
};
static const struct cgroup_files cgroup_v2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                              "inactive_file "};
static const struct cgroup_files cgroup_v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                              "memory.usage_in_bytes", "total_inactive_file "};

static uint64_t cgroup_file(const char *root, const struct cgroup_files *k, const char *path,
                            const char *file, const char *key)
{
    return find_number(open_at("%s%s%s/%s", root, k->mount, path, file), key);
}

// Room of one group; what it caches of files can be dropped.
static uint64_t cgroup_room(const char *root, const struct cgroup_files *k, const char *path)
{
    uint64_t limit = cgroup_file(root, k, path, k->limit, "");
    uint64_t used = cgroup_file(root, k, path, k->used, "");
    if (limit == UNKNOWN || used == UNKNOWN || limit > UNKNOWN / 4) // v1 says "none" so
        return UNKNOWN;
    uint64_t drop = cgroup_file(root, k, path, "memory.stat", k->reclaimable);
    used -= or_zero(drop) < used ? or_zero(drop) : used;
    return used < limit ? limit - used : 0;
}

// A group and all above it. Inside a container its path may not exist: then the mount's own root is
// it.
static uint64_t cgroup_chain(const char *root, const struct cgroup_files *k, char *path)
{
    uint64_t least = UNKNOWN;
    for (;;) {
        if (strcmp(path, "/") == 0)
            *path = '\0';
        uint64_t room = cgroup_room(root, k, path);
        least = room < least ? room : least;
        char *cut = strrchr(path, '/');
        if (!cut)
            return least;
        *cut = '\0';
    }
}

// Lines of /proc/self/cgroup: "0::/a/b" (v2), "4:memory:/a/b" (v1).
uint64_t memcheck_cgroup(const char *root)
{
    char line[900];
    uint64_t least = UNKNOWN;
    FILE *f = open_at("%s/proc/self/cgroup", root);
    if (!f)
        return UNKNOWN;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : 0;
        if (!path)
            continue;
        *path++ = '\0';
        bool v2 = strcmp(line, "0:") == 0, v1 = strstr(controllers + 1, "memory") != NULL;
        if (!v1 && !v2)
            continue;
        uint64_t room = cgroup_chain(root, v2 ? &cgroup_v2 : &cgroup_v1, path);
        least = room < least ? room : least;
    }
    fclose(f);
    return least;
}

// Arena, its page tables, and the rest of a rank.
static uint64_t rank_bytes(const struct demand *d)
{
    return d->bytes + d->bytes / 512 + MEMCHECK_RANK_MIB * MIB;
}

static int refuse(struct err *err, const char *where, uint64_t need, uint64_t room)
{
    return err_set(err, ERR_NO_MEMORY_NODE, "size",
                   "the ranks need %" PRIu64 " MiB %s, which has %" PRIu64
                   " MiB (%d MiB of it kept in reserve): choose a smaller size or fewer ranks",
                   need / MIB, where, room / MIB, MEMCHECK_RESERVE_MIB);
}

static bool fits(uint64_t need, uint64_t room)
{
    return room == UNKNOWN || need + MEMCHECK_RESERVE_MIB * MIB <= room;
}

static int nodes_with_memory(const char *root)
{
    int n = 0;
    for (int node = 0; node < NODES_MAX; node++) {
        uint64_t total = node_number(root, node, "MemTotal:");
        n += total != UNKNOWN && total > 0;
    }
    return n;
}

static int check_node(const char *root, int node, uint64_t need, enum pages pages, struct err *err)
{
    char where[48];
    if (pages == PAGES_HUGE) {
        uint64_t room = memcheck_node_huge(root, node);
        if (room == UNKNOWN || need <= room)
            return 0;
        return err_set(err, ERR_NO_MEMORY_NODE, "pages",
                       "the ranks need %" PRIu64 " MiB of huge pages on node %d, which has %" PRIu64
                       " MiB of them free",
                       need / MIB, node, room / MIB);
    }
    uint64_t room = memcheck_node(root, node);
    snprintf(where, sizeof where, "on node %d", node);
    return fits(need, room) ? 0 : refuse(err, where, need, room);
}

// With one node, the machine's number is the truth: memory plugged in while running is in
// MemAvailable and not always in the node's meminfo.
static int check_nodes(const char *root, const struct demand *ranks, int n, enum pages pages,
                       struct err *err)
{
    if (pages != PAGES_HUGE && nodes_with_memory(root) < 2)
        return 0;
    for (int i = 0; i < n; i++) {
        uint64_t need = 0;
        bool first = ranks[i].node >= 0;
        for (int k = 0; k < n; k++) {
            if (ranks[k].node != ranks[i].node)
                continue;
            first = first && k >= i;
            need += pages == PAGES_HUGE ? ranks[k].bytes : rank_bytes(&ranks[k]);
        }
        if (first && check_node(root, ranks[i].node, need, pages, err) < 0)
            return -1;
    }
    return 0;
}

int memcheck(const char *root, const struct demand *ranks, int n, enum pages pages, struct err *err)
{
    uint64_t need = 0;
    for (int i = 0; i < n; i++)
        need += pages == PAGES_HUGE ? MEMCHECK_RANK_MIB * MIB : rank_bytes(&ranks[i]);
    uint64_t machine = memcheck_machine(root), group = memcheck_cgroup(root);
    if (!fits(need, machine))
        return refuse(err, "on this machine", need, machine);
    if (!fits(need, group))
        return refuse(err, "in this control group", need, group);
    return check_nodes(root, ranks, n, pages, err);
}
