// SPDX-License-Identifier: Apache-2.0
#include "base/param.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tests/unit/tap.h"

struct thing {
    bool flag;
    int64_t count;
    double share;
    uint64_t bytes;
    int colour;
    char name[8];
};

static const char *const colours[] = {"red", "green", NULL};
static const struct param params[] = {
    {.name = "flag",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct thing, flag),
     .def = "false",
     .help = "f"},
    {.name = "the_count",
     .kind = PARAM_INT,
     .offset = offsetof(struct thing, count),
     .min = 1,
     .max = 9,
     .def = "3",
     .help = "c"},
    {.name = "share",
     .kind = PARAM_REAL,
     .offset = offsetof(struct thing, share),
     .min = 0,
     .max = 1,
     .def = "0.5",
     .unit = "%",
     .help = "s"},
    {.name = "bytes",
     .kind = PARAM_BYTES,
     .offset = offsetof(struct thing, bytes),
     .min = 8,
     .max = 1 << 20,
     .def = "4K",
     .help = "b"},
    {.name = "colour",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct thing, colour),
     .choices = colours,
     .def = "green",
     .help = "e"},
    {.name = "name",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct thing, name),
     .room = 8,
     .def = "",
     .help = "t"},
};
static const struct param_table table = {params, COUNT_OF(params)};

static void defaults(void)
{
    struct thing t;
    memset(&t, 0x5a, sizeof t);
    param_defaults(&table, &t);
    CHECK(!t.flag && t.count == 3 && t.share == 0.5 && t.bytes == 4096 && t.colour == 1 && !*t.name,
          "defaults are set");
}

static void texts(void)
{
    static const struct {
        const char *name, *text;
        bool ok;
    } all[] = {
        {"flag", "on", true},        {"flag", "maybe", false},    {"the_count", "9", true},
        {"the_count", "10", false},  {"the_count", "1.5", false}, {"the_count", "", false},
        {"share", "1", true},        {"share", "1.01", false},    {"share", "nan", false},
        {"bytes", "1M", true},       {"bytes", "4", false},       {"bytes", "2M", false},
        {"colour", "red", true},     {"colour", "blue", false},   {"name", "1234567", true},
        {"name", "12345678", false},
    };
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        struct thing t, before;
        struct err err = {0};
        memset(&t, 0, sizeof t);
        param_defaults(&table, &t);
        before = t;
        const struct param *p = param_find(&table, all[k].name);
        bool ok = param_set_text(p, &t, all[k].text, &err) == 0;
        CHECK(ok == all[k].ok && (ok || !strcmp(err.member, all[k].name)), "%s=%s is %s",
              all[k].name, all[k].text, all[k].ok ? "taken" : "refused by name");
        if (!ok)
            CHECK(memcmp(&t, &before, sizeof t) == 0, "a refusal changes nothing");
        char text[40];
        param_get_text(p, &t, text, sizeof text);
        CHECK(param_set_text(p, &before, text, &err) == 0 && memcmp(&t, &before, sizeof t) == 0,
              "what is written is read back (%s)", text);
    }
}

static void json_values(void)
{
    static const struct {
        const char *name, *json;
        bool ok;
    } all[] = {
        {"flag", "true", true},       {"flag", "1", false},          {"flag", "\"true\"", false},
        {"the_count", "5", true},     {"the_count", "\"5\"", false}, {"the_count", "5.5", false},
        {"the_count", "true", false}, {"share", "0.25", true},       {"share", "1", true},
        {"bytes", "64", true},        {"bytes", "\"64K\"", true},    {"colour", "\"red\"", true},
        {"colour", "0", false},       {"name", "3", true},           {"name", "\"ab\"", true},
        {"name", "null", false},      {"name", "[1]", false},
    };
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        struct thing t = {0};
        struct err err = {0};
        CLEANUP_JSON struct json *j = json_parse(all[k].json, strlen(all[k].json), &err);
        bool ok = param_set_json(param_find(&table, all[k].name), &t, j, &err) == 0;
        CHECK(ok == all[k].ok, "%s: %s is %s", all[k].name, all[k].json,
              all[k].ok ? "taken" : "refused");
    }
}

