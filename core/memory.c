// SPDX-License-Identifier: Apache-2.0
// How much memory a run may count on. A node's own free memory is what a process bound to it gets;
// on a machine with one node the kernel's MemAvailable is the better estimate, and on machines
// whose memory is plugged in on demand the only right one (there the node shows what is plugged so
// far).
#include "core/machine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

// Value in bytes of "…Name: 123 kB" in a meminfo file; -1: not there.
static int64_t meminfo(const char *path, const char *name)
{
    char line[256];
    int64_t found = -1;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, name);
        long long kib;
        if (at && sscanf(at + strlen(name), ": %lld kB", &kib) == 1 &&
            (at == line || at[-1] == ' ')) {
            found = kib * 1024;
            break;
        }
    }
    if (f)
        fclose(f);
    return found;
}

static int nodes_with_memory(const struct topology *t)
{
    int n = 0;
    for (int i = 0; i < t->n_nodes; i++)
        n += t->nodes[i].memory_bytes > 0;
    return n;
}

int64_t node_available_bytes(const struct topology *t, int node, const char *root)
{
    char path[512];
    if (nodes_with_memory(t) <= 1) {
        snprintf(path, sizeof path, "%s/proc/meminfo", root);
        return meminfo(path, "MemAvailable");
    }
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/meminfo", root, node);
    int64_t free_bytes = meminfo(path, "MemFree"), file = meminfo(path, "Inactive(file)");
    int64_t dirty = meminfo(path, "Dirty");
    if (free_bytes < 0)
        return -1;
    // Half of the clean inactive page cache: it can be had, but not all of it without trouble.
    int64_t clean = file > 0 && dirty >= 0 && file > dirty ? (file - dirty) / 2 : 0;
    return free_bytes + clean;
}

// Line of /proc/self/cgroup for `controller` ("" is v2): its path.
static bool cgroup_path(const char *root, const char *controller, char *out, size_t room)
{
    char path[512], line[512], wanted[64];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    snprintf(wanted, sizeof wanted, ":%s:", controller);
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *at = strstr(line, wanted);
        if (!at)
            continue;
        at[strcspn(at, "\n")] = '\0';
        snprintf(out, room, "%s", at + strlen(wanted));
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

static int64_t read_number(const char *dir, const char *file)
{
    char path[1200], text[64];
    int64_t v;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return file_read_text(path, text, sizeof text) == 0 && str_to_i64(text, &v) ? v : -1;
}

// "name 123" in a memory.stat; 0: not there.
static int64_t stat_bytes(const char *dir, const char *name)
{
    char path[1200], line[256];
    int64_t found = 0;
    size_t n = strlen(name);
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ' ') {
            line[strcspn(line, "\n")] = '\0';
            if (!str_to_i64(line + n + 1, &found))
                found = 0;
            break;
        }
    if (f)
        fclose(f);
    return found;
}

// Usage counts the page cache of whatever the group ever read; the inactive, clean part of it is
// given up without trouble. (v1 names that of the whole subtree total_…)
static int64_t in_use(const char *dir, const char *usage_file)
{
    bool v1 = strstr(usage_file, "in_bytes") != NULL;
    int64_t usage = read_number(dir, usage_file);
    int64_t cache = stat_bytes(dir, v1 ? "total_inactive_file" : "inactive_file") -
                    stat_bytes(dir, v1 ? "total_dirty" : "file_dirty");
    return usage >= 0 && cache > 0 ? (usage > cache ? usage - cache : 0) : usage;
}

// Smallest room of this group and all above it.
static int64_t room_up_to(const char *base, char *path, const char *limit_file,
                          const char *usage_file)
{
    int64_t least = INT64_MAX;
    for (;;) {
        char dir[1100];
        snprintf(dir, sizeof dir, "%s%s", base, path);
        int64_t limit = read_number(dir, limit_file), usage = in_use(dir, usage_file);
        if (limit >= 0 && usage >= 0 && limit < INT64_MAX / 2 && limit - usage < least)
            least = limit - usage > 0 ? limit - usage : 0;
        char *slash = strrchr(path, '/');
        if (!slash || !*path || strcmp(path, "/") == 0)
            return least;
        *slash = '\0';
    }
}

int64_t cgroup_available_bytes(const char *root)
{
    char path[512], base[512];
    int64_t v1 = INT64_MAX, v2 = INT64_MAX;
    if (cgroup_path(root, "memory", path, sizeof path)) {
        snprintf(base, sizeof base, "%s/sys/fs/cgroup/memory", root);
        v1 = room_up_to(base, path, "memory.limit_in_bytes", "memory.usage_in_bytes");
    }
    if (cgroup_path(root, "", path, sizeof path)) {
        snprintf(base, sizeof base, "%s/sys/fs/cgroup", root);
        char again[512];
        snprintf(again, sizeof again, "%s", path);
        v2 = room_up_to(base, path, "memory.max", "memory.current");
        int64_t high = room_up_to(base, again, "memory.high", "memory.current");
        v2 = high < v2 ? high : v2; // above it the kernel throttles
    }
    int64_t least = v1 < v2 ? v1 : v2;
    return least == INT64_MAX ? -1 : least;
}
