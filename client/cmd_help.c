// SPDX-License-Identifier: Apache-2.0
// help and version: what the tables say.
#include <stdio.h>

#include "client/commands.h"
#include "client/exits.h"

int cmd_version(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)c, (void)i, (void)err;
    puts("numaprobe " NUMAPROBE_VERSION);
    return 0;
}

void help_print_usage(const struct command *table, FILE *out)
{
    fputs("usage: numaprobe COMMAND [options]\n\nProbes the memory system of a node through its "
          "daemon, numaprobed.\n\n"
          "commands:\n",
          out);
    for (const struct command *k = table; k->name; k++)
        fprintf(out, "  %-11s %-14s %s\n", k->name, k->operands, k->summary);
    fputs("\noptions of every command (also as NUMAPROBE_URL, … in the environment, or in "
          "~/.config/numaprobe/config):\n",
          out);
    param_print_help(&cli_options, out);
    cli_exits_print(out);
}

// Of all benchmarks, or of the one named.
int help_print_command(const struct command *k, const struct benchmark *only)
{
    printf("usage: numaprobe %s%s%s [options]\n\n%s\n", k->name, *k->operands ? " " : "",
           k->operands, k->summary);
    if (k->options) {
        fputs("\noptions:\n", stdout);
        param_print_help(k->options, stdout);
    }
    for (int b = 0; k->has_spec && b < BENCHMARKS; b++) {
        if (only && only != &benchmarks[b])
            continue;
        printf("\n%s: %s\n", benchmarks[b].name, benchmarks[b].title);
        param_print_help(&benchmarks[b].params, stdout);
    }
    if (k->has_spec) {
        fputs("\nevery benchmark:\n", stdout);
        param_print_help(&spec_common, stdout);
    }
    puts("\noptions of every command:");
    param_print_help(&cli_options, stdout);
    return 0;
}

int cmd_help(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)c;
    if (!i->n) {
        help_print_usage(i->table, stdout);
        return 0;
    }
    const struct command *k = command_find(i->table, i->operands[0]);
    if (!k)
        return err_set(err, ERR_USAGE, "", "there is no command \"%.40s\" (numaprobe help)",
                       i->operands[0]);
    return help_print_command(k, NULL);
}
