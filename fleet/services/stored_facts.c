// SPDX-License-Identifier: Apache-2.0
// A hash without a document is nothing unusual: runs come first, facts a moment later.
#include "fleet/services/stored_facts.h"

#include "base/cleanup.h"

int stored_facts_read(struct fleet_store *store, const char *hash, struct facts *out,
                      struct json **document, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    out->n = 0;
    *document = NULL;
    if (fleet_store_document(store, hash, &text, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    *document = json_parse(text.data, text.len, err);
    return *document ? facts_from_json(out, *document, err) : -1;
}
