// SPDX-License-Identifier: Apache-2.0
// Limits are found from three sides: the machine's and the node's free memory, and what the
// cgroups above us still allow. The caller takes the least.
#include "base/memory.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_cgroups.h"
#include "base/str.h"

__attribute__((format(printf, 1, 2))) static FILE *open_at(const char *fmt, ...)
{
    char path[1200];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    return n < (int)sizeof path ? fopen(path, "re") : NULL;
}

// "key: 1 kB", "Node 0 key: 1 kB", "key 1", or for the key "" just "1".
static bool number_after(const char *line, const char *key, int64_t *value)
{
    const char *at = strstr(line, key);
    if (!at || (at != line && at[-1] != ' '))
        return false;
    at += strlen(key);
    at += *at == ':';
    char *end;
    long long v = strtoll(at, &end, 10);
    if (end == at || v < 0)
        return false;
    *value = v;
    return true;
}

// The first number that the file has after the key; closes it.
static int64_t find_number(FILE *given, const char *key)
{
    CLEANUP_FILE FILE *f = given;
    char line[512];
    int64_t value;
    while (f && fgets(line, sizeof line, f))
        if (number_after(line, key, &value))
            return value;
    return MEMORY_UNKNOWN;
}

static int64_t from_kib(int64_t v)
{
    return v < 0 ? MEMORY_UNKNOWN : v * 1024;
}

static int64_t or_zero(int64_t v)
{
    return v < 0 ? 0 : v;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

// --- Machine and nodes -------------------------------------------------------------------------

#define NODES "%s/sys/devices/system/node"

static int64_t machine_number(const char *root, const char *key)
{
    return from_kib(find_number(open_at("%s/proc/meminfo", root), key));
}

static int64_t node_number(const char *root, int node, const char *key)
{
    return from_kib(find_number(open_at(NODES "/node%d/meminfo", root, node), key));
}

int memory_interleave_weight(const char *root, int node)
{
    return (int)find_number(
        open_at("%s/sys/kernel/mm/mempolicy/weighted_interleave/node%d", root, node), "");
}

int64_t memory_node_total_bytes(const char *root, int node)
{
    return node_number(root, node, "MemTotal");
}

// Those of the machine, not those that we are allowed; more than one is all that matters.
static bool several_have_memory(const char *root)
{
    char path[1200];
    int n = 0, node;
    snprintf(path, sizeof path, NODES, root);
    CLEANUP_DIR DIR *d = opendir(path);
    for (struct dirent *e; d && n < 2 && (e = readdir(d));)
        if (sscanf(e->d_name, "node%d", &node) == 1)
            n += memory_node_total_bytes(root, node) > 0;
    return n > 1;
}

// --- Pages -------------------------------------------------------------------------------------

#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage"

const struct page_sizes page_sizes_usual = {4096, 2 << 20, 2 << 20};

struct page_sizes memory_page_sizes(const char *root)
{
    struct page_sizes p = page_sizes_usual;
    long base = sysconf(_SC_PAGESIZE);
    int64_t thp = find_number(open_at("%s" THP_FOLDER "/hpage_pmd_size", root), "");
    int64_t huge = machine_number(root, "Hugepagesize");
    p.base = base > 0 ? (uint64_t)base : p.base;
    p.thp = thp > 0 ? (uint64_t)thp : p.thp;
    p.huge = huge > 0 ? (uint64_t)huge : p.huge;
    return p;
}

int64_t memory_small_huge_bytes(const char *root)
{
    char path[1200];
    int64_t kib, sum = MEMORY_UNKNOWN, most = (int64_t)memory_page_sizes(root).thp;
    snprintf(path, sizeof path, "%s" THP_FOLDER, root);
    CLEANUP_DIR DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (sscanf(e->d_name, "hugepages-%" SCNd64 "kB", &kib) != 1 || kib * 1024 >= most)
            continue;
        int64_t n = find_number(
            open_at("%s" THP_FOLDER "/hugepages-%" PRId64 "kB/stats/nr_anon", root, kib), "");
        if (n >= 0)
            sum = or_zero(sum) + n * kib * 1024;
    }
    return sum;
}

// --- What is to be had -------------------------------------------------------------------------

int64_t memory_available_bytes(const char *root)
{
    return machine_number(root, "MemAvailable");
}

static int64_t memory_number_of(const char *text, const char *key)
{
    int64_t value;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (number_after(line, key, &value))
            return from_kib(value);
    return MEMORY_UNKNOWN;
}

// Half, because dropping the rest makes trouble. What waits to be written cannot be dropped.
static int64_t droppable(const char *meminfo)
{
    int64_t cache = or_zero(memory_number_of(meminfo, "Active(file)")) +
                    or_zero(memory_number_of(meminfo, "Inactive(file)"));
    int64_t busy = or_zero(memory_number_of(meminfo, "Dirty")) +
                   or_zero(memory_number_of(meminfo, "Writeback"));
    int64_t slabs = or_zero(memory_number_of(meminfo, "SReclaimable"));
    return (or_zero(cache - busy) + slabs) / 2;
}

