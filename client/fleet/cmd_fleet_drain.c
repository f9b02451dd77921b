// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet drain: prints the scontrol lines that take slow nodes out of service. It executes
// nothing. Which nodes these are says analysis/peers/drain.h, as in the collector.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/drain.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"
#include "nodes/named.h"
#include "nodes/slurm.h"

struct slurm_reasons {
    struct buf lines;  // of sinfo; the reasons are in it
    const char **list; // [node of the fleet], as drain_plan_make() takes them; owned
    bool known;
};

static void slurm_reasons_fini(struct slurm_reasons *r)
{
    buf_free(&r->lines);
    free(r->list);
}

static int reasons_of_sinfo(struct slurm_reasons *r, const struct fleet *f, struct err *err)
{
    struct named_node n;
    if (slurm_named("", &r->lines, err) < 0)
        return -1;
    char *rest = r->lines.len ? r->lines.data : NULL;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (named_read(&n, line, err) < 0)
            return -1;
        int node = interned_find(&f->nodes, n.name);
        if (node >= 0 && !(r->list[node] && *r->list[node]))
            r->list[node] = n.reason;
    }
    r->known = true;
    return 0;
}

// Where there is no sinfo: what the collector knows of Slurm.
static void reasons_of_collector(struct slurm_reasons *r, const struct gather *g)
{
    for (int i = 0; g->known && i < g->names.n; i++) {
        int node = interned_find(&g->fleet->nodes, g->names.names[i]);
        r->known |= g->known[i].in_slurm;
        if (node >= 0 && g->known[i].in_slurm)
            r->list[node] = g->known[i].slurm_reason;
    }
}

static int read_reasons(struct slurm_reasons *r, const struct gather *g, struct err *err)
{
    struct err why = {0};
    r->list = calloc((size_t)g->fleet->nodes.n + 1, sizeof *r->list);
    if (!r->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", g->fleet->nodes.n);
    if (reasons_of_sinfo(r, g->fleet, &why) < 0)
        reasons_of_collector(r, g);
    if (!r->known)
        fprintf(stderr,
                "numaprobe: nothing is suggested, because what others have drained is not known: "
                "%s\n",
                why.text);
    return 0;
}

static void drain_print(const struct cli *c, struct gather *g, const struct drain_plan *p)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    if (c->output == OUTPUT_TABLE) {
        drain_write_lines(p, g->fleet, INT_MAX, &text);
    } else {
        jsonw_object(&w, NULL);
        gather_write_json(g, &w);
        drain_write_json(p, g->fleet, INT_MAX, &w, "drain");
        jsonw_end(&w);
        buf_char(&text, '\n');
    }
    print_buf(&text);
}

static int drain_gathered(const struct cli *c, struct gather *g, struct err *err)
{
    struct slurm_reasons reasons CLEANUP(slurm_reasons_fini) = {0};
    struct fleet_findings list = {0};
    struct drain_plan plan = {0};
    if (fleet_findings_find(&list, g->fleet, err) < 0)
        return -1;
    int rc = read_reasons(&reasons, g, err);
    if (rc == 0)
        rc = drain_plan_make(&plan, g->fleet, &list, reasons.known ? reasons.list : NULL, err);
    if (rc == 0)
        drain_print(c, g, &plan);
    int verdict = !reasons.known ? CLI_EXIT_FAILED
                  : plan.drains  ? CLI_EXIT_SLOWER
                  : !list.tested ? CLI_EXIT_INCONCLUSIVE
                                 : CLI_EXIT_SUCCESS;
    drain_plan_fini(&plan);
    fleet_findings_fini(&list);
    return rc < 0 ? -1 : gather_end(g, verdict);
}

int cmd_fleet_drain(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    (void)i;
    if (c->output != OUTPUT_TABLE && c->output != OUTPUT_JSON)
        return err_set(err, ERR_USAGE, "",
                       "fleet drain prints lines for a shell, and JSON with -o json; fleet "
                       "outliers has the other formats");
    if (gather_all(&g, c, GATHER_ALL_RUNS, err) < 0)
        return -1;
    // Of the nodes that came before Ctrl-C others are slow: a shell would drain them.
    return g.fan && fan_stopped(g.fan) ? gather_end(&g, CLI_EXIT_INCONCLUSIVE)
                                       : drain_gathered(c, &g, err);
}
