// SPDX-License-Identifier: Apache-2.0
// The history of a fleet: pages of summaries go in, pages of summaries come out, so that
// analysis/peers/fleet.h and all above it work on what is stored as on what nodes just sent.
// Two engines hold the same: SQLite (a path) and PostgreSQL ("postgresql://…" or "postgres://…").
//
//     struct fleet_store *s = fleet_store_open("/var/lib/numaprobe-fleet/fleet.db",
//                                              FLEET_STORE_WRITE, &err);
//     fleet_store_put(s, pages, n, acks, &err);     // runs and places in one transaction
//     fleet_store_window(s, &window, fn, ctx, &err);  // fn: fleet_add_page(fleet, page, err)
//
// A row is a run, and its values are an array in it. A row per value costs 28 times the writes.
// Values are stored as the bits of the float that a summary carries, so nothing is rounded:
// 6 significant digits of any unit survive, and PostgreSQL reads them as real[]. The ends of
// intervals are whole numbers of 1e-4 (model/summary.h), in 2 bytes each, and in 4 bytes each in
// the rare run that needs them. A run of 30 metrics takes some 330 bytes with SQLite.
//
// Exactly once: a feed is the history of a node (`history_id`), and its place is the number after
// which the next page begins. The place moves in the transaction that stores the page, and only
// from where the page was requested. A crash before the commit loses both, and the same page is
// requested again. So the newest commits may be lost in a power cut, and nothing is missing.
//
// One process writes (a lock), any number read. Errors: ERR_STORAGE and ERR_UNAVAILABLE mean that
// nothing of this call was stored and that it may be repeated; ERR_CONFLICT, another process
// writes; ERR_DAMAGED, the database holds what this program never writes. Nothing is logged.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/fingerprint.h"
#include "model/nodeset.h"
#include "model/summary.h"

enum fleet_store_use {
    FLEET_STORE_READ,  // never writes; the database must exist and have this schema
    FLEET_STORE_WRITE, // makes and migrates the database, holds the lock of the one writer
};

enum {
    FLEET_STORE_WHERE_MAX = 512,  // bytes of a path or URI, with the NUL
    FLEET_STORE_PAGES_MAX = 1024, // of one put
    // Kinds of runs, machines, layouts of metrics and histories that one node may introduce. More
    // are a fault of the node, and would fill the dictionaries of all.
    FLEET_STORE_NEW_MAX = 4096,
    FLEET_STORE_AHEAD_MS = 60 * 1000, // a run measured later than this after its page came: clock
};

struct fleet_store;

// `where`: a path, or a URI of PostgreSQL. A newer schema is refused (ERR_STORAGE); a database of
// another program too. ERR_CONFLICT: another process writes. ERR_INVALID: this program was built
// without PostgreSQL.
// The form of `where` alone. ERR_USAGE, ERR_INVALID.
int fleet_store_check(const char *where, struct err *err);
bool fleet_store_is_postgresql(const char *where); // by its scheme: libpq takes two
struct fleet_store *fleet_store_open(const char *where, enum fleet_store_use use, struct err *err);
void fleet_store_close(struct fleet_store *s); // NULL is fine

// ---- What nodes sent

struct fleet_page {
    const char *name;                // of the node, as its source names it
    int64_t after;                   // as it was requested
    int64_t received_ms;             // UTC
    int skew_ms;                     // the node's clock minus ours
    const struct summary_page *page; // as summary_page_read() gave it
    bool collector;                  // of another collector's feed, with runs of many nodes
};

enum fleet_outcome {
    FLEET_STORED,      // the place is now the page's `next`
    FLEET_BEHIND,      // not stored: the place is elsewhere; request from `next`
    FLEET_REINSTALLED, // the node has a new history, the old one is closed; stored, if it began at
                       // 0
    FLEET_RENAMED,     // the history of a node that is gone continues here; stored, if it
                       // began where that stands
    FLEET_TWIN,        // not stored: a live node has the same history (a cloned image)
    FLEET_ALIEN,       // not stored: the page is from a node of another name
    FLEET_REWOUND,     // not stored: the history ends before the place (restored from a copy)
    FLEET_NAMELESS,    // not stored: the node is too old to name its history
    FLEET_GARBLED,     // not stored: numbers that no feed has
    FLEET_CROWDED,     // not stored: FLEET_STORE_NEW_MAX things were new before, and more are
    FLEET_OUTCOMES
};
struct fleet_outcome_info {
    const char *name; // stable, in JSON: "reinstalled"
    const char *text; // for people, without a full stop
};
extern const struct fleet_outcome_info fleet_outcomes[FLEET_OUTCOMES];

