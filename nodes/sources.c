// SPDX-License-Identifier: Apache-2.0
// Lists come line by line, because a list of 10,000 nodes is longer than a node set may be. sinfo
// is started once, or twice if only some of the nodes come from it.
#include "nodes/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/suggest.h"
#include "nodes/behind.h"
#include "nodes/lines.h"
#include "nodes/named.h"
#include "nodes/program.h"
#include "nodes/slurm.h"
#include "nodes/srv.h"

enum {
    WORDS_MAX = 16,      // of the group command
    COMMAND_ROOM = 1024, // bytes of them, with the name of a group
    GROUPS_SHOWN = 60,   // bytes of the names of groups in an error
};

static const struct program_limits group_limits = {.time_ms = 10000, .bytes = NODESET_TEXT_MAX};

static const char *const source_kinds[SOURCE_KINDS] = {
    "nodes", "file", "slurm", "srv", "http_sd", "file_sd", "announce", "collector",
};
static const char *const source_examples[SOURCE_KINDS] = {
    [SOURCE_NODES] = "nodes:n[1-100]",
    [SOURCE_FILE] = "file:/etc/numaprobe/nodes",
    [SOURCE_SLURM] = "slurm:PARTITION",
    [SOURCE_SRV] = "srv:_numaprobe._tcp.example",
    [SOURCE_HTTP_SD] = "http_sd:https://HOST/targets",
    [SOURCE_FILE_SD] = "file_sd:/etc/numaprobe/targets.json",
    [SOURCE_ANNOUNCE] = "announce",
    [SOURCE_COLLECTOR] = "collector:https://HOST:7790",
};

// A line of the file of groups; texts are in it.
struct group_line {
    const char *name, *set;
    int number;
};

struct search {
    const struct fleet_source *q;
    struct nodeset *out; // grows; sorted at the end
    struct buf *named;   // gets lines instead (nodes/named.h); NULL: none
    struct nodeset_groups groups;
    // The file, read when the first group is looked up. Lists of a thousand groups look each up.
    struct buf groups_text;        // cut at the ends of names and lines
    struct group_line *group_line; // in the order of the file, and then all again by name; owned
    int n_groups;
    bool groups_read;
};

static void groups_free(struct search *s)
{
    buf_free(&s->groups_text);
    free(s->group_line);
}

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
        else {
            word[strcspn(word, "=")] = '\0'; // what is behind it may be a secret
            return err_set(err, ERR_INVALID, "",
                           "%.40s= is unknown; behind a node set only url= and class= are known",
                           word);
        }
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

// A collector's source is read again and again, so it is a file.
static int source_text(const struct search *s, const char *path, const char *member,
                       struct buf *out, struct err *err)
{
    if (list_read(path, !s->named, out, err) < 0)
        return source_at_fault(err, member);
    return out->len == strlen(buf_text(out))
               ? 0
               : err_set(err, ERR_INVALID, member, "%.150s is no text: it has a NUL", path);
}

