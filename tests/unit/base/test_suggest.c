// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static const char *nearest(const char *typed, struct suggestion *s)
{
    static const char *const known[] = {"run",      "runs",      "report", "latency",
                                        "pingpong", "bandwidth", "size",   "visits"};
    *s = SUGGESTION_FOR(typed);
    for (size_t i = 0; i < COUNT_OF(known); i++)
        suggest_consider(s, known[i]);
    return s->best;
}

static void test_nearest(void)
{
    static const char *const pairs[][2] = {
        {"rusn", "runs"},     {"latncy", "latency"}, {"sizes", "size"}, {"band", "bandwidth"},
        {"pign", ""},         {"vistis", "visits"},  {"x", ""},         {"nonsense", ""},
        {"repotr", "report"}, {"zzz", ""},
    };
    struct suggestion s;
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        CHECK(strcmp(nearest(pairs[i][0], &s), pairs[i][1]) == 0, "%s: \"%s\", got \"%s\"",
              pairs[i][0], pairs[i][1], s.best);
}

static void test_words(void)
{
    struct suggestion s;
    char text[SUGGEST_TEXT_ROOM], longest[200];
    memset(longest, 'r', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    nearest("sizes", &s);
    CHECK(strcmp(suggest_text(&s, "--", text, sizeof text), "; did you mean \"--size\"?") == 0,
          "%s", text);
    nearest(longest, &s);
    CHECK(!*suggest_text(&s, "", text, sizeof text), "a word of any length may be typed");
}

// The whole table of distances, as the definition has it.
static int whole_distance(const char *a, const char *b)
{
    enum { MOST = 40 };
    int d[MOST + 1][MOST + 1], n = (int)strlen(a), m = (int)strlen(b);
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            d[i][j] = i + j;
            if (i && j) {
                int swap = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                d[i][j] = d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] + 1 : d[i][j - 1] + 1;
                d[i][j] = swap < d[i][j] ? swap : d[i][j];
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[n][m];
}

static const char *plain_nearest(const char *typed, char (*known)[20], int n_known)
{
    int weight = INT_MAX, n = (int)strlen(typed);
    const char *best = "";
    for (int i = 0; i < n_known && n > 1; i++) {
        int m = (int)strlen(known[i]), most = (n > m ? n : m) / 3;
        int distance = whole_distance(typed, known[i]);
        if (n > 2 && strncmp(known[i], typed, (size_t)n) == 0 && distance > most)
            distance = most;
        if (distance > (most ? most : 1) || distance >= m || 2 * distance + (n != m) >= weight)
            continue;
        weight = 2 * distance + (n != m);
        best = known[i];
    }
    return best;
}

static void random_word(char *out, uint32_t *random)
{
    int n = 1 + (int)((*random = *random * 1664525 + 1013904223) >> 24) % 16;
    for (int i = 0; i < n; i++)
        out[i] = (char)('a' + ((*random = *random * 1664525 + 1013904223) >> 24) % 3);
    out[n] = '\0';
}

static void test_definition(void)
{
    char words[12][20], typed[20];
    uint32_t random = 1;
    int near = 0;
    for (int round = 0; round < 4000; round++) {
        random_word(typed, &random);
        struct suggestion s = SUGGESTION_FOR(typed);
        for (size_t i = 0; i < COUNT_OF(words); i++) {
            random_word(words[i], &random);
            suggest_consider(&s, words[i]);
        }
        const char *best = plain_nearest(typed, words, COUNT_OF(words));
        near += *best != '\0';
        if (strcmp(s.best, best) != 0)
            CHECK(0, "%s: \"%s\", not \"%s\"", typed, best, s.best);
    }
    CHECK(near > 500 && near < 2000, "%d of 4,000 words have a near one", near);
}

static void test_effort(void)
{
    char name[64];
    struct suggestion s = SUGGESTION_FOR("compute-rack99.cluster.example.org-0000x");
    for (int i = 1; i <= 65536; i++) {
        snprintf(name, sizeof name, "compute-rack01.cluster.example.org-%05d", i);
        suggest_consider(&s, name);
    }
    CHECK(s.letters > SUGGEST_LETTERS_MAX, "these names need more than the limit: %d", s.letters);
    CHECK(s.letters < SUGGEST_LETTERS_MAX + 40 * 40, "%d letters", s.letters);
    CHECK(strcmp(s.best, "compute-rack01.cluster.example.org-00001") == 0, "%s", s.best);
}

int main(void)
{
    test_nearest();
    test_definition();
    test_effort();
    test_words();
    return tap_done();
}
