// SPDX-License-Identifier: Apache-2.0
// Requests the new runs of each node in turn and hands them on unread. A node is busy from its
// request until what it sent is stored, so a node has one page on the way at most.
#pragma once
#include "fleet/collect/naming.h"
#include "fleet/collect/polled.h"
#include "fleet/settings/config.h"

struct poller;
// Borrows loop and config. Starts the process that stores.
struct poller *poller_new(struct loop *loop, const struct fleetd_config *c, struct err *err);
void poller_free(struct poller *p); // what was received is stored first; NULL is fine
// The files of TLS for nodes have changed: new connections use them. ERR_USAGE: one of them is
// wrong, or not valid now. Connections fail with that until it is replaced.
int poller_renew_tls(struct poller *p, struct err *err);
// The nodes that the sources name now, sorted by name. Others become gone; their history stays.
int poller_set_nodes(struct poller *p, const struct naming_node *nodes, int n, bool whole,
                     struct err *err);
// Whether all sources have named their nodes since the start: one that is not known then is named
// by none.
bool poller_named(const struct poller *p);
// And whether those that none names are gone: more than half of the fleet has some time to be
// named.
bool poller_knows_gone(const struct poller *p);

// Facts that are faults of a node or of its surroundings.
bool node_clock_wrong(const struct polled *n);  // by more than NODE_SKEW_MAX_MS
int64_t node_clock_off(const struct polled *n); // ahead of the right time, ms; 0: not known, too
bool node_duplicate(const struct polled *n);    // two machines respond under its name
bool node_is_here(const struct polled *n);      // its runs come from itself
bool node_asleep(const struct polled *n);       // Slurm has powered it off; it is not contacted

// All nodes that were ever named since the start, by name. Borrowed until the next
// poller_set_nodes.
struct polled *const *poller_nodes(const struct poller *p, int *n);
uint64_t poller_lists(const struct poller *p); // so many were set: of two equal numbers no change
const struct polled *poller_find(const struct poller *p, const char *name); // NULL: none
// Other collectors whose feeds are followed: `name` is the address. In the order of the sources.
// NULL: there are fewer.
const struct polled *poller_collector_at(const struct poller *p, int i);
void poller_totals(const struct poller *p, struct poller_totals *out);
// Another collector writes: this one contacts no node.
bool poller_stands_by(const struct poller *p);
// Another number after each change of what is stored. Facts of machines arrive one by one after a
// first sweep, and each would make every kept response old. So after the first few they count once
// a second.
int64_t poller_changes(struct poller *p, int64_t now_ms);
size_t poller_backlog(const struct poller *p); // bytes received and not stored

// Takes a page that a node sent itself, unread. Its number, or -1. ERR_NOT_FOUND: no source names
// the node as one that pushes. ERR_CONFLICT: its page before is not stored yet, or ended the
// process that reads pages within the last hour. ERR_UNAVAILABLE: the store is not ready, or too
// much waits for it. ERR_TOO_MANY: the node has sent more than it may.
int64_t poller_push(struct poller *p, const char *node, struct buf *body, struct err *err);
// The same with facts of its machine. ERR_CONFLICT: the collector does not lack these.
int64_t poller_push_facts(struct poller *p, const char *node, const char *hash, struct buf *body,
                          struct err *err);
// Seconds after ERR_TOO_MANY until more of the node is taken.
int poller_push_wait_s(const struct poller *p, const char *node);
// Hash number i of the facts that the collector lacks of a node that pushes; NULL: there are fewer.
const char *poller_lacks(const struct poller *p, const char *node, int i);
// Calls wake() when what has this number is settled, until the end. -1: there is none that waits.
int poller_push_watch(struct poller *p, int64_t number, void (*wake)(void *ctx), void *ctx);
// Something else of the node may have come meanwhile, and has a wake() of its own.
void poller_push_watch_end(struct poller *p, int64_t number);
// The node, if its source says that it pushes. ERR_NOT_FOUND.
const struct polled *poller_pushing(const struct poller *p, const char *node, struct err *err);

void poller_listen(struct poller *p, poller_report_fn *fn, void *ctx); // fn NULL: ctx is left alone
// Whether the store is open, so that the places of all nodes are known. Only what is sent shows
// whether it can be written to. ERR_UNAVAILABLE and the reason.
int poller_check_open(const struct poller *p, struct err *err);
// As ingest_send(). ERR_UNAVAILABLE: the store is not ready.
int poller_keep(struct poller *p, const struct ingest_item *item, struct buf *body,
                struct err *err);
// A request to a node as the poller makes them: with its token and certificate.
struct fetch_request poller_request(const struct poller *p);
// Where it goes, borrowed. Without https it loses its token; with https the address of its host is
// that of hosts_file, if it is there.
void poller_address(const struct poller *p, struct fetch_request *q, const char *url);
void poller_soon(struct poller *p, const char *node); // it has a new run
// Finds out whether our clock was set, and whether it is the wrong one: fleet/collect/clocks.h.
// 65,536 nodes take 3 to 7 ms.
void poller_compare_clocks(struct poller *p);
int64_t poller_clock_off(const struct poller *p); // ours is ahead by so much, ms; 0: it is right
