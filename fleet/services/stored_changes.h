// SPDX-License-Identifier: Apache-2.0
// What differs between two machines whose facts are in the store.
#pragma once
#include "analysis/compare/setup_change.h"
#include "base/jsonw.h"
#include "fleet/store/store.h"

// The member "fact_changes"; null where a hash is not known, or its document is not here.
int stored_changes_write(struct fleet_store *store, const struct setup_hashes *a,
                         const struct setup_hashes *b, struct jsonw *w, struct err *err);