// With one node the machine's number is the truth: memory plugged in on demand is in MemAvailable
// and not always in the node's meminfo.
int64_t memory_node_available_bytes(const char *root, int node)
{
    char meminfo[8192]; // a node's has 1.5 KiB
    if (!several_have_memory(root))
        return memory_available_bytes(root);
    if (file_read_fmt(meminfo, sizeof meminfo, NODES "/node%d/meminfo", root, node) < 0)
        return MEMORY_UNKNOWN;
    int64_t free_bytes = memory_number_of(meminfo, "MemFree");
    return free_bytes < 0 ? MEMORY_UNKNOWN : free_bytes + droppable(meminfo);
}

int64_t memory_node_huge_bytes(const char *root, int node, uint64_t page_bytes)
{
    int64_t pages =
        find_number(open_at(NODES "/node%d/hugepages/hugepages-%" PRIu64 "kB/free_hugepages", root,
                            node, page_bytes / 1024),
                    "");
    return pages < 0 ? MEMORY_UNKNOWN : pages * (int64_t)page_bytes;
}

// --- Cgroups ----------------------------------------------------------------------------

struct cgroup_files {
    const char *mount, *limit, *throttle, *used; // no throttle: the limit again
    const char *inactive, *dirty, *writeback;    // in memory.stat, of the whole subtree; NULL: none
};

// What a cgroup limits, by the files of both versions.
struct controller {
    const char *name;
    struct cgroup_files v1, v2;
};
static const struct controller memory_controller = {
    "memory",
    .v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.limit_in_bytes",
           "memory.usage_in_bytes", "total_inactive_file", "total_dirty", "total_writeback"},
    .v2 = {"/sys/fs/cgroup", "memory.max", "memory.high", "memory.current", "inactive_file",
           "file_dirty", "file_writeback"},
};
static const struct controller pids_controller = {
    "pids",
    .v1 = {"/sys/fs/cgroup/pids", "pids.max", "pids.max", "pids.current", NULL, NULL, NULL},
    .v2 = {"/sys/fs/cgroup", "pids.max", "pids.max", "pids.current", NULL, NULL, NULL},
};

struct cgroup {
    const char *root;
    const struct cgroup_files *files;
    const char *path; // "" is the root of the mount
};

static int64_t cgroup_number(const struct cgroup *g, const char *file, const char *key)
{
    return find_number(open_at("%s%s%s/%s", g->root, g->files->mount, g->path, file), key);
}

static int64_t cgroup_stat(const struct cgroup *g, const char *key)
{
    return or_zero(cgroup_number(g, "memory.stat", key));
}

// Usage counts the page cache of whatever the group ever read.
static int64_t cgroup_used(const struct cgroup *g)
{
    const struct cgroup_files *k = g->files;
    int64_t used = cgroup_number(g, k->used, "");
    if (!k->inactive)
        return used;
    int64_t busy = cgroup_stat(g, k->dirty) + cgroup_stat(g, k->writeback);
    int64_t clean = or_zero(cgroup_stat(g, k->inactive) - busy);
    return used < 0 ? MEMORY_UNKNOWN : or_zero(used - clean);
}

static int64_t cgroup_room(const struct cgroup *g)
{
    const struct cgroup_files *k = g->files;
    int64_t limit = least(cgroup_number(g, k->limit, ""), cgroup_number(g, k->throttle, ""));
    if (limit < 0 || limit > INT64_MAX / 2) // v1 says "none" so
        return MEMORY_UNKNOWN;
    int64_t used = cgroup_used(g);
    return used < 0 ? MEMORY_UNKNOWN : or_zero(limit - used);
}

// The least of a group and all above it.
static int64_t room_of(const char *root, const struct controller *c)
{
    struct own_cgroups g CLEANUP(own_cgroups_close);
    int64_t room = MEMORY_UNKNOWN;
    own_cgroups_open(&g, root);
    while (own_cgroups_next(&g)) {
        const struct cgroup_files *k = *g.controllers ? &c->v1 : &c->v2;
        if (k == &c->v1 && !own_cgroups_has(&g, c->name))
            continue;
        do
            room = least(room, cgroup_room(&(struct cgroup){root, k, g.path}));
        while (own_cgroups_up(&g));
    }
    return g.f && ferror(g.f) ? MEMORY_UNKNOWN : room;
}

int64_t memory_cgroup_room_bytes(const char *root)
{
    return room_of(root, &memory_controller);
}

int64_t cgroup_room_tasks(const char *root)
{
    return room_of(root, &pids_controller);
}