static int parse(struct thing *t, int argc, const char **argv, int *next, struct err *err)
{
    const struct param_target target = {&table, t};
    struct param_args a = {.targets = &target, .n_targets = 1};
    *next = 0;
    return param_parse_args(&a, argc, (char **)(void *)argv, next, err);
}

static void command_lines(void)
{
    struct thing t = {0};
    struct err err = {0};
    int next;
    CHECK(parse(&t, 6,
                (const char *[]){"--the-count=4", "--name", "ab", "--flag", "--colour=red", "rest"},
                &next, &err) == 0 &&
              t.count == 4 && t.flag && t.colour == 0 && !strcmp(t.name, "ab") && next == 5,
          "options with = and without, flags, then the rest");
    CHECK(parse(&t, 1, (const char *[]){"--no-flag"}, &next, &err) == 0 && !t.flag, "--no-flag");
    CHECK(parse(&t, 3, (const char *[]){"--flag", "--", "--name"}, &next, &err) == 0 && next == 2,
          "-- ends the options");
    CHECK(parse(&t, 1, (const char *[]){"--nonsense"}, &next, &err) < 0 && err.code == ERR_USAGE &&
              strstr(err.text, "--nonsense"),
          "an unknown option is named");
    CHECK(parse(&t, 1, (const char *[]){"--name"}, &next, &err) < 0 && err.code == ERR_USAGE,
          "a value is missing");
    CHECK(parse(&t, 1, (const char *[]){"--the-count=99"}, &next, &err) < 0 &&
              strstr(err.text, "--the-count"),
          "a value out of range names the option");
    char long_option[300] = "--";
    memset(long_option + 2, 'x', 200);
    CHECK(parse(&t, 1, (const char *[]){long_option}, &next, &err) < 0,
          "a very long option is just unknown");
}

static const struct param other_params[] = {
    {.name = "flag", .kind = PARAM_BOOL, .offset = offsetof(struct thing, flag), .def = "false"},
    {.name = "loud",
     .kind = PARAM_BOOL,
     .letter = 'l',
     .offset = offsetof(struct thing, flag),
     .def = "false"},
    {.name = "output",
     .kind = PARAM_TEXT,
     .letter = 'o',
     .offset = offsetof(struct thing, name),
     .room = 8,
     .def = ""},
    {.name = "set",
     .kind = PARAM_TEXT,
     .letter = 'w',
     .joins = ',',
     .filled = true,
     .implied = "*",
     .offset = offsetof(struct thing, name),
     .room = 8,
     .def = ""},
};
static const struct param_table other_table = {other_params, COUNT_OF(other_params)};

// The words stand in one text, a blank between two. Returns as param_parse_args.
static int parse_words(const char *text, struct thing t[2], struct param_args *a, struct err *err)
{
    static char copy[200];
    static char *argv[16];
    const struct param_target targets[] = {{&table, &t[0], true}, {&other_table, &t[1]}};
    int argc = 0, next = 0;
    memset(t, 0, 2 * sizeof *t);
    *err = (struct err){0};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *rest = copy, *word; argc < 16 && (word = strsep(&rest, " "));)
        argv[argc++] = word;
    a->targets = targets;
    a->n_targets = 2;
    int rc = param_parse_args(a, argc, argv, &next, err);
    a->targets = NULL;
    if (rc == 0)
        CHECK(next == argc, "\"%s\" is read to its end", text);
    return rc;
}

