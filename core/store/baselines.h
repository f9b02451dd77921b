// SPDX-License-Identifier: Apache-2.0
// Baselines: runs under a name, to check others against. Part of the store (core/store/store.h). A
// run in a baseline cannot be deleted.
#pragma once
#include "analysis/compare/baseline.h"
#include "base/err.h"

struct store;

enum { BASELINE_NAME_MAX = 63, BASELINES_MAX = 64 }; // one a benchmark and variant, and room

struct baseline {
    char name[BASELINE_NAME_MAX + 1];
    int64_t created_ms;
    int n;
    int64_t runs[BASELINE_RUNS_MAX]; // ascending
};

// Letters, digits, . _ -; ERR_INVALID (member "name") else.
int baseline_name_check(const char *name, struct err *err);
// Replaces one of that name. ERR_NOT_FOUND: no such run; ERR_CONFLICT: BASELINES_MAX are there.
int store_baseline_put(struct store *s, const struct baseline *b, struct err *err);
int store_baseline_get(struct store *s, const char *name, struct baseline *out,
                       struct err *err); // ERR_NOT_FOUND
// By name, at most BASELINES_MAX. *list malloc'ed.
int store_baseline_list(struct store *s, struct baseline **list, int *n, struct err *err);
int store_baseline_delete(struct store *s, const char *name, struct err *err); // ERR_NOT_FOUND
// May the run be deleted? ERR_CONFLICT names the baseline that it is in.
int store_baseline_free_of(struct store *s, int64_t run_id, struct err *err);
