// SPDX-License-Identifier: Apache-2.0
// Inside the poller only: what its files share.
#pragma once
#include "base/log.h"
#include "fleet/collect/naming.h"
#include "fleet/collect/polled.h"
#include "fleet/settings/config.h"
#include "nodes/addresses.h"

enum {
    PAGE_RUNS = 100,          // of a page that is requested
    RUNS_AT_ONCE = 200000,    // of a node: one an hour for 20 years
    RUNS_PER_DAY = 43200,     // beyond them. It does not measure more, and cannot fill the disk
    POISON_MS = 3600 * 1000,  // until a node is contacted again whose page ended the process
    WANTED_ROOM = 256,        // documents and whole runs that were requested lately
    LACKED_ROOM = 256,        // facts that nodes that push may send; the store repeats others
    LACKED_EACH = 32,         // of them, of a node
    WISHES_ROOM = 64,         // of a kind that wait to be requested; the store repeats others
    DOCUMENTS_AT_ONCE = 32,   // that are requested: one of a node is all that a batch brings
    FACTS_BURST = 20,         // changes at once by facts of machines, then one each
    FACTS_EVERY_MS = 1000,    // while a first sweep brings those of thousands, one by one
    STANDBY_EVERY_MS = 10000, // on standby: how long a response is kept
    WHOLE_AT_ONCE = 4,        // whole runs that are requested, of at most 32 MiB each
    BEHIND_AT_ONCE = 2,       // of both at other collectors: each lets 4 of a client wait, one of
                              // them is its feed, and one is left for whoever is at this machine
};

struct wanted {
    char key[65];     // of a wish
    int64_t until_ms; // not requested again before, monotonic
};

// Facts that the store does not have, of a node that sends them itself.
struct lacked {
    char node[64], hash[65]; // "": a free place
    int64_t number;          // of all that were added; 0: free
};

// Nodes that have come into a state, and that the log does not name.
struct unlogged {
    int n;
    char first[64], last[64];
};

enum wish_kind_id { WISH_DOCUMENT, WISH_WHOLE, WISH_KINDS };

// What the store wants of a node.
struct wish {
    struct poller *poller;
    enum wish_kind_id kind;
    char node[64], key[65]; // key: the hash of a document
    char under[64];         // of a whole run: the name of its node when it was stored
    int64_t seq, run;       // of it
    bool behind;            // it is fetched from another collector
};

struct wishes {
    struct wish list[WISHES_ROOM]; // they wait, the oldest first
    int n, in_flight;
};

struct poller {
    struct loop *loop;
    const struct fleetd_config *c;
    struct ingest *ingest;
    struct fetch *fetch;
    struct fetch_limits limits;
    struct fetch_tls tls;
    struct loop_watch *watch;
    struct loop_timer *timer;
    struct addresses *addresses;
    struct polled **nodes;                         // by name; owned, each too
    int n, at;                                     // at: where the search continues
    struct polled *collectors[FLEETD_SOURCES_MAX]; // by source; NULL: the source is none. Owned
    uint32_t collector_sources;                    // bits of those that are
    uint64_t owners;                               // hash of the list that was sent; 0: none was
    int64_t clock_off_ms;                          // ours is ahead by so much; 0: it is right
    int64_t clock_offset_ms;                       // for clock_set_by()
    int64_t search_ms;                             // when the timer fires, monotonic
    struct poller_totals totals;
    struct wanted wanted[WANTED_ROOM];
    int wanted_at;
    struct lacked lacked[LACKED_ROOM];
    int64_t n_lacked; // that were added
    struct wishes wishes[WISH_KINDS];
    bool facts_uncounted;            // stored since poller_changes() counted them
    struct log_budget facts_changes; // how often it does
    int64_t standby_change_ms;       // on standby: when something counts as changed, monotonic
    int behind_in_flight;            // of all kinds
    struct {
        char node[64], under[64]; // node "": none
        int64_t seq;
    } ends; // the whole run that has ended the process that stores; it gets to know when it is back
    struct fetch_limits whole_limits;
    int64_t pushed; // pages that nodes sent themselves
    bool named;     // all sources have named their nodes
    // Names of nodes with an open history, or that claim one, and that no source names, each with
    // its '\0', until that is known of all of them; of so many, with those that are named.
    struct buf unnamed;
    int histories;
    int64_t leave_ms;       // when those that are too many leave all the same, monotonic; 0: none
    uint64_t lists;         // that were set
    bool store_failed_open; // it was opened, and failed when it was written to
    struct log_budget node_lines;
    struct unlogged unlogged[NODE_STATES];
    int64_t unlogged_ms; // when they are counted in the log, monotonic; 0: there are none
    struct poller_aged {
        bool blocked, held;
    } aged[POLLER_AGED]; // runs, whole runs and findings that are deleted by age: as the log has it
    char token[FLEETD_TOKEN_ROOM];
    struct {
        poller_report_fn *fn; // NULL: none
        void *ctx;
    } listeners[POLLER_LISTENERS];
};

