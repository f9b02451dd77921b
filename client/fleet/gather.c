// SPDX-License-Identifier: Apache-2.0
// Per node two steps: the newest runs of each benchmark, then the documents of facts that are
// missing. Ten thousand nodes of one class have one document of its facts, and three nodes send it.
#include "client/fleet/gather.h"

#include <inttypes.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet_order.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/failures.h"
#include "client/fleet/fleet.h"
#include "client/http.h"
#include "model/fingerprint.h"

enum {
    STORED_PAGE = 100,      // runs per request
    SKEW_MAX_MS = 60000,    // beyond it a clock is wrong
    PAGES_MAX = 100,        // of a node: 4 MiB have 850 runs of 350 metrics
    SENDERS = 3,            // of a document of facts
    FACTS_OF_NODE_MAX = 64, // set-ups of 25 runs, and room
};

// ---- Documents of facts -------------------------------------------------------------------------

static int take_document(struct gather *g, const struct json *body, struct err *err)
{
    struct facts *facts = malloc(sizeof *facts);
    if (!facts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    int rc = facts_from_json(facts, body, err);
    if (rc == 0)
        rc = fleet_add_facts(g->fleet, facts, err);
    free(facts);
    return rc;
}

static void fetch_next_facts(struct fan *f, int node, struct gather *g);

static void take_facts(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct gather *g = ctx;
    struct err err = {0};
    if (take_document(g, body, &err) < 0) {
        err_name_member(&err);
        fan_fail(f, node, err.code, err.text);
    } else
        fetch_next_facts(f, node, g);
}

// They were deleted with the last run that had them: what differs is not known then.
static void miss_facts(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    (void)retry_s;
    if (why->code == ERR_NOT_FOUND)
        fetch_next_facts(f, node, ctx);
    else
        fan_done(f, node); // its runs are here; other nodes send these facts too
}

static void fetch_next_facts(struct fan *f, int node, struct gather *g)
{
    struct gathered_node *n = &g->nodes[node];
    char path[100];
    if (n->next == n->n_facts) {
        fan_done(f, node);
        return;
    }
    snprintf(path, sizeof path, "/v1/facts/%s", g->wanted.list[n->facts[n->next++]]);
    fan_call(f, node,
             &(struct fan_request){.path = path,
                                   .last = n->next == n->n_facts,
                                   .optional = true,
                                   .reply = take_facts,
                                   .refused = miss_facts});
}

// Remembers the hash for this node, unless it is here or enough other nodes send it: one of them
// may fail. -1: no memory.
static int want_facts(struct gather *g, struct gathered_node *n, const char *hash)
{
    if (!facts_is_hash(hash) || n->n_facts == FACTS_OF_NODE_MAX)
        return 0;
    int number = interned_find(&g->wanted, hash);
    if (number >= 0 && g->senders[number] >= SENDERS)
        return 0;
    if (number < 0 && (number = interned_add(&g->wanted, hash, &g->err)) < 0)
        return -1;
    if (number >= g->senders_room) {
        int room = 2 * number + 64;
        unsigned char *more = realloc(g->senders, (size_t)room);
        if (!more)
            return err_set(&g->err, ERR_NO_MEMORY, "", "no memory for facts");
        memset(more + g->senders_room, 0, (size_t)(room - g->senders_room));
        g->senders = more;
        g->senders_room = room;
    }
    if (!n->facts && !(n->facts = calloc(FACTS_OF_NODE_MAX, sizeof *n->facts)))
        return err_set(&g->err, ERR_NO_MEMORY, "", "no memory for facts");
    for (int i = 0; i < n->n_facts; i++)
        if (n->facts[i] == number)
            return 0;
    g->senders[number]++;
    n->facts[n->n_facts++] = number;
    return 0;
}

// ---- Runs ---------------------------------------------------------------------------------------

// Runs that the node measured itself; those of other nodes are copies. They get the name that was
// requested, by which a user knows the node.
static void keep_own_runs(struct summary_page *p, const char *name)
{
    int n = 0;
    for (int i = 0; i < p->n_runs; i++) {
        if (p->runs[i].imported || strcmp(p->runs[i].node, p->node) != 0)
            continue;
        p->runs[n] = p->runs[i];
        snprintf(p->runs[n++].node, sizeof p->runs->node, "%s", name);
    }
    p->n_runs = n;
}

static int take_page(struct gather *g, int node, struct summary_page *p)
{
    keep_own_runs(p, g->names.names[node]);
    if (fleet_add_page(g->fleet, p, &g->err) < 0)
        return -1;
    for (int i = 0; i < p->n_runs; i++)
        if (want_facts(g, &g->nodes[node], p->runs[i].class_hash) < 0 ||
            want_facts(g, &g->nodes[node], p->runs[i].config_hash) < 0)
            return -1;
    return 0;
}

// Remembers whose history this is. The name under which the same node has responded already: its
// runs would count twice. NULL: it has not, or it is older than the member.
static const char *other_name(struct gather *g, int node, const struct summary_page *p)
{
    struct gathered_node *n = &g->nodes[node];
    char self[sizeof p->history_id + sizeof p->node + 1];
    int known = g->selves.n;
    if (!*p->history_id)
        return NULL;
    snprintf(self, sizeof self, "%s %s", p->history_id, p->node);
    n->history = interned_add(&g->histories, p->history_id, NULL) + 1;
    n->self = interned_add(&g->selves, self, NULL) + 1;
    for (int i = 0; n->self && n->self <= known && i < g->names.n; i++)
        if (i != node && g->nodes[i].self == n->self)
            return g->names.names[i];
    return NULL;
}

static void request_runs_after(struct fan *f, int node, int64_t after, struct gather *g);

static void take_runs(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct gather *g = ctx;
    struct summary_page page = {0};
    struct err err = {0};
    const char *other;
    char text[200];
    if (summary_page_read(body, &page, &err) < 0) {
        err_name_member(&err);
        fan_fail(f, node, ERR_UNREACHABLE, err.text);
        return;
    }
    snprintf(g->nodes[node].version, sizeof g->nodes[node].version, "%s", page.version);
    if (!fan_is_node(f, node, page.node)) {
        snprintf(text, sizeof text, "another node responds: %.64s", page.node);
        fan_fail(f, node, ERR_CONFLICT, text);
    } else if ((other = other_name(g, node, &page))) {
        snprintf(text, sizeof text, "is the same node as %.64s", other);
        fan_fail(f, node, ERR_CONFLICT, text);
    } else if (take_page(g, node, &page) < 0) {
        fan_fail(f, node, g->err.code, g->err.text);
    } else if (page.more && ++g->nodes[node].pages == PAGES_MAX) {
        fan_fail(f, node, ERR_UNREACHABLE, "its pages do not end");
    } else if (page.more) {
        request_runs_after(f, node, page.next, g); // many metrics: not all runs had room
    } else {
        fetch_next_facts(f, node, g);
    }
    summary_page_fini(&page);
}

static void runs_refused(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    (void)retry_s, (void)ctx;
    fan_fail_refused(f, node, why, "its numaprobed is too old for fleet commands");
}

// The connection ends with it: few nodes are needed for documents of facts, and libcurl's time
// grows with the square of the connections that it keeps.
static void request_runs_after(struct fan *f, int node, int64_t after, struct gather *g)
{
    char path[120];
    int n = snprintf(path, sizeof path, "/v1/runs?form=summary&state=succeeded&per_benchmark=%d",
                     g->runs);
    if (after)
        snprintf(path + n, sizeof path - (size_t)n, "&cursor=b%" PRId64, after);
    fan_call(f, node,
             &(struct fan_request){
                 .path = path, .last = true, .reply = take_runs, .refused = runs_refused});
}

static void request_runs(struct fan *f, int node, void *ctx)
{
    request_runs_after(f, node, 0, ctx);
}

static int gather_from_nodes(struct gather *g, struct err *err)
{
    static const struct fan_work of_fan = {.begin = request_runs};
    struct fan_work work = of_fan;
    work.ctx = g;
    if (fleet_nodes(g->cli, &g->names, err) < 0)
        return -1;
    g->nodes = calloc((size_t)g->names.n, sizeof *g->nodes);
    if (!g->nodes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", g->names.n);
    g->fan = fan_new(g->cli, &g->names, &work, err);
    if (!g->fan)
        return -1;
    fan_run(g->fan);
    return 0;
}

// ---- One daemon that has it all -----------------------------------------------------------------

// Only nodes that the options name, if they name any.
static void keep_named_runs(struct gather *g, struct summary_page *p)
{
    int n = 0;
    for (int i = 0; i < p->n_runs; i++)
        if (!g->names.n || nodeset_has(&g->names, p->runs[i].node))
            p->runs[n++] = p->runs[i];
    p->n_runs = n;
}

static int gather_stored_facts(struct gather *g, const struct cli *at, struct err *err)
{
    const char *hash;
    char path[100];
    for (int next = 0; (hash = fleet_facts_wanted(g->fleet, &next));) {
        CLEANUP_JSON struct json *body = NULL;
        snprintf(path, sizeof path, "/v1/facts/%s", hash);
        if (http_json(at, "GET", path, NULL, &body, err) < 0 && err->code != ERR_NOT_FOUND)
            return -1;
        if (body)
            take_document(g, body, err); // else nothing is known of it
    }
    return 0;
}

// The nodes that the options name; none if they name none.
static int gather_named(struct gather *g, struct err *err)
{
    return fleet_nodes_named(g->cli) ? fleet_nodes(g->cli, &g->names, err) : 0;
}

// A node that is named is looked for: of one that has no run there would be no sign.
static int look_for_named(struct gather *g, struct err *err)
{
    if (gather_named(g, err) < 0)
        return -1;
    if (g->names.n && !(g->known = calloc((size_t)g->names.n, sizeof *g->known)))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", g->names.n);
    return 0;
}

static void note_stored(struct gather *g, const struct summary_page *p)
{
    for (int i = 0; g->known && i < p->n_runs; i++)
        g->known[nodeset_find(&g->names, p->runs[i].node)].heard = true;
}

static int find_not_stored(struct gather *g, struct err *err)
{
    for (int i = 0; g->known && i < g->names.n; i++) {
        struct known_node *n = &g->known[i];
        if (n->heard)
            continue;
        n->code = ERR_NOT_FOUND;
        if (!(n->why = strdup("no run of it is stored")))
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", g->names.n);
    }
    return 0;
}

static int gather_from_store(struct gather *g, struct err *err)
{
    if (look_for_named(g, err) < 0)
        return -1;
    int64_t after = 0;
    for (bool more = true; more;) {
        char path[100];
        CLEANUP_JSON struct json *body = NULL;
        struct summary_page page = {0};
        snprintf(path, sizeof path, "/v1/feed?form=summary&limit=%d&after=%lld", STORED_PAGE,
                 (long long)after);
        if (http_json(g->cli, "GET", path, NULL, &body, err) < 0 ||
            summary_page_read(body, &page, err) < 0)
            return -1;
        keep_named_runs(g, &page);
        note_stored(g, &page);
        more = page.more && page.next > after;
        after = page.next;
        int rc = fleet_add_page(g->fleet, &page, err);
        summary_page_fini(&page);
        if (rc < 0)
            return -1;
    }
    return find_not_stored(g, err) < 0 ? -1 : gather_stored_facts(g, g->cli, err);
}

// ---- The collector of the fleet -----------------------------------------------------------------

struct known_list {
    int n, room;
    struct known_node *list; // owned
};

static void known_list_fini(struct known_list *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->list[i].why);
    free(l->list);
}

static int keep_known(void *ctx, struct known_node *n, struct err *err)
{
    struct known_list *l = ctx;
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 256;
        void *list = realloc(l->list, (size_t)room * sizeof *l->list);
        if (!list) {
            free(n->why);
            return err_set(err, ERR_NO_MEMORY, "", "no memory for the nodes of the collector");
        }
        l->list = list;
        l->room = room;
    }
    l->list[l->n++] = *n;
    return 0;
}

