// SPDX-License-Identifier: Apache-2.0
// What the machine was when a stored run was made.
#pragma once
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
// The same for two runs by number. A run that is gone is not known.
int machine_then_write_changes_of(struct store *s, int64_t a, int64_t b, struct jsonw *w,
                                  const char *key, struct err *err);
// 1: the machines of these two runs are known and differ; 0: they do not, or are not; -1.
int machine_then_differs(struct store *s, int64_t a, int64_t b, struct err *err);
