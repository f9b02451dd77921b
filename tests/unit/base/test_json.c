// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "tests/unit/tap.h"

static void refuses(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "nothing"},
        {"{", "an open object"},
        {"{} x", "something after the value"},
        {"{}{}", "two values"},
        {"{\"a\":1,\"a\":2}", "a member twice"},
        {"{\"a\":{\"b\":1,\"b\":1}}", "a member twice, deeper"},
        {"[\"\\u0000\"]", "NUL in a string"},
        {"[\"\\u12g4\"]", "an escape that is no hexadecimal number"},
        {"[\"\\u12\"]", "a short one"},
        {"[\"\x01\"]", "a raw control character"},
        {"[\"\xff\"]", "invalid UTF-8"},
        {"[1e999]", "a number out of range"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "17 levels"},
        {"{'a':1}", "single quotes"},
        {"[010]", "a leading zero"},
        {"[-01]", "a leading zero behind a minus"},
        {"[1.]", "a point without digits"},
        {"[-.5]", "a point without digits before it"},
        {"[1e]", "an exponent without digits"},
        {"[-]", "a minus alone"},
        {"\xef\xbb\xbf{}", "a byte order mark"},
    };
    struct err err;
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        CLEANUP_JSON struct json *j = json_parse(bad[k].text, strlen(bad[k].text), &err);
        CHECK(!j && err.code == ERR_BAD_REQUEST && *err.text, "refused: %s", bad[k].why);
    }
}

static void numbers_that_are_none(void)
{
    static const char *const texts[] = {"[1,NaN]", "[1,-Infinity]", "[1,nan]", "[1,-inf]",
                                        "[1,NaN"};
    struct err err;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CLEANUP_JSON struct json *j = json_parse(texts[i], strlen(texts[i]), &err);
        CHECK(!j && strstr(err.text, "NaN or Infinity, which are no numbers of JSON, at byte 3"),
              "%s: %s", texts[i], err.text);
    }
    CLEANUP_JSON struct json *text = json_parse("[\"NaN\"]", 7, &err);
    CHECK(text, "a text may say so");
}

static struct json *many(const char *open, const char *before, const char *after, int n,
                         const char *close, size_t most, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    buf_str(&text, open);
    for (int i = 0; i < n; i++)
        buf_fmt(&text, "%s%s%d%s", i ? "," : "", before, i, after);
    buf_str(&text, close);
    return json_parse_within(buf_text(&text), text.len, most, err);
}

// Two bytes of text are a value of 80.
static void as_many_values(void)
{
    enum { N = 1000, BYTES = N * JSON_VALUE_BYTES + 4500 };
    struct err err;
    CLEANUP_JSON struct json *most = many("[", "", "", N, "]", BYTES, &err);
    CHECK(json_count(most) == N, "as many values as may be");
    CLEANUP_JSON struct json *more = many("[", "", "", N + 50, "]", BYTES, &err);
    CHECK(!more && err.code == ERR_TOO_LARGE && strstr(err.text, "values"), "%s", err.text);
    CLEANUP_JSON struct json *texts = many("[", "\"", "\"", N, "]", BYTES, &err);
    CHECK(!texts && err.code == ERR_TOO_LARGE, "texts take more: %s", err.text);
}

static void as_many_members(void)
{
    struct err err;
    CLEANUP_JSON struct json *most =
        many("{", "\"", "\":0", JSON_MEMBERS_MAX, "}", JSON_MEMORY_MAX, &err);
    CHECK(json_count(most) == JSON_MEMBERS_MAX, "as many members as may be");
    CLEANUP_JSON struct json *more =
        many("[{", "\"", "\":[0,0]", JSON_MEMBERS_MAX + 1, "}]", JSON_MEMORY_MAX, &err);
    CHECK(!more && err.code == ERR_TOO_LARGE && strstr(err.text, "members"), "%s", err.text);
}

