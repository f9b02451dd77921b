// SPDX-License-Identifier: Apache-2.0
// A table, because --help and the manual page print the same list.
#include "client/exits.h"

const struct cli_exit cli_exits[] = {
    {CLI_EXIT_SUCCESS, "success; compare: same or faster"},
    {1, "failure"},
    {2, "usage error"},
    {3, "the daemon does not respond"},
    {4, "permission denied"},
    {5, "not found"},
    {6, "the node is busy or has too little memory"},
    {CLI_EXIT_SLOWER, "compare: slower, as a whole or in part"},
    {CLI_EXIT_INCONCLUSIVE, "compare: inconclusive"},
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
