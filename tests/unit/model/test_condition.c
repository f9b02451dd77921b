// SPDX-License-Identifier: Apache-2.0
// Conditions: each kind has a name, is documented, and comes back from JSON.
#include "tests/unit/tap.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/condition.h"

static char page[64 << 10], contract[256 << 10], schema[64 << 10];

static void read_source(const char *name, char *out, size_t room)
{
    char path[400];
    const char *source = getenv("NUMAPROBE_SOURCE");
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", name);
    CHECK(file_read_text(path, out, room) == 0, "%s", name);
}

static void test_kinds(void)
{
    read_source("docs/API.md", page, sizeof page);
    read_source("api/openapi.yaml", contract, sizeof contract);
    read_source("schema/json/run-1.json", schema, sizeof schema);
    for (int k = 0; k < CONDITION_KINDS; k++) {
        const struct condition_info *info = &condition_kinds[k];
        char row[100], quoted[40], listed[40];
        CHECK(info->name && condition_find(info->name) == (enum condition_kind)k, "kind %d", k);
        snprintf(row, sizeof row, "| `%s` | %s |", info->name, severity_names[info->severity]);
        snprintf(quoted, sizeof quoted, "\"%s\"", info->name);
        snprintf(listed, sizeof listed, k ? " %s%c" : "[%s%c", info->name,
                 k + 1 < CONDITION_KINDS ? ',' : ']');
        CHECK(strstr(page, row), "docs/API.md has %s", row);
        CHECK(strstr(schema, quoted), "run-1.json has %s", quoted);
        CHECK(strstr(contract, listed), "openapi.yaml has %s", listed);
    }
    CHECK(condition_find("none") == CONDITION_OTHER, "what is no kind is other");
}

static int read_text(struct condition *c, const char *text, struct err *err)
{
    CLEANUP_JSON struct json *root = json_parse(text, strlen(text), err);
    return condition_from_json(c, root, err);
}

static void test_round_trip(void)
{
    struct condition c, back;
    struct err err = {0};
    CLEANUP_BUF struct buf text = BUF_INIT, line = BUF_INIT;
    condition_set(&c, CONDITION_PLACEMENT, 3, "ran on CPU %d instead of %d", 1, 0);
    struct jsonw w = jsonw_to(&text);
    condition_write_json(&c, &w, NULL);
    CHECK_STR(buf_text(&text),
              "{\"kind\":\"placement\",\"severity\":\"error\",\"rank\":3,"
              "\"text\":\"ran on CPU 1 instead of 0\"}",
              "written");
    CHECK(read_text(&back, buf_text(&text), &err) == 0 && back.kind == c.kind &&
              back.severity == c.severity && back.rank == 3 && !strcmp(back.text, c.text),
          "and read: %s", err.text);
    condition_line(&back, &line);
    CHECK_STR(buf_text(&line), "error: rank 3: ran on CPU 1 instead of 0", "for people");
    CHECK(read_text(&back, "{\"kind\":\"new\",\"severity\":\"info\",\"text\":\"\"}", &err) == 0 &&
              back.kind == CONDITION_OTHER && back.rank == -1,
          "a kind of a later version: %s", err.text);
}

int main(void)
{
    test_kinds();
    test_round_trip();
    return tap_done();
}
