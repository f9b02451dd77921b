// SPDX-License-Identifier: Apache-2.0
// A line is a node, its state, a partition and a reason: ">n1 drain main* DIMM of bank 3". A line
// without '>' continues a reason, which may be several lines of any text, also such as a node. Of a
// state, a '~' behind it says that the node is powered off, and other signs that it soon will be or
// does not respond. A '*' behind a partition marks the default one. The reason is "none" where
// there is none. A node of several partitions has a line for each.
#include "nodes/slurm.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "nodes/lines.h"
#include "nodes/named.h"
#include "nodes/program.h"

enum {
    PARTITION_MAX = 100, // bytes of the names, with the commas
    PARTITIONS_MAX = PARTITION_MAX / 2 + 1,
};

static const struct program_limits slurm_limits = {.time_ms = 10000, .bytes = LIST_MAX};

struct slurm_line {
    char *name, *state, *partition; // partition NULL: none
    const char *reason;             // "": none
};

// A node that is out of service has a reason, whatever is printed: nothing, or "none".
static bool slurm_out(const char *state)
{
    static const char *const out[] = {"drain", "drng", "down", "fail"};
    for (size_t i = 0; i < COUNT_OF(out); i++)
        if (str_starts(state, out[i]))
            return true;
    return false;
}

// What a person wrote, in any encoding. What does not fit is left out.
static const char *reason_cut(char *text, const char *state)
{
    bool none = !text || !*text || strcmp(text, "none") == 0;
    if (none)
        return slurm_out(state) ? "none" : "";
    for (char *c = text; *c; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
        if (c - text == NAMED_WORD_MAX)
            *c-- = '\0';
    }
    return text;
}

// 1: cut, 0: an empty line.
static int slurm_cut(struct slurm_line *out, char *line, struct err *err)
{
    char *save = NULL;
    out->name = strtok_r(line, " \t", &save);
    out->state = out->name ? strtok_r(NULL, " \t", &save) : NULL;
    out->partition = out->state ? strsep(&save, " \t") : NULL; // a node may have none
    out->reason = out->state ? reason_cut(save, out->state) : "";
    if (!out->name)
        return 0;
    if (!out->state)
        return err_set(err, ERR_INVALID, "", "sinfo printed \"%.60s\", which is no node and state",
                       out->name);
    if (out->partition)
        out->partition[strcspn(out->partition, "*")] = '\0';
    return 1;
}

int slurm_check(const char *partition, struct err *err)
{
    if (strpbrk(partition, " \t\r\n"))
        return err_set(err, ERR_INVALID, "",
                       "partitions are separated by commas, and their names have no blanks");
    size_t n = strlen(partition);
    if (n && (*partition == ',' || partition[n - 1] == ',' || strstr(partition, ",,")))
        return err_set(err, ERR_INVALID, "", "the name of a partition is missing beside a comma");
    return n <= PARTITION_MAX ? 0
                              : err_set(err, ERR_INVALID, "",
                                        "names of partitions have at most %d bytes", PARTITION_MAX);
}

// sinfo ends well and prints nothing for a partition that there is not.
struct wanted_partitions {
    char text[PARTITION_MAX + 1];
    const char *names[PARTITIONS_MAX];
    bool seen[PARTITIONS_MAX];
    int n;
};

static void partitions_cut(struct wanted_partitions *w, const char *text)
{
    char *save = NULL;
    snprintf(w->text, sizeof w->text, "%s", text);
    for (char *name = strtok_r(w->text, ",", &save); name; name = strtok_r(NULL, ",", &save))
        w->names[w->n++] = name;
}

static void partitions_note(struct wanted_partitions *w, const char *partition)
{
    for (int i = 0; partition && i < w->n; i++)
        w->seen[i] = w->seen[i] || strcmp(w->names[i], partition) == 0;
}

static int partitions_check(const struct wanted_partitions *w, struct err *err)
{
    for (int i = 0; i < w->n; i++)
        if (!w->seen[i])
            return err_set(
                err, ERR_NOT_FOUND, "",
                "sinfo lists no node of a partition \"%s\"; 'sinfo -s' has the partitions",
                w->names[i]);
    return 0;
}

static int slurm_read(const char *partition, bool idle, struct buf *out, struct err *err)
{
    const char *argv[8] = {"sinfo", "-h", "-N", "-o", ">%N %t %P %E"};
    char of[PARTITION_MAX + 16];
    int n = 5;
    if (slurm_check(partition, err) < 0)
        return -1;
    snprintf(of, sizeof of, "--partition=%s", partition);
    if (idle)
        argv[n++] = "--states=idle";
    if (*partition)
        argv[n++] = of;
    if (program_read(argv, &slurm_limits, out, err) < 0)
        return -1;
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the nodes of Slurm");
}

// Calls fn for each node that is listed. It returns -1 to end with its error.
static int slurm_each(const char *partition, bool idle,
                      int (*fn)(void *ctx, const struct slurm_line *l, struct err *err), void *ctx,
                      struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    // Of a partition that is named all nodes are listed: it may be there without an idle one.
    if (slurm_read(partition, idle && !*partition, &text, err) < 0)
        return -1;
    struct wanted_partitions wanted = {.n = 0};
    partitions_cut(&wanted, partition);
    char *rest = text.data;
    bool marked = false;
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct slurm_line l;
        bool own = *line == '>';
        marked = marked || own;
        if (marked && !own)
            continue;
        int cut = slurm_cut(&l, line + own, err);
        if (cut > 0 && !own)
            cut = err_set(err, ERR_INVALID, "", "sinfo printed \"%.60s\", which is no line of ours",
                          l.name);
        if (cut > 0)
            partitions_note(&wanted, l.partition);
        if (cut < 0 || (cut && fn(ctx, &l, err) < 0))
            return -1;
    }
    return partitions_check(&wanted, err);
}

struct wanted_names {
    bool idle; // only nodes in this state; else all that are powered on
    struct nodeset *to;
};

static int add_wanted(void *ctx, const struct slurm_line *l, struct err *err)
{
    const struct wanted_names *w = ctx;
    bool wanted = w->idle ? strcmp(l->state, "idle") == 0 : !strchr(l->state, '~');
    if (wanted && nodeset_add(w->to, l->name, err) < 0)
        return err_prefix(err, "sinfo printed \"%.60s\"", l->name);
    return 0;
}

int slurm_names(const char *partition, bool idle, struct nodeset *to, struct err *err)
{
    struct wanted_names w = {.idle = idle, .to = to};
    if (slurm_each(partition, idle, add_wanted, &w, err) < 0)
        return -1;
    nodeset_sort(to);
    return 0;
}

static int write_named(void *out, const struct slurm_line *l, struct err *err)
{
    const struct named_node node = {
        .name = l->name, .state = l->state, .partitions = l->partition, .reason = l->reason};
    return named_write(out, &node, err);
}

int slurm_named(const char *partition, struct buf *out, struct err *err)
{
    return slurm_each(partition, false, write_named, out, err);
}
