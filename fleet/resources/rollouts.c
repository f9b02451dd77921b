// SPDX-License-Identifier: Apache-2.0
// Which set-ups changed, and what that did: as `numaprobe fleet effect` finds it, from the runs of
// a stretch of time. In the process that reads.
#include "analysis/peers/rollouts.h"

#include <stdlib.h>

#include "analysis/peers/fleet.h"
#include "analysis/peers/fleet_effect.h"
#include "analysis/peers/fleet_json.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/resources/resources.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_facts.h"
#include "fleet/services/stored_fleet.h"

enum {
    STRETCH_RUNS_MAX = 1500, // of a node and kind: an hourly run of 60 days, and room
    ROLLOUTS_LIMIT = 100,    // listed, unless the request says another number
    ROLLOUTS_LIMIT_MAX = 1000,
};

static int read_stretch(const struct request *q, int64_t *since, int64_t *until, struct err *err)
{
    *since = *until = 0;
    if (stretch_read(q, since, until, err) < 0)
        return -1;
    *since = stretch_begins(q, *since, *until);
    return 0;
}

// ---- GET /v1/fleet/effect -----------------------------------------------------------------------

int fleetd_effect(struct request *q, struct reply *r, struct err *err)
{
    const char *fact = request_query(q, "fact");
    struct fleet_options o = FLEET_DEFAULTS;
    struct fleet_window w = {.values_only = true};
    struct fleet_effect e = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw out = jsonw_to(&body);
    if (!fact || !*fact)
        return err_set(err, ERR_INVALID, "fact", "must be a fact of the set-up, such as microcode");
    if (read_stretch(q, &w.since_ms, &w.until_ms, err) < 0)
        return -1;
    o.now_ms = clock_wall_ms();
    o.runs_max = STRETCH_RUNS_MAX;
    CLEANUP_FLEET struct fleet *f = stored_fleet_read(q, &o, &w, err);
    if (!f ||
        fleet_effect_find(&e, f, fact, request_query(q, "from"), request_query(q, "to"), err) < 0)
        return -1;
    jsonw_object(&out, NULL);
    fleet_effect_write_json(&e, &out);
    jsonw_end(&out);
    fleet_effect_fini(&e);
    return reply_json(r, 200, &body, err);
}

// ---- GET /v1/fleet/rollouts ---------------------------------------------------------------------

static int add_setup(void *ctx, const struct fleet_store_setup *p, struct err *err)
{
    return setups_add(ctx, p->node, p->config_hash, p->from_ms, err);
}

static int read_setups(const struct request *q, struct setups *s, struct err *err)
{
    struct fleet_store *store = fleet_of(q)->store;
    CLEANUP_NODESET struct nodeset where = {0};
    CLEANUP_MEM struct facts *facts = malloc(sizeof *facts);
    bool given;
    if (!facts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    if (where_read(q, &where, &given, err) < 0 ||
        fleet_store_setups(store, given ? &where : NULL, add_setup, s, err) < 0)
        return -1;
    if (given && !s->n)
        return where_has_none(err);
    const char *hash;
    for (int at = 0; (hash = setups_facts_wanted(s, &at));) {
        CLEANUP_JSON struct json *document = NULL;
        if (stored_facts_read(store, hash, facts, &document, err) < 0 ||
            (document && setups_add_facts(s, facts, err) < 0))
            return -1;
    }
    return 0;
}

int fleetd_rollouts(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_SETUPS struct setups s = {0};
    CLEANUP_ROLLOUTS struct rollouts found = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    int64_t since, until, limit = ROLLOUTS_LIMIT;
    const char *fact = request_query(q, "fact");
    if (read_stretch(q, &since, &until, err) < 0 ||
        request_query_int(q, "limit", 1, ROLLOUTS_LIMIT_MAX, &limit, err) < 0 ||
        read_setups(q, &s, err) < 0)
        return -1;
    if (fact && fleet_facts_check(s.facts, s.facts ? s.configs.n : 0, fact, err) < 0)
        return -1;
    if (rollouts_find(&found, &s, since, until, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    jsonw_time(&w, "since", since);
    jsonw_time(&w, "until", until);
    rollouts_write_json(&found, &s, fact, (int)limit, &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}
