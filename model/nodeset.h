// SPDX-License-Identifier: Apache-2.0
// Sets of node names as text, in the grammar that ClusterShell and Slurm share. Pure.
//
//   n[001-128,200]  n[0-100/10]  r[1-2]n[01-04]-ib     ranges, steps, padding, several brackets
//   a,b  a b        union                              operators are applied from left to right
//   a!b             without        a&b  both           a^b  either, but not both
//   @group          what the caller's function knows by this name; it may hold groups again
//
// Names come out as they were written: n[08-10]5 is n085, n095 and n105. No name begins with '-'
// or '.': none can be an option of a program, a hidden file, or a folder in the path of a URL.
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    NODESET_NAMES_MAX = 65536, // in a set
    NODESET_NAME_ROOM = 64,    // bytes, with the NUL: as in struct run
    NODESET_TEXT_MAX = 65536,  // bytes of a text that is parsed
};

// Zeroed: empty. nodeset_free() leaves it so.
struct nodeset {
    int n;
    char (*names)[NODESET_NAME_ROOM]; // owned
    int room;                         // names allocated
    int sorted;                       // so many are, when nodeset_sort() was called
};

// Appends the node set of a group, as text, to `out`. `group`: letters, digits and ._-:* alone, no
// '-' first, less than NODESET_NAME_ROOM bytes.
struct nodeset_groups {
    int (*find)(void *ctx, const char *group, struct buf *out, struct err *err);
    void *ctx;
};

void nodeset_free(struct nodeset *s); // also a cleanup function
#define CLEANUP_NODESET CLEANUP(nodeset_free)

// *out: each name once, in the order of ClusterShell: by the text around the numbers, then by the
// numbers, shorter ones first. The empty text is the empty set. groups NULL: there are none.
// ERR_INVALID: member "nodes", the text states the place, what is wrong there, and what is allowed.
int nodeset_parse(struct nodeset *out, const char *text, const struct nodeset_groups *groups,
                  struct err *err);
// Appends a name. It may be there already, until nodeset_sort() or NODESET_NAMES_MAX.
// ERR_INVALID: it is none, or the set is full.
int nodeset_add(struct nodeset *s, const char *name, struct err *err);
// After nodeset_add(): each name once, in the order of a parsed set.
void nodeset_sort(struct nodeset *s);
bool nodeset_has(const struct nodeset *s, const char *name); // the set is sorted
int nodeset_find(const struct nodeset *s, const char *name); // its place in it; -1: none
// A name that a node may have, however it comes. ERR_INVALID: member "nodes", this text.
#define NODESET_NAME_RULE                                                                          \
    "a node name has 1 to 63 letters, digits, '.', '-' and '_', and does not begin with '-' or "   \
    "'.'"
int nodeset_name_check(const char *name, struct err *err);
// The order of the names in a parsed set, as qsort's function.
int nodeset_name_order(const char *a, const char *b);

// Appends the set as the shortest text that `nodeset -f` of ClusterShell would print: each name
// once, numbers in brackets, in all places of a name. Names that cannot be folded cost no more than
// sorting them.
void nodeset_fold(const struct nodeset *s, struct buf *out);
