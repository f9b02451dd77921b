// SPDX-License-Identifier: Apache-2.0
// Completion scripts, written from the tables: commands, their options, the values of options that
// have a fixed choice, benchmarks. Run numbers, baselines and metrics are asked of the daemon when
// the user presses Tab.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"

// Benchmarks share options: only those are written that none before `benchmark` has.
static bool is_written(const struct param *p, int benchmark)
{
    for (int b = 0; b < benchmark; b++)
        if (param_find(&benchmarks[b].params, p->name))
            return true;
    return false;
}

// --- Words ---------------------------------------------------------------------------------------

static void write_options(const struct param_table *t, int benchmark)
{
    char option[PARAM_OPTION_ROOM];
    for (int i = 0; t && i < t->n; i++)
        if (!is_written(&t->params[i], benchmark))
            printf(" --%s%s", param_option(&t->params[i], option),
                   t->params[i].kind == PARAM_BOOL ? "" : "=");
}

static void write_all_options(const struct command *k)
{
    write_options(k->options, 0);
    write_options(k->of_fleet ? &fleet_settings : NULL, 0);
    write_options(k->has_spec ? &spec_common : NULL, 0);
    for (int b = 0; k->has_spec && b < BENCHMARKS; b++)
        write_options(&benchmarks[b].params, b);
    write_options(&cli_options, 0);
}

static void write_benchmarks(void)
{
    for (int b = 0; b < BENCHMARKS; b++)
        printf(" %s", benchmarks[b].name);
}

// What the shell runs for the words of an operand. By the operand's name in the table.
static const struct {
    const char *operand, *shell;
} asked[] = {
    {"ID", "last $(numaprobe runs -o csv 2>/dev/null | sed 1d | cut -d, -f1)"},
    {"AFTER", "last $(numaprobe runs -o csv 2>/dev/null | sed 1d | cut -d, -f1)"},
    {"BASELINE", "$(numaprobe baseline list -o csv 2>/dev/null | sed 1d | cut -d, -f1)"},
    {"NAME", "$(numaprobe baseline list -o csv 2>/dev/null | sed 1d | cut -d, -f1)"},
    {"METRIC", "$(numaprobe history -o csv 2>/dev/null | sed 1d | cut -d, -f1 | sort -u)"},
};

// "set NAME ID... | list" has the words set and list; "bash|zsh|fish" those three.
static void write_lower_case_words(const char *operands)
{
    for (const char *at = operands; *at;) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        if (n)
            printf(" %.*s", (int)n, at);
        at += n + strcspn(at + n, " |[]");
        at += strspn(at, " |[]");
    }
}

static void write_operands(const struct command *k, const struct command *all)
{
    bool id = false;
    write_lower_case_words(k->operands);
    if (strstr(k->operands, "BENCHMARK"))
        write_benchmarks();
    if (strstr(k->operands, "COMMAND"))
        for (const struct command *c = all; c->name; c++)
            printf(" %s", c->name);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        bool runs = i < 2; // ID and AFTER are the same
        if (!strstr(k->operands, asked[i].operand) || (runs && id) ||
            (strcmp(asked[i].operand, "NAME") == 0 && strcmp(k->name, "baseline") != 0))
            continue;
        id |= runs;
        printf(" %s", asked[i].shell);
    }
}

// --- Values of options ---------------------------------------------------------------------------

static void write_choices(const struct param_table *t, int benchmark)
{
    char option[PARAM_OPTION_ROOM];
    for (int i = 0; t && i < t->n; i++) {
        const struct param *p = &t->params[i];
        if (p->kind != PARAM_ENUM || is_written(p, benchmark))
            continue;
        printf("    --%s) words=\"", param_option(p, option));
        for (int k = 0; p->choices[k]; k++)
            printf("%s%s", k ? " " : "", p->choices[k]);
        puts("\" ;;");
    }
}

static void write_choices_of(const struct command *list)
{
    for (const struct command *k = list; k->name; k++) {
        write_choices(k->options, 0);
        if (k->subcommands)
            write_choices_of(k->subcommands);
    }
}

static void write_all_choices(const struct command *all)
{
    write_choices_of(all);
    write_choices(&spec_common, 0);
    for (int b = 0; b < BENCHMARKS; b++)
        write_choices(&benchmarks[b].params, b);
    write_choices(&cli_options, 0);
    fputs("    --benchmark) words=\"", stdout);
    write_benchmarks();
    printf("\" ;;\n    --run) words=\"%s\" ;;\n", asked[0].shell);
}

// --- Shells --------------------------------------------------------------------------------------

// A branch of a case per command; a subcommand's pattern has both words.
static void write_bash_options(const struct command *list)
{
    for (const struct command *k = list; k->name; k++) {
        if (k->subcommands)
            write_bash_options(k->subcommands);
        printf("    \"%s\") words=\"", k->name);
        write_all_options(k);
        fputs("\" ;;\n", stdout);
    }
}

static void write_bash_operands(const struct command *list, const struct command *all)
{
    for (const struct command *k = list; k->name; k++) {
        if (k->subcommands)
            write_bash_operands(k->subcommands, all);
        printf("    \"%s\") words=\"", k->name);
        write_operands(k, all);
        printf("\"%s ;;\n", strstr(k->operands, "FILE") ? "; compopt -o default 2>/dev/null" : "");
    }
}

static void write_bash_families(const struct command *all)
{
    for (const struct command *k = all; k->name; k++) {
        if (!k->subcommands)
            continue;
        printf("    elif [ \"$COMP_CWORD\" -eq 2 ] && [ \"${COMP_WORDS[1]}\" = %s ]; then\n"
               "        words=\"",
               k->name);
        for (const struct command *s = k->subcommands; s->name; s++)
            printf("%s ", s->name + strlen(k->name) + 1);
        puts("\"");
    }
}

