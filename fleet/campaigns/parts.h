// SPDX-License-Identifier: Apache-2.0
// Inside this folder only: a campaign in memory (campaign.c), its nodes (campaign_nodes.c), what it
// stores (campaign_items.c), its rounds (rounds.c), and how nodes are probed (probes.c).
#pragma once
#include "base/jsonw.h"
#include "core/os/child_output.h"
#include "core/os/loop.h"
#include "fetch/fetch.h"
#include "fleet/campaigns/request.h"
#include "fleet/collect/poller.h"
#include "fleet/store/campaigns.h"

// The largest time limit of a run: a node that says that one took longer is not believed.
enum { PROBE_MOST_S = 14400 };
enum {
    NAMED_SOON_MS = 1000,      // until a collector that has just begun knows more nodes
    NAMED_MOST_MS = 60 * 1000, // it waits so long for a source that cannot be read
};

enum probing {
    PROBING_NOT,
    PROBING_STORES,  // that it begins is being stored
    PROBING_REQUEST, // POST /v1/runs is on the way
    PROBING_FOLLOWS, // GET /v1/runs/{id} is on the way
    PROBING_PAUSES,  // until due_ms
};

struct campaign_node {
    enum probing probing;
    bool dirty, sent;    // its row; sent: in the item that is being stored
    bool ends, cancels;  // the run is to be cancelled; that was requested
    bool ran;            // it was seen running
    int again;           // requests without an understandable response, so far
    int64_t due_ms;      // monotonic
    int64_t deadline_ms; // monotonic; 0: none yet
    int64_t followed_ms; // monotonic: when its run was requested last
    int64_t requested_ms, run;
    int64_t ended_ms; // until it has ended: when it was first refused
    double seconds;   // NaN: not known
    char *why;        // owned; NULL: ""
};

struct campaign {
    struct campaign *next;
    struct campaigns *all;
    struct campaign_head head, stored; // as it is, as it was sent last
    struct campaign_request request;
    struct buf text, set;        // as submitted; the nodes of this round as a set
    struct nodeset nodes;        // of this round
    bool of_all;                 // the request names none: each round has those that there are then
    struct campaign_fact *facts; // [nodes.n], while they come; owned
    int n_facts;
    struct probe_plan plan;
    struct campaign_node *states; // [nodes.n]; owned
    double spent_before_s;        // in earlier rounds
    int64_t due_ms; // monotonic: when it is looked at again; INT64_MAX: when something
                    // happens
    int calls;      // requests on the way
    bool planned;   // the plan is that of this round
    bool saving;    // an item is on the way
    bool kept;      // it is in the store
    bool dropped;   // only its requests keep it
    bool over;      // it has ended: nothing more is begun
    int64_t news;   // through Slurm: runs that were stored when facts were read last
    bool marking;   // through Slurm: that its nodes are submitted is being stored
    struct {
        struct child_output child;
        char job[24];               // of this round; "": not known
        char failure[CAMPAIGN_WHY]; // "": none
    } submission;
    struct err refused;
};

struct campaigns_watch {
    struct campaigns_watch *next;
    struct campaigns *all;
    int64_t id;
    void (*wake)(void *ctx);
    void *ctx;
};

struct campaign_fetch {
    struct fetch *fetch;
    struct loop_watch *watch;
};

struct campaigns {
    struct loop *loop;
    const struct fleetd_config *c;
    struct poller *poller;
    struct campaign_fetch brief; // requests that begin and cancel runs
    struct campaign_fetch held;  // those that follow them: a node holds them
    struct loop_timer *timer;
    struct campaign *list;
    struct campaigns_watch *watches;
    int64_t last, dry; // numbers that were given last
    int64_t begun_ms;  // monotonic
    int64_t offset_ms; // for clock_set_by()
    bool loaded;       // all of the store's are in the list
};

// ---- campaign.c

// `text`: the request. NULL and why it cannot be.
struct campaign *campaign_new(struct campaigns *all, const void *text, size_t n, struct err *err);
void campaign_free(struct campaign *c);         // one that is not in the list; NULL is fine
void campaign_drop(struct campaign *c);         // leaves the list
void campaign_forget_round(struct campaign *c); // its plan and its nodes
void campaign_release(struct campaign *c);      // a request has ended
int campaigns_check_loaded(const struct campaigns *all, struct err *err); // ERR_UNAVAILABLE
struct campaign *campaign_find(const struct campaigns *all, int64_t id);  // NULL: none
// One that has not ended. NULL: ERR_NOT_FOUND, ERR_CONFLICT, ERR_UNAVAILABLE (the store).
struct campaign *campaign_active(const struct campaigns *all, int64_t id, struct err *err);
// Something happened to this campaign: it is looked at in a moment.
void campaign_touch(struct campaign *c);
void campaigns_look_in(struct campaigns *all); // sets the timer to the earliest due_ms
// UTC. Where the wall clock was set meanwhile, rounds and refusals get the times at which they were
// by the clock as it is now: neither `each` nor retry_for ends by a step.
int64_t campaigns_now(struct campaigns *all);

// ---- campaign_nodes.c

// Why the collector never requests a run of it; NULL: it does.
const char *campaign_never_probes(const struct campaign *c, const struct polled *n);
// All that it can have. ERR_CONFLICT on "nodes": none.
int campaign_all_nodes(const struct campaign *c, struct nodeset *out, struct err *err);
// ERR_INVALID on "nodes": one that it cannot have.
int campaign_check_nodes(const struct campaign *c, const struct nodeset *nodes, struct err *err);
int campaign_nodes_of_others(const struct campaign *c); // how many nodes other campaigns have

// ---- campaign_items.c

// Sends what changed since the last item to the process that stores. Nothing changed: sends none.
void campaign_store(struct campaign *c);
bool campaign_is_stored(const struct campaign *c); // nothing waits, and nothing is on the way

// ---- rounds.c

// Of the facts of its nodes, which it frees. Its nodes are then what the store knows of this round.
int campaign_plan(struct campaign *c, struct err *err);
void campaign_advance(struct campaign *c); // all that can begin begins; says what it waits for
void campaign_end(struct campaign *c, enum fleet_campaign_state state, const char *why);
void campaign_write_plan(const struct campaign *c, struct jsonw *w); // "plan", of a dry run

// ---- probes.c

void probe_request(struct campaign *c, int node); // its beginning is stored
void probe_cancel(struct campaign *c, int node);  // as soon as its run is known
void probes_due(struct campaign *c, int64_t now_ms, int64_t *next_ms);
// What became of a node, with a text for people ("": none).
void probe_ended(struct campaign *c, int node, enum probe_state state, double seconds,
                 const char *why);
void probe_refused(struct campaign *c, int node, int64_t after_ms, const char *why);

// ---- slurm.c

void slurm_facts(struct campaign *c); // has a plan of these facts: nodes with a run have ended
bool slurm_news(struct campaign *c);  // nodes have new runs since it was called last
void slurm_give_up(struct campaign *c, const char *why); // nodes that are left, or submitted
void slurm_mark(struct campaign *c); // nodes that are left are submitted; then, when stored:
int slurm_submit(struct campaign *c, struct err *err);
void slurm_submit_end(struct campaign *c); // the collector stops
