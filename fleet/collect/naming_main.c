// SPDX-License-Identifier: Apache-2.0
// Each source has a process of its own: a document that ends it, or takes all of its memory or
// time, holds up no other source.
#include "fleet/collect/naming_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/written.h"
#include "core/os/child.h"
#include "fetch/fetch.h"
#include "model/nodeset.h"
#include "nodes/addresses.h"
#include "nodes/announced.h"
#include "nodes/behind.h"
#include "nodes/lines.h"
#include "nodes/named.h"
#include "nodes/sd.h"
#include "nodes/srv.h"

static void addresses_cleanup(struct addresses **a)
{
    addresses_free(*a);
}

// By https the host of the address may be in hosts_file, as that of a node.
static int read_document(const struct fleetd_config *c, const char *url, const char *token,
                         struct fetch_response *r, struct err *err)
{
    const struct fetch_tls tls = {c->node_ca, c->node_certificate, c->node_key};
    struct addresses *known CLEANUP(addresses_cleanup) = NULL;
    if (str_starts(url, "https://") && !(known = fleetd_addresses(c, err)))
        return -1;
    const struct fetch_request q = {.url = url,
                                    .address = addresses_of_url(known, url),
                                    .tls = &tls,
                                    .token = token,
                                    .headers = {"Accept: application/json"}};
    if (fetch_one(&q, r) != FETCH_OK)
        return err_set(err, ERR_UNAVAILABLE, "source", "%s", fetch_error_info(r->error)->text);
    if (r->status != 200)
        return err_set(err, ERR_UNAVAILABLE, "source", "the response has status %d", r->status);
    return 0;
}

static int read_http_sd(const struct fleetd_config *c, const char *url, struct buf *out,
                        struct err *err)
{
    struct fetch_response r CLEANUP(fetch_response_free) = {0};
    return read_document(c, url, NULL, &r, err) < 0
               ? -1
               : sd_named(buf_text(&r.body), r.body.len, out, err);
}

// With the token for nodes, which does not travel in clear.
static int read_collector(const struct fleetd_config *c, const char *url, struct buf *out,
                          struct err *err)
{
    struct fetch_response r CLEANUP(fetch_response_free) = {0};
    char token[FLEETD_TOKEN_ROOM] = "", address[BEHIND_MAX + 32];
    if (str_starts(url, "https://") && fleetd_node_token(c, token, err) < 0)
        return -1;
    snprintf(address, sizeof address, "%s/v1/fleet/states", url);
    return read_document(c, address, token, &r, err) < 0
               ? -1
               : behind_named(buf_text(&r.body), r.body.len, url, out, err);
}

static int read_file_sd(const char *path, struct buf *out, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    return list_read(path, false, &text, err) < 0 ? -1
                                                  : sd_named(buf_text(&text), text.len, out, err);
}

// Of "https://%h:7443" the address of this machine. It can be longer than a URL may be: it is
// refused where it is written.
enum { HERE_ROOM = NAMED_URL_MAX + sizeof "localhost" };
static void here_url(const char *said, char out[static HERE_ROOM])
{
    const char *hole = strstr(said, "%h");
    if (!*said)
        snprintf(out, HERE_ROOM, "%s", HERE_URL);
    else if (hole)
        snprintf(out, HERE_ROOM, "%.*slocalhost%s", (int)(hole - said), said, hole + 2);
    else
        snprintf(out, HERE_ROOM, "%s", said);
}

// No machine calls itself localhost, and a page of another name than was requested is not stored.
// So what a source calls localhost has the name of this machine, and is contacted where it said.
static int name_localhost(struct buf *lines, struct err *err)
{
    static const char later[] = "\nlocalhost\t";
    const char *first = later + 1, *text = buf_text(lines);
    char own[NODESET_NAME_ROOM] = "", url[HERE_ROOM];
    CLEANUP_BUF struct buf named = BUF_INIT;
    struct named_node node;
    if ((!str_starts(text, first) && !strstr(text, later)) ||
        gethostname(own, sizeof own - 1) < 0 || nodeset_name_check(own, NULL) < 0)
        return 0;
    char *rest = lines->len ? lines->data : NULL;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (named_read(&node, line, err) < 0)
            return -1;
        if (strcmp(node.name, "localhost") == 0) {
            here_url(node.url, url);
            node.name = own;
            node.url = url;
        }
        if (named_write(&named, &node, err) < 0)
            return -1;
    }
    buf_free(lines);
    *lines = named;
    named = BUF_INIT;
    return 0;
}

int naming_read(const struct fleetd_config *c, const char *source, struct buf *out, struct err *err)
{
    const struct fleet_source groups = {.groups_file = c->groups_file,
                                        .group_command = c->group_command};
    enum source_kind kind;
    const char *where = source_split(source, &kind, err);
    int rc = !where                     ? -1
             : kind == SOURCE_SRV       ? srv_named(where, out, err)
             : kind == SOURCE_HTTP_SD   ? read_http_sd(c, where, out, err)
             : kind == SOURCE_FILE_SD   ? read_file_sd(where, out, err)
             : kind == SOURCE_ANNOUNCE  ? announced_named(where, out, err)
             : kind == SOURCE_COLLECTOR ? read_collector(c, where, out, err)
                                        : source_named(kind, where, &groups, out, err);
    bool contacted = kind != SOURCE_ANNOUNCE && kind != SOURCE_COLLECTOR;
    return rc < 0 || (contacted && name_localhost(out, err) < 0) ? -1 : named_sort(out, err);
}

int naming_main(int argc, char **argv)
{
    enum { WORDS = 9 };
    CLEANUP_BUF struct buf out = BUF_INIT;
    static struct fleetd_config c;
    static char source[FLEETD_SOURCE_MAX];
    struct err err = {0};
    if (argc != WORDS || !child_read_text(STDIN_FILENO, source, sizeof source) ||
        !child_limit_memory(NAMING_MEMORY))
        return 2;
    snprintf(c.groups_file, sizeof c.groups_file, "%s", argv[2]);
    snprintf(c.group_command, sizeof c.group_command, "%s", argv[3]);
    snprintf(c.node_ca, sizeof c.node_ca, "%s", argv[4]);
    snprintf(c.node_certificate, sizeof c.node_certificate, "%s", argv[5]);
    snprintf(c.node_key, sizeof c.node_key, "%s", argv[6]);
    snprintf(c.node_token_file, sizeof c.node_token_file, "%s", argv[7]);
    snprintf(c.hosts_file, sizeof c.hosts_file, "%s", argv[8]);
    bool failed = naming_read(&c, source, &out, &err) < 0;
    if (failed)
        printf("!%s\n", err.text);
    else if (out.len)
        fwrite(out.data, 1, out.len, stdout);
    return !all_written(stdout) || failed;
}
