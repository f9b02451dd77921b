// SPDX-License-Identifier: Apache-2.0
#include "api/resources/machine_then.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"

void past_fini(struct past *p)
{
    free(p->fingerprint);
    json_free(p->class_json);
    json_free(p->config_json);
    *p = (struct past){0};
}

static int load_facts(const struct api_services *api, const char *hash, struct json **kept,
                      struct facts *out, struct err *err)
{
    CLEANUP_MEM char *text = NULL;
    if (store_fingerprint_json(api->store, hash, &text, err) < 0)
        return -1;
    *kept = json_parse(text, strlen(text), err);
    return *kept ? facts_from_json(out, *kept, err) : -1;
}

int past_load(const struct api_services *api, const struct run *r, struct past *out,
              struct err *err)
{
    struct past p CLEANUP(past_fini) = {0};
    if (*r->class_hash && *r->config_hash) {
        p.fingerprint = calloc(1, sizeof *p.fingerprint);
        if (!p.fingerprint)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a fingerprint");
        if (load_facts(api, r->class_hash, &p.class_json, &p.fingerprint->machine_class, err) < 0 ||
            load_facts(api, r->config_hash, &p.config_json, &p.fingerprint->config, err) < 0)
            return -1;
    }
    *out = p;
    p = (struct past){0};
    return 0;
}

int past_write_changes(const struct past *a, const struct past *b, struct jsonw *w, const char *key,
                       struct err *err)
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

static int load_by_id(const struct api_services *api, int64_t id, struct past *out, struct err *err)
{
    struct run r CLEANUP(run_fini) = {0};
    if (store_run_get(api->store, id, &r, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return past_load(api, &r, out, err);
}

int past_write_changes_of(const struct api_services *api, int64_t a, int64_t b, struct jsonw *w,
                          const char *key, struct err *err)
{
    struct past before CLEANUP(past_fini) = {0};
    struct past after CLEANUP(past_fini) = {0};
    if (load_by_id(api, a, &before, err) < 0 || load_by_id(api, b, &after, err) < 0)
        return -1;
    return past_write_changes(&before, &after, w, key, err);
}
