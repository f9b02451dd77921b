// SPDX-License-Identifier: Apache-2.0
// Which nodes there are, by name. A node that no source names any more stays in the list as gone.
#include "fleet/collect/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "fleet/collect/poller.h"

enum {
    FIRST_RATE = 4000, // nodes a second, of those that are new
    GONE_MAX = 16384,  // nodes that no source names any more, and that are still listed
    // More than half of them at once is what a list that was cut short would have: the sources are
    // read twice in that time.
    NODES_DOUBTED_MS = 2 * NAMING_EVERY_MS,
};

// "//n1:7780" of a source has the scheme of the setting. A source that names its node by the host
// of its address leaves it to hosts_file where that is.
static int node_base(const struct poller *p, const char *name, const char *said, char *out,
                     size_t room, struct err *err)
{
    char url[NAMED_URL_MAX + 16];
    if (strcmp(said, HERE_URL) == 0)
        return addresses_url(p->addresses, p->c->url, "url", "localhost", out, room, err);
    int scheme = strncmp(said, "//", 2) == 0 ? (int)strcspn(p->c->url, "/") : 0;
    const char *slashes = strstr(said, "//");
    size_t n = strlen(name), before = slashes ? (size_t)(slashes - said) + 2 : 0;
    if (slashes && strncmp(slashes + 2, name, n) == 0 && slashes[2 + n] == ':')
        snprintf(url, sizeof url, "%.*s%.*s%%h%s", scheme, p->c->url, (int)before, said,
                 said + before + n);
    else
        snprintf(url, sizeof url, "%.*s%s", scheme, p->c->url, *said ? said : p->c->url);
    if (*said && !strstr(url, "%h"))
        return snprintf(out, room, "%s", url) >= (int)room
                   ? err_set(err, ERR_USAGE, "url", "is too long")
                   : 0;
    return addresses_url(p->addresses, url, "url", name, out, room, err);
}

// A node behind another collector is in the state that this one says.
static void node_said_behind(struct polled *n, const struct named_node *s)
{
    polled_text(&n->behind, s->url + strlen(BEHIND_URL));
    polled_text(&n->base[0], "");
    n->at_base = 0;
    n->pushes = false;
    n->slurm_state[0] = '\0';
    for (int i = 0; i < NODE_STATES; i++)
        if (strcmp(node_states[i].name, s->state) == 0 && i != NODE_GONE)
            n->state = (enum node_state)i;
    char why[POLLER_WHY] = "";
    if (n->state > NODE_UP)
        snprintf(why, sizeof why, "this is what another collector says: %s", n->behind);
    polled_text(&n->why, why);
}

// Nothing is waited for any more: not until it had to push, nor for what it did before it was gone.
static void node_due(struct polled *n, int64_t due_ms)
{
    if (!n->busy && !node_poison(n))
        n->due_ms = due_ms;
}

// first_ms: when it is contacted if nothing is known of it, monotonic.
static void node_said(struct polled *n, const struct naming_node *said, int64_t first_ms)
{
    const uint32_t behind = said->sources & n->poller->collector_sources;
    const struct named_node *s = &said->said;
    char base[2][POLLED_BASE] = {"", ""};
    struct err err;
    n->sources = said->sources;
    polled_text(&n->class_hint, s->class_hint);
    snprintf(n->slurm_state, sizeof n->slurm_state, "%.23s", s->state);
    polled_text(&n->partitions, s->partitions);
    polled_text(&n->slurm_reason, s->reason);
    polled_text(&n->base[1], "");
    n->twice = behind && (said->sources != behind || behind & (behind - 1));
    if (str_starts(s->url, BEHIND_URL)) {
        node_said_behind(n, s);
        return;
    }
    polled_text(&n->behind, "");
    bool pushed = n->pushes, gone = n->state == NODE_GONE;
    n->failures = gone ? 0 : n->failures;
    n->pushes = strcmp(s->url, ANNOUNCED_URL) == 0 || strcmp(said->other_url, ANNOUNCED_URL) == 0;
    if (n->pushes) {
        if (!pushed || gone)
            n->due_ms = clock_mono_ms() + n->poller->c->push_every_s * 1000;
        polled_text(&n->base[0], "");
        n->at_base = 0;
        return;
    }
    if (pushed || gone)
        node_due(n, first_ms);
    if (node_base(n->poller, n->name, s->url, base[0], sizeof base[0], &err) < 0 ||
        (*said->other_url &&
         node_base(n->poller, n->name, said->other_url, base[1], sizeof base[1], &err) < 0))
        polled_why(n, err.text);
    for (int i = 0; i < 2; i++)
        polled_text(&n->base[i], base[i]);
    if (!*n->base[1])
        n->at_base = 0;
}

static int by_two_names(const void *a, const void *b)
{
    return strcmp((*(struct polled *const *)a)->name, (*(struct polled *const *)b)->name);
}

// Its history can continue under another name then. What the process that stores has not stored of
// this when it ends, the next one says: the history is still open.
static void node_leaves(struct poller *p, const char *name)
{
    struct buf nothing = BUF_INIT;
    struct err err;
    ingest_send(p->ingest, &(struct ingest_item){.kind = INGEST_GONE, .node = name}, &nothing,
                &err);
}

static void node_unnamed(struct polled *n)
{
    if (n->state == NODE_GONE)
        return;
    node_event(n, NODE_UNNAMED);
    n->sources = 0;
    n->slurm_state[0] = '\0'; // nor does Slurm know it
    node_leaves(n->poller, n->name);
}

static bool node_is_named(const struct poller *p, const char *name)
{
    const struct polled *n = poller_find_own(p, name);
    return n && n->state != NODE_GONE;
}

