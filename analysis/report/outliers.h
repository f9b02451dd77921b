// SPDX-License-Identifier: Apache-2.0
// What is odd at a single size: an inversion (a slow rank is suddenly faster than its node's fast
// rank by ANOMALY_SIZE or more) and an outlier (a rank outside of any slow group that is far from
// all others at that size: ANOMALY_SIZE or more, and six robust standard deviations). Pure.
#pragma once
#include "analysis/report/rank_groups.h"

#define ANOMALY_SIZE 0.10
enum { ANOMALIES_MAX = 64 };
enum anomaly_kind { ANOMALY_INVERSION, ANOMALY_OUTLIER };

struct anomaly {
    enum anomaly_kind kind;
    int64_t rank, other_rank; // other: the usually fast one; -1 for outliers
    int64_t bytes;
    double value, other; // ns; other: that rank's value, or the median of all ranks
    double percent;      // value against other
};

struct anomalies {
    int n; // largest first
    struct anomaly list[ANOMALIES_MAX];
};

int anomaly_find(struct anomalies *out, const struct matrix *m, const struct groups *groups,
                 struct err *err);
