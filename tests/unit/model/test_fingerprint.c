// SPDX-License-Identifier: Apache-2.0
#include "model/fingerprint.h"

#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

int main(void)
{
    struct facts f = {0}, back = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    facts_add(&f, "kernel", "%s", "6.1 \"quoted\"");
    facts_add(&f, "thp_enabled", "%s", "madvise");
    facts_seal(&f);
    CHECK(strlen(f.hash) == 64, "sealed: %s", f.hash);
    struct jsonw w = jsonw_to(&text);
    facts_write_json(&f, &w, NULL);
    CLEANUP_JSON struct json *object = json_parse(buf_text(&text), text.len, &err);
    CHECK(object && facts_from_json(&back, object, &err) == 0 && back.n == 2 &&
              strcmp(back.hash, f.hash) == 0 && strcmp(back.list[0].name, "kernel") == 0 &&
              strcmp(back.list[0].value, f.list[0].value) == 0,
          "what is written is read back %s", err.text);
    facts_seal(&back);
    CHECK(strcmp(back.hash, f.hash) == 0, "and has the same hash");
    static const char *const bad[] = {"{}", "{\"facts\":[]}", "{\"facts\":{\"kernel\":6}}"};
    for (int i = 0; i < 3; i++) {
        CLEANUP_JSON struct json *o = json_parse(bad[i], strlen(bad[i]), &err);
        CHECK(o && facts_from_json(&back, o, &err) < 0, "%s is refused: %s %s", bad[i], err.member,
              err.text);
    }
    CLEANUP_BUF struct buf many = BUF_INIT;
    buf_str(&many, "{\"facts\":{");
    for (int i = 0; i <= FACTS_MAX; i++)
        buf_fmt(&many, "%s\"f%d\":\"\"", i ? "," : "", i);
    buf_str(&many, "}}");
    CLEANUP_JSON struct json *o = json_parse(buf_text(&many), many.len, &err);
    CHECK(o && facts_from_json(&back, o, &err) < 0, "too many are refused, not left out: %s",
          err.text);
    return tap_done();
}
