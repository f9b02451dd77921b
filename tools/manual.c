// SPDX-License-Identifier: Apache-2.0
// Writes the manual pages: copies a template from stdin to stdout and puts the tables of options,
// commands and exit statuses where it says @OPTIONS@, @COMMANDS@ …, so that the manual cannot say
// anything else than --help.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "bench/session/options.h"
#include "client/commands.h"
#include "client/exits.h"
#if MANUAL_DAEMONS
#include "daemon/config.h"
#include "fleet/settings/config.h"
#endif

// A minus that is one, and no line that begins like a request.
static void text(const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", stdout);
    for (; *s; s++)
        if (*s == '-')
            fputs("\\-", stdout);
        else if (*s == '\\')
            fputs("\\e", stdout);
        else
            putchar(*s);
}

static void head(const struct param *p)
{
    char name[PARAM_OPTION_ROOM];
    fputs(".TP\n.BI \\-\\-", stdout);
    text(param_option(p, name));
    if (p->kind == PARAM_ENUM) {
        for (int i = 0; p->choices[i]; i++) {
            putchar(i ? '|' : '=');
            text(p->choices[i]);
        }
    } else if (p->kind != PARAM_BOOL) {
        printf("= %s", p->metavar ? p->metavar : p->kind == PARAM_BYTES ? "SIZE" : "N");
    }
    putchar('\n');
}

static void table(const struct param_table *t)
{
    for (int i = 0; i < t->n; i++) {
        const struct param *p = &t->params[i];
        head(p);
        text(p->help);
        if (*p->def && p->kind != PARAM_BOOL) {
            fputs(" Default ", stdout);
            text(p->def);
            printf("%s%s.", p->unit ? " " : "", p->unit ? p->unit : "");
        }
        putchar('\n');
    }
}

static void options(void)
{
    for (int i = 0; i < BENCHMARKS; i++) {
        printf(".SS %s\n", benchmarks[i].name);
        text(benchmarks[i].help);
        putchar('\n');
        table(&benchmarks[i].params);
    }
    puts(".SS All benchmarks");
    table(&options_own);
}

// ---- numaprobe(1) -------------------------------------------------------------------------------

static void examples(const char *lines)
{
    fputs(".PP\n.nf\n.RS\n", stdout);
    text(lines);
    fputs("\n.RE\n.fi\n", stdout);
}

static void command(const struct command *k)
{
    fputs(".SS ", stdout);
    text(k->name);
    putchar(*k->operands ? ' ' : '\n');
    if (*k->operands) {
        text(k->operands);
        putchar('\n');
    }
    putchar(toupper((unsigned char)*k->summary));
    text(k->summary + 1);
    puts(".");
    if (k->about) {
        text(k->about);
        putchar('\n');
    }
    if (k->alias)
        printf("Alias: %s.\n", k->alias);
    if (k->subcommands)
        table(&fleet_settings);
    if (k->options)
        table(k->options);
    examples(k->examples);
}

static void commands_of(const struct command *list)
{
    for (const struct command *k = list; k->name; k++) {
        command(k);
        if (k->subcommands)
            commands_of(k->subcommands);
    }
}

static void all_commands(void)
{
    commands_of(commands);
}

// Of a run: each benchmark's, then those that all have.
static void run_members(void)
{
    for (int i = 0; i < BENCHMARKS; i++) {
        printf(".SS run %s\n", benchmarks[i].name);
        text(benchmarks[i].help);
        putchar('\n');
        table(&benchmarks[i].params);
    }
    puts(".SS run, every benchmark");
    table(&spec_common);
}

static void client_options(void)
{
    table(&cli_options);
}

static void exits(void)
{
    for (const struct cli_exit *e = cli_exits; e->text; e++)
        printf(".TP\n.B %d\n%s\n", e->status, e->text);
    puts(".PP\n" CLI_EXITS_OF_CHECK ".");
}

#if MANUAL_DAEMONS

// ---- numaprobed(8) ------------------------------------------------------------------------------

static void setting(const struct param *p)
{
    printf(".TP\n.BI \"");
    text(p->name);
    printf(" = \"");
    if (p->kind == PARAM_ENUM)
        for (int i = 0; p->choices[i]; i++) {
            fputs(i ? "|" : " ", stdout);
            text(p->choices[i]);
        }
    else
        printf(" %s", p->metavar               ? p->metavar
                      : p->kind == PARAM_BOOL  ? "true|false"
                      : p->kind == PARAM_BYTES ? "SIZE"
                                               : "N");
    putchar('\n');
    text(p->help);
    if (*p->def) {
        fputs(" Default ", stdout);
        text(p->def);
        printf("%s%s.", p->unit ? " " : "", p->unit ? p->unit : "");
    }
    puts(p->live ? "\nTakes effect on a reload." : "");
}

static void settings_of(const struct param_table *t)
{
    for (int i = 0; i < t->n; i++)
        setting(&t->params[i]);
}

static void settings(void)
{
    settings_of(&config_table);
    settings_of(&http_settings_table);
    settings_of(&policy_table);
}

static void daemon_options(void)
{
    table(&config_table);
    table(&http_settings_table);
    table(&config_actions);
    table(&settings_actions);
}

static void admission(void)
{
    table(&policy_table);
}

// ---- numaprobe-fleetd(8) ------------------------------------------------------------------------

static void fleetd_options(void)
{
    table(&fleetd_table);
    table(&http_settings_table);
    table(&fleetd_actions);
    table(&settings_actions);
}

static void fleetd_settings(void)
{
    settings_of(&fleetd_table);
    settings_of(&http_settings_table);
}

#endif

int main(void)
{
    static const struct {
        const char *mark;
        void (*write)(void);
    } parts[] = {
        {"@OPTIONS@\n", options},
        {"@COMMANDS@\n", all_commands},
        {"@RUN@\n", run_members},
        {"@CLIENT@\n", client_options},
        {"@EXITS@\n", exits},
#if MANUAL_DAEMONS
        {"@SETTINGS@\n", settings},
        {"@DAEMON@\n", daemon_options},
        {"@ADMISSION@\n", admission},
        {"@FLEETD@\n", fleetd_options},
        {"@FLEETD_SETTINGS@\n", fleetd_settings},
#endif
    };
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        size_t i = 0;
        while (i < COUNT_OF(parts) && strcmp(line, parts[i].mark) != 0)
            i++;
        if (i < COUNT_OF(parts))
            parts[i].write();
        else
            fputs(line, stdout);
    }
    return fflush(stdout) == 0 && !ferror(stdout) && !ferror(stdin) ? 0 : 1;
}