// Where no option names nodes: all that a source of the collector names now.
static int name_known(struct gather *g, const struct known_list *l, struct err *err)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->list[i].state, "gone") != 0 &&
            nodeset_add(&g->names, l->list[i].name, err) < 0)
            return -1;
    nodeset_sort(&g->names);
    return 0;
}

static int gather_known(struct gather *g, const struct cli *at, bool named, struct err *err)
{
    struct known_list l CLEANUP(known_list_fini) = {0};
    if (collector_nodes(at, named ? &g->names : NULL, keep_known, &l, err) < 0 ||
        (!named && name_known(g, &l, err) < 0))
        return -1;
    g->nodes = calloc((size_t)g->names.n + 1, sizeof *g->nodes);
    g->known = calloc((size_t)g->names.n + 1, sizeof *g->known);
    if (!g->nodes || !g->known)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", g->names.n);
    for (int i = 0; i < l.n; i++) {
        int node = nodeset_find(&g->names, l.list[i].name);
        if (node < 0 || g->known[node].why)
            continue;
        g->known[node] = l.list[i];
        l.list[i].why = NULL;
        memcpy(g->nodes[node].version, g->known[node].version, sizeof g->nodes[node].version);
    }
    return 0;
}

static int keep_known_runs(void *ctx, struct summary_page *p, struct err *err)
{
    struct gather *g = ctx;
    keep_named_runs(g, p);
    return fleet_add_page(g->fleet, p, err);
}

