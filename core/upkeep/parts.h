// SPDX-License-Identifier: Apache-2.0
// Inside the upkeep only: what its files share. upkeep.c begins and ends it; each of the others
// does one task, and none of them calls upkeep.c.
#pragma once
#include "core/os/loop.h"
#include "core/run/runner.h"
#include "core/store/retention.h"
#include "core/store/worker.h"

enum work { REST, SWEEP, SHRINK };
// Of damage: seen by a statement of ours, then what a process that read all of it says.
enum verdict { OPEN, CONFIRMED, REFUTED };

struct upkeep {
    struct loop *loop;
    struct store *store;
    struct runner *runner;
    struct store_limits limits;
    struct loop_timer *next, *damage_timer, *held_over;
    int clock; // readable when the wall clock was set; -1: not known
    struct loop_watch *clock_watch;
    struct runner_watch *watch;
    enum work work;
    struct store_sweep sweep;
    int64_t used_before;
    bool owed;  // a run ended since the last step
    bool again; // and the current pass had begun before
    int64_t last_ms, last_deleted, last_freed_bytes;
    bool short_of, reported_short;
    bool held;     // runs are too old, but no more of them may go today
    char why[256]; // the damage that was seen; "": none
    enum verdict verdict;
    int n_refuted; // since refuted_ms
    int64_t refuted_ms;
    struct store_child check;
    bool suspected; // by one process; the running check decides
    struct backup *backup;
};

// damage.c. Reports the damage that the start found.
void upkeep_log_damage(const struct upkeep *k);
void upkeep_on_damage(void *ctx); // a statement found it
void upkeep_on_damage_timer(void *ctx, uint32_t events);
// All of the database is checked by a process of its own.
int upkeep_check(struct upkeep *k, enum store_work work, const char *because);
// One process could not read it, perhaps because a single read failed. A database that holds all
// runs is not quarantined for that: another process looks first.
void upkeep_check_before_believing(struct upkeep *k);

// wall_clock.c. What the clocks say now; with `save` it is stored also when they agree.
void upkeep_compare_clocks(struct upkeep *k, bool save);
void upkeep_watch_clock(struct upkeep *k);

// sweep.c
void upkeep_begin_sweep(struct upkeep *k);
void upkeep_on_next(void *ctx, uint32_t events);
void upkeep_on_held_over(void *ctx, uint32_t events);

// backup.c. Copies that an earlier daemon left.
void upkeep_remove_copies(const struct upkeep *k);
