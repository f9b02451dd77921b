// SPDX-License-Identifier: Apache-2.0
// The database: one read-write connection, one thread. The only module that includes sqlite3.h.
// Failures that mean "cannot store now" are ERR_STORAGE. Rows belong to the caller after a read.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/fingerprint.h"
#include "model/matrix.h"
#include "model/metric.h"
#include "model/run.h"

struct store;

// Opens or creates `dir`/numaprobe.db, locks `dir` and `dir`/lock (flock: a second daemon is
// refused by name), migrates forward; a newer schema is refused untouched.
struct store *store_open(const char *dir, struct err *err);
// Whether `dir` itself is locked. If not (its file system knows no such locks), only the file is:
// whoever deletes it lets a second daemon in.
bool store_dir_is_locked(const struct store *s);
void store_close(struct store *s);                     // NULL is fine; checkpoints
bool store_writable(struct store *s, struct err *err); // a write transaction, rolled back
const char *store_path(const struct store *s);

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

// Summary metrics of a run, for its series.
struct run_metrics {
    int version;         // of their definitions, from 1
    const char *variant; // spec_variant: runs of one variant may be lined up
    const struct metric *list;
    int n;
};

struct run_result {       // borrowed pointers
    enum run_state state; // final
    enum err_code error;
    const char *error_member, *error_text;
    const char *method;
    const char *conditions_json;
    const double *phase_ms; // PHASES values or NULL
    const struct matrix *matrices;
    int n_matrices;
    const struct rank_info *ranks;
    int n_ranks;
    bool staged;                // cells and ranks are stored already (core/store/stage.h)
    const char *log;            // what the processes printed, capped by the caller
    int64_t finished_ms;        // 0: now
    struct run_metrics metrics; // version 0: not computed
};
// Final state, matrices, ranks, log and seq in one transaction.
int store_run_finished(struct store *s, int64_t id, const struct run_result *r, struct err *err);
// A run measured elsewhere; the state of the result is final.
struct run_import {
    const struct spec *spec;
    const char *node, *label; // label "" for none
    int64_t measured_ms;
    const struct run_result *result;
    // What an export brings along; 0 or NULL: not known.
    const char *key; // of its content (whole_key): the same content is stored once
    int64_t started_ms;
    const char *plan_json;
    const char *class_hash, *class_json, *config_hash, *config_json; // all four or none
    const char *topology_hash, *topology_xml; // the hash alone counts if that topology is stored
};
int store_run_import(struct store *s, const struct run_import *i, int64_t *id, struct err *err);
// All or none, in one transaction. again[k]: run k was there already, imported (the same key) or
// measured here (the same node and times); ids[k] is that one.
int store_runs_import(struct store *s, const struct run_import *list, int n, int64_t *ids,
                      bool *again, struct err *err);
// The run that an import would find, as above: 1 found, 0 none, -1.
int store_import_find(struct store *s, const struct run_import *i, int64_t *id, struct err *err);
// "" takes the label away. Labelled runs are not deleted by retention.
int store_run_label(struct store *s, int64_t id, const char *label, struct err *err);
// Replaces what is stored of the run's metrics.
int store_run_metrics(struct store *s, int64_t id, const struct run_metrics *m, struct err *err);
// The run has none of that version (it cannot be read): it is not asked for again.
int store_run_no_metrics(struct store *s, int version, int64_t id, struct err *err);
// A succeeded run whose metrics are older than `version`: 1 found, 0 none, -1.
int store_run_without_metrics(struct store *s, int version, int64_t *id, struct err *err);
// At start: every run still 'running' becomes 'interrupted' with this text. *n: how many.
int store_run_interrupt_all(struct store *s, const char *text, int64_t *n, struct err *err);
int store_run_delete(struct store *s, int64_t id, struct err *err); // ERR_CONFLICT unless final

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

// The name of this history, of 32 hexadecimal digits: a database begun anew has another. free()
int store_identity(struct store *s, char **name, struct err *err);

// Finished runs in the order of seq, after one: fills ids[0…*n), *n at most `most`. *last: the
// newest seq given at all; a seq between that is missing was deleted.
int store_run_changes(struct store *s, int64_t after_seq, int64_t *ids, int most, int *n,
                      int64_t *last, struct err *err);

int store_matrices_get(struct store *s, int64_t id, struct matrix **out, int *n, struct err *err);
void store_matrices_free(struct matrix *list, int n);
int store_ranks_get(struct store *s, int64_t id, struct rank_info **out, int *n,
                    struct err *err);                                         // free()
int store_log_get(struct store *s, int64_t id, char **text, struct err *err); // free()
// hwloc's XML of the machine when the run started; ERR_NOT_FOUND: none kept (imports). free()
int store_topology_xml(struct store *s, int64_t id, char **xml, struct err *err);
int store_fingerprint_json(struct store *s, const char *hash, char **json,
                           struct err *err); // free()