// A node that the collector lists, or has runs of though no source names it any more.
static int find_unknown(struct gather *g, struct err *err)
{
    for (int i = 0; i < g->names.n; i++) {
        struct known_node *n = &g->known[i];
        if (*n->name || interned_find(&g->fleet->nodes, g->names.names[i]) >= 0)
            continue;
        n->code = ERR_NOT_FOUND;
        if (!(n->why = strdup("the collector does not know it")))
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", g->names.n);
    }
    return 0;
}

static int gather_from_collector(struct gather *g, struct err *err)
{
    CLEANUP_MEM struct cli *at = collector_settings(g->cli, err);
    if (!at || gather_named(g, err) < 0)
        return -1;
    bool named = g->names.n > 0;
    return gather_known(g, at, named, err) < 0 ||
                   collector_runs(at, named ? &g->names : NULL, g->runs, keep_known_runs, g, err) <
                       0 ||
                   find_unknown(g, err) < 0
               ? -1
               : gather_stored_facts(g, at, err);
}

// ---- All ----------------------------------------------------------------------------------------

static int gather_with(struct gather *out, const struct cli *c, int runs, bool times_only,
                       struct err *err)
{
    struct fleet_options options = FLEET_DEFAULTS;
    *out = (struct gather){.cli = c, .runs = runs};
    options.now_ms = clock_wall_ms();
    options.runs_max = runs;
    options.times_only = times_only;
    if (fleet_check_source(c, err) < 0)
        return -1;
    out->fleet = fleet_new(&options, err);
    if (!out->fleet)
        return -1;
    int rc = c->fleet.stored       ? gather_from_store(out, err)
             : *c->fleet.collector ? gather_from_collector(out, err)
                                   : gather_from_nodes(out, err);
    return rc < 0 ? -1 : fleet_arrange(out->fleet, err);
}

