// SPDX-License-Identifier: Apache-2.0
// A word is near enough to be suggested if few letters of it would have to change for its
// length.
#include "base/suggest.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { WORD_MAX = 40, PREFIX_MIN = 3 };

static int smallest(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

// Letters to insert, delete, replace, or swap with their neighbour (Damerau, 1964); if they are
// more than `most`, any number above it. Only what is so near to the diagonal is looked at
// (Ukkonen, 1985), in three rows.
static int edit_distance(struct suggestion *s, const char *a, int n, const char *b, int m, int most)
{
    int rows[3][WORD_MAX + 2];
    int *before = rows[0], *last = rows[1], *row = rows[2], least = 0, least_last;
    for (int j = 0; j <= m; j++)
        last[j] = j;
    for (int i = 1; i <= n; i++) {
        int from = i > most ? i - most : 1, to = i + most < m ? i + most : m;
        row[from - 1] = from == 1 ? i : most + 1;
        least_last = least;
        least = row[from - 1];
        for (int j = from; j <= to; j++) {
            row[j] = smallest(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
            least = row[j] < least ? row[j] : least;
        }
        row[to + 1] = most + 1;
        s->letters += to - from + 1;
        if (least > most && least_last > most)
            return most + 1;
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[m];
}

// Without what both begin and end with.
static int word_distance(struct suggestion *s, const char *known, int n, int m, int most)
{
    const char *typed = s->typed;
    if (n - m > most || m - n > most)
        return most + 1;
    for (; n && m && *typed == *known; n--, m--)
        typed++, known++;
    while (n && m && typed[n - 1] == known[m - 1])
        n--, m--;
    return edit_distance(s, typed, n, known, m, most);
}

void suggest_consider(struct suggestion *s, const char *known)
{
    int n = (int)strlen(s->typed), m = (int)strlen(known);
    if (n > WORD_MAX || m > WORD_MAX || n < 2 || s->letters > SUGGEST_LETTERS_MAX)
        return;
    bool goes_on = n >= PREFIX_MIN && str_starts(known, s->typed);
    int most = (n > m ? n : m) / 3, nearer = *s->best ? (s->weight - 1) / 2 : WORD_MAX;
    most = most ? most : 1;
    int distance = word_distance(s, known, n, m, most < nearer ? most : nearer);
    if (goes_on && distance > most)
        distance = most;
    if (distance > most || distance >= m)
        return;
    int weight = 2 * distance + (n != m); // of two as near, the one of the same length
    if (*s->best && weight >= s->weight)
        return;
    s->weight = weight;
    snprintf(s->best, sizeof s->best, "%s", known);
}

const char *suggest_text(const struct suggestion *s, const char *before, char *out, size_t room)
{
    *out = '\0';
    if (*s->best)
        snprintf(out, room, "; did you mean \"%s%s\"?", before, s->best);
    return out;
}
