// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/print.h"
#include "tests/unit/tap.h"

static void spark(const double *v, int n, const char *want, const char *what)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    print_sparkline(&b, v, n);
    CHECK(strcmp(buf_text(&b), want) == 0, "sparkline: %s (%s)", what, buf_text(&b));
}

static void test_sparkline(void)
{
    const double rise[] = {0, 1, 2, 3, 4, 5, 6, 7}, hole[] = {1, NAN, 2};
    const double flat[] = {100, 100, 100}, noise[] = {100, 100.2, 99.9};
    const double zero[] = {0, 0}, none[] = {NAN, NAN}, below[] = {-2, 0, 2};
    spark(rise, 8, "▁▂▃▄▅▆▇█", "lowest to highest");
    spark(hole, 3, "▁ █", "a missing value is a gap");
    spark(flat, 3, "▅▅▅", "no difference lies in the middle");
    spark(noise, 3, "▄▅▄", "noise of a per mille stays flat");
    spark(zero, 2, "▁▁", "nothing but zero");
    spark(none, 2, "  ", "nothing known");
    spark(below, 3, "▁▅█", "values below zero");
    spark(rise, 0, "", "no values");
}

static void test_unicode(void)
{
    struct cli c = {.to_terminal = true};
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    setenv("LANG", "de_DE.UTF-8", 1);
    CHECK(print_unicode(&c), "a terminal and a UTF-8 locale");
    setenv("LC_ALL", "C", 1);
    CHECK(!print_unicode(&c), "LC_ALL goes before LANG");
    setenv("LC_ALL", "C.utf8", 1);
    CHECK(print_unicode(&c), "the other spelling");
    c.to_terminal = false;
    CHECK(!print_unicode(&c), "never into a file");
}

static void print_grid(const struct grid *g, const struct cli *c, char *shown, size_t room)
{
    FILE *file = tmpfile();
    int before = dup(STDOUT_FILENO);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    grid_print(g, c);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(file);
    shown[fread(shown, 1, room - 1, file)] = '\0';
    fclose(file);
}

// A label as wide as it is on a terminal, and what stands right of it.
static void test_wide_cells(void)
{
    static const struct column columns[] = {{.name = "label", .title = "LABEL"},
                                            {.name = "n", .title = "N", .number = true}};
    static const char *const labels[] = {"plain", "漢字", "🐧 e\xcc\x81"};
    static const char want[] = "LABEL  N\nplain  1\n漢字   1\n🐧 e\xcc\x81   1\n";
    char shown[200] = "";
    struct cli c = {.output = OUTPUT_TABLE};
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        grid_cell(&g, "%s", labels[i]);
        grid_cell(&g, "1");
    }
    print_grid(&g, &c, shown, sizeof shown);
    CHECK_STR(shown, want, "columns line up");
}

// Tables are for people, the other formats for programs: these have a column that no table has.
static void test_large_numbers(void)
{
    static const struct column columns[] = {{.name = "text", .title = "TEXT"},
                                            {.name = "n", .title = "N", .number = true},
                                            {.name = "unit"}};
    static const struct {
        enum output output;
        const char *want;
    } all[] = {
        {OUTPUT_TABLE, "TEXT        N\n1e9   8841230\n"},
        {OUTPUT_NDJSON, "{\"text\":\"1e9\",\"n\":8.84123e+06,\"unit\":\"ns\"}\n"},
        {OUTPUT_CSV, "text,n,unit\n1e9,8.84123e+06,ns\n"},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct cli c = {.output = all[i].output};
        struct grid g CLEANUP(grid_fini);
        char shown[200];
        grid_init(&g, columns, COUNT_OF(columns));
        grid_cell(&g, "1e9");
        grid_number(&g, 8841234.5);
        grid_cell(&g, "ns");
        print_grid(&g, &c, shown, sizeof shown);
        CHECK_STR(shown, all[i].want, "a number of seven figures, format %d", (int)all[i].output);
    }
}

