// SPDX-License-Identifier: Apache-2.0
// What the collector knows of Slurm is minutes old. A person may have drained the node since then,
// and that reason must stay.
#include "fleet/collect/draining_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/written.h"
#include "fleet/collect/draining.h"
#include "nodes/named.h"
#include "nodes/program.h"
#include "nodes/slurm.h"

enum { SCONTROL_MS = 10000, PRINTED_MOST = 4096 };

struct node_to_drain {
    const char *finding, *node, *reason;
    const char *has; // Slurm's reason; NULL: it is not listed
};

static int wishes_read(char *text, struct node_to_drain out[static DRAINING_MOST])
{
    int n = 0;
    for (char *line; n < DRAINING_MOST && (line = strsep(&text, "\n")) && *line; n++) {
        out[n] = (struct node_to_drain){.finding = strsep(&line, "\t")};
        out[n].node = strsep(&line, "\t");
        out[n].reason = strsep(&line, "\t");
        if (!out[n].node || !out[n].reason || line)
            return -1;
    }
    return n;
}

static int reasons_read(struct node_to_drain *list, int n, struct buf *lines, struct err *err)
{
    struct named_node node;
    if (slurm_named("", lines, err) < 0)
        return -1;
    char *rest = lines->len ? lines->data : NULL;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (named_read(&node, line, err) < 0)
            return -1;
        for (int i = 0; i < n; i++)
            if (strcmp(list[i].node, node.name) == 0 && !(list[i].has && *list[i].has))
                list[i].has = node.reason;
    }
    return 0;
}

static int run_drain(const struct node_to_drain *d, struct err *err)
{
    static const struct program_limits limits = {SCONTROL_MS, PRINTED_MOST};
    CLEANUP_BUF struct buf name = BUF_INIT, reason = BUF_INIT, printed = BUF_INIT;
    if (!d->has)
        return err_set(err, ERR_NOT_FOUND, "", "Slurm does not list it");
    if (*d->has)
        return err_set(err, ERR_CONFLICT, "", "it has the reason \"%.100s\" already", d->has);
    buf_fmt(&name, "NodeName=%s", d->node);
    buf_fmt(&reason, "Reason=%s", d->reason);
    if (!buf_ok(&name) || !buf_ok(&reason))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to drain it");
    const char *const argv[] = {"scontrol",    "update",          buf_text(&name),
                                "State=DRAIN", buf_text(&reason), NULL};
    return program_read(argv, &limits, &printed, err);
}

static void drain_all(const struct node_to_drain *list, int n)
{
    for (int i = 0; i < n; i++) {
        struct err err = {0};
        run_drain(&list[i], &err);
        printf("%s\t%s\t%s\t%s\n", list[i].finding, list[i].node, list[i].reason, err.text);
        fflush(stdout); // what is done is said, also if the next one takes too long
    }
}

int draining_main(int argc, char **argv)
{
    CLEANUP_BUF struct buf text = BUF_INIT, lines = BUF_INIT;
    struct node_to_drain list[DRAINING_MOST];
    struct err err = {0};
    char block[16384];
    (void)argv;
    if (argc != 2)
        return 2;
    for (size_t n; (n = fread(block, 1, sizeof block, stdin)) > 0;)
        buf_add(&text, block, n);
    int n = text.len && buf_ok(&text) ? wishes_read(text.data, list) : -1;
    if (n < 0)
        return 2;
    if (reasons_read(list, n, &lines, &err) < 0) {
        printf("!%s\n", err.text);
        return 1;
    }
    drain_all(list, n);
    return !all_written(stdout);
}
