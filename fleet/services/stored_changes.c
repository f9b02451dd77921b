// SPDX-License-Identifier: Apache-2.0
// A collector may have a hash before the facts themselves: then nothing is said of what changed.
#include "fleet/services/stored_changes.h"

#include "fleet/services/stored_facts.h"

static int stored_changes_read(void *ctx, const char *hash, struct facts *out,
                               struct json **document, struct err *err)
{
    return stored_facts_read(ctx, hash, out, document, err);
}

int stored_changes_write(struct fleet_store *store, const struct setup_hashes *a,
                         const struct setup_hashes *b, struct jsonw *w, struct err *err)
{
    return setup_changes_write_json(a, b, stored_changes_read, store, w, "fact_changes", err);
}
