// SPDX-License-Identifier: Apache-2.0
// Documents that earlier versions of numaprobe exported: what their members were called, and what
// their conditions, which were sentences, are now. Everything else of the program knows the names
// of today only.
#pragma once
#include "base/json.h"
#include "model/condition.h"

// Members get the names of today.
void earlier_names(struct json *document);
// The other way, for a text of JSON that we wrote: keys of stored imports are hashes of the names
// that members had first, without members that nothing is known of.
void earlier_text(const char *json, struct buf *out);

// The kind and rank that a sentence names, and its text without them. ERR_INVALID: it is longer
// than any that was written.
int earlier_condition(struct condition *c, const char *sentence, struct err *err);
