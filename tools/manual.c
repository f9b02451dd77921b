// SPDX-License-Identifier: Apache-2.0
// Writes numa_bench(1): copies its template from stdin to stdout and puts the parameter tables
// where the template says @OPTIONS@, so that the manual cannot say anything else than --help.
#include <stdio.h>
#include <string.h>

#include "bench/options.h"

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

int main(void)
{
    char line[1024];
    while (fgets(line, sizeof line, stdin))
        if (strcmp(line, "@OPTIONS@\n") == 0)
            options();
        else
            fputs(line, stdout);
    return fflush(stdout) == 0 && !ferror(stdout) && !ferror(stdin) ? 0 : 1;
}
