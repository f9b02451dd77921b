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

// With `others`: of the first words of a command that do not take the options of a run.
static void write_all_options(const struct command *k, bool others)
{
    write_options(others ? NULL : k->options, 0);
    write_options(k->of_fleet ? &fleet_settings : NULL, 0);
    write_options(k->has_spec && !others ? &spec_common : NULL, 0);
    for (int b = 0; k->has_spec && !others && b < BENCHMARKS; b++)
        write_options(&benchmarks[b].params, b);
    write_options(&cli_options, 0);
}

static void write_benchmarks(void)
{
    for (int b = 0; b < BENCHMARKS; b++)
        printf(" %s", benchmarks[b].name);
}

// "set NAME ID... | list" are two forms, of which each begins with a word of its own, its verb.
// "[ID]" is one without.
struct form {
    int verb_n, n;            // characters
    const char *verb, *words; // what stands behind the verb
};

// The form that begins at *at or behind it; false: there is none.
static bool next_form(const char **at, struct form *f)
{
    static const char between[] = " | ";
    const char *begin = *at, *end = strstr(begin, between);
    size_t n = end ? (size_t)(end - begin) : strlen(begin);
    size_t outer = begin[0] == '[' && !memchr(begin, ']', n); // "[fix ID | reopen ID]"
    size_t verb_n = strspn(begin + outer, "abcdefghijklmnopqrstuvwxyz");
    bool word = verb_n && (outer + verb_n == n || begin[outer + verb_n] == ' ');
    if (!*begin)
        return false;
    verb_n = word ? verb_n : 0;
    *f = (struct form){(int)verb_n, (int)(n - outer - verb_n), begin + outer,
                       begin + outer + verb_n};
    *at = begin + n + (end ? strlen(between) : 0);
    return true;
}

// What the shell runs for the words of an operand. By the operand's name in the table, and of which
// commands. ID of a run and AFTER are the same.
#define FIRST_COLUMN " -o csv 2>/dev/null | sed 1d | cut -d, -f1)"
static const char run_numbers[] = "last $(numaprobe runs" FIRST_COLUMN;
static const struct {
    const char *operand, *command, *shell;
} asked[] = {
    {"ID", "fleet campaign", "$(numaprobe fleet campaign list" FIRST_COLUMN},
    {"ID", "fleet findings", "$(numaprobe fleet findings" FIRST_COLUMN},
    {"ID", "", run_numbers},
    {"AFTER", "", run_numbers},
    {"BASELINE", "", "$(numaprobe baseline list" FIRST_COLUMN},
    {"NAME", "baseline", "$(numaprobe baseline list" FIRST_COLUMN},
    {"NAME", "token revoke", "$(numaprobe token list" FIRST_COLUMN},
    {"METRIC", "", "$(numaprobe history -o csv 2>/dev/null | sed 1d | cut -d, -f1 | sort -u)"},
};

// "bash|zsh|fish" are three.
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

// The words of a form behind its verb.
static void write_form(const struct command *k, const struct form *f, const struct command *all)
{
    char words[120], called[80];
    const char *before = "";
    snprintf(words, sizeof words, "%.*s", f->n, f->words);
    snprintf(called, sizeof called, "%s %.*s", k->name, f->verb_n, f->verb);
    write_lower_case_words(words);
    if (strstr(words, "BENCHMARK"))
        write_benchmarks();
    if (strstr(words, "COMMAND"))
        for (const struct command *c = all; c->name; c++)
            printf(" %s", c->name);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        if (!strstr(words, asked[i].operand) || !str_starts(called, asked[i].command) ||
            (strcmp(asked[i].operand, "ID") == 0 && strcmp(before, "ID") == 0))
            continue;
        before = asked[i].operand;
        printf(" %s", asked[i].shell);
    }
}

// The words of all forms without a verb, and the verbs.
static void write_first_operands(const struct command *k, const struct command *all)
{
    struct form f;
    for (const char *at = k->operands; next_form(&at, &f);)
        if (f.verb_n)
            printf(" %.*s", f.verb_n, f.verb);
        else
            write_form(k, &f, all);
}

// --- Values of options ---------------------------------------------------------------------------

static void write_choices(const struct param_table *t, int benchmark)
{
    char option[PARAM_OPTION_ROOM];
    for (int i = 0; t && i < t->n; i++) {
        const struct param *p = &t->params[i];
        if (p->kind != PARAM_ENUM || is_written(p, benchmark))
            continue;
        printf("    --%s) found=\"", param_option(p, option));
        for (int k = 0; p->choices[k]; k++)
            printf("%s%s", k ? " " : "", p->choices[k]);
        puts("\" ;;");
    }
}

