// SPDX-License-Identifier: Apache-2.0
// Which facts of the set-up changed on which nodes, and when: a change of one value to another is a
// rollout, and the nodes on which it happened on one day are a wave. What it did to the metrics is
// the question of analysis/peers/fleet_effect.h. Pure.
//
//     struct setups s = {0};
//     setups_add(&s, node, config_hash, from_ms, &err);   // of each node in order of time
//     setups_add_facts(&s, facts, &err);                  // documents of setups_facts_wanted()
//     rollouts_find(&list, &s, since_ms, until_ms, &err);
#pragma once
#include "analysis/peers/fleet.h"
#include "base/jsonw.h"

struct setup_step {
    int node, config;
    int64_t from_ms; // the first run with it
};
struct setups { // {0} is empty
    struct interned nodes, configs;
    int n, room, facts_room;
    struct setup_step *list;   // owned
    struct fleet_facts *facts; // [config]; owned
};
int setups_add(struct setups *s, const char *node, const char *config, int64_t from_ms,
               struct err *err);
const char *setups_facts_wanted(const struct setups *s, int *at); // as fleet_facts_wanted()
int setups_add_facts(struct setups *s, const struct facts *facts, struct err *err);
void setups_fini(struct setups *s);
#define CLEANUP_SETUPS CLEANUP(setups_fini)

struct rollout_change {
    int64_t at_ms;
    int node;
};
struct rollout {
    const char *fact, *from, *to; // borrowed; from or to NULL: the fact was not there
    int n;                        // nodes that changed
    struct rollout_change *list;  // in order of time; owned
    int remaining;                // nodes that have `from` now
    int reverted;                 // nodes that changed, and have another value than `to` now
};
struct rollouts {
    int n;
    struct rollout *list; // those on most nodes first, then the newest; owned
};

enum {
    ROLLOUT_WAVES_MAX = 400,  // days that are written of a rollout, the newest
    ROLLOUT_NAMES_MAX = 4096, // bytes of a wave's folded names; longer ones are not written
};

// Changes in [since_ms, until_ms); until 0: no end. Of set-ups whose facts are not here nothing is
// known. ERR_NO_MEMORY is the only error. `s` must outlive *out.
int rollouts_find(struct rollouts *out, const struct setups *s, int64_t since_ms, int64_t until_ms,
                  struct err *err);
// At most `limit` of them, and only those of `fact` (NULL: of all): the members "rollouts" and
// "left_out".
void rollouts_write_json(const struct rollouts *r, const struct setups *s, const char *fact,
                         int limit, struct jsonw *w);
void rollouts_fini(struct rollouts *r);
#define CLEANUP_ROLLOUTS CLEANUP(rollouts_fini)
