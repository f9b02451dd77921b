// SPDX-License-Identifier: Apache-2.0
// Lists come line by line, because a list of 10,000 nodes is longer than a node set may be. sinfo
// is started once, or twice if only some of the nodes come from it.
#include "nodes/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "nodes/behind.h"
#include "nodes/lines.h"
#include "nodes/named.h"
#include "nodes/program.h"
#include "nodes/slurm.h"

enum {
    WORDS_MAX = 16,      // of the group command
    COMMAND_ROOM = 1024, // bytes of them, with the name of a group
};

static const struct program_limits group_limits = {.time_ms = 10000, .bytes = NODESET_TEXT_MAX};

static const char *const source_kinds[SOURCE_KINDS] = {
    "nodes", "file", "slurm", "srv", "http_sd", "file_sd", "announce", "collector",
};

struct search {
    const struct fleet_source *q;
    struct nodeset *out; // grows; sorted at the end
    struct buf *named;   // gets lines instead (nodes/named.h); NULL: none
    struct nodeset_groups groups;
    struct buf groups_text; // of the file, read when the first group is looked up
    bool groups_read;
};

static bool source_given(const char *text)
{
    return text && *text;
}

static int source_at_fault(struct err *err, const char *member)
{
    if (err)
        snprintf(err->member, sizeof err->member, "%s", member);
    return -1;
}

static int names_add(struct nodeset *to, const char *text, const struct nodeset_groups *groups,
                     struct err *err)
{
    CLEANUP_NODESET struct nodeset part = {0};
    if (nodeset_parse(&part, text, groups, err) < 0)
        return -1;
    for (int i = 0; i < part.n; i++)
        if (nodeset_add(to, part.names[i], err) < 0)
            return -1;
    return 0;
}