static void several_tables(void)
{
    struct thing t[2];
    struct err err;
    char *operands[2];
    struct param_args a = {.operands = operands, .most = 2};
    CHECK(parse_words("one --the-count 4 --flag --output=x two", t, &a, &err) == 0 && a.n == 2 &&
              !strcmp(operands[0], "one") && !strcmp(operands[1], "two"),
          "operands stand between the options");
    CHECK(t[0].count == 4 && t[0].flag && !strcmp(t[1].name, "x") && !*t[0].name,
          "each option goes to its own object");
    CHECK(!t[1].flag, "the first table that has an option gets it");
    CHECK(parse_words("--loud --no-loud", t, &a, &err) == 0 && !t[1].flag && a.n == 0,
          "--no-flag of the second table");
    CHECK(parse_words("--flag -- --name -", t, &a, &err) == 0 && a.n == 2 &&
              !strcmp(operands[0], "--name") && !strcmp(operands[1], "-"),
          "after -- all are operands");
    CHECK(parse_words("", t, &a, &err) == 0 && a.n == 1 && !*operands[0], "an empty word is one");
    CHECK(parse_words("- one -- two", t, &a, &err) < 0 && err.code == ERR_USAGE &&
              !strcmp(err.text, "one word too many: \"two\""),
          "too many: %s", err.text);
    a.most = 0;
    CHECK(parse_words("--flag one", t, &a, &err) < 0 && strstr(err.text, "\"one\""),
          "or none at all: %s", err.text);
}

static int take_config(void *context, const char *option, const char *value, struct err *err)
{
    if (strcmp(option, "config") != 0)
        return 0;
    if (!value)
        return err_set(err, ERR_USAGE, "config", "no file");
    *(bool *)context = !strcmp(value, "f");
    return 1;
}

static void others(void)
{
    struct thing t[2];
    struct err err;
    bool got = false;
    char *operands[2];
    struct param_args a = {.operands = operands, .most = 2, .other = take_config, .context = &got};
    CHECK(parse_words("--config=f one --flag", t, &a, &err) == 0 && got && t[0].flag && a.n == 1,
          "what no table has is offered to the caller");
    CHECK(parse_words("--config f", t, &a, &err) < 0 && !strcmp(err.text, "no file"),
          "whose refusal stands");
    CHECK(parse_words("--nonsense", t, &a, &err) < 0 && strstr(err.text, "--nonsense"),
          "what the caller does not know is unknown");
}

static void letters(void)
{
    struct thing t[2];
    struct err err;
    char *operands[2];
    struct param_args a = {.operands = operands, .most = 2};
    CHECK(parse_words("-o json one", t, &a, &err) == 0 && !strcmp(t[1].name, "json") && a.n == 1,
          "-o json");
    CHECK(parse_words("one -ojson", t, &a, &err) == 0 && !strcmp(t[1].name, "json") && a.n == 1,
          "-ojson");
    CHECK(parse_words("-l one", t, &a, &err) == 0 && t[1].flag && a.n == 1,
          "the letter of a flag takes no value");
    CHECK(parse_words("-o", t, &a, &err) < 0 && !strcmp(err.text, "--output needs a value"),
          "a value is missing: %s", err.text);
    CHECK(parse_words("--set=", t, &a, &err) < 0 && err.code == ERR_USAGE &&
              !strcmp(err.text, "--set must not be empty"),
          "a value is empty: %s", err.text);
    CHECK(parse_words("-o  one", t, &a, &err) == 0 && !*t[1].name,
          "which other rows of this table allow");
    CHECK(parse_words("--name=", t, &a, &err) < 0 && err.code == ERR_USAGE &&
              !strcmp(err.text, "--name must not be empty"),
          "and no text of a table that is filled: %s", err.text);
    CHECK(parse_words("-o 12345678", t, &a, &err) < 0 && err.code == ERR_USAGE &&
              str_starts(err.text, "--output: "),
          "a wrong value names the long option: %s", err.text);
    CHECK(parse_words("-wa one --set=b", t, &a, &err) == 0 && !strcmp(t[1].name, "a,b") && a.n == 1,
          "an option that joins its values: %s", t[1].name);
    CHECK(parse_words("--set one", t, &a, &err) == 0 && !strcmp(t[1].name, "*") && a.n == 1,
          "an option whose value is implied takes no word");
    CHECK(parse_words("-w1234 -w5678", t, &a, &err) < 0 && str_starts(err.text, "--set: "),
          "both together are too long: %s", err.text);
    CHECK(parse_words("-oa -ob", t, &a, &err) == 0 && !strcmp(t[1].name, "b"), "the last counts");
    struct param_given given = {0};
    a.given = &given;
    CHECK(parse_words("-oa --output=b", t, &a, &err) < 0 && err.code == ERR_USAGE &&
              !strcmp(err.member, "output") &&
              !strcmp(err.text, "--output: is given twice, with a and b: give it once"),
          "unless it matters: %s", err.text);
    given.n = 0;
    CHECK(parse_words("-oa one --output=a --loud --no-loud -wa -wb", t, &a, &err) == 0 &&
              !strcmp(t[1].name, "a,b") && !t[1].flag,
          "the same again is no contradiction, flags and lists are none: %s", t[1].name);
    a.given = NULL;
    CHECK(parse_words("-x", t, &a, &err) < 0 && err.code == ERR_USAGE &&
              !strcmp(err.text, "unknown option -x (see --help)"),
          "an unknown letter is named: %s", err.text);
    struct thing alone = {0};
    int next;
    CHECK(parse(&alone, 2, (const char *[]){"--flag", "-x"}, &next, &err) == 0 && next == 1,
          "without room for operands the caller says what is wrong with it");
}

