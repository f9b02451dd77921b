// SPDX-License-Identifier: Apache-2.0
// Lists of nodes that strangers serve: documents of Prometheus's service discovery, and responses
// of DNS. What is taken is lines that can be read again, in order after sorting.
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/nodeset.h"
#include "nodes/named.h"
#include "nodes/sd.h"
#include "nodes/srv.h"
#include "tests/fuzz/fuzz.h"

static void hold_lines(struct buf *lines)
{
    struct named_node node;
    char last[NODESET_NAME_ROOM] = "";
    struct err err;
    fuzz_hold(named_sort(lines, &err) == 0);
    char *rest = lines->len ? lines->data : NULL;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        fuzz_hold(named_read(&node, line, &err) == 0);
        fuzz_hold(nodeset_name_check(node.name, NULL) == 0 && strlen(node.url) <= NAMED_URL_MAX);
        fuzz_hold(strcmp(last, node.name) <= 0);
        memcpy(last, node.name, strlen(node.name) + 1);
    }
}

void fuzz_sd(const uint8_t *data, size_t size)
{
    CLEANUP_MEM char *text = fuzz_text(data, size);
    CLEANUP_BUF struct buf lines = BUF_INIT;
    struct err err = {0};
    fuzz_accepted = sd_named(text, size, &lines, &err) == 0;
    fuzz_hold(fuzz_accepted || (err.code != ERR_NONE && *err.text));
    if (fuzz_accepted)
        hold_lines(&lines);
}

void fuzz_srv(const uint8_t *data, size_t size)
{
    CLEANUP_MEM unsigned char *bytes = malloc(size ? size : 1); // no byte behind it
    CLEANUP_BUF struct buf lines = BUF_INIT;
    struct err err = {0};
    fuzz_hold(bytes != NULL);
    if (size)
        memcpy(bytes, data, size);
    fuzz_accepted = srv_read(bytes, size, "_numaprobe._tcp.example", &lines, &err) == 0;
    fuzz_hold(fuzz_accepted || (err.code != ERR_NONE && *err.text));
    if (fuzz_accepted)
        hold_lines(&lines);
}
