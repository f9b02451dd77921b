// SPDX-License-Identifier: Apache-2.0
// All fields are printable ASCII, so a tab can separate them. Only a reason has blanks.
#include "nodes/named.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/nodeset.h"
#include "nodes/addresses.h"

static int field_check(const char *what, const char *text, size_t most, char least, struct err *err)
{
    size_t n = text ? strlen(text) : 0;
    if (n > most)
        return err_set(err, ERR_INVALID, what, "%s has more than %zu bytes", what, most);
    for (size_t i = 0; i < n; i++)
        if (text[i] < least || text[i] > '~')
            return err_set(err, ERR_INVALID, what, "%s has a byte that is no printable character",
                           what);
    return 0;
}

// The address of a node that does not push, and is behind no collector, may lack its scheme, or be
// that of this machine.
static int url_check(const char *url, struct err *err)
{
    char whole[NAMED_URL_MAX + 16];
    const char *fault = NULL;
    if (str_url_has_user(url))
        return err_set(err, ERR_INVALID, "url",
                       "url must have no user: it is shown to every reader");
    if (str_starts(url, BEHIND_URL))
        fault = str_url_fault(url + strlen(BEHIND_URL));
    else if (*url && strcmp(url, ANNOUNCED_URL) != 0 && strcmp(url, HERE_URL) != 0) {
        snprintf(whole, sizeof whole, "%s%s", str_starts(url, "//") ? "http:" : "", url);
        fault = address_fault(whole);
    }
    return fault ? err_set(err, ERR_INVALID, "url", "url %s", fault) : 0;
}

static int fields_check(const struct named_node *n, struct err *err)
{
    if (nodeset_name_check(n->name, err) < 0)
        return -1;
    if (field_check("url", n->url, NAMED_URL_MAX, '!', err) < 0 ||
        field_check("class", n->class_hint, NAMED_WORD_MAX, '!', err) < 0 ||
        field_check("state", n->state, NAMED_WORD_MAX, '!', err) < 0 ||
        field_check("partition", n->partitions, NAMED_WORD_MAX, '!', err) < 0)
        return -1;
    if (n->url && url_check(n->url, err) < 0)
        return -1;
    return field_check("reason", n->reason, NAMED_WORD_MAX, ' ', err);
}

static int named_check(const struct named_node *n, struct err *err)
{
    return fields_check(n, err) < 0 ? err_prefix(err, "\"%.60s\"", n->name) : 0;
}

static const char *field_or_empty(const char *text)
{
    return text ? text : "";
}

int named_write(struct buf *out, const struct named_node *n, struct err *err)
{
    if (named_check(n, err) < 0)
        return -1;
    buf_fmt(out, "%s\t%s\t%s\t%s\t%s\t%s\n", n->name, field_or_empty(n->url),
            field_or_empty(n->class_hint), field_or_empty(n->state), field_or_empty(n->partitions),
            field_or_empty(n->reason));
    return 0;
}

int named_read(struct named_node *out, char *line, struct err *err)
{
    const char **const fields[] = {&out->name,  &out->url,        &out->class_hint,
                                   &out->state, &out->partitions, &out->reason};
    char *rest = line;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (!(*fields[i] = strsep(&rest, "\t")))
            return err_set(err, ERR_INVALID, "", "a line of a source has fewer than %zu fields",
                           COUNT_OF(fields));
    if (rest)
        return err_set(err, ERR_INVALID, "", "a line of a source has more than %zu fields",
                       COUNT_OF(fields));
    return named_check(out, err);
}

// ---- In order -----------------------------------------------------------------------------------

static int by_line(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || !at[n]))
            return true;
    return false;
}

// The partitions of both. Those that do not fit are left out.
static void partitions_join(char joined[static NAMED_WORD_MAX + 1], const char *more)
{
    size_t n = strlen(joined), m = strlen(more);
    if (!m || list_has(joined, more) || n + m + 1 > NAMED_WORD_MAX)
        return;
    snprintf(joined + n, NAMED_WORD_MAX + 1 - n, "%s%s", n ? "," : "", more);
}

// Lines of one node and one address become one. Of the address, "" is any.
static int lines_merge(char **lines, int n, struct buf *out, struct err *err)
{
    struct named_node node = {0}, next;
    char partitions[NAMED_WORD_MAX + 1] = "";
    for (int i = 0; i < n; i++) {
        if (named_read(&next, lines[i], err) < 0)
            return -1;
        if (i > 0 && strcmp(node.name, next.name) == 0 &&
            (!*node.url || strcmp(node.url, next.url) == 0)) {
            node.url = next.url;
            node.class_hint = *node.class_hint ? node.class_hint : next.class_hint;
            node.state = *node.state ? node.state : next.state;
            node.reason = *node.reason ? node.reason : next.reason;
            partitions_join(partitions, next.partitions);
            continue;
        }
        node.partitions = partitions;
        if (i > 0 && named_write(out, &node, err) < 0)
            return -1;
        node = next;
        snprintf(partitions, sizeof partitions, "%s", next.partitions);
    }
    node.partitions = partitions;
    return n ? named_write(out, &node, err) : 0;
}

int named_sort(struct buf *lines, struct err *err)
{
    CLEANUP_BUF struct buf sorted = BUF_INIT;
    int n = 0, room = 1;
    for (size_t i = 0; i < lines->len; i++)
        room += lines->data[i] == '\n';
    CLEANUP_MEM char **list = calloc((size_t)room, sizeof *list);
    if (!list || !buf_ok(lines))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", room);
    char *rest = lines->len ? lines->data : NULL;
    for (char *line; n < room && (line = strsep(&rest, "\n"));)
        if (*line)
            list[n++] = line;
    qsort(list, (size_t)n, sizeof *list, by_line);
    if (lines_merge(list, n, &sorted, err) < 0)
        return -1;
    if (!buf_ok(&sorted))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", n);
    buf_reset(lines);
    buf_add(lines, sorted.data, sorted.len);
    return 0;
}
