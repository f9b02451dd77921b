// SPDX-License-Identifier: Apache-2.0
// Requests the new runs of each node in turn and hands them on unread. A node is busy from its
// request until what it sent is stored, so a node has one page on the way at most.
#pragma once
#include "fetch/fetch.h"
#include "fleet/collect/ingest.h"
#include "fleet/collect/naming.h"
#include "fleet/collect/node_states.h"
#include "fleet/collect/store_states.h"
#include "fleet/settings/config.h"
#include "nodes/addresses.h"

enum { POLLER_WHY = 160 };

// What became of a page that a node sent itself.
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

// A node as the collector sees it.
struct polled {
    struct poller *poller;
    char name[64];
    char base[2][300];    // "http://10.0.0.1:7780"; the second where sources disagree, or ""
    int at_base;          // the one that is requested from
    uint32_t sources;     // that name it: bit i is naming_source_at(i)
    char class_hint[64];  // of a source; "": none
    char slurm_state[24]; // "idle", "mix~"; "": not known
    char partitions[128]; // of Slurm, separated by commas
    enum node_state state;
    int failures;               // since its last response
    int64_t due_ms;             // monotonic: when the next request may start
    bool busy;                  // a request, or what it sent, is on the way
    bool sent;                  // to the process that stores
    int64_t after;              // where the next page begins
    char history[40];           // "": none yet
    char version[32];           // of its daemon; "": not known
    int64_t seen_ms;            // last page that was stored, UTC; 0: never
    int64_t newest_ms;          // its newest run since the collector started, UTC; 0: not known
    int64_t skew_ms;            // its clock minus ours
    int64_t stored;             // runs, since the collector started
    enum fleet_outcome outcome; // of its last page
    int repeats;                // pages before it with the same outcome
    char other[64];             // the twin's or alien's name
    // What became of its histories: machines that share a name come back to each other's.
    char history_now[40], history_before[40]; // of stored pages; "": none
    int returns;                              // to the one before
    int64_t returned_ms;                      // the last time, UTC
    int64_t poison_ms;    // its page ended the process that reads pages, UTC; 0: its last did not
    bool pushes;          // it sends its pages itself, and is never contacted
    struct pushed push;   // of its last page, if it does
    bool too_old;         // its daemon does not know the feed, or not as the collector needs it
    char why[POLLER_WHY]; // why its last request failed; "": it did not
};

struct poller_totals {
    int64_t requests, failed, stored; // since the start
    int64_t kept;                     // other things than pages that were stored
    int64_t errors[FETCH_ERRORS];     // why requests failed; [FETCH_OK]: their status
    int64_t documents;                // stored, since the start
    int in_flight;
    enum store_state store_state;
    int64_t store_since_ms;  // UTC: in this state
    char store[INGEST_TEXT]; // why it is not ready; "": it is, or is opened for the first time
};

struct poller;
// Borrows loop and config. Starts the process that stores.
struct poller *poller_new(struct loop *loop, const struct fleetd_config *c, struct err *err);
void poller_free(struct poller *p); // what was received is stored first; NULL is fine
// The nodes that the sources name now, sorted by name. Others become gone; their history stays.
int poller_set_nodes(struct poller *p, const struct naming_node *nodes, int n, struct err *err);

// Facts that are faults of a node or of its surroundings.
enum { NODE_SKEW_MAX_MS = 60 * 1000 };
bool node_clock_wrong(const struct polled *n); // by more than NODE_SKEW_MAX_MS
bool node_duplicate(const struct polled *n);   // two machines respond under its name
bool node_asleep(const struct polled *n);      // Slurm has powered it off; it is not contacted

// All nodes that were ever named since the start, by name. Borrowed until the next
// poller_set_nodes.
struct polled *const *poller_nodes(const struct poller *p, int *n);
const struct polled *poller_find(const struct poller *p, const char *name); // NULL: none
void poller_totals(const struct poller *p, struct poller_totals *out);
size_t poller_backlog(const struct poller *p); // bytes received and not stored

// Takes a page that a node sent itself, unread. Its number, or -1. ERR_NOT_FOUND: no source names
// the node as one that pushes. ERR_CONFLICT: its page before is not stored yet, or ended the
// process that reads pages within the last hour. ERR_UNAVAILABLE: the store is not ready, or too
// much waits for it.
int64_t poller_push(struct poller *p, const char *node, struct buf *body, struct err *err);
// Calls wake() when the page of this number is settled. NULL: there is none that waits.
struct polled *poller_push_watch(struct poller *p, int64_t number, void (*wake)(void *ctx),
                                 void *ctx);
// The node, if its source says that it pushes. ERR_NOT_FOUND.
const struct polled *poller_pushing(const struct poller *p, const char *node, struct err *err);

// What the process that stores reports about other things than pages; NULL: it has ended, and what
// was sent and not confirmed is lost.
typedef void poller_report_fn(void *ctx, const struct ingest_report *r);
enum { POLLER_LISTENERS = 2 };
void poller_listen(struct poller *p, poller_report_fn *fn, void *ctx); // fn NULL: ctx is left alone
// As ingest_send(). ERR_UNAVAILABLE: the store is not ready.
int poller_keep(struct poller *p, const struct ingest_item *item, struct buf *body,
                struct err *err);
// A request to a node as the poller makes them: with its token and certificate.
struct fetch_request poller_request(const struct poller *p);
// Where it goes, borrowed. Without https it loses its token.
void poller_address(struct fetch_request *q, const char *url);
void poller_soon(struct poller *p, const char *node); // it has a new run
