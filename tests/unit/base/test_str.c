// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static void numbers(void)
{
    static const char *const bad[] = {"",  " 1",   "1 ",  "+",
                                      "-", "0x10", "1e3", "99999999999999999999"};
    int64_t i;
    uint64_t u;
    CHECK(str_to_i64("-42", &i) && i == -42, "-42 is a number");
    CHECK(str_to_i64("9223372036854775807", &i) && i == INT64_MAX, "the largest int64 is one");
    CHECK(!str_to_i64("9223372036854775808", &i), "one more is not");
    for (size_t k = 0; k < COUNT_OF(bad); k++)
        CHECK(!str_to_i64(bad[k], &i) && !str_to_u64(bad[k], &u), "\"%s\" is no number", bad[k]);
    CHECK(!str_to_u64("-1", &u), "-1 is not unsigned");
    double d;
    CHECK(str_to_double("0.5", &d) && d == 0.5, "0.5 is a number");
    CHECK(!str_to_double("nan", &d) && !str_to_double("inf", &d) && !str_to_double("1e999", &d) &&
              !str_to_double("1,5", &d),
          "nan, inf, 1e999 and 1,5 are not");
    CHECK(!str_to_double("0x1p3", &d) && !str_to_double("-inf", &d) && !str_to_double("-0x8", &d) &&
              !str_to_double("", &d) && !str_to_double(" 1", &d) && !str_to_double("+", &d) &&
              !str_to_double("e5", &d) && !str_to_double("1-", &d),
          "nor are hexadecimal numbers and parts of numbers");
    CHECK(str_to_double("-1.5e+3", &d) && d == -1500, "an exponent may be there");
    CHECK(str_to_hex("0x7f00", &u) && u == 0x7f00 && str_to_hex("FF", &u) && u == 255 &&
              !str_to_hex("0x", &u) && !str_to_hex("0x-1", &u) && !str_to_hex("0x1g", &u) &&
              !str_to_hex("11111111111111111", &u),
          "addresses");
}

static void sizes_of_bytes(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"64", 64},           {"32K", 32768}, {"4M", 4 << 20},
                {"16G", 16ull << 30}, {"2kiB", 2048}, {"1TB", 1ull << 40}};
    static const char *const bad[] = {"",   "K",   "1.5M", "1KK", "-1", "1 M", "99999999999G",
                                      "4X", "1Mb1"};
    uint64_t bytes;
    for (size_t k = 0; k < COUNT_OF(good); k++)
        CHECK(str_to_bytes(good[k].text, 1, &bytes) && bytes == good[k].bytes,
              "%s is %" PRIu64 " bytes", good[k].text, good[k].bytes);
    for (size_t k = 0; k < COUNT_OF(bad); k++)
        CHECK(!str_to_bytes(bad[k], 1, &bytes), "\"%s\" is no size", bad[k]);
    CHECK(str_to_bytes("512", 1 << 20, &bytes) && bytes == 512 << 20,
          "a bare number counts in the unit");
    for (uint64_t v = 1, ok = 1; v < 1ull << 50; v = v * 3 + 1) {
        char text[32];
        str_from_bytes(v * 512, text, sizeof text);
        ok &= str_to_bytes(text, 1, &bytes) && bytes == v * 512;
        if (!ok || v > 1ull << 48)
            CHECK(ok, "what str_from_bytes writes is read back (%s)", text);
    }
}

static void hosts(void)
{
    CHECK(str_is_host("n1.example", 10) && str_is_host("[::1]", 5) && str_is_host("n1:80", 2),
          "names and addresses");
    CHECK(!str_is_host("", 0) && !str_is_host(" n1", 3) && !str_is_host("n1:80", 5) &&
              !str_is_host("[]", 2) && !str_is_host("[::1", 4),
          "nothing, blanks, ports and parts are none");
}

static void urls(void)
{
    static const char *const good[] = {
        "http://n1",       "https://n1.example:7443",    "http://192.0.2.1:65535/a/b?c=d#e",
        "http://[::1]:1/", "http://[2001:db8::1.2.3.4]", "http://h_1?x",
        "http://u:p@n1:2",
    };
    static const struct {
        const char *url, *fault;
    } bad[] = {
        {"", "must begin"},
        {"n1:80", "must begin"},
        {"ftp://n1", "must begin"},
        {"http:/n1", "must begin"},
        {"HTTP://n1", "must begin"},
        {"http://", "a host"},
        {"http:///x", "a host"},
        {"http://:80", "a host"},
        {"http://[::1", "a host"},
        {"http://[]", "a host"},
        {"http://[n1]", "a host"},
        {"http://a@", "a host"},
        {"http://u:p@n1:x", "a port"},
        {"http://n%31", "a host"},
        {"http://n1,n2", "a host"},
        {"http://n1:", "a port"},
        {"http://n1:0", "a port"},
        {"http://n1:65536", "a port"},
        {"http://n1:80x", "a port"},
        {"http://n1:-1", "a port"},
        {"http://n1:1:2", "a port"},
        {"http://[::1]80", "a port"},
        {"http://n1/a b", "blanks"},
        {"http://n1/\x1b[m", "blanks"},
        {"http://n\xc3\xbc", "ASCII"},
        {"http://n1:99999999999999999999999", "a port"},
    };
    for (size_t k = 0; k < COUNT_OF(good); k++)
        CHECK(!str_url_fault(good[k]), "%s is a URL", good[k]);
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        const char *fault = str_url_fault(bad[k].url);
        CHECK(fault && strstr(fault, bad[k].fault), "number %zu is none: %s", k,
              fault ? fault : "no fault");
    }
}

