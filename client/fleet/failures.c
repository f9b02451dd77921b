// SPDX-License-Identifier: Apache-2.0
// Equal reasons are next to each other once the list is sorted. A set of nodes is folded, so that
// ten thousand nodes without a network are one line.
#include "client/fleet/failures.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/nodeset.h"

struct failure_at {
    struct failure one;
    int at; // its place in the list
};

static int by_reason(const void *a, const void *b)
{
    const struct failure_at *x = a, *y = b;
    int code = (int)x->one.code - (int)y->one.code, text = strcmp(x->one.why, y->one.why);
    return code ? code : text ? text : x->at - y->at;
}

static bool same_reason(const struct failure_at *a, const struct failure_at *b)
{
    return a->one.code == b->one.code && strcmp(a->one.why, b->one.why) == 0;
}

// Calls fn for each reason, with the set of its nodes as text; stops when it returns false. Returns
// how many nodes had a reason for which fn was not called.
typedef bool each_reason_fn(void *ctx, const struct failure *first, const char *nodes, int count);
static int each_reason(const struct failure *failures, int n, each_reason_fn *fn, void *ctx)
{
    int from = 0;
    CLEANUP_MEM struct failure_at *list = calloc((size_t)n + 1, sizeof *list);
    if (!list)
        return n;
    for (int i = 0; i < n; i++)
        list[i] = (struct failure_at){failures[i], i};
    if (n)
        qsort(list, (size_t)n, sizeof *list, by_reason);
    for (int to = 0; from < n; from = to) {
        CLEANUP_BUF struct buf names = BUF_INIT;
        CLEANUP_NODESET struct nodeset set = {0};
        for (to = from; to < n && same_reason(&list[from], &list[to]); to++)
            nodeset_add(&set, list[to].one.node, NULL);
        nodeset_fold(&set, &names);
        if (!fn(ctx, &list[from].one, buf_text(&names), to - from))
            break;
    }
    return n - from;
}

struct failure_lines {
    FILE *out;
    int n;
};

static bool print_reason(void *ctx, const struct failure *first, const char *nodes, int count)
{
    struct failure_lines *l = ctx;
    enum { SET_ROOM = 200 }; // of one line; -o json has the whole set
    bool cut = strlen(nodes) > SET_ROOM;
    (void)count;
    if (l->n++ == FAILURE_REASONS_MAX)
        return false;
    fprintf(l->out, "%-22.*s%s %s: %s\n", SET_ROOM, nodes, cut ? "..." : "",
            err_info(first->code)->slug, first->why);
    return true;
}

void failures_print(const struct failure *list, int n, FILE *out)
{
    struct failure_lines lines = {.out = out};
    int more = each_reason(list, n, print_reason, &lines);
    if (more)
        fprintf(out, "%d more node%s failed for other reasons; -o json lists all of them\n", more,
                str_plural(more));
}

static bool write_reason(void *ctx, const struct failure *first, const char *nodes, int count)
{
    struct jsonw *w = ctx;
    jsonw_object(w, NULL);
    jsonw_text(w, "nodes", nodes);
    jsonw_i64(w, "count", count);
    jsonw_text(w, "error", err_info(first->code)->slug);
    jsonw_text(w, "text", first->why);
    jsonw_end(w);
    return true;
}

void failures_write(const struct failure *list, int n, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    each_reason(list, n, write_reason, w);
    jsonw_end(w);
}
