// SPDX-License-Identifier: Apache-2.0
// A page that ends the process that reads it: that of node3. It stands for a fault that no one has
// found yet. The collector of this test alone is linked with --wrap=summary_page_read.
#include <stdlib.h>
#include <string.h>

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
