// SPDX-License-Identifier: Apache-2.0
// One of the runs that are compared or reported on, with everything that is known about it.
#pragma once
#include "core/results/machine_then.h"
#include "core/results/stored_run.h"
#include "http/messages/request.h"

struct run_side {
    struct stored_run stored;
    struct machine_then then; // what the machine was
    struct json *plan;        // NULL: not known
    struct json *conditions;  // an array; NULL: not known
};

// ERR_CONFLICT (`member`): the run has not succeeded.
int run_side_load(const struct request *q, const char *member, int64_t id, struct run_side *s,
                  struct err *err);
void run_side_fini(struct run_side *s);
// The number of a run from the query. ERR_INVALID.
int run_side_id(const struct request *q, const char *name, int64_t *id, struct err *err);
