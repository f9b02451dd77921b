// SPDX-License-Identifier: Apache-2.0
// A table, because --help and the manual page print the same list.
#include "client/exits.h"

const struct cli_exit cli_exits[] = {
    {CLI_EXIT_SUCCESS, "success; compare: same or faster"},
    {CLI_EXIT_FAILED, "failure"},
    {CLI_EXIT_USAGE, "usage error"},
    {CLI_EXIT_UNREACHABLE, "the daemon does not respond; fleet: no node does"},
    {4, "permission denied"},
    {5, "not found"},
    {CLI_EXIT_BUSY, "the node is busy or has too little memory; fleet: all nodes are busy"},
    {CLI_EXIT_SLOWER, "compare: slower, as a whole or in part; fleet: a node or an effect is"},
    {CLI_EXIT_INCONCLUSIVE, "compare: inconclusive; fleet: too few nodes or runs to judge"},
    {CLI_EXIT_PARTIAL, "fleet: some nodes failed; the output is about the others"},
    {CLI_EXIT_INTERRUPTED, "interrupted"},
    {0, NULL},
};

void cli_exits_print(FILE *out)
{
    fputs("\nexit status:\n", out);
    for (const struct cli_exit *e = cli_exits; e->text; e++)
        fprintf(out, "  %-4d %s\n", e->status, e->text);
    fputs("  " CLI_EXITS_OF_CHECK "\n", out);
}
