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
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    NODESET_NAMES_MAX = 65536, // in a set
    // Of a `where`: nodeset_parse_members() takes 3 to 9 ms of a loop, the longer the names are,
    // and to look up 10,000 short or 65,536 long names of a fleet 1 to 8 (tests/perf).
    NODESET_MEMBERS_MAX = 32768,
    NODESET_NAME_ROOM = 64,   // bytes, with the NUL: as in struct run
    NODESET_TEXT_MAX = 65536, // bytes of a text that is parsed
};

// Zeroed: empty. nodeset_free() leaves it so.
struct nodeset {
    int n;
    char (*names)[NODESET_NAME_ROOM]; // owned
    int room;                         // names allocated
    uint32_t *slots;                  // owned: index + 1 of a name, by its hash; NULL: sorted
    uint32_t n_slots;
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
// The same in no order and without groups, of a client that may be hostile, for nodeset_has(): its
// operands have `names_max` names together, also those that are removed again.
int nodeset_parse_members(struct nodeset *out, const char *text, int names_max, struct err *err);
// Whether a text that nodeset_parse() takes names a node. No name is made, so it takes as long as
// reading the text. Of other texts it is not said which names count.
bool nodeset_text_has(const char *text, const char *name);
// Appends a name, if it is not there. ERR_INVALID: it is none, or the set is full.
int nodeset_add(struct nodeset *s, const char *name, struct err *err);
// After nodeset_add() or nodeset_parse_members(): in the order of a parsed set.
void nodeset_sort(struct nodeset *s);
bool nodeset_has(const struct nodeset *s, const char *name);
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