// By the word that stands for the value in the help.
static void write_file_options(const struct param_table *t, int benchmark)
{
    static const char *const files[] = {"FILE", "PATH", "PROGRAM"};
    char option[PARAM_OPTION_ROOM];
    for (int i = 0; t && i < t->n; i++)
        for (size_t k = 0; k < COUNT_OF(files); k++)
            if (t->params[i].metavar && strcmp(t->params[i].metavar, files[k]) == 0 &&
                !is_written(&t->params[i], benchmark))
                printf("|--%s", param_option(&t->params[i], option));
}

// Those whose value may be the next word.
static void write_valued(const struct param_table *t, int benchmark)
{
    char option[PARAM_OPTION_ROOM];
    for (int i = 0; t && i < t->n; i++) {
        const struct param *p = &t->params[i];
        if (p->kind == PARAM_BOOL || p->implied || is_written(p, benchmark))
            continue;
        printf("|--%s", param_option(p, option));
        if (p->letter)
            printf("|-%c", p->letter);
    }
}

typedef void options_fn(const struct param_table *t, int benchmark);

static void each_command(const struct command *list, options_fn *fn)
{
    for (const struct command *k = list; k->name; k++) {
        fn(k->options, 0);
        if (k->subcommands)
            each_command(k->subcommands, fn);
    }
}

static void each_table(const struct command *all, options_fn *fn)
{
    each_command(all, fn);
    fn(&fleet_settings, 0);
    fn(&spec_common, 0);
    for (int b = 0; b < BENCHMARKS; b++)
        fn(&benchmarks[b].params, b);
    fn(&cli_options, 0);
}

static void write_all_choices(const struct command *all)
{
    each_table(all, write_choices);
    fputs("    --benchmark) found=\"", stdout);
    write_benchmarks();
    printf("\" ;;\n    --run|--measured) found=\"%s\" ;;\n    \"\"", run_numbers);
    each_table(all, write_file_options);
    puts(") files=yes ;;");
}

// --- Shells --------------------------------------------------------------------------------------

// A branch of a case per command and verb; a subcommand's pattern has both words. Where only one
// verb takes the options of a run, the other verbs come first.
static void write_bash_options(const struct command *list)
{
    struct form f;
    for (const struct command *k = list; k->name; k++) {
        if (k->subcommands)
            write_bash_options(k->subcommands);
        for (const char *at = k->operands; k->spec_verb && next_form(&at, &f);)
            if (strncmp(f.verb, k->spec_verb, (size_t)f.verb_n) != 0) {
                printf("    \"%s %.*s\") found=\"", k->name, f.verb_n, f.verb);
                write_all_options(k, true);
                fputs("\" ;;\n", stdout);
            }
        printf("    \"%s \"*) found=\"", k->name);
        write_all_options(k, false);
        fputs("\" ;;\n", stdout);
    }
}

static void write_bash_files(const struct form *f)
{
    const char *file = strstr(f->words, "FILE");
    printf("\"%s ;;\n", file && file < f->words + f->n ? "; files=yes" : "");
}

static void write_bash_operands(const struct command *list, const struct command *all)
{
    struct form f;
    for (const struct command *k = list; k->name; k++) {
        if (k->subcommands)
            write_bash_operands(k->subcommands, all);
        for (const char *at = k->operands; next_form(&at, &f);)
            if (f.verb_n) {
                printf("    \"%s %.*s\") found=\"", k->name, f.verb_n, f.verb);
                write_form(k, &f, all);
                write_bash_files(&f);
            }
        printf("    \"%s \") found=\"", k->name);
        write_first_operands(k, all);
        write_bash_files(&(struct form){0, (int)strlen(k->operands), "", k->operands});
    }
}

// The command is the first word that is one, and its verb the first one behind that: options may
// stand anywhere.
static void write_bash_commands(const struct command *all)
{
    fputs("        \"\"", stdout);
    for (const struct command *k = all; k->name; k++)
        printf("|\" %s\"", k->name);
    puts(") command=${COMP_WORDS[at]} ;;");
    for (const struct command *k = all; k->name; k++)
        for (const struct command *s = k->subcommands; s && s->name; s++)
            printf("        \"%s\") command=\"%s\" ;;\n", s->name, s->name);
    for (const struct command *k = all; k->name; k++)
        if (k->subcommands)
            printf("        \"help %s\") verb=%s; break ;;\n", k->name, k->name);
}

static void write_bash_verbs(const struct command *list)
{
    struct form f;
    for (const struct command *k = list; k->name; k++) {
        if (k->subcommands)
            write_bash_verbs(k->subcommands);
        for (const char *at = k->operands; next_form(&at, &f);)
            if (f.verb_n)
                printf("|\"%s %.*s\"", k->name, f.verb_n, f.verb);
    }
}

