// SPDX-License-Identifier: Apache-2.0
// Which nodes there are, read again from the sources every few minutes. A child reads them, because
// groups and Slurm are other programs that may take their time.
#pragma once
#include "core/os/loop.h"
#include "fleet/settings/config.h"

enum {
    NAMING_EVERY_MS = 300 * 1000,
    NAMING_AGAIN_MS = 60 * 1000, // after a failure, and to confirm that half of the nodes are gone
    NAMING_BYTES_MAX = NODESET_NAMES_MAX * NODESET_NAME_ROOM,
};

struct naming;
// `named` is called with what the sources name, each time that they could be read. A list with
// fewer than half of the nodes of the one before is believed when the next one agrees with it: a
// source that lost its file must not end the history of a fleet.
typedef void naming_fn(void *ctx, const struct nodeset *nodes);
struct naming *naming_new(struct loop *loop, const struct fleetd_config *c, naming_fn *named,
                          void *ctx, struct err *err);
void naming_free(struct naming *n);  // NULL is fine
void naming_again(struct naming *n); // now
// Why the sources could not be read, or are not believed; "": they were.
const char *naming_problem(const struct naming *n);
