// SPDX-License-Identifier: Apache-2.0
// What differs between two machines whose facts are in the store.
#pragma once
#include "base/jsonw.h"
#include "fleet/store/store.h"

struct stored_machine { // hashes of facts; "": not known
    const char *class_hash, *config_hash;
};

// The member "fact_changes", as far as the documents are here.
int stored_changes_write(struct fleet_store *store, const struct stored_machine *a,
                         const struct stored_machine *b, struct jsonw *w, struct err *err);
