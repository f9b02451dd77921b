// SPDX-License-Identifier: Apache-2.0
// What fleet commands with -o json print and what the collector responds with: one document for
// both. Each writes the members of an object, to which the caller adds what it knows besides. Pure.
#pragma once
#include "analysis/peers/fleet_effect.h"
#include "analysis/peers/fleet_sides.h"
#include "analysis/peers/fleet_view.h"
#include "base/jsonw.h"

void fleet_effect_write_json(const struct fleet_effect *e, struct jsonw *w);

// Which nodes of a ranking are written.
struct fleet_ranking_part {
    bool best; // the best ones first
    int limit;
};
void fleet_ranking_write_json(const struct fleet_ranking *r, const struct fleet_view *v,
                              const struct fleet_ranking_part *part, struct jsonw *w);
void fleet_shares_write_json(const struct fleet_shares *s, const struct fleet_view *v, int metric,
                             const char *fact, struct jsonw *w);
void fleet_sides_write_json(const struct fleet_sides *s, struct jsonw *w);