// Two that begin with the same 600 bytes.
static void long_values(void)
{
    enum { ROOM = 700, SAME = 600 };
    static const struct param row[] = {{.name = "list", .kind = PARAM_TEXT, .room = ROOM}};
    static const struct param_table rows = {row, 1};
    char object[ROOM] = "", first[ROOM], other[ROOM];
    struct param_given given = {0};
    const struct param_target target = {&rows, object};
    struct param_args a = {.targets = &target, .n_targets = 1, .given = &given};
    struct err err = {0};
    int next = 0;
    snprintf(first, sizeof first, "--list=%0*d", SAME, 0);
    snprintf(other, sizeof other, "%s1", first);
    CHECK(param_parse_args(&a, 2, (char *[]){first, first}, &next, &err) == 0,
          "the same long value twice");
    next = 0;
    given.n = 0;
    CHECK(param_parse_args(&a, 2, (char *[]){first, other}, &next, &err) < 0 &&
              strstr(err.text, "is given twice"),
          "long values that differ at the end: %s", err.text);
}

static int take(void *ctx, const char *name, const char *value, struct err *err)
{
    snprintf(ctx, 64, "%s:%s", name, value);
    return strcmp(name, "bad") == 0 ? err_set(err, ERR_USAGE, "", "no") : 0;
}

// Six bytes, then it fails.
static ssize_t read_half(void *cookie, char *out, size_t room)
{
    int *reads = cookie;
    static const char text[] = "a = 1\n";
    if (*reads == 6 || !room) {
        errno = EIO;
        return -1;
    }
    *out = text[(*reads)++];
    return 1;
}

static void files(void)
{
    static const struct {
        const char *text;
        size_t n;
        const char *last, *error; // of the settings; NULL: it is read
    } cases[] = {
        {"", 0, "", NULL},
        {"# a\n\n \ta = 1\r\nb=2", 17, "b:2", NULL},
        {"a = b = c\n", 10, "a:b = c", NULL},
        {"a = 1\nb\n", 8, "a:1", "f:2: must be \"name = value\""},
        {"bad = 1\nb = 1\n", 14, "bad:1", "f:1: no"},
        {"a = 1\nb = \0002\n", 13, "a:1", "f:2: the line has a control character (U+0000)"},
        {"a = \x1b[2J\n", 9, "", "f:1: the line has a control character (U+001B)"},
        {"a = 1\n\xff\xfe", 8, "a:1", "f:2: the line is not UTF-8"},
    };
    struct err err;
    int line;
    char last[64];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        FILE *f = tmpfile();
        fwrite(cases[i].text, 1, cases[i].n, f);
        rewind(f);
        *last = '\0';
        err = (struct err){0};
        int rc = param_read_file(f, take, last, &line, &err);
        if (rc < 0)
            err_prefix(&err, "f:%d", line);
        CHECK((rc < 0) == (cases[i].error != NULL) && !strcmp(last, cases[i].last) &&
                  (!rc || !strcmp(err.text, cases[i].error)),
              "file %zu: %s, %s", i, last, err.text);
        fclose(f);
    }
    int reads = 0;
    FILE *f = fopencookie(&reads, "r", (cookie_io_functions_t){.read = read_half});
    setvbuf(f, NULL, _IONBF, 0);
    CHECK(param_read_file(f, take, last, &line, &err) < 0 && strstr(err.text, "cannot be read"),
          "a file that fails in the middle is no shorter file: %s", err.text);
    fclose(f);
}

