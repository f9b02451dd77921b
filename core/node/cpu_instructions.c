// SPDX-License-Identifier: Apache-2.0
// The kernel lists what programs may use, so a set that it has switched off is not there. All CPUs
// of a machine have the same list: the kernel keeps others off line, or leaves out what differs.
#include "core/node/cpu_instructions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/topology.h"

// Names of the kernel that a set takes; the second may be NULL.
static const struct set {
    enum cpu_instructions bit;
    const char *names[2];
} sets[] = {
#if defined __x86_64__
    {CPU_SSE2, {"sse2"}},
    {CPU_AVX2, {"avx2", "fma"}},
    {CPU_AVX512, {"avx512f", "fma"}},
#elif defined __aarch64__
    {CPU_NEON, {"asimd"}},
    {CPU_SVE, {"sve"}},
    {CPU_LLSC, {"fp"}}, // every CPU of 64 bits has it
    {CPU_LSE, {"atomics"}},
#else
    {CPU_KNOWN, {NULL}},
#endif
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if (strchr(" \t:", at[-1]) && strchr(" \t\n", at[n]))
            return true;
    return false;
}

static unsigned instructions_of(const char *line)
{
    unsigned found = CPU_KNOWN;
    const char *list = strchr(line, ':');
    for (size_t i = 0; list && i < COUNT_OF(sets); i++)
        if (sets[i].names[0] && has_word(list + 1, sets[i].names[0]) &&
            (!sets[i].names[1] || has_word(list + 1, sets[i].names[1])))
            found |= sets[i].bit;
    return found;
}

unsigned cpu_instructions_read(const char *root)
{
    char path[512];
    CLEANUP_MEM char *line = NULL;
    size_t room = 0;
    unsigned found = 0;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    CLEANUP_FILE FILE *f = fopen(path, "re");
    while (f && !found && getline(&line, &room, f) >= 0)
        if (str_starts(line, "flags\t") || str_starts(line, "Features\t") ||
            str_starts(line, "flags ") || str_starts(line, "Features "))
            found = instructions_of(line);
    return found;
}
