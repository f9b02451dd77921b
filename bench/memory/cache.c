// SPDX-License-Identifier: Apache-2.0
// A few files of /sys for each CPU. A rank reads those of its own CPU, and the board collects
// them.
#include "bench/memory/cache.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "model/spec.h"

static bool read_cpu_word(const char *root, int cpu, const char *file, char *out, int room)
{
    char path[512];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/%s", root, cpu, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(out, room, f) != NULL;
    fclose(f);
    if (got)
        out[strcspn(out, "\n")] = '\0';
    return got;
}

static bool read_word(const char *root, int cpu, int index, const char *file, char *out, int room)
{
    char path[80];
    snprintf(path, sizeof path, "cache/index%d/%s", index, file);
    return read_cpu_word(root, cpu, path, out, room);
}

struct cache_info cache_of(const char *root, int cpu)
{
    struct cache_info found = {.line_bytes = 64, .llc_bytes = SPEC_LLC_DEFAULT};
    char word[32];
    int64_t highest = 0;
    for (int i = 0; read_word(root, cpu, i, "type", word, sizeof word); i++) {
        int64_t level = 0;
        uint64_t bytes, line;
        if (strcmp(word, "Instruction") == 0 ||
            !read_word(root, cpu, i, "level", word, sizeof word) || !str_to_i64(word, &level))
            continue;
        if (read_word(root, cpu, i, "coherency_line_size", word, sizeof word) &&
            str_to_u64(word, &line) && line >= 8)
            found.line_bytes = line;
        if (level > highest && read_word(root, cpu, i, "size", word, sizeof word) &&
            str_to_bytes(word, 1, &bytes) && bytes) {
            highest = level;
            found.llc_bytes = bytes;
            found.l2_bytes = level == 2 ? bytes : found.l2_bytes;
        }
    }
    return found;
}

static int first_number(const char *root, int cpu, const char *file)
{
    char word[256];
    int n = -1;
    return read_cpu_word(root, cpu, file, word, sizeof word) && sscanf(word, "%d", &n) == 1 ? n
                                                                                            : -1;
}

// Capacities of alike cores differ by a few per cent where some reach a higher clock. The strongest
// have 1024, so the steps have their middles at multiples.
static int cache_kind(const char *root, int cpu)
{
    enum { CAPACITY_STEP = 128 };
    char all[256], word[32];
    int capacity = first_number(root, cpu, "cpu_capacity");
    int step = capacity < 0 ? -1 : (capacity + CAPACITY_STEP / 2) / CAPACITY_STEP;
    int used = snprintf(all, sizeof all, "%d", step);
    for (int i = 0; used < (int)sizeof all && read_word(root, cpu, i, "size", word, sizeof word);
         i++)
        used += snprintf(all + used, sizeof all - (size_t)used, " %s", word);
    return (int)(hash_bytes(all, strlen(all)) % INT32_MAX);
}

// The first CPU of the list that shares the cache stands for it.
static int last_cache(const char *root, int cpu)
{
    char word[32], path[64];
    int64_t highest = 0, level = 0;
    int found = -1;
    for (int i = 0; read_word(root, cpu, i, "level", word, sizeof word); i++)
        if (str_to_i64(word, &level) && level >= highest) {
            highest = level;
            snprintf(path, sizeof path, "cache/index%d/shared_cpu_list", i);
            found = first_number(root, cpu, path);
        }
    return found;
}

struct cpu_place cache_cpu_place(const char *root, int cpu)
{
    return (struct cpu_place){
        .core = first_number(root, cpu, "topology/thread_siblings_list"),
        .llc = last_cache(root, cpu),
        .node = -1,
        .package = first_number(root, cpu, "topology/physical_package_id"),
        .kind = cache_kind(root, cpu),
    };
}
