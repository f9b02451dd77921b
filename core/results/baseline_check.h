// SPDX-License-Identifier: Apache-2.0
// The verdict of a run against a baseline: the judgement behind GET /v1/check and /metrics.
#pragma once
#include "analysis/compare/compare.h"
#include "core/store/baselines.h"

enum check_state { CHECK_OK, CHECK_WARNING, CHECK_CRITICAL, CHECK_UNKNOWN, CHECK_STATES };
extern const char *const check_state_names[CHECK_STATES]; // "OK" …

struct check_options {
    char baseline[BASELINE_NAME_MAX + 1]; // "": the one named "default", or the only one
    int64_t run;                          // 0: the newest that is comparable
    double warn, crit;                    // per cent
    int64_t max_age_s;                    // 0: any
};
#define CHECK_DEFAULTS ((struct check_options){.warn = 3, .crit = 10})

// What a node suffers from whose values look healthy, because only undisturbed samples are
// compared.
enum check_symptom {
    CHECK_DISTURBED,   // share of the samples
    CHECK_OFF_CPU,     // share of its time that the rank lost that lost most
    CHECK_CLOCK,       // GHz, median of the ranks
    CHECK_LEAST_CLOCK, // GHz, of the slowest rank
    CHECK_SYMPTOMS
};

struct check_group {
    char matrix[24], unit[8];
    char name[96]; // "all", "memory of node 3"
    enum compare_by by;
    int64_t value;
    double percent, lo, hi;
    enum verdict verdict;
};

enum { CHECK_NOTES_MAX = 8 };

struct check_result {
    char baseline[BASELINE_NAME_MAX + 1], benchmark[24];
    enum check_state state; // without regard to age
    int64_t run, measured_ms;
    bool compared; // else `why` has the reason
    char why[256];
    double noise_percent; // differences below are what the baseline's runs have too; NaN: unknown
    enum verdict verdict; // of the comparison: the same that GET /v1/compare gives
    bool within_noise;
    char text[500];                    // why
    struct check_group overall, worst; // of the worst matrix, and of its parts
    // Of the run and of the baseline's runs; NaN: not known.
    double symptoms[CHECK_SYMPTOMS], symptoms_base[CHECK_SYMPTOMS];
    // Of the comparison: A is the first run of the baseline, B the run.
    int n_notes;
    char notes[CHECK_NOTES_MAX][COMPARE_NOTE_ROOM];
    char *changes; // JSON, or NULL; owned
};

// The baseline of that name; with "" the one named "default", or the only one. ERR_NOT_FOUND: there
// is none. ERR_INVALID: there are several.
int baseline_check_choose(struct store *s, const char *name, struct baseline *out, struct err *err);
// Checks the run that is named, or the newest of `node` that was measured as the baseline was. What
// keeps the two from being compared is a result (UNKNOWN and why), not an error. *out is zeroed;
// its `changes` are the caller's, also after an error.
int baseline_check_make(struct store *s, const char *node, const struct baseline *b,
                        const struct check_options *options, struct check_result *out,
                        struct err *err);
