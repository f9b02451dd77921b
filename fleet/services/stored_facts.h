// SPDX-License-Identifier: Apache-2.0
// What a machine was, from the store.
#pragma once
#include "base/json.h"
#include "fleet/store/store.h"

// Names of the facts stay in *document, which the caller frees after them. A document that no node
// has sent yet gives no facts, and *document is NULL.
int stored_facts_read(struct fleet_store *store, const char *hash, struct facts *out,
                      struct json **document, struct err *err);
