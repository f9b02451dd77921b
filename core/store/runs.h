// SPDX-License-Identifier: Apache-2.0
// Runs: the queue is their table, so a restart loses nothing that was acknowledged.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/store/results.h"
#include "model/fingerprint.h"
#include "model/run.h"
#include "model/spec.h"

// Inserts a queued run, committed with synchronous=FULL. `key` (may be NULL) is the idempotency
// key: the same key with the same spec gives the first run's id and *again = true; with another
// spec ERR_CONFLICT (member "Idempotency-Key").
int store_run_insert(struct store *s, const struct spec *spec, const char *node, const char *key,
                     int64_t *id, bool *again, struct err *err);
// The run that has this key, if there is one: 1 found, 0 none, -1 (ERR_CONFLICT as above).
int store_run_find(struct store *s, const struct spec *spec, const char *key, int64_t *id,
                   struct err *err);
int store_run_get(struct store *s, int64_t id, struct run *out, struct err *err); // ERR_NOT_FOUND
// The first that waits behind run `after` (0: of all): 0 none, 1 found, -1.
int store_run_next_queued(struct store *s, int64_t after, int64_t *id, struct err *err);
int store_queue_length(struct store *s, int64_t *n, struct err *err);

// queued -> running, with plan, conditions and fingerprint of that moment.
int store_run_started(struct store *s, int64_t id, const char *plan_json,
                      const char *conditions_json, const struct fingerprint *f,
                      const char *topology_xml, struct err *err);
// Final state, matrices, ranks, log and seq in one transaction.
int store_run_finished(struct store *s, int64_t id, const struct run_result *r, struct err *err);
// "" takes the label away. Labelled runs are not deleted by retention.
int store_run_label(struct store *s, int64_t id, const char *label, struct err *err);
// At start: every run still 'running' becomes 'interrupted' with this text. *n: how many.
int store_run_interrupt_all(struct store *s, const char *text, int64_t *n, struct err *err);

struct run_filter {
    int state;                  // -1: any
    const char *benchmark;      // NULL: any
    const char *node, *label;   // NULL: any
    int64_t since_ms, until_ms; // created; 0: open
    int64_t before_id;          // cursor: only ids below; 0: from the newest
    int limit;                  // 1…200
};
// Newest first; calls fn for each. *more: older ones match too.
int store_run_list(struct store *s, const struct run_filter *f,
                   void (*fn)(void *ctx, const struct run *r), void *ctx, bool *more,
                   struct err *err);
// Ranks of all runs that store_run_list would give together.
int store_run_list_ranks(struct store *s, const struct run_filter *f, int64_t *ranks,
                         struct err *err);

// The feed of finished runs, in the order of their seq.
struct store_feed {
    char history_id[33]; // 32 hexadecimal digits: a database begun anew has others
    int64_t last;        // the newest seq given at all; one before it that is missing was deleted
};
int store_feed(struct store *s, struct store_feed *out, struct err *err);
// Its `last` without a look at the database, for estimates. INT64_MAX: the process that writes
// knows it.
int64_t store_last_seq(const struct store *s);
// A finished run, or a note: another label or another membership of a baseline of one.
struct store_change {
    int64_t seq, id; // id: of the run
    bool note;
};
// In the order of seq, after one: fills list[0…*n), *n at most `most`.
int store_run_changes(struct store *s, int64_t after_seq, struct store_change *list, int most,
                      int *n, struct err *err);
int store_log_get(struct store *s, int64_t id, char **text, struct err *err); // free()
// Numbers of the runs that store_run_list would give; ids has room for `limit` of them.
int store_run_list_ids(struct store *s, const struct run_filter *f, int64_t *ids, int *n,
                       bool *more, struct err *err);
// hwloc's XML of the machine when the run started; ERR_NOT_FOUND: none kept (imports). free()
int store_topology_xml(struct store *s, int64_t id, char **xml, struct err *err);
int store_topology_by_hash(struct store *s, const char *hash, char **xml,
                           struct err *err); // the same by its hash
int store_fingerprint_json(struct store *s, const char *hash, char **json,
                           struct err *err); // free()

// A run that was running while its database was quarantined: as queued and as started, with the
// same number. Does nothing if it is there.
struct run_restore {
    int64_t id, created_ms, started_ms;
    const struct spec *spec;
    const char *node, *plan_json, *conditions_json;
    const struct fingerprint *fingerprint;
    const char *topology_xml;
};
int store_run_restore(struct store *s, const struct run_restore *r, struct err *err);

// Inside the store, in a transaction.
// `as`: the number and the time of a run that was given them before; NULL: new ones.
struct store_number {
    int64_t id, created_ms;
};
int store_finish(struct store *s, int64_t id, const struct run_result *r, struct err *err);
int store_insert(struct store *s, const struct spec *spec, const char *node, const char *key,
                 const struct store_number *as, int64_t *id, struct err *err);
int store_facts_put(struct store *s, const char *hash, const char *kind, const char *json,
                    struct err *err);
int store_topology_put(struct store *s, const char *hash, const char *xml, struct err *err);
int store_run_state(struct store *s, int64_t id, struct err *err); // enum run_state; ERR_NOT_FOUND
int store_noted(struct store *s, struct err *err); // notes may have taken numbers of the feed
