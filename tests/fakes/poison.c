// SPDX-License-Identifier: Apache-2.0
// A page that ends the process that reads it: that of node3, and a whole run: each of node6. They
// stand for a fault that no one has found yet. Its clock is as many milliseconds ahead as the file
// $POISON_CLOCK says. The collector of these tests alone is linked with --wrap=summary_page_read,
// --wrap=fleet_whole_fill and --wrap=clock_wall_ms.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

int64_t __wrap_clock_wall_ms(void)
{
    const char *path = getenv("POISON_CLOCK");
    FILE *f = path ? fopen(path, "re") : NULL;
    long long ahead_ms = 0;
    if (f && fscanf(f, "%lld", &ahead_ms) != 1)
        ahead_ms = 0;
    if (f)
        fclose(f);
    return __real_clock_wall_ms() + ahead_ms;
}
