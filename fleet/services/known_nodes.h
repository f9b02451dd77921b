// SPDX-License-Identifier: Apache-2.0
// Whether any of the nodes that a request names is known, and else the name that is nearest. Of a
// set some may be unknown: the response is about the others.
#pragma once
#include "base/err.h"
#include "base/suggest.h"
#include "model/nodeset.h"

struct known_nodes {
    const struct nodeset *where; // sorted; borrowed
    bool any;
    struct suggestion near; // of a set of one name
};
void known_nodes_begin(struct known_nodes *k, const struct nodeset *where);
void known_nodes_add(struct known_nodes *k, const char *name); // it is known
// -1: ERR_NOT_FOUND, none was. `nothing` begins its text: "no source names".
int known_nodes_end(const struct known_nodes *k, const char *member, const char *nothing,
                    struct err *err);
