// SPDX-License-Identifier: Apache-2.0
// What the machine was when a stored run was made.
#pragma once
#include "analysis/compare/setup_change.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "core/store/store.h"
#include "model/fingerprint.h"
#include "model/run.h"

struct machine_then {
    struct json *class_json, *config_json; // names and values are in them; owned
    struct fingerprint *fingerprint;       // owned; NULL: not known (imports)
};

int machine_then_load(struct store *s, const struct run *r, struct machine_then *out,
                      struct err *err);
void machine_then_fini(struct machine_then *p);
// The differences, most suspicious first; null where one of the two is not known.
int machine_then_write_changes(const struct machine_then *a, const struct machine_then *b,
                               struct jsonw *w, const char *key, struct err *err);
// The same by the hashes of two runs.
int machine_then_write_setups(struct store *s, const struct setup_hashes *a,
                              const struct setup_hashes *b, struct jsonw *w, const char *key,
                              struct err *err);