struct fleet_ack {
    enum fleet_outcome outcome;
    int64_t next;   // request the next page after this
    int stored;     // runs
    int notes;      // of the page
    int others;     // runs that were left out, because they are of another node
    char other[64]; // the twin's name; what an alien calls itself; the name before RENAMED
    int64_t lost;   // of a collector, ever: runs that it had deleted before they were read
    int unkept;     // runs with a label that are not archived: their node has FLEET_LABELLED_MAX
};

// One transaction for all pages; of one node several, in order. acks[i] says what became of page i.
// -1: nothing was stored, and the acks are undefined. At most FLEET_STORE_PAGES_MAX.
int fleet_store_put(struct fleet_store *s, const struct fleet_page *pages, int n,
                    struct fleet_ack *acks, struct err *err);
// When a run that came then counts as measured: the end of one that has no date, and the arrival of
// one without an end, or of a clock that is ahead.
int64_t fleet_store_date(const struct summary *r, int64_t received_ms);
// No source names these nodes any more: their feeds are closed, so that a new name may continue
// them. Their runs stay. Unknown names are passed over.
int fleet_store_gone(struct fleet_store *s, const char *const *names, int n, struct err *err);

// Where each node stands, in the order in which nodes came. A node without a feed has history "".
enum fleet_feed_state { FLEET_FEED_OPEN, FLEET_FEED_CLOSED, FLEET_FEED_TWIN };
struct fleet_feed {
    const char *name, *history, *version;
    const char *twin; // the other name; "": none
    enum fleet_feed_state state;
    int64_t next, first_ms, last_ms; // last: a page was received
    int64_t skew_ms;
};
// Open feeds and twins; `closed`: also those before. fn returns -1 to end with its error.
int fleet_store_feeds(struct fleet_store *s, bool closed,
                      int (*fn)(void *ctx, const struct fleet_feed *f, struct err *err), void *ctx,
                      struct err *err);

// ---- Other collectors

// A page of another collector's feed has its own place, and each run the history of its node and
// its number there. So a run that came before, from its node or through a third collector, is left
// out, whichever way is faster. Runs are left out (`others` of the ack) also if their history is
// another live node's, and those of nodes beyond FLEET_STORE_NODES_MAX.
enum { FLEET_STORE_NODES_MAX = 1 << 18 };
struct fleet_collector {
    const char *name, *history, *version;
    int64_t next, first_ms, last_ms, skew_ms; // last: a page was received
    int64_t stored, others, lost;             // runs, ever; lost: deleted there before
};
// Whose nodes they are, as the sources say it: lines "NODE\tCOLLECTOR\n", sorted by node; without a
// collector it is contacted, or pushes. Replaces the list before. Of a node that has a history, and
// is another one's, a collector adds to that history only: no run of another one is stored. A node
// that is not listed can be anyone's.
int fleet_store_owners(struct fleet_store *s, const char *text, size_t n, struct err *err);

// Where each stands, by name. fn returns -1 to end with its error.
int fleet_store_collectors(struct fleet_store *s,
                           int (*fn)(void *ctx, const struct fleet_collector *c, struct err *err),
                           void *ctx, struct err *err);

// This collector's own feed: all runs and notes in the order of their arrival, whatever their
// nodes. Numbers of arrivals are never given twice, and are not dense.
struct fleet_arrivals {
    int64_t after;       // a number; 0: from the beginning
    const char *history; // that the number is of; NULL: not known
    int limit;           // at most SUMMARY_RUNS_MAX
    // Out:
    char identity[40];  // of the feed
    int64_t next, last; // the next page is after `next`; the newest number
    int64_t deleted;    // runs between `after` and `next` that are not there any more
};
// fn gets runs with their place here (seq) and in the feed of their node; it returns 1 to end
// before this run, and -1 to end with its error. `note` gets the notes up to the last run.
// ERR_CONFLICT names `history_id` or `after`: the number is of another feed, or beyond the end.
int fleet_store_arrivals(struct fleet_store *s, struct fleet_arrivals *a,
                         int (*fn)(void *ctx, const struct summary *run,
                                   const struct summary_layout *layout, struct err *err),
                         int (*note)(void *ctx, const struct summary_note *note, struct err *err),
                         void *ctx, struct err *err);

// ---- Documents: facts of classes and of configurations, once per hash. Topologies are not kept

// Hashes without a document, the newest of each node first; `node` is the one that brought it.
int fleet_store_wanted(struct fleet_store *s, int most,
                       int (*fn)(void *ctx, const char *hash, const char *node, struct err *err),
                       void *ctx, struct err *err);
// ERR_INVALID: the hash is not that of the content.
int fleet_store_facts_put(struct fleet_store *s, const struct facts *facts, struct err *err);
// Appends the facts as facts_write_json() does. ERR_NOT_FOUND.
int fleet_store_document(struct fleet_store *s, const char *hash, struct buf *out, struct err *err);

