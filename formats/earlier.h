// SPDX-License-Identifier: Apache-2.0
// Documents that earlier versions of numaprobe exported: what their members were called, and what
// their conditions, which were sentences, are now. Everything else of the program knows the names
// of today only.
#pragma once
#include "model/condition.h"

// The kind and rank that a sentence tells, and its text without them. ERR_INVALID: it is longer
// than any that was written.
int earlier_condition(struct condition *c, const char *sentence, struct err *err);
