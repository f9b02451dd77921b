// SPDX-License-Identifier: Apache-2.0
// The fingerprint is stored by its two hashes; both are read back here and compared by
// analysis/compare/fact_changes.h.
#include "core/results/machine_then.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"
#include "core/store/unreadable.h"

void machine_then_fini(struct machine_then *p)
{
    free(p->fingerprint);
    json_free(p->class_json);
    json_free(p->config_json);
    *p = (struct machine_then){0};
}

static int load_facts(struct store *s, const char *hash, struct json **kept, struct facts *out,
                      struct err *err)
{
    CLEANUP_MEM char *text = NULL;
    if (store_fingerprint_json(s, hash, &text, err) < 0)
        return -1;
    *kept = json_parse(text, strlen(text), err);
    if (*kept && facts_from_json(out, *kept, err) == 0)
        return 0;
    return store_unreadable(err, "the stored facts %.12s cannot be read", hash);
}

int machine_then_load(struct store *s, const struct run *r, struct machine_then *out,
                      struct err *err)
{
    struct machine_then p CLEANUP(machine_then_fini) = {0};
    if (*r->class_hash && *r->config_hash) {
        p.fingerprint = calloc(1, sizeof *p.fingerprint);
        if (!p.fingerprint)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a fingerprint");
        if (load_facts(s, r->class_hash, &p.class_json, &p.fingerprint->machine_class, err) < 0 ||
            load_facts(s, r->config_hash, &p.config_json, &p.fingerprint->config, err) < 0)
            return -1;
    }
    *out = p;
    p = (struct machine_then){0};
    return 0;
}

int machine_then_write_changes(const struct machine_then *a, const struct machine_then *b,
                               struct jsonw *w, const char *key, struct err *err)
{
    CLEANUP_MEM struct changes *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for changes");
    if (!a->fingerprint || !b->fingerprint) {
        jsonw_null(w, key);
        return 0;
    }
    changes_find(c, a->fingerprint, b->fingerprint);
    changes_write_json(c, w, key);
    return 0;
}

// Facts that cannot be read are not known: a history shows its points all the same.
static int machine_then_read(void *ctx, const char *hash, struct facts *out, struct json **document,
                             struct err *err)
{
    struct err why = {0};
    if (load_facts(ctx, hash, document, out, &why) == 0)
        return 0;
    json_free(*document);
    *document = NULL;
    if (store_of_one_run(&why))
        return 0;
    *err = why;
    return -1;
}

int machine_then_write_setups(struct store *s, const struct setup_hashes *a,
                              const struct setup_hashes *b, struct jsonw *w, const char *key,
                              struct err *err)
{
    return setup_changes_write_json(a, b, machine_then_read, s, w, key, err);
}
