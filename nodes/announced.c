// SPDX-License-Identifier: Apache-2.0
// The token file is the one of the collector itself, so it says no more than that a line is wrong.
#include "nodes/announced.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/nodeset.h"
#include "model/token.h"
#include "nodes/lines.h"
#include "nodes/named.h"

static int write_announced(const struct token *t, struct buf *out, struct err *err)
{
    CLEANUP_NODESET struct nodeset nodes = {0};
    if (nodeset_parse(&nodes, t->nodes, NULL, err) < 0)
        return -1;
    for (int i = 0; i < nodes.n; i++)
        if (named_write(out, &(struct named_node){.name = nodes.names[i], .url = ANNOUNCED_URL},
                        err) < 0)
            return -1;
    return 0;
}

int announced_named(const char *path, struct buf *out, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct token t;
    int number = 0;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (list_read(path, false, &text, err) < 0)
        return -1;
    char *rest = text.len ? text.data : NULL;
    for (char *line; (line = line_next(&rest));) {
        number++;
        if (*line && (token_read_line(&t, line, err) < 0 || write_announced(&t, out, err) < 0))
            return err_prefix(err, "%.100s:%d", path, number);
    }
    return 0;
}