static void test_rounded(void)
{
    static const struct column columns[] = {
        {.name = "value", .title = "VALUE", .number = true, .rounded = true}};
    static const enum output outputs[] = {OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_NDJSON};
    static const char lines[] = "{\"value\":122.271}\n{\"value\":1.2}\n{\"value\":20834.1}\n"
                                "{\"value\":-98.76}\n{\"value\":null}\n";
    static const char *const wants[] = {" VALUE\n 122.3\n 1.200\n 20834\n-98.76\n\n",
                                        "value\n122.271\n1.2\n20834.1\n-98.76\n\n", lines};
    for (size_t i = 0; i < COUNT_OF(outputs); i++) {
        struct cli c = {.output = outputs[i]};
        struct grid g CLEANUP(grid_fini);
        char shown[200];
        grid_init(&g, columns, COUNT_OF(columns));
        grid_number(&g, 122.271);
        grid_number(&g, 1.2);
        grid_number(&g, 20834.12);
        grid_number(&g, -98.76);
        grid_number(&g, NAN);
        print_grid(&g, &c, shown, sizeof shown);
        CHECK_STR(shown, wants[i], "four digits for people, six for programs: format %d",
                  (int)outputs[i]);
    }
}

// Without a terminal to ask, one of 80 columns.
static void test_narrow(void)
{
    static const struct column columns[] = {{.name = "name", .title = "NAME"},
                                            {.name = "from", .title = "FROM", .spare = true},
                                            {.name = "to", .title = "TO", .spare = true},
                                            {.name = "text", .title = "TEXT", .wraps = true}};
    static const struct {
        int name, text;
        const char *want;
    } all[] = {
        {4, 50, "NAME  FROM        TO          TEXT\n"},
        {20, 45, "NAME                  TO          TEXT\n"},
        {30, 49, "NAME                            TEXT\n"},
        {30, 96, "NAME                            TEXT\n"},
        {60, 49, "NAME  aaaaaaaaa aaaaaaaaa "},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct cli c = {.output = OUTPUT_TABLE, .to_terminal = true};
        struct grid g CLEANUP(grid_fini);
        CLEANUP_BUF struct buf words = BUF_INIT;
        char shown[1000];
        for (int k = 1; k <= 100; k++)
            buf_char(&words, k % 10 ? 'a' : ' ');
        grid_init(&g, columns, COUNT_OF(columns));
        grid_cell(&g, "%.*s", all[i].name, buf_text(&words));
        grid_cell(&g, "2026-11-30");
        grid_cell(&g, "2026-12-31");
        grid_cell(&g, "%.*s", all[i].text, buf_text(&words));
        print_grid(&g, &c, shown, sizeof shown);
        CHECK(strncmp(shown, all[i].want, strlen(all[i].want)) == 0,
              "what is left out of a table of %d and %d columns:\n%s", all[i].name, all[i].text,
              shown);
        int most = 0;
        for (const char *at = shown; *at; at += strcspn(at, "\n") + 1)
            most = (int)strcspn(at, "\n") > most ? (int)strcspn(at, "\n") : most;
        CHECK(most <= 80, "it fits: %d columns", most);
        if (i == 3)
            CHECK(strstr(shown, "\n                                aaaaaaaaa"),
                  "a long text continues below itself:\n%s", shown);
    }
}

static void test_cut(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    setenv("LC_ALL", "C.utf8", 1);
    CHECK_STR(print_cut_to("漢字漢字", 6, &b), "漢字…", "no half of a character is left");
    CHECK_STR(print_cut_to("漢字", 4, &b), "漢字", "what fits is whole");
}

int main(void)
{
    test_sparkline();
    test_unicode();
    test_wide_cells();
    test_large_numbers();
    test_rounded();
    test_narrow();
    test_cut();
    return tap_done();
}