// ---- What is read

struct fleet_window {
    const char *node, *class_hash, *benchmark; // NULL: all; of the hash its beginning is enough
    const struct nodeset *nodes;               // sorted; NULL: all
    int64_t since_ms, until_ms;                // measured in [since, until); until 0: no end
    int64_t seq;                               // only runs of this number in their feed; 0: all
    int newest;                                // of each node and kind of run; 0: all
    bool own;                                  // only runs that succeeded, of the node itself
    bool measured;                             // only runs that began on the node, also failed ones
    bool values_only; // without intervals and durations (NaN), times of the end and labels
    int after;        // only nodes with a higher number
    bool partial;     // fn will end it early: few nodes are read at once
};
// One page per node, in order of their numbers; runs by kind, the newest first. `layouts` of the
// page are those of the whole store, `next` is the node's number, `last` that of the last node. The
// page is valid during the call. All of it is one state of the database. fn returns -1 to end with
// its error, and 1 to end without one. ERR_NOT_FOUND: class_hash is of no run that ever came;
// ERR_INVALID: of several.
int fleet_store_window(struct fleet_store *s, const struct fleet_window *w,
                       int (*fn)(void *ctx, const struct summary_page *page, struct err *err),
                       void *ctx, struct err *err);

struct fleet_store_point {
    int64_t measured_ms, seq, id;
    float value, lo, hi; // lo, hi NaN: not known
    const char *unit, *benchmark, *variant, *method, *class_hash, *config_hash;
    int metrics_version;
    bool forced, imported;
    double disturbed; // share; NaN: not known
};
struct fleet_line {
    const char *node, *metric;
    int64_t since_ms, until_ms; // measured in [since, until); until 0: no end
};
// Points of runs that succeeded, by measured_ms and seq. Unknown names give no point.
int fleet_store_series(struct fleet_store *s, const struct fleet_line *line,
                       int (*fn)(void *ctx, const struct fleet_store_point *p, struct err *err),
                       void *ctx, struct err *err);

// Set-ups of nodes: the first run measured with each, and with the next one (0: it is the present
// one). In the order in which nodes came, and of time.
struct fleet_store_setup {
    const char *node, *class_hash, *config_hash;
    int64_t from_ms, until_ms;
};
// `nodes`: sorted; NULL: all. fn returns -1 to end with its error.
int fleet_store_setups(struct fleet_store *s, const struct nodeset *nodes,
                       int (*fn)(void *ctx, const struct fleet_store_setup *p, struct err *err),
                       void *ctx, struct err *err);

// All runs, a part at a time, for programs that keep a copy. The order is that of nodes, by number;
// of a node in stretches of time.
struct fleet_store_export {
    int64_t since_ms, until_ms; // measured in [since, until)
    int limit;         // values; a call ends with at least as many, and at most twice, or one run's
    int node;          // from here on: number, from 1 …
    int64_t at_ms;     // … and time. Moved by the call
    int64_t deletions; // FLEET_STORE_EXPORT_FIRST, and what the call made of it
};
enum { FLEET_STORE_EXPORT_FIRST = -1 };
// 1: there is more; 0: that was all; -1. fn as of fleet_store_window. ERR_CONFLICT: runs of the
// stretch were deleted since the first call, so that some of their nodes are given and some not.
int fleet_store_export(struct fleet_store *s, struct fleet_store_export *e,
                       int (*fn)(void *ctx, const struct summary_page *page, struct err *err),
                       void *ctx, struct err *err);

// ---- Upkeep

// Changes with each call that stored something: the key of kept responses. -1 and an error.
int64_t fleet_store_version(struct fleet_store *s, struct err *err);
// Deletes runs measured before the beginning of the month (UTC) of `before_ms`, the oldest first:
// in a day those of FLEET_RETAIN_MONTHS months that have runs. So a limit or a clock that is wrong
// deletes no history at once. The database remembers the day. What follows a clock that went back
// is a day without deletions.
enum { FLEET_RETAIN_MONTHS = 2 };
struct fleet_retention {
    int64_t before_ms, now_ms; // UTC
    // Out:
    int64_t deleted; // runs, also before an error
    bool held;       // older ones than `before_ms` are left for the next days
};
// ERR_CONFLICT: another process holds a lock; the text names the table and that process.
int fleet_store_retain(struct fleet_store *s, struct fleet_retention *r, struct err *err);
struct fleet_store_size {
    int64_t bytes, runs, nodes, feeds, kinds, machines, layouts;
};
int fleet_store_size(struct fleet_store *s, struct fleet_store_size *out, struct err *err);
