// SPDX-License-Identifier: Apache-2.0
// Writes numa_bench(1) and numaprobed.conf(5): copies a template from stdin to stdout and puts the
// parameter tables where it says @OPTIONS@ or @SETTINGS@, so that the manual cannot say anything
// else than --help.
#include <stdio.h>
#include <string.h>

#include "bench/session/options.h"
#include "daemon/config.h"

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
    char name[64];
    snprintf(name, sizeof name, "--%s", p->name);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    fputs(".TP\n.BI ", stdout);
    text(name);
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

static void settings(void)
{
    for (int i = 0; i < config_table.n; i++)
        setting(&config_table.params[i]);
    for (int i = 0; i < policy_table.n; i++)
        setting(&policy_table.params[i]);
}

int main(void)
{
    char line[1024];
    while (fgets(line, sizeof line, stdin))
        if (strcmp(line, "@OPTIONS@\n") == 0)
            options();
        else if (strcmp(line, "@SETTINGS@\n") == 0)
            settings();
        else
            fputs(line, stdout);
    return fflush(stdout) == 0 && !ferror(stdout) && !ferror(stdin) ? 0 : 1;
}
