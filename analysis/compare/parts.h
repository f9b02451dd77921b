// SPDX-License-Identifier: Apache-2.0
// What the files of a comparison share: compare.c tests cells, groups.c the means of
// groups, verdict.c looks for parts and concludes.
#pragma once
#include "analysis/compare/comparison.h"
#include "analysis/stats/rank_places.h"

// No clock is better than this: a cell whose samples are all equal is not infinitely sure.
#define COMPARE_ERROR_FLOOR 0.0005

struct log_value {
    double log, var, df; // var NaN: one value only
};

struct sides {
    const struct compare_side *a, *b;
    int64_t visits_a, visits_b;
    struct log_value *apart; // of each cell; owned by compare()
};

// The difference and its 95 % interval; error NaN: not known.
void difference_set(struct difference *d, double log_ratio, double error, double df);
// The verdict, from percent, interval and p.
// comparison.detectable, of a difference over all cells, one of so many groups; NaN: not known;
// infinite: a factor of ten or more.
double difference_detectable(const struct difference *d, bool more_is_better, int groups,
                             const struct compare_options *o);
void difference_judge(struct difference *d, bool more_is_better, const struct compare_options *o);

struct sums {
    double a, b, d, dd, var, var_df;
    int n, known;
    bool few; // the cells' own errors speak, however few they are
    // What whole rows or columns scatter by says of the mean, and its degrees of freedom.
    double clustered, clustered_df;
};
void sums_add(struct sums *s, const struct difference *d, const struct log_value *apart);
// The mean of the cells that were added; keeps its `slower` and `faster`.
void sums_finish(struct difference *d, const struct sums *s);

// Groups of a comparison while cells are sorted into them: the groups of one `by` stand together.
struct grouping {
    struct comparison *c;
    const struct sides *s;
    struct places places; // of A's ranks; owned
    int first[COMPARE_BYS], n[COMPARE_BYS];
    int *row_of_col;              // between ranks: the row of the column's rank, else -1; owned
    int64_t *row_node, *col_node; // of a rank or a node; -1: not known; owned
    int *row_group;               // of that node; -1: none; owned
    struct sums *sums;            // a group; owned
};

int grouping_init(struct grouping *g, struct comparison *c, const struct sides *s, struct err *err);
void grouping_fini(struct grouping *g);
bool grouping_axis_is(enum compare_by by, const struct axis *a);
bool grouping_between_ranks(const struct grouping *g);
// 0 local, 1 remote, -1 not known or no question.
int grouping_locality(const struct grouping *g, int row, int col);

int compare_groups(struct grouping *g, const struct compare_options *o, struct err *err);
// Parts, the rest, and the verdict of the matrix, from judged cells and groups.
int compare_conclude(struct grouping *g, const struct compare_options *o, struct err *err);
