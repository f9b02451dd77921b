// SPDX-License-Identifier: Apache-2.0
// Node sets by hand: the grammar, groups, limits and errors. test_nodeset_oracle.py holds them
// against ClusterShell.
#include "model/nodeset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "tests/unit/tap.h"

static int find(void *ctx, const char *group, struct buf *out, struct err *err)
{
    static const char *const table[][2] = {
        {"rack1", "n[1-3]"},  {"rack2", "n[4-6]"}, {"all", "@rack[1-2],login"},
        {"loop", "n1,@pool"}, {"pool", "@loop"},   {"bad", "n1,n[2-"},
        {"none", ""}};
    (*(int *)ctx)++;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i][0], group) == 0) {
            buf_str(out, table[i][1]);
            return 0;
        }
    return err_set(err, ERR_NOT_FOUND, "nodes", "there is no group %s", group);
}

static int found;
static const struct nodeset_groups groups = {find, &found};

static void is(const char *text, const char *names, const char *fold)
{
    CLEANUP_NODESET struct nodeset s = {0};
    CLEANUP_BUF struct buf got = BUF_INIT, folded = BUF_INIT;
    struct err err = {0};
    if (nodeset_parse(&s, text, &groups, &err) < 0) {
        CHECK(0, "%s: %s", text, err.text);
        return;
    }
    for (int i = 0; i < s.n; i++)
        buf_fmt(&got, "%s%s", i ? " " : "", s.names[i]);
    nodeset_fold(&s, &folded);
    CHECK_STR(buf_text(&got), names, "%s", text);
    CHECK_STR(buf_text(&folded), fold, "%s folded", text);
}

static void refuses(const char *text, const char *words)
{
    struct nodeset s = {0};
    struct err err = {0};
    CHECK(nodeset_parse(&s, text, &groups, &err) < 0 && strstr(err.text, words) && !s.names,
          "%.40s: %s", text, err.text);
}

static void grammar(void)
{
    is("", "", "");
    is("n1", "n1", "n1");
    is("n[1-3,10]", "n1 n2 n3 n10", "n[1-3,10]");
    is("n[098-101]", "n098 n099 n100 n101", "n[098-101]");
    is("n[0-6/3]", "n0 n3 n6", "n[0,3,6]");
    is("n[ 1 - 2 , 4 ]", "n1 n2 n4", "n[1-2,4]");
    is("r[1-2]n[01-02]-ib", "r1n01-ib r1n02-ib r2n01-ib r2n02-ib", "r[1-2]n[01-02]-ib");
    is("n[1-2][3-4]", "n13 n14 n23 n24", "n[13-14,23-24]");
    is("n[08-10]5", "n085 n095 n105", "n[085,095,105]");
    is("n0[1-2]", "n01 n02", "n[01-02]");
    is("b,a", "a b", "a,b");
    is(" n2  n1\tn2 ", "n1 n2", "n[1-2]");
    is("n[1-9]!n[2-8]", "n1 n9", "n[1,9]");
    is("n[1-5]&n[4-9]", "n4 n5", "n[4-5]");
    is("n[1-3]^n[3-4,4]", "n1 n2 n4", "n[1-2,4]");
    is("n[1-3]!n1,n1", "n1 n2 n3", "n[1-3]");
    is("n1!n1", "", "");
    is("n1m1,n2m2", "n1m1 n2m2", "n1m1,n2m2");
    is("n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999",
       "n[999999999999999998-999999999999999999]");
}

static void with_groups(void)
{
    is("@rack1!n2", "n1 n3", "n[1,3]");
    is("@all", "login n1 n2 n3 n4 n5 n6", "login,n[1-6]");
    is("n9!@none", "n9", "n9");
    refuses("@nowhere", "there is no group nowhere");
    refuses("@loop", "holds itself");
    refuses("@bad", "group @bad: \"n1,n[2-\", character 8: a number is missing");
    refuses("@-x", "does not begin with '-'");
    refuses("@", "a group name is missing");
    refuses("@a;b", "character 3");
    found = 0;
    refuses("@rack[1-70000]", "70000 names");
    CHECK_INT(found, 0, "and none of them was looked up");
    struct err err = {0};
    struct nodeset s = {0};
    CHECK(nodeset_parse(&s, "@x", NULL, &err) < 0 &&
              strstr(err.text, "groups are not looked up here: list their nodes"),
          "%s", err.text);
}