static void heads(void)
{
    static const struct {
        uint64_t bytes;
        const char *head;
    } all[] = {{1 << 20, "1MB"},        {512 << 20, "512MB"}, {1ull << 30, "1024M"},
               {16ull << 30, "16384M"}, {32 << 10, "32KB"},   {100, "100B"}};
    char text[32];
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        str_size_head(all[k].bytes, text, sizeof text);
        CHECK_STR(text, all[k].head, "%s heads its column", all[k].head);
    }
}

static void ids(void)
{
    static const char *const bad[] = {"",   ",",   "1,",    "a",   "3-1",        "1-",
                                      "-1", "1,1", "0-2,1", "1;2", "99999999999"};
    struct err err;
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        CLEANUP_MEM int *list = NULL;
        int n;
        CHECK(str_to_ids(bad[k], false, 100, "cpus", &list, &n, &err) < 0 &&
                  !strcmp(err.member, "cpus"),
              "\"%s\" is no list, and the error names the member", bad[k]);
    }
    CLEANUP_MEM int *list = NULL;
    int n;
    CHECK(str_to_ids("9,0-2,5", false, 5, "cpus", &list, &n, &err) == 0 && n == 5 && list[0] == 9 &&
              list[4] == 5,
          "9,0-2,5 keeps its order");
    CLEANUP_MEM int *more = NULL;
    CHECK(str_to_ids("9,0-2,5", false, 4, "cpus", &more, &n, &err) < 0,
          "more than the limit is refused");
    CHECK(str_to_ids("0-1000000", false, 8, "cpus", &more, &n, &err) < 0, "a huge range too");
    CLEANUP_MEM int *twice = NULL;
    CHECK(str_to_ids("0,0,1,1", true, 8, "numa", &twice, &n, &err) == 0 && n == 4,
          "repeats where they are allowed");
    char text[40];
    str_from_ids((const int[]){0, 1, 2, 5, 8, 9}, 6, text, sizeof text);
    CHECK_STR(text, "0-2,5,8-9", "ids are written as ranges");
    str_from_ids((const int[]){100, 200, 300, 400}, 4, text, 8);
    CHECK(strlen(text) < 8, "and never beyond the room");
}

static void sweeps(void)
{
    CLEANUP_MEM uint64_t *s = NULL;
    int n;
    struct err err;
    CHECK(str_to_sizes("512", 48, "size", &s, &n, &err) == 0 && n == 1 && s[0] == 512 << 20,
          "512 is 512 MiB");
    free(steal_ptr(&s));
    CHECK(str_to_sizes("1-16384", 48, "size", &s, &n, &err) == 0 && n == 15 && s[14] == 16ull << 30,
          "1-16384 doubles in 15 steps");
    free(steal_ptr(&s));
    CHECK(str_to_sizes("3M-10M", 48, "size", &s, &n, &err) == 0 && n == 3 && s[1] == 6 << 20 &&
              s[2] == 10 << 20,
          "the end of a range is always in it");
    free(steal_ptr(&s));
    CHECK(str_to_sizes("4M,32K,4M,1M-4M", 48, "size", &s, &n, &err) == 0 && n == 4 && s[0] == 32768,
          "sizes are sorted, and each stands once");
    static const char *const bad[] = {"", "0", "4M-1M", "1M-", "-1M", "x", "1,,2", "1M 2M", "0-4"};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        CLEANUP_MEM uint64_t *none = NULL;
        CHECK(str_to_sizes(bad[k], 48, "size", &none, &n, &err) < 0 && !strcmp(err.member, "size"),
              "\"%s\" is refused", bad[k]);
    }
    CLEANUP_MEM uint64_t *many = NULL;
    CHECK(str_to_sizes("1-4", 1, "size", &many, &n, &err) < 0 &&
              !strcmp(err.text, "must be at most 1 size, got more with \"1-4\""),
          "too many for the benchmark: %s", err.text);
    static const char *const texts[][2] = {
        {"16", "16M"}, {"1-1024,32K", "1M-1G,32K"}, {"auto", "auto"}, {"", ""}, {"64KiB", "64K"}};
    for (size_t k = 0; k < COUNT_OF(texts); k++) {
        char text[40];
        str_sizes_text(texts[k][0], text, sizeof text);
        CHECK_STR(text, texts[k][1], "a list of sizes has its units");
    }
    char little[6];
    str_sizes_text("1024,2048", little, sizeof little);
    CHECK_STR(little, "1G,2G", "a list of sizes fits what it is given");
    str_sizes_text("1024,2048,3", little, sizeof little);
    CHECK(strlen(little) < sizeof little, "a list of sizes that is too long is cut");
    CHECK(str_to_sizes("1-16384", 14, "size", &many, &n, &err) < 0,
          "more sizes than the limit are refused");
}