static void write_bash_families(const struct command *all)
{
    for (const struct command *k = all; k->name; k++) {
        if (!k->subcommands)
            continue;
        printf("    elif [ \"$command\" = %s ] || [ \"$command $verb\" = \"help %s\" ]; then\n"
               "        found=\"",
               k->name, k->name);
        for (const struct command *s = k->subcommands; s->name; s++)
            printf("%s ", s->name + strlen(k->name) + 1);
        puts("\"");
    }
}

static void write_bash_where(const struct command *all)
{
    fputs("# found and files: what can stand at the cursor. `word` is what stands there, of\n"
          "# COMP_WORDS as bash has them: --size=1 is three words.\n"
          "_numaprobe_find() {\n"
          "    local at command= verb= option= before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    word=${COMP_WORDS[COMP_CWORD]} found= files=\n"
          "    for ((at = 1; at < COMP_CWORD; at++)); do\n"
          "        case ${COMP_WORDS[at-1]} in\n"
          "        =",
          stdout);
    each_table(all, write_valued);
    fputs(") continue ;; # the value of an option\n"
          "        esac\n"
          "        case \"$command ${COMP_WORDS[at]}\" in\n",
          stdout);
    write_bash_commands(all);
    fputs("        \"\"", stdout);
    write_bash_verbs(all);
    fputs(") verb=${COMP_WORDS[at]}; break ;;\n"
          "        esac\n"
          "    done\n"
          "    if [ \"$word\" = = ]; then option=$before word=\n"
          "    elif [ \"$before\" = = ]; then option=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    elif [ \"$before\" = -o ]; then option=--output\n"
          "    fi\n",
          stdout);
}

static void write_bash_find(const struct command *all)
{
    write_bash_where(all);
    fputs("    case ${option:-$before} in\n", stdout);
    write_all_choices(all);
    fputs("    esac\n"
          "    if [ -n \"$option$found$files\" ]; then :\n"
          "    elif [[ $word == -* ]]; then\n    case \"$command $verb\" in\n",
          stdout);
    write_bash_options(all);
    fputs("    \" \") found=\"", stdout);
    write_options(&cli_options, 0);
    fputs("\" ;;\n"
          "    esac\n    elif [ -z \"$command\" ]; then\n        found=\"",
          stdout);
    for (const struct command *k = all; k->name; k++)
        printf("%s ", k->name);
    puts("\"");
    write_bash_families(all);
    fputs("    else\n    case \"$command $verb\" in\n", stdout);
    write_bash_operands(all, all);
    fputs("    esac\n    fi\n}\n", stdout);
}

static void write_bash(const struct command *all)
{
    fputs("# completion of numaprobe for bash: source it, or put it into /etc/bash_completion.d\n",
          stdout);
    write_bash_find(all);
    fputs("_numaprobe() {\n"
          "    local word found files\n"
          "    _numaprobe_find\n"
          "    [ -n \"$files\" ] && compopt -o default 2>/dev/null\n"
          "    COMPREPLY=($(compgen -W \"$found\" -- \"$word\"))\n"
          "    # no blank after --size=\n"
          "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
          "    return 0\n}\n"
          "complete -F _numaprobe numaprobe\n",
          stdout);
}

