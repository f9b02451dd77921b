// SPDX-License-Identifier: Apache-2.0
// hwloc can change a value but not remove one, and a value of the firmware for several nodes would
// hide ours for one of them. So the firmware's elements are removed from the text first.
#include "core/node/hwloc_measured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/os/child.h"

enum {
    ANNOTATE_MS = 5000,       // 256 nodes with all pairs take 0.3 s
    ANNOTATED_MAX = 32 << 20, // address space only, until it is written to
};

enum { DONE, REFUSED };

struct annotated {
    struct err err;
    char xml[ANNOTATED_MAX];
};

struct annotating {
    struct annotated *shared;
    const char *xml;
    const struct probe_annotations *with;
};

static void remove_attribute(char *xml, const char *name)
{
    static const char end[] = "</memattr>";
    char start[80];
    snprintf(start, sizeof start, "<memattr name=\"%s\"", name);
    char *from = strstr(xml, start), *to = from ? strstr(from, end) : NULL;
    if (!to)
        return;
    to += sizeof end - 1;
    memmove(from, to, strlen(to) + 1);
}

static int annotate(void *arg)
{
    const struct annotating *a = arg;
    struct annotated *s = a->shared;
    char *xml = strdup(a->xml), *out; // go with the process
    if (!xml) {
        err_set(&s->err, ERR_NO_MEMORY, "", "no memory for the topology");
        return REFUSED;
    }
    for (int i = 0; i < a->with->n_attributes; i++)
        remove_attribute(xml, a->with->attributes[i].name);
    if (probe_topology_annotate(xml, a->with, &out, &s->err) < 0)
        return REFUSED;
    size_t n = strlen(out);
    if (n >= sizeof s->xml) {
        err_set(&s->err, ERR_INTERNAL, "", "the topology has more than %d bytes", ANNOTATED_MAX);
        return REFUSED;
    }
    memcpy(s->xml, out, n + 1);
    return DONE;
}

int probe_topology_annotated(const char *xml, const struct probe_annotations *with, char **out,
                             struct err *err)
{
    struct annotated *s = child_share(sizeof *s);
    struct annotating a = {s, xml, with};
    if (!s)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the topology");
    int rc = child_run(annotate, &a, ANNOTATE_MS, err);
    if (rc == REFUSED)
        rc = err_set(err, s->err.code ? s->err.code : ERR_INTERNAL, "", "%.*s",
                     (int)sizeof s->err.text - 1, s->err.text);
    if (rc == DONE && !(*out = strdup(s->xml)))
        rc = err_set(err, ERR_NO_MEMORY, "", "no memory for the topology");
    child_unshare(s, sizeof *s);
    return rc;
}
