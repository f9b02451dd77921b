// SPDX-License-Identifier: Apache-2.0
#include "base/param.h"

#include <stdlib.h>

#include "base/cleanup.h"
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
    struct param_args a = {.table = &table, .object = t};
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

int main(void)
{
    defaults();
    texts();
    json_values();
    command_lines();
    return tap_done();
}