int gather_all(struct gather *out, const struct cli *c, int runs, struct err *err)
{
    return gather_with(out, c, runs, false, err);
}

int gather_times(struct gather *out, const struct cli *c, int runs, struct err *err)
{
    return gather_with(out, c, runs, true, err);
}

void gather_fini(struct gather *g)
{
    for (int i = 0; g->nodes && i < g->names.n; i++)
        free(g->nodes[i].facts);
    free(g->nodes);
    for (int i = 0; g->known && i < g->names.n; i++)
        free(g->known[i].why);
    free(g->known);
    fan_free(g->fan);
    fleet_cleanup(&g->fleet);
    interned_fini(&g->wanted);
    interned_fini(&g->histories);
    interned_fini(&g->selves);
    free(g->senders);
    nodeset_free(&g->names);
    *g = (struct gather){0};
}

// The nodes whose clock differs by a minute or more: from ours, or as the collector judges it.
static void find_clocks(struct gather *g, struct nodeset *out)
{
    for (int i = 0; g->known && i < g->names.n; i++)
        if (g->known[i].clock_wrong)
            nodeset_add(out, g->names.names[i], NULL);
    for (int i = 0; g->fan && i < g->names.n; i++) {
        const struct fan_node *n = fan_node(g->fan, i);
        if (n->dated && llabs(n->skew_ms) >= SKEW_MAX_MS)
            nodeset_add(out, n->name, NULL);
    }
}

// The nodes with the history of another node: a database was copied, as with a disk image.
static void find_copies(struct gather *g, struct nodeset *out)
{
    CLEANUP_MEM int *count = calloc((size_t)g->histories.n + 1, sizeof *count);
    for (int i = 0; g->known && i < g->names.n; i++)
        if (strcmp(g->known[i].outcome, "twin") == 0)
            nodeset_add(out, g->names.names[i], NULL);
    for (int i = 0; count && g->fan && i < g->names.n; i++)
        if (fan_node(g->fan, i)->state == FAN_DONE)
            count[g->nodes[i].history]++;
    for (int i = 0; count && g->fan && i < g->names.n; i++)
        if (g->nodes[i].history && fan_node(g->fan, i)->state == FAN_DONE &&
            count[g->nodes[i].history] > 1)
            nodeset_add(out, g->names.names[i], NULL);
}

// Nodes that are odd in a way that leaves their runs good.
static const struct {
    void (*find)(struct gather *g, struct nodeset *out);
    const char *member, *text;
} oddities[] = {
    {find_clocks, "wrong_clocks",
     "the clock differs from ours, or from the collector's, by a minute or more"},
    {find_copies, "copied_histories", "have the same history: one database is a copy of another"},
};

bool gather_has_heard(const struct gather *g, int node)
{
    return g->fan ? fan_node(g->fan, node)->state == FAN_DONE : g->known && g->known[node].heard;
}