// The sanitizer builds see a read past the end.
static void exact_length(void)
{
    struct err err;
    CLEANUP_MEM char *exact = malloc(2);
    if (exact)
        memcpy(exact, "{}", 2);
    CLEANUP_JSON struct json *j = exact ? json_parse(exact, 2, &err) : NULL;
    CHECK(j, "a text without a NUL behind it");
}

static struct json *parse(const char *text)
{
    struct err err;
    return json_parse(text, strlen(text), &err);
}

static void reads(void)
{
    CLEANUP_JSON struct json *j = parse("{\"t\":\"x\\n\",\"i\":-7,\"d\":1.5,\"b\":true,\"n\":null,"
                                        "\"l\":[1,2,3],\"big\":9007199254740993,\"T\":2}\n ");
    CHECK(j, "white space after the value is fine");
    CLEANUP_JSON struct json *numbers = parse("[0,-0,0.5,1e5,1E+5,1.25e-3,10]");
    CHECK(json_count(numbers) == 7, "numbers as JSON spells them");
    CHECK_STR(json_get_text(j, "t", ""), "x\n", "texts");
    CHECK(json_get_i64(j, "i", 0) == -7 && json_get_number(j, "d", 0) == 1.5, "numbers");
    CHECK(json_get_i64(j, "d", 99) == 99, "1.5 is no integer");
    int64_t big;
    CHECK(json_i64(json_get(j, "i"), &big), "integers within 2^53 are exact");
    CHECK(json_get_bool(j, "b", false) && json_is_null(json_get(j, "n")), "true and null");
    CHECK(json_count(json_get(j, "l")) == 3 && json_get_i64(j, "T", 0) == 2,
          "arrays, and names are case-sensitive");
    CHECK(!json_get(j, "absent") && !json_get(NULL, "x") && !json_text(NULL) && !json_first(NULL),
          "what is absent reads as absent");
    int sum = 0;
    for (const struct json *v = json_first(json_get(j, "l")); v; v = json_next(v)) {
        int64_t i;
        sum += json_i64(v, &i) ? (int)i : 0;
    }
    CHECK(sum == 6, "arrays are walked in order");
}

static void writes(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "s", "q\"\\\n\x01");
    jsonw_text(&w, "none", NULL);
    jsonw_i64(&w, "i", INT64_MAX);
    jsonw_i64(&w, "least", INT64_MIN);
    jsonw_i64(&w, "nothing", 0);
    jsonw_fixed(&w, "f", 98.120, 3);
    jsonw_fixed(&w, "whole", 100, 3);
    jsonw_fixed(&w, "zero", 0, 0);
    jsonw_digits(&w, "six", 123.456789, 6);
    jsonw_digits(&w, "small", 0.00012, 6);
    jsonw_digits(&w, "not", NAN, 6);
    jsonw_fixed(&w, "nan", NAN, 3);
    jsonw_array(&w, "l");
    jsonw_bool(&w, NULL, true);
    jsonw_object(&w, NULL);
    jsonw_end(&w);
    jsonw_end(&w);
    jsonw_time(&w, "t", 1700000000123);
    jsonw_end(&w);
    CHECK_STR(buf_text(&b),
              "{\"s\":\"q\\\"\\\\\\n\\u0001\",\"none\":null,\"i\":9223372036854775807,"
              "\"least\":-9223372036854775808,\"nothing\":0,\"f\":98.12,"
              "\"whole\":100,"
              "\"zero\":0,\"six\":123.457,\"small\":0.00012,\"not\":null,\"nan\":null,\"l\":[true,{"
              "}],\"t\":\"2023-11-14T22:13:20.123Z\"}",
              "the writer's text");
    CLEANUP_JSON struct json *back = parse(buf_text(&b));
    CHECK_STR(json_get_text(back, "s", ""), "q\"\\\n\x01", "escapes survive a round trip");
}

