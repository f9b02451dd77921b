// SPDX-License-Identifier: Apache-2.0
// Conditions: each kind has a name, is documented, and comes back from JSON.
#include "tests/unit/data.h"
#include "tests/unit/tap.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/condition.h"

static char page[64 << 10];

static void read_source(const char *name, char *out, size_t room)
{
    char path[400];
    source_path(path, sizeof path, name);
    CHECK(file_read_text(path, out, room) == 0, "%s", name);
}

static void test_kinds(void)
{
    read_source("docs/API.md", page, sizeof page);
#define COUNT(id, name, severity) +1
    int blockers = 0 CONDITION_BLOCKERS(COUNT); // docs/ADMISSION.md has them (test_policy.c)
#undef COUNT
    for (int k = 0; k < CONDITION_KINDS; k++) {
        const struct condition_info *info = &condition_kinds[k];
        char row[100];
        CHECK(info->name && condition_find(info->name) == (enum condition_kind)k, "kind %d", k);
        snprintf(row, sizeof row, "| `%s` | %s |", info->name, severity_names[info->severity]);
        bool blocks = k > CONDITION_OTHER && k <= CONDITION_OTHER + blockers;
        CHECK(blocks || strstr(page, row), "docs/API.md has %s", row);
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

static void test_many(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT, lines = BUF_INIT;
    struct conditions c = {0}, all = {0};
    for (int i = 0; i < CONDITIONS_KEPT; i++)
        conditions_add(&c, CONDITION_PAIR, i, "pair %d", i);
    conditions_lines(&c, &lines);
    CHECK(c.left_out == 0 && !strstr(buf_text(&lines), "left out"), "as many as are kept");
    conditions_add(&c, CONDITION_KNEE, -1, "one too many");
    conditions_add(&c, CONDITION_PLACEMENT, 7, "ran on CPU 1 instead of 0");
    CHECK(c.n == CONDITIONS_KEPT && c.left_out == 2, "%d and %d", c.n, (int)c.left_out);
    CHECK_STR(c.list[0].text, "pair 0", "the first stays");
    CHECK_STR(c.list[c.n - 2].text, "pair 62", "the last information goes");
    CHECK_STR(c.list[c.n - 1].text, "ran on CPU 1 instead of 0", "an error takes its place");
    struct jsonw w = jsonw_to(&text);
    conditions_write_json(&c, &w, NULL);
    CHECK(strstr(buf_text(&text), "{\"kind\":\"omitted\",\"severity\":\"notice\",\"rank\":null,"
                                  "\"text\":\"2 more conditions were left out, none more severe "
                                  "than these\"}]"),
          "the last one states how many: %s", buf_text(&text));
    conditions_add(&all, CONDITION_STEAL, -1, "steal");
    conditions_append(&all, &c);
    CHECK(all.n == CONDITIONS_KEPT && all.left_out == 3 && !strcmp(all.list[0].text, "steal") &&
              all.list[all.n - 1].kind == CONDITION_PLACEMENT,
          "lists are joined: %d", (int)all.left_out);
}

int main(void)
{
    test_kinds();
    test_round_trip();
    test_many();
    return tap_done();
}