// polling.c
enum { POLLER_SEARCH_MS = 10 }; // between two searches
// The search comes after `ms`, or as soon as it was going to.
void poller_search_in(struct poller *p, int64_t ms);
void poller_wake(struct poller *p);                                       // it comes soon
struct polled *poller_find_own(const struct poller *p, const char *name); // NULL: none
struct polled *poller_find_collector(const struct poller *p, const char *name);
// With the token and the certificate for nodes; limits NULL: those of the poller. It is counted;
// `done` takes it off in_flight.
int poller_fetch(struct poller *p, const char *url, const struct fetch_limits *limits,
                 fetch_done *done, void *ctx, struct err *err);

// node_memory.c
struct polled *polled_new(struct poller *p, const char *name, int64_t first_ms); // NULL: no memory
void polled_free(struct polled *n);                                              // NULL is fine
// Keeps a copy of `text` at one of the texts of a node; "" where there is no memory for it.
void polled_text(const char **at, const char *text);
void polled_why(struct polled *n, const char *why); // up to POLLER_WHY of it

// node_list.c
// In the store the node has a history that is open. `twin` has the same one; "": none.
void node_has_history(struct poller *p, const char *name, const char *twin);
// Those that no source names leave theirs, once all sources were read and the store is open. Where
// they are more than half, they have some time to be named.
void nodes_leave(struct poller *p);
void nodes_leave_forget(struct poller *p); // the process that stores says all of it again
// Whose nodes they are, if there are other collectors: to the process that stores, if it changed.
void send_owners(struct poller *p);

// collectors.c
int poller_add_collectors(struct poller *p, struct err *err); // those of the configuration

// node_events.c
void node_event(struct polled *n, enum node_event e);
// The log has a few nodes by name, and the number of the others after a while.
void nodes_log_others(struct poller *p);
void node_later(struct polled *n, int64_t ms); // it is free, and contacted then
void node_failed(struct polled *n, const char *why);
bool node_poison(const struct polled *n); // what it sent: for POISON_MS
void node_stored(struct polled *n, const struct ingest_report *r);
void node_placed(struct polled *n, const struct ingest_report *r); // at the start

// Whether it may send more at once; the runs that it has sent count from now on.
bool node_allowed(struct polled *n, int runs);
bool node_at_once(struct polled *n, int stored); // the same, of a page of so many runs
void node_busy(struct polled *n, const struct fetch_response *r); // it says when it has time

// pushing.c
void push_settle(struct polled *n, enum err_code failed, const char *why); // its page, once
void push_reported(struct polled *n, const struct ingest_report *r);
void push_facts_reported(struct polled *n, const struct ingest_report *r);
void push_missed(struct polled *n);                                    // it is late
void push_lacks(struct poller *p, const char *node, const char *hash); // the store, of its facts
void push_lacks_no_more(struct poller *p, const char *hash);           // whoever sent them

// wishes.c
void document_wanted(struct poller *p, const struct ingest_report *r);
void whole_wanted(struct poller *p, const struct ingest_report *r);
void wishes_next(struct poller *p); // those that wait: something was stored, or has come
void whole_ends(struct poller *p, const struct ingest_head *run); // the process that reads it
void whole_ends_tell(struct poller *p);                           // the process, which is back
// Whole runs are not requested any more: once for each node in the log.
void whole_given_up(struct poller *p, struct polled *n, const struct ingest_report *r);
