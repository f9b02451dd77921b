// SPDX-License-Identifier: Apache-2.0
// Node sets for another implementation to check (test_nodeset_oracle.py). A set a line on stdin;
// on stdout a line with its fold, a tab, and its names. What is refused begins with "error: ".
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/nodeset.h"

int main(void)
{
    static char line[NODESET_TEXT_MAX + 2];
    while (fgets(line, sizeof line, stdin)) {
        CLEANUP_NODESET struct nodeset s = {0};
        CLEANUP_BUF struct buf fold = BUF_INIT;
        struct err err = {0};
        line[strcspn(line, "\n")] = '\0';
        if (nodeset_parse(&s, line, NULL, &err) < 0) {
            printf("error: %s\n", err.text);
            continue;
        }
        nodeset_fold(&s, &fold);
        printf("%s\t", buf_text(&fold));
        for (int i = 0; i < s.n; i++)
            printf("%s%s", i ? " " : "", s.names[i]);
        putchar('\n');
    }
    return 0;
}
