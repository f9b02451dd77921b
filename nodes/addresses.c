// SPDX-License-Identifier: Apache-2.0
// The lines are sorted by name, so that ten thousand nodes are looked up in no time.
#include "nodes/addresses.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
    ADDRESS_LINES_MAX = 1 << 20, // 64 MB: sixteen times the nodes of a set
    LINE_ROOM = 1024,
    URL_ROOM = 512, // more than any setting and any source may have
};

struct entry {
    char name[64], address[INET6_ADDRSTRLEN];
    int at; // its place in the file: the first of a name counts
};

struct addresses {
    struct entry *list; // owned, by name
    int n, room;
};

void addresses_free(struct addresses *a)
{
    if (a)
        free(a->list);
    free(a);
}

static int by_host_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->at - y->at;
}

static int by_host_alone(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int addresses_add(struct addresses *a, const char *name, const char *address,
                         struct err *err)
{
    if (a->n == ADDRESS_LINES_MAX)
        return err_set(err, ERR_USAGE, "", "more than %d names", ADDRESS_LINES_MAX);
    if (a->n == a->room) {
        int room = a->room ? 2 * a->room : 64;
        struct entry *more = realloc(a->list, (size_t)room * sizeof *more);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d addresses", room);
        a->list = more;
        a->room = room;
    }
    if (strlen(name) >= sizeof a->list->name)
        return 0; // no node has such a name
    struct entry *e = &a->list[a->n];
    e->at = a->n++;
    snprintf(e->name, sizeof e->name, "%s", name);
    snprintf(e->address, sizeof e->address, "%s", address);
    return 0;
}

static int take_host(struct addresses *a, char *line, struct err *err)
{
    char *save = NULL;
    line[strcspn(line, "#\r\n")] = '\0';
    const char *address = strtok_r(line, " \t", &save);
    if (!address)
        return 0;
    if (strchr(address, '%'))
        return 0; // of one network card alone
    if (!str_is_address(address))
        return err_set(err, ERR_USAGE, "", "\"%.40s\" is no IPv4 or IPv6 address", address);
    for (const char *name; (name = strtok_r(NULL, " \t", &save));)
        if (addresses_add(a, name, address, err) < 0)
            return -1;
    return 0;
}

static int read_hosts(struct addresses *a, FILE *f, struct err *err)
{
    char line[LINE_ROOM];
    for (int number = 1; fgets(line, sizeof line, f); number++) {
        if (!strchr(line, '\n') && !feof(f))
            return err_set(err, ERR_USAGE, "", "line %d is longer than %d bytes", number,
                           LINE_ROOM - 2);
        if (take_host(a, line, err) < 0)
            return err_prefix(err, "line %d", number);
    }
    return ferror(f) ? err_set(err, ERR_USAGE, "hosts_file", "cannot be read: %s", strerror(errno))
                     : 0;
}

struct addresses *addresses_read(const char *path, struct err *err)
{
    struct addresses *a = calloc(1, sizeof *a);
    CLEANUP_FILE FILE *f = a && *path ? fopen(path, "re") : NULL;
    if (!a)
        err_set(err, ERR_NO_MEMORY, "", "no memory for addresses");
    else if (*path && !f)
        err_set(err, ERR_USAGE, "hosts_file", "cannot read %.150s: %s", path, strerror(errno));
    else if (!f || read_hosts(a, f, err) == 0) {
        if (a->n)
            qsort(a->list, (size_t)a->n, sizeof *a->list, by_host_name);
        return a;
    } else
        err_prefix(err, "%.150s", path);
    addresses_free(a);
    return NULL;
}

static const char *addresses_find(const struct addresses *a, const char *name)
{
    struct entry key;
    snprintf(key.name, sizeof key.name, "%s", name);
    const struct entry *e =
        a->n ? bsearch(&key, a->list, (size_t)a->n, sizeof key, by_host_alone) : NULL;
    while (e && e > a->list && strcmp(e[-1].name, name) == 0)
        e--;
    return e ? e->address : NULL;
}

const char *addresses_of_url(const struct addresses *a, const char *url)
{
    char name[sizeof a->list->name];
    const char *host = strstr(url, "://");
    size_t n = host ? strcspn(host += 3, ":/?#") : 0;
    if (!a || !n || n >= sizeof name || !str_starts(url, "https://"))
        return NULL;
    memcpy(name, host, n);
    name[n] = '\0';
    return addresses_find(a, name);
}

const char *address_fault(const char *pattern)
{
    char url[URL_ROOM];
    const char *hole = strstr(pattern, "%h");
    int before = (int)(hole ? (size_t)(hole - pattern) : strlen(pattern));
    if (hole && strstr(hole + 2, "%h"))
        return "must have %h only once";
    if (strpbrk(pattern, "?#"))
        return "must have no ? and no #, because paths are put behind it";
    if (snprintf(url, sizeof url, "%.*s%s%s", before, pattern, hole ? "h" : "",
                 hole ? hole + 2 : "") >= (int)sizeof url)
        return "is too long";
    return str_url_fault(url);
}

int addresses_url(const struct addresses *a, const char *pattern, const char *setting,
                  const char *name, char *out, size_t room, struct err *err)
{
    const char *hole = strstr(pattern, "%h");
    const char *known = str_starts(pattern, "https://") ? NULL : addresses_find(a, name);
    const char *host = known ? known : name;
    bool six = strchr(host, ':');
    if (!hole)
        return err_set(err, ERR_USAGE, setting,
                       "must have %%h where the node's name belongs: https://%%h:7443");
    int n = snprintf(out, room, "%.*s%s%s%s%s", (int)(hole - pattern), pattern, six ? "[" : "",
                     host, six ? "]" : "", hole + 2);
    if (n >= (int)room)
        return err_set(err, ERR_USAGE, setting, "gives an address of more than %zu bytes",
                       room - 1);
    while (n && out[n - 1] == '/')
        out[--n] = '\0';
    const char *fault = str_url_fault(out);
    return fault ? err_set(err, ERR_USAGE, setting, "%s", fault) : 0;
}
