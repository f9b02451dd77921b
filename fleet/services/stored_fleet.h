// SPDX-License-Identifier: Apache-2.0
// The runs of many nodes from the store, with what is known of their machines, as analysis/peers
// takes them. In the process that reads.
#pragma once
#include "analysis/peers/fleet.h"
#include "fleet/store/store.h"
#include "http/messages/request.h"

enum { STORED_RUNS_MAX = 2000000 }; // for one response; with 30 metrics each they need 350 MB

// The nodes of ?where=; *out stays empty, and *given false, without it. ERR_INVALID ("where").
int where_read(const struct request *q, struct nodeset *out, bool *given, struct err *err);

// What of the store is wanted. NULL and an error; ERR_TOO_LARGE: more than STORED_RUNS_MAX runs.
struct fleet *stored_fleet_of(struct fleet_store *store, const struct fleet_options *o,
                              const struct fleet_window *w, struct err *err);
// The same for a request: `nodes` of the window is that of its ?where=.
struct fleet *stored_fleet_read(const struct request *q, const struct fleet_options *o,
                                const struct fleet_window *w, struct err *err);