static int source_list(struct search *s, const char *path, const char *member, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (source_text(s, path, member, &text, err) < 0)
        return -1;
    char *rest = text.data;
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

// A line "NAME: SET" of the file. 1: cut, 0: it is empty.
static int group_cut(const struct search *s, char *line, int number, const char **set,
                     struct err *err)
{
    size_t n = strcspn(line, ": \t");
    char *colon = line + n + strspn(line + n, " \t");
    if (!*line)
        return 0;
    if (*colon != ':' || !n)
        return err_set(err, ERR_INVALID, "groups_file", "%.100s, line %d: is not \"NAME: SET\"",
                       s->q->groups_file, number);
    *set = colon + 1;
    line[n] = '\0';
    return 1;
}

// Of lines with the same name the first one goes first.
static int group_order(const void *a, const void *b)
{
    const struct group_line *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int groups_index(struct search *s, struct err *err)
{
    char *rest = s->groups_text.data;
    size_t lines = 1;
    int number = 0, n = 0;
    for (const char *p = rest; (p = strchr(p, '\n')); p++)
        lines++;
    s->group_line = calloc(2 * lines, sizeof *s->group_line);
    if (!s->group_line)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the groups");
    for (char *line; (line = line_next(&rest));) {
        struct group_line g = {.name = line, .number = ++number};
        int cut = group_cut(s, line, number, &g.set, err);
        if (cut < 0)
            return -1;
        if (cut)
            s->group_line[n++] = g;
    }
    struct group_line *by_name = s->group_line + n;
    s->n_groups = n;
    memcpy(by_name, s->group_line, (size_t)s->n_groups * sizeof *by_name);
    qsort(by_name, (size_t)s->n_groups, sizeof *by_name, group_order);
    return 0;
}

static int groups_open(struct search *s, struct err *err)
{
    const char *path = s->q->groups_file;
    if (s->groups_read || !source_given(path) || (access(path, F_OK) < 0 && errno == ENOENT)) {
        s->groups_read = true;
        return 0;
    }
    if (source_text(s, path, "groups_file", &s->groups_text, err) < 0)
        return -1;
    s->groups_read = true;
    return s->groups_text.len ? groups_index(s, err) : 0;
}

// The line of a group; NULL: there is none. Two lines of the same name are an error: it is not
// known which is meant.
static int group_line_find(const struct search *s, const char *group, const struct group_line **out,
                           struct err *err)
{
    const struct group_line *by_name = s->group_line + s->n_groups;
    int low = 0;
    for (int high = s->n_groups; low < high;) {
        int middle = low + (high - low) / 2;
        if (strcmp(by_name[middle].name, group) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < s->n_groups && strcmp(by_name[low].name, group) == 0;
    if (found && low + 1 < s->n_groups && strcmp(by_name[low + 1].name, group) == 0)
        return err_set(err, ERR_INVALID, "groups_file", "%.100s: @%s is on the lines %d and %d",
                       s->q->groups_file, group, by_name[low].number, by_name[low + 1].number);
    *out = found ? &by_name[low] : NULL;
    return 0;
}

// A word with the group for each %s, as snprintf: what it returns is `room` or more if it does not
// fit. *named is set where there is a %s.
static size_t command_word(const char *word, size_t len, const char *group, char *out, size_t room,
                           bool *named)
{
    size_t n = 0;
    for (const char *hole; n < room && (hole = memmem(word, len, "%s", 2));) {
        size_t before = (size_t)(hole - word);
        n += (size_t)snprintf(out + n, room - n, "%.*s%s", (int)before, word, group);
        word += before + 2;
        len -= before + 2;
        *named = true;
    }
    return n < room ? n + (size_t)snprintf(out + n, room - n, "%.*s", (int)len, word) : n;
}

// As the end of a sentence about the command. NULL: nothing is wrong with the word.
static const char *word_fault(const char *word, size_t len, bool program)
{
    if (memchr(word, '"', len) || memchr(word, '\'', len))
        return "must have no quotes: it is started without a shell, which would read them";
    return program && memmem(word, len, "%s", 2)
               ? "must begin with the program: nodeset -e @%s, where %s is the group's name"
               : NULL;
}

// The words of the command, each %s in them replaced. Their texts are in `room`.
static int command_words(const char *command, const char *group, char *room, const char **argv,
                         struct err *err)
{
    char *end = room + COMMAND_ROOM;
    int n = 0;
    bool named = false;
    for (const char *at = command; *(at += strspn(at, " \t"));) {
        size_t len = strcspn(at, " \t");
        const char *fault = word_fault(at, len, n == 0);
        if (fault)
            return err_set(err, ERR_INVALID, "group_command", "%s", fault);
        size_t wrote = command_word(at, len, group, room, (size_t)(end - room), &named);
        if (n == WORDS_MAX - 1 || wrote >= (size_t)(end - room))
            return err_set(err, ERR_INVALID, "group_command", "has more than %d words or %d bytes",
                           WORDS_MAX - 1, COMMAND_ROOM - 1);
        argv[n++] = room;
        room += wrote + 1;
        at += len;
    }
    argv[n] = NULL;
    return n > 1 && named
               ? 0
               : err_set(err, ERR_INVALID, "group_command",
                         "must have %%s where the group's name belongs: nodeset -e @%%s");
}

// The groups that there are, as far as they fit into an error, and the one that is like `name`.
struct known_groups {
    char list[GROUPS_SHOWN];
    int n, shown;
    struct suggestion near;
};

static void group_list(struct known_groups *k, const char *group)
{
    size_t used = strlen(k->list);
    suggest_consider(&k->near, group);
    if (k->shown == k->n++ && used + strlen(group) + sizeof ", @" <= sizeof k->list) {
        snprintf(k->list + used, sizeof k->list - used, "%s@%s", used ? ", " : "", group);
        k->shown++;
    }
}

// "/etc/numaprobe/groups has @rack1, @rack2, 7 more"
static void groups_describe(const struct search *s, const struct known_groups *k, char *out,
                            size_t room)
{
    const char *path = s->q->groups_file;
    char more[24] = "";
    if (k->n > k->shown)
        snprintf(more, sizeof more, k->shown ? ", %d more" : "%d group%s", k->n - k->shown,
                 str_plural(k->n));
    if (!source_given(path))
        snprintf(out, room, "no file of groups is set");
    else if (k->n)
        snprintf(out, room, "%.100s has %s%s", path, k->list, more);
    else
        snprintf(out, room, "%.100s %s", path,
                 access(path, F_OK) < 0 ? "does not exist" : "has no groups");
}

// `why`: what the command said about it; "": there is no command.
static int group_unknown(const struct search *s, const char *group, const char *why,
                         struct err *err)
{
    struct known_groups k = {.near = SUGGESTION_FOR(group)};
    char near[SUGGEST_TEXT_ROOM], place[GROUPS_SHOWN + 140];
    for (int i = 0; i < s->n_groups; i++)
        group_list(&k, s->group_line[i].name);
    groups_describe(s, &k, place, sizeof place);
    return err_set(err, ERR_NOT_FOUND, "nodes", "there is no group @%s: %.100s%s%s%s", group, why,
                   *why ? "; " : "", place, suggest_text(&k.near, "@", near, sizeof near));
}

static bool is_blank(const struct buf *text, size_t from)
{
    return text->len == from || !text->data[from + strspn(text->data + from, " \t\r\n")];
}

// nodeset ends well and prints an empty line for a group that it does not have. It prints the same
// for a state of Slurm's that no node is in: of a named source (@st:down) a group may be empty.
static int group_ask(struct search *s, const char *group, struct buf *out, struct err *err)
{
    char room[COMMAND_ROOM];
    const char *argv[WORDS_MAX];
    struct err why = {0};
    size_t before = out->len;
    if (command_words(s->q->group_command, group, room, argv, err) < 0)
        return -1;
    if (program_read(argv, &group_limits, out, &why) < 0)
        return why.code == ERR_UNAVAILABLE ? group_unknown(s, group, why.text, err)
                                           : err_set(err, why.code, "nodes", "%s", why.text);
    if (buf_ok(out) && is_blank(out, before) && !strchr(group, ':')) {
        err_set(&why, ERR_NOT_FOUND, "", "%.60s prints no nodes for it", argv[0]);
        return group_unknown(s, group, why.text, err);
    }
    return 0;
}

static int group_find(void *ctx, const char *group, struct buf *out, struct err *err)
{
    struct search *s = ctx;
    const struct group_line *line = NULL;
    if (groups_open(s, err) < 0 || group_line_find(s, group, &line, err) < 0)
        return -1;
    if (line) {
        buf_str(out, line->set);
        return 0;
    }
    return source_given(s->q->group_command) ? group_ask(s, group, out, err)
                                             : group_unknown(s, group, "", err);
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

// "^FILE" alone is the nodes of a file. Behind ',' it would be an operator without a first set.
static int check_lists(const char *nodes, struct err *err)
{
    if (strcmp(nodes, "^") == 0)
        return err_set(err, ERR_USAGE, "nodes", "the name of a file is missing behind '^'");
    if (strstr(nodes, ",^") || (*nodes == '^' && strchr(nodes, ',') && access(nodes + 1, F_OK) < 0))
        return err_set(
            err, ERR_USAGE, "nodes",
            "^FILE must stand alone; --hostfile=FILE (hostfile) adds the nodes of a file");
    return 0;
}

static int search_empty(const struct fleet_source *q, struct err *err)
{
    const char *member = source_given(q->nodes)      ? "nodes"
                         : source_given(q->hostfile) ? "hostfile"
                                                     : "from_slurm";
    return err_set(err, ERR_NOT_FOUND, member, "the set has no nodes");
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
    if (source_given(q->nodes) && check_lists(q->nodes, err) < 0)
        return -1;
    if (is_list && source_list(s, q->nodes + (*q->nodes == '^'), "nodes", err) < 0)
        return -1;
    if (source_given(q->nodes) && !is_list && names_add(s->out, q->nodes, &s->groups, err) < 0)
        return -1;
    if (source_given(q->hostfile) && source_list(s, q->hostfile, "hostfile", err) < 0)
        return -1;
    if ((source_given(q->from_slurm) || q->idle) && source_slurm(s, others, err) < 0)
        return -1;
    nodeset_sort(s->out);
    return s->out->n ? 0 : search_empty(q, err);
}

int fleet_names(const struct fleet_source *q, struct nodeset *out, struct err *err)
{
    struct nodeset names = {0};
    struct search s = {.q = q, .out = &names, .groups = {group_find, &s}};
    int done = search_run(&s, err);
    groups_free(&s);
    if (done < 0)
        nodeset_free(&names);
    else
        *out = names;
    return done;
}

static int group_call(struct search *s, const struct group_line *line, fleet_group_fn *fn,
                      void *ctx, struct err *err)
{
    CLEANUP_NODESET struct nodeset nodes = {0};
    if (nodeset_parse(&nodes, line->set, &s->groups, err) < 0)
        return err_prefix(err, "%.100s: @%.60s", s->q->groups_file, line->name);
    fn(ctx, line->name, &nodes);
    return 0;
}

int fleet_groups_each(const char *groups_file, const char *prefix, fleet_group_fn *fn, void *ctx,
                      struct err *err)
{
    const struct fleet_source q = {.groups_file = groups_file};
    struct search s = {.q = &q, .groups = {group_find, &s}};
    int done = groups_open(&s, err);
    for (int i = 0; done == 0 && i < s.n_groups; i++)
        if (str_starts(s.group_line[i].name, prefix))
            done = group_call(&s, &s.group_line[i], fn, ctx, err);
    groups_free(&s);
    return done;
}

int source_command_check(const char *command, struct err *err)
{
    char room[COMMAND_ROOM];
    const char *argv[WORDS_MAX];
    return command_words(command, "", room, argv, err);
}

// ---- Sources of the collector -------------------------------------------------------------------

// Which nodes a group has is another question: its file may come later.
static int any_group(void *ctx, const char *group, struct buf *out, struct err *err)
{
    (void)ctx;
    (void)group;
    (void)out;
    (void)err;
    return 0;
}

static int set_check(const char *set, struct err *err)
{
    CLEANUP_NODESET struct nodeset nodes = {0};
    const struct nodeset_groups any = {any_group, NULL};
    if (*set != '^')
        return nodeset_parse(&nodes, set, &any, err);
    return set[1] && !strchr(set, ',')
               ? list_check(set + 1, err)
               : err_set(err, ERR_INVALID, "",
                         "^ needs the path of one file, and nothing else: ^/etc/nodes; other "
                         "nodes are another source");
}

static int file_check(const char *path, struct err *err)
{
    return strcmp(path, "-") != 0
               ? list_check(path, err)
               : err_set(err, ERR_INVALID, "", "a collector has no standard input to read");
}

static int sd_url_check(const char *url, struct err *err)
{
    const char *fault = str_url_fault(url);
    if (str_url_has_user(url))
        fault = "must have no user or password: it is shown to every reader";
    return fault ? err_set(err, ERR_INVALID, "", "the URL %s", fault) : 0;
}

static int (*const source_checks[SOURCE_KINDS])(const char *where, struct err *err) = {
    [SOURCE_NODES] = set_check,        [SOURCE_FILE] = file_check,
    [SOURCE_SLURM] = slurm_check,      [SOURCE_SRV] = srv_check,
    [SOURCE_HTTP_SD] = sd_url_check,   [SOURCE_FILE_SD] = file_check,
    [SOURCE_COLLECTOR] = behind_check,
};

int source_check(enum source_kind kind, const char *where, struct err *err)
{
    if (!source_checks[kind] || source_checks[kind](where, err) == 0)
        return 0;
    if (err)
        err->code = ERR_USAGE;
    return source_at_fault(err, "source");
}

// Finds the kind. *where: behind the colon.
static bool source_kind_of(const char *text, enum source_kind *kind, const char **where)
{
    size_t n = strcspn(text, ":");
    *where = text + n + (text[n] == ':');
    for (int i = 0; i < SOURCE_KINDS; i++)
        if (strncmp(text, source_kinds[i], n) == 0 && !source_kinds[i][n]) {
            *kind = (enum source_kind)i;
            if (!**where && i == SOURCE_SLURM)
                *where = "*";
            return true;
        }
    return false;
}

const char *source_split(const char *text, enum source_kind *kind, struct err *err)
{
    const char *where;
    if (!source_kind_of(text, kind, &where)) {
        err_set(err, ERR_USAGE, "source", // without what is behind it: perhaps a password
                "\"%.*s\" is no source: it must be nodes:SET, file:PATH, slurm:PARTITION, "
                "srv:NAME, http_sd:URL, file_sd:PATH, collector:URL or announce",
                (int)strcspn(text, "/@") < 40 ? (int)strcspn(text, "/@") : 40, text);
        return NULL;
    }
    if (!*where) {
        err_set(err, ERR_USAGE, "source", "\"%s\" is no source: a value is missing, as in %s", text,
                source_examples[*kind]);
        return NULL;
    }
    if (source_check(*kind, where, err) == 0)
        return where;
    err_prefix(err, "%s", source_kinds[*kind]);
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
    groups_free(&s);
    return done;
}
