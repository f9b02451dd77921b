// SPDX-License-Identifier: Apache-2.0
// The nodes that Slurm has, by one call of sinfo.
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/nodeset.h"

// `partition`: names, separated by commas; "": all. Errors are those of nodes/program.h, and
// ERR_INVALID: it printed what no sinfo prints. ERR_NOT_FOUND: it lists no node of a partition that
// is named.

// Whether they can be the names of partitions; "*": all. ERR_INVALID.
int slurm_check(const char *partition, struct err *err);
// Adds the nodes that are not powered off, or those that are idle and respond.
int slurm_names(const char *partition, bool idle, struct nodeset *to, struct err *err);
// Appends a line (nodes/named.h) per node and partition, with the node's state and the reason why
// it is drained or down.
int slurm_named(const char *partition, struct buf *out, struct err *err);