static void errors(void)
{
    refuses("n[1-3", "character 2: this bracket has no ']'");
    refuses("n1]", "character 3: this ']' has no '['");
    refuses("n[5-3]", "5 is above 3");
    refuses("n[01-3]", "2 and 1 digits");
    refuses("n[1-9/0]", "a step is at least 1");
    refuses("n[1;2]", "character 4");
    refuses("n1,,n2", "behind ','");
    refuses("n1,", "behind ','");
    refuses("!n1", "a node name is missing");
    refuses("-oProxyCommand=x", "character 15");
    refuses("-n1", "character 1: " NODESET_NAME_RULE);
    refuses("n1,..", "character 4: " NODESET_NAME_RULE);
    refuses(".", "character 1: " NODESET_NAME_RULE);
    refuses(".x", "character 1: " NODESET_NAME_RULE);
    refuses("@-x", "a group name has at most 63 characters, and does not begin with '-'");
    refuses("a/b", "character 2");
    struct nodeset one = {0};
    struct err err = {0};
    CHECK(nodeset_add(&one, "..", &err) < 0 && strcmp(err.text, NODESET_NAME_RULE) == 0,
          "nor does a list have such a name: %s", err.text);
    CHECK(nodeset_add(&one, "a/b", &err) < 0 && nodeset_add(&one, "n..1", &err) == 0,
          "a slash is refused, dots within a name are not");
    nodeset_free(&one);
    refuses("n\x1b[2J", "\"n?[2J\", character 2");
    refuses("n1,\x1bn2", "\"n1,?n2\", character 4");
    refuses("n\xc3\xa4", NODESET_NAME_RULE);
    refuses("n[1234567890123456789]", "a number of 19 digits; at most 18");
    refuses("a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]"
            "a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]",
            "at most 31 brackets");
}

static void repeat(struct buf *out, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        buf_str(out, text);
}

// Of a client: what is made and removed again counts too, and takes as long.
static void members(void)
{
    static const char *const long_ones[] = {"n[1-32768],n1", "n[1-20000]!n[1-20000]",
                                            "n[1-20000]&n[1-20000],a", "a,n[1-32768]"};
    CLEANUP_NODESET struct nodeset s = {0};
    struct err err = {0};
    for (size_t i = 0; i < COUNT_OF(long_ones); i++)
        CHECK(nodeset_parse_members(&s, long_ones[i], NODESET_MEMBERS_MAX, &err) < 0 && !s.names &&
                  strstr(err.text, "together have more than 32768 names"),
              "%s: %s", long_ones[i], err.text);
    CHECK(nodeset_parse_members(&s, "@rack1", NODESET_MEMBERS_MAX, &err) < 0 &&
              strstr(err.text, "not looked up here"),
          "no groups");
    CHECK(nodeset_parse_members(&s, "a!a", NODESET_MEMBERS_MAX, &err) == 0 && !s.n &&
              !nodeset_has(&s, "a"),
          "none");
    nodeset_free(&s);
    CHECK(nodeset_parse_members(&s, "n[9,08-10],n[1-16384]!n[2-16000],m^n1", NODESET_MEMBERS_MAX,
                                &err) == 0 &&
              s.n == 387,
          "%d", s.n);
    static const char *const in[] = {"m", "n08", "n09", "n16001", "n16384"};
    static const char *const out[] = {"n1",      "n2",     "n9", "n10", "n16000",
                                      "n016001", "n16385", "n",  ""};
    for (size_t i = 0; i < COUNT_OF(in); i++)
        CHECK(nodeset_has(&s, in[i]) && strcmp(s.names[nodeset_find(&s, in[i])], in[i]) == 0,
              "%s is one", in[i]);
    for (size_t i = 0; i < COUNT_OF(out); i++)
        CHECK(!nodeset_has(&s, out[i]), "%s is none", out[i]);
    CHECK(nodeset_add(&s, "a", &err) == 0, "a name more");
    nodeset_sort(&s);
    CHECK(strcmp(s.names[0], "a") == 0 && nodeset_has(&s, "m") && nodeset_has(&s, "n16384") &&
              !nodeset_has(&s, "n1"),
          "sorted after all");
}

