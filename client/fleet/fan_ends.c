// SPDX-License-Identifier: Apache-2.0
// How the conversations ended: failures with the same reason are one line with a set of nodes, and
// all of them together are one exit status.
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "client/exits.h"
#include "client/fleet/failures.h"
#include "client/fleet/fan.h"

// The nodes that failed, in order of their names. NULL: no memory.
static struct failure *fan_failures(struct fan *f, int *n)
{
    struct failure *list = calloc((size_t)fan_count(f) + 1, sizeof *list);
    *n = 0;
    for (int i = 0; list && i < fan_count(f); i++) {
        const struct fan_node *node = fan_node(f, i);
        if (node->state == FAN_FAILED)
            list[(*n)++] =
                (struct failure){node->name, node->why ? node->why : "no memory", node->code};
    }
    return list;
}

void fan_print_failures(struct fan *f, FILE *out)
{
    int n;
    CLEANUP_MEM struct failure *list = fan_failures(f, &n);
    failures_print(list, n, out);
}

void fan_write_failures(struct fan *f, struct jsonw *w, const char *key)
{
    int n;
    CLEANUP_MEM struct failure *list = fan_failures(f, &n);
    failures_write(list, n, w, key);
}

// One verdict for the caller, worst first: who was interrupted knows it, a node that is slower
// matters more than nodes that are missing, and missing nodes more than too few runs.
int fan_status(struct fan *f, int verdict, bool partial_ok)
{
    int done = fan_ended(f, FAN_DONE), failed = fan_ended(f, FAN_FAILED), busy = 0, silent = 0;
    for (int i = 0; i < fan_count(f); i++) {
        const struct fan_node *n = fan_node(f, i);
        busy += n->state == FAN_FAILED && n->code == ERR_BUSY;
        silent += n->state == FAN_FAILED && !n->reached;
    }
    if (fan_stopped(f))
        return CLI_EXIT_INTERRUPTED;
    if (!done && failed)
        return busy == failed     ? CLI_EXIT_BUSY
               : silent == failed ? CLI_EXIT_UNREACHABLE
                                  : CLI_EXIT_FAILED;
    if (verdict == CLI_EXIT_SLOWER || !failed || partial_ok)
        return verdict;
    return CLI_EXIT_PARTIAL;
}
