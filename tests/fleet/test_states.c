// SPDX-License-Identifier: Apache-2.0
// A sweep over virtual nodes of which every 20th does something wrong: each node's state is the one
// that its fault must give, and every good node responds. As many nodes as file descriptors allow,
// at most 10,000.
#include "tests/unit/tap.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "fetch/fetch.h"
#include "model/summary.h"
#include "virtual/serve.h"

enum { NODES_MAX = 10000, SPARE = 1000, IN_FLIGHT = 256, BAD_EACH = 20 };

// What a client sees: an error of fetch/, a status, or a page that it does not accept.
enum { SEEN_PAGE_REFUSED = 1000 };

static const struct {
    const char *fault;
    int seen; // enum fetch_error; a status from 100 on; SEEN_PAGE_REFUSED; 0: a good page
} kinds[] = {
    {"refuses", FETCH_REFUSED},
    {"silent", FETCH_SILENT},
    {"slow=600", FETCH_SILENT},
    {"drips", FETCH_SLOW},
    {"garbage", FETCH_NOT_HTTP},
    {"cut", FETCH_BROKEN},
    {"cuts=100", FETCH_BROKEN},
    {"length", FETCH_TIMEOUT},
    {"endless", FETCH_BODY_TOO_LARGE},
    {"json", SEEN_PAGE_REFUSED},
    {"text", SEEN_PAGE_REFUSED},
    {"name", SEEN_PAGE_REFUSED},
    {"older", 400},
    {"unavailable", 503},
    {"newer", 0},
    {"gaps", 0},
    {"clock", 0},
};

struct node {
    char name[WORLD_NAME_ROOM];
    int want, seen, times;
};

static int want_of(int node)
{
    return node % BAD_EACH == BAD_EACH - 1 ? kinds[(size_t)(node / BAD_EACH) % COUNT_OF(kinds)].seen
                                           : 0;
}

// One line of the script per fault: every 20th node has one, by turns.
static void write_script(int nodes, char *out, size_t room)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    int digits = snprintf(NULL, 0, "%d", nodes);
    for (int k = 0; k < (int)COUNT_OF(kinds) && BAD_EACH * (k + 1) <= nodes; k++)
        buf_fmt(&text, "node[%0*d-%d/%d] %s\n", digits, BAD_EACH * (k + 1), nodes,
                BAD_EACH * (int)COUNT_OF(kinds), kinds[k].fault);
    snprintf(out, room, "%s", buf_text(&text));
}

static bool page_is_good(const struct node *n, const struct buf *body)
{
    struct summary_page p CLEANUP(summary_page_fini) = {0};
    CLEANUP_JSON struct json *j = json_parse(buf_text(body), body->len, NULL);
    return j && summary_page_read(j, &p, NULL) == 0 && p.n_runs > 0 && strcmp(p.node, n->name) == 0;
}

static void done(void *ctx, struct fetch_response *r)
{
    struct node *n = ctx;
    n->times++;
    n->seen = r->error                    ? (int)r->error
              : r->status != 200          ? r->status
              : page_is_good(n, &r->body) ? 0
                                          : SEEN_PAGE_REFUSED;
}

static void sweep(int nodes, struct node *list, int port, struct fetch *f)
{
    int started = 0;
    for (int i = 0; i < nodes; i++) {
        char url[200], base[VIRTUAL_URL_ROOM];
        virtual_url(i, port, base);
        snprintf(url, sizeof url, "%s/v1/feed?form=summary&after=0", base);
        started += fetch_start(f, &(struct fetch_request){.url = url}, done, &list[i], NULL) == 0;
    }
    CHECK_INT(started, nodes, "all are requested");
    fetch_run(f, NULL);
}

static void check_states(int nodes, const struct node *list)
{
    int wrong = 0, twice = 0, bad = 0;
    for (int i = 0; i < nodes; i++) {
        bad += list[i].want != 0;
        twice += list[i].times != 1;
        if (list[i].seen == list[i].want)
            continue;
        if (wrong++ < 10)
            printf("# %s: seen %d, want %d\n", list[i].name, list[i].seen, list[i].want);
    }
    CHECK_INT(twice, 0, "each node has one state");
    CHECK_INT(wrong, 0, "each state is right, %d of %d bad", bad, nodes);
}

static int nodes_possible(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_max == RLIM_INFINITY ||
        l.rlim_max > NODES_MAX + SPARE)
        return NODES_MAX;
    return l.rlim_max > 2 * SPARE ? (int)l.rlim_max - SPARE : (int)l.rlim_max / 2;
}

int main(void)
{
    static struct virtual_options o;
    static struct node list[NODES_MAX];
    struct virtual_child child = {0};
    struct err err = {0};
    // Short, because a fourth of the bad ones end by them. A page has 2 KB.
    const struct fetch_limits limits = {.body_max = 1 << 20,
                                        .head_max = FETCH_HEAD_MAX,
                                        .connect_ms = 20000,
                                        .total_ms = 8000,
                                        .least_rate = 64,
                                        .slow_s = 4};
    int nodes = nodes_possible();
    virtual_defaults(&o);
    o.world.nodes = nodes;
    o.world.runs = 1;
    struct world *w = world_new(&o.world, &err);
    for (int i = 0; w && i < nodes; i++) {
        world_name(w, i, list[i].name);
        list[i].want = want_of(i);
    }
    world_free(w);
    write_script(nodes, o.faults, sizeof o.faults);
    CHECK(virtual_start(&child, &o, &err) == 0, "%d virtual nodes %s", nodes, err.text);
    struct fetch *f = fetch_new(IN_FLIGHT, &limits, &err);
    CHECK(f != NULL, "requests %s", err.text);
    if (!f || !child.port)
        return tap_done();
    sweep(nodes, list, child.port, f);
    check_states(nodes, list);
    fetch_free(f);
    virtual_stop(&child);
    return tap_done();
}
