// SPDX-License-Identifier: Apache-2.0
// The parameter `form` is that of a node, so that a client requests the same of both.
#include "fleet/services/own_pages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/run.h"

void own_page_head(struct summary_page *head)
{
    struct err err;
    if (gethostname(head->node, sizeof head->node - 1) < 0 || run_node_check(head->node, &err) < 0)
        snprintf(head->node, sizeof head->node, "collector");
    snprintf(head->version, sizeof head->version, "%s", NUMAPROBE_VERSION);
}

int own_page_form(const struct request *q, struct err *err)
{
    const char *form = request_query(q, "form");
    return !form || strcmp(form, "summary") == 0
               ? 0
               : err_set(err, ERR_INVALID, "form",
                         "must be summary; whole runs are on their nodes");
}
