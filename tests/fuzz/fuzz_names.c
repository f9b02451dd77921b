// SPDX-License-Identifier: Apache-2.0
// Names that a user types, and what there is. The first line is a node set or a fact, the others
// are a file of groups, or the facts that nodes have. What is found is there; an error is one line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/nodeset.h"
#include "nodes/sources.h"
#include "tests/fuzz/fuzz.h"

static char path[300];

void fuzz_groups_begin(const char *dir)
{
    snprintf(path, sizeof path, "%s/groups", dir);
}

static void check_error(const struct err *err, const char *member)
{
    fuzz_hold(err->code != ERR_NONE && *err->text);
    fuzz_hold(!member || strcmp(err->member, member) == 0);
    fuzz_hold(!str_control(err->text, strlen(err->text)));
}

static void count_groups(void *ctx, const char *group, const struct nodeset *nodes)
{
    fuzz_hold(group && nodes->n >= 0);
    ++*(int *)ctx;
}

void fuzz_groups(const uint8_t *data, size_t size)
{
    CLEANUP_MEM char *text = fuzz_text(data, size);
    CLEANUP_NODESET struct nodeset found = {0};
    struct err err = {0};
    int n = 0;
    const size_t first = strcspn(text, "\n"), rest = first + (first < size);
    fuzz_accepted = false;
    fuzz_write(path, data + rest, size - rest);
    text[first] = '\0';
    if (fleet_groups_each(path, "", count_groups, &n, &err) < 0)
        check_error(&err, NULL);
    if (*text == '^' || strcmp(text, "-") == 0) // files of this machine
        return;
    const struct fleet_source q = {.nodes = text, .groups_file = path};
    fuzz_accepted = fleet_names(&q, &found, &err) == 0;
    if (!fuzz_accepted)
        check_error(&err, NULL);
    for (int i = 0; i < found.n; i++)
        fuzz_hold(nodeset_name_check(found.names[i], NULL) == 0);
}

void fuzz_facts(const uint8_t *data, size_t size)
{
    enum { FACTS_MOST = 64 };
    CLEANUP_MEM char *text = fuzz_text(data, size);
    char *rest = text, *fact = strsep(&rest, "\n"), *names[FACTS_MOST];
    struct fleet_facts lists[2] = {{.name = names}, {.name = names}}; // the second has none
    struct err err = {0};
    bool there = false;
    for (char *line; lists[0].n < FACTS_MOST && (line = strsep(&rest, "\n"));) {
        names[lists[0].n++] = line;
        there |= strcmp(line, fact) == 0;
    }
    fuzz_accepted = fleet_facts_check(lists, 2, fact, &err) == 0;
    fuzz_hold(fuzz_accepted == there);
    if (!fuzz_accepted)
        check_error(&err, "fact");
}
