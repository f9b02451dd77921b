// SPDX-License-Identifier: Apache-2.0
// An empty set names no node, and is what it is: nothing of it can be unknown.
#include "fleet/services/known_nodes.h"

void known_nodes_begin(struct known_nodes *k, const struct nodeset *where)
{
    *k = (struct known_nodes){.where = where, .any = !where->n};
    k->near = SUGGESTION_FOR(where->n == 1 ? where->names[0] : "");
}

void known_nodes_add(struct known_nodes *k, const char *name)
{
    k->any = k->any || nodeset_has(k->where, name);
    if (!k->any && k->where->n == 1)
        suggest_consider(&k->near, name);
}

int known_nodes_end(const struct known_nodes *k, const char *member, const char *nothing,
                    struct err *err)
{
    char hint[SUGGEST_TEXT_ROOM];
    if (k->any)
        return 0;
    if (k->where->n > 1)
        return err_set(err, ERR_NOT_FOUND, member, "%s these nodes", nothing);
    return err_set(err, ERR_NOT_FOUND, member, "%s \"%.63s\"%s", nothing, k->near.typed,
                   suggest_text(&k->near, "", hint, sizeof hint));
}
