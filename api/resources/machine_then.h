// SPDX-License-Identifier: Apache-2.0
// What the machine was when a stored run was made.
#pragma once
#include "api/services/services.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "model/run.h"

struct past {
    struct json *class_json, *config_json; // names and values are in them; owned
    struct fingerprint *fingerprint;       // owned; NULL: not known (imports)
};

int past_load(const struct api_services *api, const struct run *r, struct past *out,
              struct err *err);
void past_fini(struct past *p);
// The differences, most suspicious first; null where one of the two is not known.
int past_write_changes(const struct past *a, const struct past *b, struct jsonw *w, const char *key,
                       struct err *err);
// The same for two runs by number. A run that is gone is not known.
int past_write_changes_of(const struct api_services *api, int64_t a, int64_t b, struct jsonw *w,
                          const char *key, struct err *err);
