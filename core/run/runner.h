// SPDX-License-Identifier: Apache-2.0
// The queue and the current run: takes the next queued row, starts its supervisor, reads
// records, stores the result, notifies clients that wait. One run at a time.
#pragma once
#include "base/err.h"
#include "core/admission/checks.h"
#include "core/node/machine.h"
#include "core/os/loop.h"
#include "core/run/events.h"
#include "core/run/fill.h"
#include "core/run/runner_config.h"
#include "core/run/waits.h"
#include "core/store/store.h"
#include "model/plan.h"

struct runner;

struct runner *runner_new(struct loop *l, struct store *s, struct machine *m,
                          const struct runner_config *c, struct err *err);
void runner_free(struct runner *r); // kills what runs; the row stays 'running' for the next start

// Marks lost runs, sweeps stale directories and processes of a former daemon, starts the queue.
int runner_start(struct runner *r, struct err *err);

// Checks (plan, admission, programs), stores, wakes the queue. On return the run is on disk. A run
// with queue_s is taken although the node is not free, and waits. `within`: the batch job that
// requests it, and that it is measured in; NULL: none. It may be taken over.
int runner_submit(struct runner *r, const struct spec *s, const char *key,
                  struct batch_place *within, int64_t *id, bool *again, struct err *err);
// What would happen: the plan, the command line, and what blocks it now. Same checks and errors
// as submit, but a node that is not free is none.
int runner_dry_run(struct runner *r, const struct spec *s, const struct batch_place *within,
                   struct plan *p, struct buf *command, struct admission *a, struct err *err);
// Would it be admitted now? While a run is running nothing blocks: the next one waits for
// its end and is looked at then. ERR_INVALID if it cannot be planned.
int runner_available(struct runner *r, const struct spec *s, const struct batch_place *within,
                     struct admission *a, struct err *err);
// Why the last submit was refused; n is 0 if it was for something else.
const struct admission *runner_refusal(const struct runner *r);
// CPUs and memory that came or went: the struct machine given to runner_new is read again. A run
// that is running and has lost some of its CPUs, or a node's memory, is stopped and fails with
// that. -1: they changed and cannot be read; all stays as it was. About 50 us if nothing changed.
int runner_look_at_machine(struct runner *r, struct err *err);
void runner_policy(struct runner *r, const struct policy *p); // from now on
// A queued run is canceled at once; a running one gets SIGTERM, and SIGKILL after 1 s. ERR_CONFLICT
// when it has finished already.
int runner_cancel(struct runner *r, int64_t id, struct err *err);

// Copies the run with live progress. ERR_NOT_FOUND.
int runner_run_get(struct runner *r, int64_t id, struct run *out, struct err *err);
int64_t runner_event_id(const struct runner *r,
                        int64_t run_id); // last event of that run; 0: none known
// Runs that are stored without today's metrics (imports, an upgraded database) get them a few at a
// time, while nothing runs and nothing waits. To be called when there may be such runs.
void runner_fill_metrics(struct runner *r);
// Has those of large runs made elsewhere (core/run/fill.h); NULL: no longer.
void runner_metrics_by(struct runner *r, filler_fn *fn, void *ctx);
void runner_metrics_made(struct runner *r, int64_t id, const struct run_metrics *m,
                         const struct err *why);
int64_t runner_finished(const struct runner *r, enum run_state state); // since the daemon's start
bool runner_busy(const struct runner *r);
// Something of ours took time or the disk: noted in the conditions of the current run.
void runner_disturbed(struct runner *r, const char *what);
// The database is a fresh one: the current run is put into it again.
void runner_store_replaced(struct runner *r);
const char *runner_account(
    const struct runner *r); // the account of the ranks, in the words of struct account
// The programs are there, and an account that can run them: what is known. ERR_UNAVAILABLE. A child
// looks again, at most once a minute while all is well. `note` says why MPI cannot be used, or
// nothing.
int runner_ready(struct runner *r, char *note, size_t room, struct err *err);
// Log of the run: the file while it runs, the stored text afterwards. free()
int runner_log_get(struct runner *r, int64_t id, char **text, struct err *err);

// Notifies clients that wait that a run came to the store without us: an import.
void runner_notify(struct runner *r, int64_t id);

// Watches events of one run (id) or of RUNNER_ANY_RUN. Callbacks must not block; may unwatch.
struct runner_watch *runner_watch_add(struct runner *r, int64_t run_id, event_fn *fn, void *ctx,
                                      struct err *err);
