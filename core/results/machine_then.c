// SPDX-License-Identifier: Apache-2.0
// The fingerprint is stored by its two hashes; both are read back here and compared by
// analysis/compare/fact_changes.h.
#include "core/results/machine_then.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare/fact_changes.h"
#include "analysis/compare/setup_change.h"
#include "base/cleanup.h"

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
    return *kept ? facts_from_json(out, *kept, err) : -1;
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

// 0: it is gone, and its hashes are empty.
static int machine_then_run(struct store *s, int64_t id, struct run *out, struct err *err)
{
    return store_run_get(s, id, out, err) < 0 && err->code != ERR_NOT_FOUND ? -1 : 0;
}

static int load_by_id(struct store *s, int64_t id, struct machine_then *out, struct err *err)
{
    struct run r CLEANUP(run_fini) = {0};
    return machine_then_run(s, id, &r, err) < 0 ? -1 : machine_then_load(s, &r, out, err);
}

int machine_then_write_changes_of(struct store *s, int64_t a, int64_t b, struct jsonw *w,
                                  const char *key, struct err *err)
{
    struct machine_then before CLEANUP(machine_then_fini) = {0};
    struct machine_then after CLEANUP(machine_then_fini) = {0};
    if (load_by_id(s, a, &before, err) < 0 || load_by_id(s, b, &after, err) < 0)
        return -1;
    return machine_then_write_changes(&before, &after, w, key, err);
}

int machine_then_differs(struct store *s, int64_t a, int64_t b, struct err *err)
{
    struct run before CLEANUP(run_fini) = {0}, after CLEANUP(run_fini) = {0};
    if (machine_then_run(s, a, &before, err) < 0 || machine_then_run(s, b, &after, err) < 0)
        return -1;
    const struct setup_hashes then = {before.class_hash, before.config_hash};
    const struct setup_hashes now = {after.class_hash, after.config_hash};
    return setup_hashes_differ(&then, &now);
}
