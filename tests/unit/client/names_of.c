// SPDX-License-Identifier: Apache-2.0
// The nodes that sources name, for tests that give it files and programs (test_sources.py, and the
// real Slurm of tests/slurm). Words: NODES HOSTFILE FROM_SLURM IDLE GROUPS_FILE GROUP_COMMAND. On
// stdout a name per line; on stderr the member at fault and the error's text, with the exit status
// that the command line has for it.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "nodes/sources.h"

int main(int argc, char **argv)
{
    CLEANUP_NODESET struct nodeset s = {0};
    struct err err = {0};
    if (argc != 7)
        return 2;
    const struct fleet_source q = {argv[1], argv[2], argv[3], strcmp(argv[4], "idle") == 0,
                                   argv[5], argv[6]};
    if (fleet_names(&q, &s, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.member, err.text);
        return err_info(err.code)->exit;
    }
    for (int i = 0; i < s.n; i++)
        puts(s.names[i]);
    return 0;
}
