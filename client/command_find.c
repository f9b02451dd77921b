// SPDX-License-Identifier: Apache-2.0
// From a word of the command line to what it names: a command of a table, or a benchmark. An
// unknown word gets the nearest known one.
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "client/commands.h"

// `family`: "fleet " or "". The names of its table begin with it.
static const struct command *find_in(const struct command *table, const char *family,
                                     const char *name, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(name);
    char text[SUGGEST_TEXT_ROOM];
    for (const struct command *k = table; k->name; k++) {
        const char *own = k->name + strlen(family);
        if (strcmp(own, name) == 0 || (k->alias && strcmp(k->alias, name) == 0))
            return k;
        suggest_consider(&near, own);
    }
    err_set(err, ERR_USAGE, "", "unknown command \"%s%.40s\"%s (see numaprobe help%s%.*s)", family,
            name, suggest_text(&near, family, text, sizeof text), *family ? " " : "",
            (int)strcspn(family, " "), family);
    return NULL;
}

const struct command *command_find(const struct command *table, char *const *words, int n,
                                   int *used, struct err *err)
{
    const struct command *k = find_in(table, "", words[0], err);
    *used = 1;
    if (!k || !k->subcommands || n < 2 || words[1][0] == '-')
        return k;
    char family[40];
    snprintf(family, sizeof family, "%s ", k->name);
    *used = 2;
    return find_in(k->subcommands, family, words[1], err);
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
