// SPDX-License-Identifier: Apache-2.0
// Which change of set-up belongs to a change point of a series. The place of a change point is
// uncertain by some runs, so a change of set-up near it counts too. Pure.
#pragma once
#include <stdbool.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "model/fingerprint.h"

enum { SETUP_CHANGE_REACH = 2, SETUP_CHANGE_TEXT = 48 };

struct setup_change {
    bool found;
    int runs; // from the change point to the first run with the new set-up; < 0: it is before
};

// The hashes of a run's facts; "": not known.
struct setup_hashes {
    const char *class_hash, *config_hash;
};

// A hash is known of both runs and is another one. What is not known is no sign of a change.
bool setup_hashes_differ(const struct setup_hashes *a, const struct setup_hashes *b);
// The set-ups of the i-th run and of the one before are known and differ.
typedef bool setup_differs(const void *ctx, int i);
// `at`: the first run after the change point, among n. The nearest change of set-up is taken, and
// of two as near the earlier one: a cause comes before what it does.
struct setup_change setup_change_find(int at, int n, setup_differs *differs, const void *ctx);
// "the set-up changed 1 run earlier"; "" where it is the same run, or none was found.
const char *setup_change_text(const struct setup_change *c, char out[SETUP_CHANGE_TEXT]);
// The member "setup_runs"; null: none was found.
void setup_change_write_json(const struct setup_change *c, struct jsonw *w);
// As it is in a change point of a response; out of range: none.
struct setup_change setup_change_from_json(const struct json *change);

// Reads the facts of a hash. *document holds their names, and is freed after them; NULL: there are
// none.
typedef int setup_facts_read(void *ctx, const char *hash, struct facts *out, struct json **document,
                             struct err *err);
// The member `key`: which facts differ; null where a hash, or facts of a hash that differs, are not
// known. Facts of equal hashes are not read.
int setup_changes_write_json(const struct setup_hashes *a, const struct setup_hashes *b,
                             setup_facts_read *facts_of, void *ctx, struct jsonw *w,
                             const char *key, struct err *err);
