// SPDX-License-Identifier: Apache-2.0
// A node as a source names it, and the line of text that carries it from the process that reads the
// source: fields separated by tabs. Both ends check it, so a process that a hostile document has
// taken over can name nodes, and nothing else.
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum {
    NAMED_URL_MAX = 255,  // bytes
    NAMED_WORD_MAX = 127, // of each other field, also of a reason
};

#define ANNOUNCED_URL "push:" // the address of a node that pushes (nodes/announced.h)
#define HERE_URL "here:"      // that of this machine: as of others, with localhost for the name
// Before the address of a collector: that of a node behind it (nodes/behind.h).
#define BEHIND_URL "collector:"

// Texts are borrowed. NULL counts as "", not known.
struct named_node {
    const char *name;       // as nodeset_name_check() allows it
    const char *url;        // "https://%h:7443"; "//host:port": with the scheme of others;
                            // or one of those above
    const char *class_hint; // what an administrator calls its kind of machine
    const char *state;      // Slurm's: "idle", "mix~"
    const char *partitions; // Slurm's, separated by commas
    const char *reason;     // Slurm's, why it is drained or down; may have blanks
};

// Appends a line. ERR_INVALID: a field is too long or has bytes that are not printable ASCII.
int named_write(struct buf *out, const struct named_node *n, struct err *err);
// Cuts a line, without its end, into its fields. ERR_INVALID.
int named_read(struct named_node *out, char *line, struct err *err);
// Sorts lines by name and address. Lines of the same become one, with the partitions of all. A node
// has several only if they name several addresses.
int named_sort(struct buf *lines, struct err *err);
