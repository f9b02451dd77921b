// SPDX-License-Identifier: Apache-2.0
// help and version: what the tables say.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
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
    fputs("usage: numaprobe COMMAND [options]\n\n"
          "Measures the memory system of a node through its daemon, numaprobed.\n\ncommands:\n",
          out);
    for (const struct command *k = table; k->name; k++)
        fprintf(out, "  %-13s %s\n", k->name, k->summary);
    fputs("\nnumaprobe COMMAND --help describes a command. Examples:\n"
          "  numaprobe run --quick\n  numaprobe show last\n"
          "\noptions of every command (also NUMAPROBE_URL, ... in the environment, and\n"
          "name = value in ~/.config/numaprobe/config):\n",
          out);
    param_print_help(&cli_options, out);
    cli_exits_print(out);
}

// "measure x" -> "Measure x."; then the rest of what there is to say.
static void print_about(const struct command *k)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    buf_fmt(&b, "%c%s.", toupper((unsigned char)*k->summary), k->summary + 1);
    if (k->about)
        buf_fmt(&b, " %s", k->about);
    param_print_paragraph(buf_text(&b), stdout);
}

static void print_benchmarks(const struct benchmark *only)
{
    if (only) {
        printf("\n%s: %s\n", only->name, only->title);
        param_print_help(&only->params, stdout);
    } else {
        puts("\nbenchmarks (numaprobe run BENCHMARK --help lists the options of one):");
        for (int b = 0; b < BENCHMARKS; b++)
            printf("  %-11s %s\n", benchmarks[b].name, benchmarks[b].title);
    }
    puts("\noptions of every benchmark:");
    param_print_help(&spec_common, stdout);
}

static void print_example_lines(const char *lines, FILE *out)
{
    for (const char *at = lines; *at; at += *at == '\n') {
        int n = (int)strcspn(at, "\n");
        fprintf(out, "  %.*s\n", n, at);
        at += n;
    }
}

// Those of the command, or two that name the benchmark whose help this is.
static void print_examples(const struct command *k, const struct benchmark *only)
{
    puts("\nexamples:");
    if (only)
        printf("  numaprobe %s %s\n  numaprobe %s %s --quick\n", k->name, only->name, k->name,
               only->name);
    else
        print_example_lines(k->examples, stdout);
}

void help_print_family(const struct command *family, FILE *out)
{
    fprintf(out, "usage: numaprobe %s COMMAND [options]\n\n", family->name);
    param_print_paragraph(family->about, out);
    fputs("\ncommands:\n", out);
    for (const struct command *k = family->subcommands; k->name; k++)
        fprintf(out, "  %-17s %s\n", k->name, k->summary);
    fprintf(out, "\noptions of every %s command (settings too: NUMAPROBE_AT_ONCE, ...):\n",
            family->name);
    param_print_help(&fleet_settings, out);
    fprintf(out, "\nnumaprobe %s COMMAND --help describes a command.\n\nexamples:\n", family->name);
    print_example_lines(family->examples, out);
}

int help_print_command(const struct command *k, const struct benchmark *only)
{
    CLEANUP_BUF struct buf usage = BUF_INIT;
    if (k->subcommands) {
        help_print_family(k, stdout);
        return 0;
    }
    buf_fmt(&usage, "usage: numaprobe %s%s%s%s", k->name, *k->operands ? " " : "", k->operands,
            k->options || k->has_spec || k->of_fleet ? " [options]" : "");
    param_print_paragraph(buf_text(&usage), stdout);
    putchar('\n');
    print_about(k);
    if (k->options) {
        puts("\noptions:");
        param_print_help(k->options, stdout);
    }
    if (k->has_spec)
        print_benchmarks(only);
    print_examples(k, only);
    puts(k->of_fleet ? "\nnumaprobe help fleet lists the options of every fleet command, such as "
                       "--nodes."
                     : "\nnumaprobe help lists the options of every command.");
    return 0;
}

int cmd_help(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)c;
    if (!i->n) {
        help_print_usage(i->table, stdout);
        return 0;
    }
    int used;
    const struct command *k = command_find(i->table, i->operands, i->n, &used, err);
    if (!k)
        return -1;
    if (used < i->n)
        return err_set(err, ERR_USAGE, "", "one word too many: \"%.60s\"", i->operands[used]);
    return help_print_command(k, NULL);
}
