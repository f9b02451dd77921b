// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet reference: writes what each class of hardware does, to judge a single node by:
// numaprobe check --reference=FILE.
#include <stdio.h>

#include "analysis/peers/class_reference.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

int cmd_fleet_reference(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    struct class_reference r = {0};
    (void)i;
    if (c->output == OUTPUT_CSV)
        return err_set(err, ERR_USAGE, "",
                       "fleet reference writes JSON, not csv; fleet ranking has a metric of each "
                       "node as csv");
    if (gather_all(&g, c, GATHER_ALL_RUNS, err) < 0)
        return -1;
    if (gather_is_empty(&g))
        return gather_end(&g, CLI_EXIT_INCONCLUSIVE);
    if (class_reference_make(&r, g.fleet, err) < 0) {
        gather_end(&g, 0);
        return -1;
    }
    jsonw_object(&w, NULL);
    class_reference_write_json(&r, &w);
    gather_write_missing(&g, &w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
    if (!r.n)
        fprintf(stderr,
                "numaprobe: no class has %d nodes with enough runs: the reference is empty\n",
                REFERENCE_NODES_MIN);
    int status = r.n ? CLI_EXIT_SUCCESS : CLI_EXIT_INCONCLUSIVE;
    class_reference_fini(&r);
    return gather_end(&g, status);
}
