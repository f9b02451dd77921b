// SPDX-License-Identifier: Apache-2.0
// A finished run with its matrices, as several resources show them.
#pragma once
#include "core/store/store.h"
#include "http/messages/request.h"
#include "model/run.h"

struct measured {
    struct run run;
    struct matrix *list;
    int n;
};

// Of the run that the path names. ERR_NOT_FOUND; ERR_CONFLICT while it has not finished.
int measured_load(const struct request *q, struct measured *m, struct err *err);
void measured_fini(struct measured *m);
