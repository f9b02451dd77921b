// SPDX-License-Identifier: Apache-2.0
#include "bench/cache.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static bool read_word(const char *root, int cpu, int index, const char *file, char *out, int room)
{
    char path[512];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/cache/index%d/%s", root, cpu,
             index, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(out, room, f) != NULL;
    fclose(f);
    if (got)
        out[strcspn(out, "\n")] = '\0';
    return got;
}

struct cache_info cache_of(const char *root, int cpu)
{
    struct cache_info found = {.line_bytes = 64, .llc_bytes = CACHE_LLC_DEFAULT};
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
        }
    }
    return found;
}
