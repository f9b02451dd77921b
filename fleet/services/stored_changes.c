// SPDX-License-Identifier: Apache-2.0
// Documents are read only where the hashes differ: equal ones have no changes.
#include "fleet/services/stored_changes.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"
#include "fleet/services/stored_facts.h"

int stored_changes_write(struct fleet_store *store, const struct setup_hashes *a,
                         const struct setup_hashes *b, struct jsonw *w, struct err *err)
{
    struct {
        struct fingerprint a, b;
        struct changes changes;
    } *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    bool class = strcmp(a->class_hash, b->class_hash) != 0;
    bool config = strcmp(a->config_hash, b->config_hash) != 0;
    const struct {
        bool differs;
        const char *hash;
        struct facts *facts;
    } wanted[] = {{class, a->class_hash, &m->a.machine_class},
                  {class, b->class_hash, &m->b.machine_class},
                  {config, a->config_hash, &m->a.config},
                  {config, b->config_hash, &m->b.config}};
    struct json *documents[COUNT_OF(wanted)] = {0};
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(wanted) && rc == 0; i++)
        if (wanted[i].differs)
            rc = stored_facts_read(store, wanted[i].hash, wanted[i].facts, &documents[i], err);
    if (rc == 0) {
        changes_find(&m->changes, &m->a, &m->b);
        changes_write_json(&m->changes, w, "fact_changes");
    }
    for (size_t i = 0; i < COUNT_OF(documents); i++)
        json_free(documents[i]);
    free(m);
    return rc;
}