static bool node_is_up(const struct gather *g, int node)
{
    return g->fan ? gather_has_heard(g, node) : g->known && strcmp(g->known[node].state, "up") == 0;
}

int gather_coverage(const struct gather *g, struct coverage *out, struct err *err)
{
    bool named = g->fan || g->known;
    int n = named ? g->names.n : g->fleet->nodes.n;
    CLEANUP_MEM struct covered_node *nodes = calloc((size_t)n + 1, sizeof *nodes);
    if (!nodes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", n);
    for (int i = 0; i < n; i++) {
        nodes[i].name = named ? g->names.names[i] : g->fleet->nodes.list[i];
        nodes[i].up = named && node_is_up(g, i);
    }
    return coverage_make(out, g->fleet, nodes, n, err);
}

// The nodes that the daemon has no run of, or of whose newest runs the collector says that they may
// be missing. The caller frees.
static struct failure *known_failures(const struct gather *g, int *n)
{
    struct failure *list = calloc((size_t)g->names.n + 1, sizeof *list);
    *n = 0;
    for (int i = 0; list && i < g->names.n; i++)
        if (g->known[i].why)
            list[(*n)++] = (struct failure){g->names.names[i], g->known[i].why, g->known[i].code};
    return list;
}

bool gather_is_empty(const struct gather *g)
{
    return g->fan ? !fan_ended(g->fan, FAN_DONE) || fan_stopped(g->fan)
                  : g->known && g->names.n && !g->fleet->nodes.n;
}

static void print_oddities(struct gather *g)
{
    for (size_t i = 0; i < COUNT_OF(oddities); i++) {
        CLEANUP_NODESET struct nodeset odd = {0};
        CLEANUP_BUF struct buf names = BUF_INIT;
        oddities[i].find(g, &odd);
        nodeset_fold(&odd, &names);
        if (odd.n)
            fprintf(stderr, "%-22s %s\n", buf_text(&names), oddities[i].text);
    }
}

// As fan_status() has it. A node that fails keeps what the collector has of it.
static int known_status(const struct gather *g, const struct failure *list, int failed, int verdict)
{
    int silent = 0;
    for (int i = 0; i < failed; i++)
        silent += list[i].code == ERR_UNREACHABLE;
    if (failed && gather_is_empty(g))
        return silent == failed ? CLI_EXIT_UNREACHABLE : CLI_EXIT_FAILED;
    return verdict == CLI_EXIT_SLOWER || !failed || g->cli->fleet.partial_ok ? verdict
                                                                             : CLI_EXIT_PARTIAL;
}

static int known_end(struct gather *g, int verdict)
{
    int failed, n = g->names.n;
    CLEANUP_MEM struct failure *list = known_failures(g, &failed);
    failures_print(list, failed, stderr);
    print_oddities(g);
    if (failed && g->cli->fleet.stored)
        fprintf(stderr, "runs of %d of %d node%s are stored\n", n - failed, n, str_plural(n));
    else if (failed)
        fprintf(stderr, "the collector follows %d of %d node%s\n", n - failed, n, str_plural(n));
    return known_status(g, list, failed, verdict);
}

int gather_end(struct gather *g, int verdict)
{
    fflush(stdout);
    if (g->known)
        return known_end(g, verdict);
    if (!g->fan)
        return verdict;
    fan_print_failures(g->fan, stderr);
    print_oddities(g);
    if (fan_ended(g->fan, FAN_FAILED))
        fprintf(stderr, "%d of %d node%s responded\n", fan_ended(g->fan, FAN_DONE), g->names.n,
                str_plural(g->names.n));
    return fan_status(g->fan, verdict, g->cli->fleet.partial_ok);
}

void gather_write_missing(struct gather *g, struct jsonw *w)
{
    int n = 0;
    CLEANUP_MEM struct failure *list = g->known ? known_failures(g, &n) : NULL;
    for (size_t i = 0; i < COUNT_OF(oddities); i++) {
        CLEANUP_NODESET struct nodeset odd = {0};
        CLEANUP_BUF struct buf names = BUF_INIT;
        oddities[i].find(g, &odd);
        nodeset_fold(&odd, &names);
        jsonw_text(w, oddities[i].member, buf_text(&names));
    }
    if (g->fan)
        fan_write_failures(g->fan, w, "failures");
    else
        failures_write(list, n, w, "failures");
}

void gather_write_json(struct gather *g, struct jsonw *w)
{
    jsonw_i64(w, "nodes", g->fan || g->known ? g->names.n : g->fleet->nodes.n);
    gather_write_missing(g, w);
}