static void write_bash(const struct command *all)
{
    fputs("# completion of numaprobe for bash: source it, or put it into /etc/bash_completion.d\n"
          "_numaprobe() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} option= words=\n"
          "    local before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    COMPREPLY=()\n"
          "    case $command in ",
          stdout);
    for (const struct command *k = all; k->name; k++)
        if (k->subcommands)
            printf("%s) command=\"%s ${COMP_WORDS[2]}\" ;; ", k->name, k->name);
    fputs("esac\n"
          "    # bash takes --size=1 for three words\n"
          "    if [ \"$word\" = = ]; then option=$before word=\n"
          "    elif [ \"$before\" = = ]; then option=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    elif [ \"$before\" = -o ]; then option=--output\n"
          "    fi\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"",
          stdout);
    for (const struct command *k = all; k->name; k++)
        printf("%s ", k->name);
    puts("\"");
    write_bash_families(all);
    fputs("    elif [ -n \"$option\" ]; then\n    case $option in\n", stdout);
    write_all_choices(all);
    fputs("    "
          "--html|--file|--hostfile|--hosts-file|--groups-file|--ssh|--reference|--mapping|--"
          "cacert|--"
          "cert|--key|--token-"
          "file) compopt -o default 2>/dev/null "
          ";;\n"
          "    esac\n    elif [[ $word == -* ]]; then\n    case $command in\n",
          stdout);
    write_bash_options(all);
    fputs("    esac\n    else\n    case $command in\n", stdout);
    write_bash_operands(all, all);
    fputs("    esac\n    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    # no blank after --size=\n"
          "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
          "    return 0\n}\n"
          "complete -F _numaprobe numaprobe\n",
          stdout);
}

static void write_zsh(const struct command *all)
{
    fputs("#compdef numaprobe\nautoload -U +X bashcompinit && bashcompinit\n", stdout);
    write_bash(all);
}

// The first sentence, in single quotes.
static void write_fish_text(const char *text)
{
    const char *end = strstr(text, ". ");
    size_t n = end ? (size_t)(end - text) : strlen(text);
    putchar('\'');
    for (size_t i = 0; i < n && !(i + 1 == n && text[i] == '.'); i++) {
        if (strchr("'\\", text[i]))
            putchar('\\');
        putchar(text[i]);
    }
    putchar('\'');
}

// What must have been typed: "fleet run" is both words.
static void write_fish_condition(const char *command)
{
    const char *blank = strchr(command, ' ');
    printf(" -n '__fish_seen_subcommand_from %.*s", (int)strcspn(command, " "), command);
    if (blank)
        printf("; and __fish_seen_subcommand_from %s", blank + 1);
    putchar('\'');
}

// After `command`; NULL: anywhere.
static void write_fish_options(const char *command, const struct param_table *t, int benchmark)
{
    char option[PARAM_OPTION_ROOM];
    for (int i = 0; t && i < t->n; i++) {
        const struct param *p = &t->params[i];
        if (is_written(p, benchmark))
            continue;
        fputs("complete -c numaprobe", stdout);
        if (command)
            write_fish_condition(command);
        printf(" -l %s%s", param_option(p, option), p->kind == PARAM_BOOL ? "" : " -r");
        if (p->kind == PARAM_ENUM)
            fputs(" -f -a '", stdout);
        for (int k = 0; p->kind == PARAM_ENUM && p->choices[k]; k++)
            printf("%s%s", k ? " " : "", p->choices[k]);
        fputs(p->kind == PARAM_ENUM ? "' -d " : " -d ", stdout);
        write_fish_text(p->help);
        putchar('\n');
    }
}

// `family`: the first word of all names in `list`; NULL: each is one word.
static void write_fish_commands(const struct command *list, const struct command *family,
                                const struct command *all)
{
    for (const struct command *k = list; k->name; k++) {
        fputs("complete -c numaprobe", stdout);
        if (family)
            write_fish_condition(family->name);
        printf("%s -f -a %s -d ", family ? "" : " -n __fish_use_subcommand",
               k->name + (family ? strlen(family->name) + 1 : 0));
        write_fish_text(k->summary);
        fputs("\ncomplete -c numaprobe", stdout);
        write_fish_condition(k->name);
        printf(" %s-a '", strstr(k->operands, "FILE") ? "" : "-f ");
        write_operands(k, all);
        fputs("'\n", stdout);
        write_fish_options(k->name, k->options, 0);
        write_fish_options(k->name, k->subcommands ? &fleet_settings : NULL, 0);
        write_fish_options(k->name, k->has_spec ? &spec_common : NULL, 0);
        for (int b = 0; k->has_spec && b < BENCHMARKS; b++)
            write_fish_options(k->name, &benchmarks[b].params, b);
        if (k->subcommands)
            write_fish_commands(k->subcommands, k, all);
    }
}

static void write_fish(const struct command *all)
{
    write_fish_options(NULL, &cli_options, 0);
    write_fish_commands(all, NULL, all);
}

int cmd_completion(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct {
        const char *name;
        void (*write)(const struct command *all);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    (void)c;
    for (size_t k = 0; k < COUNT_OF(shells); k++)
        if (strcmp(shells[k].name, i->operands[0]) == 0) {
            shells[k].write(i->table);
            return 0;
        }
    return err_set(err, ERR_USAGE, "", "no completion for \"%.40s\": use bash, zsh or fish",
                   i->operands[0]);
}
