// SPDX-License-Identifier: Apache-2.0
// How the conversations ended: failures with the same reason are one line with a set of nodes, and
// all of them together are one exit status.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/exits.h"
#include "client/fleet/fan.h"

struct failure {
    const struct fan_node *node;
    int at; // its place in the set
};

static const char *reason(const struct fan_node *n)
{
    return n->why ? n->why : "no memory";
}

static int by_reason(const void *a, const void *b)
{
    const struct failure *x = a, *y = b;
    int code = (int)x->node->code - (int)y->node->code,
        text = strcmp(reason(x->node), reason(y->node));
    return code ? code : text ? text : x->at - y->at;
}

static bool same_reason(const struct failure *a, const struct failure *b)
{
    return a->node->code == b->node->code && strcmp(reason(a->node), reason(b->node)) == 0;
}

// Calls fn for each reason, with the set of its nodes as text; stops when it returns false. Returns
// how many nodes had a reason for which fn was not called.
typedef bool each_reason_fn(void *ctx, const struct fan_node *first, const char *nodes, int count);
static int each_reason(struct fan *f, each_reason_fn *fn, void *ctx)
{
    int n = 0, from = 0;
    CLEANUP_MEM struct failure *list = calloc((size_t)fan_count(f) + 1, sizeof *list);
    for (int i = 0; list && i < fan_count(f); i++)
        if (fan_node(f, i)->state == FAN_FAILED)
            list[n++] = (struct failure){fan_node(f, i), i};
    if (n)
        qsort(list, (size_t)n, sizeof *list, by_reason);
    for (int to = 0; from < n; from = to) {
        CLEANUP_BUF struct buf names = BUF_INIT;
        CLEANUP_NODESET struct nodeset set = {0};
        for (to = from; to < n && same_reason(&list[from], &list[to]); to++)
            nodeset_add(&set, list[to].node->name, NULL);
        nodeset_fold(&set, &names);
        if (!fn(ctx, list[from].node, buf_text(&names), to - from))
            break;
    }
    return n - from;
}

struct failure_lines {
    FILE *out;
    int n;
};

static bool print_reason(void *ctx, const struct fan_node *first, const char *nodes, int count)
{
    struct failure_lines *l = ctx;
    enum { SET_ROOM = 200 }; // of one line; -o json has the whole set
    bool cut = strlen(nodes) > SET_ROOM;
    (void)count;
    if (l->n++ == FAN_REASONS_MAX)
        return false;
    fprintf(l->out, "%-22.*s%s %s: %s\n", SET_ROOM, nodes, cut ? "..." : "",
            err_info(first->code)->slug, reason(first));
    return true;
}

void fan_print_failures(struct fan *f, FILE *out)
{
    struct failure_lines lines = {.out = out};
    int more = each_reason(f, print_reason, &lines);
    if (more)
        fprintf(out, "%d more nodes failed for other reasons; -o json lists all of them\n", more);
}

static bool write_reason(void *ctx, const struct fan_node *first, const char *nodes, int count)
{
    struct jsonw *w = ctx;
    jsonw_object(w, NULL);
    jsonw_text(w, "nodes", nodes);
    jsonw_i64(w, "count", count);
    jsonw_text(w, "error", err_info(first->code)->slug);
    jsonw_text(w, "text", reason(first));
    jsonw_end(w);
    return true;
}

void fan_write_failures(struct fan *f, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    each_reason(f, write_reason, w);
    jsonw_end(w);
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
