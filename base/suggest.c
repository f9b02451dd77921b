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

// Letters to insert, delete, replace, or swap with their neighbour (Damerau, 1964).
static int edit_distance(const char *a, int n, const char *b, int m)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            d[i][j] = smallest(d[i - 1][j] + 1, d[i][j - 1] + 1,
                               d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[n][m];
}

void suggest_consider(struct suggestion *s, const char *known)
{
    int n = (int)strlen(s->typed), m = (int)strlen(known);
    if (n > WORD_MAX || m > WORD_MAX || n < 2)
        return;
    int distance = edit_distance(s->typed, n, known, m);
    bool goes_on = n >= PREFIX_MIN && str_starts(known, s->typed);
    int most = (n > m ? n : m) / 3;
    if (goes_on && distance > most)
        distance = most;
    if (distance > (most ? most : 1) || distance >= m)
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
