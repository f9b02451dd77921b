// SPDX-License-Identifier: Apache-2.0
// Where the nodes of a fleet command come from: the command line, files, standard input, groups and
// Slurm.
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "model/nodeset.h"

// All texts are borrowed; "" or NULL: not given. The nodes of `nodes`, `hostfile` and `from_slurm`
// are joined; `idle` keeps those of them that are idle.
struct fleet_source {
    const char *nodes;         // a node set, "^FILE", or "-": standard input
    const char *hostfile;      // a file with a node set per line, '#' begins a comment; "-"
    const char *from_slurm;    // partitions, separated by commas; "*": all
    bool idle;                 // as Slurm sees it; without other sources, all idle nodes
    const char *groups_file;   // lines "NAME: SET"; one that does not exist is empty
    const char *group_command; // for other groups: words, each %s of which is the group's name
};

// *out: the nodes, each once, sorted. ERR_USAGE: no source is given. ERR_NOT_FOUND: there is no
// such group, or no node in the set. ERR_BUSY: no node is idle. ERR_INVALID names the file and the
// line. ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_TOO_LARGE: sinfo or the group command failed. `member` is
// the source at fault, by its name above.
int fleet_names(const struct fleet_source *q, struct nodeset *out, struct err *err);
// Calls fn for each group of the file whose name begins with `prefix`, with its nodes, sorted. A
// file that does not exist, or NULL or "", has none. Errors as above.
typedef void fleet_group_fn(void *ctx, const char *group, const struct nodeset *nodes);
int fleet_groups_each(const char *groups_file, const char *prefix, fleet_group_fn *fn, void *ctx,
                      struct err *err);

// ---- Sources of the collector: each by itself, with what it says about its nodes

enum source_kind {
    SOURCE_NODES,     // a node set, "^FILE"
    SOURCE_FILE,      // as hostfile; behind a set may stand url=URL and class=NAME
    SOURCE_SLURM,     // as from_slurm, with state and partitions
    SOURCE_SRV,       // a name of DNS, "_numaprobe._tcp.example"
    SOURCE_HTTP_SD,   // a URL that serves Prometheus's list of targets
    SOURCE_FILE_SD,   // a file with such a list
    SOURCE_ANNOUNCE,  // a token file: nodes that push (nodes/announced.h)
    SOURCE_COLLECTOR, // another collector (nodes/behind.h)
    SOURCE_KINDS
};

// Of "file:/etc/nodes", what stands behind the colon, and the kind. NULL and ERR_USAGE: there is no
// such kind, or source_check() fails.
const char *source_split(const char *text, enum source_kind *kind, struct err *err);
// Whether such a source can be read at all: `where` is a node set, a URL, a name of DNS,
// partitions. ERR_USAGE. What can be right later, such as what is in a file or a group,
// is not looked at.
int source_check(enum source_kind kind, const char *where, struct err *err);
// A command for groups has a program, then %s for the group, no quotes and not too many words.
// ERR_INVALID.
int source_command_check(const char *command, struct err *err);
// Appends lines (nodes/named.h) of the first three kinds; a node may have several. Of `groups` only
// groups_file and group_command count. Errors as fleet_names().
int source_named(enum source_kind kind, const char *where, const struct fleet_source *groups,
                 struct buf *out, struct err *err);
