// SPDX-License-Identifier: Apache-2.0
#include "base/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

int main(void)
{
    static const struct {
        double v;
        int figures;
        const char *want;
    } all[] = {
        {8841234.5, 4, "8841000"},
        {8841234.5, 6, "8841230"},
        {12.5678, 4, "12.57"},
        {9999.6, 4, "10000"},
        {999.96, 4, "1000"},
        {1.5, 4, "1.5"},
        {100, 4, "100"},
        {0, 4, "0"},
        {-8841234.5, 4, "-8841000"},
        {0.00002, 4, "0.00002"},
        {0.000012345, 2, "0.000012"},
        {1e15, 4, "1000000000000000"},
        {1e16, 4, "1e+16"},
        {1e-300, 4, "1e-300"},
        {NAN, 4, "nan"},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char text[FIGURES_ROOM];
        CHECK_STR(figures_text(all[i].v, all[i].figures, text), all[i].want, "%g with %d figures",
                  all[i].v, all[i].figures);
    }
    char once[FIGURES_ROOM], again[FIGURES_ROOM];
    snprintf(once, sizeof once, "%+.1f", percent_written(0.5495));
    snprintf(again, sizeof again, "%+.1f", strtod("0.55", NULL)); // what a document has
    CHECK(!strcmp(once, again), "a text has the per cent that a table of the document has: %s",
          once);
    CHECK(isnan(percent_written(NAN)) && percent_written(1e300) == 1e300,
          "what has no places stays");
    CHECK_STR(FIGURES(8841234.5), "8841000", "four figures in a sentence");
    return tap_done();
}
