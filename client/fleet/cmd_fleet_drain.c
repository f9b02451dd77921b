// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet drain: prints the scontrol lines that take slow nodes out of service. It executes
// nothing. A wrong verdict must not empty a cluster, so only sure findings count, few per class,
// and no node that was drained for another reason.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"
#include "nodes/program.h"

enum {
    SINFO_MS = 10000,
    SINFO_BYTES = 16 << 20, // 65,536 nodes of 250 bytes
    SHARE_MAX = 50,         // one node in so many of a class: 2 %
};
#define OWN_REASON "numaprobe"
#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+%"

struct drain {
    const struct fleet *fleet;
    char *reasons; // owned: lines "node reason" of sinfo, or NULL
    int *drained;  // owned; [class]
};

// The reason that Slurm has for the node; "" for none. NULL: Slurm does not list it.
static const char *reason_of(struct drain *d, const char *node, char *out, size_t room)
{
    size_t n = strlen(node);
    for (const char *at = d->reasons; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, node, n) != 0 || at[n] != ' ')
            continue;
        const char *reason = at + n + strspn(at + n, " ");
        snprintf(out, room, "%.*s", (int)strcspn(reason, "\n"), reason);
        if (strcmp(out, "none") == 0)
            *out = '\0';
        return out;
    }
    return NULL;
}

// Names come from nodes, and the line is meant for a shell.
static void print_word(const char *text)
{
    for (; *text; text++)
        putchar(strchr(WORD_LETTERS, *text) ? *text : '_');
}

// A name that means one node to scontrol: ALL does not.
static bool is_plain(const char *node)
{
    return !node[strspn(node, WORD_LETTERS)] && strcasecmp(node, "ALL") != 0 &&
           strcasecmp(node, "DEFAULT") != 0;
}

static void print_comment(const char *node, const char *why, const char *detail)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    print_safe(&safe, detail);
    fputs("# ", stdout);
    print_word(node);
    printf(": %s%s\n", why, buf_text(&safe));
}

static bool may_drain(struct drain *d, const struct fleet_finding *one)
{
    const char *node = d->fleet->nodes.list[one->nodes[0]];
    char reason[256];
    int share = fleet_class_nodes(d->fleet, one->class) / SHARE_MAX, most = share ? share : 1;
    const char *has = reason_of(d, node, reason, sizeof reason);
    if (!d->reasons)
        print_comment(node, "is not suggested: sinfo does not say what others have drained", "");
    else if (!is_plain(node))
        print_comment(node, "is not suggested: Slurm has no such name", "");
    else if (!has)
        print_comment(node, "Slurm does not list it", "");
    else if (has && *has && strncmp(has, OWN_REASON, strlen(OWN_REASON)) != 0)
        print_comment(node, "has another reason already: ", has);
    else if (has && *has)
        print_comment(node, "is drained already: ", has);
    else if (d->drained[one->class] >= most)
        print_comment(node, "is not suggested: that would be more than 2 % of its class", "");
    else
        return true;
    return false;
}

static void suggest_drain(struct drain *d, const struct fleet_finding *one)
{
    const char *node = d->fleet->nodes.list[one->nodes[0]];
    char percent[32];
    if (one->what == FINDING_GROUP || one->grade != PEERS_SURE || !may_drain(d, one))
        return;
    d->drained[one->class]++;
    snprintf(percent, sizeof percent, "%+.1f%%", one->percent);
    fputs("scontrol update NodeName=", stdout);
    print_word(node);
    fputs(" State=DRAIN Reason='" OWN_REASON " ", stdout);
    print_word(isfinite(one->percent) ? percent : "slow");
    putchar(' ');
    print_word(one->metric);
    puts("'");
}

static bool is_found(const struct drain *d, const struct fleet_findings *list, const char *node)
{
    for (int i = 0; i < list->n; i++)
        if (list->list[i].what != FINDING_GROUP &&
            strcmp(d->fleet->nodes.list[list->list[i].nodes[0]], node) == 0)
            return true;
    return false;
}

// Only nodes that we have drained, and that nothing is wrong with now: as comments, for people.
static void suggest_resume(struct drain *d, const struct fleet_findings *list)
{
    for (int i = 0; i < d->fleet->nodes.n; i++) {
        const char *node = d->fleet->nodes.list[i];
        char reason[256];
        const char *has = reason_of(d, node, reason, sizeof reason);
        if (!has || strncmp(has, OWN_REASON, strlen(OWN_REASON)) != 0 || is_found(d, list, node) ||
            !fleet_node_judged(d->fleet, i))
            continue;
        fputs("# is like its peers now: scontrol update NodeName=", stdout);
        print_word(node);
        puts(" State=RESUME");
    }
}

static void read_reasons(struct drain *d)
{
    static const char *const argv[] = {"sinfo", "-h", "-N", "-o", "%N %E", NULL};
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct err err = {0};
    if (program_read(argv, &(struct program_limits){SINFO_MS, SINFO_BYTES}, &out, &err) == 0) {
        d->reasons = buf_steal(&out);
        return;
    }
    fprintf(stderr,
            "numaprobe: nothing is suggested, because what others have drained is not known: %s\n",
            err.text);
}

int cmd_fleet_drain(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    struct fleet_findings list = {0};
    struct drain d = {0};
    (void)i;
    if (c->output != OUTPUT_TABLE)
        return err_set(err, ERR_USAGE, "",
                       "fleet drain prints lines for a shell only; fleet outliers has the "
                       "other formats");
    if (gather_all(&g, c, GATHER_ALL_RUNS, err) < 0 || fleet_findings_find(&list, g.fleet, err) < 0)
        return -1;
    d.fleet = g.fleet;
    d.drained = calloc((size_t)g.fleet->classes.n + 1, sizeof *d.drained);
    if (d.drained) {
        read_reasons(&d);
        for (int k = 0; k < list.n; k++)
            suggest_drain(&d, &list.list[k]);
        suggest_resume(&d, &list);
    }
    bool tested = list.tested > 0, known = d.reasons != NULL;
    int any = 0;
    for (int k = 0; d.drained && k < g.fleet->classes.n; k++)
        any += d.drained[k];
    fleet_findings_fini(&list);
    free(d.drained);
    free(d.reasons);
    return gather_end(&g, !known    ? CLI_EXIT_FAILED
                          : any     ? CLI_EXIT_SLOWER
                          : !tested ? CLI_EXIT_INCONCLUSIVE
                                    : CLI_EXIT_SUCCESS);
}
