// SPDX-License-Identifier: Apache-2.0
// The number is rounded by %e, because its exponent after rounding says how many digits stand
// before the point: 9999.6 has four figures as 10000.
#include "base/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPONENT_MOST = 15 };

static void drop_zeros(char *text)
{
    if (!strchr(text, '.'))
        return;
    char *end = text + strlen(text);
    while (end[-1] == '0')
        *--end = '\0';
    if (end[-1] == '.')
        end[-1] = '\0';
}

char *figures_text(double v, int figures, char out[static FIGURES_ROOM])
{
    char rounded[FIGURES_ROOM];
    snprintf(rounded, sizeof rounded, "%.*e", figures - 1, v);
    const char *e = strchr(rounded, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
    if (!isfinite(v) || !e || abs(exponent) > EXPONENT_MOST) {
        snprintf(out, FIGURES_ROOM, "%.*g", figures, v);
        return out;
    }
    int decimals = figures - 1 - exponent;
    snprintf(out, FIGURES_ROOM, "%.*f", decimals > 0 ? decimals : 0, strtod(rounded, NULL));
    drop_zeros(out);
    return out;
}

double percent_written(double v)
{
    char text[FIGURES_ROOM];
    if (!(fabs(v) < 1e15)) // its places are no matter
        return v;
    snprintf(text, sizeof text, "%.2f", v);
    return strtod(text, NULL);
}