// zsh takes --size=1 for one word. The first call may be that of the file, which zsh reads then.
static void write_zsh(const struct command *all)
{
    fputs(
        "#compdef numaprobe\n"
        "# completion of numaprobe for zsh: source it behind compinit, or put it into a folder of\n"
        "# $fpath as _numaprobe\n",
        stdout);
    write_bash_find(all);
    fputs("_numaprobe_zsh_find() {\n"
          "    emulate -L ksh\n"
          "    _numaprobe_find\n"
          "}\n"
          "_numaprobe() {\n"
          "    local -a COMP_WORDS list\n"
          "    local COMP_CWORD word found files each\n"
          "    for each in \"${(@)words[1,CURRENT-1]}\" \"$PREFIX\"; do\n"
          "        if [[ $each == --*=* ]]; then COMP_WORDS+=(\"${each%%=*}\" = \"${each#*=}\")\n"
          "        else COMP_WORDS+=(\"$each\")\n"
          "        fi\n"
          "    done\n"
          "    COMP_CWORD=$((${#COMP_WORDS} - 1))\n"
          "    _numaprobe_zsh_find\n"
          "    [[ $PREFIX == --*=* ]] && compset -P '*='\n"
          "    list=(${=found})\n"
          "    # no blank after --size=\n"
          "    compadd -S '' -- ${(M)list:#*=}\n"
          "    compadd -- ${list:#*=}\n"
          "    [[ -z $files ]] || _files\n"
          "}\n"
          "if [[ ${funcstack[1]} == _numaprobe ]]; then _numaprobe \"$@\"\n"
          "else compdef _numaprobe numaprobe\n"
          "fi\n",
          stdout);
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

// What the words before the cursor begin with: "fleet run" is both. With `no_verb` no verb of the
// command follows.
static void write_fish_condition(const struct command *k, const struct form *verb, bool no_verb)
{
    struct form f;
    printf(" -n '__numaprobe_at %s", k->name);
    if (verb)
        printf(" %.*s", verb->verb_n, verb->verb);
    for (const char *at = k->operands; no_verb && next_form(&at, &f);)
        if (f.verb_n)
            printf("; and not __numaprobe_at %s %.*s", k->name, f.verb_n, f.verb);
    putchar('\'');
}

// After the command; NULL: anywhere.
static void write_fish_options(const struct command *k, const struct param_table *t, int benchmark)
{
    char option[PARAM_OPTION_ROOM];
    const char *const word = k && k->spec_verb ? k->spec_verb : "";
    const struct form verb = {(int)strlen(word), 0, word, ""};
    for (int i = 0; t && i < t->n; i++) {
        const struct param *p = &t->params[i];
        if (is_written(p, benchmark))
            continue;
        fputs("complete -c numaprobe", stdout);
        if (k)
            write_fish_condition(k, k->spec_verb ? &verb : NULL, false);
        if (p->letter)
            printf(" -s %c", p->letter);
        printf(" -l %s%s", param_option(p, option), p->kind == PARAM_BOOL ? "" : " -r");
        if (p->kind == PARAM_ENUM)
            fputs(" -f -a '", stdout);
        for (int choice = 0; p->kind == PARAM_ENUM && p->choices[choice]; choice++)
            printf("%s%s", choice ? " " : "", p->choices[choice]);
        fputs(p->kind == PARAM_ENUM ? "' -d " : " -d ", stdout);
        write_fish_text(p->help);
        putchar('\n');
    }
}

static void write_fish_operands(const struct command *k, const struct command *all)
{
    struct form f;
    const char *const files = strstr(k->operands, "FILE") ? "" : "-f ";
    fputs("complete -c numaprobe", stdout);
    write_fish_condition(k, NULL, true);
    printf(" %s-a '", files);
    write_first_operands(k, all);
    fputs("'\n", stdout);
    for (const char *at = k->operands; next_form(&at, &f);)
        if (f.verb_n) {
            fputs("complete -c numaprobe", stdout);
            write_fish_condition(k, &f, false);
            printf(" %s-a '", files);
            write_form(k, &f, all);
            fputs("'\n", stdout);
        }
}

// `family`: the first word of all names in `list`; NULL: each is one word.
static void write_fish_commands(const struct command *list, const struct command *family,
                                const struct command *all)
{
    for (const struct command *k = list; k->name; k++) {
        fputs("complete -c numaprobe", stdout);
        if (family)
            printf(" -n '__numaprobe_ends %s; or __numaprobe_ends help %s'", family->name,
                   family->name);
        printf("%s -f -a %s -d ", family ? "" : " -n __numaprobe_ends",
               k->name + (family ? strlen(family->name) + 1 : 0));
        write_fish_text(k->summary);
        putchar('\n');
        if (!k->subcommands)
            write_fish_operands(k, all);
        write_fish_options(k, k->options, 0);
        write_fish_options(k, k->subcommands ? &fleet_settings : NULL, 0);
        write_fish_options(k, k->has_spec ? &spec_common : NULL, 0);
        for (int b = 0; k->has_spec && b < BENCHMARKS; b++)
            write_fish_options(k, &benchmarks[b].params, b);
        if (k->subcommands)
            write_fish_commands(k->subcommands, k, all);
    }
}

static void write_fish(const struct command *all)
{
    fputs("# Words before the cursor that are no options, without the program.\n"
          "function __numaprobe_words\n"
          "    set -l words (commandline -opc)\n"
          "    set -e words[1]\n"
          "    set -l before\n"
          "    set -l valued (string split -n '|' -- '",
          stdout);
    each_table(all, write_valued);
    fputs(
        "')\n"
        "    for word in $words\n"
        "        string match -q -- '-*' $word; or contains -- \"$before\" $valued; or echo $word\n"
        "        set before $word\n"
        "    end\n"
        "end\n"
        "# Do they begin with these? Are they these?\n"
        "function __numaprobe_at\n"
        "    set -l words (__numaprobe_words)\n"
        "    set -l n (count $argv)\n"
        "    test (count $words) -ge $n; and test \"$words[1..$n]\" = \"$argv\"\n"
        "end\n"
        "function __numaprobe_ends\n"
        "    set -l words (__numaprobe_words)\n"
        "    test \"$words\" = \"$argv\"\n"
        "end\n",
        stdout);
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
