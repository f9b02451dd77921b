// SPDX-License-Identifier: Apache-2.0
// How old runs are, whatever the wall clock does. Age is time that was seen to pass on the kernel's
// clock since the boot, which no process can set. Where the wall clock moves against that one, the
// difference is a step: it is stored with the newest run there was, and counts for the age of no
// run up to that one. docs/STORAGE.md describes it for users.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct store;

enum {
    // What a restart takes, and more than a clock drifts: below that, differences are no steps.
    AGE_STEP_MS = 3600000,
    AGE_DAY_MS = 86400000,
    // Deletions by age in a day until the clock was steady, and the limit the same, for a day. Or
    // one run in AGE_SHARE, whichever is more.
    AGE_DAY_RUNS = 100,
    AGE_SHARE = 10,
};

struct age_clock {
    int64_t wall_ms; // UTC since 1970, as the clock is now
    int64_t up_ms;   // since the boot, suspended or not
    int64_t boot;    // which boot; never 0
};
// -1: /proc does not say; then nothing is known of the clock.
int age_clock_read(struct age_clock *out);

// What is known of the clock; stored as counters, so that it outlives the daemon and the boot.
struct age {
    int64_t boot, up_ms; // at the last look; boot 0: there was none
    int64_t offset_ms;   // wall clock less time since the boot, after the last step
    int64_t last_id;     // newest run at the last look
    int64_t seen_ms;     // time seen to pass, in all
    int64_t steady_ms;   // seen_ms when the clock stepped last, or the limit became another
    int64_t step_ms;     // the last step; 0: none
    int64_t keep_days;   // the limit in force
    int64_t day_ms;      // seen_ms when the day began whose deletions are counted
    int64_t day_runs;    // all runs then
    int64_t day_deleted; // by age since
};
int store_age_get(struct store *s, struct age *out, struct err *err);
void age_advance(struct age *a, const struct age_clock *now); // to the time now, without a step
// Compares the clocks; a step is stored at once, the rest with `save`. *step_ms: the step that was
// found, else 0.
int store_age_look(struct store *s, const struct age_clock *now, bool save, int64_t *step_ms,
                   struct err *err);
// For a pass, inside a transaction: how many runs may go by age, INT64_MAX for any number.
int store_age_begin(struct store *s, int64_t keep_days, int64_t runs, int64_t *most,
                    struct err *err);
int store_age_count(struct store *s, int64_t deleted, struct err *err); // of a step of that pass
// When the run was requested, on the wall clock as it is now. Of a run whose time is implausible
// (years ago, or later than now) it is that of the next run that has one, INT64_MAX if none has.
int store_age_born(struct store *s, int64_t id, int64_t created_ms, int64_t now_ms,
                   int64_t *born_ms, struct err *err);
// Until the clock has been steady for a day; 0: it has.
int64_t age_unsteady_ms(const struct age *a);
