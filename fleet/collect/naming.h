// SPDX-License-Identifier: Apache-2.0
// Which nodes there are: the union of what the sources name. Each source is read again every few
// minutes by a child of its own (naming_main.h), because Slurm and groups are other programs, and
// lists come from the network. A source that fails keeps its last word. A list with fewer than half
// of the nodes of the one before, however many others it names, is believed when the next one
// agrees with it: a source that lost its file, or has that of another cluster, must not end the
// history of a fleet.
#pragma once
#include "core/os/loop.h"
#include "fleet/settings/config.h"
#include "nodes/named.h"

enum {
    NAMING_EVERY_MS = 300 * 1000,
    NAMING_AGAIN_MS = 60 * 1000, // after a failure, and to confirm that half of the nodes are gone
    NAMING_LIMIT_MS = 60 * 1000, // a reading; sinfo has 10 s, a list from the network 20 s
    NAMING_NODES_MAX = 65536,    // of all sources
    NAMING_BYTES_MAX = NAMING_NODES_MAX * 256, // of a source
    NAMING_TEXT = 200,
    NAMING_SLURM_MS = 3 * NAMING_EVERY_MS, // then what Slurm said counts as not known
};

// A node with what the sources say about it. Of what several say, the first that says something
// counts.
struct naming_node {
    struct named_node said;
    const char *other_url; // that another source, or another line, names; "": none
    uint32_t sources;      // bit i: source i names it
};

struct naming;
// `named` is called each time that a source could be read, with the nodes of all, sorted by name
// and borrowed. whole: each source has been read since the start. A source that says what it said
// before is not passed on again, unless `named` returned false.
typedef bool naming_fn(void *ctx, const struct naming_node *nodes, int n, bool whole);
struct naming *naming_new(struct loop *loop, const struct fleetd_config *c, naming_fn *named,
                          void *ctx, struct err *err);
void naming_free(struct naming *n);  // NULL is fine
void naming_again(struct naming *n); // now

struct naming_source {
    const char *source;        // "file:/etc/nodes"
    int nodes;                 // of the last list that was believed
    int64_t read_ms;           // when that was read, UTC; 0: never
    int64_t read_mono_ms;      // the same moment, monotonic
    char problem[NAMING_TEXT]; // why it could not be read, or is not believed; "": it was
};
// Borrowed. NULL: there are fewer.
const struct naming_source *naming_source_at(const struct naming *n, int i);
// Of the sources of Slurm the one whose list was read longest ago. NULL: there is none, or one of
// them was never read.
const struct naming_source *naming_slurm(const struct naming *n);
bool naming_slurm_known(const struct naming *n); // that is not long ago
// A source is read for the first time: whether there is a node is not known yet.
bool naming_begins(const struct naming *n);
// Of the source "announce"; "": none. NULL: there is no such source.
const char *naming_announce_problem(const struct naming *n);
// The problem of the first source that has one; "": none has.
const char *naming_problem(const struct naming *n);