// The numbers of each bracket bring FNV-1a from one state of its low 17 bits to one other: without
// a key 45,360 names would be in one slot of a table, and each would be compared with all others.
static void chosen_names(void)
{
    static const char chosen[] =
        "n[17739,42126,57692,74783,77276][11428,47760,51842,67289,73565,89843][20185,30166,45939,"
        "52669,55835,63210,92904][27683,45650,58199,68686,86682,87119][00969,03915,54403,55798,"
        "66734,97107][00185,10166,43210,65939,72669,75835]";
    CLEANUP_NODESET struct nodeset s = {0};
    struct err err = {0};
    CHECK(nodeset_parse(&s, chosen, NULL, &err) == 0, "%s", err.text);
    uint64_t same = UINT64_MAX, slots[64] = {0};
    for (int i = 0; i < s.n; i++) {
        size_t n = strlen(s.names[i]);
        same &= ~(hash_bytes(s.names[0], n) ^ hash_bytes(s.names[i], n));
        slots[hash_keyed(s.names[i], n) % COUNT_OF(slots)]++;
    }
    CHECK((same & 0x1ffff) == 0x1ffff, "names that were chosen: %" PRIx64, same);
    for (size_t i = 0; i < COUNT_OF(slots); i++)
        CHECK(slots[i] > (uint64_t)s.n / 128 && slots[i] < (uint64_t)s.n / 32, "%" PRIu64,
              slots[i]);
}

static void limits(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    refuses("n[1-1000000]", "1000000 names; a set has at most 65536");
    refuses("n[1-1000][1-1000]", "1000000 names or more");
    refuses("n[0-999999999999999999][0-999999999999999999]", "a set has at most 65536");
    refuses("n[1-65536],m1", "more than 65536 names with these");
    repeat(&text, "n[1-65536]!n[1-65536],", 9);
    buf_str(&text, "n1");
    refuses(buf_text(&text), "more than 1048576 names");
    buf_reset(&text);
    repeat(&text, "n", NODESET_NAME_ROOM);
    refuses(buf_text(&text), NODESET_NAME_RULE);
    refuses("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa[9-10]",
            NODESET_NAME_RULE);
    repeat(&text, "n", NODESET_TEXT_MAX);
    refuses(buf_text(&text), "65600 bytes; at most 65536 (64 KiB)");
    CLEANUP_NODESET struct nodeset s = {0};
    struct err err = {0};
    CHECK(nodeset_parse(&s, "n[00001-65536]", NULL, &err) == 0 && s.n == NODESET_NAMES_MAX &&
              strcmp(s.names[65535], "n65536") == 0,
          "as many as there may be");
    CHECK(nodeset_add(&s, "n65536", &err) == 0 && s.n == NODESET_NAMES_MAX, "one that is there");
    CHECK(nodeset_add(&s, "n0", &err) < 0 && strstr(err.text, "65536"), "and no more: %s",
          err.text);
    CLEANUP_NODESET struct nodeset twice = {0};
    for (int i = 0; i < NODESET_NAMES_MAX; i++)
        nodeset_add(&twice, i % 2 ? "n1" : "n2", NULL);
    CHECK(nodeset_add(&twice, "n3", &err) == 0 && twice.n == 3,
          "names that are there twice make room");
}

static void one_by_one(void)
{
    CLEANUP_NODESET struct nodeset s = {0};
    CLEANUP_BUF struct buf fold = BUF_INIT;
    struct err err = {0};
    CHECK(nodeset_add(&s, "n10", &err) == 0 && nodeset_add(&s, "n9", &err) == 0 &&
              nodeset_add(&s, "n10", &err) == 0,
          "in any order, twice");
    nodeset_fold(&s, &fold);
    CHECK_STR(buf_text(&fold), "n[9-10]", "fold sorts");
    nodeset_sort(&s);
    CHECK(s.n == 2 && nodeset_has(&s, "n9") && nodeset_has(&s, "n10") && !nodeset_has(&s, "n1"),
          "each once, and found");
    CHECK(nodeset_add(&s, "", &err) < 0 && nodeset_add(&s, "a b", &err) < 0 &&
              nodeset_add(&s, "-x", &err) < 0 && s.n == 2,
          "no names");
}