// Hints are words behind a set: "n[1-9] url=https://%h:7443 class=login". Cuts them off.
static int hints_cut(char *line, struct named_node *hints, struct err *err)
{
    for (char *tab = line; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    for (char *word; (word = strrchr(line, ' ')) && strchr(word, '=');) {
        *word++ = '\0';
        if (str_starts(word, "url="))
            hints->url = word + strlen("url=");
        else if (str_starts(word, "class="))
            hints->class_hint = word + strlen("class=");
        else
            return err_set(err, ERR_INVALID, "",
                           "\"%.40s\" is unknown; behind a node set only url= and class= are known",
                           word);
        for (size_t n = strlen(line); n > 0 && line[n - 1] == ' ';)
            line[--n] = '\0';
    }
    return 0;
}

static int line_write_named(struct search *s, char *line, struct err *err)
{
    CLEANUP_NODESET struct nodeset part = {0};
    struct named_node node = {0};
    if (hints_cut(line, &node, err) < 0 || nodeset_parse(&part, line, &s->groups, err) < 0)
        return -1;
    for (int i = 0; i < part.n; i++) {
        node.name = part.names[i];
        if (named_write(s->named, &node, err) < 0)
            return -1;
    }
    return 0;
}

static int line_take(struct search *s, char *line, struct err *err)
{
    return s->named ? line_write_named(s, line, err) : names_add(s->out, line, &s->groups, err);
}

static int source_list(struct search *s, const char *path, const char *member, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (list_read(path, &text, err) < 0)
        return source_at_fault(err, member);
    char *rest = text.data;
    if (text.len != (rest ? strlen(rest) : 0)) {
        err_set(err, ERR_INVALID, member, "%.150s is no text: it has a NUL", path);
        return -1;
    }
    int number = 0;
    for (char *line; (line = line_next(&rest));) {
        number++;
        if (line_take(s, line, err) < 0) {
            err_prefix(err, "%.100s, line %d", strcmp(path, "-") == 0 ? "standard input" : path,
                       number);
            return source_at_fault(err, member);
        }
    }
    return 0;
}

// ---- Groups -------------------------------------------------------------------------------------

static int groups_open(struct search *s, struct err *err)
{
    const char *path = s->q->groups_file;
    if (s->groups_read || !source_given(path) || (access(path, F_OK) < 0 && errno == ENOENT)) {
        s->groups_read = true;
        return 0;
    }
    if (list_read(path, &s->groups_text, err) < 0)
        return source_at_fault(err, "groups_file");
    s->groups_read = true;
    return 0;
}

// 1: found, 0: not there. Two lines of the same name are an error: it is not known which is meant.
static int group_line(struct search *s, const char *group, struct buf *out, struct err *err)
{
    CLEANUP_MEM char *text = s->groups_text.len ? strdup(s->groups_text.data) : NULL;
    char *rest = text;
    int number = 0, found = 0;
    if (s->groups_text.len && !text)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the groups");
    for (char *line; (line = line_next(&rest));) {
        size_t n = strcspn(line, ": \t");
        char *colon = line + n + strspn(line + n, " \t");
        number++;
        if (!*line)
            continue;
        if (*colon != ':')
            return err_set(err, ERR_INVALID, "groups_file", "%.100s, line %d: is not \"NAME: SET\"",
                           s->q->groups_file, number);
        if (strlen(group) != n || memcmp(line, group, n) != 0)
            continue;
        if (found)
            return err_set(err, ERR_INVALID, "groups_file", "%.100s: @%s is on the lines %d and %d",
                           s->q->groups_file, group, found, number);
        found = number;
        buf_str(out, colon + 1);
    }
    return found > 0;
}

// The words of the command, %s in them replaced. Their texts are in `room`.
static int command_words(const char *command, const char *group, char *room, const char **argv,
                         struct err *err)
{
    char *end = room + COMMAND_ROOM;
    int n = 0;
    bool named = false;
    for (const char *at = command; *(at += strspn(at, " \t"));) {
        size_t len = strcspn(at, " \t");
        const char *hole = memmem(at, len, "%s", 2);
        size_t before = hole ? (size_t)(hole - at) : len;
        int wrote =
            snprintf(room, (size_t)(end - room), "%.*s%s%.*s", (int)before, at, hole ? group : "",
                     hole ? (int)(len - before - 2) : 0, hole ? hole + 2 : "");
        if (n == WORDS_MAX - 1 || wrote >= end - room)
            return err_set(err, ERR_INVALID, "group_command", "has more than %d words or %d bytes",
                           WORDS_MAX - 1, COMMAND_ROOM - 1);
        argv[n++] = room;
        room += wrote + 1;
        named = named || hole;
        at += len;
    }
    argv[n] = NULL;
    return n > 1 && named
               ? 0
               : err_set(err, ERR_INVALID, "group_command",
                         "must have %%s where the group's name belongs: nodeset -e @%%s");
}

static int group_find(void *ctx, const char *group, struct buf *out, struct err *err)
{
    struct search *s = ctx;
    char room[COMMAND_ROOM];
    const char *argv[WORDS_MAX];
    struct err why = {0};
    if (groups_open(s, err) < 0)
        return -1;
    int found = group_line(s, group, out, err);
    if (found != 0)
        return found < 0 ? -1 : 0;
    if (!source_given(s->q->group_command))
        return err_set(err, ERR_NOT_FOUND, "nodes", "there is no group @%s in %.120s", group,
                       source_given(s->q->groups_file) ? s->q->groups_file : "any file");
    if (command_words(s->q->group_command, group, room, argv, err) < 0)
        return -1;
    if (program_read(argv, &group_limits, out, &why) < 0)
        return err_set(err, why.code == ERR_UNAVAILABLE ? ERR_NOT_FOUND : why.code, "nodes",
                       "there is no group @%s in %.60s, and %.140s", group,
                       source_given(s->q->groups_file) ? s->q->groups_file : "a file", why.text);
    return 0;
}

// ---- Slurm --------------------------------------------------------------------------------------

static int source_idle(struct search *s, struct err *err)
{
    CLEANUP_NODESET struct nodeset idle = {0};
    int n = 0;
    if (slurm_names("", true, &idle, err) < 0)
        return source_at_fault(err, "idle");
    for (int i = 0; i < s->out->n; i++)
        if (nodeset_has(&idle, s->out->names[i]))
            memmove(s->out->names[n++], s->out->names[i], sizeof *s->out->names);
    if (!n)
        return err_set(err, ERR_BUSY, "idle", "Slurm lists none of the named nodes as idle");
    s->out->n = n;
    return 0;
}

// Idle nodes of partitions, or all idle nodes, need one call of sinfo.
static int source_slurm(struct search *s, bool others, struct err *err)
{
    const struct fleet_source *q = s->q;
    const bool in = source_given(q->from_slurm), only_idle = q->idle && !others;
    const char *partition = in && strcmp(q->from_slurm, "*") != 0 ? q->from_slurm : "";
    if ((in || only_idle) && slurm_names(partition, only_idle, s->out, err) < 0)
        return source_at_fault(err, in ? "from_slurm" : "idle");
    if (only_idle && !s->out->n)
        return err_set(err, ERR_BUSY, "idle", "Slurm lists no idle node%s%.60s",
                       *partition ? " in partition " : "", partition);
    return q->idle && !only_idle && s->out->n ? source_idle(s, err) : 0;
}

static int search_run(struct search *s, struct err *err)
{
    const struct fleet_source *q = s->q;
    const bool others = source_given(q->nodes) || source_given(q->hostfile);
    const bool is_list = source_given(q->nodes) && (*q->nodes == '^' || strcmp(q->nodes, "-") == 0);
    if (!others && !source_given(q->from_slurm) && !q->idle)
        return err_set(err, ERR_USAGE, "nodes",
                       "no nodes are named: use --nodes='n[1-100]' (-w), --hostfile=FILE, "
                       "--from-slurm or --idle");
    if (is_list && source_list(s, q->nodes + (*q->nodes == '^'), "nodes", err) < 0)
        return -1;
    if (source_given(q->nodes) && !is_list && names_add(s->out, q->nodes, &s->groups, err) < 0)
        return -1;
    if (source_given(q->hostfile) && source_list(s, q->hostfile, "hostfile", err) < 0)
        return -1;
    if ((source_given(q->from_slurm) || q->idle) && source_slurm(s, others, err) < 0)
        return -1;
    nodeset_sort(s->out);
    if (!s->out->n)
        return err_set(err, ERR_NOT_FOUND, others ? "nodes" : "from_slurm", "the set has no nodes");
    return 0;
}

int fleet_names(const struct fleet_source *q, struct nodeset *out, struct err *err)
{
    struct nodeset names = {0};
    struct search s = {.q = q, .out = &names, .groups = {group_find, &s}};
    int done = search_run(&s, err);
    buf_free(&s.groups_text);
    if (done < 0)
        nodeset_free(&names);
    else
        *out = names;
    return done;
}

static int group_call(struct search *s, const char *group, const char *set, fleet_group_fn *fn,
                      void *ctx, struct err *err)
{
    CLEANUP_NODESET struct nodeset nodes = {0};
    if (nodeset_parse(&nodes, set, &s->groups, err) < 0)
        return err_prefix(err, "%.100s: @%.60s", s->q->groups_file, group);
    fn(ctx, group, &nodes);
    return 0;
}

static int groups_call(struct search *s, const char *prefix, fleet_group_fn *fn, void *ctx,
                       struct err *err)
{
    if (groups_open(s, err) < 0)
        return -1;
    CLEANUP_MEM char *text = s->groups_text.len ? strdup(s->groups_text.data) : NULL;
    char *rest = text;
    for (char *line; (line = line_next(&rest));) {
        char *set = strchr(line, ':');
        if (!set || strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        *set++ = '\0';
        line[strcspn(line, " \t")] = '\0';
        if (group_call(s, line, set, fn, ctx, err) < 0)
            return -1;
    }
    return 0;
}

int fleet_groups_each(const char *groups_file, const char *prefix, fleet_group_fn *fn, void *ctx,
                      struct err *err)
{
    const struct fleet_source q = {.groups_file = groups_file};
    struct search s = {.q = &q, .groups = {group_find, &s}};
    int done = groups_call(&s, prefix, fn, ctx, err);
    buf_free(&s.groups_text);
    return done;
}

const char *source_split(const char *text, enum source_kind *kind, struct err *err)
{
    size_t n = strcspn(text, ":");
    const char *where = text + n + (text[n] == ':');
    for (int i = 0; i < SOURCE_KINDS; i++)
        if (strncmp(text, source_kinds[i], n) == 0 && !source_kinds[i][n]) {
            *kind = (enum source_kind)i;
            if (!*where && i != SOURCE_SLURM)
                break;
            if (i == SOURCE_COLLECTOR && behind_check(where, err) < 0)
                return NULL;
            return *where || i != SOURCE_SLURM ? where : "*";
        }
    err_set(err, ERR_USAGE, "source",
            "\"%.60s\" is no source: it must be nodes:SET, file:PATH, slurm:PARTITION, srv:NAME, "
            "http_sd:URL, file_sd:PATH, collector:URL or announce",
            text);
    return NULL;
}

int source_named(enum source_kind kind, const char *where, const struct fleet_source *groups,
                 struct buf *out, struct err *err)
{
    struct search s = {.q = groups, .named = out, .groups = {group_find, &s}};
    CLEANUP_MEM char *set = strdup(where);
    int done = !set                   ? err_set(err, ERR_NO_MEMORY, "", "no memory for a source")
               : kind == SOURCE_SLURM ? slurm_named(strcmp(where, "*") == 0 ? "" : where, out, err)
               : kind == SOURCE_FILE  ? source_list(&s, where, "source", err)
               : *where == '^'        ? source_list(&s, where + 1, "source", err)
                                      : line_write_named(&s, set, err);
    buf_free(&s.groups_text);
    return done;
}
