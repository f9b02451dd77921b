// SPDX-License-Identifier: Apache-2.0
// Our numbers for an independent implementation to check (test_oracle.py). A question a line on
// stdin, an answer a line on stdout: "t <t> <df>", "upper <t> <df>", "q <p> <df>", "fdr <n> <p>…",
// "cauchy <n> <p>…", "series <n> <v>…".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/change_points.h"
#include "analysis/stats/distributions.h"

enum { MOST = 4000 };
static double v[MOST];
static int scratch[MOST];

static int read_list(void)
{
    int n;
    if (scanf("%d", &n) != 1 || n < 0 || n > MOST)
        exit(2);
    for (int i = 0; i < n; i++)
        if (scanf("%lf", &v[i]) != 1)
            exit(2);
    return n;
}

static void answer_series(int n)
{
    const struct series_options options = SERIES_DEFAULTS;
    struct change_point *points = NULL;
    int searched, found = series_changes(&points, &searched, v, n, &options, NULL);
    for (int i = 0; i < found; i++)
        printf("%d ", points[i].at);
    putchar('\n');
    free(points);
}

int main(void)
{
    char what[16];
    double x, df;
    while (scanf("%15s", what) == 1) {
        if (strcmp(what, "fdr") == 0) {
            int n = read_list();
            dist_fdr(v, n, scratch);
            for (int i = 0; i < n; i++)
                printf("%.17g ", v[i]);
            putchar('\n');
        } else if (strcmp(what, "cauchy") == 0) {
            double sum = 0;
            int n = read_list();
            for (int i = 0; i < n; i++)
                sum += dist_cauchy_term(v[i]) / n;
            printf("%.17g\n", dist_cauchy_tail(sum));
        } else if (strcmp(what, "series") == 0) {
            answer_series(read_list());
        } else if (scanf("%lf %lf", &x, &df) == 2) {
            printf("%.17g\n", *what == 't'   ? dist_t_two_sided(x, df)
                              : *what == 'u' ? dist_t_upper(x, df)
                                             : dist_t_quantile(x, df));
        }
    }
    return 0;
}
