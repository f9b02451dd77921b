// SPDX-License-Identifier: Apache-2.0
// A page that ends the process that reads it: that of node3, and a whole run: each of node6. They
// stand for a fault that no one has found yet. The collector of these tests alone is linked with
// --wrap=summary_page_read and --wrap=fleet_whole_fill.
#include <stdlib.h>
#include <string.h>

#include "fleet/store/archive.h"
#include "model/summary.h"

int __real_summary_page_read(const struct json *document, struct summary_page *out,
                             struct err *err);
int __wrap_summary_page_read(const struct json *document, struct summary_page *out,
                             struct err *err);

int __wrap_summary_page_read(const struct json *document, struct summary_page *out, struct err *err)
{
    int rc = __real_summary_page_read(document, out, err);
    if (rc == 0 && strncmp(out->node, "node3", 6) == 0)
        abort();
    return rc;
}

int __real_fleet_whole_fill(struct fleet_whole *w, const char *body, size_t n, struct err *err);
int __wrap_fleet_whole_fill(struct fleet_whole *w, const char *body, size_t n, struct err *err);

int __wrap_fleet_whole_fill(struct fleet_whole *w, const char *body, size_t n, struct err *err)
{
    if (strcmp(w->node, "node6") == 0)
        abort();
    return __real_fleet_whole_fill(w, body, n, err);
}