static void node_has_place(struct poller *p, const char *name)
{
    p->histories++;
    if (!node_is_named(p, name))
        buf_add(&p->unnamed, name, strlen(name) + 1);
}

void node_has_history(struct poller *p, const char *name, const char *twin)
{
    node_has_place(p, name);
    if (*twin) // without a history of its own it claims this one as long as it is named
        node_has_place(p, twin);
}

// The unnamed that no source has named since; `leave`: they leave their histories.
static int unnamed_each(struct poller *p, bool leave)
{
    int n = 0;
    for (size_t at = 0; at < p->unnamed.len; at += strlen(p->unnamed.data + at) + 1) {
        const char *name = p->unnamed.data + at;
        if (node_is_named(p, name))
            continue;
        if (leave)
            node_leaves(p, name);
        n++;
    }
    return n;
}

void nodes_leave(struct poller *p)
{
    const int64_t now = clock_mono_ms();
    if (!p->named || !ingest_ready(p->ingest))
        return;
    if (!buf_ok(&p->unnamed))
        log_event(LOG_LVL_ERROR, "nodes.left", "text=\"no memory for the names of all\"");
    int n = unnamed_each(p, false);
    if (2 * n > p->histories && (!p->leave_ms || now < p->leave_ms)) {
        p->leave_ms = p->leave_ms ? p->leave_ms : now + NODES_DOUBTED_MS;
        poller_search_in(p, p->leave_ms - now);
        return;
    }
    if (n) {
        unnamed_each(p, true);
        log_event(LOG_LVL_INFO, "nodes.left", "nodes=%d text=\"no source names them any more\"", n);
    }
    nodes_leave_forget(p);
}

void nodes_leave_forget(struct poller *p)
{
    buf_free(&p->unnamed);
    p->histories = 0;
    p->leave_ms = 0;
}

static struct polled *node_add(struct poller *p, const struct naming_node *said, int64_t first_ms)
{
    struct polled *n = polled_new(p, said->said.name, first_ms);
    if (!n)
        return NULL;
    node_said(n, said, first_ms);
    return p->nodes[p->n++] = n;
}

// Both lists are sorted by name, so it is one walk through them. New ones come behind at first.
static int list_merge(struct poller *p, const struct naming_node *list, int count, struct err *err)
{
    int64_t now = clock_mono_ms();
    int known = p->n, at = 0;
    struct polled **more = realloc(p->nodes, (size_t)(p->n + count + 1) * sizeof *more);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", count);
    p->nodes = more;
    for (int i = 0; i < count; i++) {
        int order = -1;
        while (at < known && (order = strcmp(p->nodes[at]->name, list[i].said.name)) < 0)
            node_unnamed(p->nodes[at++]);
        if (at < known && order == 0) {
            node_said(p->nodes[at], &list[i], now + i * 1000 / FIRST_RATE);
            node_event(p->nodes[at++], NODE_NAMED);
        } else if (!node_add(p, &list[i], now + i * 1000 / FIRST_RATE))
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", count);
    }
    while (at < known)
        node_unnamed(p->nodes[at++]);
    if (p->n > known)
        qsort(p->nodes, (size_t)p->n, sizeof(struct polled *), by_two_names);
    return 0;
}

// A request that waits for its page looks at the node.
static bool node_forgettable(const struct polled *n)
{
    return n->state == NODE_GONE && !n->busy && !(n->push && n->push->wake);
}

// Sources that name ever new nodes must not fill the memory. What is stored of them stays.
static void forget_gone(struct poller *p)
{
    int gone = 0, kept = 0;
    for (int i = 0; i < p->n; i++)
        gone += node_forgettable(p->nodes[i]);
    if (gone <= GONE_MAX)
        return;
    for (int i = 0; i < p->n; i++)
        if (node_forgettable(p->nodes[i]))
            polled_free(p->nodes[i]);
        else
            p->nodes[kept++] = p->nodes[i];
    p->n = kept;
}

void send_owners(struct poller *p)
{
    CLEANUP_BUF struct buf list = BUF_INIT;
    struct err err = {0};
    if (!p->collector_sources || !ingest_ready(p->ingest))
        return;
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i]->state != NODE_GONE)
            buf_fmt(&list, "%s\t%s\n", p->nodes[i]->name, p->nodes[i]->behind);
    uint64_t hash = hash_bytes(list.data, list.len);
    if (hash == p->owners)
        return;
    p->owners = hash;
    if (!buf_ok(&list))
        err_set(&err, ERR_NO_MEMORY, "", "no memory for the nodes of the sources");
    if (!buf_ok(&list) ||
        ingest_send(p->ingest, &(struct ingest_item){.kind = INGEST_OWNERS}, &list, &err) < 0)
        log_error("owners", &err);
}

bool poller_named(const struct poller *p)
{
    return p->named;
}

bool poller_knows_gone(const struct poller *p)
{
    return p->named && !p->leave_ms;
}

int poller_set_nodes(struct poller *p, const struct naming_node *nodes, int count, bool whole,
                     struct err *err)
{
    p->named = false; // a list that was merged in part names not all
    p->lists++;
    if (list_merge(p, nodes, count, err) < 0)
        return -1;
    p->named = whole;
    forget_gone(p);
    nodes_leave(p);
    send_owners(p);
    poller_wake(p);
    return 0;
}

uint64_t poller_lists(const struct poller *p)
{
    return p->lists;
}

struct polled *const *poller_nodes(const struct poller *p, int *n)
{
    *n = p->n;
    return p->nodes;
}