// Texts are cut to the room there is, and firmware says what it likes.
static void writes_utf8(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    jsonw_array(&w, NULL);
    jsonw_text(&w, NULL, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    jsonw_text(&w, NULL, "AMD EPY\xc3\"\xff\xe2\x82");
    jsonw_text(&w, NULL, "\x1b\x7f\xc2\x9b \xe2\x80\xae\n");
    jsonw_end(&w);
    CHECK_STR(buf_text(&b),
              "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"AMD EPY?\\\"???\","
              "\"\\u001b\\u007f\\u009b \\u202e\\n\"]",
              "what is no UTF-8 becomes '?', and what a terminal obeys is escaped");
}

static void renames(void)
{
    static const struct json_rename names[] = {{NULL, "old", "new"}, {"run", "class", "hash"}};
    CLEANUP_BUF struct buf b = BUF_INIT;
    CLEANUP_JSON struct json *v = parse(
        "{\"old\":1,\"class\":2,\"run\":{\"class\":3,\"x\":[{\"old\":4},{\"old\":5,\"new\":6}]}}");
    json_rename(v, names, COUNT_OF(names));
    json_rename(v, names, COUNT_OF(names));
    struct jsonw w = jsonw_to(&b);
    json_write(v, &w, NULL);
    CHECK_STR(
        buf_text(&b),
        "{\"new\":1,\"class\":2,\"run\":{\"hash\":3,\"x\":[{\"new\":4},{\"old\":5,\"new\":6}]}}",
        "members have other names, where none has them already: %s", buf_text(&b));
}

static void finds(const char *text, const char *value)
{
    size_t n = 0;
    const char *found = json_find(text, strlen(text), "a", &n);
    CHECK(value ? found && n == strlen(value) && memcmp(found, value, n) == 0 : !found,
          "a of %s: %.*s", text, found ? (int)n : 4, found ? found : "none");
    for (size_t len = 0; len < strlen(text);
         len++) { // a part is not valid, and read to its end only
        CLEANUP_MEM char *part = malloc(len + 1);
        if (!part)
            continue;
        memcpy(part, text, len);
        json_find(part, len, "a", &n);
    }
}

static void finds_one_member(void)
{
    finds("{\"a\":[1,{\"b\":\"]}\\\"\"}],\"b\":2}", "[1,{\"b\":\"]}\\\"\"}]");
    finds("{\"x\":{\"a\":1,\"y\":[{\"a\":2}]},\"t\":\"\\\"a\\\":3\",\"a\":4}", "4");
    finds(" { \"aa\" : [ ] , \"a\" : \"x\" }", "\"x\" ");
    finds("{\"\":1,\"a\\\\\":2,\"b\":\"a\"}", NULL);
    finds("{}", NULL);
    finds("[{\"a\":1}]", NULL);
    finds("\"a\"", NULL);
}

// As %.{n}g with the least n that reads back, which was tried from 1 on before.
static void writes_the_shortest(void)
{
    int exact = 0, is_short = 0, all = 0;
    static const double bases[] = {1, 3, 7, 0.1, 1.5, 123456.789, 0.30000000000000004, 2.0 / 3};
    for (size_t i = 0; i < COUNT_OF(bases); i++)
        for (int power = -300; power <= 300; power += 3) {
            CLEANUP_BUF struct buf b = BUF_INIT;
            char text[40], shortest[40];
            double d = bases[i] * pow(10, power);
            struct jsonw w = jsonw_to(&b);
            snprintf(text, sizeof text, "%.17g", d);
            CLEANUP_JSON struct json *v = parse(text);
            json_write(v, &w, NULL);
            for (int digits = 1; digits <= 17; digits++) {
                snprintf(shortest, sizeof shortest, "%.*g", digits, d);
                if (strtod(shortest, NULL) == d)
                    break;
            }
            all++;
            exact += strtod(buf_text(&b), NULL) == d;
            is_short += !strchr(text, '.') || d == floor(d) || strcmp(buf_text(&b), shortest) == 0;
        }
    CHECK_INT(exact, all, "numbers read back");
    CHECK_INT(is_short, all, "no shorter ones do");
}

int main(void)
{
    finds_one_member();
    renames();
    refuses();
    numbers_that_are_none();
    as_many_values();
    as_many_members();
    exact_length();
    reads();
    writes();
    writes_utf8();
    writes_the_shortest();
    return tap_done();
}