// A fold that compares all pairs of so many names would not end within the test's time limit.
static void not_quadratic(void)
{
    CLEANUP_NODESET struct nodeset s = {0};
    CLEANUP_BUF struct buf fold = BUF_INIT;
    for (int i = 0; i < NODESET_NAMES_MAX; i++) {
        char name[NODESET_NAME_ROOM];
        snprintf(name, sizeof name, "n%dm%d", i, i * 7919 % 65537);
        nodeset_add(&s, name, NULL);
    }
    nodeset_fold(&s, &fold);
    CHECK(s.n == NODESET_NAMES_MAX && buf_ok(&fold) && !strchr(buf_text(&fold), '['),
          "%d names that cannot be folded", s.n);
}

// Names that are there already, where there is room for one more: a sort for each of them would not
// end within the test's time limit. Nor would an '&' that takes as long as what was before it.
static void not_slow(void)
{
    enum { TIMES = 60 };
    CLEANUP_NODESET struct nodeset s = {0}, again = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err = {0};
    CHECK(nodeset_parse(&s, "n[1-65535]", NULL, &err) == 0 &&
              nodeset_parse(&again, "n[1-65535]", NULL, &err) == 0,
          "%s", err.text);
    for (int i = 0; i < again.n; i++)
        nodeset_add(&s, again.names[i], NULL);
    CHECK(s.n == 65535 && nodeset_add(&s, "n0", &err) == 0 && nodeset_has(&s, "n0") &&
              nodeset_add(&s, "m", &err) < 0 && nodeset_add(&s, "n7", &err) == 0,
          "%d names that are there twice", s.n);
    buf_str(&text, "n[1-65535]");
    repeat(&text, "&n[1,3]&n[1,2]", 4500);
    for (int i = 0; i < TIMES; i++) {
        CLEANUP_NODESET struct nodeset both = {0};
        CHECK(nodeset_parse(&both, buf_text(&text), NULL, &err) == 0 && both.n == 1 &&
                  nodeset_has(&both, "n1"),
              "thousands of '&': %s", err.text);
    }
}

// ---- One name -----------------------------------------------------------------------------------

static void has_as_parsed(const char *text, const char *name)
{
    CLEANUP_NODESET struct nodeset s = {0};
    bool has = nodeset_parse(&s, text, NULL, NULL) == 0 && nodeset_has(&s, name);
    CHECK(nodeset_text_has(text, name) == has, "%s: %s is %s", text, name, has ? "in" : "not in");
}

static void one_name(void)
{
    static const char *const texts[] = {
        "",
        "n1",
        "n[1-3,10],m",
        "n[08-10]5",
        "n[001-128/3]",
        "n[1-9][1-12]x[0,00,000]",
        "n[1,11][1,11][1,11]",
        "n1 n2,n[3-5]!n4",
        "n[1-20]&n[10-30],m1",
        "n[1-20]^n[10-30]!n12",
        "n[1-3]!n[1-3]",
        "@rack1",
        "n1,n[",
        "n[1-65536],n[1-65536]",
        "n[1-70000]",
        "[1-5]a[0001-2000/7]-ib",
    };
    static const char *const names[] = {
        "",      "n",     "m",      "n0",       "n1",    "n01",      "n001",    "n004",
        "n4",    "n127",  "n128",   "n085",     "n105",  "n95",      "n095",    "n115",
        "n111",  "n1111", "n11111", "n12x0",    "n912x", "n12",      "n11",     "n20",
        "n30",   "n21",   "m1",     "n3",       "n2",    "n912x000", "n112x00", "3a0008-ib",
        "rack1", "n10",   "n1x",    "6a0001-ib"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (size_t k = 0; k < COUNT_OF(names); k++)
            has_as_parsed(texts[i], names[k]);
    CHECK(nodeset_text_has("n[08-10]5,m", "n095") && !nodeset_text_has("n[08-10]5,m", "n95"),
          "zeros in front count");
    int has = 0;
    for (int i = 0; i < 100000; i++) // each would make all names: not within the time limit
        has += nodeset_text_has("n[00001-65536]", i % 2 ? "n65536" : "n00000");
    CHECK(has == 50000, "%d", has);
}

int main(void)
{
    grammar();
    with_groups();
    errors();
    limits();
    members();
    chosen_names();
    one_by_one();
    not_quadratic();
    not_slow();
    one_name();
    return tap_done();
}