static void utf8(void)
{
    static const struct {
        const char *text;
        bool ok;
    } all[] = {{"plain", true},
               {"gr\xc3\xbc\xc3\x9f", true},
               {"\xf0\x9f\x90\xa7", true},
               {"\xc3", false},
               {"\xc0\x80", false},
               {"\xed\xa0\x80", false},
               {"\xf4\x90\x80\x80", false},
               {"\xff", false},
               {"\xe0\x80\x80", false}};
    for (size_t k = 0; k < COUNT_OF(all); k++)
        CHECK(str_utf8_valid(all[k].text, strlen(all[k].text)) == all[k].ok, "UTF-8 case %zu", k);
}

static void controls(void)
{
    static const struct {
        const char *text, *name; // NULL: it has none
    } all[] = {{"a\tb \xc3\xa9", NULL},
               {"a\x1b[2J", "a control character (U+001B)"},
               {"\xc3\xa9\x7f", "a control character (U+007F)"},
               {"\xc2\x9b"
                "2J",
                "a control character (U+009B)"},
               {"a\xe2\x80\xa8", "a control character (U+2028)"},
               {"a\xe2\x80\xae", "a control character (U+202E)"},
               {"a\xe2\x81\xa6", "a control character (U+2066)"}};
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        const char *at = str_control(all[k].text, strlen(all[k].text));
        CHECK_STR(at ? str_control_name(at).text : "", all[k].name ? all[k].name : "",
                  "control characters of text %zu", k);
    }
    const char *nul = str_control("a\0b", 3);
    CHECK(nul && !*nul, "a NUL within a text is one");
}

static void rough_sizes(void)
{
    static const struct {
        double bytes;
        const char *text;
    } all[] = {{0, "0B"},
               {512, "512B"},
               {999, "999B"},
               {1000, "0.977K"},
               {32768, "32K"},
               {1048064, "1M"},
               {17716740096, "16.5G"},
               {1073741824, "1G"},
               {1023410176, "976M"},
               {1e15, "909T"}};
    char text[32];
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        str_rough_size(all[k].bytes, text, sizeof text);
        CHECK_STR(text, all[k].text, "%.0f bytes", all[k].bytes);
    }
}

static void lists(void)
{
    static const char *const words[] = {"a", "b c", "d"};
    const char *rest = ", a ,,b c, ,d, ";
    size_t n, found = 0;
    for (const char *word; (word = str_list_next(&rest, &n)); found++)
        CHECK(found < COUNT_OF(words) && n == strlen(words[found]) &&
                  memcmp(word, words[found], n) == 0,
              "word %zu of a list is without blanks, and empty ones are skipped", found);
    CHECK(found == COUNT_OF(words) && !*rest, "a list ends");
    CHECK(!str_list_next(&rest, &n), "an empty list has no word");
}

static void test_addresses(void)
{
    static const char *const good[] = {"127.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1"};
    static const char *const bad[] = {"",      "localhost",   "1.2.3",
                                      "[::1]", "10.0.0.1:80", "fe80::1%lo"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(str_is_address(good[i]), "%s is an address", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!str_is_address(bad[i]), "\"%s\" is no address", bad[i]);
}

static void test_plurals(void)
{
    const struct {
        int64_t n;
        const char *end;
    } all[] = {{0, "s"}, {1, ""}, {2, "s"}, {INT64_C(4294967297), "s"}, {-1, "s"}};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        CHECK(strcmp(str_plural(all[i].n), all[i].end) == 0, "%lld node%s", (long long)all[i].n,
              all[i].end);
}

int main(void)
{
    test_plurals();
    lists();
    rough_sizes();
    numbers();
    sizes_of_bytes();
    hosts();
    urls();
    heads();
    ids();
    sweeps();
    utf8();
    controls();
    test_addresses();
    return tap_done();
}
