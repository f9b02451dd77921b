// SPDX-License-Identifier: Apache-2.0
// Whose nodes they are. The list is the text that came, cut in place; it is in memory only, because
// the collector sends it again to each process that stores.
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/store/parts.h"

void owners_fini(struct store_owners *o)
{
    buf_free(&o->text);
    free(o->list);
    *o = (struct store_owners){0};
}

static int owners_cut(struct store_owners *o, struct err *err)
{
    size_t lines = 0;
    for (size_t i = 0; i < o->text.len; i++)
        lines += o->text.data[i] == '\n';
    o->list = calloc(lines + 1, sizeof *o->list);
    if (!o->list || !buf_ok(&o->text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the nodes of the sources");
    char *rest = o->text.data;
    for (char *line; lines-- && (line = strsep(&rest, "\n"));) {
        const char *node = strsep(&line, "\t");
        if (!line || (o->n && strcmp(o->list[o->n - 1].node, node) >= 0))
            return err_set(err, ERR_INTERNAL, "", "the nodes of the sources are in a wrong order");
        o->list[o->n++] = (struct store_owner){node, line};
    }
    return 0;
}

int fleet_store_owners(struct fleet_store *s, const char *text, size_t n, struct err *err)
{
    struct store_owners made CLEANUP(owners_fini) = {0};
    buf_add(&made.text, text, n);
    if (owners_cut(&made, err) < 0)
        return -1;
    owners_fini(&s->owners);
    s->owners = made;
    made = (struct store_owners){0};
    return 0;
}

static int by_owned_node(const void *key, const void *entry)
{
    return strcmp(key, ((const struct store_owner *)entry)->node);
}

bool is_anothers(const struct fleet_store *s, const char *node, const char *collector)
{
    const struct store_owners *o = &s->owners;
    const struct store_owner *of =
        o->n ? bsearch(node, o->list, (size_t)o->n, sizeof *o->list, by_owned_node) : NULL;
    return of && strcmp(of->collector, collector) != 0;
}
