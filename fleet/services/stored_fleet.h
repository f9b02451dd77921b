// SPDX-License-Identifier: Apache-2.0
// The runs of many nodes from the store, with what is known of their machines, as analysis/peers
// takes them. In the process that reads.
#pragma once
#include "analysis/peers/fleet.h"
#include "fleet/store/store.h"
#include "http/messages/request.h"

enum {
    STORED_RUNS_MAX = 2000000, // for one response; with 30 metrics each they need 350 MB
    STORED_WINDOW_DAYS_MAX = 3650,
};

// The nodes of ?where=; *out stays empty, and *given false, without it. ERR_INVALID ("where"); a
// set of no nodes is one, which a script sends whose variable is empty.
int where_read(const struct request *q, struct nodeset *out, bool *given, struct err *err);

int where_has_none(struct err *err); // ERR_NOT_FOUND ("where"): of them nothing is stored
enum { NODES_FOLLOWED = 1 };         // hint of a request: the sources name one of its nodes, or may
// ERR_NOT_FOUND (`member`): none of these nodes ever came to the store, and they are not followed;
// with the nearest name.
int where_is_stored(const struct request *q, const struct nodeset *where, const char *member,
                    struct err *err);
// ?since= and ?until=, which stay as they are where they are not given; until 0: now.
// ERR_INVALID ("since"): the stretch is empty.
int stretch_read(const struct request *q, int64_t *since_ms, int64_t *until_ms, struct err *err);
// Where a stretch that was read begins if without ?since= it is the last 60 days until its end.
int64_t stretch_begins(const struct request *q, int64_t since_ms, int64_t until_ms);

// The newest runs of all nodes, as old as ?window_days= allows, whatever ?where= names: what the
// peers of a node are does not depend on who asks. ?class=: of its nodes alone. NULL and an error.
struct fleet *stored_fleet_newest(const struct request *q, struct err *err);
// What of the store is wanted. NULL and an error; ERR_TOO_LARGE: more than STORED_RUNS_MAX runs.
struct fleet *stored_fleet_of(struct fleet_store *store, const struct fleet_options *o,
                              const struct fleet_window *w, struct err *err);
// The same for a request: `nodes` of the window is that of its ?where=. ERR_NOT_FOUND ("where"): no
// run of them is in the window.
struct fleet *stored_fleet_read(const struct request *q, const struct fleet_options *o,
                                const struct fleet_window *w, struct err *err);