static void units(void)
{
    static const struct param seconds = {.name = "budget_s",
                                         .kind = PARAM_INT,
                                         .def = "0",
                                         .help = "h",
                                         .offset = offsetof(struct thing, count),
                                         .max = 604800,
                                         .unit = "s"};
    struct thing t = {0};
    struct err err;
    CHECK(param_set_text(&seconds, &t, "60s", &err) == 0 && t.count == 60,
          "a whole number may have its unit");
    CHECK(param_set_text(&seconds, &t, "61", &err) == 0 && t.count == 61, "or none");
    CHECK(param_set_text(&seconds, &t, "s", &err) < 0 &&
              param_set_text(&seconds, &t, "m", &err) < 0 &&
              param_set_text(&seconds, &t, "6ms", &err) < 0 &&
              param_set_text(&seconds, &t, "5mm", &err) < 0 &&
              param_set_text(&seconds, &t, "604801s", &err) < 0,
          "a unit alone, another unit and too many are refused");
    CHECK(param_set_text(&seconds, &t, "6w", &err) < 0 &&
              !strcmp(err.text, "must be a whole number in s, or with m, h or d such as 5m, "
                                "got \"6w\""),
          "with the units that are meant: %s", err.text);
    CHECK(param_set_query(&seconds, &t, "60", &err) == 0 && t.count == 60, "a query has no unit");
    CHECK(param_set_query(&seconds, &t, "5m", &err) < 0 &&
              !strcmp(err.text, "must be a whole number in s, got \"5m\""),
          "and none is named: %s", err.text);
    CHECK(param_set_query(&seconds, &t, "60s", &err) < 0 && t.count == 60, "not its own either");
    const struct param_table one = {&seconds, 1};
    char *help = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&help, &bytes);
    param_print_help(&one, out);
    fclose(out);
    CHECK(strstr(help, "=N[s|m|h|d]"), "so has its help: %s", help);
    free(help);
    CHECK(param_set_text(&seconds, &t, "99999999999999999999s", &err) < 0 &&
              !strcmp(err.text, "must be from 0 to 604800 s, got 99999999999999999999s"),
          "a number of very many digits is too large: %s", err.text);
    static const struct {
        const char *text;
        int64_t seconds;
    } times[] = {{"5m", 300}, {"1h", 3600}, {"7d", 604800}, {"0h", 0}};
    for (unsigned i = 0; i < COUNT_OF(times); i++)
        CHECK(param_set_text(&seconds, &t, times[i].text, &err) == 0 && t.count == times[i].seconds,
              "%s is %" PRId64 " s", times[i].text, times[i].seconds);
    CHECK(param_set_text(&seconds, &t, "8d", &err) < 0 &&
              !strcmp(err.text, "must be from 0 to 604800 s, got 8d") &&
              param_set_text(&seconds, &t, "9223372036854775807d", &err) < 0,
          "limits are those of the seconds: %s", err.text);
    static const struct param percent = {.name = "warn",
                                         .kind = PARAM_REAL,
                                         .offset = offsetof(struct thing, share),
                                         .max = 50,
                                         .unit = "%"};
    CHECK(param_set_text(&percent, &t, "2.5%", &err) == 0 && t.share == 2.5,
          "a share may have its sign");
    static const struct param seed = {.name = "seed",
                                      .kind = PARAM_INT,
                                      .offset = offsetof(struct thing, count),
                                      .max = 1LL << 52};
    CHECK(param_set_text(&seed, &t, "-1", &err) < 0 &&
              !strcmp(err.text, "must be from 0 to 4503599627370496, got -1"),
          "a large limit is written in full: %s", err.text);
}

int main(void)
{
    units();
    files();
    defaults();
    texts();
    json_values();
    command_lines();
    several_tables();
    letters();
    long_values();
    others();
    return tap_done();
}
