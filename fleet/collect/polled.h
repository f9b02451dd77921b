// SPDX-License-Identifier: Apache-2.0
// A node as the collector sees it, and what the collector counts.
#pragma once
#include "fetch/fetch.h"
#include "fleet/collect/ingest.h"
#include "fleet/collect/node_states.h"
#include "fleet/collect/store_states.h"

enum { POLLED_BASE = 300 };

// What became of a page, or of facts, that a node sent itself.
struct pushed {
    int64_t number; // of all that were sent; 0: none yet
    bool settled;   // the other members count
    enum err_code failed;
    char why[POLLER_WHY], member[64]; // `failed`
    bool more;
    int stored;              // runs
    void (*wake)(void *ctx); // of who waits; NULL: no one
    void *ctx;
};

// A node as the collector sees it. Texts that few nodes have are const char *: "" or owned, set by
// polled_text(). There are up to 65,536 nodes, and each byte here is there for all of them.
struct polled {
    struct poller *poller;
    char name[64];
    const char *base[2];      // "http://10.0.0.1:7780"; the second where sources disagree, or ""
    int at_base;              // the one that is requested from
    uint32_t sources;         // that name it: bit i is naming_source_at(i)
    const char *class_hint;   // of a source; "": none
    char slurm_state[24];     // "idle", "mix~"; "": not known
    const char *partitions;   // of Slurm, separated by commas
    const char *slurm_reason; // why Slurm has it drained or down; "": it has not
    enum node_state state;
    int failures;               // since its last response
    int64_t due_ms;             // monotonic: when the next request may start
    bool busy;                  // a request, or what it sent, is on the way
    bool sent;                  // to the process that stores
    bool again;                 // it has a run that the response on the way may not have
    int64_t after;              // where the next page begins
    char history[40];           // "": none yet
    char version[32];           // of its daemon; "": not known
    int64_t seen_ms;            // last page that was stored, UTC; 0: never
    int64_t newest_ms;          // its newest run since the collector started, UTC; 0: not known
    int64_t skew_ms;            // its clock minus ours
    int64_t stored;             // runs, since the collector started
    enum fleet_outcome outcome; // of its last page
    int repeats;                // pages before it with the same outcome
    double allowance;           // runs that it may send at once …
    int64_t allowance_ms;       // … then, monotonic
    const char *other;          // the twin's or alien's name
    // What became of its histories: machines that share a name come back to each other's.
    char history_now[40], history_before[40]; // of stored pages; "": none
    int returns;                              // to the one before
    int64_t returned_ms;                      // the last time, monotonic
    int64_t poison_ms; // what it sent ended the process that reads it, UTC; 0: nothing did …
    int64_t poison_until_ms; // … and is not read again before, monotonic
    bool poison_wish;        // that was a document or a whole run: its pages are read
    bool pushes;             // it sends its pages itself, and is never contacted
    const char *behind;  // the collector from which its runs come; it is never contacted. "": none
    bool twice;          // it is also behind a collector, or behind two
    int64_t lost;        // of a collector: runs that it had deleted before they were read
    bool unkept;         // it has FLEET_LABELLED_MAX runs in the archive
    bool given_up;       // whole runs of it were, and the log has it
    struct pushed *push; // its last page, if it does; NULL: none yet
    bool too_old;        // its daemon does not know the feed, or not as the collector needs it
    const char *why;     // why its last request failed, up to POLLER_WHY; "": it did not
};

struct poller_totals {
    int64_t requests, failed, stored; // since the start
    int64_t kept;                     // other things than runs that were stored
    int64_t errors[FETCH_ERRORS];     // why requests failed; [FETCH_OK]: their status
    int64_t documents;                // stored, since the start
    int64_t given_up;                 // whole runs, since the start
    int in_flight;
    enum store_state store_state;
    int64_t store_since_ms;  // UTC: in this state
    char store[INGEST_TEXT]; // why it is not ready; "": it is, or is opened for the first time
};

// What the process that stores reports about other things than pages; NULL: it has ended, and what
// was sent and not confirmed is lost.
typedef void poller_report_fn(void *ctx, const struct ingest_report *r);
enum { POLLER_LISTENERS = 2, POLLER_AGED = 3 };
