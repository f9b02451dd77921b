// SPDX-License-Identifier: Apache-2.0
// Completion scripts, written from the tables: command names, and the options of each.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/commands.h"

// Benchmarks share options: only those are told that none before `benchmark` has.
static bool told(const struct param *p, int benchmark)
{
    for (int b = 0; b < benchmark; b++)
        if (param_find(&benchmarks[b].params, p->name))
            return true;
    return false;
}

static void cmd_completion_option_words(const struct param_table *t, int benchmark,
                                        const char *separator)
{
    for (int i = 0; t && i < t->n; i++) {
        if (told(&t->params[i], benchmark))
            continue;
        char option[PARAM_OPTION_ROOM];
        printf("%s%s", separator, param_option(&t->params[i], option));
        if (t->params[i].kind != PARAM_BOOL && *separator == ' ')
            putchar('=');
    }
}

static void all_options(const struct command *k, const char *separator)
{
    cmd_completion_option_words(k->options, 0, separator);
    cmd_completion_option_words(k->has_spec ? &spec_common : NULL, 0, separator);
    for (int b = 0; k->has_spec && b < BENCHMARKS; b++)
        cmd_completion_option_words(&benchmarks[b].params, b, separator);
    cmd_completion_option_words(&cli_options, 0, separator);
}

static void bash(const struct command *all)
{
    fputs("# completion of numaprobe for bash: source it, or put it into /etc/bash_completion.d\n"
          "_numaprobe() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"",
          stdout);
    for (const struct command *k = all; k->name; k++)
        printf("%s ", k->name);
    fputs("\" -- \"$word\"))\n        return\n    fi\n    case $command in\n", stdout);
    for (const struct command *k = all; k->name; k++) {
        printf("    %s) COMPREPLY=($(compgen -W \"", k->name);
        all_options(k, " --");
        fputs("\" -- \"$word\")) ;;\n", stdout);
    }
    fputs("    esac\n    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n}\n"
          "complete -F _numaprobe numaprobe\n",
          stdout);
}

static void zsh(const struct command *all)
{
    fputs("#compdef numaprobe\nautoload -U +X bashcompinit && bashcompinit\n", stdout);
    bash(all);
}

static void fish(const struct command *all)
{
    for (const struct command *k = all; k->name; k++) {
        printf("complete -c numaprobe -n __fish_use_subcommand -f -a %s -d '%s'\n", k->name,
               k->summary);
        printf("complete -c numaprobe -n '__fish_seen_subcommand_from %s' -f -a '", k->name);
        all_options(k, " --");
        fputs("'\n", stdout);
    }
}

int cmd_completion(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct {
        const char *name;
        void (*write)(const struct command *all);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    (void)c;
    for (size_t k = 0; k < COUNT_OF(shells); k++)
        if (strcmp(shells[k].name, i->operands[0]) == 0) {
            shells[k].write(i->table);
            return 0;
        }
    return err_set(err, ERR_USAGE, "", "there is no completion for \"%.40s\": bash, zsh or fish",
                   i->operands[0]);
}
