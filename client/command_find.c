// SPDX-License-Identifier: Apache-2.0
// From a word of the command line to what it names: a command of a table, or a benchmark. An
// unknown word gets the nearest known one.
#include <string.h>

#include "base/suggest.h"
#include "client/commands.h"

const struct command *command_find(const struct command *table, const char *name, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(name);
    char text[SUGGEST_TEXT_ROOM];
    for (const struct command *k = table; k->name; k++) {
        if (strcmp(k->name, name) == 0 || (k->alias && strcmp(k->alias, name) == 0))
            return k;
        suggest_consider(&near, k->name);
    }
    err_set(err, ERR_USAGE, "", "unknown command \"%.40s\"%s (see numaprobe help)", name,
            suggest_text(&near, "", text, sizeof text));
    return NULL;
}

const struct benchmark *command_benchmark(const char *name, struct err *err)
{
    const struct benchmark *found = benchmark_find(name);
    struct suggestion near = SUGGESTION_FOR(name);
    char text[SUGGEST_TEXT_ROOM];
    for (int b = 0; b < BENCHMARKS; b++)
        suggest_consider(&near, benchmarks[b].name);
    if (!found)
        err_set(err, ERR_USAGE, "", "unknown benchmark \"%.40s\"%s (see numaprobe help run)", name,
                suggest_text(&near, "", text, sizeof text));
    return found;
}
