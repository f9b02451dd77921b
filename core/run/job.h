// SPDX-License-Identifier: Apache-2.0
// One run from its directory to the moment when nothing of it is left but its result in memory.
#pragma once
#include "core/launch/supervisor.h"
#include "core/node/machine.h"
#include "core/os/cgroup.h"
#include "core/os/loop.h"
#include "core/run/dir.h"
#include "core/run/records.h"
#include "core/store/stage.h"
#include "core/store/store.h"
#include "model/condition.h"

struct ending { // the result while it is being stored
    struct run_result result;
    struct buf conditions, plan; // of result
    struct err why;              // of result
    struct store_stage stage;
};

struct job {
    // Set by the runner before job_start; owned by the job.
    struct loop *loop;
    int64_t id;
    int64_t created_ms, started_ms; // UTC
    struct spec spec;
    struct plan plan;
    struct machine planned; // the machine it was planned on, if that has changed since; else empty
    struct account account;
    struct conditions conditions;
    struct run_dir dir;              // path "" until made
    char group[RUN_GROUP_PATH_ROOM]; // cgroup; "": none
    int lock;                        // of the host, for the supervisor; borrowed; -1: none
    void (*on_progress)(void *ctx);
    void (*on_over)(void *ctx); // may free the job
    void *ctx;

    struct launch launch;
    struct records records;
    struct supervised supervised;
    struct loop_watch *fifo, *control, *gone;
    struct loop_timer *backstop, *throttle;
    struct loop_timer *patience; // armed until the first report, and again after the last
    int64_t last_progress_ms;
    bool running, canceled, have_report;
    bool said_hello, said_end; // as the patience knows
    bool ended_late;           // the launcher was ended after the last record
    struct supervisor_report report;
    struct err silence; // why there is none
    struct err error;   // of the records
    char *log;          // what the processes printed; owned; set when it has finished
    struct ending ending;
};

struct job *job_new(struct loop *l, struct err *err);
void job_free(struct job *j); // ends what runs and waits for it; NULL is fine
// Makes the directory and the command line; nothing runs yet.
int job_prepare(struct job *j, const char *base, const struct launch_paths *paths, struct err *err);
int job_start(struct job *j, struct err *err);
void job_disturbed(struct job *j, const char *what); // noted once
void job_cancel(struct job *j);
void job_stop(struct job *j, const struct err *why); // it fails with this
char *job_log_read(const struct job *j);             // so far; malloc'ed, NULL without memory
// When it has finished: mpirun, or numa_bench without MPI, could not be started.
bool job_did_not_start(const struct job *j);
// When it has finished: a launcher that hung after all results had come. They count, and a
// condition says so.
void job_note_hang(struct job *j);
// When it has finished: how it ended. ERR_NONE is success.
enum run_state job_outcome(struct job *j, struct err *why);
