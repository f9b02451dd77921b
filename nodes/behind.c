// SPDX-License-Identifier: Apache-2.0
// The document has node sets by state. A state of a newer version is passed on as it is.
#include "nodes/behind.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "model/nodeset.h"
#include "nodes/named.h"

int behind_check(const char *url, struct err *err)
{
    const char *host = strstr(url, "://");
    if ((!str_starts(url, "http://") && !str_starts(url, "https://")) || !host[3] ||
        strpbrk(host + 3, "/?#@% "))
        return err_set(err, ERR_USAGE, "source",
                       "needs the address of a collector, without a path: https://HOST:7790");
    const char *fault = str_url_fault(url);
    if (fault)
        return err_set(err, ERR_USAGE, "source", "the address of a collector %s", fault);
    return strlen(url) <= BEHIND_MAX
               ? 0
               : err_set(err, ERR_USAGE, "source",
                         "the address of a collector has at most %d bytes", BEHIND_MAX);
}

static int write_behind(const char *set, const char *state, const char *url, struct buf *out,
                        struct err *err)
{
    CLEANUP_NODESET struct nodeset nodes = {0};
    if (nodeset_parse(&nodes, set, NULL, err) < 0)
        return -1;
    for (int i = 0; i < nodes.n; i++)
        if (named_write(out,
                        &(struct named_node){.name = nodes.names[i], .url = url, .state = state},
                        err) < 0)
            return -1;
    return 0;
}

int behind_named(const char *text, size_t n, const char *url, struct buf *out, struct err *err)
{
    CLEANUP_JSON struct json *root = json_parse_within(text, n, BEHIND_MEMORY_MAX, err);
    char behind[sizeof BEHIND_URL + BEHIND_MAX];
    if (!root)
        return -1;
    if (!json_is_array(json_get(root, "gone")))
        return err_set(err, ERR_INVALID, "", "the response is not that of a collector");
    snprintf(behind, sizeof behind, BEHIND_URL "%s", url);
    for (const struct json *state = json_first(root); state; state = json_next(state)) {
        if (strcmp(json_name(state), "gone") == 0)
            continue;
        for (const struct json *set = json_first(state); set; set = json_next(set))
            if (!json_text(set))
                return err_set(err, ERR_INVALID, json_name(state), "must be an array of node sets");
            else if (write_behind(json_text(set), json_name(state), behind, out, err) < 0)
                return -1;
    }
    return 0;
}
